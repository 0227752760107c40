// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Slots of a table: how a record is stored in one, and copied out while writers continue.
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
/// A bare slot has no mark: with many writers a reader cannot recognise a record that is being
/// filled. The historic tables are like that.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <trace_ring/atomic.hpp>
#include <trace_ring/position.hpp>

namespace trace_ring::inline v1::table_slots {

/// The widest word, at most the machine's own, that divides `Bytes`.
template <std::size_t Bytes>
using word_for = std::conditional_t<
    Bytes % 8 == 0 && sizeof(void*) == 8, std::uint64_t,
    std::conditional_t<Bytes % 4 == 0, std::uint32_t,
                       std::conditional_t<Bytes % 2 == 0, std::uint16_t, std::uint8_t>>>;

/// An object's bytes as words.
template <class T>
using words_of = std::array<word_for<sizeof(T)>, sizeof(T) / sizeof(word_for<sizeof(T)>)>;

/// A copy of at most this many words is unrolled, so that the words stay in registers.
inline constexpr std::size_t written_out = 16;

/// Stores an object's bytes as shared words. `to` must be aligned to the word.
template <class T>
[[gnu::always_inline]] inline void store(std::byte* to, const T& value) noexcept {
    const auto words = std::bit_cast<words_of<T>>(value);
    using word = typename words_of<T>::value_type;
    const auto put = [&](std::size_t i) {
        // relaxed: the slot's sequence or the cursor publishes it
        word_at<word>(to, i * sizeof(word)).store(words[i], relaxed);
    };
    if constexpr (words.size() <= written_out) {
        [&]<std::size_t... Index>(std::index_sequence<Index...>) {
            (put(Index), ...);
        }
        (std::make_index_sequence<words.size()>{});
    } else {
        for (std::size_t i = 0; i < words.size(); ++i) put(i);
    }
}

/// Copies an object's bytes from a slot, word by word.
template <class T>
inline void load(T& value, const std::byte* from) noexcept {
    words_of<T> words;
    using word = typename words_of<T>::value_type;
    for (std::size_t i = 0; i < words.size(); ++i) {
        // relaxed: a load after a fence decides whether the copy may be used
        words[i] = word_at<word>(from, i * sizeof(word)).load(relaxed);
    }
    value = std::bit_cast<T>(words);
}

/// States of a sequenced slot, in the low bits below its position, and who may make each move:
/// @code
///   empty, committed, vacant  (older) --any writer--> (p, writing)
///   (p, writing) --its writer--> (p, committed) or (p, vacant)
///   (q, writing) --a writer of p > q--> (p, passed)      its own record takes another position
///   (p, passed)  --a writer of a later lap--> (r, passed)
///   (p, passed)  --the late writer--> (p, vacant)        its record is lost, the slot is free
/// @endcode
/// So a slot has one holder at a time, and the outcome of a position never changes.
enum class state : unsigned {
    empty = 0,      ///< never used
    writing = 1,    ///< held by the writer of this position
    committed = 2,  ///< readable
    vacant = 3,     ///< this position has no record
    passed = 4,     ///< this position has none either: an older writer still holds the slot
};

[[nodiscard]] constexpr std::uint64_t word_of(position p, state s) noexcept {
    return stamped{p, static_cast<unsigned>(s)}.word();
}

/// The sequence word of a sequenced slot, as its writers use it.
class sequence {
public:
    explicit sequence(std::byte* slot) noexcept : word_(word_at<std::uint64_t>(slot, 0)) {}

    /// Takes the slot for position `p`, by one of many writers. False: `p` is vacant now, because a
    /// newer position has the slot or an older writer still holds it.
    [[nodiscard]] bool hold(position p) noexcept {
        std::uint64_t seen = word_.load(relaxed);  // relaxed: the swap compares again
        for (;;) {
            const auto found = stamped::from(seen);
            if (found.pos >= p) return false;
            const bool held = found.state == static_cast<unsigned>(state::writing) ||
                              found.state == static_cast<unsigned>(state::passed);
            const std::uint64_t next = word_of(p, held ? state::passed : state::writing);
            // Acquire: the last holder's stores come before this one's.
            // order: ring.hold:B pairs with ring.commit:A, ring.leave:A
            if (!word_.compare_exchange_weak(seen, next, acquire, relaxed)) continue;
            if (held) return false;
            // order: ring.hold:A pairs with ring.read:B
            thread_fence(release);
            return true;
        }
    }
    /// Takes the slot, by the only writer.
    [[gnu::always_inline]] void hold_alone(position p) noexcept {
        word_.store(word_of(p, state::writing), relaxed);  // relaxed: the fence below orders it
        // order: ring.hold_alone:A pairs with ring.read:B
        thread_fence(release);
    }

    /// Publishes the record, or leaves its position vacant. False: not published, or not in time.
    bool settle(position p, bool publish) noexcept {
        std::uint64_t seen = word_of(p, state::writing);
        // order: ring.commit:A pairs with ring.read:A, ring.hold:B
        if (word_.compare_exchange_strong(
                seen, word_of(p, publish ? state::committed : state::vacant), release, relaxed)) {
            return publish;
        }
        // A later position has passed over the slot since: release it.
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

/// The result of reading a position.
enum class found {
    record,   ///< copied, whole
    pending,  ///< claimed, and not yet committed
    vacant,   ///< will never hold a record
    newer,    ///< overwritten before this reading
    overrun,  ///< overwritten during it
};

/// Copies position `p` from its sequenced slot; `value` is valid only if the result is `record`.
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

/// Cache lines of a block within which the slots of many writers are spread: a page.
inline constexpr std::uint64_t lines_apart = 64;

/// The smallest power of two n such that, of n neighbouring slots of `stride` bytes, the last
/// shares no cache line with the first, or the next slot begins a line; 1 if no two slots share a
/// line.
[[nodiscard]] constexpr std::uint64_t sharing_a_line(std::uint64_t stride) noexcept {
    constexpr std::uint64_t line = 64;
    std::uint64_t n = 1;
    while (n * stride % line != 0 && (n - 1) * stride < line) n *= 2;
    return n;
}

/// The place among `count` slots of the `i`-th (from 0) in time. Other threads write its neighbours
/// in time at the same moment: if those shared its cache line, a writer would lose the line between
/// taking its slot and publishing it. So neighbours in time lie in different lines. They are spread
/// only within a page, so that a line is full while it is still in the cache. Slots at the end that
/// fill no page lie in order.
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
