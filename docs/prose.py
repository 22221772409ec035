#!/usr/bin/env python3
"""Searches pages and comments for the patterns of prose.toml, and for sentences that are too long.

Usage: prose.py FILE ...

Reads the text of .md files and the comments of .rs, .toml and .sh files and of scripts. Exit status:
0, or 1 with each finding on a line.
"""

import pathlib
import re
import sys
import tomllib

LONGEST = 45  # words
COMMENT = {".rs": r"\s*//[/!]? ?(.*)"}
ABBREVIATION = re.compile(r"\b(e\.g|i\.e|etc|vs|cf)\.$")


def text_of(path):
    """The lines of prose with their numbers; an empty line ends a paragraph."""
    fenced = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if path.suffix != ".md":
            comment = re.fullmatch(COMMENT.get(path.suffix, r"\s*# ?(.*)"), line)
            line = comment[1] if comment else ""
        if line.lstrip().startswith("```"):
            fenced = not fenced
            line = ""
        # Code, tables, headings and diagrams are no sentences.
        if fenced or re.match(r"(    |\s*\||#|<|\{\{)", line):
            line = ""
        yield number, line


def sentences(path):
    """Each sentence with the number of its first line."""
    words, first = [], 0
    for number, line in [*text_of(path), (0, "")]:
        item = re.match(r"\s*([-*]|\d+\.) ", line)
        if words and (not line.strip() or item):
            yield first, " ".join(words)
            words = []
        for word in line[item.end() if item else 0 :].split():
            first = first if words else number
            words.append(word)
            if re.search(r"[.?!][)\"*]*$", word) and not ABBREVIATION.search(word):
                yield first, " ".join(words)
                words = []


def findings(path, rules):
    for number, sentence in sentences(path):
        # Quotations, code and what is struck through are not ours.
        plain = re.sub(r"~~.*?~~|`[^`]*`|\"[^\"]*\"", "X", sentence)
        plain = re.sub(r"\]\([^)]*\)", "]", plain)
        for pattern, advice in rules:
            if pattern.search(plain):
                yield f"{path}:{number}: {sentence}\n    {advice}"
        if (count := len(plain.split())) > LONGEST:
            yield f"{path}:{number}: {sentence}\n    split it: {count} words"


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    rules = []
    for rule in tomllib.loads(pathlib.Path(__file__).with_suffix(".toml").read_text())["rule"]:
        pattern = re.compile(rule["pattern"], re.IGNORECASE)
        if not pattern.search(rule["bad"]) or pattern.search(rule["good"]):
            sys.exit(f"prose.toml: {rule['pattern']}: does not tell its examples apart")
        rules.append((pattern, rule["advice"]))
    wrong = [finding for name in sys.argv[1:] for finding in findings(pathlib.Path(name), rules)]
    print("\n".join(wrong or [f"{len(sys.argv) - 1} files read"]))
    sys.exit(1 if wrong else 0)


main()
