// Inline assembler: its operands in memory.
#include <stdint.h>
#include <stdio.h>

static int counter;
static uint64_t cells[8];

int main(void) {
    for (int i = 0; i < 50; ++i) {
        __asm__ volatile("incl %0" : "+m"(counter));
        __asm__ volatile("movq %1, %0" : "=m"(cells[i % 8]) : "r"((uint64_t)i));
        uint64_t got;
        __asm__ volatile("movq %1, %0" : "=r"(got) : "m"(cells[(i + 3) % 8]));
        __asm__ volatile("lock xaddq %0, %1" : "+r"(got), "+m"(cells[0]) : : "memory");
        __asm__ volatile("" : : : "memory");
    }
    printf("%d %llu\n", counter, (unsigned long long)cells[0]);
    return 0;
}
