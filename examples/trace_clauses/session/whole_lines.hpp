// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The screen, to which the traced program may write, too: what is shown comes there by whole
/// lines.
/// @code
///   whole_lines lines(STDOUT_FILENO);
///   std::ostream out(&lines);
///   out << "a line\n" << std::flush;
/// @endcode

#include <limits.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>
#include <utility>

namespace trace_clauses {

/// Writes where it is flushed, up to PIPE_BUF bytes at a time, which a pipe takes as one, and no
/// part of a line that is shorter. What cannot be written is dropped, and the stream is bad then.
class whole_lines final : public std::streambuf {
public:
    explicit whole_lines(int file) noexcept : file_(file) {}
    ~whole_lines() override { write(); }
    whole_lines(const whole_lines&) = delete;
    whole_lines& operator=(const whole_lines&) = delete;

protected:
    int_type overflow(int_type c) override {
        if (!traits_type::eq_int_type(c, traits_type::eof())) text_ += traits_type::to_char_type(c);
        return traits_type::not_eof(c);
    }
    std::streamsize xsputn(const char* text, std::streamsize size) override {
        constexpr std::size_t much = std::size_t{1} << 20;
        text_.append(text, static_cast<std::size_t>(size));
        const std::size_t end = text_.size() < much ? std::string::npos : text_.rfind('\n');
        if (end != std::string::npos) {
            std::string rest = text_.substr(end + 1);
            text_.resize(end + 1);
            if (!write()) return 0;
            text_ = std::move(rest);
        }
        return size;
    }
    int sync() override { return write() ? 0 : -1; }

private:
    [[nodiscard]] static std::size_t first_part(std::string_view of) noexcept {
        if (of.size() <= PIPE_BUF) return of.size();
        const std::size_t end = of.substr(0, PIPE_BUF).rfind('\n');
        return end == std::string_view::npos ? std::size_t{PIPE_BUF} : end + 1;
    }
    bool write() noexcept {
        std::string_view left = text_;
        while (!left.empty()) {
            const ::ssize_t got = ::write(file_, left.data(), first_part(left));
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) break;
            left.remove_prefix(static_cast<std::size_t>(got));
        }
        const bool all = left.empty();
        text_.clear();
        return all;
    }

    int file_;
    std::string text_;
};

}  // namespace trace_clauses
