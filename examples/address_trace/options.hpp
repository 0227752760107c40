// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The command line of `address-trace run` and `address-trace report`.

#include <cstdint>
#include <string>
#include <vector>

#include "../launching/exit_status.hpp"
#include "analysis/reference_choice.hpp"
#include "session/traced_run.hpp"

namespace address_trace {

using launching::failed;

/// The analyses to run, and where their results go.
struct report_settings {
    std::vector<std::string> caches{};
    std::string coherent{};  ///< a cache for each thread; empty: none
    bool lines = false, reuse = false, strides = false, working_set = false;
    reference_choice::settings chosen{};
    std::string format = "text";  ///< or csv, json, lackey, din
    std::string to{};        ///< a file; empty: stderr for `run`, if there are tables, and stdout
                             ///< for `report`
    std::string page{};      ///< an HTML file; empty: none
    std::string pictures{};  ///< a folder for SVG files; empty: none

    /// Whether there are results that go nowhere else.
    [[nodiscard]] bool asks_for_tables() const noexcept {
        const bool asks =
            lines || reuse || strides || working_set || !coherent.empty() || format != "text";
        return asks && to.empty() && page.empty() && pictures.empty();
    }
};

struct options {
    run_settings run{};
    report_settings report{};
    std::string trace{};     ///< for `report`; empty: `run`
    std::string untraced{};  ///< the program compiled without hooks; empty: it is not run
    bool quiet = false;
};

/// Returns false if the program is to end with `status`.
[[nodiscard]] bool parse(int argc, char** argv, options& into, int& status);

}  // namespace address_trace
