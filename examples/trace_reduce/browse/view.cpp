// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "view.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cwchar>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <trace_ring/exporter/text/append.hpp>

#define NCURSES_WIDECHAR 1
#include <curses.h>

namespace trace_reduce::browse {

namespace {

enum colours : short { of_name = 1, of_bad, of_file };

/// UTF-8 as characters that the terminal can show; the others as '?'.
std::wstring wide(std::string_view text) {
    std::wstring out;
    while (!text.empty()) {
        const auto first = static_cast<unsigned char>(text.front());
        const std::size_t length = trace_ring::exporter::impl::utf8_length(text);
        wchar_t c = L'?';
        if (length == 1) {
            c = static_cast<wchar_t>(first);
        } else if (length > 1) {
            unsigned code = first & (0xFFU >> (length + 1));
            for (std::size_t i = 1; i < length; ++i) {
                code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3FU);
            }
            c = static_cast<wchar_t>(code);
        }
        text.remove_prefix(std::max<std::size_t>(length, 1));
        out += ::wcwidth(c) < 0 || (c > 127 && std::wctob(L'a') == EOF) ? L'?' : c;
    }
    return out;
}

}  // namespace

struct screen::parts {
    SCREEN* terminal = nullptr;
    bool coloured = false;
    int shift = 0;

    [[nodiscard]] attr_t look_of(style how) const {
        switch (how) {
            case style::faint:
                return A_DIM;
            case style::name:
                return coloured ? COLOR_PAIR(of_name) : A_BOLD;
            case style::bad:
                return (coloured ? COLOR_PAIR(of_bad) : A_NORMAL) | A_BOLD;
            case style::file:
                return coloured ? COLOR_PAIR(of_file) : A_NORMAL;
            case style::plain:
                break;
        }
        return A_NORMAL;
    }
    /// A line of text from column `at` on, of which `shift` columns are left out; returns where it
    /// ended.
    static int put(int y, int at, std::wstring_view text, int left_out) {
        int x = at - left_out;
        for (const wchar_t c : text) {
            const int width = std::max(::wcwidth(c), 0);
            if (x >= 0 && x + width <= COLS) (void)mvaddnwstr(y, x, &c, 1);
            x += width;
        }
        return x + left_out;
    }
    void line_below(std::string_view text, attr_t how) const {
        const int y = LINES - 1;
        (void)move(y, 0);
        (void)clrtoeol();
        (void)attrset(how);
        (void)mvhline(y, 0, static_cast<chtype>(' ') | how, COLS);
        (void)put(y, 0, wide(text), 0);
        (void)attrset(A_NORMAL);
    }
};

screen::screen() : own_(std::make_unique<parts>()) {
    if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDOUT_FILENO) == 0) {
        throw std::runtime_error("--browse needs a terminal on standard input and output");
    }
    (void)std::setlocale(LC_CTYPE, "");
    own_->terminal = newterm(nullptr, stdout, stdin);
    const char* const type = std::getenv("TERM");
    const std::string name = type == nullptr ? "(TERM is not set)" : type;
    if (own_->terminal == nullptr) {
        throw std::runtime_error("--browse: a terminal of unknown type: " + name);
    }
    if (tigetstr("cup") == nullptr || tigetstr("cup") == reinterpret_cast<char*>(-1)) {
        (void)endwin();
        delscreen(own_->terminal);
        throw std::runtime_error("--browse: a terminal that cannot place its cursor: " + name);
    }
    (void)set_escdelay(50);
    (void)cbreak();
    (void)noecho();
    (void)nonl();
    (void)intrflush(stdscr, FALSE);
    (void)keypad(stdscr, TRUE);
    (void)nodelay(stdscr, TRUE);
    (void)curs_set(0);
    if (std::getenv("NO_COLOR") == nullptr && has_colors()) {
        (void)start_color();
        const short back = use_default_colors() == OK ? short{-1} : short{COLOR_BLACK};
        (void)init_pair(of_name, COLOR_CYAN, back);
        (void)init_pair(of_bad, COLOR_RED, back);
        (void)init_pair(of_file, COLOR_GREEN, back);
        own_->coloured = true;
    }
}
screen::~screen() {
    (void)endwin();
    delscreen(own_->terminal);
}

std::size_t screen::lines() const {
    return static_cast<std::size_t>(std::max(LINES - 1, 1));
}

std::size_t screen::width() const {
    return static_cast<std::size_t>(std::max(COLS, 1));
}

void screen::show(model& what) {
    (void)erase();
    const auto rows = what.rows();
    int y = 0;
    for (const auto& each : rows) {
        if (y >= LINES - 1) break;
        const attr_t here = each.here ? A_REVERSE : A_NORMAL;
        if (each.here) (void)mvhline(y, 0, static_cast<chtype>(' ') | here, COLS);
        (void)attrset(here | A_BOLD);
        if (each.marked) (void)mvaddch(y, 0, static_cast<chtype>('*') | here);
        int x = 1;
        for (const auto& cell : each.cells) {
            const attr_t look = own_->look_of(cell.how) | here;
            const std::string_view text = cell.text;
            std::size_t done = 0;
            for (const auto& found : cell.found) {
                (void)attrset(look);
                x = parts::put(y, x, wide(text.substr(done, found.begin - done)), own_->shift);
                (void)attrset((look | A_BOLD | A_UNDERLINE) & ~static_cast<attr_t>(A_DIM));
                x = parts::put(y, x, wide(text.substr(found.begin, found.end - found.begin)),
                               own_->shift);
                done = found.end;
            }
            (void)attrset(look);
            x = parts::put(y, x, wide(text.substr(done)), own_->shift);
            ++x;
        }
        ++y;
    }
    (void)attrset(A_NORMAL);
    // no count: an empty page
    if (rows.empty()) (void)parts::put(0, 1, L"(nothing)", 0);
    if (what.message().empty()) {
        own_->line_below(what.status(), A_REVERSE);
    } else {
        own_->line_below(what.message(), A_BOLD);
    }
    (void)refresh();
}

long screen::key(int milliseconds) {
    const auto get = []() -> long {
        wint_t got = 0;
        const int kind = get_wch(&got);
        if (kind == KEY_CODE_YES) return function + static_cast<long>(got);
        return kind == OK ? static_cast<long>(got) : none;
    };
    if (const long waiting = get(); waiting != none) return waiting;
    pollfd input{STDIN_FILENO, POLLIN, 0};
    const int ready = ::poll(&input, 1, milliseconds);
    if (ready == 0) return none;
    if (ready > 0 && (input.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) return gone;
    const long got = get();
    return got;  // after a signal, such as a change of the size
}

bool screen::ask(std::string_view begin, std::string& into,
                 const volatile std::sig_atomic_t& ended) {
    std::wstring typed = wide(into);
    bool done = false;
    (void)curs_set(1);
    while (!done) {
        const int y = LINES - 1;
        (void)move(y, 0);
        (void)clrtoeol();
        (void)attrset(A_BOLD);
        const int x = parts::put(y, 0, wide(begin), 0);
        (void)attrset(A_NORMAL);
        int width = 0;
        for (const wchar_t c : typed) width += std::max(::wcwidth(c), 0);
        const int left_out = std::max(0, x + width + 1 - COLS);
        int at = x;
        // Only the typed text is shifted, not the prompt before it.
        int passed = 0;
        for (const wchar_t c : typed) {
            const int each = std::max(::wcwidth(c), 0);
            if (passed >= left_out && at + each < COLS) {
                (void)mvaddnwstr(y, at, &c, 1);
                at += each;
            }
            passed += each;
        }
        (void)move(y, std::min(at, COLS - 1));
        (void)refresh();
        const long got = key(250);
        if (ended != 0 || got == gone || got == 27) break;
        if (got == none) continue;
        if (got == '\r' || got == '\n' || got == function + KEY_ENTER) {
            done = true;
        } else if (got == 8 || got == 127 || got == function + KEY_BACKSPACE) {
            if (typed.empty()) break;
            typed.pop_back();
        } else if (got == 21) {  // ^U
            typed.clear();
        } else if (got >= 32 && got<function&& ::wcwidth(static_cast<wchar_t>(got))> 0) {
            typed += static_cast<wchar_t>(got);
        }
    }
    (void)curs_set(0);
    if (!done) return false;
    into.clear();
    std::mbstate_t state{};
    char bytes[16];
    for (const wchar_t c : typed) {
        const std::size_t length = std::wcrtomb(bytes, c, &state);
        if (length != static_cast<std::size_t>(-1)) into.append(bytes, length);
    }
    return true;
}

void screen::tell(std::string_view text) {
    own_->line_below(text, A_BOLD);
    (void)refresh();
}

std::size_t screen::show_help(std::span<const std::string> lines, std::size_t from) {
    const auto most = static_cast<std::size_t>(std::max(COLS - 2, 8));
    std::vector<std::wstring> all;  // those of a long line are set in
    for (const auto& line : lines) {
        std::wstring rest = wide(line);
        while (rest.size() > most) {
            std::size_t length = rest.rfind(L' ', most);
            if (length == std::wstring::npos || length <= most / 2) length = most;
            all.push_back(rest.substr(0, length));
            rest.erase(0, std::min(rest.find_first_not_of(L' ', length), rest.size()));
            rest.insert(0, 2, L' ');
        }
        all.push_back(std::move(rest));
    }
    (void)erase();
    const std::size_t end = std::min(from + this->lines(), all.size());
    for (std::size_t i = from; i < end; ++i) {
        (void)parts::put(static_cast<int>(i - from), 1, all[i], 0);
    }
    const bool more = end < all.size();
    const auto pages = (all.size() + this->lines() - 1) / this->lines();
    std::string below = std::to_string(from / this->lines() + 1) + '/' + std::to_string(pages);
    below += more ? "  Space: more, other keys: back" : "  any key: back";
    own_->line_below(below, A_BOLD);
    (void)refresh();
    return more ? end : 0;
}

void screen::columns_right(int count) {
    own_->shift = std::clamp(own_->shift + count * std::max(COLS / 2, 1), 0, 1 << 20);
}
void screen::redraw() {
    (void)clearok(curscr, TRUE);
}

}  // namespace trace_reduce::browse
