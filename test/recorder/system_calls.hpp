// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Restricts the system calls of a thread, for tests of which calls are made: by a filter of the
/// kernel's (seccomp), which ends with the process.

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace test {

/// One call by all of its names: which of them is made depends on the machine and on the C library.
using call_names = std::vector<int>;

// What a process may do that may do nothing.
inline const call_names call_anyway {
    SYS_read, SYS_write, SYS_exit, SYS_exit_group, SYS_rt_sigreturn,
#if defined(SYS_sigreturn)
        SYS_sigreturn,
#endif
// Where the kernel does not map the clocks into the process.
#if defined(SYS_clock_gettime64)
        SYS_clock_gettime64,
#endif
        SYS_clock_gettime
};
inline const call_names call_gettid{SYS_gettid};
inline const call_names call_getpid{SYS_getpid};
inline const call_names call_tgkill{SYS_tgkill};
inline const call_names call_prctl{SYS_prctl};
inline const call_names call_madvise{SYS_madvise};
inline const call_names call_mmap {
#if defined(SYS_mmap2)
    SYS_mmap2,
#endif
#if defined(SYS_mmap)
        SYS_mmap
#endif
};
inline const call_names call_open {
#if defined(SYS_open)
    SYS_open,
#endif
        SYS_openat
};
inline const call_names call_fallocate{SYS_fallocate};
inline const call_names call_pwritev2{SYS_pwritev2};
/// Those that give a file a name without replacing another.
inline const call_names call_link {
#if defined(SYS_link)
    SYS_link,
#endif
        SYS_linkat, SYS_renameat2
};
inline const call_names call_getrlimit {
#if defined(SYS_getrlimit)
    SYS_getrlimit,
#endif
        SYS_prlimit64
};
inline const call_names call_fstat {
#if defined(SYS_fstat)
    SYS_fstat,
#endif
#if defined(SYS_fstat64)
        SYS_fstat64,
#endif
#if defined(SYS_fstatat64)
        SYS_fstatat64,
#endif
#if defined(SYS_newfstatat)
        SYS_newfstatat,
#endif
        SYS_statx
};
inline const call_names call_nanosleep {
    SYS_nanosleep,
#if defined(SYS_clock_nanosleep_time64)
        SYS_clock_nanosleep_time64,
#endif
        SYS_clock_nanosleep
};

/// The calls that the recorder's README names, as far as this machine has them.
[[nodiscard]] inline std::vector<std::pair<std::string_view, int>> numbered_calls() {
    return {
#define TRACE_RING_TEST_CALL(name) {#name, SYS_##name},
#if defined(SYS_fstat)
        TRACE_RING_TEST_CALL(fstat)
#endif
#if defined(SYS_fstat64)
        TRACE_RING_TEST_CALL(fstat64)
#endif
#if defined(SYS_newfstatat)
        TRACE_RING_TEST_CALL(newfstatat)
#endif
#if defined(SYS_mmap)
        TRACE_RING_TEST_CALL(mmap)
#endif
#if defined(SYS_mmap2)
        TRACE_RING_TEST_CALL(mmap2)
#endif
#if defined(SYS_clock_nanosleep_time64)
        TRACE_RING_TEST_CALL(clock_nanosleep_time64)
#endif
#if defined(SYS_clock_gettime64)
        TRACE_RING_TEST_CALL(clock_gettime64)
#endif
        TRACE_RING_TEST_CALL(clock_gettime)
        TRACE_RING_TEST_CALL(clock_nanosleep)
        TRACE_RING_TEST_CALL(close)
        TRACE_RING_TEST_CALL(fallocate)
        TRACE_RING_TEST_CALL(getpid)
        TRACE_RING_TEST_CALL(gettid)
        TRACE_RING_TEST_CALL(madvise)
        TRACE_RING_TEST_CALL(mlock)
        TRACE_RING_TEST_CALL(openat)
        TRACE_RING_TEST_CALL(prctl)
        TRACE_RING_TEST_CALL(prlimit64)
        TRACE_RING_TEST_CALL(pwritev2)
        TRACE_RING_TEST_CALL(read)
        TRACE_RING_TEST_CALL(sigaltstack)
        TRACE_RING_TEST_CALL(statx)
        TRACE_RING_TEST_CALL(tgkill)
#undef TRACE_RING_TEST_CALL
    };
}

/// From here on the calling thread, and those that it begins, get `listed` for these calls and
/// `others` for all others (SECCOMP_RET_...). False if the system has no filters.
[[nodiscard]] inline bool filter_calls(const std::vector<call_names>& calls, std::uint32_t listed,
                                       std::uint32_t others) {
    std::vector<int> all;
    for (const auto& names : calls) all.insert(all.end(), names.begin(), names.end());
    std::vector<sock_filter> rules;
    rules.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
    for (std::size_t i = 0; i < all.size(); ++i) {
        rules.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(all[i]),
                                 static_cast<std::uint8_t>(all.size() - i), 0));
    }
    rules.push_back(BPF_STMT(BPF_RET | BPF_K, others));
    rules.push_back(BPF_STMT(BPF_RET | BPF_K, listed));
    const sock_fprog program{static_cast<unsigned short>(rules.size()), rules.data()};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/// Every other call ends the process by SIGSYS.
[[nodiscard]] inline bool allow_only(std::vector<call_names> calls) {
    calls.push_back(call_anyway);
    return filter_calls(calls, SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS);
}
/// These calls fail with `error`.
[[nodiscard]] inline bool refuse_calls(const std::vector<call_names>& calls, int error) {
    return filter_calls(calls, SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error),
                        SECCOMP_RET_ALLOW);
}

}  // namespace test
