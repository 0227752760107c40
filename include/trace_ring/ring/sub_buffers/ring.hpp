// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A ring of records of variable length: one lane (lane_writer.hpp) whose next sub-buffer is the
/// one that follows. To make room, the whole oldest is used again. The writer's own limit word says
/// up to where it may write. It is 0 while a record is open: a record that a signal handler or the
/// caller begins in this time then fails the compare for room, with no other check.
/// @code
/// struct events : trace_ring::policies<trace_ring::record::sub_buffers<>> {};
/// inline trace_ring::ring<events> ring;
/// ring.write(1, std::uint64_t{42}, 3.14);  // id, and the record's values
/// @endcode

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/sub_buffer.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/position.hpp>
#include <trace_ring/record/concept.hpp>
#include <trace_ring/ring/policies/frame.hpp>
#include <trace_ring/ring/sub_buffers/lane_writer.hpp>
#include <trace_ring/ring/sub_buffers/reader.hpp>
#include <trace_ring/ring/sub_buffers/reservation.hpp>

namespace trace_ring::inline v1 {

namespace impl {
/// The current sub-buffer of a ring without records. No record fits it, so it is never written to.
inline constinit sub_buffer_header idle_sub_buffer{};
}  // namespace impl

/// Use it as ring<Kind>. Writing: one thread, and its signal handlers while no record is open.
/// Reading: any thread, at any time.
template <list_of_policies Kind>
class sub_buffer_ring : public ring_frame<Kind> {
    using frame = ring_frame<Kind>;

public:
    using clock_policy = typename frame::clock_policy;
    using reservation_type = record_reservation<sub_buffer_ring>;

    static constexpr std::uint32_t sub_buffer_bytes = frame::stride;
    /// The longest payload, in bytes.
    static constexpr std::size_t max_payload =
        max_record_bytes(sub_buffer_bytes) - record_header_bytes;

    /// Passes its arguments to the storage.
    template <class... A>
    requires std::is_constructible_v<typename frame::storage_policy, A...>
    constexpr explicit sub_buffer_ring(A&&... arguments) : frame(std::forward<A>(arguments)...) {
        if constexpr (storage::shared<typename frame::storage_policy>) go_on();
    }
    sub_buffer_ring(const sub_buffer_ring&) = delete;
    sub_buffer_ring& operator=(const sub_buffer_ring&) = delete;

    /// Claims `bytes` for one record, which a reader gets rounded up to a multiple of 8. `id` is
    /// the caller's, 1 to 65535; `flags` are those of record_word. Empty if the gate is closed, a
    /// record is open, there is no room, or `bytes` is more than max_payload.
    [[gnu::always_inline]] reservation_type try_reserve(std::size_t bytes, std::uint16_t id = 1,
                                                        std::uint32_t flags = 0) noexcept {
        if (!frame::is_open()) return {};
        const std::uint32_t length = length_of(bytes);
        // relaxed: only handlers on this thread read the word, and the signal fences order it
        const std::uint32_t limit = limit_.load(relaxed);
        limit_.store(0, relaxed);  // relaxed: as above
        signal_fence(seq_cst);
        sub_buffer_header* sub = sub_;
        place where{commit_word::offset(sub->commit.load(relaxed))};  // relaxed: own word
        bool slowly = where.at + length > limit;
        if (!slowly) [[likely]] {
            const std::uint64_t time = clock_policy::now();
            where.time = static_cast<std::uint32_t>(time);
            slowly = static_cast<std::uint32_t>(time >> 32) != time_high_;
        }
        if (slowly) [[unlikely]] {
            where = reserve_slowly(limit, length);
            if (where.at == 0) return {};
            sub = sub_;
        }
        // The last word may be filled only in part: the rest of it is zero.
        // relaxed: nothing beyond the commit word is read
        if (bytes % 8 != 0) word_at<std::uint64_t>(sub, where.at + length - 8).store(0, relaxed);
        return reservation_type(*this, *sub, where.at, length, where.time,
                                record_word::pack(id, length, flags));
    }

    /// Reserves, fills with the values' bytes one after the other, and commits. False: not
    /// recorded.
    template <class... T>
    [[gnu::always_inline]] bool write(std::uint16_t id, const T&... values) noexcept {
        static_assert((std::is_trivially_copyable_v<T> && ...),
                      "trace_ring: records hold trivially copyable values");
        auto slot = try_reserve((sizeof(T) + ... + 0), id);
        if (!slot) return false;
        std::size_t at = 0;
        ((slot.store(at, &values, sizeof(T)), at += sizeof(T)), ...);
        return slot.commit();
    }
    /// The same for bytes whose number is known only when they are written.
    bool write_bytes(std::uint16_t id, std::span<const std::byte> bytes) noexcept {
        auto slot = try_reserve(bytes.size(), id);
        if (!slot) return false;
        slot.store(0, bytes.data(), bytes.size());
        return slot.commit();
    }
    /// Writes a record of these values, which the record policy lays out (record/concept.hpp).
    template <class... Values>
    requires record::lays_out<typename ring_policies<Kind>::record_policy, Values...>
    bool put(const Values&... values) noexcept {
        return record::put_laid_out<typename ring_policies<Kind>::record_policy>(*this, values...);
    }

    /// Discards a record that was left by longjmp. Only the writer calls it, when it knows that no
    /// record of its is open.
    void abandon() noexcept {
        limit_.store(always_slowly, relaxed);  // relaxed: the writer's own word
    }

    /// The newest sub-buffer; 0 before the first record.
    [[nodiscard]] position produced() const noexcept {
        // order: ring.newest:A pairs with ring.next:A
        return frame::control().claimed.cursor.load(acquire);
    }
    /// How far the ring is filled. Any thread. If the writer has reused the sub-buffer since, it
    /// looks again; a limited number of times, because damaged bytes would never agree.
    [[nodiscard]] notify::progress filled_now() const noexcept {
        for (int looks = 0;; ++looks) {
            const position newest = produced();
            if (newest == no_position) return frame::filled(0, 0);
            if (looks == 64) return frame::filled(0, (newest - 1) * sub_buffer_bytes);
            const auto& sub = sub_buffer(newest);
            // relaxed: numbers that guard no other bytes
            const std::uint64_t first = sub.first_position.load(relaxed);
            const std::uint32_t committed = sub.commit.load(relaxed);  // relaxed: as above
            // order: ring.filled:A pairs with ring.reset:A
            thread_fence(acquire);
            // relaxed: the fence
            if (stamped::from(sub.state.load(relaxed)).pos != newest) continue;
            return frame::filled(first + commit_word::records(committed),
                                 (newest - 1) * sub_buffer_bytes + commit_word::offset(committed));
        }
    }
    /// Records lost, by cause, over the ring's whole life.
    [[nodiscard]] loss_counts lost() const noexcept {
        loss_counts sum = frame::lost_by_writers();
        // relaxed: a total
        sum.add(loss_cause::overwritten, frame::control().overwritten.load(relaxed));
        return sum;
    }

    /// Reads from the oldest record on, and new ones as they come.
    [[nodiscard]] sub_buffer_reader<sub_buffer_ring> reader() const {
        return sub_buffer_reader<sub_buffer_ring>(*this);
    }
    /// Reads from the newest record back.
    [[nodiscard]] backward_sub_buffer_reader<sub_buffer_ring> backward_reader() const {
        return backward_sub_buffer_reader<sub_buffer_ring>(*this);
    }
    /// The reader that makes room; one at a time.
    [[nodiscard]] sub_buffer_consumer<sub_buffer_ring> consumer() {
        return sub_buffer_consumer<sub_buffer_ring>(*this);
    }

private:
    friend reservation_type;

    /// A limit that no record fits and that is not 0: no record is open, and the next one takes the
    /// cold path. Used before the first record, and while a replacement for the clock is in use.
    static constexpr std::uint32_t always_slowly = 1;

    /// A record's length with its header, in bytes. If the payload is too long, so is the length.
    [[nodiscard]] static constexpr std::uint32_t length_of(std::size_t payload) noexcept {
        constexpr std::uint32_t too_long = 2 * sub_buffer_bytes;
        if (payload > max_payload) [[unlikely]]
            return too_long;
        return static_cast<std::uint32_t>(record_header_bytes + (payload + 7) / 8 * 8);
    }

    /// Where a record begins, and its time: small, so that the cold path returns it in one
    /// register.
    struct place {
        std::uint32_t at;  ///< 0: there is no room
        std::uint32_t time = 0;
    };

    /// Commits or discards a record.
    [[gnu::always_inline]] void settle(sub_buffer_header& sub, std::uint32_t at,
                                       std::uint32_t length, std::uint32_t time, std::uint32_t word,
                                       bool publish) noexcept {
        std::uint32_t committed = sub.commit.load(relaxed);  // relaxed: this writer's own word
        if (publish) {
            lane_writer::store_head(reinterpret_cast<std::byte*>(&sub) + at,
                                    time | std::uint64_t{word} << 32);
            lane_writer::commit(sub, committed, length);
            committed += commit_word::one_record + length;
        }
        signal_fence(seq_cst);
        limit_.store(idle_limit_, relaxed);  // relaxed: as in try_reserve
        if constexpr (frame::notify_policy::watches) {
            if (publish) {
                // relaxed: this writer's own words
                const position current = stamped::from(sub.state.load(relaxed)).pos;
                frame::notify_.passed(frame::control().notified,
                                      frame::filled(written_ + commit_word::records(committed),
                                                    (current - 1) * sub_buffer_bytes +
                                                        commit_word::offset(committed)));
            }
        }
    }

    [[nodiscard, gnu::noinline, gnu::cold]] place reserve_slowly(std::uint32_t limit,
                                                                 std::uint32_t length) noexcept {
        if (limit == 0) {  // a record is open: leave the limit at 0
            frame::count(loss_cause::nested);
            if (sub_ != &impl::idle_sub_buffer)
                sub_->nested.fetch_add(1, relaxed);  // relaxed: count
            return {0};
        }
        if (length > max_record_bytes(sub_buffer_bytes)) {
            frame::count(loss_cause::too_long);
            // relaxed: a count
            if (sub_ != &impl::idle_sub_buffer) sub_->too_long.fetch_add(1, relaxed);
            limit_.store(limit, relaxed);  // relaxed: as in try_reserve
            return {0};
        }
        std::uint64_t time = frame::now();
        bool ready = sub_ != &impl::idle_sub_buffer;
        if (ready) {
            const std::uint32_t at =
                commit_word::offset(sub_->commit.load(relaxed));  // relaxed: own
            const bool high_differs = static_cast<std::uint32_t>(time >> 32) != time_high_;
            ready = at + length + (high_differs ? time_record_bytes : 0) <= sub_buffer_bytes;
            if (ready && high_differs) {
                lane_writer::note(*sub_, time);
                time_high_ = static_cast<std::uint32_t>(time >> 32);
            }
        }
        if (!ready && !next(time)) {
            ++refused_;
            limit_.store(limit, relaxed);  // relaxed: as in try_reserve
            return {0};
        }
        const std::uint32_t at = commit_word::offset(sub_->commit.load(relaxed));  // relaxed: own
        return {at, static_cast<std::uint32_t>(time)};
    }

    /// Closes the current sub-buffer and makes the next one current. False: there is no room.
    [[nodiscard]] bool next(std::uint64_t& time) noexcept {
        auto& cursor = frame::control().claimed.cursor;
        const position last = cursor.load(relaxed);  // relaxed: this writer's own word
        const position p = last + 1;
        if (!frame::admits(p)) return false;
        time = frame::now();  // again, because `admits` may have waited
        if (sub_ != &impl::idle_sub_buffer) {
            written_ += commit_word::records(sub_->commit.load(relaxed));  // relaxed: own word
            lane_writer::end(*sub_, last, time);
        }
        auto& sub = sub_buffer(p);
        const position old = stamped::from(sub.state.load(relaxed)).pos;  // relaxed: own word
        // relaxed: the consumer's word, for a count
        if (old != no_position && old > frame::control().consumed.load(relaxed)) {
            auto& overwritten = frame::control().overwritten;
            // relaxed, both: a total that this writer alone changes
            overwritten.store(
                overwritten.load(relaxed) + commit_word::records(sub.commit.load(relaxed)),
                relaxed);
        }
        sub.state.store(state_word(p, sub_buffer_state::reset), relaxed);  // relaxed: fence below
        // order: ring.reset:A pairs with read:C, ring.filled:A
        thread_fence(release);
        lane_writer::begin(
            sub, {p, sub_buffer_magic, 0, written_, time, last, std::exchange(refused_, 0U)});
        sub_ = &sub;
        time_high_ = static_cast<std::uint32_t>(time >> 32);
        idle_limit_ = clock_policy::usable() ? sub_buffer_bytes : always_slowly;
        // order: ring.next:A pairs with ring.newest:A
        cursor.store(p, release);
        return true;
    }

    /// For a writer that attaches to a ring with records: continues after the committed ones.
    void go_on() noexcept {
        const position last = produced();
        if (last == no_position) return;
        auto& sub = sub_buffer(last);
        const auto state = stamped::from(sub.state.load(relaxed));  // relaxed: set-up, alone
        if (state.pos != last) return;
        written_ = sub.first_position.load(relaxed);  // relaxed: as above
        if (state.state == static_cast<unsigned>(sub_buffer_state::active)) {
            sub_ = &sub;
        } else {  // its writer died between closing it and claiming the next one
            written_ += commit_word::records(sub.commit.load(relaxed));  // relaxed: as above
        }
    }

    [[nodiscard]] sub_buffer_header& sub_buffer(position p) const noexcept {
        return *static_cast<sub_buffer_header*>(
            static_cast<void*>(frame::slot_at(frame::index_of(p))));
    }

    // The writer's own. A handler reads `limit_` first, and the others only if no record is open.
    atomic<std::uint32_t> limit_{always_slowly};
    std::uint32_t idle_limit_ = always_slowly;
    std::uint32_t time_high_ = 0;
    std::uint32_t refused_ = 0;  ///< since the newest sub-buffer was begun
    sub_buffer_header* sub_ = &impl::idle_sub_buffer;
    std::uint64_t written_ = 0;  ///< records in the sub-buffers before the current one
};

}  // namespace trace_ring::inline v1
