// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Controls a recorder from outside, through its trace file: opens and shuts the gates of events,
/// pauses recording, requests snapshots.
/// @code
///   trace_ring::control control("orders.trace");
///   control.enable("order.*", false);
/// @endcode

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

#include <trace_ring/recorder/control.hpp>

#endif
