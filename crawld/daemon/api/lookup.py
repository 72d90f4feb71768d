"""Look up the URLs, pages, hosts and times that a request names."""

from __future__ import annotations

from starlette.exceptions import HTTPException

from crawld.core.timestamps import parse_timestamp
from crawld.core.url import canonicalize_given
from crawld.daemon.daemon import Daemon
from crawld.errors import InvalidUrlError, OperatorError
from crawld.store.frontier import host as host_rows
from crawld.store.frontier import page as page_rows
from crawld.store.frontier.host import HostRow
from crawld.store.frontier.page import PageRecord


def canonical(url: str) -> str:
    """Return a URL in canonical form; respond 422 if it is invalid."""
    try:
        return canonicalize_given(url)
    except InvalidUrlError as error:
        raise HTTPException(422, error.message) from error


async def known_page(daemon: Daemon, url: str) -> PageRecord:
    """Return the page of a URL; respond 404 if it is unknown."""
    wanted = canonical(url)
    record = await daemon.database.read(page_rows.by_url, wanted)
    if record is None:
        raise HTTPException(404, f"{wanted} is not known")
    return record


async def known_host(daemon: Daemon, host: str) -> HostRow:
    """Return the row of a host; respond 404 if it is unknown."""
    row = await daemon.database.read(host_rows.by_name, host)
    if row is None:
        raise HTTPException(404, f"host {host} is not known")
    return row


def parse_time(text: str, now: float) -> float:
    """Return the Unix time that a text names; respond 422 if it names none."""
    try:
        return parse_timestamp(text, now)
    except OperatorError as error:
        raise HTTPException(422, str(error)) from error
