// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "strides.hpp"

#include <algorithm>
#include <utility>

namespace address_trace {

void strides::take(const sited_run& run) {
    if (by_site_.size() < run.sites) by_site_.resize(run.sites);
    for (const sited_reference& each : run.all) {
        if (!each.is_data()) continue;
        state& of = by_site_[each.site];
        const auto stride = static_cast<std::int64_t>(each.address - of.address);
        of.address = each.address;
        if (!of.used || of.thread != run.thread) [[unlikely]] {
            of.used = true;
            of.thread = run.thread;
            continue;
        }
        ++of.strides;
        if (of.all[0].stride == stride && of.all[0].weight != 0) [[likely]] {
            ++of.all[0].times;
            ++of.all[0].weight;
        } else {
            note(of, stride);
        }
    }
}

// The first stride is the heaviest, so most are found there.
void strides::note(state& of, std::int64_t stride) noexcept {
    candidate* room = nullptr;
    for (candidate& each : of.all) {
        if (each.weight == 0) {
            if (room == nullptr) room = &each;
        } else if (each.stride == stride) {
            room = &each;
            break;
        }
    }
    if (room == nullptr) {
        for (candidate& each : of.all) --each.weight;
        return;
    }
    if (room->weight == 0) *room = {stride, 0, 0};
    ++room->times;
    ++room->weight;
    if (room->weight > of.all[0].weight) std::swap(*room, of.all[0]);
}

std::vector<site_strides> strides::results() const {
    std::vector<site_strides> out;
    for (std::size_t site = 0; site < by_site_.size(); ++site) {
        const state& of = by_site_[site];
        if (of.strides == 0) continue;
        const auto most = std::ranges::max_element(of.all, {}, &candidate::times);
        out.push_back({static_cast<site_id>(site), of.strides, most->stride, most->times});
    }
    return out;
}

stride_kind site_strides::kind(std::uint32_t size) const noexcept {
    if (strides < 4) return stride_kind::single;
    if (share() < 0.5) return stride_kind::irregular;
    const std::uint64_t by =
        most < 0 ? 0 - static_cast<std::uint64_t>(most) : static_cast<std::uint64_t>(most);
    if (by == 0) return stride_kind::same;
    if (by == size && size != 0) return stride_kind::next;
    return by < 64 ? stride_kind::near : stride_kind::far;
}

const char* name_of(stride_kind kind) noexcept {
    constexpr std::array<const char*, stride_kinds> names{"too few",       "the same address",
                                                          "the next one",  "within a line",
                                                          "beyond a line", "irregular"};
    return names[static_cast<std::size_t>(kind)];
}

}  // namespace address_trace
