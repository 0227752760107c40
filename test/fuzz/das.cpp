// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// A guest's storage and what its other processors store into it during tracing: tracing touches
/// nothing beyond the storage, nothing but the current-entry control and the entry, and ends; so
/// does a walk through the table.
/// @code
///   0  flags: bit 0 low-address protection, bit 1 bounds on each try, bits 2-3 size of the storage
///   1  number of regions     2  number of stores by others     3  times to trace
///   4  regions: u32 first, u16 bytes, u16 kind; stores: u32 address, u32 word; then the first
///      bytes of the storage from location 80 on, and the rest continues at location 512
/// @endcode

#include <algorithm>
#include <cstring>
#include <memory>

#include <fuzz/targets.hpp>
#include <trace_ring/das/guest_memory.hpp>
#include <trace_ring/das/table.hpp>

namespace trace_ring_test::fuzz {

namespace of_das {
namespace {

namespace das = trace_ring::das;
using trace_ring::guest_region;

void put_word(buffer& to, std::uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8)
        to.push_back(static_cast<std::uint8_t>(value >> shift));
}

buffer seed(std::uint8_t flags, std::uint32_t designation, std::uint32_t current,
            std::uint32_t first, std::uint32_t last, bool others) {
    buffer out{flags, static_cast<std::uint8_t>(others ? 1 : 0),
               static_cast<std::uint8_t>(others ? 3 : 0), 20};
    const auto little = [&out](std::uint32_t value, unsigned size) {
        for (unsigned i = 0; i < size; ++i)
            out.push_back(static_cast<std::uint8_t>(value >> i * 8));
    };
    if (others) {
        little(2048, 4);
        little(64, 2);
        little(3, 2);
        for (std::uint32_t i = 0; i < 3; ++i) {
            little(512 + i * 4, 4);
            little(1024 + i * 32, 4);
        }
    }
    put_word(out, 0);  // location 80
    put_word(out, designation);
    while (out.size() < 4U + 44U + (others ? 32U : 0U)) put_word(out, 0);
    out.resize(4 + (others ? 32 : 0) + 48);
    put_word(out, current);  // location 512
    put_word(out, first);
    put_word(out, last);
    return out;
}

std::vector<buffer> seeds() {
    return {
        seed(0, 0x80000200, 992, 1024, 2048, false),
        seed(1, 0x80000200, 992, 1024, 2048, true),
        seed(2, 0x80000200, 1024, 1024, 1056, true),
        seed(4, 0x80000200, 0, 0, 0xFFFFFFFF, false),
        seed(8, 0x80FFFFF8, 0, 0, 0, false),
        seed(3, 0xFF000203, 0xFF000400, 0xFF000400, 0xFF000800, true),
        seed(0, 0x00000200, 1024, 1024, 2048, true),
    };
}

/// Storage in which others store while it is fetched from.
class shared_storage {
public:
    struct store_by_others {
        std::uint32_t address = 0;
        std::uint32_t word = 0;
    };
    shared_storage(trace_ring::guest_memory& memory, std::vector<store_by_others> others,
                   std::size_t bytes)
        : memory_(memory), others_(std::move(others)), bytes_(bytes) {}

    trace_ring::program_exception test(std::uint32_t address, std::uint32_t count,
                                       trace_ring::guest_access access) const {
        return memory_.test(address, count, access);
    }
    std::uint32_t fetch(std::uint32_t address) {
        const std::uint32_t found = memory_.fetch(address);
        other_store();
        return found;
    }
    bool swap(std::uint32_t address, std::uint32_t& expected, std::uint32_t value) {
        other_store();
        return memory_.swap(address, expected, value);
    }
    void store(std::uint32_t address, std::span<const std::byte> entry) {
        memory_.store(address, entry);
    }
    void serialize() { memory_.serialize(); }

private:
    void other_store() {
        if (next_ == others_.size()) return;
        const auto& one = others_[next_++];
        const std::uint32_t address = one.address / 4 * 4;
        if (std::uint64_t{address} + 4 > bytes_) return;
        std::byte word[4];
        trace_ring::record::store_big(word, 0, one.word);
        memory_.store(address, word);
    }

    trace_ring::guest_memory& memory_;
    std::vector<store_by_others> others_;
    std::size_t bytes_;
    std::size_t next_ = 0;
};
static_assert(trace_ring::guest_storage<shared_storage>);

template <class Bounds>
void trace(shared_storage& storage, std::span<const std::byte> memory, unsigned times) {
    trace_ring::record::das_entry entry{};
    for (unsigned i = 0; i < times; ++i) {
        const auto result = das::trace<Bounds>(storage, entry);
        if (!result.traced()) continue;
        expect(result.address % 32 == 0, "entries lie on their boundaries");
        expect(std::uint64_t{result.address} + 32 <= memory.size(), "and within the storage");
    }
}

void run(input data) {
    if (data.size() < 4) return;
    const std::uint8_t flags = data[0];
    std::size_t region_count = data[1] % 8;
    std::size_t store_count = data[2] % 64;
    const unsigned times = data[3];
    data = data.subspan(4);
    const auto take = [&data](auto& into) {
        if (data.size() < sizeof into) return false;
        std::memcpy(&into, data.data(), sizeof into);
        data = data.subspan(sizeof into);
        return true;
    };
    std::vector<guest_region> regions;
    for (; region_count != 0; --region_count) {
        struct {
            std::uint32_t first;
            std::uint16_t bytes, kind;
        } one{};
        if (!take(one)) break;
        regions.push_back({one.first, one.bytes, static_cast<guest_region::kind>(one.kind % 4)});
    }
    std::vector<shared_storage::store_by_others> stores(store_count);
    for (auto& one : stores) {
        if (!take(one)) break;
    }
    // Not more than there is, so that an access beyond it is seen.
    constexpr std::size_t sizes[] = {4096, 1024, 100, 65544};
    const std::size_t size = sizes[flags >> 2U & 3U];
    const auto words = std::make_unique<std::uint64_t[]>((size + 7) / 8);
    const std::span<std::byte> all(reinterpret_cast<std::byte*>(words.get()), size);
    const auto fill = [&](std::size_t at, std::size_t most) {
        const std::size_t count = std::min({data.size(), most, at < size ? size - at : 0});
        if (count != 0) std::memcpy(all.data() + at, data.data(), count);
        data = data.subspan(count);
    };
    fill(80, 48);
    fill(512, size);
    trace_ring::guest_memory memory(all, regions, (flags & 1U) != 0);
    shared_storage storage(memory, stores, size);
    if ((flags & 2U) != 0) {
        trace<das::fetch_bounds_on_each_try>(storage, all, times);
    } else {
        trace<das::fetch_bounds_once>(storage, all, times);
    }
    std::uint64_t visited = 0;
    const auto end = das::walk(storage, [&](std::uint32_t address, const auto&) {
        expect(std::uint64_t{address} + 32 <= size, "a walk stays within the storage");
        // Once around, for all values of 32 bits of control and 24 of address.
        expect(++visited <= size / 32 * 512 + 2, "a walk comes to an end");
    });
    expect(!end.traced() || end.address % 32 == 0, "the newest entry lies on its boundary");
}

void mutate(buffer& what, dice& random) {
    for (std::size_t times = 1 + random.below(3); times != 0; --times) {
        if (what.size() < 8) what.resize(100);
        const std::size_t at = random.below(what.size() - 4);
        constexpr std::uint32_t specials[] = {0,          0xFFFFFFFF, 0x80000200, 0x00000200,
                                              0x00000400, 0x00FFFFE0, 0x00FFFFF8, 0x01000000,
                                              0xFFFFFFE0, 0x00001000};
        switch (random.below(4)) {
            case 0:
                what[at] = static_cast<std::uint8_t>(random.any());
                break;
            case 1: {
                // Big-endian, as the guest's words are.
                const std::uint32_t value = specials[random.below(std::size(specials))];
                for (std::size_t i = 0; i < 4; ++i)
                    what[at / 4 * 4 + i] = static_cast<std::uint8_t>(value >> (24 - i * 8));
                break;
            }
            case 2:
                what[at / 4 * 4 + 3] = static_cast<std::uint8_t>(what[at / 4 * 4 + 3] + 32);
                break;
            default:
                what[at] ^= static_cast<std::uint8_t>(1U << random.below(8));
                break;
        }
    }
}

}  // namespace
}  // namespace of_das

const target das_target{"das", &of_das::seeds, &of_das::run, &of_das::mutate, 100000};

}  // namespace trace_ring_test::fuzz
