// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// address-trace: which part of a run is analysed, what code its blocks fetch, and whose the memory
// is that it references.

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include <examples/trace_clauses/clause_programs.hpp>
#include <trace_ring/recorder/recorder.hpp>
#include "address_program.hpp"

BOOST_AUTO_TEST_SUITE(address_trace_choice)

namespace {

using address_program::fixture;
using address_program::outcome;
using clause_programs::text_of;
using clause_programs::write;

/// Each `work(n)` stores n times.
constexpr const char* phases = R"(
volatile int cell;
__attribute__((noinline)) static void work(int n) { for (int i = 0; i < n; ++i) cell = i; }
__attribute__((noinline)) void phase(void) { __asm__ volatile(""); }
__attribute__((noinline)) void between(void) { __asm__ volatile(""); }
int main(void) {
    work(1000);
    phase();
    work(200);
    between();
    work(30);
    phase();
    work(4);
    return 0;
}
)";

BOOST_FIXTURE_TEST_CASE(a_part_begins_and_ends_with_functions, fixture) {
    if (!is_here()) return;
    write(in / "phases.c", phases);
    compile("-O1 phases.c -o phases");
    const auto stores = [this](const std::string& which) {
        const outcome traced = trace(which + " -- ./phases");
        BOOST_TEST(traced.status == 0);
        BOOST_TEST(traced.err.find("gaps        none") != std::string::npos);
        return traced.of("stores");
    };
    BOOST_TEST(stores("") == 1234U);
    BOOST_TEST(stores("--from phase") == 234U);
    BOOST_TEST(stores("--to phase") == 1000U);
    BOOST_TEST(stores("--from phase --to between") == 204U);
    BOOST_TEST(stores("--from phase --to phase") == 234U);
    BOOST_TEST(stores("--from between --window 10") < 10U);
    // The same of a trace that was kept.
    BOOST_TEST(stores("-o phases.trace") == 1234U);
    const outcome kept =
        run(ADDRESS_TRACE " report --from phase --to between --format json phases.trace");
    BOOST_TEST(kept.status == 0);
    const auto tables = nlohmann::json::parse(kept.out)["tables"];
    bool found = false;
    for (const auto& row : tables[0]["rows"]) {
        if (row[0] == "stores") found = row[1] == 204;
    }
    BOOST_TEST(found);

    const outcome none = trace("--from there_is_none -- ./phases");
    BOOST_TEST(none.status == 125);
    BOOST_TEST(none.err.find("'there_is_none'") != std::string::npos);
    const outcome late = run(ADDRESS_TRACE " report --to there_is_none phases.trace");
    BOOST_TEST(late.status == 125);
}

BOOST_FIXTURE_TEST_CASE(blocks_can_be_left_out, fixture) {
    if (!is_here()) return;
    write(in / "phases.c", phases);
    compile("-O1 phases.c -o phases");
    for (const char* const how : {"", "-o phases.trace "}) {
        const outcome traced = trace(std::string("--no-blocks ") + how + "-- ./phases");
        BOOST_TEST(traced.status == 0);
        BOOST_TEST(traced.of("stores") == 1234U);
        BOOST_TEST(traced.err.find("blocks") == std::string::npos);
        BOOST_TEST(traced.err.find("gaps        none") != std::string::npos);
    }
    const outcome report = run(ADDRESS_TRACE " report --format lackey phases.trace");
    BOOST_TEST(report.out.find("I ") == std::string::npos);
    BOOST_TEST(report.out.find(" S ") != std::string::npos);
    const outcome code = trace("--no-blocks --cache I1=32K,64,8 -- ./phases");
    BOOST_TEST(code.status == 125);
    BOOST_TEST(code.err.find("'I1'") != std::string::npos);
    BOOST_TEST(trace("--no-blocks --from phase -- ./phases").status == 125);
}

// The hundred blocks of a chain of gotos are more code than the cache has room for, and then less.
BOOST_FIXTURE_TEST_CASE(caches_of_code_hold_what_blocks_are_long, fixture) {
    if (!is_here()) return;
    std::string source = "volatile int n; int main(void) { for (int i = 0; i < 1000; ++i) {";
    // 64 instructions of 4 bytes, which nobody else makes.
    for (int i = 0; i < 64; ++i) source += "__asm__ volatile(\".nops 4\");";
    source += "if (i == 500) n = 1; } return n == 1 ? 0 : 1; }";
    write(in / "long.c", source);
    compile("-O1 long.c -o long");
    const outcome traced =
        trace("--cache I1=512,64,8 --cache I2=128,64,2 --cache ITLB=4,4096,4 -- ./long");
    BOOST_TEST(traced.status == 0);
    // Four lines, and a few before and behind them.
    BOOST_TEST(traced.of("I1") >= 4U);
    BOOST_TEST(traced.of("I1") < 16U);
    // They come in a row, and there are but two.
    BOOST_TEST(traced.of("I2") >= 4000U);
    BOOST_TEST(traced.of("I2") < 8000U);
    BOOST_TEST(traced.of("ITLB") <= 3U);
    BOOST_TEST(traced.err.find("by loads") == std::string::npos);  // they take no data
    const std::size_t at = traced.err.find(" fetches");
    BOOST_REQUIRE(at != std::string::npos);
    const std::size_t begin = traced.err.rfind(' ', at - 1);
    const auto instructions = std::stoull(traced.err.substr(begin, at - begin));
    BOOST_TEST(instructions >= 64'000U);
    BOOST_TEST(instructions < 80'000U);
}

BOOST_FIXTURE_TEST_CASE(hot_lines_have_owners, fixture) {
    if (!is_here()) return;
    write(in / "owners.cpp", R"~(
#include <cstdlib>
#include <vector>
static volatile long table[8];
int main() {
    auto* const block = static_cast<volatile long*>(std::malloc(4096));
    std::vector<long> numbers(512);
    volatile long local[8];
    for (int i = 0; i < 10000; ++i) {
        block[8] = i;
        local[i & 7] = i;
        table[i & 7] = i;
        numbers[64 + (i & 7)] += i;
    }
    long sum = block[8] + table[0] + local[0];
    for (const long each : numbers) sum += each;
    return sum != 0 ? 0 : 1;
}
)~");
    compile("-O1 -g owners.cpp -o owners", ADDRESS_TRACE " c++");
    for (const bool is_kept : {false, true}) {
        outcome traced = trace(is_kept ? "-o owners.trace -- ./owners"
                                       : "--lines --format json --report found.json -- ./owners");
        BOOST_TEST(traced.status == 0);
        std::string text = is_kept
                               ? run(ADDRESS_TRACE " report --lines --format json owners.trace").out
                               : text_of(in / "found.json");
        std::string owners;
        const auto tables = nlohmann::json::parse(text)["tables"];
        for (const auto& each : tables) {
            if (each["name"] != "hottest") continue;
            for (const auto& row : each["rows"]) owners += row.back().get<std::string>() + '\n';
        }
        BOOST_TEST_CONTEXT(owners) {
            BOOST_TEST(owners.find("4.00 KiB of main owners.cpp:6") != std::string::npos);
            BOOST_TEST(owners.find("4.00 KiB of main owners.cpp:7") != std::string::npos);
            BOOST_TEST(owners.find("stack of thread ") != std::string::npos);
            BOOST_TEST(owners.find("table") != std::string::npos);
        }
    }
}

// operator new in a function that catches: the code after the call is a separate block.
BOOST_FIXTURE_TEST_CASE(allocations_are_told_where_the_program_makes_them, fixture) {
    if (!is_here()) return;
    write(in / "new.cpp", R"~(
#include <cstdlib>
#include <new>
struct thing { char bytes[24]; thing(); };
__attribute__((noinline)) thing::thing() { bytes[0] = 1; }
__attribute__((alloc_size(1, 2), noinline)) void* rows(int n, int of) { return std::malloc(n * of); }
int main() {
    void* volatile kept[6];
    try {
        kept[0] = new thing;
        kept[1] = new thing[3];
        kept[2] = std::calloc(5, 7);
        kept[3] = std::realloc(kept[2], 100);
        kept[4] = rows(11, 13);
        kept[5] = operator new(64, std::align_val_t(64));
    } catch (...) {
        return 1;
    }
    return kept[0] == kept[1];
}
)~");
    for (const char* const level : {"-O0", "-O2", "-O2 -flto"}) {
        compile(std::string(level) + " -std=c++17 new.cpp -o new", ADDRESS_TRACE " c++");
        const outcome traced = trace("--format csv --report found.csv -- ./new");
        BOOST_TEST(traced.status == 0);
        BOOST_TEST(traced.err.find("gaps        none") != std::string::npos);
        // malloc in `rows`, and `rows` itself.
        const std::string wanted =
            "allocations,7,-," + std::to_string(24 + 72 + 35 + 100 + 143 * 2 + 64);
        BOOST_TEST_CONTEXT(text_of(in / "found.csv"))
        BOOST_TEST(text_of(in / "found.csv").find(wanted) != std::string::npos);
    }
}

constexpr const char* plugin = R"(
long cells[64];
__attribute__((noinline)) static void inner(int i) { cells[i & 63] += i; }
void go(void) { for (int i = 0; i < 2000; ++i) inner(i); }
)";
constexpr const char* host = R"(
#include <dlfcn.h>
#include <unistd.h>
int main(int count, char **arguments) {
    (void)arguments;
    void *const plugin = dlopen("./plugin.so", RTLD_NOW);
    if (!plugin) return 1;
    ((void (*)(void))dlsym(plugin, "go"))();
    if (count > 1) dlclose(plugin);
    if (count > 2) _exit(0);
    return 0;
}
)";

BOOST_FIXTURE_TEST_CASE(a_plugin_is_known_while_it_runs_and_after_it_is_gone, fixture) {
    if (!is_here()) return;
    write(in / "plugin.c", plugin);
    write(in / "host.c", host);
    compile("-O1 -g -fPIC -shared plugin.c -o plugin.so");
    compile("-O1 -g host.c -o host -ldl");
    for (const char* const how : {"", " close", " close exit"}) {
        const outcome traced = trace(
            std::string("--from inner --cache I1=4K,64,2 --lines --report found.txt -- ./host") +
            how);
        BOOST_TEST_CONTEXT(how << traced.err) {
            BOOST_TEST(traced.status == 0);
            BOOST_TEST(traced.of("stores") == 2000U);
            BOOST_TEST(traced.err.find("code is unknown") == std::string::npos);
            const std::string found = text_of(in / "found.txt");
            BOOST_TEST(found.find("plugin.c:3") != std::string::npos);
            BOOST_TEST(found.find("cells") != std::string::npos);
            BOOST_TEST(found.find("Gaps: none.") != std::string::npos);
        }
    }
}

BOOST_FIXTURE_TEST_CASE(tables_that_are_asked_for_are_shown_and_stdout_is_the_programs, fixture) {
    if (!is_here()) return;
    write(in / "phases.c", phases);
    compile("-O1 phases.c -o phases");
    const outcome shown = trace("--lines -- ./phases");
    BOOST_TEST(shown.out.empty());
    BOOST_TEST(shown.err.find("used most") != std::string::npos);
    const outcome page = trace("--all --html found.html -- ./phases");
    BOOST_TEST(page.out.empty());
    BOOST_TEST(page.err.find("used most") == std::string::npos);
    BOOST_TEST(text_of(in / "found.html").find("Gaps: none.") != std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(a_kept_trace_says_whether_it_is_all, fixture) {
    if (!is_here()) return;
    write(in / "phases.c", phases);
    compile("-O1 phases.c -o phases");
    BOOST_TEST(trace("-o phases.trace -- ./phases").status == 0);
    const outcome whole = run(ADDRESS_TRACE " report phases.trace");
    BOOST_TEST(whole.out.find("Gaps: none.") != std::string::npos);
    BOOST_TEST(whole.err.empty());
    // It was interrupted: its last record is missing.
    const outcome killed =
        run(ADDRESS_TRACE " run -o killed.trace -- sh -c './phases; kill -9 $PPID; sleep 1'");
    BOOST_TEST(killed.status != 0);
    const outcome part = run(ADDRESS_TRACE " report killed.trace");
    BOOST_TEST(part.out.find("Gaps: not known") != std::string::npos);
    BOOST_TEST(part.err.find("killed.trace: the trace has no end") != std::string::npos);
    BOOST_TEST(part.status == 0);
    // A part of it, and a part that ends within its tables.
    run("head -c -40000 phases.trace >cut.trace; head -c 5000 phases.trace >headless.trace");
    const outcome cut = run(ADDRESS_TRACE " report cut.trace");
    BOOST_TEST(cut.status == 2);
    BOOST_TEST(cut.out.find("Gaps: not known") != std::string::npos);
    BOOST_TEST(cut.err.find(": the file is cut short: ") != std::string::npos, cut.err);
    const outcome headless = run(ADDRESS_TRACE " report headless.trace");
    BOOST_TEST(headless.status == 2);
    BOOST_TEST(headless.out.empty());
    BOOST_TEST(headless.err.find("headless.trace: offset 5000: the file ends before its tables") !=
                   std::string::npos,
               headless.err);
}

BOOST_FIXTURE_TEST_CASE(a_trace_without_references_is_not_reported_as_empty, fixture) {
    { const trace_ring::recorder other{{.file = in / "other.trace"}}; }
    const outcome report = run(ADDRESS_TRACE " report other.trace");
    BOOST_TEST(report.status == 2);
    BOOST_TEST(report.out.empty());
    BOOST_TEST(report.err.find("other.trace has no address references: it was not recorded by "
                               "`address-trace run -o`") != std::string::npos,
               report.err);
    // A program without hooks has references: none.
    BOOST_TEST(trace("-o true.trace -- true").status == 0);
    const outcome none = run(ADDRESS_TRACE " report true.trace");
    BOOST_TEST(none.status == 0);
    BOOST_TEST(none.out.find("Gaps: none.") != std::string::npos, none.out);
}

BOOST_FIXTURE_TEST_CASE(nothing_is_replaced_if_there_is_no_such_program, fixture) {
    for (const char* const option : {"-o kept", "--report kept", "--html kept"}) {
        write(in / "kept", "what was there");
        const outcome traced = trace(std::string(option) + " -- ./there_is_none");
        BOOST_TEST(traced.status == 127);
        BOOST_TEST(traced.err.find("./there_is_none: cannot be executed") != std::string::npos);
        BOOST_TEST(text_of(in / "kept") == "what was there");
    }
    for (const char* const wrong : {"--skip -1", "--window 0", "--from ''"})
        BOOST_TEST(trace(std::string(wrong) + " -- true").status == 125);
}

BOOST_FIXTURE_TEST_CASE(functions_of_cxx_have_several_names, fixture) {
    if (!is_here()) return;
    write(in / "names.cpp", R"~(
namespace ns {
template <class T> __attribute__((noinline)) T work(T n) {
    volatile T sum{};
    for (int i = 0; i < 100; ++i) sum = n;
    return sum;
}
struct thing { __attribute__((noinline)) static long make(long x) { volatile long y = x; return y; } };
}
int main() { return ns::work(3) + ns::work(4L) + ns::thing::make(3) == 10 ? 0 : 1; }
)~");
    compile("-O1 names.cpp -o names", ADDRESS_TRACE " c++");
    for (const char* const name : {"ns::work", "ns::work<int>", "int ns::work<int>(int)"})
        BOOST_TEST(trace(std::string("--from '") + name + "' -- ./names").of("stores") >= 203U);
    BOOST_TEST(trace("--from ns::work\\<long\\> -- ./names").of("stores") < 203U);
    BOOST_TEST(trace("--from ns::thing::make -- ./names").of("stores") == 1U);
    BOOST_TEST(trace("--from work -- ./names").status == 125);
}

}  // namespace

BOOST_AUTO_TEST_SUITE_END()
