// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Drainables that the library does not know: the smallest there can be, and a buffer that works as
/// a debug store does: an index, an absolute maximum, an enable bit, and causes to be called for.

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>
#include <vector>

#include <trace_ring/drain/drainable.hpp>

namespace foreign {

using trace_ring::loss_cause;
using trace_ring::loss_counts;

/// Numbers in a row.
struct run {
    std::span<const std::uint64_t> numbers;
    loss_counts missing{};

    [[nodiscard]] std::span<const std::byte> bytes() const { return std::as_bytes(numbers); }
    [[nodiscard]] std::size_t records() const { return numbers.size(); }
    [[nodiscard]] const loss_counts& lost() const { return missing; }
};

/// An array, and two numbers: how much was written, how much was taken.
class shelf {
public:
    using portion = run;

    explicit shelf(std::size_t size, std::size_t at_once = 3) : all_(size), at_once_(at_once) {}

    bool write(std::uint64_t number) {
        if (written_ == all_.size()) {
            ++refused_;
            return false;
        }
        all_[written_++] = number;
        return true;
    }

    void attach() {
        if (busy_) throw std::system_error(EBUSY, std::generic_category(), "shelf");
        busy_ = true;
    }
    void detach() noexcept { busy_ = false; }
    bool take(run& out) {
        const std::size_t count = std::min(at_once_, written_ - taken_);
        if (count == 0) return false;
        out = {std::span<const std::uint64_t>(all_).subspan(taken_, count)};
        taken_ += count;
        return true;
    }
    void consume(run&) noexcept { ++consumed; }
    void keep(run&) noexcept { ++kept; }
    template <class Visit>
    std::size_t visit(const run& what, Visit&& visit) {
        for (const auto& number : what.numbers) {
            if (number == unreadable) return static_cast<std::size_t>(&number - &what.numbers[0]);
            visit(number);
        }
        return what.numbers.size();
    }
    loss_counts rest() {
        loss_counts out;
        out.add(loss_cause::refused, refused_);
        refused_ = 0;
        return out;
    }

    static constexpr std::uint64_t unreadable = ~std::uint64_t{0};
    int consumed = 0;
    int kept = 0;

private:
    std::vector<std::uint64_t> all_;
    std::size_t at_once_;
    std::size_t written_ = 0;
    std::size_t taken_ = 0;
    std::uint64_t refused_ = 0;
    bool busy_ = false;
};
static_assert(trace_ring::drain::drainable<shelf>);
static_assert(!trace_ring::drain::drainable_while_open<shelf>);
static_assert(!trace_ring::drain::stoppable<shelf>);

/// Up to, but not including, the index; called for at the threshold, or when it was full.
class store {
public:
    using portion = run;
    enum cause : unsigned { threshold = 1, full = 2 };

    explicit store(std::size_t maximum) : all_(maximum) {}

    bool enabled = false;
    bool armed = true;
    std::vector<int> steps;  ///< of the service routine, in its order
    enum step { stopped, asked, taken, given_back, armed_again, restored };

    void write(std::uint64_t number) {
        if (!enabled) return;
        if (index_ == all_.size()) {
            causes_ |= full;
            ++lost_;
            return;
        }
        all_[index_++] = number;
        if (index_ * 2 >= all_.size()) {
            causes_ |= threshold;
            armed = false;
        }
    }

    void attach() {}
    void detach() noexcept {}
    bool take(run& out) {
        if (index_ == 0 || held_) return false;
        steps.push_back(taken);
        held_ = true;
        out = {std::span<const std::uint64_t>(all_).first(index_)};
        return true;
    }
    void consume(run&) noexcept {
        steps.push_back(given_back);
        held_ = false;
        index_ = 0;
    }
    void keep(run&) noexcept { held_ = false; }
    template <class Visit>
    std::size_t visit(const run& what, Visit&& visit) {
        for (const auto number : what.numbers) visit(number);
        return what.numbers.size();
    }
    loss_counts rest() {
        loss_counts out;
        out.add(loss_cause::refused, lost_);
        lost_ = 0;
        return out;
    }
    bool stop() {
        steps.push_back(stopped);
        const bool was = enabled;
        enabled = false;
        return was;
    }
    void restore(bool was) noexcept {
        steps.push_back(restored);
        enabled = was;
    }
    unsigned causes() {
        steps.push_back(asked);
        const unsigned found = causes_;
        causes_ = 0;
        return found;
    }
    void rearm() noexcept {
        steps.push_back(armed_again);
        armed = true;
    }

private:
    std::vector<std::uint64_t> all_;
    std::size_t index_ = 0;
    unsigned causes_ = 0;
    std::uint64_t lost_ = 0;
    bool held_ = false;
};
static_assert(trace_ring::drain::stoppable<store> && trace_ring::drain::tells_causes<store> &&
              trace_ring::drain::rearmable<store>);

}  // namespace foreign
