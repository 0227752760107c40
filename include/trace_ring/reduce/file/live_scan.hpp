// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Reads the tables and lists the sub-buffers of a trace that is being written, so that both match.
/// Records that the tables count must be in sub-buffers that were listed afterwards, or they would
/// be reported as lost and then found. And the tables must have the lane of each sub-buffer found:
/// of a lane that began later, an earlier sub-buffer may have been missed (chains.hpp).

#include <algorithm>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include <trace_ring/reduce/file/chains.hpp>

namespace trace_ring::inline v1::reduce {

class live_scan {
public:
    explicit live_scan(tables& in) noexcept : in_(&in) {}
    live_scan(live_scan&&) = default;
    live_scan& operator=(live_scan&&) = default;
    live_scan(const live_scan&) = delete;
    live_scan& operator=(const live_scan&) = delete;

    /// Reads the tables again, then lists sub-buffers; both once more if lanes began in between. If
    /// lanes begin each time, those that began during the last look are left to the next one.
    /// Without a next one (`later`), lanes that the file does not list either are kept, as they
    /// have gone. `wanted` and `within` are as in chain_scan::scan.
    template <class Wanted>
    [[nodiscard]] chain_list look(look_at where, bool later, const Wanted& wanted,
                                  tick_range within = {}) {
        in_->refresh();
        for (int tries = most_tries;; --tries) {
            chain_list found = chain_scan(*in_).scan(where, wanted, within);
            find_strangers(found);
            if (strangers_.empty()) return found;
            // A lane is listed before it has a sub-buffer. If no lane has come since the tables
            // were read, the lanes that they lack have gone, and their entries belong to others.
            const std::vector<std::uint32_t> fresh = in_->new_lanes();
            if (fresh.empty()) {
                gone_.insert(strangers_.begin(), strangers_.end());
                return found;
            }
            if (tries == 0) {
                leave(found, later ? strangers_ : fresh);
                return found;
            }
            in_->refresh();
        }
    }

private:
    static constexpr int most_tries = 4;

    void find_strangers(const chain_list& found) {
        strangers_.clear();
        for (const auto& chain : found.chains) {
            if (!in_->note_lane(chain.lane).listed && gone_.count(chain.lane) == 0) {
                strangers_.push_back(chain.lane);
            }
        }
    }
    /// `lanes` ascend.
    static void leave(chain_list& found, const std::vector<std::uint32_t>& lanes) {
        std::erase_if(found.chains, [&lanes](const chain& each) {
            return std::binary_search(lanes.begin(), lanes.end(), each.lane);
        });
    }

    tables* in_;
    std::unordered_set<std::uint32_t> gone_{};
    std::vector<std::uint32_t> strangers_{};
};

}  // namespace trace_ring::inline v1::reduce
