// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Runs the clauses of a session for stopped threads, counts the runs, and collects their records.
/// @code
///   runs.fire(thread, registers, function_part::exit, point, &begun);
///   runs.read([](const firing_record& of, std::span<const std::byte> output) { ... });
/// @endcode

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include <trace_ring/point/clauses.hpp>
#include <trace_ring/policy/clock/monotonic.hpp>

#include "../firings/asked_values.hpp"
#include "../firings/firing_record.hpp"
#include "../firings/stack_snapshot.hpp"
#include "stopped_firing.hpp"
#include "traced_thread.hpp"

namespace trace_clauses {

class clause_runs {
public:
    /// `stack_bytes`: as in kernel_source.
    clause_runs(const point::clauses& session, std::uint32_t stack_bytes)
        : session_(session), counts_(session.size()), stack_bytes_(stack_bytes) {
        const auto asks = [&](std::uint32_t clause, program_mode mode) {
            return stack_bytes != 0 &&
                   asks_stack(session_.at(session_.stream_of(clause, mode).action));
        };
        for (std::uint32_t i = 0; i < session.size(); ++i)
            copies_stack_.push_back({asks(i, program_mode::lp64), asks(i, program_mode::ilp32)});
    }

    /// A point, by its number.
    [[nodiscard]] std::uint32_t install(std::span<const std::uint32_t> clauses) {
        return session_.install(clauses);
    }
    /// The words that a clause keeps at a function's entry. `point`: the number under which that
    /// clause is installed.
    [[nodiscard]] kept_words kept(const traced_thread& one, const thread_registers& registers,
                                  std::uint32_t point) const {
        const stopped_firing at(one.tid, one.process, registers, function_part::entry);
        kept_words made;
        session_.fire(point, at.mode(), at, [&](const point::clause_result& done) {
            std::memcpy(&made, done.output.data(), std::min(sizeof made, done.output.size()));
        });
        return made;
    }
    /// `begun`: for an exit, the function's stored entry; null: none.
    void fire(traced_thread& one, const thread_registers& registers, function_part part,
              std::uint32_t point, const entered_call* begun) {
        const stopped_firing at(one.tid, one.process, registers, part, begun);
        session_.fire(point, at.mode(), at, [&](const point::clause_result& done) {
            clause_counts& counted = counts_[done.clause];
            if (done.is == point::clause_result::not_wanted) ++counted.not_wanted;
            if (done.is == point::clause_result::unreadable) ++counted.unreadable;
            if (done.is != point::clause_result::ran) return;
            ++counted.ran;
            const bool wide = at.mode() == program_mode::lp64;
            if (one.comm[0] == 0) at.copy_name(one.comm);
            firing_record head{.clause = done.clause,
                               .faults = done.faults,
                               .time = trace_ring::clock::monotonic::now(),
                               .pid = static_cast<std::uint32_t>(one.process),
                               .tid = static_cast<std::uint32_t>(one.tid),
                               .cpu = 0,
                               .bits = wide ? 64U : 32U,
                               .dropped = dropped_,
                               .comm = {},
                               .call = at.call()};
            std::copy(one.comm.begin(), one.comm.end(), head.comm);
            const bool copies_stack = copies_stack_[done.clause][wide ? 0 : 1];
            const std::size_t snapshot =
                copies_stack ? sizeof(stack_snapshot) + stack_bytes_ : std::size_t{0};
            const std::size_t words =
                (sizeof head + snapshot_at(done.output.size()) + snapshot) / 8;
            const std::size_t begin = records_.size();
            records_.resize(begin + 1 + words);
            records_[begin] = words;
            const auto into = std::as_writable_bytes(std::span(records_).subspan(begin + 1));
            std::memcpy(into.data(), &head, sizeof head);
            std::copy(done.output.begin(), done.output.end(), into.begin() + sizeof head);
            if (copies_stack)
                at.copy_stack(into.subspan(sizeof head + snapshot_at(done.output.size())));
        });
    }
    /// Counts a firing that was missed.
    void drop(std::uint32_t point) {
        for (const std::uint32_t each : session_.at(point)) {
            ++counts_[each].dropped;
            ++dropped_;
        }
    }

    [[nodiscard]] bool any() const noexcept { return !records_.empty(); }
    /// Returns whether there is so much that it should be read.
    [[nodiscard]] bool much() const noexcept { return records_.size() >= much_words; }
    /// Passes each `const firing_record&` recorded since the last call and its output,
    /// `std::span<const std::byte>`, to the visitor, in order. Returns the number of records.
    template <class Tell>
    std::size_t read(Tell&& tell) {
        std::size_t count = 0;
        for (std::size_t at = 0; at < records_.size(); ++count) {
            const auto words = static_cast<std::size_t>(records_[at]);
            const auto bytes = std::as_bytes(std::span(records_).subspan(at + 1, words));
            firing_record head;
            std::memcpy(&head, bytes.data(), sizeof head);
            tell(std::as_const(head), bytes.subspan(sizeof head));
            at += 1 + words;
        }
        records_.clear();
        return count;
    }

    [[nodiscard]] const clause_counts& counts(std::uint32_t clause) const {
        return counts_.at(clause);
    }

private:
    static constexpr std::size_t much_words = std::size_t{1} << 17;

    point::clauses session_;
    std::vector<clause_counts> counts_;
    std::uint32_t stack_bytes_;
    std::vector<std::array<bool, 2>> copies_stack_;  // by clause, for 64 and 32 bits
    std::uint64_t dropped_ = 0;
    std::vector<std::uint64_t> records_;  // each preceded by its length
};

}  // namespace trace_clauses
