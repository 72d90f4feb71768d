"""From what a client of the control socket names to what the file knows."""

from __future__ import annotations

from starlette.exceptions import HTTPException

from crawld.core.url import canonicalize, split_url, url_hash
from crawld.daemon.daemon import Daemon
from crawld.errors import InvalidUrlError
from crawld.store.frontier import page as page_rows
from crawld.store.frontier.page import PageRecord


def canonical(url: str) -> str:
    """Return a URL in canonical form; what is none is answered by 422."""
    try:
        return canonicalize(url)
    except InvalidUrlError as error:
        raise HTTPException(422, error.message) from error


async def known_page(daemon: Daemon, url: str) -> PageRecord:
    """Return the page of a URL; one that is not known is answered by 404."""
    wanted = canonical(url)
    record = await daemon.database.read(
        page_rows.by_url, split_url(wanted).host, url_hash(wanted), wanted
    )
    if record is None:
        raise HTTPException(404, f"{wanted} is not known")
    return record
