// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// The smallest ring: it keeps the newest four records of one type. Any number of threads may
/// write, and a reader sees whole records only.
///   hello_ring

#include <cstdint>
#include <cstdio>

#include <trace_ring/rings.hpp>

namespace {

struct step {
    std::uint32_t device;
    std::uint32_t program;
};

// Each slot has a sequence word in addition to the 8 bytes of the record.
struct step_trace
    : trace_ring::policies<trace_ring::record::sequenced<step>, trace_ring::claim::fetch_add,
                           trace_ring::full::overwrite_oldest,
                           trace_ring::storage::inline_bytes<4 * 16>> {};

// In static storage: ready before main, and before any constructor runs.
trace_ring::ring<step_trace> steps;

template <class Reader>
void print(const char* order, Reader reader) {
    std::printf("%s:", order);
    while (const auto item = reader.next()) {
        if (item.is_loss()) {
            std::printf(" (%llu overwritten)", static_cast<unsigned long long>(item.lost.count));
        } else {
            std::printf(" %X/%u", static_cast<unsigned>(item.record.device),
                        static_cast<unsigned>(item.record.program));
        }
    }
    std::printf("\n");
}

}  // namespace

int main() {
    for (std::uint32_t program = 1; program <= 6; ++program) {
        if (auto slot = steps.try_reserve()) {  // empty: the gate is closed, or there is no room
            *slot = {0x190, program};           // in place
            slot.commit();                      // without it, the record is discarded
        }
    }
    print("forward", steps.reader());
    print("backward", steps.backward_reader());
}
