// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Messages between machines, sent in one trace and received in another, found by the value of a
/// field.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include <trace_ring/reduce/trace_file.hpp>

#include "clock_offset.hpp"
#include "offset_text.hpp"

namespace trace_reduce::position {

namespace reduce = trace_ring::reduce;

/// The messages that one trace has sent and received. A value that occurs twice is ambiguous and
/// left out.
class messages {
public:
    /// Reads the whole trace once.
    messages(reduce::trace_file& file, const std::vector<match_rule>& rules)
        : rules_(rules), sent_(rules.size()), received_(rules.size()) {
        reduce::filter what;
        for (const auto& rule : rules) {
            what.events.push_back(literally(rule.sent));
            if (!rule.received.empty()) what.events.push_back(literally(rule.received));
        }
        for (auto all = file.forward(what, reduce::merging::by_lane);
             const auto* item = all.next();) {
            if (const auto* record = std::get_if<reduce::record_view>(item)) note(file, *record);
        }
        for (auto* each : {&sent_, &received_}) {
            for (auto& of_rule : *each) {
                std::erase_if(of_rule, [this](const auto& one) {
                    ambiguous_ += one.second.ambiguous ? 1 : 0;
                    return one.second.ambiguous;
                });
            }
        }
    }

    /// The offset of the other trace's clock, by the messages between the two.
    [[nodiscard]] clock_offset offset_of(const messages& other,
                                         std::uint64_t uncertainty_ns) const {
        clock_offset out(uncertainty_ns);
        for (std::size_t rule = 0; rule < rules_.size(); ++rule) {
            for_each_pair(sent_[rule], other.received_[rule],
                          [&](const auto& s, const auto& r) { out.forth(s.earliest, r.latest); });
            for_each_pair(other.sent_[rule], received_[rule],
                          [&](const auto& s, const auto& r) { out.back(s.earliest, r.latest); });
        }
        return out;
    }
    /// The number of values left out because they occur more than once.
    [[nodiscard]] std::uint64_t ambiguous() const noexcept { return ambiguous_; }
    [[nodiscard]] bool empty() const {
        const auto none = [](const auto& each) { return each.empty(); };
        return std::all_of(sent_.begin(), sent_.end(), none) &&
               std::all_of(received_.begin(), received_.end(), none);
    }

private:
    /// Ns since 1970.
    struct moment {
        std::int64_t earliest = 0;
        std::int64_t latest = 0;
        bool ambiguous = false;
    };
    using by_value = std::unordered_map<std::string, moment>;

    /// A glob that matches nothing but this name.
    [[nodiscard]] static std::string literally(std::string_view name) {
        std::string glob;
        for (const char c : name) {
            if (c == '*' || c == '?' || c == '[' || c == '\\') glob += '\\';
            glob += c;
        }
        return glob;
    }
    /// Equal for equal numbers, of any width.
    [[nodiscard]] static std::string value_of(const reduce::field_value& value) {
        using trace_ring::field_type;
        if (value.is_text()) return '"' + std::string(value.text());
        if (value.type() == field_type::f32 || value.type() == field_type::f64) {
            return '.' + std::to_string(std::bit_cast<std::uint64_t>(value.f64()));
        }
        const bool whole = value.type() == field_type::u64 || value.type() == field_type::address;
        return whole ? std::to_string(value.u64()) : std::to_string(value.i64());
    }

    void note(const reduce::trace_file& file, const reduce::record_view& record) {
        if (!record.known() || !record.fault().empty()) return;
        const std::string_view name = record.name();
        for (std::size_t i = 0; i < rules_.size(); ++i) {
            const match_rule& rule = rules_[i];
            const bool span = rule.received.empty();
            if (name == rule.sent && (!span || record.begins())) {
                enter(file, record, rule.sent_field, false, sent_[i]);
            }
            if (name == (span ? rule.sent : rule.received) && (!span || record.ends())) {
                enter(file, record, rule.received_field, true, received_[i]);
            }
        }
    }
    static void enter(const reduce::trace_file& file, const reduce::record_view& record,
                      const std::string& field, bool by_latest, by_value& into) {
        const auto value = record.field(field);
        if (!value || value.cut()) return;
        // Of a record whose time is an interval: it was sent after its beginning, received before
        // its end, if that is known.
        const auto latest = record.interval() ? record.latest() : record.time();
        if (by_latest && !latest) return;
        const moment at{file.realtime_ns(record.time()),
                        file.realtime_ns(latest.value_or(record.time()))};
        const auto [place, is_new] = into.emplace(value_of(value), at);
        if (!is_new) place->second.ambiguous = true;
    }
    template <class Visit>
    static void for_each_pair(const by_value& sent, const by_value& received, Visit visit) {
        for (const auto& [value, at] : sent) {
            if (const auto found = received.find(value); found != received.end()) {
                visit(at, found->second);
            }
        }
    }

    const std::vector<match_rule>& rules_;
    std::vector<by_value> sent_;  // by rule
    std::vector<by_value> received_;
    std::uint64_t ambiguous_ = 0;
};

}  // namespace trace_reduce::position
