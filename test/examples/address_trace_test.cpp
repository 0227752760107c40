// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// address-trace: programs are compiled by it as by any compiler, run as they would without it, and
// the references that it tells are those that another count of the same calls has.

#include <boost/test/unit_test.hpp>

#include <sys/wait.h>

#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include <recorder/scratch.hpp>
#include "clause_programs.hpp"

BOOST_AUTO_TEST_SUITE(address_trace_program)

namespace {

using clause_programs::text_of;
using clause_programs::write;

/// Counts what the compiler calls, and prints it at the end: the independent count.
constexpr const char* counting = R"(
#include <stdio.h>
static unsigned long loads, stores, blocks;
#define HOOKS(n) \
    void __sanitizer_cov_load##n(void *at) { (void)at; __sync_fetch_and_add(&loads, 1); } \
    void __sanitizer_cov_store##n(void *at) { (void)at; __sync_fetch_and_add(&stores, 1); }
HOOKS(1) HOOKS(2) HOOKS(4) HOOKS(8) HOOKS(16)
void __sanitizer_cov_trace_pc(void) { __sync_fetch_and_add(&blocks, 1); }
__attribute__((destructor)) static void tell(void) {
    fprintf(stderr, "loads %lu stores %lu blocks %lu\n", loads, stores, blocks);
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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct node { struct node *next; int key; char name[12]; };
static volatile int handled;
static void handle(int signal) { handled += signal; }
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static void *work(void *of) {
    int n = *(int *)of;
    int *all = malloc(n * sizeof *all);
    for (int i = 0; i < n; ++i) all[i] = (i * 7919) % n;
    qsort(all, n, sizeof *all, compare);
    long sum = 0;
    for (int i = 0; i < n; ++i) sum += all[i] * (long)i;
    free(all);
    return (void *)sum;
}
int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 1000;
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

struct outcome {
    int status = 0;
    std::string out, err;

    /// The number behind a word at the begin of a line.
    [[nodiscard]] std::uint64_t of(const std::string& name) const {
        std::istringstream lines(err);
        for (std::string line; std::getline(lines, line);) {
            std::istringstream words(line);
            std::string first;
            std::uint64_t number = 0;
            if (words >> first >> number && first == name) return number;
        }
        BOOST_ERROR("no line of " << name << " in:\n" << err);
        return 0;
    }
};

struct fixture {
    outcome run(const std::string& command) const {
        const int status = std::system(
            ("cd " + in.path() + " && { " + command + " ; } >out 2>err </dev/null").c_str());
        return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text_of(in / "out"),
                text_of(in / "err")};
    }
    void compile(const std::string& arguments, const std::string& by = ADDRESS_TRACE " cc") const {
        const outcome done = run(by + " " + arguments);
        if (done.status != 0) BOOST_FAIL(by << ' ' << arguments << ": " << done.err);
    }
    outcome trace(const std::string& arguments) const {
        return run(ADDRESS_TRACE " run " + arguments);
    }
    [[nodiscard]] bool is_here() const {
        const bool found = run(ADDRESS_TRACE " cc --version").status == 0;
        if (!found) BOOST_TEST_MESSAGE("skipped: there is no clang here");
        return found;
    }
    test::folder in;
};

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
    const outcome cached = trace("--cache D1=32K,64,8 --cache tiny=128,64,2 -- ./known");
    BOOST_TEST(cached.of("D1") >= 125);
    BOOST_TEST(cached.of("D1") <= 127);
    // One of two lines goes on along the row, but is used less lately than `cell` now and then.
    BOOST_TEST(cached.of("tiny") >= cached.of("D1"));
    BOOST_TEST(cached.of("tiny") <= cached.of("D1") + 130);
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
        std::uint64_t loads = 0, stores = 0, blocks = 0;
        std::string word;
        std::istringstream(counted.err) >> word >> loads >> word >> stores >> word >> blocks;
        BOOST_TEST(loads > 10'000);
        const outcome traced = trace("-- ./traced 3000");
        BOOST_TEST(traced.status == 0);
        BOOST_TEST(traced.out == counted.out);
        BOOST_TEST(traced.of("loads") == loads);
        BOOST_TEST(traced.of("stores") == stores);
        BOOST_TEST(traced.of("blocks") == blocks);
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
    const outcome narrow = run(ADDRESS_TRACE " cc -m32 b.c");
    BOOST_TEST(narrow.status == 125);
    BOOST_TEST(narrow.err.find("32 bits") != std::string::npos);
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
