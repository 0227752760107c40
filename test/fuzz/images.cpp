// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include <fuzz/images.hpp>

#include <algorithm>
#include <cstring>
#include <thread>

#include <fuzz/events.hpp>
#include <reduce/file_builder.hpp>
#include <trace_ring/recorder/file/check_layout.hpp>
#include <trace_ring/recorder/recorder.hpp>

namespace trace_ring_test::fuzz {

namespace {

/// Something of everything.
file_builder everything(std::uint64_t sub_buffers, unsigned records) {
    file_builder::sizes sizes;
    sizes.sub_buffers = sub_buffers;
    file_builder b(sizes);
    b.clock_reading(0, 0, 1'700'000'000'000'000'000);
    b.clock_reading(1'000'000'000, 1'000'000'000, 1'700'000'001'000'000'000, 50);
    const auto process = b.process(1200);
    const auto& order = b.event({1, "order.sent", {{"id"}, {"price", field_type::f64}}});
    const auto& text = b.event({2,
                                "say",
                                {{"level", field_type::u8},
                                 {"text", field_type::character, field_form::variable},
                                 {"numbers", field_type::u32, field_form::variable},
                                 {"fixed", field_type::i16, field_form::array, 3}}});
    const auto& span = b.event({3, "request", {{"url", field_type::address}}, event_kind::span});
    const auto first = b.lane(process, 1234, "main");
    const auto second = b.lane(process, 1235, "worker");
    const auto nested = b.lane(process, 1234, "main", 1);
    b.open(first, 1000);
    b.open(second, 1001);
    b.open(nested, 1002);
    for (unsigned i = 0; i < records; ++i) {
        const std::uint64_t time = 2000 + i * 100 + (i > records / 2 ? std::uint64_t{1} << 33 : 0);
        if (!b.record(first, time, order, {static_cast<std::uint64_t>(i), 0.5})) {
            b.open(first, time - 1);
            b.record(first, time, order, {static_cast<std::uint64_t>(i), 0.5});
        }
        const std::vector<value_spec> words{7, "hello", std::vector<std::uint64_t>{1, 2, 3},
                                            std::vector<std::uint64_t>{1, 2, 0xFFFF}};
        if (i % 3 == 0 && !b.record(second, time + 1, text, words)) {
            b.open(second, time);
            b.record(second, time + 1, text, words);
        }
        if (i % 10 == 0) {
            b.record(nested, time + 2, span, {std::uint64_t{0x7F00} + i}, i % 20 == 0 ? 4 : 8);
        }
    }
    b.lost(first, 3, 1, 0);
    b.lane_counts(first, 3, 1, 0, 0);
    b.close(nested, std::uint64_t{1} << 34);
    return b;
}

image words_of(const void* from, std::size_t bytes) {
    image out((bytes + 7) / 8);
    std::memcpy(out.data(), from, bytes);
    return out;
}

/// What a recorder leaves that is still at it: lanes of two threads, handed on and nested, and, if
/// `rounds` go round, losses.
image recorded(trace_ring::full_mode full, unsigned rounds, bool quota) {
    trace_ring::recorder_options options;
    options.memory_file = true;
    options.size = 16 * 512;
    options.limit = 24 * 512;
    options.step = 512;
    options.sub_buffer_bytes = 512;
    options.full = full;
    options.block_for = std::chrono::nanoseconds{0};
    options.lanes = 8;
    options.processes = 4;
    options.programs = 1;
    options.totals = 2;
    options.dictionary_bytes = 4096;
    if (quota) options.quotas = {8 * 512};
    trace_ring::recorder recorder{options};
    for (unsigned i = 0; i < rounds; ++i) {
        recorder.record<number>(i);
        recorder.record<words>("some text", std::uint64_t{i});
        if (i % 8 == 0) {
            const auto open = recorder.scope<stretch>(i);
            recorder.record<rare>(i);
        }
        if (i % 16 == 0) {
            std::thread([&] { recorder.record<number>(i); }).join();
        }
    }
    const auto [base, used] = recorder.bytes();
    const image there = words_of(base, used);
    // At its limit, zeros behind what there is, so that nothing that is mapped is not there.
    image out(static_cast<std::size_t>(plan_of(there).file_limit / 8));
    std::copy(there.begin(), there.end(), out.begin());
    return out;
}

}  // namespace

std::vector<image> built_images() {
    std::vector<image> out;
    for (const auto& [sub_buffers, records] : {std::pair{16U, 60U}, {4U, 12U}, {12U, 120U}}) {
        const file_builder b = everything(sub_buffers, records);
        out.push_back(words_of(b.bytes().data(), b.bytes().size()));
    }
    return out;
}

const std::vector<image>& recorded_images() {
    using enum trace_ring::full_mode;
    static const std::vector<image> all{
        recorded(overwrite_oldest, 20, false),      recorded(overwrite_oldest, 300, false),
        recorded(overwrite_oldest, 200, true),      recorded(extend_then_overwrite, 20, false),
        recorded(extend_then_overwrite, 300, true), recorded(discard_newest, 40, false),
        recorded(extend_then_discard, 100, false),  recorded(block, 200, false),
    };
    return all;
}

buffer bytes_of(const image& from) {
    buffer out(from.size() * 8);
    std::memcpy(out.data(), from.data(), out.size());
    return out;
}

image image_of(input from) {
    image out((from.size() + 7) / 8);
    if (!from.empty()) std::memcpy(out.data(), from.data(), from.size());
    return out;
}

trace_ring::layout::plan plan_of(const image& of) {
    trace_ring::layout::plan out;
    const auto fault = trace_ring::layout::check_layout(of.data(), of.size() * 8, out);
    expect(!fault, "a sound image is sound");
    return out;
}

}  // namespace trace_ring_test::fuzz
