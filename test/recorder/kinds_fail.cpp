// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Invalid kinds of recorder, and invalid calls, each next to a valid one.

#include <trace_ring/policy/claim/fetch_add.hpp>
#include <trace_ring/policy/claim/per_cpu.hpp>
#include <trace_ring/policy/clock/sampled.hpp>
#include <trace_ring/policy/clock/tsc.hpp>
#include <trace_ring/policy/full/discard_newest.hpp>
#include <trace_ring/recorder/cpu/recorder.hpp>

template <class Clock, class Claim>
struct kind : trace_ring::policies<Clock, Claim> {};
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

#ifdef FAILS_no_list_of_policies  // expect: a kind of recorder is a named list of policies
basic_recorder<tsc> refused_kind({});
#endif
#ifdef PASSES_no_list_of_policies
basic_recorder<trace_ring::policies<tsc>> accepted_kind({});
#endif

#ifdef FAILS_what_set_up_decides  // expect: a recorder's list names a clock and a claim
basic_recorder<trace_ring::policies<tsc, trace_ring::full::discard_newest>> refused_full({});
#endif
#ifdef PASSES_what_set_up_decides
basic_recorder<trace_ring::policies<tsc>> accepted_full(
    {.full = trace_ring::full_mode::discard_newest});
#endif

#ifdef FAILS_readings_shared_by_threads  // expect: threads that share a lane cannot share readings
basic_recorder<kind<sampled<16>, per_cpu>> refused_clock({});
#endif
#ifdef PASSES_readings_shared_by_threads
basic_recorder<kind<sampled<1>, per_cpu>> accepted_clock({});
#endif

#ifdef FAILS_a_recorder_of_a_name  // expect: in two pairs of braces
trace_ring::recorder refused_name{"orders.trace"};
#endif
#ifdef PASSES_a_recorder_of_a_name
trace_ring::recorder accepted_name{{.file = "orders.trace"}};
#endif

#ifdef FAILS_a_recorder_by_processor_of_a_name  // expect: in two pairs of braces
basic_recorder<kind<tsc, per_cpu>> refused_name_by_processor{"orders.trace"};
#endif
#ifdef PASSES_a_recorder_by_processor_of_a_name
basic_recorder<kind<tsc, per_cpu>> accepted_name_by_processor{{.file = "orders.trace"}};
#endif

// clang says the sentence; g++ says first, in its own words, what is no aggregate.
#ifdef FAILS_options_in_one_pair_of_braces  // expect-error: in two pairs of braces|cannot be used
                                            // with a non-aggregate type
trace_ring::recorder refused_braces{.file = "orders.trace"};
#endif
#ifdef PASSES_options_in_one_pair_of_braces
trace_ring::recorder accepted_braces{{.file = "orders.trace"}};
#endif

struct order_sent : trace_ring::event<"order.sent", trace_ring::field<"id", std::uint64_t>,
                                      trace_ring::field<"price", double>> {};
struct no_event {};

#ifdef FAILS_a_value_too_few  // expect: a record has one value for each field of its event
void refused_record(trace_ring::recorder& recorder) {
    recorder.record<order_sent>(std::uint64_t{1});
}
#endif
#ifdef PASSES_a_value_too_few
void accepted_record(trace_ring::recorder& recorder) {
    recorder.record<order_sent>(std::uint64_t{1}, 2.5);
}
#endif

#ifdef FAILS_a_record_of_no_event  // expect: this is no event: a struct derived from
void refused_struct(trace_ring::recorder& recorder) {
    recorder.record<no_event>(std::uint64_t{1});
}
#endif
#ifdef PASSES_a_record_of_no_event
void accepted_event(trace_ring::recorder& recorder) {
    static_cast<void>(recorder.reserve<order_sent>(std::uint64_t{1}, 2.5));
}
#endif

#ifdef FAILS_a_reservation_of_no_event  // expect: this is no event: a struct derived from
void refused_reservation(basic_recorder<kind<tsc, per_cpu>>& recorder) {
    static_cast<void>(recorder.reserve<int>(1));
}
#endif
#ifdef PASSES_a_reservation_of_no_event
void accepted_reservation(basic_recorder<kind<tsc, per_cpu>>& recorder) {
    static_cast<void>(recorder.reserve<order_sent>(std::uint64_t{1}, 2.5));
}
#endif
