// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// The decoder of intel_bts's AUX area, against a kernel's side that keeps a list.

#include <boost/test/unit_test.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include <trace_ring/drain/session.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/x86/linux/aux_buffer.hpp>

#include <proof.hpp>
#include <x86/linux/bts_kernel.hpp>

BOOST_AUTO_TEST_SUITE(x86_aux_buffer)

namespace tr = trace_ring;
namespace x86 = trace_ring::x86;
using mode = x86::aux_buffer::mode;
using record64 = tr::record::branch_record64;
using trace_ring_test::bts_kernel;
using x86::branch;

static_assert(tr::drain::drainable<x86::aux_buffer>);

namespace {

constexpr std::uint64_t kernel = 0xFFFFFFFF81000000;

/// An area of any size, with its two words.
struct memory {
    explicit memory(std::size_t bytes)
        : words(std::make_unique<std::uint64_t[]>((bytes + 7) / 8)),
          area(reinterpret_cast<std::byte*>(words.get()), bytes) {}
    std::unique_ptr<std::uint64_t[]> words;
    std::span<std::byte> area;
    bts_kernel::word head{0}, tail{0};
};

/// What a reader is given: branches, and a record without an address for a gap.
struct taken {
    std::vector<branch> all;
    std::vector<std::size_t> gaps;  ///< before which record
    void operator()(const branch& one) { all.push_back(one); }
    void operator()(const x86::branch_gap&) { gaps.push_back(all.size()); }
};

/// The same for the kernel's list.
taken expected(const std::vector<bts_kernel::stored>& list) {
    taken out;
    for (const auto& one : list) {
        const auto& [from, to, flags] = one.what;
        if (one.gap) {
            if (out.gaps.empty() || out.gaps.back() != out.all.size())
                out.gaps.push_back(out.all.size());
            continue;
        }
        const bool has_from = from != 0 && from < kernel, has_to = to != 0 && to < kernel;
        if (!has_from && !has_to) continue;
        branch made = has_from && has_to ? branch(from, to)
                      : has_from         ? branch::only_from(from)
                                         : branch::only_to(to);
        if ((flags & 16) != 0) made.set_predicted(true);
        out.all.push_back(made.set_privilege(x86::branch_privilege::user));
    }
    return out;
}

void require_same(const taken& got, const taken& wanted) {
    BOOST_REQUIRE(got.all.size() == wanted.all.size());
    for (std::size_t i = 0; i < got.all.size(); ++i) BOOST_REQUIRE((got.all[i] == wanted.all[i]));
    BOOST_TEST(got.gaps == wanted.gaps, boost::test_tools::per_element());
}

record64 numbered(std::uint64_t n) {
    return {0x400000 + n * 16, 0x500000 + n * 16, n % 2 * 16};
}

}  // namespace

BOOST_AUTO_TEST_CASE(records_are_read_in_order_and_their_room_is_given_back) {
    memory m(4096);
    bts_kernel writer(m.area, m.head, m.tail, false);
    writer.margin = 240;
    x86::aux_buffer reader(m.area, m.head, m.tail, mode::full_trace);
    writer.enable();
    taken got;
    for (std::uint64_t n = 0; n < 10'000; ++n) {
        writer.branch(numbered(n));
        if (n % 50 == 49) {
            writer.interrupt();
            reader.read(got);
            BOOST_TEST(m.tail.load(tr::seq_cst) == m.head.load(tr::seq_cst));
        }
    }
    BOOST_TEST(writer.refused == 0U);
    BOOST_REQUIRE(got.all.size() == 10'000U);
    BOOST_TEST(got.gaps.empty());
    for (std::size_t n = 0; n < 10'000; ++n) {
        BOOST_REQUIRE((got.all[n].from() == 0x400000 + n * 16));
        BOOST_REQUIRE((got.all[n].has_prediction() == (n % 2 != 0)));
    }
    BOOST_TEST(reader.lost().total() == 0U);
}

BOOST_AUTO_TEST_CASE(every_phase_of_the_wrap_is_read_record_by_record) {
    std::mt19937_64 random(5);
    std::uint64_t records = 0, phases = 0;
    const std::uint64_t rounds = trace_ring_test::repeats(40);
    for (std::size_t extra = 0; extra < 24; ++extra) {  // all residues, not only those of pages
        for (const std::size_t slots : {3U, 10U, 41U}) {
            for (const std::uint64_t margin : {0U, 48U}) {
                memory m(slots * 24 + extra);
                bts_kernel writer(m.area, m.head, m.tail, false);
                writer.margin = margin;
                x86::aux_buffer reader(m.area, m.head, m.tail, mode::full_trace);
                writer.on_aux = [&](std::uint64_t offset, std::uint64_t size, std::uint64_t flags) {
                    if ((flags & PERF_AUX_FLAG_TRUNCATED) != 0)
                        reader.note_gap(offset + size, 0, tr::loss_cause::refused);
                };
                taken got;
                writer.enable();
                for (std::uint64_t round = 0; round < rounds; ++round) {
                    const std::uint64_t count = random() % (slots + 2);
                    for (std::uint64_t i = 0; i < count; ++i) writer.branch(numbered(++records));
                    writer.interrupt();
                    if (random() % 4 != 0) {
                        reader.read(got);
                        writer.enable();
                    }
                }
                writer.disable();
                reader.read(got);
                BOOST_TEST_CONTEXT("size " << m.area.size() << ", margin " << margin) {
                    require_same(got, expected(writer.all));
                    BOOST_TEST(reader.lost()[tr::loss_cause::refused] >= got.gaps.size());
                }
                ++phases;
            }
        }
    }
    trace_ring_test::proof("accounted", records, "branches through an AUX area");
}

BOOST_AUTO_TEST_CASE(stretches_padding_and_addresses_of_the_kernel_are_told_apart) {
    std::mt19937_64 random(6);
    memory m(4096);
    bts_kernel writer(m.area, m.head, m.tail, false);
    writer.margin = 240;
    x86::aux_buffer reader(m.area, m.head, m.tail, mode::full_trace);
    writer.enable();
    taken got;
    std::uint64_t filtered = 0;
    for (std::uint64_t n = 0; n < 50'000; ++n) {
        record64 one = numbered(n);
        const auto change = [&](std::uint64_t& address) {
            if (random() % 8 == 0) address = 0;
            if (random() % 8 == 0) address = kernel + n;
        };
        change(one.from);
        change(one.to);
        if (one.from >= kernel || one.to >= kernel) ++filtered;
        writer.branch(one);
        if (n % 37 == 0) {
            writer.interrupt();
            reader.read(got);
        }
    }
    writer.disable();
    reader.read(got);
    require_same(got, expected(writer.all));
    for (const auto& one : got.all) {
        BOOST_REQUIRE((one.has_from() || one.has_to()));
        BOOST_REQUIRE((one.from() < kernel && one.to() < kernel));
    }
    BOOST_TEST(reader.filtered() == filtered);
    BOOST_TEST(reader.padding() > 0U);
}

BOOST_AUTO_TEST_CASE(a_snapshot_holds_the_newest_in_their_order) {
    for (const std::size_t bytes : {24U, 100U, 4096U, 8192U}) {
        for (const std::uint64_t count : {0U, 1U, 4U, 170U, 171U, 341U, 1000U}) {
            BOOST_TEST_CONTEXT(count << " in " << bytes) {
                memory m(bytes);
                bts_kernel writer(m.area, m.head, m.tail, true);
                writer.enable();
                for (std::uint64_t n = 0; n < count; ++n) writer.branch(numbered(n));
                writer.disable();
                x86::aux_buffer reader(m.area, m.head, m.tail, mode::snapshot);
                taken got;
                const std::uint64_t there = reader.read(got);
                BOOST_TEST(there == std::min<std::uint64_t>(count, bytes / 24));
                const taken wanted = expected(writer.all);
                BOOST_REQUIRE(got.all.size() == wanted.all.size());
                for (std::size_t i = 0; i < got.all.size(); ++i)
                    BOOST_REQUIRE((got.all[i] == wanted.all[i]));
                // Earlier records are reported if the area shows them.
                if (count > bytes / 24 && count % (bytes / 24) != 0)
                    BOOST_TEST(got.gaps.size() == 1U);
                if (count < bytes / 24) BOOST_TEST(got.gaps.empty());
                BOOST_TEST(reader.read(got) == 0U);
                BOOST_TEST(m.tail.load(tr::seq_cst) == 0U);
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_session_drains_it_in_place) {
    memory m(4096);
    bts_kernel writer(m.area, m.head, m.tail, false);
    writer.margin = 240;
    x86::aux_buffer reader(m.area, m.head, m.tail, mode::full_trace);
    writer.enable();
    for (std::uint64_t n = 0; n < 100; ++n) writer.branch(numbered(n));
    writer.interrupt();
    std::uint64_t next = 0;
    {
        tr::drain::session session(reader);
        BOOST_CHECK_THROW(tr::drain::session<x86::aux_buffer&>{reader}, std::system_error);
        session.peek_each([&](const x86::aux_portion& portion) {
            BOOST_TEST(portion.records() == 100U);
            BOOST_TEST((portion.bytes().data() == m.area.data()));  // no copy
        });
        BOOST_TEST(m.tail.load(tr::seq_cst) == 0U);
    }
    {
        tr::drain::session session(reader);
        BOOST_TEST(session.for_each_record([&](const branch& one) {
            BOOST_TEST(one.from() == 0x400000 + next++ * 16);
        }) == 100U);
        BOOST_TEST(m.tail.load(tr::seq_cst) == 2400U);
        reader.note_gap(2400, 0, tr::loss_cause::refused);
        for (std::uint64_t n = 100; n < 110; ++n) writer.branch(numbered(n));
        writer.interrupt();
        reader.note_gap(2400 + 240, 7, tr::loss_cause::refused);
        auto held = session.take();
        BOOST_REQUIRE(held);
        BOOST_TEST((*held)->lost()[tr::loss_cause::refused] == 1U);
        BOOST_TEST((*held)->position() == 2400U);
        BOOST_TEST(!session.take());  // one at a time
        held->consume();
        session.finish([](const auto&) {});
        BOOST_TEST(session.lost()[tr::loss_cause::refused] == 8U);
        BOOST_TEST(session.records() == 110U);
    }
    BOOST_TEST(reader.lost().total() == 8U);
}

BOOST_AUTO_TEST_CASE(gaps_stand_where_they_are_said_to_be) {
    memory m(240);
    bts_kernel writer(m.area, m.head, m.tail, false);
    x86::aux_buffer reader(m.area, m.head, m.tail, mode::full_trace);
    writer.enable();
    for (std::uint64_t n = 0; n < 9; ++n) writer.branch(numbered(n));
    writer.interrupt();
    reader.note_gap(7 * 24, 0, tr::loss_cause::refused);
    reader.note_gap(3 * 24, 2, tr::loss_cause::refused);
    reader.note_gap(5 * 24 - 1, 1, tr::loss_cause::refused);  // within a record: it is left out
    reader.note_gap(3 * 24, 4, tr::loss_cause::overwritten);
    std::vector<x86::branch_gap> gaps;
    std::vector<std::uint64_t> all;
    const std::uint64_t seen = reader.read(
        x86::visiting{[&](const branch& one) { all.push_back((one.from() - 0x400000) / 16); },
                      [&](const x86::branch_gap& gap) {
                          gaps.push_back(gap);
                          all.push_back(100);
                      }});
    BOOST_TEST(seen == 8U);
    const std::vector<std::uint64_t> wanted{0, 1, 2, 100, 3, 100, 5, 6, 100, 7, 8};
    BOOST_TEST(all == wanted, boost::test_tools::per_element());
    BOOST_REQUIRE(gaps.size() == 3U);
    BOOST_TEST(gaps[0].count == 6U);
    BOOST_TEST(gaps[1].count == 1U);
    BOOST_TEST(gaps[2].count == 0U);
    BOOST_TEST(reader.lost().total() == 8U);
    BOOST_TEST(reader.lost()[tr::loss_cause::overwritten] == 4U);
}

BOOST_AUTO_TEST_CASE(what_is_kept_is_there_for_the_next_session) {
    memory m(4096);
    bts_kernel writer(m.area, m.head, m.tail, false);
    writer.margin = 240;
    x86::aux_buffer reader(m.area, m.head, m.tail, mode::full_trace);
    writer.enable();
    for (std::uint64_t n = 0; n < 10; ++n) writer.branch(numbered(n));
    writer.interrupt();
    {
        tr::drain::session session(reader);
        BOOST_TEST(session.peek_each([](const auto&) {}) == 1U);
        for (std::uint64_t n = 10; n < 15; ++n) writer.branch(numbered(n));
        writer.interrupt();
        BOOST_TEST(session.for_each_record([](const auto&) {}) == 5U);
        BOOST_TEST(m.tail.load(tr::seq_cst) == 0U);
    }
    tr::drain::session session(reader);
    BOOST_TEST(session.for_each_record([](const auto&) {}) == 15U);
    BOOST_TEST(m.tail.load(tr::seq_cst) == 360U);
}

BOOST_AUTO_TEST_CASE(counts_that_make_no_sense_lead_nowhere) {
    std::mt19937_64 random(7);
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t tries = 0;
    for (const std::uint64_t tail :
         {std::uint64_t{0}, std::uint64_t{5}, most, most / 2, most - 24}) {
        for (int i = 0; i < 2000; ++i, ++tries) {
            memory m(static_cast<std::size_t>(24 + random() % 300));
            for (auto& byte : m.area)
                byte = static_cast<std::byte>(random() % 4 != 0 ? random() : 0);
            m.tail.store(tail, tr::seq_cst);
            const auto how = random() % 2 != 0 ? mode::full_trace : mode::snapshot;
            x86::aux_buffer reader(m.area, m.head, m.tail, how);
            std::uint64_t seen = 0;
            for (int j = 0; j < 4; ++j) {
                const std::uint64_t heads[] = {random(), random() % 1000, most - random() % 100,
                                               tail + random() % 1000, most >> random() % 64};
                m.head.store(heads[random() % 5], tr::seq_cst);
                if (random() % 3 == 0) {
                    reader.note_gap(random() >> random() % 64, random() % 2,
                                    tr::loss_cause::refused);
                }
                seen += reader.read(x86::impl::any_branch_visitor{});
            }
            BOOST_REQUIRE(seen <= 4 * m.area.size() / 24);
        }
    }
    trace_ring_test::proof("hostile", tries, "damaged AUX areas");
}

BOOST_AUTO_TEST_CASE(what_was_overrun_and_what_went_back_is_told) {
    memory m(240);
    x86::aux_buffer reader(m.area, m.head, m.tail, mode::full_trace);
    for (std::size_t i = 0; i < 10; ++i) {
        const record64 one = numbered(i);
        std::memcpy(m.area.data() + i * 24, &one, sizeof one);
    }
    m.head.store(480, tr::seq_cst);
    taken got;
    BOOST_TEST(reader.read(got) == 10U);
    BOOST_TEST(reader.lost()[tr::loss_cause::overrun] == 10U);
    m.head.store(48, tr::seq_cst);
    BOOST_TEST(reader.read(got) == 0U);
    BOOST_TEST(reader.lost()[tr::loss_cause::damaged] == 1U);
    m.head.store(72, tr::seq_cst);
    BOOST_TEST(reader.read(got) == 1U);
}

BOOST_AUTO_TEST_CASE(an_area_that_is_none_is_refused) {
    memory m(64);
    const auto make = [&](std::span<const std::byte> area) {
        x86::aux_buffer reader(area, m.head, m.tail, mode::full_trace);
    };
    BOOST_CHECK_NO_THROW(make(m.area.first(24)));
    BOOST_CHECK_THROW(make(m.area.first(23)), tr::setup_error);
    BOOST_CHECK_THROW(make(m.area.subspan(4)), tr::setup_error);
    BOOST_CHECK_THROW(make({}), tr::setup_error);
}

BOOST_AUTO_TEST_SUITE_END()
