#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""Checks every restartable sequence of a program in machine code (x86-64, aarch64).

    cpu_sequences.py SOURCE [EMULATOR [FLAG...]] -- COMPILER [FLAG...]

The script reads their descriptions from the program, as the kernel does. A sequence has no locked
or exclusive instruction and no call; it is entered only at its beginning; its last instruction is the
one store that commits (on aarch64 a release, or a store after a barrier). The signature precedes the
place where the kernel continues after an interruption. The program is also run. Exits with 77 if
there is nothing to check: another machine, or no binutils for it.
"""
import os
import re
import struct
import subprocess
import sys
import tempfile

from disassembly import Tools

FEWEST = 13  # none to four words, any number, for two clocks; and a change of the lane


class X86:
    signature = 0x53053053
    forbidden = re.compile(r"^lock\b|^xchg\s.*\(|^[lms]fence|^syscall|^int\b|"
                           r"^(?:call|ret|bnd (?:call|ret)|jmp\s+\*)")
    jump = re.compile(r"^j\w+\s+(?:0x)?([0-9a-f]+)\b")
    store = re.compile(r"^mov\w* [^(]*,\S*\(.*\)$")

    @classmethod
    def faults(cls, code):
        if not cls.store.match(code[-1]):
            yield f"ends with {code[-1]}"


class Arm:
    signature = 0xd428bc00
    # Exclusives; the atomic instructions of the large system extensions; barriers; calls.
    forbidden = re.compile(r"^(?:lda?|stl?)x[rp]|^clrex|"
                           r"^(?:cas|swp)|^(?:ld|st)(?:add|clr|eor|set|[su]max|[su]min)|"
                           r"^[di]sb|^(?:bl|blr|br|ret|svc|hvc|eret)\b")
    jump = re.compile(r"^(?:b(?:\.\w+)?|cbn?z\s+\w+,|tbn?z\s+\w+,\s*#\w+,)\s+(?:0x)?([0-9a-f]+)\b")

    @staticmethod
    def faults(code):
        barriers = [i for i, text in enumerate(code) if text.startswith("dmb")]
        if barriers:  # in front of the last store, and nowhere else
            if barriers != [len(code) - 2] or not re.match(r"^str\s", code[-1]):
                yield f"a barrier, and ends with {code[-1]}"
        elif not re.match(r"^stlr\s", code[-1]):
            yield f"ends with {code[-1]}"
        elif sum(text.startswith("stlr") for text in code) != 1:
            yield "commits more than once"


MACHINES = {"x86_64": X86, "aarch64": Arm}


def faults_of(tools, binary, folder):
    machine = MACHINES[tools.triple.split("-")[0]]
    code = {each.at: each.text for function in tools.functions(binary)
            for each in function.instructions}
    jumps = [(at, int(match[1], 16)) for at, text in code.items()
             if (match := machine.jump.match(text))]
    _, described = tools.section(binary, "__rseq_cs", folder)
    failures, failure_bytes = tools.section(binary, "__rseq_failure", folder)
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
            if machine.forbidden.match(text):
                yield f"{name}: {text}"
        for fault in machine.faults([text for _, text in inside]):
            yield f"{name}: {fault}"
        for at, target in jumps:
            if start < target < start + size and not start <= at < start + size:
                yield f"{name}: entered from {at:x}"
        before = failed - failures
        if (failure_bytes[before - 4:before] != struct.pack("<I", machine.signature) or
                start <= failed < start + size or failed not in code):
            yield f"{name}: no signature where it fails"
    print(f"{len(sequences)} sequences of at most {longest} instructions")
    if len(sequences) < FEWEST:
        yield f"only {len(sequences)} sequences"


def self_test():
    """That what must not be there would be found."""
    for machine, texts in ((X86, ("lock addl $1,(%rax)", "xchg %eax,(%rdx)", "call 12", "mfence")),
                           (Arm, ("ldxr w0, [x1]", "ldaxr x0, [x1]", "stxr w0, w1, [x2]",
                                  "stlxr w0, w1, [x2]", "ldaxp x0, x1, [x2]", "cas w0, w1, [x2]",
                                  "casal w0, w1, [x2]", "swpal w0, w1, [x2]", "ldadd w0, w1, [x2]",
                                  "ldaddal w0, w1, [x2]", "stadd w0, [x2]", "ldsetl w0, w1, [x2]",
                                  "bl 400 <f>", "ret", "svc #0x0", "isb"))):
        for text in texts:
            assert machine.forbidden.match(text), text
    for text in ("ldr w8, [x1, #4]", "ldp x10, x11, [x9], #16", "stlr w10, [x9]", "str xzr, [x0]",
                 "b.ne 400 <f>", "and w11, w10, #0xffff", "ldrh w0, [x1]", "ldar w0, [x1]"):
        assert not Arm.forbidden.match(text), text
    assert not list(Arm.faults(["ldr x0, [x1]", "stlr w10, [x9]"]))
    assert not list(Arm.faults(["stlr x0, [x1]", "dmb ish", "str x11, [x10]"]))
    for bad in (["str w10, [x9]"], ["stlr w1, [x2]", "stlr w10, [x9]"],
                ["dmb ish", "add x0, x0, #1", "str w1, [x2]"]):
        assert list(Arm.faults(bad)), bad


def main(arguments):
    self_test()
    split = arguments.index("--")
    ours, command = arguments[:split], arguments[split + 1:]
    source, emulator = ours[0], ours[1:]
    tools = Tools(*command)
    if not tools.can_read(*MACHINES):
        print("no code that this test can read")
        return 77
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        for flags in (["-O2", "-DNDEBUG"], ["-O2", "-fPIC"], ["-O0"]):
            # Without -pie the descriptions hold what they will hold when they are loaded.
            binary = os.path.join(folder, "sequences")
            subprocess.run([*command, *flags, source, "-no-pie", "-o", binary], check=True)
            faults += [f"{fault} ({' '.join(flags)})"
                       for fault in faults_of(tools, binary, folder)]
            if subprocess.run([*emulator, binary], check=False).returncode != 0:
                faults.append(f"records were refused ({' '.join(flags)})")
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
