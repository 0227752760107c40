// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The program branch-trace, from outside: what it records of programs whose branches are known or
/// counted independently, by valgrind, and how it ends.

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <branch_trace/report/branch_trace.hpp>
#include <branch_trace/report/edges.hpp>
#include <reduce/scratch_file.hpp>
#include <symbols/symbols.hpp>
#include <trace_ring/reduce/trace_file.hpp>

BOOST_AUTO_TEST_SUITE(branch_trace)

using namespace trace_ring_test;
using branches::branch_kind;

namespace {

const std::string known = BRANCH_KNOWN;

/// A program that runs, its output in files.
class running {
public:
    explicit running(std::vector<std::string> command) {
        std::vector<char*> words;
        for (auto& each : command) words.push_back(each.data());
        words.push_back(nullptr);
        child_ = ::fork();
        BOOST_REQUIRE(child_ >= 0);
        if (child_ == 0) {
            ::setenv("LD_BIND_NOW", "1", 1);  // so that calls need no resolving on the way
            const int out = ::open(out_.path().c_str(), O_WRONLY | O_TRUNC);
            const int err = ::open(err_.path().c_str(), O_WRONLY | O_TRUNC);
            ::dup2(out, 1);
            ::dup2(err, 2);
            ::execvp(words[0], words.data());
            ::_exit(127);
        }
    }
    running(const running&) = delete;
    running& operator=(const running&) = delete;
    ~running() {
        if (status_) return;
        ::kill(child_, SIGKILL);
        ::waitpid(child_, nullptr, 0);
    }
    void signal(int number) const { ::kill(child_, number); }
    /// Whether it has ended; does not wait.
    [[nodiscard]] bool ended() {
        int status = 0;
        if (!status_ && ::waitpid(child_, &status, WNOHANG) == child_) status_ = status;
        return status_.has_value();
    }
    /// Its exit status; 1000 and the signal if one ended it.
    int wait() {
        if (!status_) {
            int status = 0;
            ::waitpid(child_, &status, 0);
            status_ = status;
        }
        return WIFEXITED(*status_) ? WEXITSTATUS(*status_) : 1000 + WTERMSIG(*status_);
    }
    [[nodiscard]] std::string errors() const { return err_.read(); }

private:
    scratch_file out_, err_;
    pid_t child_ = -1;
    std::optional<int> status_;
};

/// A run of branch-trace with a separate file.
class tracing {
public:
    explicit tracing(std::vector<std::string> command, std::vector<std::string> options = {}) {
        file_.remove();
        std::vector<std::string> all{BRANCH_TRACE, "--source", "step", "--output", file_.path()};
        all.insert(all.end(), options.begin(), options.end());
        all.emplace_back("--");
        all.insert(all.end(), command.begin(), command.end());
        program_.emplace(std::move(all));
    }
    [[nodiscard]] running& program() { return *program_; }
    [[nodiscard]] const std::string& path() const { return file_.path(); }

    /// To its end, which is checked: what was recorded.
    [[nodiscard]] const branches::branch_trace& trace(int status = 0) {
        BOOST_TEST(program_->wait() == status, program_->errors());
        trace_ = branches::read_branches(file_.path(), code);
        BOOST_TEST((trace_.nobodys == 0U || trace_.lost.total() != 0));
        BOOST_TEST(trace_.unreadable == 0U);
        // Within a thread, no branch begins before where the one before it went to.
        BOOST_TEST(branches::count_blocks(trace_.branches, code).broken == 0U);
        return trace_;
    }
    [[nodiscard]] std::uint64_t count(branch_kind kind) const {
        std::uint64_t sum = 0;
        for (const auto& b : trace_.branches) sum += b.taken() && b.kind == kind ? 1 : 0;
        return sum;
    }
    /// The last branch, "from -> to".
    [[nodiscard]] std::string last(std::size_t back = 0) {
        if (back >= trace_.branches.size()) return "";
        const auto& b = trace_.branches[trace_.branches.size() - 1 - back];
        return code.names(b.from).back().place() + " -> " +
               (b.to == 0 ? "" : code.names(b.to).back().place());
    }

    branches::code code;

private:
    scratch_file file_;
    std::optional<running> program_;
    branches::branch_trace trace_;
};

using sites = std::map<std::uint64_t, std::uint64_t>;

/// What callgrind counts in one object, by the address of the instruction in its file.
struct counted {
    sites conditional;  ///< taken
    sites calls;
    std::set<std::uint64_t> executed;  ///< every instruction
};

[[nodiscard]] counted count_by_callgrind(const std::vector<std::string>& command,
                                         const std::string& object) {
    const scratch_file out;
    std::vector<std::string> all{VALGRIND,
                                 "--tool=callgrind",
                                 "--dump-instr=yes",
                                 "--collect-jumps=yes",
                                 "--compress-strings=no",
                                 "--compress-pos=no",
                                 "--callgrind-out-file=" + out.path()};
    all.insert(all.end(), command.begin(), command.end());
    running valgrind(all);
    BOOST_REQUIRE_MESSAGE(valgrind.wait() == 0, valgrind.errors());
    counted found;
    std::ifstream in(out.path());
    bool here = false;
    sites* into = nullptr;
    std::uint64_t count = 0;
    for (std::string line; std::getline(in, line);) {
        // "jcnd=taken/executed ..." or "calls=count ...", and in the next line where from.
        if (line.starts_with("ob=")) {
            here = line.substr(3) == object;
        } else if (line.starts_with("jcnd=")) {
            into = &found.conditional;
            count = std::stoull(line.substr(5));
        } else if (line.starts_with("calls=")) {
            into = &found.calls;
            count = std::stoull(line.substr(6));
        } else if (line.starts_with("jump=")) {
            into = nullptr;
            count = 0;
        } else if (line.starts_with("0x")) {
            const std::uint64_t at = std::stoull(line, nullptr, 16);
            if (here) found.executed.insert(at);
            if (here && into != nullptr && count != 0) (*into)[at] += count;
            into = nullptr;
        }
    }
    return found;
}

/// Compares one run of a program with callgrind's count of another: in the program's own code,
/// instruction by instruction. In the code of the dynamic linker and the libraries they differ,
/// because valgrind preloads its own library and simulates a different processor, by whose features
/// functions are chosen (IFUNC).
void agree(const std::vector<std::string>& command, const std::string& object,
           const std::string& name_by_callgrind) {
    tracing t(command);
    const auto& trace = t.trace();
    const counted expected = count_by_callgrind(command, name_by_callgrind);
    const auto own = t.code.intern_object(object);
    sites conditional, calls;
    std::uint64_t returned = 0, called = 0;
    for (const auto& b : trace.branches) {
        if (!b.taken()) continue;
        const auto& from = t.code.at(b.from);
        if (b.kind == branch_kind::function_return && t.code.at(b.to).object == own) ++returned;
        // Where callgrind knows of no object: code outside .text, which begins and ends a program.
        if (from.object != own || !expected.executed.contains(from.address)) continue;
        if (b.kind == branch_kind::conditional) ++conditional[from.address];
        if (branches::is_call(b.kind)) {
            ++calls[from.address];
            ++called;
        }
    }
    sites wanted = expected.conditional;
    const symbols::object file(object);
    std::erase_if(wanted, [&](const auto& site) {
        // A repeated string instruction: to valgrind a loop, to a processor no branch.
        const auto bytes = file.bytes(site.first, 1);
        return bytes.size() == 1 && (bytes[0] == 0xF2 || bytes[0] == 0xF3) &&
               !conditional.contains(site.first);
    });
    BOOST_TEST(!wanted.empty());
    BOOST_TEST(bool(conditional == wanted), "taken conditional branches of " << object);
    BOOST_TEST(bool(calls == expected.calls), "calls of " << object);
    // Of returns callgrind says nothing. All calls return but those that are open at the exit, and
    // the one that exits.
    BOOST_TEST(returned <= called);
    BOOST_TEST(called - returned <= 6U);
    BOOST_TEST_MESSAGE(object << ": " << conditional.size() << " conditional branches, " << called
                              << " calls, " << returned << " returns");
}

[[nodiscard]] std::string real_path(const std::string& path) {
    return std::filesystem::canonical(path).string();
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_known_number_of_taken_branches_is_exactly_that) {
    std::vector<std::string> programs{known};
    if (BRANCH_KNOWN_32[0] != '\0') programs.emplace_back(BRANCH_KNOWN_32);
    for (const auto& program : programs) {
        for (const char* threshold : {"1", "7", "100000"}) {
            tracing t({program}, {"--buffer", "4K", "--threshold", threshold});
            if (program != known && t.program().wait() == 126) {
                BOOST_TEST_MESSAGE("skipped: this system runs no programs of 32 bits");
                break;
            }
            const auto& trace = t.trace();
            BOOST_TEST(trace.taken == 1005U);
            BOOST_TEST(trace.threads.size() == 1U);
            BOOST_TEST(t.count(branch_kind::conditional) == 999U);
            BOOST_TEST(t.count(branch_kind::call) == 2U);
            BOOST_TEST(t.count(branch_kind::function_return) == 2U);
            BOOST_TEST(t.count(branch_kind::jump) == 2U);
            BOOST_TEST(trace.lost.total() == 0U);
        }
    }
}

BOOST_AUTO_TEST_CASE(the_last_branches_before_a_crash_are_there) {
    tracing t({known, "crash"});
    const auto& trace = t.trace(128 + SIGSEGV);
    BOOST_TEST(trace.taken == 3U);
    BOOST_TEST(t.last() == "fault -> ");
    BOOST_TEST((trace.branches.back().kind == branch_kind::exception));
    BOOST_TEST(t.last(1) == "outer+0x1 -> fault");
    BOOST_REQUIRE(!trace.notes.empty());
    BOOST_TEST(trace.notes.back().what.find("SIGSEGV") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_last_branches_before_an_interrupt_are_there_and_older_ones_gave_way) {
    tracing t({known, "goes", "round"}, {"--size", "64K", "--buffer", "4K"});
    for (bool overwritten = false; !overwritten && !t.program().ended();) {
        ::usleep(1000);
        if (!std::filesystem::exists(t.path()) || std::filesystem::file_size(t.path()) == 0) {
            continue;
        }
        try {
            const auto file = trace_ring::reduce::trace_file::open(t.path());
            overwritten = file.statistics().lost.total() != 0;
        } catch (const trace_ring::format_error&) {  // it is being made
        }
    }
    t.program().signal(SIGINT);
    const auto& trace = t.trace(128 + SIGINT);
    BOOST_TEST(trace.lost.total() != 0U);
    BOOST_TEST(trace.taken > 1000U);
    BOOST_REQUIRE(!trace.branches.empty());
    BOOST_TEST(!trace.branches.back().taken());  // the signal's
    BOOST_TEST(t.last(1) == "endless+0x1 -> endless");
    BOOST_TEST(trace.notes.back().what.find("SIGINT") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(callgrind_counts_the_same_branches_in_a_program_without_libraries) {
    tracing t({known});
    (void)t.trace();
    const counted expected = count_by_callgrind({known}, "???");
    std::uint64_t conditional = 0, calls = 0;
    for (const auto& [at, count] : expected.conditional) conditional += count;
    for (const auto& [at, count] : expected.calls) calls += count;
    BOOST_TEST(conditional == t.count(branch_kind::conditional));
    BOOST_TEST(calls == t.count(branch_kind::call));
}

BOOST_AUTO_TEST_CASE(callgrind_counts_the_same_branches_in_bin_true) {
    agree({"/bin/true"}, real_path("/bin/true"), real_path("/bin/true"));
}

BOOST_AUTO_TEST_CASE(callgrind_counts_the_same_branches_in_gzip_of_a_real_file) {
    agree({"/bin/gzip", "-n", "-c", SMALL_FILE}, real_path("/bin/gzip"), real_path("/bin/gzip"));
}

BOOST_AUTO_TEST_CASE(another_program_in_the_same_process_is_followed_and_a_second_signal_ends_it) {
    tracing t({"env", "--ignore-signal=INT", known, "goes", "round"}, {"--threshold", "50"});
    const auto there = [&] {
        if (!std::filesystem::exists(t.path()) || std::filesystem::file_size(t.path()) == 0) {
            return false;
        }
        try {
            const auto file = trace_ring::reduce::trace_file::open(t.path());
            unsigned programs = 0;
            trace_ring::reduce::filter only;
            only.events = {"branch.process_begun"};
            for (auto cursor = file.forward(only); const auto* item = cursor.next();) {
                programs += std::holds_alternative<trace_ring::reduce::record_view>(*item) ? 1 : 0;
            }
            return programs == 2;
        } catch (const trace_ring::format_error&) {
            return false;
        }
    };
    while (!there() && !t.program().ended()) ::usleep(1000);
    t.program().signal(SIGINT);
    t.program().signal(SIGTERM);
    const int status = t.program().wait();
    BOOST_TEST((status == 128 + SIGINT || status == 128 + SIGTERM));
    const auto trace = branches::read_branches(t.path(), t.code);
    std::vector<std::string> programs;
    for (const auto& note : trace.notes) {
        const auto at = note.what.find(" runs ");
        if (at != std::string::npos) programs.push_back(note.what.substr(at + 6));
    }
    BOOST_REQUIRE(programs.size() == 2U);
    BOOST_TEST(programs[0] == real_path("/usr/bin/env"));
    BOOST_TEST(programs[1] == real_path(known));
}

BOOST_AUTO_TEST_CASE(processes_are_followed_on_request) {
    for (const bool follow : {false, true}) {
        std::vector<std::string> options;
        if (follow) options.emplace_back("--follow-forks");
        tracing t({"/bin/sh", "-c", known + "; exit 3"}, options);
        const auto& trace = t.trace(3);
        std::set<std::uint32_t> processes;
        for (const auto& thread : trace.threads) processes.insert(thread.process);
        BOOST_TEST(processes.size() == (follow ? 2U : 1U));
        std::uint64_t in_known = 0;
        const auto object = t.code.intern_object(real_path(known));
        for (const auto& b : trace.branches) {
            in_known += b.taken() && t.code.at(b.from).object == object ? 1 : 0;
        }
        BOOST_TEST(in_known == (follow ? 1005U : 0U));
    }
}

BOOST_AUTO_TEST_CASE(without_a_branch_trace_store_it_says_why_and_auto_steps) {
    if (std::filesystem::exists("/sys/bus/event_source/devices/intel_bts/type")) {
        BOOST_TEST_MESSAGE("skipped: this machine has one");
        return;
    }
    // The kernel's reports on the processor, in the order of their usefulness.
    std::string vendor, flags;
    std::ifstream in("/proc/cpuinfo");
    for (std::string line; std::getline(in, line) && (vendor.empty() || flags.empty());) {
        if (line.starts_with("vendor_id")) vendor = line;
        if (line.starts_with("flags")) flags = line + " ";
    }
    const auto has = [&](const char* flag) {
        return flags.find(std::string(" ") + flag + " ") != std::string::npos;
    };
    const std::string why = vendor.find("GenuineIntel") == std::string::npos
                                ? "the processor is not Intel's"
                            : !has("dts")    ? "the processor has no debug store (DS)"
                            : !has("dtes64") ? "the debug store has no 64-bit layout (DTES64)"
                            : !has("bts")    ? "the debug store stores no branches"
                            : has("pti")     ? "page-table isolation is on"
                                             : "the kernel offers no such PMU";
    const scratch_file file;
    file.remove();
    for (const std::string source : {"bts", "auto"}) {
        running r({BRANCH_TRACE, "--source", source, "--output", file.path(), "--", known});
        BOOST_TEST(r.wait() == (source == "bts" ? 125 : 0));
        BOOST_TEST(r.errors().find(why) != std::string::npos, r.errors());
        BOOST_TEST((r.errors().find("by single steps") != std::string::npos) == (source == "auto"));
        BOOST_TEST(std::filesystem::exists(file.path()) == (source == "auto"));
    }
}

BOOST_AUTO_TEST_CASE(what_cannot_be_done_is_said_with_a_status_of_its_own) {
    const scratch_file file;
    file.remove();
    const auto status_of = [&](std::vector<std::string> arguments) {
        std::vector<std::string> all{BRANCH_TRACE, "--output", file.path()};
        all.insert(all.end(), arguments.begin(), arguments.end());
        running r(all);
        const int status = r.wait();
        return std::pair(status, r.errors());
    };
    const auto [missing, missing_text] = status_of({"--source", "step", "--", "/nowhere/program"});
    BOOST_TEST(missing == 127);
    BOOST_TEST(missing_text.find("/nowhere/program") != std::string::npos);
    const auto [plain, plain_text] = status_of({"--source", "step", "--", SMALL_FILE});
    BOOST_TEST(plain == 126);
    BOOST_TEST(plain_text.find(SMALL_FILE) != std::string::npos);
    BOOST_TEST(status_of({"--source", "nothing", "--", known}).first == 125);
    BOOST_TEST(status_of({"--threshold", "0", "--", known}).first == 125);
    BOOST_TEST(status_of({}).first == 125);
    BOOST_TEST(status_of({"--help"}).first == 0);
    BOOST_TEST(status_of({"--version"}).first == 0);
    BOOST_TEST(!std::filesystem::exists(file.path()));
    file.write("no trace");
    BOOST_TEST(status_of({"--source", "step", "--", known}).first == 125);
    BOOST_TEST(file.read() == "no trace");
}

BOOST_AUTO_TEST_SUITE_END()
