// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The names of the library that the formats in this folder use as their own.

#include <trace_ring/exporter/json.hpp>
#include <trace_ring/exporter/text/append.hpp>

namespace trace_reduce::exporting {

using namespace trace_ring;
using namespace trace_ring::exporter;
namespace reduce = trace_ring::reduce;

namespace impl {
using namespace trace_ring::exporter::impl;
}  // namespace impl

}  // namespace trace_reduce::exporting
