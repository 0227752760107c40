// Tables of jumps, constants that are found by an index, and texts.
#include <stdio.h>
#include <string.h>

static const int primes[16] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53};
static const char *const names[] = {"none", "one", "some", "many", "all"};
static long counts[8];
static double sums[4];

__attribute__((noinline)) static long one_of(int which, long x) {
    switch (which) {
        case 0: return x + counts[0];
        case 1: counts[1] += x; return x;
        case 2: counts[2] -= x; break;
        case 3: counts[3] ^= x; return counts[4];
        case 4: return counts[5]++;
        case 5: counts[6] = x; /* fall through */
        case 6: counts[7] += counts[6]; break;
        default: return -1;
    }
    return counts[which];
}
__attribute__((noinline)) static int value_of(int key) {
    switch (key) {
        case 10: return 17;
        case 11: return 4;
        case 12: return 99;
        case 13: return -5;
        case 14: return 1000;
        default: return 0;
    }
}

int main(void) {
    long sum = 0;
    for (int i = 0; i < 60; ++i) {
        sum += one_of(i % 8, i) + primes[i % 16] + value_of(8 + i % 8);
        sums[i % 4] = sums[(i + 1) % 4] * 0.75 + (double)i;
        sum += names[i % 5][i % 3];
    }
    char text[8] = "abcdefg";
    for (size_t i = 0; i < strlen(text); ++i) sum += text[i];
    printf("%ld %g %ld\n", sum, sums[2], counts[7]);
    return 0;
}
