// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What `recorder::reserve` and `recorder::scope` return.

#include <cstdint>
#include <utility>

#include <trace_ring/recorder/recorder.hpp>

namespace trace_ring::inline v1 {

/// A record that has been filled and is not there yet. Move-only; used by the thread that made it.
template <class Kind>
class basic_recorder<Kind>::reservation {
public:
    reservation() noexcept = default;
    reservation(reservation&& other) noexcept
        : core_(std::exchange(other.core_, nullptr)),
          lane_(other.lane_),
          mark_(other.mark_),
          opened_(other.opened_),
          bytes_(other.bytes_),
          counted_(other.counted_) {
        if (is_open()) core_->hold(*lane_, mark_, this);
    }
    reservation& operator=(reservation&& other) noexcept {
        if (this != &other) {
            discard();
            core_ = std::exchange(other.core_, nullptr);
            lane_ = other.lane_;
            mark_ = other.mark_;
            opened_ = other.opened_;
            bytes_ = other.bytes_;
            counted_ = other.counted_;
            if (is_open()) core_->hold(*lane_, mark_, this);
        }
        return *this;
    }
    ~reservation() { discard(); }

    [[nodiscard]] explicit operator bool() const noexcept { return core_ != nullptr; }

    /// Publishes the record, with the time at which it was reserved. False: there was none, or this
    /// thread jumped out of the frame that held it and the lane has been given up since.
    bool commit() noexcept { return close(true); }
    /// Gives it up: no reader will see anything of it, and it is not counted as lost.
    void discard() noexcept { static_cast<void>(close(false)); }

private:
    friend class basic_recorder;

    reservation(impl::core& core, impl::lane_state& lane, impl::mark_type mark, std::uint32_t bytes,
                const impl::event_state* counted) noexcept
        : core_(&core),
          lane_(&lane),
          mark_(mark | impl::reserved_bit),
          opened_(lane.opened.load(relaxed)),  // relaxed: own lane
          bytes_(bytes),
          counted_(counted) {
        core.hold(lane, mark, this);
    }

    /// After a fork no mark is set; when the lane was given up, its count is another's. The mark
    /// itself may be, for a moment, that of a record on a stack that was switched away from.
    [[nodiscard]] bool is_open() const noexcept {
        // relaxed: own lane
        return core_ != nullptr && impl::mark_of(*lane_).value.load(relaxed) > 0 &&
               lane_->opened.load(relaxed) == opened_;
    }

    bool close(bool publish) noexcept {
        const bool open = is_open();
        impl::core* const core = std::exchange(core_, nullptr);
        if (!open) return false;
        if (publish) {
            impl::commit_record(*lane_, bytes_);
            if (counted_ != nullptr) impl::count_record(*lane_, *counted_);
        }
        core->finish(*lane_);
        return publish;
    }

    impl::core* core_ = nullptr;
    impl::lane_state* lane_ = nullptr;
    impl::mark_type mark_ = 0;
    std::uint32_t opened_ = 0;
    std::uint32_t bytes_ = 0;
    const impl::event_state* counted_ = nullptr;
};

/// A span under way; its end is recorded when this dies. Move-only, also to other threads.
template <class Kind>
template <impl::told_event E>
class basic_recorder<Kind>::scoped {
public:
    scoped(scoped&& other) noexcept : owner_(std::exchange(other.owner_, nullptr)) {
        if (owner_ != nullptr) span_ = other.span_;
    }
    scoped& operator=(scoped&&) = delete;
    [[gnu::always_inline]] ~scoped() {
        if (owner_ != nullptr) owner_->template put_end<E>(span_);
    }

private:
    friend class basic_recorder;

    template <class... Values>
    [[gnu::always_inline]] explicit scoped(basic_recorder& owner, const Values&... values) noexcept
        : owner_(owner.template put<E, record_word::begin>(&span_, values...) ? &owner : nullptr) {}

    impl::open_span span_;  // known if there is an owner
    basic_recorder* owner_;
};

}  // namespace trace_ring::inline v1
