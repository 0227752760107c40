# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""What the measurements of whole commands have in common: the time of one, and a file of results as
the benchmarks write theirs.
"""
import json
import os
import resource
import subprocess
import sys


# A process in between, for the system tells of all that were waited for.
PEAK = """import resource, subprocess, sys
done = subprocess.run(sys.argv[2:], check=False).returncode
with open(sys.argv[1], "w") as file:
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=file)
sys.exit(done)
"""


def seconds(command, stdout=subprocess.DEVNULL, peak=None):
    """The processor time that a command takes. Ends the program if it fails. `peak`: a file to write
    the most memory of one of its processes to, in KiB."""
    if peak:
        command = [sys.executable, "-c", PEAK, peak, *command]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, stdout=stdout,
                          stderr=subprocess.PIPE)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"{os.path.basename(sys.argv[0])}: {' '.join(command)}\n{done.stderr.decode()}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def entry(number, name, over, repetition, unit, time):
    """One measurement of the benchmark `name`, the `number`-th; `over`: the one it is divided by."""
    return {"family_index": number, "name": name, "run_name": name, "run_type": "iteration",
            "repetition_index": repetition, "threads": 1, "iterations": 1, "label": over,
            "time_unit": unit, "cpu_time": time, "real_time": time}


def write(out, entries, compiler):
    version = subprocess.run([compiler[0], "-dumpfullversion"], capture_output=True,
                             text=True, check=False).stdout.strip()
    context = {"num_cpus": os.cpu_count(), "processor": "the same",
               "compiler": f"{os.path.basename(compiler[0])} {version}",
               "options": " ".join(compiler[1:]), "interleaved": "yes"}
    with open(out, "w", encoding="utf-8") as file:
        json.dump({"context": context, "benchmarks": entries}, file, indent=1)
