// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Says how a viewer draws a field, besides showing its value: as an arrow from the record before
/// with the same number (a flow), or as a curve (a counter). The dictionary declares fields of type
/// `flow` and the events of kind `counter` so; the user of a reader may add others.
/// @code
///   exporting::field_roles roles;
///   roles.counters = {"queue.*"};
///   exporting::chrome_writer writer(roles);
/// @endcode

#include <algorithm>
#include <string>
#include <vector>

#include <trace_ring/glob.hpp>
#include <trace_ring/reduce/tables/dictionary.hpp>

#include "../names.hpp"

namespace trace_reduce::exporting {

/// More flows and counters than the dictionary declares: globs of EVENT.FIELD. Flows are integers
/// or addresses, alone or in a fixed or variable array; counters are single numbers. A field of
/// another type is not drawn so, even if a glob matches it.
struct field_roles {
    std::vector<std::string> flows{};
    std::vector<std::string> counters{};

    [[nodiscard]] bool is_flow(const reduce::event_type& event,
                               const reduce::field_info& field) const {
        return field.flow || (is_integer(field.type) && matches(flows, event, field));
    }
    [[nodiscard]] bool is_counter(const reduce::event_type& event,
                                  const reduce::field_info& field) const {
        if (field.form != field_form::scalar) return false;
        const bool number = (is_integer(field.type) && field.type != field_type::address) ||
                            field.type == field_type::f32 || field.type == field_type::f64 ||
                            field.type == field_type::boolean;
        if (!number || is_flow(event, field)) return false;
        return event.kind == event_kind::counter || matches(counters, event, field);
    }
    /// Whether `glob` matches a field of this event that can be drawn so.
    [[nodiscard]] static bool means(const std::string& glob, bool as_flow,
                                    const reduce::event_type& event) {
        const field_roles alone = as_flow ? field_roles{{glob}, {}} : field_roles{{}, {glob}};
        return std::any_of(event.fields.begin(), event.fields.end(), [&](const auto& field) {
            return matches({glob}, event, field) &&
                   (as_flow ? alone.is_flow(event, field) : alone.is_counter(event, field));
        });
    }

private:
    [[nodiscard]] static bool is_integer(field_type type) noexcept {
        return type <= field_type::i64 || type == field_type::address;
    }
    [[nodiscard]] static bool matches(const std::vector<std::string>& globs,
                                      const reduce::event_type& event,
                                      const reduce::field_info& field) {
        if (globs.empty()) return false;
        const std::string name = event.name + '.' + field.name;
        return std::any_of(globs.begin(), globs.end(),
                           [&name](const auto& glob) { return matches_glob(glob, name); });
    }
};

}  // namespace trace_reduce::exporting
