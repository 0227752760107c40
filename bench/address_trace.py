#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""What tracing the references of a real program costs: bzip2, which packs a megabyte of code.

    address_trace.py OUT --program ADDRESS-TRACE [--source FOLDER] [--built FOLDER]
                     [--repetitions N] [--no-valgrind]

OUT is the file of results, as the benchmarks write theirs. The source is Debian's, fetched with
`apt-get source` unless --source says where it lies. --built is where the programs are built, and
found if they are there. 77: something that is needed is not here, which is told.

bare      compiled without hooks
floor     the same hooks, each of which stores 8 bytes into the thread's own 512 KiB
traced    address-trace run: packed, recorded, drained and counted, on another processor
cache_1   with one D1 cache, cache_4 with four
lackey    valgrind --tool=lackey --trace-mem=yes, of 20 KB; cachegrind of all
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import time

import commands

SOURCES = ("blocksort.c huffman.c crctable.c randtable.c compress.c decompress.c bzlib.c "
           "bzip2.c").split()
FLAGS = ["-O2", "-w", "-D_FILE_OFFSET_BITS=64"]
FLOOR = r"""
static __thread struct { unsigned long *at, room[65536]; } own
    __attribute__((tls_model("initial-exec")));
static void put(const void *what) {
    if (own.at == 0 || own.at == own.room + 65536) own.at = own.room;
    *own.at++ = (unsigned long)what;
}
#define HOOKS(n) void __trace_ring_load##n(void *at) { put(at); } \
                 void __trace_ring_store##n(void *at) { put(at); }
HOOKS(1) HOOKS(2) HOOKS(4) HOOKS(8) HOOKS(16) HOOKS(32) HOOKS(64)
void __trace_ring_load_range(void *at, unsigned long size) { (void)size, put(at); }
void __trace_ring_store_range(void *at, unsigned long size) { (void)size, put(at); }
void __trace_ring_allocated(void *at, unsigned long size) { (void)at, (void)size; }
void __trace_ring_loaded(void) {}
void __trace_ring_block(void) { put(__builtin_return_address(0)); }
"""
CACHES = [["--cache", f"D1={size},64,{ways}"]
          for size, ways in (("32K", 8), ("48K", 12), ("64K", 8), ("16K", 4))]
FLOOR_NAME, BARE_NAME = "address_trace/floor", "address_trace/bare"


def fail(why):
    print(f"address_trace.py: {why}", file=sys.stderr)
    sys.exit(77)


def find_source(folder):
    if not shutil.which("apt-get"):
        fail("there is no apt-get here to fetch bzip2's source with: --source")
    done = subprocess.run(["apt-get", "source", "-qq", "bzip2"], cwd=folder, check=False,
                          capture_output=True, text=True)
    found = [name for name in os.listdir(folder) if os.path.isdir(os.path.join(folder, name))]
    if not found:
        fail(f"apt-get source bzip2: {done.stderr.strip() or done.stdout.strip()}")
    return os.path.join(folder, found[0])


def compiler():
    """The clang that the pass is for; empty: there is none."""
    names = ["clang-14", "clang"]
    return next((name for name in names if shutil.which(name)), "")


def build(folder, program, source):
    """The three programs, if they are not there."""
    names = {name: os.path.join(folder, name) for name in ("bare", "floor", "traced")}
    if all(os.path.exists(path) for path in names.values()):
        return names
    os.makedirs(folder, exist_ok=True)
    source = source or find_source(folder)
    sources = [os.path.join(source, name) for name in SOURCES]
    floor = os.path.join(folder, "floor.c")
    with open(floor, "w", encoding="utf-8") as file:
        file.write(FLOOR)
    clang = compiler() or fail("there is no clang here")
    hooked = "-fpass-plugin=" + os.path.join(os.path.dirname(os.path.realpath(program)),
                                             "address-trace-pass.so")
    for command in ([clang, "-O2", "-w", "-c", floor, "-o", floor + ".o"],
                    [clang, *FLAGS, *sources, "-o", names["bare"]],
                    [clang, *FLAGS, hooked, *sources, floor + ".o", "-o", names["floor"]],
                    [program, "cc", *FLAGS, *sources, "-o", names["traced"]]):
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"address_trace.py: {' '.join(command)}\n{done.stderr}")
    return names


def seconds(command):
    before = time.monotonic()
    done = subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True)
    took = time.monotonic() - before
    if done.returncode != 0:
        sys.exit(f"address_trace.py: {' '.join(command)}\n{done.stderr}")
    return took, done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("out")
    parser.add_argument("--program", required=True)
    parser.add_argument("--source")
    parser.add_argument("--built", default="build/bench/address_trace")
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--no-valgrind", action="store_true")
    asked = parser.parse_args()
    os.makedirs(asked.built, exist_ok=True)
    names = build(asked.built, asked.program, asked.source)
    data = os.path.join(asked.built, "input")
    with open(data, "wb") as file:  # code, which is there everywhere
        for each in (asked.program, os.path.realpath(sys.executable), *names.values()):
            with open(each, "rb") as code:
                file.write(code.read(1_000_000 - file.tell()))
    small = data + ".small"
    with open(small, "wb") as file, open(data, "rb") as all_of_it:
        file.write(all_of_it.read(20_000))

    def packed(name, of=data):
        return [names[name], "-k", "-c", of]

    traced = [asked.program, "run", *"--buffer 4M".split()]
    runs = {BARE_NAME: packed("bare"), FLOOR_NAME: packed("floor"),
            "address_trace/traced": [*traced, "--", *packed("traced")],
            "address_trace/cache_1": [*traced, *CACHES[0], "--", *packed("traced")],
            "address_trace/cache_4": [*traced, *sum(CACHES, []), "--", *packed("traced")]}
    if shutil.which("valgrind") and not asked.no_valgrind:
        runs["address_trace/cachegrind"] = ["valgrind", "-q", "--tool=cachegrind",
                                            "--cachegrind-out-file=/dev/null", "--D1=32768,8,64",
                                            *packed("bare")]
        runs["address_trace/lackey"] = ["valgrind", "-q", "--tool=lackey", "--trace-mem=yes",
                                        "--log-file=/dev/null", *packed("bare", small)]
        runs["address_trace/traced_small"] = [*traced, "--", *packed("traced", small)]
    taken = {name: [] for name in runs}
    entries, told = [], ""
    for repetition in range(asked.repetitions):
        for number, (name, command) in enumerate(runs.items()):
            took, said = seconds(command)
            if name == "address_trace/traced":
                told = said
            taken[name].append(took)
            entries.append(commands.entry(number, name, FLOOR_NAME, repetition, "s", took))
    commands.write(asked.out, entries, [compiler() or "true"])
    medians = {name: statistics.median(each) for name, each in taken.items()}
    floor, bare = medians[FLOOR_NAME], medians[BARE_NAME]
    for name, each in medians.items():
        print(f"{name:30} {each:9.3f} s  {each / floor:7.2f} of the floor  "
              f"{each / bare:7.1f} of bare")
    print(told)


if __name__ == "__main__":
    main()
