#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""What recording costs when it is compiled: seconds, memory, and bytes of code.

    compile_time.py INCLUDE OUT [--repetitions N] [--sites N] [-- COMPILER [FLAG...]]

Writes OUT as the benchmarks write theirs: processor time of one compilation, divided by the time for `<string>`
and `<memory>` alone, with the compiler's memory (MB) and the .text of the result (bytes). A site is a
separate event type, recorded once; many are 50 in a function.
"""
import argparse
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # no cache next to the sources
import commands  # noqa: E402

FLOOR = "floor/compile/string_and_memory"
SITE = "#include <trace_ring/recorder/site.hpp>\n#include <cstdint>\nnamespace tr = trace_ring;\n"
# Each kind of field, and each way to record. Before spans had a header, they came with the sites.
EVERY_KIND = """#include <array>
#include <span>
#include <string_view>
""" + SITE + """
#if __has_include(<trace_ring/recorder/spans.hpp>)
#include <trace_ring/recorder/spans.hpp>
#endif
enum class side : std::uint8_t { buy, sell };
struct filled : tr::event<"filled", tr::field<"id", std::uint64_t>, tr::field<"price", double>,
                          tr::field<"side", side>, tr::field<"venue", std::string_view>> {};
struct book : tr::event<"book", tr::field<"bids", std::array<double, 4>>,
                        tr::field<"sizes", std::span<const std::uint32_t>>, tr::field<"at", const void*>> {};
struct request : tr::span<"request", tr::field<"url", std::string_view>> {};
void record(tr::recorder& to, std::uint64_t id, std::span<const std::uint32_t> sizes) {
    const auto under_way = to.scope<request>(std::string_view("/index.html"));
    to.record<filled>(id, 3.14, side::sell, std::string_view("north"));
    if (auto held = to.reserve<book>(std::array{1.0, 2.0, 3.0, 4.0}, sizes, &id)) held.commit();
}
"""
FIRST = """#include <trace_ring/trace_ring.hpp>
struct order_sent : trace_ring::event<"order.sent", trace_ring::field<"id", std::uint64_t>,
                                      trace_ring::field<"price", double>> {};
int main() {
    trace_ring::recorder recorder{{.file = "orders.trace"}};
    for (std::uint64_t id = 0; id < 1000; ++id) recorder.record<order_sent>(id, 3.14);
}
"""
TWO = ("std::uint64_t", "std::uint64_t")
MIXED = (TWO, ("int",), ("std::uint32_t", "double", "bool"), ("bool", "std::int64_t", "std::int64_t"),
         ("std::uint16_t",) * 4)


def sites(count, lists):
    """So many event types, with fields of these lists in turn."""
    lines = [SITE]
    for i in range(count):
        fields = ", ".join(f'tr::field<"{"f" + str(i) if len(lists) > 1 else "field"}.{k}", {t}>'
                           for k, t in enumerate(lists[i % len(lists)]))
        lines.append(f'struct e{i} : tr::event<"event.{i}", {fields}> {{}};')
    for first in range(0, count, 50):
        lines.append(f"void write{first}(tr::recorder& to, std::uint64_t a, std::uint64_t b) {{")
        for i in range(first, min(count, first + 50)):
            values = ", ".join(f"static_cast<{t}>({'ab'[k % 2]})"
                               for k, t in enumerate(lists[i % len(lists)]))
            lines.append(f"    to.record<e{i}>({values});")
        lines.append("}")
    return "\n".join(lines) + "\n"


def text_bytes(file):
    """All parts of the code in an object file."""
    lines = subprocess.run(["size", "-A", file], capture_output=True, text=True, check=True).stdout
    return sum(int(line.split()[1]) for line in lines.splitlines() if line.startswith(".text"))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("include")
    parser.add_argument("out")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--sites", type=int, default=1000)
    parser.add_argument("compiler", nargs="*", default=["g++", "-O2"])
    given = parser.parse_args()
    cases = [(FLOOR, "#include <string>\n#include <memory>\n"),
             ("compile/site", sites(1, [TWO])),
             ("compile/site_of_every_kind", EVERY_KIND),
             ("compile/first_program", FIRST),
             (f"compile/{given.sites}_sites", sites(given.sites, [TWO])),
             (f"compile/{given.sites}_mixed_sites", sites(given.sites, MIXED))]
    entries = []
    with tempfile.TemporaryDirectory() as folder:
        out, peak = os.path.join(folder, "out.o"), os.path.join(folder, "peak")
        for number, (_, text) in enumerate(cases):
            with open(os.path.join(folder, f"{number}.cpp"), "w", encoding="utf-8") as file:
                file.write(text)
        for repetition in range(given.repetitions):
            for number, (name, _) in enumerate(cases):
                time = commands.seconds([*given.compiler, "-std=c++20", f"-I{given.include}", "-c",
                                         os.path.join(folder, f"{number}.cpp"), "-o", out], peak=peak)
                with open(peak, encoding="utf-8") as file:
                    memory = int(file.read()) / 1024
                over = "" if name == FLOOR else FLOOR
                entries.append({**commands.entry(number, name, over, repetition, "ms", time * 1e3),
                                "memory_mb": memory, "text_bytes": text_bytes(out)})
    commands.write(given.out, entries, given.compiler)


if __name__ == "__main__":
    main()
