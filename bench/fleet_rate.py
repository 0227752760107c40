#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""What a record costs on its way into ClickHouse: trace-ship, and a server that is started for this.

    fleet_rate.py TRACE_SHIP INCLUDE OUT [--repetitions N] [--records N] [--batch ROWS] [-- COMPILER [FLAG...]]

Writes OUT as the benchmarks write theirs: processor time for one record, of trace-ship and of the server
with the merges that end with it; and the bytes of a record in the trace, compressed on the wire, and in the
table. The batches are full, as --interval is long enough where machines are many. The records are those of
export_rate.py: numbers, a float and a short text.
"""
import argparse
import os
import pathlib
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True  # no cache next to the sources
import commands  # noqa: E402
import export_rate  # noqa: E402

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "test" / "examples" / "trace_ship"))
import clickhouse  # noqa: E402


def processor_time(process):
    """Seconds, of all threads of a process that runs."""
    fields = pathlib.Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def metric(file, name):
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith(name + " "):
            return float(line.split()[1])
    sys.exit(f"fleet_rate.py: trace-ship's metrics have no {name}")


def measure(folder, trace_ship, trace, options):
    """One run into an empty table; nanoseconds and bytes of a record."""
    traces, metrics = folder / "traces", folder / "metrics"
    with clickhouse.Server(folder / "server") as server:
        idle = processor_time(server.process.pid)
        client = commands.seconds([trace_ship, str(traces), "--to", server.url, "--host", "here", "--once",
                                   "--metrics", str(metrics), *options])
        server.ask("OPTIMIZE TABLE trace_records FINAL")
        spent = processor_time(server.process.pid) - idle
        rows = server.number("SELECT count() FROM trace_records")
        stored = server.number(
            "SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND table = 'trace_records'")
    shutil.rmtree(folder / "server")
    return {"client": client / rows * 1e9, "server": spent / rows * 1e9}, {
        "file_bytes": trace.stat().st_blocks * 512 / rows,
        "wire_bytes": metric(metrics, "trace_ship_sent_bytes_total") / rows, "stored_bytes": stored / rows}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("trace_ship")
    parser.add_argument("include")
    parser.add_argument("out")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--batch", default="100000")
    parser.add_argument("compiler", nargs="*", default=["g++", "-O2"])
    given = parser.parse_args()
    if not any(shutil.which(name) for name in ("clickhouse-server", "clickhouse")):
        sys.exit("fleet_rate.py: no clickhouse-server here (Debian: clickhouse-server)")
    entries = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        source, program, trace = folder / "record.cpp", folder / "record", folder / "traces" / "a.trace"
        source.write_text(export_rate.PROGRAM, encoding="utf-8")
        trace.parent.mkdir()
        commands.seconds([*given.compiler, "-std=c++20", f"-I{given.include}", str(source), "-o",
                          str(program), "-pthread"])
        commands.seconds([str(program), str(trace), str(given.records)])
        for repetition in range(given.repetitions):
            times, bytes_of = measure(folder, given.trace_ship, trace, ["--batch", given.batch])
            for number, (side, time) in enumerate(times.items()):
                one = commands.entry(number, f"fleet/{side}", "", repetition, "ns", time)
                entries.append(one | bytes_of if side == "client" else one)
            print(", ".join(f"{side} {time:.0f} ns, {1e9 / time:,.0f} records/s and core"
                            for side, time in times.items()), "; bytes of a record:",
                  ", ".join(f"{what.removesuffix('_bytes')} {value:.1f}"
                            for what, value in bytes_of.items()), flush=True)
    commands.write(given.out, entries, given.compiler)


if __name__ == "__main__":
    main()
