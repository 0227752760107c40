// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// CPTRAP records, their parameter list, the spool records they lie in, and which are chosen.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <trace_ring/cptrap/record.hpp>
#include <trace_ring/cptrap/selection.hpp>
#include <trace_ring/cptrap/spool_record.hpp>

#include <proof.hpp>

BOOST_AUTO_TEST_SUITE(cptrap_record)

namespace record = trace_ring::record;
using record::cptrap_type;
using record::spool_end;
using bytes = std::vector<std::byte>;

namespace {

template <class... Bytes>
bytes of(Bytes... values) {
    return {static_cast<std::byte>(values)...};
}

bytes counted(std::size_t count, unsigned first = 1) {
    bytes out(count);
    for (auto& one : out) one = static_cast<std::byte>(first++);
    return out;
}

bytes laid_out(cptrap_type type, std::uint16_t code, const bytes& data) {
    bytes out(record::cptrap_most_bytes);
    out.resize(record::put_cptrap(out, type, code, data));
    return out;
}

bytes joined(std::initializer_list<bytes> parts) {
    bytes out;
    for (const auto& part : parts) out.insert(out.end(), part.begin(), part.end());
    return out;
}

/// A spool record that begins with `start`.
bytes padded(bytes start) {
    start.resize(record::spool_record_bytes);
    return start;
}

struct walked {
    std::vector<bytes> records;
    record::spool_stop stop;
};
walked walk(std::span<const std::byte> all, const record::cptrap_lengths& lengths = {}) {
    walked out;
    std::size_t expected = 0;
    out.stop = record::walk_spool(all, lengths, [&](std::size_t at, const auto& one) {
        BOOST_TEST(at == expected);
        expected = at + one.bytes.size();
        out.records.emplace_back(one.bytes.begin(), one.bytes.end());
    });
    return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(c1_four_bytes_become_a_record_of_twelve) {
    const auto list = record::cptrap_list::of(4, 3, 0x00012345);
    bytes raw(8);
    list.store(std::span<std::byte, 8>(raw));
    BOOST_TEST((raw == of(0x00, 0x04, 0x00, 0x03, 0x00, 0x01, 0x23, 0x45)));
    const auto one = laid_out(cptrap_type::cp_interface, list.code(), of(0xC1, 0xC2, 0xC3, 0xC4));
    BOOST_TEST((one == of(0x3F, 0x00, 0x00, 0x03, 0x00, 0x0C, 0x00, 0x00, 0xC1, 0xC2, 0xC3, 0xC4)));
}

BOOST_AUTO_TEST_CASE(c2_264_bytes_are_taken_whole) {
    const auto data = counted(264);
    const auto one = laid_out(cptrap_type::cp_interface, 0xABCD, data);
    BOOST_TEST(one.size() == 272U);
    BOOST_TEST((one == joined({of(0x3F, 0x00, 0xAB, 0xCD, 0x01, 0x10, 0x00, 0x00), data})));
    BOOST_TEST(record::cptrap_list::of(0x0108, 0xABCD, 0).taken() == 264U);
}

BOOST_AUTO_TEST_CASE(c3_of_265_bytes_the_last_is_absent_and_nothing_tells) {
    const auto data = counted(265);
    const auto one = laid_out(cptrap_type::cp_interface, 0xABCD, data);
    BOOST_TEST((one == laid_out(cptrap_type::cp_interface, 0xABCD, counted(264))));
    for (const unsigned length : {265U, 266U, 0x8000U, 0xFFFFU}) {
        const auto list = record::cptrap_list::of(static_cast<std::uint16_t>(length), 0xABCD, 0);
        BOOST_TEST(list.taken() == 264U);
    }
}

BOOST_AUTO_TEST_CASE(a_parameter_list_is_read_and_stored_at_every_alignment) {
    const auto list = record::cptrap_list::of(0x1122, 0x3344, 0x55667788);
    alignas(16) std::array<std::byte, 32> memory{};
    for (std::size_t at = 0; at < 16; ++at) {
        memory.fill(std::byte{0xEE});
        const auto place = std::span(memory).subspan(at).first<8>();
        list.store(place);
        BOOST_TEST((record::cptrap_list::load(place) == list), "at " << at);
        BOOST_TEST(std::count(memory.begin(), memory.end(), std::byte{0xEE}) == 24);
        BOOST_TEST(std::to_integer<int>(memory[at]) == 0x11);
        BOOST_TEST(std::to_integer<int>(memory[at + 7]) == 0x88);
    }
}

BOOST_AUTO_TEST_CASE(a_header_is_kept_with_its_reserved_bytes) {
    const auto raw = of(0x3D, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77);
    const auto header = record::cptrap_header::load(std::span<const std::byte, 8>(raw));
    BOOST_TEST(header.code() == 0x2233);
    BOOST_TEST(header.length() == 0x4455);
    bytes again(8);
    header.store(std::span<std::byte, 8>(again));
    BOOST_TEST((again == raw));
}

BOOST_AUTO_TEST_CASE(records_of_random_lengths_come_back_as_they_went) {
    std::mt19937 random(1);
    const unsigned rounds = trace_ring_test::repeats(2000);
    for (unsigned i = 0; i < rounds; ++i) {
        const auto code = static_cast<std::uint16_t>(random());
        const auto data = counted(random() % 265, static_cast<unsigned>(random()));
        auto one = laid_out(cptrap_type::cp_interface, code, data);
        one.resize(one.size() + random() % 8, std::byte{0xEE});
        const auto seen = record::view_cptrap(one);
        BOOST_REQUIRE(seen);
        BOOST_TEST((seen->type == cptrap_type::cp_interface));
        BOOST_TEST(seen->code == code);
        BOOST_TEST(std::equal(seen->data().begin(), seen->data().end(), data.begin(), data.end()));
    }
}

BOOST_AUTO_TEST_CASE(a_record_that_does_not_fit_is_not_laid_out) {
    bytes small(11, std::byte{0xEE});
    const auto data = counted(4);
    BOOST_TEST(record::put_cptrap(small, cptrap_type::cp_interface, 1, data) == 0U);
    BOOST_TEST((small == bytes(11, std::byte{0xEE})));
}

BOOST_AUTO_TEST_CASE(a_length_that_cannot_be_is_refused) {
    auto one = laid_out(cptrap_type::cp_interface, 1, counted(20));
    BOOST_TEST(record::view_cptrap(one).has_value());
    for (std::size_t cut = 0; cut < one.size(); ++cut) {
        BOOST_TEST(!record::view_cptrap(std::span(one).first(cut)), "cut at " << cut);
    }
    bytes much(5000, std::byte{0x3F});
    for (unsigned length = 0; length < 0x10000; ++length) {
        record::store_big(much, 4, static_cast<std::uint16_t>(length));
        if (record::view_cptrap(much).has_value() != (length >= 8 && length <= 272)) {
            BOOST_ERROR("length " << length);
        }
    }
}

BOOST_AUTO_TEST_CASE(an_entry_and_a_loss_are_types_of_this_library_with_a_header) {
    record::cp_entry entry;
    entry.set(record::cp_event::start_io, true);
    entry.payload[14] = std::byte{0x99};
    const auto as_bytes = std::as_bytes(std::span(&entry, 1));
    const auto one = laid_out(cptrap_type::table_entry, 0x4B, {as_bytes.begin(), as_bytes.end()});
    BOOST_TEST(one.size() == 24U);
    BOOST_TEST(std::to_integer<int>(one[0]) == 0xC5);
    BOOST_REQUIRE((record::view_cptrap(one)->entry()));
    BOOST_TEST((*record::view_cptrap(one)->entry() == entry));
    BOOST_TEST(!record::view_cptrap(one)->lost());
    const auto gone = laid_out(cptrap_type::lost, 2, of(0, 0, 0, 0, 0, 0, 1, 2));
    BOOST_REQUIRE((record::view_cptrap(gone)->lost()));
    BOOST_TEST((record::view_cptrap(gone)->lost()->cause == trace_ring::loss_cause::refused));
    BOOST_TEST(record::view_cptrap(gone)->lost()->count == 0x0102U);
    BOOST_TEST(!record::view_cptrap(laid_out(cptrap_type::lost, 7, counted(8)))->lost());
    BOOST_TEST(!record::view_cptrap(laid_out(cptrap_type::lost, 2, counted(7)))->lost());
    BOOST_TEST(!record::view_cptrap(laid_out(cptrap_type::table_entry, 1, counted(17)))->entry());
}

BOOST_AUTO_TEST_CASE(a_selection_is_a_constant_and_answers_for_each_number) {
    static constexpr auto what = record::cptrap_selection()
                                     .code(3)
                                     .codes(0x00FE, 0x0241)
                                     .without(std::uint16_t{0x0200})
                                     .event(record::cp_event::start_io);
    static_assert(what.takes(3) && !what.takes(4));
    static_assert(what.takes(record::cp_event::start_io) && !what.takes(record::cp_event::iucv));
    unsigned taken = 0;
    for (unsigned code = 0; code < 0x10000; ++code) {
        const bool expected = code == 3 || (code >= 0x00FE && code <= 0x0241 && code != 0x0200);
        if (what.takes(static_cast<std::uint16_t>(code)) != expected) BOOST_ERROR("code " << code);
        taken += expected ? 1 : 0;
    }
    BOOST_TEST(taken == 1U + 0x0144 - 1);
    static constexpr auto all = record::cptrap_selection::everything();
    static_assert(all.takes(0) && all.takes(0xFFFF) && all.takes(cptrap_type{0xFF}));
    static_assert(!record::cptrap_selection().takes(0));
    static_assert(
        !record::cptrap_selection::everything().without(cptrap_type::cp_interface).takes(7));
}

BOOST_AUTO_TEST_CASE(a_record_is_chosen_by_its_type_its_code_or_its_event) {
    const auto what = record::cptrap_selection().code(3).event(record::cp_event::start_io);
    const auto takes = [&](const bytes& one) { return what.takes(*record::view_cptrap(one)); };
    BOOST_TEST(takes(laid_out(cptrap_type::cp_interface, 3, {})));
    BOOST_TEST(!takes(laid_out(cptrap_type::cp_interface, 4, {})));
    bytes entry(16);
    entry[0] = std::byte{0x4B};  // start_io, on the attached processor
    BOOST_TEST(takes(laid_out(cptrap_type::table_entry, 0x4B, entry)));
    entry[0] = std::byte{0x0C};
    BOOST_TEST(!takes(laid_out(cptrap_type::table_entry, 0x0C, entry)));
    BOOST_TEST(!takes(laid_out(cptrap_type{0xC0}, 3, {})));
}

BOOST_AUTO_TEST_CASE(a_full_page_refuses_and_holds_what_it_took_before_a_zero_tail) {
    record::spool_page page;
    const auto one = laid_out(cptrap_type::cp_interface, 1, counted(264));
    for (int i = 0; i < 15; ++i) BOOST_TEST(page.add(one));
    BOOST_TEST(!page.add(one));  // 4080 bytes are in use
    BOOST_TEST(!page.add({}));
    BOOST_TEST(!page.add(of(0x00, 0x01)));
    BOOST_TEST(page.add(laid_out(cptrap_type::cp_interface, 2, counted(8))));
    BOOST_TEST(page.used() == 4096U);
    auto found = walk(page.bytes());
    BOOST_TEST(found.records.size() == 16U);
    BOOST_TEST((found.stop == record::spool_stop{4096, spool_end::whole}));
    page.clear();
    BOOST_TEST(page.add(one));
    found = walk(page.bytes());
    BOOST_TEST((found.records == std::vector<bytes>{one}));
    BOOST_TEST((found.stop == record::spool_stop{272, spool_end::whole}));
    BOOST_TEST(std::count(page.bytes().begin() + 272, page.bytes().end(), std::byte{0}) == 3824);
}

BOOST_AUTO_TEST_CASE(a_walk_names_where_it_ends_and_why) {
    const auto one = laid_out(cptrap_type::cp_interface, 1, counted(4));
    const auto stop = [&](bytes rest) { return walk(padded(joined({one, rest}))).stop; };
    BOOST_TEST((stop({}) == record::spool_stop{12, spool_end::whole}));
    BOOST_TEST(
        (stop(of(0x3E, 0, 0, 0, 0, 8, 0, 0)) == record::spool_stop{12, spool_end::unknown_type}));
    BOOST_TEST(
        (stop(of(0x3F, 0, 0, 0, 0, 7, 0, 0)) == record::spool_stop{12, spool_end::bad_length}));
    BOOST_TEST(
        (stop(of(0x3F, 0, 0, 0, 1, 0x11, 0, 0)) == record::spool_stop{12, spool_end::bad_length}));
    BOOST_TEST(
        (stop(of(0xC0, 0, 0, 0, 0x0F, 0xF5, 0, 0)) == record::spool_stop{12, spool_end::spans}));
    BOOST_TEST(
        (stop(of(0xC0, 0, 0, 0, 0x0F, 0xF4, 0, 0)) == record::spool_stop{4096, spool_end::whole}));
    BOOST_TEST((stop(of(0, 0, 0, 1)) == record::spool_stop{12, spool_end::tail}));
    auto full = padded(one);
    full[4089] = std::byte{0x3F};
    BOOST_TEST((walk(full).stop == record::spool_stop{12, spool_end::tail}));
    // A header that begins in the last 7 bytes.
    const auto long_one = laid_out(cptrap_type{0xC1}, 0, {});
    auto last = joined({long_one, bytes(4096 - 8, std::byte{0x3F})});
    record::store_big(last, 4, std::uint16_t{4090});
    BOOST_TEST((walk(last).stop == record::spool_stop{4090, spool_end::spans}));
}

BOOST_AUTO_TEST_CASE(a_type_whose_length_is_told_is_passed_on_as_it_is) {
    const auto known =
        record::cptrap_lengths().fixed(cptrap_type{0x0B}, 16).by_header(cptrap_type{0x3E});
    const auto entry = joined({of(0x0B), counted(15)});
    const auto headed = joined({of(0x3E, 9, 0, 5, 0, 10, 9, 9), of(1, 2)});
    const auto all = padded(joined({entry, headed, entry}));
    const auto found = walk(all, known);
    BOOST_TEST((found.records == std::vector<bytes>{entry, headed, entry}));
    BOOST_TEST((found.stop == record::spool_stop{42, spool_end::whole}));
    BOOST_TEST((walk(all).stop == record::spool_stop{0, spool_end::unknown_type}));
    const auto none = record::cptrap_lengths().fixed(cptrap_type::cp_interface, 0);
    BOOST_TEST(!none.knows(cptrap_type::cp_interface));
    BOOST_TEST(!record::cptrap_lengths().knows(cptrap_type{0x3D}));
}

BOOST_AUTO_TEST_CASE(a_spool_record_cut_at_every_byte_gives_the_whole_records_before) {
    const auto first = laid_out(cptrap_type::cp_interface, 1, counted(40));
    const auto second = laid_out(cptrap_type::cp_interface, 2, counted(264));
    const auto all = padded(joined({first, second}));
    for (std::size_t cut = 0; cut < all.size(); ++cut) {
        const auto found = walk(std::span(all).first(cut));
        const std::size_t whole = cut < first.size()                   ? 0
                                  : cut < first.size() + second.size() ? 1
                                                                       : 2;
        BOOST_TEST(found.records.size() == whole, "cut at " << cut);
        BOOST_TEST((found.stop.why == spool_end::cut), "cut at " << cut);
    }
    trace_ring_test::proof("hostile", all.size(), "damaged files");
}

BOOST_AUTO_TEST_SUITE_END()
