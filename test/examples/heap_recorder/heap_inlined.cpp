// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// A program, optimised, whose allocations are in functions that were inlined into others.

#include <stdlib.h>

namespace shapes {

struct box {
    [[gnu::always_inline]] static void* make(size_t bytes) {
        void* made = malloc(bytes);  // in make
        asm volatile("" : "+r"(made) : : "memory");
        return made;
    }
};

}  // namespace shapes

namespace {

[[gnu::always_inline]] inline void* middle(size_t bytes) {
    void* made = shapes::box::make(bytes + 1);  // in middle
    asm volatile("" : "+r"(made) : : "memory");
    return made;
}

}  // namespace

extern "C" [[gnu::noinline]] void* outer() {
    void* made = middle(99);  // in outer
    asm volatile("" : "+r"(made) : : "memory");
    return made;
}

int main() {
    void* made = outer();  // in main
    asm volatile("" : "+r"(made) : : "memory");
    return 0;
}
