// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// How many instructions one record takes.
///
/// PROGRAM --instructions=FILE writes, as JSON, for each subject that asks for it:
///   a_record   the mean over 2 million records (50,000 if they are long), with all that is done
///              once a sub-buffer or once a second: what two runs of different length under
///              callgrind differ by. Without valgrind, the median of some runs that the program
///              steps through itself; stepping slows it down so much that what is done once a
///              second is done in each of them.
///   hot_path   the least that 32 records more take: without. The program runs itself, step by step
///              (ptrace), from one signal that it raises to the next, and the steps are counted.
/// The loop around it and its payload are counted too: `floor/payload` is what to take off. The
/// status is 77 where nobody may be traced.

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace bench::instructions {

using loop = std::function<void(std::int64_t)>;

namespace impl {

inline std::vector<std::pair<std::string, std::function<loop()>>>& subjects() {
    static std::vector<std::pair<std::string, std::function<loop()>>> all;
    return all;
}

inline constexpr int mark = SIGUSR1;
/// Records of the runs between two marks, in pairs: short ones, then those that differ by a
/// sub-buffer.
inline constexpr std::int64_t short_pair[] = {8, 40};
inline constexpr std::int64_t full_pair[] = {64, 64 + 168};
inline constexpr std::size_t short_pairs = 3;
inline constexpr std::size_t full_pairs = 9;
/// Instructions a record from which one full pair must do: a step takes microseconds.
inline constexpr double many = 100;

/// The one that is stepped through or, over so many `records`, watched by callgrind.
inline int child(const char* name, std::int64_t records) {
    for (const auto& [known, make] : subjects()) {
        if (known != name) continue;
        if (records != 0) {
            make()(records);
            return 0;
        }
        if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) return 77;
        const loop subject = make();
        subject(1 << 12);
        for (std::size_t pair = 0; pair < short_pairs + full_pairs; ++pair) {
            for (const std::int64_t n : pair < short_pairs ? short_pair : full_pair) {
                ::raise(mark);
                subject(n);
            }
        }
        ::raise(mark);
        return 0;
    }
    return 2;
}

/// Steps `child` from its last mark to the next. Less than zero: it ended.
inline std::int64_t steps(pid_t child, bool counting) {
    int signal = 0;
    for (std::int64_t count = 0;; ++count) {
        const auto request = counting ? PTRACE_SINGLESTEP : PTRACE_CONT;
        if (::ptrace(request, child, nullptr, reinterpret_cast<void*>(std::intptr_t{signal})) != 0)
            return -1;
        int status = 0;
        if (::waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) return -1;
        signal = WSTOPSIG(status);
        if (signal == mark) return count;
        if (signal == SIGTRAP) signal = 0;
    }
}

struct found {
    double a_record = 0;
    double hot_path = 0;
};

/// All instructions of a process that runs a subject over so many records, as callgrind says.
inline std::optional<std::int64_t> collected(const std::string& name, std::int64_t records) {
    std::string program(4096, '\0');
    const ssize_t length = ::readlink("/proc/self/exe", program.data(), program.size());
    if (length <= 0) return {};
    program.resize(static_cast<std::size_t>(length));
    const std::string command =
        "timeout 120 valgrind --tool=callgrind --callgrind-out-file=/dev/null '" + program +
        "' '--records=" + std::to_string(records) + "' '--instructions-of=" + name + "' 2>&1";
    std::FILE* const output = ::popen(command.c_str(), "r");
    if (output == nullptr) return {};
    std::optional<std::int64_t> found;
    char line[512];
    while (std::fgets(line, sizeof line, output) != nullptr) {
        const char* const at = std::strstr(line, "Collected : ");
        if (at != nullptr) found = std::strtoll(at + 12, nullptr, 10);
    }
    if (::pclose(output) != 0) return {};
    return found;
}
/// The mean that callgrind reports, if it is available.
inline std::optional<double> mean_of(const std::string& name, double hot_path) {
    constexpr std::int64_t few = 10'000;
    const std::int64_t more = few + (hot_path < many ? 2'000'000 : 50'000);
    const auto less = collected(name, few);
    const auto all = less ? collected(name, more) : std::nullopt;
    if (!all) return {};
    return static_cast<double>(*all - *less) / static_cast<double>(more - few);
}

inline std::optional<found> count(const std::string& name) {
    const pid_t child = ::fork();
    if (child < 0) return {};
    if (child == 0) {
        const std::string argument = "--instructions-of=" + name;
        ::execl("/proc/self/exe", "bench", argument.c_str(), static_cast<char*>(nullptr));
        ::_exit(2);
    }
    int status = 0;
    std::optional<found> result;
    // The first stop is the one of PTRACE_TRACEME's process at its first mark.
    if (::waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        bool there = WSTOPSIG(status) == mark || steps(child, false) >= 0;
        const auto next = [&] {
            const std::int64_t taken = there ? steps(child, true) : -1;
            there = taken >= 0;
            return taken;
        };
        const auto over = [](std::int64_t less, std::int64_t more,
                             const std::int64_t(&records)[2]) {
            return static_cast<double>(more - less) / static_cast<double>(records[1] - records[0]);
        };
        std::int64_t least[2] = {next(), next()};
        for (std::size_t i = 1; i < short_pairs; ++i) {
            for (std::int64_t& each : least) each = std::min(each, next());
        }
        const double hot_path = over(least[0], least[1], short_pair);
        std::optional<double> mean = there ? mean_of(name, hot_path) : std::nullopt;
        std::vector<double> full;
        while (!mean && there && full.size() < full_pairs && (full.empty() || full[0] <= many)) {
            const std::int64_t less = next();
            full.push_back(over(less, next(), full_pair));
        }
        if (there && !mean) {
            const auto middle = full.begin() + static_cast<std::ptrdiff_t>(full.size() / 2);
            std::nth_element(full.begin(), middle, full.end());
            mean = *middle;
        }
        if (there) result = found{*mean, hot_path};
        // To its end at full speed, for it may have something to tidy up.
        while (steps(child, false) >= 0) {
        }
    }
    return result;
}

}  // namespace impl

/// Adds a subject; `make` is called in the process that is counted.
inline void add(const std::string& name, std::function<loop()> make) {
    impl::subjects().emplace_back(name, std::move(make));
}

/// Whether `run` will start this program again for each subject, and so needs none itself.
[[nodiscard]] inline bool asked(int argc, char** argv) {
    return argc > 1 && std::strncmp(argv[1], "--instructions=", 15) == 0;
}

/// Does what the command line asks for of this, if it does: the program's status then.
inline std::optional<int> run(int argc, char** argv) {
    const auto value = [&](const char* name) -> const char* {
        for (int i = 1; i < argc; ++i) {
            const std::size_t length = std::strlen(name);
            if (std::strncmp(argv[i], name, length) == 0) return argv[i] + length;
        }
        return nullptr;
    };
    if (const char* const name = value("--instructions-of=")) {
        const char* const records = value("--records=");
        return impl::child(name, records == nullptr ? 0 : std::strtoll(records, nullptr, 10));
    }
    const char* const path = value("--instructions=");
    if (path == nullptr) return {};
    std::string text;
    for (const auto& [name, make] : impl::subjects()) {
        const auto found = impl::count(name);
        if (!found) {
            std::fprintf(stderr, "%s: cannot be traced\n", name.c_str());
            continue;
        }
        char line[256];
        std::snprintf(line, sizeof line, "%s\n  \"%s\": {\"a_record\": %.3f, \"hot_path\": %.3f}",
                      text.empty() ? "" : ",", name.c_str(), found->a_record, found->hot_path);
        text += line;
    }
    if (text.empty()) return 77;
    std::FILE* const file = std::fopen(path, "w");
    if (file == nullptr) {
        std::fprintf(stderr, "%s: %s\n", path, std::strerror(errno));
        return 2;
    }
    std::fprintf(file, "{\"instructions\": {%s\n}}\n", text.c_str());
    return std::fclose(file) == 0 ? 0 : 2;
}

}  // namespace bench::instructions
