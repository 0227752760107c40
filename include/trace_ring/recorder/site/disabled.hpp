// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The recorder where TRACE_RING_DISABLE is defined: the same names, which do nothing. No file is
/// made, no event type is registered, `record` returns false, and values are still checked.
/// Elsewhere this header is empty.
///
/// It is the same class, of the same size, as in files that trace, so that these and those pass a
/// recorder to each other, have one as a member, and destroy it:
/// @code
///   constructed by a file that     used by a file that traces     used by one that does not
///   traces                         records                        does nothing
///   does not trace                 as one that is not constructed does nothing
///                                  yet: each record is refused
/// @endcode
/// Its functions belong to another class, and its options are another type, so the linker keeps
/// them apart from the real ones. Reservations, spans, runtime events, sessions and rings are
/// other types, too: a program that passes them between such files does not link. An inline
/// function of the user's that both compile is one function, and the linker chooses which.

#if defined(TRACE_RING_DISABLE)

#include <cstddef>
#include <type_traits>

#include <trace_ring/fwd.hpp>
#include <trace_ring/record/event.hpp>
#include <trace_ring/recorder/site/made_of.hpp>

namespace trace_ring::inline v1 {

struct recorder_statistics;

inline namespace disabled {

struct recorder_options;

namespace nothing {

class reservation {
public:
    constexpr reservation() noexcept = default;
    reservation(reservation&&) noexcept = default;
    reservation& operator=(reservation&&) noexcept = default;
    ~reservation() = default;
    [[nodiscard]] explicit constexpr operator bool() const noexcept { return false; }
    constexpr bool commit() noexcept { return false; }
    constexpr void discard() noexcept {}
};
template <class E>
class scoped;  // spans.hpp

/// The names as the kind has them: with a lane for each thread, or for each processor.
template <class Kind>
struct names {
    using reservation = nothing::reservation;
};
template <class Kind>
requires(
    !std::is_void_v<typename Kind::template policy_of<family::claim, void>>) struct names<Kind> {
    template <impl::told_event E>
    using reservation = nothing::reservation;
};

}  // namespace nothing

template <class Kind>
class silent_recorder : public nothing::names<Kind> {
public:
    template <impl::told_event E>
    using scoped = nothing::scoped<E>;

    template <impl::told_event E, class... Values>
    bool record(const Values&...) noexcept {
        static_assert(impl::takes<E, Values...>());
        return false;
    }
    template <impl::told_event E, class... Values>
    [[nodiscard]] nothing::reservation reserve(const Values&...) noexcept {
        static_assert(impl::takes<E, Values...>());
        return {};
    }
    template <impl::told_event E, class... Values>
    [[nodiscard]] scoped<E> scope(const Values&...) noexcept {
        static_assert(E::kind == event_kind::span, "trace_ring: scope() takes a trace_ring::span");
        static_assert(impl::takes<E, Values...>());
        return {};
    }
    void pause() noexcept {}
    void resume() noexcept {}
    template <impl::told_event E>
    std::size_t enable(bool) noexcept {
        return 0;
    }
    std::size_t enable(name_view, bool) noexcept { return 0; }
    int snapshot(const char*) noexcept { return 0; }
    void pause_ends() noexcept {}
    void flush_thread() noexcept {}
    [[nodiscard]] auto path() const noexcept;
    [[nodiscard]] int descriptor() const noexcept { return -1; }
    [[nodiscard]] auto bytes() const noexcept;
    [[nodiscard]] recorder_statistics statistics() const noexcept;
    [[nodiscard]] bool restartable() const noexcept { return false; }
};

}  // namespace disabled

template <class Kind>
class basic_recorder : public silent_recorder<Kind> {
public:
    explicit basic_recorder(const recorder_options&) noexcept {}
    /// Any other argument does not compile; the message says how to construct a recorder.
    template <class... Given>
    requires impl::no_options<basic_recorder, recorder_options, Given...>
    explicit basic_recorder(Given&&...) noexcept { static_cast<void>(impl::made_of<Given...>()); }
    basic_recorder(const basic_recorder&) = delete;
    basic_recorder& operator=(const basic_recorder&) = delete;
    ~basic_recorder() {
        if (retire_ != nullptr) retire_(this);
    }

private:
    // Zeros: to a file that traces it is one whose constructor has not run.
    alignas(64) std::byte words_[impl::recorder_bytes - 64]{};
    void (*retire_)(void* recorder) noexcept = nullptr;
};
static_assert(sizeof(recorder) == impl::recorder_bytes);

}  // namespace trace_ring::inline v1

#endif
