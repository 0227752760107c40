// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Who wrote a trace: processes, lanes, the ring that they shared, and the clock readings that they
/// took, copied from the file.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <trace_ring/atomic.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/reduce/source.hpp>
#include <trace_ring/reduce/tables/timeline.hpp>

namespace trace_ring::inline v1::reduce {

/// One row of a table that was copied from the file.
struct table_row {
    std::span<const std::uint64_t> words;  ///< the whole table
    std::uint64_t table = 0;               ///< where it lies in the file
    std::size_t begin = 0;                 ///< where the row begins in the table, in bytes

    template <class T>
    [[nodiscard]] T get(std::size_t field) const noexcept {
        T value;
        std::memcpy(&value, bytes() + field, sizeof(T));
        return value;
    }
    /// Reads pairs: where a field lies in the row, and the value that becomes it.
    template <class T, class... More>
    void read(std::size_t field, T& value, More&&... more) const noexcept {
        value = get<T>(field);
        if constexpr (sizeof...(more) != 0) read(more...);
    }
    /// Adds the losses that a writer counts: where each count lies in the row.
    void read_losses(loss_counts& into, std::size_t refused, std::size_t too_long,
                     std::size_t nested, std::size_t abandoned) const noexcept {
        into.add(loss_cause::refused, get<std::uint64_t>(refused));
        into.add(loss_cause::too_long, get<std::uint64_t>(too_long));
        into.add(loss_cause::nested, get<std::uint64_t>(nested));
        into.add(loss_cause::abandoned, get<std::uint64_t>(abandoned));
    }
    /// A text of up to `most` bytes, which ends before the first zero.
    [[nodiscard]] std::string text(std::size_t field, std::size_t most) const {
        const auto* from = reinterpret_cast<const char*>(bytes() + field);
        return {from, std::find(from, from + most, '\0')};
    }
    /// Where a field lies in the file.
    [[nodiscard]] std::uint64_t offset(std::size_t field) const noexcept {
        return table + begin + field;
    }

private:
    [[nodiscard]] const std::byte* bytes() const noexcept {
        return reinterpret_cast<const std::byte*>(words.data()) + begin;
    }
};

/// A part of a table, copied twice. An entry that was being replaced meanwhile would be a mixture:
/// its number differs between the copies, and it is read the next time.
struct read_twice {
    std::vector<std::uint64_t> first{};
    std::vector<std::uint64_t> again{};

    /// Words beyond the end of the file are zero. Throws std::bad_alloc.
    void read(const source& from, std::uint64_t offset, std::uint64_t bytes) {
        first.assign(as_size(bytes / 8), 0);
        again.assign(first.size(), 0);
        (void)from.read(offset, first.data(), first.size() * 8);
        // order: lane.look:A pairs with lane.enter:B, lane.newest:A, here.enter:B, here.newest:A
        // order: index.look:A pairs with claim:A, here.index:A
        // order: clocks.look:A pairs with clocks.write:A
        thread_fence(acquire);
        (void)from.read(offset, again.data(), again.size() * 8);
    }
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
    [[nodiscard]] static process_info from(const table_row& row, std::uint32_t slot,
                                           std::uint32_t process_count, const Note& note) {
        using layout::presence;
        using layout::process_entry;
        const auto u32 = [&row](std::size_t field) { return row.get<std::uint32_t>(field); };
        process_info process{};
        process.slot = slot;
        process.root = slot;
        const auto state = u32(offsetof(process_entry, state));
        process.state = static_cast<presence>(state);
        if (process.state == presence::free || process.state == presence::preparing) return process;
        if (state > static_cast<std::uint32_t>(presence::preparing)) {
            note(row.offset(offsetof(process_entry, state)), "a process in no known state");
            process.state = presence::departed;
        }
        row.read(offsetof(process_entry, pid), process.pid, offsetof(process_entry, start),
                 process.start, offsetof(process_entry, word), process.word,
                 offsetof(process_entry, uses), process.uses, offsetof(process_entry, attached),
                 process.attached, offsetof(process_entry, departed), process.departed);
        if (const auto root = u32(offsetof(process_entry, root)); root < process_count) {
            process.root = root;
        } else {
            note(row.offset(offsetof(process_entry, root)), "a process that uses no one's events");
        }
        const auto parent = u32(offsetof(process_entry, parent));
        if (parent > process_count) {
            note(row.offset(offsetof(process_entry, parent)), "a process forked from none");
        } else if (parent != 0) {
            process.parent = parent - 1;
        }
        process.name = row.text(offsetof(process_entry, name), 32);
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
    std::uint64_t ended = 0;      ///< 0 while live
    std::uint64_t offset = 0;     ///< of its entry in the file
    std::size_t row = 0;          ///< of its entry in the table, and of its totals
    std::uint64_t looked = 0;     ///< which look at the tables found it last; see tables::is_gone
    std::uint32_t handed_on = 0;  ///< how often it was handed on to another thread

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
        guest.handed_on = 0;
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

    /// Takes over what the table says; `note` as above. `later` is the same row read again: the
    /// newest sub-buffer is taken from the first read and the count of records from the second, so
    /// that the count includes all records before that sub-buffer. `claimed` is from the second,
    /// too, where it stands behind the count.
    template <class Note>
    void update(const table_row& from, const table_row& later,
                const std::vector<process_info>& processes, const Note& note) {
        using layout::lane_entry;
        const auto u32 = [&from](std::size_t field) { return from.get<std::uint32_t>(field); };
        listed = true;
        offset = from.offset(0);
        const auto presence = u32(offsetof(lane_entry, state));
        if (presence > static_cast<std::uint32_t>(layout::presence::preparing)) {
            note(from.offset(offsetof(lane_entry, state)), "a lane in no known state");
        }
        state = static_cast<layout::presence>(presence);
        if (const auto slot = u32(offsetof(lane_entry, process)); slot < processes.size()) {
            process = slot;
            root = processes[slot].root;
            pid = processes[slot].pid;
        } else {
            note(from.offset(offsetof(lane_entry, process)), "a lane of no process");
            process.reset();
            root.reset();
        }
        from.read(offsetof(lane_entry, thread), thread, offsetof(lane_entry, depth), depth,
                  offsetof(lane_entry, newest), newest, offsetof(lane_entry, began), began,
                  offsetof(lane_entry, ended), ended, offsetof(lane_entry, handed_on), handed_on);
        cpu.reset();
        if (const auto after = u32(offsetof(lane_entry, cpu)); after != 0) cpu = after - 1;
        later.read(offsetof(lane_entry, written), written, offsetof(lane_entry, newest), claimed);
        // A lane whose entry is being given to another does not say what sessions consumed.
        const auto consumed = later.get<std::uint64_t>(offsetof(lane_entry, drained));
        if (consumed != layout::taken_from_sessions) drained = consumed;
        lost = {};
        from.read_losses(lost, offsetof(lane_entry, refused), offsetof(lane_entry, too_long),
                         offsetof(lane_entry, nested), offsetof(lane_entry, abandoned));
        name = from.text(offsetof(lane_entry, name), 16);
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
    /// Those of them that no draining session consumed or was told of as lost: what readers have to
    /// find, or to report as lost. At most `folded_written`.
    std::uint64_t folded_undrained = 0;
    loss_counts folded_lost{};  ///< records that they lost, by their own count
    /// The most writers at once, as counted when a record was lost because lanes or sub-buffers
    /// were too few, of the first ring and of each quota; 0: that never happened.
    std::array<std::uint32_t, layout::max_rings> writers{};

    [[nodiscard]] static ring_info from(const table_row& words) {
        using layout::ring_state;
        ring_info ring;
        words.read(offsetof(ring_state, cursor), ring.cursor, offsetof(ring_state, capacity),
                   ring.capacity, offsetof(ring_state, refused_without_lane),
                   ring.refused_without_lane, offsetof(ring_state, types_without_room),
                   ring.types_without_room, offsetof(ring_state, folded_lanes), ring.folded_lanes,
                   offsetof(ring_state, folded_written), ring.folded_written,
                   offsetof(ring_state, undrained), ring.folded_undrained);
        // Negative for the moment between a session's count and that of the lane.
        const bool negative = static_cast<std::int64_t>(ring.folded_undrained) < 0;
        ring.folded_undrained =
            negative ? 0 : (std::min)(ring.folded_undrained, ring.folded_written);
        words.read_losses(ring.folded_lost, offsetof(ring_state, folded_refused),
                          offsetof(ring_state, folded_too_long),
                          offsetof(ring_state, folded_nested),
                          offsetof(ring_state, folded_abandoned));
        ring.ended_elsewhere = words.get<std::uint32_t>(offsetof(ring_state, ended_elsewhere)) != 0;
        constexpr std::size_t quota =
            offsetof(ring_state, quotas) + offsetof(ring_state::quota, sub_buffers);
        ring.several = words.get<std::uint64_t>(quota) != 0;
        ring.writers[0] = words.get<std::uint32_t>(offsetof(ring_state, writers));
        for (std::size_t i = 1; i < layout::max_rings; ++i) {
            ring.writers[i] = words.get<std::uint32_t>(offsetof(ring_state, quotas) +
                                                       (i - 1) * sizeof(ring_state::quota) +
                                                       offsetof(ring_state::quota, writers));
        }
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

/// The readings that are not being replaced, in the order of the file. Throws std::bad_alloc.
[[nodiscard]] inline std::vector<clock_triple> read_clock_triples(const source& from,
                                                                  const layout::plan& plan,
                                                                  const ring_info& ring) {
    using layout::clock_entry;
    read_twice words;
    words.read(from, plan.clocks, plan.clock_count * sizeof(clock_entry));
    std::vector<clock_triple> out;
    for (std::uint32_t i = 0; i < plan.clock_count; ++i) {
        const table_row row{words.first, plan.clocks, i * sizeof(clock_entry)};
        const table_row later{words.again, plan.clocks, i * sizeof(clock_entry)};
        clock_triple one;
        row.read(offsetof(clock_entry, sequence), one.number, offsetof(clock_entry, ticks),
                 one.ticks, offsetof(clock_entry, monotonic), one.monotonic,
                 offsetof(clock_entry, realtime), one.realtime, offsetof(clock_entry, width),
                 one.width, offsetof(clock_entry, process), one.process,
                 offsetof(clock_entry, lanes), one.lanes, offsetof(clock_entry, cursor), one.cursor,
                 offsetof(clock_entry, since), one.since);
        if (one.number == 0 ||
            one.number != later.get<std::uint64_t>(offsetof(clock_entry, sequence))) {
            continue;
        }
        if (ring.several) one.cursor = ~position{0};
        out.push_back(one);
    }
    return out;
}

}  // namespace trace_ring::inline v1::reduce
