// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// CPTRAP files through trace-reduce: shown one after the other, as their records have no time by
/// which they could be merged; forward, backward, from any place, as they grow, or in numbers.

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <trace_ring/cptrap/spool_reader.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/reduce/source.hpp>

#include "../followed_name.hpp"
#include "../inputs.hpp"
#include "../options.hpp"
#include "../output.hpp"
#include "choice.hpp"
#include "formats.hpp"
#include "range.hpp"
#include "spool_choice.hpp"
#include "statistics.hpp"

namespace trace_reduce {

class spool_reduction {
public:
    /// `files` as `wanted` has them; of `interrupted` it is asked whether it is 0.
    spool_reduction(std::vector<reduce::source> files, const options& wanted, spool_choice what,
                    bool colour, complaints& complain,
                    const volatile std::sig_atomic_t& interrupted)
        : wanted_(wanted),
          complain_(complain),
          interrupted_(interrupted),
          choice_(std::move(what)),
          format_(make_spool_format(wanted, colour, files.size() > 1)) {
        for (auto& each : files) {
            const spool_range range(wanted, each.size());
            followed_name named(each);
            inputs_.push_back({std::move(named), reader_of(std::move(each), range), range});
        }
    }

    /// Prints the items, to the end, the limit or an interrupt.
    void print(output& to) {
        format_->begin(to.text());
        if (wanted_.backward) {
            for (std::size_t i = inputs_.size(); i-- > 0;) print_backward(inputs_[i], to);
        } else {
            for (auto& each : inputs_) {
                each.reader.go_to(each.range.first());
                print_forward(each, to);
                end(each, to);
            }
        }
        format_->end(to.text());
    }

    /// As they grow, until interrupted or, if that is wanted, until nobody writes to them.
    void follow(output& to) {
        for (auto& each : inputs_) each.reader.go_to(each.range.first());
        format_->begin(to.text());
        for (;;) {
            for (auto& each : inputs_) {
                look_at_name(each, to);
                look_at_size(each);
            }
            bool live = false;  // asked before: what is written until then is seen afterwards
            for (const auto& each : inputs_) {
                live = live || each.reader.live() || (wanted_.retry && each.named.is_awaited());
            }
            for (auto& each : inputs_) print_forward(each, to);
            to.flush();
            if (interrupted_ != 0 || records_ >= wanted_.limit || (wanted_.until_closed && !live)) {
                break;
            }
            const std::timespec pause{0, 50'000'000};
            ::nanosleep(&pause, nullptr);
        }
        for (auto& each : inputs_) end(each, to);
        format_->end(to.text());
    }

    void count(output& to) {
        if (wanted_.format == output_format::csv) in_csv::show_spool_header(to.text());
        print_pages pages;
        text_buffer lines;
        for (auto& each : inputs_) {
            spool_statistics sum;
            each.reader.go_to(each.range.first());
            while (interrupted_ == 0) {
                const auto item = each.reader.next();
                if (!item || each.range.after(item)) break;
                each.seen.add(item.number);
                if (each.range.before(item) || !choice_.takes(item)) continue;
                judge(each, item);
                sum.add(item);
            }
            if (interrupted_ != 0) return;  // it has no sum
            if (const std::uint64_t zeros = complain_of_zeros(each); zeros != 0) {
                sum.damages += zeros;
                sum.damaged_bytes += zeros * record::spool_record_bytes;
            }
            if (wanted_.format == output_format::json) {
                in_json::show(to.text(), each.reader, sum);
            } else if (wanted_.format == output_format::csv) {
                in_csv::show(to.text(), each.reader, sum);
            } else if (wanted_.format == output_format::print) {
                pages.enter(each.reader.name());
                in_text::show(lines, each.reader, sum);
                pages.append(to.text(), lines.view());
                lines.clear();
            } else {
                in_text::show(to.text(), each.reader, sum);
                if (&each != &inputs_.back()) to.text() += '\n';
            }
            to.flush();
        }
    }

private:
    /// The spool records that had items, read in either direction.
    struct seen_pages {
        std::uint64_t count = 0;
        std::uint64_t last = 0;
        std::uint64_t lowest_gap = ~std::uint64_t{0};

        void add(std::uint64_t number) {
            if (count != 0 && number == last) return;
            if (count != 0 && number > last + 1) lowest_gap = std::min(lowest_gap, last + 1);
            if (count != 0 && number + 1 < last) lowest_gap = number + 1;
            if (count == 0 || number < lowest) lowest = number;
            highest = std::max(highest, number);
            last = number;
            ++count;
        }
        [[nodiscard]] std::uint64_t first_gap(std::uint64_t from) const {
            if (count == 0 || lowest > from) return from;
            return std::min(lowest_gap, highest + 1);
        }

        std::uint64_t lowest = 0;
        std::uint64_t highest = 0;
    };
    /// Items with copies of their bytes, which the reader may replace. In order.
    struct pending_items {
        struct one {
            reduce::spool_item item;
            std::vector<std::byte> bytes;
        };
        std::deque<one> items;

        void keep(const reduce::spool_item& item) {
            items.push_back({item, {item.bytes.begin(), item.bytes.end()}});
        }
        /// Good until the next call.
        [[nodiscard]] reduce::spool_item take() {
            taken = std::move(items.front());
            items.pop_front();
            taken.item.bytes = taken.bytes;
            if (!taken.item.record.bytes.empty()) taken.item.record.bytes = taken.bytes;
            return taken.item;
        }

        one taken{};
    };
    struct one_input {
        followed_name named;
        reduce::spool_reader reader;
        spool_range range;
        seen_pages seen{};
        std::uint64_t bytes = 0;  ///< that the file had at the last look
        pending_items pending{};
    };

    [[nodiscard]] reduce::spool_reader reader_of(reduce::source file,
                                                 const spool_range& range) const {
        reduce::spool_reader reader(std::move(file));
        reader.range(range.first(), range.end());
        reader.stop_when(interrupted_);
        reader.lengths(lengths_of(wanted_));
        return reader;
    }
    /// Goes on with a file that has taken the name, once nobody writes to the old one.
    void look_at_name(one_input& from, output& to) {
        if (!from.named.is_taken() || (wanted_.retry && from.reader.live())) return;
        from.named.pass_on(wanted_, file_kind::spool, [&](reduce::source file) {
            print_forward(from, to);
            end(from, to);
            from.range = from.range.pages_alone();  // the places are of the first file
            from.named = followed_name(file);
            from.reader = reader_of(std::move(file), from.range);
            from.seen = {};
            from.pending = {};
            from.bytes = 0;
        });
    }
    /// A file that became shorter was written anew in place.
    void look_at_size(one_input& from) {
        const std::uint64_t now = from.reader.size();
        if (now < from.bytes) {
            complain_.damage(from.reader.name(), now,
                             "the file was truncated while it was followed: it is read again from "
                             "the beginning");
            from.reader.go_to(from.range.first());
            from.seen = {};
        }
        from.bytes = now;
    }
    void print_forward(one_input& from, output& to) {
        while (records_ < wanted_.limit && interrupted_ == 0) {
            const auto item = from.reader.next();
            if (!item) return;
            from.seen.add(item.number);
            if (from.range.after(item)) {
                static_cast<void>(from.reader.previous());
                return;
            }
            if (from.range.before(item) || !choice_.takes(item)) continue;
            show_pending(from, item.offset, to);
            if (may_change(from, item)) {
                from.pending.keep(item);
                continue;
            }
            show(from, item, to);
        }
    }
    void print_backward(one_input& from, output& to) {
        from.reader.go_to(from.range.end());
        while (records_ < wanted_.limit && interrupted_ == 0) {
            const auto item = from.reader.previous();
            if (item) from.seen.add(item.number);
            if (!item || from.range.before(item)) {
                complain_of_zeros(from);
                return;
            }
            if (from.range.after(item) || !choice_.takes(item)) continue;
            show(from, item, to);
        }
    }
    /// The file may grow, and this item may be replaced: an end that is not whole, or the counts of
    /// losses at the end of a spool that is at its limit.
    [[nodiscard]] bool may_change(const one_input& from, const reduce::spool_item& item) const {
        if (item.what == reduce::spool_item::kind::torn) return true;
        const bool is_loss = item.what == reduce::spool_item::kind::record && item.record.lost();
        return is_loss && wanted_.follow && item.number + 1 == from.reader.spool_records();
    }
    /// Shows what was kept, unless an item at `offset` takes its place.
    void show_pending(one_input& from, std::uint64_t offset, output& to) {
        auto kept = std::exchange(from.pending, {});
        while (!kept.items.empty()) {
            const auto one = kept.take();
            const bool replaced =
                one.offset >= offset || one.what == reduce::spool_item::kind::torn;
            if (!replaced) show(from, one, to);
        }
    }
    /// Nothing more comes: the pending items are final.
    void end(one_input& from, output& to) {
        auto kept = std::exchange(from.pending, {});
        while (!kept.items.empty() && records_ < wanted_.limit) show(from, kept.take(), to);
        // Of what is followed an interrupt is the usual end.
        if (records_ < wanted_.limit && (interrupted_ == 0 || wanted_.follow)) {
            complain_of_zeros(from);
        }
    }

    /// Spool records of the range that have no item are all zero, and no spool writes such. Returns
    /// how many there are.
    std::uint64_t complain_of_zeros(const one_input& from) {
        const std::uint64_t end = std::min(from.reader.spool_records(), from.range.end());
        const std::uint64_t first = std::min(from.range.first(), end);
        if (from.seen.count >= end - first) return 0;
        const std::uint64_t zeros = end - first - from.seen.count;
        complain_.damage(
            from.reader.name(), from.seen.first_gap(first) * record::spool_record_bytes,
            zeros == 1 ? std::string(zeros_cause)
                       : std::to_string(zeros) +
                             " spool records of zeros, of which this is the first: nothing was "
                             "written into them");
        return zeros;
    }

    void show(one_input& from, const reduce::spool_item& item, output& to) {
        judge(from, item);
        format_->append(to.text(), from.reader.name(), item);
        to.flush_some();
        if (item.what == reduce::spool_item::kind::record && !item.record.lost()) ++records_;
    }
    void judge(const one_input& from, const reduce::spool_item& item) {
        if (item.what == reduce::spool_item::kind::record) return;
        std::string what(item.cause());
        if (item.why == record::spool_end::unknown_type && !item.bytes.empty()) {
            text_buffer type;
            append_hexadecimal(type, std::to_integer<unsigned>(item.bytes[0]), 2);
            const std::string digits(type.view());
            what += " (" + digits + "): --length " + digits + "=BYTES reads on";
        }
        complain_.damage(from.reader.name(), item.offset, what);
    }

    const options& wanted_;
    complaints& complain_;
    const volatile std::sig_atomic_t& interrupted_;
    spool_choice choice_;
    std::unique_ptr<spool_format> format_;
    std::vector<one_input> inputs_{};
    std::uint64_t records_ = 0;
};

}  // namespace trace_reduce
