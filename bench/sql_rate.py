#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""What a question in SQL costs for each record of a trace, compared with an empty virtual table, and
the first answer with that of a table into which trace-reduce's CSV is imported.

    sql_rate.py EXTENSION TRACE_REDUCE INCLUDE OUT [--repetitions N] [--records N] [-- COMPILER [FLAG...]]

EXTENSION is trace_ring_sqlite.so. Writes OUT as the benchmarks write theirs: processor time for one
record, by the sqlite3 shell, one question after the other. 40 million records are about 1 GiB.
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
#include <trace_ring/trace_ring.hpp>
namespace tr = trace_ring;
struct sent : tr::event<"order.sent", tr::field<"id", std::uint64_t>, tr::field<"price", double>,
                        tr::field<"side", std::uint32_t>> {};
int main(int, char** argv) {
    const std::uint64_t records = std::strtoull(argv[2], nullptr, 10);
    tr::recorder recorder{{.file = argv[1], .size = records * 40 + (1 << 20)}};
    for (std::uint64_t i = 0; i < records; ++i)
        recorder.record<sent>(i, static_cast<double>(i % 1000), static_cast<std::uint32_t>(i % 50));
}
"""

QUESTIONS = (("count", "count(*)", ""), ("average", "avg(price)", ""),
             ("filter", "count(*)", " where id = 77"), ("group", "side, count(*)", " group by side"))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("extension")
    parser.add_argument("trace_reduce")
    parser.add_argument("include")
    parser.add_argument("out")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--records", type=int, default=33_000_000)
    parser.add_argument("compiler", nargs="*", default=["g++", "-O2"])
    given = parser.parse_args()
    if shutil.which("sqlite3") is None:
        sys.exit("sql_rate.py: no sqlite3 here (Debian: sqlite3)")
    here = os.path.dirname(os.path.abspath(__file__))
    few = max(1, given.records // 33)
    entries = []
    with tempfile.TemporaryDirectory() as folder:
        source, program, large, small, empty, csv = (
            os.path.join(folder, name)
            for name in ("record.cpp", "record", "large.trace", "small.trace", "empty_table.so", "csv"))
        with open(source, "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        commands.seconds([*given.compiler, "-std=c++20", f"-I{given.include}", source, "-o", program,
                          "-pthread"])
        commands.seconds([*given.compiler, "-shared", "-fPIC", "-o", empty,
                          os.path.join(here, "sql", "empty_table.cpp")])
        commands.seconds([program, large, str(given.records)])
        commands.seconds([program, small, str(few)])

        def ours(trace):
            return [f".load {os.path.splitext(given.extension)[0]}",
                    f"create virtual table t using trace_ring('{trace}', event='order.sent')"]

        floor = [f".load {os.path.splitext(empty)[0]}",
                 f"create virtual table t using empty_table({given.records})"]
        cases = []
        for name, what, where in QUESTIONS:
            for kind, before, over in (("floor/empty_table", floor, ""),
                                       ("sql", ours(large), f"floor/empty_table/{name}")):
                cases.append((f"{kind}/{name}", over, given.records,
                              [["sqlite3", ":memory:", *before, f"select {what} from t{where}"]]))
        # The whole way to a first answer.
        answer = "select avg(price) from t"
        cases.append(("floor/csv_and_import", "", few,
                      [[given.trace_reduce, "--format", "csv", "--output", csv, small],
                       ["sqlite3", ":memory:", ".mode csv", f".import {csv} t",
                        'select avg("order.sent.price") from t'], ["rm", csv]]))
        cases.append(("sql/first_answer", "floor/csv_and_import", few,
                      [["sqlite3", ":memory:", *ours(small), answer]]))
        for repetition in range(given.repetitions):
            for number, (name, over, records, steps) in enumerate(cases):
                time = sum(commands.seconds(step) for step in steps) / records * 1e9
                entries.append(commands.entry(number, name, over, repetition, "ns", time))
    commands.write(given.out, entries, given.compiler)


if __name__ == "__main__":
    main()
