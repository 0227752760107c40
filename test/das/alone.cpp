// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// What an emulator would write: it includes one header, before any other and for itself, and
// supplies five short functions over the storage that it has.

#include <trace_ring/das/table.hpp>

// Neither atomics nor Boost come with it.
#if defined(BOOST_CONFIG_HPP) || defined(_GLIBCXX_ATOMIC)
#error "das/table.hpp brings in atomics"
#endif

namespace {

// One processor, no paging, no protection.
struct host {
    std::span<std::byte> bytes;

    trace_ring::program_exception test(std::uint32_t address, std::uint32_t count,
                                       trace_ring::guest_access) const {
        return std::uint64_t{address} + count <= bytes.size()
                   ? trace_ring::program_exception::none
                   : trace_ring::program_exception::addressing;
    }
    std::uint32_t fetch(std::uint32_t address) const {
        return trace_ring::record::load_big<std::uint32_t>(bytes, address);
    }
    bool swap(std::uint32_t address, std::uint32_t& expected, std::uint32_t word) {
        const auto found = fetch(address);
        const bool same = found == expected;
        if (same) trace_ring::record::store_big(bytes, address, word);
        expected = found;
        return same;
    }
    void store(std::uint32_t address, std::span<const std::byte> entry) {
        for (std::size_t i = 0; i < entry.size(); ++i) bytes[address + i] = entry[i];
    }
    void serialize() {}
};

}  // namespace

namespace das_test {

trace_ring::trace_result trace_alone(std::span<std::byte> storage,
                                     const trace_ring::record::das_entry& entry) {
    host processor{storage};
    return trace_ring::das::trace(processor, entry);
}

}  // namespace das_test
