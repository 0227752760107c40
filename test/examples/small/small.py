#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""Runs one of the small examples in an empty folder and checks what it printed and recorded.

    small.py PROGRAM FOLDER      FOLDER has the programs, trace-reduce among them
    small.py lengths FOLDER      each source in this folder has at most 80 lines
    small.py compilers FOLDER    other compilers accept each source in this folder without a warning

The expectations come from what the sources say that they do, and from trace-reduce.
"""
import glob
import json
import os
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

FOLDER = ""


def run(program, *arguments, status=0, **more):
    """What the program prints on both streams."""
    done = subprocess.run([os.path.join(FOLDER, program), *arguments], text=True, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=60, **more)
    equal(f"{program} {' '.join(arguments)}: exit status; it printed {done.stdout!r}", status,
          done.returncode)
    return done.stdout


def items(*arguments, status=0):
    return [json.loads(line) for line in
            run("trace-reduce", *arguments, "--format", "json", status=status).splitlines()]


def equal(what, wanted, found):
    if wanted != found:
        sys.exit(f"{what}:\n  wanted {wanted!r}\n  found  {found!r}")


# --- The programs ------------------------------------------------------------------------------
def hello_ring():
    equal("output", "forward: 190/3 190/4 190/5 190/6\n"
                    "backward: 190/6 190/5 190/4 190/3 (2 overwritten)\n", run("hello_ring"))


def own_policy():
    equal("output", "".join(f"packet {number}\n" for number in range(0, 1000, 100)) +
          "10 of 1000 recorded\n", run("own_policy"))


def das_table():
    # Five transfers, of which the table of four entries has lost the first.
    equal("output", "2020: 300 -> 400\n2040: 400 -> 500\n2060: 500 -> 600\n2000: 600 -> 700\n"
                    "exception 0005 at 700\n", run("das_table"))


def cptrap_spool():
    equal("output", "2 records, 0 lost\n"
          "type C5 code 000B: 0B" + " 00" * 13 + " 01 90\n"
          "type 3F code 0003: E4 E2 C5 D9 F1\n", run("cptrap_spool"))
    found = [(item["type"], item["code"], item.get("data")) for item in items("trap.spool")]
    equal("trace-reduce", [("3F", "0003", "e4e2c5d9f1"),
                           ("C5", "0B", "0b" + "00" * 13 + "0190")], found)
    # A file that exists is never overwritten.
    equal("a second time", "cptrap_spool: trap.spool: cannot create the file: File exists\n",
          run("cptrap_spool", status=1))


def threshold_drain():
    equal("output", "100000 records, 0 lost, woken at the threshold\n",
          run("threshold_drain", "samples"))
    with open("samples", "rb") as file:
        equal("numbers", True, struct.unpack("<100000Q", file.read()) == tuple(range(100_000)))


def crash_and_salvage():
    core_limit = resource.getrlimit(resource.RLIMIT_CORE)
    for way, died_of in (("segv", signal.SIGSEGV), ("abort", signal.SIGABRT),
                         ("kill", signal.SIGKILL), ("snapshot", signal.SIGSEGV)):
        run("crash_and_salvage", way, way, status=-died_of)
        said = run("crash_and_salvage", "read", way).splitlines()
        equal(f"{way}: the newest records", [f"order.sent id={i}" for i in (20000, 19999, 19998)],
              said[:3])
        records, lost = (int(word) for word in said[3].split() if word.isdigit())
        equal(f"{way}: records and losses", 20_000, records + lost)
        check_orders(way, records)
        run("trace-control", way, "--trim")  # a killed program leaves that to others
        check_orders(way, records)
    with open("/proc/sys/kernel/core_pattern", encoding="ascii") as file:
        pattern = file.read().strip()
    if pattern.startswith(("|", "/")) or core_limit[1] == 0:
        print(f"no core dump: core_pattern is {pattern}, the limit {core_limit[1]}")
        return
    run("crash_and_salvage", "core", "unused", status=-signal.SIGABRT,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (core_limit[1],) * 2))
    cores = [name for name in glob.glob("*") if "core" in name]
    equal("core dumps", 1, len(cores))
    check_orders(cores[0], records)


def check_orders(file, records):
    found = items(file)
    equal(f"{file}: the records, by trace-reduce", list(range(20_001 - records, 20_001)),
          [item["fields"]["id"] for item in found if item["kind"] == "record"])
    equal(f"{file}: the losses, by trace-reduce", 20_000 - records,
          sum(item["count"] for item in found if item["kind"] == "loss"))


def two_processes():
    run("two_processes", "jobs.trace")
    sent, begun, ended = {}, {}, 0
    pids = set()
    for item in items("jobs.trace"):
        equal("kind", "record", item["kind"])
        pids.add((item["event"], item["pid"]))
        if item["event"] == "job.sent":
            sent[item["fields"]["job"]] = item["time_ns"]
        elif item["span"] == "begin":
            begun[item["fields"]["job"]] = item["time_ns"]
        else:
            ended += 1
    equal("jobs sent", list(range(1, 101)), list(sent))
    equal("jobs handled", list(range(1, 101)), list(begun))
    equal("jobs ended", 100, ended)
    equal("handled after they were sent", True, all(sent[job] <= begun[job] for job in sent))
    equal("two processes", (2, 2), (len(pids), len({pid for _, pid in pids})))


def plugin_host():
    # Two runs of nine frames, of which three are kept; a span has two records.
    equal("output", "the plugin is unloaded\nplugin.filtered: 36\nplugin.loaded: 2\nkept: 6\n",
          run("plugin_host", os.path.join(FOLDER, "plugin.so")))
    names = run("/usr/bin/nm", "-D", "--defined-only", os.path.join(FOLDER, "plugin.so"))
    equal("functions that the plugin exports", ["plugin_run"],
          [line.split()[2] for line in names.splitlines() if line.split()[1] in "TW"])


def own_types():
    run("own_types", "types.trace")
    found = [(item["event"], item.get("span"), item["fields"]) for item in items("types.trace")]
    equal("records", [
        ("order.changed", None, {"state": "paid", "total": 1999, "customer": "Ada"}),
        ("order.picked", "begin", {"from.aisle": 4, "from.shelf": 2, "items": [7, 7, 9]}),
        ("order.picked", "end", {"walked": 1500}),
        ("order.changed", None, {"state": 9, "total": -1, "customer": ""})], found)
    equal("as text", True, "order.picked:end" in (text := run("trace-reduce", "types.trace")) and
          "walked=1500ms" in text)


def asio_server():
    run("asio_server", "server.trace")
    sent, open_spans, handled = set(), {}, {}
    for item in items("server.trace"):
        equal("kind", "record", item["kind"])
        lane = item["lane"]
        if item["event"] == "request.sent":
            sent.add(item["fields"]["request"])
        elif item["span"] == "begin":
            request = item["fields"]["request"]
            equal(f"request {request} was sent before", True, request in sent)
            open_spans[lane, item["position"]] = request
        else:
            if "began" in item:
                began = item["began"]["lane"], item["began"]["position"]
            else:  # the innermost of its thread
                began = max(place for place in open_spans if place[0] == lane)
            handled[open_spans.pop(began)] = item["fields"]["answer"]
    equal("requests sent", set(range(1, 201)), sent)
    equal("answers", {request: request * request for request in sent}, handled)
    equal("open spans", {}, open_spans)


def lengths(folder):
    long = []
    for path in glob.glob(os.path.join(folder, "*.cpp")):
        with open(path, encoding="utf-8") as file:
            count = len(file.readlines())
        if count > 80:
            long.append((os.path.basename(path), count))
        print(f"{count:3} {os.path.basename(path)}")
    equal("sources longer than 80 lines", [], long)


def compilers(folder):
    include = os.path.join(folder, "..", "..", "include")
    tried = 0
    for compiler, *flags in (("clang++-14",), ("aarch64-linux-gnu-g++",),
                             ("g++", "-m32", "-idirafter", "/usr/include/x86_64-linux-gnu")):
        empty = subprocess.run([compiler, *flags, "-x", "c++", "-fsyntax-only", "-include", "vector", "-"],
                               input="", text=True, stderr=subprocess.PIPE, check=False) \
            if shutil.which(compiler) else None
        if empty is None or empty.returncode != 0:
            print(f"{' '.join((compiler, *flags))}: not here")
            continue
        tried += 1
        for path in sorted(glob.glob(os.path.join(folder, "*.cpp"))):
            # Boost.Asio 1.74 has no coroutines with clang 14 and the library of g++.
            if compiler == "clang++-14" and path.endswith("asio_server.cpp"):
                continue
            done = subprocess.run(
                [compiler, *flags, "-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion",
                 "-Wshadow", "-Werror", "-I", include, "-fsyntax-only", path],
                text=True, stderr=subprocess.PIPE, check=False)
            equal(f"{compiler} {' '.join(flags)} {path}: errors", "", done.stderr)
    print(f"{tried} compilers")
    sys.exit(0 if tried else 77)


def main(program, folder):
    global FOLDER
    FOLDER = os.path.abspath(folder)
    if program in ("lengths", "compilers"):
        globals()[program](FOLDER)
        return
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        globals()[program]()
        os.chdir("/")
    print(f"{program}: as expected")


if __name__ == "__main__":
    main(*sys.argv[1:])
