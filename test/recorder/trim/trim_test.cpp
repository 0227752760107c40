// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// A trace that is closed is about as long as its contents, loses nothing by that, and has its
/// sizes back when somebody joins it. Nobody's mapping is cut.

#include <boost/test/unit_test.hpp>

#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <variant>
#include <vector>

#include <trace_ring/drain/session.hpp>
#include <trace_ring/policy/claim/per_cpu.hpp>
#include <trace_ring/recorder/control.hpp>
#include <trace_ring/recorder/cpu/recorder.hpp>
#include <trace_ring/recorder/drain_source/drain_source.hpp>
#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/recorder/trim/trim.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include <recorder/account.hpp>
#include <recorder/scratch.hpp>

BOOST_AUTO_TEST_SUITE(trimming)

namespace tr = trace_ring;
namespace fs = std::filesystem;
using test::account_of;
using test::put;
using tr::full_mode;
using tr::if_exists;

namespace {

struct by_cpu : tr::policies<tr::claim::per_cpu> {};
struct set_aside : tr::event<"set.aside", tr::field<"n", std::uint64_t>> {
    static constexpr std::uint32_t ring = 1;
};

struct file_facts {
    std::uint64_t bytes = 0, allocated = 0, inode = 0;
    mode_t mode = 0;
};
[[nodiscard]] file_facts facts(const std::string& file) {
    struct ::stat64 status {};
    BOOST_REQUIRE(::stat64(file.c_str(), &status) == 0);
    return {static_cast<std::uint64_t>(status.st_size),
            static_cast<std::uint64_t>(status.st_blocks) * 512, status.st_ino,
            status.st_mode & 07777U};
}
[[nodiscard]] std::size_t entries(const std::string& folder) {
    const fs::directory_iterator all(folder);
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}
[[nodiscard]] test::account account_in(const std::string& file) {
    return account_of(tr::reduce::trace_file::open(file));
}

template <class Recorder>
void fill(Recorder& to, std::uint64_t from, std::uint64_t count, std::uint64_t who = 1) {
    for (std::uint64_t n = from; n < from + count; ++n) put(to, who, n);
}

/// Everything that readers report, in both directions.
[[nodiscard]] std::string told_of(const tr::reduce::trace_file& trace) {
    std::string out;
    for (const bool forward : {true, false}) {
        auto cursor = forward ? trace.forward() : trace.backward();
        while (const auto* item = cursor.next()) {
            if (const auto* one = std::get_if<tr::reduce::record_view>(item)) {
                out += std::to_string(one->lane().number) + ' ' + std::to_string(one->position()) +
                       ' ' + std::to_string(one->time()) + ' ' + std::string(one->name()) + ' ' +
                       std::to_string(one->payload().size()) + '\n';
            } else if (const auto* loss = std::get_if<tr::reduce::loss_item>(item)) {
                out += "lost " + std::to_string(static_cast<int>(loss->cause)) + ' ' +
                       std::to_string(loss->count) + ' ' + std::to_string(loss->at) + '\n';
            }
        }
    }
    return out + std::to_string(trace.damages().size());
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_closed_trace_is_about_as_long_as_its_contents) {
    const test::folder folder;
    const std::string file = folder / "a.trace";
    for (const full_mode full : {full_mode::overwrite_oldest, full_mode::extend_then_discard}) {
        for (const std::uint64_t count : {0U, 1U, 1000U, 20'000U}) {
            tr::recorder_options options{.file = file};
            options.full = full;
            options.exists = if_exists::replace;
            {
                tr::recorder recorder(options);
                BOOST_TEST(facts(file).bytes > 16U << 20);
                fill(recorder, 0, count);
            }
            const file_facts closed = facts(file);
            BOOST_TEST(closed.bytes < count * 25 + 50'000);
            BOOST_TEST(closed.allocated < count * 25 + 100'000);
            BOOST_TEST(account_in(file).of(1) == test::first(count),
                       boost::test_tools::per_element());
            BOOST_TEST(account_in(file).lost().total() == 0U);
            BOOST_TEST(entries(folder.path()) == 1U);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_trimmed_trace_that_is_joined_has_its_sizes_back) {
    const test::folder folder;
    const std::string file = folder / "a.trace";
    tr::recorder_options options{.file = file};
    options.size = 64 * 512;
    options.sub_buffer_bytes = 512;
    options.exists = if_exists::attach;
    std::uint64_t written = 0;
    std::optional<std::uint64_t> sizes;
    for (const std::uint64_t count : {5U, 100U, 30U, 0U, 700U, 5000U, 10U}) {
        {
            tr::recorder recorder(options);
            const std::uint64_t now = recorder.statistics().sub_buffers;
            BOOST_TEST(now == sizes.value_or(now));
            sizes = now;
            fill(recorder, written, count);
            written += count;
        }
        // All records, or the newest of a ring that is as long as it was.
        const auto all = account_in(file);
        const auto kept = all.of(1);
        BOOST_REQUIRE(!kept.empty());
        BOOST_TEST(kept.back() == written - 1);
        BOOST_TEST(kept.size() >= std::min<std::uint64_t>(written, 50 * test::fit_in_512));
        BOOST_TEST(kept.size() + all.lost()[tr::loss_cause::overwritten] == written);
        BOOST_TEST(all.strange == 0U);
        BOOST_TEST(facts(file).bytes < 64 * 512 + 50'000);
    }
}

BOOST_AUTO_TEST_CASE(readers_are_told_the_same_before_and_after_in_each_mode) {
    std::mt19937 random(5);
    for (std::uint64_t round = test::repeated(60, 12); round != 0; --round) {
        const test::folder folder;
        tr::recorder_options options{.file = folder / "a.trace"};
        options.sub_buffer_bytes = 512;
        options.size = (40 + random() % 100) * 512;
        options.limit = options.size * (1 + random() % 3);
        options.step = 5 * 512;
        options.full = static_cast<full_mode>(random() % 6);
        options.block_for = std::chrono::microseconds{1};
        if (random() % 3 == 0) options.quotas = {8 * 512, 9 * 512};
        options.exists = if_exists::attach;
        std::uint64_t sizes = 0;
        const auto use = [&]<class Recorder>(std::unique_ptr<Recorder> recorder) {
            if (sizes != 0) BOOST_TEST(recorder->statistics().sub_buffers >= sizes);
            const auto threads = static_cast<unsigned>(1 + random() % 3);
            for (unsigned t = 0; t < threads; ++t) {
                const std::uint64_t count = random() % (random() % 4 == 0 ? 4000 : 200);
                std::thread([&] {
                    fill(*recorder, 0, count, t);
                    for (std::uint64_t n = 0; n < count / 8; ++n) {
                        recorder->template record<set_aside>(n);
                    }
                }).join();
            }
            if (random() % 4 == 0) {
                tr::drain::session session(*recorder);
                for (int i = 0; i < 5; ++i) {
                    if (auto one = session.take()) one->consume();
                }
            }
            sizes = recorder->statistics().sub_buffers;
            std::string before;
            {
                const tr::file_descriptor holds = tr::impl::open_to_map(options.file);
                recorder.reset();
                before = told_of(tr::reduce::trace_file::open(options.file));
            }
            const std::uint64_t whole = facts(options.file).bytes;
            BOOST_TEST(tr::trim(options.file));
            BOOST_TEST(facts(options.file).bytes < whole);
            BOOST_TEST((told_of(tr::reduce::trace_file::open(options.file)) == before));
        };
        for (int runs = 0; runs < 3; ++runs) {
            if (random() % 3 == 0) {
                use(std::make_unique<tr::basic_recorder<by_cpu>>(options));
            } else {
                use(std::make_unique<tr::recorder>(options));
            }
        }
        BOOST_TEST(entries(folder.path()) == 1U);
    }
}

BOOST_AUTO_TEST_CASE(a_trace_with_much_in_it_is_cut_where_it_is) {
    const test::folder folder;
    const std::string file = folder / "a.trace";
    std::uint64_t inode = 0;
    {
        tr::recorder recorder({.file = file});
        inode = facts(file).inode;
        fill(recorder, 0, 200'000);
    }
    BOOST_TEST(facts(file).inode == inode);
    BOOST_TEST(facts(file).bytes < 200'000U * 25 + 1'300'000);
    BOOST_TEST(account_in(file).read() == 200'000U);
    {
        tr::recorder_options options{.file = file};
        options.exists = if_exists::attach;
        tr::recorder recorder(options);
        BOOST_TEST(recorder.statistics().sub_buffers == 4096U);
        BOOST_TEST(facts(file).bytes < 18'000'000U);
        fill(recorder, 200'000, 100'000);
    }
    BOOST_TEST(account_in(file).of(1) == test::first(300'000), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(other_names_and_the_mode_of_a_file_stay) {
    const test::folder folder;
    const std::string file = folder / "a.trace";
    const std::string other = folder / "b.trace";
    {
        tr::recorder recorder({.file = file});
        BOOST_REQUIRE(::chmod(file.c_str(), 0640) == 0);
        fill(recorder, 0, 100);
    }
    BOOST_TEST(facts(file).mode == 0640U);
    tr::recorder_options options{.file = file};
    options.exists = if_exists::attach;
    {
        tr::recorder recorder(options);
        fs::create_hard_link(file, other);
        fill(recorder, 100, 100);
    }
    BOOST_TEST(facts(file).inode == facts(other).inode);
    BOOST_TEST(account_in(other).of(1) == test::first(200), boost::test_tools::per_element());
    BOOST_TEST(facts(file).bytes < 1'300'000U);
    // A file that has lost its name is nobody's business.
    std::string moved = folder / "c.trace";
    {
        tr::recorder recorder(options);
        fill(recorder, 200, 100);
        fs::rename(file, moved);
        std::ofstream(file) << "another";
    }
    BOOST_TEST(facts(file).bytes == 7U);
    BOOST_TEST(account_in(moved).of(1) == test::first(300), boost::test_tools::per_element());
}

/// Whether MADV_DONTFORK does what it says.
bool fork_leaves_out_pages() {
    const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    void* const page =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || ::madvise(page, bytes, MADV_DONTFORK) != 0) return false;
    const pid_t child = test::start_child([&]() -> int {
        unsigned char resident = 0;
        return ::mincore(page, bytes, &resident) == 0 ? 1 : 0;
    });
    const bool left_out = test::wait_for(child) == 0;
    ::munmap(page, bytes);
    return left_out;
}

BOOST_AUTO_TEST_CASE(
    a_trace_that_was_renamed_meanwhile_is_cut_and_what_has_its_name_is_not_touched) {
    const test::folder folder;
    const std::string file = folder / "a.trace";
    tr::recorder_options options{.file = file};
    options.exists = if_exists::rotate;
    options.rotations = 2;
    std::optional<tr::recorder> first(options);
    fill(*first, 0, 1000);
    const std::uint64_t whole = facts(file).bytes;
    {
        tr::recorder second(options);
        const file_facts named = facts(file);
        const file_facts rotated = facts(file + ".1");
        BOOST_TEST(rotated.inode != named.inode);
        BOOST_TEST(rotated.bytes == whole);
        fill(second, 5000, 10);
        {
            const tr::control held(file + ".1");
            first.reset();
            BOOST_TEST(facts(file + ".1").bytes == whole);  // mapped
        }
        BOOST_TEST(facts(file + ".1").bytes < whole);
        BOOST_TEST(facts(file).inode == named.inode);
        BOOST_TEST(facts(file).bytes == named.bytes);
        // Again, with nobody else there, and a third that takes the name.
        first.emplace(options);
        fill(second, 5010, 10);
    }
    const file_facts second = facts(file + ".1");
    BOOST_TEST(second.bytes < whole / 8);
    BOOST_TEST(second.allocated < whole / 8);
    BOOST_TEST(facts(file).bytes == whole);
    BOOST_TEST(account_in(file + ".1").read() == 20U);
    BOOST_TEST(account_in(file + ".1").lost().total() == 0U);
    BOOST_TEST(account_in(file + ".2").of(1) == test::first(1000),
               boost::test_tools::per_element());
    first.reset();
    BOOST_TEST(entries(folder.path()) == 3U);
    // Who joins it has room again.
    options.file = file + ".1";
    options.exists = if_exists::attach;
    tr::recorder joined(options);
    BOOST_TEST(facts(file + ".1").bytes == whole);
}

BOOST_AUTO_TEST_CASE(the_last_of_those_that_have_a_file_trims_it) {
    const test::folder folder;
    tr::recorder_options options{.file = folder / "a.trace"};
    options.exists = if_exists::attach;
    const auto is_long = [&] { return facts(options.file).bytes > 16U << 20; };
    auto first = std::make_unique<tr::recorder>(options);
    auto second = std::make_unique<tr::recorder>(options);
    fill(*first, 0, 10);
    first.reset();
    BOOST_TEST(is_long());
    fill(*second, 10, 10);
    // A child of a fork has the mapping, too, though it has not recorded yet.
    int end[2];
    BOOST_REQUIRE(::pipe(end) == 0);
    const pid_t child = test::start_child([&]() -> int {
        ::close(end[1]);
        char byte = 0;
        if (::read(end[0], &byte, 1) != 0) return 1;
        fill(*second, 20, 10);
        second.reset();
        return 0;
    });
    ::close(end[0]);
    second.reset();
    BOOST_TEST(is_long());
    ::close(end[1]);
    BOOST_TEST(test::wait_for(child) == 0);
    // Where a child inherits the page that holds its parent's lock, as under qemu-user, which takes
    // MADV_DONTFORK and ignores it, the child is not the last to have the file.
    if (fork_leaves_out_pages()) BOOST_TEST(!is_long());
    BOOST_TEST(account_in(options.file).of(1) == test::first(30), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_maps_a_trace_keeps_it_from_being_cut) {
    const test::folder folder;
    tr::recorder_options options{.file = folder / "a.trace"};
    options.exists = if_exists::attach;
    const auto is_long = [&] { return facts(options.file).bytes > 16U << 20; };
    auto recorder = std::make_unique<tr::recorder>(options);
    fill(*recorder, 0, 500);
    {
        tr::control outside(options.file);
        tr::drain_source source(options.file);
        recorder.reset();
        BOOST_TEST(is_long());
        tr::drain::session session(source);
        std::uint64_t seen = 0;
        session.peek_each([&](const tr::drained_sub_buffer& one) { seen += one.records(); });
        BOOST_TEST(seen == 500U);
        outside.pause();
        outside.resume();
        // Others join what it drains.
        recorder = std::make_unique<tr::recorder>(options);
        fill(*recorder, 500, 500);
        recorder.reset();
        session.peek_each([&](const tr::drained_sub_buffer& one) { seen += one.records(); });
        BOOST_TEST(seen == 1000U);
    }
    {
        const tr::drain_source last(options.file);
        BOOST_TEST(is_long());
    }
    BOOST_TEST(!is_long());
    {
        tr::drain_source source(options.file);  // has its sizes back
        BOOST_TEST(is_long());
        recorder = std::make_unique<tr::recorder>(options);
        fill(*recorder, 1000, 10);
        tr::drain::session session(source);
        std::uint64_t seen = 0;
        session.finish([&](const tr::drained_sub_buffer& one) { seen += one.records(); });
        BOOST_TEST(seen == 1010U);
        recorder.reset();
    }
    BOOST_TEST(!is_long());
    {
        tr::control outside(options.file);
        std::size_t types = 0;
        outside.list([&](std::string_view, bool) { ++types; });
        BOOST_TEST(types > 0U);
    }
    BOOST_TEST(!is_long());
    BOOST_TEST(account_in(options.file).lost().total() == 0U);
}

BOOST_AUTO_TEST_CASE(who_reads_a_trace_when_it_is_closed_reads_it_to_the_end) {
    for (const std::uint64_t count : {1000U, 200'000U}) {
        const test::folder folder;
        const std::string file = folder / "a.trace";
        auto recorder = std::make_unique<tr::recorder>(tr::recorder_options{.file = file});
        fill(*recorder, 0, count);
        const auto trace = tr::reduce::trace_file::open(file);
        auto forward = trace.forward();
        std::uint64_t read = 0;
        while (const auto* const item = forward.next()) {
            BOOST_TEST(std::holds_alternative<tr::reduce::record_view>(*item));
            if (++read == 100) recorder.reset();
        }
        BOOST_TEST(read == count);
        BOOST_TEST(!trace.live());
        BOOST_TEST(facts(file).bytes < count * 25 + 1'300'000);
    }
}

BOOST_AUTO_TEST_CASE(who_follows_a_trace_sees_those_that_join_it_after_it_was_closed) {
    const test::folder folder;
    tr::recorder_options options{.file = folder / "a.trace"};
    options.exists = if_exists::attach;
    std::uint64_t written = 0;
    const auto run = [&](std::uint64_t count, auto&& look) {
        tr::recorder recorder(options);
        fill(recorder, written, count);
        written += count;
        look();
        fill(recorder, written, count);
        written += count;
    };
    // From a trace that is open, and from one that was trimmed before.
    for (const bool trimmed : {false, true}) {
        if (!trimmed) fs::remove(options.file);
        if (!trimmed) written = 0;
        std::optional<tr::reduce::trace_file> trace;
        std::optional<tr::reduce::cursor> follower;
        std::uint64_t seen = 0;
        const auto look = [&] {
            if (!trace) {
                trace.emplace(tr::reduce::trace_file::open(options.file));
                follower.emplace(trace->follow());
            }
            while (const auto* const item = follower->next()) {
                const auto* const record = std::get_if<tr::reduce::record_view>(item);
                BOOST_REQUIRE(record != nullptr);
                BOOST_REQUIRE(record->field("n").u64() == seen++);
            }
        };
        if (trimmed) look();
        for (const std::uint64_t count : {10U, 500U, 3000U, 1U}) {
            run(count, look);
            look();
        }
        follower->stop_following();
        look();
        BOOST_TEST(seen == written);
    }
}

BOOST_AUTO_TEST_CASE(the_trace_of_a_killed_program_is_trimmed_on_request) {
    const test::folder folder;
    const std::string file = folder / "a.trace";
    int ready[2];
    BOOST_REQUIRE(::pipe(ready) == 0);
    const pid_t child = test::start_child([&]() -> int {
        tr::recorder recorder({.file = file});
        fill(recorder, 0, 1000);
        static_cast<void>(::write(ready[1], "r", 1));
        for (;;) ::pause();
    });
    char byte = 0;
    BOOST_REQUIRE(::read(ready[0], &byte, 1) == 1);
    BOOST_TEST(!tr::trim(file));  // in use
    ::kill(child, SIGKILL);
    BOOST_TEST(test::wait_for(child) == -SIGKILL);
    const std::string before = told_of(tr::reduce::trace_file::open(file));
    BOOST_TEST(facts(file).bytes > 16U << 20);
    BOOST_TEST(tr::trim(file));
    BOOST_TEST(facts(file).bytes < 75'000U);
    BOOST_TEST(told_of(tr::reduce::trace_file::open(file)) == before);
    BOOST_TEST(tr::trim(file));  // nothing more to do
    std::ofstream(folder / "text") << std::string(5000, 'x');
    BOOST_CHECK_THROW(static_cast<void>(tr::trim(folder / "text")), tr::setup_error);
    BOOST_CHECK_THROW(static_cast<void>(tr::trim(folder / "none")), tr::setup_error);
}

BOOST_AUTO_TEST_CASE(processes_that_join_and_leave_at_once_lose_nothing) {
    const test::folder folder;
    tr::recorder_options options{.file = folder / "a.trace"};
    options.exists = if_exists::attach;
    options.size = 1 << 20;
    const std::uint64_t runs = test::repeated(300, 20);
    constexpr std::uint64_t writers = 4;
    std::vector<pid_t> children;
    for (std::uint64_t who = 0; who < writers; ++who) {
        children.push_back(test::start_child([&]() -> int {
            for (std::uint64_t run = 0; run < runs; ++run) {
                tr::recorder recorder(options);
                for (std::uint64_t n = 0; n < 5; ++n) {
                    if (!put(recorder, who, run * 5 + n)) return 1;
                }
            }
            return 0;
        }));
    }
    for (const pid_t child : children) BOOST_TEST(test::wait_for(child) == 0);
    const auto all = account_in(options.file);
    BOOST_TEST(all.read() + all.lost()[tr::loss_cause::overwritten] == writers * runs * 5);
    BOOST_TEST(all.strange == 0U);
    BOOST_TEST(entries(folder.path()) == 1U);
}

BOOST_AUTO_TEST_CASE(a_process_that_is_killed_while_it_trims_or_joins_leaves_a_whole_trace) {
    const test::folder folder;
    tr::recorder_options options{.file = folder / "a.trace"};
    options.exists = if_exists::attach;
    options.size = 256 << 10;
    std::mt19937 random(3);
    const std::uint64_t kills = test::repeated(300, 30);
    for (std::uint64_t i = 0; i < kills; ++i) {
        const pid_t child = test::start_child([&]() -> int {
            for (std::uint64_t n = 0;; ++n) {
                tr::recorder recorder(options);
                put(recorder, 1, n);
            }
        });
        ::usleep(static_cast<unsigned>(2000 + random() % 5000));
        ::kill(child, SIGKILL);
        BOOST_TEST(test::wait_for(child) == -SIGKILL);
        if (!fs::exists(options.file)) continue;  // killed before it was there
        const auto all = account_in(options.file);
        BOOST_TEST(all.strange == 0U);
        const tr::recorder recorder(options);
        BOOST_TEST(recorder.statistics().sub_buffers == 64U);
    }
}

BOOST_AUTO_TEST_SUITE_END()
