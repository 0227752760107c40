// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The private side of a lane: the few words that a thread reads and writes for each record, and
/// where it finds them.
///
/// A thread has one block of lanes, `lane_depths` for each recorder of the process. A block lies
/// across a page boundary:
/// @code
///   ... | state of lane 0, 1, 2 ... | mark of lane 0, 1, 2 ...
///       an ordinary page            ^ a page that fork wipes
/// @endcode
/// The mark says whether a record may begin at the lane's current place:
/// - negative: idle; the last place where a usual record may begin (`idle_mark_for`)
/// - positive: a record is open; the stack pointer of the frame that opened it
/// - zero: take the cold path. A new thread's lane, a lane after fork and a lane of a recorder that
///   is gone all have zero, without a store.
/// A place is an offset less commit_word::bias, and so negative, too. Compared without their signs,
/// zero and stack pointers are less than any place, and `place > mark` is the one question asked on
/// the way to a record.
///
/// The place is read from the sub-buffer's commit word and not kept here as well: to store one more
/// word for each record costs more than it saves. A lane that is about to lose its sub-buffer
/// therefore points at `nowhere` first, because the word is read before the mark.
///
/// The sub-buffer's address is not part of the mark, though one load would then bring both. It is
/// read after the mark is set, because a handler that comes just before that may claim another
/// sub-buffer. An address in the mark would have to be compared with this one, which costs more
/// than one load less gains.

#include <cstddef>
#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/words.hpp>

namespace trace_ring::inline v1::impl {

/// Recorders that a process may have at the same time, counted from 1. Index 0 is no recorder's:
/// one of static storage that is not constructed yet finds lanes there that lead to the cold path.
inline constexpr std::size_t max_recorders = 8;

/// A record begun inside an open one goes one lane deeper; beyond the last it is lost as `nested`.
inline constexpr std::size_t lane_depths = 4;
inline constexpr std::size_t lanes_in_block = (max_recorders + 1) * lane_depths;

using mark_type = std::intptr_t;

/// A lane without a sub-buffer points at this: so full that no record fits, and never written.
inline constinit sub_buffer_header nowhere{
    {0}, {0}, {0}, {0}, {0}, {0}, {0}, {commit_word::pack(0, 32768)}, {0}, {0}, {0}};

/// The state of a lane. Written only by its own thread and that thread's signal handlers; atomic
/// words because handlers see them at every instruction, and a recorder's destructor clears them.
struct alignas(64) lane_state {
    atomic_pointer<sub_buffer_header> sub{&nowhere};     ///< current sub-buffer
    atomic_pointer<layout::index_entry> index{nullptr};  ///< its entry in the index
    atomic<std::uint32_t> high{0};          ///< high half of the clock at the last time record
    atomic<std::uint32_t> totals_count{0};  ///< in the row `totals`
    atomic_pointer<layout::lane_entry> entry{nullptr};
    atomic_pointer<shared_atomic<std::uint64_t>> totals{nullptr};  ///< a row
    atomic<std::uint64_t> where{0};                                ///< position of `sub`
    atomic<std::uint32_t> refused{0};            ///< lost since the last sub-buffer was closed
    atomic<std::uint32_t> opened{0};             ///< changes with each record of the cold path
    atomic_pointer<const void> holder{nullptr};  ///< the reservation, if the open record is one
};
static_assert(sizeof(lane_state) == 64);

/// How a thread has its lane (lane/adoption.hpp).
struct lane_ownership {
    static constexpr std::uint32_t own = 0;      ///< the thread began the lane
    static constexpr std::uint32_t lent = 1;     ///< released after each record: few are left
    static constexpr std::uint32_t adopted = 2;  ///< until its sub-buffer is full
};

struct alignas(64) lane_mark {
    atomic<std::uint32_t> valid{0};  ///< 1: the lane_state means something in this process
    atomic<std::uint32_t> drawn{0};  ///< positions, in runs soon after each other; or enough
    /// Of a sampled clock: the head of the records that share the last reading, without the type.
    atomic<std::uint64_t> reading{0};
    atomic<std::uint32_t> held_as{lane_ownership::own};
    std::uint32_t unused[3]{};
    atomic<std::uint64_t> run_next{0};   ///< the first position of the last run that was not tried
    atomic<std::uint64_t> run_end{0};    ///< the one behind that run
    atomic<std::uint64_t> innermost{0};  ///< open_span::begun of the last span open here
    /// Stored twice by each record. Some processors make a load wait for a store under way at the
    /// same offset in its page, which slows a record down. So this is in the last quarter of 64
    /// bytes, as the commit word is, and no word that each record loads is there: recorders,
    /// `thread_lanes` and event_state are aligned for that.
    alignas(8) atomic<mark_type> value{0};

    /// Begins to hold the lane in this way, with no positions drawn and no span open.
    void hold_as(std::uint32_t how) noexcept {
        // relaxed, all: own thread
        held_as.store(how, relaxed);
        drawn.store(0, relaxed);
        run_next.store(run_end.load(relaxed), relaxed);
        innermost.store(0, relaxed);
    }
};
static_assert(sizeof(lane_mark) == 64 && offsetof(lane_mark, value) == 56);
static_assert(offsetof(sub_buffer_header, commit) == 48);

struct lane_block {
    lane_state states[lanes_in_block];
    lane_mark marks[lanes_in_block];
};
inline constexpr std::size_t mark_distance = offsetof(lane_block, marks);
static_assert(mark_distance == sizeof(lane_state) * lanes_in_block);
/// A lane is named by the address of its state; its mark lies a fixed distance behind.
[[nodiscard, gnu::always_inline]] inline lane_mark& mark_of(lane_state& lane) noexcept {
    return *static_cast<lane_mark*>(
        static_cast<void*>(reinterpret_cast<std::byte*>(&lane) + mark_distance));
}

/// The block of a thread that has none: each mark is zero, or positive on the way to the cold path.
inline constinit lane_block vacant_block{};

/// Position-independent code of a library may record into a recorder that other code constructed,
/// with that code's thread-local words. It finds the lanes by the recorder's library_words, and so
/// has no thread-local words itself, unless it constructs a recorder.
///
/// In a program the compiler knows where thread-local words are. A library that constructs a
/// recorder has them at a fixed distance from the thread pointer. The C library has room for few
/// such words of libraries that come by dlopen (glibc: 26 such libraries, then "cannot allocate
/// memory in static TLS block"). So a file of a plugin that constructs a recorder, if there are
/// many such plugins, is compiled with TRACE_RING_PLUGIN defined: records of the plugin into it
/// then call the C library for its words, a thread's first one there may allocate, which a signal
/// handler must not, and records of other libraries into it take the cold path. Files of one
/// library may differ in it.
#if defined(__PIC__) && !defined(__PIE__)
#define TRACE_RING_LIBRARY_CODE
#endif
#if !defined(TRACE_RING_LIBRARY_CODE)
#define TRACE_RING_TLS __attribute__((tls_model("local-exec")))
#elif !defined(TRACE_RING_PLUGIN)
#define TRACE_RING_TLS __attribute__((tls_model("initial-exec")))
#else
#define TRACE_RING_TLS
#endif
/// Where a thread's lanes are: a block for each ring that it has recorded into. The compiler knows
/// an event's ring, so an event with a quota costs no extra instruction.
using lane_blocks = atomic_pointer<lane_block>[layout::max_rings];
alignas(32) inline constinit thread_local lane_blocks thread_lanes TRACE_RING_TLS{
    &vacant_block, &vacant_block, &vacant_block, &vacant_block};
static_assert(layout::max_rings == 4);
static_assert(offsetof(lane_block, states) == 0);

/// The calling thread's first lane of the recorder whose lanes are at `lanes`: for the code that
/// constructed it, or of the same program.
[[nodiscard, gnu::always_inline]] inline lane_state* first_lane(std::uint32_t ring,
                                                                std::uint32_t lanes) noexcept {
    // relaxed: own word
    auto* const block = reinterpret_cast<std::byte*>(thread_lanes[ring].load(relaxed));
    return static_cast<lane_state*>(static_cast<void*>(block + lanes));
}

/// A record of two 64-bit fields. The mark leaves room for it; a longer one takes one more compare.
inline constexpr std::uint32_t usual_record_bytes = 24;

/// The mark of an idle lane with sub-buffers of this many bytes.
[[nodiscard]] constexpr mark_type idle_mark_for(std::uint32_t sub_buffer_bytes) noexcept {
    return static_cast<mark_type>(sub_buffer_bytes) -
           mark_type{usual_record_bytes + commit_word::bias};
}
static_assert(idle_mark_for(max_sub_buffer_bytes) + mark_type{usual_record_bytes} < 0);

/// The stack pointer. It shows whether a frame that opened a record still exists.
[[nodiscard, gnu::always_inline]] inline mark_type stack_position() noexcept {
#if defined(__x86_64__)
    mark_type position;
    asm volatile("movq %%rsp, %0" : "=r"(position));
    return position;
#elif defined(__i386__)
    std::uintptr_t position;
    asm volatile("movl %%esp, %0" : "=r"(position));
    return static_cast<mark_type>(position >> 1);  // stacks lie in the upper half there
#else
    return static_cast<mark_type>(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) &
                                  ~std::uintptr_t{7});
#endif
}

/// Set in a mark whose record is a reservation, open for as long as its holder likes.
inline constexpr mark_type reserved_bit = 1;

}  // namespace trace_ring::inline v1::impl
