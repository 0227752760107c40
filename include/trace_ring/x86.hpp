// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The x86 debug store, only with TRACE_RING_ENABLE_X86_DS: the store of a processor and its
/// records, a simulated processor, and what Linux offers of it.

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

// branches, wherever they come from
#include <trace_ring/x86/branch_record.hpp>
#include <trace_ring/x86/branch_source.hpp>

// the debug store of one processor
#include <trace_ring/x86/ds/branch_store.hpp>
#include <trace_ring/x86/ds/hardware/bts_setting.hpp>
#include <trace_ring/x86/ds/hardware/ds_layout.hpp>
#include <trace_ring/x86/ds/hardware/features.hpp>
#include <trace_ring/x86/ds/hardware/msr_access.hpp>
#include <trace_ring/x86/ds/hardware/pebs_record.hpp>
#include <trace_ring/x86/ds/msr/msr_device.hpp>
#include <trace_ring/x86/ds/msr/ring0_msr.hpp>
#include <trace_ring/x86/ds/simulated_cpu.hpp>
#include <trace_ring/x86/ds/stored_branches.hpp>

// what Linux offers
#include <trace_ring/x86/linux/aux_buffer.hpp>
#include <trace_ring/x86/linux/perf_bts.hpp>
#include <trace_ring/x86/linux/perf_event.hpp>
#include <trace_ring/x86/linux/perf_host.hpp>
#include <trace_ring/x86/linux/perf_ring.hpp>

#endif
