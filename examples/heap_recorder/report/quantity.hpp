// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// How a report writes amounts: bytes, counts, times, shares; and the steps of an axis.

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace heap {

/// "0 B", "999 B", "1.00 KiB", "12.3 MiB", "456 GiB": three digits.
[[nodiscard]] inline std::string bytes_text(std::uint64_t bytes) {
    constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) return fmt::format("{} B", bytes);
    double value = static_cast<double>(bytes);
    std::size_t unit = 0;
    // Not 1000 KiB and more: that would be four digits.
    while (value >= 999.5 && unit + 1 < std::size(units)) {
        value /= 1024;
        ++unit;
    }
    if (value < 9.995) return fmt::format("{:.2f} {}", value, units[unit]);
    if (value < 99.95) return fmt::format("{:.1f} {}", value, units[unit]);
    return fmt::format("{:.0f} {}", value, units[unit]);
}

/// "1,234,567".
[[nodiscard]] inline std::string count_text(std::uint64_t count) {
    std::string text = std::to_string(count);
    for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, 1, ',');
    return text;
}

/// "1.234 s", "12.3 ms", "7 ns".
[[nodiscard]] inline std::string time_text(std::uint64_t nanoseconds) {
    const auto ns = static_cast<double>(nanoseconds);
    if (nanoseconds < 1'000) return fmt::format("{} ns", nanoseconds);
    if (nanoseconds < 1'000'000) return fmt::format("{:.3g} us", ns / 1e3);
    if (nanoseconds < 1'000'000'000) return fmt::format("{:.3g} ms", ns / 1e6);
    return fmt::format("{:.3f} s", ns / 1e9);
}

/// "12.3 %"; of nothing, "-".
[[nodiscard]] inline std::string share_text(std::uint64_t part, std::uint64_t whole) {
    if (whole == 0) return "-";
    return fmt::format("{:.1f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

/// The marks of an axis from 0 to at least `top`, with their labels.
struct axis {
    struct mark {
        double value;
        std::string text;
    };
    double top = 1;
    std::vector<mark> marks;
    std::string unit;
};

namespace impl {

/// An axis in one of some units, `scale[i]` to the base unit, in steps of 1, 2 or 5 times a power
/// of ten of the unit.
[[nodiscard]] inline axis make_axis(double top, std::size_t most, const std::vector<double>& scale,
                                    const std::vector<std::string>& names) {
    std::size_t unit = 0;
    while (unit + 1 < scale.size() && top >= scale[unit + 1]) ++unit;
    const double in_unit = top > 0 ? top / scale[unit] : 1;
    double step = std::pow(10.0, std::floor(std::log10(in_unit)) - 1);
    for (const double factor : {2.0, 2.5, 2.0, 2.0, 2.5, 2.0, 2.0}) {
        if (in_unit / step <= static_cast<double>(most)) break;
        step *= factor;
    }
    axis made;
    made.unit = names[unit];
    const auto count = static_cast<std::size_t>(std::ceil(in_unit / step - 1e-9));
    for (std::size_t i = 0; i <= count; ++i) {
        const double value = static_cast<double>(i) * step;
        made.marks.push_back({value * scale[unit], fmt::format("{:.6g}", value)});
    }
    made.top = made.marks.back().value;
    return made;
}

}  // namespace impl

[[nodiscard]] inline axis bytes_axis(std::uint64_t top, std::size_t most = 6) {
    return impl::make_axis(static_cast<double>(top), most,
                           {1, 0x1p10, 0x1p20, 0x1p30, 0x1p40, 0x1p50, 0x1p60},
                           {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"});
}
[[nodiscard]] inline axis time_axis(std::uint64_t nanoseconds, std::size_t most = 10) {
    return impl::make_axis(static_cast<double>(nanoseconds), most, {1, 1e3, 1e6, 1e9},
                           {"ns", "us", "ms", "s"});
}
[[nodiscard]] inline axis count_axis(std::uint64_t top, std::size_t most = 6) {
    return impl::make_axis(static_cast<double>(top), most, {1, 1e3, 1e6, 1e9},
                           {"", "thousand", "million", "billion"});
}

}  // namespace heap
