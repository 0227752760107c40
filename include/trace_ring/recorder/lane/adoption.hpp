// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Half-empty sub-buffers are handed on from thread to thread. A program whose threads live for a
/// few records each would otherwise fill its ring with sub-buffers of a few records each. So a
/// thread that ends closes its sub-buffer, releases its lane and offers it. The next thread to
/// record adopts the lane and writes into the same sub-buffer, after a record that names the new
/// writer (owner_record).
///
/// Why a thread adopts the lane, instead of beginning one in the same sub-buffer: all rules for
/// lanes keep holding. A lane is a chain of sub-buffers, each of one lane; its records are counted
/// through; time does not go back, since the second thread began after the first had ended. And a
/// thousand short threads need one entry in the lane table, not a thousand.
///
/// Why the sub-buffer is closed, instead of left open for the next thread: nothing is held
/// meanwhile. If no thread comes, it is overwritten in its turn; a session can read it; a program
/// that dies leaves nothing behind. One comparison tells that it is unchanged: its state includes
/// its position.
/// @code
///   thread that ends                           next thread to record
///   close: written, (p, closed)
///   entry: departed          --release->       entry: departed -> live      --swap, acquire->
///   offer: entry, number                       (p, closed) -> (p, active)   --swap, acquire->
///                                              owner record, records ...
/// @endcode
/// Offers are advice, in the memory of one process: a thread that takes one checks that the entry
/// is still that lane's and that the sub-buffer is unchanged, and otherwise begins a lane of its
/// own.
///
/// A thread that has filled the sub-buffer it adopted continues in a lane of its own, so that the
/// losses and totals of a long life stand under its name.
///
/// Where few sub-buffers or lanes are left, a thread does the same after each record, though it
/// does not end: its lane is lent (`tenure::lent`). So any number of threads can record, each with
/// the lane that another has just released. The thread that has run its destructors does so, too,
/// because nothing tells when it is gone.

#include <cstddef>
#include <cstdint>

#include <trace_ring/recorder/lane/lane_sub_buffers.hpp>

namespace trace_ring::inline v1::impl {

/// Offers a lane that was just released. If there is no place, an older offer is withdrawn.
inline void core::offer(const layout::lane_entry& entry, std::uint32_t number) noexcept {
    const auto slot = static_cast<std::uint64_t>(&entry - &memory_.lane(0));
    const std::uint64_t word = std::uint64_t{number} << 32 | slot;
    // relaxed, to the end: advice; what it speaks of is looked at again
    auto& places = offers_[shares_.number(entry.ring.load(relaxed))];
    for (auto& place : places) {
        std::uint64_t none = 0;
        if (place.load(relaxed) == 0 && place.compare_exchange_strong(none, word, relaxed)) return;
    }
    places[number % offer_count].store(word, relaxed);
}

/// Ends a record while much of the ring is held (`crowded`): the lane is released at once.
inline void core::release_at_once(lane_state& lane) noexcept {
    // relaxed, to the end: own lane, which handlers still see as open; and a counter
    const layout::lane_entry& entry = *lane.entry.load(relaxed);
    const std::uint32_t number = entry.number.load(relaxed);
    const bool worth_it = has_room(*lane.sub.load(relaxed));
    const std::uint64_t now = memory_.now();
    if (lane.sub.load(relaxed) != &nowhere) {
        const share& of = shares_[entry.ring.load(relaxed)];
        close_lane(lane, of, now);
        holdings::drop(of);
    }
    release_lane(lane, now);
    if (worth_it) offer(entry, number);
    mark_of(lane).value.store(0, relaxed);
}

/// Adopts a lane that has room for a record of `bytes`; false if there is none.
inline bool core::adopt(lane_state& lane, std::uint32_t ring, std::uint32_t bytes) noexcept {
    for (auto& place : offers_[shares_.number(ring)]) {
        std::uint64_t word = place.load(relaxed);  // relaxed: advice
        if (word == 0 || !place.compare_exchange_strong(word, 0, relaxed)) continue;
        layout::lane_entry& entry = memory_.lane(static_cast<std::uint32_t>(word));
        const auto number = static_cast<std::uint32_t>(word >> 32);
        switch (try_adopt(lane, entry, number, bytes)) {
            case offer_is::taken:
                // No owner record if this thread was the last writer. relaxed: own lane and thread
                if (entry.writer.load(relaxed) !=
                    layout::writer_word(node_around(lane).thread.load(relaxed), depth_of(lane))) {
                    write_owner(lane, memory_.now());
                }
                return true;
            case offer_is::good: {  // for another thread
                std::uint64_t none = 0;
                static_cast<void>(place.compare_exchange_strong(none, word, relaxed));
                break;
            }
            default:  // gone
                break;
        }
    }
    return false;
}

inline core::offer_is core::try_adopt(lane_state& lane, layout::lane_entry& entry,
                                      std::uint32_t number, std::uint32_t bytes) noexcept {
    constexpr auto departed = static_cast<std::uint32_t>(layout::presence::departed);
    constexpr auto live = static_cast<std::uint32_t>(layout::presence::live);
    const auto is_it = [&] {
        // relaxed, both: called before the entry is taken, and again after
        return entry.number.load(relaxed) == number &&
               entry.process.load(relaxed) == process_of(lane);
    };
    if (!is_it()) return offer_is::gone;
    // relaxed: looked at again by its state
    const position at = entry.newest.load(relaxed);
    const share& of = shares_[entry.ring.load(relaxed)];  // relaxed: as above
    if (at == no_position || !of.has(of.slot_at(at))) return offer_is::gone;
    // Without times, the order of a thread's records is that of its sub-buffers.
    if (memory_.clock() == 0 && at < lane.where.load(relaxed)) return offer_is::good;
    sub_buffer_header& sub = memory_.sub_buffer(of.slot_at(at));
    // What is recorded for others may have been before the lane's last record.
    const bool is_other = node_around(lane).other_process.load(relaxed) != 0;
    if (is_other && memory_.now() < sub.end_time.load(relaxed)) return offer_is::good;
    // relaxed, to the swaps: they decide
    std::uint64_t closed = state_word(at, sub_buffer_state::closed);
    // relaxed, both: a look before the swaps
    if (sub.state.load(relaxed) != closed) return offer_is::gone;
    // relaxed: as above
    const std::uint32_t end = commit_word::offset(sub.commit.load(relaxed));
    if (!can_be_adopted(memory_.plan().sub_buffer_bytes, end, bytes)) return offer_is::good;
    std::uint32_t state = departed;
    // order: lane.go_on:A pairs with lane.leave:A
    if (!entry.state.compare_exchange_strong(state, live, acquire)) return offer_is::gone;
    // Counted only now: holdings::recount knows how many claims can be under way by the live lanes.
    bool crowded = false;
    const bool is_its = is_it();
    if (!is_its || !count_held(of, crowded)) {
        // order: lane.leave:B pairs with lane.take:A, lane.take:B, table.read:B, snapshot.copy:B,
        // lane.take:C, lane.take:D
        entry.state.store(departed, release);
        return is_its ? offer_is::good : offer_is::gone;
    }
    // From here on, `recover` knows what the lane may hold if the thread jumps away.
    // relaxed, to the end: own lane, its sub-buffer, and counters
    const bool had_one = mark_of(lane).valid.load(relaxed) != 0;
    layout::lane_entry* const before = lane.entry.load(relaxed);
    const position where = lane.where.load(relaxed);
    lane.sub.store(&nowhere, relaxed);
    lane.entry.store(&entry, relaxed);
    lane.where.store(at, relaxed);
    signal_fence(seq_cst);
    mark_of(lane).valid.store(1, relaxed);
    signal_fence(seq_cst);
    of.adopted->fetch_add(1, relaxed);  // before the swap, which publishes it
    // order: go_on:A pairs with writer.end:A, held.look:A
    if (!sub.state.compare_exchange_strong(closed, state_word(at, sub_buffer_state::active),
                                           acq_rel)) {
        holdings::drop(of);
        mark_of(lane).valid.store(had_one ? 1 : 0, relaxed);
        lane.entry.store(before, relaxed);
        lane.where.store(where, relaxed);
        signal_fence(seq_cst);
        // order: lane.leave:C pairs with lane.take:A, lane.take:B, table.read:B, snapshot.copy:B,
        // lane.take:C, lane.take:D
        entry.state.store(departed, release);
        return offer_is::gone;
    }
    if (had_one) {
        before->ended.store(memory_.now(), relaxed);
        // order: lane.leave:D pairs with lane.take:A, lane.take:B, table.read:B, snapshot.copy:B,
        // lane.take:C, lane.take:D
        before->state.store(departed, release);
    }
    layout::index_entry& index = memory_.index(memory_.slot_number(sub));
    lane.index.store(&index, relaxed);
    lane.sub.store(&sub, relaxed);
    crowded = crowded || few_lanes_.load(relaxed) != 0 || is_ending(lane);
    mark_of(lane).hold_as(crowded ? tenure::lent : tenure::adopted);
    const auto slot = static_cast<std::uint32_t>(&entry - &memory_.lane(0));
    lane.totals.store(memory_.totals(slot), relaxed);
    lane.totals_count.store(memory_.plan().totals_per_lane, relaxed);
    lane.refused.store(0, relaxed);
    lane.high.store(entry.high.load(relaxed), relaxed);
    sub.end_time.store(0, relaxed);
    index.last_time.store(0, relaxed);
    entry.ended.store(0, relaxed);
    return offer_is::taken;
}

/// Writes an owner record, for which there is room: the lane's records are now this thread's.
inline void core::write_owner(lane_state& lane, std::uint64_t t) noexcept {
    // relaxed, to the end: own lane and thread
    layout::lane_entry& entry = *lane.entry.load(relaxed);
    const thread_node& node = node_around(lane);
    const std::uint32_t depth = depth_of(lane);
    const std::uint32_t thread = node.thread.load(relaxed);
    owner_record owner{thread, static_cast<std::uint16_t>(process_of(lane)),
                       static_cast<std::uint16_t>(depth)};
    for (std::size_t i = 0; i < 2; ++i) {
        owner.name[i] = node.name[i].load(relaxed);
        owner.named = owner.named || owner.name[i] != entry.name[i].load(relaxed);
    }
    sub_buffer_header* const sub = lane.sub.load(relaxed);
    const std::uint64_t words[] = {owner.word(), owner.name[0], owner.name[1]};
    lane_writer::note(*sub, t, words, owner.named ? 3 : 1);
    lane.high.store(static_cast<std::uint32_t>(t >> 32), relaxed);
    entry.writer.store(layout::writer_word(thread, depth), relaxed);
    entry.handed_on.store(entry.handed_on.load(relaxed) + 1, relaxed);
}

}  // namespace trace_ring::inline v1::impl
