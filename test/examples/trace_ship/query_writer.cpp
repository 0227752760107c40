// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// Records what the queries for ClickHouse ask about: nested spans, spans that end in another
/// thread, flows, extreme values, and names that have to be quoted.
/// query_writer FILE SEED [full]
///   SEED  numbers and lengths depend on it
///   full  the file is small, and refuses the records that have no room

#include <pthread.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <trace_ring/recorder/spans.hpp>
#include <trace_ring/trace_ring.hpp>

namespace {

namespace tr = trace_ring;

struct order_sent
    : tr::event<"order.sent", tr::field<"id", std::uint64_t>, tr::field<"price", double>,
                tr::field<"change", std::int32_t>, tr::field<"text", std::string_view>> {};
struct handed : tr::event<"it's \"handed\\", tr::field<"of", tr::flow>, tr::field<"to", tr::flow>> {
};
struct request : tr::span<"request", tr::field<"job", std::uint64_t>, tr::field<"of", tr::flow>> {};
struct step : tr::span<"step", tr::field<"number", std::uint32_t>> {};

class random_numbers {
public:
    explicit random_numbers(std::uint64_t seed) : state_(seed * 2 + 1) {}
    std::uint64_t operator()(std::uint64_t below) {
        state_ = state_ * 6364136223846793005U + 1442695040888963407U;
        return (state_ >> 33) % below;
    }

private:
    std::uint64_t state_;
};

void spend(std::uint64_t microseconds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(microseconds);
    while (std::chrono::steady_clock::now() < end) {
    }
}

template <class Recorder>
void send_orders(Recorder& recorder, random_numbers& random, std::uint64_t count) {
    constexpr std::string_view texts[] = {"plain", "it's \"quoted\"\\", "tab\tline\n",
                                          "caf\xE9\xFF", ""};
    for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t which = random(20);
        recorder.template record<order_sent>(
            which == 0 ? std::numeric_limits<std::uint64_t>::max() : random(1000),
            which == 1   ? std::numeric_limits<double>::quiet_NaN()
            : which == 2 ? std::numeric_limits<double>::infinity()
                         : static_cast<double>(random(100'000)) / 64 - 700,
            which == 3 ? std::numeric_limits<std::int32_t>::min()
                       : static_cast<std::int32_t>(random(2000)) - 1000,
            texts[random(5)]);
    }
}

template <class Recorder>
void work(Recorder& recorder, const char* name, std::uint64_t seed, std::uint64_t requests) {
    ::pthread_setname_np(::pthread_self(), name);
    random_numbers random(seed);
    for (std::uint64_t i = 0; i < requests; ++i) {
        // Numbers of flows are the same in all traces.
        const std::uint64_t flow = i == 7 ? std::numeric_limits<std::uint64_t>::max() : i;
        auto whole = std::make_optional(recorder.template scope<request>(i, tr::flow{flow}));
        for (std::uint64_t n = random(3); n > 0; --n) {
            const auto part = recorder.template scope<step>(static_cast<std::uint32_t>(n));
            spend(random(30));
            send_orders(recorder, random, random(4));
            const auto inner = recorder.template scope<step>(100U);
            recorder.template record<handed>(tr::flow{flow}, tr::flow{flow + random(2)});
        }
        if (random(4) == 0) {
            std::thread other([&recorder, &random, open = std::move(*whole)]() mutable {
                ::pthread_setname_np(::pthread_self(), "ends");
                spend(random(50));
                send_orders(recorder, random, 1);
                open.end();
            });
            send_orders(recorder, random, 2);
            other.join();
        }
        whole.reset();
        send_orders(recorder, random, random(3));
    }
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 3) return 2;
    const std::uint64_t seed = std::strtoull(arguments[2], nullptr, 10);
    const bool full = count > 3;
    const std::uint64_t requests = full ? 400 : 40;
    tr::recorder recorder({.file = arguments[1],
                           .size = tr::as_size(full ? 32768 : 1 << 20),
                           .full = tr::full_mode::discard_newest});
    std::thread first([&] { work(recorder, "worker", seed, requests); });
    std::thread second([&] { work(recorder, "it's \"\xE9\\", seed + 1, requests); });
    first.join();
    second.join();
}
