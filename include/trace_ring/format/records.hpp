// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Walks the records of a copied sub-buffer. For readers: lengths, their sum and the number of
/// records are checked.
/// @code
///   trace_ring::walk_records(words, copy, [](std::size_t at, std::uint64_t time, auto word) {});
/// @endcode

#include <cstddef>
#include <cstdint>
#include <span>

#include <trace_ring/format/sub_buffer.hpp>

namespace trace_ring::inline v1 {

/// Consecutive records with the same header word (so of one event, one length, the same flags) and
/// the same upper half of the clock, whose times do not go back.
struct stretch {
    std::uint32_t begin = 0;  ///< where the first begins, in words from the sub-buffer's beginning
    std::uint32_t count = 0;
    std::uint32_t word = 0;  ///< of each
    std::uint64_t high = 0;  ///< the clock's upper half, in its place

    /// From one record to the next, in words.
    [[nodiscard]] constexpr std::uint32_t stride() const noexcept {
        return record_word::bytes(word) / 8;
    }
};

/// Ignores owner records.
struct any_owner {
    constexpr void operator()(const owner_record&) const noexcept {}
};

/// Walks the records of a copy, oldest first, and calls `visit(const stretch&)` for those that are
/// not the library's own. Returns the offset of the first byte that makes no sense, or 0: lengths,
/// their sum and the count of records are checked. Linear; does not allocate.
/// Calls `meanwhile(words)` now and then, with the number of words visited: for work that is best
/// done bit by bit, such as fetching what will be copied next. Calls `owner(owner_record)` where
/// another thread's records begin.
template <class Visit, class Meanwhile, class Owner = any_owner>
[[nodiscard]] constexpr std::uint32_t walk_stretches(std::span<const std::uint64_t> words,
                                                     const sub_buffer_copy& copy, Visit&& visit,
                                                     Meanwhile&& meanwhile, Owner&& owner = {}) {
    constexpr std::uint64_t low_half = 0xFFFFFFFFU;
    const std::uint64_t* const all = words.data();
    const std::size_t end = copy.bytes / 8;
    std::size_t left = copy.records;
    stretch found;
    found.high = copy.base_time & ~low_half;
    std::size_t at = sizeof(sub_buffer_header) / 8;
    while (at < end) {
        std::uint64_t head = all[at];
        found.word = static_cast<std::uint32_t>(head >> 32);
        const std::size_t length = found.stride();
        if (length == 0 || length > end - at) return static_cast<std::uint32_t>(at * 8);
        if (record_word::id(found.word) == record_word::time_id) {
            if (length * 8 == owner_record_bytes || length * 8 == named_owner_record_bytes) {
                owner(owner_record::from(words.subspan(at + 2, length - 2)));
            } else if (length * 8 != time_record_bytes) {
                return static_cast<std::uint32_t>(at * 8);
            }
            found.high = all[at + 1] & ~low_half;
            at += length;
            continue;
        }
        if (left == 0) return static_cast<std::uint32_t>(at * 8);
        // Headers that differ in time alone, and ascend. The next record is presumed to be as long
        // as this one, so that one look need not wait for the one before.
        const std::uint64_t most = head | low_half;
        const std::size_t reach = at + (left - 1) * length;
        const std::size_t last = reach < end - length ? reach : end - length;
        std::size_t next = at;
        std::size_t count = 1;
        for (; last - next >= 4 * length; next += 4 * length, count += 4) {
            const std::uint64_t* const four = all + next + length;
            const std::uint64_t first = four[0];
            const std::uint64_t second = four[length];
            const std::uint64_t third = four[2 * length];
            const std::uint64_t fourth = four[3 * length];
            if (first < head || second < first || third < second || fourth < third ||
                fourth > most) {
                break;
            }
            head = fourth;
            meanwhile(next);
        }
        for (; last - next >= length; next += length, ++count) {
            const std::uint64_t one = all[next + length];
            if (one < head || one > most) break;
            head = one;
        }
        found.begin = static_cast<std::uint32_t>(at);
        found.count = static_cast<std::uint32_t>(count);
        visit(static_cast<const stretch&>(found));
        left -= count;
        at = next + length;
        meanwhile(at);
    }
    return left == 0 ? 0 : static_cast<std::uint32_t>(at * 8);
}

/// The same for each record: calls `visit(word_offset, time, header_word)`, `time` being the full
/// 64-bit clock.
template <class Visit, class Owner = any_owner>
[[nodiscard]] constexpr std::uint32_t walk_records(std::span<const std::uint64_t> words,
                                                   const sub_buffer_copy& copy, Visit&& visit,
                                                   Owner&& owner = {}) {
    constexpr std::uint64_t low_half = 0xFFFFFFFFU;
    const auto visit_each = [&](const stretch& found) {
        std::uint32_t at = found.begin;
        for (std::uint32_t i = 0; i < found.count; ++i, at += found.stride()) {
            visit(at, found.high | (words[at] & low_half), found.word);
        }
    };
    return walk_stretches(
        words, copy, visit_each, [](std::size_t) {}, owner);
}

}  // namespace trace_ring::inline v1
