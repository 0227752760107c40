// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// What a kernel takes: compiled without a hosted implementation, exceptions and run-time type
// information, as test/CMakeLists.txt says. It is never called: it would have to be at CPL 0.

#include <trace_ring/x86/ds/hardware/bts_setting.hpp>
#include <trace_ring/x86/ds/hardware/ds_layout.hpp>
#include <trace_ring/x86/ds/hardware/msr_access.hpp>
#include <trace_ring/x86/ds/msr/ring0_msr.hpp>

#if defined(__cpp_exceptions) || defined(__cpp_rtti)
#error "to be compiled with -fno-exceptions and -fno-rtti"
#endif
#if defined(_GLIBCXX_STRING) || defined(_GLIBCXX_SYSTEM_ERROR) || defined(_GLIBCXX_IOSFWD) || \
    defined(_UNISTD_H) || defined(BOOST_CONFIG_HPP)
#error "a hosted header is included"
#endif

namespace x86 = trace_ring::x86;

bool start_in_a_kernel(std::uint64_t area);
bool start_in_a_kernel(std::uint64_t area) {
    x86::ring0_msr registers;
    constexpr x86::bts_setting setting{x86::bts_mode::interrupt, x86::bts_levels::zero};
    const auto now = registers.read(x86::msr::debugctl);
    return now.fault == x86::msr_fault::none &&
           registers.write(x86::msr::ds_area, area) == x86::msr_fault::none &&
           registers.write(x86::msr::debugctl, now.value | encode(x86::ia32_debugctl, setting)) ==
               x86::msr_fault::none;
}
