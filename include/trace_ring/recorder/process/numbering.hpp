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

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <trace_ring/recorder/process/dictionary.hpp>

namespace trace_ring::inline v1::impl {

class numbering {
public:
    explicit numbering(const trace_memory& in) noexcept : in_(in), dictionary_(in) {}

    /// The numbering for a program with these types that enters the file at process slot `self`;
    /// nothing if all are in use. Set-up, one program at a time in a file: others only add to their
    /// own numberings meanwhile. Throws std::bad_alloc.
    [[nodiscard]] std::optional<std::uint32_t> choose(const type_node* types, std::uint32_t self) {
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
            if (!again) purge();
        }
        return std::nullopt;
    }
    /// Makes `root`, chosen for these types, mean all of them; `none(type)` for each without room.
    template <class OnNone>
    void complete(const type_node* types, std::uint32_t root, OnNone&& none) {
        // Its numbers mean the same to the program, or it would not be chosen.
        std::vector<bool> has(layout::max_event_id + 1);
        dictionary_.for_each_binding([&](std::uint32_t of, std::uint32_t id, std::uint64_t) {
            if (of == root && id < has.size()) has[id] = true;
            return true;
        });
        std::vector<const type_node*> missing;
        for (const type_node* t = types; t != nullptr; t = t->next.load(relaxed)) {  // relaxed: old
            if (!has[t->id]) missing.push_back(t);
        }
        std::sort(missing.begin(), missing.end(),
                  [](const type_node* a, const type_node* b) { return a->id < b->id; });
        share(missing, root);
        bool purged = false;
        for (const type_node* t : missing) {
            if (dictionary_.add(*t, root, true)) continue;
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

    void note_types(const type_node* types) {
        by_id_.assign(layout::max_event_id + 1, nullptr);
        for (const type_node* t = types; t != nullptr; t = t->next.load(relaxed)) {  // relaxed: old
            by_id_[t->id] = t;
        }
    }
    void note_users(std::uint32_t self) {
        uses_.assign(std::min<std::size_t>(in_.plan().process_count, layout::most_numberings), {});
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
    void note_known() {
        for (use& each : uses_) each.known = each.unfit = false, each.same = 0;
        dictionary_.for_each_binding(
            [this](std::uint32_t root, std::uint32_t id, std::uint64_t at) {
                if (root >= uses_.size() || id >= by_id_.size()) return true;
                use& of = uses_[root];
                of.known = true;
                const type_node* const own = by_id_[id];
                if (own == nullptr) return true;
                if (dictionary_.is_same(at, own->description, dictionary_.total_of(*own))) {
                    ++of.same;
                } else {
                    of.unfit = true;
                }
                return true;
            });
    }
    /// Frees the descriptions of types in numberings that no process is entered under and no
    /// sub-buffer names. Reads the header of every sub-buffer.
    void purge() {
        for (std::uint64_t slot = 0; slot < in_.capacity(); ++slot) {
            // relaxed: it was there before the set-up began, or is of a numbering that is taken
            const std::uint32_t number = numbering_of(in_.sub_buffer(slot).magic.load(relaxed));
            if (number != 0 && number <= uses_.size()) uses_[number - 1].referred = true;
        }
        const auto is_dead = [this](std::uint32_t root) {
            return root < uses_.size() && !uses_[root].referred;
        };
        const auto unit = [](std::uint64_t at) {
            return static_cast<std::size_t>(at / layout::dictionary_unit);
        };
        std::vector<bool> shared(unit(in_.plan().dictionary_bytes));
        dictionary_.for_each_binding([&](std::uint32_t root, std::uint32_t, std::uint64_t at) {
            if (!is_dead(root)) shared[unit(at)] = true;
            return true;
        });
        dictionary_.for_each_entry(
            [&](std::uint64_t at, std::uint32_t magic, std::uint64_t length) {
                // Both kinds of entry have it in the same place. relaxed: after the magic
                if (magic != layout::free_magic &&
                    is_dead(dictionary_.type_at(at).root.load(relaxed)) && !shared[unit(at)]) {
                    dictionary_.free(at, length);
                }
                return true;
            });
        join_free();
        note_known();
    }
    /// Joins free entries that lie side by side. An entry that another program took meanwhile is
    /// left.
    void join_free() const noexcept {
        std::uint64_t last = 0;
        std::uint64_t end = ~std::uint64_t{0};  // of a free entry
        dictionary_.for_each_entry(
            [&](std::uint64_t at, std::uint32_t magic, std::uint64_t length) {
                if (magic != layout::free_magic) return true;
                std::uint32_t first = layout::free_magic;
                std::uint32_t second = layout::free_magic;
                // order: dictionary.claim:B pairs with dictionary.free:A
                if (at == end &&
                    dictionary_.type_at(last).magic.compare_exchange_strong(first, 0, acquire)) {
                    // order: dictionary.claim:C pairs with dictionary.free:A
                    if (dictionary_.type_at(at).magic.compare_exchange_strong(second, 0, acquire)) {
                        dictionary_.free(last, at + length - last);
                        end = at + length;
                        return true;
                    }
                    dictionary_.free(last, end - last);
                }
                last = at;
                end = at + length;
                return true;
            });
    }
    /// Takes from `missing`, sorted by number, the types that other programs have described, and
    /// refers to their entries.
    void share(std::vector<const type_node*>& missing, std::uint32_t root) const {
        std::vector<std::uint64_t> found(missing.size(), none_);
        dictionary_.for_each_entry([&](std::uint64_t at, std::uint32_t magic, std::uint64_t) {
            if (magic != layout::type_magic) return true;
            for (std::size_t i = 0; i < missing.size(); ++i) {
                const auto& type = missing[i]->description;
                const std::uint8_t total = dictionary_.total_of(*missing[i]);
                // relaxed: after the magic
                if (found[i] == none_ && dictionary_.type_at(at).total.load(relaxed) == total &&
                    dictionary_.is_same(at, type, total)) {
                    found[i] = at;
                }
            }
            return true;
        });
        std::vector<const type_node*> rest;
        for (std::size_t i = 0; i < missing.size();) {
            std::size_t n = 0;
            while (n < layout::alias_entry::most && i + n < missing.size() &&
                   found[i + n] != none_ && missing[i + n]->id == missing[i]->id + n) {
                ++n;
            }
            if (n == 0 || !dictionary_.add_alias(root, missing[i]->id, {found.data() + i, n})) {
                n = std::max<std::size_t>(n, 1);
                rest.insert(rest.end(), missing.begin() + static_cast<std::ptrdiff_t>(i),
                            missing.begin() + static_cast<std::ptrdiff_t>(i + n));
            }
            i += n;
        }
        missing = std::move(rest);
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

    static constexpr std::uint64_t none_ = ~std::uint64_t{0};

    const trace_memory& in_;
    dictionary dictionary_;
    std::vector<const type_node*> by_id_;
    std::vector<use> uses_;
};

}  // namespace trace_ring::inline v1::impl
