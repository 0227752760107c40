#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""dashboard.py [--check]: makes fleet.json, a Grafana dashboard, of the queries in queries/.

The constants of a query become the dashboard's variables and time range. --check: changes nothing,
and fails if fleet.json is not what it would write."""

import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).parent
SOURCE = {"type": "grafana-clickhouse-datasource", "uid": "${datasource}"}
CONSTANT = re.compile(r"(?:'(?:[^'\\]|\\.)*'|-?\d+|\w+) AS (wanted_\w+)")
# Quoted by Grafana, as its `sqlstring` quotes texts.
VALUES = {
    "wanted_host": "${host:sqlstring}",
    "wanted_program": "${program:sqlstring}",
    "wanted_thread": "${thread:sqlstring}",
    "wanted_event": "${event:sqlstring}",
    "wanted_field": "${field:raw}",
    "wanted_flow": "${flow:raw}",
    "wanted_from": "toInt64(${__from}) * 1000000",
    "wanted_until": "toInt64(${__to}) * 1000000",
}
# Query, title, height, what it does not take from a variable.
PANELS = (
    ("losses", "Lost records by host, program and cause", 8, {}),
    ("percentiles", "Percentiles of $field by host", 8, {"wanted_event": "''"}),
    ("slow_spans", "The slowest spans of $event, and what ran inside", 10, {}),
    ("last_records", "The last records", 10, {"wanted_event": "''"}),
    ("flow", "Flow $flow on all hosts", 10, {}),
    ("memory", "Live memory by call site", 10, {}),
)


def query(name, values):
    lines = (HERE / "queries" / f"{name}.sql").read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.lstrip().startswith("--"))
    return CONSTANT.sub(lambda found: f"{(VALUES | values)[found[1]]} AS {found[1]}", text)


def description(name):
    lines = (HERE / "queries" / f"{name}.sql").read_text(encoding="utf-8").splitlines()
    told = []
    for line in lines:
        if not line.startswith("--") or line.startswith("-- Edit"):
            break
        told.append(line[2:].strip())
    return "\n".join(told)


def target(sql):
    return {"datasource": SOURCE, "editorType": "sql", "queryType": "table", "format": 1,
            "rawSql": sql, "refId": "A"}


def panels():
    made = []
    top = 0
    for name, title, height, values in PANELS:
        made.append({
            "id": len(made) + 1, "type": "table", "title": title, "description": description(name),
            "datasource": SOURCE, "gridPos": {"x": 0, "y": top, "w": 24, "h": height},
            "options": {"showHeader": True, "cellHeight": "sm"},
            "fieldConfig": {"defaults": {}, "overrides": []},
            "targets": [target(query(name, values))]})
        top += height
    return made


def chosen(name, label, sql, every):
    """A variable with the answers of a query. `every`: also one for all of them, which Grafana puts
    into a query as it is, so it is a text in quotes."""
    return {"name": name, "label": label, "type": "query", "datasource": SOURCE, "query": sql,
            "definition": sql, "refresh": 2, "sort": 1, "multi": False, "includeAll": every,
            **({"allValue": "''", "current": {"text": "All", "value": "$__all"}} if every else {})}


def variables():
    times = "time_ns >= toInt64(${__from}) * 1000000 AND time_ns <= toInt64(${__to}) * 1000000"
    seen = f"FROM trace_records WHERE {times}"
    on_host = ("host >= ${host:sqlstring} AND "
               "host <= if(${host:sqlstring} = '', '\\xFF\\xFF\\xFF\\xFF', ${host:sqlstring})")
    # Columns of numbers that a record need not have: of fields, and duration_ns.
    field = ("SELECT name FROM system.columns WHERE database = currentDatabase() AND "
             "table = 'trace_records' AND name != 'latest_ns' AND "
             "match(type, '^Nullable.(U?Int|Float)')")
    return [
        {"name": "datasource", "label": "Data source", "type": "datasource",
         "query": "grafana-clickhouse-datasource"},
        chosen("host", "Host", f"SELECT DISTINCT host {seen}", True),
        chosen("program", "Program", f"SELECT DISTINCT program {seen} AND {on_host}", True),
        chosen("thread", "Thread", f"SELECT DISTINCT thread {seen} AND {on_host}", True),
        chosen("event", "Event of spans",
               f"SELECT DISTINCT event {seen} AND {on_host} AND span = 'end'", False),
        chosen("field", "Field", field, False),
        {"name": "flow", "label": "Flow", "type": "textbox", "query": "0",
         "current": {"text": "0", "value": "0"}},
    ]


def main():
    board = {
        "title": "Traces of a fleet", "uid": "trace-ring-fleet", "schemaVersion": 38,
        "tags": ["trace_ring"], "editable": True, "refresh": "",
        "time": {"from": "now-1h", "to": "now"}, "templating": {"list": variables()},
        "panels": panels()}
    text = json.dumps(board, indent=2) + "\n"
    out = HERE / "fleet.json"
    if sys.argv[1:] != ["--check"]:
        out.write_text(text, encoding="utf-8")
    elif out.read_text(encoding="utf-8") != text:
        sys.exit("examples/trace_ship/fleet.json is not up to date: run dashboard.py")


main()
