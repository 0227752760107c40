// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file The selected analyses, and the output of their results.

#include <cstdint>
#include <fstream>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <address_trace/analysis/analyses.hpp>
#include <address_trace/options.hpp>
#include "places.hpp"
#include "source_lines.hpp"
#include "tables.hpp"

namespace address_trace {

/// Created before the references arrive, and queried afterwards.
class report {
public:
    /// Throws std::invalid_argument if a cache is invalid, std::runtime_error if a file cannot be
    /// written.
    explicit report(const report_settings& wanted);
    report(const report&) = delete;
    report& operator=(const report&) = delete;
    ~report();

    [[nodiscard]] analyses& fed() noexcept { return all_; }
    [[nodiscard]] const findings& found() const noexcept { return found_; }

    /// Sets the mappings and stacks, which determine the names of sites, the coverage by hooks, and
    /// the owners of memory.
    void name_by(const std::vector<loaded_module>& modules, const std::vector<stack_range>& stacks);
    [[nodiscard]] std::span<const object_coverage> coverage() const noexcept {
        return found_.objects;
    }
    /// Sets the description of missing references, for all outputs.
    void note_gaps(std::string text) { found_.gaps = std::move(text); }
    /// Writes all outputs. Tables without a file go to `console` if `shows` is true. Throws
    /// std::runtime_error that names the file that cannot be written.
    void write(const std::string& title, std::ostream& console, bool shows);
    /// The total number of function calls.
    [[nodiscard]] std::uint64_t calls();

private:
    class lines;
    [[nodiscard]] source_lines find_sources() const;
    void write_tables(const std::string& title, std::ostream& out);

    report_settings wanted_;
    analyses all_;
    findings found_;
    loaded_objects objects_;
    place_of where_ = [this](std::uint64_t site) { return objects_.find(site); };
    std::ofstream file_;
};

}  // namespace address_trace
