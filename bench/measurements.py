# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""What the benchmarks wrote, as rows: the repetitions of each benchmark that count (calm.py), of two
threads those at one distance (modes.py)."""
import contextlib
import json
import os
import statistics
from dataclasses import dataclass, field

import calm
import modes


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
    probed: bool = False  # of two threads: all repetitions at one distance

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
         "error_occurred", "error_message", calm.COUNTER, calm.QUEUED, modes.BEFORE, modes.AFTER}


def row_of(entries, least_of):
    """All repetitions of one benchmark."""
    used = calm.chosen(entries, least_of)
    first = used[0]
    passing = "/real_time" in first["run_name"]
    row = Row(first["run_name"].replace("/real_time", ""), first.get("label", ""), passing,
              set_aside=len(entries) - len(used),
              disturbed=not all(calm.is_calm(entry, least_of) for entry in used),
              probed=modes.is_probed(first))
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


def checked(content):
    """A program's results, in the order in which the benchmarks were registered."""
    for entry in content["benchmarks"]:
        if entry.get("error_occurred"):
            raise ValueError(f"{entry['name']}: {entry.get('error_message', 'failed')}")
    # Interleaved repetitions are written in the order measured.
    content["benchmarks"].sort(key=lambda e: (e["family_index"], e["threads"]))
    if not calm.repetitions(content):
        raise ValueError("no benchmarks in it")
    return content


def run_of(title, content, least_of, mode):
    """What may be compared in the mode."""
    run = Run(title, content["context"], {})
    for entries in calm.by_name(content).values():
        those = modes.in_mode(entries, mode)
        if len(those) < min(modes.LEAST, len(entries)):
            continue
        row = row_of(those, least_of)
        run.rows[row.name] = row
    return run


@dataclass
class Measured:
    """One run of bench/run: its programs in each mode of two threads, the most frequent one first."""
    by_mode: list  # pairs of a modes.Mode, or None where nothing was probed, and the Runs
    probed: int = 0  # repetitions of two threads
    changed: int = 0  # of these, with another distance after than before
    strays: int = 0  # of these, at distances that are too rare to be modes
    faults: dict = field(default_factory=dict)  # by file that may be at fault

    @property
    def runs(self):
        return self.by_mode[0][1]


def load_all(paths, may_fail=()):
    """All of it; each Run with the instructions that its program counted, by benchmark. A file that makes
    no sense is a Fault, or listed with its fault if it is in `may_fail`."""
    @contextlib.contextmanager
    def faults_of(path):
        try:
            yield
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            fault = Fault(f"{path}: {type(error).__name__}: {error}")
            if path not in may_fail:
                raise fault from error
            faults[path] = f"{type(error).__name__}: {error}"
            timed.pop(path, None)

    timed, counted, faults = {}, {}, {}
    for path in [*paths, *may_fail]:
        with faults_of(path):
            with open(path, encoding="utf-8") as file:
                content = json.load(file)
            if isinstance(content, dict) and "instructions" in content:
                title = os.path.basename(path).removesuffix(".instructions.json")
                counted[title] = {name: {key: float(value) for key, value in counts.items()}
                                  for name, counts in content["instructions"].items()}
            else:
                calm.least([content])
                timed[path] = checked(content)
    # Once by itself, so that one that makes no sense has no say in what is calm, and in the modes.
    for path, content in list(timed.items()):
        with faults_of(path):
            found = modes.find(calm.repetitions(content))
            run_of("", content, calm.least([content]), found[0] if found else None)
    least_of = calm.least(timed.values())
    all_of_two = [e for content in timed.values() for e in calm.repetitions(content)
                  if modes.is_probed(e)]
    found = modes.find(all_of_two)
    measured = Measured([], len(all_of_two), sum(not modes.is_steady(e) for e in all_of_two),
                        faults=faults)
    measured.strays = measured.probed - measured.changed - sum(m.repetitions for m in found)
    for mode in found or [None]:
        runs = []
        for path, content in timed.items():
            with faults_of(path):
                title = os.path.splitext(os.path.basename(path))[0]
                runs.append(run_of(title, content, least_of, mode))
                runs[-1].instructions = counted.get(title, {})
        measured.by_mode.append((mode, runs))
    return measured
