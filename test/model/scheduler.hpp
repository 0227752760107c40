// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Runs two or three threads of a test as fibres, one at a time, and enumerates what can happen:
/// which thread continues at each atomic step, and which store each load returns (memory.hpp).
///
/// An exploration is a tree: the first run takes the first choice everywhere (the thread that runs
/// continues, a load returns the newest store), each later run repeats one before it up to its last
/// choice that has an alternative left. What is bounded is how often a run departs from the first
/// choices: a number of switches away from a thread that could continue (`switches`), so many loads
/// of an older store or exchanges that fail for no reason (`older`). The bounds grow level by
/// level, as long as `steps` last; a level that did not come to its end says so; what is left is
/// spent on runs drawn at random, always the same ones, with wider bounds.
///
/// Only steps on cells that two threads use and one writes are points of choice. Which they are is
/// learned: a run that finds a new one is not counted, and its level begins again.
///
/// Of runs that differ only in the order of steps which have nothing to do with each other one is
/// enough (a sleep set, of one thread). A thread that could continue, and is switched away from,
/// has its step due. If that comes to be made with no step between that it conflicts with (the same
/// cell, and one of the two stores; or both seq_cst), then it might as well have been made before
/// the switch, with as many switches: that run was there before, and this one is given up. Such a
/// run counts as one all the same, because it represents those that would begin like it.
///
/// A thread can be made to end at any of its steps, for good (`dies`), and to be interrupted before
/// any of them, shared or not, by a handler that runs on its stack (`interrupted`). Either once a
/// run, and in addition to the bounds.
///
/// Fair: a thread that yields, or loads for long without learning anything new, waits until another
/// has stored something, and is not waited for either. A run of more than `most_steps` steps, or in
/// which all wait for each other, is a fault: stuck.
///
/// A fault is printed with its schedule: `TRACE_RING_SCHEDULE='name: schedule' program` repeats
/// that one run and prints its steps. TRACE_RING_LONG=1 makes `steps` ten times as many, and
/// TRACE_RING_QUICK=1 a tenth.

#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "memory.hpp"

namespace model {

struct bounds {
    std::uint64_t steps = 12'000'000;  ///< atomic steps, over all runs
    unsigned complete = 2;             ///< levels that must come to their end, or it is a fault
};

struct level {
    unsigned switches, older;
};
inline constexpr level levels[] = {{1, 0}, {1, 1}, {2, 1}, {2, 2}, {3, 2}, {3, 3}, {4, 3}};

struct result {
    std::string fault;     ///< what was broken; empty: nothing
    std::string schedule;  ///< by which run
    std::uint64_t runs = 0, given_up = 0, random_runs = 0, steps = 0;
    unsigned levels_done = 0;
    std::size_t shared = 0;  ///< cells
};

/// One run of a scenario, with its set-up.
class run {
public:
    void thread(std::function<void()> body) { bodies_.push_back(std::move(body)); }
    /// The thread named last may end before any of its steps. What it stored is stored.
    void dies() { dies_.push_back(bodies_.size() - 1); }
    /// The thread named last may be interrupted, once, before any of its steps.
    void interrupted(std::function<void()> handler) {
        handlers_.push_back({bodies_.size() - 1, std::move(handler)});
    }
    /// The threads named so far are stacks of one thread: each sees what was done before.
    void of_one_thread() { of_one_thread_ = static_cast<unsigned>(bodies_.size()); }
    /// See memory::alias.
    void alias(const void* from, std::size_t bytes, const void* to) {
        aliases_.push_back({from, bytes, to});
    }
    /// After the threads have ended; it sees all that they stored.
    void afterwards(std::function<void()> body) { after_ = std::move(body); }
    /// Names bytes in the steps that a repeated run prints.
    void name(std::string_view what, const void* at, std::size_t bytes) {
        names_.push_back({std::string(what), reinterpret_cast<std::uintptr_t>(at), bytes});
    }
    /// See memory::exclusive.
    void exclusive(const void* from, std::size_t bytes) { guards_.push_back({from, bytes, true}); }
    /// See memory::leave_out. Of the same bytes in each run.
    void leave_out(const void* from, std::size_t bytes) {
        left_out_.push_back({from, bytes, false});
    }
    /// Called before and after each stretch that a thread runs: for what is a thread's own.
    void around(void (*enter)(unsigned), void (*leave)(unsigned)) {
        enter_ = enter;
        leave_ = leave;
    }
    /// See memory::handed_on.
    void handed_on(const void* from, std::size_t bytes) { guards_.push_back({from, bytes, false}); }

private:
    friend class scheduler;
    struct named {
        std::string what;
        std::uintptr_t at;
        std::size_t bytes;
    };
    struct guard {
        const void* from;
        std::size_t bytes;
        bool of_loads;
    };
    struct second {
        const void* from;
        std::size_t bytes;
        const void* to;
    };
    std::vector<std::function<void()>> bodies_;
    std::vector<std::size_t> dies_;
    std::vector<std::pair<std::size_t, std::function<void()>>> handlers_;
    std::vector<second> aliases_;
    std::function<void()> after_;
    std::vector<named> names_;
    std::vector<guard> guards_, left_out_;
    unsigned of_one_thread_ = 0;
    void (*enter_)(unsigned) = nullptr;
    void (*leave_)(unsigned) = nullptr;
};

class scheduler {
public:
    /// What the tests are to believe of the machine: faults planted in its orders.
    weakness weak;

    [[nodiscard]] bool running() const { return current_ != none; }
    /// A run is being set up, made or looked at.
    [[nodiscard]] bool exploring() const { return set_up_ != nullptr; }
    [[nodiscard]] unsigned current() const { return current_; }

    /// Explores what `set_up` sets up anew for each run.
    result explore(std::string_view name, const bounds& within,
                   const std::function<void(run&)>& set_up) {
        set_up_ = &set_up;
        result out = explore_all(name, within);
        set_up_ = nullptr;
        return out;
    }

    // --- What the atomics do ---
    std::uint64_t load(const void* at, unsigned bytes, order o) {
        place p{};
        if (!step(at, bytes, o, false, p)) {
            const std::uint64_t now = p.from(p.content());
            learn(p, now);
            return now;
        }
        memory_.visible(p, current_, candidates_);
        const std::size_t pick = choose_store(candidates_.size());
        const std::uint64_t got = memory_.load(p, current_, o, candidates_[pick]);
        learn(p, got);
        tell(p, "load", got, o, pick);
        return got;
    }
    void store(const void* at, unsigned bytes, std::uint64_t value, order o) {
        place p{};
        const bool matters = step(at, bytes, o, true, p);
        progress();
        if (!matters) {
            p.put(value);
            return;
        }
        tell(p, "store", value, o, 0);
        if (!memory_.store(p, current_, value, o)) unordered(p);
    }
    /// `change` gets the newest value; its result is stored. Returns what was there.
    template <class Change>
    std::uint64_t exchange(const void* at, unsigned bytes, order o, Change change) {
        place p{};
        const bool matters = step(at, bytes, o, true, p);
        progress();
        const std::uint64_t old = p.from(p.content());
        if (!matters) {
            p.put(change(old));
            return old;
        }
        tell(p, "exchange", change(old), o, 0);
        if (!memory_.replace(p, current_, change(old), o)) unordered(p);
        return old;
    }
    /// Fails with any visible value that is another, or, if weak, for no reason.
    bool compare_exchange(const void* at, unsigned bytes, std::uint64_t& expected,
                          std::uint64_t desired, order success, order failure, bool weakly) {
        place p{};
        const bool matters = step(at, bytes, success, true, p);
        const std::uint64_t now = p.from(p.content());
        if (!matters) {
            if (now == expected) {
                progress();
                p.put(desired);
                return true;
            }
            learn(p, now);
            expected = now;
            return false;
        }
        memory_.visible(p, current_, candidates_);
        std::erase_if(candidates_, [&](std::uint16_t index) {
            return index + 1U != p.in->history.size() &&
                   p.from(p.in->history[index].content) == expected;
        });
        const bool may_fail = weakly && now == expected;
        const std::size_t pick = choose_store(candidates_.size() + (may_fail ? 1 : 0));
        if (pick == 0 && now == expected) {
            progress();
            tell(p, "swap", desired, success, 0);
            if (!memory_.replace(p, current_, desired, success)) unordered(p);
            return true;
        }
        const std::size_t from =
            pick < candidates_.size() ? candidates_[pick] : p.in->history.size() - 1;
        expected = memory_.load(p, current_, failure, from);
        learn(p, expected);
        tell(p, "swap fails", expected, failure, pick);
        return false;
    }
    void fence(order o) {
        if (!running()) return;
        if (o == order::seq_cst) {
            ++steps_;
            switch_point(nullptr, false, true);
            if (may_end_or_be_interrupted()) switch_point(nullptr, false, true);
            due_now(nullptr, false, true);
        }
        memory_.fence(current_, o);
        if (repeats_)
            std::printf("%6llu  thread %u  fence %s\n", number(steps_), current_, name_of(o));
    }

    /// A full fence that this thread makes for all, as membarrier does: by each of the others, one
    /// after the other, between its steps, and everything that happens between two of them.
    void fence_for_all() {
        if (!running()) return;
        const unsigned self = current_;
        for (unsigned i = 0; i < count_; ++i) {
            if (i == self) continue;
            ++steps_;
            switch_point(nullptr, false, true);
            // It conflicts with each step that another thread is about to make.
            wake_all();
            due_now(nullptr, false, true);
            memory_.fence(self, order::seq_cst);
            memory_.fence(i, order::seq_cst);
            memory_.fence(self, order::seq_cst);
            if (repeats_)
                std::printf("%6llu  thread %u  fence of thread %u\n", number(steps_), self, i);
        }
    }

    // --- What the tests do, within a thread ---
    /// A property is broken.
    void fail(std::string_view what) {
        if (fault_.empty()) fault_ = what;
        if (running()) leave();
    }
    /// The thread cannot continue before another has stored something.
    void yield() {
        if (!running()) return;
        threads_[current_]->waits_at = stores_;
        threads_[current_]->waits = true;
        go_to(next_thread(current_));
    }
    /// Plain reads of these bytes by the thread. False: a race.
    [[nodiscard]] bool read_plainly(const void* from, std::size_t bytes) {
        if (!running()) return true;
        wake_all();
        return memory_.read_plainly(from, bytes, current_);
    }
    /// The thread asks the kernel whether another is no more; what that did is known then.
    [[nodiscard]] bool is_gone(unsigned thread) {
        const bool gone = thread < count_ && threads_[thread]->dead;
        if (running()) {
            wake_all();
            if (gone) memory_.learn_all_of(current_, thread);
        }
        return gone;
    }
    /// The thread is in its handler.
    [[nodiscard]] bool interrupted() const { return threads_[current_]->handles; }

private:
    static constexpr unsigned none = ~0U;
    static constexpr std::uint64_t most_steps = 20'000;
    static constexpr unsigned patience = 200;  ///< loads in a row that bring nothing new
    static constexpr unsigned looks = 2;  ///< at one word, with one result: the next is no choice
    static constexpr std::size_t stack_bytes = 256 * 1024;

    struct fibre {
        ucontext_t context{};
        jmp_buf at{};
        bool begun = false;
        std::byte* stack = nullptr;
        std::function<void()> body;
        bool done = false;
        bool dead = false;
        bool may_die = false;
        std::function<void()>* handler = nullptr;  ///< that has not run yet
        bool handles = false;
        bool asleep = false;  ///< what it does next was tried before what others do
        const cell* due = nullptr;
        bool due_stores = false, due_is_seq_cst = false;
        bool waits = false;
        std::uint64_t waits_at = 0;
        unsigned fruitless = 0;
        const cell* last = nullptr;
        unsigned repeats = 0;
    };
    /// A point where there was more than one way to continue.
    struct choice {
        std::uint64_t step;
        char kind;  ///< 't': the thread, 's': the store, 'd': does it die, 'h': a handler
        unsigned taken, of;
        bool cut = false;  ///< the first is the only one within the bounds
    };

    static unsigned long long number(std::uint64_t n) { return n; }
    static const char* name_of(order o) {
        constexpr const char* names[] = {"relaxed", "acquire", "release", "acq_rel", "seq_cst"};
        return names[static_cast<unsigned>(o)];
    }

    result explore_all(std::string_view name, const bounds& within) {
        result out;
        memory_.forget();
        memory_.weak = weak;
        const auto is_set = [](const char* variable) {
            const char* const set = std::getenv(variable);
            return set != nullptr && *set == '1';
        };
        std::uint64_t budget = within.steps;
        unsigned complete = within.complete;
        if (is_set("TRACE_RING_LONG")) budget *= 10;
        if (is_set("TRACE_RING_QUICK")) {
            budget = std::max(budget / 10, std::min<std::uint64_t>(budget, 200'000));
            complete = 0;  // what of the first levels there is time for
        }
        if (const char* steps = std::getenv("TRACE_RING_STEPS"); steps != nullptr)
            budget = std::strtoull(steps, nullptr, 10);
        if (const char* given = std::getenv("TRACE_RING_SCHEDULE"); given != nullptr) {
            const std::string_view all = given;
            const std::size_t colon = all.find(": ");
            if (colon != all.npos && all.substr(0, colon) == name) {
                repeat(all.substr(colon + 2), out);
            }
            out.levels_done = complete;
            return out;
        }
        draws_ = false;
        for (const level& each : levels) {
            if (!explore_level(each, budget * 3 / 4, out)) break;
            ++out.levels_done;
        }
        if (out.fault.empty() && out.levels_done < complete) {
            out.fault = "the bounds are too narrow: level " + std::to_string(out.levels_done + 1) +
                        " was not explored to its end";
        }
        draws_ = true;
        allowed_ = {6, 6};
        random_ = 0x9E3779B97F4A7C15U;
        while (out.fault.empty() && out.steps < budget) {
            prefix_.clear();
            one_run(out);
            if (!memory_.newly_shared()) ++out.random_runs;
        }
        out.shared = memory_.shared_cells();
        return out;
    }

    bool explore_level(const level& each, std::uint64_t budget, result& out) {
        allowed_ = each;
        prefix_.clear();
        for (;;) {
            if (out.steps >= budget) return false;
            one_run(out);
            if (!out.fault.empty()) return false;
            if (memory_.newly_shared()) {
                prefix_.clear();
                continue;
            }
            ++out.runs;
            if (given_up_) ++out.given_up;
            while (!made_.empty() && made_.back().taken + 1 >= made_.back().of) made_.pop_back();
            if (made_.empty()) return true;
            ++made_.back().taken;
            prefix_ = made_;
        }
    }
    void one_run(result& out) {
        execute();
        out.steps += steps_;
        if (fault_.empty() || memory_.newly_shared()) return;
        out.fault = fault_;
        for (const auto& each : made_) {
            if (each.taken == 0) continue;
            if (!out.schedule.empty()) out.schedule += ' ';
            out.schedule += std::to_string(each.step) + each.kind + std::to_string(each.taken);
        }
        if (out.schedule.empty()) out.schedule = "-";
    }
    void repeat(std::string_view schedule, result& out) {
        given_.clear();
        const std::string text(schedule);
        for (const char* at = text.c_str(); *at != 0;) {
            char* end = nullptr;
            const auto step = std::strtoull(at, &end, 10);
            if (end == at || *end == 0 || std::strchr("tsdh", *end) == nullptr) break;
            const char kind = *end;
            const auto taken = static_cast<unsigned>(std::strtoul(end + 1, &end, 10));
            given_.push_back({step, kind, taken, 0});
            at = *end == ' ' ? end + 1 : end;
        }
        repeats_ = true;
        one_run(out);
        ++out.runs;
        repeats_ = false;
        if (!out.fault.empty()) out.schedule = text;
        std::printf("%s\n", out.fault.empty() ? "nothing is broken" : out.fault.c_str());
    }

    void execute() {
        run setting;
        fault_.clear();
        made_.clear();
        steps_ = stores_ = 0;
        used_ = {0, 0};
        (*set_up_)(setting);
        names_ = &setting.names_;
        memory_.begin_run(repeats_);
        for (const auto& each : setting.aliases_) memory_.alias(each.from, each.bytes, each.to);
        for (const auto& each : setting.left_out_) memory_.leave_out(each.from, each.bytes);
        for (const auto& each : setting.guards_) {
            if (each.of_loads) memory_.exclusive(each.from, each.bytes);
            memory_.handed_on(each.from, each.bytes);
        }
        memory_.guards_are_said();
        const std::size_t count = setting.bodies_.size();
        while (threads_.size() < count) threads_.push_back(std::make_unique<fibre>());
        count_ = static_cast<unsigned>(count);
        for (unsigned i = 0; i < count_; ++i) begin(*threads_[i], setting.bodies_[i]);
        for (const auto each : setting.dies_) threads_[each]->may_die = true;
        for (auto& each : setting.handlers_) threads_[each.first]->handler = &each.second;
        left_ = given_up_ = false;
        main_.begun = true;
        next_ = next_thread(none);
        while (next_ != none) {
            current_ = next_;
            fresh_ = true;
            const unsigned now = current_;
            for (unsigned i = 0; now < setting.of_one_thread_ && i < setting.of_one_thread_; ++i)
                memory_.learn_all_of(now, i);
            if (setting.enter_ != nullptr) setting.enter_(now);
            hand_over(main_, *threads_[now]);
            if (setting.leave_ != nullptr) setting.leave_(now);
            current_ = none;
            if (left_) break;
        }
        // Its threads' bodies refer to a test's locals, so they are removed completely.
        if (fault_.empty() && !given_up_ && !memory_.newly_shared() && setting.after_)
            setting.after_();
    }
    void begin(fibre& f, std::function<void()>& body) {
        if (f.stack == nullptr) {
            void* const at = ::mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (at == MAP_FAILED) throw std::bad_alloc();
            f.stack = static_cast<std::byte*>(at);
        }
        f.body = std::move(body);
        f.fruitless = f.repeats = 0;
        f.last = nullptr;
        f.waits = f.asleep = f.may_die = f.handles = false;
        f.handler = nullptr;
        const bool ended = std::exchange(f.done, false) && !f.dead;
        f.dead = false;
        if (ended) return;  // it waits for another body
        f.begun = false;
        ::getcontext(&f.context);
        f.context.uc_stack.ss_sp = f.stack;
        f.context.uc_stack.ss_size = stack_bytes;
        f.context.uc_link = nullptr;
        ::makecontext(&f.context, &scheduler::enter, 0);
    }
    static void enter();
    void work() {
        for (;;) {
            fibre& me = *threads_[current_];
            me.body();
            me.done = true;
            go_to(next_thread(current_));
        }
    }

    /// Where the thread that ends, waits or was never there hands on to. A choice like any other,
    /// but it costs nothing.
    unsigned next_thread(unsigned from) {
        if (++steps_ > most_steps && from != none && !threads_[from]->done) {
            fail("stuck: a run without an end");
        }
        candidates_of_threads_.clear();
        bool left = false;
        for (unsigned i = 0; i < count_; ++i) {
            fibre& f = *threads_[i];
            if (f.done) continue;
            left = true;
            if (f.waits && f.waits_at == stores_) continue;
            f.waits = false;
            if (i != from) candidates_of_threads_.push_back(i);
        }
        if (candidates_of_threads_.empty()) {
            // Those who wait may have waited for a time that is over now.
            for (unsigned i = 1; left && i <= count_; ++i) {
                const unsigned each = (from == none ? 0 : from + i) % count_;
                if (threads_[each]->done) continue;
                threads_[each]->waits = false;
                return each;
            }
            return none;
        }
        return candidates_of_threads_[choose('t', candidates_of_threads_.size(), true)];
    }
    void go_to(unsigned thread) {
        if (thread == current_) {
            fresh_ = true;
            return;
        }
        next_ = thread;
        hand_over(*threads_[current_], main_);
    }
    /// Ends the run: what its threads had in hand stays so.
    void leave() {
        left_ = true;
        next_ = none;
        hand_over(*threads_[current_], main_);
    }
    /// By setjmp once a fibre has begun: swapcontext makes two system calls.
    [[gnu::noinline]] static void hand_over(fibre& from, fibre& to) {
        if (_setjmp(from.at) != 0) return;
        if (to.begun) _longjmp(to.at, 1);
        to.begun = true;
        ::setcontext(&to.context);
    }

    /// Before each atomic step. False: nobody else has to do with that cell.
    bool step(const void* at, unsigned bytes, order o, bool stores, place& p) {
        if (!running()) {
            outside_.address = reinterpret_cast<std::uintptr_t>(at) & ~std::uintptr_t{7};
            p = {&outside_, static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(at) & 7) * 8,
                 bytes};
            return false;
        }
        if (++steps_ > most_steps) fail("stuck: a run without an end");
        p = memory_.at(at, bytes, current_, stores);
        if (threads_[current_]->fruitless > patience) {
            threads_[current_]->fruitless = 0;
            yield();
        }
        if (!memory_.matters(p)) {
            may_end_or_be_interrupted();
            return false;
        }
        if (threads_[current_]->last != p.in) threads_[current_]->repeats = 0;
        threads_[current_]->last = p.in;
        if (threads_[current_]->repeats < looks) switch_point(p.in, stores, o == order::seq_cst);
        if (may_end_or_be_interrupted()) switch_point(p.in, stores, o == order::seq_cst);
        due_now(p.in, stores, o == order::seq_cst);
        if (o == order::seq_cst) memory_.fence(current_, order::seq_cst);
        return true;
    }
    /// Its current action is a separate step, or wakes others.
    void due_now(const cell* in, bool stores, bool is_seq_cst) {
        if (threads_[current_]->asleep) {
            given_up_ = true;
            leave();
        }
        for (unsigned i = 0; i < count_; ++i) {
            fibre& f = *threads_[i];
            if (!f.asleep) continue;
            if ((f.due == in && (stores || f.due_stores)) || (is_seq_cst && f.due_is_seq_cst))
                f.asleep = false;
        }
    }
    void wake_all() {
        for (unsigned i = 0; i < count_; ++i) threads_[i]->asleep = false;
    }
    /// True: it was interrupted. Whether a thread that sleeps dies now or died before what others
    /// did is the same, unless they asked.
    bool may_end_or_be_interrupted() {
        fibre& me = *threads_[current_];
        if (me.may_die && !me.asleep && choose('d', 2, true) != 0) {
            if (repeats_) std::printf("%6llu  thread %u  dies\n", number(steps_), current_);
            me.done = me.dead = true;
            me.begun = false;
            for (unsigned i = 0; i < count_; ++i) threads_[i]->may_die = false;
            go_to(next_thread(current_));
        }
        if (me.handler == nullptr || choose('h', 2, true) == 0) return false;
        if (repeats_) std::printf("%6llu  thread %u  is interrupted\n", number(steps_), current_);
        me.asleep = false;
        auto& handler = *std::exchange(me.handler, nullptr);
        me.handles = true;
        handler();
        me.handles = false;
        fresh_ = false;
        return true;
    }
    /// Before a step, which is due then.
    void switch_point(const cell* in, bool stores, bool is_seq_cst) {
        if (fresh_) {  // it was switched to just now
            fresh_ = false;
            return;
        }
        std::array<unsigned, most_threads> others{};
        unsigned count = 0;
        for (unsigned i = 0; i < count_; ++i) {
            const fibre& f = *threads_[i];
            if (i != current_ && !f.done && !(f.waits && f.waits_at == stores_))
                others[count++] = i;
        }
        if (count == 0) return;
        const unsigned taken = choose('t', count + 1, used_.switches < allowed_.switches);
        if (taken == 0) return;
        ++used_.switches;
        fibre& me = *threads_[current_];
        me.asleep = !repeats_ && !draws_;
        me.due = in;
        me.due_stores = stores;
        me.due_is_seq_cst = is_seq_cst;
        threads_[others[taken - 1]]->waits = false;
        go_to(others[taken - 1]);
        fresh_ = false;  // back again: this step is due
    }
    std::size_t choose_store(std::size_t count) {
        if (count <= 1) return 0;
        const unsigned taken =
            choose('s', static_cast<unsigned>(count), used_.older < allowed_.older);
        if (taken != 0) ++used_.older;
        return taken;
    }
    unsigned choose(char kind, std::size_t count, bool allowed) {
        if (count <= 1) return 0;
        if (repeats_) {
            for (const auto& each : given_) {
                if (each.step == steps_ && each.kind == kind && each.taken < count)
                    return each.taken;
            }
            return 0;
        }
        if (!allowed) return 0;
        unsigned taken = 0;
        if (made_.size() < prefix_.size()) {
            taken = prefix_[made_.size()].taken;
        } else if (draws_ && draw(kind == 'd' || kind == 'h' ? 60 : 12) == 0) {
            taken = draw(static_cast<unsigned>(count));
        }
        made_.push_back({steps_, kind, taken, static_cast<unsigned>(count)});
        return taken;
    }
    unsigned draw(unsigned below) {
        random_ ^= random_ << 13;
        random_ ^= random_ >> 7;
        random_ ^= random_ << 17;
        return static_cast<unsigned>((random_ >> 33) % below);
    }

    void progress() {
        if (!running()) return;
        ++stores_;
        threads_[current_]->fruitless = 0;
        threads_[current_]->repeats = 0;
    }
    void learn(const place& p, std::uint64_t value) {
        if (!running()) return;
        auto& f = *threads_[current_];
        const std::uint8_t bit = static_cast<std::uint8_t>(1U << current_);
        if ((p.in->seen_by & bit) != 0 && p.in->seen[current_] == value) {
            ++f.fruitless;
            ++f.repeats;
            return;
        }
        f.repeats = 0;
        p.in->seen_by = static_cast<std::uint8_t>(p.in->seen_by | bit);
        p.in->seen[current_] = value;
        f.fruitless = 0;
    }
    void unordered(const place& p) {
        fail("a store is not ordered behind what another thread did in its place: " + where(p));
    }

    [[nodiscard]] std::string where(const place& p) const {
        const std::uintptr_t at = p.in->address + p.shift / 8;
        for (const auto& each : *names_) {
            if (at >= each.at && at < each.at + each.bytes)
                return each.what + " + " + std::to_string(at - each.at);
        }
        char text[32];
        std::snprintf(text, sizeof text, "%#llx", number(at));
        return text;
    }
    void tell(const place& p, const char* what, std::uint64_t value, order o, std::size_t older) {
        if (!repeats_ || !running()) return;
        std::printf("%6llu  thread %u  %-10s %-20s %#llx %s%s\n", number(steps_), current_, what,
                    where(p).c_str(), number(value), name_of(o),
                    older != 0 ? " (not the newest)" : "");
    }

    memory memory_;
    const std::function<void(run&)>* set_up_ = nullptr;
    const std::vector<run::named>* names_ = nullptr;
    std::vector<std::unique_ptr<fibre>> threads_;
    unsigned count_ = 0;
    fibre main_;
    unsigned current_ = none, next_ = none;
    bool fresh_ = false;  ///< switched to just now: no point in switching again
    bool left_ = false;
    bool given_up_ = false;  ///< the run: one before is as good
    std::uint64_t steps_ = 0, stores_ = 0;
    level allowed_{}, used_{};
    std::vector<choice> prefix_, made_, given_;
    std::vector<std::uint16_t> candidates_;
    std::vector<unsigned> candidates_of_threads_;
    bool repeats_ = false, draws_ = false;
    std::uint64_t random_ = 0;
    std::string fault_;
    cell outside_{0};
};

/// The fault that mutants.py has planted and asks for; 0: none.
inline int mutant = 0;

/// The one there is: the atomics have no other way to it.
inline scheduler the_scheduler;

inline void scheduler::enter() {
    the_scheduler.work();
}

/// The places of planted faults that a thread has come by.
inline std::vector<bool> reached(1024);
[[nodiscard]] inline bool is(int planted) {
    if (the_scheduler.running()) reached[static_cast<std::size_t>(planted)] = true;
    return planted == mutant;
}

inline void require(bool holds, std::string_view property) {
    if (!holds) the_scheduler.fail(property);
}
inline void yield() {
    the_scheduler.yield();
}

}  // namespace model
