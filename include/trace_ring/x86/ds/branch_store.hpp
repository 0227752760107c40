// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The debug store of one logical processor: its area and buffers are set up, its registers set,
/// its interrupts served, and its branch records drained in place (it models drain's *drainable*,
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
/// The processor demands of the memory, and only a driver can give it: non-paged, present, and the
/// same under every page table that is used while it stores.
///
/// A service routine goes by these steps (Intel SDM volume 3, "Writing the DS Interrupt Service
/// Routine"), here by `interrupt` or by drain::session::service:
///
/// | step                                                            | by                         |
/// |-----------------------------------------------------------------|----------------------------|
/// | at CPL 0, in a driver                                           | the caller                 |
/// | clear TR and the PEBS enable                                    | `stop`                     |
/// | test for each cause                                             | `causes`                   |
/// | read from the base up to but not including the index            | `take`, `take_pebs`        |
/// | set the index to the base, or all of it looks new the next time | `consume`, `take_pebs`     |
/// | write IA32_PERF_GLOBAL_OVF_CTRL, re-enable counters after PEBS, | `rearm`                    |
/// | clear the mask of the APIC's entry                              |                            |
/// | DEBUGCTL and PEBS_ENABLE as they were at entry                  | `restore`                  |
///
/// Loss: a processor does not tell how many records it had no room for. So a buffer that is found
/// full counts as one record refused, and a circular one that has come round as one overwritten;
/// where the index has gone on beyond the maximum, what lies there counts as refused, too.

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

namespace trace_ring::inline v1::x86 {

/// Why the service routine was called. BTS and PEBS stand as long as their index is at the
/// threshold or above; counters, until `rearm`, and told once.
struct ds_causes {
    bool bts = false;
    bool pebs = false;
    std::uint64_t counters = 0;  ///< that overflowed, as bits of IA32_PERF_GLOBAL_STATUS
    bool bts_full = false;       ///< no room for another record: some may be lost
    bool pebs_full = false;

    [[nodiscard]] explicit operator bool() const noexcept { return bts || pebs || counters != 0; }
    friend bool operator==(const ds_causes&, const ds_causes&) noexcept = default;
};

/// What one call of the service routine did.
struct ds_service {
    ds_causes causes;
    std::uint64_t branches = 0;
    std::uint64_t pebs_records = 0;
    loss_counts lost;
};

/// Records that lie in a row, in place; aligned as records are.
template <record::data_model Model>
class branch_portion {
public:
    using record_type = record::branch_record<Model>;

    [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
        return std::as_bytes(records_);
    }
    [[nodiscard]] std::uint64_t records() const noexcept { return records_.size(); }
    [[nodiscard]] const loss_counts& lost() const noexcept { return lost_; }

private:
    template <record::data_model, msr_access, storage::policy>
    friend class branch_store;

    std::span<const record_type> records_;
    loss_counts lost_;
};

/// One for each logical processor, used by code that stays on it, and by one thread at a time. The
/// service routine is no thread of its own: no session may hold a portion while it runs.
/// `Msr` reaches the registers of that processor; `Storage` holds the area and the buffers.
template <record::data_model Model, msr_access Msr, storage::policy Storage = storage::mapped>
class branch_store {
public:
    using record_type = record::branch_record<Model>;
    using portion = branch_portion<Model>;
    using saved = ds_enables;

    /// Lays out the area and the buffers; the processor does not know of them before `start`.
    /// Throws ds_unavailable for what the processor has not, setup_error (EINVAL) for an option
    /// that cannot be, or what the storage throws. `registers` must outlive it.
    /// @param where arguments of the storage; by default the bytes that are needed, or none
    template <class... Where>
    branch_store(Msr& registers, const ds_features& have, const branch_store_options& options,
                 Where&&... where)
        : memory_((require(have, needs(options)), options), have.pebs_format),
          storage_(make(memory_.bytes(), std::forward<Where>(where)...)),
          registers_(registers, have, options) {
        memory_.place(storage_.data(), storage_.size(), storage_.fresh(), options.linear);
        memory_.reset();
    }
    branch_store(const branch_store&) = delete;
    branch_store& operator=(const branch_store&) = delete;
    /// Ends it, if it was started.
    ~branch_store() { end(); }

    // --- On and off ------------------------------------------------------------------------------
    /// The buffers are emptied, and the processor stores from now on. Throws setup_error: EBUSY if
    /// it has another area already, EIO or EPERM if a register is refused; the registers are then
    /// as they were. Not while a session is at work.
    void start() {
        if (registers_.started()) return;
        forget();
        memory_.reset();
        registers_.start(memory_.linear());
    }
    /// The processor stores no more, and its registers are as `start` found them, but for the bits
    /// of other facilities. What was stored can still be drained.
    void end() noexcept { registers_.end(); }
    [[nodiscard]] bool started() const noexcept { return registers_.started(); }

    /// Throws setup_error (EIO, EPERM, ENODEV) if a register is refused, also for one that
    /// `restore` or `rearm` could not set before.
    [[nodiscard]] saved stop() { return registers_.stop(); }
    void restore(const saved& was) noexcept { registers_.restore(was); }
    /// The interrupt can come again: IA32_PERF_GLOBAL_OVF_CTRL, the counters if PEBS was a cause,
    /// and the mask of the APIC's entry.
    void rearm() noexcept { registers_.rearm(); }

    /// All causes, of which there are three; to be called when stopped.
    [[nodiscard]] ds_causes causes() noexcept {
        ds_causes out;
        out.bts = memory_.bts_reached();
        out.pebs = memory_.pebs_reached();
        out.bts_full = memory_.bts_full();
        out.pebs_full = memory_.pebs_full();
        out.counters = registers_.overflowed(out.pebs);
        return out;
    }

    /// The service routine, from stop to restore: `visit(record)` for each branch, if BTS is a
    /// cause, `visit_pebs(bytes)` for each PEBS record, if PEBS is. What a visitor throws goes
    /// through; its buffer is then not reset, all else is done, and loss is told the next time.
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
            if (out.causes.pebs || out.causes.pebs_full)
                out.pebs_records = take_pebs(visit_pebs, out.lost);
        } catch (...) {
            held_ = false;  // as if it had not been taken
            part_ = part::older;
            pending_ += out.lost;
            throw;
        }
        return out;
    }
    template <class Visit>
    ds_service interrupt(Visit&& visit) {
        return interrupt(visit, [](std::span<const std::byte>) {});
    }

    // --- Drained ---------------------------------------------------------------------------------
    void attach() {
        registers_.throw_fault();
        if (attached_) throw setup_error("debug store", "another session is at work", EBUSY);
        attached_ = true;
        forget();
    }
    void detach() noexcept {
        attached_ = false;
        forget();
        let_go();
    }
    /// What lies between the base and the index, all at once; of a circular buffer first what is
    /// older. While a portion is held, and between the two of a circular buffer, the processor is
    /// stopped. False also if one is held, or if this session has looked at a circular buffer and
    /// kept it. Throws as `stop`. A processor that traces the very code that drains it always has
    /// something new: stop it first, as drain::session::service does.
    [[nodiscard]] bool take(portion& out) {
        if (held_ || looked_ || !memory_.has_bts()) return false;
        if (!registers_.stopped()) implied_ = registers_.stop();
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
    template <class Visit>
    std::uint64_t visit(const portion& what, Visit&& visit) {
        for (const record_type& record : what.records_) visit(record);
        return what.records_.size();
    }
    /// What was lost behind the last portion.
    [[nodiscard]] loss_counts rest() noexcept { return std::exchange(pending_, {}); }

    /// Each whole PEBS record, as bytes, and what is missing is added to `lost`; the index is then
    /// set to the base. How many there were. To be called when stopped.
    template <class Visit>
    std::uint64_t take_pebs(Visit&& visit, loss_counts& lost) {
        return memory_.has_pebs() ? memory_.take_pebs(visit, lost) : 0;
    }

    // --- What there is ---------------------------------------------------------------------------
    /// The area, as the processor sees it.
    [[nodiscard]] std::uint64_t linear() const noexcept { return memory_.linear(); }
    [[nodiscard]] Storage& storage() noexcept { return storage_; }
    /// Bytes that a storage needs for these options, its control not counted. Throws setup_error.
    [[nodiscard]] static std::uint64_t bytes_for(const ds_features& have,
                                                 const branch_store_options& options) {
        return ds_memory<Model>(options, have.pebs_format).bytes();
    }

private:
    /// The parts of a circular buffer, in the order in which they are handed over.
    enum class part : std::uint8_t { older, newer, none };

    [[nodiscard]] static ds_needs needs(const branch_store_options& options) noexcept {
        ds_needs out;
        out.layout = Model::mode;
        out.bts = options.records != 0;
        out.pebs = options.pebs_records != 0;
        out.cpl = !options.control && !can_encode(ia32_debugctl_without_cpl, options.setting);
        return out;
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
        // What an index tells of loss, it tells until it is set again.
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
    /// With nothing kept the buffer is empty; else this session has looked once, and cannot tell
    /// what is stored from now on from what it has seen.
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
    /// Ends what `take` began.
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
    }

    ds_memory<Model> memory_;
    Storage storage_;
    ds_registers<Msr> registers_;

    // of the session
    bool attached_ = false, held_ = false;
    bool looked_ = false;  ///< at a circular buffer, and kept it
    bool kept_ = false;    ///< a part of this round
    bool told_ = false;    ///< what the index says of loss
    part part_ = part::older;
    std::uint64_t seen_ = 0;  ///< bytes from the base that were kept
    loss_counts pending_;     ///< before the next portion
    loss_counts late_;        ///< behind the records that are there
    std::optional<saved> implied_;
};

}  // namespace trace_ring::inline v1::x86
