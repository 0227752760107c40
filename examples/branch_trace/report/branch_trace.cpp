// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "branch_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include <trace_ring/reduce/trace_file.hpp>

namespace branches {
// Not without a name: in a unity build this is an included file, and the reader has members of
// these types.
namespace reading {

namespace reduce = trace_ring::reduce;

/// The meaning of an event for this reader.
enum class what : std::uint8_t {
    unseen,
    other,
    taken,
    thread,
    recording,
    module,
    begun,
    ended,
    gap,
};

struct known_event {
    what is = what::unseen;
    branch_kind kind{};
};

constexpr auto taken_names = []<class... E>(std::type_identity<std::tuple<E...>>) {
    return std::array{E::name...};
}(std::type_identity<event::all_taken>());

constexpr std::pair<std::string_view, what> other_names[] = {
    {event::thread::name, what::thread},       {event::recording::name, what::recording},
    {event::module::name, what::module},       {event::process_begun::name, what::begun},
    {event::process_ended::name, what::ended}, {event::gap::name, what::gap},
};

[[nodiscard]] known_event know(std::string_view name) {
    for (std::size_t i = 0; i < taken_names.size(); ++i) {
        if (taken_names[i] == name) return {what::taken, static_cast<branch_kind>(i)};
    }
    for (const auto& [known, is] : other_names) {
        if (known == name) return {is, {}};
    }
    return {what::other, {}};
}

}  // namespace reading

using namespace reading;

class branch_reader::state {
public:
    state(reduce::trace_file& trace, const std::string& path, code& into, visitor visit,
          std::uint64_t until)
        : trace_(trace), code_(into), visit_(std::move(visit)) {
        out_.file = path;
        const auto& types = trace_.event_types();
        if (std::none_of(types.begin(), types.end(),
                         [](const auto& type) { return type.name == event::recording::name; })) {
            throw not_a_branch_trace(out_.file);
        }
        find_first_modules();
        reduce::filter what;
        what.to = until;
        cursor_.emplace(trace_.forward(std::move(what)));
    }
    [[nodiscard]] bool step() {
        const auto* const item = cursor_->next();
        if (item == nullptr) return false;
        if (const auto* record = std::get_if<reduce::record_view>(item)) {
            take(*record);
        } else if (const auto* loss = std::get_if<reduce::loss_item>(item)) {
            take(*loss);
        }
        return true;
    }
    [[nodiscard]] const std::vector<traced_thread>& threads() const noexcept {
        return out_.threads;
    }
    [[nodiscard]] branch_trace finish() {
        leave_out();
        for (const auto& damage : trace_.damages()) {
            out_.damages.push_back({damage.offset, std::string(damage.what)});
        }
        return std::move(out_);
    }

private:
    /// A branch before the record that names its thread.
    struct early_branch {
        branch_kind kind{};
        branch_record record;
        bool cut = false;  ///< a record other than a branch came before it
    };

    struct told_module {
        std::uint64_t start = 0, end = 0, offset = 0;
        std::string path;

        void add_to(process_code& code) const { code.add(start, end, offset, path); }
    };

    /// If the beginning was overwritten, the first mappings of a process also apply to the branches
    /// before them.
    void find_first_modules() {
        std::map<std::uint64_t, std::vector<told_module>> first;
        std::set<std::uint64_t> begun;
        reduce::filter only;
        only.events = {std::string(event::module::name), std::string(event::process_begun::name)};
        for (auto cursor = trace_.forward(only, reduce::merging::by_lane);
             const auto* item = cursor.next();) {
            const auto* record = std::get_if<reduce::record_view>(item);
            if (record == nullptr || !record->fault().empty()) continue;
            const auto process = record->field("process").u64();
            if (event_of(*record).is == what::begun) begun.insert(process);
            if (!begun.contains(process)) first[process].push_back(module_of(*record));
        }
        for (auto& [number, modules] : first) {
            // If two modules are mapped in one place, the first counts.
            for (auto at = modules.rbegin(); at != modules.rend(); ++at) {
                at->add_to(process(number));
            }
        }
    }
    [[nodiscard]] static told_module module_of(const reduce::record_view& record) {
        return {record.field("start").u64(), record.field("end").u64(),
                record.field("offset").u64(), std::string(record.field("path").text())};
    }

    [[nodiscard]] const known_event& event_of(const reduce::record_view& record) {
        const std::size_t number = record.type().number;
        if (number >= known_.size()) known_.resize(number + 1);
        if (known_[number].is == what::unseen) known_[number] = know(record.name());
        return known_[number];
    }

    [[nodiscard]] std::uint32_t thread_of(std::uint64_t process, std::uint64_t thread) {
        const std::pair key(static_cast<std::uint32_t>(process),
                            static_cast<std::uint32_t>(thread));
        const auto [at, is_new] =
            threads_.try_emplace(key, static_cast<std::uint32_t>(out_.threads.size()));
        if (is_new) {
            out_.threads.push_back({key.first, key.second, 0});
            follows_.push_back(false);
        }
        return at->second;
    }
    [[nodiscard]] process_code& process(std::uint64_t number) {
        return processes_.try_emplace(static_cast<std::uint32_t>(number), code_).first->second;
    }
    void say(std::uint32_t thread, std::string text) {
        out_.notes.push_back({out_.branches.size() + early_.size(), thread, std::move(text)});
        cut_ = true;
    }

    void take(const reduce::record_view& record) {
        if (!record.fault().empty()) {
            ++out_.unreadable;
            std::fill(follows_.begin(), follows_.end(), false);
            return;
        }
        const known_event event = event_of(record);
        const auto number = [&](const char* field) { return record.field(field).u64(); };
        const auto thread = [&] { return thread_of(number("process"), number("thread")); };
        switch (event.is) {
            case what::taken:
                take_branch(event.kind, {record.field(0).u64(), record.field(1).u64(),
                                         record.time(), record.lane().number, record.position()});
                break;
            case what::thread:
                if (number("thread_before") != 0 && !early_.empty()) {
                    now_ = thread_of(number("process_before"), number("thread_before"));
                    take_early(process(number("process_before")));
                }
                leave_out();
                now_ = thread();
                code_now_ = &process(number("process"));
                break;
            case what::recording:
                out_.source = record.field("source").text();
                out_.program = record.field("program").text();
                break;
            case what::module:
                module_of(record).add_to(process(number("process")));
                break;
            case what::begun:
                process(number("process")) = process_code(code_);
                for (std::uint32_t i = 0; i < out_.threads.size(); ++i) {
                    if (out_.threads[i].process == number("process")) follows_[i] = false;
                }
                say(no_thread, fmt::format("process {} runs {}", number("process"),
                                           record.field("program").text()));
                break;
            case what::ended:
                take_end(record);
                break;
            case what::gap:
                follows_[thread()] = false;
                say(thread(), number("count") == 0
                                  ? fmt::format("a gap: {}", record.field("why").text())
                                  : fmt::format("a gap of {} branches: {}", number("count"),
                                                record.field("why").text()));
                break;
            case what::unseen:
            case what::other:
                break;
        }
    }

    void take_branch(branch_kind kind, const branch_record& record) {
        if (code_now_ == nullptr) {
            early_.push_back({kind, record, std::exchange(cut_, false)});
            return;
        }
        const auto [from, to] = std::pair(record.from, record.to);
        // A zero begins or ends a part: the branch before it is unknown.
        const bool begins = from == 0;
        const place_id there = code_now_->find(from);
        // A processor's store does not record the kind of a branch; the instruction shows it.
        if (kind == branch_kind::unknown && !begins && to != 0) kind = code_.kind_of(there);
        const branch made{there, code_now_->find(to), now_, kind, follows_[now_] && !begins};
        if (visit_) {
            visit_(made, record);
        } else {
            out_.branches.push_back(made);
        }
        follows_[now_] = to != 0;
        if (from == 0 || to == 0) return;
        ++out_.threads[now_].branches;
        ++out_.taken;
    }

    void take_early(process_code& of) {
        code_now_ = &of;
        const auto early = std::exchange(early_, {});
        for (const auto& b : early) {
            if (b.cut) follows_[now_] = false;
            take_branch(b.kind, b.record);
        }
    }
    /// The thread of these early branches is unknown.
    void leave_out() {
        out_.nobodys += early_.size();
        early_.clear();
        for (auto note = out_.notes.rbegin(); note != out_.notes.rend(); ++note) {
            if (note->at <= out_.branches.size()) break;
            note->at = out_.branches.size();
        }
    }

    void take_end(const reduce::record_view& record) {
        const auto process = record.field("process").u64();
        const auto signal = static_cast<int>(record.field("signal").i64());
        if (signal == 0) {
            say(no_thread, fmt::format("process {} ends with status {}", process,
                                       record.field("status").i64()));
        } else {
            const char* const name = ::sigabbrev_np(signal);
            say(no_thread,
                fmt::format("process {} is ended by signal {}{}{}", process, signal,
                            name == nullptr ? "" : ", SIG", name == nullptr ? "" : name));
        }
    }

    void take(const reduce::loss_item& loss) {
        out_.lost.add(loss.cause, loss.count);
        if (loss.cause == trace_ring::loss_cause::damaged) {
            out_.damages.push_back({loss.offset, std::string(loss.what)});
        }
        std::fill(follows_.begin(), follows_.end(), false);
        leave_out();
        code_now_ = nullptr;  // the damaged part may have named another thread
    }

    reduce::trace_file& trace_;
    code& code_;
    visitor visit_;
    std::optional<reduce::cursor> cursor_;
    branch_trace out_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> threads_;
    std::map<std::uint32_t, process_code> processes_;
    std::vector<bool> follows_;
    std::uint32_t now_ = 0;
    process_code* code_now_ = nullptr;
    std::vector<early_branch> early_;
    bool cut_ = false;
    std::vector<known_event> known_;
};

branch_reader::branch_reader(reduce::trace_file& trace, const std::string& path, code& into,
                             visitor visit, std::uint64_t until)
    : state_(std::make_unique<state>(trace, path, into, std::move(visit), until)) {}
branch_reader::~branch_reader() = default;
bool branch_reader::step() {
    return state_->step();
}
const std::vector<traced_thread>& branch_reader::threads() const noexcept {
    return state_->threads();
}
branch_trace branch_reader::finish() {
    return state_->finish();
}

branch_trace read_branches(const std::string& path, code& into) {
    auto trace = reduce::trace_file::open(path);
    branch_reader reader(trace, path, into);
    while (reader.step()) {
    }
    return reader.finish();
}

}  // namespace branches
