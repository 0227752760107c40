// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The simplest model of `guest_storage`: a guest's storage as an array of bytes, with logical
/// addresses as indices into it, and a list of regions that refuse access. For tests, and for hosts
/// without paging.
/// @code
/// alignas(8) std::byte bytes[65536]{};
/// trace_ring::guest_memory storage(bytes);
/// trace_ring::das::trace(storage, entry);
/// @endcode

#include <cstddef>
#include <cstdint>
#include <span>

#include <trace_ring/atomic.hpp>
#include <trace_ring/das/guest_storage.hpp>
#include <trace_ring/record/data_model.hpp>

namespace trace_ring::inline v1 {

/// A region of guest storage that refuses some accesses: [first, first + bytes).
struct guest_region {
    /// What a region refuses.
    enum class kind : std::uint8_t {
        no_segment,         ///< any access: segment translation
        no_page,            ///< any access: page translation
        segment_protected,  ///< a store: protection
        key_protected,      ///< a program's store: protection; tracing is not affected
    };
    std::uint32_t first = 0;    ///< guest address
    std::uint32_t bytes = 0;    ///< size
    kind what = kind::no_page;  ///< what it refuses
};

/// Guest storage in `bytes`, with big-endian words. Owns nothing: `bytes` and `regions` must
/// outlive it, and `bytes` begins on a doubleword boundary. An access beyond its end is an
/// addressing exception. Several threads may trace through one such object, or through several over
/// the same bytes: these are only accessed as relaxed atomic words, ordered by `swap` and
/// `serialize`. The regions must not change while others use this object.
class guest_memory {
public:
    /// With low-address protection, stores below this address meet protection.
    static constexpr std::uint32_t low_addresses = 512;

    /// With no regions, all of `bytes` can be accessed.
    explicit guest_memory(std::span<std::byte> bytes, std::span<const guest_region> regions = {},
                          bool low_address_protection = false) noexcept
        : bytes_(bytes), regions_(regions), low_address_protection_(low_address_protection) {}

    /// Linear in the number of regions; if several refuse, the first one's exception is returned.
    [[nodiscard]] program_exception test(std::uint32_t address, std::uint32_t bytes,
                                         guest_access access) const noexcept {
        const std::uint64_t end = std::uint64_t{address} + bytes;
        if (end > bytes_.size()) return program_exception::addressing;
        const bool stores = access == guest_access::protected_store;
        if (stores && low_address_protection_ && address < low_addresses)
            return program_exception::protection;
        for (const auto& region : regions_) {
            if (end <= region.first || address >= std::uint64_t{region.first} + region.bytes)
                continue;
            if (region.what == guest_region::kind::no_segment)
                return program_exception::segment_translation;
            if (region.what == guest_region::kind::no_page)
                return program_exception::page_translation;
            if (region.what == guest_region::kind::segment_protected && stores)
                return program_exception::protection;
        }
        return program_exception::none;
    }

    /// A word in the guest's byte order; `address` is a multiple of four and below the end.
    /// Constant time.
    [[nodiscard]] std::uint32_t fetch(std::uint32_t address) const noexcept {
        // relaxed: the machine orders storage only by serialization, see `serialize`
        return record::big_endian(word(address).load(relaxed));
    }

    /// Compare-and-swap of a word: on failure `expected` has the word found. Serializes, as the
    /// machine's instruction does.
    [[nodiscard]] bool swap(std::uint32_t address, std::uint32_t& expected,
                            std::uint32_t value) noexcept {
        auto found = record::big_endian(expected);
        // order: guest.swap:A pairs with guest.serialize:B
        const bool done =
            word(address).compare_exchange_strong(found, record::big_endian(value), seq_cst);
        expected = record::big_endian(found);
        return done;
    }

    /// `address` and the size must be multiples of four.
    void store(std::uint32_t address, std::span<const std::byte> bytes) noexcept {
        for (std::uint32_t i = 0; i < bytes.size(); i += 4) {
            const auto value = record::big_endian(record::load_big<std::uint32_t>(bytes, i));
            word(address + i).store(value, relaxed);  // relaxed: may be seen half stored
        }
    }

    /// Orders all accesses before it and all after it, of all processors that use this memory.
    void serialize() noexcept {
        // A processor that fetches a current-entry control and then serializes sees all stores
        // before the swap that set it. The entry itself is stored after the swap, so it may be
        // incomplete.
        // order: guest.serialize:B pairs with guest.swap:A
        thread_fence(seq_cst);
    }

private:
    [[nodiscard]] shared_atomic<std::uint32_t>& word(std::uint32_t address) const noexcept {
        return word_at<std::uint32_t>(bytes_.data(), address);
    }

    std::span<std::byte> bytes_;
    std::span<const guest_region> regions_;
    bool low_address_protection_;
};

static_assert(guest_storage<guest_memory>);

}  // namespace trace_ring::inline v1
