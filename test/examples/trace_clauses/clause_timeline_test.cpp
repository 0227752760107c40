// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// What is captured is on the thread that fired, and an entry and its exit are a span: which call
// has which result is what the program prints.

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include <trace_ring/reduce/span/pairs.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include "clause_programs.hpp"

BOOST_AUTO_TEST_SUITE(clause_timeline)

namespace tr = trace_ring;
using clause_programs::build;
using clause_programs::ended;
using clause_programs::run;

namespace {

/// Prints a line for each call that returns: thread, its name, argument and result; and one for
/// each that a longjmp leaves, with "left".
constexpr const char* source = R"(#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static __thread jmp_buf back;
static void say(int n, const char *result) {
    char name[16];
    pthread_getname_np(pthread_self(), name, sizeof name);
    printf("%d %s %d %s\n", (int)gettid(), name, n, result);
}
__attribute__((noinline)) int call(int n) {
    char text[16];
    if (n == 7) longjmp(back, 1);
    int result = n > 0 && n < 100 ? call(n - 1) + 3 : n;
    snprintf(text, sizeof text, "%d", result);
    say(n, text);
    return result;
}
static void *work(void *name) {
    pthread_setname_np(pthread_self(), name);
    for (int i = 0; i < 5; ++i) call(i);
    if (setjmp(back) == 0) {
        call(9);
    } else {
        for (int n = 7; n < 10; ++n) say(n, "left");
    }
    call(100);
    call(2);
    return 0;
}
int main(void) {
    setvbuf(stdout, 0, _IOLBF, 0);
    pthread_t all[3];
    char *names[] = {"first", "second", "third"};
    for (int i = 0; i < 3; ++i) pthread_create(&all[i], 0, work, names[i]);
    for (int i = 0; i < 3; ++i) pthread_join(all[i], 0);
    work("timeline");
    return 0;
}
)";

/// The same lines, from the spans of a trace; "lost" for calls that cannot be a span.
[[nodiscard]] std::vector<std::string> lines_of(const std::string& file) {
    std::vector<std::string> all;
    const auto trace = tr::reduce::trace_file::open(file);
    tr::reduce::span_pairs<std::string> pairs;
    std::map<std::uint32_t, std::uint64_t> last;  // by lane
    const auto left = [&](auto& one) { all.push_back(one.kept + " left"); };
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        const auto* const one = std::get_if<tr::reduce::record_view>(item);
        if (one == nullptr) {
            all.emplace_back("lost");
            continue;
        }
        auto& before = last[one->lane().number];
        BOOST_TEST(one->time() >= before);
        before = one->time();
        const std::string thread =
            std::to_string(one->lane().thread) + " " + one->lane().name + " ";
        if (one->begins()) {
            BOOST_TEST(one->field("tid").u64() == one->lane().thread);
            BOOST_TEST(one->field("pid").u64() == one->lane().pid);
            BOOST_TEST(trace.processes().at(one->lane().process.value()).name == "timeline");
            pairs.begin(*one, thread + std::to_string(one->field("n").i64()), left);
            continue;
        }
        BOOST_REQUIRE(one->ends());
        const auto its = pairs.end(*one, left);
        if (!its.begun) {
            all.push_back(thread + "an end of nothing");
            continue;
        }
        BOOST_TEST(its.begun->kept.starts_with(thread));
        all.push_back(its.begun->kept + " " + std::to_string(one->field("retval").i64()));
    }
    pairs.for_each_open([&](const auto& one) { all.push_back(one.kept + " left"); });
    std::sort(all.begin(), all.end());
    return all;
}
[[nodiscard]] std::vector<std::string> sorted_lines(const std::string& text) {
    std::vector<std::string> all;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) all.push_back(line);
    std::sort(all.begin(), all.end());
    return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_call_is_a_span_of_its_thread_with_its_argument_and_result) {
    const test::folder folder;
    const std::string program = folder / "timeline";
    const std::string trace = folder / "timeline.trace";
    std::size_t compared = 0;
    for (const int bits : {64, 32}) {
        if (!clause_programs::runs(bits)) continue;
        for (const std::string level : {"-O0", "-O2"}) {
            if (!build(program, source, "c", bits, level + " -g -pthread")) continue;
            for (const std::string from : {"kernel", "ptrace"}) {
                const ended made =
                    run(folder, TRACE_CLAUSES " --source " + from + " -o " + trace +
                                    " -e '@@uft:*:timeline:call:entry { capture(n); "
                                    "} @@uft:*:timeline:call:exit { capture(retval); "
                                    "}' -- " +
                                    program);
                if (made.status != 0) {
                    trace_ring_test::cannot_run(made.err);
                    continue;
                }
                BOOST_TEST_CONTEXT(bits << " bits, " << level << ", " << from << made.err) {
                    const auto printed = sorted_lines(made.out);
                    BOOST_TEST(lines_of(trace) == printed, boost::test_tools::per_element());
                    compared += printed.size();
                }
            }
        }
    }
    trace_ring_test::proof("clauses", compared, "calls that are spans of their threads");
}

BOOST_AUTO_TEST_CASE(captures_with_a_condition_and_exits_alone_are_events_of_their_own) {
    const test::folder folder;
    const std::string program = folder / "timeline";
    const std::string trace = folder / "timeline.trace";
    if (!build(program, source, "c", 64, "-O0 -g -pthread")) return;
    for (const std::string condition :
         {"entry when n > 3 { capture(n); } @@uft:*:timeline:call:exit { capture(retval); }",
          "entry { capture(n); } @@uft:*:timeline:call:exit when retval > 3 { capture(retval); }",
          "exit { capture(n, retval); }"}) {
        const ended made =
            run(folder, TRACE_CLAUSES " -o " + trace + " -e '@@uft:*:timeline:call:" + condition +
                            "' -- " + program);
        if (made.status != 0) return trace_ring_test::cannot_run(made.err);
        const auto file = tr::reduce::trace_file::open(trace);
        std::size_t entries = 0, exits = 0;
        for (auto cursor = file.forward(); const auto* item = cursor.next();) {
            const auto& one = std::get<tr::reduce::record_view>(*item);
            BOOST_TEST((!one.begins() && !one.ends()));
            ++(one.name() == "call.exit" ? exits : entries);
        }
        BOOST_TEST(exits > 10U);
        BOOST_TEST((entries > 10U || condition.starts_with("exit")), condition);
    }
}

BOOST_AUTO_TEST_SUITE_END()
