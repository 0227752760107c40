// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// The write paths that machine_code/hot_path.py checks, a function each.

#include <cstdint>

#include <trace_ring/policy/gate/flag.hpp>
#include <trace_ring/policy/notify/at_watermark.hpp>
#include <trace_ring/ring/presets.hpp>

namespace {
struct event {
    std::uint64_t a, b, c;
};
}  // namespace

constexpr std::uint64_t bytes = 1 << 16;
using trace_ring::presets::lossless_of_one;
using trace_ring::presets::recent;
using trace_ring::presets::recent_of_one;
using trace_ring::presets::records;

struct sequenced_of_one
    : trace_ring::policies<trace_ring::record::sequenced<event>, trace_ring::claim::single_writer> {
};
struct gated : trace_ring::policies<trace_ring::record::bare<event>,
                                    trace_ring::claim::single_writer, trace_ring::gate::flag> {};
using watched_by = trace_ring::notify::at_watermark<trace_ring::notify::percent(50)>;
struct watched : trace_ring::policies<trace_ring::record::bare<event>,
                                      trace_ring::claim::single_writer, watched_by> {};
struct varying_watched : trace_ring::policies<watched_by> {};

constinit trace_ring::ring<recent_of_one<event, bytes * 3>> bare_ring;
constinit trace_ring::ring<sequenced_of_one> sequenced_ring;
constinit trace_ring::ring<lossless_of_one<event, bytes * 3>> queue_ring;
constinit trace_ring::ring<records<bytes>> records_ring;
constinit trace_ring::ring<recent<event>> shared_ring;
constinit trace_ring::ring<gated> gated_ring;
constinit trace_ring::ring<watched> watched_ring;
constinit trace_ring::ring<varying_watched> varying_watched_ring;

// hot: alone
extern "C" void alone_bare_in_place(std::uint64_t a, std::uint64_t b) {
    if (auto slot = bare_ring.try_reserve()) {
        slot->a = a;
        slot->b = b;
        slot->c = a + b;
        slot.commit();
    }
}
extern "C" void alone_bare_write(std::uint64_t a, std::uint64_t b) {
    bare_ring.write(a, b, a + b);
}
extern "C" void alone_sequenced_write(std::uint64_t a, std::uint64_t b) {
    sequenced_ring.write(a, b, a + b);
}
extern "C" void alone_sequenced_staged(std::uint64_t a, std::uint64_t b) {
    if (auto slot = sequenced_ring.try_reserve()) {
        slot->a = a;
        slot->b = b;
        slot->c = a + b;
        slot.commit();
    }
}
extern "C" void alone_queue_write(std::uint64_t a, std::uint64_t b) {
    queue_ring.write(a, b, a + b);
}
extern "C" void alone_gated_write(std::uint64_t a, std::uint64_t b) {
    gated_ring.write(a, b, a + b);
}
extern "C" void alone_varying_write(std::uint64_t a, std::uint64_t b) {
    records_ring.write(7, a, b);
}
extern "C" void alone_watched_write(std::uint64_t a, std::uint64_t b) {
    watched_ring.write(a, b, a + b);
}
extern "C" void alone_varying_watched_write(std::uint64_t a, std::uint64_t b) {
    varying_watched_ring.write(7, a, b);
}
// Positive twin: what the script must find where it is.
extern "C" void shared_write(std::uint64_t a, std::uint64_t b) {
    shared_ring.write(a, b, a + b);
}
