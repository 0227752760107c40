// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Traces that are as old as none ever was: counters on their way past 2^32, and at their ends.

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <latch>
#include <map>
#include <span>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include <trace_ring/drain/session.hpp>
#include <trace_ring/recorder/cpu/recorder.hpp>
#include <trace_ring/recorder/drain_source/drain_source.hpp>
#include <trace_ring/recorder/recorder.hpp>

#include <recorder/account.hpp>
#include <recorder/kinds.hpp>
#include <recorder/scratch.hpp>

BOOST_AUTO_TEST_SUITE(positions)

namespace tr = trace_ring;
using test::fit_in_512;
using tr::loss_cause;
using tr::position;

namespace {

constexpr position past_32_bits = position{1} << 32;

tr::recorder_options ring_of_64(tr::full_mode full = tr::full_mode::overwrite_oldest) {
    return {.size = 64 * 512, .sub_buffer_bytes = 512, .full = full, .block_for = {}};
}

/// Before the first record: the next sub-buffer gets the position after `last`.
template <class Kind>
void begin_after(tr::basic_recorder<Kind>& recorder, position last) {
    test::hands_on(recorder).ring().cursor.store(last, tr::relaxed);
}
template <class Kind>
position newest_of(const tr::basic_recorder<Kind>& recorder) {
    return test::hands_on(recorder).ring().cursor.load(tr::relaxed);
}

/// By lane: the positions of the records in it, as they come.
using orders = std::map<std::uint32_t, std::vector<position>>;
template <class Cursor>
orders orders_by(Cursor cursor) {
    orders out;
    while (const auto* item = cursor.next()) {
        if (const auto* const record = std::get_if<tr::reduce::record_view>(item)) {
            out[record->lane().number].push_back(record->position());
        }
    }
    return out;
}

/// Everything is present or reported, backwards and forwards, in the memory and in a copy.
template <class Kind>
test::account must_account(tr::basic_recorder<Kind>& recorder, std::uint64_t tried) {
    const auto all = test::account_of(recorder);
    BOOST_TEST(all.strange == 0U);
    BOOST_TEST(all.read() + all.lost().total() == tried);
    const auto [data, size] = recorder.bytes();
    const auto trace = tr::reduce::trace_file::from(std::span(data, size));
    const orders forward = orders_by(trace.forward());
    orders backward = orders_by(trace.backward());
    for (auto& [lane, records] : backward) std::reverse(records.begin(), records.end());
    BOOST_TEST((backward == forward));
    for (const auto& [lane, records] : forward) {
        BOOST_TEST((std::adjacent_find(records.begin(), records.end(), std::greater_equal<>()) ==
                    records.end()));
    }
    const test::folder folder;
    const std::string copy = folder / "copy";
    BOOST_TEST(recorder.snapshot(copy.c_str()) == 0);
    const auto copied = test::account_of(tr::reduce::trace_file::open(copy));
    BOOST_TEST(copied.strange == 0U);
    BOOST_TEST(copied.read() == all.read());
    BOOST_TEST(copied.lost().total() == all.lost().total());
    return all;
}

template <class Kind>
std::uint64_t by_threads(tr::basic_recorder<Kind>& recorder, std::uint64_t each) {
    std::atomic<std::uint64_t> kept{0};
    std::vector<std::thread> threads;
    for (std::uint64_t t = 0; t < 3; ++t) {
        threads.emplace_back([&, t] {
            std::uint64_t mine = 0;
            for (std::uint64_t n = 0; n < each; ++n) mine += test::put(recorder, t, n) ? 1 : 0;
            kept += mine;
        });
    }
    for (auto& one : threads) one.join();
    return kept.load();
}

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(a_ring_goes_on_past_positions_of_32_bits_and_near_the_last, kind,
                              test::kinds) {
    // 9,000 records of at least 24 bytes take more than 400 sub-buffers; and fewer than 2,000, for
    // of each thread's that is left behind for another at most one is drawn in vain.
    constexpr std::uint64_t each = 3000;
    for (const position last : {past_32_bits - 100, 2 * past_32_bits - 1, position{1} << 60,
                                tr::last_position - 20'000}) {
        tr::basic_recorder<kind> recorder(ring_of_64());
        begin_after(recorder, last);
        BOOST_TEST(by_threads(recorder, each) == 3 * each);
        BOOST_TEST(newest_of(recorder) > last + 400);
        const auto all = must_account(recorder, 3 * each);
        BOOST_TEST(all.lost()[loss_cause::overwritten] == all.lost().total());
        BOOST_TEST(all.read() > 0U);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(who_follows_or_drains_a_ring_goes_with_it_past_32_bits, kind,
                              test::kinds) {
    constexpr std::uint64_t records = 5000;
    for (const bool drains : {false, true}) {
        tr::basic_recorder<kind> recorder(ring_of_64());
        begin_after(recorder, past_32_bits - 100);
        const auto [data, size] = recorder.bytes();
        const auto trace = tr::reduce::trace_file::from(std::span(data, size));
        auto cursor = trace.follow();
        tr::drain::session session(recorder);
        std::uint64_t seen = 0;
        std::uint64_t lost = 0;
        const auto look = [&] {
            if (drains) {
                session.for_each([](const auto&) {});
                return;
            }
            while (const auto* item = cursor.next()) {
                if (std::get_if<tr::reduce::record_view>(item) != nullptr) ++seen;
                if (const auto* gap = std::get_if<tr::reduce::loss_item>(item)) lost += gap->count;
            }
        };
        for (std::uint64_t n = 0; n < records; ++n) {
            BOOST_REQUIRE(test::put(recorder, 1, n));
            // Now and then it looks too late.
            if (n % 100 == 0 && n / 2000 != 1) look();
        }
        if (drains) {
            look();
            session.finish_records([](const auto&) {});
            seen = session.records();
            lost = session.lost().total();
        } else {
            cursor.stop_following();
            look();
        }
        BOOST_TEST(newest_of(recorder) > past_32_bits);
        BOOST_TEST(seen + lost == records);
        BOOST_TEST(lost > 0U);
        BOOST_TEST(seen > records / 3);
    }
}

BOOST_AUTO_TEST_CASE(what_a_quiet_thread_closed_lately_is_passed_once_wherever_32_bits_end) {
    // It closes before, at and after the low half of the cursor begins again.
    for (position before = 110; before >= 60; before -= 2) {
        tr::recorder recorder(ring_of_64());
        begin_after(recorder, past_32_bits - before);
        std::latch recorded{1};
        std::latch closes{1};
        std::latch closed{1};
        std::latch end{1};
        std::thread quiet([&] {
            test::put(recorder, 2, 0);
            recorded.count_down();
            closes.wait();
            recorder.flush_thread();
            closed.count_down();
            end.wait();
        });
        recorded.wait();
        std::uint64_t n = 0;
        while (n < 80 * fit_in_512) test::put(recorder, 1, n++);
        closes.count_down();
        closed.wait();
        // Not yet half a round of the ring. Its place comes once by then: 80 + 20 > 64.
        while (n < 110 * fit_in_512) test::put(recorder, 1, n++);
        const auto all = test::account_of(recorder);
        BOOST_TEST(all.of(2).size() == 1U, "closed at " << before - 80 << " before");
        end.count_down();
        quiet.join();
    }
}

BOOST_AUTO_TEST_CASE(behind_the_last_position_records_are_refused_and_told) {
    for (const auto full :
         {tr::full_mode::overwrite_oldest, tr::full_mode::discard_newest, tr::full_mode::block,
          tr::full_mode::extend_then_discard, tr::full_mode::extend_then_overwrite}) {
        auto options = ring_of_64(full);
        options.limit = 2 * options.size;
        tr::recorder recorder(options);
        const std::uint64_t limit = test::hands_on(recorder).plan().sub_buffer_limit;
        // In a trace that extends, the last position is beyond its current end: it grows.
        begin_after(recorder, tr::last_position - 5);
        BOOST_TEST(((tr::last_position - 6) % limit) >= limit - 7);
        std::uint64_t kept = 0;
        for (std::uint64_t n = 0; n < 1000; ++n) kept += test::put(recorder, 1, n) ? 1 : 0;
        BOOST_TEST(kept == 5 * fit_in_512);
        BOOST_TEST(newest_of(recorder) == tr::last_position);
        const auto all = must_account(recorder, 1000);
        BOOST_TEST(all.read() == kept);
        BOOST_TEST(all.lost()[loss_cause::refused] == 1000 - kept);
        BOOST_TEST(recorder.statistics().held == 0U);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(threads_that_come_to_the_last_position_together_lose_nothing_untold,
                              kind, test::kinds) {
    constexpr std::uint64_t each = 3000;
    for (const position left : {0U, 1U, 50U}) {
        tr::basic_recorder<kind> recorder(ring_of_64());
        begin_after(recorder, tr::last_position - left);
        const std::uint64_t kept = by_threads(recorder, each);
        BOOST_TEST(kept <= left * fit_in_512);
        if (left != 0) BOOST_TEST(kept > 0U);
        BOOST_TEST(newest_of(recorder) == tr::last_position);
        const auto all = must_account(recorder, 3 * each);
        BOOST_TEST(all.read() == kept);
        BOOST_TEST(all.lost()[loss_cause::refused] == 3 * each - kept);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_cursor_that_somebody_set_behind_the_last_position_stays_there, kind,
                              test::kinds) {
    for (const auto full : {tr::full_mode::overwrite_oldest, tr::full_mode::discard_newest}) {
        for (const position last :
             {tr::last_position + 1, position{1} << 63, ~position{1}, ~position{0}}) {
            tr::basic_recorder<kind> recorder(ring_of_64(full));
            begin_after(recorder, last);
            std::uint64_t kept = 0;
            for (std::uint64_t n = 0; n < 100; ++n) kept += test::put(recorder, 1, n) ? 1 : 0;
            BOOST_TEST(kept == 0U);
            const auto all = must_account(recorder, 100);
            BOOST_TEST(all.lost()[loss_cause::refused] == 100U);
            BOOST_TEST(newest_of(recorder) == tr::last_position);
        }
    }
}

// --- Counters of lanes ---

namespace {

/// The sub-buffer that the only thread is filling, and its lane's entry.
struct in_use {
    template <class Kind>
    explicit in_use(tr::basic_recorder<Kind>& recorder) : trace(recorder) {
        for (std::uint64_t slot = 0; slot < trace.plan().sub_buffer_limit; ++slot) {
            if (trace.state(slot).state == static_cast<unsigned>(tr::sub_buffer_state::active)) {
                sub = &trace.sub_buffer(slot);
            }
        }
        auto* const base = const_cast<std::byte*>(recorder.bytes().first);
        entry = reinterpret_cast<tr::layout::lane_entry*>(base + trace.plan().lanes);
        BOOST_REQUIRE(sub != nullptr);
        BOOST_REQUIRE(sub->lane.load(tr::relaxed) == entry->number.load(tr::relaxed));
    }
    test::hands_on trace;
    tr::sub_buffer_header* sub = nullptr;
    tr::layout::lane_entry* entry = nullptr;
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_lane_s_records_are_numbered_past_32_bits) {
    constexpr std::uint64_t records = 500;
    // The greatest that a reader believes is 2^52.
    for (const position before : {past_32_bits - 200, position{1} << 51}) {
        tr::recorder recorder(ring_of_64());
        test::put(recorder, 1, 0);
        const in_use now(recorder);
        // As if so many had been in sub-buffers before this one.
        now.sub->first_position.store(before, tr::relaxed);
        for (std::uint64_t n = 1; n < records; ++n) test::put(recorder, 1, n);
        const auto all = must_account(recorder, before + records);
        BOOST_TEST(all.read() == records);
        BOOST_REQUIRE(all.lanes.size() == 1U);
        const std::vector<tr::loss> gaps{{0, before, loss_cause::overwritten}};
        BOOST_TEST(all.lanes.begin()->second.gaps == gaps, boost::test_tools::per_element());
        tr::drain::session session(recorder);
        session.for_each([](const auto&) {});
        session.finish_records([](const auto&) {});
        BOOST_TEST(session.records() == records);
        BOOST_TEST(session.lost()[loss_cause::overwritten] == before);
    }
}

BOOST_AUTO_TEST_CASE(what_a_lane_was_refused_is_counted_past_32_bits) {
    constexpr std::uint64_t before = past_32_bits - 3;
    tr::recorder recorder(ring_of_64(tr::full_mode::discard_newest));
    test::put(recorder, 1, 0);
    const in_use now(recorder);
    // As if so many had been refused before the first.
    now.sub->refused.store(static_cast<std::uint32_t>(before), tr::relaxed);
    now.entry->refused.store(before, tr::relaxed);
    for (std::uint64_t n = 1; n < 64 * fit_in_512 + 10; ++n) test::put(recorder, 1, n);
    const auto all = must_account(recorder, before + 64 * fit_in_512 + 10);
    BOOST_TEST(all.lost()[loss_cause::refused] == before + 10);
    // More than a sub-buffer's header can hold: the rest is reported, too.
    now.entry->refused.store(5 * past_32_bits, tr::relaxed);
    BOOST_TEST(
        must_account(recorder, 5 * past_32_bits + 64 * fit_in_512).lost()[loss_cause::refused] ==
        5 * past_32_bits);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(lanes_are_numbered_past_32_bits_and_never_zero, kind, test::kinds) {
    tr::basic_recorder<kind> recorder(ring_of_64());
    test::hands_on(recorder).ring().last_lane.store(0xFFFF'FFFFU - 2, tr::relaxed);
    constexpr std::uint64_t threads = 6;
    std::latch all_there{threads};
    std::vector<std::thread> all;
    for (std::uint64_t t = 0; t < threads; ++t) {
        all.emplace_back([&, t] {
            for (std::uint64_t n = 0; n < 5; ++n) test::put(recorder, t, n);
            all_there.arrive_and_wait();
        });
    }
    for (auto& one : all) one.join();
    const auto seen = must_account(recorder, threads * 5);
    BOOST_TEST(seen.read() == threads * 5);
    BOOST_TEST(seen.lanes.count(0) == 0U);
}

BOOST_AUTO_TEST_CASE(requests_for_snapshots_are_numbered_past_32_bits) {
    const test::folder folder;
    auto options = ring_of_64();
    options.file = folder / "a.trace";
    tr::recorder recorder(options);
    auto& ring = test::hands_on(recorder).ring();
    ring.snapshot_done.store(0xFFFF'FFFFU, tr::relaxed);
    ring.snapshot_request.store(0, tr::release);
    for (std::uint64_t n = 0; n < 2 * fit_in_512; ++n) test::put(recorder, 1, n);
    BOOST_TEST(ring.snapshot_done.load(tr::acquire) == 0U);
    BOOST_TEST(std::filesystem::exists(folder / "a.trace.snapshot.0"));
}

BOOST_AUTO_TEST_SUITE_END()
