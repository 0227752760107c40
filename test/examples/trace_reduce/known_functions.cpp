// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Two functions with names, for traces that are searched for them.
extern "C" {
[[gnu::noinline, gnu::used, gnu::visibility("default")]] int known_function(int n) {
    return n * 3;
}
[[gnu::noinline, gnu::used, gnu::visibility("default")]] int known_other(int n) {
    return n * 5;
}
}
