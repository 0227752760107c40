// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Readers are not notified of records; they poll the ring.

#include <trace_ring/policy/notify/notify.hpp>

namespace trace_ring::inline v1::notify {

/// Nobody is notified, at no cost.
struct never {
    using family = trace_ring::family::notify;
    static constexpr bool watches = false;

    static constexpr void passed(line&, progress) noexcept {}
};
static_assert(policy<never>);

}  // namespace trace_ring::inline v1::notify
