// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// A file whose tracing is compiled away, in a program where it is not.

#define TRACE_RING_DISABLE

#include <typeinfo>

#include <trace_ring/policy/storage/heap.hpp>
#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/ring/ring.hpp>

namespace odr {

struct unseen : trace_ring::event<"odr.unseen", trace_ring::field<"number", int>> {};
struct kind : trace_ring::policies<trace_ring::record::bare<int>, trace_ring::storage::heap> {};

bool record_where_disabled() {
    trace_ring::recorder recorder{{.size = 1 << 20}};
    trace_ring::ring<kind> ring(64);
    return recorder.record<unseen>(1) || static_cast<bool>(ring.try_reserve());
}
const std::type_info& recorder_where_disabled() {
    return typeid(trace_ring::recorder);
}
const std::type_info& ring_where_disabled() {
    return typeid(trace_ring::ring<kind>);
}

}  // namespace odr
