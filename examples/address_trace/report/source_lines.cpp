// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "source_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string_view>
#include <utility>

#include <heap_recorder/report/escaped.hpp>
#include <heap_recorder/report/quantity.hpp>

#include "../../shown.hpp"

namespace address_trace {
namespace {

/// Removes markup, bytes that are not UTF-8, and characters that change the direction of text.
[[nodiscard]] std::string harmless(std::string_view text) {
    return heap::escaped(::shown(text));
}

/// No system accepts a path of more than 4096 bytes, but debug information may have longer ones.
[[nodiscard]] std::string path_text(std::string_view path) {
    constexpr std::size_t most = 1000;
    return harmless(path.substr(0, most)) + (path.size() > most ? " ..." : "");
}

/// "1 line", "1,234 lines".
[[nodiscard]] std::string many(std::size_t count, const char* what) {
    return fmt::format("{} {}{}", heap::count_text(count), what, count == 1 ? "" : "s");
}

[[nodiscard]] std::string share_of(std::uint64_t part, std::uint64_t whole) {
    if (whole == 0) return "-";
    return fmt::format("{:.2f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

/// The heat of a line from 0 to 5: the class of its row.
[[nodiscard]] int heat_of(std::uint64_t part, std::uint64_t whole) {
    constexpr double steps[] = {0.005, 0.02, 0.05, 0.1, 0.2};
    if (whole == 0) return 0;
    const double share = static_cast<double>(part) / static_cast<double>(whole);
    return static_cast<int>(std::ranges::upper_bound(steps, share) - std::begin(steps));
}

/// Whether a byte continues a UTF-8 character.
[[nodiscard]] bool continues(char c) {
    return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

/// Replaces tabs by spaces up to each eighth column, as the compiler's messages do.
[[nodiscard]] std::string without_tabs(std::string_view text) {
    std::string out;
    std::size_t column = 0;
    for (const char c : text) {
        const std::size_t blanks = c == '\t' ? 8 - column % 8 : 0;
        out.append(blanks, ' ');
        if (c != '\t') out += c;
        column += c == '\t' ? blanks : !continues(c);
    }
    return out;
}

[[nodiscard]] std::string line_text(std::string_view line, std::size_t most) {
    if (line.size() <= most) return harmless(without_tabs(line));
    std::size_t end = most;
    // Does not cut a character, which has at most four bytes.
    for (int i = 0; i < 3 && end > 0 && continues(line[end]); ++i) --end;
    return harmless(without_tabs(line.substr(0, end))) +
           fmt::format("<i> ... and {} more bytes</i>", heap::count_text(line.size() - end));
}

/// Names of the objects that are older than the source; empty: none.
[[nodiscard]] std::string older_than(const source_text& source,
                                     const std::set<std::string>& objects) {
    constexpr std::size_t most = 3;
    std::string out;
    std::size_t count = 0;
    for (const std::string& each : objects) {
        if (!source.is_newer_than(each) || ++count > most) continue;
        out += (out.empty() ? "" : ", ") + path_text(symbols::file_name(each));
    }
    return count > most ? out + fmt::format(" and {} more", count - most) : out;
}

}  // namespace

source_lines::source_lines(const counts_by_place& of, std::vector<std::string> caches,
                           const source_limits& limits)
    : caches_(std::move(caches)), limits_(limits) {
    by_misses_ = std::ranges::any_of(of.functions, [](const place_counts& each) {
        return std::ranges::any_of(each.misses, [](std::uint64_t count) { return count != 0; });
    });
    for (const place_counts& each : of.functions) weight_ += weight_of(each);
    std::map<std::string, source_file> by_path;
    for (const place_counts& each : of.lines) {
        source_file& file = by_path[each.file];
        file.path = each.file;
        file.objects.insert(each.object);
        counted& line = file.lines[each.line];
        line.counts.add(each.counts);
        line.misses.resize(caches_.size());
        for (std::size_t i = 0; i < caches_.size(); ++i) line.misses[i] += each.misses.at(i);
        line.weight += weight_of(each);
        file.weight += weight_of(each);
        file.references += each.counts.references();
    }
    for (auto& [path, each] : by_path) files_.push_back(std::move(each));
    std::ranges::stable_sort(files_, [](const source_file& a, const source_file& b) {
        return std::pair(a.weight, a.references) > std::pair(b.weight, b.references);
    });
}

std::uint64_t source_lines::weight_of(const place_counts& of) const {
    return by_misses_ ? std::accumulate(of.misses.begin(), of.misses.end(), std::uint64_t{0})
                      : of.counts.references();
}

std::string source_lines::as_html() const {
    if (empty()) return {};
    std::string out = fmt::format(
        "<section id=\"files\">\n<h2>Source files</h2>\n"
        "<p>The share is that of all {} of the program{}. Lines that have a greater one are "
        "darker: <span class=\"heat1\">0.5 %</span> <span class=\"heat2\">2 %</span> "
        "<span class=\"heat3\">5 %</span> <span class=\"heat4\">10 %</span> "
        "<span class=\"heat5\">20 %</span> and more.</p>\n",
        unit(), by_misses_ && caches_.size() > 1 ? ", in all caches together" : "");
    const std::size_t shown_files = std::min(limits_.files, files_.size());
    for (std::size_t i = 0; i < shown_files; ++i) out += file_html(files_[i], i == 0);
    if (shown_files < files_.size()) {
        std::uint64_t left_out = 0;
        for (std::size_t i = shown_files; i < files_.size(); ++i) left_out += files_[i].weight;
        out += fmt::format("<p>And {}, with {} of the {}.</p>\n",
                           many(files_.size() - shown_files, "more file"),
                           share_of(left_out, weight_), unit());
    }
    return out + "</section>\n";
}

std::map<int, const source_lines::counted*> source_lines::rows_of(const source_file& of,
                                                                  int last) const {
    struct ranked {
        std::uint64_t weight, references;
        int number;
    };
    std::vector<ranked> all;
    for (const auto& [number, each] : of.lines)
        all.push_back({each.weight, each.counts.references(), number});
    std::ranges::stable_sort(all, [](const ranked& a, const ranked& b) {
        return std::pair(a.weight, a.references) > std::pair(b.weight, b.references);
    });
    if (all.size() > limits_.lines) all.resize(limits_.lines);
    std::map<int, const counted*> out;
    const auto add = [&](int number) {
        const auto its = of.lines.find(number);
        out.try_emplace(number, its == of.lines.end() ? nullptr : &its->second);
    };
    const auto around = static_cast<int>(limits_.around);
    for (const auto& [weight, references, number] : all) {
        add(number);
        if (number < 1 || number > last) continue;
        for (int each = std::max(1, number - around); each <= std::min(last, number + around);
             ++each)
            add(each);
    }
    return out;
}

std::string source_lines::row_html(int number, const counted* counts,
                                   const std::string& cell) const {
    const int heat = counts == nullptr ? 0 : heat_of(counts->weight, weight_);
    std::string out = heat == 0 ? "<tr>" : fmt::format("<tr class=\"heat{}\">", heat);
    const auto put = [&](const std::string& what) { out += "<td>" + what + "</td>"; };
    // Most lines have few counts, so zeros are left blank.
    const auto put_count = [&](std::uint64_t of) { put(of == 0 ? "" : heap::count_text(of)); };
    put(number == 0 ? "-" : fmt::format("{}", number));
    if (counts == nullptr) {
        for (std::size_t i = 0; i < 5 + caches_.size(); ++i) put("");
    } else {
        const reference_counts& its = counts->counts;
        put(share_of(counts->weight, weight_));
        for (const std::uint64_t each :
             {its.blocks, its.loads + its.failed_compares, its.stores, its.updates})
            put_count(each);
        for (const std::uint64_t each : counts->misses) put_count(each);
    }
    return out + cell + "</tr>\n";
}

std::string source_lines::head_html(const source_file& of, const source_text& source,
                                    bool open) const {
    const std::string path = path_text(of.path);
    std::string out =
        fmt::format("<details{}>\n<summary><b>{}</b> {} of the {}, {} with counts</summary>\n",
                    open ? " open" : "", path, share_of(of.weight, weight_), unit(),
                    many(of.lines.size(), "line"));
    if (!source.problem().empty()) {
        out += fmt::format("<p class=\"warning\">{} cannot be shown: {}.{}</p>\n", path,
                           harmless(source.problem()),
                           of.path.starts_with('/')
                               ? ""
                               : " The path is relative: run address-trace where it leads there.");
    }
    if (const std::string older = older_than(source, of.objects); !older.empty())
        out += fmt::format(
            "<p class=\"warning\">{} is newer than the program ({}): lines may be others.</p>\n",
            path, older);
    out += fmt::format(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">"
        "<table class=\"lines\">\n<thead><tr>",
        path);
    for (const char* const name : {"line", "share", "blocks", "loads", "stores", "updates"})
        out += fmt::format("<th>{}</th>", name);
    for (const std::string& each : caches_)
        out += fmt::format("<th>{} misses</th>", harmless(each));
    return out + "<th class=\"code\">source</th></tr></thead>\n<tbody>\n";
}

std::string source_lines::file_html(const source_file& of, bool open) const {
    const source_text source(of.path);
    const int last = static_cast<int>(source.size());
    std::string out = head_html(of, source, open);
    int done = 0;  // all lines up to this one are shown, or replaced by a gap
    const auto gap_up_to = [&](int next) {
        const int missing = next - done - 1;
        if (missing > 0)
            out += fmt::format("<tr class=\"gap\"><td colspan=\"{}\">&#8942; {}</td></tr>\n",
                               7 + caches_.size(), many(static_cast<std::size_t>(missing), "line"));
        done = std::max(done, next - 1);
    };
    std::uint64_t left_out = of.weight;
    std::size_t more = of.lines.size();
    for (const auto& [number, counts] : rows_of(of, last)) {
        if (counts != nullptr) {
            left_out -= counts->weight;
            --more;
        }
        std::string cell;
        if (number == 0) {
            cell = "<td class=\"note\">of no line</td>";
        } else if (!source.problem().empty()) {
            cell = "<td class=\"note\"></td>";
        } else if (number < 0 || number > last) {
            gap_up_to(last + 1);
            cell = fmt::format("<td class=\"note\">not in the file, which has {}</td>",
                               many(source.size(), "line"));
        } else {
            gap_up_to(number);
            done = number;
            cell = fmt::format(
                "<td class=\"code\">{}</td>",
                line_text(source.line(static_cast<std::size_t>(number)), limits_.columns));
        }
        out += row_html(number, counts, cell);
    }
    gap_up_to(last + 1);
    out += "</tbody></table></div>\n";
    if (more != 0)
        out += fmt::format("<p>And {} with counts, with {} of the {}.</p>\n",
                           many(more, "more line"), share_of(left_out, weight_), unit());
    return out + "</details>\n";
}

}  // namespace address_trace
