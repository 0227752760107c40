// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Memory as C++ lets threads see it, not as one machine does. Each 8 bytes (a cell) have the list
/// of their stores, oldest first; each thread has a view, which says for every half of a cell how
/// far it must have seen. A load may return any store that is not older than that.
/// @code
///   store, relaxed    carries the view of the last release fence      (and itself)
///   store, release    carries all that its thread has seen or done
///   load, relaxed     what the store carries is seen from the next acquire fence on
///   load, acquire     is seen immediately
///   exchange etc.     read the newest store, and carry on what it carried (release sequences)
///   seq_cst           a fence with a view that all such steps share, before the step
/// @endcode
/// That is C++'s model without two things: a store always comes after all that were made before it
/// (never into the past of others), and a load never returns what is stored later (no load is put
/// off behind a store). For these there are `handed_on` and `exclusive`: where a store must come
/// after all that was stored, or loaded, in its place, one that is not ordered so is a fault.
///
/// A half of a cell is what coherence is kept for; a load of a whole one is one look. A store of a
/// byte or two counts as one of its half. The word itself always holds the newest store, so what
/// tests do before and after a run needs no model.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <vector>

namespace model {

inline constexpr unsigned most_threads = 4;
inline constexpr std::size_t most_entries = 4096;

/// As std::memory_order, without consume.
enum class order : std::uint8_t { relaxed, acquire, release, acq_rel, seq_cst };

[[nodiscard]] constexpr bool acquires(order o) {
    return o == order::acquire || o == order::acq_rel || o == order::seq_cst;
}
[[nodiscard]] constexpr bool releases(order o) {
    return o == order::release || o == order::acq_rel || o == order::seq_cst;
}

/// Faults planted in the atomics themselves: a kind of ordering that does nothing.
struct weakness {
    bool release_stores = false, acquire_loads = false, exchanges = false;
    bool release_fences = false, acquire_fences = false;
};

/// For each thread how many of its steps, for each half of a cell up to which of its stores.
using view = std::array<std::uint16_t, most_entries>;

struct store_made {
    std::uint64_t content;              ///< of the whole cell, afterwards
    std::array<std::uint16_t, 2> last;  ///< the newest store of each half so far
    std::uint8_t halves;                ///< bit 0, bit 1: which it wrote
    std::size_t carries;                ///< its view, in the arena
};

struct cell {
    std::uintptr_t address;
    std::uint8_t threads = 0;  ///< that have used it, in any run so far
    bool written = false;      ///< by any of them
    bool left_out = false;
    bool shared = false;        ///< two have, and one wrote: only these need a history
    bool exclusive = false;     ///< see `memory::exclusive`
    bool handed_on = false;     ///< see `memory::handed_on`
    std::uint64_t guarded = 0;  ///< by which guards these two are known
    std::size_t entry = 0;      ///< of its lower half in views; 0: none yet
    std::uint64_t run = 0;      ///< what follows is of this run
    std::vector<store_made> history{};
    /// When each thread loaded and stored each half last, by its own steps.
    std::array<std::array<std::uint16_t, most_threads>, 2> read_at{}, stored_at{};
    std::array<std::uint64_t, most_threads> seen{};  ///< the value each thread loaded last
    std::uint8_t seen_by = 0;
};

/// Part of a cell.
struct place {
    cell* in;
    unsigned shift, bytes;

    [[nodiscard]] std::uint64_t mask() const {
        return bytes == 8 ? ~std::uint64_t{0} : ((std::uint64_t{1} << bytes * 8) - 1) << shift;
    }
    [[nodiscard]] std::uint64_t from(std::uint64_t content) const {
        return (content & mask()) >> shift;
    }
    [[nodiscard]] std::uint64_t into(std::uint64_t content, std::uint64_t value) const {
        return (content & ~mask()) | (value << shift & mask());
    }
    [[nodiscard]] unsigned first() const { return shift / 32; }
    [[nodiscard]] unsigned last() const { return (shift + bytes * 8 - 1) / 32; }
    [[nodiscard]] std::uint8_t halves() const {
        return static_cast<std::uint8_t>((1U << first()) | (1U << last()));
    }
    /// The newest, of the whole cell.
    [[nodiscard]] std::uint64_t content() const {
        std::uint64_t all = 0;
        std::memcpy(&all, reinterpret_cast<const void*>(in->address), sizeof all);
        return all;
    }
    /// Only its own bytes: the neighbouring bytes may not be atomic.
    void put(std::uint64_t value) const {
        std::memcpy(reinterpret_cast<void*>(in->address + shift / 8), &value, bytes);
    }
};

class memory {
public:
    weakness weak;

    /// Forgets which cells are shared.
    void forget() {
        cells_.clear();
        known_.assign(known_.size(), nullptr);
        used_ = most_threads;
        run_ = 0;
    }
    /// The following is set again for each run: guards and bytes that are left out.
    void begin_run(bool all_shared) {
        ++run_;
        stride_ = all_shared ? most_entries : used_;
        all_shared_ = all_shared;
        newly_shared_ = false;
        arena_.assign(stride_, 0);  // what the stores before the run carry: nothing
        for (auto& t : threads_) {
            std::fill_n(t.seen.begin(), stride_, std::uint16_t{0});
            std::fill_n(t.fence.begin(), stride_, std::uint16_t{0});
            std::fill_n(t.ahead.begin(), stride_, std::uint16_t{0});
        }
        std::fill_n(all_.begin(), stride_, std::uint16_t{0});
        said_.clear();
        left_out_.clear();
        aliases_.clear();
    }
    /// All of that was said.
    void guards_are_said() {
        if (said_ == guards_) return;
        guards_ = said_;
        ++guard_sets_;
    }
    /// A cell was found to be shared that was not known to be: the run means nothing.
    [[nodiscard]] bool newly_shared() const { return newly_shared_; }
    [[nodiscard]] std::size_t shared_cells() const { return (used_ - most_threads) / 2; }

    /// In this run, no store into these bytes may replace what another thread has loaded, unless
    /// that load is known to have come before. True for sub-buffers that a consumer has given back.
    void exclusive(const void* from, std::size_t bytes) {
        const auto start = reinterpret_cast<std::uintptr_t>(from);
        said_.push_back({start, start + bytes, true});
    }
    /// The same for another thread's stores: true for data with one writer at a time.
    void handed_on(const void* from, std::size_t bytes) {
        const auto start = reinterpret_cast<std::uintptr_t>(from);
        said_.push_back({start, start + bytes, false});
    }
    /// The same memory, mapped a second time.
    void alias(const void* from, std::size_t bytes, const void* to) {
        const auto start = reinterpret_cast<std::uintptr_t>(from);
        aliases_.push_back({start, start + bytes, reinterpret_cast<std::uintptr_t>(to) - start});
    }

    /// These bytes are no matter of the model: as many threads use them as may.
    void leave_out(const void* from, std::size_t bytes) {
        const auto start = reinterpret_cast<std::uintptr_t>(from);
        left_out_.push_back({start, start + bytes, false});
    }

    /// Where a step of thread `t` goes, which is a store or a load.
    [[nodiscard]] place at(const void* address, unsigned bytes, unsigned t, bool stores) {
        auto where = reinterpret_cast<std::uintptr_t>(address);
        for (const auto& each : aliases_) {
            if (where >= each.begin && where < each.end) {
                where += each.distance;
                break;
            }
        }
        cell& c = cell_at(where & ~std::uintptr_t{7});
        c.threads = static_cast<std::uint8_t>(c.threads | 1U << t);
        c.written = c.written || stores;
        if (!c.shared && !c.left_out &&
            ((c.written && (c.threads & (c.threads - 1)) != 0) || all_shared_)) {
            c.shared = true;
            newly_shared_ = !all_shared_;
            c.entry = used_;
            used_ += 2;
        }
        if (c.run != run_) {
            c.run = run_;
            c.seen_by = 0;
            if (c.shared) begin_cell(c);
        }
        return {&c, static_cast<unsigned>(where & 7) * 8, bytes};
    }
    /// Whether the order of such steps can matter.
    [[nodiscard]] bool matters(const place& p) const {
        return p.in->shared && p.in->entry + 1 < stride_;
    }

    /// The stores that a load may return, newest first: indices into the history.
    void visible(const place& p, unsigned t, std::vector<std::uint16_t>& out) const {
        out.clear();
        const auto& history = p.in->history;
        std::uint16_t oldest = 0;
        for (unsigned half = p.first(); half <= p.last(); ++half) {
            oldest = std::max(oldest, threads_[t].seen[p.in->entry + half]);
        }
        for (std::size_t i = history.size(); i-- > oldest;) {
            if (i + 1 < history.size() && (history[i + 1].halves & p.halves()) == 0) continue;
            out.push_back(static_cast<std::uint16_t>(i));
        }
    }

    std::uint64_t load(const place& p, unsigned t, order o, std::size_t index) {
        step(t);
        take_in(p, t, acquires(o) && !weak.acquire_loads, index);
        return p.from(p.in->history[index].content);
    }
    /// False: it replaces what another thread has loaded, without an order between the two.
    bool store(const place& p, unsigned t, std::uint64_t value, order o) {
        step(t);
        return append(p, t, value, releases(o) && !weak.release_stores, nullptr);
    }
    /// Reads the newest and replaces it.
    bool replace(const place& p, unsigned t, std::uint64_t value, order o) {
        step(t);
        take_in(p, t, acquires(o) && !weak.exchanges, p.in->history.size() - 1);
        const store_made before = p.in->history.back();
        return append(p, t, value, releases(o) && !weak.exchanges, &before);
    }
    void fence(unsigned t, order o) {
        auto& me = threads_[t];
        if (acquires(o) && !weak.acquire_fences) copy(me.seen, me.ahead);
        if (o == order::seq_cst) {
            join(me.seen, all_.data());
            copy(all_, me.seen);
            join(me.ahead, me.seen.data());
        }
        if (releases(o) && !weak.release_fences) copy(me.fence, me.seen);
    }
    /// A thread learns that another has ended, or continues as it: it sees everything that the
    /// other did.
    void learn_all_of(unsigned t, unsigned other) {
        join(threads_[t].seen, threads_[other].seen.data());
        join(threads_[t].ahead, threads_[other].seen.data());
    }
    /// Plain reads of these bytes. False: a race, for thread `t` does not know all that is there.
    [[nodiscard]] bool read_plainly(const void* from, std::size_t bytes, unsigned t) {
        step(t);
        const auto start = reinterpret_cast<std::uintptr_t>(from);
        for (std::uintptr_t a = start & ~std::uintptr_t{7}; a < start + bytes; a += 8) {
            const place p = at(reinterpret_cast<const void*>(a), 8, t, false);
            if (!matters(p)) continue;
            cell& c = *p.in;
            for (unsigned half = 0; half < 2; ++half) {
                if (threads_[t].seen[c.entry + half] < c.history.back().last[half]) return false;
                c.read_at[half][t] = threads_[t].seen[t];
            }
        }
        return true;
    }

private:
    struct thread_views {
        view seen{};   ///< what it knows
        view fence{};  ///< what it knew at its last release fence
        view ahead{};  ///< what it will know after the next acquire fence
    };

    struct guard {
        std::uintptr_t begin, end;
        bool of_loads;

        bool operator==(const guard&) const = default;
    };
    struct second {
        std::uintptr_t begin, end, distance;
    };

    /// By open addressing: this is looked up at every step.
    cell& cell_at(std::uintptr_t address) {
        std::size_t at = place_of(address);
        for (; known_[at] != nullptr; at = (at + 1) % known_.size()) {
            if (known_[at]->address == address) return *known_[at];
        }
        cells_.push_back(cell{address});
        cell& made = cells_.back();
        for (const auto& each : left_out_) {
            if (address >= each.begin && address < each.end) made.left_out = true;
        }
        known_[at] = &made;
        if (cells_.size() * 2 > known_.size()) {
            known_.assign(known_.size() * 2, nullptr);
            for (auto& each : cells_) {
                at = place_of(each.address);
                while (known_[at] != nullptr) at = (at + 1) % known_.size();
                known_[at] = &each;
            }
        }
        return made;
    }
    [[nodiscard]] std::size_t place_of(std::uintptr_t address) const {
        return (std::uint64_t{address} * 0x9E3779B97F4A7C15U >> 32) % known_.size();
    }
    /// The first time that it is used in a run.
    void begin_cell(cell& c) {
        c.history.clear();
        for (unsigned half = 0; half < 2; ++half) {
            c.read_at[half].fill(0);
            c.stored_at[half].fill(0);
        }
        if (c.guarded != guard_sets_) {
            c.guarded = guard_sets_;
            c.exclusive = c.handed_on = false;
            for (const auto& each : guards_) {
                if (c.address < each.begin || c.address >= each.end) continue;
                (each.of_loads ? c.exclusive : c.handed_on) = true;
            }
        }
        c.history.push_back({place{&c, 0, 8}.content(), {0, 0}, 3, 0});
    }
    void copy(view& to, const view& from) const { std::copy_n(from.begin(), stride_, to.begin()); }
    void join(view& to, const std::uint16_t* from) const {
        for (std::size_t i = 0; i < stride_; ++i) to[i] = std::max(to[i], from[i]);
    }
    void step(unsigned t) {
        ++threads_[t].seen[t];
        threads_[t].ahead[t] = threads_[t].seen[t];
    }
    void take_in(const place& p, unsigned t, bool acquiring, std::size_t index) {
        auto& me = threads_[t];
        cell& c = *p.in;
        for (unsigned half = p.first(); half <= p.last(); ++half) {
            const std::uint16_t from = c.history[index].last[half];
            const std::uint16_t* const carried = arena_.data() + c.history[from].carries;
            if (c.history[from].carries != 0) {
                join(me.ahead, carried);
                if (acquiring) join(me.seen, carried);
            }
            me.seen[c.entry + half] = std::max(me.seen[c.entry + half], from);
            me.ahead[c.entry + half] = std::max(me.ahead[c.entry + half], from);
            c.read_at[half][t] = me.seen[t];
        }
    }
    bool append(const place& p, unsigned t, std::uint64_t value, bool releasing,
                const store_made* carries_on) {
        auto& me = threads_[t];
        cell& c = *p.in;
        bool ordered = true;
        const auto index = static_cast<std::uint16_t>(c.history.size());
        store_made made{p.into(c.history.back().content, value), c.history.back().last, p.halves(),
                        arena_.size()};
        for (unsigned half = p.first(); half <= p.last(); ++half) {
            made.last[half] = index;
            me.seen[c.entry + half] = index;
            me.ahead[c.entry + half] = index;
            for (unsigned other = 0; c.exclusive && other < most_threads; ++other) {
                if (other != t && me.seen[other] < c.read_at[half][other]) ordered = false;
            }
            for (unsigned other = 0; c.handed_on && other < most_threads; ++other) {
                if (other != t && me.seen[other] < c.stored_at[half][other]) ordered = false;
            }
            c.stored_at[half][t] = me.seen[t];
        }
        const view& base = releasing ? me.seen : me.fence;
        arena_.insert(arena_.end(), base.begin(),
                      base.begin() + static_cast<std::ptrdiff_t>(stride_));
        std::uint16_t* const carried = arena_.data() + made.carries;
        for (unsigned half = p.first(); half <= p.last(); ++half) {
            carried[c.entry + half] = index;
            if (carries_on == nullptr) continue;
            const std::uint16_t* const before =
                arena_.data() + c.history[carries_on->last[half]].carries;
            for (std::size_t i = 0; i < stride_; ++i) carried[i] = std::max(carried[i], before[i]);
        }
        c.history.push_back(made);
        p.put(value);
        return ordered;
    }

    std::deque<cell> cells_;
    std::vector<cell*> known_ = std::vector<cell*>(4096);
    std::vector<guard> said_, guards_, left_out_;
    std::vector<second> aliases_;
    std::uint64_t guard_sets_ = 1;
    std::vector<std::uint16_t> arena_;
    std::array<thread_views, most_threads> threads_{};
    view all_{};
    std::size_t used_ = most_threads;
    std::size_t stride_ = most_threads;
    std::uint64_t run_ = 0;
    bool all_shared_ = false;
    bool newly_shared_ = false;
};

}  // namespace model
