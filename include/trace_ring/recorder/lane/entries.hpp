// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Processes as the file knows them: a program and the children of its forks enter, what dead ones
/// held is reclaimed, and the entry of one that is gone is given to another.

#include <cerrno>
#include <cstdint>

#include <trace_ring/recorder/lane/core.hpp>
#include <trace_ring/recorder/process/numbering.hpp>

namespace trace_ring::inline v1::impl {

/// Reclaims what dead processes hold. A process that has no entry yet takes a lock to say that it
/// reclaims; if it cannot, it leaves that to others.
inline void core::reclaim_dead(bool has_entry) noexcept {
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
            // order: lane.find:A pairs with lane.enter:A, here.enter:A
            if (entry.state.load(acquire) == static_cast<std::uint32_t>(layout::presence::live) &&
                entry.process.load(relaxed) == slot) {      // relaxed: after the state
                entry.ended.store(memory_.now(), relaxed);  // relaxed: published by its state
                if (take_back(entry) != sub_buffer_state::active) {
                    ring.reclaimed.fetch_add(1, relaxed);  // relaxed: a counter
                }
                if (entry.cpu.load(relaxed) != 0) take_back_rest(entry);  // relaxed: as above
                // order: lane.dead:A pairs with lane.take:A, lane.take:B, table.read:B,
                // snapshot.copy:B, drain.lane:A, drain.lane:B, lane.take:C, lane.take:D
                entry.state.store(static_cast<std::uint32_t>(layout::presence::departed), release);
                // It may have died between counting and holding. relaxed: advice
                recount_due_.store(1, relaxed);
            }
        }
        // order: process.dead:A pairs with process.look:A, process.look:B, process.take:A,
        // table.read:B, snapshot.copy:B, process.look:C, process.take:B
        who.state.store(static_cast<std::uint32_t>(layout::presence::departed), release);
    }
    // order: reclaim.free:A pairs with reclaim.own:A, reclaim.own:B
    ring.reclaim_owner.store(0, release);
}

/// Gives up what the file remembers of a process that has departed: its records stay, under the
/// numbers of its lanes. False if one of its lanes is still in use. The entry is the caller's.
inline bool core::leave_entry(std::uint32_t slot) noexcept {
    constexpr auto departed = static_cast<std::uint32_t>(layout::presence::departed);
    constexpr auto preparing = static_cast<std::uint32_t>(layout::presence::preparing);
    constexpr auto free = static_cast<std::uint32_t>(layout::presence::free);
    for (std::uint32_t i = 0; i < memory_.plan().lane_count; ++i) {
        layout::lane_entry& entry = memory_.lane(i);
        // order: lane.take:C pairs with lane.leave:A, lane.leave:B, lane.leave:C, lane.leave:D,
        // lane.dead:A, here.leave:B, here.leave:A, lane.enter:A
        std::uint32_t state = entry.state.load(acquire);
        // relaxed, both: after the state, and looked at again
        if ((state != departed && state != static_cast<std::uint32_t>(layout::presence::live)) ||
            entry.process.load(relaxed) != slot) {
            continue;
        }
        if (state != departed) return false;
        // order: lane.take:D pairs with lane.leave:A, lane.leave:B, lane.leave:C, lane.leave:D,
        // lane.dead:A, here.leave:B, here.leave:A
        if (!entry.state.compare_exchange_strong(state, preparing, acquire)) return false;
        const bool is_its = entry.process.load(relaxed) == slot;  // relaxed: after the state
        if (is_its) {
            fold(entry, i);
            entry.number.store(0, relaxed);  // relaxed: published by the state
        }
        // order: lane.free:A pairs with lane.take:A, table.read:B, snapshot.copy:B
        entry.state.store(is_its ? free : departed, release);
    }
    for (std::uint32_t i = 0; i < memory_.plan().process_count; ++i) {
        std::uint32_t parent = slot + 1;
        // relaxed: that process is not in the file any more, and nobody waits for this
        memory_.process(i).parent.compare_exchange_strong(parent, 0, relaxed);
    }
    return true;
}

/// Takes an entry for a process: a free one, else that of the process that departed first, else
/// that of one that died. `process_count` if all live.
inline std::uint32_t core::take_process_entry() noexcept {
    constexpr auto free = static_cast<std::uint32_t>(layout::presence::free);
    constexpr auto departed = static_cast<std::uint32_t>(layout::presence::departed);
    constexpr auto preparing = static_cast<std::uint32_t>(layout::presence::preparing);
    const std::uint32_t count = memory_.plan().process_count;
    for (const bool again : {false, true}) {
        std::uint64_t after = 0;  // entries that departed before this could not be had
        for (std::uint32_t tries = 0; tries <= count; ++tries) {
            std::uint32_t best = count;
            std::uint64_t oldest = ~std::uint64_t{0};
            for (std::uint32_t slot = 0; slot < count; ++slot) {
                auto& entry = memory_.process(slot);
                // order: process.take:A pairs with process.leave:A, process.dead:A,
                // process.return:A, process.free:A
                std::uint32_t state = entry.state.load(acquire);
                // relaxed, to the end: after the state
                if (state == free) {
                    if (entry.state.compare_exchange_strong(state, preparing, relaxed)) return slot;
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
            // order: process.take:B pairs with process.leave:A, process.dead:A
            if (entry.state.compare_exchange_strong(state, preparing, acquire)) {
                if (leave_entry(best)) return best;
                // order: process.return:A pairs with process.look:A, process.look:B,
                // process.take:A, table.read:B, snapshot.copy:B
                entry.state.store(departed, release);
            }
            after = oldest + 1;
        }
        if (!again) reclaim_dead(false);
    }
    return count;
}

/// Enters the program in the file. Returns why it cannot. Throws std::bad_alloc.
inline setup_fault core::enter() {
    const std::uint32_t slot = take_process_entry();
    if (slot == memory_.plan().process_count) {
        return {ENOSPC, "its table of processes is full of living ones"};
    }
    struct unless_entered {
        layout::process_entry* entry;
        ~unless_entered() {
            // order: process.free:A pairs with process.take:A
            if (entry != nullptr)
                entry->state.store(static_cast<std::uint32_t>(layout::presence::free), release);
        }
    };
    unless_entered give_back{&memory_.process(slot)};
    // order: type.find:C pairs with type.add:A
    const type_node* const types = the_registry.types.load(acquire);
    numbering known(memory_);
    const auto root = known.choose(types, slot);
    if (!root || !memory_.enter_program(slot, *root)) {
        return {ENOSPC, root ? "as many programs as it has gates for record into it"
                             : "it holds records of as many programs as it can tell apart"};
    }
    events_.begin(known, types, *root);
    give_back.entry = nullptr;
    memory_.enter_process(slot, 0);
    process_.store(slot, relaxed);  // relaxed: published by what follows
    return {};
}

/// In a child of a fork: takes an entry of its own, once. False: it does not record.
inline bool core::enter_child() noexcept {
    const undisturbed scope;
    std::uint32_t found = new_child;
    // order: process.alive:C pairs with process.alive:A
    if (!alive_->compare_exchange_strong(found, entering, acquire)) {
        // Another thread, or the record that this handler interrupted, is entering the process, or
        // no entry was to be had: this record is lost. It must not use the parent's entry.
        if (found == entering) {
            memory_.ring().refused_without_lane.fetch_add(1, relaxed);  // relaxed: a counter
        }
        return found == entered;
    }
    if (fork_ == on_fork::stop) {
        // relaxed: the swap settled that it does not record; gates only say so sooner
        gates_.lead_to(shut_gates());
        alive_->store(stopped, relaxed);
        return false;
    }
    const std::uint32_t slot = take_process_entry();
    if (slot == memory_.plan().process_count) {
        memory_.ring().refused_without_lane.fetch_add(1, relaxed);  // relaxed: a counter
        return false;  // stays `entering`: each record is counted
    }
    memory_.enter_process(slot, process() + 1);
    process_.store(slot, relaxed);  // relaxed: published by the next store
    // order: process.alive:A pairs with process.alive:B, process.alive:C, process.alive:D,
    // process.alive:E
    alive_->store(entered, release);
    return true;
}

}  // namespace trace_ring::inline v1::impl
