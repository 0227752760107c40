// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// What a file that includes site.hpp alone lacks: the compiler quotes the line with the header's
// name. Each next to what needs no other header.

#include <trace_ring/recorder/site.hpp>

struct point {
    int x;
};

#ifdef FAILS_a_span  // expect-quote: include <trace_ring/recorder/spans.hpp>
struct request : trace_ring::span<"request", trace_ring::field<"n", int>> {};
#endif
#ifdef PASSES_a_span
struct request : trace_ring::event<"request", trace_ring::field<"n", int>> {};
#endif

#ifdef FAILS_members  // expect-quote: include <trace_ring/record/event/members.hpp>
template <>
struct trace_ring::members_of<point> : trace_ring::members<&point::x> {};
#endif
#ifdef PASSES_members
template <>
struct trace_ring::members_of<point>;
#endif
