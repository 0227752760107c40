// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The code of a clause for both modes, side by side.
/// @code
///   dump(std::cout, session, clause, "@@uft:*:libc.so.6:malloc:entry");
/// @endcode

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

#include <trace_ring/point/clauses.hpp>
#include <trace_ring/point/machine/code.hpp>
#include <trace_ring/record/data_model.hpp>

namespace trace_clauses {

/// An instruction as a line: its name, and what it has besides.
[[nodiscard]] inline std::string shown_instruction(const trace_ring::point::instruction& one) {
    using trace_ring::point::op;
    std::string line(trace_ring::point::name_of(one.code));
    constexpr std::string_view widths[] = {"u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64"};
    const bool wide = one.code == op::load || one.code == op::store || one.code == op::narrow;
    if (wide) line += " " + std::string(widths[one.what & 7U]);
    if (!wide && (one.code == op::context || one.code == op::argument || one.code == op::reg)) {
        line += " " + std::to_string(one.what);
    }
    if (one.size != 0) line += " bytes " + std::to_string(one.size);
    const bool has_value = one.code == op::constant || one.code == op::constant_high ||
                           one.code == op::skip || one.code == op::skip_if_zero ||
                           one.code >= op::store || one.value != 0;
    if (has_value) line += " " + std::to_string(one.value);
    return line;
}

inline void dump(std::ostream& out, const trace_ring::point::clauses& of, std::uint32_t clause,
                 std::string_view title) {
    using trace_ring::record::program_mode;
    constexpr std::size_t column = 40;
    out << title << '\n';
    const auto part = [&](std::string_view name, auto member) {
        const auto wide = of.stream_of(clause, program_mode::lp64).*member;
        const auto narrow = of.stream_of(clause, program_mode::ilp32).*member;
        const auto head = [](std::string_view bits, const auto& at) {
            return std::string(bits) + " bits, at " + std::to_string(at.offset) + ", " +
                   std::to_string(at.size) + " instructions";
        };
        const auto lines = [&](std::string left, const std::string& right) {
            left.resize(std::max(left.size() + 1, column), ' ');
            out << "  " << left << right << '\n';
        };
        out << " " << name << '\n';
        lines(head("64", wide), head("32", narrow));
        for (std::uint32_t i = 0; i < std::max(wide.size, narrow.size); ++i) {
            const auto shown = [&](const auto& at) {
                return i < at.size ? shown_instruction(of.at(at)[i]) : std::string();
            };
            lines(shown(wide), shown(narrow));
        }
    };
    part("predicate", &trace_ring::point::clauses::stream::predicate);
    part("action", &trace_ring::point::clauses::stream::action);
}

}  // namespace trace_clauses
