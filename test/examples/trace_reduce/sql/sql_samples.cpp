// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Makes the traces that the tests of SQL read, in addition to those of export_samples:
///     sql_samples FOLDER              some files
///     sql_samples grow FILE COUNT     records so many records slowly, in two threads
///     sql_samples killed FILE         is killed while a span is open

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <examples/trace_reduce/where/where_trace.hpp>
#include <record/packing.hpp>
#include <trace_ring/instrument/references.hpp>
#include <trace_ring/trace_ring.hpp>

using namespace trace_ring_test;
using trace_ring::field, trace_ring::record_word;

namespace {

struct measured
    : trace_ring::event<"measured", field<"id", std::uint64_t>, field<"time", std::int64_t>,
                        field<"latency", std::chrono::microseconds>,
                        field<"real", std::chrono::duration<double>>, field<"event", int>,
                        field<"job", trace_ring::flow>> {};
struct request : trace_ring::span<"request", field<"id", std::uint64_t>,
                                  field<"url", std::string_view>, field<"job", trace_ring::flow>,
                                  trace_ring::results<field<"status", int>, field<"code", int>>> {};
struct part : trace_ring::span<"part", field<"n", int>> {};
struct depth : trace_ring::counter<"depth", field<"value", std::int32_t>> {};
struct number : trace_ring::event<"number", field<"n", std::uint64_t>> {
    static constexpr bool counted = true;
};

void make_real(const std::string& file) {
    trace_ring::recorder recorder{{.file = file, .exists = trace_ring::if_exists::replace}};
    using std::chrono::microseconds;
    for (std::int64_t i = 0; i < 40; ++i) {
        recorder.record<measured>(static_cast<std::uint64_t>(i), i - 20, microseconds(i * i),
                                  std::chrono::duration<double>(static_cast<double>(i) / 8),
                                  static_cast<int>(i % 3), trace_ring::flow{7});
        auto whole = recorder.scope<request>(static_cast<std::uint64_t>(i),
                                             std::string_view(i % 2 == 0 ? "/a" : "/b'\"c"),
                                             trace_ring::flow{static_cast<std::uint64_t>(i)});
        {
            const auto inner = recorder.scope<part>(static_cast<int>(i));
            recorder.record<depth>(static_cast<int>(i % 5) - 2);
        }
        if (i % 4 == 0) {  // ends in another thread
            std::thread([&recorder, i, moved = std::move(whole)]() mutable {
                recorder.record<depth>(77);
                moved.end(static_cast<int>(200 + i), 1);
            }).join();
        } else if (i % 4 != 1) {
            whole.end(static_cast<int>(200 + i), 2);
        }
    }
}

/// Several types of one name, and names that are columns' names, or differ only in case.
file_builder collisions() {
    using type = field_type;
    using form = field_form;
    file_builder b({.sub_buffer_bytes = 4096, .sub_buffers = 16, .dictionary = 1 << 14});
    b.clock_reading(1000, 5000, 1'700'000'000'000'000'000);
    const auto first = b.process(1200, "first"), second = b.process(1300, "second");
    const auto& wide = b.event(
        {1,
         "order.sent",
         {{"time"},
          {"id", type::i64},
          {"ID", type::f64},
          {"thread", type::character, form::variable},
          {"odd name", type::u8},
          {"order.sent.id", type::u16},
          {"a\"b'c", type::i8},
          {"raw", type::u32},
          {"rowid", type::u32},
          {"select", type::boolean},
          {"record.raw", type::u32},
          {"kind", type::u8, form::scalar, 1, 0, false, {{0, "buy"}, {1, "sell"}, {2, "12"}}}}});
    const auto& other = b.event({2,
                                 "order.sent",
                                 {{"id", type::character, form::variable},
                                  {"odd name", type::f32},
                                  {"kind", type::i32, form::scalar, 1, 0, false, {{1, "buy"}}},
                                  {"more", type::address}},
                                 {},
                                 1});
    const auto& records = b.event({3, "records", {{"n"}}});  // a table has this name
    const auto& upper = b.event({4, "Order.Sent", {{"n"}}});
    const auto& same = b.event({5, "twice", {{"a"}, {"a", type::i32}}});
    const auto one = b.lane(first, 11, "it's"), two = b.lane(second, 21, "");
    const auto three = b.lane(first, 22, "\xff\xfe");
    for (const auto lane : {one, two, three}) b.open(lane, 1500);
    for (std::uint64_t i = 0; i < 24; ++i) {
        const std::uint64_t at = 2000 + i * 10;
        b.record(
            one, at, wide,
            {i, i * 3 - 30, static_cast<double>(i) / 4, std::string_view("t%_*?[").substr(i % 6), i,
             i * 2, (256 - i) & 0xFF, i, i, i % 2, i, i % 4});
        b.record(two, at + 1, other,
                 {std::string_view(i % 3 == 0   ? "5"
                                   : i % 3 == 1 ? "-30"
                                                : "x"),
                  static_cast<float>(i), i % 3, 0x7F00 + i});
        if (i % 3 == 0) b.record(three, at + 2, records, {i});
        if (i % 3 == 1) b.record(three, at + 3, upper, {i});
        if (i % 4 == 1) b.record(three, at + 3, same, {i, i + 100});
    }
    for (const auto lane : {one, two, three}) b.close(lane, 4000);
    return b;
}

/// Numbers at the limits of each type, and texts that SQL treats in special ways.
file_builder edges() {
    using type = field_type;
    using form = field_form;
    file_builder b({.sub_buffer_bytes = 4096, .sub_buffers = 64});
    b.clock_reading(0, 0, 1'700'000'000'000'000'000);
    b.clock_reading(1'000'000'000, 1'000'000'000, 1'700'000'001'000'000'000);
    const auto process = b.process(1200, "demo");
    const auto& event = b.event({1,
                                 "edge",
                                 {{"u", type::u64},
                                  {"i", type::i64},
                                  {"small", type::i8},
                                  {"d", type::f64},
                                  {"f", type::f32},
                                  {"flag", type::boolean},
                                  {"letter", type::character},
                                  {"text", type::character, form::variable},
                                  {"fixed", type::character, form::array, 4},
                                  {"list", type::u16, form::variable},
                                  {"at", type::address}}});
    constexpr std::uint64_t whole[] = {0,
                                       1,
                                       ~std::uint64_t{0},
                                       (1ULL << 53) - 1,
                                       1ULL << 53,
                                       (1ULL << 53) + 1,
                                       (1ULL << 63) - 1,
                                       1ULL << 63,
                                       (1ULL << 63) + 1,
                                       42};
    const double reals[] = {0.0,
                            -0.0,
                            1.5,
                            -0x1p63,
                            0x1p63,
                            0x1p64,
                            9007199254740992.0,
                            std::numeric_limits<double>::infinity(),
                            -std::numeric_limits<double>::infinity(),
                            std::numeric_limits<double>::quiet_NaN(),
                            std::numeric_limits<double>::denorm_min(),
                            42.0};
    constexpr std::string_view texts[] = {"",
                                          "a",
                                          "A",
                                          "abc",
                                          "42",
                                          "42.0",
                                          "it's \"quoted\"",
                                          "a*b?",
                                          "a%b_",
                                          "[x]\\y",
                                          {"n\0l", 3},
                                          "\xff",
                                          "\xc3\xa4",
                                          "9223372036854775808",
                                          " 42",
                                          "NULL",
                                          "\xf0\x9f\x98\x80",
                                          "-1"};
    const auto one = b.lane(process, 11, "one"), two = b.lane(process, 12, "two");
    b.open(one, 500);
    b.open(two, 500);
    std::mt19937_64 random(3);
    for (std::uint64_t i = 0; i < 300; ++i) {
        const auto pick = [&](const auto& from) { return from[random() % std::size(from)]; };
        const auto lane = random() % 3 == 0 ? two : one;
        const std::string_view text = pick(texts);
        std::string fixed(text.substr(0, 4));
        fixed.resize(4, '\0');
        const std::vector<value_spec> values{pick(whole),
                                             pick(whole),
                                             pick(whole) & 0xFF,
                                             pick(reals),
                                             static_cast<float>(pick(reals)),
                                             random() % 2,
                                             random() % 256,
                                             text,
                                             std::string_view(fixed),
                                             std::vector<std::uint64_t>(random() % 3, 7),
                                             pick(whole)};
        const std::uint64_t at = 1000 + i / 2 * 10;  // some times are equal
        if (b.record(lane, at, event, values)) continue;
        b.open(lane, at);
        b.record(lane, at, event, values);
    }
    b.close(one, 4000);
    b.close(two, 4000);
    return b;
}

/// Spans of three events that nest, of which parts are missing.
file_builder lossy() {
    file_builder b({.sub_buffer_bytes = 512, .sub_buffers = 128});
    b.clock_reading(0, 0, 1'700'000'000'000'000'000);
    const auto process = b.process(1200, "demo");
    const event_spec* events[3];
    for (std::uint16_t i = 0; i < 3; ++i) {
        event_spec event{
            static_cast<std::uint16_t>(i + 1), std::string("outer") + char('0' + i), {{"n"}}};
        event.kind = trace_ring::event_kind::span;
        events[i] = &b.event(std::move(event));
    }
    std::mt19937_64 random(5);
    std::vector<std::uint16_t> open[2];
    const std::uint32_t lanes[] = {b.lane(process, 11, "one"), b.lane(process, 12, "two")};
    for (const auto lane : lanes) b.open(lane, 500);
    for (std::uint64_t i = 0; i < 2500; ++i) {
        const std::uint64_t at = 1000 + i * 10;
        const std::size_t which = random() % 2;
        auto& now = open[which];
        const bool begins = now.empty() || (now.size() < 6 && random() % 2 == 0);
        const auto event = begins ? static_cast<std::uint16_t>(random() % 3) : now.back();
        const auto add = [&] {
            if (begins) {
                return b.record(lanes[which], at, *events[event], {i}, record_word::begin);
            }
            return b.raw_record(lanes[which], at, event + 1U, {}, record_word::end);
        };
        if (!add()) {
            b.open(lanes[which], at);
            add();
        }
        begins ? now.push_back(event) : now.pop_back();
    }
    for (const auto lane : lanes) b.close(lane, 30'000);
    for (const std::uint64_t wiped : {3, 4, 9, 20, 21, 22, 40, 55}) b.wipe(wiped);
    return b;
}

/// References in several records, many of them equal.
void make_references(const std::string& file) {
    using trace_ring::reference, trace_ring::reference_kind;
    trace_ring::recorder recorder{{.file = file, .exists = trace_ring::if_exists::replace}};
    constexpr std::uint64_t site = 0x401000, data = 0x7f1200000000;
    for (std::uint32_t thread = 1; thread < 4; ++thread) {
        std::vector<reference> all;
        for (std::uint64_t i = 0; i < 60; ++i) {
            all.push_back({site, site + i % 3, reference_kind::block, 0});
            all.push_back({data + i % 5 * 8, site, reference_kind::load, 8});
            all.push_back({data + 0x1000, site, reference_kind::store, 4});
            if (i % 7 == 0) all.push_back({site, site + 9, reference_kind::enter, 0});
            if (i % 7 == 1) all.push_back({site, site + 9, reference_kind::exit, 0});
        }
        const auto bytes = packed(all);
        recorder.record<trace_ring::packed_references>(
            thread, std::uint32_t{1}, std::uint32_t{0},
            std::span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()));
        recorder.record<depth>(static_cast<int>(thread));
    }
}

void grow(const std::string& file, std::uint64_t count) {
    trace_ring::recorder recorder{
        {.file = file, .size = 1 << 22, .exists = trace_ring::if_exists::replace}};
    const auto work = [&](std::uint64_t from) {
        for (std::uint64_t i = from; i < count; i += 2) {
            recorder.record<number>(i);
            if (i % 50 < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    };
    std::thread second(work, 1);
    work(0);
    second.join();
}

void die(const std::string& file) {
    trace_ring::recorder recorder{{.file = file, .exists = trace_ring::if_exists::replace}};
    const auto open = recorder.scope<part>(1);
    for (std::uint64_t i = 0; i < 100; ++i) recorder.record<number>(i);
    std::raise(SIGKILL);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 4 && std::string_view(argv[1]) == "grow") {
        grow(argv[2], std::strtoull(argv[3], nullptr, 10));
        return 0;
    }
    if (argc == 3 && std::string_view(argv[1]) == "killed") {
        die(argv[2]);
        return 1;
    }
    if (argc != 2) return 2;
    const std::string folder = std::string(argv[1]) + '/';
    make_real(folder + "real.trace");
    collisions().save(folder + "collisions.trace");
    make_references(folder + "references.trace");
    lossy().save(folder + "lossy.trace");
    edges().save(folder + "edges.trace");
    where_trace().file().save(folder + "where.trace");
    return 0;
}
