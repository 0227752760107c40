// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// A library that declares its own events and records them when it is loaded, used and unloaded.
/// With LIBRARY_ALONE it keeps its symbols to itself, has its own recorder, and so its own
/// registry.

#include <cstdint>

#include "recorder/site/library.hpp"

#if defined(LIBRARY_ALONE)
#define EXPORTED extern "C" __attribute__((visibility("default")))
#else
#define EXPORTED extern "C"
#endif

namespace {

struct loaded : trace_ring::event<"library.loaded", trace_ring::field<"n", std::uint64_t>> {};
struct used : trace_ring::event<"library.used", trace_ring::field<"n", std::uint64_t>> {};
struct unloaded : trace_ring::event<"library.unloaded", trace_ring::field<"n", std::uint64_t>> {};

std::uint64_t refused = 0;
void note(bool recorded) {
    refused += recorded ? 0 : 1;
}

#if defined(LIBRARY_ALONE)
trace_ring::recorder& own();
/// Before its recorder is there, and after it is gone: nothing is recorded, and nothing breaks.
struct too_early_and_too_late {
    too_early_and_too_late() { note(own().record<loaded>(std::uint64_t{0})); }
    ~too_early_and_too_late() { note(own().record<unloaded>(std::uint64_t{0})); }
} at_the_edges;

trace_ring::recorder the_own{
    {.file = library_file(), .size = 64 << 10, .exists = trace_ring::if_exists::attach}};
trace_ring::recorder& own() {
    return the_own;
}
#else
trace_ring::recorder& own() {
    return *program_recorder();
}
#endif

struct at_load_and_unload {
    at_load_and_unload() { note(own().record<loaded>(std::uint64_t{1})); }
    ~at_load_and_unload() { note(own().record<unloaded>(std::uint64_t{2})); }
} in_between;

}  // namespace

EXPORTED bool library_use(std::uint64_t n) {
    return own().record<used>(n);
}
EXPORTED bool library_use_by_cpu(trace_ring::basic_recorder<test::by_cpu>& to) {
    bool all = true;
    for (std::uint64_t n = 0; n < 100; ++n) all = to.record<used>(n) && all;
    return all;
}
EXPORTED std::uint64_t library_refused() {
    return refused;
}
#if defined(LIBRARY_ALONE)
/// The recorder of a program whose registry this library does not share.
EXPORTED bool library_use_other(std::uint64_t n) {
    return program_recorder()->record<used>(n);
}
#endif
