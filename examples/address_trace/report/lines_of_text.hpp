// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// References as the lines that other tools read, one each:
///
/// | format | load         | store        | update              | block      |
/// |--------|--------------|--------------|---------------------|------------|
/// | lackey | ` L addr,8`  | ` S addr,8`  | ` M addr,8`         | `I  addr,1`|
/// | din    | `0 addr`     | `1 addr`     | `0 addr`, `1 addr`  | `2 addr`   |
///
/// Addresses are hexadecimal; in lackey format they have at least eight digits, as valgrind writes
/// them. valgrind's lackey prints a line for each instruction with its length. Here there is one
/// for each block, with the length 1, because the end of a block is unknown. Its ` M`, for
/// instructions that load and store, is a load and a store here, except for atomic ones. A failed
/// compare-and-exchange is a load. Begins and ends of functions have no line. Neither format
/// distinguishes threads: the runs of threads follow each other.

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>

#include <address_trace/analysis/run.hpp>
#include <address_trace/coverage/code_layout.hpp>

namespace address_trace {

enum class line_format : std::uint8_t { lackey, din };

namespace impl {

inline void append_line(std::string& to, const char* kind, std::uint64_t address,
                        std::size_t least_digits) {
    char text[16];
    const auto end = std::to_chars(text, text + sizeof text, address, 16).ptr;
    const auto digits = static_cast<std::size_t>(end - text);
    to += kind;
    if (digits < least_digits) to.append(least_digits - digits, '0');
    to.append(text, digits);
}

}  // namespace impl

/// Appends the line of a reference, or of a reference with a numbered site. A block is an
/// instruction of one byte. Constant time.
template <class Reference>
void append_line(std::string& to, const Reference& each, line_format format) {
    struct names {
        reference_kind kind;
        const char *lackey, *din, *din_then;
    };
    constexpr names all[] = {{reference_kind::load, " L ", "0 ", nullptr},
                             {reference_kind::store, " S ", "1 ", nullptr},
                             {reference_kind::update, " M ", "0 ", "1 "},
                             {reference_kind::failed_compare, " L ", "0 ", nullptr},
                             {reference_kind::block, "I  ", "2 ", nullptr}};
    for (const names& is : all) {
        if (is.kind != each.kind) continue;
        if (format == line_format::lackey) {
            impl::append_line(to, is.lackey, each.address, 8);
            to += ',' + (each.kind == reference_kind::block ? "1" : std::to_string(each.size));
        } else {
            impl::append_line(to, is.din, each.address, 0);
            if (is.din_then != nullptr) {
                to += '\n';
                impl::append_line(to, is.din_then, each.address, 0);
            }
        }
        to += '\n';
    }
}

/// Appends a line for each instruction of a block. Linear.
inline void append_lines(std::string& to, const block_code& of, line_format format) {
    const bool is_lackey = format == line_format::lackey;
    std::uint64_t at = of.address;
    for (const std::uint8_t length : of.lengths) {
        impl::append_line(to, is_lackey ? "I  " : "2 ", at, is_lackey ? 8 : 0);
        if (is_lackey) to += ',' + std::to_string(length);
        to += '\n';
        at += length;
    }
}

}  // namespace address_trace
