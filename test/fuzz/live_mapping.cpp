// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// A trace that changes between the steps of its readers, and anywhere: reading continues, and
/// comes to an end when the changes do.

#include <optional>

#include <fuzz/hostile.hpp>
#include <fuzz/targets.hpp>
#include <reduce/read_all.hpp>
#include <trace_reduce/unfinished.hpp>

namespace trace_ring_test::fuzz {

namespace of_live_mapping {
namespace {

namespace reduce = trace_ring::reduce;

constexpr unsigned action_count = 10;

std::vector<buffer> seeds() {
    return program_seeds(all_images().size(), action_count);
}

/// One that reads, and looks at all that it is given.
class reader {
public:
    reader(const reduce::trace_file& file, reduce::cursor from)
        : lines_(file), at_(std::move(from)) {}

    /// Some steps; false at the end.
    bool step(std::uint64_t count) {
        for (; count != 0; --count) {
            const auto* const item = at_.next();
            if (item == nullptr) return false;
            if (seen_++ % 8 == 0) lines_.check(*item);
            if (const auto* record = std::get_if<reduce::record_view>(item)) {
                look_at(*record);
                for (const auto& next : at_.records()) look_at(next);
            }
        }
        return true;
    }
    void stop_following() { at_.stop_following(); }

private:
    static void look_at(const reduce::record_view& record) {
        std::uint64_t elements = 0;
        record.for_each_field([&](const auto&, const reduce::field_value& value) {
            for (std::size_t i = 0; i < value.size(); ++i) elements += value.at(i).u64() & 1U;
            elements += value.text().size();
        });
        expect(elements <= 32768, "fields lie within their record");
        for (const auto byte : record.payload()) elements += std::to_integer<unsigned>(byte);
        expect(record.lane().number != 0 || elements < ~std::uint64_t{0}, "a record has a lane");
    }

    line_check lines_;
    reduce::cursor at_;
    std::uint64_t seen_ = 0;
};

void run_program(input data, bool raced) {
    const program todo(data);
    const auto& images = all_images();
    image memory = images[todo.image % images.size()];
    const std::uint64_t size = memory.size() * 8;
    const hostile_writer others(memory.data(), size, plan_of(memory));
    const auto span = std::as_bytes(std::span<const std::uint64_t>(memory));
    std::optional<reduce::trace_file> file;
    std::optional<reader> forward, backward, following;
    const auto steps = [&](std::optional<reader>& who, std::uint64_t count, auto&& make) {
        if (!who) who.emplace(*file, make());
        if (!who->step(count)) who.reset();
    };
    std::optional<restless> second;
    if (raced) second.emplace(others, todo);
    try {
        for (const command& next : todo.commands) {
            if (!next.is_action()) {
                if (!raced) others.apply(next);
                continue;
            }
            if (!file) file.emplace(reduce::trace_file::from(span));
            const std::uint64_t count = 1 + next.value % 16;
            switch (next.action(action_count)) {
                case 0:
                case 1:
                    steps(forward, count, [&] { return file->forward(); });
                    break;
                case 2:
                    steps(backward, count, [&] { return file->backward(); });
                    break;
                case 3:
                case 4:
                    if (!following) following.emplace(*file, file->follow());
                    (void)following->step(count);
                    break;
                case 5:
                    (void)file->statistics();
                    (void)trace_reduce::find_unfinished(file->about());
                    break;
                case 6:
                    (void)file->live();
                    (void)file->realtime_ns(next.value);
                    break;
                case 7:
                    if (following) following->stop_following();
                    break;
                case 8: {
                    reduce::filter some;
                    some.events = {"*r*"};
                    some.from = next.value;
                    steps(forward, count,
                          [&] { return file->forward(some, reduce::merging::by_lane); });
                    break;
                }
                default:
                    // Existing state refers to old contents, so these begin anew.
                    forward.reset();
                    backward.reset();
                    following.reset();
                    file->refresh();
                    break;
            }
        }
        second.reset();
        for (auto* who : {&forward, &backward, &following}) {
            if (*who) expect(!(*who)->step(size), "what does not change any more has an end");
        }
        if (following) {
            following->stop_following();
            expect(!following->step(size), "and an end to following");
        }
    } catch (const trace_ring::format_error& error) {
        expect(!error.cause().empty(), "there is a cause");
    }
}

void run(input data) {
    run_program(data, false);
}
void run_raced(input data) {
    run_program(data, true);
}

}  // namespace
}  // namespace of_live_mapping

const target live_mapping_target{"live_mapping", &of_live_mapping::seeds, &of_live_mapping::run,
                                 &mutate_program, 2000};
const target live_mapping_raced_target{"live_mapping_raced", &of_live_mapping::seeds,
                                       &of_live_mapping::run_raced, &mutate_program, 300};

}  // namespace trace_ring_test::fuzz
