// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "cache_hierarchy.hpp"

#include <algorithm>
#include <bit>

namespace address_trace {
namespace {

using way = cache_sets::way;

/// Calls `visit(line, begin, bytes)` for the part of [address, address + size) in each line.
template <class Visit>
void for_each_line(std::uint64_t address, std::uint64_t size, unsigned shift, Visit visit) {
    const std::uint64_t bytes = std::uint64_t{1} << shift;
    while (size != 0) {
        const std::uint64_t part = std::min(size, bytes - (address & (bytes - 1)));
        visit(address >> shift, address, part);
        address += part;
        size -= part;
    }
}

}  // namespace

cache_hierarchy::member::member(const cache_shape& of)
    : shape(of), shift(static_cast<unsigned>(std::countr_zero(of.line))), lines(of) {}

cache_hierarchy::cache_hierarchy(const cache_levels& levels, std::size_t begin)
    : counts_writes_(levels.count_writes()) {
    for (std::size_t at = begin; at < levels.all.size(); ++at) {
        for (const cache_shape& shape : levels.all[at]) all_.emplace_back(shape);
    }
    // Data, or code, is not simulated if the first of all levels does not take it. Data comes last,
    // as dirty lines go where data goes.
    const cache_level& first = levels.all.front();
    if (std::ranges::any_of(first, &cache_shape::takes_code))
        first_code_ = link(&cache_shape::takes_code, &member::code_next);
    if (std::ranges::any_of(first, &cache_shape::takes_data))
        first_data_ = link(&cache_shape::takes_data, &member::data_next);
    for (std::size_t at = 0; at < all_.size(); ++at) {
        if (all_[at].outer == memory) continue;
        // A line that passes an exclusive level on its way in comes to the next one on its way out.
        std::vector<std::size_t>& before = all_[all_[at].outer].before;
        before.push_back(at);
        if (all_[at].shape.holds == inclusion::exclusive)
            before.insert(before.end(), all_[at].before.begin(), all_[at].before.end());
    }
}

std::size_t cache_hierarchy::link(bool (cache_shape::*takes)() const noexcept,
                                  std::size_t member::*next) {
    std::vector<std::size_t> path;
    for (std::size_t at = 0; at < all_.size(); ++at) {
        if (!(all_[at].shape.*takes)()) continue;
        if (!path.empty()) all_[path.back()].*next = all_[path.back()].outer = at;
        all_[at].outer = memory;
        std::vector<std::size_t>& inner = all_[at].inner;
        inner.insert(inner.end(), path.begin(), path.end());
        std::ranges::sort(inner);
        inner.erase(std::unique(inner.begin(), inner.end()), inner.end());
        path.push_back(at);
    }
    return path.empty() ? memory : path.front();
}

void cache_hierarchy::expect_sites(site_id all) {
    for (member& each : all_) {
        if (each.by_site.size() < all) each.by_site.resize(all);
    }
}

void cache_hierarchy::add_hits(std::uint64_t loads, std::uint64_t stores, std::uint64_t fetches) {
    if (first_data_ != memory) {
        all_[first_data_].by_kind[0].references += loads;
        all_[first_data_].by_kind[1].references += stores;
    }
    if (first_code_ != memory) all_[first_code_].by_kind[2].references += fetches;
}

void cache_hierarchy::request(const cache_request& each) {
    const std::size_t first = each.is == cache_request::kind::fetch ? first_code_ : first_data_;
    if (first == memory) return;
    request_ = each;
    // At the end of the address space there is no line behind the last one.
    if (each.size - 1 > ~each.address) request_.size = ~each.address + 1;
    ++number_;
    ask(first, request_.address, request_.size);
    for (std::size_t at = first; at != memory; at = next_of(all_[at])) {
        const member& c = all_[at];
        const std::uint64_t last = (request_.address + (request_.size - 1)) >> c.shift;
        if (c.shape.fetches_next && c.missed == number_ && last != ~std::uint64_t{0} >> c.shift)
            prefetch(at, last + 1);
    }
}

// Returns whether a line moves to the level before this one, and is dirty.
bool cache_hierarchy::ask(std::size_t at, std::uint64_t address, std::uint64_t size) {
    member& c = all_[at];
    note_reference(c);
    const bool moves = c.shape.holds == inclusion::exclusive;
    const bool is_written = counts_writes_ && at == first_data_ && !is_prefetch_ &&
                            request_.is == cache_request::kind::store;
    const std::size_t next = next_of(c);
    bool missed = false, moves_dirty = false;
    for_each_line(address, size, c.shift,
                  [&](std::uint64_t line, std::uint64_t begin, std::uint64_t bytes) {
                      if (way* const found = moves ? c.lines.find(line) : c.lines.use(line);
                          found != nullptr) {
                          if (!is_prefetch_) {
                              c.prefetched.used += found->prefetched;
                              found->prefetched = false;
                          }
                          found->dirty |= is_written;
                          if (moves) moves_dirty = c.lines.take_out(line).dirty;
                          return;
                      }
                      missed = true;
                      const bool comes_dirty = is_tied(next) && ask(next, begin, bytes);
                      if (moves) {
                          moves_dirty = comes_dirty;
                      } else {
                          insert(at, line, comes_dirty || is_written, false);
                      }
                  });
    if (!missed) return moves_dirty;
    note_miss(c);
    if (next != memory && !is_tied(next)) ask(next, address, size);
    return moves_dirty;
}

void cache_hierarchy::prefetch(std::size_t at, std::uint64_t line) {
    member& c = all_[at];
    if (c.lines.find(line) != nullptr) return;
    if (c.shape.holds == inclusion::exclusive && is_before(c, line, at)) return;
    ++c.prefetched.lines;
    is_prefetch_ = true;
    const std::size_t next = next_of(c);
    const bool comes_dirty = next != memory && ask(next, line << c.shift, c.shape.line);
    is_prefetch_ = false;
    insert(at, line, comes_dirty, true);
}

void cache_hierarchy::insert(std::size_t at, std::uint64_t line, bool dirty, bool prefetched) {
    cache_sets& into = all_[at].lines;
    way& place = into.choose(line);
    if (!place.is_empty()) leave(at, place);
    way made;
    made.line = line & way::nothing;
    made.dirty = dirty;
    made.prefetched = prefetched;
    into.put(place, made);
}

// What leaves is in its place until this is done: lines that leave the levels before it on its
// account are written to it.
void cache_hierarchy::leave(std::size_t at, way& leaving) {
    member& c = all_[at];
    const std::uint64_t line = leaving.line;
    if (c.shape.holds == inclusion::inclusive) {
        for (const std::size_t before : c.inner) {
            member& inner = all_[before];
            const way was = inner.lines.take_out(line);
            if (was.is_empty()) continue;
            ++inner.invalidated;
            if (was.dirty) write_out(before, line << inner.shift, inner.shape.line);
        }
    }
    const bool moves = c.outer != memory && all_[c.outer].shape.holds == inclusion::exclusive &&
                       !is_before(all_[c.outer], line, at);
    if (moves) {
        if (leaving.dirty) c.written.back += c.shape.line;
        insert(c.outer, line, leaving.dirty, false);
    } else if (leaving.dirty) {
        write_out(at, line << c.shift, c.shape.line);
    }
}

void cache_hierarchy::write_out(std::size_t from, std::uint64_t address, std::uint64_t size) {
    all_[from].written.back += size;
    const std::size_t next = all_[from].outer;
    if (next == memory) return;
    cache_sets& lines = all_[next].lines;
    for_each_line(address, size, all_[next].shift,
                  [&](std::uint64_t line, std::uint64_t begin, std::uint64_t bytes) {
                      if (way* const there = lines.find(line); there != nullptr) {
                          there->dirty = true;
                      } else {
                          write_out(next, begin, bytes);
                      }
                  });
}

bool cache_hierarchy::is_before(const member& level, std::uint64_t line, std::size_t from) {
    return std::ranges::any_of(level.before, [&](std::size_t at) {
        return at != from && all_[at].lines.find(line) != nullptr;
    });
}

void cache_hierarchy::note_reference(member& of) {
    if (is_prefetch_ || of.asked == number_) return;
    of.asked = number_;
    ++of.by_kind[static_cast<std::size_t>(request_.is)].references;
}

void cache_hierarchy::note_miss(member& of) {
    if (is_prefetch_ || of.missed == number_) return;
    of.missed = number_;
    ++of.by_kind[static_cast<std::size_t>(request_.is)].misses;
    ++of.by_site[request_.site];
}

std::vector<cache_result> cache_hierarchy::results() const {
    std::vector<cache_result> out;
    for (std::size_t at = 0; at < all_.size(); ++at) {
        const member& each = all_[at];
        cache_result& made = out.emplace_back(cache_result{
            each.shape, each.by_kind[0], each.by_kind[1], each.by_kind[2], 0, each.by_site});
        if (counts_writes_) {
            made.written = each.written;
            for (const way& line : each.lines.all())
                made.written->still_dirty += line.dirty ? each.shape.line : 0;
        }
        if (each.shape.fetches_next) made.prefetched = each.prefetched;
        const bool is_contained = std::ranges::any_of(all_, [at](const member& outer) {
            return outer.shape.holds == inclusion::inclusive &&
                   std::ranges::count(outer.inner, at) != 0;
        });
        if (is_contained) made.invalidated = each.invalidated;
    }
    return out;
}

}  // namespace address_trace
