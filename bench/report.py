#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""The tables of bench/run, from what the benchmarks wrote.

    report.py [--strict] [--json OUT] [--plots FOLDER] [--absent PEER=REASON]...
              [--failed PEER=REASON]... [--peer PEER=FILE]... FILE...

One table for each file of measurements, the peers side by side, then the targets. Files of counted
instructions belong to the file of the same name without `.instructions`. Times are medians over the
repetitions: of processor time for one record on its own thread, or of the time that passes where
threads wait for each other. Each benchmark's label names the one that its time is divided by.

Two threads are compared only where their processors were equally far apart (modes.py): the tables show
the most frequent distance, and the others follow.

A peer that is not installed (--absent), or does not build or run (--failed), or whose file makes no sense
(--peer), has a line that begins with FAILED and has the reason.

The exit status is 0 whether targets are met or not, for this is a measurement; with --strict it is 1
if one was missed or could not be judged, or if a peer that is installed failed. It is 2 if a file
makes no sense, a peer's excepted.
"""
import argparse
import json
import re
import statistics
import sys
from dataclasses import asdict, dataclass

import modes
import plots
from measurements import NANOSECONDS, NO_TIME, Fault, load_all
from targets import CLOCK, MET, OWN_QUEUE, SHARED, judge

# Time waited for a processor, as a share of the time run, above which small differences mean little.
BUSY = 0.10
# Bytes of the record that is read.
RECORD = 24


def aligned(rows, left=(0,)):
    """Columns padded to the widest cell; those in `left` to the left."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = (cell.ljust(width) if i in left else cell.rjust(width)
                 for i, (cell, width) in enumerate(zip(row, widths)))
        yield "  ".join(cells).rstrip()


def number(value):
    """Four digits, no more."""
    if value is None:
        return ""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def unit_of(run):
    """Of a program's table: compilations do not take nanoseconds."""
    return "ns" if min(row.median for row in run.rows.values()) < 1e6 else "ms"


def table(run, wanted=lambda row: True):
    shown = [row for row in run.rows.values() if wanted(row)]
    rows = [("", unit_of(run), "+-", "slow", "ratio", "more", "waited", "to")]
    unit = NANOSECONDS[unit_of(run)]
    for row in shown:
        if not row.timed:
            continue
        ratio = run.ratio(row)
        spread = row.spread
        more = ("" if ratio is None
                else f"{(row.median - run.rows[row.base].median) / unit:+.2f}")
        waited = statistics.median(row.waits) if row.waits else 0
        crowded = threads_of(row.name) > int(run.context.get("num_cpus", 1))
        rows.append((row.name, f"{row.median / unit:.2f}", "" if spread is None else f"{spread:.0%}",
                     f"{row.slow / unit:.2f}", "" if ratio is None else f"{ratio:.2f}", more,
                     f"{waited:.0%}" if waited > BUSY and not crowded else "",
                     row.base if ratio is not None or not row.base else f"{row.base} (missing)"))
    if len(rows) > 1:
        yield from aligned(rows, left=(0, 7))
    for row in shown:
        if row.name.startswith(("reader/", "drain/", "export/")) and row.median > 0:
            yield (f"{row.name}: {1e3 / row.median:.3g} million records/s, "
                   f"{RECORD / row.median:.3g} GB/s")
        if row.counters:
            told = ", ".join(f"{name} {number(row.counter(name))}" for name in row.counters)
            yield f"{row.name.removesuffix(NO_TIME)}: {told}"
        own = modes.own_modes(row.times)
        if row.probed and len(own) > 1:
            yield (f"{row.name}: two modes at one distance, {own[0] / unit:.2f} and "
                   f"{own[1] / unit:.2f} {unit_of(run)}")


def instructions(run):
    base = run.instructions.get("floor/payload")
    for name, counts in run.instructions.items():
        if base is None or name in ("floor/payload", "floor/loop"):
            continue
        more = {key: value - base[key] for key, value in counts.items()}
        yield (f"{name}: {more['a_record']:.1f} instructions a record, "
               f"{more['hot_path']:.1f} on the hot path")


def about(runs):
    """The machine, the compiler, the repetitions: once where all runs agree."""
    lines = []
    for run in runs:
        c = run.context
        counts = sorted({len(row.times) for row in run.rows.values()})
        if not counts:
            continue
        repetitions = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        line = (f"{c.get('processor', 'unknown processor')}, {c.get('num_cpus', '?')} of them; "
                f"{c.get('compiler', 'unknown compiler')} {c.get('options', '')}; medians of "
                f"{repetitions} repetition{'' if counts == [1] else 's'}, "
                f"{'interleaved' if c.get('interleaved') == 'yes' else 'one after the other'}")
        if line not in lines:
            lines.append(line)
    return lines


def distances(measured):
    """How far apart the processors of two threads were."""
    found = [mode for mode, _ in measured.by_mode if mode is not None]
    if not measured.probed:
        return
    if found:
        where = {run.context["placement"]: None for run in measured.runs
                 if "placement" in run.context}
        yield ("two threads" + "".join(f", {place}" for place in where)
               + ": a cache line went from one processor to the other and back in "
               + ", in ".join(f"{mode} ({mode.repetitions} repetitions)" for mode in found))
    if len(found) > 1:
        yield ("The host moved the processors: figures are compared at one distance only, the tables "
               f"are of {found[0]}, and targets are judged where they are worst.")
    for count, why in ((measured.changed, "the distance changed while they ran"),
                       (measured.strays, "their distance is too rare to compare")):
        if count:
            yield f"{count} of {measured.probed} repetitions of two threads do not count: {why}."
    names = {row.name: None for _, runs in measured.by_mode for run in runs
             for row in run.rows.values() if row.probed}
    for mode, runs in measured.by_mode:
        there = {row.name for run in runs for row in run.rows.values()}
        lacking = [name for name in names if name not in there]
        if lacking:
            yield f"Not measured at {mode}: {', '.join(lacking)}."


def not_calm(measured):
    """That others used the processors while something was measured, and what came of it."""
    rows = [row for n, (_, runs) in enumerate(measured.by_mode) for run in runs
            for row in run.rows.values() if n == 0 or row.probed]
    aside = sum(row.set_aside for row in rows)
    disturbed = [row.name for row in rows if row.disturbed]
    if aside:
        taken = sum(len(row.times) for row in rows)
        yield (f"{aside} of {aside + taken} repetitions do not count, for something else used the "
               "same cores (calm.hpp).")
    if disturbed:
        yield (f"Something else used the same cores in most repetitions of {len(disturbed)} of "
               f"{len(rows)} benchmarks; their calmest are taken: {', '.join(disturbed)}.")


def busy(runs):
    # With more threads than processors waiting is what is meant to happen.
    waits = [wait for run in runs for row in run.rows.values() for wait in row.waits
             if threads_of(row.name) <= int(run.context.get("num_cpus", 1))]
    share = statistics.median(waits) if waits else 0
    if share <= BUSY:
        return []
    return [f"The machine was busy: threads waited {share:.0%} of the time that they ran. What "
            "threads do to each other shows too small, and small differences mean little."]


def threads_of(name):
    found = re.search(r"/threads:(\d+)$", name)
    return int(found[1]) if found else 1


# --- Peers -----------------------------------------------------------------------------------------
@dataclass
class Peer:
    """One line of the peers' tables. Times in ns; those over floors, in the same program, as ratios."""
    id: str
    kind: str
    name: str
    mode: str = ""
    when_full: str = ""
    missing: str = ""  # why there are no figures
    failed: bool = False  # though it is installed
    one: float = None
    one_ratio: float = None
    two: float = None
    two_ratio: float = None
    off: float = None
    work: float = None
    work_ratio: float = None
    instructions: float = None
    bytes: float = None
    lost: float = None
    one_to_one: float = None
    one_to_one_ratio: float = None
    ours_by_one_to_one: float = None  # our queue's time by this one's, of the same program
    round_trip: float = None
    round_trip_ratio: float = None
    both: float = None
    both_ratio: float = None
    both_slow_ratio: float = None

    @property
    def ours(self):
        return self.id.startswith("trace_ring")


def peers_of(runs, lost):
    """Those measured, and `lost`, which were not."""
    found = []
    for run in runs:
        for key, value in run.context.items():
            if not key.startswith("peer:"):
                continue
            peer = Peer(key.removeprefix("peer:"), *(str(value).split("|") + [""] * 4)[:4])

            def figures(what, threads=1, peer=peer, run=run):
                name = f"{peer.id}/{what}" + (f"/threads:{threads}" if threads > 1 else "")
                row = run.rows.get(name)
                return (row, row.median, run.ratio(row)) if row else (None, None, None)

            row, peer.one, peer.one_ratio = figures("loop")
            if row:
                peer.bytes, peer.lost = row.counter("bytes") or None, row.counter("lost")
            _, peer.two, peer.two_ratio = figures("loop", 2)
            _, peer.off, _ = figures("off")
            row, work, peer.work_ratio = figures("work")
            if row and peer.work_ratio:
                peer.work = work - run.rows[row.base].median
            counts, payload = (run.instructions.get(n, {}).get("a_record")
                               for n in (f"{peer.id}/loop", "floor/payload"))
            if counts is not None and payload is not None:
                peer.instructions = counts - payload
            row, peer.one_to_one, peer.one_to_one_ratio = figures("one_to_one", 2)
            own = run.rows.get(OWN_QUEUE)
            if row and own:
                peer.ours_by_one_to_one = modes.ratio(own.times, row.times)
            _, peer.round_trip, peer.round_trip_ratio = figures("round_trip", 2)
            row, peer.both, peer.both_ratio = figures("push_and_pop", 2)
            if row and peer.both_ratio:
                peer.both_slow_ratio = row.slow / run.rows[row.base].median
            found.append(peer)
    return found + lost


def lost_peers(given, measured):
    """Peers without figures, and why."""
    def pairs(entries):
        return (entry.partition("=")[::2] for entry in entries)

    lost = [Peer(name, "", name, missing=reason or "not installed")
            for name, reason in pairs(given.absent)]
    lost += [Peer(name, "", name, missing=reason or "no reason is known", failed=True)
             for name, reason in pairs(given.failed)]
    for name, path in pairs(given.peer):
        reason = measured.faults.get(path)
        if reason:
            lost.append(Peer(name, "", name, failed=True,
                             missing=f"what it wrote makes no sense: {reason}"))
    return lost


def ordered_ring(runs):
    """The ring that all threads write, which is no queue: nobody has to make room."""
    for run in runs:
        row, clock = run.rows.get(SHARED), run.rows.get(CLOCK)
        if row and clock:
            yield (f"trace_ring's ordered ring, 2 threads, each writes: {number(row.median)} "
                   f"({row.median / clock.median:.2f}), slow mode {number(row.slow)}; it overwrites, "
                   "and needs no reader")


def peer_tables(peers, runs, mode=None):
    """Of one mode; `mode`: not the most frequent one, so what one thread does is left out."""
    where = f", processors {mode} apart" if mode else ""

    def cells(value, ratio):
        return number(value) + ("" if ratio is None else f" ({ratio:.2f})")

    tracers = [p for p in peers if p.kind == "tracer" and (p.two or not mode)]
    if tracers:
        yield ("tracers: ns a record (and by clock and plain stores; behind work: by the work alone)"
               + where)
        rows = [("", "1 thread", "2 threads", "off", "behind work", "instructions", "bytes",
                 "when full", "mode")]
        for p in sorted(tracers, key=lambda p: p.one or 0):
            rows.append((p.name, cells(p.one, p.one_ratio), cells(p.two, p.two_ratio),
                         number(p.off), cells(p.work, p.work_ratio), number(p.instructions),
                         number(p.bytes), p.when_full, p.mode))
        yield from aligned(rows, left=(0, 7, 8))
    queues = [p for p in peers if p.kind == "queue" and (p.one_to_one or p.both or not mode)]
    if queues:
        yield ""
        yield ("queues, items of 32 bytes: ns an item (and by one reading of the clock; there and back: "
               "by a bare cache line's)" + where)
        rows = [("", "one to one", "ours by it", "there and back", "2 threads, push and pop each",
                 "when full", "mode")]
        for p in sorted(queues, key=lambda p: p.one_to_one or p.both or 0):
            rows.append((p.name, cells(p.one_to_one, p.one_to_one_ratio),
                         "" if p.ours or p.ours_by_one_to_one is None
                         else f"{p.ours_by_one_to_one:.2f}",
                         cells(p.round_trip, p.round_trip_ratio),
                         cells(p.both, p.both_ratio), p.when_full, p.mode))
        yield from aligned(rows, left=(0, 5, 6))
        yield from ordered_ring(runs)


def failures(peers):
    for p in peers:
        if p.missing:
            yield f"FAILED peer {p.name}: {p.missing}"


# --- All of it -------------------------------------------------------------------------------------
def report(measured, in_modes, verdicts):
    runs, peers = in_modes[0][1:]
    yield from about(runs)
    yield from distances(measured)
    for run in runs:
        if run.rows:
            yield ""
            yield f"{run.title}: " + ("ns a record" if unit_of(run) == "ns" else "ms")
            yield from table(run)
            yield from instructions(run)
    for mode, others, _ in in_modes[1:]:
        for run in others:
            if any(row.probed for row in run.rows.values()):
                yield ""
                yield f"{run.title}, processors {mode} apart: ns a record"
                yield from table(run, lambda row: row.probed)
    if peers:
        yield ""
        yield from peer_tables(peers, runs)
        for mode, others, there in in_modes[1:]:
            yield ""
            yield from peer_tables(there, others, mode)
    yield ""
    for verdict in verdicts:
        yield verdict.line()
    yield from failures(peers)
    yield from not_calm(measured)
    yield from busy(runs)


def content_of(in_modes, verdicts):
    """All of it for programs: what the README's speed section is made from, too."""
    runs, peers = in_modes[0][1:]

    def rows_of(runs, wanted=lambda row: True):
        return {row.name: {"program": run.title, "ns": row.median, "slow": row.slow,
                           "spread": row.spread, "ratio": run.ratio(row), "to": row.base,
                           "repetitions": len(row.times), "set_aside": row.set_aside,
                           "disturbed": row.disturbed,
                           "counters": {name: row.counter(name) for name in row.counters}}
                for run in runs for row in run.rows.values() if wanted(row)}

    return {
        "about": about(runs),
        "busy": bool(busy(runs)),
        "targets": [{**asdict(verdict), "state": verdict.state} for verdict in verdicts],
        "peers": [asdict(peer) for peer in peers],
        "rows": rows_of(runs),
        "distances": [{**asdict(mode), "peers": [asdict(peer) for peer in of_mode if not peer.missing],
                       "rows": rows_of(there, lambda row: row.probed)}
                      for mode, there, of_mode in in_modes if mode is not None],
        "instructions": {name: counts for run in runs for name, counts in run.instructions.items()},
    }


def main(arguments):
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--plots")
    for name in ("--absent", "--failed", "--peer"):
        parser.add_argument(name, action="append", default=[])
    parser.add_argument("files", nargs="*")
    given = parser.parse_args(arguments)
    try:
        measured = load_all(given.files, [entry.partition("=")[2] for entry in given.peer])
        if not measured.runs:
            raise Fault("no measurements")
    except Fault as fault:
        print(f"report.py: {fault}", file=sys.stderr)
        return 2
    lost = lost_peers(given, measured)
    in_modes = [(mode, runs, peers_of(runs, lost)) for mode, runs in measured.by_mode]
    runs, peers = in_modes[0][1:]
    verdicts = list(judge(in_modes))
    print("\n".join(report(measured, in_modes, verdicts)))
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump(content_of(in_modes, verdicts), file, indent=1)
    if given.plots:
        drawn = plots.draw_all(runs, peers, given.plots)
        print("\nplots: " + (" ".join(drawn) or "none, for want of measurements"))
    ill = any(verdict.state != MET for verdict in verdicts) or any(peer.failed for peer in peers)
    return 1 if given.strict and ill else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
