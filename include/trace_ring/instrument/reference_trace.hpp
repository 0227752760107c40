// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Sets up the trace of this process's references, gives its threads their places, and records what
/// is in them (trace_reference.hpp adds it).
///
/// What is not traced: the tracing itself. While a thread records, its signals wait, so whatever
/// calls a hook meanwhile is code of the tracing that was compiled with hooks, and is only counted;
/// and so is a reference into the trace's own memory.
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
#include <new>
#include <span>

#include <trace_ring/atomic.hpp>
#include <trace_ring/instrument/modules.hpp>
#include <trace_ring/instrument/open_references.hpp>
#include <trace_ring/instrument/own_thread.hpp>
#include <trace_ring/policy/clock/monotonic.hpp>
#include <trace_ring/policy/storage/file.hpp>
#include <trace_ring/policy/storage/mapping.hpp>
#include <trace_ring/record/event/references.hpp>
#include <trace_ring/recorder/recorder.hpp>

namespace trace_ring::inline v1::instrument {

/// What the threads of a process share. Never destroyed: hooks are called until the process ends.
class reference_trace {
public:
    constexpr reference_trace() noexcept = default;

    /// The place to which the thread's next reference is added, which is busy and has room for it;
    /// null: it is not traced. `at` is the thread's, made busy, and `limit` what it had before.
    /// Signal-safe once the trace is set up.
    [[nodiscard, gnu::noinline, gnu::cold]] open_references* make_room(
        open_references::head* at, std::int32_t limit) noexcept {
        if (at == &impl::nowhere) return begin_thread();
        auto* place = open_references::of(at);
        // A signal handler interrupted the adding of one, or the tracing meets its own hooks.
        if (limit == open_references::busy && impl::tracing) {
            if (table_->traces_itself == 0) return count(place->suppressed);
            static_cast<void>(count(place->self_fed));
        }
        for (unsigned depth = 1; limit == open_references::busy; ++depth) {
            if (depth == most_depth)  // or it would never end
                return count(impl::tracing ? place->suppressed : place->lost_references);
            place = next_place(*place);
            if (place == nullptr) return nullptr;
            limit = place->now.limit.load(relaxed);  // relaxed, here and below: own thread's
            place->now.limit.store(open_references::busy, relaxed);
            signal_fence(seq_cst);
        }
        if (place->now.end.load(relaxed) >= open_references::idle) {  // relaxed: as above
            const impl::undisturbed_tracing scope;
            record(*place);
        }
        return place;
    }

    /// Whether an address is in the trace's own memory; counts it then. Signal-safe.
    [[nodiscard, gnu::noinline, gnu::cold]] bool suppresses(open_references& at,
                                                            std::uint64_t address) noexcept {
        // relaxed: a number that only grows
        const bool is_own =
            address - trace_at_ < trace_bytes_.load(relaxed) || address - table_at_ < table_bytes_;
        if (is_own) static_cast<void>(count(at.suppressed));
        return is_own;
    }

    /// Records what this thread has open. Not from a hook, nor from a signal handler.
    void flush_thread() noexcept {
        const impl::undisturbed_tracing scope;
        for_each_place([this](open_references& each) { record(each); });
    }

    /// Before the program's constructors, and after its destructors: by the functions below.
    void at_start() noexcept {
        const impl::undisturbed_tracing scope;
        static_cast<void>(begin());
    }
    /// What comes after the last destructor stays in its place, for who drains the trace.
    void at_exit() noexcept {
        if (stage_.load(relaxed) != on) return;  // relaxed: set before the program began
        flush_thread();
        const impl::undisturbed_tracing scope;
        record_modules(recorder());  // those that came since
    }

private:
    enum stage : int { unset, setting_up, on, off };
    static constexpr unsigned most_depth = 4;

    [[nodiscard]] trace_ring::recorder& recorder() noexcept {
        return *std::launder(static_cast<trace_ring::recorder*>(static_cast<void*>(recorder_)));
    }
    /// Counts one; null.
    [[nodiscard]] static open_references* count(shared_atomic<std::uint64_t>& what) noexcept {
        what.fetch_add(1, relaxed);  // relaxed: a counter
        return nullptr;
    }

    // --- Set-up

    /// Whether the process is traced; sets up if nobody has yet, or waits for who does.
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
            open_table(::secure_getenv("TRACE_RING_OPEN_REFERENCES"));
            // Before the recorder has its own: so a thread's end is told here first.
            if (const int error = ::pthread_key_create(&at_thread_end_, end_thread))
                fail_setup(file, "no key for what a thread does at its end", error);
            new (recorder_) trace_ring::recorder({.file = file,
                                                  .limit = most_bytes,
                                                  .sub_buffer_bytes = 32768,
                                                  .full = full_mode::extend_then_discard,
                                                  .block_for = nanoseconds{10'000'000'000},
                                                  .exists = if_exists::attach});
            if (const int error = ::pthread_atfork(nullptr, nullptr, in_child))
                fail_setup(file, "fork cannot be followed", error);
        } catch (const std::exception& error) {
            std::fprintf(stderr, "%s; %s runs untraced\n", error.what(),
                         program_invocation_short_name);
            return false;
        }
        const auto [trace, bytes] = recorder().bytes();
        trace_at_ = reinterpret_cast<std::uintptr_t>(trace);
        // What is drained is used again and again: so no reference is the first to a page of it.
        if (table_->reader.load(relaxed) != 0)  // relaxed: set when the table was made
            populate(const_cast<std::byte*>(trace), bytes);
        table_at_ = reinterpret_cast<std::uintptr_t>(table_);
        table_bytes_ = open_references_table::bytes_for(table_->places);
        record_modules(recorder());
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
    /// This process was another program, which has been replaced by exec: its threads are gone.
    void record_what_was_before() noexcept {
        const auto own = static_cast<std::uint32_t>(::getpid());
        for (std::uint32_t i = 1; i < table_->places; ++i) {
            open_references& each = table_->place(i);
            // relaxed, all: of this process, whose other threads exec has ended
            if (each.thread.load(relaxed) == 0) continue;
            if (each.process.load(relaxed) != own) continue;
            record(each);
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

    [[nodiscard]] open_references* begin_thread() noexcept {
        // relaxed: a trace that is off stays so, and otherwise `begin` looks
        if (stage_.load(relaxed) == off || impl::tracing) return nullptr;
        const impl::undisturbed_tracing scope;
        if (!begin()) return nullptr;
        open_references* const place = take_place();
        if (place == nullptr) return nullptr;
        impl::own_place = &place->now;
        ::pthread_setspecific(at_thread_end_, this);
        return place;
    }
    /// A free place, busy; null if there is none.
    [[nodiscard]] open_references* take_place() noexcept {
        const auto thread = static_cast<std::uint32_t>(::syscall(SYS_gettid));
        for (std::uint32_t i = 1; i < table_->places; ++i) {
            open_references& each = table_->place(i);
            std::uint32_t nobody = 0;
            // order: place.take:A pairs with place.give_back:A, place.free:A
            if (!each.thread.compare_exchange_strong(nobody, thread, acquire)) continue;
            // relaxed, all: own thread's
            each.process.store(static_cast<std::uint32_t>(::getpid()), relaxed);
            populate(&each, sizeof each);
            each.now.limit.store(open_references::busy, relaxed);
            each.now.end.store(0, relaxed);
            each.next.store(0, relaxed);
            find_own_memory(each);
            return &each;
        }
        table_->untraced_threads.fetch_add(1, relaxed);  // relaxed: a counter
        return nullptr;
    }
    [[nodiscard]] open_references* next_place(open_references& of) noexcept {
        if (const std::uint32_t next = of.next.load(relaxed); next != 0)  // relaxed: own thread's
            return &table_->place(next);
        const impl::undisturbed_tracing scope;
        open_references* const place = take_place();
        if (place == nullptr) return nullptr;
        place->now.limit.store(open_references::idle, relaxed);  // relaxed, both: as above
        of.next.store(table_->number_of(*place), relaxed);
        return place;
    }
    static void give_back(open_references& place) noexcept {
        // order: place.give_back:A pairs with place.take:A, place.look:A
        place.thread.store(0, release);
    }
    template <class Visit>
    void for_each_place(Visit visit) noexcept {
        if (impl::own_place == &impl::nowhere) return;
        for (auto* place = open_references::of(impl::own_place); place != nullptr;) {
            const std::uint32_t next = place->next.load(relaxed);  // relaxed: own thread's
            visit(*place);
            place = next == 0 ? nullptr : &table_->place(next);
        }
    }
    /// The thread's last hook may come later: it takes a place again, and ends again.
    static void end_thread(void* trace) noexcept {
        auto& self = *static_cast<reference_trace*>(trace);
        const impl::undisturbed_tracing scope;
        self.for_each_place([&self](open_references& each) {
            self.record(each);
            give_back(each);
        });
        impl::own_place = &impl::nowhere;
    }
    /// The child's thread takes places of its own.
    static void in_child() noexcept { impl::own_place = &impl::nowhere; }

    /// The trace's memory, and one range around all of it, by which nearly all other addresses are
    /// told from it.
    void find_own_memory(open_references& place) noexcept {
        const std::uint64_t bytes = recorder().bytes().second;
        trace_bytes_.store(bytes, relaxed);  // relaxed: as above
        const std::uint64_t end = trace_at_ + bytes, table_end = table_at_ + table_bytes_;
        place.own_begin = trace_at_ < table_at_ ? trace_at_ : table_at_;
        place.own_size = (end > table_end ? end : table_end) - place.own_begin;
    }

    // --- Recording

    /// Records what is in the place, and empties it. The thread's signals wait.
    void record(open_references& place) noexcept {
        // relaxed, to the end: own thread's; who finds the place of a dead one comes after
        const auto end = static_cast<std::uint32_t>(place.now.end.load(relaxed));
        if (end == 0) return;
        const std::int32_t limit = place.now.limit.load(relaxed);
        place.now.limit.store(open_references::busy, relaxed);
        auto now = recording_progress::from(place.progress.load(relaxed));
        while (now.recorded < end) {
            const std::uint32_t count =
                table_->packs != 0 ? record_packed(place, now, end) : record_plain(place, now, end);
            ++now.sequence;
            now.recorded = static_cast<std::uint16_t>(now.recorded + count);
            signal_fence(seq_cst);
            place.progress.store(now.word(), relaxed);
        }
        now.recorded = 0;
        place.now.end.store(0, relaxed);
        signal_fence(seq_cst);
        place.progress.store(now.word(), relaxed);
        place.now.limit.store(limit, relaxed);
        find_own_memory(place);
    }
    /// Both make one record of references that are not recorded, and return of how many.
    std::uint32_t record_plain(open_references& place, const recording_progress& now,
                               std::uint32_t end) noexcept {
        const std::uint32_t from = now.recorded;
        const std::uint32_t count = end - from < most_plain ? end - from : most_plain;
        const auto* const words = reinterpret_cast<const std::uint64_t*>(&place.all[from]);
        make_record<plain_references>(place, now, count, std::span(words, std::size_t{count} * 2));
        return count;
    }
    std::uint32_t record_packed(open_references& place, const recording_progress& now,
                                std::uint32_t end) noexcept {
        const std::uint32_t from = now.recorded;
        place.packer.clear();
        const std::byte* const last =
            place.packed + open_references::packed_room - reference_packer::most_bytes;
        std::byte* to = place.packed;
        std::uint32_t at = from;
        for (; at < end && to <= last; ++at) to = place.packer.put(to, place.all[at]);
        const auto* const bytes = reinterpret_cast<const std::uint8_t*>(place.packed);
        make_record<packed_references>(
            place, now, at - from, std::span(bytes, static_cast<std::size_t>(to - place.packed)));
        return at - from;
    }
    template <class Event, class Bytes>
    void make_record(open_references& place, recording_progress now, std::uint32_t count,
                     const Bytes& bytes) noexcept {
        now.in_flight = static_cast<std::uint16_t>(count);
        place.progress.store(now.word(), relaxed);  // relaxed, to the end: as in `record`
        signal_fence(seq_cst);
        const std::uint64_t before = clock::monotonic::now();
        if (!recorder().record<Event>(place.thread.load(relaxed), table_->number_of(place),
                                      now.sequence, bytes)) {
            return lose(place, count);
        }
        const std::uint64_t waited = clock::monotonic::now() - before;
        if (waited > one_wait && table_->reader.load(relaxed) != 0) {
            place.stops.fetch_add(1, relaxed);
            place.stopped_ns.fetch_add(waited, relaxed);
        }
    }
    void lose(open_references& place, std::uint64_t references) noexcept {
        place.lost_records.fetch_add(1, relaxed);  // relaxed, both: counters
        place.lost_references.fetch_add(references, relaxed);
        // Nobody makes room any more, and the program should not wait for it again.
        const auto reader = static_cast<pid_t>(table_->reader.load(relaxed));  // relaxed: a number
        if (reader != 0 && ::kill(reader, 0) != 0 && errno == ESRCH) {
            stage_.store(off, relaxed);  // relaxed: no more than this is to be told
            impl::own_place = &impl::nowhere;
        }
    }

    /// Of a trace that is made here: as much as can be mapped.
    static constexpr std::uint64_t most_bytes = std::uint64_t{1} << (sizeof(void*) == 8 ? 34 : 28);
    /// References in a record of plain ones: two records fill a sub-buffer.
    static constexpr std::uint32_t most_plain = 1014;
    /// A writer that finds no room sleeps this long at least.
    static constexpr std::uint64_t one_wait = 50'000;

    storage::mapping* memory_ = nullptr;  // stays mapped
    open_references_table* table_ = nullptr;
    atomic<int> stage_{unset};
    pthread_key_t at_thread_end_ = 0;
    std::uint64_t trace_at_ = 0, table_at_ = 0, table_bytes_ = 0;
    atomic<std::uint64_t> trace_bytes_{0};
    alignas(trace_ring::recorder) std::byte recorder_[sizeof(trace_ring::recorder)]{};
};

/// That of this process.
inline constinit reference_trace the_trace;

namespace impl {
[[gnu::constructor(101), gnu::used]] inline void trace_at_start() noexcept {
    the_trace.at_start();
}
[[gnu::destructor(101), gnu::used]] inline void trace_at_exit() noexcept {
    the_trace.at_exit();
}
}  // namespace impl

}  // namespace trace_ring::inline v1::instrument
