// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>
#include <variant>

#include <symbols/loaded_module.hpp>
#include <trace_ring/reduce/trace_file.hpp>

namespace heap {
// Not without a name: in a unity build this is an included file, and the reader has members of
// these types.
namespace reading {

namespace reduce = trace_ring::reduce;

/// What an event is to this reader, and where its fields are.
struct known_event {
    enum class what : std::uint8_t {
        unknown,
        other,
        call,
        module,
        fork,
        forked,
        recording,
        lost,
        passed_by,
        bypassing,
        exec,
        exec_failed
    };
    what is = what::unknown;
    call_kind call{};
    std::size_t size = 0, count = 0, address = 0, old = 0, stack = 0;  // npos: it has none
};

[[nodiscard]] known_event know(const reduce::event_type& type) {
    known_event known;
    known.is = known_event::what::other;
    for (std::size_t i = 0; i < call_kinds; ++i) {
        if (type.name != call_names[i]) continue;
        known.is = known_event::what::call;
        known.call = static_cast<call_kind>(i);
    }
    if (type.name == "module") known.is = known_event::what::module;
    if (type.name == "fork") known.is = known_event::what::fork;
    if (type.name == "forked") known.is = known_event::what::forked;
    if (type.name == "recording") known.is = known_event::what::recording;
    if (type.name == "unrecorded") known.is = known_event::what::lost;
    if (type.name == "passed_by") known.is = known_event::what::passed_by;
    if (type.name == "bypassing") known.is = known_event::what::bypassing;
    if (type.name == "exec") known.is = known_event::what::exec;
    if (type.name == "exec_failed") known.is = known_event::what::exec_failed;
    known.size = type.find("size");
    known.count = type.find("count");
    known.address = type.find("address");
    known.old = type.find("old");
    known.stack = type.find("stack");
    return known;
}

}  // namespace reading

using namespace reading;

class profile_reader::state {
public:
    state(reduce::trace_file& trace, const std::string& path, stack_table& stacks,
          std::uint64_t short_life, std::function<void(const block_life&)> blocks)
        : trace_(trace), table_(stacks), short_life_(short_life), blocks_(std::move(blocks)) {
        out_.file = path;
    }

    void begin(std::uint64_t until, std::function<void()> look) {
        const auto& types = trace_.event_types();
        if (std::none_of(types.begin(), types.end(),
                         [](const auto& type) { return type.name == "malloc"; })) {
            throw not_a_heap_trace(out_.file);
        }
        find_forks();
        look_ = std::move(look);
        reduce::filter what;
        what.to = until;
        cursor_.emplace(trace_.forward(std::move(what)));
    }
    bool step() {
        constexpr std::uint64_t often = 4096;
        if (look_ && ++steps_ % often == 0) look_();
        const auto* const item = cursor_->next();
        if (item == nullptr) return false;
        if (const auto* record = std::get_if<reduce::record_view>(item)) {
            take(*record);
        } else if (const auto* loss = std::get_if<reduce::loss_item>(item)) {
            take(*loss);
        }
        return true;
    }
    [[nodiscard]] file_profile finish() {
        if (blocks_) visit_live();
        for (const auto& damage : trace_.damages()) {
            out_.damages.push_back(fmt::format("offset {}: {}", damage.offset, damage.what));
        }
        for (process_profile& each : out_.processes) {
            each.perhaps_lost = lost_by_nobody_;
            each.damages = out_.damages.size();
        }
        for (auto& [by, what] : executions_) {
            if (by == nullptr) continue;  // it failed
            if (what.pid == by->pid) by->executed = what.path;
            out_.executions.push_back(std::move(what));
        }
        return std::move(out_);
    }

private:
    static constexpr std::uint32_t no_slot = ~std::uint32_t{0};
    using fork_key =
        std::pair<std::uint32_t, std::uint64_t>;  // the parent's slot, the fork's number
    struct process_state {
        process_profile* profile;
        process_stacks stacks;
    };
    struct fork_state {
        ledger heap;
        process_stacks stacks;
    };

    /// Which forks had children that record: only for those the heap is copied.
    void find_forks() {
        reduce::filter only;
        only.events = {"forked"};
        for (auto cursor = trace_.forward(only, reduce::merging::by_lane);
             const auto* item = cursor.next();) {
            const auto* record = std::get_if<reduce::record_view>(item);
            if (record == nullptr || !record->lane().process) continue;
            const auto& child = trace_.processes()[*record->lane().process];
            if (!child.parent) continue;
            const fork_key key{*child.parent, record->field("number").u64()};
            fork_of_[child.slot] = key;
            wanted_forks_.insert(key);
        }
    }

    [[nodiscard]] std::uint64_t nanoseconds(std::uint64_t ticks) const {
        return static_cast<std::uint64_t>(std::max<std::int64_t>(0, trace_.realtime_ns(ticks)));
    }

    /// The process that writes to a lane. If its entry is gone, the only process, or unknown.
    std::uint32_t slot_of(const reduce::lane_info& lane) const {
        return lane.process.value_or(trace_.processes().size() == 1 ? 0 : no_slot);
    }
    process_state& process_of(const reduce::lane_info& lane, std::uint64_t time) {
        const std::uint32_t slot = slot_of(lane);
        if (const auto at = states_.find(slot); at != states_.end()) return at->second;
        reduce::process_info info;
        if (slot != no_slot) {
            info = trace_.processes().at(slot);
        } else {
            info.name = "processes that are not known any more";
        }
        auto& profile = out_.processes.emplace_back();
        profile.file = out_.file;
        profile.pid = info.pid;
        profile.name = info.name;
        profile.heap = ledger(short_life_);
        listen(profile);
        profile.begin = profile.end = time;
        process_state made{&profile, process_stacks(table_)};
        if (info.parent) {
            inherit(made, info, time);
        }
        return states_.emplace(slot, std::move(made)).first->second;
    }

    /// Passes the ends of the process's blocks on.
    void listen(process_profile& profile) {
        if (!blocks_) return;
        profile.heap.on_end([this, &profile](std::uint64_t address, const block& of) {
            blocks_({&profile, address, of, true, now_, thread_, call_, stack_});
        });
    }
    void visit_live() {
        for (const process_profile& each : out_.processes) {
            for (const auto& [address, of] : each.heap.live()) {
                blocks_({&each, address, of, false, 0, 0, call_kind::free, 0});
            }
        }
    }

    void inherit(process_state& child, const reduce::process_info& info, std::uint64_t time) {
        auto& profile = *child.profile;
        profile.parent = trace_.processes()[*info.parent].pid;
        const auto fork = fork_of_.find(info.slot);
        const auto kept = fork == fork_of_.end() ? forks_.end() : forks_.find(fork->second);
        const auto parent = states_.find(*info.parent);
        if (kept != forks_.end()) {
            profile.inherited = inheritance::exact;
            profile.heap = std::move(kept->second.heap);
            listen(profile);
            child.stacks = std::move(kept->second.stacks);
            forks_.erase(kept);
        } else {
            profile.inherited = inheritance::approximate;
            if (parent != states_.end()) {
                profile.heap.inherit(parent->second.profile->heap, time);
                child.stacks = parent->second.stacks;
            }
        }
        if (parent != states_.end()) {
            profile.unwind = parent->second.profile->unwind;
            profile.depth = parent->second.profile->depth;
            profile.passed_by = parent->second.profile->passed_by;
        }
    }

    [[nodiscard]] const known_event& event_of(const reduce::record_view& record) {
        const std::size_t number = record.type().number;
        if (number >= known_.size()) known_.resize(number + 1);
        if (known_[number].is == known_event::what::unknown) known_[number] = know(record.type());
        return known_[number];
    }

    void take(const reduce::record_view& record) {
        ++out_.records;
        if (!record.fault().empty()) {
            ++out_.unreadable;
            return;
        }
        const std::uint64_t time = nanoseconds(record.time());
        process_state& process = process_of(record.lane(), time);
        process_profile& profile = *process.profile;
        profile.end = std::max(profile.end, time);
        const known_event& event = event_of(record);
        switch (event.is) {
            case known_event::what::call:
                take_call(event, record, process, time);
                break;
            case known_event::what::module:
                take_module(record, process);
                break;
            case known_event::what::fork:
                take_fork(record, process, time);
                break;
            case known_event::what::recording:
                profile.unwind = record.field("unwind").text();
                profile.depth = static_cast<std::uint32_t>(record.field("depth").u64());
                break;
            case known_event::what::lost:
                profile.unrecorded += record.field("calls").u64();
                break;
            case known_event::what::passed_by:
                profile.passed_by.emplace_back(record.field("function").text(),
                                               record.field("object").text());
                break;
            case known_event::what::bypassing:
                profile.bypassing.emplace_back(record.field("functions").text(),
                                               record.field("object").text());
                break;
            case known_event::what::exec:
                last_of_[record.lane().number] = executions_.size();
                executions_.push_back({&profile,
                                       {static_cast<std::uint32_t>(record.field("process").u64()),
                                        std::string(record.field("file").text()),
                                        std::string(record.field("obstacle").text())}});
                break;
            case known_event::what::exec_failed:
                if (const auto last = last_of_.find(record.lane().number); last != last_of_.end()) {
                    executions_[last->second].by = nullptr;
                    last_of_.erase(last);
                }
                break;
            default:
                break;
        }
    }

    void take_call(const known_event& event, const reduce::record_view& record,
                   process_state& process, std::uint64_t time) {
        process_profile& profile = *process.profile;
        ++profile.calls[record.lane().thread][static_cast<std::size_t>(event.call)];
        const std::uint64_t address = record.field(event.address).u64();
        now_ = time;
        thread_ = record.lane().thread;
        call_ = event.call;
        if (frees(event.call)) {
            if (blocks_) stack_ = stack_of(record, event, process);
            profile.heap.freed(time, address);
            return;
        }
        std::uint64_t bytes = record.field(event.size).u64();
        if (event.count != reduce::event_type::npos &&
            __builtin_mul_overflow(bytes, record.field(event.count).u64(), &bytes)) {
            bytes = std::numeric_limits<std::uint64_t>::max();  // it cannot have succeeded
        }
        stack_ = stack_of(record, event, process);
        const auto call = static_cast<std::uint8_t>(event.call);
        if (event.call == call_kind::realloc || event.call == call_kind::reallocarray) {
            const std::uint64_t old = record.field(event.old).u64();
            profile.heap.reallocated(time, thread_, old, address, bytes, stack_, call);
        } else {
            profile.heap.allocated(time, thread_, address, bytes, stack_, call);
        }
    }

    [[nodiscard]] stack_id stack_of(const reduce::record_view& record, const known_event& event,
                                    process_state& process) {
        const auto frames = record.field(event.stack);
        addresses_.clear();
        for (std::size_t i = 0; i < frames.size(); ++i) addresses_.push_back(frames.at(i).u64());
        return process.stacks.find(addresses_);
    }

    void take_module(const reduce::record_view& record, process_state& process) {
        auto found = symbols::module_of(record);
        process.stacks.add(found.start, found.end, found.bias,
                           {std::move(found.path), std::move(found.build_id)});
    }

    void take_fork(const reduce::record_view& record, process_state& process, std::uint64_t time) {
        const fork_key key{slot_of(record.lane()), record.field("number").u64()};
        if (!wanted_forks_.contains(key)) return;
        fork_state kept{ledger(short_life_), process.stacks};
        kept.heap.inherit(process.profile->heap, time);
        forks_.insert_or_assign(key, std::move(kept));
    }

    void take(const reduce::loss_item& loss) {
        out_.lost.add(loss.cause, loss.count);
        const std::uint64_t time = nanoseconds(loss.time);
        if (loss.cause == trace_ring::loss_cause::damaged) {
            out_.damages.push_back(fmt::format("offset {}: {}", loss.offset, loss.what));
        }
        if (loss.lane == nullptr || !loss.lane->process) {
            lost_by_nobody_ += loss.count;
            return;
        }
        process_profile& profile = *process_of(*loss.lane, time).profile;
        profile.lost.add(loss.cause, loss.count);
        if (profile.first_loss == 0) profile.first_loss = std::max<std::uint64_t>(time, 1);
    }

    reduce::trace_file& trace_;
    stack_table& table_;
    std::uint64_t short_life_;
    std::function<void(const block_life&)> blocks_;
    std::function<void()> look_;
    std::optional<reduce::cursor> cursor_;
    std::uint64_t steps_ = 0;
    // Of the call that is taken.
    std::uint64_t now_ = 0;
    std::uint32_t thread_ = 0;
    call_kind call_ = call_kind::free;
    stack_id stack_ = 0;
    file_profile out_;
    std::uint64_t lost_by_nobody_ = 0;  ///< records of which no process is known
    std::unordered_map<std::uint32_t, process_state> states_;
    std::map<std::uint32_t, fork_key> fork_of_;
    std::set<fork_key> wanted_forks_;
    std::map<fork_key, fork_state> forks_;
    struct executed_by {
        process_profile* by;  // null: it failed
        execution what;
    };
    std::vector<executed_by> executions_;
    std::unordered_map<std::uint32_t, std::size_t> last_of_;  // by lane
    std::vector<known_event> known_;
    std::vector<std::uint64_t> addresses_;
};

profile_reader::profile_reader(reduce::trace_file& trace, const std::string& path,
                               stack_table& stacks, std::uint64_t short_life,
                               std::function<void(const block_life&)> blocks)
    : state_(std::make_unique<state>(trace, path, stacks, short_life, std::move(blocks))) {}
profile_reader::~profile_reader() = default;
void profile_reader::begin(std::uint64_t until, std::function<void()> look) {
    state_->begin(until, std::move(look));
}
bool profile_reader::step() {
    return state_->step();
}
file_profile profile_reader::finish() {
    return state_->finish();
}

file_profile read_profile(const std::string& path, stack_table& stacks, std::uint64_t short_life) {
    auto trace = reduce::trace_file::open(path);
    profile_reader reader(trace, path, stacks, short_life);
    reader.begin();
    while (reader.step()) {
    }
    return reader.finish();
}

}  // namespace heap
