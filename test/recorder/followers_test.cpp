// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// A reader that follows a trace gets the same account as the recorder keeps: each record that was
/// tried is read, or reported as lost with the cause that its writer counted, also if it never had
/// a lane.

#include <boost/test/unit_test.hpp>

#include <fcntl.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <latch>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <trace_ring/exporter/text.hpp>
#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include <recorder/account.hpp>
#include <recorder/scratch.hpp>

BOOST_AUTO_TEST_SUITE(followers)

namespace tr = trace_ring;
namespace reduce = trace_ring::reduce;
using tr::full_mode;
using tr::loss_cause;

namespace {

tr::reduce::trace_file trace_of(const tr::recorder& recorder) {
    const auto [data, size] = recorder.bytes();
    return reduce::trace_file::from(std::span(data, size));
}

/// Reads on and on, and adds up.
class follower {
public:
    explicit follower(reduce::trace_file&& trace) : trace_(std::move(trace)) {}

    void pull() {
        while (const auto* item = cursor_.next()) {
            if (std::holds_alternative<reduce::record_view>(*item)) ++read_;
            if (const auto* const loss = std::get_if<reduce::loss_item>(item)) {
                lost_.add(loss->cause, loss->count);
                if (loss->cause == loss_cause::damaged) {
                    BOOST_ERROR("damage at offset " << loss->offset << ", position " << loss->at
                                                    << ": " << loss->what);
                }
            }
        }
    }
    void stop() {
        pull();
        cursor_.stop_following();
        pull();
        BOOST_TEST(trace_.damages().size() == 0U);
    }
    [[nodiscard]] std::uint64_t read() const { return read_; }
    [[nodiscard]] const tr::loss_counts& lost() const { return lost_; }

private:
    reduce::trace_file trace_;
    reduce::cursor cursor_ = trace_.follow();
    std::uint64_t read_ = 0;
    tr::loss_counts lost_;
};

/// What the writers saw, by what became of the record.
struct written {
    std::atomic<std::uint64_t> kept{0};
    std::atomic<std::uint64_t> refused{0};
    std::atomic<std::uint64_t> nested{0};

    void must_be(const follower& seen, const char* when) const {
        BOOST_TEST_INFO_SCOPE(when);
        const auto& lost = seen.lost();
        BOOST_TEST(lost[loss_cause::refused] == refused.load());
        BOOST_TEST(lost[loss_cause::nested] == nested.load());
        BOOST_TEST(lost[loss_cause::too_long] == 0U);
        BOOST_TEST(lost[loss_cause::abandoned] == 0U);
        BOOST_TEST(lost[loss_cause::damaged] == 0U);
        BOOST_TEST(seen.read() + lost[loss_cause::overwritten] + lost[loss_cause::overrun] ==
                   kept.load());
    }
};

/// A few records, each alone or while others are open, up to one too many.
void write(tr::recorder& recorder, std::uint64_t who, std::uint64_t records, written& out) {
    std::mt19937_64 random(who);
    for (std::uint64_t n = 0; n < records; ++n) {
        if (random() % 32 != 0) {
            ++(test::put(recorder, who, n) ? out.kept : out.refused);
            continue;
        }
        std::vector<tr::recorder::reservation> open;
        bool all = true;
        for (std::uint64_t depth = 0; depth < 4 && all; ++depth) {
            open.push_back(recorder.reserve<test::numbered>(who, n));
            all = static_cast<bool>(open.back());
            ++(all ? out.kept : out.refused);
        }
        if (all) {
            // Boost.Test knows one thread: a record that is accepted makes the account wrong.
            if (!test::put(recorder, who, n)) ++out.nested;
        }
        for (auto& each : open) {
            if (each) each.commit();
        }
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE(whoever_follows_has_the_recorder_s_account_whatever_is_lost) {
    const std::uint64_t rounds = test::repeated(24, 8);
    std::uint64_t without_lane = 0;
    for (std::uint64_t round = 0; round < rounds; ++round) {
        std::mt19937_64 random(round);
        constexpr full_mode modes[] = {full_mode::overwrite_oldest, full_mode::discard_newest,
                                       full_mode::block, full_mode::extend_then_discard,
                                       full_mode::extend_then_overwrite};
        const test::folder folder;
        tr::recorder_options options{.file = round % 2 == 0 ? "" : folder / "a.trace",
                                     .size = (8 + random() % 120) * 512,
                                     .step = 4 * 512,
                                     .sub_buffer_bytes = 512};
        options.full = modes[round / 2 % std::size(modes)];
        options.block_for = std::chrono::microseconds{100};
        options.lanes = static_cast<std::uint32_t>(1 + random() % 24);
        BOOST_TEST_INFO_SCOPE("round " << round << ", " << options.lanes << " lanes, mode "
                                       << static_cast<int>(options.full));
        tr::recorder recorder(options);
        std::optional<follower> by_name;
        if (!options.file.empty())
            by_name.emplace(reduce::trace_file::of_source(reduce::source::adopt(
                ::open(options.file.c_str(), O_RDONLY | O_CLOEXEC), "a copy")));
        follower seen(trace_of(recorder));
        written out;
        const std::uint64_t threads = 4 + random() % 40;
        const std::uint64_t records = test::scaled(400, 100);
        std::atomic<std::uint64_t> running{threads};
        std::latch all_there(static_cast<std::ptrdiff_t>(threads));
        std::vector<std::thread> all;
        for (std::uint64_t who = 0; who < threads; ++who) {
            all.emplace_back([&, who] {
                write(recorder, who, records, out);
                if (who % 2 == 0) all_there.count_down();
                if (who % 2 != 0) all_there.arrive_and_wait();
                write(recorder, who, records / 4, out);
                --running;
            });
        }
        while (running.load() != 0) {
            seen.pull();
            if (by_name) by_name->pull();
        }
        for (auto& each : all) each.join();
        // Nobody records any more. Everything counted is reported without an end of following,
        // except for records that were overwritten unread.
        for (int looks = 0; looks < 3; ++looks) seen.pull();
        BOOST_TEST(seen.lost()[loss_cause::refused] == out.refused.load());
        seen.stop();
        out.must_be(seen, "from memory");
        if (by_name) {
            by_name->stop();
            out.must_be(*by_name, "from the file");
        }
        const auto after = test::account_of(recorder);
        BOOST_TEST(after.lost()[loss_cause::refused] == out.refused.load());
        BOOST_TEST(after.read() + after.lost()[loss_cause::overwritten] == out.kept.load());
        without_lane += recorder.statistics().refused_without_lane;
    }
    BOOST_TEST(without_lane > 0U);
}

BOOST_AUTO_TEST_CASE(records_lost_without_a_lane_are_reported_while_they_are_lost) {
    tr::recorder recorder({.size = 64 * 512, .sub_buffer_bytes = 512, .lanes = 1});
    BOOST_REQUIRE(test::put(recorder, 1, 0));
    follower seen(trace_of(recorder));
    seen.pull();
    for (std::uint64_t n = 1; n <= 3; ++n) {
        std::thread([&] { BOOST_TEST(!test::put(recorder, 2, n)); }).join();
        seen.pull();
        BOOST_TEST(seen.lost()[loss_cause::refused] == n);
    }
    seen.stop();
    BOOST_TEST(seen.read() == 1U);
    BOOST_TEST(seen.lost().total() == 3U);
}

BOOST_AUTO_TEST_CASE(a_writer_that_is_refused_for_good_is_reported_before_the_end) {
    tr::recorder recorder(
        {.size = 8 * 512, .sub_buffer_bytes = 512, .full = full_mode::discard_newest});
    follower seen(trace_of(recorder));
    std::uint64_t kept = 0;
    while (test::put(recorder, 1, kept)) ++kept;
    std::uint64_t refused = 1;
    for (int looks = 0; looks < 3; ++looks) seen.pull();
    BOOST_TEST(seen.read() == kept);
    BOOST_TEST(seen.lost()[loss_cause::refused] == refused);
    BOOST_TEST(!test::put(recorder, 1, 0));
    ++refused;
    for (int looks = 0; looks < 3; ++looks) seen.pull();
    BOOST_TEST(seen.lost()[loss_cause::refused] == refused);
    // A reader makes room, and the next sub-buffer reports them again.
    const test::hands_on trace(recorder);
    BOOST_REQUIRE(trace.free(0));
    BOOST_TEST(test::put(recorder, 1, 0));
    ++kept;
    seen.stop();
    BOOST_TEST(seen.read() == kept);
    BOOST_TEST(seen.lost().total() == refused);
}

BOOST_AUTO_TEST_CASE(a_trace_is_seen_to_grow_in_memory) {
    const test::folder folder;
    for (const std::string& file : {std::string(), folder / "a.trace"}) {
        tr::recorder recorder({.file = file,
                               .size = 8 * 512,
                               .limit = 64 * 512,
                               .step = 512,
                               .sub_buffer_bytes = 512,
                               .full = full_mode::extend_then_discard});
        const std::size_t bytes = recorder.bytes().second;
        follower seen(trace_of(recorder));
        std::uint64_t kept = 0;
        for (; test::put(recorder, 1, kept); ++kept) {
            if (kept % 10 == 0) seen.pull();
        }
        for (int looks = 0; looks < 3; ++looks) seen.pull();
        BOOST_TEST(recorder.bytes().second == bytes + 56 * 512);
        BOOST_TEST(seen.read() == kept);
        BOOST_TEST(seen.lost()[loss_cause::refused] == 1U);
        seen.stop();
        BOOST_TEST(seen.read() == kept);
        BOOST_TEST(seen.lost().total() == 1U);
    }
}

BOOST_AUTO_TEST_CASE(a_copy_of_a_trace_does_not_grow) {
    tr::recorder recorder({.size = 8 * 512,
                           .limit = 64 * 512,
                           .step = 512,
                           .sub_buffer_bytes = 512,
                           .full = full_mode::extend_then_discard});
    BOOST_REQUIRE(test::put(recorder, 1, 0));
    const auto [data, size] = recorder.bytes();
    std::vector<std::uint64_t> words(size / 8);
    std::memcpy(words.data(), data, size);
    const auto copy = reduce::trace_file::from(std::as_bytes(std::span(words)));
    while (recorder.bytes().second == size) BOOST_REQUIRE(test::put(recorder, 1, 1));
    BOOST_TEST(copy.about().bytes().size() == size);
    BOOST_TEST(copy.about().ring().capacity == 8U);
    BOOST_TEST(copy.damages().size() == 0U);
}

BOOST_AUTO_TEST_CASE(the_message_of_a_loss_without_a_lane_recommends_the_options) {
    tr::recorder recorder({.size = 64 * 512, .sub_buffer_bytes = 512, .lanes = 1});
    BOOST_REQUIRE(test::put(recorder, 1, 0));
    std::thread([&] { BOOST_TEST(!test::put(recorder, 2, 0)); }).join();
    const auto trace = trace_of(recorder);
    tr::exporter::text_writer writer(trace.time());
    tr::exporter::text_buffer out;
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        if (std::holds_alternative<reduce::loss_item>(*item)) writer.append(out, *item);
    }
    const std::string text(out.view());
    const std::string lanes = std::to_string(recorder.statistics().recommended_lanes);
    BOOST_TEST(text.find("1 record lost in no listed lane, at an unknown time: refused: for ") !=
               std::string::npos);
    BOOST_TEST(text.find(" writers at once, set recorder_options::lanes to at least " + lanes) !=
               std::string::npos);
    BOOST_TEST(trace.about().ring().advice(trace.about().plan()).find("size") ==
               std::string::npos);  // it is large enough
}

BOOST_AUTO_TEST_CASE(options_are_recommended_only_if_they_would_have_helped) {
    using tr::layout::room_for;
    static_assert(room_for(~0U, 4096, false).bytes == std::uint64_t{1} << 46);
    static_assert(room_for(~0U, 4096, false).lanes > ~0U);
    for (const std::uint32_t writers : {1U, 2U, 3U, 4U, 6U, 7U, 8U, 96U, 97U, 300U, 1536U, 5000U}) {
        for (const bool is_quota : {false, true}) {
            const auto enough = room_for(writers, 4096, is_quota);
            const std::uint64_t held = enough.bytes / 4096 / 2;
            BOOST_TEST(held - tr::layout::lent_of_held(held, is_quota) >= writers);
            const auto own = [](std::uint64_t lanes) {
                return lanes - tr::layout::lent_of_lanes(static_cast<std::uint32_t>(lanes));
            };
            BOOST_TEST(own(enough.lanes) >= writers);
            BOOST_TEST(own(enough.lanes - 1) < writers);
            const std::uint64_t less = held / 2;
            BOOST_TEST((less < 4 || less - tr::layout::lent_of_held(less, is_quota) < writers));
        }
    }
    // A full ring that refuses records is not short of lanes.
    tr::recorder recorder(
        {.size = 8 * 512, .sub_buffer_bytes = 512, .full = full_mode::discard_newest});
    while (test::put(recorder, 1, 0)) {
    }
    BOOST_TEST(recorder.statistics().writers == 0U);
    BOOST_TEST(trace_of(recorder).about().ring().advice(trace_of(recorder).about().plan()) == "");
}

BOOST_AUTO_TEST_SUITE_END()
