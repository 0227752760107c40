// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Sub-buffers copied together: the same as those copied alone, or none.

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <proof.hpp>
#include <reduce/file_builder.hpp>
#include <reduce/random_trace.hpp>
#include <reduce/scratch_file.hpp>
#include <reduce/told.hpp>
#include <trace_ring/reduce/cursor/read_ahead.hpp>
#include <trace_ring/reduce/trace_file.hpp>

BOOST_AUTO_TEST_SUITE(batch, *boost::unit_test::label("one_thread"))

using namespace trace_ring_test;
namespace reduce = trace_ring::reduce;
namespace layout = trace_ring::layout;
using trace_ring::position;
using trace_ring::sub_buffer_header;
using trace_ring::sub_buffer_state;

namespace {

/// A ring of 8 sub-buffers of one lane, 12 opened: positions 5 to 12, all but the last closed.
struct ring_of_eight {
    file_builder file{{.sub_buffers = 8}};
    scratch_file scratch;
    std::unique_ptr<reduce::tables> in;

    ring_of_eight() {
        const auto& tick = file.event({1, "tick", {{"n"}}});
        const auto lane = file.lane(file.process(1200), 11);
        for (std::uint64_t i = 0; i < 12; ++i) {
            file.open(lane, 1000 + i * 10);
            for (std::uint64_t k = 0; k < 3; ++k) {
                (void)file.record(lane, 1000 + i * 10 + k, tick, {i * 3 + k});
            }
            if (i != 11) file.close(lane, 1009 + i * 10);
        }
        file.put(file.plan().ring + offsetof(layout::ring_state, cursor), 12, 8);
        file.save(scratch.path());
        in = std::make_unique<reduce::tables>(reduce::source::open(scratch.path()));
    }
    [[nodiscard]] std::vector<reduce::planned_copy> plan(bool seen) const {
        std::vector<reduce::planned_copy> out;
        for (position at = 9; at <= 16; ++at) {  // by slot
            const position pos = at <= 12 ? at : at - 8;
            const std::uint64_t header = file.slot_at(pos);
            const auto commit = static_cast<std::uint32_t>(
                file.get(header + offsetof(sub_buffer_header, commit), 4));
            out.push_back({pos, trace_ring::slot_of(pos, 8), 1, seen ? commit : 0});
        }
        return out;
    }
    /// Which are copied when the file has been changed since it was looked at.
    [[nodiscard]] std::string copied_after(const std::function<void(ring_of_eight&)>& change,
                                           bool seen = true) {
        const auto what = plan(seen);
        change(*this);
        file.save(scratch.path());
        reduce::batch all;
        all.fill(*in, what);
        std::string out;
        for (std::size_t i = 0; i < what.size(); ++i) {
            out += all[i].copied ? static_cast<char>('a' + what[i].pos - 5) : '.';
            if (!all[i].copied) continue;
            BOOST_TEST(all[i].list.head().state.pos == what[i].pos);
            BOOST_TEST(all[i].list.head().records == 3U);
            BOOST_TEST(all[i].list.head().first_position == (what[i].pos - 1) * 3);
            BOOST_TEST(all[i].list.offset() == file.slot_at(what[i].pos));
        }
        return out;
    }
    void set_state(position pos, position now, sub_buffer_state state) {
        file.put(file.slot_at(pos) + offsetof(sub_buffer_header, state),
                 trace_ring::stamped{now, static_cast<unsigned>(state)}.word(), 8);
    }
    void set_cursor(position to) {
        file.put(file.plan().ring + offsetof(layout::ring_state, cursor), to, 8);
    }
};

}  // namespace

BOOST_AUTO_TEST_CASE(what_is_closed_is_copied_and_what_is_open_is_not) {
    for (const bool seen : {true, false}) {
        ring_of_eight ring;
        BOOST_TEST(ring.copied_after([](auto&) {}, seen) == "efg.abcd");
    }
}

BOOST_AUTO_TEST_CASE(what_was_claimed_since_it_was_seen_is_not_copied) {
    // The cursor says that positions 13 and 14 were drawn, whose slots are those of 5 and 6.
    for (const bool seen : {true, false}) {
        const auto after = [seen](sub_buffer_state state, position now) {
            ring_of_eight ring;
            return ring.copied_after(
                [&](ring_of_eight& r) {
                    r.set_cursor(14);
                    r.set_state(6, now, state);
                },
                seen);
        };
        BOOST_TEST(after(sub_buffer_state::closed, 6) == "efg.abcd");  // not reached yet
        BOOST_TEST(after(sub_buffer_state::reading, 6) == "efg.abcd");
        BOOST_TEST(after(sub_buffer_state::reset, 14) == "efg.a.cd");
        BOOST_TEST(after(sub_buffer_state::active, 14) == "efg.a.cd");
        BOOST_TEST(after(sub_buffer_state::closed, 14) == "efg.a.cd");
        BOOST_TEST(after(sub_buffer_state::active, 6) == "efg.a.cd");  // another thread continues
        BOOST_TEST(after(sub_buffer_state::free, 6) == "efg.a.cd");
    }
}

BOOST_AUTO_TEST_CASE(cursors_of_other_rings_count_and_absurd_ones_do_no_harm) {
    for (const position cursor :
         {position{0}, position{13}, ~position{0}, trace_ring::last_position}) {
        ring_of_eight ring;
        BOOST_TEST(ring.copied_after([&](ring_of_eight& r) {
            r.file.put(r.file.plan().ring + offsetof(layout::ring_state, quotas), cursor, 8);
            r.set_state(7, 15, sub_buffer_state::reset);
        }) == "efg.ab.d");
        ring_of_eight other;
        BOOST_TEST(other.copied_after([&](ring_of_eight& r) { r.set_cursor(cursor); }) ==
                   "efg.abcd");
    }
}

BOOST_AUTO_TEST_CASE(what_has_more_than_was_seen_or_is_damaged_is_left_to_others) {
    const auto after = [](std::size_t field, std::uint64_t value, std::size_t bytes) {
        ring_of_eight ring;
        return ring.copied_after(
            [&](ring_of_eight& r) { r.file.put(r.file.slot_at(10) + field, value, bytes); });
    };
    const auto pack = [](std::uint32_t records, std::uint32_t end) {
        return trace_ring::commit_word::pack(records, end);
    };
    BOOST_TEST(after(offsetof(sub_buffer_header, commit), pack(4, 64 + 4 * 16), 4) == "e.g.abcd");
    BOOST_TEST(after(offsetof(sub_buffer_header, magic), 0, 4) == "e.g.abcd");
    BOOST_TEST(after(offsetof(sub_buffer_header, lane), 2, 4) == "e.g.abcd");
    for (const auto wrong : {pack(3, 65), pack(3, 56), pack(3, 520), pack(3, 32768)}) {
        ring_of_eight ring;
        ring.file.put(ring.file.slot_at(10) + offsetof(sub_buffer_header, commit), wrong, 4);
        BOOST_TEST(ring.copied_after([](auto&) {}) == "e.g.abcd");  // as it was seen, too
    }
}

BOOST_AUTO_TEST_CASE(a_file_that_was_cut_gives_what_is_whole) {
    ring_of_eight ring;
    const auto what = ring.plan(true);
    ring.file.save(ring.scratch.path(),
                   static_cast<std::size_t>(ring.file.slot_at(11) + 511));  // the third slot
    reduce::batch all;
    all.fill(*ring.in, what);
    for (std::size_t i = 0; i < what.size(); ++i) BOOST_TEST(all[i].copied == (i < 2));
    ring.file.save(ring.scratch.path(), 100);
    all.fill(*ring.in, what);
    for (std::size_t i = 0; i < what.size(); ++i) BOOST_TEST(!all[i].copied);
}

BOOST_AUTO_TEST_CASE(a_file_tells_what_memory_does) {
    dice random(20'260'101);
    const int rounds = static_cast<int>(trace_ring_test::repeats(40));
    for (int round = 0; round < rounds; ++round) {
        shape is;
        is.sub_buffers = 40 + random.below(200);
        is.opened = 20 + random.below(400);
        is.lanes = static_cast<std::uint32_t>(2 + random.below(11));
        is.jumps = random.one_in(3);
        is.losses = random.one_in(2);
        is.sampled = random.one_in(3);
        is.quiet = random.one_in(3) && is.lanes > 3;
        is.ahead = random.one_in(3);
        auto made = random_trace(random, is);
        flip_bits(made, random, random.one_in(2) ? random.below(40) : 0);
        const scratch_file scratch;
        made.save(scratch.path());
        const auto memory = reduce::trace_file::from(std::as_const(made).bytes());
        const auto file = reduce::trace_file::open(scratch.path());
        reduce::filter part;
        part.from = 1000 + random.below(3000);
        part.to = part.from + random.below(3000);
        for (const reduce::filter& what : {reduce::filter{}, part}) {
            for (const auto order : {reduce::merging::by_time, reduce::merging::by_lane}) {
                BOOST_TEST_CONTEXT("round " << round) {
                    BOOST_TEST(told_of(file, file.forward(what, order)) ==
                                   told_of(memory, memory.forward(what, order)),
                               boost::test_tools::per_element());
                    BOOST_TEST(told_of(file, file.backward(what, order)) ==
                                   told_of(memory, memory.backward(what, order)),
                               boost::test_tools::per_element());
                }
            }
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()
