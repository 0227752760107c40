// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// A library that comes and goes, and allocates when it comes, when it is asked, and when it goes.

#include <cstdlib>
#include <vector>

namespace {
const std::vector<int> numbers(1000);
}

// Called by several threads concurrently.
extern "C" void* allocate_in_library() {
    return std::malloc(88 + numbers.size());
}
extern "C" void release_in_library(void* block) {
    std::free(block);
}
