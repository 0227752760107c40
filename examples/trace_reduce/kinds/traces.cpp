// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "traces.hpp"
#include "../exporting/viewer/roles.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include <trace_ring/exporter/text.hpp>
#include <trace_ring/reduce/filter.hpp>
#include <trace_ring/reduce/item.hpp>
#include <trace_ring/reduce/item/record_view.hpp>
#include <trace_ring/reduce/statistics.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#if defined(TRACE_REDUCE_BROWSE)
#include "../browse/browse.hpp"
#endif
#include "../formats.hpp"
#include "../measure/in_json.hpp"
#include "../measure/in_text.hpp"
#include "../measure/pass.hpp"
#include "../position/offsets.hpp"
#include "../position/ranges.hpp"
#include "../progress.hpp"
#include "../statistics.hpp"
#include "../statistics_csv.hpp"
#include "../unmatched.hpp"
#include "../where/functions.hpp"
#include "../where/select.hpp"

namespace trace_reduce {

namespace {

using inputs = std::vector<std::unique_ptr<input>>;

/// What is to be drawn as a flow or a counter is there, unless it may come yet.
void check_roles(const inputs& from, const options& wanted) {
    if (wanted.follow) return;
    const auto check = [&](const std::vector<std::string>& globs, bool flows) {
        for (const auto& glob : globs) {
            const bool there = std::any_of(from.begin(), from.end(), [&](const auto& each) {
                const auto& types = each->file().event_types();
                return std::any_of(types.begin(), types.end(), [&](const auto& type) {
                    return exporting::field_roles::means(glob, flows, type);
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

using conditions = std::vector<std::optional<expressions::expression>>;

/// The condition for each trace: names of functions are looked up in the trace. Throws
/// wrong_expression.
conditions conditions_for(const inputs& from, const expressions::expression& condition,
                          const job& on) {
    conditions all(from.size(), condition);
    const bool fields = std::any_of(from.begin(), from.end(), [](const auto& each) {
        const auto& types = each->file().event_types();
        return std::any_of(types.begin(), types.end(), [](const auto& type) {
            return type.find("function") != reduce::event_type::npos;
        });
    });
    if (fields || !where::asks_for_functions(condition)) return all;
    std::vector<expressions::expression> unknown;  // to all of them
    for (std::size_t i = 0; i < from.size(); ++i) {
        auto& known = from[i]->names();
        const auto sites_of = [&known](const std::string& name, bool glob) {
            std::vector<where::site_range> sites;
            for (const auto& each : known.named(name, glob))
                sites.push_back({each.pid, each.low, each.high});
            return sites;
        };
        where::functions functions(sites_of, known.has_several());
        all[i] = functions.without(condition);
        if (functions.wrong()) throw where::wrong_expression(on.wanted.where, *functions.wrong());
        if (i == 0) unknown = functions.unknown();
        std::erase_if(unknown, [&](const auto& each) {
            return std::none_of(functions.unknown().begin(), functions.unknown().end(),
                                [&](const auto& one) { return one.column == each.column; });
        });
    }
    if (unknown.empty()) return all;
    const auto& name = unknown[0];
    std::string what;
    const std::string problem = from[0]->names().problem();
    if (!problem.empty()) {
        what = "no functions are known: " + problem;
    } else if (name.what == where::form::like) {
        what = "no function has such a name";
    } else {
        what = "no function is called '" + name.word + "'";
        const std::string other = from[0]->names().nearest(name.word);
        if (!other.empty()) what += "; did you mean '" + other + "'?";
    }
    throw where::wrong_expression(on.wanted.where, {name.column, name.length, std::move(what)});
}

void select(const inputs& from, const std::optional<expressions::expression>& condition,
            const job& on) {
    where::select(
        from,
        [](input& of) {
            return std::pair<reduce::trace_file&, reduce::filter&>(of.file(), of.what());
        },
        on.wanted.where, condition ? conditions_for(from, *condition, on) : conditions(from.size()),
        on.wanted.follow, on.interrupted);
}

class trace_reduction {
public:
    /// When files are followed, others may come into `from`, and those that ended go.
    trace_reduction(inputs& from, const std::optional<expressions::expression>& condition,
                    const job& on)
        : from_(from),
          condition_(condition),
          on_(on),
          wanted_(on.wanted),
          told_(::isatty(STDERR_FILENO) != 0 && !on.to.is_terminal()) {}

    /// The number of records that were shown or counted.
    [[nodiscard]] std::uint64_t records() const noexcept { return records_; }

    /// To the end, the limit or an interrupt.
    void print(format& shown) {
        for (const auto& each : from_) {
            each->show_by(shown, wanted_);
            each->start(wanted_);
        }
        shown.begin(on_.to.text());
        if (wanted_.follow) {
            follow(shown);
        } else {
            print_items();
        }
        shown.end(on_.to.text());
        if (on_.interrupted == 0) shown.commit();
    }

    void count() try {
        const std::size_t columns = on_.to.columns();
        if (wanted_.format == output_format::csv) {
            in_csv::statistics_rows::show_header(on_.to.text());
        }
        for (const auto& each : from_) {
            if (on_.interrupted != 0) return;
            measure::pass measures(wanted_.measures, each->file().about());
            const auto sum = measured(*each, measures);
            records_ += sum.records;
            each->complain_of(sum);
            show(*each, sum, measures, columns);
            if (wanted_.format == output_format::text && each != from_.back()) {
                on_.to.text() += '\n';
            }
            on_.to.flush();
        }
    } catch (const interruption&) {
        // The trace that was counted has no sum.
    }

private:
    /// Prints items until there are none (now), or as many records as are wanted.
    void print_items() try {
        unsigned since = 0;
        std::vector<time_span> spans;  // by which the progress is shown
        if (told_.wanted() && !wanted_.follow) {
            for (const auto& each : from_) spans.emplace_back(each->file().about());
        }
        while (records_ < wanted_.limit && on_.interrupted == 0) {
            input* const next = next_of(from_, wanted_.backward);
            if (next == nullptr) return;
            const bool is_record = std::holds_alternative<reduce::record_view>(*next->peek());
            if (++since % 65536 == 0) {
                // All files are as far as the one whose turn it is, by time.
                std::optional<double> part;
                for (std::size_t i = 0; i < spans.size(); ++i) {
                    if (from_[i].get() == next) {
                        part = spans[i].part(reduce::time_of(*next->peek()));
                    }
                }
                told_.tell(records_, part && wanted_.backward ? 1 - *part : part);
            }
            next->append(on_.to.text());
            next->pop();
            on_.to.flush_some();
            if (is_record) ++records_;
        }
    } catch (const interruption&) {
        // Nothing is lost: the next read continues there.
    }

    [[nodiscard]] bool live() {
        for (const auto& each : from_) {
            each->file().refresh();
            if (each->file().live()) return true;
        }
        return false;
    }
    /// Goes on with files that have taken the names of those that are followed, or says that there
    /// are some. Where the old one is still recorded into, both are followed.
    void look_at_names(format& shown) try {
        for (std::size_t i = from_.size(); i-- > 0;) {
            auto& named = from_[i]->named();
            if (!named.is_taken()) continue;
            named.pass_on(wanted_, file_kind::trace, [&](reduce::source file) {
                inputs other;
                other.push_back(std::make_unique<input>(std::move(file), wanted_, on_.complain));
                select(other, condition_, on_);
                other.back()->show_by(shown, wanted_);
                other.back()->start(wanted_);
                from_.push_back(std::move(other.back()));
            });
        }
        if (!wanted_.retry) return;
        std::erase_if(from_, [](const auto& each) {
            if (!each->named().is_settled()) return false;
            each->file().refresh();
            if (each->file().live()) return false;
            each->stop_following();
            return each->peek() == nullptr;
        });
    } catch (const interruption&) {
        // As in print_items.
    }
    [[nodiscard]] bool awaits() const {
        return wanted_.retry && std::any_of(from_.begin(), from_.end(), [](const auto& each) {
                   return each->named().is_awaited();
               });
    }
    void follow(format& shown) {
        for (;;) {
            look_at_names(shown);
            // Asked before: what is written until then is seen by the reading that follows.
            const bool closed = wanted_.until_closed && !live() && !awaits();
            print_items();
            on_.to.flush();
            if (on_.interrupted != 0 || closed || records_ >= wanted_.limit) break;
            const std::timespec pause{0, 50'000'000};
            ::nanosleep(&pause, nullptr);
            for (const auto& each : from_) each->judge_tables();
        }
        on_.interrupted = 0;
        if (records_ >= wanted_.limit) return;
        for (const auto& each : from_) each->stop_following();
        print_items();
    }

    /// Counts, and takes the measures in the same pass.
    [[nodiscard]] reduce::trace_statistics measured(input& from, measure::pass& measures) {
        auto& file = from.file();
        const auto& tables = file.about();
        const bool spans = measure::has_spans(file);
        // Reading by lane is faster. Of spans it needs both ends in one lane, which the file knows.
        const bool by_time =
            spans && (wanted_.measures.values() || tables.ring().ended_elsewhere ||
                      std::any_of(tables.lanes().begin(), tables.lanes().end(),
                                  [](const auto& lane) { return lane.cpu.has_value(); }));
        if (!spans && !wanted_.measures.any()) {
            reduce::no_observer nothing;
            return file.statistics(from.what(), told_on(told_, tables, on_.interrupted, nothing),
                                   reduce::merging::by_lane);
        }
        auto sum = file.statistics(from.what(), told_on(told_, tables, on_.interrupted, measures),
                                   by_time ? reduce::merging::by_time : reduce::merging::by_lane);
        measures.finish();
        return sum;
    }

    void show(input& from, const reduce::trace_statistics& sum, const measure::pass& measures,
              std::size_t columns) {
        auto& out = on_.to.text();
        const auto& file = from.file();
        const auto& time = file.time();
        const double seconds = time.known() ? sum.seconds(time) : 0;
        if (wanted_.format == output_format::json) {
            in_json::show(out, file, sum, measures);
            measure::json_report(out, wanted_.measures, file.name(), seconds, time.known())
                .show(measures);
            return;
        }
        if (wanted_.format == output_format::csv) {
            in_csv::statistics_rows(out, file, wanted_.measures).show(sum, measures);
            return;
        }
        exporter::text_writer times(time, {.time = wanted_.time});
        if (wanted_.measures.only_groups()) {
            in_text::print_name(out, file.name());
            out += '\n';
        } else {
            in_text::show(out, file, sum, measures, times);
        }
        measure::text_report(out, wanted_.measures, columns, sum.records, seconds, time.known())
            .show(measures);
    }

    inputs& from_;
    const std::optional<expressions::expression>& condition_;
    const job& on_;
    const options& wanted_;
    progress told_;
    std::uint64_t records_ = 0;
};

void browse_traces(const inputs& from, const std::optional<expressions::expression>& condition,
                   const job& on) {
#if defined(TRACE_REDUCE_BROWSE)
    browse::browse_traces(from, on.wanted, condition, on.complain, on.interrupted);
#else
    static_cast<void>(from);
    static_cast<void>(condition);
    on.complain.system("--browse: this program was built without ncurses");
#endif
}

}  // namespace

bool reduce_traces(std::vector<reduce::source> files,
                   const std::optional<expressions::expression>& condition, const job& on) {
    const auto& wanted = on.wanted;
    if (files.empty()) return false;
    if (wanted.has_spool_options()) {
        on.complain.system(
            "--type, --code, --page and --length are for CPTRAP files, and there is none");
        return false;
    }
    if (wanted.symbols && !names::can_name()) {
        on.complain.system("--symbols: this program was built without elfutils");
        return false;
    }
    const auto shown = make_format(wanted, on.coloured(), files.size() > 1);
    inputs from = open_all(std::move(files), wanted, on.complain);
    if (from.empty()) return false;
    text_buffer aside;  // printed before the display takes the terminal
    if (!position::offsets(from, wanted, on.complain).apply(wanted.browse ? aside : on.to.text()) ||
        !position::ranges(from, wanted, on.complain).apply()) {
        return false;
    }
    if (wanted.browse) {
        browse_traces(from, condition, on);
        return true;
    }
    select(from, condition, on);
    check_roles(from, wanted);
    const unmatched_options unmatched(from, wanted);
    unmatched.warn_of_events();
    unmatched.check_fields();
    if (wanted.follow) unmatched.warn_of_threads(false);
    trace_reduction reduction(from, condition, on);
    if (wanted.statistics) {
        reduction.count();
    } else {
        reduction.print(*shown);
    }
    if (!wanted.follow && on.interrupted == 0) {
        unmatched.warn_of_threads(reduction.records() == 0);
    }
    for (const auto& each : from) {
        each->judge_tables();
        if (!wanted.symbols) continue;
        for (const std::string& why : each->names().problems())
            on.complain.note("--symbols: " + why);
    }
    on.to.flush();
    return true;
}

}  // namespace trace_reduce
