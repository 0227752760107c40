// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// One stream of a CTF trace: the packet that is being filled, and the counts for the next one.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <trace_ring/exporter/text/append.hpp>
#include <trace_ring/reduce/tables/writers.hpp>

namespace trace_ring::inline v1::exporter::impl {

static_assert(std::endian::native == std::endian::little, "as the trace files themselves");

/// Appends the bytes of numbers.
template <class... Numbers>
inline void append_bytes(text_buffer& out, Numbers... values) {
    static_assert((std::is_arithmetic_v<Numbers> && ...));
    const auto one = [&out](auto value) {
        std::memcpy(out.room(sizeof value), &value, sizeof value);
        out.add(sizeof value);
    };
    (one(values), ...);
}
/// Appends a printable string with a zero behind it. An empty one becomes `-`: babeltrace2 2.0
/// shows another string in its place.
inline void append_ctf_string(text_buffer& out, std::string_view text) {
    append_escaped(out, text.empty() ? "-" : text, 0);
    out += '\0';
}

/// A packet has about 64 KiB: it is full with the record that reaches them.
class ctf_stream {
public:
    ctf_stream(std::string name, std::uint64_t instance, std::string_view file)
        : name_(std::move(name)), file_(file), instance_(instance) {}

    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] std::uint64_t last() const noexcept { return last_; }
    [[nodiscard]] bool full() const noexcept { return events_.size() >= 64 * 1024; }
    /// The number of bytes of the packet's events so far.
    [[nodiscard]] std::size_t size() const noexcept { return events_.size(); }
    /// Whether the packet belongs to another thread than the one that records into the lane now.
    [[nodiscard]] bool other_owner(const reduce::lane_info* lane) const noexcept {
        return lane != owner_;
    }
    /// Sets the thread of the next packet. The packet must be closed before.
    void set_owner(const reduce::lane_info* lane) {
        owner_ = lane;
        about_.clear();
        static const reduce::lane_info none;
        const reduce::lane_info& of = lane == nullptr ? none : *lane;
        append_bytes(about_, of.number, of.pid, of.process.value_or(~std::uint32_t{0}), of.thread,
                     of.depth);
        append_ctf_string(about_, of.name);
        if (!file_.empty()) append_ctf_string(about_, file_);
    }
    /// From here on `events` more are missing. The packet must be closed before.
    void lose(std::uint64_t events) noexcept {
        discarded_ = events > ~discarded_ ? ~std::uint64_t{0} : discarded_ + events;
    }

    /// Begins an event, whose bytes go into the result. `time` is not before `last`.
    [[nodiscard]] text_buffer& event(std::uint32_t id, std::uint64_t time) {
        if (events_.empty()) first_ = time;
        last_ = time;
        append_bytes(events_, id);
        append_bytes(events_, time);
        return events_;
    }

    /// Ends the packet, if it has events: `to(name, bytes)` gets its bytes.
    template <class To>
    void close(const To& to) {
        if (events_.empty()) return;
        // Readers count from a stream's first packet, and miss what was lost before it.
        if (packets_ == 0 && discarded_ != 0) {
            const std::uint64_t lost = discarded_;
            discarded_ = 0;
            put(to, {}, first_);
            discarded_ = lost;
        }
        put(to, events_.view(), last_);
        events_.clear();
    }

private:
    template <class To>
    void put(const To& to, std::string_view events, std::uint64_t end) {
        constexpr std::size_t header_bytes = 16 + 6 * 8;
        const std::uint64_t bits =
            std::uint64_t{8} * (header_bytes + about_.size() + events.size());
        packet_.clear();
        append_bytes(packet_, std::uint32_t{0xC1FC1FC1}, std::uint32_t{0}, instance_, first_, end,
                     bits, bits, packets_++, discarded_);
        packet_ += about_.view();
        packet_ += events;
        to(std::string_view(name_), packet_.view());
    }

    std::string name_;
    std::string_view file_;
    std::uint64_t instance_;
    const reduce::lane_info* owner_ = nullptr;
    text_buffer about_;  // the packet's context: its thread
    text_buffer events_;
    text_buffer packet_;
    std::uint64_t first_ = 0;
    std::uint64_t last_ = 0;
    std::uint64_t packets_ = 0;
    std::uint64_t discarded_ = 0;
};

}  // namespace trace_ring::inline v1::exporter::impl
