// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A trace file that this process maps, though not to record: to control it or to drain it. As long
/// as the file is open it is not trimmed.

#include <cerrno>
#include <cstdint>
#include <string>

#include <trace_ring/format/view.hpp>
#include <trace_ring/policy/storage/mapping.hpp>
#include <trace_ring/recorder/file/kept_file.hpp>
#include <trace_ring/recorder/trim/trim.hpp>
#include <trace_ring/setup_error.hpp>

namespace trace_ring::inline v1::impl {

/// For set-up. One thread at a time.
class outside_trace : public layout::view {
public:
    outside_trace() noexcept = default;
    outside_trace(const outside_trace&) = delete;
    outside_trace& operator=(const outside_trace&) = delete;
    /// If no other process has the file, it is then about as long as its contents.
    ~outside_trace() {
        memory_.reset();
        file_.close_and(trim_file);
    }

    /// Opens a trace file, or `/proc/PID/fd/N` of a memory file, makes it whole if it was trimmed,
    /// and maps it. `to_grow`: with the room that its writers map. Throws setup_error, which names
    /// the file, the offset and the cause.
    [[gnu::cold]] void open_file(const std::string& name, bool to_grow) {
        file_.keep(open_to_map(name), name.c_str());
        file_.has_name(name.c_str());
        const std::uint64_t bytes = storage::file_bytes(file_.number());
        if (bytes == 0) fail_setup(name, "offset 0: the file is empty", EINVAL);
        memory_ = storage::mapping::of_file(name, file_.number(), bytes);
        if (const auto fault = open(memory_.data(), bytes))
            fail_setup(name, fault_at(fault.offset, fault.what));
        if (!to_grow) return;
        memory_ = storage::mapping::of_file(name, file_.number(), plan().file_limit);
        static_cast<layout::view&>(*this) = layout::view(memory_.data(), plan());
    }
    [[nodiscard]] const kept_file& file() const noexcept { return file_; }

private:
    kept_file file_{};
    storage::mapping memory_{};
};

}  // namespace trace_ring::inline v1::impl
