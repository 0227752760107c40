// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Generates code for values: C's operators, members, elements and casts.
/// @code
///   const operand kept = values.value(expression);  // leaves one word
/// @endcode

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "../../expressions/nearest.hpp"
#include "compile.hpp"
#include "known_types.hpp"
#include "named_code.hpp"
#include "typed_code.hpp"

namespace trace_clauses {

using trace_ring::point::form;

/// All functions throw mistake. The derived class defines conditions.
class value_code {
public:
    explicit value_code(const environment& in) : types_(in.types), names_(in, code_) {}
    value_code(const value_code&) = delete;
    value_code& operator=(const value_code&) = delete;

    [[nodiscard]] typed_code& code() noexcept { return code_; }
    [[nodiscard]] known_types& types() noexcept { return types_; }

    /// Compiles any expression: to a number, or to an object's address.
    operand compile(const expression& of) {
        count_step(of);
        switch (of.what) {
            case form::constant:
            case form::duration:
                return constant_of(of);
            case form::text:
                refuse(of, "a text can be compared with a text");
            case form::name:
            case form::field:
                return named(of);
            case form::element:
            case form::indexed:
                return indexed(of);
            case form::member:
                return member_of(of, compile(of.parts[0]), of.word);
            case form::through: {
                const operand found = compile(of.parts[0]);
                if (types_.of(found).is == type::kind::structure) {
                    refuse(of, "'->' of " + types_.shown(found.type) +
                                   ", which is not a pointer: write ." + of.word);
                }
                const operand pointer = value_of(of.parts[0], found);
                if (types_.of(pointer).is != type::kind::pointer) {
                    refuse(of.parts[0],
                           "'->' of " + types_.shown(pointer.type) + ", which is not a pointer");
                }
                return member_of(of, {operand::kind::object, types_.of(pointer).of, {}}, of.word);
            }
            case form::negated:
                return with_signs(of);
            case form::sum:
            case form::product:
                return chain(of);
            case form::cast:
                return cast(of);
            case form::call:
                return call(of);
            case form::type_name:
                refuse(of, "a type, where a value is needed");
            default:
                condition(of);
                return types_.number(as_int);
        }
    }
    /// Compiles to a whole number or a pointer; for an array, to the address of its first element.
    operand value(const expression& of) { return value_of(of, compile(of)); }
    /// The same for an expression that has been compiled.
    operand value_of(const expression& of, const operand& made) {
        if (made.is == operand::kind::number) return made;
        const bool placed = made.is == operand::kind::placed;
        const type& is = types_.of(made);
        switch (is.is) {
            case type::kind::integer:
            case type::kind::pointer:
                if (is.size.bytes > 8) refuse(of, "a number of more than 8 bytes");
                if (made.bits.width != 0) {
                    if (placed) {
                        names_.push_placed(of, made, made.bits.bytes);
                    } else {
                        code_.load({made.bits.bytes, false});
                    }
                    code_.extract(made.bits, is.is_signed);
                } else if (placed) {
                    names_.push_placed(of, made, is.size.bytes);
                    code_.narrow(types_.integer_of(made.type));
                } else {
                    code_.load(types_.integer_of(made.type));
                }
                return {operand::kind::number, made.type, made.bits};
            case type::kind::array:
                if (placed) refuse(of, "it is in registers: name an element, or capture all");
                return {operand::kind::number, types_.table().pointer_to(is.of), {}};
            case type::kind::real:
                refuse(of, "floating-point numbers can be captured, and not computed with");
            case type::kind::structure:
                refuse(of, "a structure: name a member of it");
            case type::kind::nothing:
                if (is.passed == type::passing::whole)
                    refuse(of, "a number of more than 8 bytes: cast it to a smaller type");
                if (is.passed == type::passing::real)
                    refuse(of, "a floating-point number of a type that no field has");
                break;
        }
        refuse(of, "it has no value that is known");
    }
    /// A value that is not a pointer.
    operand whole(const expression& of) {
        const operand made = value(of);
        if (types_.of(made).is == type::kind::pointer)
            refuse(of, "a pointer, where a number is needed");
        return made;
    }
    /// Loads the pointer or number whose address is on the stack.
    operand loaded(const expression& of, const operand& object) {
        const type& is = types_.of(object);
        if (is.is != type::kind::pointer && is.is != type::kind::integer) refuse(of, "no pointer");
        code_.load(types_.integer_of(object.type));
        return {operand::kind::number, object.type, object.bits};
    }
    /// A constant within these bounds.
    [[nodiscard]] std::uint32_t constant(const expression& of, std::uint32_t low,
                                         std::uint32_t high) {
        const auto as = [](std::uint32_t n) { return point::number::of(std::uint64_t{n}); };
        if (of.what != form::constant || of.value.floating() || of.value < as(low) ||
            of.value > as(high)) {
            refuse(of, "a number from " + std::to_string(low) + " to " + std::to_string(high) +
                           " is needed");
        }
        return static_cast<std::uint32_t>(of.value.real());
    }

    /// The name of the point that fires, if the expression is one. Generates no code.
    [[nodiscard]] std::optional<std::string> text_of_point(const expression& of) const {
        return names_.text_of_point(of);
    }
    /// Pushes at most 8 bytes of a value in registers, zero-extended.
    void push_placed(const expression& of, const operand& from, std::uint64_t bytes) {
        names_.push_placed(of, from, bytes);
    }

    /// Returns the result of `what`, and drops the code that it generates.
    template <class Do>
    [[nodiscard]] auto without_code(const Do& what) {
        typed_code kept = std::exchange(code_, typed_code{});
        auto made = what();
        code_ = std::move(kept);
        return made;
    }

protected:
    using op = point::op;

    ~value_code() = default;
    /// Pushes 0 or 1.
    virtual void condition(const expression& of) = 0;
    /// Converts the two words on the stack to a common type. The first word's code ends at `at`.
    integer_type convert(std::size_t at, const operand& a, const operand& b) {
        const integer_type from = types_.arithmetic_of(a);
        const integer_type with = types_.arithmetic_of(b);
        const integer_type both = integer_type::common(from, with);
        code_.convert(at, from, both);
        code_.convert(code_.size(), with, both);
        return both;
    }

    /// Bounds the work for a text whose parts are compiled several times, such as nested
    /// comparisons of texts.
    void count_step(const expression& of) {
        if (++steps_ > most_steps || code_.size() > point::most_instructions)
            refuse(of, "it is too long");
    }

    typed_code code_;
    known_types types_;

private:
    static constexpr std::size_t most_steps = 100'000;

    operand constant_of(const expression& of) {
        if (of.value.floating()) refuse(of, "a whole number is needed");
        if (!of.word.empty()) {
            const std::uint64_t value = whole_of(of.value);
            code_.constant(value);
            return types_.number(types_.constant_of(value, of.word));
        }
        const auto zero = point::number::of(std::uint64_t{0});
        const bool negative = of.value < zero;
        const auto least = point::number::of(std::int64_t{INT64_MIN});
        std::uint64_t bits = 0;
        if (negative) {
            // Computed from the lowest value: the magnitude may exceed the range of a signed
            // number.
            bits = (std::uint64_t{1} << 63) + whole_of(of.value - least);
        } else {
            bits = whole_of(of.value);
        }
        const bool is_signed = negative || bits <= INT64_MAX;
        if (is_signed && of.what == form::constant)
            return names_.constant(static_cast<std::int64_t>(bits));
        code_.constant(bits);
        return types_.number(is_signed ? as_long_long : as_ulong_long);
    }
    /// For a number that is not negative.
    [[nodiscard]] static std::uint64_t whole_of(const point::number& of) noexcept {
        std::uint64_t value = 0;
        for (std::uint64_t bit = std::uint64_t{1} << 63; bit != 0; bit /= 2) {
            if (point::number::of(value | bit) <= of) value |= bit;
        }
        return value;
    }

    operand named(const expression& of) {
        // A name includes its members: order.in.first.
        std::string_view rest = of.word;
        const std::size_t dot = of.what == form::name ? rest.find('.') : std::string_view::npos;
        const std::string_view name = rest.substr(0, dot);
        operand made = referred(
            of, of.what == form::name ? names_.word(of, name) : names_.argument_named(of, of.word));
        for (std::size_t end = dot; end != std::string_view::npos;) {
            rest.remove_prefix(end + 1);
            end = rest.find('.');
            made = member_of(of, made, rest.substr(0, end));
        }
        return made;
    }

    /// The object that a reference refers to. Other operands are returned unchanged.
    operand referred(const expression& of, const operand& made) {
        if (!types_.of(made).is_reference) return made;
        const operand address = value_of(of, made);
        return {operand::kind::object, types_.of(address).of, {}};
    }
    /// The object's address, or the pointer's value, is on the stack.
    operand member_of(const expression& of, operand object, std::string_view name) {
        const type& is = types_[object.type];
        if (object.is == operand::kind::number && is.is == type::kind::pointer) {
            refuse(of, "'.' of a pointer: write ->" + std::string(name));
        }
        if (is.is != type::kind::structure) {
            refuse(of, "'" + std::string(name) + "' of " + types_.shown(object.type) +
                           (is.is == type::kind::nothing ? ", of which nothing is known here"
                                                         : ", which is not a structure"));
        }
        std::uint64_t offset = 0;
        const member* const found = types_.find_member(is, name, offset);
        if (found == nullptr) {
            expressions::nearest to(name, 3);
            for (const auto& each : is.members) to.look(each.name);
            std::string said =
                types_.shown(object.type) + " has no member '" + std::string(name) + "'";
            if (!to.found().empty()) {
                said += to.suggestion();
            } else {
                said += is.members.empty() ? "" : "; it has";
                for (const auto& each : is.members) said += " '" + each.name + "'";
            }
            refuse(of, said);
        }
        if (object.is == operand::kind::placed) {
            return referred(of, {operand::kind::placed, found->type, found->bits, object.place,
                                 object.offset + offset});
        }
        if (offset != 0) {
            code_.constant(offset);
            code_.append({op::add});
            names_.narrow_address();
        }
        return referred(of, {operand::kind::object, found->type, found->bits});
    }

    operand indexed(const expression& of) {
        expression base;
        expression index;
        if (of.what == form::element) {
            base = expression::of_name(of.word);
            base.column = of.column;
            base.length = of.word.size();
            index = expression::of(of.value);
            index.column = of.column;
            index.length = of.length;
        }
        const expression& at = of.what == form::element ? base : of.parts[0];
        const expression& which = of.what == form::element ? index : of.parts[1];
        const operand array = compile(at);
        if (array.is == operand::kind::placed && types_.of(array).is == type::kind::array) {
            const type is = types_.of(array);
            const std::uint32_t number = constant(
                which, 0,
                static_cast<std::uint32_t>(
                    std::max<std::uint64_t>(std::min<std::uint64_t>(is.count, 64), 1) - 1));
            return {operand::kind::placed,
                    is.of,
                    {},
                    array.place,
                    array.offset + number * types_[is.of].size.bytes};
        }
        const operand pointer = value_of(at, array);
        const type pointed = types_.of(pointer);
        if (pointed.is != type::kind::pointer) {
            refuse(at, "an element of " + types_.shown(pointer.type) +
                           ", which is neither an array nor a pointer");
        }
        const std::uint64_t size = types_[pointed.of].size.bytes;
        if (size == 0) refuse(at, "elements whose size is not known");
        static_cast<void>(whole(which));
        code_.constant(size);
        code_.append({op::multiply});
        code_.append({op::add});
        names_.narrow_address();
        return {operand::kind::object, pointed.of, {}};
    }
    operand with_signs(const expression& of) {
        operand made;
        bool first = true;
        for (std::size_t i = of.signs.size(); i-- > 0; first = false) {
            const char sign = of.signs[i];
            if (sign == '&') {
                if (first) made = compile(of.parts[0]);
                if (made.is != operand::kind::object)
                    refuse(of, "'&' of what is no object in memory");
                if (made.bits.width != 0) refuse(of, "'&' of a bit-field");
                made = {operand::kind::number, types_.table().pointer_to(made.type), {}};
                continue;
            }
            if (sign == '*') {
                made = first ? value(of.parts[0]) : made;
                if (!first && made.is == operand::kind::object) made = loaded(of, made);
                if (types_.of(made).is != type::kind::pointer)
                    refuse(of, "'*' of what is no pointer");
                made = {operand::kind::object, types_.of(made).of, {}};
                continue;
            }
            if (first) made = whole(of.parts[0]);
            if (!first && made.is == operand::kind::object) made = loaded(of, made);
            const integer_type as = integer_type::common(types_.arithmetic_of(made), as_int);
            if (sign != '+') {
                code_.append({sign == '-' ? op::negate : op::invert});
                code_.narrow(as);
            }
            made = types_.number(as);
        }
        return made;
    }
    operand chain(const expression& of) {
        operand left = value(of.parts[0]);
        for (std::size_t i = 1; i < of.parts.size(); ++i)
            left = combine(of, left, of.signs[i], of.parts[i]);
        return left;
    }
    operand combine(const expression& of, const operand& left, char sign, const expression& with) {
        const bool pointer = types_.of(left).is == type::kind::pointer;
        const std::size_t at = code_.size();
        const operand right = value(with);
        if (pointer || types_.of(right).is == type::kind::pointer) {
            if (!pointer || (sign != '+' && sign != '-') ||
                types_.of(right).is == type::kind::pointer) {
                refuse(of,
                       "of pointers there are POINTER + NUMBER and POINTER - NUMBER; cast it to a "
                       "number");
            }
            const std::uint64_t size = types_[types_.of(left).of].size.bytes;
            code_.constant(size == 0 ? 1 : size);
            code_.append({op::multiply});
            code_.append({sign == '+' ? op::add : op::subtract});
            names_.narrow_address();
            return left;
        }
        if (sign == '<' || sign == '>') {
            const integer_type as = integer_type::common(types_.arithmetic_of(left), as_int);
            const unsigned bits = 8U * as.bytes;
            if (with.what == form::constant &&
                !(with.value < point::number::of(std::uint64_t{bits}))) {
                refuse(with, "a shift by all " + std::to_string(bits) +
                                 " bits or more is undefined in C");
            }
            if (bits < 64) {
                code_.constant(bits - 1);
                code_.append({op::bit_and});
            }
            code_.append({sign == '<'    ? op::shift_left
                          : as.is_signed ? op::shift_right
                                         : op::shift_right_unsigned});
            code_.narrow(as);
            return types_.number(as);
        }
        const integer_type as = convert(at, left, right);
        const auto by = [&]() -> op {
            switch (sign) {
                case '+':
                    return op::add;
                case '-':
                    return op::subtract;
                case '|':
                    return op::bit_or;
                case '^':
                    return op::bit_xor;
                case '*':
                    return op::multiply;
                case '/':
                    return as.is_signed ? op::divide : op::divide_unsigned;
                case '%':
                    return as.is_signed ? op::remainder : op::remainder_unsigned;
                default:
                    return op::bit_and;
            }
        };
        code_.append({by()});
        code_.narrow(as);
        return types_.number(as);
    }
    operand cast(const expression& of) {
        const auto found = find_type(types_.table(), of.word);
        if (!found) refuse(of, "there is no type '" + of.word + "'");
        operand from = compile(of.parts[0]);
        const type& cast_from = types_.of(from);
        if (cast_from.is == type::kind::nothing && cast_from.passed == type::passing::whole &&
            cast_from.size.bytes > 8) {
            // For a larger number, the low half.
            if (from.is == operand::kind::placed) {
                names_.push_placed(of, from, 8);
            } else {
                code_.load(as_ulong_long);
            }
            from = types_.number(as_ulong_long);
        } else {
            from = value_of(of.parts[0], from);
        }
        const type& to = types_[*found];
        if (to.is != type::kind::integer && to.is != type::kind::pointer) {
            refuse(of, "a cast to " + types_.shown(*found) +
                           ", which is neither a number nor a pointer");
        }
        if (to.is_boolean) {
            code_.truth();
            return {operand::kind::number, *found, {}};
        }
        code_.narrow(types_.integer_of(*found));
        return {operand::kind::number, *found, {}};
    }
    operand call(const expression& of) {
        if (of.word == "sizeof") {
            if (of.parts.size() != 1) refuse(of, "sizeof(TYPE) or sizeof(VALUE)");
            const expression& what = of.parts[0];
            std::uint64_t bytes = 0;
            if (what.what == form::type_name) {
                const auto found = find_type(types_.table(), what.word);
                if (!found) refuse(what, "there is no type '" + what.word + "'");
                bytes = types_[*found].size.bytes;
            } else {
                bytes = types_.of(without_code([&] { return compile(what); })).size.bytes;
            }
            if (bytes == 0) refuse(what, "its size is not known");
            code_.constant(bytes);
            return {
                operand::kind::number, types_.table().of(point::c_type::long_integer, false), {}};
        }
        if (of.word == "str" || of.word == "ustack") {
            refuse(of, "'" + of.word + "' can be captured, and is no number");
        }
        expressions::nearest to(of.word, 3);
        for (const std::string_view each : {"str", "sizeof", "ustack"}) to.look(each);
        refuse(of,
               "there is no function '" + of.word + "'" +
                   (to.found().empty() ? "; there are str, sizeof and ustack" : to.suggestion()));
    }

    named_code names_;
    std::size_t steps_ = 0;
};

}  // namespace trace_clauses
