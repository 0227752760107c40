// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The reader is told when so much is unread: once for each crossing, and not again before it has
/// read and armed the mark anew, which is refused as long as more than the lower mark is unread.
///
/// One word, the mark, says all. It belongs to the reader while it is disarmed, and whoever swaps
/// it away while it is armed, a writer or the reader itself, has that crossing for himself.
/// @code
///  mark      0               at first: armed at one threshold from the ring's beginning
///            n << 1 | 1      armed: the ring comes to n records or bytes, or further
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
/// Of a commit and the load of the mark behind it a processor may let the load go first. So the
/// reader, who is about to sleep, makes the fence for all (barrier.hpp): each writer either sees
/// the mark, or has its commit seen by the reader. A writer that passes no mark pays a load and a
/// comparison, and nobody a system call whom nobody waits for. Where the system has no such barrier
/// the reader says so, once, and then each record makes a full fence of its own: the mark that
/// writers compare with stays 0, and the true one is `line::armed`.
///
/// A record that is committed after later ones, which have passed the mark, would be told to
/// nobody: a reader that finds it open waits for that very record.
///
/// With a threshold of age the mark holds a time: 1, the next record is the oldest unread; else
/// when that one is too old. Only a record, or a listener's own look, tells. While it is armed each
/// record reads CLOCK_MONOTONIC.

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

/// `Lower` is in per cent of the threshold. A threshold above what an overwriting ring can hold is
/// `circular`: nobody is ever told. Of a ring that does not overwrite it is refused.
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
    static constexpr bool by_age = Mark.of == measure::age;
    static constexpr threshold mark = Mark;

    constexpr at_watermark() noexcept = default;

    // --- The writers' side ---

    [[gnu::always_inline]] void passed(line& shared, progress at) noexcept {
        // order: notify.commit:A pairs with notify.arm:B
        signal_fence(seq_cst);
        // relaxed: the fence above, and the barrier of whoever arms
        const std::uint64_t now = shared.mark.load(relaxed);
        if constexpr (by_age) {
            if (now != disarmed) [[unlikely]]
                aged(shared, at);
        } else {
            // By single words, which stay in registers.
            if (crossing(Mark.counted(at)) >= now) [[unlikely]]
                reached(shared, at.records, at.bytes, at.most_records, at.most_bytes);
        }
    }

    /// A writer found no room: further the ring does not come.
    [[gnu::noinline, gnu::cold]] void full(line& shared, progress at) noexcept {
        // No fence: it has stored nothing that a reader could have missed.
        auto& word = word_of(shared);
        // relaxed: the swap looks again
        for (std::uint64_t now = word.load(relaxed); now != disarmed;) {
            // Who waits for one open record is not helped by being woken.
            if (!by_age && now != unset && (now & 1U) == 0) return;
            // relaxed: what follows is behind a fence
            if (!word.compare_exchange_weak(now, disarmed, relaxed)) continue;
            announce(shared, at);
            return;
        }
    }

    /// At set-up: others may map the ring. Where this process cannot take part in barriers, all
    /// writers fence from now on.
    void attach(line& shared) noexcept {
        across_ = true;
        if (!take_part_in_barriers()) let_writers_fence(shared);
    }
    /// Before the first record: the first mark is counted from here.
    void begin(line& shared, progress at) noexcept {
        if constexpr (watches) {
            // relaxed: the ring is not shared yet
            shared.mark.store(by_age ? on_next : first(Mark.counted(at), at), relaxed);
        }
    }
    /// The mark is not above the maximum: a ring can hold so much. It may be full before, if its
    /// records are large; a writer that finds no room tells in any case.
    [[nodiscard]] static constexpr bool reaches(std::uint64_t most_records,
                                                std::uint64_t most_bytes) noexcept {
        return (Mark.of != measure::records || Mark.amount <= most_records) &&
               (Mark.of != measure::bytes || Mark.amount <= most_bytes);
    }

    // --- The reader's side: one at a time ---

    /// Arms the mark one threshold from what has been read, and tells whether it is armed: `look()`
    /// returns the reader's `standing`. False: read on, there is enough, or what was waited for is
    /// there. A system call; noexcept if `look` is.
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
    /// False: it was disarmed, so somebody has told, or is about to.
    bool disarm(line& shared) noexcept {
        if (!watches) return true;
        // relaxed: one word, and who swaps it decides
        return word_of(shared).exchange(disarmed, relaxed) != disarmed;
    }
    /// Nobody has told since it was armed.
    [[nodiscard]] bool is_armed(line& shared) noexcept {
        // order: notify.wait:C pairs with notify.pass:A, notify.age:B
        return !watches || word_of(shared).load(acquire) != disarmed;
    }
    /// For a reader that waits until `deadline` (ns): when to look by itself. With a threshold of
    /// age it tells, as a writer would, if it is time.
    [[nodiscard]] std::uint64_t look_by_itself(line& shared, std::uint64_t deadline) noexcept {
        if constexpr (!by_age) {
            return deadline;
        } else {
            // relaxed: looked at again
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
    /// Sleeps until the word is no longer `seen`, or till `deadline`; or for no reason.
    void sleep(line& shared, std::uint32_t seen, std::uint64_t deadline) noexcept {
        sleep_on(shared.word, seen, deadline, across_);
    }
    [[nodiscard]] static std::uint64_t now_ns() noexcept {
        timespec t{};
        ::clock_gettime(CLOCK_MONOTONIC, &t);
        return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000U +
               static_cast<std::uint64_t>(t.tv_nsec);
    }

private:
    static constexpr std::uint64_t unset = 0;
    static constexpr std::uint64_t on_next = 1;  ///< of age
    static constexpr std::uint64_t disarmed = ~std::uint64_t{0};
    static constexpr std::uint64_t never = disarmed - 1;  ///< armed, and above all that comes

    [[nodiscard]] static constexpr std::uint64_t crossing(std::uint64_t n) noexcept {
        return n << 1 | 1U;
    }
    [[nodiscard]] static constexpr std::uint64_t exactly(std::uint64_t n) noexcept {
        return n << 1;
    }
    /// The mark one threshold from `from`.
    [[nodiscard]] static constexpr std::uint64_t first(std::uint64_t from,
                                                       const progress& ring) noexcept {
        return reaches(ring.most_records, ring.most_bytes) ? crossing(from + Mark.distance(ring))
                                                           : never;
    }

    /// What the mark is to be; unset: enough is unread to read on.
    [[nodiscard]] static std::uint64_t goal(const standing& now) noexcept {
        if constexpr (by_age) {
            if (now.at.bytes <= now.read.bytes) return on_next;
            // What cannot be read yet is as old as this look, at least.
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
    /// By what a reader sees, who has armed the mark at `to`.
    [[nodiscard]] static constexpr bool is_reached(std::uint64_t to, const standing& now) noexcept {
        if constexpr (by_age) {
            return to == on_next && now.at.bytes > now.read.bytes;
        } else {
            if (to == never) return false;
            if ((to & 1U) != 0) return crossing(Mark.counted(now.at)) >= to;
            return !now.blocked() || exactly(Mark.counted(now.until)) != to;
        }
    }
    /// By the writer that has come to `at`. From a lap on, what was waited for is gone.
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
        std::uint64_t now = word.load(relaxed);  // relaxed: the swap looks again
        for (;;) {
            if (now == unset) {
                const std::uint64_t to = first(0, at);
                if (word.compare_exchange_weak(now, to, relaxed)) now = to;  // relaxed: as above
                continue;
            }
            if (!is_passed(now, at)) return;
            // relaxed: what comes before is behind the fence above, what follows behind the next
            if (!word.compare_exchange_weak(now, disarmed, relaxed)) continue;
            announce(shared, at);
            return;
        }
    }

    /// The mark may hold a time that has come.
    [[gnu::noinline]] void aged(line& shared, progress at) noexcept {
        if (fences(shared)) {
            // order: notify.age:A pairs with notify.arm:C
            thread_fence(seq_cst);
        }
        auto& word = word_of(shared);
        const std::uint64_t time = now_ns();
        // relaxed: the swap looks again
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
        return shared.fenced.load(relaxed) != 0;  // relaxed: it only comes to be 1
    }
    [[nodiscard]] static shared_atomic<std::uint64_t>& word_of(line& shared) noexcept {
        return fences(shared) ? shared.armed : shared.mark;
    }

    /// There is no barrier: from now on writers fence.
    void let_writers_fence(line& shared) noexcept {
        if (fences(shared)) return;
        // relaxed, all: who sees one of them and not yet another finds a mark that was passed long
        // ago, or none, and looks at the true one
        shared.fenced.store(1, relaxed);
        const std::uint64_t before = shared.mark.exchange(unset, relaxed);  // relaxed: as above
        std::uint64_t none = unset;
        // relaxed: as above
        static_cast<void>(shared.armed.compare_exchange_strong(none, before, relaxed));
        // Only this once nothing makes sure that each writer knows. What it has stored by now, and
        // has not fenced, leaves its processor within nanoseconds.
        const timespec moment{0, 1'000'000};
        ::nanosleep(&moment, nullptr);
    }
    template <class Look>
    [[gnu::noinline, gnu::cold]] bool arm_fenced(line& shared, Look& look) noexcept {
        static_cast<void>(disarm(shared));
        let_writers_fence(shared);
        return arm(shared, look);
    }

    bool across_ = false;  ///< others may map the ring, too
};
static_assert(policy<at_watermark<records(1)>> && policy<at_watermark<circular>>);
static_assert(hears_of_full<at_watermark<percent(50), by_callback>> &&
              attaches<at_watermark<bytes(1)>>);
static_assert(begins<at_watermark<records(1)>> && is_bounded<at_watermark<bytes(1)>>);
static_assert(arms<at_watermark<age(nanoseconds{1}), by_signal>>);

}  // namespace trace_ring::inline v1::notify
