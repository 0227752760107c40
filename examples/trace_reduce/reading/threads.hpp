// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Threads that copy and decode a trace's sub-buffers ahead of the cursor that merges them, and
/// leave out the records that are not wanted.
/// @code
///   helper                                   the cursor's thread
///   the next part that nobody has begun      the part with what comes next:
///     copies, checks                           done by a helper:   takes it over
///     walks, selects                           just being done:    waits for it
///                                              not begun:          copies it itself
/// @endcode
/// What a helper could not copy or decode the cursor's thread does again, so what is read is the
/// same whether there are helpers or not.

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
#include <utility>
#include <vector>

#include <trace_ring/reduce/cursor/read_ahead.hpp>
#include <trace_ring/reduce/filter.hpp>
#include <trace_ring/reduce/tables.hpp>

#include "selection.hpp"

namespace trace_reduce {

namespace reduce = trace_ring::reduce;

/// Memory: four batches for each helper in addition to reduce::read_ahead's, each of at most 64 KiB
/// and its decoded entries (at worst seven times that, of records without fields; 120 times, of
/// packed references).
///
/// Helpers read the trace's tables, which must not change while they run: no `refresh`, no other
/// cursor. They take no signals. A process that forks has them in the parent only: there the
/// cursor must be let go.
class reading_threads final : public reduce::read_ahead {
public:
    reading_threads(const reduce::tables& in, reduce::filter what, reduce::direction way,
                    reduce::merging order, unsigned helpers)
        : reduce::read_ahead(in, order), what_(std::move(what)), way_(way), wanted_(helpers) {}
    ~reading_threads() override {
        {
            const std::lock_guard<std::mutex> guard(lock_);
            stop_ = true;
        }
        work_.notify_all();
        for (auto& each : helpers_) each.join();
    }

    /// Where the system gives fewer threads than were wanted, these must do.
    void start() override {
        // A few are copied sooner than a thread is made.
        const std::size_t helpers = std::min<std::size_t>(wanted_, parts() / 2);
        set_up(8 + 4 * helpers);
        stages_.assign(places().size(), stage::free);
        begun_.assign(parts(), false);
        if (helpers != 0) employ(helpers);
    }

private:
    /// Free places are anybody's who has the lock; those that are being filled, theirs who fill
    /// them; ready ones, the cursor's thread's.
    enum class stage { free, filling, ready };

    [[nodiscard]] held* fetch(std::size_t number) override {
        std::unique_lock<std::mutex> guard(lock_);
        const auto all = places();
        auto found = std::find_if(all.begin(), all.end(),
                                  [number](const held& each) { return each.number == number; });
        if (found != all.end() && stage_of(*found) == stage::filling) {
            done_.wait(guard, [&] {
                return found->number != number || stage_of(*found) != stage::filling;
            });
            if (found->number != number) found = all.end();  // it could not be filled
        }
        if (found != all.end()) return use(*found);
        return load(number, guard);
    }
    void release(held& place) override {
        const std::lock_guard<std::mutex> guard(lock_);
        place.number = none;
        stage_of(place) = stage::free;
        if (!helpers_.empty()) work_.notify_one();
    }

    [[nodiscard]] stage& stage_of(const held& place) noexcept {
        return stages_[static_cast<std::size_t>(&place - places().data())];
    }

    /// Copies a part of the plan, if need be in the place of the one that was used the longest time
    /// ago.
    [[nodiscard]] held* load(std::size_t number, std::unique_lock<std::mutex>& guard) {
        if (!may_copy(number)) return nullptr;
        held* place = nullptr;
        for (held& each : places()) {
            if (stage_of(each) == stage::filling) continue;
            const auto better = [this](const held& a, const held& b) {
                return stage_of(a) != stage_of(b) ? stage_of(a) == stage::free : a.used < b.used;
            };
            if (place == nullptr || better(each, *place)) place = &each;
        }
        if (place == nullptr) return nullptr;
        fill_begins(*place, number);
        guard.unlock();
        try {
            place->copies.fill(in(), part(number));
        } catch (...) {
            guard.lock();
            fill_ends(*place, false);
            throw;
        }
        guard.lock();
        fill_ends(*place, true);
        return use(*place);
    }
    void fill_begins(held& place, std::size_t number) {
        begin(place, number);
        stage_of(place) = stage::filling;
        begun_[number] = true;
    }
    void fill_ends(held& place, bool filled) noexcept {
        stage_of(place) = filled ? stage::ready : stage::free;
        static_cast<void>(use(place));
        if (!filled) place.number = none;
    }

    void employ(std::size_t count) {
        next_ = way_ == reduce::direction::forward ? 0 : begun_.size() - 1;
        sigset_t all;
        sigset_t before;
        ::sigfillset(&all);
        if (::pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return;
        try {
            while (helpers_.size() < count) {
                reduce::filter own = what_;
                if (own.condition) own.condition = own.condition->another();
                helpers_.emplace_back([this, own = std::move(own)] { help(own); });
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
            way_ == reduce::direction::forward ? ++next_ : --next_;  // below 0: beyond the end
        }
        return next_ < begun_.size();
    }
    [[nodiscard]] held* free_place() noexcept {
        const auto all = places();
        const auto found = std::find_if(all.begin(), all.end(), [this](const held& each) {
            return stage_of(each) == stage::free;
        });
        return found == all.end() ? nullptr : &*found;
    }

    /// What a helper does.
    void help(const reduce::filter& ask) {
        std::unique_lock<std::mutex> guard(lock_);
        for (;;) {
            held* place = nullptr;
            work_.wait(guard, [&] {
                if (!stop_ && has_next()) place = free_place();
                return stop_ || place != nullptr || next_ >= begun_.size();
            });
            if (stop_ || place == nullptr) return;
            const std::size_t number = next_;
            fill_begins(*place, number);
            guard.unlock();
            const bool filled = prepare(place->copies, part(number), ask);
            guard.lock();
            fill_ends(*place, filled);
            done_.notify_one();
        }
    }
    /// What throws here is left to the cursor's thread, where it will be thrown again.
    [[nodiscard]] bool prepare(reduce::batch& copies, std::span<const reduce::planned_copy> what,
                               const reduce::filter& ask) noexcept {
        try {
            copies.fill(in(), what);
        } catch (...) {
            return false;
        }
        for (std::size_t i = 0; i < what.size(); ++i) {
            if (!copies[i].copied) continue;
            try {
                const reduce::lane_info& lane = *what[i].owner;
                copies[i].list.walk_ahead(
                    in(), lane, reduce::unpacks(in(), ask),
                    [&](auto& all, const auto& words, const auto& head, std::uint64_t offset,
                        auto& out) {
                        if (ask.events.empty() && ask.threads.empty() && !ask.condition) {
                            out.swap(all);
                        } else {
                            selection(in(), lane, way_, ask).make(all, words, head, offset, out);
                        }
                    });
            } catch (...) {
                copies[i].copied = false;
            }
        }
        return true;
    }

    reduce::filter what_;
    reduce::direction way_;
    std::size_t wanted_;  // helpers

    std::mutex lock_;  // of all that follows, and of the places
    std::condition_variable work_;
    std::condition_variable done_;
    std::vector<stage> stages_;  // by place
    std::vector<bool> begun_;    // by part
    std::size_t next_ = 0;       // part
    bool stop_ = false;
    std::vector<std::thread> helpers_;
};

/// For filter::ahead. 0: nobody reads ahead.
[[nodiscard]] inline decltype(reduce::filter::ahead) read_ahead_by(unsigned helpers) {
    if (helpers == 0) return {};
    return [helpers](const reduce::tables& in, const reduce::filter& what, reduce::direction way,
                     reduce::merging order) -> std::unique_ptr<reduce::read_ahead> {
        return std::make_unique<reading_threads>(in, what, way, order, helpers);
    };
}

}  // namespace trace_reduce
