// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// Records into memory, or into the file that is named, and reads it back from there.

#include <cstdint>
#include <cstdio>
#include <exception>
#include <variant>

#include <trace_ring/reading.hpp>
#include <trace_ring/trace_ring.hpp>

namespace {

struct step : trace_ring::event<"package.step", trace_ring::field<"number", std::uint64_t>> {};

constexpr std::uint64_t steps = 1000;

/// How many of the records are the next step each.
std::uint64_t read_back(const trace_ring::recorder& recorder) {
    const auto [memory, bytes] = recorder.bytes();
    auto trace = trace_ring::reduce::trace_file::from({memory, bytes});
    std::uint64_t expected = 0;
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        const auto* record = std::get_if<trace_ring::reduce::record_view>(item);
        if (record == nullptr || record->name() != "package.step") continue;
        if (record->field("number").u64() == expected) ++expected;
    }
    return expected;
}

}  // namespace

int main(int count, char** arguments) try {
    trace_ring::recorder recorder{{.file = count > 1 ? arguments[1] : "", .size = 1 << 20}};
    for (std::uint64_t i = 0; i < steps; ++i) recorder.record<step>(i);
    const std::uint64_t found = read_back(recorder);
    if (found != steps) {
        std::printf("test_package: %ju of %ju records\n", std::uintmax_t{found},
                    std::uintmax_t{steps});
        return 1;
    }
#if defined(TRACE_RING_ENABLE_X86_DS)
    std::puts("test_package: recorded and read back, with x86/");
#else
    std::puts("test_package: recorded and read back");
#endif
    return 0;
} catch (const std::exception& error) {
    std::printf("test_package: %s\n", error.what());
    return 1;
}
