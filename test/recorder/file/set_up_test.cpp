// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// What can go wrong when a recorder is set up: each is an error that names the file or the option
/// and the cause, overwrites nothing and leaves nothing behind. And what can go wrong later with
/// the disk: a limit, counted.

#include <boost/test/unit_test.hpp>

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <trace_ring/policy/clock/none.hpp>
#include <trace_ring/recorder/recorder.hpp>

#include <recorder/account.hpp>
#include <recorder/scratch.hpp>
#include <recorder/system_calls.hpp>

BOOST_AUTO_TEST_SUITE(set_up)

namespace fs = std::filesystem;
namespace tr = trace_ring;
using namespace std::chrono_literals;
using test::fit_in_512;
using test::put;
using tr::if_exists;
using tr::loss_cause;

namespace {

/// What setting up throws.
struct complaint {
    int error = 0;  ///< 0: nothing was thrown
    std::string subject;
    std::string text;

    [[nodiscard]] bool is(int code, const std::string& about, const std::string& cause) const {
        return error == code && subject == about && text.find(about) != std::string::npos &&
               text.find(cause) != std::string::npos;
    }
};
struct untimed : tr::policies<tr::clock::none> {};

template <class Kind = tr::recording>
complaint complaint_about(const tr::recorder_options& options) {
    try {
        const tr::basic_recorder<Kind> recorder(options);
    } catch (const tr::setup_error& error) {
        return {error.code().value(), error.subject(), error.what()};
    }
    return {};
}
std::ostream& operator<<(std::ostream& out, const complaint& what) {
    return out << '[' << what.error << "] " << what.subject << " | " << what.text;
}

/// Checks of a child's, with the complaints that it wants to hear.
struct checks : test::checks {
    void that(const complaint& got, int code, const std::string& about, const std::string& cause) {
        (*this)(got.is(code, about, cause), "[" + std::to_string(got.error) + "] " + got.text +
                                                " is about " + about + ": " + cause);
    }
};

std::vector<char> contents(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}
void write_file(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
}
std::size_t entries(const std::string& folder) {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {}));
}

tr::recorder_options small(const std::string& file, if_exists exists = if_exists::fail) {
    return {.file = file, .size = 8 * 512, .sub_buffer_bytes = 512, .exists = exists};
}
constexpr if_exists each_way[] = {if_exists::fail, if_exists::replace, if_exists::attach};

/// Overwrites one word of a file.
template <class T>
void patch(const std::string& path, std::uint64_t offset, T value) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(offset));
    file.write(reinterpret_cast<const char*>(&value), sizeof value);
}

/// Whether a disk gives a file its blocks before they are stored into.
enum class disk { allocates, writes_zeros };

/// Runs `body(folder)` in a child in whose sight the folder is a file system of `bytes`, which goes
/// away with it. 77 if the system does not let the child mount one.
template <class Body>
int on_small_disk(const std::string& folder, std::uint64_t bytes, Body&& body,
                  disk kind = disk::allocates) {
    return test::in_child([&]() -> int {
        const bool mine =
            ::unshare(CLONE_NEWNS) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
        if (!mine || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            ::mount("small", folder.c_str(), "tmpfs", MS_NOSUID | MS_NODEV,
                    ("mode=0777,size=" + std::to_string(bytes)).c_str()) != 0) {
            return test::skipped;
        }
        if (kind == disk::writes_zeros && !test::refuse_calls({test::call_fallocate}, EOPNOTSUPP)) {
            return test::skipped;
        }
        return body();
    });
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_bad_option_is_refused_by_name_before_a_file_is_made) {
    const test::folder folder;
    const std::string file = folder / "a.trace";
    struct wrong {
        const char* option;
        std::function<void(tr::recorder_options&)> make;
    };
    const auto extends = tr::full_mode::extend_then_discard;
    const wrong all[] = {
        {"sub_buffer_bytes", [](auto& o) { o.sub_buffer_bytes = 256; }},
        {"sub_buffer_bytes", [](auto& o) { o.sub_buffer_bytes = 4095; }},
        {"sub_buffer_bytes", [](auto& o) { o.sub_buffer_bytes = 3 * 1024; }},
        {"sub_buffer_bytes", [](auto& o) { o.sub_buffer_bytes = 65536; }},
        {"size", [](auto& o) { o.size = 0; }},
        {"size", [](auto& o) { o.size = 8 * 4096 - 1; }},
        {"size", [](auto& o) { o.size = 8 * 512 - 1, o.sub_buffer_bytes = 512; }},
        {"size", [](auto& o) { o.size = 1 << 17, o.sub_buffer_bytes = 32768; }},
        {"size", [](auto& o) { o.size = (1ULL << 47) + 1; }},
        {"size", [](auto& o) { o.size = ~0ULL; }},
        {"limit", [=](auto& o) { o.full = extends, o.limit = (1ULL << 47) + 1; }},
        {"limit", [=](auto& o) { o.full = extends, o.limit = ~0ULL; }},
        {"limit", [=](auto& o) { o.full = extends, o.limit = o.size - 1; }},
        {"limit", [=](auto& o) { o.full = extends, o.size = 1ULL << 44; }},
        {"size", [=](auto& o) { o.full = extends, o.size = 1ULL << 60; }},
        {"step", [=](auto& o) { o.full = extends, o.step = 0; }},
        {"step", [](auto& o) { o.full = tr::full_mode::extend_then_overwrite, o.step = 0; }},
        {"full", [](auto& o) { o.full = static_cast<tr::full_mode>(6); }},
        {"keep_for", [=](auto& o) { o.full = extends, o.keep_for = -1ns; }},
        {"keep_for", [](auto& o) { o.keep_for = 1s; }},
        {"processes", [](auto& o) { o.processes = 0; }},
        {"processes", [](auto& o) { o.processes = 65537; }},
        {"programs", [](auto& o) { o.programs = 0; }},
        {"programs", [](auto& o) { o.processes = 4, o.programs = 5; }},
        {"lanes", [](auto& o) { o.lanes = 65537; }},
        {"totals", [](auto& o) { o.totals = 65; }},
        {"dictionary_bytes", [](auto& o) { o.dictionary_bytes = 4095; }},
        {"dictionary_bytes", [](auto& o) { o.dictionary_bytes = (1ULL << 30) + 1; }},
    };
    for (const auto& one : all) {
        for (const auto exists : each_way) {
            tr::recorder_options options{.file = file, .exists = exists};
            one.make(options);
            const auto said = complaint_about(options);
            BOOST_TEST(said.is(EINVAL, std::string("recorder_options::") + one.option, "must"),
                       one.option << ": " << said);
            BOOST_TEST(entries(folder.path()) == 0U);
        }
    }
    tr::recorder_options options{.file = file, .full = extends, .keep_for = 1s};
    BOOST_TEST(!complaint_about(options).is(EINVAL, "recorder_options::keep_for", "must"));
    options.exists = tr::if_exists::replace;
    const auto said = complaint_about<untimed>(options);
    BOOST_TEST(said.is(EINVAL, "recorder_options::keep_for", "must not be set without a clock"),
               said);
}

BOOST_AUTO_TEST_CASE(sizes_are_rounded_up_to_whole_sub_buffers_of_which_there_are_eight) {
    const auto said = complaint_about({.size = 1});
    BOOST_TEST(said.is(EINVAL, "recorder_options::size", "at least eight sub-buffers: 32768 bytes"),
               said);
    const tr::recorder least({.size = 8 * 512, .sub_buffer_bytes = 512});
    BOOST_TEST(least.statistics().sub_buffers == 8U);
    const tr::recorder more({.size = 8 * 512 + 1, .sub_buffer_bytes = 512});
    BOOST_TEST(more.statistics().sub_buffers == 9U);
    const tr::recorder longest({.size = 8 * 32768, .sub_buffer_bytes = 32768});
    for (const auto& [size, bytes] : {std::pair{1ULL << 20, 4096U},
                                      {128ULL << 20, 4096U},
                                      {256ULL << 20, 8192U},
                                      {300ULL << 20, 8192U},
                                      {1ULL << 30, 32768U},
                                      {1ULL << 40, 32768U}}) {
        BOOST_TEST(tr::impl::plan_for({.size = size}).sub_buffer_bytes == bytes, size);
    }
    BOOST_TEST(
        tr::impl::plan_for(
            {.size = 1 << 20, .limit = 1ULL << 30, .full = tr::full_mode::extend_then_discard})
            .sub_buffer_bytes == 32768U);
    BOOST_TEST(longest.statistics().sub_buffers == 8U);
    const tr::recorder grows({.size = 8 * 512,
                              .limit = 8 * 512,
                              .sub_buffer_bytes = 512,
                              .full = tr::full_mode::extend_then_discard});
    BOOST_TEST(grows.statistics().sub_buffers == 8U);
}

BOOST_AUTO_TEST_CASE(more_memory_than_there_are_addresses_is_an_error_that_leaves_no_file) {
    const test::folder folder;
    const std::uint64_t size = sizeof(void*) == 4 ? 1ULL << 32 : 1ULL << 47;
    for (const auto exists : each_way) {
        auto options = small(folder / "a.trace", exists);
        options.sub_buffer_bytes = 32768;
        options.full = tr::full_mode::extend_then_discard;
        options.limit = size;
        options.size = 8 * 32768;
        const auto said = complaint_about(options);
        BOOST_TEST(said.error == ENOMEM, said);
        BOOST_TEST(said.text.find("cannot map") != std::string::npos, said);
        BOOST_TEST(said.subject == folder / "a.trace", said);
        BOOST_TEST(entries(folder.path()) == 0U);
        options.file.clear();
        BOOST_TEST(complaint_about(options).error == ENOMEM);
    }
}

BOOST_AUTO_TEST_CASE(names_too_long_for_a_file_or_for_its_dictionary_are_refused) {
    const test::folder folder;
    for (const auto exists : each_way) {
        const std::string name = folder / std::string(256, 'x');
        BOOST_TEST(complaint_about(small(name, exists)).is(ENAMETOOLONG, name, "cannot"),
                   complaint_about(small(name, exists)));
        const std::string path = folder / std::string(5000, '/') + "x";
        BOOST_TEST(complaint_about(small(path, exists)).is(ENAMETOOLONG, path, "cannot"),
                   complaint_about(small(path, exists)));
        const std::string nowhere = folder / "no/such/folder/a.trace";
        BOOST_TEST(complaint_about(small(nowhere, exists)).is(ENOENT, nowhere, "cannot"),
                   complaint_about(small(nowhere, exists)));
    }
    BOOST_TEST(entries(folder.path()) == 0U);

    // A type's, too: without a number its records are refused.
    const std::string long_name(40'000, 'n');
    const tr::type_description too_long{long_name, tr::event_kind::instant, false, 0, {}};
    BOOST_TEST((tr::impl::find_type(too_long, [] { return 1U; }) == nullptr));
}

BOOST_AUTO_TEST_CASE(what_is_no_trace_file_is_left_as_it_is) {
    const test::folder folder;
    const std::string file = folder / "precious.txt";
    for (const std::string& text :
         {std::string(), std::string("x"), std::string("what took years to write\n"),
          std::string(100'000, 'y')}) {
        write_file(file, text);
        BOOST_TEST(complaint_about(small(file)).is(EEXIST, file, "if_exists::replace"));
        BOOST_TEST(complaint_about(small(file, if_exists::replace))
                       .is(EEXIST, file, "will not replace what is not a trace file"));
        BOOST_TEST(complaint_about(small(file, if_exists::attach)).is(EINVAL, file, "not a trace"));
        const auto after = contents(file);
        BOOST_TEST((std::string(after.begin(), after.end()) == text));
        BOOST_TEST(entries(folder.path()) == 1U);
    }
}

BOOST_AUTO_TEST_CASE(folders_pipes_and_devices_are_refused) {
    const test::folder folder;
    const std::string inner = folder / "inner";
    fs::create_directory(inner);
    BOOST_TEST(complaint_about(small(inner)).is(EEXIST, inner, "cannot create"));
    for (const auto exists : {if_exists::replace, if_exists::attach}) {
        BOOST_TEST(complaint_about(small(inner, exists)).is(EISDIR, inner, "cannot open"));
    }
    const std::string pipe = folder / "pipe";
    BOOST_REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    for (const auto exists : {if_exists::replace, if_exists::attach}) {
        BOOST_TEST(complaint_about(small(pipe, exists)).is(EINVAL, pipe, "not a regular file"));
        BOOST_TEST(complaint_about(small("/dev/null", exists)).error != 0);
    }
    BOOST_TEST(fs::is_directory(inner));
    BOOST_TEST(fs::is_fifo(pipe));
    BOOST_TEST(fs::is_character_file("/dev/null"));
    BOOST_TEST(entries(folder.path()) == 2U);
    BOOST_TEST(entries(inner) == 0U);
    // A link that leads nowhere is not followed, nor replaced by what would be made of it.
    const std::string link = folder / "link";
    fs::create_symlink(folder / "nowhere", link);
    for (const auto exists : {if_exists::fail, if_exists::attach}) {
        BOOST_TEST(complaint_about(small(link, exists)).is(EEXIST, link, "cannot create"));
    }
    BOOST_TEST(!fs::exists(folder / "nowhere"));
    BOOST_TEST(entries(folder.path()) == 3U);
}

BOOST_AUTO_TEST_CASE(no_link_is_followed_to_what_is_attached_to) {
    const test::folder folder;
    const std::string victim = folder / "victim.trace";
    const std::string link = folder / "link.trace";
    { const tr::recorder recorder(small(victim)); }
    const auto before = contents(victim);
    fs::create_symlink(victim, link);
    BOOST_TEST(complaint_about(small(link, if_exists::attach)).is(ELOOP, link, "a symbolic link"));
    auto options = small(link, if_exists::attach);
    options.any_owner = true;
    BOOST_TEST(complaint_about(options).is(ELOOP, link, "a symbolic link"));
    BOOST_TEST((contents(victim) == before));
}

BOOST_AUTO_TEST_CASE(a_file_of_another_user_is_attached_to_only_if_asked_for) {
    const test::folder folder;
    const std::string file = folder / "others.trace";
    { const tr::recorder recorder(small(file)); }
    if (::geteuid() != 0 || ::chown(file.c_str(), 65534, 65534) != 0) {
        BOOST_TEST_MESSAGE("no other user");
        return;
    }
    const auto before = contents(file);
    BOOST_TEST(
        complaint_about(small(file, if_exists::attach)).is(EPERM, file, "belongs to another user"));
    BOOST_TEST((contents(file) == before));
    auto options = small(file, if_exists::attach);
    options.any_owner = true;
    tr::recorder recorder(options);
    BOOST_TEST(put(recorder, 1, 1));
}

BOOST_AUTO_TEST_CASE(without_permission_nothing_is_made_and_nothing_opened) {
    const test::folder folder;
    BOOST_REQUIRE(::chmod(folder.path().c_str(), 0755) == 0);
    const std::string there = folder / "there.trace";
    {
        tr::recorder recorder(small(there));
        put(recorder, 1, 1);
    }
    const auto before = contents(there);
    const std::string closed = folder / "closed";
    fs::create_directory(closed);
    const int status = test::in_child([&]() -> int {
        if (::geteuid() == 0) {
            if (::setgid(65534) != 0 || ::setuid(65534) != 0) return test::skipped;
        } else if (::chmod(closed.c_str(), 0555) != 0 || ::chmod(there.c_str(), 0000) != 0) {
            return test::skipped;
        }
        checks check;
        const std::string made = closed + "/a.trace";
        check.that(complaint_about(small(made)), EACCES, made, "cannot create");
        check.that(complaint_about(small(made, if_exists::attach)), EACCES, made, "cannot create");
        const auto said = complaint_about(small(made, if_exists::replace));
        check(said.error == EACCES && said.subject.find(made) == 0, said.text);
        check.that(complaint_about(small(there, if_exists::attach)), EACCES, there, "cannot open");
        const auto replacing = complaint_about(small(there, if_exists::replace));
        check(replacing.error == EACCES && replacing.subject.find(there) == 0, replacing.text);
        return check.failed;
    });
    ::chmod(closed.c_str(), 0755);
    ::chmod(there.c_str(), 0600);
    TRACE_RING_TEST_SKIP_IF(status, "no other user");
    BOOST_TEST(status == 0);
    BOOST_TEST(entries(closed) == 0U);
    BOOST_TEST((contents(there) == before));
    BOOST_TEST(entries(folder.path()) == 2U);
}

BOOST_AUTO_TEST_CASE(a_trace_file_in_use_is_joined_or_refused_and_never_replaced) {
    const test::folder folder;
    const std::string file = folder / "a.trace";
    int ready[2];
    int end[2];
    BOOST_REQUIRE(::pipe(ready) == 0);
    BOOST_REQUIRE(::pipe(end) == 0);
    const pid_t child = test::start_child([&]() -> int {
        ::close(end[1]);
        tr::recorder recorder(small(file));
        put(recorder, 1, 0);
        char byte = 'r';
        const bool told = ::write(ready[1], &byte, 1) == 1;
        const bool ended = ::read(end[0], &byte, 1) == 0;
        return told && ended && put(recorder, 1, 1) ? 0 : 1;
    });
    ::close(ready[1]);
    ::close(end[0]);
    char byte = 0;
    BOOST_REQUIRE(::read(ready[0], &byte, 1) == 1);
    BOOST_TEST(complaint_about(small(file)).is(EEXIST, file, "cannot create"));
    BOOST_TEST(complaint_about(small(file, if_exists::replace)).is(EBUSY, file, "in use"));
    // One of another version, by somebody who knows it: not joined, not replaced.
    constexpr auto version_at = offsetof(tr::layout::file_header, version);
    for (const auto version : {tr::layout::file_version + 1, tr::layout::oldest_version}) {
        patch(file, version_at, version);
        BOOST_TEST(complaint_about(small(file, if_exists::attach))
                       .is(EINVAL, file, "offset 8: a trace file of another version"));
    }
    BOOST_TEST(complaint_about(small(file, if_exists::replace)).is(EBUSY, file, "in use"));
    patch(file, version_at, tr::layout::file_version);
    BOOST_TEST(entries(folder.path()) == 1U);
    ::close(end[1]);
    BOOST_TEST(test::wait_for(child) == 0);
    ::close(ready[0]);
    BOOST_TEST(test::account_of(tr::reduce::trace_file::open(file)).of(1) ==
                   (std::vector<std::uint64_t>{0, 1}),
               boost::test_tools::per_element());
    // No process has it any more: it is replaced, for any version.
    patch(file, version_at, tr::layout::file_version + 1);
    BOOST_TEST(complaint_about(small(file, if_exists::replace)).error == 0);
    BOOST_TEST(test::account_of(tr::reduce::trace_file::open(file)).read() == 0U);
    BOOST_TEST(entries(folder.path()) == 1U);
}

BOOST_AUTO_TEST_CASE(a_file_that_contradicts_itself_is_not_joined) {
    const test::folder folder;
    const std::string file = folder / "a.trace";
    using header = tr::layout::file_header;
    {
        tr::recorder recorder(small(file));
        put(recorder, 1, 1);
    }
    const auto sound = contents(file);
    const auto joining_says = [&](const std::string& cause) {
        const auto before = contents(file);
        const auto said = complaint_about(small(file, if_exists::attach));
        BOOST_TEST(said.error != 0, cause);
        BOOST_TEST(said.subject == file);
        BOOST_TEST(said.text.find(cause) != std::string::npos, said << " should say " << cause);
        BOOST_TEST((contents(file) == before));
        std::ofstream(file, std::ios::binary)
            .write(sound.data(), static_cast<std::streamsize>(sound.size()));
    };
    patch(file, offsetof(header, clock), std::uint32_t{99});
    joining_says("its clock cannot be read here");
    patch(file, offsetof(header, full), std::uint32_t{99});
    joining_says("full");
    patch(file, offsetof(header, sub_buffer_bytes), std::uint32_t{1000});
    joining_says("impossible size of sub-buffers");
    patch(file, 4096 + offsetof(tr::layout::ring_state, capacity), std::uint64_t{9});
    joining_says("impossible capacity");
    fs::resize_file(file, sound.size() - 512);
    joining_says("impossible capacity");
    fs::resize_file(file, 4095);
    joining_says("not a trace file");
    BOOST_TEST(complaint_about(small(file, if_exists::attach)).error == 0);
}

BOOST_AUTO_TEST_CASE(who_joins_goes_by_the_mode_that_the_file_was_made_with) {
    const test::folder folder;
    const std::string file = folder / "a.trace";
    auto first = small(file);
    first.full = tr::full_mode::discard_newest;
    tr::recorder creator(first);
    for (std::uint64_t n = 0; n < 8 * fit_in_512; ++n) BOOST_TEST(put(creator, 1, n));
    // Its own options say overwrite_oldest: that would take what the other was promised.
    tr::recorder joiner(small(file, if_exists::attach));
    BOOST_TEST(!put(joiner, 2, 0));
    const auto all = test::account_of(creator);
    BOOST_TEST(all.of(1).size() == 8 * fit_in_512);
    BOOST_TEST(all.lost()[loss_cause::refused] == 1U);
    BOOST_TEST(creator.statistics().overwritten == 0U);
}

BOOST_AUTO_TEST_CASE(programs_that_attach_all_at_once_make_one_file) {
    const test::folder folder;
    for (int round = 0; round < 20; ++round) {
        const std::string file = folder / (std::to_string(round) + ".trace");
        constexpr std::uint64_t programs = 4;
        int go[2];
        BOOST_REQUIRE(::pipe(go) == 0);
        std::vector<pid_t> children;
        for (std::uint64_t p = 0; p < programs; ++p) {
            children.push_back(test::start_child([&]() -> int {
                ::close(go[1]);
                char byte = 0;
                static_cast<void>(!::read(go[0], &byte, 1));
                tr::recorder recorder(
                    {.file = file, .size = 64 << 10, .exists = if_exists::attach});
                return put(recorder, p, 7) ? 0 : 1;
            }));
        }
        ::close(go[0]);
        ::close(go[1]);
        for (const pid_t child : children) BOOST_TEST(test::wait_for(child) == 0);
        const auto all = test::account_of(tr::reduce::trace_file::open(file));
        for (std::uint64_t p = 0; p < programs; ++p) BOOST_TEST(all.of(p).size() == 1U);
        BOOST_TEST(entries(folder.path()) == static_cast<std::size_t>(round + 1));
    }
}

BOOST_AUTO_TEST_CASE(a_limit_of_file_sizes_is_an_error_and_later_an_end_of_growing_and_no_signal) {
    const test::folder folder;
    const std::string file = folder / "a.trace";
    const int status = test::in_child([&]() -> int {
        checks check;
        const auto allow = [&](std::uint64_t bytes) {
            const rlimit limit{static_cast<rlim_t>(bytes), RLIM_INFINITY};
            check(::setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
        };
        for (const auto exists : each_way) {
            allow(64 << 10);
            auto said = complaint_about(small(file, exists));
            check(said.error == EFBIG && said.subject.find(file) == 0, said.text);
            check(said.text.find("cannot allocate the tables") != std::string::npos, said.text);
            auto large = small(file, exists);
            large.size = 16 << 20;
            allow(4 << 20);
            said = complaint_about(large);
            check(said.error == EFBIG && said.subject.find(file) == 0, said.text);
            check(said.text.find("bytes of sub-buffers") != std::string::npos, said.text);
            check(entries(folder.path()) == 0, "something was left behind");
        }
        // Room for 12 sub-buffers of a file that may have 1000.
        auto growing = small(file);
        growing.limit = 1000 * 512;
        growing.step = 512;
        growing.full = tr::full_mode::extend_then_discard;
        allow(RLIM_INFINITY);
        tr::recorder recorder(growing);
        allow(test::hands_on(recorder).plan().bytes_for(12) + tr::impl::stray_bytes);
        std::uint64_t kept = 0;
        for (std::uint64_t n = 0; n < 1000; ++n) kept += put(recorder, 1, n) ? 1 : 0;
        check(kept == 12 * fit_in_512, "kept " + std::to_string(kept));
        check(recorder.statistics().sub_buffers == 12, "twelve sub-buffers");
        const auto all = test::account_of(recorder);
        check(all.read() == kept && all.lost()[loss_cause::refused] == 1000 - kept, "the account");
        allow(RLIM_INFINITY);
        check(!put(recorder, 1, 1), "it grows no more: positions have begun to wrap");
        return check.failed;
    });
    BOOST_TEST(status == 0);
}

BOOST_AUTO_TEST_CASE(a_full_disk_is_an_error_at_set_up_and_leaves_nothing_behind) {
    const test::folder folder;
    const auto body = [&]() -> int {
        checks check;
        for (const auto exists : each_way) {
            // Not even the tables.
            auto options = small(folder / "a.trace", exists);
            options.dictionary_bytes = 2 << 20;
            auto said = complaint_about(options);
            check(said.error == ENOSPC && said.subject.find(folder / "a.trace") == 0 &&
                      said.text.find("the tables") != std::string::npos,
                  said.text);
            check(entries(folder.path()) == 0, "something was left behind");
            // The tables, but not the sub-buffers.
            options = small(folder / "a.trace", exists);
            options.size = 2 << 20;
            said = complaint_about(options);
            check(said.error == ENOSPC && said.subject.find(folder / "a.trace") == 0 &&
                      said.text.find("bytes of sub-buffers") != std::string::npos,
                  said.text);
            check(entries(folder.path()) == 0, "something was left behind");
        }
        // An old trace stays, if there is no room for both.
        auto old = small(folder / "old.trace");
        old.size = 256 << 10;
        {
            tr::recorder recorder(old);
            put(recorder, 1, 42);
        }
        const auto before = contents(old.file);
        old.exists = if_exists::replace;
        old.size = 512 << 10;
        const auto said = complaint_about(old);
        check(said.error == ENOSPC, said.text);
        check(contents(old.file) == before, "the old trace is as it was");
        check(entries(folder.path()) == 1, "something was left behind");
        return check.failed;
    };
    for (const disk kind : {disk::allocates, disk::writes_zeros}) {
        const int status = on_small_disk(folder.path(), 1 << 20, body, kind);
        TRACE_RING_TEST_SKIP_IF(status, "a file system of one's own cannot be mounted");
        BOOST_TEST(status == 0);
        BOOST_TEST(entries(folder.path()) == 0U);  // what was mounted there went with the child
    }
}

namespace {
/// The kernel populates the requested range: an older one refuses, and an emulator claims that it
/// did.
bool can_populate() {
    constexpr int populate_write = 23;
    void* const page =
        ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char is_there = 0;
    const bool populated = ::madvise(page, 4096, populate_write) == 0 &&
                           ::mincore(page, 4096, &is_there) == 0 && (is_there & 1) != 0;
    ::munmap(page, 4096);
    return populated;
}
}  // namespace

BOOST_AUTO_TEST_CASE(a_file_with_holes_is_not_joined_on_a_full_disk) {
    if (!can_populate()) return;  // nor can it be known before
    const test::folder folder;
    const int status = on_small_disk(folder.path(), 1 << 20, [&]() -> int {
        checks check;
        auto options = small(folder / "a.trace", if_exists::attach);
        std::uint64_t tables = 0;
        {
            const tr::recorder recorder(options);
            tables = test::hands_on(recorder).plan().fixed_bytes();
        }
        const auto joins = [&](std::uint64_t from, std::uint64_t end, const char* what) {
            const int fd = ::open(options.file.c_str(), O_RDWR | O_CLOEXEC);
            const int filler = ::open((folder / "filler").c_str(), O_WRONLY | O_CREAT, 0600);
            const bool holed =
                ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                            static_cast<off_t>(from), static_cast<off_t>(end - from)) == 0;
            const std::string some(4096, 'x');
            while (::write(filler, some.data(), some.size()) > 0) {
            }
            check.that(complaint_about(options), ENOSPC, options.file, what);
            ::unlink((folder / "filler").c_str());
            ::close(filler);
            ::close(fd);
            return holed;
        };
        if (!joins(tables, fs::file_size(options.file), "holes")) return test::skipped;
        // Of the tables what nobody has written.
        joins(tables - 4096, tables, "the tables");
        check.that(complaint_about(options), 0, {}, {});
        return check.failed;
    });
    TRACE_RING_TEST_SKIP_IF(status, "a file system of one's own cannot be mounted");
    BOOST_TEST(status == 0);
}

BOOST_AUTO_TEST_CASE(a_read_only_file_system_is_named_and_what_is_on_it_can_be_read) {
    const test::folder folder;
    const int status = on_small_disk(folder.path(), 2 << 20, [&]() -> int {
        checks check;
        const std::string there = folder / "there.trace";
        {
            tr::recorder recorder(small(there));
            put(recorder, 1, 42);
        }
        if (::mount("none", folder.path().c_str(), nullptr,
                    MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV, nullptr) != 0) {
            return test::skipped;
        }
        const auto before = contents(there);
        for (const auto exists : each_way) {
            for (const std::string& file : {there, folder / "new.trace"}) {
                const auto said = complaint_about(small(file, exists));
                const bool in_the_way = exists == if_exists::fail && file == there;
                check(said.error == EROFS || (in_the_way && said.error == EEXIST), said.text);
                check(said.text.find(file) != std::string::npos, said.text);
            }
        }
        tr::recorder memory(small({}));
        put(memory, 1, 1);
        check(memory.snapshot((folder / "copy").c_str()) == EROFS, "no room for a copy");
        check(test::account_of(memory).read() == 1, "what is in memory");
        check(test::account_of(tr::reduce::trace_file::open(there)).read() == 1, "the old trace");
        check(contents(there) == before && entries(folder.path()) == 1, "all is as it was");
        return check.failed;
    });
    TRACE_RING_TEST_SKIP_IF(status, "a file system of one's own cannot be mounted");
    BOOST_TEST(status == 0);
}

BOOST_AUTO_TEST_CASE(a_disk_that_fills_up_while_a_trace_grows_is_its_limit) {
    const test::folder folder;
    for (const auto& [full, kind] : {std::pair{tr::full_mode::extend_then_discard, disk::allocates},
                                     {tr::full_mode::extend_then_discard, disk::writes_zeros},
                                     {tr::full_mode::extend_then_overwrite, disk::allocates}}) {
        const bool discards = full == tr::full_mode::extend_then_discard;
        const auto body = [&, full = full, kind = kind]() -> int {
            checks check;
            auto options = small(folder / "a.trace");
            // If zeros are written, the whole index exists from the beginning.
            options.limit = (kind == disk::allocates ? 64U : 3U) << 20;
            options.step = 16 * 512;
            options.full = full;
            tr::recorder recorder(options);
            constexpr std::uint64_t writers = 3;
            constexpr std::uint64_t each = 60'000;  // each of them more than the disk holds
            std::atomic<std::uint64_t> kept{0};
            std::vector<std::thread> threads;
            for (std::uint64_t w = 0; w < writers; ++w) {
                threads.emplace_back([&, w] {
                    std::uint64_t mine = 0;
                    for (std::uint64_t n = 0; n < each; ++n) mine += put(recorder, w, n) ? 1 : 0;
                    kept += mine;
                });
            }
            for (auto& thread : threads) thread.join();
            const std::uint64_t slots = recorder.statistics().sub_buffers;
            check(slots > 8 && slots < (2 << 20) / 512, std::to_string(slots) + " sub-buffers");
            check(test::hands_on(recorder).ring().growth_ended.load(tr::acquire) == 1, "the end");
            // From its own memory, and as the file that is left.
            for (const bool from_file : {false, true}) {
                const auto all = from_file
                                     ? test::account_of(tr::reduce::trace_file::open(options.file))
                                     : test::account_of(recorder);
                const auto lost = all.lost();
                check(all.strange == 0, "no damage");
                check(all.read() + lost.total() == writers * each, "every record is accounted for");
                check(all.read() + lost[loss_cause::overwritten] == kept, "what was kept");
                if (discards) {
                    check(kept + lost[loss_cause::refused] == writers * each, "or refused");
                    check(lost[loss_cause::overwritten] == 0, "nothing overwritten");
                    check(all.read() <= slots * fit_in_512, "not more than there is room for");
                    // But for what each writer leaves of its last sub-buffer, and for one that it
                    // drew just as another came to the end of the disk.
                    check(all.read() >= (slots - 2 * writers) * fit_in_512, "all room was used");
                } else {
                    check(kept == writers * each, "nothing refused");
                    check(recorder.statistics().overwritten == lost[loss_cause::overwritten],
                          "as the ring counts");
                }
            }
            // Nor does a snapshot of it find room, or leave anything.
            check(recorder.snapshot((folder / "copy").c_str()) == ENOSPC, "no room for a copy");
            check(entries(folder.path()) == 1, "nothing is left of the copy");
            return check.failed;
        };
        const int status = on_small_disk(folder.path(), 2 << 20, body, kind);
        TRACE_RING_TEST_SKIP_IF(status, "a file system of one's own cannot be mounted");
        BOOST_TEST(status == 0);
    }
}

BOOST_AUTO_TEST_SUITE_END()
