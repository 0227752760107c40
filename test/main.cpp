// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Boost.Test itself and main, compiled once for all tests and from its headers alone, so that
/// every preset (sanitizers, other word sizes, other machines) builds it in the same way.

#define BOOST_TEST_MODULE trace_ring
#include <boost/test/included/unit_test.hpp>
