# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""trace-reduce --sql as a program, and the extension in programs that live longer than a query.

    program.py EXTENSION TRACE_REDUCE EXPORT_SAMPLES SQL_SAMPLES

Formats, errors, exit statuses; interrupts; traces that grow, are replaced or go away; several
connections and threads; the sqlite3 shell. Exits with 77 if this Python's SQLite cannot load
extensions.
"""
import csv
import io
import json
import os
import pty
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time

from tables import ENVIRONMENT, can_load, check, finish, open_sqlite, run


class Program:
    def __init__(self, path):
        self.path = path

    def __call__(self, *arguments, status=0, **more):
        return run(self.path, *arguments, status=status, **more)

    def rows(self, query, *files):
        done = self(*files, "--sql", query, "--format", "json")
        return [json.loads(line) for line in done.stdout.decode().splitlines()]

    def fails(self, what, *arguments, status=1, message=""):
        done = self(*arguments, status=None)
        check(f"{what}: exit status", status, done.returncode)
        errors = done.stderr.decode()
        if message not in errors:
            check(f"{what}: message", message, errors)
        check(f"{what}: one line", True, errors.count("\n") <= 3)


def on_terminal(*command):
    """What a command prints if its output is a terminal."""
    own, other = pty.openpty()
    with subprocess.Popen(command, stdout=other, stderr=other, env=ENVIRONMENT) as child:
        os.close(other)
        text = b""
        while True:
            try:
                part = os.read(own, 65536)
            except OSError:
                break
            if not part:
                break
            text += part
        os.close(own)
        check("on a terminal: exit status", 0, child.wait(60))
    return text.decode().replace("\r\n", "\n")


def check_formats(ask):
    edges = "edges.trace"
    done = ask(edges, "--sql", "SELECT lane, thread, 1.5 AS r, NULL AS n, x'00ff' AS b, 'a,\"b' AS t, "
               "9e999 AS i FROM edge LIMIT 2")
    rows = list(csv.reader(io.StringIO(done.stdout.decode(), newline="")))
    check("CSV", [["lane", "thread", "r", "n", "b", "t", "i"]], rows[:1])
    check("CSV: cells", ["1.5", "", "hex:00ff", 'a,"b'], rows[1][2:6])
    check("CSV: lines", 2, done.stdout.count(b"\r\n") - 1)
    rows = ask.rows("SELECT 1 AS a, 2 AS a, 1.5 AS r, NULL AS n, x'00ff' AS b, 'a\"' AS t, "
                    "9e999 AS i, -9e999 AS j, 9223372036854775807 AS m, 1e300 AS g", edges)
    check("JSON", [{"a": 1, "a#2": 2, "r": 1.5, "n": None, "b": {"hex": "00ff"}, "t": 'a"',
                    "i": "Infinity", "j": "-Infinity", "m": 2**63 - 1, "g": 1e300}], rows)
    done = ask(edges, "--sql", "SELECT 1 AS one, 'x' AS two", "--format", "text")
    check("table", "one  two\n───  ───\n  1  x\n(1 row)\n", done.stdout.decode())
    shown = on_terminal(ask.path, edges, "--sql", "SELECT 1 AS one, 'x' AS two")
    check("table on a terminal", done.stdout.decode(), shown)
    done = ask(edges, "--sql", "SELECT char(27) || '[31m' AS t", "--format", "text")
    check("no control characters", False, b"\x1b" in done.stdout)
    ask(edges, "--sql", "SELECT count(*) AS n FROM edge", "--output", "out.csv")
    with open("out.csv", encoding="utf-8") as file:
        check("--output", '"n"\n300\n'.replace('"', ""), file.read().replace('"', "").replace("\r", ""))
    done = ask(edges, "--format", "json", "--sql", "-- a comment\nSELECT 1 AS a; /* another */ ;\n"
               "SELECT 2 AS b;\n-- the end")
    check("several statements", '{"a":1}\n{"b":2}\n', done.stdout.decode())
    if os.path.exists("copy.db"):
        os.remove("copy.db")
    ask(edges, "--sql", "ATTACH 'copy.db' AS copy; CREATE TABLE copy.edge AS SELECT * FROM edge; "
        "CREATE INDEX copy.place ON edge(lane, position);")
    with sqlite3.connect("copy.db") as db:
        check("a copy", (300,), db.execute("SELECT count(*) FROM edge").fetchone())


def check_errors(ask):
    fails = ask.fails
    edges = "edges.trace"
    fails("syntax", edges, "--sql", "SELEKT 1", message="near \"SELEKT\"")
    fails("no table", edges, "--sql", "SELECT * FROM none_such", message="no such table: none_such")
    fails("no column", edges, "--sql", "SELECT prize FROM edge", message="no such column: prize")
    fails("double quotes", edges, "--sql", 'SELECT "mistyped" FROM edge', message="mistyped")
    fails("empty", edges, "--sql", " ;\n", message="an empty query")
    fails("no file", "--sql", "SELECT 1", message="FILE")
    fails("missing file", "none.trace", "--sql", "SELECT 1", message="none.trace")
    fails("a format", edges, "--sql", "SELECT 1", "--format", "chrome", message="text, json or csv")
    fails("an option", edges, "--sql", "SELECT 1", "--where", "u > 1", message="--where")
    fails("at run time", edges, "--sql", "SELECT 1; SELECT abs(-9223372036854775807 - 1)",
          message="integer overflow")
    fails("output", edges, "--sql", "SELECT 1", "--output", "/nowhere/x", message="/nowhere/x")
    with open("empty.trace", "wb"):
        pass
    with open("text.trace", "w", encoding="utf-8") as file:
        file.write("no trace\n" * 1000)
    for name in ("empty.trace", "text.trace"):
        plain = ask(name, status=None)
        with_sql = ask(name, "--sql", "SELECT 1", status=None)
        check(f"{name}: exit status as without --sql", plain.returncode, with_sql.returncode)
        check(f"{name}: is named", True, name.encode() in with_sql.stderr)
    damaged = ask("hostile.trace", "--sql", "SELECT count(*) AS n FROM records", status=2)
    check("damage: the rows", b"12", damaged.stdout.split()[1])
    check("damage: the message", True, b"hostile.trace: offset " in damaged.stderr)
    # A reader that stops early is no error of ours, nor a reason to go on.
    done = subprocess.run(["bash", "-c", f"set -o pipefail; '{ask.path}' big.trace --sql "
                           "'SELECT * FROM records' | head -1 > /dev/null"],
                          check=False, env=ENVIRONMENT, timeout=60, capture_output=True)
    check("SIGPIPE", (True, b""), (done.returncode in (0, 141, 1), done.stderr))


# Reads on without a row, in the table's own conditions; and one that SQLite itself makes long.
LONG = ["SELECT count(*) FROM records a CROSS JOIN records b WHERE b.pid = 5",
        "SELECT count(*) FROM records a, records b, records c",
        "SELECT count(*) FROM records a, losses b, spans c, records d"]


def check_interrupts(extension, ask):
    for query in LONG:
        with subprocess.Popen([ask.path, "big.trace", "--sql", query], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=ENVIRONMENT) as child:
            time.sleep(0.15)
            child.send_signal(signal.SIGINT)
            began = time.monotonic()
            child.communicate(timeout=30)
            check(f"Ctrl-C: {query}", 130, child.returncode)
            check(f"Ctrl-C soon: {query}", True, time.monotonic() - began < 2)
        db = open_sqlite(extension, "big.trace")
        db_thread = threading.Timer(0.1, db.interrupt)
        db_thread.start()
        began = time.monotonic()
        try:
            db.execute(query).fetchall()
            check(f"interrupted: {query}", "an error", "an answer")
        except sqlite3.OperationalError as error:
            check(f"interrupted: {query}", "interrupted", str(error))
        db_thread.join()
        check(f"interrupted soon: {query}", True, time.monotonic() - began < 2)
        # The connection is fine afterwards.
        check("after the interrupt", True, db.execute("SELECT count(*) FROM query").fetchone()[0] > 0)


def check_growing(extension, sql_samples):
    path = "growing.trace"
    if os.path.exists(path):
        os.remove(path)
    count = 20_000
    with subprocess.Popen([sql_samples, "grow", path, str(count)]) as child:
        while not os.path.exists(path) or os.path.getsize(path) == 0:
            time.sleep(0.005)
        db, met = None, []
        while child.poll() is None:
            try:
                db = db or open_sqlite(extension, path)
                (a, b, c) = db.execute(
                    "SELECT (SELECT count(*) FROM number), (SELECT count(*) FROM number WHERE +n >= 0), "
                    "(SELECT count(*) FROM records WHERE event = 'number')").fetchone()
            except sqlite3.OperationalError as error:  # the trace is not set up yet
                if db is not None and "number" not in str(error):
                    raise
                db = None
                continue
            check("one statement, one state", (a, a), (b, c))
            x, y = db.execute("SELECT count(*), sum(y.n = x.n) FROM number x JOIN number y "
                              "ON y.lane = x.lane AND y.position = x.position AND x.position < 30"
                              ).fetchone()
            check("a self-join", x, y or 0)
            met.append(a)
        check("recorder", 0, child.wait())
    check("later statements see more", sorted(met), met)
    check("they saw the trace grow", True, len(set(met)) > 2)
    check("all of it", [(n,) for n in range(count)],
          db.execute("SELECT n FROM number ORDER BY n").fetchall())
    check("the total", (count,),
          db.execute("SELECT total FROM events WHERE event = 'number'").fetchone())


def check_files(extension):
    shutil.copy("edges.trace", "now.trace")
    db, other = open_sqlite(extension, "now.trace"), open_sqlite(extension, "now.trace")
    check("before", (300,), db.execute("SELECT count(*) FROM records").fetchone())
    reading = other.execute("SELECT u FROM edge")
    first = reading.fetchone()
    shutil.copy("where.trace", "next.trace")
    os.replace("next.trace", "now.trace")
    check("replaced", (187,), db.execute("SELECT count(*) FROM records").fetchone())
    check("an event that the new file lacks", (0,), db.execute("SELECT count(*) FROM edge").fetchone())
    check("a query goes on in the old file", 300, len([first, *reading.fetchall()]))
    db.execute("SELECT trace_ring_open('now.trace')").fetchall()
    check("opened again", (151,), db.execute('SELECT count(*) + 1 FROM "every"').fetchone())
    os.remove("now.trace")
    check("deleted", (150,), db.execute('SELECT count(*) FROM "every"').fetchone())
    for name, status in (("none.trace", "none.trace"), (".", "."), ("empty.trace", "empty.trace")):
        try:
            db.execute("SELECT trace_ring_open(?)", [name]).fetchall()
            check(f"open {name}", "an error", "none")
        except sqlite3.OperationalError as error:
            check(f"open {name}: is named", True, status in str(error))
    if os.geteuid() != 0:
        shutil.copy("edges.trace", "secret.trace")
        os.chmod("secret.trace", 0)
        try:
            db.execute("SELECT trace_ring_open('secret.trace')").fetchall()
            check("no permission", "an error", "none")
        except sqlite3.OperationalError as error:
            check("no permission", True, "ermission" in str(error))
    arguments = {"": "no file", "'edges.trace', table=nothing": "nothing",
                 "'edges.trace', event=none": "none", "'edges.trace', table=branches": "branch",
                 "'edges.trace', table=allocations": "heap", "'edges.trace', odd=1": "odd",
                 "'edges.trace', table=event": "event", "'edges.trace', table=spans, event=edge":
                 "edge"}
    for number, (text, message) in enumerate(arguments.items()):
        try:
            db.execute(f"CREATE VIRTUAL TABLE temp.t{number} USING trace_ring({text})")
            check(f"USING trace_ring({text})", "an error", "none")
        except sqlite3.OperationalError as error:
            check(f"USING trace_ring({text}): {error}", True, message in str(error))
    db.execute("CREATE VIRTUAL TABLE temp.r USING trace_ring('edges.trace')")
    check("USING trace_ring: records", (300,), db.execute("SELECT count(*) FROM r").fetchone())
    db.execute("CREATE TEMP TABLE \"my.edge\"(x)")
    try:
        db.execute("SELECT trace_ring_open('edges.trace', 'prefix=my.')").fetchall()
        check("a table is there already", "an error", "none")
    except sqlite3.OperationalError as error:
        check("a table is there already", True, "my.edge" in str(error))


def check_threads(extension):
    """Each thread has its connection."""
    found = []

    def work():
        db = open_sqlite(extension, "big.trace")
        for _ in range(3):
            found.append(db.execute("SELECT count(*), sum(id) FROM request WHERE thread GLOB 'w*'"
                                    ).fetchone())

    threads = [threading.Thread(target=work) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    check("two threads", 1, len(set(found)))
    check("two threads: queries", 6, len(found))


def check_shell(extension):
    shell = shutil.which("sqlite3")
    if shell is None:
        return
    script = (f".load {os.path.splitext(extension)[0]}\n"
              "CREATE VIRTUAL TABLE temp.t USING trace_ring('edges.trace', event=edge);\n"
              "SELECT count(*) FROM t WHERE lane = 1;\n"
              "SELECT length(trace_ring_open('edges.trace')) > 0;\nSELECT count(*) FROM edge;\n")
    done = run(shell, ":memory:", input=script.encode())
    lines = done.stdout.decode().split()
    check("the sqlite3 shell", (3, "1", "300"), (len(lines), *lines[1:]))
    # SQL that a database's schema has may not open files.
    script = (f".load {os.path.splitext(extension)[0]}\n"
              "CREATE VIEW v AS SELECT trace_ring_open('edges.trace');\nSELECT * FROM v;\n")
    done = run(shell, ":memory:", input=script.encode(), status=None)
    check("not in a view", True, b"unsafe" in done.stderr)


def main(extension, trace_reduce, export_samples, sql_samples):
    if not can_load(extension):
        sys.exit(77)
    for maker in (export_samples, sql_samples):
        run(maker, ".")
    run(export_samples, ".", "60000")
    ask = Program(trace_reduce)
    check_formats(ask)
    check_errors(ask)
    check_interrupts(extension, ask)
    check_growing(extension, sql_samples)
    check_files(extension)
    check_threads(extension)
    check_shell(extension)
    finish()


if __name__ == "__main__":
    main(*sys.argv[1:])
