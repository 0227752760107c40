// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// A program whose every allocation is in this file (it does not use the C++ library): the numbers
/// of its report are worked out by hand in heap_recorder_test.cpp.

#include <stdint.h>
#include <stdlib.h>

namespace {

void* kept(void* block) {
    asm volatile("" : "+r"(block) : : "memory");
    return block;
}

}  // namespace

extern "C" {

[[gnu::noinline]] void* thousand() {
    return kept(malloc(1000));
}
[[gnu::noinline]] void* grown(void* block) {
    return kept(realloc(block, 5000));
}
[[gnu::noinline]] void* leaked() {
    return kept(calloc(7, 11));
}
}

int main() {
    void* three[3];
    for (void*& block : three) block = thousand();  // 3000 live in 3
    three[0] = grown(three[0]);                     // 7000 in 3: the peak
    free(three[1]);                                 // 6000 in 2
    three[2] = kept(realloc(three[2], 500));        // 5500
    free(three[0]);                                 // 500 in 1
    for (int i = 0; i < 10; ++i) leaked();          // 1270 in 11
    volatile size_t huge = SIZE_MAX / 4;            // volatile: otherwise the compiler warns
    if (kept(realloc(three[2], huge)) != nullptr) return 1;
    if (kept(calloc(huge, 8)) != nullptr) return 1;
    free(three[2]);  // 770 in 10
    free(kept(nullptr));
    return 0;
}
