// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "line_use.hpp"

#include <algorithm>
#include <bit>

namespace address_trace {
namespace {

constexpr unsigned line_size = 1u << shared_line_bits;

/// The given number of bytes from `first` on, limited to the line.
[[nodiscard, gnu::always_inline]] inline line_bytes bytes_from(unsigned first,
                                                               unsigned size) noexcept {
    const line_bytes all = size >= line_size ? ~line_bytes{0} : (line_bytes{1} << size) - 1;
    return all << first;
}

}  // namespace

// Of the entries that are not shared at most 2 * kept_ are known, and of all slots half are free.
line_use::line_use(std::size_t kept, std::size_t most_shared)
    : kept_(kept),
      most_shared_(most_shared),
      shift_(64 - static_cast<unsigned>(
                      std::bit_width(std::bit_ceil(2 * (2 * kept + most_shared)) - 1))),
      entries_(std::bit_ceil(2 * (2 * kept + most_shared))),
      last_(entries_.data()) {}

void line_use::take(const sited_run& run) {
    for (const sited_reference& each : run.all) {
        if (!each.is_data()) continue;
        const auto first = static_cast<unsigned>(each.address % line_size);
        const std::uint64_t line = each.address >> shared_line_bits;
        note(line, bytes_from(first, each.size), each, run.thread);
        if (first + each.size > line_size) [[unlikely]] {
            std::uint64_t left = first + std::uint64_t{each.size} - line_size;
            for (std::uint64_t next = line; left != 0;) {
                next = (next + 1) & (~std::uint64_t{0} >> shared_line_bits);
                const std::uint64_t here = left < line_size ? left : line_size;
                note(next, bytes_from(0, static_cast<unsigned>(here)), each, run.thread);
                left -= here;
            }
        }
    }
}

[[gnu::always_inline]] inline void line_use::note(std::uint64_t line, line_bytes bytes,
                                                  const sited_reference& each,
                                                  std::uint32_t thread) {
    entry& at = last_->line == line ? *last_ : find(line);
    last_ = &at;
    ++references_;
    ++(each.takes_line() ? at.stores : at.loads);
    if (at.thread != thread || at.shared != 0) [[unlikely]] {
        note_other(at, bytes, each, thread);
        return;
    }
    at.touched |= bytes;
    if (each.takes_line()) at.written |= bytes;
}

// A line without stores is attributed to its last reader: only the next thread can distinguish it
// from a line that no thread shares.
void line_use::note_other(entry& at, line_bytes bytes, const sited_reference& each,
                          std::uint32_t thread) {
    if (at.shared == 0) {
        if (at.touched == 0 || (at.written == 0 && !each.takes_line())) {
            at.thread = thread;
            at.site = each.site;
            at.loads_before = at.loads - !each.takes_line();
            at.stores_before = at.stores - each.takes_line();
            at.touched = bytes;
            at.written = each.takes_line() ? bytes : 0;
            return;
        }
        if (shared_.size() == most_shared_) forget_shared();
        shared_.push_back(
            {at.line, line_sharing({.thread = at.thread,
                                    .site = at.site,
                                    .loads = at.loads - at.loads_before - !each.takes_line(),
                                    .stores = at.stores - at.stores_before - each.takes_line(),
                                    .touched = at.touched,
                                    .written = at.written})});
        at.shared = static_cast<std::uint32_t>(shared_.size());
        --known_;
    }
    shared_[at.shared - 1].how.note(thread, each.site, bytes, each.takes_line());
}

std::size_t line_use::slot_of(std::uint64_t line) const noexcept {
    auto at = static_cast<std::size_t>(line * 0x9E3779B97F4A7C15 >> shift_);
    while (entries_[at].line != line && entries_[at].line != no_line)
        at = (at + 1) & (entries_.size() - 1);
    return at;
}

line_use::entry& line_use::find(std::uint64_t line) {
    entry* at = &entries_[slot_of(line)];
    if (at->line == line) [[likely]]
        return *at;
    if (known_ >= 2 * kept_) {
        forget();
        at = &entries_[slot_of(line)];
    }
    at->line = line;
    at->missed = missed_;
    ++known_;
    return *at;
}

void line_use::forget() {
    std::vector<std::uint64_t> weights;
    weights.reserve(known_);
    for (const entry& each : entries_) {
        if (each.line != no_line && each.shared == 0) weights.push_back(each.weight());
    }
    const auto median = weights.begin() + static_cast<std::ptrdiff_t>(weights.size() - kept_);
    std::nth_element(weights.begin(), median, weights.end());
    const std::uint64_t taken_off = *median;
    missed_ += taken_off;
    std::vector<entry> before(entries_.size());
    before.swap(entries_);
    known_ = 0;
    for (entry& each : before) {
        if (each.line == no_line) continue;
        if (each.shared == 0) {
            if (each.weight() <= taken_off) continue;
            each.taken_off += taken_off;
            ++known_;
        }
        entries_[slot_of(each.line)] = each;
    }
    last_ = entries_.data();
}

// Dropped lines are not attributed to a thread. They return when two threads have touched them.
void line_use::forget_shared() {
    const auto half = shared_.begin() + static_cast<std::ptrdiff_t>(shared_.size() / 2);
    std::nth_element(shared_.begin(), half, shared_.end(), [](const auto& a, const auto& b) {
        return a.how.hand_overs() > b.how.hand_overs();
    });
    for (auto each = half; each != shared_.end(); ++each) {
        entry& at = entries_[slot_of(each->line)];
        at.shared = 0;
        at.touched = at.written = 0;
        ++known_;
        ++shared_forgotten_;
        most_forgotten_hand_overs_ = std::max(most_forgotten_hand_overs_, each->how.hand_overs());
    }
    shared_.erase(half, shared_.end());
    for (std::size_t i = 0; i < shared_.size(); ++i)
        entries_[slot_of(shared_[i].line)].shared = static_cast<std::uint32_t>(i + 1);
}

std::vector<used_line> line_use::hottest(std::size_t most) const {
    std::vector<used_line> out;
    for (const entry& each : entries_) {
        if (each.line != no_line)
            out.push_back({each.line << shared_line_bits, each.loads, each.stores, each.missed});
    }
    const auto more = [](const used_line& a, const used_line& b) {
        return a.references() != b.references() ? a.references() > b.references()
                                                : a.address < b.address;
    };
    const auto end = out.begin() + static_cast<std::ptrdiff_t>(std::min(most, out.size()));
    std::partial_sort(out.begin(), end, out.end(), more);
    out.erase(end, out.end());
    return out;
}

std::vector<shared_line> line_use::shared(bool is_false) const {
    std::vector<shared_line> out;
    for (const followed& each : shared_) {
        if (each.how.hand_overs() == 0 || each.how.is_false() != is_false) continue;
        const entry& at = entries_[slot_of(each.line)];
        out.push_back({each.line << shared_line_bits, at.loads + at.stores + at.missed, &each.how});
    }
    std::ranges::sort(out, [](const shared_line& a, const shared_line& b) {
        const std::uint64_t of_a = a.how->hand_overs(), of_b = b.how->hand_overs();
        return of_a != of_b ? of_a > of_b : a.address < b.address;
    });
    return out;
}
std::vector<shared_line> line_use::false_sharing() const {
    return shared(true);
}
std::vector<shared_line> line_use::true_sharing() const {
    return shared(false);
}

}  // namespace address_trace
