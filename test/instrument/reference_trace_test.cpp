// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// The hooks, called by a program that is another process: each reference is in the trace, once and
// in its order, for any end of the program, and no reference of the tracing itself.

#include <boost/test/unit_test.hpp>

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <recorder/scratch.hpp>
#include <trace_ring/drain/session.hpp>
#include <trace_ring/instrument/table_file.hpp>
#include <trace_ring/recorder/drain_source/drain_source.hpp>
#include <trace_ring/reduce/tables.hpp>

namespace {

using trace_ring::reference;
using trace_ring::reference_kind;
using trace_ring::instrument::left_references;
using trace_ring::instrument::table_file;

using threads = std::map<std::uint32_t, std::vector<reference>>;

/// Takes the `references` out of a trace as they come.
class reader {
public:
    explicit reader(const std::string& file)
        : about_(trace_ring::reduce::source::open(file)), source_(file), session_(source_) {}

    /// One sub-buffer, if there is one.
    void take() {
        if (auto held = session_.take()) {
            add(**held);
            held->consume();
        }
    }
    void finish() {
        session_.finish([this](const auto& part) { add(part); });
    }
    /// What a dead thread left. True: it was taken.
    bool add(const left_references& left) {
        add(left.thread, left.place, left.sequence, false, std::as_bytes(left.all));
        return true;
    }
    /// By thread: its places, and in each the records in their order, which lanes need not have.
    [[nodiscard]] threads all() const {
        threads out;
        for (const auto& [place, records] : records_) {
            for (const auto& [sequence, record] : records) {
                auto& to = out[record.thread];
                to.insert(to.end(), record.all.begin(), record.all.end());
            }
        }
        return out;
    }
    /// Records that are missing between others.
    [[nodiscard]] std::uint64_t gaps() const {
        std::uint64_t sum = 0;
        for (const auto& [place, records] : records_) {
            if (!records.empty()) sum += records.rbegin()->first + 1 - records.size();
        }
        return sum;
    }
    std::size_t count = 0;            // references
    std::vector<std::string> others;  // names of the other events
    [[nodiscard]] const trace_ring::loss_counts& lost() const { return session_.lost(); }

private:
    struct record_of_references {
        std::uint32_t thread = 0;
        std::vector<reference> all;
    };

    void add(std::uint32_t thread, std::uint32_t place, std::uint32_t sequence, bool packed,
             std::span<const std::byte> bytes) {
        const auto [at, is_new] = records_[place].try_emplace(sequence);
        if (!is_new) return;  // it was left, and recorded
        auto& to = at->second;
        to.thread = thread;
        const auto visit = [&](const reference& each) { to.all.push_back(each); };
        if (packed) {
            const std::size_t end = unpacker_.unpack(bytes.data(), bytes.size(), visit);
            BOOST_REQUIRE_EQUAL(end, bytes.size());
        } else {
            using trace_ring::plain_reference;
            const std::span plain(reinterpret_cast<const plain_reference*>(bytes.data()),
                                  bytes.size() / sizeof(plain_reference));
            BOOST_REQUIRE_EQUAL(trace_ring::visit_plain(plain, visit), plain.size());
        }
        count += to.all.size();
    }
    void add(const trace_ring::drained_sub_buffer& part) {
        part.visit([this](const trace_ring::drained_record& record) {
            const auto* type = type_of(record);
            if (type == nullptr) about_.refresh(), type = type_of(record);
            BOOST_REQUIRE(type != nullptr);
            const bool packed = type->name == "references";
            if (!packed && type->name != "references.plain") {
                others.push_back(type->name);
                return;
            }
            const auto thread = static_cast<std::uint32_t>(record.payload[0]);
            const auto place = static_cast<std::uint32_t>(record.payload[0] >> 32);
            const auto sequence = static_cast<std::uint32_t>(record.payload[1]);
            const auto size = static_cast<std::size_t>(record.payload[1] >> 32 & 0x7FFF);
            BOOST_REQUIRE_LE(size, record.payload.size_bytes() - 16);
            add(thread, place, sequence, packed, std::as_bytes(record.payload).subspan(16, size));
        });
    }
    const trace_ring::reduce::event_type* type_of(const trace_ring::drained_record& record) {
        const auto* lane = about_.find_lane(record.lane);
        return lane == nullptr || !lane->root ? nullptr
                                              : about_.events().find(*lane->root, record.id);
    }

    trace_ring::reduce::tables about_;
    trace_ring::drain_source source_;
    trace_ring::drain::session<trace_ring::drain_source&> session_;
    trace_ring::reference_unpacker unpacker_;
    std::map<std::uint32_t, std::map<std::uint32_t, record_of_references>> records_;  // by place
};

/// A trace in a folder that goes away, and the programs that record into it.
struct traced {
    explicit traced(table_file::options how = {.places = 40, .drained = false, .packs = true})
        : table(folder / "open", how) {}

    /// The command that runs the program into the trace.
    std::string command(const std::string& arguments, const char* program = HOOKED) const {
        return "TRACE_RING_REFERENCES=" + file + " TRACE_RING_OPEN_REFERENCES=" + table.path() +
               " " + program + " " + arguments;
    }
    /// What the program prints; waits for its end.
    std::string run(const std::string& arguments, const char* program = HOOKED) const {
        std::FILE* const pipe = ::popen(command(arguments, program).c_str(), "re");
        BOOST_REQUIRE(pipe != nullptr);
        std::string out;
        for (int c = 0; (c = std::fgetc(pipe)) != EOF;) out += static_cast<char>(c);
        status = ::pclose(pipe);
        return out;
    }
    threads read() {
        reader from(file);
        from.finish();
        BOOST_TEST(from.lost().total() == 0);
        // The program and its libraries, for readers that look up names.
        BOOST_TEST(std::count(from.others.begin(), from.others.end(), "module") >= 3);
        BOOST_TEST(from.gaps() == 0);
        table.take_left(true, [&](const left_references& each) { return from.add(each); });
        trace_ring_test::proof("references", from.count, "references read");
        return from.all();
    }

    /// For a trace that is made here, not by the program.
    trace_ring::recorder_options ring_of(std::uint64_t sub_buffers,
                                         trace_ring::full_mode full) const {
        constexpr std::uint32_t bytes = 32768;
        trace_ring::recorder_options options;
        options.file = file;
        options.size = sub_buffers * bytes;
        options.sub_buffer_bytes = bytes;
        options.full = full;
        return options;
    }

    test::folder folder;
    std::string file = folder / "trace";
    table_file table;
    mutable int status = 0;
};

/// What `row` of hooked.cpp does.
void require_row(const std::vector<reference>& all, std::size_t at, std::uint64_t from,
                 std::uint64_t count) {
    BOOST_REQUIRE_GE(all.size(), at + static_cast<std::size_t>(3 * count));
    for (std::uint64_t i = 0; i < count; ++i) {
        const reference* const each = &all[at + static_cast<std::size_t>(3 * i)];
        const bool right =
            each[0].kind == reference_kind::block && each[0].address == each[0].site &&
            each[1].kind == reference_kind::load && each[1].size == 8 &&
            each[1].address == from + 8 * i && each[2].kind == reference_kind::store &&
            each[2].size == 4 && each[2].address == from + 4 * i;
        if (!right) BOOST_FAIL("reference " << at + 3 * i << " is wrong");
    }
}
void require_row(const threads& all, std::uint64_t from, std::uint64_t count) {
    BOOST_REQUIRE_EQUAL(all.size(), 1);
    BOOST_REQUIRE_EQUAL(all.begin()->second.size(), 3 * count);
    require_row(all.begin()->second, 0, from, count);
}

BOOST_AUTO_TEST_CASE(each_reference_is_in_the_trace) {
    for (const bool packs : {true, false}) {
        for (const std::uint64_t count : {1U, 1000U, 200'000U}) {
            traced one({.places = 40, .drained = false, .packs = packs});
            one.run("row " + std::to_string(count));
            BOOST_TEST(one.status == 0);
            require_row(one.read(), 0x10000000, count);
        }
    }
}

BOOST_AUTO_TEST_CASE(threads_have_their_own) {
    traced one;
    one.run("threads 50000");
    auto all = one.read();
    BOOST_REQUIRE_EQUAL(all.size(), 4);
    std::vector<std::uint64_t> begins;
    for (const auto& [thread, references] : all) {
        begins.push_back(references.at(1).address);
        BOOST_REQUIRE_EQUAL(references.size(), 150'000);
        require_row(references, 0, begins.back(), 50'000);
    }
    std::sort(begins.begin(), begins.end());
    BOOST_TEST(
        begins == (std::vector<std::uint64_t>{0x10000000, 0x20000000, 0x30000000, 0x40000000}),
        boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(calls_are_traced) {
    traced one;
    one.run("calls 5000");
    const auto all = one.read();
    BOOST_REQUIRE_EQUAL(all.size(), 1);
    const auto& calls = all.begin()->second;
    BOOST_REQUIRE_EQUAL(calls.size(), 10'000);
    for (std::size_t i = 0; i < calls.size(); ++i) {
        BOOST_REQUIRE(calls[i].kind == (i % 2 == 0 ? reference_kind::enter : reference_kind::exit));
        BOOST_REQUIRE_EQUAL(calls[i].address, 0x4000);
    }
}

// W2: what comes while a hook is at work is traced, and disturbs nothing.
BOOST_AUTO_TEST_CASE(signal_handlers_are_traced) {
    traced one;
    const std::uint64_t handled = std::stoull(one.run("signals 300000"));
    const auto all = one.read();
    BOOST_REQUIRE_EQUAL(all.size(), 1);
    std::uint64_t of_program = 0;
    std::vector<std::uint64_t> of_handler;
    for (const auto& each : all.begin()->second) {
        if (each.address >= 0x50000000) {
            of_handler.push_back(each.address - 0x50000000);
        } else {
            BOOST_REQUIRE_EQUAL(each.address, 0x10000000 + 8 * of_program);
            ++of_program;
        }
    }
    BOOST_TEST(of_program >= 300'000);
    // They may be in two lanes: each in its order.
    std::sort(of_handler.begin(), of_handler.end());
    BOOST_REQUIRE_EQUAL(of_handler.size(), handled);
    for (std::size_t i = 0; i < of_handler.size(); ++i) BOOST_REQUIRE_EQUAL(of_handler[i], i + 1);
}

BOOST_AUTO_TEST_CASE(however_it_ends_nothing_is_lost) {
    for (const char* const way : {"kill", "exit"}) {
        for (const unsigned count : {1U, 100U, 3000U, 50'000U}) {
            traced one;
            one.run(way + (" " + std::to_string(count)));
            require_row(one.read(), 0x10000000, count);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_child_has_its_own) {
    traced one;
    one.run("fork 4000");
    const auto all = one.read();
    BOOST_REQUIRE_EQUAL(all.size(), 2);
    const auto& first = all.begin()->second;
    const auto& second = all.rbegin()->second;
    const auto& child = first.size() < second.size() ? first : second;
    const auto& parent = first.size() < second.size() ? second : first;
    BOOST_REQUIRE_EQUAL(child.size(), 12'000);
    BOOST_REQUIRE_EQUAL(parent.size(), 24'000);
    require_row(child, 0, 0x20000000, 4000);
    require_row(parent, 0, 0x10000000, 4000);
    require_row(parent, 12'000, 0x30000000, 4000);
}

#if !defined(HOOKED_IS_EMULATED)
BOOST_AUTO_TEST_CASE(a_program_that_becomes_another_goes_on_in_its_order) {
    traced one;
    one.run("exec 4000");
    const auto all = one.read();
    BOOST_REQUIRE_EQUAL(all.size(), 1);
    const auto& both = all.begin()->second;
    BOOST_REQUIRE_EQUAL(both.size(), 24'000);
    require_row(both, 0, 0x20000000, 4000);
    require_row(both, 12'000, 0x10000000, 4000);
}
#endif

// W1: the trace's own memory, and the memory next to it.
BOOST_AUTO_TEST_CASE(references_into_the_trace_are_not_traced) {
    traced one;
    const std::string printed = one.run("own");
    std::uint64_t at[4] = {};
    std::istringstream(printed) >> at[0] >> at[1] >> at[2] >> at[3];
    const auto all = one.read();
    BOOST_REQUIRE_EQUAL(all.size(), 1);
    std::vector<std::uint64_t> addresses;
    for (const auto& each : all.begin()->second) addresses.push_back(each.address);
    // A mapping directly next to the other has less to show.
    BOOST_TEST(std::count(addresses.begin(), addresses.end(), 0x1000) == 1);
    const auto counts = one.table.counts();
    BOOST_TEST(counts.suppressed >= 4);
    BOOST_TEST(addresses.size() + counts.suppressed == 9);
    if (addresses.size() == 5) {
        for (const std::uint64_t each : at)
            BOOST_TEST(std::count(addresses.begin(), addresses.end(), each) == 1);
    }
}

#if defined(HOOKED_ITSELF)
// The code that records calls the hooks, too, in this program: its work at set-up is traced, but
// its recording is not.
BOOST_AUTO_TEST_CASE(the_tracing_does_not_trace_itself) {
    std::size_t at_set_up = 0;
    for (const std::uint64_t count : {50U, 50'000U}) {
        traced one;
        one.run("row " + std::to_string(count), HOOKED_ITSELF);
        const auto all = one.read();
        BOOST_REQUIRE_EQUAL(all.size(), 1);
        std::vector<reference> row, calls;
        for (const auto& each : all.begin()->second)
            (each.kind >= reference_kind::enter ? calls : row).push_back(each);
        require_row({{1, row}}, 0x10000000, count);
        if (count == 50) at_set_up = calls.size();
        BOOST_TEST(calls.size() == at_set_up);
        BOOST_TEST(one.table.counts().suppressed > count / 50);
        BOOST_TEST(one.table.counts().self_fed == 0);
    }
}

// W6: with suppression off, tracing that feeds itself ends, and is reported.
BOOST_AUTO_TEST_CASE(tracing_that_feeds_itself_is_told) {
    traced one({.places = 40, .drained = false, .packs = true, .traces_itself = true});
    one.run("row 50000", HOOKED_ITSELF);
    BOOST_TEST(one.status == 0);
    BOOST_TEST(one.table.counts().self_fed > 0);
    const auto all = one.read();
    std::uint64_t calls = 0, rest = 0;
    for (const auto& [thread, references] : all) {
        for (const auto& each : references) ++(each.kind >= reference_kind::enter ? calls : rest);
    }
    BOOST_TEST(rest == 150'000);
    BOOST_TEST(calls > 1000);
}

#endif

// W3: writers stop while nothing is drained, and continue with the next reference.
BOOST_AUTO_TEST_CASE(a_full_buffer_stops_the_program) {
    traced one({.places = 40, .drained = true});
    const trace_ring::recorder ring(one.ring_of(8, trace_ring::full_mode::block));
    reader from(one.file);
    std::atomic<bool> ended = false;
    const std::string command = one.command("row 300000");
    int status = 0;
    std::thread program([&] {
        status = std::system(command.c_str());
        ended = true;
    });
    // Drained slower than the program records.
    std::size_t most = 0;
    while (!ended) {
        ::usleep(2000);
        const std::size_t before = from.count;
        from.take();
        most = std::max(most, from.count - before);
    }
    program.join();
    BOOST_TEST(status == 0);
    from.finish();
    BOOST_TEST(from.lost().total() == 0);
    one.table.take_left(true, [&](const left_references& each) { return from.add(each); });
    require_row(from.all(), 0x10000000, 300'000);
    BOOST_TEST(one.table.counts().stops > 0);
    BOOST_TEST(one.table.counts().stopped_ns > 0);
    BOOST_TEST(most < 300'000);
}

// Who takes what a dead thread left has to know which of it may be in the trace already.
BOOST_AUTO_TEST_CASE(what_was_being_recorded_when_it_was_killed_is_told_apart) {
    traced one({.places = 40, .drained = true});
    const trace_ring::recorder ring(one.ring_of(8, trace_ring::full_mode::block));
    reader from(one.file);
    std::FILE* const pipe =
        ::popen(("echo $$; exec env " + one.command("row 300000")).c_str(), "re");
    BOOST_REQUIRE(pipe != nullptr);
    int process = 0;
    BOOST_REQUIRE(std::fscanf(pipe, "%d", &process) == 1);
    // It waits for room, as nobody drains: by sleeping again and again.
    const auto sleeps = [process] {
        std::ifstream in("/proc/" + std::to_string(process) + "/stat");
        std::string text;
        std::getline(in, text);
        return text.find(") S ") != std::string::npos;
    };
    for (int seen = 0; seen < 200; ::usleep(1000)) seen += sleeps() ? 1 : 0;
    BOOST_REQUIRE(::kill(process, SIGKILL) == 0);
    static_cast<void>(::pclose(pipe));
    from.finish();
    std::size_t in_flight = 0;
    one.table.take_left(true, [&](const left_references& each) {
        if (each.may_be_recorded) in_flight += each.all.size();
        return from.add(each);
    });
    BOOST_TEST(in_flight > 0U);
    BOOST_TEST(from.gaps() == 0);
    const auto all = from.all();
    BOOST_REQUIRE_EQUAL(all.size(), 1);
    require_row(all.begin()->second, 0, 0x10000000, all.begin()->second.size() / 3);
}

// What is drained is used again and again, and was populated before.
BOOST_AUTO_TEST_CASE(tracing_takes_no_page_fault) {
    traced one({.places = 40, .drained = true});
    const trace_ring::recorder ring(one.ring_of(32, trace_ring::full_mode::block));
    reader from(one.file);
    std::atomic<bool> ended = false;
    const std::string printed = one.folder / "printed";
    const std::string command = one.command("faults 300000") + " >" + printed;
    std::thread program([&] {
        static_cast<void>(!std::system(command.c_str()));
        ended = true;
    });
    while (!ended) {
        from.take();
        ::usleep(10);
    }
    program.join();
    std::ifstream in(printed);
    long faults = -1;
    in >> faults;
    // Emulators and sanitizers use some themselves.
    if (test::scale == 1) BOOST_TEST(faults == 0);
    BOOST_TEST(faults >= 0);
}

// W4: a program that must not stop is traced with reported gaps.
BOOST_AUTO_TEST_CASE(without_stops_gaps_are_told) {
    traced one({.places = 40, .drained = false});
    const trace_ring::recorder ring(one.ring_of(8, trace_ring::full_mode::discard_newest));
    one.run("row 300000");
    reader from(one.file);
    from.finish();
    one.table.take_left(true, [&](const left_references& each) { return from.add(each); });
    const auto counts = one.table.counts();
    BOOST_TEST(counts.lost_references > 0);
    // Other records may be lost, too. What is missing before the first or behind the last record of
    // a place shows only there.
    BOOST_TEST(counts.lost_records <= from.lost().total());
    BOOST_TEST(from.gaps() <= counts.lost_records);
    BOOST_TEST(from.count + counts.lost_references == 900'000);
}

BOOST_AUTO_TEST_CASE(without_a_trace_the_program_runs_as_it_is) {
    const std::string printed = [] {
        std::FILE* const pipe = ::popen(HOOKED " signals 1000", "re");
        std::string out;
        for (int c = 0; (c = std::fgetc(pipe)) != EOF;) out += static_cast<char>(c);
        BOOST_TEST(::pclose(pipe) == 0);
        return out;
    }();
    BOOST_TEST(!printed.empty());
}

}  // namespace
