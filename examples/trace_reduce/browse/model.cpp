// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "model.hpp"

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
std::string file_name(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    exporter::text_buffer out;
    exporter::impl::append_escaped(
        out, std::string_view(path).substr(slash == std::string::npos ? 0 : slash + 1), 0);
    return std::string(out.view());
}
template <class... Values>
std::string printed(const char* format, Values... values) {
    char text[128];
    const int length = std::snprintf(text, sizeof text, format, values...);
    return {text, std::min(static_cast<std::size_t>(std::max(length, 0)), sizeof text - 1)};
}

}  // namespace

model::model(traces& of, selection what, shown_time time, std::string filter, std::string range)
    : of_(of),
      what_(std::move(what)),
      window_(of, what_, [this] { return goes_on(); }),
      time_(time),
      columns_(column_count),
      filter_(std::move(filter)),
      range_(std::move(range)) {
    for (const auto which : {column::time, column::thread, column::event, column::fields}) {
        toggle(which);
    }
    if (of.size() > 1) toggle(column::file);
    home();
}

void model::resize(std::size_t lines) {
    lines_ = std::clamp<std::size_t>(lines, 1, window::most / 4);
    settle();
}

const line* model::here() const {
    return window_.has(here_) ? &window_.at(here_) : nullptr;
}

bool model::told(std::size_t& count, const line& at) {
    return ++count % calls_between != 0 || go_on(percent_of(at.key));
}

/// Once stopped, a command reads no more.
bool model::goes_on() {
    stopped_ = stopped_ || !go_on(-1);
    return !stopped_;
}
/// Reads until this line is there. False: there is none, or reading was stopped.
bool model::grow_to(std::int64_t number) {
    while (!window_.has(number)) {
        if (stopped_) return false;
        const bool up = number < window_.begin();
        const auto grown = up ? window_.grow_up() : window_.grow_down();
        if (grown == window::grown::no) return false;
        if (grown == window::grown::passed_over && !goes_on()) return false;
    }
    return true;
}

/// Makes the line that one is on one that is there and is shown, and the screen full if it can be.
void model::settle() {
    const auto rows = static_cast<std::int64_t>(lines_);
    (void)grow_to(here_);
    if (!window_.empty()) {
        here_ = std::clamp(here_, window_.begin(), window_.end() - 1);
    }
    top_ = std::clamp(top_, here_ - rows + 1, here_);
    (void)grow_to(top_ + rows - 1);
    if (window_.end() < top_ + rows) top_ = window_.end() - rows;
    (void)grow_to(top_);
    top_ = std::max(top_, window_.begin());
    if (!window_.empty()) here_ = std::clamp(here_, window_.begin(), window_.end() - 1);
}

void model::start(std::uint64_t key, std::int64_t row) {
    window_.start(key);
    here_ = 0;
    if (!grow_to(0) && grow_to(-1)) here_ = -1;
    top_ = here_ - row;
    settle();
}

void model::by_lines(std::int64_t count) {
    if (following_) follow(false);
    if (count > 0 && here_ + count >= window_.end() && !grow_to(here_ + count) && of_.live()) {
        window_.look_again();
    }
    here_ += count;
    settle();
}
void model::by_pages(std::int64_t count) {
    const auto rows = count * static_cast<std::int64_t>(lines_);
    (void)grow_to(top_ + rows);
    top_ += rows;
    by_lines(rows);
}
void model::home() {
    if (following_) follow(false);
    start(0, 0);
}
void model::end() {
    if (following_) follow(false);
    of_.look();
    window_.start_at_end();
    here_ = -1;
    top_ = -static_cast<std::int64_t>(lines_);
    settle();
}

void model::go(std::string_view to) {
    const line* const at = here();
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

std::optional<model::place> model::here_place() const {
    const line* const at = here();
    if (at == nullptr) return std::nullopt;
    return place{*at, here_ - top_};
}
/// Reads anew from this line's time on, and finds it. False: it is not there.
bool model::go_to_line(const line& wanted, std::int64_t on_row) {
    window_.start(wanted.key);
    for (std::int64_t number = 0; grow_to(number); ++number) {
        const line& at = window_.at(number);
        if (at.key != wanted.key) break;
        if (!at.same(wanted)) continue;
        here_ = number;
        top_ = number - on_row;
        settle();
        return true;
    }
    start(wanted.key, on_row);
    return false;
}
void model::go_back(const place& to) {
    (void)go_to_line(to.at, to.row);
}

void model::search(std::string_view text, bool backward) {
    if (!text.empty()) sought_ = text;
    sought_backward_ = backward;
    search_from(backward);
}
void model::search_again(bool other_way) {
    search_from(sought_backward_ != other_way);
}
std::string_view model::sought_text() const noexcept {
    return is_glob(sought_) ? std::string_view() : std::string_view(sought_);
}
bool model::matches(const std::string& text) const {
    if (!is_glob(sought_)) return text.find(sought_) != std::string::npos;
    return trace_ring::matches_glob('*' + sought_ + '*', text);
}
void model::search_from(bool backward) {
    if (sought_.empty()) {
        message_ = "nothing to search for";
        return;
    }
    const auto from = here_place();
    if (!from) return;
    if (following_) follow(false);
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
        if (matches(text)) {
            here_ = number;
            const auto rows = static_cast<std::int64_t>(lines_);
            if (here_ < top_ || here_ >= top_ + rows) top_ = here_ - rows / 3;
            settle();
            return;
        }
        if (!told(count, window_.at(number))) {
            stopped = true;
            break;
        }
    }
    message_ = stopped || stopped_ ? "stopped" : "not found: " + sought_;
    if (window_.has(from_number) && window_.at(from_number).same(from->at)) {
        settle();
    } else {
        go_back(*from);
    }
}

void model::filter(std::string_view text) {
    std::string why;
    auto wanted = parse_selection(text, of_, why);
    if (!wanted) {
        message_ = why;
        refused_ = text;
        return;
    }
    refused_.clear();
    const auto from = here_place();
    const bool followed = following_;
    if (followed) follow(false);
    const std::uint64_t key = from ? from->at.key : 0;
    window_.start(key);  // nothing is read by the old one any more
    what_ = std::move(*wanted);
    filter_ = text;
    if (from) {
        go_back(*from);
    } else {
        start(key, 0);
    }
    if (followed) follow(true);
    if (window_.empty()) message_ = stopped_ ? "stopped" : "nothing matches " + filter_;
}

void model::toggle(column which) {
    const auto i = static_cast<std::size_t>(which);
    columns_[i] = !columns_[i];
}
void model::next_time() {
    constexpr const char* names[] = {"local time", "since the trace began", "ticks",
                                     "since the line before", "since the mark"};
    time_ = static_cast<shown_time>((static_cast<int>(time_) + 1) % 5);
    message_ = std::string("time: ") + names[static_cast<int>(time_)];
    if (time_ == shown_time::since_mark && !last_mark_)
        message_ += " (none is set: m and a letter)";
}

void model::mark(char name) {
    const line* const at = here();
    if (at == nullptr) return;
    marks_[name] = *at;
    last_mark_ = name;
    message_ = std::string("mark ") + name;
}
void model::go_to_mark(char name) {
    const auto found = marks_.find(name);
    if (found == marks_.end()) {
        message_ = std::string("no mark ") + name;
        return;
    }
    if (following_) follow(false);
    last_mark_ = name;
    if (!go_to_line(found->second, static_cast<std::int64_t>(lines_ / 3))) {
        message_ =
            std::string("mark ") + name + ": its line is not there (any more): near its time";
    }
}
void model::tell_delta() {
    const line* const at = here();
    if (at == nullptr || !last_mark_) {
        message_ = "no mark is set: m and a letter set one";
        return;
    }
    text_.clear();
    append_difference(text_, marks_[*last_mark_], *at);
    message_ = std::string("from mark ") + *last_mark_ + " to here: ";
    message_ += text_.view();
}

void model::follow(bool on) {
    following_ = on;
    if (!on) {
        window_.stop_following();
        return;
    }
    end();
    following_ = true;
    if (window_.empty()) {
        window_.start(0, way::follow);
    } else {
        window_.follow();
    }
    (void)poll();
}
bool model::poll() {
    if (!following_) return false;
    stopped_ = false;
    const std::int64_t before = window_.end();
    std::size_t read = 0;
    for (;;) {
        const auto grown = window_.grow_down();
        if (grown == window::grown::no) break;
        if (grown == window::grown::passed_over) {
            if (!goes_on()) break;
            continue;
        }
        // More than anyone reads, and more may come than can be read: on from the newest.
        if (++read < 4 * window::most) continue;
        end();
        following_ = true;
        window_.follow();
        break;
    }
    here_ = window_.end() - 1;
    top_ = here_ + 1 - static_cast<std::int64_t>(lines_);
    (void)grow_to(top_);
    top_ = std::max(top_, window_.begin());
    return window_.end() != before || read != 0;
}

double model::percent_of(std::uint64_t key) const noexcept {
    const std::uint64_t first = of_.first_key();
    const std::uint64_t last = std::max(of_.last_key(), first);
    if (key <= first) return 0;
    if (key >= last) return 100;
    return 100.0 * static_cast<double>(key - first) / static_cast<double>(last - first);
}

void model::append_difference(exporter::text_buffer& out, const line& from, const line& to) {
    const auto& time = of_[to.from].file().time();
    bool back = false;
    std::uint64_t size = 0;
    if (time.known() && of_[from.from].file().time().known()) {
        // In one trace by its steady clock, between two by the dates of both.
        const bool same = from.from == to.from;
        const auto at = [&](const line& of) {
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

const line* model::previous_of(std::int64_t number) {
    if (window_.has(number - 1)) return &window_.at(number - 1);
    return nullptr;
}

void model::append_time(exporter::text_buffer& out, const line& of, const line* previous) {
    if (time_ == shown_time::since_previous || time_ == shown_time::since_mark) {
        const line* from = previous;
        if (time_ == shown_time::since_mark) from = last_mark_ ? &marks_[*last_mark_] : nullptr;
        if (from != nullptr) append_difference(out, *from, of);
        return;
    }
    auto& writer = of_[of.from].writer_of(format_of(time_));
    writer.append_time(out, of.ticks);
    if (of.interval) writer.append_bound(out, of.ticks, of.latest);
}

row model::row_of(std::int64_t number) {
    const line& of = window_.at(number);
    row made;
    made.here = number == here_;
    for (const auto& each : marks_) made.marked = made.marked || each.second.same(of);
    const bool placed = of.what == line::kind::record || of.what == line::kind::faulty;
    const auto add = [&](column which, style how, const auto& write) {
        if (!shows(which)) return;
        text_.clear();
        write();
        made.cells.push_back({std::string(text_.view()), how});
    };
    add(column::file, style::file, [&] { text_ += file_name(of_[of.from].file().name()); });
    if (!placed) {  // when it was is not known
        made.cells.push_back({of.rest, style::bad});
        return made;
    }
    add(column::time, style::faint, [&] { append_time(text_, of, previous_of(number)); });
    add(column::delta, style::faint, [&] {
        if (const line* before = previous_of(number)) append_difference(text_, *before, of);
    });
    add(column::process, style::faint, [&] { text_ += of.process; });
    add(column::thread, style::faint, [&] {
        text_ += '[';
        if (of.thread.empty()) text_ += "lane " + std::to_string(of.lane);
        text_ += of.thread;
        text_ += ']';
    });
    add(column::lane, style::faint, [&] { text_ += "lane " + std::to_string(of.lane); });
    const bool faulty = of.what == line::kind::faulty;
    add(column::event, faulty ? style::bad : style::name, [&] { text_ += of.event; });
    add(column::fields, faulty ? style::bad : style::plain, [&] { text_ += of.rest; });
    return made;
}

std::vector<row> model::rows() {
    std::vector<row> all;
    (void)grow_to(top_ - 1);  // from which the first difference is
    const auto rows = static_cast<std::int64_t>(lines_);
    std::vector<std::size_t> widths(column_count, 0);
    const auto width = [](const std::string& text) {
        return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
            return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
        }));
    };
    constexpr std::size_t widest = 40;  // longer ones push the rest of their line
    for (std::int64_t i = top_; i < top_ + rows && window_.has(i); ++i) {
        all.push_back(row_of(i));
        const auto& cells = all.back().cells;
        for (std::size_t k = 0; k + 1 < cells.size(); ++k) {
            widths[k] = std::max(widths[k], std::min(width(cells[k].text), widest));
        }
    }
    for (auto& each : all) {
        for (std::size_t k = 0; k + 1 < each.cells.size(); ++k) {
            auto& text = each.cells[k].text;
            const std::size_t have = width(text);
            if (have >= widths[k]) continue;
            // Numbers, which begin with a digit or a sign, to the right.
            const bool number = !text.empty() && (text[0] == '+' || text[0] == '-' ||
                                                  (text[0] >= '0' && text[0] <= '9'));
            text.insert(number ? 0 : text.size(), widths[k] - have, ' ');
        }
    }
    return all;
}

std::string model::status() {
    std::string text = file_name(of_[0].file().name());
    if (of_.size() > 1) text += " and " + std::to_string(of_.size() - 1) + " more";
    if (following_) {
        text += "  following";
    } else if (of_.live()) {
        text += "  live";
    }
    if (const line* at = here()) {
        text_.clear();
        of_[at->from].writer_of(format_of(time_)).append_time(text_, at->ticks);
        text += "  ";
        text += text_.view();
        text += printed("  %.1f%%", percent_of(at->key));
    }
    if (!range_.empty()) text += "  " + range_;
    if (!filter_.empty()) text += "  filter " + filter_;
    std::size_t damaged = window_.damages().size();
    for (std::size_t i = 0; i < of_.size(); ++i) damaged += of_[i].file().damages().size();
    const auto lost = of_.lost();
    if (lost.total() == 0 && damaged == 0) {
        // absent: lost, damaged (examples/browse_terminal_test)
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
