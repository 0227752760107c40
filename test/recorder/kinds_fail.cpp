// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Kinds of recorder that make no sense, each beside one that does.

#include <trace_ring/policy/claim/fetch_add.hpp>
#include <trace_ring/policy/claim/per_cpu.hpp>
#include <trace_ring/policy/clock/sampled.hpp>
#include <trace_ring/policy/clock/tsc.hpp>
#include <trace_ring/recorder/cpu/recorder.hpp>

template <class Clock, class Claim>
struct kind {
    using clock = Clock;
    using claim = Claim;
};
using trace_ring::basic_recorder;
using trace_ring::claim::fetch_add;
using trace_ring::claim::per_cpu;
using trace_ring::clock::sampled;
using trace_ring::clock::tsc;

#ifdef FAILS_a_claim_of_slots  // expect: the one claim of a recorder is claim::per_cpu
basic_recorder<kind<tsc, fetch_add>> refused_claim({});
#endif
#ifdef PASSES_a_claim_of_slots
basic_recorder<kind<tsc, per_cpu>> accepted_claim({});
#endif

#ifdef FAILS_readings_shared_by_threads  // expect: threads that share a lane cannot share readings
basic_recorder<kind<sampled<16>, per_cpu>> refused_clock({});
#endif
#ifdef PASSES_readings_shared_by_threads
basic_recorder<kind<sampled<1>, per_cpu>> accepted_clock({});
#endif
