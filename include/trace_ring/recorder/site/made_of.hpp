// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What the compiler reports where a recorder is constructed from anything but its options.

#include <type_traits>

namespace trace_ring::inline v1::impl {

/// Anything that a recorder is not made of. Not nothing: `{}` would be a recorder and be options.
template <class Recorder, class Options, class... Given>
concept no_options = sizeof...(Given) > 1 ||
                     (sizeof...(Given) == 1 &&
                      !((std::is_convertible_v<Given, const Options&> || ...) ||
                        (std::is_convertible_v<Given, const Recorder&> || ...)));
/// Says so where a recorder is made of it.
template <class... Given>
struct made_of {
    static_assert(sizeof...(Given) != sizeof...(Given),
                  "trace_ring: a recorder is made of its options, in two pairs of braces: "
                  "trace_ring::recorder recorder{{.file = \"orders.trace\"}};");
};

}  // namespace trace_ring::inline v1::impl
