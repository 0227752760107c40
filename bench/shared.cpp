// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file One ring with 1, 2, 4 .. writing threads, and one claim per record, compared with one
/// locked instruction on a shared word, and with the bare design of such a ring. Tables have slots
/// of 32 bytes (24 of record, 8 of sequence) or 24 (bare), without a clock.

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include <trace_ring/policy/claim/compare_exchange.hpp>
#include <trace_ring/policy/claim/fetch_add.hpp>
#include <trace_ring/policy/storage/inline_bytes.hpp>
#include <trace_ring/ring/ring.hpp>

#include "floor.hpp"

namespace {

namespace floors = bench::floor;
namespace tr = trace_ring;
using floors::KiB;

struct sample {
    std::uint64_t first;
    std::uint64_t second;
    std::uint64_t third;
};

template <class Record, class Claim>
struct kind : tr::policies<Record, Claim, tr::storage::inline_bytes<64 * KiB>> {};

template <class Kind>
struct table {
    std::unique_ptr<tr::ring<Kind>> ring = std::make_unique<tr::ring<Kind>>();

    [[gnu::noinline]] void operator()(std::uint64_t n) {
        tr::ring<Kind>& into = *ring;
        for (std::uint64_t i = 0; i < n; ++i) into.write(std::uint64_t{7}, i, ~i);
    }
};

template <class Claim, bool Swap>
void add_claim(const std::string& name) {
    const int processors = static_cast<int>(std::thread::hardware_concurrency());
    for (int threads = 1; threads <= std::max(2, std::min(64, 2 * processors)); threads *= 2) {
        const std::string step =
            floors::with_threads(floors::name_of_locked_step<true, Swap>(), threads);
        floors::add_locked_step<true, Swap>(threads);
        if (!Swap) floors::add_add_and_sequence(threads);
        bench::add<table<kind<tr::record::bare<sample>, Claim>>>("shared/bare/" + name, step,
                                                                 threads);
        bench::add<table<kind<tr::record::sequenced<sample>, Claim>>>(
            "shared/sequenced/" + name,
            Swap ? step : floors::with_threads(floors::sequence_name, threads), threads);
    }
}

}  // namespace

int main(int argc, char** argv) {
    floors::add_clock();
    floors::add_locked_step<false, false>();
    floors::add_locked_step<false, true>();
    add_claim<tr::claim::fetch_add, false>("fetch_add");
    add_claim<tr::claim::compare_exchange, true>("compare_exchange");
    return bench::run(argc, argv);
}
