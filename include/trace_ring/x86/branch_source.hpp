// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The interface of all sources of branch records: the neutral record, the gap between two records,
/// and the concept *branch_source*. A source is a debug store, a PMU's memory ring, samples of a
/// counter, a processor's register stack, or a program that is stepped. Other processors have
/// sources, too, so each field of a record may be absent (ARM's BRBE has records of only the source
/// or only the target).
/// @code
/// source.read(trace_ring::x86::visiting{
///     [](const trace_ring::x86::branch& one) { use(one.from(), one.to()); },
///     [](const trace_ring::x86::branch_gap& gap) { report(gap.count); }});
/// @endcode
///
/// | expression     | result         | meaning                                                    |
/// |----------------|----------------|------------------------------------------------------------|
/// | `S::character` | a constant     | of type `branch_character`: the fields, the order and the  |
/// |                |                | delivery of its records                                    |
/// | `s.read(v)`    | number         | calls `v(const branch&)` for each record that is there     |
/// |                |                | now, and `v(const branch_gap&)` where some are missing, in |
/// |                |                | the order of `character`; each record once. Returns the    |
/// |                |                | number of records; 0 is "none now"                         |
/// | `s.ended()`    | `bool`         | there will be no more records: noexcept                    |
/// | `s.lost()`     | `loss_counts`  | records lost so far, by cause: the sum of all gaps; one of |
/// |                |                | unknown length counts as one record, or as the least       |
/// |                |                | number if that is larger                                   |
///
/// `s` is used by one thread at a time. `read` may throw exceptions derived from std::system_error,
/// and those of `v`. It is linear in the records, unless the source says otherwise.
///
/// The smallest valid model is the register stack in test/x86: an array and its number. The concept
/// is not weaker: without gaps a reader would join two runs that do not meet. It is not stronger:
/// sources differ in how they are started and stopped, and in where a record's bytes lie; a source
/// whose records lie in a row in memory is also a *drainable* (drain/drainable.hpp).

#include <trace_ring/x86/enabled.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include <trace_ring/loss.hpp>
#include <trace_ring/x86/loss_advice.hpp>

namespace trace_ring::inline v1::x86 {

/// The kind of transfer of control. `unknown` if the source does not record it: a debug store never
/// does, because that would need the instruction at `from`.
enum class branch_kind : std::uint8_t {
    unknown,
    conditional,
    jump,
    indirect_jump,
    call,
    indirect_call,
    function_return,
    interrupt_return,  ///< iret, by which a kernel also returns from a signal's handler
    system_call,
    system_return,
    interrupt,  ///< `from` is the address it returns to
    exception,  ///< `from` is the faulting address
    signal,     ///< to a signal's handler; `from` is the instruction not executed
    other,      ///< another kind: a transaction's abort, a far branch
};
inline constexpr std::size_t branch_kind_count = 14;  ///< the number of kinds

/// The kind in words.
[[nodiscard]] constexpr std::string_view to_string(branch_kind kind) noexcept {
    constexpr std::string_view names[branch_kind_count] = {
        "unknown",     "conditional",   "jump",      "indirect jump",
        "call",        "indirect call", "return",    "interrupt return",
        "system call", "system return", "interrupt", "exception",
        "signal",      "other"};
    return static_cast<std::size_t>(kind) < branch_kind_count
               ? names[static_cast<std::size_t>(kind)]
               : "invalid";
}

/// Whether an instruction of the program made the transfer, not the kernel or the processor.
[[nodiscard]] constexpr bool is_branch_instruction(branch_kind kind) noexcept {
    return kind >= branch_kind::conditional && kind <= branch_kind::function_return;
}
/// Whether the branch is a call of any kind.
[[nodiscard]] constexpr bool is_call(branch_kind kind) noexcept {
    return kind == branch_kind::call || kind == branch_kind::indirect_call;
}

/// The privilege at which a branch was taken.
enum class branch_privilege : std::uint8_t { unknown, user, kernel, hypervisor };

/// One taken branch. 24 bytes, the same for programs of 32 and 64 bits:
/// @code
///    0 u64 from       8 u64 to       16 u32 thread       20 u16 cycles       22 u8 kind
///   23 u8  bits: 0 from is there, 1 to is there, 2 prediction is there, 3 predicted,
///          4 cycles are there, 5-6 privilege, 7 zero
/// @endcode
/// A record with only `to` begins a run of branches, one with only `from` ends it: the branches
/// before it, or after it, were not recorded or must not be shown. An absent address reads as 0.
class branch {
public:
    constexpr branch() noexcept = default;
    /// A branch of which both ends are known.
    constexpr branch(std::uint64_t from, std::uint64_t to,
                     branch_kind kind = branch_kind::unknown) noexcept
        : from_(from), to_(to), kind_(kind), bits_(from_bit | to_bit) {}
    /// A branch whose target is not known.
    [[nodiscard]] static constexpr branch only_from(
        std::uint64_t from, branch_kind kind = branch_kind::unknown) noexcept {
        branch made(from, 0, kind);
        made.bits_ = from_bit;
        return made;
    }
    /// A branch whose origin is not known.
    [[nodiscard]] static constexpr branch only_to(
        std::uint64_t to, branch_kind kind = branch_kind::unknown) noexcept {
        branch made(0, to, kind);
        made.bits_ = to_bit;
        return made;
    }

    /// Address of the branch; 0 if it is not known.
    [[nodiscard]] constexpr std::uint64_t from() const noexcept { return from_; }
    /// Address of the target; 0 if it is not known.
    [[nodiscard]] constexpr std::uint64_t to() const noexcept { return to_; }
    /// Whether `from` is known.
    [[nodiscard]] constexpr bool has_from() const noexcept { return (bits_ & from_bit) != 0; }
    /// Whether `to` is known.
    [[nodiscard]] constexpr bool has_to() const noexcept { return (bits_ & to_bit) != 0; }
    /// Whether both are known.
    [[nodiscard]] constexpr bool complete() const noexcept { return has_from() && has_to(); }
    /// The kind; unknown if the source does not report it.
    [[nodiscard]] constexpr branch_kind kind() const noexcept { return kind_; }

    /// The program's thread, by the system's number; 0 if the source does not record it.
    [[nodiscard]] constexpr std::uint32_t thread() const noexcept { return thread_; }
    /// Whether the source reports predictions.
    [[nodiscard]] constexpr bool has_prediction() const noexcept {
        return (bits_ & prediction_bit) != 0;
    }
    /// Valid only if `has_prediction()`: false means "mispredicted" then.
    [[nodiscard]] constexpr bool predicted() const noexcept { return (bits_ & predicted_bit) != 0; }
    /// Whether the source reports cycles.
    [[nodiscard]] constexpr bool has_cycles() const noexcept { return (bits_ & cycles_bit) != 0; }
    /// Cycles since the record before; the largest number means "this many, or more".
    [[nodiscard]] constexpr std::uint16_t cycles() const noexcept { return cycles_; }
    /// The privilege level.
    [[nodiscard]] constexpr branch_privilege privilege() const noexcept {
        return static_cast<branch_privilege>(bits_ >> privilege_shift & 3U);
    }

    /// The thread that took the branch.
    constexpr branch& set_thread(std::uint32_t thread) noexcept {
        thread_ = thread;
        return *this;
    }
    /// Whether the processor predicted it.
    constexpr branch& set_predicted(bool predicted) noexcept {
        set(prediction_bit, true);
        set(predicted_bit, predicted);
        return *this;
    }
    /// Cycles since the previous branch.
    constexpr branch& set_cycles(std::uint16_t cycles) noexcept {
        set(cycles_bit, true);
        cycles_ = cycles;
        return *this;
    }
    /// The privilege level.
    constexpr branch& set_privilege(branch_privilege privilege) noexcept {
        set(3U << privilege_shift, false);
        set(static_cast<unsigned>(privilege) << privilege_shift, true);
        return *this;
    }

    friend constexpr bool operator==(const branch&, const branch&) noexcept = default;

private:
    static constexpr unsigned from_bit = 1, to_bit = 2, prediction_bit = 4, predicted_bit = 8,
                              cycles_bit = 16, privilege_shift = 5;
    constexpr void set(unsigned mask, bool on) noexcept {
        bits_ = static_cast<std::uint8_t>(on ? bits_ | mask : bits_ & ~mask);
    }

    alignas(8) std::uint64_t from_ = 0;
    alignas(8) std::uint64_t to_ = 0;
    std::uint32_t thread_ = 0;
    std::uint16_t cycles_ = 0;
    branch_kind kind_ = branch_kind::unknown;
    std::uint8_t bits_ = 0;
};
static_assert(sizeof(branch) == 24 && alignof(branch) == 8);
static_assert(std::is_trivially_copyable_v<branch> && std::is_standard_layout_v<branch>);

/// Records are or may be missing here: those on both sides do not meet.
struct branch_gap {
    std::uint64_t count = 0;                     ///< records; 0: unknown, possibly none
    loss_cause cause = loss_cause::overwritten;  ///< why they are missing
    std::uint32_t thread = 0;                    ///< 0: any thread that the source follows
    /// How to avoid the gap, if the source has a buffer whose size or threshold decides it.
    std::optional<loss_advice> advice{};

    friend constexpr bool operator==(const branch_gap&, const branch_gap&) noexcept = default;
};

/// The order in which a source delivers.
enum class branch_order : std::uint8_t { oldest_first, newest_first };

/// The way in which a source gets its records.
enum class branch_delivery : std::uint8_t {
    memory_ring,     ///< the processor stores them: many, in a row
    register_stack,  ///< the processor keeps the last few in registers
    sample,          ///< an interrupt, or a stop, for each
};

/// A source's constant description of its records. A field that is true here may be absent in some
/// records; one that is false is absent in all.
struct branch_character {
    branch_order order = branch_order::oldest_first;          ///< oldest or newest first
    branch_delivery delivery = branch_delivery::memory_ring;  ///< how branches reach the reader
    bool tells_kind = false;                                  ///< `kind` is reported
    bool tells_prediction = false;                            ///< `predicted` is reported
    bool tells_cycles = false;                                ///< `cycles` are reported
    bool tells_privilege = false;                             ///< `privilege` is reported
    bool tells_thread = false;                                ///< `thread` is reported
    /// Records may hold addresses of another privilege than the chosen one: remove them before you
    /// show records to other users.
    bool foreign_privilege = false;

    friend constexpr bool operator==(const branch_character&,
                                     const branch_character&) noexcept = default;
};

namespace impl {
/// A visitor to check `read` with.
struct any_branch_visitor {
    void operator()(const branch&) const noexcept {}
    void operator()(const branch_gap&) const noexcept {}
};
}  // namespace impl

template <class S>
concept branch_source = std::same_as<decltype(S::character), const branch_character> &&
    requires(S& s, const S& c) {
    typename std::bool_constant<S::character == S::character>;  // a constant expression
    { s.read(impl::any_branch_visitor{}) } -> std::convertible_to<std::uint64_t>;
    { c.ended() }
    noexcept->std::same_as<bool>;
    { c.lost() } -> std::convertible_to<loss_counts>;
};

/// A visitor that `read` of a branch_source can call for a branch and for a gap.
template <class V>
concept branch_visitor = std::invocable<V&, const branch&> && std::invocable<V&, const branch_gap&>;

namespace impl {
template <class... Visits>
struct overloads : Visits... {
    using Visits::operator()...;
};
template <class... Visits>
struct visits {
    static constexpr bool branches = std::invocable<overloads<Visits...>&, const branch&>;
    static constexpr bool gaps = std::invocable<overloads<Visits...>&, const branch_gap&>;
};
template <>
struct visits<> {
    static constexpr bool branches = true, gaps = true;  // that it is empty is reported
};
}  // namespace impl

/// Both visits in one object: `source.read(visiting{for_a_branch, for_a_gap})`.
template <class... Visits>
struct visiting : Visits... {
    static_assert(sizeof...(Visits) != 0,
                  "x86::visiting: it is empty: write "
                  "visiting{[](const branch& one) {...}, [](const branch_gap& gap) {...}}");
    static_assert(impl::visits<Visits...>::branches,
                  "x86::visiting: exactly one of its functions must take a branch: write "
                  "visiting{[](const branch& one) {...}, [](const branch_gap& gap) {...}}");
    static_assert(impl::visits<Visits...>::gaps || !impl::visits<Visits...>::branches,
                  "x86::visiting: exactly one of its functions must take a gap: write "
                  "visiting{[](const branch& one) {...}, [](const branch_gap& gap) {...}}");
    using Visits::operator()...;
};
template <class... Visits>
visiting(Visits...) -> visiting<Visits...>;

namespace impl {
template <class V>
inline constexpr bool is_visiting = false;
template <class... Visits>
inline constexpr bool is_visiting<visiting<Visits...>> = true;

/// For a `read` with a visitor that lacks one of the two functions: one sentence. A `visiting` has
/// reported it already.
template <class V>
constexpr std::uint64_t refuse_visitor() noexcept {
    constexpr bool reported = is_visiting<std::remove_cvref_t<V>>;
    static_assert(reported || std::invocable<V&, const branch&>,
                  "x86: read() calls its visitor for each branch: write "
                  "read(visiting{[](const branch& one) {...}, [](const branch_gap& gap) {...}})");
    static_assert(reported || !std::invocable<V&, const branch&>,
                  "x86: read() calls its visitor for each gap, too: write "
                  "read(visiting{[](const branch& one) {...}, [](const branch_gap& gap) {...}})");
    return 0;
}
}  // namespace impl

}  // namespace trace_ring::inline v1::x86
