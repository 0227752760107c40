// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A small trace with a field of every type, for expressions over it; its contents are known next
/// to it.

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <reduce/file_builder.hpp>

namespace trace_ring_test {

/// One record of it: its values are in the order of the event's fields, and not there if it ends a
/// span without fields.
struct known_record {
    std::uint32_t lane = 0;
    std::uint64_t position = 0;
    std::uint64_t time = 0;
    const event_spec* event = nullptr;
    std::vector<value_spec> values;
};

/// Three lanes of two processes, a gigahertz of ticks, the trace's time 0 at tick 1000.
class where_trace {
public:
    explicit where_trace(std::size_t in_a_row = 150)
        : file_({.sub_buffer_bytes = 32768, .sub_buffers = 8}) {
        file_.clock_reading(1000, 5'000'000'000, 1'700'000'000'000'000'000);
        file_.clock_reading(1'000'001'000, 6'000'000'000, 1'700'000'001'000'000'000);
        const auto first = file_.process(1200, "demo");
        const auto second = file_.process(1300, "other demo");
        using type = field_type;
        using form = field_form;
        const auto& every = file_.event({1,
                                         "every",
                                         {{"u8", type::u8},
                                          {"u16", type::u16},
                                          {"u32", type::u32},
                                          {"u64", type::u64},
                                          {"i8", type::i8},
                                          {"i16", type::i16},
                                          {"i32", type::i32},
                                          {"i64", type::i64},
                                          {"f32", type::f32},
                                          {"f64", type::f64},
                                          {"flag", type::boolean},
                                          {"letter", type::character},
                                          {"address", type::address},
                                          {"row", type::i16, form::array, 3},
                                          {"tag", type::character, form::array, 8}}});
        const auto& texts = file_.event({2,
                                         "texts.some",
                                         {{"u64", type::u32},  // of another type than in the other
                                          {"name", type::character, form::variable},
                                          {"list", type::u32, form::variable},
                                          {"only here", type::u64}}});
        const auto& bare = file_.event({3, "bare", {}});
        const auto& span =
            file_.event({4, "span", {{"u8", type::u8}}, trace_ring::event_kind::span});
        const auto& other =
            file_.event({5, "other", {{"u64", type::u64}, {"name", type::u8}}, {}, 1});
        const auto one = file_.lane(first, 11, "worker");
        const auto two = file_.lane(first, 12, "main");
        const auto three = file_.lane(second, 21, "worker");
        for (const auto lane : {one, two, three}) file_.open(lane, 1000);

        for (std::uint64_t i = 0; i < in_a_row; ++i) add(one, 2000 + i * 10, every, values_of(i));
        for (std::uint64_t i = 0; i < 20; ++i) {
            const std::string name = std::string("name") + static_cast<char>('a' + i % 5);
            std::vector<std::uint64_t> list;
            for (std::uint64_t k = 0; k < i % 4; ++k) list.push_back(i * 10 + k);
            add(two, 2500 + i * 100, texts,
                {std::uint64_t{i * 3},
                 std::string_view(name).substr(0, static_cast<std::size_t>(i % 6)), list,
                 std::uint64_t{i}});
            if (i % 5 == 0) add(two, 2501 + i * 100, bare, {});
        }
        add(two, 10'000, span, {7}, trace_ring::record_word::begin);
        add(two, 10'001, span, {}, trace_ring::record_word::end);
        for (std::uint64_t i = 0; i < 10; ++i) {
            add(three, 3000 + i * 7, other, {~std::uint64_t{0} - i, std::uint64_t{i}});
        }
        add(three, (std::uint64_t{3} << 32) + 5, other, {5, 200});
        for (const auto lane : {one, two, three}) file_.close(lane, std::uint64_t{4} << 32);
    }

    [[nodiscard]] file_builder& file() { return file_; }
    [[nodiscard]] const std::vector<known_record>& records() const { return records_; }

private:
    void add(std::uint32_t lane, std::uint64_t time, const event_spec& event,
             std::vector<value_spec> values, std::uint32_t flags = 0) {
        const bool end = (flags & trace_ring::record_word::end) != 0;
        const auto payload = end ? std::vector<std::uint64_t>{} : pack(event, values);
        if (!file_.raw_record(lane, time, event.id, payload, flags)) {
            throw std::runtime_error("the sub-buffer is full");
        }
        if (lane >= positions_.size()) positions_.resize(lane + 1);
        records_.push_back({lane, positions_[lane]++, time, &event, std::move(values)});
    }

    [[nodiscard]] static std::vector<value_spec> values_of(std::uint64_t i) {
        constexpr double reals[] = {0.0,
                                    -0.0,
                                    0.25,
                                    -2.5,
                                    9007199254740993.0,
                                    18446744073709551616.0,
                                    -9223372036854775808.0,
                                    std::numeric_limits<double>::infinity(),
                                    -std::numeric_limits<double>::infinity(),
                                    std::numeric_limits<double>::quiet_NaN()};
        constexpr std::uint64_t edges[] = {0,
                                           1,
                                           2,
                                           0x7FFFFFFFFFFFFFFF,
                                           0x8000000000000000,
                                           0x8000000000000001,
                                           0xFFFFFFFFFFFFFFFE,
                                           0xFFFFFFFFFFFFFFFF,
                                           9007199254740993};
        const std::uint64_t edge = edges[i % std::size(edges)];
        const double real = reals[i % std::size(reals)];
        const auto small = static_cast<float>(static_cast<double>(i % 16) / 4 - 2);
        const std::string tag =
            std::string("t") + static_cast<char>('0' + i % 3) + std::string(6, '\0');
        return {std::uint64_t{i & 0xFF},
                std::uint64_t{i * 500 & 0xFFFF},
                edge & 0xFFFFFFFF,
                edge,
                (edge + i) & 0xFF,
                (edge + i) & 0xFFFF,
                edge & 0xFFFFFFFF,
                edge,
                small,
                real,
                std::uint64_t{i % 3 == 0},
                std::uint64_t{'a' + i % 4},
                edge,
                std::vector<std::uint64_t>{i, (0x10000 - i) & 0xFFFF, 3},
                std::string_view(tag)};
    }

    file_builder file_;
    std::vector<known_record> records_;
    std::vector<std::uint64_t> positions_;
};

}  // namespace trace_ring_test
