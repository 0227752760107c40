// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// trace-clauses as its users run it: programs of both modes in one session, a running program that
// is attached to, its messages for mistakes.

#include <boost/test/unit_test.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include <trace_ring/policy/storage/file.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include <examples/trace_clauses/clause_programs.hpp>
#include <proof.hpp>
#include <recorder/scratch.hpp>
#include <recorder/system_calls.hpp>

BOOST_AUTO_TEST_SUITE(trace_clauses_program)

namespace tr = trace_ring;

namespace {

struct said {
    int status = 0;
    std::string text;  ///< of standard output and error
};
said run(const std::string& command) {
    said made;
    std::FILE* const pipe = ::popen(("( " + command + " ) 2>&1").c_str(), "r");
    BOOST_REQUIRE(pipe != nullptr);
    char part[4096];
    while (const std::size_t got = std::fread(part, 1, sizeof part, pipe))
        made.text.append(part, got);
    const int status = ::pclose(pipe);
    made.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return made;
}
std::string tool(const std::string& arguments) {
    return std::string("timeout 100 ") + TRACE_CLAUSES + " " + arguments;
}
/// Whether a source is available and permitted here; otherwise reports why not.
bool is_permitted(const std::string& source) {
    const said made = run(
        tool("--source " + source +
             " -e '@@uft:*:clause_known.64:handle:entry { count(); }' -- " CLAUSE_KNOWN_64 " -1"));
    if (made.status == 125) trace_ring_test::cannot_run(made.text);
    return made.status != 125;
}
/// Options, each for a source of firings that may be used here.
const std::vector<std::string>& sources() {
    static const std::vector<std::string> found = [] {
        std::vector<std::string> all;
        for (const std::string each : {"kernel", "ptrace"}) {
            if (is_permitted(each)) all.push_back("--source " + each + " ");
        }
        return all;
    }();
    return found;
}
/// The known program, for each mode whose programs run here.
const std::vector<std::string>& known_programs() {
    static const std::vector<std::string> found = [] {
        std::vector<std::string> all{CLAUSE_KNOWN_64};
        if (clause_programs::runs(32)) all.emplace_back(CLAUSE_KNOWN_32);
        return all;
    }();
    return found;
}
std::string contents(const std::string& file) {
    std::ifstream in(file);
    std::ostringstream all;
    all << in.rdbuf();
    return all.str();
}

/// A process that is started by a shell, and continues independently.
class started {
public:
    explicit started(const std::string& command) : process_(::fork()) {
        if (process_ == 0) {
            ::execl("/bin/sh", "sh", "-c", ("exec " + command).c_str(), nullptr);
            ::_exit(127);
        }
    }
    started(const started&) = delete;
    started& operator=(const started&) = delete;
    ~started() {
        if (process_ > 0) ::kill(process_, SIGKILL);
        static_cast<void>(end());
    }
    [[nodiscard]] ::pid_t process() const noexcept { return process_; }
    void tell(int signal) const noexcept { ::kill(process_, signal); }
    int end() {
        int status = -1;
        if (process_ > 0) ::waitpid(process_, &status, 0);
        process_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }

private:
    ::pid_t process_;
};
/// Until a file has this text.
bool comes(const std::string& file, const std::string& text) {
    for (int tries = 0; tries < 400; ++tries) {
        if (contents(file).find(text) != std::string::npos) return true;
        ::usleep(50'000);
    }
    return false;
}

/// The lines that programs have printed, by their mode, from what was captured at `handle`.
std::map<std::uint64_t, std::string> lines_of(const std::string& trace) {
    std::map<std::uint64_t, std::string> told;    // by mode
    std::map<std::uint32_t, std::uint64_t> bits;  // by lane
    const auto file = tr::reduce::trace_file::open(trace);
    std::uint64_t last = 0;
    for (auto cursor = file.forward(); const auto* item = cursor.next();) {
        const auto* const one = std::get_if<tr::reduce::record_view>(item);
        BOOST_REQUIRE(one != nullptr);
        BOOST_REQUIRE(one->time() >= last);
        last = one->time();
        if (one->begins()) bits[one->lane().number] = one->field("bits").u64();
        std::string& all = told[bits.at(one->lane().number)];
        const auto number = [&](const char* name) {
            return std::to_string(one->field(name).i64());
        };
        if (one->ends()) {
            all += " " + number("retval") + "\n";
            continue;
        }
        all += number("of->id") + " " + std::string(one->field("str(of->name)").text()) + " " +
               number("of->in[1].a") + " " + number("of->in[1].b") + " " +
               std::to_string(one->field("of->wide").u64()) + " " + number("of->urgent") + " " +
               number("of->left") + " " + number("n");
    }
    return told;
}
const std::string captures =
    " { capture(of->id, str(of->name), of->in[1].a, of->in[1].b, of->wide, of->urgent, of->left, "
    "n); }";
/// A clause for both programs, and one for their results.
std::string clauses_of(std::string points) {
    std::string made = "-e '" + points + captures + "' -e '";
    for (auto at = points.find(":entry"); at != std::string::npos; at = points.find(":entry")) {
        points.replace(at, 6, ":exit");
    }
    return made + points + " { capture(retval); }'";
}

}  // namespace

BOOST_AUTO_TEST_CASE(one_session_traces_both_modes_and_its_trace_reads_as_any_other) {
    if (!clause_programs::runs(32) || !is_permitted("kernel")) return;
    const test::folder folder;
    const std::string trace = folder / "both.trace";
    // Copies, which no other test runs: all processes are traced.
    const std::string known_64 = folder / "known.64";
    const std::string known_32 = folder / "known.32";
    std::filesystem::copy_file(CLAUSE_KNOWN_64, known_64);
    std::filesystem::copy_file(CLAUSE_KNOWN_32, known_32);
    const std::string points =
        "@@uft:*:" + known_64 + ":handle:entry, @@uft:*:" + known_32 + ":handle:entry";
    started tracer(tool("--source kernel --all -o " + trace + " " + clauses_of(points) + " > " +
                        (folder / "said") + " 2>&1"));
    BOOST_REQUIRE(comes(folder / "said", "4 points"));
    ::usleep(300'000);
    constexpr const char* count = " 10000";
    const said both = run(known_64 + count + " > " + (folder / "64") + " & " + known_32 + count +
                          " > " + (folder / "32") + "; wait");
    BOOST_TEST(both.status == 0);
    // By its own end, as by Ctrl-C.
    BOOST_TEST(run("pkill -INT -P " + std::to_string(tracer.process())).status == 0);
    BOOST_TEST(tracer.end() == 0);
    BOOST_TEST(contents(folder / "said").find("40000 ran, 0 not wanted, 0 unreadable, 0 lost") !=
               std::string::npos);

    auto told = lines_of(trace);
    BOOST_TEST((told[64] == contents(folder / "64")));
    BOOST_TEST((told[32] == contents(folder / "32")));
    trace_ring_test::proof("clauses", 40'000, "firings of programs of both modes");
}

BOOST_AUTO_TEST_CASE(breakpoints_in_programs_of_both_modes_tell_what_these_print) {
    if (!clause_programs::runs(32) || !is_permitted("ptrace")) return;
    const test::folder folder;
    const std::string trace = folder / "both.trace";
    // Each waits for a line.
    class waiting {
    public:
        waiting(const std::string& program, const test::folder& in, const std::string& name)
            : go_(made(in / ("go" + name))),
              of(program + " 10000 waits < " + go_ + " > " + (in / name)),
              fd_(::open(go_.c_str(), O_WRONLY)) {
            const auto exe = "/proc/" + std::to_string(of.process()) + "/exe";
            while (std::filesystem::read_symlink(exe) != program) ::usleep(1000);
        }
        int end() {
            BOOST_TEST(::write(fd_.get(), "\n", 1) == 1);
            return of.end();
        }

    private:
        static std::string made(const std::string& fifo) {
            BOOST_REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
            return fifo;
        }
        std::string go_;

    public:
        started of;

    private:
        tr::file_descriptor fd_;
    };
    waiting wide(CLAUSE_KNOWN_64, folder, "64");
    waiting narrow(CLAUSE_KNOWN_32, folder, "32");
    const auto point = [](const waiting& of, const std::string& program) {
        return "@@uft:" + std::to_string(of.of.process()) + ":" + program + ":handle:entry";
    };
    started tracer(
        tool("--source ptrace -o " + trace + " -p " + std::to_string(narrow.of.process()) + " " +
             clauses_of(point(wide, CLAUSE_KNOWN_64) + ", " + point(narrow, CLAUSE_KNOWN_32)) +
             " > " + (folder / "said") + " 2>&1"));
    BOOST_REQUIRE(comes(folder / "said", "4 points"));
    BOOST_TEST(wide.end() == 0);
    BOOST_TEST(narrow.end() == 0);
    BOOST_TEST(tracer.end() == 0);
    BOOST_TEST(contents(folder / "said").find("40000 ran, 0 not wanted, 0 unreadable, 0 lost") !=
               std::string::npos);
    auto told = lines_of(trace);
    BOOST_TEST((told[64] == contents(folder / "64")));
    BOOST_TEST((told[32] == contents(folder / "32")));
    trace_ring_test::proof("clauses", 40'000, "firings of programs of both modes");
}

// The kernel takes the code, and refuses the points: then the session begins anew, by ptrace.
BOOST_AUTO_TEST_CASE(a_begin_clause_tells_once_whichever_source_it_is) {
    if (sources().size() < 2) return;
    const int result = test::in_child([] {
        if (!test::refuse_calls({{SYS_bpf}}, EPERM)) return test::skipped;
        const said made =
            run(tool("-e '@@begin { capture(bits); } @@uft:*:clause_known.64:handle:entry { "
                     "count(bits); }' -- " CLAUSE_KNOWN_64 " -3"));
        test::checks check;
        check(made.status == 0, made.text);
        check(made.text.find("breakpoints by ptrace") != std::string::npos, made.text);
        const std::size_t first = made.text.find("begin pid=");
        check(first != std::string::npos, made.text);
        check(made.text.find("begin pid=", first + 1) == std::string::npos, made.text);
        check(made.text.find("64: 3") != std::string::npos, made.text);
        return check.failed;
    });
    TRACE_RING_TEST_SKIP_IF(result, "no filters of system calls");
    BOOST_TEST(result == 0);
}

BOOST_AUTO_TEST_CASE(whom_the_kernel_refuses_has_breakpoints_instead_and_is_told_so) {
    const test::folder folder;
    std::filesystem::permissions(
        folder / "", std::filesystem::perms::others_exec | std::filesystem::perms::others_read,
        std::filesystem::perm_options::add);
    // Where another user reaches them.
    const std::string tracer = folder / "tracer";
    const std::string known = folder / "known";
    std::filesystem::copy_file(TRACE_CLAUSES, tracer);
    const std::string nobody =
        "setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all ";
    if (run(nobody + tracer + " --version").status != 0) {
        return trace_ring_test::cannot_run(
            "another user cannot be had here, or does not reach the programs");
    }
    for (const auto& program : known_programs()) {
        std::filesystem::copy_file(program, known,
                                   std::filesystem::copy_options::overwrite_existing);
        const std::string clause =
            " -e '@@uft:*:known:handle:entry when n != 7 { capture(of->id, str(of->name)); }' ";
        const said made = run(nobody + tracer + clause + "-- " + known + " -10000");
        BOOST_TEST(made.status == 0);
        const std::string sentence =
            "trace-clauses: cannot use the kernel's BPF: it is not permitted: it needs the "
            "capabilities CAP_BPF and CAP_PERFMON, as root has them, and a kernel that is not "
            "locked down; breakpoints by ptrace are used instead\n";
        BOOST_TEST(made.text.find(sentence) != std::string::npos, made.text.substr(0, 1000));
        std::istringstream lines(made.text);
        int n = 0;
        for (std::string line; std::getline(lines, line);) {
            if (line.find("handle pid=") != 0) continue;
            if (n == 7) ++n;
            const std::string end = " of->id=" + std::to_string(-n) + " str(of->name)=\"name" +
                                    std::to_string(n) + "\"";
            BOOST_REQUIRE(line.size() > end.size());
            BOOST_REQUIRE(line.substr(line.size() - end.size()) == end);
            ++n;
        }
        BOOST_TEST(n == 10'000);
        BOOST_TEST(made.text.find("9999 ran, 1 not wanted, 0 unreadable, 0 lost") !=
                   std::string::npos);
        const said refused =
            run(nobody + tracer + " --source kernel" + clause + "-- " + known + " -1");
        BOOST_TEST(refused.status == 125);
        BOOST_TEST(refused.text.find("CAP_BPF") != std::string::npos);
    }
    const said others = run(nobody + tracer + " --source ptrace -e '@@uft:*:" + known +
                            ":handle:entry { }' -p " + std::to_string(::getpid()));
    BOOST_TEST(others.status == 125);
}

BOOST_AUTO_TEST_CASE(a_program_with_breakpoints_is_unharmed_when_its_tracer_is_killed) {
    if (!is_permitted("ptrace")) return;
    const test::folder folder;
    const std::string out = folder / "out";
    const std::string program = std::string(CLAUSE_KNOWN_64) + " -600000";
    const std::string right = run(program).text;
    std::mt19937_64 random(1);
    const unsigned kills = trace_ring_test::repeats(200);
    unsigned killed = 0;
    for (unsigned n = 0; n < kills; ++n) {
        started traced(program + " > " + out);
        started tracer(std::string(TRACE_CLAUSES) + " --source ptrace --quiet -p " +
                       std::to_string(traced.process()) +
                       " -e '@@uft:*:" CLAUSE_KNOWN_64
                       ":handle:entry { count(str(of->name, 4)); } @@uft:*:" CLAUSE_KNOWN_64
                       ":handle:exit { count(); }' > /dev/null 2>&1");
        ::usleep(static_cast<unsigned>(random() % 150'000));
        tracer.tell(SIGKILL);
        killed += tracer.end() == 128 + SIGKILL ? 1 : 0;
        BOOST_TEST(traced.end() == 0);
        BOOST_TEST(contents(out) == right);
    }
    BOOST_TEST(killed > kills / 2);
    trace_ring_test::proof("clauses", kills, "kills of a tracer");
}

BOOST_AUTO_TEST_CASE(all_functions_of_a_library_may_have_breakpoints) {
    if (!is_permitted("ptrace")) return;
    const test::folder folder;
    std::ofstream(folder / "work.py")
        << "import threading, subprocess, os\n"
           "sums = [0] * 4\n"
           "def work(k):\n"
           "    for i in range(100):\n"
           "        sums[k] += len(str(i) * 100)\n"
           "threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]\n"
           "[t.start() for t in threads]\n"
           "print(subprocess.run(['/bin/echo', 'spawned'], capture_output=True).stdout)\n"
           "[t.join() for t in threads]\n"
           "forked = os.fork()\n"
           "if forked == 0:\n"
           "    os._exit(sum(len(str(i)) for i in range(100)) - 187)\n"
           "print(os.waitpid(forked, 0)[1] // 256, sum(sums), flush=True)\n";
    const std::string program = "/usr/bin/python3 -S -E " + (folder / "work.py");
    const said right = run(program);
    if (right.status != 0) return;  // no python3 there
    BOOST_TEST(right.text == "b'spawned\\n'\n3 76000\n");
    const said made =
        run(tool("--source ptrace -e '@@uft:*:libc.so.6:*:entry, @@uft:*:ld-linux*:*:entry { "
                 "count(bits); }' -e '@@uft:*:libc.so.6:*a*:exit { count(bits); }' -- " +
                 program + " 2> " + (folder / "said")));
    BOOST_TEST(made.status == 0);
    BOOST_TEST(made.text.find(right.text) == 0U, made.text);
    BOOST_TEST(contents(folder / "said").find(" ran, 0 not wanted, 0 unreadable, ") !=
               std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_running_program_is_attached_to_and_goes_on_unharmed) {
    for (const auto& source : sources()) {
        const test::folder folder;
        // Threads that allocate until they are stopped, with known sums.
        std::ofstream(folder / "work.py")
            << "import os, threading\n"
               "sums, rounds = [0] * 4, [0] * 4\n"
               "def work(k):\n"
               "    while not os.path.exists('"
            << folder / "stop"
            << "'):\n"
               "        rounds[k] += 1\n"
               "        for i in range(10000):\n"
               "            sums[k] += len(str(i) * 100)\n"
               "print('begun', flush=True)\n"
               "threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]\n"
               "[t.start() for t in threads]\n"
               "[t.join() for t in threads]\n"
               "print([one - 3889000 * many for one, many in zip(sums, rounds)])\n";
        started program("/usr/bin/python3 " + (folder / "work.py") + " > " + (folder / "out"));
        if (!comes(folder / "out", "begun")) return;  // no python3 there
        started tracer(std::string(TRACE_CLAUSES) + " " + source + "--interval 0.2 -p " +
                       std::to_string(program.process()) +
                       " -e '@@uft:*:libc.so.6:malloc:entry { count(comm); hist(arg0); }' > " +
                       (folder / "said") + " 2>&1");
        BOOST_REQUIRE(comes(folder / "said", "malloc count(comm)\n  \"python3\": "));
        tracer.tell(SIGINT);
        BOOST_TEST(tracer.end() == 0);
        std::ofstream(folder / "stop").put('.');
        BOOST_TEST(program.end() == 0);
        BOOST_TEST(contents(folder / "out") == "begun\n[0, 0, 0, 0]\n");
        const std::string shown = contents(folder / "said");
        // On a busy machine some may be lost, and are counted then.
        const std::size_t counted = shown.rfind("  \"python3\": ");
        BOOST_REQUIRE(counted != std::string::npos);
        const std::string count = std::to_string(std::stoull(shown.substr(counted + 13)));
        BOOST_TEST(
            shown.find(": " + count + " ran, 0 not wanted, 0 unreadable, ") != std::string::npos,
            shown);
    }
}

BOOST_AUTO_TEST_CASE(a_database_under_load_is_attached_to_and_goes_on_unharmed) {
    const test::folder folder;
    if (run("sqlite3 --version").status != 0) {
        std::printf("skipped: no sqlite3 here (Debian: sqlite3)\n");
        return;
    }
    // A table grows and is read until it is stopped; each line is as long as the buffer.
    const std::string line = "0|1|99 north|" + std::string(4096, '.') + "\n";
    std::ofstream(folder / "more.sql")
        << "insert into t select value, printf('%d north', value) from generate_series(1, 100);\n"
           "select count(*) % 100, sum(n) = count(*) / 100 * 5050, max(text), "
           "printf('%.4096c', '.') from t where text like '% north';\n";
    for (const auto& source : sources()) {
        const std::string out = folder / ("out" + source.substr(9, 6));
        const std::string go = out + ".go";
        const std::string end = out + ".end";
        BOOST_REQUIRE(::mkfifo(go.c_str(), 0600) == 0);
        started load("sh -c 'exec > " + go +
                     "; echo \"create table t (n integer, text text);\"; while ! test -e " + end +
                     "; do cat " + (folder / "more.sql") +
                     "; done; echo \"pragma integrity_check;\"'");
        started program("sqlite3 " + out + ".db < " + go + " > " + out);
        BOOST_REQUIRE(comes(out, line));
        const std::string said = out + ".said";
        started tracer(std::string(TRACE_CLAUSES) + " " + source + "--interval 0.2 -p " +
                       std::to_string(program.process()) +
                       " -e '@@uft:*:libc.so.6:malloc:entry { hist(arg0); } "
                       "@@uft:*:libc.so.6:read:exit, @@uft:*:libc.so.6:pwrite64:exit { "
                       "count(comm, retval); }' > " +
                       said + " 2>&1");
        BOOST_TEST(comes(said, "\"sqlite3\", "));
        tracer.tell(SIGINT);
        BOOST_TEST(tracer.end() == 0);
        BOOST_TEST(contents(said).find(" ran, 0 not wanted, 0 unreadable, ") != std::string::npos,
                   contents(said));
        const auto lines = [&] {
            const std::string all = contents(out);
            return std::count(all.begin(), all.end(), '\n');
        };
        const auto before = lines();
        for (int tries = 0; tries < 400 && lines() < before + 3; ++tries) ::usleep(50'000);
        std::ofstream(end) << '\n';
        BOOST_TEST(load.end() == 0);
        BOOST_TEST(program.end() == 0);
        std::string right;
        for (auto n = lines(); n > 1; --n) right += line;
        BOOST_TEST((contents(out) == right + "ok\n"));
    }
}

BOOST_AUTO_TEST_CASE(scripts_of_thousands_of_declarations_take_no_more_than_their_length) {
    if (sources().empty()) return;
    const test::folder folder;
    std::ofstream script(folder / "script");
    script << "typedef int t0; struct s0 { t0 x; };";
    for (int i = 1; i < 900; ++i) {
        script << "typedef t" << i - 1 << " t" << i << "; struct s" << i << " { struct s" << i - 1
               << " m; };\n";
    }
    script << "@@uft:*:clause_known.64:handle:entry { count(); }\n";
    script.close();
    const said made = run("timeout 20 " TRACE_CLAUSES " " + sources()[0] + "-f " +
                          (folder / "script") + " -- " CLAUSE_KNOWN_64 " -3");
    BOOST_TEST(made.status == 0, made.text);
    BOOST_TEST(made.text.find("3 ran") != std::string::npos, made.text);
}

BOOST_AUTO_TEST_CASE(probes_have_their_arguments_and_functions_their_own_types) {
    for (const std::string& program : known_programs()) {
        for (const auto& source : sources()) {
            const said probed = run(
                tool(source +
                     "-e '@@usdt:*:clause_known*:shop:sold when arg0 < -1 { capture(arg0); }' -- " +
                     program + " -4"));
            BOOST_TEST(probed.text.find(" arg0=-2\n") != std::string::npos, probed.text);
            BOOST_TEST(probed.text.find(" arg0=-3\n") != std::string::npos, probed.text);
            BOOST_TEST(
                probed.text.find("2 ran, 2 not wanted, 0 unreadable, 0 lost") != std::string::npos,
                probed.text);
            // What the program, or the script, calls a number.
            const said named = run(
                tool(source +
                     "-e 'enum mine { fourth = 3 };' -e '@@uft:*:clause_known*:handle:entry when n "
                     "== third or n == fourth { capture(n); }' -- " +
                     program + " -6"));
            BOOST_TEST(named.text.find(" n=2\n") != std::string::npos, named.text);
            BOOST_TEST(named.text.find(" n=3\n") != std::string::npos, named.text);
            BOOST_TEST(named.text.find("2 ran, 4 not wanted") != std::string::npos, named.text);
            // main has no `of`: it is left out, and said to be.
            const said both = run(
                tool(source + "-e '@@uft:*:clause_known*:*a*n*:entry { capture(of->id); }' -- " +
                     program + " -4"));
            BOOST_TEST(both.text.find("main:entry is left out: there is no '") != std::string::npos,
                       both.text);
            BOOST_TEST(both.text.find("handle pid=") != std::string::npos, both.text);
        }
    }
}

BOOST_AUTO_TEST_CASE(system_calls_are_traced_by_their_names_in_both_modes) {
    if (!is_permitted("kernel")) return;
    for (const std::string& program : known_programs()) {
        const std::string bits = program.substr(program.size() - 2);
        // It opens its libraries, and then its maps.
        const said opened =
            run(tool("-e '@@syscall:*:open*:entry { count(bits); } @@syscall:*:open*:exit when "
                     "retval > 2 and str(arg1) == \"/proc/self/maps\" "
                     "{ capture(str(arg1), retval); }' -- " +
                     program));
        BOOST_TEST(opened.text.find("openat.exit pid=") != std::string::npos, opened.text);
        BOOST_TEST(opened.text.find(" str(arg1)=\"/proc/self/maps\" retval=") != std::string::npos,
                   opened.text);
        BOOST_TEST(opened.text.find("\n  " + bits + ": ") != std::string::npos, opened.text);
        BOOST_TEST(opened.text.find(" 0 unreadable, 0 lost") != std::string::npos, opened.text);
        // To a pipe it writes once, at its end: its line of digits.
        const said wrote =
            run(tool("-e '@@syscall:*:write:exit when arg0 == 1 { count(comm, bits, retval == "
                     "arg2); }' -- " +
                     program + " -1000"));
        BOOST_TEST(wrote.text.find("\n  \"clause_known." + bits + "\", " + bits + ", 1: 1\n") !=
                       std::string::npos,
                   wrote.text);
        BOOST_TEST(wrote.text.find(": 1 ran, 0 not wanted") != std::string::npos, wrote.text);
    }
    // All of them, of all processes: those of trace-clauses itself would be without end.
    const test::folder folder;
    started tracer(
        tool("--all --ring 1M -e '@@syscall:*:*:entry when comm == \"trace-clauses\" { "
             "capture(arg0); }' -e '@@syscall:*:*:exit { count(comm, pid); }' > " +
             (folder / "said") + " 2>&1"));
    BOOST_REQUIRE(comes(folder / "said", " points"));
    // Another test may run the program at the same time.
    const std::string own =
        clause_programs::printed("pgrep -P " + std::to_string(tracer.process()) + " | tr -d '\\n'");
    BOOST_TEST(run("sleep 0.1; pkill -INT -P " + std::to_string(tracer.process())).status == 0);
    BOOST_TEST(tracer.end() == 0);
    const std::string all = contents(folder / "said");
    BOOST_TEST(!own.empty());
    BOOST_TEST(all.find("  \"sleep\", ") != std::string::npos, all);
    BOOST_TEST(all.find("  \"trace-clauses\", " + own + ": ") == std::string::npos, all);
    BOOST_TEST(all.find(" pid=" + own + " ") == std::string::npos, all);
    // Ctrl-C while the kernel looks at the programs is no reason to refuse one.
    for (const std::string after : {"0.2", "0.4", "0.6"}) {
        const said early = run("timeout -s INT " + after + " " + TRACE_CLAUSES +
                               " --all --ring 1M -e '@@syscall:*:*:exit { count(comm); }'");
        BOOST_TEST(early.text.find("does not accept") == std::string::npos, early.text);
    }
}

BOOST_AUTO_TEST_CASE(elapsed_of_a_system_call_is_within_what_the_program_measures) {
    if (!is_permitted("kernel")) return;
    const test::folder folder;
    const std::string program = folder / "sleeps";
    for (const int bits : {64, 32}) {
        if (!clause_programs::runs(bits)) continue;
        BOOST_REQUIRE(clause_programs::build(program, R"(
            #include <stdio.h>
            #include <sys/wait.h>
            #include <time.h>
            #include <unistd.h>
            static long long now(void) {
                struct timespec t;
                clock_gettime(CLOCK_MONOTONIC, &t);
                return t.tv_sec * 1000000000LL + t.tv_nsec;
            }
            int main() {
                for (int i = 1; i <= 3; ++i) {
                    struct timespec wait = {0, i * 20000000L};
                    const long long begin = now();
                    nanosleep(&wait, 0);
                    printf("%lld\n", now() - begin);
                }
                fflush(stdout);
                if (fork() == 0) _exit(0);
                wait(0);
                return 0;
            })",
                                             "c", bits, "-O1"));
        const said made =
            run(tool("--children -e '@@syscall:*:*nanosleep*:exit when elapsed > "
                     "25ms { capture(elapsed); } @@syscall:*:*clone*:exit, "
                     "@@syscall:*:fork:exit { capture(retval, elapsed); }' -- " +
                     program));
        BOOST_TEST(made.status == 0);
        std::vector<long long> measured, told;
        std::istringstream lines(made.text);
        for (std::string line; std::getline(lines, line);) {
            const std::size_t at = line.find("nanosleep");
            const std::size_t value = line.find(" elapsed=");
            if (at != std::string::npos && value != std::string::npos)
                told.push_back(std::stoll(line.substr(value + 9)));
            if (!line.empty() && line.find_first_not_of("0123456789") == std::string::npos)
                measured.push_back(std::stoll(line));
        }
        BOOST_REQUIRE_MESSAGE(measured.size() == 3U, made.text);
        BOOST_REQUIRE_MESSAGE(told.size() == 2U, made.text);
        for (const std::size_t i : {0U, 1U}) {
            BOOST_TEST(told[i] >= 20'000'000 * static_cast<long long>(i + 2));
            BOOST_TEST(told[i] <= measured[i + 1]);
        }
        // A child leaves a call that it has not entered.
        BOOST_TEST(made.text.find(" retval=0 elapsed=(unreadable)\n") != std::string::npos,
                   made.text);
    }
}

BOOST_AUTO_TEST_CASE(a_reference_is_what_it_refers_to) {
    const test::folder folder;
    const std::string program = folder / "refers";
    for (const int bits : {64, 32}) {
        if (!clause_programs::build(
                program,
                "extern \"C\" int printf(const char *, ...);\n"
                "enum class state { open = 3, shut };\n"
                "struct item { int id; int &other; const item *&next; state is : 4; };\n"
                "extern \"C\" __attribute__((noinline)) int &uses(int &n, item &of, int &&last,\n"
                "    int *&pointer, const int (&row)[3], const state &is) {\n"
                "  n += of.id + last + *pointer + row[1] + (int)is; return of.other; }\n"
                "int main() { int n = 7, m = -9, at = 5; int *pointer = &at; int row[3] = {1, 2, "
                "4};\n"
                "  const item *none = 0; item of{42, m, none, state::open};\n"
                "  uses(n, of, 11, pointer, row, state::shut);\n"
                "  printf(\"n=%d here=%d\\n\", n, (int)(&of.other == &m)); return 0; }\n",
                "c++", bits, "-O0 -g"))
            return;
        if (!clause_programs::runs(bits)) continue;
        for (const auto& from : sources()) {
            const said made = run(tool(
                from +
                "-e '@@uft:*:refers:uses:entry when n == 7 && n + 1 == 8 && of.id > 41 && "
                "&of.id == (int *)&of && *&n == 7 && sizeof(of) > sizeof(n) { capture(n, of.id, "
                "of.other, last, *pointer, row, row[2], is, of.is, (long)of.next); } "
                "@@uft:*:refers:uses:exit { capture(retval, retval + 1); }' -- " +
                program));
            BOOST_TEST(made.status == 0);
            for (const char* const value :
                 {" n=7 ", " of.id=42 ", " of.other=-9 ", " last=11 ", " *pointer=5 ",
                  "row=", " row[2]=4 ", " is=shut ", " of.is=open ", "(long)of.next=0", "retval=-9",
                  "retval + 1=-8", "n=71 here=1"})
                BOOST_TEST(made.text.find(value) != std::string::npos, value << made.text);
        }
        for (const auto& [clause, why] : {std::pair{"capture(of->id)", "which is not a pointer"},
                                          {"capture(*n)", "no pointer"},
                                          {"capture(&7)", "no object in memory"},
                                          {"capture(&of.is)", "bit-field"},
                                          {"capture(of)", "name a member"}}) {
            const said refused = run(tool(std::string("-e '@@uft:*:refers:uses:entry { ") + clause +
                                          "; }' -- " + program));
            BOOST_TEST(refused.status != 0);
            BOOST_TEST(refused.text.find(why) != std::string::npos, refused.text);
        }
    }
}

BOOST_AUTO_TEST_CASE(returns_that_are_not_seen_are_told_and_are_losses_of_the_trace) {
    if (!is_permitted("kernel")) return;
    const test::folder folder;
    const std::string program = folder / "deep";
    for (const int bits : {64, 32}) {
        // With a tail call: the kernel has to await its returns.
        if (!clause_programs::build(
                program,
                "__attribute__((noinline)) int last(int n) {\n"
                "  __asm__ volatile(\"\"); return n; }\n"
                "__attribute__((noinline)) int deep(int n) {\n"
                "  if (n == 0) return last(n);\n"
                "  int r = deep(n - 1); __asm__ volatile(\"\"); return r + 1; }\n"
                "int main() { for (int i = 0; i < 3; ++i) deep(199);\n"
                "  return 0; }\n",
                "c", bits, "-O2 -g"))
            return;
        if (!clause_programs::runs(bits)) continue;
        const std::string trace = folder / "deep.trace";
        const said made = run(tool("--source kernel -o " + trace +
                                   " -e '@@uft:*:deep:deep:exit { capture(retval); } "
                                   "@@uft:*:deep:deep:entry { count(); }' -- " +
                                   program));
        BOOST_TEST(made.status == 0);
        BOOST_TEST(made.text.find("deep count()\n  600\n") != std::string::npos, made.text);
        BOOST_TEST(made.text.find("792 ran, 0 not wanted, 0 unreadable, 0 lost, 408 returns not "
                                  "seen\n") != std::string::npos,
                   made.text);
        std::uint64_t lost = 0;
        std::uint64_t records = 0;
        const auto file = tr::reduce::trace_file::open(trace);
        for (auto cursor = file.forward(); const auto* item = cursor.next();) {
            if (std::holds_alternative<tr::reduce::record_view>(*item)) ++records;
            const auto* const loss = std::get_if<tr::reduce::loss_item>(item);
            if (loss != nullptr) lost += loss->count;
        }
        BOOST_TEST(records == 3U * 64);
        BOOST_TEST(lost == 3U * 136);
    }
}

BOOST_AUTO_TEST_CASE(returns_behind_a_longjmp_over_many_frames_are_seen) {
    const test::folder folder;
    const std::string program = folder / "jumps";
    if (!clause_programs::build(program,
                                "#include <setjmp.h>\njmp_buf back;\n"
                                "__attribute__((noinline)) int deep(int n) {\n"
                                "  if (n == 0) longjmp(back, 1);\n"
                                "  int r = deep(n - 1); __asm__ volatile(\"\"); return r + 1; }\n"
                                "__attribute__((noinline)) int after(int n) {\n"
                                "  __asm__ volatile(\"\"); return n; }\n"
                                "int main() { if (!setjmp(back)) deep(200);\n"
                                "  for (int i = 0; i < 120; ++i) after(i); return 0; }\n",
                                "c", 64, "-O1 -g"))
        return;
    for (const auto& from : sources()) {
        const said made = run(tool(from +
                                   "-e '@@uft:*:jumps:deep:exit, @@uft:*:jumps:after:exit "
                                   "{ count(func); }' -- " +
                                   program));
        BOOST_TEST(made.status == 0);
        BOOST_TEST(made.text.find("  \"after\": 120\n") != std::string::npos, made.text);
        BOOST_TEST(
            made.text.find(" 120 ran, 0 not wanted, 0 unreadable, 0 lost\n") != std::string::npos,
            made.text);
    }
}

BOOST_AUTO_TEST_CASE(with_children_all_that_a_program_forks_is_traced_and_nothing_else) {
    if (!clause_programs::runs(32) || !is_permitted("kernel")) return;
    const test::folder folder;
    const std::string known_64 = folder / "known.64";
    const std::string known_32 = folder / "known.32";
    std::filesystem::copy_file(CLAUSE_KNOWN_64, known_64);
    std::filesystem::copy_file(CLAUSE_KNOWN_32, known_32);
    // Children of both modes, one's child, one whose parent has ended before, and others' work.
    std::ofstream(folder / "work")
        << known_64 << " -100\n"
        << known_32 << " -20 &\n( ( sleep 0.3; " << known_32 << " -3; touch " << folder / "done"
        << " ) & )\n( " << known_64 << " -4 )\nwait\nwhile [ ! -e " << folder / "done"
        << " ]; do sleep 0.05; done\nexec " << known_64 << " -1\n";
    const std::string entries = "-e '@@uft:*:" + known_64 + ":handle:entry, @@uft:*:" + known_32 +
                                ":handle:entry { count(bits, comm); }' ";
    const std::string writes =
        "-e '@@syscall:*:write:entry when arg0 == 1 { count(bits, comm, arg2); }' ";
    const started others("sh -c 'while " + known_64 + " -7 && " + known_32 +
                         " -9; do :; done' > /dev/null");
    const said all = run(tool("--children " + entries + writes + "-- sh " + (folder / "work")));
    BOOST_TEST(all.text.find(
                   "handle count(bits, comm)\n  32, \"known.32\": 23\n  64, \"known.64\": 105\n") !=
                   std::string::npos,
               all.text);
    // A line of each, as long as its sum.
    for (const char* const line : {"  32, \"known.32\", 7: 1\n", "  32, \"known.32\", 9: 1\n",
                                   "  64, \"known.64\", 10: 1\n", "  64, \"known.64\", 2: 1\n"}) {
        BOOST_TEST(all.text.find(line) != std::string::npos, all.text);
    }
    BOOST_TEST(all.text.find(" 0 unreadable, 0 lost") != std::string::npos, all.text);
    const said alone = run(tool(entries + writes + "-- sh " + (folder / "work")));
    BOOST_TEST(
        alone.text.find("handle count(bits, comm)\n  64, \"known.64\": 1\n") != std::string::npos,
        alone.text);
}

BOOST_AUTO_TEST_CASE(in_a_pid_namespace_processes_have_its_numbers) {
    const std::string space = "unshare --pid --mount --fork --mount-proc --kill-child ";
    if (run(space + "true").status != 0)
        return trace_ring_test::cannot_run("no PID namespace can be made here");
    // Another namespace's /proc would be read under wrong numbers.
    const said astray =
        run("unshare --pid --fork " + tool("--list 'syscall:open' ") + " | cat; exit 0");
    BOOST_TEST(astray.text.find("/proc belongs to another PID namespace") != std::string::npos,
               astray.text);
    if (!is_permitted("kernel")) return;
    const test::folder folder;
    const std::string known = folder / "known";
    std::filesystem::copy_file(CLAUSE_KNOWN_64, known);
    const std::string clauses = "-e '@@uft:*:" + known +
                                ":handle:entry { count(pid, tid); capture(n); }' "
                                "-e '@@syscall:*:write:entry when comm == \"known\" "
                                "{ count(pid, tid); }' ";
    const auto number_behind = [](const std::string& text, const std::string& word) {
        const std::size_t at = text.find(word);
        return at == std::string::npos ? "none"
                                       : std::to_string(std::atoi(&text[at + word.size()]));
    };
    // Its own number, one of the shell's; and the numbers of the processes that it forks, in an
    // inner namespace, too.
    for (const std::string all : {"", "--children "}) {
        std::ofstream(folder / "work")
            << "echo first $$\n"
            << (all.empty() ? "" : known + " -5 & echo second $!\nwait\n")
            << (all.empty() ? "" : "unshare --pid --fork " + known + " -7 & echo above $!\nwait\n")
            << "exec " << known << " -3\n";
        const said made =
            run(space + tool("--source kernel " + all + clauses + "-- sh " + (folder / "work")));
        BOOST_TEST(made.status == 0);
        const auto counted = [&](const std::string& pid, int calls) {
            const std::string line = "\n  " + pid + ", " + pid + ": ";
            const std::size_t first = made.text.find(line + std::to_string(calls) + "\n");
            return first != std::string::npos && made.text.find(line + "1\n") != std::string::npos;
        };
        const std::string first = number_behind(made.text, "first ");
        BOOST_TEST(counted(first, 3), made.text);
        BOOST_TEST(
            made.text.find("handle pid=" + first + " tid=" + first + " ") != std::string::npos,
            made.text);
        if (all.empty()) continue;
        BOOST_TEST(counted(number_behind(made.text, "second "), 5), made.text);
        // unshare forks it: in a namespace with nothing else, the next number.
        const std::string below = std::to_string(std::stoi(number_behind(made.text, "above ")) + 1);
        BOOST_TEST(counted(below, 7), made.text);
    }
}

BOOST_AUTO_TEST_CASE(without_a_program_the_machines_libraries_and_system_calls_are_listed) {
    const said functions = run(tool("--list 'libc*:mal*'"));
    BOOST_TEST(functions.status == 0);
    BOOST_TEST(functions.text.find("@@uft:*:libc.so.6:malloc:entry  64 bits") != std::string::npos,
               functions.text);
    const said calls = run(tool("--list 'syscall:open*'"));
    BOOST_TEST(calls.status == 0);
    BOOST_TEST(calls.text.find("@@syscall:*:openat:entry  64 bits: 257  32 bits: 295\n") !=
                   std::string::npos,
               calls.text);
    const said none = run(tool("--list 'libc*:no_such_function'"));
    BOOST_TEST(none.status == 125);
    BOOST_TEST(none.text.find("there is no function 'no_such_function'") != std::string::npos,
               none.text);
    BOOST_TEST(run(tool("-e '@@syscall:*:open:entry { count(); }'")).status == 125);
}

BOOST_AUTO_TEST_CASE(a_breakpoint_where_the_flags_are_stored_shows_no_trap_flag) {
    if (!is_permitted("ptrace")) return;
    const test::folder folder;
    // A second thread, so that instructions are executed elsewhere where they can be.
    const std::string source = R"(
        #include <pthread.h>
        #include <stdio.h>
        #include <sys/wait.h>
        #include <unistd.h>
        extern "C" long pushes(void), pushes_word(void), calls(void), forks(void);
        asm(R"x(
        .text
        .globl pushes, pushes_word, calls, forks
        .type pushes, @function
        .type pushes_word, @function
        .type calls, @function
        .type forks, @function
        pushes: pushfq
            pop %rax
            ret
            .size pushes, . - pushes
        pushes_word: pushfw
            popw %ax
            ret
            .size pushes_word, . - pushes_word
        calls: syscall
            mov %r11, %rax
            ret
            .size calls, . - calls
        forks: syscall
            ret
            .size forks, . - forks
        )x");
        void* waits(void*) { for (;;) pause(); }
        int main(int count, char**) {
            pthread_t other;
            if (count > 1) pthread_create(&other, 0, waits, 0);
            printf("%ld %ld", pushes() & 0x100, pushes_word() & 0x100);
            unsigned long flags = 0;
            long child = 0;
            asm volatile("mov $39, %%eax; call calls" : "=a"(flags) : : "rcx", "r11", "memory");
            printf(" %lu", flags & 0x100);
            fflush(stdout);
            asm volatile("mov $57, %%eax; call forks; mov %%r11, %1"
                         : "=a"(child), "=r"(flags) : : "rcx", "r11", "memory");
            if (child == 0) _exit((flags & 0x100) != 0);
            int status = 0;
            waitpid(static_cast<int>(child), &status, 0);
            printf(" %lu %d\n", flags & 0x100, status);
        })";
    const std::string program = folder / "flags";
    if (!clause_programs::build(program, source, "c++", 64, "-O0 -pthread -mno-red-zone")) return;
    BOOST_TEST(clause_programs::printed(program) == "0 0 0 0 0\n");
    const std::string script = folder / "script";
    std::ofstream(script) << "@@uft:*:flags:pushes:entry, @@uft:*:flags:pushes_word:entry, "
                             "@@uft:*:flags:calls:entry, @@uft:*:flags:forks:entry { count(); }\n";
    for (const char* const more : {"", " more"}) {
        const said made = run(tool("--source ptrace -f " + script + " -- " + program + more));
        BOOST_TEST(made.status == 0);
        BOOST_TEST(made.text.find("0 0 0 0 0\n") != std::string::npos, made.text);
        BOOST_TEST(made.text.find("4 ran, ") != std::string::npos, made.text);
    }
}

BOOST_AUTO_TEST_CASE(a_program_that_steps_itself_does_the_same_with_breakpoints_in_its_way) {
    if (!is_permitted("ptrace")) return;
    const test::folder folder;
    // It prints each of its SIGTRAPs, with the place and the flag in the frame. A second thread, if
    // requested, so that instructions are executed elsewhere where they can be.
    const std::string source = R"(
        #include <pthread.h>
        #include <setjmp.h>
        #include <signal.h>
        #include <stdio.h>
        #include <ucontext.h>
        #include <unistd.h>
        extern "C" char pushes[], computes[], moves[], stacks[], stacks_memory[], traps[], pops[];
        asm(R"x(
        .text
        .macro begin name
        .globl \name
        .type \name, @function
        \name:
        .endm
        .macro end name
        .size \name, . - \name
        .endm
        begin pushes
            push %rbp
            nop
            pop %rbp
            ret
        end pushes
        begin computes
            adc $1, %ecx
            ret
        end computes
        begin moves
            mov $39, %eax
            syscall
            ret
        end moves
        begin stacks
            mov %ecx, %ss
            pushfq
            pop %rax
            ret
        end stacks
        begin stacks_memory
            mov (%rdx), %ss
            pushfq
            pop %rax
            ret
        end stacks_memory
        begin traps
            .byte 0xF1
            ret
        end traps
        begin pops
            popfq
            ret
        end pops
        )x");
        struct { int code; long offset; unsigned long flag; } log[100];
        volatile int logged;
        volatile bool stays_at_int1;  // as some virtual machines do
        void on_trap(int, siginfo_t* info, void* context) {
            auto& r = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
            const long offset = r[REG_RIP] - reinterpret_cast<long>(pushes);
            if (info->si_code == 1 && *(unsigned char*)r[REG_RIP] == 0xF1) {
                stays_at_int1 = true;
                ++r[REG_RIP];
            }
            if (offset < 0 || offset > 64 || logged == 100) return;  // of main
            log[logged] = {info->si_code, offset, r[REG_EFL] & 0x100UL};
            logged = logged + 1;
        }
        sigjmp_buf back;
        volatile unsigned long faulted = 7;
        void on_fault(int, siginfo_t*, void* context) {
            faulted = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] & 0x100;
            siglongjmp(back, 1);
        }
        void handle(int signal, void (*handler)(int, siginfo_t*, void*)) {
            struct sigaction action {};
            action.sa_sigaction = handler;
            action.sa_flags = SA_SIGINFO | SA_ONSTACK;
            sigaction(signal, &action, 0);
        }
        void* waits(void*) { for (;;) pause(); }
        int main(int count, char**) {
            pthread_t other;
            if (count > 1) pthread_create(&other, 0, waits, 0);
            static char bytes[65536];
            stack_t alternate{};
            alternate.ss_sp = bytes;
            alternate.ss_size = sizeof bytes;
            sigaltstack(&alternate, 0);
            handle(SIGTRAP, on_trap);
            handle(SIGSEGV, on_fault);
            handle(SIGBUS, on_fault);
            asm volatile("pushfq; orl $0x100, (%%rsp); popfq\n"
                         "call pushes; call computes; call moves\n"
                         "pushfq; andl $~0x100, (%%rsp); popfq"
                         : : : "rax", "rcx", "r11", "memory", "cc");
            asm volatile(".byte 0xF1; nop" : : : "memory");
            if (stays_at_int1)
                asm volatile("call pushes" : : : "memory");
            else
                asm volatile("call traps" : : : "memory");
            unsigned long flags = 0, more = 0;
            static unsigned short segment;
            asm volatile("mov %%ss, %%ecx; mov %%cx, %1; call stacks"
                         : "=a"(flags), "=m"(segment) : : "rcx", "memory");
            asm volatile("call stacks_memory" : "=a"(more) : "d"(&segment), "m"(segment) : "memory");
            if (sigsetjmp(back, 1) == 0)
                asm volatile("mov $64, %%esp; jmp pops" : : : "memory");
            for (int i = 0; i < logged; ++i)
                printf("%d:%ld:%lu ", log[i].code, log[i].offset, log[i].flag);
            if (stays_at_int1) printf("stays at int1, ");
            printf("pushed %lu %lu, popped %lu\n", flags & 0x100, more & 0x100, faulted);
        })";
    const std::string program = folder / "steps";
    if (!clause_programs::build(program, source, "c++", 64, "-O0 -pthread -mno-red-zone")) return;
    const std::string alone = clause_programs::printed(program);
    BOOST_TEST(alone.find("pushed 0 0, popped 0\n") != std::string::npos, alone);
    BOOST_TEST(alone.find("2:1:256 ") != std::string::npos, alone);  // of the program's own step
    if (alone.find("stays at int1") == std::string::npos)
        BOOST_TEST(alone.find("1:") != std::string::npos, alone);  // of int1
    const std::string script = folder / "script";
    std::ofstream(script) << "@@uft:*:steps:pushes:entry, @@uft:*:steps:computes:entry, "
                             "@@uft:*:steps:moves:entry, @@uft:*:steps:stacks:entry, "
                             "@@uft:*:steps:stacks_memory:entry, @@uft:*:steps:traps:entry, "
                             "@@uft:*:steps:pops:entry { count(); }\n";
    for (const char* const more : {"", " more"}) {
        const said made = run(tool("--source ptrace -f " + script + " -- " + program + more));
        BOOST_TEST(made.status == 0);
        BOOST_TEST(made.text.find(alone) != std::string::npos, made.text << "; alone: " << alone);
        BOOST_TEST(made.text.find("7 ran, ") != std::string::npos, made.text);
    }
}

BOOST_AUTO_TEST_CASE(values_of_enumerations_have_their_names_on_the_screen_and_in_the_trace) {
    const test::folder folder;
    const std::string source = R"(
        enum state { IDLE, BUSY = 5, FAILED = -1 };
        enum class side : unsigned char { buy = 'b', sell = 200 };
        struct order { state now; state before[3]; side of; state bits : 5; };
        extern "C" __attribute__((noinline)) state handle(const order* o, state s, int own) {
            asm volatile("" : : : "memory");
            return own != 0 ? s : o->now;
        }
        int main() {
            order one{BUSY, {IDLE, FAILED, state(77)}, side::sell, FAILED};
            handle(&one, BUSY, 1);
            handle(&one, FAILED, 2);
            handle(&one, BUSY, 3);
        })";
    for (const int bits : {64, 32}) {
        if (!clause_programs::runs(bits)) continue;
        const std::string program = folder / "states";
        BOOST_REQUIRE(clause_programs::build(program, source, "c++", bits, "-O0 -g"));
        const std::string script = folder / "script";
        std::ofstream(script) << "enum own { FIRST = 1, SECOND };\n"
                                 "@@uft:*:states:handle:entry { capture(o->now, s, o->before, "
                                 "o->of, o->bits, (enum own)own, s + 0); count(s); }\n"
                                 "@@uft:*:states:handle:exit { count(retval); }\n";
        for (const auto& from : sources()) {
            const std::string command = tool(from + "-f " + script + " -- " + program);
            const said shown = run(command);
            for (const char* each :
                 {" o->now=BUSY s=BUSY o->before=[IDLE FAILED 77] o->of=sell o->bits=FAILED "
                  "(enum own)own=FIRST s + 0=5\n",
                  "s=FAILED", "(enum own)own=SECOND s + 0=-1\n", "(enum own)own=3 ",
                  "handle count(s)\n  FAILED: 1\n  BUSY: 2\n",
                  "handle.exit count(retval)\n  FAILED: 1\n  BUSY: 2\n"}) {
                BOOST_TEST(shown.text.find(each) != std::string::npos, each << shown.text);
            }
            const std::string trace = folder / "states.trace";
            BOOST_TEST(
                run(tool(from + "-o " + trace + " -f " + script + " -- " + program)).status == 0);
            const auto file = tr::reduce::trace_file::open(trace);
            std::string names;
            for (auto cursor = file.forward(); const auto* item = cursor.next();) {
                const auto& one = std::get<tr::reduce::record_view>(*item);
                names += std::string(one.field("s").name()) + " " +
                         std::string(one.field("(enum own)own").name()) + " " +
                         std::string(one.field("o->before").at(1).name()) + "\n";
            }
            BOOST_TEST(names == "BUSY FIRST FAILED\nFAILED SECOND FAILED\nBUSY  FAILED\n");
        }
    }
}

BOOST_AUTO_TEST_CASE(a_program_that_is_run_has_its_exit_status_and_its_output) {
    for (const auto& source : sources()) {
        const said made = run(
            tool(source +
                 "-e '@@begin { count(); } @@uft:*:libc.so.6:exit:entry { capture(arg0, comm); }' "
                 "-- " CLAUSE_KNOWN_64 " -3"));
        BOOST_TEST(made.status == 0);
        BOOST_TEST(made.text.find("300006\n") != std::string::npos, made.text);
        BOOST_TEST(made.text.find(" arg0=0 comm=\"clause_known.64\"\n") != std::string::npos,
                   made.text);
        BOOST_TEST(made.text.find("begin count()\n  1\n") != std::string::npos, made.text);
        BOOST_TEST(run(tool(source + "--quiet -e '@@end { }' -- sh -c 'exit 7'")).status == 7);
        BOOST_TEST(run(tool(source + "--quiet -e '@@end { }' -- sh -c 'kill -9 $$'")).status ==
                   137);
        BOOST_TEST(run(tool(source + "-e '@@end { }' -- /nowhere/program")).status != 0);
    }
}

BOOST_AUTO_TEST_CASE(what_is_wrong_is_told_in_a_sentence) {
    const auto says = [](const std::string& arguments, const std::string& text) {
        const said made = run(tool(arguments));
        BOOST_TEST(made.status == 125);
        BOOST_TEST(made.text.find(text) != std::string::npos, made.text);
    };
    const std::string known = std::string(" -- ") + CLAUSE_KNOWN_64;
    says("", "see --help");
    says("-e '@@end { }'", "PROGRAM, -p or --all is required");
    says("--all --children -e '@@end { }'", "--all excludes --children");
    says("-p 1 -e '@@end { }'" + known, "use only one of -p, --all and PROGRAM");
    says("-e '@@uft:*:clause_known.64:handel:entry { }'" + known, "did you mean 'handle'?");
    says("-e '@@uft:*:clause_known.64:handle:entry { capture(of->nme); }'" + known,
         "column 48: struct order has no member 'nme'; did you mean 'name'?");
    says("-e '@@uft:*:nolib.so:f:entry { }'" + known, "nolib.so");
    says("-e '@@uft:*:a:b:entry { '" + known, "it ends where '}' should follow");
    says("--all --source ptrace -e '@@end { }'", "--all and --children need --source kernel");
    says("--source ptrace -e '@@syscall:*:open:entry { }'" + known,
         "system calls can only be traced by the kernel's BPF");
    says("-e '@@syscall:*:opne:entry { }'" + known, "no system call 'opne'; did you mean 'open'?");
    says("-e '@@syscall:*:open:entry { capture(arg6); }'" + known,
         "column 34: a system call has 6 arguments at most");
    says("-e '@@syscall:*:open:entry { capture(retval); }'" + known,
         "'retval' is known where a function or system call exits");
    says("-e '@@syscall:*:open:entry, @@uft:*:libc.so.6:open:entry { }'" + known,
         "a clause is for entries, for exits, for probes or for system calls");
    says("-f /nowhere/script" + known, "/nowhere/script: cannot be read");
    says("-e 'struct s { int' " + known, "a declaration that ends with ';'");
    BOOST_TEST(run(tool("--help")).status == 0);
    BOOST_TEST(run(tool("--version")).text.find("trace-clauses ") == 0U);
}

BOOST_AUTO_TEST_CASE(points_are_listed_with_their_arguments_and_code_side_by_side) {
    const std::string known = std::string(" -- ") + CLAUSE_KNOWN_64;
    BOOST_TEST(
        run(tool("--list 'clause_known*:hand*'" + known)).text ==
        "@@uft:*:clause_known.64:handle:entry  64 bits  (struct order * of, long n) -> long\n");
    const said calls = run(tool("--list 'syscall:open*'" + known));
    BOOST_TEST(calls.text.find("@@syscall:*:openat:entry  64 bits: 257  32 bits: 295\n") !=
               std::string::npos);
    BOOST_TEST(run(tool("--list '*:socketcall'" + known)).text ==
               "@@syscall:*:socketcall:entry  32 bits: 102\n");
    const said made = run(
        tool("--dump -e '@@uft:*:clause_known*:handle:entry when n > 1 { capture(n); }'" + known));
    BOOST_TEST(made.status == 0);
    BOOST_TEST(made.text.find("64 bits, at 0, 4 instructions") != std::string::npos, made.text);
    BOOST_TEST(made.text.find("reg 4") != std::string::npos, made.text);
}

BOOST_AUTO_TEST_SUITE_END()
