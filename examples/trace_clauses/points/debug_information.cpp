// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "debug_information.hpp"

#include <stdexcept>

namespace trace_clauses {
namespace {

[[nodiscard]] Dwarf* dwarf_of(const elf_file& from, const char* section) {
    return from.has_section(section) ? dwarf_begin_elf(from.handle(), DWARF_C_READ, nullptr)
                                     : nullptr;
}

}  // namespace

debug_information::debug_information(const program_file& of) : file_(of.opened(), of.path()) {
    handle_ = dwarf_of(file_, ".debug_info");
    if (handle_ == nullptr && !of.debug_file().empty()) {
        try {
            other_ = std::make_unique<elf_file>(of.debug_file());
            handle_ = dwarf_of(*other_, ".debug_info");
        } catch (const std::runtime_error&) {
            // An invalid file of debug information is treated as missing.
        }
    }
    // On its own, .debug_frame describes frames.
    if (handle_ == nullptr) handle_ = dwarf_of(file_, ".debug_frame");
}

debug_information::~debug_information() {
    if (handle_ != nullptr) dwarf_end(handle_);
}

std::uint64_t debug_information::entry_of(Dwarf_Die& function) {
    Dwarf_Addr entry = 0;
    if (dwarf_entrypc(&function, &entry) == 0) return entry;
    Dwarf_Addr base = 0, end = 0;
    return dwarf_ranges(&function, 0, &base, &entry, &end) > 0 ? entry : 0;
}

}  // namespace trace_clauses
