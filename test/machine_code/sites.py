#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""Checks sites in machine code (x86-64): the code of a file that only records.

    sites.py SITES.CPP -- COMPILER [FLAG...]

Each `site_` function is compiled at -O1 to -O3 and -Os, for a program and for a shared library, by
COMPILER and by clang++ if there is one. It has one way to other code, to the cold path; no locked
instruction; and no more bytes than MOST, or MOST_OF_LIBRARY. Its event type is in the section of
types, once for each site, and no code runs for it before main. A `planted_` function has more, which
must be found. The header of sites includes no header that is heavy to compile. Exits with 77 if there
is nothing to check: another machine, or no binutils.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

from disassembly import LOCKED, Tools, output

MOST = 280  # bytes of a site, the function around it included
MOST_OF_LIBRARY = 304  # it asks whose numbers its event type has, and where the lanes are
HEAVY = {"algorithm", "chrono", "functional", "memory", "string", "string_view", "tuple", "vector",
         "cpuid.h", "fcntl.h"}
LEVELS = ("-O1", "-O2", "-O3", "-Os")


def faults_of(tools, built, most):
    """What is wrong with the sites in an object file, and how many there are."""
    sites = [each for each in tools.functions(built) if each.name.startswith(("site_", "planted_"))]
    sizes = tools.symbol_sizes(built)
    for site in sites:
        name, outside = site.name, []
        for each in site.instructions:
            if LOCKED.match(each.text):
                yield f"{name}: locked: {each.text}"
            if re.match(r"call\s|jmp\s", each.text):
                outside += [to.symbol for to in each.relocations
                            if to.kind in ("R_X86_64_PLT32", "R_X86_64_PC32")]
        if len(outside) != 1:
            yield f"{name}: {len(outside)} ways to other code, and not one: {', '.join(outside)}"
        elif not ("append_cold" in outside[0] or outside[0].startswith(".text")):
            yield f"{name}: leads to {outside[0]}, and not to the cold path"
        if sizes.get(name, 0) > most:
            yield f"{name}: {sizes[name]} bytes"
    of_types = tools.section_sizes(built).get("trace_ring_types")
    if of_types != 8 * len(sites):
        yield f"{of_types} bytes in the section of types, of {len(sites)} sites"
    sections = output(tools.objdump, "-r", "-j", ".init_array", built)
    if sections.count("R_X86_64_64") > 1:
        yield "more than one function is run before main"
    if len(sites) < 5:
        yield f"only {len(sites)} sites are found"


def main(arguments):
    if len(arguments) < 3 or arguments[1] != "--":
        sys.exit(__doc__.strip())
    source, compiler, flags = arguments[0], arguments[2], arguments[3:]
    tools = Tools(compiler, *flags)
    if not tools.can_read("x86_64"):
        print("no code that this test can read")
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
                    found = list(faults_of(tools, built, MOST_OF_LIBRARY if more else MOST))
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
