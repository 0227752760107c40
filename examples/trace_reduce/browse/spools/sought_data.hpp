// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A text that is searched for in data: as ASCII, as EBCDIC, and in names; or bytes, typed as
/// X'C1C2' or 0xC1C2. Characters are mapped to EBCDIC as ebcdic.hpp shows them.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../cptrap/ebcdic.hpp"
#include "../model.hpp"

namespace trace_reduce::browse {

class sought_data {
public:
    /// Finds nothing.
    sought_data() = default;
    /// Nothing, with `why`, if the text begins like bytes in hexadecimal and is not.
    [[nodiscard]] static std::optional<sought_data> parse(std::string_view text, std::string& why) {
        sought_data made;
        std::string_view digits;
        if (text.starts_with("X'") || text.starts_with("x'")) {
            digits = text.substr(2);
            if (!digits.ends_with('\'')) {
                why = std::string(text) + ": a quote is missing at the end";
                return std::nullopt;
            }
            digits.remove_suffix(1);
        } else if (text.starts_with("0x") || text.starts_with("0X")) {
            digits = text.substr(2);
        } else {
            made.name_ = text;
            made.forms_.emplace_back(text);
            if (auto other = to_ebcdic(text)) made.forms_.push_back(std::move(*other));
            return made;
        }
        std::string bytes;
        for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
            const int high = digit(digits[i]), low = digit(digits[i + 1]);
            if (high < 0 || low < 0) break;
            bytes += static_cast<char>(high * 16 + low);
        }
        if (bytes.empty() || bytes.size() * 2 != digits.size()) {
            why = std::string(text) + ": bytes are pairs of hexadecimal digits, as in X'C1C2'";
            return std::nullopt;
        }
        made.forms_.push_back(std::move(bytes));
        return made;
    }

    /// The text has no EBCDIC form: it has a character that the usual code pages do not share.
    [[nodiscard]] bool is_only_ascii() const noexcept {
        return !name_.empty() && forms_.size() == 1;
    }
    [[nodiscard]] bool is_in_name(std::string_view name) const noexcept {
        return !name_.empty() && name.find(name_) != std::string_view::npos;
    }
    /// Where the first hit from offset `from` on begins.
    [[nodiscard]] std::optional<std::size_t> first_in(std::span<const std::byte> data,
                                                      std::size_t from = 0) const {
        std::size_t best = npos;
        for (const auto& form : forms_) best = std::min(best, text_of(data).find(form, from));
        return best == npos ? std::nullopt : std::optional(best);
    }
    /// Where the last hit begins that begins before `end`.
    [[nodiscard]] std::optional<std::size_t> last_in(std::span<const std::byte> data,
                                                     std::size_t end) const {
        std::optional<std::size_t> best;
        for (const auto& form : forms_) {
            const auto at = end == 0 ? npos : text_of(data).rfind(form, end - 1);
            if (at != npos && (!best || at > *best)) best = at;
        }
        return best;
    }
    /// The parts of hits in the `count` bytes from `begin` on, as offsets from there. Ascending,
    /// and apart from each other.
    [[nodiscard]] std::vector<cell::part> parts_in(std::span<const std::byte> data,
                                                   std::size_t begin, std::size_t count) const {
        std::vector<bool> in(count);
        for (const auto& form : forms_) {
            const std::size_t before = std::min(begin, form.size() - 1);
            const auto text = text_of(data).substr(0, begin + count + form.size() - 1);
            for (auto at = text.find(form, begin - before); at != npos;
                 at = text.find(form, at + 1)) {
                const std::size_t first = std::max(at, begin) - begin;
                const std::size_t last = std::min(at + form.size(), begin + count) - begin;
                for (std::size_t i = first; i < last; ++i) in[i] = true;
            }
        }
        return runs_of(in);
    }
    /// The same for a name.
    [[nodiscard]] std::vector<cell::part> parts_in_name(std::string_view text) const {
        std::vector<cell::part> parts;
        if (name_.empty()) return parts;
        for (auto at = text.find(name_); at != npos; at = text.find(name_, at + name_.size())) {
            parts.push_back({at, at + name_.size()});
        }
        return parts;
    }

private:
    static constexpr std::size_t npos = std::string_view::npos;

    [[nodiscard]] static std::string_view text_of(std::span<const std::byte> data) noexcept {
        return {reinterpret_cast<const char*>(data.data()), data.size()};
    }
    [[nodiscard]] static int digit(char c) noexcept {
        if (c >= '0' && c <= '9') return c - '0';
        if (c >= 'A' && c <= 'F') return c - 'A' + 10;
        if (c >= 'a' && c <= 'f') return c - 'a' + 10;
        return -1;
    }
    [[nodiscard]] static std::optional<std::string> to_ebcdic(std::string_view text) {
        std::string out;
        for (const char c : text) {
            constexpr std::size_t full_stop = 0x4B;  // others are shown as one, too
            std::size_t code = c == '.' ? full_stop : 0;
            while (code < 256 && ebcdic_character(static_cast<std::byte>(code)) != c) ++code;
            if (code == 256) return std::nullopt;
            out += static_cast<char>(code);
        }
        return out;
    }
    [[nodiscard]] static std::vector<cell::part> runs_of(const std::vector<bool>& in) {
        std::vector<cell::part> runs;
        for (std::size_t i = 0; i < in.size(); ++i) {
            if (!in[i]) continue;
            if (runs.empty() || runs.back().end != i) runs.push_back({i, i});
            ++runs.back().end;
        }
        return runs;
    }

    std::string name_;                ///< empty: bytes
    std::vector<std::string> forms_;  ///< each as bytes
};

}  // namespace trace_reduce::browse
