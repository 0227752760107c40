// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Files of every kind that trace-reduce reads, cut, flipped, spliced and shifted, through every
/// format and option: it ends with 0 or 2, and takes no more than ten times what the sound file
/// takes.

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <proof.hpp>
#include <reduce/everything.hpp>
#include <reduce/scratch_file.hpp>
#include <trace_ring/cptrap/record.hpp>
#include <trace_ring/cptrap/spool_record.hpp>

BOOST_AUTO_TEST_SUITE(damaged_files)

using namespace trace_ring_test;

namespace {

namespace record = trace_ring::record;
using words = std::vector<std::string>;

/// What a program did: how it ended, and the seconds of processor time that it took.
struct ending {
    int status = 0;  ///< its exit status; 1000 and the signal if one ended it
    double seconds = 0;
};

ending run(words arguments) {
    std::vector<char*> argv;
    for (auto& each : arguments) argv.push_back(each.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    for (const int fd : {0, 1, 2}) {
        ::posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
    }
    pid_t child = -1;
    const int error = ::posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    BOOST_REQUIRE(error == 0);
    int status = 0;
    rusage used{};
    BOOST_REQUIRE(::wait4(child, &status, 0, &used) == child);
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
    };
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status),
            seconds(used.ru_utime) + seconds(used.ru_stime)};
}

std::string text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string spool_file() {
    std::string out;
    record::spool_page page;
    std::byte one[record::cptrap_most_bytes];
    std::byte data[record::cptrap_most_data];
    for (std::uint16_t code = 0; code < 300; ++code) {
        const std::size_t length = code * 37U % (record::cptrap_most_data + 1);
        std::fill_n(data, length, static_cast<std::byte>(code));
        const std::size_t size = record::put_cptrap(one, record::cptrap_type::cp_interface, code,
                                                    std::span(data, length));
        if (page.add(std::span(one, size))) continue;
        out += text_of(page.bytes());
        page.clear();
        BOOST_REQUIRE(page.add(std::span(one, size)));
    }
    return out + text_of(page.bytes());
}

template <class T>
void put(std::string& to, std::size_t at, T value) {
    std::memcpy(&to[at], &value, sizeof value);
}

/// A core file of x86-64 with one segment: a recorder's memory.
std::string core_file(const std::string& memory) {
    constexpr std::size_t page = 4096;
    std::string out(page, '\0');
    std::memcpy(out.data(),
                "\x7F"
                "ELF\2\1\1",
                7);
    put<std::uint16_t>(out, 16, 4);   // a core
    put<std::uint16_t>(out, 18, 62);  // x86-64
    put<std::uint32_t>(out, 20, 1);
    put<std::uint64_t>(out, 32, 64);  // program headers
    put<std::uint16_t>(out, 52, 64);
    put<std::uint16_t>(out, 54, 56);
    put<std::uint16_t>(out, 56, 1);
    put<std::uint32_t>(out, 64, 1);  // PT_LOAD
    put<std::uint32_t>(out, 68, 6);
    put<std::uint64_t>(out, 72, page);
    put<std::uint64_t>(out, 80, 0x7F0000000000);
    put<std::uint64_t>(out, 96, memory.size());
    put<std::uint64_t>(out, 104, memory.size());
    put<std::uint64_t>(out, 112, page);
    return out + memory;
}

/// Where something is done to a file, rather near the places where formats have their counts and
/// lengths: at the beginning, and at multiples of a page.
std::size_t place(const std::string& file, std::mt19937& random) {
    switch (random() % 4) {
        case 0:
            return random() % std::min<std::size_t>(file.size(), 512);
        case 1:
            return std::min(file.size() - 1,
                            random() % (file.size() / 4096 + 1) * 4096 + random() % 256);
        default:
            return random() % file.size();
    }
}

std::string damaged(const std::string& sound, const std::string& other, std::mt19937& random) {
    std::string out = sound;
    for (auto faults = 1 + random() % 3; faults > 0 && out.size() > 1; --faults) {
        const std::size_t at = place(out, random);
        const std::size_t length = 1 + random() % std::min<std::size_t>(out.size() - at, 4096);
        switch (random() % 6) {
            case 0:  // cut
                out.resize(at);
                break;
            case 1:  // flipped
                out[at] = static_cast<char>(out[at] ^ static_cast<char>(1U << random() % 8));
                break;
            case 2:  // a word that is too large, or none
                for (std::size_t i = at; i < std::min(at + 4, out.size()); ++i) {
                    out[i] = random() % 2 == 0 ? '\xFF' : '\0';
                }
                break;
            case 3:  // spliced from elsewhere in it
                out.replace(at, length, out.substr(random() % out.size(), length));
                break;
            case 4:  // spliced from a file of another kind
                out.replace(at, length, other.substr(random() % other.size(), length));
                break;
            default:  // shifted
                out.insert(at, random() % 16 + 1, static_cast<char>(random()));
                break;
        }
    }
    return out;
}

/// A kind of file, and what trace-reduce can be asked of it; {out} is a name that nothing has.
struct kind_of_file {
    std::string name;
    std::string sound;
    std::vector<words> questions;
};

std::vector<kind_of_file> kinds() {
    // Long enough that what it costs to start a program is not all of the time.
    file_builder::sizes sizes;
    sizes.sub_buffer_bytes = 4096;
    sizes.sub_buffers = 512;
    const auto trace = text_of(everything(sizes, 20000, 9000).bytes());
    const std::vector<words> of_traces = {
        {},
        {"--backward"},
        {"--limit", "5"},
        {"--backward", "--limit", "5"},
        {"--event", "or*"},
        {"--thread", "1235", "--time", "relative"},
        {"--time", "raw", "--colour", "always"},
        {"--where", "id % 3 == 1 or level > 2"},
        {"--where", "time < 1ms or position % 3 == 1", "--backward"},
        {"--stats"},
        {"--stats", "--format", "json"},
        {"--follow", "--until-closed"},
        {"--format", "json"},
        {"--format", "json", "--backward"},
        {"--format", "csv"},
        {"--format", "chrome", "--flow", "order.sent.id", "--counter", "order.sent.price"},
        {"--format", "perfetto"},
        {"--format", "ctf", "--output", "{out}"},
        {"--format", "html", "--output", "{out}"},
    };
    const std::vector<words> of_cores = {{}, {"--backward", "--limit", "5"}, {"--stats"}};
    const std::vector<words> of_spools = {
        {},
        {"--backward"},
        {"--format", "json"},
        {"--type", "interface", "--code", "0x1-0x7F"},
        {"--stats"},
        {"--from", "0:2", "--to", "90%", "--backward"},
        {"--from", "@24", "--follow", "--until-closed"},
    };
    return {{"trace", trace, of_traces},
            {"core", core_file(trace), of_cores},
            {"spool", spool_file(), of_spools}};
}

/// Whether it names a field: without it, in a damaged dictionary, the question is wrong, which
/// is 1.
bool names_a_field(const words& question) {
    return std::any_of(question.begin(), question.end(), [](const std::string& word) {
        return word == "order.sent.id" || word.starts_with("id ");
    });
}

}  // namespace

BOOST_AUTO_TEST_CASE(whatever_is_in_a_file_the_program_ends_as_it_says_and_soon) {
    const auto all = kinds();
    std::mt19937 random(20261122);
    const scratch_file file;
    std::uint64_t files = 0;
    for (const auto& kind : all) {
        const auto& other = all[(&kind - all.data() + 1U) % all.size()].sound;
        for (const auto& question : kind.questions) {
            const auto ask = [&] {
                words command{TRACE_REDUCE, file.path()};
                const std::string result = file.path() + ".out";
                for (const auto& word : question) {
                    command.push_back(word == "{out}" ? result : word);
                }
                const ending end = run(command);
                std::filesystem::remove_all(result);
                return end;
            };
            std::string said = kind.name + ":";
            for (const auto& word : question) said += " " + word;
            BOOST_TEST_CONTEXT(said) {
                file.write(kind.sound);
                const ending sound = ask();
                BOOST_TEST(sound.status == 0);
                const double most = 10 * sound.seconds + 0.1;
                for (unsigned i = 0; i < repeats(25); ++i, ++files) {
                    file.write(damaged(kind.sound, other, random));
                    ending end = ask();
                    const bool right = end.status == 0 || end.status == 2 ||
                                       (end.status == 1 && names_a_field(question));
                    BOOST_TEST(right, "status " << end.status);
                    // Others have the processors, too: once more, before it is believed.
                    for (int again = 0; again < 2 && end.seconds > most; ++again) end = ask();
                    BOOST_TEST(end.seconds <= most);
                    if (end.seconds > most || !right) {
                        std::filesystem::copy_file(
                            file.path(), "damaged." + kind.name + "." + std::to_string(i),
                            std::filesystem::copy_options::overwrite_existing);
                    }
                }
            }
        }
    }
    proof("hostile", files, "damaged files through trace-reduce");
}

BOOST_AUTO_TEST_SUITE_END()
