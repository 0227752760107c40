// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The place of a function's argument or result, at the entry or after the return: in registers, in
/// memory, in both, or nowhere.
/// @code
///   value_place place{{value_piece{.is = value_piece::kind::reg, .number = 5, .bytes = 8}}, {}};
/// @endcode

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <trace_ring/record/data_model.hpp>

namespace trace_clauses {

/// DWARF's number of the stack pointer.
[[nodiscard]] constexpr std::uint8_t stack_pointer_of(
    trace_ring::record::program_mode mode) noexcept {
    return mode == trace_ring::record::program_mode::lp64 ? 7 : 4;
}

/// Some bytes of a value, following those of the previous piece.
struct value_piece {
    enum class kind : std::uint8_t {
        lost,      ///< the program does not keep them
        reg,       ///< of a general register, from its lowest byte on
        vector,    ///< of a vector register's lower or upper 8 bytes
        x87,       ///< an x87 register, whose number is converted to the value's type
        memory,    ///< at an address
        computed,  ///< the address itself is the value
        constant,  ///< the value is `offset`
    };
    kind is = kind::lost;
    std::uint8_t number = 0;  ///< the register's DWARF number; for vector and x87 registers, from 0
    bool upper = false;       ///< of a vector register
    std::uint64_t bytes = 0;
    /// The address is the register's value plus `offset`.
    std::int64_t offset = 0;
    /// Then, for each element: the pointer at that address plus this offset.
    std::vector<std::int64_t> through{};

    friend bool operator==(const value_piece&, const value_piece&) = default;
};

struct value_place {
    std::vector<value_piece> pieces{};  ///< in the order of memory; empty: unknown
    std::string why_not{};              ///< the reason if the place is unknown

    [[nodiscard]] bool known() const noexcept { return !pieces.empty(); }
    [[nodiscard]] static value_place unknown(std::string why) { return {{}, std::move(why)}; }
    /// At an address.
    [[nodiscard]] static value_place in_memory(std::uint8_t base, std::int64_t offset,
                                               std::uint64_t bytes) {
        value_place made;
        made.pieces.push_back(
            {.is = value_piece::kind::memory, .number = base, .bytes = bytes, .offset = offset});
        return made;
    }
};

}  // namespace trace_clauses
