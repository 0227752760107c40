// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A recorder whose set-up failed and that records nothing instead: if_setup_fails::record_nothing.
/// It stays as a recorder of static storage is before its constructor runs, whose records are
/// refused, but with every gate shut and a cold path that does nothing.

#include <time.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#if !defined(__cpp_exceptions)
#include <setjmp.h>
#endif

#include <trace_ring/recorder/thread/lanes_by_thread.hpp>
#include <trace_ring/setup_error.hpp>

namespace trace_ring::inline v1::impl {

/// The cold path of such a recorder, and why it is one.
struct no_recording : cold_path {
    const char* text = "";  ///< from malloc, or a literal if there was no memory for it
    bool owns_text = false;
    int error = 0;

    no_recording() noexcept;
    no_recording(const no_recording&) = delete;
    no_recording& operator=(const no_recording&) = delete;
    ~no_recording() {
        if (owns_text) std::free(const_cast<char*>(text));
    }
    void note(const char* why, int number) noexcept {
        error = number != 0 ? number : EIO;
        text = ::strdup(why);
        owns_text = text != nullptr;
        if (!owns_text) text = "the trace cannot be set up, and there is no memory to say why";
    }
};

struct no_recording_functions {
    static bool append(recorder_words&, event_state&, left_at, const std::uint64_t*, std::uint32_t,
                       std::uint32_t, open_span*) noexcept {
        return false;
    }
    [[nodiscard]] static opened open(recorder_words&, event_state&, left_at, std::uint32_t,
                                     const void*) noexcept {
        return {};
    }
    static void close(recorder_words&, lane_state&, event_state&, std::uint32_t, std::uint32_t,
                      open_span*) noexcept {}
    static void discard(recorder_words&, lane_state&) noexcept {}
    static void hold(recorder_words&, lane_state&, mark_type, const void*) noexcept {}
    static void register_type(recorder_words&, event_state&) noexcept {}
    static std::size_t enable(recorder_words&, name_view, bool) noexcept { return 0; }
    static void shut(recorder_words&, bool) noexcept {}
    static int snapshot(recorder_words& of, const char*) noexcept {
        return static_cast<const no_recording*>(of.cold)->error;
    }
    static void flush_thread(recorder_words&) noexcept {}
    static void pause_ends(recorder_words&) noexcept {}
    static void lose(recorder_words&, std::uint32_t) noexcept {}
};
inline no_recording::no_recording() noexcept
    : cold_path{&no_recording_functions::append,     &no_recording_functions::open,
                &no_recording_functions::close,      &no_recording_functions::discard,
                &no_recording_functions::hold,       &no_recording_functions::register_type,
                &no_recording_functions::enable,     &no_recording_functions::shut,
                &no_recording_functions::snapshot,   &no_recording_functions::flush_thread,
                &no_recording_functions::pause_ends, &no_recording_functions::lose} {}

/// Takes the detour of set-ups that fail (setup_error.hpp) for the calling thread, and returns it.
/// Another thread that has it is waited for: it is setting up a recorder.
class setup_detour_taken {
public:
    explicit setup_detour_taken(void (*leave)(const setup_error&)) noexcept {
        const std::uint32_t self = kernel_thread();
        std::uint32_t other = 0;
        // order: detour.take:A pairs with detour.return:A
        while (!the_detour.thread.compare_exchange_strong(other, self, acquire)) {
            // In the child of a fork it may be a thread that only the parent has.
            if (!thread_is_gone(other)) {
                const timespec pause{0, 1'000'000};
                ::nanosleep(&pause, nullptr);
                other = 0;
            }
        }
        the_detour.leave = leave;
    }
    setup_detour_taken(const setup_detour_taken&) = delete;
    setup_detour_taken& operator=(const setup_detour_taken&) = delete;
    ~setup_detour_taken() {
        // order: detour.return:A pairs with detour.take:A
        the_detour.thread.store(0, release);
    }
};

#if !defined(__cpp_exceptions)
/// Where the set-up that has the detour continues, and what it finds there.
struct setup_landing {
    ::jmp_buf place;
    setup_error* failed;
};
inline setup_landing the_landing{};
#endif

/// The lanes of a recorder; null if set-up failed and the options say to record nothing, in which
/// case the cold path of `words` records nothing. Throws setup_error otherwise. Without exceptions,
/// memory and descriptors of a set-up that failed are not given back.
[[nodiscard, gnu::cold, gnu::noinline]] inline lanes_by_thread* make_lanes(
    const recorder_options& options, const clock_functions& hot_clock, recorder_words& words) {
    if (options.on_failure == if_setup_fails::fail)
        return new lanes_by_thread(options, hot_clock, words);
    // Before it is needed: there may be no memory then.
    auto* const made = new no_recording;
    const auto report = [&](const setup_error& error) {
        made->note(error.what(), error.code().value());
        words.gates.lead_to(gates_that_are<layout::gate_recorder_off>());
        words.library.gates.lead_to(gates_that_are<layout::gate_recorder_off>());
        words.cold = made;
        if (options.report_failure != nullptr) return options.report_failure(error);
        std::fprintf(stderr, "%s; nothing is recorded\n", made->text);
    };
#if defined(__cpp_exceptions)
    try {
        const setup_detour_taken detour([](const setup_error& error) { throw error; });
        auto* const done = new lanes_by_thread(options, hot_clock, words);
        delete made;
        return done;
    } catch (const setup_error& error) {
        report(error);
    } catch (const std::bad_alloc&) {
        report(setup_error(options.file.empty() ? "memory" : options.file, "cannot allocate memory",
                           ENOMEM));
    }
#else
    setup_error* volatile failed = nullptr;
    {
        const setup_detour_taken detour([](const setup_error& error) {
            the_landing.failed = new setup_error(error);
            ::longjmp(the_landing.place, 1);
        });
        void* const place =
            ::operator new (sizeof(lanes_by_thread), std::align_val_t{alignof(lanes_by_thread)});
        if (::setjmp(the_landing.place) == 0) {
            auto* const done = ::new (place) lanes_by_thread(options, hot_clock, words);
            delete made;
            return done;
        }
        lanes_by_thread::free_index(*static_cast<lanes_by_thread*>(place));
        ::operator delete (place, std::align_val_t{alignof(lanes_by_thread)});
        failed = the_landing.failed;
    }
    report(*failed);
    delete failed;
#endif
    return nullptr;
}

}  // namespace trace_ring::inline v1::impl
