// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "dwarf_places.hpp"

#include <dwarf.h>
#include <gelf.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

namespace trace_clauses {
namespace {

using piece = value_piece::kind;

}  // namespace

dwarf_places::dwarf_places(Dwarf_Die& function, std::uint64_t entry, program_mode mode,
                           unwind_rules& rules)
    : entry_(entry), mode_(mode), rules_(rules) {
    find_frame_base(function);
}

void dwarf_places::find_frame_base(Dwarf_Die& function) {
    Dwarf_Attribute attribute;
    Dwarf_Op* operations = nullptr;
    std::size_t count = 0;
    if (dwarf_attr_integrate(&function, DW_AT_frame_base, &attribute) == nullptr ||
        dwarf_getlocation_addr(&attribute, entry_, &operations, &count, 1) < 1 || count != 1) {
        return;
    }
    const unsigned atom = operations[0].atom;
    if (atom == DW_OP_call_frame_cfa) {
        frame_base_ = 0;
        return;
    }
    // A register's value after the function's first instructions.
    std::uint64_t reg = atom - DW_OP_reg0;
    if (atom == DW_OP_regx) {
        reg = operations[0].number;
    } else if (atom < DW_OP_reg0 || atom > DW_OP_reg31) {
        return;
    }
    Dwarf_Addr* behind = nullptr;
    const int found = dwarf_entry_breakpoints(&function, &behind);
    const std::unique_ptr<Dwarf_Addr, decltype(&std::free)> freed(behind, &std::free);
    if (found < 1) return;
    if (const auto end = rules_.frame_end_at(behind[0]); end && end->reg == reg) {
        frame_base_ = -end->offset;
    }
}

dwarf_places::term dwarf_places::register_of(std::uint64_t number) const {
    term made;
    made.is_register = true;
    const bool wide = mode_ == program_mode::lp64;
    const std::uint64_t general = wide ? 16 : 8;
    const std::uint64_t first_vector = wide ? 17 : 21;
    const std::uint64_t vectors = wide ? 16 : 8;
    if (number < general) {
        made.piece.is = piece::reg;
        made.piece.number = static_cast<std::uint8_t>(number);
    } else if (number >= first_vector && number < first_vector + vectors) {
        made.piece.is = piece::vector;
        made.piece.number = static_cast<std::uint8_t>(number - first_vector);
    } else {
        made.piece.is = piece::lost;
    }
    return made;
}

std::optional<dwarf_places::term> dwarf_places::entry_value(Dwarf_Attribute& of,
                                                            const Dwarf_Op& one) const {
    Dwarf_Attribute within;
    Dwarf_Op* operations = nullptr;
    std::size_t count = 0;
    if (dwarf_getlocation_attr(&of, &one, &within) != 0 ||
        dwarf_getlocation(&within, &operations, &count) != 0 || count != 1) {
        return std::nullopt;
    }
    const unsigned atom = operations[0].atom;
    std::uint64_t number = operations[0].number;
    if (atom >= DW_OP_reg0 && atom <= DW_OP_reg31) {
        number = atom - DW_OP_reg0;
    } else if (atom != DW_OP_regx) {
        return std::nullopt;
    }
    term made = register_of(number);
    if (made.piece.is != piece::reg) return std::nullopt;
    made.is_register = false;
    return made;
}

dwarf_places::outcome dwarf_places::evaluate(Dwarf_Attribute& of, const Dwarf_Op* operations,
                                             std::size_t count, bool whole_function,
                                             std::uint64_t bytes, std::vector<value_piece>& into) {
    std::vector<term> stack;
    std::uint64_t done = 0;
    bool is_copied = false;
    // The value on the stack becomes a piece of the given number of bytes.
    const auto close = [&](std::uint64_t size) {
        term one;
        if (stack.empty()) {
            one.piece.is = piece::lost;
        } else {
            one = stack.back();
            if (!one.is_register && !one.is_value && one.piece.is == piece::reg)
                one.piece.is = piece::memory;
            if (one.is_value && one.piece.is == piece::reg &&
                (one.piece.offset != 0 || !one.piece.through.empty()))
                one.piece.is = piece::computed;
        }
        stack.clear();
        done += size;
        one.piece.bytes = size;
        if (one.piece.is == piece::vector && size > 8) {
            one.piece.bytes = 8;
            into.push_back(one.piece);
            one.piece.upper = true;
            one.piece.bytes = size - 8;
        }
        // A register of 8 or 4 bytes cannot hold more.
        if (one.piece.is == piece::reg && size > static_cast<std::uint64_t>(word())) {
            one.piece.bytes = static_cast<std::uint64_t>(word());
            into.push_back(one.piece);
            one.piece = {.is = piece::lost, .bytes = size - static_cast<std::uint64_t>(word())};
        }
        into.push_back(one.piece);
    };
    const auto push_at = [&](std::uint8_t base, std::int64_t offset) {
        term made;
        made.piece.is = piece::reg;
        made.piece.number = base;
        made.piece.offset = offset;
        stack.push_back(std::move(made));
    };
    const auto push_constant = [&](std::int64_t value) {
        term made;
        made.piece.is = piece::constant;
        made.piece.offset = value;
        stack.push_back(std::move(made));
    };
    const auto add = [&](std::int64_t value) {
        if (stack.empty() || stack.back().is_register) return false;
        value_piece& top = stack.back().piece;
        std::int64_t& to = top.through.empty() ? top.offset : top.through.back();
        to = static_cast<std::int64_t>(static_cast<std::uint64_t>(to) +
                                       static_cast<std::uint64_t>(value));
        return true;
    };
    const std::uint8_t frame_pointer = mode_ == program_mode::lp64 ? 6 : 5;
    for (std::size_t i = 0; i < count; ++i) {
        const Dwarf_Op& one = operations[i];
        const unsigned atom = one.atom;
        if (atom >= DW_OP_reg0 && atom <= DW_OP_reg31) {
            stack.push_back(register_of(atom - DW_OP_reg0));
        } else if (atom == DW_OP_regx) {
            stack.push_back(register_of(one.number));
        } else if ((atom >= DW_OP_breg0 && atom <= DW_OP_breg31) || atom == DW_OP_bregx) {
            const bool extended = atom == DW_OP_bregx;
            const std::uint64_t number = extended ? one.number : atom - DW_OP_breg0;
            if (number >= (mode_ == program_mode::lp64 ? 16U : 8U)) return outcome::not_understood;
            // For the whole function, these two contain values that its first instructions have
            // stored there.
            is_copied =
                is_copied ||
                (whole_function && (number == stack_pointer_of(mode_) || number == frame_pointer));
            push_at(static_cast<std::uint8_t>(number),
                    static_cast<std::int64_t>(extended ? one.number2 : one.number));
        } else if (atom == DW_OP_fbreg || atom == DW_OP_call_frame_cfa) {
            std::int64_t offset = 0;
            if (atom == DW_OP_fbreg) {
                if (!frame_base_) {
                    is_copied = true;
                } else {
                    offset = *frame_base_ + static_cast<std::int64_t>(one.number);
                }
            }
            // Memory below the return address belongs to the function.
            is_copied = is_copied || offset < 0;
            push_at(stack_pointer_of(mode_), word() + offset);
        } else if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31) {
            push_constant(static_cast<std::int64_t>(atom - DW_OP_lit0));
        } else if (atom >= DW_OP_const1u && atom <= DW_OP_consts) {
            push_constant(static_cast<std::int64_t>(one.number));
        } else if (atom == DW_OP_plus_uconst) {
            if (!add(static_cast<std::int64_t>(one.number))) return outcome::not_understood;
        } else if (atom == DW_OP_plus || atom == DW_OP_minus) {
            if (stack.size() < 2 || stack.back().piece.is != piece::constant)
                return outcome::not_understood;
            const std::int64_t value = stack.back().piece.offset;
            stack.pop_back();
            if (!add(atom == DW_OP_plus ? value : -value)) return outcome::not_understood;
        } else if (atom == DW_OP_deref) {
            if (stack.empty() || stack.back().piece.is != piece::reg || stack.back().is_register)
                return outcome::not_understood;
            stack.back().piece.through.push_back(0);
        } else if (atom == DW_OP_entry_value || atom == DW_OP_GNU_entry_value) {
            const auto made = entry_value(of, one);
            if (!made) return outcome::not_understood;
            stack.push_back(*made);
        } else if (atom == DW_OP_stack_value) {
            if (stack.empty() || stack.back().is_register) return outcome::not_understood;
            stack.back().is_value = true;
        } else if (atom == DW_OP_implicit_value) {
            Dwarf_Block block;
            if (dwarf_getlocation_implicit_value(&of, &one, &block) != 0 || block.length > 64)
                return outcome::not_understood;
            for (std::uint64_t at = 0; at < block.length; at += 8) {
                const std::uint64_t part = std::min<std::uint64_t>(8, block.length - at);
                std::int64_t value = 0;
                std::memcpy(&value, block.data + at, part);
                push_constant(value);
                stack.back().is_value = true;
                if (i + 1 == count || part < block.length) close(part);
            }
        } else if (atom == DW_OP_piece) {
            if (one.number == 0 || one.number > bytes) return outcome::not_understood;
            close(one.number);
        } else if (atom == DW_OP_implicit_pointer || atom == DW_OP_GNU_implicit_pointer) {
            return outcome::lost;
        } else if (atom != DW_OP_nop) {
            return outcome::not_understood;
        }
    }
    if (!stack.empty() && done == 0) {
        // A constant without stack_value is an address in the file, of a static object.
        if (stack.back().piece.is == piece::constant && !stack.back().is_value)
            return outcome::not_understood;
        close(bytes);
    }
    if (is_copied) return outcome::copied;
    if (into.empty() || std::all_of(into.begin(), into.end(),
                                    [](const value_piece& each) { return each.is == piece::lost; }))
        return outcome::lost;
    return outcome::known;
}

namespace {

/// The view numbers at which the places of a list begin, in order. A place that becomes valid only
/// after statements without code begins at the same address, with a view above 0. Source: gcc's
/// DW_AT_GNU_locviews.
class location_views {
public:
    explicit location_views(Dwarf_Die& parameter) {
        Dwarf_Attribute attribute;
        Dwarf_Word offset = 0;
        if (dwarf_attr(&parameter, DW_AT_GNU_locviews, &attribute) == nullptr ||
            dwarf_formudata(&attribute, &offset) != 0) {
            return;
        }
        any_ = true;
        ::Elf* const file = dwarf_getelf(dwarf_cu_getdwarf(parameter.cu));
        std::size_t names = 0;
        if (file == nullptr || elf_getshdrstrndx(file, &names) != 0) return;
        const std::string_view wanted =
            dwarf_whatform(&attribute) == DW_FORM_sec_offset && is_of_5(parameter)
                ? ".debug_loclists"
                : ".debug_loc";
        for (Elf_Scn* each = nullptr; (each = elf_nextscn(file, each)) != nullptr;) {
            GElf_Shdr header;
            if (gelf_getshdr(each, &header) == nullptr) continue;
            const char* const name = elf_strptr(file, names, header.sh_name);
            if (name == nullptr || wanted != name) continue;
            if ((header.sh_flags & SHF_COMPRESSED) != 0 && elf_compress(each, 0, 0) < 0) return;
            const Elf_Data* const data = elf_getdata(each, nullptr);
            if (data == nullptr || offset >= data->d_size) return;
            const auto* const bytes = static_cast<const unsigned char*>(data->d_buf);
            at_ = bytes + offset;
            end_ = bytes + data->d_size;
            return;
        }
    }
    /// The view of the next place; 0 without views, and empty if they cannot be read.
    [[nodiscard]] std::optional<std::uint64_t> next() {
        if (!any_) return 0;
        const auto begins = number();
        return number() ? begins : std::nullopt;  // the end is not needed
    }

private:
    [[nodiscard]] static bool is_of_5(Dwarf_Die& of) {
        Dwarf_Half version = 0;
        Dwarf_Die unit;
        return dwarf_cu_die(of.cu, &unit, &version, nullptr, nullptr, nullptr, nullptr, nullptr) !=
                   nullptr &&
               version >= 5;
    }
    [[nodiscard]] std::optional<std::uint64_t> number() {
        std::uint64_t made = 0;
        for (unsigned shift = 0; at_ != end_ && shift < 64; shift += 7) {
            const unsigned char byte = *at_++;
            made |= std::uint64_t{byte & 0x7FU} << shift;
            if ((byte & 0x80U) == 0) return made;
        }
        return std::nullopt;
    }

    bool any_ = false;
    const unsigned char* at_ = nullptr;
    const unsigned char* end_ = nullptr;
};

}  // namespace

std::vector<dwarf_places::expression> dwarf_places::at_entry(Dwarf_Die& parameter,
                                                             Dwarf_Attribute& attribute) const {
    std::vector<expression> found;
    location_views views(parameter);
    Dwarf_Addr base = 0, begin = 0, end = 0;
    Dwarf_Op* operations = nullptr;
    std::size_t count = 0;
    constexpr std::size_t most = 8;
    for (std::ptrdiff_t at = 0;
         found.size() < most &&
         (at = dwarf_getlocations(&attribute, at, &base, &begin, &end, &operations, &count)) > 0;) {
        const auto view = views.next();
        const bool is_whole = begin == 0 && end == ~Dwarf_Addr{0};
        // A place that begins there may be valid for no instruction.
        const bool is_there = is_whole || (begin < entry_ && entry_ < end) ||
                              (begin == entry_ && view == std::uint64_t{0});
        if (is_there) found.push_back({operations, count});
    }
    return found;
}

void dwarf_places::read(Dwarf_Die& parameter, std::uint64_t bytes, function_type::parameter& into) {
    constexpr const char* optimized_out = "it is optimized out";
    Dwarf_Attribute attribute;
    if (bytes == 0) return;
    if (dwarf_attr(&parameter, DW_AT_const_value, &attribute) != nullptr) {
        Dwarf_Word value = 0;
        Dwarf_Sword with_sign = 0;
        std::int64_t constant = 0;
        if (dwarf_formsdata(&attribute, &with_sign) == 0) {
            constant = with_sign;
        } else if (dwarf_formudata(&attribute, &value) == 0) {
            constant = static_cast<std::int64_t>(value);
        } else {
            into.place = value_place::unknown(
                "it is a constant, which the debug information describes in an unsupported form");
            return;
        }
        into.is_told = true;
        into.place.pieces = {{.is = piece::constant,
                              .bytes = std::min<std::uint64_t>(bytes, 8),
                              .offset = constant}};
        return;
    }
    if (dwarf_attr(&parameter, DW_AT_location, &attribute) == nullptr) {
        into.place.why_not = optimized_out;
        return;
    }
    // In a list of places, one is valid at the function's begin, or none is.
    const bool whole_function = dwarf_whatform(&attribute) == DW_FORM_exprloc ||
                                dwarf_whatform(&attribute) == DW_FORM_block1 ||
                                dwarf_whatform(&attribute) == DW_FORM_block;
    const std::vector<expression> found = at_entry(parameter, attribute);
    if (found.empty()) {
        into.place.why_not = "the debug information has no place for it where the function begins";
        return;
    }
    for (const expression& each : found) {
        std::vector<value_piece> pieces;
        const outcome how =
            evaluate(attribute, each.operations, each.count, whole_function, bytes, pieces);
        if (how == outcome::copied) {
            into.is_copied = true;
            // The copied value is the address of the argument.
            const bool by_address = pieces.size() == 1 && !pieces[0].through.empty();
            into.by_reference = into.by_reference || by_address;
        } else if (how == outcome::known) {
            into.is_told = true;
            into.is_for_whole = whole_function;
            into.place = {std::move(pieces), {}};
            return;
        } else if (how == outcome::lost) {
            into.place.why_not = optimized_out;
        } else {
            into.place.why_not = "the debug information gives its place in an unsupported form";
        }
    }
}

}  // namespace trace_clauses
