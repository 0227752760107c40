// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The slowest records instead of the mean: percentiles of one record's time, measured with the
/// clock before and after it, with warm caches and after the caches were swept; and the time until
/// a sleeping reader learns that a watermark was passed.
///
/// The time of two clock reads is subtracted: the median of the same measurement with nothing in
/// between. Only the counters are of interest, not the total times.

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include <trace_ring/policy/claim/single_writer.hpp>
#include <trace_ring/policy/notify/at_watermark.hpp>
#include <trace_ring/policy/storage/inline_bytes.hpp>
#include <trace_ring/record/concept.hpp>
#include <trace_ring/ring/ring.hpp>

#include "floor.hpp"
#include "kinds.hpp"

namespace {

namespace floors = bench::floor;
namespace tr = trace_ring;
using floors::MiB;

/// Ticks, with nothing before it that comes after it, nor the other way round.
[[gnu::always_inline]] inline std::uint64_t ticks() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_lfence();
    const std::uint64_t now = __builtin_ia32_rdtsc();
    __builtin_ia32_lfence();
    return now;
#else
    asm volatile("isb" ::: "memory");
    return tr::clock::tsc::now();
#endif
}

[[nodiscard]] double nanoseconds(double of_ticks) {
    static const double per_second = tr::clock::tsc::ticks_per_second();
    return of_ticks / per_second * 1e9;
}

/// The samples for percentiles, in ticks.
class samples {
public:
    void add(std::uint64_t from, std::uint64_t to) {
        all_.push_back(static_cast<double>(to - from));
    }
    [[nodiscard]] std::size_t size() const { return all_.size(); }
    /// Forgets all but the first.
    void keep(std::size_t first) { all_.resize(first); }
    [[nodiscard]] double at(double share) {
        if (all_.empty()) return 0;
        std::sort(all_.begin(), all_.end());
        const auto last = static_cast<double>(all_.size() - 1);
        return all_[static_cast<std::size_t>(share * last + 0.5)];
    }
    void tell(benchmark::State& state, double base) {
        const auto above = [&](double share) {
            return std::max(0.0, nanoseconds(at(share) - base));
        };
        state.counters["p50"] = above(0.5);
        state.counters["p99"] = above(0.99);
        state.counters["p999"] = above(0.999);
        state.counters["samples"] = static_cast<double>(all_.size());
    }

private:
    std::vector<double> all_;
};

/// More than the caches hold, read and written through.
void sweep() {
    constexpr std::size_t bytes = 48 * MiB;
    static const auto memory = std::make_unique<std::uint64_t[]>(bytes / 8);
    for (std::size_t i = 0; i < bytes / 8; i += 8) memory[i] += 1;
    floors::forget();
}

[[nodiscard]] double nothing() {
    samples empty;
    for (int i = 0; i < 10000; ++i) {
        const std::uint64_t from = ticks();
        empty.add(from, ticks());
    }
    return empty.at(0.5);
}

struct the_floor {
    using store = floors::store<3, floors::with_clock, MiB>;

    [[gnu::always_inline]] void one(std::uint64_t i) { store::put(bench::thread_memory(MiB), i); }
};
/// The minimum of a lane: a word of the thread leads to it; its mark, in a separate page as fork
/// wipes that page, is set while the record is written; the sub-buffer stores where to write, and
/// its records are counted when they are committed. No gate, no type, no recorder, no checks, and
/// the next sub-buffer is always available.
class the_lane {
    static constexpr std::size_t page_bytes = 4096;
    static constexpr std::uint32_t sub_buffer_bytes = 4096, header_bytes = 64, record_bytes = 24;

    struct alignas(page_bytes) lane {
        alignas(page_bytes) tr::atomic<std::byte*> sub_buffer{nullptr};
        alignas(page_bytes) tr::atomic<std::uint64_t> mark{1};
    };
    struct alignas(page_bytes) buffer {
        std::byte bytes[MiB]{};
    };
    static inline constinit thread_local lane* of_thread = nullptr;

    std::unique_ptr<lane> lane_ = std::make_unique<lane>();
    std::unique_ptr<buffer> memory_ = std::make_unique<buffer>();

    /// The sub-buffer that begins `at` bytes further; its commit word is the offset of the next
    /// record and, above, their number.
    std::byte* empty(std::size_t at) {
        std::byte* const next = memory_->bytes + at;
        // relaxed, both: one thread
        tr::word_at<std::uint64_t>(next, 0).store(header_bytes, tr::relaxed);
        lane_->sub_buffer.store(next, tr::relaxed);
        return next;
    }

public:
    the_lane() {
        of_thread = lane_.get();
        empty(0);
    }

    [[gnu::always_inline]] void one(std::uint64_t i) {
        // relaxed, to the end: one thread
        lane& mine = *of_thread;
        const std::uint64_t idle = mine.mark.load(tr::relaxed);
        mine.mark.store(0, tr::relaxed);
        tr::signal_fence(tr::seq_cst);
        std::byte* sub = mine.sub_buffer.load(tr::relaxed);
        const std::uint64_t now = tr::clock::tsc::now_halves().low;
        std::uint64_t commit = tr::word_at<std::uint64_t>(sub, 0).load(tr::relaxed);
        auto end = static_cast<std::uint16_t>(commit);
        if (end + record_bytes > sub_buffer_bytes) [[unlikely]] {
            const auto at = static_cast<std::size_t>(sub - memory_->bytes);
            sub = empty((at + sub_buffer_bytes) % MiB);
            commit = end = header_bytes;
        }
        tr::word_at<std::uint64_t>(sub, end).store(std::uint64_t{3} << 48 | now, tr::relaxed);
        tr::word_at<std::uint64_t>(sub, end + 8U).store(i, tr::relaxed);
        tr::word_at<std::uint64_t>(sub, end + 16U).store(~i, tr::relaxed);
        constexpr std::uint64_t one_more = (std::uint64_t{1} << 16) + record_bytes;
        tr::word_at<std::uint64_t>(sub, 0).store(commit + one_more, tr::release);
        tr::signal_fence(tr::seq_cst);
        mine.mark.store(idle, tr::relaxed);
    }
};
/// A sub-buffer of 4 KiB is full after 168 records, so that one record in 168 pays for a claim:
/// with 32 KiB it is one in 1,365, which is beyond the 99.9th percentile.
template <class Kind, std::uint32_t SubBufferBytes = 4096>
struct a_recorder {
    tr::basic_recorder<Kind> recorder{{.size = MiB, .sub_buffer_bytes = SubBufferBytes}};

    [[gnu::always_inline]] void one(std::uint64_t i) {
        recorder.template record<bench::sample>(i, ~i);
    }
};

template <class Writer, bool Swept>
struct percentiles {
    Writer writer;

    void operator()(std::uint64_t) {}
    void counters(benchmark::State& state) {
        const bool patient = !bench::only_tried();
        const double base = nothing();
        const std::size_t count = !patient ? 20 : Swept ? 1000 : 400000;
        constexpr std::size_t at_once = Swept ? 20 : 20000;
        for (std::uint64_t i = 0; i < 1000; ++i) writer.one(i);
        samples taken;
        // Samples taken while others used the core do not count, up to a maximum number.
        for (std::size_t others = count / at_once; taken.size() < count;) {
            bench::calm::meeting alone{0};
            bench::calm::watch watch(1);
            watch.wait(alone, patient);
            const std::size_t before = taken.size();
            for (std::size_t i = before; i < std::min(before + at_once, count); ++i) {
                if (Swept) sweep();
                const std::uint64_t from = ticks();
                writer.one(i);
                taken.add(from, ticks());
            }
            watch.look();
            if (!watch.was_calm() && others > 0) {
                --others;
                taken.keep(before);
            }
        }
        taken.tell(state, base);
    }
};

/// A word that a reader sleeps on.
struct bell {
    tr::atomic<std::uint32_t> rung{0};
    tr::atomic<std::uint64_t> heard_at{0};
    tr::atomic<std::uint32_t> heard{0};
    tr::atomic<std::uint32_t> over{0};

    void ring() noexcept {
        rung.fetch_add(1, tr::release);
        ::syscall(SYS_futex, &rung, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    }
    /// The reader's thread.
    void listen() {
        for (std::uint32_t seen = 0; over.load(tr::acquire) == 0;) {
            ::syscall(SYS_futex, &rung, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
            const std::uint32_t now = rung.load(tr::acquire);
            if (now == seen) continue;
            seen = now;
            // relaxed: published by the word below
            heard_at.store(ticks(), tr::relaxed);
            heard.store(seen, tr::release);
        }
    }
};

/// A reader on another processor, asleep when it is called. What `prepare` does takes no part.
template <class Prepare, class Call>
void measure_waking(benchmark::State& state, bell& line, Prepare prepare, Call call) {
    std::thread reader([&] {
        bench::pin(1);
        line.listen();
    });
    samples taken;
    const int count = bench::only_tried() ? 5 : 300;
    for (int i = 0; i < count; ++i) {
        prepare();
        ::usleep(1000);
        const std::uint32_t next = line.rung.load(tr::acquire) + 1;
        const std::uint64_t from = ticks();
        call();
        while (line.heard.load(tr::acquire) != next) ::usleep(50);
        // relaxed: published by the word that was read
        taken.add(from, line.heard_at.load(tr::relaxed));
    }
    line.over.store(1, tr::release);
    line.ring();
    reader.join();
    taken.tell(state, 0);
}

struct bare_waking {
    void operator()(std::uint64_t) {}
    static void counters(benchmark::State& state) {
        bell line;
        measure_waking(
            state, line, [] {}, [&] { line.ring(); });
    }
};

struct watched
    : tr::policies<tr::record::sub_buffers<>, tr::claim::single_writer,
                   tr::storage::inline_bytes<MiB>,
                   tr::notify::at_watermark<tr::notify::records(16), tr::notify::by_callback>> {};

/// From the record that passes the mark, its writing and the callback included.
struct waking_at_watermark {
    void operator()(std::uint64_t) {}
    static void counters(benchmark::State& state) {
        bell line;
        const auto ring = std::make_unique<tr::ring<watched>>();
        auto consumer = ring->consumer();
        const tr::notify::callback wake{[](void* context, tr::notify::progress) noexcept {
                                            static_cast<bell*>(context)->ring();
                                        },
                                        &line};
        ring->notifier().tell(&wake);
        const auto arm = [&] {
            while (!consumer.rearm()) {
                while (consumer.next()) {
                }
            }
        };
        measure_waking(state, line, arm, [&] {
            const std::uint32_t before = line.rung.load(tr::acquire);
            for (std::uint64_t i = 0; line.rung.load(tr::acquire) == before; ++i)
                ring->write(9, i, ~i);
        });
        ring->notifier().tell(nullptr);
    }
};

template <class Writer>
void add_percentiles(const std::string& name, const std::string& over) {
    const auto add = [&]<bool Swept>(const std::string& how) {
        bench::add<percentiles<Writer, Swept>>(name + how, over.empty() ? over : over + how, 1, 1,
                                               bench::time_of::nothing);
    };
    add.template operator()<false>("/warm");
    add.template operator()<true>("/swept");
}

}  // namespace

int main(int argc, char** argv) {
    add_percentiles<the_floor>("floor/one_record", "");
    add_percentiles<the_lane>("floor/lane", "floor/one_record");
    bench::for_each_kind([]<class Kind>(const std::string& name, bool timed) {
        if (timed) add_percentiles<a_recorder<Kind>>("latency/" + name, "floor/one_record");
    });
    add_percentiles<a_recorder<tr::recording, 32768>>("latency/large_sub_buffers",
                                                      "floor/one_record");
    bench::add<bare_waking>("floor/waking", "", 1, 1, bench::time_of::nothing);
    bench::add<waking_at_watermark>("latency/waking", "floor/waking", 1, 1,
                                    bench::time_of::nothing);
    return bench::run(argc, argv);
}
