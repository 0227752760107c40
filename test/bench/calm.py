#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""Which repetitions count, and that they alone do.

    calm.py CALM REPORT   CALM is the project's script of this name, REPORT makes the tables
"""
import json
import os
import re
import sys
import tempfile

from report import FLOOR, LANE, check, entry, line, of_program, run


def repeated(family, name, timed, label="", threads=1):
    """`timed`: pairs of a time and what the adds took."""
    return [{**entry(family, name, time, label, threads), "adds_ns": adds,
             "repetitions": len(timed)} for time, adds in timed]


CALM, SHARED = [(10.0, 1.0)] * 9, [(99.0, 1.9)] * 5


def check_report(report, write):
    def of(*entries):
        return run(report, write("recorder.json", of_program(*entries)))

    status, out, err = of(repeated(0, FLOOR, CALM), repeated(1, LANE, SHARED + CALM, FLOOR))
    check("what was measured beside others does not count",
          status == 0 and "exact clock, by clock and plain store: 1, target" in line(out, "T1", ""),
          out + err)
    check("and is told",
          "\n5 of 23 repetitions do not count, for something else used the same cores" in out, out)
    check("no benchmark is called disturbed that has enough calm repetitions",
          "calmest" not in out, out)

    slower = [(20.0, 1.0)] * 9
    _, out, _ = of(repeated(0, FLOOR, CALM), repeated(1, LANE, SHARED + slower, FLOOR))
    check("calm repetitions count whatever they took", ": 2, target" in line(out, "T1", ""), out)

    few = [(30.0, 1.0)] * 4 + [(40.0, 1.2)] * 5 + [(5.0, 1.9)] * 12
    _, out, _ = of(repeated(0, FLOOR, CALM), repeated(1, LANE, few, FLOOR))
    check("where too few are calm the calmest count", ": 4, target" in line(out, "T1", ""), out)
    check("and that is told, too",
          "in most repetitions of 1 of 2 benchmarks; their calmest are taken: " + LANE in out, out)

    together = [(10.0, 1.15)] * 9
    _, out, _ = of(repeated(0, FLOOR, CALM), repeated(1, LANE + "/threads:2", together, "", 2))
    check("two threads are measured by the least of two", "calmest" not in out, out)
    _, out, _ = of(repeated(0, FLOOR, CALM), repeated(1, LANE, together, FLOOR))
    check("and one by the least of one", "their calmest are taken: " + LANE in out, out)

    first = write("floor.json", of_program(repeated(0, FLOOR, CALM)))
    other = write("other.json", of_program(repeated(0, "other", [(10.0, 1.5)] * 9)))
    _, out, _ = run(report, first, other)
    check("what is least holds for all programs of a run", "calmest are taken: other." in out, out)

    late = [{**e, "queued": 0.3}
            for e in repeated(1, LANE + "/threads:2", [(5.0, 1.0)] * 5, "", 2)]
    met = repeated(1, LANE + "/threads:2", CALM, "", 2)
    _, out, _ = of(repeated(0, FLOOR, CALM), [*late, *met])
    check("threads that did not run together do not count",
          "\n5 of 23 repetitions do not count" in out and
          line(out, LANE + "/threads:2", "").split()[1] == "10.00", out)
    locked = [{**e, "real_time": e["real_time"] * 1.5, "queued": 0.01} for e in met]
    _, out, _ = of(repeated(0, FLOOR, CALM), locked)
    check("but threads that waited for a lock do", "something else" not in out, out)

    not_looked_at = [entry(1, "threads/exact_clock", 10.0, FLOOR, 1000)] * 9
    _, out, _ = of(repeated(0, FLOOR, CALM), not_looked_at)
    check("what is not looked at counts", "count" not in out and "calmest" not in out, out)


def check_script(calm, write):
    def lacking(*files):
        status, out, err = run(calm, "lacking", *files)
        check("lacking ends well", status == 0, err)
        return out.strip()

    odd = "size/a+b(1)|c/1.5KiB"
    content = of_program(repeated(0, FLOOR, CALM), repeated(1, odd, SHARED + CALM[1:]),
                         repeated(2, "size/x", [(1.0, 1.05)] * 9))
    path = write("size.json", content)
    expression = lacking(path)
    check("what has too few is named, and nothing else",
          [name for name in (FLOOR, odd, "size/x", odd + "0", "size/aab1") if
           re.search(expression, name)] == [odd], expression)
    check("nothing lacks, nothing is named",
          lacking(write("calm.json", of_program(repeated(0, FLOOR, CALM)))) == "")
    once = of_program(repeated(0, FLOOR, CALM[:3]))
    check("fewer suffice where fewer were asked for", lacking(write("once.json", once)) == "")
    least = write("least.json", of_program(repeated(0, FLOOR, [(1.0, 0.5)])))
    check("other programs say what is calm", "size/x" in lacking(path, least))

    def at(distance, adds=1.0):
        return {"adds_ns": adds, "ping_before_ns": distance, "ping_after_ns": distance}

    two = "ring/threads:2"
    apart = [{**e, **at(212.0)} for e in repeated(1, two, CALM, "", 2)]
    near = [{**e, **at(59.0)} for e in repeated(0, "queue/threads:2", CALM + CALM, "", 2)]
    check("repetitions at another distance than the most frequent one are not enough",
          re.search(lacking(write("far.json", of_program(near, apart))) or "nothing", two))
    close = [{**e, **at(60.0)} for e in repeated(1, two, CALM, "", 2)]
    check("but at that distance they are",
          lacking(write("near.json", of_program(near, apart + close))) == "")
    late = [{**e, "queued": 0.3} for e in repeated(1, two, CALM, "", 2)]
    check("nor are those in which the threads were not together",
          re.search(lacking(write("late.json", of_program(late))) or "nothing", two))

    more = write("more.json", of_program(repeated(0, odd, CALM), repeated(1, "unknown", CALM)))
    status, _, err = run(calm, "join", path, more)
    with open(path, encoding="utf-8") as file:
        joined = json.load(file)["benchmarks"]
    of_odd = [e for e in joined if e["name"] == odd]
    check("what is measured again is added to its own",
          status == 0 and len(of_odd) == 22 and {e["family_index"] for e in of_odd} == {1} and
          not any(e["name"] == "unknown" for e in joined), err)
    check("then nothing lacks any more", lacking(path) == "")

    with open(path, encoding="utf-8") as file:
        before = file.read()
    for what, bad in (("that is none", write("bad.json", "[]")),
                      ("that is not there", os.path.join(os.path.dirname(path), "nowhere.json"))):
        status, _, err = run(calm, "join", path, bad)
        with open(path, encoding="utf-8") as file:
            check(f"a file {what} is an error that names it, and changes nothing",
                  status == 2 and os.path.basename(bad) in err and file.read() == before, err)
    status, _, err = run(calm, "lacking")
    check("too few arguments are an error", status == 2 and "calm.py lacking FILE" in err, err)


def main(arguments):
    if len(arguments) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        def write(name, content):
            where = os.path.join(folder, name)
            with open(where, "w", encoding="utf-8") as file:
                file.write(content if isinstance(content, str) else json.dumps(content))
            return where

        check_report(arguments[1], write)
        check_script(arguments[0], write)


if __name__ == "__main__":
    main(sys.argv[1:])
