// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "browse.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#define NCURSES_WIDECHAR 1
#include <curses.h>

#include <trace_ring/reduce/filter.hpp>

#include "../where/select.hpp"
#include "model.hpp"
#include "trace.hpp"
#include "view.hpp"
#include "window.hpp"

namespace trace_reduce::browse {

namespace {

constexpr int follow_pause = 100;  // ms
constexpr int idle_pause = 250;    // ms, after which a signal is seen at the latest

/// What was asked for on the command line, as it would be typed.
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
    return text;
}

class session {
public:
    session(model& what, screen& on, const volatile std::sig_atomic_t& ended)
        : what_(what), on_(on), ended_(ended) {
        what_.resize(on_.lines());
        what_.go_on = [this](double done) { return go_on(done); };
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
        if (key == screen::function + KEY_RESIZE) what_.resize(on_.lines());
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
                return what_.resize(on_.lines());
            case 'n':
                return what_.search_again(false);
            case 'N':
                return what_.search_again(true);
            case 't':
                return what_.next_time();
            case 'd':
                return what_.tell_delta();
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
            on_.show_help();
            (void)answer();
        }
    }
    long answer() {
        for (;;) {
            const long key = on_.key(idle_pause);
            if (key == screen::function + KEY_RESIZE) what_.resize(on_.lines());
            if (key != screen::none || ended_ != 0) return key;
        }
    }
    void choose_columns() {
        struct choice {
            char key;
            column which;
            const char* name;
        };
        constexpr choice all[] = {
            {'f', column::file, "f file"},     {'t', column::time, "t time"},
            {'d', column::delta, "d delta"},   {'p', column::process, "p process"},
            {'h', column::thread, "h thread"}, {'l', column::lane, "l lane"},
            {'e', column::event, "e event"},   {'v', column::fields, "v fields"}};
        for (;;) {
            on_.show(what_);
            std::string text = "columns:";
            for (const auto& each : all) {
                text += what_.shows(each.which) ? "  [x] " : "  [ ] ";
                text += each.name;
            }
            on_.tell(text);
            const long key = answer();
            bool known = key == screen::function + KEY_RESIZE;
            for (const auto& each : all) {
                if (key != each.key) continue;
                what_.toggle(each.which);
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

void browse(const std::vector<std::unique_ptr<input>>& from, const options& wanted,
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
    std::vector<window::damage> found;
    {
        screen on;
        model shown(all, what, static_cast<shown_time>(wanted.time), filter_of(wanted),
                    range_of(wanted));
        if (wanted.follow) shown.follow(true);
        session(shown, on, ended).run();
        found = shown.damages();
    }
    // Not while the screen is taken.
    for (const auto& each : found) {
        complain.damage(all[each.from].file().name(), each.offset, each.what);
    }
}

}  // namespace trace_reduce::browse
