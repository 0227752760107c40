// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "cache_misses.hpp"

#include <algorithm>
#include <utility>

namespace address_trace {
namespace {

[[nodiscard]] cache_request::kind kind_of(const sited_reference& each) noexcept {
    if (!each.is_data()) return cache_request::kind::fetch;
    return each.is_store() ? cache_request::kind::store : cache_request::kind::load;
}

[[nodiscard]] cache_request request_of(const sited_reference& each) noexcept {
    return {kind_of(each), each.site, each.address, each.is_data() ? each.size : 1};
}

[[nodiscard]] bool has_fast_level(const cache_levels& levels) {
    return levels.are_plain() && std::ranges::all_of(levels.all.front(), cache::serves);
}

}  // namespace

cache_misses::cache_misses(cache_levels levels)
    : levels_(std::move(levels)), others_(levels_, has_fast_level(levels_) ? 1 : 0) {
    const cache_level& first = levels_.all.front();
    if (has_fast_level(levels_)) {
        for (const cache_shape& shape : first) {
            if (shape.takes_data()) data_ = fast_.size();
            if (shape.takes_code()) code_ = fast_.size();
            fast_.emplace_back(shape);
        }
    }
    asks_for_moves_ = levels_.are_plain() && first.size() == 1 && line_moves::serve(first.front());
}

void cache_misses::take(const sited_run& run) {
    for (simulated& each : fast_) {
        if (each.by_site.size() < run.sites) each.by_site.resize(run.sites);
    }
    others_.expect_sites(run.sites);
    if (asks_for_moves_) return take_moves(run);
    if (fast_.empty()) {
        for (const sited_reference& each : run.all) {
            if (each.is_data() || each.kind == reference_kind::block)
                others_.request(request_of(each));
        }
    } else if (code_ == none) {
        take_first<true, false>(run.all);
    } else if (data_ == none) {
        take_first<false, true>(run.all);
    } else {
        take_first<true, true>(run.all);
    }
}

void cache_misses::take_moves(const sited_run& run) {
    if (fast_.empty()) {
        std::uint64_t loads = run.moves.loads, stores = run.moves.stores;
        for (const std::uint32_t number : run.moves.moving) {
            const sited_reference& each = run.all[number];
            --(each.is_store() ? stores : loads);
            others_.request(request_of(each));
        }
        return others_.add_hits(loads, stores);
    }
    simulated& first = fast_[data_];
    const auto lines = first.lines.look_up();
    first.by_kind[0].references += run.moves.loads;
    first.by_kind[1].references += run.moves.stores;
    for (const std::uint32_t number : run.moves.moving) {
        const sited_reference& each = run.all[number];
        if (!lines.reference(each.address, each.size)) [[unlikely]]
            missed(each);
    }
}

// Counts in registers, once for each way of looking at a run: this is the loop that costs.
template <bool Data, bool Code>
void cache_misses::take_first(std::span<const sited_reference> run) {
    const auto data = fast_[Data ? data_ : code_].lines.look_up();
    const auto code = fast_[Code ? code_ : data_].lines.look_up();
    std::uint64_t loads = 0, stores = 0, blocks = 0;
    for (const sited_reference& each : run) {
        bool there = true;
        if (each.is_data()) {
            if constexpr (Data) {
                stores += each.is_store();
                loads += !each.is_store();
                there = data.reference(each.address, each.size);
            }
        } else if (Code && each.kind == reference_kind::block) {
            ++blocks;
            there = code.reference(each.address, 1);
        }
        if (!there) [[unlikely]]
            missed(each);
    }
    if constexpr (Data) {
        fast_[data_].by_kind[0].references += loads;
        fast_[data_].by_kind[1].references += stores;
    }
    if constexpr (Code) fast_[code_].by_kind[2].references += blocks;
}

void cache_misses::missed(const sited_reference& each) {
    simulated& first = fast_[each.is_data() ? data_ : code_];
    ++first.by_kind[static_cast<std::size_t>(kind_of(each))].misses;
    ++first.by_site[each.site];
    if (levels_.all.size() > 1) others_.request(request_of(each));
}

std::vector<cache_result> cache_misses::results() const {
    std::vector<cache_result> out;
    for (std::size_t at = 0; at < fast_.size(); ++at) {
        const simulated& each = fast_[at];
        out.push_back({levels_.all.front()[at], each.by_kind[0], each.by_kind[1], each.by_kind[2],
                       each.by_site});
    }
    for (cache_result& each : others_.results()) out.push_back(std::move(each));
    return out;
}

}  // namespace address_trace
