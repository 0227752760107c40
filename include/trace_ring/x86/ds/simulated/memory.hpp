// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The linear memory that a simulated processor sees: ranges of a program's own, each at an address
/// that the program chooses.

#include <trace_ring/x86/enabled.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

namespace trace_ring::inline v1::x86 {

/// Time: linear in the number of ranges. One thread's at a time.
class simulated_memory {
public:
    /// The bytes, which must outlive their use, are seen from `address` on. Ranges mapped later
    /// win.
    void map(std::uint64_t address, std::span<std::byte> bytes) {
        ranges_.push_back({address, bytes});
    }
    /// Bytes that the processor sees where the program does.
    void map(std::span<std::byte> bytes) {
        map(reinterpret_cast<std::uintptr_t>(bytes.data()), bytes);
    }

    /// Where the program has these bytes; nullptr: not all of them are in one range.
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
    std::vector<range> ranges_;
};

}  // namespace trace_ring::inline v1::x86
