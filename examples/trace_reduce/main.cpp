// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// trace-reduce: what is in trace files, CPTRAP files and core dumps, in any of several formats,
/// forward or backward, now or as it comes.

#include <unistd.h>
#include <csignal>
#include <ctime>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#if defined(TRACE_REDUCE_BRANCHES)
#include <branch_trace/report/branch_text.hpp>
#endif

#if defined(TRACE_REDUCE_BROWSE)
#include "browse/browse.hpp"
#endif
#include "cptrap/reduction.hpp"
#include "formats.hpp"
#include "inputs.hpp"
#include "kinds/open.hpp"
#include "measure/in_json.hpp"
#include "measure/in_text.hpp"
#include "measure/pass.hpp"
#include "options.hpp"
#include "output.hpp"
#include "position/offsets.hpp"
#include "position/ranges.hpp"
#include "progress.hpp"
#include "statistics.hpp"
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

using inputs = std::vector<std::unique_ptr<input>>;

/// Prints items until there are none (now), or as many records as are wanted.
void print_items(const inputs& from, const options& wanted, output& to, std::uint64_t& records,
                 progress& told) try {
    unsigned since = 0;
    std::vector<time_span> spans;  // by which it is told how far it is
    if (told.wanted() && !wanted.follow) {
        for (const auto& each : from) spans.emplace_back(each->file().about());
    }
    while (records < wanted.limit && interrupted == 0) {
        input* const next = next_of(from, wanted.backward);
        if (next == nullptr) return;
        const bool is_record = std::holds_alternative<reduce::record_view>(*next->peek());
        if (++since % 65536 == 0) {
            // All files are as far as the one whose turn it is, by time.
            std::optional<double> part;
            for (std::size_t i = 0; i < spans.size(); ++i) {
                if (from[i].get() == next) part = spans[i].part(reduce::time_of(*next->peek()));
            }
            told.tell(records, part && wanted.backward ? 1 - *part : part);
        }
        next->append(to.text());
        next->pop();
        to.flush_some();
        if (is_record) ++records;
    }
} catch (const where::interruption&) {
    // Nothing was lost by it: what follows goes on from there.
}

/// What is to be drawn as a flow or a counter is there, unless it may come yet.
void check_roles(const inputs& from, const options& wanted) {
    if (wanted.follow) return;
    const auto check = [&](const std::vector<std::string>& globs, bool flows) {
        for (const auto& glob : globs) {
            const bool there = std::any_of(from.begin(), from.end(), [&](const auto& each) {
                const auto& types = each->file().event_types();
                return std::any_of(types.begin(), types.end(), [&](const auto& type) {
                    return exporter::field_roles::means(glob, flows, type);
                });
            });
            if (there) continue;
            throw std::runtime_error(flows ? "--flow " + glob + ": no integer field of that name"
                                           : "--counter " + glob + ": no number of that name");
        }
    };
    check(wanted.flows, true);
    check(wanted.counters, false);
}

void follow(const inputs& from, const options& wanted, output& to, progress& told) {
    std::uint64_t records = 0;
    const auto live = [&from] {
        for (const auto& each : from) {
            each->file().refresh();
            if (each->file().live()) return true;
        }
        return false;
    };
    for (;;) {
        // Asked before: what is written until then is seen by the reading that follows.
        const bool closed = wanted.until_closed && !live();
        print_items(from, wanted, to, records, told);
        to.flush();
        if (interrupted != 0 || closed || records >= wanted.limit) break;
        const std::timespec pause{0, 50'000'000};
        ::nanosleep(&pause, nullptr);
        for (const auto& each : from) each->judge_tables();
    }
    interrupted = 0;  // it was the way to end this
    if (records >= wanted.limit) return;
    for (const auto& each : from) each->stop_following();
    print_items(from, wanted, to, records, told);
}

/// Counts, and shows what was measured on the way, if that was asked for, in `into`.
reduce::trace_statistics measured_statistics(input& from, const options& wanted,
                                             std::size_t columns, progress& told,
                                             text_buffer& into) {
    if (!wanted.measures.any()) {
        if (!told.wanted()) return from.file().statistics(from.what());
        reduce::no_observer nobody;
        return from.file().statistics(from.what(), told_on(told, from.file().about(), nobody));
    }
    const auto& time = from.file().time();
    measure::pass measures(wanted.measures, time);
    auto sum = from.file().statistics(from.what(), told_on(told, from.file().about(), measures));
    measures.finish();
    const double seconds = time.known() ? sum.seconds(time) : 0;
    if (wanted.format == output_format::json) {
        measure::json_report(into, wanted.measures, from.file().name(), seconds, time.known())
            .show(measures);
    } else {
        measure::text_report(into, wanted.measures, columns, sum.records, seconds, time.known())
            .show(measures);
    }
    return sum;
}

void show_statistics(const inputs& from, const options& wanted, output& to, progress& told) try {
    const std::size_t columns = to.columns();
    for (const auto& each : from) {
        if (interrupted != 0) return;
        text_buffer found;  // beyond the plain statistics
        const auto sum = measured_statistics(*each, wanted, columns, told, found);
        each->complain_of(sum);
        if (wanted.format == output_format::json) {
            in_json::show(to.text(), each->file(), sum);
            to.text() += found.view();
        } else {
            exporter::text_writer times(each->file().time(), {.time = wanted.time});
            in_text::show(to.text(), each->file(), sum, times);
            to.text() += found.view();
            if (each != from.back()) to.text() += '\n';
        }
        to.flush();
    }
} catch (const where::interruption&) {
    // The trace that was counted has no sum.
}

#if defined(TRACE_REDUCE_BRANCHES)
/// A question about branches, of each file on its own.
void show_branches(const options& wanted, output& to, complaints& complain) {
    branches::question what;
    (void)branches::parse_view(wanted.branches, what);  // the command line was checked
    if (wanted.limit != options{}.limit) what.rows = static_cast<std::size_t>(wanted.limit);
    what.threads = wanted.threads;
    for (const auto& path : wanted.files) {
        if (interrupted != 0) return;
        if (!is_trace(path, complain)) continue;
        try {
            const auto answer = branches::ask(path, what);
            to.text() += answer.text;
            if (&path != &wanted.files.back()) to.text() += '\n';
            for (const auto& damage : answer.damages) {
                complain.damage(path, damage.offset, damage.what);
            }
        } catch (const trace_ring::format_error& error) {
            complain.damage(error.file(), error.offset(), error.cause());
        }
        to.flush();
    }
}
#else
void show_branches(const options&, output&, complaints& complain) {
    complain.system("--branches: this program was built without elfutils (libdw) and fmt");
}
#endif

/// CPTRAP files, which are not merged with others.
void show_spools(opened_files files, const options& wanted, bool colour, output& to,
                 complaints& complain) {
    const std::string name = files.spools.front().name();
    if (!files.traces.empty()) {
        complain.system(name +
                        ": a CPTRAP file, whose records have no time to merge them by: "
                        "give it without traces");
        return;
    }
    if (!wanted.events.empty() || !wanted.threads.empty()) {
        complain.system(name +
                        ": a CPTRAP file has neither events nor threads: use --type, --code");
        return;
    }
    if (!wanted.where.empty()) {
        complain.system(name + ": --where needs fields, which a CPTRAP file's records do not have");
        return;
    }
    if (wanted.format != output_format::text && wanted.format != output_format::json) {
        complain.system(name + ": a CPTRAP file is shown as text or json only");
        return;
    }
    spool_reduction shown(std::move(files.spools), wanted, colour, complain, interrupted);
    if (wanted.statistics) return shown.count(to);
    if (!wanted.follow) return shown.print(to);
    shown.follow(to);
    interrupted = 0;  // it was the way to end this
}
#if defined(TRACE_REDUCE_BROWSE)
void show_browser(const options& wanted, complaints& complain) {
    browse::browse(wanted, complain, interrupted);
}
#else
void show_browser(const options&, complaints& complain) {
    complain.system("--browse: this program was built without ncurses");
}
#endif

int run(const options& wanted) {
    complaints complain;
    try {
        if (wanted.browse) {
            show_browser(wanted, complain);
            return interrupted != 0 ? 130 : complain.status();
        }
        const auto what = where::read(wanted.where);
        // A folder is not the output's: it is the format's.
        const bool folder = wanted.format == output_format::ctf;
        output to(folder ? std::string() : wanted.output, wanted.files);
        if (!wanted.branches.empty()) {
            show_branches(wanted, to, complain);
            if (interrupted != 0) return 130;
            to.commit();
            return complain.status();
        }
        const bool colour = wanted.format == output_format::text && !wanted.statistics &&
                            (wanted.colour == colouring::always ||
                             (wanted.colour == colouring::automatic && to.is_terminal() &&
                              std::getenv("NO_COLOR") == nullptr));
        opened_files files = open_files(wanted, complain);
        if (!files.spools.empty()) {
            show_spools(std::move(files), wanted, colour, to, complain);
            to.flush();
            if (interrupted != 0) return 130;
            to.commit();
            return complain.status();
        }
        if (!wanted.types.empty() || !wanted.codes.empty() || !wanted.pages.empty()) {
            complain.system("--type, --code and --page are for CPTRAP files, and there is none");
            return complain.status();
        }
        const auto shown = make_format(wanted, colour, files.traces.size() > 1);
        const inputs from = open_all(std::move(files.traces), wanted, complain);
        if (from.empty()) return complain.status();
        if (!position::offsets(from, wanted, complain).apply(to.text()) ||
            !position::ranges(from, wanted, complain).apply()) {
            return complain.status();
        }
        where::select(
            from,
            [](input& of) {
                return std::pair<reduce::trace_file&, reduce::filter&>(of.file(), of.what());
            },
            wanted.where, what, wanted.follow, interrupted);
        check_roles(from, wanted);
        progress told(::isatty(STDERR_FILENO) != 0 && !to.is_terminal());
        if (wanted.statistics) {
            show_statistics(from, wanted, to, told);
        } else {
            for (const auto& each : from) {
                each->show_by(*shown);
                each->start(wanted);
            }
            shown->begin(to.text());
            if (wanted.follow) {
                follow(from, wanted, to, told);
            } else {
                std::uint64_t records = 0;
                print_items(from, wanted, to, records, told);
            }
            shown->end(to.text());
            if (interrupted == 0) shown->commit();
        }
        for (const auto& each : from) each->judge_tables();
        to.flush();
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
