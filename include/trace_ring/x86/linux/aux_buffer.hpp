// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Reads the AUX area that Linux's intel_bts PMU fills: records of the debug store, 24 bytes each,
/// in a ring of memory, with two counts of bytes (perf_event_open(2), and
/// arch/x86/events/intel/bts.c in the kernel). Programs use it through perf_bts.hpp.
/// @code
///   a pass through the area, of `size` bytes; a position p lies at p mod size
///   0     24    48                              24 n              size
///   | rec | rec | ...   | 0 0 | 0 0 | ... | rec | size mod 24, dead |
///                        padding: both addresses zero
/// @endcode
/// In a full trace the kernel increases `head` as it writes, up to a whole area beyond `tail`,
/// which the reader moves. A snapshot has no tail: `head` is the place of the next record, and the
/// oldest record lies behind it; the event must be disabled while it is read. A record whose `from`
/// is zero begins a run of branches, one whose `to` is zero ends it. Addresses of the kernel are
/// removed here: a record with one on both sides is left out and counted, one with one on one side
/// is returned without that side.
///
/// Reader and kernel share two words. The kernel's part is shown, so that each ordering point has
/// its partner (kernel/events/ring_buffer.c):
/// @code
///   kernel                                      reader
///   store records                               load head            x86.aux.take:A
///   store head        x86.aux.kernel:A          load records
///   load tail         x86.aux.kernel:B          store tail           x86.aux.consume:B
/// @endcode
// order: x86.aux.kernel:A pairs with x86.aux.take:A, x86.aux.take2:A (perf_aux_output_end)
// order: x86.aux.kernel:B pairs with x86.aux.consume:B (perf_aux_output_begin)

#include <trace_ring/x86/enabled.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <span>
#include <string>
#include <system_error>

#include <trace_ring/atomic.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/policy/storage/mapping.hpp>
#include <trace_ring/x86/branch_record.hpp>
#include <trace_ring/x86/branch_source.hpp>

namespace trace_ring::inline v1::x86 {

/// The size of a branch record.
inline constexpr std::size_t bts_record_bytes = sizeof(record::branch_record64);

/// Records in a row, without padding or records of the kernel among them.
class aux_portion {
public:
    /// The bytes that the processor wrote: a record may have an address of the kernel on one side.
    [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }
    /// The number of records.
    [[nodiscard]] std::uint64_t records() const noexcept {
        return bytes_.size() / bts_record_bytes;
    }
    /// Records that are missing before these.
    [[nodiscard]] const loss_counts& lost() const noexcept { return lost_; }
    /// The place of the first record, in bytes since the trace began (of a snapshot: in the area).
    [[nodiscard]] std::uint64_t position() const noexcept { return position_; }

private:
    friend class aux_buffer;
    std::span<const std::byte> bytes_{};
    loss_counts lost_{};
    std::uint64_t position_ = 0;
    bool gap_ = false;
    branch_gap before_{};
};

/// A drainable, and the decoder of a branch_source. One portion is held at a time. The tail is one
/// count, so a portion that is kept also keeps the room of all later ones, until another session
/// takes them. It reads nothing outside the area, for any contents of `head` and the area. Only the
/// constructor and `attach` throw, and others if there is no memory.
class aux_buffer {
public:
    using portion = aux_portion;  ///< what a session gets
    /// Whether the kernel waits for the reader or overwrites.
    enum class mode : std::uint8_t { full_trace, snapshot };

    /// `area` has room for one record at least, and is aligned to 8; `head` and `tail` are the
    /// words of perf_event_mmap_page. All must outlive this. Throws setup_error for an invalid
    /// area.
    aux_buffer(std::span<const std::byte> area, const shared_atomic<std::uint64_t>& head,
               shared_atomic<std::uint64_t>& tail, mode how)
        : area_(area), head_(head), tail_(tail), mode_(how) {
        if (area.size() < bts_record_bytes ||
            reinterpret_cast<std::uintptr_t>(area.data()) % alignof(record::branch_record64) != 0) {
            throw setup_error("aux_buffer",
                              "an area of " + std::to_string(area.size()) +
                                  " bytes, or its alignment, is not usable",
                              EINVAL);
        }
        if (how == mode::full_trace) {
            at_ = tail.load(relaxed);  // relaxed: only this reader stores to it
            freed_ = at_;
        }
    }

    // --- drainable -------------------------------------------------------------------------------
    /// Begins a session at the tail, or over the whole snapshot. Throws std::system_error (EBUSY)
    /// if another session is attached.
    void attach() {
        if (busy_) throw std::system_error(EBUSY, std::generic_category(), "aux_buffer");
        busy_ = true;
        held_ = kept_ = false;
        at_ = freed_;
        looked_ = false;
    }
    /// Ends the session.
    void detach() noexcept {
        busy_ = held_ = false;
        if (mode_ == mode::full_trace) at_ = freed_;
    }

    /// The next records; false if there are none.
    [[nodiscard]] bool take(portion& out) {
        if (held_) return false;
        if (!limited_) look();
        out = portion{};
        while (at_ < end_) {
            const std::uint64_t phase = at_ % area_.size();
            const std::uint64_t pass = at_ - phase;
            const std::uint64_t last = area_.size() / bts_record_bytes * bts_record_bytes;
            const std::uint64_t first =
                (phase + bts_record_bytes - 1) / bts_record_bytes * bts_record_bytes;
            if (first >= last) {  // the dead end of a pass
                at_ = (std::min)(end_, pass + area_.size());
                continue;
            }
            at_ = (std::min)(end_, pass + first);
            note_gaps(out);
            std::uint64_t until = (std::min)(end_, pass + last);
            if (!gaps_.empty()) until = (std::min)(until, (std::max)(at_, gaps_.front().at));
            std::uint64_t end = at_;
            while (until - end >= bts_record_bytes && hands_over(end)) end += bts_record_bytes;
            if (end != at_) {
                out.position_ = at_;
                out.bytes_ =
                    area_.subspan(as_size(pass == at_ ? 0 : at_ - pass), as_size(end - at_));
                at_ = end;
                held_ = true;
                lost_ += out.lost_;
                return true;
            }
            if (until - at_ < bts_record_bytes) {  // no whole record before a gap or the end
                at_ = until;
                if (until == end_) break;
                continue;
            }
            skip_one();
        }
        // Skipped records at the end are free again, unless a kept portion lies before them.
        if (!kept_) give_back();
        if (out.gap_) pending_ = out;
        out = portion{};
        return false;
    }

    /// Frees the records.
    void consume(portion&) noexcept {
        held_ = false;
        if (!kept_) give_back();
    }
    /// Keeps the records.
    void keep(portion&) noexcept {
        held_ = false;
        kept_ = true;
    }

    /// Calls `f(const branch&)`, without addresses of the kernel.
    template <class Visit>
    std::uint64_t visit(const portion& what, Visit&& visit) const {
        std::uint64_t seen = 0;
        for (std::size_t at = 0; at < what.bytes_.size(); at += bts_record_bytes, ++seen) {
            visit(decode(load(what.bytes_.subspan(at).data())));
        }
        return seen;
    }

    /// Losses that no portion reports.
    [[nodiscard]] loss_counts rest() { return last_gap().lost_; }

    // --- For a reader of the kernel's events -----------------------------------------------------
    /// Notes that `count` records are missing at a position; 0: an unknown number, which counts as
    /// one in `lost()`, because loss_counts cannot say "unknown".
    void note_gap(std::uint64_t at, std::uint64_t count, loss_cause cause) {
        const auto where = std::upper_bound(gaps_.begin(), gaps_.end(), at,
                                            [](std::uint64_t p, const gap& g) { return p < g.at; });
        gaps_.insert(where, {at, count, cause});
    }
    /// Loads how far the kernel has written. Gaps that are noted before the next `take` come in
    /// their places.
    void look() {
        limited_ = false;
        if (mode_ == mode::snapshot) {
            if (looked_) return;
            looked_ = true;
            // order: x86.aux.take:A pairs with x86.aux.kernel:A
            const std::uint64_t head = head_.load(acquire) % area_.size();
            at_ = freed_ = head;
            end_ = head + area_.size();
            const std::uint64_t last = area_.size() / bts_record_bytes * bts_record_bytes;
            if (head < last && oldest_is_there(head)) note_gap(head, 0, loss_cause::overwritten);
            return;
        }
        // order: x86.aux.take2:A pairs with x86.aux.kernel:A
        const std::uint64_t head = head_.load(acquire);
        if (head >> 62 != 0) {  // no trace is that long: there are no records
            if (at_ >> 62 == 0 && !astray_) note_gap(at_, 0, loss_cause::damaged);
            astray_ = true;
            end_ = at_;
            return;
        }
        astray_ = false;
        if (head < at_) {  // counts never go back: continue at the head
            note_gap(head, 0, loss_cause::damaged);
            at_ = head;
            kept_ = false;
        } else if (head - at_ > area_.size()) {
            const std::uint64_t gone = head - at_ - area_.size();
            at_ = head - area_.size();
            while (!gaps_.empty() && gaps_.front().at < at_) gaps_.pop_front();
            note_gap(at_, gone / bts_record_bytes, loss_cause::overrun);
        }
        end_ = head;
    }
    /// The same, and `take` returns no records after that place, until `go_on`.
    void look_once() {
        look();
        limited_ = true;
    }
    /// Continues after a limit.
    void go_on() noexcept { limited_ = false; }

    /// The place up to which `look` has found records, in bytes since the trace began.
    [[nodiscard]] std::uint64_t seen_to() const noexcept { return end_; }

    /// All records that were reported as missing so far.
    [[nodiscard]] const loss_counts& lost() const noexcept { return lost_; }
    /// Records that were left out, or that lost a side, because of an address of the kernel.
    [[nodiscard]] std::uint64_t filtered() const noexcept { return filtered_; }
    /// Records with both addresses zero.
    [[nodiscard]] std::uint64_t padding() const noexcept { return padding_; }

    /// A whole session in one call: calls `f(const branch&)` and `f(const branch_gap&)`, in their
    /// order. Returns the number of records.
    template <branch_visitor Visit>
    std::uint64_t read(Visit&& visit_each) {
        std::uint64_t seen = 0;
        for (portion p; take(p);) {
            struct giver {
                aux_buffer& from;
                portion& what;
                ~giver() { from.consume(what); }
            } back{*this, p};
            if (p.gap_) visit_each(static_cast<const branch_gap&>(p.before_));
            seen += visit(p, visit_each);
        }
        const portion left = last_gap();
        if (left.gap_) visit_each(left.before_);
        return seen;
    }
    /// Refuses to compile: `Visit` is no branch_visitor.
    template <class Visit>
    std::uint64_t read(Visit&&) {
        return impl::refuse_visitor<Visit>();
    }

private:
    struct gap {
        std::uint64_t at, count;
        loss_cause cause;
    };

    /// The upper half of the addresses, as Linux divides them.
    [[nodiscard]] static constexpr bool of_kernel(std::uint64_t address) noexcept {
        return address >> 63 != 0;
    }
    [[nodiscard]] static record::branch_record64 load(const std::byte* from) noexcept {
        record::branch_record64 out;
        std::memcpy(&out, from, sizeof out);
        return out;
    }
    [[nodiscard]] record::branch_record64 at(std::uint64_t position) const noexcept {
        return load(area_.data() + position % area_.size());
    }
    /// The record is returned: it is no padding, and not only of the kernel. Counts a record with
    /// one address of the kernel.
    [[nodiscard]] bool hands_over(std::uint64_t position) noexcept {
        const auto one = at(position);
        if (one.padding()) return false;
        const bool from = of_kernel(one.from), to = of_kernel(one.to);
        if (from || to) {
            if ((from || one.from == 0) && (to || one.to == 0)) return false;
            ++filtered_;
        }
        return true;
    }
    void skip_one() noexcept {
        ++(at(at_).padding() ? padding_ : filtered_);
        at_ += bts_record_bytes;
    }
    [[nodiscard]] static branch decode(const record::branch_record64& one) noexcept {
        const bool from = one.from != 0 && !of_kernel(one.from);
        const bool to = one.to != 0 && !of_kernel(one.to);
        branch out = from && to ? branch(one.from, one.to)
                     : from     ? branch::only_from(one.from)
                                : branch::only_to(to ? one.to : 0);
        // Only "predicted" is passed on, because some processors never set the bit.
        if (one.predicted()) out.set_predicted(true);
        return out.set_privilege(branch_privilege::user);
    }
    [[nodiscard]] bool oldest_is_there(std::uint64_t head) const noexcept {
        const std::uint64_t first =
            (head + bts_record_bytes - 1) / bts_record_bytes * bts_record_bytes;
        return first + bts_record_bytes <= area_.size() && !at(first).padding();
    }

    /// Moves gaps up to the present place to `out`, before its records.
    void note_gaps(portion& out) {
        hand_on_pending(out);
        while (!gaps_.empty() && gaps_.front().at <= at_) {
            const gap one = gaps_.front();
            gaps_.pop_front();
            loss_counts lost;
            lost.add(one.cause, std::max<std::uint64_t>(one.count, 1));
            add_gap(out, {one.count, one.cause, 0}, lost);
        }
    }
    /// Joins several gaps at one place: the length is unknown if one of theirs is.
    static void add_gap(portion& out, const branch_gap& more, const loss_counts& lost) noexcept {
        const bool known = more.count != 0 && (!out.gap_ || out.before_.count != 0);
        if (!out.gap_) out.before_.cause = more.cause;
        out.before_.count = known ? out.before_.count + more.count : 0;
        out.gap_ = true;
        out.lost_ += lost;
    }
    void hand_on_pending(portion& out) noexcept {
        if (!pending_.gap_) return;
        add_gap(out, pending_.before_, pending_.lost_);
        pending_ = portion{};
    }
    /// The gap after the last record.
    [[nodiscard]] portion last_gap() {
        portion out;
        note_gaps(out);
        lost_ += out.lost_;
        return out;
    }
    void give_back() noexcept {
        freed_ = at_;
        if (mode_ == mode::snapshot) return;
        // order: x86.aux.consume:B pairs with x86.aux.kernel:B
        tail_.store(at_, release);
    }

    std::span<const std::byte> area_;
    const shared_atomic<std::uint64_t>& head_;
    shared_atomic<std::uint64_t>& tail_;
    std::deque<gap> gaps_{};  ///< noted, and not yet returned; by position
    portion pending_{};       ///< a gap that `take` found with no record after it
    std::uint64_t at_ = 0, end_ = 0, freed_ = 0;
    std::uint64_t filtered_ = 0, padding_ = 0;
    loss_counts lost_{};
    mode mode_;
    bool looked_ = false, limited_ = false, busy_ = false, held_ = false, kept_ = false;
    bool astray_ = false;  ///< the head is invalid, and that was reported
};

}  // namespace trace_ring::inline v1::x86
