// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The part of lane_writer.hpp that writes records, which is all that a recording site needs.

#include <cstddef>
#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/words.hpp>

namespace trace_ring::inline v1 {

/// Each of these is for the lane's writer alone, and signal-safe. Constant time.
struct record_writer {
    /// Stores the first word of a record: the low half of its time, and its record_word above.
    [[gnu::always_inline]] static void store_head(std::byte* to, std::uint64_t head) noexcept {
        // relaxed, to the end: published by the commit word
        if constexpr (sizeof(void*) == 8) {
            word_at<std::uint64_t>(to, 0).store(head, relaxed);
        } else {
            word_at<std::uint32_t>(to, 0).store(static_cast<std::uint32_t>(head), relaxed);
            word_at<std::uint32_t>(to, 4).store(static_cast<std::uint32_t>(head >> 32), relaxed);
        }
    }
    /// Commits the record of `bytes` behind what the commit word, now `word`, covers.
    [[gnu::always_inline]] static void commit(sub_buffer_header& sub, std::uint32_t word,
                                              std::uint32_t bytes) noexcept {
        // order: writer.commit:A pairs with read:B, file.read:B, batch.read:A, reclaim.find:B
        sub.commit.store(word + commit_word::one_record + bytes, release);
    }
};

}  // namespace trace_ring::inline v1
