// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// Records events whose names make the same columns. odd_names FILE

#include <cstdint>

#include <trace_ring/trace_ring.hpp>

namespace {

template <trace_ring::literal Name>
using number = trace_ring::field<Name, std::uint32_t>;

struct several
    : trace_ring::event<"n", number<"x_y_2">, number<"x_y">, number<"x.y">, number<"x y">> {};
struct own_columns : trace_ring::event<"time", number<"ns">, number<"is">> {};
struct a_bc : trace_ring::event<"a", number<"b_c">> {};
struct ab_c : trace_ring::event<"a.b", number<"c">> {};
struct long_name
    : trace_ring::event<
          "12345678901234567890123456789012345678901234567890123456789012345678901234567890"
          "12345678901234567890123456789012345678901234567890123456789012345678901234567890"
          "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
          number<"the end">> {};
struct no_utf8 : trace_ring::event<"\xFF'`\\", number<"\xFE">> {};

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) return 2;
    trace_ring::recorder recorder{{.file = arguments[1]}};
    recorder.record<several>(1U, 2U, 3U, 4U);
    recorder.record<own_columns>(5U, 6U);
    recorder.record<a_bc>(7U);
    recorder.record<ab_c>(8U);
    recorder.record<long_name>(9U);
    recorder.record<no_utf8>(10U);
}
