# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""Machine code as binutils show it: functions, instructions, relocations, sections.

The tests that look at machine code share this module. Each of them has what it checks.
"""
import os
import re
import shutil
import subprocess
from typing import NamedTuple

LOCKED = re.compile(r"^lock\b|^(?:\S+ )*xchg\s.*\(|^mfence")  # x86, in AT&T's syntax

_SECTION = re.compile(r"Disassembly of section (.*):$")
# A local label (.L) does not begin a function.
_FUNCTION = re.compile(r"([0-9a-f]+) <((?!\.L).*)>:$")
_INSTRUCTION = re.compile(r" *([0-9a-f]+):\s+(\S.*)$")
# In the line of its instruction, by objdump's -w.
_RELOCATION = re.compile(r"\t(?=[0-9a-f]+: R_)")
_COMMENT = re.compile(r"\s*//.*")  # aarch64's


class Relocation(NamedTuple):
    at: int
    kind: str
    symbol: str
    addend: int


class Instruction:
    def __init__(self, at, text, relocations=()):
        self.at, self.text, self.relocations = at, text, list(relocations)


class Function:
    def __init__(self, section, name, start):
        self.section, self.name, self.start, self.instructions = section, name, start, []


def output(*command):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


class Tools:
    """The binutils for the machine of a compiler's programs."""

    def __init__(self, *compiler):
        """`compiler` is the command with its flags; without it, the tools of this machine."""
        self.triple = output(*compiler, "-dumpmachine").strip() if compiler else ""
        # Sanitizers change the machine code, and -m32 is another machine with the same name.
        self.is_plain = not any(flag.startswith(("-fsanitize", "-m32")) for flag in compiler)
        self.objdump, self.objcopy, self.nm, self.size = map(
            self._find, ("objdump", "objcopy", "nm", "size"))

    def can_read(self, *machines):
        """Whether code for one of `machines` ("x86_64", "aarch64") is compiled and can be read."""
        return (self.is_plain and self.triple.split("-")[0] in machines and
                None not in (self.objdump, self.objcopy, self.nm, self.size))

    def functions(self, binary, syntax="att"):
        """All functions of an object file or program, in order. `syntax` is x86's: att or intel."""
        options = ["-M", syntax] if syntax != "att" else []
        listing = output(self.objdump, "-drw", "--no-show-raw-insn", *options, binary)
        found, section = [], ""
        for line in listing.splitlines():
            if match := _INSTRUCTION.match(line):
                text, *relocations = _RELOCATION.split(match[2])
                found[-1].instructions.append(Instruction(
                    int(match[1], 16), _COMMENT.sub("", text.replace("\t", " ")).strip(),
                    map(_relocation, relocations)))
            elif match := _FUNCTION.match(line):
                found.append(Function(section, match[2], int(match[1], 16)))
            elif match := _SECTION.match(line):
                section = match[1]
                found.append(Function(section, section, 0))
        return [each for each in found if each.instructions]

    def section(self, binary, name, folder):
        """The address and the bytes of a section; `folder` is for temporary files."""
        for line in output(self.objdump, "-h", "-w", binary).splitlines():
            fields = line.split()
            if len(fields) > 3 and fields[1] == name:
                path = os.path.join(folder, "bytes")
                subprocess.run([self.objcopy, "--dump-section", f"{name}={path}", binary,
                                os.path.join(folder, "copy")], check=True)
                with open(path, "rb") as file:
                    return int(fields[3], 16), file.read()
        return 0, b""

    def section_sizes(self, binary):
        """{name: bytes}"""
        lines = map(str.split, output(self.size, "-A", binary).splitlines()[2:])
        return {fields[0]: int(fields[1]) for fields in lines if len(fields) == 3}

    def symbol_sizes(self, binary):
        """{name: bytes}, of the symbols that have a size."""
        lines = map(str.split, output(self.nm, "-S", binary).splitlines())
        return {fields[3]: int(fields[1], 16) for fields in lines if len(fields) == 4}

    def symbols(self, binary):
        """The lines of nm, with names as in the source."""
        return output(self.nm, "-C", binary).splitlines()

    def _find(self, name):
        return shutil.which(f"{self.triple}-{name}") or shutil.which(name)


def _relocation(text):
    at, kind, what = re.match(r"([0-9a-f]+): (R_\w+)\s+(\S+)", text).groups()
    symbol, sign, addend = re.match(r"(.*?)(?:([+-])0x([0-9a-f]+))?$", what).groups()
    return Relocation(int(at, 16), kind, symbol,
                      int(addend or "0", 16) * (-1 if sign == "-" else 1))
