// Loops that become vectors, aligned and not.
#include <stdio.h>
#include <stdlib.h>

static float a[300], b[300];
static double c[101];
static short d[150];

__attribute__((noinline)) static void saxpy(float *restrict to, const float *restrict from, int n) {
    for (int i = 0; i < n; ++i) to[i] += 2 * from[i];
}
__attribute__((noinline)) static double sum(const double *of, int n) {
    double all[4] = {0};
    for (int i = 0; i + 4 <= n; i += 4)
        for (int k = 0; k < 4; ++k) all[k] += of[i + k];
    return all[0] + all[1] + all[2] + all[3];
}
__attribute__((noinline)) static void multiply(const float *x, const float *y, float *to, int n) {
    for (int i = 0; i < n; ++i)
        for (int k = 0; k < n; ++k)
            for (int j = 0; j < n; ++j) to[i * n + j] += x[i * n + k] * y[k * n + j];
}

int main(void) {
    for (int i = 0; i < 300; ++i) b[i] = (float)i;
    for (int i = 0; i < 101; ++i) c[i] = i;
    for (int i = 0; i < 150; ++i) d[i] = (short)(d[(i * 7) % 150] + 3);
    saxpy(a, b, 300);
    saxpy(a + 3, b + 1, 270);
    float *heap = calloc(3 * 12 * 12, sizeof *heap);
    for (int i = 0; i < 288; ++i) heap[i] = (float)(i % 7);
    multiply(heap, heap + 144, heap + 288, 12);
    printf("%g %g %g %d\n", (double)a[150], sum(c, 101), (double)heap[431], d[149]);
    return 0;
}
