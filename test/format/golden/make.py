#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""Writes the golden traces of the version that the library writes, once.

    make.py BIN FOLDER      BIN has the programs of examples/; FOLDER must not exist

README.md says what is in each trace, and when this is run. It needs g++ for 64 and 32 bits.
"""
import gzip
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
PAGE = os.path.join(ROOT, "include/trace_ring/format/README.md")

HEAP = r"""
#include <stdlib.h>
__attribute__((noinline)) static void* node(size_t size) { return malloc(size); }
int main(void) {
    char* a = node(100);
    char* b = calloc(3, 50);
    a = realloc(a, 400);
    b = realloc(b, 20);
    void* c = aligned_alloc(64, 128);
    free(b);
    free(a);
    return node(17) == c;
}
"""
REFERENCES = r"""
static volatile int table[4];
static double sum;
int main(void) {
    for (int i = 0; i < 4; ++i) table[i] = i * i;
    for (int i = 0; i < 4; ++i) sum += table[i];
    return sum != 14;
}
"""
BRANCHES = r"""
    .globl _start
_start:
    mov $3, %ecx
again:
    call work
    dec %ecx
    jnz again
    mov $60, %eax
    xor %edi, %edi
    syscall
work:
    ret
"""
SPOOL = r"""
#include <array>
#include <trace_ring/cptrap.hpp>
#include <trace_ring/rings.hpp>
namespace cptrap = trace_ring::cptrap;
namespace record = trace_ring::record;
trace_ring::ring<trace_ring::presets::traps<>> ring;
cptrap::trapok trapok;
int main() {
    cptrap::spool spool("trap.spool", 2 * 4096);
    trace_ring::drain::session session(ring);
    const cptrap::cp_interface trap(trapok, ring);
    static constexpr auto all = record::cptrap_selection::everything();
    trapok.start(all);
    std::array<std::byte, 264> data{};
    record::cp_entry entry;
    entry.set(record::cp_event::start_io, true);
    for (std::uint16_t code = 0; code < 400; ++code) {  // more than the ring and the file can hold
        data[0] = std::byte{static_cast<unsigned char>(code)};
        trap.hand_over(code, std::span(data).first(code % 4 == 0 ? 264U : code % 50U));
        if (code % 7 == 0) trap.entry(entry);
        if (code == 20) spool.take(session);
    }
    spool.finish(session);
}
"""


def run(*command, status=0, **more):
    done = subprocess.run(command, check=False, **more)
    if done.returncode != status:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}")


def source(name, text):
    with open(name, "w", encoding="ascii") as file:
        file.write(text)
    return name


def main(programs, folder):
    def program(name):
        return os.path.join(programs, name)

    os.makedirs(folder)
    with tempfile.TemporaryDirectory(prefix="golden.") as scratch:
        os.chdir(scratch)
        with open(PAGE, encoding="utf-8") as file:
            example = re.search(r"^```cpp\n(.*?)^```", file.read(), re.MULTILINE | re.DOTALL)[1]
        for name, code, bits in (("sales", source("sales.cpp", example), "64"),
                                 ("shop", f"{HERE}/write.cpp", "64"),
                                 ("shop32", f"{HERE}/write.cpp", "32")):
            run("g++", "-std=c++20", "-O1", f"-m{bits}", f"-I{ROOT}/include", "-idirafter",
                "/usr/include/x86_64-linux-gnu", code, "-o", name, "-pthread")
        run("./sales")
        run("g++", "-std=c++20", f"-I{ROOT}/include", source("spool.cpp", SPOOL), "-o", "spool")
        run("./spool")
        for name in ("fields", "refused", "processes", "sampled", "by_processor", "no_clock"):
            run("./shop", name, f"{name}.trace", "./shop32")
        run("./shop", "losses", "losses.trace", status=-signal.SIGKILL)
        os.rename("fields.trace.snapshot", "snapshot.trace")

        run("gcc", "-O1", source("heap.c", HEAP), "-o", "heap")
        shutil.copy(program("heap_recorder.so"), ".")
        run("./heap", env={"LD_PRELOAD": "./heap_recorder.so", "TRACE_RING_FILE": "heap.trace"})
        run(program("trace-control"), "heap.trace", "--trim")
        run(program("address-trace"), "cc", "-O1", source("sum.c", REFERENCES), "-o", "sum")
        run(program("address-trace"), "run", "--quiet", "-o", "references.trace", "--", "./sum")
        run("gcc", "-nostdlib", "-static", source("loop.S", BRANCHES), "-o", "loop")
        run(program("branch-trace"), "--quiet", "--source", "step", "--size", "64K",
            "--output", "branches.trace", "--", "./loop")

        for name in sorted(os.listdir(".")):
            if name.endswith((".trace", ".spool")):
                with open(name, "rb") as trace, \
                        gzip.GzipFile(os.path.join(folder, name + ".gz"), "wb", 9, mtime=0) as out:
                    shutil.copyfileobj(trace, out)
        os.chdir("/")


main(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]))
