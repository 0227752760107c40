// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file Writes a branch trace: the events of branch_events.hpp, through a recorder. The events
/// that a reader needs to interpret others (program, mappings, thread) are repeated after every
/// eighth of the ring, so that they are always present after overwriting.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <trace_ring/recorder/recorder.hpp>

#include "branch_events.hpp"

namespace branches {

/// A mapped file: its bytes from `offset` on are at [start, end).
struct mapping {
    std::uint64_t start = 0, end = 0, offset = 0;
    std::string path;

    friend bool operator==(const mapping&, const mapping&) = default;
};

/// The settings of a trace.
struct recording {
    std::string source;
    std::string why;
    std::uint64_t buffer = 0;     ///< bytes of one thread's store
    std::uint64_t threshold = 0;  ///< number of records at which it is drained
    std::string program;
};

/// Must always be used by the same thread, because a lane belongs to one thread.
class branch_log {
public:
    /// `ring_bytes`: the recorder's requested size.
    branch_log(trace_ring::recorder& to, std::uint64_t ring_bytes, recording how)
        : to_(to),
          tell_after_(std::max<std::uint64_t>(ring_bytes / 8, 4096)),
          how_(std::move(how)) {
        tell_recording();
    }
    branch_log(const branch_log&) = delete;
    branch_log& operator=(const branch_log&) = delete;

    /// The process begins, or becomes another program.
    void process_begun(std::uint32_t process, std::string_view program) {
        processes_[process] = {std::string(program), {}};
        put<event::process_begun>(64 + program.size(), process, program);
    }
    void process_ended(std::uint32_t process, int status, int signal) {
        put<event::process_ended>(24, process, status, signal);
        processes_.erase(process);
    }
    void module(std::uint32_t process, const mapping& what) {
        auto& there = processes_[process].modules;
        std::erase_if(there,
                      [&](const mapping& m) { return m.start < what.end && what.start < m.end; });
        there.push_back(what);
        tell_module(process, what);
    }
    void gap(std::uint32_t process, std::uint32_t thread, std::uint64_t count,
             std::string_view why) {
        put<event::gap>(32 + why.size(), process, thread, count, why);
    }

    /// The following branches belong to this thread.
    void of(std::uint32_t process, std::uint32_t thread) {
        if (now_ == std::pair(process, thread)) return;
        tell_thread(std::exchange(now_, {process, thread}));
    }
    /// Writes one taken branch, at the cost of a record.
    void branch(branch_kind kind, std::uint64_t from, std::uint64_t to) {
        if (since_ >= tell_after_) tell_all();
        since_ += 24;
        puts[static_cast<std::size_t>(kind)](to_, trace_ring::address(from),
                                             trace_ring::address(to));
    }

private:
    struct process_state {
        std::string program;
        std::vector<mapping> modules;
    };

    using put_branch = void (*)(trace_ring::recorder&, trace_ring::address, trace_ring::address);
    static constexpr auto puts = []<std::size_t... I>(std::index_sequence<I...>) {
        return std::array<put_branch, branch_kinds>{
            [](trace_ring::recorder& to, trace_ring::address from, trace_ring::address target) {
                to.record<std::tuple_element_t<I, event::all_taken>>(from, target);
            }...};
    }
    (std::make_index_sequence<branch_kinds>());

    template <class Event, class... Values>
    void put(std::uint64_t bytes, const Values&... values) {
        to_.record<Event>(values...);
        since_ += bytes + 8;
    }
    void tell_recording() {
        put<event::recording>(64 + how_.source.size() + how_.why.size() + how_.program.size(),
                              std::string_view(how_.source), std::string_view(how_.why),
                              how_.buffer, how_.threshold, std::string_view(how_.program));
    }
    void tell_thread(const std::pair<std::uint32_t, std::uint32_t>& before) {
        put<event::thread>(24, now_.first, now_.second, before.first, before.second);
    }
    void tell_module(std::uint32_t process, const mapping& what) {
        put<event::module>(48 + what.path.size(), process, trace_ring::address(what.start),
                           trace_ring::address(what.end), trace_ring::address(what.offset),
                           std::string_view(what.path));
    }
    void tell_all() {
        tell_recording();
        for (const auto& [number, unused] : processes_) {
            // Repeated without a begin, which would remove the mappings.
            for (const auto& each : processes_[number].modules) tell_module(number, each);
        }
        tell_thread(now_);
        since_ = 0;
    }

    trace_ring::recorder& to_;
    std::uint64_t tell_after_;
    recording how_;
    std::map<std::uint32_t, process_state> processes_;
    std::pair<std::uint32_t, std::uint32_t> now_{};
    std::uint64_t since_ = 0;
};

}  // namespace branches
