// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The reader is told each time the ring has come another so many records, or bytes, further: once
/// for each multiple passed, by the writer that passes it, through a callback.
///
/// Marks are multiples of the threshold, not distances from what the reader has consumed. So the
/// writer compares with one word and needs no fence, and yet no wake-up is lost: whatever the
/// reader had consumed when it last looked, a mark lies ahead within one threshold; and where the
/// threshold is at most half of the ring, a mark is passed before the ring is full.
///
/// With many writers a record may be committed after later ones, whose marks were passed already:
/// of that nobody is told. A reader that was given `pending` must look again by itself, and not
/// sleep until it is told.

#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/policy/notify/notify.hpp>

namespace trace_ring::inline v1::notify {

/// How much lies between two marks.
struct threshold {
    std::uint64_t amount;
    bool in_bytes;
};
[[nodiscard]] consteval threshold records(std::uint64_t count) {
    return {count, false};
}
[[nodiscard]] consteval threshold bytes(std::uint64_t count) {
    return {count, true};
}

/// Called by the writer that passes a mark, on its thread (in a signal handler if it records in
/// one), with no record of its open. It may record. An object of the user's, which must outlive its
/// use by the ring: make it static, or take it out and know that no writer is in it.
struct callback {
    void (*call)(void* context, progress at) noexcept = nullptr;
    void* context = nullptr;
};

template <threshold Every>
class at_watermark {
    static_assert(Every.amount > 0, "notify::at_watermark needs a threshold above zero");

public:
    using family = trace_ring::family::notify;
    static constexpr bool watches = true;
    static constexpr threshold every = Every;

    constexpr at_watermark() noexcept = default;

    /// Sets who is told, or nobody (nullptr). Any thread, at any time.
    void tell(const callback* whom) noexcept {
        whom_.store(whom, release);  // order: notify.tell:A pairs with notify.pass:A
    }

    void passed(line& shared, progress at) noexcept {
        const std::uint64_t now = Every.in_bytes ? at.bytes : at.records;
        std::uint64_t mark = shared.mark.load(relaxed);  // relaxed: the swap below decides
        const std::uint64_t first = Every.amount;        // a zero line means the first mark
        while (now >= (mark == 0 ? first : mark)) {
            const std::uint64_t next = now - now % Every.amount + Every.amount;
            // relaxed: who is told looks at the ring, not at the mark
            if (!shared.mark.compare_exchange_weak(mark, next, relaxed)) continue;
            shared.word.fetch_add(1, relaxed);  // relaxed: as above
            // order: notify.pass:A pairs with notify.tell:A
            if (const callback* whom = whom_.load(acquire)) whom->call(whom->context, at);
            return;
        }
    }

private:
    atomic_pointer<const callback> whom_;
};
static_assert(policy<at_watermark<records(1)>>);

}  // namespace trace_ring::inline v1::notify
