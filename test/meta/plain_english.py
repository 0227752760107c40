#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""Limits the phrases that read like a translation: at most 5 in 1,000 lines of prose.

    plain_english.py ROOT    prints each phrase as `file:line: phrase: text`, then the ratio

Prose is the text of the pages (without their code blocks), and the comments of the headers and the
programs. ALLOWED lists the places where a phrase is right as it is used there.
"""
import os
import re
import sys

PER_THOUSAND = 5
PHRASES = {
    "conflict": r"^(<<<<<<<|>>>>>>>)( |$)",
    "told": r"\btold\b(?! apart)",
    "tells": r"\btells?\b(?! apart)",
    "says of": r"\bsays? of\b",
    "is said": r"\b(is|are|be) said\b",
    "of its own": r"\bof (its|their|his) own\b",
    "that of": r"\bthat of\b",
    "whatever/whoever": r"\bwho(so)?ever\b|\bwhatever\b",
    "beside": r"\bbeside\b",
    "meanwhile": r"\bmeanwhile\b",
    "goes on": r"\bgo(es)? on\b",
    "at once": r"\bat once\b",
    "stands": r"\bstands?\b(?! alone)",
    "bears": r"\bbears?\b",
    "asked for": r"\basked for\b",
    "of what": r"\bof what\b",
    "but for": r"\bbut for\b",
    "perhaps": r"\bperhaps\b",
    "anyhow": r"\banyhow\b",
    "thereof": r"\bthere(of|upon|with)\b",
    "is had": r"\b(be|is) (to be )?had\b",
    "inversion": r"\b(What|Where|Who|How) [^.?!]{3,60}, (its?|the|a|an|is|are|that|there)\b",
    "none/nothing of": r"\b(none|nothing) of\b",
    "as it is": r"\bas (it|they) (is|are|lies?|stands?)\b",
}
COMPILED = {name: re.compile(pattern) for name, pattern in PHRASES.items()}
# (file, a part of the line): the words are right there.
ALLOWED = ()
FOLDERS = ("include", "examples", "bench", "test", "conan")


def files(root):
    yield os.path.join(root, "README.md")
    for folder in FOLDERS:
        for where, _, names in os.walk(os.path.join(root, folder)):
            for name in sorted(names):
                if name.endswith(".md") or (folder in ("include", "examples")
                                            and name.endswith((".hpp", ".cpp"))):
                    yield os.path.join(where, name)


def prose(path):
    """(line number, text) of the prose in a page or a source."""
    fenced = False
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if path.endswith(".md"):
                if line.lstrip().startswith("```"):
                    fenced = not fenced
                elif not fenced:
                    yield number, line.strip()
            elif found := re.search(r"//[/!<]*\s*(.*)", line):
                if "order:" not in found[1] and "NOLINT" not in found[1]:
                    yield number, found[1].strip()


def allowed(name, text):
    return any(name == file and part in text for file, part in ALLOWED)


def check(root):
    lines, found = 0, []
    for path in files(root):
        name = os.path.relpath(path, root)
        for number, text in prose(path):
            lines += 1
            found += [(name, number, phrase, text) for phrase, pattern in COMPILED.items()
                      if pattern.search(text) and not allowed(name, text)]
    # A merge that was not finished is in no language.
    markers = [line for line in found if line[2] == "conflict"]
    for name, number, phrase, text in found:
        print(f"{name}:{number}: {phrase}: {text[:150]}")
    ratio = 1000 * len(found) / max(lines, 1)
    print(f"{len(found)} in {lines} lines of prose: {ratio:.1f} per 1,000 (limit {PER_THOUSAND})")
    return 1 if ratio > PER_THOUSAND or lines == 0 or markers else 0


if __name__ == "__main__":
    sys.exit(check(*sys.argv[1:]))
