// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// The plugin that plugin_host.cpp loads and unloads. It is compiled with hidden symbols and
/// constructs no recorder, so it includes only what a recording file needs.

#include <trace_ring/recorder/spans.hpp>

namespace {

struct filtered : trace_ring::span<"plugin.filtered", trace_ring::field<"frame", int>,
                                   trace_ring::results<trace_ring::field<"kept", bool>>> {};

}  // namespace

// The only visible symbol.
extern "C" [[gnu::visibility("default")]] int plugin_run(trace_ring::recorder& recorder,
                                                         int count) {
    int kept = 0;
    for (int frame = 0; frame < count; ++frame) {
        auto span = recorder.scope<filtered>(frame);
        const bool keeps = frame % 3 == 0;
        if (keeps) ++kept;
        span.end(keeps);
    }
    return kept;
}
