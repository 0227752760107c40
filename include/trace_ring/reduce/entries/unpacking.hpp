// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Replaces each record that packs others by those, header and payload, in memory of the reader, as
/// if the sub-buffer had them.
/// @code
///   the sub-buffer     | module | references        | references   |
///   positions            0        1                   2
///   what is read         module   enter block load    load store
///   positions            0        1     1     1       2    2
/// @endcode

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <trace_ring/reduce/entries/entry.hpp>

namespace trace_ring::inline v1::reduce {

/// Words of records that were unpacked, in a row. Their memory is kept for the next ones.
class unpacked_words {
public:
    [[nodiscard]] const std::uint64_t* data() const noexcept { return words_.data(); }
    [[nodiscard]] std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(used_); }
    void clear() noexcept { used_ = 0; }
    /// Room for a record of at most `count` words behind the others. Throws std::bad_alloc.
    [[nodiscard]] std::uint64_t* room(std::size_t count) {
        if (words_.size() - used_ < count) words_.resize((words_.size() + count) * 2);
        return words_.data() + used_;
    }
    /// There is a record of so many words.
    void add(std::size_t count) noexcept { used_ += count; }

private:
    std::vector<std::uint64_t> words_{};
    std::size_t used_ = 0;
};

/// The records that one record packs, as `packing::unpack` adds them: they have its time.
class unpacked_records {
public:
    /// `first` is an entry of these records without any. `low` is the lower half of their time.
    unpacked_records(const entry& first, std::uint64_t low, std::vector<entry>& entries,
                     unpacked_words& words) noexcept
        : next_(first),
          low_(low),
          flags_(record_word::flags(first.word) & record_word::interval),
          entries_(entries),
          words_(words) {}

    /// Adds a record of this event with a payload of `count` words. Throws std::bad_alloc.
    [[gnu::always_inline]] void add(std::uint16_t id, const std::uint64_t* payload,
                                    std::size_t count) {
        std::uint64_t* const to = words_.room(1 + count);
        const std::uint32_t word = record_word::pack(id, (1 + count) * 8, flags_);
        if (next_.count == 0 || next_.word != word) {
            finish();
            next_.word = word;
            next_.begin = words_.size();
        }
        ++next_.count;
        to[0] = low_ | std::uint64_t{word} << 32;
        for (std::size_t i = 0; i < count; ++i) to[1 + i] = payload[i];
        words_.add(1 + count);
    }
    /// Adds the entry of the records added last. Call it at the end.
    void finish() {
        if (next_.count != 0) entries_.push_back(next_);
        next_.count = 0;
    }

private:
    entry next_;
    std::uint64_t low_;
    std::uint32_t flags_;
    std::vector<entry>& entries_;
    unpacked_words& words_;
};

/// Whether a cursor with this filter unpacks records.
[[nodiscard]] inline bool unpacks(const tables& in, const filter& by) {
    return in.unpacks_by() != nullptr && in.unpacks_by()->is_wanted(by);
}

/// For one sub-buffer that was copied, of a trace that is read with a `packing`. All arguments must
/// outlive it.
class unpacking {
public:
    /// The sub-buffer's first record has position `first` in the lane.
    unpacking(const tables& in, const lane_info& lane, const sub_buffer_copy& head,
              std::uint64_t offset, position first, std::span<const std::uint64_t> words) noexcept
        : in_(in),
          by_(*in.unpacks_by()),
          lane_(lane),
          head_(head),
          offset_(offset),
          first_(first),
          words_(words) {}

    /// Unpacks the records of entries from number `from` on. If a byte makes no sense, a note with
    /// its place follows the records before it. A record whose fields cannot be read stays as it
    /// is. Linear in entries and records. Throws std::bad_alloc.
    void make(std::vector<entry>& entries, std::size_t from, std::vector<note_type>& notes,
              unpacked_words& into) {
        const auto begin = entries.begin() + static_cast<std::ptrdiff_t>(from);
        const auto found =
            std::find_if(begin, entries.end(), [this](const entry& each) { return packs(each); });
        if (found == entries.end()) return;
        const std::vector<entry> rest(found, entries.end());
        entries.erase(found, entries.end());
        for (const entry& each : rest) {
            const event_type* const type = packing_type(each);
            if (type == nullptr) {
                entries.push_back(each);
                continue;
            }
            for (std::uint32_t i = 0; i < each.count; ++i) {
                unpack(each, i, *type, entries, notes, into);
            }
        }
    }

private:
    [[nodiscard]] const lane_info& owner(const entry& of) const noexcept {
        return of.owner != nullptr ? *of.owner : lane_;
    }
    /// The type of an entry of records that pack others and were not unpacked yet; null: they do
    /// not.
    [[nodiscard]] const event_type* packing_type(const entry& of) const noexcept {
        if (of.is_note() || of.packed != 0 || of.asked == entry::answer::unwanted) return nullptr;
        const auto* const type = in_.type_of(owner(of), head_, of.word);
        return type == nullptr || type->packed == event_type::npos ? nullptr : type;
    }
    [[nodiscard]] bool packs(const entry& of) const noexcept { return packing_type(of) != nullptr; }

    /// Adds the records that record `i` of an entry packs.
    void unpack(const entry& of, std::uint32_t i, const event_type& type,
                std::vector<entry>& entries, std::vector<note_type>& notes, unpacked_words& into) {
        const std::uint64_t* const at = of.at({words_.data(), nullptr}, i);
        entry next = of;
        static_assert(max_sub_buffer_bytes / 8 <= std::uint16_t(-1), "a place fits");
        next.packed = static_cast<std::uint16_t>(of.begin + i * of.stride());
        next.number += i;
        next.count = 0;
        next.asked = entry::answer::none;
        const position place = first_ + next.number;
        const record_view record({&owner(of), &type, of.high, of.latest, offset_, words_.data()},
                                 at, place);
        if (!record.has_fields()) {
            next.begin = into.size();
            next.count = 1;
            std::copy_n(at, of.stride(), into.room(of.stride()));
            into.add(of.stride());
            entries.push_back(next);
            return;
        }
        next.owner = thread_of(record, of.owner);
        const auto packed = record.field(type.packed).bytes();
        unpacked_records made(next, *at & 0xFFFFFFFFU, entries, into);
        const std::size_t sound = by_.unpack(packed, made);
        made.finish();
        if (sound == packed.size()) return;
        const auto wrong = static_cast<std::uint64_t>(packed.data() + sound -
                                                      reinterpret_cast<const std::byte*>(at));
        entry note;
        note.begin = static_cast<std::uint32_t>(notes.size());
        entries.push_back(note);
        notes.emplace_back(loss_item{loss_cause::damaged, 0, place, &lane_, record.time(),
                                     offset_ + std::uint64_t{next.packed} * 8 + wrong,
                                     by_.fault()});
    }

    /// The thread that made the packed records, if another one recorded them; else `owner`.
    [[nodiscard]] const lane_info* thread_of(const record_view& record,
                                             const lane_info* owner) const {
        const std::uint32_t thread = by_.thread_of(record);
        if (thread == 0 || thread == record.lane().thread) return owner;
        return &in_.guest_of(lane_, thread);
    }

    const tables& in_;
    const packing& by_;
    const lane_info& lane_;
    const sub_buffer_copy& head_;
    std::uint64_t offset_;
    position first_;
    std::span<const std::uint64_t> words_{};
};

}  // namespace trace_ring::inline v1::reduce
