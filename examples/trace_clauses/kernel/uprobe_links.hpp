// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Many uprobes of a file at once, by one link of the kernel's BPF (Linux 6.6), and at exits by
/// sessions, whose program says at each entry whether its return is awaited (Linux 6.13).
/// @code
///   if (uprobe_links::has(uprobe_links::kind::entries)) {
///       uprobe_links::made some = uprobe_links::link(kind::entries, file, places, program);
///   }
/// @endcode
/// A file is also mapped here while its probes are set: the kernel looks at an instruction where
/// the file is mapped, and says nothing of one that it refuses later. What it has set is checked
/// in that mapping. Source: the kernel's include/uapi/linux/bpf.h, kernel/trace/bpf_trace.c and
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
        std::uint64_t semaphore = 0;  ///< offset of a counter of tracers; 0: none
        std::uint64_t cookie = 0;     ///< which the program is told
    };
    struct left_out {
        std::size_t place;  ///< which of them
        std::string cause;
    };
    struct made {
        std::vector<trace_ring::file_descriptor> links{};  ///< the probes live as long
        std::vector<left_out> without{};
    };

    /// Whether this kernel has such links.
    [[nodiscard]] static bool has(kind of);
    /// What a program must be loaded for, to be linked.
    [[nodiscard]] static std::uint32_t attach_type_of(kind of) noexcept;
    /// Sets the program at all these places, in all processes. Throws std::runtime_error that
    /// names the file if none of them can be set for a reason that concerns all.
    [[nodiscard]] static made link(kind of, const std::string& file, std::span<const place> places,
                                   const trace_ring::file_descriptor& program);
};

}  // namespace trace_clauses
