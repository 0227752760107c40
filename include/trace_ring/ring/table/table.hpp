// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A ring of records of one size: its writing side. Its reading side is in slots.hpp and
/// reader.hpp; ring.hpp has an example.

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <trace_ring/atomic.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/policy/claim/claim.hpp>
#include <trace_ring/position.hpp>
#include <trace_ring/ring/policies/frame.hpp>
#include <trace_ring/ring/policies/slots.hpp>
#include <trace_ring/ring/table/reader.hpp>
#include <trace_ring/ring/table/reservation.hpp>

namespace trace_ring::inline v1 {

/// Use it as ring<Kind>. Writing: any threads and signal handlers if the claim has many writers,
/// else one thread (single_writer.hpp). Reading: any thread, at any time.
template <list_of_policies Kind>
class table_ring : public ring_frame<Kind> {
    using frame = ring_frame<Kind>;

public:
    using layout = typename frame::layout;
    using element = typename layout::element;
    using claim_policy = typename frame::claim_policy;
    using reservation_type = reservation<table_ring>;

    static constexpr bool sequenced = layout::kind == record::layout::sequenced;
    /// A reservation is the slot itself, not a separate object.
    static constexpr bool in_place = !sequenced;

    /// Passes its arguments to the storage.
    template <class... A>
    requires std::is_constructible_v<typename frame::storage_policy, A...>
    constexpr explicit table_ring(A&&... arguments) : frame(std::forward<A>(arguments)...) {
        static_assert(alignof(element) <= storage::alignment);  // record/concept.hpp refuses others
        if constexpr (claim::prepares<claim_policy>) {
            if (frame::storage().fresh()) {
                access table{*this};
                claim_policy::prepare(frame::control().claimed, table);
            }
        }
    }

    /// Claims a slot for one record. Empty if the gate is closed or there is no room.
    [[gnu::always_inline]] reservation_type try_reserve() noexcept {
        if (!frame::is_open()) return {};
        access table{*this};
        const claim::ticket taken = claim_policy::take(frame::control().claimed, table);
        if (!taken) [[unlikely]]
            return {};
        return reservation_type(*this, taken);
    }

    /// Reserves, fills and commits one record `element{args...}`. False: it was not recorded.
    template <class... A>
    [[gnu::always_inline]] bool write(A&&... args) noexcept {
        auto slot = try_reserve();
        if (!slot) return false;
        if constexpr (in_place) {
            // By words, unlike a user's stores in place, because a reader may be copying the slot.
            table_slots::store(frame::slot_at(slot.taken_.index),
                               element{std::forward<A>(args)...});
        } else {
            *slot = element{std::forward<A>(args)...};
        }
        return slot.commit();
    }

    /// The newest position claimed or, with one writer, committed.
    [[nodiscard]] position produced() const noexcept requires(claim_policy::counts) {
        // order: ring.produced:A pairs with ring.advance:A
        return frame::control().claimed.cursor.load(acquire);
    }
    /// Records lost, by cause, over the ring's whole life. `overwritten` counts positions, vacant
    /// ones among them.
    [[nodiscard]] loss_counts lost() const noexcept {
        loss_counts sum = frame::lost_by_writers();
        if constexpr (claim_policy::counts && frame::full_policy::overwrites) {
            // relaxed: unchanged since the first record
            const std::uint64_t count = produced() - frame::control().origin.load(relaxed);
            const std::uint64_t kept = frame::lap();
            if (count > kept) sum.add(loss_cause::overwritten, count - kept);
        }
        return sum;
    }
    /// Positions without a record: it was discarded, or an older writer still held the slot.
    /// Positions produced = records committed + vacant ones + open ones.
    [[nodiscard]] std::uint64_t vacant() const noexcept {
        return frame::control().vacant.load(relaxed);  // relaxed: a total
    }

    /// Numbers records from `last` + 1 on, to continue an earlier ring. Only before the first
    /// record; `last` is at most 2^60 for sequenced records.
    void begin_after(position last) noexcept
        requires(claim_policy::counts && !frame::full_policy::grows) {
        auto& c = frame::control();
        c.origin.store(last, relaxed);           // relaxed: the ring is not shared yet
        c.claimed.cursor.store(last, relaxed);   // relaxed: as above
        c.claimed.touched.store(last, relaxed);  // relaxed: as above
        c.consumed.store(last, relaxed);         // relaxed: as above
        frame::consumed_seen_ = last;
        if constexpr (notify::begins<typename frame::notify_policy>) {
            frame::notify_.begin(c.notified, frame::filled(last, last * frame::stride));
        }
    }

    /// The slot used last, for a claim that counts no positions but knows its newest slot.
    [[nodiscard]] const std::byte* newest() noexcept
        requires(requires(const claim::line& l, claim::table_archetype& t) {
            claim_policy::newest(l, t);
        }) {
        access table{*this};
        return frame::slot_at(claim_policy::newest(frame::control().claimed, table));
    }

    /// Reads from the oldest record on, and new ones as they come.
    [[nodiscard]] table_reader<table_ring> reader() const noexcept {
        return table_reader<table_ring>(*this);
    }
    /// Reads from the newest record back.
    [[nodiscard]] backward_table_reader<table_ring> backward_reader() const noexcept {
        return backward_table_reader<table_ring>(*this);
    }
    /// The reader that makes room; one at a time. It informs writers once per `at_a_time` records.
    [[nodiscard]] table_consumer<table_ring> consumer(std::uint64_t at_a_time = 1) noexcept {
        return table_consumer<table_ring>(*this, at_a_time);
    }

    /// The slot of a position. Positions begin at 1.
    [[nodiscard, gnu::always_inline]] std::uint64_t index_of(position p) const noexcept {
        const std::uint64_t in_order = frame::index_of(p);
        if constexpr (sequenced && claim_policy::many_writers && !frame::full_policy::grows) {
            return table_slots::apart<frame::stride>(in_order, frame::capacity());
        } else {
            return in_order;  // as in the historic tables, or because more slots may follow
        }
    }

    /// For readers: copies the record at position `p`.
    [[nodiscard]] table_slots::found copy(position p, element& value) const noexcept {
        if (!frame::has_slot(p)) return table_slots::found::pending;
        const std::byte* slot = frame::slot_at(index_of(p));
        if constexpr (sequenced) {
            return table_slots::read_sequenced(slot, p, value);
        } else {
            const auto& line = frame::control().claimed;
            // order: ring.look:A pairs with ring.advance:A
            const position claimed = line.cursor.load(acquire);
            if (claimed < p) return table_slots::found::pending;
            if (claimed - p >= frame::lap()) return table_slots::found::newer;
            table_slots::load(value, slot);
            // order: ring.look:B pairs with ring.touch:A
            thread_fence(acquire);
            // relaxed: ordered by the fence
            const position last =
                (claim_policy::many_writers ? line.cursor : line.touched).load(relaxed);
            return last - p < frame::lap() ? table_slots::found::record
                                           : table_slots::found::overrun;
        }
    }

private:
    friend reservation_type;

    /// The table as a claim sees it: see policy/claim/claim.hpp.
    struct access {
        table_ring& ring;

        [[nodiscard]] std::uint64_t capacity() const noexcept { return ring.capacity(); }
        [[nodiscard]] std::byte* base() const noexcept { return ring.slot_at(0); }
        [[nodiscard]] static std::uint32_t stride() noexcept { return frame::stride; }
        [[nodiscard, gnu::always_inline]] std::uint64_t index_of(position p) const noexcept {
            return ring.index_of(p);
        }
        [[nodiscard, gnu::always_inline]] bool admits(position p) noexcept {
            return ring.admits(p);
        }
        [[nodiscard, gnu::always_inline]] bool hold(position p) noexcept { return ring.hold(p); }
        void count(loss_cause cause) noexcept { ring.count(cause); }
    };

    [[nodiscard, gnu::always_inline]] bool hold(position p) noexcept {
        frame::ask_ahead(p);
        if constexpr (sequenced && claim_policy::many_writers) {
            if (table_slots::sequence(frame::slot_at(index_of(p))).hold(p)) [[likely]]
                return true;
            frame::count_vacant();
            tell(p);  // a reader may wait for this position
            return false;
        } else if constexpr (sequenced) {
            table_slots::sequence(frame::slot_at(index_of(p))).hold_alone(p);
        } else {
            if constexpr (!claim_policy::many_writers) {
                // relaxed: the fence orders it
                frame::control().claimed.touched.store(p, relaxed);
            }
            // order: ring.touch:A pairs with ring.look:B
            thread_fence(release);
        }
        return true;
    }

    /// Commits or discards. `staged` is the record, if that is not the slot itself.
    template <class Staged>
    [[gnu::always_inline]] bool settle(const claim::ticket& taken, const Staged& staged,
                                       bool publish) noexcept {
        auto& line = frame::control().claimed;
        std::byte* const slot = frame::slot_at(taken.index);
        bool published = publish;
        if constexpr (sequenced) {
            table_slots::sequence sequence(slot);
            if (publish) table_slots::store(slot + sizeof(std::uint64_t), staged);
            if constexpr (claim_policy::many_writers) {
                published = sequence.settle(taken.pos, publish);
            } else {
                sequence.settle_alone(taken.pos, publish);
            }
        } else if constexpr (claim_policy::many_writers) {
            // The user has changed the slot, and it has no mark to say discarded: zeros say it.
            if (!publish) erase(slot);
        }
        if (published) [[likely]] {
            claim_policy::commit(line, taken);
        } else {
            // With one writer the cursor has not moved: the next record takes the position.
            if constexpr (claim_policy::many_writers) frame::count_vacant();
            claim_policy::discard(line, taken);
        }
        if (published || claim_policy::many_writers) tell(taken.pos);
        return published;
    }
    /// Informs the notifier that position `p` is committed or vacant.
    [[gnu::always_inline]] void tell([[maybe_unused]] position p) noexcept {
        if constexpr (frame::notify_policy::watches && claim_policy::counts) {
            frame::notify_.passed(frame::control().notified, frame::filled(p, p * frame::stride));
        }
    }
    static void erase(std::byte* slot) noexcept {
        struct zeros {
            std::byte bytes[sizeof(element)];
        };
        table_slots::store(slot, zeros{});
    }
};

}  // namespace trace_ring::inline v1
