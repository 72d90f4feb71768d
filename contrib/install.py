"""Install crawld into the environment of this interpreter, and say meanwhile what is done.

    python contrib/install.py [REQUIREMENT]     default: the checkout, editable

pip is silent for most of a minute or prints a hundred lines; this prints its progress on one line,
or a few lines where the output is no terminal. If pip fails, its own output follows.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterable, Iterator

PIP = ("-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off")
NO_BYTECODE = "--no-compile"
"""Modules are compiled when they are first imported: most of those installed never are."""

LINES_EVERY = 15
"""Packages between two lines where the output is no terminal."""


def steps(lines: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Yield a text for each step that pip reports, and whether it is worth a line of its own."""
    packages = 0
    for line in lines:
        if line.startswith("Collecting "):
            packages += 1
            yield f"{packages} packages found", packages % LINES_EVERY == 0
        elif line.startswith("Installing collected packages"):
            yield f"unpacking {line.count(',') + 1} packages", True
        elif line.startswith("Installing build dependencies: started"):
            yield "getting what builds crawld", True
        elif line.startswith("Building editable"):
            yield "building crawld", "started" in line


def main() -> int:
    """Run pip; return its exit code."""
    wanted = sys.argv[1:] or ["."]
    began_s = time.monotonic()
    print(
        f"crawld: installing into {sys.prefix}, this once;"
        " about a minute with a warm package cache",
        flush=True,
    )
    pip = subprocess.Popen(
        [sys.executable, *PIP, NO_BYTECODE, "--editable", *wanted],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    assert pip.stdout is not None
    said: list[str] = []
    terminal = sys.stdout.isatty()

    def lines() -> Iterator[str]:
        for line in pip.stdout or ():
            said.append(line)
            yield line.strip()

    for text, notable in steps(lines()):
        shown = f"  {time.monotonic() - began_s:3.0f} s  {text}"
        if terminal:
            print(f"\r{shown:<60}", end="", flush=True)
        elif notable:
            print(shown, flush=True)
    code = pip.wait()
    if terminal:
        print()
    if code:
        print("".join(said), file=sys.stderr)
        print(f"crawld: pip failed with exit code {code}; its output is above", file=sys.stderr)
    else:
        print(f"crawld: installed in {time.monotonic() - began_s:.0f} s", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
