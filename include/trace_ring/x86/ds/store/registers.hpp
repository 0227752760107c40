// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Starts, stops and arms a debug store by its registers.

#include <trace_ring/x86/enabled.hpp>

#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <trace_ring/policy/storage/mapping.hpp>
#include <trace_ring/x86/ds/hardware/bts_setting.hpp>
#include <trace_ring/x86/ds/hardware/features.hpp>
#include <trace_ring/x86/ds/hardware/msr_access.hpp>
#include <trace_ring/x86/ds/store/options.hpp>

namespace trace_ring::inline v1::x86 {

/// Both registers that `stop` changes, as they were before.
struct ds_enables {
    std::uint64_t debugctl = 0;
    std::uint64_t pebs_enable = 0;

    friend bool operator==(const ds_enables&, const ds_enables&) noexcept = default;
};

template <msr_access Msr>
class ds_registers {
public:
    /// Throws setup_error (EINVAL) if the control register lacks the bits for the setting.
    ds_registers(Msr& registers, const ds_features& have, const branch_store_options& options)
        : registers_(registers),
          bits_(options.control ? *options.control : have.control()),
          setting_(encode(bits_, options.setting)),
          pebs_enable_(options.pebs_records != 0 ? options.pebs_enable : 0),
          groups_(options.pebs_groups),
          counters_(options.counters),
          lvt_(options.lvt),
          has_pebs_(have.pebs),
          adaptive_(options.pebs_records != 0 && have.pebs_format >= 4),
          has_status_(options.global_status) {
        if (!can_encode(bits_, options.setting))
            throw setup_error("debug store: control", "no bits for privilege levels", EINVAL);
    }

    /// Sets all registers, DEBUGCTL last. See branch_store::start.
    void start(std::uint64_t area) {
        ds_enables was;
        was.debugctl = get(msr::debugctl);
        if (has_pebs_) was.pebs_enable = get(msr::pebs_enable);
        const std::uint64_t groups = adaptive_ ? get(msr::pebs_data_cfg) : 0;
        if (get(msr::ds_area) != 0)
            throw setup_error("debug store", "this processor has one already", EBUSY);
        before_ = was;
        groups_before_ = groups;
        started_ = true;
        try {
            put(msr::ds_area, area);
            if (adaptive_) put(msr::pebs_data_cfg, groups_);
            if (pebs_enable_ != 0) put(msr::pebs_enable, was.pebs_enable | pebs_enable_);
            put(msr::debugctl, (was.debugctl & ~bits_.all()) | setting_);
        } catch (...) {
            end();
            fault_ = {};
            throw;
        }
    }
    /// Restores all registers, even if one of them refuses.
    void end() noexcept {
        if (!std::exchange(started_, false)) return;
        merge(msr::debugctl, bits_.all(), before_.debugctl);
        if (pebs_enable_ != 0) merge(msr::pebs_enable, pebs_enable_, before_.pebs_enable);
        if (adaptive_) try_put(msr::pebs_data_cfg, groups_before_);
        try_put(msr::ds_area, 0);
    }
    [[nodiscard]] bool started() const noexcept { return started_; }

    /// True between `stop` and `restore`.
    [[nodiscard]] bool stopped() const noexcept { return stopped_; }
    /// Clears TR and the PEBS enable. See branch_store::stop.
    [[nodiscard]] ds_enables stop() {
        throw_fault();
        ds_enables was;
        was.debugctl = get(msr::debugctl);
        if (has_pebs_) was.pebs_enable = get(msr::pebs_enable);
        put(msr::debugctl, was.debugctl & ~bits_.tr);
        if (has_pebs_) {
            const msr_fault fault = registers_.write(msr::pebs_enable, 0);
            if (fault != msr_fault::none) {
                try_put(msr::debugctl, was.debugctl);
                fail(msr::pebs_enable, "write", fault);
            }
        }
        stopped_ = true;
        return was;
    }
    void restore(const ds_enables& was) noexcept {
        if (has_pebs_) try_put(msr::pebs_enable, was.pebs_enable);
        try_put(msr::debugctl, was.debugctl);
        stopped_ = false;
    }

    /// Counters that have overflowed since the last `rearm`, each returned once.
    /// @param pebs PEBS is a cause, so `rearm` enables the counters again
    [[nodiscard]] std::uint64_t overflowed(bool pebs) noexcept {
        reenable_ = reenable_ || pebs;
        if (!has_status_) return 0;
        const msr_value status = registers_.read(msr::global_status);
        if (status.fault != msr_fault::none) return remember(msr::global_status, status.fault), 0;
        const std::uint64_t now = status.value & status_counters & ~told_;
        told_ |= now;
        return now;
    }
    void rearm() noexcept {
        if (has_status_) try_put(msr::global_ovf_ctrl, told_ | status_ds_overflow);
        told_ = 0;
        if (std::exchange(reenable_, false) && counters_) try_put(msr::global_ctrl, *counters_);
        if (lvt_ != nullptr) {
            *lvt_ = *lvt_ & ~lvt_mask;
            return;
        }
        const msr_value entry = registers_.read(msr::lvt_pmi);
        if (entry.fault != msr_fault::none) return remember(msr::lvt_pmi, entry.fault);
        try_put(msr::lvt_pmi, entry.value & ~std::uint64_t{lvt_mask});
    }

    /// Throws for an error in a function that cannot throw.
    void throw_fault() {
        const refused was = std::exchange(fault_, {});
        if (was.fault != msr_fault::none) fail(was.number, "write", was.fault);
    }

private:
    struct refused {
        std::uint32_t number = 0;
        msr_fault fault = msr_fault::none;
    };

    [[noreturn]] static void fail(std::uint32_t number, const char* what, msr_fault fault) {
        constexpr char digits[] = "0123456789ABCDEF";
        std::string name = "MSR ";
        for (int shift = 8; shift >= 0; shift -= 4) name += digits[number >> shift & 0xFU];
        const int error = fault == msr_fault::not_permitted  ? EPERM
                          : fault == msr_fault::no_processor ? ENODEV
                                                             : EIO;
        throw setup_error(name, std::string("cannot ") + what + " it: " + to_string(fault), error);
    }
    [[nodiscard]] std::uint64_t get(std::uint32_t number) {
        const msr_value out = registers_.read(number);
        if (out.fault != msr_fault::none) fail(number, "read", out.fault);
        return out.value;
    }
    void put(std::uint32_t number, std::uint64_t value) {
        const msr_fault fault = registers_.write(number, value);
        if (fault != msr_fault::none) fail(number, "write", fault);
    }
    void try_put(std::uint32_t number, std::uint64_t value) noexcept {
        remember(number, registers_.write(number, value));
    }
    void remember(std::uint32_t number, msr_fault fault) noexcept {
        if (fault_.fault == msr_fault::none && fault != msr_fault::none) fault_ = {number, fault};
    }
    /// Sets these bits to their values in `was`, and leaves the others.
    void merge(std::uint32_t number, std::uint64_t bits, std::uint64_t was) noexcept {
        const msr_value now = registers_.read(number);
        if (now.fault != msr_fault::none) return remember(number, now.fault);
        try_put(number, (now.value & ~bits) | (was & bits));
    }

    Msr& registers_;
    debugctl_bits bits_;
    std::uint64_t setting_;
    std::uint64_t pebs_enable_;
    std::uint32_t groups_;
    std::optional<std::uint64_t> counters_;
    volatile std::uint32_t* lvt_;
    bool has_pebs_, adaptive_, has_status_;

    bool started_ = false, stopped_ = false;
    ds_enables before_{};
    std::uint64_t groups_before_ = 0;
    std::uint64_t told_ = 0;  ///< counters that `overflowed` has returned
    bool reenable_ = false;
    refused fault_{};
};

}  // namespace trace_ring::inline v1::x86
