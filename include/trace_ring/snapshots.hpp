// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Snapshots that are taken when the program crashes. `recorder.snapshot(file)`, and snapshots
/// requested from outside (control.hpp), need only trace_ring.hpp.
/// @code
///   trace_ring::crash_snapshot on_crash(recorder, "crash.trace");
/// @endcode

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

#include <trace_ring/recorder/crash_snapshot.hpp>

#endif
