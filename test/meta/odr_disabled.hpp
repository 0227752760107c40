// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What a file that traces shares with one whose tracing is compiled away. The functions and the
/// object that begin with `off` are the other's.

#include <memory>

#include <trace_ring/drain/session.hpp>
#include <trace_ring/policy/claim/per_cpu.hpp>
#include <trace_ring/recorder/cpu/recorder.hpp>
#include <trace_ring/recorder/drain_source/drain_source.hpp>
#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/ring/ring.hpp>

namespace odr {

struct unseen : trace_ring::event<"odr.unseen", trace_ring::field<"number", int>> {};
struct unseen_span : trace_ring::span<"odr.unseen_span"> {};
struct off_by_cpu : trace_ring::policies<trace_ring::claim::per_cpu> {};
using cpu_recorder = trace_ring::basic_recorder<off_by_cpu>;
struct off_table : trace_ring::policies<trace_ring::record::sequenced<int>> {};
/// One object in each file: or the smaller one would be linked in place of the other.
inline trace_ring::ring<off_table> ring_of_each;

/// A recorder as a member lies where both files expect it.
struct service {
    explicit service(const trace_ring::recorder_options& options);
    ~service();
    trace_ring::recorder trace;
    int after = 7;
};

bool off_records(trace_ring::recorder& recorder);
bool off_records(cpu_recorder& recorder);
bool off_records_into_own();
bool off_drains(trace_ring::recorder& recorder);
int off_after(const service& of);
void off_destroys(std::unique_ptr<trace_ring::recorder> recorder);
void off_destroys(std::unique_ptr<cpu_recorder> recorder);
trace_ring::recorder& off_made();
cpu_recorder& off_made_by_cpu();
extern trace_ring::recorder off_global;

}  // namespace odr
