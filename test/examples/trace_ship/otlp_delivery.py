# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""otlp_delivery.py TRACE_SHIP TRACE_REDUCE SHIP_WRITER CASE...

What trace-ship delivers to a collector of OpenTelemetry's protocol: every record at least once, and
all others as lost; after a kill -9, no more than one batch twice; spans are whole across restarts.

Cases: answers kills troubles rejoined options."""

import collections
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

from collector import GOOD, Answer, Collector, items_of

SHIP, REDUCE, WRITER = sys.argv[1:4]
SEED = int(os.environ.get("TRACE_RING_SEED", random.randrange(1 << 30)))
random.seed(SEED)
MOST_REQUESTS = 4  # of a batch


def check(condition, *what):
    if not condition:
        print("FAILED:", *what, f"(TRACE_RING_SEED={SEED})")
        sys.exit(1)


def ship(server, folder, *options, environment=None):
    return subprocess.Popen(
        [SHIP, folder, "--to", server.url, "--host", "here", "--interval", "0.1",
         "--state", folder.parent / "state", *options],
        env=dict(os.environ, **(environment or {})), stderr=subprocess.PIPE, text=True)


def ship_rest(server, folder, *options, status=0, **more):
    one = ship(server, folder, "--once", *options, **more)
    said = one.communicate(timeout=120)[1]
    check(one.returncode == status, "trace-ship --once ended with", one.returncode, said)
    return said


def write(*arguments):
    return subprocess.Popen([WRITER, *map(str, arguments)], stdout=subprocess.PIPE, text=True)


def json_of(file):
    text = subprocess.run([REDUCE, file, "--format", "json"], check=True, capture_output=True,
                          text=True).stdout
    return [json.loads(line) for line in text.splitlines()]


def id_of(file):
    header = pathlib.Path(file).read_bytes()[:64]
    text = "".join(f"{int.from_bytes(header[at:at + 8], 'little'):016x}" for at in (32, 40))
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def of_file(items, file):
    wanted = id_of(file)
    return [each for each in items if each.resource["trace_ring.file.id"] == wanted]


def spans_in(records, around=0):
    """Records of spans among those of a thread."""
    return 2 * ((records + 99) // 100) + (2 * ((records + around - 1) // around) if around else 0)


def places_of(items):
    """How often each record has arrived."""
    return collections.Counter(place for each in items for place in each.places())


def losses_of(items):
    """Of each cause, counted once for each place."""
    found = {}
    for each in items:
        if each.name == "trace_ring.loss":
            of = each.attributes
            place = of.get("trace_ring.lane"), of.get("trace_ring.position")
            key = (of["trace_ring.cause"], *place) if place != (None, None) else \
                (of["trace_ring.cause"], each.request, len(found))
            found[key] = max(found.get(key, 0), of["trace_ring.count"])
    return collections.Counter({cause: sum(count for key, count in found.items()
                                           if key[0] == cause) for cause, *_ in found})


def metrics_of(path):
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1])
            for line in path.read_text().splitlines() if not line.startswith("#")}


def compare(items, file, off_ns=0):
    """What has arrived of a file is what trace-reduce prints, each once. `off_ns`: how much times
    may differ, as the clocks were read again since."""
    records, losses = {}, collections.Counter()
    for each in json_of(file):
        if each["kind"] == "record":
            records[each["lane"], each["position"]] = each
        elif each["kind"] == "loss":
            losses[each["cause"]] += each["count"]
    arrived, wanted = places_of(items), collections.Counter(records.keys())
    check(arrived == wanted, file, ":", len(arrived - wanted), "records too many,",
          len(wanted - arrived), "missing:", list((arrived - wanted) + (wanted - arrived))[:9])
    check(losses_of(items) == losses, file, ":", losses_of(items), "lost, not", losses)
    for each in items:
        places = each.places()
        if not places:
            continue
        first = records[places[0]]
        check(each.name == first["event"] and abs(each.time - first["time_ns"]) <= off_ns,
              each.name, each.time, first)
        for name, value in first.get("fields", {}).items():
            found = each.attributes[name]
            if isinstance(found, int):
                check(found == value, name, found, first)
        if each.is_span:
            check(abs(each.end - records[places[1]]["time_ns"]) <= off_ns, each.name, places)
    return len(records)


def case_answers(folder, server):
    """All that is in files arrives once, as trace-reduce prints it."""
    traces = folder / "traces"
    write(traces / "a.trace", 2, 3000, 0, 0, 0, 500).communicate()
    write(traces / "b.trace", 3, 8000, 0, 1 << 18).communicate()
    metrics = folder / "metrics"
    check(ship_rest(server, traces, "--metrics", metrics) == "", "it complained")
    items = list(items_of(server.requests))
    total = sum(compare(of_file(items, traces / name), traces / name)
                for name in ("a.trace", "b.trace"))
    check(metrics_of(metrics)["trace_ship_records_total"] == total, metrics.read_text())
    check(metrics_of(metrics)["trace_ship_refused_items_total"] == 0, metrics.read_text())
    check({each.headers["Content-Type"] for each in server.requests} ==
          {"application/x-protobuf"}, "another content type")
    before = len(server.requests)
    ship_rest(server, traces)
    check(len(server.requests) == before, "a second run sends something again")
    check((folder / "state").stat().st_mode & 0o777 == 0o700, "others can read the state")
    # The state of a trace whose file is gone for long is removed, and no other.
    states = sorted(each.name for each in (folder / "state").iterdir())
    check(states == sorted(id_of(traces / name) + ".state" for name in ("a.trace", "b.trace")),
          states)
    gone = id_of(traces / "a.trace")
    (traces / "a.trace").unlink()
    ship_rest(server, traces)
    check((folder / "state" / (gone + ".state")).exists(), "a state was removed too early")
    for each in (folder / "state").iterdir():
        os.utime(each, (time.time() - 30 * 86400,) * 2)
    ship_rest(server, traces)
    states = [each.name for each in (folder / "state").iterdir()]
    check(states == [id_of(traces / "b.trace") + ".state"], states)
    check(len(server.requests) == before, "something was sent again")
    print(f"proof: otlp delivery: {total} records arrived once, equal to trace-reduce's")


def case_kills(folder, server):
    """trace-ship is killed at random while programs record."""
    traces = folder / "traces"
    kills, seconds, rate, around = 7, 6, 3000, 1700
    each = rate * seconds
    writers = [write(traces / "ring.trace", 2, each, rate, 1 << 16, 0, around),
               write(traces / "all.trace", 1, each, rate, 0, 0, around)]
    told = []  # requests that had arrived at each kill
    shipper = ship(server, traces)
    for _ in range(kills):
        time.sleep(random.uniform(0.2, 1.3))
        shipper.kill()
        said = shipper.communicate()[1]
        check(said == "", said)
        told.append(len(server.requests))
        time.sleep(random.choice((0, 0, 0.4)))
        shipper = ship(server, traces)
    for writer in writers:
        check(int(writer.communicate()[0]) > 0 and writer.returncode == 0, "a writer failed")
    time.sleep(0.5)
    shipper.send_signal(signal.SIGTERM)
    said = shipper.communicate(timeout=60)[1]
    check(shipper.returncode == 0, said)
    ship_rest(server, traces)

    items = list(items_of(server.requests))
    kept = of_file(items, traces / "all.trace")
    places = places_of(kept)
    written = each + spans_in(each, around)
    check(len(places) == written, len(places), "of", written, "records have arrived")
    check(not losses_of(kept), losses_of(kept), "of a trace that keeps all records")
    spans = {one.span_id: one for one in kept if one.is_span}
    check(2 * len(spans) == spans_in(each, around), len(spans), "spans")
    parts = [one for one in kept if "trace_ring.span" in one.attributes]
    check(not parts, "a part of a span:", len(parts), [(one.name, one.request, one.attributes)
                                                       for one in parts[:3]], told)
    chapters = [one for one in spans.values() if one.name == "chapter"]
    for one in kept:  # each is in the chapter around it, whichever trace-ship has sent it
        if one.name == "number.written":
            inside = spans[one.span_id]
            check(inside.name == "chapter" and inside.time <= one.time <= inside.end and
                  inside.trace_id == one.trace_id, "a record outside of its span")
    across = sum(1 for one in chapters for at in told
                 if min(i.request for i in kept if i.span_id == one.span_id) < at <= one.request)

    ring = of_file(items, traces / "ring.trace")
    arrived = places_of(ring)
    lost = losses_of(ring)
    # A begin whose end had not come is a loss if it was overwritten between two runs. What is in
    # a loss and has arrived was in the last batch before a kill.
    covered = set(arrived)
    for one in ring:
        if one.name == "trace_ring.loss":
            at = one.attributes["trace_ring.position"]
            covered.update((one.attributes["trace_ring.lane"], place)
                           for place in range(at, at + one.attributes["trace_ring.count"]))
    count = len(covered) - len(arrived)
    written = 2 * (each + spans_in(each, around))
    check(set(lost) <= {"overwritten", "overrun"}, lost)
    check(len(covered) == written, "of", written, len(arrived), "have arrived, and", count,
          "are reported as lost")
    check(count > 0, "nothing was overwritten")

    # What arrived twice was in the last batch before a kill.
    requests = collections.defaultdict(set)
    for one in items:
        for place in one.places():
            requests[one.resource["trace_ring.file.id"], place].add(one.request)
    twice = 0
    for seen in requests.values():
        for first, second in zip(sorted(seen), sorted(seen)[1:]):
            twice += 1
            check(any(first < at + 1 and at - MOST_REQUESTS <= first and second >= at - 1
                      for at in told), "request", first, "was sent again as", second, told)
    print(f"proof: otlp delivery: {len(places) + len(arrived)} records arrived, {twice} of them "
          f"twice, {count} reported as lost, {kills} kills, {across} spans across them whole")


def case_troubles(folder, server):
    """A collector that refuses, or is away."""
    traces = folder / "traces"
    metrics = folder / "metrics"
    each, rate = 24_000, 4000
    writer = write(traces / "all.trace", 1, each, rate)
    shipper = ship(server, traces, "--metrics", metrics)
    time.sleep(0.5)
    rejected = b"\x0a\x0e\x08\x03\x12\x0aodd things"  # 3 items
    with server.lock:
        server.answers.extend([
            Answer(503, {"Retry-After": "1"}, b"", False), Answer(429, {}, b"", False),
            Answer(502, {}, b"", False), Answer(401, {}, b"", False),
            Answer(400, {}, b"bad\x1b[31m data", False), GOOD, Answer(200, {}, rejected, True),
            Answer(200, {}, b"\x0a\x06\x12\x04hush", True), Answer(200, {}, b"{}", True),
            Answer(204, {}, b"", True)])
    while server.answers:
        time.sleep(0.05)
    server.stop()
    time.sleep(1.5)
    server.start()
    writer.communicate()
    time.sleep(1)
    shipper.send_signal(signal.SIGTERM)
    said = shipper.communicate(timeout=60)[1]
    check(shipper.returncode == 1, "the exit status has nothing of the refused items", said)
    for text in ("status 503", "status 429", "status 502", "status 401", "works again",
                 "status 400: bad [31m data", "odd things: 3 ", "a warning: hush",
                 "cannot be read"):
        check(text in said, "it did not report", text, ":", said)
    late, next_one, again, not_allowed, refused = server.others
    check(late.body == next_one.body == again.body == not_allowed.body == refused.body,
          "another request was repeated")
    check(next_one.time - late.time >= 1, "Retry-After was not honoured")
    counted = metrics_of(metrics)
    lost = list(items_of([refused]))
    check(counted["trace_ship_refused_items_total"] == len(lost) + 3, counted)
    noun = "spans" if lost[0].is_span else "log records"
    check(f"{len(lost)} {noun} are refused" in said, said)
    check(counted["trace_ship_failures_total"] >= 5, counted)
    ship_rest(server, traces)
    places = places_of(items_of(server.requests))
    check(not set(places) & set(places_of(lost)), "refused items were sent again")
    check(len(places) + len(places_of(lost)) == each + spans_in(each), len(places),
          "records have arrived")
    print(f"proof: otlp delivery: {len(places)} records arrived despite 5 failures and an outage, "
          f"{len(lost) + 3} refused and reported")


def case_rejoined(folder, server):
    """A program dies inside a span, and its trace is continued by another one."""
    traces = folder / "traces"
    file = traces / "all.trace"
    first = write(file, 1, 100_000, 2000, 0, 0, 50_000)
    shipper = ship(server, traces)
    time.sleep(1)
    shipper.send_signal(signal.SIGTERM)
    said = shipper.communicate(timeout=60)[1]
    said = "".join(line for line in said.splitlines(True)
                   if "not a trace file" not in line)  # while it is being made
    check(said == "" and shipper.returncode == 0, said, shipper.returncode)
    check(not [one for one in items_of(server.requests) if one.name == "chapter"],
          "a span that is open was sent")
    second = write(file, 1, 6000, 2000, 0, 0, 1000)
    time.sleep(0.5)
    first.kill()
    first.communicate()
    second.communicate()
    ship_rest(server, traces)
    items = list(items_of(server.requests))
    open_ones = [one for one in items if one.attributes.get("trace_ring.span") == "open"]
    check(len(open_ones) == 1 and open_ones[0].name == "chapter", len(open_ones), "open spans")
    compare(items, file, 1_000_000)
    before = len(server.requests)
    third = write(file, 1, 1000, 0, 0, 0, 500)
    third.communicate()
    joined = id_of(file) == items[0].resource["trace_ring.file.id"]
    ship_rest(server, traces)
    items = list(items_of(server.requests))
    check(len(server.requests) > before, "the third program's records did not arrive")
    compare(of_file(items, file), file, 1_000_000)
    print("proof: otlp delivery: a trace of", 3 if joined else 2, "programs arrived once, with one "
          "open span")


def case_options(folder, server):
    """Credentials, and options that are wrong."""
    traces = folder / "traces"
    write(traces / "a.trace", 1, 100).communicate()
    ship_rest(server, traces, environment={"TRACE_SHIP_TOKEN": "secret"})
    check({one.headers["Authorization"] for one in server.requests} == {"Bearer secret"}, "token")
    write(traces / "b.trace", 1, 100).communicate()
    before = len(server.requests)
    credentials = folder / "credentials"
    credentials.write_text("user=me\npassword=pw\n")
    credentials.chmod(0o600)
    ship_rest(server, traces, "--credentials", credentials)
    check({one.headers["Authorization"] for one in server.requests[before:]} ==
          {"Basic bWU6cHc="}, "user and password")
    for options, text in ((("--table", "x"), "only for ClickHouse"),
                          (("--batch", "5"), "only for ClickHouse")):
        check(text in ship_rest(server, traces, *options, status=1), options)
    said = subprocess.run([SHIP, traces, "--to", server.url], stderr=subprocess.PIPE, text=True,
                          check=False)
    check(said.returncode == 1 and "--state" in said.stderr, said)
    said = subprocess.run([SHIP, traces, "--to", "http://localhost:1", "--state", "x"],
                          stderr=subprocess.PIPE, text=True, check=False)
    check(said.returncode == 1 and "only for --to otlp+" in said.stderr, said)
    other = folder / "other"
    other.mkdir()
    first = ship(server, traces)
    time.sleep(0.5)
    check("another trace-ship" in ship_rest(server, other, status=1), "the state is not locked")
    first.send_signal(signal.SIGTERM)
    first.communicate()
    state, = [each for each in (folder / "state").iterdir()
              if each.name.startswith(id_of(traces / "a.trace"))]
    state.write_text(state.read_text()[:-5])
    one = ship(server, traces, "--once")
    time.sleep(0.5)
    one.send_signal(signal.SIGTERM)
    check("is damaged" in one.communicate(timeout=30)[1], "a damaged state was not reported")


def main():
    for name in sys.argv[4:]:
        with tempfile.TemporaryDirectory(prefix="trace_ship_") as folder:
            began = time.time()
            (pathlib.Path(folder) / "traces").mkdir()
            server = Collector()
            globals()["case_" + name](pathlib.Path(folder), server)
            server.stop()
            print(f"{name}: passed, {time.time() - began:.1f} s", flush=True)


main()
