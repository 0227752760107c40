// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Where clauses are attached, and what is told of them when they fire, whichever source sees it.
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

/// Where in a function a trace point is, or at a system call: what the stack and the registers hold
/// differs.
enum class function_part : std::uint8_t {
    entry,             ///< before its first instruction
    inside,            ///< at any other
    exit,              ///< where it has returned to
    returning,         ///< before the instructions by which it returns
    system_call,       ///< where the kernel is entered
    system_call_exit,  ///< and left
};
[[nodiscard]] constexpr bool is_system_call(function_part of) noexcept {
    return of >= function_part::system_call;
}
/// Whether a function's result is known there.
[[nodiscard]] constexpr bool is_function_exit(function_part of) noexcept {
    return of == function_part::exit || of == function_part::returning;
}
/// Whether the address that the function returns to is the word on top of the stack.
[[nodiscard]] constexpr bool has_return_on_top(function_part of) noexcept {
    return of == function_part::entry || of == function_part::returning;
}

/// A place in a file that programs run, or a system call.
struct attach_point {
    std::string file{};                          ///< empty of a system call
    std::uint64_t offset = 0;                    ///< in the file; a system call's number
    function_part part = function_part::inside;  ///< an exit's offset is that of the entry
    ::pid_t process = -1;                        ///< of this process; -1: of all
    std::uint64_t semaphore = 0;             ///< offset of a probe's counter of tracers; 0: none
    program_mode mode = program_mode::lp64;  ///< of the file; of a system call: whose number it is
    std::vector<std::uint64_t> returns{};    ///< of function_part::returning: their offsets
    std::vector<std::uint64_t> jumps{};      ///< of function_part::exit: of jumps that may leave it
};
/// A place with the clauses that run there, in their order.
struct planned_point {
    attach_point at{};
    std::vector<std::uint32_t> clauses{};
    /// Of an exit: a clause that runs where the function is entered, whose output is kept_words.
    std::optional<std::uint32_t> entry{};
    const char* returns_elsewhere = nullptr;  ///< of function_part::exit: why it is not `returning`
};
/// A planned point that is not set.
struct point_left_out {
    std::size_t point = 0;  ///< which of them
    std::string cause{};
};

/// What a source tells of a clause that ran; its output follows.
struct firing_record {
    std::uint32_t clause;
    std::uint32_t faults;
    std::uint64_t time;  ///< CLOCK_MONOTONIC, ns
    std::uint32_t pid;
    std::uint32_t tid;
    std::uint32_t cpu;
    std::uint32_t bits;     ///< 32 or 64
    std::uint64_t dropped;  ///< on this processor so far: no room, or a return not seen
    char comm[16];
    /// Of a function that is entered or left: the place of its return address on the stack, which
    /// no other call in the process has until this one ends. Otherwise 0.
    std::uint64_t call;
};
static_assert(sizeof(firing_record) == 64 && offsetof(firing_record, dropped) == 32);

/// What is counted of each clause, on each processor.
struct clause_counts {
    std::uint64_t ran = 0;
    std::uint64_t not_wanted = 0;
    std::uint64_t unreadable = 0;  ///< its predicate could not read what it asks for
    std::uint64_t dropped = 0;     ///< the ring was full; of all clauses, also what is unseen
    std::uint64_t unseen = 0;      ///< returns of functions that called themselves too deeply

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
