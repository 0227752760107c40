#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""Looks at sites in machine code (x86-64): what a file that only records consists of.

    sites.py SITES.CPP -- COMPILER [FLAG...]

Each `site_` function, at -O1 to -O3 and -Os, for a program and for a shared library, by COMPILER and
by clang++ if it is here: one way out of it to other code, to the cold path; no locked instruction; no
more bytes than MOST, or MOST_OF_LIBRARY. Its event type is in the section of types, once for each site, and no code is
run for it before main. In a `planted_` one there is more, which must be found. No header that is
heavy to compile comes with the one of sites. Exits with 77 where there is nothing to look at: another
machine, or no objdump.
"""
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

MOST = 280  # bytes of a site, the function around it included
MOST_OF_LIBRARY = 304  # it asks whose numbers its event type has, and where the lanes are
HEAVY = {"algorithm", "chrono", "functional", "memory", "string", "string_view", "tuple", "vector",
         "cpuid.h", "fcntl.h"}
LEVELS = ("-O1", "-O2", "-O3", "-Os")
FUNCTION = re.compile(r"^[0-9a-f]+ <([^>]+)>:$")
RELOCATION = re.compile(r"R_X86_64_(?:PLT32|PC32)\s+(\S+?)(?:[-+]0x[0-9a-f]+)?$")
LEAVES = re.compile(r"\t(?:call|jmp)\s")
LOCKED = re.compile(r"\t(?:lock\b|xchg\s.*\(|mfence)")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def faults_of(built, most):
    """What is wrong with the sites in an object file, and how many there are."""
    sites, current = {}, None
    for line in output("objdump", "-dr", "--no-show-raw-insn", built).splitlines():
        if match := FUNCTION.match(line):
            is_site = match[1].startswith(("site_", "planted_"))
            current = sites.setdefault(match[1], []) if is_site else None
        elif current is not None:
            current.append(line)
    sizes = {fields[3]: int(fields[1], 16) for fields in
             (line.split() for line in output("nm", "-S", built).splitlines()) if len(fields) == 4}
    for name, lines in sites.items():
        outside = []
        for line, following in zip(lines, [*lines[1:], ""]):
            if LOCKED.search(line):
                yield f"{name}: locked: {line.strip()}"
            if LEAVES.search(line) and (relocation := RELOCATION.search(following)):
                outside.append(relocation[1])
        if len(outside) != 1:
            yield f"{name}: {len(outside)} ways to other code, and not one: {', '.join(outside)}"
        elif not ("append_cold" in outside[0] or outside[0].startswith(".text")):
            yield f"{name}: leads to {outside[0]}, and not to the cold path"
        if sizes.get(name, 0) > most:
            yield f"{name}: {sizes[name]} bytes"
    parts = {fields[0]: int(fields[1]) for fields in
             (line.split() for line in output("size", "-A", built).splitlines()[2:]) if len(fields) == 3}
    if parts.get("trace_ring_types") != 8 * len(sites):
        yield f"{parts.get('trace_ring_types')} bytes in the section of types, of {len(sites)} sites"
    sections = output("objdump", "-r", "-j", ".init_array", built)
    if sections.count("R_X86_64_64") > 1:
        yield "more than one function is run before main"
    if len(sites) < 5:
        yield f"only {len(sites)} sites are found"


def main(arguments):
    if len(arguments) < 3 or arguments[1] != "--":
        sys.exit(__doc__.strip())
    source, compiler, flags = arguments[0], arguments[2], arguments[3:]
    # Sanitizers and other targets have machine code of their own.
    if (platform.machine() != "x86_64" or not shutil.which("objdump") or
            any(flag.startswith(("-fsanitize", "-m32")) for flag in flags) or "aarch64" in compiler):
        print("nothing to look at here")
        return 77
    compilers = [compiler] + [c for c in ("clang++", "clang++-14") if shutil.which(c)][:1]
    faults, looked = [], 0
    with tempfile.TemporaryDirectory() as folder:
        built = os.path.join(folder, "sites.o")
        included = {os.path.basename(word) for word in output(compiler, *flags, "-M", source).split()}
        faults += [f"sites include <{name}>" for name in sorted(included & HEAVY)]
        for each in compilers:
            for level in LEVELS:
                for more in ([], ["-fPIC"]):
                    command = [each, *flags, level, *more, "-c", source, "-o", built]
                    subprocess.run(command, check=True)
                    looked += 1
                    found = list(faults_of(built, MOST_OF_LIBRARY if more else MOST))
                    if not any(fault.startswith("planted_") for fault in found):
                        found.append("a call beside the site was not found")
                    faults += [f"{os.path.basename(each)} {' '.join([level, *more])}: {fault}"
                               for fault in found if not fault.startswith("planted_")]
    print(f"{looked} object files, {len(faults)} faults")
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
