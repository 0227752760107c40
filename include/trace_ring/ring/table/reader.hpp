// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Reads a table while it is written: forward, backward, and as the consumer that makes room. Each
/// position from the first to the last that was read is a record or is counted: as lost, with its
/// cause, or as vacant if it never held a record. Only the consumer writes to the ring.
/// @code
/// auto reader = ring.reader();
/// while (const auto item = reader.next()) {
///     if (item.is_record()) use(item.record);
///     if (item.is_loss()) report(item.lost);
/// }
/// @endcode

#include <cstdint>
#include <utility>

#include <trace_ring/atomic.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/policy/notify/notify.hpp>
#include <trace_ring/position.hpp>
#include <trace_ring/ring/policies/slots.hpp>

namespace trace_ring::inline v1 {

/// One step of reading.
template <class T>
struct table_item {
    enum class kind : std::uint8_t {
        end,      ///< no more records now
        record,   ///< `record`, at `at`
        loss,     ///< `lost`: a gap in the sequence, here
        pending,  ///< `at` is claimed and not yet committed: read again, or pass it over
    };

    kind what = kind::end;
    position at = no_position;
    T record{};
    loss lost{};

    /// A record or a loss: the reader has moved on.
    [[nodiscard]] constexpr explicit operator bool() const noexcept {
        return what == kind::record || what == kind::loss;
    }
    [[nodiscard]] constexpr bool is_record() const noexcept { return what == kind::record; }
    [[nodiscard]] constexpr bool is_loss() const noexcept { return what == kind::loss; }
    [[nodiscard]] constexpr bool is_pending() const noexcept { return what == kind::pending; }
};

/// The counts that all readers of a table keep.
template <class Ring>
class table_reader_counts {
public:
    /// Records returned.
    [[nodiscard]] std::uint64_t read() const noexcept { return read_; }
    /// Positions that were found to hold no record.
    [[nodiscard]] std::uint64_t vacant() const noexcept { return vacant_; }
    /// Records that this reader missed, by cause.
    [[nodiscard]] const loss_counts& lost() const noexcept { return lost_; }

protected:
    using element = typename Ring::element;
    using item = table_item<element>;

    explicit table_reader_counts(const Ring& ring) noexcept : ring_(&ring) {
        static_assert(
            Ring::claim_policy::counts,
            "trace_ring: a claim that does not count positions has no readers: nothing tells "
            "its old entries from its new ones");
    }

    [[nodiscard]] position origin() const noexcept {
        return ring_->control().origin.load(relaxed);  // relaxed: unchanged since the first record
    }
    /// The oldest position that the ring can still hold, if `newest` is the newest.
    [[nodiscard]] position oldest(position newest) const noexcept {
        const position before = origin();
        const std::uint64_t lap = ring_->lap();
        return newest - before > lap ? newest - lap + 1 : before + 1;
    }
    [[nodiscard]] item found(position p, const element& value) noexcept {
        ++read_;
        return {item::kind::record, p, value, {}};
    }
    [[nodiscard]] item missed(position from, std::uint64_t count, loss_cause cause) noexcept {
        lost_.add(cause, count);
        item gap;
        gap.what = item::kind::loss;
        gap.at = from;
        gap.lost = {from, count, cause};
        return gap;
    }

    const Ring* ring_;
    std::uint64_t read_ = 0;
    std::uint64_t vacant_ = 0;
    loss_counts lost_{};
};

/// Reads forward from the oldest record. Any number of readers, on any threads; each belongs to one
/// thread.
template <class Ring>
class table_reader : public table_reader_counts<Ring> {
    using base = table_reader_counts<Ring>;

public:
    using typename base::item;

    explicit table_reader(const Ring& ring) noexcept : table_reader(ring, 0) {
        next_ = base::oldest(ring.produced());
    }

    /// The next record or loss; `end` or `pending` if there is none yet: call it again later.
    [[nodiscard]] item next() noexcept {
        typename Ring::element value;
        for (;;) {
            const position newest = base::ring_->produced();
            if (next_ > newest) return {};
            if (const position first = base::oldest(newest); next_ < first) {
                const position from = next_;
                next_ = first;
                return base::missed(from, first - from, loss_cause::overwritten);
            }
            switch (base::ring_->copy(next_, value)) {
                case table_slots::found::record:
                    return base::found(next_++, value);
                case table_slots::found::vacant:
                    ++base::vacant_;
                    ++next_;
                    break;
                case table_slots::found::pending: {
                    item wait;
                    wait.what = item::kind::pending;
                    wait.at = next_;
                    return wait;
                }
                default:  // newer, overrun
                    return base::missed(next_++, 1, loss_cause::overrun);
            }
        }
    }
    /// Gives up the pending position: its writer died, or takes longer than the reader wants to
    /// wait. Counts it as abandoned; if the writer commits later, this reader does not see it.
    item pass_over() noexcept { return base::missed(next_++, 1, loss_cause::abandoned); }

    /// The position that next() will look at.
    [[nodiscard]] position at() const noexcept { return next_; }

    /// How far this reader and its ring are: a reader that wants to wait arms a notifier with it.
    [[nodiscard]] notify::standing standing() const noexcept {
        const auto place = [this](position p) { return base::ring_->filled(p, p * Ring::stride); };
        const position newest = base::ring_->produced();
        notify::standing now{place(next_ - 1), place(newest)};
        typename Ring::element value;
        if (next_ <= newest && next_ >= base::oldest(newest) &&
            base::ring_->copy(next_, value) == table_slots::found::pending) {
            now.until = place(next_);
            now.exactly = true;
        }
        return now;
    }

protected:
    table_reader(const Ring& ring, position first) noexcept : base(ring), next_(first) {}

    position next_;
};

/// Reads backward from the newest record at the time it is made.
template <class Ring>
class backward_table_reader : public table_reader_counts<Ring> {
    using base = table_reader_counts<Ring>;

public:
    using typename base::item;

    explicit backward_table_reader(const Ring& ring) noexcept
        : base(ring), next_(ring.produced()) {}

    /// The record or loss before the last one; `end` at the ring's beginning. Never pending: a
    /// position that is not yet committed counts as abandoned. All overwritten records are one
    /// loss, the last item.
    [[nodiscard]] item next() noexcept {
        typename Ring::element value;
        for (;;) {
            const position first = base::origin() + 1;
            if (next_ < first) return {};
            if (next_ < base::oldest(base::ring_->produced())) {
                const std::uint64_t count = next_ - first + 1;
                next_ = first - 1;
                return base::missed(first, count, loss_cause::overwritten);
            }
            const position p = next_--;
            switch (base::ring_->copy(p, value)) {
                case table_slots::found::record:
                    return base::found(p, value);
                case table_slots::found::vacant:
                    ++base::vacant_;
                    break;
                case table_slots::found::pending:
                    return base::missed(p, 1, loss_cause::abandoned);
                default:  // newer, overrun
                    return base::missed(p, 1, loss_cause::overrun);
            }
        }
    }

private:
    position next_;
};

/// The reader that makes room: slots that it has passed may be used again. One consumer at a time,
/// on one thread; it begins where the last consumer stopped. With full::discard_newest or
/// full::block only refused records are lost.
template <class Ring>
class table_consumer : public table_reader<Ring> {
    using base = table_reader<Ring>;

public:
    using typename base::item;

    /// Informs writers of room after each `at_a_time` records (0 means 1), when it has read all
    /// that it knows of, and when it is destroyed. So writers may not see up to `at_a_time` - 1
    /// free slots. A larger number is faster where writers wait for room: each time they look, they
    /// take the cache line that the consumer's next store needs.
    explicit table_consumer(Ring& ring, std::uint64_t at_a_time = 1) noexcept
        // relaxed: only the consuming side writes it
        : base(ring, ring.control().consumed.load(relaxed) + 1),
          writable_(&ring),
          at_a_time_(at_a_time),
          told_(base::next_ - 1) {
        static_assert(
            Ring::sequenced || !Ring::claim_policy::many_writers,
            "trace_ring: a bare table of many writers cannot be consumed: nothing tells which "
            "of its records are complete");
    }
    /// Ends `other`.
    table_consumer(table_consumer&& other) noexcept
        : base(other),
          writable_(other.writable_),
          seen_(other.seen_),
          at_a_time_(other.at_a_time_),
          told_(std::exchange(other.told_, other.next_ - 1)) {}
    table_consumer& operator=(table_consumer&&) = delete;
    table_consumer(const table_consumer&) = delete;
    table_consumer& operator=(const table_consumer&) = delete;
    /// Uses the ring only if it informs writers of several records at a time.
    ~table_consumer() {
        if (told_ != base::next_ - 1) publish();
    }

    [[nodiscard, gnu::always_inline]] item next() noexcept {
        if constexpr (stays) {
            // Records up to the position seen last do not change, so the writer's words need not be
            // loaded for them.
            if (base::next_ > seen_) {
                seen_ = writable_->produced();
                if (base::next_ > seen_) return {};
            }
            item got;
            got.what = item::kind::record;
            got.at = base::next_++;
            table_slots::load(got.record, writable_->slot_at(writable_->index_of(got.at)));
            ++base::read_;
            if (got.at - told_ >= at_a_time_ || got.at == seen_) publish();
            return got;
        } else {
            const item got = base::next();
            if (base::next_ - 1 - told_ >= at_a_time_ || !got) publish();
            return got;
        }
    }
    /// Arms the ring's notifier for news after this reader's place. False: there is more to read.
    [[nodiscard]] bool rearm() noexcept requires(notify::arms<typename Ring::notify_policy>) {
        publish();
        return writable_->notifier().arm(writable_->control().notified,
                                         [this] { return base::standing(); });
    }
    item pass_over() noexcept {
        writable_->control().passed_over.fetch_add(1, relaxed);  // relaxed: a total
        const item gap = base::pass_over();
        publish();
        return gap;
    }

private:
    /// One writer, which waits or refuses: a committed record stays until it is consumed.
    static constexpr bool stays = !Ring::sequenced && !Ring::claim_policy::many_writers &&
                                  !Ring::full_policy::overwrites && !Ring::full_policy::grows;

    void publish() noexcept {
        told_ = base::next_ - 1;
        // order: ring.consume:A pairs with ring.admit:A, ring.admit_alone:A
        writable_->control().consumed.store(told_, release);
    }

    Ring* writable_;
    position seen_ = 0;  ///< newest position when the writer's cursor was last loaded
    std::uint64_t at_a_time_;
    position told_;  ///< writers know of room up to here
};

}  // namespace trace_ring::inline v1
