// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The values that a condition needs from the records of one event, besides those at fixed places:
/// numbers and texts that are found for each record or lane, and ranges of keys. The context of the
/// condition's byte code.
/// @code
///   record_batch block{questions, tables, run, 0, 64};
///   trace_ring::point::run(code, block, ~std::uint64_t{0}, stack);
/// @endcode

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <trace_ring/glob.hpp>
#include <trace_ring/point/machine/code.hpp>
#include <trace_ring/point/machine/number_columns.hpp>
#include <trace_ring/point/machine/run.hpp>
#include <trace_ring/point/machine/word_columns.hpp>
#include <trace_ring/reduce/item.hpp>
#include <trace_ring/reduce/tables.hpp>

#include "ranges.hpp"

namespace trace_reduce::where {

/// A number or a text of a record: of a name, or of one element of a field.
struct record_value {
    named name = named::field;
    std::size_t field = 0;                  ///< its number in the event
    std::size_t element = 0;                ///< of an array
    const std::string* constant = nullptr;  ///< a text that all records have

    /// Whether it is the same for all records of one thread in a lane.
    [[nodiscard]] bool of_lane() const noexcept {
        return constant != nullptr || (name >= named::thread && name <= named::lane);
    }
};

/// A comparison of texts. All that it names must outlive it.
struct text_question {
    form how = form::compared;  ///< with the next, in the set of the others, or like a glob
    comparison sign = comparison::equal;
    std::vector<record_value> texts{};
    const std::string* glob = nullptr;

    /// Whether it needs no values of records.
    [[nodiscard]] bool is_constant() const noexcept {
        return std::all_of(texts.begin(), texts.end(),
                           [](const record_value& each) { return each.constant != nullptr; });
    }
    /// Whether the answer is the same for all records of one thread in a lane.
    [[nodiscard]] bool of_lane() const noexcept {
        return std::all_of(texts.begin(), texts.end(),
                           [](const record_value& each) { return each.of_lane(); });
    }
};

/// Ranges of keys (ranges.hpp), ascending and apart, of words of this type.
struct key_ranges {
    field_type type = field_type::u64;
    std::vector<range> all{};
};

struct questions {
    /// The record's words are its ticks, and the truths of these.
    std::vector<text_question> texts{};
    std::vector<record_value> numbers{};
    std::vector<key_ranges> ranges{};
};
inline constexpr std::uint32_t word_of_ticks = 0;
inline constexpr std::uint32_t word_of_texts = 1;

/// Up to 64 records of a run, or a lane without a record, for the values that all its records
/// share.
class record_batch {
public:
    record_batch(const questions& what, const tables& in, const lane_info& lane) noexcept
        : what_(what), in_(in), lane_(&lane) {}
    /// The run must outlive it.
    record_batch(const questions& what, const tables& in, const record_run& of, std::size_t begin,
                 std::size_t count) noexcept
        : what_(what),
          in_(in),
          lane_(&of.front().lane()),
          run_(&of),
          begin_(begin),
          count_(count) {}
    using column = point::record_column;

    void field(field_type type, std::uint32_t at, column& into) const noexcept {
        load(type, at, into, [](std::uint64_t word) { return word; });
    }
    [[nodiscard]] bool field_within(field_type type, std::uint32_t at, std::uint32_t n,
                                    column& into) const noexcept {
        const key_ranges& of = what_.ranges[n];
        if (of.all.size() != 1 || impl::is_real(of.type)) return false;
        // The difference of two signed words equals the difference of their keys.
        const std::uint64_t low = of.all[0].low ^ (impl::is_signed(of.type) ? impl::top_bit : 0);
        const std::uint64_t reach = of.all[0].high - of.all[0].low;
        load(type, at, into,
             [low, reach](std::uint64_t word) { return word_of(word - low <= reach); });
        return true;
    }
    void word(std::uint32_t n, std::uint64_t asked, column& into) const {
        if (n != word_of_ticks) {
            const text_question& of = what_.texts[n - word_of_texts];
            return find(
                of.of_lane(), asked, [&](const record_view* record) { return answer(of, record); },
                [&](std::size_t k, std::uint64_t truth) { into[k] = truth; });
        }
        const std::uint64_t high = run_->front().time() & ~std::uint64_t{0xFFFFFFFF};
        load(field_type::u32, -static_cast<std::ptrdiff_t>(record_header_bytes), into,
             [high](std::uint64_t low) { return high | low; });
    }
    void number(std::uint32_t n, std::uint64_t asked, column& bits, column& kinds) const {
        const record_value& wanted = what_.numbers[n];
        find(
            wanted.of_lane(), asked,
            [&](const record_view* record) { return number_of(wanted, record); },
            [&](std::size_t k, const std::optional<point::number>& found) {
                bits[k] = found ? point::bits_of(*found) : 0;
                kinds[k] = static_cast<std::uint64_t>(found ? point::kind_of(*found)
                                                            : point::number_kind::unknown);
            });
    }
    void within(std::uint32_t n, column& words) const noexcept {
        const key_ranges& of = what_.ranges[n];
        if (impl::is_real(of.type)) {
            within(of.all, words,
                   [](std::uint64_t word) { return impl::key_of(std::bit_cast<double>(word)); });
        } else if (impl::is_signed(of.type)) {
            within(of.all, words, [](std::uint64_t word) {
                return impl::key_of(static_cast<std::int64_t>(word));
            });
        } else {
            within(of.all, words, [](std::uint64_t word) { return word; });
        }
    }

private:
    /// `result` of each word, for the records that there are.
    template <class Do>
    void load(field_type type, std::ptrdiff_t offset, column& into,
              const Do& result) const noexcept {
        const std::byte* at = run_->front().payload().data() + offset +
                              static_cast<std::ptrdiff_t>(begin_) * run_->stride();
        visit_type(type, [&](auto value) {
            for (std::size_t k = 0; k < count_; ++k) {
                std::memcpy(&value, at, sizeof value);
                at += run_->stride();
                into[k] = result(
                    std::bit_cast<std::uint64_t>(static_cast<widest<decltype(value)>>(value)));
            }
        });
    }
    template <class Key>
    void within(const std::vector<range>& ranges, column& words, const Key& key) const noexcept {
        if (ranges.size() == 1) {
            const std::uint64_t low = ranges[0].low;
            const std::uint64_t reach = ranges[0].high - low;
            for (std::size_t k = 0; k < count_; ++k) {
                words[k] = word_of(key(words[k]) - low <= reach);
            }
            return;
        }
        for (std::size_t k = 0; k < count_; ++k) {
            const std::uint64_t wanted = key(words[k]);
            const auto after =
                std::upper_bound(ranges.begin(), ranges.end(), wanted,
                                 [](std::uint64_t at, const range& r) { return at < r.low; });
            words[k] = word_of(after != ranges.begin() && wanted <= (after - 1)->high);
        }
    }
    [[nodiscard]] static std::uint64_t word_of(bool holds) noexcept {
        return holds ? point::truth_yes : point::truth_no;
    }
    /// Puts what `of(record)` is for each that is asked, or, once for all, of the lane.
    template <class Of, class Put>
    void find(bool of_lane, std::uint64_t asked, const Of& of, const Put& put) const {
        if (of_lane) {
            const auto all = of(nullptr);
            return point::impl::for_each(asked, [&](std::size_t k) { put(k, all); });
        }
        point::impl::for_each(asked, [&](std::size_t k) {
            const record_view record = (*run_)[begin_ + k];
            put(k, of(&record));
        });
    }

    /// Without a record: of the lane.
    [[nodiscard]] std::optional<point::number> number_of(const record_value& wanted,
                                                         const record_view* record) const {
        const auto id = [](std::uint32_t number) {
            return number == 0 ? std::nullopt
                               : std::optional(point::number::of(std::uint64_t{number}));
        };
        switch (wanted.name) {
            case named::thread:
            case named::tid:
                return id(lane_->thread);
            case named::process:
            case named::pid:
                return id(lane_->pid);
            case named::lane:
                return point::number::of(std::uint64_t{lane_->number});
            case named::position:
                return point::number::of(record->position());
            case named::time:
                return time(record->time());
            case named::latest: {
                const auto latest = record->latest();
                return latest ? time(*latest) : std::nullopt;
            }
            default: {
                const field_value one = element(wanted, *record);
                if (!one) return std::nullopt;
                return one.visit([](auto value) {
                    return point::number::of(static_cast<widest<decltype(value)>>(value));
                });
            }
        }
    }
    [[nodiscard]] std::optional<point::number> time(std::uint64_t ticks) const noexcept {
        const auto ns = since_begin(in_.time(), ticks);
        return ns ? std::optional(point::number::of(*ns)) : std::nullopt;
    }
    [[nodiscard]] static field_value element(const record_value& wanted,
                                             const record_view& record) {
        const field_value all = record.field(wanted.field);
        return all.form() == field_form::scalar ? all : all.at(wanted.element);
    }

    /// A truth.
    [[nodiscard]] std::uint64_t answer(const text_question& of, const record_view* record) const {
        std::string digits;
        std::string other_digits;
        const auto first = text_of(of.texts[0], record, digits);
        if (!first) return point::truth_unknown;
        if (of.how == form::like) return word_of(matches_glob(*of.glob, *first));
        for (std::size_t i = 1; i < of.texts.size(); ++i) {
            const auto other = text_of(of.texts[i], record, other_digits);
            if (!other) return point::truth_unknown;
            const bool found = holds(of.sign, first->compare(*other) <=> 0);
            if (found || of.how == form::compared) return word_of(found);
        }
        return point::truth_no;
    }
    [[nodiscard]] std::optional<std::string_view> text_of(const record_value& wanted,
                                                          const record_view* record,
                                                          std::string& digits) const {
        if (wanted.constant != nullptr) return *wanted.constant;
        if (wanted.name == named::thread) {
            if (!lane_->listed && lane_->thread == 0) return std::nullopt;
            return lane_->name;
        }
        if (wanted.name == named::process) {
            const auto process = lane_->process;
            if (!process || *process >= in_.processes().size()) return std::nullopt;
            return in_.processes()[*process].name;
        }
        const field_value all = record->field(wanted.field);
        if (all.type() == field_type::character) {
            return all ? std::optional(all.text()) : std::nullopt;
        }
        const field_value one = element(wanted, *record);
        if (!one) return std::nullopt;
        // As exporters show it: by its name, else as a number.
        if (const std::string_view name = one.name(); !name.empty()) return name;
        digits =
            one.type() >= field_type::i8 ? std::to_string(one.i64()) : std::to_string(one.u64());
        return digits;
    }

    const questions& what_;
    const tables& in_;
    const lane_info* lane_ = nullptr;
    const record_run* run_ = nullptr;
    std::size_t begin_ = 0;
    std::size_t count_ = 0;
};

}  // namespace trace_reduce::where
