// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The entries of lanes in the file: made for new lanes, folded into the totals when another lane
/// needs them, reclaimed from writers that died. Also the beginning and end of a recorder.

#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <trace_ring/recorder/clock/readings.hpp>
#include <trace_ring/recorder/lane/claim.hpp>
#include <trace_ring/recorder/lane/entries.hpp>
#include <trace_ring/recorder/lane/hand_on.hpp>
#include <trace_ring/recorder/light/least.hpp>

namespace trace_ring::inline v1::impl {

/// Adds the counts of a departed lane to the totals, before another lane gets its entry.
inline void core::fold(layout::lane_entry& entry, std::uint32_t slot) noexcept {
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
    ring.untold_refused.fetch_add(entry.refused.load(relaxed) - take(entry.told_refused), relaxed);
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

/// An entry for a new lane: a free one, else that of the lane departed longest ago, else null.
inline layout::lane_entry* core::take_lane_entry(std::uint32_t& slot) noexcept {
    constexpr auto free = static_cast<std::uint32_t>(layout::presence::free);
    constexpr auto departed = static_cast<std::uint32_t>(layout::presence::departed);
    constexpr auto preparing = static_cast<std::uint32_t>(layout::presence::preparing);
    for (int attempt = 0; attempt < 8; ++attempt) {
        std::uint32_t best = memory_.plan().lane_count;
        // By time first: positions of different rings do not compare. By position without a clock.
        std::pair<std::uint64_t, position> oldest{~std::uint64_t{0}, ~position{0}};
        for (slot = 0; slot < memory_.plan().lane_count; ++slot) {
            layout::lane_entry& entry = memory_.lane(slot);
            // order: lane.take:A pairs with lane.leave:A, lane.leave:B, lane.leave:C, lane.leave:D,
            // lane.dead:A, here.leave:B, here.leave:A, lane.free:A
            std::uint32_t state = entry.state.load(acquire);
            // relaxed, to the end: after the state; and nothing is stored into a departed entry
            if (state == free) {
                if (entry.state.compare_exchange_strong(state, preparing, relaxed)) return &entry;
            } else if (state == departed) {
                const std::pair age{entry.ended.load(relaxed), entry.newest.load(relaxed)};
                if (age < oldest) {
                    oldest = age;
                    best = slot;
                }
            }
        }
        if (best == memory_.plan().lane_count) {
            if (!make_way()) return nullptr;
            continue;
        }
        slot = best;
        layout::lane_entry& entry = memory_.lane(best);
        std::uint32_t state = departed;
        // order: lane.take:B pairs with lane.leave:A, lane.leave:B, lane.leave:C, lane.leave:D,
        // lane.dead:A, here.leave:B, here.leave:A
        if (entry.state.compare_exchange_strong(state, preparing, acquire)) {
            fold(entry, best);
            return &entry;
        }
    }
    return nullptr;
}

inline bool core::make_lane(lane_state& lane, std::uint32_t wanted_ring) noexcept {
    const undisturbed scope;
    layout::ring_state& ring = memory_.ring();
    std::uint32_t slot = 0;
    layout::lane_entry* const entry = take_lane_entry(slot);
    if (entry == nullptr) {
        ring.refused_without_lane.fetch_add(1, relaxed);  // relaxed: a counter
        return false;
    }
    const std::uint32_t number = memory_.new_lane_number();
    char name[16] = {};
    ::prctl(PR_GET_NAME, name);
    // relaxed, to the end: published by the state, but for the number; then the thread's own
    entry->number.store(number, relaxed);
    // A thread that sees any word of the new lane and looks again sees its number.
    // order: lane.enter:B pairs with lane.look:A, snapshot.copy:B, drain.advance:A, drain.find:A
    thread_fence(release);
    entry->process.store(process(), relaxed);
    const auto thread = static_cast<std::uint32_t>(::syscall(SYS_gettid));
    entry->thread.store(thread, relaxed);
    entry->depth.store(depth_of(lane), relaxed);
    entry->writer.store(layout::writer_word(thread, depth_of(lane)), relaxed);
    entry->handed_on.store(0, relaxed);
    entry->ring.store(shares_.number(wanted_ring), relaxed);
    entry->cpu.store(0, relaxed);
    entry->began.store(memory_.now(), relaxed);
    layout::begin_counts(*entry);
    store_text(entry->name, name);
    // order: lane.enter:A pairs with table.read:B, snapshot.copy:B, lane.find:A, drain.lane:A,
    // drain.lane:B, lane.take:C
    entry->state.store(static_cast<std::uint32_t>(layout::presence::live), release);
    lane.entry.store(entry, relaxed);
    lane.totals.store(memory_.totals(slot), relaxed);
    lane.columns.store(memory_.plan().totals_per_lane, relaxed);
    lane.sub.store(&nowhere, relaxed);
    lane.where.store(no_position, relaxed);
    lane.refused.store(0, relaxed);
    lane.high.store(0, relaxed);
    signal_fence(seq_cst);
    mark_of(lane).hold_as(tenure::own);
    mark_of(lane).valid.store(1, relaxed);
    return true;
}

/// Reclaims the sub-buffer that a lane held, or was about to claim, when its writer died or jumped
/// away. Returns `closed` if it is closed now, `free` if it was only half prepared, `active` if
/// there was none. The caller makes sure that the writer is gone.
inline sub_buffer_state core::take_back(layout::lane_entry& entry) noexcept {
    // relaxed, to the end: the writer is the caller, or is gone, which the kernel says after all
    // that it did; and the last look decides where its sub-buffer is
    const position at = entry.newest.load(relaxed);
    if (at == no_position) return sub_buffer_state::active;
    const std::uint64_t slot = slot_at(at);
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
    // order: reclaim.close:A pairs with read:A, file.read:A, chain.look:A, claim:C, claim.next:A,
    // batch.read:A, drain.look:A, drain.hold:A, here.claim:B
    sub.state.store(state_word(at, now), release);
    holdings::drop(shares_[entry.ring.load(relaxed)]);
    return now;
}

/// Reclaims what a processor's lane may have held beside its newest sub-buffer: the one in use when
/// that was drawn, and the one before, if not closed yet. Linear in the sub-buffers.
inline void core::take_back_rest(layout::lane_entry& entry) noexcept {
    layout::ring_state& ring = memory_.ring();
    // relaxed, to the end: as in take_back
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
        holdings::drop(shares_[entry.ring.load(relaxed)]);
        ring.reclaimed.fetch_add(1, relaxed);
    }
}

inline core::core(const recorder_options& options, const clock_functions& hot_clock,
                  gate_link& gates)
    : gates_(gates),
      memory_(index_.value() != 0
                  ? options
                  : (fail_setup(options.file.empty() ? "memory" : options.file.c_str(),
                                "a process can have eight recorders, and has them", EMFILE),
                     options),
              hot_clock),
      shares_(memory_.ring(), memory_.plan(), memory_.present()),
      claimer_(memory_, events_, options),
      fork_(options.fork),
      idle_mark_(memory_.clock() == hot_clock.kind ? idle_mark_for(memory_.plan().sub_buffer_bytes)
                                                   : 0) {
    all_types.arrives(&register_types);
    // relaxed, both: fixed, and no other thread has this recorder yet
    const bool asked =
        options.control == control_mode::on && memory_.header().no_control.load(relaxed) == 0;
    snapshots_left_.store(asked ? options.snapshots : 0, relaxed);
    snapshot_gap_ =
        static_cast<std::uint64_t>(greatest<std::int64_t>(0, options.snapshot_gap.count()));
    if (!options.file.empty() || !options.snapshot_file.empty()) {
        name_buffer name;
        name.expand(options.snapshot_file.empty() ? options.file : options.snapshot_file);
        if (options.snapshot_file.empty()) name.add(".snapshot");
        snapshot_base_.set(name.text);
    }
    copy_space_.resize(memory_.plan().sub_buffer_bytes / 8);
    const char* const subject = memory_.subject();
    std::uint32_t none = 0;
    // order: key.make:A pairs with key.fail:A, key.drop:B
    if (the_registry.key_state.compare_exchange_strong(none, 1, acquire)) {
        if (::pthread_key_create(&the_registry.key, &thread_ends) != 0) {
            // order: key.fail:A pairs with key.make:A
            the_registry.key_state.store(0, release);
            fail_setup(subject, "cannot get a thread-specific key", EAGAIN);
        }
        static_cast<void>(::pthread_atfork(nullptr, nullptr, &forget_lanes_in_child));
        // order: key.made:A pairs with key.use:A, key.drop:A
        the_registry.key_state.store(2, release);
    }
    void* const page = ::mmap(nullptr, layout::page_bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (page == MAP_FAILED) fail_setup(subject, "cannot map a page", errno);
#if defined(MADV_WIPEONFORK)
    static_cast<void>(::madvise(page, layout::page_bytes, MADV_WIPEONFORK));
#endif
    alive_.word = ::new (page) atomic<std::uint32_t>(entered);
    // One at a time: two processes that join at once must not get the same gates.
    const int fd = memory_.descriptor();
    for (int i = 0; fd >= 0; ++i) {
        if (i == 10'000) fail_setup(subject, "another is being set up", EBUSY);
        if (storage::lock_byte(fd, layout::reclaim_lock_offset) !=
            storage::lock_result::held_by_another) {
            break;
        }
        const timespec pause{0, 1'000'000};
        ::nanosleep(&pause, nullptr);
    }
    const setup_fault fault = enter();
    if (fd >= 0) storage::unlock_byte(fd, layout::reclaim_lock_offset);
    fail_setup(subject, fault);
    // order: registry.enlist:A pairs with registry.visit:B
    the_registry.cores[index()].store(this, seq_cst);
    // order: registry.enlist:B pairs with type.add:A
    type_node* t = the_registry.types.load(seq_cst);
    // Types that came since `enter`. relaxed: each that was pushed publishes those below it, too
    for (; t != nullptr; t = t->next.load(relaxed)) events_.add(*t);
    add_clocks(memory_, process());
    // relaxed, to the end: handing the recorder to other threads orders this; gates are advice
    const std::uint64_t second = memory_.header().ticks_per_second.load(relaxed);
    quick_claim_ = second / 2'000'000 + 1;  // at least one tick
    clock_gap_.store(second / 1000 + 1, relaxed);
    clock_due_.store(memory_.now() + second / 1000 + 1, relaxed);
    next_clock_.store(clock_due_.load(relaxed), relaxed);
    memory_.own_gates().gates[0].fetch_or(layout::gate_no_event, relaxed);  // relaxed: a gate
    if (options.paused) events_.shut(true);
    gates_.lead_to(memory_.own_gates());
}

inline core::~core() {
    gates_.lead_nowhere();
    // order: registry.retire:A pairs with registry.visit:B
    the_registry.cores[index()].store(nullptr, seq_cst);
    // Waits for threads that end, or load a library, just now; not for ever: one may be stopped.
    // order: registry.retire:B pairs with registry.visit:A, registry.visit:C
    for (int i = 0; the_registry.visitors.load(seq_cst) != 0 && i < 2000; ++i) {
        const timespec pause{0, i < 100 ? 1'000 : 1'000'000};
        ::nanosleep(&pause, nullptr);
    }
    // order: node.leave:A pairs with node.add:A
    thread_node* node = the_registry.nodes.load(acquire);
    // relaxed: each that was pushed publishes those below it, too
    for (; node != nullptr; node = node->next.load(relaxed)) leave_thread(block_of(*node));
    // order: process.alive:D pairs with process.alive:A
    if (alive_->load(acquire) == entered) {  // else the entry is a parent's
        if (memory_.clock() != 0) add_clocks(memory_, process());
        memory_.leave_process(process());
    }
}

}  // namespace trace_ring::inline v1::impl
