#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""What a person has to read and a compiler has to parse, against goals and limits.

    measures.py ROOT -- COMPILER [FLAG...]

Prints one line for each measure. Exit status 1 if one is over its limit. Where the goal is not reached
yet, the limit keeps the figure from growing.

lines reached     own lines (of headers of the library, comments included) that an include reaches
unused headers    public headers that no program, documented example or historic design uses
split classes     classes with members that are defined in another header than the class
hot path          the headers, and their lines, that the instructions of one record come from
"""
import os
import re
import subprocess
import sys
import tempfile

# --- The limits ----------------------------------------------------------------------------------
# (goal, limit)
LINES_REACHED = {"recorder/site.hpp": (2500, 3100), "recorder/recorder.hpp": (8000, 13950),
                 "trace_ring.hpp": (9000, 16270), "reading.hpp": (9000, 9030)}
HOT_FILES, HOT_LINES = (6, 8), (900, 1350)

# The header of the write path declares these, so that a file which only records compiles fast. A file
# that constructs one includes the header with the rest.
DECLARED_FOR_SITES = {"basic_recorder", "silent_recorder"}
# Designs that a user adopts as a whole: all of their headers count as used.
DESIGNS = ("das", "cptrap", "point", "x86", "instrument")
INCLUDE = re.compile(r"^\s*#\s*include\s*<trace_ring/([^>]+)>", re.M)
DEFINED = re.compile(r"^(?:template <.*> *)?(?:requires .*)?(?:\[\[.*?\]\] *)*(?:inline |constexpr |extern )*"
                     r"(?:struct|class|enum class|union|using|concept) (?:\[\[.*?\]\] |alignas\(.*?\) )?(\w+)"
                     r"(?!\w|;)", re.M)
FUNCTION = re.compile(r"^(?!\s|using|return|//|#)[^;=\n(]*?\b(\w+)\(", re.M)
MEMBER = re.compile(r"^(?!\s|using|return|//|#)[^;=\n]*?\b(\w+)(?:<[^<>;()]*>)?::(~?\w+|operator\W+)\(",
                    re.M)
HOT = """#include <trace_ring/recorder/site.hpp>
#include <cstdint>
struct e : trace_ring::event<"e", trace_ring::field<"a", std::uint64_t>,
                             trace_ring::field<"b", std::uint64_t>> {};
void hot(trace_ring::recorder& to, std::uint64_t a, std::uint64_t b) { to.record<e>(a, b); }
"""


def headers(root):
    """The text of each header by its path below ROOT/include/trace_ring."""
    top = os.path.join(root, "include", "trace_ring")
    found = {}
    for folder, _, names in os.walk(top):
        for name in names:
            if name.endswith(".hpp"):
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as file:
                    found[os.path.relpath(path, top)] = file.read()
    return found


def is_umbrella(text):
    """Whether a header consists of includes, with at most the check of the language standard."""
    return not re.sub(r"^\s*(//.*|#.*)?$", "", text, flags=re.M).strip()


def reached(found, first):
    """All headers that `first` includes, itself among them."""
    seen, todo = set(), list(first)
    while todo:
        name = todo.pop()
        if name in found and name not in seen:
            seen.add(name)
            todo += INCLUDE.findall(found[name])
    return seen


def lines_reached(found, header):
    return sum(found[name].count("\n") for name in reached(found, [header]))


# --- Headers without a user ----------------------------------------------------------------------
def user_texts(root):
    """The sources of the programs, and the code of the pages."""
    for folder, _, names in os.walk(os.path.join(root, "examples")):
        for name in names:
            if name.endswith((".cpp", ".hpp")):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    yield file.read()
    pages = [os.path.join(root, "README.md")]
    for top in ("include", "examples"):
        for folder, _, names in os.walk(os.path.join(root, top)):
            pages += [os.path.join(folder, name) for name in names if name.endswith(".md")]
    for page in pages:
        if os.path.exists(page):
            with open(page, encoding="utf-8") as file:
                yield "\n".join(re.findall(r"^```cpp\n(.*?)^```", file.read(), re.M | re.S))


def code_alone(text):
    return re.sub(r"//.*|\"(?:\\.|[^\"\\])*\"", "", text)


def unused(root, found):
    """A header is used if a user includes it or names something that it defines (after `::`), or if a used header
    includes it. An umbrella uses nothing."""
    library = {name: text for name, text in found.items() if not is_umbrella(text)}
    words, direct = set(), set()
    for text in user_texts(root):
        direct |= set(INCLUDE.findall(text))
        words |= set(re.findall(r"::(\w+)", code_alone(text)))
    used = {name for name in library
            if name in direct or name.split("/")[0] in DESIGNS
            or any(word in words for word in DEFINED.findall(library[name])
                   + FUNCTION.findall(library[name]))}
    return sorted(library.keys() - reached(library, used))


# --- Classes in pieces ---------------------------------------------------------------------------
def split_classes(found):
    """(class, its header, the others where its members are defined)"""
    homes = {}
    for name, text in found.items():
        for match in DEFINED.finditer(text):
            homes.setdefault(match[1], set()).add(name)
    pieces = {}
    for name, text in sorted(found.items()):
        for match in MEMBER.finditer(code_alone(text)):
            if (match[1] in homes and name not in homes[match[1]]
                    and match[1] not in DECLARED_FOR_SITES):
                pieces.setdefault(match[1], set()).add(name)
    return [(one, sorted(homes[one]), sorted(others)) for one, others in sorted(pieces.items())]


# --- The hot path --------------------------------------------------------------------------------
def hot_headers(root, compiler):
    """The headers that the instructions of one record come from, by the compiler's own line table,
    functions that were inlined included."""
    with tempfile.TemporaryDirectory() as folder:
        source, made = os.path.join(folder, "hot.cpp"), os.path.join(folder, "hot.o")
        with open(source, "w", encoding="utf-8") as file:
            file.write(HOT)
        subprocess.run([*compiler, "-std=c++20", "-O2", "-g", "-fno-pie", f"-I{root}/include", "-c", source,
                        "-o", made], check=True)
        code = subprocess.run(["objdump", "-d", "-j", ".text", "--no-show-raw-insn", made],
                              capture_output=True, text=True, check=True).stdout
        addresses = re.findall(r"^\s*([0-9a-f]+):\t", code, re.M)
        lines = subprocess.run(["addr2line", "-i", "-j", ".text", "-e", made, *addresses],
                               capture_output=True, text=True, check=True).stdout
    inside = os.path.join(os.path.realpath(root), "include", "trace_ring") + os.sep
    paths = {os.path.realpath(line.rsplit(":", 1)[0]) for line in lines.splitlines()}
    return sorted(path.removeprefix(inside) for path in paths if path.startswith(inside))


# --- The report ----------------------------------------------------------------------------------
def report(root, compiler):
    found = headers(root)
    over = 0

    def line(what, figure, goal, limit):
        nonlocal over
        over += figure > limit
        print(f"{what:<44}{figure:>8}{goal:>8}{limit:>8}{'  over' if figure > limit else ''}")

    print(f"{'measure':<44}{'today':>8}{'goal':>8}{'limit':>8}")
    for header, bounds in LINES_REACHED.items():
        line(f"lines reached, {header}", lines_reached(found, header), *bounds)
    without_user = unused(root, found)
    line("headers without a user", len(without_user), 0, 0)
    split = split_classes(found)
    line("classes split over headers", len(split), 0, 0)
    hot = hot_headers(root, compiler)
    line("hot path, files", len(hot), *HOT_FILES)
    line("hot path, lines", sum(found[name].count("\n") for name in hot), *HOT_LINES)
    for name in without_user:
        print(f"include/trace_ring/{name}:1: no program, documented example or historic design uses it")
    for name, homes, others in split:
        print(f"include/trace_ring/{homes[0]}: {name} has members in {', '.join(others)}")
    for name in hot:
        print(f"hot path: {name} {found[name].count(chr(10))}")
    return 1 if over else 0


def main(arguments):
    at = arguments.index("--")
    (root,), compiler = arguments[:at], arguments[at + 1:]
    return report(root, compiler)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
