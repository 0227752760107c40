// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// How long a span took. No record has it: the program that pairs begins and ends passes it to
/// the writer with the end.

#include <algorithm>
#include <cstdint>
#include <string_view>

#include <trace_ring/exporter/text/append.hpp>
#include <trace_ring/reduce/tables/timeline.hpp>

namespace trace_ring::inline v1::exporter {

struct span_length {
    std::uint64_t ticks = 0;
    bool interval = false;  ///< of times that are lower bounds, or one of them

    /// Nanoseconds; the clock is known.
    [[nodiscard]] std::uint64_t ns(const reduce::timeline& time) const {
        constexpr double most = 9.2e18;
        return static_cast<std::uint64_t>(
            std::clamp(time.ns(static_cast<double>(ticks)) + 0.5, 0.0, most));
    }
};

namespace impl {

/// Appends nanoseconds exactly, in the unit that suits them: `800ns`, `12.5us`, `3ms`, `1.25s`.
inline void append_length(text_buffer& out, std::uint64_t ns) {
    struct unit {
        std::uint64_t ns;
        std::string_view name;
    };
    constexpr unit units[] = {{1'000'000'000, "s"}, {1'000'000, "ms"}, {1000, "us"}, {1, "ns"}};
    const auto* in = units;
    while (in->ns > 1 && ns < in->ns) ++in;
    append_number(out, ns / in->ns);
    std::uint64_t rest = ns % in->ns;
    if (rest != 0) out += '.';
    for (; rest != 0; rest %= in->ns) {
        rest *= 10;
        append_number(out, rest / in->ns);
    }
    out += in->name;
}

}  // namespace impl

}  // namespace trace_ring::inline v1::exporter
