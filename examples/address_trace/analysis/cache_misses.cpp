// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "cache_misses.hpp"

#include <utility>

namespace address_trace {

cache_misses::cache_misses(cache_levels levels, code_of code)
    : levels_(std::move(levels)), code_(std::move(code)) {
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
    first.by_kind[load].references += run.moves.loads;
    first.by_kind[store].references += run.moves.stores;
    for (const std::uint32_t number : run.moves.moving) {
        const sited_reference& each = run.all[number];
        if (!lines.reference(each.address, each.size)) [[unlikely]]
            missed(missing_data(each), 0);
    }
}

// Counts in registers, once for each way of looking at a run: this is the loop that costs.
template <bool Data, bool Code>
void cache_misses::take_first(std::span<const sited_reference> run) {
    const taken_by first = by_level_.front();
    const auto data = all_[Data ? first.data : first.code].lines.look_up();
    const auto code = all_[Code ? first.code : first.data].lines.look_up();
    std::uint64_t loads = 0, stores = 0, instructions = 0;
    const std::uint64_t line = std::uint64_t{1} << code.shift;
    for (const sited_reference& each : run) {
        if (each.is_data()) {
            if constexpr (Data) {
                stores += each.is_store();
                loads += !each.is_store();
                if (!data.reference(each.address, each.size)) [[unlikely]]
                    missed(missing_data(each), 0);
            }
        } else if (Code && each.kind == reference_kind::block) {
            const block_code& block = code_at(each);
            instructions += block.instructions;
            const std::uint64_t end = block.address + block.bytes;
            for (std::uint64_t at = block.address / line * line; at < end; at += line) {
                if (!code.touch(at / line)) [[unlikely]]
                    missed({fetch, each.site, at, static_cast<unsigned>(line)}, 0);
            }
        }
    }
    if constexpr (Data) {
        all_[first.data].by_kind[load].references += loads;
        all_[first.data].by_kind[store].references += stores;
    }
    if constexpr (Code) all_[first.code].by_kind[fetch].references += instructions;
}

const block_code& cache_misses::code_at(const sited_reference& block) {
    if (block.site >= code_by_site_.size()) code_by_site_.resize(block.site + std::size_t{1});
    block_code& known = code_by_site_[block.site];
    if (known.bytes != 0) return known;
    if (const auto found = code_ ? code_(block.address) : std::nullopt) return known = *found;
    ++unknown_blocks_;
    return unknown_ = {block.address, 1, 1};
}

void cache_misses::missed(const missing& what, std::size_t level) {
    const auto of = [&](const taken_by& l) { return what.is == fetch ? l.code : l.data; };
    for (;;) {
        simulated& at = all_[of(by_level_[level])];
        ++at.by_kind[what.is].misses;
        ++at.by_site[what.site];
        do {
            if (++level == by_level_.size()) return;
        } while (of(by_level_[level]) == none);
        simulated& next = all_[of(by_level_[level])];
        ++next.by_kind[what.is].references;
        if (next.lines.look_up().reference(what.address, what.bytes)) return;
    }
}

std::vector<cache_result> cache_misses::results() const {
    std::vector<cache_result> out;
    std::size_t at = 0;
    for (const cache_level& shapes : levels_.all) {
        for (const cache_shape& shape : shapes) {
            const simulated& each = all_[at++];
            out.push_back({shape, each.by_kind[load], each.by_kind[store], each.by_kind[fetch],
                           shape.takes_code() ? unknown_blocks_ : 0, each.by_site});
        }
    }
    return out;
}

}  // namespace address_trace
