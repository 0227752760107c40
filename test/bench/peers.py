#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""Each peer that is installed here builds as bench/run builds it, in unity, and runs shortly. Nothing is
timed.

    peers.py PROJECT REPORT CXX   builds PROJECT's peers in the current folder
"""
import os
import subprocess
import sys

from report import check, check_runs


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode, done.stdout


def main(arguments):
    if len(arguments) != 3:
        sys.exit(__doc__)
    project, report, compiler = arguments
    status, out = run("cmake", "-S", project, "-B", ".", "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={compiler}",
                      "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG",
                      "-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_UNITY_BUILD_BATCH_SIZE=0",
                      "-DTRACE_RING_BUILD_BENCH=ON", "-DTRACE_RING_BUILD_EXAMPLES=OFF",
                      "-DTRACE_RING_BUILD_TESTS=OFF")
    check("the benchmarks are configured", status == 0, out)
    with open("peers", encoding="utf-8") as file:
        known = [line.rstrip("\n").partition(" ") for line in file]
    check("this library is one of the peers", ("trace_ring", "", "") in known, known)
    for name, _, reason in known:
        if reason:
            print(f"not checked: {name}: {reason}")
            continue
        status, out = run("cmake", "--build", ".", "--target", f"bench.peer.{name}")
        check(f"{name} builds", status == 0, out)
        program = next(path for path in (f"bench/peers/{name}", f"bin/peers/{name}") if os.path.exists(path))
        status, out = run(program, "--benchmark_list_tests")
        if status == 77:
            print(f"not checked: {name} runs: {out.strip()}")
        else:
            check_runs(report, os.path.abspath(program))


if __name__ == "__main__":
    main(sys.argv[1:])
