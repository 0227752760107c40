// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What the files of each kind are reduced with.

#include <csignal>
#include <cstdlib>

#include "../inputs.hpp"
#include "../options.hpp"
#include "../output.hpp"

namespace trace_reduce {

struct job {
    const options& wanted;
    output& to;
    complaints& complain;
    /// Not 0: someone wants an end. Of following that is the way to end: then it is made 0.
    volatile std::sig_atomic_t& interrupted;

    [[nodiscard]] bool coloured() const {
        return wanted.format == output_format::text && !wanted.statistics &&
               (wanted.colour == colouring::always ||
                (wanted.colour == colouring::automatic && to.is_terminal() &&
                 std::getenv("NO_COLOR") == nullptr));
    }
};

}  // namespace trace_reduce
