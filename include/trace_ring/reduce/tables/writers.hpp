// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The writers of a trace: processes, lanes, the ring that they shared, and the clock snapshots
/// that they took, copied from the file.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/copied_entries.hpp>
#include <trace_ring/format/plan.hpp>
#include <trace_ring/format/sub_buffer.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/reduce/source.hpp>
#include <trace_ring/reduce/tables/timeline.hpp>

namespace trace_ring::inline v1::reduce {

/// A text that ends before the first zero.
template <std::size_t N>
[[nodiscard]] std::string text_of(const shared_atomic<std::uint64_t> (&words)[N]) {
    char text[N * sizeof(std::uint64_t)];
    for (std::size_t i = 0; i < N; ++i) {
        const std::uint64_t word = words[i].load(relaxed);  // relaxed: a copy
        std::memcpy(text + i * sizeof word, &word, sizeof word);
    }
    return {text, std::find(text, text + sizeof text, '\0')};
}

/// The largest count of records that a reader believes. A larger one is damage: a writer that
/// records or loses one record each nanosecond reaches this one after 52 days.
inline constexpr std::uint64_t most_records = std::uint64_t{1} << 52;

/// A count of records in a copied table. If it is not plausible: 0, after `note(count, which)`.
template <class Note>
[[nodiscard]] std::uint64_t believed(const shared_atomic<std::uint64_t>& count,
                                     std::string_view which, const Note& note) {
    const std::uint64_t records = count.load(relaxed);  // relaxed: a copy
    if (records <= most_records) return records;
    note(count, which);
    return 0;
}
[[nodiscard]] inline std::string not_plausible(std::string whose, std::string_view which) {
    return std::move(whose) + ": the count of " + std::string(which) + " records is not plausible";
}

/// The losses that a writer counts; `note` as above.
template <class Note>
[[nodiscard]] loss_counts losses_of(const shared_atomic<std::uint64_t>& refused,
                                    const shared_atomic<std::uint64_t>& too_long,
                                    const shared_atomic<std::uint64_t>& nested,
                                    const shared_atomic<std::uint64_t>& abandoned,
                                    const Note& note) {
    loss_counts out;
    const auto add = [&](loss_cause cause, const shared_atomic<std::uint64_t>& count) {
        out.add(cause, believed(count, to_string(cause), note));
    };
    add(loss_cause::refused, refused);
    add(loss_cause::too_long, too_long);
    add(loss_cause::nested, nested);
    add(loss_cause::abandoned, abandoned);
    return out;
}

/// Entries of a table, copied twice. One that was being replaced would be a mixture: its
/// number differs between the copies, and it is read the next time.
template <class Entry>
class read_twice {
public:
    /// Entries beyond the end of the file are zero. Throws std::bad_alloc.
    void read(const source& from, std::uint64_t offset, std::size_t count) {
        at_ = offset;
        first_.assign(count * sizeof(Entry) / 8, 0);
        again_.assign(first_.size(), 0);
        (void)from.read(offset, first_.data(), first_.size() * 8);
        // order: lane.look:A pairs with lane.enter:B, lane.newest:A, here.newest:A
        // order: index.look:A pairs with claim:A, here.index:A
        // order: clocks.look:A pairs with clocks.write:A
        thread_fence(acquire);
        (void)from.read(offset, again_.data(), again_.size() * 8);
    }
    [[nodiscard]] layout::copied_entries<Entry> first() const noexcept { return {first_, at_}; }
    [[nodiscard]] layout::copied_entries<Entry> again() const noexcept { return {again_, at_}; }

private:
    std::vector<std::uint64_t> first_{};
    std::vector<std::uint64_t> again_{};
    std::uint64_t at_ = 0;
};

/// A process that writes, or wrote, into the file.
struct process_info {
    std::uint32_t slot = 0;
    std::uint32_t pid = 0;
    std::uint32_t root = 0;                 ///< the numbering of its event types: a slot
    std::optional<std::uint32_t> parent{};  ///< slot of the process it was forked from
    std::uint32_t word = 0;                 ///< its word size in bytes, 4 or 8
    layout::presence state = layout::presence::free;
    std::uint64_t start = 0;     ///< clock ticks since boot, as /proc/PID/stat says
    std::uint64_t attached = 0;  ///< trace clock
    std::uint64_t departed = 0;  ///< trace clock; 0: it lives, or was killed
    std::uint32_t uses = 0;      ///< processes that have had the entry, including this one
    std::string name{};          ///< any bytes

    /// Calls `note(offset, what)` for what makes no sense, and replaces it by a harmless value.
    template <class Note>
    [[nodiscard]] static process_info from(const layout::copied_entries<layout::process_entry>& all,
                                           std::uint32_t slot, const Note& note) {
        using layout::presence;
        const layout::process_entry& entry = all[slot];
        // relaxed: a copy
        const auto get = [](const auto& shared) { return shared.load(relaxed); };
        process_info process{};
        process.slot = slot;
        process.root = slot;
        process.state = static_cast<presence>(get(entry.state));
        if (process.state == presence::free || process.state == presence::preparing) return process;
        if (process.state > presence::preparing) {
            note(all.offset(entry.state), "a process in no known state");
            process.state = presence::departed;
        }
        process.pid = get(entry.pid);
        process.start = get(entry.start);
        process.word = get(entry.word);
        process.uses = get(entry.uses);
        process.attached = get(entry.attached);
        process.departed = get(entry.departed);
        if (get(entry.root) < all.size()) {
            process.root = get(entry.root);
        } else {
            note(all.offset(entry.root), "a process that uses no one's events");
        }
        if (get(entry.parent) > all.size()) {
            note(all.offset(entry.parent), "a process forked from none");
        } else if (get(entry.parent) != 0) {
            process.parent = get(entry.parent) - 1;
        }
        process.name = text_of(entry.name);
        return process;
    }
};

/// One writer: a thread, or what interrupted it (depth above 0).
struct lane_info {
    std::uint32_t number = 0;
    bool listed = false;  ///< in the file's table; false: known by its records alone
    std::optional<std::uint32_t> process{};  ///< slot
    std::optional<std::uint32_t> root{};     ///< the numbering of event types of its records
    std::uint32_t pid = 0;
    std::uint32_t thread = 0;  ///< kernel thread id
    std::uint32_t depth = 0;
    std::optional<std::uint32_t> cpu{};  ///< its processor, where lanes belong to processors
    std::string name{};                  ///< of the thread; any bytes
    layout::presence state = layout::presence::free;
    std::uint64_t written = 0;  ///< records in closed sub-buffers
    /// Records before this one were consumed by draining sessions, or reported to them as lost.
    position drained = 0;
    position newest = no_position;
    /// The newest sub-buffer after `written` was read: all records that it counts are in this one
    /// or before.
    position claimed = no_position;
    loss_counts lost{};  ///< refused, too long, nested, abandoned: as the writer counted
    std::uint64_t began = 0;
    std::uint64_t ended = 0;    ///< 0 while live
    std::uint64_t offset = 0;   ///< of its entry in the file
    std::size_t row = 0;        ///< of its entry in the table, and of its totals
    std::uint64_t looked = 0;   ///< which look at the tables found it last; see tables::is_gone
    std::uint32_t adopted = 0;  ///< how many times another thread adopted it

    /// The lane as another thread recorded in it: only the identity of the records, no counts.
    [[nodiscard]] lane_info as_guest(const owner_record& who,
                                     const std::vector<process_info>& processes) const {
        lane_info guest = *this;
        guest.thread = who.thread;
        guest.depth = who.depth;
        guest.written = guest.drained = guest.began = guest.ended = guest.looked = 0;
        guest.newest = guest.claimed = no_position;
        guest.lost = {};
        guest.row = 0;
        guest.adopted = 0;
        // For a lane whose entry is gone; the entry of its process may belong to another by now.
        if (!process && who.process < processes.size() && processes[who.process].pid != 0 &&
            processes[who.process].uses <= 1) {
            guest.process = who.process;
            guest.root = processes[who.process].root;
            guest.pid = processes[who.process].pid;
        }
        if (who.named) {
            const auto* const text = reinterpret_cast<const char*>(who.name);
            guest.name.assign(text, std::find(text, text + sizeof who.name, '\0'));
        }
        return guest;
    }

    /// Takes over what entry `i` of the table says; `note` as above. The newest sub-buffer is taken
    /// from the first read and the count of records from the second, so that the count includes all
    /// records before that sub-buffer. `claimed` is from the second, too, where it follows
    /// the count.
    template <class Note>
    void update(const read_twice<layout::lane_entry>& table, std::size_t i,
                const std::vector<process_info>& processes, const Note& note) {
        const auto all = table.first();
        const layout::lane_entry& from = all[i];
        const auto again = table.again();
        const layout::lane_entry& later = again[i];
        // relaxed: a copy
        const auto get = [](const auto& shared) { return shared.load(relaxed); };
        row = i;
        listed = true;
        offset = all.offset(from);
        state = static_cast<layout::presence>(get(from.state));
        if (state > layout::presence::preparing) {
            note(all.offset(from.state), "a lane in no known state");
        }
        if (const std::uint32_t slot = get(from.process); slot < processes.size()) {
            process = slot;
            root = processes[slot].root;
            pid = processes[slot].pid;
        } else {
            note(all.offset(from.process), "a lane of no process");
            process.reset();
            root.reset();
        }
        thread = get(from.thread);
        depth = get(from.depth);
        newest = get(from.newest);
        began = get(from.began);
        ended = get(from.ended);
        adopted = get(from.adopted);
        cpu.reset();
        if (get(from.cpu) != 0) cpu = get(from.cpu) - 1;
        const auto doubt_in = [&](const auto& list) {
            return [&note, &list, this](const auto& count, std::string_view which) {
                note(list.offset(count), not_plausible("lane " + std::to_string(number), which));
            };
        };
        written = believed(later.written, "written", doubt_in(again));
        claimed = get(later.newest);
        // A lane whose entry is being given to another does not say what sessions consumed.
        if (get(later.drained) != layout::taken_from_sessions) drained = get(later.drained);
        lost = losses_of(from.refused, from.too_long, from.nested, from.abandoned, doubt_in(all));
        name = text_of(from.name);
    }
};

/// The ring's state, as far as a reader needs it.
struct ring_info {
    position cursor = no_position;  ///< sub-buffer position claimed last
    std::uint64_t capacity = 0;     ///< number of sub-buffers
    std::uint64_t refused_without_lane = 0;
    std::uint64_t types_without_room = 0;
    bool ended_elsewhere = false;  ///< there are ends that say where their spans began
    bool several =
        false;  ///< there are quotas: several rings, whose positions have no common order
    std::uint64_t folded_lanes = 0;    ///< lanes whose entries were given to others
    std::uint64_t folded_written = 0;  ///< records that these lanes wrote
    /// Those of them that no draining session consumed or reported as lost: readers have to find
    /// them, or to report them as lost. At most `folded_written`.
    std::uint64_t folded_undrained = 0;
    loss_counts folded_lost{};  ///< records that they lost, by their own count
    /// The most simultaneous writers, as counted when a record was lost because lanes or
    /// sub-buffers were too few, of the first ring and of each quota; 0: that never happened.
    std::array<std::uint32_t, layout::max_rings> writers{};

    /// `note(count, what)` is called for each count of `copy` that is not plausible.
    template <class Note>
    [[nodiscard]] static ring_info from(const layout::ring_state& copy, const Note& note) {
        // relaxed: a copy
        const auto get = [](const auto& shared) { return shared.load(relaxed); };
        ring_info ring;
        ring.cursor = get(copy.cursor);
        ring.capacity = get(copy.capacity);
        const auto doubt = [&note](const char* whose) {
            return [&note, whose](const auto& count, std::string_view which) {
                note(count, not_plausible(whose, which));
            };
        };
        const auto folded = doubt("lanes that were given to others");
        ring.refused_without_lane =
            believed(copy.refused_without_lane, to_string(loss_cause::refused),
                     doubt("records without a lane"));
        ring.types_without_room = get(copy.types_without_room);
        ring.folded_lanes = get(copy.folded_lanes);
        ring.folded_written = believed(copy.folded_written, "written", folded);
        // Negative for the moment between a session's count and the lane's.
        const std::uint64_t undrained = get(copy.undrained);
        const bool negative = static_cast<std::int64_t>(undrained) < 0;
        ring.folded_undrained = negative ? 0 : (std::min)(undrained, ring.folded_written);
        ring.folded_lost = losses_of(copy.folded_refused, copy.folded_too_long, copy.folded_nested,
                                     copy.folded_abandoned, folded);
        ring.ended_elsewhere = get(copy.ended_elsewhere) != 0;
        ring.several = get(copy.quotas[0].sub_buffers) != 0;
        ring.writers[0] = get(copy.writers);
        for (std::size_t i = 1; i < ring.writers.size(); ++i)
            ring.writers[i] = get(copy.quotas[i - 1].writers);
        return ring;
    }
    /// The recorder_options that give each of those writers a lane and a sub-buffer, as a sentence;
    /// empty if no record was lost for lack of them.
    [[nodiscard]] std::string advice(const layout::plan& plan) const {
        std::string text;
        for (std::size_t i = 0; i < writers.size(); ++i) {
            if (writers[i] == 0) continue;
            const auto enough = layout::room_for(writers[i], plan.sub_buffer_bytes, i != 0);
            text += text.empty() ? "for " : "; for ";
            text += std::to_string(writers[i]) + " writers at once";
            if (i != 0) {
                text += ", set recorder_options::quotas[" + std::to_string(i - 1) +
                        "] to at least " + std::to_string(enough.bytes);
                continue;
            }
            // Lanes follow from the size, unless the options say otherwise.
            const std::uint64_t now = plan.sub_buffer_limit;
            const std::uint64_t then = (std::max)(now, enough.bytes / plan.sub_buffer_bytes);
            const bool by_size = plan.lane_count == layout::default_lanes(now) &&
                                 layout::default_lanes(then) >= enough.lanes;
            text += ", set recorder_options::";
            if (by_size || then > now) text += "size to at least " + std::to_string(enough.bytes);
            if (!by_size) {
                if (then > now) text += " and ";
                text += "lanes to at least " + std::to_string(enough.lanes);
            }
        }
        return text;
    }
};

/// The clock snapshots that are not being replaced, in the order of the file. Throws bad_alloc.
[[nodiscard]] inline std::vector<trace_clock_snapshot> read_clocks(const source& from,
                                                                   const layout::plan& plan,
                                                                   const ring_info& ring) {
    read_twice<layout::clock_entry> table;
    table.read(from, plan.clocks, plan.clock_count);
    std::vector<trace_clock_snapshot> out;
    for (std::size_t i = 0; i < table.first().size(); ++i) {
        trace_clock_snapshot one{table.first()[i].values()};
        // relaxed: a copy
        if (one.number == 0 || one.number != table.again()[i].sequence.load(relaxed)) continue;
        if (ring.several) one.cursor = ~position{0};
        out.push_back(one);
    }
    return out;
}

}  // namespace trace_ring::inline v1::reduce
