// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include <fuzz/hostile.hpp>

#include <sys/syscall.h>

#include <algorithm>
#include <cstring>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/sub_buffer.hpp>
#include <trace_ring/record/event/value_names.hpp>

namespace trace_ring_test::fuzz {

namespace layout = trace_ring::layout;
using trace_ring::relaxed;
using trace_ring::word_at;

namespace {

constexpr std::size_t most_commands = 400;

enum region : unsigned {
    header,
    ring,
    clocks,
    processes,
    gates,
    lanes,
    totals,
    dictionary,
    index,
    sub_buffer_headers,
    records,
    region_count
};

/// What a change is made of.
enum source : unsigned { given, sign_extended, added, bit, special, copied, position, high };

command any_command(dice& random) {
    command out;
    const std::size_t kind = random.below(4);
    if (kind == 0) {
        out.what = static_cast<std::uint8_t>(command::first_action + random.below(32));
    } else {
        // The words that are read most.
        constexpr unsigned favoured[] = {ring,  processes,          lanes, lanes,
                                         index, sub_buffer_headers, ring,  sub_buffer_headers};
        out.what = static_cast<std::uint8_t>(kind == 1 ? random.below(region_count)
                                                       : favoured[random.below(8)]);
    }
    out.how = static_cast<std::uint8_t>(random.any());
    out.where = static_cast<std::uint16_t>(random.any() >> random.below(14));
    out.value = static_cast<std::uint32_t>(random.any()) >> random.below(32);
    return out;
}

}  // namespace

program::program(input from) {
    if (!from.empty()) {
        image = from[0];
        from = from.subspan(1);
    }
    commands.resize(std::min(from.size() / 8, most_commands));
    if (!commands.empty()) std::memcpy(commands.data(), from.data(), commands.size() * 8);
}

buffer bytes_of(std::uint8_t which, const std::vector<command>& commands) {
    buffer out(1 + commands.size() * 8);
    out[0] = which;
    if (!commands.empty()) std::memcpy(out.data() + 1, commands.data(), commands.size() * 8);
    return out;
}

void mutate_program(buffer& what, dice& random) {
    program now{input(what)};
    auto& list = now.commands;
    for (std::size_t times = 1 + random.below(4); times != 0; --times) {
        const std::size_t at = random.below(list.size() + 1);
        const auto where = list.begin() + static_cast<std::ptrdiff_t>(at);
        switch (random.below(8)) {
            case 0:
                if (at < list.size()) list.erase(where);
                break;
            case 1:
                if (at < list.size()) std::swap(list[at], list[random.below(list.size())]);
                break;
            case 2:
                if (at < list.size()) list.insert(where, list[random.below(list.size())]);
                break;
            case 3:
                if (at < list.size()) {
                    std::uint8_t raw[8];
                    std::memcpy(raw, &list[at], 8);
                    raw[random.below(8)] = static_cast<std::uint8_t>(random.any());
                    std::memcpy(&list[at], raw, 8);
                }
                break;
            case 4:
                if (random.below(8) == 0) now.image = static_cast<std::uint8_t>(random.any());
                break;
            default:
                list.insert(where, any_command(random));
                break;
        }
    }
    if (list.size() > most_commands) list.resize(most_commands);
    what = bytes_of(now.image, list);
}

std::vector<buffer> program_seeds(std::size_t images, unsigned actions) {
    std::vector<buffer> out;
    dice random(4711);
    for (std::size_t of = 0; of < images; ++of) {
        std::vector<command> list;
        for (unsigned i = 0; i < 2 * actions; ++i) {
            command next;
            next.what = static_cast<std::uint8_t>(command::first_action + i % actions);
            next.value = i;
            list.push_back(next);
        }
        out.push_back(bytes_of(static_cast<std::uint8_t>(of), list));
        for (unsigned region = 0; region < region_count; ++region) {
            auto changed = list;
            for (unsigned i = 0; i < 4; ++i) {
                command next = any_command(random);
                next.what = static_cast<std::uint8_t>(region);
                changed.insert(changed.begin() + static_cast<std::ptrdiff_t>(i * 3), next);
            }
            out.push_back(bytes_of(static_cast<std::uint8_t>(of), changed));
        }
    }
    return out;
}

bool hostile_writer::is_header(const command& what) noexcept {
    return what.what % region_count == header;
}

std::uint64_t hostile_writer::place(const command& what) const noexcept {
    const auto in = [&](std::uint64_t base, std::uint64_t bytes) {
        return base + what.where * std::uint64_t{8} % std::max<std::uint64_t>(bytes / 8 * 8, 8);
    };
    const std::uint64_t slots = plan_.sub_buffer_limit;
    // The first entries are the ones in use.
    switch (what.what % region_count) {
        case header:
            return in(0, sizeof(layout::file_header));
        case ring:
            return in(plan_.ring, sizeof(layout::ring_state));
        case clocks:
            return in(plan_.clocks, plan_.clock_count * sizeof(layout::clock_entry));
        case processes:
            return in(plan_.processes, 2 * sizeof(layout::process_entry));
        case gates:
            return in(plan_.gates, 256);
        case lanes:
            return in(plan_.lanes, plan_.lane_count * sizeof(layout::lane_entry));
        case totals:
            return in(plan_.totals, plan_.totals_per_lane * 8ULL * plan_.lane_count);
        case dictionary:
            return in(plan_.dictionary, std::min<std::uint64_t>(plan_.dictionary_bytes, 512));
        case index:
            return in(plan_.index, slots * sizeof(layout::index_entry));
        case sub_buffer_headers:
            return plan_.bytes_for(what.where / 8 % slots) + what.where % 8 * 8;
        default:
            return in(plan_.sub_buffers, slots * plan_.sub_buffer_bytes);
    }
}

void hostile_writer::apply(const command& what) const noexcept {
    const std::uint64_t at = place(what);
    if (at + 8 > bytes_) return;
    const auto to = static_cast<std::size_t>(at);
    const unsigned width = what.how & 3U;
    const std::size_t within = (what.how >> 5U) & (0x7U << (3 - width) & 0x7U);
    constexpr std::uint64_t specials[] = {0,
                                          1,
                                          ~std::uint64_t{0},
                                          ~std::uint64_t{0} >> 1,
                                          std::uint64_t{1} << 63,
                                          std::uint64_t{1} << 61,
                                          std::uint64_t{1} << 48,
                                          std::uint64_t{1} << 32,
                                          0xFFFFFFFF,
                                          0x80000000,
                                          0x7FFFFFFF,
                                          0xFFFF,
                                          0x8000,
                                          0x7FFF,
                                          trace_ring::sub_buffer_magic,
                                          layout::file_magic,
                                          layout::type_magic,
                                          trace_ring::names_magic,
                                          4096,
                                          512,
                                          64};
    // relaxed, to the end: the others must accept anything
    const std::uint64_t old = word_at<std::uint64_t>(base_, to).load(relaxed);
    std::uint64_t value = what.value;
    switch (what.how >> 2U & 7U) {
        case sign_extended:
            value = static_cast<std::uint64_t>(
                static_cast<std::int64_t>(static_cast<std::int32_t>(what.value)));
            break;
        case added:
            value = old + static_cast<std::uint64_t>(
                              static_cast<std::int64_t>(static_cast<std::int8_t>(what.value)));
            break;
        case bit:
            value = old ^ std::uint64_t{1} << what.value % 64;
            break;
        case special:
            value = specials[what.value % std::size(specials)];
            break;
        case copied: {
            command from = what;
            from.where = static_cast<std::uint16_t>(what.value);
            const std::uint64_t other = place(from);
            if (other + 8 > bytes_) return;
            value = word_at<std::uint64_t>(base_, static_cast<std::size_t>(other)).load(relaxed);
            break;
        }
        case position:  // in some state
            value = std::uint64_t{what.value >> 3U} << 3U | (what.value & 7U);
            break;
        case high:
            value = std::uint64_t{what.value} << 32U;
            break;
        default:
            break;
    }
    switch (width) {
        case 0:
            word_at<std::uint64_t>(base_, to).store(value, relaxed);
            break;
        case 1:
            word_at<std::uint32_t>(base_, to + within)
                .store(static_cast<std::uint32_t>(value), relaxed);
            break;
        case 2:
            word_at<std::uint16_t>(base_, to + within)
                .store(static_cast<std::uint16_t>(value), relaxed);
            break;
        default:
            word_at<std::uint8_t>(base_, to + within)
                .store(static_cast<std::uint8_t>(value), relaxed);
            break;
    }
}

memory_file::memory_file() : fd_(static_cast<int>(::syscall(SYS_memfd_create, "fuzz", 1U))) {
    expect(fd_ >= 0, "there is memory with a descriptor");
    base_ = ::mmap(nullptr, most, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    expect(base_ != MAP_FAILED, "it can be mapped");
    name_ = "/proc/self/fd/" + std::to_string(fd_);
}

memory_file::~memory_file() {
    ::munmap(base_, most);
    ::close(fd_);
}

void memory_file::fill(const image& from, std::uint64_t bytes) {
    bytes_ = std::min<std::uint64_t>({bytes, from.size() * 8, most});
    expect(::ftruncate(fd_, static_cast<off_t>(bytes_)) == 0, "its size can be changed");
    if (bytes_ != 0) std::memcpy(base_, from.data(), static_cast<std::size_t>(bytes_));
}

}  // namespace trace_ring_test::fuzz
