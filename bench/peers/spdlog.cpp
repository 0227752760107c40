// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// spdlog's backtrace: the last so many messages below the logger's level, formatted, in memory.

#include <cstdint>

#include <spdlog/details/log_msg_buffer.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>
#include <spdlog/version.h>

#include "tracer.hpp"

namespace {

struct backtrace {
    static constexpr std::size_t messages = 32768;

    static spdlog::logger& logger() {
        static const auto made = [] {
            auto logger = spdlog::create<spdlog::sinks::null_sink_mt>("bench");
            logger->set_level(spdlog::level::info);
            return logger;
        }();
        return *made;
    }
    static void turn(bool on) {
        static bool now = false;
        if (on == now) return;
        now = on;
        if (on) {
            logger().enable_backtrace(messages);
        } else {
            logger().disable_backtrace();
        }
    }
    static void record(std::uint64_t first, std::uint64_t second) {
        static spdlog::logger& to = logger();
        to.debug("{} {}", first, second);
    }
    static double bytes() { return sizeof(spdlog::details::log_msg_buffer); }
    static double lost() { return 0; }
};

}  // namespace

int main(int argc, char** argv) {
    bench::add_floors_of_tracers();
    bench::add_tracer<backtrace>({"spdlog_backtrace",
                                  "spdlog backtrace " + std::to_string(SPDLOG_VER_MAJOR) + "." +
                                      std::to_string(SPDLOG_VER_MINOR),
                                  "formatted text, under a mutex", "overwrites"});
    return bench::run(argc, argv);
}
