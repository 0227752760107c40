// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The writer of OTLP as a program uses it that sends requests while it reads. otlp.py compares
/// what is in them.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <otlp/writer.hpp>
#include <reduce/everything.hpp>
#include <reduce/file_builder.hpp>
#include <trace_ring/reduce/trace_file.hpp>

BOOST_AUTO_TEST_SUITE(otlp_writer)

using namespace trace_ring_test;
namespace reduce = trace_ring::reduce;
using otlp::signal;

namespace {

/// The fields of a message that have this number and a length.
std::vector<std::string> fields(std::string_view message, std::uint64_t number) {
    std::vector<std::string> found;
    std::size_t at = 0;
    const auto varint = [&] {
        std::uint64_t value = 0;
        for (unsigned shift = 0;; shift += 7) {
            BOOST_REQUIRE(at < message.size());
            const auto byte = static_cast<unsigned char>(message[at++]);
            value |= std::uint64_t{byte & 0x7FU} << shift;
            if (byte < 0x80) return value;
        }
    };
    while (at < message.size()) {
        const std::uint64_t key = varint();
        switch (key & 7) {
            case 0:
                (void)varint();
                break;
            case 1:
                at += 8;
                break;
            case 2: {
                const std::uint64_t length = varint();
                BOOST_REQUIRE(length <= message.size() - at);
                if (key >> 3 == number) found.emplace_back(message.substr(at, length));
                at += length;
                break;
            }
            default:
                BOOST_REQUIRE(key % 8 == 5U);
                at += 4;
        }
    }
    return found;
}
/// The spans or log records of a body, and its resources.
std::vector<std::string> items(std::string_view body) {
    std::vector<std::string> all;
    for (const auto& group : fields(body, 1)) {
        for (const auto& scope : fields(group, 2)) {
            for (auto& item : fields(scope, 2)) all.push_back(std::move(item));
        }
    }
    return all;
}

struct bodies {
    std::string traces{}, logs{};
    std::vector<otlp::request> requests{};

    void add(std::vector<otlp::request> more) {
        for (auto& each : more) {
            BOOST_TEST(items(each.body).size() == each.items);
            (each.of == signal::traces ? traces : logs) += each.body;
            requests.push_back(std::move(each));
        }
    }
};
bodies exported(const file_builder& b, otlp::writer::settings settings, bool flushed = false) {
    bodies out;
    const auto trace = reduce::trace_file::from(b.bytes());
    otlp::writer writer(std::move(settings));
    const auto from = writer.add(trace.about());
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        writer.append(from, *item);
        if (flushed) writer.flush();
        out.add(writer.take());
    }
    writer.end(from);
    writer.flush();
    out.add(writer.take());
    return out;
}

/// A span, in which there is a record.
file_builder one_span() {
    file_builder b;
    b.clock_reading(0, 0, 1'700'000'000'000'000'000);
    const auto& work = b.event({1, "work", {{"n"}}, event_kind::span});
    const auto& tick = b.event({2, "tick", {{"n"}}});
    const auto lane = b.lane(b.process(1200, "service"), 11, "main");
    b.open(lane, 900);
    b.record(lane, 1000, work, {1}, trace_ring::record_word::begin);
    b.record(lane, 1100, tick, {2});
    b.raw_record(lane, 1200, 1, {}, trace_ring::record_word::end);
    return b;
}

}  // namespace

BOOST_AUTO_TEST_CASE(ids_are_the_same_in_each_version) {
    // By otlp.py, which computes them independently.
    const otlp::file_id file{{0x1122334455667788, 0x99AABBCCDDEEFF00}};
    BOOST_TEST(file.text() == "11223344-5566-7788-99aa-bbccddeeff00");
    const reduce::span_place place{3, 41};
    BOOST_TEST(otlp::span_id_of(file, place) == 0x1484B6911AC97CB5);
    BOOST_TEST(
        (otlp::trace_id_of(file, place) == otlp::trace_id{0x31C6AC79911549D5, 0x2EEB63AA78056541}));
    BOOST_TEST(
        (otlp::trace_id_of_flow(7) == otlp::trace_id{0x435EB23196E47BDA, 0x8EA5269B74DEE2BC}));
}

BOOST_AUTO_TEST_CASE(requests_one_behind_the_other_are_one_request) {
    const auto b = everything();
    const auto whole = exported(b, {});
    const auto parts = exported(b, {.request_bytes = 200});
    BOOST_TEST(whole.requests.size() == 2U);
    BOOST_TEST(parts.requests.size() > 40U);
    BOOST_TEST(items(whole.traces) == items(parts.traces), boost::test_tools::per_element());
    BOOST_TEST(items(whole.logs) == items(parts.logs), boost::test_tools::per_element());
    for (const auto& each : parts.requests) {
        const auto all = items(each.body);
        std::size_t before_last = 0;
        for (std::size_t i = 0; i + 1 < all.size(); ++i) before_last += all[i].size();
        BOOST_TEST(before_last < 200U);
    }
}

BOOST_AUTO_TEST_CASE(a_span_stays_open_when_requests_are_flushed) {
    const auto whole = exported(one_span(), {});
    const auto flushed = exported(one_span(), {}, true);
    BOOST_TEST(items(whole.traces).size() == 1U);
    BOOST_TEST(items(whole.logs).size() == 1U);
    BOOST_TEST(items(whole.traces) == items(flushed.traces), boost::test_tools::per_element());
    BOOST_TEST(items(whole.logs) == items(flushed.logs), boost::test_tools::per_element());
    // The record in it knows it, before it has ended.
    const auto span = items(whole.traces)[0], tick = items(whole.logs)[0];
    BOOST_TEST(fields(span, 1) == fields(tick, 9), boost::test_tools::per_element());
    BOOST_TEST(fields(span, 2) == fields(tick, 10), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_machine_is_named_if_it_is_known) {
    const auto resource_of = [](const bodies& of) {
        return fields(fields(of.traces, 1).at(0), 1).at(0);
    };
    const std::string_view name = "\x0A\x09host.name\x12\x0A\x0A\x08machine\xFF";
    const std::string valid = "\x0A\x09host.name\x12\x0C\x0A\x0Amachine\xEF\xBF\xBD";
    BOOST_TEST(resource_of(exported(one_span(), {.host = "machine\xFF"})).find(valid) !=
               std::string::npos);
    BOOST_TEST(resource_of(exported(one_span(), {})).find(name.substr(0, 11)) == std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_file_that_is_removed_leaves_its_open_spans_as_log_records) {
    const auto b = one_span();
    const auto trace = reduce::trace_file::from(b.bytes());
    const auto other = reduce::trace_file::from(b.bytes());
    otlp::writer writer({});
    const auto from = writer.add(trace.about());
    const auto second = writer.add(other.about());
    auto cursor = trace.forward();
    writer.append(from, *cursor.next());
    auto in_second = other.forward();
    writer.append(second, *in_second.next());
    writer.remove(from);
    BOOST_TEST(writer.count_of(otlp::span_state::open) == 1U);
    while (const auto* item = in_second.next()) writer.append(second, *item);
    writer.remove(second);
    BOOST_TEST(writer.counts_in_words() == "1 open");
    writer.flush();
    bodies all;
    all.add(writer.take());
    BOOST_TEST(items(all.traces).size() == 1U);
    BOOST_TEST(items(all.logs).size() == 2U);
    BOOST_TEST(writer.take().empty());
}

BOOST_AUTO_TEST_CASE(records_without_a_time_were_observed_when_they_were_exported) {
    file_builder b;
    const auto& tick = b.event({1, "tick", {{"n"}}});
    const auto lane = b.lane(b.process(1), 2);
    b.open(lane, 10);
    b.record(lane, 20, tick, {1});
    const auto logs = items(exported(b, {.exported_ns = 0x0102030405060708}).logs);
    BOOST_REQUIRE(logs.size() == 1U);
    // time_unix_nano, then observed_time_unix_nano.
    const std::string wanted =
        std::string("\x09\0\0\0\0\0\0\0\0", 9) + "\x59\x08\x07\x06\x05\x04\x03\x02\x01";
    BOOST_TEST(logs[0].substr(0, wanted.size()) == wanted);
}

BOOST_AUTO_TEST_SUITE_END()
