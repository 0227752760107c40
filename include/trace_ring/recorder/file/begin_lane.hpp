// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Fills the entry of a lane in the file's table: the one place that does, for threads and for
/// processors.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/layout.hpp>

namespace trace_ring::inline v1::impl {

/// Stores text into words, zero-filled.
template <std::size_t N>
inline void store_text(shared_atomic<std::uint64_t> (&to)[N], std::string_view text) noexcept {
    for (std::size_t i = 0; i < N; ++i) {
        std::uint64_t word = 0;
        for (std::size_t k = 0; k < 8 && i * 8 + k < text.size(); ++k) {
            word |= std::uint64_t{static_cast<unsigned char>(text[i * 8 + k])} << (k * 8);
        }
        to[i].store(word, relaxed);  // relaxed: published by the entry's state
    }
}

/// What the entry of a lane says from its beginning.
struct lane_beginning {
    std::uint32_t number;
    std::uint32_t process;  ///< slot
    std::uint32_t thread;   ///< 0: any
    std::uint32_t depth;
    std::uint32_t cpu;  ///< the processor + 1; 0: a thread's
    std::uint32_t ring;
    std::uint64_t time;
    std::string_view name;
};

/// Fills the entry of a new lane, which is `preparing` and the caller's, and lets others read it.
/// Signal-safe.
inline void begin_lane(layout::lane_entry& entry, const lane_beginning& with) noexcept {
    // relaxed, to the end: published by the state, except for the number
    entry.number.store(with.number, relaxed);
    // A thread that sees any word of the new lane and looks again sees its number.
    // order: lane.enter:B pairs with lane.look:A, snapshot.copy:B, drain.advance:A, drain.find:A
    thread_fence(release);
    entry.process.store(with.process, relaxed);
    entry.thread.store(with.thread, relaxed);
    entry.depth.store(with.depth, relaxed);
    entry.cpu.store(with.cpu, relaxed);
    entry.writer.store(layout::writer_word(with.thread, with.depth), relaxed);
    // The records of a processor's lane say which thread wrote them.
    entry.adopted.store(with.cpu != 0 ? 1 : 0, relaxed);
    entry.ring.store(with.ring, relaxed);
    entry.began.store(with.time, relaxed);
    for (auto* word :
         {&entry.written, &entry.newest, &entry.refused, &entry.too_long, &entry.nested,
          &entry.abandoned, &entry.ended, &entry.drained, &entry.told_refused}) {
        word->store(0, relaxed);
    }
    for (auto* word :
         {&entry.told_too_long, &entry.told_nested, &entry.told_abandoned, &entry.high}) {
        word->store(0, relaxed);
    }
    store_text(entry.name, with.name);
    // order: lane.enter:A pairs with table.read:B, snapshot.copy:B, lane.find:A, drain.lane:A,
    // drain.lane:B, lane.claim:C
    entry.state.store(static_cast<std::uint32_t>(layout::presence::live), release);
}

}  // namespace trace_ring::inline v1::impl
