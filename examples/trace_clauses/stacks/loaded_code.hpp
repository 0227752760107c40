// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The mappings of code files in a process, at any time of the session, and the names of the
/// functions.
/// @code
///   loaded_code code;
///   code.name_of(pid, return_address, fired_at);  // "main+0x12 shop.c:33"
/// @endcode
/// Mappings that the kernel reports are kept, even after the process has ended. For a process that
/// was running before, or if the kernel reports nothing, /proc/PID/maps is read at the first
/// request.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <trace_ring/policy/storage/file.hpp>

#include "../session/stack_names.hpp"
#include "mapping_events.hpp"

namespace symbols {
class object;
}

namespace trace_clauses {

/// To be used by one thread at a time.
class loaded_code final : public stack_names {
public:
    loaded_code();
    ~loaded_code() override;

    /// Addresses without a name are counted. Throws only std::bad_alloc.
    [[nodiscard]] std::string_view name_of(::pid_t process, std::uint64_t return_address,
                                           std::uint64_t time) override;
    [[nodiscard]] const symbols::loaded_module* module_of(::pid_t process,
                                                          std::uint64_t return_address,
                                                          std::uint64_t time) override;
    [[nodiscard]] std::uint64_t changes_of(::pid_t process, std::uint64_t time) override;

    /// A part of the code of a process, and its file, opened: its path may lead through the
    /// process, and end with it. No file: it no longer exists, or the kernel provides the code
    /// (kernel_code).
    struct open_module {
        symbols::loaded_module module;
        trace_ring::file_descriptor file;
    };
    /// The code of a process at that time.
    [[nodiscard]] std::vector<open_module> modules_of(::pid_t process, std::uint64_t time);

    /// Reads the current mappings of a process, unless the kernel reports them.
    void look(::pid_t process);
    /// The number of addresses without a name, because their mapping is unknown.
    [[nodiscard]] std::uint64_t unnamed() const noexcept { return unnamed_; }
    /// The number of mapping reports that the kernel lost: names may be missing or outdated.
    [[nodiscard]] std::uint64_t lost() const noexcept { return events_.lost(); }

private:
    struct mapping {
        std::uint64_t begin = 0, end = 0, offset = 0;
        std::uint64_t since = 0, until = ~std::uint64_t{0};  // ns
        std::string path;
        std::string build_id;  // as in mapping_event
        std::uint64_t inode = 0;
    };
    /// A mapped file, if it still exists.
    struct code_file {
        std::string path;  // path to open; empty: the file no longer exists
        std::uint64_t device = 0, inode = 0;
        std::unique_ptr<symbols::object> names;
    };
    struct process {
        std::vector<mapping> all;
        /// By the begin of the mapping in time, and by address.
        std::map<std::pair<std::uint64_t, std::uint64_t>, std::string> names;
        bool is_looked_at = false;
        std::vector<std::uint64_t> changes;  // when
        std::uint64_t ended_at = 0;          // ns; 0: it is running
    };

    void refresh();
    void forget_ended();
    void look_at(::pid_t number, process& of);
    /// Null: the address is counted as unnamed.
    [[nodiscard]] const mapping* mapped_at(::pid_t number, process& of, std::uint64_t address,
                                           std::uint64_t time);
    [[nodiscard]] static const mapping* find(const process& of, std::uint64_t address,
                                             std::uint64_t time) noexcept;
    [[nodiscard]] code_file& file_of(::pid_t of, const mapping& what);
    [[nodiscard]] static code_file found_file(::pid_t of, const mapping& what);
    [[nodiscard]] static trace_ring::file_descriptor opened(const code_file& what) noexcept;
    [[nodiscard]] static trace_ring::file_descriptor open_file(::pid_t of, const mapping& what,
                                                               code_file& file);

    std::int64_t ahead_;  // for this time namespace
    mapping_events events_;
    std::uint64_t read_at_ = 0;
    std::map<::pid_t, process> processes_;
    /// By path, build id and number.
    std::map<std::tuple<std::string, std::string, std::uint64_t>, code_file> files_;
    symbols::loaded_module module_;
    std::uint64_t unnamed_ = 0;
};

}  // namespace trace_clauses
