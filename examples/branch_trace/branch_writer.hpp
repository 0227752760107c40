// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file Writes the branches of a source to the trace: each thread has a debug store in its
/// program's word size, which is drained into the log when it reaches its threshold, and at the
/// end. The known mappings are updated whenever a branch goes to unknown code, and at each drain.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <trace_ring/drain/session.hpp>
#include <trace_ring/record/data_model.hpp>
#include <trace_ring/x86/branch_source.hpp>
#include <trace_ring/x86/loss_advice.hpp>

#include "branch_log.hpp"
#include "process_maps.hpp"
#include "thread_store.hpp"

namespace branches {

namespace x86 = trace_ring::x86;

static_assert(branch_kinds == x86::branch_kind_count);
static_assert(static_cast<int>(branch_kind::other) == static_cast<int>(x86::branch_kind::other));
static_assert(static_cast<int>(branch_kind::function_return) ==
              static_cast<int>(x86::branch_kind::function_return));

class branch_writer {
public:
    /// @param bytes     of each thread's buffer
    /// @param threshold records at which it is drained
    branch_writer(branch_log& log, std::size_t bytes, std::uint64_t threshold)
        : log_(log), bytes_(bytes), threshold_(threshold) {}
    branch_writer(const branch_writer&) = delete;
    branch_writer& operator=(const branch_writer&) = delete;

    void operator()(const x86::branch& b) {
        traced& t = of(b.thread());
        if (!b.has_from()) begin(t);
        if (b.has_to()) know(t, b.to());
        if (b.complete()) ++branches_;
        const auto kind = static_cast<branch_kind>(b.kind());
        const bool full =
            std::visit([&](auto& store) { return store.store(kind, b.from(), b.to()); }, *t.store);
        if (full) drain(t);
    }
    void operator()(const x86::branch_gap& gap) {
        // Written after everything that its thread has stored; without a thread, after everything.
        if (gap.thread == 0) finish();
        traced& t = of(gap.thread != 0 ? gap.thread : last_);
        drain(t);
        gap_in(t, gap.count, std::string(to_string(gap.cause)), gap.advice);
    }

    /// Writes what is left in the stores. To be called at the end, and whenever the trace must be
    /// complete.
    void finish() {
        for (auto& [thread, t] : threads_) drain(*t);
    }
    /// The number of branches taken so far, without those that begin or end a part.
    [[nodiscard]] std::uint64_t branches() const noexcept { return branches_; }
    [[nodiscard]] std::size_t threads() const noexcept { return threads_.size(); }
    [[nodiscard]] std::uint64_t drains() const noexcept { return drains_; }
    /// The number of places where branches are missing, or may be missing.
    [[nodiscard]] std::uint64_t gaps() const noexcept { return gaps_; }
    /// The advice with the largest requirement of all gaps; empty: no gap has an advice.
    [[nodiscard]] const std::optional<x86::loss_advice>& advice() const noexcept { return advice_; }

private:
    using store64 = thread_store<trace_ring::record::lp64>;
    using store32 = thread_store<trace_ring::record::ilp32>;
    using any_store = std::variant<store64, store32>;

    struct traced {
        std::uint32_t process = 0, thread = 0;
        std::unique_ptr<any_store> store;
        std::uint64_t known_start = 0, known_size = 0;  ///< the code where the thread was last
    };
    struct process_code {
        std::vector<mapping> maps;
        std::set<std::uint64_t> unknown;  ///< pages that contained no code at the last look
    };

    [[nodiscard]] traced& of(std::uint32_t thread) {
        if (last_of_ != nullptr && last_ == thread) return *last_of_;
        auto& t = threads_[thread];
        if (!t) {
            t = std::make_unique<traced>();
            t->thread = thread;
            t->process = branches::process_of(thread);
            make_store(*t);
            if (!processes_.contains(t->process)) begin_process(t->process);
        }
        last_ = thread;
        last_of_ = t.get();
        return *t;
    }
    void make_store(traced& t) {
        t.store =
            is_64_bit(t.process)
                ? std::make_unique<any_store>(std::in_place_type<store64>, bytes_, threshold_)
                : std::make_unique<any_store>(std::in_place_type<store32>, bytes_, threshold_);
    }

    /// Begins a contiguous part: for a new thread, or a process that continues as another program.
    void begin(traced& t) {
        if (!std::visit([](auto& store) { return store.fresh(); }, *t.store)) {
            finish();
            t.process = branches::process_of(t.thread);  // the number may now belong to another
                                                         // process
            begin_process(t.process);
            make_store(t);
        }
        t.known_size = 0;
    }
    void begin_process(std::uint32_t process) {
        processes_[process] = {};
        log_.process_begun(process, program_of(process));
        look(process);
    }

    /// Ensures that the trace has the mapping of the code at `address` before the branch that goes
    /// there.
    void know(traced& t, std::uint64_t address) {
        if (address - t.known_start < t.known_size) return;
        const auto find = [&] {
            for (const auto& m : processes_[t.process].maps) {
                if (address < m.start || address >= m.end) continue;
                t.known_start = m.start;
                t.known_size = m.end - m.start;
                return true;
            }
            return false;
        };
        if (find()) return;
        auto& unknown = processes_[t.process].unknown;
        const std::uint64_t page = address >> 12;
        if (unknown.contains(page)) return;
        look(t.process);
        if (!find()) unknown.insert(page);
    }
    void look(std::uint32_t process) {
        auto maps = read_code_maps(process);
        if (maps.empty()) return;  // the process no longer exists
        auto& known = processes_[process];
        if (maps == known.maps) return;
        for (const auto& each : maps) {
            if (std::find(known.maps.begin(), known.maps.end(), each) == known.maps.end()) {
                log_.module(process, each);
            }
        }
        known.maps = std::move(maps);
        known.unknown.clear();
        for (auto& [thread, t] : threads_) {
            if (t && t->process == process) t->known_size = 0;
        }
    }

    void gap_in(traced& t, std::uint64_t count, std::string why,
                const std::optional<x86::loss_advice>& advice) {
        ++gaps_;
        if (advice) {
            why += ": " + to_string(*advice);
            if (!advice_ || advice->needed_bytes >= advice_->needed_bytes) advice_ = advice;
        }
        log_.gap(t.process, t.thread, count, why);
    }

    void drain(traced& t) {
        const bool empty = std::visit([](auto& store) { return store.empty(); }, *t.store);
        if (empty) return;
        ++drains_;
        log_.of(t.process, t.thread);
        std::visit(
            [&](auto& store) {
                trace_ring::drain::session session(store);
                session.finish_records([&](const auto& record) {
                    log_.branch(store.kind_of(record), record.from, record.to);
                });
                if (const auto lost = session.lost().total(); lost != 0)
                    gap_in(t, lost, "the buffer was full", session.advice());
            },
            *t.store);
        look(t.process);
    }

    branch_log& log_;
    std::size_t bytes_;
    std::uint64_t threshold_;
    std::map<std::uint32_t, std::unique_ptr<traced>> threads_;
    std::map<std::uint32_t, process_code> processes_;
    std::uint32_t last_ = 0;
    traced* last_of_ = nullptr;
    std::uint64_t drains_ = 0;
    std::uint64_t branches_ = 0;
    std::uint64_t gaps_ = 0;
    std::optional<x86::loss_advice> advice_;
};

}  // namespace branches
