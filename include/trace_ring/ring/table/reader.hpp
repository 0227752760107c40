// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Reading a table while it is written: forward, backward, and as the consumer that makes room.
/// Each position from the first one asked for to the last is either a record, or counted: as lost,
/// with its cause, or as vacant where it never held one. Nothing is written to the ring, but by the
/// consumer.

#include <cstdint>
#include <type_traits>
#include <utility>

#include <trace_ring/atomic.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/policy/notify/notify.hpp>
#include <trace_ring/position.hpp>
#include <trace_ring/ring/policies/slots.hpp>

namespace trace_ring::inline v1 {

/// What reading one step yields.
template <class T>
struct table_item {
    enum class kind : std::uint8_t {
        end,      ///< nothing more now
        record,   ///< `record`, at `at`
        loss,     ///< `lost`: a gap in the sequence, here
        pending,  ///< `at` is claimed and not yet committed: ask again, or pass it over
    };

    kind what = kind::end;
    position at = no_position;
    T record{};
    loss lost{};

    /// A record or a loss: the sequence has gone on.
    [[nodiscard]] constexpr explicit operator bool() const noexcept {
        return what == kind::record || what == kind::loss;
    }
    [[nodiscard]] constexpr bool is_record() const noexcept { return what == kind::record; }
    [[nodiscard]] constexpr bool is_loss() const noexcept { return what == kind::loss; }
    [[nodiscard]] constexpr bool is_pending() const noexcept { return what == kind::pending; }
};

/// What the readers of one table have in common: the counts.
template <class Ring>
class table_reader_counts {
public:
    /// Records yielded.
    [[nodiscard]] std::uint64_t read() const noexcept { return read_; }
    /// Positions that were found to hold no record.
    [[nodiscard]] std::uint64_t vacant() const noexcept { return vacant_; }
    /// What this reader missed, by cause.
    [[nodiscard]] const loss_counts& lost() const noexcept { return lost_; }

protected:
    using element = typename Ring::element;
    using item = table_item<element>;

    explicit table_reader_counts(const Ring& ring) noexcept : ring_(&ring) {
        static_assert(
            Ring::claim_policy::counts,
            "trace_ring: a claim that does not count positions has no readers: nothing tells "
            "its old entries from its new ones");
        static_assert(std::is_default_constructible_v<element>,
                      "trace_ring: records are read into default-constructed objects");
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
    loss_counts lost_;
};

/// Reads forward from the oldest record. Any number of readers, on any thread; each is one
/// thread's.
template <class Ring>
class table_reader : public table_reader_counts<Ring> {
    using base = table_reader_counts<Ring>;

public:
    using typename base::item;

    explicit table_reader(const Ring& ring) noexcept : table_reader(ring, 0) {
        next_ = base::oldest(ring.produced());
    }

    /// The next record or loss; `end` or `pending` where there is none yet: ask again later.
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
                case table_slots::found::newer:
                case table_slots::found::overrun:
                    return base::missed(next_++, 1, loss_cause::overrun);
            }
        }
    }
    /// Gives up on the position that is pending: its writer died, or stalls for longer than the
    /// reader cares to wait. Should it still commit, then unread. Counted as abandoned.
    item pass_over() noexcept { return base::missed(next_++, 1, loss_cause::abandoned); }

    /// The position that next() will look at.
    [[nodiscard]] position at() const noexcept { return next_; }

    /// How far this reader and its ring are: for a notifier that it arms before it waits.
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

    /// The record or loss before; `end` at the ring's beginning. Never pending: what is not
    /// committed when it is looked at counts as abandoned. What has been overwritten is one loss,
    /// the last item.
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
                case table_slots::found::newer:
                case table_slots::found::overrun:
                    return base::missed(p, 1, loss_cause::overrun);
            }
        }
    }

private:
    position next_;
};

/// The reader that makes room: what it has passed may be overwritten. One at a time, on one thread;
/// it goes on where the last one stopped. With full::discard_newest or full::block nothing is lost
/// that was not refused.
template <class Ring>
class table_consumer : public table_reader<Ring> {
    using base = table_reader<Ring>;

public:
    using typename base::item;

    /// Writers are told of room when `at_a_time` records have been passed (0 is 1), when there is
    /// nothing left that this consumer knows of, and at its end. So up to `at_a_time` - 1 slots may
    /// be free that writers do not see. It makes the difference where writers wait for room: each
    /// time they look, the next telling has to wait for the line that both use.
    explicit table_consumer(Ring& ring, std::uint64_t at_a_time = 1) noexcept
        // relaxed: this side's own word
        : base(ring, ring.control().consumed.load(relaxed) + 1),
          writable_(&ring),
          at_a_time_(at_a_time),
          told_(base::next_ - 1) {
        static_assert(
            Ring::sequenced || !Ring::claim_policy::many_writers,
            "trace_ring: a bare table of many writers cannot be consumed: nothing tells which "
            "of its records are complete");
    }
    /// `other` is at its end.
    table_consumer(table_consumer&& other) noexcept
        : base(other),
          writable_(other.writable_),
          seen_(other.seen_),
          at_a_time_(other.at_a_time_),
          told_(std::exchange(other.told_, other.next_ - 1)) {}
    table_consumer& operator=(table_consumer&&) = delete;
    /// Needs the ring only if it was made to tell of several records at a time.
    ~table_consumer() {
        if (told_ != base::next_ - 1) publish();
    }

    [[nodiscard, gnu::always_inline]] item next() noexcept {
        if constexpr (stays) {
            // Up to the position seen last nothing changes any more, and the writer's words need
            // not be looked at.
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
    /// Arms the ring's notifier from where this reader is. False: read on.
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
    /// One writer, who waits or refuses: a record that was committed stays until it is consumed.
    static constexpr bool stays = !Ring::sequenced && !Ring::claim_policy::many_writers &&
                                  !Ring::full_policy::overwrites && !Ring::full_policy::grows;

    void publish() noexcept {
        told_ = base::next_ - 1;
        // order: ring.consume:A pairs with ring.admit:A, ring.admit_alone:A
        writable_->control().consumed.store(told_, release);
    }

    Ring* writable_;
    position seen_ = 0;  ///< newest position that was there when the writer was last asked
    std::uint64_t at_a_time_;
    position told_;  ///< up to which writers know of room
};

}  // namespace trace_ring::inline v1
