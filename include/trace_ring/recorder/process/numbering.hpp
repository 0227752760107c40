// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Which numbering of event types a program uses in a trace file.
///
/// A program numbers its types before it has a file. When it joins one, it takes a numbering that
/// fits its own and that no process uses, as the last run of the same program left it. Otherwise it
/// gets a new one, in which types that other programs described are not described again. When room
/// runs out, entries of numberings that nothing in the file refers to are used again.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include <trace_ring/atomic.hpp>
#include <trace_ring/bounds.hpp>
#include <trace_ring/list_of.hpp>
#include <trace_ring/recorder/process/dictionary.hpp>

namespace trace_ring::inline v1::impl {

class numbering {
public:
    explicit numbering(const trace_memory& in) noexcept : in_(in), dictionary_(in) {}

    /// The numbering for a program with these types that enters the file at process slot `self`;
    /// nothing if all are in use. Set-up, one program at a time in a file: others only add to their
    /// own numberings during that time. Throws std::bad_alloc.
    [[nodiscard, gnu::cold]] std::optional<std::uint32_t> choose(const type_node* types,
                                                                 std::uint32_t self) {
        note_types(types);
        note_users(self);
        std::optional<std::uint32_t> best;
        for (std::uint32_t root = 0; root < uses_.size(); ++root) {
            const use& of = uses_[root];
            if (of.taken || of.unfit || of.same == 0) continue;
            if (!best || uses_[*best].same < of.same) best = root;
        }
        if (best) return refer_to(*best);
        for (const bool again : {false, true}) {
            for (std::uint32_t root = 0; root < uses_.size(); ++root) {
                if (uses_[root].referred || uses_[root].known) continue;
                forget_totals(root);
                return refer_to(root);
            }
            if (again) break;
            purge();
            note_known();
        }
        return std::nullopt;
    }
    /// Makes `root`, just chosen, mean all of the types; `none(type)` for each without room. Once.
    template <class OnNone>
    [[gnu::cold]] void complete(std::uint32_t root, OnNone&& none) {
        // Its numbers mean the same to the program, or it would not be chosen.
        for (auto each = dictionary_.bindings(); each.next();) {
            if (each.root == root && each.id < by_id_.size()) by_id_[each.id] = nullptr;
        }
        share(root);
        bool purged = false;
        for (const type_node* const t : by_id_) {
            if (t == nullptr || dictionary_.add(*t, root, true)) continue;
            if (!purged) purge();
            if (!std::exchange(purged, true) && dictionary_.add(*t, root, true)) continue;
            if (!dictionary_.add(*t, root, false)) none(*t);
        }
    }

private:
    struct use {
        bool taken = false;      ///< a process that may live uses it
        bool referred = false;   ///< an entry of a process, or a sub-buffer, refers to it
        bool known = false;      ///< it has types
        bool unfit = false;      ///< one of its numbers means another type than the program's
        std::uint32_t same = 0;  ///< numbers that mean the same to the program
    };

    [[gnu::cold]] void note_types(const type_node* types) {
        std::uint32_t last = 0;
        for (const type_node* t = types; t != nullptr; t = t->next.load(relaxed))  // relaxed: old
            last = greatest(last, t->id);
        by_id_.resize(last + std::size_t{1});
        for (const type_node* t = types; t != nullptr; t = t->next.load(relaxed)) {  // relaxed: old
            by_id_[t->id] = t;
        }
    }
    [[gnu::cold]] void note_users(std::uint32_t self) {
        uses_.resize(least(in_.plan().process_count, layout::most_numberings));
        for (std::uint32_t slot = 0; slot < in_.plan().process_count; ++slot) {
            const auto& entry = in_.process(slot);
            // order: process.look:B pairs with process.enter:B, process.leave:A, process.dead:A,
            // process.return:A
            const std::uint32_t state = entry.state.load(acquire);
            const std::uint32_t root = entry.root.load(relaxed);  // relaxed: after the state
            if (slot == self || state == static_cast<std::uint32_t>(layout::presence::free) ||
                root >= uses_.size()) {
                continue;
            }
            uses_[root].referred = true;
            if (state != static_cast<std::uint32_t>(layout::presence::departed) &&
                in_.may_live(slot)) {
                uses_[root].taken = true;
            }
        }
        note_known();
    }
    [[gnu::cold]] void note_known() {
        for (use& each : uses_) {
            each.known = each.unfit = false;
            each.same = 0;
        }
        for (auto each = dictionary_.bindings(); each.next();) {
            if (each.root >= uses_.size() || each.id > layout::max_event_id) continue;
            use& of = uses_[each.root];
            of.known = true;
            const type_node* const own = each.id < by_id_.size() ? by_id_[each.id] : nullptr;
            if (own == nullptr) continue;
            if (dictionary_.is_same(each.at, own->description, dictionary_.total_of(*own))) {
                ++of.same;
            } else {
                of.unfit = true;
            }
        }
    }
    /// Frees the descriptions of types in numberings that no process is entered under and no
    /// sub-buffer names. Reads the header of every sub-buffer.
    [[gnu::cold]] void purge() {
        for (std::uint64_t slot = 0; slot < in_.capacity(); ++slot) {
            // relaxed: it was there before the set-up began, or is of a numbering that is taken
            const std::uint32_t number = numbering_of(in_.sub_buffer(slot).magic.load(relaxed));
            if (number != 0 && number <= uses_.size()) uses_[number - 1].referred = true;
        }
        const auto is_dead = [this](std::uint32_t root) {
            return root < uses_.size() && !uses_[root].referred;
        };
        const auto unit = [](std::uint64_t at) { return as_size(at / layout::dictionary_unit); };
        list_of<bool> shared(unit(in_.plan().dictionary_bytes));
        for (auto each = dictionary_.bindings(); each.next();) {
            if (!is_dead(each.root)) shared[unit(each.at)] = true;
        }
        for (auto each = dictionary_.entries(); each.next();) {
            // Both kinds of entry have it in the same place. relaxed: after the magic
            if (each.magic != layout::free_magic &&
                is_dead(dictionary_.type_at(each.at).root.load(relaxed)) &&
                !shared[unit(each.at)]) {
                dictionary_.free(each.at, each.bytes);
            }
        }
        join_free();
    }
    /// Joins free entries that lie side by side. An entry that another program has taken
    /// since is left.
    [[gnu::cold]] void join_free() const noexcept {
        std::uint64_t last = 0;
        std::uint64_t end = ~std::uint64_t{0};  // of a free entry
        for (auto each = dictionary_.entries(); each.next();) {
            if (each.magic != layout::free_magic) continue;
            std::uint32_t first = layout::free_magic;
            std::uint32_t second = layout::free_magic;
            // order: dictionary.claim:B pairs with dictionary.free:A
            if (each.at == end &&
                dictionary_.type_at(last).magic.compare_exchange_strong(first, 0, acquire)) {
                end = each.at + each.bytes;
                // order: dictionary.claim:C pairs with dictionary.free:A
                if (dictionary_.type_at(each.at).magic.compare_exchange_strong(second, 0,
                                                                               acquire)) {
                    dictionary_.free(last, end - last);
                    continue;
                }
                dictionary_.free(last, each.at - last);
            }
            last = each.at;
            end = each.at + each.bytes;
        }
    }
    /// Takes from `by_id_` the types that other programs have described, and refers to their
    /// entries.
    [[gnu::cold]] void share(std::uint32_t root) {
        list_of<std::uint64_t> found(by_id_.size());  // where + 1; 0: nowhere
        for (auto each = dictionary_.entries(); each.next();) {
            if (each.magic != layout::type_magic) continue;
            for (std::size_t id = 0; id < by_id_.size(); ++id) {
                if (by_id_[id] == nullptr || found[id] != 0) continue;
                const std::uint8_t total = dictionary_.total_of(*by_id_[id]);
                // relaxed: after the magic
                if (dictionary_.type_at(each.at).total.load(relaxed) == total &&
                    dictionary_.is_same(each.at, by_id_[id]->description, total)) {
                    found[id] = each.at + 1;
                }
            }
        }
        for (std::size_t id = 0; id < by_id_.size(); ++id) {
            std::uint64_t types[layout::alias_entry::most];
            std::size_t n = 0;
            for (; n < layout::alias_entry::most && id + n < by_id_.size() && found[id + n] != 0;
                 ++n)
                types[n] = found[id + n] - 1;
            if (n == 0) continue;
            if (dictionary_.add_alias(root, static_cast<std::uint32_t>(id), {types, n}))
                for (std::size_t i = 0; i < n; ++i) by_id_[id + i] = nullptr;
            id += n - 1;
        }
    }
    std::uint32_t refer_to(std::uint32_t root) {
        uses_[root].referred = true;
        return root;
    }
    void forget_totals(std::uint32_t root) const noexcept {
        shared_atomic<std::uint64_t>* const row = in_.totals(in_.plan().lane_count + root);
        for (std::uint32_t i = 0; row != nullptr && i < in_.plan().totals_per_lane; ++i) {
            row[i].store(0, relaxed);  // relaxed: nobody's counter
        }
    }

    const trace_memory& in_;
    dictionary dictionary_;
    list_of<const type_node*> by_id_{};  ///< the program's types
    list_of<use> uses_{};                ///< by numbering
};

}  // namespace trace_ring::inline v1::impl
