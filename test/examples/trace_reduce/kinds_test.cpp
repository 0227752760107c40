// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// trace-reduce and the kinds of files other than traces: CPTRAP files, core dumps that the test
/// writes, of this kernel and of gdb, and what is of no kind.

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <examples/trace_reduce/core/core_builder.hpp>
#include <exporter/json_check.hpp>
#include <proof.hpp>
#include <recorder/scratch.hpp>
#include <reduce/file_builder.hpp>
#include <trace_ring/cptrap/cp_entry.hpp>
#include <trace_ring/cptrap/selection.hpp>
#include <trace_ring/cptrap/spool.hpp>

namespace kinds_of_files {

using namespace trace_ring_test;
namespace fs = std::filesystem;
namespace record = trace_ring::record;

namespace {

std::string text_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

struct result {
    int status = -1;
    std::string output;
    std::string errors;
};

struct fixture {
    test::folder folder;
    const std::string out = folder / "out", err = folder / "err";

    /// Runs it to its end, with nothing to read.
    result reduce(const std::string& arguments) const {
        const std::string line =
            std::string(TRACE_REDUCE) + " " + arguments + " < /dev/null > " + out + " 2> " + err;
        const int status = std::system(line.c_str());
        return {WIFEXITED(status) ? WEXITSTATUS(status) : 1000, text_of(out), text_of(err)};
    }
    /// What it prints when there is nothing to complain of.
    std::string printed(const std::string& arguments) const {
        const auto all = reduce(arguments);
        BOOST_TEST(all.status == 0);
        BOOST_TEST(all.errors == "");
        return all.output;
    }
};

std::size_t lines(const std::string& text) {
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}
std::size_t count(const std::string& text, const std::string& what) {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++found;
    return found;
}

/// Three pages: code 1 in the first, codes 2 and 300 with entries in the second, code 4 in the
/// last.
void write_spool(const std::string& path) {
    trace_ring::cptrap::spool spool(path);
    const std::vector<std::byte> data(10, std::byte{0xC1});
    BOOST_REQUIRE(spool.append(1, data));
    BOOST_REQUIRE(spool.flush());
    BOOST_REQUIRE(spool.append(2, data));
    for (const bool attached : {false, true}) {
        record::cp_entry entry;
        entry.set(record::cp_event::start_io, attached);
        std::array<std::byte, record::cptrap_most_bytes> one{};
        const std::size_t size = record::put_cptrap(one, record::cptrap_type::table_entry,
                                                    std::to_integer<std::uint16_t>(entry.code),
                                                    std::as_bytes(std::span{&entry, 1}));
        BOOST_REQUIRE(spool.append(std::span<const std::byte>(one).first(size)));
    }
    BOOST_REQUIRE(spool.append(300, data));
    BOOST_REQUIRE(spool.flush());
    BOOST_REQUIRE(spool.append(4, {}));
    BOOST_REQUIRE(spool.flush());
}

file_builder small_trace(std::uint64_t id, std::uint64_t records = 3) {
    file_builder b;
    b.put(offsetof(trace_ring::layout::file_header, id), id, 8);
    b.clock_reading(0, 0, 1'700'000'000'000'000'000);
    const auto& event = b.event({1, "tick", {{"n"}}});
    const auto lane = b.lane(b.process(1200), 11, "first");
    b.open(lane, 100);
    for (std::uint64_t n = 0; n < records; ++n) b.record(lane, 100 + n, event, {n});
    return b;
}

/// How the child of `start` exits if the kernel does not run such programs.
constexpr int not_executable = 126;

/// Starts the program that crashes, in a folder; its core may be of any size.
pid_t start(const char* program, const std::string& folder, const std::string& mode,
            const std::string& file) {
    const pid_t child = ::fork();
    BOOST_REQUIRE(child >= 0);
    if (child == 0) {
        rlimit most{};
        ::getrlimit(RLIMIT_CORE, &most);
        most.rlim_cur = most.rlim_max;
        ::setrlimit(RLIMIT_CORE, &most);
        const int said = ::open((folder + "/said").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        ::dup2(said, 1);
        if (::chdir(folder.c_str()) != 0) ::_exit(127);
        if (file.empty()) {
            ::execl(program, program, mode.c_str(), static_cast<char*>(nullptr));
        } else {
            ::execl(program, program, mode.c_str(), file.c_str(), static_cast<char*>(nullptr));
        }
        ::_exit(errno == ENOEXEC ? not_executable : 127);
    }
    return child;
}
/// Until it has recorded.
bool wait_until_ready(const std::string& folder) {
    for (int i = 0; i < 2000; ++i) {
        if (text_of(folder + "/said") == "ready\n") return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
}
void end(pid_t child) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
}

/// A core as the kernel would write it, for a stopped process, from /proc: without the shared
/// mappings of files that have a name. False if it may not be read.
bool write_core(pid_t of, const std::string& path) {
    const std::string proc = "/proc/" + std::to_string(of);
    std::ifstream maps(proc + "/maps"), memory(proc + "/mem", std::ios::binary);
    core_builder core(sizeof(void*) == 8);
    std::size_t found = 0;
    for (std::string line; std::getline(maps, line);) {
        std::istringstream words(line);
        std::uint64_t begin = 0, last = 0, offset = 0, inode = 0;
        char dash = 0;
        std::string how, device, name;
        words >> std::hex >> begin >> dash >> last >> how >> offset >> device >> std::dec >> inode;
        std::getline(words >> std::ws, name);
        const bool named = inode != 0;
        const bool writable = how.size() > 1 && how[1] == 'w';
        if (named) core.file(begin, last, offset / 4096, name);
        if (how[0] != 'r' || name == "[vvar]" || name == "[vvar_vclock]" || name == "[vsyscall]" ||
            last - begin > (64U << 20U)) {
            continue;
        }
        const bool left_out = named && how[3] == 's' && !name.ends_with(" (deleted)");
        std::vector<char> bytes;
        if (!left_out && (writable || !named)) {
            bytes.resize(static_cast<std::size_t>(last - begin));
            memory.clear();
            memory.seekg(static_cast<std::streamoff>(begin));
            if (!memory.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) {
                bytes.clear();
            }
            found += bytes.size();
        }
        core.memory(begin, std::as_bytes(std::span(bytes)), last - begin, writable ? 6 : 4);
    }
    if (found == 0) return false;
    core.save(path);
    return true;
}

/// All records of `crashing` that are in a core; for the file, a word that says where it is.
void check_core(const fixture& in, const std::string& core, const std::string& file) {
    const auto all = in.reduce(core + " --time raw");
    BOOST_TEST(count(all.output, "first.tick n=") == 1000U);
    BOOST_TEST(count(all.output, "second.tick n=") == 200U);
    BOOST_TEST(count(all.output, "file.tick") == 0U);
    for (const char* n : {"0", "999"}) {
        BOOST_TEST(count(all.output, std::string("first.tick n=") + n + "\n") == 1U);
    }
    BOOST_TEST(count(all.output, "second.tick n=199\n") == 1U);
    BOOST_TEST(count(all.output, "lost") == 0U);
    if (file.empty()) {
        BOOST_TEST(all.status == 0);
        BOOST_TEST(all.errors == "");
    } else {
        BOOST_TEST(all.status == 2);
        BOOST_TEST(all.errors.find("the memory of " + file + " is not in the core") !=
                   std::string::npos);
        BOOST_TEST(all.errors.ends_with("run trace-reduce " + file + "\n"));
        BOOST_TEST(lines(all.errors) == 1U);
    }
    const auto backward = in.reduce(core + " --time raw --backward --event 'first.*'");
    BOOST_TEST(lines(backward.output) == 1000U);
    BOOST_TEST(backward.output.find("first.tick n=999\n") <
               backward.output.find("first.tick n=0\n"));
}

}  // namespace

}  // namespace kinds_of_files

BOOST_FIXTURE_TEST_SUITE(kinds_of_files, fixture)

BOOST_AUTO_TEST_CASE(a_file_is_what_its_content_says_whatever_its_name) {
    const std::string spool = folder / "orders.trace", trace = folder / "core", core = folder / "x";
    write_spool(spool);
    small_trace(1).save(trace);
    core_builder builder;
    builder.memory(0x10000, small_trace(2).bytes()).save(core);
    BOOST_TEST(lines(printed(trace)) == 3U);
    BOOST_TEST(lines(printed(core)) == 3U);
    BOOST_TEST(printed(spool).starts_with("0x00000000  3F interface    code 0001    10 bytes\n"));
}

BOOST_AUTO_TEST_CASE(what_is_of_no_kind_is_named_and_the_others_are_read) {
    const std::string text = folder / "text", empty = folder / "empty", trace = folder / "trace";
    std::ofstream(text) << "hello, world";
    std::ofstream(empty).flush();
    small_trace(1).save(trace);
    const auto mixed = reduce(text + " " + trace + " " + empty + " " + folder.path());
    BOOST_TEST(mixed.status == 2);
    BOOST_TEST(lines(mixed.output) == 3U);
    BOOST_TEST(mixed.errors ==
               "trace-reduce: " + text +
                   ": offset 0: neither a trace file (begins with \"traceRNG\"), nor a CPTRAP file "
                   "(with a record, type X'3F'; --length gives the lengths of other types), nor an "
                   "ELF core dump; it begins with 68 65 6c 6c 6f 2c 20 77 (--das reads the trace "
                   "table in a guest's storage)\ntrace-reduce: " +
                   empty + ": offset 0: the file is empty\ntrace-reduce: " + folder.path() +
                   ": offset 0: a directory\n");
    const auto program = reduce(TRACE_REDUCE);
    BOOST_TEST(program.status == 2);
    BOOST_TEST(program.errors.ends_with(
        ": offset 16: an ELF file, but no core dump: a program, a library or an object\n"));
    const auto input = reduce("-");
    BOOST_TEST(input.status == 1);
    BOOST_TEST(input.errors.starts_with("trace-reduce: -: standard input is not read"));
    const std::string pipe = folder / "pipe";
    BOOST_REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    const auto piped = reduce(pipe);
    BOOST_TEST(piped.status == 2);
    BOOST_TEST(piped.errors.ends_with(": offset 0: a pipe, and not a regular file\n"));
}

BOOST_AUTO_TEST_CASE(questions_about_branches_need_a_trace_of_branches) {
    const std::string spool = folder / "spool", core = folder / "core", trace = folder / "trace";
    write_spool(spool);
    small_trace(1).save(trace);
    core_builder builder;
    builder.memory(0x10000, small_trace(2).bytes()).save(core);
    const auto all = reduce("--branches edges " + spool + " " + core);
    BOOST_TEST(all.output == "");
    if (all.errors.find("built without") != std::string::npos) return;
    BOOST_TEST(all.status == 1);
    BOOST_TEST(all.errors.find(spool + ": a CPTRAP file, which holds no branches\n") !=
               std::string::npos);
    BOOST_TEST(all.errors.find(core + ": a core dump: --branches reads trace files\n") !=
               std::string::npos);
    const auto none = reduce("--branches edges " + trace);
    BOOST_TEST(none.status != 0);
    BOOST_TEST(none.errors.find(trace) != std::string::npos);
}

BOOST_AUTO_TEST_CASE(cptrap_records_are_chosen_by_type_code_and_page_both_ways) {
    const std::string file = folder / "spool";
    write_spool(file);
    const auto codes = [&](const std::string& arguments) {
        std::string found;
        for (std::istringstream in(printed(file + " " + arguments)); in;) {
            std::string line;
            std::getline(in, line);
            if (const auto at = line.find("code "); at != std::string::npos) {
                found += line.substr(at + 5, line.find(' ', at + 5) - at - 5) + " ";
            }
        }
        return found;
    };
    BOOST_TEST(codes("") == "0001 0002 0B 4B 012C 0004 ");
    BOOST_TEST(codes("--backward") == "0004 012C 4B 0B 0002 0001 ");
    BOOST_TEST(codes("--code 2,0x100-0x1FF") == "0002 012C ");
    // As it is printed, in each notation: hexadecimal.
    BOOST_TEST(codes("--code 2,100-1ff") == "0002 012C ");
    BOOST_TEST(codes("--code 012C") == "012C ");
    BOOST_TEST(codes("--code X\\'012C\\'") == "012C ");
    BOOST_TEST(codes("--code 0B") == "0B ");
    BOOST_TEST(codes("--code 000B,4B") == "0B 4B ");
    BOOST_TEST(codes("--type 3F --code 012C") == "012C ");
    BOOST_TEST(codes("--type C5") == "0B 4B ");
    BOOST_TEST(codes("--type 0B") == "0B 4B ");
    BOOST_TEST(codes("--type 1-18 --code 4") == "0B 4B 0004 ");
    BOOST_TEST(codes("--code \"X'1'-X'4'\" --backward") == "0004 0002 0001 ");
    BOOST_TEST(codes("--code 2 --code 4") == "0002 0004 ");
    BOOST_TEST(codes("--type start_io") == "0B 4B ");
    BOOST_TEST(codes("--type table_entry") == "0B 4B ");
    BOOST_TEST(codes("--type 0x1-0x18 --code 4") == "0B 4B 0004 ");
    BOOST_TEST(codes("--type interface") == "0001 0002 012C 0004 ");
    BOOST_TEST(codes("--type interface --code 1") == "0001 ");
    BOOST_TEST(codes("--type run_user") == "");
    BOOST_TEST(codes("--page 1") == "0002 0B 4B 012C ");
    BOOST_TEST(codes("--page 1- --code 1-4") == "0002 0004 ");
    BOOST_TEST(codes("--page 0-1 --backward") == "012C 4B 0B 0002 0001 ");
    BOOST_TEST(codes("--page 7-") == "");
    BOOST_TEST(codes("--page 7- --backward") == "");
    BOOST_TEST(codes("--limit 2") == "0001 0002 ");
    BOOST_TEST(codes("--limit 2 --backward") == "0004 012C ");
    BOOST_TEST(codes(file) == "0001 0002 0B 4B 012C 0004 0001 0002 0B 4B 012C 0004 ");
    const std::string other = folder / "other";
    fs::copy_file(file, other);
    const auto two = printed(other + " " + file + " --code 1,4 --limit 3");
    BOOST_TEST(count(two, other + ": 0x0000") == 2U);
    BOOST_TEST(count(two, file + ": 0x00000000  3F interface    code 0001    10 bytes\n") == 1U);
    BOOST_TEST(two.find(other + ": 0x00002000") < two.find(file + ": 0x00000000"));
    for (const char* wrong :
         {"--code 3-1", "--code 10000", "--code 8G", "--type 100", "--code ''", "--type 256",
          "--type nobody", "--page x", "--page 3-1", "--code 1,,2", "--code \"X'\""}) {
        const auto refused = reduce(file + " " + wrong);
        BOOST_TEST(refused.status == 1);
        BOOST_TEST(refused.output == "");
        BOOST_TEST(refused.errors.starts_with("trace-reduce: --"), refused.errors);
    }
}

BOOST_AUTO_TEST_CASE(ranges_of_cptrap_files_are_told_by_record_offset_and_share) {
    const std::string file = folder / "spool";
    write_spool(file);
    const auto codes = [&](const std::string& arguments) {
        std::string found;
        for (std::istringstream in(printed(file + " " + arguments)); in;) {
            std::string line;
            std::getline(in, line);
            if (const auto at = line.find("code "); at != std::string::npos) {
                found += line.substr(at + 5, line.find(' ', at + 5) - at - 5) + " ";
            }
        }
        return found;
    };
    // Spool record 1 has 0002 at 4096, 0B at 4114, 4B at 4138 and 012C at 4162.
    BOOST_TEST(codes("--from '#1'") == "0002 0B 4B 012C 0004 ");
    BOOST_TEST(codes("--from '#1' --backward") == "0004 012C 4B 0B 0002 ");
    BOOST_TEST(codes("--to '#1'") == "0001 ");
    BOOST_TEST(codes("--to '#1' --backward") == "0001 ");
    BOOST_TEST(codes("--from 1:2") == "4B 012C 0004 ");
    BOOST_TEST(codes("--from '#1:2' --to 2:0") == "4B 012C ");
    BOOST_TEST(codes("--from 1:1 --to 1:3") == "0B 4B ");
    BOOST_TEST(codes("--from 1:1 --to 1:3 --backward") == "4B 0B ");
    BOOST_TEST(codes("--from 1:9") == "0004 ");
    BOOST_TEST(codes("--from 0:0 --to 0:1") == "0001 ");
    BOOST_TEST(codes("--from 0:1 --to '#0:7'") == "");
    BOOST_TEST(codes("--from @4096") == "0002 0B 4B 012C 0004 ");
    BOOST_TEST(codes("--from @4097") == "0B 4B 012C 0004 ");
    BOOST_TEST(codes("--from @0x1012 --to @4162") == "0B 4B ");
    BOOST_TEST(codes("--from @4114 --to @4163 --backward") == "012C 4B 0B ");
    BOOST_TEST(codes("--from 0x00001012 --to 0x1042") == "0B 4B ");
    BOOST_TEST(codes("--to @1") == "0001 ");
    BOOST_TEST(codes("--to @0") == "");
    BOOST_TEST(codes("--to @0 --backward") == "");
    BOOST_TEST(codes("--from @99999999") == "");
    BOOST_TEST(codes("--from @99999999 --backward") == "");
    BOOST_TEST(codes("--from @18446744073709551615 --to @18446744073709551615") == "");
    BOOST_TEST(codes("--from '#18446744073709551615' --backward") == "");
    BOOST_TEST(codes("--from 25%") == "0002 0B 4B 012C 0004 ");  // of 12288 bytes: 3072
    BOOST_TEST(codes("--from 50%") == "0004 ");
    BOOST_TEST(codes("--to 33.4% --backward") == "0002 0001 ");  // 4104
    BOOST_TEST(codes("--from 0% --to 100%") == "0001 0002 0B 4B 012C 0004 ");
    BOOST_TEST(codes("--from 100%") == "");
    BOOST_TEST(codes("--from '#2' --to '#1'") == "");
    BOOST_TEST(codes("--from '#2' --to '#1' --backward") == "");
    // With each other choice.
    BOOST_TEST(codes("--from 1:1 --type interface") == "012C 0004 ");
    BOOST_TEST(codes("--from 1:3 --page 1") == "012C ");
    BOOST_TEST(codes("--from 1:1 --to '#2' --page 1- --limit 2 --backward") == "012C 4B ");
    BOOST_TEST(codes("--from 50% " + file) == "0004 0004 ");
    BOOST_TEST(codes("--from 1:3 --follow --until-closed") == "012C 0004 ");
    BOOST_TEST(printed(file + " --from 1:1 --to 1:3 --stats").find("records   2, 48 bytes\n") !=
               std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_time_in_a_cptrap_file_is_refused_and_its_places_in_a_trace) {
    const std::string spool = folder / "spool", trace = folder / "trace";
    write_spool(spool);
    small_trace(1).save(trace);
    for (const std::string option : {"--from", "--to"}) {
        for (const std::string when : {"2026-11-22", "13:00:03.25", "+1.5s", "-2s", "12:34"}) {
            const auto all = reduce(spool + " " + option + "=" + when);
            BOOST_TEST(all.status == 1);
            BOOST_TEST(all.output == "");
            BOOST_TEST(
                all.errors.starts_with("trace-reduce: " + spool + ": " + option + ": \"" + when +
                                       "\" is a time, which the records of a CPTRAP "
                                       "file do not have: "),
                all.errors);
        }
        for (const std::string place : {"@4096", "0:3", "\"#0:3\""}) {
            const auto all = reduce(trace + " " + option + " " + place);
            BOOST_TEST(all.status == 1);
            BOOST_TEST(all.output == "");
            BOOST_TEST(all.errors.find(": of a trace a place is ") != std::string::npos);
        }
        for (const std::string nothing : {"@", "@x", "@-1", "@4096x", "1:x", "5", "0:", "101%",
                                          "@18446744073709551616", "\"#\"", "''"}) {
            const auto all = reduce(spool + " " + option + " " + nothing);
            BOOST_TEST(all.status == 1);
            BOOST_TEST(all.output == "");
            BOOST_TEST(all.errors.find("of a CPTRAP file: a spool record") != std::string::npos,
                       all.errors);
        }
    }
}

BOOST_AUTO_TEST_CASE(what_is_before_a_place_in_a_cptrap_file_is_not_read) {
    // Its first pages, 512 GiB that are not there, and again its pages: who reads it all takes
    // minutes.
    const std::string file = folder / "spool";
    write_spool(file);
    const std::string pages = text_of(file);
    constexpr std::uint64_t far = std::uint64_t{512} << 30U;
    constexpr std::uint64_t page = far / 4096;
    {
        std::fstream grown(file, std::ios::in | std::ios::out | std::ios::binary);
        grown.seekp(static_cast<std::streamoff>(far));
        grown.write(pages.data(), static_cast<std::streamsize>(pages.size()));
        BOOST_TEST_REQUIRE(grown.flush().good());
    }
    const std::string one = std::to_string(page + 1);
    const auto limited = [&](const std::string& arguments, int expected = 0) {
        const std::string line = "timeout 30 " + std::string(TRACE_REDUCE) + " " + file + " " +
                                 arguments + " > " + out + " 2> " + err;
        const int status = std::system(line.c_str());
        BOOST_TEST(WEXITSTATUS(status) == expected, arguments);
        if (expected == 0) BOOST_TEST(text_of(err) == "");
        return count(text_of(out), "code ");
    };
    BOOST_TEST(limited("--from '#" + one + "'") == 5U);
    BOOST_TEST(limited("--from " + one + ":2") == 3U);
    BOOST_TEST(limited("--from " + one + ":2 --backward") == 3U);
    BOOST_TEST(limited("--from @" + std::to_string(far + 4114)) == 4U);
    // Some 16 KiB before the end, so that two spool records of the hole are read.
    BOOST_TEST(limited("--from 99.999997%", 2) == 6U);
    BOOST_TEST(text_of(err).find("2 spool records of zeros") != std::string::npos);
    BOOST_TEST(limited("--from '#" + one + "' --follow --until-closed") == 5U);
    BOOST_TEST(limited("--from 1:1 --to 1:3 --backward") == 2U);
    BOOST_TEST(limited("--to @4162 --backward") == 4U);
    BOOST_TEST(limited("--from 1:1 --to 1:3") == 2U);
}

BOOST_AUTO_TEST_CASE(cptrap_files_in_numbers_and_as_json) {
    const std::string file = folder / "spool";
    write_spool(file);
    const auto json = printed(file + " --format json");
    BOOST_TEST(lines(json) == 6U);
    for (std::istringstream in(json + printed(file + " --stats --format json")); in;) {
        std::string line;
        std::getline(in, line);
        if (!line.empty()) BOOST_TEST(json_check::valid(line));
    }
    BOOST_TEST(printed(file + " --stats") ==
               file +
                   "\n  pages     3\n  records   6, 110 bytes\n  lost      0\n\n"
                   "       records           bytes  share  type            code\n"
                   "             1              18  16.7%  3F interface    0001\n"
                   "             1              18  16.7%  3F interface    0002\n"
                   "             1               8  16.7%  3F interface    0004\n"
                   "             1              18  16.7%  3F interface    012C\n"
                   "             1              24  16.7%  C5 table_entry  0B start_io\n"
                   "             1              24  16.7%  C5 table_entry  4B start_io\n");
    BOOST_TEST(printed(file + " --stats --code 4").find("records   1, 8 bytes\n") !=
               std::string::npos);
}

BOOST_AUTO_TEST_CASE(damage_in_a_cptrap_file_is_shown_in_its_place_and_the_rest_is_read) {
    const std::string file = folder / "spool";
    write_spool(file);
    {
        std::fstream change(file, std::ios::in | std::ios::out | std::ios::binary);
        change.seekp(4096 + 18);
        change.put('\x3D');
    }
    fs::resize_file(file, 2 * 4096 + 100);
    const auto all = reduce(file);
    BOOST_TEST(all.status == 2);
    BOOST_TEST(all.errors ==
               "trace-reduce: " + file +
                   ": offset 4114: a record of a type whose length is not known (3D): --length "
                   "3D=BYTES reads on\ntrace-reduce: " +
                   file + ": offset 8200: torn: the file ends within the spool record\n");
    BOOST_TEST(
        all.output.find("0x00001012  -- 4078 bytes unreadable: a record of a type whose length "
                        "is not known (3D)\n    0000  3D") != std::string::npos);
    BOOST_TEST(all.output.find("    ...\n0x00002000  3F interface    code 0004") !=
               std::string::npos);
    const auto sum = reduce(file + " --stats");
    BOOST_TEST(sum.status == 2);
    BOOST_TEST(sum.output.find("damaged   in 2 places") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_makes_no_sense_of_a_cptrap_file_is_said) {
    const std::string spool = folder / "spool", trace = folder / "trace", core = folder / "core";
    write_spool(spool);
    small_trace(1).save(trace);
    core_builder builder;
    builder.memory(0x10000, small_trace(2).bytes()).save(core);
    const auto refused = [&](const std::string& arguments, const std::string& why) {
        const auto all = reduce(arguments);
        BOOST_TEST(all.status == 1);
        BOOST_TEST(all.output == "");
        BOOST_TEST(all.errors.find(why) != std::string::npos, all.errors);
    };
    refused(spool + " " + trace, "no time to merge them by");
    refused(spool + " --event x", "neither events nor threads");
    refused(spool + " --where n==1", "a record of a CPTRAP file has no 'n'");
    refused(spool + " --where 'time > 1ms'", "a record of a CPTRAP file has no time");
    refused(spool + " --format chrome", "--format chrome is not for CPTRAP files");
    refused(spool + " --stats --by code", "need fields");
    refused(trace + " --format print", "--format print is for CPTRAP files");
    refused(spool + " --browse", "--browse");  // without a terminal, or without ncurses
    refused(trace + " --code 1", "are for CPTRAP files, and there is none");
    refused(core + " --page 1", "are for CPTRAP files, and there is none");
    refused(core + " --follow", "a core dump, which does not grow");
    refused(spool + " --output " + spool, "is an input");
}

BOOST_AUTO_TEST_CASE(a_cptrap_file_is_followed_page_by_page_until_its_writer_is_gone) {
    const std::string file = folder / "spool";
    auto spool = std::make_unique<trace_ring::cptrap::spool>(file);
    BOOST_REQUIRE(spool->append(0, {}));
    BOOST_REQUIRE(spool->flush());
    std::thread reader([&] {
        const auto all = reduce(file + " --follow --until-closed");
        BOOST_TEST(all.status == 0);
        BOOST_TEST(all.errors == "");
        BOOST_TEST(lines(all.output) == 50U);
        for (unsigned code = 0; code < 50; ++code) {
            char text[16];
            std::snprintf(text, sizeof text, "code %04X", code);
            BOOST_TEST(count(all.output, text) == 1U);
        }
    });
    // The first is shown before the others are there.
    for (int i = 0; i < 2000 && text_of(out).empty(); ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    BOOST_TEST(lines(text_of(out)) == 1U);
    for (std::uint16_t code = 1; code < 50; ++code) {
        BOOST_TEST(spool->append(code, {}));
        if (code % 7 == 0) BOOST_TEST(spool->flush());
    }
    BOOST_TEST(spool->flush());
    spool.reset();
    reader.join();
}

BOOST_AUTO_TEST_CASE(several_recorders_in_one_core_are_merged_with_other_files) {
    const std::string core = folder / "core", trace = folder / "trace";
    std::vector<std::byte> joined(4096);
    for (const std::uint64_t id : {1U, 2U}) {
        const auto one = small_trace(id);
        joined.insert(joined.end(), one.bytes().begin(), one.bytes().end());
    }
    core_builder builder;
    builder.memory(0x10000, joined).save(core);
    small_trace(3).save(trace);
    const auto all = printed(core + " " + trace + " --time raw");
    BOOST_TEST(all.starts_with(core + "@11000: 100 [11 first] tick n=0\n" + core));
    BOOST_TEST(lines(all) == 9U);
    BOOST_TEST(count(all, trace + ": ") == 3U);
    // One after the other in time, whichever trace they are of.
    BOOST_TEST(all.rfind("tick n=0") < all.find("tick n=1"));
    BOOST_TEST(all.rfind("tick n=1") < all.find("tick n=2"));
}

BOOST_AUTO_TEST_CASE(a_core_without_a_trace_says_what_it_lacks) {
    const std::string core = folder / "core", trace = folder / "orders.trace";
    small_trace(1).save(trace);
    core_builder builder;
    builder.memory(0x10000, std::vector<std::byte>(8192)).memory(0x40000, {}, 64 * 4096);
    builder.file(0x40000, 0x80000, 0, trace).save(core);
    const auto named = reduce(core);
    BOOST_TEST(named.status == 2);
    BOOST_TEST(named.output == "");
    BOOST_TEST(named.errors == "trace-reduce: " + core + ": offset " +
                                   std::to_string(builder.files_at() + 16) + ": the memory of " +
                                   trace +
                                   " is not in the core (bit 3 of coredump_filter leaves shared "
                                   "files out): its trace is in that file: run trace-reduce " +
                                   trace + "\n");
    fs::remove(trace);
    const auto gone = reduce(core);
    BOOST_TEST(gone.status == 2);
    BOOST_TEST(gone.errors ==
               "trace-reduce: " + core +
                   ": offset 0: no recorder's trace in 2 segments of memory, 8192 bytes of which "
                   "are in the core; not in the core, and perhaps with a trace: " +
                   trace + "\n");
}

BOOST_AUTO_TEST_CASE(a_program_that_crashes_leaves_its_traces_in_the_kernels_core) {
    const auto pattern = text_of("/proc/sys/kernel/core_pattern");
    if (pattern.starts_with('|') || pattern.find('/') != std::string::npos) {
        BOOST_TEST_MESSAGE("cores go elsewhere on this machine: " << pattern);
        return;
    }
    for (const int bits : {64, 32}) {
        const char* const program = bits == 64 ? CRASHING : CRASHING_32;
        if (program[0] == 0) {
            BOOST_TEST_MESSAGE("a program of one word size cannot be built here");
            continue;
        }
        for (const bool with_file : {false, true}) {
            const std::string in =
                folder / ("kernel" + std::to_string(bits) + (with_file ? "file" : ""));
            fs::create_directory(in);
            const std::string file = with_file ? in + "/orders.trace" : "";
            int status = 0;
            const pid_t child = start(program, in, "abort", file);
            BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
            if (bits == 32 && WIFEXITED(status) && WEXITSTATUS(status) == not_executable) {
                trace_ring_test::cannot_run("this kernel runs no programs of 32 bits");
                continue;
            }
            BOOST_REQUIRE(WIFSIGNALED(status));
            if (!WCOREDUMP(status)) {
                BOOST_TEST_MESSAGE("this process may not leave cores");
                return;
            }
            std::string core;
            for (const auto& each : fs::directory_iterator(in)) {
                if (each.path().filename().string().starts_with("core")) core = each.path();
            }
            if (core.empty()) return;  // named otherwise
            check_core(*this, core, file);
        }
    }
}

BOOST_AUTO_TEST_CASE(so_do_cores_by_gdb_and_by_proc_of_a_program_that_waits) {
    const std::string in = folder / "waits", file = in + "/orders.trace";
    fs::create_directory(in);
    const char* const program = CRASHING[0] != 0 ? CRASHING : CRASHING_32;
    const pid_t child = start(program, in, "wait", file);
    const bool ready = wait_until_ready(in);
    BOOST_TEST(ready);
    if (ready) {
        const std::string own = in + "/own";
        if (write_core(child, own)) {
            check_core(*this, own, file);
        } else {
            BOOST_TEST_MESSAGE("another's memory may not be read here");
        }
        const std::string number = std::to_string(child);
        const int status = std::system(("command -v gcore > /dev/null && gcore -o " + in + "/gdb " +
                                        number + " > /dev/null 2>&1")
                                           .c_str());
        if (status == 0) {
            check_core(*this, in + "/gdb." + number, file);
        } else {
            BOOST_TEST_MESSAGE("no gcore, or it cannot");
        }
    }
    end(child);
}

BOOST_AUTO_TEST_SUITE_END()
