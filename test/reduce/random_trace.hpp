// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Traces made by chance.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include <reduce/file_builder.hpp>
#include <trace_ring/format/layout.hpp>
#include <trace_ring/position.hpp>

namespace trace_ring_test {

class dice {
public:
    explicit dice(std::uint64_t seed) : random_(seed) {}
    std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
    bool one_in(std::uint64_t n) { return below(n) == 0; }

private:
    std::mt19937_64 random_;
};

struct shape {
    std::uint64_t sub_buffers = 600;
    std::uint64_t opened = 500;  // more than there are: the ring goes round
    std::uint32_t lanes = 5;
    std::uint32_t sub_buffer_bytes = 512;
    bool jumps = false;    // a lane's clock goes back now and then
    bool told = false;     // as the clock's readings show
    bool sampled = false;  // records share readings of the clock
    bool losses = false;
    bool quiet = false;  // the first two lanes open few sub-buffers, and keep them open
    bool ahead = false;  // sub-buffers are opened long after their positions were drawn
};

/// What threads of very different haste would leave.
inline file_builder random_trace(dice& random, const shape& is) {
    file_builder b({.sub_buffer_bytes = is.sub_buffer_bytes,
                    .sub_buffers = is.sub_buffers,
                    .lanes = is.lanes + 1});
    b.clock_reading(0, 0, 1'700'000'000'000'000'000);
    b.clock_reading(is.told ? 10'000 : 1'000'000'000, 1'000'000'000, 1'700'000'001'000'000'000);
    const auto process = b.process(1200);
    const auto& event = b.event({1, "tick", {{"n"}}});
    struct writer {
        std::uint32_t lane;
        std::uint64_t time;
        std::uint64_t from = 0;       // joins when so many sub-buffers were opened
        trace_ring::position at = 0;  // of its open sub-buffer
        std::vector<trace_ring::position> drawn{};
    };
    std::vector<writer> writers;
    for (std::uint32_t i = 0; i < is.lanes; ++i) {
        writers.push_back({b.lane(process, 1000 + i), 0});
        if (i == is.lanes - 1) writers.back().from = is.opened / 2;
    }
    std::uint64_t now = 1000;
    std::uint64_t n = 0;
    trace_ring::position drawn = 0;
    for (std::uint64_t opened = 0; opened < is.opened;) {
        auto& who = writers[static_cast<std::size_t>(random.below(writers.size()))];
        if (opened < who.from) continue;
        if (is.quiet && who.lane <= 2 && !random.one_in(100)) continue;
        now += 1 + random.below(20);
        who.time = std::max(who.time, now);
        if (is.jumps && random.one_in(150)) who.time -= std::min<std::uint64_t>(who.time, 400);
        if (who.at == 0 || random.one_in(4)) {
            if (who.drawn.empty()) {
                const std::uint64_t run = is.ahead && random.one_in(3) ? 1 + random.below(8) : 1;
                for (std::uint64_t i = 0; i < run; ++i) who.drawn.push_back(++drawn);
            }
            const trace_ring::position at = who.drawn.front();
            who.drawn.erase(who.drawn.begin());
            const bool held = std::any_of(writers.begin(), writers.end(), [&](const writer& other) {
                return other.at != 0 && (at - other.at) % is.sub_buffers == 0;
            });
            // What others hold is passed over; what is a round old is theirs.
            if (held || at + is.sub_buffers <= drawn) continue;
            using trace_ring::layout::lane_entry;
            if (b.get(b.lane_at(who.lane) + offsetof(lane_entry, newest), 8) == 0) {
                b.put(b.lane_at(who.lane) + offsetof(lane_entry, began), who.time, 8);
            }
            b.open(who.lane, who.time, at);
            if (is.losses && random.one_in(5)) {
                b.lost(who.lane, static_cast<std::uint32_t>(random.below(3)), 1,
                       static_cast<std::uint32_t>(random.below(2)));
            }
            who.at = at;
            ++opened;
        }
        for (std::uint64_t i = who.at == 0 ? 0 : random.below(6); i > 0; --i) {
            const bool same = is.sampled && !random.one_in(4);
            if (!same) who.time += random.below(8);
            (void)b.record(who.lane, who.time, event, {n++}, same ? 2 : 0);
        }
        now = std::max(now, is.jumps ? now : who.time);
    }
    for (auto& who : writers) {
        if (who.at != 0 && random.one_in(2)) b.close(who.lane, who.time);
    }
    if (is.losses) {
        for (int i = 0; i < 10; ++i) {
            const trace_ring::position at = 1 + random.below(drawn);
            if (at + is.sub_buffers <= drawn) continue;
            bool newest = false;
            for (const auto& who : writers)
                newest = newest || b.get(b.lane_at(who.lane) + 32, 8) == at;
            if (!newest) b.wipe(at);
        }
    }
    return b;
}

/// Flips this many bits after the tables.
inline void flip_bits(file_builder& made, dice& random, std::uint64_t count) {
    const std::uint64_t from = made.plan().ring;
    for (; count != 0; --count) {
        const std::uint64_t at = from + random.below(made.bytes().size() - from);
        made.bytes()[static_cast<std::size_t>(at)] ^= static_cast<std::byte>(1U << random.below(8));
    }
}

}  // namespace trace_ring_test
