// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Collects the data that several threads, processors or processes passed to CPTRAP in one spool,
/// ordered by time. Each writer has a lane of a recorder (cptrap/interface.hpp); the collector
/// drains all lanes and merges them.
/// @code
///   trace_ring::recorder recorder{{.full = trace_ring::full_mode::block}};
///   trace_ring::cptrap::cp_interface trap(trapok, recorder);  // any number of threads
///
///   trace_ring::cptrap::spool spool("cptrap.file");
///   trace_ring::cptrap::collector collect(recorder);
///   while (running) collect.take(spool);
///   collect.finish(spool);
/// @endcode
/// A record is passed on if it is not newer than the newest record of the previous `take`: until
/// then, another lane may still have an older one. A record that was being stored during two calls
/// comes after newer ones, and counts in `late()`. So pause between calls for longer than a record
/// takes to store; `finish` passes on everything.
///
/// Losses of a lane are passed on before its next record, by cause; those of other events of the
/// recorder are among them. A spool without room counts what it refuses, as for any other record.
///
/// Records that a `take` has consumed are in the memory of this process until the spool has written
/// them. If this process is killed, these records are in no file: at most those of two calls, and
/// one spool record. `earlier()` of the next collector returns the number of records consumed
/// before.

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <trace_ring/cptrap/interface.hpp>
#include <trace_ring/cptrap/record.hpp>
#include <trace_ring/cptrap/spool.hpp>
#include <trace_ring/drain/session.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/policy/storage/mapping.hpp>
#include <trace_ring/recorder/drain_source/drain_source.hpp>
#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/reduce/item/record_view.hpp>
#include <trace_ring/reduce/tables.hpp>

namespace trace_ring::inline v1::cptrap {

/// Used by one thread at a time. It is the recorder's draining session as long as it lives.
class collector {
public:
    /// Collects from a recorder of this process, which must outlive it. Throws setup_error: EBUSY
    /// if something else drains it, EINVAL if its records have no time.
    template <class Kind>
    explicit collector(basic_recorder<Kind>& from)
        : source_(from), name_(from.path().empty() ? "memory" : std::string(from.path())) {
        const auto [memory, bytes] = from.bytes();
        if (memory == nullptr) return;  // tracing is compiled away: there is nothing
        about_.emplace(reduce::source::from({memory, bytes}, name_));
        begin();
    }
    /// Collects from a trace file that other processes record into, or did: also after they were
    /// killed. Throws setup_error, as above, and format_error or std::system_error if it is no
    /// trace file that can be read and written.
    explicit collector(const std::string& file) : source_(file), name_(file) {
        about_.emplace(reduce::source::open(file));
        begin();
    }
    collector(const collector&) = delete;
    collector& operator=(const collector&) = delete;

    /// Passes on the records that are complete and not newer than the newest one of the call
    /// before. Returns how many the spool took. Throws std::bad_alloc. It holds what was recorded
    /// between two calls in memory.
    std::uint64_t take(spool& to) {
        if (!session_) return 0;
        const std::uint64_t horizon = newest_;
        look();
        return pass_on(to, horizon);
    }
    /// Passes on all records that are complete, and the losses behind the last ones; then calls
    /// `to.flush()`, whose error is in `to.error()`. Returns how many records the spool took. If
    /// the writers have stopped, nothing is left.
    std::uint64_t finish(spool& to) {
        if (session_) look();
        const std::uint64_t taken = pass_on(to, ~std::uint64_t{0});
        to.flush();
        return taken;
    }

    /// Records that sessions before this one consumed, or reported as lost. A spool that holds
    /// fewer lacks what a killed collector had in memory.
    [[nodiscard]] std::uint64_t earlier() const noexcept { return earlier_; }
    /// Records that came out of order, after a newer one.
    [[nodiscard]] std::uint64_t late() const noexcept { return late_; }
    /// Records of other events, which are consumed and not passed on.
    [[nodiscard]] std::uint64_t others() const noexcept { return others_; }
    /// Records that the writers and the recorder lost, by cause, as counted by the last call. After
    /// `finish`, the spool has all of them.
    [[nodiscard]] const loss_counts& lost() const noexcept { return noted_; }

private:
    /// A record, or a loss, that waits until it is its turn.
    struct waiting {
        std::uint64_t time = 0;
        std::size_t at = 0;     ///< of a record: where its bytes begin
        std::size_t bytes = 0;  ///< 0: it is a loss
        loss_cause cause = loss_cause::overwritten;
        std::uint64_t count = 0;
    };

    void begin() {
        if (about_->clock() == 0) {
            fail_setup(name_, "its records have no time to order them by (clock::none)", EINVAL);
        }
        session_.emplace(source_);
        about_->refresh();  // no other session consumes now
        const auto& ring = about_->ring();
        earlier_ = ring.folded_written - ring.folded_undrained;
        for (const auto& lane : about_->lanes()) earlier_ += lane.listed ? lane.drained : 0;
    }

    /// Copies everything that is complete.
    void look() {
        session_->finish([this](const drained_sub_buffer& part) {
            const std::size_t losses = waiting_.size();
            note(part.lost(), part.base_time());
            const std::size_t losses_end = waiting_.size();
            bool first = true;
            const std::uint64_t there = part.visit([&](const drained_record& one) {
                // What was lost has the time of the first record: the sub-buffer may have had
                // others before.
                for (std::size_t i = losses; first && i < losses_end; ++i) {
                    waiting_[i].time = one.time;
                }
                first = false;
                newest_ = (std::max)(newest_, one.time);
                keep(one);
            });
            if (there < part.records()) {
                wait({newest_, 0, 0, loss_cause::damaged, part.records() - there});
            }
        });
        // The others belong to no portion.
        loss_counts rest;
        for (std::size_t i = 0; i < loss_cause_count; ++i) {
            const auto cause = static_cast<loss_cause>(i);
            rest.add(cause, session_->lost()[cause] - noted_[cause]);
        }
        note(rest, newest_);
    }
    void note(const loss_counts& lost, std::uint64_t time) {
        for (std::size_t i = 0; i < loss_cause_count; ++i) {
            const auto cause = static_cast<loss_cause>(i);
            if (lost[cause] != 0) wait({time, 0, 0, cause, lost[cause]});
        }
        noted_ += lost;
    }
    void wait(const waiting& one) { waiting_.push_back(one); }
    void keep(const drained_record& one) {
        const auto* const type = about_->type_of_drained(one.lane, one.id);
        if (type == nullptr ||
            type->name != std::string_view(trap_event::name.data(), trap_event::name.size())) {
            ++others_;
            return;
        }
        static const reduce::lane_info nobody;
        const reduce::record_view view({&nobody, type}, one.payload.data() - 1, one.at);
        const auto kind = view.field("type");
        const auto code = view.field("code");
        const auto data = view.field("data");
        std::array<std::byte, record::cptrap_most_bytes> bytes;
        const std::size_t length =
            kind && code && data
                ? record::put_cptrap(bytes, static_cast<record::cptrap_type>(kind.u64()),
                                     static_cast<std::uint16_t>(code.u64()), data.bytes())
                : 0;
        if (length == 0) return wait({one.time, 0, 0, loss_cause::damaged, 1});
        wait({one.time, bytes_.size(), length, {}, 0});
        bytes_.insert(bytes_.end(), bytes.begin(),
                      bytes.begin() + static_cast<std::ptrdiff_t>(length));
    }

    std::uint64_t pass_on(spool& to, std::uint64_t horizon) {
        // Stable: what one lane recorded within one tick stays in its order.
        std::stable_sort(waiting_.begin(), waiting_.end(),
                         [](const waiting& a, const waiting& b) { return a.time < b.time; });
        std::uint64_t taken = 0;
        std::size_t done = 0;
        for (; done < waiting_.size() && waiting_[done].time <= horizon; ++done) {
            const waiting& one = waiting_[done];
            if (one.bytes == 0) {
                to.lose(one.cause, one.count);
                continue;
            }
            if (one.time < last_) ++late_;
            last_ = (std::max)(last_, one.time);
            if (to.append(std::span(bytes_).subspan(one.at, one.bytes))) ++taken;
        }
        forget(done);
        return taken;
    }
    /// Leaves out the first `done`.
    void forget(std::size_t done) {
        waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(done));
        std::vector<std::byte> left;
        for (waiting& one : waiting_) {
            const auto from = bytes_.begin() + static_cast<std::ptrdiff_t>(one.at);
            one.at = left.size();
            left.insert(left.end(), from, from + static_cast<std::ptrdiff_t>(one.bytes));
        }
        bytes_ = std::move(left);
    }

    drain_source source_;
    std::string name_;
    std::optional<reduce::tables> about_{};
    std::optional<drain::session<drain_source&>> session_{};
    std::vector<waiting> waiting_{};
    std::vector<std::byte> bytes_{};  ///< of the records that wait
    loss_counts noted_{};             ///< of session_->lost(), what waits or was passed on
    std::uint64_t newest_ = 0;        ///< time of the newest record that was seen
    std::uint64_t last_ = 0;          ///< time of the newest record that was passed on
    std::uint64_t earlier_ = 0;
    std::uint64_t late_ = 0;
    std::uint64_t others_ = 0;
};

}  // namespace trace_ring::inline v1::cptrap
