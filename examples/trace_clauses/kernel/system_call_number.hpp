// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// System calls of both modes by one number.
/// @code
///   const std::uint32_t number = number_among_calls(program_mode::ilp32, 162);  // 1186
/// @endcode

#include <cstdint>

#include <trace_ring/record/data_model.hpp>

namespace trace_clauses {

inline constexpr std::int32_t most_call_numbers = 1024;  // of one mode

/// Those of 32 bits are behind the others.
[[nodiscard]] constexpr std::uint32_t number_among_calls(trace_ring::record::program_mode mode,
                                                         std::uint32_t number) noexcept {
    const bool narrow = mode == trace_ring::record::program_mode::ilp32;
    return number + (narrow ? static_cast<std::uint32_t>(most_call_numbers) : 0U);
}

}  // namespace trace_clauses
