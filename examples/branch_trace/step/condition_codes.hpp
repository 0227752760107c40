// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The conditions of the processor's conditional instructions (Intel SDM volume 1, appendix B).

#include <cstdint>

namespace branch_trace {

/// Whether the condition in the lowest four bits holds for these flags.
[[nodiscard]] constexpr bool condition_holds(unsigned condition, std::uint64_t flags) noexcept {
    const auto bit = [flags](unsigned at) { return (flags >> at & 1U) != 0; };
    const bool carry = bit(0), parity = bit(2), zero = bit(6), sign = bit(7), overflow = bit(11);
    const bool tests[] = {overflow,
                          carry,
                          zero,
                          carry || zero,
                          sign,
                          parity,
                          sign != overflow,
                          zero || sign != overflow};
    return tests[condition >> 1 & 7U] != ((condition & 1U) != 0);
}

}  // namespace branch_trace
