// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The events of a heap trace, which heap_recorder.so writes and heap-report reads. The event for a
/// call has the function's name, and each call is one record. A call through another glibc name,
/// such as __libc_malloc, is recorded under the usual name.
///
/// `free` and `delete` are recorded before the call, all others after it. So if one thread frees an
/// address and another thread gets it, the trace has the free first. A `realloc` that moves its
/// block is the exception: it frees the old address before its record is made.

#include <cstdint>
#include <span>
#include <string_view>

#include <trace_ring/instrument/modules.hpp>
#include <trace_ring/record/event.hpp>

namespace heap {

/// Innermost first: the address to which the recorded function returns, then its caller's, ...
using call_stack = std::span<const trace_ring::address>;

using size_field = trace_ring::field<"size", std::uint64_t>;    // requested bytes
using count_field = trace_ring::field<"count", std::uint64_t>;  // elements of `size` bytes
using address_field = trace_ring::field<"address", trace_ring::address>;  // the result; 0: failed
using old_field = trace_ring::field<"old", trace_ring::address>;          // the argument of realloc
using alignment_field = trace_ring::field<"alignment", std::uint64_t>;
using stack_field = trace_ring::field<"stack", call_stack>;

namespace event {

// Counted, so that the totals of calls are correct even if records were lost.
template <trace_ring::literal Name, class... Fields>
struct call : trace_ring::event<Name, Fields...> {
    static constexpr bool counted = true;
};

struct malloc : call<"malloc", size_field, address_field, stack_field> {};
struct calloc : call<"calloc", count_field, size_field, address_field, stack_field> {};
struct realloc : call<"realloc", old_field, size_field, address_field, stack_field> {};
struct reallocarray
    : call<"reallocarray", old_field, count_field, size_field, address_field, stack_field> {};
struct free : call<"free", address_field, stack_field> {};
/// Without stacks, a record of fixed length is enough, and takes half the time.
struct free_alone : call<"free", address_field> {};
struct free_sized : call<"free_sized", address_field, stack_field> {};
struct free_sized_alone : call<"free_sized", address_field> {};
struct free_aligned_sized : call<"free_aligned_sized", address_field, stack_field> {};
struct free_aligned_sized_alone : call<"free_aligned_sized", address_field> {};
struct posix_memalign
    : call<"posix_memalign", alignment_field, size_field, address_field, stack_field> {};
struct aligned_alloc
    : call<"aligned_alloc", alignment_field, size_field, address_field, stack_field> {};
struct memalign : call<"memalign", alignment_field, size_field, address_field, stack_field> {};
struct valloc : call<"valloc", size_field, address_field, stack_field> {};
struct pvalloc : call<"pvalloc", size_field, address_field, stack_field> {};
/// Each form of operator new, for one object or an array. A call that throws also has the address
/// 0.
struct operator_new : call<"new", size_field, address_field, stack_field> {};
struct operator_new_aligned
    : call<"new_aligned", alignment_field, size_field, address_field, stack_field> {};
/// Each form of operator delete.
struct operator_delete : call<"delete", address_field, stack_field> {};
struct operator_delete_alone : call<"delete", address_field> {};

/// Recorded before the first record whose stack points into it.
using trace_ring::instrument::module;

/// fork() is about to be called: the child inherits the live blocks. The child's first record is
/// `forked` with the same number.
struct fork : trace_ring::event<"fork", trace_ring::field<"number", std::uint64_t>> {};
struct forked : trace_ring::event<"forked", trace_ring::field<"number", std::uint64_t>> {};

/// How this process image is recorded; its first record. `unrecorded` counts calls by other threads
/// while the first one was setting up the recorder.
struct recording : trace_ring::event<"recording", trace_ring::field<"unwind", std::string_view>,
                                     trace_ring::field<"depth", std::uint32_t>,
                                     trace_ring::field<"limit", std::uint64_t>> {};
struct unrecorded : trace_ring::event<"unrecorded", trace_ring::field<"calls", std::uint64_t>> {};

/// `object` was loaded so that its calls of `functions` (names, separated by commas) go elsewhere.
/// Recorded at dlclose, or at the end of the program.
struct bypassing : trace_ring::event<"bypassing", trace_ring::field<"functions", std::string_view>,
                                     trace_ring::field<"object", std::string_view>> {};

/// `process` is about to execute `file`, or has been started with it; 0: unknown process. The
/// reason why it will not be recorded, or empty. If the execution fails, the thread's next record
/// reports this.
struct exec : trace_ring::event<"exec", trace_ring::field<"process", std::uint32_t>,
                                trace_ring::field<"file", std::string_view>,
                                trace_ring::field<"obstacle", std::string_view>> {};
struct exec_failed : trace_ring::event<"exec_failed", trace_ring::field<"error", std::int32_t>> {};

/// Calls of `function` find `object`'s function (usually the program's) before the recorder's, so
/// they are not recorded. Its own calls of recorded functions are.
struct passed_by : trace_ring::event<"passed_by", trace_ring::field<"function", std::string_view>,
                                     trace_ring::field<"object", std::string_view>> {};

}  // namespace event
}  // namespace heap
