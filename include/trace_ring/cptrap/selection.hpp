// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Selects CPTRAP records by type and by code. Writers ask it before they store, and readers, too.
/// It has a bit for each number, so that an answer takes one load; it can be made at compile time
/// or at run time.
/// @code
///   constexpr auto what = trace_ring::record::cptrap_selection()
///                             .event(trace_ring::record::cp_event::start_io)
///                             .code(3).codes(0x100, 0x1FF);
/// @endcode

#include <array>
#include <cstddef>
#include <cstdint>

#include <trace_ring/cptrap/cp_entry.hpp>
#include <trace_ring/cptrap/record.hpp>

namespace trace_ring::inline v1::record {

/// A set of the numbers from 0 to `Count` - 1; `Count` is a multiple of 64. Count / 8 bytes.
template <std::size_t Count>
class number_set {
    static_assert(Count % 64 == 0);

public:
    /// Constant time; false for a number that is not below `Count`.
    [[nodiscard]] constexpr bool contains(std::size_t number) const noexcept {
        return number < Count && (words_[number / 64] >> number % 64 & 1U) != 0;
    }
    /// Ignores a number that is not below `Count`.
    constexpr void insert(std::size_t number) noexcept {
        if (number < Count) words_[number / 64] |= std::uint64_t{1} << number % 64;
    }
    /// Ignores a number that is not in the set.
    constexpr void erase(std::size_t number) noexcept {
        if (number < Count) words_[number / 64] &= ~(std::uint64_t{1} << number % 64);
    }
    /// Inserts the numbers from `first` to `last`, both included. By words, because compilers limit
    /// the steps of a constant expression.
    constexpr void insert(std::size_t first, std::size_t last) noexcept {
        while (first <= last && first < Count) {
            if (first % 64 == 0 && last - first >= 63) {
                words_[first / 64] = ~std::uint64_t{0};
                first += 64;
            } else {
                insert(first++);
            }
        }
    }
    friend constexpr bool operator==(const number_set&, const number_set&) noexcept = default;

private:
    std::array<std::uint64_t, Count / 64> words_{};
};

/// Selects nothing at first. It has 8224 bytes: keep one for all users, and pass it by reference.
class cptrap_selection {
public:
    /// All types, with all codes.
    [[nodiscard]] static constexpr cptrap_selection everything() noexcept {
        cptrap_selection out;
        out.types_.insert(0, 255);
        out.codes_.insert(0, 0xFFFF);
        return out;
    }

    /// Adds records of a type; interface data also need a chosen code. Entries of the trace table
    /// are chosen by their events, each of which is a type here.
    constexpr cptrap_selection& type(cptrap_type which) noexcept {
        types_.insert(static_cast<std::size_t>(which));
        return *this;
    }
    /// Adds entries of CP's trace table, of any processor.
    constexpr cptrap_selection& event(cp_event which) noexcept {
        types_.insert(static_cast<std::size_t>(which));
        return *this;
    }
    /// Adds interface data with a code.
    constexpr cptrap_selection& code(std::uint16_t which) noexcept { return codes(which, which); }
    /// Adds interface data with a code from `first` to `last`, both included.
    constexpr cptrap_selection& codes(std::uint16_t first, std::uint16_t last) noexcept {
        codes_.insert(first, last);
        return type(cptrap_type::cp_interface);
    }
    /// Adds interface data with any code.
    constexpr cptrap_selection& any_code() noexcept { return codes(0, 0xFFFF); }
    /// Removes a type; entries of the trace table are removed by their events.
    constexpr cptrap_selection& without(cptrap_type which) noexcept {
        types_.erase(static_cast<std::size_t>(which));
        return *this;
    }
    /// Removes interface data with this code.
    constexpr cptrap_selection& without(std::uint16_t code) noexcept {
        codes_.erase(code);
        return *this;
    }

    /// Interface data with this code is chosen. All `takes`: constant time, signal-safe.
    [[nodiscard]] constexpr bool takes(std::uint16_t code) const noexcept {
        return takes(cptrap_type::cp_interface) && codes_.contains(code);
    }
    /// Records of this type are chosen.
    [[nodiscard]] constexpr bool takes(cptrap_type which) const noexcept {
        return types_.contains(static_cast<std::size_t>(which));
    }
    /// Entries of CP's trace table with this event are chosen.
    [[nodiscard]] constexpr bool takes(cp_event which) const noexcept {
        return types_.contains(static_cast<std::size_t>(which));
    }
    /// The record is chosen, by its type, its code or its event.
    [[nodiscard]] constexpr bool takes(const cptrap_view& record) const noexcept {
        if (record.type == cptrap_type::cp_interface) return takes(record.code);
        if (const auto entry = record.entry(); entry) return takes(entry->event());
        return takes(record.type);
    }
    friend constexpr bool operator==(const cptrap_selection&,
                                     const cptrap_selection&) noexcept = default;

private:
    number_set<256> types_{};
    number_set<0x10000> codes_{};
};

}  // namespace trace_ring::inline v1::record
