// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The CPTRAP files that --browse shows, one after the other, and the damage met in them. Nothing
/// is read before a line is shown.

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <trace_ring/cptrap/spool_reader.hpp>
#include <trace_ring/cptrap/spool_record.hpp>
#include <trace_ring/reduce/source.hpp>

#include "../../cptrap/notation.hpp"
#include "../../cptrap/range.hpp"

namespace trace_reduce::browse {

namespace reduce = trace_ring::reduce;
namespace record = trace_ring::record;

/// The place of an item: the number of the file, the spool record in it, and the item in that, all
/// from 0.
struct spool_position {
    std::size_t file = 0;
    std::uint64_t page = 0;
    std::size_t index = 0;
    friend auto operator<=>(const spool_position&, const spool_position&) = default;
};

/// One file, and the range of it that is shown.
class spool_file {
public:
    spool_file(reduce::source from, const spool_range& range)
        : from_(std::move(from)), range_(range) {}

    [[nodiscard]] const reduce::source& source() const noexcept { return from_; }
    [[nodiscard]] const spool_range& range() const noexcept { return range_; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return from_.size(); }
    /// The first spool record of the range; not more than `end`.
    [[nodiscard]] std::uint64_t first() const noexcept { return std::min(range_.first(), end()); }
    /// The spool record after the last one that exists and is in the range.
    [[nodiscard]] std::uint64_t end() const noexcept {
        constexpr std::uint64_t all = record::spool_record_bytes;
        const std::uint64_t size = bytes();
        return std::min(size / all + (size % all != 0), range_.end());
    }

private:
    reduce::source from_;
    spool_range range_;
};

class spools {
public:
    /// `lengths`: of types of records that the library does not know.
    explicit spools(const record::cptrap_lengths& lengths = {}) : lengths_(lengths) {}

    [[nodiscard]] const record::cptrap_lengths& lengths() const noexcept { return lengths_; }

    /// Bytes that a reader met and could not divide into records.
    struct damage {
        std::size_t file;
        std::uint64_t offset;
        std::string what;
    };

    void add(reduce::source from, const spool_range& range) {
        all_.emplace_back(std::move(from), range);
    }

    [[nodiscard]] std::size_t size() const noexcept { return all_.size(); }
    [[nodiscard]] const spool_file& operator[](std::size_t i) const noexcept { return all_[i]; }
    [[nodiscard]] const std::string& name(std::size_t i) const noexcept {
        return all_[i].source().name();
    }
    /// A program has one of the files open to write to it.
    [[nodiscard]] bool live() const noexcept {
        return std::any_of(all_.begin(), all_.end(), [](const spool_file& each) {
            return each.source().is_locked(record::spool_lock_offset);
        });
    }
    /// The share of the bytes of all files before a spool record, in per cent.
    [[nodiscard]] double percent_before(std::size_t file, std::uint64_t page) const noexcept {
        std::uint64_t before = 0, sum = 0;
        for (std::size_t i = 0; i < size(); ++i) {
            const std::uint64_t bytes = all_[i].bytes();
            if (i < file) before += bytes;
            if (i == file) before += std::min(bytes, page * record::spool_record_bytes);
            sum += bytes;
        }
        return sum == 0 ? 0 : 100.0 * static_cast<double>(before) / static_cast<double>(sum);
    }

    /// Remembers an item that is no record. At most 1000 of them.
    void note(std::size_t file, const reduce::spool_item& item) {
        if (item.what == reduce::spool_item::kind::record || met_.size() >= enough) return;
        met_.try_emplace({file, item.offset}, met{item.what == reduce::spool_item::kind::torn,
                                                  item.number, std::string(item.cause())});
    }
    /// Remembers a spool record that is all zero, which no spool writes.
    void note_zeros(std::size_t file, std::uint64_t page) {
        if (met_.size() >= enough) return;
        met_.try_emplace({file, page * record::spool_record_bytes},
                         met{false, page, std::string(zeros_cause)});
    }
    /// The damage met so far, by place. A torn spool record that has become whole since is none.
    [[nodiscard]] std::vector<damage> damages() const {
        std::vector<damage> out;
        for (const auto& [at, each] : met_) {
            const std::uint64_t whole = all_[at.first].bytes() / record::spool_record_bytes;
            if (each.torn && whole > each.page) continue;
            out.push_back({at.first, at.second, each.what});
        }
        return out;
    }

private:
    static constexpr std::size_t enough = 1000;

    struct met {
        bool torn;
        std::uint64_t page;
        std::string what;
    };
    record::cptrap_lengths lengths_;
    std::deque<spool_file> all_;
    std::map<std::pair<std::size_t, std::uint64_t>, met> met_;
};

}  // namespace trace_reduce::browse
