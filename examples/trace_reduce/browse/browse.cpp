// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "browse.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#define NCURSES_WIDECHAR 1
#include <curses.h>

#include <trace_ring/reduce/filter.hpp>

#include "../cptrap/range.hpp"
#include "../where/select.hpp"
#include "model.hpp"
#include "spools/spool_choice.hpp"
#include "spools/spool_model.hpp"
#include "spools/spools.hpp"
#include "traces/trace.hpp"
#include "traces/trace_model.hpp"
#include "traces/trace_window.hpp"
#include "view.hpp"

namespace trace_reduce::browse {

namespace {

constexpr int follow_pause = 100;  // ms
constexpr int idle_pause = 250;    // ms, after which a signal is seen at the latest

/// The filter of the command line, as it would be typed.
std::string filter_of(const options& wanted) {
    std::string text;
    const auto add = [&text](const std::string& word) {
        if (!text.empty()) text += ' ';
        text += word;
    };
    for (const auto& each : wanted.events) add(each);
    for (const auto each : wanted.threads) add(std::to_string(each));
    if (!wanted.where.empty()) {
        add("where");
        add(wanted.where);
    }
    return text;
}
std::string range_of(const options& wanted) {
    std::string text;
    if (!wanted.from.empty()) text += "from " + wanted.from;
    if (!wanted.to.empty()) text += (text.empty() ? "to " : " to ") + wanted.to;
    if (!wanted.pages.empty()) text += (text.empty() ? "page " : " page ") + wanted.pages;
    return text;
}

constexpr const char* movement[] = {
    "down j Enter   up k          a line on, a line back",
    "PgDn Space     PgUp b        a page on, a page back",
    "Home <         End G >       the first line, the last line",
    "right          left          what is beyond the edges of the screen",
    "",
};
constexpr const char* for_all[] = {
    "",
    "n N        the next match, the next one the other way; any key stops a search",
    "m LETTER   mark this line           ' LETTER   go to the mark",
    "c          choose the columns",
    "F          follow: show what is recorded as it comes; any movement ends it",
    "h this   ^L draw anew   q quit",
};

class session {
public:
    session(model& what, screen& on, const volatile std::sig_atomic_t& ended, bool follows)
        : what_(what), on_(on), ended_(ended) {
        // Before anything is read: also the first line may be far away.
        what_.go_on = [this](double done) { return go_on(done); };
        if (follows) what_.follow(true);
        fit();
    }

    void run() {
        while (ended_ == 0 && !quit_) {
            on_.show(what_);
            const long key = wait();
            if (key == screen::gone) return;
            if (key == screen::none) continue;
            what_.clear_message();
            press(key);
        }
    }

private:
    void fit() { what_.resize(on_.lines(), on_.width()); }
    /// The next key; when following also `none`, if there is something new to show.
    long wait() {
        for (;;) {
            const long key = on_.key(what_.following() ? follow_pause : idle_pause);
            if (key != screen::none || ended_ != 0) return key;
            if (what_.following() && what_.poll()) return key;
        }
    }
    bool go_on(double done) {
        if (ended_ != 0) return false;
        std::string text = "reading";
        if (done >= 0) text += ": " + std::to_string(static_cast<int>(done)) + "%";
        on_.tell(text + "  (any key stops)");
        const long key = on_.key(0);
        if (key == screen::function + KEY_RESIZE) fit();
        return key == screen::none || key == screen::function + KEY_RESIZE;
    }

    void press(long key) {
        switch (key) {
            case screen::function + KEY_DOWN:
            case '\r':
            case '\n':
            case 'j':
                return what_.by_lines(1);
            case screen::function + KEY_UP:
            case 'k':
                return what_.by_lines(-1);
            case screen::function + KEY_NPAGE:
            case ' ':
                return what_.by_pages(1);
            case screen::function + KEY_PPAGE:
            case 'b':
                return what_.by_pages(-1);
            case screen::function + KEY_HOME:
            case '<':
                return what_.home();
            case screen::function + KEY_END:
            case 'G':
            case '>':
                return what_.end();
            case screen::function + KEY_RIGHT:
                return on_.columns_right(1);
            case screen::function + KEY_LEFT:
                return on_.columns_right(-1);
            case screen::function + KEY_RESIZE:
                return fit();
            case 'n':
                return what_.search_again(false);
            case 'N':
                return what_.search_again(true);
            case 'F':
                return what_.follow(true);
            case 12:  // ^L
                return on_.redraw();
            case 'q':
            case 'Q':
                quit_ = true;
                return;
            default:
                return ask(key);
        }
    }
    /// Keys after which more is to be typed.
    void ask(long key) {
        std::string text;
        if (key == 'g') {
            if (on_.ask("go to: ", text, ended_)) what_.go(text);
        } else if (key == '/' || key == '?') {
            const char name[] = {static_cast<char>(key), '\0'};
            if (on_.ask(name, text, ended_)) what_.search(text, key == '?');
        } else if (key == 'f') {
            text = what_.filter_draft();
            if (on_.ask("filter: ", text, ended_)) what_.filter(text);
        } else if (key == 'm' || key == '\'') {
            on_.tell(key == 'm' ? "mark: a letter" : "go to mark: its letter");
            const long letter = answer();
            if (letter <= ' ' || letter > '~') return;
            key == 'm' ? what_.mark(static_cast<char>(letter))
                       : what_.go_to_mark(static_cast<char>(letter));
        } else if (key == 'c') {
            choose_columns();
        } else if (key == 'h' || key == 'H') {
            show_help();
        } else if (key > ' ' && key <= '~') {
            (void)what_.press(static_cast<char>(key));
        }
    }
    long answer() {
        for (;;) {
            const long key = on_.key(idle_pause);
            if (key == screen::function + KEY_RESIZE) fit();
            if (key != screen::none || ended_ != 0) return key;
        }
    }
    void show_help() {
        std::vector<std::string> lines(std::begin(movement), std::end(movement));
        lines.insert(lines.end(), what_.help().begin(), what_.help().end());
        lines.insert(lines.end(), std::begin(for_all), std::end(for_all));
        for (std::size_t from = 0;;) {
            const std::size_t next = on_.show_help(lines, from);
            const long key = answer();
            if (key == screen::function + KEY_RESIZE) {
                from = 0;
                continue;
            }
            const bool more =
                key == ' ' || key == screen::function + KEY_NPAGE || key == '\r' || key == '\n';
            if (!more || next == 0) return;
            from = next;
        }
    }
    void choose_columns() {
        for (;;) {
            on_.show(what_);
            std::string text = "columns:";
            const auto all = what_.columns();
            for (std::size_t i = 0; i < all.size(); ++i) {
                text += what_.shows(i) ? "  [x] " : "  [ ] ";
                text += all[i].name;
            }
            on_.tell(text);
            const long key = answer();
            bool known = key == screen::function + KEY_RESIZE;
            for (std::size_t i = 0; i < all.size(); ++i) {
                if (key != all[i].key) continue;
                what_.toggle(i);
                known = true;
            }
            if (!known) return;
        }
    }

    model& what_;
    screen& on_;
    const volatile std::sig_atomic_t& ended_;
    bool quit_ = false;
};

}  // namespace

void browse_traces(const std::vector<std::unique_ptr<input>>& from, const options& wanted,
                   const std::optional<expressions::expression>& condition, complaints& complain,
                   const volatile std::sig_atomic_t& ended) {
    traces all;
    for (const auto& each : from) {
        reduce::filter limits;
        limits.from = each->what().from;
        limits.to = each->what().to;
        limits.positions = each->what().positions;
        all.add(std::move(each->file()), std::move(limits));
    }
    const selection what{wanted.events, wanted.threads, condition};
    if (condition) {
        if (const auto wrong = all.find_mistake(*condition)) {
            throw where::wrong_expression(wanted.where, *wrong);
        }
    }
    std::vector<trace_window::damage> found;
    {
        screen on;
        trace_model shown(all, what, static_cast<shown_time>(wanted.time), filter_of(wanted),
                          range_of(wanted));
        session(shown, on, ended, wanted.follow).run();
        found = shown.damages();
    }
    // Not while the screen is taken.
    for (const auto& each : found) complain.damage(all.name(each.from), each.offset, each.what);
}

void browse_spools(std::vector<reduce::source> files, const options& wanted, spool_choice what,
                   complaints& complain, const volatile std::sig_atomic_t& ended) {
    spools all(lengths_of(wanted));
    for (auto& each : files) {
        const spool_range range(wanted, each.size());
        all.add(std::move(each), range);
    }
    {
        screen on;
        spool_model shown(all, std::move(what), range_of(wanted));
        session(shown, on, ended, wanted.follow).run();
        shown.look_at_ends();
    }
    for (const auto& each : all.damages()) {
        complain.damage(all.name(each.file), each.offset, each.what);
    }
}

}  // namespace trace_reduce::browse
