// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Exit points, where a wrong one destroys the program's data: in programs with parts of functions,
// code without debug and unwind information, functions that return twice, and several stacks. The
// reference is what each program prints, and its exit status, alone.

#include <boost/test/unit_test.hpp>

#include <sys/wait.h>

#include <cstdlib>
#include <string>
#include <vector>

#include <examples/trace_clauses/clause_programs.hpp>
#include <recorder/scratch.hpp>

BOOST_AUTO_TEST_SUITE(clause_exits)

namespace {

using namespace clause_programs;

/// Parts of functions that are jumped to, of which the word on top of the stack is a register's.
constexpr const char* with_parts = R"(
#include <cstdio>
__attribute__((noinline, cold)) void complain(long n) { std::fprintf(stderr, "odd %ld\n", n); }
__attribute__((noinline)) long read_one(long n) { static volatile long last; last = n; return last; }
__attribute__((noinline)) long parse(long n) {
    const long got = read_one(14) + n;
    if (__builtin_expect(got == 27, 0)) { complain(got); return n * 2; }
    return got;
}
__attribute__((noinline)) long all(long from, long to) {
    long sum = 0;
    for (long i = from; i < to; ++i) sum += parse(i);
    return sum;
}
int main(int argc, char **) {
    const long sum = all(8, 17);
    std::printf("argc=%d sum=%ld\n", argc, sum);
    return argc == 1 && sum == 233 ? 0 : 1;
})";
/// Code without information on how it is entered: `inside` is jumped to with a word of data on top.
constexpr const char* without_information = R"(
.text
.globl outside
.type outside, @function
outside: push $77
    jmp inside
.size outside, .-outside
.type inside, @function
inside: pop %rax
    ret
.size inside, .-inside
.globl main
.type main, @function
main: .cfi_startproc
    sub $8, %rsp
    .cfi_def_cfa_offset 16
    call outside
    add $8, %rsp
    .cfi_def_cfa_offset 8
    ret
    .cfi_endproc
.size main, .-main
.section .note.GNU-stack,"",@progbits
)";
constexpr const char* returning_twice = R"(
#include <setjmp.h>
#include <stdio.h>
static jmp_buf place;
__attribute__((noinline)) void deep(int n) {
    if (n != 0) deep(n - 1); else longjmp(place, 3);
    __asm__ volatile("" ::: "memory");
}
int main() {
    for (volatile int i = 0; i < 3; ++i) {
        const int got = setjmp(place);
        if (got == 0) deep(5 + i); else printf("%d\n", got);
    }
    return 4;
})";
constexpr const char* with_contexts = R"(
#include <stdio.h>
#include <ucontext.h>
static ucontext_t outer, inner;
static char stack[65536];
__attribute__((noinline)) int change(int n) { swapcontext(&inner, &outer); return n + 1; }
static void run() { printf("%d\n", change(1)); }
__attribute__((noinline)) int enter(int n) { swapcontext(&outer, &inner); return n * 2; }
int main() {
    getcontext(&inner);
    inner.uc_stack.ss_sp = stack;
    inner.uc_stack.ss_size = sizeof stack;
    inner.uc_link = &outer;
    makecontext(&inner, run, 0);
    printf("%d\n", enter(1));
    printf("%d\n", enter(2));
    return 6;
})";
/// The stack for signals is above the thread's.
constexpr const char* with_signal_stack = R"(
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
static char *stack;
__attribute__((noinline)) int inner(int n) { __asm__ volatile("" ::: "memory"); return n + 1; }
static void handle(int signal) { inner(signal); }
__attribute__((noinline)) int outer(int n) { raise(SIGUSR1); return n + 2; }
static void *run(void *) {
    stack_t is = {};
    is.ss_sp = stack;
    is.ss_size = 65536;
    sigaltstack(&is, nullptr);
    for (int i = 0; i < 3; ++i) printf("%d\n", outer(i));
    return nullptr;
}
int main() {
    stack = (char *)mmap(nullptr, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct sigaction with = {};
    with.sa_handler = handle;
    with.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &with, nullptr);
    pthread_t thread;
    pthread_create(&thread, nullptr, run, nullptr);
    pthread_join(thread, nullptr);
    return 5;
})";

struct program {
    std::string name;
    const char* text;
    std::string language;
    std::string flags;
    std::string said;                 ///< of the omitted points
    std::vector<std::string> counts;  ///< "CLAUSE = LINE" of single functions
    std::string points = "{program,libc.so.6}";
};
const std::vector<program>& programs() {
    static const std::vector<program> all{
        {"parts",
         with_parts,
         "c++",
         "-O2",
         "it is a part of another function",
         {"parse*exit = 9", "all*exit = 1", "complain*exit = 1"}},
        {"no_information", without_information, "assembler", "", "neither unwind information", {}},
        {"returns_twice", returning_twice, "c++", "-O1", "may return more than once", {}},
        {"contexts",
         with_contexts,
         "c++",
         "-O1",
         "",
         {"change*exit = 1", "enter*exit = 2", "[ce]*n*[er]*exit = 3"}},
        {"signal_stack",
         with_signal_stack,
         "c++",
         "-O1 -pthread",
         "",
         {"inner*exit = 3", "outer*exit = 3", "*er*exit = 6"}},
    };
    return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(exit_points_leave_each_program_as_it_is_alone) {
    const test::folder folder;
    for (const program& one : programs()) {
        const std::string path = folder / one.name;
        if (!build(path, one.text, one.language, 64, one.flags)) return;
        const ended alone = run(folder, path);
        for (const std::string source : {"--source kernel ", "--source ptrace ", ""}) {
            // Without a source it takes one of the other two.
            if (source.empty() && trace_ring_test::repeats(8) == 1) continue;
            BOOST_TEST_CONTEXT(one.name << " " << source) {
                const std::string tool = std::string(TRACE_CLAUSES) + " " + source;
                const ended traced =
                    run(folder, tool + "-e '@@uft:*:" + one.name + ":*:exit { count(); } " +
                                    "@@uft:*:libc.so.6:*:exit { count(); }' -- " + path);
                // The kernel alone may not be able to: then it says so, and runs nothing.
                const bool refused =
                    source == "--source kernel " && traced.out.empty() &&
                    traced.err.find("no exit points by the kernel") != std::string::npos;
                const bool permitted = traced.err.find("not permitted") == std::string::npos &&
                                       traced.err.find("no uprobes") == std::string::npos;
                if (refused || !permitted) {
                    BOOST_TEST(traced.status != 0);
                    BOOST_TEST((one.name != "parts" || !permitted));
                    continue;
                }
                BOOST_TEST(traced.status == alone.status, traced.err);
                // The program's own lines come as it wrote them, before or between the others.
                BOOST_TEST(traced.out.find(alone.out) != std::string::npos, traced.out);
                BOOST_TEST(traced.err.find(one.said) != std::string::npos, traced.err);
                BOOST_TEST(traced.err.find(" 0 lost") != std::string::npos, traced.err);
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(each_exit_of_such_programs_is_counted) {
    const test::folder folder;
    for (const program& one : programs()) {
        const std::string path = folder / one.name;
        if (!build(path, one.text, one.language, 64, one.flags)) return;
        for (const std::string& each : one.counts) {
            const std::string function = each.substr(0, each.rfind('*'));
            const std::string count = each.substr(each.rfind(' ') + 1);
            const ended traced = run(folder, std::string(TRACE_CLAUSES) +
                                                 " --source ptrace -e '@@uft:*:" + one.name + ":" +
                                                 function + ":exit { count(); }' -- " + path);
            BOOST_TEST_CONTEXT(one.name << " " << each << traced.err) {
                BOOST_TEST(traced.out.find("count()\n  " + count + "\n") != std::string::npos,
                           traced.out);
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(exceptions_and_ends_of_threads_go_through_functions_with_exit_points) {
    const test::folder folder;
    const std::string program = folder / "throws";
    if (!build(program,
               "#include <cstdio>\n#include <pthread.h>\n#include <execinfo.h>\n"
               "struct told { const char *n; ~told() { printf(\"~%s\\n\", n); } };\n"
               "extern \"C\" __attribute__((noinline)) int thrower(int n) {\n"
               "  if (n == 0) throw 5;\n"
               "  int r = thrower(n - 1); asm volatile(\"\"); return r + 1; }\n"
               "extern \"C\" __attribute__((noinline)) void ends(int n) {\n"
               "  if (n) pthread_exit((void *)7); }\n"
               "extern \"C\" __attribute__((noinline)) int shows(int n) {\n"
               "  void *all[50]; return n + backtrace(all, 50); }\n"
               "void *thread(void *) { told one{\"thread\"}; ends(1); return 0; }\n"
               "int main() {\n"
               "  try { thrower(2); } catch (int e) { printf(\"caught %d\\n\", e); }\n"
               "  pthread_t t; void *r = 0;\n"
               "  pthread_create(&t, 0, thread, 0); pthread_join(t, &r);\n"
               "  printf(\"%ld %d\\n\", (long)r, shows(1)); return 3; }\n",
               "c++", 64, "-O1 -g -pthread"))
        return;
    const ended alone = run(folder, program);
    BOOST_TEST(alone.out.find("caught 5\n~thread\n7 ") == 0U, alone.out);
    const std::string clause =
        " -e '@@uft:*:throws:thrower:exit, @@uft:*:throws:ends:exit, "
        "@@uft:*:throws:shows:exit { count(func); }'";
    for (const char* from : {"", " --source kernel", " --source ptrace", " --children"}) {
        const ended traced = run(folder, TRACE_CLAUSES + clause + from + " -- " + program);
        if (!permits(traced)) continue;
        BOOST_TEST_CONTEXT(from << ": " << traced.err) {
            BOOST_TEST(traced.out.find(alone.out) != std::string::npos, traced.out);
            BOOST_TEST(traced.status == alone.status);
            // thrower and ends are left, and not by a return.
            BOOST_TEST(traced.out.find("  \"shows\": 1\n") != std::string::npos, traced.out);
            BOOST_TEST(traced.out.find("\"thrower\": ") == std::string::npos, traced.out);
            BOOST_TEST(traced.err.find(" 1 ran, ") != std::string::npos);
            BOOST_TEST(traced.err.find("ptrace") == std::string::npos);
        }
    }
    // All processes together, while the program runs.
    write(folder / "script", TRACE_CLAUSES " --all -e '@@uft:*:" + program +
                                 ":shows:exit { count(func); }' &\nsleep 2\n" + program +
                                 "\nkill -INT $!\nwait $!\n");
    const ended of_all = run(folder, "sh " + (folder / "script"));
    if (permits(of_all))
        BOOST_TEST(of_all.out.find("  \"shows\": 1\n") != std::string::npos, of_all.err);
}

BOOST_AUTO_TEST_CASE(tail_calls_in_programs_that_unwind_are_no_place_for_return_probes) {
    const test::folder folder;
    const std::string program = folder / "tails";
    if (!build(program,
               "#include <cstdio>\n"
               "extern \"C\" __attribute__((noinline)) int inner(int n) {\n"
               "  if (n == 3) throw n; asm volatile(\"\"); return n * 2; }\n"
               "extern \"C\" __attribute__((noinline)) int hands_on(int n) {\n"
               "  if (n == 1) return 7; return inner(n + 1); }\n"
               "int main() { int sum = 0;\n"
               "  for (int i = 0; i < 5; ++i) {\n"
               "    try { sum += hands_on(i); } catch (int n) { sum += 1000; } }\n"
               "  printf(\"%d\\n\", sum); return 5; }\n",
               "c++", 64, "-O2 -g -foptimize-sibling-calls"))
        return;
    const ended alone = run(folder, program);
    BOOST_TEST(alone.out == "1027\n");
    const std::string both =
        " -e '@@uft:*:tails:hands_on:exit, @@uft:*:tails:inner:exit { count(func, retval); }' -- " +
        program;
    const ended by_ptrace = run(folder, TRACE_CLAUSES + both);
    BOOST_TEST(by_ptrace.out.find(alone.out) != std::string::npos, by_ptrace.out);
    BOOST_TEST(by_ptrace.status == alone.status);
    for (const char* const line :
         {"  \"hands_on\", 7: 1\n", "  \"hands_on\", 2: 1\n", "  \"hands_on\", 8: 1\n",
          "  \"hands_on\", 10: 1\n", "  \"inner\", 2: 1\n", "  \"inner\", 8: 1\n",
          "  \"inner\", 10: 1\n"})
        BOOST_TEST(by_ptrace.out.find(line) != std::string::npos, line << by_ptrace.out);
    BOOST_TEST(by_ptrace.err.find(" 7 ran") != std::string::npos, by_ptrace.err);
    BOOST_TEST(by_ptrace.err.find("a tail call") != std::string::npos, by_ptrace.err);
    // The kernel leaves out what it cannot do without harm, and says so.
    const ended by_kernel = run(folder, TRACE_CLAUSES " --source kernel" + both);
    if (!permits(by_kernel)) return;
    BOOST_TEST(by_kernel.out.find(alone.out) != std::string::npos, by_kernel.err);
    BOOST_TEST(by_kernel.status == alone.status);
    BOOST_TEST(by_kernel.out.find("\"hands_on\", ") == std::string::npos, by_kernel.out);
    BOOST_TEST(by_kernel.err.find("no exit points by the kernel at 'hands_on.exit': ") !=
                   std::string::npos,
               by_kernel.err);
    BOOST_TEST(by_kernel.err.find(" 3 ran") != std::string::npos, by_kernel.err);
}

BOOST_AUTO_TEST_CASE(code_that_optimizers_have_changed_is_counted_as_it_runs_or_reported) {
    struct sample {
        std::string name;
        std::string text;
        std::string flags;
        std::string clauses;
        std::vector<std::string> shown;
        std::string note;
    };
    const std::string head =
        "#include <setjmp.h>\n#include <stdio.h>\n#include <time.h>\n"
        "#define N extern \"C\" __attribute__((noipa))\n";
    const std::vector<sample> all{
        // Each tail call is a call, and all return together.
        {"recursion",
         head + "N int even(int);\n"
                "N int odd(int n) { return n == 0 ? 0 : even(n - 1); }\n"
                "N int even(int n) { return n == 0 ? 1 : odd(n - 1); }\n"
                "int main() { printf(\"%d\\n\", even(10)); return 2; }\n",
         "-O2",
         "@@uft:*:recursion:even:exit, @@uft:*:recursion:odd:exit { count(func, (int)retval); }",
         {"  \"even\", 1: 6\n", "  \"odd\", 1: 5\n"},
         ""},
        // Two clauses at one exit, each with what it keeps of the entry.
        {"keeps",
         head + "N int leaf(int n) { return n + 1; }\n"
                "N int ends(int n, int m) { if (n == 2) return 77; return leaf(n * m); }\n"
                "int main() { for (int i = 0; i < 4; ++i) printf(\"%d\\n\", ends(i, 10));\n"
                "  return 7; }\n",
         "-O2",
         "@@uft:*:keeps:ends:exit { count(n, m, retval); } "
         "@@uft:*:keeps:ends:exit when n > 1 { count(m, n); }",
         {"  0, 10, 1: 1\n", "  1, 10, 11: 1\n", "  2, 10, 77: 1\n", "  3, 10, 31: 1\n",
          "  10, 2: 1\n", "  10, 3: 1\n", "6 ran, 2 not wanted"},
         ""},
        // What a longjmp leaves does not exit, although its caller returns to the same place later.
        {"leaves",
         head + "jmp_buf back;\n"
                "N int jumper(int x) { if (x & 1) longjmp(back, 1); return x; }\n"
                "N int tail(int x) { return jumper(x); }\n"
                "N int caller(int x) { if (x < 10) return tail(x); return x * 100; }\n"
                "N int go(int x) { if (setjmp(back)) return -1; return caller(x) + 1; }\n"
                "int main() { int a = go(3), b = go(20); printf(\"%d %d\\n\", a, b); return 3; }\n",
         "-O2",
         "@@uft:*:leaves:tail:exit, @@uft:*:leaves:caller:exit, @@uft:*:leaves:go:exit { "
         "count(func, (int)retval); }",
         {"  \"caller\", 2000: 1\n", "  \"go\", -1: 1\n", "  \"go\", 2001: 1\n", "3 ran"},
         ""},
        // The first instruction is the one that returns.
        {"empty",
         head + "N void nothing(int) {}\n"
                "int main() { for (int i = 0; i < 4; ++i) { nothing(i);\n"
                "  timespec t{0, 20000000}; nanosleep(&t, 0); } return 4; }\n",
         "-O2 -fcf-protection=none",
         "@@uft:*:empty:nothing:exit when elapsed < 15ms { count((int)arg0); }",
         {"  0: 1\n", "  1: 1\n", "  2: 1\n", "  3: 1\n", "4 ran, 0 not wanted, 0 unreadable"},
         ""},
        // Its first instruction is where its loop begins.
        {"loops",
         head + "N int fill(char *p, int n) { do { *p++ = n; } while (--n); return n; }\n"
                "int main() { char b[16]; fill(b, 10); fill(b, 3); return b[0]; }\n",
         "-O1 -fcf-protection=none",
         "@@uft:*:loops:fill:entry { count(func); } @@uft:*:loops:fill:exit { count(func); }",
         {"fill.exit count(func)\n  \"fill\": 2\n"},
         "'fill' begins with a loop, or with what a call of itself has become"},
        {"grows",
         head + "N int big(int n) { volatile char b[20000]; b[n] = n; return b[n]; }\n"
                "int main() { printf(\"%d\\n\", big(7)); return 6; }\n",
         "-O2 -fsplit-stack",
         "@@uft:*:grows:big:exit { count((int)retval); } @@begin { count(); }",
         {},
         ""}};
    const test::folder folder;
    for (const sample& one : all) {
        const std::string program = folder / one.name;
        if (!build(program, one.text, "c++", 64, "-g " + one.flags)) return;
        const ended alone = run(folder, program);
        for (const char* from : {"", "--source kernel ", "--source ptrace "}) {
            const ended traced = run(folder, std::string(TRACE_CLAUSES) + " " + from + "-e '" +
                                                 one.clauses + "' -- " + program);
            if (!permits(traced)) continue;
            BOOST_TEST_CONTEXT(one.name << " " << from << traced.out << traced.err) {
                BOOST_TEST(traced.status == alone.status);
                BOOST_TEST(traced.out.find(alone.out) != std::string::npos);
                for (const std::string& each : one.shown)
                    BOOST_TEST((traced.out + traced.err).find(each) != std::string::npos, each);
                BOOST_TEST(traced.err.find(one.note) != std::string::npos);
                // The kernel cannot trace its exit without harm, and a second exit is never
                // reported.
                if (one.name == "grows")
                    BOOST_TEST((traced.out.find("  7: 1\n") != std::string::npos ||
                                traced.err.find("could end the program") != std::string::npos));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_program_that_checks_for_leaks_is_not_traced_by_ptrace) {
    const test::folder folder;
    const std::string program = folder / "checked";
    write(
        program + ".cpp",
        "#include <cstdio>\nextern \"C\" __attribute__((noipa)) int leaf(int n) { return n + 1; }\n"
        "extern \"C\" __attribute__((noipa)) int tail(int n) { return leaf(n * 2); }\n"
        "int main() { std::printf(\"%d\\n\", tail(3)); return 5; }\n");
    if (std::system((CXX_COMPILER " -O2 -g -fsanitize=address " + program + ".cpp -o " + program +
                     " 2> /dev/null")
                        .c_str()) != 0) {
        trace_ring_test::cannot_run("this compiler has no address sanitizer");
        return;
    }
    const ended alone = run(folder, program);
    const std::string leaf = " -e '@@uft:*:checked:leaf:exit { count(retval); }' -- " + program;
    const std::string tail = " -e '@@uft:*:checked:tail:exit { count(retval); }' -- " + program;
    const ended by_kernel = run(folder, TRACE_CLAUSES + leaf);
    if (permits(by_kernel)) {
        BOOST_TEST(by_kernel.status == alone.status, by_kernel.err);
        BOOST_TEST(by_kernel.out.find(alone.out) != std::string::npos);
        BOOST_TEST(by_kernel.out.find("  7: 1\n") != std::string::npos, by_kernel.out);
    }
    for (const std::string& command :
         {TRACE_CLAUSES + tail, TRACE_CLAUSES " --source ptrace" + leaf}) {
        const ended refused = run(folder, command);
        BOOST_TEST(WEXITSTATUS(refused.status) == 125);
        BOOST_TEST(refused.err.find("checks for leaks") != std::string::npos, refused.err);
    }
    const ended without =
        run(folder, "env ASAN_OPTIONS=detect_leaks=0 " TRACE_CLAUSES " --source ptrace" + tail);
    BOOST_TEST(without.status == alone.status, without.err);
    BOOST_TEST(without.out.find("  7: 1\n") != std::string::npos, without.out);
}

BOOST_AUTO_TEST_SUITE_END()
