// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// References made up for the tests of the analyses, always the same ones.

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <address_trace/analysis/analyses.hpp>

namespace address_streams {

using trace_ring::reference;
using trace_ring::reference_kind;

struct stream {
    std::string name;
    std::vector<reference> all;
};

inline constexpr std::uint64_t code = 0x400000, data = 0x7F0000000000;

[[nodiscard]] inline reference load(std::uint64_t at, std::uint8_t size = 8,
                                    std::uint64_t site = code) {
    return {at, site, reference_kind::load, size};
}
[[nodiscard]] inline reference store(std::uint64_t at, std::uint8_t size = 8,
                                     std::uint64_t site = code + 5) {
    return {at, site, reference_kind::store, size};
}
[[nodiscard]] inline reference block(std::uint64_t site) {
    return {site, site, reference_kind::block, 0};
}

/// Loads, stores and blocks, of all sizes, at addresses that `next` chooses in [0, bytes).
template <class Next>
[[nodiscard]] stream make(std::string name, std::size_t count, Next next) {
    stream out{std::move(name), {}};
    std::mt19937 random(1);
    for (std::size_t i = 0; i < count; ++i) {
        const auto choice = static_cast<std::uint32_t>(random());
        const std::uint64_t site = code + choice % 64 * 16;
        const auto size = static_cast<std::uint8_t>(1u << (choice >> 8) % 5);
        const std::uint64_t at = data + next(i, random);
        switch ((choice >> 16) % 5) {
            case 0:
                out.all.push_back(block(code + choice % 4096 * 16));
                break;
            case 1:
            case 2:
                out.all.push_back(store(at, size, site + 5));
                break;
            default:
                out.all.push_back(load(at, size, site));
                break;
        }
    }
    return out;
}

/// What caches and distances are tried on: no pattern, patterns that suit them and that do not.
[[nodiscard]] inline std::vector<stream> patterns(std::size_t count) {
    const auto within = [](std::uint64_t bytes) {
        return [bytes](std::size_t, std::mt19937& random) { return random() % bytes; };
    };
    std::vector<stream> out;
    out.push_back(make("few bytes", count, within(2000)));
    out.push_back(make("many bytes", count, within(200'000)));
    out.push_back(make("on and on", count, [](std::size_t i, auto&) { return i * 8; }));
    out.push_back(make("round", count, [](std::size_t i, auto&) { return i * 8 % 20'000; }));
    out.push_back(make("one set", count, [](std::size_t i, auto&) { return i % 9 * 4096; }));
    out.push_back(make("mostly near", count, [](std::size_t, std::mt19937& random) {
        const auto choice = static_cast<std::uint32_t>(random());
        const std::uint64_t span = std::uint64_t{16} << (choice % 14);
        return (choice >> 8) % span;
    }));
    return out;
}

/// Feeds them as one thread's, at most `most` at a time.
inline void feed(address_trace::analyses& to, const std::vector<reference>& all,
                 std::uint32_t thread = 1, std::size_t most = 1000) {
    for (std::size_t at = 0; at < all.size(); at += most) {
        to.take({thread, at, std::span(all).subspan(at, std::min(most, all.size() - at))});
    }
}

}  // namespace address_streams
