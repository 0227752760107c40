// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The sizes of a new trace, which follow from the options. An impossible option is refused here.

#include <bit>
#include <cerrno>
#include <cinttypes>
#include <cstddef>
#include <cstdint>

#include <trace_ring/bounds.hpp>
#include <trace_ring/format/lay_out.hpp>
#include <trace_ring/format/sub_buffer.hpp>
#include <trace_ring/format/words.hpp>
#include <trace_ring/recorder/file/options.hpp>
#include <trace_ring/setup_error.hpp>

namespace trace_ring::inline v1::impl {

/// The plan that follows from the options. Throws setup_error that names the option.
[[nodiscard, gnu::cold]] inline layout::plan plan_for(const recorder_options& options) {
    const auto refuse_if = [](bool is_wrong, const char* option, const char* rule) {
        if (is_wrong) fail_setup(option, rule, EINVAL);
    };
    constexpr std::uint64_t most_bytes = std::uint64_t{1} << 47;
    refuse_if(options.sub_buffer_bytes != 0 && !valid_sub_buffer_bytes(options.sub_buffer_bytes),
              "recorder_options::sub_buffer_bytes",
              "must be 0 or a power of two from 512 to 32768");
    refuse_if(options.totals > layout::max_totals, "recorder_options::totals",
              "must be at most 64");
    refuse_if(options.processes == 0 || options.processes > 65536, "recorder_options::processes",
              "must be from 1 to 65536");
    refuse_if(options.programs == 0 || options.programs > options.processes,
              "recorder_options::programs", "must be from 1 to `processes`");
    refuse_if(options.lanes > 65536, "recorder_options::lanes", "must be at most 65536");
    refuse_if(options.dictionary_bytes < 4096 || options.dictionary_bytes > (1ULL << 30),
              "recorder_options::dictionary_bytes", "must be from 4096 to 1 GiB");
    refuse_if(options.full > full_mode::extend_then_overwrite, "recorder_options::full",
              "must be a full_mode");
    refuse_if((options.file_mode & 0600U) != 0600U || options.file_mode > 0777U,
              "recorder_options::file_mode", "must be from 0600 to 0777, with 0600 in it");
    refuse_if(options.rotations == 0 || options.rotations > 1000, "recorder_options::rotations",
              "must be from 1 to 1000");
    refuse_if(options.keep_for.count() < 0, "recorder_options::keep_for", "must not be negative");
    refuse_if(options.keep_for.count() > 0 && options.full == full_mode::overwrite_oldest,
              "recorder_options::keep_for",
              "must not be set where the oldest is overwritten at once");
    const bool extends = options.full == full_mode::extend_then_discard ||
                         options.full == full_mode::extend_then_overwrite;
    refuse_if(extends && options.step == 0, "recorder_options::step", "must not be zero");
    refuse_if(extends && options.limit != 0 && options.limit < options.size,
              "recorder_options::limit", "must not be less than `size`");
    refuse_if(options.size > most_bytes, "recorder_options::size", "must be at most 128 TiB");
    std::uint64_t most = options.size;
    if (extends) most = options.limit != 0 ? options.limit : options.size * 16;
    layout::plan plan;
    const std::uint64_t bytes =
        options.sub_buffer_bytes != 0
            ? options.sub_buffer_bytes
            : clamped<std::uint64_t>(std::bit_floor(most / 32768), default_sub_buffer_bytes,
                                     max_sub_buffer_bytes);
    if (options.size < 8 * bytes) {
        fail_setup("recorder_options::size",
                   setup_fault(EINVAL, "must be at least eight sub-buffers: %" PRIu64 " bytes",
                               8 * bytes));
    }
    refuse_if(most > most_bytes, "recorder_options::limit", "must be at most 128 TiB");
    plan.sub_buffer_bytes = static_cast<std::uint32_t>(bytes);
    plan.sub_buffer_limit = (most + bytes - 1) / bytes;
    static_assert(quota_list::most == layout::max_rings - 1);
    refuse_if(options.quotas.size() > quota_list::most, "recorder_options::quotas",
              "must be at most three");
    std::uint64_t rest = options.size / bytes;
    for (std::size_t i = 0; i < options.quotas.size(); ++i) {
        const std::uint64_t quota = options.quotas[i];
        refuse_if(quota < 8 * bytes || quota > options.size, "recorder_options::quotas",
                  "must be at least eight sub-buffers each, and within `size`");
        rest -= least(rest, (quota + bytes - 1) / bytes);
    }
    refuse_if(rest < 8, "recorder_options::quotas",
              "must leave eight sub-buffers of `size` to other events");
    plan.clock_count = 64;
    plan.process_count = options.processes;
    plan.gate_count = options.programs;
    plan.lane_count =
        options.lanes != 0 ? options.lanes : layout::default_lanes(plan.sub_buffer_limit);
    plan.totals_per_lane = options.totals;
    plan.dictionary_bytes = options.dictionary_bytes;
    return layout::lay_out(plan);
}

}  // namespace trace_ring::inline v1::impl
