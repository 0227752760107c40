#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""The table of promises: what is promised, how it is checked, and how much of that a run did.

    proof.py table RUN LOG...       prints the table, by the lines in what the tests printed; RUN
                                    says of what run
    proof.py page TABLE PAGE        puts a printed table where the page has its own
    proof.py check ROOT             the promises of test/README.md are those that tests report, and the
                                    reverse

A test reports with trace_ring_test::proof (proof.hpp), a script by printing the same line:

    proof: PROMISE: COUNT UNIT

Counts of the same unit are added up, over the tests and over the builds. To add a promise: a line in
PROMISES below, a test that reports it, and the table of a new run in test/README.md.
"""
import os
import re
import sys

# id: what is promised, and how it is checked.
PROMISES = {
    "whole": ("No reader sees an uncommitted record or a mixture of two records",
              "interleavings and weak memory are explored over the unmodified headers; threads race"),
    "accounted": ("Every record is read, or counted as lost with its cause",
                  "the same explorations; after threads have raced, every record must be accounted for"),
    "progress": ("No writer is stuck, and no wake-up is lost",
                 "explorations of every claim, full and notify policy"),
    "death": ("A writer's death costs the record in flight and nothing before it",
              "processes are single-stepped through a record, and killed"),
    "stalled": ("A dead or stalled writer costs others nothing in a shared ring",
                "writers are killed or stopped while they hold a reservation"),
    "silent": ("A writer makes no system call and takes no page fault",
               "system calls and faults are counted, or forbidden by the kernel, while records are written"),
    "order": ("Within a lane, time never goes back", "each record's time is compared with the time before it"),
    "anywhere": ("Recording works in signal handlers, before main, after static destruction, in forked "
                 "children and in libraries that are unloaded",
                 "records are made in each of these places and read back"),
    "hostile": ("No bytes written by others make a reader, session or writer leave its memory or loop forever",
                "fuzz targets with guard pages, under sanitizers; files damaged byte by byte"),
    "refused": ("A resource that the system refuses is an error at set-up or a counted loss",
                "limits, full disks and forbidden system calls are provoked"),
    "wrap": ("Counters wrap correctly", "start positions just before 2^32 and 2^64"),
    "sharing": ("32- and 64-bit processes share one trace", "each word size writes and reads, in one file"),
    "memory": ("No memory access is invalid, and no memory is leaked",
               "valgrind runs test programs, in addition to the sanitizer builds"),
    "clauses": ("The code of a trace clause never accesses memory outside its data",
                "random code that the checker accepts is run by two interpreters"),
    "references": ("A traced program's trace has all of its references, and none made by the tracing",
                   "compared with an independent count of the same hooks; programs are killed or call exec"),
    "delivery": ("A record that trace-ship delivers arrives once, or is reported as lost",
                 "it is killed, its server fails, disks are full, and trace files are replaced"),
    "checks": ("The checks find faults", "faults are planted in the headers, and each must be found"),
    "headers": ("Each header compiles alone, without a finding",
                "each is compiled alone; clang-tidy, cppcheck, include-what-you-use"),
}

LINE = re.compile(r"^proof: ([a-z0-9-]+): (\d+) ([^\n:|]+?)\s*$", re.MULTILINE)
CALL = re.compile(r'\bproof\(\s*"([^"]*)"')  # a test's
PRINTED = re.compile(r"proof: ([a-z0-9-]+): [{$]")  # a script's
PAGE = "test/README.md"
TABLE = ("<!-- proof:begin -->", "<!-- proof:end -->")


def add_up(text, counts):
    """Adds what is reported in `text` to counts[promise][unit]; returns the promises not known."""
    strangers = []
    for promise, count, unit in LINE.findall(text):
        if promise not in PROMISES:
            strangers.append(promise)
            continue
        units = counts.setdefault(promise, {})
        units[unit] = units.get(unit, 0) + int(count)
    return strangers


def table(builds, counts):
    yield from ["| promise | how it is checked | in one run |", "|---|---|---|"]
    for promise, (what, how) in PROMISES.items():
        units = counts.get(promise, {})
        if any(units.values()):
            done = ", ".join(f"{count:,} {unit}" for unit, count in sorted(units.items()) if count)
            yield f"| {what} | {how} | {done} |"
    yield ""
    yield f"Counted in one run of {builds}."


def put(page, text):
    """The page with the table in its place."""
    before, opening, rest = page.partition(TABLE[0])
    _, closing, after = rest.partition(TABLE[1])
    if not opening or not closing:
        raise ValueError(f"the page has no {TABLE[0]} with {TABLE[1]} behind it")
    return f"{before}{opening}\n{text.strip()}\n{closing}{after}"


def reported(root):
    """Where each promise is reported in the tests: {promise: first file}."""
    found = {}
    for folder, _, names in [*sorted(os.walk(os.path.join(root, "test"))),
                             *os.walk(os.path.join(root, ".ci"))]:
        for name in sorted(names):
            path = os.path.join(folder, name)
            if os.path.samefile(path, os.path.abspath(__file__)):
                continue
            if name.endswith((".hpp", ".cpp")):
                pattern = CALL
            elif "." not in name or name.endswith(".py"):
                pattern = PRINTED
            else:
                continue
            with open(path, encoding="utf-8") as file:
                for promise in pattern.findall(file.read()):
                    found.setdefault(promise, os.path.relpath(path, root))
    return found


def check(root):
    """What is wrong with the table."""
    with open(os.path.join(root, PAGE), encoding="utf-8") as file:
        page = file.read()
    opening, closing = page.find(TABLE[0]), page.find(TABLE[1])
    if opening < 0 or closing < opening:
        return [f"{PAGE}: no table of promises"]
    by_text = {f"{what} | {how}": promise for promise, (what, how) in PROMISES.items()}
    told, faults = set(), []
    for row in re.findall(r"^\| (.*) \|$", page[opening:closing], re.MULTILINE)[1:]:
        what, _, done = row.rpartition(" | ")
        if what not in by_text:
            faults.append(f"{PAGE}: no promise of the list: {what}")
        elif not re.fullmatch(r"\d[\d,]* [^|]+", done):
            faults.append(f"{PAGE}: {by_text[what]}: without a count")
        else:
            told.add(by_text[what])
    reports = reported(root)
    for promise in sorted(told - set(reports)):
        faults.append(f"{PAGE}: {promise}: no test reports it")
    for promise, path in sorted(reports.items()):
        if promise not in PROMISES:
            faults.append(f"{path}: {promise}: not in the list of promises")
        elif promise not in told:
            faults.append(f"{path}: {promise}: the table in {PAGE} does not have it: put a new run's there")
    print(f"{len(told)} promises, {len(faults)} faults")
    return faults


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def main(arguments):
    faults = []
    if arguments[0] == "check":
        faults = check(arguments[1])
    elif arguments[0] == "table":
        counts = {}
        for path in arguments[2:]:
            for stranger in add_up(read(path), counts):
                print(f"{path}: {stranger}: not in the list of promises", file=sys.stderr)
        print("\n".join(table(arguments[1], counts)))
    elif arguments[0] == "page":
        text = put(read(arguments[2]), read(arguments[1]))
        with open(arguments[2], "w", encoding="utf-8") as file:
            file.write(text)
    for found in faults:
        print(found)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
