// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Sets up the trace of this process's references, assigns places to its threads, and records the
/// contents of the places (trace_reference.hpp adds references to them).
///
/// The tracing itself is not traced. While a thread records, its signals are blocked, so a hook
/// call in this time is made by code of the tracing that was compiled with hooks, and is only
/// counted. A reference to the trace's own memory is also only counted.
///
/// A writer that finds no room waits for the reader as long as the reader lives. If the reader is
/// gone, or has closed the table, the program continues untraced.
///
/// | variable                       | means                                                       |
/// |--------------------------------|-------------------------------------------------------------|
/// | `TRACE_RING_REFERENCES`        | the trace file, which is made if there is none. Unset: the  |
/// |                                | program is not traced                                       |
/// | `TRACE_RING_OPEN_REFERENCES`   | the file of open_references.hpp. Unset: a thread's last     |
/// |                                | references are recorded when it ends, or at exit, and those |
/// |                                | of a killed process are lost                                |

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>

#include <trace_ring/atomic.hpp>
#include <trace_ring/instrument/modules.hpp>
#include <trace_ring/instrument/open_references.hpp>
#include <trace_ring/instrument/own_thread.hpp>
#include <trace_ring/instrument/reference_recorder.hpp>
#include <trace_ring/instrument/references.hpp>
#include <trace_ring/policy/storage/file.hpp>
#include <trace_ring/policy/storage/mapping.hpp>
#include <trace_ring/recorder/thread/own_stack.hpp>

namespace trace_ring::inline v1::instrument {

/// The state shared by the threads of a process. Never destroyed: hooks are called until the
/// process ends.
class reference_trace {
public:
    constexpr reference_trace() noexcept = default;

    /// Adds a reference when the fast path (trace_reference.hpp) cannot: the thread has no place
    /// yet, or a full one, or is interrupted in the middle of adding one, or the size needs an
    /// extension. `frame` is an address in the frame of its hook. Signal-safe once the trace is set
    /// up.
    [[gnu::noinline, gnu::cold]] void add(std::uint64_t address, std::uint64_t what,
                                          std::uint64_t size, std::uintptr_t frame) noexcept {
        impl::own_place* const own = make_room(frame);
        if (own == nullptr) return;
        constexpr unsigned block = v1::impl::plain_code(reference_kind::block);
        if (own->skips_blocks && plain_reference{address, what}.code() == block) {
            own->state.store(own->idle_state(), relaxed);  // relaxed: own thread's
            return;
        }
        open_references& place = *own->place;
        const bool is_extended = plain_reference{address, what}.width() == 2;
        ++place.calls;
        // relaxed, to the end: own thread's
        const std::uint32_t end = place.end.load(relaxed);
        place.all[end] = {address, what};
        if (is_extended) {
            place.all[end + 1] = {size, plain_reference::extension_code};
            ++place.extensions;
        }
        signal_fence(seq_cst);
        place.end.store(end + (is_extended ? 2 : 1), relaxed);
        signal_fence(seq_cst);
        own->state.store(own->idle_state(), relaxed);
    }
    /// Counts an execution of an instruction with unknown references. Signal-safe.
    [[gnu::noinline, gnu::cold]] void count_unseen() noexcept {
        impl::own_place* own = impl::current;
        if (own->place == nullptr) {
            const impl::frame_mark here{};
            own = make_room(here.address());
            if (own == nullptr) return;
            own->state.store(own->idle_state(), relaxed);  // relaxed, both: own thread's
        }
        own->place->unseen.fetch_add(1, relaxed);
    }

    /// Records this thread's open references. Must not be called from a hook or a signal handler.
    void flush_thread() noexcept {
        const impl::undisturbed_tracing scope;
        for_each_place([this](impl::own_place& each) { record(each); });
    }

    /// Called before the program's constructors, and after its destructors, by the functions below.
    void at_start() noexcept {
        const impl::undisturbed_tracing scope;
        static_cast<void>(begin());
    }
    /// Later references stay in their places, for the program that drains the trace.
    void at_exit() noexcept {
        if (stage_.load(relaxed) != on) return;  // relaxed: set before the program began
        flush_thread();
        const impl::undisturbed_tracing scope;
        record_new_modules(out_.to(), modules_);
    }
    /// Called from a constructor of an object: it has been loaded, and its other code has not run.
    void note_loaded() noexcept {
        // relaxed: a trace that is off stays so, and otherwise `begin` looks
        if (stage_.load(relaxed) == off || impl::tracing) return;
        const impl::undisturbed_tracing scope;
        if (begin()) record_new_modules(out_.to(), modules_);
    }

private:
    enum stage : int { unset, setting_up, on, off };
    static constexpr unsigned most_depth = 16;

    /// Increments the counter, and returns null.
    [[nodiscard]] static impl::own_place* count(shared_atomic<std::uint64_t>& what) noexcept {
        what.fetch_add(1, relaxed);  // relaxed: a counter
        return nullptr;
    }

    // --- Set-up

    /// Whether the process is traced. Sets up the trace if no thread has done so, or waits for the
    /// thread that does.
    [[nodiscard]] bool begin() noexcept {
        int now = unset;
        // order: set_up:A pairs with set_up:B
        if (stage_.compare_exchange_strong(now, setting_up, acquire)) {
            now = set_up() ? on : off;
            // order: set_up:B pairs with set_up:A, set_up:C
            stage_.store(now, release);
        }
        while (now == setting_up) {
            ::sched_yield();
            // order: set_up:C pairs with set_up:B
            now = stage_.load(acquire);
        }
        return now == on;
    }
    [[nodiscard]] bool set_up() noexcept {
        const char* const file = ::secure_getenv("TRACE_RING_REFERENCES");
        if (file == nullptr || *file == '\0') return false;
        try {
            const char* const table_file = ::secure_getenv("TRACE_RING_OPEN_REFERENCES");
            open_table(table_file);
            make_own_places();
            // Created before the recorder's key, so that a thread's end is reported here first.
            if (const int error = ::pthread_key_create(&at_thread_end_, end_thread))
                fail_setup(file, "no key for what a thread does at its end", error);
            out_.set_up(file, *table_, table_file == nullptr ? "" : table_file, keep_waiting);
            if (const int error = ::pthread_atfork(nullptr, nullptr, in_child))
                fail_setup(file, "fork cannot be followed", error);
        } catch (const std::exception& error) {
            std::fprintf(stderr, "%s; %s runs untraced\n", error.what(),
                         program_invocation_short_name);
            return false;
        }
        const auto [trace, bytes] = out_.to().bytes();
        // Drained memory is reused, so no reference is the first access to one of its pages.
        if (table_->reader.load(relaxed) != 0)  // relaxed: set when the table was made
            populate(const_cast<std::byte*>(trace), bytes);
        record_new_modules(out_.to(), modules_);
        record_what_was_before();
        return true;
    }
    void open_table(const char* file) {
        if (file == nullptr || *file == '\0') {
            constexpr std::uint32_t places = 255;
            memory_ = new storage::mapping(
                storage::mapping::reserve(open_references_table::bytes_for(places + 1)));
            table_ = static_cast<open_references_table*>(static_cast<void*>(memory_->data()));
            table_->begin({.places = places});
            return;
        }
        const file_descriptor fd = storage::open_file(file);
        const std::uint64_t bytes = storage::file_bytes(fd.get());
        memory_ = new storage::mapping(storage::mapping::of_file(file, fd.get(), bytes));
        table_ = static_cast<open_references_table*>(static_cast<void*>(memory_->data()));
        if (!table_->is_sound(bytes)) fail_setup(file, fault_at(0, "no table of open references"));
    }
    /// This process previously ran another program, which exec has replaced: its threads are gone.
    void record_what_was_before() noexcept {
        const auto own = static_cast<std::uint32_t>(::getpid());
        for (std::uint32_t i = 1; i < table_->places; ++i) {
            open_references& each = table_->place(i);
            // relaxed, all: of this process, whose other threads exec has ended
            if (each.thread.load(relaxed) == 0) continue;
            if (each.process.load(relaxed) != own) continue;
            each.note_cut_off();
            out_.record(each);
            give_back(each);
        }
    }

    /// Takes the page faults now, and locks the pages where that is permitted.
    static void populate(void* memory, std::size_t bytes) noexcept {
        static_cast<void>(
            storage::mapping::populate_memory(static_cast<std::byte*>(memory), bytes));
        static_cast<void>(::mlock(memory, bytes));
    }

    // --- Places

    /// One for each used place. Constant time.
    void make_own_places() {
        const std::size_t bytes = table_->places * sizeof(impl::own_place);
        void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) fail_setup("memory for the threads", "cannot be mapped", errno);
#if defined(MADV_WIPEONFORK)
        static_cast<void>(::madvise(memory, bytes, MADV_WIPEONFORK));
#endif
        own_places_ = static_cast<impl::own_place*>(memory);
    }

    /// The thread's place, busy, with room for a reference and its extension; null: it is not
    /// traced. `frame` is an address in the frame of its hook.
    [[nodiscard]] impl::own_place* make_room(std::uintptr_t frame) noexcept {
        impl::own_place* own = impl::current;
        if (own == &impl::refused) return count(table_->untraced_references);
        // Also in a child whose fork was not announced.
        if (own->place == nullptr) {
            own = begin_thread();
            if (own == nullptr) return nullptr;
        }
        // relaxed, to the end: own thread's, ordered for its signal handlers by the fence
        const bool is_busy = !impl::own_place::is_idle(own->state.load(relaxed));
        // The tracing has called its own hooks.
        if (is_busy && impl::tracing) {
            if (table_->traces_itself == 0) return count(own->place->suppressed);
            static_cast<void>(count(own->place->self_fed));
        }
        for (unsigned depth = 1;; ++depth) {
            const std::uintptr_t state = own->state.load(relaxed);
            own->state.store(frame, relaxed);
            signal_fence(seq_cst);
            if (impl::own_place::is_idle(state)) break;
            if (!impl::tracing && was_left(state, frame)) {
                own->place->note_cut_off();
                break;
            }
            own->state.store(state, relaxed);
            if (depth == most_depth)  // otherwise this would never end
                return count(impl::tracing ? own->place->suppressed : own->place->lost_references);
            own = next_place(*own);
            if (own == nullptr) return count(table_->untraced_references);
        }
        if (own->place->end.load(relaxed) >= own->place->limit) {  // relaxed: as above
            const impl::undisturbed_tracing scope;
            tell_stack();
            out_.record(*own->place);
            if (out_.has_stopped()) {  // the program continues untraced
                stage_.store(off, relaxed);
                impl::current = &impl::nowhere;
                return nullptr;
            }
        }
        return own;
    }

    /// Whether the hook that made its place busy was left, because a signal handler that
    /// interrupted it jumped out: then no frame can be above its own. This holds for frames of one
    /// stack, which is only known for the thread's own stack; other stacks may be resumed.
    [[nodiscard]] static bool was_left(std::uintptr_t hook, std::uintptr_t here) noexcept {
        if (here + impl::frame_mark::spread < hook) return false;
        const auto own_stack = find_stack();
        const bool is_one_stack = own_stack.low <= hook && here < own_stack.high;
        if (!is_one_stack) return false;
        // A handler's stack may be a variable of the program, located above the hook's frame.
        stack_t handlers{};
        return ::sigaltstack(nullptr, &handlers) == 0 && (handlers.ss_flags & SS_ONSTACK) == 0;
    }

    [[nodiscard]] impl::own_place* begin_thread() noexcept {
        // relaxed: a trace that is off stays so, and otherwise `begin` looks
        if (stage_.load(relaxed) == off || impl::tracing) return nullptr;
        const impl::undisturbed_tracing scope;
        if (!begin()) return nullptr;
        impl::own_place* const own = take_place();
        if (own == nullptr) {
            impl::current = &impl::refused;
            // relaxed: a counter
            table_->untraced_threads.fetch_add(1, relaxed);
            return count(table_->untraced_references);
        }
        impl::current = own;
        ::pthread_setspecific(at_thread_end_, this);
        return own;
    }
    /// A free place, idle; null if there is none.
    [[nodiscard]] impl::own_place* take_place() noexcept {
        const auto thread = static_cast<std::uint32_t>(::syscall(SYS_gettid));
        for (std::uint32_t i = 1; i < table_->places; ++i) {
            open_references& each = table_->place(i);
            std::uint32_t nobody = 0;
            // order: place.take:A pairs with place.give_back:A, place.free:A
            if (!each.thread.compare_exchange_strong(nobody, thread, acquire)) continue;
            // relaxed, to the end: own thread's
            each.process.store(static_cast<std::uint32_t>(::getpid()), relaxed);
            populate(&each, sizeof each);
            each.end.store(0, relaxed);
            each.extensions = 0;
            each.limit = reference_recorder::limit(*table_);
            impl::own_place& own = own_places_[i];
            own.place = &each;
            own.next = nullptr;
            own.has_told_stack = false;
            own.skips_blocks = table_->skips_blocks != 0;
            own.state.store(own.idle_state(), relaxed);
            return &own;
        }
        return nullptr;
    }
    [[nodiscard]] impl::own_place* next_place(impl::own_place& of) noexcept {
        if (of.next == nullptr) {
            const impl::undisturbed_tracing scope;
            of.next = take_place();
        }
        return of.next;
    }
    static void give_back(open_references& place) noexcept {
        // order: place.give_back:A pairs with place.take:A, place.look:A
        place.thread.store(0, release);
    }
    template <class Visit>
    void for_each_place(Visit visit) noexcept {
        for (auto* own = impl::current; own != nullptr && own->place != nullptr;) {
            auto* const next = own->next;
            visit(*own);
            own = next;
        }
    }
    /// The thread's last hook may be called later: the thread then takes a place again, and ends
    /// again.
    static void end_thread(void* trace) noexcept {
        auto& self = *static_cast<reference_trace*>(trace);
        const impl::undisturbed_tracing scope;
        self.for_each_place([&self](impl::own_place& each) {
            // relaxed, to the end: own thread's
            if (!impl::own_place::is_idle(each.state.load(relaxed))) each.place->note_cut_off();
            self.record(each);
            open_references& place = *each.place;
            each.place = nullptr;
            each.state.store(0, relaxed);
            give_back(place);
        });
        impl::current = &impl::nowhere;
    }
    [[nodiscard]] static bool keep_waiting() noexcept;
    /// The child's thread takes its own places.
    static void in_child() noexcept {
        impl::current = &impl::nowhere;
    }

    // --- Recording

    /// Records the contents of a thread's place. Its hooks are suppressed during this.
    void record(impl::own_place& own) noexcept {
        const impl::frame_mark here{};
        // relaxed, to the end: own thread's
        const std::uintptr_t state = own.state.load(relaxed);
        own.state.store(here.address(), relaxed);
        tell_stack();
        out_.record(*own.place);
        own.state.store(state, relaxed);
    }
    /// Records the location of this thread's stack, once. Not before the thread has many references
    /// or ends, because this requires reading all mappings.
    void tell_stack() noexcept {
        impl::own_place& first = *impl::current;
        if (first.place == nullptr || first.has_told_stack) return;
        first.has_told_stack = true;
        const impl::frame_mark here{};
        const auto stack = find_stack();
        if (here.address() < stack.low || here.address() >= stack.high) return;
        const std::uint32_t thread = first.place->thread.load(relaxed);  // relaxed: own thread's
        out_.to().record<thread_stack>(thread, address(stack.low), address(stack.high));
    }
    [[nodiscard]] static v1::impl::address_range find_stack() noexcept {
        auto& own_stack = impl::own_stack;
        if (own_stack.high == 0) own_stack = v1::impl::find_own_stack();
        return own_stack;
    }

    storage::mapping* memory_ = nullptr;  // stays mapped
    open_references_table* table_ = nullptr;
    atomic<int> stage_{unset};
    pthread_key_t at_thread_end_ = 0;
    impl::own_place* own_places_ = nullptr;
    unsigned long long modules_ = 0;  // that are recorded
    reference_recorder out_{};
};

/// The trace of this process.
inline constinit reference_trace the_trace;

inline bool reference_trace::keep_waiting() noexcept {
    return the_trace.out_.keeps_waiting();
}

namespace impl {
[[gnu::constructor(101), gnu::used]] inline void trace_at_start() noexcept {
    the_trace.at_start();
}
[[gnu::destructor(101), gnu::used]] inline void trace_at_exit() noexcept {
    the_trace.at_exit();
}
}  // namespace impl

}  // namespace trace_ring::inline v1::instrument
