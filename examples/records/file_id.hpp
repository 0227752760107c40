// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The id of a trace file.

#include <cstddef>
#include <cstdint>
#include <string>

#include <trace_ring/format/layout.hpp>
#include <trace_ring/reduce/source/format_error.hpp>
#include <trace_ring/reduce/tables.hpp>

namespace records {

namespace reduce = trace_ring::reduce;

/// The id in a trace file's header, which is random: the files of two recorders differ in it.
/// Copies of a file, and snapshots of a recorder, have the same.
struct file_id {
    std::uint64_t words[2] = {};

    /// As a UUID: 00112233-4455-6677-8899-aabbccddeeff.
    [[nodiscard]] std::string text() const {
        std::string made;
        for (const std::uint64_t word : words) {
            for (int shift = 60; shift >= 0; shift -= 4) {
                made += "0123456789abcdef"[word >> shift & 15];
            }
        }
        for (const std::size_t at : {20U, 16U, 12U, 8U}) made.insert(at, 1, '-');
        return made;
    }
};

/// Throws trace_ring::format_error if the file ends before it.
[[nodiscard]] inline file_id id_of(const reduce::tables& in) {
    file_id id;
    constexpr std::uint64_t at = offsetof(trace_ring::layout::file_header, id);
    if (in.bytes().read(at, id.words, sizeof id.words) != sizeof id.words) {
        throw trace_ring::format_error(in.name(), at, "the file ends in its header");
    }
    return id;
}

}  // namespace records
