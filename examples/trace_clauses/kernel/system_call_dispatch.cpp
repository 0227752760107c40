// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "system_call_dispatch.hpp"

#include <linux/bpf.h>
#include <unistd.h>

#include <stdexcept>
#include <string>

#include "bpf_code.hpp"
#include "bpf_system.hpp"
#include "firing_code.hpp"
#include "kernel_types.hpp"
#include "process_numbers.hpp"
#include "system_call_number.hpp"

namespace trace_clauses {
namespace {

constexpr std::int32_t by_entry_for_32 = 2;  // the kernel's TS_COMPAT
static_assert(by_entry_for_32 << 9 == most_call_numbers);

[[nodiscard]] bpf_code dispatcher(function_part part, const process_filter& only, int programs,
                                  int entered) {
    constexpr int scratch = -numbers_scratch;
    constexpr bpf::reg context = bpf::r6;
    constexpr bpf::reg number = bpf::r7;
    bpf_code code;
    code.move(context, bpf::r1);
    return_unless(code, only, scratch);
    current_numbers(code, scratch);
    code.compute(BPF_RSH, bpf::r0, 32);
    // With all processes traced, this process's own calls would never end.
    const std::size_t own = code.jump_if(BPF_JEQ, bpf::r0, only.process < 0 ? ::getpid() : 0);
    const auto read = [&code](unsigned bytes) {  // from r3 into r1
        code.store(bpf::r10, scratch, 0);
        code.move(bpf::r1, bpf::r10);
        code.compute(BPF_ADD, bpf::r1, scratch);
        code.move(bpf::r2, static_cast<std::int32_t>(bytes));
        code.call(BPF_FUNC_probe_read_kernel);
        code.load(bpf::r1, bpf::r10, scratch);
    };
    if (part == function_part::system_call) {
        code.load(number, context, 8);
    } else {
        code.load(bpf::r3, context, 0);
        code.compute(BPF_ADD, bpf::r3, firing_code::call_number);
        read(8);
        code.move(number, bpf::r1);
    }
    const std::size_t none = code.jump_if(BPF_JGE, number, most_call_numbers);
    code.call(BPF_FUNC_get_current_task);
    code.move(bpf::r3, bpf::r0);
    code.compute(
        BPF_ADD, bpf::r3,
        offset_in_kernel("task_struct", "thread_info") + offset_in_kernel("thread_info", "status"));
    read(4);
    code.compute(BPF_AND, bpf::r1, by_entry_for_32);
    code.compute(BPF_LSH, bpf::r1, 9);
    code.compute(BPF_ADD, number, bpf::r1);
    if (entered >= 0) firing_code::note_call(code, entered, number, scratch - 32);
    code.move(bpf::r1, context);
    code.load_map(bpf::r2, programs);
    code.move(bpf::r3, number);
    code.call(BPF_FUNC_tail_call);  // returns only if there is no program for that number
    code.here(own);
    code.here(none);
    code.move(bpf::r0, 0);
    code.exit();
    return code;
}

}  // namespace

system_call_dispatch::system_call_dispatch(function_part part, const process_filter& only,
                                           int entered)
    : programs_(make_map(BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 2 * most_call_numbers)) {
    const bool enters = part == function_part::system_call;
    const char* const name = enters ? "sys_enter" : "sys_exit";
    dispatcher_ =
        load_program(BPF_PROG_TYPE_RAW_TRACEPOINT,
                     dispatcher(part, only, programs_.get(), enters ? entered : -1), name);
    attached_ = attach_raw(name, dispatcher_);
}

void system_call_dispatch::set(trace_ring::record::program_mode mode, std::uint32_t number,
                               const trace_ring::file_descriptor& program) {
    if (number >= most_call_numbers)
        throw std::runtime_error("no system call has the number " + std::to_string(number));
    const std::uint32_t key = number_among_calls(mode, number);
    const int value = program.get();
    set_element(programs_, &key, &value);
}

}  // namespace trace_clauses
