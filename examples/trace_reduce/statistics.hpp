// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A trace in numbers, as a table or as one JSON object.

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include <trace_ring/exporter/json.hpp>
#include <trace_ring/exporter/text.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include "../counted.hpp"
#include "measure/measures.hpp"
#include "measure/pass.hpp"
#include "unfinished.hpp"

namespace trace_reduce {

namespace reduce = trace_ring::reduce;
namespace exporter = trace_ring::exporter;
using exporter::text_buffer;

/// How often an event came: a span once, whether both of its ends are there or one.
template <class Event>
[[nodiscard]] std::uint64_t count_of(const Event& event, const measure::pass& measured) {
    if (event.type == nullptr || event.type->whole().kind != trace_ring::event_kind::span) {
        return event.records;
    }
    const auto* const of = measured.of(event.type);
    return of == nullptr ? event.records : of->spans();
}

namespace in_text {

template <class... Values>
void print(text_buffer& out, const char* format, Values... values) {
    char line[256];
    const int length = std::snprintf(line, sizeof line, format, values...);
    out += std::string_view(line, static_cast<std::size_t>(length < 0 ? 0 : length)).substr(0, 255);
}
inline unsigned long long wide(std::uint64_t value) {
    return value;
}

inline void print_lost(text_buffer& out, const trace_ring::loss_counts& lost) {
    const char* between = "";
    for (std::size_t i = 0; i < trace_ring::loss_cause_count; ++i) {
        const auto cause = static_cast<trace_ring::loss_cause>(i);
        if (lost[cause] == 0) continue;
        out += between;
        out += to_string(cause);
        print(out, " %llu", wide(lost[cause]));
        between = ", ";
    }
}

inline void print_name(text_buffer& out, std::string_view name) {
    exporter::impl::append_escaped(out, name, 0);
}

inline const char* clock_name(std::uint32_t clock) {
    // no count: a kind of clock
    constexpr const char* names[] = {"none", "x86 time stamp counter", "CLOCK_MONOTONIC",
                                     "aarch64 generic timer"};
    return clock < 4 ? names[clock] : "unknown";
}

/// Records that were begun and never committed. Prints nothing if there is no sign of one.
inline void print_unfinished(text_buffer& out, const reduce::trace_file& file,
                             exporter::text_writer& times) {
    const char* before = "\n";
    for (const auto& each : find_unfinished(file.about())) {
        if (!each.certain && each.type == nullptr) continue;
        print(out, "%s  %s  at %llu of lane ", before,
              each.certain ? "not committed" : "perhaps not committed", wide(each.at));
        before = "";
        each.lane != nullptr ? print(out, "%u", each.lane->number) : print(out, "unknown");
        if (each.type != nullptr) {
            out += ": ";
            times.append_time(out, each.time);
            out += ' ';
            print_name(out, each.type->name);
        }
        out += '\n';
    }
}

/// The spans that took longest.
inline void print_slowest(text_buffer& out, const reduce::trace_file& file,
                          const measure::pass& measured, exporter::text_writer& times) {
    if (measured.slowest().empty()) return;
    const auto& time = file.time();
    print(out, "\n  %s  began, event, thread: the slowest spans\n",
          time.known() ? "        duration" : "  duration, ticks");
    for (const auto& each : measured.slowest()) {
        const char* const mark = each.uncertain ? "~" : "";
        if (time.known()) {
            print(out, "  %1s%13.9f s  ", mark, time.ns(static_cast<double>(each.ticks)) / 1e9);
        } else {
            print(out, "  %1s%15llu  ", mark, wide(each.ticks));
        }
        times.append_time(out, each.begun);
        out += ' ';
        print_name(out, each.type->name);
        if (each.lane.listed) {
            print(out, " %s/%u ", file.about().process_text(each.lane).c_str(), each.lane.thread);
            print_name(out, each.lane.name);
        }
        out += '\n';
    }
}

/// `times` shows them as the records' lines would.
inline void show(text_buffer& out, const reduce::trace_file& file,
                 const reduce::trace_statistics& sum, const measure::pass& measured,
                 exporter::text_writer& times) {
    const auto& time = file.time();
    print_name(out, file.name());
    print(out, "\n  records   %llu, %llu bytes\n", wide(sum.records), wide(sum.bytes));
    if (sum.faulty != 0) print(out, "  faulty    %llu of them\n", wide(sum.faulty));
    // What damaged places held is not known: it may be more.
    print(out, sum.damages == 0 ? "  lost      %llu" : "  lost      at least %llu",
          wide(sum.lost.total()));
    if (sum.lost.total() != 0) {
        out += ": ";
        print_lost(out, sum.lost);
    }
    for (const auto& lane : sum.lanes) {
        // They are counted in every range, because they may be of any time.
        if (lane.lane != nullptr || lane.lost.total() == 0) continue;
        print(out, "; %llu of them in no listed lane, at an unknown time", wide(lane.lost.total()));
    }
    out += '\n';
    if (const std::string advice = file.about().ring().advice(file.about().plan());
        !advice.empty()) {
        out += "  advice    ";
        out += advice;
        out += '\n';
    }
    if (sum.damages != 0)
        print(out, "  damaged   in %s\n", counted(sum.damages, "place", "places").c_str());
    if (sum.records != 0) {
        const double seconds = sum.seconds(time);
        if (time.known()) {
            print(out, "  span      %.9f s, ", seconds);
        } else {
            out += "  span      ";
        }
        times.append_time(out, sum.first_time);
        out += " to ";
        times.append_time(out, sum.last_time);
        if (seconds > 0) {
            print(out, "\n  rate      %.0f records/s, %.0f bytes/s",
                  static_cast<double>(sum.records) / seconds,
                  static_cast<double>(sum.bytes) / seconds);
        }
        out += '\n';
    }
    print(out, "  clock     %s", clock_name(file.about().clock()));
    if (time.known()) {
        print(out, ", %.6f GHz, %s, within %.0f ns", 1 / time.ns_per_tick(),
              counted(time.snapshots().size(), "reading", "readings").c_str(),
              time.uncertainty_ns());
    }
    if (!time.consistent()) out += ", which contradict each other: the clock jumped";
    if (sum.clock_jumps != 0) out += ", " + counted(sum.clock_jumps, "jump", "jumps");
    out += "\n\n         count         records           bytes  share           total  event\n";
    for (const auto& event : sum.events) {
        print(out, "%14llu  %14llu  %14llu  %4.1f%%  ", wide(count_of(event, measured)),
              wide(event.records), wide(event.bytes),
              sum.records == 0
                  ? 0.0
                  : 100.0 * static_cast<double>(event.records) / static_cast<double>(sum.records));
        if (event.total) {
            print(out, "%14llu  ", wide(*event.total));
        } else {
            out += "                ";
        }
        print_name(out, event.type == nullptr ? "(not in the dictionary)" : event.type->name);
        out += '\n';
    }
    out += "\n       records           bytes            lost  lane    thread\n";
    for (const auto& lane : sum.lanes) {
        print(out, "%14llu  %14llu  %14llu  ", wide(lane.records), wide(lane.bytes),
              wide(lane.lost.total()));
        if (lane.lane == nullptr) {
            // no count: no lane is known
            out += "none";
        } else if (!lane.lane->listed) {
            print(out, "%-6u  (no longer listed)", lane.lane->number);
        } else {
            print(out, "%-6u  %s/%u ", lane.lane->number,
                  file.about().process_text(*lane.lane).c_str(), lane.lane->thread);
            print_name(out, lane.lane->name);
            if (lane.lane->depth != 0) print(out, "+%u", lane.lane->depth);
        }
        if (lane.lost.total() != 0) {
            out += "  lost: ";
            print_lost(out, lane.lost);
        }
        out += '\n';
    }
    print_slowest(out, file, measured, times);
    print_unfinished(out, file, times);
}

}  // namespace in_text

namespace in_json {

inline void member(text_buffer& out, std::string_view name, std::uint64_t value) {
    out += name;
    exporter::impl::append_number(out, value);
}
inline void lost(text_buffer& out, const trace_ring::loss_counts& counts) {
    out += ",\"lost\":{";
    for (std::size_t i = 0; i < trace_ring::loss_cause_count; ++i) {
        const auto cause = static_cast<trace_ring::loss_cause>(i);
        if (i != 0) out += ',';
        exporter::impl::append_json_string(out, to_string(cause));
        member(out, ":", counts[cause]);
    }
    out += '}';
}

inline void show(text_buffer& out, const reduce::trace_file& file,
                 const reduce::trace_statistics& sum, const measure::pass& measured) {
    const auto& time = file.time();
    out += R"({"kind":"statistics","file":)";
    exporter::impl::append_json_string(out, file.name());
    member(out, R"(,"records":)", sum.records);
    member(out, R"(,"bytes":)", sum.bytes);
    member(out, R"(,"faulty":)", sum.faulty);
    lost(out, sum.lost);
    // What damaged places held is not known.
    out += sum.damages == 0 ? R"(,"lost_is_all":true)" : R"(,"lost_is_all":false)";
    if (const std::string advice = file.about().ring().advice(file.about().plan());
        !advice.empty()) {
        out += R"(,"advice":)";
        exporter::impl::append_json_string(out, advice);
    }
    member(out, R"(,"damages":)", sum.damages);
    member(out, R"(,"clock_jumps":)", sum.clock_jumps);
    member(out, R"(,"first_ticks":)", sum.first_time);
    member(out, R"(,"last_ticks":)", sum.last_time);
    if (time.known()) {
        out += R"(,"first_time_ns":)";
        exporter::impl::append_number(out, time.realtime_ns(sum.first_time));
        out += R"(,"last_time_ns":)";
        exporter::impl::append_number(out, time.realtime_ns(sum.last_time));
        out += R"(,"seconds":)";
        exporter::impl::append_json_floating(out, sum.seconds(time));
    }
    out += R"(,"events":[)";
    const char* between = "";
    for (const auto& event : sum.events) {
        out += between;
        between = ",";
        out += R"({"event":)";
        if (event.type == nullptr) {
            out += "null";
        } else {
            exporter::impl::append_json_string(out, event.type->name);
        }
        member(out, R"(,"count":)", count_of(event, measured));
        member(out, R"(,"records":)", event.records);
        member(out, R"(,"bytes":)", event.bytes);
        if (event.total) member(out, R"(,"total":)", *event.total);
        out += '}';
    }
    out += R"(],"lanes":[)";
    between = "";
    for (const auto& lane : sum.lanes) {
        out += between;
        between = ",";
        out += R"({"lane":)";
        if (lane.lane == nullptr) {
            out += "null";
        } else {
            exporter::impl::append_number(out, lane.lane->number);
            if (lane.lane->listed) {
                member(out, R"(,"pid":)", lane.lane->pid);
                if (lane.lane->process) member(out, R"(,"process":)", *lane.lane->process);
                member(out, R"(,"tid":)", lane.lane->thread);
                out += R"(,"thread":)";
                exporter::impl::append_json_string(out, lane.lane->name);
                member(out, R"(,"depth":)", lane.lane->depth);
            }
        }
        member(out, R"(,"records":)", lane.records);
        member(out, R"(,"bytes":)", lane.bytes);
        lost(out, lane.lost);
        out += '}';
    }
    out += R"(],"slowest":[)";
    between = "";
    for (const auto& each : measured.slowest()) {
        out += between;
        between = ",";
        out += R"({"event":)";
        exporter::impl::append_json_string(out, each.type->name);
        member(out, R"(,"duration_ticks":)", each.ticks);
        if (time.known()) {
            out += R"(,"duration_ns":)";
            exporter::impl::append_json_floating(out, time.ns(static_cast<double>(each.ticks)));
        }
        if (each.uncertain) out += R"(,"uncertain":true)";
        member(out, R"(,"began_ticks":)", each.begun);
        member(out, R"(,"end_lane":)", each.lane.number);
        member(out, R"(,"end_position":)", each.at);
        out += '}';
    }
    out += R"(],"unfinished":[)";
    between = "";
    for (const auto& each : find_unfinished(file.about())) {
        out += between;
        between = ",";
        member(out, R"({"offset":)", each.offset);
        member(out, R"(,"position":)", each.at);
        if (each.lane != nullptr) member(out, R"(,"lane":)", each.lane->number);
        out += each.certain ? R"(,"certain":true)" : R"(,"certain":false)";
        if (each.type != nullptr) {
            out += R"(,"event":)";
            exporter::impl::append_json_string(out, each.type->name);
            member(out, R"(,"ticks":)", each.time);
        }
        out += '}';
    }
    out += "]}\n";
}

}  // namespace in_json
}  // namespace trace_reduce
