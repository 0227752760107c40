// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// heap_recorder.so in real programs. What the trace says is compared, call by call, with two
/// independent witnesses: heap_counter.so, preloaded in the same run, and glibc's mtrace.
///
/// The counter is preloaded behind the recorder: every call of the program passes both, and what
/// the recorder allocates for itself passes neither.

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

#include <trace_ring/reduce/trace_file.hpp>

#include "profile.hpp"
#include "sites.hpp"
#include "symbols.hpp"

namespace heap_recorded {

namespace {

namespace fs = std::filesystem;
namespace reduce = trace_ring::reduce;

const std::string recorder = HEAP_RECORDER;
const std::string counter = HEAP_COUNTER;
const std::string program = HEAP_PROGRAM;
// Behind it: none, so the C library's, and one whose operator new does not call its malloc.
const std::array<std::string, 2> allocators{"", ":" HEAP_TINY};

/// A separate folder for each test, removed afterwards.
class folder {
public:
    folder() {
        std::string name = (fs::temp_directory_path() / "trace-ring-heap-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
        path_ = name;
    }
    ~folder() { fs::remove_all(path_); }
    folder(const folder&) = delete;
    folder& operator=(const folder&) = delete;
    [[nodiscard]] std::string file(const std::string& name) const {
        return (path_ / name).string();
    }
    [[nodiscard]] std::vector<std::string> files(const std::string& part) const {
        std::vector<std::string> found;
        for (const auto& entry : fs::directory_iterator(path_)) {
            if (entry.path().filename().string().find(part) != std::string::npos) {
                found.push_back(entry.path().string());
            }
        }
        std::sort(found.begin(), found.end());
        return found;
    }

private:
    fs::path path_;
};

[[nodiscard]] std::string contents(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

struct outcome {
    int status = -1;  ///< exit status, or 128 + signal
    std::string out, err;
};

using variables = std::map<std::string, std::string>;

/// For a program that is recorded into this file.
[[nodiscard]] variables recording_to(const std::string& trace) {
    return {{"LD_PRELOAD", recorder}, {"TRACE_RING_FILE", trace}};
}

/// Runs a command; `where` is its working directory. With `kill_after` it is killed so many
/// microseconds after it said its first word.
[[nodiscard]] outcome run(const std::vector<std::string>& command, const variables& extra,
                          const folder& scratch, const std::string& where = ".",
                          useconds_t kill_after = 0) {
    variables environment(extra);
    std::vector<std::string> words;
    for (char** each = environ; *each != nullptr; ++each) {
        const std::string word = *each;
        // The settings of the user who runs the tests must have no effect.
        if (word.starts_with("TRACE_RING_") || word.starts_with("LD_PRELOAD=")) continue;
        if (!environment.contains(word.substr(0, word.find('=')))) words.push_back(word);
    }
    for (const auto& [name, value] : environment) words.push_back(name + "=" + value);
    std::vector<char*> arguments, pointers;
    auto plain = command;
    for (auto& word : plain) arguments.push_back(word.data());
    for (auto& word : words) pointers.push_back(word.data());
    arguments.push_back(nullptr);
    pointers.push_back(nullptr);
    const std::string out = scratch.file("stdout"), err = scratch.file("stderr");
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    constexpr int flags = O_WRONLY | O_CREAT | O_TRUNC;
    ::posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), flags, 0600);
    ::posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), flags, 0600);
    ::posix_spawn_file_actions_addchdir_np(&actions, where.c_str());
    pid_t child = 0;
    const int error =
        ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), pointers.data());
    ::posix_spawn_file_actions_destroy(&actions);
    if (error != 0) throw std::runtime_error(command[0] + ": " + std::strerror(error));
    if (kill_after != 0) {
        while (fs::file_size(out) == 0) ::usleep(1000);
        ::usleep(kill_after);
        ::kill(child, SIGKILL);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return {WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), contents(out),
            contents(err)};
}

// Process, thread, function.
using call_key = std::tuple<std::uint64_t, std::uint64_t, std::string>;
using call_table = std::map<call_key, std::uint64_t>;

[[nodiscard]] call_table counted(const folder& in) {
    call_table sums;
    for (const auto& path : in.files("count.")) {
        std::ifstream file(path, std::ios::binary);
        std::uint64_t rows = 0;
        file.read(reinterpret_cast<char*>(&rows), sizeof rows);
        for (std::uint64_t i = 0; i < rows; ++i) {
            std::array<std::uint64_t, 2 + heap::call_kinds> row{};
            file.read(reinterpret_cast<char*>(row.data()), sizeof row);
            for (std::size_t k = 0; k < heap::call_kinds; ++k) {
                if (row[2 + k] == 0) continue;
                sums[{row[0], row[1], std::string(heap::call_names[k])}] += row[2 + k];
            }
        }
    }
    return sums;
}

struct traced {
    call_table calls;
    std::size_t images = 0;     ///< trace files
    std::size_t processes = 0;  ///< in them
    trace_ring::loss_counts lost;
    std::uint64_t damaged = 0;
    std::uint64_t unknown_frees = 0;
    std::uint64_t failed = 0;
    std::uint64_t live_blocks = 0;  ///< in the end
};

[[nodiscard]] traced read_back(const folder& in) {
    traced all;
    heap::stack_table stacks;
    for (const auto& path : in.files(".trace")) {
        auto file = heap::read_profile(path, stacks, 1'000'000);
        ++all.images;
        all.processes += file.processes.size();
        all.lost += file.lost;
        all.damaged += file.damages.size() + file.unreadable;
        for (const auto& p : file.processes) {
            all.unknown_frees += p.heap.sums().unknown_frees;
            all.failed += p.heap.sums().failed;
            all.live_blocks += p.heap.sums().live_blocks;
            BOOST_TEST(p.unrecorded == 0U);
            BOOST_TEST((p.inherited != heap::inheritance::approximate));
            for (const auto& [thread, counts] : p.calls) {
                for (std::size_t k = 0; k < heap::call_kinds; ++k) {
                    if (counts[k] == 0) continue;
                    all.calls[{p.pid, thread, std::string(heap::call_names[k])}] += counts[k];
                }
            }
        }
    }
    return all;
}

/// Runs a command under both preloads and checks that they agree on every number.
traced agree(const std::vector<std::string>& command, const folder& scratch,
             const variables& extra = {}) {
    variables environment(extra);
    environment.insert({{"LD_PRELOAD", recorder + ":" + counter},
                        {"TRACE_RING_FILE", scratch.file("%e.%p.trace")},
                        {"HEAP_COUNTER_FILE", scratch.file("count")}});
    const outcome ran = run(command, environment, scratch);
    BOOST_TEST(ran.status == 0, command[0] << " exits with " << ran.status << ": " << ran.err);
    const call_table expected = counted(scratch);
    traced found = read_back(scratch);
    BOOST_TEST(found.lost.total() == 0U);
    BOOST_TEST(found.damaged == 0U);
    BOOST_TEST(found.images == scratch.files("count.").size());
    BOOST_TEST(!expected.empty());
    BOOST_TEST(found.calls.size() == expected.size());
    for (const auto& [key, count] : expected) {
        const auto at = found.calls.find(key);
        BOOST_TEST((at == found.calls.end() ? 0 : at->second) == count,
                   "process " << std::get<0>(key) << ", thread " << std::get<1>(key) << ", "
                              << std::get<2>(key) << ": "
                              << (at == found.calls.end() ? 0 : at->second) << " recorded, "
                              << count << " counted");
    }
    return found;
}

[[nodiscard]] std::uint64_t calls_of(const traced& found, const std::string& function) {
    std::uint64_t sum = 0;
    for (const auto& [key, count] : found.calls) {
        if (std::get<2>(key) == function) sum += count;
    }
    return sum;
}

[[nodiscard]] std::size_t threads_of(const traced& found) {
    std::vector<std::uint64_t> threads;
    for (const auto& [key, count] : found.calls) threads.push_back(std::get<1>(key));
    threads.erase(std::unique(threads.begin(), threads.end()), threads.end());
    return threads.size();
}

BOOST_AUTO_TEST_SUITE(heap_recorder_agrees_with_an_independent_count)

BOOST_AUTO_TEST_CASE(on_every_function_in_many_threads) {
    const folder scratch;
    const traced found = agree({program, "threads"}, scratch);
    BOOST_TEST(threads_of(found) == 9U);
    for (const auto name : heap::call_names) {
        BOOST_TEST(calls_of(found, std::string(name)) > 100U, name);
    }
    // It frees all that it gets; a few blocks stay with the C and C++ libraries.
    BOOST_TEST(found.unknown_frees == 0U);
    BOOST_TEST(found.failed == 0U);
    BOOST_TEST(found.live_blocks < 10U);
}

BOOST_AUTO_TEST_CASE(on_what_comes_before_main_and_after_static_destruction) {
    const folder scratch;
    (void)agree({program, "nothing"}, scratch);
    // The sizes identify them: 3333 before any constructor, 1111 in one, 2222 in a destructor after
    // main.
    std::vector<std::uint64_t> sizes;
    const auto trace = reduce::trace_file::open(scratch.files(".trace").at(0));
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        const auto* record = std::get_if<reduce::record_view>(item);
        if (record == nullptr || record->name() != "malloc") continue;
        const auto size = record->field("size").u64();
        if (size == 1111 || size == 2222 || size == 3333) sizes.push_back(size);
    }
    BOOST_TEST(sizes == (std::vector<std::uint64_t>{3333, 1111, 2222}),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(on_threads_that_end_as_soon_as_they_began) {
    const folder scratch;
    const traced found = agree({program, "short_threads"}, scratch);
    BOOST_TEST(threads_of(found) == 501U);
}

BOOST_AUTO_TEST_CASE(on_threads_that_hold_the_c_library_s_locks) {
    const folder scratch;
    const traced found = agree({"timeout", "20", program, "locked_threads", HEAP_LIBRARY}, scratch);
    BOOST_TEST(threads_of(found) >= 6U);
    // Whole stacks: a thread's begin is in the C library.
    std::map<std::uint64_t, std::size_t> depths;
    for (const auto& file : scratch.files(".trace")) {
        const auto trace = reduce::trace_file::open(file);
        for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
            const auto* record = std::get_if<reduce::record_view>(item);
            if (record == nullptr || record->name() != "malloc") continue;
            const auto size = record->field("size").u64();
            if (size >= 71 && size <= 75) depths[size] = record->field("stack").size();
        }
    }
    BOOST_TEST(depths.size() == 5U);
    for (const auto& [size, depth] : depths) BOOST_TEST(depth >= 3U, "block of " << size);
}

BOOST_AUTO_TEST_CASE(across_fork) {
    const folder scratch;
    const traced found = agree({program, "forks"}, scratch);
    BOOST_TEST(found.images == 1U);
    BOOST_TEST(found.processes == 5U);
    // Every block is known in each process that frees it, its own and those of its forebears.
    BOOST_TEST(found.unknown_frees == 0U);
}

BOOST_AUTO_TEST_CASE(across_exec_vfork_and_posix_spawn) {
    const folder scratch;
    const traced found = agree({program, "execs"}, scratch);
    BOOST_TEST(found.images == 5U);
    BOOST_TEST(scratch.files(".1.trace").size() == 1U);  // the same process id once more
}

BOOST_AUTO_TEST_CASE(while_libraries_come_and_go_in_other_threads) {
    const folder scratch;
    (void)agree({program, "dlopens", HEAP_LIBRARY}, scratch);
}

BOOST_AUTO_TEST_CASE(whatever_way_stacks_are_taken) {
    for (const char* way : {"none", "fp", "tables", "unwind"}) {
        for (const char* free_stack : {"0", "32"}) {
            const folder scratch;
            (void)agree({program, "sequence"}, scratch,
                        {{"TRACE_RING_UNWIND", way}, {"TRACE_RING_FREE_STACK", free_stack}});
        }
    }
}

BOOST_AUTO_TEST_CASE(in_signal_handlers) {
    const folder scratch;
    const traced found = agree({program, "signals"}, scratch);
    BOOST_TEST(calls_of(found, "malloc") >= 2000U);
}

BOOST_AUTO_TEST_CASE(on_each_form_of_new_and_delete_whatever_the_allocator) {
    for (const auto& allocator : allocators) {
        const folder scratch;
        const traced found = agree({program, "operators"}, scratch,
                                   {{"LD_PRELOAD", recorder + ":" + counter + allocator}});
        BOOST_TEST(calls_of(found, "new") == 6 * 200U);
        BOOST_TEST(calls_of(found, "new_aligned") == 6 * 200U);
        BOOST_TEST(calls_of(found, "delete") == 12 * 200U);
        BOOST_TEST(found.unknown_frees == 0U);
    }
}

BOOST_AUTO_TEST_CASE(on_python_with_threads) {
    const folder scratch;
    const traced found = agree({PYTHON, HEAP_SCRIPT, "--quick"}, scratch);
    BOOST_TEST(threads_of(found) >= 4U);
    BOOST_TEST(calls_of(found, "malloc") > 10'000U);
}

BOOST_AUTO_TEST_CASE(on_a_compilation_in_several_processes) {
    const folder scratch;
    const traced found =
        agree({CXX_COMPILER, "-O1", "-o", scratch.file("out"), HEAP_SMALL_SOURCE}, scratch);
    BOOST_TEST(found.images >= 2U);
    BOOST_TEST(calls_of(found, "malloc") > 10'000U);
}

BOOST_AUTO_TEST_CASE(on_a_shell_that_forks_again_and_again) {
    const folder scratch;
    const traced found = agree(
        {"/bin/bash", "-c", "for i in 1 2 3 4 5 6 7 8; do x=$(echo $(echo $i)); done; ls / | cat"},
        scratch);
    BOOST_TEST(found.processes >= 18U);
}

BOOST_AUTO_TEST_SUITE_END()

// --- mtrace ------------------------------------------------------------------------------------

struct step {
    char what = 0;  ///< + allocated, - freed, > moved to
    std::uint64_t address = 0, old = 0, bytes = 0;

    friend bool operator==(const step&, const step&) = default;
};

/// The calls between the first and the last block of the marked size.
[[nodiscard]] std::vector<step> between_marks(const std::vector<step>& all) {
    constexpr std::uint64_t mark = 123457;
    const auto is_mark = [](const step& s) { return s.what == '+' && s.bytes == mark; };
    const auto first = std::find_if(all.begin(), all.end(), is_mark);
    const auto last = std::find_if(all.rbegin(), all.rend(), is_mark).base();
    return first < last ? std::vector<step>(first, last) : std::vector<step>();
}

[[nodiscard]] std::vector<step> read_mtrace(const std::string& path) {
    std::vector<step> all;
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) {
        // "@ program:(function)[0x...] + 0x... 0x..."; a realloc is a '<' line and a '>' line.
        std::istringstream words(line);
        std::string word, what;
        words >> word >> word >> what;
        if (what != "+" && what != "-" && what != "<" && what != ">") continue;
        step s;
        s.what = what[0];
        words >> std::hex >> s.address;
        if (what == "+" || what == ">") words >> s.bytes;
        if (what == ">") {
            s.old = all.back().address;
            all.pop_back();
        }
        all.push_back(s);
    }
    return all;
}

[[nodiscard]] std::vector<step> read_trace(const std::string& path) {
    std::vector<step> all;
    const auto trace = reduce::trace_file::open(path);
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        const auto* record = std::get_if<reduce::record_view>(item);
        if (record == nullptr) continue;
        const auto number = [&](const char* field) { return record->field(field).u64(); };
        const auto name = record->name();
        if (name == "malloc" || name == "aligned_alloc" || name == "new") {
            all.push_back({'+', number("address"), 0, number("size")});
        } else if (name == "calloc") {
            all.push_back({'+', number("address"), 0, number("count") * number("size")});
        } else if (name == "realloc" || name == "reallocarray") {
            const auto bytes = number("size") * (name == "realloc" ? 1 : number("count"));
            all.push_back(
                {number("old") == 0 ? '+' : '>', number("address"), number("old"), bytes});
        } else if ((name == "free" || name == "delete") && number("address") != 0) {
            all.push_back({'-', number("address"), 0, 0});
        }
    }
    return all;
}

BOOST_AUTO_TEST_SUITE(heap_recorder)

BOOST_AUTO_TEST_CASE(a_sequence_of_calls_is_the_one_that_mtrace_logs) {
    const folder scratch;
    const outcome ran = run({program, "sequence"},
                            {{"LD_PRELOAD", recorder + ":libc_malloc_debug.so.0"},
                             {"TRACE_RING_FILE", scratch.file("heap.trace")},
                             {"MALLOC_TRACE", scratch.file("mtrace")}},
                            scratch);
    BOOST_TEST(ran.status == 0, ran.err);
    const auto expected = between_marks(read_mtrace(scratch.file("mtrace")));
    const auto found = between_marks(read_trace(scratch.file("heap.trace")));
    BOOST_TEST(expected.size() > 5000U);
    BOOST_TEST(found.size() == expected.size());
    std::size_t different = 0;
    for (std::size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
        if (found[i] == expected[i]) continue;
        if (++different > 5) break;
        BOOST_TEST(false, "call " << i << ": recorded " << found[i].what << std::hex << " "
                                  << found[i].address << " " << found[i].bytes << ", logged "
                                  << expected[i].what << " " << expected[i].address << " "
                                  << expected[i].bytes);
    }
    BOOST_TEST(different == 0U);
}

// --- operator new in other ways than the usual -------------------------------------------------

/// Runs a command under the recorder alone.
[[nodiscard]] traced recorded(const std::vector<std::string>& command, const folder& scratch,
                              const std::string& allocator = "") {
    const outcome ran = run(
        command,
        {{"LD_PRELOAD", recorder + allocator}, {"TRACE_RING_FILE", scratch.file("%e.%p.trace")}},
        scratch);
    BOOST_TEST(ran.status == 0, ran.status << ": " << ran.err);
    BOOST_TEST(ran.err == "");
    return read_back(scratch);
}

BOOST_AUTO_TEST_CASE(a_handler_s_calls_are_the_program_s_and_an_exception_leaves_nothing_behind) {
    for (const auto& allocator : allocators) {
        const folder scratch;
        const traced found = recorded({program, "short_of_memory"}, scratch, allocator);
        // Two reserves, three that fail, one for each of five calls of the handler, three times a
        // hundred.
        BOOST_TEST(calls_of(found, "new") == 2 + 3 + 5 + 300U);
        BOOST_TEST(calls_of(found, "delete") == 2 + 5 + 300U);
        BOOST_TEST(found.failed == 3U);
        BOOST_TEST(found.unknown_frees == 0U);
    }
}

BOOST_AUTO_TEST_CASE(a_library_that_alone_has_the_c_plus_plus_library_finds_its_operators) {
    const folder scratch;
    const traced found =
        recorded({PYTHON, "-c", "import ctypes; ctypes.CDLL('" HEAP_LIBRARY "')"}, scratch);
    BOOST_TEST(calls_of(found, "new") == 1U);
    BOOST_TEST(calls_of(found, "delete") == 1U);
}

BOOST_AUTO_TEST_CASE(functions_that_a_program_has_itself_are_said_not_to_be_recorded) {
    const folder scratch;
    const std::string trace = scratch.file("own.trace");
    const outcome ran = run({HEAP_OWN}, recording_to(trace), scratch);
    BOOST_TEST(ran.status == 0);
    BOOST_TEST(ran.err.starts_with("heap_recorder: " HEAP_OWN " has its own malloc, "), ran.err);
    BOOST_TEST(ran.err.find("operator new(unsigned") != std::string::npos, ran.err);
    BOOST_TEST(std::count(ran.err.begin(), ran.err.end(), '\n') == 1);
    const outcome report = run({HEAP_REPORT, trace}, {{"COLUMNS", "2000"}}, scratch);
    BOOST_TEST(report.status == 0);
    BOOST_TEST(report.out.find("NOT SEEN    calls of malloc, ") != std::string::npos, report.out);
}

#ifdef __OPTIMIZE__  // then the recorder is, too
BOOST_AUTO_TEST_CASE(a_coroutine_s_first_calls_need_at_most_two_kib_more_of_its_stack) {
    const folder scratch;
    const auto needs = [&](const variables& environment) {
        const outcome ran = run({program, "coroutines", HEAP_LIBRARY}, environment, scratch);
        BOOST_TEST(ran.status == 0, ran.err);
        std::istringstream words(ran.out);
        std::array<std::size_t, 3> bytes{};
        for (auto& each : bytes) words >> each;
        return bytes;
    };
    const auto alone = needs({});
    const auto with = needs(recording_to(scratch.file("heap.trace")));
    for (std::size_t i = 0; i < alone.size(); ++i) {
        BOOST_TEST(alone[i] > 0U);
        BOOST_TEST(with[i] <= alone[i] + 2048);
    }
}
#endif

// --- A program whose numbers are known ---------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_known_program_has_the_numbers_worked_out_by_hand) {
    const folder scratch;
    const outcome ran = run({HEAP_KNOWN}, recording_to(scratch.file("known.trace")), scratch);
    BOOST_TEST(ran.status == 0);
    BOOST_TEST(ran.err == "");
    heap::stack_table stacks;
    heap::symbolizer symbols;
    auto file = heap::read_profile(scratch.file("known.trace"), stacks, 1'000'000'000);
    BOOST_REQUIRE(file.processes.size() == 1U);
    auto& process = file.processes[0];
    BOOST_TEST(process.name == "heap_known");
    BOOST_TEST(process.complete());
    const auto& sums = process.heap.sums();
    BOOST_TEST(sums.peak_bytes == 7000U);
    BOOST_TEST(sums.peak_blocks == 3U);
    BOOST_TEST(sums.live_bytes == 770U);
    BOOST_TEST(sums.live_blocks == 10U);
    BOOST_TEST(sums.allocations == 15U);
    BOOST_TEST(sums.allocated_bytes == 3 * 1000U + 5000U + 500U + 10 * 77U);
    BOOST_TEST(sums.frees == 5U);  // two of them by realloc
    BOOST_TEST(sums.short_lived == 5U);
    BOOST_TEST(sums.failed == 2U);
    BOOST_TEST(sums.null_frees == 1U);
    BOOST_TEST(sums.unknown_frees == 0U);
    BOOST_TEST(process.heap.size_counts()[7] == 10U);  // 64 to 127
    BOOST_TEST(process.heap.size_counts()[9] == 1U);   // 256 to 511
    BOOST_TEST(process.heap.size_counts()[10] == 3U);  // 512 to 1023
    BOOST_TEST(process.heap.size_counts()[13] == 1U);  // 4096 to 8191
    const auto calls = process.all_calls();
    BOOST_TEST(calls[static_cast<std::size_t>(heap::call_kind::malloc)] == 3U);
    BOOST_TEST(calls[static_cast<std::size_t>(heap::call_kind::realloc)] == 3U);
    BOOST_TEST(calls[static_cast<std::size_t>(heap::call_kind::calloc)] == 11U);
    BOOST_TEST(calls[static_cast<std::size_t>(heap::call_kind::free)] == 4U);

    std::map<std::string, heap::site> sites;
    for (auto& site : heap::find_sites(process.heap.by_stack(), stacks, symbols)) {
        sites[site.name] = site;
    }
    BOOST_TEST(sites.size() == 4U);
    const auto& thousand = sites["thousand"].sums;
    BOOST_TEST(thousand.bytes == 3000U);
    BOOST_TEST(thousand.calls == 3U);
    BOOST_TEST(thousand.peak_bytes == 2000U);
    BOOST_TEST(thousand.live_bytes == 0U);
    const auto& grown = sites["grown"].sums;
    BOOST_TEST(grown.bytes == 5000U);
    BOOST_TEST(grown.peak_bytes == 5000U);
    BOOST_TEST(grown.live_bytes == 0U);
    const auto& leaked = sites["leaked"].sums;
    BOOST_TEST(leaked.bytes == 770U);
    BOOST_TEST(leaked.calls == 10U);
    BOOST_TEST(leaked.live_bytes == 770U);
    BOOST_TEST(leaked.live_blocks == 10U);
    BOOST_TEST(leaked.peak_bytes == 0U);
    const auto& in_main = sites["main"].sums;
    BOOST_TEST(in_main.bytes == 500U);
    for (const char* name : {"thousand", "grown", "leaked"}) {
        BOOST_REQUIRE(!sites[name].callers.empty());
        BOOST_TEST(sites[name].callers[0] == "main");
    }
}

BOOST_AUTO_TEST_CASE(functions_that_were_inlined_are_in_the_stack_each_with_its_line) {
    const folder scratch;
    const std::string trace = scratch.file("inlined.trace");
    const outcome ran = run({HEAP_INLINED}, recording_to(trace), scratch);
    BOOST_TEST(ran.status == 0);
    heap::stack_table stacks;
    heap::symbolizer symbols;
    auto file = heap::read_profile(trace, stacks, 1'000'000'000);
    BOOST_REQUIRE(file.processes.size() == 1U);
    auto sites = heap::find_sites(file.processes[0].heap.by_stack(), stacks, symbols);
    std::erase_if(sites, [](const heap::site& s) { return s.sums.bytes != 100; });
    BOOST_REQUIRE(sites.size() == 1U);
    std::map<std::string, std::string> lines;  // by the comment
    std::ifstream source(HEAP_INLINED_SOURCE);
    std::size_t number = 1;
    for (std::string line; std::getline(source, line); ++number) {
        if (const auto at = line.find("// in "); at != std::string::npos) {
            lines[line.substr(at + 6)] = "heap_inlined.cpp:" + std::to_string(number);
        }
    }
    BOOST_TEST(sites[0].name == "shapes::box::make()");
    BOOST_TEST(sites[0].where == lines.at("make"));
    BOOST_REQUIRE(sites[0].callers.size() >= 3U);
    BOOST_TEST(sites[0].callers[0] == "(anonymous namespace)::middle()");
    BOOST_TEST(sites[0].callers[1] == "outer");
    BOOST_TEST(sites[0].callers[2] == "main");
    // Each with the line of its call.
    const symbols::object program_file(HEAP_INLINED);
    const auto& functions = program_file.functions();
    const auto outer = std::find_if(functions.begin(), functions.end(),
                                    [](const auto& f) { return f.name == "outer"; });
    BOOST_REQUIRE((outer != functions.end()));
    std::vector<symbols::symbol> chain;
    for (std::uint64_t at = outer->start; at < outer->end && chain.size() < 3; ++at) {
        chain = program_file.at(at);
    }
    BOOST_REQUIRE(chain.size() == 3U);
    BOOST_TEST(chain[1].where() == lines.at("middle"));
    BOOST_TEST(chain[2].where() == lines.at("outer"));
    BOOST_TEST(chain[2].function == "outer");
}

// As clang makes them.
BOOST_AUTO_TEST_CASE(lines_are_known_without_a_table_of_what_lies_where) {
    const folder scratch;
    std::ifstream original(HEAP_INLINED, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(original), {}};
    const std::string table = ".debug_aranges";
    if (const auto at = bytes.find(table); at != std::string::npos) {
        bytes.replace(at, table.size(), ".debug_nothing");
    }
    const std::string copy = scratch.file("without_table");
    std::ofstream(copy, std::ios::binary) << bytes;
    const symbols::object with(HEAP_INLINED), without(copy);
    BOOST_TEST(without.problem().empty());
    const auto& functions = with.functions();
    const auto outer = std::find_if(functions.begin(), functions.end(),
                                    [](const auto& f) { return f.name == "outer"; });
    BOOST_REQUIRE((outer != functions.end()));
    for (std::uint64_t at = outer->start; at < outer->end; ++at) {
        const auto expected = with.at(at), found = without.at(at);
        BOOST_REQUIRE(found.size() == expected.size());
        for (std::size_t i = 0; i < found.size(); ++i) {
            BOOST_TEST(found[i].function == expected[i].function);
            BOOST_TEST(found[i].line == expected[i].line);
        }
        BOOST_TEST(found[0].line > 0);
    }
    BOOST_TEST(!without.lines(outer->start, outer->end).empty());
}

/// The stacks of a program's calls, as in its file.
[[nodiscard]] std::vector<std::vector<heap::frame>> stacks_of(const folder& scratch,
                                                              const std::string& way) {
    const std::string file = scratch.file(way + ".trace");
    const outcome ran = run({program, "sequence"},
                            {{"LD_PRELOAD", recorder},
                             {"TRACE_RING_FILE", file},
                             {"TRACE_RING_STACK", "16"},
                             {"TRACE_RING_FREE_STACK", "16"},
                             {"TRACE_RING_UNWIND", way}},
                            scratch);
    BOOST_TEST(ran.status == 0);
    std::vector<std::vector<heap::frame>> all;
    heap::code_map map;
    std::map<std::string, heap::object_id> ids;
    const auto trace = reduce::trace_file::open(file);
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        const auto* record = std::get_if<reduce::record_view>(item);
        if (record == nullptr) continue;
        if (record->name() == "module") {
            const auto id = ids.emplace(record->field("path").text(), ids.size() + 1).first->second;
            map.add(record->field("start").u64(), record->field("end").u64(),
                    record->field("bias").u64(), id);
        }
        const auto stack = record->field("stack");
        if (!stack) continue;
        auto& frames = all.emplace_back();
        for (std::size_t i = 0; i < stack.size(); ++i)
            frames.push_back(map.find(stack.at(i).u64()));
    }
    return all;
}

BOOST_AUTO_TEST_CASE(stacks_by_tables_are_those_of_the_compiler_s_unwinder) {
    const folder scratch;
    const auto by_tables = stacks_of(scratch, "tables");
    const auto by_unwinder = stacks_of(scratch, "unwind");
    BOOST_TEST(by_tables.size() > 5000U);
    BOOST_REQUIRE(by_tables.size() == by_unwinder.size());
    std::size_t different = 0;
    for (std::size_t i = 0; i < by_tables.size(); ++i) different += by_tables[i] != by_unwinder[i];
    BOOST_TEST(different == 0U);
}

// --- Where it cannot record --------------------------------------------------------------------

void check_untraced(const variables& extra, const folder& scratch, const std::string& where = ".") {
    variables environment{{"LD_PRELOAD", recorder}};
    environment.insert(extra.begin(), extra.end());
    const outcome alone = run({program, "speak"}, {}, scratch, where);
    const outcome ran = run({program, "speak"}, environment, scratch, where);
    BOOST_TEST(alone.status == 42);
    BOOST_TEST(ran.status == 42);
    BOOST_TEST(ran.out == alone.out);
    // One line, and then what the program itself has to say.
    BOOST_TEST(ran.err.ends_with("\n" + alone.err), ran.err);
    const std::string line = ran.err.substr(0, ran.err.size() - alone.err.size());
    BOOST_TEST(std::count(line.begin(), line.end(), '\n') == 1, ran.err);
    BOOST_TEST(line.starts_with("heap_recorder: "), line);
    BOOST_TEST(line.ends_with("heap_program runs untraced\n"), line);
}

BOOST_AUTO_TEST_CASE(a_file_in_a_folder_that_is_not_there_leaves_the_program_as_it_is) {
    const folder scratch;
    check_untraced({{"TRACE_RING_FILE", scratch.file("nowhere/heap.trace")}}, scratch);
    check_untraced({{"TRACE_RING_FILE", "/dev/null/heap.trace"}}, scratch);
}

BOOST_AUTO_TEST_CASE(a_read_only_working_directory_leaves_the_program_as_it_is) {
    const folder scratch;
    check_untraced({}, scratch, "/proc/self");  // read-only even for root
}

BOOST_AUTO_TEST_CASE(a_limit_on_file_sizes_leaves_the_program_as_it_is) {
    const folder scratch;
    rlimit before{};
    ::getrlimit(RLIMIT_FSIZE, &before);
    const rlimit small{100'000, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
    check_untraced({{"TRACE_RING_FILE", scratch.file("heap.trace")}}, scratch);
    ::setrlimit(RLIMIT_FSIZE, &before);
    BOOST_TEST(scratch.files(".trace").empty());
}

BOOST_AUTO_TEST_CASE(a_limit_on_memory_leaves_the_program_as_it_is) {
    const folder scratch;
    rlimit before{};
    ::getrlimit(RLIMIT_AS, &before);
    const rlimit small{rlim_t{512} << 20, before.rlim_max};
    ::setrlimit(RLIMIT_AS, &small);
    check_untraced({{"TRACE_RING_FILE", scratch.file("heap.trace")}}, scratch);
    ::setrlimit(RLIMIT_AS, &before);
}

BOOST_AUTO_TEST_CASE(a_setting_that_makes_no_sense_is_complained_of_and_the_default_taken) {
    const folder scratch;
    for (const auto& [name, value] : variables{{"TRACE_RING_LIMIT", "much"},
                                               {"TRACE_RING_STACK", "33"},
                                               {"TRACE_RING_FREE_STACK", "-1"},
                                               {"TRACE_RING_UNWIND", "guess"}}) {
        const outcome ran = run({program, "speak"},
                                {{"LD_PRELOAD", recorder},
                                 {"TRACE_RING_FILE", scratch.file("heap.trace")},
                                 {name, value}},
                                scratch);
        BOOST_TEST(ran.status == 42);
        BOOST_TEST(ran.err.starts_with("heap_recorder: " + name + "=" + value + " "), ran.err);
        BOOST_TEST(std::count(ran.err.begin(), ran.err.end(), '\n') == 2, ran.err);
    }
    BOOST_TEST(scratch.files(".trace").size() == 4U);
}

BOOST_AUTO_TEST_CASE(a_trace_ends_at_its_limit_and_says_what_it_lacks) {
    const folder scratch;
    const outcome ran = run({program, "threads"},
                            {{"LD_PRELOAD", recorder + ":" + counter},
                             {"TRACE_RING_FILE", scratch.file("heap.trace")},
                             {"HEAP_COUNTER_FILE", scratch.file("count")},
                             {"TRACE_RING_LIMIT", "2M"}},
                            scratch);
    BOOST_TEST(ran.status == 0);
    const traced found = read_back(scratch);
    std::uint64_t recorded = 0, made = 0;
    for (const auto& [key, count] : found.calls) recorded += count;
    for (const auto& [key, count] : counted(scratch)) made += count;
    const auto refused = found.lost[trace_ring::loss_cause::refused];
    BOOST_TEST(refused > 0U);
    BOOST_TEST(recorded > 10'000U);
    BOOST_TEST(found.lost.total() == refused);
    BOOST_TEST(recorded + refused == made);
    const outcome report = run({HEAP_REPORT, scratch.file("heap.trace")}, {}, scratch);
    BOOST_TEST(report.status == 0);
    BOOST_TEST(report.out.find("LOST") != std::string::npos);
    BOOST_TEST(report.out.find("nothing is missing before") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_killed_program_leaves_a_trace_that_reads_to_the_last_call) {
    const folder scratch;
    for (int i = 0; i < 5; ++i) {
        const outcome ran = run({program, "endless"}, recording_to(scratch.file("killed.%p.trace")),
                                scratch, ".", 20'000U * static_cast<unsigned>(i + 1));
        BOOST_TEST(ran.status == 128 + SIGKILL);
    }
    const traced found = read_back(scratch);
    BOOST_TEST(found.images == 5U);
    BOOST_TEST(found.lost.total() == 0U);
    BOOST_TEST(found.damaged == 0U);
    BOOST_TEST(calls_of(found, "malloc") > 1000U);
    // At most the block in flight is still live.
    BOOST_TEST(calls_of(found, "malloc") - calls_of(found, "free") <= 5U * 4);
}

BOOST_AUTO_TEST_CASE(
    a_program_that_closes_every_descriptor_keeps_its_own_files_and_its_whole_trace) {
    const folder scratch;
    const outcome ran = run({program, "closes_all"}, recording_to(scratch.file("heap.trace")),
                            scratch, scratch.file("."));
    BOOST_TEST(ran.status == 0);
    BOOST_TEST(ran.out == "untouched\n");
    const traced found = read_back(scratch);
    BOOST_TEST(found.lost.total() == 0U);  // it grew on, through its name
    BOOST_TEST(calls_of(found, "malloc") >= 200'000U);
}

// --- heap-report as a program ------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(heap_report_has_exit_statuses_that_tell_what_happened) {
    const folder scratch;
    (void)run({HEAP_KNOWN}, recording_to(scratch.file("known.trace")), scratch);
    const std::string trace = scratch.file("known.trace");
    const auto status = [&](std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), HEAP_REPORT);
        return run(arguments, {}, scratch).status;
    };
    BOOST_TEST(status({trace}) == 0);
    BOOST_TEST(status({"--help"}) == 0);
    BOOST_TEST(status({"--version"}) == 0);
    BOOST_TEST(status({scratch.file("missing")}) == 2);
    BOOST_TEST(status({trace, scratch.file("missing")}) == 2);
    std::ofstream(scratch.file("text")) << std::string(10'000, 'x');
    BOOST_TEST(status({scratch.file("text")}) == 2);
    std::ofstream(scratch.file("empty")).flush();
    BOOST_TEST(status({scratch.file("empty")}) == 2);
    BOOST_TEST(status({}) == 1);
    BOOST_TEST(status({"--no-such-option", trace}) == 1);
    BOOST_TEST(status({"--pid", "1", trace}) == 1);
    BOOST_TEST(status({"--svg", "/nowhere/x.svg", trace}) == 1);
    BOOST_TEST(status({"--svg", scratch.file("x.svg"), trace}) == 0);
    BOOST_TEST(contents(scratch.file("x.svg")).find("peak 6.84 KiB") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(heap_report_fits_its_width_and_has_no_colour_in_a_file) {
    const folder scratch;
    (void)run({program, "sequence"}, recording_to(scratch.file("heap.trace")), scratch);
    for (const std::size_t width : {60, 100, 200}) {
        const outcome report = run({HEAP_REPORT, scratch.file("heap.trace")},
                                   {{"COLUMNS", std::to_string(width)}}, scratch);
        BOOST_TEST(report.status == 0);
        BOOST_TEST(report.out.find('\x1b') == std::string::npos);
        std::istringstream lines(report.out);
        // The columns of numbers need 47.
        const std::size_t most = std::max<std::size_t>(width, 67);
        for (std::string line; std::getline(lines, line);) {
            BOOST_TEST(line.size() <= most, line);
        }
    }
    const outcome coloured =
        run({HEAP_REPORT, "--color", "always", scratch.file("heap.trace")}, {}, scratch);
    BOOST_TEST(coloured.out.find("\x1b[1m") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_damaged_heap_trace_is_reported_on_and_never_a_crash,
                     *boost::unit_test::label("slow")) {
    const folder scratch;
    (void)run({program, "sequence"}, recording_to(scratch.file("heap.trace")), scratch);
    const std::string whole = contents(scratch.file("heap.trace"));
    std::uint32_t random = 5;
    const auto next = [&] { return random = random * 1664525U + 1013904223U; };
    for (int i = 0; i < 30; ++i) {
        std::string bytes = whole;
        if (i % 3 == 0) bytes.resize(next() % bytes.size());
        // Records, and the tables before them, in turn.
        for (int n = 0; n < 200 && !bytes.empty(); ++n) {
            const std::size_t from =
                i % 2 == 0 ? 0 : std::min<std::size_t>(bytes.size(), 10'000'000);
            const std::size_t room =
                i % 2 == 0 ? std::min<std::size_t>(bytes.size(), 100'000) : bytes.size() - from;
            if (room != 0) bytes[from + next() % room] = static_cast<char>(next() >> 16);
        }
        std::ofstream(scratch.file("damaged"), std::ios::binary) << bytes;
        const outcome report = run({HEAP_REPORT, scratch.file("damaged")}, {}, scratch);
        BOOST_TEST((report.status == 0 || report.status == 2),
                   "exit status " << report.status << ": " << report.err);
    }
}

BOOST_AUTO_TEST_SUITE_END()

// --- What does not pass the recorder -----------------------------------------------------------

BOOST_AUTO_TEST_SUITE(what_is_not_recorded_is_said_to_be_so)

/// One line, without the breaks that the width of a page makes.
[[nodiscard]] std::string report_of(const std::string& trace, const folder& scratch) {
    return run({HEAP_REPORT, trace}, {{"COLUMNS", "2000"}}, scratch).out;
}

[[nodiscard]] bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

BOOST_AUTO_TEST_CASE(calls_of_an_object_that_is_bound_past_the_recorder) {
    const folder scratch;
    const std::string trace = scratch.file("deep.trace");
    const outcome ran = run({program, "deep_binding", HEAP_LIBRARY}, recording_to(trace), scratch);
    BOOST_TEST(ran.status == 0, ran.err);
    heap::stack_table stacks;
    auto file = heap::read_profile(trace, stacks, 1'000'000);
    BOOST_TEST_REQUIRE(file.processes.size() == 1U);
    const auto& sums = file.processes[0].heap.sums();
    BOOST_TEST(sums.unknown_frees == 7U);
    BOOST_TEST(sums.unseen_ends == 4U);  // the fifth, and another block, seem to live on
    BOOST_TEST(sums.reused == 4U);
    const std::string text = report_of(trace, scratch);
    BOOST_TEST(contains(text, "by " HEAP_LIBRARY ": they go to another object's"), text);
    BOOST_TEST(contains(text, "where 7 blocks came from that were freed"), text);
    BOOST_TEST(contains(text, "the end of 4 blocks, whose addresses were handed out again"), text);
    // There is one thread: no realloc was overtaken.
    BOOST_TEST(!contains(text, "before their realloc"), text);
}

BOOST_AUTO_TEST_CASE(programs_that_are_executed_whatever_function_does_it) {
    const folder scratch;
    const std::string trace = scratch.file("executes.trace");
    const outcome ran = run({program, "executes", HEAP_KNOWN}, recording_to(trace), scratch);
    BOOST_TEST(ran.status == 0, ran.err);
    heap::stack_table stacks;
    const auto file = heap::read_profile(trace, stacks, 1'000'000);
    std::size_t known = 0, shells = 0;
    for (const auto& each : file.executions) {
        BOOST_TEST(contains(each.obstacle, "LD_PRELOAD in its environment"), each.obstacle);
        if (each.path == HEAP_KNOWN) ++known;
        if (each.path == "/bin/sh") ++shells;
        BOOST_TEST((each.pid == 0) == (each.path == "/bin/sh"));
    }
    BOOST_TEST(known == 11U);
    BOOST_TEST(shells == 2U);
    BOOST_TEST(file.executions.size() == known + shells);  // no failed call
    const std::string text = report_of(trace, scratch);
    BOOST_TEST(contains(text, "executes.trace: not recorded: " HEAP_KNOWN " (process "), text);
    BOOST_TEST(contains(text, "and 3 more programs that are not recorded"), text);
    // A program that has executed another one says so itself.
    const auto replaced = std::count_if(file.processes.begin(), file.processes.end(),
                                        [](const auto& p) { return p.executed == HEAP_KNOWN; });
    BOOST_TEST(replaced == 9);
}

// heap-record

/// A copy of a program, changed so that the preload does not get into it.
[[nodiscard]] std::string changed_copy(const folder& scratch, const std::string& name,
                                       void (*change)(std::string&)) {
    std::string bytes = contents(HEAP_KNOWN);
    change(bytes);
    const std::string path = scratch.file(name);
    std::ofstream(path, std::ios::binary) << bytes;
    fs::permissions(path, fs::perms::owner_all);
    return path;
}

[[nodiscard]] std::string linker_of(const std::string& bytes) {
    const auto at = bytes.find("/ld-linux");
    const auto begin = bytes.rfind('\0', at) + 1;
    return bytes.substr(begin, bytes.find('\0', at) - begin);
}

BOOST_AUTO_TEST_CASE(heap_record_looks_at_the_program_before_it_runs_it) {
    const folder scratch;
    const variables here{{"TMPDIR", scratch.file("")}};
    const auto refused = [&](const std::string& path, const std::string& why) {
        const outcome ran = run({HEAP_RECORD, "--", path}, here, scratch, scratch.file("."));
        BOOST_TEST(ran.status == 125, ran.err);
        BOOST_TEST(ran.err.starts_with("heap-record: " + path + " cannot be recorded: " + why),
                   ran.err);
        BOOST_TEST(std::count(ran.err.begin(), ran.err.end(), '\n') == 1);
    };
    const std::string musl = changed_copy(scratch, "musl", [](std::string& bytes) {
        const std::string linker = linker_of(bytes);
        std::string other = "/lib/ld-musl.so";
        other.resize(linker.size());
        bytes.replace(bytes.find(linker), linker.size(), other);
    });
    refused(musl, "its dynamic linker is not glibc's");
    const std::string alone = changed_copy(scratch, "alone", [](std::string& bytes) {
        using header = std::conditional_t<sizeof(void*) == 8, Elf64_Ehdr, Elf32_Ehdr>;
        using segment = std::conditional_t<sizeof(void*) == 8, Elf64_Phdr, Elf32_Phdr>;
        auto* const of = reinterpret_cast<header*>(bytes.data());
        auto* const segments = reinterpret_cast<segment*>(bytes.data() + of->e_phoff);
        for (int i = 0; i < of->e_phnum; ++i) {
            if (segments[i].p_type == PT_INTERP) segments[i].p_type = PT_NULL;
        }
    });
    refused(alone, "it is linked statically");
    refused(changed_copy(scratch, "other", [](std::string& bytes) { bytes[18] ^= 1; }),
            "it is for another word size or machine");
    // Of a script its interpreter counts.
    const std::string script = scratch.file("script");
    std::ofstream(script) << "#! " << alone << " -x\n";
    fs::permissions(script, fs::perms::owner_all);
    refused(script, "it is linked statically");
    if (::getuid() == 0) {  // who else may make a program that gets another user's rights?
        const std::string user = changed_copy(scratch, "user", [](std::string&) {});
        BOOST_TEST(::chown(user.c_str(), 1, 0) == 0);
        BOOST_TEST(::chmod(user.c_str(), 04755) == 0);
        refused(user, "it is set-user-ID");
        const std::string group = changed_copy(scratch, "group", [](std::string&) {});
        BOOST_TEST(::chown(group.c_str(), 0, 1) == 0);
        BOOST_TEST(::chmod(group.c_str(), 02755) == 0);
        refused(group, "it is set-group-ID");
    }
    BOOST_TEST(scratch.files(".trace").empty());
    // What a recorded program executes is looked at, too.
    const outcome shell = run({HEAP_RECORD, "--quiet", "--", "/bin/sh", "-c",
                               alone + " 2>/dev/null; " + HEAP_KNOWN + "; exit 7"},
                              here, scratch, scratch.file("."));
    BOOST_TEST(shell.status == 7, shell.err);
    BOOST_TEST(contains(shell.err, alone + " is not recorded: it is linked statically"), shell.err);
    BOOST_TEST(contains(shell.err, "/heap.heap_known."), shell.err);
    BOOST_TEST(scratch.files(".trace").size() == 2U);
    BOOST_TEST(scratch.files("heap-record-").empty());
}

// present: recorded, executed
BOOST_AUTO_TEST_CASE(heap_record_ends_with_the_report_and_the_program_s_exit_status) {
    const folder scratch;
    const auto recorded_by = [&](std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), HEAP_RECORD);
        return run(arguments, {{"COLUMNS", "200"}}, scratch, scratch.file("."));
    };
    const outcome spoke = recorded_by({"-o", "%e.%p.trace", "--", program, "speak"});
    BOOST_TEST(spoke.status == 42, spoke.err);
    BOOST_TEST(spoke.out == "said\n");
    const auto traces = scratch.files(".trace");
    BOOST_TEST_REQUIRE(traces.size() == 1U);
    const std::string name = fs::path(traces[0]).filename().string();
    BOOST_TEST(contains(spoke.err, "heap-record: "), spoke.err);
    BOOST_TEST(contains(spoke.err, "/" + name + "\n"), spoke.err);
    BOOST_TEST(contains(spoke.err, "heap_program (process "), spoke.err);
    BOOST_TEST(contains(spoke.err, "never freed"), spoke.err);
    // The same as heap-report's.
    const outcome report = run({HEAP_REPORT, traces[0]}, {{"COLUMNS", "200"}}, scratch);
    BOOST_TEST(spoke.err.ends_with(report.out), spoke.err);
    BOOST_TEST(recorded_by({"--quiet", "--", "/bin/sh", "-c", "kill -TERM $$"}).status == 143);
    BOOST_TEST(recorded_by({"--", "no-such-program"}).status == 127);
    BOOST_TEST(recorded_by({"--", "/dev/null"}).status == 126);
    BOOST_TEST(recorded_by({"--recorder", "/nowhere/x.so", "--", "true"}).status == 125);
    BOOST_TEST(recorded_by({"--recorder", "/dev/null", "--", "true"}).status == 125);
    BOOST_TEST(recorded_by({"--stack", "33", "--", "true"}).status == 125);
    BOOST_TEST(recorded_by({"--limit", "5", "--", "true"}).status == 125);
    BOOST_TEST(recorded_by({"--unwind", "magic", "--", "true"}).status == 125);
    BOOST_TEST(recorded_by({}).status == 125);
    BOOST_TEST(recorded_by({"--help"}).status == 0);
    BOOST_TEST(recorded_by({"--version"}).status == 0);
    // A recorder that cannot record reports this, and the program runs.
    const outcome nowhere = recorded_by({"-o", "/nowhere/at/all.trace", "--", program, "speak"});
    BOOST_TEST(nowhere.status == 42);
    BOOST_TEST(contains(nowhere.err, " recorded nothing: "), nowhere.err);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace

}  // namespace heap_recorded
