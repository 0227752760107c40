#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""Runs a listing of commands and compares what they print with the listing.

    golden.py LISTING FOLDER

LISTING holds commands of programs in FOLDER, each followed by what it prints (both streams) and,
where it is not 0, by its exit status:

    # a comment
    $ das_trace 1 4
    1 executed, ...
    $ das_trace zero
    usage: ...
    [exit status 2]
"""
import difflib
import os
import shlex
import subprocess
import sys


def main(listing, folder):
    with open(listing, encoding="utf-8") as file:
        lines = file.read().splitlines()
    actual, commands = [], 0
    for line in lines:
        if line.startswith("#"):
            actual.append(line)
        elif line.startswith("$ "):
            program, *arguments = shlex.split(line[2:])
            done = subprocess.run([os.path.join(folder, program), *arguments], text=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=60, check=False)
            actual += [line, *done.stdout.splitlines()]
            if done.returncode != 0:
                actual.append(f"[exit status {done.returncode}]")
            commands += 1
    for difference in difflib.unified_diff(lines, actual, listing, "what is printed", lineterm=""):
        print(difference)
    print(f"{listing}: {commands} commands")
    return 0 if commands and lines == actual else 1


sys.exit(main(*sys.argv[1:]))
