// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Compiles a clause of a script to byte code, for one mode of programs.
/// @code
///   const environment of_malloc{types, &declared, false};
///   const compiled made = compile(clause, of_malloc);  // throws mistake
/// @endcode
/// The values of a clause are C values in this mode: `long` and pointers have 4 or 8 bytes, and
/// arithmetic converts and wraps as in C. Stored values have the same form in both modes: whole
/// numbers and addresses have 8 bytes.
///
/// | name | what it is |
/// |---|---|
/// | arg0, arg1 ... | the arguments, as the function declares them if that is known, else unsigned long |
/// | any other | the argument or the enumerator of that name, if it is known |
/// | retval | the result of the function or system call, at its exit; as declared, or long |
/// | pid, tid, uid, cpu, bits | of the firing thread; bits is 32 or 64 |
/// | time, ip | ns of CLOCK_MONOTONIC, and the address that fires |
/// | elapsed | at the exit of a function or system call: ns since its entry |
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
/// `str(POINTER)` is the text at this address, of at most 64 bytes, or BYTES with `str(POINTER,
/// BYTES)`. `ustack(N)` has at most N addresses, and 16 by default. Values of enumerations have
/// their names. An array of characters is a text. Other arrays of whole numbers are captured as a
/// whole.

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

/// The arguments that clauses at a function's exit use.
struct kept_arguments {
    std::vector<point::instruction> code{};        ///< runs at the entry; stores them as kept_words
    std::map<std::size_t, std::uint8_t> places{};  ///< index of the word, by the argument's number
};

/// What is known about the place for which a clause is compiled. Everything that it refers to must
/// outlive the compilation.
struct environment {
    type_table& types;                        ///< for the mode; pointers and arrays are added to it
    const function_type* declared = nullptr;  ///< null: unknown
    bool at_return = false;
    const std::vector<usdt_argument>* probe = nullptr;  ///< the places of a probe's arguments
    bool at_system_call = false;     ///< its arguments are also known at its return
    std::string_view function{};     ///< the value of `func`; empty: none
    std::string_view probe_name{};   ///< the value of `probe`
    std::string_view system_call{};  ///< the value of `syscall`
    /// The source provides the thread's vector and x87 registers.
    bool has_all_registers = false;
    /// Undeclared arguments and results are where the ABI puts whole numbers; otherwise their place
    /// is unknown.
    bool keeps_to_abi = true;
    /// At a function's exit: collects the arguments that must be kept from its entry.
    kept_arguments* kept = nullptr;
    /// Finds an enumerator of the program. The script's enumerators are in `types`.
    std::function<std::optional<enumerator>(const std::string&)> value{};
};

/// A part of an action's output.
struct stored_field {
    std::string name;  ///< as written in the script
    trace_ring::field_type type = trace_ring::field_type::u64;
    trace_ring::field_form form = trace_ring::field_form::scalar;
    std::uint32_t offset = 0;
    std::uint32_t count = 1;  ///< elements; for a text, its maximum bytes
    /// The offsets in the output of the fault counts before and after it, 2 bytes each. 0 as an
    /// offset means: none before, or it cannot fail.
    std::uint32_t faults_before = 0;
    std::uint32_t faults_behind = 0;
    /// A value that is the same for each firing, so it is not stored.
    std::optional<std::string> constant{};
    /// The names of an enumeration's values; null: none.
    std::shared_ptr<const trace_ring::reduce::value_names> values{};
};
struct statement {
    enum class kind : std::uint8_t { capture, count, histogram };
    kind is = kind::capture;
    std::vector<stored_field> fields{};  ///< for a histogram: the value, then the keys
};

struct compiled {
    std::vector<point::instruction> predicate{};  ///< empty: always true
    std::vector<point::instruction> action{};
    std::uint32_t output_bytes = 0;
    std::vector<statement> statements{};
    std::vector<point::instruction> entry{};  ///< the action that fills kept_words; empty: none
};

/// Compiles a clause of `text`. point::find_fault accepts the result. Throws mistake, with the
/// place in the text, and std::bad_alloc.
[[nodiscard]] compiled compile(std::string_view text, const expressions::clause_text& clause,
                               const environment& in);

}  // namespace trace_clauses
