// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// How many sub-buffers of a trace can be touched. The file has their number in a word that others
/// may have stored anything into, and touching a page behind the end of a file raises SIGBUS. So
/// the word is believed only as far as the file is known to reach; when it is larger, as it is
/// after the file has grown, the kernel is asked for the file's length.

#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/bounds.hpp>
#include <trace_ring/format/check_layout.hpp>
#include <trace_ring/policy/storage/mapping.hpp>
#include <trace_ring/recorder/file/kept_file.hpp>

namespace trace_ring::inline v1::impl {

class extent {
public:
    extent() noexcept = default;
    extent(const extent&) = delete;
    extent& operator=(const extent&) = delete;

    /// `said`: the word of the file; `file` null: the memory exists up to the limit. Both must stay
    /// valid. `behind`: bytes that must exist behind a sub-buffer, unless the limit comes first.
    /// Set-up.
    void begin(const shared_atomic<std::uint64_t>& said, const layout::plan& plan,
               const kept_file* file, std::uint64_t behind = 0) noexcept {
        said_ = &said;
        behind_ = behind;
        plan_ = plan;
        file_ = file;
        // relaxed: no other thread has it yet
        seen_.store(file == nullptr ? plan.sub_buffer_limit : 0, relaxed);
    }

    /// Sub-buffers that exist and can be touched. A system call after growth. Signal-safe.
    [[nodiscard]] std::uint64_t now() const noexcept {
        // order: grow.use:F pairs with grow:A
        const std::uint64_t said = least(said_->load(acquire), plan_.sub_buffer_limit);
        // relaxed: a file keeps what it has
        if (said <= seen_.load(relaxed)) [[likely]]
            return said;
        return look(said);
    }

private:
    [[nodiscard, gnu::cold, gnu::noinline]] std::uint64_t look(std::uint64_t said) const noexcept {
        const std::uint64_t bytes =
            file_->use([](int fd) { return fd < 0 ? 0 : storage::file_bytes(fd); });
        const std::uint64_t needed = bytes >= plan_.file_limit ? 0 : behind_;
        const std::uint64_t there =
            layout::present_sub_buffers(plan_, bytes - least(bytes, needed));
        std::uint64_t seen = seen_.load(relaxed);  // relaxed, both: as above
        while (seen < there && !seen_.compare_exchange_weak(seen, there, relaxed)) {
        }
        return least(said, greatest(seen, there));
    }

    const shared_atomic<std::uint64_t>* said_ = nullptr;
    const kept_file* file_ = nullptr;
    std::uint64_t behind_ = 0;
    layout::plan plan_{};
    mutable atomic<std::uint64_t> seen_{0};
};

}  // namespace trace_ring::inline v1::impl
