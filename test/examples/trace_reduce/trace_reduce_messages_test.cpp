// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// What trace-reduce reports if an option's value names nothing, and how it reports losses
/// without a time.

#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <reduce/file_builder.hpp>
#include <reduce/scratch_file.hpp>

#include "trace_reduce_run.hpp"

BOOST_AUTO_TEST_SUITE(trace_reduce_messages)

using namespace trace_ring_test;

namespace {

/// Two threads, two events, one of them of spans; an enumeration with a space in a name.
file_builder orders() {
    file_builder b;
    b.clock_reading(0, 0, 1'700'000'000'000'000'000);
    b.clock_reading(1'000'000'000, 1'000'000'000, 1'700'000'001'000'000'000);
    using type = trace_ring::field_type;
    const auto& sent = b.event(
        {1,
         "order.sent",
         {{.name = "price", .type = type::u32},
          {.name = "state", .type = type::u8, .names = {{1, "in flight"}, {2, "done"}}},
          {.name = "peer", .type = type::u8, .form = trace_ring::field_form::array, .count = 8}}});
    event_spec span{2, "request", {{"id"}}};
    span.kind = trace_ring::event_kind::span;
    const auto& request = b.event(span);
    const auto process = b.process(1200);
    const auto first = b.lane(process, 11, "reader");
    const auto second = b.lane(process, 12, "writer");
    b.open(first, 100);
    b.open(second, 100);
    const std::vector<std::uint64_t> peer{1, 2, 3, 4, 5, 6, 7, 8};
    b.record(first, 100, sent, {5, 1, peer});
    b.record(second, 200, sent, {6, 2, peer});
    b.record(second, 300, request, {1}, trace_ring::record_word::begin);
    b.raw_record(second, 400, request.id, {}, trace_ring::record_word::end);
    b.without_lane(3, 1);
    return b;
}

struct saved_orders {
    scratch_file file;
    saved_orders() { orders().save(file.path()); }
    [[nodiscard]] reduced with(std::vector<std::string> arguments) const {
        arguments.push_back(file.path());
        return run_trace_reduce(arguments);
    }
    void warns(const std::vector<std::string>& arguments, const std::string& what) const {
        const auto found = with(arguments);
        BOOST_TEST(found.status == 0);
        BOOST_TEST(found.errors == "trace-reduce: " + what + "\n");
    }
    void refuses(const std::vector<std::string>& arguments, const std::string& what) const {
        const auto found = with(arguments);
        BOOST_TEST(found.status == 1);
        BOOST_TEST(found.errors == "trace-reduce: " + what + "\n");
        BOOST_TEST(found.output == "");
    }
};

}  // namespace

BOOST_AUTO_TEST_CASE(an_event_or_a_thread_that_no_trace_has_is_a_warning) {
    const saved_orders t;
    t.warns({"--event", "order.snet"},
            "--event order.snet: no event has such a name; did you mean 'order.sent'?");
    t.warns({"--event", "order.*", "--event", "zz*", "--format", "json"},
            "--event zz*: no event has such a name; there is 'order.sent', 'request'");
    t.warns({"--stats", "--event", "zz*"},
            "--event zz*: no event has such a name; there is 'order.sent', 'request'");
    t.warns({"--event", "zz*", "--follow", "--until-closed"},
            "--event zz*: no event has such a name yet; there is 'order.sent', 'request'");
    t.warns({"--thread", "raeder"},
            "--thread raeder: no listed thread has this name; did you mean 'reader'?");
    t.warns({"--thread", "nobody*", "--thread", "12", "--backward"},
            "--thread nobody*: no listed thread has this name; there is 'reader', 'writer'");
    t.warns({"--thread", "99", "--stats"}, "--thread 99: no listed thread has this id");
    t.warns({"--thread", "99", "--follow", "--until-closed"},
            "--thread 99: no listed thread has this id yet");
    BOOST_TEST(t.with({"--event", "*", "--thread", "w*", "--thread", "11"}).errors == "");
    // It matches, although nothing is shown.
    BOOST_TEST(t.with({"--event", "request", "--thread", "reader"}).errors == "");
}

BOOST_AUTO_TEST_CASE(statistics_of_a_field_that_no_event_has_are_an_error) {
    const saved_orders t;
    t.refuses({"--stats", "--by", "prise"},
              "--by prise: no counted event has a field 'prise'; did you mean 'price'?");
    t.refuses({"--stats", "--by", "field:thread"},
              "--by field:thread: no counted event has a field 'thread'; did you mean 'thread'?");
    t.refuses({"--stats", "--event", "order.*", "--by", "tread"},
              "--by tread: no counted event has a field 'tread'; did you mean 'thread'?");
    t.refuses({"--stats", "--event", "request", "--by", "price", "--format", "csv"},
              "--by price: no counted event has a field 'price'; there is 'event', "
              "'id', 'lane', 'process', 'request.id', 'thread'");
    t.refuses({"--stats", "--histogram", "nosuch.*"},
              "--histogram nosuch.*: no counted event has such a field; there is "
              "'order.sent.peer', 'order.sent.price', 'order.sent.state', 'request.duration', "
              "'request.id'");
    t.refuses({"--stats", "--histogram", "order.sent.prices", "--format", "json"},
              "--histogram order.sent.prices: no counted event has such a field; did you mean "
              "'order.sent.price'?");
    for (const char* const by : {"price", "order.sent.price", "field:id", "event", "lane"}) {
        BOOST_TEST(t.with({"--stats", "--by", by}).status == 0, by);
    }
    BOOST_TEST(t.with({"--stats", "--histogram", "req*.duration"}).errors == "");
    // The event exists, but has no counted records.
    const auto none = t.with({"--stats", "--where", "price > 0", "--histogram", "request.id"});
    BOOST_TEST(none.status == 0);
    BOOST_TEST(none.output.ends_with("\nrequest.id: no records with such a field\n"));
}

BOOST_AUTO_TEST_CASE(other_values_of_options_are_named) {
    const saved_orders t;
    t.refuses({"--format", "nope"},
              "--format: 'nope' is none of text, json, csv, chrome, perfetto, ctf, otlp, html, "
              "clickhouse, clickhouse-table, print (see --help)");
    t.refuses({"--format", "0"},
              "--format: '0' is none of text, json, csv, chrome, perfetto, ctf, otlp, html, "
              "clickhouse, clickhouse-table, print (see --help)");
    t.refuses({"--time", "utc"}, "--time: 'utc' is none of local, relative, raw (see --help)");
    t.refuses({"--colour", "yes"}, "--colour: 'yes' is none of auto, always, never (see --help)");
    const auto found = t.with({"--where", "peer[9] > 250"});
    BOOST_TEST(found.status == 1);
    BOOST_TEST(found.errors.find("'peer' has 8 elements: the last is peer[7]") != std::string::npos,
               found.errors);
}

BOOST_AUTO_TEST_CASE(names_of_values_that_contain_spaces_are_quoted) {
    const saved_orders t;
    const auto found = t.with({"--event", "order.sent"}).output;
    BOOST_TEST(found.find(" price=5 state=\"in flight\" peer=[") != std::string::npos, found);
    BOOST_TEST(found.find(" price=6 state=done peer=[") != std::string::npos, found);
}

BOOST_AUTO_TEST_CASE(losses_in_no_listed_lane_are_of_an_unknown_time) {
    const saved_orders t;
    const std::string loss = "-- 3 records lost in no listed lane, at an unknown time: refused";
    for (const std::vector<std::string>& range : std::vector<std::vector<std::string>>{
             {}, {"--from", "50%", "--to", "51%"}, {"--backward", "--to", "1%"}}) {
        const auto found = t.with(range).output;
        const auto at = found.find(loss);
        BOOST_TEST(at != std::string::npos, found);
        BOOST_TEST(found.find(loss, at + 1) == std::string::npos, found);
    }
    const std::string sum =
        "  lost      3: refused 3; 3 of them in no listed lane, at an unknown time\n";
    BOOST_TEST(t.with({"--stats"}).output.find(sum) != std::string::npos);
    BOOST_TEST(t.with({"--stats", "--from", "50%"}).output.find(sum) != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
