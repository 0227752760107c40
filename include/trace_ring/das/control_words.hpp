// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Claims that advance a host's ring as the historic tables do: by three control words (current,
/// first, last) and a swap of current, with the rules of controls.hpp. There are no positions:
/// after a lap current is the same word again, so laps cannot be told apart and nothing is counted.
/// For tables that must look like the originals, in a debugger or to a tool that knows them;
/// compare_exchange is the same claim with positions and counts.
/// @code
/// struct like_das : trace_ring::policies<trace_ring::record::das_entry,
///                                        trace_ring::claim::das_pointers> {};
/// inline trace_ring::ring<like_das> table;
/// @endcode

#include <cstddef>
#include <cstdint>

#include <trace_ring/das/controls.hpp>
#include <trace_ring/policy/claim/claim.hpp>

namespace trace_ring::inline v1::claim {

/// The form in which a control word names an entry.
struct pointers {
    using word = std::uintptr_t;  ///< its address: for rings of one process
    /// The address of the memory that holds the table.
    [[nodiscard]] static word first(const std::byte* base) noexcept {
        return reinterpret_cast<word>(base);
    }
};
/// The control words are offsets in the table.
struct offsets {
    using word = std::uint32_t;  ///< its distance from the first entry: for shared mappings too
    /// The first word: offsets begin at 0.
    [[nodiscard]] static word first(const std::byte*) noexcept { return 0; }
};

/// The claim. Any number of threads; a swap fails only if another thread claimed; signal-safe. It
/// cannot refuse or wait, so it goes with full::overwrite_oldest; it does not count, so it goes
/// with bare tables. In the ring's line, own[0] is current, own[1] first, own[2] last. A table of
/// offsets must be smaller than 4 GiB.
template <class Designation, class Rule>
struct control_words {
    using family = trace_ring::family::claim;
    using word = typename Designation::word;  ///< the type of the control words
    static constexpr bool many_writers = true;
    static constexpr bool asks_first = false;
    static constexpr bool counts = false;

    /// Sets up the words so that the first entry is used first.
    template <class Table>
    static void prepare(line& shared, Table& table) noexcept {
        const word first = Designation::first(table.base());
        const auto last = static_cast<word>(first + table.capacity() * table.stride());
        const auto size = static_cast<word>(table.stride());
        // relaxed, all three: the line is not shared yet
        shared.own[0].store(Rule::before(first, last, size), relaxed);
        shared.own[1].store(first, relaxed);  // relaxed: as above
        shared.own[2].store(last, relaxed);   // relaxed: as above
    }

    template <class Table>
    [[nodiscard]] static ticket take(line& shared, Table& table) noexcept {
        const auto size = static_cast<word>(table.stride());
        auto at = look(shared);
        for (;;) {
            const auto next = Rule::advance(at, size);
            std::uint64_t found = at.current;
            // relaxed: the words only say where an entry lies; entries may be torn
            if (shared.own[0].compare_exchange_weak(found, next.current, relaxed))
                return {static_cast<word>(next.entry - at.first) / size, no_position};
            at.current = static_cast<word>(found);
        }
    }
    static void commit(line&, const ticket&) noexcept {}
    static void discard(line&, const ticket&) noexcept {}

    /// The index of the slot used last; in an unused ring, of the table's last slot. The record in
    /// it may be incomplete.
    template <class Table>
    [[nodiscard]] static std::uint64_t newest(const line& shared, const Table& table) noexcept {
        const auto size = static_cast<word>(table.stride());
        const auto at = look(shared);
        return static_cast<word>(Rule::newest(at, size) - at.first) / size;
    }

    /// The current values of the three words.
    [[nodiscard]] static controls<word> look(const line& shared) noexcept {
        return {static_cast<word>(shared.own[0].load(relaxed)),   // relaxed: see take
                static_cast<word>(shared.own[1].load(relaxed)),   // relaxed: never changes
                static_cast<word>(shared.own[2].load(relaxed))};  // relaxed: never changes
    }
};

using das_pointers = control_words<pointers, das_rule>;  ///< current is the entry last used
/// DAS's rule, with offsets in place of addresses.
using das_offsets = control_words<offsets, das_rule>;
using cp_pointers = control_words<pointers, cp_rule>;  ///< current is the entry to be used next
/// CP's rule, with offsets in place of addresses.
using cp_offsets = control_words<offsets, cp_rule>;

static_assert(policy<das_pointers> && policy<das_offsets>);
static_assert(policy<cp_pointers> && policy<cp_offsets>);
static_assert(prepares<das_pointers> && prepares<cp_offsets>);

}  // namespace trace_ring::inline v1::claim
