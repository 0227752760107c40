// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The types of C that a clause may use, as the programs of one mode lay them out: those of the
/// language itself, of a script's declarations, and of a program's DWARF. A type is its number in
/// the table.
/// @code
///   type_table types(record::program_mode::ilp32);
///   const type_id number = types.of(point::c_type::long_integer);  // 4 bytes, signed
///   const type_id pointer = types.pointer_to(number);              // 4 bytes
/// @endcode

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <trace_ring/point/c_types.hpp>
#include <trace_ring/point/layout.hpp>
#include <trace_ring/record/data_model.hpp>
#include <trace_ring/reduce/tables/value_names.hpp>

#include "value_place.hpp"

namespace trace_clauses {

namespace point = trace_ring::point;
using trace_ring::record::program_mode;

using type_id = std::uint32_t;

struct member {
    std::string
        name;  ///< empty: a structure or union without a name, whose members are the outer's
    type_id type = 0;
    std::uint64_t offset = 0;  ///< bytes; of a bit-field, of its word
    point::bit_field bits{};   ///< width 0: no bit-field
};

/// Bits that are all of a member of that type, in its place, are no bit-field: so some compilers
/// tell them.
[[nodiscard]] constexpr point::bit_field unless_all(point::bit_field bits,
                                                    point::extent type) noexcept {
    if (bits.width == type.bytes * 8 && bits.first_bit == 0) return {bits.offset};
    return bits;
}

struct type {
    enum class kind : std::uint8_t {
        nothing,  ///< void, a function, or what is declared and not defined
        integer,  ///< also bool, characters and enumerations
        real,
        pointer,
        array,
        structure,  ///< or a union
    };
    /// How calls pass it, where what it is does not say that.
    enum class passing : std::uint8_t {
        plain,
        by_reference,  ///< a class that is copied by code of its own: its address is passed
        vector,        ///< an array that a vector register holds
        complex,       ///< an array of two: the real part, and the imaginary one
        whole,         ///< a number that is `nothing` here, in general registers
        real,          ///< the same, in vector registers
    };
    kind is = kind::nothing;
    bool is_signed = false;     ///< an integer
    bool is_character = false;  ///< char itself: arrays of it are texts
    bool is_boolean = false;    ///< to it, all but 0 becomes 1
    bool is_reference = false;  ///< a pointer that is written as what it points to
    passing passed = passing::plain;
    std::string name{};  ///< "struct s", "union u", "enum e", or a typedef's
    point::extent size{};
    type_id of = 0;           ///< what a pointer points to; an array's element
    std::uint64_t count = 0;  ///< of an array's elements; 0: unknown
    std::vector<member> members{};
    /// What an enumeration calls its values; null: it has none.
    std::shared_ptr<const trace_ring::reduce::value_names> values{};
};

/// What an enumeration calls a value.
struct enumerator {
    std::int64_t value = 0;
    /// The enumeration has no negative ones: a value that no int holds is unsigned.
    bool is_unsigned = false;
    std::optional<std::int64_t> other{};  ///< another one's of the same name

    friend bool operator==(const enumerator&, const enumerator&) = default;
};

/// Not for two threads at once. Throws std::bad_alloc only.
class type_table {
public:
    explicit type_table(program_mode mode) : mode_(mode) { all_.push_back({.name = "void"}); }

    [[nodiscard]] program_mode mode() const noexcept { return mode_; }
    [[nodiscard]] const type& operator[](type_id of) const noexcept { return all_[of]; }
    [[nodiscard]] type& operator[](type_id of) noexcept { return all_[of]; }
    [[nodiscard]] std::size_t size() const noexcept { return all_.size(); }

    /// void.
    [[nodiscard]] static constexpr type_id nothing() noexcept { return 0; }
    /// An arithmetic type of C.
    [[nodiscard]] type_id of(point::c_type which, bool is_signed = true) {
        const auto key = std::pair{which, is_signed};
        if (const auto found = basic_.find(key); found != basic_.end()) return found->second;
        const bool real =
            which >= point::c_type::single_float && which <= point::c_type::long_double_float;
        const type_id made = add({.is = real ? type::kind::real : type::kind::integer,
                                  .is_signed = is_signed && !real,
                                  .is_character = which == point::c_type::character,
                                  .is_boolean = which == point::c_type::boolean,
                                  .size = point::extent_of(which, mode_)});
        basic_.emplace(key, made);
        return made;
    }
    /// A number of 8 bits that is no character: signed char, uint8_t.
    [[nodiscard]] type_id byte(bool is_signed) {
        type_id& known = bytes_[is_signed ? 1 : 0];
        if (known == nothing()) {
            known = add({.is = type::kind::integer, .is_signed = is_signed, .size = {1, 1}});
        }
        return known;
    }
    [[nodiscard]] type_id pointer_to(type_id to) { return address_of(to, false); }
    /// As C++ has them.
    [[nodiscard]] type_id reference_to(type_id to) { return address_of(to, true); }
    [[nodiscard]] type_id array_of(type_id element, std::uint64_t count) {
        point::extent size = all_[element].size;
        size.bytes *= count;
        return add({.is = type::kind::array, .size = size, .of = element, .count = count});
    }
    /// Any other type; a structure's members may be filled in later, as it may point to itself.
    type_id add(type made) {
        all_.push_back(std::move(made));
        return static_cast<type_id>(all_.size() - 1);
    }
    /// Names: "struct s", "union u", "enum e", and of typedefs. The last one of a name is found.
    void name(const std::string& name, type_id of) { names_[name] = of; }
    /// Nothing, which is void's number, if there is none.
    [[nodiscard]] type_id find(const std::string& name) const {
        const auto found = names_.find(name);
        return found == names_.end() ? nothing() : found->second;
    }
    [[nodiscard]] const std::map<std::string, type_id>& names() const noexcept { return names_; }
    /// What a script's enumerations call their values.
    void constant(const std::string& name, enumerator value) { constants_[name] = value; }
    [[nodiscard]] const std::map<std::string, enumerator>& constants() const noexcept {
        return constants_;
    }

private:
    [[nodiscard]] type_id address_of(type_id to, bool is_reference) {
        const auto found = pointers_.find({to, is_reference});
        if (found != pointers_.end()) return found->second;
        const type_id made = add({.is = type::kind::pointer,
                                  .is_reference = is_reference,
                                  .size = point::extent_of(point::c_type::pointer, mode_),
                                  .of = to});
        pointers_.emplace(std::pair{to, is_reference}, made);
        return made;
    }

    program_mode mode_;
    std::vector<type> all_;
    std::map<std::pair<point::c_type, bool>, type_id> basic_;
    std::map<std::pair<type_id, bool>, type_id> pointers_;  // references have true
    std::array<type_id, 2> bytes_{};  // by whether it is signed; nothing: not made yet
    std::map<std::string, type_id> names_;
    std::map<std::string, enumerator> constants_;
};

/// A function as its program declares it.
struct function_type {
    struct parameter {
        std::string name;  ///< empty if it has none
        type_id type = 0;
        /// Where it is when the function is entered.
        value_place place{};
        /// The program says that its place is not the usual one, or which it is.
        bool is_told = false;
        /// It is told once for the whole function: what its first instructions do may come before.
        bool is_for_whole = false;
        /// It is copied into the function's own memory: the program says only where to.
        bool is_copied = false;
        /// What is passed is its address, whatever its type says.
        bool by_reference = false;
    };
    std::vector<parameter> parameters{};
    type_id returns = 0;
    value_place result{};  ///< where it is when the function has returned
    bool is_variadic = false;
    bool is_prototyped = true;  ///< else floating-point arguments are converted to double
    bool is_optimized = false;
    bool lacks_arguments = false;  ///< clang does not list all where it does not optimize
    bool by_gcc = false;
    bool has_own_convention = false;  ///< as the program says
    /// Its language's functions call each other as C's do.
    bool calls_as_c = true;
};

}  // namespace trace_clauses
