// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// Fields of a program's own types: an enumeration, a structure, a class, an array, a duration.
///   own_types FILE           then: trace-reduce FILE

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string_view>

#include <trace_ring/trace_ring.hpp>

namespace shop {

enum class state : std::uint8_t { open, paid, sent };

struct place {
    std::int16_t aisle;
    std::int16_t shelf;
};

class money {
public:
    constexpr explicit money(std::int64_t cents) : cents_(cents) {}
    constexpr std::int64_t cents() const noexcept { return cents_; }

private:
    std::int64_t cents_;
};

}  // namespace shop

// Recorded as the number; readers show the name.
template <>
struct trace_ring::names_of<shop::state> {
    static constexpr value_name<shop::state> list[] = {
        {shop::state::open, "open"}, {shop::state::paid, "paid"}, {shop::state::sent, "sent"}};
};
// Recorded as one field for each member: from.aisle and from.shelf.
template <>
struct trace_ring::members_of<shop::place>
    : trace_ring::members<&shop::place::aisle, &shop::place::shelf> {};
// Recorded as the type that `convert` returns.
template <>
struct trace_ring::as_field<shop::money> {
    using type = std::int64_t;
    static type convert(const shop::money& value) noexcept { return value.cents(); }
};

namespace {

using namespace std::chrono_literals;
using trace_ring::field;

struct changed
    : trace_ring::event<"order.changed", field<"state", shop::state>, field<"total", shop::money>,
                        field<"customer", std::string_view>> {};
struct picked : trace_ring::span<"order.picked", field<"from", shop::place>,
                                 field<"items", std::array<std::uint16_t, 3>>,
                                 trace_ring::results<field<"walked", std::chrono::milliseconds>>> {
};

}  // namespace

int main(int count, char** arguments) try {
    const char* const file = count > 1 ? arguments[1] : "types.trace";
    trace_ring::recorder recorder{
        {.file = file, .size = 1 << 16, .exists = trace_ring::if_exists::replace}};
    recorder.record<changed>(shop::state::paid, shop::money(1999), "Ada");
    auto span = recorder.scope<picked>(shop::place{4, 2}, std::array<std::uint16_t, 3>{7, 7, 9});
    span.end(1500ms);
    recorder.record<changed>(shop::state{9}, shop::money(-1), "");  // a value without a name
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "own_types: %s\n", error.what());
    return 1;
}
