// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "dwarf_types.hpp"

#include <dwarf.h>
#include <elfutils/libdw.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <trace_clauses/points/debug_information.hpp>

#include "class_copying.hpp"
#include "dwarf_attributes.hpp"
#include "dwarf_index.hpp"
#include "dwarf_places.hpp"

namespace trace_clauses {
namespace {

constexpr int deepest = 64;  // maximum nesting of types
constexpr std::uint64_t most_bytes = point::layout::most_bytes;

}  // namespace

class dwarf_types::reader {
public:
    reader(const program_file& of, type_table& into) : table_(into), debug_(of) {}

    [[nodiscard]] bool any() const noexcept { return debug_.handle() != nullptr; }

    [[nodiscard]] dwarf_index& index() {
        if (!index_) index_.emplace(debug_.handle());
        return *index_;
    }

    [[nodiscard]] std::optional<function_type> read_function(Dwarf_Die* found) {
        if (found == nullptr) return std::nullopt;
        function_type made;
        Dwarf_Die unit;
        const bool has_unit = dwarf_diecu(found, &unit, nullptr, nullptr) != nullptr;
        // Assemblers list functions without their arguments, so their lists are ignored.
        if (has_unit && dwarf_srclang(&unit) == DW_LANG_Mips_Assembler) return std::nullopt;
        if (has_unit) describe(*found, unit, made);
        made.returns = type_of(*found, 0);
        const std::vector<Dwarf_Die> own = parameters_in(*found, made);
        // The non-inlined copy of an inlined function may lack some of them.
        std::vector<Dwarf_Die> all = own;
        if (auto origin = origin_of(*found)) {
            all.clear();
            for (Dwarf_Die& one : parameters_in(*origin, made)) {
                const auto kept = std::find_if(own.begin(), own.end(), [&](Dwarf_Die each) {
                    const auto its = origin_of(each);
                    return its && its->addr == one.addr;
                });
                // Parameters that only some variants of a constructor have.
                if (kept == own.end() && has_flag(one, DW_AT_artificial)) continue;
                all.push_back(kept == own.end() ? one : *kept);
            }
            if (all.size() < own.size()) all = own;
        }
        for (Dwarf_Die& one : all) {
            const char* const name = dwarf_diename(&one);
            made.parameters.push_back({name == nullptr ? "" : name, type_of(one, 0)});
        }
        complete_all();
        find_places(*found, all, made);
        const auto written = std::count_if(all.begin(), all.end(), [](Dwarf_Die& one) {
            return !has_flag(one, DW_AT_artificial);
        });
        const auto in_name = arguments_in_name(*found);
        made.lacks_arguments = in_name && static_cast<std::size_t>(written) < *in_name;
        return made;
    }

    [[nodiscard]] type_id read_type(Dwarf_Die* found) {
        if (found == nullptr) return type_table::nothing();
        const type_id made = converted(*found, 0);
        complete_all();
        return made;
    }

private:
    enum class state : std::uint8_t { waiting, being_read, read };
    struct structure {
        Dwarf_Die die;
        state is = state::waiting;
    };

    /// Reads the calling convention from the unit, and from the entry itself.
    static void describe(Dwarf_Die& function, Dwarf_Die& unit, function_type& into) {
        const int language = dwarf_srclang(&unit);
        into.calls_as_c = calls_as_c(language);
        const auto convention = number_of(function, DW_AT_calling_convention);
        into.has_own_convention = convention && *convention != DW_CC_normal;
        into.is_prototyped =
            !is_c(unit) || dwarf_hasattr_integrate(&function, DW_AT_prototyped) != 0;
        Dwarf_Attribute attribute;
        const char* const producer =
            dwarf_formstring(dwarf_attr(&unit, DW_AT_producer, &attribute));
        const std::string_view by(producer == nullptr ? "" : producer);
        into.by_gcc = by.starts_with("GNU ");
        if (into.by_gcc && by.find(" -m") != std::string_view::npos) {
            // The producer's options are there.
            const std::size_t level = by.rfind(" -O");
            into.is_optimized =
                level != std::string_view::npos && by.substr(level, 4) != std::string_view(" -O0");
        } else {
            // clang lists all calls only if it optimizes.
            into.is_optimized = dwarf_hasattr(&function, DW_AT_call_all_calls) != 0 ||
                                dwarf_hasattr(&function, DW_AT_GNU_all_call_sites) != 0 ||
                                by.find("clang") == std::string_view::npos;
        }
    }
    /// The number of the function's arguments according to its linker symbol; empty if the symbol
    /// does not show it.
    [[nodiscard]] std::optional<std::size_t> arguments_in_name(Dwarf_Die& function) {
        Dwarf_Attribute attribute;
        const char* const name =
            dwarf_formstring(dwarf_attr_integrate(&function, DW_AT_linkage_name, &attribute));
        if (name == nullptr) return std::nullopt;
        const std::string written = readable_(name);
        const std::size_t end = written.rfind(')');
        if (written == name || end == std::string::npos) return std::nullopt;
        std::size_t depth = 0;
        std::size_t commas = 0;
        for (std::size_t i = end + 1; i-- > 0;) {
            const char c = written[i];
            if (c == ')' || c == '>' || c == ']' || c == '}') ++depth;
            if (c == ',' && depth == 1) ++commas;
            if (c != '(' && c != '<' && c != '[' && c != '{') continue;
            if (--depth != 0) continue;
            const bool variadic =
                written.compare(end - std::min<std::size_t>(end, 3), 3, "...") == 0;
            if (i + 1 == end) return 0;
            return commas + (variadic ? 0U : 1U);
        }
        return std::nullopt;
    }
    [[nodiscard]] static bool calls_as_c(int language) noexcept {
        switch (language) {
            case DW_LANG_C89:
            case DW_LANG_C:
            case DW_LANG_C99:
            case DW_LANG_C11:
            case DW_LANG_C_plus_plus:
            case DW_LANG_C_plus_plus_03:
            case DW_LANG_C_plus_plus_11:
            case DW_LANG_C_plus_plus_14:
            case DW_LANG_ObjC:
            case DW_LANG_ObjC_plus_plus:
            case 0x2B:  // DW_LANG_C_plus_plus_20
            case 0x2C:  // DW_LANG_C17
                return true;
            default:
                return false;
        }
    }
    [[nodiscard]] static std::optional<Dwarf_Die> origin_of(Dwarf_Die& of) {
        Dwarf_Attribute attribute;
        Dwarf_Die origin;
        if (dwarf_formref_die(dwarf_attr(&of, DW_AT_abstract_origin, &attribute), &origin) ==
            nullptr) {
            return std::nullopt;
        }
        return origin;
    }
    [[nodiscard]] std::vector<Dwarf_Die> parameters_in(Dwarf_Die& function, function_type& into) {
        std::vector<Dwarf_Die> made;
        each_child(function, [&](Dwarf_Die& one) {
            if (dwarf_tag(&one) == DW_TAG_unspecified_parameters) into.is_variadic = true;
            if (dwarf_tag(&one) != DW_TAG_formal_parameter || made.size() == most_parameters)
                return;
            made.push_back(one);
        });
        return made;
    }
    void find_places(Dwarf_Die& function, std::vector<Dwarf_Die>& parameters, function_type& into) {
        const std::uint64_t entry = debug_information::entry_of(function);
        if (entry == 0) return;
        if (!rules_) rules_.emplace(debug_.file(), debug_.handle());
        dwarf_places places(function, entry, table_.mode(), *rules_);
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            auto& one = into.parameters[i];
            places.read(parameters[i], table_[one.type].size.bytes, one);
        }
    }

    template <class Tell>
    void each_child(Dwarf_Die& of, Tell&& tell) {
        Dwarf_Die one;
        if (dwarf_child(&of, &one) != 0) return;
        do {
            if (left_ == 0) return;
            --left_;
            tell(one);
        } while (dwarf_siblingof(&one, &one) == 0);
    }

    [[nodiscard]] type_id type_of(Dwarf_Die& of, int depth) {
        Dwarf_Die found;
        return find_type(of, found) ? converted(found, depth) : type_table::nothing();
    }

    /// The type's number. Members of structures are added by `complete_all`.
    [[nodiscard]] type_id converted(Dwarf_Die& of, int depth) {
        if (const auto known = known_.find(of.addr); known != known_.end()) return known->second;
        if (depth == deepest || left_ == 0) return type_table::nothing();
        --left_;
        const void* const key = of.addr;
        const type_id made = convert(of, depth + 1);
        known_.emplace(key, made);
        return made;
    }

    [[nodiscard]] type_id convert(Dwarf_Die& of, int depth) {
        switch (dwarf_tag(&of)) {
            case DW_TAG_base_type:
                return base_type(of);
            case DW_TAG_pointer_type:
                return table_.pointer_to(type_of(of, depth));
            case DW_TAG_reference_type:
            case DW_TAG_rvalue_reference_type:
                return table_.reference_to(type_of(of, depth));
            case DW_TAG_const_type:
            case DW_TAG_volatile_type:
            case DW_TAG_restrict_type:
            case DW_TAG_atomic_type:
            case DW_TAG_immutable_type:
                return type_of(of, depth);
            case DW_TAG_typedef: {
                const type_id meant = type_of(of, depth);
                if (const char* const name = dwarf_diename(&of)) table_.name(name, meant);
                return meant;
            }
            case DW_TAG_array_type:
                return array_type(of, depth);
            case DW_TAG_enumeration_type:
                return enumeration(of, depth);
            case DW_TAG_structure_type:
            case DW_TAG_class_type:
            case DW_TAG_union_type:
                return structure_type(of, depth);
            case DW_TAG_ptr_to_member_type:
                return member_pointer(of);
            case DW_TAG_unspecified_type:  // decltype(nullptr)
                return table_.pointer_to(type_table::nothing());
            default:
                return inexpressible(of);
        }
    }

    [[nodiscard]] type_id inexpressible(Dwarf_Die& of,
                                        type::passing passed = type::passing::plain) {
        const auto bytes = number_of(of, DW_AT_byte_size).value_or(0);
        if (bytes == 0 || bytes > most_bytes) return type_table::nothing();
        const char* const name = dwarf_diename(&of);
        const std::uint64_t alignment = bytes % 16 == 0                  ? 16
                                        : passed == type::passing::plain ? 1
                                                                         : bytes;
        return table_.add(
            {.passed = passed, .name = name == nullptr ? "" : name, .size = {bytes, alignment}});
    }
    /// A pointer to a data member is an offset; a pointer to a member function is two words.
    [[nodiscard]] type_id member_pointer(Dwarf_Die& of) {
        const type_id word = table_.of(point::c_type::long_integer);
        Dwarf_Die pointed;
        if (!find_type(of, pointed)) return type_table::nothing();
        if (dwarf_tag(&pointed) != DW_TAG_subroutine_type) return word;
        const point::extent one = table_[word].size;
        return table_.add({.is = type::kind::structure,
                           .name = "a pointer to a member function",
                           .size = {2 * one.bytes, one.alignment},
                           .members = {{"ptr", word, 0}, {"adj", word, one.bytes}}});
    }

    [[nodiscard]] type_id base_type(Dwarf_Die& of) {
        using enum point::c_type;
        const auto bytes = number_of(of, DW_AT_byte_size).value_or(0);
        const auto encoding = number_of(of, DW_AT_encoding).value_or(0);
        if (encoding == DW_ATE_float) {
            // _Float128 has the size of a long double, but is a different type.
            const char* const name = dwarf_diename(&of);
            const bool extended = name != nullptr && std::string_view(name) == "long double";
            if (bytes == 4) return table_.of(single_float);
            if (bytes == 8) return table_.of(double_float);
            if (extended && bytes == point::extent_of(long_double_float, table_.mode()).bytes) {
                return table_.of(long_double_float);
            }
            return inexpressible(of, type::passing::real);
        }
        if (encoding == DW_ATE_decimal_float) return inexpressible(of, type::passing::real);
        if (encoding == DW_ATE_complex_float || encoding == DW_ATE_lo_user)
            return complex_type(bytes, encoding == DW_ATE_complex_float);
        const bool is_signed = encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
        if (encoding == DW_ATE_boolean && bytes == 1) return table_.of(boolean, false);
        if (!is_signed && encoding != DW_ATE_unsigned && encoding != DW_ATE_unsigned_char &&
            encoding != DW_ATE_UTF && encoding != DW_ATE_boolean) {
            return inexpressible(of);
        }
        const char* const own = dwarf_diename(&of);
        const std::string_view called(own == nullptr ? "" : own);
        if (bytes == 1 && (called == "char" || called == "char8_t"))
            return table_.of(character, is_signed);
        const auto made = integer_of(bytes, is_signed);
        return made ? *made : inexpressible(of, type::passing::whole);
    }
    /// An array of two elements: the real part and the imaginary part.
    [[nodiscard]] type_id complex_type(std::uint64_t bytes, bool is_real) {
        using enum point::c_type;
        type_id part = type_table::nothing();
        if (!is_real) {
            part = integer_of(bytes / 2, true).value_or(part);
        } else if (bytes == 8) {
            part = table_.of(single_float);
        } else if (bytes == 16) {
            part = table_.of(double_float);
        } else if (bytes == 2 * point::extent_of(long_double_float, table_.mode()).bytes) {
            part = table_.of(long_double_float);
        }
        if (part == type_table::nothing()) return part;
        const type_id made = table_.array_of(part, 2);
        table_[made].passed = type::passing::complex;
        return made;
    }

    [[nodiscard]] std::optional<type_id> integer_of(std::uint64_t bytes, bool is_signed) {
        using enum point::c_type;
        if (bytes == 1) return table_.byte(is_signed);
        if (bytes == 2) return table_.of(short_integer, is_signed);
        if (bytes == 4) return table_.of(integer, is_signed);
        if (bytes == 8) return table_.of(long_long_integer, is_signed);
        return std::nullopt;
    }

    [[nodiscard]] type_id enumeration(Dwarf_Die& of, int depth) {
        if (auto other = elsewhere(of)) return converted(*other, depth);
        auto bytes = number_of(of, DW_AT_byte_size).value_or(0);
        const auto encoding = number_of(of, DW_AT_encoding);
        bool is_signed = encoding == std::uint64_t{DW_ATE_signed};
        const bool known = encoding || dwarf_hasattr(&of, DW_AT_type) != 0;
        std::vector<std::pair<std::int64_t, std::string>> values;
        each_child(of, [&](Dwarf_Die& one) {
            const auto value = constant_of(one);
            if (dwarf_tag(&one) != DW_TAG_enumerator || !value) return;
            is_signed = is_signed || (!known && *value < 0);
            const char* const name = dwarf_diename(&one);
            values.emplace_back(*value, name == nullptr ? "" : name);
        });
        if (const type_id like = type_of(of, depth); like != type_table::nothing()) {
            is_signed = table_[like].is_signed;
            if (bytes == 0) bytes = table_[like].size.bytes;
        }
        const auto base = integer_of(bytes, is_signed);
        if (!base) return type_table::nothing();
        type made = table_[*base];
        made.name = name_of(of);
        made.is_character = made.is_boolean = false;
        // Read as the type's numbers: compilers write the same bits with and without a sign.
        std::vector<trace_ring::reduce::value_names::entry> names;
        for (auto& [value, name] : values) {
            const unsigned above = 64 - 8 * static_cast<unsigned>(bytes);
            const std::uint64_t high = static_cast<std::uint64_t>(value) << above;
            const auto extended =
                is_signed ? static_cast<std::uint64_t>(static_cast<std::int64_t>(high) >> above)
                          : high >> above;
            if (!name.empty()) names.push_back({extended, std::move(name)});
        }
        made.values = std::make_shared<const trace_ring::reduce::value_names>(std::move(names));
        const type_id id = table_.add(std::move(made));
        register_name(of, id);
        return id;
    }

    [[nodiscard]] type_id array_type(Dwarf_Die& of, int depth) {
        std::vector<std::uint64_t> counts;
        each_child(of, [&](Dwarf_Die& one) {
            if (dwarf_tag(&one) != DW_TAG_subrange_type || counts.size() == most_dimensions) return;
            auto count = number_of(one, DW_AT_count);
            if (!count) {
                const auto last = number_of(one, DW_AT_upper_bound);
                count = last ? *last + 1 : 0;
            }
            counts.push_back(*count);
        });
        type_id made = type_of(of, depth);
        complete(made, depth);
        std::reverse(counts.begin(), counts.end());
        for (const std::uint64_t count : counts) {
            const std::uint64_t bytes = table_[made].size.bytes;
            if (count > most_bytes || (bytes != 0 && count > most_bytes / bytes)) {
                return type_table::nothing();
            }
            made = table_.array_of(made, count);
        }
        const auto bytes = table_[made].size.bytes;
        if (has_flag(of, DW_AT_GNU_vector) && bytes != 0 && (bytes & (bytes - 1)) == 0) {
            table_[made].size.alignment = bytes;
            table_[made].passed = type::passing::vector;
        }
        return made;
    }

    /// The definition for a declaration.
    [[nodiscard]] std::optional<Dwarf_Die> elsewhere(Dwarf_Die& of) {
        // In a type unit, or in any other unit.
        Dwarf_Attribute attribute;
        Dwarf_Die found;
        if (dwarf_formref_die(dwarf_attr(&of, DW_AT_signature, &attribute), &found) != nullptr &&
            dwarf_hasattr(&found, DW_AT_signature) == 0 && !is_declaration(found)) {
            return found;
        }
        if (!is_declaration(of)) return std::nullopt;
        const Dwarf_Die* const other = index().definition_of(of);
        return other == nullptr ? std::nullopt : std::optional(*other);
    }

    [[nodiscard]] type_id structure_type(Dwarf_Die& of, int depth) {
        if (auto other = elsewhere(of)) return converted(*other, depth);
        const auto bytes = number_of(of, DW_AT_byte_size);
        if (!bytes || *bytes > most_bytes) {
            // Only declared: there may be pointers to it.
            return table_.add({.name = name_of(of)});
        }
        const type_id made =
            table_.add({.is = type::kind::structure, .name = name_of(of), .size = {*bytes, 1}});
        register_name(of, made);
        structures_.emplace(made, structure{of});
        waiting_.push_back(made);
        return made;
    }

    [[nodiscard]] static std::string name_of(Dwarf_Die& of) {
        const char* const name = dwarf_diename(&of);
        return name == nullptr ? "" : tag_of(of) + " " + name;
    }
    void register_name(Dwarf_Die& of, type_id is) {
        const char* const name = dwarf_diename(&of);
        if (name == nullptr) return;
        table_.name(tag_of(of) + " " + name, is);
        Dwarf_Die unit;
        if (dwarf_diecu(&of, &unit, nullptr, nullptr) == nullptr || is_c(unit)) return;
        if (!table_.names().contains(name)) table_.name(name, is);
    }

    void complete_all() {
        while (!waiting_.empty()) {
            const type_id next = waiting_.back();
            waiting_.pop_back();
            complete(next, 0);
        }
    }

    /// Reads the members of a structure. The types of its members are completed first, because
    /// their alignment determines its own.
    void complete(type_id which, int depth) {
        const auto found = structures_.find(which);
        if (found == structures_.end() || found->second.is != state::waiting || depth >= deepest) {
            return;
        }
        found->second.is = state::being_read;
        Dwarf_Die die = found->second.die;
        std::uint64_t alignment = number_of(die, DW_AT_alignment).value_or(1);
        const std::uint64_t whole = table_[which].size.bytes;
        bool packed = false;
        std::vector<member> members;
        class_copying copied(die);
        each_child(die, [&](Dwarf_Die& one) {
            copied.look_at(one);
            auto made = read_member(one, dwarf_tag(&die) == DW_TAG_union_type, whole, depth + 1);
            if (!made) return;
            const std::uint64_t own = table_[made->type].size.alignment;
            packed = packed || (made->bits.width == 0 && made->offset % own != 0);
            alignment = std::max(alignment, own);
            members.push_back(std::move(*made));
        });
        packed = packed || alignment == 0 || whole % alignment != 0;
        const bool member_copies =
            std::any_of(members.begin(), members.end(), [this](const member& each) {
                const type* is = &table_[each.type];
                while (is->is == type::kind::array) is = &table_[is->of];
                return is->passed == type::passing::by_reference;
            });
        if (copied.by_own_code(member_copies)) {
            table_[which].passed = type::passing::by_reference;
        }
        table_[which].size.alignment = packed ? 1 : alignment;
        table_[which].members = std::move(members);
        structures_.at(which).is = state::read;
    }

    [[nodiscard]] std::optional<member> read_member(Dwarf_Die& one, bool in_union,
                                                    std::uint64_t whole, int depth) {
        const int tag = dwarf_tag(&one);
        if (tag != DW_TAG_member && tag != DW_TAG_inheritance) return std::nullopt;
        const auto bit_width = number_of(one, DW_AT_bit_size);
        const auto place = place_of(one);
        const bool by_bits = dwarf_hasattr(&one, DW_AT_data_bit_offset) != 0;
        // Static, or a virtual base.
        if ((!place && !by_bits && !in_union) || is_declaration(one)) return std::nullopt;
        const char* const name = tag == DW_TAG_inheritance ? nullptr : dwarf_diename(&one);
        member made{name == nullptr ? "" : name, type_of(one, depth), place.value_or(0)};
        complete(made.type, depth);
        if (made.offset > whole) return std::nullopt;
        if (!bit_width) return made;
        const point::extent type = table_[made.type].size;
        const auto bits = bits_at(first_bit_of(one, made.offset, type.bytes, *bit_width),
                                  *bit_width, type, whole);
        if (!bits) return std::nullopt;
        made.bits = unless_all(*bits, type);
        made.offset = made.bits.offset;
        return made;
    }
    static constexpr std::size_t most_parameters = 256;
    static constexpr std::size_t most_dimensions = 16;

    type_table& table_;
    debug_information debug_;
    std::optional<unwind_rules> rules_;
    std::optional<dwarf_index> index_;
    std::size_t left_ = std::size_t{1} << 21;  // remaining number of entries to read
    name_reader readable_;
    std::unordered_map<const void*, type_id> known_;
    std::unordered_map<type_id, structure> structures_;
    std::vector<type_id> waiting_;
};

dwarf_types::dwarf_types(const program_file& of, type_table& into)
    : reader_(std::make_unique<reader>(of, into)) {}
dwarf_types::~dwarf_types() = default;
dwarf_types::dwarf_types(dwarf_types&&) noexcept = default;

bool dwarf_types::any() const noexcept {
    return reader_->any();
}
std::optional<function_type> dwarf_types::of_function(std::uint64_t address) {
    if (!any()) return std::nullopt;
    return reader_->read_function(reader_->index().at(address));
}
std::optional<function_type> dwarf_types::of_function(const std::string& name) {
    if (!any()) return std::nullopt;
    return reader_->read_function(reader_->index().function(name));
}
type_id dwarf_types::find(const std::string& name) {
    if (!any()) return type_table::nothing();
    return reader_->read_type(reader_->index().defined(name));
}
std::optional<enumerator> dwarf_types::value(const std::string& name) {
    const enumerator* const found = any() ? reader_->index().value(name) : nullptr;
    return found == nullptr ? std::nullopt : std::optional(*found);
}

}  // namespace trace_clauses
