// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Each listing in golden/ says what a trace file holds and what must be shown of it.

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <reduce/listing.hpp>
#include <reduce/scratch_file.hpp>
#include <trace_ring/exporter/json.hpp>
#include <trace_ring/exporter/text.hpp>
#include <trace_ring/reduce/trace_file.hpp>

BOOST_AUTO_TEST_SUITE(golden)

using namespace trace_ring_test;
namespace reduce = trace_ring::reduce;
namespace exporter = trace_ring::exporter;

namespace {

template <class Writer>
std::string show(reduce::cursor cursor, Writer&& writer) {
    std::string out;
    while (const auto* item = cursor.next()) writer.append(out, *item);
    return out;
}

std::string shown_by(const std::string& what, const reduce::trace_file& file) {
    exporter::text_writer raw(file.time(), {.time = exporter::time_format::raw});
    if (what == "forward") return show(file.forward(), raw);
    if (what == "backward") return show(file.backward(), raw);
    if (what == "by lane") return show(file.forward({}, reduce::merging::by_lane), raw);
    if (what == "relative") {
        return show(file.forward(),
                    exporter::text_writer(file.time(), {.time = exporter::time_format::relative}));
    }
    if (what == "json") return show(file.forward(), exporter::json_writer(file.time()));
    if (what == "damages") {
        std::string out;
        for (const auto& damage : file.damages()) {
            out += "offset " + std::to_string(damage.offset) + ": " + damage.what + '\n';
        }
        return out;
    }
    throw std::runtime_error("shown by what? " + what);
}

std::string lines_reversed(const std::string& text) {
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = text.find('\n', at) + 1;
        lines.push_back(text.substr(at, end - at));
        at = end;
    }
    std::string out;
    std::for_each(lines.rbegin(), lines.rend(), [&out](const auto& line) { out += line; });
    return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_listing_is_shown_as_it_says) {
    unsigned listings = 0;
    unsigned sections = 0;
    for (const auto& entry : std::filesystem::directory_iterator(TRACE_RING_GOLDEN)) {
        if (entry.path().extension() != ".listing") continue;
        ++listings;
        const listing golden(entry.path().string());
        BOOST_TEST_CONTEXT(entry.path().filename().string()) {
            scratch_file scratch;
            golden.file().save(scratch.path());
            const auto memory = reduce::trace_file::from(golden.file().bytes());
            const auto file = reduce::trace_file::open(scratch.path());
            for (const auto& [what, expected] : golden.sections()) {
                ++sections;
                BOOST_TEST_CONTEXT(what) {
                    BOOST_TEST(shown_by(what, memory) == expected);
                    BOOST_TEST(shown_by(what, file) == expected);
                }
            }
            BOOST_TEST(lines_reversed(shown_by("backward", file)) == shown_by("forward", file));
        }
    }
    BOOST_TEST(listings >= 4U);
    BOOST_TEST(sections >= 8U);
}

BOOST_AUTO_TEST_SUITE_END()
