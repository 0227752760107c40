// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file A program to be traced: four threads sort and count their comparisons. Two of the counters
/// are in one cache line, which therefore moves back and forth between the processors;
/// address-trace shows where.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <random>
#include <thread>
#include <vector>

namespace {

struct alignas(64) own_line {
    std::uint64_t value = 0;
};
/// For threads 0 and 1, which share a line because the counters are adjacent.
alignas(64) std::array<std::uint64_t, 2> beside_each_other{};
/// Of threads 2 and 3: each has its own.
std::array<own_line, 2> apart{};

[[nodiscard]] std::uint64_t& counter(std::size_t thread) {
    return thread < 2 ? beside_each_other[thread] : apart[thread - 2].value;
}

void sort_some(std::size_t thread) {
    std::mt19937 random(static_cast<unsigned>(thread));
    std::vector<std::uint32_t> numbers(20'000);
    for (auto& each : numbers) each = static_cast<std::uint32_t>(random());
    volatile std::uint64_t& compared = counter(thread);
    std::sort(numbers.begin(), numbers.end(), [&compared](std::uint32_t a, std::uint32_t b) {
        compared = compared + 1;
        return a < b;
    });
}

}  // namespace

int main() {
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < 4; ++i) threads.emplace_back(sort_some, i);
    for (auto& each : threads) each.join();
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < 4; ++i) sum += counter(i);
    std::printf("%llu comparisons\n", static_cast<unsigned long long>(sum));
    return 0;
}
