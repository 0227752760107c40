// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The sites of a trace: each has a number, and how often it referenced something.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <trace_ring/record/event/references.hpp>

namespace address_trace {

using trace_ring::reference;
using trace_ring::reference_kind;

/// A site's number: 0, 1, 2, ... in the order in which they came.
using site_id = std::uint32_t;

/// What a site does, and how often it did. A site that references in several ways, as a hook that
/// is called with any size would, is as many.
struct site_count {
    std::uint64_t site = 0;  ///< 0: of sites that have no number of their own
    std::uint64_t count = 0;
    reference_kind kind = reference_kind::load;
    std::uint8_t size = 0;

    [[nodiscard]] std::uint64_t bytes() const noexcept { return count * size; }
};

/// Memory is bounded: there are `most` numbers at most, and what comes later shares one for each
/// kind and size, with the site 0.
class site_table {
public:
    static constexpr std::size_t default_most = std::size_t{1} << 20;

    explicit site_table(std::size_t most = default_most) : most_(most), slots_(smallest) {}

    /// Counts a reference. Returns its site's number. Constant time on average.
    [[gnu::always_inline]] site_id count(const reference& each) {
        slot* at = &slots_[first_slot(each.site)];
        if (at->site != each.site || at->way != way_of(each.kind, each.size)) [[unlikely]]
            at = &find(each.site, each.kind, each.size);
        ++at->count;
        return at->id;
    }

    /// All numbers are less.
    [[nodiscard]] site_id size() const noexcept { return next_; }
    /// Whether each site has a number of its own.
    [[nodiscard]] bool complete() const noexcept { return complete_; }
    /// By their numbers.
    [[nodiscard]] std::vector<site_count> all() const {
        std::vector<site_count> out(next_);
        for (const slot& each : slots_) {
            if (each.way != free) out[each.id] = {each.site, each.count, each.kind, each.size};
        }
        return out;
    }

private:
    using way_code = std::uint16_t;           // kind and size
    static constexpr way_code free = 0xFFFF;  // of no reference
    static constexpr std::size_t smallest = 1u << 12;
    static constexpr unsigned kept_free = 3;  // slots of four, so that most are found at once

    struct slot {
        std::uint64_t site = 0;
        std::uint64_t count = 0;
        site_id id = 0;
        way_code way = free;
        reference_kind kind = reference_kind::load;
        std::uint8_t size = 0;
    };

    [[nodiscard, gnu::always_inline]] static way_code way_of(reference_kind kind,
                                                             std::uint8_t size) noexcept {
        return static_cast<way_code>(static_cast<unsigned>(kind) << 8 | size);
    }
    [[nodiscard, gnu::always_inline]] std::size_t first_slot(std::uint64_t site) const noexcept {
        return static_cast<std::size_t>(site * 0x9E3779B97F4A7C15 >> shift_);
    }

    [[nodiscard]] slot& slot_of(std::uint64_t site, way_code is) noexcept {
        std::size_t at = first_slot(site);
        while (slots_[at].way != free && (slots_[at].site != site || slots_[at].way != is)) {
            at = (at + 1) & (slots_.size() - 1);
        }
        return slots_[at];
    }
    [[gnu::noinline]] slot& find(std::uint64_t site, reference_kind kind, std::uint8_t size) {
        const way_code is = way_of(kind, size);
        slot* at = &slot_of(site, is);
        if (at->way != free) return *at;
        if (next_ >= most_) {
            complete_ = false;
            site = 0;
            at = &slot_of(site, is);
            if (at->way != free) return *at;
        }
        if ((next_ + std::size_t{1}) * (kept_free + 1) > slots_.size()) {
            grow();
            at = &slot_of(site, is);
        }
        *at = {site, 0, next_++, is, kind, size};
        return *at;
    }
    void grow() {
        std::vector<slot> before(slots_.size() * 2);
        before.swap(slots_);
        --shift_;
        for (const slot& each : before) {
            if (each.way != free) slot_of(each.site, each.way) = each;
        }
    }

    std::size_t most_;
    std::vector<slot> slots_;
    unsigned shift_ = 64 - 12;
    site_id next_ = 0;
    bool complete_ = true;
};

}  // namespace address_trace
