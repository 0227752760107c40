// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "reuse_distance.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace address_trace {
namespace {

[[nodiscard]] std::size_t bucket_of(std::uint64_t distance) noexcept {
    return static_cast<std::size_t>(std::bit_width(distance));
}

// Caches of at most this many lines: their results are exact.
constexpr std::size_t last_known_power = std::bit_width(recent_lines::listed) - 1;

/// The error of a sum over the parts of a sample, estimated from the differences between the parts.
template <std::size_t Parts>
[[nodiscard]] double standard_error_of_sum(const std::array<double, Parts>& of) {
    constexpr auto count = static_cast<double>(Parts);
    double sum = 0, squares = 0;
    for (const double each : of) sum += each;
    for (const double each : of) squares += (each - sum / count) * (each - sum / count);
    return std::sqrt(squares / (count - 1) * count);
}

}  // namespace

reuse_distance::reuse_distance(std::uint64_t line, std::size_t most_lines)
    : shift_(static_cast<unsigned>(std::countr_zero(line))), most_lines_(most_lines) {}

void reuse_distance::take(const sited_run& run) {
    for (const sited_reference& each : run.all) {
        if (!each.is_data()) continue;
        const std::uint64_t line = each.address >> shift_;
        const std::uint64_t in_line = each.address & ((std::uint64_t{1} << shift_) - 1);
        use(line);
        if (in_line + each.size > std::uint64_t{1} << shift_) [[unlikely]] {
            for (std::uint64_t i = 1; i <= (in_line + each.size - 1) >> shift_; ++i) use(line + i);
        }
    }
}

[[gnu::always_inline]] inline void reuse_distance::use(std::uint64_t line) {
    ++references_;
    const recent_lines::last_use last = lines_.use(line);
    if (last.known && last.before && last.list < recent_lines::listed) {
        ++near_[last.list];
        return;
    }
    if (!last.known) return;
    const std::uint64_t one_in = lines_.one_in();
    counts& part = far_[recent_lines::hash(line) % parts];
    const std::size_t bucket = last.before ? bucket_of(last.list + last.row * one_in) : buckets;
    part[bucket] += static_cast<double>(one_in);
    if (lines_.size() > most_lines_) lines_.halve();
}

distance_histogram reuse_distance::result() const {
    distance_histogram out;
    out.references = static_cast<double>(references_);
    out.one_in = lines_.one_in();
    double far = out.references;  // references that are not in near_
    for (std::size_t i = 0; i < near_.size(); ++i) far -= static_cast<double>(near_[i]);

    std::array<double, parts> all{},
        missed{};  // by part: at first of no cache, then of the largest
    for (std::size_t part = 0; part < parts; ++part) {
        for (const double each : far_[part]) all[part] += each;
        missed[part] = far_[part][buckets];
    }
    for (std::size_t power = buckets; power-- > 0;) {
        if (power <= last_known_power) {
            out.missed[power] = out.references;
            for (std::size_t i = 0; i < std::size_t{1} << power; ++i)
                out.missed[power] -= static_cast<double>(near_[i]);
            continue;
        }
        for (const double each : missed) out.missed[power] += each;
        out.missed[power] = std::min(out.missed[power], far);
        out.error[power] = out.exact() ? 0 : standard_error_of_sum(missed);
        for (std::size_t part = 0; part < parts; ++part) missed[part] += far_[part][power];
    }
    // The sample's deficit, relative to the number of far references, is assigned to the smallest
    // far distance, where the most used lines are.
    out.again[0] = static_cast<double>(near_[0]);
    for (std::size_t power = 1; power < buckets; ++power) {
        out.missed[power] = std::min(out.missed[power], out.missed[power - 1]);
        out.again[power] = out.missed[power - 1] - out.missed[power];
    }
    out.first = out.missed.back();
    return out;
}

}  // namespace address_trace
