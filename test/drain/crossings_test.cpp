// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Ten million crossings of a threshold, each awaited by a reader. A separate program, because it
// needs two processors for itself.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include <boost/test/unit_test.hpp>

#include <trace_ring/policy/notify/at_watermark.hpp>

#include <kinds.hpp>
#include <proof.hpp>
#include <recorder/scratch.hpp>

BOOST_AUTO_TEST_SUITE(crossings)

using namespace kinds;
using namespace std::chrono_literals;
namespace notify = trace_ring::notify;

BOOST_AUTO_TEST_CASE(each_of_many_crossings_is_told_once_to_a_reader_that_waits) {
    // A ring of one slot: the writer writes as soon as the reader has read, while that arms. The
    // reader looks for a moment before it sleeps, so that not each crossing costs two switches of
    // threads. Where both share a processor with others it ends after a minute, with as many as
    // there were by then: this is reported.
    struct one_slot : policies<record::bare<sample>, claim::single_writer, full::discard_newest,
                               storage::inline_bytes<sizeof(sample)>,
                               notify::at_watermark<notify::records(1), notify::by_callback>> {};
    struct teller {
        std::atomic<std::uint64_t> times{0}, last{0};
        std::atomic<bool> twice{false};
        notify::callback callback{[](void* self, notify::progress at) noexcept {
                                      auto& me = *static_cast<teller*>(self);
                                      if (at.records <= me.last) me.twice = true;
                                      ++me.times;
                                      me.last = at.records;
                                  },
                                  this};
    };
    // By clang++ a tenth: where threads share their processors, the rest only repeats what g++ has
    // done.
#if defined(__clang__)
    const std::uint64_t crossings = test::scaled(10'000'000) / (test::scale == 1 ? 10 : 1);
#else
    const std::uint64_t crossings = test::scaled(10'000'000);
#endif
    static trace_ring::ring<one_slot> ring;
    auto& line = ring.control().notified;
    auto& notifier = ring.notifier();
    static_cast<void>(notifier.disarm(line));
    teller heard;
    notifier.tell(&heard.callback);
    std::atomic<bool> over{false};
    std::thread writer([&] {
        for (std::uint64_t i = 1; !over.load(std::memory_order_relaxed);) {
            // Looks for room by itself: a refused writer notifies, too.
            if (ring.produced() == ring.control().consumed.load(trace_ring::acquire)) {
                i += put(ring, i) ? 1 : 0;
            } else {
                std::this_thread::yield();
            }
        }
    });
    auto consumer = ring.consumer();
    std::uint64_t awaited = 0, found = 0, slept = 0, wrong = 0;
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::seconds(trace_ring_test::repeats(8));
    for (std::uint64_t i = 1; awaited + found < crossings; ++i) {
        if (i % 1024 == 0 && std::chrono::steady_clock::now() > end) break;
        while (consumer.next()) {
        }
        if (!consumer.rearm()) {
            ++found;  // by the reader, as it armed
            continue;
        }
        ++awaited;
        for (int looks = 0; looks < 200 && notifier.is_armed(line); ++looks) {
            if (looks >= 100) std::this_thread::yield();
        }
        // As a listener sleeps, but without arming anew.
        line.waiters.fetch_add(1, trace_ring::relaxed);
        for (;;) {
            const std::uint32_t seen = line.word.load(trace_ring::acquire);
            if (!notifier.is_armed(line)) break;
            ++slept;
            notifier.sleep(line, seen, notify::no_deadline);
        }
        line.waiters.fetch_sub(1, trace_ring::relaxed);
        while (heard.last < consumer.at()) {  // the writer is about to call
            std::this_thread::yield();
        }
        wrong += heard.last == consumer.at() ? 0 : 1;
    }
    over = true;
    writer.join();
    notifier.tell(nullptr);
    BOOST_TEST(wrong == 0U);
    BOOST_TEST(!heard.twice.load());
    // Those that both found: the writer had it.
    BOOST_TEST(heard.times.load() >= awaited);
    BOOST_TEST(heard.times.load() <= awaited + found);
    BOOST_TEST_MESSAGE(awaited << " of " << crossings - found << " awaited, " << found
                               << " found while arming, " << slept << " slept on");
    trace_ring_test::proof("progress", heard.times.load(),
                           "crossings reported to a waiting reader");
}

BOOST_AUTO_TEST_SUITE_END()
