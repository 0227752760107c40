// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Makes the traces that the test of OTLP reads, in addition to those of export_samples:
///     otlp_samples FOLDER

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <reduce/file_builder.hpp>
#include <trace_ring/policy/claim/per_cpu.hpp>
#include <trace_ring/policy/clock/sampled.hpp>
#include <trace_ring/recorder/cpu/recorder.hpp>
#include <trace_ring/trace_ring.hpp>

using namespace trace_ring_test;
using trace_ring::record_word;

namespace {

constexpr std::uint64_t epoch = 1'700'000'000'123'456'789;
constexpr std::uint64_t most = ~std::uint64_t{0};
constexpr std::uint64_t least = std::uint64_t{1} << 63;  // of i64

/// Values at the limits of their types, and names that the format or the writer has already.
file_builder edges() {
    file_builder b({.sub_buffer_bytes = 4096, .dictionary = 1 << 14});
    b.clock_reading(0, 0, epoch);
    const auto lane = b.lane(b.process(1, std::string_view("\xFFprocess")), 11, "\xC3thread");
    b.open(lane, 900);
    using type = field_type;
    using form = field_form;
    using list = std::vector<std::uint64_t>;
    const auto& limits = b.event({1,
                                  "limits",
                                  {{"u64"},
                                   {"i64", type::i64},
                                   {"u64_list", type::u64, form::variable},
                                   {"f64_list", type::f64, form::variable},
                                   {"text", type::character, form::variable},
                                   {"fixed", type::character, form::array, 8},
                                   {"one", type::character},
                                   {"yes", type::boolean},
                                   {"at", type::address},
                                   {.name = "how", .type = type::u8, .names = {{1, "b\xFF"}}}}});
    const std::uint64_t nan = 0x7FF8000000000001, infinity = 0x7FF0000000000000;
    b.record(lane, 1000, limits,
             {most, least, list{most, 0, most >> 1}, list{nan, infinity, infinity | least, least},
              "\xFF\xFE", list{'a', 0, 'b', 0, 0, 0, 0, 0}, 0xC3, 1, most, 1});
    b.record(lane, 1010, limits, {most >> 1, most, list{}, list{}, "", list(8), 'x', 0, 0, 2});
    b.record(lane, 1020, limits,
             {most / 2 + 1, 0, list{}, list{}, std::string_view("\0\xC3\xA4", 3), list(8, 0xFF), 0,
              0, 1, 1});
    const auto& names = b.event({2,
                                 "names",
                                 {{"thread.id"},
                                  {"trace_ring.lane"},
                                  {"a"},
                                  {"a"},
                                  {"a_2"},
                                  {"a"},
                                  {""},
                                  {""},
                                  {"\xFF"},
                                  {"\xFE"}}});
    b.record(lane, 1100, names, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
    const auto& both = b.event({3, "both", {{"n"}, {"end.n"}}, event_kind::span});
    b.record(lane, 1200, both, {1, 2}, record_word::begin);
    b.record(lane, 1300, both, {3, 4}, record_word::end);
    // Ends whose fields cannot be read, and begins.
    const auto& text =
        b.event({4, "text", {{"t", type::character, form::variable}}, event_kind::span});
    b.raw_record(lane, 1400, 4, {0x7FF0}, record_word::begin);
    b.raw_record(lane, 1410, 4, {}, record_word::end);
    b.record(lane, 1420, text, {"whole"}, record_word::begin);
    b.raw_record(lane, 1430, 4, {0x7FF0}, record_word::end);
    b.raw_record(lane, 1440, 99, {5}, record_word::begin);
    b.raw_record(lane, 1450, 99, {5}, record_word::end);
    return b;
}

/// Flows around spans, in them and across them; `shift` makes another machine's trace.
file_builder flows(std::uint64_t shift) {
    file_builder b;
    b.clock_reading(0, 0, epoch + shift);
    const auto& outer = b.event({1, "outer", {{"n"}}, event_kind::span});
    const auto& inner = b.event({2, "inner", {{.name = "job", .flow = true}}, event_kind::span});
    const auto& many =
        b.event({3,
                 "many",
                 {{.name = "jobs", .form = field_form::array, .count = 3, .flow = true}},
                 event_kind::span});
    const auto& tick = b.event({4, "tick", {{.name = "job", .flow = true}}});
    const auto& done = b.event({5, "done", {{"n"}}});
    const auto lane = b.lane(b.process(7, "service"), 1, "main");
    using list = std::vector<std::uint64_t>;
    std::uint64_t at = 1000;
    b.open(lane, 900);
    const auto put = [&](const event_spec& event, const std::vector<value_spec>& values,
                         std::uint32_t flags = 0) {
        at += 10;
        if (b.record(lane, at, event, values, flags)) return;
        b.open(lane, at - 1);
        b.record(lane, at, event, values, flags);
    };
    put(tick, {7});
    put(outer, {1}, record_word::begin);
    put(done, {0});
    put(tick, {7});
    put(inner, {7}, record_word::begin);  // another trace: a link
    put(outer, {2}, record_word::begin);  // in the trace of the flow
    put(done, {0});
    put(tick, {7});
    put(tick, {8});
    put(tick, {0});
    put(inner, {7}, record_word::begin);  // the same trace: a parent
    put(inner, {7}, record_word::end);
    put(inner, {0}, record_word::begin);  // no flow
    put(inner, {0}, record_word::end);
    put(outer, {2}, record_word::end);
    put(many, {list{0, 9, 7}}, record_word::begin);
    put(many, {list(3)}, record_word::end);
    put(many, {list(3)}, record_word::begin);
    b.lost(lane, 1, 0, 0);
    b.lane_counts(lane, 1, 0, 0, 0);
    put(many, {list(3)}, record_word::end);
    put(inner, {7}, record_word::end);
    put(outer, {1}, record_word::end);
    return b;
}

/// Dates that are set back and forward in spans.
file_builder dates() {
    file_builder b({.clocks = 6});
    b.clock_reading(1'000'000, 1'000'000, epoch);
    b.clock_reading(2'000'000, 2'000'000, epoch + 1'000'000);
    b.clock_reading(3'000'000, 3'000'000, epoch + 500'000);  // set back
    b.clock_reading(4'000'000, 4'000'000, epoch + 1'500'000);
    b.clock_reading(5'000'000, 5'000'000, epoch + 3'600'002'500'000);  // an hour forward
    const auto& work = b.event({1, "work", {{"n"}}, event_kind::span});
    const auto lane = b.lane(b.process(7, "service"), 1, "main");
    b.open(lane, 900'000);
    for (const std::uint64_t from : {1'500'000U, 2'900'000U, 3'100'000U, 4'900'000U, 5'100'000U}) {
        b.record(lane, from, work, {from}, record_word::begin);
        b.raw_record(lane, from + 200'000, 1, {}, record_word::end);
    }
    b.record(lane, 5'500'000, work, {1}, record_word::begin);
    const auto other = b.lane(0, 2, "other");
    b.open(other, 900'000);
    b.end_of(other, 5'400'000, work, lane, 10);  // before its begin: in another thread
    return b;
}

/// Before 1970, and after it.
file_builder early() {
    file_builder b;
    b.clock_reading(1'000'000, 1'000'000, 500'000);
    const auto& tick = b.event({1, "tick", {{"n"}}});
    const auto& work = b.event({2, "work", {{"n"}}, event_kind::span});
    const auto lane = b.lane(b.process(7, "service"), 1, "main");
    b.open(lane, 1000);
    for (const std::uint64_t from : {100'000U, 450'000U, 700'000U}) {
        b.record(lane, from, work, {from}, record_word::begin);
        b.record(lane, from + 50'000, tick, {from}, from == 450'000U ? record_word::interval : 0U);
        b.raw_record(lane, from + 100'000, 2, {}, record_word::end);
    }
    b.lost(lane, 2, 0, 0);
    b.lane_counts(lane, 2, 0, 0, 0);
    return b;
}

/// Without a clock.
file_builder undated() {
    file_builder b;
    const auto& work = b.event({1, "work", {{"n"}}, event_kind::span});
    const auto& tick = b.event({2, "tick", {{"n"}}});
    const auto lane = b.lane(b.process(7, "service"), 1, "main");
    b.open(lane, 10);
    for (std::uint64_t i = 0; i < 3; ++i) {
        b.record(lane, 20 + i * 10, work, {i}, record_word::begin);
        b.record(lane, 21 + i * 10, tick, {i});
        b.raw_record(lane, 22 + i * 10, 1, {}, record_word::end);
    }
    b.record(lane, 60, work, {9}, record_word::begin);
    return b;
}

struct request : trace_ring::span<
                     "request", trace_ring::field<"url", std::string_view>,
                     trace_ring::field<"job", trace_ring::flow>,
                     trace_ring::results<trace_ring::field<"status", int>,
                                         trace_ring::field<"latency", std::chrono::milliseconds>>> {
};
struct part : trace_ring::span<"part", trace_ring::field<"n", int>> {};
struct tick : trace_ring::event<"tick", trace_ring::field<"n", int>> {};

/// Spans with results, one of which another thread ends.
template <class Recorder>
void record(const std::string& file) {
    using namespace std::chrono_literals;
    Recorder recorder{{.file = file, .exists = trace_ring::if_exists::replace}};
    for (int i = 0; i < 20; ++i) {
        auto whole = recorder.template scope<request>(std::string_view("/orders"),
                                                      trace_ring::flow{100 + std::uint64_t(i)});
        const auto inner = recorder.template scope<part>(i);
        recorder.template record<tick>(i);
        if (i % 5 == 3) {
            std::thread([&recorder, i, moved = std::move(whole)]() mutable {
                recorder.template record<tick>(i);
                moved.end(i, 5ms);
            }).join();
        } else if (i % 5 != 4) {
            whole.end(i, 7ms);
        }  // otherwise it ends without results
    }
}
struct by_processor : trace_ring::policies<trace_ring::claim::per_cpu> {};
struct sampled_clock : trace_ring::policies<trace_ring::clock::sampled<16>> {};
using sampled = trace_ring::basic_recorder<sampled_clock>;

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    const std::string folder = std::string(argv[1]) + '/';
    edges().save(folder + "edges.trace");
    flows(0).save(folder + "flows.trace");
    flows(5000).save(folder + "flows_elsewhere.trace");
    dates().save(folder + "dates.trace");
    early().save(folder + "early.trace");
    undated().save(folder + "undated.trace");
    file_builder nothing;
    nothing.clock_reading(0, 0, epoch);
    nothing.save(folder + "nothing.trace");
    record<trace_ring::recorder>(folder + "recorded.trace");
    record<sampled>(folder + "sampled.trace");
    record<trace_ring::basic_recorder<by_processor>>(folder + "by_processor.trace");
    return 0;
}
