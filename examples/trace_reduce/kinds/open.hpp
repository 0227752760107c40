// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Opens what trace-reduce was given, each file as what it is by its content: a trace file, a
/// CPTRAP file, or a core dump with the traces that are in it.

#include <string>
#include <vector>

#include <trace_ring/reduce/source.hpp>

#include "../inputs.hpp"
#include "../options.hpp"
#include "file_kind.hpp"

namespace trace_reduce {

struct opened_files {
    std::vector<reduce::source> traces;  ///< those of a core each by itself
    std::vector<reduce::source> spools;
};

/// Reports files that cannot be opened, are of no known kind, or do not support the options.
[[nodiscard]] opened_files open_files(const options& wanted, complaints& complain);

/// The file's kind if it is one. Complains if it is not, or cannot be opened.
[[nodiscard]] bool is_trace(const std::string& path, complaints& complain);

}  // namespace trace_reduce
