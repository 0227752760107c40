// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// Writes the golden trace of the given name; README.md says what is in each.
///   write NAME FILE [PROGRAM]      PROGRAM: for `processes`, this program built for 32 bits

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <ratio>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <trace_ring/per_cpu.hpp>
#include <trace_ring/recorder/other_thread.hpp>
#include <trace_ring/trace_ring.hpp>

enum class state : std::int16_t { open, paid = 7, sent = -2 };
template <>
struct trace_ring::names_of<state> {
    static constexpr value_name<state> list[] = {
        {state::open, "open"}, {state::paid, "paid"}, {state::sent, "sent"}};
};
struct place {
    std::int16_t x, y;
};
template <>
struct trace_ring::members_of<place> : trace_ring::members<&place::x, &place::y> {};

namespace {

using namespace std::chrono_literals;
using std::chrono::duration;
using trace_ring::field, trace_ring::flow, trace_ring::results;

struct numbers
    : trace_ring::event<"numbers", field<"u8", std::uint8_t>, field<"u16", std::uint16_t>,
                        field<"u32", std::uint32_t>, field<"u64", std::uint64_t>,
                        field<"i8", std::int8_t>, field<"i16", std::int16_t>,
                        field<"i32", std::int32_t>, field<"i64", std::int64_t>, field<"f32", float>,
                        field<"f64", double>, field<"flag", bool>, field<"letter", char>,
                        field<"where", trace_ring::address>> {};
struct arrays
    : trace_ring::event<"arrays", field<"pair", std::array<std::uint16_t, 2>>,
                        field<"name", std::array<char, 5>>, field<"text", std::string_view>,
                        field<"values", std::span<const std::int32_t>>,
                        field<"more", std::string_view>> {};
struct named : trace_ring::event<"named", field<"state", state>, field<"at", place>,
                                 field<"took", std::chrono::microseconds>,
                                 field<"third", duration<std::int32_t, std::ratio<1, 3>>>> {
    static constexpr bool counted = true;
};
struct depth : trace_ring::counter<"queue.depth", field<"value", int>> {};
struct job : trace_ring::event<"job", field<"number", flow>> {};
struct request
    : trace_ring::span<"request", field<"number", flow>, field<"url", std::string_view>,
                       results<field<"status", std::uint16_t>, field<"answer", std::string_view>>> {
};
struct step : trace_ring::span<"step", field<"n", std::uint32_t>> {};
struct tick : trace_ring::event<"tick", field<"n", std::uint32_t>> {};
struct large : trace_ring::event<"large", field<"words", std::array<std::uint64_t, 100>>> {};

// The smallest tables, so that the files are small.
trace_ring::recorder_options options(const char* file) {
    return {.file = file,
            .size = 8 * 512,
            .sub_buffer_bytes = 512,
            .exists = trace_ring::if_exists::fail,
            .lanes = 16,
            .processes = 8,
            .programs = 4,
            .totals = 2,
            .dictionary_bytes = 8192};
}

template <class Work>
void on_thread(const char* name, Work work) {
    std::thread([&] {
        pthread_setname_np(pthread_self(), name);
        work();
    }).join();
}

trace_ring::recorder* handlers = nullptr;

void fields(const char* file) {
    auto wanted = options(file);
    wanted.size = 32 * 512;
    trace_ring::recorder trace(wanted);
    const std::array<std::int32_t, 3> values{1, -2, 3};
    trace.record<numbers>(std::uint8_t{200}, std::uint16_t{60000}, 4000000000U,
                          std::uint64_t{1} << 63, std::int8_t{-100}, std::int16_t{-30000},
                          -2000000000, std::int64_t{-1} << 62, 0.1F, 0.1, true, 'x',
                          trace_ring::address{0x7F00'0000'1234});
    trace.record<arrays>(std::array<std::uint16_t, 2>{1, 65535},
                         std::array{'g', 'o', 'l', 'd', '!'}, "tab \t, quote \", \xC3\xBC",
                         std::span(values), "");
    trace.record<arrays>(std::array<std::uint16_t, 2>{}, std::array<char, 5>{},
                         std::string(1000, 'c'), std::span(values), "does not fit");
    trace.record<named>(state::paid, place{-3, 4}, 1500us,
                        duration<std::int32_t, std::ratio<1, 3>>(2));
    trace.record<named>(state{5}, place{}, -1us, duration<std::int32_t, std::ratio<1, 3>>(0));
    trace.record<depth>(3);
    {
        auto outer = trace.scope<request>(flow{1}, "/orders");
        const auto inner = trace.scope<step>(1U);
        outer.end(std::uint16_t{200}, "fine");  // not the innermost: it says where it began
    }
    { const auto left = trace.scope<request>(flow{2}, "/no-results"); }
    auto moved = std::make_optional(trace.scope<step>(2U));
    on_thread("worker", [&] {
        trace.record<job>(flow{1});
        moved.reset();  // ends on another thread
    });
    on_thread("adopter", [&] { trace.record<job>(flow{2}); });
    handlers = &trace;
    std::signal(SIGUSR1, [](int) { handlers->record<tick>(1U); });
    if (auto open = trace.reserve<tick>(2U)) {
        std::raise(SIGUSR1);  // to the thread's next lane
        open.commit();
    }
    if (auto open = trace.reserve<tick>(3U)) open.discard();
    std::this_thread::sleep_for(3s);  // more than 2^32 ticks: a record of the time
    trace.record<tick>(4U);
    const auto last = trace.scope<step>(3U);
    trace.record<tick>(5U);
    trace.snapshot((std::string(file) + ".snapshot").c_str());  // in which the last span is open
}

void losses(const char* file) {
    trace_ring::recorder trace(options(file));
    std::array<std::uint64_t, 100> words{};
    for (std::uint32_t n = 0; n < 300; ++n) {
        trace.record<tick>(n);
        if (n == 200) trace.record<large>(words);  // too long
    }
    auto a = trace.reserve<tick>(1000U), b = trace.reserve<tick>(1001U),
         c = trace.reserve<tick>(1002U), d = trace.reserve<tick>(1003U);
    if (auto e = trace.reserve<tick>(1004U)) std::abort();  // nested too deep: lost
    d.commit();
    c.commit();
    std::raise(SIGKILL);  // two records are open; the file is not trimmed
}

void refused(const char* file) {
    auto wanted = options(file);
    wanted.full = trace_ring::full_mode::discard_newest;
    trace_ring::recorder trace(wanted);
    for (std::uint32_t n = 0; n < 300; ++n) trace.record<tick>(n);
}

void processes(const char* file, const char* program) {
    auto wanted = options(file);
    wanted.size = 32 * 512;
    trace_ring::recorder trace(wanted);
    trace.record<job>(flow{1});
    if (fork() == 0) {
        trace.record<job>(flow{2});
        _exit(0);
    }
    int status = 0;
    wait(&status);
    trace_ring::other_process shop(trace, 1200, 8, "shop");
    trace_ring::other_thread worker(shop, 1234, "shop-worker");
    {
        const trace_ring::other_thread::scope as(worker);
        trace.record<job>(flow{3});
    }
    const std::string command = std::string(program) + " joins " + file;
    if (std::system(command.c_str()) != 0) std::exit(1);
    trace.record<job>(flow{5});
}

void joins(const char* file) {
    trace_ring::recorder trace{{.file = file, .exists = trace_ring::if_exists::attach}};
    trace.record<job>(flow{4});
    trace.record<numbers>(std::uint8_t{1}, std::uint16_t{2}, 3U, std::uint64_t{4}, std::int8_t{-5},
                          std::int16_t{-6}, -7, std::int64_t{-8}, 0.5F, 0.25, false, 'y',
                          trace_ring::address{0xFFFF'0000U});
}

template <class Recorder>
void by_kind(const char* file) {
    auto wanted = options(file);
    wanted.size = 32 * 512;
    Recorder trace(wanted);
    for (std::uint32_t n = 0; n < 20; ++n) trace.template record<tick>(n);
    on_thread("worker", [&] {
        for (std::uint32_t n = 20; n < 24; ++n) {
            const auto span = trace.template scope<step>(n);
        }
    });
    trace.template record<tick>(24U);
}

}  // namespace

int main(int count, char** arguments) try {
    const std::string name = count > 2 ? arguments[1] : "";
    const char* const file = count > 2 ? arguments[2] : "";
    using trace_ring::basic_recorder, trace_ring::policies;
    struct sampled : policies<trace_ring::clock::sampled<16>> {};
    struct by_processor : policies<trace_ring::claim::per_cpu> {};
    struct without_clock : policies<trace_ring::clock::none> {};
    if (name == "fields") return fields(file), 0;
    if (name == "losses") losses(file);
    if (name == "refused") return refused(file), 0;
    if (name == "processes" && count == 4) return processes(file, arguments[3]), 0;
    if (name == "joins") return joins(file), 0;
    if (name == "sampled") return by_kind<basic_recorder<sampled>>(file), 0;
    if (name == "by_processor") return by_kind<basic_recorder<by_processor>>(file), 0;
    if (name == "no_clock") return by_kind<basic_recorder<without_clock>>(file), 0;
    std::fputs("usage: write NAME FILE [PROGRAM]\n", stderr);
    return 2;
} catch (const std::exception& error) {
    std::fprintf(stderr, "write: %s\n", error.what());
    return 1;
}
