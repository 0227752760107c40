// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Words that processes share, with the orders of the library and with those of the standard.

#include <atomic>
#include <cstdint>
#include <type_traits>

#include <boost/test/unit_test.hpp>

#include <trace_ring/atomic.hpp>

BOOST_AUTO_TEST_SUITE(record_atomic)

using trace_ring::shared_atomic;

namespace {

enum class color : std::uint8_t { red, green };

/// Each function with one order, from a word of 12.
template <class Order>
void each_function_takes(Order relaxed, Order acquire, Order release, Order both) {
    shared_atomic<std::uint64_t> word(12);
    BOOST_TEST(word.load(acquire) == 12U);
    word.store(13, release);
    BOOST_TEST(word.exchange(14, both) == 13U);
    std::uint64_t expected = 13;
    BOOST_TEST(!word.compare_exchange_strong(expected, 1, both, acquire));
    BOOST_TEST(expected == 14U);
    BOOST_TEST(word.compare_exchange_strong(expected, 15, both));
    expected = 15;
    while (!word.compare_exchange_weak(expected, 16, both, relaxed)) {
    }
    BOOST_TEST(word.fetch_add(4, both) == 16U);
    BOOST_TEST(word.fetch_sub(5, both) == 20U);
    BOOST_TEST(word.fetch_and(9, both) == 15U);
    BOOST_TEST(word.fetch_or(6, both) == 9U);
    BOOST_TEST(word.fetch_xor(3, both) == 15U);
    BOOST_TEST(word.load(relaxed) == 12U);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_shared_word_takes_the_librarys_orders_and_those_of_the_standard) {
    each_function_takes(trace_ring::relaxed, trace_ring::acquire, trace_ring::release,
                        trace_ring::acq_rel);
    each_function_takes(std::memory_order_relaxed, std::memory_order_acquire,
                        std::memory_order_release, std::memory_order_acq_rel);
}

BOOST_AUTO_TEST_CASE(each_order_of_the_standard_is_the_one_of_that_name_here) {
    using trace_ring::impl::order_of;
    static_assert(order_of(std::memory_order::relaxed) == trace_ring::relaxed);
    static_assert(order_of(std::memory_order::acquire) == trace_ring::acquire);
    static_assert(order_of(std::memory_order::release) == trace_ring::release);
    static_assert(order_of(std::memory_order::acq_rel) == trace_ring::acq_rel);
    static_assert(order_of(std::memory_order::seq_cst) == trace_ring::seq_cst);
    static_assert(order_of(std::memory_order::consume) == trace_ring::acquire);
    static_assert(order_of(trace_ring::release) == trace_ring::release);
    static_assert(!trace_ring::impl::other_order<int> && !trace_ring::impl::other_order<color>);
}

BOOST_AUTO_TEST_CASE(a_shared_word_is_a_word_of_its_type_in_all_else) {
    shared_atomic<std::uint32_t> number{};
    BOOST_TEST(number.load() == 0U);
    number = 5;
    ++number;
    number += 2;
    const std::uint32_t now = number;
    BOOST_TEST(now == 8U);
    BOOST_TEST(number.fetch_add(1) == 8U);
    shared_atomic<color> one{color::red};
    one.store(color::green, std::memory_order_release);
    BOOST_TEST((one.load(trace_ring::acquire) == color::green));
    shared_atomic<bool> flag(false);
    flag = true;
    BOOST_TEST(flag.exchange(false, std::memory_order_seq_cst));
    static_assert(sizeof(shared_atomic<std::uint8_t>) == 1 && sizeof(one) == 1);
    static_assert(!std::is_copy_constructible_v<shared_atomic<std::uint64_t>>);
}

BOOST_AUTO_TEST_SUITE_END()
