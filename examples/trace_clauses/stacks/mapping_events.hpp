// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Reports what processes map for execution, from the kernel's events. This includes processes that
/// end before anyone needs their mappings.
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
        executed,  ///< all previous mappings are gone
        forked,    ///< from `parent`, with its mappings
        ended,     ///< at least its first thread
    };
    kind is = kind::mapped;
    ::pid_t process = 0;
    ::pid_t parent = 0;
    std::uint64_t time = 0;  ///< CLOCK_MONOTONIC, ns, outside of time namespaces
    std::uint64_t begin = 0, end = 0, offset = 0;
    std::string path{};       ///< empty: no file
    std::string build_id{};   ///< empty: the file has none, or the kernel does not report it
    std::uint64_t inode = 0;  ///< of a file without build id; 0: not reported
};

/// Events of all processes. If the kernel does not permit this, there are no events.
class mapping_events {
public:
    mapping_events();
    mapping_events(const mapping_events&) = delete;
    mapping_events& operator=(const mapping_events&) = delete;
    ~mapping_events();

    [[nodiscard]] bool are_told() const noexcept { return !rings_.empty(); }
    /// Passes the events since the last call; they are ordered only per processor.
    void read(const std::function<void(const mapping_event&)>& take);
    /// Number of events for which the kernel had no room.
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
