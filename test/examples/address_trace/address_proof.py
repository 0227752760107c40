#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""The references of address-trace next to those that valgrind's lackey sees in the same run.

    address_proof.py --address-trace PROGRAM --trace-reduce PROGRAM [--flags FLAGS]... SOURCE...

The sources, each with a main of its own, become one program by `address-trace cc`, which runs under lackey
and is traced. Every reference to the heap, globals and shared memory that lackey sees in the program's own
code must be in the trace, with the same address, size and kind, in the same order for each thread, and
nothing else. 77: valgrind is not here. With TRACE_RING_QUICK in the environment the first flags only.

Where lackey counts otherwise, and what is compared then:
- an atomic update is a load and a modify, or a modify alone, also if its compare fails; so is an atomic
  store, which is an exchange
- a copy that the compiler has expanded, or that the C library does, is as many references as it takes:
  all of its bytes must be touched, and none beside
- what is longer than a register, or of an odd size, may be split: all of its bytes must be touched
- a load whose result nobody uses is not seen by valgrind (the programs have none)
Left out on both sides are stacks, and in lackey what no source says: constants, and the addresses of
functions and of thread-local variables, which are in sections of their own.
"""
import argparse
import bisect
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../machine_code"))
from disassembly import Tools  # noqa: E402

KINDS = {"load": "L", "store": "S", "update": "M", "failed_compare": "M"}
ENTRY_BYTES, PLACE_BYTES, FIRST_ENTRY = 16, 131072, 128  # instrument/open_references.hpp
STACK = 1 << 23


def unpack(packed):
    """References as (kind, address, size, site), as the table in instrument/references.hpp has them."""
    slots, site, at, out = {}, 0, 0, []
    while at < len(packed):
        code, count = packed[at] >> 4, packed[at] & 15
        turned = int.from_bytes(packed[at + 1:at + 1 + count], "little")
        difference = (turned >> 1) ^ -(turned & 1)
        at += 1 + count
        slot = slots.setdefault(site // 4 % 1024, [0, 0])
        if code == 15:
            slot[0] = (site + difference) % 2**64
            continue
        site = slot[0]
        if code == 10:
            continue
        own = slots.setdefault(site // 4 % 1024, [0, 0])
        own[1] = (own[1] + difference) % 2**64
        if code < 10:
            out.append(("load" if code < 5 else "store", own[1], 1 << code % 5, site))
            continue
        if code in (11, 12):
            continue
        head = packed[at]
        at += 1
        size = head & 127
        if size >= 124:  # an allocation, which references nothing
            at += size - 123
            continue
        if size >= 120:
            more = size - 119
            size = int.from_bytes(packed[at:at + more], "little")
            at += more
        names = ("load", "store") if code == 13 else ("update", "failed_compare")
        out.append((names[head >> 7], own[1], size, site))
    return out


class Ranges:
    """Sets of addresses, as [begin, end)."""

    def __init__(self, all_of_them):
        self.all = sorted(set(all_of_them))
        self.begins = [begin for begin, _ in self.all]

    def has(self, address):
        at = bisect.bisect_right(self.begins, address) - 1
        return at >= 0 and address < self.all[at][1]


def sections(map_file, objects):
    """Input sections of objects, and all output sections: (name, begin, end)."""
    own, output, name, is_inner = [], [], None, False
    with open(map_file, encoding="utf-8") as lines:
        for line in lines:
            if "Linker script and memory map" in line:
                break
        for line in lines:
            words = line.split()
            if len(words) == 1 and re.match(r" ?\.\S+$", line):
                name, is_inner = words[0], line.startswith(" ")
                continue
            found = re.match(r"( ?)(\.\S+)?\s+0x([0-9a-f]+)\s+0x([0-9a-f]+)(?:\s+(\S+))?", line)
            if found:
                if found[2]:
                    name, is_inner = found[2], found[1] == " "
                begin, size = int(found[3], 16), int(found[4], 16)
                if size and name:
                    if not is_inner and not found[5]:
                        output.append((name, begin, begin + size))
                    elif is_inner and os.path.basename(found[5] or "") in objects:
                        own.append((name, begin, begin + size))
            name = None
    return own, output


class Mismatch(Exception):
    pass


class Thread:
    """What one place of a thread has recorded, and how far lackey has confirmed it."""

    exchanged = set()  # addresses of atomic stores
    copies = set()     # sites of copies

    def __init__(self, references):
        self.all = references
        self.at = 0
        self.open = []  # of which not all bytes are touched: [kind, begin, end, touched, site]

    def take(self, kind, address, size, own):
        """Whether a reference that lackey saw is the next one, or a part of it."""
        if own and self.is_next(kind, address, size):
            return True
        while True:
            for each in self.open:
                if each[0] == kind and each[1] <= address and address + size <= each[2] and \
                        (own or each[4] in self.copies):
                    each[3].update(range(address, address + size))
                    if len(each[3]) == each[2] - each[1]:
                        self.open.remove(each)
                    return True
            # Behind the next ones there may be one that this is a part of: a copy is a load and a
            # store, and what does it may begin with either.
            inside = [each for each in self.all[self.at:self.at + 2]
                      if KINDS[each[0]] == kind and each[1] <= address and
                      address + size <= each[1] + each[2] and (own or each[3] in self.copies)]
            if not inside:
                return not own
            name, begin, bytes_, site = self.all[self.at]
            self.open.append([KINDS[name], begin, begin + bytes_, set(), site])
            self.at += 1

    def is_next(self, kind, address, size):
        if self.at == len(self.all) or self.all[self.at][1:3] != (address, size):
            return False
        name = self.all[self.at][0]
        # What is loaded and stored at once: by assembler.
        then = self.all[self.at + 1][:3] if self.at + 1 < len(self.all) else None
        if kind == "M" and name == "load" and then == ("store", address, size):
            self.at += 2
            return True
        before = self.all[self.at - 1][:3] if self.at > 0 else None
        if kind == KINDS[name] or (kind == "M" and name == "store" and
                                   (address in self.exchanged or before == ("load", address, size))):
            self.at += 1
            return True
        # The first part of an update.
        return kind == "L" and (KINDS[name] == "M" or address in self.exchanged)


def read_log(log, own, hooks):
    """What lackey saw since the program's own code began: (code, instruction, kind, address, size), where
    code is o, h or - for own, hooks and others."""
    starts = {b"I  %08x" % each: "o" for each in own} | {b"I  %08x" % each: "h" for each in hooks}
    out = []
    with open(log, "rb") as lines:
        for line in lines:
            if line[:1] == b"I" and starts.get(line[:line.find(b",")]) == "o":
                break
        code, instruction = "o", int(line[3:line.find(b",")], 16)
        for line in lines:
            comma = line.find(b",")
            if line[:3] == b"I  ":
                code = starts.get(line[:comma], "-")
                instruction = line[3:comma]
            elif line[:3] in (b" L ", b" S ", b" M "):
                out.append((code, instruction, chr(line[1]), int(line[3:comma], 16),
                            int(line[comma + 1:])))
    return out


def compare(seen, places, not_data, constants, stacks):
    """The number of references that both saw."""
    threads = {}
    current, first_place, place, seen_end, count = None, None, None, False, 0
    for code, instruction, kind, address, size in seen:
        if code == "h":
            # Which place is used: the hook counts its calls there, looks where it ends, and then
            # stores the reference.
            if kind == "M" and size == 8 and address % 64 == 8:
                place, seen_end = address - 8, False
            elif place is not None and (kind, address, size) == ("L", place, 4):
                seen_end = True
            elif place is not None and kind == "S" and seen_end:
                if 0 <= address - place - FIRST_ENTRY < 6144 * ENTRY_BYTES:
                    if first_place is None:
                        first_place = place
                    number = 1 + (place - first_place) // PLACE_BYTES
                    if number not in threads:
                        threads[number] = Thread(places.pop(number, []))
                    current, place = threads[number], None
            continue
        if current is None or stacks.has(address) or not_data.has(address):
            continue
        if not current.take(kind, address, size, code == "o"):
            if kind == "L" and constants.has(address):
                continue
            wanted = current.all[current.at:current.at + 3]
            raise Mismatch(f"lackey: {kind} {address:x},{size} by the instruction at "
                           f"{instruction.decode()}; the trace goes on with "
                           f"{[(n, hex(a), s, hex(site)) for n, a, s, site in wanted]}")
        count += code == "o"
    for number, each in sorted(threads.items()):
        if each.at != len(each.all):
            raise Mismatch(f"place {number}: lackey has nothing of {each.all[each.at]}")
        for kind, begin, end, touched, _ in each.open:
            raise Mismatch(f"place {number}: of {kind} {begin:x},{end - begin} lackey has "
                           f"{len(touched)} bytes")
    if any(places.values()):
        raise Mismatch(f"lackey has nothing of places {sorted(places)}")
    return count


def run(command):
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def build(asked, flags, folder):
    """One program that does what each source does, and the names of the objects."""
    calls, objects = "", []
    for source in asked.sources:
        name = "main_of_" + os.path.basename(source).partition(".")[0]
        is_c = source.endswith(".c")
        objects.append(os.path.join(folder, name + ".o"))
        run([asked.address_trace, *(["cc"] if is_c else ["c++", "-std=c++17"]), *flags.split(), "-g", "-gdwarf-4",
             "-pthread", "-w", "-fno-jump-tables", f"-Dmain={name}", "-c", source, "-o", objects[-1]])
        calls += ('extern "C" ' if is_c else "") + f"int {name}();\n"
    calls += "int main() {\n" + "".join(
        f"    {os.path.basename(each)[:-2]}();\n" for each in objects) + "}\n"
    driver = os.path.join(folder, "driver.cpp")
    with open(driver, "w", encoding="utf-8") as file:
        file.write(calls)
    run([asked.address_trace, "c++", "-no-pie", "-pthread", "-gdwarf-4", *flags.split(), driver, *objects, "-o",
         os.path.join(folder, "program"), f"-Wl,-Map={os.path.join(folder, 'map')}"])
    return [os.path.basename(each) for each in objects]


def prove(asked, flags, folder):
    def at(name):
        return os.path.join(folder, name)

    objects = build(asked, flags, folder)
    plain = run([at("program")]).stdout
    done = run([asked.address_trace, "run", "-o", at("trace"), "--", "valgrind", "--tool=lackey",
                "--trace-mem=yes", f"--log-file={at('log')}", at("program")])
    if done.stdout != plain:
        raise Mismatch(f"the program prints {done.stdout!r}, and without tracing {plain!r}")
    if not re.search(r"^gaps +none$", done.stderr, re.M):
        raise Mismatch(f"there are gaps: {done.stderr}")
    records = run([asked.trace_reduce, "--event", "references", "--format", "json",
                   at("trace")]).stdout
    places = {}
    for line in records.splitlines():
        fields = json.loads(line).get("fields", {})
        if "packed" in fields:
            places.setdefault(fields["place"], {})[fields["sequence"]] = unpack(
                bytes(fields["packed"]))
    own, output = sections(at("map"), objects)
    hooks, _ = sections(at("map"), ["address-trace.o"])
    own_code = Ranges([(b, e) for name, b, e in own if name.startswith(".text")])
    hook_code = Ranges([(b, e) for name, b, e in hooks if name.startswith(".text")])
    calls, swaps, instructions, of_hooks, copies = set(), set(), set(), set(), set()
    for each in [each for function in Tools().functions(at("program"))
                 for each in function.instructions]:
        address, (what, *to) = each.at, each.text.split(maxsplit=1)
        if hook_code.has(address):
            of_hooks.add(address)
        if not own_code.has(address):
            continue
        instructions.add(address)
        if what.startswith("call"):
            calls.add(b"%08x" % address)
            if to and to[0].endswith("_range>"):
                copies.add(address + 5)
        elif what.startswith("xchg"):
            swaps.add(b"%08x" % address)
    seen = read_log(at("log"), instructions, of_hooks)
    # Around what calls push. Valgrind puts the first thread's stack at the upper end, those of others
    # are mapped by the C library, 8 MiB each.
    near = {address // STACK for _, at_, kind, address, _ in seen if kind == "S" and at_ in calls}
    stacks = Ranges([(each * STACK - STACK // 2, (each + 1) * STACK + STACK // 2) for each in near])
    not_data = Ranges([(b, e) for name, b, e in own if name.startswith(".rodata.cst")] +
                      [(b, e) for name, b, e in output if name.startswith(".got")])
    Thread.copies = copies
    Thread.exchanged = {address for _, at_, kind, address, _ in seen if kind == "M" and at_ in swaps}
    wanted = {place: [each for number in sorted(of) for each in of[number]
                      if not stacks.has(each[1])] for place, of in places.items()}
    # Numbers in the code that are too long for it lie among the texts, without a name.
    named = Ranges([(int(begin, 16), int(begin, 16) + int(size, 16)) for begin, size in re.findall(
        r"^(\w+) (\w+) [rR] ", run(["nm", "-S", at("program")]).stdout, re.M)])
    constants = Ranges([(each, each + 1) for name, b, e in own if name.startswith(".rodata")
                        for each in range(b, e) if not named.has(each)])
    return compare(seen, wanted, not_data, constants, stacks)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--address-trace", required=True)
    parser.add_argument("--trace-reduce", required=True)
    parser.add_argument("--flags", action="append")
    parser.add_argument("sources", nargs="+")
    asked = parser.parse_args()
    if not shutil.which("valgrind"):
        print("address_proof.py: there is no valgrind here", file=sys.stderr)
        return 77
    failed = False
    wanted = asked.flags or ["-O2"]
    for flags in wanted[:1] if os.environ.get("TRACE_RING_QUICK") else wanted:
        with tempfile.TemporaryDirectory() as folder:
            try:
                count = prove(asked, flags, folder)
                print(f"{flags}: {count} references agree")
            except Mismatch as what:
                print(f"{flags}: {what}")
                failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
