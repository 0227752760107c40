// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The one writer of the sub-buffer format. A lane is a chain of sub-buffers with one writer at a
/// time, and whatever fills them stores these words in this order:
/// @code
///   begin    state = (p, reset); release fence     no reader copies what is there from here on
///            header, commit word = no record
///            state = (p, active)       release     readers look at the commit word
///   room     what fits lies between the first free byte and the sub-buffer's end
///   stamp    the clock; where its high half is not the one announced last, a time record first
///   store    the record's first word and its payload, as relaxed words
///   commit   commit word += one record and its bytes, release: all of it can be read
///   end      end time; state = (p, closed)         release: others may overwrite it
/// @endcode
/// So a record that is not committed does not exist: nothing is zeroed, no record has a mark of its
/// own, and a writer that dies or jumps away leaves nothing behind. What differs is where the next
/// sub-buffer comes from, in order (ring.hpp) or by a shared claim
/// (recorder/lane/lane_sub_buffers.hpp), and how a lane knows that a record is open: by the limit
/// there, by the mark here (recorder/site/hot_path.hpp). Threads that share a processor's lane
/// store the same words as restartable sequences (recorder/cpu/).

#include <cstddef>
#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/sub_buffer.hpp>
#include <trace_ring/format/words.hpp>
#include <trace_ring/position.hpp>
#include <trace_ring/ring/sub_buffers/record_writer.hpp>

namespace trace_ring::inline v1 {

/// What the header of a sub-buffer says from its beginning.
struct sub_buffer_beginning {
    position at;                   ///< the sub-buffer's own
    std::uint32_t magic;           ///< see numbered_magic
    std::uint32_t lane;            ///< number of the lane
    std::uint64_t records_before;  ///< of the lane
    std::uint64_t time;
    position previous;      ///< the lane's sub-buffer before; 0: none
    std::uint32_t refused;  ///< records of the lane that found no room since that one
};

/// Each of these is for the lane's writer alone, and signal-safe. Constant time.
struct lane_writer : record_writer {
    /// Fills the header and lets readers in. The state is (at, reset), and a release fence has
    /// followed.
    static void begin(sub_buffer_header& sub, const sub_buffer_beginning& with) noexcept {
        // relaxed, to the end: published by the state. Two neighbours of 32 bits are one word.
        word_at<std::uint64_t>(&sub, offsetof(sub_buffer_header, magic))
            .store(with.magic | std::uint64_t{with.lane} << 32, relaxed);
        sub.first_position.store(with.records_before, relaxed);
        sub.base_time.store(with.time, relaxed);
        sub.previous.store(with.previous, relaxed);
        sub.end_time.store(0, relaxed);
        word_at<std::uint64_t>(&sub, offsetof(sub_buffer_header, commit))
            .store(commit_word::empty | std::uint64_t{with.refused} << 32, relaxed);
        word_at<std::uint64_t>(&sub, offsetof(sub_buffer_header, too_long)).store(0, relaxed);
        // order: writer.begin:A pairs with read:A, file.read:A, chain.look:A, claim.next:A,
        // reclaim.find:A, drain.look:A, ring.drain:A, lane.again:A
        sub.state.store(state_word(with.at, sub_buffer_state::active), release);
    }

    /// Writes one of the library's own records, for which there is room and which no count
    /// includes: a time record, or with the words of an owner_record that.
    static void note(sub_buffer_header& sub, std::uint64_t time,
                     const std::uint64_t* words = nullptr, std::uint32_t count = 0) noexcept {
        const auto bytes = static_cast<std::uint32_t>(time_record_bytes) + count * 8;
        // relaxed, to the end: the writer's own word; the rest is published by it
        const std::uint32_t word = sub.commit.load(relaxed);
        std::byte* const to = reinterpret_cast<std::byte*>(&sub) + commit_word::offset(word);
        store_head(to, static_cast<std::uint32_t>(time) |
                           std::uint64_t{record_word::pack(record_word::time_id, bytes)} << 32);
        word_at<std::uint64_t>(to, 8).store(time, relaxed);
        for (std::uint32_t i = 0; i < count; ++i)
            word_at<std::uint64_t>(to, time_record_bytes + i * 8).store(words[i], relaxed);
        // order: writer.note:A pairs with read:B, file.read:B, batch.read:A, reclaim.find:B
        sub.commit.store(word + bytes, release);
    }

    /// Closes the sub-buffer, whose position is `at`.
    static void end(sub_buffer_header& sub, position at, std::uint64_t time) noexcept {
        sub.end_time.store(time, relaxed);  // relaxed: published by the state
        // order: writer.end:A pairs with read:A, file.read:A, chain.look:A, claim:C, claim.next:A,
        // batch.read:A, drain.look:A, drain.hold:A, adopt:A, here.claim:B, ring.drain:A
        sub.state.store(state_word(at, sub_buffer_state::closed), release);
    }
};

}  // namespace trace_ring::inline v1
