"""What the stored copies of hosts say about other hosts: canonical links, and hosts linked to.

Derived state: a copy is read once after a start, and again only if the page has a new copy. Copies
are read beside the crawl, so that no visit takes longer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import apsw
import numpy as np

from crawld.core.content.html import parse as parse_html
from crawld.core.replica.hosts import Keys
from crawld.core.replica.outlinks import linked_names, sketch_of
from crawld.core.url import canonicalize, server_name, split_url, target_of
from crawld.daemon.pacing import PacedReader
from crawld.errors import InvalidUrlError
from crawld.marks import Marks
from crawld.store.replica import inputs
from crawld.store.versions import version

FIRST_COPIES: Final = 8
"""Copies of a host that are read, the nearest to the seeds ..."""

MOST_COPIES: Final = 30
"""... or this many, if one of these names another host as canonical."""

HOSTS_AT_ONCE: Final = 64
"""Most hosts of which copies are read at once."""

MAX_COPY_BYTES: Final = 4 * 2**20
"""Larger copies are not looked at."""

HEAD_BYTES: Final = 64 * 1024
"""Part of a body that is searched for a canonical link."""

Copy = tuple[str, int]
"""URL and version_id."""

_NO_KEYS: Final[Keys] = np.zeros(0, dtype=np.uint64)


class CopyFacts(NamedTuple):
    """What was read from the copies of a host.

    Attributes:
        read: version_ids of the newest copies that were read, ascending.
        canonicals: by version_id, the other host that it names as canonical under its path.
        pages: pages of the host with a copy; 0: none of its copies names another host.
        linked: sketch of the hosts that its copies link to, or did.
    """

    read: tuple[int, ...] = ()
    canonicals: Mapping[int, str] = {}
    pages: int = 0
    linked: Keys = _NO_KEYS

    def counted(self) -> dict[str, int]:
        """Return how many of all pages name each host, estimated from the copies read."""
        counts: dict[str, int] = {}
        for name in self.canonicals.values():
            counts[name] = counts.get(name, 0) + 1
        return {name: round(count * self.pages / len(self.read)) for name, count in counts.items()}


class CopyReader:
    """Reads the copies of hosts that changed."""

    def __init__(self, paced: PacedReader, marks: Marks) -> None:
        self._paced = paced
        self._marks = marks
        self._facts: dict[int, CopyFacts] = {}

    async def read(self, server_ids: Sequence[int]) -> dict[int, Keys]:
        """Read the new copies of hosts; return the sketch of the hosts that each links to."""
        begin = 0
        while begin < len(server_ids):
            wanted = server_ids[begin : begin + HOSTS_AT_ONCE]
            before = [(server_id, self._facts.get(server_id, CopyFacts())) for server_id in wanted]
            found = await self._paced.read(read_some, before, self._marks)
            self._facts.update(zip(wanted, found, strict=False))
            begin += len(found)
        return {server_id: self._facts[server_id].linked for server_id in server_ids}

    def canonicals(self, numbers: Mapping[str, int]) -> dict[tuple[int, int], int]:
        """Return (from, to) host numbers to the pages that name the other as canonical."""
        return {
            (server_id, to): count
            for server_id, facts in self._facts.items()
            if facts.canonicals
            for name, count in facts.counted().items()
            if (to := numbers.get(name)) is not None and to != server_id
        }


def read_some(
    connection: apsw.Connection, hosts: Sequence[tuple[int, CopyFacts]], marks: Marks
) -> list[CopyFacts]:
    """Return what the copies of the first of some hosts say, given with what they said before.

    Ends after the host with which `MOST_COPIES` new copies were read; on a reader's thread.
    """
    found: list[CopyFacts] = []
    copies = 0
    for server_id, before in hosts:
        found.append(read_facts(connection, server_id, before, marks))
        copies += len(set(found[-1].read) - set(before.read))
        if copies >= MOST_COPIES:
            break
    return found


def read_facts(
    connection: apsw.Connection, server_id: int, before: CopyFacts, marks: Marks
) -> CopyFacts:
    """Return what the copies of a host say; reads those not read before; on a reader's thread."""
    # Most hosts name no other: then the first copies are enough, and nobody asks for the pages.
    copies = inputs.copies(
        connection, server_id, MOST_COPIES if before.canonicals else FIRST_COPIES
    )
    known = set(before.read)
    canonicals = {at: name for _, at in copies if (name := before.canonicals.get(at)) is not None}
    names: set[str] = set()

    def examine(some: Sequence[Copy]) -> None:
        for url, version_id in some:
            if version_id not in known:
                named = _examine(connection, url, version_id, names, marks)
                if named is not None:
                    canonicals[version_id] = named

    examine(copies[:FIRST_COPIES])
    pages = 0
    if canonicals:
        if not before.canonicals:
            copies = inputs.copies(connection, server_id, MOST_COPIES)
        examine(copies[FIRST_COPIES:])
        pages = inputs.count_copies(connection, server_id)
    else:
        copies = copies[:FIRST_COPIES]
    read = tuple(sorted(version_id for _, version_id in copies))
    linked = sketch_of(before.linked, names) if names else before.linked
    return CopyFacts(read, canonicals, pages, linked)


def _examine(
    connection: apsw.Connection, url: str, version_id: int, names: set[str], marks: Marks
) -> str | None:
    """Add the hosts that a copy links to; return the other host that it names as canonical."""
    own = split_url(url).host
    try:
        if version.body_bytes(connection, version_id) > MAX_COPY_BYTES:
            return None
        kept = version.readable_copy(connection, version_id)
        if kept is None:
            return None
        names |= linked_names(kept.body) - {own}
        # Most pages have no canonical link; this check takes a tenth of the time of a parse.
        if b"canonical" not in kept.body[:HEAD_BYTES].lower():
            return None
        with marks.under(url):
            named = parse_html(kept.body[: 2 * HEAD_BYTES]).canonical
        target = canonicalize(named, url) if named else None
    except InvalidUrlError:
        return None
    if target is None or target_of(target) != target_of(url):
        return None
    name = server_name(target)
    return name if name != server_name(url) else None
