// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What a program that records includes: events, the recorder, its control, and the sessions that
/// empty it. Rings of your own are in rings.hpp, readers in reading.hpp.
/// @code
///   struct sent : trace_ring::event<"order.sent", trace_ring::field<"id", std::uint64_t>> {};
///   trace_ring::recorder recorder{{.file = "orders.trace"}};
///   recorder.record<sent>(42);
/// @endcode

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

// what is written
#include <trace_ring/record/event.hpp>
#include <trace_ring/record/event/value_names.hpp>

// the policies that a recorder has
#include <trace_ring/policy/claim/per_cpu.hpp>
#include <trace_ring/policy/clock/monotonic.hpp>
#include <trace_ring/policy/clock/none.hpp>
#include <trace_ring/policy/clock/sampled.hpp>
#include <trace_ring/policy/clock/tsc.hpp>

// the recorder
#include <trace_ring/recorder/control.hpp>
#include <trace_ring/recorder/cpu/recorder.hpp>
#include <trace_ring/recorder/crash_snapshot.hpp>
#include <trace_ring/recorder/recorder.hpp>

// sessions that empty it
#include <trace_ring/drain/drainable.hpp>
#include <trace_ring/drain/listener.hpp>
#include <trace_ring/drain/session.hpp>
#include <trace_ring/recorder/drain_source/drain_source.hpp>

#endif
