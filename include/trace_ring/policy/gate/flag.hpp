// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A gate that any thread may set at run time: one relaxed load and one branch for each record.
/// @code
/// struct io_trace : trace_ring::policies<trace_ring::gate::flag> {};
/// inline trace_ring::ring<io_trace> io_ring;
/// io_ring.gate().close();  // until open()
/// @endcode

#include <trace_ring/atomic.hpp>
#include <trace_ring/policy/gate/gate.hpp>

namespace trace_ring::inline v1::gate {

/// A gate that can be opened and closed at run time, by any thread.
class flag {
public:
    using family = trace_ring::family::gate;

    constexpr flag() noexcept = default;

    [[nodiscard]] bool is_open() const noexcept {
        return open_.load(relaxed);  // relaxed: it guards no other data
    }
    /// Other threads see it soon; a record that one of them has open is still committed.
    void open() noexcept { set(true); }
    /// Closes the gate.
    void close() noexcept { set(false); }
    /// Opens or closes the gate.
    void set(bool is_open) noexcept {
        open_.store(is_open, relaxed);  // relaxed: it publishes no other data
    }

private:
    atomic<bool> open_{true};
};
static_assert(policy<flag>);

}  // namespace trace_ring::inline v1::gate
