// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file The program's source with counts next to its lines, for the page.

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "by_place.hpp"
#include "source_text.hpp"

namespace address_trace {

/// Limits on what is shown. Lines with the lowest counts are omitted, and their share is shown.
struct source_limits {
    std::size_t files = 25;
    std::size_t lines = 250;    ///< lines with counts per file
    std::size_t around = 3;     ///< further lines before and after each of them
    std::size_t columns = 250;  ///< bytes per line
};

/// Files and lines are ordered by their misses in all caches, or by their references if there are
/// no misses. The sources are read from their paths now.
class source_lines {
public:
    source_lines() = default;
    /// `caches`: names, one for each of place_counts::misses.
    source_lines(const counts_by_place& of, std::vector<std::string> caches,
                 const source_limits& limits = {});

    /// No source file is known.
    [[nodiscard]] bool empty() const noexcept { return files_.empty(); }
    /// A section with the id `files`; empty without files. The contents of sources and their names
    /// are escaped.
    [[nodiscard]] std::string as_html() const;

private:
    struct counted {
        reference_counts counts;
        std::vector<std::uint64_t> misses;
        std::uint64_t weight = 0;
    };
    struct source_file {
        std::string path;
        std::set<std::string> objects;  ///< paths of the objects compiled from it
        std::map<int, counted> lines;
        std::uint64_t weight = 0, references = 0;
    };

    [[nodiscard]] std::uint64_t weight_of(const place_counts& of) const;
    [[nodiscard]] const char* unit() const noexcept { return by_misses_ ? "misses" : "references"; }
    /// The shown lines of a file with `last` lines, by number: lines with counts, and lines around
    /// them.
    [[nodiscard]] std::map<int, const counted*> rows_of(const source_file& of, int last) const;
    [[nodiscard]] std::string row_html(int number, const counted* counts,
                                       const std::string& cell) const;
    [[nodiscard]] std::string head_html(const source_file& of, const source_text& source,
                                        bool open) const;
    [[nodiscard]] std::string file_html(const source_file& of, bool open) const;

    std::vector<std::string> caches_;
    source_limits limits_;
    bool by_misses_ = false;
    std::uint64_t weight_ = 0;  // for the whole program
    std::vector<source_file> files_;
};

}  // namespace address_trace
