# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""What the tests of SQL share: the programs, connections, and the records as trace-reduce prints
them as JSON, with values as SQL has them."""
import json
import os
import sqlite3
import subprocess
import sys

FAILED = []
ENVIRONMENT = {**os.environ, "TZ": "UTC", "LC_ALL": "C.UTF-8"}


def check(what, wanted, found):
    if wanted == found:
        return True
    FAILED.append(what)
    if len(FAILED) <= 10:
        print(f"{what}:\n  wanted {str(wanted)[:600]}\n  found  {str(found)[:600]}", flush=True)
    return False


def check_rows(what, wanted, found):
    """The same for two lists: shows the first difference."""
    wanted, found = list(wanted), list(found)
    for at, (one, other) in enumerate(zip(wanted, found)):
        if one != other:
            return check(f"{what}: row {at}", one, other)
    return check(f"{what}: number of rows", len(wanted), len(found))


def finish():
    print(f"{len(FAILED)} failures")
    sys.exit(1 if FAILED else 0)


def run(*command, status=0, **more):
    done = subprocess.run(command, capture_output=True, check=False, env=ENVIRONMENT, timeout=120,
                          **more)
    if status is not None and done.returncode != status:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr.decode()}")
    return done


def open_sqlite(extension, *files, prefix=""):
    """A connection that has the tables of these files."""
    made = sqlite3.connect(":memory:")
    made.text_factory = lambda text: text.decode("utf-8")
    made.enable_load_extension(True)
    made.load_extension(extension)
    arguments = [*files, *([f"prefix={prefix}"] if prefix else [])]
    if files:
        marks = ",".join("?" * len(arguments))
        made.execute(f"SELECT trace_ring_open({marks})", arguments).fetchall()
    return made


def can_load(extension):
    """Whether this Python's SQLite loads extensions; prints why not. Starts the system's Python
    instead if that may be better."""
    if not hasattr(sqlite3.Connection, "enable_load_extension"):
        print("this Python's sqlite3 cannot load extensions", flush=True)
        system = "/usr/bin/python3"
        if os.path.exists(system) and os.path.realpath(system) != os.path.realpath(sys.executable):
            os.execv(system, [system, *sys.argv])
        return False
    open_sqlite(extension).close()
    return True


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


# --- JSON ----------------------------------------------------------------------------------------
class Fields(list):
    """The pairs of an object, whose names may be the same."""

    def find(self, name, which=0):
        found = [value for key, value in self if key == name]
        return found[which] if which < len(found) else None


def read_object(pairs):
    return Fields(pairs)


def items(program, *arguments, status=0):
    """trace-reduce --format json: a dictionary for each line, with its fields as Fields."""
    done = run(program, "--format", "json", *arguments, status=status)
    found = []
    for line in done.stdout.decode().splitlines():
        item = dict(json.loads(line, object_pairs_hook=read_object))
        found.append(item)
    return found


def records(program, *arguments, status=0):
    return [item for item in items(program, *arguments, status=status) if item["kind"] == "record"]


def as_integer(value):
    """SQLite's integers end at 2^63 - 1."""
    return str(value) if value >= 1 << 63 else value


def as_cell(value, kind):
    """A value of JSON as SQL has it. `kind`: the field's type and form."""
    type_, form = kind
    if value is None:
        return None
    if isinstance(value, Fields):
        value = dict(value)
        return bytes.fromhex(value["hex"])
    if form != "scalar" and type_ != "char":
        return value
    if isinstance(value, bool):
        return int(value)
    if type_ in ("f32", "f64"):
        value = {"NaN": None, "Infinity": float("inf"), "-Infinity": float("-inf")}.get(value, value)
        return value if value is None else float(value)
    if type_ == "address":
        return as_integer(int(value, 16))
    if isinstance(value, str):
        return value.encode() if "\0" in value else value
    return as_integer(value)


def as_name(value):
    """A name in JSON has U+FFFD for what is not UTF-8; SQL has it as a blob."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
