// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// One lane, read in either direction. The positions of two readable sub-buffers give the number of
/// records that are missing between them; the cause of the loss is the reason why they cannot be
/// read.
/// @code
///   sub-buffers of the lane   |   A    |           |   B   |   C    |  written
///   positions                 0        4           9      12       15       17
///   items                      0 1 2 3  lost 4..9   lost    12 13 14  lost 15..17
///                                       overwritten 9..12            overwritten
///                                                   overrun or damaged
/// @endcode

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <trace_ring/reduce/cursor/read_ahead.hpp>
#include <trace_ring/reduce/file/chains.hpp>

namespace trace_ring::inline v1::reduce {

class lane_reader {
public:
    /// `lane` null: for losses that concern no lane. `follow` (forward only): more records may come
    /// after all are read. `unpack`: packed records replace the records that pack them.
    lane_reader(const tables& in, const lane_info* lane, direction way, bool follow,
                bool unpack) noexcept
        : in_(&in),
          lane_(lane),
          way_(way),
          forward_(way == direction::forward),
          follow_(follow),
          followed_(follow),
          unpack_(unpack) {}
    lane_reader(lane_reader&&) = default;
    lane_reader& operator=(lane_reader&&) = default;
    lane_reader(const lane_reader&) = delete;
    lane_reader& operator=(const lane_reader&) = delete;

    [[nodiscard]] const lane_info* lane() const noexcept { return lane_; }
    /// Adds a loss that no sub-buffer counts: before the first record, or after the last.
    void add_unplaced(bool before_all, const note_type& what) {
        (before_all ? first_notes_ : last_notes_).push_back(what);
    }
    /// Damaged sub-buffers of unknown lanes, which may explain gaps. `strays` must outlive this.
    void blame(const std::vector<chain_link>& strays) noexcept { strays_ = &strays; }
    /// Copies of its sub-buffers come from `ahead` where it has them.
    void use(read_ahead& ahead) noexcept { ahead_ = &ahead; }

    /// Adds sub-buffers, oldest first; when following, newer ones than all before.
    void add(chain&& what) {
        if (next_ > 1 && forward_) {  // keeps the last one read, which may be open
            links_.erase(links_.begin(), links_.begin() + static_cast<std::ptrdiff_t>(next_ - 1));
            next_ = 1;
        }
        if (links_.empty()) links_.swap(what.links);  // leaves `what` empty
        links_.insert(links_.end(), what.links.begin(), what.links.end());
        if (!forward_) next_ = links_.size();
        cut_begin_ = cut_begin_ || what.cut_begin;
        cut_end_ = cut_end_ || what.cut_end;
        if (!start_) start_ = what.start;
    }

    /// Copies the lane's entry in the tables, which matches the sub-buffers listed so far. After
    /// that, another cursor of the trace may read the tables again.
    void match_tables() noexcept {
        if (lane_ == nullptr) return;
        newest_ = lane_->newest;
        written_ = lane_->written;
    }

    /// An entry can be taken.
    [[nodiscard]] bool ready() const noexcept { return list_.ready(); }
    /// The time by which this lane's next entry is merged: its own if it is ready, else a bound
    /// that it does not precede (forward) or exceed (backward).
    [[nodiscard]] std::uint64_t key() const noexcept {
        if (ready()) return list_.next_time();
        const std::uint64_t bound = edge_ ? edge_->time : lonely_time();
        if (forward_) return next_ < links_.size() ? links_[next_].base_time : bound;
        if (next_ == 0) return bound;
        return (std::min)(edge_ ? bound : ~std::uint64_t{0}, links_[next_ - 1].last_time);
    }
    /// The same where there are no times: the position of the sub-buffer that it lies in.
    [[nodiscard]] position place() const noexcept {
        const std::size_t at = forward_ == ready() ? next_ - 1 : next_;
        return links_.empty() ? no_position : links_[(std::min)(at, links_.size() - 1)].pos;
    }
    /// A time up to which records are known to be there.
    [[nodiscard]] std::uint64_t newest_time() const noexcept {
        std::uint64_t newest = list_.empty() ? 0 : list_.newest_time();
        for (std::size_t i = next_; i < links_.size(); ++i)
            newest = (std::max)(newest, links_[i].base_time);
        return newest;
    }
    [[nodiscard]] position newest_known() const noexcept {
        return links_.empty() ? no_position : links_.back().pos;
    }
    void stop_following() noexcept { follow_ = false; }

    /// Decodes the next sub-buffer that can be read, and the losses before it (backward: after it).
    /// Afterwards `ready()`, or there is nothing more (when following: for now). Memory comes from
    /// `pool` and returns to it.
    void load(std::vector<entry_list>& pool) {
        if (!pool.empty() && !has_memory_) {
            list_ = std::move(pool.back());
            pool.pop_back();
        }
        has_memory_ = true;
        list_.clear();
        if (forward_ && (tail_open_ || has_grown())) read_on();
        while (list_.empty() && (forward_ ? next_ < links_.size() : next_ > 0)) {
            const auto& link = links_[forward_ ? next_++ : --next_];
            if (!read(link)) continue;
            if (const edge here = begin_of(); forward_) {
                gap(edge_, here);
                decode(link);
                edge_ = end_of(here);
                tail_open_ = may_grow();
            } else {
                decode(link);
                gap(end_of(here), edge_);
                edge_ = here;
            }
            missing_.clear();
        }
        if (!follow_ && list_.empty()) tail_open_ = false;  // no later sub-buffer can be read
        if (list_.empty() && !finished_ && !tail_open_) {
            forward_ ? gap(edge_, std::nullopt) : gap(std::nullopt, edge_);
            missing_.clear();
            finished_ = !follow_;
        }
        list_.rewind(way_);
        if (list_.empty()) {
            pool.push_back(std::exchange(list_, {}));
            has_memory_ = false;
        }
    }

    /// The entries of the sub-buffer read last; good until the next `load`.
    [[nodiscard]] entry_list& entries() noexcept { return list_; }

private:
    friend struct known_lane;
    [[nodiscard]] std::uint64_t lonely_time() const noexcept {
        if (lane_ == nullptr) return forward_ || finished_ ? 0 : ~std::uint64_t{0};
        return lane_->ended != 0 ? lane_->ended : lane_->began;
    }
    /// The sub-buffer just read may get more records, or has got them if there is one after it.
    [[nodiscard]] bool may_grow() const noexcept {
        return (follow_ || next_ < links_.size()) && sound_ &&
               list_.head().state.state == static_cast<unsigned>(sub_buffer_state::active);
    }
    /// Whether the sub-buffer read last is still there and has more than `records` records.
    [[nodiscard]] bool last_has_more(std::uint32_t records) const noexcept {
        return next_ != 0 && chain_scan(*in_).has_more(lane_->number, links_[next_ - 1], records);
    }
    /// Another thread has recorded in the sub-buffer that was read last.
    [[nodiscard]] bool has_grown() const noexcept {
        return followed_ && sound_ && next_ != 0 && edge_ && edge_->self == links_[next_ - 1].pos &&
               last_has_more(consumed_);
    }
    void lose(loss_cause cause, std::uint64_t count, position at, std::uint64_t time,
              std::uint64_t offset = 0, std::string_view what = {}) {
        if (early_.has_all(cause, count)) return;
        reported_.add(cause, count);
        list_.add(loss_item{cause, count, at, lane_, time, offset, what});
    }

    [[nodiscard]] bool copy(const chain_link& link) {
        const bool ahead = ahead_ != nullptr && link.era == 0;  // read_ahead decodes era 0 only
        const bool made = ahead && ahead_->take(lane_->number, link.pos, list_);
        result_ = made ? copy_result::copied : list_.copy(*in_, link.slot);
        const auto& head = list_.head();
        if (result_ != copy_result::copied) return false;
        list_.be_of(in_->time().eras(), link.era);
        return head.state.pos == link.pos &&
               (head.lane == lane_->number || link.fault != link_fault::none);
    }
    [[nodiscard]] bool read(const chain_link& link) {
        hole here = hole_of(link, in_->plan());
        if (link.readable) {
            if (copy(link)) return true;
            here.was_not_copied(result_, list_.offset());
        }
        if (!here.known) here.refused = 0;
        missing_.push_back(here);
        return false;
    }

    /// The sub-buffer that is read next.
    [[nodiscard]] prefetcher next_one() const noexcept {
        if (forward_ ? next_ == links_.size() : next_ == 0) return {};
        const auto& plan = in_->plan();
        return in_->bytes().prefetch(plan.bytes_for(links_[forward_ ? next_ : next_ - 1].slot),
                                     plan.sub_buffer_bytes, !forward_);
    }

    /// The beginning of the sub-buffer just copied. Its records must fit between its neighbours':
    /// if they do not, and the neighbours agree with each other, its header is wrong.
    [[nodiscard]] edge begin_of() {
        constexpr position unknown = ~position{0};
        const auto& head = list_.head();
        const position records = head.records;
        const chain_link* other = neighbour(head.first_position + records);
        const position other_end = other == nullptr ? 0 : other->first + other->records;
        position low = start_.value_or(0);
        position high = unknown;
        bool after_low = false;    // nothing can lie between `low` and the sub-buffer,
        bool before_high = false;  // or between the sub-buffer and `high`
        if (forward_) {
            if (edge_) low = edge_->at;
            after_low = edge_ && edge_->whole && head.previous == edge_->self;
            if (other != nullptr) high = other->first;
        } else {
            if (edge_) high = edge_->at;
            before_high =
                edge_ && !list_.was_open() && edge_->previous == head.state.pos && high >= records;
            if (other != nullptr) low = other_end;
            // Of one that was open when it was copied, as in a snapshot, the end is not known.
            after_low = !edge_ && other != nullptr && head.previous == other->pos &&
                        other->last_time != ~std::uint64_t{0};
        }
        if (high < records || high - records < low)
            (forward_ ? high : low) = forward_ ? unknown : 0;
        first_ = head.first_position;
        if (after_low) {
            first_ = low;
        } else if (before_high) {
            first_ = high - records;
        } else if (first_ < low || first_ > high || high - first_ < records ||
                   first_ > most_records) {
            first_ = high == unknown ? low : high < records ? 0 : high - records;
        }
        misplaced_ = first_ != head.first_position;
        return {first_, head.base_time, head.state.pos, head.previous, list_.offset()};
    }
    /// The link read next, if its positions are known. The index has no positions, and a first look
    /// at a live file may be wrong, or have seen the sub-buffer open: then the header is read now.
    [[nodiscard]] const chain_link* neighbour(position end) noexcept {
        if (forward_ ? next_ == links_.size() : next_ == 0) return nullptr;
        auto& link = links_[forward_ ? next_ : next_ - 1];
        const bool again = forward_ ? link.first < end : link.commit == 0;
        if (link.positions_known ? again : link.readable)
            link.positions_known = chain_scan(*in_).complete(lane_->number, link);
        return link.positions_known ? &link : nullptr;
    }
    [[nodiscard]] edge end_of(const edge& begin) const noexcept {
        return {first_ + list_.head().records,
                (std::max)(last_time_, begin.time),
                begin.self,
                no_position,
                list_.offset(),
                !list_.was_open()};
    }

    /// Decodes the entries of the sub-buffer just copied.
    void decode(const chain_link& link) {
        const auto& head = list_.head();
        const auto wrong = [&](std::uint64_t offset, std::string_view what) {
            lose(loss_cause::damaged, 0, first_, head.base_time, offset, what);
        };
        if (link.fault != link_fault::none) {
            wrong(link.fault_offset(in_->plan()), to_string(link.fault));
        }
        if (misplaced_) {
            wrong(list_.offset() + offsetof(sub_buffer_header, first_position),
                  "a sub-buffer whose records are at an impossible place in their lane");
        }
        if (head.end_time != 0 && head.end_time < head.base_time) {
            wrong(list_.offset() + offsetof(sub_buffer_header, base_time),
                  "a sub-buffer that ends before it begins");
        }
        if (head.refused != 0) lose(loss_cause::refused, head.refused, first_, head.base_time);
        seen_too_long_ = 0;
        seen_nested_ = 0;
        last_time_ = head.base_time;
        decode_from(0);
    }
    void decode_from(std::uint32_t from) {
        const auto& head = list_.head();
        const auto end = list_.walk(*in_, *lane_, first_, from, last_time_, next_one(), unpack_);
        last_time_ = end.last_time;
        consumed_ = end.records;
        sound_ = end.sound;
        const auto grown = [&](loss_cause cause, std::uint32_t now, std::uint32_t& seen) {
            if (now > seen) lose(cause, now - seen, first_ + end.records, last_time_);
            seen = now;
        };
        grown(loss_cause::too_long, head.too_long, seen_too_long_);
        grown(loss_cause::nested, head.nested, seen_nested_);
    }

    /// Following: decodes the records that were added to the sub-buffer read last.
    void read_on() {
        tail_open_ = false;
        if (copy(links_[next_ - 1]) && list_.head().records >= consumed_) {
            decode_from(consumed_);
            edge_->at = first_ + list_.head().records;
            edge_->time = (std::max)(edge_->time, last_time_);
            edge_->whole = !list_.was_open();
            tail_open_ = may_grow();
        } else {
            const position at = first_ + consumed_;
            missing_.push_back({loss_cause::overrun, true, at, at, 0, {}, 0});
            edge_->self = no_position;  // it may have held more: the next need not follow directly
        }
    }

    /// Adds the losses between two sub-buffers: nullopt is before the first or after the last.
    void gap(const std::optional<edge>& before, const std::optional<edge>& after) {
        if (!forward_) std::reverse(missing_.begin(), missing_.end());
        const std::uint64_t time = after ? after->time : before ? before->time : lonely_time();
        const bool at_end = !after && !cut_end_;
        if (!before && !cut_begin_) flush(first_notes_, time);
        position at = before ? before->at : start_.value_or(cut_begin_ && after ? after->at : 0);
        const position end = (std::max)(at, after ? after->at : at_end ? tail_end(before, at) : at);
        // Records that sessions consumed are not missing.
        if (lane_ != nullptr) at = (std::max)(at, (std::min)(end, lane_->drained));
        if (missing_.empty() && at < end) {
            const chain_link* stray =
                after && strays_ != nullptr
                    ? find_stray(*strays_, after->previous, in_->plan().sub_buffer_limit)
                    : nullptr;
            if (stray != nullptr) {
                lose(loss_cause::damaged, end - at, at, time, stray->fault_offset(in_->plan()),
                     to_string(stray->fault));
            } else {  // overrun: the sub-buffer before was open when it was copied
                const bool late =
                    before && after && !before->whole && after->previous == before->self;
                lose(late ? loss_cause::overrun : loss_cause::overwritten, end - at, at, time);
            }
        }
        for (std::size_t i = 0; i < missing_.size(); ++i) {
            const hole& lost = missing_[i];
            const position from = lost.known ? std::clamp(lost.first, at, end) : at;
            if (from > at) lose(loss_cause::overwritten, from - at, at, time);
            if (lost.refused != 0) lose(loss_cause::refused, lost.refused, from, time);
            const hole* next = i + 1 < missing_.size() ? &missing_[i + 1] : nullptr;
            at = lost.end_before(next, from, end);
            if (at > from || lost.cause == loss_cause::damaged) {
                lose(lost.cause, at - from, from, time, lost.offset, lost.what);
            }
        }
        if (before && after && after->time < before->time)
            list_.add(
                clock_jump{lane_, after->at, before->time, after->time, after->offset, 0, false});
        if (!at_end) return;
        flush(last_notes_, time);
        if (follow_ && end > 0) {  // the next sub-buffer must not report the same gap again
            if (!edge_) edge_ = edge{end, time, no_position, no_position, 0};
            edge_->at = (std::max)(edge_->at, end);
            if (!missing_.empty()) edge_->self = no_position;
        }
    }
    void flush(std::vector<note_type>& notes, std::uint64_t time) {
        for (auto& note : notes) {
            if (auto* const loss = std::get_if<loss_item>(&note)) {
                loss->time = lane_ != nullptr ? time : 0;
                reported_.add(loss->cause, loss->count);
            }
            list_.add(note);
        }
        notes.clear();
    }

    /// Where the lane's records end; all up to `before` are read.
    [[nodiscard]] position tail_end(const std::optional<edge>& before, position at) const noexcept {
        position end = at;
        for (const auto& lost : missing_) {
            if (lost.known) end = (std::max)(end, lost.end);
        }
        if (lane_ == nullptr || !lane_->listed) return end;
        // Following: another thread may have recorded in the last one, and others overwritten it.
        const bool whole = before && newest_ <= before->self && (!followed_ || last_has_more(0));
        return whole ? end : (std::max)(end, written_);
    }

    const tables* in_;
    const lane_info* lane_;
    direction way_;
    bool forward_, follow_, followed_, unpack_;    // followed_: as constructed; follow_: still
    bool finished_ = false, tail_open_ = false;    // the last one read is open: it may have grown
    bool cut_begin_ = false, cut_end_ = false;     // trimmed: links beyond are not wanted
    position newest_ = no_position, written_ = 0;  // the lane's, when its sub-buffers were listed
    std::optional<position> start_{};              // where the first link should begin, if known
    std::vector<chain_link> links_{};
    std::size_t next_ = 0;        // forward: link to be read next; backward: one behind it
    std::optional<edge> edge_{};  // forward: the end of the last one read; backward: its beginning
    std::vector<hole> missing_{};
    std::vector<note_type> first_notes_{}, last_notes_{};
    const std::vector<chain_link>* strays_ = nullptr;
    read_ahead* ahead_ = nullptr;
    loss_counts reported_{};  // losses given out so far, or about to be
    early_losses early_{};

    entry_list list_{};  // of the sub-buffer that is decoded
    bool has_memory_ = false, misplaced_ = false, sound_ = true;
    copy_result result_ = copy_result::vacant;
    position first_ = 0;
    std::uint64_t last_time_ = 0;
    std::uint32_t consumed_ = 0, seen_too_long_ = 0, seen_nested_ = 0;
};

}  // namespace trace_ring::inline v1::reduce
