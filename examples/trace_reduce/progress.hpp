// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Tells a person that waits how far it is: on standard error, if that is a terminal and the result
/// goes elsewhere. And ends what such a person does not want to wait for.

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <limits>
#include <optional>

#include <trace_ring/reduce/file/chains.hpp>
#include <trace_ring/reduce/item.hpp>
#include <trace_ring/reduce/item/record_view.hpp>
#include <trace_ring/reduce/tables.hpp>
#include <trace_ring/reduce/tables/writers.hpp>

#include "../counted.hpp"

namespace trace_reduce {

/// Someone wants an end.
struct interruption {};

class progress {
public:
    explicit progress(bool wanted) : wanted_(wanted), begin_(std::time(nullptr)), told_(begin_) {}
    progress(const progress&) = delete;
    ~progress() {
        if (shown_) std::fputs("\r\x1b[K", stderr);
    }
    [[nodiscard]] bool wanted() const noexcept { return wanted_; }
    /// Records so far, and which part of the whole that is, from 0 to 1, if it is known. From the
    /// third second on, once a second.
    void tell(std::uint64_t records, std::optional<double> part) {
        if (!wanted_) return;
        const std::time_t now = std::time(nullptr);
        if (now == told_ || now < begin_ + 2) return;
        told_ = now;
        shown_ = true;
        std::fprintf(stderr, "\rtrace-reduce: ");
        if (part) std::fprintf(stderr, "%3.0f%%, ", 100 * std::clamp(*part, 0.0, 1.0));
        std::fprintf(stderr, "%s, %.0f/s\x1b[K", counted(records, "record", "records").c_str(),
                     static_cast<double>(records) / static_cast<double>(now - begin_));
    }

private:
    bool wanted_;
    std::time_t begin_;
    std::time_t told_;
    bool shown_ = false;
};

/// When a trace begins and ends, by its index.
class time_span {
public:
    explicit time_span(const trace_ring::reduce::tables& in) {
        namespace reduce = trace_ring::reduce;
        const auto all = reduce::chain_scan(in).scan(reduce::look_at::index,
                                                     [](std::uint32_t, auto) { return true; });
        for (const auto& chain : all.chains) {
            for (const auto& link : chain.links) {
                constexpr auto unknown = std::numeric_limits<std::uint64_t>::max();
                first_ = std::min(first_, link.base_time);
                last_ =
                    std::max(last_, link.last_time == unknown ? link.base_time : link.last_time);
            }
        }
    }
    /// How far in it a time is; nothing if it has no length.
    [[nodiscard]] std::optional<double> part(std::uint64_t time) const noexcept {
        if (last_ <= first_) return std::nullopt;
        const std::uint64_t within = std::clamp(time, first_, last_) - first_;
        return static_cast<double>(within) / static_cast<double>(last_ - first_);
    }

private:
    std::uint64_t first_ = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t last_ = 0;
};

/// Shows the progress of counting, throws `interruption` when `interrupted` is set, and passes on
/// all calls.
template <class Observer>
class told_on {
public:
    told_on(progress& to, const trace_ring::reduce::tables& in,
            const volatile std::sig_atomic_t& interrupted, Observer& next)
        : to_(to),
          interrupted_(interrupted),
          whole_(static_cast<double>(in.present()) *
                 static_cast<double>(in.plan().sub_buffer_bytes)),
          next_(next) {}

    void records(const trace_ring::reduce::record_view& first,
                 const trace_ring::reduce::record_run& rest) {
        if (interrupted_ != 0) throw interruption{};
        next_.records(first, rest);
        records_ += 1 + rest.size();
        bytes_ += (1 + rest.size()) * first.bytes();
        if (++since_ % 65536 == 0) {
            to_.tell(records_, whole_ > 0 ? std::optional(static_cast<double>(bytes_) / whole_)
                                          : std::nullopt);
        }
    }
    void gap(const trace_ring::reduce::lane_info* lane) { next_.gap(lane); }

private:
    progress& to_;
    const volatile std::sig_atomic_t& interrupted_;
    double whole_;
    Observer& next_;
    std::uint64_t records_ = 0;
    std::uint64_t bytes_ = 0;
    unsigned since_ = 0;
};

}  // namespace trace_reduce
