// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file The floors: the minimum work of any recorder, without a recorder. A floor does not check,
/// order, nest or allow reading; the difference to a floor is the price of these.

#include <cstddef>
#include <cstdint>
#include <string>

#include <trace_ring/atomic.hpp>
#include <trace_ring/policy/clock/tsc.hpp>

#include "measure.hpp"

namespace bench::floor {

/// What the compiler may neither remember nor move across.
[[gnu::always_inline]] inline void forget() {
    asm volatile("" ::: "memory");
}

/// Nothing but the loop.
struct loop {
    static constexpr bool counted = true;

    [[gnu::noinline]] void operator()(std::uint64_t n) const {
        for (std::uint64_t i = 0; i < n; ++i) forget();
    }
};

/// The loop, and a record's payload computed in it: what counts of instructions have to be freed
/// of.
struct payload {
    static constexpr bool counted = true;

    [[gnu::noinline]] void operator()(std::uint64_t n) const {
        for (std::uint64_t i = 0; i < n; ++i) asm volatile("" ::"r"(i), "r"(~i) : "memory");
    }
};

/// The clock, read and thrown away.
struct clock {
    [[gnu::noinline]] void operator()(std::uint64_t n) const {
        for (std::uint64_t i = 0; i < n; ++i) {
            static_cast<void>(trace_ring::clock::tsc::now_halves());
        }
    }
};

/// A record of `Words` 64-bit words, the first with the clock's low half (or none) and a constant,
/// stored where a thread's index points. The index is kept in memory, as in a recorder, and wraps
/// in `Bytes`.
template <std::size_t Words, bool Timed, std::size_t Bytes>
struct store {
    static constexpr bool counted = Words == 3 && Bytes == std::size_t{1} << 20;
    static inline constinit thread_local std::uint64_t index = 0;

    [[gnu::noinline]] void operator()(std::uint64_t n) const {
        std::byte* const memory = thread_memory(Bytes);
        for (std::uint64_t i = 0; i < n; ++i) put(memory, i);
    }

    [[gnu::always_inline]] static void put(std::byte* memory, std::uint64_t i) {
        put(memory, i, [] {
            return Timed ? Words << 48 | trace_ring::clock::tsc::now_halves().low : Words << 16;
        });
    }
    /// Of what `head` returns, which is called behind the load of the index.
    template <class Head>
    [[gnu::always_inline]] static void put(std::byte* memory, std::uint64_t i, Head head) {
        constexpr std::uint64_t length = Words * 8;
        const std::uint64_t at = index;
        auto* const word = reinterpret_cast<std::uint64_t*>(memory + at);
        word[0] = head();
        for (std::size_t k = 1; k < Words; ++k) word[k] = k % 2 != 0 ? i : ~i;
        const std::uint64_t next = at + length;
        index = next <= Bytes - length ? next : 0;
        forget();
    }
};

/// The timed store, by one reading of the clock in `SharedBy`: a power of two.
template <std::size_t Bytes, std::uint64_t SharedBy>
struct store_by_shared_readings {
    [[gnu::noinline]] void operator()(std::uint64_t n) const {
        std::byte* const memory = thread_memory(Bytes);
        std::uint64_t reading = 0;
        for (std::uint64_t i = 0; i < n; ++i) {
            store<3, true, Bytes>::put(memory, i, [&] {
                if (i % SharedBy == 0) reading = trace_ring::clock::tsc::now_halves().low;
                return std::uint64_t{3} << 48 | reading;
            });
        }
    }
};

/// 64 multiplications, each waiting for the one before: work that a record may hide behind.
[[gnu::always_inline]] inline std::uint64_t work(std::uint64_t x) {
    for (int k = 0; k < 64; ++k) {
        x *= 0x9E3779B97F4A7C15U;
        asm volatile("" : "+r"(x));
    }
    return x;
}
struct work_alone {
    [[gnu::noinline]] void operator()(std::uint64_t n) const {
        std::uint64_t x = 1;
        for (std::uint64_t i = 0; i < n; ++i) x = work(x);
        benchmark::DoNotOptimize(x);
    }
};
struct work_and_clock {
    [[gnu::noinline]] void operator()(std::uint64_t n) const {
        std::uint64_t x = 1;
        for (std::uint64_t i = 0; i < n; ++i) {
            x = work(x);
            static_cast<void>(trace_ring::clock::tsc::now_halves());
        }
        benchmark::DoNotOptimize(x);
    }
};
template <class Store>
struct work_and_store {
    [[gnu::noinline]] void operator()(std::uint64_t n) const {
        std::byte* const memory = thread_memory(std::size_t{1} << 20);
        std::uint64_t x = 1;
        for (std::uint64_t i = 0; i < n; ++i) {
            x = work(x);
            Store::put(memory, i);
        }
        benchmark::DoNotOptimize(x);
    }
};

/// A closed gate that is one load and one branch.
struct branch {
    trace_ring::atomic<std::uint32_t> open{0};

    [[gnu::noinline]] void operator()(std::uint64_t n) {
        for (std::uint64_t i = 0; i < n; ++i) {
            if (open.load(trace_ring::relaxed) != 0) forget();  // relaxed: a gate is advice
        }
    }
};

/// Words that locked steps are made on: the one that all threads share, and each thread's own.
struct words {
    alignas(128) trace_ring::atomic<std::uint64_t> shared{0};
    struct alignas(128) line {
        trace_ring::atomic<std::uint64_t> word{0};
    };
    static line& own() {
        static thread_local line mine;
        return mine;
    }
};
/// A locked add; a compare and swap, tried until it holds.
template <bool Shared, bool Swap>
struct locked_step {
    words all;

    [[gnu::noinline]] void operator()(std::uint64_t n) {
        auto& word = Shared ? all.shared : words::own().word;
        for (std::uint64_t i = 0; i < n; ++i) {
            // relaxed, all: only the cost matters
            if constexpr (Swap) {
                std::uint64_t seen = word.load(trace_ring::relaxed);
                while (!word.compare_exchange_weak(seen, seen + 1, trace_ring::relaxed)) {
                }
            } else {
                benchmark::DoNotOptimize(word.fetch_add(1, trace_ring::relaxed));
            }
        }
    }
};

/// Two threads change one line in turn: no round trip between them is shorter. On 16 lines one
/// after the other, because it may depend on the line's address.
struct ping_pong {
    static constexpr std::uint64_t count = 16;
    distance::ping_pong lines[count];

    [[gnu::noinline]] void operator()(std::uint64_t n, int thread) {
        for (std::uint64_t i = 0; i < count; ++i) {
            lines[i](n / count + (i < n % count ? 1 : 0), thread);
        }
    }
};

/// The bare design of a ring with many writers: one locked add to reserve 32 bytes, and a sequence
/// word stored before and after the record. Nothing stops a writer that was overtaken by a whole
/// lap, so such a record may be torn without notice.
struct add_and_sequence {
    static constexpr std::size_t slots = 2048;
    struct slot {
        trace_ring::atomic<std::uint64_t> sequence{0};
        trace_ring::atomic<std::uint64_t> words[3] = {};
    };
    alignas(128) trace_ring::atomic<std::uint64_t> cursor{0};
    alignas(128) slot ring[slots];

    [[gnu::noinline]] void operator()(std::uint64_t n) {
        for (std::uint64_t i = 0; i < n; ++i) {
            // relaxed: the sequence word orders what readers see
            const std::uint64_t p = cursor.fetch_add(1, trace_ring::relaxed);
            slot& to = ring[p % slots];
            to.sequence.store(2 * p + 1, trace_ring::relaxed);  // relaxed: the fence orders it
            trace_ring::thread_fence(trace_ring::release);
            // relaxed, all: published by the sequence word
            to.words[0].store(7, trace_ring::relaxed);
            to.words[1].store(i, trace_ring::relaxed);
            to.words[2].store(~i, trace_ring::relaxed);
            to.sequence.store(2 * p + 2, trace_ring::release);
        }
    }
};

inline constexpr std::size_t KiB = 1024;
inline constexpr std::size_t MiB = 1024 * KiB;
inline constexpr auto with_clock = true;
inline constexpr auto without_clock = false;

/// "64KiB", "16MiB".
[[nodiscard]] inline std::string size_name(std::size_t bytes) {
    return bytes >= MiB ? std::to_string(bytes / MiB) + "MiB" : std::to_string(bytes / KiB) + "KiB";
}
/// What a run with `threads` is called: as the library that measures does it.
[[nodiscard]] inline std::string with_threads(const std::string& name, int threads) {
    return threads == 1 ? name : name + "/threads:" + std::to_string(threads);
}

// The names of the floors, used as the labels of the benchmarks based on them.

template <std::size_t Words, bool Timed, std::size_t Bytes>
[[nodiscard]] inline std::string name_of_store() {
    return std::string("floor/") + (Timed ? "clock_and_" : "") + "store_" +
           std::to_string(Words * 8) + "B/" + size_name(Bytes);
}
inline const std::string clock_name = "floor/clock";
inline const std::string branch_name = "floor/load_and_branch";
inline const std::string work_name = "floor/work";
inline const std::string payload_name = "floor/payload";
inline const std::string sequence_name = "floor/add_and_sequence";

inline const std::string ping_pong_name = with_threads("floor/ping_pong", 2);

// Each program adds the floors that its own benchmarks name.

inline constexpr std::int64_t calls_with_work = 1 << 11;

template <std::size_t Words, bool Timed, std::size_t Bytes>
void add_store(int threads = 1) {
    add<store<Words, Timed, Bytes>>(name_of_store<Words, Timed, Bytes>(), Timed ? clock_name : "",
                                    threads);
}
inline void add_clock() {
    add<clock>(clock_name, "");
}
inline void add_branch() {
    add<branch>(branch_name, "");
}
inline void add_payload() {
    add<payload>(payload_name, "");
}
inline void add_add_and_sequence(int threads = 1) {
    add<add_and_sequence>(sequence_name, "", threads);
}
inline void add_ping_pong() {
    add<ping_pong>("floor/ping_pong", "", 2, 1 << 11, time_of::passing);
}
inline void add_work() {
    add<work_alone>(work_name, "", 1, calls_with_work);
}
/// What no record behind such work can be below, if it is timed exactly.
inline void add_work_and_clock() {
    add<work_and_clock>("floor/work_and_clock", work_name, 1, calls_with_work);
}
template <bool Shared, bool Swap>
[[nodiscard]] inline std::string name_of_locked_step() {
    return std::string("floor/") + (Swap ? "swap" : "xadd") + (Shared ? "_shared" : "_private");
}
template <bool Shared, bool Swap>
void add_locked_step(int threads = 1) {
    add<locked_step<Shared, Swap>>(name_of_locked_step<Shared, Swap>(),
                                   threads > 1 ? name_of_locked_step<false, Swap>() : std::string(),
                                   threads);
}

}  // namespace bench::floor
