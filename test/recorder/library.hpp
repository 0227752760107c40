// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What the test of libraries and the library that it loads know of each other.

#include <cstdint>

#include <trace_ring/recorder/recorder.hpp>

extern "C" {
/// Of the program: where the library records, and the file for a recorder of its own.
trace_ring::recorder* program_recorder();
const char* library_file();

/// Of the library. `library_use` records into the program's recorder, or one of its own.
using library_use_type = bool(std::uint64_t n);
/// How many records of the library's constructors and destructors were not recorded.
using library_refused_type = std::uint64_t();
}
