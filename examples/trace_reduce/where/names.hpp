// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What a name in a condition on records means, unless it was written as the name of a field:
/// | name | what it is of a record |
/// |---|---|
/// | time, latest | ns since the trace began, and the upper bound if the time is an interval |
/// | ticks | the trace clock's own count |
/// | event | the name of its event |
/// | thread | the thread's id or name, by what it is compared with |
/// | process | the process's id or name, likewise |
/// | tid, pid | the ids |
/// | lane, position | the lane's number, and the record's place in it, from 0 |
/// | any other | the event's field of that name; EVENT.FIELD is the field of that event alone |
/// @code
///   const bool by_time = where::meaning(where::expression::of_name("time")) == where::named::time;
/// @endcode

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <trace_ring/point/expression.hpp>  // IWYU pragma: export
#include <trace_ring/reduce/tables.hpp>

namespace trace_reduce::where {

using namespace trace_ring;
using namespace trace_ring::reduce;
namespace reduce = trace_ring::reduce;

using point::comparison;
using point::expression;
using point::form;
using point::mirrored;
using point::mistake;
using point::number;
using point::opposite;

/// The meanings of a name.
enum class named : std::uint8_t {
    time,
    latest,
    ticks,
    event,
    thread,
    process,
    tid,
    pid,
    lane,
    position,
    field,
};

inline constexpr std::array<std::string_view, 10> known_names{
    "time", "latest", "ticks", "event", "thread", "process", "tid", "pid", "lane", "position"};

[[nodiscard]] inline named meaning(const expression& of) noexcept {
    if (of.what != form::name) return named::field;
    for (std::size_t i = 0; i < known_names.size(); ++i) {
        if (known_names[i] == of.word) return static_cast<named>(i);
    }
    return named::field;
}

}  // namespace trace_reduce::where
