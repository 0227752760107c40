// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Puts, in the place of each record that packs address references, a record for each of them:
/// header and payload, as if the sub-buffer had them, in memory of the reader.
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

#include <trace_ring/record/event/references.hpp>
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

/// For one sub-buffer that was copied. All arguments must outlive it. A record of n bytes has at
/// most n references, so its memory is at most 32 n and an entry for each.
class unpacking {
public:
    /// The sub-buffer's first record has position `first` in the lane.
    unpacking(const tables& in, const lane_info& lane, const sub_buffer_copy& head,
              std::uint64_t offset, position first, std::span<const std::uint64_t> words) noexcept
        : in_(in), lane_(lane), head_(head), offset_(offset), first_(first), words_(words) {}

    /// Unpacks what entries from number `from` on pack. References up to a byte that makes no sense
    /// are there, and a note says where that is. A record whose fields cannot be read stays as it
    /// is. Linear in entries and references. Throws std::bad_alloc.
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
        return of.whose != nullptr ? *of.whose : lane_;
    }
    /// The type of an entry that packs references and was not unpacked yet; null: it does not.
    [[nodiscard]] const event_type* packing_type(const entry& of) const noexcept {
        if (of.is_note() || of.packed != 0 || of.asked == entry::answer::unwanted) return nullptr;
        const auto* const type = in_.type_of(owner(of), head_, of.word);
        return type == nullptr || type->packed == event_type::npos ? nullptr : type;
    }
    [[nodiscard]] bool packs(const entry& of) const noexcept { return packing_type(of) != nullptr; }

    /// Adds the references of record `i` of an entry.
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
        next.whose = thread_of(record, of.whose);
        const auto packed = record.field(type.packed).bytes();
        const std::uint32_t flags = record_word::flags(of.word) & record_word::interval;
        const std::uint64_t low = *at & 0xFFFFFFFFU;
        const auto visit = [&](const reference& one) {
            const auto fields = words_for(one.kind);
            std::uint64_t* const to = into.room(most_words);
            const std::uint32_t word =
                record_word::pack(unpacked_id(one.kind), (1 + fields) * 8, flags);
            if (next.count == 0 || next.word != word) {
                if (next.count != 0) entries.push_back(next);
                next.word = word;
                next.begin = into.size();
                next.count = 0;
            }
            ++next.count;
            to[0] = low | std::uint64_t{word} << 32;
            to[1] = has_size(one.kind) ? one.address : one.site;
            to[2] = has_size(one.kind) ? one.site : one.address;
            to[3] = one.size;
            into.add(1 + fields);
        };
        const std::size_t sound = unpacker_.unpack(packed.data(), packed.size(), visit);
        if (next.count != 0) entries.push_back(next);
        if (sound == packed.size()) return;
        const auto wrong = static_cast<std::uint64_t>(packed.data() + sound -
                                                      reinterpret_cast<const std::byte*>(at));
        entry note;
        note.begin = static_cast<std::uint32_t>(notes.size());
        entries.push_back(note);
        notes.emplace_back(loss_item{loss_cause::damaged, 0, place, &lane_, record.time(),
                                     offset_ + std::uint64_t{next.packed} * 8 + wrong,
                                     "packed references that make no sense"});
    }

    static constexpr std::size_t most_words = 4;
    /// Fields of a reference, of a word each.
    [[nodiscard]] static constexpr std::size_t words_for(reference_kind kind) noexcept {
        return kind == reference_kind::block ? 1 : has_size(kind) ? 3 : 2;
    }

    /// The thread that made a record's references, which another one may have recorded; null: that
    /// which has the lane.
    [[nodiscard]] const lane_info* thread_of(const record_view& record,
                                             const lane_info* whose) const {
        const lane_info& recorded = record.lane();
        const auto thread = static_cast<std::uint32_t>(record.field("thread").u64());
        if (thread == 0 || thread == recorded.thread) return whose;
        return &in_.guest_of(lane_, thread);
    }

    const tables& in_;
    const lane_info& lane_;
    const sub_buffer_copy& head_;
    std::uint64_t offset_;
    position first_;
    std::span<const std::uint64_t> words_{};
    reference_unpacker unpacker_{};
};

}  // namespace trace_ring::inline v1::reduce
