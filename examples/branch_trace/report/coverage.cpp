// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "coverage.hpp"

#include <algorithm>
#include <set>

#include <symbols/symbols.hpp>
#include <trace_ring/glob.hpp>

namespace branches {
namespace {

[[nodiscard]] bool is_called(const std::string& function, const std::string& wanted) {
    if (function == wanted || trace_ring::matches_glob(wanted, function)) return true;
    const std::string shorter = symbols::without_arguments(function);
    return shorter == wanted || shorter == wanted + "()" ||
           trace_ring::matches_glob(wanted, shorter);
}

void add_blocks(function_coverage& to, const std::vector<block>& blocks) {
    const auto& f = to.function;
    std::uint64_t covered_to = f.start;
    for (const auto& b : blocks) {
        if (b.object != f.object || b.end <= f.start || b.start >= f.end) continue;
        to.blocks.push_back(b);
        const std::uint64_t from = std::max({b.start, f.start, covered_to});
        const std::uint64_t end = std::min(b.end, f.end);
        if (end > from) to.run += end - from;
        covered_to = std::max(covered_to, end);
    }
}

void add_lines(function_coverage& to, code& of) {
    const auto& f = to.function;
    const auto* const file = of.object(f.object);
    if (file == nullptr) return;
    const auto rows = file->lines(f.start, f.end);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        std::uint64_t& most = to.lines[{rows[i].file, rows[i].line}];
        const std::uint64_t end = i + 1 < rows.size() ? rows[i + 1].address : f.end;
        for (const auto& b : to.blocks) {
            if (b.start < end && rows[i].address < b.end) most = std::max(most, b.count);
        }
    }
}

}  // namespace

std::size_t function_coverage::lines_run() const {
    return static_cast<std::size_t>(
        std::count_if(lines.begin(), lines.end(), [](const auto& l) { return l.second != 0; }));
}

std::vector<function_coverage> cover(std::span<const branch> branches, code& of,
                                     const std::string& name) {
    const auto edges = count_edges(branches);
    std::set<function_id> wanted;
    for (const auto& e : edges) {
        for (const place_id end : {e.from, e.to}) {
            const function_id f = of.function_of(end);
            if (f != 0 && is_called(of.function(f).name, name)) wanted.insert(f);
        }
    }
    std::vector<function_coverage> out;
    if (wanted.empty()) return out;
    const auto blocks = count_blocks(branches, of);
    for (const function_id id : wanted) {
        function_coverage one;
        one.function = of.function(id);
        one.bytes = one.function.end - one.function.start;
        for (const auto& e : edges) {
            if (of.function_of(e.from) == id || of.function_of(e.to) == id) one.edges.push_back(e);
        }
        add_blocks(one, blocks.blocks);
        add_lines(one, of);
        out.push_back(std::move(one));
    }
    return out;
}

}  // namespace branches
