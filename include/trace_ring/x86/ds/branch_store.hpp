// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The debug store of one logical processor: sets up its area and buffers, sets its registers,
/// serves its interrupts, and drains its branch records in place (it models drain's *drainable*,
/// *stoppable*, *tells_causes* and *rearmable*).
/// @code
///   x86::ring0_msr registers;
///   const auto have = x86::detect(x86::host_cpuid{}, registers, x86::processor_mode::ia32e);
///   x86::branch_store<record::lp64, x86::ring0_msr> store(registers, have, {.records = 4096});
///   store.start();
///   // in the interrupt's service routine:
///   store.interrupt([](const auto& branch) { use(branch.from, branch.to); });
/// @endcode
///
/// The processor needs memory that is non-paged, present, and the same under every page table that
/// is used while it stores. Only a driver can provide that.
///
/// A service routine takes these steps (Intel SDM volume 3, "Writing the DS Interrupt Service
/// Routine"), here by `interrupt` or by drain::session::service:
///
/// | step                                                            | by                         |
/// |-----------------------------------------------------------------|----------------------------|
/// | run at CPL 0, in a driver                                       | the caller                 |
/// | clear TR and the PEBS enable                                    | `stop`                     |
/// | test for each cause                                             | `causes`                   |
/// | read from the base up to but not including the index            | `take`, `take_pebs`        |
/// | set the index to the base, or the records look new next time    | `consume`, `take_pebs`     |
/// | write IA32_PERF_GLOBAL_OVF_CTRL, re-enable counters after PEBS, | `rearm`                    |
/// | clear the mask of the APIC's entry                              |                            |
/// | set DEBUGCTL and PEBS_ENABLE as they were at entry              | `restore`                  |
///
/// Loss: a processor does not report the number of records for which it had no room. So a full
/// buffer counts as one refused record, and a circular one that has wrapped as one overwritten
/// record. If the index is beyond the maximum, the records there count as refused, too. With each
/// loss comes an advice: the setting, the rate and the time that were measured, and the setting
/// that is enough for them (x86/loss_advice.hpp).

#include <trace_ring/x86/enabled.hpp>

#include <cerrno>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include <trace_ring/loss.hpp>
#include <trace_ring/policy/storage/mapped.hpp>
#include <trace_ring/policy/storage/mapping.hpp>
#include <trace_ring/policy/storage/storage.hpp>
#include <trace_ring/record/data_model.hpp>
#include <trace_ring/x86/branch_record.hpp>
#include <trace_ring/x86/ds/hardware/bts_setting.hpp>
#include <trace_ring/x86/ds/hardware/ds_layout.hpp>
#include <trace_ring/x86/ds/hardware/features.hpp>
#include <trace_ring/x86/ds/hardware/msr_access.hpp>
#include <trace_ring/x86/ds/hardware/pebs_record.hpp>
#include <trace_ring/x86/ds/store/memory.hpp>
#include <trace_ring/x86/ds/store/options.hpp>
#include <trace_ring/x86/ds/store/registers.hpp>
#include <trace_ring/x86/loss_advice.hpp>
#include <trace_ring/x86/loss_meter.hpp>

namespace trace_ring::inline v1::x86 {

/// Why the service routine was called. BTS and PEBS are causes while their index is at the
/// threshold or above; a counter until `rearm`, and it is reported once.
struct ds_causes {
    bool bts = false;            ///< branch records have reached the threshold
    bool pebs = false;           ///< PEBS records have reached the threshold
    std::uint64_t counters = 0;  ///< overflowed ones, as bits of IA32_PERF_GLOBAL_STATUS
    bool bts_full = false;       ///< no room for another record: some may be lost
    bool pebs_full = false;      ///< the PEBS buffer was full

    /// Whether there is a cause.
    [[nodiscard]] explicit operator bool() const noexcept { return bts || pebs || counters != 0; }
    friend bool operator==(const ds_causes&, const ds_causes&) noexcept = default;
};

/// The result of one call of the service routine.
struct ds_service {
    ds_causes causes;                ///< why it was called
    std::uint64_t branches = 0;      ///< branch records that were drained
    std::uint64_t pebs_records = 0;  ///< PEBS records that were drained
    loss_counts lost;                ///< records that are missing
    /// How to avoid the loss, if `lost` has records of that buffer for which there was no room, or
    /// that were overwritten.
    std::optional<loss_advice> advice{};
    std::optional<loss_advice> pebs_advice{};  ///< whether the PEBS buffer should be larger
};

/// Records in a row, in place, with the alignment of records.
template <record::data_model Model>
class branch_portion {
public:
    using record_type = record::branch_record<Model>;  ///< the type of its records

    /// The records, where they lie.
    [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
        return std::as_bytes(records_);
    }
    /// Their number.
    [[nodiscard]] std::uint64_t records() const noexcept { return records_.size(); }
    /// Records that are missing before these.
    [[nodiscard]] const loss_counts& lost() const noexcept { return lost_; }

private:
    template <record::data_model, msr_access, storage::policy>
    friend class branch_store;

    std::span<const record_type> records_{};
    loss_counts lost_{};
};

/// One for each logical processor, used by code that stays on it, and by one thread at a time. That
/// includes the service routine: no session may hold a portion while it runs. `Msr` accesses the
/// registers of that processor; `Storage` holds the area and the buffers.
template <record::data_model Model, msr_access Msr, storage::policy Storage = storage::mapped>
class branch_store {
public:
    using record_type = record::branch_record<Model>;  ///< the type of its records
    using portion = branch_portion<Model>;             ///< what a session gets
    using saved = ds_enables;                          ///< what `stop` returns

    /// Lays out the area and the buffers; the processor uses them from `start` on. Throws
    /// ds_unavailable if the processor lacks something, setup_error (EINVAL) for an invalid option,
    /// or what the storage throws. `registers` must outlive it.
    /// @param where arguments of the storage; by default the bytes that are needed, or none
    template <class... Where>
    branch_store(Msr& registers, const ds_features& have, const branch_store_options& options,
                 Where&&... where)
        : memory_(needed(have, options), have.pebs_format),
          storage_(make(memory_.bytes(), std::forward<Where>(where)...)),
          registers_(registers, have, options),
          clock_(options.clock) {
        memory_.place(storage_.data(), storage_.size(), storage_.fresh(), options.linear);
        memory_.reset();
    }
    branch_store(const branch_store&) = delete;
    branch_store& operator=(const branch_store&) = delete;
    /// Ends it, if it was started.
    ~branch_store() { end(); }

    // --- On and off ------------------------------------------------------------------------------
    /// Empties the buffers, and lets the processor store from now on. Throws setup_error: EBUSY if
    /// the processor has an area already, EIO or EPERM if a register is refused; the registers are
    /// then as before. Not while a session is attached.
    void start() {
        if (registers_.started()) return;
        forget();
        memory_.reset();
        registers_.start(memory_.linear());
        advice_.reset();
        pebs_advice_.reset();
        begin_time();
    }
    /// Stops the processor from storing, and sets its registers as `start` found them, except the
    /// bits of other facilities. Stored records can still be drained.
    void end() noexcept {
        if (!registers_.started()) return;
        registers_.end();
        end_time();
    }
    /// Whether the store is enabled.
    [[nodiscard]] bool started() const noexcept { return registers_.started(); }

    /// Throws setup_error (EIO, EPERM, ENODEV) if a register is refused, also for one that
    /// `restore` or `rearm` could not set before.
    [[nodiscard]] saved stop() {
        const saved was = registers_.stop();
        end_time();
        return was;
    }
    /// Enables what `stop` disabled.
    void restore(const saved& was) noexcept {
        if (registers_.started()) begin_time();
        registers_.restore(was);
    }
    /// Allows the interrupt again: writes IA32_PERF_GLOBAL_OVF_CTRL, enables the counters if PEBS
    /// was a cause, and clears the mask of the APIC's entry.
    void rearm() noexcept { registers_.rearm(); }

    /// Tests all three causes. Call it between `stop` and `restore`.
    [[nodiscard]] ds_causes causes() noexcept {
        ds_causes out;
        out.bts = memory_.bts_reached();
        out.pebs = memory_.pebs_reached();
        out.bts_full = memory_.bts_full();
        out.pebs_full = memory_.pebs_full();
        out.counters = registers_.overflowed(out.pebs);
        return out;
    }

    /// The service routine, from stop to restore: calls `visit(record)` for each branch, if BTS is
    /// a cause, and `visit_pebs(bytes)` for each PEBS record, if PEBS is. Passes on what a visitor
    /// throws; then its buffer is not reset, the other steps are made, and losses are reported the
    /// next time.
    template <class Visit, class VisitPebs>
    ds_service interrupt(Visit&& visit, VisitPebs&& visit_pebs) {
        struct entered {
            branch_store& store;
            saved was;
            ~entered() {
                store.rearm();
                store.restore(was);
            }
        };
        const entered now{*this, stop()};
        ds_service out;
        out.causes = causes();
        try {
            if (out.causes.bts || out.causes.bts_full) serve_branches(visit, out);
            if (out.causes.pebs || out.causes.pebs_full) {
                loss_counts lost;
                out.pebs_records = take_pebs(visit_pebs, lost);
                if (lost[loss_cause::refused] != 0) out.pebs_advice = pebs_advice_;
                out.lost += lost;
            }
        } catch (...) {
            held_ = false;  // as if the portion had not been taken
            part_ = part::older;
            pending_ += out.lost;
            throw;
        }
        return out;
    }
    /// The same; PEBS records are not visited.
    template <class Visit>
    ds_service interrupt(Visit&& visit) {
        return interrupt(visit, [](std::span<const std::byte>) {});
    }

    // --- Drained ---------------------------------------------------------------------------------
    /// Begins a session.
    void attach() {
        registers_.throw_fault();
        if (attached_) throw setup_error("debug store", "another session is at work", EBUSY);
        attached_ = true;
        forget();
    }
    /// Ends the session.
    void detach() noexcept {
        attached_ = false;
        forget();
        let_go();
    }
    /// Takes all records between the base and the index; of a circular buffer first the older part,
    /// then the newer one. The processor is stopped while a portion is held, and between the two
    /// parts. False also if a portion is held, or if this session has kept a part of a circular
    /// buffer. Throws what `stop` throws. If the processor traces the code that drains it, there is
    /// always a new record: stop it first, as drain::session::service does.
    [[nodiscard]] bool take(portion& out) {
        if (held_ || looked_ || !memory_.has_bts()) return false;
        if (!registers_.stopped()) implied_ = stop();
        const bool there = memory_.circular() ? next_part(out) : next_records(out);
        if (!there) {
            if (memory_.circular()) end_of_round();
            let_go();
            return false;
        }
        out.lost_ = std::exchange(pending_, {});
        held_ = true;
        return true;
    }
    /// Frees the records.
    void consume(portion& what) noexcept {
        if (!std::exchange(held_, false)) return;
        if (memory_.circular()) {
            memory_.clear(what.records_);
            given_back();
        } else {
            if (&what.records_.back() == &memory_.last_record().front())
                memory_.clear(memory_.last_record());
            memory_.set_bts_index(memory_.offset_of_records(what.records_));
            told_ = false;
            pending_ += std::exchange(late_, {});
            let_go();
        }
    }
    /// Keeps the records for the next session.
    void keep(portion& what) noexcept {
        if (!std::exchange(held_, false)) return;
        if (memory_.circular()) {
            kept_ = true;
            given_back();
        } else {
            seen_ = memory_.offset_of_records(what.records_) + what.bytes().size();
            let_go();
        }
    }
    /// Calls `visit` with each record. Returns their number.
    template <class Visit>
    std::uint64_t visit(const portion& what, Visit&& visit) {
        for (const record_type& record : what.records_) visit(record);
        return what.records_.size();
    }
    /// Records lost after the last portion.
    [[nodiscard]] loss_counts rest() noexcept { return std::exchange(pending_, {}); }

    /// Visits each whole PEBS record, as bytes, adds missing ones to `lost`, and sets the index to
    /// the base. Returns the number of records. Call it between `stop` and `restore`.
    template <class Visit>
    std::uint64_t take_pebs(Visit&& visit, loss_counts& lost) {
        return memory_.has_pebs() ? memory_.take_pebs(visit, lost) : 0;
    }

    // --- How to avoid a loss ---------------------------------------------------------------------
    /// For the newest branch records that were lost for want of room, or overwritten: known from
    /// `stop` on. Empty: there was no such loss since `start`.
    [[nodiscard]] const std::optional<loss_advice>& advice() const noexcept { return advice_; }
    /// The same for PEBS records.
    [[nodiscard]] const std::optional<loss_advice>& pebs_advice() const noexcept {
        return pebs_advice_;
    }

    // --- What there is ---------------------------------------------------------------------------
    /// The linear address of the area, for the processor.
    [[nodiscard]] std::uint64_t linear() const noexcept { return memory_.linear(); }
    /// The memory of the store.
    [[nodiscard]] Storage& storage() noexcept { return storage_; }
    /// Bytes that a storage needs for these options, without its control. Throws setup_error.
    [[nodiscard]] static std::uint64_t bytes_for(const ds_features& have,
                                                 const branch_store_options& options) {
        return ds_memory<Model>(options, have.pebs_format).bytes();
    }

private:
    /// The parts of a circular buffer, in the order in which they are taken.
    enum class part : std::uint8_t { older, newer, none };

    [[nodiscard]] static ds_needs needs(const branch_store_options& options) noexcept {
        ds_needs out;
        out.layout = Model::mode;
        out.bts = options.records != 0;
        out.pebs = options.pebs_records != 0;
        out.cpl = !options.control && !can_encode(ia32_debugctl_without_cpl, options.setting);
        return out;
    }
    [[nodiscard]] static const branch_store_options& needed(const ds_features& have,
                                                            const branch_store_options& options) {
        require(have, needs(options));
        return options;
    }
    template <class... Where>
    [[nodiscard]] static Storage make(std::uint64_t bytes, Where&&... where) {
        if constexpr (sizeof...(Where) == 0 && std::constructible_from<Storage, std::uint64_t>)
            return Storage(bytes);
        else
            return Storage(std::forward<Where>(where)...);
    }

    [[nodiscard]] bool next_records(portion& out) noexcept {
        loss_counts lost;
        const std::uint64_t end = memory_.bts_end(lost);
        if (const std::uint64_t older = memory_.take_round(end); older != 0) {
            pending_.add(loss_cause::overwritten, older);
            seen_ = 0;
        }
        // An index that shows a loss shows it until it is set again: count it once.
        if (lost.total() != 0 && !std::exchange(told_, true)) late_ += lost;
        if (seen_ >= end) {
            pending_ += std::exchange(late_, {});
            if (end == 0 && told_) {
                memory_.set_bts_index(0);
                told_ = false;
            }
            return false;
        }
        out.records_ = memory_.records(seen_, end);
        return true;
    }
    [[nodiscard]] bool next_part(portion& out) noexcept {
        out.records_ = {};
        if (part_ == part::older) {
            out.records_ = memory_.older(pending_);
            part_ = part::newer;
        }
        if (part_ == part::newer && out.records_.empty()) {
            out.records_ = memory_.newer();
            part_ = part::none;
        }
        return !out.records_.empty();
    }
    void given_back() noexcept {
        if (part_ != part::none) return;
        end_of_round();
        let_go();
    }
    /// If no part was kept, the buffer is empty now. Else this session takes no more from it,
    /// because it cannot distinguish new records from those that it has seen.
    void end_of_round() noexcept {
        looked_ = kept_;
        if (!kept_) memory_.set_bts_index(0);
        part_ = part::older;
        kept_ = false;
    }
    void forget() noexcept {
        seen_ = 0;
        held_ = looked_ = kept_ = told_ = false;
        late_ = {};
        part_ = part::older;
    }
    /// Restarts the processor if `take` stopped it.
    void let_go() noexcept {
        if (implied_) restore(*implied_);
        implied_.reset();
    }

    template <class Visit>
    void serve_branches(Visit& visit, ds_service& out) {
        for (portion p; take(p);) {
            out.lost += p.lost();
            out.branches += this->visit(p, visit);
            consume(p);
        }
        out.lost += rest();
        if (out.lost[loss_cause::refused] + out.lost[loss_cause::overwritten] != 0)
            out.advice = advice_;
    }

    // --- The time between two services -----------------------------------------------------------
    /// The processor stores from now on.
    void begin_time() noexcept {
        const ds_fill branches = memory_.bts_fill(), pebs = memory_.pebs_fill();
        const auto now = clock_.read();
        time_.begin(now, branches.records, branches.sound && !branches.lost);
        pebs_time_.begin(now, pebs.records, pebs.sound && !pebs.lost);
    }
    /// The processor has stopped.
    void end_time() noexcept {
        const auto now = clock_.read();
        end_time(time_, now, loss_buffer::branches, memory_.bts_fill(), advice_);
        end_time(pebs_time_, now, loss_buffer::pebs, memory_.pebs_fill(), pebs_advice_);
    }
    void end_time(loss_meter& time, std::optional<std::uint64_t> now, loss_buffer which,
                  const ds_fill& fill, std::optional<loss_advice>& advice) noexcept {
        time.end(now, fill.records, fill.lost || !fill.sound);
        if (!fill.lost) return;
        // A buffer that is full looks like one that has lost records, so one must stay free.
        time.advise(advice.emplace(memory_.setting_of(which, fill)), 1);
    }

    ds_memory<Model> memory_;
    Storage storage_;
    ds_registers<Msr> registers_;
    meter_clock clock_;
    loss_meter time_{}, pebs_time_{};
    std::optional<loss_advice> advice_{}, pebs_advice_{};

    // of the session
    bool attached_ = false, held_ = false;
    bool looked_ = false;  ///< it has kept a part of the circular buffer in an earlier round
    bool kept_ = false;    ///< it has kept a part in this round
    bool told_ = false;    ///< the loss that the index shows has been counted
    part part_ = part::older;
    std::uint64_t seen_ = 0;  ///< bytes from the base that were kept
    loss_counts pending_{};   ///< losses before the next portion
    loss_counts late_{};      ///< losses after the present records
    std::optional<saved> implied_{};
};

}  // namespace trace_ring::inline v1::x86
