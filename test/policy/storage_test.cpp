// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Storage: where bytes live, how they are shared, and every error of setting them up.

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "kinds.hpp"

BOOST_AUTO_TEST_SUITE(storages)

using namespace kinds;
using trace_ring::loss_cause;
using trace_ring::setup_error;

namespace {

struct in_file : policies<record::sequenced<sample>, storage::shared_file> {};
struct in_file_by_one : policies<record::bare<sample>, claim::single_writer, storage::shared_file> {
};
struct in_file_bare : policies<record::bare<sample>, storage::shared_file> {};
struct in_file_queue
    : policies<record::sequenced<sample>, full::discard_newest, storage::shared_file> {};

/// A separate folder for each test, removed with it.
struct folder {
    std::filesystem::path path;
    folder() {
        std::string name = (std::filesystem::temp_directory_path() / "trace_ring_XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
        path = name;
    }
    ~folder() { std::filesystem::remove_all(path); }
    [[nodiscard]] std::string file(const char* name = "ring") const {
        return (path / name).string();
    }
};

/// Runs `body` in a child of this process; true if it returned true.
template <class Body>
bool in_child(const Body& body) {
    const pid_t child = ::fork();
    if (child == 0) {
        bool good = false;
        try {
            good = body();
        } catch (...) {
        }
        ::_exit(good ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// The message of the setup_error that `body` throws; empty if it throws none.
template <class Body>
std::string message_of(const Body& body) {
    try {
        body();
    } catch (const setup_error& error) {
        return error.what();
    }
    return {};
}
bool mentions(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_file_is_private_to_its_owner_and_closed_on_exec) {
    const folder here;
    trace_ring::ring<in_file> ring(here.file(), sequenced_bytes);
    struct ::stat status {};
    BOOST_REQUIRE(::stat(here.file().c_str(), &status) == 0);
    BOOST_TEST((status.st_mode & 0777) == 0600);
    BOOST_TEST(static_cast<std::uint64_t>(status.st_size) ==
               storage::control_bytes + sequenced_bytes);
    BOOST_TEST(static_cast<std::uint64_t>(status.st_blocks) * 512 >=
               storage::control_bytes + sequenced_bytes);  // allocated, not a hole
    BOOST_TEST((::fcntl(ring.storage().file().get(), F_GETFD) & FD_CLOEXEC) != 0);
}

BOOST_AUTO_TEST_CASE(an_existing_file_is_never_written_over) {
    const folder here;
    std::ofstream(here.file()) << "precious";
    const auto error = message_of([&] { trace_ring::ring<in_file>(here.file(), sequenced_bytes); });
    BOOST_TEST(mentions(error, here.file()));
    BOOST_TEST(mentions(error, "File exists"));
    std::string content;
    std::ifstream(here.file()) >> content;
    BOOST_TEST(content == "precious");
}

BOOST_AUTO_TEST_CASE(a_link_is_not_followed_to_make_a_file) {
    const folder here;
    std::filesystem::create_symlink(here.path / "elsewhere", here.path / "ring");
    BOOST_TEST(
        !message_of([&] { trace_ring::ring<in_file>(here.file(), sequenced_bytes); }).empty());
    BOOST_TEST(!std::filesystem::exists(here.path / "elsewhere"));
}

BOOST_AUTO_TEST_CASE(files_that_are_no_ring_of_this_kind_are_refused_with_the_reason) {
    const folder here;
    const auto attach = [&](const char* name) {
        return message_of([&] { trace_ring::ring<in_file>(here.file(name)); });
    };
    BOOST_TEST(mentions(attach("missing"), "No such file"));
    std::ofstream(here.file("short")) << "abc";
    BOOST_TEST(mentions(attach("short"), "too short to be a ring"));
    std::ofstream(here.file("foreign")) << std::string(10'000, 'x');
    BOOST_TEST(mentions(attach("foreign"), "not a ring"));
    BOOST_TEST(mentions(attach("foreign"), here.file("foreign")));
    std::filesystem::create_directory(here.path / "folder");
    BOOST_TEST(!attach("folder").empty());

    const auto holds = [&](const char* name, auto kind, std::uint64_t bytes) {
        trace_ring::ring<decltype(kind)>(here.file(name), bytes);
        return attach(name);
    };
    BOOST_TEST(mentions(holds("bare", in_file_bare{}, bare_bytes), "another layout"));
    struct smaller : policies<record::sequenced<std::uint64_t>, storage::shared_file> {};
    BOOST_TEST(mentions(holds("smaller", smaller{}, 4096), "another size"));
    struct alone : policies<record::sequenced<sample>, claim::single_writer, storage::shared_file> {
    };
    BOOST_TEST(mentions(holds("alone", alone{}, 4096), "another claim"));

    // A good one, damaged word by word.
    const auto damage = [&](const char* name, std::size_t offset, std::uint64_t value,
                            std::size_t bytes) {
        trace_ring::ring<in_file>(here.file(name), sequenced_bytes);
        std::fstream file(here.file(name), std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(static_cast<std::streamoff>(offset));
        file.write(reinterpret_cast<const char*>(&value), static_cast<std::streamsize>(bytes));
        file.close();
        return attach(name);
    };
    BOOST_TEST(mentions(damage("version", 4, 99, 4), "another version"));
    BOOST_TEST(mentions(damage("extent0", 32, 1, 8), "cut short"));
    BOOST_TEST(mentions(damage("extent1", 32, std::uint64_t{17} << 1 | 1, 8), "cut short"));
    BOOST_TEST(mentions(damage("extent2", 32, std::uint64_t{15} << 1 | 1, 8), "impossible number"));
    BOOST_TEST(mentions(damage("extent3", 32, ~std::uint64_t{0}, 8), "cut short"));
    BOOST_TEST(mentions(damage("open", 32, std::uint64_t{16} << 1, 8), "grows"));
    BOOST_TEST(mentions(damage("limit", 24, ~std::uint64_t{0}, 8), "impossible size"));
    trace_ring::ring<in_file>(here.file("cut"), sequenced_bytes);
    std::filesystem::resize_file(here.file("cut"), storage::control_bytes + 100);
    BOOST_TEST(mentions(attach("cut"), "cut short"));
}

BOOST_AUTO_TEST_CASE(a_full_disk_is_an_error_at_set_up_and_leaves_nothing_behind) {
    const folder here;
    BOOST_TEST(in_child([&] {
        // The limit on a file's size simulates a full disk.
        ::signal(SIGXFSZ, SIG_IGN);
        const ::rlimit limit{100'000, 100'000};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        const auto error = message_of([&] { trace_ring::ring<in_file>(here.file(), 1'000'000); });
        return mentions(error, "cannot allocate") && !std::filesystem::exists(here.file());
    }));
}

BOOST_AUTO_TEST_CASE(a_ring_that_grows_takes_a_full_disk_for_its_limit) {
    const folder here;
    struct grows : policies<full::extend<32'768, full::discard_newest>, record::sequenced<sample>,
                            storage::shared_file> {};
    BOOST_TEST(in_child([&] {
        ::signal(SIGXFSZ, SIG_IGN);
        trace_ring::ring<grows> ring(here.file(), 32'768, 1'000'000);
        const ::rlimit limit{100'000, 100'000};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        std::uint64_t written = 0;
        while (put(ring, written + 1)) ++written;
        return written == 3 * 1024 && ring.capacity() == written &&
               ring.lost()[loss_cause::refused] == 1 && numbers(ring.reader()) == range(1, written);
    }));
}

BOOST_AUTO_TEST_CASE(too_many_bytes_are_an_error_whatever_the_storage) {
    const folder here;
    constexpr std::uint64_t much = ~std::uint64_t{0} - 100;
    BOOST_CHECK_THROW((trace_ring::ring<heap_swap>(much)), std::bad_alloc);
    BOOST_CHECK_THROW((trace_ring::ring<mapped_one>(much)), setup_error);
    BOOST_CHECK_THROW((trace_ring::ring<in_file>(here.file(), much)), setup_error);
    BOOST_CHECK_THROW((trace_ring::ring<in_file>(storage::in_memory, "big", much)), setup_error);
    BOOST_CHECK_THROW((trace_ring::ring<heap_swap>(8U)), setup_error);
    BOOST_CHECK_THROW((trace_ring::ring<mapped_one>(8U)), setup_error);
}

BOOST_AUTO_TEST_CASE(two_processes_write_one_ring_and_a_third_reads_it) {
    const folder here;
    trace_ring::ring<in_file> ring(here.file(), sequenced_bytes * 64);
    for (std::uint64_t i = 1; i <= 100; ++i) put(ring, i, 0);
    BOOST_TEST(in_child([&] {
        trace_ring::ring<in_file> other(here.file());
        bool good = other.capacity() == 1024;
        for (std::uint64_t i = 1; i <= 100; ++i) good = good && put(other, i, 1);
        return good;
    }));
    for (std::uint64_t i = 101; i <= 200; ++i) put(ring, i, 0);
    BOOST_TEST(in_child([&] {
        const trace_ring::ring<in_file> other(here.file(), storage::as_reader);
        auto reader = other.reader();
        std::uint64_t next[2] = {1, 1};
        while (const auto item = reader.next()) {
            if (!item.is_record() || !item.record.whole()) return false;
            if (item.record.number != next[item.record.writer]++) return false;
        }
        return next[0] == 201 && next[1] == 101 && reader.lost().total() == 0;
    }));
}

BOOST_AUTO_TEST_CASE(who_attaches_to_read_does_not_write) {
    const folder here;
    trace_ring::ring<in_file> ring(here.file(), sequenced_bytes);
    put(ring, 1);
    trace_ring::ring<in_file> reader(here.file(), storage::as_reader);
    BOOST_TEST(!put(reader, 2));
    BOOST_TEST(numbers(reader.reader()) == range(1, 1));
    BOOST_TEST(reader.lost().total() == 0U);
}

BOOST_AUTO_TEST_CASE(a_ring_of_one_writer_has_one_writing_process_at_a_time) {
    const folder here;
    trace_ring::ring<in_file_by_one> ring(here.file(), bare_bytes);
    put(ring, 1);
    BOOST_TEST(in_child([&] {
        const auto error = message_of([&] { trace_ring::ring<in_file_by_one>(here.file()); });
        const trace_ring::ring<in_file_by_one> reader(here.file(), storage::as_reader);
        return mentions(error, "another writes") && numbers(reader.reader()) == range(1, 1);
    }));
}

BOOST_AUTO_TEST_CASE(after_a_writer_died_with_a_record_open_the_next_one_goes_on) {
    const folder here;
    BOOST_TEST(in_child([&] {
        trace_ring::ring<in_file_by_one> ring(here.file(), bare_bytes);
        put(ring, 1);
        auto open = ring.try_reserve();
        open->number = 666;
        ::_exit(0);  // as dead as by kill -9: nothing is undone
        return true;
    }));
    trace_ring::ring<in_file_by_one> ring(here.file());
    BOOST_TEST(numbers(ring.reader()) == range(1, 1));
    BOOST_TEST(put(ring, 2));
    BOOST_TEST(numbers(ring.reader()) == range(1, 2));
    BOOST_TEST(ring.lost().total() == 0U);
}

BOOST_AUTO_TEST_CASE(a_dead_process_costs_the_ring_of_many_its_record_alone) {
    const folder here;
    trace_ring::ring<in_file> ring(here.file(), sequenced_bytes);
    put(ring, 1);
    BOOST_TEST(in_child([&] {
        trace_ring::ring<in_file> other(here.file());
        auto* leaked = new auto(other.try_reserve());
        **leaked = sample(666);
        ::_exit(0);
        return true;
    }));
    for (std::uint64_t i = 3; i <= 40; ++i) BOOST_REQUIRE(put(ring, i));
    // Positions 18 and 34 fell on its slot.
    BOOST_TEST(ring.vacant() == 2U);
    BOOST_TEST(numbers(ring.reader()) == range(26, 40));
}

BOOST_AUTO_TEST_CASE(records_of_variable_length_go_on_in_the_next_process) {
    const folder here;
    std::uint64_t written = 0;
    for (int process = 0; process < 5; ++process) {
        const std::uint64_t from = written;
        written += 9;
        BOOST_TEST(in_child([&] {
            auto ring =
                process == 0
                    ? std::make_unique<trace_ring::ring<varying_file>>(here.file(), 8 * sub_bytes)
                    : std::make_unique<trace_ring::ring<varying_file>>(here.file());
            for (std::uint64_t i = from + 1; i <= written; ++i) {
                if (!put(*ring, i)) return false;
            }
            auto* open = new auto(ring->try_reserve(64));  // left open
            ::_exit(*open ? 0 : 1);
        }));
    }
    const trace_ring::ring<varying_file> ring(here.file(), storage::as_reader);
    auto reader = ring.reader();
    BOOST_TEST(numbers(reader) == range(1, written));
    BOOST_TEST(reader.lost().total() == 0U);
    BOOST_TEST(numbers(ring.backward_reader()) == range(written, 1));
}

BOOST_AUTO_TEST_CASE(a_memory_file_is_shared_by_its_descriptor) {
    trace_ring::ring<in_file_queue> ring(storage::in_memory, "queue", sequenced_bytes);
    BOOST_TEST(in_child([&] {
        trace_ring::ring<in_file_queue> other(ring.storage().file());
        bool good = true;
        for (std::uint64_t i = 1; i <= table_slots; ++i) good = good && put(other, i);
        return good && !put(other, 17);
    }));
    BOOST_TEST(numbers(ring.consumer()) == range(1, table_slots));
    BOOST_TEST(ring.lost()[loss_cause::refused] == 1U);
    BOOST_TEST(in_child([&] {
        trace_ring::ring<in_file_queue> other(ring.storage().file());
        return put(other, 17);
    }));
    BOOST_TEST(numbers(ring.consumer()) == range(17, 17));
    BOOST_CHECK_THROW(trace_ring::ring<in_file_queue>(trace_ring::file_descriptor(-1)),
                      setup_error);
}

BOOST_AUTO_TEST_CASE(a_growing_file_is_followed_by_who_attached_before) {
    const folder here;
    trace_ring::ring<extend_discard> ring(here.file(), sequenced_bytes, 4 * sequenced_bytes);
    const trace_ring::ring<extend_discard> other(here.file(), storage::as_reader);
    auto reader = other.reader();
    for (std::uint64_t i = 1; i <= 60; ++i) BOOST_REQUIRE(put(ring, i));
    BOOST_TEST(other.capacity() == ring.capacity());
    BOOST_TEST(numbers(reader) == range(1, 60));
    BOOST_TEST(in_child([&] {
        trace_ring::ring<extend_discard> third(here.file());
        return put(third, 61) && put(third, 62) && put(third, 63) && put(third, 64) &&
               !put(third, 65);
    }));
    BOOST_TEST(numbers(reader) == range(61, 64));
}

BOOST_AUTO_TEST_CASE(children_of_a_fork_share_mapped_memory) {
    struct shared : policies<record::sequenced<sample>, storage::mapped> {};
    trace_ring::ring<shared> ring(sequenced_bytes);
    put(ring, 1);
    BOOST_TEST(in_child([&] { return put(ring, 2); }));
    put(ring, 3);
    BOOST_TEST(numbers(ring.reader()) == range(1, 3));
}

BOOST_AUTO_TEST_CASE(a_run_time_size_is_rounded_down_to_a_power_of_two) {
    trace_ring::ring<heap_swap> ring(31 * trace_ring::ring<heap_swap>::stride);
    BOOST_TEST(ring.capacity() == 16U);
    trace_ring::ring<heap_swap> exact(32 * trace_ring::ring<heap_swap>::stride);
    BOOST_TEST(exact.capacity() == 32U);
}

BOOST_AUTO_TEST_SUITE_END()
