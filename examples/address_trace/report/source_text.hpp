// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file A source file, read safely from any path.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sys/stat.h>

namespace address_trace {

/// The file's lines as clang counts them: they end with "\n", "\r\n" or "\r". Reads regular files
/// only, because reading from a FIFO or a device may block forever, or have an effect.
class source_text {
public:
    static constexpr std::size_t default_most = std::size_t{16} << 20;

    /// `most`: maximum bytes; a larger file has no lines. Does not throw: see `problem`.
    explicit source_text(const std::string& path, std::size_t most = default_most);

    /// The reason if there are no lines: "No such file or directory"; otherwise empty.
    [[nodiscard]] const std::string& problem() const noexcept { return problem_; }

    /// The number of lines.
    [[nodiscard]] std::size_t size() const noexcept { return begins_.size(); }
    /// A line without its end. `number`: from 1 to size().
    [[nodiscard]] std::string_view line(std::size_t number) const;

    /// Whether it was modified after that file. False if unknown.
    [[nodiscard]] bool is_newer_than(const std::string& object) const;

private:
    /// Reads the whole file. On failure, sets `problem_`.
    [[nodiscard]] bool read(const std::string& path, std::size_t most);
    void find_lines();

    std::string text_, problem_;
    std::vector<std::uint32_t> begins_;  // of lines in text_
    struct stat status_ {};
};

}  // namespace address_trace
