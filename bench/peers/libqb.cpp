// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// libqb's blackbox: log messages, their arguments kept in binary, in a ring in shared memory.

#include <syslog.h>

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include <qb/qblog.h>

#include "tracer.hpp"

namespace {

constexpr int ring_records = 100000;

struct blackbox {
    static constexpr int ring_bytes = 1 << 20;

    static void set_up() {
        qb_log_init("bench", LOG_USER, LOG_EMERG);
        qb_log_ctl(QB_LOG_SYSLOG, QB_LOG_CONF_ENABLED, QB_FALSE);
        qb_log_filter_ctl(QB_LOG_BLACKBOX, QB_LOG_FILTER_ADD, QB_LOG_FILTER_FILE, "*", LOG_DEBUG);
        qb_log_ctl(QB_LOG_BLACKBOX, QB_LOG_CONF_SIZE, ring_bytes);
        qb_log_ctl(QB_LOG_BLACKBOX, QB_LOG_CONF_THREADED, QB_FALSE);
    }
    static void turn(bool on) {
        qb_log_ctl(QB_LOG_BLACKBOX, QB_LOG_CONF_ENABLED, on ? QB_TRUE : QB_FALSE);
    }
    static void record(std::uint64_t first, std::uint64_t second) {
        qb_log(LOG_DEBUG, "%llu %llu", static_cast<unsigned long long>(first),
               static_cast<unsigned long long>(second));
    }
    static double bytes() { return measured; }
    static double lost() { return 0; }

    static inline double measured = 0;
};

/// The number of records in a full ring, as its own reader counts them in a copy.
void measure_bytes() {
    blackbox::turn(true);
    for (int i = 0; i < ring_records; ++i) blackbox::record(1U << 30, ~std::uint64_t{0});
    char copy[] = "/tmp/bench.blackbox.XXXXXX";
    char text[] = "/tmp/bench.blackbox.XXXXXX";
    const int copied = ::mkstemp(copy);
    const int listed = ::mkstemp(text);
    const int output = ::dup(STDOUT_FILENO);
    if (copied < 0 || listed < 0 || output < 0) return;
    static_cast<void>(qb_log_blackbox_write_to_file(copy));
    static_cast<void>(std::fflush(stdout));
    static_cast<void>(::dup2(listed, STDOUT_FILENO));
    static_cast<void>(qb_log_blackbox_print_from_file(copy));
    static_cast<void>(std::fflush(stdout));
    static_cast<void>(::dup2(output, STDOUT_FILENO));
    std::ifstream lines(text);
    double count = 0;
    for (std::string line; std::getline(lines, line);)
        count += line.find("1073741824") != line.npos;
    if (count > 0) blackbox::measured = blackbox::ring_bytes / count;
    for (const char* const path : {copy, text}) static_cast<void>(::unlink(path));
    for (const int fd : {copied, listed, output}) static_cast<void>(::close(fd));
}

}  // namespace

int main(int argc, char** argv) {
    blackbox::set_up();
    measure_bytes();
    bench::add_floors_of_tracers();
    bench::add_tracer<blackbox>({"libqb_blackbox", "libqb blackbox " PEER_VERSION,
                                 "arguments in binary, no lock: loses with many threads",
                                 "overwrites"});
    const int status = bench::run(argc, argv);
    qb_log_fini();
    return status;
}
