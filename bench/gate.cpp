// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file The cost of a closed gate, in time and in instructions, compared with the loop alone, and
/// with one load and one branch.

#include <cstdint>
#include <string>

#include <trace_ring/policy/claim/single_writer.hpp>
#include <trace_ring/policy/gate/flag.hpp>
#include <trace_ring/policy/storage/inline_bytes.hpp>
#include <trace_ring/record/concept.hpp>
#include <trace_ring/ring/ring.hpp>

#include "floor.hpp"
#include "kinds.hpp"

namespace {

namespace floors = bench::floor;
namespace tr = trace_ring;

template <class Gate>
struct kind : tr::policies<tr::record::sub_buffers<>, tr::storage::inline_bytes<64 * floors::KiB>,
                           tr::claim::single_writer, Gate> {};

/// A ring's gate. As a global, as such rings are: its address is known to the compiler.
template <class Gate>
struct of_ring {
    static constexpr bool counted = true;
    static inline tr::ring<kind<Gate>> ring;

    of_ring() { ring.gate().close(); }
    [[gnu::noinline]] void operator()(std::uint64_t n) {
        for (std::uint64_t i = 0; i < n; ++i) {
            ring.write(9, i, ~i);
            floors::forget();
        }
    }
};

/// A recorder's gates, by event type, as another program may set them.
struct of_recorder {
    static constexpr bool counted = true;
    tr::recorder recorder{{.size = floors::MiB, .paused = true}};

    [[gnu::noinline]] void operator()(std::uint64_t n) {
        for (std::uint64_t i = 0; i < n; ++i) recorder.record<bench::sample>(i, ~i);
    }
};

}  // namespace

int main(int argc, char** argv) {
    bench::add<floors::loop>("floor/loop", "");
    floors::add_payload();
    floors::add_branch();
    bench::add<of_ring<tr::gate::flag>>("gate/flag", floors::branch_name);
    bench::add<of_recorder>("gate/recorder", floors::branch_name);
    return bench::run(argc, argv);
}
