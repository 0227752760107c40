# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""queries.py TRACE_SHIP TRACE_REDUCE QUERY_WRITER QUERIES [HEAP_RECORD HEAP_PROGRAM WHAT...]

The answers of examples/trace_ship/queries/*.sql from a ClickHouse server, compared with what
trace-reduce --sql answers for the same traces, which come from three hosts. The query for memory is
asked about the heap traces of HEAP_PROGRAM WHAT; it is left out without these."""

import collections
import csv
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

import clickhouse

csv.field_size_limit(1 << 30)
SHIP, REDUCE, WRITER, QUERIES = sys.argv[1:5]
HEAP_RECORD, HEAP_PROGRAM, *HEAP_RUNS = sys.argv[5:] or (None, None)
HOSTS = (b"one", b"it's \"two\"\\", b"thr\xe9\xe9")
CONSTANT = re.compile(r"((?:'(?:[^'\\]|\\.)*'|-?\d+|\w+)) AS (wanted_\w+)")
ESCAPES = {b"b": b"\b", b"f": b"\f", b"r": b"\r", b"n": b"\n", b"t": b"\t", b"0": b"\0"}


def check(condition, *what):
    if not condition:
        print("FAILED:", *what)
        sys.exit(1)


def literal(value):
    """A constant for a query: bytes as a text, any others as they are."""
    if not isinstance(value, bytes):
        return str(value)
    return "unhex('" + value.hex() + "')" if value else "''"


def query(name, **constants):
    """The text of a query with other constants; each is replaced wherever it is."""
    lines = (pathlib.Path(QUERIES) / f"{name}.sql").read_text().splitlines()
    text = "\n".join(line for line in lines if not line.lstrip().startswith("--"))
    defaults = collections.defaultdict(set)
    for value, constant in CONSTANT.findall(text):
        defaults[constant].add(value)
    check(all(len(values) == 1 for values in defaults.values()), name, "has different defaults",
          dict(defaults))
    limit = constants.pop("limit", None)
    check(set(constants) <= {key[len("wanted_"):] for key in defaults}, name, constants, defaults)
    for key, value in constants.items():
        def replaced(found, name="wanted_" + key, by=literal(value)):
            return f"{by} AS {name}" if found[2] == name else found[0]

        text = re.sub(CONSTANT, replaced, text)
    return text if limit is None else re.sub(r"LIMIT \d+", f"LIMIT {limit}", text)


def answer(server, text):
    """The rows as dictionaries of bytes; null is None."""
    request = urllib.request.Request(
        server.url + "?wait_end_of_query=1",
        data=text.encode() + b"\nFORMAT TabSeparatedWithNames")
    try:
        with urllib.request.urlopen(request, timeout=120) as reply:
            lines = reply.read().split(b"\n")[:-1]
    except urllib.error.HTTPError as error:
        check(False, text, error.read().decode(errors="replace"))

    def cell(of):
        if of == b"\\N":
            return None
        return re.sub(rb"\\(.)", lambda found: ESCAPES.get(found[1], found[1]), of, flags=re.S)

    rows = [[cell(each) for each in line.split(b"\t")] for line in lines]
    return [dict(zip((name.decode() for name in rows[0]), row)) for row in rows[1:]]


def reduce(file, sql):
    """The rows of trace-reduce --sql, as dictionaries of texts."""
    text = subprocess.run([REDUCE, file, "--format", "csv", "--sql", sql], check=True,
                          capture_output=True).stdout.decode()
    return list(csv.DictReader(io.StringIO(text, newline="")))


class Trace:
    """What trace-reduce says of a file: its records and the ends of its spans, as dictionaries."""

    def __init__(self, host, file):
        self.host, self.file = host, file
        header = pathlib.Path(file).read_bytes()[:64]
        first, second = (int.from_bytes(header[at:at + 8], "little") for at in (32, 40))
        text = f"{first:016x}{second:016x}"
        self.id = "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:])).encode()
        self.records = self.rows("SELECT time, lane, position, tid, pid, hex(thread) AS thread, "
                                 "hex(program) AS program, event, span FROM records")
        self.spans = self.rows("SELECT time, \"end\", duration, lane, position, end_lane, "
                               "end_position, event FROM spans WHERE state = 'ended'")

    def rows(self, sql):
        """Numbers as such; texts as bytes, those that are blobs in the query's hex()."""
        def value(name, text):
            if name in ("thread", "program"):
                return bytes.fromhex(text)
            if name in ("event", "span", "cause"):
                return text.encode()
            return int(text or 0)  # 0: not known

        return [{name: value(name, text) for name, text in row.items()} | {
            "host": self.host, "trace": self.id} for row in reduce(self.file, sql)]


def picked(rows, names):
    """Some columns; numbers as such."""
    def value(of):
        return int(of) if isinstance(of, bytes) and re.fullmatch(rb"-?\d+", of) else of

    return [tuple(value(row[name]) for name in names.split()) for row in rows]


def ship(server, folder, host, *options):
    done = subprocess.run([SHIP, folder, "--to", server.url, "--host", host, "--once", *options],
                          stderr=subprocess.PIPE, check=False)
    check(done.returncode == 0, "trace-ship:", done.stderr.decode(errors="replace"))


def compare(what, found, expected):
    for at, (one, other) in enumerate(zip(found, expected)):
        check(one == other, what, "row", at, "is", one, "and should be", other)
    check(len(found) == len(expected), what, "has", len(found), "rows and should have",
          len(expected))
    check(expected, what, "compares nothing")
    return len(expected)


def last_records(server, traces):
    names = "host trace time_ns lane position event span tid pid program thread"
    compared = 0
    for host in HOSTS:
        for thread, event in ((b"worker", b""), (b"it's \"\xe9\\", b"order.sent"),
                              (b"ends", b"request")):
            expected = [row | {"time_ns": row["time"]} for trace in traces for row in trace.records
                        if host == row["host"] and thread == row["thread"] and
                        event in (b"", row["event"])]
            expected.sort(key=lambda row: (-row["time"], row["trace"], row["lane"],
                                           -row["position"]))
            found = answer(server, query("last_records", host=host, thread=thread, event=event))
            compared += compare(f"last_records {host} {thread}", picked(found, names),
                                picked(expected[:100], names))
    return compared


def percentiles(server, traces):
    compared = 0
    for column, field in (("order_sent_id", "id"), ("order_sent_price", "price"),
                          ("order_sent_change", "change")):
        number = float if field == "price" else int
        expected = []
        for host in sorted(HOSTS):
            values = sorted(
                number(row[field]) for trace in traces if trace.host == host for row in reduce(
                    trace.file, f'SELECT {field} FROM "order.sent" WHERE {field} IS NOT NULL'))
            expected.append((host, len(values), values[0],
                             *(values[int(level * len(values))] for level in (0.5, 0.9, 0.99)),
                             values[-1]))
        found = answer(server, query("percentiles", field=column))
        compared += compare(f"percentiles of {field}", [
            (row["host"], int(row["records"]),
             *(number(row[name]) for name in ("least", "p50", "p90", "p99", "most")))
            for row in found], expected)
    return compared


def losses(server, traces):
    sums = collections.Counter()
    for trace in traces:
        programs = {row["pid"]: row["program"] for row in trace.records if row["pid"]}
        for row in trace.rows("SELECT pid, cause, count FROM losses"):
            sums[trace.host, programs.get(row["pid"], b""), row["cause"]] += row["count"]
    expected = sorted(((*key, lost) for key, lost in sums.items()),
                      key=lambda row: (-row[3], *row[:3]))
    return compare("losses", picked(answer(server, query("losses")), "host program cause lost"),
                   expected)


def slow_spans(server, traces):
    names = "duration_ns host trace lane position event span began_position end_lane end_position"
    compared = 0
    for event, host in ((b"request", b""), (b"step", HOSTS[1]), (b"request", HOSTS[2])):
        spans = [row for trace in traces for row in trace.spans
                 if row["event"] == event and host in (b"", row["host"])]
        # Which of equally long spans are the slowest is the server's matter, so none may be cut.
        longest = sorted((row["duration"] for row in spans), reverse=True)
        limit = next(n for n in range(10, len(longest)) if longest[n] != longest[n - 1])
        expected = []
        for span in (row for row in spans if row["duration"] >= longest[limit - 1]):
            trace = next(each for each in traces if each.id == span["trace"])
            for row in trace.records:
                if row["lane"] != span["lane"] or row["position"] < span["position"]:
                    continue
                if row["position"] < span["end_position"] if span["end_lane"] == span["lane"] \
                        else row["time"] <= span["end"]:
                    expected.append(row | {
                        "duration_ns": span["duration"], "began_position": span["position"],
                        "end_lane": span["end_lane"], "end_position": span["end_position"],
                        "after_ns": row["time"] - span["time"]})
        found = answer(server, query("slow_spans", event=event, host=host, limit=limit))
        durations = [int(row["duration_ns"]) for row in found]
        check(durations == sorted(durations, reverse=True), "slow_spans are not sorted")
        compared += compare(f"slow_spans {event} {host}", sorted(picked(found, names)),
                            sorted(picked(expected, names)))
        # The query computes a begin from the end and the duration: dates may be adjusted between.
        for one, other in zip(sorted(picked(found, names + " after_ns")),
                              sorted(picked(expected, names + " after_ns"))):
            check(abs(one[-1] - other[-1]) <= 5 + one[0] / 1000, "after_ns of", one, other)
    return compared


def flows(server, traces):
    names = "time_ns host lane position event span"
    compared = 0
    for flow in (0, 12, 2**64 - 1):
        expected = set()
        for trace in traces:
            rows = trace.rows("SELECT time, lane, position, event, coalesce(span, '') AS span "
                              f"FROM flows WHERE CAST(flow AS TEXT) = '{flow}'")
            expected |= set(picked([row | {"time_ns": row["time"]} for row in rows], names))
        check(len({row[1] for row in expected}) == 3, "flow", flow, "is on one host")
        found = picked(answer(server, query("flow", flow=flow)), names)
        check([row[0] for row in found] == sorted(row[0] for row in found), "flow is not sorted")
        compared += compare(f"flow {flow}", sorted(found), sorted(expected))
    return compared


def memory(server, folder):
    """Heap traces, with threads that hand blocks over, and forks."""
    names = "live_bytes blocks largest host call call_site"
    expected = collections.defaultdict(list)
    files = []
    for host, what in zip(HOSTS, HEAP_RUNS):
        traces = folder / f"heap_{what}"
        traces.mkdir()
        subprocess.run([HEAP_RECORD, "-o", traces / "heap.%p.trace", "--quiet", "--", HEAP_PROGRAM,
                        what], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        ship(server, traces, host, "--symbols")
        for file in traces.iterdir():
            files.append((host, file))
            for row in reduce(file, "SELECT function, stack, size FROM allocations WHERE "
                                    "state = 'live' AND NOT inherited"):
                expected[host, row["function"].encode(), row["stack"].encode()].append(
                    int(row["size"]))
    found = answer(server, query("memory", limit=100_000))
    compared = compare("memory", sorted(picked(found, names)), sorted(
        (sum(sizes), len(sizes), max(sizes), *key) for key, sizes in expected.items()))
    # The texts are the same in both programs.
    server.ask("CREATE TABLE other AS trace_records")
    for host, file in files:
        block = subprocess.run([REDUCE, file, "--format", "clickhouse", "--host", host,
                                "--symbols"], check=True, capture_output=True).stdout
        urllib.request.urlopen(urllib.request.Request(
            server.url + "?query=INSERT%20INTO%20other%20FORMAT%20Native", data=block),
            timeout=120).close()
    sums = [server.ask("SELECT count(), uniqExact(stack_text), "
                       "sum(cityHash64(toString(trace), lane, position, stack_text)) "
                       f"FROM {table} WHERE stack_text != ''")
            for table in ("trace_records", "other")]
    check(sums[0] == sums[1] and int(sums[0][0][0]) > 100, "stack_text", sums)
    return compared


def dashboard(server, traces):
    """The queries of Grafana's dashboard run, with its variables set as Grafana sets them."""
    board = json.loads((pathlib.Path(QUERIES).parent / "fleet.json").read_text())
    times = [row["time"] // 1_000_000 for trace in traces for row in trace.records]
    values = {"host:sqlstring": "''", "program:sqlstring": "'query_writer'",
              "thread:sqlstring": "'worker'", "event:sqlstring": "'request'", "flow:raw": "12",
              "field:raw": "order_sent_change", "__from": str(min(times)),
              "__to": str(max(times) + 1)}

    def rows(sql):
        return answer(server, re.sub(r"\$\{([^}]*)\}", lambda found: values[found[1]], sql))

    names = {}
    for each in board["templating"]["list"]:
        if each["type"] == "query":
            names[each["name"]] = {next(iter(row.values())) for row in rows(each["query"])}
    check(names["host"] == set(HOSTS) and names["event"] == {b"request", b"step"} and
          b"query_writer" in names["program"] and b"worker" in names["thread"] and
          b"order_sent_change" in names["field"] and b"duration_ns" in names["field"], names)
    compared = 0
    for panel in board["panels"]:
        if panel["title"].startswith("Live memory") and not HEAP_RUNS:
            continue
        found = rows(panel["targets"][0]["rawSql"])
        check(found or panel["title"].startswith("Live memory"), panel["title"], "shows nothing")
        compared += len(found)
    return compared


def main():
    with tempfile.TemporaryDirectory(prefix="trace_queries_") as name:
        folder = pathlib.Path(name)
        with clickhouse.Server(folder / "server") as server:
            traces = []
            for number, host in enumerate(HOSTS):
                # Hosts have folders and files of the same names.
                there = folder / str(number) / "traces"
                there.mkdir(parents=True)
                for file, more in (("a.trace", []), ("b.trace", []), ("full.trace", ["full"])):
                    subprocess.run([WRITER, there / file, str(10 * number + len(traces)), *more],
                                   check=True)
                    traces.append(Trace(host, there / file))
                ship(server, there, host)
            compared = {each.__name__: each(server, traces) for each in
                        (last_records, percentiles, losses, slow_spans, flows)}
            if HEAP_RUNS:
                compared["memory"] = memory(server, folder)
            compared["dashboard"] = dashboard(server, traces)
            print("rows compared:", ", ".join(f"{name} {count}" for name, count in
                                               compared.items()))


main()
