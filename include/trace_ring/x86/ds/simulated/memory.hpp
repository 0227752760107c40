// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The linear memory of a simulated processor: ranges of the program's memory, each at an address
/// that the program chooses.
/// @code
/// std::byte bytes[4096];
/// trace_ring::x86::simulated_memory memory;
/// memory.map(0xFFFF'8000'0000'0000, bytes);
/// @endcode

#include <trace_ring/x86/enabled.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

namespace trace_ring::inline v1::x86 {

/// All functions are linear in the number of ranges. Used by one thread at a time.
class simulated_memory {
public:
    /// Maps the bytes, which must outlive their use, at `address`. Of overlapping ranges the one
    /// mapped last is used.
    void map(std::uint64_t address, std::span<std::byte> bytes) {
        ranges_.push_back({address, bytes});
    }
    /// Maps the bytes at the program's own address.
    void map(std::span<std::byte> bytes) {
        map(reinterpret_cast<std::uintptr_t>(bytes.data()), bytes);
    }

    /// The program's address of these bytes; nullptr if they are not all in one range.
    [[nodiscard]] std::byte* find(std::uint64_t address, std::size_t size) const noexcept {
        for (std::size_t i = ranges_.size(); i-- > 0;) {
            const range& r = ranges_[i];
            if (address < r.address) continue;
            const std::uint64_t offset = address - r.address;
            if (offset <= r.bytes.size() && size <= r.bytes.size() - offset)
                return r.bytes.data() + offset;
        }
        return nullptr;
    }
    template <class Word>
    [[nodiscard]] std::optional<Word> load(std::uint64_t address) const noexcept {
        const std::byte* const at = find(address, sizeof(Word));
        if (at == nullptr) return std::nullopt;
        Word out;
        std::memcpy(&out, at, sizeof out);
        return out;
    }
    /// False: there is no memory.
    template <class Word>
    [[nodiscard]] bool store(std::uint64_t address, const Word& value) const noexcept {
        std::byte* const at = find(address, sizeof(Word));
        if (at != nullptr) std::memcpy(at, &value, sizeof value);
        return at != nullptr;
    }

private:
    struct range {
        std::uint64_t address;
        std::span<std::byte> bytes;
    };
    std::vector<range> ranges_{};
};

}  // namespace trace_ring::inline v1::x86
