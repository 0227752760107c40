// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file Strides: the difference between the address of a load or store and the address of the same
/// site's previous one, in the same thread and run. Keeps each site's most frequent strides in
/// constant memory: four of them, one of which is dropped when others have been as frequent.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "run.hpp"

namespace address_trace {

/// The kind of a site's strides.
enum class stride_kind : std::uint8_t {
    single,     ///< there are none, or few
    same,       ///< the same address again
    next,       ///< the size of the reference: an array from one end to the other
    near,       ///< less than a line apart
    far,        ///< more: structures, rows
    irregular,  ///< no stride makes up half
};
inline constexpr std::size_t stride_kinds = 6;

struct site_strides {
    site_id site = 0;
    std::uint64_t strides = 0;  ///< that there were
    std::int64_t most = 0;      ///< the one that came most often
    std::uint64_t times = 0;    ///< its count, at least: up to a fifth of all may be missing

    [[nodiscard]] double share() const noexcept {
        return strides == 0 ? 0 : static_cast<double>(times) / static_cast<double>(strides);
    }
    /// `size`: what the site loads or stores.
    [[nodiscard]] stride_kind kind(std::uint32_t size) const noexcept;
};

class strides final : public analysis {
public:
    /// Constant time for each reference.
    void take(const sited_run& run) override;

    /// Of the sites that have any, in the order of their numbers.
    [[nodiscard]] std::vector<site_strides> results() const;

private:
    static constexpr std::size_t kept = 4;

    struct candidate {
        std::int64_t stride = 0;
        std::uint64_t times = 0;   // count since it is listed
        std::uint64_t weight = 0;  // minus one for each other stride that found no room
    };
    struct state {
        std::uint64_t address = 0;
        std::uint64_t strides = 0;
        std::uint32_t thread = 0;
        bool used = false;
        std::array<candidate, kept> all{};
    };

    static void note(state& of, std::int64_t stride) noexcept;

    std::vector<state> by_site_;
};

[[nodiscard]] const char* name_of(stride_kind kind) noexcept;

}  // namespace address_trace
