#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""Looks at every restartable sequence of a program in machine code (x86-64).

    sections.py sections.cpp -- COMPILER [FLAG...]

Their descriptions are taken from the program itself, as the kernel does. Within a sequence: no
locked instruction, no call, no way out of it or into it but by its beginning; its last instruction
is a store. Outside: the place where the kernel goes on has the signature before it. The program is
run, too. Exits with 77 where there is nothing to look at: another machine, or no binutils.
"""
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
import tempfile

SIGNATURE = struct.pack("<I", 0x53053053)
INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\t(.*?)\s*$")
LOCKED = re.compile(r"^lock\b|^xchg\s.*\(|^[lms]fence|^syscall|^int\b")
LEAVES = re.compile(r"^(?:call|ret|bnd (?:call|ret)|jmp\s+\*)")
STORE = re.compile(r"^mov\w* [^(]*,\S*\(.*\)$")
JUMP = re.compile(r"^j\w+\s+(?:0x)?([0-9a-f]+)\b")
FEWEST = 13  # none to four words, any number, for two clocks; and a change of the lane


def output_of(*command):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def bytes_of(binary, section, folder):
    """A section's address and bytes."""
    for line in output_of("objdump", "-h", "-w", binary).splitlines():
        fields = line.split()
        if len(fields) > 3 and fields[1] == section:
            path = os.path.join(folder, "bytes")
            subprocess.run(["objcopy", "--dump-section", f"{section}={path}", binary,
                            os.path.join(folder, "copy")], check=True)
            with open(path, "rb") as file:
                return int(fields[3], 16), file.read()
    return 0, b""


def faults_of(binary, folder):
    code = {}
    for line in output_of("objdump", "-d", "--no-show-raw-insn", binary).splitlines():
        if match := INSTRUCTION.match(line):
            code[int(match[1], 16)] = match[2]
    _, described = bytes_of(binary, "__rseq_cs", folder)
    failures, failure_bytes = bytes_of(binary, "__rseq_failure", folder)
    sequences = list(struct.iter_unpack("<IIQQQ", described[:len(described) // 32 * 32]))
    longest = 0
    for version, flags, start, size, failed in sequences:
        name = f"sequence at {start:x}"
        inside = [(at, text) for at, text in sorted(code.items()) if start <= at < start + size]
        longest = max(longest, len(inside))
        if version or flags or not inside or inside[0][0] != start or start + size not in code:
            yield f"{name}: not described as it is"
            continue
        for at, text in inside:
            if LOCKED.match(text) or LEAVES.match(text):
                yield f"{name}: {text}"
        if not STORE.match(inside[-1][1]):
            yield f"{name}: ends with {inside[-1][1]}"
        for at, text in code.items():
            jump = JUMP.match(text)
            if jump and start < int(jump[1], 16) < start + size and not start <= at < start + size:
                yield f"{name}: entered from {at:x}"
        before = failed - failures
        if failure_bytes[before - 4:before] != SIGNATURE or start <= failed < start + size:
            yield f"{name}: no signature where it fails"
    print(f"{len(sequences)} sequences of at most {longest} instructions")
    if len(sequences) < FEWEST:
        yield f"only {len(sequences)} sequences"


def main(arguments):
    split = arguments.index("--")
    source, command = arguments[0], arguments[split + 1:]
    if (platform.machine() != "x86_64" or not shutil.which("objdump") or
            not shutil.which("objcopy") or "aarch64" in command[0] or
            any(flag.startswith(("-fsanitize", "-m32")) for flag in command)):
        print("nothing to look at here")
        return 77
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        for flags in (["-O2", "-DNDEBUG"], ["-O2", "-fPIC"], ["-O0"]):
            # Without -pie the descriptions hold what they will hold when they are loaded.
            binary = os.path.join(folder, "sections")
            subprocess.run([*command, *flags, source, "-no-pie", "-o", binary], check=True)
            faults += [f"{fault} ({' '.join(flags)})" for fault in faults_of(binary, folder)]
            if subprocess.run([binary], check=False).returncode != 0:
                faults.append(f"records were refused ({' '.join(flags)})")
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
