// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Writes recorded events for people and other tools. Needs exceptions.
/// @code
///   trace_ring::exporter::json_writer writer(trace.time());
///   trace_ring::exporter::text_buffer out;
///   while (const auto* item = cursor.next()) writer.append(out, *item);
/// @endcode

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

// the formats
#include <trace_ring/exporter/json.hpp>
#include <trace_ring/exporter/text.hpp>

#endif
