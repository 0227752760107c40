// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// What the analyses of address traces found, as tables, pictures, pages, and lines for others.

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <address_trace/analysis/analyses.hpp>
#include <address_trace/report/lines_of_text.hpp>
#include <address_trace/report/page.hpp>
#include <address_trace/report/pictures.hpp>
#include <address_trace/report/table.hpp>
#include <address_trace/report/tables.hpp>
#include <address_trace/session/traced_run.hpp>
#include "address_streams.hpp"

BOOST_AUTO_TEST_SUITE(address_report)

namespace {

using namespace address_streams;
using address_trace::cell;
using address_trace::table;

[[nodiscard]] table sample() {
    return {"sample",
            "A <sample>",
            {"name", "count", "share"},
            {{"f(int, \"x\")", std::uint64_t{1234567}, cell::share(std::uint64_t{1}, 8)},
             {"<b>\n", std::uint64_t{5}, cell::share(std::uint64_t{0}, 0)}},
            ""};
}

BOOST_AUTO_TEST_CASE(a_table_has_the_same_rows_in_each_form) {
    BOOST_TEST(as_text(sample(), {}) ==
               "A <sample>\n"
               "name             count    share\n"
               "f(int, \"x\")  1,234,567  12.50 %\n"
               "<b>?                 5        -\n");
    BOOST_TEST(as_csv(sample()) ==
               "name,count,share\n"
               "\"f(int, \"\"x\"\")\",1234567,0.125\n"
               "<b>?,5,-\n");
    const auto json = nlohmann::json::parse(as_json(sample()));
    BOOST_TEST(json["name"] == "sample");
    BOOST_TEST(json["columns"].size() == 3U);
    BOOST_TEST((json["rows"] ==
                nlohmann::json({{"f(int, \"x\")", 1234567, 0.125}, {"<b>?", 5, nullptr}})));
    const std::string html = as_html(sample());
    BOOST_TEST(html.find("<h2>A &lt;sample&gt;</h2>") != std::string::npos);
    BOOST_TEST(html.find("<td class=\"text\">f(int, &quot;x&quot;)</td><td>1,234,567</td>") !=
               std::string::npos);
    BOOST_TEST(html.find("&lt;b&gt;?") != std::string::npos);
}

// present: lost_records, lost_references, untraced_references, missing_records, damaged_bytes
// present: calls
BOOST_AUTO_TEST_CASE(no_gaps_are_told_only_if_no_count_says_otherwise) {
    address_trace::run_result found;
    BOOST_TEST(address_trace::gaps_text(found) == "none");
    for (std::uint64_t* const count :
         {&found.counts.lost_records, &found.counts.lost_references,
          &found.counts.untraced_references, &found.missing_records, &found.damaged_bytes,
          &found.counts.calls, &found.references}) {
        *count = 7;
        const std::string text = address_trace::gaps_text(found);
        BOOST_TEST(text.find("none") == std::string::npos, text);
        BOOST_TEST(text.find('7') != std::string::npos, text);
        *count = 0;
    }
}

BOOST_AUTO_TEST_CASE(names_give_way_where_a_table_is_too_wide) {
    table wide = sample();
    wide.rows[0][0] = std::string(300, 'a') + "bcd";
    wide.note = "one two three four";
    const std::string text = as_text(wide, {.width = 50});
    std::size_t longest = 0;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = text.find('\n', at);
        longest = std::max(longest, end - at);
        at = end + 1;
    }
    BOOST_TEST(longest == 50U);
    BOOST_TEST(text.find("aa..aa") != std::string::npos);
    BOOST_TEST(text.find("bcd ") != std::string::npos);
    BOOST_TEST(as_text(wide, {.width = 10}).ends_with("one two\nthree four\n"));
    BOOST_TEST(as_text(sample(), {.bold_titles = true}).starts_with("\x1b[1mA <sample>\x1b[0m\n"));
}

BOOST_AUTO_TEST_CASE(bytes_of_a_line_are_ranges) {
    using address_trace::bytes_text;
    BOOST_TEST(bytes_text(0) == "-");
    BOOST_TEST(bytes_text(0xFF) == "0-7");
    BOOST_TEST(bytes_text(0x10F1) == "0 4-7 12");
    BOOST_TEST(bytes_text(~std::uint64_t{0}) == "0-63");
    BOOST_TEST(bytes_text(std::uint64_t{1} << 63) == "63");
}

BOOST_AUTO_TEST_CASE(lines_are_those_of_lackey_and_dinero) {
    const std::vector<reference> all{block(0x400123),
                                     load(0x1000, 8),
                                     store(0x7FFE12345678, 1),
                                     {0x500, code, reference_kind::enter, 0}};
    std::string lackey, din;
    for (const auto& each : all) {
        append_line(lackey, each, address_trace::line_format::lackey);
        append_line(din, each, address_trace::line_format::din);
    }
    BOOST_TEST(lackey == "I  00400123,1\n L 00001000,8\n S 7ffe12345678,1\n");
    BOOST_TEST(din == "2 400123\n0 1000\n1 7ffe12345678\n");
}

/// All analyses, of one thread's patterns and of two threads that share a line.
struct everything {
    address_trace::analyses fed;
    address_trace::findings found;

    everything() {
        found.fed = &fed;
        for (const char* const levels : {"D1=32K,64,8", "L1=4K,64,2+L2=64K,64,8", "TLB=64,4K,4"})
            found.caches.push_back(
                &fed.make<address_trace::cache_misses>(address_trace::parse_cache_levels(levels)));
        found.lines = &fed.make<address_trace::line_use>();
        found.distances = &fed.make<address_trace::reuse_distance>(64U, 1000U);
        found.working = &fed.make<address_trace::working_set>();
        found.stepping = &fed.make<address_trace::strides>();
    }
    [[nodiscard]] std::vector<table> tables() const {
        return make_tables(found, [](std::uint64_t site) {
            return address_trace::place{site < code + 512 ? "a<b>(int)" : "c & d", "program", site,
                                        "/src/x.cpp", static_cast<int>(site % 7)};
        });
    }
};

[[nodiscard]] const table& named(const std::vector<table>& all, const std::string& name) {
    const auto at = std::ranges::find(all, name, &table::name);
    BOOST_REQUIRE((at != all.end()));
    return *at;
}

BOOST_AUTO_TEST_CASE(every_finding_is_in_a_table) {
    everything all;
    for (const auto& each : patterns(20'000)) feed(all.fed, each.all);
    for (int i = 0; i < 10; ++i) {
        for (std::uint32_t thread = 2; thread < 4; ++thread)
            feed(all.fed, {store(data + 8 * thread), store(data + (1u << 20))}, thread);
    }
    const auto tables = all.tables();
    for (const table& each : tables) {
        for (const auto& row : each.rows) BOOST_REQUIRE(row.size() == each.columns.size());
        BOOST_TEST(as_text(each, {}).find(each.title) == 0U);
    }
    BOOST_TEST(named(tables, "references").rows.back()[1].count == 120'040U);
    BOOST_TEST(named(tables, "caches").rows.size() == 4U);
    BOOST_TEST(named(tables, "functions").columns.size() == 7U + 4);
    BOOST_TEST(named(tables, "source").rows.size() == 7U);
    BOOST_TEST(named(tables, "hottest").rows.size() == 20U);
    BOOST_TEST(named(tables, "false_sharing").rows.size() == 3U);
    BOOST_TEST(named(tables, "true_sharing").rows.size() == 2U);
    BOOST_TEST(named(tables, "reuse").note.find("one line in") != std::string::npos);
    BOOST_TEST(named(tables, "working_set").rows.back()[0].text == "all");
    BOOST_TEST(named(tables, "strides").rows.size() == 20U);
    BOOST_TEST(!named(tables, "stride_kinds").rows.empty());

    const auto pictures = draw_all(all.found);
    BOOST_REQUIRE(pictures.size() == 4U);
    const std::string page = make_page("a <program>", tables, pictures, {});
    for (const auto& each : pictures) {
        BOOST_TEST(each.svg.starts_with("<svg "));
        BOOST_TEST(each.svg.ends_with("</svg>\n"));
        for (const char* const wrong : {"nan", "inf", "-0x"})
            BOOST_TEST(each.svg.find(wrong) == std::string::npos);
        BOOST_TEST(page.find(each.svg) != std::string::npos);
    }
    // Nothing that was traced is markup, and nothing is loaded from elsewhere.
    BOOST_TEST(page.find("<b>") == std::string::npos);
    BOOST_TEST(page.find("a <program>") == std::string::npos);
    BOOST_TEST(page.find("src=") == std::string::npos);
    BOOST_TEST(page.find("default-src 'none'") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(columns_of_words_are_there_if_a_cache_has_the_word) {
    const auto caches = [](const std::vector<std::string>& levels) {
        address_trace::analyses fed;
        address_trace::findings found;
        found.fed = &fed;
        for (const std::string& each : levels)
            found.caches.push_back(
                &fed.make<address_trace::cache_misses>(address_trace::parse_cache_levels(each)));
        for (const auto& each : patterns(2000)) feed(fed, each.all);
        return named(make_tables(found, [](std::uint64_t) { return address_trace::place{}; }),
                     "caches");
    };
    BOOST_TEST(caches({"D1=4K,64,2", "D1=4K,64,2,fifo"}).columns.size() == 8U);
    const table some = caches({"D1=4K,64,2", "D1=1K,64,2,write-back", "D1=1K,64,2,next"});
    BOOST_TEST(as_csv(some).find("of code,written back,still dirty,prefetched,used\n") !=
               std::string::npos);
    for (const auto& row : some.rows) BOOST_TEST(row.size() == some.columns.size());
    BOOST_TEST(some.rows[0][8].text == "-");
    BOOST_TEST(some.rows[1][8].count > 64U);
    BOOST_TEST(some.rows[1][9].count % 64 == 0U);
    BOOST_TEST(some.rows[1][10].text == "-");
    BOOST_TEST(some.rows[2][10].count > some.rows[2][11].count);
    const table all = caches({"L1=4K,64,2+L2=16K,64,4,inclusive"});
    BOOST_TEST(all.columns.back() == "invalidated");
    BOOST_TEST(all.rows[0].back().count > 0U);
    BOOST_TEST(all.rows[1].back().text == "-");
    BOOST_TEST(all.note.find("Written back") != std::string::npos);
    BOOST_TEST(all.note.find("inclusive") != std::string::npos);
    BOOST_TEST(all.note.find("Prefetched") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(of_nothing_there_are_tables_and_no_pictures_but_that_of_the_caches) {
    everything all;
    for (const table& each : all.tables()) BOOST_TEST(!as_text(each, {}).empty());
    BOOST_TEST(draw_all(all.found).size() == 1U);
}

}  // namespace

BOOST_AUTO_TEST_SUITE_END()
