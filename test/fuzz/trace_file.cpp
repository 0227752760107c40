// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Any bytes, taken for a trace file and read in every way there is. It is refused with an offset
/// in it, or read to its end; what is read keeps the promises of reduce/read_all.hpp, and what is
/// made of it those of its format (exporting/formats.hpp).

#include <algorithm>
#include <cstring>

#include <examples/trace_reduce/exporting/formats.hpp>
#include <fuzz/images.hpp>
#include <fuzz/targets.hpp>
#include <reduce/read_all.hpp>
#include <trace_ring/format/sub_buffer.hpp>
#include <trace_ring/instrument/reference_packing.hpp>
#include <trace_ring/record/event/value_names.hpp>

namespace trace_ring_test::fuzz {

namespace of_trace_file {
namespace {

namespace reduce = trace_ring::reduce;
namespace layout = trace_ring::layout;

std::vector<buffer> seeds() {
    std::vector<buffer> out;
    for (const auto& each : built_images()) out.push_back(bytes_of(each));
    for (const auto& each : recorded_images()) out.push_back(bytes_of(each));
    buffer cut = out[0];
    cut.resize(cut.size() - 1000);
    out.push_back(cut);
    cut.resize(5000);
    out.push_back(cut);
    return out;
}

void run(input data) {
    const image words = image_of(data);
    const auto memory = std::as_bytes(std::span(words)).first(data.size());
    const std::uint64_t size = data.size();
    try {
        auto file =
            reduce::trace_file::from(memory, "memory", &trace_ring::instrument::reference_packing);
        const auto sum = read_in_every_way(file, size);
        check_formats(file);
        const auto lanes = reduce::merging::by_lane;
        const auto by_lane = read_all(file, file.forward({}, lanes), size, false);
        expect(by_lane.records == sum.records, "as many records by lane as by time");
        (void)read_all(file, file.backward({}, lanes), size, false);

        reduce::filter some;
        some.events = {"*o*", "fuzz.[a-n]*", "request"};
        (void)read_all(file, file.forward(some), size, false);
        (void)read_all(file, file.backward(some, lanes), size, false);
        some = {};
        for (const auto& lane : file.lanes()) {
            if (some.threads.size() < 2) some.threads.push_back(lane.thread);
            if (some.lanes.size() < 3) some.lanes.push_back(lane.number);
        }
        const auto chosen = read_all(file, file.forward(some), size, false);
        expect(chosen.records <= sum.records, "a filter adds nothing");
        expect(file.statistics(some).records == chosen.records, "and statistics count the same");

        auto follow = file.follow(some);
        std::uint64_t items = 0;
        while (follow.next() != nullptr) expect(++items < size, "following comes to an end");
        file.refresh();
        while (follow.next() != nullptr) expect(++items < size, "also after a refresh");
        follow.stop_following();
        while (follow.next() != nullptr) expect(++items < 2 * size, "also when it is stopped");
        (void)file.live();
    } catch (const trace_ring::format_error& error) {
        expect(error.offset() <= size, "the offset lies in the file");
        expect(!error.cause().empty(), "there is a cause");
    }
}

/// Words where words are that matter: at the beginnings of pages and of sub-buffers.
void mutate(buffer& what, dice& random) {
    for (std::size_t times = 1 + random.below(4); times != 0; --times) {
        if (what.size() < 4096 + 64) return;
        std::size_t at = 0;
        switch (random.below(8)) {
            case 0:
                at = random.below(208);
                break;
            case 1:
            case 2:
            case 3:
                at = random.below(what.size() / 512) * 512 + random.below(64);
                break;
            case 4:
                at = random.below(what.size());
                break;
            default:
                at = random.below(what.size() / 4096) * 4096 +
                     (random.below(4096) >> random.below(8));
                break;
        }
        constexpr std::size_t widths[] = {1, 2, 4, 8};
        const std::size_t width = widths[random.below(4)];
        at = std::min(at, what.size() - 8) / width * width;
        constexpr std::uint64_t specials[] = {0,
                                              1,
                                              2,
                                              3,
                                              8,
                                              64,
                                              512,
                                              4096,
                                              0x7FFF,
                                              0x8000,
                                              0xFFFF,
                                              0x7FFFFFFF,
                                              0x80000000,
                                              0xFFFFFFFF,
                                              std::uint64_t{1} << 32,
                                              std::uint64_t{1} << 61,
                                              ~std::uint64_t{0} >> 1,
                                              ~std::uint64_t{0},
                                              layout::file_magic,
                                              layout::type_magic,
                                              trace_ring::names_magic,
                                              trace_ring::sub_buffer_magic};
        std::uint64_t value = 0;
        std::memcpy(&value, &what[at], width);
        switch (random.below(6)) {
            case 0:
                value = specials[random.below(std::size(specials))];
                break;
            case 1:
                value += random.below(33) - 16;
                break;
            case 2:
                value ^= std::uint64_t{1} << random.below(64);
                break;
            case 3:
                value = random.any() >> random.below(64);
                break;
            case 4:
                std::memcpy(&value, &what[random.below(what.size() / 8 - 1) * 8], 8);
                break;
            default:
                if (random.below(16) == 0) what.resize(random.below(what.size() + 1));
                // A sub-buffer, or another page, in the place of another.
                if (what.size() > 8192) {
                    const std::size_t length = random.below(2) == 0 ? 512 : 64;
                    const std::size_t units = what.size() / length;
                    const std::size_t from = random.below(units) * length;
                    std::memmove(&what[random.below(units) * length], &what[from], length);
                }
                continue;
        }
        std::memcpy(&what[at], &value, width);
    }
}

}  // namespace
}  // namespace of_trace_file

const target trace_file_target{"trace_file", &of_trace_file::seeds, &of_trace_file::run,
                               &of_trace_file::mutate, 3000};

}  // namespace trace_ring_test::fuzz
