// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The parts of a recorder's cold path, each used as the recorder uses it: lanes begin, claim and
/// close sub-buffers, are released, and adopted; and it is reclaimed when it is due.

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstdint>

#include <trace_ring/policy/clock/none.hpp>
#include <trace_ring/recorder/file/rings.hpp>
#include <trace_ring/recorder/file/trace_memory.hpp>
#include <trace_ring/recorder/lane/adoption.hpp>
#include <trace_ring/recorder/lane/claimer.hpp>
#include <trace_ring/recorder/lane/holdings.hpp>
#include <trace_ring/recorder/lane/lane_book.hpp>
#include <trace_ring/recorder/lane/lane_sub_buffers.hpp>
#include <trace_ring/recorder/lane/reclaimer.hpp>
#include <trace_ring/recorder/process/own_process.hpp>
#include <trace_ring/recorder/recorder.hpp>

BOOST_AUTO_TEST_SUITE(lane_objects)

namespace tr = trace_ring;
namespace impl = tr::impl;
using tr::relaxed;
using tr::sub_buffer_state;

namespace {

constexpr std::uint32_t slots = 16;
int times_released = 0;
std::uint32_t count_releases() noexcept {
    ++times_released;
    return 0;
}

/// A trace in memory, with the lanes of two threads, of which the second is the calling one too.
struct parts {
    parts() {
        process.enter(events);
        for (auto& node : nodes) {
            node = impl::enter_other_thread(0, 0, "test", [](impl::thread_node&) noexcept {});
            BOOST_REQUIRE(node != nullptr);
            node->other_process.store(0, relaxed);
        }
        nodes[0]->thread.store(1, relaxed);
        nodes[1]->thread.store(2, relaxed);
    }
    parts(const parts&) = delete;
    parts& operator=(const parts&) = delete;
    ~parts() {
        for (auto* const node : nodes) impl::leave_other_thread(*node, &forget);
        memory.leave_process(book.process());
    }
    static void forget(impl::thread_node& node) noexcept {
        impl::lane_state& lane = impl::block_of(node).states[0];
        lane.sub.store(&impl::nowhere, relaxed);
        lane.where.store(tr::no_position, relaxed);
        impl::mark_of(lane).valid.store(0, relaxed);
    }

    impl::lane_state& lane(std::size_t which) { return impl::block_of(*nodes[which]).states[0]; }
    void begin(impl::lane_state& lane) {
        std::uint32_t slot = 0;
        bool few_left = false;
        auto* const entry = reclaimer.claim_entry(slot, few_left);
        BOOST_REQUIRE(entry != nullptr);
        book.begin_lane(lane, *entry, slot, 0);
        impl::mark_of(lane).hold_as(impl::lane_ownership::own);
        impl::mark_of(lane).valid.store(1, relaxed);
    }
    /// Whether it got one.
    bool claim(impl::lane_state& lane, bool counted = false) {
        std::uint64_t now = 0, waited = 0;
        auto* const sub = sub_buffers.claim(lane, rings[0], now, counted, waited);
        if (sub != nullptr) lane.sub.store(sub, relaxed);
        return sub != nullptr;
    }
    /// As a thread that ends does.
    void release(impl::lane_state& lane) {
        sub_buffers.close(lane, rings[0], 0);
        impl::holdings::drop(rings[0]);
        const auto& entry = *lane.entry.load(relaxed);
        book.release_lane(lane, 0);
        adoption.offer(entry, entry.number.load(relaxed));
    }
    [[nodiscard]] sub_buffer_state state_at(std::uint64_t slot) const {
        return static_cast<sub_buffer_state>(
            tr::stamped::from(memory.sub_buffer(slot).state.load(relaxed)).state);
    }
    [[nodiscard]] std::uint64_t held() const { return rings.in_use().first; }

    tr::recorder_options options{.size = slots * 512, .sub_buffer_bytes = 512};
    impl::recorder_words words{};
    impl::trace_memory memory{options, impl::functions_of<tr::clock::none>};
    impl::event_book events{memory};
    impl::rings rings{memory.ring(), memory.plan(), memory.present()};
    impl::claimer claimer{memory, options};
    impl::lane_book book{memory, rings};
    impl::reclaimer reclaimer{memory, rings, book, claimer, &count_releases};
    impl::adoption adoption{memory, rings, book, reclaimer};
    impl::lane_sub_buffers sub_buffers{memory, claimer, reclaimer};
    impl::own_process process{memory, book, claimer, words, tr::on_fork::own_lanes};
    impl::thread_node* nodes[2]{};
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_lane_claims_sub_buffers_one_behind_the_other_and_closes_each) {
    parts all;
    impl::lane_state& lane = all.lane(0);
    all.begin(lane);
    for (std::uint64_t slot = 0; slot < 3; ++slot) {
        BOOST_TEST(all.claim(lane, slot != 0));
        BOOST_TEST((all.state_at(slot) == sub_buffer_state::active));
        BOOST_TEST(lane.where.load(relaxed) == slot + 1);
        BOOST_TEST(all.held() == 1U);
        all.sub_buffers.close(lane, all.rings[0], 0);
        BOOST_TEST((all.state_at(slot) == sub_buffer_state::closed));
        BOOST_TEST((lane.sub.load(relaxed) == &impl::nowhere));
    }
    impl::holdings::drop(all.rings[0]);
    BOOST_TEST(all.held() == 0U);
}

BOOST_AUTO_TEST_CASE(a_released_lane_is_adopted_with_its_sub_buffer_and_names_its_new_writer) {
    parts all;
    impl::lane_state& first = all.lane(0);
    all.begin(first);
    BOOST_REQUIRE(all.claim(first));
    auto* const entry = first.entry.load(relaxed);
    all.release(first);
    BOOST_TEST(all.held() == 0U);
    impl::lane_state& second = all.lane(1);
    BOOST_TEST(all.adoption.adopt(second, 0, 64));
    BOOST_TEST((second.entry.load(relaxed) == entry));
    BOOST_TEST((all.state_at(0) == sub_buffer_state::active));
    BOOST_TEST(entry->writer.load(relaxed) == tr::layout::writer_word(2, 0));
    BOOST_TEST(entry->adopted.load(relaxed) == 1U);
    BOOST_TEST(all.held() == 1U);
    BOOST_TEST(impl::mark_of(second).held_as.load(relaxed) == impl::lane_ownership::adopted);
    BOOST_TEST(!all.adoption.adopt(first, 0, 64));  // there is no other offer
    all.release(second);
}

BOOST_AUTO_TEST_CASE(an_offer_whose_sub_buffer_was_overwritten_or_is_too_full_is_not_adopted) {
    parts all;
    impl::lane_state& first = all.lane(0);
    impl::lane_state& second = all.lane(1);
    all.begin(first);
    BOOST_REQUIRE(all.claim(first));
    all.release(first);
    BOOST_TEST(!all.adoption.adopt(second, 0, 500));  // stays offered
    all.begin(second);
    BOOST_REQUIRE(all.claim(second));
    for (std::uint32_t i = 0; i < slots; ++i) {
        all.sub_buffers.close(second, all.rings[0], 0);
        BOOST_REQUIRE(all.claim(second, true));
    }
    BOOST_TEST(!all.adoption.adopt(first, 0, 64));
    BOOST_TEST(all.held() == 1U);
    all.release(second);
}

BOOST_AUTO_TEST_CASE(writers_hold_at_most_half_and_what_fails_reclaims_once_in_64_times) {
    parts all;
    bool crowded = false;
    for (std::uint32_t i = 0; i < slots / 2; ++i) {
        BOOST_TEST(impl::holdings(all.memory).add(all.rings[0], crowded));
        BOOST_TEST(crowded == (i >= slots / 2 * 3 / 4));
    }
    times_released = 0;
    // That much is counted as held, and not held: it is taken for claims under way of the dead.
    all.book.count_is_lost();
    BOOST_TEST(all.reclaimer.hold(all.rings[0], crowded));
    BOOST_TEST(times_released == 1);
    BOOST_TEST(all.held() == 1U);
    for (int i = 0; i < 63; ++i) BOOST_TEST(!all.reclaimer.reclaim_if_due());
    BOOST_TEST(all.reclaimer.reclaim_if_due());
    BOOST_TEST(times_released == 2);
    impl::holdings::drop(all.rings[0]);
}

BOOST_AUTO_TEST_SUITE_END()
