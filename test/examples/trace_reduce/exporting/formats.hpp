// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Complete output of the formats' writers, and what must hold for any trace.

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <examples/trace_reduce/exporting/csv_reader.hpp>
#include <examples/trace_reduce/exporting/perfetto_reader.hpp>
#include <exporter/json_check.hpp>
#include <trace_reduce/exporting/chrome.hpp>
#include <trace_reduce/exporting/csv.hpp>
#include <trace_reduce/exporting/perfetto.hpp>
#include <trace_ring/exporter/text/append.hpp>
#include <trace_ring/reduce/trace_file.hpp>

namespace trace_ring_test {

template <class Writer>
[[nodiscard]] std::string written(const trace_ring::reduce::trace_file& file, Writer&& writer) {
    trace_ring::exporter::text_buffer out;
    const std::size_t from = writer.add(file.about(), "a.trace");
    writer.begin(out);
    for (auto cursor = file.forward(); const auto* item = cursor.next();) {
        writer.append(out, from, *item);
    }
    writer.end(out);
    return std::string(out.view());
}

/// A time of Chrome's events, which compares as its value does. A date is a signed number of 64
/// bits, so two dates may be almost 2^64 ns apart, which is more than such a number holds.
struct chrome_time {
    bool after_origin = false;
    std::uint64_t rank = 0;  ///< ns after the origin, or the complement of ns before it

    friend auto operator<=>(const chrome_time&, const chrome_time&) = default;
};
/// Reads microseconds with three decimals. Throws if they are beyond 64 bits of nanoseconds.
[[nodiscard]] inline chrome_time chrome_time_of(std::string text) {
    const bool before = text.starts_with('-');
    text.erase(text.find('.'), 1);
    const std::uint64_t ns = std::stoull(text.substr(before ? 1 : 0));
    return {!before, before ? ~ns : ns};
}

/// Begins and ends of Chrome's events nest on each thread, and time does not go back there. Reads
/// the lines, which begin alike.
inline void check_nesting(std::string_view chrome) {
    struct thread {
        chrome_time newest;
        std::vector<std::string> open;
    };
    std::map<std::string, thread> threads;
    const auto member = [](std::string_view line, std::string_view name) {
        const std::size_t at = line.find(name);
        if (at == line.npos) throw std::runtime_error("chrome: no " + std::string(name));
        const std::string_view rest = line.substr(at + name.size());
        return std::string(rest.substr(0, rest.find_first_of(",}")));
    };
    while (!chrome.empty()) {
        const std::string_view line = chrome.substr(0, chrome.find('\n'));
        chrome.remove_prefix(std::min(chrome.size(), line.size() + 1));
        if (!line.starts_with(R"({"ph":")") || line[7] == 'M') continue;
        // The name may hold anything; what follows the category does not.
        const std::size_t category = line.find(R"(","pid":)");
        const std::string_view place = line.substr(category);
        thread& its = threads[member(place, R"("pid":)") + '/' + member(place, R"("tid":)")];
        const chrome_time time = chrome_time_of(member(place, R"("ts":)"));
        if (time < its.newest) {
            throw std::runtime_error("chrome: time goes back: " + std::string(line));
        }
        its.newest = time;
        const std::string name(line.substr(8, category - 8));
        if (line[7] == 'B') its.open.push_back(name);
        if (line[7] != 'E') continue;
        if (its.open.empty() || its.open.back() != name) {
            throw std::runtime_error("chrome: ends what is not open: " + std::string(line));
        }
        its.open.pop_back();
    }
}

/// Throws if something is not as its format wants it.
inline void check_formats(const trace_ring::reduce::trace_file& file) {
    namespace exporter = trace_ring::exporter;
    const csv_reader csv(written(file, trace_reduce::exporting::csv_writer({.files = true})));
    std::size_t items = 0;
    for (auto cursor = file.forward(); cursor.next() != nullptr;) ++items;
    if (csv.rows().size() != items + 1) throw std::runtime_error("csv: a row for each item");
    const trace_reduce::exporting::field_roles all{{"*"}, {"*"}};
    const std::string chrome = written(file, trace_reduce::exporting::chrome_writer(all));
    if (!json_check::valid(chrome)) throw std::runtime_error("chrome: not JSON");
    check_nesting(chrome);
    (void)perfetto_reader(written(file, trace_reduce::exporting::perfetto_writer(all)));
}

}  // namespace trace_ring_test
