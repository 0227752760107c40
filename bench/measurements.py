# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""What the benchmarks wrote, as rows: the repetitions of each benchmark that count (calm.py)."""
import contextlib
import json
import os
import statistics
from dataclasses import dataclass, field

import calm


class Fault(Exception):
    """An input that makes no sense."""


@dataclass
class Row:
    """One benchmark, over all its repetitions."""
    name: str
    base: str
    passing: bool = False  # its time is the time that passes
    times: list = field(default_factory=list)  # ns for one record
    waits: list = field(default_factory=list)  # elapsed by processor time, less one
    counters: dict = field(default_factory=dict)  # lists by name
    set_aside: int = 0  # repetitions that do not count, for the processor was not the program's own
    disturbed: bool = False  # too few are left: the calmest are taken

    @property
    def median(self):
        return statistics.median(self.times)

    @property
    def slow(self):
        """The slow mode: what one repetition in ten exceeds."""
        ordered = sorted(self.times)
        return ordered[round(0.9 * (len(ordered) - 1))]

    @property
    def spread(self):
        """Half the distance between the quartiles, as a share of the median."""
        if len(self.times) < 4 or self.median == 0:
            return None
        low, _, high = statistics.quantiles(self.times, n=4, method="inclusive")
        return (high - low) / 2 / self.median

    @property
    def timed(self):
        """Whether its time means anything: it does not where only counters count."""
        return not self.name.endswith(NO_TIME)

    def counter(self, name):
        values = self.counters.get(name)
        return statistics.median(values) if values else None


NO_TIME = "/iterations:1"


@dataclass
class Run:
    """One program's run."""
    title: str
    context: dict
    rows: dict  # by name, in the order measured
    instructions: dict = field(default_factory=dict)

    def ratio(self, row, base=""):
        under = self.rows.get(base or row.base)
        return row.median / under.median if under and under.median > 0 else None


NANOSECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
# What each entry has that is no counter of the benchmark's own.
KNOWN = {"name", "family_index", "per_family_instance_index", "run_name", "run_type", "repetitions",
         "repetition_index", "threads", "iterations", "real_time", "cpu_time", "time_unit", "label",
         "error_occurred", "error_message", calm.COUNTER}


def row_of(entries, least_of):
    """All repetitions of one benchmark."""
    used = calm.chosen(entries, least_of)
    first = used[0]
    passing = "/real_time" in first["run_name"]
    row = Row(first["run_name"].replace("/real_time", ""), first.get("label", ""), passing,
              set_aside=len(entries) - len(used),
              disturbed=not all(calm.is_calm(entry, least_of) for entry in used))
    for entry in used:
        unit = NANOSECONDS[entry["time_unit"]]
        processor = entry["cpu_time"] * unit
        # Elapsed time is given by the record of all threads together.
        elapsed = entry["real_time"] * unit * entry["threads"]
        row.times.append(elapsed if passing else processor)
        if row.timed:
            row.waits.append(elapsed / processor - 1 if processor > 0 else 0.0)
        for key, value in entry.items():
            if key not in KNOWN:
                row.counters.setdefault(key, []).append(float(value))
    return row


def run_of(title, content, least_of):
    run = Run(title, content["context"], {})
    for entry in content["benchmarks"]:
        if entry.get("error_occurred"):
            raise ValueError(f"{entry['name']}: {entry.get('error_message', 'failed')}")
    # Interleaved repetitions are written in the order measured: sort as registered.
    content["benchmarks"].sort(key=lambda e: (e["family_index"], e["threads"]))
    for entries in calm.by_name(content).values():
        row = row_of(entries, least_of)
        run.rows[row.name] = row
    if not run.rows:
        raise ValueError("no benchmarks in it")
    return run


def load_all(paths):
    """The Runs; each with the instructions that its program counted, by benchmark."""
    @contextlib.contextmanager
    def faults_of(path):
        try:
            yield
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise Fault(f"{path}: {type(error).__name__}: {error}") from error

    timed, counted = {}, {}
    for path in paths:
        with faults_of(path):
            with open(path, encoding="utf-8") as file:
                content = json.load(file)
            if isinstance(content, dict) and "instructions" in content:
                title = os.path.basename(path).removesuffix(".instructions.json")
                counted[title] = {name: {key: float(value) for key, value in counts.items()}
                                  for name, counts in content["instructions"].items()}
            else:
                calm.least([content])
                timed[path] = content
    least_of = calm.least(timed.values())
    runs = []
    for path, content in timed.items():
        with faults_of(path):
            runs.append(run_of(os.path.splitext(os.path.basename(path))[0], content, least_of))
            runs[-1].instructions = counted.get(runs[-1].title, {})
    return runs
