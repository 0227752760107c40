#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""What test/run makes of what ninja and ctest leave.

    results.py count PRESET NOTES TIMES JUNIT...  prints how many tests passed, failed and were skipped;
                                                  adds to NOTES which and why, to TIMES how long each took
    results.py failed JUNIT... <TESTS             prints a regular expression of those of TESTS that
                                                  failed last, or nothing
    results.py targets FOLDER <TESTS              prints the targets of FOLDER that TESTS run; all, or
                                                  nothing, where that is what they need
    results.py built PRESET LOG BEFORE            prints how long each output took to build, by the
                                                  lines of a .ninja_log after the first BEFORE
    results.py slowest TIMES                      prints the ten that took longest, of each kind

TESTS is what `ctest --show-only=json-v1` prints. Of several JUNIT, a test's last counts.
"""
import json
import os
import re
import sys
import xml.etree.ElementTree as xml


def state(case):
    """passed, failed or skipped. One that could not be started has failed: only one that says so
    itself is skipped."""
    if case.get("status") == "run":
        return "passed"
    skipped = case.find("skipped")
    if skipped is not None and skipped.get("message", "").startswith("SKIP_"):
        return "skipped"
    return "failed"


def cases_of(paths):
    """Each test by its name, as it ended in each run."""
    found = {}
    for path in paths:
        try:
            for case in xml.parse(path).getroot().iter("testcase"):
                found.setdefault(case.get("name"), []).append(case)
        except (OSError, xml.ParseError):
            pass
    return found


def count(preset, notes, times, *junit):
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    with open(notes, "a", encoding="utf-8") as file, open(times, "a", encoding="utf-8") as took:
        for name, runs in cases_of(junit).items():
            ended = state(runs[-1])
            counts[ended] += 1
            print("run", sum(float(run.get("time", 0)) for run in runs), f"{preset}: {name}", file=took)
            said = (runs[-1].findtext("system-out") or "").strip().splitlines()
            if ended == "skipped":
                print(f"skipped in {preset}: {name}:", said[-1] if said else "", file=file)
            elif ended == "failed":
                print(f"failed in {preset}: {name}", file=file)
                for line in ([line for line in said if "error" in line.lower()] or said[-1:])[:5]:
                    print("   ", line, file=file)
            elif len(runs) > 1:
                print(f"failed in {preset} at first, and held when tried again: {name}", file=file)
    print(*counts.values())


def failed(*junit):
    ended = {name: state(runs[-1]) for name, runs in cases_of(junit).items()}
    names = [test["name"] for test in json.load(sys.stdin)["tests"]]
    again = [re.escape(name) for name in names if ended.get(name) == "failed"]
    if again:
        print(f"^({'|'.join(again)})$")


def targets(folder):
    folder = os.path.abspath(folder) + os.sep
    found = set()
    for test in json.load(sys.stdin)["tests"]:
        program = test.get("command", [""])[0]
        labels = [each["value"] for each in test.get("properties", []) if each["name"] == "LABELS"]
        if program.startswith(folder):
            found.add(os.path.basename(program))
        else:  # a script, of the sources or of programs that only it knows
            found.add("nothing" if labels and "source" in labels[0] else "all")
    if "all" in found or found == {"nothing"}:
        print("all" if "all" in found else "nothing")
    else:
        print(*sorted(found - {"nothing"}))


def built(preset, log, before):
    with open(log, encoding="utf-8") as file:
        lines = file.readlines()[int(before):]
    took = {}
    for line in lines:
        if line.startswith("#"):
            continue
        start, end, _, output, _ = line.split("\t")
        # Several outputs of one step have the same times.
        took[(start, end)] = ((int(end) - int(start)) / 1000, os.path.relpath(output))
    for seconds, output in took.values():
        print("build", seconds, f"{preset}: {output}")


def slowest(times):
    by_kind = {"build": [], "run": []}
    with open(times, encoding="utf-8") as file:
        for line in file:
            kind, seconds, what = line.rstrip("\n").split(" ", 2)
            by_kind[kind].append((float(seconds), what))
    for kind, found in by_kind.items():
        if found:
            print(f"the slowest to {kind}, of {sum(seconds for seconds, _ in found):.0f} s:")
        for seconds, what in sorted(found, reverse=True)[:10]:
            print(f"{seconds:8.1f} s  {what}")


# --- The test of the test ------------------------------------------------------------------------
if __name__ == "__main__":
    {f.__name__: f for f in (count, failed, targets, built, slowest)}[sys.argv[1]](*sys.argv[2:])
