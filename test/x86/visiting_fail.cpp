// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// What a user reads whose visitor of branches lacks a function: one sentence, which shows both.

#include <cstdint>

#include <trace_ring/x86/branch_source.hpp>
#include <trace_ring/x86/linux/perf_bts.hpp>

using namespace trace_ring::x86;

#ifdef FAILS_no_function  // expect-only: it is empty: write visiting\{\[\]\(const branch& one\)
std::uint64_t no_function(perf_bts& from) {
    return from.read(visiting{});
}
#endif
#ifdef PASSES_no_function
std::uint64_t both_functions(perf_bts& from) {
    std::uint64_t branches = 0;
    return from.read(
        visiting{[&](const branch&) { ++branches; }, [](const branch_gap&) mutable {}});
}
#endif

#ifdef FAILS_none_for_gaps  // expect-only: must take a gap: write visiting\{\[\]\(const branch&
                            // one\)
std::uint64_t none_for_gaps(perf_bts& from) {
    return from.read(visiting{[](const branch&) {}});
}
#endif
#ifdef PASSES_none_for_gaps
std::uint64_t one_for_both(perf_bts& from) {
    return from.read(visiting{[](const auto&) {}}) + from.read([](const auto&) {});
}
#endif

#ifdef FAILS_none_for_branches  // expect-only: must take a branch: write visiting\{
std::uint64_t none_for_branches(perf_bts& from) {
    return from.read(visiting{[](const branch_gap&) {}, [](int) {}});
}
#endif
#ifdef PASSES_none_for_branches
std::uint64_t by_value(perf_bts& from) {
    return from.read(visiting{[](branch) {}, [](branch_gap) {}});
}
#endif

#ifdef FAILS_functions_that_may_change_the_record  // expect-only: must take a branch: write
                                                   // visiting
std::uint64_t functions_that_may_change_the_record(perf_bts& from) {
    return from.read(visiting{[](branch&) {}, [](branch_gap&) {}});
}
#endif
#ifdef PASSES_functions_that_may_change_the_record
std::uint64_t functions_that_return_something(perf_bts& from) {
    return from.read(
        visiting{[](const branch& one) { return one; }, [](const branch_gap&) { return 1; }});
}
#endif

#ifdef FAILS_two_for_branches  // expect-only: exactly one of its functions must take a branch
std::uint64_t two_for_branches(perf_bts& from) {
    return from.read(visiting{[](const branch&) {}, [](branch) {}, [](const branch_gap&) {}});
}
#endif
#ifdef PASSES_two_for_branches
std::uint64_t a_special_and_a_general_one(perf_bts& from) {
    return from.read(visiting{[](const branch& one) { return one.from(); }, [](const auto&) {}});
}
#endif

#ifdef FAILS_one_lambda_for_branches  // expect-only: calls its visitor for each gap, too: write
                                      // read
std::uint64_t one_lambda_for_branches(perf_bts& from) {
    return from.read([](const branch&) {});
}
#endif
#ifdef PASSES_one_lambda_for_branches
std::uint64_t a_lambda_for_all(perf_bts& from) {
    return from.read([](const auto&) {});
}
#endif

#ifdef FAILS_one_lambda_for_gaps  // expect-only: calls its visitor for each branch: write read
std::uint64_t one_lambda_for_gaps(perf_bts& from) {
    return from.read([](const branch_gap&) {});
}
#endif
#ifdef PASSES_one_lambda_for_gaps
struct counts {
    std::uint64_t branches = 0, gaps = 0;
    void operator()(const branch&) { ++branches; }
    void operator()(const branch_gap&) { ++gaps; }
};
std::uint64_t a_class_with_both(perf_bts& from, counts& to) {
    return from.read(to);
}
#endif
