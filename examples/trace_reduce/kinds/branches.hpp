// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Questions about branches through trace-reduce, of each file on its own.

#include <cstddef>

#if defined(TRACE_REDUCE_BRANCHES)
#include <branch_trace/report/branch_text.hpp>
#endif
#include <trace_ring/reduce/source/format_error.hpp>

#include "job.hpp"
#include "open.hpp"

namespace trace_reduce {

#if defined(TRACE_REDUCE_BRANCHES)
inline void reduce_branches(const job& on) {
    const auto& wanted = on.wanted;
    branches::question what;
    (void)branches::parse_view(wanted.branches, what);  // the command line was checked
    if (wanted.limit != options{}.limit) what.rows = static_cast<std::size_t>(wanted.limit);
    what.threads = wanted.threads;
    for (const auto& path : wanted.files) {
        if (on.interrupted != 0) return;
        if (!is_trace(path, on.complain)) continue;
        try {
            const auto answer = branches::ask(path, what);
            on.to.text() += answer.text;
            if (&path != &wanted.files.back()) on.to.text() += '\n';
            for (const auto& damage : answer.damages) {
                on.complain.damage(path, damage.offset, damage.what);
            }
        } catch (const trace_ring::format_error& error) {
            on.complain.damage(error.file(), error.offset(), error.cause());
        }
        on.to.flush();
    }
}
#else
inline void reduce_branches(const job& on) {
    on.complain.system("--branches: this program was built without elfutils (libdw) and fmt");
}
#endif

}  // namespace trace_reduce
