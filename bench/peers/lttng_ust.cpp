// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// LTTng-UST in snapshot mode: the session overwrites in memory, and is written out when asked. The
/// program starts a session daemon if none runs, and ends what it started.

#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_ust_point.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <vector>

#include "tracer.hpp"

namespace {

namespace fs = std::filesystem;

/// Starts a program, its output thrown away.
[[nodiscard]] pid_t start(const std::vector<std::string>& words) {
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t quiet;
    ::posix_spawn_file_actions_init(&quiet);
    for (const int fd : {STDOUT_FILENO, STDERR_FILENO})
        ::posix_spawn_file_actions_addopen(&quiet, fd, "/dev/null", O_WRONLY, 0);
    pid_t pid = -1;
    if (::posix_spawnp(&pid, arguments[0], &quiet, nullptr, arguments.data(), environ) != 0)
        pid = -1;
    ::posix_spawn_file_actions_destroy(&quiet);
    return pid;
}
[[nodiscard]] bool done(const std::vector<std::string>& words) {
    const pid_t pid = start(words);
    int status = 0;
    return pid > 0 && ::waitpid(pid, &status, 0) == pid && status == 0;
}

/// A session of this program, and the daemon where it had to be started.
class session {
public:
    explicit session(const fs::path& folder) : folder_(folder) {
        if (!done({"lttng", "--no-sessiond", "list"})) {
            daemon_ = start({"lttng-sessiond", "--no-kernel"});
            for (int i = 0; i < 50 && !done({"lttng", "--no-sessiond", "list"}); ++i)
                ::usleep(100000);
        }
        ready_ =
            lttng({"create", name_, "--snapshot", "--output=" + (folder / "trace").string()}) &&
            lttng({"enable-channel", "--userspace", "--session=" + name_, "--overwrite",
                   "--subbuf-size=256K", "--num-subbuf=4", "memory"}) &&
            lttng({"enable-event", "--userspace", "--session=" + name_, "--channel=memory",
                   "bench:sample"}) &&
            turn(true);
    }
    ~session() {
        static_cast<void>(lttng({"destroy", name_}));
        if (daemon_ > 0) {
            ::kill(daemon_, SIGTERM);
            static_cast<void>(::waitpid(daemon_, nullptr, 0));
        }
    }
    session(const session&) = delete;
    session& operator=(const session&) = delete;

    [[nodiscard]] bool ready() const { return ready_; }
    /// Waits until the program has heard of it.
    bool turn(bool on) {
        if (on == on_) return true;
        if (!lttng({on ? "start" : "stop", name_})) return false;
        on_ = on;
        for (int i = 0; i < 100; ++i, ::usleep(50000)) {
            if ((lttng_ust_tracepoint_enabled(bench, sample) != 0) == on) return true;
        }
        return false;
    }
    /// The size of a record in the packets of a snapshot, from the packet headers: 64 bits of
    /// content size and of packet size follow two times, in a header of 32 bytes.
    double bytes_of(std::uint64_t records) {
        if (!lttng({"snapshot", "record", "--session=" + name_})) return 0;
        double bits = 0;
        for (const auto& entry : fs::recursive_directory_iterator(folder_ / "trace")) {
            const std::string file = entry.path().filename();
            if (!entry.is_regular_file() || file.rfind("memory_", 0) != 0) continue;
            if (entry.path().parent_path().filename() == "index") continue;
            std::ifstream in(entry.path(), std::ios::binary);
            std::uint64_t sizes[2];
            for (std::streamoff at = 0;
                 in.seekg(at + 48) && in.read(reinterpret_cast<char*>(sizes), sizeof sizes) &&
                 sizes[1] != 0;
                 at += static_cast<std::streamoff>(sizes[1] / 8)) {
                bits += static_cast<double>(sizes[0]);
            }
        }
        return bits / 8 / static_cast<double>(records);
    }

private:
    [[nodiscard]] bool lttng(std::vector<std::string> words) const {
        words.insert(words.begin(), {"lttng", "--no-sessiond"});
        return done(words);
    }

    fs::path folder_;
    std::string name_ = "bench-" + std::to_string(::getpid());
    pid_t daemon_ = -1;
    bool on_ = false;
    bool ready_ = false;
};

session* here = nullptr;
double measured_bytes = 0;

struct ust {
    static void turn(bool on) { here->turn(on); }
    [[gnu::always_inline]] static void record(std::uint64_t first, std::uint64_t second) {
        lttng_ust_tracepoint(bench, sample, first, second);
    }
    static double bytes() { return measured_bytes; }
    static double lost() { return 0; }
};

}  // namespace

int main(int argc, char** argv) {
    const auto measure = [=] {
        bench::add_floors_of_tracers();
        bench::add_tracer<ust>({"lttng_ust", "LTTng-UST " PEER_VERSION,
                                "snapshot, 4 x 256 KiB for each processor", "overwrites"});
        return bench::run(argc, argv);
    };
    // A second session would have its own copy of each record.
    if (bench::instructions::asked(argc, argv)) return measure();
    char folder[] = "/tmp/bench.lttng.XXXXXX";
    if (::mkdtemp(folder) == nullptr) return 1;
    // Nothing is left in the user's own folders.
    ::setenv("LTTNG_HOME", folder, 0);
    int status = 77;
    {
        session own(folder);
        here = &own;
        if (own.ready()) {
            constexpr std::uint64_t records = 10000;
            for (std::uint64_t i = 0; i < records; ++i) ust::record(i, ~i);
            measured_bytes = own.bytes_of(records);
            status = measure();
        } else {
            std::printf("no session daemon answers\n");
        }
    }
    fs::remove_all(folder);
    return status;
}
