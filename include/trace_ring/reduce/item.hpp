// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The items that a cursor returns: records, and losses and clock jumps in their places. Items are
/// views: they are valid until the next call of the cursor.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <variant>

#include <trace_ring/reduce/item/record_view.hpp>

namespace trace_ring::inline v1::reduce {

/// Records in a row, all of one lane, one event and one length: a range to iterate over once. All
/// of it is good until the cursor is asked again. A cursor's `next()` keeps its place in memory, so
/// each call waits for the one before it; a loop over a run keeps its place in registers.
/// @code
///   for (const trace_ring::reduce::record_view& record : cursor.records()) use(record);
/// @endcode
class record_run {
public:
    class iterator {
    public:
        using iterator_concept = std::input_iterator_tag;
        using difference_type = std::ptrdiff_t;
        using value_type = record_view;

        iterator() = default;
        [[nodiscard, gnu::always_inline]] const record_view& operator*() const noexcept {
            return record_;
        }
        [[nodiscard]] const record_view* operator->() const noexcept { return &record_; }
        [[gnu::always_inline]] iterator& operator++() noexcept {
            if (--left_ != 0) record_.step(stride_, positions_);
            return *this;
        }
        iterator operator++(int) noexcept {
            const iterator before = *this;
            ++*this;
            return before;
        }
        [[nodiscard, gnu::always_inline]] friend bool operator==(const iterator& it,
                                                                 std::default_sentinel_t) noexcept {
            return it.left_ == 0;
        }

    private:
        friend class record_run;
        iterator(const record_view& record, std::size_t left, std::ptrdiff_t stride,
                 std::ptrdiff_t positions) noexcept
            : record_(record), left_(left), stride_(stride), positions_(positions) {}
        record_view record_{};
        std::size_t left_ = 0;
        std::ptrdiff_t stride_ = 0;     // in words
        std::ptrdiff_t positions_ = 0;  // 1 or -1
    };

    record_run() = default;
    /// The `count` records after `before`.
    record_run(const record_view& before, std::size_t count, std::ptrdiff_t stride,
               std::ptrdiff_t positions) noexcept
        : first_(before, count, stride, positions) {
        if (count != 0) first_.record_.step(stride, positions);
    }

    /// `count` records, the first of which is `first`.
    [[nodiscard]] static record_run of(const record_view& first, std::size_t count,
                                       std::ptrdiff_t stride, std::ptrdiff_t positions) noexcept {
        record_run made;
        made.first_ = {first, count, stride, positions};
        return made;
    }

    [[nodiscard]] std::size_t size() const noexcept { return first_.left_; }
    [[nodiscard]] bool empty() const noexcept { return size() == 0; }
    /// The first record. The run must not be empty.
    [[nodiscard]] const record_view& front() const noexcept { return first_.record_; }
    /// The last record. The run must not be empty.
    [[nodiscard]] record_view back() const noexcept { return (*this)[empty() ? 0 : size() - 1]; }
    /// Record `i`.
    [[nodiscard]] record_view operator[](std::size_t i) const noexcept {
        record_view one = first_.record_;
        const auto steps = static_cast<std::ptrdiff_t>(i);
        one.step(first_.stride_ * steps, first_.positions_ * steps);
        return one;
    }
    /// The distance from one record to the next in memory, in bytes; negative when reading
    /// backward. All have one length, and the upper halves of their times are equal.
    [[nodiscard]] std::ptrdiff_t stride() const noexcept { return first_.stride_ * 8; }
    [[nodiscard]] iterator begin() const noexcept { return first_; }
    [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

private:
    iterator first_{};
};

/// Records that are missing, in the place where they would be.
struct loss_item {
    loss_cause cause = loss_cause::overwritten;
    std::uint64_t count = 0;  ///< 0: damaged, and the number is not known
    position at = 0;          ///< in the lane, of the first that is lost, or of the next record
    const lane_info* lane = nullptr;  ///< null: lost before they had a lane, or with it
    std::uint64_t time = 0;           ///< its place among the others: not before this
    std::uint64_t offset = 0;         ///< damaged: the offset in the file
    /// Damaged: the fault there. Lost for want of a lane: the options that would be enough.
    std::string_view what;
};

/// The clock jumped. With a lane: the lane's time goes back, as the clock was set back or stopped,
/// or the file is damaged; the records stay in the order in which they were written. Without a
/// lane: the clocks jumped between two readings of them (tables/timeline.hpp), as the date was set,
/// or the machine slept or started again. It is not known when in the interval; dates jump at its
/// end.
struct clock_jump {
    const lane_info* lane = nullptr;
    position at = 0;         ///< of the record that is earlier than the one before it
    std::uint64_t from = 0;  ///< the time of the one before, or the interval's begin
    std::uint64_t time = 0;  ///< the record's own, or the interval's end
    std::uint64_t offset = 0;
    std::int64_t step = 0;  ///< without a lane: ns by which dates jump
    bool anew = false;      ///< without a lane: the trace's clock began anew
};

using item = std::variant<record_view, loss_item, clock_jump>;

/// The clock_jump in a variant that holds one. Unlike std::get, it has no code that throws.
template <class Variant>
[[nodiscard]] const clock_jump& jump_in(const Variant& what) noexcept {
    const auto* const jump = std::get_if<clock_jump>(&what);
    if (jump == nullptr) __builtin_unreachable();
    return *jump;
}

[[nodiscard]] inline std::uint64_t time_of(const item& what) noexcept {
    if (const auto* record = std::get_if<record_view>(&what)) return record->time();
    if (const auto* loss = std::get_if<loss_item>(&what)) return loss->time;
    return jump_in(what).time;  // the third of three
}

}  // namespace trace_ring::inline v1::reduce
