// Structures and ranges that are copied, moved and set: by the compiler, and by the C library.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct three { char of[3]; };
struct middle { long of[3]; };
struct large { long of[5]; char name[57]; };
static struct three threes[10];
static struct middle middles[40], others[40];
static struct large larges[20];
static char text[300];
static volatile int one = 1;  // sizes that the compiler does not know

__attribute__((noinline)) static void copy(struct middle *to, const struct middle *from) { *to = *from; }
__attribute__((noinline)) static void copy_large(struct large *to, const struct large *from) { *to = *from; }
__attribute__((noinline)) static void copy_three(struct three *to, const struct three *from) { *to = *from; }
__attribute__((noinline)) static void clear(struct large *one) { memset(one, 0, sizeof *one); }

int main(void) {
    char *const heap = malloc(5000);
    memset(heap, 7, 5000);
    for (int i = 0; i < 40; ++i) middles[i].of[1] = i;
    for (int i = 0; i < 39; ++i) copy(&others[i + 1], &middles[i]);
    for (int i = 1; i < 20; ++i) copy_large(&larges[i], &larges[i - 1]);
    for (int i = 1; i < 10; ++i) copy_three(&threes[i], &threes[i - 1]);
    clear(&larges[3]);
    const size_t sizes[] = {0, 1, 7, 33, 250, 2000};
    for (int i = 0; i < 6; ++i) {
        memcpy(heap + 3000, heap + 10, sizes[i] * (size_t)one);
        memmove(heap + 5, heap, sizes[i] * (size_t)one);
        memset(heap + 100, i, sizes[i] * (size_t)one);
    }
    memcpy(text, heap, sizeof text);
    printf("%ld %d %d\n", others[20].of[1], text[5], larges[19].name[3]);
    free(heap);
    return 0;
}
