// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The traced threads in the trace: each has its own records, process and name.
/// @code
///   traced_threads threads(recorder);
///   const auto as = threads.turn({.time = ns, .pid = 1200, .tid = 1234, .comm = "worker"});
///   event.record(recorder, payload);  // of that thread, at that time
/// @endcode

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <trace_ring/policy/storage/process.hpp>
#include <trace_ring/recorder/other_thread.hpp>
#include <trace_ring/recorder/recorder.hpp>

#include "firing_clock.hpp"

namespace trace_clauses {

/// Who fired, when.
struct fired {
    std::uint32_t clause = 0;
    std::uint64_t time = 0;  ///< CLOCK_MONOTONIC, ns
    std::uint32_t pid = 0;
    std::uint32_t tid = 0;
    std::uint8_t bits = 64;
    std::uint32_t faults = 0;  ///< what the action could not read
    std::string comm{};        ///< the thread's name; empty: /proc has it, if anybody
    std::uint64_t call = 0;    ///< as firing_record has it
};

/// One thread's.
class traced_threads {
public:
    using recorder = trace_ring::basic_recorder<firing_trace>;

    explicit traced_threads(recorder& to) : to_(to) {}
    traced_threads(const traced_threads&) = delete;
    traced_threads& operator=(const traced_threads&) = delete;
    /// In the order in which they recorded last: what they hold is closed at these times.
    ~traced_threads() {
        while (!by_use_.empty()) forget_oldest();
    }

    /// Names a process that may end before its name can be read.
    void name(std::uint32_t pid, std::string name) {
        started_ = pid;
        started_name_ = std::move(name);
    }
    /// Records made while the result lives belong to that thread, at that time. If the recorder has
    /// no room for the thread, and for what this program itself captures, they belong to this
    /// program, in the order in which they come.
    [[nodiscard]] trace_ring::other_thread::scope turn_of(const fired& who) {
        is_new_process_ = false;
        known* const its = who.pid == own_ ? nullptr : &of(who);
        if (its == nullptr || !its->thread) {
            own_turn(who.time);
            return trace_ring::other_thread::scope();
        }
        its->time = who.time;
        firing_clock::fired(who.time);
        return trace_ring::other_thread::scope(*its->thread);
    }
    /// What is recorded next is this program's.
    void own_turn(std::uint64_t time) noexcept {
        own_time_ = std::max(own_time_, time);
        firing_clock::fired(own_time_);
    }
    /// Whether the last turn was the first one of its process.
    [[nodiscard]] bool is_new_process() const noexcept { return is_new_process_; }
    /// The same of the thread that recorded last.
    [[nodiscard]] trace_ring::other_thread::scope last_turn() {
        if (by_use_.empty() || !by_use_.back().thread) return trace_ring::other_thread::scope();
        return trace_ring::other_thread::scope(*by_use_.back().thread);
    }

private:
    using key = std::pair<std::uint32_t, std::uint32_t>;
    struct process {
        process(recorder& to, std::uint32_t pid, std::uint32_t word, std::string called)
            : name(std::move(called)), it(to, pid, word, name.c_str()) {}
        std::string name;
        trace_ring::other_process it;
        std::uint64_t start = 0;    // as trace_ring::storage::facts_of has it
        std::uint64_t seen_at = 0;  // ns: when it fired last
    };
    struct known {
        key who;
        std::shared_ptr<process> of;  // outlives the thread
        std::string name;
        std::uint64_t time = 0;
        std::unique_ptr<trace_ring::other_thread> thread{};
    };
    [[nodiscard]] static bool is_renamed(const known& one, const fired& who) {
        return !who.comm.empty() && one.name != who.comm;
    }
    /// So many have sub-buffers at a time. Those of a recorder's table are processes, too.
    static constexpr std::size_t most = 192;

    [[nodiscard]] static std::string name_in(const std::string& folder) {
        std::ifstream in("/proc/" + folder + "/comm");
        std::string name;
        std::getline(in, name);
        return name;
    }
    known& of(const fired& who) {
        const key its{who.pid, who.tid};
        forget_if_ended(who);
        const auto found = by_key_.find(its);
        if (found != by_key_.end() && !is_renamed(*found->second, who)) {
            by_use_.splice(by_use_.end(), by_use_, found->second);
            return *found->second;
        }
        std::shared_ptr<process> keeps;  // also if this is its only thread
        if (found != by_key_.end()) {
            keeps = found->second->of;
            static_cast<void>(forget(found->second));
        }
        if (by_use_.size() == most) forget_oldest();
        const std::string pid = std::to_string(who.pid);
        const std::string name =
            who.comm.empty() ? name_in(pid + "/task/" + std::to_string(who.tid)) : who.comm;
        auto& in = processes_[who.pid];
        firing_clock::fired(who.time);
        // A process is called as its first thread is, and a program that it executes is another.
        const bool is_first = who.tid == who.pid;
        if (in == nullptr || (is_first && !name.empty() && in->name != name)) {
            std::string of_all = is_first ? name : name_in(pid);
            if (of_all.empty() && who.pid == started_) of_all = started_name_;
            is_new_process_ = in == nullptr;
            in = std::make_shared<process>(to_, who.pid, who.bits / 8U, of_all);
            in->start = trace_ring::storage::facts_of(who.pid).start;
            in->seen_at = who.time;
        }
        known& made = by_use_.emplace_back(known{.who = its, .of = in, .name = name});
        by_key_[its] = std::prev(by_use_.end());
        auto thread = std::make_unique<trace_ring::other_thread>(in->it, who.tid, name.c_str());
        if (*thread) made.thread = std::move(thread);
        return made;
    }
    /// Another process may have got the number of one that has ended: that takes a while. One that
    /// had ended when it was first seen has no start.
    void forget_if_ended(const fired& who) {
        constexpr std::uint64_t a_while = 1'000'000'000;  // ns
        const auto in = processes_.find(who.pid);
        if (in == processes_.end()) return;
        const std::uint64_t before = std::exchange(in->second->seen_at, who.time);
        if (who.time < before + a_while) return;
        const std::uint64_t now = trace_ring::storage::facts_of(who.pid).start;
        if (now == 0 || now == in->second->start) return;
        for (auto each = by_use_.begin(); each != by_use_.end();)
            each = each->who.first == who.pid ? forget(each) : std::next(each);
    }
    void forget_oldest() { static_cast<void>(forget(by_use_.begin())); }
    std::list<known>::iterator forget(std::list<known>::iterator one) {
        firing_clock::fired(one->time);
        one->thread.reset();
        by_key_.erase(one->who);
        const auto in = processes_.find(one->who.first);
        one->of.reset();
        const bool is_last = in != processes_.end() && in->second.use_count() == 1;
        const auto next = by_use_.erase(one);
        if (is_last) processes_.erase(in);
        return next;
    }

    recorder& to_;
    std::uint32_t own_ = static_cast<std::uint32_t>(::getpid());
    std::uint64_t own_time_ = 0;
    bool is_new_process_ = false;
    std::uint32_t started_ = 0;
    std::string started_name_;
    std::map<std::uint32_t, std::shared_ptr<process>> processes_;
    std::list<known> by_use_;  // the one that recorded last is the last
    std::map<key, std::list<known>::iterator> by_key_;
};

}  // namespace trace_clauses
