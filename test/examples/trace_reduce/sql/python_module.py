# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""examples/python/trace_ring.py: both of its engines, with and without pandas.

    python_module.py EXTENSION TRACE_REDUCE EXPORT_SAMPLES SQL_SAMPLES FOLDER [long]

Each Python of this machine that differs in what it can load prints the same answers.
"""
import math
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile

from tables import check, finish, records, run

SYSTEM = "/usr/bin/python3"
QUERIES = [
    "SELECT * FROM records", "SELECT * FROM records ORDER BY time DESC LIMIT 5",
    "SELECT *, raw, cut, fault, file FROM records WHERE lane = 1", "SELECT * FROM spans",
    "SELECT * FROM losses", "SELECT * FROM events", "SELECT * FROM fields", "SELECT * FROM threads",
    "SELECT * FROM processes", "SELECT * FROM clocks", "SELECT 1 AS a, 2 AS a, 'x' AS \"a b\"",
    "SELECT 'Infinity' AS t, 9e999 AS i, -9e999 AS j, NULL AS n, '' AS e, x'' AS b, x'00ff' AS c",
    "SELECT '-Infinity' AS t, 1e300 AS r, -0.0 AS z, 9223372036854775807 AS m, 'a,\"b\n' AS q",
    "SELECT time, lane FROM records WHERE lane = 77", "SELECT 'x' AS \"odd, name\" WHERE 0",
    "SELECT printf('%c', 27) AS odd", "VALUES (1, 2), (3, NULL)"]
TABLES = ["edges", "collisions", "hostile", "named", "no_clock", "real"]


def dump(trace_ring, engine, names):
    """Prints answers; each value as repr has it, so that types differ as well."""
    for name in names:
        with trace_ring.open(f"{name}.trace", engine=engine, frames=False) as t:
            for query in QUERIES:
                rows = t.sql(query)
                print(name, query, rows.columns, [tuple(row) for row in rows])
            for event, table in [(row.event, row.table) for row in t.events]:
                if isinstance(event, str):
                    print(name, event, table, [tuple(row) for row in t.frame(event)])
            print(name, [tuple(row) for row in t.spans()], t.losses, t.fields, t.threads, t.processes)


def check_dumps(path, environment, names):
    found = {}
    pythons = {sys.executable, SYSTEM} if os.path.exists(SYSTEM) else {sys.executable}
    for python in sorted(pythons):
        for engine in ("extension", "program"):
            done = subprocess.run([python, __file__, "--dump", path, engine, *names], env=environment,
                                  capture_output=True, check=False, timeout=120)
            errors = done.stderr.decode()
            if done.returncode != 0 and engine == "extension" and "cannot load extensions" in errors:
                continue
            check(f"{python}: {engine}: {errors[-600:]}", 0, done.returncode)
            found[python, engine] = done.stdout.decode().splitlines()
    (first, wanted), *others = sorted(found.items())
    for which, lines in others:
        for one, other in zip(wanted, lines):
            if one != other:
                check(f"{first} and {which}", one, other)
                break
        check(f"{which}: lines", len(wanted), len(lines))
    check("answers", True, len(wanted) > 15)
    print(f"{len(found)} dumps of {len(wanted)} lines")


def check_tuples(trace_ring, engine, program):
    with trace_ring.open("service.trace", engine=engine, frames=False) as t:
        wanted = records(program, "service.trace")
        found = [(row.time, row.lane, row.position) for row in t.records()]
        check(f"{engine}: records", [(i["time_ns"], i["lane"], i["position"]) for i in wanted], found)
        found = [(row.time, row.lane, row.position) for row in t.records(backward=True)]
        check(f"{engine}: backward", [(i["time_ns"], i["lane"], i["position"])
                                      for i in records(program, "service.trace", "--backward")], found)
        # An iterator that is given up early.
        check(f"{engine}: some", wanted[0]["time_ns"], next(t.records()).time)
        last = max(i["time_ns"] for i in wanted)
        first = 1_700_000_000_123_456_789
        places = {"-300us": lambda ns: ns >= last - 300_000, "+0.5ms": lambda ns: ns >= first + 500_000,
                  "2023-11-14T22:13:20.124Z": lambda ns: ns >= 1_700_000_000_124_000_000,
                  "2023-11-14T23:13:20.124+01:00": lambda ns: ns >= 1_700_000_000_124_000_000,
                  first + 700_001: lambda ns: ns >= first + 700_001}
        for place, meets in places.items():
            mine = [i for i in wanted if i["event"] == "cache.hit" and meets(i["time_ns"])]
            check(f"{engine}: since {place}", len(mine), len(t.frame("cache.hit", since=place)))
            rest = t.frame("cache.hit", until=place)
            check(f"{engine}: until {place}", sum(i["event"] == "cache.hit" for i in wanted),
                  len(mine) + len(rest))
            check(f"{engine}: {place} selects some", True, len(mine) > 0 and len(rest) > 0)
        hits = t.frame("cache.hit", where="key % 32 = 0 OR lane = 2", columns=["key", "lane"], limit=9)
        check(f"{engine}: frame", (9, ["key", "lane"]), (len(hits), hits.columns))
        check(f"{engine}: where", True, all(r.key % 32 == 0 or r.lane == 2 for r in hits))
        spans = t.spans("query", where="duration > 1000")
        check(f"{engine}: spans", True, len(spans) > 100 and all(r.duration > 1000 for r in spans))
        errors = {"no such table": lambda: t.sql("SELECT * FROM none_such"),
                  "is no place": lambda: t.frame("query", since="soon"),
                  "no event": lambda: t.frame("qwery"), "mistyped": lambda: t.frame(
                      "query", where="mistyped = 1"), "list": lambda: t.frame("query", columns="a")}
        for message, call in errors.items():
            try:
                call()
                check(f"{engine}: {message}", "an error", "none")
            except trace_ring.Error as error:
                if message not in str(error):
                    check(f"{engine}: error", message, str(error))
    with trace_ring.open("service.trace", "random1.trace", engine=engine, frames=False) as t:
        files = t.sql("SELECT file, count(*) AS n FROM records GROUP BY file ORDER BY file")
        check(f"{engine}: two files", [("random1.trace", 1500), ("service.trace", 5000)],
              [tuple(row) for row in files])
    for name in ("none.trace", "no_trace.txt"):
        try:
            trace_ring.open(name, engine=engine)
            check(f"{engine}: {name}", "an error", "none")
        except trace_ring.Error as error:
            check(f"{engine}: {name} is named", True, name in str(error))


def check_frames(trace_ring, engine):
    with trace_ring.open("edges.trace", engine=engine) as t:
        frame = t.frame("edge")
        types = {name: str(kind) for name, kind in frame.dtypes.items()}
        check(f"{engine}: types", {"time": "datetime64[ns, UTC]", "u": "UInt64", "i": "int64",
                                   "d": "float64", "text": "object"},
              {name: types[name] for name in ("time", "u", "i", "d", "text")})
        with trace_ring.open("edges.trace", engine=engine, frames=False) as plain:
            rows = plain.frame("edge")
        check(f"{engine}: times", [row.time for row in rows], frame["time"].astype("int64").tolist())
        check(f"{engine}: u", [int(row.u) for row in rows], [int(each) for each in frame["u"]])
        check(f"{engine}: i", [row.i for row in rows], frame["i"].tolist())
        same = all(a == b or (a is None and math.isnan(b))
                   for a, b in zip([row.d for row in rows], frame["d"].tolist()))
        check(f"{engine}: d", True, same)
        none = t.frame("edge", where="lane = 77")
        check(f"{engine}: no rows", (0, "datetime64[ns, UTC]", "int64", list(frame.columns)),
              (len(none), str(none.dtypes["time"]), str(none.dtypes["lane"]), list(none.columns)))
    with trace_ring.open("collisions.trace", engine=engine) as t:
        frame = t.frame("order.sent")
        check(f"{engine}: NULL in integers", "Int64", str(frame.dtypes["raw"]))
        check(f"{engine}: number of NULLs", 24, int(frame["raw"].isna().sum()))
        check(f"{engine}: a field named time", "Int64", str(frame.dtypes["order.sent.time"]))
    with trace_ring.open("real.trace", engine=engine) as t:
        spans = t.spans("request")
        check(f"{engine}: open spans have no end", int((spans["state"] != "ended").sum()),
              int(spans["end"].isna().sum()))


def check_installed(folder, extension, environment):
    """The module finds the extension by its own place."""
    shutil.rmtree("prefix", ignore_errors=True)
    os.makedirs("prefix/lib/python3/dist-packages")
    os.makedirs("prefix/lib/x86_64-linux-gnu/trace_ring")
    shutil.copy(os.path.join(folder, "trace_ring.py"), "prefix/lib/python3/dist-packages")
    os.symlink(os.path.abspath(extension), "prefix/lib/x86_64-linux-gnu/trace_ring/trace_ring_sqlite.so")
    clean = {key: value for key, value in environment.items() if not key.startswith("TRACE_RE")
             and key != "TRACE_RING_SQLITE"}
    clean["PYTHONPATH"] = "prefix/lib/python3/dist-packages"
    text = "import trace_ring; print(len(trace_ring.open('edges.trace', frames=False).frame('edge')))"
    done = run(sys.executable, "-c", text.replace("trace'", "trace', engine='extension'"))
    check("installed", b"300\n", done.stdout)
    clean["PATH"] = "/nowhere"
    with tempfile.TemporaryDirectory() as empty:
        shutil.copy(os.path.join(folder, "trace_ring.py"), empty)
        clean["PYTHONPATH"] = empty
        done = subprocess.run([sys.executable, "-c", text], env=clean, capture_output=True,
                              check=False)
    check("neither: the error names both", (True, True),
          (b"trace-reduce" in done.stderr, b"trace_ring_sqlite.so was not found" in done.stderr))


def main(extension, program, export_samples, sql_samples, folder, how=""):
    run(export_samples, ".")
    run(sql_samples, ".")
    with open("no_trace.txt", "w", encoding="utf-8") as file:
        file.write("no trace\n" * 1000)
    os.environ.update(TRACE_RING_SQLITE=extension, TRACE_REDUCE=program, PYTHONDONTWRITEBYTECODE="1")
    if "--again" not in sys.argv:
        check_dumps(folder, os.environ, TABLES if how == "long" else TABLES[:1])
    import trace_ring  # pylint: disable=import-outside-toplevel
    can_load = hasattr(sqlite3.Connection, "enable_load_extension")
    again = "--again" in sys.argv  # the other Python has tried the program
    engines = ["extension"] if again else ["extension", "program"] if can_load else ["program"]
    try:
        import pandas  # noqa: F401 pylint: disable=import-outside-toplevel,unused-import
        has_pandas = True
    except ImportError:
        has_pandas = False
        print("no pandas here")
    for engine in engines:
        check_tuples(trace_ring, engine, program)
        if has_pandas:
            check_frames(trace_ring, engine)
    if can_load:
        from tables import ENVIRONMENT  # pylint: disable=import-outside-toplevel
        ENVIRONMENT["PYTHONPATH"] = "prefix/lib/python3/dist-packages"
        ENVIRONMENT.pop("TRACE_RING_SQLITE", None)
        check_installed(folder, extension, dict(os.environ))
    elif os.path.exists(SYSTEM) and "--again" not in sys.argv:
        done = subprocess.run([SYSTEM, *sys.argv, "--again"], check=False)
        check("the system's Python", 0, done.returncode)
    finish()


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    if sys.argv[1] == "--dump":
        sys.path.insert(0, sys.argv[2])
        import trace_ring as module
        dump(module, sys.argv[3], sys.argv[4:])
    else:
        sys.path.insert(0, sys.argv[5])
        main(*[word for word in sys.argv[1:] if word != "--again"])
