// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Probes that a program's authors put into it (USDT), and where their arguments are: what the
/// notes in `.note.stapsdt` say in the assembler's words.
/// @code
///   const usdt_argument one = parse_usdt_argument("-4@8(%rbp)", program_mode::lp64);
///   one.is == usdt_argument::kind::memory && one.reg == 6 && one.value == 8 && one.is_signed;
/// @endcode
/// Source: https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <trace_ring/record/data_model.hpp>

namespace trace_clauses {

using trace_ring::record::program_mode;

/// Registers have DWARF's numbers for the program's mode, as in point/machine/code.hpp.
struct usdt_argument {
    enum class kind : std::uint8_t {
        unparsed,  ///< `text` says what it would be
        constant,  ///< `value`
        reg,       ///< `reg`: of its value, the `reg_bytes` bytes from bit `reg_shift` on
        memory,    ///< at `value`, more by `reg`, more by `index` times `scale`
        address,   ///< that sum itself
    };
    static constexpr std::uint8_t none = 0xFF;  ///< no such register

    kind is = kind::unparsed;
    std::uint8_t bytes = 0;  ///< 1, 2, 4 or 8
    bool is_signed = false;
    bool is_real = false;
    std::uint8_t reg = none;
    std::uint8_t index = none;
    std::uint8_t scale = 1;
    std::uint8_t reg_bytes = 0;
    std::uint8_t reg_shift = 0;
    std::int64_t value = 0;
    std::string text{};  ///< as the note has it
};

struct usdt_point {
    std::string provider;
    std::string name;
    std::uint64_t address = 0;           ///< of the location, as the file has it
    std::uint64_t offset = 0;            ///< of the location, in the file
    std::uint64_t semaphore_offset = 0;  ///< in the file; 0: there is none
    std::vector<usdt_argument> arguments{};
};

/// A symbol's address, if it is known.
using find_symbol = std::function<std::optional<std::uint64_t>(std::string_view)>;

/// One argument. Variables are found relative to the instruction pointer, which is at `location`
/// when the probe fires, wherever the program was loaded. Never fails: what it does not know is
/// `unparsed`.
[[nodiscard]] usdt_argument parse_usdt_argument(std::string_view text, program_mode mode,
                                                std::uint64_t location = 0,
                                                const find_symbol& find = {});
/// All of a note.
[[nodiscard]] std::vector<usdt_argument> parse_usdt_arguments(std::string_view text,
                                                              program_mode mode,
                                                              std::uint64_t location,
                                                              const find_symbol& find);

}  // namespace trace_clauses
