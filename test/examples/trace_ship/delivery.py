# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""delivery.py TRACE_SHIP TRACE_REDUCE SHIP_WRITER CASE...

What trace-ship delivers to a ClickHouse server, counted by the server: every record once, and all
others as lost, whoever is killed and whenever. The writers say how many records there were.

Cases: answers kills outage full_disk replaced departed copies names tls
refused. TRACE_RING_LONG: kills 50 times,
and an outage of a minute."""

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

import clickhouse

SHIP, REDUCE, WRITER = sys.argv[1:4]
LONG = bool(os.environ.get("TRACE_RING_LONG"))
SEED = int(os.environ.get("TRACE_RING_SEED", random.randrange(1 << 30)))
random.seed(SEED)


def check(condition, *what):
    if not condition:
        print("FAILED:", *what, f"(TRACE_RING_SEED={SEED})")
        sys.exit(1)


def ship(server, folder, *options, url=None, environment=None, **more):
    return subprocess.Popen(
        [SHIP, folder, "--to", url or server.url, "--host", "here", "--interval", "0.2", *options],
        env=dict(os.environ, **(environment or {})), stderr=subprocess.PIPE, text=True, **more)


def ship_rest(server, folder, *options):
    """Delivers what is there. Returns what it said."""
    one = ship(server, folder, "--once", *options)
    said = one.communicate(timeout=300)[1]
    check(one.returncode == 0, "trace-ship --once ended with", one.returncode, said)
    return said


def write(*arguments):
    return subprocess.Popen([WRITER, *map(str, arguments)], stdout=subprocess.PIPE, text=True)


def items_of(file, *options):
    text = subprocess.run([REDUCE, file, "--format", "json", *options], check=True,
                          capture_output=True, text=True).stdout
    return [json.loads(line) for line in text.splitlines()]


def verify(server, file, written=None):
    """Each position of each lane is there once, as a record or in a loss; returns (records, lost).
    `written`: how many records there were in all."""
    trace = server.ask("SELECT DISTINCT trace FROM trace_records WHERE host = 'here'") \
        if file is None else [[trace_of(file)]]
    total_records = total_lost = 0
    for [one] in trace:
        where = f"FROM trace_records WHERE trace = toUUID('{one}')"
        records, different = map(int, server.ask(
            f"SELECT count(), uniqExact(lane, position) {where} AND kind = 'record'")[0])
        check(records == different, one, ":", records, "records at", different, "places")
        losses = collections.defaultdict(list)
        unplaced = 0
        for lane, position, cause, count in server.ask(
                f"SELECT lane, position, cause, count {where} AND kind = 'loss'"):
            check(cause in ("overwritten", "overrun", "abandoned"), "a loss:", cause, count)
            if cause == "abandoned":
                continue  # a killed writer's last one, which was never written
            if int(lane) == 0:
                unplaced += int(count)
            else:
                losses[int(lane)].append((int(position), int(count)))
        lost = unplaced
        lanes = server.ask(f"SELECT lane, count(), min(position), max(position) {where} "
                           "AND kind = 'record' GROUP BY lane")
        counts = {int(lane): (int(count), int(last) + 1) for lane, count, _, last in lanes}
        for lane in set(counts) | set(losses):
            # Losses do not overlap each other, and no record is in one.
            end = 0
            for position, count in sorted(losses[lane]):
                check(position >= end, one, "lane", lane, ": the losses overlap at", position)
                end = position + count
                lost += count
                inside = server.number(
                    f"SELECT count() {where} AND kind = 'record' AND lane = {lane} AND "
                    f"position >= {position} AND position < {end}")
                check(inside == 0, one, "lane", lane, ":", inside, "records are said to be lost")
            count, behind = counts.get(lane, (0, 0))
            behind = max(behind, end)
            inside = sum(count for _, count in losses[lane])
            check(count + inside == behind, one, "lane", lane, ": of", behind, "places", count,
                  "have records, and", inside, "are lost")
        total_records += records
        total_lost += lost
    if written is not None:
        check(total_records + total_lost == written, written, "written,", total_records,
              "records and", total_lost, "lost have arrived")
    return total_records, total_lost


def trace_of(file):
    header = pathlib.Path(file).read_bytes()[:64]
    first, second = (int.from_bytes(header[at:at + 8], "little") for at in (32, 40))
    text = f"{first:016x}{second:016x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def spans_per(records):
    return 2 * ((records + 99) // 100)


def case_answers(folder):
    """Each cell of each row is what trace-reduce prints."""
    with clickhouse.Server(folder / "server") as server:
        traces = folder / "traces"
        traces.mkdir()
        write(traces / "a.trace", 2, 3000).communicate()
        write(traces / "b.trace", 3, 20000, 0, 1 << 18).communicate()
        ship_rest(server, traces)
        ship_rest(server, traces)  # and nothing again
        for name in ("a.trace", "b.trace"):
            rows = server.ask(
                "SELECT kind, lane, position, time_ns, ticks, event, pid, tid, thread, program, "
                "span, began_lane, began_position, duration_ns, cause, count, "
                "number_written_writer, number_written_number, number_written_half, work_job, "
                f"flows FROM trace_records WHERE trace = toUUID('{trace_of(traces / name)}') "
                "ORDER BY lane, position, kind")
            items = sorted(items_of(traces / name),
                           key=lambda i: (i["lane"] or 0, i.get("position") or 0, i["kind"]))
            check(len(rows) == len(items), name, len(rows), "rows,", len(items), "items")
            for row, item in zip(rows, items):
                text = lambda value: r"\N" if value is None else str(value)
                fields = item.get("fields", {})
                if item["kind"] != "record":
                    expected = [item["cause"], str(item["count"])]
                    check(row[14:16] == expected and row[0] == "loss", row, item)
                    continue
                number = fields.get("half")
                half = r"\N" if number is None else f"{number:g}" if number != int(number) \
                    else str(int(number))
                ends = item.get("span") == "end"
                expected = [
                    "record", str(item["lane"]), str(item["position"]), str(item["time_ns"]),
                    str(item["ticks"]), item["event"], str(item["pid"]), str(item["tid"]),
                    item["thread"], pathlib.Path(WRITER).name, item.get("span", ""),
                    text(fields.get("writer")), text(fields.get("number")), half,
                    text(fields.get("job")),
                    f"[{fields['job']}]" if "job" in fields else "[]"]
                there = row[:11] + row[16:18] + [row[18]] + row[19:]
                if number is not None:
                    check(float(there[13]) == number, row, item)
                    there[13] = half
                check(there == expected, there, expected)
                if ends and item.get("duration_ns") is not None:
                    check(row[13] == str(item["duration_ns"]), row, item)
                    check(int(row[11]) == item["lane"] and int(row[12]) < item["position"], row)
        rows = server.number("SELECT count() FROM trace_records")
        print(f"proof: delivery: {rows} rows compared with trace-reduce cell by cell")


def case_kills(folder):
    """Both sides are killed at random while threads record."""
    kills = 50 if LONG else 8
    with clickhouse.Server(folder / "server") as server:
        traces = folder / "traces"
        traces.mkdir()
        seconds = kills * (1.2 if LONG else 0.9)
        rate = 50_000
        each = int(rate * seconds)
        # One ring that overwrites what is not delivered in time, and a file that keeps everything.
        writers = [(traces / "ring.trace", write(traces / "ring.trace", 2, each, rate, 4 << 20)),
                   (traces / "all.trace", write(traces / "all.trace", 1, each // 4, rate // 4))]
        shipper = ship(server, traces)
        said = []
        killed = collections.Counter()
        for i in range(kills):
            time.sleep(random.uniform(0.1, 1.2) * (1.0 if LONG else 0.8))
            which = random.choice(("server", "shipper", "both"))
            killed[which] += 1
            if which != "server":
                shipper.kill()
                said.append(shipper.communicate()[1])
            if which != "shipper":
                server.kill()
                time.sleep(random.uniform(0, 0.5))
                server.start()
            if which != "server":
                shipper = ship(server, traces)
        for _, writer in writers:
            check(int(writer.communicate()[0]) > 0 and writer.returncode == 0, "a writer failed")
        time.sleep(0.5)
        shipper.send_signal(signal.SIGTERM)
        said.append(shipper.communicate(timeout=120)[1])
        check(shipper.returncode == 0, "trace-ship ended with", shipper.returncode, said[-1])
        ship_rest(server, traces)
        records, lost = verify(server, traces / "ring.trace", 2 * (each + spans_per(each)))
        kept, none = verify(server, traces / "all.trace", each // 4 + spans_per(each // 4))
        check(none == 0, none, "records of a trace that keeps all of them are lost")
        print(f"{dict(killed)} killed, {lost} records lost")
        print(f"proof: delivery: {records + kept + lost} records counted by the server")


def case_outage(folder):
    """The server is not there for a while: memory is bounded, and what is overwritten is lost."""
    with clickhouse.Server(folder / "server") as server:
        traces = folder / "traces"
        traces.mkdir()
        away = 60 if LONG else 3
        rate, seconds = 50_000, away + 3
        each = rate * seconds
        writer = write(traces / "ring.trace", 2, each, rate, 2 << 20)
        metrics = folder / "metrics"
        shipper = ship(server, traces, "--metrics", metrics)
        time.sleep(1)
        server.kill()
        time.sleep(away)
        status = pathlib.Path(f"/proc/{shipper.pid}/status").read_text()
        resident = int(status.split("VmRSS:")[1].split()[0])
        check(resident < 200_000, "trace-ship has", resident, "KiB in memory")
        server.start()
        writer.communicate()
        time.sleep(1)
        shipper.send_signal(signal.SIGINT)
        said = shipper.communicate(timeout=120)[1]
        check(shipper.returncode == 0, said)
        check("works again" in said, "it did not say that the server is back:", said)
        check(said.count("\n") < 10, "it said too much:", said)
        ship_rest(server, traces)
        records, lost = verify(server, traces / "ring.trace", 2 * (each + spans_per(each)))
        check(lost > 0, "nothing was overwritten")
        text = metrics.read_text()
        counted = {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1])
                   for line in text.splitlines() if not line.startswith("#")}
        check(counted["trace_ship_records_total"] > 0 and counted["trace_ship_failures_total"] > 0,
              text)
        print(f"an outage of {away} s, {lost} records lost, {resident} KiB of memory")
        print(f"proof: delivery: {records + lost} records counted by the server")


def case_full_disk(folder):
    """The server's disk is full, and has room again later."""
    data = folder / "data"
    data.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", data],
                      stderr=subprocess.DEVNULL).returncode != 0:
        clickhouse.skip("this user cannot mount a small file system")
    try:
        with clickhouse.Server(folder / "server", data) as server:
            traces = folder / "traces"
            traces.mkdir()
            each = 400_000
            write(traces / "all.trace", 1, each).communicate()
            filler = data / "filler"
            server.ask("SELECT 1")
            shipper = None
            with open(filler, "wb") as into:
                try:
                    while True:
                        into.write(b"x" * 65536)
                        into.flush()
                        if os.statvfs(data).f_bavail * os.statvfs(data).f_bsize < 2 << 20:
                            break
                except OSError:
                    pass
            shipper = ship(server, traces, "--batch", "50000")
            time.sleep(2)
            check(shipper.poll() is None, "it ended on a full disk")
            filler.unlink()
            time.sleep(6)
            shipper.send_signal(signal.SIGTERM)
            said = shipper.communicate(timeout=120)[1]
            check(shipper.returncode == 0, said)
            check("status 500" in said, "it did not report the full disk:", said)
            ship_rest(server, traces)
            verify(server, traces / "all.trace", each + spans_per(each))
            print(f"proof: delivery: {each} records counted by the server")
    finally:
        subprocess.run(["umount", "-l", data], check=False)


def case_replaced(folder):
    """A trace file is renamed, removed, and replaced by others of the same name."""
    with clickhouse.Server(folder / "server") as server:
        traces = folder / "traces"
        traces.mkdir()
        shipper = ship(server, traces)
        ids, total = [], 0
        for i in range(4):
            each = 20_000
            writer = write(traces / "one.trace", 1, each, 100_000, 8 << 20)
            time.sleep(0.1)
            if i == 2:  # killed in the middle
                writer.kill()
            writer.communicate()
            ids.append(trace_of(traces / "one.trace"))
            if i == 2:
                items = items_of(traces / "one.trace")
                total += sum(1 for each in items if each["kind"] == "record")
            else:
                total += each + spans_per(each)
            time.sleep(1.3)
            if i % 2 == 0:
                (traces / "one.trace").rename(traces / f"old{i}.trace")
            else:
                (traces / "one.trace").unlink()
        (traces / "notes.txt").write_text("no trace")
        time.sleep(1.5)
        shipper.send_signal(signal.SIGTERM)
        said = shipper.communicate(timeout=60)[1]
        check(shipper.returncode == 0, said)
        check(said.count("notes.txt") == 1, "it did not say once that notes.txt is no trace:", said)
        check(len(set(ids)) == 4, ids)
        records, lost = verify(server, None)
        check(records == total and lost == 0, records, lost, "of", total)
        ship_rest(server, traces)
        check(verify(server, None) == (total, 0), "a second run changed the table")
        print(f"proof: delivery: {total} records counted by the server")


def case_departed(folder):
    """Threads come and go, so that lanes leave the file's table between the runs of trace-ship."""
    with clickhouse.Server(folder / "server") as server:
        traces = folder / "traces"
        traces.mkdir()
        each, rate = 250_000, 50_000
        writer = write(traces / "ring.trace", 4, each, rate, 1 << 20, 20)
        while writer.poll() is None:
            shipper = ship(server, traces)
            time.sleep(random.uniform(0.2, 0.8))
            shipper.kill()
            shipper.communicate()
        written = 4 * (each + spans_per(each))
        ship_rest(server, traces)
        where = f"FROM trace_records WHERE trace = toUUID('{trace_of(traces / 'ring.trace')}')"
        records, different = map(int, server.ask(
            f"SELECT count(), uniqExact(lane, position) {where} AND kind = 'record'")[0])
        lost = server.number(f"SELECT sum(count) {where} AND kind = 'loss' AND "
                             "cause IN ('overwritten', 'overrun')")
        lanes = server.number(f"SELECT uniqExact(lane) {where}")
        check(records == different, records, "records at", different, "places")
        check(records + lost == written, written, "written,", records, "records and", lost,
              "lost have arrived")
        print(f"{lanes} lanes, {lost} records lost")
        print(f"proof: delivery: {records + lost} records counted by the server")


def case_copies(folder):
    """An older copy of a trace comes first by its name; both are shipped, and nothing twice."""
    with clickhouse.Server(folder / "server") as server:
        traces = folder / "traces"
        traces.mkdir()
        each = 60_000
        writer = write(traces / "b.trace", 1, each, 20_000)
        time.sleep(0.5)
        (traces / "a.trace").write_bytes((traces / "b.trace").read_bytes())
        shipper = ship(server, traces)
        writer.communicate()
        time.sleep(3)
        shipper.send_signal(signal.SIGTERM)
        said = shipper.communicate(timeout=60)[1]
        check(shipper.returncode == 0, said)
        verify(server, traces / "b.trace", each + spans_per(each))
        server.ask("TRUNCATE TABLE trace_records")
        ship_rest(server, traces)
        verify(server, traces / "b.trace", each + spans_per(each))


def case_names(folder):
    """Each field has a column of its own in its event, whatever the names are."""
    with clickhouse.Server(folder / "server") as server:
        traces = folder / "traces"
        traces.mkdir()
        subprocess.run([pathlib.Path(WRITER).with_name("odd_names"), traces / "a.trace"],
                       check=True)
        ship_rest(server, traces)
        columns = [name for name, type, *_ in server.ask("DESCRIBE TABLE trace_records")
                   if type == "Nullable(UInt32)"]
        rows = server.ask(f"SELECT position, {', '.join(columns)} FROM trace_records "
                          "ORDER BY position")
        values = [sorted(int(cell) for cell in row[1:] if cell != r"\N") for row in rows]
        check(values == [[1, 2, 3, 4], [5, 6], [7], [8], [9], [10]], columns, rows)
        check({"time_ns_", "a_b_c", "n_x_y_2"} <= set(columns), columns)


def case_tls(folder):
    """https, with credentials from a file and from the environment."""
    with clickhouse.Server(folder / "server", tls=True) as server:
        traces = folder / "traces"
        traces.mkdir()
        write(traces / "a.trace", 1, 1000).communicate()
        secret = folder / "secret"
        secret.write_text("user=shipper\npassword=it's \"secret\"\n")
        secret.chmod(0o644)
        url = f"https://localhost:{server.tls_port}/"
        authority = ["--ca", str(server.folder / "server.crt")]

        def run(*options, environment=None, where=url):
            one = ship(server, traces, "--once", *options, url=where, environment=environment)
            try:
                return one, one.communicate(timeout=3)[1]
            except subprocess.TimeoutExpired:
                one.send_signal(signal.SIGTERM)
                return one, one.communicate(timeout=30)[1]

        one, said = run(*authority, "--credentials", str(secret))
        check(one.returncode == 1 and "others can read it" in said, said)
        secret.chmod(0o600)
        one, said = run("--credentials", str(secret))
        check("certificate" in said, "it trusts any certificate:", said)
        one, said = run(*authority, environment={"TRACE_SHIP_USER": "shipper",
                                                 "TRACE_SHIP_PASSWORD": "wrong"})
        check("status " in said and "assword" in said, said)
        check(server.number("EXISTS TABLE trace_records") == 0, "something was inserted")
        one, said = run(*authority, "--credentials", str(secret))
        check(one.returncode == 0 and said == "", said)
        verify(server, traces / "a.trace", 1000 + spans_per(1000))
        one, said = run(where="http://me:pw@localhost/")
        check(one.returncode == 1 and "credentials in a URL" in said, said)


def case_refused(folder):
    """What a user may do wrong ends in one clear line, and nothing arrives."""
    with clickhouse.Server(folder / "server") as server:
        traces = folder / "traces"
        traces.mkdir()
        write(traces / "a.trace", 1, 1000).communicate()

        def run(*options, where=None):
            one = ship(server, traces, "--once", *options, url=where)
            try:
                return one.communicate(timeout=2)[1], one.returncode
            except subprocess.TimeoutExpired:
                one.send_signal(signal.SIGTERM)
                return one.communicate(timeout=60)[1], None

        said, _ = run("--database", "nowhere")
        check("nowhere" in said, said)
        server.ask("CREATE TABLE other (time_ns String) ENGINE = MergeTree ORDER BY time_ns")
        said, status = run("--table", "other")
        check("time_ns" in said and status == 1, said, status)
        said, _ = run(where=f"http://127.0.0.1:{clickhouse.free_port()}/")
        check("refused" in said or "connect" in said, said)
        first = ship(server, traces)
        time.sleep(1)
        said, status = run()
        check("another trace-ship" in said and status == 1, said, status)
        first.send_signal(signal.SIGTERM)
        first.communicate()
        # A field's column that is there with another type gets another name.
        server.ask("DROP TABLE trace_records")
        ship_rest(server, traces)
        server.ask("ALTER TABLE trace_records DROP COLUMN number_written_writer")
        server.ask("ALTER TABLE trace_records ADD COLUMN number_written_writer String")
        write(traces / "b.trace", 1, 1000).communicate()
        ship_rest(server, traces)
        count = server.number("SELECT count(number_written_writer_Nullable_UInt32_) "
                              "FROM trace_records")
        check(count == 1000, count, "values in the column with the other name")
        verify(server, traces / "b.trace", 1000 + spans_per(1000))


def main():
    for name in sys.argv[4:]:
        with tempfile.TemporaryDirectory(prefix="trace_ship_") as folder:
            began = time.time()
            globals()["case_" + name](pathlib.Path(folder))
            print(f"{name}: passed, {time.time() - began:.1f} s", flush=True)


main()
