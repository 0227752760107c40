// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// One recorder's cold path: the lanes of threads, and all that a record needs except appending one
/// more where the last one ended. A record takes it (`open`) if its lane has no room, the clock's
/// high half changed, the thread or the process is new, the event has no id, or a record is open
/// already. It is made of objects, each with its own state:
/// @code
///   claimer           which sub-buffer comes next     lane_book  entries of lanes and processes
///   reclaimer         what the dead hold, and when to look for it
///   lane_sub_buffers  claims and closes them          adoption   released lanes, half empty
///   event_book        event types and their gates     own_process      the process and its forks
///   snapshot_requests snapshots                       clock_schedule   readings of the clocks
/// @endcode
/// No lock, no C++ heap; errno is kept; signal-safe.

#include <time.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <trace_ring/recorder/clock/snapshots.hpp>
#include <trace_ring/recorder/file/rings.hpp>
#include <trace_ring/recorder/file/set_up.hpp>
#include <trace_ring/recorder/lane/adoption.hpp>
#include <trace_ring/recorder/lane/claimer.hpp>
#include <trace_ring/recorder/lane/lane_book.hpp>
#include <trace_ring/recorder/lane/lane_sub_buffers.hpp>
#include <trace_ring/recorder/lane/reclaimer.hpp>
#include <trace_ring/recorder/process/event_types.hpp>
#include <trace_ring/recorder/process/own_process.hpp>
#include <trace_ring/recorder/site/hot_path.hpp>
#include <trace_ring/recorder/site/open_span.hpp>
#include <trace_ring/recorder/snapshot/snapshot_requests.hpp>
#include <trace_ring/recorder/thread/abandoned.hpp>
#include <trace_ring/recorder/thread/threads.hpp>
#include <trace_ring/ring/sub_buffers/lane_writer.hpp>

namespace trace_ring::inline v1::impl {

class cpu_lanes;
class cpu_steps;

class lanes_by_thread : public listed_recorder {
public:
    /// `hot_clock` is the clock that the hot path reads; `words` is where it finds the gates.
    /// Throws setup_error and std::bad_alloc.
    [[gnu::cold]] lanes_by_thread(const recorder_options& options, const clock_functions& hot_clock,
                                  recorder_words& words)
        : listed_recorder(memory_),
          words_(words),
          memory_(
              [&]() -> const recorder_options& {
                  if (index_.value() != 0) return options;
                  fail_setup(options.file.empty() ? "memory" : options.file.c_str(),
                             "a process can have eight recorders, and has them", EMFILE);
              }(),
              hot_clock),
          idle_mark_(memory_.clock() == hot_clock.kind
                         ? idle_mark_for(memory_.plan().sub_buffer_bytes)
                         : 0),
          rings_(memory_.ring(), memory_.plan(), memory_.present()),
          claimer_(memory_, options),
          process_(memory_, book_, claimer_, words, options.fork),
          snapshots_(memory_, options) {
        if (make_id() == 0) fail_setup(memory_.subject(), "cannot map memory", ENOMEM);
        all_types.arrives(&register_types);
        make_thread_key(memory_.subject(), &thread_ends, &forget_in_child);
        process_.enter(events);
        // order: registry.enlist:A pairs with registry.visit:B, registry.visit:D
        the_registry.recorders[index()].store(this, seq_cst);
        // order: registry.enlist:B pairs with type.add:A
        type_node* t = the_registry.types.load(seq_cst);
        // Types added since `enter`. relaxed: each that was pushed publishes those below it, too
        for (; t != nullptr; t = t->next.load(relaxed)) events.add(*t);
        add_clocks(memory_, process());
        clocks_.begin(memory_);
        memory_.own_gates().gates[0].fetch_or(layout::gate_no_event, relaxed);  // relaxed: a gate
        if (options.paused) events.shut(true);
        lead_to(words_, memory_.own_gates());
    }
    lanes_by_thread(const lanes_by_thread&) = delete;
    lanes_by_thread& operator=(const lanes_by_thread&) = delete;
    [[gnu::cold]] ~lanes_by_thread() {
        words_.gates.lead_nowhere();
        words_.library.gates.lead_nowhere();
        // order: registry.retire:A pairs with registry.visit:B
        the_registry.recorders[index()].store(nullptr, seq_cst);
        // Waits for threads that are ending or loading a library; not for ever: one may be stopped.
        // order: registry.retire:B pairs with registry.visit:A, registry.visit:C
        for (int i = 0; the_registry.visitors.load(seq_cst) != 0 && i < 2000; ++i) {
            const timespec pause{0, i < 100 ? 1'000 : 1'000'000};
            ::nanosleep(&pause, nullptr);
        }
        // order: node.leave:A pairs with node.add:A
        thread_node* node = the_registry.nodes.load(acquire);
        // relaxed: each that was pushed publishes those below it, too
        for (; node != nullptr; node = node->next.load(relaxed)) release_lanes(block_of(*node));
        if (process_.is_entered()) {
            if (memory_.clock() != 0) add_clocks(memory_, process());
            memory_.leave_process(process());
        }
    }
    /// Frees the index of a recorder whose constructor was left by a jump: a process has few.
    static void free_index(lanes_by_thread& unfinished) noexcept {
        unfinished.index_.~recorder_index();
    }

    [[nodiscard]] std::uint32_t index() const noexcept { return index_.value(); }
    [[nodiscard]] trace_memory& memory() noexcept { return memory_; }
    [[nodiscard]] const trace_memory& memory() const noexcept { return memory_; }
    [[nodiscard]] std::uint32_t process() const noexcept { return book_.process(); }
    [[nodiscard]] std::uint32_t max_record() const noexcept {
        return static_cast<std::uint32_t>(max_record_bytes(memory_.plan().sub_buffer_bytes));
    }
    /// Sub-buffers held, and claimed so far.
    [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> in_use() const noexcept {
        return rings_.in_use();
    }
    [[gnu::cold]] int write_snapshot(const char* file) noexcept {
        return snapshots_.write(process(), file);
    }

    /// Opens a record of `bytes` (header included) in the first of the calling thread's lanes that
    /// has no record open, and makes room for it. Returns no lane if the gate is shut, or if the
    /// record is lost, which is then counted. `opener` is the mark to leave: the place of the
    /// caller's frame. A record that `ends` a span passes a shut gate. The lane has announced the
    /// high half of the time.
    [[nodiscard]] opened open(event_state& type, std::uint32_t bytes, mark_type opener,
                              bool ends = false) noexcept {
        const std::uint32_t header = register_type(type).header;
        const std::uint32_t gate = gate_of(record_word::id(header));
        const bool is_known = (gate & layout::gate_no_event) == 0;
        if ((gate & ~std::uint32_t{layout::gate_no_event}) != 0 && !ends) return {};
        if (!process_.may_record()) return {};
        const std::uint32_t ring = rings_.number(type.ring);  // 0 if there is no such ring
        std::uint64_t waited = 0;
        lane_block* block = thread_lanes[ring].load(relaxed);  // relaxed: own word
        if (block == &vacant_block) block = enter_thread(ring, &release_all);
        while (block == nullptr && claimer_.wait_for_room(waited))
            block = enter_thread(ring, &release_all);
        if (block == nullptr) {
            count_refused();
            return {};
        }
        lane_state* const lane = choose_lane(*block, opener);
        if (lane == nullptr) return {};
        // From here on the lane is open: a record of a signal handler takes the next deeper lane.
        // relaxed, to the end: words of this thread and its handlers, and counters
        signal_fence(seq_cst);
        const bool has_lane =
            mark_of(*lane).valid.load(relaxed) != 0 || find_lane(*lane, ring, bytes, waited);
        if (has_lane && bytes <= max_record() && is_known) [[likely]]
            return with_room(*lane, bytes, header, waited);
        if (has_lane) refuse(*lane, !is_known);
        mark_of(*lane).value.store(0, relaxed);
        return {};
    }
    /// The same for a record that the hot path has already opened in `lane`, which was idle.
    [[nodiscard, gnu::cold]] opened open_further(event_state& type, std::uint32_t bytes,
                                                 mark_type opener, bool ends,
                                                 lane_state& lane) noexcept {
        // relaxed, to the end: own lane
        note_opened(lane);
        if (mark_of(lane).valid.load(relaxed) == 0 || bytes > max_record()) [[unlikely]] {
            mark_of(lane).value.store(0, relaxed);  // a handler in between has released it
            return open(type, bytes, opener, ends);
        }
        return with_room(lane, bytes, type.header.load(relaxed), 0);
    }
    /// Ends a record that came through `open`.
    void finish(lane_state& lane) noexcept {
        note_opened(lane);
        signal_fence(seq_cst);
        // relaxed, both: own thread and its handlers
        if (mark_of(lane).held_as.load(relaxed) == lane_ownership::lent)
            return close_and_release(lane, true);
        mark_of(lane).value.store(idle_mark_, relaxed);
    }
    /// Marks the open record of `lane`, whose mark is `mark`, as a reservation: the object at
    /// `holder`. An older reservation at that address, whose end was jumped over, is abandoned.
    void hold(lane_state& lane, mark_type mark, const void* holder) noexcept {
        // relaxed, to the end: own lanes
        lane.holder.store(holder, relaxed);
        signal_fence(seq_cst);
        mark_of(lane).value.store(mark | reserved_bit, relaxed);
        for (std::size_t i = 0; i < layout::max_rings * lane_depths; ++i) {
            lane_state& other =
                first_lane(*thread_lanes[i / lane_depths].load(relaxed))[i % lane_depths];
            auto& its_mark = mark_of(other).value;
            if (&other == &lane || its_mark.load(relaxed) <= 0) continue;
            if ((its_mark.load(relaxed) & reserved_bit) == 0) continue;
            if (other.holder.load(relaxed) != holder) continue;
            reclaim_abandoned(other);
            its_mark.store(0, relaxed);
        }
    }
    /// The words of a span_end_record, and a note to readers that the file has one.
    void end_elsewhere(const open_span& span, std::uint64_t (&words)[2]) noexcept {
        words[0] = span.begun;
        words[1] = span.lane;
        memory_.ring().ended_elsewhere.store(1, relaxed);  // relaxed: it stays
    }
    /// Counts records as refused that the caller has lost: in this thread's lane, if it has one.
    [[gnu::cold]] void lose(std::uint32_t count) noexcept {
        lane_state& lane = *impl::first_lane(0, lanes_at(index()));
        // relaxed, to the end: own lane, and counters
        if (mark_of(lane).valid.load(relaxed) == 0) return count_refused(count);
        lane.entry.load(relaxed)->refused.fetch_add(count, relaxed);
        lane.refused.fetch_add(count, relaxed);
    }

    /// Closes and releases the lanes of a block, and offers half-empty ones to other threads.
    /// `but_open`: lanes with an open record are left alone, and none is offered.
    void release_lanes(lane_block& block, bool but_open = false) noexcept {
        for (std::size_t depth = 0; depth < lane_depths; ++depth) {
            lane_state& lane = first_lane(block)[depth];
            lane_mark& mark = mark_of(lane);
            // relaxed, to the end: own lanes, or those of threads that have stopped recording
            if (mark.valid.load(relaxed) == 0) {
                // Of a parent's thread, wiped by fork: the sub-buffer may be unmapped soon.
                lane.sub.store(&nowhere, relaxed);
                if (!but_open) mark.value.store(0, relaxed);
                continue;
            }
            // As if a record were open: a handler's record must not find a lane half closed.
            mark_type found = mark.value.load(relaxed);
            while (!(but_open && found > 0) &&
                   !mark.value.compare_exchange_weak(found, stack_position(), relaxed)) {
            }
            if (but_open && found > 0) continue;
            if (found > 0) reclaim_abandoned(lane);
            signal_fence(seq_cst);
            close_and_release(lane, !but_open);
        }
    }
    /// The same in all recorders of the process.
    static void release_all(thread_node& node) noexcept {
        for_each([&](lanes_by_thread& each) { each.release_lanes(block_of(node)); });
    }

    /// Enters a process in whose name this one records, as long as `life` is held. Returns its
    /// entry; `process_count`: there is no room. O(n) in the processes.
    [[nodiscard, gnu::cold]] std::uint32_t enter_other(const process_identity& who,
                                                       storage::life_lock& life) noexcept {
        const std::uint32_t slot = book_.claim_process();
        if (slot != memory_.plan().process_count) memory_.enter_other(slot, who, life);
        return slot;
    }

    /// Calls `visit(lanes_by_thread&)` for every recorder of the process.
    template <class Visit>
    static void for_each(Visit&& visit) noexcept {
        for_each_recorder(
            [&](listed_recorder& each) { visit(static_cast<lanes_by_thread&>(each)); });
    }

private:
    friend class cpu_lanes;  // the other kind of lanes (recorder/cpu)
    friend class cpu_steps;

    /// Changes the count that says whether a reservation's record is still the one open in the
    /// lane.
    static void note_opened(lane_state& lane) noexcept {
        // relaxed, both: own thread and its handlers
        lane.opened.store(lane.opened.load(relaxed) + 1, relaxed);
        signal_fence(seq_cst);
    }
    [[nodiscard]] lane_state* first_lane(lane_block& block) const noexcept {
        return &block.states[index_.value() * lane_depths];
    }
    [[nodiscard]] std::uint8_t gate_of(std::uint32_t id) const noexcept {
        return words_.library.gates.look(id);
    }
    void count_refused(std::uint32_t count = 1) noexcept {
        memory_.ring().refused_without_lane.fetch_add(count, relaxed);  // relaxed: a counter
    }

    static void thread_ends(void* node) noexcept {
        end_thread(*static_cast<thread_node*>(node), &release_all);
    }
    static std::uint32_t release_gone() noexcept { return release_gone_threads(&release_all); }
    static void forget_in_child() noexcept {
        forget_threads();
        for_each([](lanes_by_thread& each) {
            each.process_.forget_process();
            each.snapshots_.forget_process();
        });
    }

    /// Marks the first lane of the block in which no record is open as the caller's. Null if there
    /// is none, which is counted.
    [[nodiscard]] lane_state* choose_lane(lane_block& block, mark_type opener) noexcept {
        lane_state* const first = first_lane(block);
        // relaxed, to the end: own lanes, and counters
        for (const bool for_want : {false, true}) {
            for (std::size_t depth = 0; depth < lane_depths; ++depth) {
                lane_state& lane = first[depth];
                auto& mark = mark_of(lane).value;
                mark_type found = mark.load(relaxed);
                const bool is_open = found > 0;
                if (is_open && !is_abandoned(lane, found, opener, for_want)) continue;
                // A swap: a handler in between may have used the lane.
                if (!mark.compare_exchange_strong(found, opener, relaxed)) continue;
                note_opened(lane);
                if (is_open) reclaim_abandoned(lane);
                return &lane;
            }
        }
        for (std::size_t depth = lane_depths; depth-- != 0;) {
            lane_state& lane = first[depth];
            if (mark_of(lane).valid.load(relaxed) == 0) continue;
            lane.entry.load(relaxed)->nested.fetch_add(1, relaxed);
            sub_buffer_header* const sub = lane.sub.load(relaxed);
            if (sub != &nowhere) sub->nested.fetch_add(1, relaxed);
            return nullptr;
        }
        count_refused();
        return nullptr;
    }
    /// Adopts a lane, or begins one. If it can do neither, it waits as the full mode says. False:
    /// the record is lost, and counted.
    [[nodiscard, gnu::cold]] bool find_lane(lane_state& lane, std::uint32_t ring,
                                            std::uint32_t bytes, std::uint64_t& waited) noexcept {
        while (!adoption_.adopt(lane, ring, bytes) && !begin_lane(lane, ring)) {
            const bool some_lent = layout::lent_of_lanes(memory_.plan().lane_count) != 0;
            if (claimer_.wait_for_lane(waited, some_lent)) continue;
            count_refused();
            reclaimer_.note_writers(memory_.ring().writers);
            return false;
        }
        return true;
    }
    [[nodiscard, gnu::cold]] bool begin_lane(lane_state& lane, std::uint32_t ring) noexcept {
        const undisturbed scope;
        std::uint32_t slot = 0;
        bool few_left = false;
        layout::lane_entry* const entry = reclaimer_.claim_entry(slot, few_left);
        if (entry == nullptr) return false;
        book_.begin_lane(lane, *entry, slot, ring);
        signal_fence(seq_cst);
        const bool lent = few_left || is_ending(lane);
        mark_of(lane).hold_as(lent ? lane_ownership::lent : lane_ownership::own);
        mark_of(lane).valid.store(1, relaxed);  // relaxed: own lane
        return true;
    }

    /// The open lane; no lane if there is no room.
    [[nodiscard]] opened with_room(lane_state& lane, std::uint32_t bytes, std::uint32_t header,
                                   std::uint64_t waited) noexcept {
        std::uint32_t time = 0;
        if (make_room(lane, bytes, time, waited)) [[likely]]
            return {&lane, time, header};
        // Not idle: the next record must take the cold path. relaxed: own lane
        mark_of(lane).value.store(0, relaxed);
        return {};
    }
    /// Makes room for `bytes` more in the lane, and sets `time` to the record's time, whose high
    /// half the lane has announced. `waited` is as in claimer::wait_for_room.
    [[nodiscard, gnu::always_inline]] bool make_room(lane_state& lane, std::uint32_t bytes,
                                                     std::uint32_t& time,
                                                     std::uint64_t& waited) noexcept {
        // relaxed, to the end: the lane and its sub-buffer are this thread's own
        sub_buffer_header* sub = lane.sub.load(relaxed);
        const std::uint32_t ring = lane.entry.load(relaxed)->ring.load(relaxed);
        // A lane that was refused a sub-buffer tries again: another thread may have released one.
        if (sub == &nowhere && lane.refused.load(relaxed) != 0 &&
            adoption_.adopt(lane, ring, bytes)) {
            sub = lane.sub.load(relaxed);
        }
        const std::uint32_t end = commit_word::offset(sub->commit.load(relaxed));
        if (sub != &nowhere && end + bytes + time_record_bytes <= memory_.plan().sub_buffer_bytes) {
            time = stamp(lane);
            return true;
        }
        // The lane closes one sub-buffer and claims another: the count of held ones stays.
        bool holds = sub != &nowhere;
        const ring_span& of = rings_[ring];
        // The cursor's cache line moves from claimer to claimer: ask for it early.
        const lane_mark& mark = mark_of(lane);
        if (mark.run_next.load(relaxed) == mark.run_end.load(relaxed)) prefetch_to_store(of.cursor);
        std::uint64_t now = memory_.now();
        sub_buffers_.close(lane, of, now);
        if (mark.held_as.load(relaxed) == lane_ownership::adopted) [[unlikely]] {
            book_.release_lane(lane, now);  // adoption.hpp says why
            if (!begin_lane(lane, ring)) {
                if (holds) holdings::drop(of);
                holds = false;
                if (!find_lane(lane, ring, bytes, waited)) return false;
                if (lane.sub.load(relaxed) != &nowhere) {  // adopted again
                    time = stamp(lane);
                    return true;
                }
            }
            now = memory_.now();  // later than the lane before
        }
        sub = sub_buffers_.claim(lane, of, now, holds, waited);
        const bool lent = mark.held_as.load(relaxed) == lane_ownership::lent;
        if (sub == nullptr) {
            lane.entry.load(relaxed)->refused.fetch_add(1, relaxed);
            lane.refused.fetch_add(1, relaxed);  // reported in the next sub-buffer
            if (lent) book_.release_lane(lane, now);
            return false;
        }
        do_due_work(now);
        lane.sub.store(sub, relaxed);
        if (lent && layout::is_adopted(*lane.entry.load(relaxed))) adoption_.write_owner(lane, now);
        time = static_cast<std::uint32_t>(now);
        return true;
    }
    /// The low half of the record's time, in a lane that has room. Announces the high half if it
    /// has changed.
    [[nodiscard, gnu::always_inline]] std::uint32_t stamp(lane_state& lane) noexcept {
        const std::uint64_t now = memory_.now();
        const auto high = static_cast<std::uint32_t>(now >> 32);
        // relaxed, to the end: own lane
        if (high != lane.high.load(relaxed)) {
            lane_writer::note(*lane.sub.load(relaxed), now);
            lane.high.store(high, relaxed);
        }
        return static_cast<std::uint32_t>(now);
    }
    /// Work that is due from time to time, done after a sub-buffer was claimed at `now`.
    void do_due_work(std::uint64_t now) noexcept {
        clocks_.read_if_due(memory_, process(), now);
        snapshots_.serve(process());
    }

    /// Counts a record that no lane can take, in the lane where it would have been. `no_id`: its
    /// type has no id, or no room in the dictionary; otherwise the record is too long.
    [[gnu::cold]] static void refuse(lane_state& lane, bool no_id) noexcept {
        // relaxed, to the end: counters
        layout::lane_entry& entry = *lane.entry.load(relaxed);
        sub_buffer_header* const sub = lane.sub.load(relaxed);
        if (no_id) {
            entry.refused.fetch_add(1, relaxed);
            lane.refused.fetch_add(1, relaxed);
        } else {
            entry.too_long.fetch_add(1, relaxed);
            if (sub != &nowhere) sub->too_long.fetch_add(1, relaxed);
        }
    }
    /// Closes the sub-buffer of a lane that handlers still see as open, and releases the lane.
    /// `offers`: another thread may adopt it.
    [[gnu::cold]] void close_and_release(lane_state& lane, bool offers) noexcept {
        // relaxed, to the end: own lane, or its thread has stopped recording
        const layout::lane_entry& entry = *lane.entry.load(relaxed);
        const std::uint32_t number = entry.number.load(relaxed);
        offers = offers && adoption_.has_room(*lane.sub.load(relaxed));
        const std::uint64_t now = memory_.now();
        if (lane.sub.load(relaxed) != &nowhere) {
            const ring_span& of = rings_[entry.ring.load(relaxed)];
            sub_buffers_.close(lane, of, now);
            holdings::drop(of);
        }
        book_.release_lane(lane, now);
        if (offers) adoption_.offer(entry, number);
        mark_of(lane).value.store(0, relaxed);
    }
    /// Reclaims what a jump left in a lane with an open record, wherever the writer was. The record
    /// was never committed, or its writer did not see that it was.
    void reclaim_abandoned(lane_state& lane) noexcept {
        // relaxed, to the end: own lane, and a counter
        if (mark_of(lane).valid.load(relaxed) == 0) return;
        layout::lane_entry& entry = *lane.entry.load(relaxed);
        entry.abandoned.fetch_add(1, relaxed);
        const sub_buffer_header* const sub = lane.sub.load(relaxed);
        const position at = lane.where.load(relaxed);
        const std::uint64_t active = state_word(at, sub_buffer_state::active);
        if (sub != &nowhere && sub->state.load(relaxed) == active) return;  // not on the cold path
        lane.sub.store(&nowhere, relaxed);
        if (book_.reclaim(entry) == sub_buffer_state::closed) {
            lane.where.store(entry.newest.load(relaxed), relaxed);
        } else {
            entry.newest.store(at, relaxed);
            book_.count_is_lost();  // it may have been counted already
        }
    }

    recorder_index index_{};  // first, so that it is freed last
    const registry* home_ = &the_registry;
    recorder_words& words_;
    trace_memory memory_;
    mark_type idle_mark_;  ///< of a lane without an open record; 0: each comes through `open`
    rings rings_;
    claimer claimer_;
    lane_book book_{memory_, rings_};
    reclaimer reclaimer_{memory_, rings_, book_, claimer_, &release_gone};
    adoption adoption_{memory_, rings_, book_, reclaimer_};
    lane_sub_buffers sub_buffers_{memory_, claimer_, reclaimer_};
    own_process process_;
    snapshot_requests snapshots_;
    clock_schedule clocks_{};
};

}  // namespace trace_ring::inline v1::impl
