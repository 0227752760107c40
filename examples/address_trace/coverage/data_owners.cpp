// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "data_owners.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <heap_recorder/report/quantity.hpp>

#include "../../symbols/symbols.hpp"
#include "object_file.hpp"

namespace address_trace {

/// At most three, as text.
class data_owners::names {
public:
    void add(std::string name, std::uint64_t begin, std::uint64_t address) {
        if (++found_ > most) return;
        if (!out_.empty()) out_ += ", ";
        out_ += name;
        if (begin < address) out_ += fmt::format("+{}", address - begin);
    }
    [[nodiscard]] std::string text() const {
        return found_ > most ? out_ + fmt::format(" and {} more", found_ - most) : out_;
    }

private:
    static constexpr std::size_t most = 3;
    std::string out_;
    std::size_t found_ = 0;
};

std::string data_owners::find(std::uint64_t address, std::uint64_t bytes, const text_of& text) {
    names out;
    // The module that was loaded last is the valid one.
    for (auto module = modules_.rbegin(); module != modules_.rend(); ++module) {
        if (address < module->start || address >= module->end) continue;
        const std::uint64_t from = address - module->bias, to = from + bytes;
        const object_variables& variables = variables_of(*module);
        const std::uint64_t first = from - std::min(from, variables.longest);
        for (auto each = std::ranges::lower_bound(variables.all, first, {}, &variable::begin);
             each != variables.all.end() && each->begin < to; ++each) {
            if (each->end > from) out.add(each->name, each->begin, from);
        }
        return out.text();
    }
    if (allocated_ != nullptr) {
        const auto found = allocated_->find(address, bytes);
        for (const allocated_range& each : found) {
            out.add(
                fmt::format("{} of {}", heap::bytes_text(each.end - each.begin), text(each.site)),
                each.begin, address);
        }
        if (!found.empty()) return out.text();
    }
    for (auto stack = stacks_.rbegin(); stack != stacks_.rend(); ++stack) {
        if (address >= stack->low && address < stack->high)
            return fmt::format("stack of thread {}", stack->thread);
    }
    return {};
}

const data_owners::object_variables& data_owners::variables_of(const loaded_module& module) {
    const auto [at, is_new] = by_path_.try_emplace(module.path);
    std::vector<variable>& out = at->second.all;
    if (!is_new) return at->second;
    const object_file file(module.path);
    if (!file.problem(module.build_id).empty()) return at->second;
    for (const section& each : file.sections()) {
        if (each.head.sh_type != SHT_SYMTAB && each.head.sh_type != SHT_DYNSYM) continue;
        file.each_symbol(each, [&](std::string_view name, const GElf_Sym& symbol, int) {
            if (GELF_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_size == 0) return;
            if (symbol.st_shndx == SHN_UNDEF) return;
            out.push_back({symbol.st_value, symbol.st_value + symbol.st_size,
                           symbols::demangle(std::string(name).c_str())});
        });
    }
    // A symbol may be in both tables, and one of several names for a place is enough.
    std::ranges::stable_sort(out, {}, &variable::begin);
    const auto is_same = [](const variable& a, const variable& b) {
        return a.begin == b.begin && a.end == b.end;
    };
    out.erase(std::unique(out.begin(), out.end(), is_same), out.end());
    for (const variable& each : out)
        at->second.longest = std::max(at->second.longest, each.end - each.begin);
    return at->second;
}

}  // namespace address_trace
