// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Address references, packed: the loads, stores, blocks and calls of one thread, in one to nine
/// bytes each, where sizes are usual. A record holds as many as fit, and can be unpacked without
/// any other.
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
/// | 10      | block begins        | none: n is 0, and the address is the address of the site  |
/// | 11, 12  | function begins,    | the same as of a load; the address is the place of the    |
/// |         | ends                | call                                                      |
/// | 13      | load or store of    | the same; a byte follows, and in it the highest bit is 1  |
/// |         | another size        | for a store                                               |
/// | 14      | atomic update, or a | the same, and the highest bit is 1 where the compare      |
/// |         | compare that failed | failed                                                    |
/// |         | an allocation       | the same; the byte is 251 + k, and k bytes of its size    |
/// |         |                     | follow                                                    |
/// | 15      | another site        | the site before. It is the site of the next reference, if |
/// |         |                     | not the one that last followed the slot of the site before|
///
/// The other bits of the byte that follows 13 and 14 are the size if that is less than 120. Else
/// they are 119 + k, and k bytes with the size follow.
///
/// The *site* is where the reference is made: the address that its hook returns to.

#include <cstddef>
#include <cstdint>
#include <span>

#include <trace_ring/record/event.hpp>
#include <trace_ring/record/event/value_names.hpp>

namespace trace_ring::inline v1 {

/// `update` is an atomic instruction that loads and stores: also a compare-and-exchange that has
/// stored. One that has not is a `failed_compare`: it only loads, but processors take the cache
/// line as for a store. An `allocation` references no memory: it reports that the program has
/// allocated these bytes.
enum class reference_kind : std::uint8_t {
    load,
    store,
    block,
    enter,
    exit,
    update,
    failed_compare,
    allocation
};

/// Whether it references data: most others, code.
[[nodiscard]] constexpr bool is_data(reference_kind kind) noexcept {
    return kind <= reference_kind::store || kind == reference_kind::update ||
           kind == reference_kind::failed_compare;
}

/// Whether it has an address and a size, as data and allocations do.
[[nodiscard]] constexpr bool has_size(reference_kind kind) noexcept {
    return is_data(kind) || kind == reference_kind::allocation;
}

template <>
struct names_of<reference_kind> {
    static constexpr value_name<reference_kind> list[] = {
        {reference_kind::load, "load"},
        {reference_kind::store, "store"},
        {reference_kind::block, "block"},
        {reference_kind::enter, "enter"},
        {reference_kind::exit, "exit"},
        {reference_kind::update, "update"},
        {reference_kind::failed_compare, "failed_compare"},
        {reference_kind::allocation, "allocation"}};
};

/// One reference.
struct reference {
    std::uint64_t address = 0;  ///< of data: of the first byte
    std::uint64_t site = 0;
    reference_kind kind = reference_kind::load;
    std::uint32_t size = 0;  ///< bytes of data, or allocated bytes; else 0

    friend constexpr bool operator==(const reference&, const reference&) noexcept = default;
};

/// A reference as its hook leaves it: 16 bytes, which are packed later or not at all. The code is
/// the kind in its two highest bits, and the size in the six below:
///
/// | size bits | kinds 0 to 3: load, store, update, failed_compare |
/// |-----------|-----------------------------------------------------------------------|
/// | 1 to 61   | so many bytes                                                         |
/// | 62        | 64 bytes                                                              |
/// | 63        | any other size, which is the `address` of the next one, an extension; |
/// |           | of kind 3 an allocation of that size: compares have 61 bytes at most  |
/// | 0         | 0: a block begins; 1, 2: a function begins, ends; 3: an extension     |
struct plain_reference {
    std::uint64_t address;
    std::uint64_t what;  ///< site << 8 | code: programs have less than 57 bits of addresses

    static constexpr unsigned extended = 63;
    static constexpr unsigned extension_code = 3 << 6;
    static constexpr unsigned allocation_code = 3 << 6 | extended;

    [[nodiscard]] constexpr unsigned code() const noexcept {
        return static_cast<unsigned>(what & 0xFF);
    }
    [[nodiscard]] constexpr std::uint64_t site() const noexcept { return what >> 8; }
    /// How many of these it takes: 2 if an extension follows.
    [[nodiscard]] constexpr std::size_t width() const noexcept {
        return (what & extended) == extended ? 2 : 1;
    }
};

/// How many of at most `most` plain ones to take, so that no reference is taken without its
/// extension. Constant time.
[[nodiscard]] constexpr std::size_t whole_references(std::span<const plain_reference> all,
                                                     std::size_t most) noexcept {
    if (all.size() <= most) return all.size();
    const bool splits = most != 0 && all[most - 1].width() == 2;
    return splits ? most - 1 : most;
}

/// The record of a trace that is kept. `packed` is what reference_packer makes. Records of one
/// place come in the order of their sequence numbers, from 0; one that is missing was lost.
struct packed_references
    : event<"references", field<"thread", std::uint32_t>,  // its number in the kernel
            field<"place", std::uint32_t>,                 // one that the thread had for itself
            field<"sequence", std::uint32_t>, field<"packed", std::span<const std::uint8_t>>> {};

/// The record of a trace that is analysed immediately and not kept. `plain` are words of
/// plain_reference.
struct plain_references
    : event<"references.plain", field<"thread", std::uint32_t>, field<"place", std::uint32_t>,
            field<"sequence", std::uint32_t>, field<"plain", std::span<const std::uint64_t>>> {};

/// Where the stack of a thread that references something is: [low, high). Recorded once, before its
/// first references; none where it is not known.
struct thread_stack : event<"thread.stack", field<"thread", std::uint32_t>,  // as above
                            field<"low", trace_ring::address>, field<"high", trace_ring::address>> {
};

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

// Codes of packed references that meaning_of_code does not have.
inline constexpr unsigned block_code = 10;
inline constexpr unsigned sized_code = 13;  // and the next one
inline constexpr unsigned site_code = 15;
/// In the byte that follows sized_code: this and more say how many bytes of the size follow.
inline constexpr unsigned least_long_size = 120;
/// This and more: they follow, and it is an allocation.
inline constexpr unsigned least_allocation = 124;

/// The size bits of a plain reference's code.
[[nodiscard]] constexpr unsigned size_bits(std::uint64_t size) noexcept {
    if (size <= 61) return static_cast<unsigned>(size);
    return size == 64 ? 62 : plain_reference::extended;
}
/// The code of a plain reference. `size` is not 0 if it is one to data.
[[nodiscard]] constexpr unsigned plain_code(reference_kind kind, std::uint64_t size = 0) noexcept {
    if (kind == reference_kind::allocation) return plain_reference::allocation_code;
    constexpr unsigned kinds[] = {0, 1, 0, 1, 2, 2, 3};
    return kinds[static_cast<unsigned>(kind)] << 6 | (is_data(kind) ? size_bits(size) : 0);
}

/// What a code says.
struct code_meaning {
    bool makes_sense;  ///< as the code of a reference
    reference_kind kind;
    std::uint8_t size;  ///< 0 of data: another byte has it
};
struct plain_codes {
    code_meaning meaning[256]{};
    std::uint8_t packed[256]{};  ///< the code when it is packed

    consteval plain_codes() noexcept {
        constexpr reference_kind data[] = {reference_kind::load, reference_kind::store,
                                           reference_kind::update, reference_kind::failed_compare};
        constexpr reference_kind code[] = {reference_kind::block, reference_kind::enter,
                                           reference_kind::exit};
        for (unsigned i = 0; i < 256; ++i) {
            const unsigned kind = i >> 6, bits = i & 63;
            if (bits == 0) {
                meaning[i] = {kind < 3, code[kind % 3], 0};
                packed[i] = static_cast<std::uint8_t>(block_code + kind);
                continue;
            }
            const unsigned size = bits == 62 ? 64 : bits == plain_reference::extended ? 0 : bits;
            meaning[i] = {
                true,
                i == plain_reference::allocation_code ? reference_kind::allocation : data[kind],
                static_cast<std::uint8_t>(size)};
            const bool is_usual = kind < 2 && size != 0 && size <= 16 && (size & (size - 1)) == 0;
            packed[i] = static_cast<std::uint8_t>(
                is_usual ? 5 * kind + static_cast<unsigned>(__builtin_ctz(size))
                         : sized_code + kind / 2);
        }
    }
};
inline constexpr plain_codes of_plain{};
static_assert(of_plain.packed[plain_code(reference_kind::load, 16)] == 4);
static_assert(of_plain.packed[plain_code(reference_kind::store, 1)] == 5);
static_assert(of_plain.packed[plain_code(reference_kind::block)] == block_code);
static_assert(of_plain.packed[plain_code(reference_kind::exit)] == 12);
static_assert(of_plain.packed[plain_code(reference_kind::update, 8)] == 14);
static_assert(!of_plain.meaning[plain_reference::extension_code].makes_sense);

/// What the codes of packed references say.
inline constexpr code_meaning meaning_of_code[16] = {
    {true, reference_kind::load, 1},   {true, reference_kind::load, 2},
    {true, reference_kind::load, 4},   {true, reference_kind::load, 8},
    {true, reference_kind::load, 16},  {true, reference_kind::store, 1},
    {true, reference_kind::store, 2},  {true, reference_kind::store, 4},
    {true, reference_kind::store, 8},  {true, reference_kind::store, 16},
    {true, reference_kind::block, 0},  {true, reference_kind::enter, 0},
    {true, reference_kind::exit, 0},   {true, reference_kind::load, 0},
    {true, reference_kind::update, 0}, {false, reference_kind::load, 0}};
/// That of a byte behind sized_code or the next code whose highest bit is 1.
[[nodiscard]] constexpr reference_kind other_kind(reference_kind kind) noexcept {
    return kind == reference_kind::load ? reference_kind::store : reference_kind::failed_compare;
}

}  // namespace impl

/// Calls `visit(const reference&)` for each; returns how many plain ones there are before the first
/// that makes no sense. Linear.
template <class Visit>
[[gnu::always_inline]] inline std::size_t visit_plain(std::span<const plain_reference> all,
                                                      Visit&& visit) {
    std::size_t at = 0;
    while (at < all.size()) {
        const plain_reference& each = all[at];
        const impl::code_meaning& is = impl::of_plain.meaning[each.code()];
        if (!is.makes_sense) break;
        reference out{each.address, each.site(), is.kind, is.size};
        if (each.width() == 2) [[unlikely]] {
            if (all.size() - at < 2 || all[at + 1].what != plain_reference::extension_code) break;
            out.size = static_cast<std::uint32_t>(all[at + 1].address);
            if (out.size == 0 || out.size != all[at + 1].address) break;
        }
        visit(static_cast<const reference&>(out));
        at += each.width();
    }
    return at;
}

/// Packs the references of one thread into bytes that its owner has. Constant time and memory.
class reference_packer {
public:
    /// What one reference takes at most, another site's included; `put` may store as many bytes.
    static constexpr std::size_t most_bytes = 32;

    /// Forgets all that was packed: a record begins.
    void clear() noexcept { memory_.clear(); }

    /// Packs one reference, whose code makes sense, and which has its extension behind it if it
    /// needs one. Returns the end of its bytes.
    [[nodiscard, gnu::always_inline]] std::byte* put(std::byte* at,
                                                     const plain_reference* one) noexcept {
        const std::uint64_t site = one->site();
        auto& before = memory_.of(memory_.site);
        if (before.next != site) {
            before.next = site;
            at = put_difference(at, impl::site_code, site - memory_.site);
        }
        memory_.site = site;
        const unsigned code = impl::of_plain.packed[one->code()];
        if (code == impl::block_code) {
            *at = std::byte{impl::block_code << 4};
            return at + 1;
        }
        auto& last = memory_.of(site).last;
        const std::uint64_t from = last;
        last = one->address;
        at = put_difference(at, code, one->address - from);
        return code < impl::sized_code ? at : put_size(at, one);
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
    [[nodiscard, gnu::noinline]] static std::byte* put_size(std::byte* at,
                                                            const plain_reference* one) noexcept {
        const unsigned code = one->code();
        const unsigned other = (code >> 6 & 1) << 7;
        const std::uint64_t size =
            one->width() == 2 ? one[1].address : impl::of_plain.meaning[code].size;
        const bool is_allocation = code == plain_reference::allocation_code;
        if (size < impl::least_long_size && !is_allocation) {
            *at = static_cast<std::byte>(other | size);
            return at + 1;
        }
        const auto bytes = static_cast<unsigned>(71 - __builtin_clzll(size)) / 8;
        const unsigned least = is_allocation ? impl::least_allocation : impl::least_long_size;
        *at = static_cast<std::byte>(other | (least - 1 + bytes));
        __builtin_memcpy(at + 1, &size, sizeof size);
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
            std::size_t end = at + 1 + bytes;
            if (code == impl::site_code) {
                site = memory_.site + difference;
            } else {
                if (!is.makes_sense || site == 0) return at;
                reference out{site, site, is.kind, is.size};
                if (code >= impl::sized_code && !take_size(packed, size, end, out)) [[unlikely]]
                    return at;
                memory_.site = site;
                if (has_difference) {
                    auto& last = memory_.of(out.site).last;
                    out.address = last += difference;
                }
                visit(static_cast<const reference&>(out));
            }
            at = end;
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
    /// Reads the bytes after the difference of a reference of another kind or size. False if they
    /// make no sense.
    [[nodiscard, gnu::noinline]] static bool take_size(const std::byte* packed, std::size_t size,
                                                       std::size_t& at, reference& out) noexcept {
        if (at == size) return false;
        const auto head = static_cast<unsigned>(packed[at++]);
        if ((head & 0x80) != 0) out.kind = impl::other_kind(out.kind);
        const unsigned low = head & 0x7F;
        out.size = low;
        if (low >= impl::least_long_size) {
            const bool is_allocation = low >= impl::least_allocation;
            if (is_allocation && out.kind != reference_kind::failed_compare) return false;
            if (is_allocation) out.kind = reference_kind::allocation;
            const std::size_t bytes =
                low - (is_allocation ? impl::least_allocation : impl::least_long_size) + 1;
            if (bytes > sizeof out.size || bytes > size - at) return false;
            out.size = static_cast<std::uint32_t>(number_at(packed + at, bytes, size - at));
            at += bytes;
        }
        return out.size != 0;
    }

    impl::reference_memory memory_{};
};

}  // namespace trace_ring::inline v1
