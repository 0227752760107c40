// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The value of `--das`: where the header of a DAS trace table lies in guest storage, and where
/// guest storage lies in a core dump.
/// @code
///   1000  0x1000  X'1000'     the header's address
///   word84                    the header that the word at location 84 designates
///   WORD84+C000               the same of the processor whose prefix is X'C000'
///   1000@7F3A40000000         in a core of an emulator: the address there of guest location 0
/// @endcode
/// All numbers are hexadecimal. Letters may be small or capital.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <trace_ring/das/designation.hpp>

#include "../cptrap/notation.hpp"

namespace trace_reduce::das_storage {

/// A place, as the command line has it.
struct place {
    std::optional<std::uint32_t> header{};  ///< none: the word at `word` has it
    std::uint32_t word = trace_ring::das::designation_location;
    std::optional<std::uint64_t> base{};  ///< of guest location 0 in a core
};

inline constexpr std::string_view forms_of_place =
    "a header's address (1000, 0x1000, X'1000'), word84, or word84+PREFIX, of a core with @BASE, "
    "the address of guest location 0; all hexadecimal";

namespace impl {

[[nodiscard]] inline std::optional<std::uint64_t> hexadecimal(std::string_view text) {
    return parse_number(text, 16);
}
/// `text` begins with `word`, which has small letters, in capitals or not.
[[nodiscard]] inline bool begins_with_word(std::string_view text, std::string_view word) {
    if (text.size() < word.size()) return false;
    return std::equal(word.begin(), word.end(), text.begin(), [](char small, char given) {
        return small == (given >= 'A' && given <= 'Z' ? given + ('a' - 'A') : given);
    });
}

}  // namespace impl

/// Returns an empty text if `text` is a place, which is then in `into`; otherwise the error.
[[nodiscard]] inline std::string parse_place(std::string_view text, place& into) {
    using trace_ring::das::address_mask;
    const auto fault = [](std::string_view of, std::string_view what) {
        return '"' + std::string(of) + "\" " + std::string(what);
    };
    place out;
    const auto at = text.find('@');
    const auto where = text.substr(0, at);
    if (at != std::string_view::npos) {
        out.base = impl::hexadecimal(text.substr(at + 1));
        if (!out.base) return fault(text.substr(at + 1), "is no hexadecimal address of a process");
    }
    constexpr std::string_view word84 = "word84";
    if (impl::begins_with_word(where, word84)) {
        const auto rest = where.substr(word84.size());
        const auto prefix = rest.empty()            ? std::optional<std::uint64_t>{0}
                            : rest.starts_with('+') ? impl::hexadecimal(rest.substr(1))
                                                    : std::nullopt;
        if (!prefix) return fault(where, "is none of: ") + std::string(forms_of_place);
        if (*prefix > address_mask || *prefix % 4096 != 0) {
            return fault(rest.substr(1), "is no prefix: a multiple of X'1000' in 24 bits");
        }
        out.word += static_cast<std::uint32_t>(*prefix);
    } else {
        const auto header = impl::hexadecimal(where);
        if (!header) return fault(where, "is none of: ") + std::string(forms_of_place);
        if (*header > address_mask) return fault(where, "has more than 24 bits");
        if (*header % 8 != 0) {
            return fault(where, "is not on a doubleword boundary, as a table's header is");
        }
        out.header = static_cast<std::uint32_t>(*header);
    }
    into = out;
    return {};
}
/// The error of `parse_place`, for a parser of command lines.
[[nodiscard]] inline std::string fault_of_place(const std::string& text) {
    place ignored;
    return parse_place(text, ignored);
}

}  // namespace trace_reduce::das_storage
