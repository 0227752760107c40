// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file Finds where an object's calls of other objects' functions go. An object that is loaded
/// with RTLD_DEEPBIND, or into a separate namespace, finds the C library's functions before those
/// of a preloaded library.

#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstdint>

namespace heap {

namespace impl {

#if __SIZEOF_POINTER__ == 8
[[nodiscard]] constexpr std::size_t symbol_of(std::uint64_t info) noexcept {
    return ELF64_R_SYM(info);
}
#else
[[nodiscard]] constexpr std::size_t symbol_of(std::uint32_t info) noexcept {
    return ELF32_R_SYM(info);
}
#endif

/// Visits the words that relocations of this kind have filled with the address of a symbol.
template <class Relocation, class Visit>
void each_of(std::uintptr_t table, std::size_t bytes, std::uintptr_t bias,
             const ElfW(Sym) * symbols, const char* names, Visit& visit) {
    const auto* const first = reinterpret_cast<const Relocation*>(table);
    for (std::size_t i = 0; i < bytes / sizeof(Relocation); ++i) {
        const std::size_t number = symbol_of(first[i].r_info);
        if (number == 0) continue;
        const ElfW(Sym)& symbol = symbols[number];
        // A word in the middle of an instruction or a record is not one of these.
        const std::uintptr_t at = bias + first[i].r_offset;
        if (at % sizeof(std::uintptr_t) != 0) continue;
        visit(names + symbol.st_name, symbol.st_shndx == SHN_UNDEF ? 0 : bias + symbol.st_value,
              *reinterpret_cast<const std::uintptr_t*>(at));
    }
}

}  // namespace impl

/// Calls visit(name, own, where) for each function that the object calls, or whose address it
/// keeps, through the dynamic linker. `own` is the object's own function with that name; 0: it has
/// none. Before the dynamic linker has resolved the function, `where` is in the object, but is not
/// `own`. The object stays loaded during the visit.
template <class Visit>
void each_function_called(const ElfW(Dyn) * dynamic, std::uintptr_t bias, Visit visit) {
    std::uintptr_t jumps = 0, with_addends = 0, without = 0, symbols = 0, names = 0;
    std::size_t jump_bytes = 0, with_bytes = 0, without_bytes = 0;
    bool jumps_have_addends = false;
    // glibc adds the bias in the section itself, except for objects in which it cannot.
    const auto address = [bias](std::uintptr_t value) {
        return value < bias ? value + bias : value;
    };
    for (; dynamic->d_tag != DT_NULL; ++dynamic) {
        const auto value = static_cast<std::uintptr_t>(dynamic->d_un.d_val);
        switch (dynamic->d_tag) {
            case DT_JMPREL:
                jumps = address(value);
                break;
            case DT_PLTRELSZ:
                jump_bytes = value;
                break;
            case DT_PLTREL:
                jumps_have_addends = value == DT_RELA;
                break;
            case DT_RELA:
                with_addends = address(value);
                break;
            case DT_RELASZ:
                with_bytes = value;
                break;
            case DT_REL:
                without = address(value);
                break;
            case DT_RELSZ:
                without_bytes = value;
                break;
            case DT_SYMTAB:
                symbols = address(value);
                break;
            case DT_STRTAB:
                names = address(value);
                break;
            default:
                break;
        }
    }
    if (symbols == 0 || names == 0) return;
    const auto* const table = reinterpret_cast<const ElfW(Sym)*>(symbols);
    const auto* const text = reinterpret_cast<const char*>(names);
    if (jumps != 0 && jumps_have_addends) {
        impl::each_of<ElfW(Rela)>(jumps, jump_bytes, bias, table, text, visit);
    } else if (jumps != 0) {
        impl::each_of<ElfW(Rel)>(jumps, jump_bytes, bias, table, text, visit);
    }
    if (with_addends != 0) {
        impl::each_of<ElfW(Rela)>(with_addends, with_bytes, bias, table, text, visit);
    }
    if (without != 0) impl::each_of<ElfW(Rel)>(without, without_bytes, bias, table, text, visit);
}

}  // namespace heap
