// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Records what clauses capture as events of a trace. If a function or system call is captured at
/// its entry and at its exit, and neither clause has a predicate, the two captures form a span.
/// @code
///   captured_events events(recorder, names);
///   events.add("malloc", statements);
///   events.record({.clause = 0, .time = ns, .pid = 1, .tid = 1}, 0, output);
/// @endcode

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <trace_ring/record/field.hpp>
#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/recorder/runtime_event.hpp>

#include "../firings/latest.hpp"
#include "../language/compile.hpp"
#include "module_records.hpp"
#include "stack_names.hpp"
#include "stored_values.hpp"
#include "traced_threads.hpp"

namespace trace_clauses {

/// To be used by one thread.
class captured_events {
public:
    using recorder = trace_ring::basic_recorder<firing_trace>;

    /// `names`, unless null, provides names for the addresses of stacks. Both must outlive the
    /// object.
    captured_events(recorder& to, stack_names* names) : to_(to), threads_(to) {
        if (names != nullptr) modules_.emplace(*names);
    }

    /// Adds the code of a clause. Its number is the number of codes added before. Throws
    /// std::invalid_argument like runtime_event::make.
    void add(const std::string& name, const std::vector<statement>& statements) {
        code made{.name = name, .statements = statements};
        for (std::size_t i = 0; i < statements.size(); ++i) {
            const bool wanted = statements[i].is == statement::kind::capture;
            made.events.push_back(wanted ? &instant_of(made, i, {}) : nullptr);
        }
        code_.push_back(std::move(made));
    }
    /// The first capture of code `exit` ends the span that the first capture of code `entry`
    /// begins. Nothing changes if either has no capture, or if the two do not fit into one event.
    void join(std::uint32_t entry, std::uint32_t exit) {
        code& begins = code_.at(entry);
        code& ends = code_.at(exit);
        const auto first = first_capture(begins), last = first_capture(ends);
        if (!first || !last || begins.span.event != nullptr || ends.span.event != nullptr) return;
        event_fields fields;
        fields.add(begins.statements[*first].fields, {});
        const std::size_t results_at = fields.all.size();
        fields.add(ends.statements[*last].fields, {});
        const std::span all(fields.all);
        try {
            auto& made = trace_ring::runtime_event::make_span(begins.name, all.first(results_at),
                                                              all.subspan(results_at));
            begins.span = {&made, *first, entry, 0};
            ends.span = {&made, *last, entry, results_at};
        } catch (const std::invalid_argument&) {
        }
    }

    /// Like traced_threads::name.
    void name(std::uint32_t pid, std::string name) { threads_.name(pid, std::move(name)); }

    /// What statement number `number` of the code captured.
    void record(const fired& who, std::size_t number, std::span<const std::byte> output) {
        code& of = code_.at(who.clause);
        const std::vector<stored_field>& fields = of.statements[number].fields;
        std::vector<bool> without;
        if (who.faults != 0) {
            for (const auto& each : fields) without.push_back(is_unreadable(each, output));
            if (std::find(without.begin(), without.end(), true) == without.end()) without.clear();
        }
        for (std::size_t i = 0; modules_ && i < fields.size(); ++i) {
            if (!is_stack(fields[i]) || (!without.empty() && without[i])) continue;
            threads_.own_turn(who.time);
            unrecorded_ += modules_->record(to_, static_cast<::pid_t>(who.pid), who.time,
                                            stored_value(fields[i], output));
        }
        const auto turn = threads_.turn_of(who);
        if (threads_.is_new_process())
            open_.forget_if([&](const call& each) { return std::get<0>(each) == who.pid; });
        const bool is_joined = of.span.event != nullptr && of.span.statement == number;
        const call its{who.pid, who.call != 0 ? who.call : who.tid, of.span.begun_by};
        if (is_joined && of.span.results_at == 0) {
            static_cast<void>(open_.take(its));  // a call that was left by a jump or an exception
            if (without.empty()) return begin(of, who, its, output);
        } else if (is_joined) {
            if (const auto span = open_.take(its)) {
                end(of, *span, without, output);
                if (without.empty()) return;
            }
        }
        trace_ring::runtime_event& event =
            without.empty() ? *of.events[number] : partial_event(of, number, without);
        payload made(event, event.fixed_bytes());
        made.put_thread(who);
        const std::string unreadable = made.put(fields, without, output);
        if (!without.empty())
            made.put_text(std::string_view(unreadable).substr(0, longest_unreadable),
                          unreadable.size() > longest_unreadable);
        count(event.record(to_, made.words));
    }
    /// Reports that this many firings were lost before the next record.
    void lost(std::uint64_t count) {
        open_.clear();  // an entry may be among them, and its exit would then end an earlier call
        const auto turn = threads_.last_turn();
        while (count != 0) {
            const auto some =
                static_cast<std::uint32_t>(std::min<std::uint64_t>(count, UINT32_MAX));
            trace_ring::runtime_event::lose(to_, some);
            count -= some;
        }
    }
    [[nodiscard]] std::uint64_t unrecorded() const noexcept { return unrecorded_; }

private:
    /// How a capture contributes to a span.
    struct joined {
        trace_ring::runtime_event* event = nullptr;  // null: it does not
        std::size_t statement = 0;
        std::uint32_t begun_by = 0;
        std::size_t results_at = 0;  // for an end: the index of its first field
    };
    struct code {
        std::string name{};
        std::vector<statement> statements{};
        std::vector<trace_ring::runtime_event*> events{};
        joined span{};
        /// For captures with unreadable values: the event type, by statement and by the set of
        /// unreadable fields.
        std::map<std::pair<std::size_t, std::vector<bool>>, trace_ring::runtime_event*> partial{};
    };
    /// The process, the call (for a system call, the thread), and the code at its entry.
    using call = std::tuple<std::uint32_t, std::uint64_t, std::uint32_t>;

    /// The fields of an event, and the data that they refer to.
    struct event_fields {
        using field = trace_ring::runtime_event::field;

        event_fields() {
            using trace_ring::field_type;
            for (const auto& [name, type] : {std::pair{"pid", field_type::u32},
                                             {"tid", field_type::u32},
                                             {"bits", field_type::u8}}) {
                all.push_back({name, type});
            }
        }
        /// Adds the fields that are not marked in `without`. If a name is already present, its
        /// index is appended.
        void add(const std::vector<stored_field>& captured, const std::vector<bool>& without) {
            for (std::size_t i = 0; i < captured.size(); ++i) {
                const stored_field& one = captured[i];
                ++places;
                std::string name = one.name.substr(0, 200);
                if (std::any_of(all.begin(), all.end(),
                                [&](const field& known) { return known.name == name; }))
                    name += "#" + std::to_string(places);
                if (!without.empty() && without[i]) continue;
                names.push_back(std::move(name));
                values.emplace_back();
                if (one.values != nullptr) {
                    for (const auto& each : one.values->all())
                        values.back().push_back({each.value, each.name});
                }
                all.push_back({names.back(), one.type, one.form,
                               static_cast<std::uint16_t>(one.count), values.back()});
            }
        }

        std::vector<field> all{};
        std::deque<std::string> names{};
        std::deque<std::vector<trace_ring::runtime_event::named_value>> values{};
        std::size_t places = 0;
    };

    /// The payload of a record.
    struct payload {
        payload(const trace_ring::runtime_event& event, std::size_t bytes)
            : of(event), words(bytes / 8) {}

        void put_bytes(std::size_t number, const void* from, std::size_t bytes) {
            std::memcpy(reinterpret_cast<std::byte*>(words.data()) + of.offset(number), from,
                        bytes);
        }
        void put_thread(const fired& who) {
            put_bytes(field++, &who.pid, sizeof who.pid);
            put_bytes(field++, &who.tid, sizeof who.tid);
            put_bytes(field++, &who.bits, sizeof who.bits);
        }
        void put_text(std::string_view data, bool cut) {
            const auto told =
                static_cast<std::uint16_t>(data.size() | (cut ? trace_ring::variable_cut_bit : 0U));
            put_bytes(field++, &told, sizeof told);
            const std::size_t at = words.size();
            words.resize(at + (data.size() + 7) / 8);
            if (!data.empty()) std::memcpy(words.data() + at, data.data(), data.size());
        }
        /// Returns the names of the fields that are marked in `without`.
        std::string put(const std::vector<stored_field>& fields, const std::vector<bool>& without,
                        std::span<const std::byte> output) {
            std::string left_out;
            for (std::size_t i = 0; i < fields.size(); ++i) {
                const stored_field& one = fields[i];
                if (!without.empty() && without[i]) {
                    left_out += (left_out.empty() ? "" : ", ") + one.name;
                } else if (one.form == trace_ring::field_form::variable) {
                    const auto value = stored_value(one, output);
                    put_text(value.text(), value.cut());
                } else {
                    const std::size_t bytes = trace_ring::size_of(one.type) * one.count;
                    put_bytes(field++, output.subspan(one.offset, bytes).data(), bytes);
                }
            }
            return left_out;
        }

        const trace_ring::runtime_event& of;
        std::vector<std::uint64_t> words;
        std::size_t field = 0;
    };

    static constexpr std::uint16_t longest_unreadable = 1024;
    /// The exit of an older call becomes a separate event.
    static constexpr std::size_t most_open = 65536;

    [[nodiscard]] static std::optional<std::size_t> first_capture(const code& of) {
        const auto found =
            std::find_if(of.statements.begin(), of.statements.end(),
                         [](const statement& one) { return one.is == statement::kind::capture; });
        if (found == of.statements.end()) return std::nullopt;
        return static_cast<std::size_t>(found - of.statements.begin());
    }
    /// The event for a capturing statement. It omits the fields that are marked in `without`, and
    /// names them instead.
    [[nodiscard]] static trace_ring::runtime_event& instant_of(const code& of, std::size_t number,
                                                               const std::vector<bool>& without) {
        event_fields fields;
        fields.add(of.statements[number].fields, without);
        if (!without.empty()) {
            fields.all.push_back({"unreadable", trace_ring::field_type::character,
                                  trace_ring::field_form::variable, longest_unreadable});
        }
        const auto captures = std::count_if(
            of.statements.begin(), of.statements.begin() + static_cast<std::ptrdiff_t>(number) + 1,
            [](const statement& one) { return one.is == statement::kind::capture; });
        return trace_ring::runtime_event::make(
            captures == 1 ? of.name : of.name + "#" + std::to_string(captures), fields.all);
    }
    /// Makes a type for each combination that occurs. After many of them, it uses the type without
    /// any of the fields.
    [[nodiscard]] trace_ring::runtime_event& partial_event(code& of, std::size_t number,
                                                           std::vector<bool>& without) {
        constexpr std::size_t most = 64;
        if (of.partial.size() >= most && !of.partial.contains({number, without}))
            without.assign(without.size(), true);
        auto& event = of.partial[{number, without}];
        if (event == nullptr) event = &instant_of(of, number, without);
        return *event;
    }

    void begin(const code& of, const fired& who, const call& its,
               std::span<const std::byte> output) {
        payload made(*of.span.event, of.span.event->fixed_bytes());
        made.put_thread(who);
        static_cast<void>(made.put(of.statements[of.span.statement].fields, {}, output));
        trace_ring::runtime_event::begun span;
        const bool is_recorded = of.span.event->begin(to_, made.words, span);
        count(is_recorded);
        if (is_recorded) open_.put(its, span);
    }
    /// Ends the span, without results if any of them could not be read.
    void end(const code& of, const trace_ring::runtime_event::begun& span,
             const std::vector<bool>& without, std::span<const std::byte> output) {
        payload made(*of.span.event, without.empty() ? of.span.event->result_bytes() : 0);
        made.field = of.span.results_at;
        if (without.empty())
            static_cast<void>(made.put(of.statements[of.span.statement].fields, {}, output));
        count(of.span.event->end(to_, made.words, span));
    }
    void count(bool is_recorded) { unrecorded_ += is_recorded ? 0 : 1; }

    recorder& to_;
    traced_threads threads_;
    std::optional<module_records> modules_;
    std::vector<code> code_;
    latest<call, trace_ring::runtime_event::begun> open_{most_open};
    std::uint64_t unrecorded_ = 0;
};

}  // namespace trace_clauses
