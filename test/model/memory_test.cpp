// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The model itself: for small programs whose results C++ leaves open, it finds all that it
/// promises to find, and nothing that C++ forbids.

#include <cstdlib>
#include <set>
#include <string>

#include <model/harness.hpp>
#include <trace_ring/atomic.hpp>

namespace {

using trace_ring::acq_rel;
using trace_ring::acquire;
using trace_ring::atomic;
using trace_ring::relaxed;
using trace_ring::release;
using trace_ring::seq_cst;
using trace_ring::thread_fence;

using word = std::uint64_t;

struct words {
    atomic<word> x, y, z;
    atomic<std::uint32_t> low, high;
    word a = 9, b = 9, c = 9, d = 9;
};
model::anew<words> w;

/// What the runs of a program ended with, as "a b c d" of those that it set.
std::set<std::string> results(const std::vector<void (*)()>& threads) {
    std::set<std::string> found;
    const auto outcome =
        model::the_scheduler.explore("results", {400'000, 5}, [&](model::run& run) {
            w.make();
            for (const auto each : threads) run.thread(each);
            run.afterwards([&] {
                std::string text;
                for (const word each : {w->a, w->b, w->c, w->d}) {
                    if (each != 9) text += static_cast<char>('0' + each);
                }
                found.insert(text);
            });
        });
    BOOST_TEST(outcome.fault == std::string());
    return found;
}
using those = std::set<std::string>;

}  // namespace

BOOST_AUTO_TEST_CASE(a_relaxed_flag_does_not_publish_and_a_released_one_does) {
    const auto reader = [] {
        w->a = w->y.load(acquire);
        w->b = w->x.load(relaxed);
    };
    BOOST_TEST((results({[] {
                             w->x.store(1, relaxed);
                             w->y.store(1, relaxed);
                         },
                         reader}) == those{"00", "01", "10", "11"}));
    BOOST_TEST((results({[] {
                             w->x.store(1, relaxed);
                             w->y.store(1, release);
                         },
                         reader}) == those{"00", "01", "11"}));
    BOOST_TEST((results({[] {
                             w->x.store(1, relaxed);
                             w->y.store(1, release);
                         },
                         [] {
                             w->a = w->y.load(relaxed);
                             w->b = w->x.load(relaxed);
                         }}) == those{"00", "01", "10", "11"}));
}

BOOST_AUTO_TEST_CASE(fences_order_what_lies_before_and_behind_them) {
    const auto writer = [] {
        w->x.store(1, relaxed);
        thread_fence(release);
        w->y.store(1, relaxed);
    };
    BOOST_TEST((results({writer, [] {
                             w->a = w->y.load(relaxed);
                             thread_fence(acquire);
                             w->b = w->x.load(relaxed);
                         }}) == those{"00", "01", "11"}));
    BOOST_TEST((results({writer, [] {
                             w->a = w->y.load(relaxed);
                             w->b = w->x.load(relaxed);
                         }}) == those{"00", "01", "10", "11"}));
    // A store between the fence and the flag is not published with it.
    BOOST_TEST((results({[] {
                             thread_fence(release);
                             w->x.store(1, relaxed);
                             w->y.store(1, relaxed);
                         },
                         [] {
                             w->a = w->y.load(acquire);
                             w->b = w->x.load(relaxed);
                         }})
                    .count("10") == 1));
}

BOOST_AUTO_TEST_CASE(a_fence_for_all_is_one_for_who_has_none) {
    const auto writer = [] {
        w->x.store(1, relaxed);
        w->a = w->y.load(relaxed);
    };
    BOOST_TEST((results({writer, [] {
                             w->y.store(1, relaxed);
                             thread_fence(seq_cst);
                             w->b = w->x.load(relaxed);
                         }}) == those{"00", "01", "10", "11"}));
    const auto looker = [] {
        w->y.store(1, relaxed);
        model::the_scheduler.fence_for_all();
        w->b = w->x.load(relaxed);
    };
    BOOST_TEST((results({writer, looker}) == those{"01", "10", "11"}));
    // Not all together: the second writer's may be that much later.
    const auto other = [] {
        w->z.store(1, relaxed);
        w->c = w->y.load(relaxed);
    };
    const auto found = results({writer, other, looker});
    BOOST_TEST(found.count("000") == 0);
    BOOST_TEST(found.count("001") == 0);
    BOOST_TEST(found.count("010") == 1);
}

BOOST_AUTO_TEST_CASE(what_one_has_read_another_may_not_have_seen) {
    // The flag goes through a second thread, which read it relaxed.
    BOOST_TEST((results({[] { w->x.store(1, release); },
                         [] {
                             w->a = w->x.load(relaxed);
                             w->y.store(w->a, release);
                         },
                         [] {
                             w->b = w->y.load(acquire);
                             w->c = w->x.load(relaxed);
                         }})
                    .count("110") == 0));  // coherence: it was read by who published
    BOOST_TEST((results({[] { w->x.store(1, release); }, [] { w->y.store(1, release); },
                         [] {
                             w->a = w->x.load(acquire);
                             w->b = w->y.load(acquire);
                         },
                         [] {
                             w->c = w->y.load(acquire);
                             w->d = w->x.load(acquire);
                         }})
                    .count("1010") == 1));  // two readers may differ about the order
}

BOOST_AUTO_TEST_CASE(two_stores_before_two_loads_need_seq_cst) {
    BOOST_TEST((results({[] {
                             w->x.store(1, release);
                             w->a = w->y.load(acquire);
                         },
                         [] {
                             w->y.store(1, release);
                             w->b = w->x.load(acquire);
                         }}) == those{"00", "01", "10", "11"}));
    BOOST_TEST((results({[] {
                             w->x.store(1, seq_cst);
                             w->a = w->y.load(seq_cst);
                         },
                         [] {
                             w->y.store(1, seq_cst);
                             w->b = w->x.load(seq_cst);
                         }}) == those{"01", "10", "11"}));
    BOOST_TEST((results({[] {
                             w->x.store(1, relaxed);
                             thread_fence(seq_cst);
                             w->a = w->y.load(relaxed);
                         },
                         [] {
                             w->y.store(1, relaxed);
                             thread_fence(seq_cst);
                             w->b = w->x.load(relaxed);
                         }}) == those{"01", "10", "11"}));
}

BOOST_AUTO_TEST_CASE(a_word_never_goes_back_and_exchanges_read_the_newest) {
    BOOST_TEST((results({[] {
                             w->x.store(1, relaxed);
                             w->x.store(2, relaxed);
                         },
                         [] {
                             w->a = w->x.load(relaxed);
                             w->b = w->x.load(relaxed);
                         }}) == those{"00", "01", "02", "11", "12", "22"}));
    BOOST_TEST((results({[] { w->a = w->x.fetch_add(1, relaxed); },
                         [] { w->b = w->x.fetch_add(1, relaxed); }}) == those{"01", "10"}));
    // Relaxed exchanges carry on what a release store published; a store does not.
    const auto reader = [] {
        w->a = w->y.load(acquire);
        w->b = w->x.load(relaxed);
    };
    const auto writer = [] {
        w->x.store(1, relaxed);
        w->y.store(1, release);
    };
    BOOST_TEST((results({writer, [] { w->y.fetch_add(2, relaxed); }, reader}).count("30") == 0));
    BOOST_TEST((results({writer, [] { w->y.store(3, relaxed); }, reader}).count("30") == 1));
}

BOOST_AUTO_TEST_CASE(halves_are_words_of_their_own_and_one_look_sees_both) {
    BOOST_TEST((results({[] {
                             w->low.store(1, relaxed);
                             w->high.store(1, relaxed);
                         },
                         [] {
                             const auto both = trace_ring::word_at<word>(&w->low, 0).load(relaxed);
                             w->a = both & 0xFFFFFFFFU;
                             w->b = both >> 32;
                         }}) == those{"00", "10", "11"}));
    BOOST_TEST((results({[] {
                             w->low.store(1, relaxed);
                             w->high.store(1, relaxed);
                         },
                         [] {
                             w->a = w->high.load(relaxed);
                             w->b = w->low.load(relaxed);
                         }})
                    .count("10") == 1));
}

BOOST_AUTO_TEST_CASE(a_weak_exchange_may_fail_for_no_reason_and_a_strong_one_not) {
    BOOST_TEST((results({[] {
                             word old = 0;
                             w->a = w->x.compare_exchange_weak(old, 1, relaxed) ? 1 : 0;
                         },
                         [] { w->b = w->x.load(relaxed); }}) == those{"00", "10", "11"}));
    BOOST_TEST((results({[] {
                             word old = 0;
                             w->a = w->x.compare_exchange_strong(old, 1, relaxed) ? 1 : 0;
                         },
                         [] { w->b = w->x.load(relaxed); }}) == those{"10", "11"}));
}

BOOST_AUTO_TEST_CASE(a_store_over_what_was_not_given_back_is_found) {
    const auto give_back = [](trace_ring::memory_order how) {
        return model::the_scheduler
            .explore("give_back", {100'000, 4},
                     [&](model::run& run) {
                         w.make();
                         run.exclusive(&w->x, sizeof w->x);
                         run.thread([how] {
                             w->a = w->x.load(relaxed);
                             w->y.store(1, how);
                         });
                         run.thread([] {
                             if (w->y.load(acquire) == 1) w->x.store(1, relaxed);
                         });
                     })
            .fault;
    };
    BOOST_TEST(give_back(release) == std::string());
    BOOST_TEST(give_back(relaxed).find("not ordered") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(
    a_thread_that_may_die_ends_after_each_of_its_steps_and_what_it_did_can_be_known) {
    std::set<std::string> found;
    const auto all = model::the_scheduler.explore("death", {100'000, 5}, [&](model::run& run) {
        w.make();
        run.thread([] {
            w->x.store(1, relaxed);
            w->y.store(1, relaxed);
        });
        run.dies();
        run.thread([] {
            const bool gone = model::the_scheduler.is_gone(0);
            w->a = w->y.load(relaxed);
            w->b = w->x.load(relaxed);
            model::require(!gone || w->a <= w->b, "what the dead did is not known");
            w->c = gone ? 1 : 0;
        });
        run.afterwards([&] {
            found.insert(std::to_string(w->a) + std::to_string(w->b) + std::to_string(w->c));
        });
    });
    BOOST_TEST(all.fault == std::string());
    BOOST_TEST((found == those{"000", "010", "100", "110", "001", "011"}));
}

BOOST_AUTO_TEST_CASE(a_handler_runs_once_before_any_step_of_its_thread_or_not_at_all) {
    std::set<std::string> found;
    const auto all = model::the_scheduler.explore("handler", {100'000, 5}, [&](model::run& run) {
        w.make();
        run.thread([] {
            w->a = w->z.load(relaxed);  // nobody else's, and a step all the same
            w->b = w->z.load(relaxed);
            w->x.store(1, relaxed);
        });
        run.interrupted([] {
            w->z.store(1, relaxed);
            w->c = w->x.load(relaxed);
        });
        run.thread([] { w->x.store(2, relaxed); });
        run.afterwards([&] {
            found.insert(std::to_string(w->a) + std::to_string(w->b) + std::to_string(w->c));
        });
    });
    BOOST_TEST(all.fault == std::string());
    BOOST_TEST((found == those{"009", "010", "012", "110", "112", "000", "002"}));
}

BOOST_AUTO_TEST_CASE(who_waits_for_ever_is_stuck_and_who_waits_for_another_is_not) {
    const auto waiting = [](bool comes) {
        return model::the_scheduler
            .explore("waiting", {200'000, 2},
                     [&](model::run& run) {
                         w.make();
                         run.thread([] {
                             while (w->x.load(relaxed) == 0) {
                             }
                         });
                         run.thread([comes] { (comes ? w->x : w->y).store(1, relaxed); });
                         run.thread([] { w->a = w->y.load(relaxed); });
                     })
            .fault;
    };
    BOOST_TEST(waiting(true) == std::string());
    BOOST_TEST(waiting(false).find("stuck") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_fault_is_repeated_by_the_schedule_that_is_printed_with_it) {
    const auto explore = [] {
        return model::the_scheduler.explore("repeated", {100'000, 2}, [](model::run& run) {
            w.make();
            run.thread([] {
                w->z.store(1, relaxed);  // what only one thread uses counts as a step, too
                w->x.store(1, relaxed);
                w->y.store(1, relaxed);
            });
            run.thread([] {
                if (w->y.load(acquire) != 1) return;
                model::require(w->x.load(relaxed) == 1, "the flag was there before the rest");
            });
        });
    };
    const auto first = explore();
    BOOST_TEST(first.fault == "the flag was there before the rest");
    BOOST_TEST(first.schedule.find('s') != std::string::npos);
    ::setenv("TRACE_RING_SCHEDULE", ("repeated: " + first.schedule).c_str(), 1);
    const auto again = explore();
    ::setenv("TRACE_RING_SCHEDULE", "repeated: -", 1);
    const auto other = explore();
    ::unsetenv("TRACE_RING_SCHEDULE");
    BOOST_TEST(again.fault == first.fault);
    BOOST_TEST(again.schedule == first.schedule);
    BOOST_TEST(again.runs == 1U);
    BOOST_TEST(other.fault == std::string());
}
