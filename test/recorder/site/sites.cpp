// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Sites that machine_code/sites.py checks, a function each.

#include <cstdint>

#include <trace_ring/recorder/site.hpp>

namespace tr = trace_ring;

struct order : tr::event<"order", tr::field<"id", std::uint64_t>, tr::field<"price", double>> {};
struct small : tr::event<"small", tr::field<"a", std::uint32_t>, tr::field<"b", std::uint16_t>,
                         tr::field<"c", bool>, tr::field<"d", double>> {};
struct bare : tr::event<"bare"> {};
struct totalled : tr::event<"totalled", tr::field<"id", std::uint64_t>> {
    static constexpr bool counted = true;
};
struct apart : tr::event<"apart", tr::field<"id", std::uint64_t>> {
    static constexpr std::uint32_t ring = 1;
};

extern "C" void site_order(tr::recorder& to, std::uint64_t id, double price) {
    to.record<order>(id, price);
}
extern "C" void site_small(tr::recorder& to, std::uint32_t a, std::uint16_t b, double d) {
    to.record<small>(a, b, true, d);
}
extern "C" void site_bare(tr::recorder& to) {
    to.record<bare>();
}
extern "C" void site_totalled(tr::recorder& to, std::uint64_t id) {
    to.record<totalled>(id);
}
extern "C" void site_apart(tr::recorder& to, std::uint64_t id) {
    to.record<apart>(id);
}

void elsewhere();
extern "C" void planted_call(tr::recorder& to) {
    elsewhere();
    to.record<bare>();
}
