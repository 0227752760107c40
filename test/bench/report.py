#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""The benchmarks' report, and that the benchmarks run.

    report.py report REPORT            REPORT makes of known measurements what is written here
    report.py runs REPORT PROGRAM...   each benchmark of each PROGRAM runs, shortly, and names a base
                                       that is there. Nothing is timed
"""
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

CONTEXT = {"processor": "Test 1000", "num_cpus": 2, "compiler": "g++ 12", "options": "-O3",
           "interleaved": "yes"}


def entry(family, name, cpu, label="", threads=1, waited=1.0, **more):
    return {"family_index": family, "name": name, "run_name": name, "run_type": "iteration",
            "threads": threads, "label": label, "time_unit": "ns", "cpu_time": cpu,
            "real_time": cpu * waited / threads, **more}


FLOOR, LANE = "floor/clock_and_store_24B/1MiB", "recorder/exact_clock/1MiB"


def measurements(times, waited=1.0):
    """A floor of 10 ns, the recorder above it with `times`, in mixed order; two threads; no base."""
    entries = []
    for time, ground in zip(times, (10.0, 30.0, 9.0, 10.0, 10.5)):
        entries.append(entry(1, LANE, time, FLOOR, waited=waited))
        entries.append(entry(0, FLOOR, ground, waited=waited))
        entries.append(entry(1, LANE + "/threads:2", 2 * time, FLOOR, 2, waited=waited))
        entries.append(entry(2, "recorder/other", 0.001, "floor/nowhere", waited=waited,
                             **{"time_unit": "us"}))
    entries.append({"run_type": "aggregate", "family_index": 0, "name": FLOOR + "_median",
                    "run_name": FLOOR, "threads": 1, "cpu_time": 1e9})
    return {"context": CONTEXT, "benchmarks": entries}


EXPECTED = """\
Test 1000, 2 of them; g++ 12 -O3; medians of 5 repetitions, interleaved

recorder: ns a record
                                        ns  +-    slow  ratio    more  waited  to
floor/clock_and_store_24B/1MiB       10.00  2%   30.00
recorder/exact_clock/1MiB            10.40  1%   50.00   1.04   +0.40          floor/clock_and_store_24B/1MiB
recorder/exact_clock/1MiB/threads:2  20.80  1%  100.00   2.08  +10.80          floor/clock_and_store_24B/1MiB
recorder/other                        1.00  0%    1.00                         floor/nowhere (missing)

T1   PASS          private lane, exact clock, by clock and plain store: 1.04, target at most 1.05
T2   not measured  without clock, 64KiB, by plain store: no size/no_clock/64KiB
"""


def one(name, times, label="", family=0, threads=1, **more):
    return [entry(family, name, time, label, threads, **more) for time in times]


def of_program(*entries, **context):
    return {"context": {**CONTEXT, **context}, "benchmarks": [e for some in entries for e in some]}


def peer(id_, kind, name, ns, bytes_, work=61.0, two=None):
    """What a tracer's program writes: floors of 10 and 60."""
    return of_program(
        one(FLOOR, [10.0] * 9), one(FLOOR + "/threads:2", [10.0] * 9, family=1, threads=2),
        one("floor/work", [60.0] * 9, family=2),
        one(f"{id_}/loop", [ns] * 9, FLOOR, 3, bytes=bytes_, lost=0.0),
        one(f"{id_}/loop/threads:2", [two or ns] * 9, FLOOR + "/threads:2", 4, 2, bytes=bytes_),
        one(f"{id_}/work", [work] * 9, "floor/work", 5),
        **{f"peer:{id_}": f"{kind}|{name}|a mode|overwrites"})


def queue(id_, name, ns, both, clock=10.0, ours=None):
    """A queue's: the time that passes, given by the item of both threads together; the clock; our
    queue, perhaps."""
    def handing_over(family, by, time):
        return [{**entry(family, f"{by}/one_to_one/real_time/threads:2", time, "floor/clock"),
                 "real_time": time / 2, "threads": 2}] * 9
    return of_program(
        one("floor/clock", [clock] * 9), handing_over(1, id_, ns),
        one(f"{id_}/push_and_pop/threads:2", [both] * 9, "floor/clock", 2, 2),
        *([handing_over(3, "trace_ring_lossless", ours)] if ours else []),
        **{f"peer:{id_}": f"queue|{name}|a mode|refuses"})


def run(report, *files):
    done = subprocess.run([sys.executable, report, *files], capture_output=True, text=True,
                          check=False)
    return done.returncode, done.stdout, done.stderr


def check(name, holds, detail=""):
    if not holds:
        sys.exit(f"FAILED: {name}\n{detail}")
    print(f"ok: {name}")


def line(out, start, part):
    """The one line of the targets that begins so and has `part` in it."""
    found = [l for l in out.splitlines() if l.startswith(start + " ") and part in l]
    return found[0] if len(found) == 1 else f"({len(found)} lines)"


def check_report(report):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "recorder.json")

        def write(name, content):
            where = os.path.join(folder, name)
            with open(where, "w", encoding="utf-8") as file:
                file.write(content if isinstance(content, str) else json.dumps(content))
            return where

        def of(content, *more):
            return run(report, *more, write("recorder.json", content))

        status, out, _ = of(measurements((10.4, 10.3, 10.6, 50.0, 10.2)))
        check("known measurements give the known table",
              status == 0 and out.startswith(EXPECTED), out)
        check("a machine that was not busy is not called so", "busy" not in out, out)
        short = measurements((11.2, 11.1, 11.3, 11.2, 11.0))
        status, out, _ = of(short)
        check("a figure above its target is told as short, by how much",
              status == 0 and line(out, "T1", "").endswith(
                  "by clock and plain store: 1.12, target at most 1.05: short by 0.07"), out)
        status, strict, _ = of(short, "--strict")
        check("only when asked to be strict a missed target is a failure",
              status == 1 and strict == out, strict)
        status, out, _ = of(measurements((10.8,) * 5, waited=3.0))
        check("a busy machine is told", "busy: threads waited 200%" in out, out)
        check("and beside each figure",
              any(l.startswith(LANE + " ") and "   200%  " + FLOOR in l for l in out.splitlines()),
              out)
        status, out, _ = of({"context": CONTEXT,
                             "benchmarks": [entry(0, "floor/clock", 10.0)]})
        check("a target whose benchmark did not run is told as not measured",
              status == 0 and "not measured" in line(out, "T1", f"no {LANE}"), out)
        check("where nothing was measured nothing passes or is short",
              "PASS" not in out and "short" not in out, out)

        check_targets(report, write)
        check_peers(report, write, folder)
        check_modes(report, write, folder)
        check_readme(os.path.join(os.path.dirname(report), "readme_speed.py"), write)

        failed = measurements((10.8,) * 5)
        failed["benchmarks"][3].update(error_occurred=True, error_message="no memory")
        for name, content, reason in (
                ("a benchmark that failed", failed, "recorder/other: no memory"),
                ("an empty file", "", "JSONDecodeError"),
                ("a file cut short", json.dumps(failed)[:300], "JSONDecodeError"),
                ("a file of something else", "[1, 2]", "TypeError"),
                ("instructions that are none", '{"instructions": {"a": {"b": "many"}}}',
                 "ValueError"),
                ("instructions in no order", '{"instructions": [1]}', "AttributeError"),
                ("a time that is none", of_program([{**entry(0, "a", 1.0), "cpu_time": "soon"}]), "TypeError"),
                ("a file without benchmarks", {"context": CONTEXT, "benchmarks": []},
                 "no benchmarks")):
            status, out, err = of(content)
            check(f"{name} is an error that names the file",
                  status == 2 and not out and path in err and reason in err, out + err)
        status, _, err = run(report, os.path.join(folder, "nowhere.json"))
        check("a file that is not there is an error that names it",
              status == 2 and "nowhere.json" in err, err)


def check_targets(report, write):
    counts = write("recorder.instructions.json", {"instructions": {
        "floor/payload": {"a_record": 5.0, "hot_path": 5.0},
        LANE: {"a_record": 39.0, "hot_path": 31.0}}})
    gates = write("gate.instructions.json", {"instructions": {
        "floor/payload": {"a_record": 5.0, "hot_path": 5.0},
        "gate/flag": {"a_record": 8.0, "hot_path": 8.0}}})
    program = write("recorder.json", measurements((10.4,) * 5))
    gate = write("gate.json", of_program(one("gate/flag", [1.0])))
    _, out, _ = run(report, program, counts, gate, gates)
    check("instructions are told without the payload's, and what is short of the target",
          line(out, "T5", "") == "T5   short         instructions per record: 34, target at most 32: "
                                 "short by 2 (26 on the hot path)", out)
    check("a gate's instructions are those that it adds",
          line(out, "T7", "flag,") == "T7   PASS          gate closed, flag, instructions: 3, "
                                      "target at most 3", out)

    def behind_work(clock):
        return write("recorder.json", of_program(
            one("floor/work", [60.0] * 3), one("floor/work_and_clock", [clock] * 3, "floor/work", 1),
            one("recorder/exact_clock/work", [66.0] * 3, "floor/work", 2)))
    _, out, _ = run(report, behind_work(60.6))
    check("a missed target that the floor meets is told beside the floor's figure",
          line(out, "T4", "").endswith("target at most 1.03: short by 0.07 "
                                       "(a clock read without a record: 1.01)"), out)
    _, out, _ = run(report, behind_work(64.8))
    check("one that the floor itself misses is said to be out of reach",
          "short" in line(out, "T4", "") and line(out, "T4", "").endswith(
              "(a clock read without a record: 1.08, out of reach on this processor)"), out)

    def percentiles(name, p99, p999):
        return one(name + "/iterations:1", [1.0] * 3, p99=p99, p999=p999)
    slowest = write("latency.json", of_program(
        percentiles("floor/one_record/warm", 20.0, 100.0),
        percentiles("floor/one_record/swept", 400.0, 500.0),
        percentiles("latency/exact_clock/warm", 25.0, 140.0),
        percentiles("latency/exact_clock/swept", 1000.0, 5000.0)))
    _, out, _ = run(report, slowest)
    check("the slowest records are compared with the floor's slowest, warm",
          line(out, "T14", "warm, sub-buffers of 4").endswith("by the floor's: 1.4, target at most 1.5"),
          out)
    swept = line(out, "T14", "swept, sub-buffers of 4")
    check("and swept, with what is waited for and how it is without a claim",
          "the floor's: 10, target at most 1.5: short by 8.5 (" in swept
          and swept.endswith("of a record alone, the 99th percentile, 2.5)"), out)
    bare = write("latency.json", of_program(
        percentiles("floor/one_record/swept", 400.0, 500.0),
        percentiles("floor/lane/swept", 900.0, 1000.0),
        percentiles("latency/exact_clock/swept", 1000.0, 5000.0)))
    _, out, _ = run(report, bare)
    check("and that no lane could meet it, where the least of one does not",
          line(out, "T14", "swept, sub-buffers of 4").endswith(
              "without a recorder: 2, out of reach on this processor)"), out)

    reader = write("reader.json", of_program(
        one("floor/memcpy/256MiB", [2.0] * 3), one("reader/forward", [4.0] * 3, family=1),
        one("reader/merge_of_8_lanes", [25.0] * 3, family=2)))
    _, out, _ = run(report, reader)
    check("a rate is met from its target upwards",
          "PASS" in line(out, "T12", "one lane") and ": 0.5, target at least 0.4" in out, out)
    check("and short below", line(out, "T12", "merge").endswith(
        ": 0.08, target at least 0.1: short by 0.02"), out)

    def crowd(refused=0.0, occupied=5.0):
        return write("threads.json", of_program(
            one(FLOOR, [10.0] * 3),
            one("threads/exact_clock/threads:2", [11.0] * 3, FLOOR, 1, 2, occupied=5.0, refused=0.0),
            one("threads/exact_clock/threads:1000", [12.1] * 3, FLOOR, 2, 1000, occupied=occupied,
                refused=refused)))
    _, out, _ = run(report, crowd())
    check("threads are compared by the floor of their program",
          "PASS" in line(out, "T15", "by thread, by 2 threads: 1.1,"), out)
    _, out, _ = run(report, crowd(refused=3.0))
    check("a figure made of refused records is none",
          "not measured" in line(out, "T15", "records were refused"), out)
    _, out, _ = run(report, crowd(occupied=6.0))
    check("nor is one of memory that grows", "not measured" in line(out, "T15", "not the same"), out)

    # One repetition of ten is slow: the median does not see it, the slow mode does.
    times = [50.0] * 8 + [90.0, 90.0]
    shared = write("shared.json", of_program(
        one("floor/clock", [10.0] * 10),
        one("floor/add_and_sequence/threads:2", [60.0] * 10, family=1, threads=2),
        one("shared/sequenced/fetch_add/threads:2", times, "", 2, 2)))
    _, out, _ = run(report, shared)
    check("the slow mode counts where there are several",
          line(out, "T10", "bare").endswith(": 1.5, target at most 1.2: short by 0.3"), out)
    _, out, _ = run(report, shared, write("q.json", queue("q", "a queue", 20.0, 400.0, clock=20.0)))
    check("figures of two programs are compared by the floor that both have",
          line(out, "T10", "best ordered peer").endswith(
              ": 0.45, target at most 0.5 (the best in order is a queue)"), out)


    with open(shared, encoding="utf-8") as file:
        late = json.load(file)
    for e in late["benchmarks"]:
        e["real_time"] *= 1.5
    _, out, _ = run(report, write("shared.json", late))
    check("where two threads did not meet their figure is not to be quoted",
          line(out, "T10", "bare").endswith("waited for processors 50% of their time: not to quote)"),
          out)


def check_peers(report, write, folder):
    ours = write("trace_ring.json", peer("trace_ring_exact_clock", "tracer", "ours", 10.4, 24.0))
    near = write("near.json", peer("near", "tracer", "near", 10.3, 24.0))
    ahead = write("ahead.json", peer("ahead", "tracer", "quick", 9.0, 32.0))
    lttng = write("lttng_ust.json", peer("lttng_ust", "tracer", "LTTng", 90.0, 22.0, work=130.0))
    status, out, _ = run(report, "--absent=dpdk=not installed", ours, near, lttng)
    check("a peer that is ahead by noise alone, or by bytes known beforehand, is not ahead",
          status == 0 and "PASS" in line(out, "T16", ": 0, target at most 0"), out)
    check("a peer's mode and what it does when full stand beside its figures",
          any(l.split() == ["LTTng", "90", "(9.00)", "90", "(9.00)", "70", "(2.17)", "22",
                            "overwrites", "a", "mode"] for l in out.splitlines()), out)
    check("a peer that is missing is reported as failed", "\nFAILED peer dpdk: not installed\n" in out,
          out)
    failed = "--failed=dpdk=does not build here: x.h:13: error: a = b"
    status, out, _ = run(report, failed, ours, near)
    check("a peer that does not build is, too, with the reason",
          status == 0 and "\nFAILED peer dpdk: does not build here: x.h:13: error: a = b\n" in out, out)
    check("and a figure of peers says that it is without it",
          line(out, "T16", "").endswith("(without those that failed: dpdk)"), out)
    _, out, _ = run(report, failed, write("floor.json", of_program(one(FLOOR, [10.0]))))
    check("even if no peer was measured", "\nFAILED peer dpdk: does not build" in out, out)
    nonsense = write("nonsense.json", "[1")
    status, out, err = run(report, f"--peer=far={nonsense}", f"--peer=near={near}", ours)
    check("a peer's file that makes no sense is that peer's failure",
          status == 0 and "\nFAILED peer far: what it wrote makes no sense: JSONDecodeError" in out
          and "\nnear " in out, out + err)
    easy = of_program(one(FLOOR, [10.0] * 3), one(LANE, [10.0] * 3, FLOOR, 1))
    strict = """import sys
sys.path.insert(0, sys.argv.pop(1))
import report, targets
targets.TARGETS = targets.TARGETS[:1]
sys.exit(report.main(sys.argv[1:]))"""
    for what, option, expected in (("no peer fails", "--absent=dpdk=", 0), ("one does", failed, 1)):
        done = subprocess.run([sys.executable, "-c", strict, os.path.dirname(report), "--strict", option,
                               write("recorder.json", easy)], capture_output=True, text=True, check=False)
        check(f"strictly judged, all is well where {what}: {not expected}",
              done.returncode == expected, done.stdout + done.stderr)
    _, out, _ = run(report, ours, ahead)
    check("a peer that is ahead is named, with the row",
          "quick: time 0.9 against 1.04; quick: time with 2 threads 0.9 against 1.04"
          in line(out, "T16", "short by 2"), out)
    _, out, _ = run(report, ours)
    check("without peers nobody is ahead of us, nor behind",
          "not measured" in line(out, "T16", "no tracing peer"), out)

    queues = [write("ours.json", queue("trace_ring_lossless", "ours", 12.0, 100.0)),
              write("a.json", queue("a", "queue a", 24.0, 100.0, ours=18.0)),
              write("b.json", queue("b", "queue b", 16.0, 200.0, clock=20.0, ours=10.0)),
              write("c.json", queue("c", "queue c", 14.0, 100.0))]
    plots, content = os.path.join(folder, "plots"), os.path.join(folder, "report.out")
    os.mkdir(plots)
    status, out, _ = run(report, "--plots", plots, "--json", content, ours, near, *queues)
    check("one to one, in time that passes, is by what was measured in the same program",
          line(out, "T13", "").endswith(
              ": 0.75, target at most 0.8 (the fastest is queue a)"), out)
    _, alone, _ = run(report, queues[0], queues[3])
    check("and not measured where ours was not", "not measured" in line(alone, "T13", "ours"), alone)
    for name in ("tracers", "queues_one_to_one", "queues_shared"):
        root = ElementTree.parse(os.path.join(plots, name + ".svg")).getroot()
        check(f"the plot {name} is drawn", root.tag.endswith("svg") and len(root) > 5)
    with open(content, encoding="utf-8") as file:
        written = json.load(file)
    check("all of it is written for programs, too",
          written["rows"]["near/loop"]["ratio"] == 1.03 and
          any(t["id"] == "T13" and t["state"] == "PASS" for t in written["targets"]),
          json.dumps(written)[:2000])

    sizes = write("size.json", of_program(
        *(one(f"size/exact_clock/{s}", [t], family=f)
          for f, (s, t) in enumerate((("64KiB", 10.0), ("1MiB", 11.0), ("256MiB", 12.0)))),
        *(one(f"payload/exact_clock/{s}B", [t], family=5 + f)
          for f, (s, t) in enumerate(((0, 10.0), (1024, 80.0)))),
        *(one(f"threads/exact_clock{s}", [t], family=8 + f)
          for f, (s, t) in enumerate((("", 10.0), ("/threads:1000", 12.0))))))
    run(report, "--plots", plots, sizes)
    for name in ("ring_size", "payload", "threads"):
        with open(os.path.join(plots, name + ".svg"), encoding="utf-8") as file:
            text = file.read()
        ElementTree.fromstring(text)
        check(f"the plot {name} has a line and names its axes",
              "<polyline" in text and ("ns a record" in text or "processor time" in text), text)


def probed(family, name, repetitions, label="", passing=False, **more):
    """Of two threads: a time, and how far apart their processors were before and after."""
    return [{**entry(family, name + ("/real_time" if passing else "") + "/threads:2", time, label, 2),
             "ping_before_ns": before, "ping_after_ns": after, "repetitions": len(repetitions), **more}
            for time, before, after in repetitions]


def near(time, count):
    return [(time, 58.0 + n % 3, 59.0) for n in range(count)]


def far(time, count):
    return [(time, 212.0, 209.0 + n % 3) for n in range(count)]


OURS_1_TO_1, PEERS_1_TO_1 = "trace_ring_lossless/one_to_one", "q/one_to_one"


def one_to_one(ours, theirs, *more):
    return of_program(one("floor/clock", [10.0] * 9),
                      probed(1, OURS_1_TO_1, ours, "floor/clock", True),
                      probed(2, PEERS_1_TO_1, theirs, "floor/clock", True), *more,
                      **{"peer:q": "queue|a queue|a mode|refuses"})


def check_modes(report, write, folder):
    def of(content, *more):
        return run(report, *more, write("q.json", content))[1]

    # By the medians of all, 10 ns would be compared with 104.
    moved = one_to_one(near(10.0, 6) + far(55.0, 3), near(23.0, 3) + far(104.0, 6))
    content = os.path.join(folder, "modes.out")
    out = of(moved, "--json", content)
    check("two threads are compared only at one distance, and judged where it is worst",
          line(out, "T13", "").endswith(": 0.529, target at most 0.8 (the fastest is a queue; "
                                        "processors 211 ns apart; 0.435 at 59 ns)"), out)
    check("the distances are reported",
          "\ntwo threads: a cache line went from one processor to the other and back in 59 ns (9 "
          "repetitions), in 211 ns (9 repetitions)\n" in out, out)
    check("with a table for each",
          all(any(l.split()[:7] == ["a", "queue", ns, by, ours] + ["refuses", "a"]
                  for l in out.splitlines())
              for ns, by, ours in (("23", "(2.30)", "0.43"), ("104", "(10.40)", "0.53"))), out)
    with open(content, encoding="utf-8") as file:
        written = json.load(file)
    check("programs find the figures of each distance",
          [(round(d["middle"]), d["rows"][OURS_1_TO_1 + "/threads:2"]["ns"],
            d["peers"][0]["ours_by_one_to_one"]) for d in written["distances"]]
          == [(59, 10.0, 10 / 23), (211, 55.0, 55 / 104)], json.dumps(written["distances"]))

    apart = one_to_one(near(10.0, 9), far(104.0, 9))
    out = of(apart)
    check("what was never measured at one distance is not compared",
          "not measured" in line(out, "T13", "") and "PASS" not in line(out, "T13", ""), out)
    check("and the report says so",
          f"\nNot measured at 59 ns: {PEERS_1_TO_1}/threads:2.\n" in out and
          f"\nNot measured at 211 ns: {OURS_1_TO_1}/threads:2.\n" in out, out)

    changed = [(1000.0, 59.0, 212.0), (1.0, 212.0, 59.0)] * 5
    out = of(one_to_one(near(10.0, 9) + changed, near(20.0, 9)))
    check("a repetition in whose middle the distance changed does not count",
          line(out, "T13", "").endswith(": 0.5, target at most 0.8 (the fastest is a queue)") and
          "\n10 of 28 repetitions of two threads do not count: the distance changed while they ran.\n"
          in out, out)
    out = of(one_to_one(near(10.0, 9) + [(1000.0, 600.0, 600.0)] * 2, near(20.0, 9)))
    check("nor does one at a distance that hardly occurs",
          ": 0.5, target" in line(out, "T13", "") and
          "\n2 of 20 repetitions of two threads do not count: their distance is too rare" in out, out)
    out = of(one_to_one([(10.0, 59.0, 212.0)] * 9, [(20.0, 59.0, 212.0)] * 9))
    check("if no repetition counts nothing is compared",
          "not measured" in line(out, "T13", "") and "\n18 of 18 repetitions of two threads" in out, out)
    once = one_to_one(near(10.0, 1), near(20.0, 1))
    check("one repetition suffices if one was asked for", ": 0.5, target" in line(of(once), "T13", ""))
    spread = [(10.0, trip, trip) for trip in (50, 53, 56, 59, 62, 65, 68, 71)]
    check("a distance that varies a little is one",
          "back in 60 ns (16 repetitions)\n" in of(one_to_one(spread, spread)), of(one_to_one(spread, spread)))

    slow = [(time, 59.0, 59.0) for time in [10.0] * 5 + [55.0] * 4]
    out = of(one_to_one(slow, near(23.0, 9)))
    check("a queue in two modes at one distance is compared by its slow one with one that has one",
          ": 2.39, target at most 0.8" in line(out, "T13", "ours in two modes: 10 and 55 ns"), out)
    check("and the modes are reported beside its median",
          f"\n{OURS_1_TO_1}/threads:2: two modes at one distance, 10.00 and 55.00 ns\n" in out, out)
    both = [(time, 59.0, 59.0) for time in [23.0] * 4 + [104.0] * 5]
    out = of(one_to_one(slow, both))
    check("if both have two, quick is compared with quick and slow with slow",
          ": 0.529, target" in line(out, "T13", ""), out)

    trips = (probed(3, "floor/ping_pong", near(60.0, 9), "", True),
             probed(4, "q/round_trip", near(240.0, 9), "floor/ping_pong/threads:2", True))
    out = of(one_to_one(near(10.0, 9), near(20.0, 9), *trips))
    check("a round trip stands beside the throughput, by a bare line's",
          any(l.split()[:7] == ["a", "queue", "20", "(2.00)", "0.50", "240", "(4.00)"]
              for l in out.splitlines()), out)

    recorder = of_program(
        one(FLOOR, [10.0] * 9), one(LANE, [10.0] * 9, FLOOR, 1),
        probed(2, LANE, near(10.5, 5) + far(13.3, 4), FLOOR + "/threads:2"),
        probed(3, FLOOR, near(10.0, 4) + far(10.0, 5)),
        probed(4, "recorder/exact_clock/one_each", near(10.2, 4) + far(10.2, 5)))
    out = run(report, write("recorder.json", recorder))[1]
    check("so are a recorder's threads", line(out, "T9", "").endswith(
        ": 1.3, target at most 1.1: short by 0.204 (processors 211 ns apart; 1.03 at 59 ns)"), out)
    check("what one thread does is not in the other distance's table",
          out.count("\n" + LANE + " ") == 1 and out.count("\n" + LANE + "/threads:2 ") == 2, out)
    check("a target that two threads have no part in is judged once",
          line(out, "T1", "").endswith(": 1, target at most 1.05"), out)


def check_readme(script, write):
    report = write("speed.json", {
        "about": ["Test 1000"], "busy": False, "rows": {}, "instructions": {},
        "targets": [{"id": "T1", "what": "", "figure": 1.041, "target": 1.05, "at_least": False,
                     "note": "", "state": "PASS"},
                    {"id": "T3", "what": "", "figure": None, "target": 0.25, "at_least": False,
                     "note": "", "state": "not measured"},
                    {"id": "T4", "what": "", "figure": 1.09, "target": 1.03, "at_least": False,
                     "note": "the clock: 1.08, out of reach on this processor", "state": "short"}],
        "peers": []})
    first = write("README.md", "above\n<!-- speed:begin -->\nold\n<!-- speed:end -->\nbelow\n")
    second = write("bench.md", "<!-- speed-tables:begin -->\nold\n<!-- speed-tables:end -->\nbelow\n")
    status, _, err = run(script, report, first, second)
    with open(first, encoding="utf-8") as file:
        sentence = file.read()
    with open(second, encoding="utf-8") as file:
        tables = file.read()
    check("the pages' sections are replaced, and nothing else",
          status == 0 and sentence.startswith("above\n<!-- speed:begin -->\nOne record") and
          sentence.endswith("<!-- speed:end -->\nbelow\n") and tables.endswith("-->\nbelow\n") and
          "old" not in sentence + tables, sentence + tables + err)
    check("the sentence has the measured figure, and the tables are in the other page",
          "1.04 times" in sentence and "| 1.04 |" not in sentence and
          "| 1.04 | at most 1.05 |" in tables, sentence + tables)
    check("what was not measured is omitted", "0.25" not in tables, tables)
    check("a target out of reach has its reason",
          "| 1.09 (the clock: 1.08, out of reach on this processor) | at most 1.03 |" in tables, tables)
    status, _, err = run(script, report, first)
    check("a section that is in no page is an error",
          status == 1 and "no <!-- speed-tables:begin -->" in err, err)
    status, _, err = run(script, report, write("other.md", "no section\n"))
    check("a page without the section is left alone", status == 1 and "no <!-- speed:begin" in err, err)
    status, _, err = run(script, write("bad.json", "[]"))
    check("a report that is none is an error", status == 1 and "bad.json" in err, err)


def check_runs(report, program):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, os.path.basename(program) + ".json")
        done = subprocess.run([program, "--benchmark_min_time=1e-9", f"--benchmark_out={path}",
                               "--benchmark_out_format=json"], capture_output=True, text=True,
                              check=False, env={**os.environ, "BENCH_TRY": "1"})
        check(f"{os.path.basename(program)} runs", done.returncode == 0, done.stdout + done.stderr)
        status, out, err = run(report, path)
        check("its report is made", status == 0, err)
        with open(path, encoding="utf-8") as file:
            entries = json.load(file)["benchmarks"]
        unwatched = sorted(e["run_name"] for e in entries
                           if e["threads"] <= os.cpu_count() and not e.get("adds_ns", 0) > 0
                           and not e["run_name"].endswith("/iterations:1"))
        check("it is told of each whether the processors were calm", not unwatched,
              "\n".join(unwatched))
        names = {e["run_name"] for e in entries}
        def shown(name):  # as the report has it
            return name.removesuffix("/iterations:1").replace("/real_time", "")

        missing = sorted(n for n in names if f"\n{shown(n)}" not in out)
        check("all of it is in the report", not missing, "\n".join(missing) + "\n" + out)
        known = names | {shown(n) for n in names} | {""}
        astray = sorted(e["run_name"] for e in entries if e.get("label", "") not in known)
        check("what times are divided by is measured in the same run", not astray,
              "\n".join(astray))
        check("nothing is measured twice under one name", len(names) == len(entries),
              "\n".join(sorted(e["run_name"] for e in entries)))


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "report":
        check_report(arguments[1])
    elif len(arguments) > 2 and arguments[0] == "runs":
        for program in arguments[2:]:
            check_runs(arguments[1], program)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
