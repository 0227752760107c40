// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Address references, packed: the loads, stores, blocks and calls of one thread, in one to nine
/// bytes each. A record holds as many as fit, and can be unpacked without any other.
///
/// Each is a byte, its code << 4 | n, and n bytes, 0 to 8, of a difference: least significant byte
/// first, its sign in the lowest bit. Both sides keep 1,024 slots, empty where a record begins; the
/// slot of a code address is number (address / 4) % 1,024.
///
/// | code    | what                | its difference is to                                      |
/// |---------|---------------------|-----------------------------------------------------------|
/// | 0 to 4  | load of 1 << code   | the address that the slot of its site had last, or 0      |
/// | 5 to 9  | store of 1 << (code | the same                                                  |
/// |         | - 5) bytes          |                                                           |
/// | 10      | block begins        | there is none: n is 0, and the address is that of the site|
/// | 11, 12  | function begins,    | the same as of a load; the address is the place of the    |
/// |         | ends                | call                                                      |
/// | 15      | another site        | the site before: that of the next, if it is not the one   |
/// |         |                     | that came last after the slot of the site before          |
///
/// The *site* is where the reference is made: the address that its hook returns to.

#include <cstddef>
#include <cstdint>
#include <span>

#include <trace_ring/record/event.hpp>

namespace trace_ring::inline v1 {

enum class reference_kind : std::uint8_t { load, store, block, enter, exit };

template <>
struct names_of<reference_kind> {
    static constexpr value_name<reference_kind> list[] = {{reference_kind::load, "load"},
                                                          {reference_kind::store, "store"},
                                                          {reference_kind::block, "block"},
                                                          {reference_kind::enter, "enter"},
                                                          {reference_kind::exit, "exit"}};
};

/// One reference.
struct reference {
    std::uint64_t address = 0;  ///< loads and stores: of the first byte
    std::uint64_t site = 0;
    reference_kind kind = reference_kind::load;
    std::uint8_t size = 0;  ///< bytes loaded or stored; else 0

    friend constexpr bool operator==(const reference&, const reference&) noexcept = default;
};

/// The record. `packed` is what reference_packer makes. Records of one place come in the order of
/// their sequence numbers, from 0; one that is missing was lost.
struct packed_references
    : event<"references", field<"thread", std::uint32_t>,  // its number in the kernel
            field<"place", std::uint32_t>,                 // one that the thread had for itself
            field<"sequence", std::uint32_t>, field<"packed", std::span<const std::uint8_t>>> {};

namespace impl {

/// What packer and unpacker both know of the references so far.
struct reference_memory {
    struct slot {
        std::uint64_t next;  ///< the site that came last after one of this slot
        std::uint64_t last;  ///< the address that one of this slot had last
    };
    static constexpr std::size_t slots = 1024;
    static constexpr unsigned site_code = 15;

    std::uint64_t site = 0;
    slot all[slots]{};

    [[nodiscard, gnu::always_inline]] slot& of(std::uint64_t at) noexcept {
        return all[at / 4 % slots];
    }
    void clear() noexcept {
        site = 0;
        __builtin_memset(all, 0, sizeof all);
    }
};

/// The code of a load or store of so many bytes, a power of two up to 16; of another kind.
[[nodiscard]] consteval unsigned reference_code(reference_kind kind, unsigned size = 0) noexcept {
    const auto log = static_cast<unsigned>(__builtin_ctz(size | 32));
    if (kind == reference_kind::load) return log;
    if (kind == reference_kind::store) return 5 + log;
    return 8 + static_cast<unsigned>(kind);
}
static_assert(reference_code(reference_kind::load, 16) == 4);
static_assert(reference_code(reference_kind::store, 1) == 5);
static_assert(reference_code(reference_kind::block) == 10);
static_assert(reference_code(reference_kind::exit) == 12);

}  // namespace impl

/// Packs the references of one thread into bytes that its owner has. Constant time and memory.
class reference_packer {
public:
    /// What one reference takes at most, another site's included; `put` may store as many bytes.
    static constexpr std::size_t most_bytes = 18;

    /// Forgets all that was packed: a record begins.
    void clear() noexcept { memory_.clear(); }

    /// Packs one reference. Returns how many bytes it took.
    template <unsigned Code>
    [[nodiscard, gnu::always_inline]] std::size_t put(std::byte* at, std::uint64_t address,
                                                      std::uint64_t site) noexcept {
        auto& before = memory_.of(memory_.site);
        std::size_t bytes = 0;
        if (before.next != site) [[unlikely]] {
            before.next = site;
            bytes = put_difference(at, impl::reference_memory::site_code, site - memory_.site);
        }
        memory_.site = site;
        if constexpr (Code == impl::reference_code(reference_kind::block)) {
            at[bytes] = std::byte{Code << 4};
            return bytes + 1;
        } else {
            auto& last = memory_.of(site).last;
            const std::uint64_t from = last;
            last = address;
            return bytes + put_difference(at + bytes, Code, address - from);
        }
    }

private:
    [[nodiscard, gnu::always_inline]] static std::size_t put_difference(
        std::byte* at, unsigned code, std::uint64_t difference) noexcept {
        const auto sign = static_cast<std::uint64_t>(static_cast<std::int64_t>(difference) >> 63);
        const std::uint64_t turned = difference << 1 ^ sign;
#if defined(__LZCNT__) && defined(__x86_64__)
        // The builtin of the language says nothing of 0, and compilers ask again.
        const auto unused = static_cast<unsigned>(__builtin_ia32_lzcnt_u64(turned));
        const unsigned bytes = (71 - unused) / 8;
#else
        // In numbers, as compilers make a branch of `turned == 0`, which is hard to foretell.
        const auto unused = static_cast<unsigned>(__builtin_clzll(turned | 1));
        const auto is_any = static_cast<unsigned>((turned | (0 - turned)) >> 63);
        const unsigned bytes = (71 - unused) / 8 + is_any - 1;
#endif
        *at = static_cast<std::byte>(code << 4 | bytes);
        __builtin_memcpy(at + 1, &turned, sizeof turned);
        return 1 + bytes;
    }

    impl::reference_memory memory_;
};

/// Unpacks records. Trusts nothing in them.
class reference_unpacker {
public:
    /// Calls `visit(const reference&)` for each reference of a record, in their order. Returns the
    /// offset of the first byte that makes no sense; `size` if all do. Linear.
    template <class Visit>
    std::size_t unpack(const std::byte* packed, std::size_t size, Visit&& visit) {
        memory_.clear();
        for (std::size_t at = 0; at < size;) {
            const auto head = static_cast<unsigned>(packed[at]);
            const std::size_t bytes = head & 15, left = size - at - 1;
            const unsigned code = head >> 4;
            const code_meaning& what = meaning[code];
            if (!what.makes_sense || bytes > what.most_bytes || bytes > left) return at;
            const std::uint64_t turned = number_at(packed + at + 1, bytes, left);
            const std::uint64_t difference = turned >> 1 ^ (0 - (turned & 1));
            auto& site = memory_.of(memory_.site).next;
            if (code == impl::reference_memory::site_code) {
                site = memory_.site + difference;
            } else {
                if (site == 0) return at;
                memory_.site = site;
                reference out{site, site, what.kind, what.size};
                if (what.kind != reference_kind::block) {
                    auto& last = memory_.of(out.site).last;
                    out.address = last += difference;
                }
                visit(static_cast<const reference&>(out));
            }
            at += 1 + bytes;
        }
        return size;
    }

    /// How many references `unpack` would give. Linear; needs no memory.
    [[nodiscard]] static std::uint64_t count(const std::byte* packed, std::size_t size) noexcept {
        std::uint64_t number = 0;
        for (std::size_t at = 0; at < size;) {
            const auto head = static_cast<unsigned>(packed[at]);
            if (head >> 4 != impl::reference_memory::site_code) ++number;
            at += 1 + (head & 15);
        }
        return number;
    }

private:
    struct code_meaning {
        std::uint8_t most_bytes;  // of a difference
        bool makes_sense;
        reference_kind kind;
        std::uint8_t size;
    };
    using kind = reference_kind;
    static constexpr code_meaning meaning[16] = {
        {8, true, kind::load, 1},   {8, true, kind::load, 2},  {8, true, kind::load, 4},
        {8, true, kind::load, 8},   {8, true, kind::load, 16}, {8, true, kind::store, 1},
        {8, true, kind::store, 2},  {8, true, kind::store, 4}, {8, true, kind::store, 8},
        {8, true, kind::store, 16}, {0, true, kind::block, 0}, {8, true, kind::enter, 0},
        {8, true, kind::exit, 0},   {0, false, kind::load, 0}, {0, false, kind::load, 0},
        {8, true, kind::load, 0}};

    /// The number of so many bytes at `from`, where `left` bytes can be read.
    [[nodiscard, gnu::always_inline]] static std::uint64_t number_at(const std::byte* from,
                                                                     std::size_t bytes,
                                                                     std::size_t left) noexcept {
        std::uint64_t number = 0;
        if (left >= sizeof number) [[likely]] {
            __builtin_memcpy(&number, from, sizeof number);
            return bytes == 0 ? 0 : number & ~std::uint64_t{0} >> (64 - bytes * 8);
        }
        for (std::size_t i = bytes; i-- > 0;)
            number = number << 8 | static_cast<std::uint64_t>(from[i]);
        return number;
    }

    impl::reference_memory memory_;
};

}  // namespace trace_ring::inline v1
