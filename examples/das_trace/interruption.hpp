// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Program interruptions of the miniature System/370.

#include <cstdint>

#include <trace_ring/das/guest_storage.hpp>

namespace das_example {

/// Interruption codes, of tracing and of the instructions that this machine has.
enum class interruption_code : std::uint16_t {
    none = 0x0000,
    operation = 0x0001,
    protection = 0x0004,
    addressing = 0x0005,
    specification = 0x0006,
    segment_translation = 0x0010,
    page_translation = 0x0011,
    special_operation = 0x0013,
};

/// The name of a code, as the manual has it.
[[nodiscard]] constexpr const char* name_of(interruption_code code) noexcept {
    switch (code) {
        case interruption_code::none:
            return "no interruption";
        case interruption_code::operation:
            return "operation";
        case interruption_code::protection:
            return "protection";
        case interruption_code::addressing:
            return "addressing";
        case interruption_code::specification:
            return "specification";
        case interruption_code::segment_translation:
            return "segment translation";
        case interruption_code::page_translation:
            return "page translation";
        case interruption_code::special_operation:
            return "special operation";
    }
    return "unknown";
}

/// Why an instruction was suppressed: a code, and the logical address that met it.
struct interruption {
    interruption_code code = interruption_code::none;
    std::uint32_t address = 0;

    [[nodiscard]] constexpr explicit operator bool() const noexcept {
        return code != interruption_code::none;
    }
    friend constexpr bool operator==(const interruption&, const interruption&) noexcept = default;

    /// That of an access, or of a trace: program_exception has the machine's codes.
    [[nodiscard]] static constexpr interruption of(trace_ring::program_exception exception,
                                                   std::uint32_t address) noexcept {
        return {static_cast<interruption_code>(exception), address};
    }
    [[nodiscard]] static constexpr interruption of(
        const trace_ring::trace_result& result) noexcept {
        return of(result.exception, result.address);
    }
};

}  // namespace das_example
