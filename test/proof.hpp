// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// How much a test is to do, and how it says how much of a promise it has tried. test/run adds
/// these lines up and prints the table of promises from them; meta/proof.py lists the promises, and
/// refuses an id that is not there.

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace trace_ring_test {

/// Prints `proof: <promise>: <count> <unit>`, as a separate line on standard output. To be called
/// at a test's end, when it has held, by the process that ctest started; several calls add up.
///
/// @param promise one of the ids in meta/proof.py
/// @param count   what was really done in this run, counted as it was done
/// @param unit    the counted things, in the plural, the same words in all tests that count the
///                same thing
inline void proof(const char* promise, std::uint64_t count, const char* unit) {
    std::printf("\nproof: %s: %" PRIu64 " %s\n", promise, count, unit);
    std::fflush(stdout);
}

/// Why a case of this program could not be run: empty if all were.
inline std::string& not_run() {
    static std::string why;
    return why;
}
/// For a test case that cannot be run on this machine, because what it needs is not there, or is
/// refused. If nothing else fails, the program then ends as skipped, and not as passed: with 77,
/// and `why`, a line, as its last word.
inline void cannot_run(const std::string& why) {
    not_run() = why.substr(0, why.find('\n'));
}

/// How often a test does what it could do for ever: `usual`; ten times that with TRACE_RING_LONG=1,
/// as `test/run --long` sets it; an eighth with TRACE_RING_QUICK=1, as the presets set it that
/// are to be quick, or run slowly.
inline unsigned repeats(std::uint64_t usual) {
    const auto is_set = [](const char* name) {
        const char* const set = std::getenv(name);
        return set != nullptr && *set == '1';
    };
    if (is_set("TRACE_RING_LONG")) return static_cast<unsigned>(usual * 10);
    if (is_set("TRACE_RING_QUICK")) return static_cast<unsigned>((usual + 7) / 8);
    return static_cast<unsigned>(usual);
}

}  // namespace trace_ring_test
