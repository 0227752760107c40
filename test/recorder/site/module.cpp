// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// A library that records into the recorders of others. With MODULE_HOST it constructs some, too;
/// with MODULE_BY_CPU it constructs one by processor, which takes more thread-local words.

#include "recorder/site/module.hpp"

#if defined(MODULE_BY_CPU)
#include <variant>

#include <trace_ring/policy/claim/per_cpu.hpp>
#include <trace_ring/recorder/cpu/recorder.hpp>
#include <trace_ring/reduce/trace_file.hpp>
#elif defined(MODULE_HOST)
#include <trace_ring/recorder/recorder.hpp>
#elif defined(MODULE_UMBRELLA)
#include <trace_ring/trace_ring.hpp>
#endif

#define EXPORTED extern "C" [[gnu::visibility("default")]]

EXPORTED std::uint64_t module_record(trace_ring::recorder& to, std::uint32_t recorder,
                                     std::uint64_t n) {
    return modules::record(to, recorder, n);
}
EXPORTED std::size_t module_enable(trace_ring::recorder& to, bool on) {
    return to.enable<modules::shared>(on);
}
EXPORTED void module_flush(trace_ring::recorder& to) {
    to.flush_thread();
}
#if defined(MODULE_HOST)
EXPORTED trace_ring::recorder* module_make() {
    return new trace_ring::recorder({.size = 4 << 20});
}
#endif
#if defined(MODULE_HOST) || defined(MODULE_UMBRELLA)
/// Possibly one that another module has constructed.
EXPORTED void module_unmake(trace_ring::recorder* which) {
    delete which;
}
#endif
#if defined(MODULE_BY_CPU)
struct by_cpu : trace_ring::policies<trace_ring::claim::per_cpu> {};
EXPORTED std::uint64_t module_answer(trace_ring::recorder& first, std::uint64_t count) {
    // Its type has the numbers of `first`, which mean another event in the library's own recorders.
    std::uint64_t wrong = modules::answer(first, 0) ? 0 : 1;
    trace_ring::basic_recorder<by_cpu> own({.size = 4 << 20});
    for (std::uint64_t n = 0; n < count; ++n) wrong += modules::answer(own, n) ? 0 : 1;
    const auto [data, size] = own.bytes();
    const auto trace = trace_ring::reduce::trace_file::from({data, size});
    std::uint64_t begun = 0;
    std::uint64_t ended = 0;
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        const auto* const record = std::get_if<trace_ring::reduce::record_view>(item);
        const bool is_it = record != nullptr && record->name() == "answered";
        if (is_it && record->ends()) {
            wrong += record->field("status").u64() == ended++ ? 0 : 1;
        } else {
            wrong += is_it && record->field("n").u64() == begun++ ? 0 : 1;
        }
    }
    return wrong + (count - begun) + (count - ended) + trace.damages().size();
}
#endif
