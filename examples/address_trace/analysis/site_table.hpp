// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file The sites of a trace, with their numbers and the number of their references.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <trace_ring/instrument/references.hpp>

namespace address_trace {

using trace_ring::reference;
using trace_ring::reference_kind;

/// A site's number: 0, 1, 2, ... in the order in which they came.
using site_id = std::uint32_t;

/// What one site does. All eight bytes are one number to the processor.
struct site_use {
    site_id site : 28 = 0;
    reference_kind kind : 4 = reference_kind::load;
    std::uint32_t size = 0;
};
static_assert(sizeof(site_use) == 8);

/// What a site does, and how often. A site that references in several ways, such as a
/// compare-and-exchange, has several entries.
struct site_count {
    std::uint64_t site = 0;  ///< 0: for all sites without a separate number
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
    reference_kind kind = reference_kind::load;
    std::uint32_t size = 0;  ///< of each reference; 0: sizes differ
};

/// Memory is bounded: there are at most `most` numbers. Later sites share one number per kind, with
/// the site 0.
class site_table {
public:
    static constexpr site_id most_sites = (1U << 28) - 1;
    static constexpr std::size_t default_most = std::size_t{1} << 20;

    /// `most`: most_sites at most.
    explicit site_table(std::size_t most = default_most) : most_(most), slots_(smallest) {}

    /// Counts a reference. Constant time on average.
    [[gnu::always_inline]] site_use count(const reference& each) {
        slot* at = &slots_[first_slot(each.site)];
        if (at->site != each.site || !at->is(each.kind, each.size)) [[unlikely]]
            return count_slowly(each);
        ++at->count;
        return at->use;
    }

    /// All numbers are less.
    [[nodiscard]] site_id size() const noexcept { return next_; }
    /// Whether each site has a separate number.
    [[nodiscard]] bool complete() const noexcept { return complete_; }
    /// By their numbers.
    [[nodiscard]] std::vector<site_count> all() const {
        std::vector<site_count> out(next_);
        for (const slot& each : slots_) {
            if (each.is_free()) continue;
            const std::uint64_t bytes = each.count * each.use.size + each.more_bytes;
            out[each.use.site] = {each.site, each.count, bytes, each.use.kind,
                                  each.sizes_differ ? 0 : each.use.size};
        }
        return out;
    }

private:
    static constexpr unsigned smallest_bits = 12;
    static constexpr std::size_t smallest = std::size_t{1} << smallest_bits;
    static constexpr std::size_t slots_per_site = 4;  // at least, so that most look-ups succeed at
                                                      // the first slot
    static constexpr auto no_kind = static_cast<reference_kind>(0xF);

    struct slot {
        std::uint64_t site = 0;
        std::uint64_t count = 0;
        site_use use{0, no_kind, 0};  // with the size of the first reference
        bool sizes_differ = false;
        std::uint64_t more_bytes = 0;  // beyond a uniform size; modulo 2^64

        [[nodiscard]] bool is_free() const noexcept { return use.kind == no_kind; }
        [[nodiscard, gnu::always_inline]] bool is(reference_kind kind,
                                                  std::uint32_t size) const noexcept {
            return (use.kind == kind) & (use.size == size);
        }
    };

    [[nodiscard, gnu::always_inline]] std::size_t first_slot(std::uint64_t site) const noexcept {
        return static_cast<std::size_t>(site * 0x9E3779B97F4A7C15 >> shift_);
    }
    /// Its slot, or the free one where it belongs.
    [[nodiscard]] slot& slot_of(std::uint64_t site, reference_kind kind) noexcept {
        std::size_t at = first_slot(site);
        while (!slots_[at].is_free() && (slots_[at].site != site || slots_[at].use.kind != kind))
            at = (at + 1) & (slots_.size() - 1);
        return slots_[at];
    }
    [[gnu::noinline]] site_use count_slowly(const reference& each) {
        slot& at = find(each);
        ++at.count;
        site_use out = at.use;
        if (each.size != at.use.size) {
            at.sizes_differ = true;
            at.more_bytes += std::uint64_t{each.size} - at.use.size;
            out.size = each.size;
        }
        return out;
    }
    [[nodiscard]] slot& find(const reference& each) {
        slot* at = &slot_of(each.site, each.kind);
        if (!at->is_free()) return *at;
        std::uint64_t site = each.site;
        if (next_ >= most_) {
            complete_ = false;
            site = 0;
            at = &slot_of(site, each.kind);
            if (!at->is_free()) return *at;
        }
        if ((next_ + std::size_t{1}) * slots_per_site > slots_.size()) {
            grow();
            at = &slot_of(site, each.kind);
        }
        slot made;
        made.site = site;
        made.use.site = next_++ & most_sites;
        made.use.kind = each.kind;
        made.use.size = each.size;
        return *at = made;
    }
    void grow() {
        std::vector<slot> before(slots_.size() * 2);
        before.swap(slots_);
        --shift_;
        for (const slot& each : before) {
            if (!each.is_free()) slot_of(each.site, each.use.kind) = each;
        }
    }

    std::size_t most_;
    std::vector<slot> slots_;
    unsigned shift_ = 64 - smallest_bits;
    site_id next_ = 0;
    bool complete_ = true;
};

}  // namespace address_trace
