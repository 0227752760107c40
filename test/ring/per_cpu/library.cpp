// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// A library with restartable sequences of its own, which is unloaded again.

#include <cstdint>

#include "ring/per_cpu/shared_kind.hpp"

/// Records in a ring of its own; true if all went well.
extern "C" __attribute__((visibility("default"))) bool per_cpu_library_records() {
    trace_ring::ring<shared_kind> own(1 << 24);
    bool all = true;
    for (std::uint64_t i = 0; i < 100; ++i)
        all = own.write(1, i, i, i, i, i, i) && own.write(1, i) && all;
    return all;
}
