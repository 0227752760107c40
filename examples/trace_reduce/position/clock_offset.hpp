// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Estimates by how much the clock of another machine differs, from messages between the two: no
/// message arrives before it was sent.
/// @code
///   here  ----s----------------r----     theirs = here + offset, at any moment
///              \              /
///   there ------r'---------s'-------     r' - s >= offset (the delay is not negative)
///                                        s' - r <= offset
/// @endcode
/// The least r' - s of all messages and the greatest s' - r bound the offset: the tightest pair in
/// each direction, as NTP chooses the exchange with the least delay. The estimate is the middle;
/// its uncertainty is half the width, which is half of the two shortest delays together. Messages
/// in one direction give one bound, for any delays. If the bounds cross, a clock drifted, or some
/// pairs do not belong together.
/// @code
///   trace_reduce::clock_offset offset;
///   offset.forth(sent_here, received_there);
///   offset.back(sent_there, received_here);
///   const std::int64_t here = time_there - offset.ahead();
/// @endcode

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "when.hpp"

namespace trace_reduce {

/// The offset of one clock, in nanoseconds. Constant memory.
class clock_offset {
public:
    /// `uncertainty_ns`: by how much each of the two clocks may have been misread.
    explicit clock_offset(std::uint64_t uncertainty_ns = 0) noexcept
        : widened_(static_cast<std::int64_t>(std::min<std::uint64_t>(uncertainty_ns, most))) {}

    /// A message to the other machine: sent not before `sent` by the clock here, received not after
    /// `received` by the clock there.
    void forth(std::int64_t sent, std::int64_t received) noexcept {
        const std::int64_t bound = impl::plus(impl::minus(received, sent), widened_);
        upper_ = forth_++ == 0 ? bound : (std::min)(upper_, bound);
    }
    /// A message from there: sent by the clock there, received by the clock here.
    void back(std::int64_t sent, std::int64_t received) noexcept {
        const std::int64_t bound = impl::minus(impl::minus(sent, received), widened_);
        lower_ = back_++ == 0 ? bound : (std::max)(lower_, bound);
    }

    /// Messages counted so far.
    [[nodiscard]] std::uint64_t forth() const noexcept { return forth_; }
    [[nodiscard]] std::uint64_t back() const noexcept { return back_; }
    /// How far the other clock is ahead, at most and at least; nothing without such a message.
    [[nodiscard]] std::optional<std::int64_t> at_most() const noexcept {
        return forth_ == 0 ? std::nullopt : std::optional(upper_);
    }
    [[nodiscard]] std::optional<std::int64_t> at_least() const noexcept {
        return back_ == 0 ? std::nullopt : std::optional(lower_);
    }

    enum class verdict : std::uint8_t {
        unknown,        ///< no message
        bounded,        ///< messages in one direction only
        known,          ///< both: an estimate
        contradictory,  ///< both, and no offset suits all of them
    };
    [[nodiscard]] verdict state() const noexcept {
        if (forth_ == 0 && back_ == 0) return verdict::unknown;
        if (forth_ == 0 || back_ == 0) return verdict::bounded;
        return lower_ <= upper_ ? verdict::known : verdict::contradictory;
    }

    /// How far the other clock is ahead: the middle if it is known; if it is only bounded, the
    /// value nearest 0 that no message contradicts; 0 if nothing is known.
    [[nodiscard]] std::int64_t ahead() const noexcept {
        switch (state()) {
            case verdict::known:
                // Halves, so that the sum cannot overflow.
                return lower_ + static_cast<std::int64_t>(width() / 2);
            case verdict::bounded:
                return forth_ != 0 ? std::min<std::int64_t>(upper_, 0)
                                   : std::max<std::int64_t>(lower_, 0);
            default:
                return 0;
        }
    }
    /// How far off `ahead` may be, either way. Nothing unless it is bounded on both sides.
    [[nodiscard]] std::optional<std::uint64_t> uncertainty() const noexcept {
        if (state() != verdict::known) return std::nullopt;
        return width() - width() / 2;
    }
    /// By how much the bounds cross; 0 if they do not.
    [[nodiscard]] std::uint64_t contradiction() const noexcept {
        if (state() != verdict::contradictory) return 0;
        return static_cast<std::uint64_t>(lower_) - static_cast<std::uint64_t>(upper_);
    }

private:
    static constexpr std::uint64_t most = (std::numeric_limits<std::int64_t>::max)();

    [[nodiscard]] std::uint64_t width() const noexcept {
        return static_cast<std::uint64_t>(upper_) - static_cast<std::uint64_t>(lower_);
    }

    std::int64_t widened_;
    std::int64_t upper_ = 0;
    std::int64_t lower_ = 0;
    std::uint64_t forth_ = 0;
    std::uint64_t back_ = 0;
};

}  // namespace trace_reduce
