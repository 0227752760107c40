// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The area and the buffers of a debug store, for the reader. They lie in the storage:
/// @code
///   0     the management area
///   448   the branch buffer       (storage::control_bytes)
///   ...   the PEBS buffer, on a cache line
/// @endcode
/// Apart from the records, it reads only the indexes that the processor writes, and checks them.

#include <trace_ring/x86/enabled.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include <trace_ring/atomic.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/policy/storage/mapping.hpp>
#include <trace_ring/policy/storage/storage.hpp>
#include <trace_ring/record/data_model.hpp>
#include <trace_ring/x86/branch_record.hpp>
#include <trace_ring/x86/ds/hardware/bts_setting.hpp>
#include <trace_ring/x86/ds/hardware/ds_layout.hpp>
#include <trace_ring/x86/ds/hardware/pebs_record.hpp>
#include <trace_ring/x86/ds/store/options.hpp>
#include <trace_ring/x86/loss_advice.hpp>

namespace trace_ring::inline v1::x86 {

/// What an index shows about its buffer.
struct ds_fill {
    std::uint64_t records = 0;  ///< in the buffer, an incomplete one included
    std::uint64_t least = 0;    ///< records lost, at least
    bool lost = false;          ///< some were lost, or may be
    bool overwritten = false;   ///< by newer ones, which the processor stored over them
    bool sound = true;          ///< false: the index is damaged, and shows nothing
};

/// Offsets are in bytes from a buffer's base. Used by one thread at a time; a service routine may
/// call all functions except the constructor and `place`.
template <record::data_model Model>
class ds_memory {
public:
    using address = typename Model::pointer_type;
    using record_type = record::branch_record<Model>;
    static constexpr std::size_t record_bytes = sizeof(record_type);

    /// Throws setup_error (EINVAL), which names the invalid option.
    ds_memory(const branch_store_options& options, unsigned pebs_format)
        : format_(pebs_format), circular_(options.setting.mode == bts_mode::circular) {
        if (options.setting.mode >= bts_mode::circular && options.records == 0)
            refuse("records", "a branch buffer needs at least one");
        if (circular_ && options.threshold != 0)
            refuse("threshold", "a circular buffer has none below its maximum");
        bts_ = plan("records", "threshold", options.records, options.threshold, record_bytes);
        if (circular_) bts_.threshold = bts_.capacity + 2 * record_bytes;
        bts_.maximum = bts_.capacity + (options.maximum == bts_maximum::multiple ? 0 : 1);
        if (pebs_lbr_entries(options.pebs_groups) > pebs_most_lbr_entries)
            refuse("pebs_groups", "more than 32 LBR entries");
        if ((options.pebs_groups & ~pebs_known_groups) != 0)
            refuse("pebs_groups", "the length of such a group is not known");
        pebs_ = plan("pebs_records", "pebs_threshold", options.pebs_records, options.pebs_threshold,
                     pebs_record_bytes<Model>(format_, options.pebs_groups));
        pebs_.at = bts_.at + (bts_.capacity + 63) / 64 * 64;
        for (const pebs_reset& reset : options.resets) {
            const std::size_t at = reset_offset<Model>(format_, reset.counter);
            if (at == 0) refuse("resets", "this format has no reset for that counter");
            resets_[(at - offsetof(ds_area<Model>, reset)) / 8] = reset.value;
        }
    }

    /// Bytes that the buffers need behind the storage's control.
    [[nodiscard]] std::uint64_t bytes() const noexcept {
        return pebs_.at + pebs_.capacity - storage::control_bytes;
    }

    /// Sets the storage. Throws setup_error (EINVAL) if it cannot be used.
    void place(std::byte* data, std::uint64_t size, bool fresh, std::uint64_t linear) {
        if (size < storage::control_bytes || size - storage::control_bytes < bytes())
            refuse("storage", "it has less than the " + std::to_string(bytes()) + " bytes needed");
        if (!fresh) refuse("storage", "something lies there already");
        data_ = data;
        linear_ = linear != 0 ? linear : reinterpret_cast<std::uintptr_t>(data);
        if (linear_ % storage::alignment != 0) refuse("linear", "not a multiple of 64");
        const std::uint64_t last = linear_ + pebs_.at + pebs_.capacity + 4 * record_bytes;
        if (last < linear_ || (Model::pointer_bytes == 4 && last > UINT32_MAX))
            refuse("linear", "the buffers end beyond the last address of the layout");
    }

    /// Describes empty buffers to the processor.
    void reset() noexcept {
        std::memset(data_, 0, sizeof(ds_area<Model>));
        std::memset(data_ + bts_.at, 0, static_cast<std::size_t>(bts_.capacity));
        describe(ds_field::bts_base, bts_);
        describe(ds_field::pebs_base, pebs_);
        for (std::size_t i = 0; i < ds_area<Model>::reset_count; ++i) {
            std::memcpy(data_ + offsetof(ds_area<Model>, reset) + i * 8, &resets_[i], 8);
        }
    }

    [[nodiscard]] std::uint64_t linear() const noexcept { return linear_; }
    [[nodiscard]] bool circular() const noexcept { return circular_; }
    [[nodiscard]] bool has_bts() const noexcept { return bts_.capacity != 0; }
    [[nodiscard]] bool has_pebs() const noexcept { return pebs_.capacity != 0; }
    /// BTS is a cause: its index is at the threshold, or above.
    [[nodiscard]] bool bts_reached() const noexcept {
        return has_bts() && raw(ds_field::bts_index) >= raw(ds_field::bts_threshold);
    }
    [[nodiscard]] bool pebs_reached() const noexcept {
        return has_pebs() && raw(ds_field::pebs_index) >= raw(ds_field::pebs_threshold);
    }
    /// No room for another record: the index is at the end of the buffer, or beyond it.
    [[nodiscard]] bool bts_full() const noexcept {
        return has_bts() && !circular_ && raw(ds_field::bts_index) >= end_of(bts_);
    }
    [[nodiscard]] bool pebs_full() const noexcept {
        return has_pebs() && raw(ds_field::pebs_index) >= end_of(pebs_);
    }

    // --- For the advice on a loss ----------------------------------------------------------------
    /// Changes nothing, so a loss is shown until the records are consumed.
    [[nodiscard]] ds_fill bts_fill() const noexcept {
        ds_fill out;
        if (!has_bts()) return out;
        loss_counts lost;
        const std::uint64_t end = checked(ds_field::bts_index, bts_, lost);
        out.sound = lost[loss_cause::damaged] == 0;
        out.records = end / record_bytes;
        if (circular_) {
            const std::uint64_t from = end % bts_.capacity;
            out.lost = out.overwritten = !records(from, bts_.capacity).front().padding();
            out.records = (out.lost ? bts_.capacity : from) / record_bytes;
        } else if (end != bts_.capacity && !last_record().front().padding()) {
            out.lost = out.overwritten = true;
            out.least = out.records = bts_.capacity / record_bytes;
        } else {
            out.lost = bts_full();
            out.least = lost[loss_cause::refused];
        }
        return out;
    }
    [[nodiscard]] ds_fill pebs_fill() const noexcept {
        ds_fill out;
        if (!has_pebs()) return out;
        loss_counts lost;
        const std::uint64_t end = checked(ds_field::pebs_index, pebs_, lost, false);
        out.sound = lost[loss_cause::damaged] == 0;
        out.records = (end + pebs_.record - 1) / pebs_.record;
        out.lost = pebs_full();
        return out;
    }
    /// The setting of a buffer that has lost records.
    [[nodiscard]] loss_advice setting_of(loss_buffer which, const ds_fill& now) const noexcept {
        const bool pebs = which == loss_buffer::pebs;
        const buffer& what = pebs ? pebs_ : bts_;
        loss_advice out;
        out.buffer = which;
        out.record_bytes = what.record;
        out.bytes = what.capacity;
        out.records = what.capacity / what.record;
        out.threshold = !pebs && circular_ ? 0 : what.threshold / what.record;
        out.cause = now.overwritten ? loss_cause::overwritten : loss_cause::refused;
        out.lost = now.least;
        return out;
    }

    // --- Branches --------------------------------------------------------------------------------
    /// The offset up to which the branch buffer is filled. Each call adds the losses to `lost`
    /// again.
    [[nodiscard]] std::uint64_t bts_end(loss_counts& lost) const noexcept {
        const std::uint64_t end = checked(ds_field::bts_index, bts_, lost);
        if (bts_full()) lost.add(loss_cause::refused, 1);
        return end;
    }
    /// The least number of records lost because the processor wrapped before it was served: the
    /// buffer's last record is filled, and the index lies before it. Returns it once.
    [[nodiscard]] std::uint64_t take_round(std::uint64_t end) noexcept {
        const auto last = last_record();
        if (end == bts_.capacity || last.front().padding()) return 0;
        clear(last);
        return bts_.capacity / record_bytes;
    }
    /// The buffer's last record. It is cleared when it has been read, so that a new one is noticed.
    [[nodiscard]] std::span<const record_type> last_record() const noexcept {
        return records(bts_.capacity - record_bytes, bts_.capacity);
    }
    void set_bts_index(std::uint64_t offset) noexcept {
        set(ds_field::bts_index, linear_ + bts_.at + offset);
    }
    [[nodiscard]] std::span<const record_type> records(std::uint64_t begin,
                                                       std::uint64_t end) const noexcept {
        return {static_cast<const record_type*>(static_cast<const void*>(data_ + bts_.at)) +
                    begin / record_bytes,
                as_size((end - begin) / record_bytes)};
    }
    [[nodiscard]] std::uint64_t offset_of_records(std::span<const record_type> run) const noexcept {
        return static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(run.data()) -
                                          (data_ + bts_.at));
    }

    /// The part of a circular buffer from the index on: the records before the last wrap, if there
    /// was one. Leaves out padding at both ends, so it is linear in the part's length.
    [[nodiscard]] std::span<const record_type> older(loss_counts& lost) const noexcept {
        const std::uint64_t from = checked(ds_field::bts_index, bts_, lost) % bts_.capacity;
        const auto run = records(from, bts_.capacity);
        if (!run.front().padding()) lost.add(loss_cause::overwritten, 1);
        return trimmed(run);
    }
    /// The part of a circular buffer before the index.
    [[nodiscard]] std::span<const record_type> newer() const noexcept {
        loss_counts told;
        return trimmed(records(0, checked(ds_field::bts_index, bts_, told) % bts_.capacity));
    }
    /// Makes the records padding.
    void clear(std::span<const record_type> run) noexcept {
        std::memset(data_ + bts_.at + offset_of_records(run), 0, run.size_bytes());
    }

    // --- PEBS ------------------------------------------------------------------------------------
    /// See branch_store::take_pebs.
    template <class Visit>
    std::uint64_t take_pebs(Visit& visit, loss_counts& lost) {
        loss_counts found;
        if (pebs_full()) found.add(loss_cause::refused, 1);
        const std::uint64_t end = checked(ds_field::pebs_index, pebs_, found, false);
        std::span<const std::byte> rest(data_ + pebs_.at, static_cast<std::size_t>(end));
        std::uint64_t count = 0;
        while (!rest.empty()) {
            const pebs_extent record = pebs_extent_of<Model>(rest, format_);
            if (record.fault != pebs_fault::none) {
                found.add(loss_cause::damaged, 1);
                break;
            }
            visit(rest.first(record.bytes));
            rest = rest.subspan(record.bytes);
            ++count;
        }
        lost += found;  // only now: if a visitor throws, the next call finds the losses again
        set(ds_field::pebs_index, linear_ + pebs_.at);
        return count;
    }

private:
    struct buffer {
        std::uint64_t at = 0;  ///< from the storage's beginning
        std::uint64_t record = 0;
        std::uint64_t capacity = 0, maximum = 0, threshold = 0;
    };

    [[noreturn]] static void refuse(const char* option, const std::string& why) {
        throw setup_error(std::string("debug store: ") + option, why, EINVAL);
    }
    [[nodiscard]] static buffer plan(const char* records, const char* threshold,
                                     std::uint64_t count, std::uint64_t at, std::size_t bytes) {
        if (count > UINT32_MAX) refuse(records, "more than 2^32 - 1");
        if (at > count) refuse(threshold, "above the number of records");
        buffer out{storage::control_bytes, bytes, count * bytes, count * bytes, 0};
        const std::uint64_t most = count * 3 / 4;
        out.threshold = (at != 0 ? at : most != 0 ? most : 1) * bytes;
        return out;
    }

    [[nodiscard]] std::uint64_t raw(ds_field field) const noexcept {
        // relaxed: the processor that stores has been stopped by a serializing write
        return word_at<address>(data_, offset_of<Model>(field)).load(relaxed);
    }
    void set(ds_field field, std::uint64_t value) noexcept {
        // relaxed: as above
        word_at<address>(data_, offset_of<Model>(field))
            .store(static_cast<address>(value), relaxed);
    }
    void describe(ds_field first, const buffer& what) noexcept {
        const std::uint64_t base = what.capacity != 0 ? linear_ + what.at : 0;
        const auto next = [&](unsigned n) {
            return static_cast<ds_field>(static_cast<unsigned>(first) + n);
        };
        set(next(0), base);
        set(next(1), base);
        set(next(2), base + (what.capacity != 0 ? what.maximum : 0));
        set(next(3), base + (what.capacity != 0 ? what.threshold : 0));
    }
    [[nodiscard]] std::uint64_t end_of(const buffer& what) const noexcept {
        return linear_ + what.at + what.capacity;
    }

    /// The offset of an index, moved into the buffer and, if all records have one length (`whole`),
    /// to the beginning of a record.
    [[nodiscard]] std::uint64_t checked(ds_field index, const buffer& what, loss_counts& lost,
                                        bool whole = true) const noexcept {
        const std::uint64_t base = linear_ + what.at;
        const std::uint64_t now = raw(index);
        if (now < base) {
            lost.add(loss_cause::damaged, 1);
            return 0;
        }
        std::uint64_t offset = now - base;
        if (offset > what.capacity) {
            const std::uint64_t beyond = (offset - what.capacity) / what.record;
            if (whole && beyond != 0) lost.add(loss_cause::refused, beyond);
            offset = what.capacity;
        }
        if (whole && offset % what.record != 0) {
            lost.add(loss_cause::damaged, 1);
            offset -= offset % what.record;
        }
        return offset;
    }
    [[nodiscard]] static std::span<const record_type> trimmed(
        std::span<const record_type> run) noexcept {
        while (!run.empty() && run.front().padding()) run = run.subspan(1);
        while (!run.empty() && run.back().padding()) run = run.first(run.size() - 1);
        return run;
    }

    unsigned format_;
    bool circular_;
    buffer bts_{}, pebs_{};
    std::byte* data_ = nullptr;
    std::uint64_t linear_ = 0;
    std::uint64_t resets_[ds_area<Model>::reset_count]{};
};
static_assert(sizeof(ds_area64) <= storage::control_bytes);

}  // namespace trace_ring::inline v1::x86
