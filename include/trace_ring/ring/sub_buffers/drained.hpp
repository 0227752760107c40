// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A sub-buffer that a draining session has taken, and its records in place.

#include <cstddef>
#include <cstdint>
#include <span>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/sub_buffer.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/position.hpp>

namespace trace_ring::inline v1 {

/// One record, in place: valid until the session consumes or keeps the sub-buffer.
struct drained_record {
    std::uint32_t lane = 0;                    ///< number of the lane; 0 in a single ring
    position at = 0;                           ///< in its lane, from 0
    std::uint64_t time = 0;                    ///< by the trace's clock
    std::uint16_t id = 0;                      ///< of its event type
    std::uint32_t flags = 0;                   ///< record_word::flag
    std::span<const std::uint64_t> payload{};  ///< its fields, as record/field.hpp says
};

/// The `portion` of a drainable whose bytes lie in sub-buffers: the records of one of them that the
/// session has not had yet. `visit` calls back for each:
/// @code
/// part.visit([](const trace_ring::drained_record& record) { use(record.id, record.payload); });
/// @endcode
class drained_sub_buffer {
public:
    /// The records, in place: plain memory until the session consumes or keeps the sub-buffer.
    [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
        return {start() + from_, all_.bytes - from_};
    }
    /// The same, as words of 8 bytes.
    [[nodiscard]] std::span<const std::uint64_t> words() const noexcept {
        return {static_cast<const std::uint64_t*>(static_cast<const void*>(start() + from_)),
                (all_.bytes - from_) / 8};
    }
    [[nodiscard]] std::uint32_t records() const noexcept { return all_.records; }
    /// Records lost before its first one, and while it was filled.
    [[nodiscard]] const loss_counts& lost() const noexcept { return lost_; }

    /// The sub-buffer's position, and its slot in the ring.
    [[nodiscard]] position at() const noexcept { return all_.at; }
    [[nodiscard]] std::uint64_t slot() const noexcept { return all_.slot; }
    [[nodiscard]] std::uint32_t lane() const noexcept { return all_.lane; }
    /// Position in its lane of the first of these records, from 0.
    [[nodiscard]] position first() const noexcept { return all_.first; }
    /// The times when the sub-buffer was claimed and closed, by the trace's clock.
    [[nodiscard]] std::uint64_t base_time() const noexcept { return all_.base_time; }
    [[nodiscard]] std::uint64_t end_time() const noexcept { return all_.end_time; }
    /// The sub-buffer is still being filled, and this is a copy of its complete records.
    [[nodiscard]] bool copied() const noexcept { return all_.copied; }

    /// Calls `visit(const drained_record&)` for each record, oldest first. Returns how many; fewer
    /// than `records()` if the bytes after those are damaged. Linear; does not allocate.
    template <class Visit>
    std::uint64_t visit(Visit&& visit) const {
        constexpr std::uint64_t low_half = 0xFFFFFFFFU;
        std::uint64_t high = all_.base_time & ~low_half;
        const auto* word = static_cast<const std::uint64_t*>(
            static_cast<const void*>(start() + sizeof(sub_buffer_header)));
        const auto* const from =
            static_cast<const std::uint64_t*>(static_cast<const void*>(start() + from_));
        const auto* const end =
            static_cast<const std::uint64_t*>(static_cast<const void*>(start() + all_.bytes));
        drained_record record;
        record.lane = all_.lane;
        std::uint64_t count = 0;
        while (word < end) {
            // Plain loads, as drain_source::take explains. Only the head is loaded once, because a
            // faulty process may write to a shared file. relaxed: a word by itself
            const std::uint64_t head = word_at<std::uint64_t>(word, 0).load(relaxed);
            const auto about = static_cast<std::uint32_t>(head >> 32);
            const std::uint32_t length = record_word::bytes(about) / 8;
            if (length == 0 || length > static_cast<std::size_t>(end - word)) return count;
            if (record_word::id(about) == record_word::time_id) [[unlikely]] {
                // The library's own record, of any length, begins with the whole time.
                if (length < time_record_bytes / 8) return count;
                high = word[1] & ~low_half;
            } else if (word >= from) {
                if (count == all_.records) return count;
                record.at = all_.first + count++;
                record.time = high | (head & low_half);
                record.id = record_word::id(about);
                record.flags = record_word::flags(about);
                record.payload = {word + 1, length - 1};
                visit(static_cast<const drained_record&>(record));
            }
            word += length;
        }
        return count;
    }

    /// The members that a model of drainable fills in. `bytes` is the offset of the first free
    /// byte.
    struct facts {
        const void* start = nullptr;
        std::uint32_t bytes = sizeof(sub_buffer_header);
        std::uint64_t slot = 0;
        std::uint32_t lane = 0;
        position at = no_position;
        position first = 0;
        std::uint32_t records = 0;
        std::uint64_t base_time = 0;
        std::uint64_t end_time = 0;
        bool copied = false;
    };
    drained_sub_buffer() = default;
    explicit drained_sub_buffer(const facts& all) noexcept : all_(all) {}

    /// Leaves out the first `count` records, which the session has had before.
    void skip(std::uint64_t count) noexcept {
        const auto* word = static_cast<const std::uint64_t*>(static_cast<const void*>(start()));
        while (count != 0 && all_.records != 0 && from_ < all_.bytes) {
            // relaxed: as in `visit`
            const std::uint64_t head = word_at<std::uint64_t>(word, from_).load(relaxed);
            const auto about = static_cast<std::uint32_t>(head >> 32);
            const std::uint32_t length = record_word::bytes(about);
            if (length == 0 || length > all_.bytes - from_) {  // damaged: leave out the rest
                from_ = all_.bytes;
                return;
            }
            from_ += length;
            if (record_word::id(about) == record_word::time_id) continue;
            --count;
            --all_.records;
            ++all_.first;
        }
    }
    void lose(loss_cause cause, std::uint64_t count) noexcept { lost_.add(cause, count); }

private:
    [[nodiscard]] const std::byte* start() const noexcept {
        return static_cast<const std::byte*>(all_.start);
    }

    facts all_{};
    std::uint32_t from_ = sizeof(sub_buffer_header);
    loss_counts lost_{};
};

}  // namespace trace_ring::inline v1
