// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What an action has stored: its values, and which of them could not be read.
/// @code
///   if (!is_unreadable(field, output)) show(stored_value(field, output));
/// @endcode

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <trace_ring/point/machine/run.hpp>
#include <trace_ring/record/field.hpp>
#include <trace_ring/reduce/item/record_view.hpp>

#include "../language/compile.hpp"

namespace trace_clauses {

namespace impl {

/// How many elements at `at` come before the first that is 0.
template <class Element>
[[nodiscard]] std::size_t until_zero(std::span<const std::byte> output, std::size_t at,
                                     std::size_t most) {
    for (std::size_t i = 0; i < most; ++i) {
        Element one{};
        std::memcpy(&one, output.subspan(at + i * sizeof one, sizeof one).data(), sizeof one);
        if (one == Element{}) return i;
    }
    return most;
}

}  // namespace impl

[[nodiscard]] inline bool is_unreadable(const stored_field& of, std::span<const std::byte> output) {
    if (of.faults_behind == 0) return false;
    const auto at = [&](std::uint32_t offset) {
        std::uint16_t told = 0;
        if (offset != 0) std::memcpy(&told, output.subspan(offset, 2).data(), 2);
        return told;
    };
    return at(of.faults_behind) != at(of.faults_before);
}
/// Whether it is return addresses.
[[nodiscard]] inline bool is_stack(const stored_field& of) noexcept {
    return of.type == trace_ring::field_type::address && of.form == trace_ring::field_form::array;
}
/// What it stored, as readers of a trace have it: of a text as many bytes as there are.
[[nodiscard]] inline trace_ring::reduce::field_value stored_value(
    const stored_field& of, std::span<const std::byte> output) {
    using trace_ring::field_form;
    using trace_ring::field_type;
    trace_ring::reduce::field_info field;
    field.type = of.type;
    field.form = of.form;
    field.values = of.values;
    if (of.constant) {
        return {field, reinterpret_cast<const std::byte*>(of.constant->data()), of.constant->size(),
                false};
    }
    std::size_t count = of.count;
    std::size_t at = of.offset;
    bool cut = false;
    if (of.form == field_form::variable) {
        std::uint16_t told = 0;
        std::memcpy(&told, output.subspan(at, 2).data(), 2);
        cut = (told & trace_ring::point::text_was_cut) != 0;
        count = std::min<std::size_t>(told & 0x7FFFU, of.count);
        at += 2;
    } else if (of.form == field_form::array) {
        // A text ends at its first 0, and so does a stack.
        if (of.type == field_type::character) count = impl::until_zero<char>(output, at, count);
        if (of.type == field_type::address) {
            count = impl::until_zero<std::uint64_t>(output, at, count);
        }
    }
    return {field, output.subspan(at).data(), count, cut};
}

}  // namespace trace_clauses
