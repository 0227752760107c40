# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""Conditions that the tables evaluate themselves, against the same ones that SQLite evaluates.

    conditions.py EXTENSION EXPORT_SAMPLES SQL_SAMPLES [COUNT [SEED]]

COUNT random conditions for each table. Constants are of the column's type and of others, at the
limits of integers and doubles, NULL, texts for numbers and numbers for texts. A condition in
`CASE WHEN ... THEN 1 END` has the same meaning, and SQLite does not pass it to the table.
"""
import random
import sqlite3
import sys

from tables import FAILED, can_load, check, finish, open_sqlite, quoted, run

NUMBERS = ["0", "1", "-1", "2", "5", "42", "200", "9007199254740991", "9007199254740992",
           "9007199254740993", "9223372036854775806", "9223372036854775807", "-9223372036854775808",
           "-9223372036854775807", "1.5", "-0.0", "0.25", "41.5", "42.0", "9007199254740993.0",
           "9.2233720368547748e18", "9223372036854775808.0", "-9223372036854775808.0", "1.8e19",
           "1e300", "-1e300", "9e999", "-9e999", "4.9e-324"]
TEXTS = ["''", "'a'", "'A'", "'abc'", "'42'", "'42.0'", "' 42'", "'9223372036854775808'",
         "'18446744073709551615'", "'-1'", "'x'", "'1e3'", "'buy'", "'sell'", "'12'", "'NULL'",
         "x'ff'", "x'6e006c'", "x''", "'ä'"]
GLOBS = ["'*'", "'a*'", "'*a'", "'[a-c]*'", "'?'", "'*?'", "''", "'\\*'", "'*\"*'", "'n*'", "'[*'",
         "'[^a]*'", "'4*'", "'work*'", "'*e'", "42", "NULL", "x'61'", "'a*b[?]'"]
LIKES = ["'a%'", "'%A'", "'_'", "'abc'", "'4%'", "'%'", "''"]
ORDERS = ["=", "<>", "<", "<=", ">", ">=", "==", "!=", "IS", "IS NOT"]


class Maker:
    """Random conditions on the columns of a table."""

    def __init__(self, db, table, seed):
        self.random = random.Random(seed)
        info = db.execute(f"PRAGMA table_xinfo({quoted(table)})").fetchall()
        skipped = {"offset", "bytes", "time_text"}
        self.columns = [row[1] for row in info if row[1] not in skipped]
        self.common = [name for name in ("time", "since", "ticks", "lane", "position", "tid", "pid",
                                         "thread", "event") if name in self.columns]
        # Values that are there, so that conditions select something.
        self.values = {}
        for name in self.columns:
            rows = db.execute(f"SELECT DISTINCT quote({quoted(name)}) FROM {quoted(table)} "
                              "LIMIT 60").fetchall()
            # quote() of the infinities is no SQL.
            self.values[name] = [row[0].replace("Inf", "9e999") if row[0].endswith("Inf") else row[0]
                                 for row in rows]
        self.varied = [name for name in self.columns if len(self.values[name]) > 1] or self.columns

    def constant(self, column):
        choice = self.random.random()
        if choice < 0.6 and self.values[column]:
            value = self.random.choice(self.values[column])
            if value.lstrip("-").isdigit() and self.random.random() < 0.4:
                value = str(max(-2**63, min(2**63 - 1,
                                            int(value) + self.random.choice([-1, 1, 2]))))
                if self.random.random() < 0.3:
                    value += self.random.choice([".0", ".5"])
            return value
        if choice < 0.82:
            return self.random.choice(NUMBERS)
        if choice < 0.97:
            return self.random.choice(TEXTS)
        return "NULL"

    def term(self):
        pick = self.random.choice
        where = self.random.random()
        column = pick(self.common if where < 0.3 else self.varied if where < 0.9 else self.columns)
        name, kind = quoted(column), self.random.random()
        if kind < 0.55:
            if self.random.random() < 0.15:
                return f"{self.constant(column)} {pick(ORDERS[:6])} {name}"
            collation = pick(["", "", "", "", " COLLATE NOCASE", " COLLATE RTRIM"])
            return f"{name} {pick(ORDERS)} {self.constant(column)}{collation}"
        if kind < 0.65:
            return f"{name} BETWEEN {self.constant(column)} AND {self.constant(column)}"
        if kind < 0.78:
            values = [self.constant(column) for _ in range(self.random.randrange(0, 5))]
            return f"{name} {pick(['IN', 'IN', 'NOT IN'])} ({', '.join(values)})"
        if kind < 0.9:
            return f"{name} {pick(['GLOB', 'GLOB', 'NOT GLOB'])} {pick(GLOBS)}"
        if kind < 0.95:
            return f"{name} LIKE {pick(LIKES)}"
        return f"{name} IS {pick(['', 'NOT '])}NULL"

    def condition(self):
        count = self.random.choice([1, 1, 1, 1, 2, 2, 3])
        terms = [self.term() for _ in range(count)]
        joint = " AND " if self.random.random() < 0.85 else " OR "
        return joint.join(terms)

    def order(self):
        return self.random.choice(["", "", "", " ORDER BY time", " ORDER BY time DESC",
                                   " ORDER BY since", " ORDER BY ticks DESC", " ORDER BY ticks"])


def check_table(db, name, table, count, seed):
    """Returns how many conditions selected some rows, but not all."""
    make = Maker(db, table, seed)
    place = "file, lane, position" + (", kind, address, site" if table == "references" else "")
    place += (", name" if table in ("counters", "flows") else "")
    of = quoted(table)
    whole = len(db.execute(f"SELECT 1 FROM {of}").fetchall())
    useful = 0
    for _ in range(count):
        condition, order = make.condition(), make.order()
        if order and order.split()[2] not in make.columns:
            order = ""
        wanted = db.execute(f"SELECT {place} FROM {of} WHERE CASE WHEN {condition} THEN 1 END"
                            ).fetchall()
        try:
            found = db.execute(f"SELECT {place} FROM {of} WHERE {condition}{order}").fetchall()
        except sqlite3.OperationalError as error:
            # Reading in order meets a lane whose time goes back: SQLite must sort.
            if "goes back" not in str(error):
                raise
            order = order.replace("BY ", "BY +")
            found = db.execute(f"SELECT {place} FROM {of} WHERE {condition}{order}").fetchall()
        useful += 0 < len(wanted) < whole
        what = f"{name}: SELECT * FROM {of} WHERE {condition}{order}"
        if len(wanted) != len(found) or sorted(wanted) != sorted(found):
            plan = db.execute(f"EXPLAIN QUERY PLAN SELECT {place} FROM {of} WHERE {condition}{order}"
                              ).fetchall()[0][3]
            missing = sorted(set(wanted) - set(found))
            check(f"{what} ({plan})", (len(wanted), missing[:3]), (len(found), []))
            if len(FAILED) > 200:
                finish()
        elif order:
            by = order.split()[2]
            keys = [row[0] for row in db.execute(
                f"SELECT {by} FROM {of} WHERE {condition}{order}")]
            check(f"{what}: in order", db.execute(
                f"SELECT {by} FROM {of} WHERE {condition} ORDER BY +{by}"
                f"{' DESC' if order.endswith('DESC') else ''}").fetchall(), [(key,) for key in keys])
        count_of = db.execute(f"SELECT count(*) FROM {of} WHERE {condition}").fetchone()[0]
        if count_of != len(wanted):
            check(f"{what}: count(*)", len(wanted), count_of)
    return useful


def check_joins(db, tables, count, seed):
    """Joins on any two columns: the inner table's records are looked up by the value."""
    from_ = random.Random(seed)
    columns = {table: Maker(db, table, seed).columns for table in tables}
    for _ in range(count):
        outer, inner = from_.choice(tables), from_.choice(tables)
        key, column = (quoted(from_.choice(columns[table])) for table in (outer, inner))
        on = f"y.{column} = x.key" + from_.choice(["", " OR y.lane = 1", " AND y.lane = x.lane",
                                                   " AND y.position < 20"])
        texts = [f"SELECT count(*), sum(x.lane * 1000 + x.position), sum(y.lane * 1000 + y.position) "
                 f"FROM (SELECT {key} AS key, lane, position FROM {quoted(outer)} LIMIT 60) x "
                 f"CROSS JOIN {quoted(inner)} y ON {condition}"
                 for condition in (f"CASE WHEN {on} THEN 1 END", on)]
        wanted, found = (db.execute(text).fetchone() for text in texts)
        check(texts[1], wanted, found)


def main(extension, export_samples, sql_samples, count="6", seed="1"):
    if not can_load(extension):
        sys.exit(77)
    run(export_samples, ".")
    run(sql_samples, ".")
    tables = [("edges", ["edge", "records"]), ("where", ["every", "texts.some", "other", "span",
                                                         "span.spans", "records"]),
              ("collisions", ["order.sent", "records", "event.records", "event.Order.Sent",
                              "twice"]),
              ("named", ["order", "other", "counters"]), ("types", ["all.types", "floats"]),
              ("times", ["records", "tick", "work.spans", "spans"]),
              ("real", ["measured", "request", "request.spans", "counters", "flows"]),
              ("hostile", ["records"]), ("no_clock", ["tick"]),
              ("references", ["references", "records"]), ("lossy", ["spans", "outer1.spans"]), ("random2", ["records", "spans", "event.3.spans"])]
    conditions, useful = 0, 0
    for name, of in tables:
        db = open_sqlite(extension, f"./{name}.trace")
        for table in of:
            useful += check_table(db, name, table, int(count), f"{seed} {name} {table}")
            conditions += int(count)
    several = ["./edges.trace", "./where.trace", "./collisions.trace"]
    db = open_sqlite(extension, *several)
    for table in ("records", "edge", "order.sent", "every"):
        useful += check_table(db, "several", table, int(count), f"{seed} several {table}")
        conditions += int(count)
    check_joins(db, ["edge", "order.sent", "every", "texts.some"], int(count) * 2, seed)
    print(f"{conditions} conditions, {useful} of them select some rows, but not all")
    check("enough conditions select something", True, useful * 5 > conditions)
    finish()


if __name__ == "__main__":
    main(*sys.argv[1:])
