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
#include <cstdio>
#include <cstring>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <trace_ring/point/run.hpp>
#include <trace_ring/record/field.hpp>
#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/recorder/runtime_event.hpp>

#include "../language/compile.hpp"
#include "aggregates.hpp"
#include "firing_clock.hpp"

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

    /// `to` null: no trace is written, and what is captured is shown, a line each.
    results(recorder* to, std::ostream& out) : to_(to), out_(&out) {}

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
        code made{group, name, std::move(statements), {}};
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
        const code& of = code_.at(who.clause);
        const std::vector<statement>& statements = of.statements;
        counted_together& counting = groups_[of.in];
        for (std::size_t i = 0; i < statements.size(); ++i) {
            const statement& one = statements[i];
            switch (one.is) {
                case statement::kind::capture:
                    capture(who, of, i, output);
                    break;
                case statement::kind::count:
                    counting.counted[i].add(keys(one.fields, 0, output));
                    break;
                case statement::kind::histogram:
                    counting.histograms[i].add(
                        keys(one.fields, 1, output),
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

    /// Counts and histograms.
    void show() const {
        for (const auto& of : groups_) {
            for (std::size_t i = 0; i < of.statements.size(); ++i) {
                const statement& one = of.statements[i];
                if (one.is == statement::kind::count)
                    of.counted[i].show(*out_, title("count", of, one));
                if (one.is == statement::kind::histogram)
                    of.histograms[i].show(*out_, title("hist", of, one));
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
    };
    struct counted_together {
        std::string name;
        std::vector<statement> statements;
        std::vector<counts> counted;
        std::vector<histogram> histograms;
    };

    /// The event of a clause's capture number `number`, from 1.
    [[nodiscard]] static trace_ring::runtime_event& event_of(const std::string& name,
                                                             std::size_t number,
                                                             const statement& one) {
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
        for (std::size_t i = 0; i < one.fields.size(); ++i) {
            fields.push_back({names[i], one.fields[i].type, one.fields[i].form,
                              static_cast<std::uint16_t>(one.fields[i].count)});
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
    /// Of a text: as many bytes as there are.
    [[nodiscard]] static std::string_view text(const stored_field& of,
                                               std::span<const std::byte> output, bool& cut) {
        std::size_t length = of.count;
        std::size_t at = of.offset;
        if (of.form == trace_ring::field_form::variable) {
            std::uint16_t told = 0;
            std::memcpy(&told, output.subspan(at, 2).data(), 2);
            cut = (told & trace_ring::point::text_was_cut) != 0;
            length = std::min<std::size_t>(told & 0x7FFFU, of.count);
            at += 2;
        }
        const auto bytes = output.subspan(at, length);
        const std::string_view whole(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        return of.form == trace_ring::field_form::variable ? whole
                                                           : whole.substr(0, whole.find('\0'));
    }
    [[nodiscard]] static std::string shown(const stored_field& of,
                                           std::span<const std::byte> output) {
        using trace_ring::field_type;
        if (of.type == field_type::character) {
            bool cut = false;
            std::string made;
            for (const char c : text(of, output, cut)) {
                made += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? '?' : c;
            }
            return cut ? made + "..." : made;
        }
        std::string made;
        const std::size_t unit = trace_ring::size_of(of.type);
        for (std::size_t i = 0; i < of.count; ++i) {
            std::uint64_t value = 0;
            std::memcpy(&value, output.subspan(of.offset + i * unit, unit).data(), unit);
            if (of.type == field_type::address && of.form == trace_ring::field_form::array &&
                value == 0)
                break;
            if (i != 0) made += ' ';
            made += number(of.type, value);
        }
        return of.form == trace_ring::field_form::array ? "[" + made + "]" : made;
    }
    [[nodiscard]] static std::string number(trace_ring::field_type type, std::uint64_t value) {
        using trace_ring::field_type;
        char text[32];
        switch (type) {
            case field_type::address:
                std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
                return text;
            case field_type::i8:
                return std::to_string(static_cast<std::int8_t>(value));
            case field_type::i16:
                return std::to_string(static_cast<std::int16_t>(value));
            case field_type::i32:
                return std::to_string(static_cast<std::int32_t>(value));
            case field_type::i64:
                return std::to_string(static_cast<std::int64_t>(value));
            case field_type::f32: {
                float real = 0;
                std::memcpy(&real, &value, sizeof real);
                std::snprintf(text, sizeof text, "%.9g", static_cast<double>(real));
                return text;
            }
            case field_type::f64: {
                double real = 0;
                std::memcpy(&real, &value, sizeof real);
                std::snprintf(text, sizeof text, "%.17g", real);
                return text;
            }
            default:
                return std::to_string(value);
        }
    }
    [[nodiscard]] static std::string keys(const std::vector<stored_field>& fields,
                                          std::size_t first, std::span<const std::byte> output) {
        std::string made;
        for (std::size_t i = first; i < fields.size(); ++i) {
            made += (i == first ? "" : ", ") + shown(fields[i], output);
        }
        return made;
    }

    void capture(const fired& who, const code& of, std::size_t number,
                 std::span<const std::byte> output) {
        const std::vector<stored_field>& fields = of.statements[number].fields;
        if (to_ == nullptr) {
            std::string line =
                of.name + " pid=" + std::to_string(who.pid) + " tid=" + std::to_string(who.tid);
            for (const auto& each : fields) line += " " + each.name + "=" + shown(each, output);
            *out_ << line << (who.faults != 0 ? " (not all could be read)" : "") << '\n';
            return;
        }
        trace_ring::runtime_event& event = *of.events[number];
        payload_.assign(event.fixed_bytes() / 8, 0);
        const auto put = [&](std::size_t field, const void* from, std::size_t bytes) {
            std::memcpy(reinterpret_cast<std::byte*>(payload_.data()) + event.offset(field), from,
                        bytes);
        };
        put(0, &who.pid, sizeof who.pid);
        put(1, &who.tid, sizeof who.tid);
        put(2, &who.bits, sizeof who.bits);
        for (std::size_t i = 0; i < fields.size(); ++i) {
            const stored_field& one = fields[i];
            if (one.form != trace_ring::field_form::variable) {
                const std::size_t bytes = trace_ring::size_of(one.type) * one.count;
                put(3 + i, output.subspan(one.offset, bytes).data(), bytes);
                continue;
            }
            bool cut = false;
            const std::string_view data = text(one, output, cut);
            const auto told =
                static_cast<std::uint16_t>(data.size() | (cut ? trace_ring::variable_cut_bit : 0U));
            put(3 + i, &told, sizeof told);
            const std::size_t at = payload_.size();
            payload_.resize(at + (data.size() + 7) / 8);
            std::memcpy(payload_.data() + at, data.data(), data.size());
        }
        firing_clock::fired(who.time);
        if (!event.record(*to_, payload_)) ++unrecorded_;
    }

    recorder* to_;
    std::ostream* out_;
    std::vector<code> code_;
    std::vector<counted_together> groups_;
    std::vector<std::uint64_t> payload_;
    std::uint64_t lost_ = 0;
    std::uint64_t unrecorded_ = 0;
};

}  // namespace trace_clauses
