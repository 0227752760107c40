#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""The page about writing a policy has the requirements that the headers document, and quotes the
example program as it is.

    page.py PAGE EXAMPLE

Each section of the page that has tables links to its header first, relative to the page.
"""
import os
import re
import sys


def rows(lines):
    """The rows of tables, as tuples of cells. A row with an empty first cell continues another."""
    found = []
    for line in lines:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if set("".join(cells)) <= set("-"):
            found.pop()  # the heads of the columns
        elif cells[0] == "" and found:
            found[-1] = [" ".join(pair).strip() for pair in zip(found[-1], cells)]
        else:
            found.append(cells)
    return sorted(map(tuple, found))


def main(page, example):
    faults, requirements = [], 0
    with open(page, encoding="utf-8") as file:
        text = file.read()
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        title, lines = section.splitlines()[0], section.splitlines()
        on_page = rows([line for line in lines if line.startswith("|")])
        if not on_page:
            continue
        header = re.search(r"\]\(([^)]*\.hpp)\)", section)[1]
        with open(os.path.join(os.path.dirname(page), header), encoding="utf-8") as file:
            in_header = rows([line[4:] for line in file if line.startswith("/// |")])
        requirements += len(in_header)
        for what, one, other in (("is missing", in_header, on_page),
                                 ("is not in the header", on_page, in_header)):
            faults += [f"{title}: {what}: | {' | '.join(row)} |" for row in one if row not in other]
    with open(example, encoding="utf-8") as file:
        program = file.read()
    quoted = program[program.index("#include"):]
    if f"```cpp\n{quoted}```" not in text:
        faults.append(f"the page does not quote {example}, from its first #include on")
    for fault in faults:
        print(fault)
    print(f"{requirements} requirements")
    return 1 if faults or requirements < 40 else 0


sys.exit(main(*sys.argv[1:]))
