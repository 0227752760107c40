// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Processes the firings of a clause's actions: events in a trace, lines on the screen, counts and
/// histograms.
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
#include "captured_events.hpp"
#include "named_stacks.hpp"
#include "stack_names.hpp"
#include "stored_values.hpp"
#include "traced_threads.hpp"

namespace trace_clauses {

/// To be used by one thread.
class results {
public:
    using recorder = trace_ring::basic_recorder<firing_trace>;

    /// If `to` is null, no trace is written, and each capture is printed as a line. `names`, unless
    /// null, provides names for the addresses of stacks.
    results(recorder* to, std::ostream& out, stack_names* names = nullptr) : out_(&out) {
        if (names != nullptr) stacks_.emplace(*names);
        if (to != nullptr) captured_.emplace(*to, names);
    }

    /// Adds the code of a clause, and its output. Its number is the number of codes added before.
    /// `name` is the name of its events. Codes with the same `group` count together, and have the
    /// same number of statements. Throws std::invalid_argument like runtime_event::make.
    void add(const std::string& name, std::vector<statement> statements, std::size_t group,
             const std::string& title) {
        if (groups_.size() <= group) groups_.resize(group + 1);
        groups_[group].name = title;
        groups_[group].counted.resize(statements.size());
        groups_[group].histograms.resize(statements.size());
        if (groups_[group].statements.empty()) groups_[group].statements = statements;
        if (captured_) captured_->add(name, statements);
        code_.push_back({group, name, std::move(statements)});
    }
    /// Like captured_events, if a trace is written.
    void name(std::uint32_t pid, std::string name) {
        if (captured_) captured_->name(pid, std::move(name));
    }
    void join(std::uint32_t entry, std::uint32_t exit) {
        if (captured_) captured_->join(entry, exit);
    }

    /// Processes a firing whose action ran, with its output.
    void ran(const fired& who, std::span<const std::byte> output) {
        const code& of = code_.at(who.clause);
        const std::vector<statement>& statements = of.statements;
        if (who.faults != 0) ++unreadable_;
        counted_together& counting = groups_[of.in];
        for (std::size_t i = 0; i < statements.size(); ++i) {
            const statement& one = statements[i];
            switch (one.is) {
                case statement::kind::capture:
                    if (captured_) {
                        captured_->record(who, i, output);
                    } else {
                        print(who, of, one.fields, output);
                    }
                    break;
                case statement::kind::count:
                    counting.counted[i].add(key(who, one.fields, 0, output));
                    break;
                case statement::kind::histogram:
                    if (is_unreadable(one.fields[0], output)) break;  // the summary reports these
                    counting.histograms[i].add(
                        key(who, one.fields, 1, output),
                        static_cast<std::int64_t>(word(one.fields[0], output)),
                        one.fields[0].type == trace_ring::field_type::i64);
                    break;
            }
        }
    }
    /// Reports that the source of firings has lost this many.
    void lost(std::uint64_t count) {
        lost_ += count;
        if (captured_) captured_->lost(count);
    }

    [[nodiscard]] std::uint64_t lost() const noexcept { return lost_; }
    [[nodiscard]] std::uint64_t unrecorded() const noexcept {
        return captured_ ? captured_->unrecorded() : 0;
    }
    /// Number of firings for which the action could not read everything.
    [[nodiscard]] std::uint64_t unreadable() const noexcept { return unreadable_; }

    /// Prints counts and histograms.
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
    };
    struct counted_together {
        std::string name;
        std::vector<statement> statements;
        std::vector<counts> counted;
        std::vector<histogram> histograms;
    };

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
    /// The key's fields as bytes.
    [[nodiscard]] std::string_view key(const fired& who, const std::vector<stored_field>& fields,
                                       std::size_t first, std::span<const std::byte> output) {
        key_.assign(reinterpret_cast<const char*>(&who.clause), sizeof who.clause);
        for (std::size_t i = first; i < fields.size(); ++i) {
            const stored_field& one = fields[i];
            if (one.constant) continue;  // determined by the clause
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
            if (has_names(one)) {
                const std::uint32_t number = stacks_->number(static_cast<::pid_t>(who.pid),
                                                             who.time, stored_value(one, output));
                key_.append(reinterpret_cast<const char*>(&number), sizeof number);
                continue;
            }
            const auto from = output.subspan(one.offset, bytes);
            key_.append(reinterpret_cast<const char*>(from.data()), from.size());
            // Bytes after the end of a text must not distinguish keys.
            if (!variable && one.type == trace_ring::field_type::character) {
                const std::size_t end = key_.find('\0', begin);
                if (end != std::string::npos)
                    std::fill(key_.begin() + static_cast<std::ptrdiff_t>(end), key_.end(), '\0');
            }
        }
        return key_;
    }
    /// The text of a statement's key.
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
                trace_ring::exporter::text_writer::append_value(made, stored_value(here, bytes));
                continue;
            }
            const bool unreadable = key[sizeof clause + at] != 0;
            if (!unreadable && has_names(here)) {
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
            trace_ring::exporter::text_writer::append_value(made, stored_value(here, bytes));
        }
        return std::string(made.view());
    }

    /// Returns whether the field is a stack with names.
    [[nodiscard]] bool has_names(const stored_field& of) const noexcept {
        return stacks_ && is_stack(of);
    }
    void print(const fired& who, const code& of, const std::vector<stored_field>& fields,
               std::span<const std::byte> output) {
        trace_ring::exporter::text_buffer line;
        line += of.name + " pid=" + std::to_string(who.pid) + " tid=" + std::to_string(who.tid);
        for (const auto& each : fields) {
            line += " " + each.name + "=";
            if (who.faults != 0 && is_unreadable(each, output)) {
                line += not_read;
            } else if (has_names(each)) {
                line += stacks_->text(static_cast<::pid_t>(who.pid), who.time,
                                      stored_value(each, output), true);
            } else {
                trace_ring::exporter::text_writer::append_value(line, stored_value(each, output));
            }
        }
        *out_ << line.view() << '\n';
    }

    static constexpr std::string_view not_read = "(unreadable)";

    std::ostream* out_;
    std::optional<named_stacks> stacks_;
    std::optional<captured_events> captured_;  // if a trace is written
    std::vector<code> code_;
    std::vector<counted_together> groups_;
    std::string key_;
    std::uint64_t lost_ = 0;
    std::uint64_t unreadable_ = 0;
};

}  // namespace trace_clauses
