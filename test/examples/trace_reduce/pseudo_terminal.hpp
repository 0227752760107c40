// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A program in a pseudo-terminal, and what it shows: as much of an xterm as ncurses makes use of.

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <utmp.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trace_ring_test {

/// The characters of a screen, each as its UTF-8, and which of them are underlined.
class shown_screen {
    struct character {
        std::string text = " ";
        bool underlined = false;
    };

public:
    shown_screen(int rows, int columns) { resize(rows, columns); }

    void resize(int rows, int columns) {
        rows_ = rows;
        columns_ = columns;
        cells_.resize(static_cast<std::size_t>(rows));
        for (auto& row : cells_) row.resize(static_cast<std::size_t>(columns));
        top_ = 0;
        bottom_ = rows - 1;
        y_ = std::min(y_, rows - 1);
        x_ = std::min(x_, columns - 1);
    }
    [[nodiscard]] std::string line(int y) const {
        std::string text;
        for (const auto& each : cells_.at(static_cast<std::size_t>(y))) text += each.text;
        text.erase(text.find_last_not_of(' ') + 1);
        return text;
    }
    /// The characters of a line that are underlined, without what is between them.
    [[nodiscard]] std::string underlined(int y) const {
        std::string text;
        for (const auto& each : cells_.at(static_cast<std::size_t>(y))) {
            if (each.underlined) text += each.text;
        }
        return text;
    }
    [[nodiscard]] int rows() const noexcept { return rows_; }
    /// The program has gone to the screen that is taken back when it ends.
    [[nodiscard]] bool other_screen() const noexcept { return other_; }
    [[nodiscard]] bool cursor_shown() const noexcept { return cursor_; }
    /// Sequences that this does not know.
    [[nodiscard]] const std::string& unknown() const noexcept { return unknown_; }

    void put(std::string_view bytes) {
        for (const char c : bytes) put(c);
    }

private:
    enum class at { text, escape, sequence, designate, string };

    void put(char c) {
        const auto byte = static_cast<unsigned char>(c);
        switch (at_) {
            case at::text:
                return text(c);
            case at::escape:
                at_ = at::text;
                if (c == '[') {
                    at_ = at::sequence;
                    parameters_.clear();
                } else if (c == '(' || c == ')') {
                    at_ = at::designate;
                } else if (c == ']') {
                    at_ = at::string;
                } else if (c == 'M') {
                    if (y_ == top_) {
                        scroll(-1);
                    } else {
                        --y_;
                    }
                } else if (c != '7' && c != '8' && c != '=' && c != '>') {
                    unknown_ += std::string("ESC ") + c + ' ';
                }
                return;
            case at::designate:
                at_ = at::text;
                return;
            case at::string:
                if (c == '\a') at_ = at::text;
                return;
            case at::sequence:
                if (byte >= 0x40 && byte <= 0x7E) {
                    at_ = at::text;
                    sequence(c);
                } else {
                    parameters_ += c;
                }
                return;
        }
    }
    void text(char c) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '\x1b') {
            at_ = at::escape;
        } else if (c == '\n') {
            if (y_ == bottom_) {
                scroll(1);
            } else if (y_ + 1 < rows_) {
                ++y_;
            }
        } else if (c == '\r') {
            x_ = 0;
        } else if (c == '\b') {
            x_ = std::max(x_ - 1, 0);
        } else if (c == '\t') {
            x_ = std::min((x_ / 8 + 1) * 8, columns_ - 1);
        } else if ((byte & 0xC0U) == 0x80U) {  // continues
            cell(y_, std::max(x_ - 1, 0)).text += c;
        } else if (byte >= 0x20) {
            if (x_ >= columns_) {
                x_ = 0;
                text('\n');
            }
            last_ = std::string(1, c);
            cell(y_, x_++) = {last_, underline_};
        }
    }
    void sequence(char end) {
        const bool is_private = parameters_.starts_with('?');
        std::vector<int> numbers{0};
        bool given = false;
        for (const char c : parameters_) {
            if (c >= '0' && c <= '9') {
                numbers.back() = numbers.back() * 10 + (c - '0');
                given = true;
            } else if (c == ';') {
                numbers.push_back(0);
            }
        }
        const int n = given ? std::max(numbers[0], 1) : 1;
        switch (end) {
            case 'H':
            case 'f':
                y_ = std::clamp(numbers[0] - 1, 0, rows_ - 1);
                x_ = std::clamp(numbers.size() > 1 ? numbers[1] - 1 : 0, 0, columns_ - 1);
                return;
            case 'A':
                y_ = std::max(y_ - n, 0);
                return;
            case 'B':
                y_ = std::min(y_ + n, rows_ - 1);
                return;
            case 'C':
                x_ = std::min(x_ + n, columns_ - 1);
                return;
            case 'D':
                x_ = std::max(x_ - n, 0);
                return;
            case 'G':
                x_ = std::min(n - 1, columns_ - 1);
                return;
            case 'd':
                y_ = std::min(n - 1, rows_ - 1);
                return;
            case 'J':
                if (numbers[0] == 0) {
                    blank(y_, x_, columns_);
                    for (int y = y_ + 1; y < rows_; ++y) blank(y, 0, columns_);
                } else {
                    for (int y = 0; y < rows_; ++y) blank(y, 0, columns_);
                }
                return;
            case 'K':
                numbers[0] == 0   ? blank(y_, x_, columns_)
                : numbers[0] == 1 ? blank(y_, 0, x_ + 1)
                                  : blank(y_, 0, columns_);
                return;
            case 'X':
                blank(y_, x_, x_ + n);
                return;
            case 'b':
                for (int i = 0; i < n; ++i) put(last_);
                return;
            case 'P':
            case '@': {
                auto& row = cells_[static_cast<std::size_t>(y_)];
                for (int i = 0; i < n && x_ < columns_; ++i) {
                    if (end == 'P') {
                        row.erase(row.begin() + x_);
                        row.emplace_back();
                    } else {
                        row.insert(row.begin() + x_, character());
                        row.pop_back();
                    }
                }
                return;
            }
            case 'L':
            case 'M': {
                const int top = std::exchange(top_, y_);
                scroll(end == 'M' ? n : -n);
                top_ = top;
                return;
            }
            case 'S':
            case 'T':
                scroll(end == 'S' ? n : -n);
                return;
            case 'r':
                top_ = given ? numbers[0] - 1 : 0;
                bottom_ = numbers.size() > 1 && numbers[1] > 0 ? numbers[1] - 1 : rows_ - 1;
                y_ = x_ = 0;
                return;
            case 'h':
            case 'l':
                if (is_private && numbers[0] == 1049) other_ = end == 'h';
                if (is_private && numbers[0] == 25) cursor_ = end == 'h';
                return;
            case 'm':
                for (const int number : numbers) {
                    if (number == 4) underline_ = true;
                    if (number == 0 || number == 24) underline_ = false;
                }
                return;
            case 't':
                return;
            default:
                unknown_ += "ESC [" + parameters_ + end + ' ';
        }
    }
    character& cell(int y, int x) {
        return cells_[static_cast<std::size_t>(y)]
                     [static_cast<std::size_t>(std::min(x, columns_ - 1))];
    }
    void blank(int y, int from, int to) {
        for (int x = from; x < std::min(to, columns_); ++x) cell(y, x) = {};
    }
    void scroll(int lines) {
        const std::vector<character> empty(static_cast<std::size_t>(columns_));
        for (; lines > 0; --lines) {
            cells_.erase(cells_.begin() + top_);
            cells_.insert(cells_.begin() + bottom_, empty);
        }
        for (; lines < 0; ++lines) {
            cells_.erase(cells_.begin() + bottom_);
            cells_.insert(cells_.begin() + top_, empty);
        }
    }

    int rows_ = 0, columns_ = 0, y_ = 0, x_ = 0, top_ = 0, bottom_ = 0;
    std::vector<std::vector<character>> cells_;
    at at_ = at::text;
    std::string parameters_;
    std::string last_ = " ";
    std::string unknown_;
    bool underline_ = false;
    bool other_ = false;
    bool cursor_ = true;
};

/// The program, which is killed if it does not end.
class in_terminal {
public:
    in_terminal(std::vector<std::string> arguments, int rows, int columns,
                const char* type = "xterm")
        : screen(rows, columns) {
        winsize size{};
        size.ws_row = static_cast<unsigned short>(rows);
        size.ws_col = static_cast<unsigned short>(columns);
        int slave = -1;
        if (::openpty(&master_, &slave, nullptr, nullptr, &size) != 0) {
            throw std::runtime_error("no pseudo-terminal");
        }
        slave_ = slave;  // kept open: how it was left can be seen
        ::tcgetattr(slave_, &before_);
        child_ = ::fork();
        if (child_ == 0) {
            ::setenv("TERM", type, 1);
            ::setenv("LC_ALL", "C.UTF-8", 1);
            ::setenv("TZ", "UTC", 1);
            ::close(master_);
            if (::login_tty(slave) != 0) ::_exit(126);
            std::vector<char*> argv;
            for (auto& each : arguments) argv.push_back(each.data());
            argv.push_back(nullptr);
            ::execv(argv[0], argv.data());
            ::_exit(127);
        }
    }
    in_terminal(const in_terminal&) = delete;
    ~in_terminal() {
        if (!ended_) {
            ::kill(child_, SIGKILL);
            ::waitpid(child_, nullptr, 0);
        }
        ::close(slave_);
        ::close(master_);
    }

    void type(std::string_view keys) const { (void)!::write(master_, keys.data(), keys.size()); }
    void signal(int number) const { ::kill(child_, number); }
    void resize(int rows, int columns) {
        winsize size{};
        size.ws_row = static_cast<unsigned short>(rows);
        size.ws_col = static_cast<unsigned short>(columns);
        screen.resize(rows, columns);
        (void)::ioctl(master_, TIOCSWINSZ, &size);
    }
    /// Takes in what is shown until `seen` is true; false: it was not within 20 seconds.
    template <class Seen>
    [[nodiscard]] bool wait(const Seen& seen) {
        using clock = std::chrono::steady_clock;
        const auto end = clock::now() + std::chrono::seconds(20);
        for (;;) {
            take(10);
            if (seen()) return true;
            if (clock::now() > end) return false;
        }
    }
    [[nodiscard]] bool wait_for(int y, std::string_view text) {
        return wait([&] { return screen.line(y).find(text) != std::string::npos; });
    }
    /// Its exit status; 1000 and the signal if one ended it.
    [[nodiscard]] int end() {
        int status = 0;
        if (!wait([&] { return ::waitpid(child_, &status, WNOHANG) == child_; })) return -1;
        ended_ = true;
        take(0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    }
    /// The terminal is as it was before.
    [[nodiscard]] bool restored() const {
        termios now{};
        ::tcgetattr(slave_, &now);
        return now.c_lflag == before_.c_lflag && now.c_iflag == before_.c_iflag &&
               now.c_oflag == before_.c_oflag && !screen.other_screen() && screen.cursor_shown();
    }

    shown_screen screen;

private:
    void take(int milliseconds) {
        std::array<char, 4096> part{};
        pollfd ready{master_, POLLIN, 0};
        while (::poll(&ready, 1, milliseconds) > 0 && (ready.revents & POLLIN) != 0) {
            const ssize_t got = ::read(master_, part.data(), part.size());
            if (got <= 0) return;
            screen.put({part.data(), static_cast<std::size_t>(got)});
            milliseconds = 0;
        }
    }

    int master_ = -1;
    int slave_ = -1;
    pid_t child_ = -1;
    bool ended_ = false;
    termios before_{};
};

}  // namespace trace_ring_test
