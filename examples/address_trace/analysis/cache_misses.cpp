// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "cache_misses.hpp"

#include <utility>

namespace address_trace {
namespace {

[[nodiscard]] unsigned bytes_of(const sited_reference& each) noexcept {
    return each.is_data() ? each.size : 1;
}

}  // namespace

cache_misses::cache_misses(cache_levels levels) : levels_(std::move(levels)) {
    for (const cache_level& shapes : levels_.all) {
        taken_by made{none, none};
        for (const cache_shape& shape : shapes) {
            if (shape.takes_data()) made.data = all_.size();
            if (shape.takes_code()) made.code = all_.size();
            all_.emplace_back(shape);
        }
        by_level_.push_back(made);
    }
    const cache_level& first = levels_.all.front();
    asks_for_moves_ = first.size() == 1 && line_moves::serve(first.front());
}

void cache_misses::take(const sited_run& run) {
    for (simulated& each : all_) {
        if (each.by_site.size() < run.sites) each.by_site.resize(run.sites);
    }
    if (asks_for_moves_) return take_moves(run);
    const taken_by first = by_level_.front();
    if (first.code == none) {
        take_first<true, false>(run.all);
    } else if (first.data == none) {
        take_first<false, true>(run.all);
    } else {
        take_first<true, true>(run.all);
    }
}

void cache_misses::take_moves(const sited_run& run) {
    simulated& first = all_[by_level_.front().data];
    const auto lines = first.lines.look_up();
    first.by_kind[0].references += run.moves.loads;
    first.by_kind[1].references += run.moves.stores;
    for (const std::uint32_t number : run.moves.moving) {
        const sited_reference& each = run.all[number];
        if (!lines.reference(each.address, each.size)) [[unlikely]]
            missed(each, 0);
    }
}

// Counts in registers, once for each way of looking at a run: this is the loop that costs.
template <bool Data, bool Code>
void cache_misses::take_first(std::span<const sited_reference> run) {
    const taken_by first = by_level_.front();
    const auto data = all_[Data ? first.data : first.code].lines.look_up();
    const auto code = all_[Code ? first.code : first.data].lines.look_up();
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
            missed(each, 0);
    }
    if constexpr (Data) {
        all_[first.data].by_kind[0].references += loads;
        all_[first.data].by_kind[1].references += stores;
    }
    if constexpr (Code) all_[first.code].by_kind[2].references += blocks;
}

void cache_misses::missed(const sited_reference& each, std::size_t level) {
    const std::size_t kind = !each.is_data() ? 2 : each.is_store() ? 1 : 0;
    const auto of = [&](const taken_by& l) { return each.is_data() ? l.data : l.code; };
    for (;;) {
        simulated& missing = all_[of(by_level_[level])];
        ++missing.by_kind[kind].misses;
        ++missing.by_site[each.site];
        do {
            if (++level == by_level_.size()) return;
        } while (of(by_level_[level]) == none);
        simulated& next = all_[of(by_level_[level])];
        ++next.by_kind[kind].references;
        if (next.lines.look_up().reference(each.address, bytes_of(each))) return;
    }
}

std::vector<cache_result> cache_misses::results() const {
    std::vector<cache_result> out;
    std::size_t at = 0;
    for (const cache_level& shapes : levels_.all) {
        for (const cache_shape& shape : shapes) {
            const simulated& each = all_[at++];
            out.push_back({shape, each.by_kind[0], each.by_kind[1], each.by_kind[2], each.by_site});
        }
    }
    return out;
}

}  // namespace address_trace
