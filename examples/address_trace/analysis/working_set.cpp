// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "working_set.hpp"

#include <bit>

#include "recent_lines.hpp"

namespace address_trace {

working_set::working_set(std::uint64_t line, std::uint64_t page, std::uint64_t interval,
                         std::size_t most)
    : line_shift_(static_cast<unsigned>(std::countr_zero(line))),
      page_shift_(static_cast<unsigned>(std::countr_zero(page))),
      interval_(interval),
      most_(most) {}

void working_set::take(const sited_run& run) {
    for (const sited_reference& each : run.all) {
        if (!each.is_data()) continue;
        if (left_ == 0) [[unlikely]]
            begin(run.time);
        --left_;
        use(each.address);
        const std::uint64_t last = each.address + each.size - 1;
        if (last >> line_shift_ != each.address >> line_shift_) [[unlikely]] {
            for (std::uint64_t at = each.address + line(); at >> line_shift_ < last >> line_shift_;
                 at += line())
                use(at);
            use(last);
        }
    }
}

[[gnu::always_inline]] inline void working_set::use(std::uint64_t address) {
    const std::uint64_t line = address >> line_shift_, page = address >> page_shift_;
    if (line != last_line_) {
        last_line_ = line;
        parts_.back().lines.add(recent_lines::hash(line));
    }
    if (page != last_page_) {
        last_page_ = page;
        parts_.back().pages.add(recent_lines::hash(page));
    }
}

void working_set::begin(std::uint64_t time) {
    if (parts_.size() == most_) {
        for (std::size_t i = 0; i < most_ / 2; ++i) {
            part both = parts_[2 * i];
            both.lines.add(parts_[2 * i + 1].lines);
            both.pages.add(parts_[2 * i + 1].pages);
            both.references += interval_;
            parts_[i] = both;
        }
        parts_.resize(most_ / 2);
        interval_ *= 2;
    }
    parts_.push_back({interval_, time, {}, {}});
    left_ = interval_;
    last_line_ = last_page_ = none;
}

std::vector<working_set_interval> working_set::intervals() const {
    std::vector<working_set_interval> out;
    for (const part& each : parts_)
        out.push_back({each.references, each.time, each.lines.estimate(), each.pages.estimate()});
    if (!out.empty()) out.back().references -= left_;
    return out;
}

working_set_interval working_set::total() const {
    part all;
    for (const part& each : parts_) {
        all.lines.add(each.lines);
        all.pages.add(each.pages);
        all.references += each.references;
    }
    if (parts_.empty()) return {};
    return {all.references - left_, parts_.front().time, all.lines.estimate(),
            all.pages.estimate()};
}

}  // namespace address_trace
