// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A guest's storage as the tests of DAS tracing see it: one that records its calls, lets something
/// happen between the fetch of current and the swap, and is set up in a line.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <trace_ring/das/entry.hpp>
#include <trace_ring/das/guest_memory.hpp>
#include <trace_ring/das/table.hpp>
#include <trace_ring/record/data_model.hpp>

namespace das_test {

namespace das = trace_ring::das;
namespace record = trace_ring::record;
using trace_ring::guest_access;
using trace_ring::guest_memory;
using trace_ring::guest_region;
using trace_ring::program_exception;
using trace_ring::trace_result;
using region = guest_region::kind;

inline constexpr std::uint32_t header = 0x00020008;
inline constexpr std::uint32_t open_at_header = 0x80000000 | header;

/// Guest storage of `bytes` zeros, with a designation and a header in it.
class guest {
public:
    explicit guest(std::size_t bytes = 0x20020) : words_(bytes / 8) {}

    void controls(std::uint32_t current, std::uint32_t first, std::uint32_t last,
                  std::uint32_t designation = open_at_header, std::uint32_t at = header) {
        put(das::designation_location, designation);
        put(at, current);
        put(at + 4, first);
        put((at + 8) & das::address_mask, last);
    }
    void put(std::uint32_t address, std::uint32_t word) {
        record::store_big(bytes(), address, word);
    }
    [[nodiscard]] std::uint32_t get(std::uint32_t address) {
        return record::load_big<std::uint32_t>(bytes(), address);
    }
    [[nodiscard]] std::uint32_t current() { return get(header); }
    [[nodiscard]] std::span<std::byte> bytes() { return std::as_writable_bytes(std::span{words_}); }
    [[nodiscard]] record::das_entry entry(std::uint32_t address) {
        record::das_entry entry;
        std::memcpy(entry.payload, bytes().data() + address, 32);
        return entry;
    }
    [[nodiscard]] guest_memory memory(std::span<const guest_region> regions = {},
                                      bool low_address_protection = false) {
        return guest_memory{bytes(), regions, low_address_protection};
    }

private:
    std::vector<std::uint64_t> words_;
};

/// An entry that its number distinguishes from every other.
[[nodiscard]] inline record::das_entry numbered(std::uint32_t number) {
    record::das_entry entry;
    for (std::uint32_t i = 0; i < 8; ++i)
        record::store_big(entry.payload, 4 * i, number + (i << 24));
    return entry;
}
[[nodiscard]] inline std::uint32_t number_of(const record::das_entry& entry) {
    return record::load_big<std::uint32_t>(entry.payload);
}

/// A storage of the tests' own: passes everything on, writes down what was asked, and calls
/// `before_swap` with the number of the try, from 1.
class watched_memory {
public:
    explicit watched_memory(guest_memory memory) : memory_(memory) {}

    std::function<void(unsigned)> before_swap = [](unsigned) {};
    std::vector<std::string> asked;

    program_exception test(std::uint32_t address, std::uint32_t bytes, guest_access access) {
        say(access == guest_access::unprotected ? "test fetch" : "test store", address, bytes);
        return memory_.test(address, bytes, access);
    }
    std::uint32_t fetch(std::uint32_t address) {
        say("fetch", address, 4);
        return memory_.fetch(address);
    }
    bool swap(std::uint32_t address, std::uint32_t& expected, std::uint32_t word) {
        say("swap", address, 4);
        before_swap(++tries_);
        return memory_.swap(address, expected, word);
    }
    void store(std::uint32_t address, std::span<const std::byte> bytes) {
        say("store", address, static_cast<std::uint32_t>(bytes.size()));
        memory_.store(address, bytes);
    }
    void serialize() {
        asked.emplace_back("serialize");
        memory_.serialize();
    }

private:
    void say(const char* what, std::uint32_t address, std::uint32_t bytes) {
        char text[40];
        std::snprintf(text, sizeof text, "%s %06X+%u", what, static_cast<unsigned>(address),
                      static_cast<unsigned>(bytes));
        asked.emplace_back(text);
    }

    guest_memory memory_;
    unsigned tries_ = 0;
};
static_assert(trace_ring::guest_storage<watched_memory>);

}  // namespace das_test
