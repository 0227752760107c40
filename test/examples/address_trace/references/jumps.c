// Jumps out of functions, and out of a signal handler.
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>

static sigjmp_buf back;
static long depth_of[64], jumps, cells[100];

__attribute__((noinline)) static void deeper(int level) {
    depth_of[level] += level;
    if (level == 20) longjmp(back, 1);
    deeper(level + 1);
    cells[level] += 1000;
}
static void handle(int number) {
    cells[90] += number;
    if (cells[90] % 3 == 0) siglongjmp(back, 2);
    cells[91] += 1;
}

int main(void) {
    signal(SIGUSR1, handle);
    for (int i = 0; i < 20; ++i) {
        if (sigsetjmp(back, 1) == 0) {
            if (i % 2 == 0) deeper(0);
            raise(SIGUSR1);
        } else {
            ++jumps;
        }
        for (int k = 0; k < 50; ++k) cells[k] += i;
    }
    printf("%ld %ld %ld\n", jumps, depth_of[20], cells[90]);
    return 0;
}
