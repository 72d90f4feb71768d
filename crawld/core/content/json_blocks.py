"""Blocks of a JSON document: one for each value, named by its path (`authors[].name: Ada`).

Members of an object have no order (RFC 8259, section 4), so they are sorted. Indices of arrays are
left out of the path: an element that is inserted does not change the blocks after it. Numbers stay
as they are written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from crawld.core.content.blocks import Blocks, escaped, plain_blocks

MAX_VALUES: Final = 200_000
"""Values of a document that is read; some 100 bytes each while it is."""

MAX_PATH_CHARACTERS: Final = 200
"""Last characters of a path that are kept: a deep document repeats it in each block."""


def json_blocks(text: str) -> Blocks | None:
    """Return the blocks of a JSON document; None if it is none, too deep or too large."""
    # Each value but the first follows one of these; those in texts count too.
    if sum(map(text.count, ",[{:")) > MAX_VALUES:
        return None
    try:
        value = json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
    except (ValueError, RecursionError):
        return None
    return plain_blocks(
        (escaped(f"{path}: {shown}" if path else shown), path) for path, shown in _values(value)
    )


def _values(document: object) -> Iterator[tuple[str, str]]:
    """Yield path and text of each value without members, in order."""
    waiting = [("", document)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, dict) and value:
            members = sorted(value.items(), reverse=True)
            waiting += [(_path(path, name), member) for name, member in members]
        elif isinstance(value, list) and value:
            elements = f"{path}[]"[-MAX_PATH_CHARACTERS:]
            waiting += [(elements, element) for element in reversed(value)]
        else:
            yield path, value if isinstance(value, str) else json.dumps(value)


def _path(path: str, name: str) -> str:
    return (f"{path}.{name}" if path else name)[-MAX_PATH_CHARACTERS:]
