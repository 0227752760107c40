// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The AUX area of an intel_bts event, its two counts, and gaps that are noted in it, all of them
/// any bytes: nothing outside the area is read, no more records come out than are in it, none with
/// an address of the kernel. The same bytes are decoded as code, too.
/// @code
///   0  flags: bit 0 snapshot, bit 1 by portions, bit 2 every other portion is kept
///   1  u16 size of the area, less 24     3  number of looks     4  u64 tail
///   12 looks: u64 head, u64 position of a gap, u64 its count; the rest lies in the area
/// @endcode

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>

#include <branch_trace/step/branch_instruction.hpp>
#include <fuzz/targets.hpp>
#include <trace_ring/x86/linux/aux_buffer.hpp>

namespace trace_ring_test::fuzz {

namespace of_aux_buffer {
namespace {

namespace x86 = trace_ring::x86;
using trace_ring::record::program_mode;

struct look {
    std::uint64_t head, gap, count;
};

void put(buffer& to, std::uint64_t value, unsigned size) {
    for (unsigned i = 0; i < size; ++i) to.push_back(static_cast<std::uint8_t>(value >> i * 8));
}

buffer seed(std::uint8_t flags, std::uint16_t size, std::uint64_t tail,
            const std::vector<look>& looks, unsigned records) {
    buffer out{flags};
    put(out, size, 2);
    put(out, looks.size(), 1);
    put(out, tail, 8);
    for (const auto& one : looks) {
        put(out, one.head, 8);
        put(out, one.gap, 8);
        put(out, one.count, 8);
    }
    for (unsigned i = 0; i < records; ++i) {
        put(out, i % 5 == 0 ? 0 : i % 7 == 0 ? 0xFFFFFFFF81000000 : 0x401000 + i, 8);
        put(out, i % 5 == 0 || i % 3 == 0 ? 0 : 0x0FC3E80574EB + i, 8);
        put(out, i % 2 * 16, 8);
    }
    return out;
}

std::vector<buffer> seeds() {
    return {
        seed(0, 72, 0, {{48, 0, 0}, {96, 48, 1}, {192, 500, 0}}, 4),
        seed(1, 72, 0, {{48, 0, 0}}, 4),
        seed(2, 4072, 0, {{2400, 240, 3}, {4096, 4080, 0}, {8192, 4096, 0}}, 170),
        seed(7, 4072, 0, {{2400, 0, 0}, {100, 0, 0}}, 170),
        seed(6, 976, 96, {{960, 96, 0}, {1000, 0, 0}, {3000, 2000, 2}, {0, 0, 0}}, 41),
        seed(0, 0, ~std::uint64_t{0}, {{~std::uint64_t{0}, ~std::uint64_t{0}, 1}}, 1),
    };
}

struct checked {
    std::uint64_t records = 0;
    void operator()(const x86::branch& one) {
        ++records;
        expect(one.has_from() || one.has_to(), "a record has a side");
        expect(one.from() >> 63 == 0 && one.to() >> 63 == 0, "no address is the kernel's");
    }
    void operator()(const x86::branch_gap&) const {}
};

void decode(std::span<const std::byte> code) {
    for (std::size_t at = 0; at < code.size(); at += 7) {
        for (const auto mode : {program_mode::lp64, program_mode::ilp32}) {
            const auto found = branch_trace::decode_branch(code.subspan(at), at, mode);
            expect(found.length <= code.size() - at, "an instruction is within its bytes");
        }
    }
}

void run(input data) {
    const auto take = [&data](auto& into) {
        if (data.size() < sizeof into) return false;
        std::memcpy(&into, data.data(), sizeof into);
        data = data.subspan(sizeof into);
        return true;
    };
    std::uint8_t flags = 0, looks = 0;
    std::uint16_t bytes = 0;
    std::uint64_t tail_at = 0;
    if (!take(flags) || !take(bytes) || !take(looks) || !take(tail_at)) return;
    std::vector<look> all(looks % 16);
    for (auto& one : all) {
        if (!take(one)) return;
    }
    // Not more than there is, so that an access beyond it is seen.
    const std::size_t size = 24 + bytes % 4096;
    const auto memory = std::make_unique<std::byte[]>(size);
    if (!data.empty()) std::memcpy(memory.get(), data.data(), std::min(data.size(), size));
    const std::span<std::byte> area(memory.get(), size);
    decode(area);

    trace_ring::shared_atomic<std::uint64_t> head(0), tail(tail_at);
    x86::aux_buffer reader(
        area, head, tail,
        (flags & 1U) != 0 ? x86::aux_buffer::mode::snapshot : x86::aux_buffer::mode::full_trace);
    for (const auto& one : all) {
        head.store(one.head, trace_ring::seq_cst);
        if (one.count != 0) {
            reader.note_gap(one.gap, one.count >> 1U, trace_ring::loss_cause::refused);
        }
        checked visit;
        if ((flags & 2U) == 0) {
            expect(reader.read(visit) == visit.records, "as many as were handed over");
        } else {
            reader.attach();
            bool keeps = false;
            for (x86::aux_portion p; reader.take(p); keeps = !keeps) {
                expect(p.bytes().data() >= area.data() &&
                           p.bytes().data() + p.bytes().size() <= area.data() + area.size(),
                       "a portion lies in the area");
                expect(reader.visit(p, visit) == p.records(), "a portion's records are there");
                if (keeps && (flags & 4U) != 0) {
                    reader.keep(p);
                } else {
                    reader.consume(p);
                }
            }
            static_cast<void>(reader.rest());
            reader.detach();
        }
        expect(visit.records <= size / 24, "no more records than there is room for");
    }
}

void mutate(buffer& what, dice& random) {
    for (std::size_t times = 1 + random.below(3); times != 0; --times) {
        if (what.size() < 40) what.resize(60);
        const std::size_t at = random.below(what.size() - 8);
        constexpr std::uint64_t specials[] = {
            0, 1, 24, 4096, ~std::uint64_t{0}, std::uint64_t{1} << 62, std::uint64_t{1} << 63};
        switch (random.below(4)) {
            case 0:
                what[at] = static_cast<std::uint8_t>(random.any());
                break;
            case 1: {
                const std::uint64_t value = specials[random.below(std::size(specials))];
                const std::size_t word = random.below(2) != 0 ? 12 + at / 8 * 8 : at;
                if (word + 8 <= what.size()) std::memcpy(&what[word], &value, sizeof value);
                break;
            }
            case 2:
                what[at] = static_cast<std::uint8_t>(what[at] + 24);
                break;
            default:
                what[at] ^= static_cast<std::uint8_t>(1U << random.below(8));
                break;
        }
    }
}

}  // namespace
}  // namespace of_aux_buffer

const target aux_buffer_target{"aux_buffer", &of_aux_buffer::seeds, &of_aux_buffer::run,
                               &of_aux_buffer::mutate, 100000};

}  // namespace trace_ring_test::fuzz
