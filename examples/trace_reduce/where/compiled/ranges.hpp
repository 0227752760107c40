// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Compares with a constant quickly: for each type and operator it asks whether the value lies in a
/// range, after values are turned into keys, unsigned integers in the same order.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <trace_ring/reduce/tables/timeline.hpp>
#include <trace_ring/reduce/tables/value_names.hpp>

#include "../names.hpp"

namespace trace_reduce::where {

/// A range of keys, both ends included.
struct range {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
};

namespace impl {

inline constexpr std::uint64_t top_bit = std::uint64_t{1} << 63;

[[nodiscard]] constexpr bool is_signed(field_type type) noexcept {
    return type >= field_type::i8 && type <= field_type::i64;
}
[[nodiscard]] constexpr bool is_real(field_type type) noexcept {
    return type == field_type::f32 || type == field_type::f64;
}

[[nodiscard]] inline std::uint64_t key_of(std::uint64_t value) noexcept {
    return value;
}
[[nodiscard]] inline std::uint64_t key_of(std::int64_t value) noexcept {
    return static_cast<std::uint64_t>(value) ^ top_bit;
}
/// The keys of NaNs lie beyond those of both infinities.
[[nodiscard]] inline std::uint64_t key_of(double value) noexcept {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    return (bits & top_bit) != 0 ? ~bits : bits | top_bit;
}
/// The value of a key.
template <class Wide>
[[nodiscard]] inline number value_of(std::uint64_t key) noexcept {
    if constexpr (std::is_floating_point_v<Wide>) {
        return number::of(std::bit_cast<double>((key & top_bit) != 0 ? key ^ top_bit : ~key));
    } else {
        return number::of(static_cast<Wide>(std::is_signed_v<Wide> ? key ^ top_bit : key));
    }
}

}  // namespace impl

/// The keys of the values of one type.
struct key_space {
    range all;   ///< of all values except NaNs
    bool whole;  ///< all values are numbers (no NaNs)
    number (*value)(std::uint64_t key);

    [[nodiscard]] static key_space of(field_type type) noexcept {
        return visit_type(type, [](auto zero) {
            using limits = std::numeric_limits<decltype(zero)>;
            using wide = widest<decltype(zero)>;
            // NOLINTNEXTLINE(bugprone-signed-char-misuse): a number of 8 bits
            auto low = static_cast<wide>(limits::lowest());
            auto high = static_cast<wide>((limits::max)());
            if constexpr (std::is_floating_point_v<wide>) {
                high = std::numeric_limits<wide>::infinity();
                low = -high;
            }
            return key_space{{impl::key_of(low), impl::key_of(high)},
                             !std::is_floating_point_v<wide>,
                             &impl::value_of<wide>};
        });
    }
};

/// The keys within `within` whose values compare with `constant` by `sign`; `value(key)` must never
/// descend. For `unequal`: the keys of equal values. For a NaN: none. About 130 calls of `value`.
template <class Value>
[[nodiscard]] std::optional<range> keys_compared(range within, comparison sign,
                                                 const number& constant, const Value& value) {
    if (constant.is_nan()) return std::nullopt;
    // The lowest key for which `holds` is false.
    const auto first = [&](auto holds) -> std::optional<std::uint64_t> {
        if (holds(value(within.high))) return std::nullopt;
        std::uint64_t low = within.low;
        std::uint64_t high = within.high;
        while (low < high) {
            const std::uint64_t middle = low + (high - low) / 2;
            holds(value(middle)) ? low = middle + 1 : high = middle;
        }
        return low;
    };
    const auto not_less = first([&](const number& v) { return v < constant; });
    const auto greater = first([&](const number& v) { return v <= constant; });
    const auto has = [sign](comparison part) {
        return sign != comparison::unequal && (sign & part) != 0;
    };
    const bool equal = has(comparison::equal) || sign == comparison::unequal;
    const auto begin = has(comparison::less) ? std::optional(within.low)
                       : equal               ? not_less
                                             : greater;
    const auto end = has(comparison::more) ? std::nullopt : equal ? greater : not_less;
    if (!begin || begin == end) return std::nullopt;
    return range{*begin, end ? *end - 1 : within.high};
}

/// Sorts the ranges and joins those that overlap.
inline void unite(std::vector<range>& ranges) {
    std::sort(ranges.begin(), ranges.end(),
              [](const range& a, const range& b) { return a.low < b.low; });
    std::size_t kept = 0;
    for (std::size_t i = 1; i < ranges.size(); ++i) {
        if (ranges[i].low <= ranges[kept].high || ranges[i].low - 1 == ranges[kept].high) {
            ranges[kept].high = (std::max)(ranges[kept].high, ranges[i].high);
        } else {
            ranges[++kept] = ranges[i];
        }
    }
    if (!ranges.empty()) ranges.resize(kept + 1);
}

// Times become ranges of ticks if the clock allows it: then no record's time is computed, and the
// index shows which sub-buffers have no such record.

/// The time since the trace began, in ns; nothing if ticks cannot be converted to ns.
[[nodiscard]] inline std::optional<std::int64_t> since_begin(const timeline& time,
                                                             std::uint64_t ticks) noexcept {
    if (!time.known()) return std::nullopt;
    return time.relative_ns(ticks);
}

/// True if a later tick never has an earlier time: the clock did not jump. Linear in the readings.
[[nodiscard]] inline bool ascends(const timeline& time) noexcept {
    if (!time.known() || !time.consistent()) return false;
    std::int64_t last = (std::numeric_limits<std::int64_t>::min)();
    const auto rises = [&](std::uint64_t ticks) {
        const std::int64_t now = since_begin(time, ticks).value_or(last);
        return std::exchange(last, now) <= now;
    };
    bool all = rises(0);
    for (const auto& reading : time.snapshots()) {
        if (reading.ticks != 0) all = all && rises(reading.ticks - 1);
        all = all && rises(reading.ticks);
    }
    return all && rises(~std::uint64_t{0});
}

/// The ticks whose time compares with `ns` by `sign`; only where times ascend.
[[nodiscard]] inline std::optional<range> ticks_compared(const timeline& time, comparison sign,
                                                         const number& ns) {
    return keys_compared({0, ~std::uint64_t{0}}, sign, ns, [&time](std::uint64_t ticks) {
        return number::of(since_begin(time, ticks).value_or(0));
    });
}

}  // namespace trace_reduce::where
