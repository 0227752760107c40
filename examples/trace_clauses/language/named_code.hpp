// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The code of what a clause names: what is known of who fires, arguments, what a function returns,
/// and the values of enumerations.
/// @code
///   named_code names(in, code);
///   const operand made = names.word(at, "arg0");
/// @endcode

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <trace_ring/reduce/where/expression/kinds.hpp>

#include "compile.hpp"
#include "known_types.hpp"
#include "typed_code.hpp"

namespace trace_clauses {

struct known_word {
    std::string_view name;
    point::context_word word;
    integer_type type;
};
inline constexpr std::array known_words{
    known_word{"time", point::context_word::time, as_ulong_long},
    known_word{"pid", point::context_word::process, as_int},
    known_word{"tid", point::context_word::thread, as_int},
    known_word{"uid", point::context_word::user, {4, false}},
    known_word{"cpu", point::context_word::processor, as_int},
    known_word{"bits", point::context_word::bits, as_int},
    known_word{"ip", point::context_word::address, as_ulong_long},
};

/// All throw mistake.
class named_code {
public:
    named_code(const environment& in, typed_code& code) : in_(in), types_(in.types), code_(code) {}

    operand word(const expression& of, std::string_view name) {
        for (const auto& each : known_words) {
            if (each.name != name) continue;
            code_.append({op::context, static_cast<std::uint8_t>(each.word)});
            return types_.number(each.type);
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
    operand argument_named(const expression& of, std::string_view name) {
        if (in_.declared != nullptr) {
            const auto& all = in_.declared->parameters;
            for (std::size_t n = 0; n < all.size(); ++n) {
                if (all[n].name == name) return argument(of, n);
            }
        }
        if (const auto value = enumerated(of, std::string(name))) return constant(*value);
        trace_ring::reduce::where::nearest to(name, 3);
        for (const auto& [known, value] : types_.table().constants()) to.look(known);
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
    operand constant(std::int64_t value) {
        code_.constant(static_cast<std::uint64_t>(value));
        return types_.number(value >= INT32_MIN && value <= INT32_MAX ? as_int : as_long_long);
    }
    void narrow_address() { code_.narrow({types_.address_bytes(), false}); }

private:
    using op = point::op;

    operand returned(const expression& of) {
        if (!in_.at_return) refuse(of, "'retval' is known where a function or system call exits");
        code_.append({op::context, static_cast<std::uint8_t>(point::context_word::returned)});
        if (in_.declared == nullptr) {
            const type_id made = types_.table().of(point::c_type::long_integer);
            code_.narrow(types_.integer_of(made));
            return {operand::kind::number, made, {}};
        }
        return typed(of, in_.declared->returns, "what it returns");
    }
    /// The word on top has this declared type.
    operand typed(const expression& of, type_id declared, const std::string& what) {
        const type& is = types_[declared];
        if (is.is == type::kind::nothing) refuse(of, what + " has no value");
        if (is.is == type::kind::real)
            refuse(of, what + " is a floating-point number, in another register");
        if (is.is == type::kind::structure || is.size.bytes > types_.address_bytes()) {
            refuse(of,
                   what + " is " + types_.shown(declared) + ", which one register does not hold");
        }
        code_.narrow(types_.integer_of(declared));
        return {operand::kind::number, declared, {}};
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
        return types_.number(as);
    }
    operand argument(const expression& of, std::size_t n) {
        if (in_.probe != nullptr) return probe_argument(of, n);
        if (in_.at_system_call && n >= 6) refuse(of, "a system call has 6 arguments at most");
        if (in_.at_return && !in_.at_system_call)
            refuse(of, "arguments are known where a function is entered");
        if (in_.declared == nullptr) {
            read_argument(of, n);
            const type_id made = types_.table().of(point::c_type::long_integer, false);
            code_.narrow(types_.integer_of(made));
            return {operand::kind::number, made, {}};
        }
        const auto& all = in_.declared->parameters;
        if (n >= all.size()) {
            refuse(of, "the function has " + std::to_string(all.size()) + " arguments");
        }
        // Where it is, by those before it: 64-bit programs have floating-point ones in other
        // registers, and 32-bit programs a long long in two words.
        const bool wide = types_.table().mode() == program_mode::lp64;
        std::size_t place = 0;
        for (std::size_t i = 0; i < n; ++i) {
            const type& before = types_[all[i].type];
            if (wide && before.is == type::kind::real) continue;
            if (wide && before.is == type::kind::structure) {
                refuse(of, "an argument behind a structure, whose place is not known");
            }
            place += wide ? 1
                          : static_cast<std::size_t>(
                                std::max<std::uint64_t>(before.size.bytes + 3, 4) / 4);
        }
        const type& is = types_[all[n].type];
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
    /// What an enumeration calls so: of the script, or else of the program.
    [[nodiscard]] std::optional<std::int64_t> enumerated(const expression& of,
                                                         const std::string& name) const {
        const auto& own = types_.table().constants();
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

    const environment& in_;
    known_types types_;
    typed_code& code_;
};

}  // namespace trace_clauses
