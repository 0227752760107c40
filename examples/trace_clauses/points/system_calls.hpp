// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The system calls of Linux by name and number, for both modes, which have separate tables: number
/// 3 is `close` in a 64-bit program and `read` in a 32-bit one.
/// @code
///   for (const auto& each : system_calls(program_mode::ilp32)) show(each.name, each.number);
/// @endcode

#include <cstdint>
#include <span>
#include <string_view>

#include <trace_ring/record/data_model.hpp>

namespace trace_clauses {

using trace_ring::record::program_mode;

struct system_call {
    std::string_view name;
    std::uint32_t number = 0;
};

/// Ordered by number. From the kernel headers that this was built with.
[[nodiscard]] std::span<const system_call> system_calls(program_mode mode) noexcept;
/// Empty if no call has that number.
[[nodiscard]] std::string_view name_of_system_call(program_mode mode,
                                                   std::uint32_t number) noexcept;

}  // namespace trace_clauses
