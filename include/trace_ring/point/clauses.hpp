// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The clauses of a session: each compiled for both modes of programs, all in one table, and found
/// by the trace point that fires.
/// @code
///   trace_ring::point::clauses session;
///   const auto large = session.add({predicate_64, action_64, 16}, {predicate_32, action_32, 12});
///   const auto malloc_entry = session.install({&large, 1});
///   session.fire(malloc_entry, record::program_mode::ilp32, firing, [](const auto& ran) { ... });
/// @endcode
/// The mode of the firing process selects the code; nothing is loaded or compiled at that time.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <trace_ring/point/machine/check.hpp>
#include <trace_ring/point/machine/code.hpp>
#include <trace_ring/point/machine/run.hpp>
#include <trace_ring/record/data_model.hpp>

namespace trace_ring::inline v1::point {

/// A clause's code for one mode. An empty predicate is always true.
struct clause_code {
    code predicate;                  ///< decides whether the action runs
    code action;                     ///< stores the output
    std::uint32_t output_bytes = 0;  ///< what the action stores
};

/// The result of a clause at a firing.
struct clause_result {
    /// What happened.
    enum fate : std::uint8_t {
        ran,
        not_wanted,  ///< the predicate is false
        unreadable,  ///< the predicate could not read a value that it uses: neither true nor false
    };
    std::uint32_t clause = 0;           ///< the clause's number
    fate is = ran;                      ///< what happened
    std::uint32_t faults = 0;           ///< of the action: values that it could not read are 0
    std::span<const std::byte> output;  ///< of the action; valid during the call
};

/// Filled by one thread; afterwards any thread may call `fire` and `stream_of`.
class clauses {
public:
    /// A part of the table, in instructions.
    struct part {
        std::uint32_t offset = 0;  ///< index of the first instruction
        std::uint32_t size = 0;    ///< number of instructions
    };
    /// A clause's code for one mode, as parts of the table.
    struct stream {
        part predicate;                  ///< empty: always true
        part action;                     ///< stores the output
        std::uint32_t output_bytes = 0;  ///< what the action stores
    };

    /// Adds a clause, and returns its number. Throws std::invalid_argument that names the mode, the
    /// part, the instruction and what is wrong, if `find_fault` rejects the code; nothing is added
    /// then.
    std::uint32_t add(const clause_code& lp64, const clause_code& ilp32) {
        refuse_faulty(lp64, "64-bit");
        refuse_faulty(ilp32, "32-bit");
        clauses_.push_back({append(lp64), append(ilp32)});
        return static_cast<std::uint32_t>(clauses_.size() - 1);
    }
    /// Adds a trace point with its clauses, which run in this order, and returns its identifier.
    /// Throws std::invalid_argument if there is no such clause.
    std::uint32_t install(std::span<const std::uint32_t> of) {
        for (const std::uint32_t one : of) {
            if (one >= clauses_.size()) {
                throw std::invalid_argument("there is no clause " + std::to_string(one));
            }
        }
        points_.emplace_back(of.begin(), of.end());
        return static_cast<std::uint32_t>(points_.size() - 1);
    }

    /// The number of clauses.
    [[nodiscard]] std::size_t size() const noexcept { return clauses_.size(); }
    /// The clauses of a trace point; empty if there is no such point.
    [[nodiscard]] std::span<const std::uint32_t> at(std::uint32_t point) const noexcept {
        if (point >= points_.size()) return {};
        return points_[point];
    }
    /// A clause's code for one mode. `clause` must exist.
    [[nodiscard]] const stream& stream_of(std::uint32_t clause,
                                          record::program_mode mode) const noexcept {
        return clauses_[clause][static_cast<std::size_t>(mode)];
    }
    /// The instructions of a part.
    [[nodiscard]] code at(part of) const noexcept {
        return code(instructions_).subspan(of.offset, of.size);
    }

    /// Runs all clauses of a point, by the mode of the process that fired; passes the result of
    /// each to the visitor. An unknown point has no clauses.
    template <firing Firing, class Tell>
    void fire(std::uint32_t point, record::program_mode mode, Firing& of, Tell&& tell) const {
        for (const std::uint32_t clause : at(point)) run_clause(clause, mode, of, tell);
    }
    /// Runs one clause, for clauses at the begin and end of a session, which belong to no process
    /// and run as 64-bit.
    template <firing Firing, class Tell>
    void run_once(std::uint32_t clause, Firing& of, Tell&& tell) const {
        run_clause(clause, record::program_mode::lp64, of, tell);
    }

private:
    static void refuse_faulty(const clause_code& of, const char* mode) {
        const auto refuse = [mode](const char* part, const code_fault& why) {
            throw std::invalid_argument(std::string("the ") + mode + " " + part + ", instruction " +
                                        std::to_string(why.at) + ": " + why.what);
        };
        if (!of.predicate.empty()) {
            if (const auto why = find_fault(of.predicate, {.is_predicate = true})) {
                refuse("predicate", *why);
            }
        }
        if (const auto why = find_fault(of.action, {.output_bytes = of.output_bytes})) {
            refuse("action", *why);
        }
    }
    [[nodiscard]] stream append(const clause_code& of) {
        const auto copied = [this](code from) {
            const part made{static_cast<std::uint32_t>(instructions_.size()),
                            static_cast<std::uint32_t>(from.size())};
            instructions_.insert(instructions_.end(), from.begin(), from.end());
            return made;
        };
        const part predicate = copied(of.predicate);
        return {predicate, copied(of.action), of.output_bytes};
    }
    template <class Firing, class Tell>
    void run_clause(std::uint32_t clause, record::program_mode mode, Firing& of, Tell& tell) const {
        const stream& chosen = stream_of(clause, mode);
        clause_result result{clause, clause_result::ran, 0, {}};
        if (chosen.predicate.size != 0) {
            const outcome wanted = run(at(chosen.predicate), of, {});
            if (wanted.faults != 0) {
                result.is = clause_result::unreadable;
                result.faults = wanted.faults;
            } else if (wanted.value == 0) {
                result.is = clause_result::not_wanted;
            }
        }
        if (result.is != clause_result::ran) {
            tell(static_cast<const clause_result&>(result));
            return;
        }
        std::array<std::byte, most_output> output;
        const auto used = std::span(output).first(chosen.output_bytes);
        result.faults = run(at(chosen.action), of, used).faults;
        result.output = used;
        tell(static_cast<const clause_result&>(result));
    }

    std::vector<instruction> instructions_;
    std::vector<std::array<stream, 2>> clauses_;  // by mode
    std::vector<std::vector<std::uint32_t>> points_;
};

}  // namespace trace_ring::inline v1::point
