// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// A policy that the library does not have: a gate that lets every hundredth record pass. A ring
/// uses it like the library's own gates.
///   own_policy

#include <atomic>
#include <cstdint>
#include <cstdio>

#include <trace_ring/rings.hpp>

namespace {

// Threads share the count, so the gate lets exactly one record in N pass. Lock-free, so signal
// handlers may record, too.
template <std::uint32_t N>
class one_in {
public:
    using family = trace_ring::family::gate;  // this makes it a policy, and of which family

    // The ring asks once for each record, before it claims a slot.
    bool is_open() const noexcept {
        // relaxed: the count orders nothing else
        return asked_.fetch_add(1, std::memory_order_relaxed) % N == 0;
    }

    // A policy may have members for its user: ring.gate() returns the ring's object.
    std::uint32_t asked() const noexcept { return asked_.load(std::memory_order_relaxed); }

private:
    mutable std::atomic<std::uint32_t> asked_{0};
    static_assert(decltype(asked_)::is_always_lock_free && N != 0);
};
// Without this line, a missing member is reported where a ring uses the policy.
static_assert(trace_ring::gate::policy<one_in<100>>);

struct packet {
    std::uint32_t number;
    std::uint32_t bytes;
};
struct packet_sample : trace_ring::policies<trace_ring::record::sequenced<packet>, one_in<100>> {};
trace_ring::ring<packet_sample> packets;

}  // namespace

int main() {
    for (std::uint32_t number = 0; number < 1000; ++number) packets.write(packet{number, 1500});

    std::uint32_t recorded = 0;
    auto reader = packets.reader();
    while (const auto item = reader.next()) {
        std::printf("packet %u\n", static_cast<unsigned>(item.record.number));
        ++recorded;
    }
    std::printf("%u of %u recorded\n", static_cast<unsigned>(recorded),
                static_cast<unsigned>(packets.gate().asked()));
}
