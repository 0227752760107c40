// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Notifies the reader when a threshold of unread records is reached: once for each crossing, and
/// not again before the reader has read and armed the mark again. Arming is refused while more than
/// the lower mark is unread.
/// @code
/// struct jobs : trace_ring::policies<
///                   trace_ring::record::sequenced<int>, trace_ring::full::discard_newest,
///                   trace_ring::notify::at_watermark<trace_ring::notify::percent(50)>> {};
/// inline trace_ring::ring<jobs> queue;
///
/// auto consumer = queue.consumer();
/// trace_ring::drain::listener listener(queue, consumer);
/// if (listener.wait(std::chrono::seconds(1))) {  // half of the ring is unread
/// }
/// @endcode
/// One word, the mark, holds the whole state. While it is disarmed it belongs to the reader. While
/// it is armed, the one thread that swaps it away, a writer or the reader, handles the crossing.
/// @code
///  mark      0               at first: armed at one threshold from the ring's beginning
///            n << 1 | 1      armed: the ring reaches n records or bytes, or more
///            n << 1          armed: the record at n is committed, however far the ring is
///            ~0              disarmed
///
///  writer                              reader
///  commit         --release->          mark = armed          arm:A
///  compiler's fence      commit:A      barrier for all       arm:B
///  mark, relaxed: reached?             how far is the ring? there already: swap, and read on
///  full fence            pass:A        sleep on the word
///  mark again: swap                    the word has changed, the mark is disarmed: read
/// @endcode
/// A processor may load the mark before the commit in front of it is visible. So the reader, before
/// it sleeps, makes a barrier for all threads (barrier.hpp): each writer either sees the mark, or
/// the reader sees its commit. A writer that does not cross the mark pays a load and a comparison,
/// and makes no system call if no reader waits. If the system has no such barrier, the reader
/// informs the writers once, and then each record makes a full fence: the mark that writers compare
/// with stays 0, and the true one is `line::armed`.
///
/// If a record is committed after later ones have crossed the mark, no writer would report it.
/// Therefore a reader that finds it open waits for exactly that record.
///
/// With a threshold of age the mark holds 1 (the next record will be the oldest unread one) or the
/// time at which the oldest one is too old. Then a later record reports it, or the listener detects
/// it by itself. While the mark is armed, each record reads CLOCK_MONOTONIC.

#include <time.h>

#include <algorithm>
#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/nanoseconds.hpp>
#include <trace_ring/policy/notify/barrier.hpp>
#include <trace_ring/policy/notify/futex.hpp>
#include <trace_ring/policy/notify/notify.hpp>
#include <trace_ring/policy/notify/threshold.hpp>
#include <trace_ring/policy/notify/ways.hpp>

namespace trace_ring::inline v1::notify {

/// `Lower` is in per cent of the threshold. A threshold that is more than an overwriting ring can
/// hold acts as `circular`: it is never reached. A ring that does not overwrite refuses it.
template <threshold Mark, way Way = by_futex, unsigned Lower = 50>
class at_watermark : public Way {
    static_assert(Mark.of == measure::nothing || Mark.amount > 0,
                  "notify::at_watermark needs a threshold above zero");
    static_assert(Mark.of != measure::percent || Mark.amount <= 100,
                  "notify::at_watermark: a ring is never fuller than 100 per cent");
    static_assert(Mark.of == measure::nothing || Mark.amount < std::uint64_t{1} << 61,
                  "notify::at_watermark: no ring ever comes to so high a threshold: say "
                  "notify::circular");
    static_assert(Lower < 100, "notify::at_watermark: the lower mark is below the threshold");

public:
    using family = trace_ring::family::notify;
    static constexpr bool watches = Mark.of != measure::nothing;
    static constexpr bool by_age = Mark.of == measure::age;  ///< whether the mark is an age
    static constexpr threshold mark = Mark;                  ///< the mark

    constexpr at_watermark() noexcept = default;

    // --- The writers' side ---

    [[gnu::always_inline]] void passed(line& shared, progress at) noexcept {
        // order: notify.commit:A pairs with notify.arm:B
        signal_fence(seq_cst);
        // relaxed: the fence above, and the barrier of the reader that arms
        const std::uint64_t now = shared.mark.load(relaxed);
        if constexpr (by_age) {
            if (now != disarmed) [[unlikely]]
                aged(shared, at);
        } else {
            // As single words, which stay in registers.
            if (crossing(Mark.counted(at)) >= now) [[unlikely]]
                reached(shared, at.records, at.bytes, at.most_records, at.most_bytes);
        }
    }

    /// A writer found no room, so the ring cannot come closer to the mark.
    [[gnu::noinline, gnu::cold]] void full(line& shared, progress at) noexcept {
        // No fence: the writer has stored nothing that a reader could have missed.
        auto& word = word_of(shared);
        // relaxed: the swap compares again
        for (std::uint64_t now = word.load(relaxed); now != disarmed;) {
            // A reader that waits for one open record could not read it if it were woken now.
            if (!by_age && now != unset && (now & 1U) == 0) return;
            // relaxed: `announce` makes a fence
            if (!word.compare_exchange_weak(now, disarmed, relaxed)) continue;
            announce(shared, at);
            return;
        }
    }

    /// At set-up, for a ring that other processes may map. If this process cannot take part in
    /// barriers, all writers fence from now on.
    void attach(line& shared) noexcept {
        across_ = true;
        if (!take_part_in_barriers()) let_writers_fence(shared);
    }
    /// Before the first record: counts the first mark from `at`.
    void begin(line& shared, progress at) noexcept {
        if constexpr (watches) {
            // relaxed: the ring is not shared yet
            shared.mark.store(by_age ? on_next : first(Mark.counted(at), at), relaxed);
        }
    }
    /// The threshold is at most what a ring of this size can hold. The ring may be full earlier, if
    /// its records are large; a writer that finds no room notifies in any case.
    [[nodiscard]] static constexpr bool reaches(std::uint64_t most_records,
                                                std::uint64_t most_bytes) noexcept {
        return (Mark.of != measure::records || Mark.amount <= most_records) &&
               (Mark.of != measure::bytes || Mark.amount <= most_bytes);
    }

    // --- The reader's side: one at a time ---

    /// Arms the mark one threshold after the records that have been read; `look()` returns the
    /// reader's `standing`. False if it is not armed, because there is enough to read, or the
    /// record that was waited for is there. Makes a system call; noexcept if `look` is.
    template <class Look>
    [[nodiscard]] bool arm(line& shared, Look&& look) noexcept {
        if constexpr (!watches) {
            return true;
        } else {
            standing now = look();
            const std::uint64_t to = goal(now);
            if (to == unset) return false;
            // order: notify.arm:A pairs with notify.tell:C
            word_of(shared).store(to, release);
            if (fences(shared)) {
                // order: notify.arm:C pairs with notify.pass:A, notify.age:A
                thread_fence(seq_cst);
            } else {
                // order: notify.arm:B pairs with notify.commit:A
                if (!barrier_for_all(across_)) return arm_fenced(shared, look);
            }
            now = look();
            if (!is_reached(to, now)) return true;
            static_cast<void>(disarm(shared));
            return false;
        }
    }
    /// False: it was already disarmed, so a writer has notified, or is about to.
    bool disarm(line& shared) noexcept {
        if (!watches) return true;
        // relaxed: one word, and only the swap matters
        return word_of(shared).exchange(disarmed, relaxed) != disarmed;
    }
    /// No writer has notified since it was armed.
    [[nodiscard]] bool is_armed(line& shared) noexcept {
        // order: notify.wait:C pairs with notify.pass:A, notify.age:B
        return !watches || word_of(shared).load(acquire) != disarmed;
    }
    /// For a reader that waits until `deadline`: the time to look by itself, both in ns. With a
    /// threshold of age it notifies, as a writer would, if the oldest record is too old.
    [[nodiscard]] std::uint64_t look_by_itself(line& shared, std::uint64_t deadline) noexcept {
        if constexpr (!by_age) {
            return deadline;
        } else {
            // relaxed: `aged` loads it again
            const std::uint64_t until = word_of(shared).load(relaxed);
            if (until == disarmed) return deadline;
            const std::uint64_t now = now_ns();
            if (until == unset || until == on_next) return (std::min)(deadline, now + Mark.amount);
            if (now >= until) {
                aged(shared, {});
                return now;
            }
            return (std::min)(deadline, until);
        }
    }
    /// Sleeps while the word is `seen`, at most until `deadline` (ns). May wake for no reason.
    void sleep(line& shared, std::uint32_t seen, std::uint64_t deadline) noexcept {
        sleep_on(shared.word, seen, deadline, across_);
    }
    /// The time by which ages are measured.
    [[nodiscard]] static std::uint64_t now_ns() noexcept {
        timespec t{};
        ::clock_gettime(CLOCK_MONOTONIC, &t);
        return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000U +
               static_cast<std::uint64_t>(t.tv_nsec);
    }

private:
    static constexpr std::uint64_t unset = 0;
    static constexpr std::uint64_t on_next = 1;  ///< only with a threshold of age
    static constexpr std::uint64_t disarmed = ~std::uint64_t{0};
    static constexpr std::uint64_t never = disarmed - 1;  ///< armed, and never reached

    [[nodiscard]] static constexpr std::uint64_t crossing(std::uint64_t n) noexcept {
        return n << 1 | 1U;
    }
    [[nodiscard]] static constexpr std::uint64_t exactly(std::uint64_t n) noexcept {
        return n << 1;
    }
    /// The mark one threshold after `from`.
    [[nodiscard]] static constexpr std::uint64_t first(std::uint64_t from,
                                                       const progress& ring) noexcept {
        return reaches(ring.most_records, ring.most_bytes) ? crossing(from + Mark.distance(ring))
                                                           : never;
    }

    /// The mark to arm; `unset` if enough is unread.
    [[nodiscard]] static std::uint64_t goal(const standing& now) noexcept {
        if constexpr (by_age) {
            if (now.at.bytes <= now.read.bytes) return on_next;
            // The age of a record that cannot be read yet counts from now.
            return now.blocked() ? now_ns() + Mark.amount : unset;
        } else {
            const std::uint64_t read = Mark.counted(now.read), at = Mark.counted(now.at);
            const std::uint64_t unread = at > read ? at - read : 0;
            const std::uint64_t to = first(read, now.at);
            if (to == never) return to;
            if (now.blocked()) {
                const std::uint64_t until = Mark.counted(now.until);
                if (!now.exactly) return (std::max)(to, crossing(until));
                return crossing(at) >= to ? exactly(until) : to;
            }
            return unread > Mark.distance(now.at) / 100 * Lower +
                                Mark.distance(now.at) % 100 * Lower / 100
                       ? unset
                       : to;
        }
    }
    /// The mark `to`, which this reader armed, is reached, as far as the reader sees.
    [[nodiscard]] static constexpr bool is_reached(std::uint64_t to, const standing& now) noexcept {
        if constexpr (by_age) {
            return to == on_next && now.at.bytes > now.read.bytes;
        } else {
            if (to == never) return false;
            if ((to & 1U) != 0) return crossing(Mark.counted(now.at)) >= to;
            return !now.blocked() || exactly(Mark.counted(now.until)) != to;
        }
    }
    /// The mark `to` is passed, for the writer that has reached `at`. The record that a reader
    /// waits for is overwritten after a lap, so a mark that is older than that counts as passed.
    [[nodiscard]] static constexpr bool is_passed(std::uint64_t to, const progress& at) noexcept {
        const std::uint64_t now = Mark.counted(at);
        if ((to & 1U) != 0) return crossing(now) >= to;
        return exactly(now) == to || now >= (to >> 1) + Mark.most(at);
    }

    [[gnu::noinline, gnu::cold]] void reached(line& shared, position records, std::uint64_t bytes,
                                              std::uint64_t most_records,
                                              std::uint64_t most_bytes) noexcept {
        const progress at{records, bytes, most_records, most_bytes};
        // order: notify.pass:A pairs with notify.arm:C, notify.wait:C
        thread_fence(seq_cst);
        auto& word = word_of(shared);
        std::uint64_t now = word.load(relaxed);  // relaxed: the swap compares again
        for (;;) {
            if (now == unset) {
                const std::uint64_t to = first(0, at);
                if (word.compare_exchange_weak(now, to, relaxed)) now = to;  // relaxed: as above
                continue;
            }
            if (!is_passed(now, at)) return;
            // relaxed: earlier accesses are behind the fence above, later ones behind the next
            if (!word.compare_exchange_weak(now, disarmed, relaxed)) continue;
            announce(shared, at);
            return;
        }
    }

    /// Notifies if the time in the mark has come; sets that time if this is the first record.
    [[gnu::noinline]] void aged(line& shared, progress at) noexcept {
        if (fences(shared)) {
            // order: notify.age:A pairs with notify.arm:C
            thread_fence(seq_cst);
        }
        auto& word = word_of(shared);
        const std::uint64_t time = now_ns();
        // relaxed: the swap compares again
        for (std::uint64_t now = word.load(relaxed); now != disarmed;) {
            if (now > on_next && time < now) return;
            const bool begins = now <= on_next;
            const std::uint64_t to = begins ? time + Mark.amount : disarmed;
            // order: notify.age:B pairs with notify.wait:C
            if (!word.compare_exchange_weak(now, to, release, relaxed)) continue;
            if (!begins) announce(shared, at);
            return;
        }
    }

    void announce(line& shared, const progress& at) noexcept {
        // order: notify.tell:B pairs with notify.wait:A
        shared.word.fetch_add(1, release);
        // order: notify.tell:C pairs with notify.wait:B, notify.arm:A
        thread_fence(seq_cst);
        if (shared.waiters.load(relaxed) != 0) wake_all_on(shared.word, across_);  // relaxed: fence
        Way::told(shared, at);
    }

    [[nodiscard]] static bool fences(const line& shared) noexcept {
        return shared.fenced.load(relaxed) != 0;  // relaxed: it only ever becomes 1
    }
    [[nodiscard]] static shared_atomic<std::uint64_t>& word_of(line& shared) noexcept {
        return fences(shared) ? shared.armed : shared.mark;
    }

    /// The system has no barrier: makes writers fence from now on.
    void let_writers_fence(line& shared) noexcept {
        if (fences(shared)) return;
        // relaxed, all: a writer that sees one of the stores and not yet the others finds a mark
        // that was passed long ago, or none, and so loads the true one
        shared.fenced.store(1, relaxed);
        const std::uint64_t before = shared.mark.exchange(unset, relaxed);  // relaxed: as above
        std::uint64_t none = unset;
        // relaxed: as above
        static_cast<void>(shared.armed.compare_exchange_strong(none, before, relaxed));
        // Writers that do not know yet have not fenced their last stores. Those stores leave their
        // processors within nanoseconds, so a short sleep is enough.
        const timespec moment{0, 1'000'000};
        ::nanosleep(&moment, nullptr);
    }
    template <class Look>
    [[gnu::noinline, gnu::cold]] bool arm_fenced(line& shared, Look& look) noexcept {
        static_cast<void>(disarm(shared));
        let_writers_fence(shared);
        return arm(shared, look);
    }

    bool across_ = false;  ///< other processes may map the ring
};
static_assert(policy<at_watermark<records(1)>> && policy<at_watermark<circular>>);
static_assert(hears_of_full<at_watermark<percent(50), by_callback>> &&
              attaches<at_watermark<bytes(1)>>);
static_assert(begins<at_watermark<records(1)>> && is_bounded<at_watermark<bytes(1)>>);
static_assert(arms<at_watermark<age(nanoseconds{1}), by_signal>>);

}  // namespace trace_ring::inline v1::notify
