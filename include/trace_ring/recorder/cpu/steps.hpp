// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The steps that move a processor's lane from one sub-buffer to the next (drawn in lanes.hpp), and
/// the beginning and end of such a lane.

#include <sys/prctl.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <trace_ring/recorder/cpu/lanes.hpp>

namespace trace_ring::inline v1::impl {

/// Finds out what announces this thread's records, when it is new or in a child of a fork.
inline void cpu_lanes::know_thread() noexcept {
    char name[16] = {};
    ::prctl(PR_GET_NAME, name);
    std::uint64_t words[2];
    std::memcpy(words, name, sizeof words);
    own_name[0] = words[0];
    own_name[1] = words[1];
    signal_fence(seq_cst);  // a handler that sees the number sees the name
    own_thread = kernel_thread();
}

/// Draws the next position for this lane, unless another thread was faster.
inline cpu_lanes::next_step cpu_lanes::draw(std::uint32_t cpu, cpu_words& lane,
                                            std::uint64_t current, std::uint64_t& waited) noexcept {
    const ring_span& of = share_of(lane);
    // relaxed, both: guards
    const std::uint64_t before = lane.next.load(relaxed);
    const position before_at = lane.next_position.load(relaxed);
    if (before != 0 && before != current) return next_step::again;
    // relaxed, to the end: counters, guards, and states that the swap decides on
    bool crowded = false;  // makes no difference: threads share these sub-buffers
    if (!threads_->reclaimer_.wait_to_hold(of, crowded, waited)) {
        threads_->reclaimer_.note_writers(*of.writers, table_.cpus);
        return refuse(lane);
    }
    for (std::uint64_t tried = 2 * of.size() + 16; tried != 0; --tried) {
        const sub_buffer_place drawn = threads_->claimer_.next_slot(of, waited);
        const position at = drawn.pos;
        if (at == no_position) break;
        sub_buffer_header& sub = threads_->memory_.sub_buffer(drawn.slot);
        const auto found = stamped::from(sub.state.load(relaxed));
        if (!may_be_taken(found, at)) continue;
        if (found.state == static_cast<unsigned>(sub_buffer_state::closed) &&
            threads_->claimer_.is_kept(of, threads_->memory_.index(drawn.slot), drawn)) {
            continue;
        }
        auto& entry = *place<layout::lane_entry>(lane.entry.load(relaxed));
        // The position goes into the file first, so that a sub-buffer that a dying claimer leaves
        // in `reset` can be found. A reader that sees it finds the lane's earlier sub-buffers.
        // order: here.newest:A pairs with table.read:B, lane.look:A, snapshot.copy:C
        thread_fence(release);
        // order: here.draw:A pairs with here.next:A, here.next:B, here.next:C
        if (!change(
                cpu,
                {{&lane.current, current}, {&lane.next, before}, {&lane.next_position, before_at}},
                {{&entry.newest, at}, {&lane.next_position, at}, {&lane.next, sub_address(sub)}})) {
            drop_held(lane);  // and the position stays vacant
        }
        return next_step::again;
    }
    drop_held(lane);
    if (!threads_->claimer_.keeps_oldest())
        static_cast<void>(threads_->reclaimer_.reclaim_if_due());  // all of them are held
    return refuse(lane);
}
/// Takes the sub-buffer to come, or makes it the one in use.
inline cpu_lanes::next_step cpu_lanes::go_on(std::uint32_t cpu, cpu_words& lane,
                                             std::uint64_t current, std::uint64_t last,
                                             const pending& coming) noexcept {
    sub_buffer_header& sub = *coming.sub;
    const std::uint64_t reset = state_word(coming.at, sub_buffer_state::reset);
    std::uint64_t state = sub.state.load(relaxed);  // relaxed: the swap decides
    if (state == reset) {
        install(cpu, lane, current, last, coming);
        return next_step::again;
    }
    pending still;
    if (!find_pending(lane, still) || still.sub != &sub || still.at != coming.at)
        return next_step::again;
    if (!may_be_taken(stamped::from(state), coming.at)) {  // another was faster
        if (change(cpu,
                   {{&lane.current, current},
                    {&lane.next, sub_address(sub)},
                    {&lane.next_position, coming.at},
                    {&sub.state, state}},
                   {{&lane.next, 0}})) {
            drop_held(lane);
        }
        return next_step::again;
    }
    // Before the swap: afterwards another thread may write there.
    const std::uint32_t commit = sub.commit.load(relaxed);  // relaxed: the swap checks it
    // order: here.claim:B pairs with writer.end:A, reclaim.close:A, claim.next:A, reclaim.find:A
    if (!sub.state.compare_exchange_strong(state, reset, acq_rel)) return next_step::again;
    // order: here.claim:A pairs with read:C, batch.read:B, file.read:C, chain.look:B
    thread_fence(release);
    if (stamped::from(state).state == static_cast<unsigned>(sub_buffer_state::closed)) {
        layout::ring_state& ring = threads_->memory_.ring();
        // relaxed: a counter
        ring.overwritten_records.fetch_add(commit_word::records(commit), relaxed);
    }
    // A reader may have held it for a moment, so that the lane gave it up meanwhile.
    if (lane.next.load(relaxed) != sub_address(sub)) {  // relaxed: after the swap
        std::uint64_t taken = reset;
        // order: here.give_up:A pairs with read:A, file.read:A, chain.look:A, claim:C
        static_cast<void>(sub.state.compare_exchange_strong(
            taken, state_word(coming.at, sub_buffer_state::free), release));
    }
    return next_step::again;
}

inline void cpu_lanes::install(std::uint32_t cpu, cpu_words& lane, std::uint64_t current,
                               std::uint64_t last, const pending& coming) noexcept {
    // relaxed, to the end: guards, or words that only this lane writes
    auto& entry = *place<layout::lane_entry>(lane.entry.load(relaxed));
    sub_buffer_header& sub = *coming.sub;
    layout::index_entry& index = threads_->memory_.index(threads_->memory_.slot_number(sub));
    const std::uint64_t number = entry.number.load(relaxed);
    const std::uint64_t told = lane.told.load(relaxed);
    const std::uint64_t refused = entry.refused.load(relaxed);
    std::uint64_t commit = 0;
    std::uint64_t before = entry.written.load(relaxed);
    position previous = no_position;
    auto* old_commit = &lane.current;  // a guard that always holds: there is no old one
    if (current != 0) {
        sub_buffer_header& old = *place<sub_buffer_header>(current);
        old_commit = &commit_of(old);
        previous = stamped::from(old.state.load(relaxed)).pos;
        commit = old_commit->load(relaxed);
        before = records_to(old, commit);
    }
    // Read after the guards: what was committed before them is not later than this.
    const std::uint64_t now = threads_->memory_.now();
    const note said(now, named_owner_record_bytes, owner());
    const auto first = [&](std::uint32_t i) -> rseq::word_value {
        return {&word_at<std::uint64_t>(&sub, sizeof(sub_buffer_header) + i * 8), said.words[i]};
    };
    const std::uint64_t empty = commit_word::empty + said.bytes;
    const std::uint64_t reset = state_word(coming.at, sub_buffer_state::reset);
    const rseq::word_value list[] = {
        {&lane.current, current},
        {old_commit, current != 0 ? commit : current},
        {&lane.last, last},
        {&lane.next, sub_address(sub)},
        {&lane.next_position, coming.at},
        {&sub.state, reset},
        {&lane.told, told},
        {&index.pos, 0},
        {&index.first_time, now},
        {&index.last_time, 0},
        {&word_at<std::uint64_t>(&index, offsetof(layout::index_entry, lane)),
         number | (coming.at & half) << 32},
        {&index.pos, coming.at},
        {&word_at<std::uint64_t>(&sub, 0), threads_->sub_buffers_.magic() | number << 32},
        {&sub.first_position, before},
        {&sub.base_time, now},
        {&sub.previous, previous},
        {&sub.end_time, 0},
        {&commit_of(sub), empty | (refused - told) << 32},
        {&word_at<std::uint64_t>(&sub, offsetof(sub_buffer_header, too_long)), 0},
        first(0),
        first(1),
        first(2),
        first(3),
        first(4),
        {&lane.last, current},
        {&lane.announced, 0},  // closed to all threads
        {&lane.current, sub_address(sub)},
        {&lane.told, refused},
        {&sub.state, state_word(coming.at, sub_buffer_state::active)},
        {&lane.announced, cpu_words::announce(own_thread, now)},
    };
    constexpr std::size_t guards = 7;
    // order: here.ready:A pairs with read:A, file.read:A, chain.look:A, claim.next:A,
    // reclaim.find:A, here.next:C, reclaim.find:C, lane.again:A
    // order: here.index:A pairs with index.look:A, table.read:C, lane.again:A
    if (rseq::store_if(table_.area, cpu, list, list + guards,
                       list + sizeof list / sizeof *list - 1))
        threads_->do_due_work(now);
}

/// Closes the sub-buffer that was in use before.
inline cpu_lanes::next_step cpu_lanes::close(std::uint32_t cpu, cpu_words& lane,
                                             std::uint64_t last) noexcept {
    // relaxed, to the end: guards, or words that only this lane writes
    sub_buffer_header& sub = *place<sub_buffer_header>(last);
    const std::uint64_t state = sub.state.load(relaxed);
    const auto seen = stamped::from(state);
    auto& entry = *place<layout::lane_entry>(lane.entry.load(relaxed));
    const bool ours = seen.state == static_cast<unsigned>(sub_buffer_state::active) &&
                      sub.lane.load(relaxed) == entry.number.load(relaxed);
    if (!ours) {
        static_cast<void>(
            change(cpu, {{&lane.last, last}, {&sub.state, state}}, {{&lane.last, 0}}));
        return next_step::again;
    }
    layout::index_entry& index = threads_->memory_.index(threads_->memory_.slot_number(sub));
    const std::uint64_t commit = commit_of(sub).load(relaxed);
    const std::uint64_t closed_at = share_of(lane).cursor->load(relaxed);  // as close_lane
    const std::uint64_t now = threads_->memory_.now();
    // order: here.written:A pairs with table.read:B, snapshot.copy:C
    // order: here.close:A pairs with read:A, file.read:A, batch.read:A, chain.look:A, claim:C,
    // claim.next:A
    if (change(cpu, {{&lane.last, last}, {&sub.state, state}, {&commit_of(sub), commit}},
               {{&entry.written, records_to(sub, commit)},
                {&sub.end_time, now},
                {&word_at<std::uint64_t>(&index, offsetof(layout::index_entry, lane)),
                 entry.number.load(relaxed) | closed_at << 32},
                {&index.last_time, now},
                {&sub.state, state_word(seen.pos, sub_buffer_state::closed)}})) {
        drop_held(lane);
    }
    return next_step::again;
}

/// Makes a lane of this process for a processor that it has not written on yet.
inline cpu_lanes::next_step cpu_lanes::make_lane(std::uint32_t cpu, cpu_words& lane,
                                                 std::uint64_t& waited) noexcept {
    know_thread();  // this may be a child of a fork
    layout::ring_state& ring = threads_->memory_.ring();
    std::uint32_t slot = 0;
    bool few_left = false;  // makes no difference, as in `draw`
    layout::lane_entry* const entry = threads_->reclaimer_.claim_entry(slot, few_left);
    if (entry == nullptr) {
        if (threads_->claimer_.wait_for_lane(waited, false)) return next_step::again;
        threads_->reclaimer_.note_writers(ring.writers, table_.cpus);
        ring.refused_without_lane.fetch_add(1, relaxed);  // relaxed: a counter
        return next_step::lost;
    }
    char name[16] = {'c', 'p', 'u', ' '};
    std::size_t digits = 4;
    for (std::uint32_t left = cpu; digits == 4 || left != 0; left /= 10) ++digits;
    std::uint32_t left = cpu;
    for (std::size_t at = digits; at-- > 4; left /= 10)
        name[at] = static_cast<char>('0' + left % 10);
    // relaxed, to the end: published by the state, but for the number
    entry->number.store(threads_->memory_.new_lane_number(), relaxed);
    // A thread that sees any word of the new lane and looks again sees its number.
    // order: here.enter:B pairs with lane.look:A, snapshot.copy:C, drain.advance:A, drain.find:A
    thread_fence(release);
    entry->process.store(threads_->process(), relaxed);
    entry->thread.store(0, relaxed);
    entry->cpu.store(cpu + 1, relaxed);
    entry->writer.store(0, relaxed);
    entry->ring.store(threads_->rings_.number(ring_number_of(lane)), relaxed);
    entry->handed_on.store(1, relaxed);  // its records say which thread wrote them
    layout::begin_counts(*entry);
    entry->depth.store(0, relaxed);
    entry->began.store(threads_->memory_.now(), relaxed);
    store_text(entry->name, {name, digits});
    // order: here.enter:A pairs with table.read:B, snapshot.copy:C, lane.find:A
    entry->state.store(static_cast<std::uint32_t>(layout::presence::live), release);
    if (!change(cpu, {{&lane.entry, 0}},
                {{&lane.limit, limit()},
                 {&lane.totals, address(threads_->memory_.totals(slot))},
                 {&lane.told, 0},
                 {&lane.entry, address(entry)}})) {
        // order: here.leave:B pairs with lane.claim:A, lane.claim:B, table.read:B, snapshot.copy:C,
        // lane.claim:C, lane.claim:D
        entry->state.store(static_cast<std::uint32_t>(layout::presence::departed), release);
    }
    return next_step::again;
}

/// Closes the lane's sub-buffers, when no thread records any more.
inline void cpu_lanes::leave(cpu_words& lane) noexcept {
    // relaxed, to the end: no other thread uses the lane
    const std::uint64_t where = lane.entry.load(relaxed);
    if (where == 0) return;
    auto& entry = *place<layout::lane_entry>(where);
    const std::uint64_t current = lane.current.load(relaxed);
    const std::uint64_t last = lane.last.load(relaxed);
    const auto end = [&](std::uint64_t at) {
        sub_buffer_header& sub = *place<sub_buffer_header>(at);
        const auto seen = stamped::from(sub.state.load(relaxed));
        if (seen.state != static_cast<unsigned>(sub_buffer_state::active) ||
            sub.lane.load(relaxed) != entry.number.load(relaxed)) {
            return;
        }
        layout::index_entry& index = threads_->memory_.index(threads_->memory_.slot_number(sub));
        const std::uint64_t commit = commit_of(sub).load(relaxed);
        const std::uint64_t now = threads_->memory_.now();
        // order: here.written:B pairs with table.read:B, snapshot.copy:C
        entry.written.store(records_to(sub, commit), release);
        sub.end_time.store(now, relaxed);
        index.closed_at.store(static_cast<std::uint32_t>(share_of(lane).cursor->load(relaxed)),
                              relaxed);
        index.last_time.store(now, relaxed);
        // order: here.close:B pairs with read:A, file.read:A, batch.read:A, chain.look:A, claim:C,
        // claim.next:A
        sub.state.store(state_word(seen.pos, sub_buffer_state::closed), release);
        drop_held(lane);
    };
    if (last != 0) end(last);
    if (current != 0 && current != last) end(current);
    pending coming;
    if (find_pending(lane, coming)) {
        std::uint64_t taken = state_word(coming.at, sub_buffer_state::reset);
        // order: here.give_up:B pairs with read:A, file.read:A, chain.look:A, claim:C
        static_cast<void>(coming.sub->state.compare_exchange_strong(
            taken, state_word(coming.at, sub_buffer_state::free), release));
        drop_held(lane);
    }
    entry.ended.store(threads_->memory_.now(), relaxed);
    // order: here.leave:A pairs with lane.claim:A, lane.claim:B, table.read:B, snapshot.copy:C,
    // lane.claim:C, lane.claim:D
    entry.state.store(static_cast<std::uint32_t>(layout::presence::departed), release);
}

}  // namespace trace_ring::inline v1::impl
