#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""Compiles and runs the C++ of a document.

    readme.py FILE -- COMPILER [FLAG...]
    readme.py --self-test -- COMPILER [FLAG...]

Each block ```cpp is a program, or declarations that an empty main is added to. A comment on the
line before the block says otherwise:

    <!-- continues -->   the block belongs to the one before it, declarations or not
    <!-- statements -->  the block is the body of main, after the one before it
    <!-- fragment -->    the block is not meant to compile: nothing is tried
"""
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # beside the sources
from precompiled import first_includes, precompile  # noqa: E402

# What most programs include. Who includes it at the beginning, gets it parsed once for all of them.
WHOLE = "#include <trace_ring/trace_ring.hpp>"
BLOCK = re.compile(r"(?:^<!-- (\w+) -->\n+)?^```cpp\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def programs(text):
    """The programs in a document as (line of the first block, source)."""
    found = []
    for block in BLOCK.finditer(text):
        kind, code = block[1] or "program", block[2]
        line = text.count("\n", 0, block.start(2)) + 1
        numbered = f'#line {line} "README"\n{code}'
        if kind == "fragment":
            continue
        if kind in ("continues", "statements"):
            if not found:
                raise ValueError(f"line {line}: {kind}, and no block before it")
            if kind == "statements":
                numbered = f"int main() {{\n{numbered}}}\n"
            found[-1] = (found[-1][0], found[-1][1] + numbered)
        elif kind == "program":
            found.append((line, numbered))
        else:
            raise ValueError(f"line {line}: <!-- {kind} -->: not a kind of block")
    return [(line, code if re.search(r"\bmain\s*\(", code) else code + "int main() {}\n")
            for line, code in found]


def try_program(command, code, folder):
    """What is wrong with one program, or nothing."""
    source, binary = os.path.join(folder, "block.cpp"), os.path.join(folder, "block")
    with open(source, "w", encoding="utf-8") as file:
        file.write(code)
    # A compiler that shares its processor may take long; a program may not.
    for step, seconds in (([*command, source, "-o", binary, "-pthread"], 240), ([binary], 60)):
        try:
            done = subprocess.run(step, cwd=folder, text=True, timeout=seconds, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        except subprocess.TimeoutExpired:
            return f"{os.path.basename(step[0])} takes more than {seconds} seconds"
        if done.returncode != 0:
            return f"{os.path.basename(step[0])} ends with {done.returncode}:\n{done.stdout}"
    return ""


def check(text, command):
    try:
        found = programs(text)
    except ValueError as error:
        return [str(error)]
    faults = []
    with tempfile.TemporaryDirectory() as shared:
        whole = [WHOLE in first_includes(code) for _, code in found]
        first = precompile(command, [WHOLE], shared) if sum(whole) > 1 else []
        for (line, code), begins in zip(found, whole):
            with tempfile.TemporaryDirectory() as folder:
                if begins and first and not try_program([*command, *first], code, folder):
                    continue
                # What counts is the header as it is: clang 14 crashes at some that is precompiled.
                if wrong := try_program(command, code, folder):
                    faults.append(f"line {line}: {wrong}")
    if not found:
        faults.append("no block of C++ that is compiled")
    print(f"{len(found)} programs, {len(faults)} faults")
    return faults


SOUND = """
```cpp
#include <cstdlib>
inline int answer = 42;
```
text
<!-- statements -->
```cpp
return answer - 42;
```
<!-- fragment -->
```cpp
auto slot = ...
```
```sh
exit 1
```
"""


def self_test(command):
    planted = {
        "a block that does not compile": SOUND.replace("int answer", "int question"),
        "a program that fails": SOUND.replace("- 42", "- 41"),
        "a block that is no longer a fragment": SOUND.replace("<!-- fragment -->\n", ""),
        "an unknown kind": SOUND.replace("<!-- fragment", "<!-- figment"),
        "no code": "text\n",
    }
    missed = [name for name, text in planted.items() if not check(text, command)]
    if faults := check(SOUND, command):
        missed.append("a sound document was refused: " + "\n".join(faults))
    return missed


def main(arguments):
    path, command = arguments[0], arguments[arguments.index("--") + 1:]
    if path == "--self-test":
        faults = self_test(command)
    else:
        with open(path, encoding="utf-8") as file:
            faults = [f"{os.path.basename(path)}: {fault}" for fault in check(file.read(), command)]
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
