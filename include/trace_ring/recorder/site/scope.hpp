// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What `recorder::scope` returns.

#include <trace_ring/record/event.hpp>
#include <trace_ring/recorder/site/lane.hpp>

namespace trace_ring::inline v1 {

/// An open span, whose end is recorded by `end`, or else when this is destroyed. Move-only, also to
/// other threads.
template <class Recorder, recordable E>
class open_scope {
public:
    open_scope(open_scope&& other) noexcept : owner_(other.owner_) {
        other.owner_ = nullptr;
        if (owner_ != nullptr) span_ = other.span_;
    }
    open_scope& operator=(open_scope&&) = delete;
    open_scope(const open_scope&) = delete;
    open_scope& operator=(const open_scope&) = delete;
    [[gnu::always_inline]] ~open_scope() {
        if (owner_ != nullptr) owner_->template put_end<E>(span_);
    }

    /// Records the end now, with the span's results: one value for each field in its `results`,
    /// and none if it has no such list. From then on there is nothing to end: a second call records
    /// nothing, and neither does the destructor. False: the span has ended, or its begin was not
    /// recorded, or the end was lost and counted. Texts and rows are cut to fit, as in `record`.
    /// Signal-safe; constant time for fixed fields, linear in the bytes of variable ones.
    template <class... Results>
    [[gnu::always_inline]] bool end(const Results&... values) noexcept {
        if constexpr (impl::takes_results<E, Results...>()) {
            Recorder* const owner = owner_;
            owner_ = nullptr;
            if (owner == nullptr) return false;
            if constexpr (sizeof...(Results) == 0) {
                return owner->template put_end<E>(span_);
            } else {
                return owner->template put_results<E>(span_, values...);
            }
        } else {
            return false;
        }
    }

private:
    friend Recorder;

    template <class... Values>
    [[gnu::always_inline]] explicit open_scope(Recorder& owner, const Values&... values) noexcept
        : owner_(owner.template put_begin<E>(span_, values...) ? &owner : nullptr) {}

    union {
        impl::open_span span_;  // set if there is an owner
    };
    Recorder* owner_;
};

}  // namespace trace_ring::inline v1
