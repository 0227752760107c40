// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// A trace file, cut short and changed at will, under the hands of who controls its recording.

#include <fuzz/hostile.hpp>
#include <fuzz/targets.hpp>
#include <optional>
#include <system_error>
#include <trace_ring/recorder/control.hpp>

namespace trace_ring_test::fuzz {

namespace of_control {
namespace {

constexpr unsigned action_count = 8;

std::vector<buffer> seeds() {
    return program_seeds(all_images().size(), action_count);
}

void run(input data) {
    const program todo(data);
    const auto& images = all_images();
    const image& sound = images[todo.image % images.size()];
    static memory_file file;
    file.fill(sound);
    const auto plan = plan_of(sound);
    std::optional<trace_ring::control> one;
    try {
        for (const command& next : todo.commands) {
            if (!next.is_action()) {
                hostile_writer(file.base(), file.bytes(), plan).apply(next);
                continue;
            }
            const unsigned action = next.action(action_count);
            if (action == 7 && !one) file.fill(sound, next.value % (sound.size() * 8 + 1));
            if (!one) one.emplace(file.name());
            std::size_t names = 0;
            switch (action) {
                case 0:
                    (void)one->enable("*", next.value % 2 == 0);
                    break;
                case 1:
                    (void)one->enable("*[a-o]?*r*", next.value % 2 == 0);
                    break;
                case 2:
                    one->list([&](std::string_view name, bool) { names += name.size(); });
                    expect(names <= file.bytes(), "names lie within the file");
                    break;
                case 3:
                    one->pause();
                    break;
                case 4:
                    one->resume();
                    break;
                case 5:
                    (void)one->snapshot_done(one->request_snapshot());
                    break;
                case 6:
                    one.reset();
                    break;
                default:
                    break;
            }
        }
    } catch (const std::system_error&) {
    }
}

}  // namespace
}  // namespace of_control

const target control_target{"control", &of_control::seeds, &of_control::run, &mutate_program, 5000};

}  // namespace trace_ring_test::fuzz
