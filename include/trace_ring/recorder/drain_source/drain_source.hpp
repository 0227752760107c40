// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The recorder as a drainable: closed sub-buffers are marked `reading`, handed over where they
/// lie, and given back as `free`, or as `closed` again. Writers skip those that are held, a quarter
/// of the ring at most, and neither overwrite nor count consumed records.
/// @code
///  session                                        writer
///  state: (p, closed) --swap--> (p, reading)      state? reading: held, the next one
///         plain loads of the records
///         (p, reading) --release--> (p, free)     (p, free) --swap--> (q, reset)
/// @endcode
/// The program that records makes it from the recorder; any other that may write to the file, from
/// the file's name.
/// @code
///   trace_ring::drain_source source("orders.trace");
///   trace_ring::drain::session session(source);
///   session.for_each_record([](const auto& record) { add(record.time, record.payload); });
/// @endcode

#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <trace_ring/bounds.hpp>
#include <trace_ring/list_of.hpp>
#include <trace_ring/recorder/drain_source/closed_search.hpp>
#include <trace_ring/recorder/drain_source/lane_progress.hpp>
#include <trace_ring/recorder/file/outside_trace.hpp>
#include <trace_ring/recorder/file/session_owner.hpp>
#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/ring/sub_buffers/drained.hpp>

namespace trace_ring::inline v1 {

#if defined(TRACE_RING_DISABLE)
inline namespace disabled {  // see recorder/site/disabled.hpp
#endif
/// Belongs to one session, and is used by one thread at a time. In a child of a fork, the copy of
/// its parent's source does nothing.
class drain_source {
public:
    using portion = drained_sub_buffer;  ///< a closed sub-buffer

    /// Drains a recorder of this process, which must outlive this.
    template <class Kind>
    explicit drain_source(basic_recorder<Kind>& from) : fd_(from.descriptor()) {
        const auto [base, bytes] = from.bytes();
        if (base == nullptr) return;  // disabled: there is nothing
        name_ = from.path().empty() ? std::string("memory") : std::string(from.path());
#if !defined(TRACE_RING_DISABLE)
        auto& memory = from.words_.lanes->memory();
        static_cast<layout::view&>(trace_) = static_cast<const layout::view&>(memory);
        trace_.present = &memory.present();
#endif
    }
    /// Drains a trace file that other processes record into, or did; or `/proc/PID/fd/N` of a
    /// memory file. Throws setup_error, which names the file, the offset and the cause. A file that
    /// nobody else has when this is destroyed is then about as long as what is left in it.
    explicit drain_source(const std::string& file) : name_(file) {
        outside_.open_file(file, true);
        fd_ = outside_.file().number();
        static_cast<layout::view&>(trace_) = static_cast<const layout::view&>(outside_);
        present_.begin(trace_, &outside_.file());
        trace_.present = &present_;
        // After the capacity: the file may be growing.
        // order: grow.use:S pairs with grow:A
        const std::uint64_t capacity = trace_.ring().capacity.load(acquire);
        if (capacity == 0 ||
            capacity > layout::present_sub_buffers(trace_.plan(), storage::file_bytes(fd_))) {
            fail_setup(file, fault_at(trace_.plan().ring, "impossible capacity"));
        }
    }

    drain_source(const drain_source&) = delete;
    drain_source& operator=(const drain_source&) = delete;

    /// Begins a session. Throws setup_error: EBUSY, and the pid, if there is a session already.
    void attach() {
        if (trace_.base() == nullptr) return;
        if (const std::uint32_t other = impl::take_session(trace_, fd_, lock_)) {
            fail_setup(name_, setup_fault(EBUSY, "process %" PRIu32 " drains it", other));
        }
        process_ = ::getpid();
        auto& sessions = trace_.ring().sessions;
        sessions.store(sessions.load(relaxed) + 1, relaxed);  // relaxed: one session at a time
        lanes_.emplace(trace_, sessions.load(relaxed) == 1);  // relaxed: as above
        search_.emplace(trace_);
        damaged_.clear();
        held_ = 0;
        open_pass_ = 0;
        words_.resize(trace_.plan().sub_buffer_bytes / 8);
    }
    /// Ends the session: what it holds can be drained by the next one.
    void detach() noexcept {
        if (trace_.base() == nullptr || process_ != ::getpid()) return;
        process_ = 0;
        for (std::uint64_t slot = 0; held_ != 0 && slot < trace_.capacity(); ++slot) {
            // relaxed: this session's own
            const auto now = stamped::from(trace_.sub_buffer(slot).state.load(relaxed));
            if (now.state == number(sub_buffer_state::reading)) {
                release_held({slot, now.pos}, sub_buffer_state::closed);
            }
        }
        impl::leave_session(trace_, lock_);
    }

    /// The next closed sub-buffer; false if there is none, or a quarter of them is held. A
    /// sub-buffer that is handed over was closed before, writers skip it until it is given back,
    /// and only this session gives it back. So its records are plain memory, read by plain loads,
    /// which a compiler may make wide.
    [[nodiscard]] bool take(portion& out) {
        if (process_ == 0) return false;
        if (held_ >= greatest<std::uint64_t>(1, trace_.capacity() / 4)) return false;
        place found;
        while (search_->find(found)) {
            if (was_had(found)) {  // and kept: another thread may continue in it
                search_->look_again(found);
                continue;
            }
            bool refused = false;
            while (hold(found)) {
                const auto earlier = earlier_of_lane(found);
                if (!earlier) {
                    if (accept(found, out)) return true;
                    refused = true;
                    break;
                }
                release_held(found, sub_buffer_state::closed);
                search_->await(found);
                found = *earlier;
            }
            // Overwritten at this moment, or written on in it.
            if (!refused) search_->look_again(found);
        }
        return false;
    }
    /// Returns a sub-buffer to the writers.
    void consume(portion& what) noexcept {
        position begin = words_[offsetof(sub_buffer_header, first_position) / 8];  // of a copy
        if (!what.copied()) {
            auto& ring = trace_.ring();
            begin = trace_.sub_buffer(what.slot()).first_position.load(relaxed);  // relaxed: held
            // relaxed, all: counters of one session at a time
            ring.consumed_sub_buffers.store(ring.consumed_sub_buffers.load(relaxed) + 1, relaxed);
            --held_;
            // order: drain.free:A pairs with claim:C, claim.next:A
            trace_.sub_buffer(what.slot())
                .state.store(stamped{what.at(), number(sub_buffer_state::free)}.word(), release);
        }
        auto& records = trace_.ring().consumed_records;
        // relaxed, both: as above
        records.store(records.load(relaxed) + lanes_->consumed(what, begin), relaxed);
    }
    /// Gives a sub-buffer back unread; the next session gets it.
    void keep(portion& what) noexcept {
        if (what.copied()) return;
        --held_;
        release_held({what.slot(), what.at()}, sub_buffer_state::closed);
    }
    /// Calls `visit` with each record of a sub-buffer. Returns their number.
    template <class Visit>
    std::uint64_t visit(const portion& what, Visit&& visit) const {
        return what.visit(visit);
    }

    /// The committed records of the next sub-buffer that is still being filled. One at a time.
    [[nodiscard]] bool take_open(portion& out) {
        if (process_ == 0) return false;
        bool found = false;
        search_->for_each_awaited(open_pass_, [&](place awaited) {
            open_pass_ = awaited.slot + 1;
            sub_buffer_copy head;
            if (copy_sub_buffer(&trace_.sub_buffer(awaited.slot), {words_.data(), words_.size()},
                                head) != copy_result::copied ||
                head.state.state != number(sub_buffer_state::active) ||
                head.state.pos < awaited.pos) {
                return false;
            }
            if (earlier_of_lane(head.lane, head.state.pos, head.previous, head.first_position)) {
                return false;  // it comes with the next pass
            }
            portion made({words_.data(), head.bytes, awaited.slot, head.lane, head.state.pos,
                          head.first_position, head.records, head.base_time, 0, true});
            lanes_->place(made, {head.refused, head.too_long, head.nested},
                          gap_cause(head.previous));
            if (made.records() == 0 && made.lost().total() == 0) return false;
            out = made;
            return found = true;
        });
        if (!found) open_pass_ = 0;
        return found;
    }

    /// Losses that no sub-buffer reports: records refused since the last one, nested, or without a
    /// lane; and records overwritten behind the last sub-buffer of a lane that has ended.
    [[nodiscard]] loss_counts rest() {
        if (process_ == 0) return {};
        const auto had = [this](place kept) { return was_had(kept); };
        return lanes_->rest([&] { return held_ == 0 && search_->settled(had); });
    }

private:
    using place = impl::sub_buffer_place;

    [[nodiscard]] static constexpr unsigned number(sub_buffer_state state) noexcept {
        return static_cast<unsigned>(state);
    }

    [[nodiscard]] bool hold(place what) noexcept {
        std::uint64_t word = stamped{what.pos, number(sub_buffer_state::closed)}.word();
        // From here on its records are this session's: all of them were stored before it was
        // closed, and no claimer's swap succeeds.
        // order: drain.hold:A pairs with writer.end:A, reclaim.close:A, session.return:A,
        // drain.keep:A
        return trace_.sub_buffer(what.slot).state.compare_exchange_strong(
            word, stamped{what.pos, number(sub_buffer_state::reading)}.word(), acquire);
    }
    void release_held(place what, sub_buffer_state as) noexcept {
        // order: drain.keep:A pairs with claim:C, claim.next:A, drain.look:A, drain.hold:A, read:A
        trace_.sub_buffer(what.slot).state.store(stamped{what.pos, number(as)}.word(), release);
    }

    [[nodiscard]] std::optional<place> earlier_of_lane(place what) {
        const sub_buffer_header& sub = trace_.sub_buffer(what.slot);
        // relaxed, all: it is held
        return earlier_of_lane(sub.lane.load(relaxed), what.pos, sub.previous.load(relaxed),
                               sub.first_position.load(relaxed));
    }
    [[nodiscard]] std::optional<place> earlier_of_lane(std::uint32_t lane, position pos,
                                                       position previous, position first) {
        const auto& known = lanes_->of(lane);
        if (previous == no_position || previous < known.last || previous >= pos) return {};
        const bool gap = known.known && first > known.expected;
        if (previous != known.last) {
            return search_->closed_of(lane, known.last, pos, previous, gap);
        }
        // If the session kept the one that it had last, another thread may have continued there.
        const auto last =
            gap ? search_->closed_of(lane, previous - 1, pos, previous, false) : std::nullopt;
        return last && has_more(trace_.sub_buffer(last->slot), known) ? last : std::nullopt;
    }
    [[nodiscard]] loss_cause gap_cause(position previous) const noexcept {
        for (const position each : damaged_) {
            if (each == previous) return loss_cause::damaged;
        }
        return loss_cause::overwritten;
    }

    /// Whether all records of a closed sub-buffer were handed over. A hint, because it is not held.
    [[nodiscard]] bool was_had(place what) noexcept {
        const sub_buffer_header& sub = trace_.sub_buffer(what.slot);
        // relaxed, to the end: a hint
        const auto* const lane = lanes_->find_met(sub.lane.load(relaxed));
        return lane != nullptr && lane->last == what.pos && !has_more(sub, *lane);
    }
    /// Whether there are records behind those of the lane that were handed over.
    [[nodiscard]] static bool has_more(const sub_buffer_header& sub,
                                       const impl::lane_progress& lane) noexcept {
        // relaxed, both: the caller says why
        const position end =
            sub.first_position.load(relaxed) + commit_word::records(sub.commit.load(relaxed));
        return lane.known && end > lane.expected;
    }
    /// Hands over what is held. False, after it was given back: it cannot be read, or was handed
    /// over before.
    [[nodiscard]] bool accept(place what, portion& out) {
        const sub_buffer_header& sub = trace_.sub_buffer(what.slot);
        // relaxed, to the end: it is held
        const std::uint32_t commit = sub.commit.load(relaxed);
        const std::uint32_t bytes = commit_word::offset(commit);
        if (!is_sub_buffer_magic(sub.magic.load(relaxed)) || bytes < sizeof(sub_buffer_header) ||
            bytes % 8 != 0 || bytes > trace_.plan().sub_buffer_bytes) {
            damaged_.push_back(what.pos);
            release_held(what, sub_buffer_state::free);
            return false;
        }
        const std::uint32_t lane = sub.lane.load(relaxed);
        const auto& known = lanes_->of(lane);
        if (known.last > what.pos || (known.last == what.pos && !has_more(sub, known))) {
            release_held(what, sub_buffer_state::closed);
            if (known.last == what.pos) search_->look_again(what);
            return false;
        }
        ++held_;
        if (can_be_adopted(trace_.plan().sub_buffer_bytes, bytes)) search_->look_again(what);
        out = portion({&sub, bytes, what.slot, lane, what.pos, sub.first_position.load(relaxed),
                       commit_word::records(commit), sub.base_time.load(relaxed),
                       sub.end_time.load(relaxed), false});
        lanes_->place(
            out, {sub.refused.load(relaxed), sub.too_long.load(relaxed), sub.nested.load(relaxed)},
            gap_cause(sub.previous.load(relaxed)));
        return true;
    }

    std::string name_{};
    impl::outside_trace outside_{};
    impl::extent present_{};
    impl::trace_bytes trace_{};
    int fd_ = -1;
    storage::life_lock lock_{};  ///< the session's
    pid_t process_ = 0;          ///< whose session this is; 0: none
    std::optional<impl::lane_progresses> lanes_{};
    std::optional<impl::closed_search> search_{};
    list_of<position> damaged_{};
    std::uint64_t held_ = 0;
    std::uint64_t open_pass_ = 0;
    list_of<std::uint64_t> words_{};
};

/// Makes a drainable of a recorder, for drain::session.
template <class Kind>
[[nodiscard]] drain_source drainable_of(basic_recorder<Kind>& from) {
    return drain_source(from);
}
#if defined(TRACE_RING_DISABLE)
}
#endif

}  // namespace trace_ring::inline v1
