// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "coherent_caches.hpp"

#include <algorithm>
#include <bit>
#include <span>
#include <stdexcept>
#include <utility>

namespace address_trace {

coherent_caches::coherent_caches(const cache_levels& shape) : shape_(shape.all.at(0).at(0)) {
    if (shape.all.size() != 1 || shape.all[0].size() != 1 || shape_.leaves != replacement::lru ||
        !shape_.is_plain() || !shape_.takes_data()) {
        throw std::invalid_argument("coherent caches '" + shape_.name +
                                    "': expected one cache of data, with lru and no other words");
    }
    shift_ = static_cast<unsigned>(std::countr_zero(shape_.line));
}

void coherent_caches::take(const sited_run& run) {
    own_cache* const own = cache_of(run.thread);
    for (const sited_reference& each : run.all) {
        if (!each.is_data()) continue;
        if (own == nullptr) {
            ++left_out_;
            continue;
        }
        const std::uint64_t last = (each.address + each.size - 1) >> shift_;
        for (std::uint64_t line = each.address >> shift_; line <= last; ++line)
            use(*own, line, each);
    }
}

coherent_caches::own_cache* coherent_caches::cache_of(std::uint32_t thread) {
    const auto [at, is_new] = number_of_.try_emplace(thread, all_.size());
    if (!is_new) return &all_[at->second];
    if (all_.size() == most_threads) {
        number_of_.erase(at);
        return nullptr;
    }
    all_.push_back({{.thread = thread}, std::vector<way>(shape_.entries())});
    return &all_.back();
}

coherent_caches::way* coherent_caches::find(own_cache& in, std::uint64_t line) noexcept {
    way* const set = &in.ways[static_cast<std::size_t>(line % shape_.sets) * shape_.ways];
    for (std::uint32_t i = 0; i < shape_.ways; ++i) {
        if (set[i].line == line) return &set[i];
    }
    return nullptr;
}

void coherent_caches::use(own_cache& own, std::uint64_t line, const sited_reference& each) {
    ++own.counts.references;
    way* const at = find(own, line);
    if (at == nullptr || at->is == state::invalid) return miss(own, line, each);
    at->used = ++now_;
    if (!each.takes_line()) return;
    if (at->is == state::shared) take_from_others(own, line, each);
    at->is = state::modified;
}

void coherent_caches::miss(own_cache& own, std::uint64_t line, const sited_reference& each) {
    ++own.counts.misses;
    way* at = find(own, line);
    if (at != nullptr && at->was_taken) {
        ++own.counts.coherence_misses;
        if (const auto of = contended_.find(line); of != contended_.end())
            ++of->second.coherence_misses;
    }
    const bool others_have_it = take_from_others(own, line, each);
    if (at == nullptr) {
        const std::span set(&own.ways[static_cast<std::size_t>(line % shape_.sets) * shape_.ways],
                            shape_.ways);
        // Lines that are invalid make room first.
        at = &*std::ranges::min_element(
            set, {}, [](const way& one) { return std::pair(one.is != state::invalid, one.used); });
        if (at->is == state::modified) ++own.counts.written_back;
    }
    const state is = each.takes_line() ? state::modified
                     : others_have_it  ? state::shared
                                       : state::exclusive;
    *at = {line, ++now_, is, false};
}

bool coherent_caches::take_from_others(const own_cache& own, std::uint64_t line,
                                       const sited_reference& each) {
    bool any = false;
    for (own_cache& other : all_) {
        if (&other == &own) continue;
        way* const its = find(other, line);
        if (its == nullptr || its->is == state::invalid) continue;
        any = true;
        if (its->is == state::modified) ++other.counts.written_back;
        if (!each.takes_line()) {
            its->is = state::shared;
            continue;
        }
        its->is = state::invalid;
        its->was_taken = true;
        ++other.counts.invalidated;
        if (contended_.size() >= most_contended) forget_contended();
        contended_line& of = contended_[line];
        ++of.invalidations;
        of.site = each.site;
    }
    return any;
}

// The half that was taken least.
void coherent_caches::forget_contended() {
    std::vector<std::uint64_t> counts;
    for (const auto& [line, each] : contended_) counts.push_back(each.invalidations);
    const auto median = counts.begin() + static_cast<std::ptrdiff_t>(counts.size() / 2);
    std::nth_element(counts.begin(), median, counts.end());
    forgotten_ += std::erase_if(contended_, [least = *median](const auto& each) {
        return each.second.invalidations <= least;
    });
}

std::vector<coherence_counts> coherent_caches::results() const {
    std::vector<coherence_counts> out;
    for (const own_cache& each : all_) out.push_back(each.counts);
    return out;
}

std::vector<contended_line> coherent_caches::contended(std::size_t most) const {
    std::vector<contended_line> out;
    for (const auto& [line, each] : contended_) {
        out.push_back(each);
        out.back().address = line << shift_;
    }
    std::ranges::sort(out, [](const contended_line& a, const contended_line& b) {
        return a.invalidations != b.invalidations ? a.invalidations > b.invalidations
                                                  : a.address < b.address;
    });
    out.resize(std::min(most, out.size()));
    return out;
}

}  // namespace address_trace
