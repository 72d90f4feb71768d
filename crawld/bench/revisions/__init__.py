"""Real revisions of real pages; README.md names their source."""

from __future__ import annotations

import json
import lzma
from importlib.resources import files
from itertools import groupby
from operator import itemgetter

Revision = tuple[float, bytes]
"""Time of the change, Unix seconds, and the page's content since then."""


def phpdoc() -> list[list[Revision]]:
    """Return the revisions of four pages of the PHP manual, each oldest first."""
    packed = files(__name__).joinpath("phpdoc_revisions.jsonl.xz").read_bytes()
    rows = [json.loads(line) for line in lzma.decompress(packed).splitlines()]
    return [
        [(float(row["changed_at"]), row["text"].encode()) for row in group]
        for _, group in groupby(rows, key=itemgetter("page"))
    ]
