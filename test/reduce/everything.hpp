// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The trace that tests of bad input begin with: sound, and with each kind of entry that there is.

#include <cstdint>
#include <vector>

#include <reduce/file_builder.hpp>

namespace trace_ring_test {

/// A trace with something of everything; the time leaps after a record, so that it is announced.
[[nodiscard]] inline file_builder everything(const file_builder::sizes& sizes = {},
                                             std::uint64_t records = 60,
                                             std::uint64_t leap_after = 40) {
    file_builder b(sizes);
    b.clock_reading(0, 0, 1'700'000'000'000'000'000);
    b.clock_reading(1'000'000'000, 1'000'000'000, 1'700'000'001'000'000'000, 50);
    const auto process = b.process(1200);
    const auto& order = b.event({1, "order.sent", {{"id"}, {"price", field_type::f64}}});
    const auto& text = b.event({2,
                                "say",
                                {{.name = "level", .type = field_type::u8, .names = {{7, "loud"}}},
                                 {"text", field_type::character, field_form::variable},
                                 {"numbers", field_type::u32, field_form::variable},
                                 {"fixed", field_type::i16, field_form::array, 3}}});
    const auto& span = b.event({3, "request", {{"url", field_type::address}}, event_kind::span});
    const auto first = b.lane(process, 1234, "main");
    const auto second = b.lane(process, 1235, "worker");
    const auto nested = b.lane(process, 1234, "main", 1);
    b.open(first, 1000);
    b.open(second, 1001);
    b.open(nested, 1002);
    for (std::uint64_t i = 0; i < records; ++i) {
        const std::uint64_t time = 2000 + i * 100 + (i > leap_after ? std::uint64_t{1} << 33 : 0);
        if (!b.record(first, time, order, {i, 0.5})) {
            b.open(first, time - 1);
            b.record(first, time, order, {i, 0.5});
        }
        const std::vector<value_spec> words{7, "hello", std::vector<std::uint64_t>{1, 2, 3},
                                            std::vector<std::uint64_t>{1, 2, 0xFFFF}};
        if (i % 3 == 0 && !b.record(second, time + 1, text, words)) {
            b.open(second, time);
            b.record(second, time + 1, text, words);
        }
        if (i % 10 == 0) b.record(nested, time + 2, span, {0x7F00 + i}, i % 20 == 0 ? 4 : 8);
    }
    b.lost(first, 3, 1, 0);
    b.lane_counts(first, 3, 1, 0, 0);
    b.close(nested, std::uint64_t{1} << 34);
    return b;
}

}  // namespace trace_ring_test
