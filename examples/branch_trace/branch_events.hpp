// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The events of a branch trace, which branch-trace writes and trace-reduce --branches reads. Each
/// taken branch is one record of 24 bytes, named after its kind, with the fields from and to. A
/// `from` of zero begins a contiguous part of a thread's branches, and a `to` of zero ends one, as
/// in the debug store.
///
/// A branch belongs to the thread of the last `branch.thread` before it in the same lane. This
/// event and all modules are repeated regularly, so that a trace with an overwritten beginning can
/// be read.
///
/// A record's time is the time at which it was drained from the debug store, not the time of the
/// branch, which neither the store nor the step records. Within a thread, the order is the
/// program's. Between two threads, it is the order of their drains.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>

#include <trace_ring/record/event.hpp>

namespace branches {

/// The kind of a transfer of control. The numbers are those of x86::branch_kind, which is not
/// available on every machine that reads a trace.
enum class branch_kind : std::uint8_t {
    unknown,
    conditional,
    jump,
    indirect_jump,
    call,
    indirect_call,
    function_return,
    interrupt_return,  ///< also the return from a signal handler, which the kernel implements this
                       ///< way
    system_call,
    system_return,
    interrupt,  ///< from: where the program continues afterwards
    exception,  ///< from: the faulting instruction
    signal,     ///< to: the handler; from: the instruction not executed
    other,
};

namespace event {

using from_field = trace_ring::field<"from", trace_ring::address>;
using to_field = trace_ring::field<"to", trace_ring::address>;
using process_field = trace_ring::field<"process", std::uint32_t>;
using thread_field = trace_ring::field<"thread", std::uint32_t>;

// Counted, so that the totals are correct even if the oldest records were overwritten.
template <trace_ring::literal Name>
struct taken : trace_ring::event<Name, from_field, to_field> {
    static constexpr bool counted = true;
};

struct unknown : taken<"branch"> {};
struct conditional : taken<"branch.conditional"> {};
struct jump : taken<"branch.jump"> {};
struct indirect_jump : taken<"branch.indirect_jump"> {};
struct call : taken<"branch.call"> {};
struct indirect_call : taken<"branch.indirect_call"> {};
struct function_return : taken<"branch.return"> {};
struct interrupt_return : taken<"branch.interrupt_return"> {};
struct system_call : taken<"branch.system_call"> {};
struct system_return : taken<"branch.system_return"> {};
struct interrupt : taken<"branch.interrupt"> {};
struct exception : taken<"branch.exception"> {};
struct to_handler : taken<"branch.to_handler"> {};
struct other : taken<"branch.other"> {};

/// Ordered by the numbers of branch_kind.
using all_taken = std::tuple<unknown, conditional, jump, indirect_jump, call, indirect_call,
                             function_return, interrupt_return, system_call, system_return,
                             interrupt, exception, to_handler, other>;

/// The following branches in this lane belong to this thread, up to the next such record. 0: no
/// thread.
struct thread : trace_ring::event<"branch.thread", process_field, thread_field,
                                  trace_ring::field<"process_before", std::uint32_t>,
                                  trace_ring::field<"thread_before", std::uint32_t>> {};

/// The settings of the trace; its first record.
struct recording
    : trace_ring::event<"branch.recording", trace_ring::field<"source", std::string_view>,
                        trace_ring::field<"why", std::string_view>,
                        trace_ring::field<"buffer", std::uint64_t>,     // bytes of a thread's store
                        trace_ring::field<"threshold", std::uint64_t>,  // records
                        trace_ring::field<"program", std::string_view>> {};

/// From now on, the bytes of the file `path` from `offset` are mapped at [start, end) in the
/// process.
struct module : trace_ring::event<"branch.module", process_field,
                                  trace_ring::field<"start", trace_ring::address>,
                                  trace_ring::field<"end", trace_ring::address>,
                                  trace_ring::field<"offset", trace_ring::address>,
                                  trace_ring::field<"path", std::string_view>> {};
/// A process has begun, or continues as another program: nothing is mapped now.
struct process_begun : trace_ring::event<"branch.process_begun", process_field,
                                         trace_ring::field<"program", std::string_view>> {};
/// It has ended normally with `status`, or by `signal` if that is not 0.
struct process_ended : trace_ring::event<"branch.process_ended", process_field,
                                         trace_ring::field<"status", std::int32_t>,
                                         trace_ring::field<"signal", std::int32_t>> {};
/// Branches of this thread are missing here: `count` of them; 0 if unknown.
struct gap : trace_ring::event<"branch.gap", process_field, thread_field,
                               trace_ring::field<"count", std::uint64_t>,
                               trace_ring::field<"why", std::string_view>> {};

}  // namespace event

inline constexpr std::size_t branch_kinds = std::tuple_size_v<event::all_taken>;

/// The name of each kind in reports.
[[nodiscard]] constexpr std::string_view name_of(branch_kind kind) noexcept {
    constexpr std::string_view names[branch_kinds] = {
        "branch",      "conditional",   "jump",      "indirect jump",
        "call",        "indirect call", "return",    "interrupt return",
        "system call", "system return", "interrupt", "exception",
        "to handler",  "other"};
    return names[static_cast<std::size_t>(kind)];
}

[[nodiscard]] constexpr bool is_call(branch_kind kind) noexcept {
    return kind == branch_kind::call || kind == branch_kind::indirect_call;
}

}  // namespace branches
