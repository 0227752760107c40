// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Sessions that empty a recorder while it records. Listeners, which wait for a part of a ring to
/// fill, are in rings.hpp.
/// @code
///   trace_ring::drain::session session(recorder);
///   session.for_each([](const trace_ring::drained_sub_buffer& part) { use(part); });
/// @endcode

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

#include <trace_ring/drain/drainable.hpp>
#include <trace_ring/drain/listener.hpp>
#include <trace_ring/drain/session.hpp>
#include <trace_ring/recorder/drain_source/drain_source.hpp>

#endif
