// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A debug store as a branch_source: reads a store's records as neutral ones, and empties the
/// store.
/// @code
///   x86::stored_branches source(store);       // a branch_store that was started
///   while (!source.ended()) source.read(visitor);
/// @endcode
/// While records are read the processor stores none, as with any session over the store. A
/// processor does not count the records that it loses, so each gap has an unknown length; the least
/// that is known is in its advice.

#include <trace_ring/x86/enabled.hpp>

#include <cstddef>
#include <cstdint>

#include <trace_ring/loss.hpp>
#include <trace_ring/x86/branch_source.hpp>

namespace trace_ring::inline v1::x86 {

/// `Store` is a branch_store of either model, which must outlive the source. Only one source or
/// session may use it at a time. A store does not record the privilege level: an address may be of
/// any level that a branch came from or went to, for any selection of levels.
template <class Store>
class stored_branches {
public:
    /// What this source reports.
    static constexpr branch_character character{.order = branch_order::oldest_first,
                                                .delivery = branch_delivery::memory_ring,
                                                .tells_prediction = true,
                                                .foreign_privilege = true};

    /// Branches of that store, which must outlive this object.
    explicit stored_branches(Store& store) noexcept : store_(store) {}

    /// A whole session in one call. Throws what `attach` and `take` of a branch_store throw, and
    /// what the visitor throws; then the records of that portion are visited again the next time.
    template <branch_visitor Visit>
    std::uint64_t read(Visit&& visit) {
        struct session {
            Store& store;
            explicit session(Store& of) : store(of) { store.attach(); }
            session(const session&) = delete;
            session& operator=(const session&) = delete;
            ~session() { store.detach(); }
        };
        const session now(store_);
        const bool last = !store_.started();
        std::uint64_t seen = 0;
        for (typename Store::portion p; store_.take(p);) {
            struct giver {
                Store& store;
                typename Store::portion& what;
                bool keeps = true;
                ~giver() { keeps ? store.keep(what) : store.consume(what); }
            } back{store_, p};
            tell(p.lost(), visit);
            seen += store_.visit(p, [&](const auto& record) { visit(neutral(record)); });
            back.keeps = false;
        }
        tell(store_.rest(), visit);
        ended_ = last;
        return seen;
    }
    /// Refuses to compile: `Visit` is no branch_visitor.
    template <class Visit>
    std::uint64_t read(Visit&&) {
        return impl::refuse_visitor<Visit>();
    }
    /// The store had been stopped when it was last read.
    [[nodiscard]] bool ended() const noexcept { return ended_ && !store_.started(); }
    /// Branches that are missing.
    [[nodiscard]] const loss_counts& lost() const noexcept { return lost_; }

private:
    [[nodiscard]] static branch neutral(const typename Store::record_type& record) noexcept {
        branch out(record.from, record.to);
        // Only "predicted" is passed on, because some processors never set the bit.
        if (record.predicted()) out.set_predicted(true);
        return out;
    }
    template <class Visit>
    void tell(const loss_counts& lost, Visit& visit) {
        lost_ += lost;
        for (std::size_t i = 0; i < loss_cause_count; ++i) {
            const auto cause = static_cast<loss_cause>(i);
            if (lost[cause] == 0) continue;
            branch_gap gap{0, cause, 0};
            if (cause == loss_cause::refused || cause == loss_cause::overwritten)
                gap.advice = store_.advice();
            visit(static_cast<const branch_gap&>(gap));
        }
    }

    Store& store_;
    loss_counts lost_{};
    bool ended_ = false;
};
template <class Store>
stored_branches(Store&) -> stored_branches<Store>;

}  // namespace trace_ring::inline v1::x86
