// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Any bytes, taken for a CPTRAP spool file, and for the storage of a guest that calls the CP
/// interface. The file is read to its end both ways with the same items, from each of its spool
/// records, and a spool continues it; calls touch nothing beyond the storage.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include <fuzz/targets.hpp>
#include <trace_ring/cptrap/interface.hpp>
#include <trace_ring/cptrap/record.hpp>
#include <trace_ring/cptrap/selection.hpp>
#include <trace_ring/cptrap/spool.hpp>
#include <trace_ring/cptrap/spool_reader.hpp>
#include <trace_ring/cptrap/spool_record.hpp>
#include <trace_ring/das/guest_memory.hpp>
#include <trace_ring/policy/clock/none.hpp>
#include <trace_ring/policy/storage/inline_bytes.hpp>
#include <trace_ring/policy/storage/mapping.hpp>
#include <trace_ring/ring/ring.hpp>

namespace trace_ring_test::fuzz {

namespace of_cptrap {
namespace {

namespace cptrap = trace_ring::cptrap;
namespace record = trace_ring::record;
namespace reduce = trace_ring::reduce;
using kind = reduce::spool_item::kind;

struct trap_trace : trace_ring::policies<record::sub_buffers<>, trace_ring::clock::none,
                                         trace_ring::storage::inline_bytes<65536>> {};
trace_ring::ring<trap_trace> ring;
constexpr auto everything = record::cptrap_selection::everything();

std::vector<buffer> seeds() {
    dice random(4);
    std::vector<buffer> out;
    for (std::size_t pages = 1; pages <= 3; ++pages) {
        buffer file;
        for (std::size_t i = 0; i < pages; ++i) {
            record::spool_page page;
            for (;;) {
                std::byte data[record::cptrap_most_data];
                std::byte one[record::cptrap_most_bytes];
                const std::size_t length = random.below(265);
                std::fill_n(data, length, static_cast<std::byte>(random.any()));
                const auto type = random.below(8) == 0 ? record::cptrap_type::lost
                                                       : record::cptrap_type::cp_interface;
                const std::size_t size =
                    record::put_cptrap(one, type, static_cast<std::uint16_t>(random.below(9)),
                                       std::span(data, length));
                if (!page.add(std::span(one, size))) break;
            }
            const auto* from = reinterpret_cast<const std::uint8_t*>(page.bytes().data());
            file.insert(file.end(), from, from + record::spool_record_bytes);
        }
        out.push_back(file);
        file.resize(file.size() - 1000);
        out.push_back(file);
    }
    return out;
}

struct place {
    kind what;
    std::uint64_t offset, end;
    friend bool operator==(const place&, const place&) = default;
};
/// `file` is what is read, or empty where that is not at hand.
place place_of(const reduce::spool_item& item, std::uint64_t size,
               std::span<const std::byte> file) {
    const std::uint64_t end = item.offset + item.bytes.size();
    expect(item.offset <= size && end <= size, "items lie in the file");
    expect(item.number == item.offset / record::spool_record_bytes || item.what == kind::torn,
           "and in their spool record");
    if (!file.empty()) {
        const auto there = file.subspan(static_cast<std::size_t>(item.offset), item.bytes.size());
        expect(std::equal(there.begin(), there.end(), item.bytes.begin()), "are its bytes");
    }
    if (item.what == kind::record) {
        expect(!item.bytes.empty(), "no record is empty");
        if (const auto lost = item.record.lost()) expect(to_string(lost->cause) != "", "a cause");
        static_cast<void>(item.record.entry());
        expect(item.record.data().size() <= item.bytes.size(), "data lies in its record");
    }
    return {item.what, item.offset, end};
}

void read_both_ways(reduce::spool_reader& reader, std::uint64_t size,
                    std::span<const std::byte> file = {}) {
    std::vector<place> all;
    reader.go_to(0);
    while (const auto item = reader.next()) {
        all.push_back(place_of(item, size, file));
        expect(all.size() <= size + 2, "reading comes to an end");
        if (all.size() > 1) expect(all.end()[-2].end <= all.back().offset, "items ascend");
    }
    for (std::size_t i = all.size(); i-- != 0;) {
        const auto item = reader.previous();
        expect(item && place_of(item, size, file) == all[i], "backward the same items");
    }
    expect(!reader.previous(), "and no other");
    const std::uint64_t middle = reader.spool_records() / 2;
    reader.go_to(middle);
    const auto first = std::find_if(all.begin(), all.end(), [&](const place& one) {
        return one.offset >= middle * record::spool_record_bytes;
    });
    const auto item = reader.next();
    expect(item ? first != all.end() && place_of(item, size, file) == *first : first == all.end(),
           "the same from any place");
}

void go_on(std::span<const std::byte> bytes) {
    auto file = trace_ring::storage::create_memory_file("cptrap");
    const int fd = file.get();
    expect(::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()), "room");
    const int other = ::dup(fd);
    std::optional<cptrap::spool> made;
    try {
        made.emplace(std::move(file), "cptrap");
    } catch (const trace_ring::setup_error&) {
        buffer there(bytes.size() + 1);
        expect(
            ::pread(other, there.data(), there.size(), 0) == static_cast<ssize_t>(bytes.size()) &&
                std::memcmp(there.data(), bytes.data(), bytes.size()) == 0,
            "a file that is refused stays as it was");
        ::close(other);
        return;
    }
    cptrap::spool& spool = *made;
    expect(spool.append(7, bytes.first(std::min<std::size_t>(bytes.size(), 300))), "there is room");
    expect(spool.flush() && spool.error() == 0, "and it is written");
    auto reader = reduce::spool_reader(reduce::source::adopt(other, "cptrap"));
    reader.go_to_end();
    const auto last = reader.previous();
    expect(last.what == kind::record && last.record.code == 7, "what came last stands last");
    expect(last.record.data().size() == std::min<std::size_t>(bytes.size(), 264), "with its data");
    read_both_ways(reader, spool.spool_records() * record::spool_record_bytes);
}

void call(std::span<std::byte> storage) {
    if (storage.size() < 16) return;
    cptrap::trapok trapok;
    trapok.start(everything);
    const cptrap::cp_interface trap(trapok, ring);
    trace_ring::guest_memory memory(storage.first(storage.size() / 4 * 4));
    for (std::uint32_t list = 0; list < 64; ++list) {
        const auto result =
            trap.call(memory, list * 61 % static_cast<std::uint32_t>(storage.size()));
        expect(result.what == cptrap::outcome::stored || result.what == cptrap::outcome::exception,
               "all is chosen");
    }
}

void run(input data) {
    std::vector<std::uint64_t> words((data.size() + 7) / 8);
    if (!data.empty()) std::memcpy(words.data(), data.data(), data.size());
    const auto memory = std::as_writable_bytes(std::span(words)).first(data.size());
    auto reader = reduce::spool_reader::from(memory);
    read_both_ways(reader, data.size(), memory);
    reader.select(record::cptrap_selection().codes(1, 4));
    reader.go_to_end();
    std::size_t items = 0;
    while (reader.previous()) expect(++items <= data.size() + 2, "it ends when some are chosen");
    reader.select_everything();
    reader.lengths(record::cptrap_lengths()
                       .by_header(record::cptrap_type{0x3E})
                       .fixed(record::cptrap_type{0x0B}, 16)
                       .fixed(record::cptrap_type{0x0C}, 5000));
    read_both_ways(reader, data.size(), memory);
    if (data.size() <= 4 * record::spool_record_bytes) go_on(memory);
    call(memory);
}

/// Types and lengths in their places, and bytes anywhere; now and then another length.
void mutate(buffer& what, dice& random) {
    for (std::size_t times = 1 + random.below(4); times != 0; --times) {
        if (what.size() < 16) what.resize(4096);
        constexpr std::uint8_t specials[] = {0,    1,    7,    8,    0x0B, 0x0C, 0x10,
                                             0x11, 0x3E, 0x3F, 0xC0, 0xD3, 0xC5, 0xFF};
        switch (random.below(6)) {
            case 0:
                what.resize(random.below(3 * 4096));
                break;
            case 1: {
                // Along the records of one spool record, as far as they make sense.
                std::size_t at = random.below(what.size()) / 4096 * 4096;
                for (std::size_t steps = random.below(20); steps != 0; --steps) {
                    if (at + 16 > what.size()) break;
                    const std::size_t length = what[at + 4] * 256U + what[at + 5];
                    if (length < 8 || at + length + 16 > what.size()) break;
                    at += length;
                }
                constexpr std::size_t places[] = {0, 2, 3, 4, 5, 5, 8};
                if (at + 16 > what.size()) break;
                what[at + places[random.below(std::size(places))]] =
                    specials[random.below(std::size(specials))];
                break;
            }
            default:
                what[random.below(what.size())] = random.below(2) == 0
                                                      ? specials[random.below(std::size(specials))]
                                                      : static_cast<std::uint8_t>(random.any());
                break;
        }
    }
}

}  // namespace
}  // namespace of_cptrap

const target cptrap_target{"cptrap", &of_cptrap::seeds, &of_cptrap::run, &of_cptrap::mutate, 10000};

}  // namespace trace_ring_test::fuzz
