// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Records the mappings of the firing processes, so that a reader of the trace can name the
/// addresses in stacks. The records are those of instrument/modules.hpp, with the process added.
/// @code
///   module_records modules(names);
///   modules.record(recorder, pid, time, addresses);  // before the event with these addresses
/// @endcode

#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <trace_ring/record/field.hpp>
#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/recorder/runtime_event.hpp>
#include <trace_ring/reduce/item/record_view.hpp>

#include "firing_clock.hpp"
#include "stack_names.hpp"

namespace trace_clauses {

class module_records {
public:
    using recorder = trace_ring::basic_recorder<firing_trace>;

    /// The quota of the recorder for these records: captured events must not overwrite them.
    static constexpr std::uint32_t ring = 1;
    [[nodiscard]] static constexpr std::uint64_t quota_of(std::uint64_t trace_bytes) noexcept {
        return std::clamp<std::uint64_t>(trace_bytes / 8, 32 << 10, 1 << 20);
    }

    /// `names` must outlive it.
    explicit module_records(stack_names& names) : names_(names) {}

    /// Records the modules that contain these addresses: each once, until another one replaces it.
    /// Returns how many could not be recorded.
    [[nodiscard]] std::uint64_t record(recorder& to, ::pid_t process, std::uint64_t time,
                                       const trace_ring::reduce::field_value& stack) {
        known_process& known = processes_[process];
        if (const auto now = names_.changes_of(process, time); known.changes != now) {
            known.changes = now;
            known.seen.clear();
        }
        std::uint64_t unrecorded = 0;
        for (std::size_t i = 0; i < stack.size(); ++i) {
            const std::uint64_t address = stack.at(i).u64();
            if (!known.seen.insert(address).second) continue;
            const symbols::loaded_module* const there = names_.module_of(process, address, time);
            if (there == nullptr) continue;
            auto& told = known.told;
            const auto last = std::find_if(told.rbegin(), told.rend(), [&](const auto& one) {
                return one.start < there->end && there->start < one.end;
            });
            if (last != told.rend() && *last == *there) continue;
            told.push_back(*there);
            unrecorded += record(to, process, *there) ? 0 : 1;
        }
        return unrecorded;
    }

private:
    struct known_process {
        std::uint64_t changes = 0;
        std::set<std::uint64_t> seen;  // addresses seen since then
        std::vector<symbols::loaded_module> told;
    };

    [[nodiscard]] static bool record(recorder& to, ::pid_t process,
                                     const symbols::loaded_module& what) {
        using trace_ring::field_form;
        using trace_ring::field_type;
        constexpr trace_ring::runtime_event::field fields[] = {
            {"pid", field_type::u32},
            {"start", field_type::address},
            {"end", field_type::address},
            {"bias", field_type::address},
            {"build_id", field_type::u8, field_form::variable},
            {"path", field_type::character, field_form::variable}};
        static trace_ring::runtime_event& event =
            trace_ring::runtime_event::make("module", fields, ring);
        std::vector<std::uint64_t> payload(event.fixed_bytes() / 8);
        const auto put = [&](std::size_t field, auto value) {
            std::memcpy(reinterpret_cast<std::byte*>(payload.data()) + event.offset(field), &value,
                        sizeof value);
        };
        put(0, static_cast<std::uint32_t>(process));
        put(1, what.start);
        put(2, what.end);
        put(3, what.bias);
        std::size_t field = 4;
        for (const std::string* each : {&what.build_id, &what.path}) {
            put(field++, static_cast<std::uint16_t>(each->size()));
            const std::size_t at = payload.size();
            payload.resize(at + (each->size() + 7) / 8);
            std::memcpy(payload.data() + at, each->data(), each->size());
        }
        return event.record(to, payload);
    }

    stack_names& names_;
    std::map<::pid_t, known_process> processes_;
};

}  // namespace trace_clauses
