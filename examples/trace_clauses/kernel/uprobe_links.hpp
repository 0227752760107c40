// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Sets many uprobes of a file with one BPF link (Linux 6.6). At exits it uses sessions, whose
/// program decides at each entry whether the return is traced (Linux 6.13).
/// @code
///   if (uprobe_links::has(uprobe_links::kind::entries)) {
///       uprobe_links::made some = uprobe_links::link(kind::entries, file, places, program);
///   }
/// @endcode
/// This process also maps the file while its probes are set: the kernel checks an instruction where
/// the file is mapped, and does not report one that it rejects later. The mapping shows which
/// probes were set. Source: the kernel's include/uapi/linux/bpf.h, kernel/trace/bpf_trace.c and
/// kernel/events/uprobes.c.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <trace_ring/policy/storage/file.hpp>

namespace trace_clauses {

class uprobe_links {
public:
    enum class kind : std::uint8_t { entries, sessions };
    struct place {
        std::uint64_t offset = 0;     ///< in the file
        std::uint64_t semaphore = 0;  ///< offset of a semaphore; 0: none
        std::uint64_t cookie = 0;     ///< passed to the program
    };
    struct left_out {
        std::size_t place;  ///< index of the place
        std::string cause;
    };
    struct made {
        std::vector<trace_ring::file_descriptor> links{};  ///< the probes live as long as these
        std::vector<left_out> without{};
    };

    /// Returns whether this kernel supports such links.
    [[nodiscard]] static bool has(kind of);
    /// The attach type with which a program must be loaded to be linked.
    [[nodiscard]] static std::uint32_t attach_type_of(kind of) noexcept;
    /// Sets the program at all these places, in all processes. Throws std::runtime_error that names
    /// the file if a reason that applies to all places prevents this.
    [[nodiscard]] static made link(kind of, const std::string& file, std::span<const place> places,
                                   const trace_ring::file_descriptor& program);
};

}  // namespace trace_clauses
