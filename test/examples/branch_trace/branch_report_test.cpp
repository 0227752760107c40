// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// What is read from branch traces, on traces that the test writes as branch-trace does: of
/// branch_known, whose code is known.

#include <sys/wait.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <branch_trace/branch_log.hpp>
#include <branch_trace/report/branch_code.hpp>
#include <branch_trace/report/branch_text.hpp>
#include <branch_trace/report/branch_trace.hpp>
#include <branch_trace/report/calls.hpp>
#include <branch_trace/report/coverage.hpp>
#include <branch_trace/report/edges.hpp>
#include <reduce/file_builder.hpp>
#include <reduce/scratch_file.hpp>
#include <trace_ring/recorder/recorder.hpp>

BOOST_AUTO_TEST_SUITE(branch_report)

using namespace trace_ring_test;
using branches::branch_kind;

namespace {

/// Where the tests say that branch_known's code was mapped.
constexpr std::uint64_t base = 0x7F00'1234'5000;
constexpr std::uint64_t text_offset = 0x1000;

/// Builds a trace: one process 70 with thread 70 by default.
class tracing {
public:
    explicit tracing(std::uint64_t size = std::uint64_t{1} << 20)
        : recorder_(std::in_place, options(file, size)),
          log_(std::in_place, *recorder_, size,
               branches::recording{"step", "as the test says", 4096, 100, "known"}),
          known_(BRANCH_KNOWN) {
        log_->process_begun(70, "known");
        map(70);
        log_->of(70, 70);
    }
    void map(std::uint32_t process) {
        log_->module(process, {base, base + 0x1000, text_offset, BRANCH_KNOWN});
    }
    /// An address in a function of branch_known, as the process has it.
    [[nodiscard]] std::uint64_t in(const std::string& function, std::uint64_t offset = 0) const {
        for (const auto& f : known_.functions()) {
            if (f.name == function) {
                return f.start + known_.bias(base, text_offset) + offset;
            }
        }
        BOOST_FAIL("no function " << function);
        return 0;
    }
    void take(branch_kind kind, std::uint64_t from, std::uint64_t to) {
        log_->branch(kind, from, to);
    }
    [[nodiscard]] branches::branch_log& log() { return *log_; }
    /// The trace, read back.
    [[nodiscard]] branches::branch_trace read(branches::code& into) {
        close();
        return branches::read_branches(file.path(), into);
    }
    [[nodiscard]] std::string ask(branches::question what) {
        close();
        return branches::ask(file.path(), what).text;
    }

    scratch_file file;

private:
    [[nodiscard]] static trace_ring::recorder_options options(const scratch_file& file,
                                                              std::uint64_t size) {
        file.remove();
        trace_ring::recorder_options o;
        o.file = file.path();
        o.size = size;
        return o;
    }
    void close() {
        log_.reset();
        recorder_.reset();
    }

    std::optional<trace_ring::recorder> recorder_;
    std::optional<branches::branch_log> log_;
    symbols::object known_;
};

/// The tree as text: "name calls self inclusive", two blanks a level.
void append(std::string& out, const branches::call_tree& tree, const branches::code& of,
            std::size_t node, std::size_t depth) {
    for (const auto child : tree.nodes[node].children) {
        const auto& n = tree.nodes[child];
        out += std::string(2 * depth, ' ') +
               (n.function == 0 ? "?" : of.function(n.function).name) + " " +
               std::to_string(n.calls) + " " + std::to_string(n.self) + " " +
               std::to_string(n.inclusive) + "\n";
        append(out, tree, of, child, depth + 1);
    }
}
[[nodiscard]] std::string tree_of(tracing& t, branches::call_tree* counts = nullptr) {
    branches::code all;
    const auto trace = t.read(all);
    const auto tree = branches::follow_calls(trace.branches, all);
    std::string out;
    append(out, tree, all, 0, 0);
    if (counts != nullptr) *counts = tree;
    return out;
}

[[nodiscard]] bool holds(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_mapping_from_the_headers_on_has_the_bias_of_the_code) {
    const symbols::object known(BRANCH_KNOWN);  // linked at 0x400000, its code a page further
    BOOST_TEST(known.bias(0x40'1000, 0x1000) == 0U);
    BOOST_TEST(known.bias(0x40'0000, 0) == 0U);
    BOOST_TEST(known.bias(0x7000'0000, 0) == 0x7000'0000U - 0x40'0000U);
    BOOST_TEST(known.bias(0x7000'1000, 0x1000) == 0x7000'0000U - 0x40'0000U);
}

BOOST_AUTO_TEST_CASE(branches_are_read_back_with_their_kinds_places_and_threads) {
    tracing t;
    t.take(branch_kind::call, t.in("outer", 1), t.in("fault"));
    t.take(branch_kind::function_return, t.in("fault", 11), t.in("outer", 6));
    t.log().of(70, 71);
    t.take(branch_kind::unknown, t.in("once"), 0xDEAD'0000);
    t.log().of(70, 70);
    t.take(branch_kind::other, t.in("outer", 6), t.in("_start"));
    branches::code all;
    const auto trace = t.read(all);
    BOOST_TEST(trace.source == "step");
    BOOST_TEST(trace.program == "known");
    BOOST_TEST(trace.nobodys == 0U);
    BOOST_REQUIRE(trace.branches.size() == 4U);
    BOOST_REQUIRE(trace.threads.size() == 2U);
    BOOST_TEST(trace.threads[1].thread == 71U);
    BOOST_TEST(trace.threads[0].branches == 3U);
    BOOST_TEST(trace.taken == 4U);
    BOOST_TEST((trace.branches[0].kind == branch_kind::call));
    BOOST_TEST(!trace.branches[0].follows);
    BOOST_TEST(trace.branches[1].follows);
    BOOST_TEST(!trace.branches[2].follows);
    BOOST_TEST(trace.branches[3].follows);  // another thread came between, and no gap
    BOOST_TEST(all.names(trace.branches[0].from).back().place() == "outer+0x1");
    BOOST_TEST(all.names(trace.branches[0].to).back().place() == "fault");
    BOOST_TEST(all.names(trace.branches[2].to).back().place() == "0xdead0000");
    BOOST_TEST(all.path(all.at(trace.branches[0].to).object) == BRANCH_KNOWN);
}

BOOST_AUTO_TEST_CASE(every_kind_comes_back_as_it_was) {
    tracing t;
    for (std::size_t i = 0; i < branches::branch_kinds; ++i) {
        t.take(static_cast<branch_kind>(i), 0x1000, 0x2000);  // no code lies there
    }
    branches::code all;
    const auto trace = t.read(all);
    BOOST_REQUIRE(trace.branches.size() == branches::branch_kinds);
    for (std::size_t i = 0; i < branches::branch_kinds; ++i) {
        BOOST_TEST((trace.branches[i].kind == static_cast<branch_kind>(i)));
    }
}

BOOST_AUTO_TEST_CASE(of_what_kind_a_branch_is_the_instruction_tells_where_the_source_does_not) {
    tracing t;
    const auto take = [&](std::uint64_t from) { t.take(branch_kind::unknown, from, t.in("once")); };
    take(t.in("outer", 1));
    take(t.in("outer", 6));
    take(t.in("choose", 3));
    take(t.in("choose", 10));
    take(t.in("outer"));  // a nop: an interrupt, say
    branches::code all;
    const auto trace = t.read(all);
    std::vector<std::string> kinds;
    for (const auto& b : trace.branches) kinds.emplace_back(branches::name_of(b.kind));
    BOOST_TEST(
        kinds == (std::vector<std::string>{"call", "return", "conditional", "jump", "branch"}),
        boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_gap_another_program_and_a_zero_break_a_thread) {
    tracing t;
    const auto some = [&] { t.take(branch_kind::jump, t.in("once"), t.in("once")); };
    some();
    t.log().gap(70, 70, 5, "the buffer was full");
    some();  // 1
    some();
    t.take(branch_kind::unknown, t.in("once"), 0);  // 3: ends a stretch
    some();                                         // 4
    t.take(branch_kind::unknown, 0, t.in("once"));  // 5: begins one
    some();                                         // 6
    t.log().process_begun(70, "known once more");
    t.map(70);
    some();  // 7
    branches::code all;
    const auto trace = t.read(all);
    std::vector<bool> follows;
    for (const auto& b : trace.branches) follows.push_back(b.follows);
    BOOST_TEST(follows == (std::vector<bool>{false, false, true, true, false, false, true, false}),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_last_branches_are_shown_backward_with_what_happened_between) {
    tracing t;
    t.take(branch_kind::call, t.in("_start"), t.in("outer"));
    t.take(branch_kind::call, t.in("outer", 1), t.in("fault"));
    t.take(branch_kind::exception, t.in("fault"), 0);
    t.log().process_ended(70, 0, 11);
    branches::question what;
    const std::string text = t.ask(what);
    const auto ended = text.find("process 70 is ended by signal 11, SIGSEGV");
    const auto given = text.find("ends at           fault (branch_known.S:");
    const auto second = text.find("outer+0x1 (branch_known.S:");
    const auto first = text.find("_start (branch_known.S:");
    BOOST_TEST(ended < given);
    BOOST_TEST(given < second);
    BOOST_TEST(second < first);
    BOOST_TEST(first != std::string::npos);
    BOOST_TEST(first < text.find("process 70 runs known"));
    BOOST_TEST(holds(text, ": 2 taken branches of 1 thread, known, by step"));
    BOOST_TEST(holds(text, "): exception"));
    what.rows = 2;
    BOOST_TEST(!holds(t.ask(what), "_start"));
    what.threads = {71};
    BOOST_TEST(!holds(t.ask(what), "outer"));
}

BOOST_AUTO_TEST_CASE(edges_are_counted_across_processes_wherever_the_file_lay) {
    tracing t;
    for (int i = 0; i < 3; ++i) t.take(branch_kind::jump, t.in("endless", 1), t.in("endless"));
    t.take(branch_kind::call, t.in("outer", 1), t.in("fault"));
    const std::uint64_t moved = 0x10'0000;
    t.log().process_begun(80, "known");
    t.log().module(80, {base + moved, base + moved + 0x1000, text_offset, BRANCH_KNOWN});
    t.log().of(80, 80);
    t.take(branch_kind::jump, t.in("endless", 1) + moved, t.in("endless") + moved);
    branches::code all;
    const auto trace = t.read(all);
    const auto edges = branches::count_edges(trace.branches);
    BOOST_REQUIRE(edges.size() == 2U);
    BOOST_TEST(edges[0].count == 4U);
    BOOST_TEST(all.names(edges[0].from).back().place() == "endless+0x1");
    BOOST_TEST(edges[1].count == 1U);
    branches::question what;
    what.what = branches::view::edges;
    BOOST_TEST(holds(t.ask(what), " 4   80.00  jump              endless+0x1 (branch_known.S:"));
}

BOOST_AUTO_TEST_CASE(straight_runs_are_cut_into_blocks_at_every_branch_and_target) {
    // `choose` twice: its first branch is taken, then it is not.
    tracing t;
    const auto choose = [&](std::uint64_t offset) { return t.in("choose", offset); };
    const std::uint64_t caller = t.in("outer", 1);
    t.take(branch_kind::call, caller, choose(0));
    t.take(branch_kind::conditional, choose(3), choose(12));
    t.take(branch_kind::function_return, choose(17), caller + 5);
    t.take(branch_kind::call, caller, choose(0));  // backward: no run leads here
    t.take(branch_kind::jump, choose(10), choose(17));
    t.take(branch_kind::function_return, choose(17), caller + 5);
    branches::code all;
    const auto trace = t.read(all);
    const auto counts = branches::count_blocks(trace.branches, all);
    BOOST_TEST(counts.runs == 4U);
    BOOST_TEST(counts.broken == 1U);
    const std::uint64_t zero = all.at(trace.branches[0].to).address;
    std::vector<std::string> found;
    for (const auto& b : counts.blocks) {
        found.push_back(std::to_string(b.start - zero) + "-" + std::to_string(b.end - zero) + " x" +
                        std::to_string(b.count));
        BOOST_TEST(!b.starts_behind);
        BOOST_TEST(!b.ends_behind);
    }
    BOOST_TEST(found == (std::vector<std::string>{"0-5 x2", "5-12 x1", "12-17 x1", "17-18 x2"}),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(coverage_tells_bytes_and_lines_that_were_never_seen) {
    tracing t;
    const std::uint64_t caller = t.in("outer", 1);
    t.take(branch_kind::call, caller, t.in("choose"));
    t.take(branch_kind::conditional, t.in("choose", 3), t.in("choose", 12));
    t.take(branch_kind::function_return, t.in("choose", 17), caller + 5);
    branches::code all;
    const auto trace = t.read(all);
    const auto found = branches::cover(trace.branches, all, "choose");
    BOOST_REQUIRE(found.size() == 1U);
    const auto& one = found[0];
    BOOST_TEST(one.bytes == 18U);
    BOOST_TEST(one.run == 11U);  // all but the move and the jump behind the first branch
    BOOST_TEST(one.edges.size() == 3U);
    std::vector<int> never;
    const int first = one.lines.begin()->first.second;
    for (const auto& [line, count] : one.lines) {
        BOOST_TEST(line.first == "branch_known.S");
        BOOST_TEST(count <= 1U);
        if (count == 0) never.push_back(line.second - first);
    }
    BOOST_TEST(one.lines.size() == 6U);
    BOOST_TEST(never == (std::vector<int>{2, 3}), boost::test_tools::per_element());
    branches::question what;
    BOOST_REQUIRE(branches::parse_view("coverage=choose", what));
    const std::string text = t.ask(what);
    BOOST_TEST(holds(text, "lines run: 4 of 6"));
    BOOST_TEST(holds(text, "never  branch_known.S:" + std::to_string(first + 2) + "-" +
                               std::to_string(first + 3) + "\n"));
    BOOST_REQUIRE(branches::parse_view("coverage=ch*", what));
    BOOST_TEST(holds(t.ask(what), "lines run: 4 of 6"));
    BOOST_REQUIRE(branches::parse_view("coverage=no_such", what));
    BOOST_TEST(holds(t.ask(what), "No branch of this trace begins or ends in"));
}

BOOST_AUTO_TEST_CASE(calls_and_returns_make_a_tree_with_inclusive_counts) {
    tracing t;
    for (int i = 0; i < 2; ++i) {
        t.take(branch_kind::call, t.in("_start", 10), t.in("outer"));
        t.take(branch_kind::call, t.in("outer", 1), t.in("once"));
        t.take(branch_kind::function_return, t.in("once"), t.in("outer", 6));
        t.take(branch_kind::function_return, t.in("outer", 6), t.in("_start", 15));
    }
    branches::call_tree counts;
    BOOST_TEST(tree_of(t, &counts) ==
               "_start 0 2 8\n"
               "  outer 2 4 6\n"
               "    once 2 2 2\n");
    BOOST_TEST(counts.calls == 4U);
    BOOST_TEST(counts.returns == 4U);
    BOOST_TEST(counts.unmatched == 0U);
    BOOST_TEST(counts.unwound == 0U);
}

BOOST_AUTO_TEST_CASE(recursion_is_collapsed_and_counted_once) {
    tracing t;
    t.take(branch_kind::call, t.in("_start", 10), t.in("outer"));
    for (int i = 0; i < 3; ++i) t.take(branch_kind::call, t.in("outer", 1), t.in("outer"));
    for (int i = 0; i < 3; ++i) {
        t.take(branch_kind::function_return, t.in("outer", 6), t.in("outer", 6));
    }
    t.take(branch_kind::function_return, t.in("outer", 6), t.in("_start", 15));
    t.take(branch_kind::jump, t.in("_start", 15), t.in("_start", 20));
    BOOST_TEST(tree_of(t) ==
               "_start 0 2 9\n"
               "  outer 4 7 7\n");
}

BOOST_AUTO_TEST_CASE(a_tail_call_returns_to_the_caller_of_the_one_that_jumped) {
    tracing t;
    t.take(branch_kind::call, t.in("_start", 10), t.in("outer"));
    t.take(branch_kind::jump, t.in("outer", 1), t.in("once"));
    t.take(branch_kind::function_return, t.in("once"), t.in("_start", 15));
    t.take(branch_kind::jump, t.in("_start", 15), t.in("_start", 20));
    branches::call_tree counts;
    BOOST_TEST(tree_of(t, &counts) ==
               "_start 0 2 4\n"
               "  outer 1 1 1\n"
               "  once 1 1 1\n");
    BOOST_TEST(counts.tail_calls == 1U);
    BOOST_TEST(counts.unmatched == 0U);
}

BOOST_AUTO_TEST_CASE(a_jump_into_the_middle_of_a_caller_leaves_all_that_it_called) {
    tracing t;
    t.take(branch_kind::call, t.in("_start", 10), t.in("outer"));
    t.take(branch_kind::call, t.in("outer", 1), t.in("fault"));
    t.take(branch_kind::call, t.in("fault", 1), t.in("once"));
    t.take(branch_kind::indirect_jump, t.in("once"), t.in("_start", 30));  // longjmp
    t.take(branch_kind::jump, t.in("_start", 30), t.in("_start", 40));
    branches::call_tree counts;
    BOOST_TEST(tree_of(t, &counts) ==
               "_start 0 2 5\n"
               "  outer 1 1 3\n"
               "    fault 1 1 2\n"
               "      once 1 1 1\n");
    BOOST_TEST(counts.unwound == 3U);
    BOOST_TEST(counts.tail_calls == 0U);
}

BOOST_AUTO_TEST_CASE(a_trace_that_begins_inside_calls_finds_its_callers) {
    tracing t;
    t.take(branch_kind::function_return, t.in("once"), t.in("outer", 6));
    t.take(branch_kind::function_return, t.in("outer", 6), t.in("_start", 15));
    t.take(branch_kind::call, t.in("_start", 20), t.in("once"));
    branches::call_tree counts;
    BOOST_TEST(tree_of(t, &counts) ==
               "once 0 1 1\n"
               "outer 0 1 1\n"
               "_start 0 1 1\n"
               "  once 1 0 0\n");
    BOOST_TEST(counts.unmatched == 2U);
}

BOOST_AUTO_TEST_CASE(a_tree_without_end_is_cut_and_deep_stacks_are_followed_in_time,
                     *boost::unit_test::label("slow")) {
    // Each call goes to a separate function, as far as the trace shows; then returns to nowhere.
    constexpr int calls = 100'000;
    tracing t(16 << 20);
    for (std::uint64_t i = 0; i < calls; ++i) {
        t.take(branch_kind::call, 0x1000'0000 + 64 * i, 0x1000'0000 + 64 * (i + 1));
    }
    for (int i = 0; i < calls; ++i) {
        t.take(branch_kind::function_return, 0x1000'0000 + 64 * std::uint64_t{calls}, 0x2000'0000);
    }
    branches::code all;
    const auto trace = t.read(all);
    BOOST_REQUIRE(trace.taken == 2U * calls);
    const auto tree = branches::follow_calls(trace.branches, all);
    std::size_t deepest = 0;
    for (const auto& node : tree.nodes) deepest = std::max(deepest, node.depth);
    BOOST_TEST(deepest == 1000U);
    BOOST_TEST(tree.nodes[0].inclusive == 2U * calls);
    BOOST_TEST(tree.unmatched == std::uint64_t{calls});
}

BOOST_AUTO_TEST_CASE(addresses_of_a_kernel_and_runs_that_make_no_sense_are_borne) {
    tracing t;
    const std::uint64_t kernel = 0xFFFF'FFFF'8100'0000;
    t.take(branch_kind::unknown, kernel, kernel + 16);
    t.take(branch_kind::unknown, kernel + 20, ~std::uint64_t{0});
    t.take(branch_kind::unknown, 1, kernel);
    t.take(branch_kind::unknown, ~std::uint64_t{0}, 1);
    t.log().module(70, {~std::uint64_t{0} - 4096, ~std::uint64_t{0}, 0x5000, BRANCH_KNOWN});
    t.log().module(70, {5, 4, 0, BRANCH_KNOWN});
    t.take(branch_kind::unknown, ~std::uint64_t{0} - 2, ~std::uint64_t{0} - 3);
    for (const char* what : {"last", "edges", "blocks", "calls", "coverage=*"}) {
        branches::question asked;
        BOOST_REQUIRE(branches::parse_view(what, asked));
        BOOST_TEST(holds(t.ask(asked), ": 5 taken branches of 1 thread"));
    }
    branches::code all;
    const auto counts = branches::count_blocks(t.read(all).branches, all);
    BOOST_TEST(counts.runs == 2U);
    BOOST_TEST(counts.broken == 2U);
}

BOOST_AUTO_TEST_CASE(a_signal_handler_returns_to_where_it_came_from) {
    tracing t;
    t.take(branch_kind::call, t.in("_start", 10), t.in("outer"));
    t.take(branch_kind::signal, t.in("outer", 1), t.in("once"));
    t.take(branch_kind::interrupt_return, t.in("once"), t.in("outer", 1));
    t.take(branch_kind::function_return, t.in("outer", 6), t.in("_start", 15));
    branches::call_tree counts;
    BOOST_TEST(tree_of(t, &counts) ==
               "_start 0 1 4\n"
               "  outer 1 2 3\n"
               "    once 1 1 1\n");
    BOOST_TEST(counts.unmatched == 0U);
}

BOOST_AUTO_TEST_CASE(a_trace_whose_beginning_was_overwritten_still_has_its_names) {
    constexpr std::uint64_t size = 64 << 10;
    tracing t(size);
    // By one drain, longer than the ring is.
    for (int i = 0; i < 20'000; ++i) {
        t.take(branch_kind::jump, t.in("endless", 1), t.in("endless"));
    }
    t.take(branch_kind::call, t.in("outer", 1), t.in("fault"));
    branches::code all;
    const auto trace = t.read(all);
    BOOST_TEST(trace.lost[trace_ring::loss_cause::overwritten] > 10'000U);
    BOOST_TEST(trace.branches.size() > 1000U);
    BOOST_TEST(trace.nobodys == 0U);
    BOOST_TEST(trace.threads.size() == 1U);
    BOOST_TEST(trace.source == "step");
    BOOST_TEST(all.names(trace.branches.front().from).back().place() == "endless+0x1");
    BOOST_TEST(all.names(trace.branches.back().to).back().place() == "fault");
    branches::question what;
    BOOST_TEST(holds(t.ask(what), "Not there: "));
}

BOOST_AUTO_TEST_CASE(a_trace_whose_beginning_was_overwritten_has_each_branch_in_its_thread) {
    // Each time another place of the drains comes to lie where the trace begins now.
    for (int more = 0; more < 20; ++more) {
        tracing t(64 << 10);
        const auto one = t.in("endless"), two = t.in("once");
        for (int i = 0; i < 6'000 + more * 50; ++i) {
            const bool first = i / 300 % 2 == 0;  // drains of 300
            t.log().of(70, first ? 70 : 71);
            t.take(branch_kind::jump, first ? one : two, first ? one : two);
        }
        branches::code all;
        const auto trace = t.read(all);
        BOOST_TEST(trace.nobodys == 0U);
        BOOST_TEST(trace.branches.size() > 1000U);
        std::size_t wrong = 0;
        for (const auto& b : trace.branches) {
            const bool first = all.names(b.from).back().function == "endless";
            wrong += trace.threads[b.thread].thread != (first ? 70U : 71U);
        }
        BOOST_TEST(wrong == 0U);
    }
}

BOOST_AUTO_TEST_CASE(a_trace_of_something_else_is_refused) {
    const scratch_file file;
    file_builder b;
    b.event({1, "tick", {}});
    b.save(file.path());
    branches::code all;
    BOOST_CHECK_THROW((void)branches::read_branches(file.path(), all),
                      branches::not_a_branch_trace);
}

BOOST_AUTO_TEST_CASE(trace_reduce_answers_and_says_what_it_cannot) {
    const auto run = [](const std::string& arguments) {
        const std::string command = TRACE_REDUCE " " + arguments + " 2>&1";
        std::FILE* const pipe = ::popen(command.c_str(), "r");
        BOOST_REQUIRE(pipe != nullptr);
        std::string text;
        for (int c = 0; (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
        return std::pair(WEXITSTATUS(::pclose(pipe)), text);
    };
    tracing t;
    for (int i = 0; i < 3; ++i) t.take(branch_kind::jump, t.in("endless", 1), t.in("endless"));
    (void)t.ask({});
    const auto [status, text] = run("--branches edges --limit 1 " + t.file.path());
    BOOST_TEST(status == 0);
    BOOST_TEST(holds(text, "3  100.00  jump              endless+0x1"));
    BOOST_TEST(run("--branches last --thread 71 " + t.file.path()).first == 0);
    const auto [listed, listing] = run(t.file.path());  // as any trace
    BOOST_TEST(listed == 0);
    BOOST_TEST(holds(listing, "branch.jump"));
    BOOST_TEST(run("--branches nonsense " + t.file.path()).first == 1);
    BOOST_TEST(run("--branches last --backward " + t.file.path()).first == 1);
    BOOST_TEST(run("--branches last /nowhere/trace").first == 1);
    const scratch_file other;
    file_builder b;
    b.event({1, "tick", {}});
    b.save(other.path());
    const auto [refused, why] = run("--branches last " + other.path());
    BOOST_TEST(refused == 1);
    BOOST_TEST(holds(why, "not of branches"));
    other.write("not even a trace");
    BOOST_TEST(run("--branches last " + other.path()).first == 2);
}

BOOST_AUTO_TEST_CASE(an_object_that_is_gone_is_named_with_the_cause) {
    tracing t;
    t.log().module(70, {0x5000, 0x6000, 0x2000, "/nowhere/lib.so"});
    t.log().module(70, {0x8000, 0x9000, 0, "[vdso]"});
    t.take(branch_kind::call, 0x5010, 0x8020);
    const std::string text = t.ask({});
    BOOST_TEST(holds(text, "lib.so+0x2010 -> [vdso]+0x20"));
    BOOST_TEST(holds(text, "No names from /nowhere/lib.so: cannot be opened"));
}

BOOST_AUTO_TEST_CASE(length_and_kind_of_each_branch_instruction_are_known) {
    struct sample {
        std::vector<std::uint8_t> bytes;
        std::size_t in_64, in_32;
        branch_kind kind;
    };
    // By hand from the opcode map; each has two more bytes behind it.
    const std::vector<sample> samples{
        {{0x74, 0x10}, 2, 2, branch_kind::conditional},                    // je
        {{0x0F, 0x85, 1, 2, 3, 4}, 6, 6, branch_kind::conditional},        // jne, near
        {{0x66, 0x0F, 0x85, 1, 2, 3, 4}, 7, 5, branch_kind::conditional},  // its operand of 16 bits
        {{0xE8, 1, 2, 3, 4}, 5, 5, branch_kind::call},                     // call
        {{0xE9, 1, 2, 3, 4}, 5, 5, branch_kind::jump},                     // jmp
        {{0xEB, 1}, 2, 2, branch_kind::jump},                              // jmp, short
        {{0xE3, 1}, 2, 2, branch_kind::conditional},                       // jrcxz
        {{0xC3}, 1, 1, branch_kind::function_return},                      // ret
        {{0xF3, 0xC3}, 2, 2, branch_kind::function_return},                // rep ret
        {{0xC2, 8, 0}, 3, 3, branch_kind::function_return},                // ret 8
        {{0xFF, 0xD0}, 2, 2, branch_kind::indirect_call},                  // call *%rax
        {{0x41, 0xFF, 0xE3}, 3, 0, branch_kind::indirect_jump},            // jmp *%r11
        {{0xFF, 0x25, 1, 2, 3, 4}, 6, 6, branch_kind::indirect_jump},  // jmp *1(%rip), or *0x...
        {{0xF2, 0xFF, 0x25, 1, 2, 3, 4}, 7, 7, branch_kind::indirect_jump},  // bnd jmp
        {{0xFF, 0x60, 8}, 3, 3, branch_kind::indirect_jump},                 // jmp *8(%rax)
        {{0xFF, 0xA0, 1, 2, 3, 4}, 6, 6, branch_kind::indirect_jump},        // jmp *...(%rax)
        {{0xFF, 0x24, 0xC5, 1, 2, 3, 4}, 7, 7, branch_kind::indirect_jump},  // jmp *...(,%rax,8)
        {{0xFF, 0x64, 0x24, 8}, 4, 4, branch_kind::indirect_jump},           // jmp *8(%rsp)
        {{0x3E, 0xFF, 0xE0}, 3, 3, branch_kind::indirect_jump},              // notrack jmp *%rax
        {{0x0F, 0x05}, 2, 2, branch_kind::system_call},                      // syscall
        {{0xCD, 0x80}, 2, 2, branch_kind::system_call},                      // int $0x80
        {{0x90}, 0, 0, branch_kind::unknown},                                // nop is no branch
        {{0xFF, 0xC0}, 0, 0, branch_kind::unknown},                          // nor is inc
    };
    for (const auto& s : samples) {
        auto bytes = s.bytes;
        bytes.insert(bytes.end(), {0x90, 0x90});
        BOOST_TEST(branches::decode_branch(bytes, true).length == s.in_64);
        BOOST_TEST(branches::decode_branch(bytes, false).length == s.in_32);
        BOOST_TEST((branches::decode_branch(bytes, true).kind == s.kind));
        if (s.in_64 != 0) {
            const std::span<const std::uint8_t> cut(s.bytes.data(), s.in_64 - 1);
            BOOST_TEST(branches::decode_branch(cut, true).length == 0U);  // not all there
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()
