// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "compile.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include <trace_ring/point/check.hpp>
#include <trace_ring/reduce/where/expression/kinds.hpp>

#include "type_names.hpp"
#include "typed_code.hpp"

namespace trace_clauses {
namespace {

using point::context_word;
using point::instruction;
using point::op;
using trace_ring::field_form;
using trace_ring::field_type;
using trace_ring::point::comparison;
using trace_ring::point::form;
using trace_ring::reduce::where::nearest;

constexpr integer_type as_int{4, true};
constexpr integer_type as_long_long{8, true};
constexpr integer_type as_ulong_long{8, false};
constexpr std::uint32_t usual_text = 64;
constexpr std::uint32_t usual_frames = 16;

[[noreturn]] void refuse(const expression& at, std::string what) {
    throw mistake{at.column, at.length, std::move(what)};
}

struct known_word {
    std::string_view name;
    context_word word;
    integer_type type;
};
constexpr std::array known_words{
    known_word{"time", context_word::time, as_ulong_long},
    known_word{"pid", context_word::process, as_int},
    known_word{"tid", context_word::thread, as_int},
    known_word{"uid", context_word::user, {4, false}},
    known_word{"cpu", context_word::processor, as_int},
    known_word{"bits", context_word::bits, as_int},
    known_word{"ip", context_word::address, as_ulong_long},
};

class compiler {
public:
    compiler(std::string_view text, const environment& in) : text_(text), in_(in) {}

    [[nodiscard]] std::vector<instruction> predicate(const expression& of) {
        condition(of);
        return finish(of, {.is_predicate = true});
    }
    void action(const std::vector<expression>& calls, compiled& into) {
        for (const auto& each : calls) into.statements.push_back(act(each));
        into.output_bytes = (used_ + 7) / 8 * 8;
        const expression none;
        into.action = finish(calls.empty() ? none : calls.back(), {into.output_bytes, false});
    }

private:
    [[nodiscard]] std::vector<instruction> finish(const expression& at, point::purpose as) {
        code_.append({op::finish});
        auto made = code_.take();
        if (const auto why = point::find_fault(made, as)) {
            const std::string_view said = why->what;
            refuse(at, said == "the stack is full" ? "too many values within each other"
                       : said == "too much output" ? "more than 4,096 bytes to be captured"
                                                   : "it is too long");
        }
        return made;
    }

    /// What `what` returns; the code that it makes is dropped.
    template <class Do>
    [[nodiscard]] auto without_code(const Do& what) {
        typed_code kept = std::exchange(code_, typed_code{});
        auto made = what();
        code_ = std::move(kept);
        return made;
    }

    // --- Types ---

    [[nodiscard]] const type& type_of(const operand& of) const { return in_.types[of.type]; }
    [[nodiscard]] std::uint8_t address_bytes() const noexcept {
        return in_.types.mode() == program_mode::lp64 ? 8 : 4;
    }
    [[nodiscard]] integer_type integer_of(type_id of) const {
        const type& is = in_.types[of];
        if (is.is == type::kind::pointer) return {address_bytes(), false};
        return {static_cast<std::uint8_t>(is.size.bytes), is.is_signed};
    }
    [[nodiscard]] type_id type_for(integer_type of) {
        using point::c_type;
        switch (of.bytes) {
            case 1:
                return in_.types.of(c_type::character, of.is_signed);
            case 2:
                return in_.types.of(c_type::short_integer, of.is_signed);
            case 4:
                return in_.types.of(c_type::integer, of.is_signed);
            default:
                return in_.types.of(c_type::long_long_integer, of.is_signed);
        }
    }
    [[nodiscard]] operand number(integer_type of) {
        return {operand::kind::number, type_for(of), {}};
    }
    [[nodiscard]] std::string shown(type_id of) const { return shown_type(in_.types, of); }

    // --- Values ---

    /// A whole number or a pointer; the address of an array's first element.
    operand value(const expression& of) {
        operand made = compile(of);
        if (made.is == operand::kind::number) return made;
        const type& is = type_of(made);
        switch (is.is) {
            case type::kind::integer:
            case type::kind::pointer:
                if (is.size.bytes > 8) refuse(of, "a number of more than 8 bytes");
                if (made.bits.width != 0) {
                    code_.load({made.bits.bytes, false});
                    code_.extract(made.bits, is.is_signed);
                } else {
                    code_.load(integer_of(made.type));
                }
                return {operand::kind::number, made.type, {}};
            case type::kind::array:
                return {operand::kind::number, in_.types.pointer_to(is.of), {}};
            case type::kind::real:
                refuse(of, "floating-point numbers can be captured, and not computed with");
            case type::kind::structure:
                refuse(of, "a structure: name a member of it");
            case type::kind::nothing:
                break;
        }
        refuse(of, "it has no value that is known");
    }
    /// A value that is no pointer.
    operand whole(const expression& of) {
        const operand made = value(of);
        if (type_of(made).is == type::kind::pointer)
            refuse(of, "a pointer, where a number is needed");
        return made;
    }
    /// 0 or 1.
    void condition(const expression& of) {
        switch (of.what) {
            case form::all_of:
            case form::any_of:
                join(of, 0);
                return;
            case form::none_of:
                condition(of.parts[0]);
                code_.append({op::is_zero});
                return;
            case form::compared:
                compare(of);
                return;
            case form::among:
                among(of);
                return;
            case form::like:
                refuse(of, "globs are not for clauses: compare with ==");
            case form::truth:
                code_.constant(of.value.is_zero() ? 0 : 1);
                return;
            default:
                static_cast<void>(value(of));
                code_.truth();
        }
    }
    /// The parts from number `first` on: the next one counts only if this one does not decide.
    void join(const expression& of, std::size_t first) {
        condition(of.parts[first]);
        if (first + 1 == of.parts.size()) return;
        const bool all = of.what == form::all_of;
        const std::size_t to_other = code_.skip(op::skip_if_zero);
        if (all) {
            join(of, first + 1);
        } else {
            code_.constant(1);
        }
        const std::size_t to_end = code_.skip(op::skip);
        code_.here(to_other);
        if (all) {
            code_.constant(0);
        } else {
            join(of, first + 1);
        }
        code_.here(to_end);
    }

    /// Two words are there, the first's code ends at `at`: they are converted to a common type.
    integer_type convert(std::size_t at, const operand& a, const operand& b) {
        const integer_type from = integer_of(a.type);
        const integer_type with = integer_of(b.type);
        const integer_type both = integer_type::common(from, with);
        code_.convert(at, from, both);
        code_.convert(code_.size(), with, both);
        return both;
    }
    void compare(const expression& of) {
        const auto is_text = [](const expression& one) { return one.what == form::text; };
        if (is_text(of.parts[0]) || is_text(of.parts[1])) {
            const bool turned = is_text(of.parts[0]);
            if (of.sign != comparison::equal && of.sign != comparison::unequal) {
                refuse(of, "texts are equal or not, and have no order");
            }
            compare_text(of.parts[turned ? 1 : 0], of.parts[turned ? 0 : 1]);
            if (of.sign == comparison::unequal) code_.append({op::is_zero});
            return;
        }
        // There is "exceeds" alone: w < x is x > w.
        const bool turned = of.sign == comparison::less || of.sign == comparison::at_least;
        const expression& first = of.parts[turned ? 1 : 0];
        const expression& second = of.parts[turned ? 0 : 1];
        integer_type both = as_int;
        if (is_condition(first) || is_condition(second)) {
            condition(first);
            condition(second);
        } else {
            const operand a = value(first);
            const std::size_t at = code_.size();
            both = convert(at, a, value(second));
        }
        const bool equal = of.sign == comparison::equal || of.sign == comparison::unequal;
        code_.append({equal ? op::equals : both.is_signed ? op::exceeds : op::exceeds_unsigned});
        const bool negated = of.sign == comparison::unequal || of.sign == comparison::at_most ||
                             of.sign == comparison::at_least;
        if (negated) code_.append({op::is_zero});
    }
    [[nodiscard]] static bool is_condition(const expression& of) noexcept {
        return of.what >= form::compared || of.what == form::truth;
    }

    /// One range after the other: the value is computed for each, for the stack has no copies.
    void among(const expression& of) {
        std::vector<std::size_t> to_end;
        for (std::size_t i = 1; i + 1 < of.parts.size(); i += 2) {
            const auto compared = [&](comparison sign, std::size_t with) {
                expression made = expression::compare(of.parts[0], sign, of.parts[with]);
                made.column = of.parts[with].column;
                made.length = of.parts[with].length;
                return made;
            };
            if (of.parts[i].column == of.parts[i + 1].column) {
                compare(compared(comparison::equal, i));
            } else {
                std::vector<expression> both;
                both.push_back(compared(comparison::at_least, i));
                both.push_back(compared(comparison::at_most, i + 1));
                join(expression::join(form::all_of, std::move(both)), 0);
            }
            const std::size_t next = code_.skip(op::skip_if_zero);
            code_.constant(1);
            to_end.push_back(code_.skip(op::skip));
            code_.here(next);
        }
        code_.constant(0);
        for (const std::size_t each : to_end) code_.here(each);
    }
    /// A text in memory, or the thread's name, with a constant one. Byte by byte, with the 0 behind
    /// it, and only as far as both are the same: nothing is read behind the end of a text.
    void compare_text(const expression& of, const expression& with) {
        std::string wanted = with.word;
        if (of.what == form::name && of.word == "comm") {
            if (wanted.size() > 15) refuse(with, "a thread's name has at most 15 bytes");
            wanted.resize(16);
            std::array<std::uint64_t, 2> words{};
            std::memcpy(words.data(), wanted.data(), 16);
            for (const std::size_t i : {0U, 1U}) {
                code_.append(
                    {op::context, static_cast<std::uint8_t>(
                                      static_cast<std::size_t>(context_word::command) + i)});
                code_.constant(words[i]);
                code_.append({op::equals});
            }
            code_.append({op::bit_and});
            return;
        }
        if (wanted.find('\0') != std::string::npos) refuse(with, "a text with a 0 in it");
        wanted += '\0';
        const text_value text = text_of(of, of);
        if (wanted.size() > text.bytes + std::size_t{1})
            refuse(with, "longer than the text can be");
        std::vector<std::size_t> to_no;
        const std::size_t bytes = std::min<std::size_t>(wanted.size(), text.bytes);
        for (std::size_t i = 0; i < bytes; ++i) {
            address_of_text(of);
            code_.load({1, false}, i);
            code_.constant(static_cast<unsigned char>(wanted[i]));
            code_.append({op::equals});
            if (i + 1 != bytes) to_no.push_back(code_.skip(op::skip_if_zero));
        }
        const std::size_t to_end = code_.skip(op::skip);
        for (const std::size_t each : to_no) code_.here(each);
        if (!to_no.empty()) code_.constant(0);
        code_.here(to_end);
    }

    // --- Texts ---

    struct text_value {
        std::uint32_t bytes = 0;  ///< at most
    };
    [[nodiscard]] bool is_character(type_id of) const {
        const type& is = in_.types[of];
        return is.is == type::kind::integer && is.size.bytes == 1;
    }
    /// str(POINTER), str(POINTER, BYTES), or an array of characters. Nothing is compiled.
    [[nodiscard]] std::optional<text_value> find_text(const expression& of) {
        if (of.what == form::call && of.word == "str") {
            if (of.parts.empty() || of.parts.size() > 2)
                refuse(of, "str(POINTER) or str(POINTER, BYTES)");
            return text_value{of.parts.size() == 2 ? constant(of.parts[1], 1, 1024) : usual_text};
        }
        if (of.what == form::call || of.what == form::constant || of.what == form::text ||
            is_condition(of)) {
            return std::nullopt;
        }
        const operand made = without_code([&] { return compile(of); });
        const type& is = type_of(made);
        if (made.is != operand::kind::object || is.is != type::kind::array ||
            !is_character(is.of)) {
            return std::nullopt;
        }
        return text_value{static_cast<std::uint32_t>(std::clamp<std::uint64_t>(is.count, 1, 1024))};
    }
    [[nodiscard]] text_value text_of(const expression& of, const expression& at) {
        const auto found = find_text(of);
        if (!found) refuse(at, "a text compared with what is none: str(POINTER) is one");
        return *found;
    }
    void address_of_text(const expression& of) {
        const operand made = compile(of.what == form::call ? of.parts[0] : of);
        if (made.is == operand::kind::object && type_of(made).is == type::kind::array) return;
        if (made.is == operand::kind::object) {
            // A pointer in memory.
            static_cast<void>(loaded(of, made));
        }
    }
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

    // --- One expression ---

    operand compile(const expression& of) {
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
                const operand pointer = value(of.parts[0]);
                if (type_of(pointer).is != type::kind::pointer) {
                    refuse(of.parts[0], "'->' of " + shown(pointer.type) + ", which is no pointer");
                }
                return member_of(of, {operand::kind::object, type_of(pointer).of, {}}, of.word);
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
                return number(as_int);
        }
    }
    operand constant_of(const expression& of) {
        if (of.value.floating()) refuse(of, "a whole number is needed");
        const auto zero = point::number::of(std::uint64_t{0});
        const bool negative = of.value < zero;
        const auto least = point::number::of(std::int64_t{INT64_MIN});
        std::uint64_t bits = 0;
        if (negative) {
            // From the lowest up: its magnitude may be out of the range of a signed number.
            bits = (std::uint64_t{1} << 63) + whole_of(of.value - least);
        } else {
            bits = whole_of(of.value);
        }
        if (negative || bits <= INT64_MAX) return constant(static_cast<std::int64_t>(bits));
        code_.constant(bits);
        return number(as_ulong_long);
    }
    operand constant(std::int64_t value) {
        code_.constant(static_cast<std::uint64_t>(value));
        return number(value >= INT32_MIN && value <= INT32_MAX ? as_int : as_long_long);
    }
    /// What an enumeration calls so: of the script, or else of the program.
    [[nodiscard]] std::optional<std::int64_t> enumerated(const expression& of,
                                                         const std::string& name) const {
        const auto& own = in_.types.constants();
        if (const auto at = own.find(name); at != own.end()) return at->second;
        const auto found = in_.value ? in_.value(name) : std::nullopt;
        if (!found) return std::nullopt;
        if (found->other) {
            refuse(of, "'" + name + "' is " + std::to_string(found->value) + " and " +
                           std::to_string(*found->other) +
                           " in this program: declare the enumeration that is meant");
        }
        return found->value;
    }
    /// Of a number that is not negative.
    [[nodiscard]] static std::uint64_t whole_of(const point::number& of) noexcept {
        std::uint64_t value = 0;
        for (std::uint64_t bit = std::uint64_t{1} << 63; bit != 0; bit /= 2) {
            if (point::number::of(value | bit) <= of) value |= bit;
        }
        return value;
    }
    operand loaded(const expression& of, const operand& object) {
        const type& is = type_of(object);
        if (is.is != type::kind::pointer && is.is != type::kind::integer) refuse(of, "no pointer");
        code_.load(integer_of(object.type));
        return {operand::kind::number, object.type, {}};
    }

    operand named(const expression& of) {
        // A name has its members with it: order.in.first.
        std::string_view rest = of.word;
        const std::size_t dot = of.what == form::name ? rest.find('.') : std::string_view::npos;
        const std::string_view name = rest.substr(0, dot);
        operand made = of.what == form::name ? word(of, name) : argument_named(of, of.word);
        while (rest.size() > name.size() && dot != std::string_view::npos) {
            rest.remove_prefix(std::min(rest.find('.'), rest.size() - 1) + 1);
            const std::size_t end = rest.find('.');
            made = member_of(of, made, rest.substr(0, end));
            if (end == std::string_view::npos) break;
        }
        return made;
    }
    operand word(const expression& of, std::string_view name) {
        for (const auto& each : known_words) {
            if (each.name != name) continue;
            code_.append({op::context, static_cast<std::uint8_t>(each.word)});
            return number(each.type);
        }
        if (name == "retval") return returned(of);
        if (name == "comm" || name == "ustack") {
            refuse(of, "'" + std::string(name) + "' can be captured, and is no number");
        }
        if (name.starts_with("arg") && name.size() > 3 && name.size() < 6 &&
            std::all_of(name.begin() + 3, name.end(),
                        [](char c) { return c >= '0' && c <= '9'; })) {
            std::size_t n = 0;
            for (const char c : name.substr(3)) n = n * 10 + static_cast<std::size_t>(c - '0');
            return argument(of, n);
        }
        return argument_named(of, name);
    }
    operand returned(const expression& of) {
        if (!in_.at_return) refuse(of, "'retval' is known where a function or system call exits");
        code_.append({op::context, static_cast<std::uint8_t>(context_word::returned)});
        if (in_.declared == nullptr) {
            const type_id made = in_.types.of(point::c_type::long_integer);
            code_.narrow(integer_of(made));
            return {operand::kind::number, made, {}};
        }
        return typed(of, in_.declared->returns, "what it returns");
    }
    /// The word on top has this declared type.
    operand typed(const expression& of, type_id declared, const std::string& what) {
        const type& is = in_.types[declared];
        if (is.is == type::kind::nothing) refuse(of, what + " has no value");
        if (is.is == type::kind::real)
            refuse(of, what + " is a floating-point number, in another register");
        if (is.is == type::kind::structure || is.size.bytes > address_bytes()) {
            refuse(of, what + " is " + shown(declared) + ", which one register does not hold");
        }
        code_.narrow(integer_of(declared));
        return {operand::kind::number, declared, {}};
    }
    operand argument_named(const expression& of, std::string_view name) {
        if (in_.declared != nullptr) {
            const auto& all = in_.declared->parameters;
            for (std::size_t n = 0; n < all.size(); ++n) {
                if (all[n].name == name) return argument(of, n);
            }
        }
        if (const auto value = enumerated(of, std::string(name))) return constant(*value);
        nearest to(name, 3);
        for (const auto& [known, value] : in_.types.constants()) to.look(known);
        for (const auto& each : known_words) to.look(each.name);
        for (const std::string_view each : {"retval", "comm", "ustack", "arg0"}) to.look(each);
        if (in_.declared != nullptr) {
            for (const auto& each : in_.declared->parameters) to.look(each.name);
        }
        std::string said = "there is no '" + std::string(name) + "' here";
        if (!to.found().empty()) {
            said += to.suggestion();
        } else if (in_.declared != nullptr && !in_.declared->parameters.empty()) {
            said += "; its arguments are";
            for (const auto& each : in_.declared->parameters) said += " '" + each.name + "'";
        } else {
            said += "; arguments are arg0, arg1 ...";
        }
        refuse(of, said);
    }
    /// Of a probe: where its authors have left it.
    operand probe_argument(const expression& of, std::size_t n) {
        if (n >= in_.probe->size()) {
            refuse(of, "the probe has " + std::to_string(in_.probe->size()) + " arguments");
        }
        const usdt_argument& at = (*in_.probe)[n];
        if (at.is == usdt_argument::kind::unparsed || at.is_real) {
            refuse(of, "the probe's argument is '" + at.text + "', which cannot be read");
        }
        const integer_type as{at.bytes, at.is_signed};
        const auto sum = [&] {
            code_.constant(static_cast<std::uint64_t>(at.value));
            if (at.reg != usdt_argument::none) {
                code_.append({op::reg, at.reg});
                code_.append({op::add});
            }
            if (at.index != usdt_argument::none) {
                code_.append({op::reg, at.index});
                code_.constant(at.scale);
                code_.append({op::multiply});
                code_.append({op::add});
            }
        };
        switch (at.is) {
            case usdt_argument::kind::reg:
                code_.append({op::reg, at.reg});
                if (at.reg_shift != 0) {
                    code_.constant(at.reg_shift);
                    code_.append({op::shift_right_unsigned});
                }
                if (at.reg_bytes != 0) code_.narrow({at.reg_bytes, false});
                break;
            case usdt_argument::kind::memory:
                sum();
                narrow_address();
                code_.load(as);
                break;
            case usdt_argument::kind::address:
                sum();
                narrow_address();
                break;
            default:
                code_.constant(static_cast<std::uint64_t>(at.value));
        }
        code_.narrow(as);
        return number(as);
    }
    operand argument(const expression& of, std::size_t n) {
        if (in_.probe != nullptr) return probe_argument(of, n);
        if (in_.at_system_call && n >= 6) refuse(of, "a system call has 6 arguments at most");
        if (in_.at_return && !in_.at_system_call)
            refuse(of, "arguments are known where a function is entered");
        if (in_.declared == nullptr) {
            read_argument(of, n);
            const type_id made = in_.types.of(point::c_type::long_integer, false);
            code_.narrow(integer_of(made));
            return {operand::kind::number, made, {}};
        }
        const auto& all = in_.declared->parameters;
        if (n >= all.size()) {
            refuse(of, "the function has " + std::to_string(all.size()) + " arguments");
        }
        // Where it is, by those before it: 64-bit programs have floating-point ones in other
        // registers, and 32-bit programs a long long in two words.
        const bool wide = in_.types.mode() == program_mode::lp64;
        std::size_t place = 0;
        for (std::size_t i = 0; i < n; ++i) {
            const type& before = in_.types[all[i].type];
            if (wide && before.is == type::kind::real) continue;
            if (wide && before.is == type::kind::structure) {
                refuse(of, "an argument behind a structure, whose place is not known");
            }
            place += wide ? 1
                          : static_cast<std::size_t>(
                                std::max<std::uint64_t>(before.size.bytes + 3, 4) / 4);
        }
        const type& is = in_.types[all[n].type];
        if (!wide && is.is == type::kind::integer && is.size.bytes == 8) {
            read_argument(of, place);
            read_argument(of, place + 1);
            code_.constant(32);
            code_.append({op::shift_left});
            code_.append({op::bit_or});
            return {operand::kind::number, all[n].type, {}};
        }
        if (is.is == type::kind::integer || is.is == type::kind::pointer) read_argument(of, place);
        return typed(of, all[n].type, "argument " + std::to_string(n));
    }
    void read_argument(const expression& of, std::size_t place) {
        if (place >= point::most_arguments) {
            refuse(of, "there are " + std::to_string(point::most_arguments) + " arguments at most");
        }
        code_.append({op::argument, static_cast<std::uint8_t>(place)});
    }

    /// The object's address is on the stack, or, of a pointer, its value.
    operand member_of(const expression& of, operand object, std::string_view name) {
        const type& is = in_.types[object.type];
        if (object.is == operand::kind::number && is.is == type::kind::pointer) {
            refuse(of, "'.' of a pointer: write ->" + std::string(name));
        }
        if (is.is != type::kind::structure) {
            refuse(of, "'" + std::string(name) + "' of " + shown(object.type) +
                           (is.is == type::kind::nothing ? ", of which nothing is known here"
                                                         : ", which is no structure"));
        }
        std::uint64_t offset = 0;
        const member* const found = find_member(is, name, offset);
        if (found == nullptr) {
            nearest to(name, 3);
            for (const auto& each : is.members) to.look(each.name);
            std::string said = shown(object.type) + " has no member '" + std::string(name) + "'";
            if (!to.found().empty()) {
                said += to.suggestion();
            } else {
                said += is.members.empty() ? "" : "; it has";
                for (const auto& each : is.members) said += " '" + each.name + "'";
            }
            refuse(of, said);
        }
        if (offset != 0) {
            code_.constant(offset);
            code_.append({op::add});
            narrow_address();
        }
        return {operand::kind::object, found->type, found->bits};
    }
    /// `offset` is raised by where it lies; members of nameless structures are members, too.
    [[nodiscard]] const member* find_member(const type& in, std::string_view name,
                                            std::uint64_t& offset) const {
        for (const auto& each : in.members) {
            if (each.name == name) {
                offset += each.bits.width != 0 ? each.bits.offset : each.offset;
                return &each;
            }
            if (!each.name.empty()) continue;
            std::uint64_t inside = offset + each.offset;
            if (const member* const found = find_member(in_.types[each.type], name, inside)) {
                offset = inside;
                return found;
            }
        }
        return nullptr;
    }
    void narrow_address() { code_.narrow({address_bytes(), false}); }

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
        const operand pointer = value(at);
        const type pointed = type_of(pointer);
        if (pointed.is != type::kind::pointer) {
            refuse(at,
                   "an element of " + shown(pointer.type) + ", which is no array and no pointer");
        }
        const std::uint64_t size = in_.types[pointed.of].size.bytes;
        if (size == 0) refuse(at, "elements whose size is not known");
        static_cast<void>(whole(which));
        code_.constant(size);
        code_.append({op::multiply});
        code_.append({op::add});
        narrow_address();
        return {operand::kind::object, pointed.of, {}};
    }
    operand with_signs(const expression& of) {
        operand made;
        bool first = true;
        for (std::size_t i = of.signs.size(); i-- > 0; first = false) {
            const char sign = of.signs[i];
            if (sign == '*') {
                made = first ? value(of.parts[0]) : made;
                if (!first && made.is == operand::kind::object) made = loaded(of, made);
                if (type_of(made).is != type::kind::pointer)
                    refuse(of, "'*' of what is no pointer");
                made = {operand::kind::object, type_of(made).of, {}};
                continue;
            }
            if (first) made = whole(of.parts[0]);
            if (!first && made.is == operand::kind::object) made = loaded(of, made);
            const integer_type as = integer_type::common(integer_of(made.type), as_int);
            code_.append({sign == '-' ? op::negate : op::invert});
            code_.narrow(as);
            made = number(as);
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
        const bool pointer = type_of(left).is == type::kind::pointer;
        const std::size_t at = code_.size();
        const operand right = value(with);
        if (pointer || type_of(right).is == type::kind::pointer) {
            if (!pointer || (sign != '+' && sign != '-') ||
                type_of(right).is == type::kind::pointer) {
                refuse(of,
                       "of pointers there are POINTER + NUMBER and POINTER - NUMBER; cast it to a "
                       "number");
            }
            const std::uint64_t size = in_.types[type_of(left).of].size.bytes;
            code_.constant(size == 0 ? 1 : size);
            code_.append({op::multiply});
            code_.append({sign == '+' ? op::add : op::subtract});
            narrow_address();
            return left;
        }
        if (sign == '<' || sign == '>') {
            const integer_type as = integer_type::common(integer_of(left.type), as_int);
            code_.append({sign == '<'    ? op::shift_left
                          : as.is_signed ? op::shift_right
                                         : op::shift_right_unsigned});
            code_.narrow(as);
            return number(as);
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
        return number(as);
    }
    operand cast(const expression& of) {
        const auto found = find_type(in_.types, of.word);
        if (!found) refuse(of, "there is no type '" + of.word + "'");
        const operand from = value(of.parts[0]);
        const type& to = in_.types[*found];
        if (to.is != type::kind::integer && to.is != type::kind::pointer) {
            refuse(of, "a cast to " + shown(*found) + ", which is no number and no pointer");
        }
        code_.narrow(integer_of(*found));
        return {operand::kind::number, *found, from.bits};
    }
    operand call(const expression& of) {
        if (of.word == "sizeof") {
            if (of.parts.size() != 1) refuse(of, "sizeof(TYPE) or sizeof(VALUE)");
            const expression& what = of.parts[0];
            std::uint64_t bytes = 0;
            if (what.what == form::type_name) {
                const auto found = find_type(in_.types, what.word);
                if (!found) refuse(what, "there is no type '" + what.word + "'");
                bytes = in_.types[*found].size.bytes;
            } else {
                bytes = type_of(without_code([&] { return compile(what); })).size.bytes;
            }
            if (bytes == 0) refuse(what, "its size is not known");
            code_.constant(bytes);
            return {operand::kind::number, in_.types.of(point::c_type::long_integer, false), {}};
        }
        if (of.word == "str" || of.word == "ustack") {
            refuse(of, "'" + of.word + "' can be captured, and is no number");
        }
        nearest to(of.word, 3);
        for (const std::string_view each : {"str", "sizeof", "ustack"}) to.look(each);
        refuse(of,
               "there is no function '" + of.word + "'" +
                   (to.found().empty() ? "; there are str, sizeof and ustack" : to.suggestion()));
    }

    // --- Actions ---

    statement act(const expression& of) {
        statement made;
        if (of.word == "capture") {
            made.is = statement::kind::capture;
        } else if (of.word == "count") {
            made.is = statement::kind::count;
        } else if (of.word == "hist") {
            made.is = statement::kind::histogram;
            if (of.parts.empty()) refuse(of, "hist(VALUE) or hist(VALUE, KEY, ...)");
        } else {
            nearest to(of.word, 3);
            for (const std::string_view each : {"capture", "count", "hist"}) to.look(each);
            refuse(of, "there is no action '" + of.word + "'" +
                           (to.found().empty() ? "; there are capture, count and hist"
                                               : to.suggestion()));
        }
        const std::vector<std::string> names = written(of);
        for (std::size_t i = 0; i < of.parts.size(); ++i) {
            made.fields.push_back(
                store(of.parts[i], i < names.size() ? names[i] : of.parts[i].word));
            if (made.is == statement::kind::histogram && i == 0 &&
                (made.fields[0].form != field_form::scalar)) {
                refuse(of.parts[0], "a histogram is of numbers");
            }
        }
        return made;
    }
    [[nodiscard]] std::uint32_t place(const expression& of, std::uint32_t bytes,
                                      std::uint32_t alignment) {
        const std::uint32_t at = (used_ + alignment - 1) / alignment * alignment;
        if (at + bytes > point::most_output) refuse(of, "more than 4,096 bytes to be captured");
        used_ = at + bytes;
        return at;
    }
    /// The arguments of a call as they stand in the text.
    [[nodiscard]] std::vector<std::string> written(const expression& call) const {
        std::vector<std::string> all(1);
        std::size_t depth = 0;
        char quote = 0;
        for (std::size_t i = call.column + call.word.size(); i < text_.size(); ++i) {
            const char c = text_[i];
            if (quote != 0) {
                if (c == '\\' && i + 1 < text_.size()) all.back() += text_[i++];
                if (text_[i] == quote) quote = 0;
            } else if (c == '"' || c == '\'' || c == '`') {
                quote = c;
            } else if (c == '(' || c == '[' || c == '{') {
                if (depth++ == 0) continue;
            } else if (c == ')' || c == ']' || c == '}') {
                if (--depth == 0) break;
            } else if (c == ',' && depth == 1) {
                all.emplace_back();
                continue;
            }
            if (depth != 0) all.back() += text_[i];
        }
        for (auto& each : all) {
            constexpr const char* blank = " \t\n\r\v\f";
            const std::size_t first = each.find_first_not_of(blank);
            each = first == std::string::npos
                       ? ""
                       : each.substr(first, each.find_last_not_of(blank) - first + 1);
        }
        return all;
    }
    stored_field store(const expression& of, std::string name) {
        stored_field made;
        made.name = std::move(name);
        const bool frames = (of.what == form::call || of.what == form::name) && of.word == "ustack";
        if (frames) {
            if (of.parts.size() > 1) refuse(of, "ustack or ustack(FRAMES)");
            made.count = of.parts.empty() ? usual_frames : constant(of.parts[0], 1, 128);
            made.type = field_type::address;
            made.form = field_form::array;
            made.offset = place(of, 8 * made.count, 8);
            code_.append({op::store_stack, 0, static_cast<std::uint16_t>(8 * made.count),
                          static_cast<std::int32_t>(made.offset)});
            return made;
        }
        if (of.what == form::name && of.word == "comm") {
            made.type = field_type::character;
            made.form = field_form::array;
            made.count = 16;
            made.offset = place(of, 16, 8);
            for (const std::uint32_t half : {0U, 1U}) {
                code_.append(
                    {op::context, static_cast<std::uint8_t>(
                                      static_cast<std::uint32_t>(context_word::command) + half)});
                code_.append({op::store, static_cast<std::uint8_t>(point::width::u64), 0,
                              static_cast<std::int32_t>(made.offset + 8 * half)});
            }
            return made;
        }
        if (const auto text = find_text(of)) {
            made.type = field_type::character;
            made.form = field_form::variable;
            made.count = text->bytes;
            made.offset = place(of, 2 + text->bytes, 2);
            address_of_text(of);
            code_.append({op::store_text, 0, static_cast<std::uint16_t>(text->bytes),
                          static_cast<std::int32_t>(made.offset)});
            return made;
        }
        return store_number(of, std::move(made));
    }
    stored_field store_number(const expression& of, stored_field made) {
        const operand found = without_code([&] { return compile(of); });
        const type is = type_of(found);
        if (found.is == operand::kind::object && is.is == type::kind::real) {
            if (is.size.bytes > 8) refuse(of, "a long double");
            static_cast<void>(compile(of));
            made.type = is.size.bytes == 4 ? field_type::f32 : field_type::f64;
            made.offset = place(of, static_cast<std::uint32_t>(is.size.bytes), 8);
            code_.append({op::store_bytes, 0, static_cast<std::uint16_t>(is.size.bytes),
                          static_cast<std::int32_t>(made.offset)});
            return made;
        }
        if (found.is == operand::kind::object && is.is == type::kind::array &&
            in_.types[is.of].is == type::kind::integer) {
            const integer_type element = integer_of(is.of);
            if (is.count == 0 || is.size.bytes > point::most_output)
                refuse(of, "an array of unknown size");
            static_cast<void>(compile(of));
            made.type = stored_as(element);
            made.form = field_form::array;
            made.count = static_cast<std::uint32_t>(is.count);
            made.offset = place(of, static_cast<std::uint32_t>(is.size.bytes), 8);
            code_.append({op::store_bytes, 0, static_cast<std::uint16_t>(is.size.bytes),
                          static_cast<std::int32_t>(made.offset)});
            return made;
        }
        const operand kept = value(of);
        const bool pointer = type_of(kept).is == type::kind::pointer;
        made.type = pointer                           ? field_type::address
                    : integer_of(kept.type).is_signed ? field_type::i64
                                                      : field_type::u64;
        made.offset = place(of, 8, 8);
        code_.append({op::store, static_cast<std::uint8_t>(point::width::u64), 0,
                      static_cast<std::int32_t>(made.offset)});
        return made;
    }
    [[nodiscard]] static field_type stored_as(integer_type of) noexcept {
        constexpr field_type unsigned_ones[] = {field_type::u8, field_type::u16, field_type::u32,
                                                field_type::u64};
        constexpr field_type signed_ones[] = {field_type::i8, field_type::i16, field_type::i32,
                                              field_type::i64};
        const auto at = static_cast<std::size_t>(std::countr_zero(unsigned{of.bytes}));
        return of.is_signed ? signed_ones[at] : unsigned_ones[at];
    }

    std::string_view text_;
    const environment& in_;
    typed_code code_;
    std::uint32_t used_ = 0;
};

}  // namespace

compiled compile(std::string_view text, const expressions::clause_text& clause,
                 const environment& in) {
    compiled made;
    if (clause.when) made.predicate = compiler(text, in).predicate(*clause.when);
    compiler(text, in).action(clause.statements, made);
    return made;
}

}  // namespace trace_clauses
