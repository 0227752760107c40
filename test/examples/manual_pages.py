#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""The manual pages and the completions have each option and each sentence of each program's --help.

    manual_pages.py SHARE PROGRAM...

The manual pages are rendered by groff without a warning. bash, zsh and fish parse the completions, and
bash and fish complete command lines by them. What is not on the machine is reported.
"""
import os
import re
import shutil
import subprocess
import sys

COLUMN = 30
# (line up to the cursor, words that must be offered, words that must not)
LINES = {
    "trace-reduce": [
        ("trace-reduce --ba", ["--backward"], ["--help"]),
        ("trace-reduce --format ", ["text", "json", "csv", "html"], ["--help"]),
        ("trace-reduce --format=j", ["json"], ["csv"]),
        ("trace-reduce --branches co", ["coverage="], ["calls"]),
        ("trace-reduce ord", ["orders.trace"], []),
        ("trace-reduce --output ord", ["orders.trace"], []),
        ("trace-reduce --time re", ["relative"], ["raw"]),
    ],
    "trace-control": [("trace-control --pa", ["--pause"], []), ("trace-control ord", ["orders.trace"], [])],
    "heap-record": [
        ("heap-record --unwind ", ["tables", "fp", "unwind", "none"], []),
        ("heap-record --color=al", ["always"], ["auto"]),
        ("heap-record seq-numb", ["seq-numbers"], []),
        ("heap-record --quiet -- seq-numb", ["seq-numbers"], []),
    ],
    "heap-report": [("heap-report --sh", ["--short-life"], []), ("heap-report ord", ["orders.trace"], [])],
    "branch-trace": [("branch-trace --source ", ["auto", "bts", "step"], []),
                     ("branch-trace -- seq-numb", ["seq-numbers"], [])],
    "trace-ship": [("trace-ship --da", ["--database"], ["--dry-run"]),
                   ("trace-ship --ca ord", ["orders.trace"], [])],
    "trace-clauses": [("trace-clauses --source=k", ["kernel"], ["ptrace"])],
    "address-trace": [
        ("address-trace r", ["run", "report"], ["cc"]),
        ("address-trace run --coh", ["--coherent"], []),
        ("address-trace report --untr", [], ["--untraced"]),
        ("address-trace run -- seq-numb", ["seq-numbers"], []),
    ],
}
BASH = r"""
source "$1"
line=$2
# As bash separates words: = is a word.
words=${line//=/ = }
read -r -a COMP_WORDS <<<"$words"
[[ $words != *' ' ]] || COMP_WORDS+=('')
COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMP_LINE=$line COMP_POINT=${#line}
specification=$(complete -p "${COMP_WORDS[0]}")
function=${specification#*-F }
"${function%% *}" "${COMP_WORDS[0]}" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\n' "${COMPREPLY[@]}"
"""
faults = []
missing = []


def output(command, **more):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, check=False, timeout=60, **more)


def check(is_right, what):
    if not is_right:
        faults.append(what)


def have(program):
    if not shutil.which(program):
        if program not in missing:
            missing.append(program)
        return False
    return True


def helps(program):
    """The help of a program, and of its subcommands."""
    text = output([program, "--help"]).stdout
    yield text
    _, _, subcommands = text.partition("\nSubcommands:\n")
    for name in re.findall(r"^  (\S+)", subcommands.partition("\n\n")[0], re.MULTILINE):
        part = output([program, name, "--help"]).stdout
        if f"Usage: {os.path.basename(program)} {name} " in part:
            yield part


def flags(text):
    """The spellings of the options, as the help lists them."""
    return [flag for names in re.findall(r"^  (-[\w,-]+)", text, re.MULTILINE) for flag in names.split(",")]


def words(text):
    return " ".join(text.split()).lower()


def rendered(page):
    """The text of a page, and what groff reports on it. A line holds a paragraph."""
    done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-Kutf8", "-P-cbou", "-rLL=20000n", page],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60,
                          env={**os.environ, "LC_ALL": "C.UTF-8"})
    return re.sub(r"[\u2010\u2011]", "-", done.stdout), done.stderr


def check_page(name, page, text):
    """Each line of the help is in the page, whatever the lines are there."""
    shown, warnings = rendered(page)
    check(not warnings, f"{page}: {warnings}")
    for heading in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "SEE ALSO"):
        check(re.search(f"^{heading}$", shown, re.MULTILINE), f"{page}: no {heading}")
    shown = words(shown)
    for flag in flags(text):
        check(re.search(rf"(?<![\w-]){re.escape(flag)}(?![\w-])", shown), f"{page}: no option {flag}")
    for line in text.splitlines():
        part = line[COLUMN:] if line.startswith(" " * COLUMN) else ""
        if not line.startswith("  "):
            part = re.sub(r"^(Usage|Exit status|Environment[^:]*|[A-Z]{3,}): |\w+:$", "", line)
        elif part and not line.startswith(" " * COLUMN):
            part = ""
        check(words(part).rstrip(":") in shown, f"{page}: not in it: {part}")
    if shutil.which("man"):
        done = output(["man", "--warnings", "-E", "UTF-8", "-l", page],
                      env={**os.environ, "LC_ALL": "C.UTF-8", "MAN_KEEP_STDERR": "1", "MANPAGER": "cat"})
        check(done.returncode == 0 and "warning" not in done.stdout, f"{page}: {done.stdout[-500:]}")
    check(not re.search(rf"\b{name}\(1\)[^)]*$", shown.partition("see also")[2].partition("trace_ring")[0]),
          f"{page}: refers to itself")


def check_lines(name, shell, complete):
    for line, offered, not_offered in LINES[name]:
        found = complete(line)
        for word in offered:
            check(word in found, f"{shell}: {line!r}: {word} is not offered: {found}")
        for word in not_offered:
            check(word not in found, f"{shell}: {line!r}: {word} is offered: {found}")


def in_fish(file, line):
    done = output(["fish", "--no-config", "-c", 'source $argv[1]; complete -C $argv[2]', file, line])
    # With an option's own spelling before the value, where it was given so.
    found = [each.partition("\t")[0] for each in done.stdout.splitlines()]
    return [re.sub(r"^--[\w-]+=(?=.)", "", each) for each in found]


def main(share, *programs):
    names = [os.path.basename(program) for program in programs]
    check(set(names) <= set(LINES), f"programs without a line: {set(names) - set(LINES)}")
    open("orders.trace", "w", encoding="utf-8").close()
    os.makedirs("bin", exist_ok=True)
    for name in (*names, "seq-numbers"):  # fish completes options only of commands that it finds
        with open(os.path.join("bin", name), "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n")
        os.chmod(file.name, 0o755)
    os.environ["PATH"] = os.path.abspath("bin") + os.pathsep + os.environ["PATH"]
    os.environ["HOME"] = os.environ["XDG_CONFIG_HOME"] = os.getcwd()
    options = 0
    for program, name in zip(programs, names):
        text = "\n".join(helps(program))
        if have("groff"):
            check_page(name, os.path.join(share, f"man/man1/{name}.1"), text)
        files = {"bash": f"bash-completion/completions/{name}", "zsh": f"zsh/site-functions/_{name}",
                 "fish": f"fish/vendor_completions.d/{name}.fish"}
        for shell, path in files.items():
            path = os.path.join(share, path)
            with open(path, encoding="utf-8") as file:
                completion = file.read()
            for flag in flags(text):
                spelling = re.escape(flag)
                if shell == "fish":
                    spelling = rf"-{'l' if flag.startswith('--') else 's'} {re.escape(flag.lstrip('-'))}"
                check(re.search(rf"(?<![\w-]){spelling}(?![\w-])", completion), f"{path}: no {flag}")
                options += 1
            if have(shell):
                parsed = output([shell, "-n", path])
                check(parsed.returncode == 0 and not parsed.stdout, f"{path}: {parsed.stdout}")
        bash = os.path.join(share, files["bash"])
        check_lines(name, "bash", lambda line, file=bash: output(
            ["bash", "--norc", "-c", BASH, "bash", file, line]).stdout.splitlines())
        if shutil.which("fish"):
            fish = os.path.join(share, files["fish"])
            check_lines(name, "fish", lambda line, file=fish: in_fish(file, line))
    print(f"{len(programs)} programs, {options} options in completions, {len(faults)} faults"
          + (f"; not tried, as they are not installed: {', '.join(missing)}" if missing else ""))
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
