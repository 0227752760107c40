// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The gate family: whether tracing is on. A ring asks its gate first, once for each record.
///
/// | expression    | result         | meaning                                                    |
/// |---------------|----------------|------------------------------------------------------------|
/// | `G::family`   | `family::gate` |                                                            |
/// | `g.is_open()` | `bool`         | records are written. Noexcept, signal-safe, any thread;    |
/// |               |                | threads other than the one that set it may see it late     |
///
/// A gate is a default-constructible, constant-initialised object. The ring holds it, and returns
/// it by `ring.gate()`, to be set in the gate's own way. The smallest valid model is gate::always.

#include <concepts>

#include <trace_ring/policies.hpp>

namespace trace_ring::inline v1::gate {

template <class G>
concept policy = in_family<G, trace_ring::family::gate> && std::default_initializable<G> &&
    requires(const G& g) {
    { g.is_open() }
    noexcept->std::same_as<bool>;
};

}  // namespace trace_ring::inline v1::gate
