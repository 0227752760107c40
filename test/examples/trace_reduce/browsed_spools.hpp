// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// CPTRAP files for the tests of --browse: made byte by byte, with a list of their items that no
/// reader has made; and what a model shows of them, as text.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <reduce/scratch_file.hpp>
#include <trace_reduce/browse/spools/spool_choice.hpp>
#include <trace_reduce/browse/spools/spool_model.hpp>
#include <trace_reduce/browse/spools/spools.hpp>
#include <trace_reduce/cptrap/range.hpp>
#include <trace_reduce/options.hpp>
#include <trace_ring/reduce/source.hpp>

namespace trace_ring_test::browsed {

using namespace trace_reduce::browse;

inline constexpr std::size_t page_bytes = 4096;

inline std::string printed(const char* format, auto... values) {
    char text[160];
    return {text, static_cast<std::size_t>(std::snprintf(text, sizeof text, format, values...))};
}
/// Capital letters, digits and blanks in EBCDIC.
inline std::string ebcdic(std::string_view text) {
    std::string out;
    for (const char c : text) {
        unsigned code = 0x40;
        if (c >= 'A' && c <= 'I') code = 0xC1U + static_cast<unsigned>(c - 'A');
        if (c >= 'J' && c <= 'R') code = 0xD1U + static_cast<unsigned>(c - 'J');
        if (c >= 'S' && c <= 'Z') code = 0xE2U + static_cast<unsigned>(c - 'S');
        if (c >= '0' && c <= '9') code = 0xF0U + static_cast<unsigned>(c - '0');
        out += static_cast<char>(code);
    }
    return out;
}
inline std::string big(std::uint64_t value, std::size_t bytes) {
    std::string out;
    while (bytes-- > 0) out += static_cast<char>(value >> 8 * bytes);
    return out;
}

/// A file, and the items that it has.
struct spool_bytes {
    struct item {
        std::size_t page, index, offset;
        unsigned type;  ///< 0: damage
        unsigned code;
        std::string data;
        std::string told;  ///< the rest of the line, if it is no record

        [[nodiscard]] std::string place() const { return printed("%zu:%zu", page, index); }
        /// The beginning of its line.
        [[nodiscard]] std::string line() const {
            const std::string begin = printed("%08zX ", offset) + place() + ' ';
            if (!told.empty()) return begin + told;
            const std::size_t size = data.size();
            const char* const unit = size == 1 ? "byte" : "bytes";
            if (type != 0xC5) {
                const char* const name = type == 0x3F ? "interface" : "unknown";
                return begin + printed("%02X %s %04X %zu %s", type, name, code, size, unit);
            }
            const char* const event = (code & 0xBFU) == 0x0B ? "start_io" : "svc_interrupt";
            const char* const attached = (code & 0x40U) != 0 ? ", attached" : "";
            return begin + printed("C5 %s%s %02X %zu %s", event, attached, code, size, unit);
        }
    };

    std::string bytes;
    std::vector<item> all;

    void raw(unsigned type, unsigned code, const std::string& data) {
        bytes += big(type, 1) + big(0, 1) + big(code, 2) + big(data.size() + 8, 2) + big(0, 2);
        bytes += data;
    }
    void add(unsigned type, unsigned code, std::string data) {
        if (bytes.size() % page_bytes + 8 + data.size() > page_bytes) end_page();
        note(type, code, data, {});
        raw(type, code, data);
        if (bytes.size() % page_bytes == 0) index = 0;
    }
    void interface(unsigned code, std::string data) { add(0x3F, code, std::move(data)); }
    void entry(unsigned code) {
        std::string data = big(code, 1) + "0123456789abcde";
        add(0xC5, code, std::move(data));
    }
    void lost(unsigned count) {
        note(0xD3, 2, big(count, 8), printed("-- %u records lost: refused", count));
        raw(0xD3, 2, big(count, 8));
    }
    void damage() {
        const std::size_t rest = page_bytes - bytes.size() % page_bytes;
        const std::string junk = "\x3E" + std::string(20, 'j') + std::string(rest - 21, '\0');
        note(0, 0, junk,
             printed("-- %zu bytes unreadable: a record of a type whose length is not known (3E)",
                     rest));
        bytes += junk;
        index = 0;
    }
    void end_page() {
        if (bytes.size() % page_bytes != 0)
            bytes.resize((bytes.size() / page_bytes + 1) * page_bytes);
        index = 0;
    }
    /// The lines of the items for which this holds, and of losses and damage.
    [[nodiscard]] std::vector<std::string> lines(const std::function<bool(const item&)>& chosen =
                                                     [](const item&) { return true; }) const {
        std::vector<std::string> out;
        for (const auto& each : all) {
            if (!each.told.empty() || chosen(each)) out.push_back(each.line());
        }
        return out;
    }
    [[nodiscard]] const item& at(std::size_t page, std::size_t number) const {
        return *std::find_if(all.begin(), all.end(), [&](const item& each) {
            return each.page == page && each.index == number;
        });
    }

private:
    void note(unsigned type, unsigned code, const std::string& data, const std::string& told) {
        all.push_back({bytes.size() / page_bytes, index++, bytes.size(), type, code, data, told});
    }
    std::size_t index = 0;
};

/// Thirty spool records with records of all lengths, a loss in the fifth, damage in the middle, a
/// spool record that is only damage, and an empty one.
inline spool_bytes thirty() {
    spool_bytes made;
    unsigned number = 0;
    while (made.bytes.size() < 30 * page_bytes) {
        const std::size_t page = made.bytes.size() / page_bytes;
        const std::size_t within = made.bytes.size() % page_bytes;
        if (within > page_bytes - 1100 && page != 14) {
            made.end_page();
            continue;
        }
        if (page == 5 && within == 0) made.lost(17);
        if (page == 14 && within > 1000) {
            made.damage();
            continue;
        }
        if (page == 20 && within == 0) {
            made.damage();
            made.bytes.resize(made.bytes.size() + page_bytes);
            continue;
        }
        ++number;
        if (number % 5 == 0) {
            made.entry(number % 10 == 0 ? 0x4B : 0x02);
        } else if (number % 31 == 0) {
            made.add(0xC9, number, std::string(number % 1000 + 1, 'z'));
        } else {
            made.interface(number % 7,
                           ebcdic(printed("NO %u ", number)) + std::string(number * 13 % 250, 'd'));
        }
    }
    made.end_page();
    return made;
}

inline std::string text_of(const row& of) {
    std::string text;
    for (const auto& cell : of.cells) {
        const std::size_t begin = cell.text.find_first_not_of(' ');
        if (begin == std::string::npos) continue;
        if (!text.empty()) text += ' ';
        text += cell.text.substr(begin, cell.text.find_last_not_of(' ') + 1 - begin);
    }
    return text;
}
inline std::vector<std::string> shown(spool_model& of) {
    std::vector<std::string> all;
    for (const auto& each : of.rows()) all.push_back(text_of(each));
    return all;
}
inline std::string here(spool_model& of) {
    for (const auto& each : of.rows()) {
        if (each.here) return text_of(each);
    }
    return "none";
}
/// A row, as the screen shows it.
inline std::string whole(const row& of) {
    std::string text;
    for (const auto& cell : of.cells) text += ' ' + cell.text;
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
}
inline std::string found_in(const row& of) {
    std::string text;
    for (const auto& cell : of.cells) {
        for (const auto& part : cell.found) {
            text += cell.text.substr(part.begin, part.end - part.begin) + '/';
        }
    }
    return text;
}
inline std::string found_here(spool_model& of) {
    for (const auto& each : of.rows()) {
        if (each.here) return found_in(each);
    }
    return "none";
}
/// Rows begin with these lines; the data of records follow.
inline bool begin_with(const std::vector<std::string>& rows,
                       const std::vector<std::string>& lines) {
    if (rows.size() != lines.size()) return false;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (!rows[i].starts_with(lines[i])) {
            BOOST_TEST_MESSAGE(rows[i] + " is not " + lines[i]);
            return false;
        }
    }
    return true;
}

/// A model of files in memory of the disk.
struct opened {
    spools all;
    std::optional<spool_model> model;

    explicit opened(std::initializer_list<const scratch_file*> files,
                    const trace_reduce::options& wanted = {}) {
        for (const auto* each : files) {
            auto from = trace_ring::reduce::source::open(each->path());
            const trace_reduce::spool_range range(wanted, from.size());
            all.add(std::move(from), range);
        }
        model.emplace(all, trace_reduce::spool_choice(wanted.types, wanted.codes), "");
        model->resize(10, 80);
    }
    spool_model* operator->() { return &*model; }
    spool_model& operator*() { return *model; }
};

/// All lines, page by page forward.
inline std::vector<std::string> all_forward(spool_model& of, std::size_t rows, std::size_t count) {
    std::vector<std::string> all;
    of.resize(rows, 200);
    of.home();
    for (;;) {
        const auto page = shown(of);  // the last one is full, too
        const std::size_t fresh = std::min(page.size(), count - std::min(count, all.size()));
        all.insert(all.end(), page.end() - static_cast<std::ptrdiff_t>(fresh), page.end());
        if (page.size() < rows || all.size() >= count) return all;
        of.by_pages(1);
    }
}
inline std::vector<std::string> all_backward(spool_model& of, std::size_t rows, std::size_t count) {
    std::vector<std::string> all;
    of.resize(rows, 200);
    of.end();
    for (;;) {
        const auto page = shown(of);
        const std::size_t fresh = std::min(page.size(), count - std::min(count, all.size()));
        all.insert(all.begin(), page.begin(), page.begin() + static_cast<std::ptrdiff_t>(fresh));
        if (page.size() < rows || all.size() >= count) return all;
        of.by_pages(-1);
    }
}

}  // namespace trace_ring_test::browsed
