#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""Checks that no program says that nothing is missing unless counts say so that a test has seen.

    absences.py ROOT

A text in examples/ or include/ that says `none`, `nothing` or the like must be one of:
    // absent: COUNT, COUNT (FOLDER/TEST)    on the line before or up to three lines above
    // no count: WHY                          on the same line or up to two lines above
Each COUNT is a name in the sources of the same program. The test has for each of them a case in which it
is not zero and the program does not say so, marked
    // present: COUNT, COUNT
"""
import os
import re
import sys

TEXT = re.compile(r'"((?:\\.|[^"\\])*)"')
CLAIM = re.compile(r"^\W*(?:(?:lost|gaps|missing)\W+)?(?:none|nothing|nothing (?:is )?(?:lost|missing)"
                   r"|no (?:gaps?|loss|losses)|0 lost)\W*$", re.I)
ABSENT = re.compile(r"// absent: ((?:\w+(?:, )?)+)")
TEST = re.compile(r"\(([a-z]+(?:/\w+)+)\)")
PRESENT = re.compile(r"// present: (\w+(?:, \w+)*)")


def sources(root, folders):
    for folder in folders:
        for where, _, names in os.walk(os.path.join(root, folder)):
            for name in sorted(names):
                if name.endswith((".cpp", ".hpp")):
                    path = os.path.join(where, name)
                    with open(path, encoding="utf-8") as file:
                        yield os.path.relpath(path, root), file.read().splitlines()


def program_of(path):
    return os.path.join(*path.split(os.sep)[:2])


def claims(lines):
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith(("//", "#include")):
            continue
        if any(CLAIM.match(text) for text in TEXT.findall(line)):
            yield number


def check(root):
    words, found = {}, list(sources(root, ("examples", "include")))
    for path, lines in found:
        words.setdefault(program_of(path), set()).update(re.findall(r"\w+", "\n".join(lines)))
    count = 0
    for path, lines in found:
        for number in claims(lines):
            count += 1
            above = lines[max(0, number - 4):number]
            if any("// no count: " in line for line in above[-3:]):
                continue
            said = " ".join(line.strip() for line in above if "//" in line).replace(" // ", " ")
            absent, test = ABSENT.search(said), TEST.search(said)
            if not absent or not test:
                yield f"{path}:{number}: says that there is none without naming counts and a test"
                continue
            try:
                with open(os.path.join(root, "test", f"{test[1]}.cpp"), encoding="utf-8") as file:
                    present = ", ".join(PRESENT.findall(file.read())).split(", ")
            except OSError:
                yield f"{path}:{number}: there is no test {test[1]}"
                continue
            for name in absent[1].rstrip(", ").split(", "):
                if name not in words[program_of(path)]:
                    yield f"{path}:{number}: {name} is no name in {program_of(path)}"
                if name not in present:
                    yield f"{path}:{number}: {test[1]} has no case where {name} is present"
    print(f"{count} texts say that there is none")
    if count == 0:
        yield f"{root}: no such text was found"


def main(arguments):
    if len(arguments) != 1:
        sys.exit(__doc__.strip())
    faults = list(check(arguments[0]))
    for line in faults:
        print(line, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
