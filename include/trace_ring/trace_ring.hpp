// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The portable whole, in the order the data flows.

// what everything rests on
#include <trace_ring/atomic.hpp>
#include <trace_ring/fwd.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/position.hpp>

// what is recorded, and into what
#include <trace_ring/record/event.hpp>
#include <trace_ring/recorder/recorder.hpp>
