// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The memory of a perf event: its control page, the ring of the kernel's own records behind it,
/// and the AUX area (perf_event_open(2)). This is the reader's part of the protocol; the kernel's
/// (kernel/events/ring_buffer.c) is named so that each ordering point has its partner.
// order: x86.perf.kernel:A pairs with x86.perf.read:A (the head)
// order: x86.perf.kernel:B pairs with x86.perf.read:B (the tail)

#include <trace_ring/x86/enabled.hpp>

#include <linux/perf_event.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include <trace_ring/atomic.hpp>
#include <trace_ring/large_files.hpp>
#include <trace_ring/policy/storage/mapping.hpp>

namespace trace_ring::inline v1::x86 {

/// A part of a perf event's memory, mapped.
class perf_mapping {
public:
    perf_mapping() noexcept = default;
    /// Throws setup_error with `name`, and mmap's error.
    perf_mapping(const std::string& name, int fd, std::uint64_t offset, std::size_t bytes,
                 bool writable) {
        void* const at =
            large_files::mmap(nullptr, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ,
                              MAP_SHARED, fd, large_files::at(offset));
        if (at == MAP_FAILED) {
            throw setup_error(name, "cannot map " + std::to_string(bytes) + " bytes", errno);
        }
        bytes_ = {static_cast<std::byte*>(at), bytes};
    }
    /// The other one has no memory afterwards.
    perf_mapping(perf_mapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
    /// Unmaps what it had.
    perf_mapping& operator=(perf_mapping&& other) noexcept {
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~perf_mapping() {
        if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
    }
    /// The mapped memory.
    [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }

private:
    std::span<std::byte> bytes_{};
};

/// Whether `bytes` is a power of two, and at least a page.
[[nodiscard]] inline bool is_perf_size(std::size_t bytes) noexcept {
    return std::has_single_bit(bytes) && bytes >= storage::machine_page_bytes();
}

/// The control page, and the ring of records behind it. For one reader.
class perf_ring {
public:
    /// `bytes` of records. Throws setup_error.
    perf_ring(const std::string& name, int fd, std::size_t bytes)
        : all_(name, fd, 0, storage::machine_page_bytes() + bytes, true),
          data_(all_.bytes().subspan(storage::machine_page_bytes())) {}

    /// A word of the control page: `offset` is the offset of a member of perf_event_mmap_page.
    [[nodiscard]] shared_atomic<std::uint64_t>& word(std::size_t offset) const noexcept {
        return word_at<std::uint64_t>(all_.bytes().data(), offset);
    }

    /// Calls `f(const perf_event_header&, span of const bytes)` for each record, with the bytes
    /// after its header, cut to 248. False: the bytes from some place on were no records, and were
    /// skipped.
    template <class Visit>
    bool read(Visit&& visit) {
        // order: x86.perf.read:A pairs with x86.perf.kernel:A
        const std::uint64_t head = word(offsetof(::perf_event_mmap_page, data_head)).load(acquire);
        auto& tail_word = word(offsetof(::perf_event_mmap_page, data_tail));
        std::uint64_t tail = tail_word.load(relaxed);  // relaxed: only this reader stores to it
        bool sound = head - tail <= data_.size() && (head | tail) % 8 == 0;
        while (sound && tail != head) {
            std::array<std::byte, 256> bytes{};
            copy(tail, std::span(bytes).first(sizeof(::perf_event_header)));
            ::perf_event_header header{};
            std::memcpy(&header, bytes.data(), sizeof header);
            sound =
                header.size >= sizeof header && header.size % 8 == 0 && header.size <= head - tail;
            if (!sound) break;
            const std::size_t size = std::min<std::size_t>(header.size, bytes.size());
            copy(tail, std::span(bytes).first(size));
            tail += header.size;
            visit(static_cast<const ::perf_event_header&>(header),
                  std::span<const std::byte>(bytes).first(size).subspan(sizeof header));
        }
        // order: x86.perf.read:B pairs with x86.perf.kernel:B
        tail_word.store(head, release);
        return sound;
    }

    /// Bytes of records that fit.
    [[nodiscard]] std::size_t size() const noexcept { return data_.size(); }

private:
    /// Copies the bytes at a position; at most as many as the ring has.
    void copy(std::uint64_t position, std::span<std::byte> to) const noexcept {
        for (std::size_t done = 0; done < to.size();) {
            const auto at = as_size((position + done) % data_.size());
            const std::size_t some = (std::min)(to.size() - done, data_.size() - at);
            std::memcpy(to.data() + done, data_.data() + at, some);
            done += some;
        }
    }

    perf_mapping all_;
    std::span<std::byte> data_;
};

}  // namespace trace_ring::inline v1::x86
