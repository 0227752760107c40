// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The parts of branch-trace: a thread's store in the debug store's layout, what is written of it,
/// and a program that waits to be executed.

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <branch_trace/branch_log.hpp>
#include <branch_trace/branch_writer.hpp>
#include <branch_trace/report/branch_trace.hpp>
#include <branch_trace/thread_store.hpp>
#include <launching/launched_program.hpp>
#include <reduce/scratch_file.hpp>
#include <trace_ring/drain/session.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/policy/storage/mapping.hpp>
#include <trace_ring/record/data_model.hpp>
#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/x86/branch_source.hpp>
#include <trace_ring/x86/loss_advice.hpp>

BOOST_AUTO_TEST_SUITE(branch_store)

using namespace trace_ring_test;
using branches::branch_kind;

namespace {

using trace_ring::record::ilp32;
using trace_ring::record::lp64;

/// By the sheet: four records of room, an interrupt at the third.
template <class Model>
void the_layout_is_the_debug_stores(std::size_t record_bytes) {
    branches::thread_store<Model> store(4 * record_bytes + 5, 3);
    const auto& bts = store.area().bts;
    BOOST_TEST(bts.index == bts.base);
    BOOST_TEST(bts.base % 64 == 0U);
    BOOST_TEST(bts.threshold - bts.base == 3 * record_bytes);
    BOOST_TEST(bts.maximum - bts.base == 4 * record_bytes);
    BOOST_TEST(store.fresh());
    BOOST_TEST(store.empty());
    std::vector<bool> reached;
    for (std::uint64_t i = 1; i <= 3; ++i) {
        reached.push_back(store.store(branch_kind::call, i, 100 + i));
        BOOST_TEST(bts.index - bts.base == i * record_bytes);
    }
    BOOST_TEST(reached == (std::vector<bool>{false, false, true}),
               boost::test_tools::per_element());
    BOOST_TEST(!store.fresh());
    // Where the area says, in the model's words.
    using word = typename Model::pointer_type;
    const auto* const words = reinterpret_cast<const word*>(static_cast<std::uintptr_t>(bts.base));
    BOOST_TEST(words[3] == 2U);
    BOOST_TEST(words[4] == 102U);
    BOOST_TEST(words[5] >> 4 == 0x40U);  // bit 4 is the processor's: not predicted; then the kind
}

template <class Model>
void what_is_drained_is_what_was_stored() {
    branches::thread_store<Model> store(4 * sizeof(trace_ring::record::branch_record<Model>), 99);
    for (std::uint64_t round = 0; round < 3; ++round) {
        for (std::uint64_t i = 0; i < 6; ++i) {  // two of them find no room
            BOOST_TEST(store.store(branch_kind::function_return, 10 * round + i, i + 1) ==
                       (i >= 3));
        }
        trace_ring::drain::session session(store);
        std::uint64_t seen = 0;
        session.finish([&](const auto& portion) {
            // In place: between the base and the maximum.
            const auto at = reinterpret_cast<std::uintptr_t>(portion.bytes().data());
            BOOST_TEST(at == store.area().bts.base);
            BOOST_TEST(at + portion.bytes().size() == store.area().bts.maximum);
            session.source().visit(portion, [&](const auto& record) {
                BOOST_TEST(record.from == 10 * round + seen);
                BOOST_TEST(record.to == ++seen);
                BOOST_TEST((store.kind_of(record) == branch_kind::function_return));
            });
        });
        BOOST_TEST(seen == 4U);
        BOOST_TEST(session.lost()[trace_ring::loss_cause::refused] == 2U);
        BOOST_TEST(store.area().bts.index == store.area().bts.base);
        BOOST_TEST(store.empty());
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_threads_store_is_laid_out_as_the_debug_store_is) {
    the_layout_is_the_debug_stores<lp64>(24);
    the_layout_is_the_debug_stores<ilp32>(12);
}

BOOST_AUTO_TEST_CASE(what_is_drained_from_it_is_what_was_stored_and_refused_records_are_counted) {
    what_is_drained_is_what_was_stored<lp64>();
    what_is_drained_is_what_was_stored<ilp32>();
}

BOOST_AUTO_TEST_CASE(a_store_that_was_full_advises_the_buffer_that_is_exactly_enough) {
    constexpr std::size_t record = 24;
    const auto drained = [](std::size_t records, std::uint64_t threshold) {
        branches::thread_store<lp64> store(records * record, threshold);
        // It is drained two branches after the threshold was reached, and the load is six at least.
        std::uint64_t after = 0;
        for (std::uint64_t i = 0; i < 6 || after < 3; ++i)
            if (store.store(branch_kind::call, i, i)) ++after;
        trace_ring::drain::session session(store);
        session.finish([](const auto&) {});
        BOOST_TEST((session.lost().total() != 0) == session.advice().has_value());
        return session.advice();
    };
    const auto advice = drained(4, 4);
    BOOST_TEST_REQUIRE(advice.has_value());
    BOOST_TEST(advice->lost_exactly);
    BOOST_TEST(advice->lost == 2U);
    BOOST_TEST(advice->needed_records == 6U);
    BOOST_TEST(advice->needed_bytes == 6 * record);
    BOOST_TEST(!drained(advice->needed_records, 4).has_value());
    BOOST_TEST(drained(advice->needed_records - 1, 4).has_value());
    BOOST_TEST(to_string(*advice) ==
               "a branch buffer of 4 records with the threshold at 4: lost 2 records. Enough is: a "
               "buffer of 6 records with the same threshold; or, if an interrupt calls the "
               "reader, the threshold at 2");
}

BOOST_AUTO_TEST_CASE(a_store_has_room_for_one_record_at_least) {
    branches::thread_store<lp64> store(1, 1);
    BOOST_TEST(store.store(branch_kind::jump, 1, 2));
    BOOST_TEST(store.area().bts.index == store.area().bts.maximum);
}

BOOST_AUTO_TEST_CASE(two_sessions_cannot_drain_one_store) {
    branches::thread_store<lp64> store(4096, 1);
    const trace_ring::drain::session first(store);
    BOOST_CHECK_THROW(trace_ring::drain::session<branches::thread_store<lp64>&>{store},
                      std::system_error);
}

BOOST_AUTO_TEST_CASE(a_source_without_kinds_and_with_gaps_is_written_as_it_comes) {
    // As the processor's store hands it over: of this very process, which lies in memory now.
    const scratch_file file;
    file.remove();
    const auto self = static_cast<std::uint32_t>(::getpid());
    const auto here = reinterpret_cast<std::uint64_t>(&the_layout_is_the_debug_stores<lp64>);
    {
        trace_ring::recorder_options o;
        o.file = file.path();
        o.size = 1 << 20;
        trace_ring::recorder recorder(o);
        branches::branch_log log(recorder, o.size, {"a test", "so it is", 4096, 10, "self"});
        branches::branch_writer writer(log, 4096, 10);
        namespace x86 = trace_ring::x86;
        for (std::uint64_t i = 0; i < 25; ++i) {
            writer(x86::branch(here + i, here).set_thread(self));
            if (i == 12) writer(x86::branch_gap{7, trace_ring::loss_cause::refused, self});
        }
        BOOST_TEST(writer.gaps() == 1U);
        BOOST_TEST(!writer.advice().has_value());
        BOOST_TEST(writer.branches() == 25U);
        BOOST_TEST(writer.drains() == 3U);  // by the threshold, for the gap, and by the threshold
        writer.finish();
        BOOST_TEST(writer.drains() == 4U);
    }
    branches::code all;
    const auto trace = branches::read_branches(file.path(), all);
    BOOST_REQUIRE(trace.branches.size() == 25U);
    for (std::size_t i = 0; i < 25; ++i) {
        BOOST_TEST(trace.branches[i].follows == (i != 0 && i != 13));
        BOOST_TEST(all.at(trace.branches[i].from).address ==
                   all.at(trace.branches[0].from).address + i);
    }
    std::string path(4096, '\0');
    path.resize(static_cast<std::size_t>(::readlink("/proc/self/exe", path.data(), path.size())));
    BOOST_TEST(all.path(all.at(trace.branches[0].from).object) == path);
    BOOST_TEST(
        all.names(trace.branches[0].to).back().function.find("the_layout_is_the_debug_stores") !=
        std::string::npos);
    std::string gap;
    for (const auto& note : trace.notes) {
        if (note.what.starts_with("a gap")) gap = note.what;
    }
    BOOST_TEST(gap == "a gap of 7 branches: refused");
}

BOOST_AUTO_TEST_CASE(a_gap_is_written_with_the_advice_how_to_avoid_it) {
    const scratch_file file;
    file.remove();
    const auto self = static_cast<std::uint32_t>(::getpid());
    namespace x86 = trace_ring::x86;
    x86::loss_advice small, large;
    small.buffer = large.buffer = x86::loss_buffer::aux_area;
    small.needed_bytes = 8192;
    large.needed_bytes = 16384;
    {
        trace_ring::recorder_options o;
        o.file = file.path();
        o.size = 1 << 20;
        trace_ring::recorder recorder(o);
        branches::branch_log log(recorder, o.size, {"a test", "so it is", 4096, 10, "self"});
        branches::branch_writer writer(log, 4096, 10);
        for (const auto& advice : {small, large, small}) {
            writer(x86::branch(1, 2).set_thread(self));
            writer(x86::branch_gap{0, trace_ring::loss_cause::refused, self, advice});
        }
        BOOST_TEST(writer.gaps() == 3U);
        BOOST_TEST((writer.advice() == large));
    }
    branches::code all;
    const auto trace = branches::read_branches(file.path(), all);
    std::vector<std::string> gaps;
    for (const auto& note : trace.notes) {
        if (note.what.starts_with("a gap")) gaps.push_back(note.what);
    }
    const std::vector<std::string> expected{"a gap: refused: " + to_string(small),
                                            "a gap: refused: " + to_string(large),
                                            "a gap: refused: " + to_string(small)};
    BOOST_TEST(gaps == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_launched_program_waits_until_it_is_told_to_go) {
    launching::launched_program program({"/bin/sh", "-c", "exit 7"});
    BOOST_TEST(!program.ended());
    program.go();
    while (!program.ended()) ::usleep(1000);
    BOOST_TEST(WEXITSTATUS(program.status().value()) == 7);
}

BOOST_AUTO_TEST_CASE(a_launched_program_that_is_not_there_is_told) {
    launching::launched_program program({"/nowhere/program"});
    try {
        program.go();
        BOOST_FAIL("it went");
    } catch (const trace_ring::setup_error& error) {
        BOOST_TEST(error.subject() == "/nowhere/program");
        BOOST_TEST(error.code().value() == ENOENT);
    }
}

BOOST_AUTO_TEST_CASE(a_launched_program_that_is_never_told_to_go_is_gone_with_its_owner) {
    ::pid_t process = 0;
    {
        const launching::launched_program program({"/bin/true"});
        process = program.process();
    }
    BOOST_TEST(::kill(process, 0) == -1);
    BOOST_TEST(errno == ESRCH);
}

BOOST_AUTO_TEST_SUITE_END()
