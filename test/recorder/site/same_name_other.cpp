// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#define FILES_EVENT "other"
#define FILES_FIELD "m"
#define FILES_COUNTED true
#include <recorder/site/same_name.hpp>

bool record_in_other_file(trace_ring::recorder& to, std::uint64_t n) {
    return record_same_names(to, n);
}
bool record_in_other_file(trace_ring::basic_recorder<test::by_cpu>& to, std::uint64_t n) {
    return record_same_names(to, n);
}
