// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Watermarks: in any order, each crossing is reported once, and a sleeping reader is woken. Who is
/// not is stuck, for nobody's time is ever over here. Writers fence nothing themselves, but where
/// it is said.

#include <chrono>

#include <model/fake_time.hpp>
#include <model/rings.hpp>
#include <trace_ring/drain/listener.hpp>
#include <trace_ring/drain/session.hpp>
#include <trace_ring/policy/claim/compare_exchange.hpp>
#include <trace_ring/policy/claim/single_writer.hpp>
#include <trace_ring/policy/clock/none.hpp>
#include <trace_ring/policy/full/block.hpp>
#include <trace_ring/policy/full/discard_newest.hpp>
#include <trace_ring/policy/full/overwrite_oldest.hpp>
#include <trace_ring/policy/notify/at_watermark.hpp>
#include <trace_ring/policy/storage/inline_bytes.hpp>
#include <trace_ring/ring/drain.hpp>

namespace {

using namespace rings;
namespace claim = trace_ring::claim;
namespace drain = trace_ring::drain;
namespace full = trace_ring::full;
namespace notify = trace_ring::notify;
namespace record = trace_ring::record;
namespace storage = trace_ring::storage;
using trace_ring::acquire;
using trace_ring::policies;
using trace_ring::relaxed;
using trace_ring::ring_policies;

template <std::uint64_t Slots>
using sequenced_slots = storage::inline_bytes<Slots*(sizeof(sample) + 8)>;
using sequenced = record::sequenced<sample>;
template <std::uint64_t N>
using each = notify::at_watermark<notify::records(N)>;

struct one : policies<record::bare<sample>, claim::single_writer, full::discard_newest,
                      storage::inline_bytes<4 * sizeof(sample)>, each<2>> {};
struct one_of_two : policies<record::bare<sample>, claim::single_writer, full::discard_newest,
                             storage::inline_bytes<4 * sizeof(sample)>, each<1>> {};
struct many : policies<sequenced, full::discard_newest, sequenced_slots<4>, each<2>> {};
struct late : policies<sequenced, full::discard_newest, sequenced_slots<4>, each<1>> {};
struct in_bytes : policies<sequenced, full::discard_newest, sequenced_slots<4>,
                           notify::at_watermark<notify::bytes(48)>> {};
constexpr std::chrono::nanoseconds too_old{10};
struct aging : policies<record::bare<sample>, claim::single_writer, full::discard_newest,
                        storage::inline_bytes<4 * sizeof(sample)>,
                        notify::at_watermark<notify::age(too_old)>> {};
struct overwrites : policies<sequenced, full::overwrite_oldest, sequenced_slots<2>, each<1>> {};
/// Notifies no reader, and checks what the reader set before it armed.
struct asks {
    static inline std::uint64_t found;

    static void told(notify::line& line, const notify::progress&) noexcept {
        found = line.whom.load(relaxed);
    }
};
struct asked : policies<record::bare<sample>, claim::single_writer, full::discard_newest,
                        storage::inline_bytes<4 * sizeof(sample)>,
                        notify::at_watermark<notify::records(2), asks>> {};
struct to_the_full : policies<record::sub_buffers<512>, storage::inline_bytes<1024>,
                              trace_ring::clock::none, full::block<std::chrono::milliseconds{1}>,
                              notify::at_watermark<notify::percent(100)>> {};
struct sub_buffers
    : policies<record::sub_buffers<512>, storage::inline_bytes<2048>, trace_ring::clock::none,
               full::discard_newest, notify::at_watermark<notify::records(2)>> {};

enum class fences { of_the_reader, of_the_writers };

template <class Kind>
struct bench {
    using ring_type = trace_ring::ring<Kind>;
    model::anew<ring_type> ring;
    model::anew<books> book;

    void begin(model::run& run, fences whose = fences::of_the_reader) {
        ring.make();
        book.make();
        model::slept = 0;
        notify::wakes.store(0, relaxed);
        if (whose == fences::of_the_writers) ring->control().notified.fenced.store(1, relaxed);
        run.name("line", &ring->control().notified, sizeof(notify::line));
        run.name("ring", &*ring, sizeof(ring_type));
    }
    [[nodiscard]] std::uint32_t told() const {
        return const_cast<bench*>(this)->ring->control().notified.word.load(relaxed);
    }
};

/// A consumer that sleeps whenever there is less than the threshold, until no more than that can
/// come.
template <class Kind, unsigned Writers, unsigned Records, fences Whose = fences::of_the_reader,
          unsigned Discards = ~0U>
void sleeping(model::run& run) {
    static bench<Kind> on;
    on.begin(run, Whose);
    static constexpr auto mark = ring_policies<Kind>::notify_policy::mark;
    for (unsigned w = 1; w <= Writers; ++w) {
        run.thread([w] {
            if constexpr (mark.of == notify::measure::age) {
                for (unsigned i = 0; i < Records; ++i) {
                    write(*on.ring, *on.book, w, 1, ~0U, i);
                    model::slept += 2 * mark.amount;
                }
            } else {
                write(*on.ring, *on.book, w, Records, w == 1 ? Discards : ~0U);
            }
        });
    }
    run.thread([] {
        // Of age the next record is the oldest unread, and the one after it comes too late.
        constexpr std::uint64_t positions = mark.of == notify::measure::records ? mark.amount : 2;
        auto consumer = on.ring->consumer();
        drain::listener listener(*on.ring, consumer);
        for (;;) {
            while (const auto item = consumer.next()) {
                if (item.is_record()) on.book->got(item.record, item.at);
            }
            const position passed = consumer.at() - 1;
            if (passed + positions > Writers * Records) return;
            listener.wait();
        }
    });
    run.afterwards([] {
        auto consumer = on.ring->consumer();
        read_rest(consumer, *on.book);
        on.book->close();
        require(on.book->read == on.book->written, "a record is missing");
        require(on.ring->control().notified.waiters.load(relaxed) == 0, "somebody waits");
    });
}

/// A reader of a ring that overwrites: what it waits for may be gone when it is woken.
template <class Kind, unsigned Writers, unsigned Records>
void overtaken(model::run& run) {
    static bench<Kind> on;
    on.begin(run);
    for (unsigned w = 1; w <= Writers; ++w) {
        run.thread([w] { write(*on.ring, *on.book, w, Records); });
    }
    run.thread([] {
        auto reader = on.ring->reader();
        drain::listener listener(*on.ring, reader);
        for (;;) {
            while (const auto item = reader.next()) {
                if (item.is_record()) on.book->got(item.record, item.at);
            }
            if (reader.at() > Writers * Records) return;
            listener.wait();
        }
    });
    run.afterwards([] { on.book->close(); });
}

/// A writer that stalls for ever holds what the reader waits for, until the others have overtaken
/// it.
template <class Kind, unsigned Records>
void stalled(model::run& run) {
    static bench<Kind> on;
    static model::anew<typename trace_ring::ring<Kind>::reservation_type> open;
    on.begin(run);
    open.make(on.ring->try_reserve());
    open.leave();
    run.thread([] { write(*on.ring, *on.book, 2, Records); });
    run.thread([] {
        auto reader = on.ring->reader();
        drain::listener listener(*on.ring, reader);
        while (!on.book->is_read[of_writer * 2 + Records - 1]) {
            while (const auto item = reader.next()) {
                if (item.is_record()) on.book->got(item.record, item.at);
            }
            if (!on.book->is_read[of_writer * 2 + Records - 1]) listener.wait();
        }
    });
    run.afterwards([] { on.book->close(); });
}

/// A reader that arms, and disarms at any moment: either it has the crossing, or a writer has
/// reported it.
template <class Kind, unsigned Writers, unsigned Records, fences Whose>
void counting(model::run& run) {
    static bench<Kind> on;
    static std::uint32_t crossings;
    on.begin(run, Whose);
    crossings = 0;
    // Armed as the reader does, but without what it does by itself.
    static const auto arm = [](position read) {
        auto& line = on.ring->control().notified;
        auto& word = Whose == fences::of_the_reader ? line.mark : line.armed;
        word.store((read + 1) << 1 | 1, trace_ring::release);
    };
    for (unsigned w = 1; w <= Writers; ++w) {
        run.thread([w] { write(*on.ring, *on.book, w, Records); });
    }
    arm(0);
    run.thread([] {
        for (position read = 1; read <= 3; ++read) {
            if (!on.ring->notifier().disarm(on.ring->control().notified)) ++crossings;
            arm(read);
        }
    });
    run.afterwards([] {
        if (!on.ring->notifier().disarm(on.ring->control().notified)) ++crossings;
        require(on.told() == crossings, "a crossing was told twice, or not");
    });
}

/// The notified side sees what the reader has set, and the notified reader sees what was written.
template <class Kind>
void seeing(model::run& run) {
    static bench<Kind> on;
    on.begin(run);
    static std::uint64_t wanted;
    asks::found = wanted = 0;
    static_cast<void>(on.ring->notifier().disarm(on.ring->control().notified));
    run.thread([] { write(*on.ring, *on.book, 1, 3); });
    run.thread([] {
        auto consumer = on.ring->consumer();
        auto& line = on.ring->control().notified;
        for (std::uint64_t times = 1; times <= 2; ++times) {
            line.whom.store(times, relaxed);
            if (!on.ring->notifier().arm(line, [&] { return consumer.standing(); })) return;
            if (times == 1 && !on.ring->notifier().disarm(line)) return;
            wanted = 2;  // no writer has reported the first one, nor will
        }
        while (on.ring->notifier().is_armed(line)) model::yield();
        require(consumer.next().is_record() && consumer.next().is_record(),
                "what was told is not there");
    });
    run.afterwards([] {
        require(wanted == 0 || asks::found == 0 || asks::found == wanted,
                "the reader's word is not there");
    });
}

/// The mark is never armed again: only the first crossing is reported, by the writer that passes
/// it.
template <class Kind, unsigned Writers, unsigned Records, fences Whose>
void once(model::run& run) {
    static bench<Kind> on;
    on.begin(run, Whose);
    for (unsigned w = 1; w <= Writers; ++w) {
        run.thread([w] { write(*on.ring, *on.book, w, Records); });
    }
    run.afterwards([] {
        on.book->close();
        require(on.told() >= 1, "the mark was passed and nobody told");
        require(on.told() <= 1, "a crossing was told twice");
        require(!on.ring->notifier().is_armed(on.ring->control().notified), "it is armed still");
    });
}

constexpr std::size_t payload = 200;  // two of its length fill a sub-buffer

template <class Ring>
void fill(Ring& ring, books& book, unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
        ++book.tried;
        auto slot = ring.try_reserve(payload, 1);
        if (!slot) {
            ++book.refused;
            continue;
        }
        slot.put(0, std::uint64_t{i});
        slot.commit();
        ++book.written;
    }
}

/// The mark lies beyond what the ring can hold when the reader has read a part of a sub-buffer: it
/// is reported by the writer that finds no room.
template <class Kind, unsigned Records>
void filling(model::run& run) {
    static bench<Kind> on;
    on.begin(run);
    run.thread([] { fill(*on.ring, *on.book, Records); });
    run.thread([] {
        auto consumer = on.ring->consumer();
        drain::listener listener(*on.ring, consumer);
        for (;;) {
            for (auto item = consumer.next(); item; item = consumer.next()) {
                if (item.is_record()) ++on.book->read;
            }
            // There is room for all that comes.
            if (on.ring->control().consumed.load(relaxed) + on.ring->capacity() >= Records / 2)
                return;
            listener.wait();
        }
    });
    run.afterwards([] {
        require(on.book->refused == 0, "a writer was refused though the consumer would have come");
    });
}

/// A session that takes what is complete, and sleeps where nothing is.
template <class Kind, unsigned Records>
void draining(model::run& run) {
    static bench<Kind> on;
    on.begin(run);
    run.thread([] { fill(*on.ring, *on.book, Records); });
    run.thread([] {
        drain::session session(*on.ring);
        drain::listener listener(*on.ring, session.source());
        for (;;) {
            session.for_each([](const auto& portion) { on.book->read += portion.records(); });
            if (on.book->read + 2 >= Records) return;  // the last sub-buffer stays open
            listener.wait();
        }
    });
    run.afterwards([] { require(on.book->refused == 0, "a writer was refused"); });
}

}  // namespace

MODEL_TEST(a_consumer_that_sleeps_is_woken_by_one_writer) {
    sleeping<one, 1, 4>(run);
}
MODEL_TEST(a_consumer_that_sleeps_is_woken_by_each_record) {
    sleeping<one_of_two, 1, 3>(run);
}
MODEL_TEST(a_consumer_that_sleeps_is_woken_by_a_writer_that_fences) {
    sleeping<one, 1, 4, fences::of_the_writers>(run);
}
MODEL_TEST(a_consumer_that_sleeps_is_woken_by_many_writers) {
    sleeping<many, 2, 2>(run);
}
MODEL_TEST(a_consumer_that_sleeps_is_woken_by_many_writers_that_fence) {
    sleeping<many, 2, 2, fences::of_the_writers>(run);
}
MODEL_TEST(a_consumer_that_sleeps_is_woken_by_bytes) {
    sleeping<in_bytes, 2, 2>(run);
}
MODEL_TEST(a_consumer_that_sleeps_is_woken_when_the_oldest_record_is_too_old) {
    sleeping<aging, 1, 4>(run);
}
MODEL_TEST(a_consumer_that_sleeps_is_woken_when_the_oldest_is_too_old_for_writers_that_fence) {
    sleeping<aging, 1, 4, fences::of_the_writers>(run);
}
MODEL_TEST(a_consumer_is_woken_by_the_record_that_is_committed_after_later_ones) {
    sleeping<late, 2, 2>(run);
}
MODEL_TEST(a_consumer_is_woken_by_the_record_that_is_discarded_after_later_ones) {
    sleeping<late, 2, 2, fences::of_the_reader, 0>(run);
}
MODEL_TEST(a_reader_that_was_overtaken_is_woken) {
    overtaken<overwrites, 2, 2>(run);
}
MODEL_TEST(a_reader_that_waits_for_a_stalled_writer_is_woken_when_it_is_overtaken) {
    stalled<overwrites, 3>(run);
}
MODEL_TEST(a_reader_of_bytes_is_woken_by_the_writer_that_finds_no_room) {
    filling<to_the_full, 6>(run);
}
MODEL_TEST(a_session_that_sleeps_is_woken_when_a_sub_buffer_is_complete) {
    draining<sub_buffers, 6>(run);
}
MODEL_TEST(a_crossing_is_told_once_whoever_passes_the_mark) {
    once<many, 2, 2, fences::of_the_reader>(run);
}
MODEL_TEST(a_crossing_is_told_once_by_writers_that_fence) {
    once<many, 2, 2, fences::of_the_writers>(run);
}
MODEL_TEST(who_is_told_sees_all_that_came_before) {
    seeing<asked>(run);
}
MODEL_TEST(a_crossing_is_the_reader_s_or_a_writer_s) {
    counting<many, 2, 2, fences::of_the_reader>(run);
}
