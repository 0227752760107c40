// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Rings by policy, their readers, and the sessions and listeners that consume them.
/// @code
///   struct io_trace : trace_ring::policies<trace_ring::record::sequenced<step>,
///                                          trace_ring::claim::fetch_add> {};
///   inline trace_ring::ring<io_trace> io_ring;
/// @endcode

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

// what is written
#include <trace_ring/record/concept.hpp>
#include <trace_ring/record/event.hpp>
#include <trace_ring/record/event/as_field.hpp>
#include <trace_ring/record/event/duration.hpp>
#include <trace_ring/record/event/members.hpp>
#include <trace_ring/record/event/value_names.hpp>

// the families of policies
#include <trace_ring/policy/claim/claim.hpp>
#include <trace_ring/policy/claim/compare_exchange.hpp>
#include <trace_ring/policy/claim/fetch_add.hpp>
#include <trace_ring/policy/claim/per_cpu.hpp>
#include <trace_ring/policy/claim/single_writer.hpp>
#include <trace_ring/policy/clock/clock.hpp>
#include <trace_ring/policy/clock/in_use.hpp>
#include <trace_ring/policy/clock/monotonic.hpp>
#include <trace_ring/policy/clock/none.hpp>
#include <trace_ring/policy/clock/sampled.hpp>
#include <trace_ring/policy/clock/snapshot.hpp>
#include <trace_ring/policy/clock/tsc.hpp>
#include <trace_ring/policy/full/block.hpp>
#include <trace_ring/policy/full/discard_newest.hpp>
#include <trace_ring/policy/full/extend.hpp>
#include <trace_ring/policy/full/full.hpp>
#include <trace_ring/policy/full/overwrite_oldest.hpp>
#include <trace_ring/policy/full/stop.hpp>
#include <trace_ring/policy/gate/always.hpp>
#include <trace_ring/policy/gate/flag.hpp>
#include <trace_ring/policy/gate/gate.hpp>
#include <trace_ring/policy/notify/at_watermark.hpp>
#include <trace_ring/policy/notify/barrier.hpp>
#include <trace_ring/policy/notify/futex.hpp>
#include <trace_ring/policy/notify/never.hpp>
#include <trace_ring/policy/notify/notify.hpp>
#include <trace_ring/policy/notify/threshold.hpp>
#include <trace_ring/policy/notify/ways.hpp>
#include <trace_ring/policy/storage/heap.hpp>
#include <trace_ring/policy/storage/inline_bytes.hpp>
#include <trace_ring/policy/storage/mapped.hpp>
#include <trace_ring/policy/storage/shared_file.hpp>
#include <trace_ring/policy/storage/storage.hpp>

// rings
#include <trace_ring/ring/presets.hpp>
#include <trace_ring/ring/ring.hpp>

// sessions and listeners
#include <trace_ring/drain/drainable.hpp>
#include <trace_ring/drain/listener.hpp>
#include <trace_ring/drain/session.hpp>
#include <trace_ring/ring/drain.hpp>

#endif
