#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""Looks at what a closed gate::static_key costs in machine code (x86-64).

    closed_site.py closed_site.cpp -- COMPILER [FLAG...]

Each function keyed_X, from its entry to its return with the site taken for the no-op that it is
patched to, must be plain_X and that one instruction: nothing loaded, compared, saved, or jumped
over. Where sites lie is read from their section; that it does hold the no-op is shown by
static_key_test. Exits with 77 where there is nothing to look at: another machine, or no objdump.
"""
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

SECTION = re.compile(r"^Disassembly of section (\S+):$")
FUNCTION = re.compile(r"^[0-9a-f]+ <(\w+)>:$")
INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\t((?:[0-9a-f]{2} )+)\s*(.*?)\s*$")
RELOCATION = re.compile(r"^([0-9a-f]+) R_X86_64_PC32\s+(\S+?)(?:\+0x([0-9a-f]+))?$")
JUMP = re.compile(r"^(?:cs )*jmp\s+[0-9a-f]+\b")
RETURN = re.compile(r"^(?:repz |bnd )?ret")
SITES = "trace_ring_sites_v1"
ENTRY = 16


def objdump(*arguments):
    return subprocess.run(["objdump", *arguments], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.splitlines()


def functions(binary):
    """Each function as a list of (section, address, bytes, instruction)."""
    found, section, current = {}, "", None
    for line in objdump("-d", "--insn-width=16", binary):
        if match := SECTION.match(line):
            section = match[1]
        elif match := FUNCTION.match(line):
            current = found.setdefault(match[1], [])
        elif (match := INSTRUCTION.match(line)) and current is not None:
            current.append((section, int(match[1], 16), bytes.fromhex(match[2]), match[3]))
    return found


def sites(binary):
    """Where the patched bytes of sites are, as (section, address)."""
    matches = map(RELOCATION.match, objdump("-r", "-j", SITES, binary))
    return {(m[2], int(m[3] or "0", 16)) for m in matches if m and int(m[1], 16) % ENTRY == 0}


def path_of(code, places):
    """The instructions from the entry to the return, and those among them that are sites."""
    path, passed = [], []
    for section, at, raw, text in code:
        if any((section, at + i) in places for i in range(len(raw))):
            passed.append((at, raw, text))
            continue
        # Which register, and how far away, is the compiler's to choose.
        path.append(re.sub(r"%\w+", "%", text.split("#")[0]).strip())
        if RETURN.match(text):
            break
    return path, passed


def fault_of_site(at, raw, text):
    """Five bytes of a jump in one aligned word; before them prefixes alone."""
    code = raw.lstrip(b"\x2e")
    place = at + len(raw) - len(code)
    if len(code) != 5 or code[0] != 0xE9 or not JUMP.match(text) or place % 8 > 3:
        return f"no site: {text} at {at:#x}"
    return ""


def faults_of(name, found, places):
    path, passed = path_of(found[name], places)
    plain, _ = path_of(found["plain_" + name.split("_", 1)[1]], set())
    if len(passed) != 1:
        return [f"{name}: {len(passed)} sites from the entry to the return"]
    if path != plain:
        return [f"{name}: beside the site {path}, without tracing {plain}"]
    fault = fault_of_site(*passed[0])
    return [f"{name}: {fault}"] if fault else []


def main(arguments):
    split = arguments.index("--")
    source, command = arguments[0], arguments[split + 1:]
    if (platform.machine() != "x86_64" or not shutil.which("objdump") or
            any(flag.startswith(("-fsanitize", "-m32")) for flag in command) or
            "aarch64" in command[0]):
        print("nothing to look at here")
        return 77
    with open(source, encoding="utf-8") as file:
        declared = sorted(re.findall(r"^void (keyed_\w+)\(", file.read(), re.MULTILINE))
    faults = [] if declared else [f"{source}: no function named keyed_..."]
    with tempfile.TemporaryDirectory() as folder:
        binary = os.path.join(folder, "closed_site.o")
        for flags in (["-O2"], ["-O2", "-fPIC"], ["-O3", "-fvisibility=hidden"]):
            subprocess.run([*command, "-DNDEBUG", *flags, "-c", source, "-o", binary], check=True)
            found, places = functions(binary), sites(binary)
            here = [fault for name in declared for fault in faults_of(name, found, places)]
            if len(places) < len(declared):
                here.append(f"only {len(places)} sites")
            # That the look finds what is there: a flag is loaded.
            if path_of(found["loaded_call"], places)[0] == path_of(found["plain_call"], set())[0]:
                here.append("loaded_call: nothing is loaded")
            print(f"{' '.join(flags)}: {len(declared)} functions, {len(here)} faults")
            faults += [f"{fault} ({' '.join(flags)})" for fault in here]
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
