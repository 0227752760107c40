// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Bad input: for any contents of a file, reading it ends, reports nothing that is detectably
/// wrong, and touches nothing outside. Run with the sanitizers, this is a fuzz test with a fixed
/// seed.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <proof.hpp>
#include <reduce/everything.hpp>
#include <reduce/file_builder.hpp>
#include <reduce/named_values.hpp>
#include <reduce/read_all.hpp>
#include <reduce/scratch_file.hpp>

BOOST_AUTO_TEST_SUITE(damage)

using namespace trace_ring_test;
namespace reduce = trace_ring::reduce;

namespace {

/// True if reading reported that something is wrong: by an exception, or by items.
bool tells(const file_builder& b) {
    try {
        auto file = reduce::trace_file::from(b.bytes());
        return read_in_every_way(file, b.bytes().size()).damages != 0;
    } catch (const trace_ring::format_error& error) {
        BOOST_TEST(error.offset() <= b.bytes().size());
        BOOST_TEST(!error.cause().empty());
        return true;
    }
}

std::string message_of(const file_builder& b) {
    try {
        (void)reduce::trace_file::from(b.bytes(), "it");
    } catch (const trace_ring::format_error& error) {
        return error.what();
    }
    return {};
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_sound_file_is_read_without_a_complaint) {
    const auto b = everything();
    auto file = reduce::trace_file::from(b.bytes());
    const auto sum = read_in_every_way(file, b.bytes().size());
    BOOST_TEST(sum.records == 86U);
    BOOST_TEST(sum.damages == 0U);
}

BOOST_AUTO_TEST_CASE(what_is_no_trace_file_is_refused_with_file_and_offset) {
    scratch_file scratch;
    const auto open = [&](const std::string& path) -> std::string {
        try {
            (void)reduce::trace_file::open(path);
        } catch (const trace_ring::format_error& error) {
            BOOST_TEST(error.file() == path);
            return std::string(error.what()).substr(path.size());
        }
        return {};
    };
    scratch.write("");
    BOOST_TEST(open(scratch.path()) == ": offset 0: the file is empty");
    scratch.write("tr");
    BOOST_TEST(open(scratch.path()) == ": offset 0: too short to be a trace file");
    scratch.write(std::string(100'000, 'x'));
    BOOST_TEST(open(scratch.path()) == ": offset 0: not a trace file");
    scratch.write(std::string(100'000, '\0'));
    BOOST_TEST(open(scratch.path()) == ": offset 0: not a trace file");
    BOOST_TEST(open("/") == ": offset 0: a directory");
    BOOST_TEST(open("/dev/null") == ": offset 0: not a regular file");
    BOOST_CHECK_THROW((void)reduce::trace_file::open(scratch.path() + ".none"), std::system_error);
    scratch.remove();
    BOOST_REQUIRE(::mkfifo(scratch.path().c_str(), 0600) == 0);
    BOOST_TEST(open(scratch.path()) ==
               ": offset 0: a pipe, and not a regular file");  // and does not wait
}

BOOST_AUTO_TEST_CASE(another_version_and_another_byte_order_are_named) {
    auto b = everything();
    b.put(8, layout::file_version + 1, 4);
    BOOST_TEST(message_of(b) == "it: offset 8: a trace file of another version");
    b = everything();
    std::reverse(b.bytes().begin(), b.bytes().begin() + 8);
    BOOST_TEST(message_of(b) == "it: offset 0: a trace file of the other byte order");
}

BOOST_AUTO_TEST_CASE(memory_that_is_not_aligned_is_refused) {
    const auto b = everything();
    BOOST_CHECK_THROW((void)reduce::trace_file::from(b.bytes().subspan(4)),
                      trace_ring::format_error);
}

BOOST_AUTO_TEST_CASE(a_file_cut_anywhere_is_read_as_far_as_it_goes,
                     *boost::unit_test::label("one_thread")) {
    const auto whole = everything();
    const auto bytes = whole.bytes();
    const std::uint64_t records = 86;
    std::uint64_t most = 0;
    for (std::size_t length = 0; length < bytes.size(); length += 64) {
        try {
            auto file = reduce::trace_file::from(bytes.first(length));
            const auto sum = read_in_every_way(file, bytes.size());
            BOOST_TEST(sum.damages != 0, "cut at " << length);
            BOOST_TEST(sum.records >= most);  // what was there before is still there
            BOOST_TEST(sum.records <= records);
            most = std::max(most, sum.records);
        } catch (const trace_ring::format_error& error) {
            BOOST_TEST(length < whole.plan().sub_buffers);
            BOOST_TEST(error.offset() <= length);
        }
    }
    BOOST_TEST(most > 0U);
}

BOOST_AUTO_TEST_CASE(a_sub_buffer_cut_in_two_gives_its_first_half) {
    const auto whole = everything();
    scratch_file scratch;
    // The first lane's first sub-buffer, up to its third record.
    const std::uint64_t cut = whole.slot_at(1) + 64 + 3 * 24 + 8;
    whole.save(scratch.path(), static_cast<std::size_t>(cut));
    auto file = reduce::trace_file::open(scratch.path());
    const auto sum = read_in_every_way(file, cut);
    BOOST_TEST(sum.records == 3U);
    BOOST_TEST(sum.damages != 0U);
    auto from_memory = reduce::trace_file::from(whole.bytes().first(static_cast<std::size_t>(cut)));
    BOOST_TEST(read_in_every_way(from_memory, cut).records == 3U);
}

BOOST_AUTO_TEST_CASE(every_word_of_the_header_may_be_wrong) {
    using h = trace_ring::layout::file_header;
    const auto sound = everything();
    // Words that a reader has no use for, or cannot know to be wrong.
    const std::size_t free[] = {
        offsetof(h, creator_word), offsetof(h, ticks_per_second), offsetof(h, ticks_per_second) + 4,
        offsetof(h, id),           offsetof(h, id) + 4,           offsetof(h, id) + 8,
        offsetof(h, id) + 12,      offsetof(h, created),          offsetof(h, created) + 4,
        offsetof(h, full),         offsetof(h, no_control),       offsetof(h, reserved2)};
    for (const std::uint32_t change : {0xFFFFFFFFU, 1U, 0x80000000U, 0x10000U}) {
        for (std::size_t at = 0; at < sizeof(h); at += 4) {
            auto b = sound;
            b.put(at, b.get(at, 4) ^ change, 4);
            const bool told = tells(b);
            const bool may_be_silent =
                std::find(std::begin(free), std::end(free), at) != std::end(free);
            // A few regions may shrink or move onto zeros without any way to detect it.
            if (!may_be_silent && change == 0xFFFFFFFFU) BOOST_TEST(told, "word at " << at);
        }
    }
}

BOOST_AUTO_TEST_CASE(every_word_of_a_sub_buffers_header_may_be_wrong,
                     *boost::unit_test::label("one_thread")) {
    const auto sound = everything();
    auto file = reduce::trace_file::from(sound.bytes());
    const auto before = read_in_every_way(file, sound.bytes().size());
    for (const std::uint64_t position : {1U, 2U, 3U, 4U, 5U}) {
        for (const std::uint32_t change : {0xFFFFFFFFU, 1U, 0x80000000U, 0x10000U}) {
            for (std::size_t at = 0; at < 64; at += 4) {
                auto b = sound;
                const std::uint64_t word = b.slot_at(position) + at;
                b.put(word, b.get(word, 4) ^ change, 4);
                auto damaged = reduce::trace_file::from(b.bytes());
                const auto sum = read_in_every_way(damaged, b.bytes().size());
                // The others are read all the same: at most one sub-buffer is lost. (A changed
                // count of records before the last makes the rest of that sub-buffer a loss.)
                BOOST_TEST(sum.records + 24 >= before.records);
                BOOST_TEST(sum.records <= before.records);
                const bool structure = at == 0 || at == 4 || at == 8 || at == 48;
                if (structure && change == 0xFFFFFFFFU) {
                    BOOST_TEST(sum.damages != 0U, "sub-buffer " << position << " word " << at);
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_sub_buffer_whose_positions_are_wrong_is_put_back_in_its_place) {
    auto b = everything();
    b.put(b.slot_at(4) + 16, 1'000'000, 8);  // the first lane's second sub-buffer
    auto file = reduce::trace_file::from(b.bytes());
    for (const bool backward : {false, true}) {
        trace_ring::position next = backward ? 59 : 0;
        bool told = false;
        reduce::filter what;
        what.lanes = {1};
        auto cursor = backward ? file.backward(what) : file.forward(what);
        while (const auto* item = cursor.next()) {
            if (const auto* record = std::get_if<reduce::record_view>(item)) {
                BOOST_TEST(record->position() == next);
                backward ? --next : ++next;
            } else if (const auto* loss = std::get_if<reduce::loss_item>(item)) {
                if (loss->cause != trace_ring::loss_cause::damaged) continue;
                told = true;
                BOOST_TEST(loss->offset == b.slot_at(4) + 16);
            }
        }
        BOOST_TEST(told);
    }
}

/// Whatever a lane's sub-buffers state, no subtraction of positions may wrap: the trace has fewer
/// than 100 records, and so no loss is of more than the stated positions allow.
BOOST_AUTO_TEST_CASE(no_loss_is_of_more_records_than_the_stated_positions_allow) {
    const auto sound = everything();
    std::vector<std::uint64_t> slots;
    for (std::uint64_t slot = 0; slot < sound.plan().sub_buffer_limit; ++slot) {
        if (sound.get(sound.slot_at(slot + 1) + 4, 4) == 1) slots.push_back(slot + 1);
    }
    BOOST_REQUIRE(slots.size() > 2);
    std::mt19937 random(1);
    std::uint64_t most = 0;
    for (int round = 0; round < 500; ++round) {
        auto b = sound;
        for (const std::uint64_t slot : slots) {
            if (random() % 2 == 0) b.put(b.slot_at(slot) + 16, random() % 70, 8);
            if (random() % 2 == 0) b.put(b.slot_at(slot) + 32, 0, 8);
        }
        auto file = reduce::trace_file::from(b.bytes());
        for (const bool backward : {false, true}) {
            auto cursor = backward ? file.backward() : file.forward();
            while (const auto* item = cursor.next()) {
                if (const auto* loss = std::get_if<reduce::loss_item>(item)) {
                    most = std::max(most, loss->count);
                }
            }
        }
    }
    BOOST_TEST(most > 0U);
    BOOST_TEST(most < 1000U);
}

BOOST_AUTO_TEST_CASE(counts_that_are_not_plausible_are_damage_and_not_losses) {
    using trace_ring::layout::lane_entry;
    using trace_ring::layout::ring_state;
    const auto sound = everything();
    const auto lost_in = [](const reduce::trace_file& file, bool backward) {
        trace_ring::loss_counts lost;
        auto cursor = backward ? file.backward() : file.forward();
        while (const auto* item = cursor.next()) {
            if (const auto* loss = std::get_if<reduce::loss_item>(item))
                lost.add(loss->cause, loss->count);
        }
        return lost;
    };
    const std::uint64_t before = lost_in(reduce::trace_file::from(sound.bytes()), false).total();
    const std::uint64_t lane = sound.lane_at(2);
    const std::uint64_t ring = sound.plan().ring;
    const std::string folded = "lanes that were given to others";
    struct count {
        std::uint64_t at;
        std::string what;
    };
    const count counts[] = {
        {lane + offsetof(lane_entry, written), "lane 2: the count of written"},
        {lane + offsetof(lane_entry, refused), "lane 2: the count of refused"},
        {lane + offsetof(lane_entry, too_long), "lane 2: the count of too long"},
        {lane + offsetof(lane_entry, nested), "lane 2: the count of nested"},
        {lane + offsetof(lane_entry, abandoned), "lane 2: the count of abandoned"},
        {ring + offsetof(ring_state, refused_without_lane),
         "records without a lane: the count of refused"},
        {ring + offsetof(ring_state, folded_written), folded + ": the count of written"},
        {ring + offsetof(ring_state, folded_refused), folded + ": the count of refused"},
        {ring + offsetof(ring_state, folded_abandoned), folded + ": the count of abandoned"},
    };
    auto all = sound;
    for (const auto& each : counts) {
        auto b = sound;
        for (auto* const file : {&b, &all}) file->put(each.at, 0x9E3779B97F4A7C15, 8);
        const auto file = reduce::trace_file::from(b.bytes());
        BOOST_REQUIRE(file.damages().size() == 1U);
        BOOST_TEST(file.damages()[0].what == each.what + " records is not plausible");
        BOOST_TEST(file.damages()[0].offset == each.at);
        const auto lost = lost_in(file, false);
        BOOST_TEST((lost == lost_in(file, true)), each.what);
        BOOST_TEST(lost.total() == before, each.what);
        // A large one may be right.
        b.put(each.at, reduce::most_records, 8);
        BOOST_TEST(reduce::trace_file::from(b.bytes()).damages().empty());
    }
    // The beginning of a lane's only sub-buffer.
    all.put(all.slot_at(3) + offsetof(trace_ring::sub_buffer_header, first_position),
            0x9E3779B97F4A7C15, 8);
    const auto file = reduce::trace_file::from(all.bytes());
    BOOST_TEST(file.damages().size() == std::size(counts));
    BOOST_TEST(lost_in(file, false).total() == before);
    BOOST_TEST((lost_in(file, false) == lost_in(file, true)));
}

BOOST_AUTO_TEST_CASE(sums_of_losses_do_not_wrap) {
    trace_ring::loss_counts sum;
    sum.add(trace_ring::loss_cause::refused, ~std::uint64_t{1});
    sum.add(trace_ring::loss_cause::refused, 5);
    BOOST_TEST(sum[trace_ring::loss_cause::refused] == ~std::uint64_t{0});
    sum.add(trace_ring::loss_cause::nested, 7);
    sum += sum;
    BOOST_TEST(sum[trace_ring::loss_cause::nested] == 14U);
    BOOST_TEST(sum.total() == ~std::uint64_t{0});
}

BOOST_AUTO_TEST_CASE(a_damaged_sub_buffer_is_named_where_its_records_would_be) {
    auto b = everything();
    b.put(b.slot_at(4), 0, 4);  // its magic
    auto file = reduce::trace_file::from(b.bytes());
    std::optional<reduce::loss_item> found;
    const std::uint64_t last_before = b.get(b.slot_at(4) + 16, 8);
    std::uint64_t records_before = 0;
    reduce::filter what;
    what.lanes = {1};
    for (auto cursor = file.forward(what); const auto* item = cursor.next();) {
        if (std::holds_alternative<reduce::record_view>(*item) && !found) ++records_before;
        const auto* loss = std::get_if<reduce::loss_item>(item);
        if (loss != nullptr && loss->cause == trace_ring::loss_cause::damaged) found = *loss;
    }
    BOOST_REQUIRE(found);
    BOOST_TEST(found->offset == b.slot_at(4));
    BOOST_TEST(found->at == last_before);
    BOOST_TEST(found->count == b.get(b.slot_at(4) + 50, 2));
    BOOST_TEST(records_before == last_before);
}

/// It was reported backward only: a sub-buffer that is open is looked at again when there are
/// others behind it, and the reading ended there.
BOOST_AUTO_TEST_CASE(a_damaged_sub_buffer_behind_an_open_one_is_named) {
    auto b = everything();
    const auto of_lane = [&](std::uint64_t slot) {
        return b.get(b.slot_at(slot) + offsetof(trace_ring::sub_buffer_header, lane), 4) == 1;
    };
    const auto position_of = [&](std::uint64_t slot) {
        const auto at = b.slot_at(slot) + offsetof(trace_ring::sub_buffer_header, state);
        return trace_ring::stamped::from(b.get(at, 8)).pos;
    };
    std::vector<std::uint64_t> slots;
    for (std::uint64_t slot = 0; slot < b.plan().sub_buffer_limit; ++slot) {
        if (position_of(slot) != 0 && of_lane(slot)) slots.push_back(slot);
    }
    std::sort(slots.begin(), slots.end(),
              [&](auto x, auto y) { return position_of(x) < position_of(y); });
    BOOST_REQUIRE(slots.size() > 2);
    const std::uint64_t last = slots.back(), open = slots[slots.size() - 2];
    b.put(b.slot_at(open) + offsetof(trace_ring::sub_buffer_header, state),
          trace_ring::state_word(position_of(open), trace_ring::sub_buffer_state::active), 8);
    b.put(b.slot_at(last) + offsetof(trace_ring::sub_buffer_header, commit), 1, 4);
    auto file = reduce::trace_file::from(b.bytes());
    for (const bool forward : {true, false}) {
        BOOST_TEST_CONTEXT((forward ? "forward" : "backward")) {
            std::vector<std::uint64_t> where;
            auto cursor = forward ? file.forward() : file.backward();
            while (const auto* item = cursor.next()) {
                const auto* loss = std::get_if<reduce::loss_item>(item);
                if (loss == nullptr || loss->cause != trace_ring::loss_cause::damaged) continue;
                where.push_back(loss->offset);
            }
            BOOST_REQUIRE(where.size() == 1);
            BOOST_TEST(where[0] ==
                       b.slot_at(last) + offsetof(trace_ring::sub_buffer_header, commit));
        }
    }
}

BOOST_AUTO_TEST_CASE(a_hostile_dictionary_is_refused_entry_by_entry) {
    const auto sound = everything();
    const std::uint64_t entry = sound.plan().dictionary + 128;  // "say"
    BOOST_REQUIRE(sound.get(entry, 4) == trace_ring::layout::type_magic);
    struct change {
        std::uint64_t at;
        std::uint64_t value;
        std::size_t size;
        std::uint64_t told_at;
    };
    const change changes[] = {
        {4, 0, 4, 4},                           // its length
        {4, 63, 4, 4},                          //
        {4, 0xFFFFFFC0, 4, 4},                  //
        {8, 4, 4, 8},                           // a process that is not there
        {12, 0, 2, 12},                         // the id of time records
        {12, 4096, 2, 12},                      //
        {14, 3, 1, 14},                         // no kind
        {15, 3, 1, 15},                         // a total beyond the columns
        {16, 0xFFFF, 2, 16},                    // fields beyond the entry
        {18, 0, 2, 18},                         // no name
        {18, 0xFFFF, 2, 18},                    //
        {20, 0xFFFFFFF8, 4, 20},                // records longer than a sub-buffer
        {20, 12, 4, 20},                        //
        {24, 1, 8, 24},                         // a flow that is no number
        {24, 1U << 4, 8, 24},                   // a flow that is no field
        {20, 8, 4, 32 + 24 + 4},                // records that end before a field does
        {32, 0, 1, 32},                         // no type
        {32, 14, 1, 32},                        //
        {33, 3, 1, 32},                         // no form
        {34, 2, 2, 34},                         // a scalar of two elements
        {36, 0xFFFF, 2, 36},                    // a field beyond the records
        {32 + 8 + 4, 3, 2, 32 + 8 + 4},         // a length word at an odd offset
        {32 + 24 + 2, 0xFFFF, 2, 32 + 24 + 4},  // an array beyond the records
        {38, 0xFFFF, 2, 38},                    // a name beyond the entry
    };
    for (const auto& change : changes) {
        auto b = sound;
        b.put(entry + change.at, change.value, change.size);
        auto file = reduce::trace_file::from(b.bytes());
        BOOST_REQUIRE(!file.damages().empty());
        BOOST_TEST(file.damages()[0].offset == entry + change.told_at, "change at " << change.at);
        // Its records are shown all the same, as bytes; the other events are as they were.
        const auto sum = read_in_every_way(file, b.bytes().size());
        BOOST_TEST(sum.records == 86U);
        std::uint64_t raw = 0;
        for (auto cursor = file.forward(); const auto* item = cursor.next();) {
            const auto* record = std::get_if<reduce::record_view>(item);
            if (record == nullptr) continue;
            if (!record->known()) {
                ++raw;
                BOOST_TEST(record->id() == 2U);
                BOOST_TEST(!record->fault().empty());
                BOOST_TEST(record->payload().size() == 40U);
            }
        }
        BOOST_TEST(raw == 20U);
    }
}

BOOST_AUTO_TEST_CASE(names_of_values_that_make_no_sense_are_left_out_and_told) {
    const auto sound = named_values();
    const std::uint64_t entry = sound.plan().dictionary;  // "order"
    const std::uint64_t names = entry + 32 + 6 * 8 + 32;
    BOOST_REQUIRE(sound.get(names, 4) == trace_ring::names_magic);
    const std::uint64_t fields = names + 8, values = fields + 6 * 8, lengths = values + 10 * 8;
    BOOST_REQUIRE(sound.get(lengths, 2) == 3U);
    struct change {
        std::uint64_t at;
        std::uint64_t value;
        std::size_t size;
        bool told;
        std::string shown;  // of the first record's first field
    };
    const change changes[] = {
        {names, 0, 4, false, "0"},                 // none
        {names + 4, 0, 4, false, "0"},             // left out
        {names + 4, 0xFFFF, 2, true, "0"},         // fields beyond the entry
        {names + 6, 0xFFFF, 2, true, "0"},         // values beyond it
        {names + 6, 1, 2, true, "0"},              // fewer than a field has
        {fields, 6, 2, true, "0"},                 // no field
        {fields + 2, 1, 2, true, "0"},             // values that are another field's
        {fields + 4, 0xFFFFFFFF, 4, true, "0"},    //
        {fields + 8, 0, 2, true, "buy"},           // a field of another type
        {fields + 8 + 2, 0, 2, true, "buy"},       //
        {values, 256, 8, true, "0"},               // no u8
        {values + 3 * 8, 0xFFFF, 8, true, "buy"},  // no i16: it is above zero
        {lengths, 0, 2, true, "0"},                // no name
        {lengths, 0xFFFF, 2, true, "0"},           // a name beyond the entry
        {lengths + 18, 0xFFFF, 2, true, "buy"},    //
        {entry + 32, 11, 1, true, "false"},        // names for a bool
        {values, 1, 8, false, "0"},                // two names of one value
    };
    for (const auto& change : changes) {
        auto b = sound;
        b.put(change.at, change.value, change.size);
        auto file = reduce::trace_file::from(b.bytes());
        BOOST_TEST_CONTEXT("change at " << change.at - names << " to " << change.value) {
            BOOST_TEST(file.damages().empty() != change.told);
            for (const auto& each : file.damages()) {
                BOOST_TEST(each.offset == names);
                BOOST_TEST(each.what == "impossible names of values");
            }
            // Its records are read all the same.
            BOOST_TEST(read_in_every_way(file, b.bytes().size()).records == 7U);
            auto cursor = file.forward();
            const auto& first = std::get<reduce::record_view>(*cursor.next());
            const auto value = first.field(0);
            const std::string name(value.name());
            BOOST_TEST((!name.empty() ? name
                        : value.type() == field_type::boolean
                            ? "false"
                            : std::to_string(value.u64())) == change.shown);
        }
    }
}

BOOST_AUTO_TEST_CASE(fields_beyond_their_record_are_not_followed) {
    file_builder b;
    const auto process = b.process(1);
    const auto& event = b.event({1,
                                 "say",
                                 {{"text", field_type::character, field_form::variable},
                                  {"numbers", field_type::u32, field_form::variable}}});
    const auto lane = b.lane(process, 1);
    b.open(lane, 0);
    b.raw_record(lane, 1, event.id, {0x7FFF});                     // a text longer than the record
    b.raw_record(lane, 2, event.id, {std::uint64_t{6} << 16, 0});  // one and a half numbers
    b.raw_record(lane, 3, event.id, {});                           // no fixed part
    b.raw_record(lane, 4, event.id, {std::uint64_t{8} << 16 | 8, 0});  // the second one missing
    b.record(lane, 5, event, {"fine", std::vector<std::uint64_t>{1}});
    auto file = reduce::trace_file::from(b.bytes());
    std::vector<std::string> faults;
    for (auto cursor = file.forward(); const auto* item = cursor.next();) {
        const auto& record = std::get<reduce::record_view>(*item);
        faults.emplace_back(record.fault());
        if (!record.fault().empty()) {
            BOOST_TEST(!record.field("text"));
            BOOST_TEST(record.field("numbers").size() == 0U);
        }
    }
    const std::vector<std::string> expected{
        "a field longer than its record", "a field that ends inside an element",
        "a record shorter than its event's fields", "a field longer than its record", ""};
    BOOST_TEST(faults == expected, boost::test_tools::per_element());
    BOOST_TEST(tells(b));
}

BOOST_AUTO_TEST_CASE(random_bytes_in_random_places_are_survived,
                     *boost::unit_test::label("one_thread")) {
    const auto sound = everything();
    std::mt19937 random(20'240'501);
    const std::size_t size = sound.bytes().size();
    const auto below = [&random](std::size_t limit) {
        return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
    };
    const auto any_byte = [&below] { return static_cast<std::byte>(below(256)); };
    unsigned refused = 0;
    unsigned told = 0;
    const unsigned rounds = trace_ring_test::repeats(3000);
    for (unsigned round = 0; round < rounds; ++round) {
        auto b = sound;
        auto bytes = b.bytes();
        const auto kind = round % 4;
        if (kind == 0) {  // 1024 bytes anywhere
            for (int i = 0; i < 1024; ++i) bytes[below(size)] = any_byte();
        } else if (kind == 1) {  // a run of them, behind the header
            const std::size_t at = 4096 + below(size - 4096 - 1024);
            for (std::size_t i = 0; i < 1024; ++i) bytes[at + i] = any_byte();
        } else if (kind == 2) {  // a few bits of the tables and sub-buffers
            for (int i = 0; i < 8; ++i) {
                bytes[4096 + below(size - 4096)] ^= static_cast<std::byte>(1U << below(8));
            }
        } else {  // a piece of the file over another
            const std::size_t length = (1 + below(64)) * 8;
            const std::size_t words = (size - length) / 8;
            std::memmove(&bytes[below(words) * 8], &bytes[below(words) * 8], length);
        }
        try {
            auto file = reduce::trace_file::from(b.bytes());
            if (read_in_every_way(file, size).damages != 0) ++told;
        } catch (const trace_ring::format_error&) {
            ++refused;
        } catch (const broken_promise& broken) {
            BOOST_ERROR("round " << round << ": not so: " << broken.what());
        }
    }
    BOOST_TEST(refused > rounds / 20);
    BOOST_TEST(told > rounds / 10);
    trace_ring_test::proof("hostile", rounds, "damaged files");
}

BOOST_AUTO_TEST_CASE(a_file_that_shrinks_while_it_is_read_does_no_harm) {
    const auto sound = everything();
    scratch_file scratch;
    sound.save(scratch.path());
    const std::size_t size = sound.bytes().size();
    for (std::size_t length = size; length > 0; length -= std::min<std::size_t>(length, 1000)) {
        sound.save(scratch.path());
        auto file = reduce::trace_file::open(scratch.path());
        auto forward = file.forward();
        auto backward = file.backward();
        auto follow = file.follow();
        for (int i = 0; i < 20; ++i)
            (void)forward.next(), (void)backward.next(), (void)follow.next();
        BOOST_REQUIRE(::truncate(scratch.path().c_str(), static_cast<off_t>(length)) == 0);
        std::uint64_t items = 0;
        while (forward.next() != nullptr) ++items;
        while (backward.next() != nullptr) ++items;
        for (int i = 0; i < 5; ++i) (void)follow.next();
        BOOST_TEST(items < 1000U);
    }
}

BOOST_AUTO_TEST_SUITE_END()
