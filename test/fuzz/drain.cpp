// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Draining sessions in a file that somebody else changes, before, between and while portions are
/// visited: each way of draining ends, and touches nothing outside the file (guards.cpp).

#include <deque>
#include <optional>
#include <system_error>

#include <fuzz/hostile.hpp>
#include <fuzz/targets.hpp>
#include <trace_ring/drain/session.hpp>
#include <trace_ring/recorder/drain_source/drain_source.hpp>

namespace trace_ring_test::fuzz {

namespace of_drain {
namespace {

constexpr unsigned action_count = 9;

std::vector<buffer> seeds() {
    return program_seeds(recorded_images().size(), action_count);
}

/// Others fill sub-buffers at the same rate: draining has no end.
struct enough {};

void run_program(input data, bool raced) {
    const program todo(data);
    const auto& images = recorded_images();
    const image& sound = images[todo.image % images.size()];
    const auto plan = plan_of(sound);
    static memory_file file;
    file.fill(sound);
    const hostile_writer others(file.base(), file.bytes(), plan);
    using session = trace_ring::drain::session<trace_ring::drain_source>;
    std::optional<session> one;
    std::deque<session::held> held;
    std::size_t at = 0;
    std::uint64_t portions = 0;
    // As many as there are sub-buffers in a ring at rest; here they may be handed over again.
    const std::uint64_t most = 64 * plan.sub_buffer_limit;
    const auto look_at = [&](const auto& portion) {
        if (++portions == most) {
            expect(raced, "draining comes to an end");
            throw enough{};
        }
        unsigned sum = 0;
        for (const auto byte : portion.bytes()) sum += std::to_integer<unsigned>(byte);
        std::uint64_t records = 0;
        const auto there = portion.visit([&](const trace_ring::drained_record& record) {
            ++records;
            for (const auto word : record.payload) sum += static_cast<unsigned>(word);
        });
        expect(there == records && records <= portion.records(), "no more than it says");
        expect(portion.bytes().size() <= plan.sub_buffer_bytes, "portions are sub-buffers");
        // Others continue during this.
        if (!raced && sum % 3 == 0 && at < todo.commands.size() && !todo.commands[at].is_action()) {
            others.apply(todo.commands[at++]);
        }
    };
    std::optional<restless> second;
    if (raced) second.emplace(others, todo);
    try {
        while (at < todo.commands.size()) {
            const command next = todo.commands[at++];
            if (!next.is_action()) {
                if (!raced) others.apply(next);
                continue;
            }
            if (!one) one.emplace(file.name());
            portions = 0;
            switch (next.action(action_count)) {
                case 0:
                    one->for_each(look_at);
                    break;
                case 1:
                    (void)one->for_each_record([&](const auto& record) {
                        expect(record.payload.size() <= plan.sub_buffer_bytes / 8,
                               "a record lies within its sub-buffer");
                    });
                    break;
                case 2:
                    one->peek_each(look_at);
                    break;
                case 3:
                    one->finish(look_at);
                    break;
                case 4:
                case 5:
                    if (auto taken = one->take()) {
                        look_at(**taken);
                        held.push_back(std::move(*taken));
                    }
                    break;
                case 6:
                    if (!held.empty()) {
                        held.front().consume();
                        held.pop_front();
                    }
                    break;
                case 7:
                    held.clear();
                    break;
                default:
                    held.clear();
                    one.reset();
                    break;
            }
        }
    } catch (const std::system_error&) {
    } catch (const enough&) {
    }
    held.clear();
}

void run(input data) {
    run_program(data, false);
}
void run_raced(input data) {
    run_program(data, true);
}

}  // namespace
}  // namespace of_drain

const target drain_target{"drain", &of_drain::seeds, &of_drain::run, &mutate_program, 5000};
const target drain_raced_target{"drain_raced", &of_drain::seeds, &of_drain::run_raced,
                                &mutate_program, 2000};

}  // namespace trace_ring_test::fuzz
