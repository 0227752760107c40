// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A flag that any thread may set: one relaxed load and one branch for each record while closed.

#include <trace_ring/atomic.hpp>
#include <trace_ring/policy/gate/gate.hpp>

namespace trace_ring::inline v1::gate {

class flag {
public:
    using family = trace_ring::family::gate;

    constexpr flag() noexcept = default;

    [[nodiscard]] bool is_open() const noexcept {
        return open_.load(relaxed);  // relaxed: nothing else is learnt from it
    }
    /// Other threads follow soon; a record that is open on one of them is still committed.
    void open() noexcept { set(true); }
    void close() noexcept { set(false); }
    void set(bool is_open) noexcept {
        open_.store(is_open, relaxed);  // relaxed: nothing is published by it
    }

private:
    atomic<bool> open_{true};
};
static_assert(policy<flag>);

}  // namespace trace_ring::inline v1::gate
