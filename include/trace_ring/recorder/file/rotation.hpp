// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Old trace files that make way for a new one: if_exists::rotate.

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdio>

#include <trace_ring/format/layout.hpp>
#include <trace_ring/policy/storage/file.hpp>
#include <trace_ring/recorder/file/options.hpp>

namespace trace_ring::inline v1::impl {

/// Opens an old trace file, to replace or rename it. Returns why not.
[[nodiscard, gnu::cold]] inline setup_fault open_trace(file_descriptor& old, const char* name) {
    if (const setup_fault why = storage::open_file(old, name)) return why;
    std::uint64_t magic = 0;
    if (::pread(old.get(), &magic, sizeof magic, 0) != sizeof magic || magic != layout::file_magic)
        return {EEXIST, "will not replace what is not a trace file"};
    return {};
}

/// The name of the old trace `number` of those of `path`, which itself is number 0.
inline void name_rotated(name_buffer& into, const char* path, std::uint32_t number) noexcept {
    into.size = 0;
    into.add(path);
    if (number != 0) {
        into.add('.');
        into.add(number);
    }
    into.text[into.size] = '\0';
}

/// Renames the trace file at `path`, which then has no file, and its predecessors, of which `keep`
/// stay. Returns why not. For one process at a time. Linear in `keep`.
[[nodiscard, gnu::cold]] inline setup_fault rotate_traces(const char* path, std::uint32_t keep) {
    {
        file_descriptor newest;
        const setup_fault why = open_trace(newest, path);
        if (why) return why.error() == ENOENT ? setup_fault() : why;
    }
    name_buffer to;
    std::uint32_t last = 0;  // the first number that is free, or the oldest
    do {
        name_rotated(to, path, ++last);
        if (to.is_cut()) return {ENAMETOOLONG, "cannot rename the old trace"};
    } while (::access(to.text, F_OK) == 0 && last != keep);
    if (::access(to.text, F_OK) == 0) {
        file_descriptor oldest;
        if (const setup_fault why = open_trace(oldest, to.text)) {
            return {why.error(), "cannot rename the old trace to .%" PRIu32 ": %s", last,
                    why.attempt()};
        }
    }
    for (; last > 0; --last) {
        name_buffer from;
        name_rotated(from, path, last - 1);
        name_rotated(to, path, last);
        if (::rename(from.text, to.text) != 0 && errno != ENOENT)
            return {errno, "cannot rename the old trace"};
    }
    return {};
}

/// Gives the complete file `made` the name `path`, which old traces make way for. Returns why not.
[[nodiscard, gnu::cold]] inline setup_fault put_before_old(const char* made, const char* path,
                                                           std::uint32_t keep) {
    bool has_turn = false;  // without a turn it renames, too: a trace is better than none
    const file_descriptor turn = storage::wait_for_turn(path, has_turn);
    for (int i = 0;; ++i) {
        const int error = storage::name_file(made, path);
        if (error == 0) return {};
        if (error != EEXIST || i == 8) return {error, "cannot put the new file in place"};
        if (const setup_fault fault = rotate_traces(path, keep)) return fault;
    }
}

}  // namespace trace_ring::inline v1::impl
