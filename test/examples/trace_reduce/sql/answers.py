# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""Answers of SQL against what trace-reduce prints for the same files.

    answers.py EXTENSION TRACE_REDUCE EXPORT_SAMPLES SQL_SAMPLES

Every record with every column and field; losses, spans, counters, flows; counts, statistics;
conditions and ranges; both directions; several files merged. Exits with 77 if this Python's SQLite
cannot load extensions.
"""
import json
import sys
from collections import Counter

from tables import (Fields, as_cell, as_integer, as_name, can_load, check, check_rows,
                    finish, items, open_sqlite, quoted, records, run)

# What hostile.trace has is no damage of the file as a whole, but of records in it.
STATUS = {"hostile": 2}
COLUMNS = ["time", "ticks", "lane", "position", "thread", "tid", "pid", "process", "depth",
           "latest", "event", "span", "began_lane", "began_position", "cut", "fault", "raw"]


def record_row(item):
    """The columns of a record of JSON that all tables have."""
    began = dict(item.get("began", Fields()))
    cut = item.get("cut")
    raw = item.get("raw")
    return [item.get("time_ns"), as_integer(item["ticks"]) if "ticks" in item else None,
            item["lane"], item["position"], item.get("thread"), item.get("tid"), item.get("pid"),
            item.get("process"), item.get("depth"),
            item.get("latest_ns") if item.get("interval") else item.get("time_ns"), item.get("event"),
            item.get("span"), began.get("lane"), began.get("position"), cut, item.get("fault"),
            None if raw is None else bytes.fromhex(raw)]


def sql_record_row(row):
    row = list(row)
    for at in (4, 10):  # names
        row[at] = as_name(row[at])
    row[14] = None if row[14] is None else json.loads(row[14])
    return row


def check_records(name, db, wanted):
    hidden = {"began_lane", "began_position", "fault", "raw", "cut", "latest", "depth"}
    assert hidden <= set(COLUMNS)
    text = ", ".join(COLUMNS)
    found = [sql_record_row(row) for row in db.execute(f"SELECT {text} FROM records")]
    check_rows(f"{name}: records", [record_row(item) for item in wanted], found)
    shown = [None if row[0] is None else json.loads(row[0], object_pairs_hook=Fields)
             for row in db.execute("SELECT fields FROM records")]
    check_rows(f"{name}: fields", [None if item.get("span") == "end" and not item.get("fields")
                                   else item.get("fields") for item in wanted], shown)
    check(f"{name}: count", len(wanted), db.execute("SELECT count(*) FROM records").fetchone()[0])
    if wanted and "time_ns" in wanted[0]:
        texts = db.execute("SELECT time, time_text FROM records WHERE time % 7 = 0").fetchall()
        for ns, shown_as in texts[:50]:
            whole = db.execute("SELECT strftime('%Y-%m-%dT%H:%M:%S', ?, 'unixepoch')",
                               [ns // 10**9]).fetchone()[0]
            check(f"{name}: time_text", f"{whole}.{ns % 10**9:09d}Z", shown_as)


def field_kinds(db, event):
    """The types of an event's columns: (field, which, column) to {(type, form)}."""
    found, met = {}, Counter()
    for field, column, type_, form in db.execute(
            "SELECT field, column, type, form FROM fields WHERE event = ?", [event]):
        key = column
        if key not in found:
            found[key] = [field, met[field], set()]
            met[field] += 1
        found[key][2].add((type_, form))
    return found


def check_event(name, db, event, table, wanted):
    """All fields of an event in its table."""
    kinds = field_kinds(db, event)
    columns = list(kinds)
    mine = [item for item in wanted if item.get("event") == event and "fields" in item]
    text = "".join(", " + quoted(column) for column in columns)
    found = db.execute(f"SELECT lane, position{text} FROM {quoted(table)} "
                       "WHERE fault IS NULL").fetchall()
    rows = []
    for item, row in zip(mine, found):
        row, cells = list(row), []
        for at, column in enumerate(columns):
            field, which, types = kinds[column]
            value = item["fields"].find(field, which)
            value = [as_cell(value, kind) for kind in sorted(types)]
            if isinstance(value[0], list):
                row[2 + at] = json.loads(row[2 + at], object_pairs_hook=Fields)
            at_end = [one for one in value if repr(one) == repr(row[2 + at])]
            hidden = at_end[0] if at_end else value[0]
            if isinstance(hidden, str) and isinstance(row[2 + at], bytes):
                row[2 + at] = as_name(row[2 + at])  # the name of a value
            cells.append(hidden)
        rows.append(tuple(row))
        wanted_row = (item["lane"], item["position"], *cells)
        if repr(wanted_row) != repr(rows[-1]):
            check(f"{name}: {event}: {columns}", wanted_row, rows[-1])
            return
    check(f"{name}: {event}: number of rows", len(mine), len(found))
    count = db.execute(f"SELECT count(*) FROM {quoted(table)}").fetchone()[0]
    check(f"{name}: {event}: count", sum(item.get("event") == event for item in wanted), count)


def check_losses(name, db, every):
    wanted = [item for item in every if item["kind"] == "loss"]
    found = db.execute("SELECT cause, count, lane, position, ticks, time FROM losses "
                       "WHERE kind IN ('loss', 'damage')").fetchall()
    check_rows(f"{name}: losses",
               [(item["cause"], item.get("count") or None, item.get("lane"), item.get("position"),
                 item.get("ticks"), item.get("time_ns")) for item in wanted], found)
    jumps = [item for item in every if item["kind"] == "clock_jump"]
    found = db.execute("SELECT lane, position, ticks, time, step FROM losses "
                       "WHERE kind = 'clock_jump'").fetchall()
    check_rows(f"{name}: clock jumps",
               [(item["lane"], item.get("position"), item["ticks"], item.get("time_ns"),
                 item.get("step_ns")) for item in jumps], found)
    faulty = [(item["lane"], item["position"], item["fault"]) for item in every
              if item["kind"] == "record" and "fault" in item]
    check_rows(f"{name}: faulty records", faulty, db.execute(
        "SELECT lane, position, what FROM losses WHERE kind = 'record'").fetchall())


def check_spans(name, db, wanted):
    """Each begin and each end is in one row; durations are those of JSON."""
    begins = Counter((i["lane"], i["position"]) for i in wanted if i.get("span") == "begin")
    ends = {(i["lane"], i["position"]): i for i in wanted if i.get("span") == "end"}
    rows = db.execute("SELECT event, lane, position, end_lane, end_position, duration, state, "
                      "duration_ticks, time, \"end\" FROM spans").fetchall()
    found_begins, found_ends = Counter(), Counter()
    for event, lane, position, end_lane, end_position, duration, state, ticks, time, end in rows:
        end_place = (end_lane, end_position)
        if state not in ("begin lost", "not nested"):
            found_begins[lane, position] += 1
        if end_lane is None:
            check(f"{name}: {event}: open", (None, None, None), (duration, ticks, end))
            continue
        found_ends[end_place] += 1
        item = ends.get(end_place, {})
        check(f"{name}: span's end at {end_place}", (event, item.get("time_ns")), (event, end))
        # JSON has the duration only where the begin was read, too.
        if state == "ended":
            check(f"{name}: duration of the span that ends at {end_place}",
                  (item.get("duration_ns"), item.get("duration_ticks")), (duration, ticks))
            # In `times` the date is set back, and in `real` the clocks differ.
            if duration is not None and name not in ("times", "real"):
                check(f"{name}: its end", True, abs(time + duration - end) < 2)
        else:
            check(f"{name}: {state}", None, duration)
    check(f"{name}: begins", begins, found_begins)
    check(f"{name}: ends", Counter(ends.keys()), found_ends)
    for event, table in db.execute("SELECT event, \"table\" FROM events WHERE kind = 'span'"):
        of_event = db.execute(f"SELECT lane, position, end_lane, end_position, duration, state, level, "
                              f"parent_lane, parent_position FROM {quoted(table + '.spans')} "
                              "ORDER BY 1, 2, 3, 4").fetchall()
        of_all = db.execute("SELECT lane, position, end_lane, end_position, duration, state, level, "
                            "parent_lane, parent_position FROM spans WHERE +event = ? "
                            "ORDER BY 1, 2, 3, 4", [event]).fetchall()
        check_rows(f"{name}: {event}.spans", of_all, of_event)


def check_nesting(name, db, wanted):
    """Parents and levels, of a trace whose spans nest in each lane and have no losses."""
    stacks, rows = {}, []
    for item in wanted:
        stack = stacks.setdefault(item["lane"], [])
        if item.get("span") == "begin":
            parent = stack[-1] if stack else (None, None)
            rows.append((item["lane"], item["position"], len(stack), *parent))
            stack.append((item["lane"], item["position"]))
        elif item.get("span") == "end":
            began = dict(item.get("began", Fields()))
            if began:
                stacks[began["lane"]].remove((began["lane"], began["position"]))
            else:
                stack.pop()
    found = db.execute("SELECT lane, position, level, parent_lane, parent_position FROM spans "
                       "ORDER BY lane, position").fetchall()
    check_rows(f"{name}: nesting", sorted(rows), found)


def check_values(name, db, wanted, counters, flows):
    """The tables counters and flows; which fields they are is known of the trace."""
    for table, column, known in (("counters", "value", counters), ("flows", "flow", flows)):
        rows = []
        for item in wanted:
            for field, value in item.get("fields", ()):
                if (item["event"], field) in known:
                    rows.append((item["lane"], item["position"], item["event"], field, value))
        found = db.execute(f"SELECT lane, position, event, name, {column} FROM {table}").fetchall()
        check_rows(f"{name}: {table}", rows, found)


def check_statistics(name, db, program, path, status):
    done = run(program, path, "--stats", "--format", "json", status=status)
    sums = json.loads(done.stdout.decode().splitlines()[0])
    found = dict(db.execute("SELECT event, records FROM events").fetchall())
    counted = Counter()
    for event in sums["events"]:  # several types may have one name
        if event["event"] is not None:
            counted[event["event"]] += event["records"]
    check(f"{name}: events.records", +counted,
          +Counter({as_name(key): value for key, value in found.items()}))
    row = db.execute("SELECT count(*), min(time), max(time), sum(bytes) FROM records").fetchone()
    check(f"{name}: statistics", (sums["records"], sums.get("first_time_ns"),
                                  sums.get("last_time_ns"), sums["bytes"] or None), row)
    lost = Counter(sums["lost"])
    found = Counter(dict(db.execute("SELECT cause, sum(count) FROM losses WHERE kind = 'loss' "
                                    "GROUP BY cause").fetchall()))
    check(f"{name}: lost", +lost, +found)
    lanes = Counter()
    for lane in sums["lanes"]:  # several threads may use one after the other
        lanes[lane["lane"]] += lane["records"]
    check(f"{name}: records by lane", dict(+lanes),
          dict(db.execute("SELECT lane, count(*) FROM records GROUP BY lane").fetchall()))


def check_choices(name, db, program, path, condition, where):
    """SQL's WHERE against --where and others."""
    options = [f"--{key}" if value is True else f"--{key}={value}" for key, value in where.items()]
    wanted = records(program, path, *options)
    found = db.execute(f"SELECT lane, position FROM records WHERE {condition}").fetchall()
    check_rows(f"{name}: {condition}", [(i["lane"], i["position"]) for i in wanted], found)
    return len(found)


def check_directions(name, db, program, path, status):
    wanted = records(program, path, "--backward", status=status)
    found = db.execute("SELECT lane, position FROM records ORDER BY time DESC").fetchall()
    stamps = [i.get("time_ns", 0) for i in wanted]
    if all(stamps) and stamps == sorted(stamps, reverse=True):  # the date was not set back
        check_rows(f"{name}: backward", [(i["lane"], i["position"]) for i in wanted], found)
    times = [row[0] for row in db.execute("SELECT time FROM records").fetchall()]
    if all(one is not None for one in times):
        for order, wanted in (("", sorted(times)), (" DESC", sorted(times, reverse=True))):
            for limit in (1, 7, 10**6):
                check_rows(f"{name}: ORDER BY time{order} LIMIT {limit}", wanted[:limit], [
                    row[0] for row in db.execute(
                        f"SELECT time FROM records ORDER BY time{order} LIMIT {limit}")])


def check_references(extension, program, path):
    db = open_sqlite(extension, path)
    wanted = []
    for item in records(program, path):
        if item["event"] in ("load", "store", "block", "enter", "exit"):
            address, size, site, caller = (item["fields"].find(name) for name in
                                           ("address", "size", "site", "caller"))
            wanted.append((item["event"], item["time_ns"], item["lane"], item["position"],
                           *(value and int(value, 16) for value in (address, site, caller)), size))
    columns = "kind, time, lane, position, address, site, caller, size"
    found = db.execute(f'SELECT {columns} FROM "references"').fetchall()
    check_rows("references", wanted, found)
    check("references: some", True, len(found) > 500)
    check_rows("references backward", wanted[::-1], db.execute(
        f'SELECT {columns} FROM "references" ORDER BY time DESC').fetchall())
    for condition, meets in (
            ("kind = 'load' OR address = 139715582365696", lambda row: row[0] == "load"
             or row[4] == 139715582365696),
            ("site >= 4198401 AND lane = 1", lambda row: row[5] >= 4198401),
            ("size = 4 OR size = 8 OR kind = 'store'", lambda row: row[7] in (4, 8)),
            ("address BETWEEN 139715582361608 AND 139715582361624 OR caller > 0",
             lambda row: row[4] is not None and 139715582361608 <= row[4] <= 139715582361624
             or (row[6] or 0) > 0)):
        check(f"references: {condition}", sum(map(meets, wanted)), db.execute(
            f'SELECT count(*) FROM "references" WHERE {condition}').fetchone()[0])


def check_several(extension, program, folder):
    """Two files are merged by time, and join."""
    paths = [f"{folder}/service.trace", f"{folder}/random1.trace"]
    db = open_sqlite(extension, *paths)
    for options, order in (((), ""), (("--backward",), " ORDER BY time DESC")):
        wanted = records(program, *paths, *options)
        found = db.execute(f"SELECT time, lane, position, event FROM records{order}").fetchall()
        if order:  # of one time, either may come first
            wanted.sort(key=lambda i: (-i["time_ns"], i["lane"], i["position"]))
            found.sort(key=lambda row: (-row[0], row[1], row[2]))
        check_rows(f"merged{order}", [(i["time_ns"], i["lane"], i["position"], i["event"])
                                      for i in wanted], found)
    files = dict(db.execute("SELECT file, count(*) FROM records GROUP BY file").fetchall())
    check("files", {path: len(records(program, path)) for path in paths}, files)
    db.execute("SELECT trace_ring_open(?, 'prefix=a.')", [paths[0]]).fetchall()
    db.execute("SELECT trace_ring_open(?, 'prefix=b.')", [paths[0]]).fetchall()
    joined = db.execute('SELECT count(*), sum(x.id = y.id) FROM "a.request" x JOIN "b.request" y '
                        "ON x.id = y.id AND x.span = y.span WHERE x.id < 40").fetchone()
    both = Counter((i["fields"].find("id"), i["span"]) for i in records(program, paths[0])
                   if i["event"] == "request" and i["fields"].find("id") < 40)
    wanted = sum(n * n for n in both.values())
    check("join of two files", (wanted, wanted), joined)


def main(extension, program, export_samples, sql_samples):
    if not can_load(extension):
        sys.exit(77)
    folder = "."
    run(export_samples, folder)
    run(sql_samples, folder)
    run(sql_samples, "killed", f"{folder}/shot.trace", status=-9)
    names = ["everything", "types", "named", "hostile", "times", "lines", "killed", "service",
             "no_clock", "random1", "random2", "real", "collisions", "edges",
             "where", "lossy", "shot"]
    for name in names:
        path, status = f"{folder}/{name}.trace", STATUS.get(name, 0)
        db = open_sqlite(extension, path)
        every = items(program, path, status=status)
        wanted = [item for item in every if item["kind"] == "record"]
        check_records(name, db, wanted)
        for event, table in db.execute('SELECT event, "table" FROM events').fetchall():
            if isinstance(event, str):
                check_event(name, db, event, table, wanted)
        check_losses(name, db, every)
        check_spans(name, db, wanted)
        check_statistics(name, db, program, path, status)
        check_directions(name, db, program, path, status)
        if name in ("service", "real"):
            check_nesting(name, db, wanted)
        if name == "lines":
            check_values(name, db, wanted, {("queue.depth", "depth")},
                         {("request", "job"), ("done", "job")})
        if name == "real":
            check_values(name, db, wanted, {("depth", "value")},
                         {("request", "job"), ("measured", "job")})
        db.close()
    path = f"{folder}/service.trace"
    db = open_sqlite(extension, path)
    for condition, where in [
            ("event = 'query'", {"event": "query"}),
            ("event GLOB 'q*'", {"event": "q*"}),
            ("thread = 'main'", {"thread": "main"}),
            ("thread GLOB 'worker*' AND event = 'cache.hit'",
             {"thread": "worker*", "event": "cache.hit"}),
            ("tid IN (101, 103)", {"where": "tid in {101, 103}"}),
            ("lane = 3", {"where": "lane == 3"}),
            ("since >= 1000000 AND since < 2000000", {"from": "+1ms", "to": "+2ms"}),
            # Of spans, --where selects both ends.
            ("since < 500000 AND event = 'cache.hit'",
             {"where": "time < 500us", "event": "cache.hit"}),
            ("position BETWEEN 10 AND 20 AND event = 'queue.depth'",
             {"where": "position >= 10 and position <= 20", "event": "queue.depth"}),
            ("time >= 1700000000124456789", {"from": "+1ms"})]:
        count = check_choices("service", db, program, path, condition, where)
        check(f"{condition}: selects some", True, count > 0)
    check_references(extension, program, f"{folder}/references.trace")
    check_several(extension, program, folder)
    finish()


if __name__ == "__main__":
    main(*sys.argv[1:])
