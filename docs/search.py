#!/usr/bin/env python3
"""Asks the built book's search the questions of questions.toml, and checks the pages' titles.

Usage: search.py BOOK

The book's own elasticlunr and index rank the results, in node. Exit status: 0, 1 with each question
whose first result is another place, or 69 without node.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

# The search page has a title filter and options of its own: the same as in mdbook's searcher.js.
ASK = """
const fs = require("fs");
const [book, ...questions] = process.argv.slice(1);
const file = (start) => book + "/" + fs.readdirSync(book).find((name) => name.startsWith(start));
const elasticlunr = require(file("elasticlunr"));
const window = { search: {} };
new Function("window", fs.readFileSync(file("searchindex"), "utf8"))(window);
const { doc_urls, index, search_options } = window.search;
const loaded = elasticlunr.Index.load(index);
const first = (words) => loaded.search(words, search_options).slice(0, 5).map((hit) => doc_urls[hit.ref]);
console.log(JSON.stringify(questions.map(first)));
"""


def check_search(book, questions):
    words = [question["words"] for question in questions]
    asked = subprocess.run(
        ["node", "-e", ASK, book, *words], check=True, capture_output=True, text=True
    )
    for question, found in zip(questions, json.loads(asked.stdout), strict=True):
        # The place of a page's title is the page.
        first = re.sub(r"^(.*)#.*$", lambda at: place(book, at[0]), found[0]) if found else None
        if first != question["answer"]:
            yield f"{question['words']}: {question['answer']} is not first of {found}"


def place(book, url):
    """The address without the anchor if that is the page's title."""
    page, anchor = url.split("#")
    title = re.search(r'<h1 id="([^"]*)"', (book / page).read_text())
    return page if title and title[1] == anchor else url


def check_titles(source):
    """A page's title in the navigation is its own, and no two are alike."""
    seen = {}
    for title, name in re.findall(r"\[(.*)\]\((.*)\)", (source / "SUMMARY.md").read_text()):
        own = re.search(r"^# (.*)$", (source / name).read_text(), re.MULTILINE)
        if own is None or own[1] != title:
            yield f"{name}: its title is {own and own[1]!r}, in SUMMARY.md {title!r}"
        if title in seen:
            yield f"{name}: {title!r} is also the title of {seen[title]}"
        seen[title] = name


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if not shutil.which("node"):
        print("SEARCH NOT CHECKED: install nodejs.", file=sys.stderr)
        sys.exit(69)
    docs, book = pathlib.Path(__file__).resolve().parent, pathlib.Path(sys.argv[1]).resolve()
    questions = tomllib.loads((docs / "questions.toml").read_text())["question"]
    wrong = [*check_search(book, questions), *check_titles(docs / "src")]
    print("\n".join(wrong or [f"{len(questions)} questions answered"]))
    sys.exit(1 if wrong else 0)


main()
