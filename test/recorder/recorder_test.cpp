// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// What one recorder writes, read back from its memory by the tests' own reader: fields, spans,
/// reservations, records inside records, gates, totals, snapshots.

#include <boost/test/unit_test.hpp>

#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include <recorder/scratch.hpp>
#include <recorder/trace_reader.hpp>

namespace recorder {

namespace tr = trace_ring;

namespace {

enum class color : std::uint8_t { red, green, blue };
struct celsius {
    double degrees;
};
struct number : tr::event<"number", tr::field<"n", std::uint64_t>> {};
/// A value whose conversion records, too.
struct chatty {
    tr::recorder* to;
    std::uint64_t value;
};

}  // namespace
}  // namespace recorder

template <>
struct trace_ring::as_field<::recorder::celsius> {
    using type = float;
    static type convert(const ::recorder::celsius& value) noexcept {
        return static_cast<float>(value.degrees);
    }
};
template <>
struct trace_ring::as_field<::recorder::chatty> {
    using type = std::uint64_t;
    static type convert(const ::recorder::chatty& value) noexcept {
        value.to->record<::recorder::number>(value.value);
        return value.value;
    }
};

BOOST_AUTO_TEST_SUITE(recorder)

namespace {

struct empty : tr::event<"empty"> {};
struct everything
    : tr::event<"everything", tr::field<"u8", std::uint8_t>, tr::field<"i64", std::int64_t>,
                tr::field<"u16", std::uint16_t>, tr::field<"f", float>, tr::field<"d", double>,
                tr::field<"b", bool>, tr::field<"c", char>, tr::field<"color", color>,
                tr::field<"at", const void*>, tr::field<"three", std::array<std::uint32_t, 3>>,
                tr::field<"t", celsius>, tr::field<"s", std::string_view>,
                tr::field<"v", std::span<const std::int16_t>>> {};
struct said : tr::event<"said", tr::field<"text", std::string_view>> {};
struct huge : tr::event<"huge", tr::field<"a", std::array<std::uint64_t, 60>>> {};
struct request : tr::span<"request", tr::field<"url", std::string_view>> {};
struct depth : tr::counter<"queue.depth", tr::field<"value", std::int64_t>> {};
struct queue_full : tr::event<"queue.full"> {};
struct totalled : tr::event<"totalled", tr::field<"n", std::uint32_t>> {
    static constexpr bool counted = true;
};

struct chat : tr::event<"chat", tr::field<"v", chatty>> {};

tr::recorder_options in_memory(std::uint64_t size = 1 << 20) {
    return {.size = size};
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_type_of_field_comes_back_as_it_was_given) {
    tr::recorder recorder(in_memory());
    const std::vector<std::int16_t> some{-1, 2, -3};
    const std::array<std::uint32_t, 3> three{1, 2, 0xFFFFFFFF};
    BOOST_TEST(recorder.record<everything>(
        std::uint8_t{200}, std::int64_t{-5}, std::uint16_t{65535}, 1.5F, -2.25, true, 'x',
        color::blue, static_cast<const void*>(&some), three, celsius{36.5}, std::string("hello"),
        std::span<const std::int16_t>(some)));
    test::trace_view view(recorder.bytes());
    const auto type = view.type("everything");
    BOOST_REQUIRE(type.fields.size() == 13U);
    const auto offset = [&](const char* name) -> std::size_t {
        for (const auto& f : type.fields) {
            if (f.name == name) return f.offset;
        }
        throw std::runtime_error(name);
    };
    const auto records = view.records_of("everything");
    BOOST_REQUIRE(records.size() == 1U);
    const auto& r = records[0];
    BOOST_TEST(test::value_at<std::uint8_t>(r, offset("u8")) == 200);
    BOOST_TEST(test::value_at<std::int64_t>(r, offset("i64")) == -5);
    BOOST_TEST(test::value_at<std::uint16_t>(r, offset("u16")) == 65535);
    BOOST_TEST(test::value_at<float>(r, offset("f")) == 1.5F);
    BOOST_TEST(test::value_at<double>(r, offset("d")) == -2.25);
    BOOST_TEST(test::value_at<std::uint8_t>(r, offset("b")) == 1);
    BOOST_TEST(test::value_at<char>(r, offset("c")) == 'x');
    BOOST_TEST(test::value_at<std::uint8_t>(r, offset("color")) == 2);
    BOOST_TEST(test::value_at<std::uint64_t>(r, offset("at")) ==
               reinterpret_cast<std::uintptr_t>(&some));
    BOOST_TEST(test::value_at<std::uint32_t>(r, offset("three") + 8) == 0xFFFFFFFFU);
    BOOST_TEST(test::value_at<float>(r, offset("t")) == 36.5F);
    BOOST_TEST(test::value_at<std::uint16_t>(r, offset("s")) == 5);
    BOOST_TEST(test::value_at<std::uint16_t>(r, offset("v")) == 6);
    BOOST_TEST(test::bytes_at(r, type.fixed_bytes, 5) == "hello");
    BOOST_TEST(test::value_at<std::int16_t>(r, type.fixed_bytes + 8 + 4) == -3);
    BOOST_TEST(r.flags() == 0U);
}

// The same on every machine: compared with numbers, not with what this machine computes.
BOOST_AUTO_TEST_CASE(the_layout_of_an_event_is_the_same_for_both_word_sizes) {
    tr::recorder recorder(in_memory());
    test::trace_view view(recorder.bytes());
    const auto type = view.type("everything");
    const std::vector<std::pair<std::string, unsigned>> expected{
        {"u8", 0},     {"i64", 8}, {"u16", 16},   {"f", 20}, {"d", 24}, {"b", 32}, {"c", 33},
        {"color", 34}, {"at", 40}, {"three", 48}, {"t", 60}, {"s", 64}, {"v", 66}};
    BOOST_REQUIRE(type.fields.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
        BOOST_TEST(type.fields[i].name == expected[i].first);
        BOOST_TEST(type.fields[i].offset == expected[i].second);
    }
    BOOST_TEST(type.fixed_bytes == 72U);
    BOOST_TEST(view.plan().ring == 4096U);
    BOOST_TEST(view.header().clocks_offset.load(tr::relaxed) == 8192U);
}

BOOST_AUTO_TEST_CASE(strings_of_every_length_up_to_the_longest_are_whole_and_longer_ones_are_cut) {
    tr::recorder recorder({.size = 1 << 20, .sub_buffer_bytes = 512});
    constexpr std::size_t longest = 512 - 80 - 16;  // room for the length's word
    std::string text;
    for (std::size_t n = 0; n <= longest + 8; ++n) {
        BOOST_REQUIRE(recorder.record<said>(text));
        text += static_cast<char>('a' + n % 26);
    }
    test::trace_view view(recorder.bytes());
    const auto records = view.records_of("said");
    BOOST_REQUIRE(records.size() == longest + 9);
    for (std::size_t n = 0; n < records.size(); ++n) {
        const auto& r = records[n];
        const auto word = test::value_at<std::uint16_t>(r, 0);
        const std::size_t length = std::min(n, longest);
        BOOST_REQUIRE((word & tr::variable_length_mask) == length);
        BOOST_REQUIRE(((word & tr::variable_cut_bit) != 0) == (n > longest));
        BOOST_REQUIRE(((r.flags() & tr::record_word::cut) != 0) == (n > longest));
        BOOST_REQUIRE(test::bytes_at(r, 8, length) == text.substr(0, length));
    }
}

BOOST_AUTO_TEST_CASE(a_fixed_event_longer_than_a_sub_buffer_is_counted_as_too_long) {
    tr::recorder recorder({.size = 1 << 16, .sub_buffer_bytes = 512});
    BOOST_TEST(!recorder.record<huge>(std::array<std::uint64_t, 60>{}));
    BOOST_TEST(recorder.record<number>(std::uint64_t{1}));
    BOOST_TEST(!recorder.record<huge>(std::array<std::uint64_t, 60>{}));
    BOOST_TEST(recorder.record<number>(std::uint64_t{2}));
    test::trace_view view(recorder.bytes());
    BOOST_TEST(view.records_of("number").size() == 2U);
    BOOST_REQUIRE(view.lanes().size() == 1U);
    BOOST_TEST(view.lanes()[0].too_long == 2U);
    BOOST_TEST(view.sub_buffers().at(0).head.too_long == 1U);  // the first had no sub-buffer yet
    BOOST_TEST((!recorder.reserve<huge>(std::array<std::uint64_t, 60>{})));
}

BOOST_AUTO_TEST_CASE(records_fill_sub_buffers_to_the_last_byte) {
    tr::recorder recorder({.size = 1 << 16, .sub_buffer_bytes = 512});
    for (int i = 0; i < 200; ++i) BOOST_REQUIRE(recorder.record<empty>());
    test::trace_view view(recorder.bytes());
    const auto subs = view.sub_buffers();
    BOOST_REQUIRE(subs.size() >= 3U);
    BOOST_TEST(subs[0].head.bytes >= 512U - 16U);
    std::uint64_t next = 0;
    for (const auto& sub : subs) {
        BOOST_TEST(sub.head.first_position == next);
        next += sub.head.records;
    }
    BOOST_TEST(next == 200U);
    BOOST_TEST(subs[1].head.previous == subs[0].head.state.pos);
}

BOOST_AUTO_TEST_CASE(a_span_begins_with_its_fields_and_ends_without) {
    tr::recorder recorder(in_memory());
    {
        const auto outer = recorder.scope<request>("/outer");
        auto inner = recorder.scope<request>("/inner");
        const auto moved = std::move(inner);
        recorder.record<depth>(-3);
    }
    test::trace_view view(recorder.bytes());
    BOOST_TEST(view.type("request").kind == static_cast<std::uint8_t>(tr::event_kind::span));
    BOOST_TEST(view.type("queue.depth").kind == static_cast<std::uint8_t>(tr::event_kind::counter));
    const auto all = view.records();
    BOOST_REQUIRE(all.size() == 5U);
    BOOST_TEST(all[0].flags() == tr::record_word::begin);
    BOOST_TEST(all[1].flags() == tr::record_word::begin);
    BOOST_TEST(test::bytes_at(all[1], 8, 6) == "/inner");
    BOOST_TEST(all[2].flags() == 0U);
    BOOST_TEST(test::value_at<std::int64_t>(all[2], 0) == -3);
    BOOST_TEST(all[3].flags() == tr::record_word::end);
    BOOST_TEST(all[3].payload.empty());
    BOOST_TEST(all[4].flags() == tr::record_word::end);
    BOOST_TEST(all[4].id() == all[0].id());
}

BOOST_AUTO_TEST_CASE(a_span_that_has_begun_ends_even_if_its_gate_was_shut_since) {
    // ... wherever the end falls: with room in the sub-buffer and without.
    for (int before = 0; before < 70; ++before) {
        tr::recorder recorder({.size = 1 << 16, .sub_buffer_bytes = 512});
        for (int i = 0; i < before; ++i) recorder.record<empty>();
        {
            const auto scope = recorder.scope<request>("x");
            recorder.pause();
        }
        test::trace_view view(recorder.bytes());
        const auto all = view.records_of("request");
        BOOST_REQUIRE_MESSAGE(all.size() == 2U, "after " << before << " records");
        BOOST_TEST(all[1].flags() == tr::record_word::end);
    }
}

BOOST_AUTO_TEST_CASE(a_span_that_was_not_recorded_does_not_end) {
    tr::recorder recorder(in_memory());
    recorder.pause();
    {
        const auto scope = recorder.scope<request>("x");
        recorder.resume();
    }
    test::trace_view view(recorder.bytes());
    BOOST_TEST(view.records().empty());
}

BOOST_AUTO_TEST_CASE(a_reservation_counts_once_committed_and_not_before) {
    tr::recorder recorder(in_memory());
    test::trace_view view(recorder.bytes());
    auto kept = recorder.reserve<number>(std::uint64_t{1});
    BOOST_REQUIRE(static_cast<bool>(kept));
    BOOST_TEST(view.records().empty());
    BOOST_TEST(kept.commit());
    BOOST_TEST(!kept.commit());
    BOOST_TEST(view.records().size() == 1U);
    { const auto dropped = recorder.reserve<number>(std::uint64_t{2}); }
    auto discarded = recorder.reserve<number>(std::uint64_t{3});
    discarded.discard();
    BOOST_TEST(!discarded.commit());
    BOOST_TEST(recorder.record<number>(std::uint64_t{4}));
    const auto all = view.records_of("number");
    BOOST_REQUIRE(all.size() == 2U);
    BOOST_TEST(all[0].payload[0] == 1U);
    BOOST_TEST(all[1].payload[0] == 4U);
    BOOST_TEST(view.lanes().size() == 1U);
    BOOST_TEST(view.lanes()[0].abandoned == 0U);
}

namespace {
tr::recorder::reservation make_one(tr::recorder& recorder, std::uint64_t value) {
    volatile char deep[512] = {};  // so that its frame is well below the caller's
    deep[0] = 1;
    static_cast<void>(deep);
    return recorder.reserve<number>(value);
}
}  // namespace

BOOST_AUTO_TEST_CASE(a_reservation_can_be_returned_moved_and_outlive_its_frame) {
    tr::recorder recorder(in_memory());
    auto first = make_one(recorder, 1);
    auto second = make_one(recorder, 2);
    BOOST_TEST(recorder.record<number>(std::uint64_t{3}));
    auto moved = std::move(first);
    BOOST_TEST(!static_cast<bool>(first));  // NOLINT: what a moved-from one says is the question
    BOOST_TEST(moved.commit());
    BOOST_TEST(second.commit());
    auto third = make_one(recorder, 4);
    third = make_one(recorder, 5);  // discards 4
    BOOST_TEST(third.commit());
    test::trace_view view(recorder.bytes());
    std::vector<std::uint64_t> values;
    for (const auto& r : view.records_of("number")) values.push_back(r.payload[0]);
    std::sort(values.begin(), values.end());
    BOOST_TEST(values == (std::vector<std::uint64_t>{1, 2, 3, 5}),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(records_inside_open_ones_go_to_lanes_of_their_own_four_deep) {
    tr::recorder recorder(in_memory());
    {
        auto one = recorder.reserve<number>(std::uint64_t{1});
        auto two = recorder.reserve<number>(std::uint64_t{2});
        auto three = recorder.reserve<number>(std::uint64_t{3});
        BOOST_TEST(recorder.record<number>(std::uint64_t{4}));
        auto four = recorder.reserve<number>(std::uint64_t{5});
        BOOST_REQUIRE(static_cast<bool>(four));
        BOOST_TEST(!recorder.record<number>(std::uint64_t{6}));
        BOOST_TEST(!recorder.record<number>(std::uint64_t{7}));
        BOOST_TEST(one.commit());
        BOOST_TEST(two.commit());
        BOOST_TEST(three.commit());
        BOOST_TEST(four.commit());
    }
    BOOST_TEST(recorder.record<number>(std::uint64_t{8}));
    test::trace_view view(recorder.bytes());
    BOOST_TEST(view.records_of("number").size() == 6U);
    const auto lanes = view.lanes();
    BOOST_REQUIRE(lanes.size() == 4U);
    std::uint64_t nested = 0;
    for (const auto& lane : lanes) nested += lane.nested;
    BOOST_TEST(nested == 2U);
    for (std::uint32_t d = 0; d < 4; ++d) BOOST_TEST(lanes[d].depth == d);
}

BOOST_AUTO_TEST_CASE(a_conversion_that_records_itself_is_recorded_beside) {
    tr::recorder recorder(in_memory());
    BOOST_TEST(recorder.record<chat>(chatty{&recorder, 5}));
    test::trace_view view(recorder.bytes());
    BOOST_TEST(view.records_of("number").size() == 1U);
    BOOST_TEST(view.records_of("chat").size() == 1U);
    BOOST_TEST(view.lanes().size() == 1U);  // converted before the record is opened
}

BOOST_AUTO_TEST_CASE(gates_shut_one_event_all_that_match_or_everything) {
    tr::recorder recorder(in_memory());
    const auto state = [&] {
        return std::string{recorder.record<depth>(1) ? 'd' : '-',
                           recorder.record<queue_full>() ? 'q' : '-',
                           recorder.record<number>(std::uint64_t{1}) ? 'n' : '-'};
    };
    BOOST_TEST(state() == "dqn");
    BOOST_TEST(recorder.enable<depth>(false) == 1U);
    BOOST_TEST(state() == "-qn");
    BOOST_TEST(recorder.enable("queue.*", false) == 2U);
    BOOST_TEST(state() == "--n");
    recorder.pause();
    BOOST_TEST(state() == "---");
    BOOST_TEST(recorder.enable("*", true) > 2U);
    BOOST_TEST(state() == "---");  // one reason lifted, the other not
    recorder.resume();
    BOOST_TEST(state() == "dqn");
    BOOST_TEST(recorder.enable("nothing like it", false) == 0U);
    BOOST_TEST(!recorder.reserve<number>(std::uint64_t{1}) == false);
    recorder.pause();
    BOOST_TEST(!recorder.reserve<number>(std::uint64_t{1}));
    // A shut gate is no loss.
    test::trace_view view(recorder.bytes());
    for (const auto& lane : view.lanes()) BOOST_TEST(lane.refused == 0U);
    BOOST_TEST(recorder.statistics().refused_without_lane == 0U);
}

BOOST_AUTO_TEST_CASE(a_recorder_can_begin_paused) {
    tr::recorder recorder({.size = 1 << 16, .paused = true});
    BOOST_TEST(!recorder.record<empty>());
    recorder.resume();
    BOOST_TEST(recorder.record<empty>());
}

BOOST_AUTO_TEST_CASE(a_total_survives_the_wrap_exactly) {
    tr::recorder recorder({.size = 8 * 512, .sub_buffer_bytes = 512});
    constexpr std::uint32_t count = 10'000;
    for (std::uint32_t i = 0; i < count; ++i) {
        BOOST_REQUIRE(recorder.record<totalled>(i));
        recorder.record<number>(std::uint64_t{i});
    }
    auto one = recorder.reserve<totalled>(count);
    BOOST_TEST(one.commit());
    { const auto not_counted = recorder.reserve<totalled>(count + 1); }
    test::trace_view view(recorder.bytes());
    const auto type = view.type("totalled");
    BOOST_REQUIRE(type.total != 0);
    BOOST_TEST(view.total(type.total - 1U) == count + 1U);
    BOOST_TEST(view.type("number").total == 0);
    BOOST_TEST(view.records_of("totalled").size() < 200U);
}

BOOST_AUTO_TEST_CASE(read_and_overwritten_make_what_was_written) {
    tr::recorder recorder({.size = 8 * 512, .sub_buffer_bytes = 512});
    constexpr std::uint64_t count = 5000;
    for (std::uint64_t i = 0; i < count; ++i) BOOST_REQUIRE(recorder.record<number>(i));
    test::trace_view view(recorder.bytes());
    const auto all = view.records_of("number");
    BOOST_TEST(all.size() + recorder.statistics().overwritten == count);
    for (const auto& r : all) BOOST_REQUIRE(r.payload[0] == r.position);
    BOOST_TEST(all.back().payload[0] == count - 1);
}

BOOST_AUTO_TEST_CASE(a_flushed_thread_goes_on_in_a_new_lane) {
    tr::recorder recorder(in_memory());
    recorder.record<number>(std::uint64_t{1});
    recorder.flush_thread();
    BOOST_TEST(recorder.statistics().held == 0U);
    recorder.flush_thread();
    recorder.record<number>(std::uint64_t{2});
    test::trace_view view(recorder.bytes());
    const auto lanes = view.lanes();
    BOOST_REQUIRE(lanes.size() == 2U);
    BOOST_TEST(!lanes[0].live());
    BOOST_TEST(lanes[0].written == 1U);
    BOOST_TEST(lanes[1].live());
    BOOST_TEST(view.records_of("number").size() == 2U);
}

BOOST_AUTO_TEST_CASE(a_flush_leaves_an_open_reservation_its_place) {
    tr::recorder recorder({.size = 8 * 512, .sub_buffer_bytes = 512});
    test::trace_view view(recorder.bytes());
    auto open = recorder.reserve<number>(std::uint64_t{1});
    recorder.flush_thread();
    // Enough for the ring to come round: what the reservation points at must not be given away.
    for (std::uint64_t i = 0; i < 1000; ++i) recorder.record<said>("0123456789");
    BOOST_TEST(open.commit());
    recorder.flush_thread();
    BOOST_TEST(recorder.statistics().held == 0U);
    BOOST_TEST(view.records_of("number").size() == 1U);
}

BOOST_AUTO_TEST_CASE(clock_snapshots_are_there_and_name_the_process) {
    tr::recorder recorder(in_memory());
    for (int i = 0; i < 1000; ++i) recorder.record<number>(std::uint64_t{1});
    test::trace_view view(recorder.bytes());
    const auto& first = *reinterpret_cast<const tr::layout::clock_entry*>(recorder.bytes().first +
                                                                          view.plan().clocks);
    BOOST_TEST(first.sequence.load(tr::relaxed) == 1U);
    BOOST_TEST(first.monotonic.load(tr::relaxed) > 0U);
    BOOST_TEST(first.realtime.load(tr::relaxed) > 1'600'000'000'000'000'000U);
    BOOST_TEST(view.ring().clock_cursor.load(tr::relaxed) >= 1U);
    const auto processes = view.processes();
    BOOST_REQUIRE(processes.size() == 1U);
    BOOST_TEST(processes[0].pid == static_cast<std::uint32_t>(::getpid()));
    BOOST_TEST(processes[0].word == sizeof(void*));
}

BOOST_AUTO_TEST_CASE(a_snapshot_is_a_trace_of_its_own_with_the_same_records) {
    const test::folder folder;
    tr::recorder recorder(in_memory());
    for (std::uint64_t i = 0; i < 1000; ++i) recorder.record<number>(i);
    BOOST_TEST(recorder.snapshot((folder / "copy").c_str()) == 0);
    for (std::uint64_t i = 0; i < 10; ++i) recorder.record<number>(i);
    const test::trace_copy copy(folder / "copy");
    auto view = copy.view();
    const auto all = view.records_of("number");
    BOOST_REQUIRE(all.size() == 1000U);
    for (std::size_t i = 0; i < 1000; ++i) BOOST_REQUIRE(all[i].payload[0] == i);
    for (const auto& sub : view.sub_buffers())
        BOOST_TEST(sub.head.state.state == static_cast<unsigned>(tr::sub_buffer_state::closed));
    struct ::stat status {};
    BOOST_REQUIRE(::stat((folder / "copy").c_str(), &status) == 0);
    BOOST_TEST((status.st_mode & 0777) == 0600);
    // A name that is taken is not overwritten, and leaves nothing behind.
    BOOST_TEST(recorder.snapshot((folder / "copy").c_str()) == EEXIST);
    BOOST_TEST(recorder.snapshot((folder / "no/such/folder").c_str()) == ENOENT);
    BOOST_TEST(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

BOOST_AUTO_TEST_CASE(no_file_that_others_leave_is_in_a_snapshots_way) {
    const test::folder folder;
    const std::string copy = folder / "copy.trace";
    std::ofstream(copy + ".part") << "planted";
    std::filesystem::create_symlink(folder / "elsewhere", copy + ".part.0000000000000000");
    tr::recorder recorder{{.size = 1 << 16}};
    recorder.record<number>(std::uint64_t{1});
    BOOST_TEST(recorder.snapshot(copy.c_str()) == 0);
    BOOST_TEST(recorder.snapshot(copy.c_str()) == EEXIST);
    BOOST_TEST(test::trace_copy(copy).view().records_of("number").size() == 1U);
    // The copy, and what was planted.
    BOOST_TEST(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 3);
}

BOOST_AUTO_TEST_CASE(snapshots_are_consistent_while_four_threads_write) {
    const test::folder folder;
    tr::recorder recorder({.size = 64 * 512, .sub_buffer_bytes = 512});
    std::atomic<bool> stop{false};
    std::vector<std::thread> writers;
    for (unsigned t = 0; t < 4; ++t) {
        writers.emplace_back([&] {
            for (std::uint64_t i = 0; !stop.load(); ++i) recorder.record<number>(i);
        });
    }
    const int rounds = static_cast<int>(test::repeated(40, 4));
    std::uint64_t records = 0;
    // A few copies may hold nothing: the first records were overwritten in between.
    for (int i = 0; i < rounds || (records == 0 && i < 1000); ++i) {
        const std::string name = folder / std::to_string(i);
        BOOST_REQUIRE(recorder.snapshot(name.c_str()) == 0);
        const test::trace_copy copy(name);
        auto view = copy.view();
        // by_lane() has checked times and positions; the payload is the position in each lane.
        for (const auto& [lane, all] : view.by_lane()) {
            for (const auto& r : all) BOOST_REQUIRE(r.payload[0] == r.position);
            records += all.size();
        }
        // The table's entry of a lane was written before its sub-buffers were copied. The newest of
        // them may have been overwritten since: then it is reported as lost.
        std::map<std::uint32_t, std::uint64_t> accounted;
        std::map<std::uint32_t, std::uint64_t> end;
        const auto trace = tr::reduce::trace_file::open(name);
        for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
            if (const auto* const record = std::get_if<tr::reduce::record_view>(item)) {
                ++accounted[record->lane().number];
            } else if (const auto* const loss = std::get_if<tr::reduce::loss_item>(item)) {
                BOOST_REQUIRE(loss->lane != nullptr);
                BOOST_REQUIRE((loss->cause == tr::loss_cause::overwritten ||
                               loss->cause == tr::loss_cause::overrun));
                accounted[loss->lane->number] += loss->count;
            }
        }
        for (const auto& sub : view.sub_buffers()) {
            std::uint64_t& last = end[sub.head.lane];
            last = std::max(last, sub.head.first_position + sub.head.records);
        }
        for (const auto& lane : view.lanes()) {
            BOOST_TEST(accounted[lane.number] == std::max(end[lane.number], lane.written),
                       "lane " << lane.number << ": accounted " << accounted[lane.number] << " end "
                               << end[lane.number] << " written " << lane.written);
        }
    }
    stop = true;
    for (auto& w : writers) w.join();
    BOOST_TEST(records > 0U);
}

BOOST_AUTO_TEST_CASE(two_recorders_keep_their_records_apart) {
    tr::recorder first(in_memory());
    tr::recorder second(in_memory());
    for (std::uint64_t i = 0; i < 100; ++i) {
        first.record<number>(i);
        if (i % 2 == 0) second.record<number>(i);
    }
    BOOST_TEST(test::trace_view(first.bytes()).records_of("number").size() == 100U);
    BOOST_TEST(test::trace_view(second.bytes()).records_of("number").size() == 50U);
}

BOOST_AUTO_TEST_CASE(the_names_of_thread_process_and_event_are_in_the_trace) {
    tr::recorder recorder(in_memory());
    std::thread([&] {
        ::pthread_setname_np(::pthread_self(), "a worker");
        recorder.record<number>(std::uint64_t{1});
    }).join();
    test::trace_view view(recorder.bytes());
    BOOST_REQUIRE(view.lanes().size() == 1U);
    BOOST_TEST(view.lanes()[0].name == "a worker");
    BOOST_TEST(!view.lanes()[0].live());
    BOOST_TEST(view.lanes()[0].written == 1U);
    BOOST_TEST(view.processes()[0].name == program_invocation_short_name);
}

BOOST_AUTO_TEST_SUITE_END()
