// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What has been delivered of each trace, in files of this machine, for a server that cannot be
/// asked. A file `<trace>.state` has the state of one trace. It is replaced as a whole.

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "destination.hpp"

namespace trace_ship {

/// What has arrived of a trace, and its spans that no request has.
struct trace_state {
    /// Lane and position of the record that begins a span.
    using place = std::pair<std::uint32_t, std::uint64_t>;

    delivered arrived{};
    std::set<place> open{};  ///< the begins were read, and the ends were not
    std::set<place> left{};  ///< the begins were sent alone, because the trace had ended
};

/// Used by one thread. Its functions throw std::system_error, with the file's name.
class state_folder {
public:
    /// Creates the folder for this user only if it is missing, and locks it against other programs.
    /// Also throws std::runtime_error if it is locked.
    explicit state_folder(std::string path);
    state_folder(const state_folder&) = delete;
    ~state_folder();

    /// The state of a trace; an empty one if there is none. Throws std::runtime_error if the file
    /// is damaged.
    [[nodiscard]] trace_state load(const std::string& trace) const;
    /// Replaces the state of a trace. It survives a failure of the machine after `sync`.
    void save(const std::string& trace, const trace_state& state) const;
    /// Waits until the names of the files are on the disk.
    void sync() const;

    struct entry {
        std::string trace{};
        std::chrono::seconds age{};  ///< since it was saved or renewed
    };
    [[nodiscard]] std::vector<entry> entries() const;
    void renew(const std::string& trace) const;
    void remove(const std::string& trace) const;

private:
    [[noreturn]] void fail(const std::string& name) const;

    std::string path_;
    int fd_ = -1;
};

}  // namespace trace_ship
