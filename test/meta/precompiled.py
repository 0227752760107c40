# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""What many small programs begin with, parsed once."""
import os
import re
import subprocess

INCLUDE = re.compile(r'\s*#\s*include\s*[<"][^>"]+[>"]')
COMMENT = re.compile(r"\s*(//.*)?$|#line ")


def first_includes(source):
    """The directives that a source begins with; comments and empty lines may stand among them."""
    found = []
    for line in source.splitlines():
        if INCLUDE.match(line):
            found.append(INCLUDE.match(line)[0].strip())
        elif not COMMENT.match(line):
            break
    return found


def precompile(command, includes, folder):
    """Precompiles these directives into `folder`. Returns the arguments that put them before a program
    that begins with them itself; none if they do not compile: then each program says why."""
    header = os.path.join(folder, "first.hpp")
    with open(header, "w", encoding="utf-8") as file:
        file.write("".join(f"{include}\n" for include in includes))
    done = subprocess.run([*command, "-x", "c++-header", header, "-o", header + ".gch"], check=False,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return ["-include", header] if done.returncode == 0 else []
