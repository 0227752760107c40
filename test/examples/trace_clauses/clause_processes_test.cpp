// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Processes whose first thread ends before the others, or another thread of which executes a
// program, and a time namespace with another clock: by both sources. The reference is what the
// program counts, and the system's clock.

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string>

#include <examples/trace_clauses/clause_programs.hpp>
#include <recorder/scratch.hpp>

BOOST_AUTO_TEST_SUITE(clause_processes)

namespace {

using namespace clause_programs;

std::string tool(const std::string& source) {
    return std::string("timeout 60 ") + TRACE_CLAUSES + " --source " + source + " ";
}
/// Whether a source can be used here.
bool is_usable(const std::string& said) {
    const bool usable = said.find("not permitted") == std::string::npos &&
                        said.find("no uprobes") == std::string::npos &&
                        said.find("cannot be traced") == std::string::npos;
    if (!usable) trace_ring_test::cannot_run("a source is not permitted here");
    return usable;
}

constexpr const char* leader_ends = R"(
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
extern "C" __attribute__((noinline)) int named(const char *n) { __asm__ volatile("" : : "r"(n) : "memory"); return n[0]; }
static int pause_us;
static void *run(void *) {
    char text[8] = "hello";
    for (int n = 0; n < 20; n++) { named(text); usleep(pause_us); }
    puts("20 done");
    exit(9);
}
int main(int count, char **) {
    pause_us = count > 1 ? 150000 : 1000;
    pthread_t t;
    char text[8] = "hello";
    named(text);
    pthread_create(&t, nullptr, run, nullptr);
    pthread_exit(nullptr);
})";
constexpr const char* other_executes = R"(
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
extern "C" __attribute__((noinline)) int marked(int n) { __asm__ volatile("" ::: "memory"); return n; }
static void *run(void *) {
    for (int i = 0; i < 3; i++) marked(i);
    execl("/proc/self/exe", "other", "again", nullptr);
    return nullptr;
}
int main(int count, char **) {
    marked(count);
    if (count > 1) {
        for (int i = 0; i < 5; i++) marked(100 + i);
        puts("again");
        return 8;
    }
    pthread_t t;
    pthread_create(&t, nullptr, run, nullptr);
    pthread_join(t, nullptr);
    return 1;
})";

}  // namespace

BOOST_AUTO_TEST_CASE(nothing_is_lost_when_the_first_thread_ends) {
    const test::folder folder;
    const std::string program = folder / "leader_ends";
    if (!build(program, leader_ends, "c++", 64, "-O1 -g -pthread")) return;
    for (const std::string source : {"kernel", "ptrace"}) {
        const std::string said =
            printed(tool(source) +
                    "-e '@@uft:*:leader_ends:named:entry { count(str(arg0)); } "
                    "@@uft:*:leader_ends:named:exit { count(retval); }' -- " +
                    program + " 2>&1; echo status $?");
        if (!is_usable(said)) continue;
        BOOST_TEST_CONTEXT(source << said) {
            BOOST_TEST(said.find("  \"hello\": 21\n") != std::string::npos);
            BOOST_TEST(said.find("  104: 21\n") != std::string::npos);
            BOOST_TEST(said.find(" 0 unreadable, 0 lost") != std::string::npos);
            BOOST_TEST(said.find("20 done\n") != std::string::npos);
            BOOST_TEST(said.find("status 9\n") != std::string::npos);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_process_is_attached_to_whose_first_thread_has_ended) {
    const test::folder folder;
    const std::string program = folder / "leader_ends";
    if (!build(program, leader_ends, "c++", 64, "-O1 -g -pthread")) return;
    for (const std::string source : {"kernel", "ptrace"}) {
        const std::string said =
            printed(program + " slowly & sleep 0.3; " + tool(source) +
                    "-e '@@uft:*:leader_ends:named:entry { count(str(arg0)); }' -p $! 2>&1; echo "
                    "status $?; wait $!; echo its $?");
        if (!is_usable(said)) continue;
        BOOST_TEST_CONTEXT(source << said) {
            const std::size_t at = said.find("  \"hello\": ");
            BOOST_REQUIRE(at != std::string::npos);
            BOOST_TEST(std::stoi(said.substr(at + 11)) > 3);
            BOOST_TEST(said.find("status 0\n") != std::string::npos);
            BOOST_TEST(said.find("its 9\n") != std::string::npos);
        }
    }
}

BOOST_AUTO_TEST_CASE(what_another_thread_executes_is_traced_on) {
    const test::folder folder;
    const std::string program = folder / "other";
    if (!build(program, other_executes, "c++", 64, "-O1 -g -pthread")) return;
    for (const std::string source : {"kernel", "ptrace"}) {
        const std::string said =
            printed(tool(source) + "-e '@@uft:*:other:marked:entry { count(n >= 100); }' -- " +
                    program + " 2>&1; echo status $?");
        if (!is_usable(said)) continue;
        BOOST_TEST_CONTEXT(source << said) {
            BOOST_TEST(said.find("  1: 5\n") != std::string::npos);
            BOOST_TEST(said.find("  0: 5\n") != std::string::npos);
            BOOST_TEST(said.find("status 8\n") != std::string::npos);
        }
    }
}

BOOST_AUTO_TEST_CASE(in_a_time_namespace_firings_have_its_time) {
    const test::folder folder;
    const std::string program = folder / "leader_ends";
    if (!build(program, leader_ends, "c++", 64, "-O1 -g -pthread")) return;
    const std::string in_namespace = "unshare --time --monotonic 100000 --fork -- ";
    if (printed(in_namespace + "echo there 2>&1") != "there\n") {
        trace_ring_test::cannot_run("no time namespaces are permitted here");
        return;
    }
    for (const std::string source : {"kernel", "ptrace"}) {
        const std::time_t before = std::time(nullptr);
        const std::string trace = folder / (source + ".trace");
        const std::string said = printed(
            in_namespace + tool(source) + "-o " + trace +
            " -e '@@uft:*:leader_ends:named:entry { capture(time); }' -- " + program + " 2>&1");
        if (!is_usable(said)) continue;
        // "2026-11-27 18:49:01.001 [...] named pid=... time=NS", in UTC.
        const auto lines = words_of(std::string(TRACE_REDUCE) + " " + trace);
        BOOST_TEST_CONTEXT(source << said) {
            BOOST_REQUIRE(lines.size() == 21U);
            std::tm date{};
            BOOST_REQUIRE(::strptime((lines[0][0] + " " + lines[0][1]).c_str(), "%Y-%m-%d %H:%M:%S",
                                     &date) != nullptr);
            const std::time_t at = ::timegm(&date);
            BOOST_TEST(at >= before - 1);
            BOOST_TEST(at <= std::time(nullptr) + 1);
            // Of the namespace's own clock.
            const auto ns = std::chrono::steady_clock::now().time_since_epoch();
            const std::string told = lines[0].back().substr(lines[0].back().find('=') + 1);
            const auto here = std::chrono::duration_cast<std::chrono::seconds>(ns).count();
            const auto there = static_cast<std::int64_t>(std::stoull(told) / 1'000'000'000);
            BOOST_TEST(there - here > 100'000 - 60);
            BOOST_TEST(there - here <= 100'000);
        }
    }
}

BOOST_AUTO_TEST_CASE(how_long_a_call_took_is_between_what_the_program_waited_and_measured) {
    const test::folder folder;
    const std::string program = folder / "timed";
    for (const int bits : {64, 32}) {
        if (!build(program,
                   "#include <stdio.h>\n#include <time.h>\n#include <unistd.h>\n"
                   "static long long now() { timespec t; clock_gettime(CLOCK_MONOTONIC, &t);\n"
                   "  return t.tv_sec * 1000000000LL + t.tv_nsec; }\n"
                   "extern \"C\" __attribute__((noinline)) int handle(int id, int us) {\n"
                   "  usleep(us); return id; }\n"
                   "extern \"C\" __attribute__((noinline)) int deep(int n) {\n"
                   "  usleep(500); const int r = n == 0 ? 0 : deep(n - 1) + 1;\n"
                   "  __asm__ volatile(\"\" ::: \"memory\"); return r; }\n"
                   "int main() {\n"
                   "  for (int i = 0; i < 4; i++) { const long long from = now(); handle(i, i * "
                   "3000);\n"
                   "    printf(\"handle %d %lld\\n\", i, now() - from); }\n"
                   "  printf(\"deep %d\\n\", deep(20));\n}\n",
                   "c++", bits, "-O1 -g"))
            return;
        if (!runs(bits)) continue;
        for (const std::string source : {"kernel", "ptrace"}) {
            // By one clause, and by two at the same exit.
            for (const std::string other :
                 {"", "@@uft:*:timed:handle:exit { count(elapsed > 0); } "}) {
                const std::string command =
                    tool(source) + "-e '@@uft:*:timed:handle:exit { capture(retval, elapsed); } " +
                    other +
                    "@@uft:*:timed:deep:exit when elapsed >= 500000 * (retval + 1) { count(); }' "
                    "-- " +
                    program + " 2>&1";
                const std::string said = printed(command);
                if (!is_usable(said)) continue;
                BOOST_TEST_CONTEXT(source << said) {
                    for (int i = 0; i < 4; ++i) {
                        const auto number_behind = [&](const std::string& text) {
                            const std::size_t at = said.find(text);
                            return at == std::string::npos
                                       ? -1
                                       : std::stoll(said.substr(at + text.size()));
                        };
                        const std::string id = std::to_string(i);
                        const long long told = number_behind(" retval=" + id + " elapsed=");
                        BOOST_TEST(told >= i * 3'000'000);
                        BOOST_TEST(told <= number_behind("handle " + id + " "));
                    }
                    // Each of those that call each other has its own.
                    BOOST_TEST(said.find("deep.exit count()\n  21\n") != std::string::npos);
                    if (!other.empty())
                        BOOST_TEST(said.find("count(elapsed > 0)\n  1: 4\n") != std::string::npos);
                    BOOST_TEST(said.find(" 0 unreadable, 0 lost") != std::string::npos);
                }
            }
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()
