// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// A debug store's management area and buffers, all of them any bytes, as a driver finds them that
/// does not trust its processor: sessions, the service routine and the PEBS records, in both models
/// and both modes. Nothing outside the buffers is handed over, and no more than fits.
/// @code
///   0  flags: bit 0 32-bit model, bit 1 circular, bit 2 each portion is kept, bits 4-6 PEBS format
///   1  eight u64, what is added to the fields of the area; the rest lies in the buffers
/// @endcode

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

#include <fuzz/targets.hpp>
#include <trace_ring/drain/session.hpp>
#include <trace_ring/policy/storage/heap.hpp>
#include <trace_ring/x86/ds/branch_store.hpp>
#include <trace_ring/x86/ds/stored_branches.hpp>

namespace trace_ring_test::fuzz {

namespace of_debug_store {
namespace {

namespace x86 = trace_ring::x86;
namespace record = trace_ring::record;

constexpr std::uint64_t branches = 7, pebs_records = 5;
constexpr std::uint64_t linear = 0x00100000;

/// Registers that hold what is written to them.
struct registers {
    std::array<std::uint64_t, 16> values{};
    [[nodiscard]] x86::msr_value read(std::uint32_t number) const noexcept {
        return {values[number % values.size()], x86::msr_fault::none};
    }
    [[nodiscard]] x86::msr_fault write(std::uint32_t number, std::uint64_t value) noexcept {
        values[number % values.size()] = value;
        return x86::msr_fault::none;
    }
};

void put(buffer& to, std::uint64_t value) {
    for (unsigned i = 0; i < 8; ++i) to.push_back(static_cast<std::uint8_t>(value >> i * 8));
}

buffer seed(std::uint8_t flags, std::uint64_t branch_index, std::uint64_t pebs_index,
            std::uint64_t first) {
    buffer out{flags};
    for (const std::uint64_t word :
         {std::uint64_t{0}, branch_index, std::uint64_t{0}, std::uint64_t{0}, std::uint64_t{0},
          pebs_index, std::uint64_t{0}, std::uint64_t{0}}) {
        put(out, word);
    }
    for (std::uint64_t i = 0; i < 160; ++i) put(out, first + i * 0x0000002000001001);
    return out;
}

std::vector<buffer> seeds() {
    return {seed(0, 72, 144, 1),
            seed(1, 36, 80, 1),
            seed(2, 48, 0, 1),
            seed(3, 0, 0, 0),
            seed(0x40, 168, 64, std::uint64_t{32} << 48),
            seed(0x44, 168, 1232, (std::uint64_t{1232} << 48) | 0x1F00000F),
            seed(0x10, ~std::uint64_t{0}, ~std::uint64_t{0}, 5)};
}

template <class Model>
void serve(std::uint8_t flags, const std::array<std::uint64_t, 8>& words, input rest) {
    using store_type = x86::branch_store<Model, registers, trace_ring::storage::heap>;
    x86::ds_features have;
    have.intel = have.ds = have.readable = have.bts = have.pebs = have.cpl = true;
    have.dtes64 = Model::pointer_bytes == 8;
    have.layout = Model::mode;
    have.pebs_format = static_cast<std::uint8_t>(flags >> 4U & 7U);
    const bool circular = (flags & 2U) != 0;
    x86::branch_store_options options;
    options.records = branches;
    options.setting.mode = circular ? x86::bts_mode::circular : x86::bts_mode::interrupt;
    options.pebs_records = pebs_records;
    options.pebs_enable = 1;
    options.pebs_groups = 0x1F00000F;
    options.linear = linear;
    registers of_processor;
    store_type store(of_processor, have, options);
    store.start();

    std::byte* const data = store.storage().data();
    const auto size = static_cast<std::size_t>(store_type::bytes_for(have, options) +
                                               trace_ring::storage::control_bytes);
    using address = typename Model::pointer_type;
    for (std::size_t i = 0; i < words.size(); ++i) {
        address field = 0;
        std::memcpy(&field, data + i * sizeof field, sizeof field);
        field = static_cast<address>(field + words[i]);
        std::memcpy(data + i * sizeof field, &field, sizeof field);
    }
    const std::size_t behind = trace_ring::storage::control_bytes;
    std::memcpy(data + behind, rest.data(), std::min(rest.size(), size - behind));

    const auto inside = [&](std::span<const std::byte> what) {
        return what.empty() || (what.data() >= data && what.data() + what.size() <= data + size);
    };
    const auto pebs = [&](std::span<const std::byte> bytes) {
        expect(inside(bytes), "a PEBS record lies in the buffer");
        const auto taken = x86::decode_adaptive(bytes);
        for (const auto group :
             {taken.memory, taken.registers, taken.vectors, taken.lbr, taken.unknown}) {
            expect(inside(group), "a group lies in the buffer");
        }
        expect(taken.lbr_entries() <= x86::pebs_most_lbr_entries, "not more LBR entries than 32");
    };
    std::uint64_t seen = 0;
    if ((flags & 4U) != 0) {
        trace_ring::drain::session session(store);
        session.peek_each([&](const typename store_type::portion& p) {
            expect(inside(p.bytes()), "a portion lies in the buffer");
            seen += p.records();
        });
        expect(seen <= branches, "no more records than there is room for");
    }
    seen = 0;
    x86::stored_branches source(store);
    source.read(x86::visiting{[&](const x86::branch&) { ++seen; }, [](const x86::branch_gap&) {}});
    expect(seen <= branches, "no more records than there is room for");
    const auto done = store.interrupt([](const auto&) {}, pebs);
    expect(done.pebs_records <= size / 8, "no more PEBS records than there is room for");
    trace_ring::loss_counts lost;
    expect(store.take_pebs(pebs, lost) == 0 || !done.causes.pebs, "what was read is not new");
}

void run(input data) {
    std::array<std::uint64_t, 8> words{};
    if (data.size() < 1 + sizeof words) return;
    const std::uint8_t flags = data[0];
    std::memcpy(words.data(), &data[1], sizeof words);
    const input rest = data.subspan(1 + sizeof words);
    if ((flags & 1U) != 0) {
        serve<record::ilp32>(flags, words, rest);
    } else {
        serve<record::lp64>(flags, words, rest);
    }
}

void mutate(buffer& what, dice& random) {
    constexpr std::uint64_t specials[] = {
        0, 1, 12, 24, 144, 1232, ~std::uint64_t{0}, std::uint64_t{1} << 31, std::uint64_t{1} << 63};
    constexpr std::size_t words = 8;
    if (what.size() < 1 + words * 8 + 64) what.resize(1 + words * 8 + 64);
    const std::size_t at = random.below(what.size() - 8);
    const auto store = [&](std::size_t to, std::uint64_t value, std::size_t size) {
        std::memcpy(&what[to], &value, size);
    };
    switch (random.below(5)) {
        case 0:
            what[0] = static_cast<std::uint8_t>(random.any());
            break;
        case 1:
            store(1 + random.below(words) * 8, specials[random.below(std::size(specials))], 8);
            break;
        case 2:
            store(1 + random.below(words) * 8, random.below(400), 8);
            break;
        case 3:  // where an adaptive record says how long it is, and what is in it
            store(1 + words * 8 + random.below(8) * 8,
                  std::uint64_t{random.below(64)} << 51U | random.below(256) << 24U |
                      random.below(32),
                  8);
            break;
        default:
            what[at] = static_cast<std::uint8_t>(random.any());
            break;
    }
}

}  // namespace
}  // namespace of_debug_store

const target debug_store_target{"debug_store", &of_debug_store::seeds, &of_debug_store::run,
                                &of_debug_store::mutate, 200000};

}  // namespace trace_ring_test::fuzz
