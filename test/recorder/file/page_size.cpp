// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Run with large_pages.cpp preloaded: everything of the library that maps memory works where pages
/// have 64 KiB. A separate program, without Boost.Test, because that maps memory, too.

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <trace_ring/policy/claim/per_cpu.hpp>
#include <trace_ring/policy/storage/life_lock.hpp>
#include <trace_ring/reading.hpp>
#include <trace_ring/recorder/cpu/recorder.hpp>
#include <trace_ring/rings.hpp>
#include <trace_ring/trace_ring.hpp>

namespace tr = trace_ring;

namespace {

struct step : tr::event<"step", tr::field<"n", std::uint64_t>> {};
struct by_cpu : tr::policies<tr::claim::per_cpu> {};
struct in_memory : tr::policies<tr::record::sub_buffers<>, tr::claim::single_writer,
                                tr::full::extend<20480, tr::full::stop>, tr::storage::mapped> {};

int failures = 0;
void check(bool good, const char* what) {
    if (good) return;
    std::fprintf(stderr, "not so: %s\n", what);
    ++failures;
}

/// A fork without the handlers of pthread_atfork: only the kernel can wipe what it is to wipe.
template <class Body>
void in_bare_child(Body&& body) {
    const auto child = static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
    if (child == 0) {
        body();
        ::_exit(failures);
    }
    int status = -1;
    check(child > 0 && ::waitpid(child, &status, 0) == child && status == 0, "the child ends well");
}

struct found {
    std::map<std::uint32_t, std::uint64_t> records;  // by process
    std::uint64_t lost = 0;
};
[[nodiscard]] found read(const std::string& file) {
    found out;
    const auto trace = tr::reduce::trace_file::open(file);
    for (auto cursor = trace.backward(); const auto* item = cursor.next();) {
        if (const auto* record = std::get_if<tr::reduce::record_view>(item)) {
            const std::uint32_t process = record->lane().process.value_or(~0U);
            ++out.records[process];
            check(record->field("n").u64() / 1'000'000 == process,
                  "each record is of the process that wrote it");
        } else if (const auto* loss = std::get_if<tr::reduce::loss_item>(item)) {
            out.lost += loss->count == 0 ? 1 : loss->count;
        }
    }
    return out;
}

template <class Recorder>
void record_in_threads(Recorder& recorder, std::uint64_t first) {
    std::vector<std::thread> threads;
    for (std::uint64_t t = 0; t < 4; ++t) {
        threads.emplace_back([&recorder, first, t] {
            for (std::uint64_t i = 0; i < 1000; ++i) {
                recorder.template record<step>(first + t * 1000 + i);
            }
        });
    }
    for (auto& thread : threads) thread.join();
}

/// Threads, a bare child, and a program that joins, in one file.
template <class Recorder>
void a_file_is_shared(tr::recorder_options options) {
    {
        Recorder recorder{options};
        record_in_threads(recorder, 0);
        recorder.template record<step>(std::uint64_t{0});
        in_bare_child([&] {
            recorder.template record<step>(std::uint64_t{1'000'000});
            record_in_threads(recorder, 1'000'000);
        });
        options.exists = tr::if_exists::attach;
        in_bare_child([&] {
            Recorder other{options};
            record_in_threads(other, 2'000'000);
        });
        record_in_threads(recorder, 0);
        check(!recorder.snapshot((options.file + ".copy").c_str()), "a snapshot is written");
    }
    for (const std::string& file : {options.file, options.file + ".copy"}) {
        const found all = read(file);
        check(
            all.records == std::map<std::uint32_t, std::uint64_t>{{0, 8001}, {1, 4001}, {2, 4000}},
            "each record is read");
        check(all.lost == 0, "nothing is lost");
    }
}

void a_process_is_known_to_live(const std::string& file) {
    const tr::recorder recorder{{.file = file}};
    tr::file_descriptor again(::open(file.c_str(), O_RDWR | O_CLOEXEC));
    check(tr::storage::byte_is_locked(again.get(), tr::layout::lock_offset(0)) ||
              ::access("/proc/self/fd", F_OK) != 0,
          "the process has its lock");
    tr::storage::life_lock lock;
    check(lock.take(again.get(), file.c_str(), tr::layout::lock_offset(7)) ==
                  tr::storage::lock_result::taken &&
              lock.held(),
          "a lock is taken");
    in_bare_child([&] {
        check(!lock.held(), "a child has no lock");
        lock.release();
    });
    check(tr::storage::byte_is_locked(again.get(), tr::layout::lock_offset(7)),
          "the lock outlives the child");
}

void memory_grows() {
    tr::recorder_options options;
    options.size = 36U << 10;  // no multiple of 64 KiB, and neither is the limit
    options.limit = 420U << 10;
    options.step = 20U << 10;
    options.full = tr::full_mode::extend_then_discard;
    tr::recorder recorder{options};
    record_in_threads(recorder, 0);
    check(recorder.statistics().sub_buffers > 12, "a recorder in memory grows");
    tr::ring<in_memory> ring(std::uint64_t{36} << 10, std::uint64_t{84} << 10);
    std::uint64_t written = 0;
    for (std::uint64_t i = 0; i < 1000; ++i) {
        auto slot = ring.try_reserve(16);
        if (!slot) break;
        slot.commit();
        ++written;
    }
    check(written == 1000, "a ring in mapped memory grows");
}

}  // namespace

int main() {
    const auto refused =
        reinterpret_cast<unsigned (*)()>(::dlsym(RTLD_DEFAULT, "large_pages_refused"));
    check(refused != nullptr, "large_pages is preloaded");
    check(tr::storage::machine_page_bytes() == 65536, "pages have 64 KiB");
    std::string folder = std::filesystem::temp_directory_path() / "trace_ring.XXXXXX";
    if (::mkdtemp(folder.data()) == nullptr) return 1;
    tr::recorder_options options;
    options.file = folder + "/whole";
    a_file_is_shared<tr::recorder>(options);
    options.file = folder + "/by_cpu";
    a_file_is_shared<tr::basic_recorder<by_cpu>>(options);
    options.file = folder + "/growing";
    options.size = 36U << 10;
    options.step = 20U << 10;
    options.full = tr::full_mode::extend_then_discard;
    a_file_is_shared<tr::recorder>(options);
    a_process_is_known_to_live(folder + "/locks");
    memory_grows();
    check(refused != nullptr && refused() == 0, "no call is refused");
    std::filesystem::remove_all(folder);
    return failures == 0 ? 0 : 1;
}
