// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The entry times and arguments of functions whose returns are traced.
/// @code
///   calls.enter(point, stack, {now, kept});
///   const entered_call begun = calls.leave(point, stack);
/// @endcode

#include <cstddef>
#include <cstdint>
#include <utility>

#include <trace_ring/point/machine/run.hpp>
#include <trace_ring/policy/clock/monotonic.hpp>

#include "../firings/kept_words.hpp"
#include "../firings/latest.hpp"

namespace trace_clauses {

struct entered_call {
    std::uint64_t time = 0;  ///< CLOCK_MONOTONIC, ns; 0: unknown
    kept_words kept{};

    [[nodiscard]] std::uint64_t elapsed() const noexcept {
        return time == 0 ? trace_ring::point::unknown_elapsed
                         : trace_ring::clock::monotonic::now() - time;
    }
};

/// The calls of one process. The address of its return address identifies a call among all that
/// have not ended, in whichever thread it ends.
class entered_calls {
public:
    /// The entry of a call that was left by longjmp or an exception remains until another call
    /// replaces it.
    void enter(std::uint32_t point, std::uint64_t stack, const entered_call& begun) {
        at_.put({point, stack}, begun);
    }
    /// Returns the stored entry. It has faults if the entry was not seen.
    [[nodiscard]] entered_call leave(std::uint32_t point, std::uint64_t stack) {
        return at_.take({point, stack})
            .value_or(entered_call{.time = 0, .kept = {.words = {}, .faults = 1}});
    }

private:
    latest<std::pair<std::uint32_t, std::uint64_t>, entered_call> at_{65536};
};

}  // namespace trace_clauses
