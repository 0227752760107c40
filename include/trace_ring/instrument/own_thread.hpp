// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The state of each thread's own tracing.

#include <signal.h>

#include <cerrno>
#include <cstdint>

#include <trace_ring/instrument/open_references.hpp>
#include <trace_ring/recorder/thread/own_stack.hpp>

namespace trace_ring::inline v1::instrument {

namespace impl {

/// The place where a thread adds its references. It is in memory that a fork wipes, so a child has
/// none, including one made by a direct system call, which no library sees.
struct alignas(64) own_place {
    /// place | idle: there is room, and no hook is active. An address in the frame of the active
    /// hook otherwise. 0: there is no place.
    atomic<std::uintptr_t> state;
    open_references* place;
    own_place* next;    ///< for signal handlers that interrupt a hook here; null: there is none yet
    bool skips_blocks;  ///< they are not traced
    bool has_told_stack;  ///< in the thread's first place: its stack is recorded

    static constexpr std::uintptr_t idle = 2;
    static_assert(alignof(open_references) > idle);

    [[nodiscard, gnu::always_inline]] static bool is_idle(std::uintptr_t state) noexcept {
        return (state & idle) != 0;
    }
    [[nodiscard]] std::uintptr_t idle_state() const noexcept {
        return reinterpret_cast<std::uintptr_t>(place) | idle;
    }
};

/// An address of this frame, in which the bit own_place::idle is not set.
struct alignas(4) frame_mark {
    char unused;
    /// Hooks that are called from one frame have marks less than this apart, and one that a signal
    /// handler calls is further below: there is the kernel's frame in between.
    static constexpr std::uintptr_t spread = 256;

    [[nodiscard, gnu::always_inline]] std::uintptr_t address() const noexcept {
        return reinterpret_cast<std::uintptr_t>(this);
    }
};

/// The initial place of a thread, and the place of a thread that was refused one.
inline constinit own_place nowhere{}, refused{};

inline thread_local constinit own_place* current __attribute__((tls_model("initial-exec"))) =
    &nowhere;
/// Whether the thread is setting up or recording.
inline thread_local constinit bool tracing __attribute__((tls_model("initial-exec"))) = false;

/// The thread's own stack; empty: not determined yet.
inline thread_local constinit v1::impl::address_range own_stack
    __attribute__((tls_model("initial-exec")));

/// Within its scope, the thread's signals are blocked, and its work is attributed to the tracing.
class undisturbed_tracing {
public:
    undisturbed_tracing() noexcept : errno_(errno) {
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before_);
        was_ = tracing;
        tracing = true;
    }
    ~undisturbed_tracing() {
        tracing = was_;
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
        errno = errno_;
    }
    undisturbed_tracing(const undisturbed_tracing&) = delete;
    undisturbed_tracing& operator=(const undisturbed_tracing&) = delete;

private:
    sigset_t before_{};
    int errno_;
    bool was_{};
};

}  // namespace impl

}  // namespace trace_ring::inline v1::instrument
