// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Which trace points a specification means: in which files, and the messages if it means none.

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <examples/trace_clauses/clause_programs.hpp>
#include <launching/find_program.hpp>
#include <recorder/scratch.hpp>
#include <trace_clauses/points/candidates.hpp>
#include <trace_clauses/points/find_points.hpp>
#include <trace_clauses/points/system_calls.hpp>

namespace clause_search {

using namespace clause_programs;
using namespace trace_clauses;
using trace_ring::point::specification;
namespace fs = std::filesystem;

namespace {

point_finder::result found(point_finder& in, std::string_view text) {
    specification::mistake why;
    const auto what = specification::parse(text, why);
    BOOST_REQUIRE(why.what == nullptr);
    return in.find(what);
}
std::string complaint(point_finder& in, std::string_view text) {
    try {
        return "found " + found(in, text).points.at(0).text();
    } catch (const std::runtime_error& error) {
        return error.what();
    }
}
bool starts(const std::string& text, std::string_view with) {
    if (text.starts_with(with)) return true;
    BOOST_TEST_MESSAGE(text);
    return false;
}
std::set<std::string> real_paths(const candidates& all) {
    std::set<std::string> paths;
    for (const auto& each : all.files) paths.insert(fs::canonical(each.opened).string());
    return paths;
}

/// Sets a variable of the environment for a while.
struct variable {
    const char* name;
    variable(const char* of, const std::string& value) : name(of) {
        ::setenv(name, value.c_str(), 1);
    }
    variable(const variable&) = delete;
    variable& operator=(const variable&) = delete;
    ~variable() { ::unsetenv(name); }
};

constexpr const char* library_text = R"(
extern "C" int first_in_library(int x) { return x + 1; }
extern "C" int second_in_library(int x) { return x + 2; }
namespace shop { int sum(int x) { return x; } }
)";
constexpr const char* program_text = R"(
extern "C" int first_in_library(int);
extern "C" int pause(void);
int main(int argc, char **) { return argc > 1 ? pause() : first_in_library(-1); }
)";

}  // namespace

BOOST_AUTO_TEST_SUITE(clause_search_test)

BOOST_AUTO_TEST_CASE(a_text_is_executed_by_sh_and_a_program_for_another_machine_is_not) {
    const test::folder folder;
    const auto executed = [&](const std::string& text) {
        std::string file = folder / "file";
        write(file, text);
        fs::permissions(file, fs::perms::owner_all);
        const pid_t child = test::start_child([&] {
            char* words[] = {file.data(), nullptr};
            launching::execute(launching::path_of_program(file).c_str(), words);
            return errno;
        });
        return test::wait_for(child);
    };
    BOOST_TEST(executed("exit 55\n") == 55);
    BOOST_TEST(executed("#!/bin/sh\nexit 56\n") == 56);
    BOOST_TEST(executed("\177ELF\nexit 57\n") == ENOEXEC);
    BOOST_TEST(executed("#!/no/such/program\nexit 58\n") == ENOENT);
}

BOOST_AUTO_TEST_CASE(the_files_of_a_program_are_what_the_loader_says) {
    std::size_t compared = 0;
    for (const std::string name : {"/usr/bin/python3", "gdb", "cmake", "ls", "/proc/self/exe"}) {
        const std::string path = launching::path_of_program(name);
        if (path.empty()) continue;
        std::set<std::string> said = {fs::canonical(path).string()};
        for (const auto& line : words_of("ldd " + fs::canonical(path).string() + " 2> /dev/null")) {
            const auto file = std::find_if(line.begin(), line.end(),
                                           [](const auto& word) { return word[0] == '/'; });
            if (file != line.end()) said.insert(fs::canonical(*file).string());
        }
        if (said.size() == 1) continue;  // a script
        const auto all = files_of_program(path);
        BOOST_TEST(all.notes.empty(), name);
        BOOST_TEST((real_paths(all) == said), name);
        compared += said.size();
    }
    BOOST_TEST_MESSAGE(compared << " files compared");
    BOOST_CHECK_THROW(static_cast<void>(files_of_program("no such program")), std::runtime_error);
    BOOST_CHECK_THROW(static_cast<void>(files_of_program("/etc/passwd")), std::runtime_error);
}

BOOST_AUTO_TEST_CASE(libraries_are_where_the_file_says) {
    const test::folder folder;
    const std::string program = folder / "program", library = folder / "deep/libown.so";
    fs::create_directories(folder / "deep");
    write(folder / "program.cpp", program_text);
    for (const int bits : {64, 32}) {
        if (!build(library, library_text, "c++", bits, "-shared -fPIC -Wl,-soname,libown.so"))
            continue;
        for (const std::string where : {"-Wl,--enable-new-dtags,-rpath,'$ORIGIN/deep'",
                                        "-Wl,--disable-new-dtags,-rpath,'${ORIGIN}/deep'", ""}) {
            const std::string command = CXX_COMPILER " -m" + std::to_string(bits) + " " +
                                        (folder / "program.cpp") + " " + library + " " + where +
                                        " -o " + program;
            BOOST_REQUIRE(std::system(command.c_str()) == 0);
            const auto has_library = [&](const candidates& files) {
                return real_paths(files).count(fs::canonical(library).string()) == 1U;
            };
            BOOST_TEST_CONTEXT(bits << " bits, " << where) {
                const auto files = files_of_program(program);
                BOOST_TEST(has_library(files) == !where.empty());
                BOOST_TEST(files.notes.size() == (where.empty() ? 1U : 0U));
                const variable list("LD_LIBRARY_PATH", "/nowhere:" + (folder / "deep"));
                BOOST_TEST(has_library(files_of_program(program)));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_script_is_its_interpreters) {
    const test::folder folder;
    write(folder / "direct", "#!/bin/sh -e\n");
    write(folder / "asked", "#! /usr/bin/env -S sh\n");
    const auto shell = real_paths(files_of_program("/bin/sh"));
    for (const char* name : {"direct", "asked"}) {
        const auto all = real_paths(files_of_program(folder / name));
        BOOST_TEST(std::includes(all.begin(), all.end(), shell.begin(), shell.end()), name);
    }
}

BOOST_AUTO_TEST_CASE(functions_of_a_running_process) {
    const pid_t own = ::getpid();
    const auto files = files_of_process(own);
    BOOST_TEST(real_paths(files).count(fs::canonical("/proc/self/exe").string()) == 1U);
    point_finder finder(files);
    const auto entry = found(finder, "@@uft:" + std::to_string(own) + ":libc.so.6:malloc:entry");
    BOOST_REQUIRE(entry.points.size() == 1U);
    const trace_point& malloc_entry = entry.points[0];
    BOOST_TEST(malloc_entry.text() == "@@uft:" + std::to_string(own) + ":libc.so.6:malloc:entry");
    BOOST_TEST(*malloc_entry.process == own);
    BOOST_TEST(!malloc_entry.at_return);
    BOOST_TEST(malloc_entry.program->at(malloc_entry.address)->offset == malloc_entry.offset);
    const auto both = found(finder, "@@uft:*:libc.so.6:[m]alloc:*");
    BOOST_REQUIRE(both.points.size() == 2U);
    BOOST_TEST((both.points[0].at_return != both.points[1].at_return));
    BOOST_TEST(!both.points[0].process.has_value());
    BOOST_CHECK_THROW(static_cast<void>(files_of_process(0x3FFFFFFF)), std::runtime_error);
    // A process that was not given is looked at.
    point_finder others{candidates{}};
    BOOST_TEST(starts(complaint(others, "@@uft:" + std::to_string(own) + ":libc.so.6:free:entry"),
                      "found @@uft:" + std::to_string(own) + ":libc.so.6:free:entry"));
}

BOOST_AUTO_TEST_CASE(a_file_that_was_replaced_is_said_to_be) {
    const test::folder folder;
    fs::copy_file("/bin/sleep", folder / "sleeper");
    const pid_t child = test::start_child([&] {
        ::execl((folder / "sleeper").c_str(), "sleeper", "60", nullptr);
        return 1;
    });
    const std::string exe = "/proc/" + std::to_string(child) + "/exe";
    std::error_code error;
    while (fs::read_symlink(exe, error).filename() != "sleeper") ::usleep(1000);
    ::usleep(50'000);
    BOOST_TEST(real_paths(files_of_process(child)).count(fs::canonical(folder / "sleeper")) == 1U);
    point_finder every(files_of_all());
    const auto points = found(every, "@@uft:" + std::to_string(child) + ":libc.so.6:malloc:entry");
    BOOST_TEST(points.points.size() == 1U);
    fs::remove(folder / "sleeper");
    const auto now = files_of_process(child);
    ::kill(child, SIGKILL);
    static_cast<void>(test::wait_for(child));
    BOOST_REQUIRE(now.notes.size() == 1U);
    BOOST_TEST(now.notes[0] == "process " + std::to_string(child) + " runs " +
                                   (folder / "sleeper") + ", which was deleted or replaced since");
}

BOOST_AUTO_TEST_CASE(what_means_nothing_names_what_there_is) {
    const test::folder folder;
    const std::string path = folder / "libown.so";
    if (!build(path, library_text, "c++", 64, "-shared -fPIC")) return;
    point_finder finder(candidates{{{path, path}, {"/bin/ls", "/bin/ls"}}});
    const struct {
        const char* asked;
        std::string said;
    } all[] = {
        {"@@uft:*:libown.so:first_in_libary:entry",
         "there is no function 'first_in_libary' in libown.so; did you mean 'first_in_library'?"},
        {"@@uft:*:libwon.so:f:entry", "no file 'libwon.so' is loaded; did you mean 'libown.so'?"},
        {"@@uft:*:nothing*:f:entry", "no file 'nothing*' is loaded; there is 'libown.so', 'ls'"},
        {"@@uft:*:libown.so:first*:return", "'return' is not a place: use 'entry' or 'exit'"},
        {"@@uft:*:libown.so:first*",
         "'uft' has 5 fields: @@uft:PROCESS:OBJECT:FUNCTION:entry, or exit"},
        {"@@uft:self:libown.so:first*:entry",
         "'self' is not a process: write its number, or * for any"},
        {"@@uft:*:libown.so:f::entry", ""},
        {"@@usdt:*:libown.so:a:b", "there are no probes in libown.so"},
        {"@@utf:*:a:b",
         "there are no trace points of type 'utf': there is 'uft', 'usdt' and "
         "'syscall'"},
        {"@@syscall:*:raed:entry", "there is no system call 'raed'; did you mean 'read'?"},
        {"@@uft:*:/etc/passwd:f:entry", "/etc/passwd: no ELF file"},
        {"@@uft:*:libown.so:shop::sum:entry", ""},
    };
    for (const auto& [asked, said] : all) {
        if (!said.empty()) BOOST_TEST(complaint(finder, asked) == said, asked);
    }
    BOOST_TEST(complaint(finder, "@@uft:*:libown.so:\"shop::sum\":exit") ==
               "found @@uft:*:libown.so:\"shop::sum(int)\":exit");
    BOOST_TEST(found(finder, "@@uft:*:lib*:*_in_library:entry").points.size() == 2U);
    // As it is loaded, and not as its file is called.
    const std::string version = folder / "libown.so.1.2";
    BOOST_REQUIRE(std::system(("strip " + path + " -o " + version).c_str()) == 0);
    point_finder by_version(candidates{{{version, version}}});
    BOOST_TEST(complaint(by_version, "@@uft:*:libown.so.1:first_in_library:entry") ==
               "found @@uft:*:libown.so.1.2:first_in_library:entry");
    BOOST_TEST(complaint(by_version, "@@uft:*:libown.so:first_in_libary:entry") ==
               "there is no function 'first_in_libary' in libown.so.1.2, of which only some have "
               "names, as it is stripped; did you mean 'first_in_library'?");
    // By its path it needs no program.
    BOOST_TEST(
        found(finder, "@@uft:*:/lib/x86_64-linux-gnu/libc.so.6:malloc:entry").points.size() == 1U);
    BOOST_TEST(starts(complaint(finder, "@@uft:*:/lib/x86_64-linux-gnu/libc.so.6:strlen:entry"),
                      "'strlen' of libc.so.6 is chosen when it is loaded (IFUNC)"));
    BOOST_TEST(!found(finder, "@@uft:*:/lib/x86_64-linux-gnu/libc.so.6:str*:entry").notes.empty());
}

BOOST_AUTO_TEST_CASE(probes_by_name) {
    const test::folder folder;
    for (const int bits : {64, 32}) {
        const std::string path = folder / "probes";
        const std::string argument = bits == 64 ? "-4@%edi" : "-4@8(%ebp)";
        if (!build(path, with_probes({{"begun", argument, true}, {"ended", ""}}, bits), "assembler",
                   bits)) {
            continue;
        }
        point_finder finder(candidates{{{path, path}}});
        const auto all = found(finder, "@@usdt:*:probes:ha?d:*");
        BOOST_REQUIRE(all.points.size() == 2U);
        const trace_point& begun = all.points[0];
        BOOST_TEST(begun.text() == "@@usdt:*:probes:hand:begun");
        BOOST_TEST((begun.mode == (bits == 64 ? program_mode::lp64 : program_mode::ilp32)));
        BOOST_TEST(begun.semaphore_offset != 0U);
        BOOST_REQUIRE(begun.arguments.size() == 1U);
        BOOST_TEST(begun.arguments[0].text == argument);
        BOOST_TEST(complaint(finder, "@@usdt:*:probes:hand:begin") ==
                   "there is no probe 'begin' in probes; did you mean 'begun'?");
        BOOST_TEST(complaint(finder, "@@usdt:*:probes:foot:begun") ==
                   "there is no provider 'foot' in probes; there is 'hand'");
    }
}

BOOST_AUTO_TEST_CASE(system_calls_of_both_modes) {
    BOOST_TEST(name_of_system_call(program_mode::lp64, 0) == "read");
    BOOST_TEST(name_of_system_call(program_mode::lp64, 59) == "execve");
    BOOST_TEST(name_of_system_call(program_mode::ilp32, 3) == "read");
    BOOST_TEST(name_of_system_call(program_mode::ilp32, 11) == "execve");
    BOOST_TEST(name_of_system_call(program_mode::ilp32, 403) == "clock_gettime64");
    BOOST_TEST(name_of_system_call(program_mode::lp64, 100'000) == "");
    BOOST_TEST(system_calls(program_mode::lp64).size() > 300U);
    BOOST_TEST(system_calls(program_mode::ilp32).size() > 400U);
    point_finder none{candidates{}};
    const auto opened = found(none, "@@syscall:4711:op*nat:exit");
    BOOST_REQUIRE(opened.points.size() >= 2U);
    for (const trace_point& each : opened.points) {
        BOOST_TEST(each.at_return);
        BOOST_TEST(*each.process == 4711);
        BOOST_TEST(each.offset == (each.mode == program_mode::lp64 ? 257U : 295U));
        BOOST_TEST(each.text() == "@@syscall:4711:openat:exit");
    }
    BOOST_TEST(found(none, "@@syscall:*:socketcall:*").points.size() == 2U);  // 32 bits only
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace clause_search
