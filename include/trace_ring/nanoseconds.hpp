// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A length of time. It is made of any std::chrono::duration, so that `.keep_for = 10s` works, but
/// does not include `<chrono>`, which costs more to compile than the recorder.

#include <cstdint>

namespace trace_ring::inline v1 {

/// Nanoseconds, with their sign: up to 292 years.
class nanoseconds {
public:
    constexpr nanoseconds() noexcept = default;
    /// From a number of nanoseconds.
    constexpr explicit nanoseconds(std::int64_t count) noexcept : count_(count) {}
    /// A std::chrono::duration, cut to whole nanoseconds.
    template <class Duration>
    requires requires(const Duration& d) {
        typename Duration::rep;
        Duration::period::num / Duration::period::den;
        d.count();
    }
    constexpr nanoseconds(const Duration& length) noexcept {
        constexpr std::int64_t second = 1'000'000'000;
        constexpr std::int64_t num = Duration::period::num;
        constexpr std::int64_t den = Duration::period::den;
        // In whole numbers without overflow: units are multiples or fractions of a nanosecond.
        if constexpr (second % den == 0) {
            count_ = static_cast<std::int64_t>(length.count() * (num * (second / den)));
        } else if constexpr (den % second == 0) {
            count_ = static_cast<std::int64_t>(length.count() * num / (den / second));
        } else {
            count_ = static_cast<std::int64_t>(static_cast<long double>(length.count()) *
                                               static_cast<long double>(num) * second / den);
        }
    }

    /// The number of nanoseconds.
    [[nodiscard]] constexpr std::int64_t count() const noexcept { return count_; }

private:
    std::int64_t count_ = 0;
};

}  // namespace trace_ring::inline v1
