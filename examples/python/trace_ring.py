# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""Reads trace files of trace_ring with SQL.

    import trace_ring
    with trace_ring.open("orders.trace") as t:
        print(t.events)
        last = t.frame("order.sent", where="price > 100", since="-2s")
        print(t.sql("SELECT thread, avg(price) FROM \\"order.sent\\" GROUP BY thread"))

Tables come as pandas frames if pandas is installed, otherwise as lists of named tuples. No build step
and no package is needed: SQLite reads the files through trace_ring_sqlite.so, or, if this Python's
sqlite3 cannot load extensions, the program trace-reduce answers the same queries.

The extension is the file that the environment variable TRACE_RING_SQLITE names, or the one installed
with this module, or the one in the build folder of the clone that this module is in. The program is
the one that TRACE_REDUCE names, or the one on the PATH, or one next to the extension.

All errors are trace_ring.Error. Tables, columns and values: examples/trace_reduce/sql/README.md.
"""
import collections
import csv
import datetime
import glob
import itertools
import json
import keyword
import os
import re
import shutil
import sqlite3
import subprocess
import tempfile

__all__ = ["Error", "Rows", "Trace", "open", "quoted"]

# Columns of nanoseconds since 1970. A field of such a name is EVENT.NAME in its table.
DATES = ("time", "end", "latest", "began", "ended", "attached", "departed")
_UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9,
          "d": 86400 * 10**9}


class Error(Exception):
    """A file cannot be read, a query is wrong, or there is neither extension nor program."""


class Rows(list):
    """Named tuples, and the names of their columns, which may be no names of Python."""

    def __init__(self, columns, rows=()):
        super().__init__(rows)
        self.columns = list(columns)


def quoted(name):
    """A name of a table or column as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def open(*files, engine=None, frames=None):  # pylint: disable=redefined-builtin
    """Opens trace files, which are merged by time. `engine`: "extension" or "program"; None: the
    extension if this Python can load it. `frames`: whether tables are pandas frames; None: if pandas is
    installed."""
    return Trace(files, engine, frames)


# --- Engines ----------------------------------------------------------------------------------------
def _candidates(name, places):
    """Files of that name, in places relative to the prefix, or to the clone."""
    folder = os.path.dirname(os.path.abspath(__file__))
    for _ in range(3):  # PREFIX/lib/python3/dist-packages, or examples/python
        folder = os.path.dirname(folder)
        for place in places:
            yield from sorted(glob.glob(os.path.join(glob.escape(folder), place, name)))


def _extension():
    """The path of the extension, or None."""
    named = os.environ.get("TRACE_RING_SQLITE")
    if named:
        return named
    places = ("lib/trace_ring", "lib/*/trace_ring", "lib64/trace_ring", "tools/trace-ring",
              "build/bin", "build/*/bin")
    return next(_candidates("trace_ring_sqlite.so", places), None)


def _program():
    """The path of trace-reduce, or None."""
    named = os.environ.get("TRACE_REDUCE") or shutil.which("trace-reduce")
    places = ("bin", "tools/trace-ring", "build/bin", "build/*/bin")
    return named or next(_candidates("trace-reduce", places), None)


def _distinct(names):
    """Names of columns that differ, as trace-reduce writes them in JSON."""
    taken, out = set(), []
    for name in names:
        shown = name
        for number in itertools.count(2):
            if shown not in taken:
                break
            shown = f"{name}#{number}"
        taken.add(shown)
        out.append(shown)
    return out


class _Extension:
    """SQLite in this process."""

    def __init__(self, files, path):
        self.db = sqlite3.connect(":memory:")
        try:
            self.db.enable_load_extension(True)
            self.db.load_extension(path)
            self.db.enable_load_extension(False)
            # As trace-reduce: a mistyped name in double quotes is an error, not a text.
            self.db.execute("SELECT trace_ring_strict()").fetchall()
            # So that Python handles signals during a query: Ctrl-C ends it.
            self.db.set_progress_handler(lambda: 0, 1000)
            marks = ",".join("?" * len(files))
            self.db.execute(f"SELECT trace_ring_open({marks})", files).fetchall()
        except sqlite3.Error as error:
            self.db.close()
            raise Error(str(error)) from None

    @staticmethod
    def _error(error):
        # Only Ctrl-C interrupts: the exception ended SQLite's call of the progress handler.
        return KeyboardInterrupt() if str(error) == "interrupted" else Error(str(error))

    def query(self, text):
        """The columns' names, and an iterator over the rows as tuples."""
        try:
            cursor = self.db.execute(text)
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise self._error(error) from None
        names = _distinct([each[0] for each in cursor.description or ()])
        return names, self._rows(cursor)

    def _rows(self, cursor):
        try:
            yield from cursor
        except sqlite3.Error as error:
            raise self._error(error) from None
        finally:
            cursor.close()

    def close(self):
        self.db.close()


class _Program:
    """trace-reduce --sql, once for each query. Its output is read while it runs."""

    def __init__(self, files, path):
        # A name that begins with - would be an option.
        self.files = ["./" + each if each.startswith("-") else each for each in files]
        self.path = path
        for _ in self.query("SELECT 1 AS one")[1]:
            pass

    def query(self, text):
        if self.path is None:
            raise Error("the trace is closed")
        ends = (at for at, c in enumerate(text) if c == ";" and sqlite3.complete_statement(text[:at + 1]))
        if any(text[at + 1:].strip(" \t\r\n;") for at in ends):
            raise Error("You can only execute one statement at a time.")
        lines = self._lines(text, "json")
        first = next(lines, None)
        if first is None:  # JSON does not name the columns of no rows
            lines.close()
            header = next(self._lines(text, "csv"), "")
            return _distinct(next(csv.reader([header]), [])), iter(())
        pairs = json.loads(first, object_pairs_hook=list)
        names = [name for name, _ in pairs]
        return names, self._rows(itertools.chain([first], lines), text)

    def _rows(self, lines, text):
        reals = None
        for number, line in enumerate(lines):
            row = [self._cell(value) for _, value in json.loads(line, object_pairs_hook=list)]
            for at, value in enumerate(row):
                # JSON lacks the infinities: they are texts there, and no texts in CSV.
                if isinstance(value, str) and value in ("Infinity", "-Infinity"):
                    reals = reals or self._infinities(text)
                    if (number, at) in reals:
                        row[at] = float(value)
            yield tuple(row)

    @staticmethod
    def _cell(value):
        if isinstance(value, list):  # {"hex": ...}
            return bytes.fromhex(value[0][1])
        return value

    def _infinities(self, text):
        """The places of cells that are no texts in CSV."""
        out = set()
        whole = "".join(line + "\n" for line in self._lines(text, "csv"))
        cells = re.finditer(r'("(?:[^"]|"")*"|[^,\r\n]*)(,|\r?\n)', whole)
        row = at = 0
        for cell in cells:
            if not cell[1].startswith('"'):
                out.add((row - 1, at))
            row, at = (row, at + 1) if cell[2] == "," else (row + 1, 0)
        return out

    def _lines(self, text, form):
        command = [self.path, *self.files, "--sql", text, "--format", form]
        with tempfile.TemporaryFile() as errors:
            try:
                child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors)
            except OSError as error:
                raise Error(f"{self.path}: {error.strerror}") from None
            some = False
            try:
                with child.stdout:
                    for line in child.stdout:
                        some = True
                        yield line.decode().rstrip("\n")
                # Damage is in the table losses. But CSV has a header, if the file is a trace.
                if child.wait() not in (0, 2) or (child.returncode == 2 and form == "csv"
                                                  and not some):
                    errors.seek(0)
                    said = errors.read().decode(errors="replace").strip()
                    raise Error(re.sub(r"^trace-reduce: (--sql: )?", "", said))
            finally:
                if child.poll() is None:  # the caller needs no more rows
                    child.terminate()
                    child.wait()

    def close(self):
        self.path = None


def _engine(files, wanted):
    if wanted not in (None, "extension", "program"):
        raise Error(f"engine: 'extension' or 'program', not {wanted!r}")
    can_load = hasattr(sqlite3.Connection, "enable_load_extension")
    extension = _extension() if can_load and wanted != "program" else None
    if extension is not None:
        return _Extension(files, extension)
    program = _program() if wanted != "extension" else None
    if program is not None:
        return _Program(files, program)
    why = "trace_ring_sqlite.so was not found (TRACE_RING_SQLITE names it)" if can_load else \
        "this Python's sqlite3 cannot load extensions (Debian's /usr/bin/python3 can)"
    raise Error(f"{why}, and trace-reduce, whose option --sql answers queries, too, "
                "is not on the PATH (TRACE_REDUCE names it)")


# --- Tables -----------------------------------------------------------------------------------------
def _tuple_type(names):
    """Of names that Python takes: order.id is order_id."""
    made = [re.sub(r"\W", "_", name) or "_" for name in names]
    made = [name + "_" if keyword.iskeyword(name) else name for name in made]
    return collections.namedtuple("Row", made, rename=True)


def _integers(pandas, values, kind):
    """Nullable integers, exactly: pandas itself may convert them to doubles and back."""
    import numpy  # pylint: disable=import-outside-toplevel
    mask = numpy.array([value is None for value in values], dtype=bool)
    numbers = numpy.array([0 if value is None else value for value in values], dtype=kind)
    return pandas.Series(pandas.arrays.IntegerArray(numbers, mask))


def _series(pandas, values, is_date, declared):
    """A column of the type that its values have; without values the declared one."""
    kinds = {type(value) for value in values if value is not None}
    missing = any(value is None for value in values)
    if not kinds:
        kinds = {"INTEGER": {int}, "REAL": {float}, "TEXT": {str}}.get(declared, set())
    if is_date and kinds == {int}:
        nothing = -2**63  # numpy's NaT
        numbers = pandas.array([nothing if value is None else value for value in values], "int64")
        return pandas.Series(numbers.to_numpy().astype("datetime64[ns]")).dt.tz_localize("UTC")
    if kinds == {int}:
        return _integers(pandas, values, "int64") if missing else pandas.Series(values, dtype="int64")
    if kinds and kinds <= {int, float}:
        return pandas.Series([float("nan") if value is None else float(value) for value in values],
                             dtype="float64")
    # SQLite's integers end at 2^63 - 1: larger ones are texts of their digits.
    if int in kinds and kinds == {int, str} and all(
            not isinstance(value, str) or value.isdecimal() for value in values) and all(
            value is None or 0 <= int(value) < 2**64 for value in values):
        return _integers(pandas, [None if value is None else int(value) for value in values],
                         "uint64")
    return pandas.Series(values, dtype="object")


class Trace:
    """Tables of some trace files. A file that grows is read as of the start of each query."""

    def __init__(self, files, engine=None, frames=None):
        if not files:
            raise Error("no file")
        try:
            self.files = [os.fspath(each) for each in files]
        except TypeError as error:
            raise Error(f"open(FILE, ...): {error}") from None
        self._pandas = None
        if frames is not False:
            try:
                import pandas  # pylint: disable=import-outside-toplevel
                self._pandas = pandas
            except ImportError:
                if frames:
                    raise
        self._engine = _engine(self.files, engine)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._engine.close()

    # --- Queries ---
    def sql(self, query, dates=DATES):
        """The answer to one query. In frames, columns of integers with these names are dates."""
        return self._table(*self._engine.query(query), dates, {})

    def rows(self, query):
        """An iterator over the answer's rows as named tuples. It needs no memory for them."""
        names, rows = self._engine.query(query)
        make = _tuple_type(names)
        return (make(*row) for row in rows)

    def frame(self, event, where=None, since=None, until=None, columns=None, limit=None,
              backward=False):
        """The records of an event. `where` is a condition in SQL. `since` and `until` (exclusive) are
        "-2s" (before the last record), "+1.5s" (since the trace was set up), a datetime, a date as
        text ("2026-11-22T13:00:03.25Z"), or nanoseconds since 1970."""
        return self._select(self.table(event), where, since, until, columns, limit, backward)

    def spans(self, event=None, where=None, since=None, until=None, columns=None, limit=None):
        """Spans, one row for both ends: of one event, with its fields, or of all. They come in the
        order of their ends."""
        of = "spans" if event is None else self.table(event) + ".spans"
        return self._select(of, where, since, until, columns, limit, False)

    def records(self, event=None, where=None, since=None, until=None, columns=None, backward=False):
        """An iterator over records as named tuples: of all events, whose fields are JSON, or of
        one. Backward, the newest comes first."""
        of = "records" if event is None else self.table(event)
        return self.rows(self._text(of, where, since, until, columns, None, backward))

    def table(self, event):
        """The name of an event's table."""
        for name, table in self._engine.query('SELECT event, "table" FROM events')[1]:
            if name == event and table is not None:
                return table
        raise Error(f"there is no event {event!r}")

    @property
    def events(self):
        """The events, with the numbers of their records, which takes a reading of the trace."""
        return self._list("events")

    @property
    def losses(self):
        """Lost records by cause, damage, and clocks that jumped."""
        return self._list("losses")

    @property
    def fields(self):
        """The fields of all events, with their types and units."""
        return self._list("fields")

    @property
    def threads(self):
        """The threads, each with its lane."""
        return self._list("threads")

    @property
    def processes(self):
        """The processes."""
        return self._list("processes")

    # --- Details ---
    def _select(self, table, where=None, since=None, until=None, columns=None, limit=None,
                backward=False):
        text = self._text(table, where, since, until, columns, limit, backward)
        declared = dict(self._columns(table))
        names, rows = self._engine.query(text)
        own = self._own(table)
        return self._table(names, rows, [each for each in DATES if each not in own], declared)

    def _list(self, table):
        """The whole of a table that no event's fields are in."""
        declared = dict(self._columns(table))
        return self._table(*self._engine.query(f"SELECT * FROM {table}"), DATES, declared)

    def _own(self, table):
        """The columns that are an event's fields."""
        of = table[:-len(".spans")] if table.endswith(".spans") else table
        text = of.replace("'", "''")
        return {name for name, in self._engine.query(
            'SELECT "column" FROM fields WHERE event = '
            f"""(SELECT event FROM events WHERE "table" = '{text}')""")[1]}

    def _columns(self, table):
        """Names and declared types of all columns."""
        text = table.replace("'", "''")
        return list(self._engine.query(
            f"SELECT name, type FROM pragma_table_xinfo('{text}')")[1])

    def _text(self, table, where, since, until, columns, limit, backward):
        if isinstance(columns, str):
            raise Error("columns: a list of names")
        chosen = "*" if columns is None else ", ".join(quoted(each) for each in columns)
        conditions = [f"({where})"] if where else []
        for sign, when in ((">=", since), ("<", until)):
            if when is not None:
                conditions.append(self._place(table, sign, when))
        text = f"SELECT {chosen} FROM {quoted(table)}"
        if conditions:
            text += " WHERE " + " AND ".join(conditions)
        if backward:
            text += " ORDER BY time DESC"
        if limit is not None:
            text += f" LIMIT {int(limit)}"
        return text

    def _place(self, table, sign, when):
        """A condition that compares with a place in time."""
        if isinstance(when, str):
            length = re.fullmatch(r"([+-])(\d+(?:\.\d+)?)(ns|us|ms|s|min|h|d)", when)
            if length:
                whole, _, part = length[2].partition(".")
                unit = _UNITS[length[3]]
                ns = int(whole) * unit + (int(part) * unit // 10**len(part) if part else 0)
                if length[1] == "-":
                    return f"time {sign} {self._last() - ns}"
                names = {name for name, _ in self._columns(table)}
                column = "record.since" if "record.since" in names else "since"
                return f"{quoted(column)} {sign} {ns}"
            when = self._date(when)
        if isinstance(when, datetime.datetime):
            zero = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
            nanoseconds = getattr(when, "nanosecond", 0)  # of pandas' timestamps
            past = when.astimezone(datetime.timezone.utc) - zero
            when = (past.days * 86400 + past.seconds) * 10**9 + past.microseconds * 1000 + nanoseconds
        try:
            return f"time {sign} {int(when)}"
        except (TypeError, ValueError):
            raise Error(f"since, until: {when!r} is no place in time") from None

    @staticmethod
    def _date(text):
        found = re.fullmatch(r"(.*?)(?:\.(\d{1,9}))?(Z|[+-]\d\d:?\d\d)?", text)
        try:
            whole = datetime.datetime.fromisoformat(found[1])
            if found[3]:
                zone = "+0000" if found[3] == "Z" else found[3].replace(":", "")
                whole = datetime.datetime.strptime(whole.strftime("%Y-%m-%dT%H:%M:%S") + zone,
                                                   "%Y-%m-%dT%H:%M:%S%z")
        except (TypeError, ValueError):
            raise Error(f"{text!r} is no place in time: -2s, +1.5s, "
                        "or 2026-11-22T13:00:03.25Z") from None
        part = int((found[2] or "0").ljust(9, "0"))
        return int(whole.timestamp()) * 10**9 + part

    def _last(self):
        """The time of the last record."""
        text = "SELECT time FROM records ORDER BY {}time DESC LIMIT 1"
        try:
            found = list(self._engine.query(text.format(""))[1])
        except Error as error:
            if "goes back" not in str(error):
                raise
            found = list(self._engine.query(text.format("+"))[1])
        if not found or found[0][0] is None:
            raise Error("the trace has no record with a time")
        return found[0][0]

    def _table(self, names, rows, dates, declared):
        if self._pandas is None:
            make = _tuple_type(names)
            return Rows(names, (make(*row) for row in rows))
        columns = list(zip(*rows)) or [()] * len(names)
        frame = {name: _series(self._pandas, list(values), name in dates, declared.get(name))
                 for name, values in zip(names, columns)}
        return self._pandas.DataFrame(frame, columns=names)
