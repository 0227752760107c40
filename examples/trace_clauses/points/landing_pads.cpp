// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "landing_pads.hpp"

#include <dwarf.h>
#include <elfutils/libdw.h>

#include <cstddef>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>

namespace trace_clauses {
namespace {

/// The pointer encodings that a common entry (CIE) defines for its functions' entries.
struct encodings {
    std::uint8_t function = DW_EH_PE_absptr;
    std::uint8_t table = DW_EH_PE_omit;
    bool has_size = false;  // of the data before the instructions
};

/// Reads the pointers of a section one after another.
class pointer_reader {
public:
    pointer_reader(const std::uint8_t* begin, const std::uint8_t* end, std::uint64_t address,
                   bool wide)
        : at_(begin), end_(end), address_(address), wide_(wide) {}

    [[nodiscard]] const std::uint8_t* at() const noexcept { return at_; }
    /// The value as stored in the file. Empty if it is truncated or in an unknown form.
    [[nodiscard]] std::optional<std::uint64_t> raw(std::uint8_t encoding) {
        std::size_t bytes = 0;
        bool is_signed = false;
        switch (encoding & 0x0FU) {
            case DW_EH_PE_absptr:
                bytes = wide_ ? 8 : 4;
                break;
            case DW_EH_PE_udata4:
            case DW_EH_PE_sdata4:
                bytes = 4;
                is_signed = (encoding & 0x0FU) == DW_EH_PE_sdata4;
                break;
            case DW_EH_PE_udata8:
            case DW_EH_PE_sdata8:
                bytes = 8;
                break;
            default:
                return std::nullopt;
        }
        if (static_cast<std::size_t>(end_ - at_) < bytes) return std::nullopt;
        std::uint64_t value = 0;
        std::memcpy(&value, at_, bytes);
        at_ += bytes;
        address_ += bytes;
        if (is_signed)
            value = static_cast<std::uint64_t>(
                static_cast<std::int64_t>(static_cast<std::int32_t>(value)));
        return value;
    }
    [[nodiscard]] std::optional<std::uint64_t> address(std::uint8_t encoding) {
        const std::uint64_t here = address_;
        const auto value = raw(encoding);
        const unsigned relative_to = encoding & 0x70U;
        if (!value || (encoding & DW_EH_PE_indirect) != 0 ||
            (relative_to != DW_EH_PE_absptr && relative_to != DW_EH_PE_pcrel))
            return std::nullopt;
        const std::uint64_t sum = *value + (relative_to == DW_EH_PE_pcrel ? here : 0);
        return wide_ ? sum : sum & 0xFFFFFFFFU;
    }
    /// Skips a number with 7 bits per byte (LEB128). Returns false if it is truncated.
    [[nodiscard]] bool skip_number() {
        while (at_ != end_) {
            ++address_;
            if ((*at_++ & 0x80U) == 0) return true;
        }
        return false;
    }

private:
    const std::uint8_t* at_;
    const std::uint8_t* end_;
    std::uint64_t address_;
    bool wide_;
};

[[nodiscard]] std::optional<encodings> encodings_of(const Dwarf_CIE& of, bool wide) {
    encodings made;
    const std::string_view letters(of.augmentation == nullptr ? "" : of.augmentation);
    const std::uint8_t* at = of.augmentation_data;
    const std::uint8_t* const end = at + of.augmentation_data_size;
    for (const char each : letters) {
        if (each == 'z') {
            made.has_size = true;
        } else if (each == 'R' && at != end) {
            made.function = *at++;
        } else if (each == 'L' && at != end) {
            made.table = *at++;
        } else if (each == 'P' && at != end) {
            pointer_reader personality(at + 1, end, 0, wide);
            if (!personality.raw(*at)) return std::nullopt;
            at = personality.at();
        } else if (each != 'S') {
            return std::nullopt;
        }
    }
    return made;
}

}  // namespace

landing_pads::landing_pads(const elf_file& of) {
    of.each_section([&](Elf_Scn* at, const GElf_Shdr& header, std::string_view name) {
        if (name == ".eh_frame" && header.sh_type != SHT_NOBITS) read(of, at, header.sh_addr);
    });
}

void landing_pads::read(const elf_file& of, Elf_Scn* section, std::uint64_t address) {
    Elf_Data* const data = elf_rawdata(section, nullptr);
    const auto* const ident =
        reinterpret_cast<const unsigned char*>(elf_getident(of.handle(), nullptr));
    if (data == nullptr || data->d_buf == nullptr || ident == nullptr) {
        is_understood_ = false;
        return;
    }
    const bool wide = of.mode() == program_mode::lp64;
    const auto* const begin = static_cast<const std::uint8_t*>(data->d_buf);
    std::map<Dwarf_Off, std::optional<encodings>> common;  // by the offset of the CIE
    Dwarf_CFI_Entry entry;
    for (Dwarf_Off at = 0, next = 0;; at = next) {
        const int got = dwarf_next_cfi(ident, data, true, at, &next, &entry);
        if (got == 1) return;
        if (got != 0) {
            is_understood_ = false;
            return;
        }
        if (dwarf_cfi_cie_p(&entry)) {
            common[at] = encodings_of(entry.cie, wide);
            continue;
        }
        const auto of_cie = common.find(entry.fde.CIE_pointer);
        if (of_cie == common.end() || !of_cie->second) {
            is_understood_ = false;
            return;
        }
        const encodings& how = *of_cie->second;
        if (how.table == DW_EH_PE_omit || !how.has_size) continue;
        pointer_reader from(entry.fde.start, entry.fde.end,
                            address + static_cast<std::uint64_t>(entry.fde.start - begin), wide);
        const auto function = from.address(how.function);
        const auto size = from.raw(how.function & 0x0FU);
        const auto table =
            function && size && from.skip_number() ? from.raw(how.table) : std::nullopt;
        if (!table) {
            is_understood_ = false;
            return;
        }
        if (*table != 0) functions_.insert(*function);
    }
}

}  // namespace trace_clauses
