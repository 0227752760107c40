// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// With threads that read ahead, the output for a trace is the same as without.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <examples/trace_reduce/where/where_trace.hpp>
#include <proof.hpp>
#include <reduce/file_builder.hpp>
#include <reduce/random_trace.hpp>
#include <reduce/scratch_file.hpp>
#include <reduce/told.hpp>
#include <trace_reduce/position/range_finder.hpp>
#include <trace_reduce/reading/threads.hpp>
#include <trace_reduce/where/names.hpp>
#include <trace_reduce/where/predicate.hpp>
#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/reduce/trace_file.hpp>

BOOST_AUTO_TEST_SUITE(threads_that_read_ahead)

using namespace trace_ring_test;
namespace reduce = trace_ring::reduce;
namespace where = trace_reduce::where;

namespace {

/// The field's lowest bits: some records here and there, or none.
std::shared_ptr<const where::condition> chance(const reduce::trace_file& file, const char* field,
                                               std::uint64_t mask, std::uint64_t least) {
    auto bits = where::expression::join(
        where::form::product, {where::expression::of_name(field), where::expression::of(mask)});
    bits.signs = "*&";
    return std::make_shared<where::predicate>(
        file.about(), where::expression::compare(std::move(bits), where::comparison::more,
                                                 where::expression::of(least)));
}

void compare(const reduce::trace_file& file, reduce::filter what) {
    for (const auto order : {reduce::merging::by_time, reduce::merging::by_lane}) {
        what.ahead = {};
        const auto forward = told_of(file, file.forward(what, order));
        const auto backward = told_of(file, file.backward(what, order));
        for (const unsigned helpers : {1U, 3U}) {
            what.ahead = trace_reduce::read_ahead_by(helpers);
            BOOST_TEST(told_of(file, file.forward(what, order)) == forward,
                       boost::test_tools::per_element());
            BOOST_TEST(told_of(file, file.backward(what, order)) == backward,
                       boost::test_tools::per_element());
        }
    }
}

/// Another thread cannot ask it: selects what `asks` does.
class alone : public where::condition {
public:
    explicit alone(std::shared_ptr<const where::condition> asks) : asks_(std::move(asks)) {}
    [[nodiscard]] portion choose(const reduce::record_run& of) const override {
        return asks_->choose(of);
    }

private:
    std::shared_ptr<const where::condition> asks_;
};

struct refusal {};
/// Throws at a given number of calls, from any thread.
class throwing : public where::condition {
public:
    explicit throwing(std::uint64_t time) : time_(time) {}
    [[nodiscard]] std::shared_ptr<const condition> another() const override {
        return std::make_shared<throwing>(time_);
    }
    [[nodiscard]] portion choose(const reduce::record_run& of) const override {
        for (std::size_t i = 0; i < of.size(); ++i) {
            if (of[i].time() >= time_) throw refusal{};
        }
        return {0, of.size()};
    }

private:
    std::uint64_t time_;
};

file_builder large(std::uint64_t seed) {
    dice random(seed);
    shape is;
    is.sub_buffers = 600;
    is.opened = 800;
    is.losses = true;
    return random_trace(random, is);
}

}  // namespace

BOOST_AUTO_TEST_CASE(threads_that_read_ahead_change_nothing_that_is_told) {
    dice random(20'260'202);
    const int rounds = static_cast<int>(trace_ring_test::repeats(25));
    for (int round = 0; round < rounds; ++round) {
        shape is;
        is.sub_buffers = 100 + random.below(500);
        is.opened = 100 + random.below(700);
        is.lanes = static_cast<std::uint32_t>(2 + random.below(11));
        is.jumps = random.one_in(2);
        is.losses = random.one_in(2);
        is.sampled = random.one_in(3);
        is.quiet = random.one_in(3) && is.lanes > 3;
        is.ahead = random.one_in(3);
        auto made = random_trace(random, is);
        flip_bits(made, random, random.one_in(2) ? random.below(60) : 0);
        const scratch_file scratch;
        made.save(scratch.path());
        const auto file = random.one_in(4) ? reduce::trace_file::from(std::as_const(made).bytes())
                                           : reduce::trace_file::open(scratch.path());
        BOOST_TEST_CONTEXT("round " << round) {
            reduce::filter what;
            compare(file, what);
            what.condition = chance(file, "n", 7, random.below(8));
            compare(file, what);
            what.from = 1000 + random.below(3000);
            what.to = what.from + random.below(9000);
            compare(file, what);
            what.condition = nullptr;
            what.threads = {1000, 1001};
            what.positions.push_back({0, random.below(50), 50 + random.below(100)});
            compare(file, what);
        }
    }
}

BOOST_AUTO_TEST_CASE(records_of_every_kind_are_selected_ahead_as_they_are_later) {
    where_trace made;
    const scratch_file scratch;
    made.file().save(scratch.path());
    const auto file = reduce::trace_file::open(scratch.path());
    for (const char* field : {"u8", "u64", "flag", "only here"}) {
        reduce::filter what;
        what.condition = chance(file, field, 1, 0);
        compare(file, what);
        what.events = {"every", "texts*"};
        compare(file, what);
    }
}

BOOST_AUTO_TEST_CASE(a_condition_of_one_thread_is_asked_by_that_one) {
    const auto made = large(1);
    const auto file = reduce::trace_file::from(made.bytes());
    reduce::filter what;
    what.condition = chance(file, "n", 3, 1);
    const auto expected = told_of(file, file.forward(what));
    what.condition = std::make_shared<alone>(what.condition);
    what.ahead = trace_reduce::read_ahead_by(2);
    BOOST_TEST(told_of(file, file.forward(what)) == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_is_thrown_ahead_is_thrown_in_its_place) {
    const auto made = large(2);
    const auto file = reduce::trace_file::from(made.bytes());
    const auto until_it_throws = [&file](unsigned helpers) {
        reduce::filter what;
        what.ahead = trace_reduce::read_ahead_by(helpers);
        what.condition =
            std::make_shared<throwing>(trace_reduce::range_finder(file).whole().last / 2);
        auto cursor = file.forward(what, reduce::merging::by_lane);
        std::uint64_t items = 0;
        try {
            while (cursor.next() != nullptr) ++items;
        } catch (const refusal&) {
            return items;
        }
        return ~std::uint64_t{0};
    };
    const auto alone = until_it_throws(0);
    BOOST_TEST(alone > 0U);
    BOOST_TEST(alone < ~std::uint64_t{0});
    for (const unsigned helpers : {1U, 4U}) BOOST_TEST(until_it_throws(helpers) == alone);
}

BOOST_AUTO_TEST_CASE(a_cursor_may_be_moved_and_left_at_any_time) {
    const auto made = large(3);
    const scratch_file scratch;
    made.save(scratch.path());
    const auto file = reduce::trace_file::open(scratch.path());
    reduce::filter what;
    what.ahead = trace_reduce::read_ahead_by(4);
    for (int items = 0; items < 400; items += 7) {
        auto first = items % 2 == 0 ? file.forward(what) : file.backward(what);
        for (int i = 0; i < items / 2; ++i) (void)first.next();
        auto second = std::move(first);
        for (int i = 0; i < items / 2; ++i) BOOST_REQUIRE(second.next() != nullptr);
    }
}

BOOST_AUTO_TEST_CASE(statistics_are_the_same_with_threads) {
    const auto made = large(4);
    const auto file = reduce::trace_file::from(made.bytes());
    reduce::filter what;
    what.condition = chance(file, "n", 7, 4);
    const auto alone = file.statistics(what);
    what.ahead = trace_reduce::read_ahead_by(3);
    const auto together = file.statistics(what);
    BOOST_TEST(alone.records > 0U);
    BOOST_TEST(together.records == alone.records);
    BOOST_TEST(together.bytes == alone.bytes);
    BOOST_TEST(together.lost.total() == alone.lost.total());
    BOOST_TEST(together.clock_jumps == alone.clock_jumps);
    BOOST_TEST(together.first_time == alone.first_time);
    BOOST_TEST(together.last_time == alone.last_time);
}

struct step : trace_ring::event<"step", trace_ring::field<"n", std::uint64_t>> {};

BOOST_AUTO_TEST_CASE(lanes_that_were_adopted_are_reported_and_counted_in_the_same_order) {
    const scratch_file scratch;
    scratch.remove();
    {
        trace_ring::recorder recorder{{.file = scratch.path(), .size = 1 << 20}};
        for (int thread = 0; thread < 40; ++thread) {
            std::thread([&recorder, thread] {
                for (std::uint64_t n = 0; n < 300 + static_cast<std::uint64_t>(thread); ++n) {
                    recorder.record<step>(n);
                }
            }).join();
        }
    }
    const auto rows = [&scratch](unsigned helpers) {
        const auto file = reduce::trace_file::open(scratch.path());
        reduce::filter what;
        what.ahead = trace_reduce::read_ahead_by(helpers);
        std::vector<std::string> out;
        for (const auto& each : file.statistics(what).lanes) {
            out.push_back(std::to_string(each.lane->number) + ' ' +
                          std::to_string(each.lane->thread) + ' ' + std::to_string(each.records));
        }
        return out;
    };
    const auto alone = rows(0);
    BOOST_TEST(alone.size() >= 40U);
    for (const unsigned helpers : {1U, 3U}) {
        BOOST_TEST(rows(helpers) == alone, boost::test_tools::per_element());
    }
    const auto file = reduce::trace_file::open(scratch.path());
    bool adopted = false;
    for (const auto& lane : file.lanes()) adopted = adopted || lane.adopted != 0;
    BOOST_TEST(adopted);
    reduce::filter what;
    what.condition = chance(file, "n", 15, 13);
    compare(file, what);
}

BOOST_AUTO_TEST_SUITE_END()
