// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// One thread writes, by plain stores without a locked instruction. It has at most one open record.
/// A record that begins while another is open (in a signal handler on the same thread, or in the
/// caller itself) is refused and counted as nested; the flight recorder has lanes for such records.
///
/// A second thread that writes without synchronising with the first is misuse, as it would be for a
/// plain variable. A record that its writer left by longjmp stays open until ring::abandon().
///
/// The cursor moves when a record is committed, so it shows readers of any layout how far records
/// are complete.

#include <trace_ring/policy/claim/claim.hpp>

namespace trace_ring::inline v1::claim {

/// One writer at a time, without an atomic read-modify-write.
struct single_writer {
    using family = trace_ring::family::claim;
    static constexpr bool many_writers = false;
    static constexpr bool asks_first = true;
    static constexpr bool counts = true;

    template <class Table>
    [[nodiscard, gnu::always_inline]] static inline ticket take(line& shared,
                                                                Table& table) noexcept {
        // relaxed: only handlers on this thread read the word, and the signal fences order it;
        // readers use the cursor and the slot
        if (shared.open.load(relaxed) != 0) [[unlikely]] {
            table.count(loss_cause::nested);
            return {};
        }
        // Set before the position is read: a handler's record that begins from here on is refused,
        // and one that ended before has moved the cursor that is read now.
        shared.open.store(1, relaxed);  // relaxed: as above
        signal_fence(seq_cst);
        const position p = shared.cursor.load(relaxed) + 1;  // relaxed: this thread's own word
        if (table.admits(p) && table.hold(p)) [[likely]]
            return {table.index_of(p), p};
        close(shared);
        return {};
    }
    [[gnu::always_inline]] static inline void commit(line& shared, const ticket& taken) noexcept {
        // order: ring.advance:A pairs with ring.look:A, ring.produced:A
        shared.cursor.store(taken.pos, release);
        close(shared);
    }
    [[gnu::always_inline]] static inline void discard(line& shared, const ticket&) noexcept {
        close(shared);
    }

private:
    [[gnu::always_inline]] static inline void close(line& shared) noexcept {
        signal_fence(seq_cst);
        shared.open.store(0, relaxed);  // relaxed: as in take
        signal_fence(seq_cst);
    }
};
static_assert(policy<single_writer>);

}  // namespace trace_ring::inline v1::claim
