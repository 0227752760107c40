// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Everything a writer does except appending one more record where the last one ended: the cold
/// path. A record takes it (`open`) when its lane has no room, the clock's high half changed, the
/// thread or the process is new, the event has no id, or a record is open already. It is made of
/// objects with a state of their own:
/// @code
///   claimer    which sub-buffer comes next     holdings    how many are held
///   lane_book  the entries of lanes and processes, and what the dead left
///   event_book the event types, and their gates
/// @endcode
/// What is here is a recorder's threads and their lanes. Sub-buffers are claimed and closed in
/// claim.hpp, lanes released and adopted in hand_on.hpp; threads come and go in threads.hpp,
/// recorders and the children of forks in life.hpp. No lock, no C++ heap; errno is kept;
/// signal-safe.

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <trace_ring/recorder/clock/readings.hpp>
#include <trace_ring/recorder/file/rings.hpp>
#include <trace_ring/recorder/file/set_up.hpp>
#include <trace_ring/recorder/lane/claimer.hpp>
#include <trace_ring/recorder/lane/holdings.hpp>
#include <trace_ring/recorder/lane/lane_book.hpp>
#include <trace_ring/recorder/light/least.hpp>
#include <trace_ring/recorder/light/list_of.hpp>
#include <trace_ring/recorder/process/event_book.hpp>
#include <trace_ring/recorder/site/hot_path.hpp>
#include <trace_ring/recorder/lane/abandoned.hpp>
#include <trace_ring/ring/sub_buffers/lane_writer.hpp>

namespace trace_ring::inline v1::impl {

class cpu_lanes;

class core {
public:
    /// `hot_clock` is the clock that the hot path reads; `words` is where it finds the gates.
    [[gnu::cold]] core(const recorder_options& options, const clock_functions& hot_clock,
                       recorder_words& words);
    [[gnu::cold]] ~core();
    core(const core&) = delete;
    core& operator=(const core&) = delete;
    /// Gives back the index of one whose constructor was left by a jump: a process has few of them.
    static void give_up(core& unfinished) noexcept { unfinished.index_.~recorder_index(); }

    [[nodiscard]] std::uint32_t index() const noexcept { return index_.value(); }
    [[nodiscard]] trace_memory& memory() noexcept { return memory_; }
    [[nodiscard]] const trace_memory& memory() const noexcept { return memory_; }
    [[nodiscard]] std::uint32_t max_record() const noexcept {
        return static_cast<std::uint32_t>(max_record_bytes(memory_.plan().sub_buffer_bytes));
    }
    [[nodiscard]] std::uint32_t process() const noexcept { return book_.process(); }
    [[nodiscard]] event_book& events() noexcept { return events_; }
    [[nodiscard]] const event_book& events() const noexcept { return events_; }
    /// The first word of the recorder's sub-buffers.
    [[nodiscard]] std::uint32_t magic() const noexcept {
        return numbered_magic(memory_.root() + 1);
    }

    using opened = impl::opened;
    /// Opens a record of `bytes` (header included) in the first of the calling thread's lanes that
    /// has no record open, and makes room for it. Returns no lane if the gate is shut, or if the
    /// record is lost, which is then counted. `opener` is the mark to leave: where the caller's
    /// frame is. A record that `ends` a span passes a shut gate. The lane has announced the high
    /// half of the time.
    [[nodiscard]] opened open(event_state& type, std::uint32_t bytes, mark_type opener,
                              bool ends = false) noexcept;
    /// The same for a record that the hot path has already opened in `lane`, which was idle.
    [[nodiscard, gnu::cold]] opened open_further(event_state& type, std::uint32_t bytes,
                                                 mark_type opener, bool ends,
                                                 lane_state& lane) noexcept;

    /// The mark of a lane without an open record: 0 where every record must come through `open`.
    [[nodiscard]] mark_type idle_mark() const noexcept { return idle_mark_; }

    /// Ends a record that came through `open`.
    void finish(lane_state& lane) noexcept {
        // relaxed, to the end: own thread and its handlers
        lane.opened.store(lane.opened.load(relaxed) + 1, relaxed);
        signal_fence(seq_cst);
        const bool retired = mark_of(lane).retired.load(relaxed) != 0;
        if (retired) lane.sub.store(&nowhere, relaxed);
        if (mark_of(lane).held_as.load(relaxed) == tenure::lent && !retired)
            return release_at_once(lane);
        signal_fence(seq_cst);
        mark_of(lane).value.store(retired ? 0 : idle_mark(), relaxed);
    }

    /// The words of a span_end_record, and a note to readers that the file has one.
    void end_elsewhere(const open_span& span, std::uint64_t (&words)[2]) noexcept {
        words[0] = span.begun;
        words[1] = span.lane;
        memory_.ring().ended_elsewhere.store(1, relaxed);  // relaxed: it stays
    }

    /// Sub-buffers held, and claimed so far.
    [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> in_use() const noexcept {
        return shares_.in_use();
    }

    [[gnu::always_inline]] void close_lane(lane_state& lane, const share& of,
                                           std::uint64_t now) noexcept;
    /// Closes and releases the lanes of a block; half-empty ones are offered to other threads.
    /// `but_open`: lanes with an open record are left alone, and none is offered.
    void leave_thread(lane_block& block, bool but_open = false) noexcept;
    /// The space for copying one sub-buffer, for one copier at a time.
    [[nodiscard]] bool begin_copy() noexcept {
        // order: copy.begin:A pairs with copy.end:A
        return copying_.exchange(1, acquire) == 0;
    }
    void end_copy() noexcept {
        // order: copy.end:A pairs with copy.begin:A
        copying_.store(0, release);
    }
    [[nodiscard]] std::span<std::uint64_t> copy_space() noexcept {
        return {copy_space_.data(), copy_space_.size()};
    }

    /// Writes the snapshots that were asked for from outside (control.hpp).
    [[gnu::cold]] void serve_requests() noexcept;

    /// Marks the open record of `lane`, whose mark is `mark`, as a reservation: the object at
    /// `holder`. An older reservation at that address, whose end was jumped over, is given up.
    void hold(lane_state& lane, mark_type mark, const void* holder) noexcept;

    /// Enters a process in whose name this one records, as long as `life` is held. Returns its
    /// slot; that behind the last one: there is no room. O(n) in the processes.
    [[nodiscard, gnu::cold]] std::uint32_t enter_other(const process_identity& who,
                                                       storage::life_lock& life) noexcept;
    /// A node with lanes for a thread of it; null: there is no memory. O(n) in this process's
    /// threads.
    [[nodiscard, gnu::cold]] static thread_node* enter_other_thread(std::uint32_t slot,
                                                                    std::uint32_t thread,
                                                                    const char* name) noexcept;
    [[gnu::cold]] void leave_other_thread(thread_node& node) noexcept;

    static void leave_all(thread_node& node) noexcept;
    static std::uint32_t leave_gone_threads() noexcept;
    /// In a child of a fork: records that its parent's threads had begun belong to nobody.
    void forget_process() noexcept {
        // relaxed, both: the child has one thread
        alive_->store(new_child, relaxed);  // where the kernel did not do it
        copying_.store(0, relaxed);
    }

    /// Counts records as refused that others lost before they could be recorded: in this thread's
    /// lane, if it has one. Signal-safe.
    [[gnu::cold]] void lose(std::uint32_t count) noexcept;

private:
    friend class cpu_lanes;  // the other kind of lanes (recorder/cpu)

    [[nodiscard, gnu::cold]] bool enter_child() noexcept;
    [[nodiscard, gnu::cold]] lane_block* enter_thread(std::uint32_t ring) noexcept;
    [[nodiscard]] lane_state* choose_lane(lane_block& block, mark_type opener) noexcept;
    [[gnu::cold]] void refuse(lane_state& lane, bool no_id) noexcept;
    [[nodiscard, gnu::cold]] layout::lane_entry* take_lane(std::uint32_t& slot,
                                                           bool& few_left) noexcept;
    [[nodiscard, gnu::cold]] bool make_lane(lane_state& lane, std::uint32_t ring) noexcept;
    [[gnu::cold]] void release_at_once(lane_state& lane) noexcept;
    void find_again(lane_state& lane) noexcept;
    /// Whether the lane's thread has run its destructors. What it still records must not hold
    /// anything, because nothing says when it is gone.
    [[nodiscard]] static bool is_ending(const lane_state& lane) noexcept {
        return node_around(lane).ending.load(relaxed) != 0;  // relaxed: own node
    }
    void release_lane(lane_state& lane, std::uint64_t now) noexcept;
    /// Whether the rest is worth adopting: room for a record of 64 bytes of any thread, and an
    /// eighth of the sub-buffer.
    [[nodiscard]] bool has_room(const sub_buffer_header& sub) const noexcept {
        const std::uint32_t end = commit_word::offset(sub.commit.load(relaxed));  // relaxed: own
        const std::uint32_t size = memory_.plan().sub_buffer_bytes;
        constexpr auto smallest = static_cast<std::uint32_t>(named_owner_record_bytes) + 80;
        return end + greatest(size / 8, smallest) <= size;  // `nowhere` is full
    }
    enum class offer_is { taken, good, gone };
    void offer(const layout::lane_entry& entry, std::uint32_t number) noexcept;
    [[nodiscard, gnu::cold]] bool adopt(lane_state& lane, std::uint32_t ring,
                                        std::uint32_t bytes) noexcept;
    [[nodiscard]] offer_is try_adopt(lane_state& lane, layout::lane_entry& entry,
                                     std::uint32_t number, std::uint32_t bytes) noexcept;
    [[gnu::cold]] void write_owner(lane_state& lane, std::uint64_t now) noexcept;
    [[nodiscard, gnu::cold]] setup_fault enter();
    [[nodiscard]] opened with_room(lane_state& lane, std::uint32_t bytes, std::uint32_t header,
                                   std::uint64_t waited) noexcept;
    [[nodiscard, gnu::always_inline]] bool make_room(lane_state& lane, std::uint32_t bytes,
                                                     std::uint32_t& time,
                                                     std::uint64_t& waited) noexcept;
    [[nodiscard, gnu::always_inline]] bool stamp(lane_state& lane, std::uint32_t& time) noexcept;
    [[nodiscard, gnu::cold]] bool find_lane(lane_state& lane, std::uint32_t ring,
                                            std::uint32_t bytes, std::uint64_t& waited) noexcept;
    [[nodiscard, gnu::always_inline]] sub_buffer_header* claim(lane_state& lane, const share& of,
                                                               std::uint64_t& now, bool counted,
                                                               std::uint64_t& waited) noexcept;
    void now_and_then(std::uint64_t now) noexcept;
    [[nodiscard, gnu::always_inline]] sub_buffer_header* take_slot(lane_state& lane,
                                                                   const share& of,
                                                                   sub_buffer_place drawn) noexcept;
    [[nodiscard]] std::uint64_t slot_at(position at) const noexcept {
        return shares_[0].slot_at(at);
    }
    [[nodiscard, gnu::cold]] bool count_held(const share& of, bool& crowded) noexcept;
    [[nodiscard, gnu::cold]] bool wait_to_hold(const share& of, bool& crowded,
                                               std::uint64_t& waited) noexcept;
    [[nodiscard, gnu::cold]] std::uint32_t writers_now() const noexcept;
    [[gnu::cold]] static void note_writers(shared_atomic<std::uint32_t>& most,
                                           std::uint32_t now) noexcept;
    [[nodiscard, gnu::cold]] bool make_way() noexcept;
    [[nodiscard, gnu::cold]] bool is_time_to_look() noexcept;
    [[gnu::cold]] void return_dead_session() noexcept;
    [[gnu::cold]] void look_for_dead() noexcept;
    void recover(lane_state& lane) noexcept;

    /// The process whose records the lane has.
    [[nodiscard]] std::uint32_t process_of(const lane_state& lane) const noexcept {
        const std::uint32_t other = node_around(lane).other_process.load(relaxed);  // own node
        return other != 0 ? other - 1 : process();
    }
    [[nodiscard]] lane_state* first_lane(lane_block& block) const noexcept {
        return &block.states[index_.value() * lane_depths];
    }

    /// Lets the hot path look at `page`: that of a program only if its registry is this one.
    void lead_to(const gate_page& page) noexcept {
        const bool own = is_of_program(&the_registry);
        words_.gates.lead_to(own ? page : gates_that_are<layout::gate_no_event>());
        words_.library.gates.lead_to(page);
    }
    [[nodiscard]] std::uint8_t gate_of(std::uint32_t id) const noexcept {
        return words_.library.gates.look(id);
    }

    recorder_index index_{};  // first, so that it is given back last
    const registry* home_ = &the_registry;
    recorder_words& words_;
    trace_memory memory_;
    event_book events_{memory_};
    rings shares_;
    lane_book book_{memory_, shares_};
    claimer claimer_;
    holdings holdings_{memory_};
    on_fork fork_;
    mark_type idle_mark_;
    atomic<std::uint32_t> failed_claims_{0};
    atomic<std::uint32_t> passed_readings_{0};
    atomic<std::uint32_t> crowded_claims_{0};
    atomic<std::uint32_t> few_lanes_{0};  // 1: few were left when an entry was taken last
    clock_schedule clocks_{};
    atomic<std::uint32_t> copying_{0};
    list_of<std::uint64_t> copy_space_{};
    owned_text snapshot_base_{};
    atomic<std::uint32_t> snapshots_left_{0};  // how many requests from outside are still served
    atomic<std::uint64_t> snapshot_due_{0};
    std::uint64_t snapshot_gap_ = 0;  // nanoseconds
    /// The state of this process, in a page that fork wipes.
    enum : std::uint32_t { new_child = 0, entered = 1, entering = 2, stopped = 3 };
    struct wiped_word {
        atomic<std::uint32_t>* word = nullptr;

        ~wiped_word() {
            if (word != nullptr) ::munmap(static_cast<void*>(word), storage::machine_page_bytes());
        }
        atomic<std::uint32_t>* operator->() const noexcept { return word; }
    };
    wiped_word alive_{};
    static constexpr std::uint32_t offer_count = 16;
    /// By ring: lanes to be adopted, each as lane number << 32 | index of its entry.
    atomic<std::uint64_t> offers_[layout::max_rings][offer_count]{};
};

inline void commit_record(lane_state& lane, std::uint32_t bytes) noexcept {
    sub_buffer_header* const sub = lane.sub.load(relaxed);  // relaxed: own lane, twice
    lane_writer::commit(*sub, sub->commit.load(relaxed), bytes);
}

// event_types.hpp
/// A type's numbers in this registry, as event_numbers has them.
struct numbers_here {
    std::uint32_t header;
    std::uint32_t total;
};
[[gnu::cold]] inline numbers_here register_type(event_state& type, bool arrived = false) noexcept;
[[gnu::visibility("hidden")]] inline void register_types(const types_here& from) noexcept;

inline core::opened core::open(event_state& type, std::uint32_t bytes, mark_type opener,
                               bool ends) noexcept {
    const std::uint32_t header = register_type(type).header;
    const std::uint32_t gate = gate_of(record_word::id(header));
    const bool is_known = (gate & layout::gate_no_event) == 0;
    if ((gate & ~std::uint32_t{layout::gate_no_event}) != 0 && !ends) return {};
    // order: process.alive:B pairs with process.alive:A
    if (alive_->load(acquire) != entered && !enter_child()) return {};
    const std::uint32_t ring = shares_.number(type.ring);  // 0 if there is no such ring
    std::uint64_t waited = 0;
    lane_block* block = thread_lanes[ring].load(relaxed);  // relaxed: own word
    if (block == &vacant_block) block = enter_thread(ring);
    while (block == nullptr && claimer_.wait_for_room(waited)) block = enter_thread(ring);
    if (block == nullptr) {
        memory_.ring().refused_without_lane.fetch_add(1, relaxed);  // relaxed: a counter
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

inline void core::hold(lane_state& lane, mark_type mark, const void* holder) noexcept {
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
        recover(other);
        its_mark.store(0, relaxed);
    }
}

/// Marks the first lane of the block in which no record is open as the caller's. Null if there is
/// none, which is counted.
inline lane_state* core::choose_lane(lane_block& block, mark_type opener) noexcept {
    lane_state* const first = first_lane(block);
    thread_node& node = node_of(block);
    // relaxed, to the end: own lanes, and counters; a swap, for the stack may be switched between
    for (const bool for_want : {false, true}) {
        for (std::size_t depth = 0; depth < lane_depths; ++depth) {
            lane_state& lane = first[depth];
            lane_mark& mark = mark_of(lane);
            mark_type found = mark.value.load(relaxed);
            bool gone = false;
            if (mark.retired.load(relaxed) != 0) continue;
            if (found > 0 && (found & reserved_bit) == 0) {
                const frame_is where = look_at_frame(found, opener, node);
                if (where == frame_is::elsewhere) retire(*first);
                gone = where == frame_is::gone;
            } else if (found > 0) {
                gone = for_want && reservation_is_gone(lane, found, opener, node);
            }
            if (found > 0 && !gone) continue;
            if (!mark.value.compare_exchange_strong(found, opener, relaxed)) continue;
            if (enter_lane(lane)) {
                if (gone) recover(lane);
                return &lane;
            }
            mark.value.store(0, relaxed);
        }
    }
    for (std::size_t depth = lane_depths; depth-- != 0;) {
        lane_state& lane = first[depth];
        if (mark_of(lane).valid.load(relaxed) == 0) continue;
        lane.entry.load(relaxed)->nested.fetch_add(1, relaxed);
        sub_buffer_header* const sub = lane.sub.load(relaxed);
        // If the thread's stacks are switched, it may be another thread's by now.
        const bool stays = mark_of(*first).retired.load(relaxed) == 0;
        if (sub != &nowhere && stays) sub->nested.fetch_add(1, relaxed);
        return nullptr;
    }
    memory_.ring().refused_without_lane.fetch_add(1, relaxed);
    return nullptr;
}

}  // namespace trace_ring::inline v1::impl

#include <trace_ring/recorder/process/event_types.hpp>
#include <trace_ring/recorder/lane/threads.hpp>
