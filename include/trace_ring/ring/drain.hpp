// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A ring of sub-buffers as a drainable: a consumer that makes no copies. The writer does not reuse
/// a sub-buffer before it is consumed; so only rings that do not overwrite can be drained in place,
/// and a sub-buffer held by a session that died is simply not consumed.
/// @code
/// trace_ring::drain::session session(ring);  // calls drainable_of(ring)
/// @endcode

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include <trace_ring/policy/notify/notify.hpp>
#include <trace_ring/policy/storage/mapping.hpp>
#include <trace_ring/policy/storage/process.hpp>
#include <trace_ring/ring/ring.hpp>
#include <trace_ring/ring/sub_buffers/drained.hpp>
#include <trace_ring/ring/sub_buffers/ring.hpp>

namespace trace_ring::inline v1 {

/// Used by one session, on one thread at a time, without any other consumer. Room comes free
/// in order: a sub-buffer that is kept or held keeps those after it from being used again, until
/// this session or a later one consumes it.
template <list_of_policies Kind>
requires(!ring_policies<Kind>::full_policy::overwrites) class sub_buffer_drain {
public:
    using ring_type = sub_buffer_ring<Kind>;  ///< the ring that is drained
    using portion = drained_sub_buffer;       ///< a sub-buffer that was drained

    /// Null means a ring that is compiled away and has no records.
    explicit sub_buffer_drain(ring_type* ring) noexcept : ring_(ring) {}
    sub_buffer_drain(const sub_buffer_drain&) = delete;
    sub_buffer_drain& operator=(const sub_buffer_drain&) = delete;

    /// Throws setup_error (EBUSY, with the pid) if another session drains the ring.
    void attach() {
        if (ring_ == nullptr) return;
        auto& owner = ring_->control().session_owner;
        std::uint64_t before = owner.load(relaxed);  // relaxed: the swap decides
        do {
            if (before != 0 && storage::process_word::may_live(before)) {
                fail_setup(
                    "a ring",
                    "process " + std::to_string(storage::process_word::pid(before)) + " drains it",
                    EBUSY);
            }
            // order: ring.session:A pairs with ring.session:B
        } while (!owner.compare_exchange_strong(before, storage::process_word::own(), acquire));
        process_ = ::getpid();
        // relaxed, both: only the consuming side writes them
        next_ = ring_->control().consumed.load(relaxed) + 1;
        expected_ = (std::max)(ring_->control().drained.load(relaxed),
                               ring_->control().consumed_records.load(relaxed));  // relaxed: own
        open_ = no_position;
        told_ = {};
        held_.clear();
        words_.resize(ring_type::sub_buffer_bytes / 8);
    }
    /// Ends the session: what it holds can be drained by the next one.
    void detach() noexcept {
        if (ring_ == nullptr || process_ != ::getpid())
            return;  // in the child of a fork: the session is the parent's
        process_ = 0;
        // order: ring.session:B pairs with ring.session:A
        ring_->control().session_owner.store(0, release);
    }

    /// Takes the next closed sub-buffer. Its records are plain memory until it is consumed: the
    /// writer does not use it again before that.
    [[nodiscard]] bool take(portion& out) {
        while (process_ != 0 && next_ <= ring_->produced()) {
            const sub_buffer_header& sub = at(next_);
            // order: ring.drain:A pairs with writer.end:A, writer.begin:A
            const auto state = stamped::from(sub.state.load(acquire));
            if (state.pos == next_ && state.state == active) {
                return false;
            }
            // relaxed, to the end: the writer does not write to a closed sub-buffer
            const std::uint32_t commit = sub.commit.load(relaxed);
            const std::uint32_t bytes = commit_word::offset(commit);
            const bool sound = state.pos == next_ && state.state == closed &&
                               sub.magic.load(relaxed) == sub_buffer_magic &&
                               bytes >= sizeof(sub_buffer_header) && bytes % 8 == 0 &&
                               bytes <= ring_type::sub_buffer_bytes;
            held_.push_back({next_, 0, false});
            if (!sound) {  // the next one shows how many records it had
                damaged_ = true;
                given_back(next_++, expected_, true);
                continue;
            }
            out = portion({&sub, bytes, ring_->index_of(next_), 0, next_,
                           sub.first_position.load(relaxed), commit_word::records(commit),
                           sub.base_time.load(relaxed), sub.end_time.load(relaxed), false});
            place(out, sub.refused.load(relaxed), sub.too_long.load(relaxed),
                  sub.nested.load(relaxed));
            ++next_;
            return true;
        }
        return false;
    }
    /// Returns a sub-buffer to the writers.
    void consume(portion& what) noexcept { give_back(what, true); }
    /// Gives a sub-buffer back unread.
    void keep(portion& what) noexcept { give_back(what, false); }
    /// Calls `visit` with each record of a sub-buffer. Returns their number.
    template <class Visit>
    std::uint64_t visit(const portion& what, Visit&& visit) const {
        return what.visit(visit);
    }

    /// Takes a copy of the complete records in the sub-buffer that is being filled.
    [[nodiscard]] bool take_open(portion& out) {
        if (process_ == 0 || next_ != ring_->produced()) return false;
        sub_buffer_copy head;
        if (copy_sub_buffer(&at(next_), words_, head) != copy_result::copied ||
            head.state.pos != next_ || head.state.state != active) {
            return false;
        }
        portion made({words_.data(), head.bytes, ring_->index_of(next_), 0, next_,
                      head.first_position, head.records, head.base_time, 0, true});
        place(made, head.refused, head.too_long, head.nested);
        if (made.records() == 0 && made.lost().total() == 0) return false;
        out = made;
        return true;
    }

    /// How far the session and its ring are. Records in the sub-buffer that is being filled count
    /// as unread; `take` returns them when it is closed, `take_open` before.
    [[nodiscard]] notify::standing standing() const noexcept {
        if (ring_ == nullptr) return {};
        const notify::progress at = ring_->filled_now();
        const std::uint64_t passed = (next_ - 1) * ring_type::sub_buffer_bytes;
        if (passed >= at.bytes) return {at, at};
        // All records have been taken, the last ones as a copy.
        if (next_ == ring_->produced() && expected_ >= at.records) return {at, at};
        notify::standing now{ring_->filled(expected_, passed), at};
        if (next_ == ring_->produced()) {
            now.until = ring_->filled(at.records + 1, passed + ring_type::sub_buffer_bytes + 1);
        }
        return now;
    }
    /// Arms the ring's notifier for news after the session's place. False: there is more to take.
    [[nodiscard]] bool rearm() noexcept
        requires(notify::arms<typename ring_policies<Kind>::notify_policy>) {
        if (ring_ == nullptr) return true;
        return ring_->notifier().arm(ring_->control().notified, [this] { return standing(); });
    }

    /// Records that the writer lost after the last sub-buffer taken, or while the ring was stopped.
    [[nodiscard]] loss_counts rest() noexcept {
        loss_counts out;
        if (process_ == 0) return out;
        for (const auto cause : {loss_cause::refused, loss_cause::too_long, loss_cause::nested}) {
            out.add(cause, tell(cause, ~std::uint64_t{0}));
        }
        return out;
    }

private:
    static constexpr auto active = static_cast<unsigned>(sub_buffer_state::active);
    static constexpr auto closed = static_cast<unsigned>(sub_buffer_state::closed);

    struct holding {
        position at;
        std::uint64_t end;  ///< records up to its end
        bool consumed;
    };
    struct counts {
        std::uint32_t refused = 0, too_long = 0, nested = 0;
    };

    [[nodiscard]] const sub_buffer_header& at(position p) const noexcept {
        return *static_cast<const sub_buffer_header*>(
            static_cast<const void*>(ring_->slot_at(ring_->index_of(p))));
    }

    /// Leaves out records that the session has had, and adds the losses before the others.
    void place(portion& what, std::uint32_t refused, std::uint32_t too_long,
               std::uint32_t nested) noexcept {
        if (open_ != what.at()) told_ = {};
        const position end = what.first() + what.records();
        if (what.first() > expected_) {
            what.lose(damaged_ ? loss_cause::damaged : loss_cause::overwritten,
                      what.first() - expected_);
        } else {
            what.skip(expected_ - what.first());
        }
        damaged_ = false;
        expected_ = (std::max)(expected_, end);
        what.lose(loss_cause::refused, tell(loss_cause::refused, refused - told_.refused));
        what.lose(loss_cause::too_long, tell(loss_cause::too_long, too_long - told_.too_long));
        what.lose(loss_cause::nested, tell(loss_cause::nested, nested - told_.nested));
        open_ = what.at();
        told_ = {refused, too_long, nested};
    }
    /// Up to `most` of the losses that the ring has counted and no session has reported; they count
    /// as reported from here on.
    [[nodiscard]] std::uint64_t tell(loss_cause cause, std::uint64_t most) noexcept {
        auto& c = ring_->control();
        const auto& all = cause == loss_cause::refused    ? c.refused
                          : cause == loss_cause::too_long ? c.too_long
                                                          : c.nested;
        auto& told = cause == loss_cause::refused    ? c.told_refused
                     : cause == loss_cause::too_long ? c.told_too_long
                                                     : c.told_nested;
        // relaxed, to the end: counters, and words that only the consuming side writes
        const std::uint64_t before = told.load(relaxed);
        const std::uint64_t more = (std::min)(most, all.load(relaxed) - before);
        told.store(before + more, relaxed);
        return more;
    }

    void give_back(const portion& what, bool consumed) noexcept {
        const position end = what.first() + what.records();
        auto& drained = ring_->control().drained;
        // relaxed, both: only the consuming side writes it
        if (consumed && end > drained.load(relaxed)) drained.store(end, relaxed);
        if (!what.copied()) given_back(what.at(), end, consumed);
    }
    void given_back(position p, std::uint64_t end, bool consumed) noexcept {
        for (auto& each : held_) {
            if (each.at != p) continue;
            each.end = end;
            each.consumed = consumed;
        }
        while (!held_.empty() && held_.front().consumed) {
            auto& c = ring_->control();
            c.consumed_records.store(held_.front().end, relaxed);  // relaxed: own word
            // order: ring.drained:A pairs with ring.admit_alone:A
            c.consumed.store(held_.front().at, release);
            held_.pop_front();
        }
    }

    ring_type* ring_;
    pid_t process_ = 0;  ///< the process that attached; 0: none
    position next_ = 1;
    std::uint64_t expected_ = 0;
    bool damaged_ = false;
    position open_ = no_position;  ///< the sub-buffer that `told_` belongs to
    counts told_{};
    std::deque<holding> held_{};  ///< taken, and not yet released to the writer
    std::vector<std::uint64_t> words_{};
};

/// drain::session calls this for a ring of sub-buffers that does not overwrite.
template <list_of_policies Kind>
requires(!ring_policies<Kind>::full_policy::overwrites)
    [[nodiscard]] sub_buffer_drain<Kind> drainable_of(sub_buffer_ring<Kind>& ring) {
    return sub_buffer_drain<Kind>(&ring);
}

#if defined(TRACE_RING_DISABLE)
template <list_of_policies Kind>
requires(!ring_policies<Kind>::full_policy::overwrites &&
         ring_policies<Kind>::record_policy::kind == record::layout::sub_buffers)
    [[nodiscard]] sub_buffer_drain<Kind> drainable_of(disabled_ring<Kind>&) {
    return sub_buffer_drain<Kind>(nullptr);
}
#endif

}  // namespace trace_ring::inline v1
