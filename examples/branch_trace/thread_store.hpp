// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// One traced thread's branches in the layout of the debug store, stored by this program instead of
/// a processor: base, index, absolute maximum and threshold in a management area, and the records
/// from the base on, in the traced program's word size. A session of drain/ empties it. Branches
/// without room are counted, so the buffer and the threshold that would have sufficed are known
/// exactly.
///
/// A processor sets at most bit 4 in a record's flags. Here, bits 8 to 15 are the branch's kind, if
/// the source provides it.

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include <trace_ring/drain/drainable.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/record/data_model.hpp>
#include <trace_ring/x86/branch_record.hpp>
#include <trace_ring/x86/ds/hardware/ds_layout.hpp>
#include <trace_ring/x86/loss_advice.hpp>
#include <trace_ring/x86/loss_meter.hpp>

#include "branch_events.hpp"

namespace branches {

/// Memory whose addresses fit the model: below 4 GiB for 32-bit programs.
class store_memory {
public:
    store_memory(std::size_t bytes, bool low)
        : bytes_(bytes),
          at_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | (low && sizeof(void*) == 8 ? MAP_32BIT : 0), -1,
                     0)) {
        if (at_ == MAP_FAILED) {
            throw std::system_error(errno, std::generic_category(), "memory for branch records");
        }
    }
    store_memory(const store_memory&) = delete;
    store_memory& operator=(const store_memory&) = delete;
    ~store_memory() { ::munmap(at_, bytes_); }

    [[nodiscard]] void* data() const noexcept { return at_; }

private:
    std::size_t bytes_;
    void* at_;
};

template <trace_ring::record::data_model Model>
class thread_store {
public:
    using record_type = trace_ring::record::branch_record<Model>;
    using address = typename record_type::address;

    class portion {
    public:
        [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
            return std::as_bytes(records_);
        }
        [[nodiscard]] std::uint64_t records() const noexcept { return records_.size(); }
        [[nodiscard]] const trace_ring::loss_counts& lost() const noexcept { return lost_; }

    private:
        friend thread_store;
        std::span<const record_type> records_;
        trace_ring::loss_counts lost_;
    };

    /// @param bytes     of the buffer; rounded down to whole records, at least one
    /// @param threshold records at which it is to be drained; more than there are: when it is full
    thread_store(std::size_t bytes, std::uint64_t threshold)
        : records_(std::max<std::size_t>(bytes / sizeof(record_type), 1)),
          memory_(area_bytes + records_ * sizeof(record_type), Model::pointer_bytes == 4),
          area_(*new (memory_.data()) trace_ring::x86::ds_area<Model>),
          first_(reinterpret_cast<record_type*>(static_cast<std::byte*>(memory_.data()) +
                                                area_bytes)) {
        area_.bts.base = area_.bts.index = linear(first_);
        area_.bts.maximum = linear(first_ + records_);
        const std::uint64_t at = std::clamp<std::uint64_t>(threshold, 1, records_);
        area_.bts.threshold = linear(first_ + at);
        threshold_ = at;
    }

    /// Stores one taken branch. True: the threshold is reached, at which a processor would
    /// interrupt. Without room, the branch is refused and counted.
    bool store(branch_kind kind, std::uint64_t from, std::uint64_t to) noexcept {
        auto& bts = area_.bts;
        if (bts.index >= bts.maximum) {
            lost_.add(trace_ring::loss_cause::refused, 1);
            return true;
        }
        fresh_ = false;
        auto* const at = new (first_ + stored()) record_type;
        at->from = static_cast<address>(from);
        at->to = static_cast<address>(to);
        at->flags = static_cast<address>(kind) << kind_shift;
        bts.index = static_cast<address>(bts.index + sizeof(record_type));
        return bts.index >= bts.threshold;
    }
    [[nodiscard]] static branch_kind kind_of(const record_type& record) noexcept {
        const auto kind = static_cast<unsigned>(record.flags >> kind_shift & 0xFFU);
        return kind < branch_kinds ? static_cast<branch_kind>(kind) : branch_kind::unknown;
    }
    /// Nothing has been stored yet.
    [[nodiscard]] bool fresh() const noexcept { return fresh_; }
    [[nodiscard]] bool empty() const noexcept { return stored() == 0 && lost_.total() == 0; }
    [[nodiscard]] const trace_ring::x86::ds_area<Model>& area() const noexcept { return area_; }

    // --- Drained: by this thread, which is also the one that stores -----------------------------
    void attach() {
        if (std::exchange(attached_, true)) {
            throw std::system_error(EBUSY, std::generic_category(), "branch records");
        }
        seen_ = 0;
    }
    void detach() noexcept { attached_ = false; }
    [[nodiscard]] bool take(portion& out) noexcept {
        if (seen_ >= stored()) return false;
        out.records_ = std::span<const record_type>(first_ + seen_, stored() - seen_);
        out.lost_ = {};
        seen_ = stored();
        return true;
    }
    void consume(portion&) noexcept {
        area_.bts.index = area_.bts.base;
        seen_ = 0;
    }
    void keep(portion&) noexcept {}
    template <class Visit>
    std::uint64_t visit(const portion& what, Visit&& visit) {
        for (const record_type& record : what.records_) visit(record);
        return what.records_.size();
    }
    /// Refused branches came after all stored ones.
    [[nodiscard]] trace_ring::loss_counts rest() noexcept {
        if (const std::uint64_t lost = lost_.total(); lost != 0) advice_ = advise(lost);
        return std::exchange(lost_, {});
    }
    /// The advice for the newest loss; empty: there was none.
    [[nodiscard]] const std::optional<trace_ring::x86::loss_advice>& advice() const noexcept {
        return advice_;
    }

private:
    static constexpr unsigned kind_shift = 8;
    // The buffer begins on a cache line, as recommended.
    static constexpr std::size_t area_bytes =
        (sizeof(trace_ring::x86::ds_area<Model>) + 63) / 64 * 64;

    [[nodiscard]] static address linear(const record_type* at) noexcept {
        return static_cast<address>(reinterpret_cast<std::uintptr_t>(at));
    }
    [[nodiscard]] trace_ring::x86::loss_advice advise(std::uint64_t lost) const noexcept {
        trace_ring::x86::loss_advice out;
        out.record_bytes = sizeof(record_type);
        out.bytes = records_ * sizeof(record_type);
        out.records = records_;
        out.threshold = threshold_;
        out.lost = lost;
        trace_ring::x86::loss_meter::advise_exactly(out, 0);
        return out;
    }
    [[nodiscard]] std::size_t stored() const noexcept {
        return static_cast<std::size_t>(area_.bts.index - area_.bts.base) / sizeof(record_type);
    }

    std::size_t records_;
    std::uint64_t threshold_ = 0;
    store_memory memory_;
    trace_ring::x86::ds_area<Model>& area_;
    record_type* first_;
    std::size_t seen_ = 0;
    bool attached_ = false;
    bool fresh_ = true;
    trace_ring::loss_counts lost_;
    std::optional<trace_ring::x86::loss_advice> advice_;
};

static_assert(trace_ring::drain::advises<thread_store<trace_ring::record::lp64>>);
static_assert(trace_ring::drain::advises<thread_store<trace_ring::record::ilp32>>);

}  // namespace branches
