#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""Looks at write paths of one writer in machine code (x86-64): of rings, and of recorders.

    hot_path.py hot_path.cpp -- COMPILER [FLAG...]

From the entry of each `alone_` function to its return along the path that is taken when nothing is
lost: no locked instruction, no call, at most so many instructions. What is lost is counted on paths
of their own, which calls lead to. Compiled for an executable and for a shared library, with and
without TRACE_RING_DISABLE, with which nothing but the return may be left. Exits with 77 where
there is nothing to look at: another machine, or no objdump.
"""
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

FUNCTION = re.compile(r"^[0-9a-f]+ <(\w+)>:$")
INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\t(.*?)\s*$")
JUMP = re.compile(r"^j(\w+)\s+([0-9a-f]+)\b")
LOCKED = re.compile(r"^lock\b|^(?:rep \S+ )?xchg\s.*\(|^mfence")
STORE = re.compile(r"^(?:mov|add)\w* [^(]*,\S*\(.*\)|^movs\w+ .*\(%rdi\)")
LEAST_STORES = 4  # the record's head, and what opens, publishes and closes it
LONGEST = 56  # instructions of one path, the function around it included
LONGEST_BY_CPU = 70  # which finds its lane and tells the kernel of the sequence


def functions(text):
    """Each function as {address: instruction}, in order."""
    found, current = {}, None
    for line in text.splitlines():
        if match := FUNCTION.match(line):
            current = found.setdefault(match[1], {})
        elif (match := INSTRUCTION.match(line)) and current is not None:
            current[int(match[1], 16)] = match[2]
    return found


def paths(code):
    """All paths from the entry to a return that lead through no call, as lists of instructions."""
    order = sorted(code)
    following = dict(zip(order, order[1:]))
    todo, found = [(order[0], [])], []
    while todo and len(found) < 200:
        at, path = todo.pop()
        while at is not None and at in code and len(path) <= 4 * LONGEST:
            text = code[at]
            path = path + [text]
            if text.startswith(("ret", "repz ret", "bnd ret")):
                found.append(path)
                break
            if text.startswith(("call", "ud2")):
                break
            if jump := JUMP.match(text):
                target = int(jump[2], 16)
                if jump[1] == "mp":
                    at = target
                    continue
                if target > at:  # a loop is looked at once
                    todo.append((target, path))
            at = following.get(at)
    return found


def faults_of(name, code):
    found = [path for path in paths(code) if sum(map(bool, map(STORE.match, path))) >= LEAST_STORES]
    if not found:
        return [f"{name}: no path that records is free of calls"]
    path = max(found, key=len)
    faults = [f"{name}: locked: {text}" for text in path if LOCKED.match(text)]
    if len(path) > (LONGEST_BY_CPU if "by_cpu" in name else LONGEST):
        faults.append(f"{name}: {len(path)} instructions")
    print(f"{name}: {len(path)} instructions")
    return faults


def disassembled(command, source, flags, folder):
    binary = os.path.join(folder, "hot_path.o")
    subprocess.run([*command, "-O2", "-DNDEBUG", *flags, "-c", source, "-o", binary], check=True)
    return functions(subprocess.run(["objdump", "-d", "--no-show-raw-insn", binary], check=True,
                                    text=True, stdout=subprocess.PIPE).stdout)


def main(arguments):
    split = arguments.index("--")
    source, command = arguments[0], arguments[split + 1:]
    # Sanitizers and other targets have machine code of their own.
    if (platform.machine() != "x86_64" or not shutil.which("objdump") or
            any(flag.startswith(("-fsanitize", "-m32")) for flag in command) or
            "aarch64" in command[0]):
        print("nothing to look at here")
        return 77
    with open(source, encoding="utf-8") as file:
        declared = sorted(re.findall(r"void (alone_\w+)\(", file.read()))
    faults = [] if declared else [f"{source}: no function named alone_..."]
    with tempfile.TemporaryDirectory() as folder:
        for flags in ([], ["-fPIC"]):
            found = disassembled(command, source, flags, folder)
            alone = sorted(name for name in found if name.startswith("alone_")
                           and not name.endswith("cold"))
            if alone != declared:
                faults.append(f"found only {alone} of {declared}")
            for name in alone:
                faults += [f"{fault} ({' '.join(flags) or 'plain'})"
                           for fault in faults_of(name, found[name])]
            # That the look finds what is there: shared_write does lock.
            if not any(LOCKED.match(text) for text in found["shared_write"].values()):
                faults.append("shared_write: no locked instruction was found")
        found = disassembled(command, source, ["-DTRACE_RING_DISABLE"], folder)
        for name in [n for n in found if n.startswith(("alone_", "shared_"))]:
            left = [text for text in found[name].values()
                    if not re.match(r"ret|nop|cs nop|data16|xchg\s+%ax,%ax|endbr64", text)]
            if left:
                faults.append(f"{name}: left of it with TRACE_RING_DISABLE: {left}")
        # Nor is anything left to the linker, or to be run before main.
        built = os.path.join(folder, "hot_path.o")
        symbols = subprocess.run(["nm", "-C", built], check=True, capture_output=True,
                                 text=True).stdout
        left = [line for line in symbols.splitlines() if re.search(r"trace_ring::|guard|atexit", line)]
        sections = subprocess.run(["objdump", "-h", built], check=True, capture_output=True,
                                  text=True).stdout
        if ".init_array" in sections:
            left.append(".init_array")
        if left:
            faults.append(f"left of {source} with TRACE_RING_DISABLE: {left}")
    for fault in sorted(set(faults)):
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
