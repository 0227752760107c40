#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""The pages' sections on speed, from the last run.

    readme_speed.py REPORT.JSON [PAGE...]

Replaces the text between `<!-- speed:begin -->` and `<!-- speed:end -->` by one sentence, and the text
between `<!-- speed-tables:begin -->` and `<!-- speed-tables:end -->` by the tables; each of the two must
be in one of the pages. Without a page, prints both. Omits what was not measured.
"""
import json
import re
import sys

import targets

SPEED, TABLES = "speed", "speed-tables"
LINES = (
    ("one record (timestamp and two words), relative to reading the clock and storing 24 bytes",
     "T1", 0),
    ("the same with one clock read per 16 records", "T3", 0),
    ("one record after 64 multiplications, relative to the multiplications alone", "T4", 0),
    ("instructions per record", "T5", 0),
    ("bytes per record in the lane", "T6", 0),
    ("bytes per record in the file, everything included", "T6", 1),
    ("two threads, relative to two that share nothing", "T9", 0),
    ("1,000 threads on all processors, relative to two", "T15", 0),
    ("one producer to one consumer, relative to the fastest peer", "T13", 0),
    ("reading a live trace, relative to memcpy's rate", "T12", 0),
    ("compiling a file that records, relative to `<string>` and `<memory>`", "H1", 0),
    ("compiling the program above, relative to the same", "H2", 0),
    ("compiling 1,000 event types with one site each, relative to the same", "H3", 0),
    ("bytes of code per site", "H4", 0),
)


def begin(name):
    return f"<!-- {name}:begin -->"


def end(name):
    return f"<!-- {name}:end -->"


def show(value):
    return f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.2f}"


def sentence(report):
    for verdict in report["targets"]:
        if verdict["id"] == "T1" and verdict["figure"] is not None:
            yield ("One record with its timestamp and two 64-bit fields costs "
                   f"{show(verdict['figure'])} times reading the clock and storing the same 24 bytes")
            yield f"({report['about'][0]})."


def tables(report):
    by_id = {}
    for verdict in report["targets"]:
        by_id.setdefault(verdict["id"], []).append(verdict)
    yield from ["| measured | figure | target |", "|---|---|---|"]
    for what, target, number in LINES:
        verdicts = by_id.get(target, [])
        if number < len(verdicts) and verdicts[number]["figure"] is not None:
            verdict = verdicts[number]
            bound = "at least" if verdict["at_least"] else "at most"
            remark = f" ({verdict['note']})" if targets.OUT_OF_REACH in verdict["note"] else ""
            yield (f"| {what} | {show(verdict['figure'])}{remark} | "
                   f"{bound} {show(verdict['target'])} |")
    tracers = [p for p in report["peers"] if p["kind"] == "tracer" and p["one_ratio"]]
    if tracers:
        yield ""
        yield ("| tracer | one record, relative to the floor | 2 threads | added after work, ns "
               "| instructions | bytes | when full |")
        yield "|---|---|---|---|---|---|---|"
        for p in sorted(tracers, key=lambda p: p["one_ratio"]):
            cells = [p["name"]] + [show(p[key]) if p[key] is not None else "" for key in
                                   ("one_ratio", "two_ratio", "work", "instructions", "bytes")]
            yield "| " + " | ".join([*cells, p["when_full"]]) + " |"
    yield ""
    yield "; ".join(report["about"][:1]) + ". Run `./bench/run --peers` to measure your machine."


def main(arguments):
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.exit(__doc__.strip())
    try:
        with open(arguments[0], encoding="utf-8") as file:
            report = json.load(file)
        text = {SPEED: "\n".join(sentence(report)), TABLES: "\n".join(tables(report))}
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"readme_speed.py: {arguments[0]}: {type(error).__name__}: {error}")
    if len(arguments) == 1:
        print(f"{text[SPEED]}\n\n{text[TABLES]}".lstrip())
        return
    pages = {}
    for path in arguments[1:]:
        with open(path, encoding="utf-8") as file:
            pages[path] = file.read()
    for name, lines in text.items():
        pattern = re.escape(begin(name)) + r".*?" + re.escape(end(name))
        path = next((path for path, page in pages.items() if re.search(pattern, page, re.S)), None)
        if path is None:
            sys.exit(f"readme_speed.py: {', '.join(pages)}: no {begin(name)} .. {end(name)}")
        whole = f"{begin(name)}\n{lines}\n{end(name)}"
        pages[path] = re.sub(pattern, lambda _, whole=whole: whole, pages[path], flags=re.S)
    for path, page in pages.items():
        with open(path, "w", encoding="utf-8") as file:
            file.write(page)


if __name__ == "__main__":
    main(sys.argv[1:])
