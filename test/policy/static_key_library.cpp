// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// A library with sites of the test's keys, loaded when they have been set.

#include <policy/static_key_sites.hpp>

namespace key_sites {
namespace {
int three_sites() noexcept {
    return (shared_key::is_open() ? 1 : 0) + (in_inline() ? 1 : 0) + (in_template<3>() ? 1 : 0);
}
bool ask_closed_key() noexcept {
    return closed_key::is_open();
}
}  // namespace
}  // namespace key_sites

extern "C" [[gnu::visibility("default")]] const key_sites::library_view static_key_library;
const key_sites::library_view static_key_library{
    key_sites::three_sites, key_sites::ask_closed_key, key_sites::no_ops_here,
    key_sites::shared_key::close, key_sites::shared_key::open};
