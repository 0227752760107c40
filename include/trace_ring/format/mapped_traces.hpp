// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The traces that this program has mapped to record into. A reader that is given such memory finds
/// here how much of it there is now, and so sees the trace grow.

#include <cstddef>
#include <cstdint>

#include <trace_ring/atomic.hpp>

namespace trace_ring::inline v1::layout {

/// A mapped trace as its recorder has it.
struct mapped_trace {
    /// Bytes that can be read from the beginning. Any thread.
    std::uint64_t (*bytes)(const mapped_trace& self) noexcept = nullptr;
};

class mapped_traces {
public:
    /// The trace whose mapping begins at `base`; null if this program has no such. It is there as
    /// long as the recorder is. Any thread.
    [[nodiscard]] static const mapped_trace* find(const std::byte* base) noexcept {
        for (const place& each : places_) {
            // order: mapped.find:A pairs with mapped.enter:A
            if (base != nullptr && each.base.load(acquire) == base)
                return each.trace.load(relaxed);  // relaxed: published by its base
        }
        return nullptr;
    }
    /// Enters a trace. One that finds no place cannot be seen to grow. Any thread.
    static void enter(const std::byte* base, const mapped_trace& trace) noexcept {
        for (place& each : places_) {
            const mapped_trace* none = nullptr;
            // order: mapped.enter:B pairs with mapped.leave:A
            if (!each.trace.compare_exchange_strong(none, &trace, acquire)) continue;
            // order: mapped.enter:A pairs with mapped.find:A
            each.base.store(base, release);
            return;
        }
    }
    static void leave(const mapped_trace& trace) noexcept {
        for (place& each : places_) {
            if (each.trace.load(relaxed) != &trace) continue;  // relaxed: own place
            each.base.store(nullptr, relaxed);                 // relaxed: no reader has the trace
            // order: mapped.leave:A pairs with mapped.enter:B
            each.trace.store(nullptr, release);
            return;
        }
    }

private:
    struct place {
        atomic_pointer<const std::byte> base;
        atomic_pointer<const mapped_trace> trace;
    };
    static inline place places_[16]{};  // constant-initialised: all null
};

}  // namespace trace_ring::inline v1::layout
