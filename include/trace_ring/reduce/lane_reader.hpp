// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// One lane, read in either direction. A sub-buffer at a time is copied and walked once into an
/// array of entries: its records and, between them, what is not there. Reading the array from its
/// end is reading backward, at the same price.
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
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include <trace_ring/loss.hpp>
#include <trace_ring/reduce/chains.hpp>
#include <trace_ring/reduce/item.hpp>
#include <trace_ring/reduce/tables.hpp>
#include <trace_ring/ring/sub_buffer.hpp>

namespace trace_ring::inline v1::reduce {

enum class direction { forward, backward };

/// Memory for one decoded sub-buffer, lent to a lane while it needs it.
struct decoded {
    std::vector<std::uint64_t> words;
    std::vector<std::uint64_t> times;  ///< of each entry
    std::vector<std::uint32_t> whats;  ///< where a record begins, in words; or a note's number
};

class lane_reader {
public:
    /// `lane` null: for losses that concern no lane. `follow` (forward only): when all is read,
    /// more may come.
    lane_reader(const tables& in, const lane_info* lane, direction way, bool follow) noexcept
        : in_(&in), lane_(lane), forward_(way == direction::forward), follow_(follow) {}

    [[nodiscard]] const lane_info* lane() const noexcept { return lane_; }

    /// What was lost that no sub-buffer tells of: before the first record, or after the last.
    void add_unplaced(bool before_all, const loss_item& loss) {
        (before_all ? first_notes_ : last_notes_).push_back(loss);
    }
    /// Damaged sub-buffers of unknown lanes, to be blamed for gaps; kept by the caller.
    void blame(const std::vector<chain_link>& strays) noexcept { strays_ = &strays; }

    /// Sub-buffers, oldest first; in follow mode, newer ones than before.
    void add(std::span<const chain_link> links) {
        if (follow_ && next_ > 1) {  // all but the last one read, which may be open, are done with
            links_.erase(links_.begin(), links_.begin() + static_cast<std::ptrdiff_t>(next_ - 1));
            next_ = 1;
        }
        links_.insert(links_.end(), links.begin(), links.end());
        if (!forward_) next_ = links_.size();
    }
    /// Losses given out so far, by cause.
    [[nodiscard]] const loss_counts& told() const noexcept { return told_; }
    /// No more will come.
    void stop_following() noexcept { follow_ = tail_open_ = false; }
    /// Records up to this time have been seen to be there.
    [[nodiscard]] std::uint64_t newest_time() const noexcept {
        std::uint64_t newest = memory_.times.empty() ? 0 : memory_.times.back();
        for (std::size_t i = next_; i < links_.size(); ++i) {
            newest = std::max(newest, links_[i].base_time);
        }
        return newest;
    }
    [[nodiscard]] position newest_known() const noexcept {
        return links_.empty() ? no_position : links_.back().pos;
    }

    /// Leaves out sub-buffers that have nothing in [from, to], by binary search: within a lane time
    /// does not go back. Before the first `load`.
    void trim(std::uint64_t from, std::uint64_t to, const chain_scan& scan) {
        const auto after = [](std::uint64_t time, const chain_link& l) {
            return time < l.base_time;
        };
        auto last = std::upper_bound(links_.begin(), links_.end(), to, after);
        if (last != links_.end()) {
            links_.erase(last, links_.end());
            cut_end_ = true;
        }
        auto first = std::upper_bound(links_.begin(), links_.end(), from, after);
        if (first != links_.begin()) --first;
        if (first != links_.begin()) {
            auto& before = *(first - 1);
            cut_begin_ = true;
            if (before.positions_known || scan.complete(lane_->number, before)) {
                start_ = before.first + before.records;
            }
            links_.erase(links_.begin(), first);
        }
        for (auto& link : links_) {
            if (!link.positions_known && link.readable) (void)scan.complete(lane_->number, link);
        }
        next_ = forward_ ? 0 : links_.size();
    }

    /// An entry is there to be taken.
    [[nodiscard]] bool ready() const noexcept {
        return forward_ ? at_ < memory_.whats.size() : at_ > 0;
    }
    /// Nothing more to load, for now if it follows.
    [[nodiscard]] bool finished() const noexcept { return finished_; }
    /// The time by which this lane's next entry is merged: its own if it is ready, else a bound
    /// that it does not precede (forward) or exceed (backward).
    [[nodiscard]] std::uint64_t key() const noexcept {
        if (ready()) return memory_.times[forward_ ? at_ : at_ - 1];
        if (forward_) {
            if (next_ < links_.size()) return links_[next_].base_time;
            return edge_ ? edge_->time : lonely_time();
        }
        const std::uint64_t bound = edge_ ? edge_->time : ~std::uint64_t{0};
        if (next_ > 0) return std::min(bound, links_[next_ - 1].last_time);
        return edge_ ? bound : lonely_time();
    }

    /// Decodes the next sub-buffer that can be read, and what is missing before it (backward: after
    /// it). Afterwards `ready()`, or there was nothing.
    void load(std::vector<decoded>& pool) {
        clear(pool);
        if (finished_) return;
        if (forward_ && tail_open_) read_on();
        while (!ready_to_take() && (forward_ ? next_ < links_.size() : next_ > 0)) {
            const auto& link = links_[forward_ ? next_++ : --next_];
            if (!read(link)) continue;
            const edge here = begin_of(link);
            if (forward_) {
                gap(edge_, here);
                decode(0);
                edge_ = end_of(here);
                tail_open_ =
                    follow_ && copy_.state.state == static_cast<unsigned>(sub_buffer_state::active);
            } else {
                decode(0);
                gap(end_of(here), edge_);
                edge_ = here;
            }
            missing_.clear();
        }
        if (!ready_to_take()) {
            if (forward_ && !tail_open_) gap(edge_, std::nullopt);
            if (!forward_) gap(std::nullopt, edge_);
            missing_.clear();
            finished_ = !follow_;
        }
        at_ = forward_ ? 0 : memory_.whats.size();
        if (memory_.whats.empty()) clear(pool);
    }

    /// Moves the entry that is ready into `out`. Views in it are good until the next `load`.
    void take(item& out) {
        const std::size_t i = forward_ ? at_++ : --at_;
        const std::uint32_t what = memory_.whats[i];
        if ((what & note_bit) != 0) {
            const auto& note = notes_[what & ~note_bit];
            if (const auto* loss = std::get_if<loss_item>(&note)) {
                out.emplace<loss_item>(*loss);
            } else {
                out.emplace<clock_jump>(std::get<clock_jump>(note));
            }
            return;
        }
        const std::uint64_t ordinal = forward_ ? ordinal_++ : --ordinal_;
        const auto header = static_cast<std::uint32_t>(memory_.words[what] >> 32);
        const std::span<const std::uint64_t> words{memory_.words.data() + what,
                                                   record_word::bytes(header) / 8};
        out.emplace<record_view>(words, memory_.times[i], first_ + ordinal, *lane_,
                                 in_->type_of(*lane_, record_word::id(header)),
                                 offset_ + std::uint64_t{what} * 8);
    }

    void clear(std::vector<decoded>& pool) {
        memory_.times.clear();
        memory_.whats.clear();
        notes_.clear();
        at_ = 0;
        if (!memory_.words.empty()) {
            pool.push_back(std::move(memory_));
            memory_ = {};
        }
        pool_ = &pool;
    }

private:
    static constexpr std::uint32_t note_bit = std::uint32_t{1} << 31;

    /// Where the records of a sub-buffer begin or end.
    struct edge {
        trace_ring::position position = 0;
        std::uint64_t time = 0;
        trace_ring::position previous = no_position;  // beginnings: the lane's sub-buffer before
        trace_ring::position self = no_position;      // of the sub-buffer
        std::uint64_t offset = 0;                     // of the sub-buffer
    };
    /// A sub-buffer that was to be read and could not be.
    struct hole {
        const chain_link* link;
        loss_cause cause;
        bool known;  // where it begins
        std::uint64_t first;
        std::uint64_t end;
        std::string_view what;
        std::uint64_t offset;
    };

    [[nodiscard]] bool ready_to_take() const noexcept { return !memory_.whats.empty(); }
    [[nodiscard]] std::uint64_t lonely_time() const noexcept {
        return lane_ == nullptr ? 0 : lane_->ended != 0 ? lane_->ended : lane_->began;
    }

    void note(std::uint64_t time, std::variant<loss_item, clock_jump> what) {
        memory_.times.push_back(time);
        memory_.whats.push_back(note_bit | static_cast<std::uint32_t>(notes_.size()));
        notes_.push_back(what);
    }
    void note_loss(loss_cause cause, std::uint64_t count, position at, std::uint64_t time,
                   std::uint64_t offset = 0, std::string_view what = {}) {
        told_.add(cause, count);
        note(time, loss_item{cause, count, at, lane_, time, offset, what});
    }

    [[nodiscard]] bool copy(const chain_link& link) {
        const std::size_t words = in_->plan().sub_buffer_bytes / 8;
        if (memory_.words.empty() && !pool_->empty()) {
            memory_ = std::move(pool_->back());
            pool_->pop_back();
        }
        memory_.words.resize(words);
        offset_ = in_->plan().bytes_for(link.slot);
        result_ = in_->bytes().copy(offset_, memory_.words, copy_);
        return result_ == copy_result::copied && copy_.state.pos == link.pos &&
               (copy_.lane == lane_->number || !link.fault.empty());
    }

    [[nodiscard]] bool read(const chain_link& link) {
        hole here{&link,
                  loss_cause::damaged,
                  link.positions_known,
                  link.first,
                  link.first + link.records,
                  link.fault,
                  link.fault_offset};
        if (link.readable) {
            if (copy(link)) return true;
            here.cause = loss_cause::overrun;
            if (result_ == copy_result::damaged ||
                (result_ == copy_result::copied && copy_.state.pos <= link.pos)) {
                here.cause = loss_cause::damaged;
                here.what = "a sub-buffer that cannot be read";
                here.offset = offset_;
            }
        }
        missing_.push_back(here);
        return false;
    }

    /// The beginning of the sub-buffer just copied. Its position must fit between its neighbours'.
    [[nodiscard]] edge begin_of(const chain_link& link) {
        const std::uint64_t records = copy_.records;
        // The neighbour's position is from a first look, which in a live file may have been wrong.
        if (forward_ && next_ < links_.size() && links_[next_].positions_known &&
            links_[next_].first - copy_.first_position < records) {
            links_[next_].positions_known = chain_scan(*in_).complete(lane_->number, links_[next_]);
        }
        std::uint64_t low = 0;
        std::uint64_t high = ~std::uint64_t{0};
        if (forward_) {
            low = edge_ ? edge_->position : start_.value_or(0);
            if (next_ < links_.size() && links_[next_].positions_known) {
                high = links_[next_].first;
            } else if (next_ == links_.size() && copy_.first_position > low) {
                high = in_->written_now(*lane_, copy_.first_position) + records;
            }
            if (high < records || high - records < low) high = ~std::uint64_t{0};
        } else {
            high =
                edge_ ? edge_->position : in_->written_now(*lane_, copy_.first_position) + records;
            if (next_ > 0 && links_[next_ - 1].positions_known) {
                low = links_[next_ - 1].first + links_[next_ - 1].records;
            }
            if (high < records || high - records < low) low = 0;
        }
        first_ = copy_.first_position;
        misplaced_ = first_ < low || first_ > high || high - first_ < records;
        if (misplaced_) {
            const bool follows = forward_ && edge_ && copy_.previous == edge_->self;
            first_ = follows || high == ~std::uint64_t{0} || high < records ? low : high - records;
        }
        lane_fault_ = link.fault;
        lane_fault_offset_ = link.fault_offset;
        return {first_, copy_.base_time, copy_.previous, copy_.state.pos, offset_};
    }
    [[nodiscard]] edge end_of(const edge& begin) const noexcept {
        return {first_ + copy_.records, std::max(last_time_, begin.time), no_position, begin.self,
                offset_};
    }

    /// The entries of the sub-buffer just copied, from record `from` on.
    void decode(std::uint32_t from) {
        const std::uint64_t base = copy_.base_time;
        if (from == 0) {
            seen_too_long_ = 0;
            seen_nested_ = 0;
            last_time_ = base;
            const auto wrong = [&](std::size_t at, std::string_view what) {
                note_loss(loss_cause::damaged, 0, first_, base, offset_ + at, what);
            };
            if (!lane_fault_.empty()) wrong(lane_fault_offset_ - offset_, lane_fault_);
            if (misplaced_) {
                wrong(offsetof(sub_buffer_header, first_position),
                      "a sub-buffer whose records overlap others");
            }
            if (copy_.end_time != 0 && copy_.end_time < base) {
                wrong(offsetof(sub_buffer_header, base_time),
                      "a sub-buffer that ends before it begins");
            }
            if (copy_.refused != 0) note_loss(loss_cause::refused, copy_.refused, first_, base);
        }
        std::uint32_t count = 0;
        const std::uint32_t broken = walk_records(
            memory_.words, copy_, [&](std::uint32_t word, std::uint64_t time, std::uint32_t) {
                if (count++ < from) return;
                if (time < last_time_) {
                    note(time, clock_jump{lane_, first_ + count - 1, last_time_, time,
                                          offset_ + std::uint64_t{word} * 8});
                }
                last_time_ = time;
                memory_.times.push_back(time);
                memory_.whats.push_back(word);
            });
        if (broken != 0) {
            note_loss(loss_cause::damaged, copy_.records - count, first_ + count, last_time_,
                      offset_ + broken, "records that contradict their sub-buffer");
        }
        ordinal_ = forward_ ? from : count;
        consumed_ = count;
        const auto grown = [&](loss_cause cause, std::uint32_t now, std::uint32_t& seen) {
            if (now > seen) note_loss(cause, now - seen, first_ + count, last_time_);
            seen = now;
        };
        grown(loss_cause::too_long, copy_.too_long, seen_too_long_);
        grown(loss_cause::nested, copy_.nested, seen_nested_);
    }

    /// Following: what was added to the sub-buffer that was open when it was read last.
    void read_on() {
        const auto& link = links_[next_ - 1];
        tail_open_ = false;
        if (copy(link) && copy_.records >= consumed_) {
            decode(consumed_);
            edge_->position = first_ + copy_.records;
            edge_->time = std::max(edge_->time, last_time_);
            tail_open_ = copy_.state.state == static_cast<unsigned>(sub_buffer_state::active);
        } else {
            const std::uint64_t at = first_ + consumed_;
            missing_.push_back({&link, loss_cause::overrun, true, at, at, {}, 0});
        }
    }

    /// What is missing between two sub-buffers: nothing before the first or after the last.
    void gap(const std::optional<edge>& before, const std::optional<edge>& after) {
        if (!forward_) std::reverse(missing_.begin(), missing_.end());
        const std::uint64_t time = after ? after->time : before ? before->time : lonely_time();
        if (!before && !cut_begin_) flush(first_notes_, time);
        std::uint64_t at =
            before ? before->position : start_.value_or(cut_begin_ && after ? after->position : 0);
        std::uint64_t end = after ? after->position : cut_end_ ? at : tail_end(before, at);
        end = std::max(at, end);
        if (missing_.empty() && at < end) {
            const chain_link* culprit = after ? stray_at(after->previous) : nullptr;
            if (culprit != nullptr) {
                note_loss(loss_cause::damaged, end - at, at, time, culprit->fault_offset,
                          culprit->fault);
            } else {
                note_loss(loss_cause::overwritten, end - at, at, time);
            }
            at = end;
        }
        for (std::size_t i = 0; i < missing_.size(); ++i) {
            const hole& lost = missing_[i];
            const std::uint64_t from = lost.known ? std::clamp(lost.first, at, end) : at;
            if (from > at) note_loss(loss_cause::overwritten, from - at, at, time);
            std::uint64_t to = end;
            if (i + 1 < missing_.size() && missing_[i + 1].known) {
                to = std::clamp(missing_[i + 1].first, from, end);
            } else if (i + 1 < missing_.size()) {
                to = lost.known ? std::clamp(lost.end, from, end) : from;
            }
            if (to > from || lost.cause == loss_cause::damaged) {
                note_loss(lost.cause, to - from, from, time, lost.offset, lost.what);
            }
            if (lost.known && lost.link->refused != 0 && !(tail_was(lost))) {
                note_loss(loss_cause::refused, lost.link->refused, from, time);
            }
            at = to;
        }
        if (before && after && after->time < before->time) {
            note(after->time,
                 clock_jump{lane_, after->position, before->time, after->time, after->offset});
        }
        if (!after && !cut_end_) {
            flush(last_notes_, time);
            if (follow_ && end > 0) {
                if (!edge_) edge_ = edge{0, time, no_position, no_position, 0};
                edge_->position = std::max(edge_->position, end);
            }
        }
    }
    [[nodiscard]] static bool tail_was(const hole& lost) noexcept {
        return lost.first != lost.link->first;  // read in part: its header's counts were told
    }
    void flush(std::vector<loss_item>& from, std::uint64_t time) {
        for (auto& loss : from) {
            loss.time = lane_ != nullptr ? time : 0;
            note(loss.time, loss);
        }
        from.clear();
    }

    /// How far the lane's records go, of which all are read up to `before`.
    [[nodiscard]] std::uint64_t tail_end(const std::optional<edge>& before,
                                         std::uint64_t at) const noexcept {
        std::uint64_t end = at;
        for (const auto& lost : missing_) {
            if (lost.known) end = std::max(end, lost.end);
        }
        if (lane_ == nullptr || !lane_->listed) return end;
        const bool whole = before && lane_->newest <= before->self;
        return whole ? end : std::max(end, lane_->written);
    }

    [[nodiscard]] const chain_link* stray_at(position previous) const noexcept {
        if (strays_ == nullptr || previous == no_position) return nullptr;
        const std::uint64_t slot = slot_of(previous, in_->plan().sub_buffer_limit);
        for (const auto& stray : *strays_) {
            if (stray.slot == slot) return &stray;
        }
        return nullptr;
    }

    const tables* in_;
    const lane_info* lane_;
    bool forward_;
    bool follow_;
    bool finished_ = false;
    bool tail_open_ = false;
    bool cut_begin_ = false;
    bool cut_end_ = false;
    std::optional<std::uint64_t> start_;  // position before the first link, where that is known
    std::vector<chain_link> links_;
    std::size_t next_ = 0;
    std::optional<edge> edge_;  // forward: the end of what was read; backward: its beginning
    std::vector<hole> missing_;
    std::vector<loss_item> first_notes_;
    std::vector<loss_item> last_notes_;
    const std::vector<chain_link>* strays_ = nullptr;

    // The sub-buffer that is decoded.
    loss_counts told_;
    std::vector<decoded>* pool_ = nullptr;
    decoded memory_;
    std::vector<std::variant<loss_item, clock_jump>> notes_;
    sub_buffer_copy copy_;
    copy_result result_ = copy_result::vacant;
    std::uint64_t offset_ = 0;
    std::uint64_t first_ = 0;
    std::uint64_t last_time_ = 0;
    std::uint64_t ordinal_ = 0;
    std::uint32_t consumed_ = 0;
    std::uint32_t seen_too_long_ = 0;
    std::uint32_t seen_nested_ = 0;
    bool misplaced_ = false;
    std::string_view lane_fault_;
    std::uint64_t lane_fault_offset_ = 0;
    std::size_t at_ = 0;
};

}  // namespace trace_ring::inline v1::reduce
