# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""SQL on damaged files: what trace-reduce prints of them as JSON, and never a crash.

    damage.py EXTENSION TRACE_REDUCE EXPORT_SAMPLES SQL_SAMPLES [COUNT [SEED]]

COUNT files with changed bytes, or cut off. Exits with 77 if this Python's SQLite cannot load
extensions.
"""
import faulthandler
import json
import random
import sqlite3
import subprocess
import sys

from tables import (ENVIRONMENT, as_name, can_load, check, check_rows, finish, open_sqlite, quoted,
                    run)

NAMES = ["everything", "types", "named", "times", "lines", "edges", "lossy", "collisions",
         "random1"]


def damaged(whole, from_):
    """A copy with changed bytes, most of them where there are some, or cut off."""
    made = bytearray(whole)
    if from_.random() < 0.25:
        return made[:from_.randrange(len(made))]
    used = [at for at in range(0, len(made), 8) if any(made[at:at + 8])]
    for _ in range(from_.choice([1, 1, 2, 5, 40])):
        at = from_.choice(used) + from_.randrange(8) if from_.random() < 0.9 \
            else from_.randrange(len(made))
        made[at % len(made)] = from_.choice([0, 255, from_.randrange(256), made[at % len(made)] ^ 1])
    if from_.random() < 0.1:
        at = from_.randrange(len(made))
        made[at:at + 4096] = bytes(len(made[at:at + 4096]))
    return made


def check_file(path, extension, program, what, tables):
    """Returns whether trace-reduce shows the file."""
    plain = subprocess.run([program, path, "--format", "json"], capture_output=True, check=False,
                           env=ENVIRONMENT, timeout=60)
    if plain.returncode not in (0, 2):
        check(f"{what}: exit status of trace-reduce", "0 or 2", plain.returncode)
        return False
    every = [json.loads(line) for line in plain.stdout.decode().splitlines()]
    try:
        db = open_sqlite(extension, path)
    except sqlite3.OperationalError as error:
        check(f"{what}: {error}: no file", (2, []), (plain.returncode, every))
        return False
    wanted = [(i["lane"], i["position"], i["ticks"], i.get("event")) for i in every
              if i["kind"] == "record"]
    found = [(*row[:2], int(row[2] or 0), as_name(row[3])) for row in db.execute(
        "SELECT lane, position, ticks, event FROM records").fetchall()]
    if db.execute("SELECT count(*) FROM records WHERE ticks IS NULL").fetchone()[0]:
        wanted = [(*row[:2], 0, row[3]) for row in wanted]  # of an unknown clock
    check_rows(f"{what}: records", wanted, found)
    lost = [(i["cause"], i.get("lane"), i.get("count") or None) for i in every if i["kind"] == "loss"]
    rows = db.execute("SELECT cause, lane, count FROM losses WHERE kind = 'loss' OR "
                      "kind = 'damage' AND lane IS NOT NULL").fetchall()
    check_rows(f"{what}: losses in lanes", [row for row in lost if row[1] is not None],
               [row for row in rows if row[1] is not None])
    faulty = sum(i["kind"] == "record" and "fault" in i for i in every)
    check(f"{what}: faulty records", (faulty,),
          db.execute("SELECT count(*) FROM losses WHERE kind = 'record'").fetchone())
    any_damage = db.execute("SELECT count(*) FROM losses WHERE cause = 'damaged'").fetchone()[0] > 0
    check(f"{what}: damage is in losses", plain.returncode == 2, any_damage)
    with_sql = subprocess.run([program, path, "--sql", "SELECT count(*) FROM losses"],
                              capture_output=True, check=False, env=ENVIRONMENT, timeout=60)
    check(f"{what}: exit status of --sql", plain.returncode, with_sql.returncode)
    names = [row[0] for row in db.execute("SELECT name FROM sqlite_temp_schema").fetchall()]
    for name in names:
        try:
            db.execute(f"SELECT * FROM {quoted(name)}").fetchall()
            db.execute(f"SELECT count(*) FROM {quoted(name)}").fetchall()
            if "time" in {row[1] for row in db.execute(f"PRAGMA table_xinfo({quoted(name)})")}:
                db.execute(f"SELECT * FROM {quoted(name)} WHERE time > 1 ORDER BY time DESC LIMIT 9"
                           ).fetchall()
        except sqlite3.OperationalError as error:
            if "goes back" not in str(error):
                check(f"{what}: {name}", "", str(error))
    tables.update(names)
    db.close()
    return True


def main(extension, program, export_samples, sql_samples, count="20", seed="1"):
    faulthandler.enable()
    if not can_load(extension):
        sys.exit(77)
    run(export_samples, ".")
    run(sql_samples, ".")
    from_ = random.Random(seed)
    shown, tables = 0, set()
    for number in range(int(count)):
        name = from_.choice(NAMES)
        with open(f"{name}.trace", "rb") as file:
            made = damaged(file.read(), from_)
        path = "damaged.trace"
        with open(path, "wb") as file:
            file.write(made)
        shown += check_file(path, extension, program, f"{number}: {name}", tables)
    print(f"{count} damaged files, {shown} of them are shown")
    check("enough files are shown", True, shown * 3 > int(count))
    finish()


if __name__ == "__main__":
    main(*sys.argv[1:])
