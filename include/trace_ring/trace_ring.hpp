// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The portable whole, in the order the data flows. What reads files and shows them needs
/// exceptions, and is left out of what is compiled without.

// what everything rests on
#include <trace_ring/atomic.hpp>
#include <trace_ring/fwd.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/position.hpp>

// what is written
#include <trace_ring/cptrap/cp_entry.hpp>
#include <trace_ring/cptrap/record.hpp>
#include <trace_ring/cptrap/ring_record.hpp>
#include <trace_ring/cptrap/selection.hpp>
#include <trace_ring/cptrap/spool_record.hpp>
#include <trace_ring/das/entry.hpp>
#include <trace_ring/record/event.hpp>

// the families of policies
#include <trace_ring/das/control_words.hpp>
#include <trace_ring/das/controls.hpp>
#include <trace_ring/policy/claim/claim.hpp>
#include <trace_ring/policy/claim/compare_exchange.hpp>
#include <trace_ring/policy/claim/fetch_add.hpp>
#include <trace_ring/policy/claim/per_cpu.hpp>
#include <trace_ring/policy/claim/single_writer.hpp>
#include <trace_ring/policy/clock/clock.hpp>
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
#include <trace_ring/policy/gate/static_key.hpp>
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

// one ring, from policies
#include <trace_ring/ring/presets.hpp>
#include <trace_ring/ring/ring.hpp>
#include <trace_ring/ring/sub_buffers/drain.hpp>

// CPTRAP: data handed over by code, and the spool file that it goes to
#include <trace_ring/cptrap/interface.hpp>
#include <trace_ring/cptrap/spool.hpp>

// the historic tables, in a guest's storage
#include <trace_ring/cptrap/cp_table.hpp>
#include <trace_ring/das/guest_memory.hpp>
#include <trace_ring/das/table.hpp>

// the application's flight recorder
#include <trace_ring/recorder/control.hpp>
#include <trace_ring/recorder/cpu/recorder.hpp>
#include <trace_ring/recorder/crash_snapshot.hpp>
#include <trace_ring/recorder/in_place/source.hpp>
#include <trace_ring/recorder/recorder.hpp>

// sessions that empty it in place
#include <trace_ring/drain/drainable.hpp>
#include <trace_ring/drain/listener.hpp>
#include <trace_ring/drain/session.hpp>

// reading what was recorded, and showing it
#if defined(__cpp_exceptions)
#include <trace_ring/cptrap/spool_reader.hpp>
#include <trace_ring/exporter/chrome.hpp>
#include <trace_ring/exporter/csv.hpp>
#include <trace_ring/exporter/ctf.hpp>
#include <trace_ring/exporter/json.hpp>
#include <trace_ring/exporter/perfetto.hpp>
#include <trace_ring/exporter/text.hpp>
#include <trace_ring/reduce/core/core_traces.hpp>
#include <trace_ring/reduce/core/elf_core.hpp>
#include <trace_ring/reduce/seek/clock_offset.hpp>
#include <trace_ring/reduce/span/pairs.hpp>
#include <trace_ring/reduce/trace_file.hpp>
#include <trace_ring/reduce/where/check.hpp>
#include <trace_ring/reduce/where/predicate.hpp>
#endif
