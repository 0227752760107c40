# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""The table branches against the records of a branch trace.

    branches.py EXTENSION TRACE_REDUCE BRANCH_TRACE
"""
import os
import subprocess
import sys

from tables import ENVIRONMENT, can_load, check, check_rows, finish, open_sqlite, records


def main(extension, program, branch_trace):
    if not can_load(extension):
        sys.exit(77)
    done = subprocess.run([branch_trace, "--source", "step", "--output", "branch.trace", "/bin/true"],
                          env=ENVIRONMENT, capture_output=True, check=False, timeout=300)
    if done.returncode != 0 or not os.path.exists("branch.trace"):
        print(f"branch-trace cannot run here: {done.stderr.decode()}")
        sys.exit(77)
    wanted = []
    for item in records(program, "branch.trace"):
        fields = item["fields"]
        if item["event"] != "branch" and fields.find("from") is None:
            continue
        values = [fields.find(name) for name in ("from", "to")]
        wanted.append((item["time_ns"], item["lane"], item["position"],
                       *(int(each, 16) or None if each else None for each in values)))
    db = open_sqlite(extension, "branch.trace")
    found = db.execute('SELECT time, lane, position, "from", "to" FROM branches').fetchall()
    check_rows("branches", wanted, found)
    check("branches: some", True, len(found) > 1000)
    for event, count in db.execute("SELECT event, records FROM events WHERE event IN "
                                   "('branch.call', 'branch.return', 'branch.conditional')"):
        kind = event.partition(".")[2]
        check(event, (count,), db.execute("SELECT count(*) FROM branches WHERE kind = ?",
                                          [kind]).fetchone())
    finish()


if __name__ == "__main__":
    main(*sys.argv[1:])
