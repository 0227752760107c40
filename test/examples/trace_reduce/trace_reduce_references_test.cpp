// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// trace-reduce on a trace of address references: by kind, address and function, in each format.

#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <examples/trace_reduce/exporting/csv_reader.hpp>
#include <examples/trace_reduce/trace_reduce_run.hpp>
#include <exporter/json_check.hpp>
#include <record/packing.hpp>
#include <recorder/scratch.hpp>
#include <trace_ring/instrument/modules.hpp>
#include <trace_ring/recorder/recorder.hpp>

// The library whose names are searched in the trace: it has known_functions.cpp, a library of these
// alone, as reading the names of a large program takes its time.
extern "C" {
int known_function(int n);
int known_other(int n);
}

BOOST_AUTO_TEST_SUITE(trace_reduce_references)

using namespace trace_ring_test;
using trace_ring::reference;
using trace_ring::reference_kind;

namespace {

struct note : trace_ring::event<"note", trace_ring::field<"n", std::uint64_t>> {};

struct result : reduced {
    [[nodiscard]] std::size_t lines() const {
        return static_cast<std::size_t>(std::count(output.begin(), output.end(), '\n'));
    }
    [[nodiscard]] std::size_t count(const std::string& part) const {
        std::size_t found = 0;
        for (std::size_t at = output.find(part); at != std::string::npos;
             at = output.find(part, at + 1)) {
            ++found;
        }
        return found;
    }
};

result reduce(const std::vector<std::string>& arguments) {
    return {run_trace_reduce(arguments)};
}

[[nodiscard]] std::uint64_t place_of(int (*function)(int)) {
    return reinterpret_cast<std::uint64_t>(function);
}

constexpr std::uint64_t data = 0x7f1200000000;

/// In the first function 40 blocks, 40 loads of 8 bytes in a row and a store each; in the other 10
/// calls and 10 loads of one place. There is a note between the two.
struct traced {
    test::folder folder;
    std::string path = folder / "a.trace";

    explicit traced(bool modules = true) {
        trace_ring::recorder recorder{{.file = path, .size = 1 << 20}};
        if (modules) record_module(recorder);
        const std::uint64_t site = place_of(&known_function) + 2;
        const std::uint64_t other = place_of(&known_other) + 2;
        std::vector<reference> all;
        for (std::uint64_t i = 0; i < 40; ++i) {
            all.push_back({site, site, reference_kind::block, 0});
            all.push_back({data + i * 8, site, reference_kind::load, 8});
            all.push_back({data + 0x1000, site, reference_kind::store, 4});
        }
        record(recorder, all);
        recorder.record<note>(1U);
        all.clear();
        for (int i = 0; i < 10; ++i) {
            all.push_back({site, other, reference_kind::enter, 0});
            all.push_back({data + 0x2000, other, reference_kind::load, 1});
            all.push_back({site, other, reference_kind::exit, 0});
        }
        record(recorder, all);
    }
    static void record(trace_ring::recorder& to, const std::vector<reference>& all) {
        const auto bytes = packed(all);
        to.record<trace_ring::packed_references>(
            static_cast<std::uint32_t>(::gettid()), std::uint32_t{1}, std::uint32_t{0},
            std::span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()));
    }
    static void record_module(trace_ring::recorder& to) {
        ::dl_iterate_phdr(
            [](dl_phdr_info* info, std::size_t, void* into) {
                if (std::string_view(info->dlpi_name).find("known_functions") !=
                    std::string_view::npos) {
                    trace_ring::instrument::impl::record_module(
                        *static_cast<trace_ring::recorder*>(into), *info);
                }
                return 0;
            },
            &to);
    }
};

}  // namespace

BOOST_AUTO_TEST_CASE(each_reference_is_a_line_forward_and_backward) {
    const traced trace;
    const auto forward = reduce({trace.path});
    BOOST_TEST(forward.status == 0);
    BOOST_TEST(forward.errors == "");
    BOOST_TEST(forward.lines() == 1 + 120 + 1 + 30U);
    BOOST_TEST(forward.count(" block site=0x") == 40U);
    BOOST_TEST(forward.count(" load address=0x7f12000") == 50U);
    BOOST_TEST(forward.count(" load address=0x7f1200000008 size=8 site=0x") == 1U);
    BOOST_TEST(forward.count(" store address=0x7f1200001000 size=4 site=0x") == 40U);
    BOOST_TEST(forward.count(" enter site=0x") == 10U);
    BOOST_TEST(forward.count(" exit site=0x") == 10U);
    BOOST_TEST(forward.output.find(" store ") < forward.output.find(" note n=1"));
    BOOST_TEST(forward.output.find(" note n=1") < forward.output.find(" enter "));

    const auto backward = reduce({trace.path, "--backward", "--limit", "31"});
    BOOST_TEST(backward.lines() == 31U);
    BOOST_TEST(backward.count(" exit ") == 10U);
    BOOST_TEST(backward.output.find(" exit ") < backward.output.find(" load "));
    BOOST_TEST(backward.count(" note n=1") == 1U);
    const auto all = reduce({trace.path, "--backward"});
    BOOST_TEST(all.lines() == forward.lines());
}

BOOST_AUTO_TEST_CASE(they_are_chosen_by_kind_address_and_position) {
    const traced trace;
    const auto chosen = [&](std::vector<std::string> how) {
        how.insert(how.begin(), trace.path);
        std::vector<std::string> alone = how;
        alone.insert(alone.end(), {"--jobs", "1"});
        const auto found = reduce(how);
        BOOST_TEST(found.errors == "");
        BOOST_TEST(reduce(alone).output == found.output);
        how.emplace_back("--backward");
        BOOST_TEST(reduce(how).lines() == found.lines());
        return found;
    };
    BOOST_TEST(chosen({"--event", "store"}).lines() == 40U);
    BOOST_TEST(chosen({"--event", "load", "--event", "note"}).lines() == 51U);
    const auto few = chosen({"--where", "address >= 0x7f1200000000 and address < 0x7f1200000020"});
    BOOST_TEST(few.lines() == 4U);
    BOOST_TEST(few.count(" load ") == 4U);
    BOOST_TEST(chosen({"--where", "address in {0x7f1200001000..0x7f1200002000}"}).lines() == 50U);
    BOOST_TEST(chosen({"--where", "size == 1 and event == \"load\""}).lines() == 10U);
    BOOST_TEST(chosen({"--where", "address < 0 or n == 1"}).lines() == 1U);
    BOOST_TEST(chosen({"--from", "1:3", "--where", "not (n == 1)"}).lines() == 0U);
    BOOST_TEST(chosen({"--from", "1:3"}).lines() == 30U);
    BOOST_TEST(chosen({"--from", "1:1", "--to", "1:3"}).lines() == 121U);
    const auto raw = chosen({"--event", "references"});
    BOOST_TEST(raw.lines() == 2U);
    BOOST_TEST(raw.count(" packed=[") == 2U);
}

BOOST_AUTO_TEST_CASE(other_formats_and_numbers_have_them) {
    const traced trace;
    const auto json = reduce({trace.path, "--format", "json", "--event", "load"});
    BOOST_TEST(json.lines() == 50U);
    BOOST_TEST(json.count("\"event\":\"load\",\"fields\":{\"address\":") == 50U);
    for (std::size_t at = 0; at < json.output.size();) {
        const std::size_t end = json.output.find('\n', at);
        BOOST_TEST(json_check::valid(json.output.substr(at, end + 1 - at)));
        at = end + 1;
    }
    const auto csv = reduce({trace.path, "--format", "csv"});
    BOOST_TEST(csv.lines() == 153U);
    BOOST_TEST(csv.count("\"load.address\",\"load.size\",\"load.site\"") == 1U);
    const auto numbers = reduce({trace.path, "--stats"});
    BOOST_TEST(numbers.status == 0);
    for (const char* const line : {"load", "store", "block", "enter", "exit", "note"}) {
        BOOST_TEST(numbers.count(line) >= 1U, line);
    }
    const auto counts = reduce({trace.path, "--stats", "--format", "json"});
    BOOST_TEST(counts.count("\"records\":152") >= 1U, counts.output);
    const auto sizes = reduce({trace.path, "--stats", "--by", "size"});
    BOOST_TEST(sizes.status == 0);
    for (const char* const format : {"chrome", "perfetto", "html"}) {
        BOOST_TEST(reduce({trace.path, "--format", format}).status == 0);
    }
}

BOOST_AUTO_TEST_CASE(they_are_chosen_by_the_function_that_made_them) {
    const traced trace;
    const auto chosen = [&](const std::string& condition) {
        const auto found = reduce({trace.path, "--where", condition});
        BOOST_TEST(found.errors == "");
        BOOST_TEST(reduce({trace.path, "--backward", "--where", condition}).lines() ==
                   found.lines());
        return found.lines();
    };
#if defined(TRACE_REDUCE_SYMBOLS)
    BOOST_TEST(chosen("function == \"known_function\"") == 120U);
    BOOST_TEST(chosen("\"known_other\" == function") == 30U);
    BOOST_TEST(chosen("function != \"known_other\"") == 120U);
    BOOST_TEST(chosen("function ~ \"known_*\"") == 150U);
    BOOST_TEST(chosen("function in {\"known_other\", \"known_function\"}") == 150U);
    BOOST_TEST(chosen("not (function in {\"known_other\"}) and event == \"store\"") == 40U);
    BOOST_TEST(chosen("function !~ \"*_other\" and address < 0x7f1200000020") == 4U);
    const auto refused = [&](const std::string& condition) {
        const auto found = reduce({trace.path, "--where", condition});
        BOOST_TEST(found.status == 1);
        BOOST_TEST(found.output == "");
        return found.errors;
    };
    BOOST_TEST(refused("size == 4 and function == \"known_othr\"")
                   .find("no function is called 'known_othr'; did you mean 'known_other'?") !=
               std::string::npos);
    BOOST_TEST(refused("function ~ \"no*such\"").find("no function has such a name") !=
               std::string::npos);
    BOOST_TEST(refused("function == 4").find("'function' is compared with names") !=
               std::string::npos);
    BOOST_TEST(refused("function < \"known_other\"").find("'function' is compared with names") !=
               std::string::npos);
    const traced without(false);
    BOOST_TEST(reduce({without.path, "--where", "function == \"known_other\""})
                   .errors.find("no functions are known") != std::string::npos);
#else
    BOOST_TEST(reduce({trace.path, "--where", "function == \"known_other\""})
                   .errors.find("without elfutils") != std::string::npos);
#endif
}

#if defined(TRACE_REDUCE_SYMBOLS)
BOOST_AUTO_TEST_CASE(text_names_the_places_in_code) {
    const traced trace;
    const auto found = reduce({trace.path, "--symbols"});
    BOOST_TEST(found.status == 0);
    BOOST_TEST(found.errors == "");
    BOOST_TEST(found.lines() == 152U);
    BOOST_TEST(found.count(" <known_function+0x2") == 120 + 20U);  // and as the place of calls
    BOOST_TEST(found.count(" <known_other+0x2") == 30U);
    BOOST_TEST(found.count("known_functions.cpp:") == 170U);
    BOOST_TEST(reduce({trace.path, "--symbols", "--format", "json"}).status == 1);
}
#endif

BOOST_AUTO_TEST_SUITE_END()
