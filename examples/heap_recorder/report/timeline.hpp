// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A value over time in a fixed number of slices, for a span that is not known beforehand: when
/// time passes the last slice, slices are merged in pairs and become twice as wide.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace heap {

class timeline {
public:
    /// The value within one slice. A slice without a change has `low` above `high`.
    struct slice {
        std::uint64_t low = ~std::uint64_t{0};
        std::uint64_t high = 0;
        std::uint64_t last = 0;
        [[nodiscard]] bool empty() const noexcept { return low > high; }
    };

    /// At most `most` slices (even), each one nanosecond wide at first.
    explicit timeline(std::size_t most = 2048) : most_(most) {}

    /// The value is `value` from `time` on (nanoseconds). Time does not go back; should it, the
    /// change counts for the newest time.
    void add(std::uint64_t time, std::uint64_t value) {
        if (slices_.empty()) begin_ = time;
        time = std::max(time, end_);
        end_ = time;
        while ((time - begin_) / width_ >= most_) halve();
        const auto at = static_cast<std::size_t>((time - begin_) / width_);
        if (at >= slices_.size()) slices_.resize(at + 1);
        slice& s = slices_[at];
        s.low = std::min(s.low, value);
        s.high = std::max(s.high, value);
        s.last = value;
    }

    [[nodiscard]] std::uint64_t begin() const noexcept { return begin_; }
    [[nodiscard]] std::uint64_t end() const noexcept { return end_; }
    [[nodiscard]] std::uint64_t width() const noexcept { return width_; }
    [[nodiscard]] const std::vector<slice>& slices() const noexcept { return slices_; }

private:
    void halve() {
        for (std::size_t i = 0; i < slices_.size(); i += 2) {
            slice both = slices_[i];
            if (i + 1 < slices_.size() && !slices_[i + 1].empty()) {
                const slice& second = slices_[i + 1];
                both = {std::min(both.low, second.low), std::max(both.high, second.high),
                        second.last};
            }
            slices_[i / 2] = both;
        }
        slices_.resize((slices_.size() + 1) / 2);
        width_ *= 2;
    }

    std::size_t most_;
    std::vector<slice> slices_;
    std::uint64_t begin_ = 0;
    std::uint64_t end_ = 0;
    std::uint64_t width_ = 1;
};

}  // namespace heap
