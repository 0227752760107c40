// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// The names in stacks are those that addr2line finds, on the screen, in keys and in a trace: also
// of processes that have ended, have executed another program, or are forked.

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <trace_ring/reduce/trace_file.hpp>

#include "clause_programs.hpp"

BOOST_AUTO_TEST_SUITE(clause_stacks)

namespace tr = trace_ring;
using clause_programs::build;
using clause_programs::ended;
using clause_programs::run;

namespace {

constexpr const char* source = R"(#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) int leaf(int n) { __asm__ volatile(""); return n + 1; }
__attribute__((noinline)) int middle(int n) {
    int r = leaf(n);
    __asm__ volatile("");
    return r + 1;
}
int main(int count, char **given) {
    int sum = middle(1) +
              middle(2);
    if (count > 1) {
        if (fork() == 0) {
            leaf(3);
            execl(given[0], given[0], (char *)0);
        }
        wait(0);
    }
    printf("%d\n", sum);
    return 0;
}
)";

/// "middle+0x" and " file:line" as another tool says them.
struct said {
    std::string function, place;
};
[[nodiscard]] said by_addr2line(const std::string& program, std::uint64_t address) {
    char text[32];
    std::snprintf(text, sizeof text, "%llx", static_cast<unsigned long long>(address - 1));
    const auto lines =
        clause_programs::words_of("addr2line -f -e " + program + " " + std::string(text));
    BOOST_REQUIRE(lines.size() == 2U);
    const std::string& where = lines[1].at(0);
    return {lines[0].at(0), where.substr(where.rfind('/') + 1)};
}
/// Sources of firings that may be used here.
[[nodiscard]] std::vector<std::string> sources(const test::folder& folder,
                                               const std::string& program) {
    std::vector<std::string> found;
    for (const std::string each : {"kernel", "ptrace"}) {
        const ended made = run(folder, TRACE_CLAUSES " --source " + each +
                                           " -e '@@uft:*:stacks:leaf:entry {}' -- " + program);
        if (made.status == 0) {
            found.push_back(each);
        } else {
            trace_ring_test::cannot_run(made.err);
        }
    }
    return found;
}

}  // namespace

BOOST_AUTO_TEST_CASE(stacks_have_the_names_that_another_tool_finds) {
    const test::folder folder;
    const std::string program = folder / "stacks";
    for (const int bits : {64, 32}) {
        if (!clause_programs::runs(bits)) continue;
        const std::string flags = "-O1 -g -fno-omit-frame-pointer";
        BOOST_REQUIRE(build(program, source, "c", bits, flags));
        for (const auto& from : sources(folder, program)) {
            BOOST_TEST_CONTEXT(bits << " bits, " << from) {
                const std::string tool = TRACE_CLAUSES " --source " + from + " ";
                const std::string trace = folder / "stacks.trace";
                const ended made =
                    run(folder, tool + "-o " + trace +
                                    " -e '@@uft:*:stacks:leaf:entry { capture(n, ustack(4)); }' "
                                    "-- " +
                                    program);
                BOOST_REQUIRE_MESSAGE(made.status == 0, made.err);
                const ended named = run(
                    folder, TRACE_REDUCE " --symbols " + trace + " --where 'event == \"leaf\"'");
                std::uint64_t bias = 0, begin = 0, end = 0;
                std::size_t compared = 0;
                const auto file = tr::reduce::trace_file::open(trace);
                for (auto cursor = file.forward(); const auto* item = cursor.next();) {
                    const auto& one = std::get<tr::reduce::record_view>(*item);
                    if (one.name() == "module") {
                        if (one.field("path").text().ends_with("/stacks")) {
                            bias = one.field("bias").u64();
                            begin = one.field("start").u64();
                            end = one.field("end").u64();
                        }
                        continue;
                    }
                    const auto stack = one.field("ustack(4)");
                    for (std::size_t i = 0; i < stack.size(); ++i) {
                        const std::uint64_t address = stack.at(i).u64();
                        if (address < begin || address >= end) continue;
                        const said right = by_addr2line(program, address - bias);
                        char hex[32];
                        std::snprintf(hex, sizeof hex, "0x%llx <",
                                      static_cast<unsigned long long>(address));
                        const std::size_t at = named.out.find(hex + right.function + "+0x");
                        BOOST_REQUIRE_MESSAGE(at != std::string::npos, named.out);
                        const std::string name = named.out.substr(at, named.out.find('>', at) - at);
                        BOOST_TEST(name.ends_with(" " + right.place), name << right.place);
                        ++compared;
                    }
                }
                BOOST_TEST(compared == 4U);  // middle and main, of two calls
                BOOST_TEST(named.err == "");
                // Another file has the program's name by now.
                BOOST_REQUIRE(build(program, "int main() { return 1; }\n", "c", bits));
                const ended later = run(folder, TRACE_REDUCE " --symbols " + trace);
                BOOST_TEST(later.err.find("/stacks: has changed since the trace was made") !=
                               std::string::npos,
                           later.err);
                BOOST_TEST(later.status == 0);
                BOOST_REQUIRE(build(program, source, "c", bits, flags));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(keys_have_the_names_of_their_time_and_are_one_in_all_processes) {
    const test::folder folder;
    const std::string program = folder / "stacks";
    if (!build(program, source, "c", 64, "-O1 -g -fno-omit-frame-pointer")) return;
    const auto from = sources(folder, program);
    for (const auto& each : from) {
        const ended shown = run(folder, TRACE_CLAUSES " --source " + each +
                                            " -e '@@uft:*:stacks:leaf:entry { capture(ustack(2)); "
                                            "count(ustack(2)); }' -- " +
                                            program);
        for (const char* name : {"[0x", " <middle+0x", " stacks.source:6>", " <main+0x",
                                 " stacks.source:11>", " stacks.source:12>", "  [<middle+0x"})
            BOOST_TEST(shown.out.find(name) != std::string::npos, name << shown.out << shown.err);
    }
    if (from.empty() || from[0] != "kernel") return;
    // The child fires before it executes the program anew, at other addresses.
    const ended made =
        run(folder, TRACE_CLAUSES
                        " --source kernel --children "
                        "-e '@@uft:*:stacks:leaf:entry { count(n, ustack(1)); }' -- " +
                        program + " again");
    std::size_t middles = 0;
    for (std::size_t at = 0; (at = made.out.find(", [<middle+0x", at)) != std::string::npos; ++at) {
        BOOST_TEST(made.out.substr(at).find(" stacks.source:6>]: 2\n") < 40U);
        ++middles;
    }
    BOOST_TEST(middles == 2U, made.out << made.err);
    const std::size_t child = made.out.find("  3, [<main+0x");
    BOOST_REQUIRE_MESSAGE(child != std::string::npos, made.out);
    BOOST_TEST(made.out.substr(child).find(" stacks.source:15>]: 1\n") < 40U, made.out);
    BOOST_TEST(made.err.find("no name") == std::string::npos, made.err);
}

BOOST_AUTO_TEST_CASE(libraries_at_the_same_address_have_the_names_of_their_time) {
    const test::folder folder;
    const std::string program = folder / "stacks";
    const std::string flags = "-O1 -g -fno-omit-frame-pointer ";
    const char* const library =
        "__attribute__((noinline)) int NAME(int (*f)(int), int x) {\n"
        "  int r = f(x); __asm__ volatile(\"\"); return r + 1; }\n";
    if (!build(program,
               "#include <dlfcn.h>\n"
               "__attribute__((noinline)) int leaf(int x) { __asm__ volatile(\"\"); return x; }\n"
               "int main(int count, char **given) {\n"
               "  for (int k = 0; k < 6; ++k) {\n"
               "    void *h = dlopen(given[1 + k % 2], RTLD_NOW);\n"
               "    int (*f)(int (*)(int), int) = dlsym(h, k % 2 ? \"second\" : \"first\");\n"
               "    f(leaf, k % 2);\n    dlclose(h);\n  }\n  return 0;\n}\n",
               "c", 64, flags) ||
        !build(folder / "first.so", library, "c", 64, flags + "-shared -fPIC -DNAME=first") ||
        !build(folder / "second.so", library, "c", 64, flags + "-shared -fPIC -DNAME=second"))
        return;
    const std::string run_it =
        " -- " + program + " " + (folder / "first.so") + " " + (folder / "second.so");
    for (const auto& from :
         sources(folder, program + " " + (folder / "first.so") + " " + (folder / "second.so"))) {
        const std::string tool = TRACE_CLAUSES " --source " + from + " ";
        const ended keys =
            run(folder, tool + "-e '@@uft:*:stacks:leaf:entry { count(x, ustack(1)); }'" + run_it);
        BOOST_TEST(keys.out.find("  0, [<first+0x") != std::string::npos, keys.out);
        BOOST_TEST(keys.out.find("  1, [<second+0x") != std::string::npos, keys.out);
        BOOST_TEST(keys.out.find("]: 3\n") != std::string::npos, keys.out);
        const std::string trace = folder / "stacks.trace";
        BOOST_TEST(run(folder, tool + "-o " + trace +
                                   " -e '@@uft:*:stacks:leaf:entry { capture(x, ustack(1)); }'" +
                                   run_it)
                       .status == 0);
        const ended named =
            run(folder, TRACE_REDUCE " --symbols " + trace + " --where 'event == \"leaf\"'");
        std::istringstream lines(named.out);
        std::size_t right = 0;
        for (std::string line; std::getline(lines, line);) {
            const bool is_first = line.find(" x=0 ") != std::string::npos;
            right += line.find(is_first ? " <first+0x" : " <second+0x") != std::string::npos;
        }
        BOOST_TEST(right == 6U, named.out);
    }
}

namespace {

/// Prints who has called, as libgcc's unwinder finds it: "NUMBER: ADDRESS ...".
constexpr const char* unwinding = R"(#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) int seen(int n) {
    void *all[40];
    int count = backtrace(all, 40);
    printf("%d:", n);
    for (int i = 1; i < count; ++i) printf(" %p", all[i]);
    puts("");
    return n;
}
static int compare(const void *a, const void *b) {
    static int once;
    if (once++ == 0) seen(100);
    return *(const int *)a - *(const int *)b;
}
static void handler(int number) { seen(200 + number); }
__attribute__((noinline)) int large(int n) { volatile char room[3000]; room[n] = 1; return seen(n) + room[n]; }
__attribute__((noinline)) int nest(int n, int last) {
    volatile char room[700];
    room[n] = 2;
    int r = n ? nest(n - 1, last) : large(last);
    return r + room[n];
}
static void *work(void *p) {
    int all[] = {3, 1, 2};
    nest(3, 1);
    qsort(all, 3, sizeof *all, compare);
    raise(SIGUSR1);
    nest(30, 2);
    return p;
}
int main(void) {
    void *two[2];
    pthread_t thread;
    setvbuf(stdout, 0, _IOLBF, 0);
    backtrace(two, 2);
    signal(SIGUSR1, handler);
    pthread_create(&thread, 0, work, 0);
    pthread_join(thread, 0);
    work(0);
    return 0;
}
)";

/// The addresses in a text, without the names behind them.
[[nodiscard]] std::vector<std::string> addresses_in(const std::string& text) {
    std::vector<std::string> all;
    std::string name;
    bool is_name = false;
    for (const char c : text + " ") {
        if (c == '<') is_name = true;
        if (c == '>') is_name = false;
        if (is_name) continue;
        if (c != ' ' && c != '[' && c != ']' && c != '>') {
            name += c;
        } else if (!name.empty()) {
            all.push_back(std::exchange(name, ""));
        }
    }
    return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(callers_without_frame_pointers_are_those_that_the_program_unwinds_itself) {
    const test::folder folder;
    const std::string program = folder / "stacks";
    std::size_t compared = 0;
    for (const int bits : {64, 32}) {
        if (!clause_programs::runs(bits)) continue;
        if (!build(program, unwinding, "c", bits, "-O2 -g -fomit-frame-pointer -pthread")) continue;
        for (const std::string from : {"kernel", "ptrace"}) {
            const ended made = run(folder, TRACE_CLAUSES " --source " + from +
                                               " -e '@@uft:*:stacks:seen:entry "
                                               "{ capture(n, ustack(40)); }' -- " +
                                               program);
            if (made.status != 0) {
                trace_ring_test::cannot_run(made.err);
                continue;
            }
            BOOST_TEST_CONTEXT(bits << " bits, " << from << made.out << made.err) {
                std::vector<std::vector<std::string>> printed, traced;
                std::istringstream lines(made.out);
                for (std::string line; std::getline(lines, line);) {
                    const std::string mark = " ustack(40)=";
                    const std::size_t at = line.find(mark);
                    if (at != std::string::npos)
                        traced.push_back(addresses_in(line.substr(at + mark.size())));
                    else
                        printed.push_back(addresses_in(line.substr(line.find(':') + 1)));
                }
                BOOST_REQUIRE(printed.size() == 7U);
                BOOST_REQUIRE(traced.size() == 7U);
                std::size_t cut = 0;
                for (std::size_t i = 0; i < printed.size(); ++i) {
                    // The deepest ones are longer than what is copied.
                    const bool is_cut = printed[i].size() > 30;
                    if (is_cut) {
                        BOOST_TEST(traced[i].size() > 5U);
                        printed[i].resize(traced[i].size());
                        ++cut;
                    }
                    BOOST_TEST(traced[i] == printed[i], boost::test_tools::per_element());
                    ++compared;
                }
                BOOST_TEST(cut == 2U);
                BOOST_TEST(made.err.find("2 stacks are cut") != std::string::npos);
                BOOST_TEST(made.err.find("no unwind information") == std::string::npos);
            }
        }
    }
    trace_ring_test::proof("clauses", compared, "stacks compared with the program's own unwinder");
}

BOOST_AUTO_TEST_CASE(stacks_through_files_that_were_found_for_an_ended_process_are_whole) {
    const test::folder folder;
    const std::string program = folder / "stacks";
    for (const int bits : {64, 32}) {
        if (!clause_programs::runs(bits)) continue;
        // The C library is between main and the function. The child lives until its stack has been
        // read, and has ended before its parent calls the function.
        if (!build(program,
                   "#include <stdlib.h>\n"
                   "#include <sys/wait.h>\n"
                   "#include <unistd.h>\n"
                   "__attribute__((noinline)) int leaf(const void *a, const void *b) {\n"
                   "  __asm__ volatile(\"\"); return *(const int *)a - *(const int *)b; }\n"
                   "int main(void) {\n"
                   "  int all[] = {2, 1};\n"
                   "  const int child = fork();\n"
                   "  if (child != 0) wait(0);\n"
                   "  qsort(all, 2, sizeof all[0], leaf);\n"
                   "  if (child == 0) usleep(500000);\n"
                   "  return 0; }\n",
                   "c", bits, "-O2 -g -fomit-frame-pointer"))
            continue;
        const ended made =
            run(folder, TRACE_CLAUSES
                            " --source kernel --children -e '@@uft:*:stacks:leaf:entry "
                            "{ capture(a, ustack(40)); }' -- " +
                            program);
        if (!clause_programs::permits(made)) {
            trace_ring_test::cannot_run(made.err);
            continue;
        }
        BOOST_TEST_CONTEXT(bits << " bits" << made.out << made.err) {
            BOOST_TEST(made.status == 0);
            std::size_t whole = 0;
            for (std::size_t at = 0; (at = made.out.find("<main+0x", at)) != std::string::npos;
                 ++at)
                ++whole;
            BOOST_TEST(whole == 2U);
            BOOST_TEST(made.err.find("stacks end at code") == std::string::npos);
        }
    }
}

BOOST_AUTO_TEST_CASE(stacks_through_libraries_that_come_and_go_are_whole_and_others_are_counted) {
    const test::folder folder;
    const std::string program = folder / "stacks";
    const char* const library =
        "__attribute__((noinline)) int through(int (*f)(int), int x) {\n"
        "  volatile char room[ROOM]; room[x] = 1; return f(x) + room[x]; }\n";
    const std::string flags = "-O2 -g -fomit-frame-pointer ";
    if (!build(program,
               "#include <dlfcn.h>\n"
               "#include <signal.h>\n"
               "#include <sys/mman.h>\n"
               "#include <string.h>\n"
               "__attribute__((noinline)) int leaf(int x) { __asm__ volatile(\"\"); return x; }\n"
               "static void handler(int n) { leaf(n); }\n"
               "int without(int (*)(int), int);\n"
               "__asm__(\".globl without\\n.type without,@function\\n\"\n"
               "        \"without: push %rbp\\n mov %rsp,%rbp\\n mov %rdi,%rax\\n\"\n"
               "        \"mov %esi,%edi\\n call *%rax\\n pop %rbp\\n ret\\n\"\n"
               "        \".size without,.-without\\n\");\n"
               "int main(int count, char **given) {\n"
               "  for (int k = 0; k < 6; ++k) {\n"
               "    void *h = dlopen(given[1 + k / 2 % 2], RTLD_NOW);\n"
               "    int (*f)(int (*)(int), int) = dlsym(h, \"through\");\n"
               "    f(leaf, k);\n    dlclose(h);\n  }\n"
               "  static char other[65536];\n"
               "  stack_t at = {.ss_sp = other, .ss_size = sizeof other};\n"
               "  struct sigaction how = {.sa_handler = handler, .sa_flags = SA_ONSTACK};\n"
               "  sigaltstack(&at, 0);\n  sigaction(SIGUSR1, &how, 0);\n  raise(SIGUSR1);\n"
               "  return without(leaf, 20) - 20;\n}\n",
               "c", 64, flags) ||
        !build(folder / "first.so", library, "c", 64, flags + "-shared -fPIC -DROOM=100") ||
        !build(folder / "second.so", library, "c", 64, flags + "-shared -fPIC -DROOM=900"))
        return;
    for (const std::string from : {"kernel", "ptrace"}) {
        const ended made =
            run(folder, TRACE_CLAUSES " --source " + from +
                            " -e '@@uft:*:stacks:leaf:entry { capture(x, ustack(3)); "
                            "}' -- " +
                            program + " " + (folder / "first.so") + " " + (folder / "second.so"));
        if (made.status != 0) {
            trace_ring_test::cannot_run(made.err);
            continue;
        }
        BOOST_TEST_CONTEXT(from << made.out << made.err) {
            std::istringstream lines(made.out);
            std::size_t whole = 0;
            for (std::string line; std::getline(lines, line);) {
                const std::size_t at = line.find(" <through+0x");
                // main's caller has a name if libc has its debug information.
                const std::size_t caller = line.find(" <main+0x", std::min(at, line.size()));
                const bool goes_on =
                    caller != std::string::npos && line.find(" 0x", caller) != std::string::npos;
                whole += goes_on ? 1 : 0;
                // What comes behind code without rules is not known.
                if (line.find(" x=20 ") != std::string::npos)
                    BOOST_TEST(line.ends_with(" <without+0xb>]"), line);
            }
            BOOST_TEST(whole == 6U);
            BOOST_TEST(made.err.find("1 stack is cut") != std::string::npos);
            BOOST_TEST(made.err.find("1 stack ends at code whose") != std::string::npos);
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()
