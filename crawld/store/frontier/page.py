"""Pages: look-ups by page_id and URL, lists, and changes of state without a visit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import apsw

from crawld.core.change.section import section_of
from crawld.core.page import NO_GRACE, Failure, Grace, Outcome, PageState
from crawld.core.url import split_url, target_of, url_keys
from crawld.store.changes import model
from crawld.store.frontier import packed_list, page_counts, page_name
from crawld.store.frontier.packed_list import WaitingPage


class PageRecord(NamedTuple):
    """One page with all columns; a tuple, since each visit makes one and 35 fields take time.

    Attributes:
        origin: scheme, host and port.
        depth: links from a seed.
        seed: whether the operator named it.
        importance: weight of its freshness, > 0.
        referrer_id: the page that linked to it.
        last_visit_at, last_outcome, last_failure: of the last attempt.
        last_change_at: time of the visit that stored the last copy.
        retry_at: fixed time of the next visit.
        visit_count, change_count: attempts, and those that found a change.
        failure_count: failed attempts in a row.
        grace: how long it has been gone.
        version_id, digest, etag, last_modified, title: of the last good copy.
        redirect_url: target of the redirect, if it was one when last fetched.
        change_streak: visits in a row that found a change.
        model: its change model, None before its first visit.
        prior_shape: of the prior rate of change of its host's pages, or of its section's if the
            page has no model; None: not fitted.
        prior_exposure_s: the other half of that prior.
        validators: evidence about the validators of its origin.
        exact_until: time up to which a wiki reported all its changes; None: none did.
        requisite: whether other pages need it to be shown; its links are not followed.
        form: of the request that brought the copy held and its validators, 8 bytes; None: the
            usual one.
        left_at: when it left the part of a wiki that its site covers, Unix seconds; None: it did
            not, or was visited since.
    """

    page_id: int
    site_id: int
    host_id: int
    origin_id: int
    origin: str
    host: str
    url: str
    state: PageState
    depth: int
    seed: bool
    importance: float
    discovered_at: float
    referrer_id: int | None
    last_visit_at: float | None
    last_change_at: float | None
    retry_at: float | None
    last_outcome: Outcome | None
    last_failure: str | None
    visit_count: int
    change_count: int
    failure_count: int
    grace: Grace
    digest: bytes | None
    version_id: int | None
    etag: str | None
    last_modified: str | None
    redirect_url: str | None
    title: str | None
    change_streak: int
    model: bytes | None
    prior_shape: float | None
    prior_exposure_s: float | None
    validators: bytes | None
    exact_until: float | None
    requisite: bool = False
    left_at: float | None = None
    form: bytes | None = None


_SELECT: Final = """
SELECT page_id, page.site_id, page.host_id, origin_id, origin, host, url, state, depth, seed,
       importance, discovered_at, referrer_id, last_visit_at, last_change_at, retry_at,
       last_outcome, last_failure, page.visit_count, page.change_count, page.failure_count,
       gone_count, gone_since, digest, version_id, etag, last_modified, redirect_url, title,
       change_streak, (SELECT record FROM model WHERE model.page_id = page.page_id),
       prior_shape, prior_exposure_s, validators,
       (SELECT complete_until FROM wiki_page WHERE wiki_page.page_id = page.page_id), requisite,
       left_at, form
FROM page CROSS JOIN origin USING (origin_id) CROSS JOIN host ON host.host_id = page.host_id
"""
_FOR_VISIT: Final = f"{_SELECT} WHERE page_id = ?"
_BY_URL: Final = f"{_SELECT} WHERE page.host_id = (SELECT host_id FROM host WHERE host = ?)"


def _record(row: tuple[Any, ...]) -> PageRecord:
    values = list(row)
    values[7] = PageState(row[7])
    values[9] = bool(row[9])
    values[16] = Outcome(row[16]) if row[16] is not None else None
    values[21:23] = [Grace(row[21], row[22] or 0.0) if row[21] else NO_GRACE]
    values[-3] = bool(row[-3])
    return PageRecord(*values)


def for_visit(connection: apsw.Connection, page_id: int) -> PageRecord | None:
    """Return a page as a visit needs it, None if the page is not known."""
    row = connection.execute(_FOR_VISIT, (page_id,)).fetchone()
    if row is None:
        return None
    page = _record(row)
    if page.model is None and page.prior_shape is not None:
        prior = model.section_prior(connection, page.host_id, section_of(target_of(page.url)))
        if prior is not None:
            return page._replace(prior_shape=prior.shape, prior_exposure_s=prior.exposure_s)
    return page


def by_url(connection: apsw.Connection, url: str) -> PageRecord | None:
    """Return the page of a canonical URL, or of its former one; None if it is not known.

    A packed page has a number (`packed_list`) instead of a page_id.
    """
    host = split_url(url).host
    sql = f"{_BY_URL} AND url_hash IN (?, ?) AND url = ?"
    row = connection.execute(sql, (host, *url_keys(url), url)).fetchone()
    if row is None and (current := page_name.current_url(connection, url)) is not None:
        row = connection.execute(sql, (host, *url_keys(current), current)).fetchone()
    if row is not None:
        return _record(row)
    waiting = packed_list.find(connection, url)
    return _of_packed(waiting) if waiting is not None else None


def _of_packed(page: WaitingPage) -> PageRecord:
    """Return a packed page as it will be when it is a row, but for its weight."""
    return PageRecord(
        page_id=page.number,
        site_id=page.site_id,
        host_id=page.host_id,
        origin_id=0,
        origin=split_url(page.url).origin,
        host=page.host,
        url=page.url,
        state=PageState.DISCOVERED,
        depth=page.depth,
        seed=False,
        importance=1.0,
        discovered_at=page.found_at,
        referrer_id=page.referrer_id,
        last_visit_at=None,
        last_change_at=None,
        retry_at=None,
        last_outcome=None,
        last_failure=None,
        visit_count=0,
        change_count=0,
        failure_count=0,
        grace=Grace(),
        digest=None,
        version_id=None,
        etag=None,
        last_modified=None,
        redirect_url=None,
        title=None,
        change_streak=0,
        model=None,
        prior_shape=None,
        prior_exposure_s=None,
        validators=None,
        exact_until=None,
    )


_ID_OF: Final = """
SELECT page_id FROM page
WHERE host_id = (SELECT host_id FROM host WHERE host = ?) AND url_hash IN (?, ?) AND url = ?
"""


def id_of(connection: apsw.Connection, url: str) -> int | None:
    """Return the page_id of a canonical URL, or of its former one; None: unknown, or packed."""
    host = split_url(url).host
    found: int | None = connection.execute(_ID_OF, (host, *url_keys(url), url)).get
    if found is None and (current := page_name.current_url(connection, url)) is not None:
        found = connection.execute(_ID_OF, (host, *url_keys(current), current)).get
    return found


def ids_by_url(connection: apsw.Connection, page_ids: Sequence[int]) -> dict[str, int]:
    """Return the URLs of some pages, in their order, with their page_ids."""
    found = {}
    for page_id in page_ids:
        url = connection.execute("SELECT url FROM page WHERE page_id = ?", (page_id,)).get
        if url is not None:
            found[str(url)] = page_id
    return found


def list_pages(
    connection: apsw.Connection,
    *,
    site_id: int | None = None,
    host_id: int | None = None,
    state: PageState | None = None,
    requisites: bool = False,
    after: int = 0,
    limit: int = 100,
) -> list[PageRecord]:
    """Return pages of a site (shared ones too), a host or a state, after the page_id `after`.

    The order is that of page_id; with `host_id` it is that of the URL hashes, for which there is an
    index, so that every part of the list costs the same. Packed pages come after all others, in
    the order of their numbers.

    Args:
        requisites: the requisites instead of the pages proper.
    """
    rows: list[PageRecord] = []
    if after < packed_list.FIRST_NUMBER:
        rows = _list_rows(connection, site_id, host_id, state, requisites, after, limit)
    if requisites or state not in (None, PageState.DISCOVERED) or len(rows) >= limit:
        return rows
    left = limit - len(rows)
    waiting = packed_list.list_packed(
        connection, after=after, limit=left, site_id=site_id, host_id=host_id
    )
    return [*rows, *map(_of_packed, waiting)]


def _list_rows(
    connection: apsw.Connection,
    site_id: int | None,
    host_id: int | None,
    state: PageState | None,
    requisites: bool,
    after: int,
    limit: int,
) -> list[PageRecord]:
    where, bindings, order = ["page_id > ?"], [after], "page_id"
    if host_id is not None:
        position = "coalesce((SELECT url_hash FROM page WHERE page_id = ?), ?)"
        where = ["page.host_id = ?", f"url_hash > {position}"]
        bindings, order = [host_id, after, -(2**63)], "url_hash"
    where.append("requisite = ?")
    bindings.append(requisites)
    if site_id is not None:
        shared = "page_id IN (SELECT page_id FROM page_share WHERE site_id = ?)"
        where.append(f"(page.site_id = ? OR {shared})")
        bindings += [site_id, site_id]
    if state is not None:
        where.append("state = ?")
        bindings.append(state)  # type: ignore[arg-type]
    sql = f"{_SELECT} WHERE {' AND '.join(where)} ORDER BY {order} LIMIT ?"
    return [_record(row) for row in connection.execute(sql, (*bindings, limit))]


def set_state(
    connection: apsw.Connection, page_id: int, state: PageState, failure: str | None = None
) -> bool:
    """Set the state of a page without a visit (robots, replica verdict).

    Args:
        failure: the reason, kept as the page's last failure.

    Returns:
        False if the page is not known.
    """
    row = connection.execute(
        "SELECT site_id, host_id, state, requisite FROM page WHERE page_id = ?", (page_id,)
    ).fetchone()
    if row is None:
        return False
    connection.execute(
        "UPDATE page SET state = ?, last_failure = ? WHERE page_id = ?", (state, failure, page_id)
    )
    if not row[3]:
        page_counts.count_moves(connection, [(row[0], row[1], PageState(row[2]), state)])
    return True


class ReadmittedPage(NamedTuple):
    """A page that may be visited again."""

    page_id: int
    site_id: int
    host_id: int
    last_visit_at: float | None
    requisite: bool


def readmit(connection: apsw.Connection, origin: str) -> list[ReadmittedPage]:
    """Readmit the pages of an origin that its robots.txt excluded, to be checked again.

    A page that was visited before becomes `visited`, the others `discovered`.
    """
    rows = connection.execute(
        "UPDATE page SET state = iif(last_visit_at IS NULL, 'discovered', 'visited'),"
        " last_failure = NULL WHERE state = 'excluded' AND last_failure = ?"
        " AND origin_id = (SELECT origin_id FROM origin WHERE origin = ?)"
        " RETURNING page_id, site_id, host_id, last_visit_at, requisite, state",
        (Failure.ROBOTS, origin),
    )
    pages, moves = [], []
    for page_id, site_id, host_id, last_visit_at, requisite, state in rows:
        row = ReadmittedPage(page_id, site_id, host_id, last_visit_at, bool(requisite))
        pages.append(row)
        if not row.requisite:
            moves.append((site_id, host_id, PageState.EXCLUDED, PageState(state)))
    page_counts.count_moves(connection, moves)
    return pages
