// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "calling_convention.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace trace_clauses {
namespace {

using passing = type::passing;
using piece = value_piece::kind;

/// Returns whether values of the type have no bytes, as C++'s empty classes.
[[nodiscard]] bool is_empty(const type_table& types, type_id of, int depth = 0) {
    const type& is = types[of];
    if (is.is == type::kind::array) {
        return is.count == 0 || (depth < 16 && is_empty(types, is.of, depth + 1));
    }
    if (is.is != type::kind::structure || depth == 16) return false;
    return std::all_of(is.members.begin(), is.members.end(), [&](const member& each) {
        return each.bits.width == 0 && is_empty(types, each.type, depth + 1);
    });
}
[[nodiscard]] bool is_real(const type& of) noexcept {
    return of.is == type::kind::real || of.passed == passing::real;
}
/// A long double of x86-64: 10 bytes of 16.
[[nodiscard]] bool is_x87(const type& of) noexcept {
    return of.is == type::kind::real && of.size.bytes > 8;
}
[[nodiscard]] std::uint64_t up_to(std::uint64_t at, std::uint64_t alignment) noexcept {
    return (at + alignment - 1) / alignment * alignment;
}
/// In several registers of 8 or 4 bytes.
[[nodiscard]] value_place in_registers(const std::vector<value_piece>& pieces,
                                       std::uint64_t bytes) {
    value_place made;
    for (value_piece each : pieces) {
        if (bytes == 0) break;
        each.bytes = std::min(each.bytes, bytes);
        bytes -= each.bytes;
        made.pieces.push_back(each);
    }
    return made;
}

constexpr const char* depends =
    "its place depends on the compiler and its options, and the debug information does not give it";
constexpr const char* behind = "it is behind an argument whose place is not known";

// --- x86-64 ---

/// rdi, rsi, rdx, rcx, r8, r9, as DWARF's register numbers.
constexpr std::array<std::uint8_t, 6> general_64{5, 4, 1, 2, 8, 9};

enum class eightbyte : std::uint8_t { none, whole, sse, sse_up, x87, x87_up, memory };

class convention_64 {
public:
    explicit convention_64(const type_table& types) : types_(types) {}

    [[nodiscard]] call_places places(const function_type& of) {
        call_places made;
        made.result = result(of.returns);
        // The address of a result in memory is passed before all other arguments.
        general_unknown_ = classes_of(of.returns).depends;
        if (made.result.known() && made.result.pieces[0].is == piece::memory) ++general_used_;
        for (const auto& each : of.parameters) made.arguments.push_back(argument(of, each));
        return made;
    }

private:
    static constexpr auto& general = general_64;
    static constexpr std::uint8_t rax = 0, rdx = 1;
    static constexpr std::uint8_t stack_pointer = stack_pointer_of(program_mode::lp64);
    static constexpr std::size_t vectors = 8;

    struct classes {
        std::array<eightbyte, 2> of{eightbyte::none, eightbyte::none};
        bool depends = false;
        [[nodiscard]] bool in_memory() const noexcept { return of[0] == eightbyte::memory; }
        void to_memory() noexcept { of = {eightbyte::memory, eightbyte::memory}; }
    };

    [[nodiscard]] static eightbyte merged(eightbyte a, eightbyte b) noexcept {
        using enum eightbyte;
        if (a == b || b == none) return a;
        if (a == none) return b;
        if (a == memory || b == memory) return memory;
        if (a == whole || b == whole) return whole;
        if (a == x87 || a == x87_up || b == x87 || b == x87_up) return memory;
        return sse;
    }
    /// Adds the part `at` bytes after the value's begin.
    void classify(type_id which, std::uint64_t at, classes& into, int depth) const {
        using enum eightbyte;
        const type& is = types_[which];
        const std::uint64_t bytes = is.size.bytes;
        if (bytes == 0 || into.in_memory()) return;
        if (at + bytes > 16 || depth == 32) return into.to_memory();
        const std::size_t first = at / 8;
        const auto both = [&](eightbyte low, eightbyte high) {
            if (at % 16 != 0) return into.to_memory();
            into.of[0] = merged(into.of[0], low);
            into.of[1] = merged(into.of[1], high);
        };
        const auto all = [&](eightbyte as) {
            for (std::size_t i = first; i <= (at + bytes - 1) / 8; ++i)
                into.of[i] = merged(into.of[i], as);
        };
        if (is.is == type::kind::structure) {
            if (is.passed == passing::by_reference) return into.to_memory();
            for (const member& each : is.members) {
                if (each.bits.width != 0) {
                    const std::uint64_t bit = 8 * (at + each.bits.offset) + each.bits.first_bit;
                    for (std::uint64_t i = bit / 64; i <= (bit + each.bits.width - 1) / 64; ++i) {
                        if (i > 1) return into.to_memory();
                        into.of[i] = merged(into.of[i], whole);
                    }
                    continue;
                }
                const std::uint64_t alignment = types_[each.type].size.alignment;
                if (alignment != 0 && (at + each.offset) % alignment != 0) return into.to_memory();
                classify(each.type, at + each.offset, into, depth + 1);
            }
            return;
        }
        if (is.passed == passing::vector) {
            // For vectors of less than 8 bytes or of one element, compilers differ.
            if (bytes < 8 || is.count < 2) into.depends = true;
            if (bytes == 8) return all(sse);
            return both(sse, sse_up);
        }
        if (is.is == type::kind::array) {
            const std::uint64_t element = types_[is.of].size.bytes;
            for (std::uint64_t i = 0; element != 0 && i < is.count && i * element < 16; ++i)
                classify(is.of, at + i * element, into, depth + 1);
            return;
        }
        if (is_x87(is)) return both(x87, x87_up);
        if (is_real(is)) return bytes > 8 ? both(sse, sse_up) : all(sse);
        if (is.is == type::kind::nothing && is.passed != passing::whole) into.depends = true;
        all(whole);
    }
    [[nodiscard]] classes classes_of(type_id which) const {
        const type& is = types_[which];
        classes made;
        if (is.size.bytes > 16) {
            made.to_memory();
            made.depends = holds_wide_vector(which, 0);
            return made;
        }
        classify(which, 0, made, 0);
        // After merging: if one part is in memory, all of it is.
        using enum eightbyte;
        if (made.of[0] == memory || made.of[1] == memory ||
            (made.of[1] == x87_up && made.of[0] != x87)) {
            made.to_memory();
        }
        if (made.of[1] == sse_up && made.of[0] != sse) made.of[1] = sse;
        return made;
    }
    /// Whether it is a vector that one register holds on processors with wide vectors: alone, or as
    /// a structure's only member.
    [[nodiscard]] bool holds_wide_vector(type_id which, int depth) const {
        const type& is = types_[which];
        if (is.passed == passing::vector) return is.size.bytes > 16;
        if (is.is == type::kind::array) return depth < 16 && holds_wide_vector(is.of, depth + 1);
        if (is.is != type::kind::structure || depth == 16) return false;
        return std::any_of(is.members.begin(), is.members.end(), [&](const member& each) {
            return holds_wide_vector(each.type, depth + 1);
        });
    }

    [[nodiscard]] value_place result(type_id which) const {
        using enum eightbyte;
        const type& is = types_[which];
        if (is.size.bytes == 0) return value_place::unknown("it returns nothing");
        const auto by_address = value_place::in_memory(rax, 0, is.size.bytes);
        if (is.passed == passing::by_reference) return by_address;
        if (is.passed == passing::complex && is_x87(types_[is.of])) {
            return in_registers({{.is = piece::x87, .number = 0, .bytes = 16},
                                 {.is = piece::x87, .number = 1, .bytes = 16}},
                                32);
        }
        const classes found = classes_of(which);
        if (found.depends) return value_place::unknown(depends);
        if (found.in_memory()) return by_address;
        if (found.of[0] == x87)
            return in_registers({{.is = piece::x87, .number = 0, .bytes = 16}}, is.size.bytes);
        std::size_t wholes = 0;
        std::size_t reals = 0;
        return in_classes(found.of, is.size.bytes, std::array{rax, rdx}, wholes, reals);
    }
    /// In the next registers of each class.
    template <class Registers>
    [[nodiscard]] static value_place in_classes(const std::array<eightbyte, 2>& of,
                                                std::uint64_t bytes, const Registers& general_ones,
                                                std::size_t& wholes, std::size_t& reals) {
        using enum eightbyte;
        std::vector<value_piece> pieces;
        for (const eightbyte each : of) {
            if (each == whole)
                pieces.push_back({.is = piece::reg, .number = general_ones[wholes++], .bytes = 8});
            if (each == sse)
                pieces.push_back({.is = piece::vector,
                                  .number = static_cast<std::uint8_t>(reals++),
                                  .bytes = 8});
            if (each == sse_up) pieces.push_back(upper_half(pieces.back()));
            if (each == none) pieces.push_back({.is = piece::lost, .bytes = 8});
        }
        return in_registers(pieces, bytes);
    }
    [[nodiscard]] static value_piece upper_half(value_piece lower) {
        lower.upper = true;
        return lower;
    }

    [[nodiscard]] value_place argument(const function_type& of,
                                       const function_type::parameter& one) {
        using enum eightbyte;
        const type& is = types_[one.type];
        if (one.by_reference || is.passed == passing::by_reference) {
            value_place address = pass({whole, none}, 8, 8);
            if (!address.known()) return address;
            value_piece& at = address.pieces[0];
            if (at.is == piece::memory) {
                at.through.push_back(0);
            } else {
                at.is = piece::memory;
            }
            at.bytes = is.size.bytes;
            return address;
        }
        if (is_empty(types_, one.type)) return value_place::unknown("it has no bytes");
        if (is.size.bytes == 0) {
            general_unknown_ = vectors_unknown_ = stack_unknown_ = true;
            return value_place::unknown("its type is not known");
        }
        classes found = classes_of(one.type);
        const bool single = is.is == type::kind::real && is.size.bytes == 4;
        if (found.of[0] == x87) found.to_memory();
        if (found.depends) {
            vectors_unknown_ = stack_unknown_ = true;
            if (is.passed != passing::vector && is.size.bytes <= 16) general_unknown_ = true;
            return value_place::unknown(depends);
        }
        value_place made = pass(found.of, is.size.bytes, is.size.alignment);
        if (!of.is_prototyped && single)
            return value_place::unknown("its function has no prototype: it is passed as a double");
        return made;
    }
    /// Takes the next registers, or the next place on the stack.
    [[nodiscard]] value_place pass(std::array<eightbyte, 2> of, std::uint64_t bytes,
                                   std::uint64_t alignment) {
        using enum eightbyte;
        const auto count = [&](eightbyte which) {
            return static_cast<std::size_t>(std::count(of.begin(), of.end(), which));
        };
        const std::size_t wholes = count(whole);
        const std::size_t reals = count(sse);
        const bool in_memory = of[0] == memory;
        if ((wholes != 0 && general_unknown_) || (reals != 0 && vectors_unknown_)) {
            stack_unknown_ = true;
            return value_place::unknown(behind);
        }
        if (!in_memory && general_used_ + wholes <= general.size() &&
            vectors_used_ + reals <= vectors) {
            return in_classes(of, bytes, general, general_used_, vectors_used_);
        }
        // For a number of 16 bytes: older clangs divide it between a register and the stack, or do
        // not align it there.
        const bool large = wholes == 2 && alignment == 16;
        if (large && general_used_ + 1 == general.size()) general_unknown_ = true;
        if (stack_unknown_) return value_place::unknown(behind);
        stack_unknown_ = large || alignment > 16;
        if (stack_unknown_) return value_place::unknown(depends);
        stack_ = up_to(stack_, std::max<std::uint64_t>(alignment, 8));
        const value_place made =
            value_place::in_memory(stack_pointer, static_cast<std::int64_t>(8 + stack_), bytes);
        stack_ += up_to(bytes, 8);
        return made;
    }

    const type_table& types_;
    bool general_unknown_ = false;
    bool vectors_unknown_ = false;
    bool stack_unknown_ = false;
    std::size_t general_used_ = 0;
    std::size_t vectors_used_ = 0;
    std::uint64_t stack_ = 0;  // bytes of the stack used by arguments
};

// --- i386 ---

class convention_32 {
public:
    explicit convention_32(const type_table& types) : types_(types) {}

    [[nodiscard]] call_places places(const function_type& of) {
        call_places made;
        made.result = result(of.returns);
        const bool by_address = made.result.known() && made.result.pieces[0].is == piece::memory;
        if (by_address) stack_ = 4;
        unknown_ = !made.result.known() && types_[of.returns].size.bytes != 0;
        for (const auto& each : of.parameters) made.arguments.push_back(argument(of, each));
        return made;
    }

private:
    static constexpr std::uint8_t eax = 0, edx = 2;
    static constexpr std::uint8_t stack_pointer = stack_pointer_of(program_mode::ilp32);

    [[nodiscard]] value_place result(type_id which) const {
        const type& is = types_[which];
        const std::uint64_t bytes = is.size.bytes;
        if (bytes == 0) return value_place::unknown("it returns nothing");
        const auto general = [&] {
            return in_registers({{.is = piece::reg, .number = eax, .bytes = 4},
                                 {.is = piece::reg, .number = edx, .bytes = 4}},
                                bytes);
        };
        if (is.is == type::kind::structure) return value_place::in_memory(eax, 0, bytes);
        if (is.passed == passing::complex)
            return bytes <= 8 ? general() : value_place::in_memory(eax, 0, bytes);
        if (is.is == type::kind::real)
            return in_registers({{.is = piece::x87, .number = 0, .bytes = bytes}}, bytes);
        const bool number = is.is == type::kind::integer || is.is == type::kind::pointer;
        if (number && bytes <= 8) return general();
        return value_place::unknown(depends);
    }
    [[nodiscard]] value_place argument(const function_type& of,
                                       const function_type::parameter& one) {
        const type& is = types_[one.type];
        if (one.by_reference || is.passed == passing::by_reference) {
            value_place made = on_stack(4);
            if (!made.known()) return made;
            made.pieces[0].through.push_back(0);
            made.pieces[0].bytes = is.size.bytes;
            return made;
        }
        if (is.is == type::kind::structure && is.size.bytes == 0 && is.members.empty())
            return value_place::unknown("it has no bytes");
        const bool is_nothing = is.is == type::kind::nothing;
        if (is_nothing || is.passed == passing::vector || is.size.alignment > 4 ||
            is_empty(types_, one.type)) {
            // Unknown for vectors, anything that contains them, and empty classes.
            unknown_ = unknown_ || !is_nothing || is.passed != passing::whole;
            if (unknown_) return value_place::unknown(depends);
        }
        const bool widened = !of.is_prototyped && is.is == type::kind::real && is.size.bytes == 4;
        value_place made = on_stack(widened ? 8 : is.size.bytes);
        if (widened && made.known())
            return value_place::unknown("its function has no prototype: it is passed as a double");
        return made;
    }
    [[nodiscard]] value_place on_stack(std::uint64_t bytes) {
        if (unknown_) return value_place::unknown(behind);
        const auto made =
            value_place::in_memory(stack_pointer, static_cast<std::int64_t>(4 + stack_), bytes);
        stack_ += up_to(bytes, 4);
        return made;
    }

    const type_table& types_;
    bool unknown_ = false;
    std::uint64_t stack_ = 0;
};

/// Returns whether the debug information agrees with the ABI. It does not show attributes such as
/// regparm.
[[nodiscard]] bool keeps_to(const type_table& types, const function_type& of,
                            const call_places& places) {
    for (std::size_t i = 0; i < of.parameters.size(); ++i) {
        const auto& one = of.parameters[i];
        const value_place& by_abi = places.arguments[i];
        if (one.is_told && one.place.known() && by_abi.known() &&
            one.place.pieces.size() == by_abi.pieces.size()) {
            const auto differ = [](const value_piece& a, const value_piece& b) {
                return a.is != b.is || a.number != b.number || a.offset != b.offset;
            };
            if (differ(one.place.pieces[0], by_abi.pieces[0])) return false;
        }
        // A value that is already on the stack is not copied there.
        const type& is = types[one.type];
        if (types.mode() == program_mode::ilp32 && one.is_copied && is.size.bytes == 4 &&
            (is.is == type::kind::integer || is.is == type::kind::pointer)) {
            return false;
        }
    }
    return true;
}

/// Drops clang's register places that are for the whole function and are not those of the arguments
/// in order: in this case, the function's first instructions have copied the argument there.
void forget_copies(const type_table& types, function_type& of) {
    const bool wide = types.mode() == program_mode::lp64;
    constexpr std::array<std::uint8_t, 2> order_32{1, 2};  // ecx, edx
    const std::span<const std::uint8_t> order =
        wide ? std::span<const std::uint8_t>(general_64) : order_32;
    const std::uint8_t stack_pointer = stack_pointer_of(types.mode());
    std::size_t general = 0;  // the first register that may be next
    std::size_t vectors = 0;
    // Without optimization, i386 does not pass arguments in registers.
    bool in_order = wide || of.is_optimized;
    for (const auto& one : of.parameters) {
        if (!one.is_told) continue;
        for (const value_piece& each : one.place.pieces) {
            if (each.is == piece::vector) {
                if (each.upper) continue;
                in_order = in_order && each.number >= vectors;
                vectors = each.number + std::size_t{1};
            } else if (each.is == piece::reg ||
                       (each.is == piece::memory && each.number != stack_pointer)) {
                const auto at = std::find(order.begin(), order.end(), each.number);
                const auto number = static_cast<std::size_t>(at - order.begin());
                in_order = in_order && at != order.end() && number >= general;
                general = number + 1;
            }
        }
    }
    if (in_order) return;
    for (auto& one : of.parameters) {
        const auto copied = [&](const value_piece& each) {
            return each.is == piece::reg || each.is == piece::vector ||
                   (each.is == piece::memory &&
                    (each.number != stack_pointer || !each.through.empty()));
        };
        if (one.is_told && one.is_for_whole &&
            std::any_of(one.place.pieces.begin(), one.place.pieces.end(), copied)) {
            one.place = value_place::unknown(
                "the debug information gives only the place where the function's first "
                "instructions put it");
            one.is_told = false;
        }
    }
}

/// Drops clang's places for arguments that the function's first statements may have changed, such
/// as `a = b` or `a += 3`. If these statements generate no code, clang gives the place after them.
/// Unchanged arguments are in order; they are in an earlier place than their own only if previous
/// arguments are not passed at all.
void forget_changes(function_type& of, const call_places& by_abi) {
    std::vector<std::size_t> own(of.parameters.size(), SIZE_MAX);  // index of the ABI place that it
                                                                   // occupies
    std::vector<bool> is_doubtful(of.parameters.size(), false);
    const auto same = [](const value_place& a, const value_place& b) {
        return a.known() && b.known() && a.pieces[0].is == b.pieces[0].is &&
               a.pieces[0].number == b.pieces[0].number && a.pieces[0].offset == b.pieces[0].offset;
    };
    std::size_t absent = 0;
    for (std::size_t i = 0; i < own.size(); ++i) {
        const auto& one = of.parameters[i];
        if (!one.is_told || !one.place.known()) {
            ++absent;
            continue;
        }
        is_doubtful[i] = std::any_of(
            one.place.pieces.begin(), one.place.pieces.end(), [](const value_piece& each) {
                return each.is == piece::constant || each.is == piece::computed;
            });
        for (std::size_t k = 0; k < by_abi.arguments.size() && own[i] == SIZE_MAX; ++k)
            if (same(one.place, by_abi.arguments[k])) own[i] = k;
        if (own[i] == SIZE_MAX) continue;
        const bool is_earlier = own[i] <= i && i - own[i] <= absent;
        is_doubtful[i] = is_doubtful[i] || !is_earlier;
        for (std::size_t k = 0; k < i; ++k) {
            if (own[k] == SIZE_MAX || own[k] < own[i]) continue;
            is_doubtful[i] = is_doubtful[k] = true;
        }
    }
    for (std::size_t i = 0; i < own.size(); ++i) {
        if (!is_doubtful[i]) continue;
        of.parameters[i].place = value_place::unknown(
            "the debug information may give the value after the function's first statements");
        of.parameters[i].is_told = false;
    }
}

/// A value that is passed by address is not on the stack itself, although clang's description says
/// so.
void dereference(const type_table& types, function_type& of) {
    const std::uint8_t stack_pointer = stack_pointer_of(types.mode());
    for (auto& one : of.parameters) {
        if (!one.is_told || types[one.type].passed != passing::by_reference) continue;
        for (value_piece& each : one.place.pieces) {
            if (each.is == piece::memory && each.number == stack_pointer && each.through.empty())
                each.through.push_back(0);
        }
    }
}

}  // namespace

call_places places_by_convention(const type_table& types, const function_type& of) {
    if (types.mode() == program_mode::lp64) return convention_64(types).places(of);
    return convention_32(types).places(of);
}

void settle_places(const type_table& types, function_type& of, known_of_function known) {
    const call_places by_abi = places_by_convention(types, of);
    constexpr const char* assume = " (--assume-abi takes the usual place)";
    // In 32 bits, attributes can select other places, and the debug information does not show them.
    const bool keeps_surely = (known.is_exported || !of.is_optimized) && of.calls_as_c &&
                              !of.has_own_convention && !of.lacks_arguments && !of.by_gcc &&
                              types.mode() == program_mode::lp64;
    dereference(types, of);
    if (!of.by_gcc) forget_copies(types, of);
    if (!of.by_gcc && of.is_optimized) forget_changes(of, by_abi);
    std::string why_not;
    if (of.lacks_arguments) {
        why_not = "the debug information does not list all arguments of the function";
    } else if (!of.calls_as_c) {
        why_not = "functions of its language use their own calling conventions";
    } else if (!known.is_exported && of.is_optimized) {
        why_not =
            "the function is not exported, so the optimizer chose its places, and the debug "
            "information does not give this one";
    } else if (of.has_own_convention || (!keeps_surely && !keeps_to(types, of, by_abi))) {
        why_not = "the function uses its own calling convention";
    }
    for (std::size_t i = 0; i < of.parameters.size(); ++i) {
        auto& one = of.parameters[i];
        const bool by_rule = keeps_surely && by_abi.arguments[i].known();
        if (one.place.known() && !by_rule) continue;
        if (by_rule || why_not.empty() || (known.assumes_abi && !of.lacks_arguments)) {
            one.place = by_abi.arguments[i];
        } else if (one.place.why_not.empty()) {
            one.place = value_place::unknown(why_not + assume);
        }
    }
    of.result = by_abi.result;
    const bool is_real_of_32 =
        types.mode() == program_mode::ilp32 && types[of.returns].is == type::kind::real;
    if (known.assumes_abi || !by_abi.result.known()) return;
    if (!of.calls_as_c || of.has_own_convention) {
        of.result = value_place::unknown(why_not + assume);
    } else if (!known.is_exported && of.is_optimized && (!of.by_gcc || is_real_of_32)) {
        // clang removes results that no caller uses, and gcc returns them in other registers.
        of.result = value_place::unknown(
            "the function is not exported, so the optimizer may have changed its result" +
            std::string(assume));
    }
}

}  // namespace trace_clauses
