// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include <fuzz/images.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <span>
#include <thread>
#include <utility>

#include <fuzz/events.hpp>
#include <record/packing.hpp>
#include <reduce/everything.hpp>
#include <trace_ring/format/plan.hpp>
#include <trace_ring/recorder/recorder.hpp>

namespace trace_ring_test::fuzz {

namespace {

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
            auto first = recorder.scope<stretch>(i);
            const auto open = recorder.scope<stretch>(i);
            const auto ends_first = std::move(first);
            recorder.record<rare>(i);
        }
        if (i % 4 == 0) {
            const trace_ring::reference two[] = {
                {0x7f0000001000 + std::uint64_t{i} * 8, 0x401010, trace_ring::reference_kind::load,
                 8},
                {0x401020, 0x401020, trace_ring::reference_kind::block, 0}};
            const auto bytes = packed(two);
            recorder.record<trace_ring::packed_references>(
                i, i, i,
                std::span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()));
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
        file_builder::sizes sizes;
        sizes.sub_buffers = sub_buffers;
        const file_builder b = everything(sizes, records, records / 2);
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

const std::vector<image>& all_images() {
    static const std::vector<image> all = [] {
        std::vector<image> out = built_images();
        const auto& more = recorded_images();
        out.insert(out.end(), more.begin(), more.end());
        return out;
    }();
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
