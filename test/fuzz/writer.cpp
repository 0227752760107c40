// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Recorders in a file that somebody else changes, before they are attached and afterwards: they
/// record or refuse, write nothing outside the file's mapping (guards.cpp), and never loop. What
/// they record need not make sense any more.

#include <unistd.h>

#include <chrono>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

#include <fuzz/events.hpp>
#include <fuzz/hostile.hpp>
#include <fuzz/targets.hpp>
#include <trace_ring/policy/claim/per_cpu.hpp>
#include <trace_ring/recorder/cpu/recorder.hpp>
#include <trace_ring/recorder/recorder.hpp>

namespace trace_ring_test::fuzz {

namespace of_writer {
namespace {

struct by_thread : trace_ring::policies<> {};
struct by_cpu : trace_ring::policies<trace_ring::claim::per_cpu> {};

constexpr unsigned action_count = 14;
/// So that a seed of each image is for each kind.
constexpr std::uint8_t cpu_bit = 0x80;

std::vector<buffer> seeds() {
    auto out = program_seeds(recorded_images().size(), action_count);
    const std::size_t count = out.size();
    for (std::size_t i = 0; i < count; i += 3) {
        out.push_back(out[i]);
        out.back()[0] |= cpu_bit;
    }
    return out;
}

template <class Recorder>
void nest(Recorder& recorder, unsigned depth) {
    const auto open = recorder.template scope<stretch>(depth);
    auto held = recorder.template reserve<words>("held", std::uint64_t{depth});
    if (depth != 0) nest(recorder, depth - 1);
    if (held && depth % 2 == 0) held.commit();
}

/// A name of a file that is there for a moment.
const std::string& scratch() {
    static const std::string name = [] {
        const char* const folder = std::getenv("TMPDIR");
        return std::string(folder != nullptr ? folder : "/tmp") + "/trace_ring_fuzz." +
               std::to_string(::getpid());
    }();
    return name;
}

template <class Recorder>
void act(Recorder& recorder, const command& next) {
    const std::uint32_t value = next.value;
    const std::string text(value % 600, 'x');
    switch (next.action(action_count)) {
        case 0:
            recorder.template record<number>(value);
            break;
        case 1:
            recorder.template record<words>(text, std::uint64_t{value});
            break;
        case 2:
        case 3:
            for (unsigned i = value % 64; i != 0; --i) recorder.template record<number>(i);
            break;
        case 4:
            nest(recorder, value % 6);
            break;
        case 5:
            for (unsigned i = value % 32; i != 0; --i) recorder.template record<rare>(i);
            break;
        case 6:
        case 7:
            std::thread([&] {
                recorder.template record<number>(value);
                if (value % 2 == 0) recorder.template record<words>(text, std::uint64_t{value});
            }).join();
            break;
        case 8:
            recorder.flush_thread();
            break;
        case 9:
            (void)recorder.enable("fuzz.*", value % 4 != 0);
            break;
        case 10:
            value % 4 == 0 ? recorder.pause() : recorder.resume();
            break;
        case 11:
            (void)recorder.statistics();
            (void)recorder.bytes();
            break;
        case 12:
            if (value % 4 != 0) break;  // dear
            (void)recorder.snapshot(scratch().c_str());
            ::unlink(scratch().c_str());
            break;
        default:
            (void)recorder.template enable<rare>(true);
            break;
    }
}

template <class Kind>
void run_kind(const program& todo, bool raced) {
    const auto& images = recorded_images();
    const image& sound = images[todo.image % cpu_bit % images.size()];
    static memory_file file;
    file.fill(sound);
    const hostile_writer others(file.base(), file.bytes(), plan_of(sound));
    trace_ring::recorder_options options;
    options.file = file.name();
    options.exists = trace_ring::if_exists::attach;
    options.step = 512;
    options.block_for = std::chrono::nanoseconds{0};
    std::optional<restless> second;  // until the recorder is gone
    std::optional<trace_ring::basic_recorder<Kind>> recorder;
    try {
        for (const command& next : todo.commands) {
            if (!next.is_action()) {
                if (!raced) others.apply(next);
                continue;
            }
            if (!recorder) recorder.emplace(options);
            if (raced && !second) second.emplace(others, todo);
            act(*recorder, next);
        }
    } catch (const std::system_error&) {
    }
}

void run_program(input data, bool raced) {
    const program todo(data);
    if ((todo.image & cpu_bit) != 0) {
        run_kind<by_cpu>(todo, raced);
    } else {
        run_kind<by_thread>(todo, raced);
    }
}
void run(input data) {
    run_program(data, false);
}
void run_raced(input data) {
    run_program(data, true);
}

}  // namespace
}  // namespace of_writer

const target writer_target{"writer", &of_writer::seeds, &of_writer::run, &mutate_program, 8000};
const target writer_raced_target{"writer_raced", &of_writer::seeds, &of_writer::run_raced,
                                 &mutate_program, 3000};

}  // namespace trace_ring_test::fuzz
