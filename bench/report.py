#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""The tables of bench/run, from what the benchmarks wrote.

    report.py FILE...    one table for each file, then the targets

Times are medians over the repetitions, of processor time for one record on its own thread. Each
benchmark's label names the one that its time is divided by. Exit status 2 if a file makes no sense.
"""
import json
import os
import statistics
import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """What a ratio should be. The benchmark's own base is meant unless another is named."""
    what: str
    benchmark: str
    at_most: float
    base: str = ""


TARGETS = (
    Target("private lane, exact clock, tight loop: at most 1.10 of clock read and plain stores",
           "recorder/exact_clock/1MiB", 1.10),
)

# Time waited for a processor, as a share of the time run, above which small differences mean little.
BUSY = 0.10


class Fault(Exception):
    """An input that makes no sense."""


@dataclass
class Row:
    """One benchmark, over all its repetitions."""
    name: str
    base: str
    times: list  # ns of processor time for one record
    waits: list  # elapsed by processor time, less one

    @property
    def median(self):
        return statistics.median(self.times)

    @property
    def spread(self):
        """Half the distance between the quartiles, as a share of the median."""
        if len(self.times) < 4 or self.median == 0:
            return None
        low, _, high = statistics.quantiles(self.times, n=4, method="inclusive")
        return (high - low) / 2 / self.median


@dataclass
class Run:
    """One program's run."""
    title: str
    context: dict
    rows: dict  # by name, in the order measured

    def ratio(self, row, base=""):
        under = self.rows.get(base or row.base)
        return row.median / under.median if under and under.median > 0 else None


NANOSECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}


def load(path):
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
        run = Run(os.path.splitext(os.path.basename(path))[0], content["context"], {})
        # Interleaved repetitions are written in the order measured: sort as registered.
        entries = sorted(content["benchmarks"], key=lambda e: (e["family_index"], e["threads"]))
        for entry in entries:
            if entry["run_type"] != "iteration":
                continue
            if entry.get("error_occurred"):
                raise Fault(f"{path}: {entry['name']}: {entry.get('error_message', 'failed')}")
            unit = NANOSECONDS[entry["time_unit"]]
            row = run.rows.setdefault(entry["run_name"],
                                      Row(entry["run_name"], entry.get("label", ""), [], []))
            row.times.append(entry["cpu_time"] * unit)
            # Elapsed time is given by the record of all threads together.
            elapsed = entry["real_time"] * unit * entry["threads"]
            row.waits.append(elapsed / row.times[-1] - 1 if row.times[-1] > 0 else 0.0)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Fault(f"{path}: {type(error).__name__}: {error}") from error
    if not run.rows:
        raise Fault(f"{path}: no benchmarks in it")
    return run


def aligned(rows, left=(0,)):
    """Columns padded to the widest cell; those in `left` to the left."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = (cell.ljust(width) if i in left else cell.rjust(width)
                 for i, (cell, width) in enumerate(zip(row, widths)))
        yield "  ".join(cells).rstrip()


def table(run):
    rows = [("", "ns", "+-", "ratio", "more", "to")]
    for row in run.rows.values():
        ratio = run.ratio(row)
        spread = row.spread
        more = "" if ratio is None else f"{row.median - run.rows[row.base].median:+.2f}"
        rows.append((row.name, f"{row.median:.2f}", "" if spread is None else f"{spread:.0%}",
                     "" if ratio is None else f"{ratio:.2f}", more,
                     row.base if ratio is not None or not row.base else f"{row.base} (missing)"))
    return aligned(rows, left=(0, 5))


def about(runs):
    """The machine, the compiler, the repetitions: once where all runs agree."""
    lines = []
    for run in runs:
        c = run.context
        counts = sorted({len(row.times) for row in run.rows.values()})
        repetitions = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        line = (f"{c.get('processor', 'unknown processor')}, {c.get('num_cpus', '?')} of them; "
                f"{c.get('compiler', 'unknown compiler')} {c.get('options', '')}; medians of "
                f"{repetitions} repetition{'' if counts == [1] else 's'}, "
                f"{'interleaved' if c.get('interleaved') == 'yes' else 'one after the other'}")
        if line not in lines:
            lines.append(line)
    return lines


def busy(runs):
    waits = [wait for run in runs for row in run.rows.values() for wait in row.waits]
    share = statistics.median(waits)
    if share <= BUSY:
        return []
    return [f"The machine was busy: threads waited {share:.0%} of the time that they ran. What "
            "threads do to each other shows too small, and small differences mean little."]


def targets(runs):
    for target in TARGETS:
        found = [(run, run.rows[target.benchmark]) for run in runs if target.benchmark in run.rows]
        if not found:
            yield f"not measured  {target.what}"
            continue
        run, row = found[0]
        ratio = run.ratio(row, target.base)
        if ratio is None:
            yield f"no base       {target.what}"
        elif ratio <= target.at_most:
            yield f"PASS   {ratio:.3f}  {target.what}"
        else:
            yield f"SHORT  {ratio:.3f}  {target.what}"


def report(runs):
    yield from about(runs)
    for run in runs:
        yield ""
        yield f"{run.title}: ns a record"
        yield from table(run)
    yield ""
    yield from targets(runs)
    yield from busy(runs)


def main(paths):
    if not paths or paths[0] in ("-h", "--help"):
        print(__doc__.strip(), file=sys.stdout if paths else sys.stderr)
        return 0 if paths else 2
    try:
        runs = [load(path) for path in paths]
    except Fault as fault:
        print(f"report.py: {fault}", file=sys.stderr)
        return 2
    print("\n".join(report(runs)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
