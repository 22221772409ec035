#!/usr/bin/env python3
"""Follows the links of the built book, and of the Markdown files outside of it.

Usage: links.py BOOK [FILE.md ...]

Links to other sites are not followed. Exit status: 0, or 1 with each dead link on a line.
"""

import pathlib
import re
import sys
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The anchors and the links of a page."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == "id":
                self.anchors.add(value)
            elif name in ("href", "src") and value is not None:
                self.links.append(value)


def resolve(page, link):
    """The file and the anchor that a link leads to; nothing for other sites."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    target = page.parent / unquote(parts.path) if parts.path else page
    return target.resolve(), unquote(parts.fragment)


def check_book(root):
    pages = {path.resolve(): Page(path.read_text()) for path in sorted(root.rglob("*.html"))}
    for path, page in pages.items():
        # Served for any address that does not exist, so its links start at the site's root.
        if path.name == "404.html":
            continue
        for link in page.links:
            if (to := resolve(path, link)) is None:
                continue
            target, anchor = to
            if target.is_dir():
                target /= "index.html"
            if not target.is_file():
                yield f"{path.relative_to(root)}: {link}: no such file"
            elif anchor and target in pages and anchor not in pages[target].anchors:
                yield f"{path.relative_to(root)}: {link}: no such place in it"
    if not pages:
        yield f"{root}: no pages"


def check_markdown(path):
    text = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        to = resolve(path.absolute(), link)
        if to is not None and not to[0].exists():
            yield f"{path}: {link}: no such file"


def check_summary(source):
    """Every page of the source is in the book: mdbook is silent about those that are not."""
    summary = (source / "SUMMARY.md").read_text()
    included = "".join(path.read_text() for path in source.rglob("*.md"))
    for path in sorted(source.rglob("*.md")):
        name = path.relative_to(source).as_posix()
        if name != "SUMMARY.md" and f"({name})" not in summary:
            if f"{{{{#include {name}" not in included:
                yield f"{path}: neither in SUMMARY.md nor included"
    for path in sorted(source.parent.glob("*.md")):
        if path.name != "README.md":
            yield f"{path}: pages of the book stand in {source}, and in its SUMMARY.md"


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    book, files = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]
    source = pathlib.Path(__file__).resolve().parent / "src"
    dead = [*check_book(book), *check_summary(source)]
    for file in files:
        path = pathlib.Path(file)
        # What the pages of the book link to is checked in the built book.
        if source not in path.resolve().parents:
            dead += check_markdown(path)
    print("\n".join(dead), end="\n" if dead else "")
    sys.exit(1 if dead else 0)


main()
