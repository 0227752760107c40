// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What the recorders of the fuzz targets record.

#include <cstdint>
#include <string_view>

#include <trace_ring/record/event.hpp>
#include <trace_ring/record/event/span.hpp>
#include <trace_ring/record/event/value_names.hpp>

namespace trace_ring_test::fuzz {

struct number : trace_ring::event<"fuzz.number", trace_ring::field<"value", std::uint32_t>> {
    static constexpr bool counted = true;
};
struct words : trace_ring::event<"fuzz.words", trace_ring::field<"text", std::string_view>,
                                 trace_ring::field<"value", std::uint64_t>> {};
struct stretch : trace_ring::span<"fuzz.stretch", trace_ring::field<"value", std::uint32_t>> {};
enum class grade : std::uint32_t { low, high };
struct graded {
    std::uint32_t value;
    graded(std::uint32_t of) : value(of) {}  // implicit: it is recorded like the others
};

}  // namespace trace_ring_test::fuzz

template <>
struct trace_ring::names_of<trace_ring_test::fuzz::grade> {
    using enum trace_ring_test::fuzz::grade;
    static constexpr value_name<trace_ring_test::fuzz::grade> list[] = {{low, "low"},
                                                                        {high, "high"}};
};
template <>
struct trace_ring::as_field<trace_ring_test::fuzz::graded> {
    using type = trace_ring_test::fuzz::grade;
    static type convert(const trace_ring_test::fuzz::graded& of) noexcept {
        return static_cast<type>(of.value);
    }
};

namespace trace_ring_test::fuzz {

struct rare : trace_ring::event<"fuzz.rare", trace_ring::field<"value", graded>> {
    static constexpr std::uint32_t ring = 1;
};

}  // namespace trace_ring_test::fuzz
