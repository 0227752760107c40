// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Simulates one logical processor with a debug store, as software sees it: registers, privilege
/// level, and the effect of branches, interrupts, exceptions and counter overflows on the area and
/// its buffers. For tests of drivers, branch_store among them, on machines without such a
/// processor.
/// @code
///   simulated_memory memory;
///   simulated_cpu<record::lp64> cpu(memory, {.full = when_full::drops});    // it is an msr_access
///   branch_store<record::lp64, simulated_cpu<record::lp64>, storage::heap> store(
///       cpu, detect(cpu, cpu, processor_mode::ia32e), {.records = 64});
///   memory.map({store.storage().data(), store.storage().size()});
///   store.start();
///   cpu.branch(0x1000, 0x2000);
/// @endcode
/// If the manuals do not specify what happens, an option decides, which is `not_said` by default: a
/// step that depends on it throws std::logic_error, which names the option, before anything
/// changes.

#include <trace_ring/x86/enabled.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>

#include <trace_ring/record/data_model.hpp>
#include <trace_ring/x86/branch_record.hpp>
#include <trace_ring/x86/ds/hardware/bts_setting.hpp>
#include <trace_ring/x86/ds/hardware/ds_layout.hpp>
#include <trace_ring/x86/ds/hardware/features.hpp>
#include <trace_ring/x86/ds/hardware/msr_access.hpp>
#include <trace_ring/x86/ds/hardware/pebs_record.hpp>
#include <trace_ring/x86/ds/simulated/features.hpp>
#include <trace_ring/x86/ds/simulated/memory.hpp>

namespace trace_ring::inline v1::x86 {

/// The effect of one step.
struct executed {
    bool branch_stored = false;  ///< a branch record was stored
    bool pebs_stored = false;    ///< a PEBS record was stored
    bool interrupted = false;    ///< the interrupt was delivered, at the end of the step
    bool memory_fault = false;   ///< a driver's mistake: no memory at the area or a buffer
    std::uint64_t fault_at = 0;  ///< the linear address

    friend bool operator==(const executed&, const executed&) noexcept = default;
};

/// One instruction, interrupt or exception.
struct executed_branch {
    std::uint64_t from = 0, to = 0;  ///< the addresses
    bool predicted = false;          ///< as the processor predicted
    std::optional<unsigned> cpl{};   ///< the level after it; empty: the same
};
/// A counter that overflows in the same step, and the PEBS record for it: a whole record, with the
/// length of the format.
struct executed_overflow {
    pebs_counter counter;                 ///< the counter that overflowed
    std::span<const std::byte> record{};  ///< the record; empty: zeros
};

/// Used by one thread at a time; noexcept only as an msr_access and a cpuid_source.
template <record::data_model Model>
class simulated_cpu {
public:
    using address = typename Model::pointer_type;      ///< an address in that mode
    using record_type = record::branch_record<Model>;  ///< the type of branch records

    /// The memory must outlive it.
    explicit simulated_cpu(simulated_memory& memory, const simulated_features& features = {})
        : memory_(memory), is_(features) {
        if (Model::pointer_bytes == 4) {
            is_.mode = processor_mode::legacy;
            is_.dtes64 = false;
        } else if (is_.mode == processor_mode::legacy && !is_.dtes64) {
            throw std::invalid_argument("simulated_cpu: the 64-bit layout is not in force");
        }
        if (!is_.cpl) {
            is_.control.known &= ~(is_.control.off_os | is_.control.off_usr);
            is_.control.off_os = is_.control.off_usr = 0;
        }
        if (!is_.pdcm) is_.pebs_format = 0;
    }
    simulated_cpu(const simulated_cpu&) = delete;
    simulated_cpu& operator=(const simulated_cpu&) = delete;

    // --- What software sees ----------------------------------------------------------------------
    /// What this processor returns.
    [[nodiscard]] cpuid_value cpuid(std::uint32_t leaf) const noexcept {
        if (leaf == 0)
            return is_.intel ? cpuid_value{1, 0x756E6547, 0x6C65746E, 0x49656E69}
                             : cpuid_value{1, 0x68747541, 0x444D4163, 0x69746E65};
        if (leaf != 1) return {};
        cpuid_value out;
        if (is_.ds) out.edx |= 1U << 21;
        if (is_.dtes64) out.ecx |= 1U << 2;
        if (is_.cpl) out.ecx |= 1U << 4;
        if (is_.pdcm) out.ecx |= 1U << 15;
        return out;
    }
    /// As RDMSR.
    [[nodiscard]] msr_value read(std::uint32_t number) noexcept {
        if (!has(number)) return {0, msr_fault::general_protection};
        switch (number) {
            case msr::misc_enable:
                return {(is_.bts ? 0 : misc_bts_unavailable) |
                        (is_.pebs ? 0 : misc_pebs_unavailable)};
            case msr::perf_capabilities:
                return {std::uint64_t{is_.pebs_format} << 8};
            case msr::global_ovf_ctrl:
                return {0};
            default:
                return {*word_of(number)};
        }
    }
    /// #GP for a missing register, for reserved bits, and for a non-canonical area.
    [[nodiscard]] msr_fault write(std::uint32_t number, std::uint64_t value) noexcept {
        constexpr auto refused = msr_fault::general_protection;
        if (!has(number)) return refused;
        switch (number) {
            case msr::misc_enable:
                return msr_fault::none;  // its two bits are read-only
            case msr::perf_capabilities:
            case msr::global_status:
                return refused;
            case msr::global_ovf_ctrl:
                status_ &= ~value;
                return msr_fault::none;
            case msr::debugctl:
                if ((value & ~is_.control.known) != 0) return refused;
                break;
            case msr::ds_area:
                if (!canonical(value)) return refused;
                break;
            case msr::lvt_pmi:
                if (value >> 32 != 0) return refused;
                break;
            default:
                break;
        }
        *word_of(number) = value;
        return msr_fault::none;
    }

    // --- What it executes ------------------------------------------------------------------------
    /// Executes a taken branch, a counter's overflow, or both. It writes the PEBS record first,
    /// then the branch record, then delivers the interrupt. Strong guarantee.
    executed execute(const std::optional<executed_branch>& branch,
                     const std::optional<executed_overflow>& overflow) {
        if (overflow && is_.pebs && (pebs_enable_ & overflow->counter.mask()) != 0 &&
            overflow->record.size() != pebs_bytes())
            throw std::invalid_argument("simulated_cpu: not the length of a PEBS record");
        const plan store = branch && stores(*branch) ? plan_store() : plan{};  // may throw
        executed out;
        bool asks = false;
        if (overflow) asks = count(*overflow, out);
        if (store.begun && !out.memory_fault && put(*branch, store, out)) asks = true;
        if (branch) {
            if ((debugctl_ & is_.control.tr) != 0) ++messages_;
            if (branch->cpl) cpl_ = *branch->cpl;
        }
        if (asks) out.interrupted = deliver();
        return out;
    }
    /// Takes a branch, and stores it if the registers are set so.
    executed branch(std::uint64_t from, std::uint64_t to, bool predicted = false) {
        return execute(executed_branch{from, to, predicted, std::nullopt}, std::nullopt);
    }
    /// An interrupt: from its return address to its handler.
    executed interrupt(std::uint64_t return_address, std::uint64_t handler) {
        return execute(executed_branch{return_address, handler, false, 0}, std::nullopt);
    }
    /// An exception: from the instruction that faults to its handler.
    executed exception(std::uint64_t faulting_address, std::uint64_t handler) {
        return execute(executed_branch{faulting_address, handler, false, 0}, std::nullopt);
    }
    /// A return: from a handler to a program at level `cpl`.
    executed return_to(std::uint64_t from, std::uint64_t to, unsigned cpl) {
        return execute(executed_branch{from, to, false, cpl}, std::nullopt);
    }
    /// A counter overflows, and a PEBS record is stored if the registers are set so.
    executed overflow(pebs_counter counter, std::span<const std::byte> record = {}) {
        return execute(std::nullopt, executed_overflow{counter, record});
    }

    /// Sets the privilege level.
    void set_cpl(unsigned cpl) noexcept { cpl_ = cpl; }
    /// The privilege level.
    [[nodiscard]] unsigned cpl() const noexcept { return cpl_; }
    /// The value to which a counter was last reset from the area.
    [[nodiscard]] std::uint64_t counter(pebs_counter which) const noexcept {
        return counters_[index_of(which)];
    }
    /// Branch trace messages generated so far, and interrupts delivered.
    [[nodiscard]] std::uint64_t messages() const noexcept { return messages_; }
    /// Interrupts delivered so far.
    [[nodiscard]] std::uint64_t interrupts() const noexcept { return interrupts_; }
    /// Bytes of a PEBS record by the present registers.
    [[nodiscard]] std::size_t pebs_bytes() const noexcept {
        return pebs_record_bytes<Model>(is_.pebs_format, static_cast<std::uint32_t>(data_cfg_));
    }

private:
    static constexpr std::size_t record_bytes = sizeof(record_type);

    // --- Registers -------------------------------------------------------------------------------
    [[nodiscard]] bool has(std::uint32_t number) const noexcept {
        switch (number) {
            case msr::perf_capabilities:
                return is_.pdcm;
            case msr::ds_area:
                return is_.ds;
            case msr::pebs_enable:
                return is_.ds && is_.pebs;
            case msr::pebs_data_cfg:
                return is_.ds && is_.pebs && is_.pebs_format >= 4;
            case msr::misc_enable:
            case msr::debugctl:
            case msr::global_status:
            case msr::global_ctrl:
            case msr::global_ovf_ctrl:
            case msr::lvt_pmi:
                return true;
            default:
                return false;
        }
    }
    [[nodiscard]] std::uint64_t* word_of(std::uint32_t number) noexcept {
        switch (number) {
            case msr::debugctl:
                return &debugctl_;
            case msr::global_status:
                return &status_;
            case msr::global_ctrl:
                return &global_ctrl_;
            case msr::pebs_enable:
                return &pebs_enable_;
            case msr::pebs_data_cfg:
                return &data_cfg_;
            case msr::ds_area:
                return &area_;
            default:
                return &lvt_;
        }
    }
    [[nodiscard]] bool canonical(std::uint64_t value) const noexcept {
        const std::uint64_t above = value >> (is_.linear_bits - 1);
        return above == 0 || above == ~std::uint64_t{0} >> (is_.linear_bits - 1);
    }
    /// Delivers the interrupt unless it is masked. The APIC then masks it.
    bool deliver() noexcept {
        if ((lvt_ & lvt_mask) != 0) return false;
        lvt_ |= lvt_mask;
        ++interrupts_;
        return true;
    }

    // --- The area --------------------------------------------------------------------------------
    struct buffer {
        std::uint64_t base = 0, index = 0, maximum = 0, threshold = 0;

        [[nodiscard]] bool has_room(std::uint64_t at, std::uint64_t bytes) const noexcept {
            return at <= maximum && bytes <= maximum - at;
        }
    };
    /// False: there is no memory, and `out` holds the address.
    [[nodiscard]] bool load(ds_field first, buffer& into, executed& out) const noexcept {
        const std::uint64_t at = area_ + offset_of<Model>(first);
        const auto words = memory_.load<ds_buffer<Model>>(at);
        if (!words) return fail(at, out);
        into = {words->base, words->index, words->maximum, words->threshold};
        return true;
    }
    static bool fail(std::uint64_t at, executed& out) noexcept {
        out.memory_fault = true;
        out.fault_at = at;
        return false;
    }
    [[nodiscard]] bool set_index(ds_field index, std::uint64_t value) const noexcept {
        return memory_.store(area_ + offset_of<Model>(index), static_cast<address>(value));
    }

    // --- Branches --------------------------------------------------------------------------------
    [[nodiscard]] bool stores(const executed_branch& branch) const {
        if (!is_.ds || !is_.bts) return false;
        const bts_setting now = decode(is_.control, debugctl_);
        const bool origin = now.stores_at(cpl_);
        const bool target = now.stores_at(branch.cpl.value_or(cpl_));
        if (origin == target) return origin;
        if (is_.crossing == when_crossing::not_said)
            throw std::logic_error("simulated_cpu: a crossing branch: say `crossing`");
        return is_.crossing == when_crossing::origin ? origin : target;
    }

    /// The place of a branch record, and the effect of storing it; made before anything changes.
    struct plan {
        bool begun = false;
        bool stored = false;
        bool reaches = false;
        std::uint64_t at = 0, index = 0;
        executed fault{};
    };
    [[nodiscard]] plan plan_store() const {
        plan out;
        out.begun = true;
        buffer bts;
        if (!load(ds_field::bts_base, bts, out.fault)) return out;
        const bool circular = decode(is_.control, debugctl_).mode == bts_mode::circular;
        out.at = bts.index;
        if (!bts.has_room(out.at, record_bytes)) {
            if (circular) {
                out.at = bts.base;
            } else {
                switch (is_.full) {
                    case when_full::not_said:
                        throw std::logic_error("simulated_cpu: a full buffer: say `full`");
                    case when_full::drops:
                        return out;
                    case when_full::wraps:
                        out.at = bts.base;
                        break;
                    default:  // continues
                        break;
                }
            }
        }
        out.index = static_cast<address>(out.at + record_bytes);
        out.reaches = out.index >= bts.threshold;
        if (circular && !bts.has_room(out.index, record_bytes)) {
            if (is_.round == when_round::not_said)
                throw std::logic_error("simulated_cpu: the end of a circular buffer: say `round`");
            if (is_.round == when_round::at_base) out.index = bts.base;
        }
        out.stored = memory_.find(out.at, record_bytes) != nullptr;
        if (!out.stored) fail(out.at, out.fault);
        return out;
    }
    /// Stores the record. True: it requests the interrupt, which depends only on the threshold and
    /// not on BTINT.
    [[nodiscard]] bool put(const executed_branch& branch, const plan& store,
                           executed& out) noexcept {
        if (!store.stored) {
            out.memory_fault = store.fault.memory_fault;
            out.fault_at = store.fault.fault_at;
            return false;
        }
        record_type record;
        record.from = static_cast<address>(branch.from);
        record.to = static_cast<address>(branch.to);
        record.flags = branch.predicted ? 0x10 : 0;
        out.branch_stored = memory_.store(store.at, record);
        if (!set_index(ds_field::bts_index, store.index)) return fail(area_, out);
        return store.reaches;
    }

    // --- Counters --------------------------------------------------------------------------------
    [[nodiscard]] static std::size_t index_of(pebs_counter which) noexcept {
        return (which.fixed ? 32U : 0U) + which.number % 32;
    }
    /// Counts the overflow. True: it requests the interrupt.
    [[nodiscard]] bool count(const executed_overflow& overflow, executed& out) noexcept {
        const std::uint64_t mask = overflow.counter.mask();
        if ((global_ctrl_ & mask) == 0) return false;
        if (!is_.ds || !is_.pebs || (pebs_enable_ & mask) == 0) {
            status_ |= mask;
            return true;
        }
        buffer pebs;
        if (!load(ds_field::pebs_base, pebs, out)) return false;
        const std::size_t size = overflow.record.size();
        if (!pebs.has_room(pebs.index, size)) return false;  // PEBS stops without a sign
        std::byte* const to = memory_.find(pebs.index, size);
        if (to == nullptr) return fail(pebs.index, out);
        const std::size_t reset = reset_offset<Model>(is_.pebs_format, overflow.counter);
        if (reset != 0) {
            const auto value = memory_.load<std::uint64_t>(area_ + reset);
            if (!value) return fail(area_ + reset, out);
            counters_[index_of(overflow.counter)] = *value;
        }
        std::memcpy(to, overflow.record.data(), size);
        const std::uint64_t index = static_cast<address>(pebs.index + size);
        if (!set_index(ds_field::pebs_index, index)) return fail(area_, out);
        out.pebs_stored = true;
        if (index < pebs.threshold) return false;
        status_ |= status_ds_overflow;
        return true;
    }

    simulated_memory& memory_;
    simulated_features is_;
    std::uint64_t debugctl_ = 0, status_ = 0, global_ctrl_ = 0, pebs_enable_ = 0, data_cfg_ = 0;
    std::uint64_t area_ = 0, lvt_ = 0;
    unsigned cpl_ = 0;
    std::uint64_t messages_ = 0, interrupts_ = 0;
    std::array<std::uint64_t, 64> counters_{};
};
static_assert(msr_access<simulated_cpu<record::lp64>> && cpuid_source<simulated_cpu<record::lp64>>);

}  // namespace trace_ring::inline v1::x86
