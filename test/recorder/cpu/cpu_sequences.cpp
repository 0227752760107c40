// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// A program with each restartable sequence of a recorder, for machine_code/cpu_sequences.py.

#include <array>
#include <cstdint>
#include <string_view>

#include <trace_ring/policy/claim/per_cpu.hpp>
#include <trace_ring/policy/clock/none.hpp>
#include <trace_ring/recorder/cpu/recorder.hpp>

namespace {
using trace_ring::field;

template <class Clock>
struct by_cpu : trace_ring::policies<Clock, trace_ring::claim::per_cpu> {};
struct none : trace_ring::event<"none"> {};
struct one : trace_ring::event<"one", field<"a", std::uint64_t>> {};
struct two : trace_ring::event<"two", field<"a", std::uint64_t>, field<"b", std::uint64_t>> {};
struct three : trace_ring::event<"three", field<"a", std::array<std::uint64_t, 3>>> {};
struct four : trace_ring::event<"four", field<"a", std::array<std::uint64_t, 4>>> {};
struct many : trace_ring::event<"many", field<"a", std::array<std::uint64_t, 9>>> {};
struct text : trace_ring::event<"text", field<"a", std::string_view>> {};

struct work : trace_ring::span<"work", field<"a", std::uint64_t>> {};

template <class Recorder>
bool record_all(Recorder& to, std::uint64_t a) {
    const auto under_way = to.template scope<work>(a);
    return to.template record<none>() && to.template record<one>(a) &&
           to.template record<two>(a, a) &&
           to.template record<three>(std::array<std::uint64_t, 3>{a, a}) &&
           to.template record<four>(std::array<std::uint64_t, 4>{a, a}) &&
           to.template record<many>(std::array<std::uint64_t, 9>{a, a}) &&
           to.template record<text>("some text") &&
           to.template reserve<text>("some other text").commit();
}
}  // namespace

int main() {
    trace_ring::basic_recorder<by_cpu<trace_ring::clock::tsc>> timed({.size = 1 << 20});
    trace_ring::basic_recorder<by_cpu<trace_ring::clock::none>> untimed({.size = 1 << 20});
    bool all = true;
    for (std::uint64_t i = 0; i < 1000; ++i)
        all = record_all(timed, i) && record_all(untimed, i) && all;
    return all ? 0 : 1;
}
