"""Draws which functions of the kernel one system call reaches, beside another."""

import bisect
import collections
import os

import kcov


def functions():
    """The start addresses and the names of the kernel's functions, in ascending order."""
    with open("/proc/kallsyms") as lines:
        symbols = [line.split() for line in lines]
    found = sorted((int(words[0], 16), words[2]) for words in symbols if words[1] in "tTwW")
    return [address for address, _ in found], [name for _, name in found]


def blocks(call, *arguments):
    """The number of different program counters in each function that a call reaches."""
    with kcov.trace() as t:
        call(*arguments)  # The first time, the interpreter and the kernel prepare more.
        t.reset()
        call(*arguments)
        pcs = set(t.copy())
    starts, names = kernel
    sites = (kcov.run_time(kcov.call_site(pc), text.kaslr_offset) for pc in pcs)
    return collections.Counter(names[bisect.bisect(starts, site) - 1] for site in sites)


text, kernel = kcov.text(), functions()
ours, others = blocks(os.stat, "/"), blocks(os.stat, "/proc/self/status")
both = [name for name in ours if ours[name] == others[name]]
print(f"{len(both)} functions have the same blocks in both")
print(f"{'stat /':>16} | stat /proc/self/status")
for name in sorted(ours.keys() | others.keys(), key=lambda name: ours[name] - others[name]):
    if name not in both:
        print(f"{'#' * min(ours[name], 16):>16} | {'#' * min(others[name], 16):<16} {name}")
