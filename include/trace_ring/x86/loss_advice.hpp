// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// How to avoid a loss of branch or PEBS records: the setting of the buffer, what was measured, and
/// the settings that are enough for it.
/// @code
///   const x86::ds_service done = store.interrupt(visit);
///   if (done.advice) std::fputs(to_string(*done.advice).c_str(), stderr);
///   // a branch buffer of 16 records with the threshold at 8: lost an unknown number of records,
///   // possibly none, in 280 ns at 100000000 records a second. Enough is: a buffer of 29 records
///   // with the same threshold; or a service every 150 ns
/// @endcode
/// A processor does not count the records that it had no room for. So the advice follows from a
/// rate and a time: the highest rate between two services without a loss, and the time between the
/// two services around the loss. It holds for a load that is no faster than that on average over
/// that time. If this time was the fastest, its rate is unknown, and so is the size that is enough.

#include <trace_ring/x86/enabled.hpp>

#include <cstdint>
#include <string>

#include <trace_ring/loss.hpp>

namespace trace_ring::inline v1::x86 {

/// The buffer that had no room.
enum class loss_buffer : std::uint8_t {
    branches,  ///< a debug store's branch buffer
    pebs,      ///< a debug store's PEBS buffer
    aux_area,  ///< the AUX area of a perf event, which Linux fills from a debug store
    events,    ///< the ring of the kernel's own events about that area
};

/// What is known about the settings that avoid the loss.
enum class loss_remedy : std::uint8_t {
    /// Each `needed_` setting that is not 0 is enough by itself, at this rate and time.
    enough,
    /// The rate is unknown, so `needed_records` and `needed_bytes` are only the next larger size,
    /// and the other settings are 0. Measure again with a larger buffer.
    at_least,
    /// The buffer had room, so no setting of it avoids the loss: the interrupt came late.
    none,
};

/// Plain values, which a service routine may fill in: no memory is allocated. Times are in
/// nanoseconds, and records are those of this buffer.
struct loss_advice {
    // The setting.
    loss_buffer buffer = loss_buffer::branches;
    std::uint64_t record_bytes = 0;
    std::uint64_t bytes = 0;      ///< of the buffer
    std::uint64_t records = 0;    ///< that it has room for
    std::uint64_t threshold = 0;  ///< records at which its reader is called; 0: it is not called

    // What was measured.
    loss_cause cause = loss_cause::refused;
    std::uint64_t lost = 0;  ///< records
    /// False: the number is unknown, and `lost` is the least number; 0: possibly none was lost.
    bool lost_exactly = false;
    bool timed = false;        ///< false: there is no clock, and all times are 0
    std::uint64_t before = 0;  ///< records in the buffer when the time began
    std::uint64_t stored = 0;  ///< records in the buffer when it was read
    std::uint64_t time = 0;    ///< from the service before, or the start, to this one
    /// The highest rate without a loss so far, as records in a time; 0 in 0: none was measured.
    std::uint64_t rate_records = 0, rate_time = 0;

    // How to avoid it.
    loss_remedy remedy = loss_remedy::at_least;
    std::uint64_t needed_records = 0;  ///< a buffer of so many records, with the same threshold
    std::uint64_t needed_bytes = 0;    ///< the same in bytes
    /// The threshold, with the same buffer, if the interrupt or the wake-up at the threshold is
    /// what calls the reader; 0: no threshold is enough, or there is none.
    std::uint64_t needed_threshold = 0;
    std::uint64_t needed_time = 0;  ///< the longest time between two services; 0: unknown

    friend constexpr bool operator==(const loss_advice&, const loss_advice&) noexcept = default;
};

namespace impl {

/// a * b / c, rounded up or down, or the largest number if it is more than that. Without a type of
/// 128 bits, which i386 has not.
[[nodiscard]] constexpr std::uint64_t times_over(std::uint64_t a, std::uint64_t b, std::uint64_t c,
                                                 bool up) noexcept {
    if (c == 0) return ~std::uint64_t{0};
    // One bit of `a` after the other: quotient and rest of the bits so far, times b.
    std::uint64_t quotient = 0, rest = 0;
    const std::uint64_t whole = b / c, part = b % c;
    for (int bit = 63; bit >= 0; --bit) {
        if (quotient >> 63 != 0) return ~std::uint64_t{0};
        quotient <<= 1;
        const auto add = [&](std::uint64_t more) {  // rest and more are below c
            const bool over = more >= c - rest;
            rest = over ? more - (c - rest) : rest + more;
            return over ? 1U : 0U;
        };
        std::uint64_t more = add(rest);
        if ((a >> bit & 1U) != 0) {
            more += add(part);
            if (whole > ~std::uint64_t{0} - more) return ~std::uint64_t{0};
            more += whole;
        }
        if (quotient > ~std::uint64_t{0} - more) return ~std::uint64_t{0};
        quotient += more;
    }
    return up && rest != 0 && quotient != ~std::uint64_t{0} ? quotient + 1 : quotient;
}
static_assert(times_over(7, 10, 4, false) == 17 && times_over(7, 10, 4, true) == 18);
static_assert(times_over(~std::uint64_t{0}, 1U << 31, 1U << 31, true) == ~std::uint64_t{0});
static_assert(times_over(std::uint64_t{1} << 40, std::uint64_t{1} << 40, std::uint64_t{1} << 20,
                         false) == std::uint64_t{1} << 60);
static_assert(times_over(1, 1, 0, false) == ~std::uint64_t{0});

}  // namespace impl

/// Records a second, rounded down, in which the buffer's rate was measured; 0: it was not.
[[nodiscard]] constexpr std::uint64_t records_per_second(const loss_advice& of) noexcept {
    return of.rate_time == 0
               ? 0
               : impl::times_over(of.rate_records, 1'000'000'000, of.rate_time, false);
}

/// The advice in English: setting, loss, measurement and remedy, on one line without a line's end.
/// For reports, not for a service routine: it allocates memory.
[[nodiscard]] inline std::string to_string(const loss_advice& of) {
    const auto number = [](std::uint64_t n) { return std::to_string(n); };
    const bool area = of.buffer == loss_buffer::aux_area;
    const bool events = of.buffer == loss_buffer::events;
    std::string out;
    if (area || events) {
        out = (area ? "an AUX area of " : "an event ring of ") + number(of.bytes) + " bytes";
        if (of.threshold != 0)
            out += " with the watermark at " + number(of.threshold * of.record_bytes);
    } else {
        out = of.buffer == loss_buffer::pebs ? "a PEBS buffer of " : "a branch buffer of ";
        out += number(of.records) + " records";
        if (of.threshold != 0) out += " with the threshold at " + number(of.threshold);
    }
    if (of.lost_exactly) {
        out +=
            ": lost " + number(of.lost) + (events ? " events, and possibly branches" : " records");
    } else {
        out += ": lost an unknown number of records, ";
        out += of.lost == 0 ? "possibly none" : "at least " + number(of.lost);
    }
    if (of.lost_exactly) {
        // No rate is needed.
    } else if (!of.timed) {
        out += ", in an unknown time (no clock)";
    } else {
        out += ", in " + number(of.time) + " ns at ";
        if (of.remedy != loss_remedy::at_least && of.rate_time != 0) {
            out += number(records_per_second(of)) + " records a second";
        } else {
            const std::uint64_t came = of.stored - (of.before < of.stored ? of.before : of.stored);
            out += "an unknown rate";
            if (of.time != 0)
                out += ", at least " +
                       number(impl::times_over(came, 1'000'000'000, of.time, false)) +
                       " records a second";
        }
    }
    const char* const buffer = area ? "an area of " : events ? "a ring of " : "a buffer of ";
    const auto size = [&](std::uint64_t records, std::uint64_t bytes) {
        return area || events ? number(bytes) + " bytes" : number(records) + " records";
    };
    if (of.remedy == loss_remedy::none) {
        return out + ". There was room, so no size and no " + (area ? "watermark" : "threshold") +
               " avoids it: the interrupt came late";
    }
    if (of.remedy == loss_remedy::at_least) {
        return out + ". More is needed, at least " + buffer +
               size(of.needed_records, of.needed_bytes) + "; how much is unknown" +
               (of.timed
                    ? " until a time as fast passes without a loss: measure with a much larger "
                      "one"
                    : "");
    }
    out += std::string(". Enough is: ") + buffer + size(of.needed_records, of.needed_bytes);
    if (of.threshold != 0)
        out += std::string(" with the same ") + (area ? "watermark" : "threshold");
    if (of.needed_threshold != 0) {
        out += area ? "; or the watermark at " + number(of.needed_threshold * of.record_bytes)
                    : "; or, if an interrupt calls the reader, the threshold at " +
                          number(of.needed_threshold);
    }
    if (of.needed_time != 0)
        out += std::string("; or a ") + (area ? "read" : "service") + " every " +
               number(of.needed_time) + " ns";
    return out;
}

}  // namespace trace_ring::inline v1::x86
