#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""Writes the manual page of a program, and its completion for bash, zsh and fish, from its --help.

    manual_pages.py FOLDER OTHERS PROGRAM [EMULATOR...]

    FOLDER     the files are written below it, with the paths that they have below an installation's
               share/
    OTHERS     the other programs, with commas between them, for SEE ALSO; may be empty
    PROGRAM    the program's file
    EMULATOR   the command that runs the program, if this machine cannot

The help has the layout of CLI11: a description with indented examples, a usage line, lists of
positionals, options and subcommands, and further paragraphs, some of which begin with a title
('Exit status: ...'). A subcommand whose own --help is of another program has no options here.
"""
import dataclasses
import os
import re
import subprocess
import sys

COLUMN = 30  # where descriptions begin
FLAG = re.compile(r"--?[\w-]+")
# What CLI11 adds to the name of an option.
RELATION = re.compile(r" (Excludes|Needs):((?: --?[\w-]+)+)")
TITLED = re.compile(r"^(Exit status|Environment(?: of [\w+ ]+)?|[A-Z]{3,}): ")
MAY_BE_REPEATED = re.compile(r"given again|several times|repeatedly")


@dataclasses.dataclass
class Item:
    """An option, a positional or a subcommand."""
    flags: list  # of an option: its spellings
    value: str  # of an option, what follows it; of others, the name
    text: str
    excludes: list
    needs: list

    def choices(self):
        """The words that the value can be, if the help lists them."""
        listed = re.fullmatch(r"\w+:\{(.*)\}(=.*)?", self.value)
        words = listed[1].split(",") if listed else self.value.split("|")
        if len(words) < 2:
            return []
        return [re.sub(r"=[A-Z]+$", "=", word) for word in words if not word.isupper()]

    def metavariable(self):
        """The value as readers know it, without CLI11's types, choices and default."""
        listed = re.fullmatch(r"\w+:\{(.*)\}(=.*)?", self.value)
        if listed:
            return listed[1].replace(",", "|")
        name = re.sub(r" REQUIRED$", "", self.value)
        if not self.flags:
            name = re.sub(r" TEXT\b", "", name)
        return re.sub(r" \.\.\.$", "...", re.sub(r"(:[A-Z]+)?(=[\w.]+)?$", "", name))

    def default(self):
        """The default that CLI11 shows; empty if there is none, or it is in the description."""
        found = re.search(r"^[A-Z]+(?::[A-Z]+|:\{.*\})?=([a-z\d.]+)$", self.value)
        return found[1] if found else ""

    def takes_file(self):
        return bool(re.search(r"\b(FILE|TRACE)\b", self.value)) or "to this file" in self.text

    def takes_folder(self):
        return bool(re.search(r"\b(DIR|FOLDER)\b", self.value))

    def takes_program(self):
        return bool(re.match(r"PROGRAM\b", self.value))

    def short(self):
        """The beginning of the description: one line for a list of completions."""
        first = re.split(r"(?<=.{12})(?:; |\. |: |, for example|, as in| \()", self.text)[0]
        return first if len(first) <= 90 else first[:87].rsplit(" ", 1)[0] + "..."


@dataclasses.dataclass
class Help:
    name: str
    description: list  # paragraphs
    examples: list
    usage: str
    positionals: list
    options: list
    subcommands: list
    titled: list  # (title, text)

    def launches(self):
        return any(each.takes_program() for each in self.positionals)


def read_item(lines):
    """An item from its first line and those that continue it."""
    first, *rest = lines
    name, text = first, ""
    # A short name is padded up to the column. A long one has its line to itself.
    if len(first.rstrip()) > COLUMN and first[COLUMN - 1] == " " and first[COLUMN] != " " and \
            (first[COLUMN - 2] == " " or not rest):
        name, text = first[:COLUMN], first[COLUMN:]
    text = " ".join([text, *rest])
    name = name.strip()
    relations = {"Excludes": [], "Needs": []}
    for relation in RELATION.finditer(name):
        relations[relation[1]] = FLAG.findall(relation[2])
    name = RELATION.sub("", name)
    flags, value = [], name
    if name.startswith("-"):
        spellings, _, value = name.partition(" ")
        flags = spellings.split(",")
    return Item(flags, value, " ".join(text.split()), relations["Excludes"], relations["Needs"])


def read_help(name, text):
    """What a program prints for --help."""
    found = Help(name, [], [], "", [], [], [], [])
    lists = {"Positionals": found.positionals, "Options": found.options,
             "Subcommands": found.subcommands}
    head, usage, tail = text.partition("Usage: ")
    if not usage:
        raise ValueError(f"{name}: the help has no usage")
    for line in head.rstrip().splitlines():
        if line.startswith("  "):
            found.examples.append(line.strip())
        elif found.description and found.description[-1]:
            found.description[-1] += " " + line
        else:
            found.description.append(line)
    found.usage, _, tail = tail.partition("\n")
    paragraph, items, into = [], [], None
    for line in [*tail.splitlines(), ""]:
        title = line[:-1] if line.endswith(":") and not line.startswith(" ") else ""
        if title in lists:
            into = lists[title]
        elif into is not None and line.startswith(" " * COLUMN) and items:
            items.append(line)
        else:
            if items:
                into.append(read_item(items))
                items = []
            if into is not None and line.startswith("  "):
                items = [line]
            elif line and not line.startswith("  "):
                into = None
                if paragraph and TITLED.match(line):
                    found.titled.append(" ".join(paragraph))
                    paragraph = []
                paragraph.append(line)
            elif not line and paragraph:
                found.titled.append(" ".join(paragraph))
                paragraph = []
    found.titled = [(TITLED.match(each)[1] if TITLED.match(each) else "", TITLED.sub("", each))
                    for each in found.titled]
    if not found.options:
        raise ValueError(f"{name}: the help has no options")
    return found


# --- The manual page -----------------------------------------------------------------------------

def roff(text):
    """Text, so that troff prints it as it is."""
    for plain, escaped in (("\\", "\\e"), ("-", "\\-"), ("~", "\\(ti"), ("^", "\\(ha"),
                           ("'", "\\(aq"), ("`", "\\(ga"), ('"', "\\(dq")):
        text = text.replace(plain, escaped)
    return "\\&" + text if text.startswith(".") else text


def prose(text):
    """Sentences: options and their values stay whole, and hyphens in words are hyphens."""
    return re.sub(r"(?<=[A-Za-z])\\-(?=[A-Za-z])", "-", roff(text))


def sentence(text):
    text = text[:1].upper() + text[1:]
    return text if not text or text.endswith((".", ":", "?")) else text + "."


def option_entry(item):
    yield ".TP"
    value = item.metavariable()
    shown = ", ".join(f"\\fB{roff(flag)}\\fR" for flag in item.flags)
    if value:
        shown = f"{shown} \\fI{roff(value)}\\fR" if item.flags else f"\\fI{roff(value)}\\fR"
    yield shown
    yield prose(sentence(item.text))
    if item.default():
        yield prose(f"Default: {item.default()}.")
    if item.excludes:
        yield prose("Not together with " + ", ".join(item.excludes) + ".")
    if item.needs:
        yield prose("Only together with " + ", ".join(item.needs) + ".")


def manual_page(program, parts, version, others):
    """The lines of the page. `parts`: the help of each subcommand, or None, by its name."""
    upper = program.name.upper()
    first = re.split(r"(?<=[.:]) ", program.description[0])[0].rstrip(".:")
    yield f'.TH {roff(upper)} 1 "" "trace_ring {version}" "trace_ring"'
    yield from (".SH NAME", f"{roff(program.name)} \\- {prose(first[:1].lower() + first[1:])}",
                ".SH SYNOPSIS")
    for usage in [program.usage, *(part.usage for part in parts.values() if part)]:
        words = usage.split(" ")
        yield f".B {roff(words[0])}"
        yield f"{roff(' '.join(words[1:]))}"
        yield ".br"
    yield ".SH DESCRIPTION"
    for paragraph in program.description:
        yield ".PP"
        yield prose(sentence(paragraph.rstrip(":")))
    for item in program.positionals:
        yield from option_entry(item)
    if program.subcommands:
        yield ".SH SUBCOMMANDS"
        for item in program.subcommands:
            yield from option_entry(item)
    yield ".SH OPTIONS"
    for item in program.options:
        yield from option_entry(item)
    for name, part in parts.items():
        if part:
            yield f".SS {roff(f'Options of {program.name} {name}')}"
            for item in [*part.positionals, *part.options]:
                yield from option_entry(item)
    for title, text in program.titled:
        yield f".SH {roff(title.upper())}" if title else ".SH NOTES"
        yield prose(sentence(text))
    if program.examples:
        yield ".SH EXAMPLES"
        yield ".nf"
        yield from (roff(line) for line in program.examples)
        yield ".fi"
    if others:
        yield ".SH SEE ALSO"
        yield ",\n".join(f".BR {roff(other)} (1)" for other in others).replace(",\n", " ,\n")


# --- Completion ----------------------------------------------------------------------------------

def quoted(text):
    """A word of a shell; in fish, too, as the texts have no backslash before a quote."""
    return "'" + text.replace("'", "'\\''") + "'"


def function_name(program):
    return "_" + program.name.replace("-", "_")


def bash_values(options):
    """The cases of `case $previous`: what completes the value of an option."""
    for item in options:
        if not item.value:
            continue
        if item.choices():
            words = f'-W {quoted(" ".join(item.choices()))}'
        elif item.takes_folder() and not item.takes_file():
            words = "-d"
        elif item.takes_file() or item.takes_folder():
            words = "-f"
        elif item.takes_program():
            words = "-c"
        else:
            words = ""
        yield "|".join(item.flags), words


def bash_part(name, part):
    """The function of a program or a subcommand: its flags, its values and its positionals."""
    flags = [flag for item in part.options for flag in item.flags]
    rest = "-c" if part.launches() else "-f" if part.positionals else ""
    if part.subcommands:
        rest = f"-W {quoted(' '.join(item.value for item in part.subcommands))}"
    yield f"{name}() {{"
    yield "    case $previous in"
    for pattern, words in bash_values(part.options):
        yield f"        {pattern})"
        if words:
            yield f'            mapfile -t COMPREPLY < <(compgen {words} -- "$current") ;;'
        else:
            yield "            ;;"
    yield "        *)"
    yield "            if [[ $current == -* ]]; then"
    yield f"                mapfile -t COMPREPLY < <(compgen -W {quoted(' '.join(flags))} -- \"$current\")"
    yield "            else"
    yield f'                mapfile -t COMPREPLY < <(compgen {rest} -- "$current")' if rest else \
          "                :"
    yield "            fi ;;"
    yield "    esac"
    yield "}"


def bash_completion(program, parts):
    name = function_name(program)
    yield f"# bash completion for {program.name}"
    yield from bash_part(f"{name}_main", program)
    for sub, part in parts.items():
        if part:
            yield from bash_part(f"{name}_{sub}", part)
    yield f"{name}() {{"
    yield "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} word"
    yield "    local part=main"
    yield "    COMPREPLY=()"
    yield "    # --option=value is three words."
    yield "    if [[ $current == = ]]; then"
    yield "        current="
    yield "    elif [[ $previous == = && COMP_CWORD -gt 2 ]]; then"
    yield "        previous=${COMP_WORDS[COMP_CWORD - 2]}"
    yield "    fi"
    yield "    compopt -o filenames 2>/dev/null"
    yield "    local number"
    yield "    for ((number = 1; number < COMP_CWORD; ++number)); do"
    yield "        word=${COMP_WORDS[number]}"
    yield "        case $word in"
    if parts:
        with_options = [sub for sub, part in parts.items() if part]
        yield f"            {'|'.join(with_options)})"
        yield "                [[ $part != main ]] || part=$word ;;"
        for sub in parts:
            if not parts[sub]:
                yield f"            {sub})"
                yield '                [[ $part == main ]] || continue'
                yield '                mapfile -t COMPREPLY < <(compgen -f -- "$current")'
                yield "                return ;;"
    yield "            --)  # a program and its arguments, or files"
    yield "                if declare -F _command_offset >/dev/null; then"
    yield "                    _command_offset $((number + 1))"
    yield "                elif ((number + 1 == COMP_CWORD)); then"
    yield '                    mapfile -t COMPREPLY < <(compgen -c -- "$current")'
    yield "                else"
    yield '                    mapfile -t COMPREPLY < <(compgen -f -- "$current")'
    yield "                fi"
    yield "                return ;;"
    yield "        esac"
    yield "    done"
    yield f'    "{name}_$part"'
    yield "}"
    yield f"complete -F {name} {program.name}"


def zsh_action(item):
    if item.choices():
        return "(" + " ".join(item.choices()) + ")"
    if item.takes_folder() and not item.takes_file():
        return "_files -/"
    if item.takes_file() or item.takes_folder():
        return "_files"
    if item.takes_program():
        return "_command_names -e"
    return " "


def zsh_escaped(text):
    return re.sub(r"([\\\[\]:])", r"\\\1", text)


def zsh_specs(part):
    """The specifications that _arguments takes."""
    for item in part.options:
        repeated = MAY_BE_REPEATED.search(item.text) is not None
        apart = item.excludes if repeated else [*item.flags, *item.excludes]
        before = f"({' '.join(apart)})" if apart else ""
        for flag in item.flags:
            spec = f"{before}{'*' if repeated else ''}{flag}"
            if item.value:
                spec += ("=" if flag.startswith("--") else "+") + \
                    f"[{zsh_escaped(item.short())}]:{zsh_escaped(item.metavariable())}:{zsh_action(item)}"
            else:
                spec += f"[{zsh_escaped(item.short())}]"
            yield spec
    if part.launches():
        yield "(-)1:program: _command_names -e"
        yield "*::arguments: _normal"
    elif part.subcommands:
        yield f"1:subcommand:({' '.join(item.value for item in part.subcommands)})"
        yield "*::arguments:->rest"
    elif part.positionals:
        yield "*:file:_files"


def zsh_completion(program, parts):
    def arguments(part, indent, end=""):
        yield f"{indent}_arguments -s -S" + (" -C" if part.subcommands else "") + " \\"
        specs = [f"{indent}    {quoted(spec)}" for spec in zsh_specs(part)]
        yield " \\\n".join(specs) + end

    yield f"#compdef {program.name}"
    if not parts:
        yield from arguments(program, "")
        return
    yield f"{function_name(program)}() {{"
    yield "    local context state state_descr line"
    yield "    typeset -A opt_args"
    yield from arguments(program, "    ", " && return")
    yield "    case $line[1] in"
    for sub, part in parts.items():
        yield f"        {sub})"
        if part:
            yield from arguments(part, "            ")
        else:
            yield "            _files"
        yield "            ;;"
    yield "    esac"
    yield "}"
    yield f'{function_name(program)} "$@"'


def fish_options(program, part, condition):
    for item in part.options:
        words = ["complete", "-c", program.name]
        if condition:
            words += ["-n", quoted(condition)]
        for flag in item.flags:
            words += ["-l" if flag.startswith("--") else "-s", flag.lstrip("-")]
        if item.value:
            if item.choices():
                words += ["-x", "-a", quoted(" ".join(item.choices()))]
            elif item.takes_file():
                words += ["-r", "-F"]
            elif item.takes_folder():
                words += ["-x", "-a", quoted("(__fish_complete_directories)")]
            elif item.takes_program():
                words += ["-x", "-a", quoted("(__fish_complete_command)")]
            else:
                words += ["-x"]
        yield " ".join([*words, "-d", quoted(item.short())])
    if part.launches():
        words = ["complete", "-c", program.name, "-x"]
        skipped = ""
        if condition:
            words += ["-n", quoted(condition)]
            skipped = " --fcs-skip=2"  # the subcommand's name
        yield " ".join([*words, "-a", quoted(f"(__fish_complete_subcommand{skipped})")])


def fish_completion(program, parts):
    yield f"# fish completion for {program.name}"
    if not parts:
        yield from fish_options(program, program, "")
        return
    yield from fish_options(program, program, "__fish_use_subcommand")
    for item in program.subcommands:
        yield (f"complete -c {program.name} -f -n __fish_use_subcommand -a {item.value} "
               f"-d {quoted(item.short())}")
    for sub, part in parts.items():
        if part:
            yield from fish_options(program, part, f"__fish_seen_subcommand_from {sub}")


# -------------------------------------------------------------------------------------------------

def output_of(command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                          check=False, timeout=60)
    if done.returncode != 0:
        raise ValueError(f"{' '.join(command)}: ends with {done.returncode}")
    return done.stdout


def help_of(command, name):
    """The help of a program; of its subcommands by their names, None if it is of another program."""
    program = read_help(name, output_of([*command, "--help"]))
    program.usage = re.sub(r"^\S+", name, program.usage)
    parts = {}
    for item in program.subcommands:
        part = None
        try:
            text = output_of([*command, item.value, "--help"])
            if f"Usage: {name} {item.value} " in text:
                part = read_help(f"{name} {item.value}", text)
        except ValueError:
            part = None  # for example a compiler that is not installed
        parts[item.value] = part
    return program, parts


def files_of(command, name, others):
    """Path and text of each file."""
    program, parts = help_of(command, name)
    version = output_of([*command, "--version"]).split()[-1]
    for path, lines in (
            (f"man/man1/{name}.1", manual_page(program, parts, version, others)),
            (f"bash-completion/completions/{name}", bash_completion(program, parts)),
            (f"zsh/site-functions/_{name}", zsh_completion(program, parts)),
            (f"fish/vendor_completions.d/{name}.fish", fish_completion(program, parts))):
        yield path, "\n".join(lines) + "\n"


def main(folder, others, program, *emulator):
    name = os.path.basename(program)
    others = [other for other in others.split(",") if other not in ("", name)]
    for path, text in files_of([*emulator, os.path.abspath(program)], name, others):
        path = os.path.join(folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except ValueError as error:
        sys.exit(f"manual_pages.py: {error}")
