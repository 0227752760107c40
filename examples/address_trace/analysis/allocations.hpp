// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file Finds the allocation that contains an address.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <vector>

#include "run.hpp"

namespace address_trace {

/// Memory that an allocator returned, and where it was called.
struct allocated_range {
    std::uint64_t begin = 0, end = 0;
    site_id site = 0;

    friend bool operator==(const allocated_range&, const allocated_range&) = default;
};

/// The last allocation of each byte. A freed block keeps its owner until it is allocated again.
/// Memory is bounded: when there are `most` ranges, further ones are counted and not kept.
class allocations final : public analysis {
public:
    static constexpr std::size_t default_most = std::size_t{1} << 20;

    explicit allocations(std::size_t most = default_most) : most_(most) {}

    /// Logarithmic for each allocation, on average.
    void take(const sited_run& run) override {
        for (const sited_reference& each : run.all) {
            if (each.kind == reference_kind::allocation)
                add({each.address, each.address + each.size, each.site});
        }
    }
    /// The ranges with a byte in [address, address + bytes), by address.
    [[nodiscard]] std::vector<allocated_range> find(std::uint64_t address,
                                                    std::uint64_t bytes) const {
        std::vector<allocated_range> out;
        for (auto at = first_behind(address); at != all_.end() && at->first < address + bytes; ++at)
            out.push_back({at->first, at->second.end, at->second.site});
        return out;
    }
    [[nodiscard]] std::uint64_t left_out() const noexcept { return left_out_; }

private:
    struct rest {
        std::uint64_t end;
        site_id site;
    };
    using ranges = std::map<std::uint64_t, rest>;

    /// The first range that ends after the address.
    [[nodiscard]] ranges::const_iterator first_behind(std::uint64_t address) const {
        auto at = all_.upper_bound(address);
        if (at != all_.begin() && std::prev(at)->second.end > address) --at;
        return at;
    }
    void add(const allocated_range& made) {
        if (made.end <= made.begin) return;
        for (auto at = first_behind(made.begin); at != all_.end() && at->first < made.end;)
            at = all_.erase(at);
        if (all_.size() < most_) {
            all_[made.begin] = {made.end, made.site};
        } else {
            ++left_out_;
        }
    }

    std::size_t most_;
    ranges all_;  // no two of them overlap
    std::uint64_t left_out_ = 0;
};

}  // namespace address_trace
