#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""Checks the write paths of one writer in machine code (x86-64): of rings, and of recorders.

    hot_path.py hot_path.cpp -- COMPILER [FLAG...]

The path of each `alone_` function from its entry to its return, if nothing is lost, has no locked
instruction, no call, and at most LONGEST instructions. Losses are counted on other paths, which
begin with a call. The source is compiled for an executable and for a shared library, and with
TRACE_RING_DISABLE, which may leave nothing except the return. Exits with 77 if there is nothing to
check: another machine, or no binutils.
"""
import os
import re
import subprocess
import sys
import tempfile

from disassembly import LOCKED, Tools, output

JUMP = re.compile(r"^j(\w+)\s+([0-9a-f]+)\b")
STORE = re.compile(r"^(?:mov|add)\w* [^(]*,\S*\(.*\)|^movs\w+ .*\(%rdi\)")
LEAST_STORES = 4  # the record's head, and what opens, publishes and closes it
LONGEST = 56  # instructions of one path, the function around it included
LONGEST_BY_CPU = 70  # which finds its lane and announces the sequence to the kernel


def paths(function):
    """All paths from the entry to a return that lead through no call, as lists of instructions."""
    code = {each.at: each for each in function.instructions}
    following = dict(zip(code, list(code)[1:]))
    todo, found = [(function.start, [])], []
    while todo and len(found) < 200:
        at, path = todo.pop()
        while at in code and len(path) <= 4 * LONGEST:
            text = code[at].text
            path = path + [text]
            if text.startswith(("ret", "repz ret", "bnd ret")):
                found.append(path)
                break
            if text.startswith(("call", "ud2")):
                break
            if jump := JUMP.match(text):
                # A relocated jump leads out of the function.
                target = None if code[at].relocations else int(jump[2], 16)
                if jump[1] == "mp":
                    at = target
                    continue
                if target is not None and target > at:  # a loop is followed once
                    todo.append((target, path))
            at = following.get(at)
    return found


def faults_of(function):
    name = function.name
    found = [path for path in paths(function) if sum(map(bool, map(STORE.match, path))) >= LEAST_STORES]
    if not found:
        return [f"{name}: no path that records is free of calls"]
    path = max(found, key=len)
    faults = [f"{name}: locked: {text}" for text in path if LOCKED.match(text)]
    if len(path) > (LONGEST_BY_CPU if "by_cpu" in name else LONGEST):
        faults.append(f"{name}: {len(path)} instructions")
    print(f"{name}: {len(path)} instructions")
    return faults


def main(arguments):
    split = arguments.index("--")
    source, command = arguments[0], arguments[split + 1:]
    tools = Tools(*command)
    if not tools.can_read("x86_64"):
        print("no code that this test can read")
        return 77
    with open(source, encoding="utf-8") as file:
        declared = sorted(re.findall(r"void (alone_\w+)\(", file.read()))
    faults = [] if declared else [f"{source}: no function named alone_..."]
    with tempfile.TemporaryDirectory() as folder:
        built = os.path.join(folder, "hot_path.o")

        def functions(*flags):
            subprocess.run([*command, "-O2", "-DNDEBUG", *flags, "-c", source, "-o", built],
                           check=True)
            return tools.functions(built)

        for flags in ([], ["-fPIC"]):
            found = {each.name: each for each in functions(*flags)}
            alone = sorted(name for name in found if name.startswith("alone_")
                           and not name.endswith("cold"))
            if alone != declared:
                faults.append(f"found only {alone} of {declared}")
            for name in alone:
                faults += [f"{fault} ({' '.join(flags) or 'plain'})"
                           for fault in faults_of(found[name])]
            # That the check finds what is there: shared_write does lock.
            if not any(LOCKED.match(each.text) for each in found["shared_write"].instructions):
                faults.append("shared_write: no locked instruction was found")
        for function in functions("-DTRACE_RING_DISABLE"):
            left = [each.text for each in function.instructions
                    if not re.match(r"ret|nop|cs nop|data16|xchg\s+%ax,%ax|endbr64", each.text)]
            if left and function.name.startswith(("alone_", "shared_")):
                faults.append(f"{function.name}: left of it with TRACE_RING_DISABLE: {left}")
        # Nor is anything left to the linker, or to be run before main.
        left = [line for line in tools.symbols(built)
                if re.search(r"trace_ring::|guard|atexit", line)]
        if ".init_array" in output(tools.objdump, "-h", built):
            left.append(".init_array")
        if left:
            faults.append(f"left of {source} with TRACE_RING_DISABLE: {left}")
    for fault in sorted(set(faults)):
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
