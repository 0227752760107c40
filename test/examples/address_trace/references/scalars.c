// Numbers of all sizes, on the heap and in globals: a hash table, a sort, a list.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct node { struct node *next; uint32_t key; uint16_t small; uint8_t least; };
static struct node *table[64];
static uint64_t sums[16];
static struct { unsigned a : 3, b : 9, c : 20; } bits;

static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

int main(void) {
    uint32_t key = 1;
    for (int i = 0; i < 80; ++i) {
        struct node *one = malloc(sizeof *one);
        key = key * 1664525u + 1013904223u;
        one->key = key;
        one->small = (uint16_t)key;
        one->least = (uint8_t)(key >> 8);
        one->next = table[key >> 26];
        table[key >> 26] = one;
        bits.a = key & 7;
        bits.b = key >> 3 & 511;
        bits.c += bits.b;
    }
    int *all = malloc(80 * sizeof *all), count = 0;
    for (int i = 0; i < 64; ++i)
        for (struct node *at = table[i]; at; at = at->next) {
            all[count++] = (int)(at->key & 0xFF);
            sums[i & 15] += at->small + at->least;
        }
    qsort(all, (size_t)count, sizeof *all, compare);
    uint64_t sum = bits.c;
    for (int i = 0; i < 16; ++i) sum += sums[i];
    printf("%d %d %llu\n", all[0], all[count - 1], (unsigned long long)sum);
    return 0;
}
