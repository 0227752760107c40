// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// trace-reduce: ranges, and clocks of several machines put right.

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <examples/trace_reduce/trace_reduce_run.hpp>
#include <exporter/json_check.hpp>
#include <reduce/file_builder.hpp>
#include <reduce/scratch_file.hpp>

BOOST_AUTO_TEST_SUITE(trace_reduce_position)

using namespace trace_ring_test;

namespace {

constexpr std::uint64_t second = 1'000'000'000;
constexpr std::uint64_t set_up = 1'700'000'000 * second;  // 2023-11-14T22:13:20Z

struct result : reduced {
    /// What comes after `key` up to a comma or the end of the object, in the output.
    [[nodiscard]] std::int64_t number(const std::string& key) const {
        const std::size_t at = output.find('"' + key + "\":");
        BOOST_TEST_REQUIRE(at != std::string::npos, key + " in " + output);
        return std::stoll(output.substr(at + key.size() + 3));
    }
};

result reduce(const std::vector<std::string>& arguments) {
    return {run_trace_reduce(arguments)};
}
bool has(const std::string& text, const std::string& part) {
    const bool found = text.find(part) != std::string::npos;
    if (!found) BOOST_TEST_MESSAGE(text);
    return found;
}

/// A record a second, the first 10 s after the set-up; threads 11 and 12 in turn.
file_builder ten_records(std::uint64_t later = 0) {
    file_builder b;
    b.clock_reading(1000, 5 * second, set_up + later);
    b.clock_reading(1000 + 200 * second, 205 * second, set_up + later + 200 * second);
    const auto process = b.process(1200);
    const auto& event = b.event({1, "tick", {{"n"}}});
    const std::uint32_t lanes[] = {b.lane(process, 11), b.lane(process, 12)};
    for (std::uint64_t i = 0; i < 10; ++i) {
        const std::uint64_t time = 1000 + (10 + i) * second;
        if (i < 2) b.open(lanes[i], time);
        b.record(lanes[i % 2], time, event, {i});
    }
    return b;
}

/// The values of n, in the order of the lines.
std::string shown(const std::string& output) {
    std::string out;
    for (std::size_t at = output.find("n="); at != std::string::npos;
         at = output.find("n=", at + 1)) {
        out += output.substr(at + 2, output.find('\n', at) - at - 2) + ' ';
    }
    return out;
}

BOOST_AUTO_TEST_CASE(ranges_limit_every_way_of_reading) {
    const scratch_file file;
    ten_records().save(file.path());
    const auto with = [&](std::vector<std::string> arguments) {
        arguments.push_back(file.path());
        const auto found = reduce(arguments);
        BOOST_TEST(found.status == 0);
        BOOST_TEST(found.errors == "");
        return found.output;
    };
    BOOST_TEST(shown(with({"--from", "22:13:33", "--to", "22:13:36"})) == "3 4 5 ");
    BOOST_TEST(shown(with({"--from=2023-11-14T23:13:33.0000000+01:00", "--to=+16s"})) == "3 4 5 ");
    BOOST_TEST(shown(with({"--from", "-2s"})) == "7 8 9 ");
    BOOST_TEST(shown(with({"--from=-2s", "--to=-1s"})) == "7 ");
    BOOST_TEST(shown(with({"--to", "50%"})) == "0 1 2 3 4 ");
    BOOST_TEST(shown(with({"--from", "#1", "--to", "#3"})) == "2 3 4 5 ");
    BOOST_TEST(shown(with({"--from", "2:1", "--to", "2:3"})) == "3 4 5 6 ");
    BOOST_TEST(shown(with({"--from", "+12s", "--backward"})) == "9 8 7 6 5 4 3 2 ");
    BOOST_TEST(shown(with({"--to", "+15s", "--backward", "--limit", "2"})) == "4 3 ");
    BOOST_TEST(shown(with({"--from", "+12s", "--limit", "2"})) == "2 3 ");
    BOOST_TEST(shown(with({"--from", "+12s", "--to", "+16s", "--thread", "11"})) == "2 4 ");
    BOOST_TEST(shown(with({"--from", "+12s", "--where", "event == \"other\""})).empty());
    BOOST_TEST(
        has(with({"--from", "+12s", "--to", "+15s", "--stats"}), "  records   3, 48 bytes\n"));
    BOOST_TEST(shown(with({"--from", "-1s", "--follow", "--until-closed"})) == "8 9 ");
    const auto json = with({"--from", "+12s", "--to", "+13s", "--format", "json"});
    BOOST_TEST(json_check::valid(json.substr(0, json.find('\n'))));
    BOOST_TEST(has(json, "\"n\":2}"));
}

BOOST_AUTO_TEST_CASE(a_range_that_has_nothing_is_no_error_and_said) {
    const scratch_file file;
    ten_records().save(file.path());
    for (const auto& range :
         std::vector<std::vector<std::string>>{{"--from", "2024-01-01"},
                                               {"--to", "2023-01-01"},
                                               {"--from", "+5s", "--to", "+9s"},
                                               {"--from", "+15s", "--to", "+12s"}}) {
        auto arguments = range;
        arguments.push_back(file.path());
        const auto found = reduce(arguments);
        BOOST_TEST(found.status == 0);
        BOOST_TEST(found.output == "");
        BOOST_TEST(found.errors == "trace-reduce: " + file.path() +
                                       ": nothing of it is in the range: it goes from 2023-11-14 "
                                       "22:13:30.000000000 to 2023-11-14 22:13:39.000000000\n");
    }
}

BOOST_AUTO_TEST_CASE(what_is_no_place_is_refused_by_name) {
    const scratch_file file;
    ten_records().save(file.path());
    for (const char* option : {"--from", "--to"}) {
        for (const char* text : {"yesterday", "25:61", "101%", "+5", "2023-02-30", ""}) {
            const auto found = reduce({option, text, file.path()});
            BOOST_TEST(found.status == 1);
            BOOST_TEST(found.output == "");
            BOOST_TEST(has(found.errors, option));
            BOOST_TEST(has(found.errors, text));
            BOOST_TEST(has(found.errors, "#POSITION"));
        }
    }
    BOOST_TEST(reduce({"--follow", "--to", "+1s", file.path()}).status == 1);
    file_builder timeless;
    timeless.open(timeless.lane(timeless.process(1), 1), 100);
    timeless.save(file.path());
    const auto found = reduce({"--from", "22:13", file.path()});
    BOOST_TEST(found.status == 1);
    BOOST_TEST(
        has(found.errors, "--from 22:13: " + file.path() + ": its clock was never compared"));
}

BOOST_AUTO_TEST_CASE(of_several_files_a_range_is_of_their_common_time) {
    const scratch_file first;
    const scratch_file other;
    ten_records().save(first.path());
    ten_records(5 * second).save(other.path());
    const auto with = [&](std::vector<std::string> arguments) {
        arguments.insert(arguments.end(), {first.path(), other.path()});
        const auto found = reduce(arguments);
        BOOST_TEST(found.status == 0);
        return shown(found.output);
    };
    // From 22:13:30 to 22:13:39, and from :35 to :44.
    BOOST_TEST(with({"--from", "22:13:37.5", "--to", "22:13:39.5"}) == "8 3 9 4 ");
    BOOST_TEST(with({"--from", "+18s", "--to", "+19s"}) == "8 3 ");
    BOOST_TEST(with({"--from", "-1s"}) == "8 9 ");
    BOOST_TEST(with({"--to", "25%"}) == "0 1 2 3 ");
    BOOST_TEST(with({"--from", "-6s", "--to", "-5s", "--backward"}) == "3 8 ");
}

BOOST_AUTO_TEST_CASE(a_given_offset_shifts_a_file) {
    const scratch_file first;
    const scratch_file other;
    ten_records().save(first.path());
    ten_records(5 * second).save(other.path());
    const std::string told = other.path() + ": clock offset -4.500000000 s, as given\n";
    for (const std::string& name : {std::string("2"), other.path()}) {
        const auto found = reduce({"--offset", name + "=-4.5", first.path(), other.path()});
        BOOST_TEST(found.status == 0);
        BOOST_TEST(found.errors == "trace-reduce: " + told);
        BOOST_TEST(found.output.starts_with("# " + told));
        BOOST_TEST(shown(found.output) == "0 0 1 1 2 2 3 3 4 4 5 5 6 6 7 7 8 8 9 9 ");
        BOOST_TEST(has(found.output, other.path() + ": 2023-11-14 22:13:30.500000000 "));
    }
    const auto json =
        reduce({"--offset=2=0.000000001", "--format=json", first.path(), other.path()});
    BOOST_TEST(json_check::valid(json.output.substr(0, json.output.find('\n'))));
    BOOST_TEST(json.output.starts_with(R"({"kind":"clock_offset","file":")" + other.path() +
                                       R"(","source":"given","offset_ns":1})"));
    for (const char* bad :
         {"2", "=5", "2=", "2=x", "2=1.", "2=1e9", "2=1.0000000001", "2=99999999999"}) {
        const auto found = reduce({"--offset", bad, first.path(), other.path()});
        BOOST_TEST(found.status == 1);
        BOOST_TEST(has(found.errors, "--offset"));
        BOOST_TEST(has(found.errors, bad));
    }
    for (const char* nobody : {"3=5", "0=5", "nobody=5"}) {
        const auto found = reduce({"--offset", nobody, first.path(), other.path()});
        BOOST_TEST(found.status == 1);
        BOOST_TEST(found.output == "");
        BOOST_TEST(has(found.errors, std::string("--offset ") + nobody));
    }
}

/// Traces of two machines, the second's clock so far ahead, with messages between them.
struct machines {
    file_builder first{{.sub_buffer_bytes = 4096}};
    file_builder other{{.sub_buffer_bytes = 4096}};

    machines(std::uint64_t seed, std::int64_t ahead, bool forth = true, bool back = true,
             std::int64_t drift = 0) {
        std::mt19937_64 random(seed);
        const auto process = [](file_builder& b, std::uint64_t since, std::uint64_t realtime) {
            b.clock_reading(0, since, realtime);
            b.clock_reading(100 * second, since + 100 * second, realtime + 100 * second);
            b.event({1, "msg.sent", {{"id"}}});
            b.event({2, "msg.received", {{"id", trace_ring::field_type::u32}}});
            b.event({3, "call", {{"id"}}, trace_ring::event_kind::span});
            const auto lane = b.lane(b.process(1), 11);
            b.open(lane, 0);
            return lane;
        };
        (void)process(first, 5 * second, set_up);
        (void)process(other, 999 * second, set_up + static_cast<std::uint64_t>(ahead));
        struct message {
            std::uint64_t time;
            bool there;
            std::uint32_t event;
            std::uint64_t id;
        };
        std::vector<message> all;
        std::uint64_t now = second;
        for (std::uint64_t id = 1; id <= 60; ++id) {
            now += random() % (second / 10);
            const std::uint64_t delay = 20'000 + random() % 500'000;
            const bool to_other = forth && (!back || id % 2 == 0);
            all.push_back({now, !to_other, 1, id});
            all.push_back({now + delay, to_other, 2, id});
            all.push_back({now, !to_other, 3, 1000 + id});
            all.push_back({now + delay + 1, to_other, 4, 1000 + id});
        }
        std::sort(all.begin(), all.end(),
                  [](const message& a, const message& b) { return a.time < b.time; });
        for (const message& each : all) {
            auto& b = each.there ? other : first;
            const std::uint64_t time =
                each.time +
                (each.there && each.id % 1000 > 30 ? static_cast<std::uint64_t>(drift) : 0);
            const bool span = each.event > 2;
            BOOST_REQUIRE(b.record(1, time, b.events()[span ? 2 : each.event - 1], {each.id},
                                   !span             ? 0
                                   : each.event == 3 ? 4
                                                     : 8));
        }
    }
};

BOOST_AUTO_TEST_CASE(messages_tell_the_offset_within_what_is_said) {
    const scratch_file first;
    const scratch_file other;
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        const std::int64_t ahead = (static_cast<std::int64_t>(seed) - 3) * 250'000'000 + 12'345;
        const machines two(seed, ahead);
        two.first.save(first.path());
        two.other.save(other.path());
        for (const char* rule : {"msg.sent.id,msg.received.id", "call.id"}) {
            const auto found =
                reduce({"--match", rule, "--format", "json", first.path(), other.path()});
            BOOST_TEST(found.status == 0);
            BOOST_TEST(json_check::valid(found.output.substr(0, found.output.find('\n'))));
            const std::int64_t off = found.number("offset_ns") + ahead;
            const std::int64_t sure = found.number("uncertainty_ns");
            BOOST_TEST(std::abs(off) <= sure);
            BOOST_TEST(sure < 520'000);
            BOOST_TEST(found.number("sent") == 30);
            BOOST_TEST(found.number("received") == 30);
            BOOST_TEST(found.number("ahead_at_least_ns") <= ahead);
            BOOST_TEST(found.number("ahead_at_most_ns") >= ahead);
        }
        // No message arrives before it was sent.
        const auto text = reduce({"--match", "msg.sent.id,msg.received.id", "--event", "msg.*",
                                  first.path(), other.path()});
        BOOST_TEST(has(text.output, "# " + other.path() + ": clock offset "));
        BOOST_TEST(has(text.errors, ", within 0.000"));
        for (std::uint64_t id = 1; id <= 60; ++id) {
            const std::string which = " id=" + std::to_string(id) + '\n';
            BOOST_TEST(text.output.find("msg.sent" + which) <
                       text.output.find("msg.received" + which));
        }
    }
}

BOOST_AUTO_TEST_CASE(one_direction_is_a_bound_and_said_to_be_no_more) {
    const scratch_file first;
    const scratch_file other;
    const machines two(1, -2'000'000'000, true, false);
    two.first.save(first.path());
    two.other.save(other.path());
    const auto found = reduce(
        {"--match", "msg.sent.id,msg.received.id", "--format=json", first.path(), other.path()});
    BOOST_TEST(found.status == 0);
    BOOST_TEST(has(found.errors, "not an estimate: records went in one direction only"));
    BOOST_TEST(has(found.errors, "is at most -1.9"));
    BOOST_TEST(found.number("offset_ns") > 1'900'000'000);
    BOOST_TEST(found.output.find("uncertainty_ns") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(pairs_that_contradict_each_other_are_an_error_with_numbers) {
    const scratch_file first;
    const scratch_file other;
    const machines two(1, 1000, true, true, 50'000'000);
    two.first.save(first.path());
    two.other.save(other.path());
    const auto found =
        reduce({"--match", "msg.sent.id,msg.received.id", first.path(), other.path()});
    BOOST_TEST(found.status == 1);
    BOOST_TEST(found.output == "");
    BOOST_TEST(has(found.errors, "contradictory by 0.049"));
    BOOST_TEST(has(found.errors, " and at least +0.049"));
    const auto none =
        reduce({"--match", "msg.sent.nothing,msg.received.id", first.path(), other.path()});
    BOOST_TEST(none.status == 1);
    BOOST_TEST(has(none.errors, other.path() + ": --match finds no record of it"));
    BOOST_TEST(reduce({"--match", "msg.sent.id", first.path()}).status == 1);
    for (const char* bad : {"x", "x.", ".x", "a.b,c", "a.b,c.d,e.f", ""}) {
        const auto refused = reduce({"--match", bad, first.path(), other.path()});
        BOOST_TEST(refused.status == 1);
        BOOST_TEST(has(refused.errors, "--match"));
    }
}

BOOST_AUTO_TEST_CASE(files_of_two_machines_are_said_to_be_compared_by_date_only) {
    const scratch_file first;
    const scratch_file other;
    const machines two(1, 1000);
    two.first.save(first.path());
    two.other.save(other.path());
    const std::string note = other.path() + ": of another machine than " + first.path();
    BOOST_TEST(has(reduce({first.path(), other.path()}).errors, note));
    BOOST_TEST(!has(reduce({"--offset", "2=0", first.path(), other.path()}).errors, note));
    BOOST_TEST(reduce({first.path(), first.path()}).errors == "");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
