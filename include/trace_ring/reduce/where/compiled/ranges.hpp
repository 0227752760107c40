// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Compares with a constant quickly: for each type and operator it asks whether the value lies in a
/// range, after values are turned into keys, unsigned integers in the same order. So one loop
/// serves all types, with a load, a subtraction and a comparison for each record.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <trace_ring/record/field.hpp>
#include <trace_ring/reduce/tables/timeline.hpp>
#include <trace_ring/reduce/where/expression.hpp>

namespace trace_ring::inline v1::reduce::where {

/// A range of keys, both ends included.
struct range {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
};

namespace impl {

inline constexpr std::uint64_t top_bit = std::uint64_t{1} << 63;

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
[[nodiscard]] inline double double_of(std::uint64_t key) noexcept {
    return std::bit_cast<double>((key & top_bit) != 0 ? key ^ top_bit : ~key);
}

}  // namespace impl

/// The keys of the values of one type.
class key_space {
public:
    explicit key_space(field_type type) noexcept {
        const std::size_t bits = 8 * size_of(type);
        switch (type) {
            case field_type::i8:
            case field_type::i16:
            case field_type::i32:
            case field_type::i64: {
                const std::uint64_t half = impl::top_bit >> (64 - bits);
                what_ = of::signed_number;
                all_ = {impl::top_bit - half, impl::top_bit + (half - 1)};
                break;
            }
            case field_type::f32:
            case field_type::f64:
                what_ = of::real;
                all_ = {impl::key_of(-std::numeric_limits<double>::infinity()),
                        impl::key_of(std::numeric_limits<double>::infinity())};
                break;
            default:
                all_ = {0, ~std::uint64_t{0} >> (64 - bits)};
        }
    }

    /// The keys of all values except NaNs.
    [[nodiscard]] range all() const noexcept { return all_; }
    /// Whether all values are numbers (no NaNs).
    [[nodiscard]] bool whole() const noexcept { return what_ != of::real; }
    [[nodiscard]] number value(std::uint64_t key) const noexcept {
        switch (what_) {
            case of::signed_number:
                return number::of(static_cast<std::int64_t>(key ^ impl::top_bit));
            case of::real:
                return number::of(impl::double_of(key));
            default:
                return number::of(key);
        }
    }

private:
    enum class of : std::uint8_t { unsigned_number, signed_number, real };

    of what_ = of::unsigned_number;
    range all_;
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
            if (holds(value(middle))) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low;
    };
    const auto not_less = first([&](const number& v) { return v < constant; });
    const auto greater = first([&](const number& v) { return v <= constant; });
    const auto up_to = [&within](std::optional<std::uint64_t> end) -> std::optional<range> {
        if (!end) return within;
        if (*end == within.low) return std::nullopt;
        return range{within.low, *end - 1};
    };
    const auto from = [&within](std::optional<std::uint64_t> begin) -> std::optional<range> {
        if (!begin) return std::nullopt;
        return range{*begin, within.high};
    };
    switch (sign) {
        case comparison::less:
            return up_to(not_less);
        case comparison::at_most:
            return up_to(greater);
        case comparison::more:
            return from(greater);
        case comparison::at_least:
            return from(not_less);
        case comparison::equal:
        case comparison::unequal:
            break;
    }
    if (not_less == greater) return std::nullopt;
    return range{*not_less, greater ? *greater - 1 : within.high};
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

/// Which of up to 64 values lie in the ranges, as bits. The values are of this type, the first at
/// `at`, `stride` bytes apart.
[[nodiscard]] inline std::uint64_t which_within(const std::vector<range>& ranges, field_type type,
                                                const std::byte* at, std::ptrdiff_t stride,
                                                std::size_t count);

namespace impl {

template <class Holds, class Value>
[[nodiscard]] std::uint64_t mask_of(const std::byte* at, std::ptrdiff_t stride, std::size_t count,
                                    const Holds& holds, Value) {
    using wide = std::conditional_t<
        std::is_floating_point_v<Value>, double,
        std::conditional_t<std::is_signed_v<Value>, std::int64_t, std::uint64_t>>;
    std::uint64_t mask = 0;
    for (std::size_t i = 0; i < count; ++i) {
        Value value;
        std::memcpy(&value, at, sizeof value);
        at += stride;
        mask |= std::uint64_t{holds(key_of(static_cast<wide>(value)))} << i;
    }
    return mask;
}

template <class Holds>
[[nodiscard]] std::uint64_t mask_of_type(field_type type, const std::byte* at,
                                         std::ptrdiff_t stride, std::size_t count,
                                         const Holds& holds) {
    const auto of = [&](auto value) { return mask_of(at, stride, count, holds, value); };
    switch (type) {
        case field_type::u8:
        case field_type::boolean:
        case field_type::character:
            return of(std::uint8_t{});
        case field_type::u16:
            return of(std::uint16_t{});
        case field_type::u32:
            return of(std::uint32_t{});
        case field_type::u64:
        case field_type::address:
            return of(std::uint64_t{});
        case field_type::i8:
            return of(std::int8_t{});
        case field_type::i16:
            return of(std::int16_t{});
        case field_type::i32:
            return of(std::int32_t{});
        case field_type::i64:
            return of(std::int64_t{});
        case field_type::f32:
            return of(float{});
        case field_type::f64:
            return of(double{});
    }
    return 0;
}

[[nodiscard]] inline bool within(const std::vector<range>& ranges, std::uint64_t key) noexcept {
    const auto after = std::upper_bound(ranges.begin(), ranges.end(), key,
                                        [](std::uint64_t k, const range& r) { return k < r.low; });
    return after != ranges.begin() && key <= (after - 1)->high;
}

}  // namespace impl

inline std::uint64_t which_within(const std::vector<range>& ranges, field_type type,
                                  const std::byte* at, std::ptrdiff_t stride, std::size_t count) {
    if (ranges.empty()) return 0;
    if (ranges.size() == 1) {
        const std::uint64_t low = ranges[0].low;
        const std::uint64_t span = ranges[0].high - low;
        return impl::mask_of_type(type, at, stride, count,
                                  [low, span](std::uint64_t key) { return key - low <= span; });
    }
    return impl::mask_of_type(type, at, stride, count,
                              [&ranges](std::uint64_t key) { return impl::within(ranges, key); });
}

// Times become ranges of ticks where the clock allows it: then no record's time is computed, and
// the index tells which sub-buffers have no such record.

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
    for (const auto& reading : time.readings()) {
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

}  // namespace trace_ring::inline v1::reduce::where
