#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""What a compiler says of the headers in an older standard than C++20: one error, which says what to do.

    standard.py INCLUDE -- COMPILER [FLAG...]

For each header that a program includes by itself. With GNU extensions, all of them compile.
"""
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True  # next to the sources

# Headers that a page recommends to include, except the umbrellas in the root folder.
DIRECTLY = ("recorder/site.hpp", "recorder/recorder.hpp", "record/event.hpp", "ring/ring.hpp",
            "reduce/trace_file.hpp", "drain/session.hpp", "instrument/functions.hpp",
            "instrument/memory.hpp", "instrument/reference_packing.hpp", "fwd.hpp", "policies.hpp", "setup_error.hpp",
            "recorder/cpu/recorder.hpp", "recorder/statistics.hpp", "reduce/statistics.hpp",
            "recorder/trim/trim.hpp", "recorder/control.hpp", "recorder/crash_snapshot.hpp",
            "recorder/runtime_event.hpp", "recorder/other_thread.hpp", "recorder/spans.hpp",
            "record/event/as_field.hpp", "record/event/duration.hpp", "record/event/members.hpp",
            "record/event/span.hpp", "record/event/value_names.hpp")
SENTENCE = "trace_ring needs C++20: compile with -std=c++20"
OLDER = ("-std=c++11", "-std=c++17", "-std=gnu++17")


def umbrellas(include):
    """The root headers that consist of includes alone."""
    for name in sorted(os.listdir(os.path.join(include, "trace_ring"))):
        path = os.path.join(include, "trace_ring", name)
        if name.endswith(".hpp"):
            with open(path, encoding="utf-8") as file:
                code = re.sub(r"^\s*(//.*|#.*)?$", "", file.read(), flags=re.MULTILINE)
            if not code.strip():
                yield name


def compiled(command, headers, switches):
    source = "".join(f"#include <trace_ring/{name}>\n" for name in headers)
    return subprocess.run([*command, "-DTRACE_RING_ENABLE_X86_DS", *switches, "-fsyntax-only",
                           "-x", "c++", "-"], input=source, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def check_older(command, headers, standard):
    done = compiled(command, headers, [standard])
    errors = [line for line in done.stdout.splitlines() if re.search(r"\berror:", line)]
    if done.returncode == 0:
        return f"{' '.join(headers)}: compiles with {standard}"
    if len(errors) != 1 or SENTENCE not in errors[0]:
        return f"{' '.join(headers)}: {standard} has {len(errors)} errors, the first {errors[:1]}"
    return ""


def main(arguments):
    at = arguments.index("--")
    (include,), command = arguments[:at], arguments[at + 1:]
    names = list(umbrellas(include))
    faults = [] if len(names) >= 13 else [f"the umbrellas are not found: {names}"]
    for standard in OLDER:
        for group in [[name] for name in (*names, *DIRECTLY)] + [names]:
            if fault := check_older(command, group, standard):
                faults.append(fault)
    done = compiled(command, names, ["-std=gnu++20"])
    if done.returncode != 0:
        faults.append(f"gnu++20: {done.stdout[:1000]}")
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
