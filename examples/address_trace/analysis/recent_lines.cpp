// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "recent_lines.hpp"

#include <algorithm>
#include <bit>

namespace address_trace {

recent_lines::last_use recent_lines::use_unlisted(std::uint64_t line) {
    last_use out;
    if (is_sampled(line)) {
        if ((known_ + 1) * 2 > slots_.size()) grow();
        slot& at = slot_of(line);
        out.known = true;
        if (at.line == line) {
            out.before = true;
            out.list = listed;
            out.row = marked_ - marks_before(at.place + 1);
            set(at.place, ~std::uint32_t{0});
            at.place = in_list;
        } else {
            at = {line, in_list};
            ++known_;
        }
    }
    const std::uint64_t leaves = list_[listed - 1];
    std::copy_backward(list_.begin(), list_.end() - 1, list_.end());
    list_[0] = line;
    if (leaves != no_line && is_sampled(leaves)) {
        if (next_ == marks_.size() * 64) close_up();
        set(next_, 1);
        slot_of(leaves).place = next_++;
    }
    return out;
}

// `by`: one, or less one.
void recent_lines::set(std::uint64_t place, std::uint32_t by) {
    const auto word = static_cast<std::size_t>(place / 64);
    marks_[word] ^= std::uint64_t{1} << place % 64;
    marked_ += by == 1 ? 1 : ~std::uint64_t{0};
    for (std::size_t i = word + 1; i < sums_.size(); i += i & (0 - i)) sums_[i] += by;
}

std::uint64_t recent_lines::marks_before(std::uint64_t place) const noexcept {
    const auto word = static_cast<std::size_t>(place / 64);
    std::uint64_t sum = 0;
    for (std::size_t i = word; i > 0; i -= i & (0 - i)) sum += sums_[i];
    if (place % 64 != 0) {
        const std::uint64_t before = marks_[word] & ((std::uint64_t{1} << place % 64) - 1);
        sum += static_cast<std::uint64_t>(std::popcount(before));
    }
    return sum;
}

// The row is full: its lines move to the beginning, in order. At least half of it is free
// afterwards.
void recent_lines::close_up() {
    for (slot& each : slots_) {
        if (each.line != no_line && each.place != in_list) each.place = marks_before(each.place);
    }
    const std::size_t words = std::bit_ceil(static_cast<std::size_t>(marked_ * 2 / 64) + 1);
    marks_.assign(std::max(words, smallest / 64), 0);
    sums_.assign(marks_.size() + 1, 0);
    next_ = marked_;
    for (std::uint64_t place = 0; place < marked_; ++place)
        marks_[static_cast<std::size_t>(place / 64)] |= std::uint64_t{1} << place % 64;
    for (std::size_t i = 1; i < sums_.size(); ++i) {
        sums_[i] += static_cast<std::uint32_t>(std::popcount(marks_[i - 1]));
        const std::size_t over = i + (i & (0 - i));
        if (over < sums_.size()) sums_[over] += sums_[i];
    }
}

void recent_lines::grow() {
    std::vector<slot> before(slots_.size() * 2);
    before.swap(slots_);
    for (const slot& each : before) {
        if (each.line != no_line) slot_of(each.line) = each;
    }
}

void recent_lines::halve() {
    ++halvings_;
    std::vector<slot> before(slots_.size());
    before.swap(slots_);
    known_ = 0;
    for (const slot& each : before) {
        if (each.line == no_line) continue;
        if (is_sampled(each.line)) {
            slot_of(each.line) = each;
            ++known_;
        } else if (each.place != in_list) {
            set(each.place, ~std::uint32_t{0});
        }
    }
}

}  // namespace address_trace
