// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Rings of sub-buffers under all interleavings within the bounds: two sub-buffers of two records
/// each, so that the writer wraps immediately.

#include <array>
#include <chrono>
#include <cstdint>

#include <model/fake_time.hpp>
#include <model/harness.hpp>
#include <trace_ring/drain/listener.hpp>
#include <trace_ring/format/records.hpp>
#include <trace_ring/policy/clock/none.hpp>
#include <trace_ring/policy/full/block.hpp>
#include <trace_ring/policy/full/discard_newest.hpp>
#include <trace_ring/policy/full/overwrite_oldest.hpp>
#include <trace_ring/policy/full/stop.hpp>
#include <trace_ring/policy/notify/at_watermark.hpp>
#include <trace_ring/policy/storage/inline_bytes.hpp>
#include <trace_ring/ring/drain.hpp>
#include <trace_ring/ring/ring.hpp>

namespace {

using model::require;
using trace_ring::loss_cause;
using trace_ring::policies;
using trace_ring::position;
namespace clock_policy = trace_ring::clock;
namespace full = trace_ring::full;
namespace notify = trace_ring::notify;
namespace record = trace_ring::record;
namespace storage = trace_ring::storage;

/// A clock whose high half changes whenever it is asked, so that a record of the time is written
/// before each that is not the first.
struct leaping {
    using family = trace_ring::family::clock;
    static constexpr std::uint32_t kind = clock_policy::monotonic::kind;
    static inline std::uint64_t asked = 0;

    [[nodiscard]] static std::uint64_t now() noexcept {
        ++asked;
        return asked << 32 | asked;
    }
    [[nodiscard]] static bool usable() noexcept { return true; }
    [[nodiscard]] static double ticks_per_second() noexcept { return 1e9; }
};

using two_of_512 = storage::inline_bytes<1024>;
using sub_buffers = record::sub_buffers<512>;
using blocking = full::block<std::chrono::milliseconds{1}>;

struct overwrites : policies<sub_buffers, two_of_512, clock_policy::none> {};
struct overwrites_timed : policies<sub_buffers, two_of_512, leaping> {};
struct refuses : policies<sub_buffers, two_of_512, clock_policy::none, full::discard_newest> {};
struct three_refuse
    : policies<sub_buffers, storage::inline_bytes<1536>, clock_policy::none, full::discard_newest> {
};
struct stops : policies<sub_buffers, two_of_512, clock_policy::none, full::stop> {};
struct waits : policies<sub_buffers, two_of_512, clock_policy::none, blocking,
                        notify::at_watermark<notify::bytes(512)>> {};

/// Of a record, the first and the last word are stored; two of its length fill a sub-buffer.
constexpr std::size_t payload = 200;

struct books {
    std::uint64_t tried = 0, written = 0, refused = 0, read = 0;
    position at = 0;
    std::array<position, 32> place{};  ///< of each number that was written, from 1

    void got(const trace_ring::sub_buffer_item& item) {
        const std::uint64_t number = item.payload[0];
        require(item.payload.size() == payload / 8, "a record has another length");
        require(item.payload[payload / 8 - 1] == ~number, "a torn record was read");
        require(number < place.size() && item.id == number + 1, "a record has another's header");
        require(item.at > at, "a record was read twice, or positions went back");
        at = item.at;
        ++read;
        // Its writer has given it this place: the place is counted before the record is stored.
        require(place[number] == item.at, "a record was read at another's position");
    }
};

template <class Kind>
struct bench {
    using ring_type = trace_ring::ring<Kind>;
    using base = trace_ring::sub_buffer_ring<Kind>;
    model::anew<ring_type> ring;
    model::anew<books> book;
    model::anew<trace_ring::sub_buffer_reader<base>> reader;
    model::anew<trace_ring::sub_buffer_consumer<base>> consumer;

    void begin(model::run& run) {
        leaping::asked = 0;
        model::slept = 0;
        ring.make();
        book.make();
        run.name("ring", &*ring, sizeof(ring_type));
        run.name("first", ring->slot_at(0), 512);
        run.name("second", ring->slot_at(1), 512);
    }
    /// Records are not written over before they were given back.
    void guard(model::run& run) {
        for (std::uint64_t i = 0; i < ring->capacity(); ++i) {
            run.exclusive(ring->slot_at(i) + sizeof(trace_ring::sub_buffer_header),
                          512 - sizeof(trace_ring::sub_buffer_header));
        }
    }
    void write(unsigned count, unsigned discards_at = ~0U, unsigned from = 0) {
        for (unsigned i = from; i < from + count; ++i) {
            ++book->tried;
            auto slot = ring->try_reserve(payload, static_cast<std::uint16_t>(i + 1));
            if (!slot) {
                ++book->refused;
                continue;
            }
            slot.put(0, std::uint64_t{i});
            slot.put(payload - 8, ~std::uint64_t{i});
            if (i == discards_at) continue;
            book->place[i] = ++book->written;
            slot.commit();
        }
    }
    template <class Reader>
    void read(Reader& from, unsigned looks) {
        for (unsigned i = 0; i < looks; ++i) {
            const auto item = from.next();
            if (item.is_record()) book->got(item);
            if (!item) model::yield();
        }
    }
    template <class Reader>
    void read_rest(Reader& from) {
        for (auto item = from.next(); item; item = from.next()) {
            if (item.is_record()) book->got(item);
        }
        const auto& lost = from.lost();
        require(
            book->read + lost[loss_cause::overwritten] + lost[loss_cause::overrun] == book->written,
            "read and lost records are not all that were written");
        require(lost[loss_cause::damaged] == 0, "a sub-buffer was found damaged");
        require(book->tried - book->refused >= book->written, "more was written than was tried");
        require(ring->lost()[loss_cause::refused] == book->refused,
                "what was refused was not counted so");
        require(lost[loss_cause::refused] <= book->refused, "more was told refused than was");
    }
    /// Backwards from the end, when nobody writes.
    void newest_are_there() {
        auto back = ring->backward_reader();
        std::uint64_t found = 0;
        for (auto item = back.next(); item; item = back.next()) {
            if (!item.is_record()) continue;
            ++found;
            require(item.payload[payload / 8 - 1] == ~item.payload[0],
                    "a torn record was read backwards");
        }
        require(found + ring->lost()[loss_cause::overwritten] == book->written,
                "records in the ring and overwritten ones are not all that were written");
    }
};

template <class Kind, unsigned Records, unsigned Discards = ~0U>
void overwriting(model::run& run) {
    static bench<Kind> on;
    on.begin(run);
    on.reader.make(on.ring->reader());
    run.thread([] { on.write(Records, Discards); });
    run.thread([] { on.read(*on.reader, Records); });
    run.afterwards([] {
        on.read_rest(*on.reader);
        on.newest_are_there();
    });
}

/// A reader that reads backwards while the writer continues.
template <class Kind, unsigned Records>
void backwards(model::run& run) {
    static bench<Kind> on;
    on.begin(run);
    run.thread([] { on.write(Records); });
    run.thread([] {
        auto back = on.ring->backward_reader();
        position before = ~position{0};
        std::uint64_t found = 0;
        position newest = 0;
        for (auto item = back.next(); item; item = back.next()) {
            if (newest == 0) newest = item.at + (item.is_loss() ? item.lost.count - 1 : 0);
            if (!item.is_record()) continue;
            require(item.payload[payload / 8 - 1] == ~item.payload[0],
                    "a torn record was read backwards");
            require(item.at < before, "positions went on, backwards");
            before = item.at;
            ++found;
        }
        require(found + back.lost().total() == newest, "positions are missing backwards");
    });
    run.afterwards([] { on.newest_are_there(); });
}

template <class Kind, unsigned Records>
void refusing(model::run& run) {
    static bench<Kind> on;
    on.begin(run);
    on.consumer.make(*on.ring);
    on.guard(run);
    run.thread([] { on.write(Records); });
    run.thread([] { on.read(*on.consumer, Records); });
    run.afterwards([] {
        on.read_rest(*on.consumer);
        // Two more sub-buffers: the first of them reports the refused records.
        for (unsigned i = 0; i < 4; i += 2) {
            on.write(2, ~0U, Records + i);
            on.read_rest(*on.consumer);
        }
        require(on.book->read == on.book->written, "a record is missing that was not refused");
        require(on.consumer->lost()[loss_cause::refused] == on.book->refused,
                "what was refused was not told, or twice");
    });
}

/// Copies at any moment, by a reader that does not know the cursor.
template <class Kind, unsigned Records, unsigned Copies>
void copying(model::run& run) {
    static bench<Kind> on;
    on.begin(run);
    run.thread([] { on.write(Records); });
    run.thread([] {
        std::array<std::uint64_t, 64> words;
        trace_ring::sub_buffer_copy copy;
        for (unsigned i = 0; i < Copies; ++i) {
            const auto what = trace_ring::copy_sub_buffer(on.ring->slot_at(i % 2), words, copy);
            if (what == trace_ring::copy_result::vacant) model::yield();
            require(what != trace_ring::copy_result::damaged, "a sub-buffer was found damaged");
            if (what != trace_ring::copy_result::copied) continue;
            require((copy.state.pos - 1) % 2 == i % 2 && copy.previous == copy.state.pos - 1 &&
                        copy.first_position == 2 * copy.previous && copy.records <= 2,
                    "a header is not its sub-buffer's");
            std::uint64_t found = 0;
            const auto left = trace_ring::walk_records(
                words, copy, [&](std::uint32_t word, std::uint64_t, std::uint32_t head) {
                    const std::uint64_t number = words[word + 1];
                    require(trace_ring::record_word::id(head) == number + 1 &&
                                words[word + payload / 8] == ~number,
                            "a torn record was read");
                    require(++found + copy.first_position == number + 1,
                            "a record was read at another's position");
                });
            require(left == 0 && found == copy.records, "a sub-buffer was found damaged");
        }
    });
}

/// A session that takes sub-buffers where they lie, and reads them as plain memory.
template <class Kind, unsigned Records>
void draining(model::run& run) {
    static bench<Kind> on;
    static model::anew<trace_ring::sub_buffer_drain<Kind>> session;
    static std::uint64_t lost = 0;
    on.begin(run);
    lost = 0;
    session.make(&*on.ring);
    session->attach();
    on.guard(run);
    static const auto look = [](const trace_ring::drained_sub_buffer& portion) {
        lost += portion.lost().total();
        portion.visit([](const trace_ring::drained_record& r) {
            trace_ring::sub_buffer_item item;
            item.at = r.at + 1;
            item.id = r.id;
            item.payload = r.payload;
            on.book->got(item);
        });
    };
    run.thread([] { on.write(Records); });
    run.thread([] {
        const auto read = [](const trace_ring::drained_sub_buffer& portion) {
            const auto bytes = portion.bytes();
            require(model::the_scheduler.read_plainly(bytes.data(), bytes.size()),
                    "what was handed over is not all known");
            look(portion);
        };
        const auto give_back = [](trace_ring::drained_sub_buffer& portion) {
            const auto bytes = portion.bytes();
            require(model::the_scheduler.read_plainly(bytes.data(), bytes.size()),
                    "what was handed over was written to");
            session->consume(portion);
        };
        for (unsigned i = 0; i < Records / 2; ++i) {
            trace_ring::drained_sub_buffer first, second;
            if (session->take(first)) {
                read(first);
                // The later one is given back first.
                if (session->take(second)) {
                    read(second);
                    give_back(second);
                }
                give_back(first);
            } else if (session->take_open(first)) {
                look(first);
                session->consume(first);
            } else {
                model::yield();
            }
        }
    });
    run.afterwards([] {
        trace_ring::drained_sub_buffer portion;
        while (session->take(portion) || session->take_open(portion)) {
            look(portion);
            session->consume(portion);
        }
        lost += session->rest().total();
        session->detach();
        require(on.book->read == on.book->written, "a record is missing that was not refused");
        require(lost == on.book->refused, "what was refused was not told, or twice");
    });
}

template <class Kind, unsigned Records>
void stopping(model::run& run) {
    static bench<Kind> on;
    on.begin(run);
    on.reader.make(on.ring->reader());
    run.thread([] { on.write(Records); });
    run.thread([] { on.read(*on.reader, 2); });
    run.afterwards([] {
        on.read_rest(*on.reader);
        require(on.ring->stopped(), "it did not stop");
        require(on.book->read == 4 && on.book->refused == Records - 4,
                "its beginning is not whole");
    });
}

/// A writer that waits for room, and a consumer that sleeps until a sub-buffer is full.
template <class Kind, unsigned Records>
void waiting(model::run& run) {
    static bench<Kind> on;
    on.begin(run);
    notify::wakes.store(0, trace_ring::relaxed);
    on.consumer.make(*on.ring);
    run.thread([] { on.write(Records); });
    run.thread([] {
        trace_ring::drain::listener listener(*on.ring, *on.consumer);
        for (;;) {
            for (auto item = on.consumer->next(); item; item = on.consumer->next()) {
                if (item.is_record()) on.book->got(item);
            }
            // Less than a sub-buffer stays unannounced.
            if (on.book->read + 2 >= Records || on.book->refused != 0) return;
            listener.wait();
        }
    });
    run.afterwards([] {
        on.read_rest(*on.consumer);
        require(on.book->refused == 0, "a writer was refused though the consumer would have come");
        require(on.book->read == Records, "a record is missing");
    });
}

}  // namespace

MODEL_TEST(a_reader_of_sub_buffers_accounts_for_each_record) {
    overwriting<overwrites, 6>(run);
}
MODEL_TEST(records_that_are_discarded_leave_nothing) {
    overwriting<overwrites, 6, 3>(run);
}
MODEL_TEST(records_of_the_time_are_published_as_others) {
    overwriting<overwrites_timed, 5>(run);
}
MODEL_TEST(a_reader_of_sub_buffers_looks_back_while_they_are_overwritten) {
    backwards<overwrites, 6>(run);
}
MODEL_TEST(a_sub_buffer_is_copied_whole_at_any_moment) {
    copying<overwrites, 6, 3>(run);
}
MODEL_TEST(a_sub_buffer_is_copied_whole_with_the_records_of_its_time) {
    copying<overwrites_timed, 3, 2>(run);
}
MODEL_TEST(a_consumer_of_sub_buffers_gets_all_that_was_not_refused) {
    refusing<refuses, 8>(run);
}
MODEL_TEST(a_session_gets_all_that_was_not_refused_where_it_lies) {
    draining<three_refuse, 8>(run);
}
MODEL_TEST(a_ring_of_sub_buffers_that_stops_keeps_how_it_began) {
    stopping<stops, 6>(run);
}
MODEL_TEST(a_writer_that_waits_for_room_wakes_the_consumer_that_makes_it) {
    waiting<waits, 8>(run);
}
