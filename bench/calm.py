#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""Selects the repetitions that count: those in which the processors belonged to the program alone (calm.hpp
explains how this is detected, and why it matters), and in which threads that are measured together ran
together. The measured results do not influence the selection.

    calm.py lacking FILE [OTHER...]   the benchmarks of FILE with too few calm repetitions, as one
                                      expression for --benchmark_filter; OTHERs are of the same run:
                                      calm is what is near the least in all of them, and repetitions
                                      of two threads count at the most frequent distance (modes.py)
    calm.py join INTO MORE            adds the repetitions in MORE to those in INTO
"""
import json
import os
import re
import sys

import modes

COUNTER, QUEUED = "adds_ns", "queued"
# A time that exceeds the least by this factor is not calm.
TOLERANCE = 1.10
# If threads were ready but not running for a larger share of the time, added up over the threads, they did
# not run together: they disturbed each other too little, or waited for one that did not run.
APART = 0.10
# No median is made of fewer repetitions, unless fewer were requested.
ENOUGH = 9


def repetitions(content):
    return [e for e in content["benchmarks"]
            if e["run_type"] == "iteration" and not e.get("error_occurred")]


def least(contents):
    """The least time, with one thread and with more: processors that are busy together may be
    slower for it."""
    found = {}
    for content in contents:
        for e in repetitions(content):
            if COUNTER in e:
                together = e["threads"] > 1
                found[together] = min(found.get(together, float("inf")), float(e[COUNTER]))
    return found


def disturbance(entry, least_of):
    """1 at best. 0 for what is not looked at: more threads than processors, whole commands."""
    if COUNTER not in entry:
        return 0.0
    return max(float(entry[COUNTER]) / least_of[entry["threads"] > 1], 1 + float(entry.get(QUEUED, 0)))


def is_calm(entry, least_of):
    return (COUNTER not in entry
            or (float(entry[COUNTER]) <= TOLERANCE * least_of[entry["threads"] > 1]
                and float(entry.get(QUEUED, 0)) <= APART))


def chosen(entries, least_of):
    """Of one benchmark's repetitions those that count: all that are calm, or else the calmest."""
    calm = [e for e in entries if is_calm(e, least_of)]
    if len(calm) >= min(ENOUGH, len(entries)):
        return calm
    return sorted(entries, key=lambda e: disturbance(e, least_of))[:ENOUGH]


def by_name(content):
    found = {}
    for e in repetitions(content):
        found.setdefault(e["name"], []).append(e)
    return found


def lacking(content, others):
    """Names of the benchmarks that have too few repetitions to make a median of."""
    least_of = least([content, *others])
    found = modes.find(e for each in (content, *others) for e in repetitions(each))
    home = found[0] if found else None
    return [name for name, entries in by_name(content).items()
            if sum(is_calm(e, least_of) for e in modes.in_mode(entries, home))
            < min(ENOUGH, entries[0]["repetitions"])]


def join(into, more):
    """Of a program some of whose benchmarks were measured again."""
    family = {e["name"]: e["family_index"] for e in into["benchmarks"]}
    for e in more["benchmarks"]:
        if e["name"] in family:
            into["benchmarks"].append({**e, "family_index": family[e["name"]]})
    return into


def load(path):
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
        repetitions(content)
        return content
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: {type(error).__name__}: {error}") from error


def literally(name):
    """As an extended regular expression."""
    return re.sub(r"([][().*+?^${}|\\])", r"\\\1", name)


def main(arguments):
    try:
        if len(arguments) >= 2 and arguments[0] == "lacking":
            content, *others = (load(path) for path in arguments[1:])
            names = lacking(content, others)
            if names:
                print("|".join(f"^{literally(name)}$" for name in names))
        elif len(arguments) == 3 and arguments[0] == "join":
            into = join(load(arguments[1]), load(arguments[2]))
            whole = arguments[1] + ".new"
            with open(whole, "w", encoding="utf-8") as file:
                json.dump(into, file, indent=1)
            os.replace(whole, arguments[1])
        else:
            print(__doc__, file=sys.stderr)
            return 2
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"calm.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
