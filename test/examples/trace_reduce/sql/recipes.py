# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""The recipes of examples/trace_reduce/sql/README.md: their queries as they stand there, against the
records as trace-reduce prints them, and against heap-report.

    recipes.py EXTENSION TRACE_REDUCE QUICKSTART README [HEAP_RECORD HEAP_REPORT]
"""
import re
import sys
from collections import Counter, defaultdict

from tables import can_load, check, check_rows, finish, open_sqlite, records, run


def queries(path):
    """The files and the text of each query, by its heading."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    found = {}
    for heading, part in re.findall(r"^### (.*?)\n(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL):
        block = re.search(r"^```sql\n-- trace-reduce (.*?)\n(.*?)^```$", part,
                          re.MULTILINE | re.DOTALL)
        found[heading] = (block[1].split(), block[2])
    return found


class Recipes:
    def __init__(self, extension, program, path):
        self.extension, self.program = extension, program
        self.queries = queries(path)

    def answer(self, heading):
        files, query = self.queries[heading]
        db = open_sqlite(self.extension, *files)
        found = db.execute(query).fetchall()
        check(f"{heading}: some rows", True, len(found) > 0)
        return found

    def records(self, name, event=None):
        return [i for i in records(self.program, name) if event in (None, i["event"])]


def check_slowest(recipes):
    every = recipes.records("orders.trace")
    begun, spans = {}, []
    for item in every:
        if item["event"] != "request":
            continue
        if item["span"] == "begin":
            begun[item["lane"]] = begun[item["lane"], item["position"]] = item
        else:  # one that ends in another lane says where it began
            place = dict(item.get("began", ()))
            begin = begun[(place["lane"], place["position"]) if place else item["lane"]]
            spans.append((-item["duration_ns"], begin["time_ns"], begin, item))
    wanted = []
    for duration, _, begin, end in sorted(spans, key=lambda span: span[:2])[:10]:
        inside = [item for item in every
                  if item["lane"] == begin["lane"] and item["position"] > begin["position"]
                  and item["time_ns"] <= end["time_ns"]
                  and (end["lane"] != begin["lane"] or item["position"] < end["position"])]
        wanted += [(-duration, "/orders/new", item["time_ns"] - begin["time_ns"], item["event"])
                   for item in inside] or [(-duration, "/orders/new", None, None)]
    found = recipes.answer("The ten slowest spans, and what ran inside them")
    # Spans of one duration may come in any order, and the tenth may be another.
    least = min(row[0] for row in wanted)
    check_rows("slowest", sorted((row for row in wanted if row[0] > least), key=str),
               sorted((row[:4] for row in found if row[0] > least), key=str))


def check_percentiles(recipes):
    prices = defaultdict(list)
    for item in recipes.records("orders.trace", "order.sent"):
        prices[item["tid"]].append(float(item["fields"].find("price")))
    wanted = []
    for tid, values in sorted(prices.items()):
        values.sort()
        ranks = [next(n for n in range(1, len(values) + 1) if n >= len(values) * share)
                 for share in (0.5, 0.9, 0.99)]
        wanted.append((tid, *(values[n - 1] for n in ranks), values[-1]))
    check_rows("percentiles", wanted, recipes.answer("Percentiles of a field by thread"))


def check_rate(recipes):
    first = open_sqlite(recipes.extension, "orders.trace").execute(
        "SELECT time FROM clocks WHERE since = 0").fetchone()[0]
    counts, sums = Counter(), Counter()
    for item in recipes.records("orders.trace", "order.sent"):
        bucket = (item["time_ns"] - first) // 100_000 * 100
        counts[bucket] += 1
        sums[bucket] += float(item["fields"].find("price"))
    found = recipes.answer("Rate over time")
    # `since` counts by another clock than dates: a record at a limit may be on its other side.
    for us, count, price in found:
        check(f"rate at {us}", (True, True), (abs(counts[us] - count) < 3,
                                              abs(sums[us] - price) < 3 * 750))
    check("rate: all", (3000, sum(sums.values())),
          (sum(row[1] for row in found), sum(row[2] for row in found)))


def check_join(recipes):
    one, other = ({i["fields"].find("id"): (float(i["fields"].find("price")), i["time_ns"])
                   for i in recipes.records(name, "order.sent")}
                  for name in ("orders.trace", "other.trace"))
    wanted = sorted((other[id_][1] - time for id_, (_, time) in one.items()), reverse=True)[:10]
    found = recipes.answer("Joining two files on an id")
    check("join: later", wanted, [row[2] for row in found])
    for id_, price, later in found:
        check(f"join: {id_}", (one[id_][0], other[id_][1] - one[id_][1]), (price, later))


def check_peak(recipes, heap_record, heap_report, quickstart):
    run(heap_record, "-o", "heap.trace", "--quiet", "--", quickstart, "recorded.trace")
    report = run(heap_report, "heap.trace").stdout.decode()
    peak = re.search(r"^peak +([\d.]+) (B|KiB|MiB) in (\d+) blocks", report, re.MULTILINE)
    churn = re.search(r"^churn +([\d.]+) (B|KiB|MiB) in (\d+) blocks", report, re.MULTILINE)
    left = re.search(r"^never freed +([\d.]+) (B|KiB|MiB) in (\d+) blocks", report, re.MULTILINE)
    found = recipes.answer("Who holds memory at the peak")
    units = {"B": 1, "KiB": 1024, "MiB": 1024**2}

    def check_sum(what, shown, bytes_, blocks):
        """The report shows three digits."""
        near = abs(bytes_ - float(shown[1]) * units[shown[2]]) <= 0.005 * bytes_ + 1
        check(what, (True, int(shown[3])), (near, blocks))

    check_sum("peak", peak, sum(row[0] for row in found), sum(row[1] for row in found))
    db = open_sqlite(recipes.extension, "heap.trace")
    check_sum("churn", churn, *db.execute("SELECT sum(size), count(*) FROM allocations").fetchone())
    check_sum("never freed", left, *db.execute(
        "SELECT sum(size), count(*) FROM allocations WHERE state = 'live'").fetchone())
    calls = dict(re.findall(r"(\w+) (\d+)", re.search(r"^calls +(.*)$", report, re.MULTILINE)[1]))
    for event in ("malloc", "calloc", "new", "free", "delete"):
        check(f"calls of {event}", (int(calls[event]),),
              db.execute(f'SELECT count(*) FROM "{event}"').fetchone())


def main(extension, program, quickstart, readme, *heap):
    if not can_load(extension):
        sys.exit(77)
    run(quickstart, "orders.trace")
    run(quickstart, "other.trace")
    recipes = Recipes(extension, program, readme)
    check("recipes", 5, len(recipes.queries))
    check_slowest(recipes)
    check_percentiles(recipes)
    check_rate(recipes)
    check_join(recipes)
    if heap:
        check_peak(recipes, *heap, quickstart)
    finish()


if __name__ == "__main__":
    main(*sys.argv[1:])
