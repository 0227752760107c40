// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The items of CPTRAP files that are chosen, from a place on, forward or backward, also as they
/// come. A walk goes to a place by seeking to its spool record. It reads one spool record at a
/// time, and returns to its caller after some hundred that had no chosen item.

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <trace_ring/cptrap/spool_reader.hpp>

#include "spool_choice.hpp"
#include "spools.hpp"

namespace trace_reduce::browse {

class spool_walk {
public:
    enum class step {
        item,         ///< `item` is the next one
        end,          ///< there is none in this direction
        passed_over,  ///< many spool records without one were read: call it again
    };

    /// Both must outlive it. Begins at the first item.
    spool_walk(spools& of, const spool_choice& what) : of_(of), what_(what) {
        load(0, of_[0].first());
    }

    /// Moves before the item at `at`, or before the next one that is shown.
    void go_to(const spool_position& at) {
        const auto& file = of_[at.file];
        load(at.file, std::clamp(at.page, file.first(), file.end()));
        if (page_ == at.page) pass(at.index);
    }
    /// Moves behind the items that file `file` has now. From then on the walk stays in this file,
    /// returns items as they come, and leaves out a torn end, which may become whole.
    void await(std::size_t file) {
        awaits_ = true;
        const std::uint64_t end = of_[file].end();
        load(file, end == 0 ? 0 : end - 1);
        pass(count_);
    }
    /// The same, from `at` on.
    void await(const spool_position& at) {
        awaits_ = true;
        load(at.file, at.page);
        pass(at.index);
    }

    [[nodiscard]] step next() {
        for (;;) {
            if (index_ < items_.size()) {
                item_ = items_[index_++];
                passed_index_ = item_.index + 1;
                passed_pages_ = 0;
                return step::item;
            }
            const auto& file = of_[file_];
            if (awaits_ && file.bytes() != bytes_) {  // a torn spool record may be longer now
                const std::size_t before = passed_index_;
                load(file_, page_);
                pass(before);
            } else if (whole_ && page_ + 1 < file.end()) {
                load(file_, page_ + 1);
            } else if (!awaits_ && file_ + 1 < of_.size()) {
                load(file_ + 1, of_[file_ + 1].first());
            } else {
                return step::end;
            }
            if (pauses()) return step::passed_over;
        }
    }
    [[nodiscard]] step previous() {
        for (;;) {
            if (index_ > 0) {
                item_ = items_[--index_];
                passed_pages_ = 0;
                return step::item;
            }
            const auto& file = of_[file_];
            if (const auto page = std::min(page_, file.end()); page > file.first()) {
                load(file_, page - 1);
            } else if (file_ > 0) {
                load(file_ - 1, of_[file_ - 1].end());
            } else {
                return step::end;
            }
            index_ = items_.size();
            if (pauses()) return step::passed_over;
        }
    }

    /// The item that the last step found. Its bytes are valid until the next step.
    [[nodiscard]] const reduce::spool_item& item() const noexcept { return item_; }
    [[nodiscard]] spool_position position() const noexcept {
        return {file_, item_.number, item_.index};
    }
    /// The share of the bytes of all files that lies before this place, in per cent.
    [[nodiscard]] double percent() const noexcept { return of_.percent_before(file_, page_); }

private:
    static constexpr std::size_t pages_between = 256;
    /// A reader that is to stop still reads the spool record that it was sent to, but no other.
    static inline const volatile std::sig_atomic_t stops = 1;

    [[nodiscard]] bool pauses() { return items_.empty() && ++passed_pages_ % pages_between == 0; }
    /// Moves behind the items of this spool record whose number is less.
    void pass(std::size_t index) {
        while (index_ < items_.size() && items_[index_].index < index) ++index_;
        passed_index_ = index;
    }
    /// Reads a spool record, which may not exist, and moves before its first item.
    void load(std::size_t file, std::uint64_t page) {
        const auto& of = of_[file];
        if (!reader_ || file != file_) {
            reader_.emplace(of.source());
            reader_->stop_when(stops);
            reader_->lengths(of_.lengths());
        }
        file_ = file;
        page_ = page;
        bytes_ = of.bytes();
        whole_ = page < bytes_ / record::spool_record_bytes;
        items_.clear();
        index_ = passed_index_ = count_ = 0;
        reader_->go_to(page);
        while (const auto one = reader_->next()) {
            if (one.number != page) break;  // the file is shorter now
            if (one.what == reduce::spool_item::kind::torn) {
                whole_ = false;
                if (awaits_) continue;
            }
            ++count_;
            if (of.range().before(one) || of.range().after(one)) continue;
            of_.note(file, one);
            if (what_.takes(one)) items_.push_back(one);
        }
        if (count_ == 0 && whole_) of_.note_zeros(file, page);
    }

    spools& of_;
    const spool_choice& what_;
    std::optional<reduce::spool_reader> reader_{};
    std::size_t file_ = 0;
    std::uint64_t page_ = 0;
    std::uint64_t bytes_ = 0;                  ///< of the file when `page_` was read
    bool whole_ = false;                       ///< `page_` was not torn, and not beyond the end
    std::vector<reduce::spool_item> items_{};  ///< those of `page_` that are shown
    std::size_t index_ = 0;                    ///< in `items_`, of the one after this place
    std::size_t count_ = 0;         ///< items of `page_`, without a torn end when awaiting
    std::size_t passed_index_ = 0;  ///< of the item of `page_` after this place
    std::size_t passed_pages_ = 0;
    bool awaits_ = false;
    reduce::spool_item item_{};
};

}  // namespace trace_reduce::browse
