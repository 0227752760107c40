// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The recorder under all interleavings within the bounds: sub-buffers are claimed, filled, closed
/// and overwritten by two threads, copied by a reader, held and given back by a session, and handed
/// on by a thread that ends. Eight sub-buffers, the fewest there may be, of two records each
/// (recorder_bench.hpp).

#include <model/fake_time.hpp>
#include <model/recorder_bench.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/recorder/drain_source/drain_source.hpp>

namespace {

using namespace recorders;
using trace_ring::loss_cause;

/// Both writers have a sub-buffer with room for one more record, and the ring has been round.
constexpr auto go_round = [](auto& on) {
    on.write_as(1, 11);
    on.write_as(2, 11);
};

void overwriting(model::run& run) {
    auto& on = bench_for(__PRETTY_FUNCTION__, full_mode::overwrite_oldest, go_round);
    on.begin(run);
    run.thread([&on] { on.write(1, 4); });
    run.thread([&on] { on.write(2, 4); });
    run.afterwards([&on] { on.close(); });
}

template <class Kind>
void reading(model::run& run) {
    auto& on = bench_for<Kind>(__PRETTY_FUNCTION__, full_mode::overwrite_oldest, go_round);
    on.begin(run);
    run.thread([&on] { on.write(1, 4); });
    run.thread([&on] {
        std::uint64_t found = 0;
        const auto newest = on.lanes().memory().ring().cursor.load(trace_ring::relaxed);
        // The newest, or one that is claimed during this, and those after it.
        for (std::size_t i = 0; i < 3; ++i)
            on.copy((newest + sub_buffers - 1 + i) % sub_buffers, found);
    });
    run.afterwards([&on] { on.close(); });
}

/// A session, which holds closed sub-buffers and reads them as plain memory.
struct session {
    explicit session(trace_ring::basic_recorder<untimed>& from) : source(from) { source.attach(); }

    bool take(bench& on, bool open_ones) {
        trace_ring::drained_sub_buffer portion;
        if (source.take(portion)) {
            look(on, portion);
            const auto bytes = portion.bytes();
            require(model::the_scheduler.read_plainly(bytes.data(), bytes.size()),
                    "what was handed over was written to");
            source.consume(portion);
            return true;
        }
        if (!open_ones || !source.take_open(portion)) return false;
        look(on, portion);
        source.consume(portion);
        return true;
    }
    void finish(bench& on) {
        for (unsigned w = 1; w <= 3; ++w) on.end_as(w);
        while (take(on, true)) {
        }
        lost += source.rest();
        source.detach();
        require(on.overwrites() || lost[loss_cause::overwritten] == 0,
                "what was not drained was overwritten");
        require(drained + lost[loss_cause::overwritten] == on.book.written,
                "drained and overwritten records are not all that were written");
        require(lost[loss_cause::refused] == on.book.tried - on.book.written,
                "what was refused was not told, or twice");
        require(lost.total() == lost[loss_cause::overwritten] + lost[loss_cause::refused],
                "something was lost for no reason");
    }

    trace_ring::drain_source source;
    trace_ring::loss_counts lost;
    std::uint64_t drained = 0;

private:
    void look(bench& on, const trace_ring::drained_sub_buffer& portion) {
        if (!portion.copied()) {
            const auto bytes = portion.bytes();
            require(model::the_scheduler.read_plainly(bytes.data(), bytes.size()),
                    "what was handed over is not all known");
        }
        lost += portion.lost();
        const auto found = portion.visit([&](const trace_ring::drained_record& r) {
            on.book.got(r.payload);
            require(on.owners_change || r.payload[0] % of_writer == r.at,
                    "a record was drained at another's position");
        });
        require(found == portion.records(), "a sub-buffer was found damaged");
        drained += found;
    }
};

/// Writers, and a concurrent session.
void draining(model::run& run, bench& on, unsigned writers, unsigned records, unsigned takes,
              bool open_ones) {
    static model::anew<session> drains;
    on.held_back_only = !open_ones;
    on.begin(run);
    drains.make(on.of());
    for (unsigned w = 1; w <= writers; ++w) run.thread([=, &on] { on.write(w, records); });
    run.thread([=, &on] {
        for (unsigned i = 0; i < takes; ++i) {
            if (!drains->take(on, open_ones)) model::yield();
        }
    });
    run.afterwards([&on] {
        drains->finish(on);
        on.close();
    });
}

/// A thread ends and hands its sub-buffer on, while others come.
void adopting(model::run& run) {
    auto& on = bench_for(__PRETTY_FUNCTION__, full_mode::overwrite_oldest, [](auto& b) {
        b.owners_change = true;
        b.write_as(1, 2);
    });
    on.begin(run);
    run.thread([&on] {
        on.write(1, 1);
        on.end_thread();
    });
    run.thread([&on] { on.write(2, 2); });
    run.thread([&on] { on.write(3, 1); });
    run.afterwards([&on] { on.close(); });
}

/// A released lane is adopted while its sub-buffer is about to be overwritten.
void adopting_the_oldest(model::run& run) {
    auto& on = bench_for(__PRETTY_FUNCTION__, full_mode::overwrite_oldest, [](auto& b) {
        b.owners_change = true;
        // 18 to a sub-buffer: the next that is claimed is the one that the first thread left.
        b.write_as(3, 1);
        b.write_as(1, 2);
        b.end_as(1);
        b.write_as(3, 18 * sub_buffers - 1);
    });
    on.begin(run);
    run.thread([&on] { on.write(2, 2); });
    run.thread([&on] { on.write(3, 2); });
    run.afterwards([&on] { on.close(); });
}

}  // namespace

MODEL_TEST(two_threads_claim_fill_and_close_sub_buffers, 24'000'000) {
    overwriting(run);
}
MODEL_TEST(a_reader_copies_sub_buffers_that_a_thread_overwrites, 24'000'000) {
    reading<untimed>(run);
}
MODEL_TEST(a_reader_copies_what_is_recorded_with_a_clock, 24'000'000) {
    reading<timed>(run);
}
MODEL_TEST(a_session_drains_what_two_threads_write_and_is_told_what_it_missed, 24'000'000) {
    auto& on = bench_for(__PRETTY_FUNCTION__, full_mode::overwrite_oldest, go_round);
    draining(run, on, 2, 3, 3, false);
}
MODEL_TEST(a_session_that_takes_open_sub_buffers_gets_no_record_twice, 24'000'000) {
    auto& on = bench_for(__PRETTY_FUNCTION__, full_mode::overwrite_oldest, go_round);
    draining(run, on, 1, 4, 4, true);
}
MODEL_TEST(a_session_makes_room_in_a_ring_that_refuses, 24'000'000) {
    auto& on = bench_for(__PRETTY_FUNCTION__, full_mode::discard_newest, [](auto& b) {
        b.write_as(1, 7);
        b.write_as(2, 7);
    });
    draining(run, on, 2, 3, 3, false);
}
MODEL_TEST(a_session_makes_room_for_a_thread_that_waits, 24'000'000) {
    auto& on = bench_for(__PRETTY_FUNCTION__, full_mode::block, [](auto& b) {
        b.write_as(1, 8);
        b.write_as(2, 7);
    });
    draining(run, on, 1, 2, 3, false);
}
MODEL_TEST(a_lane_whose_thread_ends_is_adopted_with_what_it_has_not_filled, 24'000'000) {
    adopting(run);
}
MODEL_TEST(a_released_lane_is_adopted_or_overwritten, 24'000'000) {
    adopting_the_oldest(run);
}
