// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What becomes of the firings of a clause's action: events in a trace, lines on the screen, counts
/// and histograms.
/// @code
///   results all(recorder, std::cout);
///   all.add("malloc", statements, 0, "malloc");
///   all.ran({.clause = 0, .time = ns, .pid = 1, .tid = 1, .bits = 64}, output);
///   all.show();
/// @endcode

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <trace_ring/exporter/text.hpp>
#include <trace_ring/point/machine/run.hpp>
#include <trace_ring/record/field.hpp>
#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/recorder/runtime_event.hpp>
#include <trace_ring/reduce/item/record_view.hpp>

#include "../language/compile.hpp"
#include "aggregates.hpp"
#include "firing_clock.hpp"
#include "module_records.hpp"
#include "named_stacks.hpp"
#include "stack_names.hpp"

namespace trace_clauses {

/// Who fired, when.
struct fired {
    std::uint32_t clause = 0;
    std::uint64_t time = 0;  ///< CLOCK_MONOTONIC, ns
    std::uint32_t pid = 0;
    std::uint32_t tid = 0;
    std::uint8_t bits = 64;
    std::uint32_t faults = 0;  ///< what the action could not read
};

/// One thread's.
class results {
public:
    using recorder = trace_ring::basic_recorder<firing_trace>;

    /// `to` null: no trace is written, and what is captured is shown, a line each. `names`, unless
    /// null, knows those for the addresses of stacks.
    results(recorder* to, std::ostream& out, stack_names* names = nullptr) : to_(to), out_(&out) {
        if (names == nullptr) return;
        stacks_.emplace(*names);
        modules_.emplace(*names);
    }

    /// Code of a clause, whose number is how many were added before, and what it stores. `name` is
    /// that of its events; code with the same `group` counts together, and has as many statements.
    /// Throws std::invalid_argument as runtime_event::make does.
    void add(const std::string& name, std::vector<statement> statements, std::size_t group,
             const std::string& title) {
        if (groups_.size() <= group) groups_.resize(group + 1);
        groups_[group].name = title;
        groups_[group].counted.resize(statements.size());
        groups_[group].histograms.resize(statements.size());
        if (groups_[group].statements.empty()) groups_[group].statements = statements;
        code made{group, name, std::move(statements), {}, {}};
        std::size_t number = 0;
        for (const auto& one : made.statements) {
            const bool wanted = one.is == statement::kind::capture && to_ != nullptr;
            if (wanted) ++number;
            made.events.push_back(wanted ? &event_of(name, number, one) : nullptr);
        }
        code_.push_back(std::move(made));
    }

    /// A firing whose action ran, and what it stored.
    void ran(const fired& who, std::span<const std::byte> output) {
        code& of = code_.at(who.clause);
        const std::vector<statement>& statements = of.statements;
        if (who.faults != 0) ++unreadable_;
        counted_together& counting = groups_[of.in];
        for (std::size_t i = 0; i < statements.size(); ++i) {
            const statement& one = statements[i];
            switch (one.is) {
                case statement::kind::capture:
                    capture(who, of, i, output);
                    break;
                case statement::kind::count:
                    counting.counted[i].add(key(who, one.fields, 0, output));
                    break;
                case statement::kind::histogram:
                    if (is_unreadable(one.fields[0], output)) break;  // told in the summary
                    counting.histograms[i].add(
                        key(who, one.fields, 1, output),
                        static_cast<std::int64_t>(word(one.fields[0], output)),
                        one.fields[0].type == trace_ring::field_type::i64);
                    break;
            }
        }
    }
    /// The source of firings has lost so many.
    void lost(std::uint64_t count) {
        lost_ += count;
        while (to_ != nullptr && count != 0) {
            const auto some =
                static_cast<std::uint32_t>(std::min<std::uint64_t>(count, UINT32_MAX));
            trace_ring::runtime_event::lose(*to_, some);
            count -= some;
        }
    }

    [[nodiscard]] std::uint64_t lost() const noexcept { return lost_; }
    [[nodiscard]] std::uint64_t unrecorded() const noexcept { return unrecorded_; }
    /// Firings of which the action could not read all.
    [[nodiscard]] std::uint64_t unreadable() const noexcept { return unreadable_; }

    /// Counts and histograms.
    void show() const {
        for (const auto& of : groups_) {
            for (std::size_t i = 0; i < of.statements.size(); ++i) {
                const statement& one = of.statements[i];
                const auto shown = [&](std::string_view key) { return text_of(key, i); };
                if (one.is == statement::kind::count)
                    of.counted[i].show(*out_, title("count", of, one), shown);
                if (one.is == statement::kind::histogram)
                    of.histograms[i].show(*out_, title("hist", of, one), shown);
            }
        }
        out_->flush();
    }

private:
    struct code {
        std::size_t in = 0;  // a group
        std::string name;
        std::vector<statement> statements;
        std::vector<trace_ring::runtime_event*> events;
        /// Of captures that could not read all: by the statement, and which fields those are.
        std::map<std::pair<std::size_t, std::vector<bool>>, trace_ring::runtime_event*> partial{};
    };
    struct counted_together {
        std::string name;
        std::vector<statement> statements;
        std::vector<counts> counted;
        std::vector<histogram> histograms;
    };

    static constexpr std::uint16_t longest_unreadable = 1024;

    [[nodiscard]] static bool is_unreadable(const stored_field& of,
                                            std::span<const std::byte> output) {
        if (of.faults_behind == 0) return false;
        const auto at = [&](std::uint32_t offset) {
            std::uint16_t told = 0;
            if (offset != 0) std::memcpy(&told, output.subspan(offset, 2).data(), 2);
            return told;
        };
        return at(of.faults_behind) != at(of.faults_before);
    }
    /// The event of a clause's capture number `number`, from 1; `without` the fields that are
    /// marked there, which it names instead.
    [[nodiscard]] static trace_ring::runtime_event& event_of(
        const std::string& name, std::size_t number, const statement& one,
        const std::vector<bool>& without = {}) {
        using field = trace_ring::runtime_event::field;
        using trace_ring::field_type;
        std::vector<field> fields{
            {"pid", field_type::u32}, {"tid", field_type::u32}, {"bits", field_type::u8}};
        // A name that is there already has its place behind it.
        std::vector<std::string> names;
        names.reserve(one.fields.size());
        for (const auto& each : one.fields) {
            std::string wanted = each.name.substr(0, 200);
            const auto taken = [&](const std::string& known) { return known == wanted; };
            if (wanted == "pid" || wanted == "tid" || wanted == "bits" ||
                std::any_of(names.begin(), names.end(), taken)) {
                wanted += "#" + std::to_string(names.size() + 1);
            }
            names.push_back(std::move(wanted));
        }
        std::vector<std::vector<trace_ring::runtime_event::named_value>> values(one.fields.size());
        for (std::size_t i = 0; i < one.fields.size(); ++i) {
            if (one.fields[i].values == nullptr) continue;
            for (const auto& each : one.fields[i].values->all())
                values[i].push_back({each.value, each.name});
        }
        for (std::size_t i = 0; i < one.fields.size(); ++i) {
            if (!without.empty() && without[i]) continue;
            fields.push_back({names[i], one.fields[i].type, one.fields[i].form,
                              static_cast<std::uint16_t>(one.fields[i].count), values[i]});
        }
        if (!without.empty()) {
            fields.push_back({"unreadable", field_type::character, trace_ring::field_form::variable,
                              longest_unreadable});
        }
        return trace_ring::runtime_event::make(
            number == 1 ? name : name + "#" + std::to_string(number), fields);
    }
    [[nodiscard]] static std::string title(std::string_view what, const counted_together& of,
                                           const statement& one) {
        std::string made = of.name + " " + std::string(what) + "(";
        for (std::size_t i = 0; i < one.fields.size(); ++i)
            made += (i == 0 ? "" : ", ") + one.fields[i].name;
        return made + ")";
    }
    [[nodiscard]] static std::uint64_t word(const stored_field& of,
                                            std::span<const std::byte> output) {
        std::uint64_t value = 0;
        std::memcpy(&value, output.subspan(of.offset, 8).data(), 8);
        return value;
    }
    /// What it stored, as readers of a trace have it: of a text as many bytes as there are.
    [[nodiscard]] static trace_ring::reduce::field_value value_of(
        const stored_field& of, std::span<const std::byte> output) {
        using trace_ring::field_form;
        using trace_ring::field_type;
        trace_ring::reduce::field_info field;
        field.type = of.type;
        field.form = of.form;
        field.values = of.values;
        if (of.constant) {
            return {field, reinterpret_cast<const std::byte*>(of.constant->data()),
                    of.constant->size(), false};
        }
        std::size_t count = of.count;
        std::size_t at = of.offset;
        bool cut = false;
        if (of.form == field_form::variable) {
            std::uint16_t told = 0;
            std::memcpy(&told, output.subspan(at, 2).data(), 2);
            cut = (told & trace_ring::point::text_was_cut) != 0;
            count = std::min<std::size_t>(told & 0x7FFFU, of.count);
            at += 2;
        } else if (of.form == field_form::array) {
            // A text ends at its first 0, and so does a stack.
            if (of.type == field_type::character) count = until_zero<char>(output, at, count);
            if (of.type == field_type::address) {
                count = until_zero<std::uint64_t>(output, at, count);
            }
        }
        return {field, output.subspan(at).data(), count, cut};
    }
    template <class Element>
    [[nodiscard]] static std::size_t until_zero(std::span<const std::byte> output, std::size_t at,
                                                std::size_t most) {
        for (std::size_t i = 0; i < most; ++i) {
            Element one{};
            std::memcpy(&one, output.subspan(at + i * sizeof one, sizeof one).data(), sizeof one);
            if (one == Element{}) return i;
        }
        return most;
    }
    /// Whose keys these are, and their bytes.
    [[nodiscard]] std::string_view key(const fired& who, const std::vector<stored_field>& fields,
                                       std::size_t first, std::span<const std::byte> output) {
        key_.assign(reinterpret_cast<const char*>(&who.clause), sizeof who.clause);
        for (std::size_t i = first; i < fields.size(); ++i) {
            const stored_field& one = fields[i];
            if (one.constant) continue;  // by the clause
            const std::size_t unit = trace_ring::size_of(one.type);
            const bool variable = one.form == trace_ring::field_form::variable;
            const std::size_t bytes = unit * one.count + (variable ? 2 : 0);
            const bool unreadable = is_unreadable(one, output);
            key_ += unreadable ? '\1' : '\0';
            const std::size_t begin = key_.size();
            if (unreadable) {
                key_.append(bytes, '\0');
                continue;
            }
            if (is_stack(one)) {
                const std::uint32_t number =
                    stacks_->number(static_cast<::pid_t>(who.pid), who.time, value_of(one, output));
                key_.append(reinterpret_cast<const char*>(&number), sizeof number);
                continue;
            }
            const auto from = output.subspan(one.offset, bytes);
            key_.append(reinterpret_cast<const char*>(from.data()), from.size());
            // What lies behind a text's end does not tell it from others.
            if (!variable && one.type == trace_ring::field_type::character) {
                const std::size_t end = key_.find('\0', begin);
                if (end != std::string::npos)
                    std::fill(key_.begin() + static_cast<std::ptrdiff_t>(end), key_.end(), '\0');
            }
        }
        return key_;
    }
    /// Of a statement's key.
    [[nodiscard]] std::string text_of(std::string_view key, std::size_t number) const {
        std::uint32_t clause = 0;
        std::memcpy(&clause, key.data(), sizeof clause);
        const statement& one = code_.at(clause).statements[number];
        const auto bytes = std::as_bytes(std::span(key)).subspan(sizeof clause);
        trace_ring::exporter::text_buffer made;
        std::size_t at = 0;
        const std::size_t first = one.is == statement::kind::histogram ? 1 : 0;
        for (std::size_t i = first; i < one.fields.size(); ++i) {
            stored_field here = one.fields[i];
            if (here.constant) {
                if (i != first) made += ", ";
                trace_ring::exporter::text_writer::append_value(made, value_of(here, bytes));
                continue;
            }
            const bool unreadable = key[sizeof clause + at] != 0;
            if (!unreadable && is_stack(here)) {
                std::uint32_t stack = 0;
                std::memcpy(&stack, bytes.subspan(at + 1).data(), sizeof stack);
                at += 1 + sizeof stack;
                if (i != first) made += ", ";
                made += stacks_->text_of(stack);
                continue;
            }
            here.offset = static_cast<std::uint32_t>(at + 1);
            at += 1 + trace_ring::size_of(here.type) * here.count +
                  (here.form == trace_ring::field_form::variable ? 2 : 0);
            if (i != first) made += ", ";
            if (unreadable) {
                made += not_read;
                continue;
            }
            trace_ring::exporter::text_writer::append_value(made, value_of(here, bytes));
        }
        return std::string(made.view());
    }

    [[nodiscard]] bool is_stack(const stored_field& of) const noexcept {
        return stacks_ && of.type == trace_ring::field_type::address &&
               of.form == trace_ring::field_form::array;
    }
    void capture(const fired& who, code& of, std::size_t number,
                 std::span<const std::byte> output) {
        const std::vector<stored_field>& fields = of.statements[number].fields;
        std::vector<bool> without;
        if (who.faults != 0) {
            for (const auto& each : fields) without.push_back(is_unreadable(each, output));
            if (std::find(without.begin(), without.end(), true) == without.end()) without.clear();
        }
        if (to_ == nullptr) {
            trace_ring::exporter::text_buffer line;
            line += of.name + " pid=" + std::to_string(who.pid) + " tid=" + std::to_string(who.tid);
            for (std::size_t i = 0; i < fields.size(); ++i) {
                line += " " + fields[i].name + "=";
                if (!without.empty() && without[i]) {
                    line += not_read;
                } else if (is_stack(fields[i])) {
                    line += stacks_->text(static_cast<::pid_t>(who.pid), who.time,
                                          value_of(fields[i], output), true);
                } else {
                    trace_ring::exporter::text_writer::append_value(line,
                                                                    value_of(fields[i], output));
                }
            }
            *out_ << line.view() << '\n';
            return;
        }
        trace_ring::runtime_event& event =
            without.empty() ? *of.events[number] : partial_event(of, number, without);
        payload_.assign(event.fixed_bytes() / 8, 0);
        const auto put = [&](std::size_t field, const void* from, std::size_t bytes) {
            std::memcpy(reinterpret_cast<std::byte*>(payload_.data()) + event.offset(field), from,
                        bytes);
        };
        put(0, &who.pid, sizeof who.pid);
        put(1, &who.tid, sizeof who.tid);
        put(2, &who.bits, sizeof who.bits);
        std::size_t field = 3;
        const auto put_text = [&](std::string_view data, bool cut) {
            const auto told =
                static_cast<std::uint16_t>(data.size() | (cut ? trace_ring::variable_cut_bit : 0U));
            put(field++, &told, sizeof told);
            const std::size_t at = payload_.size();
            payload_.resize(at + (data.size() + 7) / 8);
            if (!data.empty()) std::memcpy(payload_.data() + at, data.data(), data.size());
        };
        std::string unreadable;
        for (std::size_t i = 0; i < fields.size(); ++i) {
            const stored_field& one = fields[i];
            if (!without.empty() && without[i]) {
                unreadable += (unreadable.empty() ? "" : ", ") + one.name;
                continue;
            }
            if (is_stack(one)) {
                unrecorded_ += modules_->record(*to_, static_cast<::pid_t>(who.pid), who.time,
                                                value_of(one, output));
            }
            if (one.form != trace_ring::field_form::variable) {
                const std::size_t bytes = trace_ring::size_of(one.type) * one.count;
                put(field++, output.subspan(one.offset, bytes).data(), bytes);
                continue;
            }
            const auto value = value_of(one, output);
            put_text(value.text(), value.cut());
        }
        if (!without.empty())
            put_text(std::string_view(unreadable).substr(0, longest_unreadable),
                     unreadable.size() > longest_unreadable);
        firing_clock::fired(who.time);
        if (!event.record(*to_, payload_)) ++unrecorded_;
    }

    /// A type for each combination that comes, and after many for none of the fields.
    [[nodiscard]] trace_ring::runtime_event& partial_event(code& of, std::size_t number,
                                                           std::vector<bool>& without) {
        constexpr std::size_t most = 64;
        if (of.partial.size() >= most && !of.partial.contains({number, without}))
            without.assign(without.size(), true);
        auto& event = of.partial[{number, without}];
        if (event == nullptr) {
            std::size_t captures = 0;
            for (std::size_t i = 0; i <= number; ++i)
                captures += of.statements[i].is == statement::kind::capture ? 1U : 0U;
            event = &event_of(of.name, captures, of.statements[number], without);
        }
        return *event;
    }

    static constexpr std::string_view not_read = "(unreadable)";

    recorder* to_;
    std::ostream* out_;
    std::optional<named_stacks> stacks_;
    std::optional<module_records> modules_;
    std::vector<code> code_;
    std::vector<counted_together> groups_;
    std::vector<std::uint64_t> payload_;
    std::string key_;
    std::uint64_t lost_ = 0;
    std::uint64_t unrecorded_ = 0;
    std::uint64_t unreadable_ = 0;
};

}  // namespace trace_clauses
