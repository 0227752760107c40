// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What the recorders of the fuzz targets record.

#include <cstdint>
#include <string_view>

#include <trace_ring/record/event.hpp>

namespace trace_ring_test::fuzz {

struct number : trace_ring::event<"fuzz.number", trace_ring::field<"value", std::uint32_t>> {
    static constexpr bool counted = true;
};
struct words : trace_ring::event<"fuzz.words", trace_ring::field<"text", std::string_view>,
                                 trace_ring::field<"value", std::uint64_t>> {};
struct stretch : trace_ring::span<"fuzz.stretch", trace_ring::field<"value", std::uint32_t>> {};
struct rare : trace_ring::event<"fuzz.rare", trace_ring::field<"value", std::uint32_t>> {
    static constexpr std::uint32_t ring = 1;
};

}  // namespace trace_ring_test::fuzz
