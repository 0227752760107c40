// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Packed references are read as separate records: each that was packed comes back, in every
/// direction and by every filter, at the position of the record that has it.

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <record/packing.hpp>
#include <recorder/scratch.hpp>
#include <reduce/file_builder.hpp>
#include <reduce/random_trace.hpp>
#include <reduce/read_all.hpp>
#include <reduce/told.hpp>
#include <trace_reduce/reading/threads.hpp>
#include <trace_reduce/where/predicate.hpp>
#include <trace_ring/instrument/reference_packing.hpp>
#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/reduce/trace_file.hpp>

BOOST_AUTO_TEST_SUITE(packed_references)

using namespace trace_ring_test;
namespace reduce = trace_ring::reduce;
namespace where = trace_reduce::where;
using trace_ring::loss_cause;
using trace_ring::position;
using trace_ring::reference;
using trace_ring::reference_kind;

namespace {

[[nodiscard]] reduce::trace_file unpacked(std::span<const std::byte> memory) {
    return reduce::trace_file::from(memory, "memory", &trace_ring::instrument::reference_packing);
}

struct note : trace_ring::event<"note", trace_ring::field<"n", std::uint64_t>> {};

/// A record that was read: of a reference, or the number of a note.
struct seen {
    reference of{};
    std::optional<std::uint64_t> note{};
    position at = 0;
    friend bool operator==(const seen&, const seen&) = default;
};
std::ostream& operator<<(std::ostream& out, const seen& what) {
    out << what.at << ": ";
    if (what.note) return out << "note " << *what.note;
    return out << static_cast<int>(what.of.kind) << ' ' << std::hex << what.of.address << " by "
               << what.of.site << std::dec << ", " << static_cast<int>(what.of.size);
}

seen seen_in(const reduce::record_view& record) {
    seen out;
    out.at = record.position();
    BOOST_TEST(record.fault() == "");
    if (record.name() == "note") {
        out.note = record.field("n").u64();
        return out;
    }
    const auto number = [&](const char* name) { return record.field(name).u64(); };
    for (const auto& each : trace_ring::names_of<reference_kind>::list) {
        if (record.name() == each.name) out.of.kind = each.value;
    }
    out.of.site = number("site");
    switch (out.of.kind) {
        case reference_kind::block:
            out.of.address = out.of.site;
            break;
        case reference_kind::enter:
        case reference_kind::exit:
            out.of.address = number("caller");
            break;
        default:
            out.of.address = number("address");
            out.of.size = static_cast<std::uint32_t>(number("size"));
    }
    return out;
}

/// The records of a lane's first thread, in the order read.
std::vector<seen> read(reduce::cursor cursor, std::uint32_t thread) {
    std::vector<seen> out;
    const auto take = [&](const reduce::record_view& record) {
        if (record.lane().thread == thread) out.push_back(seen_in(record));
    };
    while (const auto* item = cursor.next()) {
        if (const auto* record = std::get_if<reduce::record_view>(item)) take(*record);
        const auto run = cursor.records();
        for (std::size_t i = 0; i < run.size(); ++i) BOOST_TEST(run[i].lane().thread != 0U);
        for (const auto& record : run) take(record);
    }
    return out;
}

std::vector<reference> some_references(dice& random, std::size_t count) {
    std::vector<reference> all(count);
    for (auto& each : all) {
        each.site = 0x401000 + random.below(64) * 4;
        each.kind = static_cast<reference_kind>(random.below(8));
        each.address = 0x7f0000000000 + random.below(1 << 16);
        if (each.kind == reference_kind::block) each.address = each.site;
        if (each.kind == reference_kind::failed_compare) {
            each.size = 1U << random.below(5);
        } else if (has_size(each.kind)) {
            each.size = random.below(2) == 0 ? 1U << random.below(5)
                                             : 1 + static_cast<std::uint32_t>(random.below(9999));
        }
    }
    return all;
}

/// Records references of a thread, and has them.
class writer {
public:
    explicit writer(std::uint64_t seed) : random_(seed) {}

    void write(trace_ring::recorder& to, std::uint32_t thread) {
        if (random_.one_in(3)) {
            to.record<note>(all.size());
            all.push_back({{}, all.size(), at_++});
            return;
        }
        write(to, thread, some_references(random_, static_cast<std::size_t>(random_.below(60))));
    }
    void write(trace_ring::recorder& to, std::uint32_t thread, const std::vector<reference>& what) {
        const auto bytes = packed(what);
        to.record<trace_ring::packed_references>(
            thread, thread, std::uint32_t{0},
            std::span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()));
        for (const auto& each : what) all.push_back({each, {}, at_});
        ++at_;
    }

    std::vector<seen> all;

private:
    dice random_;
    position at_ = 0;
};

trace_ring::recorder_options small(std::uint64_t size = 1 << 20) {
    trace_ring::recorder_options options;
    options.memory_file = true;
    options.size = size;
    options.sub_buffer_bytes = 4096;
    return options;
}

/// A recorder in which two threads recorded, and what.
struct two_threads {
    trace_ring::recorder recorder;
    writer first{1}, second{2};
    std::uint32_t first_thread = static_cast<std::uint32_t>(::gettid());
    std::uint32_t second_thread = 0;

    explicit two_threads(std::uint64_t size = 1 << 20, int rounds = 300) : recorder(small(size)) {
        first.write(recorder, first_thread);  // so that it is not handed the other's lane
        std::thread other([&] {
            second_thread = static_cast<std::uint32_t>(::gettid());
            for (int i = 0; i < rounds; ++i) second.write(recorder, second_thread);
        });
        for (int i = 1; i < rounds; ++i) first.write(recorder, first_thread);
        other.join();
    }
    [[nodiscard]] reduce::trace_file open() const {
        const auto [memory, bytes] = recorder.bytes();
        return unpacked({static_cast<const std::byte*>(memory), bytes});
    }
};

std::vector<seen> reversed(std::vector<seen> all) {
    std::reverse(all.begin(), all.end());
    return all;
}
template <class Wanted>
std::vector<seen> only(std::vector<seen> all, const Wanted& wanted) {
    std::erase_if(all, [&](const seen& each) { return !wanted(each); });
    return all;
}
void check_same(const std::vector<seen>& a, const std::vector<seen>& b) {
    BOOST_TEST(a == b, boost::test_tools::per_element());
}

std::shared_ptr<const where::condition> asks(const reduce::trace_file& of, where::expression what) {
    return std::make_shared<where::predicate>(of.about(), std::move(what));
}
where::expression compared(const char* name, where::comparison sign, std::uint64_t with) {
    using where::expression;
    return expression::compare(expression::of_name(name), sign, expression::of(with));
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_that_was_packed_comes_back_in_each_direction) {
    const two_threads both;
    const auto trace = both.open();
    for (const auto order : {reduce::merging::by_time, reduce::merging::by_lane}) {
        check_same(read(trace.forward({}, order), both.first_thread), both.first.all);
        check_same(read(trace.forward({}, order), both.second_thread), both.second.all);
        check_same(read(trace.backward({}, order), both.first_thread), reversed(both.first.all));
        check_same(read(trace.backward({}, order), both.second_thread), reversed(both.second.all));
    }
    const auto forward = told_of(trace, trace.forward());
    auto backward = told_of(trace, trace.backward());
    std::reverse(backward.begin(), backward.end());
    BOOST_TEST(forward == backward, boost::test_tools::per_element());
    BOOST_TEST(trace.statistics().records == both.first.all.size() + both.second.all.size());
    BOOST_TEST(trace.statistics().damages == 0U);
}

BOOST_AUTO_TEST_CASE(filters_choose_among_them) {
    const two_threads both;
    const auto trace = both.open();
    const auto check = [&](const reduce::filter& what, const auto& wanted) {
        const auto expected = only(both.first.all, wanted);
        BOOST_TEST(!expected.empty());
        check_same(read(trace.forward(what), both.first_thread), expected);
        check_same(read(trace.backward(what), both.first_thread), reversed(expected));
        reduce::filter ahead = what;
        ahead.ahead = [](const reduce::tables& in, const reduce::filter& f, reduce::direction way,
                         reduce::merging order) {
            return std::make_unique<trace_reduce::reading_threads>(in, f, way, order, 2);
        };
        check_same(read(trace.forward(ahead), both.first_thread), expected);
        check_same(read(trace.backward(ahead), both.first_thread), reversed(expected));
    };
    const auto is = [](reference_kind kind) {
        return [kind](const seen& each) { return !each.note && each.of.kind == kind; };
    };
    reduce::filter what;
    for (const auto& each : trace_ring::names_of<reference_kind>::list) {
        what.events = {each.name};
        check(what, is(each.value));
    }
    what.events = {"note"};
    check(what, [](const seen& each) { return each.note.has_value(); });

    what = {};
    what.condition =
        asks(trace, compared("address", where::comparison::less, 0x7f0000000000 + 4000));
    check(what, [](const seen& each) {
        return !each.note && has_size(each.of.kind) && each.of.address < 0x7f0000000000 + 4000;
    });
    what.condition = asks(trace, compared("site", where::comparison::equal, 0x401010));
    check(what, [](const seen& each) { return !each.note && each.of.site == 0x401010; });
    what.events = {"st*"};
    check(what, [](const seen& each) {
        return !each.note && each.of.site == 0x401010 && each.of.kind == reference_kind::store;
    });

    what = {};
    what.positions = {{.lane = 0, .from = 100, .to = 103}};
    check(what, [](const seen& each) { return each.at >= 100 && each.at < 103; });
    what.condition = asks(trace, compared("position", where::comparison::equal, 101));
    what.positions.clear();
    check(what, [](const seen& each) { return each.at == 101; });
    what = {};
    what.threads = {both.first_thread};
    check(what, [](const seen&) { return true; });
    what = {};
    what.condition = asks(trace, compared("tid", where::comparison::equal, both.first_thread));
    check(what, [](const seen&) { return true; });

    // They have the time of the record that contains them.
    std::uint64_t from = 0, to = 0;
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        const auto* record = std::get_if<reduce::record_view>(item);
        if (record == nullptr || record->lane().thread != both.first_thread) continue;
        if (record->position() == 40) from = record->time();
        if (record->position() == 60) to = record->time();
    }
    what = {};
    what.from = from;
    what.to = to;
    // With a coarse clock, the neighbors may have the same times.
    std::set<trace_ring::position> within;
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        const auto* record = std::get_if<reduce::record_view>(item);
        if (record == nullptr || record->lane().thread != both.first_thread) continue;
        if (record->time() >= from && record->time() <= to) within.insert(record->position());
    }
    BOOST_TEST((within.contains(40) && within.contains(60) && within.size() < 100));
    check(what, [&](const seen& each) { return within.contains(each.at); });
}

BOOST_AUTO_TEST_CASE(by_its_name_the_record_is_given_as_it_is) {
    const two_threads both;
    const auto trace = both.open();
    reduce::filter what;
    what.events = {"references", "note"};
    for (const bool ahead : {false, true}) {
        if (ahead) {
            what.ahead = [](const reduce::tables& in, const reduce::filter& f,
                            reduce::direction way, reduce::merging order) {
                return std::make_unique<trace_reduce::reading_threads>(in, f, way, order, 2);
            };
        }
        std::vector<seen> all;
        std::uint64_t next = 0;
        trace_ring::reference_unpacker unpacker;
        for (auto cursor = trace.forward(what); const auto* item = cursor.next();) {
            const auto& record = std::get<reduce::record_view>(*item);
            if (record.lane().thread != both.first_thread) continue;
            BOOST_TEST(record.position() == next++);
            if (record.name() == "note") {
                all.push_back(seen_in(record));
                continue;
            }
            BOOST_TEST(record.name() == "references");
            BOOST_TEST(record.field("thread").u64() == both.first_thread);
            const auto bytes = record.field("packed").bytes();
            BOOST_TEST(unpacker.unpack(bytes.data(), bytes.size(), [&](const reference& each) {
                all.push_back({each, {}, record.position()});
            }) == bytes.size());
        }
        check_same(all, both.first.all);
    }
}

BOOST_AUTO_TEST_CASE(each_has_the_offset_time_and_position_of_its_record) {
    const two_threads both;
    const auto trace = both.open();
    reduce::filter packed;
    packed.events = {"references"};
    auto records = trace.forward(packed, reduce::merging::by_lane);
    packed.events = {"load", "store", "block", "enter", "exit"};
    auto all = trace.forward(packed, reduce::merging::by_lane);
    const auto* item = all.next();
    while (const auto* next = records.next()) {
        const auto& record = std::get<reduce::record_view>(*next);
        for (; item != nullptr; item = all.next()) {
            const auto& one = std::get<reduce::record_view>(*item);
            if (one.offset() != record.offset()) break;
            BOOST_TEST(one.position() == record.position());
            BOOST_TEST(one.time() == record.time());
            BOOST_TEST(&one.lane() == &record.lane());
            BOOST_TEST(!one.interval());
        }
    }
    BOOST_TEST(item == nullptr);
}

BOOST_AUTO_TEST_CASE(what_was_overwritten_is_counted_in_records_and_the_rest_is_whole) {
    const two_threads both(8 * 4096, 1000);
    const auto trace = both.open();
    struct lost_range {
        std::uint32_t thread;
        position from, to;
    };
    std::vector<lost_range> gone;
    std::uint64_t lost = 0;
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        const auto* const loss = std::get_if<reduce::loss_item>(item);
        if (loss == nullptr) continue;
        BOOST_TEST((loss->cause == loss_cause::overwritten));
        lost += loss->count;
        BOOST_REQUIRE(loss->lane != nullptr);
        gone.push_back({loss->lane->thread, loss->at, loss->at + loss->count});
    }
    BOOST_TEST(lost > 0U);
    for (const auto* const who : {&both.first, &both.second}) {
        const auto thread = who == &both.first ? both.first_thread : both.second_thread;
        const auto expected = only(who->all, [&](const seen& each) {
            return std::none_of(gone.begin(), gone.end(), [&](const lost_range& range) {
                return range.thread == thread && each.at >= range.from && each.at < range.to;
            });
        });
        check_same(read(trace.forward(), thread), expected);
        check_same(read(trace.backward(), thread), reversed(expected));
    }
    reduce::filter as_they_are;
    as_they_are.events = {"references", "note"};
    BOOST_TEST(lost + trace.statistics(as_they_are).records == 2000U);
}

BOOST_AUTO_TEST_CASE(they_are_followed_while_they_are_written) {
    trace_ring::recorder recorder(small(8 << 20));
    const auto [memory, bytes] = recorder.bytes();
    // The types are entered while the trace is read.
    const auto trace = unpacked({static_cast<const std::byte*>(memory), bytes});
    auto cursor = trace.follow();
    writer from(3);
    std::uint32_t thread = 0;
    std::atomic<bool> over{false};
    std::thread other([&] {
        thread = static_cast<std::uint32_t>(::gettid());
        for (int i = 0; i < 2000; ++i) {
            from.write(recorder, thread);
            if (i % 16 == 0) std::this_thread::yield();
        }
        over = true;
    });
    std::vector<seen> all;
    std::string others;
    const auto drain = [&] {
        while (const auto* item = cursor.next()) {
            if (const auto* record = std::get_if<reduce::record_view>(item)) {
                all.push_back(seen_in(*record));
            } else if (const auto* loss = std::get_if<reduce::loss_item>(item)) {
                others += std::string(loss->what) + " x" + std::to_string(loss->count) + " at " +
                          std::to_string(loss->at) + ' ' + std::to_string(int(loss->cause)) + ";";
            } else {
                others += "a clock's jump; ";
            }
        }
    };
    while (!over) drain();
    other.join();
    cursor.stop_following();
    drain();
    BOOST_TEST(others == "");
    check_same(all, from.all);
}

namespace {

/// A file of one lane with records of these packed bytes, a note before and after each.
struct packed_file {
    file_builder file;
    std::vector<std::uint64_t> offsets{};

    explicit packed_file(const std::vector<std::vector<std::uint64_t>>& all,
                         std::uint32_t thread = 11, bool cut = false)
        : file({.sub_buffer_bytes = 2048, .sub_buffers = 4}) {
        const auto& note = file.event({1, "note", {{"n"}}});
        const auto& packed = file.event(
            {2,
             "references",
             {{"thread", field_type::u32}, {"packed", field_type::u8, field_form::variable}}});
        const auto process = file.process(1200);
        const auto lane = file.lane(process, 11);
        file.lane(process, 12, "helper");
        const std::uint64_t slot = file.slot_at(file.open(lane, 1000));
        std::uint64_t now = 1000;
        for (const auto& each : all) {
            (void)file.record(lane, now++, note, {0});
            value_spec bytes(each);
            bytes.cut = cut;
            offsets.push_back(slot + ((file.get(slot + 48, 2) + 0x8008) & 0xFFFF));
            (void)file.record(lane, now++, packed, {std::uint64_t{thread}, bytes});
        }
        (void)file.record(lane, now++, note, {0});
        file.close(lane, now);
    }
};

}  // namespace

BOOST_AUTO_TEST_CASE(bytes_that_make_no_sense_are_told_by_their_offset_after_those_that_do) {
    const packed_file made({{0xF1, 0x20, 0x30, 0xA0, 0xD0}, {}, {0xD0}, {0xF1, 0x20, 0xA0}});
    const auto trace = unpacked(made.file.bytes());
    const auto told = [&](reduce::cursor cursor) {
        std::vector<std::string> out;
        while (const auto* item = cursor.next()) {
            if (const auto* record = std::get_if<reduce::record_view>(item)) {
                out.push_back(std::string(record->name()) + ' ' +
                              std::to_string(record->position()));
            } else if (const auto* loss = std::get_if<reduce::loss_item>(item)) {
                BOOST_TEST((loss->cause == loss_cause::damaged));
                BOOST_TEST(loss->what == "packed references that make no sense");
                BOOST_TEST(loss->count == 0U);
                const std::size_t which = loss->at == 1 ? 0 : 2;
                out.push_back("damaged " + std::to_string(loss->at) + " at " +
                              std::to_string(loss->offset - made.offsets[which]));
            }
        }
        return out;
    };
    // The bytes lie behind the header, the thread, and the length of all.
    std::vector<std::string> expected{"note 0", "load 1",  "damaged 1 at 19",
                                      "note 2", "note 4",  "damaged 5 at 16",
                                      "note 6", "block 7", "note 8"};
    BOOST_TEST(told(trace.forward()) == expected, boost::test_tools::per_element());
    std::reverse(expected.begin(), expected.end());
    BOOST_TEST(told(trace.backward()) == expected, boost::test_tools::per_element());
    const auto sum = trace.statistics();
    BOOST_TEST(sum.damages == 2U);
    BOOST_TEST(sum.records == 7U);
}

BOOST_AUTO_TEST_CASE(a_record_that_does_not_have_its_fields_stays_as_it_is) {
    packed_file made({{0xF1, 0x20, 0x30}});
    made.file.put(made.offsets[0] + 12, 500, 2);  // longer than the record
    auto trace = unpacked(made.file.bytes());
    std::vector<std::string> names;
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        const auto& record = std::get<reduce::record_view>(*item);
        names.emplace_back(record.name());
        if (record.name() != "references") continue;
        BOOST_TEST(record.fault() == "a field longer than its record");
        BOOST_TEST(record.offset() == made.offsets[0]);
        BOOST_TEST(record.position() == 1U);
    }
    const std::vector<std::string> expected{"note", "references", "note"};
    BOOST_TEST(names == expected, boost::test_tools::per_element());
    BOOST_TEST(trace.statistics().faulty == 1U);
}

BOOST_AUTO_TEST_CASE(a_type_that_is_known_only_later_is_unpacked_all_the_same) {
    for (const auto way : {reduce::direction::forward, reduce::direction::backward}) {
        for (const int given : {1, 2}) {
            packed_file made(
                {{0xF1, 0x20, 0x30, 0xF1, 0x20, 0xA0}, {0xF1, 0x20, 0xA0, 0xF1, 0x20, 0x30}});
            const auto& dictionary = made.file.plan().dictionary;
            const std::uint64_t entry = dictionary + made.file.get(dictionary + 4, 4);
            const std::uint64_t magic = made.file.get(entry, 4);
            made.file.put(entry, 0, 4);
            const auto trace = unpacked(std::as_const(made.file).bytes());
            const bool forward = way == reduce::direction::forward;
            auto cursor = forward ? trace.forward() : trace.backward();
            std::vector<std::string> names;
            const auto take = [&] {
                const auto* const item = cursor.next();
                if (item == nullptr) return false;
                const auto& record = std::get<reduce::record_view>(*item);
                names.push_back(std::string(record.name()) + std::to_string(record.position()));
                return true;
            };
            for (int i = 0; i < given; ++i) BOOST_TEST(take());
            made.file.put(entry, magic, 4);
            (void)trace.forward();  // looks at the tables again
            while (take()) {
            }
            std::vector<std::string> expected{"note0",  "load1", "block1", "note2",
                                              "block3", "load3", "note4"};
            if (!forward) std::reverse(expected.begin(), expected.end());
            if (given == 2) expected.erase(expected.begin() + 1, expected.begin() + 3);
            if (given == 2) expected.insert(expected.begin() + 1, forward ? "1" : "3");
            BOOST_TEST(names == expected, boost::test_tools::per_element());
        }
    }
}

BOOST_AUTO_TEST_CASE(only_an_event_of_that_name_and_field_is_unpacked) {
    for (const auto& [name, field, type, form] :
         {std::tuple{"reference", "packed", field_type::u8, field_form::variable},
          {"references", "pack", field_type::u8, field_form::variable},
          {"references", "packed", field_type::u16, field_form::variable},
          {"references", "packed", field_type::u8, field_form::scalar}}) {
        file_builder file;
        const auto& event = file.event({2, name, {{"thread"}, {field, type, form}}});
        const auto lane = file.lane(file.process(1200), 11);
        file.open(lane, 1000);
        (void)file.record(lane, 1000, event, {11, 0xA0});
        file.close(lane, 1001);
        const auto trace = unpacked(file.bytes());
        BOOST_TEST(trace.event_types().size() == 1U);
        auto cursor = trace.forward();
        const auto* item = cursor.next();
        BOOST_REQUIRE(item != nullptr);
        BOOST_TEST(std::get<reduce::record_view>(*item).name() == name);
    }
}

BOOST_AUTO_TEST_CASE(another_thread_may_have_recorded_them) {
    const packed_file made({{0xF1, 0x20, 0x30}}, 12);
    const auto trace = unpacked(made.file.bytes());
    reduce::filter what;
    const auto loads = [&] {
        std::size_t count = 0;
        for (auto cursor = trace.forward(what); const auto* item = cursor.next();) {
            const auto& record = std::get<reduce::record_view>(*item);
            if (record.name() != "load") continue;
            BOOST_TEST(record.lane().thread == 12U);
            BOOST_TEST(record.lane().name == "helper");
            BOOST_TEST(record.lane().number == 1U);
            ++count;
        }
        return count;
    };
    BOOST_TEST(loads() == 1U);
    what.threads = {12};
    BOOST_TEST(loads() == 1U);
    what.threads = {11};
    BOOST_TEST(loads() == 0U);
    what.threads.clear();
    what.condition = asks(trace, compared("tid", where::comparison::equal, 12));
    BOOST_TEST(loads() == 1U);
    what.condition = asks(trace, compared("tid", where::comparison::equal, 11));
    BOOST_TEST(loads() == 0U);
}

BOOST_AUTO_TEST_CASE(whatever_the_bytes_reading_ends_and_tells_the_same_in_both_directions) {
    dice random(7);
    for (int round = 0; round < 200; ++round) {
        std::vector<std::vector<std::uint64_t>> all(static_cast<std::size_t>(1 + random.below(4)));
        for (auto& each : all) {
            each.resize(static_cast<std::size_t>(random.below(300)));
            for (auto& byte : each) byte = random.one_in(3) ? random.below(256) : 0xA0;
            if (each.size() > 2) {
                each[0] = 0xF1;
                each[1] = 0x20;
            }
        }
        const packed_file made(all, 11, random.one_in(2));
        auto trace = unpacked(made.file.bytes());
        (void)read_in_every_way(trace, made.file.bytes().size());
        auto backward = told_of(trace, trace.backward());
        std::reverse(backward.begin(), backward.end());
        BOOST_TEST(told_of(trace, trace.forward()) == backward, boost::test_tools::per_element());
    }
}

BOOST_AUTO_TEST_SUITE_END()
