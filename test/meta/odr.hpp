// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What the two translation units of the odr test share.

#include <cstdint>

#include <trace_ring/control.hpp>
#include <trace_ring/cptrap.hpp>
#include <trace_ring/das.hpp>
#include <trace_ring/draining.hpp>
#include <trace_ring/per_cpu.hpp>
#include <trace_ring/rings.hpp>
#include <trace_ring/snapshots.hpp>
#include <trace_ring/trace_ring.hpp>
#if defined(__cpp_exceptions)
#include <trace_ring/exporting.hpp>
#include <trace_ring/reading.hpp>
#endif

namespace odr {

struct seen : trace_ring::event<"odr.seen", trace_ring::field<"number", std::uint64_t>> {};

/// Objects of the library, as the other translation unit sees them.
struct view {
    const void* event;
    const void* threads;
    const void* recorders;
    friend bool operator==(const view&, const view&) = default;
};

/// Each translation unit has its own: of an inline function there would be one.
[[maybe_unused]] static view look_from_here() noexcept {
    return {&trace_ring::impl::event_of<seen>::state, &trace_ring::impl::thread_lanes,
            &trace_ring::impl::the_registry};
}

struct by_cpu : trace_ring::policies<trace_ring::claim::per_cpu> {};
/// The linker keeps one copy of it, and of the description of the sequence in it.
[[gnu::noinline]] inline bool record_by_cpu(trace_ring::basic_recorder<by_cpu>& recorder,
                                            std::uint64_t number) noexcept {
    return recorder.record<seen>(number);
}
bool record_by_cpu_from_other(trace_ring::basic_recorder<by_cpu>& recorder,
                              std::uint64_t number) noexcept;

[[nodiscard]] view look_from_other() noexcept;
bool record_from_other(trace_ring::recorder& recorder, std::uint64_t number) noexcept;

}  // namespace odr
