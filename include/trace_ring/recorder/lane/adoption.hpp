// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Threads adopt released lanes whose sub-buffer is half empty. A program whose threads live for a
/// few records each would otherwise fill its ring with sub-buffers of a few records each. So a
/// thread that ends closes its sub-buffer, releases its lane and offers it. The next thread to
/// record adopts the lane and writes into the same sub-buffer, after a record that names the new
/// writer (owner_record).
///
/// Why a thread adopts the lane, instead of beginning one in the same sub-buffer: all rules for
/// lanes keep holding. A lane is a chain of sub-buffers, each of one lane; its records are counted
/// through; time does not go back, since the second thread began after the first had ended. And a
/// thousand short threads need one entry in the lane table, not a thousand.
///
/// Why the sub-buffer is closed, instead of left open for the next thread: nobody
/// holds it in the meantime. If no thread comes, it is overwritten in its turn; a session can read
/// it; a program that dies leaves nothing behind. One comparison shows that it is unchanged: its
/// state includes its position.
/// @code
///   thread that ends                           next thread to record
///   close: written, (p, closed)
///   entry: departed          --release->       entry: departed -> live      --swap, acquire->
///   offer: entry, number                       (p, closed) -> (p, active)   --swap, acquire->
///                                              owner record, records ...
/// @endcode
/// Offers are advice, in the memory of one process: a thread that takes one checks that the entry
/// is still that lane's and that the sub-buffer is unchanged, and otherwise begins a new lane.
///
/// A thread that has filled the sub-buffer it adopted continues in a new lane, so that its
/// losses and totals are counted under its own name.
///
/// If few sub-buffers or lanes are left, a thread releases its lane after each record: the lane is
/// lent (`lane_ownership::lent`). So any number of threads can record, each in the lane that
/// another has just released. A thread that has run its destructors does so, too, because nothing
/// reports when it is gone.

#include <cstddef>
#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/bounds.hpp>
#include <trace_ring/format/layout.hpp>
#include <trace_ring/format/sub_buffer.hpp>
#include <trace_ring/recorder/file/rings.hpp>
#include <trace_ring/recorder/file/trace_memory.hpp>
#include <trace_ring/recorder/lane/holdings.hpp>
#include <trace_ring/recorder/lane/lane_book.hpp>
#include <trace_ring/recorder/lane/reclaimer.hpp>
#include <trace_ring/recorder/site/lane.hpp>
#include <trace_ring/recorder/site/registry.hpp>
#include <trace_ring/ring/sub_buffers/lane_writer.hpp>

namespace trace_ring::inline v1::impl {

/// Any thread, signal-safe; constant time.
class adoption {
public:
    adoption(const trace_memory& memory, const rings& all, const lane_book& book,
             reclaimer& holding) noexcept
        : memory_(memory), rings_(all), book_(book), reclaimer_(holding) {}

    /// Whether a sub-buffer is worth adopting: it has room for a record of 64 bytes of any thread,
    /// and an eighth of its size.
    [[nodiscard]] bool has_room(const sub_buffer_header& sub) const noexcept {
        const std::uint32_t end = commit_word::offset(sub.commit.load(relaxed));  // relaxed: own
        const std::uint32_t size = memory_.plan().sub_buffer_bytes;
        constexpr auto smallest = static_cast<std::uint32_t>(named_owner_record_bytes) + 80;
        return end + greatest(size / 8, smallest) <= size;  // `nowhere` is full
    }
    /// Offers a lane that was just released. If there is no place, an older offer is withdrawn.
    void offer(const layout::lane_entry& entry, std::uint32_t number) noexcept {
        const auto slot = static_cast<std::uint64_t>(&entry - &memory_.lane(0));
        const std::uint64_t word = std::uint64_t{number} << 32 | slot;
        // relaxed, to the end: advice; the thread that adopts checks it
        auto& places = offers_[rings_.number(entry.ring.load(relaxed))];
        for (auto& place : places) {
            std::uint64_t none = 0;
            if (place.load(relaxed) == 0 && place.compare_exchange_strong(none, word, relaxed))
                return;
        }
        places[number % offer_count].store(word, relaxed);
    }
    /// Adopts a lane that has room for a record of `bytes`, in place of the one that `lane` has, if
    /// any. False: there is none.
    [[nodiscard, gnu::cold]] bool adopt(lane_state& lane, std::uint32_t ring,
                                        std::uint32_t bytes) noexcept {
        for (auto& place : offers_[rings_.number(ring)]) {
            std::uint64_t word = place.load(relaxed);  // relaxed: advice
            if (word == 0 || !place.compare_exchange_strong(word, 0, relaxed)) continue;
            layout::lane_entry& entry = memory_.lane(static_cast<std::uint32_t>(word));
            switch (try_adopt(lane, entry, static_cast<std::uint32_t>(word >> 32), bytes)) {
                case outcome::adopted:
                    memory_.await_tick();
                    // No owner record if this thread was the last writer. relaxed, both: own words
                    if (entry.writer.load(relaxed) !=
                        layout::writer_word(node_around(lane).thread.load(relaxed),
                                            depth_of(lane))) {
                        write_owner(lane, memory_.now());
                    }
                    return true;
                case outcome::for_another: {
                    std::uint64_t none = 0;  // relaxed: advice
                    static_cast<void>(place.compare_exchange_strong(none, word, relaxed));
                    break;
                }
                default:
                    break;
            }
        }
        return false;
    }
    /// Writes an owner record, for which there is room: the lane's records are now this thread's.
    [[gnu::cold]] void write_owner(lane_state& lane, std::uint64_t now) const noexcept {
        // relaxed, to the end: own lane and thread
        layout::lane_entry& entry = *lane.entry.load(relaxed);
        const thread_node& node = node_around(lane);
        const std::uint32_t depth = depth_of(lane);
        const std::uint32_t thread = node.thread.load(relaxed);
        owner_record owner{thread, static_cast<std::uint16_t>(book_.process_of(lane)),
                           static_cast<std::uint16_t>(depth)};
        for (std::size_t i = 0; i < 2; ++i) {
            owner.name[i] = node.name[i].load(relaxed);
            owner.named = owner.named || owner.name[i] != entry.name[i].load(relaxed);
        }
        const std::uint64_t words[] = {owner.word(), owner.name[0], owner.name[1]};
        lane_writer::note(*lane.sub.load(relaxed), now, words, owner.named ? 3 : 1);
        lane.high.store(static_cast<std::uint32_t>(now >> 32), relaxed);
        entry.writer.store(layout::writer_word(thread, depth), relaxed);
        entry.adopted.store(entry.adopted.load(relaxed) + 1, relaxed);
    }

private:
    static constexpr std::uint32_t offer_count = 16;
    enum class outcome { adopted, for_another, gone };

    [[nodiscard]] outcome try_adopt(lane_state& lane, layout::lane_entry& entry,
                                    std::uint32_t number, std::uint32_t bytes) noexcept {
        constexpr auto departed = static_cast<std::uint32_t>(layout::presence::departed);
        constexpr auto live = static_cast<std::uint32_t>(layout::presence::live);
        const auto is_it = [&] {
            // relaxed, both: checked before the entry is adopted, and again after
            return entry.number.load(relaxed) == number &&
                   entry.process.load(relaxed) == book_.process_of(lane);
        };
        if (!is_it()) return outcome::gone;
        // relaxed, to the swaps: they decide
        const position at = entry.newest.load(relaxed);
        const ring_span& of = rings_[entry.ring.load(relaxed)];
        if (at == no_position || !of.has(of.slot_at(at))) return outcome::gone;
        // Without times, readers order a thread's records by its sub-buffers.
        if (memory_.clock() == 0 && at < lane.where.load(relaxed)) return outcome::for_another;
        sub_buffer_header& sub = memory_.sub_buffer(of.slot_at(at));
        // A record for another process may be older than the lane's last record.
        const bool is_other = node_around(lane).other_process.load(relaxed) != 0;
        if (is_other && memory_.now() < sub.end_time.load(relaxed)) return outcome::for_another;
        std::uint64_t closed = state_word(at, sub_buffer_state::closed);
        if (sub.state.load(relaxed) != closed) return outcome::gone;  // relaxed: as above
        const std::uint32_t end =
            commit_word::offset(sub.commit.load(relaxed));  // relaxed: as above
        if (!can_be_adopted(memory_.plan().sub_buffer_bytes, end, bytes))
            return outcome::for_another;
        std::uint32_t state = departed;
        // order: lane.adopt:A pairs with lane.release:A
        if (!entry.state.compare_exchange_strong(state, live, acquire)) return outcome::gone;
        // Counted only now: holdings::recount derives from the live lanes how many claims can be
        // under way.
        bool crowded = false;
        const bool is_its = is_it();
        if (!is_its || !reclaimer_.hold(of, crowded)) {
            // order: lane.release:B pairs with lane.claim:A, lane.claim:B, table.read:B,
            // snapshot.copy:B, lane.claim:C, lane.claim:D
            entry.state.store(departed, release);
            return is_its ? outcome::for_another : outcome::gone;
        }
        // From here on the lane leads to what it may hold if the thread jumps away.
        // relaxed, to the end: own lane, its sub-buffer, and counters
        const bool had_one = mark_of(lane).valid.load(relaxed) != 0;
        layout::lane_entry* const before = lane.entry.load(relaxed);
        const position where = lane.where.load(relaxed);
        lane.sub.store(&nowhere, relaxed);
        lane.entry.store(&entry, relaxed);
        lane.where.store(at, relaxed);
        signal_fence(seq_cst);
        mark_of(lane).valid.store(1, relaxed);
        signal_fence(seq_cst);
        of.adopted->fetch_add(1, relaxed);  // before the swap, which publishes it
        // order: adopt:A pairs with writer.end:A, held.look:A
        if (!sub.state.compare_exchange_strong(closed, state_word(at, sub_buffer_state::active),
                                               acq_rel)) {
            holdings::drop(of);
            mark_of(lane).valid.store(had_one ? 1 : 0, relaxed);
            lane.entry.store(before, relaxed);
            lane.where.store(where, relaxed);
            signal_fence(seq_cst);
            // order: lane.release:C pairs with lane.claim:A, lane.claim:B, table.read:B,
            // snapshot.copy:B, lane.claim:C, lane.claim:D
            entry.state.store(departed, release);
            return outcome::gone;
        }
        if (had_one) {
            before->ended.store(memory_.now(), relaxed);
            // order: lane.release:D pairs with lane.claim:A, lane.claim:B, table.read:B,
            // snapshot.copy:B, lane.claim:C, lane.claim:D
            before->state.store(departed, release);
        }
        layout::index_entry& index = memory_.index(memory_.slot_number(sub));
        lane.index.store(&index, relaxed);
        lane.sub.store(&sub, relaxed);
        const bool lent = crowded || reclaimer_.few_entries() || is_ending(lane);
        mark_of(lane).hold_as(lent ? lane_ownership::lent : lane_ownership::adopted);
        const auto slot = static_cast<std::uint32_t>(&entry - &memory_.lane(0));
        lane.totals.store(memory_.totals(slot), relaxed);
        lane.totals_count.store(memory_.plan().totals_per_lane, relaxed);
        lane.refused.store(0, relaxed);
        lane.high.store(entry.high.load(relaxed), relaxed);
        sub.end_time.store(0, relaxed);
        index.last_time.store(0, relaxed);
        entry.ended.store(0, relaxed);
        return outcome::adopted;
    }

    const trace_memory& memory_;
    const rings& rings_;
    const lane_book& book_;
    reclaimer& reclaimer_;
    /// By ring: released lanes, each as lane number << 32 | index of its entry.
    atomic<std::uint64_t> offers_[layout::max_rings][offer_count]{};
};

}  // namespace trace_ring::inline v1::impl
