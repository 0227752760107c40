// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The files that trace-reduce reads, merged by their clocks' realtime, and the complaints about
/// them.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <trace_ring/exporter/text.hpp>
#include <trace_ring/instrument/reference_packing.hpp>
#include <trace_ring/reduce/item/record_view.hpp>
#include <trace_ring/reduce/source.hpp>
#include <trace_ring/reduce/span/pairs.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include "../shown.hpp"
#include "followed_name.hpp"
#include "formats.hpp"
#include "measure/measures.hpp"
#include "names/code_names.hpp"
#include "options.hpp"
#include "reading/threads.hpp"

namespace trace_reduce {

namespace reduce = trace_ring::reduce;
namespace exporter = trace_ring::exporter;

/// Tells what is wrong, once for each place, and remembers the exit status.
class complaints {
public:
    void system(const std::string& what) {
        complain("trace-reduce", what);
        failed_ = true;
    }
    /// What is no error.
    static void note(const std::string& what) { complain("trace-reduce", what); }
    void damage(const std::string& file, std::uint64_t offset, std::string_view what) {
        constexpr std::uint64_t most = 20;
        if (++damages_ <= most) {
            complain("trace-reduce",
                     file + ": offset " + std::to_string(offset) + ": " + std::string(what));
        }
        if (damages_ == most + 1) {
            complain("trace-reduce", "more damage is shown in its place");
        }
    }
    [[nodiscard]] int status() const noexcept { return failed_ ? 1 : damages_ != 0 ? 2 : 0; }

private:
    bool failed_ = false;
    std::uint64_t damages_ = 0;
};

/// One file, and where its reading has come to.
class input {
public:
    input(reduce::source file, const options& wanted, complaints& complain)
        : named_(file),
          file_(reduce::trace_file::of_source(std::move(file),
                                              &trace_ring::instrument::reference_packing)),
          complain_(complain) {
        what_.events = wanted.events;
        what_.threads = wanted.threads;
        // If each record is printed, printing takes nearly all of the time, and one thread does it.
        const bool chosen = !wanted.where.empty() || !wanted.events.empty() ||
                            !wanted.threads.empty() || wanted.statistics;
        const unsigned jobs = wanted.jobs != 0 ? wanted.jobs
                              : chosen         ? std::thread::hardware_concurrency()
                                               : 1;
        const auto files = static_cast<unsigned>(wanted.files.size());
        // Shared out among the files, each of which has one at least.
        what_.ahead = read_ahead_by(jobs > 1 ? std::max(1U, jobs / std::max(1U, files)) : 0);
    }
    input(const input&) = delete;

    [[nodiscard]] reduce::trace_file& file() noexcept { return file_; }
    [[nodiscard]] const reduce::filter& what() const noexcept { return what_; }
    [[nodiscard]] reduce::filter& what() noexcept { return what_; }

    /// The functions of its programs. Reads it when it is first asked.
    [[nodiscard]] names::code_names& names() {
        if (!names_) names_ = std::make_unique<names::code_names>(file_);
        return *names_;
    }

    /// Its items are shown by `to`, which must outlive it.
    void show_by(format& to, const options& wanted) {
        shown_by_ = &to;
        number_ = to.add(file_.about(), file_.name(), wanted.symbols ? &names() : nullptr);
    }
    void start(const options& wanted) {
        // Backward an end comes before its begin.
        times_spans_ = !wanted.backward && shows_lengths(wanted.format) &&
                       (wanted.follow || measure::has_spans(file_));
        cursor_.emplace(wanted.follow     ? file_.follow(what_)
                        : wanted.backward ? file_.backward(what_)
                                          : file_.forward(what_));
    }
    void stop_following() { cursor_->stop_following(); }
    /// The name that it was opened by.
    [[nodiscard]] followed_name& named() noexcept { return named_; }

    /// The item at hand, or the next; null if there is none (now).
    [[nodiscard]] const reduce::item* peek() {
        if (item_ == nullptr) {
            item_ = cursor_->next();
            if (item_ != nullptr) judge();
        }
        return item_;
    }
    void pop() noexcept { item_ = nullptr; }
    /// The place of the current item among the items of other files.
    [[nodiscard]] std::int64_t key() const noexcept {
        return file_.time().order_ns(reduce::time_of(*item_));
    }

    void append(exporter::text_buffer& out) {
        const auto took = times_spans_ ? length_of_ended() : std::nullopt;
        shown_by_->append(out, number_, *item_, took ? &*took : nullptr);
    }

    /// What is wrong with the tables.
    void judge_tables() {
        for (; judged_ < file_.damages().size(); ++judged_) {
            const auto& damage = file_.damages()[judged_];
            complain_.damage(file_.name(), damage.offset, damage.what);
        }
    }

    void complain_of(const reduce::trace_statistics& sum) {
        for (const auto& place : sum.places) {
            complain_.damage(file_.name(), place.offset, place.what);
        }
    }

private:
    struct nothing {};

    [[nodiscard]] static bool shows_lengths(output_format in) noexcept {
        return in == output_format::text || in == output_format::json || in == output_format::csv;
    }
    /// If the item at hand ends a span whose begin was shown.
    [[nodiscard]] std::optional<exporter::span_length> length_of_ended() {
        if (const auto* loss = std::get_if<reduce::loss_item>(item_)) {
            if (loss->lane != nullptr) open_.gap(*loss->lane, [](const auto&) {});
        } else if (const auto* jump = std::get_if<reduce::clock_jump>(item_)) {
            if (jump->lane != nullptr) open_.gap(*jump->lane, [](const auto&) {});
        } else if (const auto& record = std::get<reduce::record_view>(*item_); !record.known()) {
            return std::nullopt;
        } else if (record.begins()) {
            open_.begin(record, {}, [](const auto&) {});
        } else if (record.ends()) {
            const auto begun = open_.end(record, [](const auto&) {}).begun;
            if (begun && record.time() >= begun->time) {
                return exporter::span_length{record.time() - begun->time,
                                             begun->interval || record.interval()};
            }
        }
        return std::nullopt;
    }

    void judge() {
        if (const auto* loss = std::get_if<reduce::loss_item>(item_)) {
            if (loss->cause == trace_ring::loss_cause::damaged) {
                complain_.damage(file_.name(), loss->offset, loss->what);
            }
        } else if (const auto* record = std::get_if<reduce::record_view>(item_)) {
            if (reduce::is_damage(file_.about(), *record)) {
                complain_.damage(file_.name(), record->offset(), record->fault());
            }
        }
    }

    followed_name named_;
    reduce::trace_file file_;
    complaints& complain_;
    reduce::filter what_;
    std::unique_ptr<names::code_names> names_;
    format* shown_by_ = nullptr;
    std::size_t number_ = 0;
    std::optional<reduce::cursor> cursor_;
    const reduce::item* item_ = nullptr;
    std::size_t judged_ = 0;
    bool times_spans_ = false;
    reduce::span_pairs<nothing> open_;
};

/// Reads what can be read of each and complains of the rest.
[[nodiscard]] inline std::vector<std::unique_ptr<input>> open_all(std::vector<reduce::source> files,
                                                                  const options& wanted,
                                                                  complaints& complain) {
    std::vector<std::unique_ptr<input>> inputs;
    for (auto& file : files) {
        try {
            inputs.push_back(std::make_unique<input>(std::move(file), wanted, complain));
            inputs.back()->judge_tables();
        } catch (const trace_ring::format_error& error) {
            complain.damage(error.file(), error.offset(), error.cause());
        }
    }
    return inputs;
}

/// The file whose item at hand comes next; null if no file has one (now).
[[nodiscard]] inline input* next_of(const std::vector<std::unique_ptr<input>>& inputs,
                                    bool backward) {
    input* best = nullptr;
    for (const auto& each : inputs) {
        if (each->peek() == nullptr) continue;
        if (inputs.size() == 1) return each.get();
        // Of the same time: in the order of the files, and backward the other way round.
        if (best == nullptr ||
            (backward ? each->key() >= best->key() : each->key() < best->key())) {
            best = each.get();
        }
    }
    return best;
}

}  // namespace trace_reduce
