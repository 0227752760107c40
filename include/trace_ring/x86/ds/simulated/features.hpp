// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The features of a simulated processor, and its behaviour where the manuals do not say.

#include <trace_ring/x86/enabled.hpp>

#include <cstdint>

#include <trace_ring/x86/ds/hardware/bts_setting.hpp>
#include <trace_ring/x86/ds/hardware/features.hpp>

namespace trace_ring::inline v1::x86 {

/// What happens to a branch in interrupt mode if there is no room. The manuals say only that the
/// processor does not disable itself.
enum class when_full : std::uint8_t {
    not_said,
    drops,      ///< it is not stored; the index stays, and no interrupt is requested
    wraps,      ///< it is stored at the base
    continues,  ///< it is stored behind the maximum, if there is memory
};
/// Where the index is after the last record of a circular buffer has been stored.
enum class when_round : std::uint8_t {
    not_said,
    at_base,     ///< it wraps with the last record
    at_maximum,  ///< it wraps with the next one
};
/// Which privilege level decides about a branch between a level that is stored and one that is not.
enum class when_crossing : std::uint8_t { not_said, origin, target };

/// The options of a simulated processor.
struct simulated_features {
    when_full full = when_full::not_said;
    when_round round = when_round::not_said;
    when_crossing crossing = when_crossing::not_said;
    bool intel = true, ds = true, bts = true, pebs = true;
    bool cpl = true;   ///< DS-CPL
    bool pdcm = true;  ///< without it, PEBS records are of format 0
    std::uint8_t pebs_format = 0;
    processor_mode mode = processor_mode::ia32e;  ///< used only for the layout lp64
    bool dtes64 = true;                           ///< used only for the layout lp64
    debugctl_bits control = ia32_debugctl;
    unsigned linear_bits = 48;  ///< of an address; 57 with five levels of pages
};

}  // namespace trace_ring::inline v1::x86
