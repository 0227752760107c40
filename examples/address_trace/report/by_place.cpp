// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "by_place.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace address_trace {
namespace {

/// The first block of a function that ran: the one at the lowest address.
struct first_block {
    std::uint64_t site = ~std::uint64_t{0};
    std::uint64_t count = 0;
};

void add_site(place_counts& to, const site_count& site, site_id id,
              std::span<const cache_result> caches) {
    to.counts.add(site);
    to.misses.resize(caches.size());
    for (std::size_t i = 0; i < caches.size(); ++i) {
        if (id < caches[i].by_site.size()) to.misses[i] += caches[i].by_site[id];
    }
}

template <class Map, class CountsOf>
[[nodiscard]] std::vector<place_counts> most_first(Map& all, CountsOf of) {
    std::vector<place_counts> out;
    for (auto& [key, each] : all) out.push_back(std::move(of(each)));
    std::stable_sort(out.begin(), out.end(), [](const place_counts& a, const place_counts& b) {
        return a.counts.references() > b.counts.references();
    });
    return out;
}

}  // namespace

counts_by_place sum_by_place(std::span<const site_count> sites,
                             std::span<const cache_result> caches, const place_of& where) {
    struct function {
        place_counts sums;
        first_block first;
    };
    std::map<std::pair<std::string, std::uint64_t>, function> functions;  // by object and start
    std::map<std::tuple<std::string, std::string, int>, place_counts> lines;
    std::map<std::string, std::set<std::string>> files;  // their paths by their names
    for (std::size_t id = 0; id < sites.size(); ++id) {
        const site_count& site = sites[id];
        if (site.count == 0) continue;
        place at;
        if (site.site == 0) {
            at.function = "(sites beyond the limit)";
        } else {
            at = where(site.site);
        }
        function& in = functions[{at.object, at.start}];
        if (in.sums.name.empty()) {
            in.sums.name = std::move(at.function);
            in.sums.object = at.object;
        }
        add_site(in.sums, site, static_cast<site_id>(id), caches);
        if (site.kind == reference_kind::block && site.site < in.first.site) {
            in.first = {site.site, site.count};
        }
        if (at.file.empty()) continue;
        place_counts& line = lines[{at.object, at.file, at.line}];
        if (line.file.empty()) {
            files[symbols::file_name(at.file)].insert(at.file);
            line.name = at.where();
            line.object = std::move(at.object);
            line.file = std::move(at.file);
            line.line = at.line;
        }
        add_site(line, site, static_cast<site_id>(id), caches);
    }
    for (auto& [key, each] : lines) {
        if (files[symbols::file_name(each.file)].size() > 1)
            each.name = fmt::format("{}:{}", each.file, each.line);
    }
    counts_by_place out;
    for (auto& [key, each] : functions) {
        const std::uint64_t enters = each.sums.counts.enters;
        each.sums.calls = enters != 0 ? enters : each.first.count;
    }
    out.functions = most_first(functions, [](function& f) -> place_counts& { return f.sums; });
    out.lines = most_first(lines, [](place_counts& l) -> place_counts& { return l; });
    return out;
}

}  // namespace address_trace
