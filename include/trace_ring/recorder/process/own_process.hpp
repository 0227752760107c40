// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The recording process in the trace file: the program enters it at set-up, and each child of a
/// fork enters it with its first record, in its own entry. A child notices by a word in a page that
/// fork wipes.
/// @code
///   new_child --the first record--> entering --an entry was claimed--> entered
///                                   entering: no entry is free, each record is lost and counted
///                                   stopped: on_fork::stop, the child records nothing
/// @endcode

#include <sys/mman.h>
#include <time.h>

#include <cerrno>
#include <cstdint>
#include <new>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/layout.hpp>
#include <trace_ring/policy/storage/file.hpp>
#include <trace_ring/policy/storage/mapping.hpp>
#include <trace_ring/recorder/file/options.hpp>
#include <trace_ring/recorder/file/trace_memory.hpp>
#include <trace_ring/recorder/lane/claimer.hpp>
#include <trace_ring/recorder/lane/lane_book.hpp>
#include <trace_ring/recorder/process/event_book.hpp>
#include <trace_ring/recorder/process/numbering.hpp>
#include <trace_ring/recorder/site/cold_path.hpp>
#include <trace_ring/recorder/site/recorder_words.hpp>
#include <trace_ring/recorder/site/registry.hpp>
#include <trace_ring/recorder/site/undisturbed.hpp>
#include <trace_ring/setup_error.hpp>

namespace trace_ring::inline v1::impl {

/// Lets the hot path obey `page`. A program's hot path does only if its registry is this one.
inline void lead_to(recorder_words& words, const gate_page& page) noexcept {
    const bool own = is_of_program(&the_registry);
    words.gates.lead_to(own ? page : gates_that_are<layout::gate_no_event>());
    words.library.gates.lead_to(page);
}

class own_process {
public:
    own_process(trace_memory& memory, lane_book& book, claimer& waiting, recorder_words& words,
                on_fork in_child) noexcept
        : memory_(memory), book_(book), claimer_(waiting), words_(words), in_child_(in_child) {}
    own_process(const own_process&) = delete;
    own_process& operator=(const own_process&) = delete;
    ~own_process() {
        if (state_ != nullptr) ::munmap(static_cast<void*>(state_), storage::machine_page_bytes());
    }

    /// Enters the program, with its event types. Set-up; throws setup_error and std::bad_alloc.
    [[gnu::cold]] void enter(event_book& events) {
        void* const page = ::mmap(nullptr, storage::machine_page_bytes(), PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (page == MAP_FAILED) fail_setup(memory_.subject(), "cannot map a page", errno);
#if defined(MADV_WIPEONFORK)
        static_cast<void>(::madvise(page, storage::machine_page_bytes(), MADV_WIPEONFORK));
#endif
        state_ = ::new (page) atomic<std::uint32_t>(entered);
        // One at a time: two processes that join at the same time must not get the same gates.
        const int fd = memory_.descriptor();
        for (int i = 0; fd >= 0; ++i) {
            if (i == 10'000) fail_setup(memory_.subject(), "another is being set up", EBUSY);
            if (storage::lock_byte(fd, layout::reclaim_lock_offset) !=
                storage::lock_result::held_by_another) {
                break;
            }
            const timespec pause{0, 1'000'000};
            ::nanosleep(&pause, nullptr);
        }
        const setup_fault fault = enter_program(events);
        if (fd >= 0) storage::unlock_byte(fd, layout::reclaim_lock_offset);
        fail_setup(memory_.subject(), fault);
    }
    /// Whether this process records. The child of a fork is entered, once. Any thread, signal-safe;
    /// constant time except in a new child.
    [[nodiscard]] bool may_record() noexcept {
        // order: process.alive:B pairs with process.alive:A
        return state_->load(acquire) == entered || enter_child();
    }
    /// Whether it is entered: the entry is not a parent's.
    [[nodiscard]] bool is_entered() const noexcept {
        // order: process.alive:D pairs with process.alive:A
        return state_->load(acquire) == entered;
    }
    /// In the child of a fork, where the kernel did not wipe the page.
    void forget_process() noexcept {
        state_->store(new_child, relaxed);  // relaxed: the child has one thread
    }

private:
    enum : std::uint32_t { new_child = 0, entered = 1, entering = 2, stopped = 3 };

    /// Returns why it cannot.
    [[nodiscard, gnu::cold]] setup_fault enter_program(event_book& events) {
        const std::uint32_t slot = book_.claim_process();
        if (slot == memory_.plan().process_count)
            return {ENOSPC, "its table of processes is full of living ones"};
        struct free_unless_entered {
            layout::process_entry* entry;
            ~free_unless_entered() {
                // order: process.free:A pairs with process.claim:A
                if (entry != nullptr)
                    entry->state.store(static_cast<std::uint32_t>(layout::presence::free), release);
            }
        };
        free_unless_entered claimed{&memory_.process(slot)};
        // order: type.find:C pairs with type.add:A
        const type_node* const types = the_registry.types.load(acquire);
        numbering known(memory_);
        const auto root = known.choose(types, slot);
        if (!root || !memory_.enter_program(slot, *root)) {
            return {ENOSPC, root ? "as many programs as it has gates for record into it"
                                 : "it holds records of as many programs as it can tell apart"};
        }
        events.begin(known, types, *root);
        claimed.entry = nullptr;
        memory_.enter_process(slot, 0);
        book_.be_process(slot);
        return {};
    }
    [[nodiscard, gnu::cold]] bool enter_child() noexcept {
        const undisturbed scope;
        std::uint32_t found = new_child;
        // order: process.alive:C pairs with process.alive:A
        if (!state_->compare_exchange_strong(found, entering, acquire)) {
            // Another thread, or the record that this handler interrupted, is entering the process,
            // or no entry was free: this record is lost. It must not use the parent's entry.
            if (found == entering) count_refused();
            return found == entered;
        }
        if (in_child_ == on_fork::stop) {
            // relaxed: the swap decided that it does not record; gates only avoid the cold path
            lead_to(words_, gates_that_are<layout::gate_recorder_off>());
            state_->store(stopped, relaxed);
            return false;
        }
        const std::uint32_t slot = book_.claim_process();
        if (slot == memory_.plan().process_count) {
            count_refused();
            return false;  // stays `entering`: each record is counted
        }
        memory_.enter_process(slot, book_.process() + 1);
        book_.be_process(slot);
        claimer_.forget_waiters();
        // order: process.alive:A pairs with process.alive:B, process.alive:C, process.alive:D
        state_->store(entered, release);
        return true;
    }
    void count_refused() const noexcept {
        memory_.ring().refused_without_lane.fetch_add(1, relaxed);  // relaxed: a counter
    }

    trace_memory& memory_;
    lane_book& book_;
    claimer& claimer_;
    recorder_words& words_;
    on_fork in_child_;
    atomic<std::uint32_t>* state_ = nullptr;  ///< in a page that fork wipes
};

}  // namespace trace_ring::inline v1::impl
