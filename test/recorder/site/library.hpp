// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What the test of libraries and the library that it loads know of each other.

#include <cstdint>

#include <trace_ring/recorder/recorder.hpp>

#include "recorder/kinds.hpp"

extern "C" {
/// Of the program: where the library records, and the file for the library's own recorder.
trace_ring::recorder* program_recorder();
const char* library_file();

/// Of the library. `library_use` records into the program's recorder, or into its own.
using library_use_type = bool(std::uint64_t n);
/// Records there, many times, so that the last record does not take the cold path.
using library_use_by_cpu_type = bool(trace_ring::basic_recorder<test::by_cpu>& to);
/// How many records of the library's constructors and destructors were not recorded.
using library_refused_type = std::uint64_t();
}
