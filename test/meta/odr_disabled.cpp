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
struct spanned : trace_ring::span<"odr.spanned", trace_ring::field<"number", int>,
                                  trace_ring::results<trace_ring::field<"result", int>>> {};
struct kind : trace_ring::policies<trace_ring::record::bare<int>, trace_ring::storage::heap> {};

bool record_where_disabled() {
    trace_ring::recorder recorder{{.file = "/nowhere/odr.trace",
                                   .size = 1 << 20,
                                   .on_failure = trace_ring::if_setup_fails::record_nothing}};
    trace_ring::ring<kind> ring(64);
    auto span = recorder.scope<spanned>(1);
    return span.end(2) || recorder.statistics().failure != nullptr || recorder.record<unseen>(1) ||
           static_cast<bool>(ring.try_reserve());
}
const std::type_info& recorder_where_disabled() {
    return typeid(trace_ring::recorder);
}
const std::type_info& ring_where_disabled() {
    return typeid(trace_ring::ring<kind>);
}

}  // namespace odr
