// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// @file A miniature CP: it "dispatches" users, starts their I/O and takes its interrupts. Each of
// these is an entry in its wrap table. CPTRAP is active from the fifth event on: it passes selected
// entries, and data that CP code hands over through the CP interface, through a ring to a spool
// file, while the wrap table is still filled. Finally, the table is read in both directions, and
// the spool file is shown as trace-reduce does.

#include <unistd.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <span>
#include <string_view>
#include <utility>

#include <trace_ring/cptrap/cp_entry.hpp>
#include <trace_ring/cptrap/interface.hpp>
#include <trace_ring/cptrap/ring_record.hpp>
#include <trace_ring/cptrap/selection.hpp>
#include <trace_ring/cptrap/spool.hpp>
#include <trace_ring/cptrap/spool_reader.hpp>
#include <trace_ring/drain/session.hpp>
#include <trace_ring/exporter/text/append.hpp>
#include <trace_ring/policy/full/overwrite_oldest.hpp>
#include <trace_ring/policy/storage/inline_bytes.hpp>
#include <trace_ring/policy/storage/mapping.hpp>
#include <trace_ring/record/data_model.hpp>
#include <trace_ring/ring/drain.hpp>
#include <trace_ring/ring/ring.hpp>

#include "trace_reduce/cptrap/names.hpp"
#include "trace_reduce/cptrap/text.hpp"

namespace {

namespace cptrap = trace_ring::cptrap;
namespace record = trace_ring::record;
namespace reduce = trace_ring::reduce;
using record::cp_event;

constexpr char usage[] =
    "usage: cptrap_trace [EVENTS [FILE]]\n"
    "Traces EVENTS (default 12) of a miniature CP into its wrap table of eight entries and, from\n"
    "the fifth event on, selected ones into the CPTRAP file FILE (default: memory), which must "
    "not\n"
    "exist, and prints both.\n";

// CP's wrap table, and the ring that CPTRAP's records go through.
struct wrap_table
    : trace_ring::policies<record::cp_entry, trace_ring::full::overwrite_oldest,
                           trace_ring::storage::inline_bytes<8 * sizeof(record::cp_entry)>> {};
trace_ring::ring<wrap_table> table;
trace_ring::ring<trace_ring::presets::traps<>> traps;

cptrap::trapok trapok;
// Started I/O for any entry, and interface data with codes up to X'FF'.
constexpr auto chosen = record::cptrap_selection().event(cp_event::start_io).codes(0, 0xFF);

// What follows an entry's code is this host's own: a number.
record::cp_entry entry_for(cp_event event, std::uint32_t number) {
    record::cp_entry entry;
    entry.set(event, number % 4 == 3);
    record::store_big(entry.payload, 11, number);
    return entry;
}

void dispatch(const cptrap::cp_interface<decltype(traps)>& trap, std::uint32_t number) {
    constexpr std::array events{cp_event::run_user, cp_event::start_io, cp_event::io_interrupt};
    const auto entry = entry_for(events[number % events.size()], number);
    static_cast<void>(table.write(entry));
    static_cast<void>(trap.entry(entry));
    // "USER" in EBCDIC, and which one.
    const std::array user{std::byte{0xE4}, std::byte{0xE2}, std::byte{0xC5}, std::byte{0xD9},
                          static_cast<std::byte>(0xF0 + number % 10)};
    if (number % 3 == 0) static_cast<void>(trap.hand_over(3, user));
    if (number % 3 == 1) static_cast<void>(trap.hand_over(0x100, user));  // not chosen
}

template <class Reader>
void print_table(const char* title, Reader reader) {
    std::printf("%s\n", title);
    while (const auto item = reader.next()) {
        if (item.is_loss()) {
            std::printf("  %llu overwritten\n", static_cast<unsigned long long>(item.lost.count));
            continue;
        }
        const auto name = trace_reduce::name_of(item.record.event());
        std::printf(
            "  %02X  %-12.*s  %s  %u\n", std::to_integer<unsigned>(item.record.code),
            static_cast<int>(name.size()), name.data(),
            item.record.attached() ? "attached" : "main    ",
            static_cast<unsigned>(record::load_big<std::uint32_t>(item.record.payload, 11)));
    }
}

void print_spool(reduce::spool_reader reader) {
    const trace_reduce::cptrap_text_writer writer;
    trace_ring::exporter::text_buffer text;
    while (const auto item = reader.next()) writer.append(text, {}, item);
    std::printf("spool file\n%.*sbackward:", static_cast<int>(text.size()), text.view().data());
    while (const auto item = reader.previous())
        std::printf(" %04X", static_cast<unsigned>(item.record.code));
    std::printf("\n");
}

int run(std::uint32_t count, const char* path) {
    namespace storage = trace_ring::storage;
    auto file =
        path != nullptr ? storage::create_file(path) : storage::create_memory_file("cptrap");
    const int other = ::dup(file.get());
    cptrap::spool spool(std::move(file), path != nullptr ? path : "memory");
    trace_ring::drain::session session(traps);
    const cptrap::cp_interface trap(trapok, traps);
    for (std::uint32_t number = 1; number <= count; ++number) {
        if (number == 5) trapok.start(chosen);
        dispatch(trap, number);
        spool.take(session);
    }
    trapok.stop();
    spool.finish(session);
    std::printf("%u events, %llu spooled, %llu lost\n", static_cast<unsigned>(count),
                static_cast<unsigned long long>(spool.records()),
                static_cast<unsigned long long>(spool.lost().total()));
    print_table("wrap table, forward", table.reader());
    print_table("wrap table, backward", table.backward_reader());
    print_spool(reduce::spool_reader(reduce::source::adopt(other, "spool")));
    return spool.error() == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    const std::span<char*> arguments(argv, static_cast<std::size_t>(argc));
    std::uint32_t count = 12;
    if (argc > 1) {
        const std::string_view text = arguments[1];
        const auto* const end = text.data() + text.size();
        const auto [stop, error] = std::from_chars(text.data(), end, count);
        if (error != std::errc{} || stop != end || argc > 3) {
            return std::fputs(usage, stderr) < 0 ? 1 : 2;
        }
    }
    try {
        return run(count, argc > 2 ? arguments[2] : nullptr);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "cptrap_trace: %s\n", error.what());
        return 1;
    }
}
