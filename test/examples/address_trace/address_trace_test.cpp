// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// address-trace: programs are compiled by it as by any compiler, run as they would without it, and
// its references are those that another count of the same calls has.

#include <boost/test/unit_test.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include <examples/trace_clauses/clause_programs.hpp>
#include "address_program.hpp"

BOOST_AUTO_TEST_SUITE(address_trace_program)

namespace {

using address_program::fixture;
using address_program::outcome;
using clause_programs::text_of;
using clause_programs::write;

/// Counts what the compiler calls, and prints it at the end: an account of the same hooks.
constexpr const char* counting = R"(
#include <stdio.h>
typedef unsigned long word;
static word loads, stores, updates, failed, blocks, loaded, stored;
#define ADD(to, n) __sync_fetch_and_add(&to, n)
#define HOOKS(n) \
    void __trace_ring_load##n(void *at) { (void)at; ADD(loads, 1); ADD(loaded, n); } \
    void __trace_ring_store##n(void *at) { (void)at; ADD(stores, 1); ADD(stored, n); }
HOOKS(1) HOOKS(2) HOOKS(4) HOOKS(8) HOOKS(16) HOOKS(32) HOOKS(64)
#define ATOMICS(n) \
    void __trace_ring_update##n(void *at) { (void)at; ADD(updates, 1); } \
    void __trace_ring_compare##n(void *at, word is) { (void)at; is ? ADD(updates, 1) : ADD(failed, 1); }
ATOMICS(1) ATOMICS(2) ATOMICS(4) ATOMICS(8) ATOMICS(16)
void __trace_ring_load_range(void *at, word n) { (void)at; ADD(loads, n != 0); ADD(loaded, n); }
void __trace_ring_store_range(void *at, word n) { (void)at; ADD(stores, n != 0); ADD(stored, n); }
void __trace_ring_load_lanes(void *at, word active, word n) {
    (void)at, ADD(loads, __builtin_popcountl(active)), ADD(loaded, n * __builtin_popcountl(active));
}
void __trace_ring_store_lanes(void *at, word active, word n) {
    (void)at, ADD(stores, __builtin_popcountl(active)), ADD(stored, n * __builtin_popcountl(active));
}
void __trace_ring_gather(void **at, word active, word n) { __trace_ring_load_lanes(at, active, n); }
void __trace_ring_block(void) { ADD(blocks, 1); }
void __trace_ring_allocated(void *at, word n) { (void)at, (void)n; }
void __trace_ring_loaded(void) {}
__attribute__((destructor)) static void tell(void) {
    fprintf(stderr, "%lu %lu %lu %lu %lu %lu %lu\n", loads, stores, updates, failed, blocks, loaded,
            stored);
}
)";

/// A thousand loads of 8 bytes and stores of 4, and no others of these sizes.
constexpr const char* known = R"(
volatile long row[1000];
volatile int cell;
int main(void) {
    for (int i = 0; i < 1000; ++i) cell = (int)row[i];
    return 7;
}
)";

/// Something of everything: calls, memory on the heap, texts, threads, a signal handler.
constexpr const char* mixed = R"(
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct node { struct node *next; int key; char name[12]; };
static volatile int handled;
static struct { long of[5]; } copies[10];
static _Atomic long noted;
static void note(long of) {
    long never = -1;
    atomic_fetch_add(&noted, of);
    atomic_compare_exchange_strong(&noted, &never, 0);
}
static void handle(int signal) { handled += signal; }
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static void *work(void *of) {
    int n = *(int *)of;
    int *all = malloc(n * sizeof *all);
    for (int i = 0; i < n; ++i) all[i] = (i * 7919) % n;
    qsort(all, n, sizeof *all, compare);
    long sum = 0;
    for (int i = 0; i < n; ++i) sum += all[i] * (long)i;
    for (int i = 0; i < n; ++i) note(all[i]);
    free(all);
    return (void *)sum;
}
int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 1000;
    memset(copies, n, sizeof copies);
    for (int i = 1; i < 10; ++i) copies[i] = copies[i - 1];
    signal(SIGUSR1, handle);
    struct node *first = 0;
    for (int i = 0; i < n; ++i) {
        struct node *one = malloc(sizeof *one);
        one->next = first;
        one->key = i;
        snprintf(one->name, sizeof one->name, "%d", i);
        first = one;
        if (i % 100 == 0) raise(SIGUSR1);
    }
    pthread_t threads[3];
    for (int i = 0; i < 3; ++i) pthread_create(&threads[i], 0, work, &n);
    long sum = 0;
    for (int i = 0; i < 3; ++i) {
        void *got;
        pthread_join(threads[i], &got);
        sum += (long)got;
    }
    for (struct node *at = first; at; at = at->next) sum += at->key + strlen(at->name);
    printf("%ld %d\n", sum, handled);
    return 0;
}
)";

BOOST_FIXTURE_TEST_CASE(a_program_of_known_references_is_exact, fixture) {
    if (!is_here()) return;
    write(in / "known.c", known);
    compile("-O1 known.c -o known");
    const outcome traced = trace("-- ./known");
    BOOST_TEST(traced.status == 7);
    BOOST_TEST(traced.out.empty());
    BOOST_TEST(traced.of("loads") == 1000);
    BOOST_TEST(traced.of("stores") == 1000);
    BOOST_TEST(traced.err.find("1000 of 8000 bytes") != std::string::npos);
    BOOST_TEST(traced.err.find("1000 of 4000 bytes") != std::string::npos);
    // 8,000 bytes in a row are 125 lines or, where they begin inside one, 126; and `cell`.
    const outcome cached = trace("--cache D1=32K,64,8 --cache D2=128,64,2 -- ./known");
    BOOST_TEST(cached.of("D1") >= 125);
    BOOST_TEST(cached.of("D1") <= 127);
    // `cell` is dirty at the end, and prefetchers bring every other line of the row.
    const auto words = trace("--cache D1=32K,64,8,next,write-back -- ./known").err;
    BOOST_TEST(words.find("; 0 bytes written back, 64 still dirty; 6") != std::string::npos, words);
    BOOST_TEST(words.find(": 32 KiB, 64-byte lines, 8 ways, write-back, next") !=
               std::string::npos);
    // One of two lines continues along the row, but is used less lately than `cell` now and then.
    BOOST_TEST(cached.of("D2") >= cached.of("D1"));
    BOOST_TEST(cached.of("D2") <= cached.of("D1") + 130);
}

BOOST_FIXTURE_TEST_CASE(all_references_are_those_of_an_independent_count, fixture) {
    if (!is_here()) return;
    write(in / "mixed.c", mixed);
    write(in / "counting.c", counting);
    for (const char* const level : {"-O0", "-O2"}) {
        compile(std::string(level) + " -c mixed.c -o mixed.o");
        compile("mixed.o -o traced -pthread");
        compile("mixed.o counting.c -o mixed -pthread", "clang-14 -w -O1");
        const outcome counted = run("./mixed 3000");
        std::uint64_t loads = 0, stores = 0, updates = 0, failed = 0, blocks = 0;
        std::uint64_t loaded = 0, stored = 0;
        std::istringstream(counted.err) >> loads >> stores >> updates >> failed >> blocks >>
            loaded >> stored;
        BOOST_TEST(loads > 10'000);
        BOOST_TEST(updates > 0);
        const outcome traced = trace("-- ./traced 3000");
        BOOST_TEST(traced.status == 0);
        BOOST_TEST(traced.out == counted.out);
        BOOST_TEST(traced.of("updates") == updates);
        BOOST_TEST(failed == 9000);
        BOOST_TEST(traced.err.find("; 9000 compares failed") != std::string::npos);
        BOOST_TEST(traced.of("loads") == loads);
        BOOST_TEST(traced.of("stores") == stores);
        BOOST_TEST(traced.of("blocks") == blocks);
        BOOST_TEST(traced.err.find("of " + std::to_string(loaded) + " bytes") != std::string::npos);
        BOOST_TEST(traced.err.find("of " + std::to_string(stored) + " bytes") != std::string::npos);
        BOOST_TEST(traced.err.find("gaps        none") != std::string::npos);
        // Into a file, and with a buffer that is full all the time.
        const outcome kept = trace("-o mixed.trace -- ./traced 3000");
        BOOST_TEST(kept.of("loads") == loads);
        BOOST_TEST(kept.of("stores") == stores);
        const outcome small = trace("--buffer 256K -- ./traced 3000");
        BOOST_TEST(small.of("loads") == loads);
        BOOST_TEST(small.of("blocks") == blocks);
    }
}

// Two of four threads write neighbours in one line; the others have a line each.
BOOST_FIXTURE_TEST_CASE(lines_that_threads_share_falsely_are_found, fixture) {
    if (!is_here()) return;
    write(in / "shared.c", R"(
        #include <pthread.h>
        #include <stdio.h>
        struct line { _Alignas(64) volatile long of[8]; };
        struct line beside, apart[2], read_only;
        static void *work(void *number) {
            long n = (long)number;
            volatile long *mine = n < 2 ? &beside.of[n] : &apart[n - 2].of[0];
            long sum = 0;
            for (int i = 0; i < 50000; ++i) { *mine = i; sum += read_only.of[n]; }
            return (void *)sum;
        }
        int main(void) {
            pthread_t all[4];
            for (long i = 0; i < 4; ++i) pthread_create(&all[i], 0, work, (void *)i);
            for (int i = 0; i < 4; ++i) pthread_join(all[i], 0);
            printf("%p\n", (void *)&beside);
        })");
    compile("-O1 shared.c -o shared -pthread");
    const outcome traced = trace("--lines --format csv --report shared.csv -- ./shared");
    BOOST_TEST(traced.status == 0);
    BOOST_TEST(traced.of("stores") >= 200'000);
    BOOST_TEST(traced.of("loads") >= 200'000);
    BOOST_TEST(traced.of("loads") < 200'100);
    const std::string report = text_of(in / "shared.csv");
    const std::size_t begin = report.find("# false");
    BOOST_REQUIRE_MESSAGE(begin != std::string::npos, report);
    std::istringstream rows(report.substr(begin, report.find("\n\n", begin) - begin));
    std::string row;
    std::getline(rows, row);
    std::getline(rows, row);  // the names of the columns
    std::size_t found = 0;
    const std::string line = traced.out.substr(0, traced.out.find('\n'));
    while (std::getline(rows, row)) {
        BOOST_TEST(row.find(line) != std::string::npos, row);
        ++found;
    }
    BOOST_TEST(found == 2);  // a row for each thread
}

// The textbook case: who made the line busy is named by variable and by line of the source.
BOOST_FIXTURE_TEST_CASE(false_sharing_of_atomics_is_named, fixture) {
    if (!is_here()) return;
    write(in / "atomics.c", R"(
        #include <pthread.h>
        #include <stdatomic.h>
        struct { _Alignas(64) _Atomic long a; _Atomic long b; } beside;
        static void *work(void *of) {
            for (int i = 0; i < 100000; ++i)
                atomic_fetch_add((_Atomic long *)of, 1);
            return 0;
        }
        int main(void) {
            pthread_t one, other;
            pthread_create(&one, 0, work, &beside.a);
            pthread_create(&other, 0, work, &beside.b);
            pthread_join(one, 0);
            pthread_join(other, 0);
            return beside.a + beside.b == 200000 ? 0 : 1;
        })");
    compile("-O2 -g atomics.c -o atomics -pthread");
    const outcome traced =
        trace("--lines --coherent D1=32K,64,8 --format json --report found.json -- ./atomics");
    BOOST_TEST(traced.status == 0);
    BOOST_TEST(traced.of("updates") == 200'000);
    const auto found = nlohmann::json::parse(text_of(in / "found.json"));
    const auto rows_of = [&](const std::string& name) {
        for (const auto& each : found["tables"]) {
            if (each["name"] == name) return each["rows"];
        }
        return nlohmann::json();
    };
    const auto shared = rows_of("false_sharing");
    BOOST_REQUIRE(shared.size() >= 2U);
    std::uint64_t named = 0;
    for (const auto& row : shared) {
        BOOST_TEST(row.back() == "beside");
        const auto& site = row[row.size() - 2];
        named +=
            site.is_string() && site.get<std::string>().find("atomics.c:7") != std::string::npos;
    }
    // A thread that was done before the other one began has taken the line from nobody.
    BOOST_TEST(named >= 1U);
    const auto contended = rows_of("contended");
    BOOST_REQUIRE(contended.size() >= 1U);
    BOOST_TEST(contended[0].back() == "beside");
    BOOST_TEST(contended[0][1].get<std::uint64_t>() > 0U);
}

BOOST_FIXTURE_TEST_CASE(it_is_a_compiler_like_any_other, fixture) {
    if (!is_here()) return;
    write(in / "a.cpp",
          "#include <vector>\n#include <string>\n"
          "std::string b(int); int main() { std::vector<int> v(100);\n"
          "for (auto& each : v) each = 3; return b(v[5]) == \"3\" ? 0 : 1; }");
    write(in / "b.cpp", "#include <string>\nstd::string b(int n) { return std::to_string(n); }");
    const std::string cxx = ADDRESS_TRACE " c++";
    compile("-O2 -fPIC -shared b.cpp -o libb.so", cxx);
    compile("-O2 a.cpp -L. -lb -Wl,-rpath,. -o program", cxx);
    BOOST_TEST(run("./program").status == 0);  // it runs untraced, too
    const outcome traced = trace("-- ./program");
    BOOST_TEST(traced.status == 0);
    BOOST_TEST(traced.of("stores") >= 1);
    // Preprocessed, to standard output; and what cannot be compiled.
    BOOST_TEST(run(cxx + " -E b.cpp").out.find("to_string(n)") != std::string::npos);
    BOOST_TEST(run(cxx + " nothing.cpp").status != 0);
    const outcome other = run("ADDRESS_TRACE_CC=gcc " ADDRESS_TRACE " cc b.c");
    BOOST_TEST(other.status == 125);
    BOOST_TEST(other.err.find("gcc is not clang") != std::string::npos);
    const outcome none = run("PATH=/nowhere " ADDRESS_TRACE " cc b.c");
    BOOST_TEST(none.status == 125);
    BOOST_TEST(none.err.find("there is no clang-") != std::string::npos);
    const outcome narrow = run(ADDRESS_TRACE " cc -m32 b.c");
    BOOST_TEST(narrow.status == 125);
    BOOST_TEST(narrow.err.find("32 bits") != std::string::npos);
}

// The object with the hooks is linked with programs, and with nothing else.
BOOST_FIXTURE_TEST_CASE(what_is_no_program_has_no_hooks_of_its_own, fixture) {
    if (!is_here()) return;
    write(in / "known.c", known);
    write(in / "known.h", "#pragma once\nint known(void);\n");
    write(in / "to_library", "-fPIC -shared \"known.c\"\n  -o libknown.so");
    write(in / "to_object", "-c known.c -o 'known of file.o'");
    compile("@to_library");
    compile("-fPIC --shared known.c -o libother.so");
    compile("-r known.c -o joined.o");
    for (const char* const each : {"libknown.so", "libother.so", "joined.o"})
        BOOST_TEST(run(std::string("nm --defined-only ") + each).out.find("__trace_ring") ==
                       std::string::npos,
                   each);
    compile("@to_object");
    compile("'known of file.o' -o program");
    BOOST_TEST(trace("-- ./program").of("loads") >= 1000);
    // Headers are compiled, not linked, also without -c.
    compile("known.h -o known.h.gch");
    compile("-x c-header known.h -o known.pch");
    compile("-include-pch known.pch known.c -o program");
    // A library must not be asked where its hooks are, even if it must define everything else.
    for (const char* const defs : {"-Wl,-z,defs", "-Wl,-z -Wl,defs", "-Xlinker --no-undefined"})
        compile(std::string("-fPIC -shared known.c -o libdefs.so ") + defs);
}

BOOST_FIXTURE_TEST_CASE(each_reference_has_one_hook_however_a_program_is_compiled, fixture) {
    if (!is_here()) return;
    write(in / "known.c", known);
    for (const char* const how :
         {"-xc known.c -o known", "-xc - -o known <known.c", "-save-temps known.c -o known",
          "-emit-llvm -c known.c -o known.bc && " ADDRESS_TRACE " cc -O1 known.bc -o known"}) {
        compile(std::string("-O1 ") + how);
        const outcome traced = trace("-- ./known");
        BOOST_TEST(traced.of("loads") == 1000, how);
        BOOST_TEST(traced.of("stores") == 1000, how);
    }
}

BOOST_FIXTURE_TEST_CASE(nothing_is_lost_of_a_program_that_is_killed, fixture) {
    if (!is_here()) return;
    write(in / "killed.c", R"(
        #include <signal.h>
        volatile long row[1000];
        volatile int cell;
        int main(void) {
            for (int i = 0; i < 100000; ++i) cell = (int)row[i % 1000];
            raise(SIGKILL);
        })");
    compile("-O1 killed.c -o killed");
    for (const char* const how : {"", "-o killed.trace "}) {
        const outcome traced = trace(how + std::string("-- ./killed"));
        BOOST_TEST(traced.status == 128 + SIGKILL);
        BOOST_TEST(traced.of("loads") == 100'000);
        BOOST_TEST(traced.of("stores") == 100'000);
    }
}

/// Loops over 20,000 stores, and after each of the rounds writes how long it took.
constexpr const char* rounds = R"(
    #include <stdio.h>
    #include <sys/wait.h>
    #include <time.h>
    #include <unistd.h>
    static volatile int cells[20000];
    static double now(void) {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
    }
    static void go_round(int count) {
        FILE *out = fopen("rounds", "w");
        for (int k = 0; k < count; ++k) {
            double before = now();
            for (int i = 0; i < 2000000; ++i) cells[i % 20000] = i;
            fprintf(out, "%f\n", now() - before);
        }
        fclose(out);
        rename("rounds", "done");
    }
)";

/// The longest round, when there is a file of them; negative: there is none.
double longest_round(const test::folder& in) {
    for (int i = 0; i < 200 && text_of(in / "done").empty(); ++i) ::usleep(100'000);
    std::istringstream all(text_of(in / "done"));
    double most = -1;
    for (double each = 0; all >> each;) most = std::max(most, each);
    return most;
}

// The tracer has its trace; surviving processes are reported, and not delayed.
BOOST_FIXTURE_TEST_CASE(a_daemon_goes_on_untraced_or_is_waited_for, fixture) {
    if (!is_here()) return;
    write(in / "daemon.c", std::string(rounds) + R"(
        int main(void) {
            if (fork()) return 0;
            setsid();
            go_round(5);
        })");
    compile("-O1 -w daemon.c -o daemon");
    const outcome left = trace("-- ./daemon");
    BOOST_TEST(left.status == 0);
    BOOST_TEST(left.of("living") == 1);
    const double longest = longest_round(in);
    BOOST_TEST(longest >= 0);
    if (test::scale == 1) BOOST_TEST(longest < 5);
    run("rm done");
    const outcome waited = trace("--wait -- ./daemon");
    BOOST_TEST(waited.status == 0);
    BOOST_TEST(!text_of(in / "done").empty());
    BOOST_TEST(waited.of("stores") >= 10'000'000);
    BOOST_TEST(waited.err.find("living") == std::string::npos);
    BOOST_TEST(waited.err.find("gaps        none") != std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(a_program_whose_tracer_is_killed_goes_on, fixture) {
    if (!is_here()) return;
    write(in / "long.c", std::string(rounds) + "int main(void) { go_round(8); }");
    compile("-O1 -w long.c -o long");
    const outcome killed =
        run(ADDRESS_TRACE " run --buffer 256K -- ./long & sleep 0.1; kill -9 $!; wait");
    const double longest = longest_round(in);
    BOOST_TEST(longest >= 0);
    if (test::scale == 1) BOOST_TEST(longest < 5);
}

// No library sees these children.
BOOST_FIXTURE_TEST_CASE(children_of_the_bare_system_call_have_their_own, fixture) {
    if (!is_here()) return;
    write(in / "clone.c", R"(
        #define _GNU_SOURCE
        #include <signal.h>
        #include <stdio.h>
        #include <sys/syscall.h>
        #include <sys/wait.h>
        #include <unistd.h>
        static volatile long cells[64];
        __attribute__((noinline)) static void loop(int n) {
            for (int i = 0; i < n; ++i) cells[i & 63] = i;
        }
        int main(int count, char **arguments) {
            for (int i = 0; i < 30; ++i) {
                loop(20);
                pid_t child = count > 1 ? _Fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
                if (child == 0) {
                    loop(3000);
                    syscall(SYS_exit_group, 0);
                }
                loop(3000);
                int status;
                waitpid(child, &status, 0);
            }
        })");
    compile("-O1 -w clone.c -o clone");
    for (const char* const how : {"-- ./clone", "-- ./clone fork"}) {
        const outcome traced = trace(how);
        BOOST_TEST(traced.status == 0);
        BOOST_TEST(traced.of("stores") == 30 * 6020);
        BOOST_TEST(traced.err.find("gaps        none") != std::string::npos, traced.err);
    }
}

// A handler that jumps away leaves the hook that it interrupted, again and again.
BOOST_FIXTURE_TEST_CASE(nothing_is_lost_by_jumps_out_of_signal_handlers, fixture) {
    if (!is_here()) return;
    write(in / "jumps.c", R"(
        #include <setjmp.h>
        #include <signal.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <sys/time.h>
        static sigjmp_buf back;
        static volatile long jumps, progress;
        static void jump(int number) { (void)number, ++jumps, siglongjmp(back, 1); }
        static char stack[1 << 16];
        int main(int count, char **arguments) {
            stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
            if (count > 1) sigaltstack(&other, 0);
            struct sigaction how = {.sa_handler = jump, .sa_flags = SA_NODEFER | SA_ONSTACK};
            sigaction(SIGALRM, &how, 0);
            const struct itimerval often = {{0, 300}, {0, 300}};
            setitimer(ITIMER_REAL, &often, 0);
            sigsetjmp(back, 1);
            while (progress < 3000000) ++progress;
            const struct itimerval never = {{0, 0}, {0, 0}};
            setitimer(ITIMER_REAL, &never, 0);
            printf("%ld\n", jumps);
        })");
    compile("-O1 -w jumps.c -o jumps");
    for (const char* const how : {"-- ./jumps", "-- ./jumps other"}) {
        const outcome traced = trace(how);
        BOOST_TEST(traced.status == 0);
        const std::uint64_t jumps = std::strtoull(traced.out.c_str(), nullptr, 10);
        BOOST_TEST(jumps > 10);
        // Of each jump: its own store, and at most one that was reported but not made.
        BOOST_TEST(traced.of("stores") >= 3'000'000);
        BOOST_TEST(traced.of("stores") <= 3'000'000 + 2 * jumps + 200);
        BOOST_TEST(traced.err.find("gaps        none") != std::string::npos, traced.err);
    }
}

BOOST_FIXTURE_TEST_CASE(any_number_of_threads_is_traced, fixture) {
    if (!is_here()) return;
    write(in / "threads.c", R"(
        #include <pthread.h>
        #include <stdlib.h>
        #include <unistd.h>
        static volatile long cells[2000 * 8];
        static volatile int ends;
        static void *work(void *n) {
            for (int i = 0; i < 5000; ++i) cells[(long)n * 8] = i;
            if (ends) return 0;
            for (;;) pause();
        }
        int main(int count, char **arguments) {
            long n = atoi(arguments[1]);
            pthread_t all[2000];
            pthread_attr_t small;
            pthread_attr_init(&small);
            pthread_attr_setstacksize(&small, 65536);
            ends = count > 2;
            for (long i = 0; i < n; ++i)
                if (pthread_create(&all[i], &small, work, (void *)i)) return 9;
            for (long i = 0; i < n; ++i) {
                if (ends) pthread_join(all[i], 0);
                else while (cells[i * 8] != 4999) usleep(100);
            }
            return 0;
        })");
    compile("-O1 -w threads.c -o threads -pthread");
    // Some that run until the program ends, and others that end before.
    for (const char* const how :
         {"500 -- ./threads 500", "200 --buffer 256K -- ./threads 200 end"}) {
        const std::uint64_t count = std::strtoull(how, nullptr, 10);
        const outcome traced = trace(std::string(how).substr(4));
        BOOST_TEST(traced.status == 0);
        BOOST_TEST(traced.of("stores") >= count * 5000);
        BOOST_TEST(traced.of("stores") <= count * 5000 + count + 10);
        BOOST_TEST(traced.err.find("gaps        none") != std::string::npos, traced.err);
    }
}

BOOST_FIXTURE_TEST_CASE(libraries_that_must_define_all_can_be_linked, fixture) {
    if (!is_here()) return;
    write(in / "b.c", "int cell; int b(int n) { return cell += n; }");
    write(in / "a.c", "int b(int); int main(void) { return b(3) + b(4) - 10; }");
    compile("-O1 -fPIC -shared -Wl,-z,defs b.c -o libb.so");
    compile("-O1 a.c -L. -lb -Wl,-rpath,. -o program");
    const outcome traced = trace("-- ./program");
    BOOST_TEST(traced.status == 0);
    BOOST_TEST(traced.of("loads") == 2);
    BOOST_TEST(traced.of("stores") == 2);
    BOOST_TEST(traced.err.find("in 2 of ") != std::string::npos, traced.err);
    const outcome sanitized = run(ADDRESS_TRACE " cc -fsanitize=address a.c");
    BOOST_TEST(sanitized.status == 125);
    BOOST_TEST(sanitized.err.find("-fsanitize=address") != std::string::npos);
}

// What no hook can know is counted.
BOOST_FIXTURE_TEST_CASE(assembler_without_operands_is_counted, fixture) {
    if (!is_here()) return;
    write(in / "assembler.c", R"~(
        long cell;
        int main(void) {
            for (int i = 0; i < 100; ++i) {
                __asm__ volatile("incq cell(%%rip)" : : : "memory");
                __asm__ volatile("" : : : "memory");
                __asm__ volatile("incq %0" : "+m"(cell));
            }
        })~");
    compile("-O1 -w assembler.c -o assembler");
    const outcome traced = trace("-- ./assembler");
    BOOST_TEST(traced.of("unseen") == 100);
    BOOST_TEST(traced.of("loads") == 100);
    BOOST_TEST(traced.of("stores") == 100);
}

BOOST_FIXTURE_TEST_CASE(who_must_not_stop_has_gaps_that_are_told, fixture) {
    if (!is_here()) return;
    write(in / "long.c", R"(
        volatile long row[1000];
        int main(void) { for (int i = 0; i < 20000000; ++i) row[i * 7919 % 1000]; })");
    compile("-O1 long.c -o long");
    const outcome traced = trace("--no-stop --buffer 256K --cache a=1K,64,1 -- ./long");
    BOOST_TEST(traced.status == 0);
    BOOST_TEST(traced.of("stops") == 0);
    const std::uint64_t loads = traced.of("loads");
    BOOST_TEST(loads <= 20'000'000);
    if (loads == 20'000'000) {
        BOOST_TEST(traced.err.find("gaps        none") != std::string::npos);
    } else {
        BOOST_TEST(loads + traced.of("blocks") + traced.of("gaps") >= 20'000'000);
    }
}

// Why programs that gcc compiles are not traced: its hooks leave references out.
BOOST_FIXTURE_TEST_CASE(hooks_of_gcc_leave_references_out, fixture) {
    if (run("gcc --version").status != 0) return;
    write(in / "gcc.c", R"(
        static const int table[100] = {1, 2, 3};
        int of_table(int i) { return table[i]; }
        void twice(int *at) { *at += 1; }
    )");
    const auto hooks = [&](const std::string& flags) {
        const std::string text = run("gcc -O1 -S -o - gcc.c " + flags).out;
        std::size_t count = 0;
        for (std::size_t at = 0; (at = text.find("call", at)) != text.npos; ++at)
            count += text.compare(text.find("__", at), 11, "__asan_load") == 0 ||
                     text.compare(text.find("__", at), 12, "__asan_store") == 0 ||
                     text.compare(text.find("__", at), 11, "__tsan_read") == 0 ||
                     text.compare(text.find("__", at), 12, "__tsan_write") == 0;
        return count;
    };
    // Three references are made: two loads, and a store.
    BOOST_TEST(hooks("-fsanitize=kernel-address "
                     "--param asan-instrumentation-with-call-threshold=0") == 2U);
    BOOST_TEST(hooks("-fsanitize=thread") == 2U);
}

BOOST_FIXTURE_TEST_CASE(the_page_has_counts_beside_the_lines_of_the_source, fixture) {
    if (!is_here()) return;
    run("mkdir code include");
    write(in / "include/cells.h",
          "static inline int cell(volatile int *of, int i) {\n    return of[i];\n}\n");
    write(in / "code/rows.c",
          "#include \"../include/cells.h\"\nvolatile int row[700];\nint main(void) {\n"
          "    for (int i = 0; i < 700; ++i)\n        cell(row, i);\n    return 0;\n}\n"
          "#line 9 \"gone.y\"\nint unused(void) { return row[0]; }\n");
    compile("-O1 -g rows.c -o ../rows", "cd code && " ADDRESS_TRACE " cc");
    const auto page_of = [&] {
        BOOST_TEST(trace("--quiet --html page.html -- ./rows").status == 0);
        return text_of(in / "page.html");
    };
    const auto has = [](const std::string& text, const std::string& what) {
        return text.find(what) != std::string::npos;
    };
    const std::string page = page_of();
    BOOST_TEST(has(page, "/include/cells.h</b> "), page);
    BOOST_TEST(
        has(page, "<td>700</td><td></td><td></td><td class=\"code\">    return of[i];</td>"));
    BOOST_TEST(has(page, "/code/rows.c</b> "));
    BOOST_TEST(!has(page, "gone.y</b>"));  // it was not called
    BOOST_TEST(!has(page, "class=\"warning\""));
    // Then a header is changed, and then it is gone.
    run("touch -d 'now + 1 hour' include/cells.h");
    BOOST_TEST(has(page_of(), "cells.h is newer than the program (rows): lines may be others."));
    run("rm include/cells.h");
    BOOST_TEST(has(page_of(), "cells.h cannot be shown: No such file or directory.</p>"));
}

BOOST_FIXTURE_TEST_CASE(of_an_object_without_a_table_of_functions_it_is_told, fixture) {
    if (!is_here()) return;
    write(in / "known.c", known);
    compile("-O1 known.c -o known -Wl,--no-eh-frame-hdr");
    const auto has_reason = [&](const std::string& reason) {
        const outcome traced = trace("--format csv --report all.csv -- ./known");
        BOOST_TEST(traced.of("loads") == 1000);
        BOOST_TEST(traced.err.find("; not known: known (" + reason + ")\n") != std::string::npos,
                   traced.err);
        BOOST_TEST(text_of(in / "all.csv").find("/known,-,-,-,-,\"" + reason + "\"\n") !=
                       std::string::npos,
                   text_of(in / "all.csv"));
    };
    has_reason("it has no table of functions, .eh_frame_hdr");
    compile("-O1 known.c -o known");
    BOOST_TEST(trace("-- ./known").err.find("not known") == std::string::npos);
    run("objcopy --dump-section .eh_frame_hdr=table known");
    std::string table = text_of(in / "table");
    BOOST_REQUIRE(table.size() > 12);
    table[3] = 0x1B;
    write(in / "table", table);
    run("objcopy --update-section .eh_frame_hdr=table known");
    has_reason("its table of functions, .eh_frame_hdr, has an unusual encoding");
    table[3] = 0x3B;
    table[10] = 1;
    write(in / "table", table);
    run("objcopy --update-section .eh_frame_hdr=table known");
    has_reason("its table of functions, .eh_frame_hdr, is cut off");
}

BOOST_FIXTURE_TEST_CASE(what_is_wrong_is_told, fixture) {
    const outcome none = trace("-- ./there_is_none");
    BOOST_TEST(none.status == 127);
    BOOST_TEST(none.err.find("there_is_none") != std::string::npos);
    const outcome cache = trace("--cache D1=32K,63,8 -- true");
    BOOST_TEST(cache.status == 125);
    BOOST_TEST(cache.err.find("63") != std::string::npos);
    BOOST_TEST(trace("").status == 125);
    BOOST_TEST(run(ADDRESS_TRACE " --help").out.find("cc") != std::string::npos);
    BOOST_TEST(trace("--help").out.find("--cache") != std::string::npos);
    // A program without hooks.
    const outcome plain = trace("-- true");
    BOOST_TEST(plain.status == 0);
    BOOST_TEST(plain.of("loads") == 0);
    BOOST_TEST(plain.err.find("address-trace cc") != std::string::npos);
}

}  // namespace

BOOST_AUTO_TEST_SUITE_END()
