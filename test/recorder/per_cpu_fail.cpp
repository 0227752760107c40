// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// A recorder with a lane for each processor, with and without the header that has it.

#include <trace_ring/trace_ring.hpp>
#ifdef PASSES_a_recorder_by_processor_without_its_header
#include <trace_ring/per_cpu.hpp>
#endif

struct order_sent : trace_ring::event<"order.sent", trace_ring::field<"id", std::uint64_t>> {};
struct by_cpu : trace_ring::policies<trace_ring::claim::per_cpu> {};

#ifdef FAILS_a_recorder_by_processor_without_its_header  // expect: include <trace_ring/per_cpu.hpp>
bool refused_recorder() {
    trace_ring::basic_recorder<by_cpu> recorder{{.size = 1 << 20}};
    return recorder.record<order_sent>(1);
}
#endif
#ifdef PASSES_a_recorder_by_processor_without_its_header
bool accepted_recorder() {
    trace_ring::basic_recorder<by_cpu> recorder{{.size = 1 << 20}};
    return recorder.record<order_sent>(1);
}
#endif
