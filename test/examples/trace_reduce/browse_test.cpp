// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// What trace-reduce --browse shows, without a terminal: the model that the screen is drawn from.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <reduce/file_builder.hpp>
#include <reduce/scratch_file.hpp>
#include <trace_reduce/browse/traces/places.hpp>
#include <trace_reduce/browse/traces/trace.hpp>
#include <trace_reduce/browse/traces/trace_model.hpp>
#include <trace_ring/recorder/recorder.hpp>

BOOST_AUTO_TEST_SUITE(browse)

using namespace trace_ring_test;
using namespace trace_reduce::browse;

namespace {

constexpr std::uint64_t date = 1'700'000'000'000'000'000;

struct in_utc {
    in_utc() {
        ::setenv("TZ", "UTC", 1);
        ::tzset();
    }
};

/// The cells of a row with one space between; what was put in to align them is taken out.
std::string text_of(const row& of) {
    std::string text;
    for (const auto& cell : of.cells) {
        const std::size_t begin = cell.text.find_first_not_of(' ');
        if (begin == std::string::npos) continue;
        if (!text.empty()) text += ' ';
        text += cell.text.substr(begin, cell.text.find_last_not_of(' ') + 1 - begin);
    }
    return text;
}
std::vector<std::string> shown(trace_model& of) {
    std::vector<std::string> all;
    for (const auto& each : of.rows()) all.push_back(text_of(each));
    return all;
}
std::string here(trace_model& of) {
    for (const auto& each : of.rows()) {
        if (each.here) return text_of(each);
    }
    return "none";
}

/// What is marked as found in the current line.
std::string found_in(trace_model& of) {
    std::string text;
    for (const auto& each : of.rows()) {
        if (!each.here) continue;
        for (const auto& cell : each.cells) {
            for (const auto& part : cell.found) {
                text += cell.text.substr(part.begin, part.end - part.begin);
            }
        }
    }
    return text;
}

file_builder small() {
    file_builder b;
    b.clock_reading(0, 0, date);
    b.clock_reading(1'000'000'000, 1'000'000'000, date + 1'000'000'000);
    const auto process = b.process(1200);
    const auto& tick = b.event({1, "tick", {{"n"}}});
    const auto& other = b.event({2, "other.thing", {}});
    const auto first = b.lane(process, 11, "first");
    const auto second = b.lane(process, 12, "second");
    b.open(first, 100);
    b.record(first, 101, tick, {0});
    b.open(first, 110);
    b.record(first, 111, tick, {1});
    b.open(second, 105);
    b.record(second, 121, other, {});
    b.record(second, 131, tick, {2});
    b.record(first, 141, tick, {3});
    b.close(first, 150);
    b.wipe(1);
    return b;
}

/// Many records in many sub-buffers of four lanes, some at the same time.
struct many {
    file_builder b{{.sub_buffer_bytes = 4096, .sub_buffers = 4096}};
    std::size_t records = 0;

    explicit many(std::size_t rounds, std::uint64_t apart = 7, std::uint64_t offset = 0) {
        b.clock_reading(0, 0, date + offset);
        b.clock_reading(100'000'000'000, 100'000'000'000, date + 100'000'000'000 + offset);
        const auto process = b.process(1200);
        const auto& tick = b.event({1, "tick", {{"n"}}});
        const auto& rare = b.event({2, "rare", {{"n"}}});
        std::vector<std::uint32_t> lanes;
        for (std::uint32_t i = 0; i < 4; ++i) {
            lanes.push_back(b.lane(process, 11 + i, "thread"));
            b.open(lanes.back(), 1000);
        }
        for (std::size_t n = 0; n < rounds; ++n) {
            const std::uint64_t time = 1000 + n / 3 * apart;
            const auto lane = lanes[n * 7 / 5 % 4];
            const auto& event = n % 1000 == 999 ? rare : tick;
            if (!b.record(lane, time, event, {n})) {
                b.open(lane, time);
                b.record(lane, time, event, {n});
            }
            ++records;
        }
    }
};

/// All lines, of which there are so many, page by page.
std::vector<std::string> all_of(traces& of, std::size_t records) {
    trace_model everything(of, {}, shown_time::raw, "");
    std::vector<std::string> all;
    everything.resize(4000);
    while (all.size() < records) {
        const auto page = shown(everything);  // the last one is full, too
        const auto fresh = static_cast<std::ptrdiff_t>(std::min(page.size(), records - all.size()));
        all.insert(all.end(), page.end() - fresh, page.end());
        if (page.size() < 4000) break;
        everything.by_pages(1);
    }
    return all;
}

}  // namespace

BOOST_TEST_GLOBAL_FIXTURE(in_utc);

BOOST_AUTO_TEST_CASE(a_small_trace_is_shown_with_its_loss_in_place) {
    scratch_file file;
    small().save(file.path());
    traces all;
    all.add(trace_ring::reduce::trace_file::open(file.path()));
    trace_model shows(all, {}, shown_time::relative, "");
    shows.resize(3);
    using list = std::vector<std::string>;
    BOOST_TEST(shown(shows) ==
               (list{"-- 1 record lost: overwritten (lane 1, from position 0)",
                     "0.000000111 [11 first] tick n=1", "0.000000121 [12 second] other.thing"}));
    BOOST_TEST((shows.rows()[0].cells[0].how == style::bad));
    shows.by_lines(3);
    BOOST_TEST(here(shows) == "0.000000131 [12 second] tick n=2");
    shows.by_lines(100);
    BOOST_TEST(here(shows) == "0.000000141 [11 first] tick n=3");
    BOOST_TEST(shown(shows) ==
               (list{"0.000000121 [12 second] other.thing", "0.000000131 [12 second] tick n=2",
                     "0.000000141 [11 first] tick n=3"}));
    shows.home();
    BOOST_TEST(here(shows) == "-- 1 record lost: overwritten (lane 1, from position 0)");
    shows.end();
    BOOST_TEST(here(shows) == "0.000000141 [11 first] tick n=3");
    BOOST_TEST(shown(shows).size() == 3U);
    shows.by_lines(-100);
    BOOST_TEST(here(shows) == "-- 1 record lost: overwritten (lane 1, from position 0)");
    shows.resize(50);
    BOOST_TEST(shown(shows).size() == 5U);
    const std::string status = shows.status();
    BOOST_TEST(status.find("lost 1 overwritten") != std::string::npos, status);
    BOOST_TEST(status.find("11.1%") != std::string::npos, status);  // of 105 to 150
}

BOOST_AUTO_TEST_CASE(pages_forward_and_backward_show_each_line_once) {
    for (const bool several : {false, true}) {
        scratch_file file, other;
        many one(60'000);
        one.b.save(file.path());
        traces all;
        all.add(trace_ring::reduce::trace_file::open(file.path()));
        std::size_t records = one.records;
        if (several) {
            many two(20'000, 11, 3);
            two.b.save(other.path());
            all.add(trace_ring::reduce::trace_file::open(other.path()));
            records += two.records;
        }
        const auto expected = all_of(all, records);
        BOOST_REQUIRE(expected.size() == records);
        if (!several) {  // as a cursor has them
            auto again = trace_ring::reduce::trace_file::open(file.path());
            std::size_t i = 0;
            bool same = true;
            auto cursor = again.forward();
            while (const auto* item = cursor.next()) {
                const auto& record = std::get<trace_ring::reduce::record_view>(*item);
                const std::string name = "n=" + std::to_string(record.field(0).u64());
                same = same && expected[i++].ends_with(name);
            }
            BOOST_TEST(same);
        }
        trace_model shows(all, {}, shown_time::raw, "");
        const std::size_t rows = 1111;
        shows.resize(rows);
        shows.end();
        std::vector<std::string> backward;
        for (;;) {
            const auto page = shown(shows);
            const std::size_t left = expected.size() - backward.size();
            const std::size_t fresh = std::min(left, rows);
            BOOST_REQUIRE(page.size() == rows);
            backward.insert(backward.begin(), page.begin(),
                            page.begin() + static_cast<std::ptrdiff_t>(fresh));
            if (left <= rows) break;
            shows.by_pages(-1);
        }
        BOOST_TEST((backward == expected));
        // And down again: what was forgotten in the meantime is read once more.
        std::vector<std::string> forward = shown(shows);
        while (forward.size() + rows <= expected.size()) {
            shows.by_pages(1);
            const auto page = shown(shows);
            BOOST_REQUIRE(page.size() == rows);
            forward.insert(forward.end(), page.begin(), page.end());
        }
        BOOST_TEST(std::equal(forward.begin(), forward.end(), expected.begin()));
    }
}

BOOST_AUTO_TEST_CASE(places_are_found_by_time) {
    scratch_file file;
    many one(30'000, 1'000'000);  // 1000 ns, and then a millisecond each three records: 10 s
    one.b.save(file.path());
    traces all;
    all.add(trace_ring::reduce::trace_file::open(file.path()));
    trace_model shows(all, {}, shown_time::raw, "");
    shows.resize(20);
    const auto at = [&](const char* place) {
        shows.clear_message();
        shows.go(place);
        BOOST_TEST(shows.message() == "");
        const trace_line* const found = shows.here();
        return found == nullptr ? 0 : found->ticks;
    };
    BOOST_TEST(at("1.5") == 1'500'001'000U);  // the first that is not before
    BOOST_TEST(at("20ms") == 20'001'000U);
    BOOST_TEST(at("+1s") == 1'020'001'000U);
    BOOST_TEST(at("-20ms") == 1'000'001'000U);
    BOOST_TEST(at("#5000001000") == 5'000'001'000U);
    BOOST_TEST(at("22:13:22.25") == 2'250'001'000U);  // 1.7e9 is 22:13:20
    BOOST_TEST(at("2023-11-14 22:13:23") == 3'000'001'000U);
    BOOST_TEST(at("2023-11-14T22:13:23.000001000") == 3'000'001'000U);
    BOOST_TEST(at("0%") == 1000U);
    const auto half = at("50%");
    BOOST_TEST(half > 4'900'000'000U);
    BOOST_TEST(half < 5'100'000'000U);
    BOOST_TEST(at("100%") > 9'900'000'000U);
    BOOST_TEST(at("1h") > 9'900'000'000U);  // beyond the end: the last line
    for (const char* wrong : {"", "x", "101%", "-1%", "12:99", "#", "#x", "+x", "1 parsec",
                              "2023-13-01 00:00", "12:00:00x", "99999999999999999999s", "nan%"}) {
        shows.clear_message();
        shows.go(wrong);
        BOOST_TEST(shows.message().starts_with("no place: "), wrong);
    }
}

BOOST_AUTO_TEST_CASE(searches_find_text_and_globs_both_ways) {
    scratch_file file;
    many one(50'000);
    one.b.save(file.path());
    traces all;
    all.add(trace_ring::reduce::trace_file::open(file.path()));
    trace_model shows(all, {}, shown_time::raw, "");
    shows.resize(20);
    shows.search("rare", false);
    BOOST_TEST(here(shows).ends_with("rare n=999"));
    BOOST_TEST(found_in(shows) == "rare");
    shows.search_again(false);
    BOOST_TEST(here(shows).ends_with("rare n=1999"));
    shows.search_again(true);
    BOOST_TEST(here(shows).ends_with("rare n=999"));
    shows.search("r?re n=4*9", false);
    BOOST_TEST(here(shows).ends_with("rare n=4999"));
    BOOST_TEST(found_in(shows) == "");  // by a glob, of which no part is marked
    shows.end();
    shows.search("", true);  // the same again, the other way
    BOOST_TEST(here(shows).ends_with("rare n=49999") == false);
    BOOST_TEST(here(shows).ends_with("rare n=48999"));
    shows.search_again(true);
    BOOST_TEST(here(shows).ends_with("rare n=49999"));
    // What is not there: one stays where one was, even if all was read for it.
    shows.home();
    shows.by_lines(5);
    const auto before = shown(shows);
    shows.search("medium", false);
    BOOST_TEST(shows.message() == "not found: medium");
    BOOST_TEST(shown(shows) == before);
    BOOST_TEST(here(shows) == before[5]);
    // Stopped on the way.
    std::size_t calls = 0;
    shows.go_on = [&calls](double done) {
        BOOST_TEST(done >= 0);
        BOOST_TEST(done <= 100);
        return ++calls < 3;
    };
    shows.search("medium", false);
    BOOST_TEST(calls == 3U);
    BOOST_TEST(shows.message() == "stopped");
    BOOST_TEST(shown(shows) == before);
}

BOOST_AUTO_TEST_CASE(filters_choose_events_and_threads_and_keep_the_place) {
    scratch_file file;
    many one(20'000);
    one.b.save(file.path());
    traces all;
    all.add(trace_ring::reduce::trace_file::open(file.path()));
    trace_model shows(all, {}, shown_time::raw, "");
    shows.resize(10);
    shows.search("n=10999", false);
    const std::string at = here(shows);
    shows.filter("ra*");
    BOOST_TEST(here(shows) == at);
    shows.by_lines(1);
    BOOST_TEST(here(shows).ends_with("rare n=11999"));
    shows.home();
    BOOST_TEST(shown(shows).size() == 10U);
    BOOST_TEST(here(shows).ends_with("rare n=999"));
    shows.end();
    shows.by_lines(-100);
    BOOST_TEST(here(shows).ends_with("rare n=999"));
    BOOST_TEST(shows.status().find("filter ra*") != std::string::npos);
    shows.filter("12 tick");
    for (const auto& each : shown(shows)) {
        BOOST_TEST(each.find("[12 thread] tick") != std::string::npos, each);
    }
    shows.filter("99999999999");
    BOOST_TEST(shows.message() == "not the id of a thread: 99999999999");
    BOOST_TEST(shows.filter_text() == "12 tick");
    shows.filter("nothing.of.this.name");
    BOOST_TEST(shown(shows).empty());
    BOOST_TEST(shows.here() == nullptr);
    shows.by_pages(1);
    shows.by_lines(-3);
    shows.search("x", false);
    shows.mark('a');
    shows.filter("");
    BOOST_TEST(shown(shows).size() == 10U);
}

BOOST_AUTO_TEST_CASE(conditions_are_typed_beside_events_and_threads) {
    scratch_file file;
    many one(20'000);
    one.b.save(file.path());
    traces all;
    all.add(trace_ring::reduce::trace_file::open(file.path()));
    trace_model shows(all, {}, shown_time::raw, "");
    shows.resize(4000);
    shows.filter("where n % 3 == 0");
    BOOST_TEST(shows.message() == "");
    BOOST_TEST(shown(shows).size() == 4000U);
    BOOST_TEST(shown(shows)[3999].ends_with("n=11997"));
    shows.end();
    BOOST_TEST(here(shows).ends_with("n=19998"));
    BOOST_TEST(shows.status().find("filter where n % 3 == 0") != std::string::npos);
    shows.filter("  ra* t*  where  n >= 10999 and n < 11001");
    shows.home();
    BOOST_TEST(shown(shows).size() == 2U);
    BOOST_TEST(shown(shows)[0].ends_with("tick n=11000"));  // at the same time, in a lane before
    BOOST_TEST(shown(shows)[1].ends_with("rare n=10999"));
    shows.filter("12 where event == 'rare'");
    for (const auto& each : shown(shows)) {
        BOOST_TEST(each.find("[12 thread] rare") != std::string::npos, each);
    }
    // By time, forward and back: n=3000 to 3002 are at 1000 + 1000 * 7.
    shows.filter("where time == 8us");
    shows.end();
    BOOST_TEST(shown(shows).size() == 3U);
    shows.home();
    BOOST_TEST(here(shows).ends_with("n=3000"), here(shows));
    shows.by_lines(100);
    BOOST_TEST(here(shows).ends_with("n=3002"));
    shows.filter("where time < 0s or n == 70000");
    BOOST_TEST(shows.message() == "nothing matches where time < 0s or n == 70000");
    shows.filter("");
    BOOST_TEST(shown(shows).size() == 4000U);
}

BOOST_AUTO_TEST_CASE(a_mistake_in_a_condition_is_told_with_its_column_and_changes_nothing) {
    scratch_file file, other;
    small().save(file.path());
    many(100).b.save(other.path());
    traces all;
    all.add(trace_ring::reduce::trace_file::open(file.path()));
    all.add(trace_ring::reduce::trace_file::open(other.path()));
    trace_model shows(all, {}, shown_time::raw, "");
    shows.resize(10);
    shows.filter("tick where n == 2");
    BOOST_TEST(shows.message() == "");
    const auto before = shown(shows);
    const std::pair<const char*, const char*> wrong[] = {
        {"where", "column 6: it ends where a condition should follow"},
        {"where ", "column 7: it ends where a condition should follow"},
        {"tick where n ==", "column 16: "},
        {"tick 11 where n == 2 oder n == 3", "column 22: "},
        {"where nn == 2", "column 7: no event has a field 'nn'; did you mean 'n'?"},
        {"where  n == 'two'", "column 10: a number compared with a text"},
        {"gr\xC3\xB6\xC3\x9F where m == 1", "column 12: no event has a field 'm'"},
        {"where \x01", "column 7: "},
    };
    for (const auto& [text, why] : wrong) {
        shows.clear_message();
        shows.filter(text);
        BOOST_TEST(shows.message().starts_with(why), shows.message());
        BOOST_TEST(shows.message().find('\n') == std::string::npos);
        BOOST_TEST(shows.filter_text() == "tick where n == 2");
        BOOST_TEST(shows.filter_draft() == text);
        BOOST_TEST(shown(shows) == before);
    }
    // What one of the traces has is no mistake; and the draft is what there is again.
    shows.filter("where event == 'rare' or event == 'other.thing'");
    BOOST_TEST(shows.filter_draft() == "where event == 'rare' or event == 'other.thing'");
    shows.home();
    BOOST_TEST(shown(shows).size() == 2U);  // the other is what is lost
    BOOST_TEST(shown(shows)[1].ends_with("other.thing"));
}

BOOST_AUTO_TEST_CASE(what_is_looked_for_in_vain_can_be_stopped) {
    scratch_file file;
    many one(400'000);
    one.b.save(file.path());
    traces all;
    all.add(trace_ring::reduce::trace_file::open(file.path()));
    for (const char* filter : {"no.such.event", "where n > 1000000", "tick where n == 399998"}) {
        trace_model shows(all, {}, shown_time::raw, "");
        shows.resize(10);
        std::size_t calls = 0;
        shows.go_on = [&calls](double) { return ++calls < 2; };
        shows.filter(filter);
        BOOST_TEST(calls == 2U);  // and what is read for one command is not read on for the next
        BOOST_TEST(shows.message() == "stopped");
        BOOST_TEST(shown(shows).empty());
        BOOST_TEST(calls == 2U);
        shows.clear_message();
        shows.go_on = [&calls](double) { return ++calls < 1000; };
        shows.end();
        const bool there = filter[0] == 't';
        BOOST_TEST(shown(shows).size() == (there ? 1U : 0U));
        if (there) BOOST_TEST(here(shows).ends_with("n=399998"), here(shows));
        BOOST_TEST(calls > 4U);
        BOOST_TEST(calls < 100U);
    }
}

BOOST_AUTO_TEST_CASE(nothing_beyond_its_limits_is_shown_of_a_trace) {
    scratch_file file;
    many one(30'000, 1'000'000);  // three records a millisecond
    one.b.save(file.path());
    const auto opened = [&] { return trace_ring::reduce::trace_file::open(file.path()); };
    {
        trace_ring::reduce::filter limits;
        limits.from = 2'000'000'000;
        limits.to = 2'999'999'999;
        traces all;
        all.add(opened(), limits);
        trace_model shows(all, {}, shown_time::raw, "", "from +2s to +3s");
        shows.resize(20);
        BOOST_TEST(here(shows).ends_with("n=6000"), here(shows));
        shows.by_lines(-1);
        BOOST_TEST(here(shows).ends_with("n=6000"));
        BOOST_TEST(shows.status().find("  0.0%  from +2s to +3s") != std::string::npos);
        shows.end();  // of three at one time, the last lane's
        BOOST_TEST(here(shows).ends_with("n=8997"), here(shows));
        shows.by_lines(1);
        BOOST_TEST(here(shows).ends_with("n=8997"));
        BOOST_TEST(shows.status().find("  99.9%  from") != std::string::npos);
        shows.go("50%");
        BOOST_TEST(shows.here()->ticks / 10'000'000 == 250U);
        shows.go("1.5");
        BOOST_TEST(here(shows).ends_with("n=6000"));
        shows.go("9");
        BOOST_TEST(here(shows).ends_with("n=8997"));
        shows.home();
        std::size_t lines = 0;
        for (; !here(shows).ends_with("n=8997"); shows.by_lines(1)) ++lines;
        BOOST_TEST(lines == 2999U);
        shows.filter("rare where n > 6999");  // n=6999 and 7999 are there, too
        BOOST_TEST(shown(shows).size() == 2U);
        BOOST_TEST(shows.status().find("from +2s to +3s  filter rare where n > 6999") !=
                   std::string::npos);
    }
    {
        trace_ring::reduce::filter limits;
        limits.positions.push_back({2, 100, 103});
        limits.positions.push_back({1, 0, 0});
        limits.positions.push_back({3, 0, 0});
        limits.positions.push_back({4, 0, 0});
        traces all;
        all.add(opened(), limits);
        trace_model shows(all, {}, shown_time::raw, "");
        shows.resize(20);
        BOOST_TEST(shown(shows).size() == 3U);
        BOOST_TEST(shows.here()->position == 100U);
        shows.end();
        BOOST_TEST(shows.here()->position == 102U);
    }
    const std::pair<std::uint64_t, std::uint64_t> empty[] = {
        {5000, 4000}, {0, 999}, {20'000'000'000, ~std::uint64_t{0}}, {1, 0}};
    for (const auto& [from, to] : empty) {
        trace_ring::reduce::filter limits;
        limits.from = from;
        limits.to = to;
        traces all;
        all.add(opened(), limits);
        trace_model shows(all, {}, shown_time::raw, "");
        shows.resize(20);
        BOOST_TEST(shown(shows).empty());
        shows.end();
        shows.go("50%");
        shows.filter("tick");
        shows.home();
        BOOST_TEST(shown(shows).empty());
    }
}

BOOST_AUTO_TEST_CASE(traces_are_merged_by_dates_that_were_put_right) {
    scratch_file file, other;
    small().save(file.path());
    small().save(other.path());
    traces all;
    all.add(trace_ring::reduce::trace_file::open(file.path()));
    auto later = trace_ring::reduce::trace_file::open(other.path());
    later.shift_realtime(15);
    all.add(std::move(later));
    trace_model shows(all, {}, shown_time::local, "");
    shows.resize(20);
    shows.filter("tick where n >= 2");
    std::string numbers;
    for (const auto& each : shown(shows)) {
        if (const auto at = each.find("n="); at != std::string::npos) {
            numbers += each.substr(at + 2) + ' ';
        }
    }
    BOOST_TEST(numbers == "2 3 2 3 ");  // at 131, 141, 146 and 156
}

BOOST_AUTO_TEST_CASE(marks_are_come_back_to_and_measured_from) {
    scratch_file file;
    many one(50'000, 1000);
    one.b.save(file.path());
    traces all;
    all.add(trace_ring::reduce::trace_file::open(file.path()));
    trace_model shows(all, {}, shown_time::raw, "");
    shows.resize(10);
    shows.tell_delta();
    BOOST_TEST(shows.message().starts_with("no mark"));
    shows.search("n=301", false);
    const std::string at = here(shows);
    shows.mark('a');
    shows.search("n=45000", false);
    shows.tell_delta();
    BOOST_TEST(shows.message() == "from mark a to here: +0.014900000");
    shows.go_to_mark('a');
    BOOST_TEST(here(shows) == at);
    BOOST_TEST(shows.rows()[static_cast<std::size_t>(10 / 3)].marked);
    shows.by_lines(-200);
    shows.tell_delta();
    BOOST_TEST(shows.message() == "from mark a to here: -0.000067000");
    shows.go_to_mark('b');
    BOOST_TEST(shows.message() == "no mark b");
    shows.filter("rare");
    shows.go_to_mark('a');
    BOOST_TEST(shows.message().find("not there") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(columns_and_times_are_chosen) {
    scratch_file file;
    small().save(file.path());
    traces all;
    all.add(trace_ring::reduce::trace_file::open(file.path()));
    trace_model shows(all, {}, shown_time::local, "");
    shows.resize(10);
    BOOST_TEST(shown(shows)[2] == "2023-11-14 22:13:20.000000121 [12 second] other.thing");
    shows.next_time();
    BOOST_TEST(shown(shows)[2] == "0.000000121 [12 second] other.thing");
    shows.next_time();
    BOOST_TEST(shown(shows)[2] == "121 [12 second] other.thing");
    shows.next_time();
    BOOST_TEST(shown(shows)[2] == "+0.000000010 [12 second] other.thing");
    shows.by_lines(3);
    shows.mark('z');
    shows.next_time();
    BOOST_TEST(shown(shows)[2] == "-0.000000010 [12 second] other.thing");
    BOOST_TEST(shown(shows)[4] == "+0.000000010 [11 first] tick n=3");
    shows.next_time();
    for (const auto which : {column::time, column::thread, column::fields, column::delta,
                             column::process, column::lane}) {
        shows.toggle(which);
    }
    BOOST_TEST(shown(shows)[4] == "+0.000000010 1200 lane 1 tick");
}

BOOST_AUTO_TEST_CASE(damage_is_shown_in_its_place_and_counted) {
    scratch_file file;
    auto b = small();
    b.put(b.slot_at(2), 0, 4);
    b.save(file.path());
    traces all;
    all.add(trace_ring::reduce::trace_file::open(file.path()));
    trace_model shows(all, {}, shown_time::relative, "");
    shows.resize(10);
    bool found = false;
    for (const auto& each : shown(shows)) {
        found = found ||
                each.find("damaged at offset " + std::to_string(b.slot_at(2))) != std::string::npos;
    }
    BOOST_TEST(found);
    BOOST_TEST(shows.status().find("1 damaged") != std::string::npos);
    BOOST_TEST(shows.damages().size() == 1U);
    BOOST_TEST(shows.damages()[0].offset == b.slot_at(2));
}

struct came : trace_ring::event<"came", trace_ring::field<"n", std::uint64_t>> {};

BOOST_AUTO_TEST_CASE(new_records_are_followed) {
    trace_ring::recorder recorder{{.size = 1 << 20}};
    const auto [memory, bytes] = recorder.bytes();
    traces all;
    all.add(trace_ring::reduce::trace_file::from({memory, bytes}));
    trace_model shows(all, {}, shown_time::raw, "came");
    shows.resize(5);
    BOOST_TEST(shown(shows).empty());
    shows.follow(true);
    for (std::uint64_t n = 0; n < 100; ++n) recorder.record<came>(n);
    // The newest may be held back until it is known that nothing comes before them.
    const auto wait_for = [&](const char* last) {
        for (int i = 0; i < 10 && !here(shows).ends_with(last); ++i) (void)shows.poll();
        BOOST_TEST(here(shows).ends_with(last), here(shows));
    };
    wait_for("came n=99");
    BOOST_TEST(shown(shows).size() == 5U);
    BOOST_TEST(shows.following());
    std::thread([&] {
        for (std::uint64_t n = 100; n < 120; ++n) recorder.record<came>(n);
    }).join();
    wait_for("came n=119");
    shows.by_lines(-1);
    BOOST_TEST(!shows.following());
    BOOST_TEST(here(shows).ends_with("came n=118"));
    recorder.record<came>(120U);
    BOOST_TEST(!shows.poll());
    shows.by_lines(1);
    shows.by_lines(1);  // at the end: what came since
    BOOST_TEST(here(shows).ends_with("came n=120"));
    shows.follow(true);
    wait_for("came n=120");
    recorder.record<came>(121U);
    wait_for("came n=121");
    // All of it once, when one goes back.
    shows.home();
    shows.resize(500);
    BOOST_TEST(shown(shows).size() == 122U);
}

BOOST_AUTO_TEST_CASE(a_trace_without_times_is_gone_through) {
    file_builder b({.sub_buffer_bytes = 4096, .sub_buffers = 1024});
    const auto& tick = b.event({1, "tick", {{"n"}}});
    const auto lane = b.lane(b.process(1), 1);
    b.open(lane, 0);
    for (std::uint64_t n = 0; n < 5000; ++n) {
        if (b.record(lane, 0, tick, {n})) continue;
        b.open(lane, 0);
        b.record(lane, 0, tick, {n});
    }
    scratch_file file;
    b.save(file.path());
    traces all;
    all.add(trace_ring::reduce::trace_file::open(file.path()));
    trace_model shows(all, {}, shown_time::local, "");
    shows.resize(10);
    BOOST_TEST(here(shows).ends_with("n=0"), here(shows));
    shows.end();
    BOOST_TEST(here(shows).ends_with("n=4999"));
    shows.by_lines(1);
    BOOST_TEST(here(shows).ends_with("n=4999"));
    shows.by_pages(-2);
    BOOST_TEST(here(shows).ends_with("n=4979"));
    shows.mark('a');
    shows.search("n=17", true);
    BOOST_TEST(here(shows).ends_with("n=1799"), here(shows));
    shows.go_to_mark('a');
    BOOST_TEST(here(shows).ends_with("n=4979"));
}

BOOST_AUTO_TEST_SUITE_END()
