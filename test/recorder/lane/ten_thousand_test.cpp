// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Ten thousand simultaneous threads in one small recorder.

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstdint>

#include <trace_ring/recorder/cpu/recorder.hpp>
#include <trace_ring/recorder/recorder.hpp>

#include <recorder/account.hpp>
#include <recorder/crowd.hpp>
#include <recorder/kinds.hpp>
#include <recorder/scratch.hpp>

BOOST_AUTO_TEST_SUITE(ten_thousand)

namespace tr = trace_ring;
using test::crowd;
using test::own_memory;
using tr::loss_cause;

// A lane for each of ten thousand threads; or one for each processor, for any thread there.
BOOST_AUTO_TEST_CASE_TEMPLATE(ten_thousand_threads_at_once_take_no_more_than_their_own_two_pages,
                              kind, test::kinds) {
    const std::uint64_t threads = test::scale == 1 ? 10'000 : 200;
    tr::basic_recorder<kind> recorder({.size = 1 << 20, .sub_buffer_bytes = 512, .lanes = 10'240});
    std::uint64_t tried = 0;
    std::uint64_t kept = 0;
    {
        const crowd<kind> all(recorder, threads, std::size_t{64} << 10);
        BOOST_REQUIRE(all.members().size() >= 100U);
        tried = all.members().size() * crowd<kind>::each;
        for (const auto& one : all.members()) kept += one.recorded;
        if (own_memory) {
            // Of each stack as much as the first record needs.
            constexpr std::uint64_t slack = 1 << 20;
            const std::uint64_t nodes = all.members().size() * tr::impl::node_bytes;
            BOOST_TEST(all.mapped() <= nodes + slack);
            BOOST_TEST(all.resident() <= nodes + all.members().size() * (16 << 10) + slack);
        }
    }
    BOOST_TEST(recorder.statistics().refused_without_lane == 0U);
    const auto seen = test::account_of(recorder);
    BOOST_TEST(seen.strange == 0U);
    const auto lost = seen.lost();
    BOOST_TEST(seen.read() + lost.total() == tried);
    BOOST_TEST(seen.read() + lost[loss_cause::overwritten] == kept);
    BOOST_TEST(lost[loss_cause::refused] == tried - kept);
    BOOST_TEST(recorder.statistics().overwritten == lost[loss_cause::overwritten]);
}

BOOST_AUTO_TEST_SUITE_END()
