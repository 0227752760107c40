#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""The habits of the sources that a program can check.

    habits.py CHECK ROOT   reads ROOT/include/trace_ring; prints `file:line: rule` for each fault

CHECK is includes, headers, order, labels, relaxed or tests. `tests` reads ROOT/test: each source with
test cases is in one list of tests, once, so ctest runs each case once.

includes: what each folder may include, and that neither folders, to the last subfolder, nor files
include one another in a circle. A header that holds the parts of a folder together (x.hpp next to x/)
is of that folder.
"""
import os
import re
import sys

# --- What each folder may include, except itself -------------------------------------------------
ROOT = "the root headers"
POLICIES = ("policy/claim", "policy/full", "policy/notify", "policy/storage", "policy/clock",
            "policy/gate")
MAY_INCLUDE = {
    ROOT: set(),
    "record": {ROOT},
    **{family: {ROOT} for family in POLICIES},
    "format": {ROOT, "record"},
    "ring": {ROOT, "record", *POLICIES, "format"},
    "recorder": {ROOT, "record", *POLICIES, "format", "ring"},
    "point": {ROOT, "record"},
    "drain": {ROOT, "record", "policy/notify"},
    # A reader knows the format of the bytes, and nothing about the code that writes them.
    "reduce": {ROOT, "record", "format"},
    "exporter": {ROOT, "record", "reduce"},
    "instrument": {ROOT, "record", "format", "policy/clock", "policy/storage", "recorder", "reduce"},
    # The historic designs are made of all that, as a user's own system would be.
    "das": {ROOT, "record", *POLICIES, "format", "ring", "recorder", "drain", "reduce"},
    "cptrap": {ROOT, "record", *POLICIES, "format", "ring", "recorder", "drain", "reduce", "das"},
    "x86": {ROOT, "record", "policy/storage", "policy/notify"},
}
# What programs include, each for a use. Together they reach every header.
UMBRELLAS = ("trace_ring.hpp", "draining.hpp", "control.hpp", "snapshots.hpp", "per_cpu.hpp",
             "rings.hpp", "reading.hpp", "exporting.hpp", "point.hpp", "instrument.hpp", "das.hpp",
             "cptrap.hpp", "x86.hpp")
SEAM = "atomic.hpp"  # the one header that knows Boost, and memory orders
LONGEST = 500
WIDEST = 100  # columns, those of comments that the formatter leaves alone included

# What only the seam to the atomics may name.
OTHER_ATOMICS = re.compile(r"\bstd::atomic|\bmemory_order\w*::|\bmemory_order_\w+|\bboost::|"
                           r"\b__atomic_|\b__sync_|#\s*include\s*<(?:atomic|stdatomic\.h)>")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def headers(root):
    """Each header as (path from ROOT/include/trace_ring, its lines), sorted; pages are no headers."""
    top = os.path.join(root, "include", "trace_ring")
    found = []
    for folder, _, names in os.walk(top):
        for name in names:
            if name.endswith(".md"):
                continue
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as file:
                found.append((os.path.relpath(path, top), file.read().splitlines()))
    return sorted(found)


def fault(path, number, rule):
    return f"include/trace_ring/{path}:{number}: {rule}"


def folder_of(path):
    """The folder whose rule a header is under: a folder within one that has a rule obeys it, too."""
    folder = os.path.dirname(path)
    while folder and folder not in MAY_INCLUDE:
        folder = os.path.dirname(folder)
    return folder or os.path.dirname(path) or ROOT


def included(lines):
    """The includes as (line number, angle bracket or quote, name)."""
    for number, line in enumerate(lines, 1):
        if match := INCLUDE.match(line):
            yield number, match[1], match[2]


def check_include(path, bracket, name):
    """The rule that one include breaks, or nothing."""
    if bracket == '"':
        return f'"{name}": headers are included by their full name, as <trace_ring/...>'
    if name.startswith("boost/") and path != SEAM:
        return f"<{name}>: only {SEAM} includes Boost"
    if not name.startswith("trace_ring/"):
        return ""
    target = name.removeprefix("trace_ring/")
    source, aim = folder_of(path), folder_of(target)
    if target in UMBRELLAS:
        return f"<{name}>: a header includes what it uses, not what programs include"
    if path in UMBRELLAS:
        return f"<{name}>: only x86.hpp reaches x86" if aim == "x86" and path != "x86.hpp" else ""
    if source not in MAY_INCLUDE:
        return f"{source}: a folder without a rule"
    if aim == source or aim in MAY_INCLUDE[source]:
        return ""
    allowed = ", ".join(sorted(MAY_INCLUDE[source])) or "the standard library and Boost"
    return f"<{name}>: {source} may include only {allowed}"


def check_includes(root):
    found = headers(root)
    for path, lines in found:
        for number, bracket, name in included(lines):
            if rule := check_include(path, bracket, name):
                yield fault(path, number, rule)
    yield from check_circles(found)


def folders_included(found):
    """For each folder those that it includes, each with one place where it does: (path, line)."""
    inside = {os.path.dirname(path) for path, _ in found}

    def of(path):
        return path[:-4] if path[:-4] in inside else os.path.dirname(path)

    edges = {}
    for path, lines in found:
        if path in UMBRELLAS:
            continue
        for number, _, name in included(lines):
            target = name.removeprefix("trace_ring/")
            if target != name and of(target) not in ("", of(path)):
                edges.setdefault(of(path), {}).setdefault(of(target), (path, number))
    return edges


def files_included(found):
    """For each header those that it includes, each with the place where it does: (path, line)."""
    edges = {}
    for path, lines in found:
        for number, _, name in included(lines):
            target = name.removeprefix("trace_ring/")
            if target != name:
                edges.setdefault(path, {}).setdefault(target, (path, number))
    return edges


def reached_from(start, edges):
    """What a folder or file includes, and by which way: {one: the one before it}."""
    before, todo = {}, [start]
    for one in todo:
        for other in edges.get(one, ()):
            if other not in before:
                before[other] = one
                todo.append(other)
    return before


def circles(edges):
    """Ways from a folder or file to itself, as lists; each is part of at most one of them."""
    reported = set()
    for start in sorted(edges):
        before = reached_from(start, edges)
        if start not in before or start in reported:
            continue
        way = [start]
        while len(way) == 1 or way[0] != start:
            way.insert(0, before[way[0]])
        reported.update(way)
        yield way


def check_circles(found):
    for what, edges in (("folders", folders_included(found)), ("files", files_included(found))):
        for way in circles(edges):
            path, number = edges[way[0]][way[1]]
            yield fault(path, number, f"{what} include one another: {' -> '.join(way)}")


# --- What every header looks like ----------------------------------------------------------------
TABLE = re.compile(r"\s*/// \|")


def broken_rows(lines):
    """The rows of tables in documentation that have not the columns of the first: reflowed, say."""
    columns = None
    for number, line in enumerate(lines, 1):
        if not TABLE.match(line):
            columns = None
            continue
        bars = re.sub(r"`[^`]*`", "", line).replace("\\|", "").count("|")
        columns = columns or bars
        if bars != columns or not line.endswith("|"):
            yield number


def check_headers(root):
    found = headers(root)
    for path, lines in found:
        if not re.fullmatch(r"([a-z][a-z0-9_]*/)*[a-z][a-z0-9_]*\.hpp", path):
            yield fault(path, 1, "names are lower case with underscores, and end in .hpp")
        if re.search(r"(^|[/_])(detail|utils?|helpers?|common|misc)[/._]", path):
            yield fault(path, 1, "a helper sits in the header that uses it, in namespace impl")
        if lines[:3] != ["// Copyright the trace_ring authors.",
                         "// Distributed under the Boost Software License, Version 1.0. See LICENSE.",
                         "#pragma once"]:
            yield fault(path, 1, "a header begins with the licence and #pragma once")
        if "/// @file" not in lines:
            yield fault(path, 1, "a header says what it is for: /// @file")
        for number, line in enumerate(lines, 1):
            if path != SEAM and OTHER_ATOMICS.search(code_of(line)):
                yield fault(path, number, f"atomics and Boost come through {SEAM}")
            if len(line) > WIDEST:
                yield fault(path, number, f"over {WIDEST} columns")
        for number in broken_rows(lines):
            yield fault(path, number, "a table's row has not the columns of the table")
        if len(lines) > LONGEST:
            yield fault(path, len(lines), f"over {LONGEST} lines: look for the second idea in it")
    # What no umbrella reaches would be found by nobody.
    inside, reached = dict(found), set()
    todo = [path for path in UMBRELLAS if path in inside]
    while todo:
        path = todo.pop()
        if path in inside and path not in reached:
            reached.add(path)
            todo += [n.removeprefix("trace_ring/") for _, _, n in included(inside[path])]
    for path in sorted(inside.keys() - reached):
        yield fault(path, 1, "none of what programs include reaches it")


# --- Ordering points -----------------------------------------------------------------------------
LABEL = r"[a-z][a-z0-9_]*(?:\.[a-z0-9_]+)*:[A-Z]\d?"
PAIR = re.compile(rf"// order: ({LABEL}) pairs with ({LABEL}(?:, {LABEL})*)(,?)(?=$|[ ;.:)])")
MORE = re.compile(rf"^\s*// ({LABEL}(?:, {LABEL})*)(,?)(?=$|[ ;.:)])")
ORDERED = re.compile(r"(?:^\s*|[(,]\s*)(?:acquire|release|acq_rel|seq_cst)\s*[,)]")
RELAXED = re.compile(r"(?:^\s*|[(,?:]\s*)relaxed\s*[,):]")


def code_of(line):
    """A line without its comment and its strings."""
    return re.sub(r'"(?:\\.|[^"\\])*"', '""', line).split("//")[0]


def pairs(lines):
    """The ordering points as (line number, label, partners); no label where it is malformed."""
    for number, line in enumerate(lines, 1):
        if "// order:" not in line:
            continue
        match = PAIR.search(line)
        if not match:
            yield number, "", []
            continue
        partners, comma, following = match[2].split(", "), match[3], number
        while comma:
            match_more = MORE.match(lines[following]) if following < len(lines) else None
            if not match_more:
                yield number, "", []
                break
            partners += match_more[1].split(", ")
            comma, following = match_more[2], following + 1
        yield number, match[1], partners


def check_order(root):
    points = {}
    places = [(path, number, label, partners) for path, lines in headers(root)
              for number, label, partners in pairs(lines)]
    if not places:
        yield f"{root}: no ordering points"
    for path, number, label, partners in places:
        if not label:
            yield fault(path, number, "write '// order: name:A pairs with name:B[, name:C]'")
        elif label in points:
            yield fault(path, number, f"{label} is the label of another place, too")
        else:
            points[label] = partners
    for path, number, label, partners in places:
        for partner in partners:
            if partner not in points:
                yield fault(path, number, f"{label} pairs with {partner}, which is nowhere")
            elif label not in points[partner]:
                yield fault(path, number, f"{partner} does not say that it pairs with {label}")


def check_labels(root):
    for path, lines in headers(root):
        if path == SEAM:
            continue  # which only names the orders
        for number, line in enumerate(lines, 1):
            code = code_of(line)
            if ORDERED.search(code) and "signal_fence" not in code:
                if not has_comment_near(lines, number, ORDERED, "// order:", reach=4):
                    yield fault(path, number, "an ordering point without a label")


# A comment with these words is for the rest of its block.
TO_THE_END = "relaxed, to the end"


def speaks_to_the_end(lines, number):
    """Whether a comment above says so, in the block of the line or in one around it. Sources are
    indented by their braces, so a block ends where a line is indented less than the comment."""
    least = indent(lines[number - 1])
    for line in reversed(lines[:number - 1]):
        if not line or line.startswith("#"):
            continue  # the preprocessor's lines are indented by nothing
        if TO_THE_END in line.partition("//")[2] and indent(line) <= least:
            return True
        least = min(least, indent(line))
        if least == 0:
            return False
    return False


def indent(line):
    return len(line) - len(line.lstrip(" "))


def has_comment_near(lines, number, use, comment, reach):
    """Whether `comment` is on the line or among the `reach` above it, where lines with a `use` of
    their own do not count: one comment may speak for a run of them."""
    if comment in lines[number - 1]:
        return True
    for line in reversed(lines[:number - 1]):
        if comment in line:
            return True
        if not use.search(code_of(line)):
            reach -= 1
        if reach == 0:
            return False
    return False


def check_relaxed(root):
    for path, lines in headers(root):
        if path == SEAM:
            continue
        for number, line in enumerate(lines, 1):
            if RELAXED.search(code_of(line)):
                if not (has_comment_near(lines, number, RELAXED, "//", reach=2)
                        or speaks_to_the_end(lines, number)):
                    yield fault(path, number, "relaxed without a few words why it is enough")


# --- The lists of tests --------------------------------------------------------------------------
CASE = re.compile(r"^BOOST_(?:AUTO|DATA|FIXTURE)_TEST_CASE", re.M)
SUITE = re.compile(r"^BOOST_AUTO_TEST_SUITE\((\w+)", re.M)
LISTED = re.compile(r"trace_ring_test\(([\w/]+)([^()]*)\)")


def check_tests(root):
    programs = {}  # of each listed source: those that have it
    for path, text in files(root, "CMakeLists.txt"):
        for entry, words in LISTED.findall(text):
            program = re.search(r"\bIN (\w+)", words) or [entry, entry]
            for word in [entry, *words.split()]:
                source = os.path.normpath(os.path.join(os.path.dirname(path), word))
                programs.setdefault(source.removesuffix(".cpp") + ".cpp", []).append(program[1])
    suites = {}
    for path, text in files(root, ".cpp"):
        if not CASE.search(text):
            continue
        its = programs.get(path, [])
        if len(its) != 1:
            yield f"{path}: in {len(its)} lists of tests, and not in one"
        # Boost.Test joins suites of the same name, and an entry chooses its suites by their source.
        for suite in SUITE.findall(text):
            other = suites.setdefault((*its, suite), path)
            if other != path:
                yield f"{path}: its suite {suite} is also in {other}"
    if not suites:
        yield "no test cases"


def files(root, ending):
    """Each file below ROOT/test whose name has that ending, as (path from ROOT, text)."""
    for folder, _, names in sorted(os.walk(os.path.join(root, "test"))):
        for name in sorted(names):
            if name.endswith(ending):
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as file:
                    yield os.path.relpath(path, root), file.read()


CHECKS = {"includes": check_includes, "headers": check_headers, "order": check_order,
          "labels": check_labels, "relaxed": check_relaxed, "tests": check_tests}


def main(arguments):
    check, root = arguments
    faults = list(CHECKS[check](root))
    found = headers(root)
    if not found:
        faults.append(f"{root}: no headers")
    print(f"{check}: {len(found)} headers, {len(faults)} faults")
    for line in faults:
        print(line)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
