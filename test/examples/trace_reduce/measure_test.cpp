// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The output of trace-reduce --stats for fields, spans and groups: the counting alone, and the
/// program from outside.

#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <exporter/json_check.hpp>
#include <reduce/file_builder.hpp>
#include <reduce/named_values.hpp>
#include <reduce/scratch_file.hpp>
#include <trace_reduce/measure/frequent.hpp>
#include <trace_reduce/measure/histogram.hpp>
#include <trace_reduce/measure/in_text.hpp>
#include <trace_reduce/measure/measures.hpp>
#include <trace_reduce/measure/numbers.hpp>
#include <trace_ring/recorder/recorder.hpp>

BOOST_AUTO_TEST_SUITE(measures)

using namespace trace_ring_test;
using namespace trace_reduce::measure;

namespace {

/// Standard output of trace-reduce with these arguments; the test fails if it does.
std::string output_of(const std::string& arguments) {
    std::FILE* const pipe = ::popen((TRACE_REDUCE " " + arguments).c_str(), "r");
    BOOST_REQUIRE(pipe != nullptr);
    std::string all;
    char part[4096];
    for (std::size_t got = 0; (got = std::fread(part, 1, sizeof part, pipe)) != 0;) {
        all.append(part, got);
    }
    const int status = ::pclose(pipe);
    BOOST_TEST((WIFEXITED(status) && WEXITSTATUS(status) == 0));
    return all;
}
/// What comes after the plain statistics.
std::string measured(const std::string& arguments) {
    const std::string all = output_of("--stats " + arguments);
    const std::size_t lanes = all.find("lane    thread\n");
    if (lanes == std::string::npos) return all.substr(all.find('\n') + 1);  // groups alone
    const std::size_t slowest = all.find("the slowest spans\n", lanes);
    return all.substr(all.find("\n\n", slowest == std::string::npos ? lanes : slowest) + 1);
}

template <class T>
void check_percentiles(numbers of, std::vector<T> values) {
    for (const T value : values) of.add(value);
    std::sort(values.begin(), values.end());
    for (const double share : {0.001, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0}) {
        const auto rank = static_cast<std::size_t>(
            std::max(1.0, std::ceil(share * static_cast<double>(values.size()))));
        const auto exact = static_cast<double>(values[rank - 1]);
        const double found = of.percentile(share);
        BOOST_TEST(std::fabs(found - exact) <= std::fabs(exact) / 256,
                   share << ": " << found << " is not near " << exact);
    }
    BOOST_TEST(of.least() == static_cast<double>(values.front()));
    BOOST_TEST(of.greatest() == static_cast<double>(values.back()));
    BOOST_TEST(of.count() == values.size());
}

/// Two threads: spans, some of them torn; numbers of all kinds, and texts.
file_builder sample() {
    file_builder b;
    b.clock_reading(0, 0, 1'700'000'000'000'000'000);
    b.clock_reading(1'000'000'000, 1'000'000'000, 1'700'000'001'000'000'000);
    const auto process = b.process(1200);
    const auto& order =
        b.event({1,
                 "order.sent",
                 {{"id"},
                  {"delta", trace_ring::field_type::i32},
                  {"price", trace_ring::field_type::f64},
                  {"ok", trace_ring::field_type::boolean},
                  {"to", trace_ring::field_type::character, trace_ring::field_form::variable}}});
    event_spec span{2, "request", {}};
    span.kind = trace_ring::event_kind::span;
    const auto& request = b.event(span);
    const auto first = b.lane(process, 11, "first");
    const auto second = b.lane(process, 12, "second");
    constexpr auto begin = trace_ring::record_word::begin;
    constexpr auto end = trace_ring::record_word::end;
    b.open(first, 100);
    b.record(first, 100, request, {}, begin);
    b.record(first, 110, request, {}, begin);  // the inner one: 20 ns
    b.record(first, 120, order, {1, std::uint64_t{0xFFFFFFFE}, 1.5, 1, "ada"});
    b.record(first, 130, request, {}, end);
    b.record(first, 200, request, {}, end);  // 100 ns
    b.record(first, 300, request, {}, begin);
    b.open(second, 105);
    b.record(second, 121, order, {2, 3, -2.5, 0, "bob"});
    b.record(second, 131, order, {300, 4, std::numeric_limits<double>::quiet_NaN(), 1, "ada"});
    b.record(second, 300, request, {}, end);
    return b;
}

}  // namespace

BOOST_AUTO_TEST_CASE(percentiles_are_as_near_as_promised) {
    std::mt19937_64 random(1);
    std::vector<std::uint64_t> naturals;
    std::vector<std::int64_t> integers;
    std::vector<double> reals;
    for (int i = 0; i < 20'000; ++i) {
        const std::uint64_t bits = random();
        naturals.push_back(bits >> (bits % 64));
        const auto size = static_cast<std::int64_t>(random() >> (1 + bits % 63));
        integers.push_back(i % 3 == 0 ? -size : size);
        reals.push_back((i % 4 == 0 ? -1 : 1) *
                        std::exp2(static_cast<double>(bits % 2000) - 1000 + 1.0 / (1 + i)));
    }
    check_percentiles(numbers(numbers::kind::natural), naturals);
    check_percentiles(numbers(numbers::kind::integer), integers);
    check_percentiles(numbers(numbers::kind::floating), reals);
    check_percentiles(numbers(numbers::kind::natural),
                      std::vector<std::uint64_t>{0, ~std::uint64_t{0}, 1});
    check_percentiles(numbers(numbers::kind::integer),
                      std::vector<std::int64_t>{INT64_MIN, INT64_MAX, 0, -1});
    check_percentiles(numbers(numbers::kind::floating),
                      std::vector<double>{5e-324, -5e-324, 0, 1.7e308, -1.7e308});
}

BOOST_AUTO_TEST_CASE(the_greatest_integers_are_shown_as_themselves) {
    numbers natural(numbers::kind::natural), integer(numbers::kind::integer);
    for (int i = 0; i < 3; ++i) {
        natural.add(std::numeric_limits<std::uint64_t>::max());
        integer.add(std::numeric_limits<std::int64_t>::max());
    }
    for (const double share : {0.5, 1.0}) {
        BOOST_TEST(shown(natural.percentile(share), natural.what()) == "18446744073709551615");
        BOOST_TEST(shown(integer.percentile(share), integer.what()) == "9223372036854775807");
    }
    integer.add(std::numeric_limits<std::int64_t>::min());
    BOOST_TEST(shown(integer.least(), integer.what()) == "-9223372036854775808");
}

BOOST_AUTO_TEST_CASE(small_integers_are_exact_and_the_mean_is) {
    numbers all;
    for (std::uint64_t i = 1; i <= 100; ++i) all.add(i);
    BOOST_TEST(all.percentile(0.5) == 50);
    BOOST_TEST(all.percentile(0.99) == 99);
    BOOST_TEST(all.mean() == 50.5);
    numbers reals(numbers::kind::floating);
    reals.add(1e16);
    for (int i = 0; i < 1000; ++i) reals.add(1.0);  // each alone is lost when added to 1e16
    BOOST_TEST(reals.mean() == (1e16 + 1000) / 1001);
}

BOOST_AUTO_TEST_CASE(what_is_no_number_is_counted_apart) {
    numbers all(numbers::kind::floating);
    all.add(std::numeric_limits<double>::quiet_NaN());
    all.add(std::numeric_limits<double>::infinity());
    all.add(-std::numeric_limits<double>::infinity());
    BOOST_TEST(all.count() == 0U);
    BOOST_TEST(all.percentile(0.5) == 0);
    all.add(-0.0);
    all.add(2.0);
    BOOST_TEST(all.count() == 2U);
    BOOST_TEST(all.not_numbers() == 1U);
    BOOST_TEST(all.infinities() == 1U);
    BOOST_TEST(all.negative_infinities() == 1U);
    BOOST_TEST(all.mean() == 1);
    BOOST_TEST(all.percentile(1) == 2);
}

BOOST_AUTO_TEST_CASE(sums_of_two_are_as_if_all_had_been_added_to_one) {
    numbers one(numbers::kind::integer), two(numbers::kind::integer), both(numbers::kind::integer);
    for (std::int64_t i = -500; i < 500; ++i) {
        (i % 2 == 0 ? one : two).add(i * i * i);
        both.add(i * i * i);
    }
    one.add(two);
    BOOST_TEST(one.count() == both.count());
    BOOST_TEST(one.mean() == both.mean());
    for (const double share : {0.1, 0.5, 0.9}) {
        BOOST_TEST(one.percentile(share) == both.percentile(share));
    }
}

BOOST_AUTO_TEST_CASE(the_frequent_stay_and_the_rare_are_summed_up) {
    frequent<nothing> all(10);
    std::uint64_t rare = 0;
    for (int round = 0; round < 1000; ++round) {
        all.add("often");
        if (round % 2 == 0) all.add("sometimes");
        all.add("rare " + std::to_string(round));
        ++rare;
    }
    const auto top = all.top(2);
    BOOST_REQUIRE(top.size() == 2U);
    BOOST_TEST(top[0].name == "often");
    BOOST_TEST(top[0].what->count == 1000U);
    BOOST_TEST(top[1].name == "sometimes");
    BOOST_TEST(top[1].what->count == 500U);
    BOOST_TEST(!all.exact());
    BOOST_TEST(all.size() <= 20U);
    std::uint64_t sum = all.forgotten();
    for (const auto& each : all.top(100)) sum += each.what->count;
    BOOST_TEST(sum == 1500U + rare);
    // Of one that comes late it is known how much may be missing.
    for (const auto& each : all.top(100)) {
        if (!each.name.starts_with("rare 99")) continue;
        BOOST_TEST(each.what->missed != 0U);  // once before each time that some were forgotten
        BOOST_TEST(each.what->missed <= 100U);
    }
    frequent<nothing> few(10);
    for (int i = 0; i < 20; ++i) few.add(std::to_string(i));
    BOOST_TEST(few.exact());
    BOOST_TEST(few.size() == 20U);
}

BOOST_AUTO_TEST_CASE(bars_hold_all_values_and_lie_in_order) {
    std::mt19937_64 random(2);
    for (const auto kind : {numbers::kind::integer, numbers::kind::floating}) {
        for (const double range : {0.5, 3.0, 100.0, 1e6, 1e18}) {
            numbers all(kind);
            for (int i = 0; i < 1000; ++i) {
                const double value = (static_cast<double>(random() >> 11) * 0x1p-53 - 0.3) * range;
                if (kind == numbers::kind::integer) {
                    all.add(static_cast<std::int64_t>(value));
                } else {
                    all.add(value);
                }
            }
            for (const auto& bars : {log_bars(all), linear_bars(all)}) {
                std::uint64_t sum = 0;
                double before = -std::numeric_limits<double>::infinity();
                for (const auto& bar : bars) {
                    sum += bar.count;
                    BOOST_TEST(std::min(bar.from, bar.to) >= before);
                    before = std::max(bar.from, bar.to) - (bar.from < 0 ? 0 : 1e-9);
                }
                BOOST_TEST(sum == 1000U);
            }
            BOOST_TEST(linear_bars(all).size() <= 20U);
        }
    }
    BOOST_TEST(log_bars(numbers()).empty());
    BOOST_TEST(linear_bars(numbers()).empty());
    BOOST_TEST(bar_length(1, 1'000'000, 50) == 1U);
    BOOST_TEST(bar_length(0, 10, 50) == 0U);
    BOOST_TEST(bar_length(10, 10, 50) == 50U);
}

BOOST_AUTO_TEST_CASE(a_fields_name_may_have_points) {
    BOOST_TEST(matches_field("order.sent.id", "order.sent", "id"));
    BOOST_TEST(matches_field("order.*.id", "order.sent", "id"));
    BOOST_TEST(matches_field("a.b.c", "a", "b.c"));
    BOOST_TEST(matches_field("*.*", "order.sent", "id"));
    BOOST_TEST(!matches_field("order.sent.id", "order", "id"));
    BOOST_TEST(!matches_field("id", "order.sent", "id"));
    BOOST_TEST(!matches_field("xid", "x", "id"));
}

BOOST_AUTO_TEST_CASE(the_program_tells_of_fields_and_spans) {
    scratch_file file;
    sample().save(file.path());
    BOOST_TEST(measured("--fields " + file.path()) ==
               "\n"
               "request: 4 spans, 20000000/s (6 records)\n"
               "  field       type  count  min  max  mean  50%  90%  99%  99.9%\n"
               "  (duration)  ns        2   20  100    60   20  100  100    100\n"
               "    without the other end: 2\n"
               "\n"
               "order.sent: 3 records, 15000000/s\n"
               "  field  type  count   min        max     mean   50%  90%  99%  99.9%\n"
               "  id     u64       3     1        300      101     2  300  300    300\n"
               "  delta  i32       3    -2          4  1.66667     3    4    4      4\n"
               "  price  f64       2  -2.5        1.5     -0.5  -2.5  1.5  1.5    1.5\n"
               "    not in these figures: 1 NaN\n"
               "  ok     bool      3     2  different\n"
               "     66.7%  2  true\n"
               "     33.3%  1  false\n"
               "  to     text      3     2  different\n"
               "     66.7%  2  \"ada\"\n"
               "     33.3%  1  \"bob\"\n");
}

struct with_results
    : trace_ring::span<
          "handled", trace_ring::field<"id", int>,
          trace_ring::results<trace_ring::field<"status", int>,
                              trace_ring::field<"latency", std::chrono::milliseconds>>> {};

BOOST_AUTO_TEST_CASE(results_of_spans_stand_behind_their_fields_with_their_units) {
    scratch_file file;
    file.remove();
    {
        trace_ring::recorder recorder{{.file = file.path(), .size = 1 << 20}};
        for (int i = 0; i < 4; ++i) {
            auto outer = recorder.scope<with_results>(i);
            auto inner = recorder.scope<with_results>(i);
            inner.end(200 + i, std::chrono::milliseconds(i));
            if (i == 0) continue;  // without results
            auto last = recorder.scope<with_results>(i);
            outer.end(500, std::chrono::milliseconds(100));  // says where it began
            last.end(500, std::chrono::milliseconds(100));
        }
    }
    const std::string shown = measured("--fields " + file.path());
    for (const char* const each :
         {"handled: 11 spans, ", " (22 records)\n", "\n  id            i32      11  ",
          "\n  status        i32      10  ", "\n  latency [ms]  i64      10  ",
          "\n  (duration)    ns       11 "}) {
        BOOST_TEST(shown.find(each) != std::string::npos, each << " in " << shown);
    }
    BOOST_TEST(shown.find("without the other end") == std::string::npos);
    const std::string json = output_of("--stats --fields --format json " + file.path());
    BOOST_TEST(json.find(R"("field":"latency","type":"i64","unit":"ms")") != std::string::npos,
               json);
    const std::string by = measured("--by latency " + file.path());
    BOOST_TEST(by.find("100ms") != std::string::npos, by);
    const std::string page = output_of("--format html " + file.path());
    BOOST_TEST(page.size() > 10'000U);
}

BOOST_AUTO_TEST_CASE(spans_that_do_not_nest_have_their_own_lengths) {
    file_builder b;
    b.clock_reading(0, 0, 1'700'000'000'000'000'000);
    event_spec span{1, "request", {{"id"}}};
    span.kind = trace_ring::event_kind::span;
    const auto& request = b.event(span);
    const auto process = b.process(1200);
    const auto lane = b.lane(process, 11, "first"), other = b.lane(process, 12, "second");
    constexpr auto begin = trace_ring::record_word::begin;
    b.open(other, 1);
    b.record(other, 5, request, {3}, begin);
    b.open(lane, 1);
    b.record(lane, 10, request, {1}, begin);
    b.record(lane, 20, request, {2}, begin);
    b.end_of(lane, 30, request, lane, 0);
    b.end_of(lane, 35, request, other, 0);
    b.raw_record(lane, 120, request.id, {}, trace_ring::record_word::end);
    scratch_file file;
    b.save(file.path());
    const std::string shown = measured("--fields --by id " + file.path());
    for (const char* const each :
         {"id 1:\n\n  request: 2 records, 17391304/s\n    field       type  count  min",
          "(duration)  ns        1   20   20    20", "(duration)  ns        1  100  100   100",
          "(duration)  ns        1   30   30    30"}) {
        BOOST_TEST(shown.find(each) != std::string::npos, shown);
    }
    BOOST_TEST(shown.find("without") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(where_nothing_tells_it_is_said_that_spans_did_not_nest) {
    file_builder b;
    b.put(offsetof(trace_ring::layout::file_header, version), 1, 4);
    event_spec outer{1, "outer", {}}, inner{2, "inner", {}};
    outer.kind = inner.kind = trace_ring::event_kind::span;
    const auto& one = b.event(outer);
    const auto& two = b.event(inner);
    const auto lane = b.lane(b.process(1200), 11);
    b.open(lane, 1);
    b.record(lane, 10, one, {}, trace_ring::record_word::begin);
    b.record(lane, 20, two, {}, trace_ring::record_word::begin);
    b.record(lane, 30, one, {}, trace_ring::record_word::end);
    b.record(lane, 40, two, {}, trace_ring::record_word::end);
    scratch_file file;
    b.save(file.path());
    const std::string shown = measured("--fields " + file.path());
    BOOST_TEST(shown.find("    not nested, so not known which is whose: 1\n") != std::string::npos,
               shown);
}

BOOST_AUTO_TEST_CASE(the_program_groups_records) {
    scratch_file file;
    sample().save(file.path());
    BOOST_TEST(measured("--by thread " + file.path()) ==
               "\n"
               "by thread         records  share    rate/s  bytes\n"
               "1200/11 first           6  66.7%  30000000     88\n"
               "1200/12 second          3  33.3%  15000000    104\n");
    // By a field: what has none is a group, too; and what is not shown is summed up.
    BOOST_TEST(measured("--by to --top 1 " + file.path()) ==
               "\n"
               "by to         records  share    rate/s  bytes\n"
               "(none)              6  66.7%  30000000     48\n"
               "(2 others)          3  33.3%  15000000    144\n");
    const std::string fields = measured("--by event --fields " + file.path());
    BOOST_TEST(fields.find("\nevent request:\n\n  request: 6 records") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_program_draws_histograms) {
    scratch_file file;
    sample().save(file.path());
    BOOST_TEST(measured("--histogram 'req*.duration' --histogram order.sent.to " + file.path()) ==
               "\n"
               "request.duration, ns: 2 values\n"
               "   20 .. 21  1  " +
                   std::string(64, '#') +
                   "\n"
                   "  96 .. 103  1  " +
                   std::string(64, '#') +
                   "\n"
                   "\n"
                   "order.sent.to: 3 values\n"
                   "  \"ada\"  2  " +
                   std::string(68, '#') +
                   "\n"
                   "  \"bob\"  1  " +
                   std::string(34, '#') + "\n");
    const std::string linear =
        measured("--buckets linear --histogram order.sent.id " + file.path());
    BOOST_TEST(linear.find("    1 .. 15  2  ####") != std::string::npos);
    BOOST_TEST(linear.find("286 .. 300  1  ####") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(values_of_enumerations_are_counted_by_their_names) {
    scratch_file file;
    named_values().save(file.path());
    const std::string fields = measured("--fields " + file.path());
    BOOST_TEST(fields.find("  side   enum        3    3  different\n"
                           "     33.3%  1  7\n"
                           "     33.3%  1  buy\n"
                           "     33.3%  1  sell\n") != std::string::npos,
               fields);
    BOOST_TEST(fields.find("  some   enum[]      3    3  different\n") != std::string::npos,
               fields);
    const std::string groups = measured("--by side --histogram state.value " + file.path());
    for (const char* const part :
         {"\nbuy              2  ", "\nsell             1  ", "\n7                1  ",
          "\nhold             1  ", "\n   2  1  #", "\n  on  1  #"}) {
        BOOST_TEST(groups.find(part) != std::string::npos, groups);
    }
}

BOOST_AUTO_TEST_CASE(each_line_of_json_is_valid) {
    scratch_file file;
    sample().save(file.path());
    const std::string all =
        output_of("--stats --format json --fields --by to --histogram '*.*' " + file.path());
    std::size_t lines = 0;
    for (std::size_t at = 0; at < all.size(); ++lines) {
        const std::size_t end = all.find('\n', at);
        BOOST_TEST(json_check::valid(all.substr(at, end - at)), all.substr(at, end - at));
        at = end + 1;
    }
    // The plain one; 6 fields; 3 groups, one with the spans, two with 5 fields each; 6 histograms.
    BOOST_TEST(lines == 1U + 6 + 3 + 11 + 6);
    for (
        const char* part :
        {R"("event":"order.sent","field":"id","type":"u64","rate":1.5e+07,"count":3,"min":1,"max":300,"mean":101,"p50":2,)",
         R"("field":null,"type":"ns","count":2,"min":20,"max":100,)", R"("kind":"group",)",
         R"("by":"to","value":"ada","records":2,)",
         R"("field":"price","type":"f64","rate":1.5e+07,"count":2,"nan":1,"min":-2.5,)",
         R"("values":[{"value":"ada","count":2},{"value":"bob","count":1}])"}) {
        BOOST_TEST(all.find(part) != std::string::npos, part << " is not in " << all);
    }
}

BOOST_AUTO_TEST_SUITE_END()
