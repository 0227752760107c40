// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Generates code for the names in a clause: properties of the firing thread, arguments, results,
/// and enumerators.
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
#include <utility>

#include "../../expressions/nearest.hpp"
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

/// All functions throw mistake.
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
        if (name == "elapsed") {
            if (!in_.at_return)
                refuse(of, "'elapsed' is known where a function or system call exits");
            code_.append({op::context, static_cast<std::uint8_t>(point::context_word::elapsed)});
            return types_.number(as_ulong_long);
        }
        if (name == "comm" || name == "ustack" || fires(name)) {
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
    /// The name of the point that fires, if the expression refers to it. A parameter with the same
    /// name is written `arg0` and so on.
    [[nodiscard]] std::optional<std::string> text_of_point(const expression& of) const {
        if (of.what != point::form::name || !fires(of.word)) return std::nullopt;
        const std::string_view known = of.word == "func"    ? in_.function
                                       : of.word == "probe" ? in_.probe_name
                                                            : in_.system_call;
        if (known.empty()) {
            refuse(of, "'" + of.word + "' is known at " +
                           (of.word == "func"    ? "functions"
                            : of.word == "probe" ? "probes"
                                                 : "system calls"));
        }
        return std::string(known);
    }
    operand argument_named(const expression& of, std::string_view name) {
        if (in_.declared != nullptr) {
            const auto& all = in_.declared->parameters;
            for (std::size_t n = 0; n < all.size(); ++n) {
                if (all[n].name == name) return argument(of, n, false);
            }
        }
        if (const auto found = enumerated(of, std::string(name)))
            return constant(found->value, found->is_unsigned);
        expressions::nearest to(name, 3);
        for (const auto& [known, value] : types_.table().constants()) to.look(known);
        for (const auto& each : known_words) to.look(each.name);
        for (const std::string_view each :
             {"retval", "elapsed", "comm", "ustack", "func", "probe", "syscall", "arg0"})
            to.look(each);
        if (in_.declared != nullptr) {
            for (const auto& each : in_.declared->parameters) to.look(each.name);
        }
        std::string said = "there is no '" + std::string(name) + "' here";
        if (find_type(types_.table(), name)) {
            said = "'" + std::string(name) + "' is a type: a cast is (" + std::string(name) +
                   ")(VALUE)";
        } else if (!to.found().empty()) {
            said += to.suggestion();
        } else if (in_.declared != nullptr && !in_.declared->parameters.empty()) {
            said += "; its arguments are";
            for (const auto& each : in_.declared->parameters) said += " '" + each.name + "'";
        } else {
            said += "; arguments are arg0, arg1 ...";
        }
        refuse(of, said);
    }
    operand constant(std::int64_t value, bool is_unsigned = false) {
        code_.constant(static_cast<std::uint64_t>(value));
        const bool is_int = value >= INT32_MIN && value <= INT32_MAX;
        return types_.number(is_int                               ? as_int
                             : is_unsigned && value <= UINT32_MAX ? integer_type{4, false}
                                                                  : as_long_long);
    }
    void narrow_address() { code_.narrow({types_.address_bytes(), false}); }
    /// Pushes at most 8 bytes of a value in registers, zero-extended.
    void push_placed(const expression& of, const operand& from, std::uint64_t bytes) {
        std::uint64_t begin = 0;  // of the piece
        std::uint64_t done = 0;
        for (const value_piece& each : from.place->pieces) {
            const std::uint64_t end = begin + each.bytes;
            const std::uint64_t first = std::max(begin, from.offset + done);
            const std::uint64_t last = std::min(end, from.offset + bytes);
            if (first < last && first == from.offset + done) {
                push_piece(of, each, first - begin, last - first);
                if (done != 0) {
                    code_.constant(8 * done);
                    code_.append({op::shift_left});
                    code_.append({op::bit_or});
                }
                done += last - first;
            }
            begin = end;
        }
        if (done != bytes) refuse(of, "a part of it is nowhere");
    }

private:
    using op = point::op;

    [[nodiscard]] static bool fires(std::string_view name) noexcept {
        return name == "func" || name == "probe" || name == "syscall";
    }
    operand returned(const expression& of) {
        if (!in_.at_return) refuse(of, "'retval' is known where a function or system call exits");
        if (in_.declared != nullptr) {
            if (in_.declared->returns == type_table::nothing())
                refuse(of, "its result has no value");
            return at_place(of, in_.declared->returns, in_.declared->result, "what it returns");
        }
        if (!in_.at_system_call) need_abi(of);
        code_.append({op::context, static_cast<std::uint8_t>(point::context_word::returned)});
        const type_id made = types_.table().of(point::c_type::long_integer);
        code_.narrow(types_.integer_of(made));
        return {operand::kind::number, made, {}};
    }
    void need_abi(const expression& of) const {
        if (in_.keeps_to_abi) return;
        refuse(of,
               "its place is unknown: no debug information is found for the function, and it is "
               "not exported (--assume-abi takes the usual place)");
    }
    /// A value in a known place: pushes the address if it is in memory, otherwise nothing.
    operand at_place(const expression& of, type_id declared, const value_place& place,
                     const std::string& what) {
        if (!place.known()) refuse(of, what + " is not available: " + place.why_not);
        const value_piece& first = place.pieces[0];
        const bool in_memory = place.pieces.size() == 1 && first.is == value_piece::kind::memory;
        const type& is = types_[declared];
        const bool is_word =
            (is.is == type::kind::integer || is.is == type::kind::pointer) && is.size.bytes <= 8;
        if (is_word) {
            const integer_type as = types_.integer_of(declared);
            if (in_memory && first.through.empty() && first.offset >= 0) {
                code_.append({op::reg, first.number});
                code_.load(as, static_cast<std::uint64_t>(first.offset));
            } else {
                push_placed(of, {operand::kind::placed, declared, {}, &place, 0}, is.size.bytes);
                code_.narrow(as);
            }
            return {operand::kind::number, declared, {}};
        }
        if (in_memory) {
            push_address(first);
            return {operand::kind::object, declared, {}};
        }
        return {operand::kind::placed, declared, {}, &place, 0};
    }
    void push_address(const value_piece& of) {
        code_.append({op::reg, of.number});
        add(of.offset);
        for (const std::int64_t each : of.through) {
            code_.load({types_.address_bytes(), false});
            add(each);
        }
    }
    void add(std::int64_t offset) {
        if (offset != 0) {
            code_.constant(static_cast<std::uint64_t>(offset));
            code_.append({op::add});
        }
        narrow_address();
    }
    /// Pushes a whole piece of at most 8 bytes as a word.
    void push_piece(const expression& of, const value_piece& piece, std::uint64_t from,
                    std::uint64_t bytes) {
        using kind = value_piece::kind;
        switch (piece.is) {
            case kind::lost:
                refuse(of, "it is optimized out, or that part of it is");
            case kind::constant:
                code_.constant(static_cast<std::uint64_t>(piece.offset));
                break;
            case kind::computed:
                push_address(piece);
                break;
            case kind::memory:
                push_address(piece);
                add(static_cast<std::int64_t>(from));
                // Odd sizes are loaded byte by byte.
                load_bytes(of, bytes);
                return;
            case kind::reg:
                code_.append({op::reg, piece.number});
                break;
            case kind::vector:
            case kind::x87:
                need_all_registers(of);
                if (piece.is == kind::x87) {
                    code_.append(
                        {op::reg, static_cast<std::uint8_t>(
                                      (bytes == 4 ? point::x87_as_float : point::x87_as_double) +
                                      piece.number)});
                    return;
                }
                code_.append(
                    {op::reg, static_cast<std::uint8_t>((piece.upper ? point::vector_upper_halves
                                                                     : point::vector_registers) +
                                                        piece.number)});
                break;
        }
        if (from != 0) {
            code_.constant(8 * from);
            code_.append({op::shift_right_unsigned});
        }
        if (bytes < 8) {
            code_.constant((std::uint64_t{1} << 8 * bytes) - 1);
            code_.append({op::bit_and});
        }
    }
    void load_bytes(const expression& of, std::uint64_t bytes) {
        if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8)
            refuse(of, "a part of it that no word holds");
        code_.load({static_cast<std::uint8_t>(bytes), false});
    }
    void need_all_registers(const expression& of) const {
        if (in_.has_all_registers) return;
        refuse(of,
               "it is in a floating-point register, which the kernel does not provide "
               "(--source ptrace does)");
    }
    /// An argument of a probe, where the probe's note says that it is.
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
    operand argument(const expression& of, std::size_t n, bool by_number = true) {
        if (in_.probe != nullptr) return probe_argument(of, n);
        if (in_.at_system_call && n >= 6) refuse(of, "a system call has 6 arguments at most");
        if (in_.kept != nullptr) return kept_argument(of, n, by_number);
        return argument_here(of, n, by_number);
    }
    /// At the function's exit: its value at the entry.
    operand kept_argument(const expression& of, std::size_t n, bool by_number) {
        typed_code at_exit = std::exchange(code_, {});
        operand made = argument_here(of, n, by_number);
        typed_code at_entry = std::exchange(code_, std::move(at_exit));
        if (made.is != operand::kind::number) {
            refuse(of,
                   "only whole numbers, pointers and references are kept until the function "
                   "exits");
        }
        auto& places = in_.kept->places;
        if (!places.contains(n) && places.size() == point::most_arguments) {
            refuse(of,
                   "more than " + std::to_string(point::most_arguments) + " arguments at an exit");
        }
        const auto [place, is_new] =
            places.try_emplace(n, static_cast<std::uint8_t>(places.size()));
        if (is_new) {
            const auto code = at_entry.take();
            auto& all = in_.kept->code;
            all.insert(all.end(), code.begin(), code.end());
            all.push_back(
                {op::store, static_cast<std::uint8_t>(point::width::u64), 0, 8 * place->second});
        }
        code_.append({op::argument, place->second});
        return made;
    }
    operand argument_here(const expression& of, std::size_t n, bool by_number) {
        if (in_.declared == nullptr) {
            if (!in_.at_system_call) need_abi(of);
            read_argument(of, n);
            const type_id made = types_.table().of(point::c_type::long_integer, false);
            code_.narrow(types_.integer_of(made));
            return {operand::kind::number, made, {}};
        }
        const auto& all = in_.declared->parameters;
        if (by_number && in_.declared->lacks_arguments) {
            refuse(of,
                   "the debug information does not list all arguments of the function: call "
                   "them by name");
        }
        if (n >= all.size()) {
            refuse(of, in_.declared->is_variadic
                           ? "the function takes further arguments, whose types and places nobody "
                             "tells; it has " +
                                 std::to_string(all.size()) + " that are declared"
                           : "the function has " + std::to_string(all.size()) + " arguments");
        }
        const std::string what = "argument " + std::to_string(n) +
                                 (all[n].name.empty() ? "" : ", '" + all[n].name + "',");
        return at_place(of, all[n].type, all[n].place, what);
    }
    void read_argument(const expression& of, std::size_t place) {
        if (place >= point::most_arguments) {
            refuse(of, "there are " + std::to_string(point::most_arguments) + " arguments at most");
        }
        code_.append({op::argument, static_cast<std::uint8_t>(place)});
    }
    /// Finds an enumerator in the script, or else in the program.
    [[nodiscard]] std::optional<enumerator> enumerated(const expression& of,
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
        return found;
    }

    const environment& in_;
    known_types types_;
    typed_code& code_;
};

}  // namespace trace_clauses
