// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Reading a range of a trace gives what leaving out the rest of the whole would give, and looks at
/// little else.

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <proof.hpp>
#include <reduce/file_builder.hpp>
#include <reduce/random_trace.hpp>
#include <trace_reduce/position/range_finder.hpp>
#include <trace_ring/format/layout.hpp>
#include <trace_ring/reduce/file/chains.hpp>
#include <trace_ring/reduce/trace_file.hpp>

BOOST_AUTO_TEST_SUITE(seek, *boost::unit_test::label("one_thread"))

using namespace trace_ring_test;
namespace reduce = trace_ring::reduce;
using trace_ring::position;

namespace {

std::string told(const reduce::item& item) {
    const auto text = [](auto... values) { return ((std::to_string(values) + ' ') + ...); };
    if (const auto* r = std::get_if<reduce::record_view>(&item)) {
        return "record " + text(r->lane().number, r->position(), r->time(), r->field("n").u64());
    }
    if (const auto* l = std::get_if<reduce::loss_item>(&item)) {
        return "lost " + text(static_cast<int>(l->cause), l->count, l->at,
                              l->lane == nullptr ? 0 : l->lane->number, l->time);
    }
    const auto& j = std::get<reduce::clock_jump>(item);
    return "jump " + text(j.lane == nullptr ? 0 : j.lane->number, j.at, j.from, j.time);
}

std::vector<std::string> all_of(reduce::cursor cursor, std::uint64_t from = 0,
                                std::uint64_t to = ~std::uint64_t{0}) {
    std::vector<std::string> out;
    while (const auto* item = cursor.next()) {
        const std::uint64_t time = reduce::time_of(*item);
        if (time >= from && time <= to) out.push_back(told(*item));
    }
    return out;
}

/// Compares some ranges of a trace, both ways; `ordered`: the order, too.
void compare(const reduce::trace_file& file, dice& random, int ranges, bool ordered = true) {
    const auto whole = trace_reduce::extent_of(file.about());
    BOOST_REQUIRE(!whole.empty);
    const std::uint64_t span = whole.last - whole.first + 1;
    std::vector<std::pair<std::uint64_t, std::string>> all[2];
    for (const bool backward : {false, true}) {
        auto cursor = backward ? file.backward() : file.forward();
        while (const auto* item = cursor.next()) {
            all[backward ? 1 : 0].emplace_back(reduce::time_of(*item), told(*item));
        }
    }
    for (int i = 0; i < ranges; ++i) {
        reduce::filter what;
        what.from = whole.first + random.below(span + 20);
        what.to = what.from + (random.one_in(8) ? ~std::uint64_t{0} - what.from
                                                : random.below(random.one_in(2) ? 100 : span / 2));
        if (random.one_in(10)) what.from = 0;
        if (random.one_in(10)) what.to = what.from;
        for (const bool backward : {false, true}) {
            std::vector<std::string> expected;
            for (const auto& [time, item] : all[backward ? 1 : 0]) {
                if (time >= what.from && time <= what.to) expected.push_back(item);
            }
            auto found = all_of(backward ? file.backward(what) : file.forward(what));
            if (!ordered) {
                std::sort(expected.begin(), expected.end());
                std::sort(found.begin(), found.end());
            }
            BOOST_TEST_CONTEXT("from " << what.from << " to " << what.to << " of " << whole.first
                                       << " to " << whole.last << (backward ? " backward" : "")) {
                // Told one by one only where they differ: in a sanitizer's build that takes
                // longest.
                BOOST_TEST(found.size() == expected.size());
                if (found != expected) {
                    BOOST_TEST(found == expected, boost::test_tools::per_element());
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_range_is_what_leaving_out_the_rest_gives) {
    for (std::uint64_t seed = 1; seed <= repeats(60); ++seed) {
        dice random(seed);
        shape is;
        is.opened = random.one_in(2) ? 500 : 1500;
        is.sampled = random.one_in(2);
        is.losses = random.one_in(2);
        is.quiet = random.one_in(2);
        is.ahead = random.one_in(2);
        is.lanes = static_cast<std::uint32_t>(2 + random.below(7));
        const auto b = random_trace(random, is);
        const auto file = reduce::trace_file::from(b.bytes());
        BOOST_TEST_CONTEXT("seed " << seed) {
            compare(file, random, 12);
        }
    }
}

BOOST_AUTO_TEST_CASE(where_the_readings_tell_of_a_jump_a_range_has_all_that_is_in_it) {
    for (std::uint64_t seed = 1; seed <= repeats(30); ++seed) {
        dice random(seed);
        shape is;
        is.jumps = true;
        is.told = true;
        is.losses = random.one_in(2);
        is.opened = random.one_in(2) ? 200 : 1500;
        const auto b = random_trace(random, is);
        const auto file = reduce::trace_file::from(b.bytes());
        BOOST_TEST(!file.time().consistent());
        BOOST_TEST_CONTEXT("seed " << seed) {
            compare(file, random, 12, false);
        }
    }
}

BOOST_AUTO_TEST_CASE(where_nothing_tells_of_a_jump_a_range_has_nothing_that_is_not_in_it) {
    std::size_t wanted = 0;
    std::size_t missed = 0;
    for (std::uint64_t seed = 1; seed <= repeats(30); ++seed) {
        dice random(seed);
        shape is;
        is.jumps = true;
        is.opened = random.one_in(2) ? 200 : 1500;
        const auto b = random_trace(random, is);
        const auto file = reduce::trace_file::from(b.bytes());
        const auto whole = trace_reduce::extent_of(file.about());
        for (int i = 0; i < 10; ++i) {
            reduce::filter what;
            what.from = whole.first + random.below(whole.last - whole.first);
            what.to = what.from + random.below(1000);
            auto expected = all_of(file.forward(), what.from, what.to);
            auto found = all_of(file.forward(what));
            std::erase_if(found, [](const auto& each) { return !each.starts_with("record"); });
            std::erase_if(expected, [](const auto& each) { return !each.starts_with("record"); });
            std::sort(found.begin(), found.end());
            std::sort(expected.begin(), expected.end());
            BOOST_TEST(std::includes(expected.begin(), expected.end(), found.begin(), found.end()));
            wanted += expected.size();
            missed += expected.size() - found.size();
        }
    }
    BOOST_TEST(missed * 100 < wanted);  // there and back within what was not looked at
}

BOOST_AUTO_TEST_CASE(ranges_that_follow_one_another_have_every_record_once) {
    dice random(7);
    shape is;
    is.sampled = true;
    is.opened = 1400;
    const auto b = random_trace(random, is);
    const auto file = reduce::trace_file::from(b.bytes());
    const auto everything = all_of(file.forward());
    std::vector<std::string> parts;
    const auto whole = trace_reduce::extent_of(file.about());
    const std::uint64_t step = (whole.last - whole.first) / 50;
    for (std::uint64_t at = 0; at <= whole.last; at += step) {
        reduce::filter what;
        what.from = at;
        what.to = at + step - 1;
        const auto part = all_of(file.forward(what));
        parts.insert(parts.end(), part.begin(), part.end());
    }
    BOOST_TEST(parts == everything, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(positions_bound_what_is_read_of_their_lanes) {
    for (std::uint64_t seed = 1; seed <= repeats(10); ++seed) {
        dice random(seed);
        shape is;
        is.losses = random.one_in(2);
        is.opened = random.one_in(2) ? 400 : 1500;
        const auto b = random_trace(random, is);
        const auto file = reduce::trace_file::from(b.bytes());
        for (int i = 0; i < 10; ++i) {
            const auto lane = static_cast<std::uint32_t>(random.below(is.lanes + 1));
            const position from = random.below(600);
            const reduce::position_range range{lane, from, from + random.below(400)};
            reduce::filter what;
            what.positions = {range};
            for (const bool backward : {false, true}) {
                std::vector<std::string> expected;
                auto all = backward ? file.backward() : file.forward();
                while (const auto* item = all.next()) {
                    const auto* r = std::get_if<reduce::record_view>(item);
                    if (r == nullptr) continue;
                    const bool bound = lane == 0 || r->lane().number == lane;
                    if (bound && (r->position() < range.from || r->position() >= range.to))
                        continue;
                    expected.push_back(told(*item));
                }
                auto found = all_of(backward ? file.backward(what) : file.forward(what));
                std::erase_if(found, [](const auto& each) { return !each.starts_with("record"); });
                BOOST_TEST_CONTEXT("seed " << seed << " lane " << lane << " from " << range.from
                                           << " to " << range.to << (backward ? " backward" : "")) {
                    BOOST_TEST(found == expected, boost::test_tools::per_element());
                }
            }
        }
    }
}

/// A copy of a trace in separate pages, of which some can be made not to be there.
class guarded_copy {
public:
    explicit guarded_copy(std::span<const std::byte> bytes) : size_(bytes.size()) {
        void* const at =
            ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        BOOST_REQUIRE(at != MAP_FAILED);
        at_ = static_cast<std::byte*>(at);
        std::memcpy(at_, bytes.data(), size_);
    }
    guarded_copy(const guarded_copy&) = delete;
    ~guarded_copy() { ::munmap(at_, size_); }

    [[nodiscard]] std::span<const std::byte> bytes() const { return {at_, size_}; }
    void forbid(std::uint64_t offset, std::uint64_t bytes) {
        BOOST_REQUIRE(::mprotect(at_ + offset, static_cast<std::size_t>(bytes), PROT_NONE) == 0);
    }

private:
    std::size_t size_;
    std::byte* at_ = nullptr;
};

BOOST_AUTO_TEST_CASE(a_seek_touches_neither_headers_nor_records_outside_of_its_range) {
    dice random(11);
    shape is;
    is.sub_buffers = 4096;
    is.opened = 6000;
    is.sub_buffer_bytes = 4096;
    is.lanes = 4;
    const auto b = random_trace(random, is);
    const auto whole = trace_reduce::extent_of(reduce::trace_file::from(b.bytes()).about());
    reduce::filter what;
    what.from = whole.first + (whole.last - whole.first) / 3;
    what.to = what.from + (whole.last - whole.first) / 200;
    const auto expected = all_of(reduce::trace_file::from(b.bytes()).forward(what));
    BOOST_TEST(expected.size() > 20U);

    // What is in the range, and the sub-buffer of each lane before it; and where lanes end.
    guarded_copy copy(b.bytes());
    const auto& plan = b.plan();
    const auto entry = [&](std::uint64_t slot, std::uint64_t field) {
        return b.get(plan.index + slot * 32 + field, field == 24 ? 4 : 8);
    };
    std::vector<char> allowed(4096);
    const auto allow = [&](std::uint64_t slot) -> char& {
        return allowed[static_cast<std::size_t>(slot)];
    };
    for (std::uint32_t lane = 1; lane <= is.lanes; ++lane) {
        std::vector<std::pair<position, std::uint64_t>> own;  // before the range
        for (std::uint64_t slot = 0; slot < 4096; ++slot) {
            if (entry(slot, 24) != lane) continue;
            if (entry(slot, 8) >= what.from && entry(slot, 8) <= what.to) allow(slot) = 1;
            if (entry(slot, 8) < what.from) own.emplace_back(entry(slot, 0), slot);
        }
        std::sort(own.begin(), own.end());
        // The one that reaches into the range, and the one before that, for where that begins.
        for (std::size_t i = own.size() - std::min<std::size_t>(own.size(), 2); i < own.size();
             ++i) {
            allow(own[i].second) = 1;
        }
    }
    std::size_t forbidden = 0;
    for (std::uint64_t slot = 0; slot < 4096; ++slot) {
        if (allow(slot) != 0) continue;
        copy.forbid(plan.bytes_for(slot), 4096);
        ++forbidden;
    }
    BOOST_TEST(forbidden > 4000U);
    const auto file = reduce::trace_file::from(copy.bytes());
    BOOST_TEST(all_of(file.forward(what)) == expected, boost::test_tools::per_element());
    auto reversed = all_of(file.backward(what));
    BOOST_TEST(reversed.size() == expected.size());
}

BOOST_AUTO_TEST_CASE(a_seek_keeps_few_of_the_sub_buffers_outside_its_range) {
    for (const std::uint64_t sub_buffers : {2048U, 16384U}) {
        dice random(3);
        shape is;
        is.sub_buffers = sub_buffers;
        is.opened = sub_buffers + sub_buffers / 2;
        is.sub_buffer_bytes = 512;
        is.lanes = 4;
        const auto b = random_trace(random, is);
        const auto file = reduce::trace_file::from(b.bytes());
        const auto whole = trace_reduce::extent_of(file.about());
        for (std::uint64_t i = 1; i < 10; ++i) {
            const std::uint64_t from = whole.first + (whole.last - whole.first) / 10 * i;
            const reduce::tick_range range{from, from + 50};
            const auto found = reduce::chain_scan(file.about())
                                   .scan(
                                       reduce::look_at::index,
                                       [](std::uint32_t, position) { return true; }, range);
            std::size_t outside = 0;
            for (const auto& chain : found.chains) {
                for (const auto& link : chain.links) {
                    if (link.last_time < range.from || link.base_time > range.to) ++outside;
                }
            }
            BOOST_TEST(found.chains.size() == is.lanes);
            BOOST_TEST(outside <= 12U * is.lanes);
        }
    }
}

BOOST_AUTO_TEST_CASE(index_entries_that_contradict_each_other_lead_to_no_loop_and_are_read_past) {
    for (std::uint64_t seed = 1; seed <= repeats(40); ++seed) {
        dice random(seed);
        shape is;
        is.opened = random.one_in(2) ? 500 : 1500;
        auto b = random_trace(random, is);
        const auto honest = reduce::trace_file::from(b.bytes());
        const auto whole = trace_reduce::extent_of(honest.about());
        reduce::filter what;
        what.from = whole.first + (whole.last - whole.first) / 3;
        what.to = what.from + (whole.last - whole.first) / 5;
        const auto expected = all_of(honest.forward(), what.from, what.to);
        // One entry of those that the range is made of says another time.
        std::vector<std::uint64_t> inside;
        for (std::uint64_t slot = 0; slot < is.sub_buffers; ++slot) {
            const std::uint64_t time = b.get(b.plan().index + slot * 32 + 8, 8);
            if (time > what.from && time < what.to) inside.push_back(slot);
        }
        BOOST_REQUIRE(!inside.empty());
        const std::uint64_t victim = inside[static_cast<std::size_t>(random.below(inside.size()))];
        const std::uint64_t at = b.plan().index + victim * 32 + 8;
        b.put(at, random.one_in(2) ? random.below(whole.first) : whole.last + random.below(1000),
              8);
        auto file = reduce::trace_file::from(b.bytes());
        auto found = all_of(file.forward(what));
        auto wanted = expected;
        std::sort(found.begin(), found.end());
        std::sort(wanted.begin(), wanted.end());
        BOOST_TEST_CONTEXT("seed " << seed) {
            BOOST_TEST(found == wanted, boost::test_tools::per_element());
        }
    }
    // And nothing but nonsense: it ends.
    for (std::uint64_t seed = 1; seed <= repeats(40); ++seed) {
        dice random(seed);
        shape is;
        auto b = random_trace(random, is);
        for (std::uint64_t i = 0; i < is.sub_buffers * 4; ++i) {
            if (random.one_in(3)) b.put(b.plan().index + i * 8, random.below(~std::uint64_t{0}), 8);
        }
        auto file = reduce::trace_file::from(b.bytes());
        reduce::filter what;
        what.from = random.below(20'000);
        what.to = what.from + random.below(20'000);
        (void)all_of(file.forward(what));
        (void)all_of(file.backward(what));
        (void)trace_reduce::extent_of(file.about());
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
