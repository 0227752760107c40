// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Reads branches as samples of the branch-instructions event with a period of one, for which older
/// kernels use the branch trace store, and which gdb reads (gdb/nat/linux-btrace.c). IP is the
/// branch, ADDR its target. Prefer perf_bts: here each record costs time in the kernel, and only
/// the newest are kept. They are read backwards, once, when the event is stopped.
/// @code
///   trace_ring::x86::perf_samples branches({.thread = child});
///   branches.start();
///   // ...
///   branches.read(visitor);  // stops, and reads
/// @endcode

#include <trace_ring/x86/enabled.hpp>

#include <linux/perf_event.h>
#include <sys/types.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include <trace_ring/loss.hpp>
#include <trace_ring/policy/storage/mapping.hpp>
#include <trace_ring/x86/branch_source.hpp>
#include <trace_ring/x86/linux/perf_event.hpp>
#include <trace_ring/x86/linux/perf_host.hpp>
#include <trace_ring/x86/linux/perf_ring.hpp>

namespace trace_ring::inline v1::x86 {

struct perf_samples_options {
    ::pid_t thread = 0;              ///< 0: the calling one
    int cpu = -1;                    ///< -1: any
    std::size_t bytes = 256 * 1024;  ///< a power of two of pages; a branch takes 24 bytes
    bool on_exec = false;            ///< begins when the thread executes a program
};

/// A model of branch_source, newest first. For one thread at a time.
class perf_samples {
public:
    static constexpr branch_character character{.order = branch_order::newest_first,
                                                .delivery = branch_delivery::sample,
                                                .tells_privilege = true};

    /// Opens the event, disabled. Throws perf_unavailable, which says which condition fails (on a
    /// processor without a branch trace store the samples would be no branches), and setup_error
    /// for an invalid size.
    explicit perf_samples(const perf_samples_options& options = {}, perf_host host = {})
        : event_(open(options, std::move(host))),
          ring_("branch-instructions", event_.get(), options.bytes, false),
          running_(options.on_exec) {}

    /// Throws setup_error.
    void start() {
        event_.enable();
        running_ = true;
    }
    void stop() {
        event_.disable();
        running_ = false;
    }

    /// Stops the event, and visits all branches, newest first. Bytes that are no sample of a branch
    /// are skipped, eight at a time, and reported as a gap.
    template <branch_visitor Visit>
    std::uint64_t read(Visit&& visit) {
        if (ended_) return 0;
        if (running_) stop();
        ended_ = true;
        const std::uint64_t head = ring_.head();
        const std::uint64_t there = std::min<std::uint64_t>(head, ring_.size());
        std::uint64_t at = head, seen = 0;
        bool strange = head % 8 != 0;
        while (!strange && there - (head - at) >= sizeof(sample)) {
            sample one;
            std::array<std::byte, sizeof one> bytes{};
            ring_.copy(at - sizeof one, bytes);
            std::memcpy(&one, bytes.data(), sizeof one);
            if (one.header.type != PERF_RECORD_SAMPLE || one.header.size != sizeof one) {
                if (!passing_) missing(visit, loss_cause::damaged);
                passing_ = true;
                at -= 8;
                continue;
            }
            passing_ = false;
            at -= sizeof one;
            const bool from = one.ip >> 63 == 0, to = one.address >> 63 == 0;
            if (!from && !to) {
                ++filtered_;
                continue;
            }
            if (!from || !to) ++filtered_;
            branch made = from && to ? branch(one.ip, one.address)
                          : from     ? branch::only_from(one.ip)
                                     : branch::only_to(one.address);
            made.set_privilege(branch_privilege::user);
            ++seen;
            visit(static_cast<const branch&>(made));
        }
        if (strange) missing(visit, loss_cause::damaged);
        if (head > there) missing(visit, loss_cause::overwritten);
        return seen;
    }
    template <class Visit>
    std::uint64_t read(Visit&&) {
        return impl::refuse_visitor<Visit>();
    }
    [[nodiscard]] bool ended() const noexcept { return ended_; }
    [[nodiscard]] const loss_counts& lost() const noexcept { return lost_; }
    /// Records that were left out, or that lost a side, because of an address of the kernel.
    [[nodiscard]] std::uint64_t filtered() const noexcept { return filtered_; }

private:
    /// With PERF_SAMPLE_IP | PERF_SAMPLE_ADDR.
    struct sample {
        ::perf_event_header header;
        alignas(8) std::uint64_t ip;
        alignas(8) std::uint64_t address;
    };
    static_assert(sizeof(sample) == 24 && offsetof(sample, ip) == 8 &&
                  offsetof(sample, address) == 16);

    [[nodiscard]] static perf_event open(const perf_samples_options& options, perf_host host) {
        constexpr const char* name = "branch-instructions";
        if (!is_perf_size(options.bytes)) {
            throw setup_error(name, "the size must be a power of two, and whole pages", EINVAL);
        }
        if (const auto reason = missing_in_processor(host)) {
            throw perf_unavailable(name, *reason, ENODEV);
        }
        ::perf_event_attr attr{};
        attr.type = PERF_TYPE_HARDWARE;
        attr.config = PERF_COUNT_HW_BRANCH_INSTRUCTIONS;
        attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_ADDR;
        attr.exclude_idle = 1;
        return {name, {options.thread, options.cpu, options.on_exec}, attr, std::move(host)};
    }
    template <class Visit>
    void missing(Visit&& visit, loss_cause cause) {
        lost_.add(cause, 1);
        visit(branch_gap{0, cause, 0});
    }

    perf_event event_;
    perf_ring ring_;
    loss_counts lost_{};
    std::uint64_t filtered_ = 0;
    bool running_;
    bool passing_ = false;  ///< skipping bytes that are no sample; the gap is reported
    bool ended_ = false;
};
static_assert(branch_source<perf_samples>);

}  // namespace trace_ring::inline v1::x86
