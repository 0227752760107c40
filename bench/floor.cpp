// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The floors themselves, against each other: what the clock costs, what storing costs, what one
/// locked step costs alone and when two threads want the same line.

#include "floor.hpp"

namespace floors = bench::floor;
using floors::KiB;
using floors::MiB;

int main(int argc, char** argv) {
    bench::add<floors::loop>("floor/loop", "");
    floors::add_clock();
    floors::add_branch();
    floors::add_store<3, floors::without_clock, 64 * KiB>();
    floors::add_store<3, floors::without_clock, MiB>();
    floors::add_store<3, floors::without_clock, 256 * MiB>();
    floors::add_store<3, floors::with_clock, MiB>();
    floors::add_store<3, floors::with_clock, MiB>(2);
    floors::add_work();
    bench::add<floors::work_and_store<floors::store<3, floors::with_clock, MiB>>>(
        "floor/work_and_clock_and_store_24B", floors::work_name, 1, floors::calls_with_work);
    floors::add_locked_step<false, false>();
    floors::add_locked_step<false, false>(2);
    floors::add_locked_step<true, false>(2);
    floors::add_locked_step<false, true>();
    floors::add_locked_step<false, true>(2);
    floors::add_locked_step<true, true>(2);
    return bench::run(argc, argv);
}
