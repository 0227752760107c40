// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "meta/odr.hpp"

namespace odr {

view look_from_other() noexcept {
    return look_from_here();
}

bool record_from_other(trace_ring::recorder& recorder, std::uint64_t number) noexcept {
    return recorder.record<seen>(number);
}

bool record_by_cpu_from_other(trace_ring::basic_recorder<by_cpu>& recorder,
                              std::uint64_t number) noexcept {
    return record_by_cpu(recorder, number);
}

}  // namespace odr
