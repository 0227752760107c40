// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The rule by which System/370 and its relatives advance through a trace table: three control
/// words (current, first, last), an addition, a compare. It has two forms and two wrap tests:
/// @code
///                    current is       entry of a step     becomes current
///   pre-increment    last used        advanced current    advanced current
///   post-increment   next to be used  current             advanced current
///
///   advanced: next = current + size; the wrap test passes ? first : next
///     at_or_past   next >= last       System/370 DAS tracing (pre-increment)
///     only_at      next == last       CP's own trace table (post-increment)
///     never        no                 ESA/390 (post-increment): see `reaches_page_end`
/// @endcode
/// A control word is an unsigned number: a guest's 32-bit word, a host's pointer or an index. The
/// addition drops its carry and the compare takes all bits, so with 32-bit words the rule is
/// exactly the machine's. Source: System/370 Principles of Operation, GA22-7000-10,
/// "Trace-Table-Entry Header".

#include <concepts>
#include <cstdint>

namespace trace_ring::inline v1::claim {

/// The three control words of a table, by value. `last` lies one past the last entry.
template <std::unsigned_integral Word>
struct controls {
    Word current = 0;  ///< address of the current entry
    Word first = 0;    ///< address of the first entry
    Word last = 0;     ///< address behind the last entry
    friend constexpr bool operator==(const controls&, const controls&) noexcept = default;
};

/// The result of a step: the entry for the record, and the current-entry control after it.
template <std::unsigned_integral Word>
struct step {
    Word entry = 0;    ///< address of the entry for the record
    Word current = 0;  ///< the current-entry control afterwards
    friend constexpr bool operator==(const step&, const step&) noexcept = default;
};

/// Wraps at the end and anywhere past it, so a step leaves [.., last) only if it began outside. If
/// the table's size is no multiple of the entry's, its last entry reaches beyond the end.
struct at_or_past {
    /// Whether the table is left, so that the first entry follows.
    template <std::unsigned_integral Word>
    [[nodiscard]] static constexpr bool wraps(Word next, Word last) noexcept {
        return next >= last;
    }
};

/// Wraps only if the compare is equal: steps that miss `last` continue beyond the table, so the
/// table's size must be a multiple of the entry's.
struct only_at {
    /// Whether the table is left, so that the first entry follows.
    template <std::unsigned_integral Word>
    [[nodiscard]] static constexpr bool wraps(Word next, Word last) noexcept {
        return next == last;
    }
};

/// Never wraps: another rule ends the table.
struct never {
    /// Whether the table is left, so that the first entry follows.
    template <std::unsigned_integral Word>
    [[nodiscard]] static constexpr bool wraps(Word, Word) noexcept {
        return false;
    }
};

/// Current is the entry last used: the entry that it names at first is not the first one used.
template <class WrapTest>
struct pre_increment {
    /// The next step of a table with entries of `size` bytes.
    template <std::unsigned_integral Word>
    [[nodiscard]] static constexpr step<Word> advance(const controls<Word>& at,
                                                      Word size) noexcept {
        const auto next = static_cast<Word>(at.current + size);
        const Word used = WrapTest::wraps(next, at.last) ? at.first : next;
        return {used, used};
    }
    /// The current of an unused table [first, last) from which the first step uses `first`.
    template <std::unsigned_integral Word>
    [[nodiscard]] static constexpr Word before(Word, Word last, Word size) noexcept {
        return static_cast<Word>(last - size);
    }
    /// The entry used last; in an unused table, the one before the first to be used.
    template <std::unsigned_integral Word>
    [[nodiscard]] static constexpr Word newest(const controls<Word>& at, Word) noexcept {
        return at.current;
    }
};

/// Current is the entry to be used next.
template <class WrapTest>
struct post_increment {
    /// The next step of a table with entries of `size` bytes.
    template <std::unsigned_integral Word>
    [[nodiscard]] static constexpr step<Word> advance(const controls<Word>& at,
                                                      Word size) noexcept {
        const auto next = static_cast<Word>(at.current + size);
        return {at.current, WrapTest::wraps(next, at.last) ? at.first : next};
    }
    /// The current of an unused table [first, last) from which the first step uses `first`.
    template <std::unsigned_integral Word>
    [[nodiscard]] static constexpr Word before(Word first, Word, Word) noexcept {
        return first;
    }
    /// The entry used last, in a table whose size is a multiple of the entry's; in an unused one,
    /// the one before the first to be used.
    template <std::unsigned_integral Word>
    [[nodiscard]] static constexpr Word newest(const controls<Word>& at, Word size) noexcept {
        return static_cast<Word>((at.current == at.first ? at.last : at.current) - size);
    }
};

using das_rule = pre_increment<at_or_past>;  ///< System/370 DAS tracing
using cp_rule = post_increment<only_at>;     ///< CP's own trace table, VM/370 and VM/SP
using esa390_rule = post_increment<never>;   ///< ESA/390: one word a processor, and no swap

/// ESA/390 has no bounds: an entry of `size` bytes whose end reaches or passes a 4 KiB boundary is
/// not stored. It raises the trace-table exception, and the control program supplies a new page.
template <std::unsigned_integral Word>
[[nodiscard]] constexpr bool reaches_page_end(Word entry, Word size) noexcept {
    return ((entry ^ static_cast<Word>(entry + size)) & ~Word{0xFFF}) != 0;
}

/// Bytes of a DAS entry, and its alignment.
inline constexpr std::uint32_t das_entry_bytes = 32;

/// Whether a new current-entry control is valid: bits 27-31 are zero. Otherwise the machine
/// recognizes a specification exception.
[[nodiscard]] constexpr bool on_entry_boundary(std::uint32_t control) noexcept {
    return control % das_entry_bytes == 0;
}

/// The 24-bit logical address in a control word: bits 0-7 take part only in the compare.
[[nodiscard]] constexpr std::uint32_t entry_address(std::uint32_t control) noexcept {
    return control & 0x00FFFFE0U;
}

}  // namespace trace_ring::inline v1::claim
