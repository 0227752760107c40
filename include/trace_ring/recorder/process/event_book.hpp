// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A recorder's event types: each has an id that the file's dictionary binds to it, and a gate of
/// that number. The thread that adds a type first writes its entry, and nobody waits for it.
/// @code
///   add(type) -> dictionary: (numbering, id) is this type    no room there: its gate is shut
///   enable("order.*", false) -> the gates of all types whose name matches
/// @endcode

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/layout.hpp>
#include <trace_ring/glob.hpp>
#include <trace_ring/recorder/file/trace_memory.hpp>
#include <trace_ring/recorder/process/dictionary.hpp>
#include <trace_ring/recorder/process/numbering.hpp>
#include <trace_ring/recorder/site/registry.hpp>

namespace trace_ring::inline v1::impl {

/// Any thread, signal-safe, except for `begin`. `add`, `can_be` and `known_as` are linear in the
/// dictionary, `enable` in the program's event types.
class event_book {
public:
    explicit event_book(const trace_memory& memory) noexcept : memory_(memory) {}

    /// At set-up: the types that the program has, from `types` on, get their entries.
    [[gnu::cold]] void begin(numbering& known, const type_node* types, std::uint32_t root) {
        known.complete(root, [this](const type_node& node) { refuse(node); });
        // relaxed, both: no other thread has this recorder yet; and published with the first
        for (const type_node* t = types; t != nullptr; t = t->next.load(relaxed))
            static_cast<void>(know(*t));
    }
    [[gnu::cold]] void add(const type_node& node) noexcept {
        if (know(node)) return;
        const dictionary types(memory_);
        const bool there = types.look(memory_.root(), node.id, node.description,
                                      types.total_of(node)) == dictionary::binding::same;
        if (!there && !types.add(node, memory_.root(), true) &&
            !types.add(node, memory_.root(), false)) {
            refuse(node);
        }
    }
    /// Whether `id` can be this type's in this recorder's file.
    [[nodiscard]] bool can_be(std::uint32_t id, const type_description& type) const noexcept {
        return dictionary(memory_).look(memory_.root(), id, type, 0) != dictionary::binding::other;
    }
    /// The id that it had there in earlier runs of the program; 0 if none.
    [[nodiscard]] std::uint32_t known_as(const type_description& type) const noexcept {
        return dictionary(memory_).find(memory_.root(), type);
    }

    /// Opens or shuts the gates of the types whose names match; returns how many they are.
    [[gnu::cold]] std::size_t enable(std::string_view glob, bool on) const noexcept {
        std::size_t changed = 0;
        // order: type.enable:A pairs with type.add:A
        const type_node* t = the_registry.types.load(acquire);
        // relaxed: each that was pushed publishes those below it, too
        for (; t != nullptr; t = t->next.load(relaxed)) {
            if (!matches_glob(glob, t->description.name)) continue;
            layout::set_gate(memory_.own_gates().gates[t->id], layout::gate_event_off, !on);
            ++changed;
        }
        return changed;
    }
    /// Shuts the gates of all types, or lifts that.
    [[gnu::cold]] void shut(bool now) const noexcept {
        for (auto& gate : memory_.own_gates().gates)
            layout::set_gate(gate, layout::gate_recorder_off, now);
    }

private:
    /// Whether it was known already.
    [[nodiscard]] bool know(const type_node& node) noexcept {
        const std::uint64_t bit = std::uint64_t{1} << (node.id % 64);
        // relaxed: the thread that sets the bit writes the entry; nobody waits for it
        return (known_[node.id / 64].fetch_or(bit, relaxed) & bit) != 0;
    }
    /// Shuts, and counts, a type without room in the dictionary: its records could not be read.
    void refuse(const type_node& node) const noexcept {
        memory_.ring().types_without_room.fetch_add(1, relaxed);  // relaxed: a counter
        layout::set_gate(memory_.own_gates().gates[node.id], layout::gate_no_event, true);
    }

    const trace_memory& memory_;
    atomic<std::uint64_t> known_[(layout::max_event_id + 1) / 64]{};
};

/// A recorder as the process's registry lists it: a new event type is added to the events of each.
struct listed_recorder {
    explicit listed_recorder(const trace_memory& memory) noexcept : events(memory) {}

    event_book events;
};

}  // namespace trace_ring::inline v1::impl
