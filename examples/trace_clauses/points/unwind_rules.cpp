// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "unwind_rules.hpp"

#include <dwarf.h>

#include <cstddef>
#include <cstdlib>

namespace trace_clauses {

unwind_rules::unwind_rules(const elf_file& of, Dwarf* debug)
    : mode_(of.mode()),
      loaded_(dwarf_getcfi_elf(of.handle())),
      debug_(debug == nullptr ? nullptr : dwarf_getcfi(debug)) {}

unwind_rules::~unwind_rules() {
    if (loaded_ != nullptr) dwarf_cfi_end(loaded_);
}

void unwind_rules::freed::operator()(Dwarf_Frame* of) const noexcept {
    std::free(of);  // as libdw says
}

unwind_rules::frame unwind_rules::frame_at(std::uint64_t address) {
    for (Dwarf_CFI* const from : {loaded_, debug_}) {
        Dwarf_Frame* found = nullptr;
        if (from != nullptr && dwarf_cfi_addrframe(from, address, &found) == 0) {
            return frame(found);
        }
    }
    return nullptr;
}

std::optional<unwind_rules::frame_end> unwind_rules::end_of(Dwarf_Frame& of) {
    Dwarf_Op* operations = nullptr;
    std::size_t count = 0;
    if (dwarf_frame_cfa(&of, &operations, &count) != 0 || count != 1) return std::nullopt;
    const Dwarf_Op& one = operations[0];
    if (one.atom >= DW_OP_breg0 && one.atom <= DW_OP_breg31)
        return frame_end{static_cast<unsigned>(one.atom - DW_OP_breg0),
                         static_cast<std::int64_t>(one.number)};
    if (one.atom == DW_OP_bregx) {
        return frame_end{static_cast<unsigned>(one.number), static_cast<std::int64_t>(one.number2)};
    }
    return std::nullopt;
}

std::optional<unwind_rules::frame_end> unwind_rules::frame_end_at(std::uint64_t address) {
    const frame here = frame_at(address);
    return here == nullptr ? std::nullopt : end_of(*here);
}

std::optional<bool> unwind_rules::is_entered_by_call(std::uint64_t address) {
    const frame here = frame_at(address);
    if (here == nullptr) return std::nullopt;
    const bool wide = mode_ == program_mode::lp64;
    bool of_signal = false;
    const int column = dwarf_frame_info(here.get(), nullptr, nullptr, &of_signal);
    const frame_end on_top{wide ? 7U : 4U, wide ? 8 : 4};
    if (column < 0 || of_signal || end_of(*here) != on_top) return false;
    // Where the address to return to is, from the frame's end.
    Dwarf_Op room[3];
    Dwarf_Op* operations = nullptr;
    std::size_t count = 0;
    if (dwarf_frame_register(here.get(), column, room, &operations, &count) != 0) return false;
    if (operations == nullptr || count == 0 || operations[0].atom != DW_OP_call_frame_cfa)
        return false;
    std::int64_t offset = 0;
    if (count == 2 && operations[1].atom == DW_OP_plus_uconst) {
        offset = static_cast<std::int64_t>(operations[1].number);
    } else if (count != 1) {
        return false;
    }
    return offset == -on_top.offset;
}

}  // namespace trace_clauses
