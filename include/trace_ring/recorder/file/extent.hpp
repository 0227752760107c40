// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// How many sub-buffers of a trace can be touched. The file has their number in a word that others
/// may have stored anything into, and touching a page behind the end of a file raises SIGBUS. So
/// the word is believed only as far as the file is known to reach; when it is larger, because
/// the file has grown, the kernel reports the file's length.

#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/bounds.hpp>
#include <trace_ring/format/view.hpp>
#include <trace_ring/policy/storage/mapping.hpp>
#include <trace_ring/recorder/file/kept_file.hpp>

namespace trace_ring::inline v1::impl {

class extent {
public:
    extent() noexcept = default;
    extent(const extent&) = delete;
    extent& operator=(const extent&) = delete;

    /// `file` null: the memory exists up to the limit. Both must stay valid. `behind`: bytes that
    /// must exist behind a sub-buffer, unless the limit comes first. Set-up.
    void begin(const layout::view& of, const kept_file* file, std::uint64_t behind = 0) noexcept {
        of_ = &of;
        behind_ = behind;
        file_ = file;
        // relaxed: no other thread has it yet
        seen_.store(file == nullptr ? of.plan().sub_buffer_limit : 0, relaxed);
    }

    /// Sub-buffers that exist and can be touched. A system call after growth. Signal-safe.
    [[nodiscard]] std::uint64_t now() const noexcept {
        // order: grow.use:F pairs with grow:A
        const std::uint64_t said =
            least(of_->ring().capacity.load(acquire), of_->plan().sub_buffer_limit);
        // relaxed: a file keeps what it has
        if (said <= seen_.load(relaxed)) [[likely]]
            return said;
        return look(said);
    }

private:
    [[nodiscard, gnu::cold, gnu::noinline]] std::uint64_t look(std::uint64_t said) const noexcept {
        const std::uint64_t bytes =
            file_->use([](int fd) { return fd < 0 ? 0 : storage::file_bytes(fd); });
        const std::uint64_t needed = bytes >= of_->plan().file_limit ? 0 : behind_;
        const std::uint64_t there =
            layout::present_sub_buffers(of_->plan(), bytes - least(bytes, needed));
        std::uint64_t seen = seen_.load(relaxed);  // relaxed, both: as above
        while (seen < there && !seen_.compare_exchange_weak(seen, there, relaxed)) {
        }
        return least(said, greatest(seen, there));
    }

    const layout::view* of_ = nullptr;
    const kept_file* file_ = nullptr;
    std::uint64_t behind_ = 0;
    mutable atomic<std::uint64_t> seen_{0};
};

}  // namespace trace_ring::inline v1::impl
