// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Reads the records of one or several files for a query, merged by time.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <trace_ring/reduce/cursor.hpp>
#include <trace_ring/reduce/item.hpp>

#include "traces.hpp"

namespace trace_reduce::sql {

/// The records of one file.
class file_scan {
public:
    /// `strict`: throws if times do not come in the order of reading.
    file_scan(std::shared_ptr<traced_file> of, reduce::filter what, reduce::direction way,
              bool strict, const damage_report& damaged, std::size_t number)
        : of_(std::move(of)),
          number_(number),
          damaged_(&damaged),
          cursor_(way == reduce::direction::forward ? of_->trace().forward(std::move(what))
                                                    : of_->trace().backward(std::move(what))),
          strict_(strict) {}

    /// Goes to the first record, or the next one. False: there is none.
    [[nodiscard, gnu::always_inline]] bool next() {
        if (left_ == 0) [[unlikely]]
            return next_run();
        if (!std::exchange(fresh_, false)) ++at_;
        --left_;
        record_ = &*at_;
        return true;
    }
    /// Passes over the records of the same kind that come directly after this one: how many.
    [[nodiscard]] std::size_t pass_run() noexcept { return std::exchange(left_, 0); }
    [[nodiscard]] const reduce::record_view& record() const noexcept { return *record_; }
    /// The record's type, as the record says it.
    [[nodiscard]] const reduce::event_type& type() const noexcept { return *type_; }
    [[nodiscard]] traced_file& file() const noexcept { return *of_; }
    /// Which one of the table's files it is, from 0.
    [[nodiscard]] std::size_t number() const noexcept { return number_; }
    [[nodiscard]] const std::shared_ptr<traced_file>& shared_file() const noexcept { return of_; }
    [[nodiscard]] std::int64_t key() const noexcept {
        return of_->time().order_ns(record_->time());
    }

private:
    [[nodiscard, gnu::noinline]] bool next_run() {
        while (const reduce::item* const item = cursor_.next()) {
            report_if_damaged(*damaged_, *of_, *item);
            if (const auto* record = std::get_if<reduce::record_view>(item)) {
                record_ = record;
                type_ = &record->type();
                const reduce::record_run more = cursor_.records();
                at_ = more.begin();
                left_ = more.size();
                fresh_ = true;
                return true;
            }
            if (strict_) refuse_jump(*item);
        }
        return false;
    }
    void refuse_jump(const reduce::item& other) const {
        const auto* jump = std::get_if<reduce::clock_jump>(&other);
        if (jump == nullptr || jump->lane == nullptr) return;
        throw std::runtime_error(of_->path() + ": the time of lane " +
                                 std::to_string(jump->lane->number) +
                                 " goes back, so reading does not sort by it: write "
                                 "ORDER BY +time");
    }

    std::shared_ptr<traced_file> of_;
    std::size_t number_;
    const damage_report* damaged_;
    reduce::cursor cursor_;
    bool strict_;
    const reduce::record_view* record_ = nullptr;
    const reduce::event_type* type_ = nullptr;
    reduce::record_run::iterator at_;  // the one after `record_` if `fresh_`, else `record_`
    std::size_t left_ = 0;
    bool fresh_ = false;
};

/// The records of all files.
class record_scan {
public:
    explicit record_scan(reduce::direction way) noexcept
        : backward_(way == reduce::direction::backward) {}

    void add(std::unique_ptr<file_scan> one) { files_.push_back(std::move(one)); }

    [[nodiscard, gnu::always_inline]] bool next() {
        if (only_ != nullptr) [[likely]]
            return only_->next();
        return choose();
    }
    [[nodiscard]] file_scan& now() noexcept { return *now_; }

private:
    [[nodiscard, gnu::noinline]] bool choose() {
        if (now_ == nullptr) {
            std::erase_if(files_, [](const auto& each) { return !each->next(); });
            if (files_.size() == 1) only_ = files_[0].get();
        } else if (!now_->next()) {
            std::erase_if(files_, [this](const auto& each) { return each.get() == now_; });
        }
        now_ = nullptr;
        for (const auto& each : files_) {
            if (now_ == nullptr ||
                (backward_ ? each->key() >= now_->key() : each->key() < now_->key())) {
                now_ = each.get();
            }
        }
        return now_ != nullptr;
    }

    std::vector<std::unique_ptr<file_scan>> files_;
    file_scan* now_ = nullptr;
    file_scan* only_ = nullptr;  // the only one, from the second record on
    bool backward_;
};

}  // namespace trace_reduce::sql
