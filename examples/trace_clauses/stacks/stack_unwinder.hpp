// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Who has called, by the unwind information of programs and libraries (.eh_frame, .debug_frame):
/// also where the code has no frame pointers.
/// @code
///   stack_unwinder stacks(code);
///   const std::size_t count = stacks.unwind(pid, fired_at, snapshot_bytes, addresses);
/// @endcode
/// elfutils (libdwfl) unwinds. A stack ends at code without such information, for example code
/// that a JIT compiler made.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include <trace_ring/policy/storage/file.hpp>
#include <trace_ring/record/data_model.hpp>

#include "loaded_code.hpp"

namespace trace_clauses {

/// To be used by one thread at a time.
class stack_unwinder {
public:
    /// `code` must outlive it.
    explicit stack_unwinder(loaded_code& code);
    ~stack_unwinder();

    /// Stores the return addresses of a thread that fired at that time (CLOCK_MONOTONIC, ns), the
    /// innermost first, and returns how many there are. `snapshot`: a stack_snapshot and its stack.
    [[nodiscard]] std::size_t unwind(::pid_t process, std::uint64_t time,
                                     std::span<const std::byte> snapshot,
                                     std::span<std::uint64_t> into);

    /// Number of stacks that were longer than the copied part, or continue on another stack.
    [[nodiscard]] std::uint64_t cut() const noexcept { return cut_; }
    /// Number of stacks that end at code without known unwind information.
    [[nodiscard]] std::uint64_t ended_early() const noexcept { return ended_early_; }

private:
    class program;

    /// -1: unknown
    [[nodiscard]] int kernel_code_of(trace_ring::record::program_mode mode);

    loaded_code& code_;
    std::map<::pid_t, std::unique_ptr<program>> programs_;
    std::map<trace_ring::record::program_mode, trace_ring::file_descriptor> kernel_code_;
    std::uint64_t cut_ = 0;
    std::uint64_t ended_early_ = 0;
};

}  // namespace trace_clauses
