// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// A program whose calls are known, built for 32 and for 64 bits: it prints what it passes, and what
// it gets back. Each call finds its structure at the same place with other contents, so that a
// tracer that reads later than at the call reads something else.
//     clause_known COUNT    prints a line for each call
//     clause_known          prints where `handle` is in the file, and ends
//     clause_known -COUNT   calls, prints only the sum of its results
//     clause_known -COUNT DEPTH   so often calls `deep`, which calls itself to that depth, before
//     clause_known COUNT waits    waits for its input before it calls

#include <cstdio>
#include <cstdlib>
#include <cstring>

struct order {
    int id;
    const char* name;
    struct {
        long a;
        short b;
    } in[2];
    unsigned long long wide;
    unsigned urgent : 3;
    int left : 5;
};

/// For clauses that select an order by the name of its number.
enum number { first, third = 2 };
number last_named = third;

/// A probe shop:sold with one argument of 4 bytes, as <sys/sdt.h> would put it there.
#if defined(__x86_64__)
#define ADDRESS ".8byte "
#else
#define ADDRESS ".4byte "
#endif
inline void sold(int id) {
    asm volatile(
        "990: nop\n.pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n"
        ".4byte 992f-991f, 994f-993f, 3\n991: .asciz \"stapsdt\"\n992: .balign 4\n993: " ADDRESS
        "990b\n" ADDRESS "_.stapsdt.base\n" ADDRESS
        "0\n.asciz \"shop\"\n.asciz \"sold\"\n.asciz \"-4@%0\"\n994: .balign 4\n.popsection\n"
        ".ifndef _.stapsdt.base\n"
        ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"
        ".weak _.stapsdt.base\n.hidden _.stapsdt.base\n_.stapsdt.base: .space 1\n"
        ".size _.stapsdt.base, 1\n.popsection\n.endif\n"
        :
        : "r"(id));
}

extern "C" [[gnu::noinline]] long handle(const order* of, long n) {
    asm volatile("" ::: "memory");
    return of->in[1].a - n;
}

extern "C" [[gnu::noinline]] long deep(long n) {
    long below = n <= 1 ? 0 : deep(n - 1);
    asm volatile("" : "+r"(below));  // and so a call, and no loop
    return n + below;
}

int main(int argc, char** argv) {
    if (argc < 2) {
        const unsigned long address = reinterpret_cast<unsigned long>(&handle);
        std::FILE* const maps = std::fopen("/proc/self/maps", "r");
        char line[512];
        while (maps != nullptr && std::fgets(line, sizeof line, maps) != nullptr) {
            unsigned long begin = 0;
            unsigned long end = 0;
            unsigned long offset = 0;
            if (std::sscanf(line, "%lx-%lx %*s %lx", &begin, &end, &offset) == 3 &&
                address >= begin && address < end) {
                std::printf("%lu\n", address - begin + offset);
            }
        }
        return 0;
    }
    const bool waits = argc > 2 && std::strcmp(argv[2], "waits") == 0;
    if (waits) static_cast<void>(std::getchar());
    const long wanted = std::atol(argv[1]);
    const long count = wanted < 0 ? -wanted : wanted;
    static order one;
    static char names[2][16];
    long sum = 0;
    for (long i = 0; argc > 2 && !waits && i < count; ++i) sum += deep(std::atol(argv[2]));
    for (long i = 0; i < count; ++i) {
        std::memset(&one, 0, sizeof one);
        std::snprintf(names[i % 2], sizeof names[0], "name%ld", i);
        one.id = static_cast<int>(-i);
        one.name = names[i % 2];
        one.in[1].a = i * 100003;
        one.in[1].b = static_cast<short>(i * 7);
        one.wide = 0x100000000ULL * static_cast<unsigned long long>(i) + 5;
        one.urgent = static_cast<unsigned>(i) & 7U;
        one.left = static_cast<int>(i % 16) - 8;
        sold(one.id);
        const long got = handle(&one, i);
        sum += got;
        if (wanted > 0) {
            std::printf("%d %s %ld %d %llu %u %d %ld %ld\n", one.id, one.name, one.in[1].a,
                        one.in[1].b, one.wide, static_cast<unsigned>(one.urgent),
                        static_cast<int>(one.left), i, got);
        }
    }
    if (wanted < 0) std::printf("%ld\n", sum);
    return 0;
}
