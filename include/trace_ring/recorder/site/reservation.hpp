// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What `recorder::reserve` returns.

#include <cstdint>

#include <trace_ring/recorder/site/cold_path.hpp>
#include <trace_ring/recorder/site/hot_path.hpp>

namespace trace_ring::inline v1 {

/// A record that has been filled and is not published yet. Move-only; for the thread that made it.
class lane_reservation {
public:
    lane_reservation() noexcept = default;
    lane_reservation(const lane_reservation&) = delete;
    lane_reservation& operator=(const lane_reservation&) = delete;
    lane_reservation(lane_reservation&& other) noexcept { take(other); }
    lane_reservation& operator=(lane_reservation&& other) noexcept {
        if (this != &other) {
            discard();
            take(other);
        }
        return *this;
    }
    ~lane_reservation() { discard(); }

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
    template <class Kind>
    friend class basic_recorder;

    lane_reservation(impl::recorder_words& of, impl::event_state& type,
                     impl::mark_type opener) noexcept
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
    void take(lane_reservation& other) noexcept {
        of_ = other.of_;
        lane_ = other.lane_;
        type_ = other.type_;
        mark_ = other.mark_;
        opened_ = other.opened_;
        bytes_ = other.bytes_;
        other.of_ = nullptr;
        if (is_open()) of_->cold->hold(*of_, *lane_, mark_, this);
    }

    /// After a fork no mark is set; a lane that was given up has another count. The mark may
    /// belong, for a moment, to a record on a stack that was switched away from.
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

}  // namespace trace_ring::inline v1
