// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// The hot paths of recorders that machine_code/hot_path.py checks, a function each.

#include <cstdint>
#include <string_view>

#include <trace_ring/policy/claim/per_cpu.hpp>
#include <trace_ring/policy/clock/none.hpp>
#include <trace_ring/recorder/cpu/recorder.hpp>
#include <trace_ring/recorder/recorder.hpp>

struct order : trace_ring::event<"order", trace_ring::field<"id", std::uint64_t>,
                                 trace_ring::field<"price", double>> {};
struct counted_order : trace_ring::event<"counted", trace_ring::field<"id", std::uint64_t>> {
    static constexpr bool counted = true;
};
struct bare_event : trace_ring::event<"bare"> {};
struct untimed : trace_ring::policies<trace_ring::clock::none> {};
struct by_cpu : trace_ring::policies<trace_ring::claim::per_cpu> {};

extern trace_ring::recorder timed_recorder;
extern trace_ring::basic_recorder<untimed> untimed_recorder;
extern trace_ring::basic_recorder<by_cpu> by_cpu_recorder;

// hot: alone
extern "C" void alone_record(std::uint64_t a, std::uint64_t b) {
    timed_recorder.record<order>(a, static_cast<double>(b));
}
extern "C" void alone_record_without_clock(std::uint64_t a, std::uint64_t b) {
    untimed_recorder.record<order>(a, static_cast<double>(b));
}
extern "C" void alone_record_without_fields(std::uint64_t, std::uint64_t) {
    timed_recorder.record<bare_event>();
}
extern "C" void alone_record_by_cpu(std::uint64_t a, std::uint64_t b) {
    by_cpu_recorder.record<order>(a, static_cast<double>(b));
}
extern "C" void alone_record_by_cpu_without_fields(std::uint64_t, std::uint64_t) {
    by_cpu_recorder.record<bare_event>();
}
// Positive twin: what the script must find where it is.
extern "C" void shared_write(std::uint64_t a, std::uint64_t) {
#if !defined(TRACE_RING_DISABLE)
    static trace_ring::atomic<std::uint64_t> planted{0};
    planted.fetch_add(a, trace_ring::relaxed);  // relaxed: it is there to be seen
#endif
    timed_recorder.record<counted_order>(a);
}
