// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The unit of a field that is a duration: what one count of it is worth.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <trace_ring/record/event/names_shape.hpp>
#include <trace_ring/record/field.hpp>

namespace trace_ring::inline v1::reduce {

struct duration_unit {
    std::uint64_t num = 1;  ///< seconds, reduced
    std::uint64_t den = 1;
    std::uint64_t times = 1;  ///< nanoseconds: this many, divided by `over`; reduced
    std::uint64_t over = 1;
    std::string suffix{};  ///< "ms"; as std::format writes it if it has no name: "[1/3]s"

    struct named {
        const char* name;
        std::uint64_t num, den;  ///< seconds, reduced
    };
    static constexpr named with_names[] = {{"ns", 1, 1'000'000'000},
                                           {"us", 1, 1'000'000},
                                           {"ms", 1, 1'000},
                                           {"s", 1, 1},
                                           {"min", 60, 1},
                                           {"h", 3600, 1},
                                           {"d", 86400, 1},
                                           {"ps", 1, 1'000'000'000'000},
                                           {"fs", 1, 1'000'000'000'000'000}};

    /// Nothing if there is no such unit: it is zero, or one count is more than 292 years.
    [[nodiscard]] static std::optional<duration_unit> of(std::uint64_t num, std::uint64_t den) {
        if (num == 0 || den == 0) return std::nullopt;
        duration_unit made;
        const std::uint64_t common = std::gcd(num, den);
        made.num = num / common;
        made.den = den / common;
        constexpr std::uint64_t second = 1'000'000'000;
        const std::uint64_t share = std::gcd(second, made.den);
        if (made.num > (std::uint64_t{1} << 63) / (second / share)) return std::nullopt;
        made.times = made.num * (second / share);
        made.over = made.den / share;
        made.suffix = made.name();
        return made;
    }

private:
    [[nodiscard]] std::string name() const {
        for (const named& each : with_names) {
            if (each.num == num && each.den == den) return each.name;
        }
        // Not `"/" + std::to_string(den)`: g++ 12 warns at -O3 that it overlaps itself.
        std::string out = "[";
        out += std::to_string(num);
        if (den != 1) {
            out += '/';
            out += std::to_string(den);
        }
        out += "]s";
        return out;
    }
};

namespace impl {

/// Reads the units behind the texts of a dictionary entry, if there are any; `words` become those
/// behind them. False if they make no sense: the units put before are right.
template <class Fields>
[[nodiscard]] bool read_units(std::span<const std::uint64_t>& words, Fields& fields) {
    const std::size_t count = units_words(words[0]);
    if (count > words.size()) return false;
    for (std::size_t at = 1; at < count; at += 3) {
        if (words[at] >= fields.size()) return false;
        auto& field = fields[static_cast<std::size_t>(words[at])];
        auto unit = duration_unit::of(words[at + 1], words[at + 2]);
        if (!unit || field.type > field_type::f64) return false;
        field.label = field.name + " [" + unit->suffix + "]";
        field.unit = std::make_shared<const duration_unit>(*std::move(unit));
    }
    words = words.subspan(count);
    return true;
}

}  // namespace impl

}  // namespace trace_ring::inline v1::reduce
