#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""trace-clauses compared with bpftrace: their records of the same calls, and the cost of these.

    clauses.py TRACE_CLAUSES KNOWN_64 KNOWN_32 [--calls N] [--rounds N]

KNOWN_64 and KNOWN_32 are test/examples/trace_clauses/clause_known.cpp for 64 and for 32 bits. As root.
Prints how many values are as the program has them, and what a call costs, each the median of the rounds
and beside the bare trap of its round: a uprobe that does nothing, or a breakpoint of ptrace whose
instruction is stepped over. Exits with 77 where bpftrace is missing.
"""
import argparse
import ctypes
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

BARE = """
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
/* int3 in place of a one-byte instruction; each time it is put back, stepped over, and set again. */
static void called(void) { asm volatile(".globl here\\nhere: cld"); }
extern char here[];
int main(int argc, char **argv) {
    const long calls = atol(argv[argc - 1]);
    const pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        for (long i = 0; i < calls; ++i) called();
        _exit(0);
    }
    int status;
    struct user_regs_struct at;
    waitpid(child, &status, 0);
    const long code = ptrace(PTRACE_PEEKTEXT, child, here, 0);
    const long trap = (code & ~255L) | 0xCC;
    ptrace(PTRACE_POKETEXT, child, here, trap);
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (long hits = 0;; ++hits) {
        ptrace(PTRACE_CONT, child, 0, 0);
        waitpid(child, &status, 0);
        if (WIFEXITED(status)) break;
        ptrace(PTRACE_GETREGS, child, 0, &at);
        at.rip = (unsigned long)here;
        ptrace(PTRACE_SETREGS, child, 0, &at);
        ptrace(PTRACE_POKETEXT, child, here, code);
        ptrace(PTRACE_SINGLESTEP, child, 0, 0);
        waitpid(child, &status, 0);
        ptrace(PTRACE_POKETEXT, child, here, trap);
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    printf("%.9f\\n", to.tv_sec - from.tv_sec + (to.tv_nsec - from.tv_nsec) / 1e9);
}
"""


class Event(ctypes.Structure):
    """struct perf_event_attr, its first version and what a uprobe needs."""
    _fields_ = [("type", ctypes.c_uint32), ("size", ctypes.c_uint32), ("config", ctypes.c_uint64),
                ("period", ctypes.c_uint64), ("sample", ctypes.c_uint64), ("read", ctypes.c_uint64),
                ("flags", ctypes.c_uint64), ("wakeup", ctypes.c_uint32), ("bp", ctypes.c_uint32),
                ("path", ctypes.c_uint64), ("offset", ctypes.c_uint64), ("more", ctypes.c_uint64 * 6)]


def bare_uprobes(program, offset):
    """Counts on each processor, and does nothing else. Its end is the files' close."""
    with open("/sys/bus/event_source/devices/uprobe/type", encoding="ascii") as file:
        kind = int(file.read())
    path = ctypes.create_string_buffer(program.encode())
    libc = ctypes.CDLL(None, use_errno=True)
    opened = []
    for cpu in range(os.cpu_count()):
        event = Event(type=kind, size=ctypes.sizeof(Event), path=ctypes.addressof(path), offset=offset)
        fd = libc.syscall(298, ctypes.byref(event), -1, cpu, -1, 8)
        if fd < 0:
            sys.exit(f"clauses.py: no uprobe: {os.strerror(ctypes.get_errno())}")
        opened.append(fd)
    return opened


class Tracer:
    """One that traces all processes, from when it says so."""

    def __init__(self, command, ready, out):
        self.out = open(out, "w", encoding="utf-8")
        self.process = subprocess.Popen(command, stdout=self.out, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if ready in line:
                break
        time.sleep(0.3)

    def end(self):
        self.process.send_signal(signal.SIGINT)
        said = self.process.stderr.read()
        self.process.wait()
        self.out.close()
        return said


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    for name in ("trace_clauses", "known_64", "known_32"):
        parser.add_argument(name)
    parser.add_argument("--calls", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    bpftrace = shutil.which("bpftrace")
    if bpftrace is None:
        print("clauses.py: skipped: no bpftrace here (Debian: bpftrace)")
        return 77
    given.known_64, given.known_32 = map(os.path.realpath, (given.known_64, given.known_32))
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        for bits, program in ((64, given.known_64), (32, given.known_32)):
            values(given, bpftrace, bits, program, out)
        costs(given, bpftrace, out)
        times_of_calls(given, bpftrace, out)
        breakpoints(given, folder)
    return 0


def values(given, bpftrace, bits, program, out):
    """The arguments of each call, as both record them and as the program prints them."""
    def told(pattern):
        with open(out, encoding="utf-8") as file:
            return re.findall(pattern, file.read(), re.M)

    def run():
        done = subprocess.run([program, str(given.calls)], check=True, capture_output=True, text=True)
        return [(words[0], words[7]) for words in map(str.split, done.stdout.splitlines())]

    for name, tracer, pattern in (
            ("trace-clauses", lambda: Tracer(
                [given.trace_clauses, "--source", "kernel", "--all", "-e",
                 f"@@uft:*:{program}:handle:entry {{ capture(of->id, n); }} "
                 f"@@uft:*:{program}:main:entry {{ count(); }}"], "2 points", out), r" of->id=(-?\d+) n=(-?\d+)$"),
            ("bpftrace", lambda: Tracer(
                ["env", "BPFTRACE_PERF_RB_PAGES=4096", bpftrace, "-e",
                 f'uprobe:{program}:handle {{ printf("%d %ld\\n", *(int32*)arg0, arg1); }}'], "", out),
             r"^(-?\d+) (-?\d+)$")):
        tracing = tracer()
        if name == "bpftrace":
            time.sleep(3)
        printed = run()
        time.sleep(0.5)
        tracing.end()
        found = told(pattern)
        right = sum(a == b for a, b in zip(found, printed))
        print(f"{bits} bits, {name}: {len(found)} of {len(printed)} calls told, {right} of them right"
              + (f" (of the last: {found[-1]}, and it was {printed[-1]})" if found else ""), flush=True)


def run_time(program, calls):
    begin = time.monotonic()
    subprocess.run([program, str(-calls)], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begin


def costs(given, bpftrace, out):
    """A call under the bare trap, and with what is captured."""
    program, calls = given.known_64, given.calls
    offset = int(subprocess.run([program], check=True, capture_output=True, text=True).stdout)
    ratios = {"trace-clauses": [], "bpftrace": []}
    bares, lost = [], []
    for _ in range(given.rounds):
        probes = bare_uprobes(program, offset)
        bare = run_time(program, calls)
        for fd in probes:
            os.close(fd)
        bares.append(bare / calls * 1e6)
        tracing = Tracer([given.trace_clauses, "--source", "kernel", "--all", "-o", out + ".trace",
                          "--size", "256M", "-e",
                          f"@@uft:*:{program}:handle:entry {{ capture(of->id, n, str(of->name)); }} "
                          f"@@uft:*:{program}:main:entry {{ }}"], "2 points", out)
        ratios["trace-clauses"].append(bare / run_time(program, calls))
        lost.append(re.search(r"(\d+) lost", tracing.end()).group(1))
        tracing = Tracer(["env", "BPFTRACE_PERF_RB_PAGES=4096", bpftrace, "-e",
                          f'uprobe:{program}:handle {{ printf("%d %ld %s\\n", *(int32*)arg0, arg1, '
                          "str(*(uint64*)(arg0 + 8))); }"], "", out)
        time.sleep(3)
        ratios["bpftrace"].append(bare / run_time(program, calls))
        tracing.end()
    print(f"a bare uprobe: {statistics.median(bares):.2f} us a call")
    for name, all_of in ratios.items():
        print(f"{name}, with capture: {statistics.median(all_of):.2f} of the bare rate "
              f"({min(all_of):.2f} to {max(all_of):.2f})")
    print(f"lost by trace-clauses: {', '.join(lost)}", flush=True)


def times_of_calls(given, bpftrace, out):
    """A histogram of how long calls take, which needs their entries and their exits."""
    program, calls = given.known_64, given.calls
    ratios, ours_alone = [], []
    for _ in range(given.rounds):
        untraced = run_time(program, calls)
        tracing = Tracer([given.trace_clauses, "--source", "kernel", "--all", "-e",
                          f"@@uft:*:{program}:handle:exit {{ hist(elapsed); }} "
                          f"@@uft:*:{program}:main:entry {{ }}"], "2 points", out)
        ours = run_time(program, calls) - untraced
        tracing.end()
        tracing = Tracer([bpftrace, "-e",
                          f"uprobe:{program}:handle {{ @begin[tid] = nsecs; }} "
                          f"uretprobe:{program}:handle /@begin[tid]/ {{ "
                          "@ns = hist(nsecs - @begin[tid]); delete(@begin[tid]); }"], "", out)
        time.sleep(3)
        theirs = run_time(program, calls) - untraced
        tracing.end()
        ratios.append(ours / theirs)
        ours_alone.append(ours / calls * 1e6)
    print(f"hist(elapsed): {statistics.median(ours_alone):.2f} us a call, "
          f"{statistics.median(ratios):.2f} of bpftrace's time ({min(ratios):.2f} to {max(ratios):.2f})",
          flush=True)


def breakpoints(given, folder):
    """The same of ptrace."""
    source, bare_program = os.path.join(folder, "bare.c"), os.path.join(folder, "bare")
    with open(source, "w", encoding="utf-8") as file:
        file.write(BARE)
    subprocess.run(["gcc", "-O1", "-w", source, "-o", bare_program], check=True)
    calls = given.calls // 4
    clause = (f"@@uft:*:{given.known_64}:handle:entry "
              "{ capture(of->id, n, str(of->name)); }")

    def traced(count):
        begin = time.monotonic()
        subprocess.run([given.trace_clauses, "--source", "ptrace", "--quiet", "-o",
                        os.path.join(folder, "ptrace.trace"), "-e", clause, "--", given.known_64,
                        str(-count)], check=True, stdout=subprocess.DEVNULL)
        return time.monotonic() - begin

    bares, ratios = [], []
    for _ in range(given.rounds):
        bare = float(subprocess.run([bare_program, str(calls)], check=True, capture_output=True,
                                    text=True).stdout)
        bares.append(bare / calls * 1e6)
        ratios.append(bare / (traced(calls) - traced(1)))
    print(f"a bare breakpoint, stepped over: {statistics.median(bares):.2f} us a call")
    print(f"trace-clauses --source ptrace, with capture: {statistics.median(ratios):.2f} of that rate "
          f"({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    sys.exit(main())
