// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// A trace that grows between two reads of its reader. The reader asks for the length of its memory
/// at each read, and the test then records. So one thread tries the interleavings one by one, and
/// each run does the same.

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <trace_ring/format/mapped_traces.hpp>
#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/reduce/trace_file.hpp>

BOOST_AUTO_TEST_SUITE(between_two_reads)

namespace reduce = trace_ring::reduce;
using trace_ring::position;

namespace {

/// Four of them fill a sub-buffer.
struct block : trace_ring::event<"block", trace_ring::field<"n", std::uint64_t>,
                                 trace_ring::field<"bytes", std::span<const std::uint8_t>>> {};

trace_ring::recorder_options options(std::uint64_t size) {
    trace_ring::recorder_options wanted;
    wanted.memory_file = true;
    wanted.size = size;
    wanted.sub_buffer_bytes = 4096;
    return wanted;
}

/// A recorder whose memory is mapped a second time, for a reader. After `arm(when, meanwhile)`, the
/// reader calls `meanwhile` before its read number `when`, counted from 0.
class growing : trace_ring::layout::mapped_trace {
public:
    explicit growing(std::uint64_t size) : recorder_(options(size)) {
        length_ = recorder_.bytes().second;
        memory_ = ::mmap(nullptr, length_, PROT_READ, MAP_SHARED, recorder_.descriptor(), 0);
        BOOST_REQUIRE(memory_ != MAP_FAILED);
        bytes = [](const mapped_trace& self) noexcept {
            return const_cast<growing&>(static_cast<const growing&>(self)).is_read();
        };
        trace_ring::layout::mapped_traces::enter(start(), *this);
    }
    growing(const growing&) = delete;
    growing& operator=(const growing&) = delete;
    ~growing() {
        trace_ring::layout::mapped_traces::leave(*this);
        ::munmap(memory_, length_);
    }

    /// Given as one page that has grown, so that the reader asks for the length at each read.
    [[nodiscard]] reduce::trace_file open() const {
        return reduce::trace_file::from({start(), trace_ring::layout::format_page_bytes});
    }
    void write(int blocks) {
        static constexpr std::uint8_t payload[960]{};
        for (int i = 0; i < blocks; ++i) {
            recorder_.record<block>(written_++, std::span<const std::uint8_t>(payload));
        }
    }
    /// Records written so far.
    [[nodiscard]] std::uint64_t written() const { return written_; }
    void arm(std::uint64_t when, std::function<void()> meanwhile) {
        left_ = when;
        meanwhile_ = std::move(meanwhile);
    }
    /// `meanwhile` was not called yet.
    [[nodiscard]] bool armed() const { return static_cast<bool>(meanwhile_); }

private:
    [[nodiscard]] const std::byte* start() const { return static_cast<const std::byte*>(memory_); }
    [[nodiscard]] std::uint64_t is_read() {
        if (meanwhile_ && left_-- == 0) std::exchange(meanwhile_, nullptr)();
        return length_;
    }

    trace_ring::recorder recorder_;
    void* memory_ = nullptr;
    std::size_t length_ = 0;
    std::uint64_t written_ = 0;
    std::uint64_t left_ = 0;
    std::function<void()> meanwhile_{};
};

/// The records and losses that a cursor returned.
struct seen {
    std::vector<std::uint64_t> records{};
    std::uint64_t lost = 0;

    void take(reduce::cursor& from) {
        while (const reduce::item* const one = from.next()) {
            if (const auto* record = std::get_if<reduce::record_view>(one)) {
                take(*record);
                for (const auto& like : from.records()) take(like);
            } else if (const auto* loss = std::get_if<reduce::loss_item>(one)) {
                lost += loss->count;
            }
        }
    }
    void take(const reduce::record_view& record) {
        const std::uint64_t n = record.field("n").u64();
        misplaced += record.position() == n ? 0U : 1U;
        records.push_back(n);
    }
    std::uint64_t misplaced = 0;
};

/// Whether it has all records from the first to some later one, and no loss.
bool is_whole(const seen& what) {
    for (std::size_t i = 0; i < what.records.size(); ++i) {
        if (what.records[i] != i) return false;
    }
    return what.lost == 0 && what.misplaced == 0;
}

/// Calls `once(when)` with the number of each read, until it returns that there was no such read.
template <class Once>
void at_each_read(const Once& once) {
    std::uint64_t when = 0;
    while (once(when)) ++when;
    BOOST_TEST(when > 20U);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_follower_finds_everything_that_was_recorded_while_it_looked) {
    for (const std::uint64_t size : {64U << 10, 512U << 10}) {
        std::uint64_t wrong = 0;
        at_each_read([&](std::uint64_t when) {
            growing trace(size);
            trace.write(10);
            const auto file = trace.open();
            auto cursor = file.follow();
            seen all;
            all.take(cursor);
            trace.arm(when, [&] { trace.write(10); });
            for (int i = 0; i < 3; ++i) all.take(cursor);
            const bool met = !trace.armed();
            trace.arm(0, nullptr);
            cursor.stop_following();
            all.take(cursor);
            wrong += is_whole(all) && all.records.size() == trace.written() ? 0U : 1U;
            return met;
        });
        BOOST_TEST(wrong == 0U);
    }
}

/// How many of the readings of 10 records were wrong, one for each point at which 10 more come.
template <class IsRight>
std::uint64_t wrong_while_it_grows(IsRight is_right) {
    std::uint64_t wrong = 0;
    at_each_read([&](std::uint64_t when) {
        growing trace(64U << 10);
        trace.write(10);
        const auto file = trace.open();
        trace.arm(when, [&] { trace.write(10); });
        wrong += is_right(file) ? 0U : 1U;
        return !trace.armed();
    });
    return wrong;
}

BOOST_AUTO_TEST_CASE(a_reading_has_all_records_up_to_some_point_and_misses_none) {
    for (const bool forward : {true, false}) {
        const auto is_right = [&](const reduce::trace_file& file) {
            auto cursor = forward ? file.forward() : file.backward();
            seen all;
            all.take(cursor);
            if (!forward) std::reverse(all.records.begin(), all.records.end());
            return is_whole(all) && all.records.size() >= 10;
        };
        BOOST_TEST(wrong_while_it_grows(is_right) == 0U);
    }
}

BOOST_AUTO_TEST_CASE(statistics_report_no_loss_of_records_made_while_they_count) {
    const auto is_right = [](const reduce::trace_file& file) {
        const auto sum = file.statistics();
        return sum.lost.total() == 0 && sum.records >= 10;
    };
    BOOST_TEST(wrong_while_it_grows(is_right) == 0U);
}

BOOST_AUTO_TEST_CASE(overwritten_records_are_counted_and_no_others) {
    for (const int more : {1, 10, 40, 70, 200}) {
        std::uint64_t wrong = 0, lost = 0;
        at_each_read([&](std::uint64_t when) {
            growing trace(64U << 10);
            trace.write(100);
            const auto file = trace.open();
            auto cursor = file.follow();
            seen all;
            all.take(cursor);
            trace.arm(when, [&] { trace.write(more); });
            for (int i = 0; i < 3; ++i) all.take(cursor);
            const bool met = !trace.armed();
            trace.arm(0, nullptr);
            cursor.stop_following();
            all.take(cursor);
            // What the ring has in the end was there all the time.
            seen left;
            auto rest = file.forward();
            left.take(rest);
            const auto& got = all.records;
            const bool has_rest =
                got.size() >= left.records.size() &&
                std::equal(left.records.rbegin(), left.records.rend(), got.rbegin());
            const bool ascends =
                std::adjacent_find(got.begin(), got.end(), std::greater_equal<>()) == got.end();
            wrong += has_rest && ascends && all.misplaced == 0 &&
                             got.size() + all.lost == trace.written()
                         ? 0U
                         : 1U;
            lost += all.lost;
            return met;
        });
        BOOST_TEST(wrong == 0U, more);
        BOOST_TEST(lost > 0U);
    }
}

BOOST_AUTO_TEST_CASE(another_cursor_of_the_same_trace_changes_nothing) {
    for (const int before : {1, 10}) {
        growing trace(64U << 10);
        trace.write(before);
        const auto file = trace.open();
        auto forward = file.forward();
        auto backward = file.backward();
        auto follow = file.follow();
        seen followed;
        if (before == 10) followed.take(follow);
        trace.write(10);
        auto other = file.forward();
        seen first, last, rest;
        first.take(forward);
        last.take(backward);
        std::reverse(last.records.begin(), last.records.end());
        followed.take(follow);
        followed.take(follow);
        follow.stop_following();
        followed.take(follow);
        rest.take(other);
        for (const auto* each : {&first, &last, &followed, &rest}) {
            BOOST_TEST(each->lost == 0U);
            BOOST_TEST(is_whole(*each));
        }
        BOOST_TEST(first.records.size() >= std::size_t(before));
        BOOST_TEST(followed.records.size() == trace.written());
    }
}

BOOST_AUTO_TEST_SUITE_END()
