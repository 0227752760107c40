#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""Compiles and runs the C++ of documents, and runs their command lines.

    readme.py BIN FILE... -- COMPILER [FLAG...]

Each block ```cpp is a program, or declarations that an empty main is added to. A comment on the
line before the block says otherwise:

    <!-- continues -->   the block belongs to the one before it, declarations or not
    <!-- statements -->  the block is the body of main, after the one before it
    <!-- fragment -->    the block is not meant to compile: nothing is tried

In a block of no language, or of `sh`, a line that begins with `$ ` is a command, which must succeed;
the lines behind it, if there are any, are what it prints, but for the digits. Where no line begins so,
each line of `sh` is a command. A command in the text, between backticks, must succeed, too, unless a
word in capitals stands for something of the reader's (FILE). The programs of a document and its
commands are run in one folder, in their order, and then those in the text; the programs of BIN are on
the PATH and in build/bin. What the first document leaves there, the others find, too.

A block of `python` is a script, which may import examples/python. The first line of a block of `sql`
is a comment with the command that has the rest as its --sql: `-- trace-reduce orders.trace`.

What is not run is listed with the reason: a block by a comment before it,

    <!-- not run: it ends with Ctrl-C -->

and a command in the text in NOT_RUN below. Blocks of other languages than these and UNTRIED are faults.
"""
import functools
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # next to the sources
from precompiled import first_includes, precompile  # noqa: E402

# What most programs include. Who includes it at the beginning, gets it parsed once for all of them.
WHOLE = "#include <trace_ring/trace_ring.hpp>"
BLOCK = re.compile(r"(?:^<!-- ([^>]+?) -->\n+)?^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
UNTRIED = ("text", "clauses")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODULES = os.path.join(ROOT, "examples", "python")
# What begins a command, in the text. An option alone is none, but with a quoted word it is the end
# of one, whose program is missing.
COMMAND = re.compile(r"(?:\w+=\S* )*(?:(?:\./|build/bin/|[\w./]+/)?(?:trace-\w+|heap-report|branch-trace|"
                     r"address-trace|cmake|conan|make|g\+\+|clang\+\+|apt-get|python3|proof\.py|run)) \S")
HEADLESS = re.compile(r"--?[\w-]+[ =]['\"]")
PLACEHOLDER = re.compile(r"(?<![\w$.=/-])[A-Z]{1,}(?![\w.-])|=[A-Z]+\b(?![\w/])")

# Commands in the text that are not run, by page (its path's end) and reason.
MATRIX = "it builds the whole project"
NOT_RUN = {
    "README.md": {
        "trace-reduce --format html": "it names an option: the command of trace-reduce's page is run",
        "g++ -std=c++20 -I trace_ring/include program.cpp -pthread":
            "program.cpp is the reader's: each program on this page is compiled so",
        "cmake -S . -B build && cmake --build build && cmake --install build": MATRIX,
        "conan create conan -s compiler.cppstd=20": "test/conan/run runs it",
    },
    "conan/README.md": {
        "test/packages/run --really": "it alters the machine",
    },
    "bench/README.md": {
        "./bench/run --peers --repetitions 9": "it measures for an hour",
        "./bench/run --peers": "it measures for an hour",
        "./bench/run --quick": "it builds and measures for minutes",
        "./bench/run compile_time": "it measures for minutes",
        "python3 bench/readme_speed.py build/bench/results/report.json README.md bench/README.md":
            "it changes the pages",
    },
    "include/trace_ring/README.md": {
        "cmake -S . -B build -DCMAKE_INSTALL_PREFIX=PREFIX && cmake --install build":
            "test/consumer/parents runs it",
        "cmake --build build": "the presets' build is one",
        "conan create conan -s compiler.cppstd=20": "test/conan/run runs it",
        "g++ -std=c++20 $(pkg-config --cflags trace_ring) program.cpp": "test/consumer/run runs it",
    },
    "include/trace_ring/tutorial.md": {
        "g++ -std=c++20 -I trace_ring/include shop.cpp -pthread":
            "shop.cpp is the reader's: each program on this page is compiled so",
    },
    "include/trace_ring/recorder/memory_order.md": {
        "python3 test/meta/memory_order.py . --write": "it changes the page",
    },
    "include/trace_ring/recipes.md": {
        "trace-reduce core": "there is no core file: test/examples/trace_reduce/kinds_test.cpp makes them",
    },
    "examples/address_trace/README.md": {
        "address-trace cc": "it stands for a compiler in a make file",
        "address-trace c++": "it stands for a compiler in a make file",
    },
    "examples/trace_reduce/README.md": {
        "trace-reduce core": "there is no core file: test/examples/trace_reduce/kinds_test.cpp makes them",
    },
    "examples/trace_ship/capacity.md": {
        "./bench/run fleet_rate": "it measures for minutes, with a ClickHouse server",
    },
    "test/README.md": {
        "./test/run gcc": MATRIX,
        "./test/run --all": MATRIX,
        "./test/run --all --long": MATRIX,
        "test/meta/proof.py page build/proof.md test/README.md": "it changes the page",
    },
}


def blocks(text):
    """What a document has to be tried, as (line, source, commands): one of the two is empty."""
    found = []
    for block in BLOCK.finditer(text):
        kind, language, code = block[1] or "program", block[2], block[3]
        line = text.count("\n", 0, block.start(3)) + 1
        if language in ("", "sh"):
            if kind.startswith("not run: "):
                continue
            if kind != "program":
                raise ValueError(f"line {line}: <!-- {kind} -->: not a kind of block of commands")
            if lines := commands(code, language == "sh"):
                found.append((line, "", lines))
            continue
        if language in UNTRIED or kind == "fragment":
            continue
        if language in ("python", "sql"):
            if script := script_of(language, code):
                found.append((line, "", [(script, [])]))
            continue
        if language != "cpp":
            raise ValueError(f"line {line}: {language}: not a language of blocks")
        numbered = f'#line {line} "README"\n{code}'
        if kind in ("continues", "statements"):
            if not found or not found[-1][1]:
                raise ValueError(f"line {line}: {kind}, and no block before it")
            if kind == "statements":
                numbered = f"int main() {{\n{numbered}}}\n"
            found[-1] = (found[-1][0], found[-1][1] + numbered, [])
        elif kind == "program":
            found.append((line, numbered, []))
        else:
            raise ValueError(f"line {line}: <!-- {kind} -->: not a kind of block")
    return [(line, code if not code or re.search(r"\bmain\s*\(", code) else code + "int main() {}\n",
             lines) for line, code, lines in found]


def script_of(language, code):
    """The command that runs a block of Python or SQL; nothing: it cannot run here."""
    if language == "python":
        python = python_with_pandas()
        if not python:
            print("a script is not run: there is no Python with pandas (Debian: python3-pandas)")
        return python and f"{python} - <<'END_OF_BLOCK'\n{code}END_OF_BLOCK"
    first, _, query = code.partition("\n")
    if not first.startswith("-- trace-reduce "):
        raise ValueError(f"{first}: no comment with the command of the query")
    return f"{first[3:]} --sql \"$(cat <<'END_OF_BLOCK'\n{query}END_OF_BLOCK\n)\""


@functools.cache
def python_with_pandas():
    """The Python of this machine that runs scripts of documents: one with pandas if there is one."""
    for python in (sys.executable, "/usr/bin/python3"):
        if os.path.exists(python) and subprocess.run([python, "-c", "import pandas"], check=False,
                                                     capture_output=True).returncode == 0:
            return python
    return ""


def commands(code, is_shell):
    """Each command of a block, and the lines that it is said to print."""
    found, marked = [], re.search(r"^\$ ", code, re.MULTILINE) is not None
    for line in code.splitlines():
        if marked and line.startswith("$ "):
            found.append((line[2:], []))
        elif marked and found:
            found[-1][1].append(line)
        elif is_shell and line.strip() and not line.startswith("#"):
            found.append((line, []))
        elif COMMAND.match(line):  # without its `$ `
            found.append((line, []))
    return found


def commands_in_text(text):
    """Each command that stands in the text itself, by line. Raises ValueError for half of one."""
    outside = BLOCK.sub(lambda block: "\n" * block[0].count("\n"), text)
    found = {}
    for span in re.finditer(r"(?<!`)`([^`\n]+)`(?!`)", outside):
        line = outside.count("\n", 0, span.start()) + 1
        if HEADLESS.match(span[1]):
            raise ValueError(f"line {line}: {span[1]}: a command without its program")
        command = span[1].replace("\\|", "|")
        if COMMAND.match(command):
            found.setdefault(command, line)
    return found


def without_digits(text):
    return re.sub(r"\d+", "0", text)


def try_command(command, printed, folder, programs):
    """What is wrong with one command, or nothing."""
    path = os.pathsep.join([programs, os.environ["PATH"]])
    try:
        done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=folder, text=True,
                              timeout=120, check=False, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**os.environ, "PATH": path, "PYTHONPATH": MODULES,
                                   "PYTHONDONTWRITEBYTECODE": "1",
                                   "TRACE_RING_SQLITE":
                                       os.path.join(programs, "trace_ring_sqlite.so")})
    except subprocess.TimeoutExpired:
        return f"{command}: takes more than 120 seconds"
    if done.returncode != 0:
        return f"{command}: ends with {done.returncode}:\n{done.stdout}"
    wanted = without_digits("\n".join(printed))
    if printed and wanted != without_digits(done.stdout.rstrip("\n")):
        return f"{command}: prints something else:\n{done.stdout}"
    return ""


def try_program(command, code, folder):
    """What is wrong with one program, or nothing."""
    source, binary = os.path.join(folder, "orders.cpp"), os.path.join(folder, "orders")
    with open(source, "w", encoding="utf-8") as file:
        file.write(code)
    # A compiler that shares its processor may take long; a program may not.
    # A reader runs it twice: the files of the first run must not make the second one fail.
    compile_it = [*command, source, "-o", binary, "-pthread"]
    for step, seconds in ((compile_it, 240), ([binary], 60), ([binary], 60)):
        try:
            done = subprocess.run(step, cwd=folder, text=True, timeout=seconds, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        except subprocess.TimeoutExpired:
            return f"{os.path.basename(step[0])} takes more than {seconds} seconds"
        if done.returncode != 0:
            return f"{os.path.basename(step[0])} ends with {done.returncode}:\n{done.stdout}"
    return ""


def check(text, command, programs, folder, first=(), not_run=()):
    """The faults of a document, tried in `folder`. `first`: arguments that put WHOLE before a program,
    parsed. `not_run`: the commands in its text that are not run."""
    try:
        found = blocks(text)
        inside = commands_in_text(text)
    except ValueError as error:
        return [str(error)]
    faults = [f"{known}: is listed as not run, and is not in the text"
              for known in not_run if known not in inside]
    tried_before = {wanted for _, _, lines in found for wanted, _ in lines}
    found += [(line, "", [(wanted, [])]) for wanted, line in inside.items()
              if wanted not in not_run and wanted not in tried_before
              and not PLACEHOLDER.search(wanted)]
    sources = [code for _, code, _ in found if code]
    tried = [line for _, _, lines in found for line in lines]
    os.mkdir(os.path.join(folder, "build"))
    programs = os.path.abspath(programs)
    os.symlink(programs, os.path.join(folder, "build", "bin"))
    for line, code, lines in found:
        if code:
            if WHOLE in first_includes(code) and first and \
                    not try_program([*command, *first], code, folder):
                continue
            # What counts is the header as it is: clang 14 crashes at some that is precompiled.
            if wrong := try_program(command, code, folder):
                faults.append(f"line {line}: {wrong}")
        for wanted, printed in lines:
            if wrong := try_command(wanted, printed, folder, programs):
                faults.append(f"line {line}: {wrong}")
    if not found and not not_run:
        faults.append("nothing that is tried")
    print(f"{len(sources)} programs, {len(tried)} commands, {len(faults)} faults")
    return faults


def not_run_in(path):
    """The commands in the text of that page that are not run."""
    return NOT_RUN.get(os.path.relpath(os.path.abspath(path), ROOT), {})


def main(arguments):
    at = arguments.index("--")
    (programs, *paths), command = arguments[:at], arguments[at + 1:]
    faults = []
    with tempfile.TemporaryDirectory() as scratch:
        first = precompile(command, [WHOLE], scratch) if paths else []
        folders = [os.path.join(scratch, str(number)) for number in range(len(paths))]
        for path, folder in zip(paths, folders):
            os.mkdir(folder)
            if folder != folders[0]:
                for entry in os.scandir(folders[0]):
                    if entry.is_file():
                        os.link(entry, os.path.join(folder, entry.name))
            with open(path, encoding="utf-8") as file:
                text = file.read()
            print(path, end=": ", flush=True)
            faults += [f"{path}: {fault}" for fault in check(text, command, programs, folder, first,
                                                             not_run_in(path))]
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
