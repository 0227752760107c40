#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""The format's page is sufficient to read every golden trace, and its example is a file's bytes.

    page_test.py TRACE_REDUCE GOLDEN PAGE

page_reader.py, which was written from the page, is compared with trace-reduce, record by record.
"""
import glob
import gzip
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
from collections import Counter

sys.dont_write_bytecode = True  # next to the sources
import page_reader  # noqa: E402

EXAMPLE = os.path.join("2", "sales.trace.gz")
# What trace-reduce derives from other records, or from the dictionary only for display.
DERIVED = ("process", "duration_ticks", "duration_ns", "duration_interval", "latest_ticks",
           "latest_ns", "units")
# A line of a dump, and a row of a table about one.
BYTES = (re.compile(r"^([0-9a-f]{8})  ((?:[0-9a-f]{2} ?)+)$"),
         re.compile(r"^\| `0x([0-9a-f]+)` \| `([0-9a-f ]+)` \|"))
FAULTS = []


def check(what, wanted, found):
    if wanted != found:
        FAULTS.append(f"{what}:\n  wanted {wanted!r}\n  found  {found!r}")


def by_trace_reduce(program, raw):
    with tempfile.NamedTemporaryFile() as file:
        file.write(raw)
        file.flush()
        # With the second name, references are not unpacked.
        done = subprocess.run([program, file.name, "--format", "json", "--event", "*", "--event",
                               "references"], capture_output=True, check=True, timeout=60)
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


def is_near(one, other, rounding=0):
    """Equal, but for the digits of a 32-bit float and for rounding."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_near(one[key], other[key]) for key in one)
    if isinstance(one, float) and isinstance(other, float):
        return struct.pack("<f", one) == struct.pack("<f", other) or one == other
    if rounding and isinstance(one, int) and isinstance(other, int):
        return abs(one - other) <= rounding
    return one == other


def compare(name, raw, program):
    places = {True: {}, False: {}}
    losses = {True: Counter(), False: Counter()}
    for is_page, items in ((True, page_reader.Trace(raw).items()),
                           (False, by_trace_reduce(program, raw))):
        for item in items:
            if item["kind"] == "loss":
                losses[is_page][item["lane"], item["cause"]] += item["count"]
            else:
                places[is_page][item["lane"], item["position"]] = item
    check(f"{name}: losses", losses[False], losses[True])
    check(f"{name}: records", sorted(places[False]), sorted(places[True]))
    for place, wanted in places[False].items():
        found = places[True].get(place, {})
        for key in (wanted.keys() | found.keys()) - set(DERIVED):
            one, other = wanted.get(key), found.get(key)
            if not is_near(one, other, rounding=1 if key == "time_ns" else 0):
                check(f"{name}: {place}: {key}", one, other)
    return len(places[False])


def check_example(page, raw):
    """The dumps on the page, and the bytes in its tables."""
    count = 0
    for line in page.splitlines():
        for pattern in BYTES:
            if found := pattern.match(line):
                at, wanted = int(found[1], 16), bytes.fromhex(found[2])
                check(f"the page: {line}", raw[at:at + len(wanted)].hex(" "), wanted.hex(" "))
                count += len(wanted)
    check("the page has the example", True, count > 400)
    return count


def main(program, golden, page):
    records = 0
    for packed in sorted(glob.glob(os.path.join(golden, "*", "*.trace.gz"))):
        with gzip.open(packed) as file:
            records += compare(os.path.relpath(packed, golden), file.read(), program)
    with open(page, encoding="utf-8") as text, gzip.open(os.path.join(golden, EXAMPLE)) as file:
        count = check_example(text.read(), file.read())
    for fault in FAULTS[:10]:
        print(fault)
    print(f"{records} records, {count} bytes on the page, {len(FAULTS)} faults")
    return 1 if FAULTS else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
