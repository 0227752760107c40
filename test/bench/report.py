#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""The benchmarks' report, and that the benchmarks run.

    report.py report REPORT            REPORT makes of known measurements what is written here
    report.py runs REPORT PROGRAM...   each benchmark of each PROGRAM runs, shortly, and names a base
                                       that is there. Nothing is timed
"""
import json
import os
import subprocess
import sys
import tempfile

CONTEXT = {"processor": "Test 1000", "num_cpus": 2, "compiler": "g++ 12", "options": "-O3",
           "interleaved": "yes"}


def entry(family, name, cpu, label="", threads=1, waited=1.0, **more):
    return {"family_index": family, "name": name, "run_name": name, "run_type": "iteration",
            "threads": threads, "label": label, "time_unit": "ns", "cpu_time": cpu,
            "real_time": cpu * waited / threads, **more}


def measurements(times, waited=1.0):
    """A floor of 10 ns, the recorder above it with `times`, in mixed order; two threads; no base."""
    floor, recorder = "floor/clock_and_store_24B/1MiB", "recorder/exact_clock/1MiB"
    entries = []
    for time, ground in zip(times, (10.0, 30.0, 9.0, 10.0, 10.5)):
        entries.append(entry(1, recorder, time, floor, waited=waited))
        entries.append(entry(0, floor, ground, waited=waited))
        entries.append(entry(1, recorder + "/threads:2", 2 * time, floor, 2, waited=waited))
        entries.append(entry(2, "recorder/other", 0.001, "floor/nowhere", waited=waited,
                             **{"time_unit": "us"}))
    entries.append({"run_type": "aggregate", "family_index": 0, "name": floor + "_median",
                    "run_name": floor, "threads": 1, "cpu_time": 1e9})
    return {"context": CONTEXT, "benchmarks": entries}


EXPECTED = """\
Test 1000, 2 of them; g++ 12 -O3; medians of 5 repetitions, interleaved

recorder: ns a record
                                        ns  +-  ratio    more  to
floor/clock_and_store_24B/1MiB       10.00  2%
recorder/exact_clock/1MiB            10.80  1%   1.08   +0.80  floor/clock_and_store_24B/1MiB
recorder/exact_clock/1MiB/threads:2  21.60  1%   2.16  +11.60  floor/clock_and_store_24B/1MiB
recorder/other                        1.00  0%                 floor/nowhere (missing)

PASS   1.080  private lane, exact clock, tight loop: at most 1.10 of clock read and plain stores
"""


def run(report, *files):
    done = subprocess.run([sys.executable, report, *files], capture_output=True, text=True,
                          check=False)
    return done.returncode, done.stdout, done.stderr


def check(name, holds, detail=""):
    if not holds:
        sys.exit(f"FAILED: {name}\n{detail}")
    print(f"ok: {name}")


def check_report(report):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "recorder.json")

        def of(content):
            with open(path, "w", encoding="utf-8") as file:
                file.write(content if isinstance(content, str) else json.dumps(content))
            return run(report, path)

        status, out, _ = of(measurements((10.8, 10.7, 11.0, 50.0, 10.6)))
        check("known measurements give the known table", (status, out) == (0, EXPECTED), out)
        status, out, _ = of(measurements((11.2, 11.1, 11.3, 11.2, 11.0)))
        check("a ratio above the target is told as short",
              status == 0 and "SHORT  1.120  private lane" in out, out)
        status, out, _ = of(measurements((10.8,) * 5, waited=3.0))
        check("a busy machine is told", "busy: threads waited 200%" in out, out)
        status, out, _ = of({"context": CONTEXT,
                             "benchmarks": [entry(0, "floor/clock", 10.0)]})
        check("a target whose benchmark did not run is told as not measured",
              status == 0 and "not measured  private lane" in out, out)

        failed = measurements((10.8,) * 5)
        failed["benchmarks"][3].update(error_occurred=True, error_message="no memory")
        for name, content, reason in (
                ("a benchmark that failed", failed, "recorder/other: no memory"),
                ("an empty file", "", "JSONDecodeError"),
                ("a file cut short", json.dumps(failed)[:300], "JSONDecodeError"),
                ("a file of something else", "[1, 2]", "TypeError"),
                ("a file without benchmarks", {"context": CONTEXT, "benchmarks": []},
                 "no benchmarks")):
            status, out, err = of(content)
            check(f"{name} is an error that names the file",
                  status == 2 and not out and path in err and reason in err, out + err)
        status, _, err = run(report, os.path.join(folder, "nowhere.json"))
        check("a file that is not there is an error that names it",
              status == 2 and "nowhere.json" in err, err)


def check_runs(report, program):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, os.path.basename(program) + ".json")
        done = subprocess.run([program, "--benchmark_min_time=1e-9", f"--benchmark_out={path}",
                               "--benchmark_out_format=json"], capture_output=True, text=True,
                              check=False)
        check(f"{os.path.basename(program)} runs", done.returncode == 0, done.stdout + done.stderr)
        status, out, err = run(report, path)
        check("its report is made", status == 0, err)
        with open(path, encoding="utf-8") as file:
            entries = json.load(file)["benchmarks"]
        names = {e["run_name"] for e in entries}
        missing = sorted(n for n in names if f"\n{n} " not in out)
        check("all of it is in the report", not missing, "\n".join(missing) + "\n" + out)
        astray = sorted(e["run_name"] for e in entries if e.get("label", "") not in names | {""})
        check("what times are divided by is measured in the same run", not astray,
              "\n".join(astray))
        check("nothing is measured twice under one name", len(names) == len(entries),
              "\n".join(sorted(e["run_name"] for e in entries)))


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "report":
        check_report(arguments[1])
    elif len(arguments) > 2 and arguments[0] == "runs":
        for program in arguments[2:]:
            check_runs(arguments[1], program)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
