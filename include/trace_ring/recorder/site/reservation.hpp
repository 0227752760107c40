// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What `recorder::reserve` and `recorder::scope` return.

#include <cstdint>

#include <trace_ring/recorder/site.hpp>

namespace trace_ring::inline v1 {

/// A record that has been filled and is not published yet. Move-only; for the thread that made it.
template <class Kind>
class basic_recorder<Kind>::reservation {
public:
    reservation() noexcept = default;
    reservation(const reservation&) = delete;
    reservation& operator=(const reservation&) = delete;
    reservation(reservation&& other) noexcept { take(other); }
    reservation& operator=(reservation&& other) noexcept {
        if (this != &other) {
            discard();
            take(other);
        }
        return *this;
    }
    ~reservation() { discard(); }

    [[nodiscard]] explicit operator bool() const noexcept { return of_ != nullptr; }

    /// Publishes the record, with the time at which it was reserved. False: there was none, or this
    /// thread jumped out of the frame that held it and the lane has been given up since.
    bool commit() noexcept {
        if (!close()) return false;
        of_->cold->close(*of_, *lane_, *type_, bytes_, 0, nullptr);
        of_ = nullptr;
        return true;
    }
    /// Gives the record up: no reader will see anything of it, and it is not counted as lost.
    void discard() noexcept {
        if (close()) of_->cold->discard(*of_, *lane_);
        of_ = nullptr;
    }

private:
    friend class basic_recorder;

    reservation(impl::recorder_words& of, impl::event_state& type, impl::mark_type opener) noexcept
        : of_(&of), type_(&type), mark_(opener | impl::reserved_bit) {}
    void hold(const impl::open_record& record) noexcept {
        lane_ = record.lane;
        bytes_ = record.bytes;
        if (lane_ != nullptr) {
            opened_ = lane_->opened.load(relaxed);  // relaxed: own lane
        } else {
            of_ = nullptr;
        }
    }
    void take(reservation& other) noexcept {
        of_ = other.of_;
        lane_ = other.lane_;
        type_ = other.type_;
        mark_ = other.mark_;
        opened_ = other.opened_;
        bytes_ = other.bytes_;
        other.of_ = nullptr;
        if (is_open()) of_->cold->hold(*of_, *lane_, mark_, this);
    }

    /// After a fork no mark is set; a lane that was given up has another count. The mark itself may
    /// be, for a moment, that of a record on a stack that was switched away from.
    [[nodiscard]] bool is_open() const noexcept {
        // relaxed: own lane
        return of_ != nullptr && impl::mark_of(*lane_).value.load(relaxed) > 0 &&
               lane_->opened.load(relaxed) == opened_;
    }
    /// Whether there is a record to be closed; afterwards there is none.
    bool close() noexcept {
        const bool open = is_open();
        if (!open) of_ = nullptr;
        return open;
    }

    impl::recorder_words* of_ = nullptr;
    impl::lane_state* lane_ = nullptr;
    impl::event_state* type_ = nullptr;
    impl::mark_type mark_ = 0;
    std::uint32_t opened_ = 0;
    std::uint32_t bytes_ = 0;
};

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
