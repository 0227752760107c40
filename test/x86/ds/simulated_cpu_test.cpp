// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// The rules of the debug store, one by one, as the simulated processor obeys them.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <vector>

#include <boost/mpl/list.hpp>
#include <boost/test/unit_test.hpp>

#include <x86/ds/machine.hpp>

BOOST_AUTO_TEST_SUITE(x86_ds_simulated_cpu)

using x86_ds::machine;
using x86_ds::pebs_bytes;
namespace record = trace_ring::record;
namespace x86 = trace_ring::x86;
namespace msr = trace_ring::x86::msr;
using x86::msr_fault;
using x86::when_crossing;
using x86::when_full;
using x86::when_round;

using models = boost::mpl::list<record::ilp32, record::lp64>;

// Vector I1: of the 32-bit layout indexes 0010000C, 00100018, 00100024.
BOOST_AUTO_TEST_CASE_TEMPLATE(three_stores_bring_the_index_to_the_threshold, Model, models) {
    machine<Model> m;
    m.control(0x1C0);
    for (unsigned n = 1; n <= 3; ++n) {
        const x86::executed out = m.cpu.branch(0x1000 + n, 0x2000 + n, n == 2);
        BOOST_TEST(out.branch_stored);
        BOOST_TEST(m.index() == x86_ds::bts_at + n * m.size);
        BOOST_TEST(out.interrupted == (n == 3));
        BOOST_TEST(m.branches[n - 1].from == 0x1000 + n);
        BOOST_TEST(m.branches[n - 1].to == 0x2000 + n);
        BOOST_TEST(m.branches[n - 1].predicted() == (n == 2));
    }
    if (Model::pointer_bytes == 4) BOOST_TEST(m.index() == 0x00100024U);
    BOOST_TEST(m.cpu.interrupts() == 1U);
}

// Vector I6: each row, at each level.
BOOST_AUTO_TEST_CASE_TEMPLATE(each_row_of_the_table_stores_what_it_says, Model, models) {
    using row = std::tuple<std::uint64_t, bool, bool, bool, bool>;
    // DEBUGCTL, messages, CPL > 0 stored, CPL = 0 stored, interrupt
    for (const auto& [debugctl, messages, above, zero, interrupts] :
         {row{0x000, false, false, false, false}, row{0x040, true, false, false, false},
          row{0x0C0, true, true, true, false}, row{0x2C0, true, true, false, false},
          row{0x4C0, true, false, true, false}, row{0x6C0, true, false, false, false},
          row{0x7C0, true, false, false, false}, row{0x1C0, true, true, true, true},
          row{0x3C0, true, true, false, true}, row{0x5C0, true, false, true, true}}) {
        for (const unsigned cpl : {0U, 1U, 2U, 3U}) {
            machine<Model> m({.round = when_round::at_base});
            const bool circular = (debugctl & 0x100) == 0;
            if (circular) m.area.bts.threshold = m.address(x86_ds::bts_at + 6 * m.size);
            m.control(debugctl);
            m.cpu.set_cpl(cpl);
            const bool stored = cpl == 0 ? zero : above;
            for (int n = 0; n < 3; ++n)
                BOOST_TEST(m.cpu.branch(1, 2).branch_stored == stored, debugctl << " " << cpl);
            BOOST_TEST(m.index() == x86_ds::bts_at + (stored ? 3 * m.size : 0));
            BOOST_TEST(m.cpu.messages() == (messages ? 3U : 0U));
            BOOST_TEST(m.cpu.interrupts() == (stored && interrupts ? 1U : 0U), debugctl);
        }
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(interrupts_and_exceptions_are_recorded_and_lead_to_level_0, Model,
                              models) {
    machine<Model> m({.full = when_full::drops});
    m.control(0x1C0);
    m.cpu.set_cpl(3);
    BOOST_TEST(m.cpu.interrupt(0x1111, 0x8000).branch_stored);
    BOOST_TEST(m.cpu.cpl() == 0U);
    BOOST_TEST(m.branches[0].from == 0x1111U);  // the return address
    BOOST_TEST(m.cpu.return_to(0x8010, 0x1111, 3).branch_stored);
    BOOST_TEST(m.cpu.cpl() == 3U);
    BOOST_TEST(m.cpu.exception(0x1234, 0x9000).branch_stored);
    BOOST_TEST(m.cpu.cpl() == 0U);
    BOOST_TEST(m.branches[2].from == 0x1234U);  // the faulting address
    BOOST_TEST(m.branches[2].to == 0x9000U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(which_level_of_a_crossing_branch_counts_is_to_be_said, Model,
                              models) {
    machine<Model> silent;
    silent.control(0x3C0);  // CPL > 0
    silent.cpu.set_cpl(3);
    BOOST_CHECK_THROW(silent.cpu.interrupt(1, 2), std::logic_error);
    BOOST_TEST(silent.cpu.cpl() == 3U);
    BOOST_TEST(silent.index() == x86_ds::bts_at);
    BOOST_TEST(silent.cpu.messages() == 0U);
    for (const auto rule : {when_crossing::origin, when_crossing::target}) {
        machine<Model> m({.crossing = rule});
        m.control(0x3C0);
        m.cpu.set_cpl(3);
        BOOST_TEST(m.cpu.interrupt(1, 2).branch_stored == (rule == when_crossing::origin));
        BOOST_TEST(m.cpu.return_to(3, 4, 3).branch_stored == (rule == when_crossing::target));
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_circular_buffer_goes_round_and_never_interrupts, Model, models) {
    for (const auto rule : {when_round::at_base, when_round::at_maximum}) {
        machine<Model> m({.round = rule});
        m.area.bts.threshold = m.address(x86_ds::bts_at + 5 * m.size);
        m.control(0x0C0);
        for (unsigned n = 0; n < 11; ++n) {
            BOOST_TEST(m.cpu.branch(n + 1, 100).branch_stored);
            BOOST_TEST(m.branches[n % 4].from == n + 1);
            const unsigned next = (n + 1) % 4;
            const unsigned expected = next == 0 && rule == when_round::at_maximum ? 4 : next;
            BOOST_TEST(m.index() == x86_ds::bts_at + expected * m.size);
        }
        BOOST_TEST(m.cpu.interrupts() == 0U);
        BOOST_TEST(m.branches[4].from == 0U);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_end_of_a_circular_buffer_is_to_be_said, Model, models) {
    machine<Model> m;
    m.area.bts.threshold = m.address(x86_ds::bts_at + 5 * m.size);
    m.control(0x0C0);
    for (int n = 0; n < 3; ++n) m.cpu.branch(1, 2);
    BOOST_CHECK_THROW(m.cpu.branch(3, 4), std::logic_error);
    BOOST_TEST(m.index() == x86_ds::bts_at + 3 * m.size);
    BOOST_TEST(m.branches[3].from == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(clearing_btint_is_not_enough_for_a_circular_buffer, Model, models) {
    machine<Model> m({.round = when_round::at_base});
    m.control(0x0C0);  // and the threshold at three of four
    m.cpu.branch(1, 2);
    m.cpu.branch(1, 2);
    BOOST_TEST(m.cpu.branch(1, 2).interrupted);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_full_buffer_in_interrupt_mode_does_what_is_said, Model, models) {
    machine<Model> silent;
    silent.control(0x1C0);
    for (int n = 0; n < 4; ++n) silent.cpu.branch(1, 2);
    BOOST_CHECK_THROW(silent.cpu.branch(3, 4), std::logic_error);
    BOOST_TEST(silent.index() == x86_ds::bts_at + 4 * silent.size);

    for (const auto rule : {when_full::drops, when_full::wraps, when_full::continues}) {
        machine<Model> m({.full = rule});
        m.control(0x1C0);
        for (unsigned n = 0; n < 4; ++n) m.cpu.branch(n + 1, 2);
        m.unmask();
        const x86::executed fifth = m.cpu.branch(5, 6);
        const std::uint64_t slots = (m.index() - x86_ds::bts_at) / m.size;
        switch (rule) {
            case when_full::drops:
                BOOST_TEST(!fifth.branch_stored);
                BOOST_TEST(!fifth.interrupted);
                BOOST_TEST(slots == 4U);
                break;
            case when_full::wraps:
                BOOST_TEST(m.branches[0].from == 5U);
                BOOST_TEST(!fifth.interrupted);
                BOOST_TEST(slots == 1U);
                break;
            default:
                BOOST_TEST(m.branches[4].from == 5U);
                BOOST_TEST(fifth.interrupted);
                BOOST_TEST(slots == 5U);
        }
        BOOST_TEST(m.branches[1].from == 2U);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_maximum_of_a_multiple_plus_one_holds_no_further_record, Model,
                              models) {
    machine<Model> m({.full = when_full::drops});
    m.area.bts.maximum = m.address(x86_ds::bts_at + 4 * m.size + 1);
    m.control(0x1C0);
    for (unsigned n = 0; n < 4; ++n) BOOST_TEST(m.cpu.branch(1, 2).branch_stored);
    BOOST_TEST(!m.cpu.branch(1, 2).branch_stored);
    BOOST_TEST(m.branches[4].from == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_index_beyond_the_maximum_is_full_and_not_unequal, Model, models) {
    machine<Model> m({.full = when_full::drops});
    m.area.bts.index = m.address(x86_ds::bts_at + 6 * m.size);
    m.control(0x1C0);
    BOOST_TEST(!m.cpu.branch(1, 2).branch_stored);
    BOOST_TEST(m.index() == x86_ds::bts_at + 6 * m.size);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_apic_masks_what_it_delivers_and_only_software_clears_that, Model,
                              models) {
    machine<Model> m({.full = when_full::drops});
    m.control(0x1C0);
    m.area.bts.threshold = m.area.bts.base;
    BOOST_TEST(!m.masked());
    BOOST_TEST(m.cpu.branch(1, 2).interrupted);
    BOOST_TEST(m.masked());
    BOOST_TEST(!m.cpu.branch(1, 2).interrupted);
    BOOST_TEST(m.masked());
    m.unmask();
    BOOST_TEST(m.cpu.branch(1, 2).interrupted);
    BOOST_TEST(m.cpu.interrupts() == 2U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(pebs_is_never_circular_and_stops_silently, Model, models) {
    for (const std::uint64_t debugctl : {0x0C0U, 0x1C0U}) {
        machine<Model> m;
        m.control(debugctl);
        m.counting(true);
        for (unsigned n = 1; n <= 5; ++n) {
            const auto record = pebs_bytes<Model>(n);
            const x86::executed out = m.cpu.overflow({0}, record);
            BOOST_TEST(out.pebs_stored == (n <= 3));
            BOOST_TEST(out.interrupted == (n == 2));
            if (n != 3) continue;
            m.unmask();  // what comes now would be heard
            BOOST_TEST(m.value(msr::global_status) == x86::status_ds_overflow);
            static_cast<void>(m.cpu.write(msr::global_ovf_ctrl, ~std::uint64_t{0}));
        }
        BOOST_TEST(m.area.pebs.index == m.area.pebs.maximum);
        BOOST_TEST(std::to_integer<int>(m.pebs[0]) == 1);
        BOOST_TEST(std::to_integer<int>(m.pebs.back()) == 3);
        BOOST_TEST(m.value(msr::global_status) == 0U);
        BOOST_TEST(m.cpu.interrupts() == 1U);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(pebs_resets_its_counter_from_the_area, Model, models) {
    machine<Model> m;
    m.area.reset[0] = 0xFFFFFFFFFFFF0000;
    m.counting(true);
    BOOST_TEST(m.cpu.counter({0}) == 0U);
    m.cpu.overflow({0}, pebs_bytes<Model>(1));
    BOOST_TEST(m.cpu.counter({0}) == 0xFFFFFFFFFFFF0000U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_counter_without_pebs_sets_its_status_bit_and_interrupts, Model,
                              models) {
    machine<Model> m;
    m.counting(false);
    BOOST_TEST(!m.cpu.overflow({1}).interrupted);  // it is not enabled
    BOOST_TEST(m.value(msr::global_status) == 0U);
    BOOST_TEST(m.cpu.overflow({0}).interrupted);
    BOOST_TEST(m.value(msr::global_status) == 1U);
    static_cast<void>(m.cpu.write(msr::global_ctrl, 1ULL << 32));
    m.cpu.overflow({0, true});
    BOOST_TEST(m.value(msr::global_status) == 0x100000001U);
    static_cast<void>(m.cpu.write(msr::global_ovf_ctrl, 1));
    BOOST_TEST(m.value(msr::global_status) == 0x100000000U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(one_instruction_writes_pebs_then_bts_and_then_interrupts_once, Model,
                              models) {
    machine<Model> m;
    m.control(0x1C0);
    m.counting(true);
    m.area.bts.threshold = m.area.bts.base;
    m.area.pebs.threshold = m.area.pebs.base;
    // Both buffers are the same memory: what is there in the end was written last.
    m.memory.map(x86_ds::pebs_at, std::as_writable_bytes(std::span(m.branches)));
    const auto record = pebs_bytes<Model>(0xEE);
    const x86::executed out =
        m.cpu.execute(x86::executed_branch{0x11, 0x22}, x86::executed_overflow{{0}, record});
    BOOST_TEST(out.pebs_stored);
    BOOST_TEST(out.branch_stored);
    BOOST_TEST(out.interrupted);
    BOOST_TEST(m.cpu.interrupts() == 1U);
    BOOST_TEST(m.branches[0].from == 0x11U);
    BOOST_TEST(m.branches[1].from == static_cast<typename Model::pointer_type>(0xEEEEEEEEEEEEEEEE));
    BOOST_TEST(m.area.pebs.index == x86_ds::pebs_at + m.pebs_size);
    BOOST_TEST(m.index() == x86_ds::bts_at + m.size);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_non_canonical_area_raises_a_general_protection_fault, Model,
                              models) {
    for (const unsigned bits : {48U, 57U}) {
        machine<Model> m({.linear_bits = bits});
        const std::uint64_t top = std::uint64_t{1} << (bits - 1);
        for (const std::uint64_t bad :
             {top, ~top, std::uint64_t{1} << 63, ~std::uint64_t{0} >> 1, top << 1}) {
            BOOST_TEST((m.cpu.write(msr::ds_area, bad) == msr_fault::general_protection), bad);
            BOOST_TEST(m.value(msr::ds_area) == x86_ds::area_at);
        }
        for (const std::uint64_t good :
             {top - 1, ~std::uint64_t{0}, ~(top - 1), std::uint64_t{0}}) {
            BOOST_TEST((m.cpu.write(msr::ds_area, good) == msr_fault::none), good);
            BOOST_TEST(m.value(msr::ds_area) == good);
        }
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_area_or_a_buffer_without_memory_is_told_with_its_address, Model,
                              models) {
    machine<Model> m;
    m.control(0x1C0);
    m.counting(true);
    static_cast<void>(m.cpu.write(msr::ds_area, 0x5000));
    const x86::executed no_area = m.cpu.branch(1, 2);
    BOOST_TEST(no_area.memory_fault);
    BOOST_TEST(no_area.fault_at == 0x5000U);
    BOOST_TEST(!no_area.branch_stored);
    BOOST_TEST(!no_area.interrupted);
    BOOST_TEST(m.cpu.overflow({0}, pebs_bytes<Model>(1)).memory_fault);
    static_cast<void>(m.cpu.write(msr::ds_area, x86_ds::area_at));
    m.area.bts.base = m.area.bts.index = m.address(0x7000);
    BOOST_TEST(m.cpu.branch(1, 2).fault_at == 0x7000U);
    BOOST_TEST(m.index() == 0x7000U);
    m.area.pebs.index = m.address(0x9000);
    BOOST_TEST(m.cpu.overflow({0}, pebs_bytes<Model>(1)).fault_at == 0x9000U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(what_a_processor_has_not_it_neither_says_nor_does, Model, models) {
    machine<Model> none({.ds = false});
    BOOST_TEST((none.cpu.cpuid(1).edx >> 21 & 1U) == 0U);
    BOOST_TEST((none.cpu.write(msr::ds_area, 0) == msr_fault::general_protection));
    machine<Model> no_bts({.bts = false, .pebs = false});
    BOOST_TEST(no_bts.value(msr::misc_enable) == (1U << 11 | 1U << 12));
    no_bts.control(0x1C0);
    BOOST_TEST(!no_bts.cpu.branch(1, 2).branch_stored);
    BOOST_TEST((no_bts.cpu.write(msr::pebs_enable, 1) == msr_fault::general_protection));
    machine<Model> no_cpl({.cpl = false});
    BOOST_TEST((no_cpl.cpu.cpuid(1).ecx >> 4 & 1U) == 0U);
    BOOST_TEST((no_cpl.cpu.write(msr::debugctl, 0x3C0) == msr_fault::general_protection));
    BOOST_TEST((no_cpl.cpu.write(msr::debugctl, 0x1C0) == msr_fault::none));
    machine<Model> old({.pdcm = false, .pebs_format = 3});
    BOOST_TEST((old.cpu.read(msr::perf_capabilities).fault == msr_fault::general_protection));
    BOOST_TEST((old.cpu.write(msr::pebs_data_cfg, 0) == msr_fault::general_protection));
    machine<Model> amd({.intel = false});
    BOOST_TEST(amd.cpu.cpuid(0).ebx == 0x68747541U);
    BOOST_TEST(amd.cpu.cpuid(7).edx == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(reserved_bits_and_read_only_registers_raise_a_fault, Model, models) {
    machine<Model> m({.pebs_format = 4});
    for (unsigned bit = 0; bit < 64; ++bit) {
        const bool known = bit < 2 || (bit >= 6 && bit < 16);
        BOOST_TEST((m.cpu.write(msr::debugctl, 1ULL << bit) == msr_fault::none) == known, bit);
    }
    BOOST_TEST((m.cpu.write(msr::perf_capabilities, 0) == msr_fault::general_protection));
    BOOST_TEST((m.cpu.write(msr::global_status, 0) == msr_fault::general_protection));
    BOOST_TEST((m.cpu.write(msr::lvt_pmi, 1ULL << 32) == msr_fault::general_protection));
    BOOST_TEST((m.cpu.read(0x10).fault == msr_fault::general_protection));
    BOOST_TEST((m.cpu.write(0x10, 0) == msr_fault::general_protection));
    BOOST_TEST((m.cpu.write(msr::misc_enable, ~std::uint64_t{0}) == msr_fault::none));
    BOOST_TEST(m.value(msr::misc_enable) == 0U);
    BOOST_TEST(m.value(msr::global_ovf_ctrl) == 0U);
    BOOST_TEST(m.value(msr::perf_capabilities) == 0x400U);
    BOOST_TEST((m.cpu.write(msr::pebs_data_cfg, 3) == msr_fault::none));
    BOOST_TEST(m.cpu.pebs_bytes() == (Model::pointer_bytes == 4 ? 40U : 32U + 32 + 144));
}

BOOST_AUTO_TEST_CASE(a_processor_that_contradicts_its_layout_is_refused) {
    x86::simulated_memory memory;
    const x86::simulated_features legacy{.mode = x86::processor_mode::legacy, .dtes64 = false};
    BOOST_CHECK_THROW(x86::simulated_cpu<record::lp64>(memory, legacy), std::invalid_argument);
    BOOST_CHECK_NO_THROW(x86::simulated_cpu<record::ilp32>(memory, legacy));
    machine<record::lp64> m;
    m.counting(true);
    BOOST_CHECK_THROW(m.cpu.overflow({0}, {}), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(pentium_4_has_its_bits_elsewhere) {
    machine<record::ilp32> m({.control = x86::msr_debugctla});
    m.control(0x1C);  // TR, BTS, BTINT
    BOOST_TEST(m.cpu.branch(1, 2).branch_stored);
    BOOST_TEST((m.cpu.write(msr::debugctl, 0x1C0) == msr_fault::general_protection));
}

BOOST_AUTO_TEST_CASE(memory_is_found_only_where_all_of_it_is) {
    x86::simulated_memory memory;
    std::array<std::byte, 16> low{}, high{};
    memory.map(0x100, low);
    memory.map(0x110, high);
    BOOST_TEST(memory.find(0x100, 16) == low.data());
    BOOST_TEST(memory.find(0x10F, 1) == low.data() + 15);
    BOOST_TEST(memory.find(0x108, 16) == nullptr);  // across two ranges
    BOOST_TEST(memory.find(0xFF, 1) == nullptr);
    BOOST_TEST(memory.find(0x11C, 8) == nullptr);
    BOOST_TEST(memory.find(~std::uint64_t{0}, 8) == nullptr);
    BOOST_TEST(memory.store<std::uint32_t>(0x110, 7));
    BOOST_TEST(memory.load<std::uint32_t>(0x110).value() == 7U);
    BOOST_TEST(!memory.load<std::uint64_t>(0x11A).has_value());
    memory.map(low);
    BOOST_TEST(memory.find(reinterpret_cast<std::uintptr_t>(&low[3]), 1) == &low[3]);
}

BOOST_AUTO_TEST_SUITE_END()
