// Vectors of which only some lanes are active; gathers.
#include <immintrin.h>
#include <stdio.h>

static float a[257], b[257], c[257];
static int index_of[256];

__attribute__((noinline)) static void where(float *restrict to, const float *restrict from, int n) {
    for (int i = 0; i < n; ++i)
        if (from[i] > 3) to[i] += 2 * from[i];
}
__attribute__((noinline)) static float masked(float *at, __m256i mask) {
    const __m256 loaded = _mm256_maskload_ps(at, mask);
    _mm256_maskstore_ps(at + 8, mask, loaded);
    return _mm256_cvtss_f32(loaded);
}
__attribute__((noinline)) static float gathered(const float *from, const int *index) {
    const __m256i where = _mm256_loadu_si256((const __m256i *)index);
    const __m256 all = _mm256_i32gather_ps(from, where, 4);
    const __m256 some = _mm256_mask_i32gather_ps(all, from + 1, where, all, 4);
    return _mm256_cvtss_f32(_mm256_add_ps(all, some));
}

int main(void) {
    for (int i = 0; i < 257; ++i) b[i] = (float)(i % 7 - 1);
    for (int i = 0; i < 256; ++i) index_of[i] = i * 37 % 256;
    where(a, b, 257);
    float sum = masked(c, _mm256_set_epi32(-1, 0, -1, -1, 0, 0, -1, 0));
    for (int i = 0; i < 256; i += 8) sum += gathered(b, index_of + i);
    printf("%g %g\n", (double)a[100], (double)sum);
    return 0;
}
