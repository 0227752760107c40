// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "cache_misses.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace address_trace {
namespace {

using asked = cache_request::kind;

[[nodiscard]] cache_request request_of(const sited_reference& data) noexcept {
    return {data.is_store() ? asked::store : asked::load, data.site, data.address, data.size};
}

/// Calls `visit(address, size)` for each instruction of a block that is not all in the line of the
/// one before it: the others change nothing.
template <class Visit>
[[gnu::always_inline]] inline void for_each_fetch(const block_code& of, unsigned shift,
                                                  Visit visit) {
    std::uint64_t line = ~std::uint64_t{0}, at = of.address;
    for (const std::uint8_t length : of.lengths) {
        const std::uint64_t last = (at + (length - 1U)) >> shift;
        if (last != line) visit(at, length);
        line = last;
        at += length;
    }
}

[[nodiscard]] bool has_fast_level(const cache_levels& levels) {
    return levels.are_plain() && std::ranges::all_of(levels.all.front(), cache::serves);
}

}  // namespace

cache_misses::cache_misses(cache_levels levels, code_of code)
    : levels_(std::move(levels)),
      code_of_(std::move(code)),
      others_(levels_, has_fast_level(levels_) ? 1 : 0) {
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
            if (each.is_data()) others_.request(request_of(each));
            if (each.kind == reference_kind::block) fetch(each);
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
        return others_.add_hits(loads, stores, 0);
    }
    simulated& first = fast_[data_];
    const auto lines = first.lines.look_up();
    first.by_kind[0].references += run.moves.loads;
    first.by_kind[1].references += run.moves.stores;
    for (const std::uint32_t number : run.moves.moving) {
        const sited_reference& each = run.all[number];
        if (!lines.reference(each.address, each.size)) [[unlikely]]
            missed(request_of(each));
    }
}

// Counts in registers, once for each way of looking at a run: this is the loop that costs.
template <bool Data, bool Code>
void cache_misses::take_first(std::span<const sited_reference> run) {
    const auto data = fast_[Data ? data_ : code_].lines.look_up();
    const auto code = fast_[Code ? code_ : data_].lines.look_up();
    std::uint64_t loads = 0, stores = 0, instructions = 0;
    for (const sited_reference& each : run) {
        if (each.is_data()) {
            if constexpr (Data) {
                stores += each.is_store();
                loads += !each.is_store();
                if (!data.reference(each.address, each.size)) [[unlikely]]
                    missed(request_of(each));
            }
        } else if (Code && each.kind == reference_kind::block) {
            const block_code& block = code_at(each);
            instructions += block.lengths.size();
            for_each_fetch(block, code.shift, [&](std::uint64_t at, std::uint8_t size) {
                if (!code.reference(at, size)) [[unlikely]]
                    missed({asked::fetch, each.site, at, size});
            });
        }
    }
    if constexpr (Data) {
        fast_[data_].by_kind[0].references += loads;
        fast_[data_].by_kind[1].references += stores;
    }
    if constexpr (Code) fast_[code_].by_kind[2].references += instructions;
}

void cache_misses::fetch(const sited_reference& block) {
    const cache_level& first = levels_.all.front();
    const auto shape = std::ranges::find_if(first, &cache_shape::takes_code);
    if (shape == first.end()) return;
    const block_code& code = code_at(block);
    std::uint64_t others = code.lengths.size();
    for_each_fetch(code, static_cast<unsigned>(std::countr_zero(shape->line)),
                   [&](std::uint64_t at, std::uint8_t size) {
                       others_.request({asked::fetch, block.site, at, size});
                       --others;
                   });
    others_.add_hits(0, 0, others);
}

const block_code& cache_misses::code_at(const sited_reference& block) {
    if (block.site >= code_by_site_.size()) code_by_site_.resize(block.site + std::size_t{1});
    block_code& known = code_by_site_[block.site];
    if (!known.lengths.empty()) return known;
    if (const auto found = code_of_ ? code_of_(block.address) : std::nullopt) return known = *found;
    static constexpr std::uint8_t one[] = {1};
    ++unknown_blocks_;
    return unknown_ = {block.address, one};
}

void cache_misses::missed(const cache_request& what) {
    simulated& first = fast_[what.is == asked::fetch ? code_ : data_];
    ++first.by_kind[static_cast<std::size_t>(what.is)].misses;
    ++first.by_site[what.site];
    if (levels_.all.size() > 1) others_.request(what);
}

std::vector<cache_result> cache_misses::results() const {
    std::vector<cache_result> out;
    for (std::size_t at = 0; at < fast_.size(); ++at) {
        const simulated& each = fast_[at];
        out.push_back({levels_.all.front()[at], each.by_kind[0], each.by_kind[1], each.by_kind[2],
                       0, each.by_site});
    }
    for (cache_result& each : others_.results()) out.push_back(std::move(each));
    for (cache_result& each : out)
        each.unknown_blocks = each.shape.takes_code() ? unknown_blocks_ : 0;
    return out;
}

}  // namespace address_trace
