"""Change models of pages, priors of hosts and sections, models of sites.

A model is one packed record (`core/change/record.py`), opaque here. A visit writes the model of its
page with its other results. The job that refits models reads them in slices, and writes back only
models that no visit has changed meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import apsw

from crawld.core.change.prior import Gamma
from crawld.store.changes import change


class ModelRow(NamedTuple):
    """The model of one page; rows are in the order of hosts, then of URL hashes."""

    page_id: int
    host_id: int
    url_hash: int
    record: bytes
    url: str


BEFORE_FIRST: Final = (0, -(2**63))
"""Comes before every (host_id, url_hash)."""

PageKey = tuple[int, int]
"""(host_id, url_hash): pages are read in this order."""

_AFTER_LAST: Final = (2**63 - 1, 2**63 - 1)

_END: Final = """
SELECT host_id, url_hash FROM page WHERE (host_id, url_hash) > (?, ?) AND host_id <= ?
ORDER BY host_id, url_hash LIMIT 1 OFFSET ?
"""


class ModelBatch(NamedTuple):
    """The models of some pages.

    Attributes:
        rows: of pages that have a model.
        up_to: key of the last page that was looked at, with a model or without; None: no page is
            left.
    """

    rows: list[ModelRow]
    up_to: PageKey | None


class RefittedModel(NamedTuple):
    """A model before and after a refit."""

    page_id: int
    before: bytes
    after: bytes


def of_page(connection: apsw.Connection, page_id: int) -> bytes | None:
    """Return the model of a page, None if it has none."""
    sql = "SELECT record FROM model WHERE page_id = ?"
    record: bytes | None = connection.execute(sql, (page_id,)).get
    return record


def put(connection: apsw.Connection, page_id: int, record: bytes) -> None:
    """Store the model of a page."""
    connection.execute(
        "INSERT INTO model (page_id, record) VALUES (?, ?)"
        " ON CONFLICT DO UPDATE SET record = excluded.record",
        (page_id, record),
    )


def put_if_unchanged(
    connection: apsw.Connection, page_id: int, before: bytes | None, after: bytes
) -> bool:
    """Store a model if the stored one is still the one it was computed from.

    Returns:
        Whether it was stored.
    """
    connection.execute(
        "INSERT INTO model (page_id, record) VALUES (?, ?)"
        " ON CONFLICT DO UPDATE SET record = excluded.record WHERE record = ?",
        (page_id, after, before),
    )
    return connection.changes() > 0


def end_of_batch(
    connection: apsw.Connection, after: PageKey, last_host: int, limit: int
) -> PageKey | None:
    """Return the key of the page `limit` pages after another; None: so many are not left.

    A batch ends there, however many of its pages have a model: a file may know millions of pages
    without one, and no reader is to be held for all of them. Reads an index alone.

    Args:
        last_host: the last host to look at.
    """
    row: Any = connection.execute(_END, (*after, last_host, limit - 1)).fetchone()
    return None if row is None else (row[0], row[1])


def batch(connection: apsw.Connection, *, after: PageKey = BEFORE_FIRST, limit: int) -> ModelBatch:
    """Return the models of the next pages, host by host.

    Args:
        after: key of the last page before them.
        limit: pages to look at.
    """
    end = end_of_batch(connection, after, _AFTER_LAST[0], limit)
    rows = connection.execute(
        "SELECT page_id, host_id, url_hash, record, url FROM page CROSS JOIN model USING (page_id)"
        " WHERE (host_id, url_hash) > (?, ?) AND (host_id, url_hash) <= (?, ?)"
        " ORDER BY host_id, url_hash",
        (*after, *(end or _AFTER_LAST)),
    )
    return ModelBatch([ModelRow(*row) for row in rows], end)


def put_refitted(connection: apsw.Connection, models: Iterable[RefittedModel]) -> int:
    """Store refitted models, except of pages that a visit has updated since they were read.

    Returns:
        How many were stored.
    """
    before = connection.total_changes()
    connection.executemany(
        "UPDATE model SET record = ? WHERE page_id = ? AND record = ?",
        [(model.after, model.page_id, model.before) for model in models],
    )
    return connection.total_changes() - before


def put_priors(connection: apsw.Connection, priors: Iterable[tuple[int, Gamma]]) -> None:
    """Store the prior rate of change of pages on some hosts (host_id, prior)."""
    connection.executemany(
        "UPDATE host SET prior_shape = ?, prior_exposure_s = ? WHERE host_id = ?",
        [(prior.shape, prior.exposure_s, host_id) for host_id, prior in priors],
    )


def put_section_priors(
    connection: apsw.Connection, priors: Iterable[tuple[int, str, Gamma]]
) -> None:
    """Store the prior rate of change of pages in sections of hosts (host_id, section, prior)."""
    connection.executemany(
        "INSERT INTO section (host_id, name, prior_shape, prior_exposure_s) VALUES (?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET prior_shape = excluded.prior_shape,"
        " prior_exposure_s = excluded.prior_exposure_s",
        [(host_id, name, prior.shape, prior.exposure_s) for host_id, name, prior in priors],
    )


def section_prior(connection: apsw.Connection, host_id: int, name: str) -> Gamma | None:
    """Return the prior rate of change of pages in a section; None: use that of the host."""
    row: Any = connection.execute(
        "SELECT prior_shape, prior_exposure_s FROM section WHERE host_id = ? AND name = ?",
        (host_id, name),
    ).fetchone()
    return None if row is None else Gamma(*row)


class KnownChanges(NamedTuple):
    """The known change times of a page, ascending, and its last visit; 0: none at its URL yet."""

    page_id: int
    times: list[float]
    last_visit_at: float


def known_changes(
    connection: apsw.Connection, host_id: int, site_id: int, *, pages: int, newest: int
) -> list[KnownChanges]:
    """Return the known changes of some pages of a host.

    The order of URL hashes makes the pages a fair sample. Times are those of revisions with a new
    text, if a wiki reported them; else of the stored copies, starting with the first.

    Args:
        pages: the most pages.
        newest: the most times of a page.
    """
    rows: list[Any] = connection.execute(
        "SELECT page_id, coalesce(last_visit_at, 0.0) FROM page"
        " WHERE host_id = ? AND site_id = ? AND version_id IS NOT NULL"
        " ORDER BY url_hash LIMIT ?",
        (host_id, site_id, pages),
    ).fetchall()
    return [
        KnownChanges(
            page_id,
            change.newest_times(connection, page_id, newest)
            or _copy_times(connection, page_id, newest),
            visited_at,
        )
        for page_id, visited_at in rows
    ]


def _copy_times(connection: apsw.Connection, page_id: int, limit: int) -> list[float]:
    rows: list[Any] = connection.execute(
        "SELECT DISTINCT visited_at FROM version WHERE page_id = ?"
        " ORDER BY visited_at DESC LIMIT ?",
        (page_id, limit),
    ).fetchall()
    return [at for (at,) in reversed(rows)]


def put_site(
    connection: apsw.Connection, site_id: int, at: float, model: dict[str, list[float]]
) -> None:
    """Store the models of a site (`SiteModel.as_dict`) and when they were fitted."""
    connection.execute(
        "INSERT INTO scale (site_id, fitted_at, model) VALUES (?, ?, ?)"
        " ON CONFLICT DO UPDATE SET fitted_at = excluded.fitted_at, model = excluded.model",
        (site_id, at, json.dumps(model)),
    )


def site_of(connection: apsw.Connection, site_id: int) -> dict[str, list[float]] | None:
    """Return the models of a site as stored, None if none were fitted yet."""
    text = connection.execute("SELECT model FROM scale WHERE site_id = ?", (site_id,)).get
    return None if text is None else _as_lists(json.loads(text))


def _as_lists(values: dict[str, Sequence[float]]) -> dict[str, list[float]]:
    return {name: list(numbers) for name, numbers in values.items()}
