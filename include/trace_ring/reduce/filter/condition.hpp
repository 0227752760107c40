// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A condition that a filter asks of records, many in a row at a time, so that it costs little for
/// each.
/// @code
///   struct long_ones : trace_ring::reduce::condition {
///       portion choose(const trace_ring::reduce::record_run& of) const override {
///           return of.front().bytes() > 64 ? portion{0, of.size()} : portion{of.size(), 0};
///       }
///   };
/// @endcode

#include <cstddef>
#include <memory>

#include <trace_ring/reduce/item.hpp>

namespace trace_ring::inline v1::reduce {

/// Asked by one cursor at a time. All functions but `choose` may say yes if they do not know.
class condition {
public:
    condition() = default;
    condition(const condition&) = delete;
    condition& operator=(const condition&) = delete;
    virtual ~condition() = default;

    /// Whether it leaves out whole lanes, by their entries in the tables. Then, as with any choice
    /// of lanes, losses without a lane are not reported.
    [[nodiscard]] virtual bool chooses_lanes() const { return false; }
    /// False: no record of this lane is wanted, and none is read.
    [[nodiscard]] virtual bool may_want(const lane_info&) const { return true; }
    /// False: no record of this event is wanted. Null: an event that the dictionary lacks.
    [[nodiscard]] virtual bool may_want(const event_type*) const { return true; }

    struct portion {
        std::size_t skip = 0;  ///< this many are not wanted,
        std::size_t take = 0;  ///< and this many after them are; 0: no others are
    };
    /// Makes a copy with the same answers for another thread to ask; null: not possible.
    [[nodiscard]] virtual std::shared_ptr<const condition> another() const { return nullptr; }
    /// Called for each sub-buffer by the reading thread, also if there is nothing to ask. May
    /// throw; reading can then continue where it was.
    virtual void pause() const {}
    /// Chooses from a run that is not empty. If it throws, it is called again with the same run.
    [[nodiscard]] virtual portion choose(const record_run& of) const = 0;
    /// Called when a number of records in a row are skipped without `choose`, because their event
    /// or thread is not wanted. May throw; it is then called again.
    virtual void pass_over(std::size_t) const {}
};

}  // namespace trace_ring::inline v1::reduce
