// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Byte code under construction, and the types of the words that it leaves: C's conversions, loads
/// and arithmetic, as instructions.
/// @code
///   code.constant(4096);
///   code.append({point::op::exceeds_unsigned});
/// @endcode

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <trace_ring/point/machine/code.hpp>

#include "../types/type_table.hpp"

namespace trace_clauses {

/// What an expression has left on the stack: one word, or none.
struct operand {
    enum class kind : std::uint8_t {
        number,  ///< the value, extended to 64 bits as its type says
        object,  ///< its address
        placed,  ///< nothing: the object is in registers, in `place`
    };
    kind is = kind::number;
    type_id type = 0;
    point::bit_field bits{};             ///< of an object, width 0: all of it
    const value_place* place = nullptr;  ///< which outlives the compilation
    std::uint64_t offset = 0;            ///< of the object, in its place
};

/// Whole numbers by what C's conversions ask of them.
struct integer_type {
    std::uint8_t bytes = 4;
    bool is_signed = true;

    friend bool operator==(const integer_type&, const integer_type&) = default;
    [[nodiscard]] point::width width() const noexcept {
        const unsigned size = bytes == 1 ? 0U : bytes == 2 ? 1U : bytes == 4 ? 2U : 3U;
        return static_cast<point::width>(size + (is_signed ? 4U : 0U));
    }
    /// The type in which both are added: at least int; of two as wide, the unsigned one.
    [[nodiscard]] static integer_type common(integer_type a, integer_type b) noexcept {
        const auto promoted = [](integer_type of) {
            return of.bytes < 4 ? integer_type{4, true} : of;
        };
        a = promoted(a);
        b = promoted(b);
        if (a.bytes != b.bytes) return a.bytes > b.bytes ? a : b;
        return {a.bytes, a.is_signed && b.is_signed};
    }
};

class typed_code {
public:
    [[nodiscard]] std::size_t size() const noexcept { return code_.size(); }
    [[nodiscard]] std::vector<point::instruction> take() { return std::move(code_); }

    /// Whether something may not be readable, from that instruction on.
    [[nodiscard]] bool may_fail(std::size_t from) const noexcept {
        return std::any_of(
            code_.begin() + static_cast<std::ptrdiff_t>(from), code_.end(),
            [](const point::instruction& one) {
                using point::op;
                using point::context_word;
                const auto what = static_cast<context_word>(one.what);
                const bool may_be_unknown =
                    one.code == op::context &&
                    (what == context_word::elapsed || what == context_word::address);
                return may_be_unknown || one.code == op::argument || one.code == op::load ||
                       one.code == op::store_text || one.code == op::store_bytes ||
                       (one.code >= op::divide && one.code <= op::remainder_unsigned);
            });
    }
    void append(point::instruction one) { code_.push_back(one); }
    void constant(std::uint64_t value) { point::append_constant(code_, value); }
    /// Cuts the word on top to the type's width and extends it again.
    void narrow(integer_type to) { insert_narrow(code_.size(), to); }
    /// The same for a word whose code ends at `at`, with another one's behind it.
    void insert_narrow(std::size_t at, integer_type to) {
        if (to.bytes >= 8) return;
        code_.insert(code_.begin() + static_cast<std::ptrdiff_t>(at),
                     {point::op::narrow, static_cast<std::uint8_t>(to.width())});
    }
    /// The conversion of a word whose code ends at `at`: how many instructions that took.
    std::size_t convert(std::size_t at, integer_type from, integer_type to) {
        const bool same = from == to || to.bytes == 8 || (from.bytes < to.bytes && to.is_signed) ||
                          (from.bytes < to.bytes && !from.is_signed);
        if (same) return 0;
        insert_narrow(at, to);
        return 1;
    }
    void load(integer_type of, std::uint64_t offset = 0) {
        if (offset > INT32_MAX) {
            constant(offset);
            append({point::op::add});
            offset = 0;
        }
        append({point::op::load, static_cast<std::uint8_t>(of.width()), 0,
                static_cast<std::int32_t>(offset)});
    }
    /// Of the word on top, these bits, extended.
    void extract(const point::bit_field& of, bool is_signed) {
        constant(64U - of.first_bit - of.width);
        append({point::op::shift_left});
        constant(64U - of.width);
        append({is_signed ? point::op::shift_right : point::op::shift_right_unsigned});
    }
    /// 1 unless the word on top is 0.
    void truth() {
        append({point::op::is_zero});
        append({point::op::is_zero});
    }
    /// A skip whose end is not known yet; `here` is its end.
    [[nodiscard]] std::size_t skip(point::op how) {
        append({how});
        return code_.size() - 1;
    }
    void here(std::size_t skip) {
        code_[skip].value = static_cast<std::int32_t>(code_.size() - skip - 1);
    }

private:
    std::vector<point::instruction> code_;
};

}  // namespace trace_clauses
