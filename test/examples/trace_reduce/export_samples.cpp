// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Makes the traces that the tests of exported formats begin with:
///     export_samples FOLDER           a few small ones, and random ones
///     export_samples FOLDER COUNT     big.trace, with so many records

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <reduce/everything.hpp>
#include <reduce/file_builder.hpp>
#include <reduce/named_values.hpp>
#include <trace_ring/format/sub_buffer.hpp>

using namespace trace_ring_test;
using trace_ring::record_word;

namespace {

constexpr std::uint64_t epoch = 1'700'000'000'123'456'789;

/// Adds a record, in a new sub-buffer if the lane's is full.
void add(file_builder& b, std::uint32_t lane, std::uint64_t time, const event_spec& event,
         const std::vector<value_spec>& values, std::uint32_t flags = 0) {
    if (b.record(lane, time, event, values, flags)) return;
    b.open(lane, time - 1);
    b.record(lane, time, event, values, flags);
}

/// Every type in every form.
event_spec all_types(std::uint16_t id) {
    event_spec event{id, "all.types", {}};
    const char* const names[] = {"u8",  "u16", "u32", "u64",     "i8",        "i16",    "i32",
                                 "i64", "f32", "f64", "boolean", "character", "address"};
    for (int type = 1; type <= 13; ++type) {
        event.fields.push_back({names[type - 1], static_cast<field_type>(type)});
    }
    for (int type = 1; type <= 13; ++type) {
        event.fields.push_back({std::string(names[type - 1]) + "_array",
                                static_cast<field_type>(type), field_form::array, 3});
        event.fields.push_back({std::string(names[type - 1]) + "_list",
                                static_cast<field_type>(type), field_form::variable});
    }
    return event;
}

/// Bits of an element that mean something.
std::uint64_t bits_of(field_type type, std::mt19937_64& random, bool plain_text) {
    switch (type) {
        case field_type::boolean:
            return random() % 2;
        case field_type::character:
            return plain_text ? 'a' + random() % 26 : random() % 256;
        case field_type::f32:
            return std::bit_cast<std::uint32_t>(static_cast<float>(random() % 100000) / 8 - 5000);
        case field_type::f64:
            return std::bit_cast<std::uint64_t>(static_cast<double>(random() % 100000) / 64 - 700);
        default: {
            const std::uint64_t value = random() >> (random() % 64);
            const std::size_t size = trace_ring::size_of(type);
            return size == 8 ? value : value & ((std::uint64_t{1} << (size * 8)) - 1);
        }
    }
}
std::vector<value_spec> values_of(const event_spec& event, std::mt19937_64& random,
                                  bool plain_text) {
    std::vector<value_spec> values;
    for (const auto& field : event.fields) {
        std::vector<std::uint64_t> elements(field.form == field_form::variable ? random() % 5
                                                                               : field.count);
        for (auto& each : elements) each = bits_of(field.type, random, plain_text);
        value_spec value(std::move(elements));
        value.cut = field.form == field_form::variable && random() % 7 == 0;
        values.push_back(std::move(value));
    }
    return values;
}

file_builder types() {
    file_builder b({.sub_buffer_bytes = 4096, .sub_buffers = 64});
    b.clock_reading(1000, 5000, epoch);
    b.clock_reading(1'000'001'000, 1'000'005'000, epoch + 1'000'000'000);
    const auto process = b.process(1200);
    const auto& all = b.event(all_types(1));
    const auto lane = b.lane(process, 11, "first");
    b.open(lane, 2000);
    std::mt19937_64 random(1);
    for (std::uint64_t i = 0; i < 40; ++i) {
        const auto flags = i % 2 == 0 ? 0U : record_word::cut;
        add(b, lane, 3000 + i * 7, all, values_of(all, random, i % 4 != 3), flags);
    }
    const auto& floats = b.event({2, "floats", {{"f", field_type::f32}, {"d", field_type::f64}}});
    add(b, lane, 4000, floats, {std::numeric_limits<float>::infinity(), 1e300});
    add(b, lane, 4001, floats, {-0.0F, -std::numeric_limits<double>::infinity()});
    add(b, lane, 4002, floats, {std::numeric_limits<float>::quiet_NaN(), 0.1});
    return b;
}

/// Names and texts that are not what one expects, and records that are not what they should be.
file_builder hostile() {
    file_builder b({.sub_buffer_bytes = 4096, .sub_buffers = 64, .dictionary = 1 << 16});
    b.clock_reading(0, 0, epoch);
    const auto process = b.process(1200, "</title><script>alert(1)</script>");
    const auto& odd = b.event({1,
                               "</script><script>document.title='broken'</script>",
                               {{"int"},
                                {"struct"},
                                {"event"},
                                {"_x2d_"},
                                {"_x_"},
                                {"a-b"},
                                {"9 lives"},
                                {""},
                                {"a"},
                                {"a"},
                                {"_length"},
                                {"list", field_type::u16, field_form::variable},
                                {"_list_length"},
                                {"<!--\"&'\\\n", field_type::character, field_form::variable}}});
    const auto& quoted = b.event({2, "a \"quoted\\ name\"\x1b[31m\xff", {}});
    const auto& plain =
        b.event({3, "plain", {{"n"}, {"text", field_type::character, field_form::variable}}});
    const auto lane = b.lane(process, 11, "<b>\"\x1b[2J\xfe");
    const auto other = b.lane(process, 12, "other");
    b.open(lane, 100);
    b.open(other, 100);
    const value_spec list(std::vector<std::uint64_t>{1, 2});
    for (std::uint64_t i = 0; i < 3; ++i) {
        add(b, lane, 200 + i, odd,
            {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, list, 12,
             i == 0   ? "</script>"
             : i == 1 ? "\u2028\u00e4\xf0\x9f\x98\x80"
                      : "a\x1b[31m\"\\\n\t"});
    }
    add(b, lane, 210, quoted, {});
    b.raw_record(lane, 220, 77, {0x0807060504030201});  // no such event
    b.raw_record(lane, 221, 78, {});
    b.raw_record(other, 222, 3, {1});          // too short
    b.raw_record(other, 223, 3, {1, 0x7FF0});  // longer than it is
    add(b, other, 224, plain, {5, std::string_view("nul\0inside", 10)});
    add(b, other, 225, plain, {6, std::string_view("\xff\x00\x80", 3)});
    add(b, other, 226, plain, {7, std::string_view("cut off", true)}, record_word::cut);
    add(b, other, 230, plain, {8, ""});
    return b;
}

/// A clock that jumps, one whose date is set back, bounds, spans, losses of each kind.
file_builder times() {
    file_builder b({.sub_buffer_bytes = 512, .sub_buffers = 64});
    b.clock_reading(1000, 1000, epoch);
    b.clock_reading(1'000'000, 1'000'000, epoch + 999'000);
    b.clock_reading(2'000'000, 2'000'000, epoch + 500'000);  // set back
    const auto process = b.process(1200);
    const auto& tick = b.event({1, "tick", {{"n"}}});
    const auto& work = b.event({2,
                                "work",
                                {{"n"}, {"what", field_type::character, field_form::variable}},
                                event_kind::span});
    const auto& level = b.event({3, "level", {{"value", field_type::i32}}, event_kind::counter});
    const auto first = b.lane(process, 11, "first");
    const auto second = b.lane(process, 12, "second");
    const auto nested = b.lane(process, 11, "first", 1);
    for (const auto lane : {first, second, nested}) b.open(lane, 900);
    add(b, nested, 905, tick, {0});  // before the first reading of the clock
    for (std::uint64_t i = 0; i < 60; ++i) {
        const std::uint64_t at = 1000 + i * 30'000;
        add(b, first, at, work, {i, "outer"}, record_word::begin);
        add(b, first, at + 100, work, {i, "inner"}, record_word::begin);
        add(b, first, at + 200, tick, {i});
        if (!b.raw_record(first, at + 300, 2, {}, record_word::end)) {
            b.open(first, at + 299);
            b.raw_record(first, at + 300, 2, {}, record_word::end);
        }
        add(b, first, at + 20'000, work, {i, "outer"}, record_word::end);
        add(b, second, at + 150, tick, {i}, i % 2 == 0 ? record_word::interval : 0U);
        add(b, second, at + 160, level, {static_cast<int>(i % 7) - 3});
    }
    b.lost(second, 5, 2, 1);
    b.lane_counts(second, 5, 2, 1, 0);
    // On, then back, and back again.
    std::uint64_t end = 1000;
    for (const std::uint64_t at : {900'000U, 700'000U, 600'000U}) {
        b.close(nested, end);
        b.open(nested, at);
        for (std::uint64_t i = 0; i < 5; ++i) add(b, nested, at + i * 10, tick, {i});
        end = at + 50;
    }
    add(b, second, 1'990'000, tick, {99}, record_word::interval);
    b.close(first, 1'999'000);
    b.wipe(1);
    b.wipe(6);
    return b;
}

file_builder random_trace(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    file_builder b({.sub_buffer_bytes = 2048, .sub_buffers = 96, .dictionary = 1 << 16});
    b.clock_reading(0, 0, epoch);
    if (seed % 2 == 0) b.clock_reading(1'000'000'000, 1'000'300'000, epoch + 1'000'300'000);
    const auto process = b.process(static_cast<std::uint32_t>(1000 + seed));
    std::vector<const event_spec*> events;
    for (std::uint16_t id = 1; id <= 6; ++id) {
        event_spec event{id, "event." + std::to_string(id), {}};
        event.kind = id % 3 == 0 ? event_kind::span : event_kind::instant;
        for (std::uint64_t i = random() % 6; i > 0; --i) {
            const auto form = static_cast<field_form>(random() % 3);
            event.fields.push_back(
                {"f" + std::to_string(i), static_cast<field_type>(1 + random() % 13), form,
                 static_cast<std::uint16_t>(form == field_form::array ? 1 + random() % 4 : 1)});
        }
        events.push_back(&b.event(std::move(event)));
    }
    std::vector<std::uint32_t> lanes;
    for (std::uint32_t i = 0; i < 4; ++i) {
        lanes.push_back(b.lane(process, 20 + i, "thread " + std::to_string(i)));
        b.open(lanes.back(), 10);
    }
    std::uint64_t time = 1000;
    for (int i = 0; i < 1500; ++i) {
        time += random() % 50'000;
        const auto& event = *events[random() % events.size()];
        std::uint32_t flags = 0;
        if (event.kind == event_kind::span) {
            flags = random() % 2 == 0 ? record_word::begin : record_word::end;
        }
        add(b, lanes[random() % lanes.size()], time, event,
            values_of(event, random, random() % 8 != 0), flags);
    }
    return b;
}

/// Threads that work, in spans within spans, with ticks and a counter.
file_builder big(std::uint64_t records) {
    const std::uint64_t bytes = 32 * 1024;
    file_builder b(
        {.sub_buffer_bytes = bytes, .sub_buffers = records * 56 / bytes + 64, .lanes = 16});
    b.clock_reading(0, 0, epoch);
    const auto process = b.process(4321, "service");
    const auto& request = b.event({1,
                                   "request",
                                   {{"id"}, {"url", field_type::character, field_form::variable}},
                                   event_kind::span});
    const auto& query = b.event({2, "query", {{"rows", field_type::u32}}, event_kind::span});
    const auto& tick = b.event({3, "cache.hit", {{"key", field_type::address}}});
    const auto& depth =
        b.event({4, "queue.depth", {{"depth", field_type::i32}}, event_kind::counter});
    std::mt19937_64 random(7);
    const std::uint64_t lanes = 8;
    const std::uint64_t rounds = (records + lanes * 8 - 1) / (lanes * 8);
    std::vector<std::uint64_t> clocks(lanes, 1000);
    for (std::uint32_t i = 0; i < lanes; ++i) {
        b.open(b.lane(process, 100 + i, i == 0 ? "main" : "worker " + std::to_string(i)), 900);
    }
    std::uint64_t made = 0;
    for (std::uint64_t round = 0; round < rounds; ++round) {
        for (std::uint32_t i = 0; i < lanes; ++i) {
            std::uint64_t& at = clocks[i];
            const auto lane = i + 1;
            const auto put = [&](const event_spec& event, const std::vector<value_spec>& values,
                                 std::uint32_t flags = 0) {
                if (made == records) return;
                ++made;
                at += 200 + random() % 3000;
                add(b, lane, at, event, values, flags);
            };
            at += random() % 20'000;
            if (round % 997 == 996) at += 5'000'000;  // a pause
            put(request, {round * lanes + i, round % 2 == 0 ? "/orders" : "/items"},
                record_word::begin);
            put(query, {static_cast<int>(random() % 100)}, record_word::begin);
            put(tick, {0x7F0000000000 + random() % 65536 * 16});
            put(query, {static_cast<int>(random() % 100)}, record_word::end);
            put(query, {static_cast<int>(random() % 100)}, record_word::begin);
            put(depth, {static_cast<int>(random() % 40)});
            put(query, {static_cast<int>(random() % 100)}, record_word::end);
            put(request, {round * lanes + i, round + 1 == rounds ? "/the-last" : ""},
                record_word::end);
        }
    }
    if (records > 100'000) {
        b.wipe(lanes + 20);  // in the middle of two lanes
        b.wipe(lanes + 21);
    }
    return b;
}

/// Spans that do not nest, a flow, and a counter of two threads, in two processes of one id.
file_builder lines() {
    file_builder b;
    b.clock_reading(0, 0, epoch);
    const auto& request =
        b.event({1, "request", {{"id"}, {.name = "job", .flow = true}}, event_kind::span});
    const auto& depth =
        b.event({2, "queue.depth", {{"depth", field_type::i32}}, event_kind::counter});
    const auto& done = b.event({3, "done", {{.name = "job", .flow = true}}});
    const auto one = b.process(1, "service"), two = b.process(1, "service");
    b.put(b.plan().processes + two * 128 + 16, one, 4);  // it uses the first one's events
    const auto first = b.lane(one, 1, "main"), second = b.lane(one, 2, "pool");
    const auto other = b.lane(two, 1, "main");
    for (const auto lane : {first, second, other}) b.open(lane, 900);
    add(b, first, 1000, request, {1, 7}, record_word::begin);
    add(b, first, 2000, request, {2, 8}, record_word::begin);
    add(b, first, 2500, depth, {-5});
    add(b, second, 2600, depth, {20});
    b.end_of(first, 3000, request, first, 0);
    add(b, other, 4000, request, {3, 9}, record_word::begin);
    add(b, other, 5000, done, {7});
    add(b, other, 5100, depth, {3});
    b.end_of(second, 9000, request, first, 1);
    b.raw_record(other, 10'000, 1, {}, record_word::end);
    return b;
}

/// A process that closed its trace, and one that was killed in the midst of two spans.
file_builder killed() {
    file_builder b;
    b.clock_reading(0, 0, epoch);
    const auto& request = b.event({1, "request", {{"id"}}, event_kind::span});
    const auto& tick = b.event({2, "tick", {{"n"}}});
    const auto closed = b.process(1, "closed"), gone = b.process(2, "gone");
    b.put(b.plan().processes + closed * 128 + offsetof(layout::process_entry, departed), 30'000, 8);
    b.put(b.plan().processes + gone * 128 + offsetof(layout::process_entry, root), closed, 4);
    const auto whole = b.lane(closed, 1, "whole");
    const auto first = b.lane(gone, 2, "first"), second = b.lane(gone, 3, "second");
    for (const auto lane : {whole, first, second}) b.open(lane, 900);
    add(b, whole, 1000, tick, {1});
    add(b, first, 2000, request, {1}, record_word::begin);
    add(b, second, 3000, request, {2}, record_word::begin);
    add(b, second, 4000, request, {2}, record_word::end);
    add(b, second, 5000, request, {3}, record_word::begin);
    add(b, second, 8000, tick, {2});
    add(b, whole, 20'000, tick, {3});
    return b;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    const std::string folder = std::string(argv[1]) + '/';
    if (argc > 2) {
        big(std::strtoull(argv[2], nullptr, 10)).save(folder + "big.trace");
        return 0;
    }
    everything().save(folder + "everything.trace");
    types().save(folder + "types.trace");
    named_values().save(folder + "named.trace");
    hostile().save(folder + "hostile.trace");
    times().save(folder + "times.trace");
    lines().save(folder + "lines.trace");
    killed().save(folder + "killed.trace");
    big(5000).save(folder + "service.trace");
    file_builder no_clock;
    const auto& tick = no_clock.event({1, "tick", {{"n"}}});
    const auto lane = no_clock.lane(no_clock.process(1), 2);
    no_clock.open(lane, 10);
    for (int i = 0; i < 10; ++i) add(no_clock, lane, 20 + static_cast<std::uint64_t>(i), tick, {i});
    no_clock.save(folder + "no_clock.trace");
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        random_trace(seed).save(folder + "random" + std::to_string(seed) + ".trace");
    }
    return 0;
}
