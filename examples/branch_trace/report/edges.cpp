// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "edges.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <unordered_map>

namespace branches {
namespace {

/// A cut before or after the instruction at an address, ordered by both.
struct cut {
    std::uint64_t address = 0;
    bool behind = false;

    friend bool operator<(const cut& a, const cut& b) noexcept {
        return a.address != b.address ? a.address < b.address : !a.behind && b.behind;
    }
};
[[nodiscard]] constexpr cut before(std::uint64_t address) {
    return {address, false};
}
[[nodiscard]] constexpr cut behind(std::uint64_t address) {
    return {address, true};
}

/// The straight runs of one object: as a difference at each cut.
using steps = std::map<cut, std::int64_t>;

}  // namespace

std::vector<edge> count_edges(std::span<const branch> branches) {
    struct key_hash {
        std::size_t operator()(std::uint64_t key) const noexcept {
            return static_cast<std::size_t>((key ^ key >> 29) * 0x9E3779B97F4A7C15);
        }
    };
    std::unordered_map<std::uint64_t, edge, key_hash> found;
    for (const auto& b : branches) {
        if (!b.taken()) continue;
        edge& e =
            found.try_emplace(std::uint64_t{b.from} << 32 | b.to, edge{b.from, b.to, b.kind, 0})
                .first->second;
        ++e.count;
    }
    std::vector<edge> edges;
    edges.reserve(found.size());
    for (const auto& [key, e] : found) edges.push_back(e);
    std::sort(edges.begin(), edges.end(), [](const edge& a, const edge& b) {
        if (a.count != b.count) return a.count > b.count;
        return a.from != b.from ? a.from < b.from : a.to < b.to;
    });
    return edges;
}

block_counts count_blocks(std::span<const branch> branches, code& of) {
    block_counts out;
    std::unordered_map<object_id, steps> objects;
    std::unordered_map<std::uint32_t, place_id> went_to;  // by thread
    std::unordered_map<std::uint64_t, std::uint64_t> runs;
    for (const auto& b : branches) {
        const auto last = went_to.find(b.thread);
        if (b.follows && last != went_to.end()) {
            ++runs[std::uint64_t{last->second} << 32 | b.from];
        }
        went_to[b.thread] = b.to;
        // Every known begin and end is a cut, including those outside of counted runs.
        const place& from = of.at(b.from);
        const place& to = of.at(b.to);
        if (b.from != 0) objects[from.object].try_emplace(behind(from.address), 0);
        if (b.to != 0) objects[to.object].try_emplace(before(to.address), 0);
    }
    for (const auto& [ends, count] : runs) {
        const place& first = of.at(static_cast<place_id>(ends >> 32));
        const place& last = of.at(static_cast<place_id>(ends));
        if (first.object != last.object || last.address < first.address) {
            out.broken += count;
            continue;
        }
        out.runs += count;
        steps& at = objects[first.object];
        at[before(first.address)] += static_cast<std::int64_t>(count);
        at[behind(last.address)] -= static_cast<std::int64_t>(count);
    }
    for (const auto& [object, at] : objects) {
        std::int64_t running = 0;
        for (auto step = at.begin(); step != at.end(); ++step) {
            running += step->second;
            const auto next = std::next(step);
            if (running == 0 || next == at.end()) continue;
            block found{object,
                        step->first.address,
                        next->first.address,
                        static_cast<std::uint64_t>(running),
                        step->first.behind,
                        next->first.behind};
            if (found.starts_behind) {
                if (const auto end = of.end_of({object, found.start}); end != 0) {
                    found.start = end;
                    found.starts_behind = false;
                }
            }
            if (found.ends_behind) {
                const auto end = of.end_of({object, found.end});
                found.ends_behind = end == 0;
                found.end = end == 0 ? found.end + 1 : end;
            }
            // There is nothing between a branch and a target directly after it.
            if (found.end <= found.start) continue;
            out.blocks.push_back(found);
        }
    }
    std::sort(out.blocks.begin(), out.blocks.end(), [](const block& a, const block& b) {
        return a.object != b.object ? a.object < b.object : a.start < b.start;
    });
    return out;
}

}  // namespace branches
