// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Events of different meanings whose structs have the same name in C++, in two files of one
/// program: the linker takes them for one.

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <variant>

#include <trace_ring/reduce/trace_file.hpp>

#define FILES_EVENT "one"
#define FILES_FIELD "n"
#define FILES_COUNTED false
#include <recorder/site/same_name.hpp>

BOOST_AUTO_TEST_SUITE(structs_of_one_name)

namespace tr = trace_ring;

using kinds = std::tuple<trace_ring::recording, test::by_cpu>;

BOOST_AUTO_TEST_CASE_TEMPLATE(each_record_has_the_name_and_fields_of_its_file, Kind, kinds) {
    tr::basic_recorder<Kind> recorder({.size = 1 << 20});
    std::map<std::string, std::uint64_t> expected;
    constexpr std::uint64_t rounds = 100;
    for (std::uint64_t i = 0; i < rounds; ++i) {
        BOOST_TEST(record_same_names(recorder, i));
        BOOST_TEST(record_in_other_file(recorder, i));
        for (const char* const known : {"one n=", "other m="})
            expected[known + std::to_string(i)] = 2;
        for (const char* const known : {"one.span n=", "other.span m="})
            expected[known + std::to_string(i)] = 1;
        expected["total n=" + std::to_string(i)] = 2;
    }
    expected["end"] = 2 * rounds;
    std::map<std::string, std::uint64_t> found;
    const auto [data, size] = recorder.bytes();
    const auto trace = tr::reduce::trace_file::from({data, size});
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        const auto* const record = std::get_if<tr::reduce::record_view>(item);
        if (record == nullptr) {
            ++found["not a record"];
        } else if (record->ends()) {
            ++found["end"];
        } else {
            const auto& field = record->type().fields.at(0);
            ++found[std::string(record->name()) + ' ' + std::string(field.name) + '=' +
                    std::to_string(record->field(field.name).u64())];
        }
    }
    BOOST_TEST((found == expected));
    // One of the two events "total" has a total, the other has none.
    std::map<std::string, std::uint64_t> totals;
    for (const auto& type : trace.event_types()) {
        if (type.name == "total") ++totals[type.total.has_value() ? "with" : "without"];
    }
    BOOST_TEST((totals == std::map<std::string, std::uint64_t>{{"with", 1}, {"without", 1}}));
}

BOOST_AUTO_TEST_SUITE_END()
