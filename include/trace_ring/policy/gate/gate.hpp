// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The gate family: whether tracing is on. Asked first, once a record.
///
/// | expression    | result         | meaning                                                   |
/// |---------------|----------------|-----------------------------------------------------------|
/// | `G::family`   | `family::gate` |                                                           |
/// | `g.is_open()` | `bool`         | records are written. Noexcept, signal-safe, any thread;   |
/// |               |                | may be a moment late, on any thread but the one that set it |
///
/// A gate is a default-constructible, constant-initialised object; the ring holds it, and gives it
/// out as `ring.gate()` to be set in the gate's own way. The smallest valid model is gate::always.

#include <concepts>

#include <trace_ring/family.hpp>

namespace trace_ring::inline v1::gate {

template <class G>
concept policy = in_family<G, trace_ring::family::gate> && std::default_initializable<G> &&
    requires(const G& g) {
    { g.is_open() }
    noexcept->std::same_as<bool>;
};

}  // namespace trace_ring::inline v1::gate
