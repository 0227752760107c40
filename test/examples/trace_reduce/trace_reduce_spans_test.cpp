// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// trace-reduce: a span is selected by either end and shown whole.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <examples/trace_reduce/trace_reduce_run.hpp>
#include <reduce/file_builder.hpp>
#include <reduce/scratch_file.hpp>

BOOST_AUTO_TEST_SUITE(trace_reduce_spans)

using namespace trace_ring_test;
using trace_ring::record_word;

namespace {

/// Spans that nest, end in another thread, have no end, or whose begin is missing.
file_builder spans() {
    file_builder b;
    b.clock_reading(0, 0, 1'700'000'000'000'000'000);
    const auto process = b.process(1200);
    const auto& request = b.event({1, "request", {{"id"}}, event_kind::span});
    const auto& part = b.event({2, "part", {{"n"}}, event_kind::span});
    const auto& tick = b.event({3, "tick", {{"n"}}});
    const auto one = b.lane(process, 11, "reader"), two = b.lane(process, 12, "worker 1");
    b.open(one, 900);
    b.open(two, 900);
    b.record(one, 1000, request, {1}, record_word::begin);  // #0
    b.record(one, 1100, part, {10}, record_word::begin);    // #1
    b.raw_record(one, 1200, 2, {}, record_word::end);       // #2: of part 10
    b.raw_record(one, 1300, 1, {}, record_word::end);       // #3: of request 1
    b.record(one, 2000, request, {2}, record_word::begin);  // #4
    b.record(two, 2100, tick, {7});                         // #0
    b.end_of(two, 2500, request, one, 4);                   // #1: of request 2
    b.raw_record(two, 2600, 2, {}, record_word::end);       // #2: its begin is missing
    b.record(one, 3000, request, {3}, record_word::begin);  // #5
    b.record(one, 3100, request, {4}, record_word::begin);  // #6
    b.raw_record(one, 3200, 1, {}, record_word::end);       // #7: of request 4
    return b;                                               // request 3 has no end
}

std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
        ++found;
    return found;
}

struct shown {
    explicit shown(std::vector<std::string> arguments) {
        const scratch_file file;
        spans().save(file.path());
        arguments.push_back(file.path());
        const auto found = run_trace_reduce(arguments);
        BOOST_TEST(found.status == 0);
        BOOST_TEST(found.errors == "");
        text = found.output;
    }
    /// Times in nanoseconds within the second, in the order of the lines.
    [[nodiscard]] std::string times() const {
        std::string out;
        for (std::size_t at = text.find("22:13:20.00000"); at != std::string::npos;
             at = text.find("22:13:20.00000", at + 1)) {
            out += text.substr(at + 14, 4) + ' ';
        }
        return out;
    }
    std::string text;
};

BOOST_AUTO_TEST_CASE(a_condition_on_the_fields_of_a_begin_selects_the_end) {
    const auto with = [](const std::string& condition, std::vector<std::string> more = {}) {
        more.insert(more.end(), {"--where", condition});
        return shown(more).times();
    };
    BOOST_TEST(with("id == 1") == "1000 1300 ");
    BOOST_TEST(with("id == 1", {"--backward"}) == "1300 1000 ");
    BOOST_TEST(with("id == 1", {"--follow", "--until-closed"}) == "1000 1300 ");
    BOOST_TEST(with("id == 1", {"--jobs", "3"}) == "1000 1300 ");
    BOOST_TEST(with("n == 10") == "1100 1200 ");
    BOOST_TEST(with("id == 2") == "2000 2500 ");
    BOOST_TEST(with("id == 2", {"--backward"}) == "2500 2000 ");
    BOOST_TEST(with("id == 2", {"--follow", "--until-closed"}) == "2000 2500 ");
    BOOST_TEST(with("id == 3") == "3000 ");
    BOOST_TEST(with("id in {3, 4}") == "3000 3100 3200 ");
    BOOST_TEST(with("not (id > 1)") == "1000 1300 ");
}

BOOST_AUTO_TEST_CASE(a_condition_that_only_one_end_can_meet_selects_both) {
    BOOST_TEST(shown({"--where", "lane == 2"}).times() == "2000 2100 2500 2600 ");
    BOOST_TEST(shown({"--where", "ticks >= 2500 and ticks < 3000"}).times() == "2000 2500 2600 ");
    BOOST_TEST(shown({"--where", "position == 3"}).times() == "1000 1300 ");
}

BOOST_AUTO_TEST_CASE(what_a_range_cuts_stays_cut) {
    BOOST_TEST(shown({"--where", "id == 1", "--from", "1:1"}).times() == "1300 ");
    BOOST_TEST(shown({"--where", "id == 1", "--to", "1:3"}).times() == "1000 ");
}

BOOST_AUTO_TEST_CASE(every_format_has_both_ends) {
    const auto chrome = shown({"--where", "id < 3", "--format", "chrome"}).text;
    BOOST_TEST(count(chrome, "\"ph\":\"B\"") + count(chrome, "\"ph\":\"b\"") == 2U);
    BOOST_TEST(count(chrome, "\"ph\":\"E\"") + count(chrome, "\"ph\":\"e\"") == 2U);
    const auto json = shown({"--where", "id < 3", "--format", "json"}).text;
    BOOST_TEST(count(json, "\n") == 4U);
    const auto csv = shown({"--where", "id < 3", "--format", "csv"}).text;
    BOOST_TEST(count(csv, "\n") == 5U);  // with its header
    const auto stats = shown({"--where", "id < 3", "--stats", "--fields"}).text;
    BOOST_TEST(count(stats, "(duration)") == 1U);
}

BOOST_AUTO_TEST_CASE(the_end_of_a_span_says_how_long_it_took) {
    const auto lengths = [](const std::string& text, const std::string& before,
                            const std::string& behind) {
        std::string found;
        for (std::size_t at = text.find(before); at != text.npos; at = text.find(before, at + 1)) {
            const std::size_t begin = at + before.size();
            found += text.substr(begin, text.find(behind, begin) - begin) + ' ';
        }
        return found;
    };
    for (const std::vector<std::string>& more :
         {std::vector<std::string>{}, {"--follow", "--until-closed"}, {"--jobs", "3"}}) {
        BOOST_TEST(lengths(shown(more).text, "end (duration ", ")") == "100ns 300ns 100ns ");
        // The end of request 2 says first where that began.
        BOOST_TEST(lengths(shown(more).text, " of lane 1) (duration ", ")") == "500ns ");
    }
    const auto json = shown({"--format", "json"}).text;
    BOOST_TEST(lengths(json, "\"duration_ns\":", ",") == "100 300 500 100 ");
    BOOST_TEST(lengths(json, "\"duration_ticks\":", ",") == "100 300 500 100 ");
    std::istringstream csv(shown({"--format", "csv"}).text);
    std::string line;
    std::getline(csv, line);
    const auto column = [&line](const std::string& name) {
        return static_cast<std::size_t>(std::count(
            line.begin(), line.begin() + static_cast<std::ptrdiff_t>(line.find(name)), ','));
    };
    const std::size_t ns = column("duration_ns");
    std::string found;
    while (std::getline(csv, line)) {
        std::istringstream cells(line);  // no name here has a comma in it
        std::string cell;
        for (std::size_t i = 0; i <= ns; ++i) std::getline(cells, cell, ',');
        if (!cell.empty()) found += cell + ' ';
    }
    BOOST_TEST(found == "100 300 500 100 ");
    // Ends cut off by a range, and ends read backward, are not known.
    BOOST_TEST(lengths(shown({"--from", "1:1"}).text, "(duration ", ")") == "100ns 500ns 100ns ");
    BOOST_TEST(count(shown({"--backward"}).text, "duration") == 0U);
}

BOOST_AUTO_TEST_CASE(statistics_count_a_span_once_and_tell_the_slowest) {
    const auto text = shown({"--stats", "--time", "relative"}).text;
    const auto says = [&text](const std::string& part) { return text.find(part) != text.npos; };
    BOOST_TEST(says("             4               7 "), text);  // request: one without its end
    BOOST_TEST(says("             2               3 "), text);  // part: one without its begin
    BOOST_TEST(says("             1               1 "), text);  // tick
    const auto slowest = text.substr(std::min(text.find("the slowest spans"), text.size()));
    std::string order;
    std::istringstream lines(slowest);
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line) && !line.empty()) {
        std::istringstream words(line);
        std::string seconds, unit, began, event;
        words >> seconds >> unit >> began >> event;
        order += seconds + ' ' + event + ' ';
    }
    BOOST_TEST(order ==
               "0.000000500 request 0.000000300 request 0.000000100 part "
               "0.000000100 request ");
    const auto json = shown({"--stats", "--format", "json"}).text;
    BOOST_TEST(count(json, "{\"event\":\"request\",\"count\":4,\"records\":7,") == 1U, json);
    BOOST_TEST(count(json,
                     "{\"event\":\"request\",\"duration_ticks\":500,\"duration_ns\":500,"
                     "\"began_ticks\":2000,") == 1U,
               json);
    BOOST_TEST(count(shown({"--stats", "--fields"}).text, "request: 4 spans, ") == 1U);
    BOOST_TEST(count(shown({"--stats", "--top", "1"}).text, "request 1200/") == 1U);
}

BOOST_AUTO_TEST_CASE(statistics_are_told_as_values_with_commas_too) {
    const auto rows = [](const std::string& text, const std::string& kind) {
        return count("\n" + text, "\n" + kind + ",");
    };
    const auto plain = shown({"--stats", "--format", "csv"}).text;
    BOOST_TEST(plain.starts_with("kind,file,event,field,unit,by,value,lane,"), plain);
    BOOST_TEST(rows(plain, "trace") == 1U);
    BOOST_TEST(rows(plain, "event") == 3U);
    BOOST_TEST(rows(plain, "lane") == 2U);
    BOOST_TEST(rows(plain, "slowest") == 4U);
    BOOST_TEST(count(plain, "\"request\",,,,,,,,,4,7,") == 1U, plain);
    // As many cells in each row as there are names.
    std::istringstream lines(plain);
    std::string line;
    std::getline(lines, line);
    const auto columns = count(line, ",");
    while (std::getline(lines, line)) BOOST_TEST(count(line, ",") == columns, line);
    const auto more = shown({"--stats", "--format", "csv", "--fields", "--by", "thread",
                             "--histogram", "request.*"})
                          .text;
    BOOST_TEST(rows(more, "group") == 2U);
    BOOST_TEST(rows(more, "field") > 5U);
    BOOST_TEST(rows(more, "bucket") > 2U);
    const auto groups = shown({"--stats", "--format", "csv", "--by", "event"}).text;
    BOOST_TEST(rows(groups, "group") == 3U);
    BOOST_TEST(count(groups, "\n") == 4U);
}

BOOST_AUTO_TEST_CASE(statistics_by_groups_are_these_alone) {
    const auto text = shown({"--stats", "--by", "event"}).text;
    BOOST_TEST(count(text, "by event") == 1U);
    BOOST_TEST(count(text, "request") == 1U);
    BOOST_TEST(count(text, "clock") == 0U);
    BOOST_TEST(count(text, "lane") == 0U);
    BOOST_TEST(count(text, "\n") == 6U, text);  // the file, a blank, a head, three events
    // Figures of fields come with all the rest.
    BOOST_TEST(count(shown({"--stats", "--by", "event", "--fields"}).text, "  clock  ") == 1U);
}

BOOST_AUTO_TEST_CASE(a_condition_on_durations_selects_whole_spans) {
    const auto with = [](const std::string& condition, std::vector<std::string> more = {}) {
        more.insert(more.end(), {"--where", condition});
        return shown(more).times();
    };
    BOOST_TEST(with("duration > 250ns") == "1000 1300 2000 2500 ");
    BOOST_TEST(with("250ns < duration", {"--backward"}) == "2500 2000 1300 1000 ");
    BOOST_TEST(with("duration in {100ns, 400ns..1ms}") == "1100 1200 2000 2500 3100 3200 ");
    BOOST_TEST(with("not (duration >= 300ns)") == "1100 1200 3100 3200 ");
    BOOST_TEST(with("duration < 1s and event == \"part\"") == "1100 1200 ");
    BOOST_TEST(with("duration < 200ns or id == 3") == "1100 1200 3000 3100 3200 ");
    const scratch_file file;
    spans().save(file.path());
    for (const char* const wrong : {"duration", "duration > 5", "duration * 2 > 1ms"}) {
        const auto found = run_trace_reduce({"--where", wrong, file.path()});
        BOOST_TEST(found.status == 1);
        BOOST_TEST(count(found.errors, "compared with times") == 1U);
    }
}

BOOST_AUTO_TEST_CASE(threads_are_chosen_by_id_name_or_glob) {
    const std::string reader = "1000 1100 1200 1300 2000 2500 3000 3100 3200 ";
    BOOST_TEST(shown({"--thread", "11"}).times() == reader);
    BOOST_TEST(shown({"--thread", "reader"}).times() == reader);
    BOOST_TEST(shown({"--thread", "wor*", "--event", "tick"}).times() == "2100 ");
    BOOST_TEST(shown({"--thread", "worker ?"}).times() == "2000 2100 2500 2600 ");
    BOOST_TEST(shown({"--thread", "w*", "--where", "ticks < 2200 or id == 1"}).times() == "2100 ");
    const scratch_file file;
    spans().save(file.path());
    const auto one = run_trace_reduce({"--thread", "nobody", "--thread", "12", file.path()});
    const auto other = run_trace_reduce({"--thread", "12", file.path()});
    BOOST_TEST(one.status == 0);
    BOOST_TEST(one.output == other.output);
    BOOST_TEST(one.errors.find("--thread nobody: no listed thread") != std::string::npos);
    const auto none = run_trace_reduce({"--thread", "a\"b\\c", file.path()});
    BOOST_TEST(none.status == 0);
    BOOST_TEST(none.output == "");
}

/// A record at 5 s, 3 s and 1.5 s before 1970.
file_builder before_1970() {
    file_builder b;
    b.clock_reading(0, 0, static_cast<std::uint64_t>(std::int64_t{-5'000'000'000}));
    b.clock_reading(10'000'000'000, 10'000'000'000, 5'000'000'000);
    const auto process = b.process(1);
    const auto& tick = b.event({1, "tick", {{"n"}}});
    const auto lane = b.lane(process, 11);
    b.open(lane, 900);
    b.record(lane, 1000, tick, {1});
    b.record(lane, 2'000'000'000, tick, {2});
    b.record(lane, 3'500'000'000, tick, {3});
    return b;
}

BOOST_AUTO_TEST_CASE(times_before_1970_are_kept_in_every_format_of_timelines) {
    const scratch_file file;
    before_1970().save(file.path());
    const auto made = [&](std::vector<std::string> arguments) {
        arguments.push_back(file.path());
        const auto found = run_trace_reduce(arguments);
        BOOST_TEST(found.status == 0);
        BOOST_TEST(found.errors == "");
        return found.output;
    };
    const auto chrome = made({"--format", "chrome"});
    for (const char* const us : {"0.000", "1999999.000", "3499999.000"})
        BOOST_TEST(count(chrome, std::string("\"ts\":") + us) == 1U);
    // The field timestamp (8) and the number as a varint, counted from the first reading.
    const auto perfetto = made({"--format", "perfetto"});
    BOOST_TEST(count(perfetto, "\x40\x80\xA8\xD6\xB9\x07") == 1U);
    BOOST_TEST(count(perfetto, "\x40\x80\x86\xF7\x84\x0D") == 1U);
    const std::string folder = file.path() + ".ctf";
    (void)made({"--format", "ctf", "--output", folder});
    const std::ifstream metadata(folder + "/metadata");
    std::ostringstream text;
    text << metadata.rdbuf();
    std::filesystem::remove_all(folder);
    BOOST_TEST(count(text.str(), "offset_s = -5;\n    offset = 0;") == 1U);
}

BOOST_AUTO_TEST_CASE(what_is_wrong_with_a_place_or_an_offset_is_said) {
    const scratch_file file;
    spans().save(file.path());
    const auto said = [&](const std::string& option, const std::string& value) {
        const auto found = run_trace_reduce({option, value, file.path()});
        BOOST_TEST(found.status == 1);
        BOOST_TEST(count(found.errors, "\n") == 1U);
        return found.errors;
    };
    BOOST_TEST(
        count(said("--from", "12ms"), "+12ms is after the beginning, -12ms before the end") == 1U);
    BOOST_TEST(count(said("--to", "3s"), "+3s is after the beginning") == 1U);
    for (const char* const large : {"1=4294967296", "1=-3200000001", "1=99999999999999999999.5"})
        BOOST_TEST(count(said("--offset", large), "too large") == 1U);
    for (const char* const malformed : {"1=", "1=x", "1=4294967296x", "=4294967296"})
        BOOST_TEST(count(said("--offset", malformed), "is no FILE=SECONDS") == 1U);
}

}  // namespace

BOOST_AUTO_TEST_SUITE_END()
