// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "code_names.hpp"
#include "../where/kinds.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <unordered_map>
#include <utility>
#include <variant>

#include <trace_ring/glob.hpp>
#include <trace_ring/reduce/filter.hpp>
#include <trace_ring/reduce/item.hpp>

#include <symbols/loaded_module.hpp>
#if defined(TRACE_REDUCE_SYMBOLS)
#include <symbols/symbols.hpp>
#endif

namespace trace_reduce::names {

/// What a process had loaded.
struct module : symbols::loaded_module {
    std::uint32_t pid = 0;
    std::uint32_t told_by = 0;  ///< a process that is another one; 0: it is the same
    std::uint64_t time = 0;     ///< when it was recorded, in ticks

    friend bool operator==(const module&, const module&) = default;
};

namespace {

std::vector<module> modules_of(const reduce::trace_file& of) {
    std::vector<module> all;
    reduce::filter only;
    only.events = {"module"};
    for (auto cursor = of.forward(std::move(only), reduce::merging::by_lane);
         const auto* item = cursor.next();) {
        const auto* const record = std::get_if<reduce::record_view>(item);
        if (record == nullptr) continue;
        const std::uint32_t by = record->lane().pid;
        module made{symbols::module_of(*record), by};
        if (record->type().find("pid") != reduce::event_type::npos) {
            made.pid = static_cast<std::uint32_t>(record->field("pid").u64());
            made.told_by = by;
        }
        if (made.start >= made.end || made.path.empty()) continue;
        made.time = record->time();
        all.push_back(std::move(made));
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const module& a, const module& b) { return a.time < b.time; });
    // Those that say what is known already are left out.
    std::vector<module> news;
    for (module& each : all) {
        const auto last = std::find_if(news.rbegin(), news.rend(), [&](const module& one) {
            return one.pid == each.pid && one.start < each.end && each.start < one.end;
        });
        if (last != news.rend()) {
            module same = *last;
            same.time = each.time;
            if (same == each) continue;
        }
        news.push_back(std::move(each));
    }
    return news;
}

}  // namespace

#if defined(TRACE_REDUCE_SYMBOLS)

bool can_name() noexcept {
    return true;
}

struct code_names::known {
    std::vector<module> modules;
    /// By path and build id.
    std::map<std::pair<std::string, std::string>, std::unique_ptr<symbols::object>> files;
    std::map<const module*, std::unordered_map<std::uint64_t, std::string>> places;

    [[nodiscard]] const symbols::object& file_of(const module& what) {
        auto& file = files[{what.path, what.build_id}];
        if (!file) file = std::make_unique<symbols::object>(what.path, what.build_id);
        return *file;
    }
};

std::vector<code_range> code_names::named(const std::string& name, bool glob) const {
    const auto fits = [&](const std::string& one) {
        return glob ? trace_ring::matches_glob(name, one) : name == one;
    };
    std::vector<code_range> found;
    for (const module& each : known_->modules) {
        for (const auto& function : known_->file_of(each).functions()) {
            const std::uint64_t start = function.start + each.bias, end = function.end + each.bias;
            if (start < each.start || end > each.end || start >= end) continue;
            const std::string whole = symbols::demangle(function.name.c_str());
            if (fits(function.name) || fits(whole) || fits(symbols::without_arguments(whole))) {
                found.push_back({each.pid, start + 1, end});
            }
        }
    }
    return found;
}

std::string code_names::problem() const {
    std::string first = "no record 'module' says what was loaded";
    for (const module& each : known_->modules) {
        const auto& file = known_->file_of(each);
        if (!file.functions().empty()) return {};
        if (&each == &known_->modules[0]) {
            first =
                each.path + ": " + (file.problem().empty() ? "it has no symbols" : file.problem());
        }
    }
    return first;
}

std::vector<std::string> code_names::problems() const {
    std::vector<std::string> all;
    for (const auto& [name, file] : known_->files) {
        const bool is_file = name.first.starts_with('/');  // and not the kernel's vdso
        if (!is_file) continue;
        if (!file->problem().empty()) {
            all.push_back(name.first + ": " + file->problem());
        } else if (name.second.empty()) {
            all.push_back(name.first +
                          ": it has no build id, so it may have changed since the "
                          "trace was made");
        }
    }
    return all;
}

std::string code_names::nearest(const std::string& name) const {
    expressions::nearest to(name, 3);
    for (const module& each : known_->modules) {
        for (const auto& function : known_->file_of(each).functions()) to.look(function.name);
    }
    return std::string(to.found());
}

std::string_view code_names::name_of(const reduce::record_view& record, std::uint64_t address) {
    std::uint32_t pid = record.lane().pid;
    if (std::any_of(known_->modules.begin(), known_->modules.end(),
                    [pid](const module& each) { return each.told_by == pid; }))
        pid = static_cast<std::uint32_t>(record.field("pid").u64());
    // The last one recorded before, or the first one, as modules may be recorded late.
    const module* there = nullptr;
    for (const module& each : known_->modules) {
        if (several_ && each.pid != pid) continue;
        if (address <= each.start || address > each.end) continue;
        if (there != nullptr && each.time > record.time()) break;
        there = &each;
    }
    if (there == nullptr) return {};
    const auto [at, is_new] = known_->places[there].try_emplace(address);
    if (!is_new) return at->second;
    const auto& file = known_->file_of(*there);
    if (file.function_at(address - there->bias - 1) == nullptr) return {};
    at->second = symbols::place_and_line(file.before(address - there->bias));
    return at->second;
}

#else

bool can_name() noexcept {
    return false;
}

struct code_names::known {
    std::vector<module> modules;
};
std::vector<code_range> code_names::named(const std::string&, bool) const {
    return {};
}
std::string code_names::problem() const {
    return "this program was built without elfutils";
}
std::vector<std::string> code_names::problems() const {
    return {};
}
std::string code_names::nearest(const std::string&) const {
    return {};
}
std::string_view code_names::name_of(const reduce::record_view&, std::uint64_t) {
    return {};
}

#endif

code_names::code_names(const reduce::trace_file& of) : known_(std::make_unique<known>()) {
    known_->modules = modules_of(of);
    const auto& all = known_->modules;
    several_ = std::any_of(all.begin(), all.end(),
                           [&all](const module& each) { return each.pid != all[0].pid; });
}
code_names::~code_names() = default;

}  // namespace trace_reduce::names
