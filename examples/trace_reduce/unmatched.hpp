// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Reports option values that name nothing in the traces: an event or a thread that no trace has is
/// a warning, because a filter without matches is a valid result. A field for --by or --histogram
/// that no counted event has is an error.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <trace_ring/glob.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include "../expressions/nearest.hpp"
#include "inputs.hpp"
#include "measure/measures.hpp"
#include "options.hpp"
#include "where/kinds.hpp"

namespace trace_reduce {

class unmatched_options {
public:
    /// Both must outlive it.
    unmatched_options(const std::vector<std::unique_ptr<input>>& from, const options& wanted)
        : from_(from), wanted_(wanted) {}

    /// Throws std::runtime_error if statistics are asked of a field that no counted event has.
    void check_fields() const {
        const auto& measures = wanted_.measures;
        const std::string_view field = measures.by_field();
        if (!wanted_.statistics || (field.empty() && measures.histograms.empty())) return;
        const names known = counted_fields();
        if (!known.counts) return;  // no event is counted: that is reported as a warning
        if (!field.empty() && !known.fields.contains(field)) {
            names all = known;
            for (const auto other : measure::question::groupings) all.fields.emplace(other);
            throw std::runtime_error("--by " + measures.by + ": no counted event has a field '" +
                                     std::string(field) + "'" + near(field, all.fields));
        }
        for (const auto& glob : measures.histograms) {
            if (std::any_of(known.places.begin(), known.places.end(), [&](const auto& place) {
                    return trace_ring::matches_glob(glob, place);
                })) {
                continue;
            }
            throw std::runtime_error("--histogram " + glob + ": no counted event has such a field" +
                                     near(glob, known.places));
        }
    }
    /// Before reading.
    void warn_of_events() const {
        if (wanted_.events.empty()) return;
        set all;
        for (const auto& each : from_) {
            for (const auto& type : each->file().event_types()) all.insert(type.name);
        }
        for (const auto& glob : wanted_.events) {
            // A record that is not in the dictionary has an empty name.
            if (trace_ring::matches_glob(glob, "") || matches_any(glob, all)) continue;
            complaints::note("--event " + glob + ": no event has such a name" + yet() +
                             near(glob, all));
        }
    }
    /// After reading, because records may have other threads than those that are listed: of lanes
    /// that other threads adopted, or whose table entries were given to others. `none`: no record
    /// was shown.
    void warn_of_threads(bool none) const {
        if (wanted_.asked_threads.empty()) return;
        set all;
        std::set<std::uint32_t> ids;
        bool complete = true;
        for (const auto& each : from_) {
            const auto& tables = each->file().about();
            complete = complete && tables.ring().folded_lanes == 0 && !tables.events().packs();
            for (const auto& lane : tables.lanes()) {
                complete = complete && lane.listed && lane.adopted == 0;
                if (!lane.listed) continue;
                all.insert(lane.name);
                ids.insert(lane.thread);
            }
        }
        if (!complete && !none) return;
        for (const auto& each : wanted_.asked_threads) {
            if (each.id ? ids.contains(*each.id) : matches_any(each.text, all)) continue;
            complaints::note("--thread " + each.text + ": no listed thread has this " +
                             (each.id ? "id" : "name") + yet() +
                             (each.id ? std::string() : near(each.text, all)));
        }
    }

private:
    using set = std::set<std::string, std::less<>>;
    struct names {
        bool counts = false;
        set fields{};  // by their names, and with their events' names
        set places{};  // EVENT.FIELD, for histograms
    };

    [[nodiscard]] names counted_fields() const {
        names found;
        for (const auto& each : from_) {
            for (const auto& type : each->file().event_types()) {
                if (!each->what().wants_event(type.name)) continue;
                found.counts = true;
                for (const auto* part : {&type, type.results}) {
                    if (part == nullptr) continue;
                    for (const auto& field : part->fields) {
                        found.fields.insert(field.name);
                        found.fields.insert(type.name + '.' + field.name);
                        found.places.insert(type.name + '.' + field.name);
                    }
                }
                if (type.kind == trace_ring::event_kind::span) {
                    found.places.insert(type.name + '.' + std::string(measure::duration_name));
                }
            }
        }
        return found;
    }
    [[nodiscard]] static bool matches_any(std::string_view glob, const set& all) {
        return std::any_of(all.begin(), all.end(), [glob](const auto& each) {
            return trace_ring::matches_glob(glob, each);
        });
    }
    [[nodiscard]] std::string yet() const { return wanted_.follow ? " yet" : ""; }
    /// A name that is like this one, or else the first few that there are.
    [[nodiscard]] static std::string near(std::string_view name, const set& all) {
        expressions::nearest to(name, 3);
        for (const auto& each : all) to.look(each);
        if (!to.found().empty()) return to.suggestion();
        return where::impl::listed(
            all, [](const std::string& each) -> auto& { return each; });
    }

    const std::vector<std::unique_ptr<input>>& from_;
    const options& wanted_;
};

}  // namespace trace_reduce
