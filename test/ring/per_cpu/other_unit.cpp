// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// The other translation unit.

#include "ring/per_cpu/shared_kind.hpp"

bool write_pair_elsewhere(trace_ring::ring<shared_kind>& to, std::uint64_t a, std::uint64_t b) {
    return write_pair(to, a, b);
}
