// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The program's source on the page of an address trace: which lines are shown with which counts,
/// and that nothing at a path, or in a file, stops or breaks the page.

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <address_trace/report/by_place.hpp>
#include <address_trace/report/page.hpp>
#include <address_trace/report/source_lines.hpp>
#include <address_trace/report/source_text.hpp>
#include <recorder/scratch.hpp>

#include <examples/trace_clauses/clause_programs.hpp>

BOOST_AUTO_TEST_SUITE(address_source)

namespace {

using address_trace::counts_by_place;
using address_trace::place_counts;
using address_trace::source_limits;
using address_trace::source_lines;
using address_trace::source_text;
using clause_programs::write;

/// Its lines, and why there are none.
[[nodiscard]] std::vector<std::string> lines_of(const source_text& from) {
    std::vector<std::string> out;
    for (std::size_t i = 1; i <= from.size(); ++i) out.emplace_back(from.line(i));
    return out;
}

[[nodiscard]] place_counts line_of(const std::string& file, int number, std::uint64_t loads,
                                   std::uint64_t misses) {
    place_counts out;
    out.name = file + ':' + std::to_string(number);
    out.object = "/bin/program";
    out.file = file;
    out.line = number;
    out.counts.loads = loads;
    out.misses = {misses};
    return out;
}
/// The program does nothing else than these lines.
[[nodiscard]] counts_by_place program_of(const std::vector<place_counts>& lines) {
    counts_by_place out;
    out.lines = lines;
    place_counts& all = out.functions.emplace_back();
    all.misses.resize(1);
    for (const place_counts& each : lines) {
        all.counts.add(each.counts);
        all.misses[0] += each.misses[0];
    }
    return out;
}
[[nodiscard]] std::string html_of(const std::vector<place_counts>& lines,
                                  const source_limits& limits = {}) {
    return source_lines(program_of(lines), {"D1"}, limits).as_html();
}

[[nodiscard]] std::size_t times(std::string_view text, std::string_view what) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = text.find(what, at)) != text.npos; ++at) ++count;
    return count;
}
[[nodiscard]] bool has(std::string_view text, std::string_view what) {
    return text.find(what) != text.npos;
}

/// The first tag that does not close the last one that is open; empty: they nest.
[[nodiscard]] std::string wrong_tag(std::string_view html) {
    std::vector<std::string_view> open;
    for (std::size_t at = 0; (at = html.find('<', at)) != html.npos;) {
        const std::size_t end = html.find('>', at);
        if (end == html.npos) return "no end of " + std::string(html.substr(at, 40));
        const std::string_view tag = html.substr(at + 1, end - at - 1);
        at = end;
        const bool closes = tag.starts_with('/');
        const std::string_view name = tag.substr(closes, tag.find_first_of(" /", 1) - closes);
        if (tag.starts_with('!') || tag.ends_with('/') || name == "meta") continue;
        if (!closes) {
            open.push_back(name);
        } else if (open.empty() || open.back() != tag.substr(1)) {
            return std::string(tag);
        } else {
            open.pop_back();
        }
    }
    return open.empty() ? "" : std::string(open.back());
}

[[nodiscard]] std::string numbered_lines(int count) {
    std::string out;
    for (int i = 1; i <= count; ++i) out += "text of " + std::to_string(i) + "\n";
    return out;
}

struct in_a_folder {
    test::folder in;
};

BOOST_FIXTURE_TEST_CASE(lines_end_as_the_compiler_counts_them, in_a_folder) {
    using texts = std::vector<std::string>;
    const auto read = [&](const std::string& text) {
        write(in / "a.c", text);
        const source_text from(in / "a.c");
        BOOST_TEST(from.problem().empty());
        return lines_of(from);
    };
    BOOST_TEST((read("") == texts{}));
    BOOST_TEST((read("\n") == texts{""}));
    BOOST_TEST((read("a") == texts{"a"}));
    BOOST_TEST((read("a\nb\r\nc\rd") == texts{"a", "b", "c", "d"}));
    BOOST_TEST((read("\r\n\r\n\r\r") == texts{"", "", "", ""}));
    const std::string large(std::size_t{1} << 20, 'x');
    BOOST_TEST((read(large + "\n" + large) == texts{large, large}));
}

BOOST_FIXTURE_TEST_CASE(what_is_no_file_of_text_is_refused_with_the_reason, in_a_folder) {
    const auto problem = [](const std::string& path, std::size_t most) {
        const source_text from(path, most);
        BOOST_TEST(from.size() == 0U);
        BOOST_TEST(!from.is_newer_than("/"));
        return from.problem();
    };
    BOOST_TEST(problem(in / "gone.c", 100) == "No such file or directory");
    BOOST_TEST(problem("", 100) == "No such file or directory");
    BOOST_TEST(problem(std::string(5000, 'x'), 100) == "File name too long");
    BOOST_TEST(problem(in.path(), 100) == "a directory");
    BOOST_REQUIRE(::mkfifo((in / "fifo").c_str(), 0600) == 0);
    BOOST_TEST(problem(in / "fifo", 100) == "not a regular file");
    BOOST_TEST(problem("/dev/zero", 100) == "not a regular file");
    BOOST_REQUIRE(::symlink("loop", (in / "loop").c_str()) == 0);
    BOOST_TEST(problem(in / "loop", 100) == "Too many levels of symbolic links");
    write(in / "binary", std::string("\x7F"
                                     "ELF\0\1\n",
                                     7));
    BOOST_TEST(problem(in / "binary", 100) == "a binary file");
    write(in / "large", std::string(101, 'x'));
    BOOST_TEST(problem(in / "large", 100) == "too large: 101 B");
    BOOST_TEST(source_text(in / "large", 101).size() == 1U);
    // A file of the kernel, whose size is not known before it is read.
    BOOST_TEST(source_text("/proc/self/maps").size() == 0U);
}

BOOST_FIXTURE_TEST_CASE(a_source_may_be_newer_than_what_was_compiled_from_it, in_a_folder) {
    write(in / "a.c", "a\n");
    write(in / "program", "");
    const auto now = std::filesystem::last_write_time(in / "program");
    std::filesystem::last_write_time(in / "a.c", now - std::chrono::seconds(1));
    BOOST_TEST(!source_text(in / "a.c").is_newer_than(in / "program"));
    BOOST_TEST(!source_text(in / "a.c").is_newer_than(in / "gone"));
    place_counts line = line_of(in / "a.c", 1, 1, 1);
    line.object = in / "program";
    BOOST_TEST(!has(html_of({line}), "is newer"));
    std::filesystem::last_write_time(in / "a.c", now + std::chrono::milliseconds(1));
    BOOST_TEST(source_text(in / "a.c").is_newer_than(in / "program"));
    BOOST_TEST(has(html_of({line}), "is newer than the program (program): lines may be others."));
}

BOOST_FIXTURE_TEST_CASE(lines_with_counts_are_shown_with_those_around_them, in_a_folder) {
    write(in / "a.c", numbered_lines(100));
    place_counts hot = line_of(in / "a.c", 10, 5'000, 90), cold = line_of(in / "a.c", 50, 7'000, 9);
    hot.counts.stores = 1'234'567;
    hot.counts.updates = 4;
    hot.counts.failed_compares = 2;
    cold.counts.blocks = 3;
    const std::string html = html_of({hot, cold}, {.around = 1});
    BOOST_TEST(wrong_tag(html) == "");
    BOOST_TEST(has(html, "<details open>\n<summary><b>" + in / "a.c" +
                             "</b> 100.00 % of the misses, 2 lines with counts</summary>"),
               html);
    const std::size_t rows = html.find("<tbody>");
    BOOST_TEST(html.substr(rows, html.find("</tbody>") - rows) ==
               "<tbody>\n"
               "<tr class=\"gap\"><td colspan=\"8\">&#8942; 8 lines</td></tr>\n"
               "<tr><td>9</td><td></td><td></td><td></td><td></td><td></td><td></td>"
               "<td class=\"code\">text of 9</td></tr>\n"
               "<tr class=\"heat5\"><td>10</td><td>90.91 %</td><td></td><td>5,002</td>"
               "<td>1,234,567</td><td>4</td><td>90</td><td class=\"code\">text of 10</td></tr>\n"
               "<tr><td>11</td><td></td><td></td><td></td><td></td><td></td><td></td>"
               "<td class=\"code\">text of 11</td></tr>\n"
               "<tr class=\"gap\"><td colspan=\"8\">&#8942; 37 lines</td></tr>\n"
               "<tr><td>49</td><td></td><td></td><td></td><td></td><td></td><td></td>"
               "<td class=\"code\">text of 49</td></tr>\n"
               "<tr class=\"heat3\"><td>50</td><td>9.09 %</td><td>3</td><td>7,000</td><td></td>"
               "<td></td><td>9</td><td class=\"code\">text of 50</td></tr>\n"
               "<tr><td>51</td><td></td><td></td><td></td><td></td><td></td><td></td>"
               "<td class=\"code\">text of 51</td></tr>\n"
               "<tr class=\"gap\"><td colspan=\"8\">&#8942; 49 lines</td></tr>\n");
}

BOOST_FIXTURE_TEST_CASE(files_are_in_order_of_misses_or_else_of_references, in_a_folder) {
    for (const char* const name : {"a.c", "b.c", "c.c"}) write(in / name, "text\n");
    const auto order = [&](std::uint64_t misses) {
        const std::string html =
            html_of({line_of(in / "a.c", 1, 10, misses), line_of(in / "b.c", 1, 30, 0),
                     line_of(in / "c.c", 1, 20, 2 * misses)});
        BOOST_TEST(times(html, "<details open>") == 1U);
        std::string out;
        for (std::size_t at = 0; (at = html.find("<summary>", at)) != html.npos; ++at)
            out += html[html.find(".c</b>", at) - 1];
        return out;
    };
    BOOST_TEST(order(1) == "cab");
    BOOST_TEST(order(0) == "bca");
    BOOST_TEST(has(html_of({line_of(in / "a.c", 1, 1, 0)}), "100.00 % of the references"));
    BOOST_TEST(source_lines().empty());
    BOOST_TEST(source_lines().as_html() == "");
}

BOOST_FIXTURE_TEST_CASE(a_header_is_one_file_for_all_that_were_compiled_from_it, in_a_folder) {
    write(in / "a.h", "text\n");
    place_counts in_library = line_of(in / "a.h", 1, 3, 1);
    in_library.object = "/lib/library.so";
    const std::string html = html_of({line_of(in / "a.h", 1, 4, 1), in_library});
    BOOST_TEST(times(html, "<details") == 1U);
    BOOST_TEST(has(html, "<td>7</td><td></td><td></td><td>2</td><td class=\"code\">text"), html);
}

BOOST_AUTO_TEST_CASE(files_of_one_name_in_different_folders_are_apart) {
    const std::vector<address_trace::site_count> sites{
        {.site = 1, .count = 10}, {.site = 2, .count = 20}, {.site = 3, .count = 5}};
    const auto found = address_trace::sum_by_place(sites, {}, [](std::uint64_t site) {
        const char* const files[] = {"", "/a/util.c", "/b/util.c", "/b/other:1.c"};
        return address_trace::place{"f", "/bin/program", 1, files[site], 7};
    });
    BOOST_REQUIRE(found.lines.size() == 3U);
    BOOST_TEST(found.lines[0].name == "/b/util.c:7");
    BOOST_TEST(found.lines[1].name == "/a/util.c:7");
    BOOST_TEST(found.lines[1].counts.loads == 10U);
    BOOST_TEST(found.lines[2].name == "other:1.c:7");
    BOOST_TEST(found.lines[2].file == "/b/other:1.c");
    BOOST_TEST(found.functions.size() == 1U);
}

BOOST_FIXTURE_TEST_CASE(what_is_left_out_is_told_with_its_share, in_a_folder) {
    write(in / "a.c", numbered_lines(9));
    write(in / "b.c", numbered_lines(9));
    std::vector<place_counts> lines;
    for (int i = 1; i <= 9; i += 2)
        lines.push_back(line_of(in / "a.c", i, 1, static_cast<std::uint64_t>(i)));
    lines.push_back(line_of(in / "b.c", 1, 1, 5));
    const source_limits narrow{.files = 1, .lines = 2, .around = 0};
    const std::string html = html_of(lines, narrow);
    BOOST_TEST(has(html, "<td class=\"code\">text of 7<"));
    BOOST_TEST(has(html, "<td class=\"code\">text of 9<"));
    BOOST_TEST(times(html, "class=\"code\">text of") == 2U);
    BOOST_TEST(has(html, "<p>And 3 more lines with counts, with 30.00 % of the misses.</p>"), html);
    BOOST_TEST(has(html, "<p>And 1 more file, with 16.67 % of the misses.</p>"), html);
    // What is near a line that is shown has its counts though there is no place for more of them.
    BOOST_TEST(has(html_of(lines, {.lines = 1, .around = 3}), "<p>And 3 more lines with counts"));
}

BOOST_FIXTURE_TEST_CASE(lines_that_a_file_does_not_have_are_told, in_a_folder) {
    write(in / "a.c", numbered_lines(9));
    const std::string html =
        html_of({line_of(in / "a.c", 0, 1, 1), line_of(in / "a.c", 2'000'000'000, 2, 2),
                 line_of(in / "a.c", 10, 3, 3), line_of(in / "a.c", 2, 4, 4)});
    BOOST_TEST(wrong_tag(html) == "");
    BOOST_TEST(has(html, "<td>-</td><td>10.00 %</td>"), html);
    BOOST_TEST(has(html, "of no line"));
    BOOST_TEST(has(html, "&#8942; 4 lines</td></tr>\n<tr class=\"heat5\"><td>10</td>"), html);
    BOOST_TEST(has(html, "<td>2000000000</td>"));
    BOOST_TEST(times(html, "not in the file, which has 9 lines") == 2U);
}

BOOST_FIXTURE_TEST_CASE(a_source_that_cannot_be_read_is_told_and_its_counts_are_there,
                        in_a_folder) {
    const std::string html =
        html_of({line_of(in / "gone.c", 3, 5, 7), line_of("gone/b.c", 4, 1, 1)});
    BOOST_TEST(wrong_tag(html) == "");
    BOOST_TEST(has(html, in / "gone.c" + " cannot be shown: No such file or directory.</p>"), html);
    BOOST_TEST(has(html, "<td>3</td><td>87.50 %</td><td></td><td>5</td>"), html);
    BOOST_TEST(has(html, "gone/b.c cannot be shown: No such file or directory. The path is"));
    BOOST_TEST(!has(html, "class=\"gap\""));
}

BOOST_FIXTURE_TEST_CASE(nothing_of_a_source_or_its_name_is_markup, in_a_folder) {
    const std::string path = in / "\"><script>alert(1)<:12.c\xFF\x1B[2J";
    write(path,
          "\tif (a < b && c) </td></table></details><script>x</script>\n"
          "\xE9\x80 \xE2\x80\xAE \x1B[31m &#60;\n"
          "\xC3\xA9\tb\n" +
              std::string(std::size_t{1} << 20, '<') + "\n" + std::string(248, ' ') +
              "\xF0\x9F\x98\x80 behind\n");
    std::vector<place_counts> lines;
    for (int i = 1; i <= 6; ++i) lines.push_back(line_of(path, i, 1, 1));
    lines.push_back(line_of(std::string(100'000, '<'), 1, 1, 1));
    const source_lines sources(program_of(lines), {"<D1>"});
    const std::string page = make_page("title", {}, {}, sources);
    BOOST_TEST(wrong_tag(page) == "");
    BOOST_TEST(!has(page, "<script"));
    BOOST_TEST(!has(page, "<D1>"));
    BOOST_TEST(has(page, "default-src 'none'"));
    BOOST_TEST(times(page, "\"><script") == 0U);
    BOOST_TEST(page.size() < 100'000U);
    BOOST_TEST(has(page, "<td class=\"code\">        if (a &lt; b &amp;&amp; c) &lt;/td&gt;"));
    BOOST_TEST(has(page, "\\xe9\\x80 \\xe2\\x80\\xae \\x1b[31m &amp;#60;<"), page);
    BOOST_TEST(has(page, "<td class=\"code\">\xC3\xA9       b</td>"));
    BOOST_TEST(has(page, "&lt;<i> ... and 1,048,326 more bytes</i>"));
    // A character is not cut in two.
    BOOST_TEST(has(page, " <i> ... and 11 more bytes</i>"));
    BOOST_TEST(std::ranges::all_of(
        page, [](char c) { return static_cast<unsigned char>(c) >= 0x20 || c == '\n'; }));
}

}  // namespace

BOOST_AUTO_TEST_SUITE_END()
