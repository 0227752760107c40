// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Branch sources that the library does not know, as processors that have no debug store would be:
/// a register stack that is read newest first (AMD's LBR), and one whose records may lack either
/// side (ARM's BRBE).

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <trace_ring/x86/branch_source.hpp>

namespace foreign {

using trace_ring::loss_counts;
using trace_ring::x86::branch;
using trace_ring::x86::branch_character;
using trace_ring::x86::branch_gap;

/// The smallest there can be: an array, and its number.
class register_stack {
public:
    static constexpr branch_character character{
        .order = trace_ring::x86::branch_order::newest_first,
        .delivery = trace_ring::x86::branch_delivery::register_stack,
        .tells_prediction = true};

    void push(const branch& one) { entries_[pushed_++ % entries_.size()] = one; }

    template <class Visit>
    std::uint64_t read(Visit&& visit) {
        const std::size_t there = std::min(pushed_, entries_.size());
        for (std::size_t i = 0; i < there; ++i) {
            visit(static_cast<const branch&>(entries_[(pushed_ - 1 - i) % entries_.size()]));
        }
        if (const std::size_t gone = pushed_ - there; gone != 0) {
            visit(branch_gap{gone, trace_ring::loss_cause::overwritten, 0});
            lost_.add(trace_ring::loss_cause::overwritten, gone);
        }
        pushed_ = 0;
        return there;
    }
    [[nodiscard]] bool ended() const noexcept { return false; }
    [[nodiscard]] const loss_counts& lost() const { return lost_; }

private:
    std::array<branch, 16> entries_{};
    std::size_t pushed_ = 0;
    loss_counts lost_;
};

/// The contents of a record's information word: which sides are valid, kind, cycles, level.
class one_sided {
public:
    static constexpr branch_character character{
        .order = trace_ring::x86::branch_order::newest_first,
        .delivery = trace_ring::x86::branch_delivery::register_stack,
        .tells_kind = true,
        .tells_prediction = true,
        .tells_cycles = true,
        .tells_privilege = true,
        .foreign_privilege = true};

    struct entry {
        std::uint64_t source, target;
        unsigned valid;  ///< 1 target only, 2 source only, 3 both
        std::uint16_t cycles;
        trace_ring::x86::branch_kind kind;
        trace_ring::x86::branch_privilege level;
    };
    std::vector<entry> entries;

    template <class Visit>
    std::uint64_t read(Visit&& visit) {
        std::uint64_t seen = 0;
        for (; !entries.empty(); entries.pop_back(), ++seen) {
            const entry& e = entries.back();
            branch one = e.valid == 1   ? branch::only_to(e.target, e.kind)
                         : e.valid == 2 ? branch::only_from(e.source, e.kind)
                                        : branch(e.source, e.target, e.kind);
            if (e.cycles != 0) one.set_cycles(e.cycles);
            one.set_privilege(e.level);
            visit(static_cast<const branch&>(one));
        }
        return seen;
    }
    [[nodiscard]] bool ended() const noexcept { return entries.empty(); }
    [[nodiscard]] loss_counts lost() const { return {}; }
};

}  // namespace foreign
