// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// A service does not die because of its trace: a recorder that cannot be set up records nothing,
/// says why once, and all its members can be used. A service that starts again keeps the trace that
/// it wrote before, and its file has the requested mode.

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <trace_ring/drain/session.hpp>
#include <trace_ring/policy/claim/per_cpu.hpp>
#include <trace_ring/policy/clock/none.hpp>
#include <trace_ring/policy/clock/sampled.hpp>
#include <trace_ring/recorder/cpu/recorder.hpp>
#include <trace_ring/recorder/crash_snapshot.hpp>
#include <trace_ring/recorder/drain_source/drain_source.hpp>
#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/recorder/runtime_event.hpp>
#include <trace_ring/reduce/trace_file.hpp>
#include <trace_ring/setup_error.hpp>

#include <recorder/scratch.hpp>

BOOST_AUTO_TEST_SUITE(degraded)

namespace tr = trace_ring;
namespace fs = std::filesystem;

namespace {

struct note : tr::event<"degraded.note", tr::field<"n", std::uint64_t>> {
    static constexpr bool counted = true;
};
struct word : tr::event<"degraded.word", tr::field<"text", std::string_view>> {};
struct ringed : tr::event<"degraded.ringed", tr::field<"n", std::uint64_t>> {
    static constexpr std::uint32_t ring = 2;
};
struct work : tr::span<"degraded.work", tr::field<"n", int>, tr::results<tr::field<"r", int>>> {};

struct sampled : tr::policies<tr::clock::sampled<16>> {};
struct untimed : tr::policies<tr::clock::none> {};
struct by_cpu : tr::policies<tr::claim::per_cpu> {};
using kinds = std::tuple<tr::recording, sampled, untimed, by_cpu>;

int reports = 0;
std::string reported;
void report(const tr::setup_error& error) {
    ++reports;
    reported = error.what();
}
/// Of a file in a folder that does not exist.
tr::recorder_options impossible() {
    tr::recorder_options options;
    options.file = "/nowhere/service.trace";
    options.on_failure = tr::if_setup_fails::record_nothing;
    options.report_failure = &report;
    return options;
}

template <class Recorder>
void use(Recorder& recorder) {
    BOOST_TEST(!recorder.template record<note>(1U));
    BOOST_TEST(!recorder.template record<word>("text"));
    BOOST_TEST(!recorder.template record<ringed>(1U));
    auto reserved = recorder.template reserve<note>(2U);
    BOOST_TEST(!static_cast<bool>(reserved));
    BOOST_TEST(!reserved.commit());
    {
        auto scope = recorder.template scope<work>(1);
        auto early = recorder.template scope<work>(1);
        BOOST_TEST(!early.end(2));
    }
    recorder.pause();
    recorder.resume();
    BOOST_TEST(!recorder.template record<note>(3U));
    BOOST_TEST(recorder.template enable<note>(true) == 0U);
    BOOST_TEST(recorder.enable("*", true) == 0U);
    BOOST_TEST(!recorder.template record<note>(4U));
    recorder.flush_thread();
    BOOST_TEST(std::string_view(recorder.path()).empty());
    BOOST_TEST(recorder.descriptor() == -1);
    BOOST_TEST(recorder.bytes().first == nullptr);
    BOOST_TEST(recorder.bytes().second == 0U);
}

template <class Recorder>
void use_all(Recorder& recorder, int error) {
    use(recorder);
    BOOST_TEST(recorder.snapshot("/tmp/there-is-none.trace") == error);
    BOOST_TEST(!fs::exists("/tmp/there-is-none.trace"));
    const auto counts = recorder.statistics();
    BOOST_REQUIRE(counts.failure != nullptr);
    BOOST_TEST(std::string(counts.failure) == reported);
    BOOST_TEST(counts.failure_error == error);
    BOOST_TEST(counts.sub_buffers == 0U);
    std::thread([&] { use(recorder); }).join();
    const ::pid_t child = ::fork();
    if (child == 0) ::_exit(recorder.template record<note>(1U) ? 1 : 0);
    int status = -1;
    BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
    BOOST_TEST(status == 0);
}

::mode_t mode_of(const std::string& file) {
    struct ::stat status {};
    BOOST_REQUIRE(::stat(file.c_str(), &status) == 0);
    return status.st_mode & 07777U;
}
std::vector<std::uint64_t> numbers_in(const std::string& file) {
    auto trace = tr::reduce::trace_file::open(file);
    std::vector<std::uint64_t> out;
    auto all = trace.forward();
    while (const auto* one = all.next()) {
        out.push_back(std::get<tr::reduce::record_view>(*one).field("n").u64());
    }
    return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(all_members_of_a_recorder_without_a_trace_can_be_used, Kind, kinds) {
    reports = 0;
    tr::basic_recorder<Kind> recorder(impossible());
    BOOST_TEST(reports == 1);
    BOOST_TEST((reported.find("/nowhere/service.trace: cannot create the file: ") == 0));
    use_all(recorder, ENOENT);
    tr::drain::session session(recorder);
    std::size_t parts = 0;
    session.for_each([&](const auto&) { ++parts; });
    session.finish_records([&](const tr::drained_record&) { ++parts; });
    BOOST_TEST(parts == 0U);
    BOOST_TEST(session.records() == 0U);
    BOOST_TEST(session.lost().total() == 0U);
    { const tr::crash_snapshot at_crash(recorder, "/tmp/there-is-none.trace"); }
    BOOST_TEST(reports == 1);
}

BOOST_AUTO_TEST_CASE(events_of_run_time_are_refused_too) {
    tr::recorder recorder(impossible());
    const tr::runtime_event::field fields[] = {{"n"}};
    auto& made = tr::runtime_event::make("degraded.made", fields);
    const std::uint64_t payload[] = {1};
    BOOST_TEST(!made.record(recorder, payload));
    tr::runtime_event::lose(recorder, 3);
}

BOOST_AUTO_TEST_CASE(each_way_in_which_set_up_fails_is_survived) {
    const test::folder folder;
    {
        auto options = impossible();
        options.totals = 65;
        tr::recorder recorder(options);
        BOOST_TEST((reported.find("recorder_options::totals: must be at most 64") == 0));
        use_all(recorder, EINVAL);
    }
    {
        auto options = impossible();
        options.file = folder / "there.trace";
        const tr::recorder first{{.file = options.file, .size = 1 << 20}};
        tr::recorder recorder(options);
        use_all(recorder, EEXIST);
        options.exists = tr::if_exists::replace;
        tr::recorder other(options);
        use_all(other, EBUSY);
    }
    {
        auto options = impossible();
        options.file = folder / "no.trace";
        std::ofstream(options.file) << "something else";
        options.exists = tr::if_exists::attach;
        tr::recorder recorder(options);
        use_all(recorder, EINVAL);
        options.exists = tr::if_exists::rotate;
        tr::recorder other(options);
        use_all(other, EEXIST);
    }
    {
        // More recorders than a process can have.
        std::vector<std::unique_ptr<tr::recorder>> all;
        for (int i = 0; i < 8; ++i) {
            all.push_back(std::make_unique<tr::recorder>(tr::recorder_options{.size = 1 << 16}));
        }
        auto options = impossible();
        options.file = {};
        tr::recorder recorder(options);
        use_all(recorder, EMFILE);
        all.pop_back();
        tr::recorder next(options);
        BOOST_TEST(next.statistics().failure == nullptr);
        BOOST_TEST(next.record<note>(1U));
    }
}

BOOST_AUTO_TEST_CASE(a_handler_of_the_program_is_not_called_and_others_still_fail) {
    static int handled;
    handled = 0;
    const auto before = tr::set_setup_handler([](const tr::setup_error& error) {
        ++handled;
        throw tr::setup_error(error);
    });
    {
        tr::recorder recorder(impossible());
        BOOST_TEST(handled == 0);
        BOOST_CHECK_THROW((tr::recorder{{.file = "/nowhere/other.trace"}}), tr::setup_error);
        BOOST_TEST(handled == 1);
    }
    tr::set_setup_handler(before);
}

BOOST_AUTO_TEST_CASE(threads_that_all_fail_at_once_each_record_nothing) {
    std::vector<std::thread> threads;
    std::atomic<int> failures{0};
    std::atomic<int> thrown{0};
    for (int i = 0; i < 8; ++i) {
        threads.emplace_back([&, i] {
            for (int k = 0; k < 20; ++k) {
                if (i % 2 == 0) {
                    auto options = impossible();
                    options.report_failure = [](const tr::setup_error&) {};
                    tr::recorder recorder(options);
                    if (recorder.statistics().failure != nullptr) ++failures;
                } else {
                    try {
                        tr::recorder recorder{{.file = "/nowhere/other.trace"}};
                    } catch (const tr::setup_error&) {
                        ++thrown;
                    }
                }
            }
        });
    }
    for (auto& each : threads) each.join();
    BOOST_TEST(failures == 80);
    BOOST_TEST(thrown == 80);
}

BOOST_AUTO_TEST_CASE(the_reason_is_written_to_stderr_once) {
    int ends[2];
    BOOST_REQUIRE(::pipe(ends) == 0);
    const ::pid_t child = ::fork();
    if (child == 0) {
        ::dup2(ends[1], 2);
        auto options = impossible();
        options.report_failure = nullptr;
        tr::recorder recorder(options);
        recorder.record<note>(1U);
        ::_exit(0);
    }
    ::close(ends[1]);
    std::string said;
    char bytes[256];
    for (::ssize_t got = 0; (got = ::read(ends[0], bytes, sizeof bytes)) > 0;) {
        said.append(bytes, static_cast<std::size_t>(got));
    }
    ::close(ends[0]);
    ::waitpid(child, nullptr, 0);
    BOOST_TEST(said ==
               "/nowhere/service.trace: cannot create the file: No such file or directory; nothing "
               "is recorded\n");
}

BOOST_AUTO_TEST_CASE(a_set_up_that_succeeds_records_whatever_it_would_do_on_failure) {
    const test::folder folder;
    auto options = impossible();
    options.file = folder / "good.trace";
    options.size = 1 << 20;
    reports = 0;
    tr::recorder recorder(options);
    BOOST_TEST(reports == 0);
    BOOST_TEST(recorder.statistics().failure == nullptr);
    BOOST_TEST(recorder.record<note>(1U));
}

BOOST_AUTO_TEST_CASE(a_service_that_starts_again_keeps_the_old_traces) {
    const test::folder folder;
    const std::string file = folder / "service.trace";
    for (std::uint64_t start = 1; start <= 5; ++start) {
        tr::recorder recorder{
            {.file = file, .size = 1 << 20, .exists = tr::if_exists::rotate, .rotations = 3}};
        BOOST_TEST(recorder.record<note>(start));
    }
    using list = std::vector<std::uint64_t>;
    BOOST_CHECK(numbers_in(file) == list{5});
    BOOST_CHECK(numbers_in(file + ".1") == list{4});
    BOOST_CHECK(numbers_in(file + ".2") == list{3});
    BOOST_CHECK(numbers_in(file + ".3") == list{2});
    BOOST_TEST(!fs::exists(file + ".4"));
    std::size_t files = 0;
    for (const auto& each : fs::directory_iterator(fs::path(file).parent_path())) {
        static_cast<void>(each);
        ++files;
    }
    BOOST_TEST(files == 4U);

    // A file that is not a trace is neither renamed nor removed, in any place.
    std::ofstream(file + ".3", std::ios::trunc) << "something else";
    BOOST_CHECK_THROW(
        (tr::recorder{
            {.file = file, .size = 1 << 20, .exists = tr::if_exists::rotate, .rotations = 3}}),
        tr::setup_error);
    BOOST_CHECK(numbers_in(file) == list{5});
    std::ofstream(file, std::ios::trunc) << "something else";
    BOOST_CHECK_THROW(
        (tr::recorder{{.file = file, .size = 1 << 20, .exists = tr::if_exists::rotate}}),
        tr::setup_error);
    BOOST_TEST(fs::file_size(file) == 14U);
}

BOOST_AUTO_TEST_CASE(a_trace_in_use_is_renamed_and_recorded_on) {
    const test::folder folder;
    const std::string file = folder / "service.trace";
    const tr::recorder_options options{
        .file = file, .size = 1 << 20, .exists = tr::if_exists::rotate};
    tr::recorder first(options);
    BOOST_TEST(first.record<note>(1U));
    tr::recorder second(options);
    BOOST_TEST(second.record<note>(2U));
    BOOST_TEST(first.record<note>(3U));
    BOOST_CHECK((numbers_in(file) == std::vector<std::uint64_t>{2}));
    BOOST_CHECK((numbers_in(file + ".1") == std::vector<std::uint64_t>{1, 3}));
}

BOOST_AUTO_TEST_CASE(services_that_start_at_once_all_get_a_trace) {
    const test::folder folder;
    const std::string file = folder / "service.trace";
    std::vector<::pid_t> children;
    constexpr int count = 6;
    for (int i = 0; i < count; ++i) {
        const ::pid_t child = ::fork();
        if (child == 0) {
            bool good = false;
            try {
                tr::recorder recorder{{.file = file,
                                       .size = 1 << 16,
                                       .exists = tr::if_exists::rotate,
                                       .rotations = 20}};
                good = recorder.record<note>(static_cast<std::uint64_t>(i));
            } catch (const tr::setup_error&) {
            }
            ::_exit(good ? 0 : 1);
        }
        children.push_back(child);
    }
    for (const ::pid_t child : children) {
        int status = -1;
        ::waitpid(child, &status, 0);
        BOOST_TEST(status == 0);
    }
    // Each is there once.
    std::vector<std::uint64_t> all = numbers_in(file);
    for (int i = 1; i < count; ++i) {
        const auto more = numbers_in(file + '.' + std::to_string(i));
        all.insert(all.end(), more.begin(), more.end());
    }
    std::sort(all.begin(), all.end());
    BOOST_CHECK((all == std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5}));
}

BOOST_AUTO_TEST_CASE(a_file_and_its_snapshots_have_the_mode_that_is_asked_for) {
    const test::folder folder;
    for (const ::mode_t mask : {0U, 022U, 077U, 0777U}) {
        for (const std::uint32_t mode : {0600U, 0640U, 0644U, 0660U, 0666U, 0777U}) {
            for (const auto how : {tr::if_exists::fail, tr::if_exists::replace,
                                   tr::if_exists::attach, tr::if_exists::rotate}) {
                const std::string file = folder / "mode.trace";
                const std::string copy = folder / "mode.copy";
                const ::mode_t before = ::umask(mask);
                {
                    tr::recorder recorder{
                        {.file = file, .size = 1 << 16, .exists = how, .file_mode = mode}};
                    BOOST_TEST(recorder.record<note>(1U));
                    BOOST_TEST(recorder.snapshot(copy.c_str()) == 0);
                }
                ::umask(before);
                BOOST_TEST(mode_of(file) == mode);
                BOOST_TEST(mode_of(copy) == mode);
                fs::remove(file);
                fs::remove(copy);
            }
        }
    }
    for (const std::uint32_t mode : {0U, 0400U, 0066U, 01600U}) {
        BOOST_CHECK_THROW((tr::recorder{{.file = folder / "mode.trace", .file_mode = mode}}),
                          tr::setup_error);
    }
    const tr::recorder first{{.file = folder / "joined.trace", .size = 1 << 16, .file_mode = 0640}};
    const tr::recorder second{
        {.file = folder / "joined.trace", .exists = tr::if_exists::attach, .file_mode = 0666}};
    BOOST_TEST(mode_of(folder / "joined.trace") == 0640U);
}

BOOST_AUTO_TEST_SUITE_END()
