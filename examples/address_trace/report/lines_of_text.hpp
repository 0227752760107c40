// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// References as the lines that other tools read, one each:
///
/// | format | load         | store        | block     |
/// |--------|--------------|--------------|-----------|
/// | lackey | ` L addr,8`  | ` S addr,8`  | `I  addr,1`|
/// | din    | `0 addr`     | `1 addr`     | `2 addr`  |
///
/// Addresses are hexadecimal; lackey's have eight digits at least, as valgrind writes them. lackey
/// has a line for each instruction and its length; here there is one for each block, with the
/// length 1, as where a block ends is not known. Its ` M`, of instructions that load and store, is
/// a load and a store here. What begins and ends a function has no line. Threads are not told
/// apart, as neither format does: a run of one stands after a run of another.

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>

#include <address_trace/analysis/run.hpp>

namespace address_trace {

enum class line_format : std::uint8_t { lackey, din };

/// Appends the line of one reference, or of one whose site has a number. Constant time.
template <class Reference>
void append_line(std::string& to, const Reference& each, line_format format) {
    const bool lackey = format == line_format::lackey;
    if (each.kind > reference_kind::block) return;
    const auto kind = static_cast<std::size_t>(each.kind);
    char text[16];
    const auto end = std::to_chars(text, text + sizeof text, each.address, 16).ptr;
    const auto digits = static_cast<std::size_t>(end - text);
    constexpr const char* lackey_kinds[] = {" L ", " S ", "I  "};
    constexpr const char* din_kinds[] = {"0 ", "1 ", "2 "};
    to += lackey ? lackey_kinds[kind] : din_kinds[kind];
    if (lackey && digits < 8) to.append(8 - digits, '0');
    to.append(text, digits);
    if (lackey) {
        to += ',';
        to += each.kind == reference_kind::block ? "1" : std::to_string(each.size);
    }
    to += '\n';
}

}  // namespace address_trace
