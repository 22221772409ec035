#!/usr/bin/env python3
"""Opens each page of the built book in Chromium, 390 and 1280 pixels wide, in a light and a dark theme.

Usage: look.py BOOK

Finds pages that scroll sideways, and at 1280 pixels code, tables and pictures that are cut off. Exit
status: 0, 1 with each finding on a line, or 69 without Chromium.
"""

import functools
import html
import http.server
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading

LOOK = """<!doctype html><body><pre id="found"></pre><script>
const pages = PAGES, found = [];
const open = (page, width) => new Promise((done) => {
    const frame = document.createElement("iframe");
    frame.style = `width: ${width}px; height: 900px; border: 0`;
    frame.onload = () => done(frame);
    frame.src = page;
    document.body.append(frame);
});
const wide = (it) => it.scrollWidth > it.clientWidth + 1;
(async () => {
    let seen = 0;
    for (const theme of ["light", "navy"]) {
        localStorage.setItem("mdbook-theme", theme);
        for (const width of [390, 1280]) {
            for (const page of pages) {
                const frame = await open(page, width);
                const inside = frame.contentDocument;
                const say = (text) => found.push(`${page}: ${theme}, ${width} pixels: ${text}`);
                if (!inside.documentElement.classList.contains(theme)) say("not in this theme");
                if (wide(inside.documentElement)) say("scrolls sideways");
                const parts = inside.querySelectorAll("main pre > code, main .table-wrapper, main svg");
                for (const part of width < 1280 ? [] : parts)
                    if (wide(part)) say(`cut off: ${part.textContent.trim().slice(0, 60)}`);
                frame.remove();
                seen += 1;
            }
        }
    }
    document.getElementById("found").textContent = [...found, `END ${seen}`].join("\\n");
    document.title = "done";
})();
</script>"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def look(browser, book):
    pages = [str(page.relative_to(book)) for page in sorted(book.rglob("*.html"))]
    pages = [page for page in pages if page not in ("404.html", "toc.html")]
    with tempfile.TemporaryDirectory() as served:
        root = pathlib.Path(served)
        (root / "book").symlink_to(book)
        paths = json.dumps([f"book/{page}" for page in pages])
        (root / "look.html").write_text(LOOK.replace("PAGES", paths, 1))
        handler = functools.partial(Quiet, directory=served)
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            address = f"http://127.0.0.1:{server.server_port}/look.html"
            # The sandbox needs namespaces, which containers lack. The pages are this book's own.
            flags = ["--headless", "--no-sandbox", f"--user-data-dir={root}/profile"]
            command = [browser, *flags, "--virtual-time-budget=600000", "--dump-dom", address]
            dumped = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            server.shutdown()
    found = html.unescape(re.search(r'<pre id="found">(.*?)</pre>', dumped, re.DOTALL)[1]).splitlines()
    if not found or found[-1] != f"END {4 * len(pages)}":
        sys.exit(f"the browser did not open all pages: {found[-3:]}")
    return len(pages), found[:-1]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print("NOT LOOKED AT: install chromium.", file=sys.stderr)
        sys.exit(69)
    pages, found = look(browser, pathlib.Path(sys.argv[1]).resolve())
    print("\n".join(found or [f"{pages} pages looked at"]))
    sys.exit(1 if found else 0)


main()
