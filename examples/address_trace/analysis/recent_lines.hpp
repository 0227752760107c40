// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file Lines in the order of their last use. For a line, it returns how many other lines were
/// used since: of all lines, or of a sample that a hash selects.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace address_trace {

/// The most recent lines are in a list, where most references end. A line that leaves the list gets
/// the next place in a row of marks, which a tree of sums counts. So a place in the row is as
/// recent as the line's last use, and the lines in the list are more recent than all in the row.
class recent_lines {
public:
    static constexpr std::size_t listed = 16;

    struct last_use {
        bool known = false;      ///< it is in the list or in the sample
        bool before = false;     ///< it was used before
        std::uint32_t list = 0;  ///< other lines since then, counting those in the list
        std::uint64_t row = 0;   ///< the same for the row, in the sample
    };

    recent_lines() : slots_(smallest), marks_(smallest / 64), sums_(smallest / 64 + 1) {
        list_.fill(no_line);
    }

    /// Uses a line. Logarithmic time.
    [[gnu::always_inline]] last_use use(std::uint64_t line) {
        for (std::uint32_t i = 0; i < listed; ++i) {
            if (list_[i] != line) continue;
            for (std::uint32_t k = i; k > 0; --k) list_[k] = list_[k - 1];
            list_[0] = line;
            return {true, true, i, 0};
        }
        return use_unlisted(line);
    }

    /// Lines in the sample, those in the list included.
    [[nodiscard]] std::size_t size() const noexcept { return known_; }
    /// Of all lines, one in so many is in the sample.
    [[nodiscard]] std::uint64_t one_in() const noexcept { return std::uint64_t{1} << halvings_; }
    /// Halves the sample. Linear time.
    void halve();

    [[nodiscard]] static std::uint64_t hash(std::uint64_t line) noexcept {
        line = (line ^ line >> 30) * 0xBF58476D1CE4E5B9;
        line = (line ^ line >> 27) * 0x94D049BB133111EB;
        return line ^ line >> 31;
    }

private:
    static constexpr std::uint64_t no_line = ~std::uint64_t{0};
    static constexpr std::size_t smallest = 1024;  // slots, and places in the row
    static constexpr std::uint64_t in_list = ~std::uint64_t{0};

    struct slot {
        std::uint64_t line = no_line;
        std::uint64_t place = in_list;  // in the row
    };

    [[nodiscard]] bool is_sampled(std::uint64_t line) const noexcept {
        return halvings_ == 0 || hash(line) >> (64 - halvings_) == 0;
    }
    [[nodiscard]] slot& slot_of(std::uint64_t line) noexcept {
        auto at = static_cast<std::size_t>(hash(line)) & (slots_.size() - 1);
        while (slots_[at].line != line && slots_[at].line != no_line)
            at = (at + 1) & (slots_.size() - 1);
        return slots_[at];
    }

    [[nodiscard]] last_use use_unlisted(std::uint64_t line);
    void set(std::uint64_t place, std::uint32_t by);
    [[nodiscard]] std::uint64_t marks_before(std::uint64_t place) const noexcept;
    void close_up();
    void grow();

    std::array<std::uint64_t, listed> list_;
    std::vector<slot> slots_;  // of the sample; a hash table, at most half full
    std::size_t known_ = 0;
    unsigned halvings_ = 0;

    // The row: a bit for each place, and sums of words of them, each of as many words before it as
    // its number's lowest bit says.
    std::vector<std::uint64_t> marks_;
    std::vector<std::uint32_t> sums_;
    std::uint64_t next_ = 0;    // place
    std::uint64_t marked_ = 0;  // places
};

}  // namespace address_trace
