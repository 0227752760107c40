#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""The page about memory order has each ordering point of the headers, once, and how it is checked.

    memory_order.py ROOT [--write]    --write puts the last column of its tables into the page

The column has the explorations that orders.py lists as failing without a point of the row, and a letter
for each reason why others are not listed there.
"""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True  # next to the sources
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "model"))
import orders  # noqa: E402

PAGE = "include/trace_ring/recorder/memory_order.md"
LETTERS = {"plain": "T", "assembly": "A", "not come by": "N", "open": "O", "not tried": "U"}
LABEL = re.compile(r"`([\w.]+:[A-Z])`")


def evidence(labels):
    """The last cell of a row with these labels."""
    caught, letters = {}, set()
    for test, explorations in orders.CAUGHT.items():
        for exploration, names in explorations.items():
            if any(name.split("|")[0] in labels for name in names.split()):
                caught.setdefault(test, []).append(exploration)
    for reason, names in orders.NOT_CAUGHT.items():
        if reason in LETTERS and any(name.split("|")[0] in labels for name in names.split()):
            letters.add(LETTERS[reason])
    parts = [f"`{test}`: " + ", ".join(f"`{each}`" for each in found) for test, found in sorted(caught.items())]
    return "; ".join([*parts, *([", ".join(sorted(letters))] if letters else [])])


def check(root, write):
    path = os.path.join(root, PAGE)
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    there = {name.split()[0] for name, *_ in orders.points(root)}
    faults, seen = [], set()
    for number, line in enumerate(lines):
        if not line.startswith("| ") or not LABEL.search(line):
            continue
        cells = line.strip("|").split(" | ")
        labels = LABEL.findall(cells[0])
        faults += [f"{PAGE}:{number + 1}: {each} is there twice" for each in labels if each in seen]
        faults += [f"{PAGE}:{number + 1}: {each} is no ordering point" for each in labels if each not in there]
        seen.update(labels)
        wanted = evidence(set(labels))
        whole = "| " + " | ".join([cells[0].strip(), cells[1], cells[2].rstrip(" |"), wanted]) + " |"
        if line != whole:
            if write:
                lines[number] = whole
            else:
                faults.append(f"{PAGE}:{number + 1}: the last column is not {wanted}: use --write")
    faults += [f"{PAGE}: no row has {each}" for each in sorted(there - seen)]
    if write:
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines))
    print(f"{len(seen)} of {len(there)} ordering points, {len(faults)} faults")
    return faults


if __name__ == "__main__":
    FOUND = check(sys.argv[1], "--write" in sys.argv)
    print("\n".join(FOUND))
    sys.exit(1 if FOUND else 0)
