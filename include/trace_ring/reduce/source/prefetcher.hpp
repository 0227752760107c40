// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Fetches memory into the caches before it is read.

#include <algorithm>
#include <cstddef>

namespace trace_ring::inline v1::reduce {

/// Fetches memory that will be needed soon into the caches, part by part, while the caller does
/// other work. If it fetched everything in one step, the processor would have to wait.
class prefetcher {
public:
    prefetcher() = default;
    /// `down`: from the end to the begin, for a reader that goes backward: processors predict a
    /// sequence of accesses in one direction well.
    prefetcher(const std::byte* from, std::size_t bytes, bool down) noexcept
        : next_(down ? from + bytes - line : from),
          step_(down ? -std::ptrdiff_t{line} : std::ptrdiff_t{line}),
          bytes_(bytes) {}

    /// Fetches the part of the first `bytes` that is not fetched yet. Always inlined: compilers
    /// take a function that only fetches for one without effects, and remove calls of it.
    [[gnu::always_inline]] void fetch(std::size_t bytes) noexcept {
        for (; done_ < (std::min)(bytes, bytes_); done_ += line, next_ += step_) {
            __builtin_prefetch(next_);
        }
    }

private:
    static constexpr std::size_t line = 64;
    const std::byte* next_ = nullptr;
    std::ptrdiff_t step_ = 0;
    std::size_t bytes_ = 0;
    std::size_t done_ = 0;
};

}  // namespace trace_ring::inline v1::reduce
