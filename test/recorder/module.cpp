// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// A library that records into the recorders of others. With MODULE_HOST it constructs some, too.

#include "recorder/module.hpp"

#if defined(MODULE_HOST)
#include <trace_ring/recorder/recorder.hpp>
#elif defined(MODULE_UMBRELLA)
#include <trace_ring/trace_ring.hpp>
#endif

#define EXPORTED extern "C" [[gnu::visibility("default")]]

EXPORTED std::uint64_t module_record(trace_ring::recorder& to, std::uint32_t recorder,
                                     std::uint64_t n) {
    return modules::record(to, recorder, n);
}
EXPORTED std::size_t module_enable(trace_ring::recorder& to, bool on) {
    return to.enable<modules::shared>(on);
}
EXPORTED void module_flush(trace_ring::recorder& to) {
    to.flush_thread();
}
#if defined(MODULE_HOST)
EXPORTED trace_ring::recorder* module_make() {
    return new trace_ring::recorder({.size = 4 << 20});
}
#endif
#if defined(MODULE_HOST) || defined(MODULE_UMBRELLA)
/// Perhaps one that another module has constructed.
EXPORTED void module_unmake(trace_ring::recorder* which) {
    delete which;
}
#endif
