// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// trace-reduce --browse, in a pseudo-terminal: its keys, and how it leaves the terminal.

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <examples/trace_reduce/pseudo_terminal.hpp>
#include <reduce/file_builder.hpp>
#include <reduce/scratch_file.hpp>
#include <trace_ring/recorder/recorder.hpp>

BOOST_AUTO_TEST_SUITE(browse_terminal)

using namespace trace_ring_test;

namespace {

constexpr std::string_view down = "\x1bOB", page_down = "\x1b[6~", page_up = "\x1b[5~",
                           home = "\x1bOH", end = "\x1bOF", escape = "\x1b";

/// Records n=0 to 999, a microsecond apart, with one lost sub-buffer before them.
file_builder thousand() {
    file_builder b({.sub_buffer_bytes = 4096, .sub_buffers = 16});
    b.clock_reading(0, 0, 1'700'000'000'000'000'000);
    b.clock_reading(1'000'000'000, 1'000'000'000, 1'700'000'001'000'000'000);
    const auto process = b.process(1200);
    const auto& tick = b.event({1, "tick", {{"n"}}});
    const auto& special = b.event({2,
                                   "gr\xC3\xB6\xC3\x9F"
                                   "e",
                                   {{"n"}}});
    const auto first = b.lane(process, 11, "first");
    const auto second = b.lane(process, 12, "second");
    b.open(first, 1000);
    b.record(first, 1000, tick, {0});
    b.open(first, 1000);
    b.open(second, 1000);
    for (std::uint64_t n = 0; n < 1000; ++n) {
        const auto lane = n % 2 == 0 ? first : second;
        const auto& event = n % 100 == 50 ? special : tick;
        if (b.record(lane, 1000 * (n + 1), event, {n})) continue;
        b.open(lane, 1000 * (n + 1));
        b.record(lane, 1000 * (n + 1), event, {n});
    }
    b.wipe(1);
    return b;
}

struct browser : in_terminal {
    explicit browser(std::vector<std::string> arguments, int rows = 12, int columns = 90)
        : in_terminal(with(std::move(arguments)), rows, columns) {}
    static std::vector<std::string> with(std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), {TRACE_REDUCE, "--browse", "--time", "relative"});
        return arguments;
    }
    [[nodiscard]] bool has(int y, std::string_view text) {
        const bool found = wait_for(y, text);
        if (!found) {
            for (int i = 0; i < screen.rows(); ++i) BOOST_TEST_MESSAGE(screen.line(i));
        }
        return found;
    }
    [[nodiscard]] std::string last_line() const { return screen.line(screen.rows() - 1); }
};

struct beat : trace_ring::event<"beat", trace_ring::field<"n", std::uint64_t>> {};

}  // namespace

BOOST_AUTO_TEST_CASE(one_goes_through_a_trace_by_keys) {
    scratch_file file;
    thousand().save(file.path());
    browser b({file.path()});
    BOOST_TEST(b.has(0, "-- 1 record lost: overwritten (lane 1, from position 0)"));
    BOOST_TEST(b.has(1, "0.000001000 [11 first]  tick n=0"));
    BOOST_TEST(b.has(11, "0.0%  lost 1 overwritten"));  // present: lost
    BOOST_TEST(b.screen.other_screen());
    b.type(page_down);
    BOOST_TEST(b.has(0, " tick n=10"));
    b.type(" ");
    BOOST_TEST(b.has(0, " tick n=21"));
    b.type(page_up);
    BOOST_TEST(b.has(0, " tick n=10"));
    b.type(end);
    BOOST_TEST(b.has(10, " tick n=999"));
    BOOST_TEST(b.has(11, "100.0%"));
    b.type("k");
    BOOST_TEST(b.has(11, "0.000999000"));
    b.type(home);
    BOOST_TEST(b.has(0, "-- 1 record lost"));
    b.type(std::string(down) + "jj");
    BOOST_TEST(b.has(11, "0.000003000"));

    b.type("g500us\r");
    BOOST_TEST(b.has(11, "0.000500000"));
    BOOST_TEST(b.has(3, " tick n=499"));
    b.type("g50%\r");
    BOOST_TEST(b.has(3, " tick n=500"));
    b.type("gnowhere\r");
    BOOST_TEST(b.has(11, "no place: nowhere"));
    b.type(std::string("g12") + std::string(escape));  // given up
    BOOST_TEST(b.has(11, "0.000501000"));

    b.type(
        "/gr\xC3\xB6\xC3\x9F"
        "e\r");
    BOOST_TEST(b.has(11, "0.000551000"));
    b.type("n");
    BOOST_TEST(b.has(11, "0.000651000"));
    b.type("N");
    BOOST_TEST(b.has(11, "0.000551000"));
    b.type("?n=1?3\r");
    BOOST_TEST(b.has(11, "0.000194000"));
    b.type("/no such line\r");
    BOOST_TEST(b.has(11, "not found: no such line"));

    b.type("f12 tick\r");
    BOOST_TEST(b.has(11, "filter 12 tick"));
    BOOST_TEST(b.wait([&] {
        for (int y = 0; y < 11; ++y) {
            if (b.screen.line(y).find("[12 second] tick") == std::string::npos) return false;
        }
        return true;
    }));
    b.type("f\x15\r");
    BOOST_TEST(b.has(11, "%  lost 1"));

    b.type("ma");
    BOOST_TEST(b.has(11, "mark a"));
    b.type(std::string(end) + "d");
    BOOST_TEST(b.has(11, "from mark a to here: +0.000806000"));
    b.type("'a");
    BOOST_TEST(b.has(11, "0.000194000"));
    BOOST_TEST(b.has(3, "*"));
    b.type("tt");
    BOOST_TEST(b.has(11, "since the line before"));
    BOOST_TEST(b.has(4, "+0.000001000"));
    b.type("c");
    BOOST_TEST(b.has(11, "columns:  [ ] f file  [x] t time"));
    b.type("tl");
    BOOST_TEST(b.has(3, "lane 2"));
    b.type("\r");
    b.type("h");
    BOOST_TEST(b.has(0, "a line on, a line back"));
    BOOST_TEST(b.has(11, "1/2  Space: more"));
    b.type(" ");
    BOOST_TEST(b.has(11, "2/2  any key: back"));
    BOOST_TEST(b.wait([&] {
        for (int y = 0; y < 11; ++y) {
            if (b.screen.line(y).find("q quit") != std::string::npos) return true;
        }
        return false;
    }));
    b.type(" ");
    BOOST_TEST(b.has(3, "lane 2"));
    b.type("hq");  // from any part of it
    BOOST_TEST(b.has(3, "lane 2"));

    b.resize(6, 40);
    BOOST_TEST(b.has(5, ""));
    BOOST_TEST(b.wait([&] { return b.screen.line(5).find("trace_ring.") != std::string::npos; }));
    b.resize(30, 100);
    BOOST_TEST(b.has(29, "trace_ring."));
    BOOST_TEST(b.has(28, "tick"));

    b.type("q");
    BOOST_TEST(b.end() == 0);
    BOOST_TEST(b.restored());
    BOOST_TEST(b.screen.unknown() == "");
}

BOOST_AUTO_TEST_CASE(it_opens_with_a_condition_and_another_is_typed) {
    scratch_file file;
    thousand().save(file.path());
    browser b({file.path(), "--event", "tick", "--where", "n % 10 == 7"}, 12, 120);
    BOOST_TEST(b.has(1, " tick n=7"));
    BOOST_TEST(b.has(10, " tick n=97"));
    BOOST_TEST(b.has(11, "filter tick where n % 10 == 7"));
    b.type(end);
    BOOST_TEST(b.has(10, " tick n=997"));
    b.type("f");
    BOOST_TEST(b.has(11, "filter: tick where n % 10 == 7"));
    b.type(" and m > 3\r");
    BOOST_TEST(b.has(11, "column 28: no event has a field 'm'"));
    BOOST_TEST(b.has(10, " tick n=997"));
    b.type(home);
    BOOST_TEST(b.has(11, "filter tick where n % 10 == 7  lost"));
    BOOST_TEST(b.has(1, " tick n=7"));
    // What was refused is there to be put right.
    b.type("f");
    BOOST_TEST(b.has(11, "filter: tick where n % 10 == 7 and m > 3"));
    b.type("\x7F\x7F\x7F\x7F\x7Fn > 500\r");
    BOOST_TEST(b.has(11, "filter tick where n % 10 == 7 and n > 500"));
    b.type(home);
    BOOST_TEST(b.has(1, " tick n=507"));
    b.type("f\x15where event ~ \"gr*\" and n < 300\r");
    b.type(home);
    BOOST_TEST(b.has(1, "e n=50"));
    BOOST_TEST(b.has(3, "e n=250"));
    BOOST_TEST(b.wait([&] { return b.screen.line(4).empty(); }));
    BOOST_TEST(b.has(11, "filter where event ~ \"gr*\" and n < 300"));
    b.type("q");
    BOOST_TEST(b.end() == 0);
    BOOST_TEST(b.restored());
}

BOOST_AUTO_TEST_CASE(it_opens_in_a_range_of_files_whose_clocks_were_put_right) {
    scratch_file first, second;
    thousand().save(first.path());
    thousand().save(second.path());
    // The second is half a microsecond later, and so each of its records comes after its twin.
    browser b({first.path(), second.path(), "--offset", "2=0.0000005", "--from", "+100us", "--to",
               "+200us", "--where", "n % 2 == 0"},
              12, 160);
    BOOST_TEST(b.has(0, " tick n=100"));
    BOOST_TEST(b.has(1, " tick n=100"));
    BOOST_TEST(b.has(2, " tick n=102"));
    BOOST_TEST(b.has(11, "from +100us to +200us  filter where n % 2 == 0"));
    b.type(end);
    BOOST_TEST(b.has(10, " tick n=198"));
    b.type("f\x15\r");
    b.type(home);
    BOOST_TEST(b.has(0, " tick n=99"));
    BOOST_TEST(b.has(1, " tick n=99"));
    b.type("k");
    BOOST_TEST(b.has(11, "from +100us to +200us  lost"));
    b.type("q");
    BOOST_TEST(b.end() == 0);
    BOOST_TEST(b.restored());
}

BOOST_AUTO_TEST_CASE(it_opens_on_files_whose_clocks_it_compared_by_their_messages) {
    // The other machine's clock is a second behind. A message takes 100 us, either way.
    constexpr std::uint64_t second = 1'000'000'000;
    constexpr std::uint64_t start = 1'700'000'000 * second;
    scratch_file first, other;
    for (const bool is_other : {false, true}) {
        file_builder b;
        const std::uint64_t date = is_other ? start - second : start;
        b.clock_reading(0, 0, date);
        b.clock_reading(second, second, date + second);
        const auto& sent = b.event({1, "sent", {{"id"}}});
        const auto& received = b.event({2, "received", {{"id"}}});
        const auto lane = b.lane(b.process(1200), 11, "worker");
        b.open(lane, 1000);
        for (std::uint64_t id = 1; id <= 20; ++id) {
            const bool sends = (id % 2 == 0) == is_other;
            b.record(lane, id * 1'000'000 + (sends ? 0 : 100'000), sends ? sent : received, {id});
        }
        b.save((is_other ? other : first).path());
    }
    browser apart({first.path(), other.path()}, 12, 160);
    BOOST_TEST(apart.has(0, " received id=1"));
    BOOST_TEST(apart.has(1, " sent     id=2"));
    apart.type("q");
    BOOST_TEST(apart.end() == 0);
    browser b({"--match", "sent.id,received.id", first.path(), other.path()}, 12, 160);
    for (int id = 1; id <= 5; ++id) {
        BOOST_TEST(b.has(2 * id - 2, " sent     id=" + std::to_string(id)));
        BOOST_TEST(b.has(2 * id - 1, " received id=" + std::to_string(id)));
    }
    b.type("q");
    BOOST_TEST(b.end() == 0);
    BOOST_TEST(b.restored());
}

BOOST_AUTO_TEST_CASE(what_it_cannot_show_is_told_before_the_terminal_is_taken) {
    scratch_file file;
    thousand().save(file.path());
    const auto refused = [&](std::vector<std::string> arguments, const char* why) {
        arguments.push_back(file.path());
        browser b(std::move(arguments), 12, 200);
        BOOST_TEST(b.end() == 1);
        std::string all;
        for (int y = 0; y < 12; ++y) all += b.screen.line(y) + '\n';
        BOOST_TEST(all.find(why) != std::string::npos, all);
        BOOST_TEST(b.restored());
    };
    refused({"--where", "n >"}, "--where: column 4: ");
    refused({"--where", "m == 1"}, "--where: column 1: no event has a field 'm'");
    refused({"--from", "@4096"}, "--from @4096: of a trace a place is ");
    refused({"--offset", "3=1"}, "no file of that name or number");
    refused({"--match", "tick.n,beat.n", file.path()}, "--match finds no record of it");
    refused({"--page", "1"}, "are for CPTRAP files, and there is none");
}

BOOST_AUTO_TEST_CASE(a_live_recorder_is_followed) {
    scratch_file file;
    file.remove();
    trace_ring::recorder recorder{{.file = file.path(), .size = 256 * 1024}};
    recorder.record<beat>(0U);
    browser b({file.path(), "--event", "beat"});
    BOOST_TEST(b.has(0, "beat n=0"));
    BOOST_TEST(b.has(11, "live"));
    b.type("F");
    BOOST_TEST(b.has(11, "following"));
    for (std::uint64_t n = 1; n <= 500; ++n) recorder.record<beat>(n);
    BOOST_TEST(b.has(10, "beat n=500"));
    recorder.record<beat>(501U);
    BOOST_TEST(b.has(10, "beat n=501"));
    b.type("k");
    BOOST_TEST(b.has(11, "live"));
    recorder.record<beat>(502U);
    b.type("G");
    BOOST_TEST(b.has(10, "beat n=502"));
    b.type("F");
    recorder.record<beat>(503U);
    BOOST_TEST(b.has(10, "beat n=503"));
    b.type("q");
    BOOST_TEST(b.end() == 0);
    BOOST_TEST(b.restored());
}

BOOST_AUTO_TEST_CASE(a_live_recorder_is_followed_by_a_condition) {
    scratch_file file;
    file.remove();
    trace_ring::recorder recorder{{.file = file.path(), .size = 256 * 1024}};
    recorder.record<beat>(0U);
    browser b({file.path(), "--follow", "--where", "n % 100 == 7"}, 12, 120);
    BOOST_TEST(b.has(11, "following"));
    BOOST_TEST(b.has(11, "filter where n % 100 == 7"));
    for (std::uint64_t n = 1; n <= 300; ++n) recorder.record<beat>(n);
    BOOST_TEST(b.has(0, "beat n=7"));
    BOOST_TEST(b.has(1, "beat n=107"));
    BOOST_TEST(b.has(2, "beat n=207"));
    for (std::uint64_t n = 301; n <= 407; ++n) recorder.record<beat>(n);
    BOOST_TEST(b.has(4, "beat n=407"));
    BOOST_TEST(b.has(3, "beat n=307"));
    // Another condition holds for what is there, and for what comes.
    b.type("f\x15where n > 405\r");
    BOOST_TEST(b.has(11, "filter where n > 405"));
    b.type("F");
    recorder.record<beat>(408U);
    recorder.record<beat>(7U);
    recorder.record<beat>(409U);
    BOOST_TEST(b.wait([&] {
        std::string all;
        for (int y = 0; y < 11; ++y) all += b.screen.line(y) + '\n';
        const auto at = [&](const char* text) { return all.find(text); };
        return at("n=406") < at("n=407") && at("n=407") < at("n=408") &&
               at("n=408") < at("n=409") && at("n=409") != all.npos && at("n=7") == all.npos;
    }));
    b.type("q");
    BOOST_TEST(b.end() == 0);
    BOOST_TEST(b.restored());
}

BOOST_AUTO_TEST_CASE(signals_and_lost_terminals_end_it_and_the_terminal_is_as_it_was) {
    scratch_file file;
    thousand().save(file.path());
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
        browser b({file.path()});
        BOOST_TEST(b.has(1, "tick n=0"));
        b.signal(number);
        BOOST_TEST(b.end() == 130);
        BOOST_TEST(b.restored());
    }
    browser b({file.path()});
    BOOST_TEST(b.has(1, "tick n=0"));
    b.type("/");
    BOOST_TEST(b.has(11, "/"));
    b.type("\x03");  // typed, while it asks
    BOOST_TEST(b.end() == 130);
    BOOST_TEST(b.restored());
}

BOOST_AUTO_TEST_CASE(several_files_are_merged_and_damage_is_told) {
    scratch_file first, second, none;
    thousand().save(first.path());
    auto damaged = thousand();
    damaged.put(damaged.slot_at(3), 0, 4);
    damaged.save(second.path());
    none.write("no trace");
    browser b({first.path(), second.path(), none.path()}, 24, 150);
    BOOST_TEST(b.has(23, "and 1 more"));
    b.type("/damaged at\r");
    BOOST_TEST(b.has(23, "1 damaged"));  // present: damaged
    BOOST_TEST(b.screen.line(23).find("nothing lost") == std::string::npos);
    BOOST_TEST(b.wait([&] {
        for (int y = 0; y < 23; ++y) {
            if (b.screen.line(y).find("damaged at offset") != std::string::npos) return true;
        }
        return false;
    }));
    b.type("q");
    BOOST_TEST(b.end() == 2);
    BOOST_TEST(b.restored());
    BOOST_TEST(b.wait([&] {  // on standard error, afterwards
        for (int y = 0; y < 24; ++y) {
            if (b.screen.line(y).find(": a sub-buffer that cannot be read") != std::string::npos)
                return true;
        }
        return false;
    }));
}

BOOST_AUTO_TEST_CASE(without_a_terminal_it_says_so) {
    scratch_file file, errors;
    thousand().save(file.path());
    const auto run = [&](const std::string& more) {
        const std::string command =
            std::string(TRACE_REDUCE) + " --browse " + file.path() + more + " 2> " + errors.path();
        const int status = std::system(command.c_str());
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    };
    BOOST_TEST(run(" < /dev/null > /dev/null") == 1);
    BOOST_TEST(errors.read() ==
               "trace-reduce: --browse needs a terminal on standard input and output\n");
    BOOST_TEST(run(" --stats") == 1);
    for (const char* type : {"no-such-terminal", "dumb"}) {
        in_terminal b({TRACE_REDUCE, "--browse", file.path()}, 12, 90, type);
        BOOST_TEST(b.end() == 1);
        BOOST_TEST(b.screen.line(0).starts_with("trace-reduce: --browse: a terminal "),
                   b.screen.line(0));
        BOOST_TEST(b.screen.line(0).ends_with(type));
    }
}

BOOST_AUTO_TEST_SUITE_END()
