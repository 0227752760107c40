// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "followed_processes.hpp"

#include <linux/bpf.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "bpf_system.hpp"
#include "kernel_types.hpp"
#include "process_numbers.hpp"

namespace trace_clauses {
namespace {

// On the stack: the current process's key in the map, and data read from the kernel.
constexpr int own_at = -numbers_scratch;
constexpr int other_at = own_at - numbers_scratch;

/// Stores the current process's key at `at`, and loads its map entry into r0: 0 if there is none.
void find_own(bpf_code& code, int map, int at) {
    current_numbers(code, at);
    code.compute(BPF_RSH, bpf::r0, 32);
    code.store(bpf::r10, at, bpf::r0, 4);
    code.load_map(bpf::r1, map);
    code.move(bpf::r2, bpf::r10);
    code.compute(BPF_ADD, bpf::r2, at);
    code.call(BPF_FUNC_map_lookup_elem);
}
/// Reads the kernel's memory at r3.
void read_other(bpf_code& code, std::int32_t bytes) {
    code.move(bpf::r1, bpf::r10);
    code.compute(BPF_ADD, bpf::r1, other_at);
    code.move(bpf::r2, bytes);
    code.call(BPF_FUNC_probe_read_kernel);
}
void finish(bpf_code& code) {
    code.move(bpf::r0, 0);
    code.exit();
}

/// The arguments are the parent and the child thread. A new thread of the same process changes
/// nothing.
[[nodiscard]] bpf_code when_it_forks(int map) {
    bpf_code code;
    code.move(bpf::r6, bpf::r1);
    find_own(code, map, own_at);
    const std::size_t unknown = code.jump_if(BPF_JEQ, bpf::r0, 0);
    code.load(bpf::r1, bpf::r0, 0, 4);
    code.store(bpf::r10, own_at, bpf::r1, 4);  // the child has the same root as its parent
    code.load(bpf::r3, bpf::r6, 8);
    process_number(code, other_at);
    code.store(bpf::r10, other_at, bpf::r0, 4);
    code.update_map(map, other_at, own_at);
    code.here(unknown);
    finish(code);
    return code;
}

/// The argument is the thread that ends. The process ends with its last thread.
[[nodiscard]] bpf_code when_it_ends(int map) {
    bpf_code code;
    code.load(bpf::r6, bpf::r1, 0);
    find_own(code, map, own_at);
    const std::size_t unknown = code.jump_if(BPF_JEQ, bpf::r0, 0);
    code.move(bpf::r3, bpf::r6);
    code.compute(BPF_ADD, bpf::r3, offset_in_kernel("task_struct", "signal"));
    code.store(bpf::r10, other_at, 0);
    read_other(code, 8);
    code.load(bpf::r3, bpf::r10, other_at);
    code.compute(BPF_ADD, bpf::r3, offset_in_kernel("signal_struct", "live"));
    read_other(code, 4);
    code.load(bpf::r1, bpf::r10, other_at, 4);
    const std::size_t others_live = code.jump_if(BPF_JNE, bpf::r1, 0);
    code.load_map(bpf::r1, map);
    code.move(bpf::r2, bpf::r10);
    code.compute(BPF_ADD, bpf::r2, own_at);
    code.call(BPF_FUNC_map_delete_elem);
    code.here(unknown);
    code.here(others_live);
    finish(code);
    return code;
}

}  // namespace

void return_unless(bpf_code& code, const process_filter& wanted, int scratch,
                   std::int32_t otherwise) {
    if (wanted.process < 0) return;
    std::size_t right = 0;
    if (wanted.family < 0) {
        current_numbers(code, scratch);
        code.compute(BPF_RSH, bpf::r0, 32);
        right = code.jump_if(BPF_JEQ, bpf::r0, wanted.process);
    } else {
        find_own(code, wanted.family, scratch);
        const std::size_t unknown = code.jump_if(BPF_JEQ, bpf::r0, 0);
        code.load(bpf::r1, bpf::r0, 0, 4);
        right = code.jump_if(BPF_JEQ, bpf::r1, wanted.process);
        code.here(unknown);
    }
    code.move(bpf::r0, otherwise);
    code.exit();
    code.here(right);
}

followed_processes::followed_processes() {
    constexpr std::uint32_t most = 65536;
    processes_ = make_map(BPF_MAP_TYPE_HASH, 4, 4, most, BPF_F_NO_PREALLOC);
    const auto attach = [](const char* tracepoint, const bpf_code& code,
                           trace_ring::file_descriptor& program) {
        program = load_program(BPF_PROG_TYPE_RAW_TRACEPOINT, code, tracepoint);
        return attach_raw(tracepoint, program);
    };
    exit_attached_ = attach("sched_process_exit", when_it_ends(map()), at_exit_);
    fork_attached_ = attach("sched_process_fork", when_it_forks(map()), at_fork_);
}

void followed_processes::add(::pid_t process) {
    set_element(processes_, &process, &process);
}

bool followed_processes::has(::pid_t process) const {
    ::pid_t from = -1;
    return look_up(processes_, &process, &from);
}

}  // namespace trace_clauses
