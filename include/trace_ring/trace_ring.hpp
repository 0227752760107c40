// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// For a program that records: events, the recorder, its control, snapshots at a crash, and the
/// sessions that empty it. A recorder with a lane for each processor needs per_cpu.hpp, too. Rings
/// by policy are in rings.hpp, readers in reading.hpp. To compile less, include
/// recorder/recorder.hpp with draining.hpp, control.hpp or snapshots.hpp as needed.
/// @code
///   struct sent : trace_ring::event<"order.sent", trace_ring::field<"id", std::uint64_t>> {};
///   trace_ring::recorder recorder{{.file = "orders.trace"}};
///   recorder.record<sent>(42);
/// @endcode

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

// what is written
#include <trace_ring/record/event.hpp>
#include <trace_ring/record/event/as_field.hpp>
#include <trace_ring/record/event/duration.hpp>
#include <trace_ring/record/event/members.hpp>
#include <trace_ring/record/event/span.hpp>
#include <trace_ring/record/event/value_names.hpp>

// the policies that a recorder has
#include <trace_ring/policy/claim/per_cpu.hpp>
#include <trace_ring/policy/clock/monotonic.hpp>
#include <trace_ring/policy/clock/none.hpp>
#include <trace_ring/policy/clock/sampled.hpp>
#include <trace_ring/policy/clock/tsc.hpp>

// the recorder
#include <trace_ring/recorder/control.hpp>
#include <trace_ring/recorder/crash_snapshot.hpp>
#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/recorder/spans.hpp>

// sessions that empty it
#include <trace_ring/drain/drainable.hpp>
#include <trace_ring/drain/listener.hpp>
#include <trace_ring/drain/session.hpp>
#include <trace_ring/recorder/drain_source/drain_source.hpp>

#endif
