// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What clauses ask for that costs more than to look at the thread that fires.
/// @code
///   if (asks_elapsed(session, point.clauses)) note_entries(point);
/// @endcode

#include <algorithm>
#include <cstdint>
#include <span>

#include <trace_ring/point/clauses.hpp>

namespace trace_clauses {

/// Whether code asks how long a call took.
[[nodiscard]] inline bool asks_elapsed(trace_ring::point::code of) {
    namespace point = trace_ring::point;
    return std::any_of(of.begin(), of.end(), [](const point::instruction& one) {
        return one.code == point::op::context &&
               one.what == static_cast<std::uint8_t>(point::context_word::elapsed);
    });
}
/// Whether code stores return addresses.
[[nodiscard]] inline bool asks_stack(trace_ring::point::code of) {
    namespace point = trace_ring::point;
    return std::any_of(of.begin(), of.end(), [](const point::instruction& one) {
        return one.code == point::op::store_stack;
    });
}
/// Whether one of these clauses asks how long a call took: its entry must be seen, too. O(n) in
/// their code.
[[nodiscard]] inline bool asks_elapsed(const trace_ring::point::clauses& session,
                                       std::span<const std::uint32_t> clauses) {
    using trace_ring::record::program_mode;
    for (const std::uint32_t each : clauses) {
        for (const program_mode mode : {program_mode::lp64, program_mode::ilp32}) {
            const auto& of = session.stream_of(each, mode);
            if (asks_elapsed(session.at(of.predicate)) || asks_elapsed(session.at(of.action)))
                return true;
        }
    }
    return false;
}

}  // namespace trace_clauses
