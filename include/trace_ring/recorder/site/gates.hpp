// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The gates of a recorder's events, and how a record finds the one that it must pass.

#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/words.hpp>

namespace trace_ring::inline v1::impl {

using layout::gate_page;

/// The distance from here to a recorder's gates. It is zero in static storage before the recorder's
/// constructor has run and after its destructor, and then the bytes from here on are taken for
/// gates: so a recorder begins with this, and is as long as a page of gates. What those bytes say
/// does not matter, because the lanes of index 0 lead to the cold path, which refuses the record.
///
/// It lies in the recorder, and not in a table by the recorder's index, because some processors
/// read their clock only when all earlier loads are done, and the gate is the longest chain of
/// them: this saves one. It is a distance and not a pointer, because null cannot be read from.
class gate_link {
public:
    void lead_to(const gate_page& page) noexcept {
        // relaxed: handing the recorder to other threads orders this; gates are advice
        distance_.store(reinterpret_cast<std::uintptr_t>(&page) - here(), relaxed);
    }
    void lead_nowhere() noexcept {
        distance_.store(0, relaxed);  // relaxed: no thread records any more
    }
    /// The gate of event `id`, where `numbered` is `id + Bias`.
    template <std::uint32_t Bias = 0>
    [[nodiscard, gnu::always_inline]] std::uint8_t look(std::uint32_t numbered) const noexcept {
        // relaxed, both: takes effect soon
        const std::uintptr_t at = here() + distance_.load(relaxed) + numbered - Bias;
        return reinterpret_cast<const shared_atomic<std::uint8_t>*>(at)->load(relaxed);
    }

private:
    [[nodiscard, gnu::always_inline]] std::uintptr_t here() const noexcept {
        return reinterpret_cast<std::uintptr_t>(this);
    }
    atomic<std::uintptr_t> distance_{0};
};

/// A page of which each gate is this.
template <layout::gate_bits Gate>
[[nodiscard]] const gate_page& gates_that_are() noexcept {
    // Filled on demand, because few recorders need one. relaxed: all threads store the same value.
    static constinit gate_page page{};
    for (auto& gate : page.gates) gate.store(Gate, relaxed);
    return page;
}

}  // namespace trace_ring::inline v1::impl
