// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Compiles a clause of a script to byte code, for one mode of programs.
/// @code
///   const environment of_malloc{types, &declared, false};
///   const compiled made = compile(clause, of_malloc);  // throws mistake
/// @endcode
/// The values of a clause are those of C in the mode: `long` and pointers have 4 bytes or 8, and
/// arithmetic converts and wraps as it does there. What is stored is of one shape for both modes:
/// whole numbers and addresses have 8 bytes.
///
/// | name | what it is |
/// |---|---|
/// | arg0, arg1 ... | the arguments, as the function declares them if that is known, else unsigned long |
/// | any other | the argument of that name, or what an enumeration calls so, if it is known |
/// | retval | what the function or system call returns, at its exit; as declared, or long |
/// | pid, tid, uid, cpu, bits | of who fires; bits is 32 or 64 |
/// | time, ip | ns of CLOCK_MONOTONIC, and the address that fires |
/// | elapsed | where a function or system call exits: ns since it was entered |
/// | comm | the thread's name, a text |
/// | func, probe, syscall | what fires: the function's name, "PROVIDER:NAME", the system call's |
/// | ustack | the return addresses, to be captured |
///
/// | action | what it does |
/// |---|---|
/// | `capture(VALUE, ...)` | records an event with these fields |
/// | `count(KEY, ...)` | counts, for each combination of keys |
/// | `hist(VALUE, KEY, ...)` | counts by powers of two, for each combination of keys |
///
/// `str(POINTER)` is the text there, of at most 64 bytes, or of `str(POINTER, BYTES)`; `ustack(N)`
/// has N addresses, else 16; values of enumerations have their names; an array of characters is a
/// text, and other arrays of whole numbers are captured whole.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <trace_ring/point/expression.hpp>
#include <trace_ring/point/machine/code.hpp>
#include <trace_ring/record/field.hpp>
#include <trace_ring/reduce/tables/value_names.hpp>

#include "../../expressions/parse.hpp"
#include "../points/usdt.hpp"
#include "../types/type_table.hpp"

namespace trace_clauses {

using trace_ring::point::expression;
using trace_ring::point::mistake;

/// The arguments for which clauses at a function's exit ask.
struct kept_arguments {
    std::vector<point::instruction> code{};  ///< where it is entered: stores them, as kept_words
    std::map<std::size_t, std::uint8_t> places{};  ///< by the argument's number: which word
};

/// What is known where a clause is compiled. All that is named must outlive the compilation.
struct environment {
    type_table& types;                        ///< of the mode; pointers and arrays are added to it
    const function_type* declared = nullptr;  ///< null: unknown
    bool at_return = false;
    const std::vector<usdt_argument>* probe = nullptr;  ///< where a probe has its arguments
    bool at_system_call = false;     ///< its arguments are known where it returns, too
    std::string_view function{};     ///< what `func` is; empty: there is none
    std::string_view probe_name{};   ///< the same of `probe`
    std::string_view system_call{};  ///< and of `syscall`
    /// Whoever fires also tells its vector and x87 registers.
    bool has_all_registers = false;
    /// Undeclared arguments and results are where the ABI has whole numbers; else nobody knows.
    bool keeps_to_abi = true;
    /// At a function's exit: where arguments are noted that are kept from its entry.
    kept_arguments* kept = nullptr;
    /// What the program's enumerations call so; the script's are in `types`.
    std::function<std::optional<enumerator>(const std::string&)> value{};
};

/// A part of what an action stores.
struct stored_field {
    std::string name;  ///< as it stands in the script
    trace_ring::field_type type = trace_ring::field_type::u64;
    trace_ring::field_form form = trace_ring::field_form::scalar;
    std::uint32_t offset = 0;
    std::uint32_t count = 1;  ///< elements; of a text, the most bytes
    /// Where the output has how many faults there were before it and behind it, in 2 bytes; 0 as
    /// an offset: none before, or it cannot fail.
    std::uint32_t faults_before = 0;
    std::uint32_t faults_behind = 0;
    /// What it is, whoever fires: nothing is stored.
    std::optional<std::string> constant{};
    /// What an enumeration calls its values; null: they have no names.
    std::shared_ptr<const trace_ring::reduce::value_names> values{};
};
struct statement {
    enum class kind : std::uint8_t { capture, count, histogram };
    kind is = kind::capture;
    std::vector<stored_field> fields{};  ///< a histogram's value is the first, then keys
};

struct compiled {
    std::vector<point::instruction> predicate{};  ///< empty: always
    std::vector<point::instruction> action{};
    std::uint32_t output_bytes = 0;
    std::vector<statement> statements{};
    std::vector<point::instruction> entry{};  ///< the action that fills kept_words; empty: none
};

/// Compiles a clause of `text`. What it returns is accepted by point::find_fault. Throws mistake,
/// with its place in the text, and std::bad_alloc.
[[nodiscard]] compiled compile(std::string_view text, const expressions::clause_text& clause,
                               const environment& in);

}  // namespace trace_clauses
