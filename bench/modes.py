# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""Which repetitions of two threads may be compared: those whose processors were equally far apart
(distance.hpp says why that changes, and how it is probed before and after each repetition). The
results of a repetition do not matter here.

A mode is a range of distances; a repetition belongs to at most one. Figures are compared only within
one mode.
"""
import statistics
from dataclasses import dataclass

BEFORE, AFTER = "ping_before_ns", "ping_after_ns"
# A distance that differs more than this before and after has changed in the middle.
STEADY = 1.25
# The greatest distance of a mode, divided by the least.
SPAN = 1.5
# Fewer repetitions make no mode, and no figure in one, unless fewer were requested.
LEAST = 3
# A benchmark whose times jump by this factor, at one distance, has two modes.
JUMP = 1.5


@dataclass(frozen=True)
class Mode:
    """Nanoseconds of a round trip between the two processors, and how often it was so."""
    low: float
    high: float
    middle: float
    repetitions: int

    def __str__(self):
        return f"{self.middle:.0f} ns"

    def has(self, entry):
        return is_steady(entry) and self.low <= distance(entry) <= self.high


def is_probed(entry):
    return BEFORE in entry and AFTER in entry


def distance(entry):
    """Of a steady repetition."""
    return (float(entry[BEFORE]) * float(entry[AFTER])) ** 0.5


def is_steady(entry):
    """Whether the distance was the same before and after."""
    before, after = float(entry[BEFORE]), float(entry[AFTER])
    return 0 < max(before, after) <= STEADY * min(before, after)


def divide(ordered):
    """Ranges of at most SPAN, divided where the gaps are widest."""
    if ordered[-1] <= SPAN * ordered[0]:
        return [ordered]
    at = max(range(1, len(ordered)), key=lambda i: ordered[i] / ordered[i - 1])
    return divide(ordered[:at]) + divide(ordered[at:])


def find(entries):
    """The modes of all repetitions of one run of bench/run, the one with most repetitions first."""
    steady = sorted(distance(e) for e in entries if is_probed(e) and is_steady(e))
    if not steady:
        return []
    ranges = divide(steady)
    least = min(LEAST, max(len(some) for some in ranges))
    return sorted((Mode(some[0], some[-1], statistics.median(some), len(some))
                   for some in ranges if len(some) >= least),
                  key=lambda mode: (-mode.repetitions, mode.low))


def in_mode(entries, mode):
    """Those that may be compared in it: all that were not probed, too."""
    return [e for e in entries if not is_probed(e) or (mode is not None and mode.has(e))]


def own_modes(times):
    """The medians of a benchmark's own modes, of at least two repetitions each, the quickest first.
    A queue has two if sometimes its consumer waits for each item and sometimes lags behind."""
    ordered = sorted(times)
    jumps = [i for i in range(2, len(ordered) - 1) if ordered[i] > JUMP * ordered[i - 1]]
    if not jumps:
        return [statistics.median(ordered)]
    at = max(jumps, key=lambda i: ordered[i] / ordered[i - 1])
    return [statistics.median(ordered[:at]), statistics.median(ordered[at:])]


def ratio(times, others):
    """Of two benchmarks' times at one distance. If both have two modes, quick is compared with
    quick and slow with slow; if only one has, its less favourable one counts. The worst decides."""
    ours, theirs = own_modes(times), own_modes(others)
    if len(ours) == len(theirs):
        return max(a / b for a, b in zip(ours, theirs))
    return max(ours) / min(theirs)
