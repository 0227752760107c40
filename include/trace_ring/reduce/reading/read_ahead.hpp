// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Sub-buffers of a trace, copied some at a time in the order in which a cursor will ask for them:
/// by the cursor's thread when it asks, and by other threads before, which also decode them and
/// leave out the records that are not wanted.
/// @code
///   helper                                   the cursor's thread
///   the next part that nobody has begun      the part with what comes next:
///     copies, checks    (batch.hpp)            done by a helper:   takes it over
///     walks, selects    (entry_list.hpp)       just being done:    waits for it
///                                              not begun:          copies it itself
/// @endcode
/// What is missing between sub-buffers, merging, and all but the condition stays with the cursor's
/// thread, which copies and decodes again whatever a helper could not, so what is read is the same
/// whether there are helpers or not.

#include <signal.h>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <trace_ring/position.hpp>
#include <trace_ring/reduce/file/chain.hpp>
#include <trace_ring/reduce/file/entry_list.hpp>
#include <trace_ring/reduce/filter.hpp>
#include <trace_ring/reduce/reading/batch.hpp>
#include <trace_ring/reduce/tables.hpp>

namespace trace_ring::inline v1::reduce {

/// For one cursor. What it does not have is no loss: the cursor copies it alone. Memory: eight
/// batches and four more for each helper, of at most 64 KiB and what they decode to (at worst seven
/// times that, of records without fields), and 32 bytes for each sub-buffer.
///
/// Helpers read the trace's tables, which nobody may bring up to date meanwhile: no `refresh`, no
/// other cursor. They take no signals. A process that forks has them in the parent only: there the
/// cursor must be let go.
class read_ahead {
public:
    read_ahead(const tables& in, filter what, direction way, merging order)
        : in_(in),
          what_(std::move(what)),
          way_(way),
          order_(order),
          size_(batch::size_for(in.plan())) {}
    read_ahead(const read_ahead&) = delete;
    read_ahead& operator=(const read_ahead&) = delete;
    ~read_ahead() {
        {
            const std::lock_guard<std::mutex> guard(lock_);
            stop_ = true;
        }
        work_.notify_all();
        for (auto& each : helpers_) each.join();
    }

    /// What is going to be read of a lane. All of them before the first `take`.
    void add(const chain& what, const lane_info& lane) {
        for (const auto& link : what.links) {
            if (!link.readable || link.fault != link_fault::none) continue;
            plan_.push_back({link.pos, link.slot, what.lane, link.commit, &lane});
        }
    }
    /// Linear, and sorting if there are several lanes. Where the system gives fewer threads than
    /// were wanted, these must do.
    void start() {
        const auto before = [this](const planned_copy& a, const planned_copy& b) {
            return key(a.lane, a.pos) < key(b.lane, b.pos);
        };
        if (!std::is_sorted(plan_.begin(), plan_.end(), before)) {
            std::sort(plan_.begin(), plan_.end(), before);
        }
        most_credit_ = 8 * size_;
        credit_ = most_credit_ / 2;
        begun_.assign((plan_.size() + size_ - 1) / size_, false);
        // A few are copied sooner than a thread is made.
        const std::size_t helpers = std::min<std::size_t>(what_.helpers, begun_.size() / 2);
        held_ = std::vector<held>((std::min)(8 + 4 * helpers, begun_.size()));
        if (helpers != 0) employ(helpers);
    }

    /// Takes over the copy of a sub-buffer, and what it was decoded to. False: there is none.
    /// Throws std::bad_alloc.
    [[nodiscard]] bool take(std::uint32_t lane, position pos, entry_list& into) {
        const std::size_t at = find(lane, pos);
        if (at == plan_.size()) return false;
        const std::size_t number = at / size_;
        std::unique_lock<std::mutex> guard(lock_);
        held* found = nullptr;
        for (held& each : held_) {
            if (each.number == number) found = &each;
        }
        if (found != nullptr && found->now == stage::filling) {
            done_.wait(guard,
                       [&] { return found->number != number || found->now != stage::filling; });
            if (found->number != number) found = nullptr;  // it could not be filled
        }
        if (found == nullptr) found = load(number, guard);
        if (found == nullptr) return false;
        found->used = ++now_;
        batch::one& one = found->copies[at % size_];
        const bool copied = std::exchange(one.copied, false);
        if (copied) {
            into.take_copy(one.list);
            credit_ = (std::min)(credit_ + 2, most_credit_);
        }
        if (--found->left == 0) {
            found->now = stage::free;
            found->number = none;
            if (!helpers_.empty()) work_.notify_one();
        }
        return copied;
    }

private:
    static constexpr std::size_t none = ~std::size_t{0};
    enum class stage { free, filling, ready };

    /// Free ones are anybody's who has the lock; those that are being filled, theirs who fill them;
    /// ready ones, the cursor's thread's.
    struct held {
        batch copies;
        std::size_t number = none;  // of the part of the plan
        std::uint64_t used = 0;
        std::size_t left = 0;  // not yet asked for
        stage now = stage::free;
    };

    [[nodiscard]] std::tuple<std::uint32_t, position> key(std::uint32_t lane,
                                                          position pos) const noexcept {
        return {order_ == merging::by_lane ? lane : 0, pos};
    }
    /// Where it is in the plan; its end if it is not there.
    [[nodiscard]] std::size_t find(std::uint32_t lane, position pos) noexcept {
        const auto is_here = [&](std::size_t at) {
            return at < plan_.size() && plan_[at].pos == pos && plan_[at].lane == lane;
        };
        for (const std::size_t beside : {last_ + 1, last_ - 1}) {
            if (is_here(beside)) return last_ = beside;
        }
        const auto found = std::lower_bound(
            plan_.begin(), plan_.end(), key(lane, pos),
            [this](const planned_copy& a, const auto& b) { return key(a.lane, a.pos) < b; });
        const auto at = static_cast<std::size_t>(found - plan_.begin());
        return is_here(at) ? last_ = at : plan_.size();
    }
    [[nodiscard]] std::span<const planned_copy> part(std::size_t number) const noexcept {
        return std::span(plan_).subspan(number * size_,
                                        (std::min)(size_, plan_.size() - number * size_));
    }

    /// Copies a part of the plan, if need be in the place of the one that was used the longest time
    /// ago. Not, so that lanes which are read in many places at once do not make everything be
    /// copied again and again, if of what was copied lately too little was used.
    [[nodiscard]] held* load(std::size_t number, std::unique_lock<std::mutex>& guard) {
        const auto what = part(number);
        if (credit_ < what.size()) {
            ++credit_;
            return nullptr;
        }
        held* place = nullptr;
        for (held& each : held_) {
            if (each.now == stage::filling) continue;
            const auto better = [](const held& a, const held& b) {
                return a.now != b.now ? a.now == stage::free : a.used < b.used;
            };
            if (place == nullptr || better(each, *place)) place = &each;
        }
        if (place == nullptr) return nullptr;
        credit_ -= what.size();
        begin(*place, number);
        guard.unlock();
        try {
            place->copies.fill(in_, what);
        } catch (...) {
            guard.lock();
            end(*place, false);
            throw;
        }
        guard.lock();
        end(*place, true);
        return place;
    }
    void begin(held& place, std::size_t number) {
        place.number = number;
        place.now = stage::filling;
        place.left = part(number).size();
        begun_[number] = true;
    }
    void end(held& place, bool filled) noexcept {
        place.now = filled ? stage::ready : stage::free;
        place.used = ++now_;
        if (!filled) place.number = none;
    }

    void employ(std::size_t count) {
        next_ = way_ == direction::forward ? 0 : begun_.size() - 1;
        sigset_t all;
        sigset_t before;
        ::sigfillset(&all);
        if (::pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return;
        try {
            while (helpers_.size() < count) {
                filter own = what_;
                if (own.condition) own.condition = own.condition->another();
                const bool asks = own.condition != nullptr || what_.condition == nullptr;
                helpers_.emplace_back(
                    [this, own = std::move(own), asks] { help(asks ? own : filter{}); });
            }
        } catch (const std::system_error&) {  // no more threads: fewer will do
        } catch (...) {
            ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
            throw;
        }
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }

    /// The part that comes next and that nobody has begun.
    [[nodiscard]] bool has_next() noexcept {
        while (next_ < begun_.size() && begun_[next_]) {
            way_ == direction::forward ? ++next_ : --next_;  // below 0: beyond the end
        }
        return next_ < begun_.size();
    }
    [[nodiscard]] held* free_place() noexcept {
        const auto found = std::find_if(held_.begin(), held_.end(),
                                        [](const held& h) { return h.now == stage::free; });
        return found == held_.end() ? nullptr : &*found;
    }

    /// What a helper does.
    void help(const filter& ask) {
        std::unique_lock<std::mutex> guard(lock_);
        for (;;) {
            held* place = nullptr;
            work_.wait(guard, [&] {
                if (!stop_ && has_next()) place = free_place();
                return stop_ || place != nullptr || next_ >= begun_.size();
            });
            if (stop_ || place == nullptr) return;
            const std::size_t number = next_;
            begin(*place, number);
            guard.unlock();
            const bool filled = prepare(place->copies, part(number), ask);
            guard.lock();
            end(*place, filled);
            done_.notify_one();
        }
    }
    /// What throws here is left to the cursor's thread, where it will be thrown again.
    [[nodiscard]] bool prepare(batch& copies, std::span<const planned_copy> what,
                               const filter& ask) const noexcept {
        try {
            copies.fill(in_, what);
        } catch (...) {
            return false;
        }
        for (std::size_t i = 0; i < what.size(); ++i) {
            if (!copies[i].copied) continue;
            try {
                copies[i].list.walk_ahead(in_, *what[i].whose, way_, ask);
            } catch (...) {
                copies[i].copied = false;
            }
        }
        return true;
    }

    const tables& in_;
    filter what_;
    direction way_;
    merging order_;
    std::size_t size_;  // sub-buffers in a batch
    std::vector<planned_copy> plan_;
    std::size_t last_ = 0;
    std::size_t credit_ = 0;
    std::size_t most_credit_ = 0;

    std::mutex lock_;  // of all that follows
    std::condition_variable work_;
    std::condition_variable done_;
    std::vector<held> held_;
    std::vector<bool> begun_;  // by part
    std::size_t next_ = 0;     // part
    std::uint64_t now_ = 0;
    bool stop_ = false;
    std::vector<std::thread> helpers_;
};

}  // namespace trace_ring::inline v1::reduce
