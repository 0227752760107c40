// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Measures how fast a buffer is filled between two services, and advises which settings would have
/// avoided a loss. A debug store and perf_bts have one for each buffer.
/// @code
///   meter.begin(clock.read(), 0);          // the processor stores from now on
///   // ...
///   meter.end(clock.read(), 40, false);    // it has stopped: 40 records, nothing lost
///   meter.advise(advice, 1);               // fills in what was measured, and the remedy
/// @endcode

#include <trace_ring/x86/enabled.hpp>

#include <time.h>

#include <cstdint>
#include <optional>

#include <trace_ring/x86/loss_advice.hpp>

namespace trace_ring::inline v1::x86 {

/// A clock in nanoseconds that never goes back, from any beginning; by default CLOCK_MONOTONIC. A
/// driver has another one: a function, which a service routine may call, and what it is called
/// with.
struct meter_clock {
    std::uint64_t (*now)(void* of) noexcept = [](void*) noexcept -> std::uint64_t {
        ::timespec t{};
        ::clock_gettime(CLOCK_MONOTONIC, &t);
        return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000U +
               static_cast<std::uint64_t>(t.tv_nsec);
    };  ///< nullptr: there is no clock, and so no rate
    void* of = nullptr;

    /// Empty: there is no clock.
    [[nodiscard]] std::optional<std::uint64_t> read() const noexcept {
        return now != nullptr ? std::optional(now(of)) : std::nullopt;
    }
};

/// All functions take constant time, allocate nothing and may be called by a service routine. Used
/// by one thread at a time.
class loss_meter {
public:
    /// @param filled records in the buffer now
    /// @param sound  the buffer shows no loss; if it does already, this time gives no rate
    void begin(std::optional<std::uint64_t> now, std::uint64_t filled, bool sound = true) noexcept {
        timed_ = now.has_value();
        began_ = now.value_or(0);
        before_ = filled;
        sound_ = sound;
        open_ = true;
    }
    /// Does nothing without a `begin`.
    /// @param filled records in the buffer now
    /// @param lost   records were lost, or may be; then the rate of this time is unknown
    void end(std::optional<std::uint64_t> now, std::uint64_t filled, bool lost) noexcept {
        if (!open_) return;
        open_ = false;
        timed_ = timed_ && now.has_value();
        time_ = timed_ && *now > began_ ? *now - began_ : 0;
        stored_ = filled;
        if (lost || !sound_ || filled <= before_ || time_ == 0) return;
        const std::uint64_t came = filled - before_;
        // came / time > rate_records / rate_time, compared without a loss of digits
        if (rate_time_ == 0 || impl::times_over(came, rate_time_, time_, false) >= rate_records_) {
            rate_records_ = came;
            rate_time_ = time_;
        }
    }

    /// Fills in what was measured between the last `begin` and `end`, and the remedy, by the
    /// setting and `lost` in `advice`.
    /// @param spare records of the buffer that must stay free for it to show no loss
    /// @param held  the buffer had to hold all that came in such a time, if that is longer
    void advise(loss_advice& advice, std::uint64_t spare, std::uint64_t held = 0) const noexcept {
        const std::uint64_t time = held > time_ ? held : time_;
        advice.timed = timed_;
        advice.before = before_;
        advice.stored = stored_;
        advice.time = time;
        advice.rate_records = rate_records_;
        advice.rate_time = rate_time_;
        std::uint64_t needed = 0;
        if (advice.lost_exactly) {
            needed = stored_ + advice.lost + spare;
        } else if (rate_time_ != 0 && time != 0) {
            const std::uint64_t came = impl::times_over(rate_records_, time, rate_time_, true);
            needed = came + before_ + spare;
            if (needed < came) needed = ~std::uint64_t{0};
        }
        // Not more than there was: this time was faster than any without a loss.
        const bool known = needed > advice.records && needed != ~std::uint64_t{0};
        advice.remedy = known ? loss_remedy::enough : loss_remedy::at_least;
        advice.needed_records = known ? needed : advice.records + 1;
        advice.needed_bytes =
            impl::times_over(advice.needed_records, advice.record_bytes, 1, false);
        const std::uint64_t both = advice.records + advice.threshold;
        advice.needed_threshold =
            known && advice.threshold != 0 && both > needed ? both - needed : 0;
        advice.needed_time =
            known && rate_records_ != 0 && advice.records > spare
                ? impl::times_over(advice.records - spare, rate_time_, rate_records_, false)
                : 0;
    }

    /// The remedy of a buffer that counts what finds no room: `advice` has its setting, and the
    /// exact number.
    static void advise_exactly(loss_advice& advice, std::uint64_t spare) noexcept {
        advice.lost_exactly = true;
        loss_meter full;
        full.begin({}, 0);
        full.end({}, advice.records, true);
        full.advise(advice, spare);
    }

private:
    std::uint64_t began_ = 0, before_ = 0;
    std::uint64_t time_ = 0, stored_ = 0;
    std::uint64_t rate_records_ = 0, rate_time_ = 0;
    bool timed_ = false, sound_ = false, open_ = false;
};

}  // namespace trace_ring::inline v1::x86
