// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Writing CPTRAP's spool file: drained from a ring, torn, full, continued.

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <trace_ring/cptrap/cp_entry.hpp>
#include <trace_ring/cptrap/interface.hpp>
#include <trace_ring/cptrap/spool.hpp>
#include <trace_ring/cptrap/spool_reader.hpp>
#include <trace_ring/drain/session.hpp>
#include <trace_ring/policy/clock/none.hpp>
#include <trace_ring/policy/full/block.hpp>
#include <trace_ring/policy/full/discard_newest.hpp>
#include <trace_ring/policy/full/overwrite_oldest.hpp>
#include <trace_ring/policy/storage/inline_bytes.hpp>
#include <trace_ring/policy/storage/mapping.hpp>
#include <trace_ring/ring/drain.hpp>
#include <trace_ring/ring/ring.hpp>

#include <proof.hpp>

#include "recorder/scratch.hpp"

namespace cptrap_spool {

namespace cptrap = trace_ring::cptrap;
namespace drain = trace_ring::drain;
namespace record = trace_ring::record;
namespace reduce = trace_ring::reduce;
using cptrap::outcome;
using record::cptrap_type;
using trace_ring::loss_cause;
using trace_ring::setup_error;
using buffer = std::vector<std::byte>;
using kind = reduce::spool_item::kind;

namespace {

struct trap_trace
    : trace_ring::policies<record::sub_buffers<>, trace_ring::full::discard_newest,
                           trace_ring::clock::none, trace_ring::storage::inline_bytes<32768>> {};
struct waiting_trace
    : trace_ring::policies<record::sub_buffers<>, trace_ring::full::block<std::chrono::seconds{60}>,
                           trace_ring::clock::none, trace_ring::storage::inline_bytes<32768>> {};
struct wrap_table : trace_ring::policies<record::cp_entry, trace_ring::full::overwrite_oldest,
                                         trace_ring::storage::inline_bytes<4096>> {};

constexpr auto everything = record::cptrap_selection::everything();

buffer counted(std::size_t count, unsigned first = 1) {
    buffer out(count);
    for (auto& one : out) one = static_cast<std::byte>(first++);
    return out;
}
/// Data derived from its code.
buffer data_of(std::uint16_t code) {
    return counted(code % 265U, code);
}

/// What a file holds: codes of sound data, losses by cause, and what cannot be read.
struct contents {
    std::vector<std::uint16_t> codes;
    trace_ring::loss_counts lost;
    unsigned entries = 0, unreadable = 0, torn = 0, strange = 0;
};
contents read(const std::string& path) {
    contents out;
    auto reader = reduce::spool_reader::open(path);
    while (const auto item = reader.next()) {
        if (item.what == kind::torn) {
            ++out.torn;
        } else if (item.what == kind::unreadable) {
            ++out.unreadable;
        } else if (const auto lost = item.record.lost()) {
            out.lost.add(lost->cause, lost->count);
        } else if (item.record.entry()) {
            ++out.entries;
        } else {
            const auto expected = data_of(item.record.code);
            const auto data = item.record.data();
            if (!std::equal(data.begin(), data.end(), expected.begin(), expected.end()))
                ++out.strange;
            out.codes.push_back(item.record.code);
        }
    }
    return out;
}
std::vector<std::uint16_t> codes(std::uint16_t from, std::uint16_t to) {
    std::vector<std::uint16_t> out;
    for (std::uint16_t code = from; code < to; ++code) out.push_back(code);
    return out;
}

/// The process's limit of file sizes, for a while.
class file_size_limit {
public:
    explicit file_size_limit(std::uint64_t bytes) {
        ::getrlimit(RLIMIT_FSIZE, &before_);
        rlimit now = before_;
        now.rlim_cur = static_cast<rlim_t>(bytes);
        BOOST_REQUIRE(::setrlimit(RLIMIT_FSIZE, &now) == 0);
    }
    file_size_limit(const file_size_limit&) = delete;
    ~file_size_limit() { ::setrlimit(RLIMIT_FSIZE, &before_); }

private:
    rlimit before_{};
};

struct fixture {
    test::folder folder;
    std::string path = folder / "cptrap.file";
};

}  // namespace

}  // namespace cptrap_spool

BOOST_FIXTURE_TEST_SUITE(cptrap_spool, fixture)

BOOST_AUTO_TEST_CASE(what_is_handed_over_comes_to_the_file_by_a_session_in_order) {
    auto ring = std::make_unique<trace_ring::ring<trap_trace>>();
    cptrap::trapok trapok;
    trapok.start(everything);
    const cptrap::cp_interface trap(trapok, *ring);
    {
        cptrap::spool spool(path);
        drain::session session(*ring);
        std::uint64_t taken = 0;
        for (std::uint16_t code = 0; code < 3000; ++code) {
            BOOST_REQUIRE((trap.hand_over(code, data_of(code)) == outcome::stored));
            if (code % 20 == 0) taken += spool.take(session);
        }
        BOOST_TEST(taken > 2000U);
        BOOST_TEST(spool.unwritten() > 0U);
        taken += spool.finish(session);
        BOOST_TEST(taken == 3000U);
        BOOST_TEST(spool.records() == 3000U);
        BOOST_TEST(spool.unwritten() == 0U);
        BOOST_TEST(spool.error() == 0);
        BOOST_TEST(spool.lost().total() == 0U);
        BOOST_TEST(std::filesystem::file_size(path) == spool.spool_records() * 4096);
    }
    const auto found = read(path);
    BOOST_TEST((found.codes == codes(0, 3000)));
    BOOST_TEST(found.strange == 0U);
    BOOST_TEST(found.lost.total() == 0U);
    BOOST_TEST(found.torn + found.unreadable == 0U);
}

BOOST_AUTO_TEST_CASE(the_wrap_table_goes_on_being_filled_and_chosen_entries_are_spooled) {
    auto table = std::make_unique<trace_ring::ring<wrap_table>>();
    auto ring = std::make_unique<trace_ring::ring<trap_trace>>();
    static constexpr auto some =
        record::cptrap_selection().code(7).event(record::cp_event::run_user);
    cptrap::trapok trapok;
    trapok.start(some);
    const cptrap::cp_interface trap(trapok, *ring);
    cptrap::spool spool(path);
    drain::session session(*ring);
    constexpr unsigned rounds = 2400;
    for (unsigned i = 0; i < rounds; ++i) {
        record::cp_entry entry;
        entry.set(static_cast<record::cp_event>(1 + i % 24));
        BOOST_REQUIRE(table->write(entry));
        static_cast<void>(trap.entry(entry));
        static_cast<void>(trap.hand_over(static_cast<std::uint16_t>(i % 100), data_of(7)));
        spool.take(session);
    }
    spool.finish(session);
    BOOST_TEST(table->produced() == rounds);
    BOOST_TEST(table->capacity() < rounds);  // it has wrapped
    const auto found = read(path);
    BOOST_TEST(found.entries == rounds / 24);
    BOOST_TEST((found.codes == std::vector<std::uint16_t>(rounds / 100, 7)));
    BOOST_TEST(found.strange == 0U);
}

BOOST_AUTO_TEST_CASE(a_writer_and_the_spool_on_two_threads_lose_nothing) {
    auto ring = std::make_unique<trace_ring::ring<waiting_trace>>();
    cptrap::trapok trapok;
    trapok.start(everything);
    const auto count = static_cast<std::uint16_t>(test::scaled(60'000, 2000));
    std::atomic<bool> ended{false};
    std::thread writer([&] {
        const cptrap::cp_interface trap(trapok, *ring);
        for (std::uint16_t code = 0; code < count; ++code)
            static_cast<void>(trap.hand_over(code, data_of(code)));
        ended = true;
    });
    cptrap::spool spool(path);
    drain::session session(*ring);
    while (!ended.load()) {
        if (spool.take(session) == 0) std::this_thread::yield();
    }
    writer.join();
    spool.finish(session);
    BOOST_TEST(spool.records() == count);
    BOOST_TEST(spool.lost().total() == 0U);
    const auto found = read(path);
    BOOST_TEST((found.codes == codes(0, count)));
    BOOST_TEST(found.strange == 0U);
    trace_ring_test::proof("accounted", count, "records from racing threads");
}

BOOST_AUTO_TEST_CASE(what_the_ring_lost_stands_in_the_file_with_its_cause) {
    auto ring = std::make_unique<trace_ring::ring<trap_trace>>();
    cptrap::trapok trapok;
    trapok.start(everything);
    const cptrap::cp_interface trap(trapok, *ring);
    cptrap::spool spool(path);
    drain::session session(*ring);
    std::uint64_t stored = 0;
    for (unsigned round = 0; round < 3; ++round) {
        for (std::uint16_t code = 0; code < 1000; ++code)
            stored += trap.hand_over(code, data_of(code)) == outcome::stored ? 1 : 0;
        spool.take(session);
    }
    BOOST_TEST(spool.finish(session) > 0U);
    BOOST_TEST(stored < 3000U);
    BOOST_TEST(spool.records() == stored);
    BOOST_TEST((spool.lost() == session.lost()));
    const auto found = read(path);
    BOOST_TEST(found.codes.size() == stored);
    BOOST_TEST(found.lost[loss_cause::refused] == 3000 - stored);
    BOOST_TEST((found.lost == session.lost()));
}

BOOST_AUTO_TEST_CASE(records_in_the_ring_that_are_no_cptrap_records_are_counted_as_damaged) {
    auto ring = std::make_unique<trace_ring::ring<trap_trace>>();
    cptrap::trapok trapok;
    trapok.start(everything);
    const cptrap::cp_interface trap(trapok, *ring);
    BOOST_REQUIRE((trap.hand_over(1, data_of(1)) == outcome::stored));
    buffer one(24);
    one.resize(record::put_cptrap(one, cptrap_type::cp_interface, 2, data_of(2)));
    BOOST_REQUIRE(ring->write_bytes(1, one));  // under another id
    one[5] = std::byte{0xFF};
    BOOST_REQUIRE(ring->write_bytes(0x3F, one));  // longer than it is
    one[5] = std::byte{8};
    one.resize(24);
    BOOST_REQUIRE(ring->write_bytes(0x3F, one));  // and much shorter
    BOOST_REQUIRE(ring->write(0x3F, std::uint32_t{0}));
    BOOST_REQUIRE((trap.hand_over(3, data_of(3)) == outcome::stored));
    cptrap::spool spool(path);
    drain::session session(*ring);
    BOOST_TEST(spool.finish(session) == 2U);
    BOOST_TEST(spool.lost()[loss_cause::damaged] == 4U);
    const auto found = read(path);
    BOOST_TEST((found.codes == std::vector<std::uint16_t>{1, 3}));
    BOOST_TEST(found.lost[loss_cause::damaged] == 4U);
}

BOOST_AUTO_TEST_CASE(a_record_never_spans_two_spool_records_and_each_tail_is_zero) {
    cptrap::spool spool(path);
    std::mt19937 random(3);
    for (unsigned i = 0; i < 500; ++i) {
        const auto code = static_cast<std::uint16_t>(random());
        BOOST_REQUIRE(spool.append(code, data_of(code)));
    }
    BOOST_REQUIRE(spool.flush());
    BOOST_TEST(spool.flush());  // nothing to do
    BOOST_TEST(std::filesystem::file_size(path) == spool.spool_records() * 4096);
    const auto found = read(path);  // a walk ends where a tail is not zero
    BOOST_TEST(found.codes.size() == 500U);
    BOOST_TEST(found.strange + found.torn + found.unreadable == 0U);
}

BOOST_AUTO_TEST_CASE(what_is_no_record_is_refused_and_counted) {
    cptrap::spool spool(path);
    BOOST_TEST(!spool.append(std::span<const std::byte>{}));
    BOOST_TEST(!spool.append(counted(12)));
    buffer much(5000);
    record::cptrap_header::of(cptrap_type{0xC0}, 0, 5000)
        .store(std::span(much).first<record::cptrap_header_bytes>());
    BOOST_TEST(!spool.append(much));
    BOOST_TEST(spool.lost()[loss_cause::damaged] == 2U);
    BOOST_TEST(spool.lost()[loss_cause::too_long] == 1U);
    BOOST_TEST(spool.records() == 0U);
}

BOOST_AUTO_TEST_CASE(a_full_file_refuses_counts_and_tells_it_in_its_place_when_there_is_room) {
    std::uint16_t code = 0;
    cptrap::spool spool(path);
    {
        const file_size_limit three_pages(3 * 4096 + 100);
        while (spool.append(code, data_of(200))) ++code;
        BOOST_TEST(spool.error() == EFBIG);
        for (int i = 0; i < 9; ++i) BOOST_TEST(!spool.append(code, data_of(200)));
        BOOST_TEST(spool.flush());
        BOOST_TEST(std::filesystem::file_size(path) == 3U * 4096);
        BOOST_TEST(spool.lost()[loss_cause::refused] == 10U);
        BOOST_TEST(spool.unwritten() == 0U);
        // The full file says itself what it lacks, also if more is refused later.
        auto found = read(path);
        BOOST_TEST(found.codes.size() == code);
        BOOST_TEST(found.lost[loss_cause::refused] == 10U);
        BOOST_TEST(!spool.append(code, data_of(200)));
        spool.lose(loss_cause::overwritten, 5);
        BOOST_TEST(spool.flush());
        found = read(path);
        BOOST_TEST(found.codes.size() == code);
        BOOST_TEST(found.lost[loss_cause::refused] == 11U);
        BOOST_TEST(found.lost[loss_cause::overwritten] == 5U);
    }
    const std::uint64_t before = spool.records();
    BOOST_TEST(spool.append(9999, data_of(9999)));
    BOOST_TEST(spool.error() == 0);
    BOOST_REQUIRE(spool.flush());
    auto reader = reduce::spool_reader::open(path);
    std::uint64_t at = 0;
    while (const auto item = reader.next()) {
        BOOST_TEST((item.what == kind::record));
        const auto lost = item.record.lost();
        BOOST_TEST(lost.has_value() == (at == before || at == before + 1));
        if (lost) BOOST_TEST(lost->count == (lost->cause == loss_cause::refused ? 11U : 5U));
        if (!lost && at > before) BOOST_TEST(item.record.code == 9999);
        ++at;
    }
    BOOST_TEST(at == before + 3);
}

BOOST_AUTO_TEST_CASE(a_record_as_long_as_a_spool_record_comes_behind_the_losses_before_it) {
    buffer whole(4096);
    record::cptrap_header::of(cptrap_type{0xC0}, 1, 4096)
        .store(std::span(whole).first<record::cptrap_header_bytes>());
    {
        cptrap::spool spool(path);
        BOOST_TEST(spool.append(whole));
        BOOST_TEST(!spool.append(counted(12)));
        BOOST_TEST(spool.append(whole));
        BOOST_TEST(spool.append(whole));
    }
    auto reader = reduce::spool_reader::open(path);
    std::vector<std::uint64_t> found;  // numbers of spool records, the loss's number twice
    while (const auto item = reader.next()) {
        BOOST_TEST((item.what == kind::record));
        found.push_back(item.number);
        if (item.record.lost()) found.push_back(item.number);
    }
    BOOST_TEST((found == std::vector<std::uint64_t>{0, 1, 1, 2, 3}));
}

BOOST_AUTO_TEST_CASE(a_limit_of_its_own_holds_to_the_byte) {
    cptrap::spool spool(path, 2 * 4096);
    std::uint16_t code = 0;
    while (spool.append(code, data_of(264))) ++code;
    BOOST_TEST(code == 29);  // two pages of 15, but the last one keeps room for its losses
    BOOST_TEST(spool.spool_records() == 2U);
    BOOST_TEST(spool.unwritten() == 0U);
    BOOST_TEST(spool.error() == EFBIG);
    const auto found = read(path);
    BOOST_TEST(found.codes.size() == 29U);
    BOOST_TEST(found.lost[loss_cause::refused] == 1U);
    BOOST_TEST(std::filesystem::file_size(path) == 2U * 4096);
}

BOOST_AUTO_TEST_CASE(a_file_that_is_no_cptrap_file_is_not_gone_on_with) {
    for (const std::string& text :
         {std::string("Notes of a user, which are not to be lost."), std::string(5000, 'x'),
          std::string("\x3F\0\0\3\xFF\xFF\0\0", 8) + std::string(5000, '\0')}) {
        std::ofstream(path, std::ios::binary) << text;
        BOOST_CHECK_EXCEPTION((cptrap::spool{cptrap::go_on, path}), setup_error,
                              [&](const setup_error& error) {
                                  return error.code().value() == EINVAL && error.subject() == path;
                              });
        std::ifstream in(path, std::ios::binary);
        BOOST_TEST(std::string(std::istreambuf_iterator<char>(in), {}) == text);
    }
    std::filesystem::remove(path);
}

BOOST_AUTO_TEST_CASE(a_device_without_room_is_an_error_that_names_it) {
    trace_ring::file_descriptor full(::open("/dev/full", O_RDWR | O_CLOEXEC));
    if (!full) {
        BOOST_TEST_MESSAGE("skipped: there is no /dev/full here");
        return;
    }
    cptrap::spool spool(std::move(full), "/dev/full");
    for (int i = 0; i < 15; ++i) BOOST_TEST(spool.append(1, data_of(264)));
    for (int i = 0; i < 5; ++i) BOOST_TEST(!spool.append(1, data_of(264)));
    BOOST_TEST(spool.error() == ENOSPC);
    BOOST_TEST(spool.lost()[loss_cause::refused] == 5U);
    BOOST_TEST(spool.records() == 15U);
    BOOST_TEST(spool.unwritten() == 15U);
}

BOOST_AUTO_TEST_CASE(a_spool_cut_at_every_byte_is_gone_on_with_and_nothing_whole_is_lost) {
    {
        cptrap::spool spool(path);
        for (std::uint16_t code = 200; code < 230; ++code)
            BOOST_REQUIRE(spool.append(code, data_of(code)));
        BOOST_REQUIRE(spool.flush());
    }
    const auto text = [&] {
        std::ifstream in(path, std::ios::binary);
        return std::string(std::istreambuf_iterator<char>(in), {});
    }();
    BOOST_REQUIRE(text.size() == 8192U);
    std::vector<std::size_t> ends;  // of each record
    {
        auto reader = reduce::spool_reader::open(path);
        while (const auto item = reader.next())
            ends.push_back(static_cast<std::size_t>(item.offset) + item.bytes.size());
    }
    unsigned tried = 0;
    for (std::size_t cut = 0; cut <= text.size(); cut += cut % 4096 < 600 ? 1 : 41, ++tried) {
        {
            std::ofstream out(path, std::ios::binary | std::ios::trunc);
            out.write(text.data(), static_cast<std::streamsize>(cut));
        }
        std::size_t whole = 0, end = cut / 4096 * 4096;
        for (const auto one : ends) {
            if (one > cut) break;
            ++whole;
            end = std::max(end, one);
        }
        const bool partial = cut % 4096 != 0 && cut > end && text[end] != 0;
        cptrap::spool spool(cptrap::go_on, path);
        BOOST_TEST(spool.lost()[loss_cause::damaged] == (partial ? 1U : 0U), "cut at " << cut);
        BOOST_REQUIRE(spool.append(0x7777, data_of(0x7777)));
        BOOST_REQUIRE(spool.flush());
        const auto found = read(path);
        BOOST_TEST(found.codes.size() == whole + 1, "cut at " << cut);
        BOOST_TEST(found.codes.back() == 0x7777);
        BOOST_TEST(found.strange == 0U, "cut at " << cut);
        BOOST_TEST(found.lost[loss_cause::damaged] == (partial ? 1U : 0U), "cut at " << cut);
        BOOST_TEST(found.torn + found.unreadable == 0U, "cut at " << cut);
    }
    trace_ring_test::proof("hostile", tried, "damaged files");
}

BOOST_AUTO_TEST_CASE(a_process_that_is_killed_leaves_all_spool_records_that_it_wrote) {
    int pipe[2];
    BOOST_REQUIRE(::pipe(pipe) == 0);
    const pid_t child = test::start_child([&] {
        cptrap::spool spool(path);
        for (std::uint16_t code = 0;; ++code) {
            if (!spool.append(code, data_of(code))) return 1;
            if (spool.spool_records() == 20 && ::write(pipe[1], "x", 1) != 1) return 1;
        }
    });
    ::close(pipe[1]);
    char byte = 0;
    const bool told = ::read(pipe[0], &byte, 1) == 1;
    ::kill(child, SIGKILL);
    BOOST_TEST(test::wait_for(child) == -SIGKILL);
    ::close(pipe[0]);
    BOOST_REQUIRE(told);
    const auto found = read(path);
    BOOST_TEST(std::filesystem::file_size(path) >= 20U * 4096);
    BOOST_TEST(found.strange + found.unreadable + found.lost.total() == 0U);
    for (std::size_t i = 0; i < found.codes.size(); ++i) {
        if (found.codes[i] != static_cast<std::uint16_t>(i)) BOOST_ERROR("record " << i);
    }
}

BOOST_AUTO_TEST_CASE(a_file_that_is_there_or_has_a_writer_in_another_process_is_refused_by_name) {
    cptrap::spool spool(path);
    BOOST_CHECK_EXCEPTION(cptrap::spool{path}, setup_error, [&](const setup_error& error) {
        return error.code().value() == EEXIST && error.subject() == path;
    });
    BOOST_CHECK_THROW((cptrap::spool{cptrap::go_on, folder / "none"}), setup_error);
    BOOST_TEST(test::in_child([&] {
                   try {
                       cptrap::spool another(cptrap::go_on, path);
                   } catch (const setup_error& error) {
                       return error.code().value() == EBUSY && error.subject() == path ? 0 : 2;
                   }
                   return 1;
               }) == 0);
}

BOOST_AUTO_TEST_SUITE_END()
