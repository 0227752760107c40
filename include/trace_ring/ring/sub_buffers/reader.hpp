// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Reads a ring of sub-buffers while it is written: forward, backward, and as the consumer that
/// makes room. Readers work on copies of whole sub-buffers; an inconsistent copy is not used.
/// @code
/// auto reader = ring.reader();
/// while (const auto item = reader.next()) {
///     if (item.is_record()) use(item.id, item.payload);
///     if (item.is_loss()) report(item.lost);  // this gap lies between the records around it
/// }
/// @endcode

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/records.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/policy/notify/notify.hpp>
#include <trace_ring/position.hpp>

namespace trace_ring::inline v1 {

/// One step of reading: a record, a loss, or the end. `payload` lies in the reader, and is valid
/// until its next step.
struct sub_buffer_item {
    enum class kind : std::uint8_t {
        end,     ///< no more records now
        record,  ///< one record
        loss,    ///< `lost`: a gap in the sequence, here
    };

    kind what = kind::end;
    position at = no_position;  ///< the record's number, from 1
    std::uint64_t time = 0;     ///< by the ring's clock
    std::uint16_t id = 0;
    std::uint32_t flags = 0;
    std::span<const std::uint64_t> payload{};  ///< words of 8 bytes, the last filled up with zeros
    loss lost{};

    [[nodiscard]] constexpr explicit operator bool() const noexcept { return what != kind::end; }
    [[nodiscard]] constexpr bool is_record() const noexcept { return what == kind::record; }
    [[nodiscard]] constexpr bool is_loss() const noexcept { return what == kind::loss; }
};

/// A reader's copy of one sub-buffer, a list of the records in it, and the reader's counts.
template <class Ring>
class sub_buffer_copies {
public:
    /// Records returned.
    [[nodiscard]] std::uint64_t read() const noexcept { return read_; }
    /// Records that this reader missed, or that the writer lost, by cause.
    [[nodiscard]] const loss_counts& lost() const noexcept { return lost_; }

protected:
    explicit sub_buffer_copies(const Ring& ring)
        : ring_(&ring), words_(Ring::sub_buffer_bytes / 8) {
        records_.reserve(Ring::sub_buffer_bytes / 8);
    }
    sub_buffer_copies(const sub_buffer_copies&) = default;
    sub_buffer_copies(sub_buffer_copies&&) noexcept = default;
    sub_buffer_copies& operator=(const sub_buffer_copies&) = default;
    sub_buffer_copies& operator=(sub_buffer_copies&&) noexcept = default;

    struct place {
        std::uint32_t word;  ///< index in the copy of the record's first word
        std::uint32_t header;
        std::uint64_t time;
    };

    /// The oldest sub-buffer that the ring can still hold, if `newest` is the newest.
    [[nodiscard]] position oldest(position newest) const noexcept {
        const std::uint64_t capacity = ring_->capacity();
        return newest > capacity ? newest - capacity + 1 : 1;
    }
    /// Copies sub-buffer `p`, and finds its records.
    [[nodiscard]] copy_result take(position p) {
        records_.clear();
        const auto result = copy_sub_buffer(ring_->slot_at(ring_->index_of(p)), words_, copy_);
        if (result != copy_result::copied) return result;
        if (copy_.state.pos != p) return copy_result::vacant;
        // The records before the damage are as good as any.
        whole_ = walk_records(words_, copy_,
                              [this](std::uint32_t word, std::uint64_t time, std::uint32_t head) {
                                  records_.push_back({word, head, time});
                              }) == 0;
        return copy_result::copied;
    }
    [[nodiscard]] sub_buffer_item yield(std::size_t index) noexcept {
        const place& r = records_[index];
        ++read_;
        sub_buffer_item item;
        item.what = sub_buffer_item::kind::record;
        item.at = copy_.first_position + index + 1;
        item.time = r.time;
        item.id = record_word::id(r.header);
        item.flags = record_word::flags(r.header);
        item.payload = std::span<const std::uint64_t>(words_).subspan(
            r.word + 1, record_word::bytes(r.header) / 8 - 1);
        return item;
    }
    [[nodiscard]] sub_buffer_item missed(position from, std::uint64_t count,
                                         loss_cause cause) noexcept {
        lost_.add(cause, count);
        sub_buffer_item item;
        item.what = sub_buffer_item::kind::loss;
        item.at = from;
        item.lost = {from, count, cause};
        return item;
    }

    const Ring* ring_;
    std::vector<std::uint64_t> words_;
    std::vector<place> records_{};
    sub_buffer_copy copy_{};
    bool whole_ = true;  ///< the copy has all records that its header promises
    std::uint64_t read_ = 0;
    loss_counts lost_{};
};

/// Reads forward from the oldest record. Any number of readers, on any threads; each belongs to one
/// thread.
template <class Ring>
class sub_buffer_reader : public sub_buffer_copies<Ring> {
    using base = sub_buffer_copies<Ring>;

public:
    explicit sub_buffer_reader(const Ring& ring) : sub_buffer_reader(ring, 1, 0) {
        sub_ = base::oldest(ring.produced());
    }

    /// The next record or loss; `end` if there is none yet: call it again later.
    [[nodiscard]] sub_buffer_item next() & {
        for (;;) {
            if (began_) {
                if (const auto told = tell_of_writer(); told) return told;
                if (index_ < base::records_.size()) {
                    ++expected_;
                    return base::yield(index_++);
                }
                if (complete_) finish();
            }
            const position newest = base::ring_->produced();
            if (sub_ > newest) return last_damage();
            if (const position first = base::oldest(newest); sub_ < first) go_to(first);
            const std::size_t known = index_;
            switch (base::take(sub_)) {
                case copy_result::copied:
                    break;
                case copy_result::damaged:  // the next sub-buffer shows how many records it had
                    cause_ = loss_cause::damaged;
                    go_to(sub_ + 1);
                    continue;
                default:  // overwritten, or being overwritten: compare with the newest one now
                    cause_ = loss_cause::overrun;
                    if (sub_ + base::ring_->capacity() > base::ring_->produced() + 1) return {};
                    go_to(sub_ + 1);
                    continue;
            }
            if (!base::whole_) cause_ = loss_cause::damaged;
            // A sub-buffer is also complete if its successor was there before the copy.
            complete_ =
                base::copy_.state.state != static_cast<unsigned>(sub_buffer_state::active) ||
                sub_ < newest;
            if (!began_) {
                began_ = true;
                told_ = {};
                if (const auto gap = gap_before(); gap) return gap;
            }
            if (base::records_.size() == known && !complete_ && !has_news()) return last_damage();
        }
    }

    /// The number of the record that was returned last.
    [[nodiscard]] position at() const noexcept { return expected_; }

    /// How far this reader and its ring are: a reader that wants to wait arms a notifier with it.
    [[nodiscard]] notify::standing standing() const noexcept {
        const notify::progress at = base::ring_->filled_now();
        // Sub-buffers given up as damaged are behind the reader, for any count of records.
        const std::uint64_t begun = (sub_ - 1) * Ring::sub_buffer_bytes;
        if (begun >= at.bytes) return {at, at};
        const std::uint64_t within = !began_ ? 0
                                     : index_ < base::records_.size()
                                         ? base::records_[index_].word * 8
                                         : base::copy_.bytes;
        return {base::ring_->filled(expected_, begun + within), at};
    }

protected:
    /// Begins with sub-buffer `first`, as if `before` records had been read.
    sub_buffer_reader(const Ring& ring, position first, std::uint64_t before)
        : base(ring), sub_(first), expected_(before) {}

    /// Records before the sub-buffer that is being read.
    [[nodiscard]] std::uint64_t passed() const noexcept { return passed_; }
    /// Sub-buffers up to this position have been read to their end.
    [[nodiscard]] position finished() const noexcept { return sub_ - 1; }

private:
    void go_to(position sub) noexcept {
        passed_ = expected_;
        sub_ = sub;
        index_ = 0;
        began_ = false;
        complete_ = false;
    }
    void finish() noexcept { go_to(sub_ + 1); }

    /// The loss between the last record read and the first of this sub-buffer, if any.
    [[nodiscard]] sub_buffer_item gap_before() noexcept {
        const std::uint64_t before = base::copy_.first_position;
        const loss_cause cause = std::exchange(cause_, loss_cause::overwritten);
        if (!base::whole_) cause_ = loss_cause::damaged;
        if (before <= expected_) return {};
        const position from = expected_ + 1;
        return base::missed(from, before - std::exchange(expected_, before), cause);
    }
    /// Damage with no sub-buffer after it that would show how many records are gone: at least one.
    [[nodiscard]] sub_buffer_item last_damage() noexcept {
        if (cause_ != loss_cause::damaged || damage_told_ == sub_) return {};
        damage_told_ = sub_;
        return base::missed(++expected_, 1, loss_cause::damaged);
    }
    struct counts {
        std::uint32_t refused = 0, too_long = 0, nested = 0;
    };
    [[nodiscard]] bool has_news() const noexcept {
        return base::copy_.refused != told_.refused || base::copy_.too_long != told_.too_long ||
               base::copy_.nested != told_.nested;
    }
    /// Records that the writer lost before this sub-buffer's first record or while it was current.
    [[nodiscard]] sub_buffer_item tell_of_writer() noexcept {
        const auto news = [this](std::uint32_t now, std::uint32_t& known, loss_cause cause) {
            const std::uint32_t more = now - known;
            known = now;
            return more == 0 ? sub_buffer_item{} : base::missed(expected_ + 1, more, cause);
        };
        if (const auto item = news(base::copy_.refused, told_.refused, loss_cause::refused); item)
            return item;
        if (index_ < base::records_.size()) return {};  // the other causes come after the records
        if (const auto item = news(base::copy_.too_long, told_.too_long, loss_cause::too_long);
            item)
            return item;
        return news(base::copy_.nested, told_.nested, loss_cause::nested);
    }

    position sub_;
    bool began_ = false;     ///< there is a copy of this sub-buffer
    bool complete_ = false;  ///< and the copy was made after the sub-buffer was closed
    std::size_t index_ = 0;
    std::uint64_t passed_ = 0;
    position expected_;  ///< the number of the last record returned or lost
    loss_cause cause_ = loss_cause::overwritten;
    position damage_told_ = 0;
    counts told_{};
};

/// Reads backward from the newest record at the time it is made.
template <class Ring>
class backward_sub_buffer_reader : public sub_buffer_copies<Ring> {
    using base = sub_buffer_copies<Ring>;

public:
    explicit backward_sub_buffer_reader(const Ring& ring) : base(ring), sub_(ring.produced()) {}

    /// The record before the last one returned; `end` at the ring's beginning. All overwritten
    /// records are one loss, the last item.
    [[nodiscard]] sub_buffer_item next() & {
        for (;;) {
            if (left_ != 0) return base::yield(--left_);
            if (sub_ == no_position) return missing_down_to(0, loss_cause::damaged);
            switch (base::take(sub_--)) {
                case copy_result::copied: {
                    left_ = base::records_.size();
                    const std::uint64_t first = base::copy_.first_position;
                    if (!known_ && !base::whole_) {  // damage in the newest: at least one is gone
                        known_ = true;
                        before_ = first + left_ + 1;
                    }
                    const auto gap = missing_down_to(first + left_, loss_cause::damaged);
                    known_ = true;
                    before_ = first;
                    if (gap) return gap;
                    break;
                }
                case copy_result::damaged:  // the one before it shows how many records it had
                    break;
                default:  // this one and all older ones have been overwritten
                    sub_ = no_position;
                    return missing_down_to(0, loss_cause::overwritten);
            }
        }
    }

private:
    /// The loss between record `last` and those that were returned before, if any.
    [[nodiscard]] sub_buffer_item missing_down_to(std::uint64_t last, loss_cause cause) noexcept {
        if (!known_ || before_ <= last) return {};
        const std::uint64_t count = before_ - last;
        before_ = last;
        return base::missed(last + 1, count, cause);
    }

    position sub_;
    std::size_t left_ = 0;
    std::uint64_t before_ = 0;  ///< records before those of the last copy
    bool known_ = false;
};

/// The reader that makes room: sub-buffers that it has read to their end may be used again. One
/// consumer at a time, on one thread; it begins with the first sub-buffer that the last consumer
/// had not finished.
template <class Ring>
class sub_buffer_consumer : public sub_buffer_reader<Ring> {
    using base = sub_buffer_reader<Ring>;

public:
    explicit sub_buffer_consumer(Ring& ring)
        // relaxed: only the consuming side writes these words
        : base(ring, ring.control().consumed.load(relaxed) + 1,
               ring.control().consumed_records.load(relaxed)),
          writable_(&ring) {}

    [[nodiscard]] sub_buffer_item next() & {
        const position before = base::finished();
        const auto item = base::next();
        if (base::finished() == before) return item;
        // This item is from a later sub-buffer: all records before that have been returned.
        // relaxed: only the consuming side writes it
        writable_->control().consumed_records.store(base::passed(), relaxed);
        // order: ring.consume_all:A pairs with ring.admit_alone:A
        writable_->control().consumed.store(base::finished(), release);
        return item;
    }

    /// Arms the ring's notifier for news after this reader's place. False: there is more to read.
    [[nodiscard]] bool rearm() noexcept requires(notify::arms<typename Ring::notify_policy>) {
        return writable_->notifier().arm(writable_->control().notified,
                                         [this] { return base::standing(); });
    }

private:
    Ring* writable_;
};

}  // namespace trace_ring::inline v1
