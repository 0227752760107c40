// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// A miniature System/370 host: it "executes" PROGRAM CALL, PROGRAM TRANSFER and SET SECONDARY ASN
// at random, has each one traced into a DAS trace table in its guest's storage, and then prints the
// table from the oldest entry to the newest, as an emulator's debugger would.

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include <trace_ring/das/guest_memory.hpp>
#include <trace_ring/das/table.hpp>

namespace {

namespace das = trace_ring::das;
namespace record = trace_ring::record;

constexpr std::uint32_t header = 0x1000, first = 0x2000;

constexpr char usage[] =
    "usage: das_trace [INSTRUCTIONS [ENTRIES]]\n"
    "Traces INSTRUCTIONS (10 unless told) into a table of ENTRIES (4 unless told) in the storage\n"
    "of a miniature System/370, and prints the table from the oldest entry to the newest.\n"
    "  --closed     with the DAS-trace control off: nothing is traced\n"
    "  --protected  with the table in a protected segment: a protection exception\n"
    "  --help       this text\n";

// The instructions that DAS tracing traces, by operation code.
struct instruction {
    std::uint16_t operation;
    const char* name;
};
constexpr std::array<instruction, 3> instructions{
    {{0xB218, "PC"}, {0xB228, "PT"}, {0xB225, "SSAR"}}};

// What this host puts into an entry is its own: number, operation code, processor, operand.
record::das_entry entry_for(std::uint32_t number, std::uint16_t operation, std::byte processor,
                            std::uint32_t operand) {
    record::das_entry entry;
    record::store_big(entry.payload, 0, number);
    record::store_big(entry.payload, 4, operation);
    entry.payload[6] = processor;
    record::store_big(entry.payload, 8, operand);
    return entry;
}

void print(std::uint32_t address, const record::das_entry& entry) {
    const auto operation = record::load_big<std::uint16_t>(entry.payload, 4);
    const char* name = "(never used)";
    for (const auto& known : instructions)
        if (known.operation == operation) name = known.name;
    std::printf("%06X  %6u  %-12s  cpu %02X  %08X\n", static_cast<unsigned>(address),
                static_cast<unsigned>(record::load_big<std::uint32_t>(entry.payload)), name,
                std::to_integer<unsigned>(entry.payload[6]),
                static_cast<unsigned>(record::load_big<std::uint32_t>(entry.payload, 8)));
}

// True if `text` is a number from 1 to `most`, which is then in `value`.
bool parse(std::string_view text, std::uint32_t most, std::uint32_t& value) {
    const auto end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    return error == std::errc{} && stop == end && value >= 1 && value <= most;
}

}  // namespace

int main(int argc, char** argv) {
    std::uint32_t count = 10, entries = 4;
    bool gate_open = true, is_protected = false;
    int numbers = 0;
    for (const std::string_view argument :
         std::span{argv, static_cast<std::size_t>(argc)}.subspan(1)) {
        if (argument == "--help") return std::fputs(usage, stdout) < 0 ? 1 : 0;
        if (argument == "--closed")
            gate_open = false;
        else if (argument == "--protected")
            is_protected = true;
        else if (numbers > 1 || !parse(argument, numbers == 0 ? 100'000'000 : 1'000,
                                       numbers == 0 ? count : entries))
            return std::fputs(usage, stderr) < 0 ? 1 : 2;
        else
            ++numbers;
    }

    // 64 KiB of guest storage, of words, so that it begins on a doubleword boundary.
    std::vector<std::uint64_t> storage(64 * 1024 / 8);
    const auto bytes = std::as_writable_bytes(std::span{storage});
    const trace_ring::guest_region segment{first, 0x9000,
                                           trace_ring::guest_region::kind::segment_protected};
    trace_ring::guest_memory memory{bytes, std::span{&segment, is_protected ? 1U : 0U}};

    // The control program's part: gate and header origin, then the three control words.
    const std::uint32_t last = first + 32 * entries;
    record::store_big(bytes, das::designation_location, (gate_open ? 0x80000000 : 0) | header);
    record::store_big(bytes, header + das::current_offset, first - 32);  // the first is used first
    record::store_big(bytes, header + das::first_offset, first);
    record::store_big(bytes, header + das::last_offset, last);
    bytes[das::cpu_identity_location] = std::byte{0xC1};

    // The machine's part.
    std::mt19937 random{370};
    std::uint32_t traced = 0;
    for (std::uint32_t number = 1; number <= count; ++number) {
        const auto& executed = instructions[random() % instructions.size()];
        const auto result = das::trace(
            memory, entry_for(number, executed.operation, bytes[das::cpu_identity_location],
                              static_cast<std::uint32_t>(random())));
        if (result.what == trace_ring::trace_result::outcome::exception) {
            std::printf("%s suppressed: interruption code %04X at %06X\n", executed.name,
                        static_cast<unsigned>(result.exception),
                        static_cast<unsigned>(result.address));
            return 1;
        }
        traced += result.traced() ? 1 : 0;
    }

    std::printf("%u executed, %u traced, table of %u\n", static_cast<unsigned>(count),
                static_cast<unsigned>(traced), static_cast<unsigned>(entries));
    const auto end = das::walk(memory, print);
    if (traced != 0) std::printf("newest: %06X\n", static_cast<unsigned>(end.address));
    return end.traced() ? 0 : 1;
}
