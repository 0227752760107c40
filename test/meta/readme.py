#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""Compiles and runs the C++ of documents, and runs their command lines.

    readme.py BIN FILE... -- COMPILER [FLAG...]
    readme.py --self-test -- COMPILER [FLAG...]

Each block ```cpp is a program, or declarations that an empty main is added to. A comment on the
line before the block says otherwise:

    <!-- continues -->   the block belongs to the one before it, declarations or not
    <!-- statements -->  the block is the body of main, after the one before it
    <!-- fragment -->    the block is not meant to compile: nothing is tried

In a block of no language a line that begins with `$ ` is a command, which must succeed; the lines
behind it, if there are any, are what it prints, but for the digits. The programs of a document and
its commands are run in one folder, in their order, the programs of BIN on the PATH and in build/bin.
What the first document leaves there, the others find, too.
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
BLOCK = re.compile(r"(?:^<!-- (\w+) -->\n+)?^```(cpp|)\n(.*?)^```$|^```\w+\n.*?^```$",
                   re.MULTILINE | re.DOTALL)


def blocks(text):
    """What a document has to be tried, as (line, source, commands): one of the two is empty."""
    found = []
    for block in BLOCK.finditer(text):
        kind, language, code = block[1] or "program", block[2], block[3]
        if language is None or kind == "fragment":
            continue
        line = text.count("\n", 0, block.start(3)) + 1
        if language == "":
            if code.startswith("$ "):
                found.append((line, "", commands(code)))
            continue
        numbered = f'#line {line} "README"\n{code}'
        if kind in ("continues", "statements"):
            if not found or not found[-1][1]:
                raise ValueError(f"line {line}: {kind}, and no block before it")
            if kind == "statements":
                numbered = f"int main() {{\n{numbered}}}\n"
            found[-1] = (found[-1][0], found[-1][1] + numbered, [])
        elif kind == "program":
            found.append((line, numbered, []))
        else:
            raise ValueError(f"line {line}: <!-- {kind} -->: not a kind of block")
    return [(line, code if not code or re.search(r"\bmain\s*\(", code) else code + "int main() {}\n",
             lines) for line, code, lines in found]


def commands(code):
    """Each command of a block, and the lines that it is said to print."""
    found = []
    for line in code.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def without_digits(text):
    return re.sub(r"\d+", "0", text)


def try_command(command, printed, folder, programs):
    """What is wrong with one command, or nothing."""
    path = os.pathsep.join([programs, os.environ["PATH"]])
    try:
        done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=folder, text=True,
                              timeout=120, check=False, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**os.environ, "PATH": path})
    except subprocess.TimeoutExpired:
        return f"{command}: takes more than 120 seconds"
    if done.returncode != 0:
        return f"{command}: ends with {done.returncode}:\n{done.stdout}"
    wanted = without_digits("\n".join(printed))
    if printed and wanted != without_digits(done.stdout.rstrip("\n")):
        return f"{command}: prints something else:\n{done.stdout}"
    return ""


def try_program(command, code, folder):
    """What is wrong with one program, or nothing."""
    source, binary = os.path.join(folder, "orders.cpp"), os.path.join(folder, "orders")
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


def check(text, command, programs, folder, first=()):
    """The faults of a document, tried in `folder`. `first`: arguments that put WHOLE before a program,
    parsed."""
    try:
        found = blocks(text)
    except ValueError as error:
        return [str(error)]
    sources = [code for _, code, _ in found if code]
    tried = [line for _, _, lines in found for line in lines]
    faults = []
    os.mkdir(os.path.join(folder, "build"))
    programs = os.path.abspath(programs)
    os.symlink(programs, os.path.join(folder, "build", "bin"))
    for line, code, lines in found:
        if code:
            if WHOLE in first_includes(code) and first and \
                    not try_program([*command, *first], code, folder):
                continue
            # What counts is the header as it is: clang 14 crashes at some that is precompiled.
            if wrong := try_program(command, code, folder):
                faults.append(f"line {line}: {wrong}")
        for wanted, printed in lines:
            if wrong := try_command(wanted, printed, folder, programs):
                faults.append(f"line {line}: {wrong}")
    if not found:
        faults.append("nothing that is tried")
    print(f"{len(sources)} programs, {len(tried)} commands, {len(faults)} faults")
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
```
$ test -d build/bin
$ echo 1; echo 22 of 33
4
5 of 678
```
"""


def check_alone(text, command):
    with tempfile.TemporaryDirectory() as folder:
        return check(text, command, ".", folder)


def self_test(command):
    planted = {
        "a block that does not compile": SOUND.replace("int answer", "int question"),
        "a program that fails": SOUND.replace("- 42", "- 41"),
        "a block that is no longer a fragment": SOUND.replace("<!-- fragment -->\n", ""),
        "an unknown kind": SOUND.replace("<!-- fragment", "<!-- figment"),
        "no code": "text\n",
        "a command that fails": SOUND.replace("test -d", "test -f"),
        "a command that prints something else": SOUND.replace("22 of", "22 in"),
    }
    missed = [name for name, text in planted.items() if not check_alone(text, command)]
    if faults := check_alone(SOUND, command):
        missed.append("a sound document was refused: " + "\n".join(faults))
    return missed


def main(arguments):
    at = arguments.index("--")
    (programs, *paths), command = arguments[:at], arguments[at + 1:]
    faults = []
    if programs == "--self-test":
        faults = self_test(command)
    with tempfile.TemporaryDirectory() as scratch:
        first = precompile(command, [WHOLE], scratch) if paths else []
        folders = [os.path.join(scratch, str(number)) for number in range(len(paths))]
        for path, folder in zip(paths, folders):
            os.mkdir(folder)
            if folder != folders[0]:
                for entry in os.scandir(folders[0]):
                    if entry.is_file():
                        os.link(entry, os.path.join(folder, entry.name))
            with open(path, encoding="utf-8") as file:
                text = file.read()
            print(path, end=": ", flush=True)
            faults += [f"{path}: {fault}" for fault in check(text, command, programs, folder, first)]
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
