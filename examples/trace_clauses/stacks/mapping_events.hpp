// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What processes map to run it, as the kernel tells it while it happens: also of a process that
/// has ended when somebody asks.
/// @code
///   mapping_events events;
///   events.read([](const mapping_event& one) { ... });
/// @endcode
/// Facts: perf_event_open(2), PERF_RECORD_MMAP2, PERF_RECORD_COMM, PERF_RECORD_FORK,
/// PERF_RECORD_EXIT.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace trace_clauses {

/// The path of the code that the kernel maps into each process.
inline constexpr std::string_view kernel_code = "[vdso]";

struct mapping_event {
    enum class kind : std::uint8_t {
        mapped,    ///< the file's code from `offset` on, at [begin, end)
        executed,  ///< all that was mapped before is gone
        forked,    ///< from `parent`, whose mappings it has
        ended,     ///< its first thread, at least
    };
    kind is = kind::mapped;
    ::pid_t process = 0;
    ::pid_t parent = 0;
    std::uint64_t time = 0;  ///< CLOCK_MONOTONIC, ns, of no time namespace
    std::uint64_t begin = 0, end = 0, offset = 0;
    std::string path{};       ///< empty: of no file
    std::string build_id{};   ///< its bytes; empty: it has none, or the kernel does not report it
    std::uint64_t inode = 0;  ///< of a file without build id; 0: not reported
};

/// Of all processes. Where the kernel does not permit that, there are none.
class mapping_events {
public:
    mapping_events();
    mapping_events(const mapping_events&) = delete;
    mapping_events& operator=(const mapping_events&) = delete;
    ~mapping_events();

    [[nodiscard]] bool are_told() const noexcept { return !rings_.empty(); }
    /// What came since; in order for each processor only.
    void read(const std::function<void(const mapping_event&)>& take);
    /// So many were too many for the kernel's memory.
    [[nodiscard]] std::uint64_t lost() const noexcept { return lost_; }

private:
    struct ring {
        int file = -1;
        std::byte* memory = nullptr;
    };
    void read(const ring& of, const std::function<void(const mapping_event&)>& take);
    void close() noexcept;

    std::vector<ring> rings_;
    std::vector<std::byte> record_;
    std::uint64_t lost_ = 0;
};

}  // namespace trace_clauses
