// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The program trace-reduce, from outside: what it prints, where to, and how it ends.

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <examples/trace_reduce/exporting/csv_reader.hpp>
#include <examples/trace_reduce/exporting/formats.hpp>
#include <examples/trace_reduce/exporting/perfetto_reader.hpp>
#include <exporter/json_check.hpp>
#include <proof.hpp>
#include <reduce/file_builder.hpp>
#include <reduce/scratch_file.hpp>
#include <trace_ring/recorder/recorder.hpp>

BOOST_AUTO_TEST_SUITE(trace_reduce)

using namespace trace_ring_test;

namespace {

struct tick : trace_ring::event<"tick", trace_ring::field<"n", std::uint64_t>> {};

/// A run of trace-reduce.
class run {
public:
    explicit run(std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), TRACE_REDUCE);
        std::vector<char*> argv;
        for (auto& each : arguments) argv.push_back(each.data());
        argv.push_back(nullptr);
        int out[2];
        int err[2];
        BOOST_REQUIRE(::pipe(out) == 0);
        BOOST_REQUIRE(::pipe(err) == 0);
        child_ = ::fork();
        BOOST_REQUIRE(child_ >= 0);
        if (child_ == 0) {
            ::dup2(out[1], 1);
            ::dup2(err[1], 2);
            for (const int fd : {out[0], out[1], err[0], err[1]}) ::close(fd);
            ::execv(argv[0], argv.data());
            ::_exit(127);
        }
        ::close(out[1]);
        ::close(err[1]);
        out_ = out[0];
        err_ = err[0];
        ::fcntl(err_, F_SETFL, O_NONBLOCK);
    }
    run(const run&) = delete;
    ~run() {
        if (out_ >= 0) ::close(out_);
        ::close(err_);
        if (!ended_) {
            ::kill(child_, SIGKILL);
            ::waitpid(child_, nullptr, 0);
        }
    }

    /// Reads on until there are so many lines, or the end.
    const std::string& read_lines(std::size_t lines = ~std::size_t{0}) {
        std::array<char, 4096> part{};
        while (std::count(output.begin(), output.end(), '\n') <
               static_cast<std::ptrdiff_t>(std::min<std::size_t>(lines, PTRDIFF_MAX))) {
            const ssize_t got = ::read(out_, part.data(), part.size());
            if (got <= 0) break;
            output.append(part.data(), static_cast<std::size_t>(got));
            read_errors();  // so that neither pipe gets full
        }
        return output;
    }
    void close_output() {
        ::close(out_);
        out_ = -1;
    }
    void signal(int number) const { ::kill(child_, number); }
    /// Its exit status; 1000 and the signal if one ended it.
    int wait() {
        if (out_ >= 0) read_lines();
        int status = 0;
        ::waitpid(child_, &status, 0);
        ended_ = true;
        read_errors();
        return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    }

    std::string output;
    std::string errors;

private:
    void read_errors() {
        std::array<char, 4096> part{};
        for (ssize_t got = 0; (got = ::read(err_, part.data(), part.size())) > 0;) {
            errors.append(part.data(), static_cast<std::size_t>(got));
        }
    }

    pid_t child_ = -1;
    int out_ = -1;
    int err_ = -1;
    bool ended_ = false;
};

/// Two lanes, the first with its oldest sub-buffer gone.
file_builder sample(std::uint64_t time_offset = 0, const char* event_name = "tick") {
    file_builder b;
    b.clock_reading(0, 0, 1'700'000'000'000'000'000 + time_offset);
    b.clock_reading(1'000'000'000, 1'000'000'000, 1'700'000'001'000'000'000 + time_offset);
    const auto process = b.process(1200);
    const auto& event = b.event({1, event_name, {{"n"}}});
    const auto& other = b.event({2, "other", {}});
    const auto first = b.lane(process, 11, "first");
    const auto second = b.lane(process, 12, "second");
    b.open(first, 100);
    b.record(first, 101, event, {0});
    b.open(first, 110);
    b.record(first, 111, event, {1});
    b.open(second, 105);
    b.record(second, 121, other, {});
    b.record(second, 131, event, {2});
    b.close(first, 140);
    b.wipe(1);
    return b;
}

std::string saved(const scratch_file& to, const file_builder& b) {
    b.save(to.path());
    return to.path();
}

}  // namespace

BOOST_AUTO_TEST_CASE(records_are_printed_forward_backward_and_in_part) {
    scratch_file file;
    const std::string path = saved(file, sample());
    const std::string lost = "-- 1 record lost: overwritten (lane 1, from position 0)\n";
    const std::string one = "0.000000111 [11 first] tick n=1\n";
    const std::string two = "0.000000121 [12 second] other\n";
    const std::string three = "0.000000131 [12 second] tick n=2\n";
    const auto printed = [&](std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), {"--time", "relative", path});
        run program(arguments);
        BOOST_TEST(program.wait() == 0);
        BOOST_TEST(program.errors == "");
        return program.output;
    };
    BOOST_TEST(printed({}) == lost + one + two + three);
    BOOST_TEST(printed({"--backward"}) == three + two + one + lost);
    BOOST_TEST(printed({"--limit", "1"}) == lost + one);
    BOOST_TEST(printed({"--backward", "--limit", "2"}) == three + two);
    BOOST_TEST(printed({"--limit", "0"}) == "");
    BOOST_TEST(printed({"--event", "oth*"}) == lost + two);
    run with_unknown({path, "--time", "relative", "--event", "x", "--event", "tick"});
    BOOST_TEST(with_unknown.wait() == 0);
    BOOST_TEST(with_unknown.output == lost + one + three);
    BOOST_TEST(printed({"--thread", "12"}) == two + three);
    BOOST_TEST(printed({"--thread", "12", "--thread", "11"}) == lost + one + two + three);
    BOOST_TEST(printed({"--colour", "always", "--thread", "12", "--limit", "1"}) ==
               "\x1b[2m0.000000121 [12 second]\x1b[0m \x1b[36mother\x1b[0m\n");
    BOOST_TEST(printed({"--color=auto", "--thread", "12", "--limit", "1"}) == two);
    run raw({path, "--time=raw", "--limit=1", "--thread=12"});
    BOOST_TEST(raw.wait() == 0);
    BOOST_TEST(raw.output == "121 [12 second] other\n");
}

BOOST_AUTO_TEST_CASE(a_condition_selects_records_beside_every_other_choice) {
    scratch_file file;
    const std::string path = saved(file, sample());
    const std::string lost = "-- 1 record lost: overwritten (lane 1, from position 0)\n";
    const std::string one = "0.000000111 [11 first] tick n=1\n";
    const std::string two = "0.000000121 [12 second] other\n";
    const std::string three = "0.000000131 [12 second] tick n=2\n";
    const auto printed = [&](std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), {"--time", "relative", path, "--where"});
        run program(arguments);
        BOOST_TEST(program.wait() == 0);
        BOOST_TEST(program.errors == "");
        return program.output;
    };
    BOOST_TEST(printed({"n > 1"}) == lost + three);
    BOOST_TEST(printed({"n in {1..2}", "--backward"}) == three + one + lost);
    BOOST_TEST(printed({"not n == 1"}) == lost + three);  // of `other` it is not known
    BOOST_TEST(printed({"true", "--limit", "1"}) == lost + one);
    BOOST_TEST(printed({"true", "--event", "oth*"}) == lost + two);
    BOOST_TEST(printed({"n >= 0", "--thread", "12"}) == three);
    // Losses of the selected lanes and times are included.
    BOOST_TEST(printed({"thread == 'second' and event ~ 'o*'"}) == two);
    BOOST_TEST(printed({"thread == 11 || lane == 2 && n == 2"}) == lost + one + three);
    BOOST_TEST(printed({"time > 112ns and time <= 130ns"}) == two);
    BOOST_TEST(printed({"false"}) == "");
    run json({path, "--where", "n == 2", "--format", "json"});
    BOOST_TEST(json.wait() == 0);
    BOOST_TEST(std::count(json.output.begin(), json.output.end(), '\n') == 2);
    BOOST_TEST(json.output.find("\"n\":2") != std::string::npos);
    run counted({path, "--where", "n == 2", "--stats"});
    BOOST_TEST(counted.wait() == 0);
    BOOST_TEST(counted.output.find("  records   1, 16 bytes\n") != std::string::npos);
    BOOST_TEST(counted.output.find("  other\n") == std::string::npos);

    // Of several files each is asked by its own dictionary, and a name need be known to one.
    scratch_file second;
    saved(second, sample(15, "tock"));
    run several({path, second.path(), "--where", "event == \"tock\" and n > 1", "--time", "raw"});
    BOOST_TEST(several.wait() == 0);
    BOOST_TEST(several.output.ends_with(second.path() + ": 131 [12 second] tick n=2\n") == false);
    BOOST_TEST(several.output.ends_with(second.path() + ": 131 [12 second] tock n=2\n"));
    file_builder other;
    other.event({1, "elsewhere", {{"only_there"}}});
    saved(second, other);
    run foreign({path, second.path(), "--where", "n == 2 or only_there == 1", "--time", "raw"});
    BOOST_TEST(foreign.wait() == 0);
    BOOST_TEST(foreign.output.find("tick n=2") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_wrong_condition_is_shown_with_the_place_and_nothing_is_read_or_written) {
    namespace fs = std::filesystem;
    scratch_file file;
    const std::string path = saved(file, sample());
    const auto said = [&](const std::string& text) {
        const std::string out = path + ".out";
        run program({path, "--where", text, "--output", out});
        BOOST_TEST(program.wait() == 1);
        BOOST_TEST(program.output == "");
        BOOST_TEST(!fs::exists(out));
        return program.errors;
    };
    BOOST_TEST(said("n > 1 and m == 2") ==
               "trace-reduce: --where: column 11: no event has a field 'm'; did you mean 'n'?\n"
               "  n > 1 and m == 2\n"
               "            ^\n");
    BOOST_TEST(said("n == \"one\"") ==
               "trace-reduce: --where: column 3: a number compared with a text\n"
               "  n == \"one\"\n"
               "    ^~\n");
    BOOST_TEST(said("n == (2 +") ==
               "trace-reduce: --where: column 10: it ends where a value should follow\n"
               "  n == (2 +\n"
               "           ^\n");
    BOOST_TEST(said("").starts_with("trace-reduce: "));
    // Before any file is opened.
    run nowhere({"/nonexistent/file", "--where", "n =="});
    BOOST_TEST(nowhere.wait() == 1);
    BOOST_TEST(nowhere.errors.starts_with("trace-reduce: --where: column 5: "));
}

BOOST_AUTO_TEST_CASE(json_is_one_valid_object_a_line) {
    scratch_file file;
    for (const char* what : {"--backward", "--stats"}) {
        run program({saved(file, sample()), "--format", "json", what});
        BOOST_TEST(program.wait() == 0);
        std::size_t lines = 0;
        for (std::size_t at = 0; at < program.output.size(); ++lines) {
            const std::size_t end = program.output.find('\n', at);
            BOOST_TEST(json_check::valid(program.output.substr(at, end - at)));
            at = end + 1;
        }
        BOOST_TEST(lines == (what == std::string("--stats") ? 1U : 4U));
    }
}

BOOST_AUTO_TEST_CASE(tables_and_viewers_get_their_formats) {
    scratch_file first;
    scratch_file second;
    const std::vector<std::string> files{saved(first, sample()), saved(second, sample(15))};
    const auto written = [](std::vector<std::string> arguments) {
        run program(std::move(arguments));
        BOOST_TEST(program.wait() == 0);
        BOOST_TEST(program.errors == "");
        return program.output;
    };
    const csv_reader one(written({files[0], "--format", "csv", "--event", "tick"}));
    BOOST_REQUIRE(one.rows().size() == 4U);
    BOOST_TEST(one.at(1, "cause").text == "overwritten");
    BOOST_TEST(one.at(2, "tick.n").text == "1");
    const csv_reader both(written({files[0], files[1], "--format", "csv", "--backward"}));
    BOOST_REQUIRE(both.rows().size() == 9U);
    BOOST_TEST(both.at(1, "file").plain() == files[1]);
    BOOST_TEST(both.at(1, "tick.n").text == "2");

    const std::string chrome = written({files[0], files[1], "--format", "chrome", "--counter",
                                        "tick.n", "--flow", "*.n", "--limit", "5"});
    BOOST_TEST(json_check::valid(chrome));
    check_nesting(chrome);
    BOOST_TEST(chrome.find(R"({"ph":"s","name":"flow","cat":"flow","id":"0x1",)") != chrome.npos);
    BOOST_TEST(chrome.find(R"({"ph":"C",)") == chrome.npos);  // a flow is no counter
    const perfetto_reader perfetto(
        written({files[0], "--format", "perfetto", "--counter", "tick.n"}));
    BOOST_TEST(perfetto.events() == 6U);  // a loss, three records, two of them with a number

    // Also complete when it was stopped, and into a file.
    const std::string out = first.path() + ".json";
    BOOST_TEST(written({files[0], "--format", "chrome", "--output", out, "--limit", "0"}) == "");
    std::string text;
    std::getline(std::ifstream(out), text, '\0');
    std::filesystem::remove(out);
    BOOST_TEST(json_check::valid(text));

    for (const char* format : {"chrome", "perfetto"}) {
        run none({files[0], "--format", format, "--stats"});
        BOOST_TEST(none.wait() == 1);
        BOOST_TEST(none.errors.find("--stats is text, json or csv") != none.errors.npos);
    }
    for (const char* format : {"chrome", "perfetto"}) {
        run back({files[0], "--format", format, "--backward"});
        BOOST_TEST(back.wait() == 1);
        BOOST_TEST(back.errors.find("needs times that ascend") != back.errors.npos);
        run nothing({files[0], "--format", format, "--flow", "tick.m"});
        BOOST_TEST(nothing.wait() == 1);
        BOOST_TEST(nothing.output == "");
        BOOST_TEST(nothing.errors ==
                   "trace-reduce: --flow tick.m: no integer field of that name\n");
    }
    run text_flow({files[0], "--flow", "tick.n"});
    BOOST_TEST(text_flow.wait() == 1);
    BOOST_TEST(text_flow.errors.find("draws nothing") != text_flow.errors.npos);
}

BOOST_AUTO_TEST_CASE(statistics_name_records_losses_events_and_lanes) {
    scratch_file file;
    run program({saved(file, sample()), "--stats", "--time", "relative"});
    BOOST_TEST(program.wait() == 0);
    BOOST_TEST(program.output ==
               file.path() +
                   "\n"
                   "  records   3, 40 bytes\n"
                   "  lost      1: overwritten 1\n"
                   "  span      0.000000020 s, 0.000000111 to 0.000000131\n"
                   "  rate      150000000 records/s, 2000000000 bytes/s\n"
                   "  clock     CLOCK_MONOTONIC, 1.000000 GHz, 2 readings, within 0 ns\n"
                   "\n"
                   "         count         records           bytes  share           total  "
                   "event\n"
                   "             2               2              32  66.7%                  tick\n"
                   "             1               1               8  33.3%                  other\n"
                   "\n"
                   "       records           bytes            lost  lane    thread\n"
                   "             1              16               1  1       1200/11 first  lost: "
                   "overwritten 1\n"
                   "             2              24               0  2       1200/12 second\n");
}

BOOST_AUTO_TEST_CASE(where_lanes_were_too_few_the_options_that_are_enough_are_recommended) {
    auto b = sample();
    b.without_lane(472, 300);
    scratch_file file;
    const std::string path = saved(file, b);
    const auto enough = layout::room_for(300, b.plan().sub_buffer_bytes, false);
    const std::string advice = "for 300 writers at once, set recorder_options::size to at least " +
                               std::to_string(enough.bytes) + " and lanes to at least " +
                               std::to_string(enough.lanes);
    run program({path, "--stats"});
    BOOST_TEST(program.wait() == 0);
    BOOST_TEST(
        program.output.find("\n  lost      473: overwritten 1, refused 472; 472 of them in no "
                            "listed lane, at an unknown time\n  advice    " +
                            advice + "\n") != program.output.npos);
    run in_json({path, "--stats", "--format", "json"});
    BOOST_TEST(in_json.wait() == 0);
    BOOST_TEST(in_json.output.find(",\"advice\":\"" + advice + "\",") != in_json.output.npos);
    run in_text({path});
    BOOST_TEST(in_text.wait() == 0);
    BOOST_TEST(in_text.output.find(
                   "-- 472 records lost in no listed lane, at an unknown time: refused: " + advice +
                   "\n") != in_text.output.npos);
    run none({saved(file, sample()), "--stats"});
    BOOST_TEST(none.wait() == 0);
    BOOST_TEST(none.output.find("advice") == none.output.npos);
}

BOOST_AUTO_TEST_CASE(statistics_name_what_was_begun_and_never_committed) {
    scratch_file file;
    auto b = sample();
    const std::uint64_t at = b.slot_at(3);  // of the second lane, and open
    const std::uint64_t end = at + ((b.get(at + 48, 2) + 0x8008) & 0xFFFF);
    b.put(end, 140, 4);
    run begun({saved(file, b), "--stats", "--time", "relative"});
    BOOST_TEST(begun.wait() == 0);
    BOOST_TEST(begun.output.ends_with("\n\n  not committed  at 2 of lane 2\n"));
    b.put(end + 4, 1 | 2 << 16, 4);
    run named({saved(file, b), "--stats", "--time", "relative"});
    BOOST_TEST(named.wait() == 0);
    BOOST_TEST(named.output.ends_with("  not committed  at 2 of lane 2: 0.000000140 tick\n"));
    run as_json({file.path(), "--stats", "--format", "json"});
    BOOST_TEST(as_json.wait() == 0);
    BOOST_TEST(as_json.output.ends_with(
        R"("unfinished":[{"offset":)" + std::to_string(end) +
        R"(,"position":2,"lane":2,"certain":true,"event":"tick","ticks":140}]})"
        "\n"));
}

BOOST_AUTO_TEST_CASE(several_files_are_merged_by_their_dates) {
    scratch_file first;
    scratch_file second;
    saved(first, sample());
    saved(second, sample(15));
    run program({first.path(), second.path(), "--event", "tick", "--time", "raw", "--thread", "12",
                 "--thread", "11"});
    BOOST_TEST(program.wait() == 0);
    const std::string lost = "-- 1 record lost: overwritten (lane 1, from position 0)\n";
    BOOST_TEST(program.output == first.path() + ": " + lost +                          // 110
                                     first.path() + ": 111 [11 first] tick n=1\n" +    //
                                     second.path() + ": " + lost +                     // 125
                                     second.path() + ": 111 [11 first] tick n=1\n" +   // 126
                                     first.path() + ": 131 [12 second] tick n=2\n" +   // 131
                                     second.path() + ": 131 [12 second] tick n=2\n");  // 146
}

BOOST_AUTO_TEST_CASE(bad_input_is_named_with_its_offset_and_what_is_left_is_printed) {
    scratch_file file;
    const std::string& path = file.path();
    file.write("no trace at all");
    run none({path});
    BOOST_TEST(none.wait() == 2);
    BOOST_TEST(none.output == "");
    BOOST_TEST(none.errors.starts_with("trace-reduce: " + path +
                                       ": offset 0: neither a trace file (begins with"));

    auto b = sample();
    b.put(b.slot_at(2), 0, 4);
    run damaged({saved(file, b), "--time", "raw"});
    BOOST_TEST(damaged.wait() == 2);
    const std::string offset = std::to_string(b.slot_at(2));
    BOOST_TEST(damaged.errors ==
               "trace-reduce: " + path + ": offset " + offset + ": not a sub-buffer\n");
    BOOST_TEST(damaged.output.find("[12 second] tick n=2") != std::string::npos);
    BOOST_TEST(damaged.output.find("2 records lost: damaged at offset " + offset) !=
               std::string::npos);
    run counted({path, "--stats"});
    BOOST_TEST(counted.wait() == 2);
    BOOST_TEST(counted.errors == damaged.errors);
    BOOST_TEST(counted.output.find("damaged 2") != std::string::npos);

    b = sample();
    b.save(path, b.slot_at(3) + 8);  // cut in the second lane's sub-buffer
    run cut({path, "--time", "raw"});
    BOOST_TEST(cut.wait() == 2);
    BOOST_TEST(cut.errors.find(": offset " + std::to_string(b.slot_at(3) + 8) +
                               ": the file is cut short: ") != std::string::npos);
    BOOST_TEST(cut.output.find("111 [11 first] tick n=1") != std::string::npos);

    // One bad file among good ones: the good ones are read.
    scratch_file good;
    file.write("");
    run mixed({path, saved(good, sample()), "--time", "raw"});
    BOOST_TEST(mixed.wait() == 2);
    BOOST_TEST(mixed.errors == "trace-reduce: " + path + ": offset 0: the file is empty\n");
    BOOST_TEST(mixed.output.find("121 [12 second] other") != std::string::npos);

    run directory({"/"});
    BOOST_TEST(directory.wait() == 2);
    BOOST_TEST(directory.errors == "trace-reduce: /: offset 0: a directory\n");
}

BOOST_AUTO_TEST_CASE(anything_else_that_fails_is_status_1) {
    for (const std::vector<std::string>& arguments :
         std::vector<std::vector<std::string>>{{},
                                               {"--nonsense", "x"},
                                               {"/nonexistent/file"},
                                               {"x", "--limit", "many"},
                                               {"x", "--format", "xml"},
                                               {"x", "--follow", "--backward"},
                                               {"x", "--retry"},
                                               {"x", "--follow", "--retry", "--browse"},
                                               {"x", "--follow", "--retry", "--format", "csv"},
                                               {"x", "--until-closed"},
                                               {"x", "--thread", "-1"}}) {
        run program(arguments);
        BOOST_TEST(program.wait() == 1);
        BOOST_TEST(program.errors.starts_with("trace-reduce: "), program.errors);
        BOOST_TEST(program.output == "");
    }
    run help({"--help"});
    BOOST_TEST(help.wait() == 0);
    BOOST_TEST(help.output.find("--until-closed") != std::string::npos);
    run version({"--version"});
    BOOST_TEST(version.wait() == 0);
    BOOST_TEST(version.output.starts_with("trace-reduce "));
}

BOOST_AUTO_TEST_CASE(output_goes_to_a_file_whole_or_not_at_all) {
    namespace fs = std::filesystem;
    scratch_file file;
    const std::string path = saved(file, sample());
    const fs::path folder = path + ".d";
    fs::create_directory(folder);
    const std::string out = (folder / "out").string();
    run program({path, "--time", "raw", "--output", out, "--limit", "1"});
    BOOST_TEST(program.wait() == 0);
    BOOST_TEST(program.output == "");
    std::string written;
    std::getline(std::ifstream(out), written, '\0');
    BOOST_TEST(written ==
               "-- 1 record lost: overwritten (lane 1, from position 0)\n"
               "111 [11 first] tick n=1\n");
    run again({path, "--output", out, "--stats"});  // replaced
    BOOST_TEST(again.wait() == 0);
    BOOST_TEST(fs::file_size(out) > 300U);

    // Not over an input, under any name.
    fs::create_symlink(path, folder / "link");
    for (const std::string& target : {path, (folder / "link").string()}) {
        run over({path, "--output", target});
        BOOST_TEST(over.wait() == 1);
        BOOST_TEST(over.errors.find("is an input") != std::string::npos);
    }
    BOOST_TEST(fs::file_size(path) == sample().bytes().size());

    run nowhere({path, "--output", (folder / "no" / "where").string()});
    BOOST_TEST(nowhere.wait() == 1);
    run full({path, "--output", "/dev/full"});
    BOOST_TEST(full.wait() == 1);
    BOOST_TEST(full.errors.find("/dev/full") != std::string::npos);
    file.write("bad");
    run bad({path, "--output", (folder / "none").string()});
    BOOST_TEST(bad.wait() == 2);
    std::size_t left = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder)) ++left;
    BOOST_TEST(left == 2U);  // out and link: no parts, nothing from what failed
    fs::remove_all(folder);
}

BOOST_AUTO_TEST_CASE(a_closed_pipe_ends_it_quietly) {
    file_builder b({.sub_buffer_bytes = 32768, .sub_buffers = 64});
    const auto& event = b.event({1, "tick", {{"n"}}});
    const auto lane = b.lane(b.process(1), 1);
    b.open(lane, 0);
    for (std::uint64_t n = 0; n < 100'000; ++n) {
        if (b.record(lane, n, event, {n})) continue;
        b.open(lane, n);
        b.record(lane, n, event, {n});
    }
    scratch_file file;
    run program({saved(file, b)});
    program.read_lines(1);
    program.close_output();
    BOOST_TEST(program.wait() == 0);
    BOOST_TEST(program.errors == "");
}

BOOST_AUTO_TEST_CASE(a_live_file_is_followed_until_its_writers_are_gone) {
    scratch_file file;
    file.remove();
    std::optional<trace_ring::recorder> recorder;
    recorder.emplace(trace_ring::recorder_options{.file = file.path(), .size = 64 * 1024});
    recorder->record<tick>(0);
    run program({file.path(), "--follow", "--until-closed", "--event", "tick"});
    program.read_lines(1);
    BOOST_TEST(program.output.find("tick n=0") != std::string::npos);
    std::thread([&] {
        for (std::uint64_t n = 1; n < 100; ++n) recorder->record<tick>(n);
    }).join();
    program.read_lines(100);
    BOOST_TEST(program.output.find("tick n=99") != std::string::npos);
    program.signal(SIGINT);  // the recorder is still there
    BOOST_TEST(program.wait() == 0);
    BOOST_TEST(std::count(program.output.begin(), program.output.end(), '\n') == 100);
    BOOST_TEST(program.errors == "");

    run closing({file.path(), "--follow", "--until-closed"});
    closing.read_lines(100);
    recorder.reset();
    BOOST_TEST(closing.wait() == 0);
    run chosen({file.path(), "--follow", "--until-closed", "--where", "n % 10 == 3"});
    BOOST_TEST(chosen.wait() == 0);
    BOOST_TEST(std::count(chosen.output.begin(), chosen.output.end(), '\n') == 10);
    for (const char* format : {"chrome", "perfetto", "csv"}) {
        run whole({file.path(), "--follow", "--until-closed", "--format", format});
        BOOST_TEST(whole.wait() == 0);
        if (format == std::string("chrome")) {
            BOOST_TEST(json_check::valid(whole.output));
        } else if (format == std::string("perfetto")) {
            BOOST_TEST(perfetto_reader(whole.output).events() == 100U);
        } else {
            BOOST_TEST(csv_reader(whole.output).rows().size() == 101U);
        }
    }
    run limited({file.path(), "--follow", "--limit", "7"});
    BOOST_TEST(limited.wait() == 0);
    BOOST_TEST(std::count(limited.output.begin(), limited.output.end(), '\n') == 7);
}

BOOST_AUTO_TEST_CASE(another_file_of_a_followed_name_is_told_of_or_followed_too) {
    const scratch_file file;
    const scratch_file moved;
    for (const bool retry : {false, true}) {
        file.remove();
        const trace_ring::recorder_options options{.file = file.path(), .size = 64 * 1024};
        std::optional<trace_ring::recorder> old(options);
        old->record<tick>(0);
        std::vector<std::string> arguments{file.path(), "--follow", "--until-closed", "--where",
                                           "n < 100"};
        if (retry) arguments.emplace_back("--retry");
        run program(arguments);
        program.read_lines(1);
        std::filesystem::rename(file.path(), moved.path());
        std::optional<trace_ring::recorder> other(options);
        other->record<tick>(10);
        old->record<tick>(1);  // into the old one still
        program.read_lines(retry ? 3 : 2);
        old->record<tick>(2);
        old.reset();
        program.read_lines(retry ? 4 : 3);
        other->record<tick>(11);
        other.reset();
        BOOST_TEST(program.wait() == 0);
        for (const char* record : {"n=0", "n=1\n", "n=2", "n=10", "n=11"}) {
            const bool shown = program.output.find(record) != std::string::npos;
            BOOST_TEST(shown == (retry || record[3] == '\0' || record[3] == '\n'), record);
        }
        BOOST_TEST(std::count(program.output.begin(), program.output.end(), '\n') ==
                   (retry ? 5 : 3));
        BOOST_TEST(program.errors ==
                   (retry ? ""
                          : "trace-reduce: " + file.path() +
                                ": another file has this name now, which is not shown (--retry "
                                "goes on with it)\n"));
    }
}

BOOST_AUTO_TEST_CASE(an_interrupt_prints_what_there_is) {
    // A pipe that nobody reads holds it up; then it is interrupted.
    file_builder b({.sub_buffer_bytes = 32768, .sub_buffers = 64});
    const auto& event = b.event({1, "tick", {{"n"}}});
    const auto lane = b.lane(b.process(1), 1);
    b.open(lane, 0);
    for (std::uint64_t n = 0; n < 100'000; ++n) {
        if (b.record(lane, n, event, {n})) continue;
        b.open(lane, n);
        b.record(lane, n, event, {n});
    }
    scratch_file file;
    run program({saved(file, b)});
    program.read_lines(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    program.signal(SIGINT);
    BOOST_TEST(program.wait() == 130);
    BOOST_TEST(program.output.back() == '\n');
    const auto lines = std::count(program.output.begin(), program.output.end(), '\n');
    BOOST_TEST(lines > 100);
    BOOST_TEST(lines < 100'000);
}

BOOST_AUTO_TEST_CASE(so_many_threads_show_what_one_shows, *boost::unit_test::label("slow")) {
    // Three lanes of 40 sub-buffers each, in turn but not in step, and some of them lost.
    file_builder b({.sub_buffer_bytes = 1024, .sub_buffers = 100});
    const auto process = b.process(7);
    const auto& event = b.event({1, "tick", {{"n"}}});
    const auto& other = b.event({2, "tock", {{"n"}}});
    const std::uint32_t lanes[] = {b.lane(process, 1), b.lane(process, 2), b.lane(process, 3)};
    for (const auto lane : lanes) b.open(lane, 0);
    for (std::uint64_t n = 0; n < 7000; ++n) {
        const auto lane = lanes[n * n % 3];
        const auto& one = n % 5 == 0 ? other : event;
        if (b.record(lane, 10 * n, one, {n})) continue;
        b.open(lane, 10 * n);
        b.record(lane, 10 * n, one, {n});
    }
    scratch_file file;
    scratch_file second;
    const auto path = saved(file, b);
    const auto another = saved(second, b);
    std::size_t longest = 0;
    for (const std::vector<std::string>& asked : std::vector<std::vector<std::string>>{
             {},
             {"--backward"},
             {"--where", "n % 7 == 3 and event == \"tick\""},
             {"--where", "n > 1e9"},
             {"--where", "n * n < 1000000", "--backward", "--limit", "50"},
             {"--event", "to*", "--thread", "2"},
             {"--from", "30%", "--to", "60%", "--format", "csv"},
             {"--format", "json", "--where", "n in {5, 100..2000}"},
             {"--stats", "--fields", "--where", "n % 2 == 0"}}) {
        for (const bool both : {false, true}) {
            std::string alone;
            for (const char* jobs : {"1", "2", "5"}) {
                auto arguments = asked;
                arguments.insert(arguments.end(), {"--jobs", jobs, path});
                if (both) arguments.push_back(another);
                run program(arguments);
                BOOST_TEST(program.wait() == 0);
                BOOST_TEST(program.errors.empty(), program.errors);
                if (*jobs == '1') alone = program.output;
                BOOST_REQUIRE_MESSAGE(program.output == alone,
                                      (asked.empty() ? "all" : asked.back())
                                          << ", --jobs " << jobs << ": another output");
                longest = std::max(longest, alone.size());
            }
        }
    }
    BOOST_TEST(longest > 100'000U);
    for (const char* jobs : {"0", "257", "-1", "many"}) {
        run refused({"--jobs", jobs, path});
        BOOST_TEST(refused.wait() == 1);
        BOOST_TEST(refused.errors.find("--jobs") != std::string::npos);
    }
}

/// Of the children that were waited for.
double processor_seconds() {
    rusage used{};
    ::getrusage(RUSAGE_CHILDREN, &used);
    const auto seconds = [](const timeval& of) {
        return static_cast<double>(of.tv_sec) + static_cast<double>(of.tv_usec) / 1e6;
    };
    return seconds(used.ru_utime) + seconds(used.ru_stime);
}

BOOST_AUTO_TEST_CASE(an_interrupt_is_answered_where_nothing_is_wanted) {
    // Records of two lanes in turn, which takes longest to pass over.
    file_builder b({.sub_buffer_bytes = 32768, .sub_buffers = 3000});
    const auto& event = b.event({1, "tick", {}});
    const auto& other = b.event({2, "tock", {}});
    const auto process = b.process(1);
    const std::uint32_t lanes[] = {b.lane(process, 1), b.lane(process, 2)};
    for (const auto lane : lanes) b.open(lane, 0);
    const std::uint64_t records = std::min(repeats(6'000'000), 6'000'000U);
    for (std::uint64_t n = 0; n < records; ++n) {
        const auto lane = lanes[n % 2];
        const auto& one = n % 3 == 0 ? event : other;
        if (b.record(lane, n, one, {})) continue;
        b.open(lane, n);
        b.record(lane, n, one, {});
    }
    scratch_file file;
    saved(file, b);
    const auto took = [](run& program, int& status) {
        const double before = processor_seconds();
        status = program.wait();
        return processor_seconds() - before;
    };
    for (const std::vector<std::string>& asked :
         std::vector<std::vector<std::string>>{{"--event", "no.such.event"},
                                               {"--event", "no.such.event", "--backward"},
                                               {"--event", "no.such.event", "--stats"},
                                               {"--stats"}}) {
        auto arguments = asked;
        arguments.push_back(file.path());
        int status = 0;
        run whole(arguments);
        const double all = took(whole, status);
        BOOST_TEST(status == 0);
        // As soon as the signal is caught; too early, it ends the program itself. The best of
        // three: on a busy machine it may be sent late.
        double until = all;
        int tries = 3;
        for (int wait = 4; wait < 1000 && tries > 0; wait += wait / 4) {
            run program(arguments);
            std::this_thread::sleep_for(std::chrono::milliseconds(wait));
            program.signal(SIGINT);
            const double some = took(program, status);
            if (status == 1000 + SIGINT) continue;
            BOOST_TEST(status == 130);
            until = std::min(until, some);
            --tries;
        }
        BOOST_TEST(tries == 0);
        BOOST_TEST(until < all * 0.4, asked.back() << ": " << until << " of " << all);
        BOOST_TEST_MESSAGE(asked.back() << ": " << until << " of " << all);
    }
}

BOOST_AUTO_TEST_SUITE_END()
