#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""Reads the golden traces of each version, forward and backward, and compares what trace-reduce
prints with the files next to them, byte by byte.

    golden.py TRACE_REDUCE FOLDER [--write]      --write: writes these files instead
"""
import glob
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile

# Reading backward, the end of a span comes before its begin, so its duration is not known yet.
DURATION = {"text": re.compile(rb" \(duration [^)]*\)"),
            "json": re.compile(rb'"duration_(?:ticks|ns|interval)":\w+,')}


def reduce(program, *arguments):
    """Both streams: what is lost or damaged is in the second one."""
    done = subprocess.run([program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=60, check=False, env={"TZ": "UTC", "LC_ALL": "C.UTF-8"})
    if done.returncode != 0:
        sys.exit(f"{arguments}: exit status {done.returncode}\n{done.stdout.decode()}")
    return done.stdout


def first_difference(wanted, found):
    lines = zip(wanted.splitlines() + [b"(the end)"], found.splitlines() + [b"(the end)"])
    return next((f"  wanted {a!r}\n  found  {b!r}" for a, b in lines if a != b), "  the line ends")


def main(program, folder, option=""):
    faults, traces, lines = [], 0, 0
    versions = set()
    for packed in sorted(glob.glob(os.path.join(folder, "*", "*.gz"))):
        name = os.path.relpath(packed, folder)[:-len(".gz")]
        with tempfile.TemporaryDirectory() as scratch:
            trace = os.path.join(scratch, os.path.basename(name))
            with gzip.open(packed) as file, open(trace, "wb") as out:
                shutil.copyfileobj(file, out)
            with open(trace, "rb") as file:
                version = int.from_bytes(file.read(12)[8:], "little")
            is_trace = name.endswith(".trace")
            if is_trace and str(version) != os.path.dirname(name):
                faults.append(f"{name}: a file of version {version}")
            versions.add(os.path.dirname(name))
            # A record of a CPTRAP file has several lines of text.
            for form in ("text", "json") if is_trace else ("json",):
                forward = reduce(program, trace, "--time", "raw", "--format", form)
                expected = os.path.splitext(packed[:-len(".gz")])[0] + "." + form
                if option == "--write":
                    with open(expected, "wb") as file:
                        file.write(forward)
                with open(expected, "rb") as file:
                    wanted = file.read()
                if forward != wanted:
                    faults.append(f"{name} as {form}:\n{first_difference(wanted, forward)}")
                backward = reduce(program, trace, "--time", "raw", "--format", form, "--backward")
                wanted = b"".join(reversed(DURATION[form].sub(b"", wanted).splitlines(True)))
                if backward != wanted:
                    faults.append(f"{name} as {form}, backward:\n"
                                  f"{first_difference(wanted, backward)}")
                lines += wanted.count(b"\n")
        traces += 1
    for fault in faults:
        print(fault)
    print(f"{traces} files of {len(versions)} versions, {lines} lines in each direction")
    return 1 if faults or len(versions) < 2 else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
