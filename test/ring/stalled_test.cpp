// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// A ring that processes share, one of which stops or dies while it holds a place in it, or at any
// instruction on the way: the others lose that one place, none of their records, and never wait.
// All of it is decided by who goes when, nothing by chance.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <kinds.hpp>
#include <proof.hpp>
#include <recorder/scratch.hpp>
#include <shared_board.hpp>
#include <stepping.hpp>

BOOST_AUTO_TEST_SUITE(stalled_processes)

using namespace kinds;
using trace_ring::loss_cause;
using trace_ring::position;

namespace {

struct file_swap : policies<storage::shared_file, record::sequenced<sample>> {};
struct file_discard
    : policies<storage::shared_file, full::discard_newest, record::sequenced<sample>> {};
using overwriting = std::tuple<file_add, file_swap>;

/// What is recorded by the process that stops; the others number theirs from 1.
constexpr std::uint64_t foreign = 666;

/// A ring and the process that continues in it.
template <class Kind>
class living {
public:
    explicit living(const std::string& file) : ring(file, sequenced_bytes) {}

    /// Each is recorded immediately: a record that was not possible was counted, and no writer
    /// waited for it.
    void write(std::uint64_t count) {
        for (std::uint64_t i = 0; i < count; ++i) BOOST_REQUIRE(put(ring, ++written));
    }
    /// Goes on, and round, while the position `held` has its slot: how often that was passed.
    std::uint64_t write_around(std::uint64_t count, position held) {
        const std::uint64_t vacant = ring.vacant();
        const position before = ring.produced();
        write(count);
        const std::uint64_t passed = ring.vacant() - vacant;
        BOOST_REQUIRE(ring.produced() - before == count + passed);
        std::uint64_t turns = 0;
        for (position p = before + 1; p <= ring.produced(); ++p) {
            turns += (p - held) % table_slots == 0 ? 1 : 0;
        }
        BOOST_REQUIRE((passed == 0 || passed == turns));
        return passed;
    }
    /// What was written last is there, as far as `slots` slots hold it. What is not of this process
    /// is whole, and was recorded by the other.
    void expect_newest(std::uint64_t slots) const {
        std::vector<std::uint64_t> mine;
        auto reader = ring.reader();
        for (;;) {
            const auto item = reader.next();
            if (item.is_pending()) {
                static_cast<void>(reader.pass_over());
                continue;
            }
            if (!item) break;
            if (!item.is_record()) continue;
            BOOST_REQUIRE(item.record.whole());
            if (item.record.writer == 0) mine.push_back(item.record.number);
            if (item.record.writer != 0) BOOST_REQUIRE(item.record.number == foreign);
        }
        const std::uint64_t least = std::min(written, slots);
        BOOST_REQUIRE(mine.size() >= least);
        if (!mine.empty()) BOOST_REQUIRE(mine == range(written - mine.size() + 1, written));
        BOOST_REQUIRE(reader.lost()[loss_cause::abandoned] <= 1U);
    }

    trace_ring::ring<Kind> ring;
    std::uint64_t written = 0;
};

/// A child that reserves a place, fills it, and commits on request.
template <class Kind>
class holder {
public:
    explicit holder(const std::string& file)
        : child_(test::start_child([&]() -> int {
              trace_ring::ring<Kind> ring(file);
              auto place = ring.try_reserve();
              if (!place) return 2;
              *place = sample(foreign, 1);
              told_->begun[0] = place.at();
              told_->ready = 1;
              test::wait_until(told_->ready, 2);
              return place.commit() ? 0 : 1;
          })) {
        test::wait_until(told_->ready, 1);
        ::kill(child_, SIGSTOP);
        int status = 0;
        BOOST_REQUIRE(::waitpid(child_, &status, WUNTRACED) == child_);
        BOOST_REQUIRE(WIFSTOPPED(status));
    }
    holder(const holder&) = delete;
    holder& operator=(const holder&) = delete;
    ~holder() {
        if (!over_) kill();
    }

    [[nodiscard]] position at() const { return told_->begun[0].load(); }
    void kill() {
        over_ = true;
        ::kill(child_, SIGKILL);
        BOOST_TEST(test::wait_for(child_) == -SIGKILL);
    }
    /// Resumes it. Returns whether its record came in time.
    bool go_on() {
        over_ = true;
        told_->ready = 2;
        ::kill(child_, SIGCONT);
        const int status = test::wait_for(child_);
        BOOST_TEST((status == 0 || status == 1));
        return status == 0;
    }

private:
    test::shared_board told_;
    pid_t child_;
    bool over_ = false;
};

/// Slots from one that is tried to the next: all of them, but where forks are slow.
constexpr std::uint64_t slot_step = test::scale == 1 ? 1 : 5;
static_assert((table_slots - 1) % slot_step == 0);

/// Calls `run(records before, folder)` for each slot that the next position may have, in a ring
/// that is not full and in one that has gone round.
template <class Run>
void at_each_position(const Run& run) {
    for (const std::uint64_t before : {std::uint64_t{0}, 2 * table_slots}) {
        for (std::uint64_t slot = 0; slot < table_slots; slot += slot_step) {
            const test::folder folder;
            BOOST_TEST_CONTEXT("after " << before + slot << " records") {
                run(before + slot, folder / "ring");
            }
        }
    }
}

constexpr std::uint64_t laps = 5;

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(one_that_dies_with_a_place_costs_its_slot_and_no_more, Kind,
                              overwriting) {
    at_each_position([](std::uint64_t before, const std::string& file) {
        living<Kind> others(file);
        others.write(before);
        holder<Kind> dead(file);
        BOOST_REQUIRE(dead.at() == before + 1);
        dead.kill();
        // Until it is passed for the first time, readers see that a record is pending.
        others.write(3);
        auto reader = others.ring.reader();
        BOOST_TEST(numbers(reader).size() == std::min(before, table_slots - 4));
        BOOST_REQUIRE(reader.next().is_pending());
        BOOST_TEST(reader.at() == dead.at());
        BOOST_TEST(reader.pass_over().is_loss());
        BOOST_TEST(numbers(reader) == range(before + 1, before + 3));

        const std::uint64_t passed = others.write_around(laps * (table_slots - 1), dead.at());
        BOOST_TEST(passed == laps);
        BOOST_TEST(others.ring.lost()[loss_cause::refused] == 0U);
        BOOST_TEST(others.written + passed + 1 == others.ring.produced());
        others.expect_newest(table_slots - 1);
        // The slot stays lost, to processes that come later, too.
        trace_ring::ring<Kind> late(file);
        BOOST_TEST(numbers(late.reader()).size() == table_slots - 1);
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(one_that_was_stopped_with_a_place_comes_too_late_and_does_no_harm,
                              Kind, overwriting) {
    at_each_position([](std::uint64_t before, const std::string& file) {
        living<Kind> others(file);
        others.write(before);
        holder<Kind> stopped(file);
        const std::uint64_t passed =
            others.write_around(laps * (table_slots - 1) + 3, stopped.at());
        BOOST_TEST(passed == laps);
        others.expect_newest(table_slots - 1);

        BOOST_TEST(!stopped.go_on());
        others.expect_newest(table_slots - 1);
        // The slot is used again.
        others.write(2 * table_slots);
        others.expect_newest(table_slots);
        BOOST_TEST(others.ring.vacant() == passed + 1);
        BOOST_TEST(others.written + others.ring.vacant() == others.ring.produced());
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(one_that_was_stopped_for_less_than_a_lap_is_in_time, Kind,
                              overwriting) {
    at_each_position([](std::uint64_t before, const std::string& file) {
        living<Kind> others(file);
        others.write(before);
        holder<Kind> slow(file);
        others.write(table_slots - 1);
        auto reader = others.ring.reader();
        BOOST_REQUIRE(reader.next().is_pending());
        BOOST_TEST(slow.go_on());
        const auto item = reader.next();
        BOOST_REQUIRE(item.is_record());
        BOOST_TEST(item.record.number == foreign);
        BOOST_TEST(item.record.whole());
        BOOST_TEST(numbers(reader) == range(before + 1, others.written));
        BOOST_TEST(others.ring.vacant() == 0U);
    });
}

BOOST_AUTO_TEST_CASE(a_full_ring_that_discards_goes_on_without_the_slot_of_the_dead) {
    for (std::uint64_t before = 0; before < table_slots; before += slot_step) {
        const test::folder folder;
        living<file_discard> others(folder / "ring");
        auto consumer = others.ring.consumer();
        others.write(before);
        holder<file_discard> dead(folder / "ring");
        dead.kill();
        others.write(table_slots - 1 - before);
        // Full: a further writer is refused immediately, and counted.
        for (std::uint64_t i = 1; i <= 3; ++i) {
            BOOST_TEST(!put(others.ring, foreign));
            BOOST_TEST(others.ring.lost()[loss_cause::refused] == i);
        }
        BOOST_TEST(numbers(consumer) ==
                   (before == 0 ? std::vector<std::uint64_t>{} : range(1, before)));
        BOOST_REQUIRE(consumer.next().is_pending());
        BOOST_TEST(consumer.pass_over().is_loss());
        if (before + 1 < table_slots) {
            BOOST_TEST(numbers(consumer) == range(before + 1, table_slots - 1));
        }
        // Each lap has room for one less, and all of it is read.
        for (std::uint64_t lap = 1; lap <= laps; ++lap) {
            const std::uint64_t from = others.written + 1;
            others.write(table_slots - 1);
            BOOST_TEST(!put(others.ring, foreign));  // which passes the slot if that is the last
            BOOST_TEST(others.ring.vacant() == lap);
            BOOST_TEST(numbers(consumer) == range(from, others.written));
        }
        BOOST_TEST(consumer.read() == others.written);
        BOOST_TEST(consumer.vacant() == laps);
        BOOST_TEST(others.ring.lost()[loss_cause::abandoned] == 1U);
    }
}

namespace {

/// A child writes one record, stops after `at` instructions of it while others wrap the ring, and
/// then dies or continues. False: it was done before. `held` counts those that held a slot.
template <class Kind>
bool stop_after(std::uint64_t at, bool dies, std::uint64_t before, std::uint64_t& held) {
    const test::folder folder;
    const std::string file = folder / "ring";
    living<Kind> others(file);
    others.write(before);
    const test::shared_board told;
    const pid_t child = test::start_child([&]() -> int {
        trace_ring::ring<Kind> ring(file);
        if (!test::stop_to_be_stepped(*told)) return 77;
        told->recorded[0] = put(ring, foreign, 1) ? 1 : 0;
        told->ready = 1;
        return 0;
    });
    test::stepped stepped(child, *told);
    BOOST_REQUIRE(static_cast<bool>(stepped));
    for (std::uint64_t i = 0; i < at && told->ready.load() == 0; ++i) {
        BOOST_REQUIRE(stepped.step());
    }
    const bool over = told->ready.load() != 0;
    const std::uint64_t passed = others.write_around(3 * table_slots, before + 1);
    held += passed != 0 ? 1 : 0;
    others.expect_newest(table_slots - 1);
    if (dies) {
        BOOST_REQUIRE(stepped.kill() == -SIGKILL);
        BOOST_REQUIRE((others.write_around(3 * table_slots, before + 1) != 0) == (passed != 0));
        others.expect_newest(table_slots - 1);
        const std::uint64_t fates = others.written + others.ring.vacant();
        BOOST_REQUIRE(others.ring.produced() - fates <= 1);  // the dead writer's record
    } else {
        BOOST_REQUIRE(stepped.end() == 0);
        // What held a slot was passed, and is lost. What held none yet is recorded in its turn.
        BOOST_REQUIRE((told->recorded[0].load() == 1) == (passed == 0));
        others.expect_newest(table_slots - 2);
        others.write(2 * table_slots);
        others.expect_newest(table_slots);
        BOOST_REQUIRE(others.written + told->recorded[0].load() + others.ring.vacant() ==
                      others.ring.produced());
    }
    BOOST_REQUIRE(others.ring.lost()[loss_cause::refused] == 0U);
    return !over;
}

bool can_step() {
    const test::shared_board told;
    test::stepped child(test::start_child([&] { return test::stop_to_be_stepped(*told) ? 0 : 77; }),
                        *told);
    return child || !test::cannot_be_traced();
}

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(one_may_stop_or_die_at_any_instruction_of_a_record, Kind,
                              overwriting) {
    if (test::cannot_be_stepped() || !can_step()) return;
    std::uint64_t held = 0;
    std::uint64_t instructions = 0;
    for (bool under_way = true; under_way; ++instructions) {
        for (const bool dies : {false, true}) {
            const std::uint64_t before =
                (instructions % 2 == 0 ? 2 * table_slots : 0) + instructions % table_slots;
            BOOST_TEST_CONTEXT("after " << instructions << " instructions and " << before
                                        << " records") {
                under_way = stop_after<Kind>(instructions, dies, before, held);
            }
        }
    }
    BOOST_TEST_MESSAGE(instructions << " instructions, twice; " << held << " held a slot");
    BOOST_TEST(held > 0U);
    BOOST_TEST(held < 2 * instructions);
    trace_ring_test::proof("death", 2 * instructions, "kills at chosen instructions");
}

BOOST_AUTO_TEST_SUITE_END()
