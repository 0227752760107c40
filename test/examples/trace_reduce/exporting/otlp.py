#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""What trace-reduce exports as OTLP, read by protoc, against what it prints as JSON.

    otlp.py TRACE_REDUCE EXPORT_SAMPLES OTLP_SAMPLES

Every span with its times, ids, parent and attributes; every other record, loss and clock jump, with
its time, trace and attributes. Which end belongs to which begin, and the ids, are computed here once
more. Damaged files, several files, files without records, and files of more than one request.
Exits with 77 where protoc is missing.
"""
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import time
from collections import Counter, defaultdict

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "otlp")
FAILED = []
# The flows in fields of the samples: the format does not show them.
FLOWS = {"flows": ["job", "jobs"], "flows_elsewhere": ["job", "jobs"], "lines": ["job"],
         "recorded": ["job"], "sampled": ["job"], "by_processor": ["job"]}
# Traces whose lanes belong to processors: there the spans of each thread nest.
BY_THREAD = {"by_processor"}
MOST = 2**63 - 1
WORDS = 2**64


def check(what, wanted, found):
    if wanted != found:
        FAILED.append(what)
        if len(FAILED) <= 10:
            print(f"{what}:\n  wanted {wanted!r}\n  found  {found!r}")


def run(*command, status=0, stdin=None):
    done = subprocess.run(command, capture_output=True, check=False, stdin=stdin)
    if status is not None and done.returncode != status:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr.decode()}")
    return done


# --- What protoc prints ------------------------------------------------------------------------
ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.))", re.DOTALL)
LETTERS = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}


def unescaped(text):
    def one(match):
        if match[1]:
            return bytes([int(match[1], 8)])
        return bytes.fromhex(match[2].decode()) if match[2] else LETTERS.get(match[3], match[3])
    return ESCAPE.sub(one, text)


class Message(dict):
    """Of each field a list of its values: texts as bytes, messages, or words."""

    def one(self, name, other=None):
        values = self.get(name, [])
        assert len(values) <= 1, (name, values)
        return values[0] if values else other

    def text(self, name):
        return self.one(name, b"").decode()

    def number(self, name):
        return int(self.one(name, b"0"))


def parsed(text):
    stack = [Message()]
    for line in text.split(b"\n"):
        line = line.strip()
        if not line:
            continue
        if line == b"}":
            stack.pop()
        elif line.endswith(b" {"):
            made = Message()
            stack[-1].setdefault(line[:-2].decode(), []).append(made)
            stack.append(made)
        else:
            name, value = line.split(b": ", 1)
            if value.startswith(b'"'):
                value = unescaped(value[1:-1])
            assert not name.isdigit(), f"a field that the schema lacks: {line!r}"
            stack[-1].setdefault(name.decode(), []).append(value)
    return stack[0]


def decoded(path, name):
    schema = {"TracesData": "trace", "LogsData": "logs"}[name]
    with open(path, "rb") as file:
        done = run("protoc", f"--proto_path={HERE}",
                   f"--decode=opentelemetry.proto.{schema}.v1.{name}", f"{HERE}/{schema}.proto",
                   stdin=file)
    check(f"{path}: protoc's standard error", b"", done.stderr)  # as for a string that is no UTF-8
    return parsed(done.stdout)


def value_of(message):
    """A value as a pair of its type and itself."""
    (kind, values), = message.items()
    value, = values
    if kind == "array_value":
        return kind, [value_of(each) for each in value.get("values", [])]
    if kind == "string_value":
        return kind, value.decode()
    if kind == "bytes_value":
        return kind, value
    if kind == "bool_value":
        return kind, {b"true": True, b"false": False}[value]
    return kind, int(value) if kind == "int_value" else float(value)


def attributes_of(where, message):
    pairs = [(each.text("key"), value_of(each.one("value", Message())))
             for each in message.get("attributes", [])]
    keys = [key for key, _ in pairs]
    check(f"{where}: keys differ", len(keys), len(set(keys)))
    check(f"{where}: keys are not empty", False, "" in keys)
    return dict(pairs)


def items_of(message, kind):
    """(resource's attributes, item) of a file that was decoded."""
    of = {"spans": ("resource_spans", "scope_spans"), "log_records": ("resource_logs", "scope_logs")}
    outer, inner = of[kind]
    for group in message.get(outer, []):
        resource = attributes_of("resource", group.one("resource"))
        for scope in group.get(inner, []):
            check("scope", "trace_ring", scope.one("scope").text("name"))
            check("scope has a version", True, scope.one("scope").text("version") != "")
            for item in scope.get(kind, []):
                yield resource, item


# --- Values of JSON, as attributes --------------------------------------------------------------
def same(wanted, found):
    kind, value = found
    if isinstance(wanted, bool):
        return kind == "bool_value" and value == wanted
    if isinstance(wanted, int) and kind == "double_value":
        return float(wanted) == value
    if isinstance(wanted, int):
        return (kind, value) == (("int_value", wanted) if wanted <= MOST
                                 else ("string_value", str(wanted)))
    if isinstance(wanted, float):
        if kind != "double_value":
            return False
        short = abs(wanted) < 3.5e38 and struct.unpack("f", struct.pack("f", wanted))[0]
        return value in (wanted, short)
    if isinstance(wanted, bytes):
        return (kind, value) == ("bytes_value", wanted)
    if isinstance(wanted, str):
        if kind == "double_value":
            return wanted == ("NaN" if value != value else
                              "Infinity" if value > 0 else "-Infinity") and abs(value) != 0
        return (kind, value) == ("string_value", wanted)
    if len(wanted) == 1 and isinstance(wanted[0], tuple) and wanted[0][0] == "hex":
        return (kind, value) == ("bytes_value", bytes.fromhex(wanted[0][1]))
    return (kind == "array_value" and len(value) == len(wanted)
            and all(same(w, f) for w, f in zip(wanted, value)))


def check_attributes(where, wanted, found):
    check(f"{where}: attributes", sorted(wanted), sorted(found))
    for key, value in wanted.items():
        if key in found and not same(value, found[key]):
            check(f"{where}: {key}", value, found[key])


# --- Ids and names, once more ------------------------------------------------------------------
def mixed(value):
    value = (value + 0x9E3779B97F4A7C15) % WORDS
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 % WORDS
    value = (value ^ value >> 27) * 0x94D049BB133111EB % WORDS
    return value ^ value >> 31


def hashed(seed, *words):
    value = mixed(seed)
    for word in words:
        value = mixed(value ^ word)
    return value.to_bytes(8, "big")


def unique(names, taken):
    made = []
    for name in names:
        name = name or "unnamed"
        one, count = name, 2
        while one in taken:
            one, count = f"{name}_{count}", count + 1
        taken.add(one)
        made.append(one)
    return made


ADDED = {"thread.id", "thread.name"} | {"trace_ring." + name for name in (
    "lane position depth interval latest cut results fault raw id began.lane began.position ticks "
    "time duration span end.lane end.position end.thread.id end.thread.name end.interval end.latest "
    "end.cut end.fault end.raw end.time end.depth").split()}


def shown_names(record):
    units = dict(record.get("units", []))
    return [f"{name} [{units[name]}]" if name in units else name for name, _ in record["fields"]]


# --- What is expected of the items of one file --------------------------------------------------
class Expected:
    """Spans by the place of their begins, log records by theirs, and others in a list."""

    def __init__(self, words, flows, by_thread=False):
        self.words, self.flows, self.by_thread = words, flows, by_thread
        self.threads = {}  # by the place of a span's begin
        self.spans, self.logs, self.others = {}, {}, []
        self.open, self.stacks, self.passed = {}, defaultdict(list), defaultdict(list)
        self.around = defaultdict(list)
        self.begin_names = {}
        self.jumps = []
        self.counts = Counter()

    def add(self, item):
        if item["kind"] != "record":
            if item["kind"] == "clock_jump" and item["lane"] is None:
                self.jumps.append(item["ticks"])
            self.others.append(item)
            if item["lane"] is not None:
                for one in list(self.stacks) if self.by_thread else [item["lane"]]:
                    self.gap(one)
            return
        if item["event"] is None:
            state = f"unknown {item['span']}" if "span" in item else None
            return self.log(item, self.context(item), state)
        if item.get("span") == "begin":
            return self.begin(item)
        if item.get("span") == "end":
            return self.end(item)
        self.log(item, self.context(item))

    def thread(self, item):
        """What the spans nest in."""
        return (item["process"], item["tid"]) if self.by_thread else item["lane"]

    def log(self, item, context, state=None):
        self.counts[state] += 1
        self.logs[item["lane"], item["position"]] = item, context, state

    def flow_of(self, item):
        for name, value in item.get("fields", []):
            if name in self.flows:
                for one in value if isinstance(value, list) else [value]:
                    if one:
                        return hashed(4, one) + hashed(5, one)
        return None

    def context(self, item):
        spans = self.around[self.thread(item)]
        inner = spans[-1][1:] if spans else (b"", b"")
        flow = self.flow_of(item)
        return inner if flow is None else (flow, inner[1] if inner[0] == flow else b"")

    def begin(self, item):
        place = item["lane"], item["position"]
        if item.get("fields"):
            self.begin_names[item["event"]] = shown_names(item)
        thread = self.threads[place] = self.thread(item)
        spans = self.around[thread]
        span = hashed(1, *self.words, *place)
        trace = self.flow_of(item) or (spans[-1][1] if spans else
                                       hashed(2, *self.words, *place) + hashed(3, *self.words, *place))
        outer = spans[-1][1:] if spans else None
        self.open[place] = [item, trace, span, outer, False]
        self.stacks[thread].append((place, item["event"]))
        spans.append((place, trace, span))

    def take(self, place):
        begun = self.open.pop(place)
        spans = self.around[self.threads[place]]
        spans[:] = [each for each in spans if each[0] != place]
        return begun

    def leave(self, begun, state):
        self.log(begun[0], (begun[1], begun[2]), state)

    def end(self, item):
        lane, event = item["lane"], item["event"]
        begun, state = None, "begin lost"
        if "began" in item:
            place = tuple(number for _, number in item["began"])
            if place in self.open and self.open[place][0]["event"] == event:
                begun = self.take(place)
        elif "fault" not in item:
            stack, passed = self.stacks[self.thread(item)], self.passed[self.thread(item)]
            if event not in [name for _, name in stack]:
                if event in passed:
                    passed.remove(event)
                    state = "not nested"
            else:
                while begun is None:
                    place, name = stack.pop()
                    if name == event:
                        if place in self.open:
                            begun = self.take(place)
                        break
                    if place in self.open:
                        self.leave(self.take(place), "end lost")
                        del passed[:max(0, len(passed) - 63)]
                        passed.append(name)
        if begun is None:
            check(f"{lane}: {item['position']}: no duration", False, "duration_ticks" in item)
            return self.log(item, self.context(item), state)
        first = begun[0]
        if item["ticks"] >= first["ticks"]:
            check(f"{lane}: {item['position']}: duration", item["ticks"] - first["ticks"],
                  item.get("duration_ticks"))
        if first.get("time_ns", 0) > 0 and item.get("time_ns", 0) > 0:
            self.spans[first["lane"], first["position"]] = begun, item
        else:
            self.leave(begun, "undated begin")
            self.log(item, (begun[1], begun[2]), "undated end")

    def gap(self, lane):
        for place, _ in self.stacks[lane]:
            if place in self.open:
                self.open[place][4] = True
        self.stacks[lane], self.passed[lane], self.around[lane] = [], [], []

    def finish(self):
        for place in list(self.open):
            begun = self.take(place)
            self.leave(begun, "end lost" if begun[4] else "open")

    def record_attributes(self, item, end=False):
        prefix = "trace_ring.end." if end else "trace_ring."
        made = {prefix + "position": item["position"]}
        if item.get("interval"):
            made[prefix + "interval"] = True
            if "latest_ns" in item:
                made[prefix + "latest"] = item["latest_ns"]
        if item.get("results") is False:
            made["trace_ring.results"] = False
        if "fault" in item:
            made[prefix + "fault"] = item["fault"]
            made[prefix + "raw"] = bytes.fromhex(item["raw"])
            return made
        names = shown_names(item)
        keys = unique(names, set(ADDED))
        if end:
            taken = set(ADDED)
            begin = set(unique(self.begin_names.get(item["event"], []), taken))
            keys = unique([f"end.{name or 'unnamed'}" if (name or "unnamed") in begin else name
                           for name in names], taken)
        cut = []
        for key, (name, value) in zip(keys, item["fields"]):
            made[key] = value
            if name in item.get("cut", []):
                cut.append(key)
        if cut:
            made[prefix + "cut"] = cut
        return made

    @staticmethod
    def lane_attributes(item, prefix="trace_ring.", thread="thread."):
        made = {prefix + "lane": item["lane"]}
        if "tid" in item:
            made[thread + "id"] = item["tid"]
            made[thread + "name"] = item["thread"]
            if item["depth"] != 0:
                made[prefix + "depth"] = item["depth"]
        return made


# --- The comparison -----------------------------------------------------------------------------
def check_span(where, expected, resource, span, attributes):
    place = attributes["trace_ring.lane"][1], attributes["trace_ring.position"][1]
    if place not in expected.spans:
        return check(f"{where}: {place}", "no span", "a span")
    where = f"{where}: span {place}"
    (begin, trace, own, outer, _), end = expected.spans.pop(place)
    check_resource(where, begin, resource)
    passed = end.get("duration_ns", 0)
    back = end["time_ns"] < begin["time_ns"]
    jumps = any(begin["ticks"] < at <= end["ticks"] for at in expected.jumps)
    linked = outer is not None and outer[0] != trace
    wanted = {"trace": trace, "span": own, "parent": outer[1] if outer and not linked else b"",
              "name": begin["event"], "kind": b"SPAN_KIND_INTERNAL", "start": begin["time_ns"],
              "end": begin["time_ns"] + passed if back else end["time_ns"], "flags": 0x101,
              "links": [(*outer, 0x101)] if linked else []}
    found = {"trace": span.one("trace_id"), "span": span.one("span_id"),
             "parent": span.one("parent_span_id", b""), "name": span.text("name"),
             "kind": span.one("kind"), "start": span.number("start_time_unix_nano"),
             "end": span.number("end_time_unix_nano"), "flags": span.number("flags"),
             "links": [(link.one("trace_id"), link.one("span_id"), link.number("flags"))
                       for link in span.get("links", [])]}
    check(where, wanted, found)
    wanted = expected.lane_attributes(begin) | expected.record_attributes(begin)
    wanted |= expected.record_attributes(end, True)
    if any(begin.get(key) != end.get(key) for key in ("lane", "tid", "thread")):
        wanted |= expected.lane_attributes(end, "trace_ring.end.", "trace_ring.end.thread.")
    if back:
        wanted["trace_ring.end.time"] = end["time_ns"]
    if back or jumps:
        wanted["trace_ring.duration"] = passed
    check_attributes(where, wanted, attributes)


def check_resource(where, item, resource):
    wanted = {"process.pid": item["pid"]} if "process" in item else {}
    if "process" in item:
        wanted["trace_ring.process"] = item["process"]
    found = {key: value for key, value in resource.items()
             if key not in ("service.name", "trace_ring.file.id")}
    check_attributes(f"{where}: resource", wanted, found)


def check_times(where, item, record, since):
    """The time of a log record; returns the attributes that it needs besides."""
    ns = item.get("time_ns", 0)
    observed = record.number("observed_time_unix_nano")
    check(f"{where}: time", max(0, ns), record.number("time_unix_nano"))
    if ns > 0:
        check(f"{where}: observed", ns, observed)
        return {}
    check(f"{where}: observed when it was exported", True, since <= observed <= time.time_ns())
    made = {"trace_ring.ticks": item["ticks"]} if "ticks" in item else {}
    if "time_ns" in item:
        made["trace_ring.time"] = ns
    return made


def check_log(where, expected, resource, record, attributes, since):
    place = attributes["trace_ring.lane"][1], attributes["trace_ring.position"][1]
    if place not in expected.logs:
        return check(f"{where}: {place}", "no log record", "a log record")
    where = f"{where}: record {place}"
    item, (trace, span), state = expected.logs.pop(place)
    check_resource(where, item, resource)
    name = item["event"] if item["event"] is not None else f"event#{item['id']}"
    warning = "fault" in item
    wanted = {"name": name, "body": ("string_value", name), "trace": trace, "span": span,
              "flags": 1 if trace else 0, "severity": severity(warning)}
    check(where, wanted, facts_of(record))
    wanted = expected.lane_attributes(item) | expected.record_attributes(item)
    wanted |= check_times(where, item, record, since)
    if item["event"] is None:
        wanted["trace_ring.id"] = item["id"]
    if state is not None:
        wanted["trace_ring.span"] = state
    if "began" in item:
        wanted["trace_ring.began.lane"] = item["began"][0][1]
        wanted["trace_ring.began.position"] = item["began"][1][1]
    check_attributes(where, wanted, attributes)


def severity(warning):
    return ((b"SEVERITY_NUMBER_WARN", "WARN") if warning else (None, ""))


def facts_of(record):
    return {"name": record.text("event_name"), "body": value_of(record.one("body")),
            "trace": record.one("trace_id", b""), "span": record.one("span_id", b""),
            "flags": record.number("flags"),
            "severity": (record.one("severity_number"), record.text("severity_text"))}


def check_other(where, item, record, attributes, since):
    """A loss or a clock jump."""
    name = {"loss": "trace_ring.loss", "clock_jump": "trace_ring.clock_jump"}[item["kind"]]
    where = f"{where}: {item}"
    check(where, {"name": name, "body": ("string_value", name), "trace": b"", "span": b"", "flags": 0,
                  "severity": severity(True)}, facts_of(record))
    wanted = check_times(where, item, record, since)
    plain = {"cause": "cause", "count": "count", "position": "position", "lane": "lane",
             "offset": "offset", "fault": "fault", "advice": "advice", "from_ns": "from",
             "step_ns": "step", "anew": "anew", "from_ticks": "from_ticks"}
    wanted |= {f"trace_ring.{plain[key]}": value for key, value in item.items()
               if key in plain and value is not None}
    found = {key: value for key, value in attributes.items()
             if key not in ("thread.id", "thread.name", "trace_ring.depth")}  # not in JSON
    if item["kind"] == "clock_jump":
        wanted["trace_ring.ticks"] = item["ticks"]
        found.pop("trace_ring.from", None) if "from_ns" not in item else None
    check_attributes(where, wanted, found)


def others_key(attributes, record):
    def get(name):
        return attributes.get(f"trace_ring.{name}", (None, None))[1]
    return (get("cause"), get("lane"), get("position"), get("count"), get("offset"),
            get("from_ticks"), get("ticks") if get("from_ticks") is not None else None,
            record.number("time_unix_nano"))


def item_key(item):
    jump = item["kind"] == "clock_jump"
    count = item.get("count")
    return (item.get("cause"), item["lane"], item.get("position"),
            str(count) if count is not None and count > MOST else count, item.get("offset"),
            item.get("from_ticks"), item["ticks"] if jump else None, max(0, item.get("time_ns", 0)))


def uuid(words):
    text = "".join(f"{word:016x}" for word in words)
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def words_of(trace):
    with open(trace, "rb") as file:
        return struct.unpack("<QQ", file.read(48)[32:])


def compare(trace_reduce, traces, folder, status=0, flows=()):
    """Returns the counts of what was compared. `flows`: fields that are asked for as flows."""
    what = " ".join(os.path.basename(trace) for trace in traces)
    shutil.rmtree(folder, ignore_errors=True)
    since = time.time_ns()
    asked = [word for field in flows for word in ("--flow", f"*.{field}")]
    done = run(trace_reduce, "--format", "otlp", "--output", folder, *asked, *traces, status=status)
    printed = run(trace_reduce, "--format", "json", *traces, status=done.returncode)
    if not os.path.exists(folder):  # no file can be read
        check(f"{what}: nothing is printed", b"", printed.stdout)
        return Counter()
    by_name = {}
    for trace in traces:
        words = words_of(trace)
        name = os.path.basename(trace).split(".")[0]
        by_name[trace] = uuid(words), Expected(words, flows or FLOWS.get(name, []), name in BY_THREAD)
    for line in printed.stdout.decode().split("\n"):
        if line:
            item = dict(json.loads(line, object_pairs_hook=list))
            by_name[item.get("file", traces[0])][1].add(item)
    counts, states = Counter(), Counter()
    by_id = dict(by_name.values())
    for expected in by_id.values():
        expected.finish()
        counts += Counter(spans=len(expected.spans), records=len(expected.logs),
                          links=sum(1 for begun, _ in expected.spans.values()
                                    if begun[3] and begun[3][0] != begun[1]),
                          parents=sum(1 for begun, _ in expected.spans.values() if begun[3]))
        counts += Counter(item["kind"] for item in expected.others)
        states += expected.counts
    del states[None]
    wanted = ", ".join(f"{states[state]} {state}" for state in (
        "open", "end lost", "given up", "begin lost", "not nested", "undated begin", "undated end",
        "unknown begin", "unknown end") if states[state])
    found = re.findall(r"some ends of spans are log records: (.*)", done.stderr.decode())
    check(f"{what}: standard error", [wanted] if wanted else [], found)
    for resource, span in items_of(decoded(f"{folder}/traces.otlp", "TracesData"), "spans"):
        expected = by_id[resource["trace_ring.file.id"][1]]
        check_span(what, expected, resource, span, attributes_of(what, span))
    others = defaultdict(list)
    for resource, record in items_of(decoded(f"{folder}/logs.otlp", "LogsData"), "log_records"):
        file = resource["trace_ring.file.id"][1]
        attributes = attributes_of(what, record)
        if record.text("event_name").startswith("trace_ring."):
            others[file].append((others_key(attributes, record), record, attributes))
        else:
            check_log(what, by_id[file], resource, record, attributes, since)
    for file, expected in by_id.items():
        check(f"{what}: spans that are missing", {}, expected.spans)
        check(f"{what}: log records that are missing", {}, expected.logs)
        here = sorted(others[file], key=lambda one: str(one[0]))
        wanted = sorted(expected.others, key=lambda item: str(item_key(item)))
        check(f"{what}: losses and jumps", [item_key(item) for item in wanted],
              [key for key, _, _ in here])
        for item, (_, record, attributes) in zip(wanted, here):
            check_other(what, item, record, attributes, since)
    return counts


def types_of(folder):
    """In types.trace each field says what it is."""
    for _, record in items_of(decoded(f"{folder}/logs.otlp", "LogsData"), "log_records"):
        for key, (kind, value) in attributes_of("types", record).items():
            if not re.match("[uif][0-9]|bool|addr", key):
                continue
            parts = [part for part, _ in value] if kind == "array_value" else [kind]
            check(f"types: {key} is an array", "_" in key, kind == "array_value")
            wanted = {"u": "int_value", "i": "int_value", "f": "double_value", "b": "bool_value",
                      "a": "string_value"}[key[0]]
            allowed = {wanted, "string_value"} if key.startswith("u64") else {wanted}
            check(f"types: {key}", set(), set(parts) - allowed)


def varint(data, at):
    value = shift = 0
    while True:
        byte, at = data[at], at + 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def parts_of(data):
    """(field, bytes) of the fields with a length in a message."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            _, at = varint(data, at)
        elif key & 7 != 2:
            at += 8 if key & 7 == 1 else 4
        else:
            length, at = varint(data, at)
            yield key >> 3, data[at:at + length]
            at += length


def requests(trace_reduce, samples):
    """A long file is several requests, one behind the other, each of about 1 MiB."""
    count = 40_000
    run(samples, ".", str(count))
    run(trace_reduce, "--format", "otlp", "--output", "big.otlp", "big.trace")
    items = Counter()
    for name in ("traces", "logs"):
        with open(f"big.otlp/{name}.otlp", "rb") as file:
            groups = list(parts_of(file.read()))
        check(f"big: {name}: fields", {1}, {field for field, _ in groups})
        check(f"big: {name}: several requests", True, len(groups) > 1)
        for number, (_, group) in enumerate(groups):
            if number + 1 < len(groups):
                check(f"big: {name}: length", True, 2**20 <= len(group) < 2**20 + 2**12)
            for field, scope in parts_of(group):
                if field == 2:
                    items[name] += sum(1 for inner, _ in parts_of(scope) if inner == 2)
    # Each span is two records.
    check("big: items", count, 2 * items["traces"] + items["logs"])


def refusals(trace_reduce, trace):
    os.mkdir("full")
    with open("full/other", "w", encoding="utf-8"):
        pass
    for arguments, message in (
            (["--output", "full", trace], "not empty"), ([trace], "needs --output"),
            (["--output", "new", "--backward", trace], "--backward"),
            (["--output", "new", "--follow", trace], "--follow"),
            (["--output", "new", "--stats", trace], "no statistics"),
            (["--output", "new", "--counter", "a.b", trace], "--counter"),
            (["--output", "new", "missing"], "missing")):
        done = run(trace_reduce, "--format", "otlp", *arguments, status=1)
        check(f"{arguments}: {done.stderr}", True, message in done.stderr.decode())
    check("left behind", [], [name for name in os.listdir(".") if ".part." in name or name == "new"])


def give_ids():
    """Other ids to the files that the samples' builder makes: it leaves them zero."""
    choose = random.Random(1)
    for name in sorted(os.listdir(".")):
        if name.endswith(".trace") and words_of(name) == (0, 0):
            with open(name, "r+b") as file:
                file.seek(32)
                file.write(struct.pack("<QQ", choose.getrandbits(64), choose.getrandbits(64)))


def damaged(trace_reduce, trace, count):
    """Whatever is in a file, the two formats have the same of it."""
    choose = random.Random(2)
    with open(trace, "rb") as file:
        whole = file.read()
    compared = Counter()
    for i in range(count):
        data = bytearray(whole)
        if i % 4 == 0:
            del data[choose.randrange(48, len(data)):]
        for _ in range(choose.randrange(1, 40)):
            data[choose.randrange(48, len(data)) if len(data) > 48 else 0] = choose.getrandbits(8)
        with open("damaged.trace", "wb") as file:
            file.write(data)
        compared += compare(trace_reduce, ["damaged.trace"], "damaged.otlp", None)
    return compared


def main():
    trace_reduce, samples, own_samples = map(os.path.abspath, sys.argv[1:4])
    if shutil.which("protoc") is None:
        print("protoc is not here (Debian: protobuf-compiler)")
        sys.exit(77)
    shutil.rmtree("otlp", ignore_errors=True)
    os.mkdir("otlp")
    os.chdir("otlp")
    run(samples, ".")
    run(own_samples, ".")
    give_ids()
    totals = Counter()
    names = sorted(name for name in os.listdir(".") if name.endswith(".trace"))
    for name in names:
        bad = name in ("hostile.trace", "edges.trace")
        totals += compare(trace_reduce, [name], name + ".otlp", 2 if bad else 0)
    check("nothing", [0, 0], [os.path.getsize(f"nothing.trace.otlp/{file}.otlp")
                              for file in ("traces", "logs")])
    types_of("types.trace.otlp")
    both = compare(trace_reduce, ["random1.trace", "flows.trace", "flows_elsewhere.trace"],
                   "several.otlp")
    check("several files", True, both["spans"] > 150)
    asked = compare(trace_reduce, ["service.trace"], "asked.otlp", 0, ["id"])
    check("spans of flows that were asked for", True, asked["spans"] > 1000)
    # The ids do not depend on other files, nor on the time of the export.
    run(trace_reduce, "--format", "otlp", "--output", "again", "times.trace")
    for file in ("traces.otlp", "logs.otlp"):
        with open(f"again/{file}", "rb") as one, open(f"times.trace.otlp/{file}", "rb") as other:
            check(f"again: {file}", True, one.read() == other.read())
    compared = damaged(trace_reduce, "times.trace", 12) + damaged(trace_reduce, "edges.trace", 12)
    check("damaged files have something", True, compared["records"] > 500 and compared["loss"] > 10)
    requests(trace_reduce, samples)
    refusals(trace_reduce, "everything.trace")
    # So that this would notice if there was nothing to compare.
    check(f"enough of each: {totals}", (True,) * 6, (
        totals["spans"] > 2500, totals["records"] > 6000, totals["loss"] > 9,
        totals["clock_jump"] > 4, totals["parents"] > 1500, totals["links"] > 10))
    print(f"{dict(totals)} of {len(names)} traces: {len(FAILED)} differences")
    sys.exit(1 if FAILED else 0)


if __name__ == "__main__":
    main()
