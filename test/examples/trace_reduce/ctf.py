#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""What trace-reduce exports as CTF, read by babeltrace2, against what it prints as JSON.

    ctf.py TRACE_REDUCE EXPORT_SAMPLES

Every event with its time, its lane and every field's value; every loss; nothing on standard error
but the losses. Exits with 77 where babeltrace2 is missing.
"""
import json
import os
import re
import shutil
import struct
import subprocess
import sys
from collections import defaultdict

FAILED = []


def check(what, wanted, found):
    if wanted != found:
        FAILED.append(what)
        if len(FAILED) <= 10:
            print(f"{what}:\n  wanted {wanted!r}\n  found  {found!r}")


def run(*command, status=0):
    done = subprocess.run(command, capture_output=True, check=False,
                          env={**os.environ, "TZ": "UTC", "LC_ALL": "C.UTF-8"})
    if done.returncode != status:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr.decode()}")
    return done


# --- What babeltrace2 prints -------------------------------------------------------------------
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v",
           "e": "\x1b"}


class Parser:
    """{ name = value, ... } of babeltrace2's text, as a dictionary; enumerations as their labels,
    or their numbers where they have none."""

    def __init__(self, text, at):
        self.text, self.at = text, at

    def eat(self, token):
        assert self.text.startswith(token, self.at), (token, self.text[self.at:self.at + 60])
        self.at += len(token)

    def structure(self):
        self.eat("{ ")
        members = {}
        while not self.text.startswith("}", self.at):
            end = self.text.index(" = ", self.at)
            name, self.at = self.text[self.at:end], end + 3
            assert name not in members, name
            members[name] = self.value()
            self.eat(", " if self.text.startswith(",", self.at) else " ")
        self.eat("}")
        return members

    def value(self):
        first = self.text[self.at]
        if first == '"':
            return self.string()
        if first == "[":
            self.eat("[ ")
            items = []
            while self.text[self.at] != "]":
                self.at = self.text.index(" = ", self.at) + 3
                items.append(self.value())
                self.eat(", " if self.text.startswith(",", self.at) else " ")
            self.eat("]")
            return items
        if first == "(":
            self.eat("( ")
            label = printed(self.string()) if self.text[self.at] == '"' else None
            end = self.text.index(")", self.at) + 1
            number = self.text[self.at:end].split(" = ")[1].rstrip(" )")
            self.at = end
            return number if label is None else label
        end = self.at
        while self.text[end] not in ", }])":
            end += 1
        word, self.at = self.text[self.at:end], end
        return word

    def string(self):
        self.eat('"')
        out = []
        while self.text[self.at] != '"':
            c = self.text[self.at]
            self.at += 1
            if c == "\\":
                c, self.at = self.text[self.at], self.at + 1
                if c == "x":
                    c, self.at = chr(int(self.text[self.at:self.at + 2], 16)), self.at + 2
                else:
                    c = ESCAPES.get(c, c)
            out.append(c)
        self.eat('"')
        return "".join(out)


def printed(label):
    """The name of a value before it was made printable; what is not UTF-8 is as in JSON."""
    return re.sub(rb"\\(?:x([0-9a-f]{2})|(.))",
                  lambda m: bytes.fromhex(m[1].decode()) if m[1] else m[2],
                  label.encode()).decode(errors="replace")


def events(text):
    """(seconds, name, packet, context or None, fields) of each line."""
    for line in text.split("\n"):
        if not line:
            continue
        time, rest = re.match(r"\[([0-9.]+)\] \(\S+\) (.*)", line).groups()
        # The name may be of any characters; what follows begins with the lane.
        at = rest.index(": { lane = ")
        parser = Parser(rest, at + 2)
        groups = [parser.structure()]
        while parser.at < len(rest):
            parser.eat(", ")
            groups.append(parser.structure())
        yield time, rest[:at], groups[0], groups[1] if len(groups) > 2 else None, groups[-1]


def original(name):
    """The name that is mangled, as exporting/ctf/parts.hpp says; here once more, to check it."""
    if name == "_x_":
        return ""
    return re.sub("_x([0-9a-f]{2})_", lambda m: chr(int(m.group(1), 16)), name)


# --- What trace-reduce prints ------------------------------------------------------------------
def as_dict(found):
    """Of an object, which is a list of pairs: a name may be there twice."""
    return dict(found) if isinstance(found, list) and found and isinstance(found[0], tuple) else found


def same(wanted, found):
    """One value of JSON, and what babeltrace2 prints of it."""
    wanted = as_dict(wanted)
    if isinstance(wanted, bool):
        return found == ("true" if wanted else "false")
    if isinstance(wanted, int):
        return isinstance(found, str) and int(found, 0) == wanted
    if isinstance(wanted, float):
        # Six digits, of a float that may have been written with those of a double.
        return isinstance(found, str) and any(
            found == f"{x:g}" for x in (wanted, struct.unpack("f", struct.pack("f", wanted))[0]
                                        if abs(wanted) < 3e38 else wanted))
    if isinstance(wanted, dict):
        raw = bytes.fromhex(wanted["hex"])
        return (list(raw) == [int(x, 0) for x in found] if isinstance(found, list)
                else len(raw) == 1 and int(found, 0) == raw[0])
    if isinstance(wanted, str):
        if isinstance(found, list):  # of a record whose texts are bytes
            return bytes(int(x, 0) for x in found) == wanted.encode()
        if wanted in ("NaN", "Infinity", "-Infinity"):
            return found.lstrip("-") == "nan" if wanted == "NaN" else found == wanted[:-5].lower()
        if re.fullmatch("0x[0-9a-f]+", wanted):
            return found.lower() == wanted
        return found == wanted or (len(wanted.encode()) == 1 and found.startswith("0x")
                                   and int(found, 0) == ord(wanted))
    return (isinstance(found, list) and len(found) == len(wanted)
            and all(same(w, f) for w, f in zip(wanted, found)))


def compare_fields(where, wanted, found):
    seen = defaultdict(int)
    members = list(found.items())
    for name, value in wanted:
        seen[name] += 1
        # Lengths stand before what they are the lengths of.
        mangled, got = members.pop(0)
        if members and isinstance(members[0][1], list) and re.fullmatch(
                re.escape(f"_{members[0][0]}_length") + r"(_x_\d+)?", mangled):
            count, (mangled, got) = got, members.pop(0)
            check(f"{where}: length of {name}", str(len(got)), count)
        if seen[name] > 1 or mangled.endswith("_x_2"):
            mangled = re.sub(r"_x_\d+$", "", mangled)
        check(f"{where}: name", name, original(mangled))
        if not same(value, got):
            check(f"{where}: {name}", value, got)
    check(f"{where}: fields left over", [], members)


def seconds(ns):
    return f"{ns // 10**9}.{ns % 10**9:09}"


def compare(trace_reduce, traces, folder, status):
    """Returns how many records, losses and jumps were compared."""
    what = " ".join(os.path.basename(trace) for trace in traces)
    run(trace_reduce, "--format", "ctf", "--output", folder, *traces, status=status)
    lines = run(trace_reduce, "--format", "json", *traces, status=status).stdout.decode()
    items = [json.loads(line, object_pairs_hook=list) for line in lines.split("\n") if line]
    read = run("babeltrace2", "--clock-seconds", folder)
    # By lane, in which both keep the order that the records were written in; a lane's streams
    # (one more for each time that its clock goes back) one after the other.
    wanted, found = defaultdict(list), defaultdict(list)
    for item in map(dict, items):
        wanted[item.get("file"), item["lane"] or 0].append(item)
    streams = defaultdict(list)
    merged = []
    for event in events(read.stdout.decode()):
        time, name, packet, _, fields = event
        merged.append(float(time))
        streams[packet.get("file"), int(packet["lane"])].append(event)
    check(f"{what}: events", len(items), len(merged))
    check(f"{what}: order", sorted(merged), merged)
    for lane, of_lane in streams.items():
        found[lane] = of_lane
    check(f"{what}: lanes", sorted(wanted, key=str), sorted(found, key=str))
    discarded = sum(int(count) for count in re.findall(r"Tracer discarded (\d+) event",
                                                       read.stderr.decode()))
    check(f"{what}: discarded", sum(dict(i)["count"] for i in items if dict(i)["kind"] == "loss"),
          discarded)
    other = [line for line in read.stderr.decode().splitlines()
             if not line.startswith("WARNING: Tracer discarded ")]
    check(f"{what}: standard error", [], other)
    jumps = 0
    set_back = any(dict(item).get("step_ns", 0) < 0 for item in items)
    for lane, of_lane in wanted.items():
        here = found[lane]
        jumped = any(item["kind"] == "clock_jump" for item in of_lane)
        jumps += jumped
        if jumped or set_back:  # readers show the lane's streams merged by time
            of_lane = sorted(of_lane, key=lambda i: (i["time_ns"], i["kind"] == "record"))
            here = sorted(here, key=lambda e: (e[0], not e[1].startswith("trace_ring:")))
        for number, (item, event) in enumerate(zip(of_lane, here)):
            compare_item(f"{what}: lane {lane[1]}: {number}", item, event)
    return len(items), discarded, jumps


def compare_item(where, item, event):
    time, name, packet, context, fields = event
    context = context or {}
    if item["kind"] == "loss":
        check(where, ("trace_ring:lost", item["cause"], str(item["count"])),
              (name, fields["cause"], fields["count"]))
        if item["lane"] is not None:
            check(f"{where}: position", str(item["position"]), fields["position"])
        return
    if item["kind"] == "clock_jump":
        check(where, ("trace_ring:clock_jump", str(item.get("position", 0))), (name, fields["position"]))
        return
    shown = item.get("time_ns", item["ticks"])
    told = int(context["time"]) if "time" in context else None
    if told is None:
        check(f"{where}: time", seconds(shown), time)
    else:
        check(f"{where}: time in the context", shown, told)
        check(f"{where}: not before its own", True, float(time) >= shown / 1e9 - 1e-6)
    for key in ("pid", "tid", "depth"):
        check(f"{where}: {key}", str(item.get(key, 0)), packet[key])
    check(f"{where}: process", str(item.get("process", 0xFFFFFFFF)), packet["process"])
    if "thread" in item and "\ufffd" not in item["thread"]:
        check(f"{where}: thread", item["thread"] or "-",
              re.sub(r"\\x([0-9a-f]{2})", lambda m: chr(int(m.group(1), 16)), packet["thread"]))
    event_name = item["event"] if item["event"] is not None else f"event#{item['id']}"
    if "span" in item:
        event_name += ":" + item["span"]
    if "\ufffd" not in event_name:
        printed = re.sub(r"\\x([0-9a-f]{2})", lambda m: chr(int(m.group(1), 16)),
                         name.replace("\\\\", "\\")).replace('\\"', '"')
        check(f"{where}: event", event_name, printed)
    check(f"{where}: interval", bool(item.get("interval")), "bounded" in context)
    if "bounded" in context:
        check(f"{where}: bounded", "latest_ns" in item, context["bounded"] == "true")
        if "latest_ns" in item:
            check(f"{where}: latest", str(item["latest_ns"]), context["latest"])
    cut = ",".join(item.get("cut", []))
    check(f"{where}: cut", cut, original(context.get("cut", "")))
    if "raw" in item:
        check(f"{where}: raw", item["raw"], bytes(int(x, 0) for x in fields["raw"]).hex())
        check(f"{where}: fault", item["fault"], fields["fault"])
    elif "began" in item:
        check(f"{where}: began", [str(n) for _, n in item["began"]],
              [fields["began_lane"], fields["began_position"]])
    else:
        compare_fields(where, item["fields"], fields)


def refusals(trace_reduce, trace):
    """Nothing that is there is overwritten, and nothing half done is left."""
    os.mkdir("full")
    with open("full/other", "w", encoding="utf-8"):
        pass
    with open("a_file", "w", encoding="utf-8"):
        pass
    for arguments, message in (
            (["--output", "full", trace], "not empty"), (["--output", "a_file", trace], "no folder"),
            ([trace], "needs --output"), (["--output", "new", "--backward", trace], "--backward"),
            (["--output", "none/new", trace], "none/new"), (["--output", "new", "missing"], "missing")):
        done = subprocess.run([trace_reduce, "--format", "ctf", *arguments], capture_output=True,
                              text=True, check=False)
        check(f"{arguments}: exit status", 1, done.returncode)
        check(f"{arguments}: {done.stderr}", True, message in done.stderr)
    check("left behind", [], [name for name in os.listdir(".") if ".part." in name or name == "new"])
    check("what was there", ["other"], os.listdir("full"))
    os.mkdir("empty")
    run(trace_reduce, "--format", "ctf", "--output", "empty/", trace)
    check("an empty folder is filled", True, os.path.exists("empty/metadata"))


def main():
    trace_reduce, samples = map(os.path.abspath, sys.argv[1:3])
    if shutil.which("babeltrace2") is None:
        print("babeltrace2 is not here (Debian: babeltrace2)")
        sys.exit(77)
    shutil.rmtree("ctf", ignore_errors=True)
    os.mkdir("ctf")
    os.chdir("ctf")
    run(samples, ".")
    totals = [0, 0, 0]
    names = sorted(name for name in os.listdir(".") if name.endswith(".trace"))
    for name in names:
        counts = compare(trace_reduce, [name], name + ".ctf", 2 if name == "hostile.trace" else 0)
        totals = [a + b for a, b in zip(totals, counts)]
    both = compare(trace_reduce, ["random1.trace", "random2.trace"], "both.ctf", 0)
    check("several files", 3000, both[0])
    refusals(trace_reduce, "everything.trace")
    # So that this would notice if there was nothing to compare.
    check("enough of each", (True, True, True),
          (totals[0] > 11000, totals[1] > 10, totals[2] > 0))
    print(f"{totals[0]} items of {len(names)} traces, {totals[1]} lost, {totals[2]} lanes whose "
          f"clock goes back: {len(FAILED)} differences")
    sys.exit(1 if FAILED else 0)


if __name__ == "__main__":
    main()
