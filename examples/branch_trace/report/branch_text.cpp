// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "branch_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "calls.hpp"
#include "coverage.hpp"
#include "edges.hpp"

namespace branches {
namespace {

[[nodiscard]] double percent(std::uint64_t part, std::uint64_t of) {
    return of == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(of);
}

class writer {
public:
    writer(const branch_trace& trace, code& of, const question& what)
        : trace_(trace), code_(of), what_(what), all_(trace.branches) {
        if (what.threads.empty()) return;
        const auto accepts = [&](std::uint32_t thread) {
            return std::find(what.threads.begin(), what.threads.end(),
                             trace.threads[thread].thread) != what.threads.end();
        };
        for (const auto& b : trace.branches) {
            if (accepts(b.thread)) chosen_.push_back(b);
        }
        all_ = chosen_;
    }

    [[nodiscard]] std::string write() {
        taken_ = static_cast<std::uint64_t>(
            std::count_if(all_.begin(), all_.end(), [](const branch& b) { return b.taken(); }));
        head();
        switch (what_.what) {
            case view::last:
                last();
                break;
            case view::edges:
                edges();
                break;
            case view::calls:
                calls();
                break;
            case view::blocks:
                blocks();
                break;
            case view::coverage:
                coverage();
                break;
        }
        for (const auto& [path, problem] : code_.problems()) {
            say("No names from {}: {}\n", path, problem);
        }
        return std::move(out_);
    }

private:
    template <class... Values>
    void say(fmt::format_string<Values...> format, Values&&... values) {
        fmt::format_to(std::back_inserter(out_), format, std::forward<Values>(values)...);
    }

    /// "function+0x12 (file:12)"; for a line of inlined functions, "(file:12 in inner() <
    /// outer())".
    [[nodiscard]] std::string tell(place_id id) {
        if (id == 0) return "?";
        const auto& names = code_.names(id);
        const std::string place = names.back().place();
        if (names.front().file.empty()) return place;
        std::string inlined;
        for (std::size_t i = 0; i + 1 < names.size(); ++i) {
            inlined += (i == 0 ? " in " : " < ") + names[i].name();
        }
        return fmt::format("{} ({}{})", place, names.front().where(), inlined);
    }
    [[nodiscard]] std::string name_of_function(function_id id) {
        return id == 0 ? "(unknown)" : code_.function(id).name;
    }
    [[nodiscard]] std::string tell_thread(std::uint32_t index) const {
        const auto& t = trace_.threads[index];
        return t.process == t.thread ? fmt::format("{}", t.thread)
                                     : fmt::format("{}/{}", t.process, t.thread);
    }

    void head() {
        say("{}: {} taken branches of {} thread{}", trace_.file, trace_.taken,
            trace_.threads.size(), trace_.threads.size() == 1 ? "" : "s");
        if (!trace_.program.empty()) say(", {}", trace_.program);
        if (!trace_.source.empty()) say(", by {}", trace_.source);
        say("\n");
        if (trace_.lost.total() != 0) {
            say("Not there: {} records ({} overwritten by newer ones)\n", trace_.lost.total(),
                trace_.lost[trace_ring::loss_cause::overwritten]);
        }
        if (trace_.nobodys != 0) {
            say("Left out: {} branches whose thread is not known\n", trace_.nobodys);
        }
        if (trace_.unreadable != 0) say("Unreadable: {} records\n", trace_.unreadable);
    }

    void last() {
        const auto accepts = [&](const note& n) {
            return what_.threads.empty() || n.thread == no_thread ||
                   std::find(what_.threads.begin(), what_.threads.end(),
                             trace_.threads[n.thread].thread) != what_.threads.end();
        };
        auto next = trace_.notes.rbegin();
        const auto notes_after = [&](std::size_t at) {
            for (; next != trace_.notes.rend() && next->at > at; ++next) {
                if (!accepts(*next)) continue;
                say("{:>15}  {}\n", next->thread == no_thread ? "" : tell_thread(next->thread),
                    next->what);
            }
        };
        say("The last branches, the newest first\n{:>15}  {:<16}  from -> to\n", "thread", "kind");
        std::size_t rows = 0;
        for (std::size_t i = trace_.branches.size(); i-- > 0 && rows < what_.rows;) {
            notes_after(i);
            const branch& b = trace_.branches[i];
            if (!what_.threads.empty() &&
                std::find(what_.threads.begin(), what_.threads.end(),
                          trace_.threads[b.thread].thread) == what_.threads.end()) {
                continue;
            }
            ++rows;
            if (b.from == 0) {
                say("{:>15}  {:<16}  {}\n", tell_thread(b.thread), "begins at", tell(b.to));
            } else if (b.to == 0) {
                say("{:>15}  {:<16}  {}{}\n", tell_thread(b.thread), "ends at", tell(b.from),
                    b.kind == branch_kind::unknown ? "" : fmt::format(": {}", name_of(b.kind)));
            } else {
                say("{:>15}  {:<16}  {} -> {}\n", tell_thread(b.thread), name_of(b.kind),
                    tell(b.from), tell(b.to));
            }
        }
        if (trace_.branches.empty() || rows < what_.rows) {
            notes_after(0);
            for (; next != trace_.notes.rend(); ++next) {
                if (!accepts(*next)) continue;
                say("{:>15}  {}\n", next->thread == no_thread ? "" : tell_thread(next->thread),
                    next->what);
            }
        }
    }

    void edge_rows(const std::vector<edge>& edges, std::uint64_t sum) {
        say("{:>12}  {:>6}  {:<16}  from -> to\n", "taken", "%", "kind");
        for (std::size_t i = 0; i < std::min(edges.size(), what_.rows); ++i) {
            const edge& e = edges[i];
            say("{:>12}  {:>6.2f}  {:<16}  {} -> {}\n", e.count, percent(e.count, sum),
                name_of(e.kind), tell(e.from), tell(e.to));
        }
        if (edges.size() > what_.rows) say("and {} more edges\n", edges.size() - what_.rows);
    }
    void edges() {
        const auto found = count_edges(all_);
        say("The hottest of {} edges\n", found.size());
        edge_rows(found, taken_);
    }

    [[nodiscard]] std::string range_of(const block& b) {
        const place_id start = code_.intern(place{b.object, b.start});
        return fmt::format("{}{} {} bytes{}", b.starts_behind ? "behind " : "", tell(start),
                           b.end - b.start, b.ends_behind || b.starts_behind ? " or more" : "");
    }
    void block_rows(const std::vector<block>& blocks) {
        say("{:>12}  block\n", "run");
        for (std::size_t i = 0; i < std::min(blocks.size(), what_.rows); ++i) {
            say("{:>12}  {}\n", blocks[i].count, range_of(blocks[i]));
        }
        if (blocks.size() > what_.rows) say("and {} more blocks\n", blocks.size() - what_.rows);
    }
    void blocks() {
        auto found = count_blocks(all_, code_);
        std::uint64_t sum = 0;
        for (const auto& b : found.blocks) sum += b.count;
        std::stable_sort(found.blocks.begin(), found.blocks.end(),
                         [](const block& a, const block& b) { return a.count > b.count; });
        say("The hottest of {} basic blocks: {} were run in {} straight runs\n",
            found.blocks.size(), sum, found.runs);
        if (found.broken != 0) say("Left out: {} runs that lead backward\n", found.broken);
        block_rows(found.blocks);
    }

    void calls() {
        const call_tree tree = follow_calls(all_, code_);
        say("Calls: {}, returns: {}, tail calls: {}", tree.calls, tree.returns, tree.tail_calls);
        if (tree.unmatched != 0)
            say(", returns that nothing on the stack called: {}", tree.unmatched);
        if (tree.unwound != 0) say(", frames left without a return: {}", tree.unwound);
        say("\nBranches taken in each function, with those in what it called\n");
        say("{:>12}  {:>6}  {:>12}  {:>10}  function\n", "branches", "%", "itself", "calls");
        // The rows with the least cost are omitted, so that the requested number remains.
        std::vector<std::size_t> by_cost;
        for (std::size_t i = 1; i < tree.nodes.size(); ++i) by_cost.push_back(i);
        std::stable_sort(by_cost.begin(), by_cost.end(), [&](std::size_t a, std::size_t b) {
            return tree.nodes[a].inclusive > tree.nodes[b].inclusive;
        });
        const std::size_t left_out = by_cost.size() > what_.rows ? by_cost.size() - what_.rows : 0;
        by_cost.resize(by_cost.size() - left_out);
        const std::set<std::size_t> shown(by_cost.begin(), by_cost.end());
        call_rows(tree, 0, 0, shown);
        if (left_out != 0) say("and {} nodes that cost less\n", left_out);
    }
    // As deep as the tree, whose paths have each function once.
    void call_rows(const call_tree& tree, std::size_t node, std::size_t depth,
                   const std::set<std::size_t>& shown) {
        for (const std::size_t child : tree.nodes[node].children) {
            if (!shown.contains(child)) continue;
            const call_node& n = tree.nodes[child];
            say("{:>12}  {:>6.2f}  {:>12}  {:>10}  {:{}}{}\n", n.inclusive,
                percent(n.inclusive, taken_), n.self, n.calls, "", 2 * depth,
                name_of_function(n.function));
            call_rows(tree, child, depth + 1, shown);
        }
    }

    void coverage() {
        const auto found = cover(all_, code_, what_.function);
        if (found.empty()) {
            say("No branch of this trace begins or ends in a function called {}\n", what_.function);
        }
        for (const auto& one : found) {
            const auto& f = one.function;
            say("\n{} in {}, {} bytes at {:#x}\n", f.name, code_.path(f.object), one.bytes,
                f.start);
            say("bytes run: {} of {} ({:.1f} %)\n", one.run, one.bytes,
                percent(one.run, one.bytes));
            if (one.lines.empty()) {
                say("lines: there is no debug information\n");
            } else {
                say("lines run: {} of {} ({:.1f} %)\n", one.lines_run(), one.lines.size(),
                    percent(one.lines_run(), one.lines.size()));
                lines_of(one);
            }
            std::uint64_t sum = 0;
            for (const auto& e : one.edges) sum += e.count;
            say("edges from or into it: {}, taken {} times\n", one.edges.size(), sum);
            edge_rows(one.edges, sum);
            say("blocks run: {}\n", one.blocks.size());
            block_rows(one.blocks);
        }
    }
    /// Prints consecutive lines with the same count in one row.
    void lines_of(const function_coverage& one) {
        for (auto at = one.lines.begin(); at != one.lines.end();) {
            auto last = at;
            auto next = std::next(at);
            for (; next != one.lines.end() && next->first.first == at->first.first &&
                   next->second == at->second;
                 ++next) {
                last = next;
            }
            const std::string times = at->second == 0 ? "never" : fmt::format("{}", at->second);
            if (last == at) {
                say("{:>12}  {}:{}\n", times, at->first.first, at->first.second);
            } else {
                say("{:>12}  {}:{}-{}\n", times, at->first.first, at->first.second,
                    last->first.second);
            }
            at = next;
        }
    }

    const branch_trace& trace_;
    code& code_;
    const question& what_;
    std::vector<branch> chosen_;
    std::span<const branch> all_;
    std::uint64_t taken_ = 0;
    std::string out_;
};

}  // namespace

bool parse_view(std::string_view text, question& into) {
    constexpr std::string_view coverage = "coverage=";
    if (text.starts_with(coverage) && text.size() > coverage.size()) {
        into.what = view::coverage;
        into.function = text.substr(coverage.size());
        return true;
    }
    constexpr std::pair<std::string_view, view> names[] = {{"last", view::last},
                                                           {"edges", view::edges},
                                                           {"calls", view::calls},
                                                           {"blocks", view::blocks}};
    for (const auto& [name, what] : names) {
        if (name != text) continue;
        into.what = what;
        return true;
    }
    return false;
}

answer ask(const std::string& path, const question& what) {
    code all;
    const branch_trace trace = read_branches(path, all);
    return {writer(trace, all, what).write(), trace.damages};
}

}  // namespace branches
