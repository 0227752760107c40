// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Follows the traces of folders and delivers what is new.
///
/// Memory is bounded: while a batch cannot be delivered, nothing is read. What is overwritten in
/// the meantime is reported as lost when reading continues, as for any reader.

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <clickhouse/stack_names.hpp>

#include "destination.hpp"
#include "followed_trace.hpp"
#include "trace_folder.hpp"

namespace trace_ship {

struct shipping_settings {
    std::vector<std::string> folders{};
    std::string glob = "*";
    std::string host{};
    std::string metrics_file{};                ///< empty: none
    std::chrono::milliseconds interval{1000};  ///< a record waits at most so long for others
    std::size_t most_open = 1000;              ///< files at a time
    bool symbols = false;                      ///< names the functions in call stacks
    bool once = false;  ///< ends when all is delivered, or the server is away for long
    bool show_progress = false;
};

class shipping {
public:
    /// `stop`: not 0: ends after what is read was delivered; 2: without that.
    shipping(shipping_settings settings, destination& to, const volatile std::sig_atomic_t& stop);

    /// Until it is stopped. Returns whether everything that was read has been delivered, and
    /// nothing was refused.
    bool run();

private:
    using clock = std::chrono::steady_clock;

    struct open_trace {
        file_id id{};
        std::unique_ptr<followed_trace> trace{};
        clock::time_point next_look{};
        std::chrono::milliseconds pause{};  // between looks
        bool finishing = false;
        bool done = false;
    };
    struct known_file {
        file_stamp stamp{};
        bool skipped = false;  // it is no trace
        std::string trace{};   // its id, if it is one
    };

    void look_for_files();
    void consider(const found_file& file);
    /// False: it was stopped, or the server is away for long.
    bool start_traces();
    /// Reads what there is. True if a trace waits for the batch to be delivered.
    bool read_traces();
    void close_ended();
    [[nodiscard]] std::size_t unread_traces() const;
    bool deliver();
    /// Calls `attempt` until it does not throw. False: it was stopped.
    template <class Attempt>
    bool repeat(Attempt&& attempt);
    bool wait(std::chrono::milliseconds time);
    static void report(const std::string& what, std::string& last);
    void write_metrics(bool now);
    void show_progress();

    shipping_settings settings_;
    destination& to_;
    const volatile std::sig_atomic_t& stop_;
    std::vector<std::unique_ptr<trace_folder>> folders_{};
    clickhouse::stack_symbols symbols_{};  // outlives the traces
    std::vector<open_trace> traces_{};
    std::map<file_id, known_file> closed_{};
    std::map<std::string, std::string> shipped_ids_{};  // of open traces: their paths
    std::map<file_id, unsigned> copies_{};              // of these; how often they were seen
    std::string reported_{};                            // the last failure of the server
    std::string reported_here_{};                       // of a folder or file here
    std::string reported_metrics_{};
    clock::time_point oldest_{};  // of the items that wait
    clock::time_point next_scan_{};
    clock::time_point next_keep_{};
    clock::time_point next_metrics_{};
    clock::time_point last_progress_{};
    std::int64_t delivered_at_ = 0;  // seconds since 1970
    shipped_counts counts_{};
    shipped_counts delivered_counts_{};
    std::uint64_t batches_ = 0;
    std::uint64_t failures_ = 0;
    std::uint64_t files_skipped_ = 0;
    std::size_t waiting_ = 0;
};

}  // namespace trace_ship
