// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// What a processor has, and the ways to its registers.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <boost/test/unit_test.hpp>

#include <trace_ring/policy/storage/mapping.hpp>
#include <trace_ring/x86/ds/hardware/features.hpp>
#include <trace_ring/x86/ds/msr/msr_device.hpp>
#include <trace_ring/x86/ds/msr/ring0_msr.hpp>

#include <recorder/scratch.hpp>

BOOST_AUTO_TEST_SUITE(x86_ds_features)

namespace record = trace_ring::record;
namespace x86 = trace_ring::x86;
namespace msr = trace_ring::x86::msr;
using x86::ds_missing;
using x86::msr_fault;
using x86::processor_mode;

namespace {

/// A processor made of its answers. Registers that are not in the map raise #GP.
struct made_up {
    std::map<std::uint32_t, x86::cpuid_value> leaves;
    std::map<std::uint32_t, std::uint64_t> registers;
    msr_fault fault = msr_fault::general_protection;
    int reads = 0;

    [[nodiscard]] x86::cpuid_value cpuid(std::uint32_t leaf) const noexcept {
        const auto found = leaves.find(leaf);
        return found == leaves.end() ? x86::cpuid_value{} : found->second;
    }
    [[nodiscard]] x86::msr_value read(std::uint32_t number) noexcept {
        ++reads;
        const auto found = registers.find(number);
        if (found == registers.end()) return {0, fault};
        return {found->second};
    }
    [[nodiscard]] msr_fault write(std::uint32_t, std::uint64_t) noexcept { return fault; }
};
static_assert(x86::msr_access<made_up> && x86::cpuid_source<made_up>);

struct without_write {
    [[nodiscard]] x86::msr_value read(std::uint32_t) noexcept { return {}; }
};
struct that_throws {
    [[nodiscard]] x86::msr_value read(std::uint32_t) { return {}; }
    [[nodiscard]] msr_fault write(std::uint32_t, std::uint64_t) { return msr_fault::none; }
};
static_assert(!x86::msr_access<without_write> && !x86::msr_access<that_throws>);
static_assert(!x86::msr_access<int> && !x86::cpuid_source<int>);

/// Everything there is, with PEBS of format 3.
made_up complete() {
    return {{{0, {1, 0x756E6547, 0x6C65746E, 0x49656E69}},
             {1, {0, 0, 1U << 2 | 1U << 4 | 1U << 15, 1U << 21}}},
            {{0x1A0, 0}, {0x345, 3U << 8 | 1U << 14 | 1U << 6}}};
}
ds_missing first_missing(made_up from, const x86::ds_needs& need,
                         processor_mode mode = processor_mode::legacy) {
    return missing(detect(from, from, mode), need);
}

/// Opens, and returns the cause from the error; empty: it opened.
std::string open_error(unsigned cpu, const std::string& devices, const std::string& processors,
                       int expected) {
    try {
        const x86::msr_device device(cpu, devices, processors);
        return {};
    } catch (const trace_ring::setup_error& e) {
        BOOST_TEST(e.code().value() == expected);
        return e.what();
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE(everything_that_is_there_is_found) {
    made_up from = complete();
    const x86::ds_features have = detect(from, from, processor_mode::legacy);
    BOOST_TEST(have.intel);
    BOOST_TEST(have.ds);
    BOOST_TEST(have.bts);
    BOOST_TEST(have.pebs);
    BOOST_TEST(have.dtes64);
    BOOST_TEST(have.cpl);
    BOOST_TEST(have.pdcm);
    BOOST_TEST(have.pebs_format == 3);
    BOOST_TEST(have.pebs_trap_like);
    BOOST_TEST(!have.pebs_arch_registers);
    BOOST_TEST(have.pebs_baseline);
    BOOST_TEST((have.control() == x86::ia32_debugctl));
    BOOST_TEST(
        (missing(have, {record::program_mode::lp64, true, true, true}) == ds_missing::nothing));
}

BOOST_AUTO_TEST_CASE(each_bit_says_what_it_says_and_no_more) {
    made_up none = complete();
    none.leaves[1] = {0, 0, 0, 1U << 21};
    const auto bare = detect(none, none, processor_mode::legacy);
    BOOST_TEST(bare.bts);
    BOOST_TEST(!bare.dtes64);
    BOOST_TEST(!bare.cpl);
    BOOST_TEST(!bare.pdcm);
    BOOST_TEST(bare.pebs_format == 0);
    BOOST_TEST((bare.control() == x86::ia32_debugctl_without_cpl));
    for (const unsigned bit : {2U, 4U, 15U}) {
        made_up one = complete();
        one.leaves[1].ecx = 1U << bit;
        const auto have = detect(one, one, processor_mode::legacy);
        BOOST_TEST(have.dtes64 == (bit == 2));
        BOOST_TEST(have.cpl == (bit == 4));
        BOOST_TEST(have.pdcm == (bit == 15));
        BOOST_TEST(have.pebs_format == (bit == 15 ? 3 : 0));
    }
    for (unsigned format = 0; format < 16; ++format) {
        made_up other = complete();
        other.registers[0x345] = ~(std::uint64_t{15} << 8) | std::uint64_t{format} << 8;
        BOOST_TEST(detect(other, other, processor_mode::legacy).pebs_format == format);
    }
}

BOOST_AUTO_TEST_CASE(the_layout_is_64_bit_always_with_dtes64_and_else_in_ia32e_mode) {
    for (const bool dtes64 : {false, true}) {
        for (const auto mode : {processor_mode::legacy, processor_mode::ia32e}) {
            made_up from = complete();
            if (!dtes64) from.leaves[1].ecx &= ~4U;
            const bool wide = dtes64 || mode == processor_mode::ia32e;
            BOOST_TEST((detect(from, from, mode).layout == record::program_mode::lp64) == wide);
        }
    }
}

BOOST_AUTO_TEST_CASE(no_register_is_read_before_cpuid_has_said_that_there_is_a_debug_store) {
    made_up from = complete();
    from.leaves[1].edx = 0;
    const auto have = detect(from, from, processor_mode::ia32e);
    BOOST_TEST(!have.bts);
    BOOST_TEST(from.reads == 0);
    made_up amd = complete();
    amd.leaves[0] = {1, 0x68747541, 0x444D4163, 0x69746E65};
    BOOST_TEST(!detect(amd, amd, processor_mode::ia32e).ds);
    BOOST_TEST(amd.reads == 0);
    made_up old = complete();
    old.leaves[1].ecx = 0;
    BOOST_TEST(detect(old, old, processor_mode::ia32e).bts);
    BOOST_TEST(old.reads == 1);  // and no IA32_PERF_CAPABILITIES
}

BOOST_AUTO_TEST_CASE(each_missing_feature_has_its_own_error) {
    const x86::ds_needs all{record::program_mode::lp64, true, true, true};
    made_up from = complete();
    from.leaves[0].ebx = 0;
    BOOST_TEST((first_missing(from, all) == ds_missing::intel));
    from = complete();
    from.leaves[0].eax = 0;  // there is no leaf 1
    BOOST_TEST((first_missing(from, all) == ds_missing::ds));
    from = complete();
    from.leaves[1].edx = ~(1U << 21);
    BOOST_TEST((first_missing(from, all) == ds_missing::ds));
    from = complete();
    from.registers.erase(0x1A0);
    BOOST_TEST((first_missing(from, all) == ds_missing::registers));
    from = complete();
    from.registers.erase(0x345);
    BOOST_TEST((first_missing(from, all) == ds_missing::registers));
    BOOST_TEST((first_missing(from, {record::program_mode::lp64, true, false, true}) ==
                ds_missing::nothing));
    from = complete();
    from.registers[0x1A0] = 1U << 11;
    BOOST_TEST((first_missing(from, all) == ds_missing::bts));
    BOOST_TEST((first_missing(from, {record::program_mode::lp64, false, true, true}) ==
                ds_missing::nothing));
    from = complete();
    from.registers[0x1A0] = 1U << 12;
    BOOST_TEST((first_missing(from, all) == ds_missing::pebs));
    BOOST_TEST((first_missing(from, {record::program_mode::lp64, true, false, true}) ==
                ds_missing::nothing));
    BOOST_TEST((first_missing(complete(), {record::program_mode::ilp32}) == ds_missing::layout32));
    from = complete();
    from.leaves[1].ecx &= ~4U;
    BOOST_TEST((first_missing(from, all) == ds_missing::layout64));
    BOOST_TEST((first_missing(from, all, processor_mode::ia32e) == ds_missing::nothing));
    BOOST_TEST((first_missing(from, {record::program_mode::ilp32}) == ds_missing::nothing));
    from = complete();
    from.leaves[1].ecx &= ~16U;
    BOOST_TEST((first_missing(from, all) == ds_missing::cpl));
    BOOST_TEST((first_missing(from, {}) == ds_missing::nothing));
}

BOOST_AUTO_TEST_CASE(the_errors_say_what_is_missing_and_why_it_cannot_be_told) {
    std::map<std::string, int> texts;
    for (unsigned n = 1; n <= 8; ++n) {
        try {
            throw x86::ds_unavailable(static_cast<ds_missing>(n));
        } catch (const trace_ring::setup_error& e) {
            BOOST_TEST(e.code().value() == ENODEV);
            BOOST_TEST(e.subject() == "debug store");
            ++texts[e.what()];
        }
    }
    BOOST_TEST(texts.size() == 8U);
    made_up from = complete();
    from.registers.clear();
    from.fault = msr_fault::not_permitted;
    const auto have = detect(from, from, processor_mode::ia32e);
    BOOST_CHECK_EXCEPTION(require(have, {}), x86::ds_unavailable, [](const auto& e) {
        return e.why() == ds_missing::registers &&
               std::string(e.what()).find("not permitted") != std::string::npos;
    });
    BOOST_CHECK_NO_THROW(require(detect(from = complete(), from, processor_mode::ia32e), {}));
}

BOOST_AUTO_TEST_CASE(this_machines_processor_answers_without_its_registers_being_touched) {
    made_up registers;
    const auto have = detect(x86::host_cpuid{}, registers, processor_mode::ia32e);
    if (have.ds) {
        BOOST_TEST(registers.reads == 1);
        BOOST_TEST((missing(have, {}) == ds_missing::registers));
    } else {
        BOOST_TEST(registers.reads == 0);
        BOOST_TEST((missing(have, {}) == (have.intel ? ds_missing::ds : ds_missing::intel)));
    }
}

BOOST_AUTO_TEST_CASE(the_device_is_read_and_written_at_the_registers_number) {
    const test::folder scratch;
    std::filesystem::create_directory(scratch / "3");
    std::ofstream(scratch / "3/msr").close();
    const x86::msr_device device(3, scratch.path(), "/nowhere");
    BOOST_TEST((device.write(msr::ds_area, 0x0123456789ABCDEF) == msr_fault::none));
    BOOST_TEST((device.write(msr::ds_area + 8, 0x55) == msr_fault::none));
    BOOST_TEST(std::filesystem::file_size(scratch / "3/msr") == msr::ds_area + 16);
    errno = 5;
    const auto read = device.read(msr::ds_area);
    BOOST_TEST((read.fault == msr_fault::none));
    BOOST_TEST(read.value == 0x0123456789ABCDEFU);
    const auto nothing = device.read(msr::ds_area + 12);  // four bytes are there
    BOOST_TEST((nothing.fault == msr_fault::device));
    BOOST_TEST(nothing.value == 0U);
    BOOST_TEST(errno == 5);
    // beyond what a 32-bit off_t can say
    BOOST_TEST((device.write(0xC0000080, 7) == msr_fault::none));
    BOOST_TEST(device.read(0xC0000080).value == 7U);
}

BOOST_AUTO_TEST_CASE(a_device_that_cannot_be_opened_says_which_of_the_reasons_it_is) {
    const test::folder scratch;
    std::filesystem::create_directories(scratch / "cpus/cpu0");
    const std::string cpus = scratch / "cpus";
    std::string what = open_error(0, scratch / "devices", cpus, ENOENT);
    BOOST_TEST(what.find("devices/0/msr") != std::string::npos);
    BOOST_TEST(what.find("msr module is not loaded") != std::string::npos);
    what = open_error(7, scratch / "devices", cpus, ENOENT);
    BOOST_TEST(what.find("no such processor") != std::string::npos);
    std::filesystem::create_directories(scratch / "devices/0/msr");
    what = open_error(0, scratch / "devices", cpus, EISDIR);
    BOOST_TEST(what.find("cannot open") != std::string::npos);
    if (::geteuid() != 0) {
        std::filesystem::create_directories(scratch / "devices/1");
        std::ofstream(scratch / "devices/1/msr").close();
        std::filesystem::permissions(scratch / "devices/1/msr", std::filesystem::perms::none);
        what = open_error(1, scratch / "devices", cpus, EACCES);
        BOOST_TEST(what.find("no permission") != std::string::npos);
    }
}

BOOST_AUTO_TEST_CASE(faults_of_registers_are_told_apart) {
    std::map<std::string, int> texts;
    for (unsigned n = 0; n < 5; ++n) ++texts[to_string(static_cast<msr_fault>(n))];
    BOOST_TEST(texts.size() == 5U);
}

// At CPL 3 the instructions raise #GP: a process that executes one of them dies of it.
BOOST_AUTO_TEST_CASE(the_instructions_are_executed_where_a_kernel_would_execute_them) {
    for (const bool writes : {false, true}) {
        const pid_t child = ::fork();
        BOOST_REQUIRE(child >= 0);
        if (child == 0) {
            ::signal(SIGSEGV, SIG_DFL);
            x86::ring0_msr registers;
            if (writes)
                static_cast<void>(registers.write(msr::ds_area, 0));
            else
                static_cast<void>(registers.read(msr::ds_area));
            ::_exit(0);
        }
        int status = 0;
        BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
        BOOST_TEST((WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV), "status " << status);
    }
}

BOOST_AUTO_TEST_SUITE_END()
