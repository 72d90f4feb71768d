"""What is compared of a page of a replica and its twin: digests, copies, and times of visits."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import Any, Final, NamedTuple

import apsw

from crawld.core.page import Outcome
from crawld.core.replica.agreement import may_agree
from crawld.core.url import url_hash
from crawld.store.changes import volatile
from crawld.store.changes.volatile import Template
from crawld.store.frontier import server
from crawld.store.replica.pages import counterpart
from crawld.store.replica.sample import STAND_IN_PREFIX


class ShownPage(NamedTuple):
    """A page and its newest good copy.

    Attributes:
        version_id: None: it has no copy.
        digest: of the body.
        cleaned_digest: of the text under the rules of its own host; None: not analysed.
        sketch: of the visible text; None: not analysed.
        last_visit_at: of any outcome.
    """

    page_id: int
    url: str
    version_id: int | None
    digest: bytes | None
    cleaned_digest: bytes | None
    sketch: bytes | None
    last_visit_at: float
    last_outcome: Outcome
    redirect_url: str | None


class TwinFacts(NamedTuple):
    """A page of a replica with its twin, and what is known of the twin around the page's visit.

    Attributes:
        then_id: version that the twin had when the page was visited; None: it had none, or none is
            known to be its own, or both have one body now.
        seen_at: time of the last visit of the twin that found a copy.
        is_steady: see `core.replica.agreement.TwinTimes`; false if both have one body.
        lost_at: the same, by cleaned digests; None if both have one body.
        lost_id: version that the twin had before it lost the text; None: it is not kept.
        stands_in: whether a replica answered for the twin's last copy, which then proves nothing.
        noise: noise rules of the page and of its host; the same of the twin.
        leads_to_copy: whether the page redirects to one at its path that rests under the twin.
    """

    page: ShownPage
    twin: ShownPage
    then_id: int | None
    seen_at: float
    is_steady: bool
    lost_at: float | None
    stands_in: bool
    noise: tuple[tuple[bytes, Template], tuple[bytes, Template]]
    leads_to_copy: bool = False
    lost_id: int | None = None


AT_ONCE: Final = 50
"""Pages whose facts are read at once, some 5 ms."""

_PAGE: Final = """
SELECT page_id, url, version_id, digest, cleaned_digest, sketch, last_visit_at, last_outcome,
       redirect_url
FROM page WHERE page_id = ? AND requisite = 0 AND last_visit_at IS NOT NULL
"""

_FIRST_AFTER: Final = """
SELECT min(visited_at) FROM visit WHERE page_id = ? AND visited_at >= ?
AND outcome IN ('changed', 'unchanged', 'not_modified')
"""

_LAST: Final = """
SELECT visited_at, detail FROM visit WHERE page_id = ?
AND outcome IN ('changed', 'unchanged', 'not_modified')
ORDER BY visited_at DESC, visit_id DESC LIMIT 1
"""

_THEN: Final = """
SELECT version_id, visited_at FROM version WHERE page_id = ? AND visited_at <= ?
ORDER BY visited_at DESC, version_id DESC LIMIT 1
"""

_BEFORE: Final = """
SELECT version_id FROM version WHERE page_id = ? AND visited_at < ?
ORDER BY visited_at DESC, version_id DESC LIMIT 1
"""

_CHANGED: Final = """
SELECT 1 FROM version WHERE page_id = ? AND visited_at > ? AND visited_at <= ? LIMIT 1
"""

_STOOD_IN: Final = "SELECT 1 FROM visit WHERE page_id = ? AND visited_at = ? AND detail LIKE ?"

_LOST: Final = """
SELECT min(visited_at) FROM visit WHERE page_id = ?1 AND cleaned_digest <> ?2 AND visited_at > (
    SELECT max(visited_at) FROM visit WHERE page_id = ?1 AND cleaned_digest = ?2
    AND ifnull(detail, '') NOT LIKE ?3)
"""
"""NULL if it never showed the text."""


_LEADS_TO_COPY: Final = """
SELECT 1 FROM page JOIN page_twin USING (page_id)
WHERE host_id = ? AND url_hash = ? AND url = ? AND state = 'suspended' AND verdict = 'agrees'
  AND twin_id = ?
"""

_CRAWLED: Final = """
SELECT 1 FROM page WHERE page_id = ?1 AND state = 'visited' AND NOT EXISTS (
    SELECT 1 FROM page_twin WHERE page_id = ?1
    AND (verdict IN ('agrees', 'deferred') OR verdict = 'unknown' AND agreed > 0))
"""
"""One that differed may wait for its own twin after each of its visits."""


def twin_facts(
    connection: apsw.Connection, page_ids: Iterable[int], canonical_id: int
) -> list[TwinFacts]:
    """Return what is compared of pages whose twin has a copy; the others are left out."""
    return [
        _facts(connection, page, twin)
        for page, twin in _with_twins(connection, page_ids, canonical_id)
    ]


def alternate_facts(
    connection: apsw.Connection,
    page_ids: Iterable[int],
    alternate_id: int,
    *,
    unlike_too: Container[int] = (),
) -> list[TwinFacts]:
    """Return what is compared of pages whose twins on an alternate are crawled and may agree.

    Args:
        connection: the file.
        page_ids: the pages.
        alternate_id: the server of the twins.
        unlike_too: pages that are compared even if they cannot agree.
    """
    return [
        _facts(connection, page, twin)
        for page, twin in _with_twins(connection, page_ids, alternate_id)
        if (page.page_id in unlike_too or _may_agree(page, twin))
        and connection.execute(_CRAWLED, (twin.page_id,)).get
    ]


def _may_agree(page: ShownPage, twin: ShownPage) -> bool:
    if page.last_outcome is Outcome.MOVED or page.digest == twin.digest:
        return True
    return may_agree((page.cleaned_digest, twin.cleaned_digest), (page.sketch, twin.sketch))


def _with_twins(
    connection: apsw.Connection, page_ids: Iterable[int], server_id: int
) -> Iterator[tuple[ShownPage, ShownPage]]:
    for page_id in page_ids:
        row: Any = connection.execute(_PAGE, (page_id,)).fetchone()
        there = counterpart(connection, server_id, row[1]) if row else None
        twin: Any = there and connection.execute(_PAGE, (there[1].page_id,)).fetchone()
        if twin:
            yield _shown(row), _shown(twin)


def _shown(row: tuple[Any, ...]) -> ShownPage:
    page = ShownPage(*row)
    return page._replace(last_outcome=Outcome(page.last_outcome))


def _facts(connection: apsw.Connection, page: ShownPage, twin: ShownPage) -> TwinFacts:
    stood_in = f"{STAND_IN_PREFIX}%"
    last: Any = connection.execute(_LAST, (twin.page_id,)).fetchone()
    seen_at, detail = last or (twin.last_visit_at, None)
    then_id = lost_id = lost_at = None
    is_steady = False
    if page.digest is None or page.digest != twin.digest:  # else nothing else decides
        then_id, is_steady = _twin_then(connection, twin.page_id, page.last_visit_at)
        if page.cleaned_digest is not None and page.cleaned_digest != twin.cleaned_digest:
            lost_at = connection.execute(_LOST, (twin.page_id, page.cleaned_digest, stood_in)).get
            lost_id = lost_at and connection.execute(_BEFORE, (twin.page_id, lost_at)).get
    return TwinFacts(
        page,
        twin,
        then_id=then_id,
        seen_at=seen_at,
        is_steady=is_steady,
        lost_at=lost_at,
        stands_in=detail is not None and detail.startswith(STAND_IN_PREFIX),
        noise=(
            volatile.noise_of(connection, page.page_id),
            volatile.noise_of(connection, twin.page_id),
        ),
        leads_to_copy=_leads_to_copy(connection, page, twin),
        lost_id=lost_id,
    )


def _twin_then(connection: apsw.Connection, twin_id: int, at: float) -> tuple[int | None, bool]:
    """Return the version that a twin had at a time, and whether it had one text around it."""
    then: Any = connection.execute(_THEN, (twin_id, at)).fetchone()
    if then and connection.execute(_STOOD_IN, (twin_id, then[1], f"{STAND_IN_PREFIX}%")).get:
        then = None
    after = connection.execute(_FIRST_AFTER, (twin_id, at)).get
    is_steady = bool(then) and after is not None
    if is_steady and connection.execute(_CHANGED, (twin_id, at, after)).get:
        is_steady = False
    return then[0] if then else None, is_steady


def _leads_to_copy(connection: apsw.Connection, page: ShownPage, twin: ShownPage) -> bool:
    if page.last_outcome is not Outcome.MOVED or page.redirect_url is None:
        return False
    there = server.of_url(connection, page.redirect_url)
    if there is None:
        return False
    key = (there.host_id, url_hash(page.redirect_url), page.redirect_url, twin.page_id)
    return connection.execute(_LEADS_TO_COPY, key).get is not None
