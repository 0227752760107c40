// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Slots of a table: how a record is put into one, and how it is copied out while writers go on.
/// @code
///  sequenced, writer                             reader
///  hold:   seq (older, done) -> (p, writing)     seq: (p, committed)?            read:A
///          release fence             hold:A
///          words of the record                   copy words
///  commit: seq = (p, committed)      commit:A    acquire fence                   read:B
///                                                seq unchanged? else overrun
///
///  bare, one writer                              reader
///  touched = p, release fence        touch:A     p within the cursor?            look:A
///          the record, in place                  copy words
///  cursor = p                        advance:A   acquire fence                   look:B
///                                                touched less than a lap on? else overrun
/// @endcode
/// With many writers a bare slot has no mark of its own: nothing tells a record that is being
/// filled, as in the historic tables.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <trace_ring/atomic.hpp>
#include <trace_ring/position.hpp>

namespace trace_ring::inline v1::table_slots {

/// The widest word that cuts slots of `bytes` without a rest, at most the machine's own.
template <std::size_t Bytes>
using word_for = std::conditional_t<
    Bytes % 8 == 0 && sizeof(void*) == 8, std::uint64_t,
    std::conditional_t<Bytes % 4 == 0, std::uint32_t,
                       std::conditional_t<Bytes % 2 == 0, std::uint16_t, std::uint8_t>>>;

/// An object's bytes as words.
template <class T>
using words_of = std::array<word_for<sizeof(T)>, sizeof(T) / sizeof(word_for<sizeof(T)>)>;

/// Up to so many words a copy is written out, so that the words stay in registers.
inline constexpr std::size_t written_out = 16;

/// Stores an object's bytes as shared words. `to` is aligned to the word.
template <class T>
[[gnu::always_inline]] inline void store(std::byte* to, const T& value) noexcept {
    const auto words = std::bit_cast<words_of<T>>(value);
    using word = typename words_of<T>::value_type;
    const auto put = [&](std::size_t i) {
        // relaxed: the slot's sequence or the cursor publishes it
        word_at<word>(to, i * sizeof(word)).store(words[i], relaxed);
    };
    if constexpr (words.size() <= written_out) {
        [&]<std::size_t... I>(std::index_sequence<I...>) {
            (put(I), ...);
        }
        (std::make_index_sequence<words.size()>{});
    } else {
        for (std::size_t i = 0; i < words.size(); ++i) put(i);
    }
}

/// Copies an object's bytes out, word by word.
template <class T>
inline void load(T& value, const std::byte* from) noexcept {
    words_of<T> words;
    using word = typename words_of<T>::value_type;
    for (std::size_t i = 0; i < words.size(); ++i) {
        // relaxed: whether it may be used is decided by what is loaded after the fence
        words[i] = word_at<word>(from, i * sizeof(word)).load(relaxed);
    }
    value = std::bit_cast<T>(words);
}

/// States of a sequenced slot, below its position. Who may make each move:
/// @code
///   empty, committed, vacant  (older) --any writer--> (p, writing)
///   (p, writing) --its writer--> (p, committed) or (p, vacant)
///   (q, writing) --a writer of p > q--> (p, passed)      its own record goes elsewhere
///   (p, passed)  --a writer of a later lap--> (r, passed)
///   (p, passed)  --the late writer--> (p, vacant)        its record is lost, the slot is free
/// @endcode
/// So a slot has one holder at a time, and each position one fate.
enum class state : unsigned {
    empty = 0,      ///< never used
    writing = 1,    ///< held by the writer of this position
    committed = 2,  ///< readable
    vacant = 3,     ///< this position has no record
    passed = 4,     ///< nor has this one: an older writer still holds the slot
};

[[nodiscard]] constexpr std::uint64_t word_of(position p, state s) noexcept {
    return stamped{p, static_cast<unsigned>(s)}.word();
}

/// The sequence word of a sequenced slot, by its writers and readers.
class sequence {
public:
    explicit sequence(std::byte* slot) noexcept : word_(word_at<std::uint64_t>(slot, 0)) {}

    /// One of many writers takes the slot for position `p`. False: `p` is vacant now, as a newer
    /// position has the slot or an older writer still holds it.
    [[nodiscard]] bool hold(position p) noexcept {
        std::uint64_t seen = word_.load(relaxed);  // relaxed: the swap looks again
        for (;;) {
            const auto found = stamped::from(seen);
            if (found.pos >= p) return false;
            const bool held = found.state == static_cast<unsigned>(state::writing) ||
                              found.state == static_cast<unsigned>(state::passed);
            const std::uint64_t next = word_of(p, held ? state::passed : state::writing);
            // Acquire: the last holder's words come before this one's, on every machine.
            // order: ring.hold:B pairs with ring.commit:A, ring.leave:A
            if (!word_.compare_exchange_weak(seen, next, acquire, relaxed)) continue;
            if (held) return false;
            // order: ring.hold:A pairs with ring.read:B
            thread_fence(release);
            return true;
        }
    }
    /// The only writer takes it.
    [[gnu::always_inline]] void hold_alone(position p) noexcept {
        word_.store(word_of(p, state::writing), relaxed);  // relaxed: the fence below orders it
        // order: ring.hold_alone:A pairs with ring.read:B
        thread_fence(release);
    }

    /// Publishes the record, or leaves its position vacant. False: not published, or too late.
    bool settle(position p, bool publish) noexcept {
        std::uint64_t seen = word_of(p, state::writing);
        // order: ring.commit:A pairs with ring.read:A, ring.hold:B
        if (word_.compare_exchange_strong(
                seen, word_of(p, publish ? state::committed : state::vacant), release, relaxed)) {
            return publish;
        }
        // Passed over meanwhile: hand the slot on.
        // order: ring.leave:A pairs with ring.hold:B
        while (!word_.compare_exchange_weak(seen, word_of(stamped::from(seen).pos, state::vacant),
                                            release, relaxed)) {
        }
        return false;
    }
    [[gnu::always_inline]] void settle_alone(position p, bool publish) noexcept {
        // order: ring.commit_alone:A pairs with ring.read:A
        word_.store(word_of(p, publish ? state::committed : state::vacant), release);
    }

private:
    shared_atomic<std::uint64_t>& word_;
};

/// What a reader finds at a position.
enum class found {
    record,   ///< copied, whole
    pending,  ///< claimed, and not yet written to its end
    vacant,   ///< never will hold a record
    newer,    ///< overwritten before this look
    overrun,  ///< overwritten during it
};

/// Copies position `p` out of its sequenced slot; `value` means something only with `record`.
template <class T>
[[nodiscard]] inline found read_sequenced(const std::byte* slot, position p, T& value) noexcept {
    const auto& word = word_at<std::uint64_t>(slot, 0);
    // order: ring.read:A pairs with ring.commit:A, ring.commit_alone:A
    const std::uint64_t before = word.load(acquire);
    const auto seen = stamped::from(before);
    if (seen.pos < p) return found::pending;
    if (seen.pos > p) return found::newer;
    if (seen.state == static_cast<unsigned>(state::writing)) return found::pending;
    if (seen.state != static_cast<unsigned>(state::committed)) return found::vacant;
    load(value, slot + sizeof(std::uint64_t));
    // order: ring.read:B pairs with ring.hold:A, ring.hold_alone:A
    thread_fence(acquire);
    // relaxed: ordered by the fence
    return word.load(relaxed) == before ? found::record : found::overrun;
}

/// Lines of the block within which the slots of many writers are laid apart: a page.
inline constexpr std::uint64_t lines_apart = 64;

/// Of slots `stride` bytes long, the neighbours of which the last has no line in common with the
/// first: a power of two, 1 where no two slots share a line.
[[nodiscard]] constexpr std::uint64_t sharing_a_line(std::uint64_t stride) noexcept {
    constexpr std::uint64_t line = 64;
    std::uint64_t n = 1;
    while (n * stride % line != 0 && (n - 1) * stride < line) n *= 2;
    return n;
}

/// Where the slot that comes `i`-th (from 0) lies among `count`, if its neighbours in time are
/// written by other threads at the same moment. One behind the other they would share lines, and a
/// writer would lose its line between taking its slot and publishing it: two threads on two cores
/// took 1.2 times the bare design's time, and 0.9 laid apart. In blocks of a page, so that a line
/// is written to its end while it is still in the cache. Slots that fill no block lie in order.
/// @code
///   two to a line:  line 0     line 1     ..  line 63
///                   [0] [64]   [1] [65]       [63] [127]     the next block: [128] [192] ..
/// @endcode
template <std::uint64_t Stride>
[[nodiscard, gnu::always_inline]] constexpr std::uint64_t apart(std::uint64_t i,
                                                                std::uint64_t count) noexcept {
    constexpr std::uint64_t width = sharing_a_line(Stride);
    constexpr std::uint64_t block = width * lines_apart;
    if constexpr (width == 1) return i;
    const std::uint64_t within = i % block;
    if (i - within + block > count) return i;
    return i - within + within % lines_apart * width + within / lines_apart;
}

/// Bytes of a sequenced slot: whole 64-bit words, the first the sequence.
template <class T>
inline constexpr std::size_t sequenced_stride = 8 + (sizeof(T) + 7) / 8 * 8;

}  // namespace trace_ring::inline v1::table_slots
