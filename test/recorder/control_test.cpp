// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// Control from outside, and snapshots that crash handlers and other processes ask for.

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <variant>

#include <boost/test/unit_test.hpp>

#include <trace_ring/recorder/control.hpp>
#include <trace_ring/recorder/crash_snapshot.hpp>
#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include "recorder/scratch.hpp"

BOOST_AUTO_TEST_SUITE(control)

namespace {

struct sent : trace_ring::event<"order.sent", trace_ring::field<"id", std::uint64_t>> {};
struct filled : trace_ring::event<"order.filled", trace_ring::field<"id", std::uint64_t>> {};
struct tick : trace_ring::event<"tick", trace_ring::field<"id", std::uint64_t>> {};

/// Values of "id" by event name: how many, and the last.
struct seen {
    std::map<std::string, std::uint64_t> count;
    std::map<std::string, std::uint64_t> last;
};
seen read_back(const std::string& file) {
    seen out;
    const auto trace = trace_ring::reduce::trace_file::open(file);
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        const auto* const record = std::get_if<trace_ring::reduce::record_view>(item);
        if (record == nullptr) continue;
        const std::string name(record->name());
        ++out.count[name];
        out.last[name] = record->field("id").u64();
    }
    return out;
}

/// What setup_error says, if it is thrown.
template <class F>
std::string complaint(F&& f) {
    try {
        f();
    } catch (const trace_ring::setup_error& error) {
        return error.what();
    }
    return {};
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

/// Runs `body` in a child, without a core dump and without the handlers of the test's framework.
template <class F>
int crash_of(F&& body) {
    return test::in_child([&]() -> int {
        const rlimit none{0, 0};
        ::setrlimit(RLIMIT_CORE, &none);
        for (const int each : {SIGSEGV, SIGABRT, SIGFPE}) ::signal(each, SIG_DFL);
        std::set_terminate(nullptr);
        body();
        return 0;
    });
}

}  // namespace

BOOST_AUTO_TEST_CASE(events_are_switched_off_and_on_by_glob_in_every_program_of_a_file) {
    const test::folder folder;
    trace_ring::recorder first{{.file = folder / "a.trace"}};
    trace_ring::recorder second{
        {.file = folder / "a.trace", .exists = trace_ring::if_exists::attach}};
    trace_ring::control control(folder / "a.trace");
    BOOST_TEST(first.record<sent>(1U));
    BOOST_TEST(second.record<sent>(1U));

    // Two types match, in each of two programs.
    BOOST_TEST(control.enable("order.*", false) == 4U);
    BOOST_TEST(!first.record<sent>(2U));
    BOOST_TEST(!second.record<filled>(2U));
    BOOST_TEST(first.record<tick>(2U));
    BOOST_TEST(control.enable("order.f*", true) == 2U);
    BOOST_TEST(second.record<filled>(3U));
    BOOST_TEST(!first.record<sent>(3U));
    BOOST_TEST(control.enable("no such event", true) == 0U);

    std::map<std::string, bool> listed;
    control.list([&](std::string_view name, bool open) { listed[std::string(name)] = open; });
    BOOST_TEST(listed.at("order.filled"));
    BOOST_TEST(listed.at("tick"));
    BOOST_TEST(!listed.at("order.sent"));
}

BOOST_AUTO_TEST_CASE(
    a_pause_shuts_what_an_event_gate_leaves_open_and_resuming_keeps_the_event_shut) {
    const test::folder folder;
    trace_ring::recorder recorder{{.file = folder / "a.trace"}};
    trace_ring::control control(folder / "a.trace");
    control.enable("tick", false);
    control.pause();
    BOOST_TEST(!recorder.record<sent>(1U));
    control.resume();
    BOOST_TEST(recorder.record<sent>(2U));
    BOOST_TEST(!recorder.record<tick>(2U));
}

BOOST_AUTO_TEST_CASE(a_snapshot_asked_for_from_outside_is_written_by_the_next_claimer) {
    const test::folder folder;
    trace_ring::recorder recorder{
        {.file = folder / "a.trace", .size = 1 << 16, .snapshot_file = folder / "copy"}};
    trace_ring::control control(folder / "a.trace");
    std::uint64_t id = 0;
    BOOST_REQUIRE(recorder.record<sent>(id++));  // has a sub-buffer: the request waits for the next
    const std::uint32_t number = control.request_snapshot();
    BOOST_TEST(number == 1U);
    BOOST_TEST(!control.snapshot_done(number));
    while (!control.snapshot_done(number) && id < 100'000) recorder.record<sent>(id++);
    BOOST_REQUIRE(control.snapshot_done(number));
    for (int i = 0; i < 10'000; ++i) recorder.record<filled>(7U);  // after it: not in it
    const seen got = read_back(folder / "copy.1");
    // All that were recorded before the claim that wrote it, which came before the last one.
    BOOST_TEST(got.last.at("order.sent") == id - 2);
    BOOST_TEST(got.count.at("order.sent") == id - 1);
    BOOST_TEST(got.count.count("order.filled") == 0U);
}

BOOST_AUTO_TEST_CASE(who_asks_for_more_snapshots_than_there_may_be_or_too_soon_gets_none) {
    const test::folder folder;
    const auto snapshots_of = [&](trace_ring::recorder_options options) {
        options.file = folder / "a.trace";
        options.size = 1 << 16;
        options.exists = trace_ring::if_exists::replace;
        options.snapshot_file = folder / "copy";
        trace_ring::recorder recorder{options};
        const auto [base, bytes] = recorder.bytes();
        trace_ring::layout::plan plan;
        BOOST_REQUIRE(!trace_ring::layout::check_layout(base, bytes, plan));
        auto& ring = *reinterpret_cast<trace_ring::layout::ring_state*>(
            const_cast<std::byte*>(base) + plan.ring);
        for (std::uint32_t n = 1; n <= 50; ++n) {  // as others may who can write to the file
            ring.snapshot_request.store(n * 1'000'003);
            for (std::uint64_t id = 0; id < 400; ++id) recorder.record<sent>(id);
        }
        std::uint64_t found = 0;
        for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
            if (entry.path().filename().string().find("copy") != 0) continue;
            std::filesystem::remove(entry.path());
            ++found;
        }
        return found;
    };
    using namespace std::chrono_literals;
    BOOST_TEST(snapshots_of({.snapshots = 3, .snapshot_gap = 0s}) == 3U);
    BOOST_TEST(snapshots_of({.snapshot_gap = 1h}) == 1U);
    BOOST_TEST(snapshots_of({.snapshot_gap = 0s, .control = trace_ring::control_mode::off}) == 0U);
    BOOST_TEST(contains(complaint([&] { trace_ring::control control(folder / "a.trace"); }),
                        "a.trace: this trace takes no requests from outside"));
}

BOOST_AUTO_TEST_CASE(control_of_what_is_no_trace_file_is_refused_by_name_and_offset) {
    const test::folder folder;
    const std::string file = folder / "b";
    std::ofstream(file) << std::string(8192, 'x');
    const std::string said = complaint([&] { trace_ring::control control(file); });
    BOOST_TEST(contains(said, file));
    BOOST_TEST(contains(said, "offset 0: not a trace file"));
    BOOST_TEST(contains(complaint([&] { trace_ring::control control(folder / "none"); }),
                        "cannot open the file"));
    std::ofstream(folder / "empty").close();
    BOOST_TEST(contains(complaint([&] { trace_ring::control control(folder / "empty"); }),
                        "the file is empty"));
}

BOOST_AUTO_TEST_CASE(a_crash_leaves_a_snapshot_and_ends_the_process_as_before) {
    const test::folder folder;
    struct way {
        const char* name;
        int signal;
    };
    for (const way& each : {way{"fault", SIGSEGV}, way{"abort", SIGABRT}, way{"throw", SIGABRT}}) {
        const std::string file = folder / each.name;
        const int end = crash_of([&] {
            trace_ring::recorder recorder{{.size = 1 << 16}};  // in memory: lost without a snapshot
            const trace_ring::crash_snapshot keep(recorder, file);
            for (std::uint64_t id = 0; id < 100; ++id) recorder.record<sent>(id);
            if (each.signal == SIGSEGV) ::raise(SIGSEGV);
            if (std::string(each.name) == "throw") std::terminate();
            std::abort();
        });
        BOOST_TEST(end == -each.signal);
        const seen got = read_back(file);
        BOOST_TEST(got.count.at("order.sent") == 100U);
        BOOST_TEST(got.last.at("order.sent") == 99U);
    }
}

BOOST_AUTO_TEST_CASE(a_second_crash_snapshot_is_refused_and_the_first_restores_the_handlers) {
    const test::folder folder;
    trace_ring::recorder recorder{{.size = 1 << 16}};
    struct ::sigaction before {};
    ::sigaction(SIGFPE, nullptr, &before);
    {
        const trace_ring::crash_snapshot keep(recorder, folder / "a");
        BOOST_TEST(contains(complaint([&] { trace_ring::crash_snapshot(recorder, folder / "b"); }),
                            "a process has one crash_snapshot"));
        struct ::sigaction during {};
        ::sigaction(SIGFPE, nullptr, &during);
        BOOST_TEST((during.sa_handler != before.sa_handler));
    }
    struct ::sigaction after {};
    ::sigaction(SIGFPE, nullptr, &after);
    BOOST_TEST((after.sa_handler == before.sa_handler));
}

BOOST_AUTO_TEST_SUITE_END()
