// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// A program that records into a trace file, or reads one; two_words.py compiles it for both word
/// sizes of the machine and lets them share files.
///   two_words write FILE   makes FILE or joins it, and does what its input says, line by line:
///       put N    records N events, and says how many it has recorded in all
///       hold N   has N more threads record one and keep their sub-buffers, and says how many did,
///                and how many sub-buffers were taken from the dead so far
///   two_words read FILE    says what is in it, of each writer by its word size

#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <variant>
#include <vector>

#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/reduce/trace_file.hpp>

namespace {

namespace tr = trace_ring;

/// The same name and fields for both; those of `long`, sizes and spans of them differ in length.
struct sizes : tr::event<"sizes", tr::field<"word", std::uint32_t>, tr::field<"n", std::uint64_t>,
                         tr::field<"long", long>, tr::field<"unsigned", unsigned long>,
                         tr::field<"size", std::size_t>, tr::field<"pointer", const void*>,
                         tr::field<"double", double>, tr::field<"text", std::string_view>,
                         tr::field<"longs", std::span<const long>>> {};

constexpr std::uint32_t own_word = sizeof(void*);

bool put(tr::recorder& to, std::uint64_t n) {
    const auto small = static_cast<unsigned>(n);
    const std::array<long, 3> some{LONG_MIN, static_cast<long>(n), LONG_MAX};
    return to.record<sizes>(
        own_word, n, -1 - static_cast<long>(n), ULONG_MAX - small, SIZE_MAX / 2 - small,
        reinterpret_cast<const void*>(UINTPTR_MAX - small), static_cast<double>(n) / 4,
        std::to_string(n), std::span<const long>(some));
}

int write(const char* file) {
    tr::recorder recorder(
        {.file = file, .size = 64 * 4096, .exists = tr::if_exists::attach, .lanes = 256});
    std::uint64_t next = 0;
    std::uint64_t recorded = 0;
    std::atomic<std::uint64_t> kept{0};
    std::atomic<std::uint64_t> there{0};
    std::vector<std::thread> threads;
    std::cout << "ready" << std::endl;
    std::string what;
    for (std::uint64_t count = 0; std::cin >> what >> count;) {
        if (what == "put") {
            for (std::uint64_t i = 0; i < count; ++i) recorded += put(recorder, next++) ? 1 : 0;
            std::cout << recorded << std::endl;
        } else {
            for (std::uint64_t i = 0; i < count; ++i) {
                threads.emplace_back([&recorder, &kept, &there, n = next++] {
                    kept += put(recorder, n) ? 1 : 0;
                    ++there;
                    for (;;) ::pause();
                });
                while (there.load() < threads.size()) ::usleep(100);
            }
            std::cout << kept.load() << ' ' << recorder.statistics().reclaimed << std::endl;
        }
    }
    if (!threads.empty()) ::_exit(0);
    return 0;
}

bool is_right(const tr::reduce::record_view& r) {
    const std::uint64_t word = r.field(0).u64();
    if (word != 4 && word != 8) return false;
    using type = tr::field_type;
    const bool wide = word == 8;
    const std::uint64_t n = r.field(1).u64();
    const std::uint64_t most = wide ? UINT64_MAX : UINT32_MAX;
    const auto longs = r.field("longs");
    const std::int64_t longest = wide ? INT64_MAX : INT32_MAX;
    return r.type().fields.size() == 9 && r.field(2).type() == (wide ? type::i64 : type::i32) &&
           r.field(3).type() == (wide ? type::u64 : type::u32) &&
           r.field(4).type() == r.field(3).type() && r.field(5).type() == type::address &&
           r.field("long").i64() == -1 - static_cast<std::int64_t>(n) &&
           r.field("unsigned").u64() == most - n && r.field("size").u64() == most / 2 - n &&
           r.field("pointer").u64() == most - n &&
           r.field("double").f64() == static_cast<double>(n) / 4 &&
           r.field("text").text() == std::to_string(n) && longs.size() == 3 &&
           longs.type() == r.field(2).type() && longs.at(0).i64() == -longest - 1 &&
           longs.at(1).i64() == static_cast<std::int64_t>(n) && longs.at(2).i64() == longest;
}

int read(const char* file) {
    const auto trace = tr::reduce::trace_file::open(file);
    struct writer {
        std::uint64_t read = 0, wrong = 0, lost = 0, out_of_order = 0;
    };
    std::map<std::uint32_t, writer> writers;
    std::map<std::uint32_t, std::uint64_t> next;  // by lane
    std::uint64_t strange = trace.damages().size();
    const auto word_of = [&trace](const tr::reduce::lane_info* lane) {
        return lane == nullptr || !lane->process ? 0 : trace.processes()[*lane->process].word;
    };
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        if (const auto* const record = std::get_if<tr::reduce::record_view>(item)) {
            auto& from = writers[word_of(&record->lane())];
            ++from.read;
            const std::uint64_t n = record->field(1).u64();
            auto& expected = next[record->lane().number];
            if (n < expected) ++from.out_of_order;
            expected = n + 1;
            if (!is_right(*record) || record->field(0).u64() != word_of(&record->lane())) {
                ++from.wrong;
            }
        } else if (const auto* const loss = std::get_if<tr::reduce::loss_item>(item)) {
            writers[word_of(loss->lane)].lost += loss->count;
        } else {
            ++strange;
        }
    }
    for (const auto& [word, of] : writers) {
        std::cout << word << ": " << of.read << " read, " << of.lost << " lost, " << of.wrong
                  << " wrong, " << of.out_of_order << " out of order\n";
    }
    std::uint64_t types = 0;
    for (const auto& type : trace.event_types()) types += type.name == "sizes" ? 1 : 0;
    std::cout << types << " types, " << strange << " strange\n";
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    return std::string_view(argv[1]) == "write" ? write(argv[2]) : read(argv[2]);
}
