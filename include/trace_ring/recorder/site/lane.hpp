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
/// The mark says whether a record may begin where the lane stands:
/// - negative: idle; the last place where a usual record may begin (`idle_mark_for`)
/// - positive: a record is open; the stack pointer of the frame that opened it
/// - zero: take the cold path. A new thread's lane, a lane after fork and a lane of a recorder that
///   is gone all have zero, without having been told.
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
/// The room for the states before that boundary, and for the marks behind it. All page sizes are
/// multiples of it.
inline constexpr std::size_t half_node_bytes = 4096;
static_assert(mark_distance <= half_node_bytes &&
              sizeof(lane_mark) * lanes_in_block <= half_node_bytes);

/// A lane is named by the address of its state; its mark lies a fixed distance behind.
[[nodiscard, gnu::always_inline]] inline lane_mark& mark_of(lane_state& lane) noexcept {
    return *static_cast<lane_mark*>(
        static_cast<void*>(reinterpret_cast<std::byte*>(&lane) + mark_distance));
}

/// The block of a thread that has none: every mark is zero or, while a thread is on its way to the
/// cold path, positive.
inline constinit lane_block vacant_block{};

/// Position-independent code of a library may record into a recorder that other code constructed,
/// with thread-local words of its own. It finds the lanes by what the recorder says of those words
/// (library_words), and so has none itself, unless it constructs a recorder.
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
/// Whether the words of the code that includes this are at no fixed distance from the thread
/// pointer.
inline constexpr bool lanes_are_moving =
#if defined(TRACE_RING_LIBRARY_CODE) && defined(TRACE_RING_PLUGIN)
    true;
#else
    false;
#endif

/// Where a thread's lanes are: a block for each ring that it has recorded into. The compiler knows
/// an event's ring, so an event with a quota costs no extra instruction.
using lane_blocks = atomic_pointer<lane_block>[layout::max_rings];
alignas(32) inline constinit thread_local lane_blocks thread_lanes TRACE_RING_TLS{
    &vacant_block, &vacant_block, &vacant_block, &vacant_block};
static_assert(layout::max_rings == 4);
static_assert(offsetof(lane_block, states) == 0);

/// How far behind the beginning of each block a recorder's lanes begin. The block and this distance
/// are found at the same time, so only one load waits for them; with an array of first lanes by
/// recorder, one load would wait for the other.
[[nodiscard]] constexpr std::uint32_t lanes_at(std::uint32_t recorder) noexcept {
    return recorder * static_cast<std::uint32_t>(lane_depths * sizeof(lane_state));
}

/// The calling thread's first lane of the recorder whose lanes are at `lanes`: for the code that
/// constructed it, or of the same program.
[[nodiscard, gnu::always_inline]] inline lane_state* first_lane(std::uint32_t ring,
                                                                std::uint32_t lanes) noexcept {
    // relaxed: own word
    auto* const block = reinterpret_cast<std::byte*>(thread_lanes[ring].load(relaxed));
    return static_cast<lane_state*>(static_cast<void*>(block + lanes));
}

/// The pointer at `offset` bytes from the thread pointer of the calling thread. Volatile: what is
/// there changes when a thread gets its lanes.
[[nodiscard, gnu::always_inline]] inline std::byte* thread_pointer_word(
    std::intptr_t offset) noexcept {
    std::byte* value;
#if defined(__x86_64__)
    asm volatile("movq %%fs:(%1), %0" : "=r"(value) : "r"(offset));
#elif defined(__i386__)
    asm volatile("movl %%gs:(%1), %0" : "=r"(value) : "r"(offset));
#else
    auto* const at = static_cast<std::byte*>(__builtin_thread_pointer()) + offset;
    asm volatile("" : : : "memory");
    __builtin_memcpy(&value, at, sizeof value);
#endif
    return value;
}
/// How far from the thread pointer a word of the calling thread is.
[[nodiscard]] inline std::intptr_t from_thread_pointer(const void* word) noexcept {
#if defined(__x86_64__) || defined(__i386__)
    const std::byte* const start = thread_pointer_word(0);  // it points at itself there
#else
    const auto* const start = static_cast<const std::byte*>(__builtin_thread_pointer());
#endif
    return static_cast<const std::byte*>(word) - start;
}

/// An open span, as its scope keeps it. A lane knows its last one, which knows the one around it:
/// one comparison tells an end whether readers will find its beginning by themselves. A span that
/// ends elsewhere stays in that list, and the spans around it then say where they began, too.
struct open_span {
    std::uint64_t begun;   ///< number in the lane of the record that began it, from 1
    std::uint64_t around;  ///< the same of the span that was the lane's last one
    std::uint32_t lane;
    std::uint32_t around_lane;  ///< of a processor's (cpu/recorder.hpp)

    /// Enters the span, before the record that begins it is committed to `sub`: in the other order
    /// a jump between the two would leave a beginning to which readers add an outer span's end.
    [[gnu::always_inline]] void begin(lane_mark& mark, const sub_buffer_header& sub) noexcept {
        // relaxed, to the end: own lane
        begun =
            sub.first_position.load(relaxed) + commit_word::records(sub.commit.load(relaxed)) + 1;
        lane = sub.lane.load(relaxed);
        around = mark.innermost.load(relaxed);
        mark.innermost.store(begun, relaxed);
    }
    /// Whether it is the last one open in the lane.
    [[nodiscard, gnu::always_inline]] bool is_innermost(
        const lane_mark& mark, const sub_buffer_header& sub) const noexcept {
        // relaxed, both: own lane
        const std::uint64_t other = mark.innermost.load(relaxed) ^ begun;
        return (other | (sub.lane.load(relaxed) ^ lane)) == 0;
    }
    /// Leaves the span, after the record that ends it is committed, for the same reason.
    [[gnu::always_inline]] void end(lane_mark& mark) const noexcept {
        signal_fence(seq_cst);
        mark.innermost.store(around, relaxed);  // relaxed: own lane
    }
};

/// The last span still open of those that the calling thread has begun in processors' lanes
/// (cpu/recorder.hpp).
inline constinit thread_local open_span own_span TRACE_RING_TLS = {};

/// A record of two 64-bit fields. The mark leaves room for it, and so for a shorter one; a longer
/// one takes one more comparison.
inline constexpr std::uint32_t usual_record_bytes = 24;

/// The mark of an idle lane with sub-buffers of this many bytes.
[[nodiscard]] constexpr mark_type idle_mark_for(std::uint32_t sub_buffer_bytes) noexcept {
    return static_cast<mark_type>(sub_buffer_bytes) -
           mark_type{usual_record_bytes + commit_word::bias};
}
static_assert(idle_mark_for(max_sub_buffer_bytes) + mark_type{usual_record_bytes} < 0);

/// Whether a record of `bytes` at `place` must take the cold path.
[[nodiscard, gnu::always_inline]] inline bool no_room(mark_type place, std::uint32_t bytes,
                                                      mark_type mark) noexcept {
    const mark_type over = static_cast<mark_type>(bytes) - mark_type{usual_record_bytes};
    if (over <= 0) {
        return static_cast<std::uintptr_t>(place) > static_cast<std::uintptr_t>(mark - over);
    }
    return mark >= 0 || place + over > mark;
}

/// The stack pointer, to tell whether a frame that opened a record is still there.
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

/// Loads a mark and stores the stack pointer in its place, one right after the other: a handler
/// that switches stacks between the two can spoil a record. Optimizers keep them together.
[[nodiscard, gnu::always_inline]] inline mark_type set_mark(atomic<mark_type>& mark) noexcept {
#if defined(__x86_64__) && !defined(__OPTIMIZE__)
    mark_type before;
    asm volatile("movq %1, %0; movq %%rsp, %1"
                 : "=&r"(before), "+m"(reinterpret_cast<volatile mark_type&>(mark)));
    return before;
#else
    const mark_type here = stack_position();
    const mark_type before = mark.load(relaxed);  // relaxed, both: own thread
    mark.store(here, relaxed);
    return before;
#endif
}

/// An address, to be compared with stack positions.
[[nodiscard]] inline mark_type stack_place(const void* address) noexcept {
#if defined(__i386__)
    return static_cast<mark_type>(reinterpret_cast<std::uintptr_t>(address) >> 1);
#else
    return static_cast<mark_type>(reinterpret_cast<std::uintptr_t>(address));
#endif
}

/// Set in a mark whose record is a reservation, open for as long as its holder likes.
inline constexpr mark_type reserved_bit = 1;

}  // namespace trace_ring::inline v1::impl
