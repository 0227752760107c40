#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""Compares what trace-clauses reports of arguments and results with what the program prints.

usage: clause_signatures.py [--count N] [--bits 64|32] [--source kernel|ptrace] [--seed N]
                            TRACE_CLAUSES FOLDER

Generates functions with arguments of all kinds, builds them with g++ and clang++, with and without
optimization, static and exported, and calls each with known values. A value that is reported and is
another one is an error, and so is one that is reported more or less often than the function was
called. What is not reported must have a reason. At the end is the share that is readable, per kind.
"""
import argparse
import collections
import os
import random
import re
import shutil
import subprocess
import sys

PRELUDE = r"""
#include <complex.h>
#include <cstdio>
#include <cstring>
#include <string>
#undef I
#undef complex
#define KEEP __asm__ volatile("" ::: "memory")
struct small { int a; char b; };
struct one { int a; };
struct two { long a, b; };
struct big { long a[4]; };
struct mixed { long a; double b; };
struct floats { float a, b; };
struct doubles { double a, b; };
struct three { float a; int b; double c; };
struct chars { unsigned short a[6]; };
struct __attribute__((packed)) packed { char a; long b; };
struct bits { int a : 5; unsigned b : 20; long c : 33; };
struct nested { small a; one b; };
struct derived : one { short b; };
union either { int a; float b; };
struct owner { long a; owner(long n) : a(n) {} owner(const owner &o) : a(o.a) { KEEP; } ~owner() { KEEP; } };
struct holder { owner a; holder(long n) : a(n) {} };
struct defaulted { int a; defaulted(int n) : a(n) {} defaulted(const defaulted &) = default; ~defaulted() = default; };
struct moved { long a; moved(long n) : a(n) {} moved(moved &&) = default; moved(const moved &) = delete; };
struct seen { virtual int see() { return 1; } int a; seen(int n) : a(n) {} };
struct empty {};
struct extended { long double a; };
enum color { red = 3, green = 77 };
enum class tiny : unsigned char { low = 1, high = 200 };
struct target { int x; long y; void f(int); };
typedef int v4 __attribute__((vector_size(16)));
typedef double v2 __attribute__((vector_size(16)));
typedef float v2f __attribute__((vector_size(8)));
template <class T, class F> static T complex_of(F a, F b) { T made; __real__ made = a; __imag__ made = b; return made; }
static int pointed[4096];
static void p(const char *f, const char *e, long long v) { printf("%s|%s|%lld\n", f, e, v); }
static void u(const char *f, const char *e, unsigned long long v) { printf("%s|%s|%llu\n", f, e, v); }
static void d(const char *f, const char *e, double v) { printf("%s|%s|%.17g\n", f, e, v); }
"""


class Kind:
    """A type, how a value of it is made, and the parts of it that a clause names."""

    def __init__(self, name, type_, make, parts, wide_only=False, returned=True):
        self.name, self.type, self.make, self.parts = name, type_, make, parts
        self.wide_only, self.returned = wide_only, returned


NUMBERS = ("short", "int", "unsigned", "long", "long long", "bool", "float", "double")


def integer(bits, signed):
    low = -(1 << (bits - 1)) if signed else 0
    high = (1 << (bits - 1)) - 1 if signed else (1 << bits) - 1

    def make(r):
        v = r.choice([low, high, 0, 1, r.randint(low, high), r.randint(max(low, -100), min(high, 100))])
        if signed:
            return str(v) if v > -(1 << 63) else "(-9223372036854775807LL - 1)"
        return f"{v}ULL"

    return make


def real(r):
    return repr(r.randint(-4096, 4096) / 64)


def small_int(r):
    return str(r.randint(-1000, 1000))


def make_parts(*parts):
    """(printer, clause's expression behind the name, C expression behind the name)"""
    return [(p, c, c if x is None else x) for p, c, x in ((q + (None,))[:3] for q in parts)]


WHOLE = {"signed": make_parts(("p", "")), "unsigned": make_parts(("u", "")), "real": make_parts(("d", ""))}


def number(name, type_, bits, signed):
    return Kind(name, type_, integer(bits, signed), WHOLE["signed" if signed else "unsigned"])


def aggregate(name, init, parts, **more):
    return Kind(name, name, lambda r: name + "{" + ", ".join(each(r) for each in init) + "}", make_parts(*parts), **more)


def kinds(bits):
    long_bits = 64 if bits == 64 else 32
    i32, i16, i64 = integer(32, True), integer(16, True), integer(64, True)
    along = integer(long_bits, True)
    made = [
        number("signed char", "signed char", 8, True),
        number("unsigned char", "unsigned char", 8, False),
        number("short", "short", 16, True),
        number("unsigned short", "unsigned short", 16, False),
        number("int", "int", 32, True),
        number("unsigned", "unsigned", 32, False),
        number("long", "long", long_bits, True),
        number("long long", "long long", 64, True),
        number("unsigned long long", "unsigned long long", 64, False),
        Kind("bool", "bool", lambda r: r.choice(["true", "false"]), WHOLE["unsigned"]),
        Kind("pointer", "int *", lambda r: f"&pointed[{r.randint(0, 4095)}]",
             [("u", "", "@(unsigned long)")]),
        Kind("reference", "const int &", lambda r: f"pointed[{r.randint(0, 4095)}]",
             WHOLE["signed"] + [("u", "&", "@(unsigned long)&")], returned=False),
        Kind("enum", "color", lambda r: r.choice(["red", "green"]), [("p", "(int)", "@(int)")]),
        Kind("enum class", "tiny", lambda r: r.choice(["tiny::low", "tiny::high"]),
             [("p", "(int)", "@(int)")]),
        Kind("float", "float", real, WHOLE["real"]),
        Kind("double", "double", real, WHOLE["real"]),
        Kind("long double", "long double", real, WHOLE["real"]),
        Kind("__int128", "__int128", lambda r: f"((__int128){r.randint(0, 99)} << 64 | {r.randint(0, 1 << 62)})",
             [("p", "(long)", "@(long)")], wide_only=True),
        Kind("_Complex float", "_Complex float", lambda r: f"complex_of<_Complex float>({real(r)}f, {real(r)}f)",
             [("d", "[0]", "@__real__ "), ("d", "[1]", "@__imag__ ")]),
        Kind("_Complex double", "_Complex double", lambda r: f"complex_of<_Complex double>({real(r)}, {real(r)})",
             [("d", "[0]", "@__real__ "), ("d", "[1]", "@__imag__ ")]),
        Kind("vector of int", "v4", lambda r: "v4{" + ", ".join(small_int(r) for _ in range(4)) + "}",
             make_parts(("p", "[0]"), ("p", "[3]"))),
        Kind("vector of double", "v2", lambda r: "v2{" + ", ".join(real(r) for _ in range(2)) + "}",
             make_parts(("d", "[0]"), ("d", "[1]"))),
        Kind("vector of float", "v2f", lambda r: "v2f{" + ", ".join(real(r) for _ in range(2)) + "}",
             make_parts(("d", "[0]"), ("d", "[1]"))),
        Kind("member pointer", "int target::*", lambda r: "&target::x", [("p", "", None)]),
        Kind("member function pointer", "void (target::*{})(int)", lambda r: "&target::f", [("p", ".adj", None)]),
        aggregate("small", [i32, lambda r: str(r.randint(0, 100))], [("p", ".a"), ("p", ".b")]),
        aggregate("one", [i32], [("p", ".a")]),
        aggregate("two", [along, along], [("p", ".a"), ("p", ".b")]),
        Kind("big", "big", lambda r: "big{{" + ", ".join(small_int(r) for _ in range(4)) + "}}",
             make_parts(("p", ".a[0]"), ("p", ".a[3]"))),
        aggregate("mixed", [along, real], [("p", ".a"), ("d", ".b")]),
        aggregate("floats", [lambda r: real(r) + "f"] * 2, [("d", ".a"), ("d", ".b")]),
        aggregate("doubles", [real, real], [("d", ".a"), ("d", ".b")]),
        aggregate("three", [lambda r: real(r) + "f", i32, real], [("d", ".a"), ("p", ".b"), ("d", ".c")]),
        Kind("chars", "chars", lambda r: "chars{{" + ", ".join(str(r.randint(0, 65535)) for _ in range(6)) + "}}",
             make_parts(("p", ".a[0]"), ("p", ".a[5]"))),
        aggregate("packed", [lambda r: str(r.randint(0, 100)), along], [("p", ".a"), ("p", ".b")]),
        Kind("bits", "bits", lambda r: f"bits{{{r.randint(-16, 15)}, {r.randint(0, (1 << 20) - 1)}, {small_int(r)}}}",
             make_parts(("p", ".a"), ("p", ".b"), ("p", ".c")), wide_only=True),
        Kind("nested", "nested", lambda r: f"nested{{{{{small_int(r)}, {r.randint(0, 100)}}}, {{{small_int(r)}}}}}",
             make_parts(("p", ".a.a"), ("p", ".a.b"), ("p", ".b.a"))),
        Kind("derived", "derived", lambda r: f"derived{{{{{small_int(r)}}}, {i16(r)}}}", make_parts(("p", ".a"), ("p", ".b"))),
        Kind("union", "either", lambda r: f"either{{{small_int(r)}}}", make_parts(("p", ".a"))),
        Kind("owner", "owner", lambda r: f"owner({small_int(r)})", make_parts(("p", ".a"))),
        Kind("holder", "holder", lambda r: f"holder({small_int(r)})", [("p", ".a.a", None)]),
        Kind("defaulted", "defaulted", lambda r: f"defaulted({small_int(r)})", make_parts(("p", ".a"))),
        Kind("moved", "moved", lambda r: f"moved({small_int(r)})", make_parts(("p", ".a"))),
        Kind("with virtual functions", "seen", lambda r: f"seen({small_int(r)})", make_parts(("p", ".a"))),
        Kind("empty", "empty", lambda r: "empty{}", []),
        Kind("holds a long double", "extended", lambda r: f"extended{{{real(r)}}}", make_parts(("d", ".a"))),
        Kind("std::string", "std::string", lambda r: f"std::string({r.randint(0, 30)}, 'x')",
             [("p", "._M_string_length", ".size()")]),
    ]
    return [each for each in made if bits == 64 or not each.wide_only]


def declared(kind, name):
    return kind.type.format(name) if "{}" in kind.type else f"{kind.type} {name}"


def in_c(part, name):
    """The C expression of a part of what is called `name`; None: its bytes are printed."""
    said = part[2]
    if said is None:
        return None
    return said[1:] + name if said.startswith("@") else name + said


def in_clause(part, name):
    said = part[1]
    return said + name if said.startswith("(") or said in ("*", "&") else name + said


class Function:
    def __init__(self, r, number, all_kinds, static):
        self.name = f"f{number}"
        self.static = static
        self.arguments = [r.choice(all_kinds) for _ in range(r.choice([1, 2, 3, 4, 6, 8, 10]))]
        self.returns = r.choice([each for each in all_kinds if each.returned])
        self.variadic = r.random() < 0.1
        self.calls = 2

    def text(self):
        arguments = ", ".join(declared(k, f"a{i}") for i, k in enumerate(self.arguments))
        result = "result_" + self.name
        lines = []
        if "{}" in self.returns.type:
            lines.append(f"typedef {declared(self.returns, 'type_' + self.name)};")
            returned = "type_" + self.name
        else:
            returned = self.returns.type
        lines.append(f"static {returned} *{result};")
        lines.append(("static " if self.static else "") + f"__attribute__((noinline, noclone)) {returned} "
                     f"{self.name}({arguments}" + (", ..." if self.variadic else "") + ") {")
        for i, kind in enumerate(self.arguments):
            # What is not used, callers in the same file may not pass: a local function has no place
            # for it then, but what is behind an address, or exported, tells nothing of that.
            if i % 3 != 2 or not self.static or kind.name not in NUMBERS:
                at = "g" if kind.name in NUMBERS and kind.name not in ("float", "double") else "m"
                lines.append(f'  __asm__ volatile("" : : "{at}"(a{i}) : "memory");')
        if self.returns.type == "moved":
            lines.append(f"  return moved({result}->a);")
        else:
            lines.append(f"  return *{result};")
        lines.append("}")
        return "\n".join(lines)

    def call(self, r):
        """Prints what is passed and returned, and calls."""
        lines = ["  {"]
        for i, kind in enumerate(self.arguments):
            if kind.name == "reference":
                lines.append(f"    int *at{i} = &{kind.make(r)}; *at{i} = {r.randint(-99, 99)}; int &a{i} = *at{i};")
            else:
                lines.append(f"    {declared(kind, f'a{i}')} = {kind.make(r)};")
            for part in kind.parts:
                lines.append(self.printed(part, f"a{i}", in_clause(part, f"a{i}"), self.name))
        # Into memory of its own, as the type may have no assignment.
        of = declared(self.returns, "retval")
        lines.append(f"    {of} = {self.returns.make(r)}; result_{self.name} = &retval; KEEP;")
        for part in self.returns.parts:
            lines.append(self.printed(part, "retval", in_clause(part, "retval"), self.name))
        passed = []
        for i, kind in enumerate(self.arguments):
            passed.append(f"std::move(a{i})" if kind.type == "moved" else f"a{i}")
        lines.append(f"    {self.name}({', '.join(passed)}); KEEP;")
        lines.append("  }")
        return "\n".join(lines)

    @staticmethod
    def printed(part, name, shown, function):
        expression = in_c(part, name)
        if expression is None:
            if part[1] == ".a.a":
                expression = f"{name}.a.a"
            else:
                at = 8 if part[1] == ".adj" else 0
                return (f"    {{ long word = 0; memcpy(&word, (char *)&{name} + {at} * sizeof(long) / 8, sizeof word);"
                        f' p("{function}", "{shown}", word); }}')
        cast = {"p": "(long long)", "u": "(unsigned long long)", "d": "(double)"}[part[0]]
        return f'    {part[0]}("{function}", "{shown}", {cast}({expression}));'

    def clauses(self, program):
        for i, kind in enumerate(self.arguments):
            for part in kind.parts:
                yield kind.name, f"a{i}", in_clause(part, f"a{i}"), "entry"
        for part in self.returns.parts:
            yield self.returns.name, "retval", in_clause(part, "retval"), "exit"


def same(kind_of_value, told, printed):
    if kind_of_value == "d":
        return float(told) == float(printed)
    if not re.fullmatch(r"-?(0x)?[0-9a-f]+", told):
        return False
    value = int(told, 0)
    return (value - int(printed)) % (1 << 64) == 0


# Where <asm/errno.h> is, without g++-multilib.
KERNEL_HEADERS_32 = ["-idirafter", "/usr/include/x86_64-linux-gnu"]


def generate(r, count, bits, static):
    all_kinds = kinds(bits)
    functions = [Function(r, n, all_kinds, static) for n in range(count)]
    lines = [PRELUDE, "void target::f(int n) { x = n; }"]
    lines += [each.text() for each in functions]
    for each in functions:
        lines.append(f"__attribute__((noinline)) static void call_{each.name}() {{")
        lines += [each.call(r) for _ in range(each.calls)]
        lines.append("}")
    lines.append("int main(int, char **given) {\n  if (!freopen(given[1], \"w\", stdout)) return 1;")
    lines += [f"  call_{each.name}();" for each in functions]
    lines.append('  puts("end"); return 7;\n}')
    return functions, "\n".join(lines) + "\n"


def check(options, r, folder, compiler, level, static, count, shares):
    where = f"{compiler} -O{level}, {'static' if static else 'exported'}, {options.bits} bits"
    functions, text = generate(r, count, options.bits, static)
    source = os.path.join(folder, "program.cpp")
    program = os.path.join(folder, "program")
    with open(source, "w") as out:
        out.write(text)
    kernel_headers = KERNEL_HEADERS_32 if options.bits == 32 else []
    subprocess.run([compiler, f"-m{options.bits}", f"-O{level}", "-g", "-std=c++20", "-w", "-no-pie", source, "-o", program]
                   + kernel_headers, check=True)
    output = [os.path.join(folder, "alone.txt"), os.path.join(folder, "traced.txt")]
    alone = subprocess.run([program, output[0]])
    right = collections.defaultdict(list)
    for line in open(output[0]):
        parts = line.strip().split("|")
        if len(parts) == 3:
            right[parts[0], parts[1]].append(parts[2])
    script = os.path.join(folder, "all.clauses")
    wanted = []
    with open(script, "w") as out:
        for each in functions:
            for kind, name, expression, place in each.clauses(program):
                out.write(f'@@uft:*:program:{each.name}:{place} {{ capture({expression}); }}\n')
                wanted.append((each, kind, name, expression, place))
    ran = subprocess.run([options.trace_clauses, "--source", options.source, "--leave-out", "-f", script, "--",
                          program, output[1]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if ran.returncode != alone.returncode and re.search("not permitted|no uprobes|cannot be traced", ran.stderr):
        print("not checked: " + ran.stderr.strip().splitlines()[-1])
        sys.exit(77)
    reasons = {}
    for line, why in re.findall(r"a clause is left out: line (\d+), column \d+: (.*)", ran.stderr):
        reasons[int(line) - 1] = why
    wrong = []
    if ran.returncode != alone.returncode:
        wrong.append(f"status {ran.returncode}, alone {alone.returncode}: {ran.stderr[-500:]}")
    told = collections.defaultdict(list)
    for line in ran.stdout.splitlines():
        found = re.match(r"(f\d+)\(.*\)(\.exit)? pid=\d+ tid=\d+ (.*?)=(.*)$", line)
        if found:
            told[found[1], found[3]].append(found[4])
    if open(output[0]).read() != open(output[1]).read():
        wrong.append("the program's output is another one")
    printers = {}
    for each in functions:
        for i, kind in list(enumerate(each.arguments)) + [(None, each.returns)]:
            for part in kind.parts:
                printers[each.name, in_clause(part, "retval" if i is None else f"a{i}")] = part[0]
    for number, (each, kind, name, expression, place) in enumerate(wanted):
        share = shares[kind, level, "result" if place == "exit" else "argument"]
        share[1] += 1
        if number in reasons:
            share[2][reasons[number]] += 1
            continue
        got = told[each.name, expression]
        expected = right[each.name, expression]
        if len(got) != len(expected):
            wrong.append(f"{each.name} {expression}: {len(got)} values of {len(expected)}: {got[:3]}")
            continue
        if not all(same(printers[each.name, expression], a, b) for a, b in zip(got, expected)):
            wrong.append(f"{each.name} {expression} ({kind}) is {got}, and not {expected}")
            continue
        share[0] += 1
    print(f"{where}: {len(functions)} functions, {len(wanted)} values, {len(reasons)} not available, "
          f"{len(wrong)} wrong", flush=True)
    for each in wrong[:12]:
        print("  " + each)
    if wrong and options.keep:
        shutil.copy(source, f"{options.keep}.{compiler}.{level}.{static}.cpp")
    return len(wrong)


def main():
    parser = argparse.ArgumentParser()
    usual = {"TRACE_RING_QUICK": 12, "TRACE_RING_LONG": 250}
    usual = next((count for name, count in usual.items() if os.environ.get(name) == "1"), 60)
    parser.add_argument("--count", type=int, default=usual, help="functions per program")
    parser.add_argument("--programs", type=int, default=1, help="per compiler, level and linkage")
    parser.add_argument("--bits", type=int, choices=(32, 64), help="else both, where programs of 32 bits run")
    parser.add_argument("--source", default="kernel")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", help="where to keep programs with a wrong value")
    parser.add_argument("--shares", action="store_true", help="print what is readable, per kind")
    all_compilers = "g++" if os.environ.get("TRACE_RING_QUICK") == "1" else "g++,clang++-14,clang++"
    parser.add_argument("--compilers", default=all_compilers)
    parser.add_argument("trace_clauses")
    parser.add_argument("folder")
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    compilers = [each for each in options.compilers.split(",") if shutil.which(each)]
    if "clang++-14" in compilers and "clang++" in compilers:
        compilers.remove("clang++")
    widths = [options.bits] if options.bits else [64] + [32] * runs_narrow(options.folder)
    if widths == [64] and not options.bits:
        print("programs of 32 bits are not built or do not run here: not checked")
    wrong = 0
    for options.bits in widths:
        wrong += check_all(options, compilers)
    return 1 if wrong else 0


def runs_narrow(folder):
    source, program = os.path.join(folder, "narrow.cpp"), os.path.join(folder, "narrow")
    with open(source, "w") as out:
        out.write("#include <string>\nint main() { return std::string(3, 'x').size(); }\n")
    built = subprocess.run(["g++", "-m32"] + KERNEL_HEADERS_32 + [source, "-o", program], stderr=subprocess.DEVNULL)
    try:
        return built.returncode == 0 and subprocess.run([program]).returncode == 3
    except OSError:
        return False


def check_all(options, compilers):
    r = random.Random(options.seed)
    shares = collections.defaultdict(lambda: [0, 0, collections.Counter()])
    wrong = 0
    for compiler in compilers:
        for level in (0, 2):
            for static in (False, True):
                for _ in range(options.programs):
                    wrong += check(options, r, options.folder, compiler, level, static, options.count, shares)
    total = {}
    for (kind, level, place), (read, all_, why) in shares.items():
        sums = total.setdefault((level, place), [0, 0, collections.Counter()])
        sums[0] += read
        sums[1] += all_
        sums[2].update(why)
    for (level, place), (read, all_, why) in sorted(total.items()):
        print(f"-O{level}, {place}s: {read} of {all_} readable ({100 * read // max(all_, 1)} %)")
        for each, count in why.most_common(8):
            print(f"    {count}: {each}")
    if options.shares:
        for (kind, level, place), (read, all_, why) in sorted(shares.items()):
            print(f"{kind}, {place}, -O{level}: {read} of {all_}" +
                  (": " + why.most_common(1)[0][0] if why else ""))
    return wrong


if __name__ == "__main__":
    sys.exit(main())
