"""Real revisions of real pages, with their source beside them in README.md."""

from __future__ import annotations

import json
import lzma
from importlib.resources import files
from itertools import groupby
from operator import itemgetter

Revision = tuple[float, bytes]
"""When a page became so, Unix seconds, and what it was then."""


def phpdoc() -> list[list[Revision]]:
    """Return the revisions of four pages of the PHP manual, each oldest first."""
    packed = files(__name__).joinpath("phpdoc_revisions.jsonl.xz").read_bytes()
    rows = [json.loads(line) for line in lzma.decompress(packed).splitlines()]
    return [
        [(float(row["changed_at"]), row["text"].encode()) for row in group]
        for _, group in groupby(rows, key=itemgetter("page"))
    ]
