// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The two ways in which a reader reports bytes that make no sense: damage is noted and reading
/// continues around it; a format_error is thrown if nothing can be read at all.

#if !defined(__cpp_exceptions)
#error "trace_ring: reading a trace needs exceptions; recording it does not"
#endif

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace trace_ring::inline v1 {

/// A place in a file that makes no sense, and why; `offset` counts bytes from the file's start.
struct damage {
    std::uint64_t offset = 0;
    std::string what;

    friend bool operator==(const damage&, const damage&) = default;
};

/// The file is no trace file that this version can read. `what()` is "FILE: offset N: cause".
class format_error : public std::runtime_error {
public:
    format_error(std::string file, std::uint64_t offset, const std::string& cause)
        : std::runtime_error(file + ": offset " + std::to_string(offset) + ": " + cause),
          file_(std::move(file)),
          damage_{offset, cause} {}

    [[nodiscard]] const std::string& file() const noexcept { return file_; }
    [[nodiscard]] std::uint64_t offset() const noexcept { return damage_.offset; }
    [[nodiscard]] const std::string& cause() const noexcept { return damage_.what; }
    [[nodiscard]] const damage& where() const noexcept { return damage_; }

private:
    std::string file_;
    damage damage_;
};

}  // namespace trace_ring::inline v1
