// Atomics of all sizes by several threads: they load, store, update, and fail to.
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

static struct { _Alignas(64) _Atomic long beside[3]; } line;
static _Atomic uint8_t one;
static _Atomic uint16_t two;
static _Atomic uint32_t four;
static _Atomic long tried, sum;
static long plain[3];

static void *work(void *argument) {
    const long n = (long)argument;
    for (int i = 0; i < 60; ++i) {
        atomic_fetch_add(&line.beside[n], 1);
        atomic_fetch_or(&one, (uint8_t)i);
        atomic_fetch_sub(&two, 3);
        atomic_exchange(&four, (uint32_t)i);
        long expected = i % 4 == 0 ? atomic_load(&tried) : -1;
        atomic_compare_exchange_strong(&tried, &expected, i);
        plain[n] += atomic_load_explicit(&sum, memory_order_relaxed);
        atomic_store(&sum, i);
        atomic_store_explicit(&sum, n, memory_order_release);
    }
    return 0;
}

int main(void) {
    pthread_t all[3];
    for (long i = 0; i < 3; ++i) pthread_create(&all[i], 0, work, (void *)i);
    for (int i = 0; i < 3; ++i) pthread_join(all[i], 0);
    printf("%ld %ld %ld\n", line.beside[0], line.beside[1], line.beside[2]);
    return 0;
}
