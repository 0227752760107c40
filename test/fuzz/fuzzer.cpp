// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The fuzz targets under libFuzzer. TRACE_RING_FUZZ_TARGET names the one to run; with
/// TRACE_RING_FUZZ_SEEDS its seeds are written into that folder, and nothing is run.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fuzz/fuzz.hpp>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {
namespace fuzz = trace_ring_test::fuzz;
const fuzz::target* chosen = nullptr;
}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    const char* const name = std::getenv("TRACE_RING_FUZZ_TARGET");
    if (name != nullptr) chosen = fuzz::find(name);
    if (chosen == nullptr) {
        for (const auto& each : fuzz::targets()) std::puts(each.name);
        std::exit(name == nullptr ? 0 : 2);
    }
    const char* const folder = std::getenv("TRACE_RING_FUZZ_SEEDS");
    if (folder != nullptr) std::exit(fuzz::write_seeds(*chosen, folder) ? 0 : 1);
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    chosen->run({data, size});
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
    fuzz::dice random(seed);
    if (random.below(6) == 0) return LLVMFuzzerMutate(data, size, most);
    fuzz::buffer changed(data, data + size);
    chosen->mutate(changed, random);
    const std::size_t now = std::min(changed.size(), most);
    if (now != 0) std::memcpy(data, changed.data(), now);
    return now;
}
