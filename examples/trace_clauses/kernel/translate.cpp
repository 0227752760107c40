// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "translate.hpp"

#include <array>
#include <vector>

#include <trace_ring/point/code.hpp>
#include <trace_ring/point/run.hpp>

namespace trace_clauses {
namespace {

using bpf::reg;
using point::instruction;
using point::op;
using trace_ring::record::program_mode;

/// Where the kernel's struct pt_regs of x86-64 has them, in bytes.
enum saved : int {
    r15 = 0,
    r14 = 8,
    r13 = 16,
    r12 = 24,
    rbp = 32,
    rbx = 40,
    r11 = 48,
    r10 = 56,
    r9 = 64,
    r8 = 72,
    rax = 80,
    rcx = 88,
    rdx = 96,
    rsi = 104,
    rdi = 112,
    rip = 128,
    cs = 136,
    rsp = 152,
};
// By DWARF's numbers.
constexpr std::array<int, 17> registers_64{rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8,
                                           r9,  r10, r11, r12, r13, r14, r15, rip};
constexpr std::array<int, 9> registers_32{rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, rip};
constexpr std::array<int, 6> arguments_64{rdi, rsi, rdx, rcx, r8, r9};
constexpr std::int32_t segment_of_32 = 0x23;

// Registers that calls leave alone.
constexpr reg firing = bpf::r6;
constexpr reg record = bpf::r7;
constexpr reg faults = bpf::r8;

// The stack: the words of the byte code, and behind them room for what helpers store.
constexpr int words_end = -8 * static_cast<int>(point::most_depth);
constexpr int scratch = words_end - 8;
constexpr int name_at = scratch - 16;

class translator {
public:
    translator(const kernel_maps& maps, function_part part) : maps_(maps), part_(part) {}

    [[nodiscard]] bpf_code program(const point::clauses& session,
                                   std::span<const std::uint32_t> clauses) {
        to_.move(firing, bpf::r1);
        to_.load(bpf::r1, firing, cs);
        const std::size_t narrow = to_.jump_if(BPF_JEQ, bpf::r1, segment_of_32);
        for (const std::uint32_t each : clauses) clause(session, each, program_mode::lp64);
        const std::size_t end = to_.jump();
        to_.here(narrow);
        for (const std::uint32_t each : clauses) clause(session, each, program_mode::ilp32);
        to_.here(end);
        to_.move(bpf::r0, 0);
        to_.exit();
        return std::move(to_);
    }

private:
    void clause(const point::clauses& session, std::uint32_t number, program_mode mode) {
        mode_ = mode;
        const point::clauses::stream& of = session.stream_of(number, mode);
        std::vector<std::size_t> to_end;
        to_.move(faults, 0);
        if (of.predicate.size != 0) {
            run(session.at(of.predicate));
            const std::size_t readable = to_.jump_if(BPF_JEQ, faults, 0);
            count(number, offsetof(kernel_counts, unreadable));
            to_end.push_back(to_.jump());
            to_.here(readable);
            to_.load(bpf::r1, bpf::r10, -8);
            const std::size_t wanted = to_.jump_if(BPF_JNE, bpf::r1, 0);
            count(number, offsetof(kernel_counts, not_wanted));
            to_end.push_back(to_.jump());
            to_.here(wanted);
        }
        to_.load_map(bpf::r1, maps_.ring);
        to_.move(bpf::r2, static_cast<std::int32_t>(sizeof(kernel_record) + of.output_bytes));
        to_.move(bpf::r3, 0);
        to_.call(BPF_FUNC_ringbuf_reserve);
        const std::size_t there = to_.jump_if(BPF_JNE, bpf::r0, 0);
        count(number, offsetof(kernel_counts, dropped));
        count(maps_.all, offsetof(kernel_counts, dropped));
        to_end.push_back(to_.jump());
        to_.here(there);
        to_.move(record, bpf::r0);
        head(number);
        zero(0, of.output_bytes);
        to_.move(faults, 0);
        run(session.at(of.action));
        to_.store(record, offsetof(kernel_record, faults), faults, 4);
        hand_over();
        count(number, offsetof(kernel_counts, ran));
        for (const std::size_t each : to_end) to_.here(each);
    }

    /// To wake the reader for each record costs more than all else, and it finds what is there when
    /// its wait ends: so it is woken only when there is much.
    void hand_over() {
        to_.load_map(bpf::r1, maps_.ring);
        to_.move(bpf::r2, BPF_RB_AVAIL_DATA);
        to_.call(BPF_FUNC_ringbuf_query);
        to_.move(bpf::r2, BPF_RB_NO_WAKEUP);
        const std::size_t little =
            to_.jump_if(BPF_JLT, bpf::r0, static_cast<std::int32_t>(maps_.much));
        to_.move(bpf::r2, BPF_RB_FORCE_WAKEUP);
        to_.here(little);
        to_.move(bpf::r1, record);
        to_.call(BPF_FUNC_ringbuf_submit);
    }
    /// Adds one to a count of a clause.
    void count(std::uint32_t number, std::size_t what) {
        counter(number);
        const std::size_t none = to_.jump_if(BPF_JEQ, bpf::r0, 0);  // never: but it must be asked
        to_.move(bpf::r1, 1);
        to_.add_atomically(bpf::r0, static_cast<int>(what), bpf::r1);
        to_.here(none);
    }
    /// The address of a clause's counts, in r0.
    void counter(std::uint32_t number) {
        to_.store(bpf::r10, scratch, static_cast<std::int32_t>(number), 4);
        to_.load_map(bpf::r1, maps_.counters);
        to_.move(bpf::r2, bpf::r10);
        to_.compute(BPF_ADD, bpf::r2, scratch);
        to_.call(BPF_FUNC_map_lookup_elem);
    }
    void head(std::uint32_t number) {
        to_.store(record, offsetof(kernel_record, clause), static_cast<std::int32_t>(number), 4);
        to_.store(record, offsetof(kernel_record, bits), bits(), 4);
        to_.store(record, offsetof(kernel_record, dropped), 0);
        to_.call(BPF_FUNC_ktime_get_ns);
        to_.store(record, offsetof(kernel_record, time), bpf::r0);
        to_.call(BPF_FUNC_get_current_pid_tgid);
        to_.store(record, offsetof(kernel_record, tid), bpf::r0, 4);
        to_.compute(BPF_RSH, bpf::r0, 32);
        to_.store(record, offsetof(kernel_record, pid), bpf::r0, 4);
        to_.call(BPF_FUNC_get_smp_processor_id);
        to_.store(record, offsetof(kernel_record, cpu), bpf::r0, 4);
        to_.move(bpf::r1, record);
        to_.compute(BPF_ADD, bpf::r1, offsetof(kernel_record, comm));
        to_.move(bpf::r2, 16);
        to_.call(BPF_FUNC_get_current_comm);
        counter(maps_.all);
        const std::size_t none = to_.jump_if(BPF_JEQ, bpf::r0, 0);
        to_.load(bpf::r1, bpf::r0, offsetof(kernel_counts, dropped));
        to_.store(record, offsetof(kernel_record, dropped), bpf::r1);
        to_.here(none);
    }
    [[nodiscard]] bool is_wide() const noexcept { return mode_ == program_mode::lp64; }
    [[nodiscard]] std::int32_t bits() const noexcept { return is_wide() ? 64 : 32; }
    [[nodiscard]] static int at_output(std::size_t offset) noexcept {
        return static_cast<int>(sizeof(kernel_record) + offset);
    }
    void zero(std::size_t from, std::size_t bytes) {
        std::size_t at = from;
        for (const unsigned step : {8U, 4U, 2U, 1U}) {
            for (; at + step <= from + bytes; at += step) to_.store(record, at_output(at), 0, step);
        }
    }

    // --- The stack of words ---

    [[nodiscard]] static int place(std::size_t word) noexcept {
        return -8 * (static_cast<int>(word) + 1);
    }
    void push(reg from) { to_.store(bpf::r10, place(depth_++), from); }
    void pop(reg into) { to_.load(into, bpf::r10, place(--depth_)); }

    /// Runs code from an empty stack; a predicate's word is left in the first place.
    void run(point::code of) {
        std::vector<std::size_t> begins(of.size());
        std::vector<std::size_t> depths(of.size(), 0);
        struct skip {
            std::size_t jump, target;
        };
        std::vector<skip> open;
        depth_ = 0;
        bool reached = true;
        for (std::size_t i = 0; i < of.size(); ++i) {
            const instruction& one = of[i];
            if (!reached) depth_ = depths[i];  // only skips lead here
            begins[i] = to_.size();
            reached = one.code != op::skip;
            if (one.code == op::skip || one.code == op::skip_if_zero) {
                if (one.code == op::skip_if_zero) pop(bpf::r1);
                const std::size_t target = i + 1 + static_cast<std::size_t>(one.value);
                depths[target] = depth_;
                open.push_back(
                    {one.code == op::skip ? to_.jump() : to_.jump_if(BPF_JEQ, bpf::r1, 0), target});
            } else if (one.code != op::finish) {
                step(one);
            }
        }
        for (const skip& each : open) to_.ends(each.jump, begins[each.target]);
    }

    void step(const instruction& one) {
        switch (one.code) {
            case op::constant:
                to_.move(bpf::r1, one.value);
                push(bpf::r1);
                return;
            case op::constant_high:
                pop(bpf::r1);
                to_.move_low(bpf::r1, bpf::r1);
                to_.move(bpf::r2, one.value);
                to_.compute(BPF_LSH, bpf::r2, 32);
                to_.compute(BPF_OR, bpf::r1, bpf::r2);
                push(bpf::r1);
                return;
            case op::context:
                context(static_cast<point::context_word>(one.what));
                return;
            case op::argument:
                argument(one.what);
                return;
            case op::reg: {
                const bool there =
                    is_wide() ? one.what < registers_64.size() : one.what < registers_32.size();
                if (there) {
                    saved_word(is_wide() ? registers_64[one.what] : registers_32[one.what]);
                } else {
                    to_.move(bpf::r1, 0);
                }
                push(bpf::r1);
                return;
            }
            case op::load:
                pop(bpf::r3);
                if (one.value != 0) to_.compute(BPF_ADD, bpf::r3, one.value);
                read(point::bytes_of(static_cast<point::width>(one.what)));
                extend(static_cast<point::width>(one.what));
                push(bpf::r1);
                return;
            case op::negate:
                pop(bpf::r1);
                to_.negate(bpf::r1);
                push(bpf::r1);
                return;
            case op::invert:
                pop(bpf::r1);
                to_.compute(BPF_XOR, bpf::r1, -1);
                push(bpf::r1);
                return;
            case op::is_zero:
                pop(bpf::r1);
                is_zero();
                push(bpf::r1);
                return;
            case op::narrow:
                pop(bpf::r1);
                cut(static_cast<point::width>(one.what));
                push(bpf::r1);
                return;
            case op::store:
                pop(bpf::r1);
                to_.store(record, at_output(static_cast<std::size_t>(one.value)), bpf::r1,
                          point::bytes_of(static_cast<point::width>(one.what)));
                return;
            case op::store_text:
                text(static_cast<std::size_t>(one.value), one.size);
                return;
            case op::store_bytes:
                pop(bpf::r3);
                into_output(static_cast<std::size_t>(one.value), one.size);
                to_.call(BPF_FUNC_probe_read_user);  // which zeroes what it could not read
                note_fault();
                return;
            case op::store_stack:
                stack(static_cast<std::size_t>(one.value), one.size);
                return;
            default:
                pop(bpf::r2);
                pop(bpf::r1);
                combine(one.code);
                push(bpf::r1);
        }
    }

    // --- What is known of the firing ---

    /// A register of the program, into r1.
    void saved_word(int offset) {
        to_.load(bpf::r1, firing, offset);
        if (!is_wide()) to_.move_low(bpf::r1, bpf::r1);
    }
    void context(point::context_word what) {
        using point::context_word;
        switch (what) {
            case context_word::time:
                to_.call(BPF_FUNC_ktime_get_ns);
                break;
            case context_word::process:
                to_.call(BPF_FUNC_get_current_pid_tgid);
                to_.compute(BPF_RSH, bpf::r0, 32);
                break;
            case context_word::thread:
                to_.call(BPF_FUNC_get_current_pid_tgid);
                to_.move_low(bpf::r0, bpf::r0);
                break;
            case context_word::user:
                to_.call(BPF_FUNC_get_current_uid_gid);
                to_.move_low(bpf::r0, bpf::r0);
                break;
            case context_word::processor:
                to_.call(BPF_FUNC_get_smp_processor_id);
                to_.move_low(bpf::r0, bpf::r0);
                break;
            case context_word::bits:
                to_.move(bpf::r0, bits());
                break;
            case context_word::returned:
                if (part_ == function_part::exit) {
                    saved_word(rax);
                    to_.move(bpf::r0, bpf::r1);
                } else {
                    to_.move(bpf::r0, 0);
                }
                break;
            case context_word::address:
                saved_word(rip);
                to_.move(bpf::r0, bpf::r1);
                break;
            case context_word::command:
            case context_word::command_rest:
                to_.move(bpf::r1, bpf::r10);
                to_.compute(BPF_ADD, bpf::r1, name_at);
                to_.move(bpf::r2, 16);
                to_.call(BPF_FUNC_get_current_comm);
                to_.load(bpf::r0, bpf::r10, name_at + (what == context_word::command ? 0 : 8));
                break;
        }
        push(bpf::r0);
    }
    /// By the mode's calling convention, where a function is entered: the return address is on top
    /// of its stack.
    void argument(std::size_t n) {
        if (is_wide() && n < arguments_64.size()) {
            saved_word(arguments_64[n]);
            push(bpf::r1);
            return;
        }
        top_of_stack(1 + (is_wide() ? n - arguments_64.size() : n));
        read(word_bytes());
        push(bpf::r1);
    }
    [[nodiscard]] unsigned word_bytes() const noexcept { return is_wide() ? 8 : 4; }
    /// The address, into r3, of the program's stack's top, or of a word so many above it.
    void top_of_stack(std::size_t words) {
        to_.load(bpf::r3, firing, rsp);
        if (!is_wide()) to_.move_low(bpf::r3, bpf::r3);
        to_.compute(BPF_ADD, bpf::r3, static_cast<std::int32_t>(word_bytes() * words));
    }

    // --- Memory ---

    /// Reads so many bytes at r3 into r1, with zeros behind them; nothing there is 0 and a fault.
    void read(unsigned bytes) {
        peek(bytes);
        note_fault();
    }
    /// The same without a fault: r0 is negative if nothing is there.
    void peek(unsigned bytes) {
        to_.store(bpf::r10, scratch, 0);
        to_.move(bpf::r1, bpf::r10);
        to_.compute(BPF_ADD, bpf::r1, scratch);
        to_.move(bpf::r2, static_cast<std::int32_t>(bytes));
        to_.call(BPF_FUNC_probe_read_user);
        to_.load(bpf::r1, bpf::r10, scratch);
    }
    /// The kernel follows frame pointers, from the instruction that fires. Where a function is
    /// entered it has not made its frame: the frame pointer is its caller's, and who called is on
    /// top of the stack. Newer kernels look there, too, if the function begins as those with
    /// frames do.
    void stack(std::size_t offset, unsigned size) {
        frames(offset, size);
        if (part_ != function_part::entry) return;
        top_of_stack(0);
        peek(word_bytes());
        to_.load(bpf::r2, record, at_output(offset));
        to_.compute(BPF_XOR, bpf::r2, bpf::r1);
        const std::size_t known = to_.jump_if(BPF_JEQ, bpf::r2, 0);
        to_.store(record, at_output(offset), bpf::r1);
        if (size > 8) frames(offset + 8, size - 8);
        to_.here(known);
    }
    /// Return addresses by frame pointers, with zeros behind them.
    void frames(std::size_t offset, unsigned size) {
        into_output(offset, size);
        to_.move(bpf::r3, bpf::r2);
        to_.move(bpf::r2, bpf::r1);
        to_.move(bpf::r1, firing);
        // The first one is where it fires: at an exit that is where the function returned to.
        to_.move(bpf::r4, BPF_F_USER_STACK | (part_ == function_part::exit ? 0 : 1));
        to_.call(BPF_FUNC_get_stack);
    }
    /// What a helper returned is negative: one fault more.
    void note_fault() {
        to_.compute(BPF_RSH, bpf::r0, 63);
        to_.compute(BPF_ADD, faults, bpf::r0);
    }
    /// The first two arguments of a helper that stores into the output.
    void into_output(std::size_t offset, unsigned bytes) {
        to_.move(bpf::r1, record);
        to_.compute(BPF_ADD, bpf::r1, at_output(offset));
        to_.move(bpf::r2, static_cast<std::int32_t>(bytes));
    }
    /// The helper stores a 0 behind the text, within its place: so a text that fills its place is
    /// read on by two single bytes, the last one that fits and the one behind it. Of an empty text
    /// older kernels return 0, and not 1.
    void text(std::size_t offset, unsigned size) {
        pop(bpf::r9);
        zero(offset, size + 2U);
        into_output(offset + 2, size);
        to_.move(bpf::r3, bpf::r9);
        to_.call(BPF_FUNC_probe_read_user_str);
        const std::size_t failed = to_.jump_if(BPF_JSLT, bpf::r0, 0);
        to_.compute(BPF_SUB, bpf::r0, 1);
        const std::size_t empty = to_.jump_if(BPF_JSLT, bpf::r0, 0);
        to_.store(record, at_output(offset), bpf::r0, 2);
        const std::size_t ended =
            to_.jump_if(BPF_JSLT, bpf::r0, static_cast<std::int32_t>(size) - 1);
        to_.move(bpf::r3, bpf::r9);
        to_.compute(BPF_ADD, bpf::r3, static_cast<std::int32_t>(size) - 1);
        peek(1);
        const std::size_t failed_at_last = to_.jump_if(BPF_JSLT, bpf::r0, 0);
        const std::size_t ends_there = to_.jump_if(BPF_JEQ, bpf::r1, 0);
        to_.store(record, at_output(offset + 1 + size), bpf::r1, 1);
        to_.move(bpf::r3, bpf::r9);
        to_.compute(BPF_ADD, bpf::r3, static_cast<std::int32_t>(size));
        peek(1);
        const std::size_t failed_behind = to_.jump_if(BPF_JSLT, bpf::r0, 0);
        to_.store(record, at_output(offset), static_cast<std::int32_t>(size), 2);
        const std::size_t whole = to_.jump_if(BPF_JEQ, bpf::r1, 0);
        to_.store(record, at_output(offset),
                  static_cast<std::int16_t>(size | trace_ring::point::text_was_cut), 2);
        const std::size_t cut = to_.jump();
        to_.here(failed);
        to_.here(failed_at_last);
        to_.here(failed_behind);
        to_.compute(BPF_ADD, faults, 1);
        zero(offset, size + 2U);
        for (const std::size_t each : {empty, ended, ends_there, whole, cut}) to_.here(each);
    }

    // --- Arithmetic: r1 becomes r1 OPERATION r2, or what is said ---

    void cut(point::width to) {
        const auto unused = static_cast<std::int32_t>(64 - 8 * point::bytes_of(to));
        if (unused == 0) return;
        to_.compute(BPF_LSH, bpf::r1, unused);
        to_.compute(to < point::width::s8 ? BPF_RSH : BPF_ARSH, bpf::r1, unused);
    }
    /// A number that was read with zeros behind it.
    void extend(point::width to) {
        if (to >= point::width::s8) cut(to);
    }
    /// r1 becomes 1 if it is 0, else 0. Uses r3.
    void is_zero() {
        to_.move(bpf::r3, bpf::r1);
        to_.negate(bpf::r3);
        to_.compute(BPF_OR, bpf::r1, bpf::r3);
        to_.compute(BPF_RSH, bpf::r1, 63);
        to_.compute(BPF_XOR, bpf::r1, 1);
    }
    /// r1 becomes its magnitude, and `sign` 0, or -1 if it was negative.
    void magnitude(reg what, reg sign) {
        to_.move(sign, what);
        to_.compute(BPF_ARSH, sign, 63);
        with_sign(what, sign);
    }
    void with_sign(reg what, reg sign) {
        to_.compute(BPF_XOR, what, sign);
        to_.compute(BPF_SUB, what, sign);
    }
    void divide(bool is_signed, bool remainder) {
        if (is_signed) {
            magnitude(bpf::r1, bpf::r4);
            magnitude(bpf::r2, bpf::r5);
            if (!remainder) to_.compute(BPF_XOR, bpf::r4, bpf::r5);
        }
        to_.compute(remainder ? BPF_MOD : BPF_DIV, bpf::r1, bpf::r2);
        if (is_signed) with_sign(bpf::r1, bpf::r4);
        // By 0: a fault, and 0, which the machine's remainder is not.
        to_.move(bpf::r0, bpf::r1);
        to_.move(bpf::r1, bpf::r2);
        is_zero();
        to_.compute(BPF_ADD, faults, bpf::r1);
        to_.compute(BPF_XOR, bpf::r1, 1);
        to_.compute(BPF_MUL, bpf::r1, bpf::r0);
    }
    /// r1 becomes 1 if r1 > r2, else 0: the borrow, or the sign, of r2 - r1.
    void exceeds(bool is_signed) {
        to_.move(bpf::r3, bpf::r2);
        to_.compute(BPF_SUB, bpf::r3, bpf::r1);  // the difference
        if (is_signed) {
            to_.move(bpf::r4, bpf::r3);
            to_.compute(BPF_XOR, bpf::r4, bpf::r2);
            to_.compute(BPF_XOR, bpf::r2, bpf::r1);
            to_.compute(BPF_AND, bpf::r2, bpf::r4);
            to_.compute(BPF_XOR, bpf::r3, bpf::r2);
            to_.move(bpf::r1, bpf::r3);
        } else {
            to_.compute(BPF_XOR, bpf::r2, -1);
            to_.move(bpf::r4, bpf::r2);
            to_.compute(BPF_OR, bpf::r4, bpf::r1);
            to_.compute(BPF_AND, bpf::r4, bpf::r3);
            to_.compute(BPF_AND, bpf::r1, bpf::r2);
            to_.compute(BPF_OR, bpf::r1, bpf::r4);
        }
        to_.compute(BPF_RSH, bpf::r1, 63);
    }
    void shift(unsigned how) {
        to_.compute(BPF_AND, bpf::r2, 63);
        to_.compute(how, bpf::r1, bpf::r2);
    }
    void combine(op how) {
        switch (how) {
            case op::add:
                return to_.compute(BPF_ADD, bpf::r1, bpf::r2);
            case op::subtract:
                return to_.compute(BPF_SUB, bpf::r1, bpf::r2);
            case op::multiply:
                return to_.compute(BPF_MUL, bpf::r1, bpf::r2);
            case op::divide:
                return divide(true, false);
            case op::divide_unsigned:
                return divide(false, false);
            case op::remainder:
                return divide(true, true);
            case op::remainder_unsigned:
                return divide(false, true);
            case op::bit_and:
                return to_.compute(BPF_AND, bpf::r1, bpf::r2);
            case op::bit_or:
                return to_.compute(BPF_OR, bpf::r1, bpf::r2);
            case op::bit_xor:
                return to_.compute(BPF_XOR, bpf::r1, bpf::r2);
            case op::shift_left:
                return shift(BPF_LSH);
            case op::shift_right:
                return shift(BPF_ARSH);
            case op::shift_right_unsigned:
                return shift(BPF_RSH);
            case op::equals:
                to_.compute(BPF_XOR, bpf::r1, bpf::r2);
                return is_zero();
            case op::exceeds:
                return exceeds(true);
            default:
                return exceeds(false);
        }
    }

    const kernel_maps& maps_;
    function_part part_;
    bpf_code to_;
    program_mode mode_ = program_mode::lp64;
    std::size_t depth_ = 0;
};

}  // namespace

bpf_code translate(const point::clauses& session, std::span<const std::uint32_t> clauses,
                   function_part part, const kernel_maps& maps) {
    return translator(maps, part).program(session, clauses);
}

}  // namespace trace_clauses
