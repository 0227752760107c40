// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Translates the byte code of clauses to a BPF program, which the kernel runs at the moment when
/// the trace point fires. So it reads the program's values at that moment.
/// @code
///   const bpf_code program =
///       translate(session, session.at(point), function_part::entry, {ring, counters, all, much});
/// @endcode
/// At a function, the program checks the code segment of the firing code (0x23 for 32-bit programs,
/// 0x33 for 64-bit ones) and continues with the clauses' code for that mode. It computes without
/// branches where possible, because the kernel verifies every path through a program.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <trace_ring/point/clauses.hpp>

#include "../firings/firing_record.hpp"
#include "bpf_code.hpp"
#include "followed_processes.hpp"

namespace trace_clauses {

namespace point = trace_ring::point;

/// The maps that a program uses, and the firings that it is for.
struct kernel_maps {
    int ring = -1;      ///< BPF_MAP_TYPE_RINGBUF
    int counters = -1;  ///< BPF_MAP_TYPE_PERCPU_ARRAY of clause_counts: each clause, and then all
    std::uint32_t all = 0;    ///< index of the total
    std::uint32_t much = 0;   ///< number of bytes in the ring that wakes the reader; at most 2^30
    process_filter only{};    ///< for a function or probe
    std::uint32_t stack = 0;  ///< maximum bytes in a stack_snapshot, a multiple of its step; 0: no
                              ///< snapshot
};

struct translation {
    program_mode call_mode = program_mode::lp64;  ///< for a system call
    std::uint32_t call_number = 0;                ///< and its number
    bool by_cookie = false;   ///< the probe's cookie is the number of the only clause
    bool is_session = false;  ///< the program also runs at the entry, and decides whether the
                              ///< return is traced
    /// For exits: a BPF_MAP_TYPE_LRU_HASH of entry times. If there is a clause for the entry, each
    /// time is followed by its kept_words.
    int entered = -1;
    std::optional<std::uint32_t> entry{};
    /// The function returns at its first instruction, so this program also stores the entry.
    bool notes_here = false;
};

/// The program for a trace point with these clauses, in order. Its length is bounded by the length
/// of their code. If a jump in it is too long, bpf_code::too_far reports this. A program for a
/// system call is for one mode only, because the call's number is.
[[nodiscard]] bpf_code translate(const point::clauses& session,
                                 std::span<const std::uint32_t> clauses, function_part part,
                                 const kernel_maps& maps, translation how = {});
/// The program for the entry of a function at whose returns these clauses use the entries in
/// `how.entered`.
[[nodiscard]] bpf_code note_entries(const point::clauses& session,
                                    std::span<const std::uint32_t> clauses, const kernel_maps& maps,
                                    translation how);
/// The program for the entry of a function at whose returns these clauses run. The kernel traces 64
/// pending returns per thread, and silently drops others. This program counts the dropped ones.
/// Throws std::runtime_error like offset_in_kernel.
[[nodiscard]] bpf_code count_unseen_returns(std::span<const std::uint32_t> clauses,
                                            const kernel_maps& maps);
/// Returns whether the kernel describes the structures that this needs.
[[nodiscard]] bool describes_unseen_returns();

}  // namespace trace_clauses
