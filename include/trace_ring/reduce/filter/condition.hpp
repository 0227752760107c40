// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What a filter may ask beyond names and numbers: of records in a row at a time, so that asking
/// costs next to nothing for each. `predicate` is one; others may be written.

#include <cstddef>
#include <memory>

#include <trace_ring/reduce/item/record_run.hpp>
#include <trace_ring/reduce/tables/dictionary.hpp>
#include <trace_ring/reduce/tables/writers.hpp>

namespace trace_ring::inline v1::reduce::where {

/// Asked by one cursor at a time. All but `choose` may say yes where they do not know.
class condition {
public:
    condition() = default;
    condition(const condition&) = delete;
    condition& operator=(const condition&) = delete;
    virtual ~condition() = default;

    /// It leaves out whole lanes by what the tables say of them. Of what they lost without a lane
    /// to name, nothing is told then, as with any choice of lanes.
    [[nodiscard]] virtual bool chooses_lanes() const { return false; }
    /// False: no record of this lane is wanted; none is read then.
    [[nodiscard]] virtual bool may_want(const lane_info&) const { return true; }
    /// False: no record of this event is wanted. Null: an event that the dictionary lacks.
    [[nodiscard]] virtual bool may_want(const event_type*) const { return true; }

    struct portion {
        std::size_t skip = 0;  ///< so many are not wanted,
        std::size_t take = 0;  ///< then so many are; 0: there are no others
    };
    /// One that answers the same and can be asked by another thread meanwhile; null: there is none.
    [[nodiscard]] virtual std::shared_ptr<const condition> another() const { return nullptr; }
    /// Called for each sub-buffer by the thread that reads, also where nobody has to be asked. May
    /// throw; reading goes on afterwards where it was.
    virtual void pause() const {}
    /// Of a run that is not empty. May throw, and is asked again then.
    [[nodiscard]] virtual portion choose(const record_run& of) const = 0;
    /// So many records in a row are passed over without `choose`: of their event or thread none is
    /// wanted. May throw, and is told again then.
    virtual void pass_over(std::size_t) const {}
};

}  // namespace trace_ring::inline v1::reduce::where
