// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// A recorder that does not get what it asks for: limits of files, descriptors, addresses and
/// memory, kernels that know less, file systems that take nothing, filters of system calls, a clock
/// that cannot be trusted. Set-up reports what is missing; later the work continues, and losses are
/// counted. Each case has a separate process.

#include <boost/test/unit_test.hpp>

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <latch>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <trace_ring/policy/clock/monotonic.hpp>
#include <trace_ring/policy/clock/sampled.hpp>
#include <trace_ring/policy/storage/mapped.hpp>
#include <trace_ring/policy/storage/shared_file.hpp>
#include <trace_ring/recorder/cpu/recorder.hpp>
#include <trace_ring/recorder/recorder.hpp>

#include <recorder/account.hpp>
#include <recorder/crowd.hpp>
#include <recorder/kinds.hpp>
#include <recorder/scratch.hpp>
#include <recorder/system_calls.hpp>

BOOST_AUTO_TEST_SUITE(resources)

namespace tr = trace_ring;
using namespace std::chrono_literals;
using test::checks;
using test::growing;
using test::in_child;
using test::skipped;
using tr::loss_cause;

namespace {

/// Set-up fails with that error, says what it is about, and leaves nothing in the folder.
template <class Make>
void must_fail(checks& check, int error, const std::string& subject, Make&& make) {
    try {
        make();
        check(false, "an error about " + subject);
    } catch (const tr::setup_error& said) {
        const std::string text = said.what();
        check(said.code().value() == error && said.subject() == subject &&
                  text.find(subject) != std::string::npos,
              "[" + std::to_string(said.code().value()) + "] " + text + " is about " + subject);
    }
}

tr::recorder_options small(const std::string& file = {}) {
    return {.file = file, .size = 64 * 512, .sub_buffer_bytes = 512};
}

/// This many records are present, or reported as lost, for any reader.
template <class Kind>
void must_account(checks& check, const tr::basic_recorder<Kind>& recorder, std::uint64_t tried) {
    const auto all = test::account_of(recorder);
    check(all.strange == 0, "no damage");
    check(all.read() + all.lost().total() == tried, std::to_string(all.read()) + " + " +
                                                        std::to_string(all.lost().total()) +
                                                        " of " + std::to_string(tried));
}

void limit(checks& check, int resource, std::uint64_t most) {
    rlimit now{};
    ::getrlimit(static_cast<__rlimit_resource>(resource), &now);
    now.rlim_cur = static_cast<rlim_t>(most);
    check(::setrlimit(static_cast<__rlimit_resource>(resource), &now) == 0, "setrlimit");
}

std::size_t entries(const std::string& folder) {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

}  // namespace

// --- Files ---

BOOST_AUTO_TEST_CASE(a_file_that_exceeds_the_limit_kills_who_asks_the_kernel_for_it) {
    // Why the library asks itself first.
    const test::folder folder;
    const std::string file = folder / "a";
    const std::function<void(int)> ways[] = {
        [](int fd) { static_cast<void>(::posix_fallocate(fd, 0, 8192)); },
        [](int fd) { static_cast<void>(!::ftruncate(fd, 8192)); },
        [](int fd) { static_cast<void>(!::pwrite(fd, "x", 1, 8192)); },
    };
    for (const auto& way : ways) {
        const int status = in_child([&] {
            checks check;
            limit(check, RLIMIT_FSIZE, 4096);
            const int fd = ::open(file.c_str(), O_RDWR | O_CREAT, 0600);
            way(fd);
            return check.failed;
        });
        // Emulators may not pass the limit on.
        BOOST_WARN_EQUAL(status, -SIGXFSZ);
    }
}

BOOST_AUTO_TEST_CASE(a_limit_of_file_sizes_is_an_error_of_each_thing_that_makes_a_file) {
    const test::folder folder;
    const int status = in_child([&] {
        checks check;
        tr::recorder recorder(small());
        std::uint64_t tried = 0;
        while (tried < 5000) test::put(recorder, 1, tried++);
        limit(check, RLIMIT_FSIZE, 64 << 10);
        const std::string copy = folder / "copy";
        check(recorder.snapshot(copy.c_str()) == EFBIG, "no snapshot");
        check(entries(folder.path()) == 0, "nothing is left of it");
        auto options = small();
        options.memory_file = true;
        must_fail(check, EFBIG, "memory", [&] { const tr::recorder one(options); });
        const std::string ring = folder / "ring";
        must_fail(check, EFBIG, ring, [&] { const tr::storage::shared_file one(ring, 1 << 20); });
        check(entries(folder.path()) == 0, "nothing is left of the ring");
        tr::storage::shared_file grows(ring, 4096, 1 << 20);
        check(grows.grow(16 << 10), "below the limit it grows");
        check(!grows.grow(256 << 10), "beyond it does not");
        // Existing files continue to work.
        while (tried < 10'000) test::put(recorder, 1, tried++);
        must_account(check, recorder, tried);
        limit(check, RLIMIT_FSIZE, RLIM_INFINITY);
        check(recorder.snapshot(copy.c_str()) == 0, "now there is one");
        check(test::account_of(tr::reduce::trace_file::open(copy)).read() ==
                  test::account_of(recorder).read(),
              "with the same records");
        return check.failed;
    });
    BOOST_TEST(status == 0);
}

BOOST_AUTO_TEST_CASE(a_snapshot_that_is_asked_for_from_outside_does_not_kill_who_may_not_write_it) {
    const test::folder folder;
    const std::string file = folder / "a.trace";
    const int status = in_child([&] {
        checks check;
        tr::recorder recorder(small(file));
        test::put(recorder, 1, 0);
        limit(check, RLIMIT_FSIZE, 4096);
        test::hands_on(recorder).ring().snapshot_request.store(1, tr::release);
        for (std::uint64_t n = 1; n < 100; ++n) test::put(recorder, 1, n);
        check(test::hands_on(recorder).ring().snapshot_done.load(tr::acquire) == 1, "answered");
        check(entries(folder.path()) == 1, "nothing but the trace");
        must_account(check, recorder, 100);
        return check.failed;
    });
    BOOST_TEST(status == 0);
}

BOOST_AUTO_TEST_CASE(without_a_free_descriptor_set_up_says_so_and_a_trace_no_longer_grows) {
    // UndefinedBehaviorSanitizer looks at an object's memory through a pipe before it believes its
    // type: without a free descriptor, it takes std::error_category for none.
    if (test::under_asan) return;
    const test::folder folder;
    const std::string file = folder / "a.trace";
    const std::string grown = folder / "b.trace";
    const std::string copy = folder / "copy";
    const int status = in_child([&] {
        checks check;
        test::put(*std::make_unique<tr::recorder>(small()), 1,
                  1);  // the clock has been asked
        const auto grows = std::make_unique<tr::recorder>(growing(grown));
        const int lowest = ::dup(2);
        ::close(lowest);
        const auto allow = [&](int more) {
            limit(check, RLIMIT_NOFILE, static_cast<std::uint64_t>(lowest + more));
        };
        allow(0);
        for (const auto exists :
             {tr::if_exists::fail, tr::if_exists::replace, tr::if_exists::attach}) {
            auto options = small(file);
            options.exists = exists;
            must_fail(check, EMFILE, file, [&] { const tr::recorder one(options); });
        }
        auto options = small();
        options.memory_file = true;
        must_fail(check, EMFILE, "trace_ring", [&] { const tr::recorder one(options); });
        check(grows->snapshot(copy.c_str()) == EMFILE, "no snapshot");
        // Memory needs none, nor does what is there already.
        tr::recorder memory(small());
        std::uint64_t n = 0;
        while (n < 100) check(test::put(memory, 1, n++), "memory");
        must_account(check, memory, n);
        n = 0;
        while (n < 20 * test::fit_in_512) check(test::put(*grows, 1, n++), "grows");
        // But one whose descriptor somebody has closed would have to be opened again.
        ::close(grows->descriptor());
        const int taken = ::dup(2);  // nobody else has its number
        const std::uint64_t there = grows->statistics().sub_buffers;
        allow(taken >= 0 ? taken - lowest : 0);
        while (n < 2000) test::put(*grows, 1, n++);
        check(grows->statistics().sub_buffers == there, "it grew no more");
        must_account(check, *grows, n);
        check(
            test::account_of(*grows).lost()[loss_cause::refused] == 2000 - there * test::fit_in_512,
            "refused");
        allow(8);
        check(entries(folder.path()) == 1, "nothing is left behind");
        // One descriptor is enough.
        allow(taken >= 0 ? taken - lowest + 1 : 1);
        tr::recorder one(small(file));
        for (n = 0; n < 100; ++n) check(test::put(one, 1, n), "one descriptor");
        must_account(check, one, n);
        return check.failed;
    });
    BOOST_TEST(status == 0);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_ninth_recorder_is_refused_by_name_until_one_of_the_eight_goes, kind,
                              test::kinds) {
    const test::folder folder;
    const int status = in_child([&] {
        checks check;
        std::vector<std::unique_ptr<tr::basic_recorder<kind>>> eight;
        while (eight.size() < 8) {
            eight.push_back(std::make_unique<tr::basic_recorder<kind>>(small()));
        }
        const std::string file = folder / "a.trace";
        for (int round = 0; round < 3; ++round) {
            for (const std::string& name : {std::string(), file}) {
                must_fail(check, EMFILE, name.empty() ? "memory" : name,
                          [&] { const tr::basic_recorder<kind> ninth(small(name)); });
            }
            check(entries(folder.path()) == 0, "nothing is left behind");
            for (auto& one : eight) check(test::put(*one, 1, 1), "the eight record");
            eight[static_cast<std::size_t>(round)].reset();
            auto options = small();
            eight[static_cast<std::size_t>(round)] =
                std::make_unique<tr::basic_recorder<kind>>(options);
        }
        for (std::size_t i = 0; i < 8; ++i) {
            // The first three came later, one round after the other.
            must_account(check, *eight[i], i < 3 ? 2 - i : 3);
        }
        return check.failed;
    });
    BOOST_TEST(status == 0);
}

// --- Memory ---

BOOST_AUTO_TEST_CASE_TEMPLATE(nothing_needs_locked_memory_or_huge_pages, kind, test::kinds) {
    const int status = in_child([&] {
        checks check;
        limit(check, RLIMIT_MEMLOCK, 0);
        ::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
        tr::basic_recorder<kind> recorder(small());
        std::uint64_t n = 0;
        while (n < 10'000) check(test::put(recorder, 1, n++), "record");
        std::thread([&] { check(test::put(recorder, 2, n++), "thread"); }).join();
        must_account(check, recorder, n);
        return check.failed;
    });
    BOOST_TEST(status == 0);
}

// AddressSanitizer and ThreadSanitizer need terabytes of addresses, and their own calls.
#if !defined(TRACE_RING_TEST_TSAN) && !defined(TRACE_RING_TEST_ASAN)

namespace {

/// Bytes that the process has locked in memory.
std::uint64_t locked_now() {
    std::ifstream status("/proc/self/status");
    std::string line;
    while (std::getline(status, line)) {
        if (line.starts_with("VmLck:")) return std::stoull(line.substr(6)) * 1024;
    }
    return 0;
}

/// Recorders and rings that may become far larger than they are.
std::vector<std::function<std::shared_ptr<void>()>> all_that_may_grow(const std::string& folder,
                                                                      std::uint64_t limit) {
    const auto options = [=](const std::string& file, bool memory_file) {
        auto made = growing(file);
        made.limit = limit;
        made.memory_file = memory_file;
        return made;
    };
    return {
        [=] { return std::make_shared<tr::recorder>(options({}, false)); },
        [=] { return std::make_shared<tr::recorder>(options({}, true)); },
        [=] { return std::make_shared<tr::recorder>(options(folder + "/a.trace", false)); },
        [=] {
            auto joins = options(folder + "/a.trace", false);
            joins.exists = tr::if_exists::attach;
            return std::make_shared<tr::recorder>(joins);
        },
        [=] { return std::make_shared<tr::storage::mapped>(4096, limit); },
        [=] { return std::make_shared<tr::storage::shared_file>(folder + "/ring", 4096, limit); },
    };
}

/// The lanes that threads of earlier tests have released must not be available.
void forget_ended_threads() {
    tr::impl::the_registry.nodes.store(nullptr, tr::relaxed);
}

}  // namespace

BOOST_AUTO_TEST_CASE(of_what_may_grow_only_what_is_used_is_locked_in_memory) {
    if (!test::own_memory) return;  // an emulator has its own ways with memory
    constexpr std::uint64_t limit_of_each = std::uint64_t{256} << 20;
    for (const int flags : {MCL_FUTURE, MCL_CURRENT | MCL_FUTURE}) {
        const test::folder folder;
        const int status = in_child([&]() -> int {
            checks check;
            if (::mlockall(flags) != 0) return skipped;
            for (const auto& make : all_that_may_grow(folder.path(), limit_of_each)) {
                const std::uint64_t resident = test::memory_now().resident;
                const std::uint64_t locked = locked_now();
                const auto made = make();
                const std::uint64_t more = test::memory_now().resident - resident;
                check(more < limit_of_each / 16, std::to_string(more) + " bytes resident");
                const std::uint64_t more_locked = locked_now() - locked;
                check(more_locked < limit_of_each / 16,
                      std::to_string(more_locked) + " bytes locked");
                check(more_locked >= 4096, "what is used is locked");
            }
            auto options = growing();
            options.limit = limit_of_each;
            options.step = std::uint64_t{1} << 20;
            tr::recorder grows(options);
            const std::uint64_t locked = locked_now();
            for (std::uint64_t n = 0; n < 20 * test::fit_in_512; ++n) test::put(grows, 1, n);
            const std::uint64_t more = locked_now() - locked;
            check(more >= options.step && more < 2 * options.step,
                  "what it grew by is locked, " + std::to_string(more));
            return check.failed;
        });
        TRACE_RING_TEST_SKIP_IF(status, "no memory may be locked");
        BOOST_TEST(status == 0);
    }
}

BOOST_AUTO_TEST_CASE(what_may_be_locked_at_most_is_named_where_addresses_are_refused) {
    if (!test::own_memory) return;  // an emulator has its own ways with memory
    const int status = in_child([&]() -> int {
        checks check;
        const ::rlimit most{4 << 20, 4 << 20};
        if (::setrlimit(RLIMIT_MEMLOCK, &most) != 0) return skipped;
        // The limit does not apply to a process that may lock everything.
        if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) return skipped;
        if (::mlockall(MCL_FUTURE) != 0) return skipped;
        try {
            auto options = growing();
            options.limit = std::uint64_t{256} << 20;
            const tr::recorder one(options);
            return skipped;
        } catch (const tr::setup_error& said) {
            check(std::string(said.what()).find("RLIMIT_MEMLOCK") != std::string::npos,
                  said.what());
        }
        tr::recorder one(small());
        check(test::put(one, 1, 1), "a smaller one");
        return check.failed;
    });
    TRACE_RING_TEST_SKIP_IF(status, "memory may be locked without a limit");
    BOOST_TEST(status == 0);
}

BOOST_AUTO_TEST_CASE(what_may_grow_does_not_count_as_data_before_it_does) {
    if (!test::own_memory) return;  // an emulator has its own ways with memory
    const test::folder folder;
    const int status = in_child([&]() -> int {
        checks check;
        limit(check, RLIMIT_DATA, std::uint64_t{64} << 20);
        for (const auto& make : all_that_may_grow(folder.path(), std::uint64_t{512} << 20)) {
            const auto made = make();
        }
        for (const std::string& file : {std::string(), folder / "b.trace"}) {
            tr::recorder recorder(small(file));
            std::uint64_t n = 0;
            while (n < 1000) check(test::put(recorder, 1, n++), "record");
            must_account(check, recorder, n);
        }
        std::make_unique<char[]>(100'000).reset();  // for what a complaint needs
        limit(check, RLIMIT_DATA, 4096);
        must_fail(check, ENOMEM, folder / "c.trace",
                  [&] { const tr::recorder one(small(folder / "c.trace")); });
        check(!std::filesystem::exists(folder / "c.trace"), "nothing is left behind");
        return check.failed;
    });
    BOOST_TEST(status == 0);
}

BOOST_AUTO_TEST_CASE(without_addresses_set_up_says_so_and_new_threads_are_counted) {
    if (!test::own_memory) return;  // an emulator, left without addresses, ends
    const test::folder folder;
    const std::string file = folder / "a.trace";
    const int status = in_child([&]() -> int {
        checks check;
        forget_ended_threads();
        tr::recorder recorder(small());
        test::put(recorder, 0, 0);
        constexpr std::uint64_t threads = 4;
        std::latch ready{threads};
        std::latch go{1};
        std::atomic<int> recorded{0};
        std::vector<std::thread> all;
        for (std::uint64_t t = 1; t <= threads; ++t) {
            all.emplace_back([&, t] {
                ready.count_down();
                go.wait();
                for (std::uint64_t n = 0; n < 10; ++n) recorded += test::put(recorder, t, n);
            });
        }
        ready.wait();
        // What a complaint needs comes from memory that the C library has by now.
        std::make_unique<char[]>(100'000).reset();
        limit(check, RLIMIT_AS, 0);
        if (::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED) {
            return skipped;
        }
        for (const std::string& name : {std::string(), file}) {
            must_fail(check, ENOMEM, name.empty() ? "anonymous memory" : name,
                      [&] { const tr::recorder one(small(name)); });
        }
        go.count_down();
        for (auto& one : all) one.join();
        check(recorded.load() == 0, "no memory for a lane");
        check(test::put(recorder, 0, 1), "who has a lane goes on");
        limit(check, RLIMIT_AS, RLIM_INFINITY);
        std::thread([&] {
            check(test::put(recorder, 9, 0), "and new ones, when there is");
        }).join();
        must_account(check, recorder, 3 + threads * 10);
        check(test::account_of(recorder).without_lane[loss_cause::refused] == threads * 10,
              "counted");
        check(entries(folder.path()) == 0, "nothing is left behind");
        return check.failed;
    });
    TRACE_RING_TEST_SKIP_IF(status, "no limit of addresses");
    BOOST_TEST(status == 0);
}

// --- Kernels and file systems that know less: the same answers, by a filter ---

BOOST_AUTO_TEST_CASE_TEMPLATE(a_kernel_that_takes_no_advice_on_memory_is_good_enough, kind,
                              test::kinds) {
    const int status = in_child([&]() -> int {
        checks check;
        if (!test::refuse_calls({test::call_madvise}, EINVAL)) return skipped;
        tr::basic_recorder<kind> recorder(small());
        std::uint64_t n = 0;
        while (n < 200) check(test::put(recorder, 1, n++), "record");
        std::thread([&] { check(test::put(recorder, 2, 0), "thread"); }).join();
        // Without pages that fork wipes, what the child has of its parent's lanes is cleared.
        check(in_child([&] {
                  std::uint64_t lost = 0;
                  for (std::uint64_t i = 0; i < 200; ++i) lost += test::put(recorder, 3, i) ? 0 : 1;
                  return static_cast<int>(lost);
              }) == 0,
              "a child");
        while (n < 400) check(test::put(recorder, 1, n++), "record");
        must_account(check, recorder, 601);
        const auto all = test::account_of(recorder);
        for (const auto& [number, lane] : all.lanes) {
            if (lane.who == 3) check(lane.pid != static_cast<std::uint32_t>(::getpid()), "whose");
        }
        return check.failed;
    });
    TRACE_RING_TEST_SKIP_IF(status, "no filters of system calls");
    BOOST_TEST(status == 0);
}

BOOST_AUTO_TEST_CASE(without_sources_of_chance_or_memory_files_set_up_goes_on_or_says_so) {
    const int status = in_child([&]() -> int {
        checks check;
        if (!test::refuse_calls({{SYS_getrandom, SYS_memfd_create}}, ENOSYS)) return skipped;
        auto options = small();
        options.memory_file = true;
        must_fail(check, ENOSYS, "trace_ring", [&] { const tr::recorder one(options); });
        tr::recorder recorder(small());
        check(test::put(recorder, 1, 1), "record");
        must_account(check, recorder, 1);
        return check.failed;
    });
    TRACE_RING_TEST_SKIP_IF(status, "no filters of system calls");
    BOOST_TEST(status == 0);
}

BOOST_AUTO_TEST_CASE(a_file_system_that_is_read_only_is_named_and_memory_goes_without) {
    const test::folder folder;
    const std::string there = folder / "there.trace";
    {
        tr::recorder recorder(small(there));
        test::put(recorder, 1, 1);
    }
    const int status = in_child([&]() -> int {
        checks check;
        if (!test::refuse_calls(
                {test::call_open, {SYS_fallocate, SYS_linkat, SYS_unlinkat, SYS_renameat2}},
                EROFS)) {
            return skipped;
        }
        for (const auto exists :
             {tr::if_exists::fail, tr::if_exists::replace, tr::if_exists::attach}) {
            for (const char* name : {"there.trace", "new.trace"}) {
                auto options = small(folder / name);
                options.exists = exists;
                must_fail(check, EROFS, options.file, [&] { const tr::recorder one(options); });
            }
        }
        const std::string ring = folder / "ring";
        must_fail(check, EROFS, ring, [&] { const tr::storage::shared_file one(ring, 4096); });
        tr::recorder memory(small());
        for (std::uint64_t n = 0; n < 5000; ++n) check(test::put(memory, 1, n), "memory");
        must_account(check, memory, 5000);
        check(memory.snapshot((folder / "copy").c_str()) == EROFS, "no snapshot");
        return check.failed;
    });
    TRACE_RING_TEST_SKIP_IF(status, "no filters of system calls");
    BOOST_TEST(status == 0);
    BOOST_TEST(entries(folder.path()) == 1U);
}

BOOST_AUTO_TEST_CASE(a_file_system_that_has_no_room_is_named) {
    for (const int error : {ENOSPC, EDQUOT}) {
        const test::folder folder;
        const std::string file = folder / "a.trace";
        const std::string grown = folder / "b.trace";
        const int status = in_child([&]() -> int {
            checks check;
            tr::recorder grows(growing(grown));
            const std::uint64_t there = grows.statistics().sub_buffers;
            if (!test::refuse_calls({test::call_fallocate}, error)) return skipped;
            for (const auto exists :
                 {tr::if_exists::fail, tr::if_exists::replace, tr::if_exists::attach}) {
                auto options = small(file);
                options.exists = exists;
                must_fail(check, error, file, [&] { const tr::recorder one(options); });
            }
            std::uint64_t n = 0;
            while (n < 1000) test::put(grows, 1, n++);
            must_account(check, grows, n);
            check(grows.statistics().sub_buffers == there, "it did not grow");
            check(test::account_of(grows).read() == there * test::fit_in_512, "it is full");
            return check.failed;
        });
        TRACE_RING_TEST_SKIP_IF(status, "no filters of system calls");
        BOOST_TEST(status == 0);
        BOOST_TEST(entries(folder.path()) == 1U);
    }
}

namespace {

bool has_no_holes(const std::string& file) {
    struct ::stat64 status {};
    return ::stat64(file.c_str(), &status) == 0 && status.st_size > 0 &&
           status.st_blocks * 512 >= status.st_size;
}

}  // namespace

BOOST_AUTO_TEST_CASE(where_nothing_is_allocated_ahead_zeros_are_written) {
    for (const int error : {EOPNOTSUPP, ENOSYS}) {
        const test::folder folder;
        const int status = in_child([&]() -> int {
            checks check;
            if (!test::refuse_calls({test::call_fallocate}, error)) return skipped;
            auto options = small(folder / "a.trace");
            for (const auto exists :
                 {tr::if_exists::fail, tr::if_exists::replace, tr::if_exists::attach}) {
                options.exists = exists;
                tr::recorder recorder(options);
                check(has_no_holes(options.file), "holes");
                for (std::uint64_t n = 0; n < 100; ++n) check(test::put(recorder, 1, n), "record");
            }
            check(test::account_of(tr::reduce::trace_file::open(options.file)).read() == 200,
                  "those of the second and the third");
            // Several append zeros concurrently with others that already store.
            options = growing(folder / "b.trace");
            options.limit = std::uint64_t{1} << 20;
            options.step = 512;
            tr::recorder grows(options);
            constexpr std::uint64_t writers = 4;
            constexpr std::uint64_t each = 8000;
            std::vector<std::thread> all;
            for (std::uint64_t w = 0; w < writers; ++w) {
                all.emplace_back([&, w] {
                    for (std::uint64_t n = 0; n < each; ++n) test::put(grows, w, n);
                });
            }
            for (auto& one : all) one.join();
            check(test::account_of(grows).read() == writers * each, "all of them");
            must_account(check, grows, writers * each);
            check(has_no_holes(options.file), "holes in what grew");
            tr::storage::shared_file ring(folder / "ring", 4096, 1 << 20);
            check(ring.grow(1 << 18) && has_no_holes(folder / "ring"), "a ring");
            return check.failed;
        });
        TRACE_RING_TEST_SKIP_IF(status, "no filters of system calls");
        BOOST_TEST(status == 0);
    }
}

BOOST_AUTO_TEST_CASE(where_not_even_zeros_can_be_appended_it_is_said_what_to_do) {
    const test::folder folder;
    const int status = in_child([&]() -> int {
        checks check;
        if (!test::refuse_calls({test::call_fallocate, test::call_pwritev2}, EOPNOTSUPP)) {
            return skipped;
        }
        const auto says = [&](auto&& make) {
            try {
                make();
            } catch (const tr::setup_error& said) {
                return std::string(said.what()).find("another file system") != std::string::npos;
            }
            return false;
        };
        check(says([&] { const tr::recorder one(small(folder / "a.trace")); }), "a recorder");
        check(says([&] { const tr::storage::shared_file one(folder / "a", 4096); }), "a ring");
        check(entries(folder.path()) == 0, "nothing is left behind");
        return check.failed;
    });
    TRACE_RING_TEST_SKIP_IF(status, "no filters of system calls");
    BOOST_TEST(status == 0);
}

BOOST_AUTO_TEST_CASE(without_links_a_file_gets_its_name_and_replaces_none) {
    for (const int error : {EPERM, EINVAL, ENOSYS}) {
        const test::folder folder;
        const int status = in_child([&]() -> int {
            checks check;
            if (!test::refuse_calls({test::call_link}, error)) return skipped;
            auto options = small(folder / "a.trace");
            options.exists = tr::if_exists::attach;
            tr::recorder recorder(options);
            for (std::uint64_t n = 0; n < 100; ++n) test::put(recorder, 1, n);
            const tr::recorder joins(options);
            const std::string copy = folder / "copy";
            for (const int result : {0, EEXIST}) {
                check(recorder.snapshot(copy.c_str()) == result, "a snapshot");
                check(test::account_of(tr::reduce::trace_file::open(copy)).read() == 100, "a copy");
            }
            check(entries(folder.path()) == 2, "nothing else is left");
            return check.failed;
        });
        TRACE_RING_TEST_SKIP_IF(status, "no filters of system calls");
        BOOST_TEST(status == 0);
    }
}

// --- What is asked of the system: what the README says, no more and no less ---

namespace {

/// Runs `body` where no other system call may be made than these: it ends well, but not without any
/// one of them. `body` is given what shuts the door; what it makes it leaves, for to take it down
/// is another matter.
template <class Body>
void needs_exactly(const char* when, const std::vector<test::call_names>& calls, Body&& body) {
    for (std::size_t without = 0; without <= calls.size(); ++without) {
        auto allowed = calls;
        if (without < calls.size()) {
            allowed.erase(allowed.begin() + static_cast<std::ptrdiff_t>(without));
        }
        const int status = in_child([&]() -> int {
            body([&] {
                if (!test::allow_only(allowed)) ::_exit(skipped);
            });
            ::_exit(0);
        });
        TRACE_RING_TEST_SKIP_IF(status, "no filters of system calls");
        if (without == calls.size()) {
            BOOST_TEST(status == 0, when << " ended with " << status);
        } else {
            BOOST_TEST(status == -SIGSYS,
                       when << " without call " << without << " ended with " << status);
        }
    }
}

template <class Kind>
void record_all_ways(tr::basic_recorder<Kind>& recorder, std::uint64_t records) {
    for (std::uint64_t n = 0; n < records; ++n) {
        test::put(recorder, 1, n);
        if (n % 16 == 0) {
            auto held = recorder.template reserve<test::numbered>(std::uint64_t{1}, n);
            n % 32 == 0 ? static_cast<void>(held.commit()) : held.discard();
        }
        if (n % 1000 == 0) recorder.pause();
        if (n % 1000 == 1) recorder.resume();
    }
}

/// The calls of one thread while others exist, or have existed.
void in_thread(const std::function<void()>& body) {
    std::thread(body).join();
}

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(records_and_new_sub_buffers_ask_nothing_of_the_system, kind,
                              test::kinds) {
    const test::folder folder;
    auto in_memory_file = small();
    in_memory_file.memory_file = true;
    for (const auto& options : {small(), in_memory_file, small(folder / "a.trace")}) {
        needs_exactly("recording", {}, [&](auto&& shut_the_door) {
            // Each processor has a first record.
            cpu_set_t here;
            CPU_ZERO(&here);
            CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &here);
            if (::sched_setaffinity(0, sizeof here, &here) != 0) ::_exit(skipped);
            auto& recorder = *new tr::basic_recorder<kind>(options);
            record_all_ways(recorder, 1000);
            shut_the_door();
            record_all_ways(recorder, 300'000);  // the ring some hundred times round
        });
        std::filesystem::remove(folder / "a.trace");
    }
}

BOOST_AUTO_TEST_CASE(lanes_of_processors_ask_for_no_more_than_the_readme_says) {
    const int status = in_child([&]() -> int {
        auto& recorder = *new tr::basic_recorder<test::by_cpu>(small());
        const auto rounds = [&](std::uint64_t records) {
            for (std::uint64_t i = 0; i < records; i += 1000) {
                record_all_ways(recorder, 1000);
                ::sched_yield();
            }
        };
        if (!test::allow_only({{SYS_sched_yield},
                               test::call_gettid,
                               test::call_prctl,
                               test::call_mmap,
                               test::call_madvise})) {
            return skipped;
        }
        rounds(300'000);
        ::_exit(0);
    });
    TRACE_RING_TEST_SKIP_IF(status, "no filters of system calls");
    BOOST_TEST(status == 0);
}

namespace {

/// A thread has recorded and ended, and the kernel has forgotten it: some time after it was joined.
void one_has_ended(tr::recorder& recorder) {
    pid_t thread = 0;
    in_thread([&] {
        thread = static_cast<pid_t>(::syscall(SYS_gettid));
        test::put(recorder, 1, 0);
    });
    while (::syscall(SYS_tgkill, ::getpid(), thread, 0) == 0) ::usleep(100);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_thread_s_first_record_asks_for_what_the_readme_says) {
    const auto first_record = [](bool another_has_ended, auto&& shut_the_door) {
        forget_ended_threads();
        auto& recorder = *new tr::recorder(small());
        test::put(recorder, 0, 0);
        if (another_has_ended) one_has_ended(recorder);
        in_thread([&] {
            shut_the_door();
            record_all_ways(recorder, 5000);
            ::_exit(0);
        });
    };
    needs_exactly("a thread's first record",
                  {test::call_gettid, test::call_prctl, test::call_mmap, test::call_madvise},
                  [&](auto&& shut) { first_record(false, shut); });
    // It takes the place of one that has ended, when the kernel says that it has.
    needs_exactly("a thread's first record, when another has ended",
                  {test::call_gettid, test::call_prctl, test::call_getpid, test::call_tgkill},
                  [&](auto&& shut) { first_record(true, shut); });
}

BOOST_AUTO_TEST_CASE(a_new_lane_of_a_thread_asks_for_what_the_readme_says) {
    needs_exactly("after flush_thread", {test::call_gettid, test::call_prctl},
                  [](auto&& shut_the_door) {
                      auto& recorder = *new tr::recorder(small());
                      test::put(recorder, 1, 0);
                      shut_the_door();
                      recorder.flush_thread();
                      if (!test::put(recorder, 1, 1)) ::_exit(1);
                  });
    needs_exactly("inside an open record", {test::call_gettid, test::call_prctl},
                  [](auto&& shut_the_door) {
                      auto& recorder = *new tr::recorder(small());
                      test::put(recorder, 1, 0);
                      auto held = recorder.reserve<test::numbered>(std::uint64_t{1}, 1U);
                      shut_the_door();
                      for (std::uint64_t n = 0; n < 1000; ++n) {
                          if (!test::put(recorder, 1, n)) ::_exit(1);
                      }
                      if (!held.commit()) ::_exit(1);
                  });
}

namespace {

/// Leaves a record open, as a jump out of here would, in a frame so many levels down: below those
/// of who records later, which are large where nothing is optimized.
[[gnu::noinline]] int leave_open(tr::recorder& recorder, int levels) {
    alignas(tr::recorder::reservation) volatile std::byte place[sizeof(tr::recorder::reservation)];
    place[0] = std::byte{1};
    if (levels > 0) return leave_open(recorder, levels - 1) + static_cast<int>(place[0]);
    new (const_cast<std::byte*>(place))
        tr::recorder::reservation(recorder.reserve<test::numbered>(std::uint64_t{1}, 1U));
    return static_cast<int>(place[0]);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_record_that_finds_others_left_open_asks_for_what_the_readme_says) {
    const auto jump = [](tr::recorder& recorder) {
        for (int levels = 15; levels <= 18; ++levels) leave_open(recorder, levels);
    };
    // Of a thread's own stack it must learn where it lies, once.
    needs_exactly(
        "after a thread's first jump",
        {{SYS_sigaltstack}, test::call_getpid, test::call_gettid, test::call_open, {SYS_close}},
        [&jump](auto&& shut_the_door) {
            auto& recorder = *new tr::recorder(small());
            jump(recorder);
            shut_the_door();
            if (!test::put(recorder, 1, 1)) ::_exit(1);
        });
    needs_exactly("after a jump", {{SYS_sigaltstack}}, [&jump](auto&& shut_the_door) {
        auto& recorder = *new tr::recorder(small());
        for (int jumps = 0; jumps < 2; ++jumps) {
            jump(recorder);
            if (jumps == 1) shut_the_door();
            if (!test::put(recorder, 1, 1)) ::_exit(1);
        }
    });
}

namespace {

/// Shuts the door behind the first record of a trace that then grows; it is one in memory if `file`
/// is empty.
template <class Shut>
void let_grow(const std::string& file, Shut&& shut_the_door) {
    auto options = growing(file);
    options.exists = tr::if_exists::replace;
    auto& recorder = *new tr::recorder(options);
    test::put(recorder, 1, 0);
    shut_the_door();
    for (std::uint64_t n = 1; n < 20 * test::fit_in_512; ++n) {
        if (!test::put(recorder, 1, n)) ::_exit(1);
    }
}
/// Shuts the door before a writer waits for room, in vain.
template <class Shut>
void wait_for_room(Shut&& shut_the_door) {
    auto options = small();
    options.full = tr::full_mode::block;
    options.block_for = 1ms;
    auto& recorder = *new tr::recorder(options);
    while (test::put(recorder, 1, 0)) {
    }
    shut_the_door();
    if (test::put(recorder, 1, 1)) ::_exit(1);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_trace_that_grows_asks_for_what_the_readme_says) {
    const test::folder folder;
    const std::string file = folder / "a.trace";
    needs_exactly(
        "growing",
        {test::call_fstat, test::call_getrlimit, test::call_fallocate, test::call_madvise},
        [&](auto&& shut_the_door) { let_grow(file, shut_the_door); });
    needs_exactly("growing in memory", {test::call_madvise},
                  [](auto&& shut_the_door) { let_grow({}, shut_the_door); });
}

BOOST_AUTO_TEST_CASE(a_writer_that_waits_for_room_asks_for_what_the_readme_says) {
    needs_exactly("waiting", {test::call_nanosleep},
                  [](auto&& shut_the_door) { wait_for_room(shut_the_door); });
}

namespace {

/// The calls that the README's list names for this machine: in its row that begins with `when`.
class listed_calls {
public:
    explicit listed_calls(const std::string& when) {
        const auto page = std::filesystem::path(__FILE__).parent_path() /
                          "../../../include/trace_ring/recorder/README.md";
        std::ifstream in(page);
        std::vector<std::vector<std::string>> others;
        bool of_machines = false;
        for (std::string line; std::getline(in, line);) {
            const auto cells = split(line);
            if (cells.size() == 2 && cells[0] == when) names_ = in_ticks(cells[1]);
            of_machines = of_machines || line.find("| x86-64 | i386 |") == 0;
            if (of_machines && cells.size() == 3) others.push_back(cells);
        }
        BOOST_REQUIRE_MESSAGE(!names_.empty(), "no row " << when << " in " << page.string());
        BOOST_REQUIRE(others.size() > 2U);
        // By another name on this machine.
        for (const auto& row : others) {
            const auto usual = in_ticks(row[0]);
            if (usual.empty()) continue;
            const auto at = std::find(names_.begin(), names_.end(), usual.front());
            if (at == names_.end()) continue;
            names_.erase(at);
            const auto here = in_ticks(row[column]);
            names_.insert(names_.end(), here.begin(), here.end());
            if (here.empty()) names_.insert(names_.end(), usual.begin(), usual.end());
        }
    }
    [[nodiscard]] std::vector<test::call_names> calls() const {
        test::call_names out;
        for (const auto& name : names_) {
            for (const auto& [known, number] : test::numbered_calls()) {
                if (known == name) out.push_back(number);
            }
        }
        return {out};
    }

private:
#if defined(__x86_64__)
    static constexpr std::size_t column = 0;
#elif defined(__i386__)
    static constexpr std::size_t column = 1;
#else
    static constexpr std::size_t column = 2;
#endif
    static std::vector<std::string> split(const std::string& line) {
        std::vector<std::string> out;
        if (line.empty() || line.front() != '|') return out;
        for (std::size_t from = 1, to = 0; (to = line.find('|', from)) != line.npos;
             from = to + 1) {
            const std::string cell = line.substr(from, to - from);
            const auto first = cell.find_first_not_of(' ');
            out.push_back(first == cell.npos
                              ? ""
                              : cell.substr(first, cell.find_last_not_of(' ') + 1 - first));
        }
        return out;
    }
    static std::vector<std::string> in_ticks(const std::string& text) {
        std::vector<std::string> out;
        for (std::size_t from = 0; (from = text.find('`', from)) != text.npos;) {
            const std::size_t to = text.find('`', ++from);
            if (to == text.npos) break;
            out.push_back(text.substr(from, to - from));
            from = to + 1;
        }
        return out;
    }

    std::vector<std::string> names_;
};

/// It needs no call that the README does not list by the very name that this machine has for it.
template <class Body>
void needs_none_but_listed(const std::string& when, Body&& body) {
    const auto calls = listed_calls(when).calls();
    const int status = in_child([&]() -> int {
        body([&] {
            if (!test::allow_only(calls)) ::_exit(skipped);
        });
        ::_exit(0);
    });
    TRACE_RING_TEST_SKIP_IF(status, "no filters of system calls");
    BOOST_TEST(status == 0, when << " ended with " << status);
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_readme_has_every_call_by_the_name_that_a_filter_knows) {
    const test::folder folder;
    needs_none_but_listed("a trace grows", [&](auto&& shut_the_door) {
        let_grow(folder / "a.trace", shut_the_door);
    });
    needs_none_but_listed("a writer waits for room or a lane",
                          [](auto&& shut_the_door) { wait_for_room(shut_the_door); });
    const std::string first =
        "the first record of a thread, or of a processor if lanes belong to processors";
    for (const bool another_has_ended : {false, true}) {
        needs_none_but_listed(first, [another_has_ended](auto&& shut_the_door) {
            forget_ended_threads();
            auto& recorder = *new tr::recorder(small());
            test::put(recorder, 0, 0);
            if (another_has_ended) one_has_ended(recorder);
            in_thread([&] {
                shut_the_door();
                record_all_ways(recorder, 5000);
                ::_exit(0);
            });
        });
    }
    needs_none_but_listed("the first record inside an open one, or after `flush_thread`",
                          [](auto&& shut_the_door) {
                              auto& recorder = *new tr::recorder(small());
                              test::put(recorder, 1, 0);
                              shut_the_door();
                              recorder.flush_thread();
                              if (!test::put(recorder, 1, 1)) ::_exit(1);
                          });
    needs_none_but_listed("a record that finds others left open by a jump",
                          [](auto&& shut_the_door) {
                              auto& recorder = *new tr::recorder(small());
                              for (int levels = 11; levels <= 14; ++levels)
                                  leave_open(recorder, levels);
                              shut_the_door();
                              if (!test::put(recorder, 1, 1)) ::_exit(1);
                          });
}

#endif  // no sanitizer

// --- A clock that is not to be trusted ---

namespace {

namespace clk = tr::clock;

/// In a process whose processor has no steady counter.
template <class Body>
int without_steady_counter(Body&& body) {
    return in_child([&] {
        checks check;
        clk::impl::verdict_on_tsc.store(static_cast<std::uint8_t>(clk::impl::verdict::no),
                                        tr::relaxed);
        body(check);
        return check.failed;
    });
}

struct sampled_16 : tr::policies<clk::sampled<16>> {};
using timed_kinds = std::tuple<test::by_thread, test::by_cpu, sampled_16>;

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(where_the_counter_is_not_steady_records_bear_the_system_s_time, kind,
                              timed_kinds) {
    const test::folder folder;
    const std::string copy = folder / "copy";
    const int status = without_steady_counter([&](checks& check) {
        check(!clk::tsc::usable(), "it is not to be used");
        const std::uint64_t before = clk::monotonic::now();
        tr::basic_recorder<kind> recorder({.size = 1 << 20});
        constexpr std::uint64_t each = 500;
        std::vector<std::thread> threads;
        for (std::uint64_t t = 0; t < 3; ++t) {
            threads.emplace_back([&, t] {
                for (std::uint64_t n = 0; n < each; ++n) test::put(recorder, t, n);
            });
        }
        for (auto& one : threads) one.join();
        const std::uint64_t after = clk::monotonic::now();
        must_account(check, recorder, 3 * each);
        check(recorder.snapshot(copy.c_str()) == 0, "snapshot");
        const auto trace = tr::reduce::trace_file::open(copy);
        check(recorder.bytes().second != 0 && test::hands_on(recorder).plan().clock_count != 0, "");
        std::uint64_t last = before;
        std::uint64_t seen = 0;
        for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
            const auto* const record = std::get_if<tr::reduce::record_view>(item);
            if (record == nullptr) continue;
            check(record->time() >= last && record->time() <= after,
                  "in order, by CLOCK_MONOTONIC");
            last = record->time();
            ++seen;
        }
        check(seen == 3 * each, "all of them");
        const double second = trace.time().ns(1'000'000'000);
        check(second > 0.99e9 && second < 1.01e9, "a tick is a nanosecond");
    });
    BOOST_TEST(status == 0);
}

BOOST_AUTO_TEST_CASE(a_trace_by_a_counter_is_not_joined_where_it_is_not_steady) {
    if (!clk::tsc::usable()) return;  // nor here, then
    if (clk::tsc::kind == clk::monotonic::kind) return;
    const test::folder folder;
    const std::string by_counter = folder / "counter.trace";
    const std::string by_system = folder / "system.trace";
    tr::recorder first(small(by_counter));
    const int status = without_steady_counter([&](checks& check) {
        auto options = small(by_counter);
        options.exists = tr::if_exists::attach;
        must_fail(check, ENOTSUP, by_counter, [&] { const tr::recorder one(options); });
        tr::recorder second(small(by_system));
        check(test::put(second, 1, 1), "a trace of its own");
    });
    BOOST_TEST(status == 0);
    // The other way round all goes by the system's clock.
    auto options = small(by_system);
    options.exists = tr::if_exists::attach;
    tr::recorder third(options);
    BOOST_TEST(test::put(third, 2, 2));
    const auto all = test::account_of(third);
    BOOST_TEST(all.read() == 2U);
    BOOST_TEST(all.strange == 0U);
    BOOST_TEST(test::put(first, 1, 1));
}

BOOST_AUTO_TEST_SUITE_END()
