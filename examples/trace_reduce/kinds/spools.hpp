// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// CPTRAP files through trace-reduce: what cannot be asked of them is refused, by name.

#include <string>
#include <utility>

#if defined(TRACE_REDUCE_BROWSE)
#include "../browse/browse.hpp"
#endif
#include "../cptrap/choice.hpp"
#include "../cptrap/reduction.hpp"
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
    if (!wanted.where.empty()) {
        return "--where needs fields, which a CPTRAP file's records do not have";
    }
    for (const bool is_from : {true, false}) {
        const auto& text = is_from ? wanted.from : wanted.to;
        spool_place place;
        const auto fault = text.empty() ? text : parse_spool_place(text, place);
        if (!fault.empty()) return (is_from ? "--from: " : "--to: ") + fault;
    }
    if (wanted.format != output_format::text && wanted.format != output_format::json) {
        return "a CPTRAP file is shown as text or json only";
    }
    return {};
}

/// CPTRAP files, which are not merged with others.
inline void reduce_spools(opened_files files, const job& on) {
    const auto& wanted = on.wanted;
    if (const auto why = spool_refusal(files, wanted); !why.empty()) {
        on.complain.system(files.spools.front().name() + ": " + why);
        return;
    }
    if (wanted.browse) {
#if defined(TRACE_REDUCE_BROWSE)
        browse::browse_spools(std::move(files.spools), wanted, on.complain, on.interrupted);
#else
        on.complain.system("--browse: this program was built without ncurses");
#endif
        return;
    }
    spool_reduction shown(std::move(files.spools), wanted, on.coloured(), on.complain,
                          on.interrupted);
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
