// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Programs that address-trace compiles and runs in a folder, and its output.

#include <sys/wait.h>

#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include <boost/test/unit_test.hpp>

#include <examples/trace_clauses/clause_programs.hpp>
#include <recorder/scratch.hpp>

namespace address_program {

using clause_programs::text_of;

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

}  // namespace address_program
