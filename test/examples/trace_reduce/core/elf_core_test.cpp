// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Traces in core dumps: found where a program had them, read where they lie in the core, and named
/// where the core leaves them out. Cores of the test's own making; those that this kernel makes,
/// and gdb, are read in examples/trace_reduce/kinds_test.cpp.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <variant>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <examples/trace_reduce/core/core_builder.hpp>
#include <reduce/everything.hpp>
#include <reduce/file_builder.hpp>
#include <reduce/scratch_file.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include "trace_reduce/core/core_traces.hpp"
#include "trace_reduce/core/elf_core.hpp"

BOOST_AUTO_TEST_SUITE(core_dumps)

using namespace trace_ring_test;
namespace reduce = trace_ring::reduce;

namespace {

constexpr std::uint64_t base = 0x10000;

/// A trace of some records; `id` distinguishes it from others.
file_builder small_trace(std::uint64_t id, std::uint64_t records = 3) {
    file_builder b;
    b.put(offsetof(trace_ring::layout::file_header, id), id, 8);
    b.clock_reading(0, 0, 1'700'000'000'000'000'000);
    const auto process = b.process(1200);
    const auto& event = b.event({1, "tick", {{"n"}}});
    const auto lane = b.lane(process, 11, "first");
    b.open(lane, 100);
    for (std::uint64_t n = 0; n < records; ++n) b.record(lane, 100 + n, event, {n});
    return b;
}

/// A core, as a file: what is found in it.
struct core_file {
    explicit core_file(core_builder& b) { b.save(file.path()); }
    explicit core_file(const std::vector<std::uint8_t>& bytes) {
        file.write(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    }
    [[nodiscard]] trace_reduce::elf_core open() const {
        return trace_reduce::elf_core(reduce::source::open(file.path()));
    }
    scratch_file file;
};

std::vector<std::uint64_t> numbers(const trace_reduce::core_trace& trace,
                                   std::string_view event = "tick") {
    const auto file = reduce::trace_file::of_source(trace.bytes);
    std::vector<std::uint64_t> out;
    for (auto cursor = file.forward(); const auto* item = cursor.next();) {
        if (const auto* record = std::get_if<reduce::record_view>(item)) {
            if (record->name() == event) out.push_back(record->field("n").u64());
        }
    }
    return out;
}
std::vector<std::uint64_t> up_to(std::uint64_t count) {
    std::vector<std::uint64_t> out;
    for (std::uint64_t n = 0; n < count; ++n) out.push_back(n);
    return out;
}

std::string refusal(const std::vector<std::uint8_t>& bytes) {
    const core_file core(bytes);
    try {
        (void)core.open();
    } catch (const trace_ring::format_error& error) {
        return "offset " + std::to_string(error.offset()) + ": " + error.cause();
    }
    return "none";
}

void put(std::vector<std::uint8_t>& bytes, std::size_t at, std::uint64_t value, std::size_t size) {
    std::memcpy(&bytes.at(at), &value, size);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_trace_is_found_by_what_it_is_and_read_in_place_in_both_word_sizes) {
    for (const bool wide : {true, false}) {
        const auto trace = small_trace(1);
        const std::vector<std::byte> before(3 * 4096 + 100, std::byte{7});
        core_builder b(wide);
        b.memory(base, before).memory(0x7000'0000, trace.bytes());
        const core_file file(b);
        const auto core = file.open();
        BOOST_TEST(core.word_bytes() == (wide ? 8U : 4U));
        BOOST_TEST(core.damages().empty());
        const trace_reduce::core_traces found(core);
        BOOST_REQUIRE(found.traces().size() == 1U);
        const auto& one = found.traces()[0];
        BOOST_TEST(one.address == 0x7000'0000U);
        BOOST_TEST(one.offset == b.offset_of(1));
        BOOST_TEST(one.bytes.name() == file.file.path() + "@70000000");
        BOOST_TEST(one.bytes.size() == trace.bytes().size());
        BOOST_TEST(numbers(one) == up_to(3), boost::test_tools::per_element());
        BOOST_TEST(found.doubtful().empty());
        BOOST_TEST(found.left_out().empty());
        BOOST_TEST(found.searched() == before.size() + trace.bytes().size());
        BOOST_TEST(!reduce::trace_file::of_source(one.bytes).live());
    }
}

BOOST_AUTO_TEST_CASE(everything_in_a_trace_is_read_in_a_core_as_it_is_in_a_file) {
    const auto all = everything();
    core_builder b;
    b.memory(base, all.bytes());
    const core_file file(b);
    const trace_reduce::core_traces found(file.open());
    BOOST_REQUIRE(found.traces().size() == 1U);
    const auto in_core = reduce::trace_file::of_source(found.traces()[0].bytes);
    const auto alone = reduce::trace_file::from(all.bytes());
    BOOST_TEST(in_core.statistics().records == alone.statistics().records);
    BOOST_TEST(in_core.statistics().bytes == alone.statistics().bytes);
    BOOST_TEST((in_core.damages() == alone.damages()));
    auto forward = in_core.forward();
    auto other = alone.forward();
    for (const auto* item = other.next(); item != nullptr; item = other.next()) {
        const auto* same = forward.next();
        BOOST_REQUIRE(same != nullptr);
        BOOST_REQUIRE(same->index() == item->index());
        BOOST_TEST(reduce::time_of(*same) == reduce::time_of(*item));
    }
    BOOST_TEST(forward.next() == nullptr);
}

BOOST_AUTO_TEST_CASE(a_mapping_in_several_segments_and_in_the_midst_of_one_is_one_trace) {
    // As the kernel joins and splits them: behind other memory, and cut twice, out of order.
    const auto trace = small_trace(1, 5);
    const auto bytes = trace.bytes();
    std::vector<std::byte> memory(2 * 4096, std::byte{1});
    memory.insert(memory.end(), bytes.begin(), bytes.begin() + 3 * 4096);
    core_builder b;
    b.memory(base + memory.size() + 4096, bytes.subspan(4 * 4096))
        .memory(base, memory)
        .memory(base + memory.size(), bytes.subspan(3 * 4096, 4096));
    const core_file file(b);
    const trace_reduce::core_traces found(file.open());
    BOOST_REQUIRE(found.traces().size() == 1U);
    BOOST_TEST(found.traces()[0].address == base + 2 * 4096);
    BOOST_TEST(numbers(found.traces()[0]) == up_to(5), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(several_recorders_are_found_and_two_mappings_of_one_are_one) {
    const auto first = small_trace(1, 2);
    const auto second = small_trace(2, 4);
    std::vector<std::byte> joined(first.bytes().begin(), first.bytes().end());
    joined.insert(joined.end(), second.bytes().begin(), second.bytes().end());
    core_builder b;
    b.memory(base, joined).memory(0x7FFF'0000'0000, first.bytes());
    b.file(base, base + first.bytes().size(), 0, "/dev/shm/one.trace");
    const core_file file(b);
    const trace_reduce::core_traces found(file.open());
    BOOST_REQUIRE(found.traces().size() == 2U);
    BOOST_TEST(numbers(found.traces()[0]).size() == 2U);
    BOOST_TEST(numbers(found.traces()[1]).size() == 4U);
    BOOST_TEST(found.traces()[0].file == "/dev/shm/one.trace");
    BOOST_TEST(found.traces()[1].file == "");
}

BOOST_AUTO_TEST_CASE(the_first_page_mapped_once_more_below_the_trace_is_not_taken_for_it) {
    const auto trace = small_trace(1, 5);
    for (const std::size_t page : {4096U, 16384U, 65536U}) {
        core_builder b;
        std::vector<std::byte> first(page);
        std::copy_n(trace.bytes().begin(), 4096, first.begin());
        b.memory(base, first).memory(base + page, trace.bytes());
        const core_file file(b);
        const trace_reduce::core_traces found(file.open());
        BOOST_REQUIRE(found.traces().size() == 1U);
        BOOST_TEST(found.traces()[0].address == base + page);
        BOOST_TEST(numbers(found.traces()[0]) == up_to(5), boost::test_tools::per_element());
    }
}

BOOST_AUTO_TEST_CASE(what_only_begins_as_a_trace_is_doubted_and_not_believed) {
    auto trace = small_trace(1);
    trace.put(offsetof(trace_ring::layout::file_header, version), 99, 4);
    std::vector<std::byte> askew(4096 + trace.bytes().size());
    const auto sound = small_trace(2);
    std::copy(sound.bytes().begin(), sound.bytes().end(), askew.begin() + 8);  // at no page
    core_builder b;
    b.memory(base, trace.bytes()).memory(0x10'0000, askew);
    // Cut within its tables.
    b.memory(0x20'0000, sound.bytes().first(2 * 4096));
    const core_file file(b);
    const trace_reduce::core_traces found(file.open());
    BOOST_TEST(found.traces().empty());
    BOOST_REQUIRE(found.doubtful().size() == 2U);
    BOOST_TEST(found.doubtful()[0].offset == b.offset_of(0));
    BOOST_TEST(found.doubtful()[0].what == "a trace file of another version");
    BOOST_TEST(found.doubtful()[1].what == "the file ends before its tables do");
}

BOOST_AUTO_TEST_CASE(files_that_the_core_leaves_out_are_named_and_others_are_not) {
    const auto trace = small_trace(1);
    const std::vector<std::byte> page(4096);
    core_builder b;
    b.memory(0x10'0000, {}, 64 * 4096)         // not in the core
        .memory(0x20'0000, page, 4 * 4096, 5)  // a program, of which the first page is there
        .memory(0x30'0000, trace.bytes())      // a trace that is there
        .memory(0x50'0000, {}, 64 * 4096, 4);  // only read
    b.file(0x10'0000, 0x14'0000, 0, "/var/orders.trace")
        .file(0x20'0000, 0x20'4000, 0, "/usr/bin/orders")
        .file(0x30'0000, 0x34'0000, 0, "/memfd:trace (deleted)")
        .file(0x50'0000, 0x54'0000, 0, "/usr/lib/locale")
        .file(0x60'0000, 0x64'0000, 0, "/no/segment")
        .file(0x70'0000, 0x74'0000, 3, "/not/from/its/beginning");
    const core_file file(b);
    const auto core = file.open();
    BOOST_TEST(core.files().size() == 6U);
    BOOST_TEST(core.files()[5].file_offset == 3 * 4096U);
    const trace_reduce::core_traces found(core);
    BOOST_TEST(found.traces().size() == 1U);
    BOOST_REQUIRE(found.left_out().size() == 2U);
    BOOST_TEST(found.left_out()[0].path == "/var/orders.trace");
    BOOST_TEST(found.left_out()[1].path == "/no/segment");
    BOOST_TEST(found.left_out()[0].note == b.files_at() + 16);
}

BOOST_AUTO_TEST_CASE(a_count_of_headers_that_the_elf_header_cannot_say_is_found) {
    for (const bool wide : {true, false}) {
        const auto trace = small_trace(1);
        core_builder b(wide);
        b.many_headers();
        for (std::uint64_t i = 0; i < 700; ++i) b.memory(base + i * 8192, {}, 4096);
        b.memory(0x7000'0000, trace.bytes());
        const core_file file(b);
        const auto core = file.open();
        BOOST_TEST(core.segments().size() == 701U);
        BOOST_TEST(trace_reduce::core_traces(core).traces().size() == 1U);
        auto bytes = b.build();
        put(bytes, wide ? 40 : 32, 0, 4);  // no section header
        BOOST_TEST(
            refusal(bytes).ends_with("the count of program headers lies beyond the file's end"));
    }
}

BOOST_AUTO_TEST_CASE(what_is_no_core_that_can_be_read_is_refused_with_the_place) {
    const auto trace = small_trace(1);
    core_builder b;
    b.memory(base, trace.bytes());
    const auto sound = b.build();
    BOOST_TEST(refusal(sound) == "none");
    const auto with = [&](std::size_t at, std::uint64_t value, std::size_t size) {
        auto bytes = sound;
        put(bytes, at, value, size);
        return refusal(bytes);
    };
    BOOST_TEST(with(0, 0, 1) == "offset 0: not an ELF file");
    BOOST_TEST(with(4, 3, 1) == "offset 4: an unknown class of ELF");
    BOOST_TEST(with(5, 2, 1) == "offset 5: an ELF core of a big-endian machine, which is not read");
    BOOST_TEST(with(6, 2, 1) == "offset 5: an unknown kind of ELF");
    BOOST_TEST(with(16, 3, 2) ==
               "offset 16: an ELF file, but no core dump: a program, a library or an object");
    BOOST_TEST(with(32, sound.size(), 8) ==
               "offset 32: the program headers lie beyond the end of the file");
    BOOST_TEST(with(32, ~std::uint64_t{0}, 8) ==
               "offset 32: the program headers lie beyond the end of the file");
    BOOST_TEST(with(54, 57, 2) == "offset 54: an unknown size of program headers");
    BOOST_TEST(refusal({sound.begin(), sound.begin() + 20}) ==
               "offset 20: the ELF header is cut short");
    BOOST_TEST(refusal({}) == "offset 0: not an ELF file");
}

BOOST_AUTO_TEST_CASE(segments_that_contradict_each_other_are_named_and_left_out) {
    const auto trace = small_trace(1);
    const std::vector<std::byte> page(4096, std::byte{1});
    core_builder b;
    b.memory(0x10'0000, trace.bytes())
        .memory(0x10'1000, page)   // in the midst of the first
        .memory(0x20'0000, page)   // in the file where the first is
        .memory(0x30'0000, page)   // ends beyond the last address
        .memory(0x40'0000, page)   // more in the file than in memory
        .memory(0x50'0000, page);  // larger than there can be
    auto bytes = b.build();
    put(bytes, b.header_of(2) + 8, b.offset_of(0) + 8, 8);
    put(bytes, b.header_of(3) + 16, ~std::uint64_t{0} - 4094, 8);
    put(bytes, b.header_of(4) + 40, 100, 8);
    put(bytes, b.header_of(5) + 32, std::uint64_t{1} << 33, 8);
    put(bytes, b.header_of(5) + 40, std::uint64_t{1} << 33, 8);
    const core_file file(bytes);
    const auto core = file.open();
    std::vector<std::string> told;
    for (const auto& each : core.damages()) {
        told.push_back(std::to_string((each.offset - 64) / 56 - 1) + " " + each.what);
    }
    std::sort(told.begin(), told.end());
    const std::vector<std::string> expected{
        "1 memory that overlaps other memory",
        "2 memory that lies where other memory does in the file",
        "3 memory that goes on beyond the last address", "4 more bytes in the file than in memory",
        "5 the core is cut short: " + std::to_string((std::uint64_t{1} << 33) - 4096) +
            " bytes of memory are missing, the first of this segment"};
    BOOST_TEST(told == expected, boost::test_tools::per_element());
    BOOST_TEST(core.segments().size() == 4U);
    BOOST_TEST(core.find(0x50'0000)->bytes == std::uint64_t{1} << 33);
    BOOST_TEST(core.find(0x50'0000)->present == 4096U);
    BOOST_TEST(core.find(0x4F'FFFF) == nullptr);
    BOOST_TEST(trace_reduce::core_traces(core).traces().size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_core_that_is_cut_gives_what_is_there_and_names_the_rest) {
    const auto trace = small_trace(1);
    core_builder b;
    b.memory(base, trace.bytes());
    auto bytes = b.build();
    bytes.resize(bytes.size() - 600);  // into the last sub-buffers, which were never used
    const core_file file(bytes);
    const auto core = file.open();
    BOOST_REQUIRE(core.damages().size() == 1U);
    BOOST_TEST(core.damages()[0].what.find(": 600 bytes of memory are missing") !=
               std::string::npos);
    const trace_reduce::core_traces found(core);
    BOOST_REQUIRE(found.traces().size() == 1U);
    BOOST_TEST(numbers(found.traces()[0]) == up_to(3), boost::test_tools::per_element());
    BOOST_TEST(!reduce::trace_file::of_source(found.traces()[0].bytes).damages().empty());
}

BOOST_AUTO_TEST_CASE(notes_of_any_shape_are_read_within_their_bounds) {
    core_builder b;
    b.memory(base, std::vector<std::byte>(4096));
    b.file(0x1000, 0x2000, 0, "/one").file(0x5000, 0x6000, 1, "/two");
    const auto sound = b.build();
    const auto told = [&](std::size_t at, std::uint64_t value, std::size_t size) {
        auto bytes = sound;
        put(bytes, at, value, size);
        const core_file file(bytes);
        const auto core = file.open();
        return std::to_string(core.files().size()) + " " +
               (core.damages().empty() ? "" : core.damages()[0].what);
    };
    const std::size_t at = b.files_at();
    BOOST_TEST(told(at, 2, 8) == "2 ");
    BOOST_TEST(told(at, 1, 8) == "1 ");  // the name is then where the second's numbers are
    BOOST_TEST(told(at, ~std::uint64_t{0}, 8) ==
               "0 the note of mapped files is shorter than its count");
    BOOST_TEST(told(at + 8, ~std::uint64_t{0}, 8) == "2 ");  // one page is counted
    BOOST_TEST(told(at + 16, 0x3000, 8) == "1 an impossible mapping of a file");
    BOOST_TEST(told(at + 16 + 48 + 9, 'x', 1) == "1 a mapped file's name is missing");
    BOOST_TEST(told(at - 16, 4, 4) == "0 the note of mapped files is cut short");
    BOOST_TEST(told(at - 16, 0xFFFF'FFFF, 4) == "0 a note that goes on beyond the others' end");
    BOOST_TEST(told(at - 20, 0xFFFF'FFFF, 4) == "0 a note that goes on beyond the others' end");
    BOOST_TEST(told(at - 8, 'X', 1) == "0 ");  // another's note
}

BOOST_AUTO_TEST_SUITE_END()
