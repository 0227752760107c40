// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Event types as a recorder meets them: registered when the code that declares them is loaded or
/// the recorder is made; their gates; and records that are refused because of their type.

#include <cstdint>

#include <trace_ring/recorder/lane/core.hpp>

namespace trace_ring::inline v1::impl {

/// An id for a type that has none: `known`, if it is not 0 and is free, else the next for which
/// `is_free(id)`. 0 when the ids (4095) have run out.
template <class IsFree>
[[nodiscard]] inline std::uint32_t next_id(std::uint32_t known, IsFree&& is_free) noexcept {
    const auto is_own = [](std::uint32_t id) {
        // order: type.find:B pairs with type.add:A
        const type_node* t = the_registry.types.load(acquire);
        // relaxed: each that was pushed publishes those below it, too
        while (t != nullptr && t->id != id) t = t->next.load(relaxed);
        return t != nullptr;
    };
    if (known != 0 && is_free(known) && !is_own(known)) return known;
    family_counters* const family = counters();
    // relaxed, both: numbers out of a counter
    while (family != nullptr && family->last_event_id.load(relaxed) < layout::max_event_id) {
        const std::uint32_t id = family->last_event_id.fetch_add(1, relaxed) + 1;
        if (id > layout::max_event_id) return 0;
        if (is_free(id) && !is_own(id)) return id;
    }
    return 0;
}

/// Gives the type an id, the same in all recorders, and enters it in their files.
inline void register_type(event_state& type) noexcept {
    const undisturbed scope;
    const type_description& wanted = type.description;
    type_node* const node = find_type(wanted, [&wanted] {
        // A file's numbering may have ids from earlier runs of the program.
        std::uint32_t known = 0;
        for_each_core([&](const core& each) {
            if (known == 0) known = each.events().known_as(wanted);
        });
        return next_id(known, [&wanted](std::uint32_t id) {
            bool free = true;
            for_each_core(
                [&](const core& each) { free = free && each.events().can_be(id, wanted); });
            return free;
        });
    });
    if (node == nullptr) return;
    for_each_core([&](core& each) { each.events().add(*node); });
    const std::uint32_t bytes =
        static_cast<std::uint32_t>(record_header_bytes) + type.description.fixed_bytes;
    // Any thread would store the same numbers. The id comes last, because it opens the hot path.
    type.total.store(node->total, relaxed);  // relaxed: published by the header
    // order: type.publish:A pairs with type.use:A, type.use:B, type.use:C, type.use:D,
    // type.use:E
    type.header.store(record_word::pack(node->id, bytes), release);
}

/// Registers the types of a program or library when it is loaded, or the first recorder is made.
[[gnu::visibility("hidden")]] inline void register_types(const types_here& from) noexcept {
    for (event_state* const* each = from.begin; each != from.end; ++each) {
        // order: type.use:E pairs with type.publish:A
        if (record_word::id((*each)->header.load(acquire)) == 0) register_type(**each);
    }
}
/// Registers them from now on, until the library that this is compiled into is unloaded.
class types_registered {
public:
    types_registered() noexcept { all_types.arrives(&register_types); }
    types_registered(const types_registered&) = delete;
    types_registered& operator=(const types_registered&) = delete;
    ~types_registered() { all_types.departs(&register_types); }
};
[[gnu::visibility("hidden")]] inline types_registered types_are_registered{};

inline void core::lose(lane_state& lane, std::uint32_t count) noexcept {
    // relaxed, to the end: own lane, and counters
    if (mark_of(lane).valid.load(relaxed) == 0) {
        memory_.ring().refused_without_lane.fetch_add(count, relaxed);
        return;
    }
    lane.entry.load(relaxed)->refused.fetch_add(count, relaxed);
    lane.refused.fetch_add(count, relaxed);
}
/// Counts a record that no lane can take, in the lane where it would have been.
inline void core::refuse(lane_state& lane, bool no_id) noexcept {
    // relaxed, to the end: counters
    layout::lane_entry& entry = *lane.entry.load(relaxed);
    sub_buffer_header* const sub = lane.sub.load(relaxed);
    if (no_id) {  // its type has no id, or no room in the dictionary
        entry.refused.fetch_add(1, relaxed);
        lane.refused.fetch_add(1, relaxed);
    } else {
        entry.too_long.fetch_add(1, relaxed);
        if (sub != &nowhere) sub->too_long.fetch_add(1, relaxed);
    }
}

}  // namespace trace_ring::inline v1::impl
