// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Tables: each claim, layout and full policy under all interleavings within the bounds. Rings have
/// two slots, so that writers lap each other immediately.

#include <chrono>
#include <utility>

#include <model/fake_time.hpp>
#include <model/rings.hpp>
#include <trace_ring/das/control_words.hpp>
#include <trace_ring/drain/listener.hpp>
#include <trace_ring/policy/claim/compare_exchange.hpp>
#include <trace_ring/policy/claim/fetch_add.hpp>
#include <trace_ring/policy/claim/single_writer.hpp>
#include <trace_ring/policy/full/block.hpp>
#include <trace_ring/policy/full/discard_newest.hpp>
#include <trace_ring/policy/full/extend.hpp>
#include <trace_ring/policy/full/overwrite_oldest.hpp>
#include <trace_ring/policy/full/stop.hpp>
#include <trace_ring/policy/notify/at_watermark.hpp>
#include <trace_ring/policy/storage/inline_bytes.hpp>

namespace {

using namespace rings;
namespace claim = trace_ring::claim;
namespace full = trace_ring::full;
namespace notify = trace_ring::notify;
namespace record = trace_ring::record;
namespace storage = trace_ring::storage;
using trace_ring::policies;
using trace_ring::ring_policies;

template <std::uint64_t Slots>
using sequenced_slots = storage::inline_bytes<Slots*(sizeof(sample) + 8)>;
template <std::uint64_t Slots>
using bare_slots = storage::inline_bytes<Slots * sizeof(sample)>;
using sequenced = record::sequenced<sample>;
using bare = record::bare<sample>;

struct swap : policies<sequenced, claim::compare_exchange, sequenced_slots<2>> {};
struct add : policies<sequenced, claim::fetch_add, sequenced_slots<2>> {};
struct one : policies<sequenced, claim::single_writer, sequenced_slots<2>> {};
struct bare_one : policies<bare, claim::single_writer, bare_slots<2>> {};
struct bare_swap : policies<bare, claim::compare_exchange, bare_slots<4>> {};
struct bare_add : policies<bare, claim::fetch_add, bare_slots<4>> {};
struct refuses : policies<sequenced, full::discard_newest, sequenced_slots<2>> {};
struct one_refuses
    : policies<sequenced, claim::single_writer, full::discard_newest, sequenced_slots<2>> {};
struct bare_refuses : policies<bare, claim::single_writer, full::discard_newest, bare_slots<2>> {};
struct stops : policies<sequenced, full::stop, sequenced_slots<2>> {};
struct waits : policies<sequenced, full::block<std::chrono::milliseconds{1}>, sequenced_slots<2>,
                        notify::at_watermark<notify::records(1)>> {};
struct bare_waits : policies<bare, claim::single_writer, full::block<std::chrono::milliseconds{1}>,
                             bare_slots<2>, notify::at_watermark<notify::records(1)>> {};
/// Memory that a ring finds to be more and more, up to `Most` bytes of records.
template <std::uint64_t First, std::uint64_t Most>
class growing {
public:
    using family = trace_ring::family::storage;

    std::byte* data() noexcept { return bytes_; }
    [[nodiscard]] std::uint64_t size() const noexcept { return storage::control_bytes + First; }
    [[nodiscard]] bool fresh() const noexcept { return true; }
    [[nodiscard]] std::uint64_t limit() const noexcept { return storage::control_bytes + Most; }
    bool grow(std::uint64_t bytes) noexcept { return bytes <= limit(); }

private:
    alignas(storage::alignment) std::byte bytes_[storage::control_bytes + Most]{};
};
static_assert(storage::growable<growing<24, 48>>);

struct add_grows : policies<sequenced, claim::fetch_add, full::extend<24, full::overwrite_oldest>,
                            growing<24, 96>> {};
struct bare_grows : policies<bare, claim::single_writer, full::extend<16, full::overwrite_oldest>,
                             growing<16, 48>> {};
struct grows_refuses
    : policies<sequenced, full::extend<24, full::discard_newest>, growing<24, 48>> {};
struct das : policies<bare, claim::das_pointers, bare_slots<4>> {};
struct cp : policies<bare, claim::cp_offsets, bare_slots<4>> {};

/// What one kind needs, anew for each run.
template <class Kind>
struct bench {
    using ring_type = trace_ring::ring<Kind>;
    model::anew<ring_type> ring;
    model::anew<books> book;
    model::anew<trace_ring::table_reader<trace_ring::table_ring<Kind>>> reader;
    model::anew<trace_ring::table_consumer<trace_ring::table_ring<Kind>>> consumer;
    model::anew<typename ring_type::reservation_type> left_open;

    position open_at = 0;  ///< of a writer that stalled

    void begin(model::run& run) {
        consumer.leave();  // an interrupted run has no ring left to report to
        ring.make();
        book.make();
        run.name("ring", &*ring, sizeof(ring_type));
        if (!ring_type::sequenced && ring_type::claim_policy::many_writers) return;
        for_each_record([&](const void* at) { run.handed_on(at, sizeof(sample)); });
    }
    /// The records' words, not the sequence in front of them.
    template <class Visit>
    void for_each_record(Visit visit) {
        for (std::uint64_t i = 0; i < ring->capacity(); ++i) {
            visit(ring->slot_at(i) + (ring_type::sequenced ? 8 : 0));
        }
    }
    /// Positions, records and losses add up, for a ring that overwrites. `open` records of writers
    /// that stalled do not change.
    void close(std::uint64_t open = 0) {
        book->close();
        const std::uint64_t produced = ring->produced();
        const std::uint64_t missed = reader->lost().total();
        require(produced > ring->capacity() || missed == open,
                "something was lost though there was a slot for each");
        require(book->read == reader->read(), "the reader counts other records");
        require(book->read + missed + reader->vacant() == produced,
                "read, lost and vacant positions are not all that there were");
        require(produced == book->written + ring->vacant() + open ||
                    (!ring_type::claim_policy::many_writers && produced == book->written),
                "written and vacant positions are not all that there were");
        require(ring->lost()[loss_cause::refused] == book->refused,
                "what was refused was not counted so");
        require(book->late + book->discarded <= ring->vacant() ||
                    !ring_type::claim_policy::many_writers,
                "a record came to nothing and its position is not vacant");
        if constexpr (ring_type::sequenced) {
            for (std::uint64_t i = 0; open == 0 && i < ring->capacity(); ++i) {
                const auto word = trace_ring::word_at<std::uint64_t>(ring->slot_at(i), 0)
                                      .load(trace_ring::relaxed);
                const auto state = static_cast<trace_ring::table_slots::state>(
                    trace_ring::stamped::from(word).state);
                require(state != trace_ring::table_slots::state::writing &&
                            state != trace_ring::table_slots::state::passed,
                        "a slot is held though nobody writes");
            }
        }
        if (missed == 0) require(book->read == book->written, "a record is missing, uncounted");
        newest_are_there(open);
    }
    /// From now on nothing changes: backwards all that a ring can hold is there, and whole.
    void newest_are_there(std::uint64_t open) {
        auto back = ring->backward_reader();
        const bool is_there = open_at + ring->capacity() > ring->produced();
        std::uint64_t found = 0;
        for (auto item = back.next(); item; item = back.next()) {
            if (!item.is_record()) continue;
            ++found;
            require(item.record.whole(), "a torn record was read backwards");
        }
        require(back.lost()[loss_cause::overrun] == 0 &&
                    back.lost()[loss_cause::abandoned] <= (is_there ? open : 0),
                "a record is not to be had though nobody writes");
        require(found + back.vacant() + back.lost().total() == ring->produced(),
                "positions are missing backwards");
    }
};

/// Writers that overwrite, and a reader that follows.
template <class Kind, unsigned Writers, unsigned Records, unsigned Discards = ~0U>
void overwriting(model::run& run) {
    static bench<Kind> on;
    on.begin(run);
    on.reader.make(on.ring->reader());
    for (unsigned w = 1; w <= Writers; ++w) {
        run.thread([w] { write(*on.ring, *on.book, w, Records, w == 1 ? Discards : ~0U); });
    }
    run.thread([] { read(*on.reader, *on.book, Writers * Records + 1); });
    run.afterwards([] {
        read_rest(*on.reader, *on.book);
        on.close();
    });
}

/// Writers that are refused where there is no room, and the consumer that makes it.
template <class Kind, unsigned Writers, unsigned Records, unsigned Discards = ~0U,
          unsigned AtATime = 1>
void refusing(model::run& run) {
    static bench<Kind> on;
    on.begin(run);
    on.consumer.make(*on.ring, AtATime);
    on.for_each_record([&](const void* at) { run.exclusive(at, sizeof(sample)); });
    for (unsigned w = 1; w <= Writers; ++w) {
        run.thread([w] { write(*on.ring, *on.book, w, Records, w == 1 ? Discards : ~0U); });
    }
    run.thread([] { read(*on.consumer, *on.book, Writers * Records); });
    run.afterwards([] {
        read_rest(*on.consumer, *on.book);
        on.book->close();
        require(on.book->read == on.book->written, "a record is missing that was not refused");
        require(on.consumer->lost().total() == 0, "something was lost where nothing may be");
        require(on.ring->lost()[loss_cause::refused] == on.book->refused,
                "what was refused was not counted so");
        if constexpr (ring_policies<Kind>::claim_policy::many_writers) {
            require(on.book->written + on.ring->vacant() == on.ring->produced(),
                    "written and vacant positions are not all that there were");
        }
    });
}

/// One that is slow and one that laps it, twice.
template <class Kind>
void lapped(model::run& run) {
    static bench<Kind> on;
    on.begin(run);
    on.reader.make(on.ring->reader());
    run.thread([] { write(*on.ring, *on.book, 1, 1); });
    run.thread([] { write(*on.ring, *on.book, 2, 5); });
    run.afterwards([] {
        read_rest(*on.reader, *on.book);
        on.close();
    });
}

/// Positions copied by a reader that does not know the cursor.
template <class Kind, unsigned Records>
void copying(model::run& run) {
    static bench<Kind> on;
    on.begin(run);
    run.thread([] { write(*on.ring, *on.book, 1, Records); });
    run.thread([] {
        for (position p = 1; p <= Records; ++p) {
            sample record;
            if (on.ring->copy(p, record) != trace_ring::table_slots::found::record) continue;
            require(record.whole() && record.number == of_writer + p - 1, "a torn record was read");
        }
    });
}

/// The same in bare tables of many writers, whose readers may get torn records, by name: positions
/// add up, and what nobody wrote over is whole in the end.
template <class Kind>
void overwriting_unmarked(model::run& run) {
    static bench<Kind> on;
    on.begin(run);
    on.reader.make(on.ring->reader());
    for (unsigned w = 1; w <= 2; ++w) {
        run.thread([w] { write(*on.ring, *on.book, w, 2, w == 1 ? 1 : ~0U); });
    }
    run.thread([] {
        for (int i = 0; i < 3; ++i) {
            if (!on.reader->next()) model::yield();
        }
    });
    run.afterwards([] {
        on.book->close();
        while (on.reader->next()) {
        }
        require(on.reader->read() + on.reader->lost().total() == on.ring->produced(),
                "read and lost positions are not all that there were");
        require(on.ring->produced() == on.book->written + on.ring->vacant(),
                "written and vacant positions are not all that there were");
        auto back = on.ring->backward_reader();
        std::uint64_t zeros = 0;
        for (auto item = back.next(); item; item = back.next()) {
            zeros += item.record.number == 0 && item.record.again == 0 ? 1U : 0U;
            if (item.record.number != 0) {
                require(item.record.whole() && on.book->is_written[item.record.number],
                        "a record that nobody wrote over is torn");
            }
        }
        require(zeros == on.ring->vacant(), "what was discarded was not zeroed");
    });
}

/// A writer that stops forever in the middle of a record; the others continue.
template <class Kind, unsigned Records>
void stalled(model::run& run) {
    static bench<Kind> on;
    on.begin(run);
    on.reader.make(on.ring->reader());
    run.thread([] {
        auto slot = on.ring->try_reserve();
        if (slot) {
            *slot = sample(of_writer);
            on.open_at = slot.at();
            on.left_open.make(std::move(slot));
            on.left_open.leave();
        } else {
            ++on.book->tried;
            ++on.book->refused;
        }
    });
    run.thread([] { write(*on.ring, *on.book, 2, Records); });
    run.thread([] { read(*on.reader, *on.book, Records); });
    run.afterwards([] {
        for (bool more = true; more;) {
            const auto item = on.reader->next();
            if (item.is_record()) on.book->got(item.record, item.at);
            if (item.is_pending()) on.reader->pass_over();
            more = item || item.is_pending();
        }
        require(on.book->tried == Records, "the writer that stalled got no place");
        require(on.book->written == Records, "a stalled writer cost another one a record");
        on.close(1);
    });
}

/// One shot: what was there when it stopped stays, in its order.
template <class Kind, unsigned Writers, unsigned Records>
void stopping(model::run& run) {
    static bench<Kind> on;
    on.begin(run);
    on.reader.make(on.ring->reader());
    for (unsigned w = 1; w <= Writers; ++w) {
        run.thread([w] { write(*on.ring, *on.book, w, Records); });
    }
    run.thread([] { read(*on.reader, *on.book, 2); });
    run.afterwards([] {
        read_rest(*on.reader, *on.book);
        on.close();
        require(on.ring->stopped(), "it did not stop");
        require(on.book->read == 2 && on.reader->lost().total() == 0, "its beginning is not whole");
    });
}

/// Writers that wait for room, and a consumer that sleeps until it is notified.
template <class Kind, unsigned Writers, unsigned Records>
void waiting(model::run& run) {
    static bench<Kind> on;
    on.begin(run);
    model::slept = 0;
    trace_ring::notify::wakes.store(0, trace_ring::relaxed);
    on.consumer.make(*on.ring);
    for (unsigned w = 1; w <= Writers; ++w) {
        run.thread([w] { write(*on.ring, *on.book, w, Records); });
    }
    run.thread([] {
        trace_ring::drain::listener listener(*on.ring, *on.consumer);
        for (;;) {
            while (const auto item = on.consumer->next()) {
                if (item.is_record()) on.book->got(item.record, item.at);
            }
            if (on.book->read == Writers * Records || on.book->refused != 0) return;
            listener.wait();
        }
    });
    run.afterwards([] {
        read_rest(*on.consumer, *on.book);
        on.book->close();
        require(on.book->refused == 0, "a writer was refused though the consumer would have come");
        require(on.book->read == on.book->written, "a record is missing");
    });
}

/// Claims without positions: as many entries as there are slots get one each.
template <class Kind, unsigned Records>
void historic(model::run& run) {
    static bench<Kind> on;
    on.begin(run);
    for (unsigned w = 1; w <= 2; ++w) {
        run.thread([w] { write(*on.ring, *on.book, w, Records); });
    }
    run.afterwards([] {
        on.book->close();
        require(on.book->written == 2 * Records, "a claim was refused");
        std::uint64_t found = 0;
        for (std::uint64_t i = 0; i < on.ring->capacity(); ++i) {
            sample entry;
            trace_ring::table_slots::load(entry, on.ring->slot_at(i));
            if (entry.number == 0) continue;
            require(entry.whole(), "an entry is torn");
            require(!on.book->is_read[entry.number], "two entries are one record");
            on.book->is_read[entry.number] = true;
            ++found;
        }
        require(found == 2 * Records, "two records went to one entry");
        require(on.ring->newest() == on.ring->slot_at(2 * Records - 1),
                "the newest entry is another");
    });
}

}  // namespace

MODEL_TEST(writers_that_swap_overwrite_and_a_reader_accounts_for_each_position) {
    overwriting<swap, 2, 2>(run);
}
MODEL_TEST(writers_that_add_overwrite_and_a_reader_accounts_for_each_position) {
    overwriting<add, 2, 2>(run);
}
MODEL_TEST(three_writers_that_lap_each_other_account_for_each_position) {
    overwriting<swap, 3, 1>(run);
}
MODEL_TEST(a_writer_that_discards_leaves_its_position_vacant) {
    overwriting<swap, 2, 2, 0>(run);
}
MODEL_TEST(one_writer_overwrites_and_a_reader_accounts_for_each_position) {
    overwriting<one, 1, 5>(run);
}
MODEL_TEST(one_writer_of_a_bare_table_overwrites_and_a_reader_gets_none_that_is_torn) {
    overwriting<bare_one, 1, 5, 1>(run);
}
MODEL_TEST(a_consumer_gets_all_that_many_writers_were_not_refused) {
    refusing<refuses, 2, 2>(run);
}
MODEL_TEST(a_consumer_gets_all_that_one_writer_was_not_refused) {
    refusing<one_refuses, 1, 5, 1>(run);
}
MODEL_TEST(a_consumer_of_a_bare_table_gets_all_that_its_writer_was_not_refused) {
    refusing<bare_refuses, 1, 5>(run);
}
MODEL_TEST(a_consumer_that_tells_of_two_records_at_a_time_gets_all_that_was_not_refused) {
    refusing<bare_refuses, 1, 5, ~0U, 2>(run);
}
MODEL_TEST(a_writer_that_is_lapped_twice_by_one_that_swaps_spoils_nothing) {
    lapped<swap>(run);
}
MODEL_TEST(a_writer_that_is_lapped_twice_by_one_that_adds_spoils_nothing) {
    lapped<add>(run);
}
MODEL_TEST(a_position_is_copied_whole_or_not_at_any_moment) {
    copying<one, 4>(run);
}
MODEL_TEST(a_position_of_a_bare_table_is_copied_whole_or_not_at_any_moment) {
    copying<bare_one, 4>(run);
}
MODEL_TEST(writers_of_a_bare_table_that_swap_account_for_each_position) {
    overwriting_unmarked<bare_swap>(run);
}
MODEL_TEST(writers_of_a_bare_table_that_add_account_for_each_position) {
    overwriting_unmarked<bare_add>(run);
}
MODEL_TEST(a_stalled_writer_that_swapped_costs_the_others_nothing) {
    stalled<swap, 4>(run);
}
MODEL_TEST(a_stalled_writer_that_added_costs_the_others_nothing) {
    stalled<add, 4>(run);
}
MODEL_TEST(writers_that_make_a_table_grow_account_for_each_position) {
    overwriting<add_grows, 2, 2>(run);
}
MODEL_TEST(a_bare_table_that_grows_gives_out_no_record_that_is_torn) {
    overwriting<bare_grows, 1, 5>(run);
}
MODEL_TEST(a_consumer_gets_all_from_a_table_that_grows_and_then_refuses) {
    refusing<grows_refuses, 2, 2>(run);
}
MODEL_TEST(a_table_that_stops_keeps_how_it_began) {
    stopping<stops, 2, 2>(run);
}
MODEL_TEST(a_consumer_that_sleeps_until_it_is_told_is_woken_by_one_writer) {
    waiting<bare_waits, 1, 4>(run);
}
MODEL_TEST(a_consumer_that_sleeps_until_it_is_told_is_woken_by_many_writers, 60'000'000) {
    waiting<waits, 2, 2>(run);
}
MODEL_TEST(writers_by_addresses_get_an_entry_each) {
    historic<das, 2>(run);
}
MODEL_TEST(writers_by_offsets_get_an_entry_each) {
    historic<cp, 2>(run);
}

#if !defined(MODEL_ALONE)

/// The model without a kind of order: what the tests above would find if the library left it out.
BOOST_AUTO_TEST_CASE(each_kind_of_order_is_needed) {
    struct planted {
        const char* what;
        bool model::weakness::*off;
        void (*set_up)(model::run&);
    };
    const planted all[] = {
        {"release stores", &model::weakness::release_stores, overwriting<one, 1, 5>},
        {"acquire loads", &model::weakness::acquire_loads, overwriting<one, 1, 5>},
        {"release fences", &model::weakness::release_fences, overwriting<bare_one, 1, 5, 1>},
        {"acquire fences", &model::weakness::acquire_fences, overwriting<bare_one, 1, 5, 1>},
        {"orders of exchanges", &model::weakness::exchanges, overwriting<swap, 2, 2>},
        {"acquire fences", &model::weakness::acquire_fences, overwriting<swap, 2, 2>},
        {"release fences", &model::weakness::release_fences, overwriting<add, 2, 2>},
        {"release stores", &model::weakness::release_stores, refusing<bare_refuses, 1, 5>},
        {"acquire loads", &model::weakness::acquire_loads, refusing<bare_refuses, 1, 5>},
    };
    for (const auto& each : all) {
        model::the_scheduler.weak = {};
        model::the_scheduler.weak.*each.off = true;
        const auto found = model::explored("a_weaker_machine", {}, each.set_up);
        BOOST_TEST(found.schedule != std::string(), "not found: without " << each.what);
    }
    model::the_scheduler.weak = {};
}

#endif
