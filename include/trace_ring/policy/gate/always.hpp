// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// No gate: every record is written, without a test.

#include <trace_ring/policy/gate/gate.hpp>

namespace trace_ring::inline v1::gate {

/// No gate: always open, at no cost.
struct always {
    using family = trace_ring::family::gate;

    [[nodiscard]] static constexpr bool is_open() noexcept { return true; }
};
static_assert(policy<always>);

}  // namespace trace_ring::inline v1::gate
