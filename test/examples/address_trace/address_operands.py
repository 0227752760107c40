#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""Checks in the machine code that address-trace's pass leaves no operand in memory without a hook.

    address_operands.py --address-trace PROGRAM [--flags FLAGS]... SOURCE...

Compiles each source by `address-trace cc` with each set of flags, disassembles the object with
objdump, and names each operand in memory that has no hook, and each hook that no operand follows.
Sources that include immintrin.h are compiled with -mavx2, too. Nothing is run. With
TRACE_RING_QUICK in the environment only the first set of flags is used, and the self-check is
shorter. Exits with 77 if objdump is missing.

Each function is interpreted symbolically over its basic blocks. Registers and stack slots hold sums
of unknowns. Where paths join, values that differ become a new unknown, or a multiple of the turns
of a loop. A call of __trace_ring_load4 makes the 4 bytes at the value of rdi pending. An operand in
memory must be pending on every path to it, with its kind, its size and its address, and takes what
is pending. The address need not be in the same register, but it must be the same sum. What is
pending ends with the next group of hooks, the next block's hook, or a call of another function.

- An operand may take a part of what is pending: structures are copied by several instructions.
- An operand that is read and written needs an update, or a load and a store. What -Oz makes of a
  store of 0 or -1 (and, or) needs a store.
- The hook of a compare and exchange follows it.
- The addresses of gathers and scatters are not followed. They need a hook of the same kind and lane
  size, and are counted as "by order".

Operands on the stack (their address contains rsp) need a hook only if another hook has the same
address and size. The others belong to the compiler: spilled registers, and arguments. No source has
these, which need none either: constants (.LCPI), tables of jumps (.LJTI), addresses in the GOT, the
stack protector's number, and what is not referenced (lea, nop, prefetch, clflush).

To show that the check can fail, each hook is taken away in turn. The operands behind it must be
named, and no others. One hook is also taken away in the assembler text of a program.
"""
import argparse
import bisect
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../machine_code"))
from disassembly import Tools  # noqa: E402

BINUTILS = Tools()
HOOK = re.compile(r"__trace_ring_(?:(load|store|update|compare)(\d+|_range|_lanes)|"
                  r"(gather|scatter|block|unseen))$")
LONG = "rax rcx rdx rbx rsp rbp rsi rdi r8 r9 r10 r11 r12 r13 r14 r15".split()
KEPT = "rbx rsp rbp r12 r13 r14 r15".split()  # by every call
BYTES = {"BYTE": 1, "WORD": 2, "DWORD": 4, "QWORD": 8, "XMMWORD": 16, "YMMWORD": 32, "ZMMWORD": 64,
         "TBYTE": 10, "OWORD": 16, "FWORD": 6}
NO_REFERENCE = re.compile(r"lea|nop|prefetch|clflush|clwb|cldemote")
# Of instructions whose first operand is in memory:
READS = re.compile(r"(cmp(?!xchg)|test|bt$|push|call|jmp|div|idiv|mul|imul|fld|fild|fadd|fsub|"
                   r"fmul|fdiv|fiadd|fisub|fimul|fidiv|fcom|ficom|v?ldmxcsr|fbld|x?rstor|ptest)")
CHANGES = re.compile(r"(add|sub|adc|sbb|and|or|xor|inc|dec|neg|not|shl|shr|sar|sal|rol|ror|rcl|"
                     r"rcr|shld|shrd|bts|btr|btc|xadd|xchg|cmpxchg(8b|16b)?)$")
# Of which the result depends on nothing but the operands.
PURE = re.compile(r"(and|or|xor|not|neg|imul|shl|shr|sar|sal|rol|ror|bswap|movzx|movsx|movsxd|"
                  r"popcnt|tzcnt|lzcnt|bsf|bsr|andn|shlx|shrx|sarx|rorx|blsr|blsi|bextr|bzhi)$")


def registers():
    """name: (the long register, its bytes)"""
    out = {}
    for name in LONG:
        out[name] = (name, 8)
        if name[1:].isdigit():
            out.update({name + end: (name, size) for end, size in (("d", 4), ("w", 2), ("b", 1))})
            continue
        out["e" + name[1:]] = (name, 4)
        out[name[1:]] = (name, 2)
        out[name[1:] + "l" if name[2] != "x" else name[1] + "l"] = (name, 1)
    return out | {each + "h": ("r" + each + "x", -1) for each in "abcd"}


REGISTERS = registers()
M64 = (1 << 64) - 1


class Unknowns:
    """What sums are made of. A sum is (((unknown, factor), ...), constant), modulo 2^64."""

    def __init__(self):
        self.number_of, self.keys, self.on_stack, self.made_at = {}, [], set(), []
        self.joins = []  # the block where it is made, of those that are made where paths join

    def of(self, key, on_stack=False, from_values=(), at=None):
        if key not in self.number_of:
            self.number_of[key] = len(self.keys)
            self.keys.append(key)
            made_at = frozenset() if at is None else frozenset([at])
            for each in from_values:
                made_at = made_at.union(*(self.made_at[unknown] for unknown, _ in each[0]))
            self.made_at.append(made_at)
            self.joins.append(key[1] if key[0] in ("join", "turns") else None)
            if on_stack:
                self.on_stack.add(self.number_of[key])
        return (((self.number_of[key], 1),), 0)

    def is_on_stack(self, value):
        return any(unknown in self.on_stack and factor == 1 for unknown, factor in value[0])

    def low_half(self, value):
        """Its lower 32 bits, zero extended."""
        terms, constant = dict(), value[1]
        for unknown, factor in value[0]:
            key = self.keys[unknown]
            inner = key[1] if key[0] == "low" else (((unknown, 1),), 0)
            constant += inner[1] * factor
            for each, its in inner[0]:
                terms[each] = (terms.get(each, 0) + its * factor) & 0xFFFFFFFF
        inner = (tuple(sorted((each, its) for each, its in terms.items() if its)),
                 constant & 0xFFFFFFFF)
        if not inner[0] or (len(inner[0]) == 1 and inner[1] == 0 and inner[0][0][1] == 1 and
                            self.keys[inner[0][0][0]][0] == "byte"):
            return inner
        return self.of(("low", inner), from_values=[inner])

    def signed(self, value):
        """The lower 32 bits, sign extended."""
        low = self.low_half(value)
        if not low[0]:
            return number(low[1] - ((low[1] & 0x80000000) << 1))
        return self.of(("signed", low), from_values=[low])


def number(value):
    return ((), value & M64)


def add(one, other, factor=1):
    terms = dict(one[0])
    for unknown, its in other[0]:
        terms[unknown] = (terms.get(unknown, 0) + its * factor) & M64
    return (tuple(sorted((each, its) for each, its in terms.items() if its)),
            (one[1] + other[1] * factor) & M64)


def distance(one, other):
    """one - other, if that is a number, in two's complement."""
    if one[0] != other[0]:
        return None
    by = (one[1] - other[1]) & M64
    return by - (1 << 64) if by >> 63 else by


class Instruction:
    def __init__(self, at, end, text):
        self.at, self.end, self.text = at, end, text
        text = text.split("#")[0].strip()
        found = re.match(r"((?:(?:lock|rep|repn?[ze]|bnd|notrack|data16|cs|ds|es|xacquire|xrelease|"
                         r"addr32|rex\S*|\{\w+\})\s+)*)(\S+)\s*(.*)$", text)
        self.prefixes, self.name, operands = found[1].split(), found[2], found[3]
        self.relocations = []  # (at, type, symbol, addend)
        self.target = None
        if re.match(r"j|call|loop|xbegin", self.name) and re.match(r"[0-9a-f]+\b", operands):
            self.target = int(operands.split()[0], 16)
            operands = ""
        self.operands = [each.strip() for each in re.split(r",(?![^\[{]*[\]}])", operands)] \
            if operands else []

    @property
    def is_call(self):
        return self.name == "call"

    @property
    def callee(self):
        """The symbol that a call or a jump goes to."""
        for _, kind, symbol, _ in self.relocations:
            if re.match(r"R_X86_64_(PLT32|PC32|(REX_)?GOTPCRELX?)$", kind):
                return symbol
        return None

    @property
    def hook(self):
        """Also that at the end of a function, to which it jumps."""
        if self.name not in ("call", "jmp"):
            return None
        return HOOK.match(self.callee or "")


class Function:
    def __init__(self, section, name, start):
        self.section, self.name, self.start, self.all = section, name, start, []
        self.labels, self.cases = {}, set()
        self.pads = []  # (first byte of calls, the byte after, where the unwinder goes on)


def disassemble(path):
    functions = []
    for each in BINUTILS.functions(path, syntax="intel"):
        function = Function(each.section, each.name, each.start)
        if functions and functions[-1].section == each.section:
            functions[-1].all[-1].end = each.start
        for instruction in each.instructions:
            if function.all:
                function.all[-1].end = instruction.at
            function.all.append(Instruction(instruction.at, None, instruction.text))
            function.all[-1].relocations = instruction.relocations
        functions.append(function)
    add_landing_pads(path, functions)
    add_tables(path, functions)
    return functions


def add_tables(path, functions):
    """Labels of constants, by section, and where the tables of jumps lead to."""
    labels = {}
    for at, section, name in re.findall(r"^([0-9a-f]+) .{7} (\.rodata\S*)\t[0-9a-f]+ +(\S+)$",
                                        run([BINUTILS.objdump, "-t", path]).stdout, re.M):
        if name != section:
            labels.setdefault(section, []).append((int(at, 16), name))
    for each in labels.values():
        each.sort()
    tables, section = {}, ""
    for line in run([BINUTILS.objdump, "-r", path]).stdout.splitlines():
        if found := re.match(r"RELOCATION RECORDS FOR \[(.*)\]", line):
            section = found[1]
        elif found := re.match(r"([0-9a-f]+) (\S+) +(\.text[^+]*)\+0x([0-9a-f]+)", line):
            at, of = int(found[1], 16), labels.get(section, [])
            label = bisect.bisect_right(of, (at, "~")) - 1
            if label >= 0 and of[label][1].startswith(".LJTI"):
                to = int(found[4], 16) - ("PC" in found[2]) * (at - of[label][0])
                tables.setdefault(found[3], set()).add(to)
    for each in functions:
        each.labels = labels
        last = each.all[-1].end or each.all[-1].at + 1
        each.cases = {to for to in tables.get(each.section, ()) if each.start <= to < last}


def add_landing_pads(path, functions):
    """From the tables that say where the unwinder goes on after which call."""
    dump = run([BINUTILS.objdump, "-s", path]).stdout
    contents = {}
    for section, rows in re.findall(r"Contents of section (\S+):\n((?: .*\n)*)", dump):
        if section.startswith(".gcc_except_table"):
            contents[section] = bytes.fromhex("".join(
                row.split("  ")[0].strip().partition(" ")[2].replace(" ", "") for row in
                rows.splitlines()))
    at = {(each.section, each.start): each for each in functions} | \
        {(each.name, 0): each for each in functions}
    current = None
    for symbol, addend in re.findall(
            r"^[0-9a-f]+ R_X86_64_(?:PC)?(?:32|64)\s+([^\s+]+)(?:\+0x([0-9a-f]+))?$",
            run([BINUTILS.objdump, "-r", "-j", ".eh_frame", path]).stdout, re.M):
        place = symbol, int(addend or "0", 16)
        if symbol not in contents:
            current = at.get(place)
            continue
        table = contents[symbol][place[1]:]
        position = 2 if table[1] == 0xFF else number_at(table, 2)[1]
        position += 1  # numbers of variable length
        length, position = number_at(table, position)
        end = position + length
        while position < end:
            begin, position = number_at(table, position)
            size, position = number_at(table, position)
            pad, position = number_at(table, position)
            _, position = number_at(table, position)
            if pad:
                begin += current.start
                current.pads.append((begin, begin + size, current.start + pad))


def number_at(table, at):
    """A number in LEB128, and where the next begins."""
    value = shift = 0
    while True:
        value |= (table[at] & 127) << shift
        shift += 7
        at += 1
        if table[at - 1] < 128:
            return value, at


class State:
    """What is known before an instruction: values by register, slot ("s", terms, constant, bytes)
    and pending hook ("h", number); and pending hooks: (kind, size, length, sites, bytes taken)."""

    def __init__(self, values, pending=(), used=False, awaited=()):
        self.values, self.pending, self.used, self.awaited = values, pending, used, awaited

    def copy(self):
        return State(dict(self.values), self.pending, self.used, self.awaited)

    def as_key(self):
        return self.values, self.pending, self.used, self.awaited


class Checked:
    def __init__(self):
        self.by_address = self.by_order = self.hooks = 0
        self.faults = []  # (function, at, instruction, what)
        self.excused = set()  # instructions with operands on the stack that need none
        self.operands_of = {}  # hook: the instructions whose operands it tells


class Interpreter:
    def __init__(self, function, without=None):
        self.function = function
        self.code = [each for each in function.all if each.at != without]
        self.unknowns = Unknowns()
        self.steps = {}  # (block, name): what grows in a loop; "none": it does not
        self.blocks = self.find_blocks()
        self.found = None
        self.used_sites = set()
        self.locals = set()  # on the stack: (terms, constant, bytes)
        self.looping = self.find_loops()

    # --- The graph ------------------------------------------------------------------------------
    def find_blocks(self):
        code = self.code
        inside = {each.at: number_ for number_, each in enumerate(code)}
        starts = {0} if code else set()
        for number_, each in enumerate(code):
            if each.target in inside and not each.is_call and not each.relocations:
                starts.add(inside[each.target])
            if re.match(r"j|ret|ud2|call|hlt", each.name) and number_ + 1 < len(code):
                if not each.hook or each.name == "jmp":
                    starts.add(number_ + 1)
        starts.update(inside[pad] for _, _, pad in self.function.pads)
        starts.update(inside[case] for case in self.function.cases)
        order = sorted(starts)
        number_of = {start: number_ for number_, start in enumerate(order)}
        blocks = []
        for start, end in zip(order, order[1:] + [len(code)]):
            last, to = code[end - 1], []
            if re.match(r"j", last.name) and last.target in inside and not last.relocations:
                to.append(number_of[inside[last.target]])
            if end < len(code) and not re.match(r"(jmp|ret|ud2|hlt)", last.name):
                to.append(number_of[end])
            if last.name == "jmp" and last.target is None and last.callee is None:
                to.extend(number_of[inside[case]] for case in self.function.cases)
            if last.is_call:
                to.extend(number_of[inside[pad]] for begin, after, pad in self.function.pads
                          if begin <= last.at < after)
            blocks.append([start, end, to, []])
        for number_, (_, _, to, _) in enumerate(blocks):
            for each in to:
                blocks[each][3].append(number_)
        return blocks

    def find_loops(self):
        """The blocks that lead to themselves."""
        out = set()
        for number_ in range(len(self.blocks)):
            seen, left = set(), list(self.blocks[number_][2])
            while left:
                each = left.pop()
                if each not in seen:
                    seen.add(each)
                    left.extend(self.blocks[each][2])
            if number_ in seen:
                out.add(number_)
        return out

    def entry(self):
        return State({name: self.unknowns.of(("at entry", name), name == "rsp") for name in LONG})

    def joined(self, block, states):
        if len(states) == 1:
            return states[0].copy()
        pending, sources = [], []
        for each in states[0].pending:
            places = [next((n for n, other in enumerate(state.pending) if other[:3] == each[:3] and
                            n not in (taken[i] for taken in sources)), None)
                      for i, state in enumerate(states)]
            if None in places:
                continue
            of_all = [state.pending[n] for state, n in zip(states, places)]
            taken = 0
            for other in of_all:
                taken |= other[4]
            pending.append((*each[:3], frozenset().union(*(other[3] for other in of_all)), taken))
            sources.append(places)
        keys = [(key, [key] * len(states)) for key in states[0].values if key[0] != "h" and
                all(key in state.values for state in states[1:])]
        keys += [(("h", n), [("h", place) for place in places]) for n, places in enumerate(sources)]
        values, groups = {}, {}
        for key, in_each in keys:
            its = [state.values[name] for state, name in zip(states, in_each)]
            own = any(self.unknowns.joins[unknown] == block for unknown, _ in its[0][0])
            if all(value == its[0] for value in its[1:]) and not own:
                values[key] = its[0]
                continue
            if (in_steps := self.in_steps(block, key, its)) is not None:
                values[key] = in_steps
                continue
            # Sums that differ by the same number on all paths share an unknown.
            group = tuple((terms, (constant - its[0][1]) & M64) for terms, constant in its)
            if group not in groups:
                on_stack = all(self.unknowns.is_on_stack(value) for value in its)
                joint = self.unknowns.of(("join", block, key, on_stack), on_stack)
                groups[group] = joint, its[0][1]
            joint, first = groups[group]
            values[key] = add(joint, number(its[0][1] - first))
        return State(values, tuple(pending), any(state.used for state in states),
                     tuple(each for each in states[0].awaited
                           if all(each in state.awaited for state in states[1:])))

    def in_steps(self, block, key, its):
        """What grows by the same number in each turn of a loop, as a multiple of the turns."""
        turns = self.unknowns.of(("turns", block))
        plain = [self.unknowns.of(("join", block, key, on_stack), on_stack)
                 for on_stack in (False, True)]
        begin, step, seen = None, None, self.steps.get((block, key))
        if seen == "none":
            return None
        assumed = [seen] if seen else plain
        for value in its:
            by = next((by for each in assumed if (by := distance(value, each)) is not None), None)
            if by is None:
                if begin not in (None, value) or any(self.unknowns.joins[unknown] == block
                                                     for unknown, _ in value[0]):
                    begin = "none"
                    break
                begin = value
            elif step not in (None, by):
                begin = "none"
                break
            else:
                step = by
        if begin == "none" or begin is None or not step:
            if seen:
                self.steps[block, key] = "none"
            return None
        found = add(begin, turns, step)
        if seen and found != seen:
            self.steps[block, key] = "none"
            return None
        self.steps[block, key] = found
        return found

    def check(self):
        before, after = [None] * len(self.blocks), [None] * len(self.blocks)
        if not self.blocks:
            return Checked()
        self.found = Checked()
        left, rounds = {0}, 0
        while left:
            number_ = min(left)
            left.remove(number_)
            rounds += 1
            if rounds > 60 * len(self.blocks) + 100:
                raise RuntimeError(f"{self.function.name}: values do not settle")
            came = [after[each] for each in self.blocks[number_][3] if after[each] is not None]
            if number_ == 0:
                came.append(self.entry())
            start = self.joined(number_, came)
            if before[number_] is not None and before[number_].as_key() == start.as_key():
                continue
            before[number_] = start.copy()
            after[number_] = self.interpret(number_, start)
            left.update(self.blocks[number_][2])
        self.found, self.used_sites = Checked(), set()
        for number_, each in enumerate(before):
            if each is not None:
                self.interpret(number_, each.copy())
        for number_, (start, end, _, _) in enumerate(self.blocks):
            for each in self.code[start:end]:
                if before[number_] is None and not re.match(r"nop|xchg|int3|ud2", each.name):
                    self.fault(each, "no way leads here that this check can follow")
        for each in self.code:
            hook = each.hook
            if hook is None:
                continue
            self.found.hooks += 1
            # Lanes may all be inactive, and what a copy loads may be a constant.
            exact = hook[1] is not None # and hook[2].isdigit()
            if exact and each.at not in self.used_sites:
                self.fault(each, "nothing references what the hook tells")
        return self.found

    # --- One instruction ------------------------------------------------------------------------
    def interpret(self, block, state):
        start, end, _, _ = self.blocks[block]
        for each in self.code[start:end]:
            self.step(each, state, block in self.looping)
        return state

    def fault(self, at, what):
        self.found.faults.append((self.function.name, at.at, at.text, what))

    def fresh(self, each, state, what, is_looping):
        """An unknown for what this instruction makes; what it made the last time is another."""
        value = self.unknowns.of(("made", each.at, what), at=each.at)
        if is_looping:
            made_at = self.unknowns.made_at
            for key, its in state.values.items():
                if any(each.at in made_at[unknown] for unknown, _ in its[0]):
                    renamed = number(its[1])
                    for unknown, factor in its[0]:
                        old = (((unknown, 1),), 0)
                        if each.at in made_at[unknown]:
                            old = self.unknowns.of(("before", each.at, unknown),
                                                   unknown in self.unknowns.on_stack)
                        renamed = add(renamed, old, factor)
                    state.values[key] = renamed
        return value

    def relocation(self, each, is_memory):
        """The sum that a relocation adds to an operand, and its type."""
        has_number = any(re.match(r"-?0x|\d", operand) for operand in each.operands)
        has_memory = any("[" in operand or re.match(r".*[cdefgs]s:0x", operand)
                         for operand in each.operands)
        for at, kind, symbol, addend in each.relocations:
            of_number = has_number and (not has_memory or at == each.end - 4) and \
                not re.search(r"PC|GOT|TLS", kind)
            if of_number == is_memory and has_memory:
                continue
            space = "got" if "GOT" in kind else "tp" if "TPOFF" in kind else "symbol"
            if "GOTTPOFF" in kind:
                space = "got tp"
            if re.search(r"PC|GOT|TLSGD|TLSLD", kind):
                addend += each.end - at
            return add(self.unknowns.of((space, symbol)), number(addend)), kind, symbol
        return None

    def address(self, each, operand, state):
        """Of an operand in memory; None: of a vector of addresses."""
        found = re.search(r"(?:([cdefgs]s):)?(?:\[([^\]]*)\]|(0x[0-9a-f]+))", operand)
        value = number(0)
        if found[1] in ("fs", "gs"):
            value = self.unknowns.of(("segment", found[1]))
        relocated = self.relocation(each, True)
        if relocated:
            value = add(value, relocated[0])
        for sign, part in re.findall(r"([+-]?)([^+-]+)", found[2] or found[3]):
            name, _, factor = part.partition("*")
            if name == "rip":
                if not relocated:
                    value = add(value, self.unknowns.of(("code", self.function.section)))
                continue
            if re.match(r"[xyz]mm", name):
                return None
            if name in ("riz", "eiz"):
                continue
            if name in REGISTERS:
                long, size = REGISTERS[name]
                its = state.values[long]
                value = add(value, its if size == 8 else self.unknowns.low_half(its),
                            int(factor or "1"))
            elif not relocated:  # with a relocation objdump prints what the linker overwrites
                value = add(value, number(int(part, 16)), -1 if sign == "-" else 1)
        return value

    def step(self, each, state, is_looping):
        hook = each.hook
        if hook:
            self.begin_hook(each, hook, state)
            return self.clobber(each, state, is_looping)
        memory = [n for n, operand in enumerate(each.operands)
                  if re.search(r"\b(PTR|BCST)\b|\[|\b[cdefgs]s:0x", operand)]
        address, loaded = None, None
        if memory and not NO_REFERENCE.match(each.name):
            for n in memory:
                address = self.address(each, each.operands[n], state)
                loaded = self.reference(each, n, address, state, is_looping) or loaded
        if re.match(r"(call|jmp)$", each.name):
            self.jump(each, state)
        if each.is_call:
            return self.clobber(each, state, is_looping)
        if re.match(r"ret", each.name):
            return self.end_of_group(each, state)
        return self.assign(each, state, memory, address, loaded, is_looping)

    def jump(self, each, state):
        if each.is_call or each.callee is not None:
            # What copies and sets memory references what is pending.
            for pending in state.pending:
                if pending[1] in ("_range", "_lanes"):
                    self.used_sites |= pending[3]
            self.end_of_group(each, state)

    def clobber(self, each, state, is_looping):
        argument = state.values["rdi"]
        for name in LONG:
            if name not in KEPT:
                state.values[name] = self.fresh(each, state, name, is_looping and name == "rax")
        if each.callee == "__tls_get_addr":
            state.values["rax"] = self.unknowns.of(("tls", argument), from_values=[argument])

    def end_of_group(self, each, state):
        for at, text, size, _ in state.awaited:
            self.found.faults.append((self.function.name, at, text,
                                      f"no hook of a compare of {size} bytes follows"))
        for key in [key for key in state.values if key[0] == "h"]:
            del state.values[key]
        state.pending, state.used, state.awaited = (), False, ()

    def begin_hook(self, each, hook, state):
        address = state.values["rdi"]
        if hook[1] == "compare":
            for n, (before, _, size, value) in enumerate(state.awaited):
                if size == int(hook[2]) and value == address:
                    self.used_sites.add(each.at)
                    self.found.operands_of.setdefault(each.at, set()).add(before)
                    state.awaited = state.awaited[:n] + state.awaited[n + 1:]
                    break
            return
        if state.used or state.awaited or hook[3] == "block":
            self.end_of_group(each, state)
        if hook[3] == "block":
            return
        kind, size, length = hook[1] or hook[3], hook[2], None
        if kind in ("gather", "scatter"):
            kind, size = {"gather": "load", "scatter": "store"}[kind], "_scattered"
        if size == "_range" and not state.values["rsi"][0]:
            length = state.values["rsi"][1]
        elif size in ("_lanes", "_scattered") and not state.values["rdx"][0]:
            length = state.values["rdx"][1]
        elif size and size.isdigit():
            size = length = int(size)
        if self.unknowns.is_on_stack(address) and size != "_scattered" and length:
            self.locals.add((*address, length))
        state.values["h", len(state.pending)] = address
        state.pending += ((kind, size, length, frozenset([each.at]), 0),)

    # --- Operands ---------------------------------------------------------------------------------
    def reference(self, each, n, address, state, is_looping):
        """Checks an operand, and returns what is loaded from a place that is known."""
        operand = each.operands[n]
        found = re.search(r"\b(\w+) (?:PTR|BCST)", operand)
        size = BYTES.get(found[1]) if found else None
        if re.search(r"gather|scatter", each.name):
            size, address = 4 if re.search(r"(ps|d)$", each.name) and not each.name.endswith("pd") \
                else 8, None
        relocated = self.relocation(each, True)
        if relocated and "GOT" in relocated[1]:
            return self.unknowns.of(("tp", relocated[2])) if "GOTTPOFF" in relocated[1] else \
                self.unknowns.of(("loaded from got", relocated[2]))
        if address is not None and self.label_of(address).startswith((".LCPI", ".LJTI")):
            return None
        if re.match(r"QWORD PTR fs:0x(0|28)$", operand) and not relocated:
            return self.unknowns.of(("segment", "fs")) if operand.endswith("x0") else None
        is_string = re.match(r"(movs|stos|lods|scas|cmps)", each.name) and \
            re.search(r"[de]s:\[", operand)
        reads = n > 0 or READS.match(each.name) is not None
        changes = n == 0 and CHANGES.match(each.name) is not None
        if each.name == "xchg":
            reads, changes = False, True
        if is_string and each.name.startswith("stos"):
            reads = False
        on_stack = address is not None and self.unknowns.is_on_stack(address)
        whole = is_string and each.prefixes
        if changes:
            has = self.change(each, address, size, state)
        else:
            has = self.take(each, "load" if reads else "store", address, size, state, whole)
        if not has and on_stack and not self.is_local(address, size):
            self.found.excused.add(each.at)
        elif not has and not any(pending[0] == "unseen" for pending in state.pending):
            what = "an update" if changes else "a load" if reads else "a store"
            self.fault(each, f"no hook of {what} of {size} bytes")
        if reads and on_stack:
            key = ("s", address[0], address[1], size)
            if key not in state.values:
                state.values[key] = self.unknowns.of(("slot", *key))
            return state.values[key]
        return None

    def is_local(self, address, size):
        """Whether hooks tell of the same place on the stack: it is not the compiler's own then."""
        return (*address, size) in self.locals

    def label_of(self, address):
        """The label that an address is relative to, also if it is told by its section."""
        for unknown, factor in address[0]:
            key = self.unknowns.keys[unknown]
            if key[0] == "symbol" and factor == 1:
                labels = self.function.labels.get(key[1], ())
                at = bisect.bisect_right(labels, (address[1], "~")) - 1
                return labels[at][1] if at >= 0 else key[1]
        return ""

    def change(self, each, address, size, state):
        if self.take(each, "update", address, size, state):
            return True
        if each.name == "xchg" and self.take(each, "store", address, size, state):
            return True
        if each.name.startswith("cmpxchg"):
            state.awaited += ((each.at, each.text, size, address),)
            state.used = True
            return True
        # What -Oz makes of a store of 0 or -1: it is shorter.
        if (each.name, each.operands[1:]) in (("and", ["0x0"]), ("or", ["0xffffffff"]),
                                              ("or", ["0xffffffffffffffff"])) and \
                self.take(each, "store", address, size, state):
            return True
        both = self.take(each, "load", address, size, state)
        return self.take(each, "store", address, size, state) and both

    def take(self, each, kind, address, size, state, whole=False):
        """Whether it is pending, which it then is no more."""
        by_order = None
        for n, (its_kind, its_size, length, sites, taken) in enumerate(state.pending):
            if its_kind != kind and not (its_kind == "update" and kind == "load"):
                continue
            by = distance(address, state.values["h", n]) if address is not None else None
            if its_size == "_scattered" or (its_size == "_lanes" and by is None):
                if length == size and taken == 0 and \
                        (address is None or not self.unknowns.is_on_stack(address)):
                    by_order = n
                continue
            if by is None or by < 0 or size is None or length is None:
                continue
            if its_size == "_lanes":
                # One instruction for all lanes, or one for each.
                if taken or by >= (64 * length if size == length else 1):
                    continue
                taken = int(size != length)
            elif whole:
                if by != 0:
                    continue
                taken = (1 << length) - 1
            elif its_kind == "update":
                if by != 0 or size != its_size:
                    continue
            else:
                mask = ((1 << size) - 1) << by
                # The parts of a copy may overlap, but each has a byte that no other has.
                is_taken = mask & ~taken == 0 if its_size == "_range" else taken & mask
                if by + size > length or is_taken:
                    continue
                taken |= mask
            state.pending = state.pending[:n] + ((its_kind, its_size, length, sites, taken),) + \
                state.pending[n + 1:]
            self.found.by_address += 1
            self.use(each, sites, state)
            return True
        if by_order is None:
            return False
        self.found.by_order += 1
        if address is None:  # all lanes at once
            state.pending = tuple((*its[:4], 1) if n == by_order else its
                                  for n, its in enumerate(state.pending))
        self.use(each, state.pending[by_order][3], state)
        return True

    def use(self, each, sites, state):
        for site in sites:
            self.found.operands_of.setdefault(site, set()).add(each.at)
        self.used_sites |= sites
        state.used = True

    # --- Values ---------------------------------------------------------------------------------
    def value(self, each, operand, state):
        """Of a register or a number, as 64 bits that may be more than the operand has."""
        if operand in REGISTERS:
            return state.values[REGISTERS[operand][0]]
        if re.match(r"-?(0x[0-9a-f]+|\d+)$", operand):
            relocated = self.relocation(each, False)
            return relocated[0] if relocated else number(int(operand, 16))
        return None

    def assign(self, each, state, memory, address, loaded, is_looping):
        name, operands = each.name, each.operands
        values = state.values
        if name == "push":
            values["rsp"] = add(values["rsp"], number(-8))
            self.put_slot(each, state, values["rsp"], 8, self.value(each, operands[0], state))
            return
        if name == "pop":
            key = ("s", *values["rsp"], 8)
            if operands[0] in REGISTERS:
                values[REGISTERS[operands[0]][0]] = values[key] if key in values else \
                    self.fresh(each, state, "popped", is_looping)
            values["rsp"] = add(values["rsp"], number(8))
            return
        if name == "leave":
            values["rsp"] = add(values["rbp"], number(8))
            values["rbp"] = self.fresh(each, state, "rbp", is_looping)
            return
        if each.prefixes and re.match(r"movs|stos|lods", name) and memory:
            for register in ("rcx", "rsi", "rdi"):
                values[register] = self.fresh(each, state, register, is_looping)
            return
        if not operands:
            if name in ("cdqe", "cwde"):
                operands = ["rax", "eax"] if name == "cdqe" else ["eax", "ax"]
                name = "movsxd" if name == "cdqe" else "movsx"
            elif re.match(r"cqo|cdq|cpuid|rdtsc", name):
                for register in ("rdx",) if name.startswith("c") and name != "cpuid" else \
                        ("rax", "rbx", "rcx", "rdx"):
                    values[register] = self.fresh(each, state, register, is_looping)
                return
            else:
                return
        if memory == [0] and not NO_REFERENCE.match(name):
            if name in ("xadd", "xchg") and operands[1] in REGISTERS:
                values[REGISTERS[operands[1]][0]] = self.fresh(each, state, "got", is_looping)
            if name.startswith("cmpxchg"):
                values["rax"] = self.fresh(each, state, "rax", is_looping)
                values["rdx"] = values["rdx"] if name == "cmpxchg" else \
                    self.fresh(each, state, "rdx", is_looping)
            if re.match(r"(div|idiv|mul|imul)$", name):
                values["rax"] = self.fresh(each, state, "rax", is_looping)
                values["rdx"] = self.fresh(each, state, "rdx", is_looping)
            elif address is not None and not READS.match(name):
                size = BYTES.get((re.search(r"(\w+) (?:PTR|BCST)", operands[0]) or [0, ""])[1], 8)
                stored = None
                if name in ("mov", "movabs"):
                    stored = self.value(each, operands[1], state)
                    if stored is not None and size == 4:
                        stored = self.unknowns.low_half(stored)
                    elif size < 4 or operands[1].endswith(("ah", "bh", "ch", "dh")):
                        stored = None
                self.put_slot(each, state, address, size, stored)
            return
        if len(operands) == 1 and re.match(r"(div|idiv|mul|imul)$", name):
            values["rax"] = self.fresh(each, state, "rax", is_looping)
            values["rdx"] = self.fresh(each, state, "rdx", is_looping)
            return
        if operands[0] not in REGISTERS or re.match(r"(cmp(?!xchg)|test|bt$|j|u?comis)", name):
            return
        long, size = REGISTERS[operands[0]]
        result = self.result(each, name, operands, long, size, state, loaded)
        if result is None or size not in (4, 8):
            result = self.fresh(each, state, long, is_looping)
        elif size == 4 and not (name == "mov" and each.relocations):
            result = self.unknowns.low_half(result)
        values[long] = result
        if name == "xchg" and operands[1] in REGISTERS:
            values[REGISTERS[operands[1]][0]] = self.fresh(each, state, "exchanged", is_looping)
        if name == "mulx" and operands[1] in REGISTERS:
            values[REGISTERS[operands[1]][0]] = self.fresh(each, state, "low", is_looping)

    def result(self, each, name, operands, long, size, state, loaded):
        """What an instruction puts into its register; None: that is not known."""
        values, unknowns = state.values, self.unknowns
        of = [loaded if n > 0 and "[" in operand else self.value(each, operand, state)
              for n, operand in enumerate(operands)]
        if name in ("mov", "movabs"):
            return loaded if len(of) > 1 and of[1] is None else of[1]
        if name == "lea":
            return self.address(each, operands[1], state)
        if name in ("inc", "dec"):
            return add(values[long], number(1 if name == "inc" else -1))
        if name in ("add", "sub") and of[1] is not None:
            return add(values[long], of[1], 1 if name == "add" else -1)
        if name in ("shl", "sal") and len(of) > 1 and of[1] is not None and not of[1][0]:
            return add(number(0), values[long], 1 << (of[1][1] & (63 if size == 8 else 31)))
        if name == "shl" and len(operands) == 1:
            return add(values[long], values[long])
        if name == "imul" and len(of) == 3 and None not in of[1:] and not of[2][0]:
            return add(number(0), of[1], of[2][1])
        if name == "neg":
            return add(number(0), values[long], -1)
        if name == "xor" and operands[0] == operands[1]:
            return number(0)
        if name in ("movsxd", "movsx") and of[1] is not None and \
                ("DWORD" in operands[1] or REGISTERS.get(operands[1], ("", 0))[1] == 4):
            return unknowns.signed(of[1])
        if PURE.match(name) and all(value is not None for value in of):
            widths = tuple(REGISTERS[operand][1] if operand in REGISTERS else
                           (re.match(r"\w+", operand)[0] if "[" in operand else 0)
                           for operand in operands)
            if size == 4:
                of = [unknowns.low_half(value) for value in of]
            is_stack = name == "and" and long == "rsp"
            return unknowns.of((name, widths, tuple(of)), is_stack, of)
        return None

    def put_slot(self, each, state, address, size, stored):
        """What lies on the stack; other memory is not followed."""
        if not self.unknowns.is_on_stack(address):
            return
        for key in [key for key in state.values if key[0] == "s" and key[1] == address[0]]:
            by = distance((key[1], key[2]), address)
            if -key[3] < by < size:
                state.values[key] = self.unknowns.of(("stored", each.at, key))
        state.values["s", address[0], address[1], size] = stored if stored is not None else \
            self.unknowns.of(("stored", each.at, size))


def run(command):
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def check_object(path, say=None):
    """What is found in all functions of an object."""
    found = Checked()
    for function in disassemble(path):
        its = Interpreter(function).check()
        found.by_address += its.by_address
        found.by_order += its.by_order
        found.hooks += its.hooks
        found.faults += its.faults
    for name, at, instruction, what in found.faults[:20] if say else ():
        print(f"{say}: {name}, at {at:x}: {instruction}: {what}")
    return found


def compiler(asked, source, flags):
    """-Wa,-L keeps the labels of constants and of tables."""
    with open(source, encoding="utf-8") as file:
        needs_avx2 = "immintrin.h" in file.read()
    language = ["cc"] if source.endswith(".c") else ["c++", "-std=c++17"]
    return [asked.address_trace, *language, *(["-mavx2"] if needs_avx2 else []), *flags.split(),
            "-g1", "-gdwarf-4", "-pthread", "-w", "-Wa,-L"]


def check_sources(asked, flags, folder):
    """The number of faults with one set of flags."""
    by_address = by_order = hooks = faults = 0
    for source in asked.sources:
        path = os.path.join(folder, os.path.basename(source) + ".o")
        run([*compiler(asked, source, flags), "-c", source, "-o", path])
        found = check_object(path, f"{flags}: {os.path.basename(source)}")
        by_address += found.by_address
        by_order += found.by_order
        hooks += found.hooks
        faults += len(found.faults)
    print(f"{flags}: {hooks} hooks, {by_address} operands by address, {by_order} by order, "
          f"{faults} faults")
    return faults if by_address else 1


def self_check(asked, folder, is_quick):
    """The number of hooks that were taken away without being missed."""
    flags, taken, wrong = "-O2 -mavx2", 0, 0
    path = os.path.join(folder, "object.o")
    for source in asked.sources[-1:] if is_quick else asked.sources:
        run([*compiler(asked, source, flags), "-c", source, "-o", path])
        for function in disassemble(path):
            told = Interpreter(function).check().operands_of
            for hook in sorted(told)[::8 if is_quick else 1]:
                its = Interpreter(function, without=hook).check()
                faults = its.faults
                if told[hook] <= its.excused and not faults:
                    continue  # without its only hook, a local is taken for the compiler's
                taken += 1
                if {fault[1] for fault in faults} != told[hook] - its.excused:
                    wrong += 1
                    print(f"self-check: without the hook at {hook:x} of {function.name}, {faults} "
                          f"are named instead of {[hex(each) for each in told[hook]]}")
    # In the assembler text, where the linker and the disassembler have their part in it.
    text = os.path.join(folder, "text.s")
    run([*compiler(asked, source, flags), "-S", source, "-o", text])
    with open(text, encoding="utf-8") as file:
        lines = file.read().splitlines(keepends=True)
    hooks = [n for n, line in enumerate(lines)
             if re.search(r"call.*__trace_ring_(load|store)\d", line)]
    which = hooks[len(hooks) // 2]
    kind, size = re.search(r"(load|store)(\d+)", lines[which]).groups()
    with open(text, "w", encoding="utf-8") as file:
        file.writelines(lines[:which] + lines[which + 1:])
    run([*compiler(asked, source, flags), "-c", text, "-o", path])
    faults = check_object(path).faults
    taken += 1
    if len(faults) != 1 or f"a {kind} of {size} bytes" not in faults[0][3]:
        wrong += 1
        print(f"self-check: without {lines[which].strip()} in the text, {faults} are named")
    print(f"self-check: {taken} hooks taken away, {taken - wrong} missed as they must be")
    return wrong if taken > 1 else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--address-trace", required=True)
    parser.add_argument("--flags", action="append")
    parser.add_argument("sources", nargs="+")
    asked = parser.parse_args()
    if not BINUTILS.objdump:
        print("address_operands.py: there is no objdump here (Debian: binutils)", file=sys.stderr)
        return 77
    wanted, is_quick = asked.flags or ["-O2"], "TRACE_RING_QUICK" in os.environ
    faults = 0
    with tempfile.TemporaryDirectory() as folder:
        for flags in wanted[:1] if is_quick else wanted:
            faults += check_sources(asked, flags, folder)
        faults += self_check(asked, folder, is_quick)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
