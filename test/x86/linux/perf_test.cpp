// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Branches by perf events, on machines made of files: each reason why there are none, and a
// kernel's side that fills the memory of an event there is.

#include <boost/test/unit_test.hpp>

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <trace_ring/drain/session.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/x86/linux/perf_bts.hpp>

#include <x86/linux/bts_kernel.hpp>
#include <x86/linux/perf_machine.hpp>

BOOST_AUTO_TEST_SUITE(x86_perf)

namespace tr = trace_ring;
namespace x86 = trace_ring::x86;
using perf_machine::event;
using perf_machine::machine;
using perf_machine::page;
using perf_machine::whole;
using trace_ring_test::bts_kernel;
using x86::branch;
using x86::perf_reason;

namespace {

template <class Make>
std::optional<perf_reason> reason(Make&& make) {
    try {
        make();
    } catch (const x86::perf_unavailable& error) {
        BOOST_TEST(std::string(error.what()).find(x86::to_string(error.reason())) !=
                   std::string::npos);
        return error.reason();
    }
    return std::nullopt;
}
std::optional<perf_reason> bts_fails(const x86::perf_host& host) {
    return reason([&] { x86::perf_bts{{}, host}; });
}

struct taken {
    std::vector<std::uint64_t> from;
    std::vector<std::size_t> gaps;
    void operator()(const branch& one) { from.push_back(one.from()); }
    void operator()(const x86::branch_gap&) { gaps.push_back(from.size()); }
};

bts_kernel::record numbered(std::uint64_t n) {
    return {0x1000 + n, 0x2000 + n, 0};
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_thing_that_a_processor_lacks_is_a_reason_of_its_own) {
    const machine m;
    const auto row = [&](const char* vendor, const std::string& flags, perf_reason expected) {
        BOOST_TEST_CONTEXT(vendor << ": " << flags) {
            m.processor(vendor, flags);
            BOOST_TEST((bts_fails(m.host()) == expected));
        }
    };
    row("AuthenticAMD", whole, perf_reason::not_intel);
    row("GenuineIntel", "fpu dtes64 bts", perf_reason::ds_missing);
    row("GenuineIntel", "fpu dtes64 dtsx xdts bts", perf_reason::ds_missing);
    row("GenuineIntel", "dts bts", perf_reason::no_64_bit_layout);
    row("GenuineIntel", "dts dtes64 abts", perf_reason::bts_unavailable);
    row("GenuineIntel", std::string(whole) + " pti", perf_reason::page_table_isolation);
    row("GenuineIntel", std::string("pti ") + whole, perf_reason::page_table_isolation);
    row("GenuineIntel", whole, perf_reason::no_such_pmu);
}

BOOST_AUTO_TEST_CASE(a_machine_that_says_nothing_has_no_such_pmu) {
    const machine m;
    BOOST_TEST((bts_fails(m.host()) == perf_reason::no_such_pmu));
    m.put("/proc/cpuinfo", "");
    BOOST_TEST((bts_fails(m.host()) == perf_reason::no_such_pmu));
    m.put("/proc/cpuinfo", "flags");
    BOOST_TEST((bts_fails(m.host()) == perf_reason::no_such_pmu));
    m.put(x86::intel_bts_type, "none");
    BOOST_TEST((bts_fails(m.host()) == perf_reason::no_such_pmu));
}

BOOST_AUTO_TEST_CASE(each_way_in_which_the_kernel_refuses_is_a_reason_of_its_own) {
    const machine m;
    m.processor("GenuineIntel", whole);
    m.pmu();
    const auto row = [&](int error, perf_reason expected) {
        BOOST_TEST_CONTEXT("errno " << error) {
            BOOST_TEST((bts_fails(m.host(error)) == expected));
        }
    };
    row(EACCES, perf_reason::no_permission);  // and no level to be read
    m.put("/proc/sys/kernel/perf_event_paranoid", "1\n");
    row(EACCES, perf_reason::no_permission);
    row(EPERM, perf_reason::no_permission);
    m.put("/proc/sys/kernel/perf_event_paranoid", "-1\n");
    row(EPERM, perf_reason::no_permission);
    m.put("/proc/sys/kernel/perf_event_paranoid", "2\n");
    row(EACCES, perf_reason::paranoid_level);
    row(EPERM, perf_reason::paranoid_level);
    row(EBUSY, perf_reason::busy);
    row(ENOENT, perf_reason::no_such_pmu);
    row(EOPNOTSUPP, perf_reason::no_such_pmu);
    row(EMFILE, perf_reason::other);
    try {
        x86::perf_bts{{}, m.host(EMFILE)};
    } catch (const std::system_error& error) {
        BOOST_TEST(error.code().value() == EMFILE);
    }
}

BOOST_AUTO_TEST_CASE(this_machine_gives_the_reason_that_its_cpuinfo_has) {
    if (::access(x86::intel_bts_type, R_OK) == 0) {
        std::puts("skipped: this machine has the PMU");
        return;
    }
    // Read in another way than the library does.
    std::ifstream in("/proc/cpuinfo");
    std::string line, vendor, flags;
    while (std::getline(in, line)) {
        const auto colon = line.find(':');
        if (line.rfind("vendor_id", 0) == 0 && vendor.empty()) vendor = line.substr(colon + 2);
        if (line.rfind("flags", 0) == 0 && flags.empty()) flags = line.substr(colon + 1) + " ";
    }
    BOOST_REQUIRE(!vendor.empty());
    const auto has = [&](const char* flag) {
        return flags.find(" " + std::string(flag) + " ") != std::string::npos;
    };
    const perf_reason expected = vendor != "GenuineIntel" ? perf_reason::not_intel
                                 : !has("dts")            ? perf_reason::ds_missing
                                 : !has("dtes64")         ? perf_reason::no_64_bit_layout
                                 : !has("bts")            ? perf_reason::bts_unavailable
                                 : has("pti")             ? perf_reason::page_table_isolation
                                                          : perf_reason::no_such_pmu;
    BOOST_TEST((bts_fails({}) == expected));
}

BOOST_AUTO_TEST_CASE(sizes_that_are_none_and_memory_that_is_not_to_be_had_are_refused) {
    event e;
    for (const std::size_t bytes : {std::size_t{0}, page - 1, page / 2, 3 * page}) {
        BOOST_CHECK_THROW((x86::perf_bts{{.aux_bytes = bytes, .data_bytes = page}, e.host()}),
                          tr::setup_error);
        BOOST_CHECK_THROW((x86::perf_bts{{.aux_bytes = page, .data_bytes = bytes}, e.host()}),
                          tr::setup_error);
    }
    auto host = e.host();
    host.open = [&](::perf_event_attr&, ::pid_t, int) { return ::open("/dev/null", 0); };
    BOOST_CHECK_THROW((x86::perf_bts{{.aux_bytes = page, .data_bytes = page}, host}),
                      tr::setup_error);
    host = e.host();
    host.control = [](int, unsigned long) {
        errno = EACCES;
        return -1;
    };
    x86::perf_bts branches({.aux_bytes = page, .data_bytes = page}, host);
    BOOST_CHECK_THROW(branches.start(), tr::setup_error);
}

BOOST_AUTO_TEST_CASE(a_full_trace_is_read_to_its_end) {
    event e;
    x86::perf_bts branches({.aux_bytes = page, .data_bytes = page}, e.host());
    BOOST_TEST(e.attributes.type == 8U);
    BOOST_TEST(e.attributes.sample_period == 1U);
    BOOST_TEST((e.attributes.disabled == 1 && e.attributes.exclude_kernel == 1));
    BOOST_TEST(e.word(offsetof(::perf_event_mmap_page, aux_offset)).load(tr::seq_cst) == 2 * page);
    BOOST_TEST(e.word(offsetof(::perf_event_mmap_page, aux_size)).load(tr::seq_cst) == page);
    branches.start();
    taken got;
    for (std::uint64_t n = 0; n < 5000; ++n) {
        e.kernel->branch(numbered(n));
        if (n % 60 == 0) {
            e.kernel->interrupt();
            branches.read(got);
        }
    }
    BOOST_TEST(!branches.ended());
    branches.stop();
    branches.read(got);
    BOOST_TEST(branches.ended());
    BOOST_TEST(branches.read(got) == 0U);
    BOOST_REQUIRE(got.from.size() == 5000U);
    for (std::size_t n = 0; n < 5000; ++n) BOOST_REQUIRE(got.from[n] == 0x1000 + n);
    BOOST_TEST(got.gaps.empty());
    BOOST_TEST(branches.restarts() == 0U);
    BOOST_TEST(e.unsaid == 0U);
}

BOOST_AUTO_TEST_CASE(a_truncated_trace_goes_on_behind_its_gap) {
    std::mt19937_64 random(9);
    event e;
    x86::perf_bts branches({.aux_bytes = page, .data_bytes = page}, e.host());
    branches.start();
    taken got;
    std::uint64_t n = 0;
    const std::uint64_t itrace[] = {1, 2};
    for (int round = 0; round < 2000; ++round) {
        const std::uint64_t until = n + random() % 300;
        for (; n < until; ++n) e.kernel->branch(numbered(n));
        if (round % 50 == 0) e.say(PERF_RECORD_ITRACE_START, std::as_bytes(std::span(itrace)));
        e.kernel->interrupt();
        branches.read(got);
        BOOST_REQUIRE(e.kernel->running());
    }
    branches.stop();
    branches.read(got);
    BOOST_TEST(branches.restarts() > 100U);
    BOOST_TEST(e.kernel->refused > 0U);
    BOOST_TEST(got.from.size() + e.kernel->refused == n);
    // Each gap is where numbers are missing, or where the event was disabled with nothing behind.
    std::vector<std::size_t> wanted;
    std::vector<std::uint64_t> stored;
    for (const auto& one : e.kernel->all) {
        if (!one.gap) {
            stored.push_back(one.what.from);
        } else if (wanted.empty() || wanted.back() != stored.size()) {
            wanted.push_back(stored.size());
        }
    }
    BOOST_TEST((got.from == stored));
    BOOST_TEST((got.gaps == wanted));
    BOOST_TEST(branches.lost()[tr::loss_cause::refused] >= wanted.size());
}

BOOST_AUTO_TEST_CASE(what_the_kernel_could_not_say_is_a_gap_too) {
    event e;
    x86::perf_bts branches({.aux_bytes = page, .data_bytes = page}, e.host());
    branches.start();
    taken got;
    for (std::uint64_t n = 0; n < 10; ++n) e.kernel->branch(numbered(n));
    e.kernel->interrupt();
    const std::uint64_t lost[] = {1, 5};
    e.say(PERF_RECORD_LOST, std::as_bytes(std::span(lost)));
    branches.read(got);
    BOOST_TEST(got.from.size() == 10U);
    BOOST_TEST(got.gaps == std::vector<std::size_t>{10}, boost::test_tools::per_element());
    BOOST_TEST(branches.restarts() == 1U);
    // Flags that say so in the area's own record.
    const std::uint64_t aux[] = {240, 0, PERF_AUX_FLAG_COLLISION};
    e.say(PERF_RECORD_AUX, std::as_bytes(std::span(aux)));
    branches.read(got);
    BOOST_TEST(got.gaps.size() == 2U);
    BOOST_TEST(branches.restarts() == 1U);
}

BOOST_AUTO_TEST_CASE(events_that_make_no_sense_are_passed_over_and_told) {
    for (const std::uint16_t size : std::initializer_list<std::uint16_t>{1, 4, 12, 0xFFF8}) {
        event e;
        x86::perf_bts branches({.aux_bytes = page, .data_bytes = page}, e.host());
        branches.start();
        taken got;
        e.kernel->branch(numbered(0));
        e.kernel->interrupt();
        const std::uint64_t rest[] = {0};
        e.say(PERF_RECORD_AUX, std::as_bytes(std::span(rest)), size);
        branches.read(got);
        BOOST_TEST(got.from.size() == 1U);
        BOOST_TEST(branches.lost()[tr::loss_cause::damaged] == 1U);
        e.kernel->branch(numbered(1));
        e.kernel->interrupt();
        branches.read(got);
        BOOST_TEST(got.from.size() == 2U);
    }
    // Any bytes, and any head.
    std::mt19937_64 random(11);
    for (int i = 0; i < 500; ++i) {
        event e;
        x86::perf_bts branches({.aux_bytes = page, .data_bytes = page}, e.host());
        for (auto& one : e.all.subspan(page)) one = static_cast<std::byte>(random());
        e.word(offsetof(::perf_event_mmap_page, data_head))
            .store(random() >> random() % 64, tr::seq_cst);
        e.word(offsetof(::perf_event_mmap_page, aux_head))
            .store(random() >> random() % 64, tr::seq_cst);
        BOOST_REQUIRE(branches.read(x86::impl::any_branch_visitor{}) <= page / 24);
    }
}

BOOST_AUTO_TEST_CASE(a_snapshot_is_stopped_read_and_over) {
    event e(true);
    x86::perf_bts branches({.aux_bytes = page, .data_bytes = page, .snapshot = true}, e.host());
    branches.start();
    for (std::uint64_t n = 0; n < 1000; ++n) e.kernel->branch(numbered(n));
    taken got;
    BOOST_TEST(branches.read(got) == 170U);
    BOOST_TEST(!e.kernel->running());
    BOOST_TEST(branches.ended());
    for (std::size_t i = 0; i < got.from.size(); ++i)
        BOOST_REQUIRE(got.from[i] == 0x1000 + 830 + i);
    BOOST_TEST(got.gaps == std::vector<std::size_t>{0}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_area_is_drained_in_place_by_a_session_too) {
    event e;
    x86::perf_bts branches({.aux_bytes = page, .data_bytes = page}, e.host());
    branches.start();
    for (std::uint64_t n = 0; n < 20; ++n) e.kernel->branch(numbered(n));
    e.kernel->interrupt();
    tr::drain::session session(branches.area());
    std::uint64_t next = 0x1000;
    BOOST_TEST(session.for_each_record(
                   [&](const branch& one) { BOOST_TEST(one.from() == next++); }) == 20U);
    BOOST_TEST(!branches.read_events());
}

BOOST_AUTO_TEST_SUITE_END()
