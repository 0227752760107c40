// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The entries of lanes and processes in the file. A lane is in use from `begin_lane` to
/// `release_lane`; then its entry goes to another lane, after its counts were added to the totals.
/// The sub-buffers and entries of a process that died are reclaimed.
/// @code
///   free --claim_entry--> preparing --begin_lane--> live --release_lane--> departed
///   live --reclaim_dead: its process died--> departed
///   departed --claim_entry--> preparing
///   departed --adopted (adoption.hpp)--> live
/// @endcode

#include <sys/prctl.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include <trace_ring/format/layout.hpp>
#include <trace_ring/format/sub_buffer.hpp>
#include <trace_ring/policy/storage/life_lock.hpp>
#include <trace_ring/recorder/file/begin_lane.hpp>
#include <trace_ring/recorder/file/rings.hpp>
#include <trace_ring/recorder/file/trace_memory.hpp>
#include <trace_ring/recorder/lane/holdings.hpp>
#include <trace_ring/recorder/site/lane.hpp>
#include <trace_ring/recorder/site/registry.hpp>

namespace trace_ring::inline v1::impl {

/// Whether the lane's thread has run its destructors. It must not hold a sub-buffer then, because
/// nothing reports that it is gone.
[[nodiscard]] inline bool is_ending(const lane_state& lane) noexcept {
    return node_around(lane).ending.load(relaxed) != 0;  // relaxed: own node
}

/// Any thread, signal-safe. Linear in the entries of lanes or processes unless stated otherwise.
class lane_book {
public:
    lane_book(const trace_memory& memory, const rings& all) noexcept
        : memory_(memory), rings_(all) {}

    /// This process's entry. Constant time.
    [[nodiscard]] std::uint32_t process() const noexcept {
        return process_.load(relaxed);  // relaxed: set before any lane that leads here
    }
    void be_process(std::uint32_t slot) noexcept {
        process_.store(slot, relaxed);  // relaxed: published by what the caller stores next
    }
    /// The process whose records the lane has. Constant time.
    [[nodiscard]] std::uint32_t process_of(const lane_state& lane) const noexcept {
        const std::uint32_t other = node_around(lane).other_process.load(relaxed);  // own node
        return other != 0 ? other - 1 : process();
    }
    /// A writer is gone that may have been counted as holding a sub-buffer without holding one.
    void count_is_lost() noexcept { lost_count_.store(1, relaxed); }  // relaxed: advice
    /// Whether `count_is_lost` was called since the last call.
    [[nodiscard]] bool was_count_lost() noexcept {
        return lost_count_.exchange(0, relaxed) != 0;  // relaxed: advice
    }

    /// Claims an entry for a new lane: a free one, or else the one that departed first.
    /// Null: all are live, or others were faster eight times. `few_left`: at most an eighth is
    /// neither live nor in preparation, so the caller releases the lane after its record
    /// (adoption.hpp).
    [[nodiscard]] layout::lane_entry* claim_entry(std::uint32_t& slot, bool& few_left) noexcept {
        constexpr auto free = static_cast<std::uint32_t>(layout::presence::free);
        constexpr auto departed = static_cast<std::uint32_t>(layout::presence::departed);
        constexpr auto preparing = static_cast<std::uint32_t>(layout::presence::preparing);
        const std::uint32_t lent = layout::lent_of_lanes(memory_.plan().lane_count);
        const std::uint32_t busy = memory_.plan().lane_count - lent;
        for (int attempt = 0; attempt < 8; ++attempt) {
            std::uint32_t best = memory_.plan().lane_count;
            layout::lane_entry* mine = nullptr;
            std::uint32_t live = 0;
            // By time first: positions of different rings do not compare. By position without a
            // clock.
            std::pair<std::uint64_t, position> oldest{~std::uint64_t{0}, ~position{0}};
            for (std::uint32_t at = 0; at < memory_.plan().lane_count; ++at) {
                layout::lane_entry& entry = memory_.lane(at);
                // order: lane.claim:A pairs with lane.release:A, lane.release:B, lane.release:C,
                // lane.release:D, lane.dead:A, here.release:B, here.release:A, lane.free:A
                std::uint32_t state = entry.state.load(acquire);
                // relaxed, to the end: after the state; and nothing is stored into a departed entry
                if (state == free) {
                    if (mine != nullptr) continue;
                    if (entry.state.compare_exchange_strong(state, preparing, relaxed)) {
                        mine = &entry;
                        slot = at;
                        // As long as few lanes were ever made, the others need not be counted.
                        if (memory_.ring().last_lane.load(relaxed) < busy) break;
                    } else {
                        ++live;
                    }
                } else if (state == departed) {
                    const std::pair age{entry.ended.load(relaxed), entry.newest.load(relaxed)};
                    if (age < oldest) {
                        oldest = age;
                        best = at;
                    }
                } else {
                    ++live;
                }
            }
            few_left = lent != 0 && live >= busy;
            if (mine != nullptr) return mine;
            if (best == memory_.plan().lane_count) return nullptr;
            slot = best;
            layout::lane_entry& entry = memory_.lane(best);
            std::uint32_t state = departed;
            // order: lane.claim:B pairs with lane.release:A, lane.release:B, lane.release:C,
            // lane.release:D, lane.dead:A, here.release:B, here.release:A
            if (entry.state.compare_exchange_strong(state, preparing, acquire)) {
                fold(entry, best);
                return &entry;
            }
        }
        return nullptr;
    }
    /// Begins the lane with the claimed entry number `slot`, without a sub-buffer. Constant time.
    [[gnu::cold]] void begin_lane(lane_state& lane, layout::lane_entry& entry, std::uint32_t slot,
                                  std::uint32_t ring) noexcept {
        const thread_node& node = node_around(lane);
        const bool is_other = node.other_process.load(relaxed) != 0;  // relaxed: own node
        char name[16] = {};
        if (!is_other) ::prctl(PR_GET_NAME, name);
        // relaxed, to the end: the thread's own
        for (std::size_t i = 0; is_other && i < 2; ++i) {
            const std::uint64_t word = node.name[i].load(relaxed);
            std::memcpy(name + i * sizeof word, &word, sizeof word);
        }
        const std::uint32_t thread = is_other ? node.thread.load(relaxed) : kernel_thread();
        impl::begin_lane(entry, {memory_.new_lane_number(),
                                 process_of(lane),
                                 thread,
                                 depth_of(lane),
                                 0,
                                 rings_.number(ring),
                                 memory_.now(),
                                 {name, sizeof name}});
        lane.entry.store(&entry, relaxed);
        lane.totals.store(memory_.totals(slot), relaxed);
        lane.totals_count.store(memory_.plan().totals_per_lane, relaxed);
        lane.sub.store(&nowhere, relaxed);
        lane.where.store(no_position, relaxed);
        lane.refused.store(0, relaxed);
        lane.high.store(0, relaxed);
        memory_.await_tick();
    }
    /// Releases a lane that has no sub-buffer: another lane may get its entry. Constant time.
    void release_lane(lane_state& lane, std::uint64_t now) const noexcept {
        // relaxed, to the end: own lane, or its thread has stopped recording
        layout::lane_entry& entry = *lane.entry.load(relaxed);
        entry.ended.store(now, relaxed);
        entry.high.store(lane.high.load(relaxed), relaxed);
        mark_of(lane).valid.store(0, relaxed);
        signal_fence(seq_cst);
        // order: lane.release:A pairs with lane.claim:A, lane.claim:B, lane.adopt:A, table.read:B,
        // snapshot.copy:B, drain.lane:A, drain.lane:B, lane.claim:C, lane.claim:D
        entry.state.store(static_cast<std::uint32_t>(layout::presence::departed), release);
        signal_fence(seq_cst);
    }
    /// Claims an entry for a process: a free one, or else the one that departed first, or else one
    /// whose process died. `process_count` if all live.
    [[nodiscard, gnu::cold]] std::uint32_t claim_process() noexcept {
        constexpr auto free = static_cast<std::uint32_t>(layout::presence::free);
        constexpr auto departed = static_cast<std::uint32_t>(layout::presence::departed);
        constexpr auto preparing = static_cast<std::uint32_t>(layout::presence::preparing);
        const std::uint32_t count = memory_.plan().process_count;
        for (const bool again : {false, true}) {
            std::uint64_t after = 0;  // entries that departed before this are in use
            for (std::uint32_t tries = 0; tries <= count; ++tries) {
                std::uint32_t best = count;
                std::uint64_t oldest = ~std::uint64_t{0};
                for (std::uint32_t slot = 0; slot < count; ++slot) {
                    auto& entry = memory_.process(slot);
                    // order: process.claim:A pairs with process.leave:A, process.dead:A,
                    // process.return:A, process.free:A
                    std::uint32_t state = entry.state.load(acquire);
                    // relaxed, to the end: after the state
                    if (state == free) {
                        if (entry.state.compare_exchange_strong(state, preparing, relaxed))
                            return slot;
                    } else if (state == departed) {
                        const std::uint64_t left = entry.departed.load(relaxed);
                        const std::uint64_t age = left != 0 ? left : entry.attached.load(relaxed);
                        if (age >= after && age < oldest) {
                            oldest = age;
                            best = slot;
                        }
                    }
                }
                if (best == count) break;
                auto& entry = memory_.process(best);
                std::uint32_t state = departed;
                // order: process.claim:B pairs with process.leave:A, process.dead:A
                if (entry.state.compare_exchange_strong(state, preparing, acquire)) {
                    if (forget(best)) return best;
                    // order: process.return:A pairs with process.look:A, process.look:B,
                    // process.claim:A, table.read:B, snapshot.copy:B
                    entry.state.store(departed, release);
                }
                after = oldest + 1;
            }
            if (!again) reclaim_dead(false);
        }
        return count;
    }
    /// Reclaims the sub-buffer that a lane held, or was about to claim, when its writer died or
    /// jumped away. Returns `closed` if it is closed now, `free` if it was only half prepared,
    /// `active` if there was none. The caller makes sure that the writer is gone.
    sub_buffer_state reclaim(layout::lane_entry& entry) noexcept {
        // relaxed, to the end: the writer is the caller, or is gone, which the kernel says after
        // all that it did; and the last look decides where its sub-buffer is
        const position at = entry.newest.load(relaxed);
        if (at == no_position) return sub_buffer_state::active;
        const std::uint64_t slot = rings_[0].slot_at(at);
        if (slot >= memory_.capacity()) return sub_buffer_state::active;
        sub_buffer_header& sub = memory_.sub_buffer(slot);
        // order: reclaim.find:A pairs with writer.begin:A, claim:C, here.claim:B, here.ready:A
        const std::uint64_t word = sub.state.load(acquire);
        sub_buffer_state now = sub_buffer_state::active;
        if (word == state_word(at, sub_buffer_state::active)) {
            now = sub_buffer_state::closed;
            // order: reclaim.find:B pairs with writer.commit:A, writer.note:A, here.note:A,
            // here.record:A
            const std::uint32_t records = commit_word::records(sub.commit.load(acquire));
            // order: lane.written:B pairs with table.read:B, snapshot.copy:B
            entry.written.store(sub.first_position.load(relaxed) + records, release);
        } else if (word == state_word(at, sub_buffer_state::reset)) {
            now = sub_buffer_state::free;
            sub.commit.store(commit_word::empty, relaxed);
        } else {
            return now;
        }
        // order: reclaim.close:A pairs with read:A, file.read:A, chain.look:A, claim:C,
        // claim.next:A, batch.read:A, drain.look:A, drain.hold:A, here.claim:B
        sub.state.store(state_word(at, now), release);
        holdings::drop(rings_[entry.ring.load(relaxed)]);
        return now;
    }
    /// Reclaims what dead processes hold. A process that has no entry yet takes a lock to say that
    /// it reclaims; if it cannot, it leaves that to others.
    [[gnu::cold]] void reclaim_dead(bool has_entry = true) noexcept {
        const std::uint32_t count = memory_.plan().process_count;
        const std::uint32_t self = has_entry ? process() + 1 : count + 1;
        layout::ring_state& ring = memory_.ring();
        storage::life_lock lock;
        if (!has_entry) {
            memory_.take_lock(lock, layout::entering_lock_offset);
            if (!lock.held()) return;
        }
        const auto may_live = [&](std::uint32_t owner) {
            if (owner <= count) return memory_.may_live(owner - 1);
            // A process that had the lock which is now this process's is gone.
            return !lock.held() && memory_.is_locked(layout::entering_lock_offset);
        };
        std::uint32_t owner = 0;
        // A process that finds the owner at work reads the owner's entry, too.
        // order: reclaim.own:A pairs with reclaim.own:A, reclaim.own:B, reclaim.free:A
        if (!ring.reclaim_owner.compare_exchange_strong(owner, self, acq_rel)) {
            if ((owner == self && has_entry) || owner > count + 1 || may_live(owner)) return;
            // The owner died while it reclaimed.
            // order: reclaim.own:B pairs with reclaim.own:A, reclaim.free:A
            if (!ring.reclaim_owner.compare_exchange_strong(owner, self, acq_rel)) return;
        }
        for (std::uint32_t slot = 0; slot < memory_.plan().process_count; ++slot) {
            auto& who = memory_.process(slot);
            // order: process.find:A pairs with process.enter:B
            if ((has_entry && slot == process()) ||
                who.state.load(acquire) != static_cast<std::uint32_t>(layout::presence::live) ||
                memory_.may_live(slot)) {
                continue;
            }
            for (std::uint32_t i = 0; i < memory_.plan().lane_count; ++i) {
                layout::lane_entry& entry = memory_.lane(i);
                // order: lane.find:A pairs with lane.enter:A
                if (entry.state.load(acquire) ==
                        static_cast<std::uint32_t>(layout::presence::live) &&
                    entry.process.load(relaxed) == slot) {      // relaxed: after the state
                    entry.ended.store(memory_.now(), relaxed);  // relaxed: published by its state
                    if (reclaim(entry) != sub_buffer_state::active) {
                        ring.reclaimed.fetch_add(1, relaxed);  // relaxed: a counter
                    }
                    if (entry.cpu.load(relaxed) != 0) reclaim_rest(entry);  // relaxed: as above
                    // order: lane.dead:A pairs with lane.claim:A, lane.claim:B, table.read:B,
                    // snapshot.copy:B, drain.lane:A, drain.lane:B, lane.claim:C, lane.claim:D
                    entry.state.store(static_cast<std::uint32_t>(layout::presence::departed),
                                      release);
                    // It may have died between counting and holding.
                    count_is_lost();
                }
            }
            // order: process.dead:A pairs with process.look:A, process.look:B, process.claim:A,
            // table.read:B, snapshot.copy:B, process.look:C, process.claim:B
            who.state.store(static_cast<std::uint32_t>(layout::presence::departed), release);
        }
        // order: reclaim.free:A pairs with reclaim.own:A, reclaim.own:B
        ring.reclaim_owner.store(0, release);
    }

private:
    /// Adds the counts of a departed lane to the totals, before another lane gets its entry.
    void fold(layout::lane_entry& entry, std::uint32_t slot) noexcept {
        layout::ring_state& ring = memory_.ring();
        // relaxed, to the end: the entry is the caller's, the totals are counters
        ring.folded_lanes.fetch_add(1, relaxed);
        ring.folded_written.fetch_add(entry.written.load(relaxed), relaxed);
        ring.folded_refused.fetch_add(entry.refused.load(relaxed), relaxed);
        ring.folded_too_long.fetch_add(entry.too_long.load(relaxed), relaxed);
        ring.folded_nested.fetch_add(entry.nested.load(relaxed), relaxed);
        ring.folded_abandoned.fetch_add(entry.abandoned.load(relaxed), relaxed);
        ring.overwritten_records.fetch_add(entry.overwrote.exchange(0, relaxed), relaxed);
        // From here on a session's updates of these words fail, and go to the totals instead.
        const auto take = [](auto& told) {
            using number = typename std::remove_reference_t<decltype(told)>::value_type;
            return told.exchange(static_cast<number>(layout::taken_from_sessions), relaxed);
        };
        const auto narrow = [&take](const shared_atomic<std::uint64_t>& all, auto& told) {
            return static_cast<std::uint32_t>(all.load(relaxed)) - take(told);
        };
        // order: lane.fold:A pairs with drain.rest:A
        ring.undrained.fetch_add(entry.written.load(relaxed) - take(entry.drained), release);
        ring.untold_refused.fetch_add(entry.refused.load(relaxed) - take(entry.told_refused),
                                      relaxed);
        ring.untold_too_long.fetch_add(narrow(entry.too_long, entry.told_too_long), relaxed);
        ring.untold_nested.fetch_add(narrow(entry.nested, entry.told_nested), relaxed);
        ring.untold_abandoned.fetch_add(narrow(entry.abandoned, entry.told_abandoned), relaxed);
        shared_atomic<std::uint64_t>* const row = memory_.totals(slot);
        if (row == nullptr) return;
        // Other processes may have stored anything there.
        const std::uint32_t count = memory_.plan().process_count;
        const std::uint32_t owner = entry.process.load(relaxed);
        if (owner >= count) return;
        const std::uint32_t root = memory_.process(owner).root.load(relaxed);
        if (root >= count) return;
        shared_atomic<std::uint64_t>* const into = memory_.totals(memory_.plan().lane_count + root);
        for (std::uint32_t i = 0; i < memory_.plan().totals_per_lane; ++i) {
            into[i].fetch_add(row[i].exchange(0, relaxed), relaxed);
        }
    }
    /// Reclaims what a processor's lane may have held besides its newest sub-buffer: the one in use
    /// when that was drawn, and the one before, if not closed yet. Linear in the sub-buffers.
    [[gnu::cold]] void reclaim_rest(layout::lane_entry& entry) noexcept {
        layout::ring_state& ring = memory_.ring();
        // relaxed, to the end: as in reclaim
        const std::uint32_t number = entry.number.load(relaxed);
        const std::uint64_t count = memory_.capacity();
        for (std::uint64_t slot = 0; slot < count; ++slot) {
            sub_buffer_header& sub = memory_.sub_buffer(slot);
            // order: reclaim.find:C pairs with here.ready:A
            const auto found = stamped::from(sub.state.load(acquire));
            if (found.state != static_cast<unsigned>(sub_buffer_state::active) ||
                sub.lane.load(relaxed) != number) {
                continue;
            }
            // order: reclaim.find:D pairs with here.record:A, here.note:A
            const std::uint32_t records = commit_word::records(sub.commit.load(acquire));
            const std::uint64_t written = sub.first_position.load(relaxed) + records;
            // order: lane.written:C pairs with table.read:B, snapshot.copy:C
            if (written > entry.written.load(relaxed)) entry.written.store(written, release);
            // order: reclaim.close:B pairs with read:A, file.read:A, chain.look:A, claim:C,
            // batch.read:A, claim.next:A
            sub.state.store(state_word(found.pos, sub_buffer_state::closed), release);
            holdings::drop(rings_[entry.ring.load(relaxed)]);
            ring.reclaimed.fetch_add(1, relaxed);
        }
    }
    /// Gives up what the file remembers of a process that has departed: its records stay, under the
    /// numbers of its lanes. False if one of its lanes is still in use. The entry is the caller's.
    [[nodiscard, gnu::cold]] bool forget(std::uint32_t slot) noexcept {
        constexpr auto departed = static_cast<std::uint32_t>(layout::presence::departed);
        constexpr auto preparing = static_cast<std::uint32_t>(layout::presence::preparing);
        constexpr auto free = static_cast<std::uint32_t>(layout::presence::free);
        for (std::uint32_t i = 0; i < memory_.plan().lane_count; ++i) {
            layout::lane_entry& entry = memory_.lane(i);
            // order: lane.claim:C pairs with lane.release:A, lane.release:B, lane.release:C,
            // lane.release:D, lane.dead:A, here.release:B, here.release:A, lane.enter:A
            std::uint32_t state = entry.state.load(acquire);
            if (state != departed && state != static_cast<std::uint32_t>(layout::presence::live))
                continue;
            if (entry.process.load(relaxed) != slot) continue;  // relaxed: looked at again
            if (state != departed) return false;
            // order: lane.claim:D pairs with lane.release:A, lane.release:B, lane.release:C,
            // lane.release:D, lane.dead:A, here.release:B, here.release:A
            if (!entry.state.compare_exchange_strong(state, preparing, acquire)) return false;
            const bool is_its = entry.process.load(relaxed) == slot;  // relaxed: after the state
            if (is_its) {
                fold(entry, i);
                entry.number.store(0, relaxed);  // relaxed: published by the state
            }
            // order: lane.free:A pairs with lane.claim:A, table.read:B, snapshot.copy:B
            entry.state.store(is_its ? free : departed, release);
        }
        for (std::uint32_t i = 0; i < memory_.plan().process_count; ++i) {
            std::uint32_t parent = slot + 1;
            // relaxed: that process is not in the file any more, and nobody waits for this
            memory_.process(i).parent.compare_exchange_strong(parent, 0, relaxed);
        }
        return true;
    }

    const trace_memory& memory_;
    const rings& rings_;
    atomic<std::uint32_t> process_{0};
    atomic<std::uint32_t> lost_count_{0};
};

}  // namespace trace_ring::inline v1::impl
