// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Lists of policies: defaults, order, foreign members of every family; and what the smaller
// policies do by themselves.

#include <cstdint>
#include <type_traits>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <trace_ring/das/entry.hpp>
#include <trace_ring/policy/gate/flag.hpp>
#include <trace_ring/policy/notify/at_watermark.hpp>
#include <trace_ring/ring/presets.hpp>

#include "kinds.hpp"
#include "policy/foreign.hpp"

BOOST_AUTO_TEST_SUITE(policy_lists)

using namespace kinds;
using trace_ring::loss_cause;
namespace notify = trace_ring::notify;

namespace {

// --- Requirements, of the list -------------------------------------------------------------------
struct nothing_named : policies<> {};
static_assert(
    std::is_same_v<ring_policies<nothing_named>::record_policy, record::sub_buffers<4096>>);
static_assert(std::is_same_v<ring_policies<nothing_named>::claim_policy, claim::single_writer>);
static_assert(std::is_same_v<ring_policies<nothing_named>::full_policy, full::overwrite_oldest>);
static_assert(std::is_same_v<ring_policies<nothing_named>::notify_policy, notify::never>);
static_assert(
    std::is_same_v<ring_policies<nothing_named>::storage_policy, storage::inline_bytes<65536>>);
static_assert(std::is_same_v<ring_policies<nothing_named>::clock_policy, trace_ring::clock::tsc>);
static_assert(std::is_same_v<ring_policies<nothing_named>::gate_policy, trace_ring::gate::always>);

struct a_table : policies<record::sequenced<sample>> {};
static_assert(std::is_same_v<ring_policies<a_table>::claim_policy, claim::compare_exchange>);
static_assert(std::is_same_v<ring_policies<a_table>::clock_policy, trace_ring::clock::none>);

struct an_element : policies<record::das_entry> {};
static_assert(
    std::is_same_v<ring_policies<an_element>::record_policy, record::bare<record::das_entry>>);

using in_one_order = policies<record::bare<sample>, claim::single_writer, full::discard_newest,
                              storage::heap, trace_ring::gate::flag>;
using in_another = policies<trace_ring::gate::flag, storage::heap, full::discard_newest,
                            claim::single_writer, record::bare<sample>>;
static_assert(std::is_same_v<ring_policies<in_one_order>::record_policy,
                             ring_policies<in_another>::record_policy>);
static_assert(std::is_same_v<ring_policies<in_one_order>::claim_policy,
                             ring_policies<in_another>::claim_policy>);
static_assert(std::is_same_v<ring_policies<in_one_order>::full_policy,
                             ring_policies<in_another>::full_policy>);
static_assert(std::is_same_v<ring_policies<in_one_order>::storage_policy,
                             ring_policies<in_another>::storage_policy>);
static_assert(std::is_same_v<ring_policies<in_one_order>::gate_policy,
                             ring_policies<in_another>::gate_policy>);

// --- Requirements, of the models -----------------------------------------------------------------
static_assert(claim::policy<claim::compare_exchange> && claim::policy<claim::fetch_add>);
static_assert(claim::policy<claim::single_writer> && !claim::prepares<claim::single_writer>);
static_assert(!claim::policy<full::stop> && !full::policy<claim::fetch_add>);
static_assert(claim::by_cpu<claim::per_cpu> && !claim::policy<claim::per_cpu>);
static_assert(full::policy<full::extend<4096, full::stop>>);
static_assert(full::extend<4096, full::stop>::stops);
static_assert(full::extend<4096, full::overwrite_oldest>::overwrites);
static_assert(storage::fixed<storage::inline_bytes<100>> && !storage::fixed<storage::heap>);
static_assert(storage::growable<storage::shared_file> && !storage::growable<storage::heap>);
static_assert(record::names_a_layout<record::bare<int>> && !record::policy<int>);

// --- A ring of foreign policies alone ------------------------------------------------------------
struct all_foreign
    : policies<foreign::temperature, foreign::plain_cursor, foreign::stubborn, foreign::diary,
               foreign::borrowed, foreign::ticking, foreign::every_other> {};

}  // namespace

BOOST_AUTO_TEST_CASE(a_ring_of_foreign_policies_does_what_they_say) {
    alignas(64) static std::byte bytes[storage::control_bytes + 4 * sizeof(foreign::temperature)]{};
    trace_ring::ring<all_foreign> ring(bytes, sizeof bytes);
    BOOST_TEST(ring.capacity() == 4U);
    int written = 0;
    for (int i = 0; i < 8; ++i) written += ring.write(i, 7U) ? 1 : 0;  // every other one
    BOOST_TEST(written == 4);
    BOOST_TEST(ring.notifier().times == 4U);
    BOOST_TEST(ring.notifier().last.records == 4U);
    BOOST_TEST(ring.notifier().last.bytes == 4U * sizeof(foreign::temperature));
    BOOST_TEST(ring.control().notified.own[0].load(trace_ring::relaxed) == 4U);
    const std::uint64_t before = foreign::stubborn::asked;
    BOOST_TEST(!ring.write(8, 7U));
    BOOST_TEST(!ring.write(8, 7U));
    BOOST_TEST(foreign::stubborn::asked - before == 4U);  // called for the one that the gate let in
    BOOST_TEST(ring.lost()[loss_cause::refused] == 1U);
    const std::uint64_t ticks = foreign::ticking::ticks;
    BOOST_TEST(ring.now() == ticks + 1);
    BOOST_TEST(ring.control().clock.load(trace_ring::relaxed) == 77U);
    auto reader = ring.consumer();
    for (const int i : {1, 3, 5, 7}) {
        const auto item = reader.next();
        BOOST_REQUIRE(item.is_record());
        BOOST_TEST(item.record.millidegrees == i);
        BOOST_TEST(item.record.sensor == 7U);
    }
    BOOST_TEST(!reader.next());
}

BOOST_AUTO_TEST_CASE(a_storage_that_is_too_small_is_an_error_at_set_up) {
    struct small : policies<record::bare<sample>, foreign::borrowed> {};
    alignas(64) static std::byte bytes[storage::control_bytes + sizeof(sample)]{};
    BOOST_CHECK_NO_THROW((trace_ring::ring<small>(bytes, sizeof bytes)));
    BOOST_CHECK_THROW((trace_ring::ring<small>(bytes, sizeof bytes - 1)), trace_ring::setup_error);
    BOOST_CHECK_THROW((trace_ring::ring<small>(bytes, 8U)), trace_ring::setup_error);
}

BOOST_AUTO_TEST_CASE(presets_are_rings) {
    namespace presets = trace_ring::presets;
    static trace_ring::ring<presets::recent<sample>> recent;
    static trace_ring::ring<presets::recent_of_one<sample>> of_one;
    static trace_ring::ring<presets::lossless<sample>> lossless;
    static trace_ring::ring<presets::lossless_of_one<sample>> lossless_of_one;
    static trace_ring::ring<presets::run_up<sample>> run_up;
    static trace_ring::ring<presets::records<>> records;
    const auto works = [](auto& ring) {
        BOOST_TEST(put(ring, 1));
        BOOST_TEST(put(ring, 2));
        BOOST_TEST(numbers(ring.reader()) == range(1, 2));
    };
    works(recent);
    works(of_one);
    works(lossless);
    works(lossless_of_one);
    works(run_up);
    works(records);
    BOOST_TEST(numbers(lossless.consumer()) == range(1, 2));
}

BOOST_AUTO_TEST_SUITE_END()
