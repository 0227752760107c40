// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The sub-buffer: the one unit of everything that holds records of variable length. The live ring
/// overwrites whole ones, a drain hands over whole ones, the trace file is an array of them, and a
/// crash costs at most the record being written. It describes itself, so a reader needs nothing
/// else.
///
/// @code
///  writer (one at a time)                        reader (any number, any process)
///  claim:  state = (p, reset)       --swap-->    state? not this position, or reset: give up
///          header, commit = 64
///          state = (p, active)      --release->  state, acquire        read:A
///  record: bytes                                 commit, acquire       read:B
///          commit = n               --release->  copy [0, commit) by relaxed words
///  close:  end time
///          state = (p, closed)      --release->  acquire fence         read:C
///                                                state again: same position, not reset? else
///                                                overrun
/// @endcode

#include <cstddef>
#include <cstdint>
#include <span>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/copy_words.hpp>
#include <trace_ring/format/words.hpp>  // IWYU pragma: export
#include <trace_ring/position.hpp>

namespace trace_ring::inline v1 {

/// True for sizes a sub-buffer may have: a power of two in the bounds above.
[[nodiscard]] constexpr bool valid_sub_buffer_bytes(std::uint64_t bytes) noexcept {
    return bytes >= min_sub_buffer_bytes && bytes <= max_sub_buffer_bytes &&
           (bytes & (bytes - 1)) == 0;
}

/// The states of a sub-buffer, the low three bits of its state word, and who may make each move:
/// @code
///   free --claimer--> reset --its claimer--> active --its writer--> closed --claimer--> reset ...
///                                            active <--next writer-- closed <--session--> reading
///                                                        reading --session--> free: consumed
///   active, of a dead owner --the process that reclaims--> closed, reset: --> free
///   reading, of a dead session --the next session, or a writer that meets it--> closed
/// @endcode
/// The next writer of a lane, a thread that adopts it after the first has ended, may write on in a
/// closed sub-buffer that is half empty: the same position shows that it was not overwritten.
enum class sub_buffer_state : unsigned {
    free = 0,     ///< never used (all zero), or consumed (its position stays)
    reset = 1,    ///< being prepared: header and records mean nothing
    active = 2,   ///< held by its writer; records that the commit word covers can be read
    closed = 3,   ///< held by nobody; may be overwritten
    reading = 4,  ///< held by a consuming session; writers skip it
};

/// A sub-buffer's state word.
[[nodiscard]] constexpr std::uint64_t state_word(position at, sub_buffer_state state) noexcept {
    return stamped{at, static_cast<unsigned>(state)}.word();
}

/// "TRSB" in a little-endian word. In a trace file its upper half also says the numbering of event
/// types, to read records by when nothing else is known of their writer.
inline constexpr std::uint32_t sub_buffer_magic = 0x42535254;
/// `numbering` from 1 to 65535; 0: none is given.
[[nodiscard]] constexpr std::uint32_t numbered_magic(std::uint32_t numbering) noexcept {
    return sub_buffer_magic ^ numbering << 16;
}
[[nodiscard]] constexpr std::uint32_t numbering_of(std::uint32_t magic) noexcept {
    return (magic ^ sub_buffer_magic) >> 16;
}
[[nodiscard]] constexpr bool is_sub_buffer_magic(std::uint32_t word) noexcept {
    return (word & 0xFFFF) == (sub_buffer_magic & 0xFFFF);
}

/// Says which thread wrote the records from here to the end of the sub-buffer or the next of its
/// kind: one that adopted a lane which another began. Records before it are the first thread's.
/// @code
///   0  clock's low half, record word    8  whole clock, as in a time record
///   16 u32 thread, u16 process slot, u16 depth
///   24 the thread's name, 16 bytes; left out if the lane has the same
/// @endcode
struct owner_record {
    std::uint32_t thread = 0;
    std::uint16_t process = 0;
    std::uint16_t depth = 0;
    bool named = false;
    std::uint64_t name[2] = {};

    [[nodiscard]] constexpr std::uint64_t word() const noexcept {
        return thread | std::uint64_t{process} << 32 | std::uint64_t{depth} << 48;
    }
    /// Reads one from its third word on.
    [[nodiscard]] static constexpr owner_record from(
        std::span<const std::uint64_t> words) noexcept {
        owner_record out{static_cast<std::uint32_t>(words[0]),
                         static_cast<std::uint16_t>(words[0] >> 32),
                         static_cast<std::uint16_t>(words[0] >> 48)};
        out.named = words.size() > 2;
        for (std::size_t i = 0; out.named && i < 2; ++i) out.name[i] = words[i + 1];
        return out;
    }
};

/// The longest record, its header included, that a sub-buffer of `bytes` can hold after the time
/// record that may have to come first.
[[nodiscard]] constexpr std::size_t max_record_bytes(std::size_t bytes) noexcept {
    return bytes - sizeof(sub_buffer_header) - time_record_bytes;
}

/// Whether a closed sub-buffer whose records end at `offset` has room for a record of `bytes` of
/// another thread, which adopts the lane, and for all that may have to come first.
[[nodiscard]] constexpr bool can_be_adopted(std::size_t sub_buffer_bytes, std::size_t offset,
                                            std::size_t bytes = record_header_bytes) noexcept {
    return offset + named_owner_record_bytes + bytes + time_record_bytes <= sub_buffer_bytes;
}

/// The result of copying a sub-buffer.
enum class copy_result {
    copied,   ///< the copy is consistent
    vacant,   ///< nothing to read: never used, or being prepared
    overrun,  ///< overwritten while it was copied
    damaged,  ///< the commit word points outside the sub-buffer, or the magic is wrong
};

/// A consistent copy: header and the committed records, as they were at one moment.
struct sub_buffer_copy {
    stamped state{};
    std::uint32_t numbering = 0;  ///< of the event types, from 1; 0: not known
    std::uint32_t lane = 0;
    std::uint64_t first_position = 0;
    std::uint64_t base_time = 0;
    position previous = no_position;
    std::uint64_t end_time = 0;
    std::uint32_t records = 0;
    std::uint32_t refused = 0;
    std::uint32_t too_long = 0;
    std::uint32_t nested = 0;
    std::uint32_t bytes = 0;  ///< offset of the first free byte: records lie in [64, bytes)
    /// Takes the values from the eight words of a header, with this commit word.
    void tell(std::span<const std::uint64_t> words, std::uint32_t commit) noexcept {
        state = stamped::from(words[1]);
        numbering = numbering_of(static_cast<std::uint32_t>(words[0]));
        lane = static_cast<std::uint32_t>(words[0] >> 32);
        first_position = words[2];
        base_time = words[3];
        previous = words[4];
        end_time = words[5];
        records = commit_word::records(commit);
        refused = static_cast<std::uint32_t>(words[6] >> 32);
        too_long = static_cast<std::uint32_t>(words[7]);
        nested = static_cast<std::uint32_t>(words[7] >> 32);
        bytes = commit_word::offset(commit);
    }
};

/// Copies the sub-buffer of `into.size() * 8` bytes at `source`, while its writer may write on or a
/// claimer overwrite it. On `copied`, `into` holds the bytes [0, out.bytes) as 64-bit words. Trusts
/// nothing it reads; never waits; signal-safe; linear in the bytes committed.
[[nodiscard]] inline copy_result copy_sub_buffer(const void* source, std::span<std::uint64_t> into,
                                                 sub_buffer_copy& out) noexcept {
    const auto& header = *static_cast<const sub_buffer_header*>(source);
    // order: read:A pairs with writer.begin:A, writer.end:A, reclaim.close:A, session.return:A,
    // drain.keep:A, here.free:A, here.ready:A, here.close:A, here.free:B,
    // reclaim.close:B
    const auto before = stamped::from(header.state.load(acquire));
    const auto state = static_cast<sub_buffer_state>(before.state);
    if (state == sub_buffer_state::free || state == sub_buffer_state::reset)
        return copy_result::vacant;
    if (state > sub_buffer_state::reading) return copy_result::damaged;
    // order: read:B pairs with writer.commit:A, writer.note:A, here.note:A, here.record:A
    const std::uint32_t commit = header.commit.load(acquire);
    const std::uint32_t bytes = commit_word::offset(commit);
    const bool sane =
        bytes >= sizeof(sub_buffer_header) && bytes % 8 == 0 && bytes <= into.size() * 8;
    if (sane) {
        // The header by words, as some of them may change now. The other bytes change only if the
        // sub-buffer is claimed again, which the second look at the state finds out.
        constexpr std::size_t head = sizeof(sub_buffer_header) / 8;
        for (std::size_t i = 0; i < head; ++i) {
            // relaxed: the fence below orders these loads before the second look at the state
            into[i] = word_at<std::uint64_t>(source, i * 8).load(relaxed);
        }
        copy_words(static_cast<const std::byte*>(source) + sizeof(sub_buffer_header),
                   into.data() + head, bytes / 8 - head);
    }
    // order: read:C pairs with claim:A, ring.reset:A, here.claim:A
    thread_fence(acquire);
    // relaxed: ordered by the fence above
    const auto after = stamped::from(header.state.load(relaxed));
    if (after.pos != before.pos || after.state == static_cast<unsigned>(sub_buffer_state::reset)) {
        return copy_result::overrun;
    }
    // An end time stored after the commit word was read does not belong to this copy, which has
    // fewer records. relaxed: ordered by the fence above
    if (sane && (state == sub_buffer_state::active || header.commit.load(relaxed) != commit)) {
        into[5] = 0;
    }
    const auto magic = static_cast<std::uint32_t>(into[0]);
    if (!sane || !is_sub_buffer_magic(magic)) return copy_result::damaged;
    out.tell(into, commit);
    out.state = before;
    return copy_result::copied;
}

}  // namespace trace_ring::inline v1
