// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The beginning and the end of a recorder, of the program and the children of its forks in the
/// file, and the beginning of a lane.

#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include <trace_ring/recorder/clock/readings.hpp>
#include <trace_ring/recorder/lane/lane_sub_buffers.hpp>
#include <trace_ring/recorder/lane/adoption.hpp>
#include <trace_ring/recorder/light/least.hpp>
#include <trace_ring/recorder/process/numbering.hpp>

namespace trace_ring::inline v1::impl {

/// An entry for a new lane, if need be after the dead were looked for; null if all are live.
inline layout::lane_entry* core::take_lane(std::uint32_t& slot, bool& few_left) noexcept {
    layout::lane_entry* entry = book_.take_lane(slot, few_left);
    if (entry == nullptr && make_way()) entry = book_.take_lane(slot, few_left);
    if (few_left && is_time_to_look()) look_for_dead();
    few_lanes_.store(few_left ? 1 : 0, relaxed);  // relaxed: advice to those that adopt lanes
    return entry;
}

inline bool core::make_lane(lane_state& lane, std::uint32_t wanted_ring) noexcept {
    const undisturbed scope;
    std::uint32_t slot = 0;
    bool few_left = false;
    layout::lane_entry* const entry = take_lane(slot, few_left);
    if (entry == nullptr) return false;
    const std::uint32_t number = memory_.new_lane_number();
    const thread_node& node = node_around(lane);
    const bool is_other = node.other_process.load(relaxed) != 0;  // relaxed: own node
    char name[16] = {};
    if (!is_other) ::prctl(PR_GET_NAME, name);
    // relaxed, to the end: published by the state, but for the number; then the thread's own
    entry->number.store(number, relaxed);
    // A thread that sees any word of the new lane and looks again sees its number.
    // order: lane.enter:B pairs with lane.look:A, snapshot.copy:B, drain.advance:A, drain.find:A
    thread_fence(release);
    entry->process.store(process_of(lane), relaxed);
    const std::uint32_t thread = is_other ? node.thread.load(relaxed) : kernel_thread();
    entry->thread.store(thread, relaxed);
    entry->depth.store(depth_of(lane), relaxed);
    entry->writer.store(layout::writer_word(thread, depth_of(lane)), relaxed);
    entry->handed_on.store(0, relaxed);
    entry->ring.store(shares_.number(wanted_ring), relaxed);
    entry->cpu.store(0, relaxed);
    entry->began.store(memory_.now(), relaxed);
    layout::begin_counts(*entry);
    store_text(entry->name, name);
    for (std::size_t i = 0; is_other && i < 2; ++i)
        entry->name[i].store(node.name[i].load(relaxed), relaxed);
    // order: lane.enter:A pairs with table.read:B, snapshot.copy:B, lane.find:A, drain.lane:A,
    // drain.lane:B, lane.take:C
    entry->state.store(static_cast<std::uint32_t>(layout::presence::live), release);
    lane.entry.store(entry, relaxed);
    lane.totals.store(memory_.totals(slot), relaxed);
    lane.totals_count.store(memory_.plan().totals_per_lane, relaxed);
    lane.sub.store(&nowhere, relaxed);
    lane.where.store(no_position, relaxed);
    lane.refused.store(0, relaxed);
    lane.high.store(0, relaxed);
    signal_fence(seq_cst);
    mark_of(lane).hold_as(few_left || is_ending(lane) ? tenure::lent : tenure::own);
    mark_of(lane).valid.store(1, relaxed);
    return true;
}

/// Enters the program in the file. Returns why it cannot. Throws std::bad_alloc.
inline setup_fault core::enter() {
    const std::uint32_t slot = book_.take_process();
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
    book_.be_process(slot);
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
        lead_to(gates_that_are<layout::gate_recorder_off>());
        alive_->store(stopped, relaxed);
        return false;
    }
    const std::uint32_t slot = book_.take_process();
    if (slot == memory_.plan().process_count) {
        memory_.ring().refused_without_lane.fetch_add(1, relaxed);  // relaxed: a counter
        return false;  // stays `entering`: each record is counted
    }
    memory_.enter_process(slot, process() + 1);
    book_.be_process(slot);
    claimer_.forget_waiters();
    // order: process.alive:A pairs with process.alive:B, process.alive:C, process.alive:D,
    // process.alive:E
    alive_->store(entered, release);
    return true;
}

inline core::core(const recorder_options& options, const clock_functions& hot_clock,
                  recorder_words& words)
    : words_(words),
      memory_(
          [&]() -> const recorder_options& {
              if (index_.value() != 0) return options;
              fail_setup(options.file.empty() ? "memory" : options.file.c_str(),
                         "a process can have eight recorders, and has them", EMFILE);
          }(),
          hot_clock),
      shares_(memory_.ring(), memory_.plan(), memory_.present()),
      claimer_(memory_, events_, options),
      fork_(options.fork),
      idle_mark_(memory_.clock() == hot_clock.kind ? idle_mark_for(memory_.plan().sub_buffer_bytes)
                                                   : 0) {
    if (make_id() == 0) fail_setup(memory_.subject(), "cannot map memory", ENOMEM);
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
    void* const page = ::mmap(nullptr, storage::machine_page_bytes(), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (page == MAP_FAILED) fail_setup(subject, "cannot map a page", errno);
#if defined(MADV_WIPEONFORK)
    static_cast<void>(::madvise(page, storage::machine_page_bytes(), MADV_WIPEONFORK));
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
    // order: registry.enlist:A pairs with registry.visit:B, registry.visit:D
    the_registry.cores[index()].store(this, seq_cst);
    // order: registry.enlist:B pairs with type.add:A
    type_node* t = the_registry.types.load(seq_cst);
    // Types that came since `enter`. relaxed: each that was pushed publishes those below it, too
    for (; t != nullptr; t = t->next.load(relaxed)) events_.add(*t);
    add_clocks(memory_, process());
    clocks_.begin(memory_);
    memory_.own_gates().gates[0].fetch_or(layout::gate_no_event, relaxed);  // relaxed: a gate
    if (options.paused) events_.shut(true);
    lead_to(memory_.own_gates());
}

inline core::~core() {
    words_.gates.lead_nowhere();
    words_.library.gates.lead_nowhere();
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
