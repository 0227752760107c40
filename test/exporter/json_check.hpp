// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Is a line one JSON value, to the letter of RFC 8259? Written for tests: it keeps nothing.

#include <cstddef>
#include <string_view>

#include <trace_ring/exporter/text/append.hpp>

namespace trace_ring_test {

class json_check {
public:
    [[nodiscard]] static bool valid(std::string_view text) {
        json_check check{text};
        check.space();
        if (!check.value(0)) return false;
        check.space();
        return check.rest_.empty();
    }

private:
    explicit json_check(std::string_view text) : rest_(text) {}

    void space() {
        while (!rest_.empty() && std::string_view(" \t\r\n").find(rest_[0]) != rest_.npos) skip();
    }
    void skip(std::size_t count = 1) { rest_.remove_prefix(count); }
    [[nodiscard]] bool take(char c) {
        if (rest_.empty() || rest_[0] != c) return false;
        skip();
        return true;
    }
    [[nodiscard]] bool take(std::string_view word) {
        if (!rest_.starts_with(word)) return false;
        skip(word.size());
        return true;
    }
    [[nodiscard]] bool digits() {
        std::size_t count = 0;
        while (!rest_.empty() && rest_[0] >= '0' && rest_[0] <= '9') {
            skip();
            ++count;
        }
        return count != 0;
    }
    [[nodiscard]] bool number() {
        (void)take('-');
        if (!take('0') && !digits()) return false;
        if (take('.') && !digits()) return false;
        if (take('e') || take('E')) {
            if (!take('+')) (void)take('-');
            return digits();
        }
        return true;
    }
    [[nodiscard]] bool string() {
        if (!take('"')) return false;
        while (!rest_.empty() && rest_[0] != '"') {
            if (static_cast<unsigned char>(rest_[0]) < 0x20) return false;
            if (take('\\')) {
                if (take('u')) {
                    for (int i = 0; i < 4; ++i) {
                        if (rest_.empty() ||
                            std::string_view("0123456789abcdefABCDEF").find(rest_[0]) ==
                                rest_.npos) {
                            return false;
                        }
                        skip();
                    }
                } else {
                    if (rest_.empty() ||
                        std::string_view("\"\\/bfnrt").find(rest_[0]) == rest_.npos) {
                        return false;
                    }
                    skip();
                }
                continue;
            }
            const std::size_t length = trace_ring::exporter::impl::utf8_length(rest_);
            if (length == 0) return false;
            skip(length);
        }
        return take('"');
    }
    template <class Element>
    [[nodiscard]] bool list(char end, const Element& element) {
        skip();
        space();
        if (take(end)) return true;
        do {
            space();
            if (!element()) return false;
            space();
        } while (take(','));
        return take(end);
    }
    [[nodiscard]] bool value(int depth) {
        if (depth > 20 || rest_.empty()) return false;
        if (rest_[0] == '"') return string();
        if (rest_[0] == '[') return list(']', [&] { return value(depth + 1); });
        if (rest_[0] == '{') {
            return list('}', [&] {
                if (!string()) return false;
                space();
                if (!take(':')) return false;
                space();
                return value(depth + 1);
            });
        }
        return take("true") || take("false") || take("null") || number();
    }

    std::string_view rest_;
};

}  // namespace trace_ring_test
