// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// The second translation unit of the test of static_key: it compiles the same inline functions.

#include <policy/static_key_sites.hpp>

namespace key_sites {

bool in_other() noexcept {
    return shared_key::is_open();
}
bool in_other_inline() noexcept {
    return in_inline();
}

}  // namespace key_sites
