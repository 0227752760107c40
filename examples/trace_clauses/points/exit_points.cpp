// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "exit_points.hpp"

#include <dwarf.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string_view>

namespace trace_clauses {
namespace {

/// Those that keep the address to return to, and use it again later or in another process.
constexpr std::array<std::string_view, 14> returning_twice{
    "setjmp",     "_setjmp",     "__sigsetjmp",  "sigsetjmp",    "__setjmp",
    "getcontext", "swapcontext", "__getcontext", "setcontext",   "__swapcontext",
    "vfork",      "__vfork",     "__libc_vfork", "jump_fcontext"};
/// Those by which a program has several stacks in one thread. A stack for signals may be above the
/// other one: then the kernel takes all functions on that for left.
constexpr std::array<std::string_view, 11> moving_stacks{
    "makecontext",    "swapcontext",      "setcontext",
    "sigaltstack",    "jump_fcontext",    "make_fcontext",
    "ontop_fcontext", "__morestack",      "__splitstack_makecontext",
    "coro_transfer",  "runtime.morestack"};

[[nodiscard]] Dwarf* debug_of(const elf_file& from) {
    const bool has = from.has_section(".debug_info") || from.has_section(".debug_frame");
    return has ? dwarf_begin_elf(from.handle(), DWARF_C_READ, nullptr) : nullptr;
}

/// By which of these functions a file moves stacks; empty: by none.
[[nodiscard]] std::string moving_function_of(const elf_file& file) {
    std::string found;
    file.each_section([&](Elf_Scn* at, const GElf_Shdr& header, std::string_view name) {
        if (name == ".gopclntab" || name == ".note.go.buildid") found = "Go's run-time system";
        if (!found.empty() || (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM))
            return;
        Elf_Data* const data = elf_getdata(at, nullptr);
        if (data == nullptr || data->d_buf == nullptr || header.sh_entsize == 0) return;
        const auto count =
            std::min<std::uint64_t>(header.sh_size / header.sh_entsize, std::uint64_t{1} << 30);
        for (std::uint64_t i = 0; i < count; ++i) {
            GElf_Sym symbol;
            if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) return;
            const char* const text = elf_strptr(file.handle(), header.sh_link, symbol.st_name);
            if (text == nullptr) continue;
            std::string_view called(text);
            called = called.substr(0, called.find('@'));
            if (std::find(moving_stacks.begin(), moving_stacks.end(), called) !=
                moving_stacks.end()) {
                found = called;
                return;
            }
        }
    });
    return found;
}

}  // namespace

exit_points::exit_points(const program_file& of) : file_(of.opened(), of.path()) {
    debug_ = debug_of(file_);
    if (debug_ == nullptr && !of.debug_file().empty()) {
        try {
            debug_file_ = std::make_unique<elf_file>(of.debug_file());
            debug_ = debug_of(*debug_file_);
        } catch (const std::runtime_error&) {
            // Without it, as if it were not there.
        }
    }
    rules_ = std::make_unique<unwind_rules>(file_, debug_);
}

exit_points::~exit_points() {
    rules_.reset();
    if (debug_ != nullptr) dwarf_end(debug_);
}

void exit_points::find_entries() {
    entries_are_known_ = true;
    if (debug_ == nullptr) return;
    std::size_t left = std::size_t{1} << 25;  // entries that are looked at: a file may lie
    Dwarf_CU* unit = nullptr;
    Dwarf_Die whole, split;
    std::uint8_t kind = 0;
    while (dwarf_get_units(debug_, unit, &unit, nullptr, &kind, &whole, &split) == 0) {
        Dwarf_Die one;
        Dwarf_Die& of = kind == DW_UT_skeleton && dwarf_tag(&split) != 0 ? split : whole;
        if (dwarf_child(&of, &one) != 0) continue;
        do {
            if (left-- == 0) return;
            Dwarf_Addr entry = 0;
            if (dwarf_tag(&one) != DW_TAG_subprogram) continue;
            Dwarf_Addr base = 0, begin = 0, end = 0;
            const bool has_entry = dwarf_entrypc(&one, &entry) == 0 && entry != 0;
            std::ptrdiff_t at = 0;
            bool first = true;
            while ((at = dwarf_ranges(&one, at, &base, &begin, &end)) > 0) {
                const bool is_entry = has_entry ? begin == entry : first;
                (is_entry ? entries_ : parts_).insert(begin);
                first = false;
            }
            if (has_entry) entries_.insert(entry);
        } while (dwarf_siblingof(&one, &one) == 0);
    }
}

const char* exit_points::refusal(const program_function& of) {
    for (const std::string& name : of.names) {
        if (std::find(returning_twice.begin(), returning_twice.end(), name) !=
            returning_twice.end())
            return "it may return more than once";
        if (name.find(".cold") != std::string::npos) return "it is a part of another function";
    }
    if (!entries_are_known_) find_entries();
    if (parts_.contains(of.address) && !entries_.contains(of.address))
        return "it is a part of another function";
    const std::optional<bool> by_call = rules_->is_entered_by_call(of.address);
    if (by_call == false) return "it is not entered as a function that returns is";
    if (!by_call && !entries_.contains(of.address)) {
        return "neither unwind information nor debug information tells that a function begins "
               "there";
    }
    return nullptr;
}

std::string moves_stacks(const std::vector<std::string>& files) {
    for (const std::string& each : files) {
        const std::string name = std::filesystem::path(each).filename().string();
        // These define the functions in question.
        if (name.starts_with("libc.so") || name.starts_with("libc-") || name.starts_with("ld-") ||
            name.starts_with("libpthread") || name.starts_with("libc.musl"))
            continue;
        try {
            const std::string by = moving_function_of(elf_file(each));
            if (!by.empty()) return name + " has several stacks (" + by + ")";
        } catch (const std::runtime_error&) {
            // It is no program: text of a font, and the like, is mapped, too.
        }
    }
    return {};
}

}  // namespace trace_clauses
