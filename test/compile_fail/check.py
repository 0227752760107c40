#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""Shows that what must not compile does not, and for the intended reason.

    check.py FILE -- COMPILER [FLAG...]

FILE holds cases and their twins, each behind a macro of its own:

    #ifdef FAILS_two_claims  // expect: names two policies of the family claim
    using two_claims = trace_ring::policies<claim::fetch_add, claim::compare_exchange>;
    #endif
    #ifdef PASSES_two_claims
    using one_claim = trace_ring::policies<claim::fetch_add>;
    #endif

The includes that FILE begins with are parsed once for all cases.
The regular expression after `expect:` must match the message of a failed static_assert;
`expect-only:` must match it, too, and there must be no other error: all that a user reads.
`expect-error:` is for a constraint that has none, and matches any error. `expect-quote:` matches any
line that the compiler prints, such as a declaration that it quotes. Every case has a twin,
as like it as can be; the twins are compiled together, so their names must differ.
"""
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.dont_write_bytecode = True  # next to the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "meta"))
from precompiled import first_includes, precompile  # noqa: E402

CASE = re.compile(r"^\s*#\s*if(?:def)?\b.*\bFAILS_(\w+)")
FULL_CASE = re.compile(r"^\s*#\s*ifdef\s+FAILS_(\w+)\s*//\s*expect(-error|-only|-quote)?:\s*(\S.*?)\s*$")
TWIN = re.compile(r"^\s*#\s*ifdef\s+PASSES_(\w+)\s*$")


def parse(path):
    """The cases as (name, regex, "", "-only", "-error" or "-quote"), or the faults of the file itself."""
    cases, twins, faults = [], [], []
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if twin := TWIN.match(line):
                twins.append(twin[1])
            if not CASE.match(line):
                continue
            if case := FULL_CASE.match(line):
                cases.append((case[1], case[3], case[2] or ""))
            else:
                faults.append(f"{path}:{number}: a case without '// expect: <regex>'")
    names = [name for name, _, _ in cases]
    faults += [f"{path}: {name}: no PASSES_{name}" for name in names if name not in twins]
    faults += [f"{path}: {name}: no FAILS_{name}" for name in twins if name not in names]
    faults += [f"{path}: {name}: twice" for name in sorted(set(names)) if names.count(name) > 1]
    if not cases:
        faults.append(f"{path}: no cases")
    return cases, faults


def compile_with(command, path, names):
    defines = [f"-D{name}" for name in names]
    done = subprocess.run([*command, "-fsyntax-only", *defines, path], text=True,
                          env={**os.environ, "LC_ALL": "C"},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout


def check_case(command, path, case):
    """What is wrong with one case, or nothing."""
    name, expected, kind = case
    status, output = compile_with(command, path, [f"FAILS_{name}"])
    if status == 0:
        return f"{path}: FAILS_{name} compiles"
    errors = [line for line in output.splitlines() if re.search(r"\berror: ", line)]
    if kind == "-only" and len(errors) != 1:
        return f"{path}: FAILS_{name} has {len(errors)} errors instead of one:\n{output}"
    if kind == "-quote":
        errors = output.splitlines()
    elif kind != "-error":
        errors = [line for line in errors if re.search(r"static[ _]assert", line)]
    if any(re.search(expected, line) for line in errors):
        return ""
    return f"{path}: FAILS_{name} fails, but not by /{expected}/:\n{output}"


def check(path, command):
    cases, faults = parse(path)
    if faults:
        return faults
    with open(path, encoding="utf-8") as file:
        includes = first_includes(file.read())
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(max_workers=2) as pool:
        # Not for the twins: clang 14 crashes where `asm goto` in a template comes precompiled.
        first = precompile(command, includes, folder) if len(cases) > 1 and includes else []
        twins = pool.submit(compile_with, command, path, [f"PASSES_{c[0]}" for c in cases])
        faults = [f for f in pool.map(lambda c: check_case([*command, *first], path, c), cases) if f]
        status, output = twins.result()
    if status != 0:
        faults.append(f"{path}: the twins do not compile:\n{output}")
    print(f"{path}: {len(cases)} cases, {len(faults)} faults")
    return faults


def main(arguments):
    path, command = arguments[0], arguments[arguments.index("--") + 1:]
    faults = check(path, command)
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
