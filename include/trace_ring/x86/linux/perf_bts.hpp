// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Reads branches by Linux's intel_bts PMU, which uses the processor's branch trace store: a perf
/// event with an AUX area (arch/x86/events/intel/bts.c in the kernel; perf_event_open(2)).
/// @code
///   trace_ring::x86::perf_bts branches({.thread = child});
///   branches.start();
///   while (!branches.ended()) { branches.wait(100); branches.read(visitor); }
/// @endcode
/// If a full trace is not read in time, the kernel truncates it and disables the event; `read`
/// enables it again when there is room, and returns a gap of unknown length in that place. A
/// snapshot is read once, and ends the trace.

#include <trace_ring/x86/enabled.hpp>

#include <linux/perf_event.h>
#include <poll.h>
#include <sys/types.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <trace_ring/atomic.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/policy/storage/mapping.hpp>
#include <trace_ring/x86/branch_source.hpp>
#include <trace_ring/x86/linux/aux_buffer.hpp>
#include <trace_ring/x86/linux/perf_event.hpp>
#include <trace_ring/x86/linux/perf_host.hpp>
#include <trace_ring/x86/linux/perf_ring.hpp>

namespace trace_ring::inline v1::x86 {

struct perf_bts_options {
    ::pid_t thread = 0;                ///< 0: the calling one
    int cpu = -1;                      ///< -1: any
    std::size_t aux_bytes = 4 << 20;   ///< for branches; a power of two of pages
    std::size_t data_bytes = 1 << 16;  ///< for the kernel's events; a power of two of pages
    bool snapshot = false;             ///< only the newest branches, not all
    bool on_exec = false;              ///< begins when the thread executes a program
};

/// A model of branch_source. For one thread at a time.
class perf_bts {
public:
    static constexpr branch_character character{.order = branch_order::oldest_first,
                                                .delivery = branch_delivery::memory_ring,
                                                .tells_prediction = true,
                                                .tells_privilege = true};

    /// Opens the event, disabled. Throws perf_unavailable, which says which condition fails, and
    /// setup_error for an invalid size.
    explicit perf_bts(const perf_bts_options& options = {}, perf_host host = {})
        : event_(open(options, std::move(host))),
          ring_("intel_bts", event_.get(), options.data_bytes),
          area_(map_area(options)),
          aux_(area_.bytes(), ring_.word(offsetof(::perf_event_mmap_page, aux_head)),
               ring_.word(offsetof(::perf_event_mmap_page, aux_tail)),
               options.snapshot ? aux_buffer::mode::snapshot : aux_buffer::mode::full_trace),
          snapshot_(options.snapshot),
          running_(options.on_exec) {}

    /// Starts or continues the trace. Throws setup_error.
    void start() {
        event_.enable();
        running_ = true;
        ended_ = false;
    }
    /// Stops the trace. Stored branches can still be read.
    void stop() {
        event_.disable();
        running_ = false;
    }
    /// Waits until there are branches to read, or the thread has ended, for at most `milliseconds`
    /// (negative: for ever). False: neither has happened.
    bool wait(int milliseconds) noexcept {
        ::pollfd one{event_.get(), POLLIN, 0};
        return ::poll(&one, 1, milliseconds) > 0;
    }

    /// See branch_source. For a snapshot it stops the trace and reads all of it.
    template <class Visit>
    std::uint64_t read(Visit&& visit) {
        if (ended_) return 0;
        const bool last = snapshot_ || !running_ || hung_up();
        if (snapshot_ && running_) stop();
        // The head first: the kernel's events about the bytes before it are there already.
        aux_.look_once();
        const bool disabled = read_events();
        const std::uint64_t seen = aux_.read(visit);
        if (last) {
            ended_ = true;
        } else if (disabled) {
            start();
            ++restarts_;
        }
        return seen;
    }
    /// The trace was stopped, its thread has ended or its snapshot was taken, and all is read.
    [[nodiscard]] bool ended() const noexcept { return ended_; }
    [[nodiscard]] const loss_counts& lost() const noexcept { return aux_.lost(); }
    /// How often the kernel has disabled the event because there was no room.
    [[nodiscard]] std::uint64_t restarts() const noexcept { return restarts_; }
    /// The area, to be drained in place (drain/session.hpp) instead of `read`. Then call
    /// `read_events` to note gaps, and enable the event if it says so.
    [[nodiscard]] aux_buffer& area() noexcept { return aux_; }

    /// Reads the kernel's events, and notes gaps in the area. True: the kernel has disabled the
    /// event.
    bool read_events() {
        bool disabled = false;
        const bool sound =
            ring_.read([&](const ::perf_event_header& header, std::span<const std::byte> rest) {
                if (header.type == PERF_RECORD_AUX) {
                    disabled = one_area(rest) || disabled;
                } else if (header.type == PERF_RECORD_LOST) {
                    // A "truncated" may be among the lost events, so assume it.
                    note_gap(announced_, loss_cause::refused);
                    disabled = true;
                }
            });
        if (!sound) {
            note_gap(announced_, loss_cause::damaged);
            disabled = true;
        }
        return disabled;
    }

private:
    [[nodiscard]] static perf_event open(const perf_bts_options& options, perf_host host) {
        if (!is_perf_size(options.aux_bytes) || !is_perf_size(options.data_bytes)) {
            throw setup_error("intel_bts", "sizes must be powers of two, and whole pages", EINVAL);
        }
        const auto type = host.number(intel_bts_type);
        if (!type) throw perf_unavailable("intel_bts", why_no_bts(host), ENODEV);
        ::perf_event_attr attr{};
        attr.type = static_cast<std::uint32_t>(*type);
        return {"intel_bts", {options.thread, options.cpu, options.on_exec}, attr, std::move(host)};
    }

    [[nodiscard]] perf_mapping map_area(const perf_bts_options& options) {
        const std::uint64_t offset = storage::machine_page_bytes() + options.data_bytes;
        const auto set = [this](std::size_t member, std::uint64_t value) {
            ring_.word(member).store(value, relaxed);  // relaxed: a system call follows
        };
        set(offsetof(::perf_event_mmap_page, aux_offset), offset);
        set(offsetof(::perf_event_mmap_page, aux_size), options.aux_bytes);
        try {
            return {"intel_bts", event_.get(), offset, options.aux_bytes, !options.snapshot};
        } catch (const setup_error& error) {
            const int code = error.code().value();
            if (code != EPERM && code != ENOMEM) throw;
            throw perf_unavailable("intel_bts", perf_reason::memory_limit, code);
        }
    }

    [[nodiscard]] bool hung_up() const noexcept {
        ::pollfd one{event_.get(), 0, 0};
        return ::poll(&one, 1, 0) > 0 && (one.revents & POLLHUP) != 0;
    }

    /// PERF_RECORD_AUX: u64 aux_offset, aux_size, flags. True: the event was disabled with it.
    [[nodiscard]] bool one_area(std::span<const std::byte> rest) {
        std::array<std::uint64_t, 3> words{};
        if (rest.size() < sizeof words) {
            note_gap(announced_, loss_cause::damaged);
            return false;
        }
        std::memcpy(words.data(), rest.data(), sizeof words);
        const auto [offset, size, flags] = words;
        announced_ = offset + size;
        if ((flags & (PERF_AUX_FLAG_PARTIAL | PERF_AUX_FLAG_COLLISION)) != 0) {
            note_gap(offset, loss_cause::refused);
        }
        if ((flags & PERF_AUX_FLAG_TRUNCATED) == 0) return false;
        note_gap(announced_, loss_cause::refused);
        return true;
    }
    void note_gap(std::uint64_t at, loss_cause cause) {
        // A snapshot's offsets are no positions, and its missing records were overwritten.
        if (!snapshot_) aux_.note_gap(at, 0, cause);
    }

    perf_event event_;
    perf_ring ring_;
    perf_mapping area_;
    aux_buffer aux_;
    std::uint64_t announced_ = 0;  ///< end of the bytes that the kernel's events describe
    std::uint64_t restarts_ = 0;
    bool snapshot_;
    bool running_;
    bool ended_ = false;
};
static_assert(branch_source<perf_bts>);

}  // namespace trace_ring::inline v1::x86
