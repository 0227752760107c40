// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Reads a CPTRAP spool file (cptrap/spool_record.hpp), also one that is still being written:
/// forward and backward from any spool record, only records chosen by type and by code. The
/// direction may change at any item.
/// @code
///   auto file = trace_ring::reduce::spool_reader::open("cptrap.file");
///   file.select(trace_ring::record::cptrap_selection().codes(0x100, 0x1FF));
///   while (const auto item = file.next()) {
///       if (item.what == trace_ring::reduce::spool_item::kind::record)
///           use(item.record.code, item.record.data());
///       else
///           complain(item.offset, item.cause());
///   }
/// @endcode

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <trace_ring/cptrap/record.hpp>
#include <trace_ring/cptrap/selection.hpp>
#include <trace_ring/cptrap/spool_record.hpp>
#include <trace_ring/reduce/source.hpp>

namespace trace_ring::inline v1::reduce {

/// One item of a spool file. Spans are valid until the reader loads another spool record.
struct spool_item {
    /// What an item is.
    enum class kind : std::uint8_t {
        end,         ///< no more in this direction, for now
        record,      ///< `record`: also of an unknown type, if its length is known
        unreadable,  ///< the bytes at `offset` cannot be divided into records
        torn,        ///< the file ends within the spool record: the missing bytes begin here
    };
    kind what = kind::end;                             ///< what this item is
    record::spool_end why = record::spool_end::whole;  ///< the cause if unreadable or torn
    std::uint64_t number = 0;                          ///< of the spool record, from 0
    std::size_t index = 0;                             ///< in the spool record, from 0
    std::uint64_t offset = 0;                          ///< in the file
    std::span<const std::byte> bytes;                  ///< the whole record, or the bad bytes
    record::cptrap_view record{};                      ///< if `what` is record: its fields

    /// Not the end.
    [[nodiscard]] constexpr explicit operator bool() const noexcept { return what != kind::end; }
    /// The cause of damage, as text; for torn and unreadable.
    [[nodiscard]] constexpr std::string_view cause() const noexcept {
        return what == kind::torn ? to_string(record::spool_end::cut) : to_string(why);
    }
};

/// Movable; used by one thread. Reads one spool record at a time into its own memory, and checks
/// every number in it.
class spool_reader {
public:
    /// Throws std::system_error if the file cannot be opened, format_error if it is no regular
    /// file.
    [[nodiscard]] static spool_reader open(const std::string& path) {
        return spool_reader(source::open(path));
    }
    /// Memory that holds a spool file, aligned to 8 bytes; `name` for messages.
    [[nodiscard]] static spool_reader from(std::span<const std::byte> memory,
                                           std::string name = "memory") {
        return spool_reader(source::from(memory, std::move(name)));
    }
    /// Reads from a source that is already open.
    explicit spool_reader(source from) : from_(std::move(from)), page_(words) {}
    spool_reader(spool_reader&&) = default;
    spool_reader& operator=(spool_reader&&) = default;
    spool_reader(const spool_reader&) = delete;
    spool_reader& operator=(const spool_reader&) = delete;

    /// The file's name, or the memory's.
    [[nodiscard]] const std::string& name() const noexcept { return from_.name(); }
    /// Bytes of the file now.
    [[nodiscard]] std::uint64_t size() const noexcept { return from_.size(); }
    /// Spool records of the file now, a torn last one included.
    [[nodiscard]] std::uint64_t spool_records() const noexcept {
        const std::uint64_t bytes = size();
        return bytes / record::spool_record_bytes + (bytes % record::spool_record_bytes != 0);
    }

    /// True if a spool, of this process or another, has the file open to write to it. Always false
    /// for memory.
    [[nodiscard]] bool live() const noexcept { return from_.is_locked(record::spool_lock_offset); }

    /// From now on returns only chosen records, and always unreadable, torn and lost ones.
    void select(const record::cptrap_selection& what) { what_ = what; }
    /// All records are read again, after `select`.
    void select_everything() noexcept { what_.reset(); }
    /// While `asked` is not 0, `next` and `previous` load no other spool record and return `end`.
    /// For a program that a signal interrupts, because one call may skip records up to the end of
    /// the file; `asked` must outlive the reader.
    void stop_when(const volatile std::sig_atomic_t& asked) noexcept { stop_ = &asked; }
    /// From now on `next` and `previous` load only the spool records from `first` to before `end`.
    void range(std::uint64_t first, std::uint64_t end) noexcept {
        first_ = first;
        end_ = end;
    }
    /// Sets lengths of types that this library does not know. Reads the current spool record again,
    /// from its beginning.
    void lengths(const record::cptrap_lengths& known) {
        lengths_ = known;
        go_to(at_);
    }

    /// Moves before spool record `number`: `next` then returns its first item, `previous` the last
    /// one of the spool record before. A number beyond the end means the end. Constant time.
    void go_to(std::uint64_t number) noexcept {
        const std::uint64_t there = spool_records();
        at_ = number < there ? number : there;
        loaded_ = false;
        index_ = 0;
        items_.clear();
    }
    /// The next item backward is the last one.
    void go_to_end() noexcept { go_to(spool_records()); }
    /// The current spool record, or the one that `next` would load.
    [[nodiscard]] std::uint64_t at() const noexcept { return at_; }

    /// Returns the item after the reader's place, and moves behind it. `end` if there is none yet:
    /// call it again later if the file is still being written. A spool at its limit writes its last
    /// spool record again: then items that were returned may come again at the same offset with
    /// other contents.
    [[nodiscard]] spool_item next() {
        for (;;) {
            if (!loaded_ && (at_ >= end_ || !load(at_))) return {};
            while (index_ < items_.size()) {
                const auto& one = items_[index_++];
                if (wanted(one)) return one;
            }
            if (got_ < record::spool_record_bytes) {
                if (!grown()) return {};
            } else if (stopped() || at_ + 1 >= end_ || (!load(at_ + 1) && !rewritten())) {
                return {};
            }
        }
    }
    /// Returns the item before the reader's place, and moves before it. `end` at the file's
    /// beginning.
    [[nodiscard]] spool_item previous() {
        for (;;) {
            while (index_ > 0) {
                const auto& one = items_[--index_];
                if (wanted(one)) return one;
            }
            if (at_ <= first_ || stopped()) return {};
            if (load(at_ - 1)) {
                index_ = items_.size();
            } else {
                go_to(at_ - 1);  // the file was truncated: go_to stops at its end
            }
        }
    }

private:
    static constexpr std::size_t words = record::spool_record_bytes / 8;

    [[nodiscard]] bool stopped() const noexcept { return stop_ != nullptr && *stop_ != 0; }
    [[nodiscard]] bool wanted(const spool_item& one) const noexcept {
        return one.what != spool_item::kind::record || !what_ ||
               one.record.type == record::cptrap_type::lost || what_->takes(one.record);
    }

    /// Reads a spool record and finds its items; moves before the first one. False if there is no
    /// such spool record; then nothing changes.
    bool load(std::uint64_t number) {
        constexpr std::size_t all = record::spool_record_bytes;
        if (number > ~std::uint64_t{0} / all || number * all >= from_.size()) return false;
        const std::size_t got = read(number);
        if (got == 0) return false;
        take(number, got);
        return true;
    }
    /// Reads a spool record into `spare_`. Returns how many of its bytes there are.
    [[nodiscard]] std::size_t read(std::uint64_t number) {
        constexpr std::size_t all = record::spool_record_bytes;
        spare_.resize(words);
        return from_.read(number * all, spare_.data(), all);
    }
    /// Makes what was read the current spool record.
    void take(std::uint64_t number, std::size_t got) {
        constexpr std::size_t all = record::spool_record_bytes;
        page_.swap(spare_);
        at_ = number;
        got_ = got;
        loaded_ = true;
        index_ = 0;
        items_.clear();
        const std::uint64_t start = number * all;
        const auto bytes = std::as_bytes(std::span(page_)).first(got);
        const auto stop = record::walk_spool(
            bytes, lengths_, [&](std::size_t offset, const record::cptrap_view& one) {
                items_.push_back({spool_item::kind::record, record::spool_end::whole, number,
                                  items_.size(), start + offset, one.bytes, one});
            });
        std::size_t missing = stop.offset;
        if (stop.why != record::spool_end::whole && stop.why != record::spool_end::cut) {
            items_.push_back({spool_item::kind::unreadable,
                              stop.why,
                              number,
                              items_.size(),
                              start + stop.offset,
                              bytes.subspan(stop.offset),
                              {}});
            missing = got;
        }
        if (got < all) {
            items_.push_back({spool_item::kind::torn,
                              record::spool_end::cut,
                              number,
                              items_.size(),
                              start + missing,
                              bytes.subspan(missing),
                              {}});
        }
    }
    /// Loads a torn spool record again that has been read to its end. True if it has become longer:
    /// then the new items come next.
    bool grown() {
        const std::size_t before = got_;
        const std::size_t known = index_ == 0 ? 0 : index_ - 1;  // without `torn`, the last item
        if (from_.size() <= at_ * record::spool_record_bytes + before) return false;
        if (!load(at_) || got_ <= before) return false;
        index_ = known < items_.size() ? known : items_.size();
        return true;
    }

    /// Loads the last spool record again if its bytes changed: a spool at its limit writes it again
    /// with more records, and with other counts of refused records. True: the items from the first
    /// changed byte on come next.
    bool rewritten() {
        constexpr std::size_t all = record::spool_record_bytes;
        if (read(at_) != all) return false;
        const auto before = std::as_bytes(std::span(page_));
        const auto after = std::as_bytes(std::span(spare_));
        const auto changed = static_cast<std::size_t>(
            std::mismatch(before.begin(), before.end(), after.begin()).first - before.begin());
        if (changed == all) return false;
        take(at_, all);
        const std::uint64_t place = at_ * all + changed;
        while (index_ < items_.size() &&
               items_[index_].offset + items_[index_].bytes.size() <= place) {
            ++index_;
        }
        return index_ < items_.size();
    }

    source from_;
    std::optional<record::cptrap_selection> what_{};
    record::cptrap_lengths lengths_{};
    const volatile std::sig_atomic_t* stop_ = nullptr;
    std::vector<std::uint64_t> page_;     ///< the current spool record
    std::vector<std::uint64_t> spare_{};  ///< for the next one
    std::vector<spool_item> items_{};
    std::uint64_t first_ = 0;
    std::uint64_t end_ = ~std::uint64_t{0};
    std::uint64_t at_ = 0;
    std::size_t got_ = 0;
    bool loaded_ = false;
    std::size_t index_ = 0;  ///< of the item after the reader's place
};

}  // namespace trace_ring::inline v1::reduce
