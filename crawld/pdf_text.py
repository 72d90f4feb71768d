"""Extract the text of a PDF in a child process with limits, one document each.

A PDF is a program for a large interpreter in C: it may loop, take all memory or crash. The child
(`crawld/pdf_child.py`) has five seconds of processor time, half a gigabyte, and no file to write;
what it dies of costs this document its text and nothing else. A start takes some 60 ms.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

CHILD: Final = Path(__file__).with_name("pdf_child.py")

WALL_S: Final = 15.0
"""Longest time of a child; it may wait for a processor."""


class PdfError(Exception):
    """A PDF has no text that can be read; the message is for people."""


class PdfText(NamedTuple):
    """The text of a PDF.

    Attributes:
        title: as its author gave it; empty without one.
        text: of all pages, or of the first million characters.
    """

    title: str
    text: str


def extract_pdf(body: bytes, *, child: Path = CHILD, wall_s: float = WALL_S) -> PdfText:
    """Return the text of a PDF; blocks until its child has ended.

    Raises:
        PdfError: it is encrypted, damaged or too costly, or a child cannot be started.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-I", str(child)],
            input=body,
            capture_output=True,
            timeout=wall_s,
            env={},
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise PdfError(f"not read within {wall_s:g} s") from None
    except OSError as error:
        raise PdfError(f"no process could be started: {error.strerror}") from error
    if done.returncode:
        raise PdfError(_reason(done.returncode, done.stderr))
    try:
        found = json.loads(done.stdout)
        return PdfText(_storable(found["title"]), _storable(found["text"]))
    except (ValueError, LookupError, TypeError) as error:
        raise PdfError("its reader wrote no text") from error


def _storable(text: str) -> str:
    """Return a text that UTF-8 can hold, without NUL."""
    return text.encode("utf-8", "replace").decode().replace("\0", "")


def _reason(status: int, written: bytes) -> str:
    if status < 0:
        killed_by = signal.Signals(-status)
        if killed_by in (signal.SIGXCPU, signal.SIGKILL):
            return "took too much time"
        return f"its reader ended by {killed_by.name}"
    lines = written.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:200] if lines else f"its reader ended with status {status}"
