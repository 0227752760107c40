// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// When functions were entered whose returns are awaited, for the time that they took.
/// @code
///   calls.enter(point, stack);
///   const std::uint64_t ns = calls.leave(point, stack);  // or unknown_elapsed
/// @endcode

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include <trace_ring/point/machine/run.hpp>
#include <trace_ring/policy/clock/monotonic.hpp>

namespace trace_clauses {

/// Of one process: where a call's return address is tells it from all others that have not ended,
/// whichever thread it ends in.
class entered_calls {
public:
    /// What is left by longjmp or an exception stays until another call is there.
    void enter(std::uint32_t point, std::uint64_t stack) {
        constexpr std::size_t most = 65536;
        if (at_.size() >= most) at_.clear();
        at_[{point, stack}] = trace_ring::clock::monotonic::now();
    }
    /// Nanoseconds since it was entered; unknown_elapsed if that was not seen.
    [[nodiscard]] std::uint64_t leave(std::uint32_t point, std::uint64_t stack) {
        const auto found = at_.find({point, stack});
        if (found == at_.end()) return trace_ring::point::unknown_elapsed;
        const std::uint64_t taken = trace_ring::clock::monotonic::now() - found->second;
        at_.erase(found);
        return taken;
    }
    void clear() noexcept { at_.clear(); }

private:
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> at_;
};

}  // namespace trace_clauses
