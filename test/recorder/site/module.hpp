// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Events that the program and each of its libraries record alike, into recorders of any of them.
/// The code is compiled once for each module: everything that records is static.

#include <cstdint>
#include <string_view>

#include <trace_ring/recorder/site.hpp>
#include <trace_ring/recorder/spans.hpp>

namespace modules {

/// Who constructed the recorder, whose code records, and the number of the call.
using who = trace_ring::field<"recorder", std::uint32_t>;
using code = trace_ring::field<"code", std::uint32_t>;
using number = trace_ring::field<"n", std::uint64_t>;

/// An event that each module declares by the same struct, with another meaning.
#if !defined(MODULE_CODE)
#define MODULE_CODE 0
#endif
#if MODULE_CODE == 0
struct own : trace_ring::event<"own.program", who, code, number> {};
#elif MODULE_CODE % 2 == 0
struct own : trace_ring::event<"own.even", number, who, code> {};
#else
struct own
    : trace_ring::event<"own.odd", trace_ring::field<"text", std::string_view>, who, code, number> {
};
#endif
/// One that all of them share.
struct shared : trace_ring::event<"shared", who, code, number> {};
struct totalled : trace_ring::event<"counted", who, code, number> {
    static constexpr bool counted = true;
};
struct worked : trace_ring::span<"worked", who, code, number> {};

struct answered
    : trace_ring::span<"answered", number, trace_ring::results<trace_ring::field<"status", int>>> {
};

/// Records for each call: `own`, `shared`, `counted`, one reserved, and a span's two.
inline constexpr std::uint64_t records_a_call = 6;

/// Returns how many records were accepted.
[[maybe_unused]] static std::uint64_t record(trace_ring::recorder& to, std::uint32_t recorder,
                                             std::uint64_t n) {
    constexpr std::uint32_t here = MODULE_CODE;
    std::uint64_t accepted = 0;
#if MODULE_CODE == 0
    accepted += to.record<own>(recorder, here, n) ? 1 : 0;
#elif MODULE_CODE % 2 == 0
    accepted += to.record<own>(n, recorder, here) ? 1 : 0;
#else
    accepted += to.record<own>("a text", recorder, here, n) ? 1 : 0;
#endif
    {
        [[maybe_unused]] const auto span = to.scope<worked>(recorder, here, n);
        accepted += to.record<shared>(recorder, here, n) ? 1 : 0;
        accepted += to.record<totalled>(recorder, here, n) ? 1 : 0;
    }
    auto reserved = to.reserve<shared>(recorder, here, n);
    accepted += reserved.commit() ? 1 : 0;
    return accepted + 2;
}

/// A span with results, in any kind of recorder. Returns whether its end was accepted.
template <class Recorder>
[[maybe_unused]] static bool answer(Recorder& to, std::uint64_t n) {
    auto span = to.template scope<answered>(n);
    return span.end(static_cast<int>(n));
}

}  // namespace modules

extern "C" {
using module_record_type = std::uint64_t(trace_ring::recorder&, std::uint32_t, std::uint64_t);
using module_enable_type = std::size_t(trace_ring::recorder&, bool);
using module_pause_type = void(trace_ring::recorder&);
/// Of those that construct recorders.
using module_make_type = trace_ring::recorder*();
using module_unmake_type = void(trace_ring::recorder*);
/// The same span into `first`, and then into a separate recorder by processor. Returns how many
/// records of that are not as they should be, or were not accepted.
using module_answer_type = std::uint64_t(trace_ring::recorder& first, std::uint64_t count);
}
