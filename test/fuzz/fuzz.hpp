// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What a fuzz target is. All of them are in one program, which is linked twice: with libFuzzer
/// (fuzzer.cpp), which `test/fuzz/run` runs as long as one likes, and with a driver of our own
/// (driver.cpp), which ctest runs with every compiler over the seeds and a fixed number of
/// mutations.
/// A target takes any bytes. It ends soon, throws nothing, and aborts where something does not hold
/// that must.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace trace_ring_test::fuzz {

using buffer = std::vector<std::uint8_t>;
using input = std::span<const std::uint8_t>;

/// The same numbers on every machine, which the distributions of std are not.
class dice {
public:
    explicit dice(std::uint64_t seed) : random_(seed) {}
    [[nodiscard]] std::uint64_t any() { return random_(); }
    /// 0 to `limit` - 1.
    [[nodiscard]] std::size_t below(std::size_t limit) {
        return limit == 0 ? 0 : static_cast<std::size_t>(random_() % limit);
    }

private:
    std::mt19937_64 random_;
};

struct target {
    const char* name;
    std::vector<buffer> (*seeds)();
    void (*run)(input);
    /// Changes an input in a way that is worth trying.
    void (*mutate)(buffer&, dice&);
    unsigned rounds;  ///< of mutations in ctest: some seconds with AddressSanitizer
};

/// The list, sorted by name (targets.cpp).
[[nodiscard]] std::span<const target> targets();
[[nodiscard]] const target* find(const std::string& name);
/// Writes the seeds of a target into a folder, one file each. True if that worked.
bool write_seeds(const target& what, const std::string& folder);

/// Aborts: this input shows a fault.
inline void expect(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "does not hold: %s\n", what);
    std::abort();
}

}  // namespace trace_ring_test::fuzz
