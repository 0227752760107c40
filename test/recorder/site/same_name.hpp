// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Two files of one program that each declare events by the same names of structs, and record them
/// in the same ways. FILES_EVENT is the name of the file's events, FILES_FIELD of their one field.

#include <cstdint>

#include <trace_ring/recorder/cpu/recorder.hpp>
#include <trace_ring/recorder/recorder.hpp>

#include <recorder/kinds.hpp>

struct same_name : trace_ring::event<FILES_EVENT, trace_ring::field<FILES_FIELD, std::uint64_t>> {};
struct same_span
    : trace_ring::span<FILES_EVENT ".span", trace_ring::field<FILES_FIELD, std::uint64_t>> {};
struct same_total : trace_ring::event<"total", trace_ring::field<"n", std::uint64_t>> {
    static constexpr bool counted = FILES_COUNTED;
};

template <class Recorder>
static bool record_same_names(Recorder& to, std::uint64_t n) {
    bool all = to.template record<same_name>(n);
    {
        const auto span = to.template scope<same_span>(n);
        auto reserved = to.template reserve<same_name>(n);
        all = reserved.commit() && all;
    }
    return to.template record<same_total>(n) && all;
}

bool record_in_other_file(trace_ring::recorder& to, std::uint64_t n);
bool record_in_other_file(trace_ring::basic_recorder<test::by_cpu>& to, std::uint64_t n);
