// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A trace with enumerations: of every form, with values below zero and of 64 bits, with values
/// that have no name, and with a name that is hard to show.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <reduce/file_builder.hpp>

namespace trace_ring_test {

[[nodiscard]] inline file_builder named_values() {
    file_builder b;
    b.clock_reading(0, 0, 1'700'000'000'000'000'000);
    b.clock_reading(1'000'000'000, 1'000'000'000, 1'700'000'001'000'000'000);
    using type = field_type;
    using form = field_form;
    using list = std::vector<std::pair<std::uint64_t, std::string>>;
    const auto below = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
    const list sides{{0, "buy"}, {1, "sell"}};
    const list hard{{0, "a=\"b,\x1b\xFF"}};
    const auto& order = b.event(
        {1,
         "order",
         {{.name = "side", .type = type::u8, .names = sides},
          {.name = "level", .type = type::i16, .names = {{20, "warm"}, {below(-300), "cold"}}},
          {.name = "wide", .type = type::u64, .names = {{~std::uint64_t{0}, "most"}}},
          {.name = "two", .type = type::u8, .form = form::array, .count = 2, .names = sides},
          {.name = "some",
           .type = type::i64,
           .form = form::variable,
           .names = {{below(INT64_MIN), "least"}, {1, "one"}}},
          {.name = "hard", .type = type::u32, .names = hard}}});
    const auto& other = b.event(
        {2, "other", {{.name = "side", .type = type::u32, .names = {{5, "buy"}, {6, "hold"}}}}});
    const auto& state = b.event({3,
                                 "state",
                                 {{.name = "value", .type = type::u8, .names = {{1, "on"}}}},
                                 event_kind::counter});
    const auto lane = b.lane(b.process(1200), 1234, "main");
    b.open(lane, 1000);
    using several = std::vector<std::uint64_t>;
    b.record(lane, 1100, order,
             {0, below(-300), ~std::uint64_t{0}, several{0, 1}, several{below(INT64_MIN), 5}, 0});
    b.record(lane, 1200, order, {1, 20, 0, several{1, 7}, several{1}, 3});
    b.record(lane, 1300, order, {7, 0, 1, several{9, 9}, several{}, 3});
    b.record(lane, 1400, other, {5});
    b.record(lane, 1500, other, {6});
    b.record(lane, 1600, state, {1});
    b.record(lane, 1700, state, {2});
    return b;
}

}  // namespace trace_ring_test
