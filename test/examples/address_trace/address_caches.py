#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""The misses that address-trace counts, next to those of cachegrind and of a cache of a few lines.

    address_caches.py --address-trace PROGRAM [--elements N] [--rows N]

Two programs whose misses are made by their own code: a quicksort of N numbers, and a product of two
matrices of N rows in vectors of AVX2.

- The misses of a D1 cache of 32 KiB are compared with those that cachegrind counts in the same
  program without hooks. The difference must be less than 1 %. Cachegrind sees more: libraries, and
  registers that are saved on the stack. So the misses in the program's own functions are compared.
- The references of a small run are written as text. An independent simulation of caches of several
  shapes must have exactly the misses that address-trace counts.

With TRACE_RING_QUICK in the environment the programs are small. Exits with 77 if valgrind is
missing, or if this processor has no AVX2.
"""
import argparse
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

SORT = r"""
#include <stdio.h>
#include <stdlib.h>
static int numbers[1 << 21] __attribute__((aligned(4096)));
__attribute__((noinline)) static void sort(int *from, int *to) {  /* both inclusive */
    while (from < to) {
        const int middle = from[(to - from) / 2];
        int *left = from, *right = to;
        while (left <= right) {
            while (*left < middle) ++left;
            while (middle < *right) --right;
            if (left > right) break;
            const int other = *left;
            *left++ = *right;
            *right-- = other;
        }
        if (right - from < to - left) {
            sort(from, right);
            from = left;
        } else {
            sort(left, to);
            to = right;
        }
    }
}
int main(int count, char **arguments) {
    const int n = count > 1 ? atoi(arguments[1]) : 1000;
    unsigned key = 1;
    for (int i = 0; i < n; ++i) numbers[i] = (int)(key = key * 1664525u + 1013904223u);
    sort(numbers, numbers + n - 1);
    for (int i = 1; i < n; ++i)
        if (numbers[i - 1] > numbers[i]) return 1;
    printf("%d %d\n", numbers[0], numbers[n - 1]);
    return 0;
}
"""
MATRIX = r"""
#include <stdio.h>
#include <stdlib.h>
static float a[512 * 512] __attribute__((aligned(4096)));
static float b[512 * 512] __attribute__((aligned(4096)));
static float c[512 * 512] __attribute__((aligned(4096)));
__attribute__((noinline)) static void multiply(const float *restrict x, const float *restrict y,
                                               float *restrict to, int n) {
    for (int i = 0; i < n; ++i)
        for (int k = 0; k < n; ++k)
            for (int j = 0; j < n; ++j) to[i * n + j] += x[i * n + k] * y[k * n + j];
}
int main(int count, char **arguments) {
    const int n = count > 1 ? atoi(arguments[1]) : 64;
    for (int i = 0; i < n * n; ++i) a[i] = (float)(i % 7), b[i] = (float)(i % 5);
    multiply(a, b, c, n);
    printf("%g %g\n", (double)c[1], (double)c[n * n - 1]);
    return 0;
}
"""
PROGRAMS = {"sort": (SORT, "-O2"), "matrix": (MATRIX, "-O3 -mavx2 -ffast-math")}
# name: (bytes, line, ways). One that does not begin with D is asked for code, too.
SHAPES = {"D2": (1024, 64, 2), "D3": (2048, 32, 1), "D4": (4096, 64, 64), "D5": (3072, 64, 4),
          "L1": (1024, 32, 4)}


def run(command):
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def counted(said, name):
    """What address-trace reports of a cache: misses by loads, by stores, all, and references."""
    found = re.search(rf"^{name} +(\d+) misses of (\d+) .*?(\d+) by loads, (\d+) by stores", said,
                      re.M)
    return int(found[3]), int(found[4]), int(found[1]), int(found[2])


def by_cachegrind(program, argument, source, folder):
    """The misses by loads and stores of the program's own functions, and of all."""
    out = os.path.join(folder, "cachegrind")
    run(["valgrind", "-q", "--tool=cachegrind", "--cache-sim=yes", "--D1=32768,8,64",
         f"--cachegrind-out-file={out}", program, argument])
    own, every, file_name, columns = [0, 0], [0, 0], "", []
    with open(out, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("events:"):
                columns = line.split()[1:]
            elif line.startswith("fl="):
                file_name = line[3:].strip()
            elif line[0].isdigit():
                counts = dict(zip(columns, map(int, line.split()[1:])))
                for n, name in enumerate(("D1mr", "D1mw")):
                    every[n] += counts[name]
                    if os.path.basename(file_name) == os.path.basename(source):
                        own[n] += counts[name]
    return own, every


def simulated(references, size, line_bytes, ways):
    """Misses by kind. The least recently used line goes, stores allocate, and a reference to two
    lines misses once."""
    sets = [collections.OrderedDict() for _ in range(size // line_bytes // ways)]
    misses = collections.Counter()
    for kind, address, length in references:
        missed = False
        for line in range(address // line_bytes, (address + length - 1) // line_bytes + 1):
            its = sets[line % len(sets)]
            if line in its:
                its.move_to_end(line)
                continue
            missed = True
            its[line] = None
            if len(its) > ways:
                its.popitem(last=False)
        misses[kind] += missed
    return misses


def exact(asked, name, program, argument, folder):
    """Whether the simulation has exactly the misses of address-trace."""
    trace = os.path.join(folder, "trace")
    caches = sum((["--cache", f"{key}={size},{line},{ways}"]
                  for key, (size, line, ways) in SHAPES.items()), [])
    said = run([asked.address_trace, "run", *caches, "-o", trace, "--", program, argument]).stderr
    text = run([asked.address_trace, "report", "--format", "lackey", trace]).stdout
    references = [(kind, int(at, 16), int(size)) for kind, at, size in
                  re.findall(r"^ ?([LSMI]) +([0-9a-f]+),(\d+)$", text, re.M)]
    fine = True
    for key, shape in SHAPES.items():
        taken = [each for each in references if each[0] != "I" or key[0] != "D"]
        misses = simulated(taken, *shape)
        ours = counted(said, key)
        theirs = misses["L"], misses["S"], sum(misses.values()), len(taken)
        fine = fine and ours == theirs
        print(f"{name} {argument}, {key} of {shape}: misses by loads, stores, all, of references: "
              f"{ours}, simulated {theirs}{'' if ours == theirs else ': DIFFERENT'}")
    return fine


def close(asked, name, programs, argument, source, folder):
    """Whether cachegrind has nearly the same misses."""
    said = run([asked.address_trace, "run", "--cache", "D1=32K,64,8", "--", programs["hooked"],
                argument]).stderr
    ours = counted(said, "D1")[2]
    own, every = by_cachegrind(programs["bare"], argument, source, folder)
    difference = (ours - sum(own)) / sum(own)
    print(f"{name} {argument}: {ours} misses, cachegrind {sum(own)} by the program's functions "
          f"({100 * difference:+.3f} %), {sum(every)} with libraries "
          f"({100 * (ours - sum(every)) / sum(every):+.3f} %)")
    return abs(difference) < 0.01


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--address-trace", required=True)
    is_quick = "TRACE_RING_QUICK" in os.environ
    parser.add_argument("--elements", type=int, default=200_000 if is_quick else 2_000_000)
    parser.add_argument("--rows", type=int, default=192 if is_quick else 512)
    asked = parser.parse_args()
    if not shutil.which("valgrind"):
        print("address_caches.py: there is no valgrind here", file=sys.stderr)
        return 77
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        if " avx2 " not in file.read():
            print("address_caches.py: this processor has no AVX2", file=sys.stderr)
            return 77
    fine = True
    with tempfile.TemporaryDirectory() as folder:
        for name, (text, flags) in PROGRAMS.items():
            source = os.path.join(folder, name + ".c")
            with open(source, "w", encoding="utf-8") as file:
                file.write(text)
            clang = os.environ.get("ADDRESS_TRACE_CC", "") or \
                next(each for each in ("clang-14", "clang") if shutil.which(each))
            programs = {"hooked": os.path.join(folder, name),
                        "bare": os.path.join(folder, name + "_bare")}
            run([asked.address_trace, "cc", *flags.split(), "-g", source, "-o", programs["hooked"]])
            run([clang, *flags.split(), "-gdwarf-4", source, "-o", programs["bare"]])
            small, large = ("3000", asked.elements) if name == "sort" else ("40", asked.rows)
            fine &= exact(asked, name, programs["hooked"], small, folder)
            fine &= close(asked, name, programs, str(large), source, folder)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
