// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The files that trace-reduce --das reads: cores of emulators, files that are no guest storage,
/// and headers at random; and what it refuses.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <examples/trace_reduce/core/core_builder.hpp>
#include <examples/trace_reduce/das_images.hpp>
#include <proof.hpp>
#include <reduce/scratch_file.hpp>
#include <trace_reduce/das/place.hpp>
#include <trace_reduce/das/table.hpp>

BOOST_AUTO_TEST_SUITE(das_files)

using namespace das_images;
using trace_ring_test::core_builder;
using trace_ring_test::repeats;
namespace reduce = trace_ring::reduce;
namespace das_storage = trace_reduce::das_storage;

BOOST_AUTO_TEST_CASE(a_core_of_an_emulator_is_read_at_the_address_of_guest_location_0) {
    image of;
    of.controls(0x0000FFE0, 0x00010000, 0x00010080).trace(6);
    for (const bool wide : {true, false}) {
        const std::uint64_t base = wide ? 0x7F3A40000000 : 0x40000000;
        const std::string place = wide ? "word84@7F3A40000000" : "word84@0x40000000";
        // Its storage is three segments of the core, one of which begins within an entry.
        core_builder core(wide);
        const std::span<const std::byte> bytes = of.bytes();
        core.memory(base, bytes.first(0x10010))
            .memory(base + 0x10010, bytes.subspan(0x10010, 0x1000))
            .memory(base + 0x11010, bytes.subspan(0x11010));
        const scratch_file file;
        core.save(file.path());
        const auto it = run_trace_reduce({file.path(), "--das", place});
        BOOST_TEST(it.status == 0);
        BOOST_TEST(it.errors == "");
        BOOST_TEST(it.output == show(of).output);
        const auto in_json = lines_of(
            run_trace_reduce({file.path(), "--das", place, "--format", "json", "--backward"})
                .output);
        BOOST_TEST_REQUIRE(in_json.size() == 5U);
        BOOST_TEST(in_json[1].find("\"offset\":" + std::to_string(core.offset_of(1) + 16) + ",") !=
                   std::string::npos);
    }
}

BOOST_AUTO_TEST_CASE(what_a_core_does_not_have_of_guest_storage_is_reported) {
    image of;
    of.controls(0x0000FFE0, 0x00010000, 0x00010080).trace(4);
    const std::uint64_t base = 0x7F3A40000000;
    const std::span<const std::byte> bytes = of.bytes();
    core_builder core;
    core.memory(base, bytes.first(0x10050)).memory(base + 0x10060, bytes.subspan(0x10060));
    const scratch_file file;
    core.save(file.path());
    const auto it = run_trace_reduce({file.path(), "--das", "word84@7F3A40000000"});
    BOOST_TEST(it.status == 2);
    const std::vector<std::string> expected{"010000 1", "010020 2", "010040 missing 1",
                                            "010060 4 current"};
    BOOST_TEST(parts_of(it.output) == expected, boost::test_tools::per_element());
    BOOST_TEST(has_line(it.output, "010040  -- 1 entry not in the core"));
    BOOST_TEST(it.errors.find(": 1 entry is not in the core, from X'010040' on\n") !=
               std::string::npos);

    const auto elsewhere = run_trace_reduce({file.path(), "--das", "word84@1000"});
    BOOST_TEST(elsewhere.status == 2);
    BOOST_TEST(
        elsewhere.errors.ends_with("the word at location 84 is not in the core: X'000054'\n"));
    const auto highest = run_trace_reduce({file.path(), "--das", "word84@FFFFFFFFFFFFFFFF"});
    BOOST_TEST(highest.status == 2);
    const auto no_base = run_trace_reduce({file.path(), "--das", "word84"});
    BOOST_TEST(no_base.status == 2);
    BOOST_TEST(no_base.errors.ends_with(
        "offset 0: an ELF file: of a core, --das needs @BASE, the address of guest location 0 in "
        "the process\n"));
    const auto no_core = show(of, {"--das", "word84@1000"});
    BOOST_TEST(no_core.status == 2);
    BOOST_TEST(no_core.errors ==
               "trace-reduce: FILE: offset 0: no ELF core dump: without @BASE it is read as guest "
               "storage (--das)\n");
}

BOOST_AUTO_TEST_CASE(a_core_without_the_memory_of_a_shared_file_names_the_file) {
    image of;
    of.controls(0x0000FFE0, 0x00010000, 0x00010080).trace(4);
    const std::uint64_t base = 0x7F3A40000000, end = base + of.bytes().size();
    const std::string words[] = {"word84@7F3A40000000", "20008@7F3A40000000"};
    const std::string missed[] = {"the word at location 84 is not in the core: X'000054'",
                                  "the trace-table-entry header is not in the core: X'020008'"};
    const auto run = [&](core_builder& core, std::size_t which) {
        const scratch_file file;
        core.save(file.path());
        const auto it = run_trace_reduce({file.path(), "--das", words[which]});
        BOOST_TEST(it.status == 2);
        BOOST_TEST(it.output == "");
        const auto begin = "trace-reduce: " + file.path() + ": offset ";
        BOOST_TEST_REQUIRE(it.errors.starts_with(begin), it.errors);
        return it.errors.substr(begin.size());
    };
    const std::string left_out =
        " is not in the core (bit 3 of coredump_filter leaves shared files out): ";
    for (std::size_t which = 0; which < 2; ++which) {
        // The kernel writes a program header without memory; gdb may write none.
        for (const bool segment : {true, false}) {
            core_builder core;
            if (segment) core.memory(base, {}, of.bytes().size());
            core.file(base - 0x1000, base, 0, "/lib/other").file(base, end, 0, "/dev/shm/guest");
            static_cast<void>(core.build());
            // The second entry of the note, after its count and page size.
            const auto note = std::to_string(core.files_at() + 8 + 8 + 24);
            BOOST_TEST(run(core, which) == note + ": " + missed[which] +
                                               ": the memory of /dev/shm/guest" + left_out +
                                               "run trace-reduce --das without @BASE on "
                                               "/dev/shm/guest\n");
        }
    }
    // Guest storage in two mappings of the file, and behind something else in it.
    core_builder two;
    two.memory(base, std::span<const std::byte>(of.bytes()).first(0x1000));
    two.file(base, base + 0x1000, 0, "/ram").file(base + 0x1000, end, 1, "/ram");
    BOOST_TEST(run(two, 1).ends_with("run trace-reduce --das without @BASE on /ram\n"));
    core_builder behind;
    behind.file(base, end, 16, "/ram");
    BOOST_TEST(run(behind, 0).ends_with(": the memory of /ram" + left_out +
                                        "it is at offset 65620 of that file\n"));
    // Memory without a name, and what was deleted, are other bits' matter.
    core_builder unnamed, deleted, cut;
    unnamed.memory(base, {}, of.bytes().size());
    static_cast<void>(unnamed.build());
    BOOST_TEST(run(unnamed, 0) ==
               std::to_string(unnamed.header_of(0)) + ": " + missed[0] +
                   ": the core was written without this memory (coredump_filter, or madvise with "
                   "MADV_DONTDUMP)\n");
    deleted.file(base, end, 0, "/memfd:ram (deleted)");
    BOOST_TEST(run(deleted, 0)
                   .ends_with(missed[0] + ": the core was written without this memory of "
                                          "/memfd:ram (deleted) (coredump_filter, or "
                                          "madvise with MADV_DONTDUMP)\n"));
    // A name in a core commands no terminal.
    core_builder hostile;
    hostile.file(base, end, 0, "/a\x1b[2J\n  b");
    BOOST_TEST(run(hostile, 0).find("the memory of /a\\x1b[2J\\n  b is not") != std::string::npos);

    // An entry that the core has in part, in the file from its second half on.
    core_builder part;
    part.memory(base, std::span<const std::byte>(of.bytes()).first(0x10050));
    part.memory(base + 0x20000, std::span<const std::byte>(of.bytes()).subspan(0x20000));
    part.file(base + 0x10050, base + 0x20000, 0, "/rest");
    const scratch_file file;
    part.save(file.path());
    const auto it = run_trace_reduce({file.path(), "--das", words[0]});
    BOOST_TEST(it.status == 2);
    const auto begin = "trace-reduce: " + file.path() + ": offset ";
    const auto note = std::to_string(part.files_at() + 8 + 8);
    BOOST_TEST(it.errors == begin + std::to_string(part.offset_of(0) + 0x10040) +
                                ": 1 entry is not in the core, from X'010040' on: the memory of "
                                "/rest" +
                                left_out + "it is at offset 0 of that file\n" + begin + note +
                                ": 1 entry is not in the core, from X'010060' on: the memory of "
                                "/rest" +
                                left_out + "it is at offset 16 of that file\n");
}

BOOST_AUTO_TEST_CASE(a_core_that_is_cut_short_is_not_explained_by_what_cores_leave_out) {
    image of;
    of.controls(0x0000FFE0, 0x00010000, 0x00010080).trace(4);
    const std::uint64_t base = 0x7F3A40000000;
    core_builder core;
    core.memory(base, of.bytes()).file(base, base + of.bytes().size(), 0, "/ram");
    const auto bytes = core.build();
    const scratch_file file;
    file.write({reinterpret_cast<const char*>(bytes.data()), core.offset_of(0) + 0x1000});
    const auto it = run_trace_reduce({file.path(), "--das", "word84@7F3A40000000"});
    BOOST_TEST(it.status == 2);
    BOOST_TEST(it.errors.find("the core is cut short") != std::string::npos, it.errors);
    BOOST_TEST(it.errors.ends_with("header is not in the core: X'020008'\n"), it.errors);
}

BOOST_AUTO_TEST_CASE(files_that_cannot_be_guest_storage_are_refused) {
    const scratch_file empty, trace, tiny;
    trace.write("traceRNG and more of it");
    tiny.write(std::string(80, '\0'));
    BOOST_TEST(run_trace_reduce({empty.path(), "--das", "word84"}).errors ==
               "trace-reduce: " + empty.path() + ": offset 0: the file is empty\n");
    const auto it = run_trace_reduce({trace.path(), "--das", "word84"});
    BOOST_TEST(it.status == 2);
    BOOST_TEST(it.errors == "trace-reduce: " + trace.path() +
                                ": offset 0: a trace file, and not guest storage (--das)\n");
    const auto short_one = run_trace_reduce({tiny.path(), "--das", "word84"});
    BOOST_TEST(short_one.status == 2);
    BOOST_TEST(short_one.errors ==
               "trace-reduce: " + tiny.path() +
                   ": offset 80: the word at location 84 is beyond the end of the file: "
                   "X'000054'\n");
    const auto header_alone = run_trace_reduce({tiny.path(), "--das", "40"});
    BOOST_TEST(has_line(header_alone.output, "word 84: not in the file"));
    BOOST_TEST(run_trace_reduce({tiny.path(), "--das", "48"}).errors ==
               "trace-reduce: " + tiny.path() +
                   ": offset 80: the trace-table-entry header is beyond the end of the file: "
                   "X'000050'\n");
    const auto folder = run_trace_reduce({"/tmp", "--das", "word84"});
    BOOST_TEST(folder.status != 0);
    BOOST_TEST(!folder.errors.empty());
}

BOOST_AUTO_TEST_CASE(a_place_is_a_header_or_word_84_and_all_its_numbers_are_hexadecimal) {
    das_storage::place at;
    for (const char* const text : {"20008", "0x20008", "0X20008", "X'20008'", "x'020008'"}) {
        at = {};
        BOOST_TEST(das_storage::parse_place(text, at) == "", text);
        BOOST_TEST((at.header == header));
        BOOST_TEST(!at.base);
    }
    BOOST_TEST(das_storage::parse_place("word84+X'C000'@x'7f3a40000000'", at) == "");
    BOOST_TEST(!at.header);
    BOOST_TEST(at.word == 0xC000U + 84);
    for (const char* const text : {"WORD84+c000@7F3a40000000", "Word84+C000@0X7f3A40000000"}) {
        at = {};
        BOOST_TEST(das_storage::parse_place(text, at) == "", text);
        BOOST_TEST(!at.header);
        BOOST_TEST(at.word == 0xC000U + 84);
        BOOST_TEST((at.base == 0x7F3A40000000));
    }
    BOOST_TEST((at.base == 0x7F3A40000000));
    for (const char* const text : {"X'20008", "20008'", "X''", "0x", "", "@1", "word84@@1", "-8",
                                   "WORD8", "WORD 84", "xord84"}) {
        const auto before = at;
        BOOST_TEST(das_storage::parse_place(text, at) != "", text);
        BOOST_TEST((at.word == before.word && at.header == before.header));
    }
}

BOOST_AUTO_TEST_CASE(
    places_that_are_none_and_options_that_make_no_sense_are_refused_with_the_reason) {
    image of;
    of.controls(0x0000FFE0, 0x00010000, 0x00010080).trace(1);
    const std::pair<const char*, const char*> places[] = {
        {"2000C", "not on a doubleword boundary"},
        {"1000000", "more than 24 bits"},
        {"header", "is none of: a header's address"},
        {"", "required"},
        {"word84+", "is none of"},
        {"word84+800", "is no prefix"},
        {"word84-3000", "is none of"},
        {"20008@", "is no hexadecimal address of a process"},
        {"20008@12345678901234567", "is no hexadecimal address of a process"},
        {"0x", "is none of"},
    };
    for (const auto& [place, reason] : places) {
        const auto it = show(of, {std::string("--das=") + place});
        BOOST_TEST(it.status == 1, place);
        BOOST_TEST(it.output == "");
        BOOST_TEST(it.errors.find(reason) != std::string::npos, it.errors);
    }
    const std::vector<std::string> refused[] = {
        {"--event", "x"},
        {"--thread", "1"},
        {"--where", "tid == 1"},
        {"--from", "25%"},
        {"--to", "#5"},
        {"--offset", "x=1"},
        {"--match", "a.b"},
        {"--type", "0x3F"},
        {"--code", "3"},
        {"--page", "5"},
        {"--stats"},
        {"--follow"},
        {"--browse"},
        {"--jobs", "1"},
        {"--time", "relative"},
        {"--time", "local"},
        {"--symbols"},
        {"--format", "chrome"},
        {"--format", "html"},
        {"--format", "perfetto"},
        {"--branches", "last"},
        {"--top", "5"},
    };
    for (const auto& each : refused) {
        std::vector<std::string> arguments{"--das", "word84"};
        arguments.insert(arguments.end(), each.begin(), each.end());
        const auto it = show(of, arguments);
        BOOST_TEST(it.status == 1, each.front());
        BOOST_TEST(it.output == "");
        BOOST_TEST(it.errors.find(each.front()) != std::string::npos, it.errors);
    }
    BOOST_TEST(show(of, {"--das", "word84", "--stats", "--top", "5"}).status == 1);
    BOOST_TEST(show(of).status == 0);
    BOOST_TEST(show(of, {"--das", "word84", "--colour", "never"}).status == 0);
}

namespace {

std::vector<das_storage::item> items_of(image& of, const das_storage::place& where, bool backward,
                                        std::size_t most) {
    const das_storage::guest_image file(reduce::source::from(of.bytes(), "it"), {});
    das_storage::table table(file, where);
    std::vector<das_storage::item> out;
    for (;;) {
        const auto one = table.next(backward);
        if (one.what == das_storage::item::kind::end || out.size() == most) return out;
        out.push_back(one);
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_table_of_any_size_traced_for_any_time_has_its_last_entries_in_order) {
    std::mt19937 random{370};
    const auto up_to = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    const unsigned rounds = repeats(400);
    for (unsigned round = 0; round < rounds; ++round) {
        image of;
        const std::uint32_t entries = 1 + up_to(20), first = 0x1000 + 32 * up_to(50);
        const std::uint32_t short_by = up_to(32);
        const unsigned traced = up_to(60);
        // Begins with the first entry, or with the second.
        const bool second = up_to(2) != 0 && entries > 1;
        of.controls(second ? first : first - 32, first, first + 32 * entries - short_by);
        of.trace(traced);
        std::vector<std::uint32_t> numbers;
        for (const auto& one : items_of(of, {header}, false, 100)) {
            if (one.what != das_storage::item::kind::entry) continue;
            numbers.push_back(record::load_big<std::uint32_t>(one.bytes.payload));
        }
        std::vector<std::uint32_t> expected;
        for (unsigned n = traced > entries ? traced - entries : 0; n < traced; ++n)
            expected.push_back(n + 1);
        BOOST_TEST_REQUIRE(numbers == expected, "round " << round);
    }
}

BOOST_AUTO_TEST_CASE(headers_at_random_are_read_to_an_end_and_nothing_but_their_storage) {
    std::mt19937 random{84};
    const auto up_to = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    const auto control = [&] {
        switch (up_to(4)) {
            case 0:
                return static_cast<std::uint32_t>(random());
            case 1:
                return 0 - up_to(200);
            case 2:
                return 32 * up_to(0x21100 / 32);
            default:
                return up_to(0x22000) | up_to(3) << 24;
        }
    };
    image of;
    for (std::size_t i = 0; i < of.bytes().size(); i += 1 + up_to(40))
        of.bytes()[i] = static_cast<std::byte>(up_to(256));
    unsigned whole = 0;
    const unsigned rounds = repeats(300);
    for (unsigned round = 0; round < rounds; ++round) {
        of.controls(control(), control(), control(), static_cast<std::uint32_t>(random()) | header);
        std::uint64_t entries[2] = {0, 0};
        for (const bool backward : {false, true}) {
            for (const auto& one : items_of(of, {header}, backward, 600'000)) {
                using kind = das_storage::item::kind;
                entries[backward ? 1 : 0] += one.entries;
                BOOST_TEST_REQUIRE(one.address % 32 == 0);
                const auto end = std::uint64_t{one.address} + std::uint64_t{32} * one.entries;
                BOOST_TEST_REQUIRE(end <= 0x01000000U);
                if (one.what == kind::missing) {
                    BOOST_TEST_REQUIRE(std::uint64_t{one.address} + 32 > of.bytes().size());
                } else {
                    BOOST_TEST_REQUIRE(end <= of.bytes().size());
                }
                if (one.what == kind::entry) {
                    BOOST_TEST_REQUIRE(
                        std::memcmp(one.bytes.payload, of.bytes().data() + one.address, 32) == 0);
                }
                if (one.current)
                    BOOST_TEST_REQUIRE(
                        one.address ==
                        (record::load_big<std::uint32_t>(of.bytes(), header) & 0x00FFFFE0U));
            }
        }
        BOOST_TEST_REQUIRE(entries[0] == entries[1]);
        BOOST_TEST_REQUIRE(entries[0] <= 524288U);
        whole += entries[0] > 1 && entries[0] < 524288U ? 1 : 0;
    }
    BOOST_TEST(whole > rounds / 10);
}

BOOST_AUTO_TEST_CASE(the_program_ends_with_0_or_2_at_headers_at_random) {
    std::mt19937 random{795};
    const unsigned rounds = repeats(40);
    for (unsigned round = 0; round < rounds; ++round) {
        image of;
        for (std::uint32_t i = 0; i < 3; ++i) {
            auto word = static_cast<std::uint32_t>(random());
            if (random() % 2 != 0) word &= 0x0003FFE0;
            of.put(header + 4 * i, word);
        }
        of.put(84, 0x80000000 | header);
        const char* const formats[] = {"text", "json", "csv"};
        std::vector<std::string> arguments{"--das", "word84", "--format", formats[round % 3]};
        if (round % 2 != 0) arguments.emplace_back("--backward");
        const auto it = show(of, arguments);
        BOOST_TEST((it.status == 0 || it.status == 2), it.errors);
        BOOST_TEST((it.status == 2) == !it.errors.empty());
        BOOST_TEST(!it.output.empty());
    }
}

BOOST_AUTO_TEST_SUITE_END()
