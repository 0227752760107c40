// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Spans that end with results, fields that are durations, and fields that are structures: from the
/// call that records them to each format, and in conditions.

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <variant>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <expressions/parse.hpp>
#include <trace_reduce/exporting/chrome.hpp>
#include <trace_reduce/exporting/csv.hpp>
#include <trace_reduce/exporting/ctf.hpp>
#include <trace_reduce/exporting/perfetto.hpp>
#include <trace_reduce/where/check.hpp>
#include <trace_reduce/where/predicate.hpp>
#include <trace_ring/exporter/json.hpp>
#include <trace_ring/exporter/text.hpp>
#include <trace_ring/policy/claim/per_cpu.hpp>
#include <trace_ring/policy/clock/none.hpp>
#include <trace_ring/policy/clock/sampled.hpp>
#include <trace_ring/recorder/cpu/recorder.hpp>
#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/reduce/span/pairs.hpp>
#include <trace_ring/reduce/statistics.hpp>
#include <trace_ring/reduce/trace_file.hpp>

namespace span_results {

namespace tr = trace_ring;
using namespace std::chrono_literals;

struct point {
    int x;
    std::int16_t y;
};
struct box {
    point from;
    point to;
    double weight;
};
struct hidden {
    point inside;
};
enum class outcome : std::uint8_t { good, bad };

}  // namespace span_results

template <>
struct trace_ring::members_of<span_results::point>
    : trace_ring::members<&span_results::point::x, &span_results::point::y> {};
template <>
struct trace_ring::members_of<span_results::box>
    : trace_ring::members<&span_results::box::from, &span_results::box::to,
                          &span_results::box::weight> {};
template <>
struct trace_ring::as_field<span_results::hidden> {
    using type = span_results::point;
    static type convert(const span_results::hidden& from) noexcept { return from.inside; }
};
template <>
struct trace_ring::names_of<span_results::outcome> {
    static constexpr value_name<span_results::outcome> list[] = {
        {span_results::outcome::good, "good"}, {span_results::outcome::bad, "bad"}};
};

namespace span_results {

namespace reduce = tr::reduce;
namespace exporter = tr::exporter;
namespace where = trace_reduce::where;
using tr::field;
using third = std::chrono::duration<std::int32_t, std::ratio<1, 3>>;
using picoseconds = std::chrono::duration<std::int64_t, std::pico>;

struct request
    : tr::span<"request", field<"url", std::string_view>,
               tr::results<field<"status", int>, field<"how", outcome>,
                           field<"latency", std::chrono::milliseconds>, field<"at", point>>> {};
struct answer : tr::span<"answer", field<"n", int>, tr::results<field<"text", std::string_view>>> {
};
struct plain : tr::span<"plain", field<"n", int>> {};
/// More words than stay in registers.
struct wide : tr::span<"wide", tr::results<field<"all", std::array<std::uint64_t, 12>>>> {};
struct moved : tr::event<"moved", field<"box", box>, field<"by", hidden>> {};
struct lasted : tr::event<"lasted", field<"n", std::chrono::nanoseconds>, field<"t", third>,
                          field<"f", std::chrono::duration<float>>, field<"p", picoseconds>,
                          field<"h", std::chrono::hours>,
                          field<"all", std::array<std::chrono::microseconds, 2>>,
                          field<"row", std::span<const std::chrono::minutes>>> {};

// The names of members are as compilers spell them.
template <class T>
struct of_type {
    T first_;
    int second2;
};
struct derived : of_type<of_type<double>> {};
namespace {
struct unnamed {
    int inside;
};
}  // namespace
static_assert(tr::impl::member_name<&of_type<int>::first_>::spelled() == "first_");
static_assert(tr::impl::member_name<&derived::second2>::spelled() == "second2");
static_assert(tr::impl::member_name<&unnamed::inside>::spelled() == "inside");
static_assert(tr::impl::member_name<&box::weight>::spelled() == "weight");

struct sampled : tr::policies<tr::clock::sampled<16>> {};
struct untimed : tr::policies<tr::clock::none> {};
struct by_cpu : tr::policies<tr::claim::per_cpu> {};
using kinds = std::tuple<tr::recording, sampled, untimed, by_cpu>;

template <class Recorder>
reduce::trace_file read(const Recorder& of) {
    const auto [at, size] = of.bytes();
    return reduce::trace_file::from({at, size}, "memory");
}
/// The records as text, without times, threads, and where a span began.
std::vector<std::string> lines(reduce::trace_file& trace, const reduce::filter& what = {},
                               bool backward = false) {
    exporter::text_writer writer(trace.time());
    std::vector<std::string> out;
    const auto add = [&](const reduce::item& one) {
        const auto* const record = std::get_if<reduce::record_view>(&one);
        BOOST_REQUIRE(record != nullptr);
        exporter::text_buffer text;
        writer.append_event(text, *record);
        writer.append_fields(text, *record);
        std::string line(text.view());
        if (const auto at = line.find(" (began at"); at != line.npos) {
            line.replace(at, line.find(')') - at + 1, " (elsewhere)");
        }
        out.push_back(line);
    };
    if (backward) {
        auto all = trace.backward(what);
        while (const reduce::item* one = all.next()) add(*one);
        return {out.rbegin(), out.rend()};
    }
    auto all = trace.forward(what);
    while (const reduce::item* one = all.next()) add(*one);
    return out;
}
std::vector<std::string> chosen(reduce::trace_file& trace, const std::string& text,
                                bool backward = false) {
    auto parsed = expressions::parse(text);
    BOOST_REQUIRE(std::holds_alternative<where::expression>(parsed));
    auto& what = std::get<where::expression>(parsed);
    const reduce::tables* const traces[] = {&trace.about()};
    const auto wrong = where::find_mistake(what, traces);
    if (wrong) return {wrong->what};
    reduce::filter with;
    with.condition = std::make_shared<where::predicate>(trace.about(), std::move(what));
    return lines(trace, with, backward);
}
void same(const std::vector<std::string>& found, const std::vector<std::string>& wanted) {
    BOOST_CHECK_EQUAL_COLLECTIONS(found.begin(), found.end(), wanted.begin(), wanted.end());
}

template <class Recorder>
void requests(Recorder& recorder) {
    auto first = recorder.template scope<request>("/a");
    BOOST_CHECK(first.end(200, outcome::good, 12ms, point{1, -2}));
    BOOST_CHECK(!first.end(404, outcome::bad, 1ms, point{}));
    try {
        const auto second = recorder.template scope<request>("/b");
        throw std::runtime_error("it is left early");
    } catch (const std::runtime_error&) {
    }
    auto outer = recorder.template scope<request>("/c");
    {
        auto inner = recorder.template scope<answer>(7);
        BOOST_CHECK(inner.end("forty-two"));
    }
    auto moved_on = std::move(outer);
    BOOST_CHECK(!outer.end(1, outcome::bad, 1ms, point{}));
    BOOST_CHECK(moved_on.end(500, outcome::bad, 1500ms, point{3, 4}));
}
const std::vector<std::string> of_requests = {
    "request:begin url=\"/a\"",      "request:end status=200 how=good latency=12ms at.x=1 at.y=-2",
    "request:begin url=\"/b\"",      "request:end (no results)",
    "request:begin url=\"/c\"",      "answer:begin n=7",
    "answer:end text=\"forty-two\"", "request:end status=500 how=bad latency=1500ms at.x=3 at.y=4",
};

BOOST_AUTO_TEST_SUITE(span_results_and_durations)

BOOST_AUTO_TEST_CASE_TEMPLATE(a_span_ends_once_with_results_or_visibly_without, Kind, kinds) {
    tr::basic_recorder<Kind> recorder{{.size = 1 << 20}};
    requests(recorder);
    auto trace = read(recorder);
    same(lines(trace), of_requests);
    same(lines(trace, {}, true), of_requests);
    BOOST_CHECK(trace.damages().empty());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(spans_that_do_not_nest_end_with_their_results, Kind, kinds) {
    tr::basic_recorder<Kind> recorder{{.size = 1 << 20}};
    auto first = recorder.template scope<request>("/a");
    auto second = recorder.template scope<answer>(1);
    auto third = recorder.template scope<wide>();
    auto fourth = recorder.template scope<answer>(2);
    BOOST_CHECK(first.end(1, outcome::good, 2ms, point{3, 4}));
    std::array<std::uint64_t, 12> all{};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i * i;
    BOOST_CHECK(third.end(all));
    std::thread([&] { BOOST_CHECK(second.end("by another thread")); }).join();
    BOOST_CHECK(fourth.end(std::string(100'000, 'x')));  // cut to fit
    auto trace = read(recorder);
    reduce::span_pairs<int> pairs;
    std::map<std::string, int> ends;
    std::size_t longest = 0;
    auto cursor = trace.forward();
    while (const reduce::item* one = cursor.next()) {
        const auto& record = std::get<reduce::record_view>(*one);
        BOOST_TEST(record.fault() == "");
        if (record.begins()) pairs.begin(record, 1, [](const auto&) {});
        if (!record.ends()) continue;
        const auto found = pairs.end(record, [](const auto&) {});
        BOOST_TEST(found.begun.has_value());
        ++ends[std::string(record.name())];
        if (record.name() == "wide") {
            const auto value = record.field("all");
            for (std::size_t i = 0; i < all.size(); ++i) BOOST_TEST(value.at(i).u64() == all[i]);
        }
        if (record.name() == "answer") {
            longest = std::max(longest, record.field("text").text().size());
        }
    }
    BOOST_TEST(ends["request"] == 1);
    BOOST_TEST(ends["answer"] == 2);
    BOOST_TEST(ends["wide"] == 1);
    BOOST_TEST(longest > 3000U);
    reduce::filter about_first;
    about_first.events = {"request"};
    same(lines(trace, about_first),
         {"request:begin url=\"/a\"",
          "request:end (elsewhere) status=1 how=good latency=2ms at.x=3 at.y=4"});
    BOOST_CHECK(trace.damages().empty());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(results_of_every_length_fill_sub_buffers, Kind, kinds) {
    tr::basic_recorder<Kind> recorder{{.size = 1 << 20, .sub_buffer_bytes = 512}};
    constexpr int count = 300;
    for (int i = 0; i < count; ++i) {
        auto outer = recorder.template scope<answer>(i);
        auto inner = recorder.template scope<answer>(i);
        auto& first = i % 2 == 0 ? inner : outer;
        auto& second = i % 2 == 0 ? outer : inner;
        first.end(std::string(static_cast<std::size_t>(i), 'a'));
        second.end(std::string(static_cast<std::size_t>(count - i), 'b'));
    }
    auto trace = read(recorder);
    std::size_t ends = 0;
    auto cursor = trace.forward();
    while (const reduce::item* one = cursor.next()) {
        const auto& record = std::get<reduce::record_view>(*one);
        BOOST_TEST(record.fault() == "");
        if (!record.ends()) continue;
        const auto text = record.field("text").text();
        const bool a = text.find_first_not_of('a') == text.npos;
        BOOST_CHECK(a || text.find_first_not_of('b') == text.npos);
        ++ends;
    }
    BOOST_TEST(ends == 2U * count);
    BOOST_CHECK(trace.damages().empty());
}

BOOST_AUTO_TEST_CASE(a_child_of_a_fork_ends_a_span_with_results) {
    tr::recorder recorder{{.size = 1 << 20}};
    auto span = recorder.scope<answer>(3);
    auto other = recorder.scope<request>("/f");
    const pid_t child = ::fork();
    if (child == 0) {
        const bool done = span.end("by the child");
        ::_exit(done ? 0 : 1);
    }
    int status = 0;
    BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
    BOOST_TEST(status == 0);
    BOOST_CHECK(other.end(1, outcome::good, 2ms, point{3, 4}));
    auto trace = read(recorder);
    reduce::filter what;
    what.events = {"answer"};
    auto found = lines(trace, what);
    BOOST_REQUIRE(found.size() >= 2);
    BOOST_TEST(found[1] == "answer:end (elsewhere) text=\"by the child\"");
}

BOOST_AUTO_TEST_CASE(spans_without_results_can_end_early_too) {
    tr::recorder recorder{{.size = 1 << 20}};
    {
        auto span = recorder.scope<plain>(1);
        BOOST_CHECK(span.end());
        BOOST_CHECK(!span.end());
        recorder.record<moved>(box{{1, 2}, {3, 4}, 0.5}, hidden{{5, 6}});
    }
    auto trace = read(recorder);
    same(lines(trace), {"plain:begin n=1", "plain:end",
                        "moved box.from.x=1 box.from.y=2 box.to.x=3 box.to.y=4 box.weight=0.5 "
                        "by.x=5 by.y=6"});
}

BOOST_AUTO_TEST_CASE(structures_can_be_reserved_and_asked_for) {
    tr::recorder recorder{{.size = 1 << 20}};
    auto one = recorder.reserve<moved>(box{{1, 2}, {3, 4}, 0.5}, hidden{{5, 6}});
    BOOST_CHECK(one.commit());
    tr::basic_recorder<by_cpu> other{{.size = 1 << 20}};
    auto two = other.reserve<moved>(box{{-1, 2}, {3, 4}, 0.5}, hidden{{5, 6}});
    BOOST_CHECK(two.commit());
    auto first = read(recorder);
    auto second = read(other);
    BOOST_TEST(chosen(first, "box.from.x < 0").size() == 0U);
    BOOST_TEST(chosen(second, "box.from.x < 0 and moved.by.y == 6").size() == 1U);
}

BOOST_AUTO_TEST_CASE(durations_are_exact_and_show_their_unit) {
    tr::recorder recorder{{.size = 1 << 20}};
    const std::chrono::minutes row[] = {1min, 90min};
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    recorder.record<lasted>(std::chrono::nanoseconds(most), third(-2),
                            std::chrono::duration<float>(1.5F), picoseconds(1250), 25h,
                            std::array{1us, 2us}, std::span<const std::chrono::minutes>(row));
    auto trace = read(recorder);
    same(lines(trace), {"lasted n=9223372036854775807ns t=-2[1/3]s f=1.5s p=1250ps h=25h all=[1us "
                        "2us] row=[1min 90min]"});
    // Of the first, the greatest that a condition can name.
    for (const char* holds : {"n > 9223372036854775us",
                              "t < 0",
                              "t > -667ms",
                              "t < -666ms",
                              "f == 1500ms",
                              "f > 1.4s",
                              "p > 1ns",
                              "p < 2ns",
                              "h == 25h",
                              "h > 1499min",
                              "all[1] == 2us",
                              "all[0] < 1001ns",
                              "row[1] >= 1.5h",
                              "h - 1h == 24h",
                              "h in {1h..2h, 24h..25h}",
                              "p * 4 == 5ns",
                              "n > h",
                              "p == 1250ps",
                              "p == 1.25ns",
                              "p > 1249999fs",
                              "p < 1250001fs",
                              "t == -2[1/3]s",
                              "t < -1[1/3]s",
                              "h > 1d",
                              "h < 1.5d",
                              "f < 2[1]s"}) {
        BOOST_TEST(chosen(trace, holds).size() == 1U, holds);
        BOOST_TEST(chosen(trace, std::string("not (") + holds + ")").empty(), holds);
    }
    same(chosen(trace, "h > 24"),
         {"a number compared with a duration: it needs a unit, as 10ms has"});
    same(chosen(trace, "24 < h"),
         {"a number compared with a duration: it needs a unit, as 10ms has"});
}

BOOST_AUTO_TEST_CASE(conditions_know_results) {
    tr::recorder recorder{{.size = 1 << 20}};
    requests(recorder);
    auto trace = read(recorder);
    for (const bool backward : {false, true}) {
        const auto& first = of_requests[1];
        const auto& last = of_requests[7];
        same(chosen(trace, "latency > 12ms", backward), {last});
        same(chosen(trace, "latency >= 12ms", backward), {first, last});
        same(chosen(trace, "status >= 500 or at.y == -2", backward), {first, last});
        same(chosen(trace, "request.how == \"bad\"", backward), {last});
        same(chosen(trace, "text ~ \"forty*\"", backward), {of_requests[6]});
        same(chosen(trace, "url == \"/b\"", backward), {of_requests[2]});
    }
}

BOOST_AUTO_TEST_CASE(statistics_count_both_ends_as_one_event) {
    tr::recorder recorder{{.size = 1 << 20}};
    requests(recorder);
    auto trace = read(recorder);
    const auto sum = trace.statistics();
    BOOST_REQUIRE(sum.events.size() == 2U);
    BOOST_TEST(sum.events[0].records == 6U);
    BOOST_TEST(sum.events[1].records == 2U);
}

BOOST_AUTO_TEST_CASE(every_format_has_results_and_units) {
    tr::recorder recorder{{.size = 1 << 20}};
    requests(recorder);
    auto other = recorder.scope<plain>(1);
    auto last = recorder.scope<request>("/d");
    other.end();
    last.end(201, outcome::good, 3ms, point{});
    auto trace = read(recorder);
    exporter::json_writer json(trace.time());
    trace_reduce::exporting::csv_writer csv;
    trace_reduce::exporting::chrome_writer chrome;
    trace_reduce::exporting::perfetto_writer perfetto;
    std::map<std::string, std::string> ctf;
    trace_reduce::exporting::ctf_writer to_ctf(
        [&](std::string_view file, std::string_view bytes) { ctf[std::string(file)] += bytes; });
    exporter::text_buffer in_json, in_csv, in_chrome, in_perfetto;
    csv.add(trace.about(), "a");
    chrome.add(trace.about(), "a");
    perfetto.add(trace.about(), "a");
    const auto number = to_ctf.add(trace.about(), "a");
    csv.begin(in_csv);
    chrome.begin(in_chrome);
    perfetto.begin(in_perfetto);
    to_ctf.begin();
    auto all = trace.forward();
    while (const reduce::item* one = all.next()) {
        json.append(in_json, *one);
        csv.append(in_csv, 0, *one);
        chrome.append(in_chrome, 0, *one);
        perfetto.append(in_perfetto, 0, *one);
        to_ctf.append(number, *one);
    }
    chrome.end(in_chrome);
    perfetto.end(in_perfetto);
    to_ctf.end();
    const auto has = [](const exporter::text_buffer& in, std::string_view what) {
        BOOST_TEST((in.view().find(what) != std::string_view::npos), what << " in " << in.view());
    };
    has(in_json, R"("span":"end","fields":{"status":200,"how":"good","latency":12,"at.x":1,)"
                 R"("at.y":-2},"units":{"latency":"ms"}})");
    has(in_json, R"("span":"end","results":false,"fields":{})");
    has(in_json, R"("fields":{"status":201,"how":"good","latency":3,)");
    has(in_csv, R"("request.url","request.status","request.how","request.latency [ms]",)");
    has(in_csv, R"(,200,"good",12,1,-2,)");
    has(in_chrome, R"("args":{"status":200,"how":"good","latency [ms]":12,"at.x":1,"at.y":-2})");
    has(in_chrome, R"("args":{"trace_ring.end":"no results"})");
    has(in_perfetto, "latency [ms]");
    has(in_perfetto, "no results");
    const std::string& metadata = ctf["metadata"];
    for (const char* what : {" _status;", " _latency_ms;", " _at_x2e_x;", "u32 _began_lane;"}) {
        BOOST_TEST((metadata.find(what) != metadata.npos), what << " in " << metadata);
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace span_results
