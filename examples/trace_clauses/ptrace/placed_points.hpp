// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The points of a session, and their places in the memory of the traced programs.
/// @code
///   points.add({"/usr/lib/x86_64-linux-gnu/libc.so.6", 0x98860, function_part::entry, pid}, 0);
///   points.set_in(memory, pid);  // repeat when it has mapped other files
/// @endcode

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../firings/firing_record.hpp"
#include "address_space.hpp"

namespace trace_clauses {

class placed_points {
public:
    struct placed {
        attach_point at;
        std::uint32_t number;                          // number in the session
        bool is_noted;                                 // the entries of its function are also
                                                       // needed
        std::optional<std::uint32_t> entry;            // the number, in the session, of the clause
                                                       // that keeps words there
        std::pair<std::uint64_t, std::uint64_t> file;  // its device and inode number
    };

    void add(const attach_point& at, std::uint32_t number, bool is_noted,
             std::optional<std::uint32_t> entry);
    void clear() noexcept { points_.clear(); }
    [[nodiscard]] const placed& operator[](std::uint32_t i) const noexcept { return points_[i]; }

    /// Sets breakpoints in everything that a process has mapped now, and at the function by which
    /// its dynamic linker informs debuggers of changed mappings.
    void set_in(address_space& memory, ::pid_t process);

private:
    using file_identity = std::pair<std::uint64_t, std::uint64_t>;

    void set_in(address_space& memory, const mapped_file& code, std::uint32_t point) const;
    void set_in_loader(address_space& memory, const std::vector<mapped_file>& files);
    [[nodiscard]] static file_identity identity_of(const std::string& file) noexcept;

    std::vector<placed> points_;
    std::map<std::string, std::optional<std::uint64_t>> loaders_;
};

}  // namespace trace_clauses
