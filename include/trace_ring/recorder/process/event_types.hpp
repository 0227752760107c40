// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Registers event types: a type gets an id, the same in all recorders of the process, and each of
/// them adds it to its event book. That happens when the code that declares the type is loaded,
/// when the first recorder is constructed, or with the type's first record.

#include <cstdint>

#include <trace_ring/format/words.hpp>
#include <trace_ring/recorder/process/event_book.hpp>
#include <trace_ring/recorder/site/event_type.hpp>
#include <trace_ring/recorder/site/registry.hpp>

namespace trace_ring::inline v1::impl {

/// A type's numbers in this registry, as event_numbers has them.
struct numbers_here {
    std::uint32_t header;
    std::uint32_t total;
};

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

/// Gives `of` the numbers of the registry `own`. False: it has those of another registry.
[[nodiscard]] inline bool keep_numbers(event_numbers& of, home_id own,
                                       const numbers_here& numbers) noexcept {
    // order: type.use:E pairs with type.publish:B
    home_id found = of.home.load(acquire);
    if (found == own) return true;
    // relaxed: what this says is only who may store numbers here
    if (found == no_home && of.home.compare_exchange_strong(found, own | home_comes, relaxed)) {
        found = own | home_comes;
    }
    if (found != (own | home_comes)) return found == own;
    // Any thread of this registry would store the same numbers: none waits for another, which may
    // not exist in a child of a fork.
    of.total.store(numbers.total, relaxed);  // relaxed: published by the header
    // The id opens the hot path of a program.
    // order: type.publish:A pairs with type.use:A, type.use:D
    of.header.store(numbers.header, release);
    // This opens the hot path of a library.
    // order: type.publish:B pairs with type.use:B, type.use:E, type.use:F
    of.home.store(own, release);
    return true;
}
/// Whether the hot path of code that has the type may take its numbers for this registry's. That of
/// a program takes them for the program's registry. That of a library asks whose they are, and then
/// finds its lanes, but not where those are known only to the library that constructed the
/// recorder: it may record types that `arrived` with it.
[[nodiscard]] inline bool may_keep_numbers(const event_state& type, bool arrived) noexcept {
    if (is_of_program(&the_registry)) return true;
    return !is_of_program(&type) && (arrived || !lanes_are_moving);
}

/// Gives the type an id, the same in all recorders of this registry, and enters it in their files.
/// The id is 0 if there is none left.
[[gnu::cold]] inline numbers_here register_type(event_state& type, bool arrived = false) noexcept {
    const home_id own = make_id();
    for (const event_numbers* each : {static_cast<event_numbers*>(&type), &type.other}) {
        // order: type.use:B pairs with type.publish:B
        if (each->home.load(acquire) == own) {
            // relaxed, both: published by the home
            return {each->header.load(relaxed), each->total.load(relaxed)};
        }
    }
    const undisturbed scope;
    const type_description& wanted = type.description;
    type_node* const node = find_type(wanted, [&wanted] {
        // A file's numbering may have ids from earlier runs of the program.
        std::uint32_t known = 0;
        for_each_recorder([&](const listed_recorder& each) {
            if (known == 0) known = each.events.known_as(wanted);
        });
        return next_id(known, [&wanted](std::uint32_t id) {
            bool free = true;
            for_each_recorder([&](const listed_recorder& each) {
                free = free && each.events.can_be(id, wanted);
            });
            return free;
        });
    });
    if (node == nullptr || own == 0) return {header_without_id(wanted.fixed_bytes), 0};
    for_each_recorder([&](listed_recorder& each) { each.events.add(*node); });
    const numbers_here found{record_word::pack(node->id, record_header_bytes + wanted.fixed_bytes),
                             node->total};
    if (!may_keep_numbers(type, arrived) || !keep_numbers(type, own, found))
        static_cast<void>(keep_numbers(type.other, own, found));
    return found;
}

/// Registers the types of a program or library when it is loaded, or the first recorder is made.
[[gnu::visibility("hidden")]] inline void register_types(const types_here& from) noexcept {
    for (event_state* const* each = from.begin; each != from.end; ++each)
        static_cast<void>(register_type(**each, true));
}
/// With the first recorder, types are registered (all_types.arrives) until the library that this
/// is compiled into is unloaded. Not before: a library that never constructs one should have the
/// numbers of the recorders that it records into.
struct types_registered {
    ~types_registered() { all_types.departs(&register_types); }
};
[[gnu::visibility("hidden")]] inline types_registered types_are_registered{};

}  // namespace trace_ring::inline v1::impl
