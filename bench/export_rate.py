#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""How fast records become text: trace-reduce, and babeltrace2 on the same events as a CTF trace.

    export_rate.py TRACE_REDUCE INCLUDE OUT [--repetitions N] [--records N] [-- COMPILER [FLAG...]]

Writes OUT as the benchmarks write theirs: processor time for one record, both to /dev/null, one
after the other. A program of two threads is compiled that records the events: numbers, a float and
a short text.
"""
import argparse
import os
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True  # no cache next to the sources
import commands  # noqa: E402

PROGRAM = """
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <trace_ring/trace_ring.hpp>
namespace tr = trace_ring;
struct order : tr::event<"order.sent", tr::field<"id", std::uint64_t>, tr::field<"price", double>> {};
struct state : tr::event<"state", tr::field<"from", std::uint32_t>, tr::field<"to", std::uint32_t>> {};
struct step : tr::event<"step", tr::field<"name", std::string_view>, tr::field<"n", int>> {};
int main(int, char** argv) {
    const std::uint64_t records = std::strtoull(argv[2], nullptr, 10);
    tr::recorder recorder{{.file = argv[1], .size = records * 64}};
    const auto work = [&](std::uint64_t seed) {
        constexpr std::string_view names[] = {"read", "parse", "execute", "reply"};
        for (std::uint64_t i = 0; i + 3 < records / 2; i += 4) {
            recorder.record<order>(seed + i, static_cast<double>(i % 1000) / 8);
            recorder.record<state>(static_cast<std::uint32_t>(i % 7), static_cast<std::uint32_t>(i % 5));
            recorder.record<step>(names[i / 4 % 4], static_cast<int>(i % 100));
            recorder.record<order>(seed + i, 12.5);
        }
    };
    std::thread other(work, 1'000'000'000);
    work(1);
    other.join();
}
"""


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("trace_reduce")
    parser.add_argument("include")
    parser.add_argument("out")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("compiler", nargs="*", default=["g++", "-O2"])
    given = parser.parse_args()
    if shutil.which("babeltrace2") is None:
        sys.exit("export_rate.py: no babeltrace2 here (Debian: babeltrace2)")
    entries = []
    with tempfile.TemporaryDirectory() as folder:
        source, program, trace, ctf = (os.path.join(folder, name) for name in
                                       ("record.cpp", "record", "a.trace", "ctf"))
        with open(source, "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        commands.seconds([*given.compiler, "-std=c++20", f"-I{given.include}", source, "-o", program,
                          "-pthread"])
        commands.seconds([program, trace, str(given.records)])
        commands.seconds([given.trace_reduce, "--format", "ctf", "--output", ctf, trace])
        with tempfile.TemporaryFile() as lines:
            commands.seconds([given.trace_reduce, trace], stdout=lines)
            lines.seek(0)
            count = sum(part.count(b"\n") for part in iter(lambda: lines.read(1 << 20), b""))
        cases = (("floor/babeltrace2", "", ["babeltrace2", ctf]),
                 ("export/text", "floor/babeltrace2", [given.trace_reduce, trace]))
        for repetition in range(given.repetitions):
            for number, (name, over, command) in enumerate(cases):
                time = commands.seconds(command) / count * 1e9
                entries.append(commands.entry(number, name, over, repetition, "ns", time))
    commands.write(given.out, entries, given.compiler)


if __name__ == "__main__":
    main()
