// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The page where no browser is needed to judge it: what is in it, and what must not be. What a
/// browser makes of it, test/examples/trace_reduce/page.py says.

#include <cstdint>
#include <string>
#include <string_view>

#include <boost/test/unit_test.hpp>

#include <exporter/json_check.hpp>
#include <reduce/everything.hpp>
#include <reduce/file_builder.hpp>
#include <trace_reduce/html/writer.hpp>
#include <trace_ring/reduce/trace_file.hpp>

BOOST_AUTO_TEST_SUITE(html)

using namespace trace_ring_test;
namespace reduce = trace_ring::reduce;
namespace exporter = trace_ring::exporter;

namespace {

std::string exported(const file_builder& b) {
    const auto trace = reduce::trace_file::from(b.bytes(), "memory");
    trace_reduce::html_writer writer;
    exporter::text_buffer out;
    const auto from = writer.add(trace.about(), "</title><script>alert(1)</script>");
    writer.begin(out);
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        writer.append(out, from, *item);
    }
    writer.end(out);
    return std::string(out.view());
}

std::string base64(std::string_view bytes, std::size_t piece) {
    exporter::text_buffer out;
    trace_reduce::impl::base64_text text(out);
    for (std::size_t at = 0; at < bytes.size(); at += piece) text.append(bytes.substr(at, piece));
    text.end();
    return std::string(out.view());
}
std::string from_base64(std::string_view text) {
    constexpr std::string_view digits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    std::uint32_t bits = 0;
    unsigned there = 0;
    for (const char c : text) {
        if (c == '=') break;
        BOOST_REQUIRE(digits.find(c) != std::string_view::npos);
        bits = bits << 6 | static_cast<std::uint32_t>(digits.find(c));
        there += 6;
        if (there < 8) continue;
        there -= 8;
        out += static_cast<char>(bits >> there);
    }
    return out;
}

std::size_t times(std::string_view text, std::string_view what) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = text.find(what, at)) != text.npos; ++at) ++count;
    return count;
}

}  // namespace

BOOST_AUTO_TEST_CASE(base64_is_the_same_in_whatever_pieces_it_comes) {
    BOOST_TEST(base64("", 1) == "");
    BOOST_TEST(base64("f", 1) == "Zg==");
    BOOST_TEST(base64("fo", 1) == "Zm8=");
    BOOST_TEST(base64("foobar", 4) == "Zm9vYmFy");
    std::string bytes;
    for (int i = 0; i < 1000; ++i) bytes += static_cast<char>(i * 7);
    for (const std::size_t length : {998U, 999U, 1000U}) {
        const std::string whole = base64(std::string_view(bytes).substr(0, length), 1000);
        BOOST_TEST(from_base64(whole) == bytes.substr(0, length));
        for (const std::size_t piece : {1U, 2U, 5U, 64U}) {
            BOOST_TEST(base64(std::string_view(bytes).substr(0, length), piece) == whole);
        }
    }
}

BOOST_AUTO_TEST_CASE(nothing_of_a_trace_is_markup_and_nothing_is_loaded) {
    file_builder b;
    b.clock_reading(0, 0, 1'700'000'000'000'000'000);
    const auto& event =
        b.event({1,
                 "</script><img src=x>",
                 {{"<svg>"}, {"--><b>", field_type::character, field_form::variable}}});
    const auto lane = b.lane(b.process(1, "<iframe>"), 2, "<object>");
    b.open(lane, 1);
    b.record(lane, 2, event, {1, "<link href=http://example.invalid>"});
    const std::string page = exported(b);
    for (const char* const text :
         {"alert(1)", "<img", "<svg", "--><b>", "<iframe", "<object", "<link", "example.invalid",
          "http:", "https:", "innerHTML", "eval("}) {
        BOOST_TEST(page.find(text) == page.npos, text);
    }
    BOOST_TEST(page.find("default-src 'none'") != page.npos);
    BOOST_TEST(times(page, "</script>") == 3U);  // a block, the tables, the script
    BOOST_TEST(page.ends_with("</html>\n"));
    const std::size_t begin = page.find("id=\"meta\">") + 10;
    const std::string meta = from_base64(page.substr(begin, page.find('<', begin) - begin));
    BOOST_TEST(json_check::valid(meta), meta);
    BOOST_TEST(times(meta, "</script><img src=x>") == 1U);
}

BOOST_AUTO_TEST_CASE(a_page_grows_by_blocks_and_not_in_memory) {
    const std::string small = exported(everything({}, 10));
    BOOST_TEST(times(small, "class=\"items\"") == 1U);
    file_builder b({.sub_buffer_bytes = 32768, .sub_buffers = 64});
    const auto& tick = b.event({1, "tick", {}});
    const auto lane = b.lane(b.process(1), 2);
    b.open(lane, 0);
    for (std::uint64_t i = 1; i <= 150'000; ++i) {
        if (b.record(lane, i, tick, {})) continue;
        b.open(lane, i);
        b.record(lane, i, tick, {});
    }
    const std::string large = exported(b);
    BOOST_TEST(times(large, "class=\"items\"") == 3U);
    BOOST_TEST(large.size() < small.size() + 150'000 * 6);
}

BOOST_AUTO_TEST_SUITE_END()
