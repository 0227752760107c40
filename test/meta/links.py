#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""Every link of the pages leads to a file of the project, and to a heading that is there.

    links.py ROOT    prints `page:line: fault` for each broken link

A link to another site must use https; it is not followed. Each page must be reached from README.md.
"""
import os
import re
import subprocess
import sys

LINK = re.compile(r"\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def pages(root):
    """The paths of all pages below ROOT, relative to it."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard",
                             "*.md"], capture_output=True, text=True, check=False).stdout.split()
    if listed:
        return sorted(listed)
    found = []
    for folder, folders, names in os.walk(root):  # not in a repository: an archive
        folders[:] = [name for name in folders if name not in ("build", ".git")]
        found += [os.path.relpath(os.path.join(folder, name), root) for name in names if name.endswith(".md")]
    return sorted(found)


def without_code(text):
    """The text with empty lines instead of blocks of code."""
    return FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)


def slug(heading):
    """The anchor of a heading, as GitHub and pandoc (gfm) make it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", lambda m: m[1] or "", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(text):
    """The anchors of a page. A heading that occurs again has a number."""
    found = {}
    for heading in re.findall(r"^#+ (.+?)\s*$", without_code(text), re.MULTILINE):
        name = slug(heading)
        found[name] = found.get(name, -1) + 1
        if found[name]:
            found[f"{name}-{found[name]}"] = 0
    return set(found)


def links(text):
    """The links of a page as (line, target)."""
    plain = without_code(text)
    for link in LINK.finditer(plain):
        if plain.count("`", plain.rfind("\n\n", 0, link.start()) + 1, link.start()) % 2 == 0:
            yield plain.count("\n", 0, link.start()) + 1, link[1]


def check(root):
    texts = {}
    for page in pages(root):
        with open(os.path.join(root, page), encoding="utf-8") as file:
            texts[page] = file.read()
    faults, leads_to, count = [], {}, 0
    for page, text in texts.items():
        for line, target in links(text):
            count += 1
            where = f"{page}:{line}: {target}"
            if re.match(r"\w+:", target):
                if not target.startswith(("https://", "mailto:")):
                    faults.append(f"{where}: not https")
                continue
            path, _, anchor = target.partition("#")
            aim = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
            if aim.startswith(".."):
                faults.append(f"{where}: outside of the project")
            elif not os.path.exists(os.path.join(root, aim)):
                faults.append(f"{where}: no such file")
            elif anchor and (aim not in texts or anchor not in anchors(texts[aim])):
                faults.append(f"{where}: no such heading")
            else:
                leads_to.setdefault(page, set()).add(aim)
    reached, todo = {"README.md"}, ["README.md"]
    for page in todo:
        new = {aim for aim in leads_to.get(page, ()) if aim in texts} - reached
        reached |= new
        todo += sorted(new)
    faults += [f"{page}: not reached by links from README.md" for page in sorted(set(texts) - reached)]
    print(f"{len(texts)} pages, {count} links, {len(faults)} faults")
    return faults


if __name__ == "__main__":
    FOUND = check(sys.argv[1])
    print("\n".join(FOUND))
    sys.exit(1 if FOUND else 0)
