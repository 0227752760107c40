// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// BPF code that reads the state of the firing thread: registers, arguments, memory and stacks, in
/// the mode of the code that fires.
/// @code
///   firing_code firing(code, function_part::entry);
///   firing.begin(only, false);
///   firing.argument(0);  // into r1
/// @endcode

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <trace_ring/point/machine/code.hpp>
#include <trace_ring/point/machine/run.hpp>

#include "../firings/kept_words.hpp"
#include "../firings/return_probe.hpp"
#include "../firings/stack_snapshot.hpp"
#include "arithmetic_code.hpp"
#include "bpf_code.hpp"
#include "process_numbers.hpp"
#include "time_offset.hpp"
#include "translate.hpp"

namespace trace_clauses {

/// Results are in r1 unless stated otherwise. Uses r0 to r5 and r9.
class firing_code {
public:
    // Registers that BPF calls preserve.
    static constexpr bpf::reg firing = bpf::r6;
    static constexpr bpf::reg record = bpf::r7;
    /// The offset of the system call number in the kernel's struct pt_regs.
    static constexpr int call_number = 120;
    static constexpr int saved_bytes = 168;  // size of that structure
    // The BPF stack: first the words of the byte code, then room for values that helpers store.
    static constexpr int words_end = -8 * static_cast<int>(point::most_depth);
    static constexpr int scratch = words_end - 8;
    static constexpr int name_at = scratch - 16;
    static constexpr int context_at = name_at - 8;
    static constexpr int saved_at = context_at - saved_bytes;
    static constexpr int numbers_at = saved_at - 8;
    static constexpr int cookie_at = numbers_at - 8;
    static constexpr int entry_bytes = 24;  // process, place on the stack, and point
    static constexpr int entry_at = cookie_at - entry_bytes;
    static constexpr int elapsed_at = entry_at - 8;
    static_assert(-elapsed_at <= 512);
    // For functions: the time of the entry, and kept_words.
    static constexpr int kept_at = saved_at;
    static_assert(8 + sizeof(kept_words) <= saved_bytes);

    /// `keeps`: kept_words are stored at an entry, and looked up at an exit.
    firing_code(bpf_code& to, function_part part, bool keeps = false)
        : to_(to), part_(part), keeps_(keeps) {}

    /// The start of a program for functions and probes. `with_cookie`: stores the cookie that
    /// identifies the probe.
    void begin(const process_filter& only, bool with_cookie) {
        to_.move(firing, bpf::r1);
        return_unless(to_, only, name_at);
        if (with_cookie) keep_cookie(firing);
        keep_numbers();
    }
    /// The jump is taken if the firing code has 32 bits.
    [[nodiscard]] std::size_t jump_if_narrow() {
        to_.load(bpf::r1, firing, cs);
        return to_.jump_if(BPF_JEQ, bpf::r1, segment_of_32);
    }
    /// The same for system calls. Copies the registers from the place where the kernel has saved
    /// them.
    void begin_call() {
        to_.store(bpf::r10, context_at, bpf::r1);
        to_.load(bpf::r3, bpf::r1, 0);
        to_.move(firing, bpf::r10);
        to_.compute(BPF_ADD, firing, saved_at);
        to_.move(bpf::r1, firing);
        to_.move(bpf::r2, saved_bytes);
        to_.call(BPF_FUNC_probe_read_kernel);
        keep_numbers();
    }
    void keep_cookie(bpf::reg context) {
        to_.move(bpf::r1, context);
        to_.call(BPF_FUNC_get_attach_cookie);
        to_.store(bpf::r10, cookie_at, bpf::r0);
    }
    /// Loads the current address, from the registers that `context` points to.
    void load_address(bpf::reg context, bpf::reg into) { to_.load(into, context, rip); }
    /// Stores the time of a function's entry. `point`: identifies it; if empty, its cookie does.
    void note_entry(int map, std::optional<std::uint32_t> point) {
        static_assert(entry_at == elapsed_at + 8);
        set_entry(point, 0);
        note_now(to_, map, elapsed_at);
    }
    /// Sends everything stored from here on to kept_words.
    void output_to_stack() {
        is_at_entry_ = true;
        to_.move(record, bpf::r10);
        to_.compute(BPF_ADD, record, kept_at + 8 - at_output(0));
        zero(0, sizeof(kept_words));
    }
    /// The same as note_entry, including kept_words.
    void note_kept(int map, std::optional<std::uint32_t> point) {
        set_entry(point, 0);
        note_now(to_, map, kept_at, entry_at);
        is_at_entry_ = false;
    }
    /// At a function's return: finds the elapsed time, and the words kept at the entry.
    void find_elapsed(int map, std::optional<std::uint32_t> point) {
        set_entry(point, part_ == function_part::exit ? -8 : 0);
        const std::size_t unknown = find_elapsed_at_entry(map);
        to_.load_map(bpf::r1, map);
        address_in_stack(bpf::r2, entry_at);
        to_.call(BPF_FUNC_map_delete_elem);
        to_.here(unknown);
    }
    /// The same for a system call. A thread is in at most one at a time.
    void find_elapsed_of_call(int map, std::uint32_t number) {
        to_.move(bpf::r1, static_cast<std::int32_t>(number));
        set_entry_of_call(to_, entry_at, bpf::r1);
        to_.here(find_elapsed_at_entry(map));
    }
    /// Stores the time at which a thread enters the system call whose number is in `number`, a
    /// register that BPF calls preserve. Uses 32 bytes of the stack, from `at` on.
    static void note_call(bpf_code& to, int map, bpf::reg number, int at) {
        set_entry_of_call(to, at + 8, number);
        note_now(to, map, at);
    }
    /// firing_record::call.
    void call_place() {
        if (!has_return_on_top(part_) && !is_function_exit(part_)) return to_.move(bpf::r1, 0);
        to_.load(bpf::r1, firing, rsp);
        if (part_ == function_part::exit)
            to_.compute(BPF_SUB, bpf::r1, static_cast<std::int32_t>(word_bytes()));
    }
    /// The code that follows is for this mode.
    void set_mode(program_mode mode) { mode_ = mode; }
    [[nodiscard]] bool is_wide() const noexcept { return mode_ == program_mode::lp64; }
    [[nodiscard]] std::int32_t bits() const noexcept { return is_wide() ? 64 : 32; }

    /// Registers have the numbers of code.hpp.
    void reg(std::size_t number) {
        const bool there = number < (is_wide() ? registers_64.size() : registers_32.size());
        if (!there) {
            // A fault if the mode has no register of that number, or if it is a vector or x87
            // register, which the kernel does not provide.
            if (number >= point::vector_registers) to_.compute(BPF_ADD, faults, 1);
            return to_.move(bpf::r1, 0);
        }
        saved_word(is_wide() ? registers_64[number] : registers_32[number]);
    }
    /// Loads the process id into the high half of r0, and the id of the firing thread into the low
    /// half.
    void numbers() {
        if (kept_) {
            to_.load(bpf::r0, bpf::r10, numbers_at);
        } else {
            current_numbers(to_, name_at);
        }
    }
    /// Loads CLOCK_MONOTONIC, in this process's time namespace, into r0.
    void time() {
        static const std::int64_t ahead = monotonic_offset();
        to_.call(BPF_FUNC_ktime_get_ns);
        if (ahead == 0) return;
        to_.load_constant(bpf::r1, static_cast<std::uint64_t>(ahead));
        to_.compute(BPF_ADD, bpf::r0, bpf::r1);
    }
    void context(point::context_word what) {
        using point::context_word;
        switch (what) {
            case context_word::time:
                time();
                break;
            case context_word::process:
                numbers();
                to_.compute(BPF_RSH, bpf::r0, 32);
                break;
            case context_word::thread:
                numbers();
                return to_.move_low(bpf::r1, bpf::r0);
            case context_word::user:
                return low_of(BPF_FUNC_get_current_uid_gid);
            case context_word::processor:
                return low_of(BPF_FUNC_get_smp_processor_id);
            case context_word::bits:
                return to_.move(bpf::r1, bits());
            case context_word::returned:
                return returned() ? saved_word(rax) : to_.move(bpf::r1, 0);
            case context_word::address:
                if (part_ != function_part::returning) return saved_word(rip);
                top_of_stack(0);
                read(word_bytes());
                return refuse_return_probe();
            case context_word::elapsed: {
                if (!has_elapsed_) {
                    to_.compute(BPF_ADD, faults, 1);
                    return to_.move(bpf::r1, 0);
                }
                to_.load(bpf::r1, bpf::r10, elapsed_at);
                const std::size_t known = to_.jump_if(BPF_JNE, bpf::r1, -1);
                to_.compute(BPF_ADD, faults, 1);
                to_.move(bpf::r1, 0);
                to_.here(known);
                return;
            }
            case context_word::command:
            case context_word::command_rest:
                to_.move(bpf::r1, bpf::r10);
                to_.compute(BPF_ADD, bpf::r1, name_at);
                to_.move(bpf::r2, 16);
                to_.call(BPF_FUNC_get_current_comm);
                to_.load(bpf::r0, bpf::r10, name_at + (what == context_word::command ? 0 : 8));
                break;
        }
        to_.move(bpf::r1, bpf::r0);
    }
    /// Reads an argument by the mode's calling convention at a function's entry, with the return
    /// address on top of the stack.
    void argument(std::size_t n) {
        if (is_system_call(part_)) return call_argument(n);
        if (returned() && !is_at_entry_) return kept_word(n);
        if (is_wide() && n < arguments_64.size()) {
            saved_word(arguments_64[n]);
            return;
        }
        top_of_stack(1 + (is_wide() ? n - arguments_64.size() : n));
        read(word_bytes());
    }

    // --- Memory ---

    /// Reads the given number of bytes at r3 into r1, and zero-extends them. A failed read yields 0
    /// and is a fault.
    void read(unsigned bytes) {
        peek(bytes);
        note_fault();
    }
    /// The kernel follows frame pointers from the instruction that fires. At a function's entry its
    /// frame does not exist yet, and at its return it no longer exists: the frame pointer is the
    /// caller's, and the caller's address is on top of the stack. Newer kernels also look there, if
    /// the function begins with the usual frame instructions.
    void stack(std::size_t offset, unsigned size) {
        frames(offset, size);
        if (!has_return_on_top(part_)) return;
        top_of_stack(0);
        peek(word_bytes());
        to_.load(bpf::r2, record, at_output(offset));
        to_.compute(BPF_XOR, bpf::r2, bpf::r1);
        const std::size_t known = to_.jump_if(BPF_JEQ, bpf::r2, 0);
        to_.store(record, at_output(offset), bpf::r1);
        if (size > 8) frames(offset + 8, size - 8);
        to_.here(known);
    }
    /// Stores a stack_snapshot with the given number of bytes of the stack, or as many as there
    /// are. The output after the snapshot is undefined.
    void copy_stack(std::size_t offset, std::uint32_t most) {
        constexpr std::size_t head = sizeof(stack_snapshot);
        for (std::size_t i = 0; i < stack_snapshot{}.registers.size(); ++i) {
            reg(i);
            to_.store(record, at_output(offset + 8 * i), bpf::r1);
        }
        const int bytes_at = at_output(offset + offsetof(stack_snapshot, bytes));
        to_.store(record, bytes_at, 0, 4);
        to_.store(record, at_output(offset + offsetof(stack_snapshot, has_place)),
                  begins_with_place(part_) ? 1 : 0, 4);
        std::vector<std::size_t> ended;
        for (std::uint32_t at = 0; at < most; at += stack_snapshot::step) {
            top_of_stack(0);
            to_.compute(BPF_ADD, bpf::r3, static_cast<std::int32_t>(at));
            into_output(offset + head + at, stack_snapshot::step);
            to_.call(BPF_FUNC_probe_read_user);
            ended.push_back(to_.jump_if(BPF_JSLT, bpf::r0, 0));
            to_.store(record, bytes_at, static_cast<std::int32_t>(at + stack_snapshot::step), 4);
        }
        for (const std::size_t each : ended) to_.here(each);
    }
    /// Reads the text at r3. The helper stores a terminating 0 within the given size. So if a text
    /// fills its place, two more single bytes are read: the last one that fits, and the one after
    /// it. For an empty text older kernels return 0 instead of 1.
    void text(std::size_t offset, unsigned size) {
        to_.move(bpf::r9, bpf::r3);
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
    /// Reads the given number of bytes at r3.
    void bytes(std::size_t offset, unsigned size) {
        into_output(offset, size);
        to_.call(BPF_FUNC_probe_read_user);  // zeroes what it cannot read
        note_fault();
    }
    void zero(std::size_t from, std::size_t bytes) {
        std::size_t at = from;
        for (const unsigned step : {8U, 4U, 2U, 1U}) {
            for (; at + step <= from + bytes; at += step) to_.store(record, at_output(at), 0, step);
        }
    }
    [[nodiscard]] static int at_output(std::size_t offset) noexcept {
        return static_cast<int>(sizeof(firing_record) + offset);
    }

private:
    /// The offsets of registers in the kernel's struct pt_regs of x86-64, in bytes.
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
    /// Ordered by DWARF's register numbers.
    static constexpr std::array<int, 17> registers_64{rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8,
                                                      r9,  r10, r11, r12, r13, r14, r15, rip};
    static constexpr std::array<int, 9> registers_32{rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, rip};
    static constexpr std::array<int, 6> arguments_64{rdi, rsi, rdx, rcx, r8, r9};
    static constexpr std::array<int, 6> call_arguments_64{rdi, rsi, rdx, r10, r8, r9};
    static constexpr std::array<int, 6> call_arguments_32{rbx, rcx, rdx, rsi, rdi, rbp};
    static constexpr std::int32_t segment_of_32 = 0x23;
    static constexpr int kept_bytes = 8 + static_cast<int>(sizeof(kept_words));
    static constexpr int kept_faults_at =
        kept_at + 8 + static_cast<int>(offsetof(kept_words, faults));

    void address_in_stack(bpf::reg into, int at) {
        to_.move(into, bpf::r10);
        to_.compute(BPF_ADD, into, at);
    }
    /// Uses the entry at its place on the stack. The jump is taken if the entry is not known.
    [[nodiscard]] std::size_t find_elapsed_at_entry(int map) {
        has_elapsed_ = true;
        to_.store(bpf::r10, elapsed_at, -1);
        if (keeps_) {
            for (int at = 8; at < kept_bytes; at += 8) to_.store(bpf::r10, kept_at + at, 0);
            to_.store(bpf::r10, kept_faults_at, 1);
        }
        to_.load_map(bpf::r1, map);
        address_in_stack(bpf::r2, entry_at);
        to_.call(BPF_FUNC_map_lookup_elem);
        const std::size_t unknown = to_.jump_if(BPF_JEQ, bpf::r0, 0);
        to_.load(bpf::r9, bpf::r0, 0);
        for (int at = 8; keeps_ && at < kept_bytes; at += 8) {
            to_.load(bpf::r1, bpf::r0, at);
            to_.store(bpf::r10, kept_at + at, bpf::r1);
        }
        to_.call(BPF_FUNC_ktime_get_ns);
        to_.compute(BPF_SUB, bpf::r0, bpf::r9);
        to_.store(bpf::r10, elapsed_at, bpf::r0);
        return unknown;
    }
    /// Stores the time under the key that follows `at`. Uses 8 bytes of the stack there.
    static void note_now(bpf_code& to, int map, int at) { note_now(to, map, at, at + 8); }
    /// Stores the time, and the bytes that follow its place.
    static void note_now(bpf_code& to, int map, int at, int key_at) {
        to.call(BPF_FUNC_ktime_get_ns);
        to.store(bpf::r10, at, bpf::r0);
        to.update_map(map, key_at, at);
    }
    /// Stores the key of a system call at `at`: the thread and the number.
    static void set_entry_of_call(bpf_code& to, int at, bpf::reg number) {
        to.store(bpf::r10, at + 8, 0);
        to.store(bpf::r10, at + 16, number);
        to.call(BPF_FUNC_get_current_pid_tgid);
        to.store(bpf::r10, at, bpf::r0);
    }
    /// Stores the key under which an entry is found again: the process, and the address of the
    /// return address, which is `above` the current top of the stack. The thread is not part of the
    /// key, because a coroutine may return on another thread.
    void set_entry(std::optional<std::uint32_t> point, int above) {
        to_.load(bpf::r1, firing, rsp);
        if (above != 0) to_.compute(BPF_ADD, bpf::r1, above);
        to_.store(bpf::r10, entry_at + 8, bpf::r1);
        if (point) {
            to_.store(bpf::r10, entry_at + 16, static_cast<std::int32_t>(*point));
        } else {
            to_.load(bpf::r1, bpf::r10, cookie_at);
            to_.store(bpf::r10, entry_at + 16, bpf::r1);
        }
        to_.call(BPF_FUNC_get_current_pid_tgid);
        to_.compute(BPF_RSH, bpf::r0, 32);
        to_.store(bpf::r10, entry_at, bpf::r0);
    }
    /// In a PID namespace, finding the numbers takes long code. Therefore this runs once, at the
    /// start of the program.
    void keep_numbers() {
        kept_ = in_pid_namespace();
        if (!kept_) return;
        current_numbers(to_, name_at);
        to_.store(bpf::r10, numbers_at, bpf::r0);
    }
    [[nodiscard]] bool returned() const noexcept {
        return is_function_exit(part_) || part_ == function_part::system_call_exit;
    }
    /// The return address of a caller whose return the kernel traces is not an address of the
    /// program.
    void refuse_return_probe() {
        to_.move(bpf::r2, bpf::r1);
        to_.compute(BPF_RSH, bpf::r2, 12);
        to_.load_constant(bpf::r3, return_probes >> 12);
        to_.compute(BPF_XOR, bpf::r2, bpf::r3);
        const std::size_t known = to_.jump_if(BPF_JNE, bpf::r2, 0);
        to_.compute(BPF_ADD, faults, 1);
        to_.move(bpf::r1, 0);
        to_.here(known);
    }
    /// The value at the function's entry.
    void kept_word(std::size_t n) {
        to_.move(bpf::r1, 0);
        if (!keeps_) return to_.compute(BPF_ADD, faults, 1);
        to_.load(bpf::r2, bpf::r10, kept_faults_at);
        const std::size_t known = to_.jump_if(BPF_JEQ, bpf::r2, 0);
        to_.compute(BPF_ADD, faults, 1);
        const std::size_t unknown = to_.jump();
        to_.here(known);
        to_.load(bpf::r1, bpf::r10, kept_at + 8 + 8 * static_cast<int>(n));
        to_.here(unknown);
    }
    /// The kernel keeps the arguments until the call returns.
    void call_argument(std::size_t n) {
        if (n < call_arguments_64.size())
            return saved_word(is_wide() ? call_arguments_64[n] : call_arguments_32[n]);
        to_.move(bpf::r1, 0);
        to_.compute(BPF_ADD, faults, 1);
    }
    /// Loads a saved register of the program into r1.
    void saved_word(int offset) {
        to_.load(bpf::r1, firing, offset);
        if (!is_wide()) to_.move_low(bpf::r1, bpf::r1);
    }
    [[nodiscard]] unsigned word_bytes() const noexcept { return is_wide() ? 8 : 4; }
    /// Loads into r3 the address of the top of the program's stack, or of a word above it.
    void top_of_stack(std::size_t words) {
        to_.load(bpf::r3, firing, rsp);
        if (!is_wide()) to_.move_low(bpf::r3, bpf::r3);
        to_.compute(BPF_ADD, bpf::r3, static_cast<std::int32_t>(word_bytes() * words));
    }
    /// Sets the first two arguments of a helper that stores into the output.
    void into_output(std::size_t offset, unsigned bytes) {
        to_.move(bpf::r1, record);
        to_.compute(BPF_ADD, bpf::r1, at_output(offset));
        to_.move(bpf::r2, static_cast<std::int32_t>(bytes));
    }
    /// Counts a fault if the helper's result is negative.
    void note_fault() {
        to_.compute(BPF_RSH, bpf::r0, 63);
        to_.compute(BPF_ADD, faults, bpf::r0);
    }
    void low_of(std::int32_t helper) {
        to_.call(helper);
        to_.move_low(bpf::r1, bpf::r0);
    }
    /// Like `read`, but without a fault: r0 is negative if the read fails.
    void peek(unsigned bytes) {
        to_.store(bpf::r10, scratch, 0);
        to_.move(bpf::r1, bpf::r10);
        to_.compute(BPF_ADD, bpf::r1, scratch);
        to_.move(bpf::r2, static_cast<std::int32_t>(bytes));
        to_.call(BPF_FUNC_probe_read_user);
        to_.load(bpf::r1, bpf::r10, scratch);
    }
    /// Stores return addresses by frame pointers, followed by zeros.
    void frames(std::size_t offset, unsigned size) {
        into_output(offset, size);
        to_.move(bpf::r3, bpf::r2);
        to_.move(bpf::r2, bpf::r1);
        if (is_system_call(part_)) {
            to_.load(bpf::r1, bpf::r10, context_at);
        } else {
            to_.move(bpf::r1, firing);
        }
        to_.move(bpf::r4, BPF_F_USER_STACK | (begins_with_place(part_) ? 0 : 1));
        to_.call(BPF_FUNC_get_stack);
    }

    bpf_code& to_;
    function_part part_;
    bool keeps_;
    program_mode mode_ = program_mode::lp64;
    bool is_at_entry_ = false;  // the program also runs at exits
    bool kept_ = false;
    bool has_elapsed_ = false;
};

}  // namespace trace_clauses
