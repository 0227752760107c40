#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""Whether the headers compile behind other people's macros.

    macros.py INCLUDE -- COMPILER ARGUMENT...

All headers in INCLUDE, behind the macros that Qt, X11, Windows, macOS, the C library and g++ define
under names that a program may also use. What the headers include themselves is included before, as
whoever defines such macros has most often done.
"""
import os
import re
import subprocess
import sys

MACROS = """
#define slots
#define signals public
#define emit
#define foreach(variable, container) for (variable : container)
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define major(device) ((device) >> 8)
#define minor(device) ((device) & 0xFF)
#define linux 1
#define unix 1
#define interface struct
#define near
#define far
#define small char
#define ERROR 0
#define DEBUG 1
#define IN
#define OUT
#define OPTIONAL
#define Bool int
#define None 0L
#define Status int
#define check(assertion)
#define verify(assertion)
"""
# What a header that keeps to none of this would say.
PLANTED = ("int slots = 1;", "inline int near(int far) { return far; }", "enum class kind { interface };",
           "int least = std::min(1, 2);", "namespace own { void check(int size); }", "struct None {};")
INCLUDE = re.compile(r"^#\s*include\s*<([^>]+)>", re.M)


def compiles(command, source):
    return subprocess.run([*command, "-fsyntax-only", "-x", "c++", "-"], input=source, text=True,
                          check=False, capture_output=True)


def main(arguments):
    folder, command = arguments[0], arguments[arguments.index("--") + 1:]
    own, others = [], set()
    for at, _, names in sorted(os.walk(folder)):
        for name in sorted(name for name in names if name.endswith(".hpp")):
            path = os.path.join(at, name)
            own.append(os.path.relpath(path, folder))
            with open(path, encoding="utf-8") as file:
                others.update(INCLUDE.findall(file.read()))
    others = sorted(others - set(own))
    before = "".join(f"#if __has_include(<{name}>)\n#include <{name}>\n#endif\n" for name in others)
    done = compiles(command, before + MACROS + "".join(f"#include <{name}>\n" for name in own))
    if done.returncode != 0:
        print(done.stderr)
        return 1
    for planted in PLANTED:
        if compiles(command, "#include <algorithm>" + MACROS + planted + "\n").returncode == 0:
            print(f"nothing was found wrong with: {planted}")
            return 1
    print(f"{len(own)} headers compile behind {MACROS.count('#define')} macros")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
