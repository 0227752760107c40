#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""How long the compiler takes: for the umbrella header, and for 1,000 event sites.

    compile_time.py INCLUDE OUT [--repetitions N] [--sites N] [-- COMPILER [FLAG...]]

Writes OUT as the benchmarks write theirs: processor time of one compilation. The floor of the
header is an empty file, that of the sites the header. The sites are 1,000 event types of two fields,
each recorded once, 50 in a function.
"""
import argparse
import os
import sys
import tempfile

sys.dont_write_bytecode = True  # beside the sources
import commands  # noqa: E402


def sites(count):
    lines = ["#include <cstdint>", "#include <trace_ring/trace_ring.hpp>",
             "namespace tr = trace_ring;"]
    for i in range(count):
        lines.append(f'struct e{i} : tr::event<"event.{i}", tr::field<"a", std::uint64_t>, '
                     f'tr::field<"b", std::uint64_t>> {{}};')
    for first in range(0, count, 50):
        lines.append(f"void write{first}(tr::recorder& to, std::uint64_t a, std::uint64_t b) {{")
        lines += [f"    to.record<e{i}>(a, b);" for i in range(first, min(count, first + 50))]
        lines.append("}")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("include")
    parser.add_argument("out")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--sites", type=int, default=1000)
    parser.add_argument("compiler", nargs="*", default=["g++", "-O2"])
    given = parser.parse_args()
    header, many = "compile/umbrella_header", f"compile/{given.sites}_event_sites"
    cases = [("floor/compile/empty_file", "", "int x;\n"),
             (header, "floor/compile/empty_file", "#include <trace_ring/trace_ring.hpp>\n"),
             (many, header, sites(given.sites))]
    entries = []
    with tempfile.TemporaryDirectory() as folder:
        for number, (_, _, text) in enumerate(cases):
            with open(os.path.join(folder, f"{number}.cpp"), "w", encoding="utf-8") as file:
                file.write(text)
        for repetition in range(given.repetitions):
            for number, (name, over, _) in enumerate(cases):
                time = commands.seconds([*given.compiler, "-std=c++20", f"-I{given.include}", "-c",
                                         os.path.join(folder, f"{number}.cpp"), "-o",
                                         os.path.join(folder, "out.o")])
                entries.append(commands.entry(number, name, over, repetition, "ms", time * 1e3))
    commands.write(given.out, entries, given.compiler)


if __name__ == "__main__":
    main()
