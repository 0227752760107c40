// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A reader that sleeps until its ring's threshold is passed.
/// @code
///   auto consumer = ring.consumer();                    // or a drain::session over the ring
///   trace_ring::drain::listener listener(ring, consumer);
///   while (listener.wait(1s) || !over) {
///       while (const auto item = consumer.next()) use(item);
///   }
/// @endcode
/// It works across processes and word sizes where the ring lies in memory that they share.

#include <concepts>
#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/nanoseconds.hpp>
#include <trace_ring/policy/notify/notify.hpp>

namespace trace_ring::inline v1::drain {

/// Something that reports how far it has read: a reader of a ring, or the drainable of a session.
template <class R>
concept stands = requires(const R& reader) {
    { reader.standing() }
    noexcept->std::same_as<notify::standing>;
};

/// A ring whose notifier can be armed.
template <class R>
concept listened_to = requires(R& ring) {
    { ring.notifier() } -> std::convertible_to<typename R::notify_policy&>;
    { ring.control().notified } -> std::convertible_to<notify::line&>;
    requires notify::arms<typename R::notify_policy>;
};

/// Used by one thread; a ring has one at a time. The ring and the reader must outlive it.
template <listened_to Ring, stands Reader>
class listener {
public:
    /// For the reader of that ring; not thread-safe.
    constexpr listener(Ring& ring, const Reader& reader) noexcept : ring_(ring), reader_(reader) {}
    listener(const listener&) = delete;
    listener& operator=(const listener&) = delete;

    /// Sleeps until the threshold is passed (counted from the reader's position), a writer finds no
    /// room, or the record at which the reader was blocked can be read. Returns true immediately
    /// while more than the lower mark is unread. False: the time is over, and the mark is disarmed.
    /// Records that the reader does not read are announced again. Signals do not end it.
    [[nodiscard]] bool wait(nanoseconds longest) noexcept {
        auto& notifier = ring_.notifier();
        auto& line = ring_.control().notified;
        if (!notifier.arm(line, [this] { return reader_.standing(); })) return true;
        const std::uint64_t begun = notifier.now_ns();
        const auto length = longest.count() > 0 ? static_cast<std::uint64_t>(longest.count()) : 0;
        return sleep(notifier, line, begun + length);
    }
    /// The same without a time limit.
    void wait() noexcept {
        constexpr nanoseconds long_enough{std::int64_t{1} << 62};
        while (!wait(long_enough)) {
        }
    }

private:
    template <class Notifier>
    [[nodiscard]] bool sleep(Notifier& notifier, notify::line& line,
                             std::uint64_t deadline) noexcept {
        // relaxed: the kernel makes a full fence before it looks at the word
        line.waiters.fetch_add(1, relaxed);
        bool told = false;
        for (;;) {
            // order: notify.wait:A pairs with notify.tell:B
            const std::uint32_t seen = line.word.load(acquire);
            told = !notifier.is_armed(line);
            if (told) break;
            const std::uint64_t until = notifier.look_by_itself(line, deadline);
            if (notifier.now_ns() >= deadline) {
                told = !notifier.disarm(line);
                break;
            }
            // order: notify.wait:B pairs with notify.tell:C
            notifier.sleep(line, seen, until);
        }
        line.waiters.fetch_sub(1, relaxed);  // relaxed: a writer that sees it late calls in vain
        return told;
    }

    Ring& ring_;
    const Reader& reader_;
};
template <class Ring, class Reader>
listener(Ring&, const Reader&) -> listener<Ring, Reader>;

}  // namespace trace_ring::inline v1::drain
