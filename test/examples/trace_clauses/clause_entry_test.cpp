// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Arguments at the entry are those of the call, also where the function's first statements change
// them and have no code: or they are refused.

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "clause_programs.hpp"

BOOST_AUTO_TEST_SUITE(clause_entries)

using clause_programs::build;
using clause_programs::ended;
using clause_programs::run;

namespace {

/// main prints what it calls each function with: "FUNCTION ARGUMENT VALUE".
constexpr const char* source = R"(#include <stdio.h>
__attribute__((noinline)) void sink(long a, long b) { __asm__ volatile("" : : "r"(a), "r"(b)); }
/* The salt keeps compilers from folding functions that are the same. */
#define FUNCTIONS(storage, prefix, salt) \
    __attribute__((noinline)) storage long prefix##move(long a, long b) { \
        a += 48; sink(a, b); sink(a, b); return a + b + salt; } \
    __attribute__((noinline)) storage long prefix##set(long a, long b) { \
        long k = a; a = 77; sink(a, b); sink(k, a); return a + b + k + salt; } \
    __attribute__((noinline)) storage long prefix##swap(long a, long b) { \
        long t = a; a = b; b = t; sink(a, b); return a * 3 + b + salt; } \
    __attribute__((noinline)) storage long prefix##same(long a, long b) { \
        a = b; b += 7; sink(a, b); return a * 3 + b + salt; } \
    __attribute__((noinline)) storage long prefix##both(long a, long b) { \
        b = a; a = 9; sink(a, b); sink(b, a); return a * 3 + b + salt; } \
    __attribute__((noinline)) storage long prefix##kept(long a, long b) { \
        sink(a, b); sink(b, a); return a * 3 + b + salt; }
FUNCTIONS(, e_, 1000)
FUNCTIONS(static, s_, 2000)
#define CALL(name) \
    printf(#name " a %ld\n" #name " b %ld\n", i + 1000, i + 2000); all += name(i + 1000, i + 2000)
int main(int count, char **given) {
    long all = 0;
    for (long i = count; i < count + 2; ++i) {
        CALL(e_move); CALL(e_set); CALL(e_swap); CALL(e_same); CALL(e_both); CALL(e_kept);
        CALL(s_move); CALL(s_set); CALL(s_swap); CALL(s_same); CALL(s_both); CALL(s_kept);
    }
    return all == 1;
}
)";

/// `compiler`: empty means the one of the tests; another one need not be there.
bool builds(const std::string& program, const std::string& compiler, int bits,
            const std::string& flags) {
    if (compiler.empty()) return build(program, source, "c", bits, flags);
    clause_programs::write(program + ".c", source);
    const std::string command = compiler + " -w -m" + std::to_string(bits) +
                                " -idirafter /usr/include/x86_64-linux-gnu " + flags + " " +
                                program + ".c -o " + program + " > /dev/null 2>&1";
    return std::system(command.c_str()) == 0;
}

}  // namespace

BOOST_AUTO_TEST_CASE(first_statements_that_have_no_code_change_no_argument) {
    const test::folder folder;
    const std::string program = folder / "entries";
    std::string clauses;
    for (const char* prefix : {"e_", "s_"}) {
        for (const char* name : {"move", "set", "swap", "same", "both", "kept"}) {
            for (const char* of : {"a", "b"})
                clauses += " -e '@@uft:*:entries:" + std::string(prefix) + name +
                           ":entry { capture(" + of + "); }'";
        }
    }
    std::vector<std::string> levels{"-O2", "-O0", "-O1", "-Os", "-O2 -gdwarf-4"};
    levels.resize(trace_ring_test::repeats(levels.size()) < levels.size() ? 2 : levels.size());
    std::size_t compared = 0;
    for (const std::string compiler : {"", "clang-14", "clang"}) {
        for (const int bits : {64, 32}) {
            if (!clause_programs::runs(bits)) continue;
            for (const std::string& level : levels) {
                if (!builds(program, compiler, bits, level + " -g")) continue;
                for (const std::string from : {"kernel", "ptrace"}) {
                    const ended made = run(folder, TRACE_CLAUSES " --leave-out --source " + from +
                                                       clauses + " -- " + program);
                    if (made.status != 0) {
                        trace_ring_test::cannot_run(made.err);
                        continue;
                    }
                    BOOST_TEST_CONTEXT(compiler << bits << level << from << made.out << made.err) {
                        std::map<std::string, std::vector<std::string>> printed, traced;
                        std::istringstream lines(made.out);
                        for (std::string line; std::getline(lines, line);) {
                            std::istringstream words(line);
                            std::string function, second, third, value;
                            words >> function >> second >> third >> value;
                            if (value.empty()) {
                                printed[function + " " + second].push_back(third);
                                continue;
                            }
                            const std::size_t equals = value.find('=');
                            traced[function + " " + value.substr(0, equals)].push_back(
                                value.substr(equals + 1));
                        }
                        for (const auto& [what, values] : traced) {
                            // Callers need not pass arguments that a function never reads.
                            if (what == "e_same a" || what == "e_both b") continue;
                            BOOST_TEST(values == printed[what], what);
                            compared += values.size();
                        }
                        // At all functions without optimization, and what keeps to the ABI.
                        BOOST_TEST(traced.contains("e_kept a"));
                        if (level == "-O0") BOOST_TEST(traced.size() == 24U);
                    }
                }
            }
        }
    }
    trace_ring_test::proof("clauses", compared, "arguments that functions change at once");
}

BOOST_AUTO_TEST_SUITE_END()
