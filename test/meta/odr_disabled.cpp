// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// A file whose tracing is compiled away, in a program where it is not.

#define TRACE_RING_DISABLE

#include "meta/odr_disabled.hpp"

#include <utility>

namespace odr {

struct spanned : trace_ring::span<"odr.spanned", trace_ring::field<"number", int>,
                                  trace_ring::results<trace_ring::field<"result", int>>> {};

template <class Recorder>
static bool records(Recorder& recorder) {
    const auto open = recorder.template scope<unseen_span>();
    auto span = recorder.template scope<spanned>(1);
    recorder.pause();  // nobody's gates
    return span.end(2) || recorder.template record<unseen>(1) ||
           static_cast<bool>(recorder.template reserve<unseen>(2)) ||
           recorder.template enable<unseen>(false) != 0;
}
bool off_records(trace_ring::recorder& recorder) {
    return records(recorder);
}
bool off_records(cpu_recorder& recorder) {
    return records(recorder);
}
bool off_records_into_own() {
    trace_ring::recorder recorder{
        {.file = "/nowhere/odr.trace", .on_failure = trace_ring::if_setup_fails::record_nothing}};
    cpu_recorder by_cpu{{.file = "/nowhere/odr.trace"}};
    const auto other = std::make_unique<trace_ring::recorder>(
        trace_ring::recorder_options{.file = "/nowhere/odr.trace"});
    return records(recorder) || records(by_cpu) || records(*other) || ring_of_each.write(1) ||
           recorder.statistics().failure != nullptr;
}
bool off_drains(trace_ring::recorder& recorder) {
    trace_ring::drain::session session(recorder);
    session.finish_records([](const trace_ring::drained_record&) {});
    return session.records() != 0;
}
int off_after(const service& of) {
    return of.after;
}
void off_destroys(std::unique_ptr<trace_ring::recorder> recorder) {
    recorder.reset();
}
void off_destroys(std::unique_ptr<cpu_recorder> recorder) {
    recorder.reset();
}
trace_ring::recorder off_global{{.file = "/nowhere/odr.trace"}};
trace_ring::recorder& off_made() {
    return off_global;
}
cpu_recorder& off_made_by_cpu() {
    static cpu_recorder made{{.file = "/nowhere/odr.trace"}};
    return made;
}

}  // namespace odr
