// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// CPTRAP, as a host uses it: CP hands over data with a code, a selection decides what is recorded,
/// and a session spools the records into a file of 4 KiB records for the reduction program.
///   cptrap_spool [FILE]      then: trace-reduce FILE --browse

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>

#include <trace_ring/cptrap.hpp>
#include <trace_ring/rings.hpp>

namespace {

namespace cptrap = trace_ring::cptrap;
namespace record = trace_ring::record;
using trace_ring::reduce::spool_item;

// The records go through a ring of one thread. Several threads use a recorder and a collector.
trace_ring::ring<trace_ring::presets::traps<>> ring;
cptrap::trapok trapok;  // CPTRAP is inactive

// An entry of CP's own trace table: after the code, its bytes are this host's.
record::cp_entry started_io(std::uint32_t device) {
    record::cp_entry entry;
    entry.set(record::cp_event::start_io, false);
    record::store_big(entry.payload, 11, device);
    return entry;
}

void print(const char* path) {
    auto file = trace_ring::reduce::spool_reader::open(path);
    file.go_to_end();
    while (const auto item = file.previous()) {
        if (item.what != spool_item::kind::record) {
            std::printf("damage: %s\n", item.cause().data());
            continue;
        }
        std::printf("type %02X code %04X:", static_cast<unsigned>(item.record.type),
                    static_cast<unsigned>(item.record.code));
        for (const auto byte : item.record.data())
            std::printf(" %02X", std::to_integer<unsigned>(byte));
        std::printf("\n");
    }
}

}  // namespace

int main(int count, char** arguments) try {
    const char* const path = count > 1 ? arguments[1] : "trap.spool";
    cptrap::spool spool(path);  // fails if the file exists
    trace_ring::drain::session session(ring);
    const cptrap::cp_interface trap(trapok, ring);

    // "USER1" in EBCDIC.
    const std::array user{std::byte{0xE4}, std::byte{0xE2}, std::byte{0xC5}, std::byte{0xD9},
                          std::byte{0xF1}};
    trap.hand_over(3, user);  // returns immediately: CPTRAP is inactive

    constexpr auto chosen = record::cptrap_selection().event(record::cp_event::start_io).code(3);
    trapok.start(chosen);
    trap.hand_over(3, user);
    trap.hand_over(0x100, user);  // not chosen
    trap.entry(started_io(0x190));
    spool.take(session);  // whole sub-buffers; a host calls it from time to time

    trapok.stop();
    spool.finish(session);  // the rest
    std::printf("%llu records, %llu lost\n", static_cast<unsigned long long>(spool.records()),
                static_cast<unsigned long long>(spool.lost().total()));
    print(path);
    return spool.error() == 0 ? 0 : 1;
} catch (const std::exception& error) {
    std::fprintf(stderr, "cptrap_spool: %s\n", error.what());
    return 1;
}
