// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "system_calls.hpp"

#include <algorithm>

namespace trace_clauses {
namespace {

// Made of <asm/unistd_64.h> and <asm/unistd_32.h> by CMakeLists.txt.
constexpr system_call of_64_bits[] = {
#include "system_calls_64.inc"
};
constexpr system_call of_32_bits[] = {
#include "system_calls_32.inc"
};

constexpr auto by_number = [](const system_call& a, const system_call& b) {
    return a.number < b.number;
};
static_assert(std::is_sorted(std::begin(of_64_bits), std::end(of_64_bits), by_number));
static_assert(std::is_sorted(std::begin(of_32_bits), std::end(of_32_bits), by_number));

}  // namespace

std::span<const system_call> system_calls(program_mode mode) noexcept {
    if (mode == program_mode::lp64) return of_64_bits;
    return of_32_bits;
}

std::string_view name_of_system_call(program_mode mode, std::uint32_t number) noexcept {
    const auto all = system_calls(mode);
    const auto found = std::lower_bound(all.begin(), all.end(), system_call{{}, number}, by_number);
    return found == all.end() || found->number != number ? std::string_view() : found->name;
}

}  // namespace trace_clauses
