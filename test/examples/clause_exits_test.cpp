// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Exit points, where a wrong one destroys the program's data: in programs with parts of functions,
// code without debug and unwind information, functions that return twice, and several stacks. The
// reference is what each program prints, and its exit status, alone.

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <string>
#include <vector>

#include <examples/clause_programs.hpp>
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
/// Code of which nothing tells how it is entered: `inside` is jumped to with a word of data on top.
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
    std::string said;                 ///< of what is left out
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
        for (const std::string source : {"", "--source kernel ", "--source ptrace "}) {
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
        "@@uft:*:throws:shows:exit { count(1); }'";
    for (const char* from : {"", " --source ptrace"}) {
        const ended traced = run(folder, TRACE_CLAUSES + clause + from + " -- " + program);
        BOOST_TEST(traced.out.find(alone.out) != std::string::npos, traced.out << traced.err);
        BOOST_TEST(traced.status == alone.status, traced.err);
    }
    // Where nothing else is possible, it is refused; and who asks for it by name is told.
    const ended of_all =
        run(folder, "timeout -s INT 2 " TRACE_CLAUSES " --all -e '@@uft:*:" + program +
                        ":thrower:exit { count(1); }'");
    BOOST_TEST(of_all.status != 0);
    BOOST_TEST(of_all.err.find("no exit points by the kernel: ") != std::string::npos, of_all.err);
    const ended risked = run(folder, TRACE_CLAUSES + clause + " --source kernel -- " + program);
    BOOST_TEST(risked.err.find("an exception ends the program") != std::string::npos, risked.err);
}

BOOST_AUTO_TEST_SUITE_END()
