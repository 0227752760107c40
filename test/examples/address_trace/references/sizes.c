// Sizes that are no powers of two, and what calls pass in memory.
#include <complex.h>
#include <stdarg.h>
#include <stdio.h>

struct by_value { long of[6]; };
static long double numbers[20];
static __int128 wide[20];
static struct __attribute__((packed)) { char a; long b; short c; int d; } packed[20];
static struct by_value values[10], results[10];
static double complex pairs[10];

__attribute__((noinline)) static long sum_of(struct by_value one) { return one.of[0] + one.of[5]; }
__attribute__((noinline)) static struct by_value made(long x) {
    struct by_value out = {{x, x + 1, x + 2, 0, 0, x}};
    return out;
}
__attribute__((noinline)) static long sum_all(int count, ...) {
    va_list all;
    va_start(all, count);
    long sum = 0;
    for (int i = 0; i < count; ++i) sum += va_arg(all, long);
    va_end(all);
    return sum;
}
static struct { char before[3]; va_list first, again; } lists[2];
__attribute__((noinline)) static long sum_twice(int count, ...) {
    long sum = 0;
    va_start(lists[1].first, count);
    va_copy(lists[0].again, lists[1].first);
    for (int i = 0; i < count; ++i)
        sum += va_arg(lists[1].first, long) * va_arg(lists[0].again, long);
    va_end(lists[0].again);
    va_end(lists[1].first);
    return sum;
}

int main(void) {
    long sum = 0;
    for (int i = 0; i < 20; ++i) {
        numbers[i] += (long double)i / 3;
        wide[i] = wide[(i + 7) % 20] + ((__int128)i << 70);
        packed[i].b = i;
        packed[i].c += packed[i].b;
        packed[i].d -= packed[i].c;
        packed[i].a ^= (char)i;
    }
    for (int i = 0; i < 10; ++i) {
        results[i] = made(i);
        values[i] = results[9 - i];
        sum += sum_of(values[i]);
        pairs[i] = pairs[(i + 3) % 10] * (1.0 + 2.0 * I);
        sum += sum_all(9, 1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L, values[i].of[5]);
        sum += sum_twice(2, (long)i, 5L);
    }
    const __int128 last = wide[3];
    printf("%Lg %ld %d %d\n", numbers[19], sum, packed[19].d, (int)(last >> 64 ^ last));
    return 0;
}
