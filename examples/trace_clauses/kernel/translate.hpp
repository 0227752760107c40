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
#include <span>

#include <trace_ring/point/clauses.hpp>
#include <trace_ring/record/data_model.hpp>

#include "bpf_code.hpp"
#include "followed_processes.hpp"

namespace trace_clauses {

namespace point = trace_ring::point;
using trace_ring::record::program_mode;

/// What a program hands over for a clause that ran; its output follows.
struct kernel_record {
    std::uint32_t clause;
    std::uint32_t faults;
    std::uint64_t time;  ///< CLOCK_MONOTONIC, ns
    std::uint32_t pid;
    std::uint32_t tid;
    std::uint32_t cpu;
    std::uint32_t bits;     ///< 32 or 64
    std::uint64_t dropped;  ///< on this processor so far: the ring was full, or a return not seen
    char comm[16];
};
static_assert(sizeof(kernel_record) == 56 && offsetof(kernel_record, dropped) == 32);

/// What is counted of each clause, on each processor.
struct kernel_counts {
    std::uint64_t ran = 0;
    std::uint64_t not_wanted = 0;
    std::uint64_t unreadable = 0;  ///< its predicate could not read what it asks for
    std::uint64_t dropped = 0;     ///< the ring was full; of all clauses, also what is unseen
    std::uint64_t unseen = 0;      ///< returns of functions that called themselves too deeply

    kernel_counts& operator+=(const kernel_counts& other) noexcept {
        ran += other.ran;
        not_wanted += other.not_wanted;
        unreadable += other.unreadable;
        dropped += other.dropped;
        unseen += other.unseen;
        return *this;
    }
};
static_assert(sizeof(kernel_counts) == 40);

/// Where in a function a trace point is, or at a system call: what the stack and the registers hold
/// differs.
enum class function_part : std::uint8_t {
    entry,             ///< before its first instruction
    inside,            ///< at any other
    exit,              ///< where it has returned to
    system_call,       ///< where the kernel is entered
    system_call_exit,  ///< and left
};
[[nodiscard]] constexpr bool is_system_call(function_part of) noexcept {
    return of >= function_part::system_call;
}

/// What a program works with, and for whom.
struct kernel_maps {
    int ring = -1;      ///< BPF_MAP_TYPE_RINGBUF
    int counters = -1;  ///< BPF_MAP_TYPE_PERCPU_ARRAY of kernel_counts: each clause, and then all
    std::uint32_t all = 0;   ///< the last one's number
    std::uint32_t much = 0;  ///< so many bytes in the ring wake who waits; at most 2^30
    process_filter only{};   ///< at a function or probe
};

/// The program for a trace point with these clauses, in their order. Its length is bounded by that
/// of their code; if a jump in it is too long, bpf_code::too_far says so. That of a system call is
/// for one mode alone, as its number is.
[[nodiscard]] bpf_code translate(const point::clauses& session,
                                 std::span<const std::uint32_t> clauses, function_part part,
                                 const kernel_maps& maps,
                                 program_mode call_mode = program_mode::lp64);
/// The program for the entry of a function whose returns have these clauses. The kernel awaits 64
/// returns of a thread, and drops the others without a word: here they are counted, where it does
/// so. Throws std::runtime_error as offset_in_kernel does.
[[nodiscard]] bpf_code count_unseen_returns(std::span<const std::uint32_t> clauses,
                                            const kernel_maps& maps);

}  // namespace trace_clauses
