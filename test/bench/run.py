#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""bench/run with peers that cannot be installed, built or run: each has a line in the report that says
so and why, and the others are measured all the same. Nothing is built: `cmake` and the programs are
stand-ins.

    run.py BENCH   BENCH is the folder of bench/run
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from report import check, peer

CMAKE = """#!/bin/sh
# Configuring lists the peers; building one succeeds or fails as its file here says.
case "$*" in
    *--build*--target\\ bench.peer.*)
        name=${*##*--target bench.peer.}
        [ ! -f "build_of/$name" ] || { cat "build_of/$name"; exit 1; } ;;
    *--build*) ;;
    *) mkdir -p build/bench && cp known_peers build/bench/peers ;;
esac
"""

PROGRAM = """#!/usr/bin/env python3
import os, sys
options = dict(a.split("=", 1) for a in sys.argv[1:] if "=" in a)
{first}
if "--benchmark_list_tests" in sys.argv:
    print("of_it/loop")
elif "--benchmark_out" in options:
    with open(options["--benchmark_out"], "w") as file:
        file.write(open("written/{name}").read())
"""

COMPILERS_WORDS = """\
[1/2] Building CXX object dpdk.cpp.o
FAILED: dpdk.cpp.o
/usr/bin/c++ -Wno-error=all -include rte_config.h -o dpdk.cpp.o -c dpdk.cpp
In file included from dpdk.cpp:9:
/usr/include/x.h:13:2: error: #error for registration, include this file first
ninja: build stopped: subcommand failed.
"""


def tree(folder, bench):
    """A project of nothing but bench/."""
    def write(name, content, mode=0o644):
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)
        os.chmod(path, mode)

    os.makedirs(os.path.join(folder, "bench"))
    for name in os.listdir(bench):
        if name == "run" or name.endswith(".py"):
            shutil.copy(os.path.join(bench, name), os.path.join(folder, "bench", name))
    write("stand_ins/cmake", CMAKE, 0o755)
    write(".ci/install", """#!/bin/sh
[ "$1" != peers ] || { echo "E: Unable to locate package libqb-dev"; exit 1; }
""", 0o755)
    write("known_peers", "\n".join((
        "trace_ring", "good", "dpdk", "libqb not installed (bench/run --peers installs it)", "crashes",
        "refuses", "silent", "writes_nothing", "writes_nonsense", "has_failed", "hangs", "")))
    write("build_of/dpdk", COMPILERS_WORDS)

    def program(name, written="", first=""):
        for e in written["benchmarks"] if isinstance(written, dict) else ():
            e["repetitions"] = 1
        write(f"build/bench/bin/peers/{name}", PROGRAM.format(name=name, first=first), 0o755)
        write(f"written/{name}", written if isinstance(written, str) else json.dumps(written))

    program("trace_ring", peer("trace_ring_exact_clock", "tracer", "ours", 10.4, 24.0))
    program("good", peer("good", "tracer", "a good one", 20.0, 24.0))
    program("crashes", first="os.kill(os.getpid(), 11)")
    program("refuses", first="print('no session daemon answers'); sys.exit(77)")
    program("silent", first="sys.exit(3)")
    program("writes_nothing", "")
    program("writes_nonsense", "[1, 2]")
    failed = peer("has_failed", "tracer", "one that fails", 20.0, 24.0)
    failed["benchmarks"][-1].update(error_occurred=True, error_message="out of memory")
    program("has_failed", failed)
    program("hangs")
    # Fifteen minutes are over at once.
    write("stand_ins/timeout", """#!/bin/sh
case "$2" in */hangs) exit 124 ;; esac
shift
exec "$@"
""", 0o755)


def run(folder, *options):
    path = os.path.join(folder, "stand_ins") + ":" + os.environ["PATH"]
    done = subprocess.run([os.path.join(folder, "bench", "run"), "--repetitions", "1", *options, "peers"],
                          capture_output=True, text=True, check=False, env={**os.environ, "PATH": path})
    return done.returncode, done.stdout, done.stderr


def main(arguments):
    if len(arguments) != 1:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        tree(folder, arguments[0])
        status, out, err = run(folder, "--peers")
        failed = dict(re.findall(r"^FAILED peer (\S+): (.*)$", out, re.M))
        check("the report is made all the same", status == 0 and "\na good one " in out, out + err)
        check("the peers that were measured are not among those that failed",
              not {"trace_ring", "good"} & set(failed), out)
        for name, words in (
                ("dpdk", ("does not build here: /usr/include/x.h:13:2: error: #error for registration",)),
                ("libqb", ("not installed", "E: Unable to locate package libqb-dev")),
                ("crashes", ("does not run here: killed by SIGSEGV",)),
                ("refuses", ("does not run here: no session daemon answers",)),
                ("silent", ("does not run here: exit status 3, without a word",)),
                ("writes_nothing", ("JSONDecodeError",)),
                ("writes_nonsense", ("TypeError",)),
                ("has_failed", ("out of memory",)),
                ("hangs", ("does not run here: not done after 15 minutes",))):
            check(f"the peer {name} is reported as failed, with the reason",
                  name in failed and all(word in failed[name] for word in words), out + err)
        log = re.search(r"all of it: (\S+)\)", failed["dpdk"])
        with open(os.path.join(folder, log[1]), encoding="utf-8") as file:
            check("and what the compiler wrote is kept", file.read() == COMPILERS_WORDS)
        with open(os.path.join(folder, "build/bench/results/report.json"), encoding="utf-8") as file:
            missing = {p["id"]: p["missing"] for p in json.load(file)["peers"] if p["missing"]}
        check("programs find them in report.json", missing == failed, json.dumps(missing))
        check("figures of peers say without whom they are",
              re.search(r"^T16 .*without those that failed: .*dpdk", out, re.M), out)

        _, out, err = run(folder, "--filter", "of_it")
        check("with a filter, a peer that does not even list its benchmarks is reported, too",
              "\nFAILED peer crashes: does not run here: killed by SIGSEGV" in out, out + err)
        _, out, err = run(folder, "--quick")
        check("in a quick run, a file that makes no sense is a peer's failure, not the report's",
              "\nFAILED peer writes_nonsense: " in out and "\na good one " in out, out + err)

        os.unlink(os.path.join(folder, "build/bench/bin/peers/trace_ring"))
        status, out, _ = run(folder)
        check("but if this library's own program fails, the run fails", status == 1, out)


if __name__ == "__main__":
    main(sys.argv[1:])
