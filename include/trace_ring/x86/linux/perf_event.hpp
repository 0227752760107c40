// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A perf event that counts each branch of a user program, for the branch trace store.

#include <trace_ring/x86/enabled.hpp>

#include <linux/perf_event.h>
#include <sys/types.h>

#include <cerrno>
#include <utility>

#include <trace_ring/policy/storage/mapping.hpp>
#include <trace_ring/x86/linux/perf_host.hpp>

namespace trace_ring::inline v1::x86 {

/// Neither copied nor moved. For one thread at a time.
class perf_event {
public:
    /// What the event observes.
    struct place {
        ::pid_t thread = 0;    ///< 0: the calling one
        int cpu = -1;          ///< -1: any
        bool on_exec = false;  ///< enabled when the thread executes a program
    };

    /// Opens the event, disabled, with a period of one and without the kernel's branches; `attr`
    /// has its other attributes. `name` is for messages, and must outlive it. Throws
    /// perf_unavailable, which says which condition fails.
    perf_event(const char* name, const place& where, ::perf_event_attr attr, perf_host host)
        : name_(name), host_(std::move(host)), event_(open(name, where, attr, host_)) {}
    perf_event(const perf_event&) = delete;
    perf_event& operator=(const perf_event&) = delete;

    /// The file descriptor.
    [[nodiscard]] int get() const noexcept { return event_.get(); }
    /// Both throw setup_error.
    void enable() { control(PERF_EVENT_IOC_ENABLE, "cannot be enabled"); }
    /// Throws setup_error.
    void disable() { control(PERF_EVENT_IOC_DISABLE, "cannot be disabled"); }

private:
    [[nodiscard]] static file_descriptor open(const char* name, const place& where,
                                              ::perf_event_attr& attr, const perf_host& host) {
        attr.size = sizeof attr;
        attr.sample_period = 1;
        attr.disabled = 1;
        attr.exclude_kernel = 1;
        attr.exclude_hv = 1;
        attr.enable_on_exec = where.on_exec ? 1 : 0;
        const int fd = host.open(attr, where.thread, where.cpu);
        if (fd < 0) {
            const int error = errno;
            throw perf_unavailable(name, why_not_opened(host, error), error);
        }
        return file_descriptor(fd);
    }
    void control(unsigned long request, const char* failed) {
        if (host_.control(event_.get(), request) != 0) throw setup_error(name_, failed, errno);
    }

    const char* name_;
    perf_host host_;
    file_descriptor event_;
};

}  // namespace trace_ring::inline v1::x86
