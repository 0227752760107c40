// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// What becomes of firings: events in a trace that reads like any other, lines, counts and
// histograms.

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include <trace_ring/point/machine/run.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include <point/naive.hpp>
#include <trace_clauses/language/compile.hpp>
#include <trace_clauses/session/results.hpp>

BOOST_AUTO_TEST_SUITE(clause_results)

namespace point = trace_ring::point;
namespace tr = trace_ring;
namespace tc = trace_clauses;
using tc::program_mode;

namespace {

/// One clause, compiled for both modes, and its firings.
class session {
public:
    session(const std::string& script, tc::results::recorder* to) : results_(to, shown_) {
        auto parsed = expressions::parse_script(script);
        BOOST_REQUIRE(std::holds_alternative<expressions::script>(parsed));
        const auto& clause = std::get<expressions::script>(parsed).clauses.at(0);
        for (const auto mode : {program_mode::lp64, program_mode::ilp32}) {
            tc::type_table types(mode);
            code_[static_cast<std::size_t>(mode)] = tc::compile(script, clause, {types});
        }
        for (const auto& each : code_) results_.add("handle", each.statements, 0, "handle");
    }
    void fire(std::uint64_t time, unsigned bits, std::uint64_t argument,
              const std::string& text = {}, std::uint32_t tid = 11) {
        test::fake_firing at;
        for (const char c : text) at.memory.push_back(static_cast<std::byte>(c));
        at.memory.push_back(std::byte{0});
        at.arguments = {argument, at.base};
        at.frames = {0x11, 0x22};
        const tc::compiled& of = code_[bits == 32 ? 1 : 0];
        std::vector<std::byte> output(of.output_bytes);
        const auto done = point::run(of.action, at, output);
        results_.ran({.clause = bits == 32 ? 1U : 0U,
                      .time = time,
                      .pid = 10,
                      .tid = tid,
                      .bits = static_cast<std::uint8_t>(bits),
                      .faults = done.faults},
                     output);
    }
    [[nodiscard]] tc::results& results() { return results_; }
    [[nodiscard]] std::string shown() const { return shown_.str(); }

private:
    std::ostringstream shown_;
    tc::results results_;
    tc::compiled code_[2];
};

}  // namespace

BOOST_AUTO_TEST_CASE(captures_of_both_modes_are_events_of_one_type_at_the_times_of_their_firings) {
    tc::results::recorder recorder{{.size = 1 << 20}};
    session all("@@uft:*:x:handle:entry { capture(arg0, str(arg1), ustack(4), pid); }", &recorder);
    all.fire(5'000, 64, std::uint64_t{1} << 40, "north");
    all.results().lost(7);
    all.fire(7'000, 32, 0xFFFFFFFF, std::string(100, 'x'));
    all.fire(6'000, 64, 3, "", 12);  // a little late from another processor
    const auto [memory, size] = recorder.bytes();
    const auto trace = tr::reduce::trace_file::from({memory, size});
    std::string told;
    std::vector<std::uint64_t> ticks;
    std::uint64_t lost = 0;
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        if (const auto* const loss = std::get_if<tr::reduce::loss_item>(item)) {
            lost += loss->count;
            continue;
        }
        const auto& one = std::get<tr::reduce::record_view>(*item);
        ticks.push_back(one.time());
        told += std::string(one.name()) + " " + std::to_string(one.field("pid").u64()) + " " +
                std::to_string(one.field("tid").u64()) + " " +
                std::to_string(one.field("bits").u64()) + " " +
                std::to_string(one.field("arg0").u64()) + " " +
                std::to_string(one.field("str(arg1)").text().size()) +
                (one.field("str(arg1)").cut() ? "+" : "") + " " +
                std::to_string(one.field("ustack(4)").at(1).u64()) + "\n";
    }
    BOOST_TEST(told ==
               "handle 10 11 64 1099511627776 5 34\n"
               "handle 10 12 64 3 0 34\n"
               "handle 10 11 32 4294967295 64+ 34\n");
    BOOST_TEST((ticks == std::vector<std::uint64_t>{5'000, 6'000, 7'000}));
    BOOST_TEST(lost == 7U);
    // One type for both modes; the others are this program's own.
    const auto& types = trace.about().events().types();
    BOOST_TEST(std::count_if(types.begin(), types.end(),
                             [](const auto& type) { return type.name == "handle"; }) == 1);
    BOOST_TEST(all.results().unrecorded() == 0U);
    BOOST_TEST(all.shown().empty());
}

BOOST_AUTO_TEST_CASE(without_a_trace_each_capture_is_a_line) {
    session all(
        "@@uft:*:x:handle:entry { capture(arg0, str(arg1, 4), (int)arg0 < 0, (char *)arg0, "
        "ustack); }",
        nullptr);
    all.fire(1, 64, 5, "north");
    all.fire(2, 32, 0xFFFFFFFF, std::string("\n\x1B"));
    all.fire(3, 64, 0x1234, "");
    BOOST_TEST(
        all.shown() ==
        "handle pid=10 tid=11 arg0=5 str(arg1, 4)=\"nort\"... (int)arg0 < 0=0 (char *)arg0=0x5 "
        "ustack=[0x11 0x22]\n"
        "handle pid=10 tid=11 arg0=4294967295 str(arg1, 4)=\"\\n\\x1b\" (int)arg0 < 0=1 "
        "(char *)arg0=0xffffffff ustack=[0x11 0x22]\n"
        "handle pid=10 tid=11 arg0=4660 str(arg1, 4)=\"\" (int)arg0 < 0=0 (char *)arg0=0x1234 "
        "ustack=[0x11 0x22]\n");
}

BOOST_AUTO_TEST_CASE(what_could_not_be_read_is_no_value_on_the_screen_in_keys_and_in_a_trace) {
    const std::string script =
        "@@uft:*:x:handle:entry { capture(*(int *)arg0, str(arg1), *(char *)arg0 / 0); "
        "count(*(int *)arg0, arg0 == 0); hist(*(int *)arg0); }";
    const auto fire = [](session& all) {
        const std::uint64_t base = test::fake_firing().base;
        all.fire(1, 64, 8, "north");
        all.fire(2, 32, base, std::string("\5\0\0\0", 4));
        all.fire(3, 64, base, std::string(4, '\0'));
        all.fire(4, 32, 0, "north");
        BOOST_TEST(all.results().unreadable() == 4U);  // each divides by zero, too
    };
    session shown(script, nullptr);
    fire(shown);
    shown.results().show();
    const std::string begin = "handle pid=10 tid=11 *(int *)arg0=";
    const std::string end = " *(char *)arg0 / 0=(unreadable)\n";
    BOOST_TEST(shown.shown().find(begin + "(unreadable) str(arg1)=\"north\"" + end + begin +
                                  "5 str(arg1)=\"\\x05\"" + end + begin + "0 str(arg1)=\"\"" + end +
                                  begin + "(unreadable) str(arg1)=\"north\"" + end) == 0U,
               shown.shown());
    for (const std::string key : {"0, 0: 1", "5, 0: 1", "(unreadable), 0: 1", "(unreadable), 1: 1"})
        BOOST_TEST(shown.shown().find("  " + key + "\n") != std::string::npos, shown.shown());
    // 0 and 5 alone are in the histogram.
    BOOST_TEST(shown.shown().find("  0                            1 |") != std::string::npos);

    tc::results::recorder recorder{{.size = 1 << 20}};
    session recorded(script, &recorder);
    fire(recorded);
    const auto [memory, size] = recorder.bytes();
    const auto trace = tr::reduce::trace_file::from({memory, size});
    std::string told;
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        const auto& one = std::get<tr::reduce::record_view>(*item);
        std::string number = "none";
        for (std::size_t i = 0; i < one.type().fields.size(); ++i) {
            if (one.type().fields[i].name == "*(int *)arg0")
                number = std::to_string(one.field(i).i64());
        }
        told += std::string(one.name()) + " " + number + " " +
                std::string(one.field("unreadable").text()) + "\n";
    }
    BOOST_TEST(told ==
               "handle none *(int *)arg0, *(char *)arg0 / 0\nhandle 5 *(char *)arg0 / 0\n"
               "handle 0 *(char *)arg0 / 0\nhandle none *(int *)arg0, *(char *)arg0 / 0\n");
    BOOST_TEST(recorded.results().unrecorded() == 0U);
}

BOOST_AUTO_TEST_CASE(counts_and_histograms_are_of_both_modes_together) {
    session all(
        "@@uft:*:x:handle:entry { count(str(arg1)); hist(arg0); count(); hist((int)arg0, "
        "str(arg1)); }",
        nullptr);
    for (unsigned n = 0; n < 4; ++n) all.fire(n, n % 2 == 0 ? 64 : 32, n, "north");
    all.fire(9, 64, 1000, "south");
    all.fire(10, 32, 0xFFFFFFFF, "south");
    all.results().show();
    const auto line = [](const std::string& range, const std::string& count, std::size_t marks) {
        return "  " + range + std::string(20 - range.size(), ' ') +
               std::string(10 - count.size(), ' ') + count + " |" + std::string(marks, '@') +
               std::string(40 - marks, ' ') + "|\n";
    };
    const std::string shown = all.shown();
    const std::string expected =
        "handle count(str(arg1))\n  \"south\": 2\n  \"north\": 4\nhandle hist(arg0)\n" +
        line("0", "1", 20) + line("1", "1", 20) + line("2 to 3", "2", 40) + line("4 to 7", "0", 0);
    BOOST_TEST(shown.substr(0, expected.size()) == expected);
    BOOST_TEST(shown.find("  2147483648 to 4294967295         1 |") != std::string::npos);
    BOOST_TEST(shown.find("handle count()\n  6\n") != std::string::npos);
    BOOST_TEST(shown.find("  \"south\"\n" + line("negative", "1", 40) + line("0", "0", 0)) !=
               std::string::npos);
    BOOST_TEST(shown.find(line("512 to 1023", "1", 40)) != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
