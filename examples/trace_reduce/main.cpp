// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// trace-reduce: what is in trace files, CPTRAP files and core dumps, in any of several formats,
/// forward or backward, now or as it comes.

#include <csignal>

#include <exception>
#include <string>
#include <utility>

#include "inputs.hpp"
#include "kinds/branches.hpp"
#include "kinds/das_tables.hpp"
#include "kinds/job.hpp"
#include "kinds/open.hpp"
#include "kinds/spools.hpp"
#include "kinds/traces.hpp"
#include "options.hpp"
#include "output.hpp"
#if defined(TRACE_REDUCE_SQL)
#include "sql/query.hpp"
#endif
#include "where/select.hpp"

namespace trace_reduce {
namespace {

volatile std::sig_atomic_t interrupted = 0;

void catch_signals() {
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted = 1; };  // no SA_RESTART: a sleep ends
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(signal, &action, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
}

int run(const options& wanted) {
    complaints complain;
    try {
        const auto condition = where::read(wanted.where);
        // A folder is not the output's: it is the format's.
        const bool folder = is_folder(wanted.format);
        output to(folder ? std::string() : wanted.output, wanted.files);
        const job on{wanted, to, complain, interrupted};
        if (!wanted.sql.empty()) {
#if defined(TRACE_REDUCE_SQL)
            query_traces(on);
#else
            complain.system("--sql: this program was built without SQLite");
#endif
        } else if (!wanted.das.empty()) {
            reduce_das_tables(on);
        } else if (!wanted.branches.empty()) {
            reduce_branches(on);
        } else if (opened_files files = open_files(wanted, complain); !files.spools.empty()) {
            reduce_spools(std::move(files), condition, on);
        } else if (!reduce_traces(std::move(files.traces), condition, on)) {
            return complain.status();
        }
        if (interrupted != 0) return 130;
        to.commit();
    } catch (const closed_pipe&) {
        return complain.status();
    } catch (const std::exception& error) {
        complain.system(error.what());
    }
    return complain.status();
}

}  // namespace
}  // namespace trace_reduce

int main(int argc, char** argv) {
    trace_reduce::options wanted;
    int status = 0;
    if (!trace_reduce::parse(argc, argv, wanted, status)) return status;
    trace_reduce::catch_signals();
    return trace_reduce::run(wanted);
}
