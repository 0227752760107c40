// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "translate.hpp"

#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <trace_ring/point/machine/code.hpp>

#include "../firings/asked_values.hpp"
#include "arithmetic_code.hpp"
#include "firing_code.hpp"
#include "kernel_types.hpp"
#include "system_call_number.hpp"

namespace trace_clauses {
namespace {

using bpf::reg;
using point::instruction;
using point::op;

constexpr reg record = firing_code::record;
constexpr int scratch = firing_code::scratch;

class translator {
public:
    translator(const kernel_maps& maps, function_part part, translation how = {})
        : maps_(maps), how_(how), firing_(to_, part, how.entry.has_value()) {}

    [[nodiscard]] bpf_code program(const point::clauses& session,
                                   std::span<const std::uint32_t> clauses) {
        if (how_.is_session) entry_of_session(session, clauses);
        firing_.begin(how_.is_session ? process_filter{} : maps_.only, how_.by_cookie);
        if (how_.notes_here) note_entry(session, clauses);
        if (how_.entered >= 0) firing_.find_elapsed(how_.entered, of_point(clauses));
        const std::size_t narrow = firing_.jump_if_narrow();
        for (const std::uint32_t each : clauses) clause(session, each, program_mode::lp64);
        const std::size_t end = to_.jump();
        to_.here(narrow);
        for (const std::uint32_t each : clauses) clause(session, each, program_mode::ilp32);
        to_.here(end);
        return finish();
    }
    [[nodiscard]] bpf_code program_of_call(const point::clauses& session,
                                           std::span<const std::uint32_t> clauses,
                                           program_mode mode) {
        firing_.begin_call();
        if (how_.entered >= 0)
            firing_.find_elapsed_of_call(how_.entered, number_among_calls(mode, how_.call_number));
        for (const std::uint32_t each : clauses) clause(session, each, mode);
        return finish();
    }

    [[nodiscard]] bpf_code program_of_entry(const point::clauses& session,
                                            std::span<const std::uint32_t> clauses) {
        to_.move(bpf::r6, bpf::r1);
        return_unless(to_, maps_.only, firing_code::name_at);
        if (how_.by_cookie) firing_.keep_cookie(bpf::r6);
        note_entry(session, clauses);
        return finish();
    }
    [[nodiscard]] bpf_code program_of_unseen(std::span<const std::uint32_t> clauses) {
        return_unless(to_, maps_.only, firing_code::name_at);
        count_unseen(clauses);
        return finish();
    }

private:
    /// Stores the entry of a function. r6 points to its registers.
    void note_entry(const point::clauses& session, std::span<const std::uint32_t> clauses) {
        if (!how_.entry) return firing_.note_entry(how_.entered, of_point(clauses));
        const std::size_t narrow = firing_.jump_if_narrow();
        keep(session, program_mode::lp64);
        const std::size_t end = to_.jump();
        to_.here(narrow);
        keep(session, program_mode::ilp32);
        to_.here(end);
        firing_.note_kept(how_.entered, of_point(clauses));
    }
    /// Computes the kept words on the stack.
    void keep(const point::clauses& session, program_mode mode) {
        firing_.set_mode(mode);
        firing_.output_to_stack();
        to_.move(faults, 0);
        run(session.at(session.stream_of(*how_.entry, mode).action));
    }
    /// Functions whose return is not traced leave nothing on the stack.
    void entry_of_session(const point::clauses& session, std::span<const std::uint32_t> clauses) {
        constexpr std::int32_t get_func_ip = 173;  // BPF_FUNC_get_func_ip
        to_.move(bpf::r6, bpf::r1);
        to_.call(get_func_ip);
        firing_.load_address(bpf::r6, bpf::r1);
        to_.compute(BPF_XOR, bpf::r1, bpf::r0);
        const std::size_t returns = to_.jump_if(BPF_JNE, bpf::r1, 0);
        return_unless(to_, maps_.only, firing_code::name_at, 1);
        if (how_.by_cookie) firing_.keep_cookie(bpf::r6);
        if (describes_unseen_returns()) count_unseen(clauses);
        if (how_.entered >= 0) note_entry(session, clauses);
        to_.move(bpf::r0, 0);
        to_.exit();
        to_.here(returns);
        to_.move(bpf::r1, bpf::r6);
    }
    /// The number that identifies a point: its cookie, or its first clause.
    [[nodiscard]] std::optional<std::uint32_t> of_point(
        std::span<const std::uint32_t> clauses) const noexcept {
        if (how_.by_cookie || clauses.empty()) return std::nullopt;
        return clauses.front();
    }
    void count_unseen(std::span<const std::uint32_t> clauses) {
        constexpr std::int32_t most_awaited = 64;  // the kernel's MAX_URETPROBE_DEPTH
        to_.call(BPF_FUNC_get_current_task);
        to_.move(bpf::r3, bpf::r0);
        read_kernel(offset_in_kernel("task_struct", "utask"), 8);
        const std::size_t first = to_.jump_if(BPF_JEQ, bpf::r3, 0);
        read_kernel(offset_in_kernel("uprobe_task", "depth"), 4);
        const std::size_t seen = to_.jump_if(BPF_JLT, bpf::r3, most_awaited);
        for (const std::uint32_t each : clauses) {
            count(each, offsetof(clause_counts, unseen));
            count(maps_.all, offsetof(clause_counts, dropped));
        }
        to_.here(first);
        to_.here(seen);
    }
    /// Reads the given number of bytes into r3, from `offset` after r3.
    void read_kernel(std::int32_t offset, std::int32_t bytes) {
        to_.store(bpf::r10, scratch, 0);
        to_.move(bpf::r1, bpf::r10);
        to_.compute(BPF_ADD, bpf::r1, scratch);
        to_.move(bpf::r2, bytes);
        to_.compute(BPF_ADD, bpf::r3, offset);
        to_.call(BPF_FUNC_probe_read_kernel);
        to_.load(bpf::r3, bpf::r10, scratch);
    }
    [[nodiscard]] bpf_code finish() {
        to_.move(bpf::r0, 0);
        to_.exit();
        return std::move(to_);
    }
    void clause(const point::clauses& session, std::uint32_t number, program_mode mode) {
        firing_.set_mode(mode);
        const point::clauses::stream& of = session.stream_of(number, mode);
        std::vector<std::size_t> to_end;
        to_.move(faults, 0);
        if (of.predicate.size != 0) {
            run(session.at(of.predicate));
            const std::size_t readable = to_.jump_if(BPF_JEQ, faults, 0);
            count(number, offsetof(clause_counts, unreadable));
            to_end.push_back(to_.jump());
            to_.here(readable);
            to_.load(bpf::r1, bpf::r10, -8);
            const std::size_t wanted = to_.jump_if(BPF_JNE, bpf::r1, 0);
            count(number, offsetof(clause_counts, not_wanted));
            to_end.push_back(to_.jump());
            to_.here(wanted);
        }
        const bool copies_stack = maps_.stack != 0 && asks_stack(session.at(of.action));
        std::size_t bytes = sizeof(firing_record) + of.output_bytes;
        if (copies_stack)
            bytes = sizeof(firing_record) + snapshot_at(of.output_bytes) + sizeof(stack_snapshot) +
                    maps_.stack;
        to_.load_map(bpf::r1, maps_.ring);
        to_.move(bpf::r2, static_cast<std::int32_t>(bytes));
        to_.move(bpf::r3, 0);
        to_.call(BPF_FUNC_ringbuf_reserve);
        const std::size_t there = to_.jump_if(BPF_JNE, bpf::r0, 0);
        count(number, offsetof(clause_counts, dropped));
        count(maps_.all, offsetof(clause_counts, dropped));
        to_end.push_back(to_.jump());
        to_.here(there);
        to_.move(record, bpf::r0);
        head(number);
        firing_.zero(0, of.output_bytes);
        to_.move(faults, 0);
        run(session.at(of.action));
        to_.store(record, offsetof(firing_record, faults), faults, 4);
        if (copies_stack) firing_.copy_stack(snapshot_at(of.output_bytes), maps_.stack);
        hand_over();
        count(number, offsetof(clause_counts, ran));
        for (const std::size_t each : to_end) to_.here(each);
    }

    /// Waking the reader for each record would cost more than everything else, and its wait ends
    /// anyway after a while. So it is woken only if there is much to read.
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
        const std::size_t none = to_.jump_if(BPF_JEQ, bpf::r0, 0);  // never happens, but the
                                                                    // verifier requires the check
        to_.move(bpf::r1, 1);
        to_.add_atomically(bpf::r0, static_cast<int>(what), bpf::r1);
        to_.here(none);
    }
    /// Stores a clause's number, or the number for all clauses. The only clause of a point has its
    /// number as the probe's cookie.
    void store_number(reg base, int at, std::uint32_t number) {
        if (how_.by_cookie && number != maps_.all) {
            to_.load(bpf::r1, bpf::r10, firing_code::cookie_at);
            to_.store(base, at, bpf::r1, 4);
        } else {
            to_.store(base, at, static_cast<std::int32_t>(number), 4);
        }
    }
    /// Loads the address of a clause's counts into r0.
    void counter(std::uint32_t number) {
        store_number(bpf::r10, scratch, number);
        to_.load_map(bpf::r1, maps_.counters);
        to_.move(bpf::r2, bpf::r10);
        to_.compute(BPF_ADD, bpf::r2, scratch);
        to_.call(BPF_FUNC_map_lookup_elem);
    }
    void head(std::uint32_t number) {
        store_number(record, offsetof(firing_record, clause), number);
        to_.store(record, offsetof(firing_record, bits), firing_.bits(), 4);
        to_.store(record, offsetof(firing_record, dropped), 0);
        firing_.time();
        to_.store(record, offsetof(firing_record, time), bpf::r0);
        firing_.numbers();
        to_.store(record, offsetof(firing_record, tid), bpf::r0, 4);
        to_.compute(BPF_RSH, bpf::r0, 32);
        to_.store(record, offsetof(firing_record, pid), bpf::r0, 4);
        to_.call(BPF_FUNC_get_smp_processor_id);
        to_.store(record, offsetof(firing_record, cpu), bpf::r0, 4);
        to_.move(bpf::r1, record);
        to_.compute(BPF_ADD, bpf::r1, offsetof(firing_record, comm));
        to_.move(bpf::r2, 16);
        to_.call(BPF_FUNC_get_current_comm);
        firing_.call_place();
        to_.store(record, offsetof(firing_record, call), bpf::r1);
        counter(maps_.all);
        const std::size_t none = to_.jump_if(BPF_JEQ, bpf::r0, 0);
        to_.load(bpf::r1, bpf::r0, offsetof(clause_counts, dropped));
        to_.store(record, offsetof(firing_record, dropped), bpf::r1);
        to_.here(none);
    }

    // --- The stack of words ---

    [[nodiscard]] static int place(std::size_t word) noexcept {
        return -8 * (static_cast<int>(word) + 1);
    }
    void push(reg from) { to_.store(bpf::r10, place(depth_++), from); }
    void pop(reg into) { to_.load(into, bpf::r10, place(--depth_)); }

    /// Runs code from an empty stack. A predicate leaves its word in the first place.
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
            if (!reached) depth_ = depths[i];  // reached only by skips
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
        const auto at = static_cast<std::size_t>(one.value);
        const auto as = static_cast<point::width>(one.what);
        switch (one.code) {
            case op::constant:
                to_.move(bpf::r1, one.value);
                break;
            case op::constant_high:
                pop(bpf::r1);
                to_.move_low(bpf::r1, bpf::r1);
                to_.move(bpf::r2, one.value);
                to_.compute(BPF_LSH, bpf::r2, 32);
                to_.compute(BPF_OR, bpf::r1, bpf::r2);
                break;
            case op::context:
                firing_.context(static_cast<point::context_word>(one.what));
                break;
            case op::argument:
                firing_.argument(one.what);
                break;
            case op::reg:
                firing_.reg(one.what);
                break;
            case op::load:
                pop(bpf::r3);
                if (one.value != 0) to_.compute(BPF_ADD, bpf::r3, one.value);
                firing_.read(point::bytes_of(as));
                compute_.extend(as);
                break;
            case op::negate:
                pop(bpf::r1);
                to_.negate(bpf::r1);
                break;
            case op::invert:
                pop(bpf::r1);
                to_.compute(BPF_XOR, bpf::r1, -1);
                break;
            case op::is_zero:
                pop(bpf::r1);
                compute_.is_zero();
                break;
            case op::narrow:
                pop(bpf::r1);
                compute_.cut(as);
                break;
            case op::store:
                pop(bpf::r1);
                to_.store(record, firing_code::at_output(at), bpf::r1, point::bytes_of(as));
                return;
            case op::store_text:
                pop(bpf::r3);
                return firing_.text(at, one.size);
            case op::store_bytes:
                pop(bpf::r3);
                return firing_.bytes(at, one.size);
            case op::store_stack:
                return firing_.stack(at, one.size);
            case op::store_faults:
                return to_.store(record, firing_code::at_output(at), faults, 2);
            default:
                pop(bpf::r2);
                pop(bpf::r1);
                compute_.combine(one.code);
        }
        push(bpf::r1);
    }

    const kernel_maps& maps_;
    translation how_;
    bpf_code to_;
    firing_code firing_;
    arithmetic_code compute_{to_};
    std::size_t depth_ = 0;
};

}  // namespace

bpf_code translate(const point::clauses& session, std::span<const std::uint32_t> clauses,
                   function_part part, const kernel_maps& maps, translation how) {
    translator made(maps, part, how);
    return is_system_call(part) ? made.program_of_call(session, clauses, how.call_mode)
                                : made.program(session, clauses);
}

bpf_code note_entries(const point::clauses& session, std::span<const std::uint32_t> clauses,
                      const kernel_maps& maps, translation how) {
    return translator(maps, function_part::entry, how).program_of_entry(session, clauses);
}

bool describes_unseen_returns() {
    try {
        static_cast<void>(offset_in_kernel("uprobe_task", "depth"));
        static_cast<void>(offset_in_kernel("task_struct", "utask"));
        return true;
    } catch (const std::runtime_error&) {
        return false;
    }
}

bpf_code count_unseen_returns(std::span<const std::uint32_t> clauses, const kernel_maps& maps) {
    return translator(maps, function_part::entry).program_of_unseen(clauses);
}

}  // namespace trace_clauses
