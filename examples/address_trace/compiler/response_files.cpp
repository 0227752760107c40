// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "response_files.hpp"

#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>

namespace address_trace {
namespace {

/// Between spaces; quotes and backslashes keep these.
[[nodiscard]] std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> out;
    std::string word;
    bool is_word = false;
    char quote = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (quote == 0 && std::string_view(" \t\r\n").find(c) != std::string_view::npos) {
            if (is_word) out.push_back(std::exchange(word, {}));
            is_word = false;
            continue;
        }
        is_word = true;
        if (c == '\\' && i + 1 < text.size()) {
            word += text[++i];
        } else if (quote == 0 && (c == '"' || c == '\'')) {
            quote = c;
        } else if (c == quote) {
            quote = 0;
        } else {
            word += c;
        }
    }
    if (is_word) out.push_back(word);
    return out;
}

void expand(std::span<const std::string> arguments, int depth, std::vector<std::string>& to) {
    constexpr int deepest = 16;  // a file may name itself
    for (const std::string& each : arguments) {
        std::ifstream file;
        if (each.starts_with('@') && depth < deepest) file.open(each.substr(1));
        if (file.is_open()) {
            const std::string text(std::istreambuf_iterator<char>(file), {});
            expand(words_of(text), depth + 1, to);
        } else {
            to.push_back(each);
        }
    }
}

}  // namespace

std::vector<std::string> expand_response_files(std::span<const std::string> arguments) {
    std::vector<std::string> out;
    expand(arguments, 0, out);
    return out;
}

}  // namespace address_trace
