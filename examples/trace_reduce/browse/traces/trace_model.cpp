// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "trace_model.hpp"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include <trace_ring/glob.hpp>
#include <trace_ring/loss.hpp>

#include "places.hpp"

namespace trace_reduce::browse {

namespace {

constexpr std::size_t calls_between = 4096;  // of go_on, in lines

exporter::time_format format_of(shown_time time) {
    return time == shown_time::relative || time == shown_time::raw
               ? static_cast<exporter::time_format>(time)
               : exporter::time_format::local;
}
bool is_glob(std::string_view text) {
    return text.find_first_of("*?[") != std::string_view::npos;
}
/// Marks the text in the cells of a row.
void mark_found(row& in, std::string_view sought) {
    if (sought.empty()) return;
    for (auto& each : in.cells) {
        for (auto at = each.text.find(sought); at != std::string::npos;
             at = each.text.find(sought, at + sought.size())) {
            each.found.push_back({at, at + sought.size()});
        }
    }
}
template <class... Values>
std::string printed(const char* format, Values... values) {
    char text[128];
    const int length = std::snprintf(text, sizeof text, format, values...);
    return {text, std::min(static_cast<std::size_t>(std::max(length, 0)), sizeof text - 1)};
}

constexpr column_choice trace_columns[] = {{'f', "f file"},    {'t', "t time"},   {'d', "d delta"},
                                           {'p', "p process"}, {'h', "h thread"}, {'l', "l lane"},
                                           {'e', "e event"},   {'v', "v fields"}};

constexpr const char* trace_help[] = {
    "g PLACE    go to 50%, 12:34:56.7, 2024-05-01 12:34, 1.5 (seconds since the trace began;",
    "           units ns us ms s m h), +20ms or -1m from here, #TICKS",
    "/ ? TEXT   search on, or back: for a text, or a glob if it has one of * ? [",
    "f FILTER   only these: globs of events, ids of threads, then 'where' and a condition as of",
    "           --where: order.* 4711 where price > 1e3; nothing: all",
    "d          time from the mark to here",
    "t          time as: local, since the begin, ticks, since the line before, since the mark",
    "",
    "Lines that begin with -- stand where records are missing, and say why. What the status",
    "line says is lost counts also what has no place. A time with ~ is a lower bound.",
};

}  // namespace

trace_model::trace_model(traces& of, selection what, shown_time time, std::string filter,
                         std::string range)
    : paging(of, std::move(what), std::move(filter), std::move(range)), time_(time) {
    shown_.resize(std::size(trace_columns));
    for (const auto which : {column::time, column::thread, column::event, column::fields}) {
        toggle(which);
    }
    if (of.size() > 1) toggle(column::file);
    window_.start(trace_window::first());
}

std::span<const column_choice> trace_model::columns() const {
    return trace_columns;
}
std::span<const char* const> trace_model::help() const {
    return trace_help;
}
bool trace_model::press(char key) {
    if (key == 't') {
        next_time();
    } else if (key == 'd') {
        tell_delta();
    } else {
        return false;
    }
    return true;
}

bool trace_model::tell_progress(std::size_t& count, const trace_line& at) {
    return ++count % calls_between != 0 || go_on(percent_of(at.key));
}

void trace_model::go(std::string_view to) {
    const trace_line* const at = here();
    const auto key = parse_place(to, of_, at == nullptr ? 0 : at->from,
                                 at == nullptr ? of_[0].first() : at->ticks);
    if (!key) {
        message_ = "no place: " + std::string(to) +
                   " (50%, 12:34:56.7, 2024-05-01 12:34, 1.5 from the begin, +20ms, -1m, #ticks)";
        return;
    }
    if (following_) follow(false);
    start(*key, static_cast<std::int64_t>(lines_ / 3));
}

bool trace_model::matches(const std::string& text) const {
    if (!is_glob(sought_)) return text.find(sought_) != std::string::npos;
    return trace_ring::matches_glob('*' + sought_ + '*', text);
}
void trace_model::find(bool backward) {
    const auto from = here_place();
    const std::int64_t from_number = here_;
    const std::int64_t step = backward ? -1 : 1;
    std::size_t count = 0;
    bool stopped = false;
    std::string text;
    for (std::int64_t number = here_ + step; grow_to(number); number += step) {
        text.clear();
        for (const auto& cell : row_of(number).cells) {
            if (!text.empty()) text += ' ';
            text += cell.text;
        }
        if (matches(text)) return show(number);
        if (!tell_progress(count, window_.at(number))) {
            stopped = true;
            break;
        }
    }
    message_ = stopped || stopped_ ? "stopped" : "not found: " + sought_;
    if (window_.has(from_number) && window_.at(from_number).same(from->at)) {
        settle();
    } else {
        (void)go_to_line(from->at, from->row);
    }
}

std::optional<selection> trace_model::parse_filter(std::string_view text, std::string& why) {
    return parse_selection(text, of_, why);
}

void trace_model::next_time() {
    constexpr const char* names[] = {"local time", "since the trace began", "ticks",
                                     "since the line before", "since the mark"};
    time_ = static_cast<shown_time>((static_cast<int>(time_) + 1) % 5);
    message_ = std::string("time: ") + names[static_cast<int>(time_)];
    if (time_ == shown_time::since_mark && !last_mark_)
        message_ += " (none is set: m and a letter)";
}

void trace_model::tell_delta() {
    const trace_line* const at = here();
    if (at == nullptr || !last_mark_) {
        message_ = "no mark is set: m and a letter set one";
        return;
    }
    text_.clear();
    append_difference(text_, marks_.at(*last_mark_), *at);
    message_ = std::string("from mark ") + *last_mark_ + " to here: ";
    message_ += text_.view();
}

double trace_model::percent_of(std::uint64_t key) const noexcept {
    const std::uint64_t first = of_.first_key();
    const std::uint64_t last = std::max(of_.last_key(), first);
    if (key <= first) return 0;
    if (key >= last) return 100;
    return 100.0 * static_cast<double>(key - first) / static_cast<double>(last - first);
}

void trace_model::append_difference(exporter::text_buffer& out, const trace_line& from,
                                    const trace_line& to) {
    const auto& time = of_[to.from].file().time();
    bool back = false;
    std::uint64_t size = 0;
    if (time.known() && of_[from.from].file().time().known()) {
        // In one trace by its steady clock, between two by the dates of both.
        const bool same = from.from == to.from;
        const auto at = [&](const trace_line& of) {
            const auto& file = of_[of.from].file();
            return static_cast<std::uint64_t>(same ? file.relative_ns(of.ticks)
                                                   : file.realtime_ns(of.ticks));
        };
        const auto ns = static_cast<std::int64_t>(at(to) - at(from));
        back = ns < 0;
        size = back ? 0 - static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
        out += back ? '-' : '+';
        exporter::impl::append_seconds(out, size);
    } else {
        back = to.ticks < from.ticks;
        size = back ? from.ticks - to.ticks : to.ticks - from.ticks;
        out += back ? '-' : '+';
        exporter::impl::append_number(out, size);
    }
    if (from.interval || to.interval) out += '~';
}

const trace_line* trace_model::previous_of(std::int64_t number) {
    if (window_.has(number - 1)) return &window_.at(number - 1);
    return nullptr;
}

void trace_model::append_time(exporter::text_buffer& out, const trace_line& of,
                              const trace_line* previous) {
    if (time_ == shown_time::since_previous || time_ == shown_time::since_mark) {
        const trace_line* from = previous;
        if (time_ == shown_time::since_mark) from = last_mark_ ? &marks_.at(*last_mark_) : nullptr;
        if (from != nullptr) append_difference(out, *from, of);
        return;
    }
    auto& writer = of_[of.from].writer_of(format_of(time_));
    writer.append_time(out, of.ticks);
    if (of.interval) writer.append_bound(out, of.ticks, of.latest);
}

row trace_model::row_of(std::int64_t number) {
    const trace_line& of = window_.at(number);
    row made;
    made.here = number == here_;
    made.marked = is_marked(of);
    const bool placed = of.what == trace_line::kind::record || of.what == trace_line::kind::faulty;
    const auto add = [&](column which, style how, const auto& write) {
        if (!shows(which)) return;
        text_.clear();
        write();
        const auto text = text_.view();
        // Numbers, which begin with a digit or a sign.
        const bool is_number = !text.empty() && (text[0] == '+' || text[0] == '-' ||
                                                 (text[0] >= '0' && text[0] <= '9'));
        made.cells.push_back({std::string(text), how, is_number});
    };
    add(column::file, style::file, [&] { text_ += file_name(of_[of.from].file().name()); });
    const std::string_view sought = is_glob(sought_) ? std::string_view() : sought_;
    if (!placed) {  // when it was is not known
        made.cells.push_back({of.rest, style::bad});
        mark_found(made, sought);
        return made;
    }
    add(column::time, style::faint, [&] { append_time(text_, of, previous_of(number)); });
    add(column::delta, style::faint, [&] {
        if (const trace_line* before = previous_of(number)) append_difference(text_, *before, of);
    });
    add(column::process, style::faint, [&] { text_ += of.process; });
    add(column::thread, style::faint, [&] {
        text_ += '[';
        if (of.thread.empty()) text_ += "lane " + std::to_string(of.lane);
        text_ += of.thread;
        text_ += ']';
    });
    add(column::lane, style::faint, [&] { text_ += "lane " + std::to_string(of.lane); });
    const bool faulty = of.what == trace_line::kind::faulty;
    add(column::event, faulty ? style::bad : style::name, [&] { text_ += of.event; });
    add(column::fields, faulty ? style::bad : style::plain, [&] { text_ += of.rest; });
    mark_found(made, sought);
    return made;
}

std::vector<row> trace_model::rows() {
    (void)grow_to(top_ - 1);  // the first row may show a difference to the line before it
    return paging::rows();
}

std::string trace_model::status() {
    std::string text = status_of_files();
    if (const trace_line* at = here()) {
        text_.clear();
        of_[at->from].writer_of(format_of(time_)).append_time(text_, at->ticks);
        text += "  ";
        text += text_.view();
        text += printed("  %.1f%%", percent_of(at->key));
    }
    text += status_of_choice();
    std::size_t damaged = window_.damages().size();
    for (std::size_t i = 0; i < of_.size(); ++i) damaged += of_[i].file().damages().size();
    const auto lost = of_.lost();
    if (lost.total() == 0 && damaged == 0) {
        // absent: lost, damaged (examples/trace_reduce/browse_terminal_test)
        text += "  nothing lost";
    } else if (lost.total() != 0) {
        text += "  lost";
        const char* between = " ";
        for (std::size_t i = 0; i < trace_ring::loss_cause_count; ++i) {
            const auto cause = static_cast<trace_ring::loss_cause>(i);
            if (lost[cause] == 0) continue;
            text += between + std::to_string(lost[cause]) + ' ' + std::string(to_string(cause));
            between = ", ";
        }
    }
    if (damaged != 0) text += printed("  %zu damaged", damaged);
    return text;
}

}  // namespace trace_reduce::browse
