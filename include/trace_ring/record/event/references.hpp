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

/// A reference as its hook leaves it: 16 bytes, which are packed later or not at all.
struct plain_reference {
    std::uint64_t address;
    std::uint64_t what;  ///< site << 4 | code: programs have less than 60 bits of addresses

    [[nodiscard]] constexpr unsigned code() const noexcept {
        return static_cast<unsigned>(what & 15);
    }
    [[nodiscard]] constexpr std::uint64_t site() const noexcept { return what >> 4; }
};

/// The record of a trace that is kept. `packed` is what reference_packer makes. Records of one
/// place come in the order of their sequence numbers, from 0; one that is missing was lost.
struct packed_references
    : event<"references", field<"thread", std::uint32_t>,  // its number in the kernel
            field<"place", std::uint32_t>,                 // one that the thread had for itself
            field<"sequence", std::uint32_t>, field<"packed", std::span<const std::uint8_t>>> {};

/// The record of a trace that is analysed at once, and not kept. `plain` are words of
/// plain_reference.
struct plain_references
    : event<"references.plain", field<"thread", std::uint32_t>, field<"place", std::uint32_t>,
            field<"sequence", std::uint32_t>, field<"plain", std::span<const std::uint64_t>>> {};

namespace impl {

/// What packer and unpacker both know of the references so far.
struct reference_memory {
    struct slot {
        std::uint64_t next;  ///< the site that came last after one of this slot
        std::uint64_t last;  ///< the address that one of this slot had last
    };
    static constexpr std::size_t slot_count = 1024;

    std::uint64_t site = 0;
    slot all[slot_count]{};

    [[nodiscard, gnu::always_inline]] slot& of(std::uint64_t at) noexcept {
        return all[at / 4 % slot_count];
    }
    void clear() noexcept {
        site = 0;
        __builtin_memset(all, 0, sizeof all);
    }
};

inline constexpr unsigned block_code = 10;
inline constexpr unsigned site_code = 15;

/// The code of a load or store of so many bytes, a power of two up to 16; of another kind.
[[nodiscard]] consteval unsigned reference_code(reference_kind kind, unsigned size = 0) noexcept {
    const auto log = static_cast<unsigned>(__builtin_ctz(size | 32));
    if (kind == reference_kind::load) return log;
    if (kind == reference_kind::store) return 5 + log;
    return 8 + static_cast<unsigned>(kind);
}
static_assert(reference_code(reference_kind::load, 16) == 4);
static_assert(reference_code(reference_kind::store, 1) == 5);
static_assert(reference_code(reference_kind::block) == block_code);
static_assert(reference_code(reference_kind::exit) == 12);

/// What a code says.
struct code_meaning {
    bool makes_sense;  ///< as that of a reference
    reference_kind kind;
    std::uint8_t size;
};
inline constexpr code_meaning meaning_of_code[16] = {
    {true, reference_kind::load, 1},  {true, reference_kind::load, 2},
    {true, reference_kind::load, 4},  {true, reference_kind::load, 8},
    {true, reference_kind::load, 16}, {true, reference_kind::store, 1},
    {true, reference_kind::store, 2}, {true, reference_kind::store, 4},
    {true, reference_kind::store, 8}, {true, reference_kind::store, 16},
    {true, reference_kind::block, 0}, {true, reference_kind::enter, 0},
    {true, reference_kind::exit, 0},  {false, reference_kind::load, 0},
    {false, reference_kind::load, 0}, {false, reference_kind::load, 0}};

}  // namespace impl

/// Calls `visit(const reference&)` for each; returns how many there are before the first that makes
/// no sense. Linear.
template <class Visit>
[[gnu::always_inline]] inline std::size_t visit_plain(std::span<const plain_reference> all,
                                                      Visit&& visit) {
    std::size_t count = 0;
    for (const plain_reference& each : all) {
        const impl::code_meaning& is = impl::meaning_of_code[each.code()];
        if (!is.makes_sense) break;
        visit(reference{each.address, each.site(), is.kind, is.size});
        ++count;
    }
    return count;
}

/// Packs the references of one thread into bytes that its owner has. Constant time and memory.
class reference_packer {
public:
    /// What one reference takes at most, another site's included; `put` may store as many bytes.
    static constexpr std::size_t most_bytes = 18;

    /// Forgets all that was packed: a record begins.
    void clear() noexcept { memory_.clear(); }

    /// Packs one reference, whose code makes sense. Returns the end of its bytes.
    [[nodiscard, gnu::always_inline]] std::byte* put(std::byte* at,
                                                     const plain_reference& one) noexcept {
        const std::uint64_t site = one.site();
        auto& before = memory_.of(memory_.site);
        if (before.next != site) {
            before.next = site;
            at = put_difference(at, impl::site_code, site - memory_.site);
        }
        memory_.site = site;
        if (one.code() == impl::block_code) {
            *at = std::byte{impl::block_code << 4};
            return at + 1;
        }
        auto& last = memory_.of(site).last;
        const std::uint64_t from = last;
        last = one.address;
        return put_difference(at, one.code(), one.address - from);
    }

private:
    [[nodiscard, gnu::always_inline]] static std::byte* put_difference(
        std::byte* at, unsigned code, std::uint64_t difference) noexcept {
        const std::uint64_t sign = 0 - (difference >> 63);
        const std::uint64_t turned = difference << 1 ^ sign;
        // In numbers, as compilers make a branch of `turned == 0`, which is hard to foretell.
        const auto unused = static_cast<unsigned>(__builtin_clzll(turned | 1));
        const auto is_any = static_cast<unsigned>((turned | (0 - turned)) >> 63);
        const unsigned bytes = (71 - unused) / 8 + is_any - 1;
        *at = static_cast<std::byte>(code << 4 | bytes);
        __builtin_memcpy(at + 1, &turned, sizeof turned);
        return at + 1 + bytes;
    }

    impl::reference_memory memory_{};
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
            const impl::code_meaning& is = impl::meaning_of_code[code];
            const bool has_difference = code != impl::block_code;
            if (bytes > (has_difference ? 8U : 0U) || bytes > left) return at;
            const std::uint64_t turned = number_at(packed + at + 1, bytes, left);
            const std::uint64_t difference = turned >> 1 ^ (0 - (turned & 1));
            auto& site = memory_.of(memory_.site).next;
            if (code == impl::site_code) {
                site = memory_.site + difference;
            } else {
                if (!is.makes_sense || site == 0) return at;
                memory_.site = site;
                reference out{site, site, is.kind, is.size};
                if (has_difference) {
                    auto& last = memory_.of(out.site).last;
                    out.address = last += difference;
                }
                visit(static_cast<const reference&>(out));
            }
            at += 1 + bytes;
        }
        return size;
    }

private:
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

    impl::reference_memory memory_{};
};

}  // namespace trace_ring::inline v1
