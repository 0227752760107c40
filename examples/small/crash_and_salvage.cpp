// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// Records, and dies in the given way; then reads what is left.
///   crash_and_salvage segv|abort|kill|snapshot|core FILE      dies
///   crash_and_salvage read FILE                               shows the newest records
/// A trace in a file survives by itself. One in memory is in the snapshot, or in the core dump.

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <set>
#include <string>
#include <variant>

#include <trace_ring/reading.hpp>
#include <trace_ring/trace_ring.hpp>

namespace {

namespace reduce = trace_ring::reduce;

struct order_sent : trace_ring::event<"order.sent", trace_ring::field<"id", int>> {};

[[noreturn]] void die(const std::string& way, const std::string& file) {
    trace_ring::recorder_options options{.size = 1 << 18};
    if (way != "snapshot" && way != "core") options.file = file;  // otherwise, in memory
    trace_ring::recorder recorder(options);
    std::optional<trace_ring::crash_snapshot> at_crash;
    if (way == "snapshot") at_crash.emplace(recorder, file);

    for (int id = 1; id <= 20'000; ++id) recorder.record<order_sent>(id);

    if (way == "segv" || way == "snapshot") {
        *static_cast<volatile int*>(nullptr) = 1;
    }
    if (way == "kill") std::raise(SIGKILL);  // as the kernel does when memory is exhausted
    std::abort();  // "core": with `ulimit -c unlimited`, this leaves a core dump
}

// Losses and damage are items, too: what is missing is never silent.
int read(const std::string& file) {
    const auto trace = reduce::trace_file::open(file);
    int records = 0;
    unsigned long long lost = 0;
    for (auto cursor = trace.backward(); const auto* item = cursor.next();) {
        if (const auto* record = std::get_if<reduce::record_view>(item)) {
            if (++records > 3) continue;
            std::printf("%s id=%d\n", std::string(record->name()).c_str(),
                        static_cast<int>(record->field("id").i64()));
        } else if (const auto* loss = std::get_if<reduce::loss_item>(item)) {
            lost += loss->count;
        }
    }
    std::printf("%d records, %llu lost\n", records, lost);
    return 0;
}

}  // namespace

int main(int count, char** arguments) try {
    const std::string way = count == 3 ? arguments[1] : "";
    if (way == "read") return read(arguments[2]);
    const std::set<std::string> ways{"segv", "abort", "kill", "snapshot", "core"};
    if (ways.contains(way)) die(way, arguments[2]);
    std::fputs("usage: crash_and_salvage segv|abort|kill|snapshot|core|read FILE\n", stderr);
    return 2;
} catch (const std::exception& error) {
    std::fprintf(stderr, "crash_and_salvage: %s\n", error.what());
    return 1;
}
