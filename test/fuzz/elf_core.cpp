// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Any bytes, taken for an ELF core dump: refused with an offset in it, or read, and the traces
/// that are found in it read in every way.

#include <algorithm>
#include <cstring>

#include <examples/trace_reduce/core/core_builder.hpp>
#include <fuzz/images.hpp>
#include <fuzz/targets.hpp>
#include <reduce/file_builder.hpp>
#include <reduce/read_all.hpp>
#include <trace_reduce/core/core_traces.hpp>
#include <trace_reduce/core/elf_core.hpp>
#include <trace_ring/format/layout.hpp>

namespace trace_ring_test::fuzz {

namespace of_elf_core {
namespace {

namespace reduce = trace_ring::reduce;

file_builder small_trace(std::uint64_t id) {
    file_builder b({.sub_buffers = 4});
    b.put(offsetof(trace_ring::layout::file_header, id), id, 8);
    b.clock_reading(0, 0, 1'700'000'000'000'000'000);
    const auto& event = b.event({1, "tick", {{"n"}}});
    const auto lane = b.lane(b.process(1200), 11, "first");
    b.open(lane, 100);
    for (std::uint64_t n = 0; n < 3; ++n) b.record(lane, 100 + n, event, {n});
    return b;
}

std::vector<buffer> seeds() {
    std::vector<buffer> out;
    const auto first = small_trace(1), second = small_trace(2);
    const std::vector<std::byte> page(4096, std::byte{1});
    for (const bool wide : {true, false}) {
        core_builder one(wide);
        out.push_back(one.memory(0x10000, first.bytes()).build());
        core_builder several(wide);
        several.memory(0x10000, page)
            .memory(0x20000, first.bytes().first(8192))
            .memory(0x22000, first.bytes().subspan(8192))
            .memory(0x80000, {}, 64 * 4096)
            .file(0x20000, 0x40000, 0, "/memfd:one (deleted)")
            .file(0x80000, 0xC0000, 0, "/var/left_out.trace");
        out.push_back(several.build());
        core_builder many(wide);
        many.many_headers().memory(0x10000, second.bytes()).memory(0x90000, page, 3 * 4096, 5);
        out.push_back(many.build());
    }
    buffer cut = out[0];
    cut.resize(cut.size() - 5000);
    out.push_back(cut);
    return out;
}

void check(const trace_reduce::elf_core& core, std::uint64_t size) {
    std::uint64_t end = 0, present = 0;
    for (const auto& s : core.segments()) {
        expect(s.bytes != 0 && s.address >= end, "segments ascend and do not overlap");
        expect(s.end() > s.address, "their ends can be counted");
        expect(s.present <= s.bytes, "no more in the core than there was");
        expect(s.present == 0 || (s.offset <= size && s.present <= size - s.offset),
               "what is in the core lies in it");
        expect(core.find(s.address) == &s && core.find(s.end() - 1) == &s, "it is found");
        end = s.end();
        present += s.present;
    }
    expect(present <= size, "no byte of the core is two bytes of memory");
    for (const auto& file : core.files()) {
        expect(file.begin < file.end, "a mapping is of something");
        expect(file.note < size && file.path.size() < size, "and named in the core");
    }
    for (const auto& damage : core.damages()) {
        expect(!damage.what.empty() && damage.offset <= size, "damage has a cause and a place");
    }
}

void run(input data) {
    const image words = image_of(data);
    const auto memory = std::as_bytes(std::span(words)).first(data.size());
    const std::uint64_t size = data.size();
    try {
        const trace_reduce::elf_core core(reduce::source::from(memory, "core"));
        check(core, size);
        const trace_reduce::core_traces found(core);
        std::uint64_t bytes = 0;
        for (const auto& each : found.traces()) {
            bytes += each.bytes.size();
            expect(bytes <= size, "traces do not overlap");
            expect(each.offset < size && each.bytes.name().starts_with("core@"), "they lie in it");
            try {
                auto trace = reduce::trace_file::of_source(each.bytes);
                (void)read_in_every_way(trace, each.bytes.size());
            } catch (const trace_ring::format_error& error) {
                expect(error.offset() <= each.bytes.size(), "the offset lies in the trace");
            }
        }
        expect(found.searched() <= size, "no byte is searched twice");
        for (const auto& each : found.doubtful()) {
            expect(each.offset < size && !each.what.empty(), "doubts have a place and a cause");
        }
    } catch (const trace_ring::format_error& error) {
        expect(error.offset() <= size && !error.cause().empty(), "the offset lies in the file");
    }
}

/// Words of the headers and of the notes, most of the time; else anything.
void mutate(buffer& what, dice& random) {
    for (std::size_t times = 1 + random.below(5); times != 0; --times) {
        if (what.size() < 4096) return;
        constexpr std::size_t widths[] = {1, 2, 4, 8};
        const std::size_t width = widths[random.below(4)];
        const std::size_t within = random.below(8) == 0 ? what.size() - 8 : 512;
        const std::size_t at = random.below(within) / width * width;
        constexpr std::uint64_t specials[] = {0,
                                              1,
                                              4,
                                              56,
                                              0xFFFF,
                                              4096,
                                              0x7FFFFFFF,
                                              0xFFFFF000,
                                              0xFFFFFFFF,
                                              std::uint64_t{1} << 32,
                                              ~std::uint64_t{0} - 4095,
                                              ~std::uint64_t{0}};
        std::uint64_t value = 0;
        std::memcpy(&value, &what[at], width);
        switch (random.below(6)) {
            case 0:
                value = specials[random.below(std::size(specials))];
                break;
            case 1:
                value += (random.below(9) - 4) * 4096;
                break;
            case 2:
                value ^= std::uint64_t{1} << random.below(64);
                break;
            case 3:
                std::memcpy(&value, &what[random.below(64) * 8], 8);
                break;
            case 4:
                value += random.below(33) - 16;
                break;
            default:
                if (random.below(8) == 0) what.resize(random.below(what.size() + 1));
                continue;
        }
        std::memcpy(&what[at], &value, width);
    }
}

}  // namespace
}  // namespace of_elf_core

const target elf_core_target{"elf_core", &of_elf_core::seeds, &of_elf_core::run,
                             &of_elf_core::mutate, 4000};

}  // namespace trace_ring_test::fuzz
