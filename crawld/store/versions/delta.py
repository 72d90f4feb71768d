"""Delta compression: superseded bodies become deltas against the body that followed.

The newest body of a page stays whole, so that the crawl writes it as usual and reads it in one
step. When a later body is stored, the older is encoded again with the later as its dictionary. The
reverse order (each against the one before) would make the newest the slowest to read, and the whole
chain would depend on the version that a retention rule removes first.

Work comes in slices: `plan` reads and encodes on a reader, `apply` changes the rows in a short
transaction and stores a cursor, so that a crash loses at most one slice of work. New versions have
higher version_ids than the cursor.

A body becomes a delta only if that saves an eighth, if it closes no cycle (a page that returns to
an old body shares it), and if every delta based on it can still be read at a cost of `CHAIN_BYTES`:
decoded bytes along the chain, plus `LINK_BYTES` for each link. Otherwise it stays whole, as a key
frame.

Invariant: only `apply` and `retention.apply` change the base of a body, and one job runs both, one
plan and its application at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import apsw

from crawld.errors import CorruptDatabaseError
from crawld.store.engine import meta
from crawld.store.versions import body

CHAIN_BYTES: Final = 8 * 1024 * 1024
"""About 6 ms of decoding (2 GB/s, 20 µs per link), a third of the time a read may take."""

LINK_BYTES: Final = 32 * 1024
"""The cost of fetching a row and starting a decoder, in bytes of decoding."""

SLICE_VERSIONS: Final = 256
SLICE_BYTES: Final = 16 * 1024 * 1024
"""Bytes of bodies decoded in a slice; it occupies a reader for at most a tenth of a second."""

_SPREAD: Final = 1000
"""A body with more deltas on it than this stays whole, however short their chains are."""

CURSOR: Final = "deltas_up_to"
"""Key in meta: the last version_id examined."""


class Reencoding(NamedTuple):
    """The new stored form of a body.

    Attributes:
        encoding: `identity` or `zstd`.
        base_id: the base of a delta; None: it is no delta.
        saved_bytes: how many bytes the new form saves.
    """

    body_id: int
    encoding: str
    base_id: int | None
    data: bytes
    saved_bytes: int


class Compaction(NamedTuple):
    """A planned slice of work.

    Attributes:
        deltas: bodies to store as deltas.
        up_to: the last version_id examined.
        unreadable: version_ids whose previous body is damaged; it stays as it is.
    """

    deltas: tuple[Reencoding, ...]
    up_to: int
    unreadable: tuple[int, ...]

    @property
    def saved_bytes(self) -> int:
        """Bytes of data that the slice saves."""
        return sum(each.saved_bytes for each in self.deltas)


_NEW: Final = """
SELECT version_id, page_id, visited_at, body_id FROM version
WHERE version_id > ? ORDER BY version_id LIMIT ?
"""

_BEFORE: Final = """
SELECT body_id FROM version WHERE page_id = ? AND (visited_at, version_id) < (?, ?)
ORDER BY visited_at DESC, version_id DESC LIMIT 1
"""


def plan(connection: apsw.Connection, *, limit: int = SLICE_VERSIONS) -> Compaction | None:
    """Return the next slice of at most `limit` versions, None if there is none; changes nothing.

    Everything must be read on one snapshot.
    """
    after = int(meta.get(connection, CURSOR) or 0)
    rows: list[tuple[Any, ...]] = connection.execute(_NEW, (after, limit)).fetchall()
    if not rows:
        return None
    links, deltas, unreadable = DeltaChains(connection), [], []
    up_to = after
    for version_id, page_id, visited_at, base_id in rows:
        up_to = version_id
        older_id = connection.execute(_BEFORE, (page_id, visited_at, version_id)).get
        if older_id is None:
            continue
        try:
            encoding = _encode_superseded(connection, links, older_id, base_id)
        except CorruptDatabaseError:
            unreadable.append(version_id)
            continue
        if encoding is not None:
            deltas.append(encoding)
        if links.decoded_bytes > SLICE_BYTES:
            break
    return Compaction(tuple(deltas), up_to, tuple(unreadable))


def _encode_superseded(
    connection: apsw.Connection, links: DeltaChains, older_id: int, base_id: int
) -> Reencoding | None:
    if links.base_of(older_id) is not None or not links.can_base_on(older_id, base_id):
        return None
    stored_bytes = connection.execute(
        "SELECT length(data) FROM body WHERE body_id = ?", (older_id,)
    ).get
    content, base = links.content(older_id), links.content(base_id)
    data = proven_delta(content, base)
    if not body.saves(len(data), stored_bytes):
        return None
    links.set_base(older_id, base_id)
    return Reencoding(older_id, body.ZSTD, base_id, data, stored_bytes - len(data))


def proven_delta(content: bytes, base: bytes) -> bytes:
    """Return a delta, checked by decoding it, since it replaces the body's only bytes.

    Raises:
        CorruptDatabaseError: the delta does not decode to the body.
    """
    data = body.encode_delta(content, base)
    if body.decode(body.ZSTD, len(content), data, base) != content:
        raise CorruptDatabaseError("a delta does not decode to its body", hint="test the memory")
    return data


def apply(connection: apsw.Connection, compaction: Compaction) -> None:
    """Store a slice of work and its cursor."""
    put_encodings(connection, compaction.deltas)
    meta.put(connection, CURSOR, str(compaction.up_to))


def put_encodings(connection: apsw.Connection, encodings: Sequence[Reencoding]) -> None:
    """Store bodies in their new forms; one that no longer exists is skipped."""
    for each in encodings:
        body.put_encoding(connection, each.body_id, each.encoding, each.base_id, each.data)


class DeltaChains:
    """The bases of deltas: those in the file, and those planned since.

    Attributes:
        decoded_bytes: bytes of bodies read so far.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        """Make a view of the file with nothing planned."""
        self.decoded_bytes = 0
        self._connection = connection
        self._bases: dict[int, int | None] = {}
        self._below: dict[int, int] = {}

    def content(self, body_id: int) -> bytes:
        """Return a decoded body.

        Raises:
            CorruptDatabaseError: it cannot be read.
        """
        content = body.read(self._connection, body_id)
        if content is None:
            raise CorruptDatabaseError("a version names a body that is not there")
        self.decoded_bytes += len(content)
        return content

    def base_of(self, body_id: int) -> int | None:
        """Return the base of a body, None if it is no delta."""
        if body_id not in self._bases:
            self._bases[body_id] = self._connection.execute(
                "SELECT base_id FROM body WHERE body_id = ?", (body_id,)
            ).get
        return self._bases[body_id]

    def chain(self, body_id: int) -> Iterator[int]:
        """Yield a body and its bases."""
        following: int | None = body_id
        for _ in range(body.MAX_LINKS):
            if following is None:
                return
            yield following
            following = self.base_of(following)

    def can_base_on(self, body_id: int, base_id: int) -> bool:
        """Return whether a body may become a delta of another: no cycle, no long chain."""
        bases = list(self.chain(base_id))
        if body_id in bases:
            return False
        above = sum(self._cost(each) for each in bases) + self._cost(body_id)
        return above <= CHAIN_BYTES and above + self._cost_below(body_id) <= CHAIN_BYTES

    def set_base(self, body_id: int, base_id: int | None) -> None:
        """Plan the base of a body; None: it is no delta."""
        self._bases[body_id] = base_id
        below = self._cost_below(body_id) + self._cost(body_id)
        for each in () if base_id is None else self.chain(base_id):
            self._below[each] = max(below, self._below.get(each, 0))
            below += self._cost(each)

    def _cost(self, body_id: int) -> int:
        size_bytes: int = self._connection.execute(
            "SELECT size_bytes FROM body WHERE body_id = ?", (body_id,)
        ).get
        return size_bytes + LINK_BYTES

    def _cost_below(self, body_id: int) -> int:
        """Return the cost of decoding the costliest delta on a body, from that body on."""
        row: tuple[int, int] = self._connection.execute(_BELOW, (LINK_BYTES, body_id, _SPREAD)).get
        stored, count = row
        if count == _SPREAD:
            return CHAIN_BYTES
        return max(stored, self._below.get(body_id, 0))


_BELOW: Final = """
WITH RECURSIVE below (body_id, cost) AS (
    SELECT ?2, 0
    UNION ALL
    SELECT body.body_id, cost + size_bytes + ?1
    FROM below CROSS JOIN body ON body.base_id = below.body_id
    LIMIT ?3
)
SELECT max(cost), count(*) FROM below
"""


def count_pending(connection: apsw.Connection) -> int:
    """Return about how many versions are still to be examined."""
    newest: int = connection.execute("SELECT ifnull(max(version_id), 0) FROM version").get
    return max(0, newest - int(meta.get(connection, CURSOR) or 0))
