// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// CPTRAP files through trace-reduce: what cannot be asked of them is refused, by name.

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "../../expressions/parse.hpp"
#if defined(TRACE_REDUCE_BROWSE)
#include "../browse/browse.hpp"
#endif
#include "../cptrap/choice.hpp"
#include "../cptrap/condition.hpp"
#include "../cptrap/reduction.hpp"
#include "../cptrap/spool_choice.hpp"
#include "../where/select.hpp"
#include "job.hpp"
#include "open.hpp"

namespace trace_reduce {

/// Why what is wanted of CPTRAP files makes no sense; empty if it does.
[[nodiscard]] inline std::string spool_refusal(const opened_files& files, const options& wanted) {
    if (!files.traces.empty()) {
        return "a CPTRAP file, whose records have no time to merge them by: give it without traces";
    }
    if (!wanted.events.empty() || !wanted.threads.empty()) {
        return "a CPTRAP file has neither events nor threads: use --type, --code";
    }
    if (wanted.measures.any()) {
        return "--fields, --by and --histogram need fields, which a CPTRAP file does not have: "
               "--stats counts by type and code";
    }
    if (!wanted.offsets.empty() || !wanted.matches.empty()) {
        return "--offset and --match correct times, which a CPTRAP file does not have";
    }
    if (wanted.symbols) return "--symbols names addresses, which a CPTRAP file does not have";
    if (!wanted.flows.empty() || !wanted.counters.empty()) {
        return "--flow and --counter are for timelines, which a CPTRAP file does not have";
    }
    for (const bool is_from : {true, false}) {
        const auto& text = is_from ? wanted.from : wanted.to;
        spool_place place;
        const auto fault = text.empty() ? text : parse_spool_place(text, place);
        if (!fault.empty()) return (is_from ? "--from: " : "--to: ") + fault;
    }
    for (const auto& facts : known_formats) {
        if (facts.value == wanted.format && !facts.spools) {
            return std::string("--format ") + facts.name +
                   " is not for CPTRAP files, which are shown as text, json, csv, html or print";
        }
    }
    return {};
}

/// The records that the command line chooses; `condition` is the condition of --where. Throws
/// where::wrong_expression.
[[nodiscard]] inline spool_choice choice_of(
    const options& wanted, const std::optional<expressions::expression>& condition) {
    if (!condition) return {wanted.types, wanted.codes};
    auto made = spool_condition::make(*condition);
    if (const auto* wrong = std::get_if<expressions::mistake>(&made)) {
        throw where::wrong_expression(wanted.where, *wrong);
    }
    return {wanted.types, wanted.codes, wanted.where, std::get<0>(std::move(made))};
}

/// CPTRAP files, which are not merged with others. `condition` is the condition of --where.
inline void reduce_spools(opened_files files,
                          const std::optional<expressions::expression>& condition, const job& on) {
    const auto& wanted = on.wanted;
    if (const auto why = spool_refusal(files, wanted); !why.empty()) {
        on.complain.system(files.spools.front().name() + ": " + why);
        return;
    }
    spool_choice what = choice_of(wanted, condition);
    if (wanted.browse) {
#if defined(TRACE_REDUCE_BROWSE)
        browse::browse_spools(std::move(files.spools), wanted, std::move(what), on.complain,
                              on.interrupted);
#else
        on.complain.system("--browse: this program was built without ncurses");
#endif
        return;
    }
    spool_reduction shown(std::move(files.spools), wanted, std::move(what), on.coloured(),
                          on.complain, on.interrupted);
    if (wanted.statistics) {
        shown.count(on.to);
    } else if (wanted.follow) {
        shown.follow(on.to);
        on.interrupted = 0;
    } else {
        shown.print(on.to);
    }
    on.to.flush();
}

}  // namespace trace_reduce
