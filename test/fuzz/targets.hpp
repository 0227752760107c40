// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The targets, one a source file. Of those that are raced the changes come from a second thread at
/// any time, and not at places that an input says: no inputs for libFuzzer, which wants the same to
/// come of the same.

#include <fuzz/fuzz.hpp>

namespace trace_ring_test::fuzz {

#if defined(TRACE_RING_ENABLE_X86_DS)
extern const target aux_buffer_target;   ///< what Linux's intel_bts hands over
extern const target debug_store_target;  ///< what a processor's debug store holds
#endif
extern const target clause_code_target;  ///< byte code of clauses, and trace points as text
extern const target control_target;      ///< a trace file under trace-control's hands
extern const target cptrap_target;       ///< a CPTRAP spool file, and a guest's calls
extern const target das_target;          ///< a guest's storage and its controls
extern const target drain_target;        ///< draining sessions
extern const target drain_raced_target;
extern const target elf_core_target;      ///< a core dump, and the traces in it
extern const target event_filter_target;  ///< globs, and filters of them
extern const target expression_target;    ///< conditions on records, as text
extern const target live_mapping_target;  ///< reading what changes while it is read
extern const target live_mapping_raced_target;
extern const target position_text_target;  ///< places in a trace and clock offsets, as text
extern const target trace_file_target;     ///< a trace file, read in every way
extern const target writer_target;         ///< recorders in a file that others change
extern const target writer_raced_target;

}  // namespace trace_ring_test::fuzz
