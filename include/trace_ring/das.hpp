// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The trace tables of System/370: tracing into a guest's storage as the machine does it, and the
/// claim by its control words for rings of a host.

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

// their parts
#include <trace_ring/das/control_words.hpp>
#include <trace_ring/das/controls.hpp>
#include <trace_ring/das/designation.hpp>
#include <trace_ring/das/entry.hpp>
#include <trace_ring/das/guest_memory.hpp>
#include <trace_ring/das/guest_storage.hpp>
#include <trace_ring/das/prepared_trace.hpp>
#include <trace_ring/das/table.hpp>
#include <trace_ring/das/table_entries.hpp>

#endif
