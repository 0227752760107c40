// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// CTF where no other program is needed to judge it: names, and how packets lie. What babeltrace2
/// makes of it, test/examples/trace_reduce/ctf.py says.

#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <regex>
#include <set>
#include <string>
#include <string_view>

#include <boost/test/unit_test.hpp>

#include <reduce/everything.hpp>
#include <reduce/file_builder.hpp>
#include <trace_reduce/exporting/ctf.hpp>
#include <trace_ring/reduce/trace_file.hpp>

BOOST_AUTO_TEST_SUITE(ctf)

using namespace trace_ring_test;
namespace reduce = trace_ring::reduce;
namespace exporter = trace_ring::exporter;

namespace {

using files = std::map<std::string, std::string, std::less<>>;

files exported(const file_builder& b) {
    files out;
    const auto trace = reduce::trace_file::from(b.bytes());
    trace_reduce::exporting::ctf_writer writer(
        [&](std::string_view file, std::string_view bytes) { out[std::string(file)] += bytes; });
    const auto from = writer.add(trace.about(), "memory");
    writer.begin();
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        writer.append(from, *item);
    }
    writer.end();
    return out;
}

std::uint64_t word(const std::string& bytes, std::size_t at) {
    std::uint64_t value = 0;
    BOOST_REQUIRE(at + 8 <= bytes.size());
    std::memcpy(&value, bytes.data() + at, 8);
    return value;
}

/// The name from which an identifier was made.
std::string original_name(const std::string& name) {
    if (name == "_x_") return {};
    const std::regex mangled("_x([0-9a-f]{2})_");
    std::string out;
    auto rest = name.cbegin();
    for (std::smatch found; std::regex_search(rest, name.cend(), found, mangled);
         rest = found.suffix().first) {
        out.append(rest, found[0].first);
        out += static_cast<char>(std::stoi(found[1], nullptr, 16));
    }
    return out.append(rest, name.cend());
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_name_becomes_an_identifier_and_is_found_again) {
    BOOST_TEST(trace_reduce::exporting::ctf_name("id") == "id");
    BOOST_TEST(trace_reduce::exporting::ctf_name("order_id") == "order_id");
    BOOST_TEST(trace_reduce::exporting::ctf_name("a-b") == "a_x2d_b");
    BOOST_TEST(trace_reduce::exporting::ctf_name("") == "_x_");
    BOOST_TEST(trace_reduce::exporting::ctf_name("_x_") == "_x5f_x_");
    BOOST_TEST(trace_reduce::exporting::ctf_name("_x2d_") == "_x5f_x2d_");
    std::mt19937 random(1);
    constexpr std::string_view letters("_x2d-5fa\xff", 9);
    std::set<std::string> seen;
    std::set<std::string> names;
    for (int i = 0; i < 20000; ++i) {
        std::string name;
        for (auto length = random() % 8; length > 0; --length) name += letters[random() % 9];
        const std::string mangled = trace_reduce::exporting::ctf_name(name);
        BOOST_TEST(original_name(mangled) == name);
        BOOST_TEST(mangled.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789") ==
                   std::string::npos);
        names.insert(name);
        seen.insert(mangled);
    }
    BOOST_TEST(names.size() > 1000U);
    BOOST_TEST(seen.size() == names.size());  // no two names are one identifier
}

BOOST_AUTO_TEST_CASE(packets_fill_their_files_and_time_does_not_go_back) {
    const files out = exported(everything());
    BOOST_TEST(out.size() == 4U);
    BOOST_REQUIRE(out.contains("metadata"));
    BOOST_TEST(out.at("metadata").starts_with("/* CTF 1.8 */\n"));
    for (const auto& [name, bytes] : out) {
        if (name == "metadata") continue;
        std::uint64_t before = 0;
        std::uint64_t number = 0;
        std::uint64_t discarded = 0;
        std::size_t at = 0;
        while (at < bytes.size()) {
            BOOST_TEST((word(bytes, at) & 0xFFFFFFFF) == 0xC1FC1FC1);
            const std::uint64_t begin = word(bytes, at + 16);
            const std::uint64_t end = word(bytes, at + 24);
            BOOST_TEST(begin >= before);
            BOOST_TEST(end >= begin);
            before = end;
            BOOST_TEST(word(bytes, at + 32) == word(bytes, at + 40));
            BOOST_TEST(word(bytes, at + 48) == number++);
            BOOST_TEST(word(bytes, at + 56) >= discarded);
            discarded = word(bytes, at + 56);
            BOOST_REQUIRE(word(bytes, at + 40) >= 64 * 8);
            at += static_cast<std::size_t>(word(bytes, at + 40) / 8);
        }
        BOOST_TEST(at == bytes.size());
        BOOST_TEST(discarded == (name == "lane-1" ? 4U : 0U));
    }
}

BOOST_AUTO_TEST_CASE(a_clock_that_goes_back_goes_on_in_another_stream_but_not_without_end) {
    file_builder b({.sub_buffer_bytes = 512, .sub_buffers = 256});
    b.clock_reading(0, 0, 1'700'000'000'000'000'000);
    const auto& tick = b.event({1, "tick", {}});
    const auto lane = b.lane(b.process(1), 2);
    std::uint64_t time = 1'000'000;
    for (int i = 0; i < 100; ++i) {
        b.open(lane, time - 1);
        b.record(lane, time, tick, {});
        b.close(lane, time);
        time -= 1000;
    }
    const files out = exported(b);
    BOOST_TEST(out.size() == 1U + 65);  // with the metadata, and the first
    BOOST_TEST(out.contains("lane-1.64"));
}

BOOST_AUTO_TEST_CASE(texts_of_every_kind_do_not_make_classes_without_end) {
    file_builder b({.sub_buffer_bytes = 16384, .sub_buffers = 64, .dictionary = 1 << 16});
    event_spec spec{1, "texts", {}};
    for (int i = 0; i < 12; ++i) {
        spec.fields.push_back({"t" + std::to_string(i), field_type::character});
    }
    const auto& event = b.event(std::move(spec));
    const auto lane = b.lane(b.process(1), 2);
    b.open(lane, 1);
    for (unsigned i = 0; i < 4096; ++i) {
        std::vector<value_spec> values;
        for (unsigned k = 0; k < 12; ++k) values.emplace_back((i >> k & 1) != 0 ? 0xFF : 'a');
        if (!b.record(lane, 10 + i, event, values)) {
            b.open(lane, 9 + i);
            b.record(lane, 10 + i, event, values);
        }
    }
    const files out = exported(b);
    const std::string& metadata = out.at("metadata");
    std::size_t classes = 0;
    for (std::size_t at = 0; (at = metadata.find("\"texts\"", at)) != std::string::npos; ++at) {
        ++classes;
    }
    BOOST_TEST(classes == 257U);
}

BOOST_AUTO_TEST_SUITE_END()
