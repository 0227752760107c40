// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// PEBS records and the table of CPL-qualified encodings. Sizes and offsets are asserted where they
// are defined; here is what is read from bytes.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <trace_ring/x86/ds/hardware/bts_setting.hpp>
#include <trace_ring/x86/ds/hardware/ds_layout.hpp>
#include <trace_ring/x86/ds/hardware/pebs_record.hpp>

BOOST_AUTO_TEST_SUITE(x86_ds_layout)

namespace record = trace_ring::record;
namespace x86 = trace_ring::x86;
using x86::bts_levels;
using x86::bts_mode;
using x86::bts_setting;
using x86::pebs_fault;

namespace {

/// An adaptive record whose words are their own numbers, but the first.
std::vector<std::uint64_t> adaptive(std::uint32_t groups, std::size_t bytes,
                                    std::uint16_t latency = 0) {
    std::vector<std::uint64_t> words(bytes < 8 ? 1 : (bytes + 7) / 8);
    for (std::size_t i = 1; i < words.size(); ++i) words[i] = i;
    words[0] = std::uint64_t{bytes} << 48 | std::uint64_t{latency} << 32 | groups;
    return words;
}
std::span<const std::byte> bytes_of(const std::vector<std::uint64_t>& words) {
    return std::as_bytes(std::span(words));
}
/// The number of the first word of a group, as `adaptive` filled it.
std::uint64_t first_word(std::span<const std::byte> group) {
    return x86::pebs_adaptive::load<std::uint64_t>(group);
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_words_of_the_area_lie_where_the_processor_has_them_in_both_layouts) {
    x86::ds_area32 narrow{};
    x86::ds_area64 wide{};
    for (unsigned n = 0; n < 8; ++n) {
        const auto field = static_cast<x86::ds_field>(n);
        const std::uint32_t low = 0x100 + n;
        const std::uint64_t high = 0x100000000 + n;
        std::memcpy(reinterpret_cast<std::byte*>(&narrow) + x86::offset_of<record::ilp32>(field),
                    &low, 4);
        std::memcpy(reinterpret_cast<std::byte*>(&wide) + x86::offset_of<record::lp64>(field),
                    &high, 8);
    }
    BOOST_TEST(narrow.bts.base == 0x100U);
    BOOST_TEST(narrow.bts.threshold == 0x103U);
    BOOST_TEST(narrow.pebs.index == 0x105U);
    BOOST_TEST(wide.bts.index == 0x100000001U);
    BOOST_TEST(wide.bts.maximum == 0x100000002U);
    BOOST_TEST(wide.pebs.threshold == 0x100000007U);
}

BOOST_AUTO_TEST_CASE(each_format_has_its_resets_and_a_counter_without_one_has_none) {
    const auto resets = [](unsigned format, bool fixed) {
        unsigned count = 0;
        while (x86::reset_offset<record::lp64>(format, {count, fixed}) != 0) ++count;
        return count;
    };
    for (const unsigned format : {0U, 1U, 2U, 3U}) {
        BOOST_TEST(resets(format, false) == 4U);
        BOOST_TEST(resets(format, true) == 0U);
    }
    BOOST_TEST(resets(4, false) == 8U);
    BOOST_TEST(resets(5, false) == 32U);
    BOOST_TEST(resets(6, true) == 16U);
    BOOST_TEST((x86::reset_offset<record::ilp32>(0, {1, false})) == 0U);
    BOOST_TEST((x86::reset_offset<record::ilp32>(4, {0, true})) == 0U);
    BOOST_TEST((x86::pebs_counter{3, false}.mask()) == 8U);
    BOOST_TEST((x86::pebs_counter{1, true}.mask()) == 0x200000000U);
}

BOOST_AUTO_TEST_CASE(a_pebs_record_has_the_length_of_its_format) {
    BOOST_TEST(x86::pebs_record_bytes<record::ilp32>(0) == 40U);
    BOOST_TEST(x86::pebs_record_bytes<record::ilp32>(4, 0xF) == 40U);
    const std::array<std::size_t, 5> expected{144, 176, 192, 200, 32};
    for (unsigned format = 0; format < expected.size(); ++format)
        BOOST_TEST(x86::pebs_record_bytes<record::lp64>(format) == expected[format]);
    BOOST_TEST(x86::pebs_record_bytes<record::lp64>(4, 0x1F00000F) == 1232U);
    BOOST_TEST(x86::pebs_record_bytes<record::lp64>(5, x86::pebs_has_lbr) == 56U);
    BOOST_TEST(x86::pebs_record_bytes<record::lp64>(4, 0x1F000000) == 32U);  // no LBR requested
}

BOOST_AUTO_TEST_CASE(every_choice_of_groups_is_taken_apart_in_their_order) {
    for (std::uint32_t chosen = 0; chosen < 16; ++chosen) {
        const std::uint32_t groups = chosen | ((chosen & 8U) != 0 ? 4U << 24 : 0U);  // five entries
        const std::size_t size = x86::pebs_adaptive_bytes(groups);
        const auto words = adaptive(groups, size, 77);
        const x86::pebs_adaptive out = x86::decode_adaptive(bytes_of(words));
        BOOST_TEST((out.fault == pebs_fault::none), "groups " << chosen);
        BOOST_TEST(out.basic.retire_latency() == 77);
        BOOST_TEST(out.basic.bytes() == size);
        BOOST_TEST(out.basic.ip == 1U);
        BOOST_TEST(out.basic.tsc == 3U);
        std::uint64_t next = 4;
        const auto lies_next = [&](bool there, std::span<const std::byte> group,
                                   std::size_t bytes) {
            BOOST_TEST(group.size() == (there ? bytes : 0), "groups " << chosen);
            if (!there) return;
            BOOST_TEST(first_word(group) == next, "groups " << chosen);
            next += bytes / 8;
        };
        lies_next((chosen & 1U) != 0, out.memory, 32);
        lies_next((chosen & 2U) != 0, out.registers, 144);
        lies_next((chosen & 4U) != 0, out.vectors, 256);
        lies_next((chosen & 8U) != 0, out.lbr, 5 * 24);
        BOOST_TEST(out.unknown.empty());
        BOOST_TEST(next * 8 == size);
    }
}

BOOST_AUTO_TEST_CASE(a_group_is_loaded_by_its_names_and_nothing_is_loaded_beyond_it) {
    const std::uint32_t groups =
        x86::pebs_has_memory | x86::pebs_has_registers | x86::pebs_has_lbr | 1U << 24;
    const auto words = adaptive(groups, x86::pebs_adaptive_bytes(groups));
    const auto out = x86::decode_adaptive(bytes_of(words));
    const auto memory = out.load<x86::pebs_memory>(out.memory);
    BOOST_TEST(memory.address == 4U);
    BOOST_TEST(memory.tx == 7U);
    const auto registers = out.load<x86::pebs_registers>(out.registers);
    BOOST_TEST(registers.flags == 8U);
    BOOST_TEST(registers.cx == 11U);
    BOOST_TEST(registers.bx == 13U);
    BOOST_TEST(registers.r[7] == 25U);
    BOOST_TEST(out.lbr_entries() == 2U);
    BOOST_TEST(out.load<x86::pebs_lbr_entry>(out.lbr, 1).to == 30U);
    BOOST_TEST(out.load<x86::pebs_lbr_entry>(out.lbr, 2).to == 0U);
    BOOST_TEST(out.load<x86::pebs_vectors>(out.vectors).xmm[0][0] == 0U);
}

BOOST_AUTO_TEST_CASE(a_record_that_contradicts_itself_is_refused_with_the_place) {
    const auto fault = [](std::uint32_t groups, std::size_t says, std::size_t there) {
        auto words = adaptive(groups, 2048);
        words[0] = std::uint64_t{says} << 48 | groups;
        return x86::decode_adaptive(bytes_of(words).first(there));
    };
    BOOST_TEST((fault(0, 32, 31).fault == pebs_fault::cut));
    BOOST_TEST(fault(0, 32, 31).at == 31U);
    BOOST_TEST((fault(0, 32, 0).fault == pebs_fault::cut));
    BOOST_TEST((fault(1, 64, 63).fault == pebs_fault::cut));
    BOOST_TEST((fault(0, 0, 64).fault == pebs_fault::length));
    BOOST_TEST((fault(0, 24, 64).fault == pebs_fault::length));
    BOOST_TEST((fault(0, 36, 64).fault == pebs_fault::length));
    BOOST_TEST(fault(0, 36, 64).at == 6U);
    BOOST_TEST((fault(0, 40, 64).fault == pebs_fault::groups));
    BOOST_TEST((fault(1, 56, 64).fault == pebs_fault::groups));
    BOOST_TEST((fault(8U | 32U << 24, 32 + 33 * 24, 2048).fault == pebs_fault::too_many_lbrs));
    BOOST_TEST((fault(8U | 31U << 24, 32 + 32 * 24, 2048).fault == pebs_fault::none));
    BOOST_TEST((fault(0, 32, 2048).fault == pebs_fault::none));
    for (unsigned n = 0; n < 5; ++n)
        BOOST_TEST(std::strlen(to_string(static_cast<pebs_fault>(n))) > 10U);
}

BOOST_AUTO_TEST_CASE(groups_of_a_later_format_are_handed_out_as_they_are) {
    const auto words = adaptive(0x10U | x86::pebs_has_memory, 32 + 32 + 16);
    const auto out = x86::decode_adaptive(bytes_of(words));
    BOOST_TEST((out.fault == pebs_fault::none));
    BOOST_TEST(first_word(out.memory) == 4U);
    BOOST_TEST(out.unknown.size() == 16U);
    BOOST_TEST(first_word(out.unknown) == 8U);
}

BOOST_AUTO_TEST_CASE(the_extent_of_a_record_is_its_formats_or_its_own) {
    const auto words = adaptive(x86::pebs_has_memory, 64);
    const auto all = bytes_of(words);
    BOOST_TEST(x86::pebs_extent_of<record::lp64>(all, 4).bytes == 64U);
    BOOST_TEST((x86::pebs_extent_of<record::lp64>(all.first(60), 4).fault == pebs_fault::cut));
    BOOST_TEST((x86::pebs_extent_of<record::lp64>(all, 0).fault == pebs_fault::cut));
    BOOST_TEST(x86::pebs_extent_of<record::ilp32>(all, 0).bytes == 40U);
    BOOST_TEST((x86::pebs_extent_of<record::ilp32>(all.first(39), 0).fault == pebs_fault::cut));
}

BOOST_AUTO_TEST_CASE(every_row_of_the_table_is_encoded_and_decoded) {
    struct row {
        std::uint64_t debugctl;
        bts_setting setting;
        bool above_zero, zero;  // what is stored
    };
    const std::array<row, 10> rows{{
        {0x000, {bts_mode::off, bts_levels::all}, false, false},
        {0x040, {bts_mode::generated, bts_levels::all}, false, false},
        {0x0C0, {bts_mode::circular, bts_levels::all}, true, true},
        {0x2C0, {bts_mode::circular, bts_levels::above_zero}, true, false},
        {0x4C0, {bts_mode::circular, bts_levels::zero}, false, true},
        {0x6C0, {bts_mode::circular, bts_levels::none}, false, false},
        {0x7C0, {bts_mode::interrupt, bts_levels::none}, false, false},
        {0x1C0, {bts_mode::interrupt, bts_levels::all}, true, true},
        {0x3C0, {bts_mode::interrupt, bts_levels::above_zero}, true, false},
        {0x5C0, {bts_mode::interrupt, bts_levels::zero}, false, true},
    }};
    for (const row& r : rows) {
        BOOST_TEST((decode(x86::ia32_debugctl, r.debugctl) == r.setting), r.debugctl);
        BOOST_TEST(encode(x86::ia32_debugctl, r.setting) == r.debugctl);
        BOOST_TEST(r.setting.stores_at(0) == r.zero, r.debugctl);
        for (const unsigned cpl : {1U, 2U, 3U})
            BOOST_TEST(r.setting.stores_at(cpl) == r.above_zero, r.debugctl);
        // the same bits of Pentium 4, four places lower
        BOOST_TEST((decode(x86::msr_debugctla, r.debugctl >> 4) == r.setting), r.debugctl);
        BOOST_TEST(encode(x86::msr_debugctla, r.setting) == r.debugctl >> 4);
    }
}

BOOST_AUTO_TEST_CASE(the_bits_that_a_row_does_not_ask_for_do_not_matter) {
    int rows = 0;
    for (std::uint64_t value = 0; value < 0x10000; ++value) {
        const bts_setting setting = decode(x86::ia32_debugctl, value);
        const std::uint64_t normal = encode(x86::ia32_debugctl, setting);
        if ((value & 0x40) == 0) {
            if (normal != 0) BOOST_ERROR("off: " << value);
        } else if ((value & 0x80) == 0) {
            if (normal != 0x40) BOOST_ERROR("not stored: " << value);
        } else if (normal != (value & 0x7C0)) {
            BOOST_ERROR("stored: " << value);
        }
        if (decode(x86::ia32_debugctl, normal) != setting) BOOST_ERROR("not the same: " << value);
        ++rows;
    }
    BOOST_TEST(rows == 0x10000);
}

BOOST_AUTO_TEST_CASE(a_register_without_bits_for_privilege_levels_encodes_no_filter) {
    for (const auto* bits : {&x86::msr_debugctlb, &x86::ia32_debugctl_without_cpl}) {
        BOOST_TEST(can_encode(*bits, {bts_mode::circular, bts_levels::all}));
        BOOST_TEST(can_encode(*bits, {bts_mode::off, bts_levels::zero}));
        BOOST_TEST(encode(*bits, {bts_mode::interrupt, bts_levels::all}) == 0x1C0U);
        for (const auto levels : {bts_levels::above_zero, bts_levels::zero, bts_levels::none}) {
            BOOST_TEST(!can_encode(*bits, {bts_mode::circular, levels}));
            BOOST_TEST(encode(*bits, {bts_mode::circular, levels}) == 0U);
        }
        BOOST_TEST((decode(*bits, 0x7C0) == bts_setting{bts_mode::interrupt, bts_levels::all}));
    }
}

BOOST_AUTO_TEST_SUITE_END()
