// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// CP's trap, of VM/SP: records, their selection, the interface that takes them, CP's own table,
/// and the spool file. Reading the file needs exceptions.

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

// its parts
#include <trace_ring/cptrap/cp_entry.hpp>
#include <trace_ring/cptrap/cp_table.hpp>
#include <trace_ring/cptrap/interface.hpp>
#include <trace_ring/cptrap/record.hpp>
#include <trace_ring/cptrap/ring_record.hpp>
#include <trace_ring/cptrap/selection.hpp>
#include <trace_ring/cptrap/spool.hpp>
#include <trace_ring/cptrap/spool_record.hpp>
#if defined(__cpp_exceptions)
#include <trace_ring/cptrap/collector.hpp>
#include <trace_ring/cptrap/spool_reader.hpp>
#endif

#endif
