// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The C types that a clause may use, laid out for programs of one mode: C's own types, those of a
/// script's declarations, and those of a program's DWARF. A type is its number in the table.
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
        name;  ///< empty: an unnamed structure or union, whose members belong to the outer one
    type_id type = 0;
    std::uint64_t offset = 0;  ///< bytes; for a bit-field, of its word
    point::bit_field bits{};   ///< width 0: not a bit-field
};

/// A bit-field with all bits of its type, at an aligned place, is an ordinary member. Some
/// compilers describe members this way.
[[nodiscard]] constexpr point::bit_field unless_all(point::bit_field bits,
                                                    point::extent type) noexcept {
    if (bits.width == type.bytes * 8 && bits.first_bit == 0) return {bits.offset};
    return bits;
}

struct type {
    enum class kind : std::uint8_t {
        nothing,  ///< void, a function, or a type that is declared but not defined
        integer,  ///< also bool, characters and enumerations
        real,
        pointer,
        array,
        structure,  ///< or a union
    };
    /// How calls pass a value, if its kind does not determine this.
    enum class passing : std::uint8_t {
        plain,
        by_reference,  ///< a class with its own copying code: its address is passed
        vector,        ///< an array in a vector register
        complex,       ///< an array of two elements: the real part and the imaginary part
        whole,         ///< a number of kind `nothing`, in general registers
        real,          ///< the same, in vector registers
    };
    kind is = kind::nothing;
    bool is_signed = false;     ///< an integer
    bool is_character = false;  ///< char itself; its arrays are texts
    bool is_boolean = false;    ///< every value except 0 converts to 1
    bool is_reference = false;  ///< a pointer that is written as the object it points to
    passing passed = passing::plain;
    std::string name{};  ///< "struct s", "union u", "enum e", or a typedef's
    point::extent size{};
    type_id of = 0;           ///< the target of a pointer; the element type of an array
    std::uint64_t count = 0;  ///< number of elements of an array; 0: unknown
    std::vector<member> members{};
    /// The names of an enumeration's values; null: none.
    std::shared_ptr<const trace_ring::reduce::value_names> values{};
};

/// A named value of an enumeration.
struct enumerator {
    std::int64_t value = 0;
    /// The enumeration has no negative values: a value that does not fit in an int is unsigned.
    bool is_unsigned = false;
    std::optional<std::int64_t> other{};  ///< value of another enumerator with the same name

    friend bool operator==(const enumerator&, const enumerator&) = default;
};

/// To be used by one thread at a time. Throws only std::bad_alloc.
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
    /// A number of 8 bits that is not a character: signed char, uint8_t.
    [[nodiscard]] type_id byte(bool is_signed) {
        type_id& known = bytes_[is_signed ? 1 : 0];
        if (known == nothing()) {
            known = add({.is = type::kind::integer, .is_signed = is_signed, .size = {1, 1}});
        }
        return known;
    }
    [[nodiscard]] type_id pointer_to(type_id to) { return address_of(to, false); }
    /// A C++ reference.
    [[nodiscard]] type_id reference_to(type_id to) { return address_of(to, true); }
    [[nodiscard]] type_id array_of(type_id element, std::uint64_t count) {
        point::extent size = all_[element].size;
        size.bytes *= count;
        return add({.is = type::kind::array, .size = size, .of = element, .count = count});
    }
    /// Adds any other type. Members of a structure may be added later, because it may point to
    /// itself.
    type_id add(type made) {
        all_.push_back(std::move(made));
        return static_cast<type_id>(all_.size() - 1);
    }
    /// Names are "struct s", "union u", "enum e", and typedefs. The last type with a name is found.
    void name(const std::string& name, type_id of) { names_[name] = of; }
    /// Returns nothing(), which is also void, if there is none.
    [[nodiscard]] type_id find(const std::string& name) const {
        const auto found = names_.find(name);
        return found == names_.end() ? nothing() : found->second;
    }
    [[nodiscard]] const std::map<std::string, type_id>& names() const noexcept { return names_; }
    /// Adds an enumerator of the script.
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
    std::map<std::pair<type_id, bool>, type_id> pointers_;  // true for references
    std::array<type_id, 2> bytes_{};                        // by signedness; nothing: not made yet
    std::map<std::string, type_id> names_;
    std::map<std::string, enumerator> constants_;
};

/// A function as its program declares it.
struct function_type {
    struct parameter {
        std::string name;  ///< empty if it has none
        type_id type = 0;
        /// The place at the function's entry.
        value_place place{};
        /// The program gives its place, or states that it is not the usual one.
        bool is_told = false;
        /// The place is given once for the whole function, so the first instructions may have put
        /// the value there.
        bool is_for_whole = false;
        /// The value is copied into the function's own memory, and the program gives only the
        /// destination.
        bool is_copied = false;
        /// The address of the value is passed, for any type.
        bool by_reference = false;
    };
    std::vector<parameter> parameters{};
    type_id returns = 0;
    value_place result{};  ///< the place after the function has returned
    bool is_variadic = false;
    bool is_prototyped = true;  ///< otherwise floating-point arguments are converted to double
    bool is_optimized = false;
    bool lacks_arguments = false;  ///< unoptimized clang code does not list all of them
    bool by_gcc = false;
    bool has_own_convention = false;  ///< as declared by the program
    /// The functions of its language call each other like C functions.
    bool calls_as_c = true;
};

}  // namespace trace_clauses
