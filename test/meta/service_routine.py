#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""Checks that a chapter which cites code and tests cites what is there.

    service_routine.py README TESTS

README has the chapter CHAPTER: a numbered list of the seven rules of the manual. Each rule cites

    `code`, `code` and `code` in [name](path)           lines of a header, comments left out
    `test_case` and `test_case` in [name](path_test.cpp)  cases of a test

with paths from README's folder. Each rule must have both, each citation must stand in its file, and each
test must be in TESTS, the CMakeLists.txt that runs them. How the lines are broken does not matter.
"""
import os
import re
import sys

CHAPTER = "## A DS interrupt service routine, step by step"
RULES = 7
CITED = re.compile(r"((?:`[^`]+`(?:,?\s+and\s+|,\s+))*`[^`]+`)\s+in\s+\[[^\]]*\]\(([^)\s]+)\)")
QUOTED = re.compile(r"`([^`]+)`")
CASE = re.compile(r"BOOST_AUTO_TEST_CASE(?:_TEMPLATE)?\(\s*(\w+)")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def packed(text):
    """Without white space, which formatters move."""
    return re.sub(r"\s+", "", text)


def rules_of(text):
    """The rules as (number, text)."""
    at = text.find(CHAPTER + "\n")
    if at < 0:
        return []
    chapter = text[at + len(CHAPTER):].split("\n## ", 1)[0]
    parts = re.split(r"^(\d+)\. ", chapter, flags=re.MULTILINE)
    return list(zip(map(int, parts[1::2]), (re.split(r"\n\n", part, maxsplit=1)[0] for part in parts[2::2])))


def check(readme, tests):
    with open(readme, encoding="utf-8") as file:
        rules = rules_of(file.read())
    with open(tests, encoding="utf-8") as file:
        run = file.read()
    faults = []
    if [number for number, _ in rules] != list(range(1, RULES + 1)):
        faults.append(f"{readme}: '{CHAPTER}' has the rules {[n for n, _ in rules]}, not 1 to {RULES}")
    folder, number_of_citations = os.path.dirname(os.path.abspath(readme)), 0
    for number, text in rules:
        kinds = set()
        for quotes, path in CITED.findall(text):
            file_name = os.path.normpath(os.path.join(folder, path))
            where = f"{readme}: rule {number}: {path}"
            if not os.path.isfile(file_name):
                faults.append(f"{where}: no such file")
                continue
            with open(file_name, encoding="utf-8") as file:
                source = file.read()
            is_test = path.endswith("_test.cpp")
            kinds.add(is_test)
            known = CASE.findall(source) if is_test else packed(COMMENT.sub("", source))
            for quote in QUOTED.findall(quotes):
                number_of_citations += 1
                if (quote if is_test else packed(quote)) not in known:
                    faults.append(f"{where}: there is no {'test case' if is_test else 'code'} '{quote}'")
            if is_test and not re.search(r"(?<![\w/])" + re.escape(run_name(file_name, tests)) + r"(?!\w)",
                                         run):
                faults.append(f"{where}: {tests} does not run it")
        if False not in kinds:
            faults.append(f"{readme}: rule {number} cites no code")
        if True not in kinds:
            faults.append(f"{readme}: rule {number} cites no test")
    return faults, number_of_citations


def run_name(path, tests):
    """A test's name in the CMakeLists.txt, which may leave out the ending."""
    name = os.path.relpath(path, os.path.dirname(os.path.abspath(tests)))
    return name[:-len(".cpp")]


def main(arguments):
    faults, count = check(*arguments)
    for fault in faults:
        print(fault)
    print(f"{count} citations, {len(faults)} faults")
    return 1 if faults or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
