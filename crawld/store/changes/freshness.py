"""What the file holds about the present freshness of a site: a sample of its copies, and visits.

All reads are bounded, whatever the number of pages: copies beyond `SAMPLE_COPIES` are sampled in
blocks of consecutive page_ids at equal distances, so that each page is drawn with the same
probability.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import apsw

from crawld.core.change.record import RECORD_DTYPE, VERSION
from crawld.core.revisit.quiet_visits import QuietVisits

SAMPLE_COPIES: Final = 2_000
"""Copies that are all read; of more, a sample of about as many."""

BLOCKS, BLOCK_PAGES = 512, 8
"""Blocks of a sample, and consecutive pages in each."""

LEAST_SAMPLE: Final = 200
"""A site with a smaller share of the blocks is sampled from its first copies."""

_CHANGES_AT: Final = RECORD_DTYPE.fields["exact_changes"][1]  # type: ignore[index]
_PRIOR_AT: Final = RECORD_DTYPE.fields["prior_shape"][1]  # type: ignore[index]
_RATE: Final = struct.Struct("<d8xdf4xf")
"""Exact and censored changes, shape of the prior, and the rate, without what is between them."""

_HELD: Final = "page.state = 'visited' AND page.version_id IS NOT NULL AND page.requisite = 0"

# A copy that is marked as removed or as outside of its part, or withheld, is not shown as the page.
_IS_SHOWN: Final = (
    "page.left_at IS NULL"
    " AND NOT EXISTS (SELECT 1 FROM removal WHERE removal.page_id = page.page_id)"
)

# One JSON text: on a thread each step of a statement would wait for the interpreter lock.
_CURRENT: Final = (
    f"length(record) = {RECORD_DTYPE.itemsize} AND hex(substr(record, 1, 1)) = '{VERSION:02X}'"
)
_COPY: Final = f"""json_array(
    page.last_visit_at, page.last_outcome, page.site_id = ?1,
    CASE WHEN {_CURRENT} THEN
        hex(substr(record, {_CHANGES_AT + 1}, 24) || substr(record, {_PRIOR_AT + 1}, 12)) END,
    json((SELECT json_group_array(json_array(hint_source_id, first_at, last_at, heard_at))
        FROM hint WHERE hint.page_id = page.page_id))
)"""

_ALL: Final = f"""
SELECT json_group_array(json(copy)) FROM (
    SELECT {_COPY} AS copy FROM page INDEXED BY page_held LEFT JOIN model USING (page_id)
    WHERE page.site_id = ?1 AND {_HELD} AND {_IS_SHOWN} LIMIT ?2
)
"""

# Pages of other sites that the site names, too (`frontier/page_share.py`).
_SHARED: Final = f"""
SELECT json_group_array(json(copy)) FROM (
    SELECT {_COPY} AS copy FROM page_share CROSS JOIN page USING (page_id)
    LEFT JOIN model USING (page_id)
    WHERE page_share.site_id = ?1 AND {_HELD} AND {_IS_SHOWN} LIMIT ?2
)
"""

_IS_SHARED: Final = """EXISTS (
    SELECT 1 FROM page_share
    WHERE page_share.site_id = ?1 AND page_share.page_id = page.page_id
)"""

_BLOCKS: Final = f"""
SELECT json_group_array(json(copy)) FROM (
    SELECT {_COPY} AS copy FROM json_each(?2) AS block
    CROSS JOIN page NOT INDEXED
      ON page.page_id BETWEEN block.value AND block.value + {BLOCK_PAGES - 1}
    LEFT JOIN model USING (page_id)
    WHERE (page.site_id = ?1 OR {_IS_SHARED}) AND {_HELD} AND {_IS_SHOWN}
)
"""


class CopyHint(NamedTuple):
    """A hint of a copy: its source, the first and last change, and when it was reported."""

    hint_source_id: int
    first_at: float
    last_at: float
    heard_at: float


class CopyRate(NamedTuple):
    """Changes of a page per second by its model, and how many, seen or assumed, are behind it."""

    per_s: float
    changes: float


class SampledCopy(NamedTuple):
    """A copy: its last visit, the rate of its changes (None: no model), and its hints.

    Attributes:
        is_own: whether the page is not one of another site, which shares it.
    """

    visited_at: float
    outcome: str | None
    is_own: bool
    rate: CopyRate | None
    hints: tuple[CopyHint, ...]


class CopySample(NamedTuple):
    """Copies of a site, and how many there are, about."""

    copies: int
    sampled: list[SampledCopy]

    @property
    def own_copies(self) -> int:
        """Number of copies that are not those of another site, about."""
        own = sum(copy.is_own for copy in self.sampled)
        return round(self.copies * own / max(len(self.sampled), 1))


def sample_copies(connection: apsw.Connection, site_id: int) -> CopySample:
    """Return all copies of a small site, a sample of those of a large one."""
    visited = connection.execute("SELECT pages_visited FROM site WHERE site_id = ?", (site_id,)).get
    if visited is None:
        return CopySample(0, [])
    shared = _copies(connection.execute(_SHARED, (site_id, SAMPLE_COPIES)).get)
    if visited + len(shared) <= SAMPLE_COPIES and len(shared) < SAMPLE_COPIES:
        whole = _copies(connection.execute(_ALL, (site_id, SAMPLE_COPIES)).get) + shared
        return CopySample(len(whole), whole)
    last = connection.execute("SELECT max(page_id) FROM page").get
    distance = max(last // BLOCKS, BLOCK_PAGES)
    starts = json.dumps(list(range(1 + distance // 3, last + 1, distance)))
    found = _copies(connection.execute(_BLOCKS, (site_id, starts)).get)
    copies = round(len(found) * distance / BLOCK_PAGES)
    if len(found) < LEAST_SAMPLE:
        found = _copies(connection.execute(_ALL, (site_id, SAMPLE_COPIES)).get) + shared
    return CopySample(max(copies, len(found)), found)


def _copies(text: str) -> list[SampledCopy]:
    return [
        SampledCopy(
            visited_at,
            outcome,
            bool(is_own),
            None if rate is None else _rate(rate),
            tuple(CopyHint(*hint) for hint in hints),
        )
        for visited_at, outcome, is_own, rate, hints in json.loads(text)
        if visited_at is not None
    ]


def _rate(packed: str) -> CopyRate:
    exact, censored, assumed, per_s = _RATE.unpack(bytes.fromhex(packed))
    return CopyRate(per_s, exact + censored + assumed)


def forget_quiet_visits(connection: apsw.Connection, site_ids: Sequence[int]) -> None:
    """Forget what visits found at sites that have their first source: it reports from now on."""
    sql = "DELETE FROM quiet_visit WHERE site_id IN (SELECT value FROM json_each(?))"
    connection.execute(sql, (json.dumps(list(site_ids)),))


def add_quiet_visits(connection: apsw.Connection, by_site: Mapping[int, QuietVisits]) -> None:
    """Add visits to pages without a hint, by site_id; older ones decay."""
    for site_id, new in by_site.items():
        known = quiet_visits(connection, site_id)
        total = QuietVisits(
            known.count + new.count,
            known.stale + new.stale,
            known.expected + new.expected,
            known.exposure_s + new.exposure_s,
        )
        total.decay()
        connection.execute(
            "INSERT INTO quiet_visit (site_id, visits, stale, expected, exposure_s)"
            " SELECT site_id, ?2, ?3, ?4, ?5 FROM site WHERE site_id = ?1"
            " ON CONFLICT DO UPDATE SET visits = excluded.visits, stale = excluded.stale,"
            " expected = excluded.expected, exposure_s = excluded.exposure_s",
            (site_id, total.count, total.stale, total.expected, total.exposure_s),
        )


def quiet_visits(connection: apsw.Connection, site_id: int) -> QuietVisits:
    """Return the visits to pages of a site without a hint."""
    row = connection.execute(
        "SELECT visits, stale, expected, exposure_s FROM quiet_visit WHERE site_id = ?", (site_id,)
    ).fetchone()
    return QuietVisits(*row) if row else QuietVisits()
