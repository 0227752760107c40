// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The places where clauses are attached, and the record that a source passes on for each firing.
/// All sources use the same record.
/// @code
///   source.attach({"/usr/lib/x86_64-linux-gnu/libc.so.6", 0x98860, function_part::entry, pid},
///                 clauses);
///   source.read([](const firing_record& of, std::span<const std::byte> output) { ... });
/// @endcode

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <trace_ring/record/data_model.hpp>

namespace trace_clauses {

using trace_ring::record::program_mode;

/// The part of a function at which a trace point is, or a system call. It determines what the stack
/// and the registers contain.
enum class function_part : std::uint8_t {
    entry,             ///< before its first instruction
    inside,            ///< at any other instruction
    exit,              ///< where the function has returned to
    returning,         ///< before one of its return instructions
    system_call,       ///< at the entry to the kernel
    system_call_exit,  ///< at the return from the kernel
};
[[nodiscard]] constexpr bool is_system_call(function_part of) noexcept {
    return of >= function_part::system_call;
}
/// Returns whether a function's result is known at this part.
[[nodiscard]] constexpr bool is_function_exit(function_part of) noexcept {
    return of == function_part::exit || of == function_part::returning;
}
/// Returns whether the word on top of the stack is the function's return address.
[[nodiscard]] constexpr bool has_return_on_top(function_part of) noexcept {
    return of == function_part::entry || of == function_part::returning;
}

/// A place in a file that programs execute, or a system call.
struct attach_point {
    std::string file{};                          ///< empty for a system call
    std::uint64_t offset = 0;                    ///< offset in the file; for a system call, its
                                                 ///< number
    function_part part = function_part::inside;  ///< for an exit, `offset` is the entry's offset
    ::pid_t process = -1;                        ///< the process to trace; -1: all
    std::uint64_t semaphore = 0;                 ///< offset of a probe's semaphore; 0: none
    program_mode mode = program_mode::lp64;  ///< of the file; for a system call, the mode that its
                                             ///< number belongs to
    std::vector<std::uint64_t> returns{};    ///< for function_part::returning: the offsets of the
                                             ///< returns
    std::vector<std::uint64_t> jumps{};      ///< for function_part::exit: the offsets of jumps that
                                             ///< may leave
};
/// A place with the clauses that run there, in order.
struct planned_point {
    attach_point at{};
    std::vector<std::uint32_t> clauses{};
    /// For an exit: a clause that runs at the function's entry, whose output is kept_words.
    std::optional<std::uint32_t> entry{};
    const char* returns_elsewhere = nullptr;  ///< for function_part::exit: why it is not
                                              ///< `returning`
};
/// A planned point that was not set.
struct point_left_out {
    std::size_t point = 0;  ///< index of the point
    std::string cause{};
};

/// The properties of one clause's firing. The clause's output follows.
struct firing_record {
    std::uint32_t clause;
    std::uint32_t faults;
    std::uint64_t time;  ///< CLOCK_MONOTONIC, ns
    std::uint32_t pid;
    std::uint32_t tid;
    std::uint32_t cpu;
    std::uint32_t bits;     ///< 32 or 64
    std::uint64_t dropped;  ///< lost on this processor so far: no room, or a return was missed
    char comm[16];
    /// For a function's entry or exit: the address of its return address on the stack. It is unique
    /// among the process's calls until this call ends. Otherwise 0.
    std::uint64_t call;
};
static_assert(sizeof(firing_record) == 64 && offsetof(firing_record, dropped) == 32);

/// Counts of one clause on one processor.
struct clause_counts {
    std::uint64_t ran = 0;
    std::uint64_t not_wanted = 0;
    std::uint64_t unreadable = 0;  ///< the predicate could not read a value that it uses
    std::uint64_t dropped = 0;     ///< the ring was full; in the total, also missed returns
    std::uint64_t unseen = 0;      ///< returns missed because functions called themselves too
                                   ///< deeply

    clause_counts& operator+=(const clause_counts& other) noexcept {
        ran += other.ran;
        not_wanted += other.not_wanted;
        unreadable += other.unreadable;
        dropped += other.dropped;
        unseen += other.unseen;
        return *this;
    }
};
static_assert(sizeof(clause_counts) == 40);

}  // namespace trace_clauses
