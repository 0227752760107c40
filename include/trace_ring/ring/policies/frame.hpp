// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The common base of all rings: the storage with its control, room, growth, loss, the gate, the
/// clock. A position here is the position of a slot: a record of a table, or a sub-buffer.

#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <trace_ring/atomic.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/policy/clock/in_use.hpp>
#include <trace_ring/policy/storage/mapping.hpp>
#include <trace_ring/position.hpp>
#include <trace_ring/ring/policies.hpp>
#include <trace_ring/ring/policies/control.hpp>

namespace trace_ring::inline v1 {

template <list_of_policies Kind>
class ring_frame {
public:
    using layout = typename ring_policies<Kind>::record_policy;
    using claim_policy = typename ring_policies<Kind>::claim_policy;
    using full_policy = typename ring_policies<Kind>::full_policy;
    using notify_policy = typename ring_policies<Kind>::notify_policy;
    using storage_policy = typename ring_policies<Kind>::storage_policy;
    using clock_policy = typename ring_policies<Kind>::clock_policy;
    using gate_policy = typename ring_policies<Kind>::gate_policy;

    /// Bytes from one slot to the next.
    static constexpr std::uint32_t stride = impl::stride_of<layout>();

    ring_frame(const ring_frame&) = delete;
    ring_frame& operator=(const ring_frame&) = delete;

    [[nodiscard]] storage_policy& storage() noexcept { return storage_; }
    [[nodiscard]] gate_policy& gate() noexcept { return gate_; }
    [[nodiscard]] notify_policy& notifier() noexcept { return notify_; }

    /// The ring's own words, which readers use, too.
    [[nodiscard]] ring_control& control() noexcept {
        return *static_cast<ring_control*>(static_cast<void*>(storage_.data()));
    }
    [[nodiscard]] const ring_control& control() const noexcept {
        return const_cast<ring_frame*>(this)->control();
    }

    /// Number of slots: as many as fit in a fixed or a growing storage; in any other a power of
    /// two, so that the hot path has no division.
    [[nodiscard]] std::uint64_t capacity() const noexcept {
        if constexpr (full_policy::grows) {
            return control().extent.load(relaxed) >> 1;  // relaxed: it only grows
        } else if constexpr (fixed_capacity != 0) {
            return fixed_capacity;
        } else {
            return capacity_;
        }
    }

    /// For readers: the distance of two positions in the same slot. While the ring can grow, no
    /// slot is used twice. claim::fetch_add counts a position before it has a slot, so there may be
    /// fewer slots than positions.
    [[nodiscard]] std::uint64_t lap() const noexcept {
        if constexpr (full_policy::grows) {
            // relaxed: one word has both the number of slots and whether it is final
            const std::uint64_t extent = control().extent.load(relaxed);
            return (extent & 1U) != 0 ? extent >> 1 : ~std::uint64_t{0};
        } else {
            return capacity();
        }
    }
    /// The slot of position `p` exists.
    [[nodiscard]] bool has_slot(position p) const noexcept {
        if constexpr (full_policy::grows) {
            const std::uint64_t extent = control().extent.load(relaxed);  // relaxed: as in lap
            return (extent & 1U) != 0 || p <= extent >> 1;
        } else {
            return true;
        }
    }

    /// The time by the ring's clock, or by CLOCK_MONOTONIC where that is not usable.
    [[nodiscard]] static std::uint64_t now() noexcept { return clock::in_use<clock_policy>::now(); }

    /// Restarts recording after full::stop has ended it. Any thread.
    void restart() noexcept {
        control().stopped.store(0, relaxed);  // relaxed: writers may notice late
    }
    /// full::stop has ended recording.
    [[nodiscard]] bool stopped() const noexcept {
        return control().stopped.load(relaxed) != 0;  // relaxed: a report
    }

    /// Discards a record that its writer left by longjmp, or that was open in a process that died.
    /// Only with claim::single_writer; the writer calls it, when it knows that it has none open.
    void abandon() noexcept requires(!claim_policy::many_writers) {
        control().claimed.open.store(0, relaxed);  // relaxed: the writer's own word
    }

    /// The slot of a position. Positions begin at 1.
    [[nodiscard]] std::uint64_t index_of(position p) const noexcept {
        if constexpr (full_policy::grows) {
            // Positions do not wrap while the ring can grow, so the order of slots never changes.
            const std::uint64_t n = capacity();
            return p - 1 < n ? p - 1 : slot_of(p, n);
        } else if constexpr (fixed_capacity != 0) {
            return slot_of(p, fixed_capacity);
        } else {
            return (p - 1) & (capacity_ - 1);
        }
    }
    [[nodiscard]] std::byte* slot_at(std::uint64_t index) const noexcept {
        return const_cast<ring_frame*>(this)->storage_.data() + storage::control_bytes +
               as_size(index * stride);
    }
    /// The ring's progress at this number of records and bytes.
    [[nodiscard, gnu::always_inline]] notify::progress filled(std::uint64_t records,
                                                              std::uint64_t bytes) const noexcept {
        return {records, bytes, capacity() * impl::records_in_slot<layout>(), capacity() * stride};
    }

protected:
    /// Attaches, or sets up. A constant-initialised ring runs no code here: it starts as all zero.
    // Users often write sizes as int: a negative one is too large for any storage.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
    template <class... A>
    requires std::is_constructible_v<storage_policy, A...>
    constexpr explicit ring_frame(A&&... arguments) : storage_(std::forward<A>(arguments)...) {
#pragma GCC diagnostic pop
        if constexpr (!storage::fixed<storage_policy>) {
            set_up();
        } else if (!std::is_constant_evaluated()) {
            describe(fixed_capacity);
        }
        if constexpr (notify::attaches<notify_policy>) {
            if (!std::is_constant_evaluated()) notify_.attach(control().notified);
        }
    }

    static constexpr std::uint64_t fixed_capacity = impl::fixed_slots<storage_policy, layout>();

    /// The gate is open, the process may write, and the ring is not stopped.
    [[nodiscard, gnu::always_inline]] bool is_open() const noexcept {
        if (!gate_.is_open()) return false;
        if constexpr (storage::shared<storage_policy>) {
            if (!writes_) return false;
        }
        if constexpr (full_policy::stops) {
            if (stopped()) [[unlikely]] {
                const_cast<ring_frame*>(this)->count(loss_cause::refused);
                return false;
            }
        }
        return true;
    }

    /// There is room for position `p`. Counts a refusal.
    [[nodiscard, gnu::always_inline]] bool admits(position p) noexcept {
        if constexpr (full_policy::overwrites && !full_policy::grows) {
            return true;
        } else {
            if (fits(p)) [[likely]]
                return true;
            return make_room(p);
        }
    }

    /// Prefetches free slots for a single writer: they lie in its consumer's cache, and otherwise
    /// the writer would wait for each line in turn.
    [[gnu::always_inline]] void ask_ahead(position p) noexcept {
        if constexpr (!claim_policy::many_writers && !full_policy::overwrites &&
                      !full_policy::grows) {
            constexpr std::uint64_t ahead = stride < 512 ? 512 / stride : 1;
            if (within(p + ahead, consumed_seen_, capacity())) {
                prefetch_to_store(slot_at(index_of(p + ahead)));
            }
        }
    }

    [[gnu::noinline, gnu::cold]] void count(loss_cause cause, std::uint64_t n = 1) noexcept {
        auto& c = control();
        auto& word = cause == loss_cause::refused    ? c.refused
                     : cause == loss_cause::too_long ? c.too_long
                                                     : c.nested;
        // Locked, even with one writer, because its handlers count nested records at any moment.
        word.fetch_add(n, relaxed);  // relaxed: a total
    }
    [[gnu::noinline, gnu::cold]] void count_vacant() noexcept {
        control().vacant.fetch_add(1, relaxed);  // relaxed: a total
    }

    [[nodiscard]] loss_counts lost_by_writers() const noexcept {
        const auto& c = control();
        loss_counts lost;
        lost.add(loss_cause::refused, c.refused.load(relaxed));        // relaxed: a total
        lost.add(loss_cause::too_long, c.too_long.load(relaxed));      // relaxed: a total
        lost.add(loss_cause::nested, c.nested.load(relaxed));          // relaxed: a total
        lost.add(loss_cause::abandoned, c.passed_over.load(relaxed));  // relaxed: a total
        return lost;
    }

    gate_policy gate_{};
    notify_policy notify_{};
    std::uint64_t consumed_seen_ = 0;

private:
    [[nodiscard, gnu::always_inline]] bool fits(position p) noexcept {
        std::uint64_t slot_count = 0;
        if constexpr (full_policy::grows) {
            const std::uint64_t extent = control().extent.load(relaxed);  // relaxed: only grows
            slot_count = extent >> 1;
            if ((extent & 1U) == 0) return p <= slot_count;
            if constexpr (full_policy::overwrites) return true;
        } else {
            slot_count = capacity();
        }
        if constexpr (claim_policy::many_writers) {
            // order: ring.admit:A pairs with ring.consume:A
            return within(p, control().consumed.load(acquire), slot_count);
        } else {
            if (within(p, consumed_seen_, slot_count)) [[likely]]
                return true;
            // order: ring.admit_alone:A pairs with ring.consume:A, ring.consume_all:A,
            // ring.drained:A
            consumed_seen_ = control().consumed.load(acquire);
            return within(p, consumed_seen_, slot_count);
        }
    }

    /// Signed: if the writer computed `p` long ago, another writer may have used that position and
    /// it may be consumed by now. The swap that follows fails then.
    [[nodiscard]] static constexpr bool within(position p, position consumed,
                                               std::uint64_t slot_count) noexcept {
        return static_cast<std::int64_t>(p - consumed) <= static_cast<std::int64_t>(slot_count);
    }

    [[nodiscard, gnu::noinline, gnu::cold]] bool make_room(position p) noexcept {
        full::room room(
            [](void* self, std::uint64_t bytes) noexcept {
                return static_cast<ring_frame*>(self)->grow(bytes);
            },
            this);
        for (;; ++room.attempt) {
            switch (full_policy::when_full(room)) {
                case full::answer::retry:
                    break;
                case full::answer::overwrite:
                    finish_growing();
                    return true;
                case full::answer::stop:
                    control().stopped.store(1, relaxed);  // relaxed: others may notice late
                    [[fallthrough]];
                default:  // refuse
                    count(loss_cause::refused);
                    return tell_of_full(p);
            }
            if (fits(p)) return true;
            static_cast<void>(tell_of_full(p));
        }
    }

    bool tell_of_full([[maybe_unused]] position p) noexcept {
        if constexpr (notify::hears_of_full<notify_policy>) {
            constexpr bool counted = layout::kind != record::layout::sub_buffers;
            notify_.full(control().notified, filled(counted ? p - 1 : 0, (p - 1) * stride));
        }
        return false;
    }

    /// Ends growth: from now on positions wrap.
    void finish_growing() noexcept {
        if constexpr (full_policy::grows) {
            control().extent.fetch_or(1, relaxed);  // relaxed: a bound that never changes again
        }
    }
    [[nodiscard]] bool grow([[maybe_unused]] std::uint64_t bytes) noexcept {
        if constexpr (full_policy::grows) {
            auto& word = control().extent;
            std::uint64_t extent = word.load(relaxed);  // relaxed: the swap below decides
            if ((extent & 1U) != 0) return false;
            const std::uint64_t slot_count = extent >> 1;
            const std::uint64_t now = storage::control_bytes + slot_count * stride;
            const std::uint64_t limit = storage_.limit();
            const std::uint64_t wanted = bytes < limit - now ? now + bytes : limit;
            const std::uint64_t more = (wanted - storage::control_bytes) / stride;
            if (more <= slot_count || !storage_.grow(wanted)) {
                // Only if no other writer has grown the ring since. relaxed: as in finish_growing
                if (word.compare_exchange_strong(extent, extent | 1U, relaxed)) return false;
                return extent >> 1 > slot_count;
            }
            while ((extent & 1U) == 0 && extent >> 1 < more) {
                // relaxed: the new bytes are zero, as the system gives them
                if (word.compare_exchange_weak(extent, more << 1, relaxed)) return true;
            }
            return extent >> 1 > slot_count;
        } else {
            return false;
        }
    }

    [[nodiscard]] static constexpr ring_shape shape() noexcept {
        ring_shape s{layout::kind, stride, stride, claim_policy::many_writers, full_policy::grows};
        if constexpr (layout::kind != record::layout::sub_buffers)
            s.record_bytes = sizeof(typename layout::element);
        return s;
    }

    void set_up() {
        if (storage_.fresh()) {
            const std::uint64_t bytes = storage_.size(), own_bytes = storage::control_bytes;
            const std::uint64_t slot_count = bytes < own_bytes ? 0 : (bytes - own_bytes) / stride;
            if (slot_count < impl::fewest_slots<layout>)
                refuse("too small for a ring of these records");
            own();
            capacity_ = full_policy::grows ? slot_count : std::bit_floor(slot_count);
            if (!full_policy::grows &&
                !impl::can_tell<layout, full_policy, notify_policy>(capacity_))
                refuse("too small for the threshold of its notify policy");
            describe(capacity_);
            return;
        }
        if constexpr (storage::shared<storage_policy>) {
            const auto fault = fault_of(control(), storage_.size(), shape());
            if (!fault.empty()) refuse(fault);
            // relaxed: checked just now
            const std::uint64_t extent = control().extent.load(relaxed);
            if constexpr (full_policy::grows) {
                storage_.reach(control().limit.load(relaxed));  // relaxed: as above
            } else if (!std::has_single_bit(extent >> 1)) {
                refuse("a ring with an impossible number of slots");
            }
            own();
            capacity_ = extent >> 1;
            if constexpr (!claim_policy::many_writers) {
                // The lock makes this the only writer, so a record left open is a dead writer's.
                if (writes_) abandon();
            }
        }
    }
    void own() {
        if constexpr (storage::shared<storage_policy>) {
            writes_ = !storage_.reads_only();
            storage_.own(!claim_policy::many_writers);
        }
    }
    [[noreturn]] void refuse(std::string_view fault) const {
        std::string subject = "a ring's storage";
        if constexpr (storage::shared<storage_policy>) subject = storage_.name();
        fail_setup(subject, std::string(fault), EINVAL);
    }

    void describe(std::uint64_t slot_count) noexcept {
        auto& c = control();
        const ring_shape s = shape();
        const clock_snapshot t = clock::in_use<clock_policy>::snapshot();
        const auto rate =
            static_cast<std::uint64_t>(clock::in_use<clock_policy>::ticks_per_second());
        const auto put = [](auto& word, auto value) {
            using number = typename std::remove_reference_t<decltype(word)>::value_type;
            word.store(static_cast<number>(value), relaxed);  // relaxed: the magic publishes it
        };
        put(c.version, ring_version);
        put(c.layout, s.layout);
        put(c.record_bytes, s.record_bytes);
        put(c.stride, s.stride);
        put(c.many_writers, s.many_writers);
        if constexpr (storage::growable<storage_policy>) {
            put(c.limit, storage_.limit());
        } else {
            put(c.limit, storage_.size());
        }
        put(c.extent, slot_count << 1 | (full_policy::grows ? 0U : 1U));
        put(c.clock, clock::in_use<clock_policy>::kind());
        put(c.creator_word, sizeof(void*));
        put(c.ticks, t.ticks);
        put(c.monotonic, t.monotonic);
        put(c.realtime, t.realtime);
        put(c.uncertainty, t.uncertainty);
        put(c.ticks_per_second, rate);
        // order: ring.publish:A pairs with ring.attach:A
        c.magic.store(ring_magic, release);
    }

    std::uint64_t capacity_ = 0;
    bool writes_ = true;
    storage_policy storage_;
};

}  // namespace trace_ring::inline v1
