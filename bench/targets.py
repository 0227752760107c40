# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""The targets of the figures, and whether they are met.

A figure is a median, or computed from medians. All are ratios except instructions and bytes. A figure without
its measurement is reported as not measured, and never guessed. A figure that depends on the distance between
the processors of two threads (modes.py) is judged where it is worst, and its note has the others.
"""
import statistics
from dataclasses import dataclass

import modes

MET, SHORT, UNKNOWN = "PASS", "short", "not measured"

CLOCK = "floor/clock"
TIMED_STORE = "floor/clock_and_store_24B/1MiB"
LANE = "recorder/exact_clock/1MiB"
EACH_ITS_OWN = "recorder/exact_clock/one_each/threads:2"
PER_CPU = "per_cpu/1MiB/threads:2"
SHARED = "shared/sequenced/fetch_add/threads:2"
OURS = "trace_ring_exact_clock"
OWN_QUEUE = "trace_ring_lossless/one_to_one/threads:2"
# What a note says where the floor alone misses the target.
OUT_OF_REACH = "out of reach on this processor"
# Times that differ by less are the same.
NOISE = 0.02
# Threads that waited for a processor for more than this share of their time did not meet.
APART = 0.10


@dataclass
class Verdict:
    id: str
    what: str
    figure: float = None
    target: float = None
    at_least: bool = False
    note: str = ""

    @property
    def state(self):
        if self.figure is None:
            return UNKNOWN
        met = self.figure >= self.target if self.at_least else self.figure <= self.target
        return MET if met else SHORT

    def line(self):
        if self.figure is None:
            return f"{self.id:4} {UNKNOWN:12}  {self.what}: {self.note or 'no measurement'}"
        bound = "at least" if self.at_least else "at most"
        text = f"{self.what}: {show(self.figure)}, target {bound} {show(self.target)}"
        if self.state == SHORT:
            text += f": short by {show(abs(self.figure - self.target))}"
        if self.note:
            text += f" ({self.note})"
        return f"{self.id:4} {self.state:12}  {text}"


def show(value):
    return f"{value:.0f}" if value == int(value) or abs(value) >= 100 else f"{value:.3g}"


class Missing(Exception):
    """A measurement that is not there, by name."""


class Figures:
    """The measurements, by benchmark."""

    def __init__(self, runs, peers):
        self.runs, self.peers = runs, peers
        self.apart = 0.0  # the most that threads waited, of those looked at since it was set

    def find(self, name):
        for run in self.runs:
            if name in run.rows:
                row = run.rows[name]
                if name.endswith("/threads:2") and row.waits:
                    self.apart = max(self.apart, statistics.median(row.waits))
                return run, row
        raise Missing(f"no {name}")

    def time(self, name, slow=False):
        _, row = self.find(name)
        return row.slow if slow else row.median

    def ratio(self, name, base="", slow=False):
        """To another of the same program, or by the floor that both programs have."""
        run, row = self.find(name)
        under = run.rows.get(base or row.base)
        if under is None or under.median <= 0:
            raise Missing(f"no {base or row.base or 'base'} beside {name}")
        return (row.slow if slow else row.median) / (under.slow if slow else under.median)

    def across(self, name, base, floor):
        """The ratio of two that may be of different programs: each is first divided by the floor."""
        return self.ratio(name, floor) / self.ratio(base, floor)

    def counter(self, name, counter):
        _, row = self.find(name)
        value = row.counter(counter)
        if value is None:
            raise Missing(f"no {counter} of {name}")
        return value

    def instructions(self, name, base, which="a_record"):
        for run in self.runs:
            if name in run.instructions and base in run.instructions:
                return run.instructions[name][which] - run.instructions[base][which]
        raise Missing(f"no instructions of {name}")


def ratio_of_percentiles(f, kind, how):
    def ratio(of, counter):
        ours = f.counter(f"{of}/{how}/iterations:1", counter)
        floor = f.counter(f"floor/one_record/{how}/iterations:1", counter)
        if floor <= 0:
            raise Missing("the floor's percentile is zero")
        return ours / floor

    ours = f"latency/{kind}"
    figure = ratio(ours, "p999")
    if how != "swept":
        return figure, ""
    # One record in 168 (4 KiB) or 1,365 claims a sub-buffer, which is beyond the 99th percentile
    # and, with one interruption more among 1,000, decides the 99.9th. A record itself waits for
    # the lane and the sub-buffer, whose address is in the lane: the floor for one line.
    note = ("of a claim, about 30 lines of data and as many of code; of a record alone, the 99th "
            f"percentile, {show(ratio(ours, 'p99'))}")
    try:
        least = ratio("floor/lane", "p999")
    except Missing:
        return figure, note
    return figure, f"{note}; a lane and its sub-buffer without a recorder: {show(least)}", least


def rate(f, name, floor):
    return 1 / f.ratio(name, floor)


def shared_by_peers(f):
    queues = [p for p in f.peers if p.kind == "queue" and not p.ours and p.both_ratio]
    # A queue without a common order of all its items is in effect two queues. It is reported, but an
    # ordered ring is not compared with it.
    found = [p for p in queues if "ordered by producer only" not in p.mode]
    if not found:
        raise Missing("no peer's ordered queue in the run")
    best = min(found, key=lambda p: p.both_ratio)
    others = "".join(f"; {p.name}, which keeps no common order: {show(p.both_ratio)} readings of "
                     "the clock" for p in queues if p not in found)
    f.find(f"{best.id}/push_and_pop/threads:2")
    slow_by_clock = f.time(SHARED, slow=True) / f.find(SHARED)[0].rows[CLOCK].median
    return slow_by_clock / best.both_ratio, f"the best in order is {best.name}{others}"


def one_to_one(f):
    """By peers in whose programs ours was measured, too: a line goes from core to core, and which two
    cores those are differs from one program to the next."""
    found = [p for p in f.peers if not p.ours and p.ours_by_one_to_one]
    if not found:
        raise Missing("no peer's queue in the run, or ours not beside it")
    best = max(found, key=lambda p: p.ours_by_one_to_one)
    theirs = f"{best.id}/one_to_one/threads:2"
    note = f"the fastest is {best.name}"
    for run in f.runs:
        if theirs in run.rows and OWN_QUEUE in run.rows:
            ours = run.rows[OWN_QUEUE]
            f.find(theirs)
            f.apart = max(f.apart, statistics.median(ours.waits))
            for name, row in (("ours", ours), (best.name, run.rows[theirs])):
                own = modes.own_modes(row.times)
                if len(own) > 1:
                    note += f"; {name} in two modes: {show(own[0])} and {show(own[1])} ns"
    return best.ours_by_one_to_one, note


def crowd(f, kind):
    names = [name for run in f.runs for name in run.rows if name.startswith(f"threads/{kind}/")]
    figure = f.across(f"threads/{kind}/threads:1000", f"threads/{kind}/threads:2", TIMED_STORE)
    sizes = {f.counter(name, "occupied") for name in names}
    if len(sizes) > 1:
        raise Missing("the memory that it occupies is not the same for all")
    if any(f.counter(name, "refused") > 0 for name in names):
        raise Missing("records were refused")
    return figure, "memory fixed, nothing refused"


def ahead(f):
    """Peers that are ahead of the default, exact kind in a row of the tables."""
    ours = next((p for p in f.peers if p.id == OURS), None)
    others = [p for p in f.peers if p.kind == "tracer" and not p.ours]
    if ours is None or not others:
        raise Missing("no tracing peer in the run" if ours else f"no {OURS}")
    rows = {"time": "one_ratio", "time with 2 threads": "two_ratio", "time behind work": "work_ratio",
            "instructions": "instructions", "bytes": "bytes"}
    found = []
    for peer in others:
        for what, key in rows.items():
            theirs, own = getattr(peer, key), getattr(ours, key)
            if theirs is None or own is None:
                continue
            if peer.id == "lttng_ust" and what == "bytes":
                continue  # known beforehand: its header has 5 bytes
            noise = NOISE if key.endswith("_ratio") else 0
            if theirs < own * (1 - noise):
                found.append(f"{peer.name}: {what} {show(theirs)} against {show(own)}")
    return len(found), "; ".join(found)


def above(f, figure, floor, base, what):
    """A figure, and what the floor alone takes there: if that misses the target, any record does."""
    try:
        least = f.ratio(floor, base)
    except Missing:
        return figure, ""
    return figure, f"{what}: {show(least)}", least


def hot(f):
    figure = f.instructions(LANE, "floor/payload")
    return figure, f"{show(f.instructions(LANE, 'floor/payload', 'hot_path'))} on the hot path"


def less_one(f, kind):
    """A thousand sites less one, by the floor: where that takes 0.29 s, 14 is 4 s."""
    return f.ratio(f"compile/1000_{kind}") - f.ratio("compile/site")


def code_a_site(f):
    return f.counter("compile/1000_sites", "text_bytes") / 1000


# id, what, figure, target, whether more is better
TARGETS = (
    ("T1", "private lane, exact clock, by clock and plain store", lambda f: f.ratio(LANE), 1.05),
    *(("T2", f"without clock, {size}, by plain store",
       lambda f, size=size: f.ratio(f"size/no_clock/{size}"), 2.0)
      for size in ("64KiB", "1MiB", "256MiB")),
    ("T3", "clock::sampled<16>, by clock and plain store",
     lambda f: above(f, f.ratio("recorder/sampled_16/1MiB", TIMED_STORE),
                     "floor/clock_in_16_and_store_24B/1MiB", TIMED_STORE,
                     "a plain store with a reading in 16"), 0.25),
    ("T4", "after 64 dependent multiplies, by the multiplies alone",
     lambda f: above(f, f.ratio("recorder/exact_clock/work"), "floor/work_and_clock",
                     "floor/work", "a clock read without a record"), 1.03),
    ("T5", "instructions per record", hot, 32),
    ("T6", "stride, bytes", lambda f: f.counter("size/bytes/iterations:1", "stride"), 24),
    ("T6", "bytes of file a record",
     lambda f: f.counter("size/bytes/iterations:1", "file_bytes"), 24.6),
    ("T7", "gate closed, flag, instructions",
     lambda f: f.instructions("gate/flag", "floor/payload", "hot_path"), 3),
    ("T8", "private lanes, 2 threads, by one private lane",
     lambda f: above(f, f.ratio(EACH_ITS_OWN, LANE), TIMED_STORE + "/threads:2", TIMED_STORE,
                     "clock and plain store, 2 threads by one"), 1.05),
    ("T8", "per_cpu, 2 threads, by one private lane", lambda f: f.ratio(PER_CPU, LANE), 1.3),
    ("T9", "recorder, 2 threads, by private lanes, 2 threads",
     lambda f: f.ratio(LANE + "/threads:2", EACH_ITS_OWN), 1.10),
    ("T10", "ordered shared ring, 2 threads, slow mode, by the best ordered peer queue", shared_by_peers,
     0.5),
    ("T10", "ordered shared ring, 2 threads, slow mode, by the bare add and sequence",
     lambda f: f.ratio(SHARED, "floor/add_and_sequence/threads:2", slow=True), 1.2),
    *(("T11", f"drain in place, {what}, {size}: share of memcpy's rate",
       lambda f, what=what, size=size: rate(f, f"drain/{what}/{size}", f"floor/memcpy/{size}"),
       target, True)
      for what, target in (("sum", 0.6), ("visit", 0.2)) for size in ("1MiB", "256MiB")),
    ("T12", "live ring forward, one lane: share of memcpy's rate",
     lambda f: rate(f, "reader/forward", "floor/memcpy/256MiB"), 0.4, True),
    ("T12", "merge of 8 lanes: share of memcpy's rate",
     lambda f: rate(f, "reader/merge_of_8_lanes", "floor/memcpy/256MiB"), 0.10, True),
    ("T13", "one to one, lossless, 32 bytes, by the fastest peer queue", one_to_one, 0.8),
    *(("T14", f"99.9th percentile, {how}, sub-buffers of {size} KiB, by the floor's",
       lambda f, kind=kind, how=how: ratio_of_percentiles(f, kind, how), 1.5)
      for kind, size in (("exact_clock", 4), ("large_sub_buffers", 32))
      for how in ("warm", "swept")),
    *(("T15", f"recorder, 1,000 threads, {name}, by 2 threads",
       lambda f, kind=kind: crowd(f, kind), 1.2)
      for name, kind in (("by thread", "exact_clock"), ("per_cpu", "per_cpu"))),
    ("T16", "rows in which a tracing peer is ahead of us", ahead, 0),
    *(("P1", f"seek in 1 GiB{how}, by its full read",
       lambda f, row=row: f.ratio(row, "reader/whole/1GiB"), 1 / 128)
      for how, row in (("", "reader/seek/1GiB"), (", backward", "reader/seek_backward/1GiB"))),
    *(("P2", f"backward by forward, {what}", lambda f, a=a, b=b: f.ratio(a, b), 1.1)
      for what, a, b in (("one lane", "reader/backward", "reader/forward"),
                         ("item by item", "reader/backward_singly", "reader/forward_singly"),
                         ("four lanes", "reader/whole_backward/1GiB", "reader/whole/1GiB"))),
    ("D1", "steps of a stepped program, its branches told: share of the bare ptrace loop's rate",
     lambda f: rate(f, "branches/single_step", "floor/bare_ptrace"), 0.8, True),
    ("W1", "a condition on a field that selects none: share of memcpy's rate",
     lambda f: rate(f, "reader/where", "floor/memcpy/256MiB"), 0.2, True),
    ("W1", "a condition on a sum of two fields: share of memcpy's rate",
     lambda f: rate(f, "reader/where_sum", "floor/memcpy/256MiB"), 0.08, True),
    ("W1", "a condition on a field, of a file, by one thread: share of memcpy's rate",
     lambda f: rate(f, "reader/where_of_file", "floor/memcpy/256MiB"), 0.2, True),
    *(("H1", f"compiling {what}, by <string> and <memory>", lambda f, name=name: f.ratio(name), target)
      for what, name, target in (("one site", "compile/site", 0.6),
                                 ("each kind of field and call", "compile/site_of_every_kind", 0.9))),
    ("H1", "memory for one site, MB", lambda f: f.counter("compile/site", "memory_mb"), 80),
    ("H2", "compiling the first program, by <string> and <memory>",
     lambda f: f.ratio("compile/first_program"), 4.5),
    ("H2", "memory for it, MB", lambda f: f.counter("compile/first_program", "memory_mb"), 160),
    ("H3", "1,000 sites less one, by <string> and <memory>", lambda f: less_one(f, "sites"), 14),
    ("H3", "the same of five lists of fields", lambda f: less_one(f, "mixed_sites"), 17.5),
    ("H3", "memory for them, MB", lambda f: f.counter("compile/1000_sites", "memory_mb"), 250),
    ("H4", "bytes of code a site", code_a_site, 190),
    # Of a processor that counts an empty virtual table with 16 ns for each row.
    ("Q1", "SQL on a trace, an average, ns for each record", lambda f: f.time("sql/average"), 45),
    ("Q1", "a filter that selects one record, ns for each", lambda f: f.time("sql/filter"), 12),
    ("Q1", "grouping, by an empty virtual table", lambda f: f.ratio("sql/group"), 1.1),
    ("Q2", "the first answer, by CSV and its import", lambda f: f.ratio("sql/first_answer"), 1 / 8),
    # 500,000 records per second and core.
    ("F1", "shipping to ClickHouse, trace-ship, ns for each record", lambda f: f.time("fleet/client"), 2000),
    ("F1", "the server, with merges, ns for each record", lambda f: f.time("fleet/server"), 2000),
    ("F2", "bytes of a record in the table, by those in the file",
     lambda f: f.counter("fleet/client", "stored_bytes") / f.counter("fleet/client", "file_bytes"), 1),
    ("X1", "text by trace-reduce, by babeltrace2's rate on the same events",
     lambda f: rate(f, "export/text", "floor/babeltrace2"), 10, True),
)


# Those in which peers take part: one that failed is missing there.
OF_PEERS = (shared_by_peers, one_to_one, ahead)


def verdict_of(target, figures):
    """In one mode."""
    id_, what, figure, bound, *at_least = target
    verdict = Verdict(id_, what, target=bound, at_least=bool(at_least))
    figures.apart = 0.0
    try:
        found = figure(figures)
        verdict.figure, verdict.note, *least = found if isinstance(found, tuple) else (found, "")
        if least and least[0] > bound:
            verdict.note += f", {OUT_OF_REACH}"
    except (Missing, KeyError) as reason:
        verdict.note = str(reason)
    except ZeroDivisionError:
        verdict.note = "a time of zero"
    if verdict.figure is not None and figures.apart > APART:
        verdict.note += "; " * bool(verdict.note) + (
            f"threads waited for processors {figures.apart:.0%} of their time: not to quote")
    return verdict


def worst_of(verdicts):
    """Of pairs of a mode and the verdict in it, the most frequent mode first."""
    there = [(mode, verdict) for mode, verdict in verdicts if verdict.figure is not None]
    if not there:
        return verdicts[0][1]
    worse = min if there[0][1].at_least else max
    worst = worse((verdict for _, verdict in there), key=lambda verdict: verdict.figure)
    others = [f"{show(verdict.figure)} at {mode}" for mode, verdict in there
              if verdict.figure != worst.figure]
    if others or len(there) < len(verdicts):
        at = next(mode for mode, verdict in there if verdict is worst)
        worst.note += "; " * bool(worst.note) + "; ".join(
            [f"processors {at} apart", *others])
    return worst


def judge(in_modes):
    """`in_modes`: the mode, its Runs and its peers, for each mode."""
    figures = [(mode, Figures(runs, peers)) for mode, runs, peers in in_modes]
    failed = ", ".join(p.name for p in in_modes[0][2] if p.failed)
    for target in TARGETS:
        verdict = worst_of([(mode, verdict_of(target, of_mode)) for mode, of_mode in figures])
        if failed and target[2] in OF_PEERS and verdict.figure is not None:
            verdict.note += "; " * bool(verdict.note) + f"without those that failed: {failed}"
        yield verdict
