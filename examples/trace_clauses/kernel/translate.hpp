// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Byte code of clauses as a BPF program, which the kernel runs where the trace point fires: at
/// that moment, so that what it reads is what the program has there.
/// @code
///   const bpf_code program =
///       translate(session, session.at(point), function_part::entry, {ring, counters, all, much});
/// @endcode
/// At a function the program looks at the segment of the code that fires (0x23 of 32-bit programs,
/// 0x33 of 64-bit ones), and goes on with the clauses' streams of that mode. It computes without
/// branches where it can: the kernel proves a program by all ways through it.

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

/// What a program works with, and for whom.
struct kernel_maps {
    int ring = -1;      ///< BPF_MAP_TYPE_RINGBUF
    int counters = -1;  ///< BPF_MAP_TYPE_PERCPU_ARRAY of clause_counts: each clause, and then all
    std::uint32_t all = 0;    ///< the last one's number
    std::uint32_t much = 0;   ///< so many bytes in the ring wake who waits; at most 2^30
    process_filter only{};    ///< at a function or probe
    std::uint32_t stack = 0;  ///< bytes of the stack_snapshot's stack, by its steps; 0: no snapshot
};

struct translation {
    program_mode call_mode = program_mode::lp64;  ///< of a system call
    std::uint32_t call_number = 0;                ///< and its number
    bool by_cookie = false;   ///< the one clause's number is what the probe has as its cookie
    bool is_session = false;  ///< the program runs at the entry, too, and says what is awaited
    /// Of exits: BPF_MAP_TYPE_LRU_HASH, when what was entered, and behind that, if there is such a
    /// clause, the kept_words that it left there.
    int entered = -1;
    std::optional<std::uint32_t> entry{};
    /// The function returns where it is entered: it is noted by the same program.
    bool notes_here = false;
};

/// The program for a trace point with these clauses, in their order. Its length is bounded by that
/// of their code; if a jump in it is too long, bpf_code::too_far says so. That of a system call is
/// for one mode alone, as its number is.
[[nodiscard]] bpf_code translate(const point::clauses& session,
                                 std::span<const std::uint32_t> clauses, function_part part,
                                 const kernel_maps& maps, translation how = {});
/// The program for the entry of a function at whose returns these clauses ask for what is noted
/// there, in `how.entered`.
[[nodiscard]] bpf_code note_entries(const point::clauses& session,
                                    std::span<const std::uint32_t> clauses, const kernel_maps& maps,
                                    translation how);
/// The program for the entry of a function whose returns have these clauses. The kernel awaits 64
/// returns of a thread, and drops the others without a word: here they are counted, where it does
/// so. Throws std::runtime_error as offset_in_kernel does.
[[nodiscard]] bpf_code count_unseen_returns(std::span<const std::uint32_t> clauses,
                                            const kernel_maps& maps);
/// Whether the kernel describes what tells of these.
[[nodiscard]] bool describes_unseen_returns();

}  // namespace trace_clauses
