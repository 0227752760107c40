// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// How much is unread when a reader is notified: `records(n)`, `bytes(n)`, `percent(n)` of the
/// ring's bytes, `age(duration)` of the oldest record, or `circular`: never. The debug store calls
/// a buffer circular if its threshold is above its maximum.

#include <cstdint>

#include <trace_ring/nanoseconds.hpp>
#include <trace_ring/policy/notify/notify.hpp>

namespace trace_ring::inline v1::notify {

/// What a threshold counts.
enum class measure : std::uint8_t {
    nothing,  ///< for `circular`
    records,
    bytes,    ///< as in `progress`
    percent,  ///< of the bytes that the ring has for records
    age,      ///< in nanoseconds, by CLOCK_MONOTONIC
};

/// When a reader is notified.
struct threshold {
    std::uint64_t amount = 0;       ///< how many, of what `of` says
    measure of = measure::nothing;  ///< what is counted

    /// The number in `at` that is compared: records or bytes.
    [[nodiscard]] constexpr std::uint64_t counted(const progress& at) const noexcept {
        return of == measure::records ? at.records : at.bytes;
    }
    /// The most records or bytes that the ring can hold.
    [[nodiscard]] constexpr std::uint64_t most(const progress& at) const noexcept {
        return of == measure::records ? at.most_records : at.most_bytes;
    }
    /// The threshold in records or bytes; at least 1.
    [[nodiscard]] constexpr std::uint64_t distance(const progress& at) const noexcept {
        if (of != measure::percent) return amount;
        const std::uint64_t part =
            at.most_bytes / 100 * amount + at.most_bytes % 100 * amount / 100;
        return part == 0 ? 1 : part;
    }
};

/// So many unread records.
[[nodiscard]] consteval threshold records(std::uint64_t count) {
    return {count, measure::records};
}
/// So many unread bytes.
[[nodiscard]] consteval threshold bytes(std::uint64_t count) {
    return {count, measure::bytes};
}
/// From 1 to 100.
[[nodiscard]] consteval threshold percent(std::uint64_t share) {
    return {share, measure::percent};
}
/// The oldest unread record is so old.
[[nodiscard]] consteval threshold age(nanoseconds limit) {
    const std::int64_t ns = limit.count();
    return {ns > 0 ? static_cast<std::uint64_t>(ns) : 0, measure::age};
}
inline constexpr threshold circular{};  ///< no threshold: nobody is notified

}  // namespace trace_ring::inline v1::notify
